import {at, request} from '../api.js';
import {h, renew, replace, text} from '../dom.js';
import {count, duration} from '../format.js';
import {jobPicture, RANGES_WANTED} from '../jobpicture.js';
import {operate, settingsDialog} from '../operation.js';
import {button, changeButton, grid, json, select, since, state, tabs, time} from '../parts.js';
import {liveFacts, pagedList, patternView} from '../pattern.js';
import {go, href} from '../route.js';

const KINDS = {OPEN: 'running', COMPLETE: 'ok', FAILED: 'failed', EXPIRED: 'failed'};
const word = job => state(KINDS[job.state] ?? 'waiting', job.state);
const STATES = ['open', 'failed', 'expired', 'complete'];
const RATE_MS = 30e3; // over which the rate is measured
const REASONS = 100; // failures of a large job that are looked at: each may be a read

export const open = patternView({
    section: 'jobs',
    title: 'Jobs',
    sentence: 'A job counts tasks to the last one, each once; one caller learns that it was the last.',
    first: ['quipu job put pages --total 500', 'quipu job done pages 17', 'quipu job watch pages'],
    list: {
        path: '/v1/jobs',
        member: 'jobs',
        prefix: false,
        key: row => row.id,
        query: route => ({state: route.query.state ?? 'open'}),
        columns: [
            {title: 'Job', cell: row => row.id, sort: row => row.id},
            {title: 'State', cell: word, sort: row => row.state},
            {title: 'Opened', cell: row => since(row.opened), sort: row => row.opened ?? ''},
        ],
    },
    filter: to => {
        const element = select(STATES, 'open', {'aria-label': 'State', onchange: () => to({state: element.value})});
        return {element, follow: route => (element.value = route.query.state ?? 'open')};
    },
    make: {id: 'jobPut', words: 'Open a job', open: made => made.values.id},
    remove: {
        words: 'Delete',
        path: id => at`/v1/jobs/${id}`,
        sentence: 'The job and all that is known of its tasks.',
    },
    teach: (id, route) =>
        id === null
            ? ['jobLs', {state: route.query.state}]
            : [
                  {failures: 'jobFailures', results: 'jobResults', missing: 'jobMissing'}[route.path[2]] ?? 'jobGet',
                  {id},
              ],
    detail(page, id, route) {
        const facts = liveFacts(),
            picture = jobPicture(id, page.signal, cell => go(['jobs', id], {...route.query, cell}, {quietly: true})),
            part = h('div.stack'),
            bar = h('div'),
            reasons = h('div');
        let which = route.path[2] ?? 'tasks',
            job = null,
            load = null;
        const seen = []; // {t, done} of the last half minute, for the rate
        function rate() {
            const now = Date.now();
            seen.push({t: now, done: Number(job.done ?? 0)});
            while (seen.length > 2 && now - seen[0].t > RATE_MS) seen.shift();
            const spent = now - seen[0].t,
                done = Number(job.done ?? 0) - seen[0].done;
            return spent > 0 && done > 0 ? (done / spent) * 1000 : 0;
        }
        const lists = {
            missing: ['missing', [{title: 'Task', cell: row => String(row)}], row => row],
            failures: [
                'failures',
                [
                    {title: 'Task', cell: row => String(row.task)},
                    {title: 'Reason', cell: row => row.reason ?? '', wide: true},
                ],
                row => row.task,
            ],
            results: [
                'results',
                [
                    {title: 'Task', cell: row => String(row.task)},
                    {title: 'Result', cell: row => json(row.result), wide: true},
                ],
                row => row.task,
            ],
        };
        function openPart() {
            replace(
                bar,
                tabs(
                    ['tasks', 'missing', 'failures', 'results'].map(name => [
                        name[0].toUpperCase() + name.slice(1),
                        href(name === 'tasks' ? ['jobs', id] : ['jobs', id, name], {state: route.query.state}),
                        name === which,
                    ]),
                ),
            );
            load = null;
            if (which === 'tasks') {
                replace(part, picture.element, reasons);
                return;
            }
            if (!lists[which]) {
                replace(part, h('p', `A job has no part “${which}”: choose one of those above.`));
                return;
            }
            const [member, columns, key] = lists[which];
            const more = button('More', null, {hidden: true});
            const table = grid({label: which, key, columns, empty: h('p.dim', `No ${which}.`)});
            replace(part, table.element, more);
            load = pagedList(
                async after => {
                    const query = new URLSearchParams({limit: 256, ...(after === undefined ? {} : {after})});
                    const reply = await request('GET', `${at`/v1/jobs/${id}`}/${which}?${query}`, {
                        signal: page.signal,
                    });
                    return {rows: reply[member], next: reply.next};
                },
                table,
                more,
            );
        }
        // Failures by their reason, the most frequent first: of those that the picture knows, else of some.
        let toldFailed = 0;
        async function tellReasons(known) {
            const failed = Number(job.failed ?? 0);
            if (!known && failed === toldFailed) return;
            if (!failed) {
                toldFailed = 0;
                renew(reasons);
                return;
            }
            const {failures} = known
                ? {failures: known}
                : await request('GET', `${at`/v1/jobs/${id}/failures`}?limit=${REASONS}`, {signal: page.signal});
            toldFailed = failed;
            const by = new Map();
            for (const one of failures)
                by.set(one.reason ?? 'no reason', (by.get(one.reason ?? 'no reason') ?? 0) + 1);
            renew(
                reasons,
                h('h3', 'Failures by reason'),
                failures.length < failed ? h('p.dim', `Of ${count(failures.length)} of them.`) : null,
                h(
                    'ul',
                    [...by]
                        .sort((a, b) => b[1] - a[1])
                        .slice(0, 20)
                        .map(([reason, n]) => h('li', `${count(n)} × ${reason}`)),
                ),
            );
        }
        const redrive = changeButton('Redrive failures', () =>
            self.faults.run(async () => {
                await operate('jobRedrive', {id});
                await self.refresh();
            }),
        );
        const pause = changeButton(
            'Pause',
            () =>
                self.faults.run(async () => {
                    await operate('jobChange', {id, paused: !job.paused});
                    await self.refresh();
                }),
            {hidden: true},
        );
        const self = {
            element: h('div.stack', facts.element, bar, part),
            async refresh() {
                job = await request('GET', `${at`/v1/jobs/${id}`}?progress=true&${RANGES_WANTED}`, {
                    signal: page.signal,
                });
                // what runs is not in the tables: the server tells what it calls itself
                const {tasks: calls} =
                    job.each && job.state === 'OPEN'
                        ? await request('GET', at`/console/running?job=${id}`, {signal: page.signal})
                        : {tasks: []};
                const known = which === 'tasks' ? await picture.update(job, calls) : null;
                if (known) job = {...job, done: known.done, exact: true};
                const speed = rate(),
                    left = Number(job.total ?? 0) - Number(job.done ?? 0) - Number(job.failed ?? 0);
                facts.set([
                    ['State', word(job)],
                    [
                        'Done',
                        `${job.exact === false ? 'at least ' : ''}${count(job.done ?? 0)} of ${count(job.total ?? 0)}`,
                    ],
                    ['Failed', count(job.failed ?? 0)],
                    ['Running', job.each && job.state === 'OPEN' ? count(calls.length) : null],
                    ['A second', speed ? speed.toFixed(speed < 10 ? 1 : 0) : '–'],
                    ['Time left', speed && job.state === 'OPEN' ? duration((left / speed) * 1000) : '–'],
                    ['Opened', time(job.opened)],
                    ['Ended', time(job.closed)],
                    ['Deadline', since(job.deadline)],
                ]);
                redrive.disabled = redrive.title !== '' || !(Number(job.failed) || job.state === 'EXPIRED');
                pause.hidden = !job.each || job.state !== 'OPEN';
                text(pause, job.paused ? 'Resume' : 'Pause');
                if (which === 'tasks') await tellReasons(known?.failures ?? null);
                else await load?.();
            },
            async update(next) {
                const isSamePart = which === (next.path[2] ?? 'tasks');
                route = next;
                picture.select(cellOf(route));
                if (isSamePart) return;
                which = next.path[2] ?? 'tasks';
                openPart();
                await self.faults.run(self.refresh);
            },
            actions: [
                redrive,
                pause,
                changeButton('Change', async () => {
                    await settingsDialog('jobChange', {id}, job, {title: `Change ${id}`, unset: ['deadline']});
                    await self.refresh();
                }),
            ],
        };
        const cellOf = ({query}) => (query.cell === undefined ? null : Number(query.cell));
        picture.select(cellOf(route));
        openPart();
        return self;
    },
});
