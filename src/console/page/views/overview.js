// The last minutes in plots, and what is open, stuck or dead.

import {counts} from '../counts.js';
import {h, renew, replace} from '../dom.js';
import {bytes, duration, micros, plural, short} from '../format.js';
import {live} from '../live.js';
import {select, state, teach} from '../parts.js';
import {plot, plotGroup} from '../plot.js';
import {go, href} from '../route.js';

const RANGES = [
    ['5', 'last 5 minutes'],
    ['15', 'last 15 minutes'],
    ['60', 'last hour'],
    ['360', 'last 6 hours'],
    ['1440', 'last 24 hours'],
];
const READS = new Set([
    'GetItem',
    'BatchGetItem',
    'Query',
    'Scan',
    'TransactGetItems',
    'SearchVectors',
    'GetRecords',
]);

const sum = (ops, is) => Object.entries(ops ?? {}).reduce((total, [name, n]) => total + (is(name) ? n : 0), 0);

export function open(page) {
    const group = plotGroup();
    let minutes = page.route.query.minutes ?? '5';
    const plots = [
        plot({
            title: 'Operations a second',
            group,
            series: [
                {name: 'reads', color: '--running'},
                {name: 'writes', color: '--accent'},
            ],
            words: short,
            value: (s, i) => sum(s.ops, name => READS.has(name) === (i === 0)),
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
                {name: 'dead', color: '--failed'},
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
    replace(
        page.el,
        h('h1', 'Overview'),
        h('div.bar', range, open),
        h(
            'div.plots',
            plots.map(one => one.element),
        ),
        busiest,
        teach({CLI: 'quipu top', curl: `curl -s ${location.origin}/metrics`}),
    );

    function ranked(title, section, things, words) {
        const rows = Object.entries(things ?? {}).slice(0, 10);
        return h(
            'section',
            h('h2', title),
            rows.length
                ? h(
                      'ol',
                      rows.map(([name, one]) =>
                          h('li', h('a', {href: href([section, name])}, name), ' ', h('span.dim', words(one))),
                      ),
                  )
                : h('p.dim', 'nothing now'),
        );
    }
    // What is open, and what is wrong, each with the way to it.
    function tellOpen(last) {
        const wrong = [
            [counts.jobs?.wrong, 'failed job', href(['jobs'], {state: 'failed'})],
            [last.dead, 'dead call', href(['queues'])],
        ].filter(([number]) => Number(number) > 0);
        renew(
            open,
            counts.jobs ? [h('a', {href: href(['jobs'])}, plural(counts.jobs.open, 'open job')), ' · '] : null,
            wrong.length
                ? wrong.map(([number, words, target]) => [
                      h('a', {href: target}, state('failed', plural(number, words))),
                      ' ',
                  ])
                : state('ok', 'nothing failed'),
        );
    }
    function draw() {
        const to = live.samples.at(-1)?.t ?? Date.now();
        for (const one of plots) one.update(live.samples, to - Number(minutes) * 60e3, to);
        const last = live.samples.at(-1) ?? {};
        tellOpen(last);
        renew(
            busiest,
            ranked(
                'Busiest tables',
                'tables',
                last.tables,
                one => `${short(one.r ?? 0)} reads, ${short(one.w ?? 0)} writes a second`,
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
