import {at, request} from '../api.js';
import {h, renew, replace} from '../dom.js';
import {count} from '../format.js';
import {print} from '../json.js';
import {operate, operationDialog} from '../operation.js';
import {
    button,
    changeButton,
    confirmTyped,
    empty,
    facts,
    grid,
    select,
    shell,
    since,
    state,
    time,
} from '../parts.js';
import {isRemote} from '../calls.js';
import {pagedList, patternView} from '../pattern.js';
import {go, href} from '../route.js';

const LOOKED_AT = 50; // groups of the list whose events are counted
const LOOKED_AT_ELSEWHERE = 10;

// What has come and what is still missing, side by side.
function picture(group, rules) {
    const wanted = rules?.complete?.kinds ?? [];
    const come = new Set(group.kinds ?? []);
    const size = rules?.complete?.size;
    return h(
        'div.group-sides',
        h(
            'section',
            h('h3', `Has come (${count(group.count)}${size ? ` of ${count(size)}` : ''})`),
            h(
                'ul',
                (group.kinds ?? []).map(kind => h('li', state('ok', kind))),
            ),
            facts(Object.entries(group.fold ?? {}).map(([value, now]) => [value, print(now, 0)])),
        ),
        h(
            'section',
            h('h3', 'Is missing'),
            group.state !== 'OPEN' && !wanted.some(kind => !come.has(kind))
                ? h('p.dim', 'nothing, it is complete')
                : [
                      group.state === 'OPEN' ? null : h('p.dim', 'It was completed without these:'),
                      h(
                          'ul',
                          wanted.filter(kind => !come.has(kind)).map(kind => h('li', state('waiting', kind))),
                      ),
                      group.state === 'OPEN' && size && size > group.count
                          ? h('p', state('waiting', `${count(size - group.count)} more`))
                          : null,
                      group.state === 'OPEN' && rules?.complete?.when
                          ? h(
                                'p',
                                state(
                                    'waiting',
                                    typeof rules.complete.when === 'string'
                                        ? rules.complete.when
                                        : print(rules.complete.when, 0),
                                ),
                            )
                          : null,
                  ],
        ),
    );
}

// In a word or two what an open group waits for.
function missing(group, rules) {
    if (group?.state !== 'OPEN') return '';
    const come = new Set(group.kinds ?? []);
    const {kinds = [], size, when} = rules?.complete ?? {};
    const words = kinds.filter(kind => !come.has(kind));
    if (size > group.count) words.push(`${count(size - group.count)} more`);
    if (when) words.push(typeof when === 'string' ? when : print(when, 0));
    return words.join(', ');
}

export const open = patternView({
    section: 'groups',
    title: 'Groups',
    sentence: 'A group collects events under a key until a rule says that it is complete; then one thing runs, once.',
    first: [
        `quipu group put orders --complete '{"kinds":["paid","packed"]}' --then ship`,
        `quipu group add orders o-1 --kind paid`,
        'quipu group show orders --state open',
    ],
    list: {
        path: '/v1/groups',
        member: 'groups',
        key: row => row.name,
        columns: [
            {title: 'Kind', cell: row => row.name, sort: row => row.name},
            {title: 'Complete when', cell: row => print(row.complete ?? {}, 0)},
        ],
    },
    make: {id: 'groupPut', words: 'Set rules', open: made => made.values.name},
    remove: {
        words: 'Forget rules',
        path: name => at`/v1/groups/${name}`,
        sentence: 'Open groups keep their rules; new ones cannot begin.',
    },
    teach: (name, route) =>
        name === null
            ? ['groupList', {}]
            : route.path[2]
              ? ['groupGet', {name, key: route.path[2]}]
              : ['groupShow', {name, state: route.query.which ?? 'open'}],
    detail(page, name, route) {
        const more = button('More', null, {hidden: true});
        const rulesPlace = h('div');
        let key = route.path[2] ?? null,
            which = route.query.which ?? 'open',
            rules = null;
        const states = select(
            [
                ['open', 'open, the oldest first'],
                ['complete', 'complete, the newest first'],
            ],
            which,
            {'aria-label': 'Which groups', onchange: () => go(['groups', name], {which: states.value})},
        );
        // What has come for the first of them: each is one request.
        const looked = new Map();
        const known = row => row.known ?? looked.get(`${row.key} ${row.generation}`);
        async function learn(rows) {
            const most = isRemote() ? LOOKED_AT_ELSEWHERE : LOOKED_AT;
            const ask = ({key, generation}) =>
                request('GET', `${at`/v1/groups/${name}/${key}`}?generation=${generation}&limit=1`, {
                    signal: page.signal,
                });
            await Promise.all(
                rows.slice(0, most).map(async row => {
                    const id = `${row.key} ${row.generation}`;
                    if (looked.has(id) && looked.get(id).state !== 'OPEN') return;
                    const {count: events, kinds, state: now} = await ask(row).catch(() => ({}));
                    looked.set(id, {count: events, kinds, state: now});
                }),
            );
        }
        const groups = grid({
            label: 'Groups',
            empty: empty('No groups', 'None is in this state. A group opens with the first event of its key.', [
                shell('quipu', 'group', 'add', name, 'o-1', '--kind', 'paid'),
            ]),
            key: row => `${row.key} ${row.generation}`,
            href: row => href(['groups', name, row.key], {which}),
            columns: [
                {title: 'Key', cell: row => row.key, sort: row => row.key},
                {title: 'Generation', cell: row => String(row.generation), right: true},
                {title: 'Events', cell: row => count(known(row)?.count), right: true},
                {title: 'Waits for', cell: row => missing(known(row), rules)},
                {title: 'Opened', cell: row => since(row.opened), sort: row => row.opened ?? ''},
                {title: 'Completed', cell: row => since(row.completed), sort: row => row.completed ?? ''},
            ],
        });
        const load = pagedList(
            async after => {
                const query = new URLSearchParams({
                    state: which,
                    limit: 100,
                    ...(after === undefined ? {} : {after}),
                });
                const reply = await request('GET', `${at`/v1/groups/${name}`}?${query}`, {signal: page.signal});
                await learn(reply.groups);
                // with what is known of each, so that a row is written anew when that changes
                return {rows: reply.groups.map(row => ({...row, known: known(row)})), next: reply.next};
            },
            groups,
            more,
        );
        const head = h('div.bar'),
            sides = h('div');
        const events = grid({
            label: 'Events',
            key: row => row.id,
            columns: [
                {title: 'Time', cell: row => time(row.time)},
                {title: 'Event', cell: row => row.id},
                {title: 'Kind', cell: row => row.kind ?? ''},
                {title: 'Data', cell: row => (row.data === undefined ? '' : print(row.data, 0)), wide: true},
            ],
        });
        const complete = changeButton('Complete now', () =>
            self.faults.run(async () => {
                await operate('groupComplete', {name, key});
                await self.refresh();
            }),
        );
        const remove = changeButton(
            'Delete',
            async () => {
                const done = await confirmTyped({
                    title: `Delete ${key}`,
                    name: key,
                    words: 'Delete',
                    sentence: 'All generations of the group and their events.',
                    job: () => request('DELETE', at`/v1/groups/${name}/${key}`),
                });
                if (done) {
                    go(['groups', name], {which});
                    await load();
                }
            },
            {class: 'danger'},
        );
        const chosen = h('div.stack', {hidden: true}, head, sides, events.element);
        async function show() {
            chosen.hidden = key === null;
            if (key === null) return;
            const group = await request('GET', at`/v1/groups/${name}/${key}`, {signal: page.signal});
            const isOpen = group.state === 'OPEN';
            complete.hidden = !isOpen;
            renew(
                head,
                h('h3.grow', `${key} · generation ${group.generation}`),
                state(isOpen ? 'waiting' : 'ok', group.state),
                complete,
                remove,
            );
            renew(sides, picture(group, rules));
            events.update(group.events ?? []);
        }
        const self = {
            element: h('div.stack', rulesPlace, h('div.bar', states), groups.element, more, chosen),
            async refresh() {
                if (!rules) {
                    rules = await request('GET', at`/v1/groups/${name}`, {signal: page.signal});
                    const words = value => (typeof value === 'object' ? print(value, 0) : String(value));
                    replace(
                        rulesPlace,
                        facts(
                            Object.entries(rules)
                                .filter(([key]) => key !== 'name')
                                .map(([key, value]) => [key, words(value)]),
                        ),
                    );
                }
                await load();
                await show();
            },
            async update(next) {
                key = next.path[2] ?? null;
                which = next.query.which ?? 'open';
                states.value = which;
                await self.faults.run(self.refresh);
            },
            actions: [
                changeButton('Add event', async () => {
                    await operationDialog('groupAdd', {name}, {title: `Add to ${name}`, words: 'Add'});
                    await self.refresh();
                }),
                changeButton('Change rules', async () => {
                    await operationDialog(
                        'groupPut',
                        {name},
                        {title: `Rules of ${name}`, words: 'Save', preset: rules ?? {}},
                    );
                    rules = null;
                    await self.refresh();
                }),
            ],
        };
        return self;
    },
});
