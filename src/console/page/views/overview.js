// The last minutes in plots, and what is open, stuck or dead.

import {counts, recount} from '../counts.js';
import {server} from '../api.js';
import {h, renew, replace, text} from '../dom.js';
import {bytes, duration, micros, plural, short, when} from '../format.js';
import {live, showsPast} from '../live.js';
import {changeButton, confirmOnce, faultPlace, select, state, teach} from '../parts.js';
import {plot, plotGroup} from '../plot.js';
import {retryAll} from '../retry.js';
import {go, href} from '../route.js';

const RANGES = [
    ['5', 'last 5 minutes'],
    ['15', 'last 15 minutes'],
    ['60', 'last hour'],
    ['360', 'last 6 hours'],
    ['1440', 'last 24 hours'],
];
// Operations by kind; what is none of these (tables, streams, tags) is "other".
const KINDS = ['reads', 'writes', 'queries', 'patterns', 'other'];
const KIND_COLORS = ['--running', '--accent', '--waiting', '--dim', '--faint'];
const KIND_OF = {
    GetItem: 'reads',
    BatchGetItem: 'reads',
    TransactGetItems: 'reads',
    GetRecords: 'reads',
    PutItem: 'writes',
    UpdateItem: 'writes',
    DeleteItem: 'writes',
    BatchWriteItem: 'writes',
    TransactWriteItems: 'writes',
    Query: 'queries',
    Scan: 'queries',
    SearchVectors: 'queries',
    ExecuteStatement: 'queries',
    BatchExecuteStatement: 'queries',
    ExecuteTransaction: 'queries',
    '/v1': 'patterns',
};

const ofKind = (ops, kind) =>
    Object.entries(ops ?? {}).reduce((sum, [name, n]) => sum + ((KIND_OF[name] ?? 'other') === kind ? n : 0), 0);

const isOwn = name => !!server.info.prefix && name.startsWith(server.info.prefix);

export function open(page) {
    const group = plotGroup();
    let minutes = page.route.query.minutes ?? '5';
    const plots = [
        plot({
            title: 'Operations a second',
            group,
            series: KINDS.map((name, i) => ({name, color: KIND_COLORS[i]})),
            words: short,
            isSum: true,
            value: (s, i) => ofKind(s.ops, KINDS[i]),
        }),
        plot({
            title: 'Latency',
            group,
            series: [
                {name: 'p50', color: '--accent'},
                {name: 'p99', color: '--waiting'},
            ],
            band: [0, 1],
            words: micros,
            value: (s, i) => (i ? s.p99 : s.p50),
        }),
        plot({
            title: 'Errors a second',
            group,
            series: [{name: 'errors', color: '--failed'}],
            words: short,
            value: s => s.errors ?? 0,
        }),
        plot({title: 'Sync', group, series: [{name: 'sync'}], words: micros, value: s => s.syncUs}),
        plot({title: 'Writes in a batch', group, series: [{name: 'batch'}], words: short, value: s => s.batch}),
        plot({
            title: 'Function calls a second',
            group,
            href: href(['functions']),
            series: [
                {name: 'calls', color: '--accent'},
                {name: 'errors', color: '--failed'},
            ],
            words: short,
            value: (s, i) => (i ? s.callErrors : s.calls) ?? 0,
        }),
        plot({
            title: 'Trigger lag',
            group,
            href: href(['triggers']),
            series: [{name: 'lag'}],
            words: duration,
            value: s => s.lagMs,
        }),
        plot({
            title: 'Calls that wait',
            group,
            href: href(['queues']),
            series: [
                {name: 'waiting', color: '--waiting'},
                {name: 'messages of queues', color: '--dim'},
            ],
            words: short,
            value: (s, i) => (i ? s.dead : s.queue),
        }),
        plot({title: 'Connections', group, series: [{name: 'open'}], words: short, value: s => s.connections}),
        plot({title: 'Memory', group, series: [{name: 'memory'}], words: bytes, value: s => s.memory}),
        plot({title: 'Disk', group, series: [{name: 'disk'}], words: bytes, value: s => s.disk}),
    ];
    const range = select(RANGES, minutes, {
        'aria-label': 'Time shown',
        onchange: () => go(['overview'], {minutes: range.value}),
    });
    const busiest = h('div.busiest');
    const open = h('p.overview-open');
    const at = h('span.dim', {role: 'status'}); // the time under the crosshair
    group.onpoint = t => text(at, t ? when(t) : '');
    const faults = faultPlace();
    const retry = changeButton('Retry all that failed', retryNow, {class: 'small', hidden: true});
    const retried = h('span.dim', {role: 'status'});
    // Of each kind: how many failed, and in which words.
    const failures = () =>
        [
            ['work', counts.work?.wrong, 'dead unit of work', 'dead units of work'],
            ['jobs', counts.jobs?.wrong, 'failed or expired job', 'failed or expired jobs'],
            ['calls', counts.queues?.wrong, 'dead call', 'dead calls'],
        ].filter(([, number]) => Number(number) > 0);
    async function retryNow() {
        const failed = failures();
        await confirmOnce({
            title: 'Retry all that failed',
            sentence:
                `There are ${failed.map(([, ...words]) => plural(...words)).join(', ')}. ` +
                'Dead work is claimed again, failed tasks of jobs are missing again, and calls are made again.',
            words: 'Retry',
            job: async () => text(retried, await retryAll(failed.map(([kind]) => kind))),
        });
        await recount();
    }
    recount();
    replace(
        page.el,
        h('h1', 'Overview'),
        h('div.bar', range, open, retry, retried, at),
        faults.element,
        h(
            'div.plots',
            plots.map(one => one.element),
        ),
        busiest,
        teach({CLI: 'quipu top', curl: `curl -s ${location.origin}/metrics`}),
    );

    // things: by name, or by id with what it is called.
    function ranked(title, section, things, words, nameOf = name => name) {
        const all = Object.entries(things ?? {});
        const own = section === 'tables' ? all.filter(([name]) => isOwn(name)) : [];
        const rows = all.filter(one => !own.includes(one)).slice(0, 10);
        const [reads, writes] = ['r', 'w'].map(kind => own.reduce((sum, [, one]) => sum + (one[kind] ?? 0), 0));
        return h(
            'section',
            h('h2', title),
            rows.length
                ? h(
                      'ol',
                      rows.map(([name, one]) =>
                          h(
                              'li',
                              h('a', {href: href([section, name])}, nameOf(name, one)),
                              ' ',
                              h('span.dim', words(one)),
                          ),
                      ),
                  )
                : h('p.dim', 'nothing now'),
            own.length ? h('p.dim', `and ${server.info.prefix}*: ${words({r: reads, w: writes})}`) : null,
        );
    }
    // What is open, and what is wrong, each with the way to it.
    function tellOpen() {
        const wrong = [
            [counts.jobs?.wrong, ['failed or expired job'], href(['jobs'], {state: 'failed'})],
            [counts.triggers?.wrong, ['trigger with a problem', 'triggers with a problem'], href(['triggers'])],
            [counts.work?.wrong, ['dead unit of work', 'dead units of work'], href(['work'])],
            [counts.queues?.wrong, ['dead call'], href(['queues'])],
        ].filter(([number]) => Number(number) > 0);
        const opened = [
            [counts.jobs?.open, 'open job', href(['jobs'])],
            [counts.groups?.open, 'open group', href(['groups'])],
        ].filter(([number]) => number !== undefined);
        retry.hidden = !failures().length;
        renew(
            open,
            opened.map(([number, words, target]) => [h('a', {href: target}, plural(number, words)), ' · ']),
            wrong.length
                ? wrong.map(([number, words, target]) => [
                      h('a', {href: target}, state('failed', plural(number, ...words))),
                      ' ',
                  ])
                : state('ok', 'nothing failed'),
        );
    }
    function draw() {
        showsPast(Number(minutes) * 60e3);
        const to = live.samples.at(-1)?.t ?? Date.now();
        for (const one of plots) one.update(live.samples, to - Number(minutes) * 60e3, to);
        const last = live.samples.at(-1) ?? {};
        tellOpen();
        renew(
            busiest,
            ranked(
                'Busiest tables',
                'tables',
                last.tables,
                one => `reads ${short(one.r ?? 0)}, writes ${short(one.w ?? 0)} a second`,
            ),
            ranked('Busiest functions', 'functions', last.functions, one =>
                [
                    [one.calls, 'calls a second'],
                    [one.running, 'running'],
                    [one.errors, 'errors'],
                ]
                    .map(([n, words]) => `${short(n ?? 0)} ${words}`)
                    .join(', '),
            ),
            ranked(
                'Busiest jobs',
                'jobs',
                last.jobs,
                one => `${short(one.done)} done, ${short(one.failed)} failed a second`,
            ),
            ranked(
                'Triggers that lag',
                'triggers',
                last.triggers,
                one => duration(one.lagMs),
                (id, one) => `${one.table} → ${one.function}`,
            ),
        );
    }
    page.onSample(draw);
    draw();
    return {
        update(route) {
            minutes = route.query.minutes ?? '5';
            range.value = minutes;
            draw();
        },
    };
}
