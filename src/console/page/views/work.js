import {LISTED_MOST, at, request} from '../api.js';
import {retryDead} from '../retry.js';
import {h, renew} from '../dom.js';
import {count} from '../format.js';
import {operate, operationDialog, settingsDialog} from '../operation.js';
import {button, changeButton, confirmTyped, empty, facts, grid, json, select, shell, since, state} from '../parts.js';
import {pagedList, patternView} from '../pattern.js';
import {go, href} from '../route.js';

const KINDS = {READY: 'waiting', CLAIMED: 'running', DONE: 'ok', DEAD: 'failed'};
const word = unit => state(KINDS[unit.state] ?? 'waiting', unit.state);

export const open = patternView({
    section: 'work',
    title: 'Work',
    sentence:
        'Units of work: a worker claims one for a time and finishes it; what a dead worker held is claimed again.',
    first: [
        `quipu work submit mails m1 '{"to":"ann"}'`,
        'quipu work run mails -- ./send-mail',
        'quipu work ls mails --state dead',
    ],
    list: {
        path: '/v1/work',
        member: 'queues',
        key: row => row.queue,
        columns: [
            {title: 'Queue', cell: row => row.queue, sort: row => row.queue},
            {title: 'Lease', cell: row => row.lease, right: true},
            {title: 'Attempts', cell: row => String(row.attempts ?? ''), right: true},
        ],
    },
    make: {id: 'workSubmit', words: 'Submit work', open: made => made.values.queue},
    teach: (name, route) =>
        name === null
            ? ['workList', {}]
            : route.path[2]
              ? ['workGet', {queue: name, id: route.path[2]}]
              : ['workLs', {queue: name, state: route.query.units || undefined}],
    detail(page, name, route) {
        const more = button('More', null, {hidden: true});
        const settings = h('div'),
            head = h('div.bar'),
            chosen = h('div');
        let id = route.path[2] ?? null,
            only = route.query.units ?? '',
            queue = {};
        const states = select(
            [
                ['', 'all states'],
                ['ready', 'ready'],
                ['claimed', 'claimed'],
                ['done', 'done'],
                ['dead', 'dead'],
            ],
            only,
            {'aria-label': 'State of the units', onchange: () => go(['work', name], {units: states.value})},
        );
        const units = grid({
            label: 'Units of work',
            key: row => row.id,
            href: row => href(['work', name, row.id], {units: only}),
            selected: id,
            empty: empty('No units', 'Here is none, or none in this state. A unit waits until a worker claims it.', [
                shell('quipu', 'work', 'submit', name, 'm1', '{"to":"ann"}'),
            ]),
            columns: [
                {title: 'Unit', cell: row => row.id, sort: row => row.id},
                {title: 'State', cell: word, sort: row => row.state},
                {title: 'Tries', cell: row => count(row.attempts), sort: row => row.attempts, right: true},
                {title: 'Holder', cell: row => row.owner ?? '', sort: row => row.owner ?? ''},
                {
                    title: 'Until or due',
                    cell: row => since(row.until ?? row.due),
                    sort: row => row.until ?? row.due ?? '',
                },
                {title: 'Reason', cell: row => row.error ?? '', wide: true},
            ],
        });
        const load = pagedList(
            async after => {
                const query = new URLSearchParams({
                    limit: 100,
                    ...(only ? {state: only} : {}),
                    ...(after === undefined ? {} : {after}),
                });
                const reply = await request('GET', `${at`/v1/work/${name}`}?${query}`, {signal: page.signal});
                const {work, next, ...rest} = reply;
                queue = rest;
                renew(
                    settings,
                    facts(
                        Object.entries(rest).map(([key, value]) => [
                            key,
                            typeof value === 'object' ? json(value) : String(value),
                        ]),
                    ),
                );
                return {rows: work, next};
            },
            units,
            more,
        );
        const retry = changeButton('Retry', () =>
            self.faults.run(async () => {
                await operate('workRetry', {queue: name, id});
                await self.refresh();
            }),
        );
        const remove = changeButton(
            'Delete',
            async () => {
                const mine = id;
                const done = await confirmTyped({
                    title: `Delete ${mine}`,
                    name: mine,
                    sentence: 'The unit is gone then with its data, whoever holds it.',
                    words: 'Delete it',
                    job: () => request('DELETE', at`/v1/work/${name}/${mine}`),
                });
                if (!done) return;
                go(['work', name], {units: only});
                await load();
            },
            {class: 'danger'},
        );
        async function show() {
            if (id === null) {
                renew(chosen);
                return;
            }
            const unit = await request('GET', at`/v1/work/${name}/${id}`, {signal: page.signal});
            retry.hidden = unit.state !== 'DEAD';
            renew(head, h('h3.grow', unit.id), word(unit), retry, remove);
            renew(chosen, head, json(unit));
        }
        const retryAll = () =>
            self.faults.run(async () => {
                await retryDead(name);
                await self.refresh();
            });
        // By state, of as many as are looked at at once.
        const counts = h('p.work-counts', {role: 'status'});
        async function countStates() {
            const {work, next} = await request('GET', `${at`/v1/work/${name}`}?limit=${LISTED_MOST}`, {
                signal: page.signal,
            });
            const by = new Map(Object.keys(KINDS).map(kind => [kind, 0]));
            for (const unit of work) by.set(unit.state, (by.get(unit.state) ?? 0) + 1);
            const link = (kind, number) =>
                h(
                    'a',
                    {href: href(['work', name], {units: kind.toLowerCase()})},
                    state(KINDS[kind] ?? 'waiting', `${count(number)} ${kind.toLowerCase()}`),
                );
            renew(
                counts,
                [...by].map(([kind, number]) => [link(kind, number), ' ']),
                next === undefined ? null : h('span.dim', `of the first ${count(LISTED_MOST)} and more`),
            );
        }
        const self = {
            element: h(
                'div.stack',
                settings,
                counts,
                h('div.bar', states, changeButton('Retry all dead', retryAll)),
                units.element,
                more,
                chosen,
            ),
            async refresh() {
                await load();
                await countStates();
                await show();
            },
            async update(next) {
                id = next.path[2] ?? null;
                only = next.query.units ?? '';
                states.value = only;
                units.select(id);
                await self.faults.run(self.refresh);
            },
            actions: [
                changeButton('Submit', async () => {
                    await operationDialog('workSubmit', {queue: name}, {title: `Submit to ${name}`, words: 'Submit'});
                    await self.refresh();
                }),
                changeButton('Settings', async () => {
                    await settingsDialog('workPut', {queue: name}, queue, {title: `Settings of ${name}`});
                    await self.refresh();
                }),
            ],
        };
        return self;
    },
});
