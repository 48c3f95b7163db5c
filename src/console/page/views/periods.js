import {LISTED_MOST, at, listed, pages, request} from '../api.js';
import {h, renew, svg, text} from '../dom.js';
import {count, plural, utc, when} from '../format.js';
import {print} from '../json.js';
import {operate, operationDialog, settingsDialog} from '../operation.js';
import {changeButton, empty, grid, shell, since, state, time} from '../parts.js';
import {liveFacts, patternView} from '../pattern.js';
import {href} from '../route.js';

const KINDS = {OPEN: 'waiting', CLOSING: 'running', DONE: 'ok'};
const SHOWN = 100;
const COUNTED = 3; // open buckets, the last ones, whose events are counted: the others' numbers are told

const eventsOf = one => Number(one.count ?? 0);
const countWords = one => `${count(one.count)}${one.hasMore ? '+' : ''}`;

// Buckets on a line of time, each from its begin to its end, as high as they have events.
function picture(name, buckets, chosen) {
    const most = Math.max(1, ...buckets.map(eventsOf));
    const begin = one => Date.parse(one.bucket),
        end = one => Math.max(Date.parse(one.end ?? one.bucket), begin(one) + 1);
    const from = Math.min(...buckets.map(begin)),
        whole = Math.max(...buckets.map(end)) - from;
    const place = t => ((t - from) / whole) * 100;
    const bar = one => {
        const high = Math.max(1, (eventsOf(one) / most) * 28);
        return svg(
            'a',
            {href: href(['periods', name, one.bucket]), 'aria-label': words(one)},
            svg(
                `rect.${KINDS[one.state] ?? 'waiting'}${one.bucket === chosen ? '.chosen' : ''}`,
                {
                    x: place(begin(one)),
                    y: 30 - high,
                    width: Math.max(0.3, (place(end(one)) - place(begin(one))) * 0.85),
                    height: high,
                },
                svg('title', {}, words(one)),
            ),
        );
    };
    const events = one =>
        one.count === undefined ? '' : `${countWords(one)} ${eventsOf(one) === 1 ? 'event' : 'events'}, `;
    const words = one => `${when(one.bucket)}: ${events(one)}${one.state}`;
    return [
        svg(
            'svg.period-line',
            {viewBox: '0 0 100 30', preserveAspectRatio: 'none', role: 'group', 'aria-label': 'Buckets by time'},
            buckets.map(bar),
        ),
        h('div.timeline-ends.dim', h('span', when(from)), h('span', when(from + whole))),
    ];
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
        let bucket = route.path[2] ?? null,
            period = {},
            handed = [], // the last buckets that were handed over
            from, // the page that they end in
            wasOpen = new Set();
        // How many events an open bucket has is known when it is handed over; until then by what is in it.
        async function countOpen(rows) {
            await Promise.all(
                rows.slice(-COUNTED).map(async row => {
                    const path = at`/v1/periods/${name}/${row.bucket}`;
                    const one = await request('GET', path, {signal: page.signal});
                    row.state = one.state; // its time may be over
                    row.count = one.count ?? one.events.length;
                    row.hasMore = !!one.more;
                }),
            );
        }
        // They come the oldest first, and older ones change no more: only the last page is asked for again.
        async function lastDone(isOpen) {
            const older = handed.filter(one => from !== undefined && one.bucket <= from);
            const found = [];
            const turn = after => {
                from = after ?? from;
                const query = new URLSearchParams({
                    state: 'done',
                    limit: LISTED_MOST,
                    ...(from === undefined ? {} : {after: from}),
                });
                return request('GET', `${at`/v1/periods/${name}/buckets`}?${query}`, {signal: page.signal});
            };
            if ([...wasOpen].some(one => from !== undefined && one <= from && !isOpen.has(one))) {
                older.length = 0; // an old one was handed over late
                from = undefined;
            }
            wasOpen = isOpen;
            for await (const one of pages(turn, each => each.next)) found.push(...one.buckets);
            handed = [...older, ...found].slice(-SHOWN);
            return handed;
        }
        const buckets = grid({
            label: 'Buckets',
            key: row => row.bucket,
            href: row => href(['periods', name, row.bucket]),
            selected: bucket,
            empty: empty('No buckets', 'What is added goes into the bucket of its time.', [
                shell('quipu', 'period', 'add', name, '{"page":"/"}'),
            ]),
            columns: [
                {title: 'Begins', cell: row => time(row.bucket), sort: row => row.bucket},
                {
                    title: 'State',
                    cell: row => state(KINDS[row.state] ?? 'waiting', row.state),
                    sort: row => row.state,
                },
                {
                    title: 'Events',
                    cell: countWords,
                    sort: eventsOf,
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
                `${when(one.bucket)} to ${when(one.end)} · ${one.state} · ` +
                    (one.more ? 'more than ' : '') +
                    plural(one.count ?? one.events?.length ?? 0, 'event'),
            );
            heading.title = utc(one.bucket);
            events.update((one.events ?? []).slice(0, 1000));
        }
        const self = {
            element: h('div.stack', facts.element, line, buckets.element, chosen),
            async refresh() {
                period = await request('GET', at`/v1/periods/${name}`, {signal: page.signal});
                facts.set([
                    ['Every', period.every],
                    ['Grace', period.grace],
                    ['Kept', period.keep],
                    ['Shards', String(period.shards)],
                    ['Then', typeof period.then === 'object' ? print(period.then, 0) : period.then],
                    ['Present bucket', time(period.bucket)],
                    ['It ends', since(period.end)],
                ]);
                const path = `${at`/v1/periods/${name}/buckets`}?state=open`;
                const open = await listed(path, 'buckets', {signal: page.signal});
                await countOpen(open.rows);
                const done = await lastDone(new Set(open.rows.map(one => one.bucket)));
                const rows = [...new Map([...done, ...open.rows].map(one => [one.bucket, one])).values()]
                    .sort((a, b) => (a.bucket < b.bucket ? -1 : 1))
                    .slice(-SHOWN);
                renew(line, rows.length ? picture(name, rows, bucket) : null);
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
                    await settingsDialog('periodPut', {name}, period, {title: `Settings of ${name}`});
                    await self.refresh();
                }),
            ],
        };
        return self;
    },
});
