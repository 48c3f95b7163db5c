import {at, request} from '../api.js';
import {h, renew, svg, text} from '../dom.js';
import {count, plural} from '../format.js';
import {print} from '../json.js';
import {operate, operationDialog, settingsDialog} from '../operation.js';
import {button, changeButton, confirmTyped, empty, grid, shell, since, state, time} from '../parts.js';
import {liveFacts, patternView} from '../pattern.js';
import {href} from '../route.js';

const DRAWN = 64; // partitions in the picture; more are told in words
const ROW = 26,
    WIDE = 150,
    HIGH = 18;

const curve = (x1, y1, x2, y2) => `M${x1} ${y1} C${x1 + 15} ${y1} ${x2 - 15} ${y2} ${x2} ${y2}`;

// Partitions as a tree that grows to the right at each split and merge; on each bar the groups' positions as ticks.
function picture(name, nodes, lags) {
    const byName = new Map(nodes.map(one => [one.partition, one]));
    const parents = new Map();
    for (const one of nodes)
        for (const child of one.children ?? []) parents.set(child, [...(parents.get(child) ?? []), one.partition]);
    const depths = new Map();
    const depth = id => {
        if (!depths.has(id))
            depths.set(id, Math.max(-1, ...(parents.get(id) ?? []).filter(one => byName.has(one)).map(depth)) + 1);
        return depths.get(id);
    };
    const rows = new Map();
    let next = 0;
    const row = id => {
        // a child stands where its first parent is free, so lines stay straight
        if (rows.has(id)) return rows.get(id);
        const above = (parents.get(id) ?? []).filter(one => byName.has(one));
        const first = above.length && byName.get(above[0]).children[0] === id ? row(above[0]) : next++;
        rows.set(id, first);
        return first;
    };
    for (const one of nodes) row(one.partition);
    const x = id => depth(id) * (WIDE + 30),
        y = id => row(id) * ROW;
    const width = Math.max(...nodes.map(one => x(one.partition))) + WIDE,
        height = next * ROW;
    return svg(
        'svg.log-tree',
        {viewBox: `0 0 ${width} ${height}`, width, height, role: 'group', 'aria-label': `${nodes.length} partitions`},
        nodes.flatMap(one =>
            (one.children ?? [])
                .filter(child => byName.has(child))
                .map(child =>
                    svg('path.log-edge', {
                        d: curve(x(one.partition) + WIDE, y(one.partition) + HIGH / 2, x(child), y(child) + HIGH / 2),
                    }),
                ),
        ),
        nodes.map(one => {
            const taken = []; // places of ticks on this bar
            return svg(
                'a',
                {
                    href: href(['logs', name, one.partition]),
                    transform: `translate(${x(one.partition)} ${y(one.partition)})`,
                },
                svg(`rect.log-bar.${one.state === 'SEALED' ? 'sealed' : 'open'}`, {width: WIDE, height: HIGH, rx: 2}),
                svg('text', {x: 6, y: 13}, `${one.partition} · ${count(one.sequence)}`),
                lags.map(({group, partitions}) => {
                    const lag = partitions.find(each => each.partition === one.partition);
                    const share = !lag ? 1 : one.sequence ? Number(lag.position) / Number(one.sequence) : 1;
                    const place = Math.min(WIDE - 1, share * WIDE);
                    const above = taken.filter(each => Math.abs(each - place) < 3).length; // equal ones side by side
                    taken.push(place);
                    const words = `${group}: ${lag ? `${count(lag.lag)} behind` : 'read to the end'}`;
                    return svg(
                        'g',
                        {},
                        svg(
                            `path.log-tick.${lag ? 'waiting' : 'ok'}`,
                            {d: `M${Math.max(1, place - above * 4)} 0 v${HIGH}`},
                            svg('title', {}, words),
                        ),
                    );
                }),
                svg(
                    'text.log-names',
                    {x: WIDE - 4, y: 13, 'text-anchor': 'end'},
                    lags
                        .filter(({partitions}) => partitions.some(each => each.partition === one.partition))
                        .map(({group}) => group)
                        .slice(0, 3)
                        .join(', ')
                        .slice(0, 14),
                ),
            );
        }),
    );
}

export const open = patternView({
    section: 'logs',
    title: 'Logs',
    sentence:
        'A log numbers events in partitions; groups of consumers read them in order, each event once for a group.',
    first: [`quipu log append orders ann '{"total":12}'`, 'quipu log read orders bill', 'quipu log lag orders bill'],
    list: {
        path: '/v1/logs',
        member: 'logs',
        key: row => row.log,
        columns: [
            {title: 'Name', cell: row => row.log, sort: row => row.log},
            {title: 'Made', cell: row => since(row.created), sort: row => row.created ?? ''},
        ],
    },
    make: {id: 'logPut', words: 'Make a log', open: made => made.values.log},
    remove: {
        words: 'Delete',
        path: name => at`/v1/logs/${name}`,
        sentence: 'The log with all its events, groups and positions.',
    },
    teach: (name, route) =>
        name === null
            ? ['logList', {}]
            : route.query.group
              ? ['logLag', {log: name, name: route.query.group}]
              : route.path[2]
                ? ['logEvents', {log: name, partition: route.path[2]}]
                : ['logShow', {log: name}],
    detail(page, name, route) {
        const facts = liveFacts(),
            tree = h('div.log-picture', {tabindex: '0', role: 'region', 'aria-label': 'Partitions'});
        let partition = route.path[2] ?? null,
            group = route.query.group ?? null,
            settings = {};
        const rest = h('p.dim');
        const sealed = new Map(); // partitions that change no more
        const after = job => async () => {
            await self.faults.run(async () => {
                await job();
                await self.refresh();
            });
        };
        const partitions = grid({
            label: 'Open partitions',
            steady: false,
            key: row => row.partition,
            href: row => href(['logs', name, row.partition]),
            selected: partition,
            columns: [
                {title: 'Partition', cell: row => row.partition, sort: row => Number(row.partition)},
                {title: 'Head', cell: row => count(row.sequence), sort: row => Number(row.sequence), right: true},
                {title: 'From', cell: row => row.from},
                {title: 'To', cell: row => row.to},
                {
                    title: '',
                    once: true,
                    cell: row => [
                        changeButton(
                            'Split',
                            after(() => operate('logSplit', {log: name, partition: row.partition})),
                            {class: 'small', 'aria-label': `Split ${row.partition}`},
                        ),
                        ' ',
                        changeButton(
                            'Merge',
                            async () => {
                                await operationDialog(
                                    'logMerge',
                                    {log: name},
                                    {
                                        title: `Merge ${row.partition}`,
                                        words: 'Merge',
                                        preset: {partitions: [row.partition, '']},
                                    },
                                );
                                await self.refresh();
                            },
                            {class: 'small', 'aria-label': `Merge ${row.partition}`},
                        ),
                    ],
                },
            ],
        });
        const groups = grid({
            label: 'Groups of consumers',
            empty: empty('No groups of consumers', 'A group begins with the first consumer that reads.', [
                shell('quipu', 'log', 'read', name, 'bill'),
            ]),
            steady: false,
            key: row => row.group,
            href: row => href(['logs', name], {group: row.group}),
            columns: [
                {title: 'Group', cell: row => row.group, sort: row => row.group},
                {
                    title: 'Behind',
                    cell: row => (Number(row.lag) ? state('waiting', count(row.lag)) : state('ok', '0')),
                    sort: row => Number(row.lag),
                    right: true,
                },
                {
                    title: 'Parked',
                    cell: row =>
                        Number(row.parked)
                            ? [
                                  state('failed', count(row.parked)),
                                  ' ',
                                  changeButton(
                                      'Retry parked',
                                      after(() => operate('logReplay', {log: name, name: row.group, parked: true})),
                                      {class: 'small'},
                                  ),
                              ]
                            : '0',
                    sort: row => Number(row.parked),
                    right: true,
                },
                {
                    title: 'Held now',
                    cell: row =>
                        row.partitions
                            .filter(one => one.owner)
                            .map(one => `${one.partition}: ${one.owner}`)
                            .join(', '),
                    wide: true,
                },
                {
                    title: '',
                    once: true,
                    cell: row => [
                        changeButton(
                            'Replay',
                            async () => {
                                await operationDialog(
                                    'logReplay',
                                    {log: name, name: row.group},
                                    {title: `Read again: ${row.group}`, words: 'Replay'},
                                );
                                await self.refresh();
                            },
                            {class: 'small'},
                        ),
                        ' ',
                        changeButton(
                            'Remove',
                            async () => {
                                await confirmTyped({
                                    title: `Remove ${row.group}`,
                                    name: row.group,
                                    sentence: 'Its positions and parked events.',
                                    words: 'Remove',
                                    job: () => request('DELETE', at`/v1/logs/${name}/consumers/${row.group}`),
                                });
                                await self.refresh();
                            },
                            {class: 'small danger'},
                        ),
                    ],
                },
            ],
        });
        async function nodes(open) {
            const last = Math.max(...open.map(one => Number(one.partition)));
            const all = open.map(one => ({...one, state: 'OPEN'}));
            const known = new Set(open.map(one => one.partition));
            for (let i = 0; i <= last && all.length < DRAWN; i++) {
                const id = String(i);
                if (known.has(id)) continue;
                if (!sealed.has(id))
                    sealed.set(
                        id,
                        await request('GET', `${at`/v1/logs/${name}/partitions/${id}`}?limit=1`, {
                            signal: page.signal,
                        }).catch(() => null),
                    );
                if (sealed.get(id)) all.push(sealed.get(id));
            }
            return all.sort((a, b) => Number(a.partition) - Number(b.partition)).slice(0, DRAWN);
        }
        const eventsTitle = h('h3'),
            parkedTitle = h('h3');
        const events = grid({
            label: 'Events',
            key: row => row.sequence,
            columns: [
                {title: 'Number', cell: row => count(row.sequence), right: true},
                {title: 'Time', cell: row => time(row.time)},
                {title: 'Key', cell: row => row.key ?? ''},
                {title: 'Data', cell: row => print(row.data ?? null, 0), wide: true},
            ],
        });
        const parked = grid({
            label: 'Parked events',
            key: row => `${row.partition} ${row.sequence}`,
            columns: [
                {title: 'Partition', cell: row => row.partition},
                {title: 'Number', cell: row => count(row.sequence), right: true},
                {title: 'Reason', cell: row => row.reason ?? '', wide: true},
                {title: 'Data', cell: row => print(row.data ?? null, 0), wide: true},
            ],
        });
        const chosen = h('div.stack', {hidden: true}, eventsTitle, events.element);
        const parkedPlace = h('div.stack', {hidden: true}, parkedTitle, parked.element);
        async function show() {
            chosen.hidden = partition === null;
            if (partition !== null) {
                const path = at`/v1/logs/${name}/partitions/${partition}`;
                const read = await request('GET', `${path}?limit=100`, {signal: page.signal});
                text(eventsTitle, `Partition ${partition} · ${read.state}`);
                events.update(read.events ?? []);
            }
            parkedPlace.hidden = group === null;
            if (group !== null) {
                const path = at`/v1/logs/${name}/consumers/${group}/parked`;
                const list = await request('GET', `${path}?limit=100`, {signal: page.signal});
                text(parkedTitle, `Parked by ${group}: ${plural(list.parked.length, 'event')}`);
                parked.update(list.parked);
            }
        }
        const self = {
            element: h(
                'div.stack',
                facts.element,
                tree,
                rest,
                h('h3', 'Open partitions'),
                partitions.element,
                h('h3', 'Groups of consumers'),
                groups.element,
                parkedPlace,
                chosen,
            ),
            async refresh() {
                const log = await request('GET', at`/v1/logs/${name}`, {signal: page.signal});
                settings = log;
                facts.set([
                    ['Made', time(log.created)],
                    ['Kept', log.keep ?? 'for ever'],
                    ['Partitions at first', String(log.partitions)],
                    ['Changes of them', String(log.version)],
                ]);
                const lags = await Promise.all(
                    (log.consumers ?? []).slice(0, 50).map(async each => ({
                        group: each,
                        ...(await request('GET', at`/v1/logs/${name}/consumers/${each}/lag`, {
                            signal: page.signal,
                        })),
                    })),
                );
                partitions.update(log.open);
                groups.update(lags);
                const drawn = await nodes(log.open);
                renew(tree, picture(name, drawn, lags));
                const open = drawn.filter(one => one.state !== 'SEALED').length;
                const more = log.open.length - open;
                text(rest, more > 0 ? `${count(more)} more open partitions are in the list below.` : '');
                await show();
            },
            async update(next) {
                partition = next.path[2] ?? null;
                group = next.query.group ?? null;
                partitions.select(partition);
                await self.faults.run(self.refresh);
            },
            actions: [
                changeButton('Append', async () => {
                    await operationDialog(
                        'logAppend',
                        {log: name},
                        {title: `Append to ${name}`, words: 'Append', only: ['key', 'data', 'token']},
                    );
                    await self.refresh();
                }),
                changeButton('Settings', async () => {
                    await settingsDialog('logPut', {log: name}, settings, {title: `Settings of ${name}`});
                    await self.refresh();
                }),
                button('Refresh', () => self.faults.run(self.refresh)),
            ],
        };
        return self;
    },
});
