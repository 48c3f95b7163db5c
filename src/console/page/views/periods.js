import {at, request} from '../api.js';
import {h, replace, svg, text} from '../dom.js';
import {count, plural, utc, when} from '../format.js';
import {print} from '../json.js';
import {operate, operationDialog} from '../operation.js';
import {changeButton, grid, since, state, time} from '../parts.js';
import {liveFacts, patternView} from '../pattern.js';
import {go, href} from '../route.js';

const KINDS = {OPEN: 'waiting', CLOSING: 'running', DONE: 'ok'};
const SHOWN = 100;

// Buckets on a time line, as high as they have events.
function picture(name, buckets, chosen) {
    const most = Math.max(1, ...buckets.map(one => Number(one.count ?? 0)));
    const wide = 100 / Math.max(buckets.length, 20);
    return svg(
        'svg.period-line',
        {viewBox: '0 0 100 30', preserveAspectRatio: 'none', role: 'img', 'aria-label': `${buckets.length} buckets`},
        buckets.map((one, i) => {
            const high = Math.max(1, (Number(one.count ?? 0) / most) * 28);
            return svg(
                `rect.${KINDS[one.state] ?? 'waiting'}${one.bucket === chosen ? '.chosen' : ''}`,
                {
                    x: i * wide,
                    y: 30 - high,
                    width: wide * 0.85,
                    height: high,
                    onclick: () => go(['periods', name, one.bucket]),
                },
                svg('title', {}, `${when(one.bucket)}: ${count(one.count ?? 0)} events, ${one.state}`),
            );
        }),
    );
}

export const open = patternView({
    section: 'periods',
    title: 'Periods',
    sentence:
        'A period puts what happens into buckets of a length of time, and hands each over once when it is over.',
    first: [
        'quipu period put digest --every 1h --then send-digest',
        `quipu period add digest '{"page":"/"}'`,
        'quipu period buckets digest',
    ],
    list: {
        path: '/v1/periods',
        member: 'periods',
        prefix: false,
        key: row => row.name,
        columns: [
            {title: 'Name', cell: row => row.name, sort: row => row.name},
            {title: 'Closes', cell: row => since(row.due), sort: row => row.due ?? ''},
        ],
    },
    make: {id: 'periodPut', words: 'Make a period', open: made => made.values.name},
    remove: {
        words: 'Remove',
        path: name => at`/v1/periods/${name}`,
        sentence: 'Nothing is collected any more; its buckets end by their age.',
    },
    teach: (name, route) =>
        name === null
            ? ['periodLs', {}]
            : route.path[2]
              ? ['periodGet', {name, bucket: route.path[2]}]
              : ['periodBuckets', {name}],
    detail(page, name, route) {
        const facts = liveFacts(),
            line = h('div');
        let bucket = route.path[2] ?? null;
        const buckets = grid({
            label: 'Buckets',
            key: row => row.bucket,
            href: row => href(['periods', name, row.bucket]),
            selected: bucket,
            columns: [
                {title: 'Begins', cell: row => when(row.bucket), sort: row => row.bucket},
                {
                    title: 'State',
                    cell: row => state(KINDS[row.state] ?? 'waiting', row.state),
                    sort: row => row.state,
                },
                {
                    title: 'Events',
                    cell: row => count(row.count ?? 0),
                    sort: row => Number(row.count ?? 0),
                    right: true,
                },
                {title: 'Handed over', cell: row => since(row.done), sort: row => row.done ?? ''},
            ],
        });
        const heading = h('h3');
        const events = grid({
            label: 'Events',
            key: row => row.id,
            columns: [
                {title: 'Time', cell: row => time(row.time)},
                {title: 'Event', cell: row => row.id},
                {title: 'Data', cell: row => print(row.data ?? null, 0), wide: true},
            ],
        });
        const chosen = h('div.stack', {hidden: true}, heading, events.element);
        async function show() {
            chosen.hidden = bucket === null;
            if (bucket === null) return;
            const one = await request('GET', at`/v1/periods/${name}/${bucket}`, {signal: page.signal});
            text(
                heading,
                `${when(one.bucket)} to ${when(one.end)} · ${one.state} · ${plural(one.count ?? 0, 'event')}`,
            );
            heading.title = utc(one.bucket);
            events.update((one.events ?? []).slice(0, 1000));
        }
        const self = {
            element: h('div.stack', facts.element, line, buckets.element, chosen),
            async refresh() {
                const period = await request('GET', at`/v1/periods/${name}`, {signal: page.signal});
                facts.set([
                    ['Every', period.every],
                    ['Grace', period.grace],
                    ['Kept', period.keep],
                    ['Shards', String(period.shards)],
                    ['Then', period.then ? print(period.then, 0) : ''],
                    ['Present bucket', time(period.bucket)],
                    ['It ends', since(period.end)],
                ]);
                const all = await Promise.all(
                    ['done', 'open'].map(which =>
                        request('GET', `${at`/v1/periods/${name}/buckets`}?state=${which}&limit=${SHOWN}`, {
                            signal: page.signal,
                        }),
                    ),
                );
                const rows = all
                    .flatMap(each => each.buckets)
                    .sort((a, b) => (a.bucket < b.bucket ? -1 : 1))
                    .slice(-SHOWN);
                replace(line, picture(name, rows, bucket));
                buckets.update([...rows].reverse());
                await show();
            },
            async update(next) {
                bucket = next.path[2] ?? null;
                buckets.select(bucket);
                await self.faults.run(self.refresh);
            },
            actions: [
                changeButton('Add', async () => {
                    await operationDialog('periodAdd', {name}, {title: `Add to ${name}`, words: 'Add'});
                    await self.refresh();
                }),
                changeButton('Close what is over', () =>
                    self.faults.run(async () => {
                        await operate('periodClose', {name});
                        await self.refresh();
                    }),
                ),
                changeButton('Settings', async () => {
                    await operationDialog('periodPut', {name}, {title: `Settings of ${name}`, words: 'Save'});
                    await self.refresh();
                }),
            ],
        };
        return self;
    },
});
