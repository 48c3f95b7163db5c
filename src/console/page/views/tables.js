// The tables: a list with what each one is, and the chosen one with its items, changes, history and settings.
//
// Only the rows that are seen are asked about (DescribeTable, DescribeTimeToLive), a few at a time: a thousand tables
// cost ten calls for their names, and two calls for each row on the screen.

import {dynamo, server} from '../api.js';
import {h, renew, replace, text} from '../dom.js';
import {bytes, count, plural} from '../format.js';
import {
    actionButton,
    check,
    empty,
    exact,
    faultPlace,
    grid,
    input,
    oneAtATime,
    split,
    tabs,
    teach,
} from '../parts.js';
import {go, href, parseRoute} from '../route.js';
import {sdk} from '../sdk.js';
import {billingWords, indexesOf, keysOf, streamWords, tablePages, tableState, ttlWords} from '../table.js';
import {backups} from './backups.js';
import {changes} from './changes.js';
import {history} from './history.js';
import {items} from './items.js';
import {newTable} from './table_new.js';
import {settings} from './table_settings.js';

const NAMES = 1000; // names that are asked for without a click
const AT_ONCE = 4; // descriptions that are asked for at the same time
const MADE_MS = 500; // between two looks at a table that is being made or restored
const HERE_MS = 5e3;
const ELSEWHERE_MS = 60e3; // each call costs money on a service

const TABS = [
    ['items', 'Items', items],
    ['changes', 'Changes', changes],
    ['history', 'History', history],
    ['backups', 'Backups', backups],
    ['settings', 'Settings', settings],
];

export function open(page) {
    const detail = h('div.tables-detail');
    const list = tableList(page);
    const panes = split(list.element, detail);
    replace(page.el, panes);
    let shown = null; // {name, tab, view, ending}: what the right pane holds

    async function show(route) {
        const [, name, tab = TABS[0][0]] = route.path;
        const isNew = !name && 'new' in route.query;
        panes.classList.toggle('tables-chosen', !!name || isNew);
        list.show(route, name);
        page.title(name ?? 'Tables');
        if (shown && shown.name === name && shown.tab === tab && shown.view?.update) {
            shown.view.update(route);
            return;
        }
        shown?.ending.abort();
        shown = null;
        if (!name && !isNew) {
            replace(detail);
            return;
        }
        const ending = new AbortController();
        page.signal.addEventListener('abort', () => ending.abort(), {signal: ending.signal});
        const mine = (shown = {name, tab: isNew ? 'new' : tab, view: null, ending});
        try {
            mine.view = isNew
                ? newTable(detail, () => list.refresh())
                : await oneTable({detail, route, name, tab, signal: ending.signal, refresh: list.refresh, reopen});
        } catch (error) {
            if (ending.signal.aborted) return;
            const faults = faultPlace();
            faults.show(error);
            replace(detail, h('h1', name), faults.element);
        }
    }
    function reopen() {
        shown?.ending.abort();
        shown = null;
        show(parseRoute());
    }
    show(page.route);
    return {update: show};
}

// ---- the chosen table ----

async function oneTable({detail, route, name, tab, signal, refresh, reopen}) {
    const found = TABS.find(([path]) => path === tab);
    if (!found) throw new Error(`A table has no view “${tab}”.`);
    const place = h('div.tables-part');
    const summary = h('p.tables-summary.dim');
    const head = [
        h('div.bar', h('h1', name), h('a.tables-back', {href: href(['tables'])}, 'All tables')),
        summary,
        tabs(TABS.map(([path, words]) => [words, href(['tables', name, path]), path === tab], `Parts of ${name}`)),
    ];
    replace(detail, head, place);
    const table = {name, description: null, ttl: null, describe, signal};
    async function describe() {
        const {Table} = await dynamo('DescribeTable', {TableName: name}, {signal});
        table.description = Table;
        renew(
            summary,
            tableState(Table.TableStatus),
            ` · ${keysOf(Table)
                .map(key => `${key.name} (${key.type})`)
                .join(', ')} · `,
            plural(Table.ItemCount, 'item'),
            ' · ',
            exact(bytes(Table.TableSizeBytes), `${Table.TableSizeBytes} bytes`),
            ` · ${billingWords(Table)} · stream ${streamWords(Table)}`,
        );
        return Table;
    }
    while ((await describe()).TableStatus === 'CREATING') {
        renew(
            place,
            h('p.dim', {role: 'status'}, 'The table is being made. What is in it is shown when it is ready.'),
        );
        await new Promise(done => setTimeout(done, MADE_MS));
    }
    replace(place);
    return (await found[2]({el: place, route, table, signal, refresh, reopen})) ?? {};
}

// ---- the list ----

function tableList(page) {
    const known = new Map(); // name → what its row shows; nothing yet when it is being asked for
    const wanted = new Set(); // rows on the screen
    let names = [],
        most = NAMES,
        isWhole = false,
        chosen = null,
        query = {},
        paint = 0;

    const filter = input({
        type: 'search',
        placeholder: 'Filter names',
        'aria-label': 'Filter tables by name',
        oninput: () => {
            query = {...query, filter: filter.value};
            if (chosen) draw();
            else go(['tables'], query, {quietly: true});
        },
    });
    const own = check('the server’s own', false, {
        onchange: () => {
            query = {...query, own: own.box.checked ? 1 : ''};
            if (chosen) draw();
            else go(['tables'], query, {quietly: true});
        },
    });
    const create = h('a.button.primary', {href: href(['tables'], {new: 1})}, 'New table');
    const refreshButton = actionButton('Refresh', () => refresh(true), {class: 'small'});
    const number = h('span.dim', {role: 'status'});
    const more = actionButton(
        'More',
        () => {
            most = names.length + NAMES;
            return faults.run(load);
        },
        {hidden: true},
    );
    const faults = faultPlace();
    const rows = grid({
        label: 'Tables',
        key: one => one.name,
        href: one => href(['tables', one.name]),
        columns: [
            {title: 'Table', cell: one => one.name, sort: one => one.name},
            {title: 'State', cell: one => (one.status ? tableState(one.status) : '')},
            {title: 'Keys', cell: one => one.keys},
            {title: 'Items', right: true, cell: one => count(one.items), sort: one => one.items ?? -1},
            {
                title: 'Bytes',
                right: true,
                cell: one => (one.status ? exact(bytes(one.bytes), `${one.bytes} bytes`) : ''),
                sort: one => one.bytes ?? -1,
            },
            {title: 'Indexes', right: true, cell: one => count(one.indexes), sort: one => one.indexes ?? -1},
            {title: 'Stream', cell: one => one.stream},
            {title: 'Expiry', cell: one => one.expiry},
            {title: 'Billing', cell: one => one.billing},
        ],
        empty: empty('No tables yet', 'A table holds items, found by their key, alone or in order.', [
            'quipu table create Music Artist:S Song:S',
            "quipu put Music Artist='Nina Simone' Song=Sinnerman Year:=1965",
            "quipu query Music 'Nina Simone'",
        ]),
    });
    const heading = h('h1', 'Tables');
    const element = h(
        'div.tables-list',
        heading,
        h('div.bar', filter, own, number, refreshButton, create),
        faults.element,
        rows.element,
        more,
        h('div.tables-teach', teach(sdk('ListTables', {Limit: 100}, 'quipu table ls'))),
    );

    const sight = new IntersectionObserver(entries => {
        for (const {target, isIntersecting} of entries) {
            if (isIntersecting) wanted.add(target.dataset.key);
            else wanted.delete(target.dataset.key);
        }
        describeSeen(false);
    });
    const watched = new WeakSet();
    page.signal.addEventListener('abort', () => sight.disconnect());

    function matching() {
        const part = (query.filter ?? '').toLowerCase();
        const shows = name => own.box.checked || !server.info.prefix || !name.startsWith(server.info.prefix);
        return names.filter(name => name.toLowerCase().includes(part) && shows(name));
    }
    function draw() {
        const found = matching();
        rows.update(found.map(name => ({name, ...known.get(name)})));
        more.hidden = isWhole;
        text(number, `${count(found.length)}${isWhole ? '' : '+'}`);
        for (const row of rows.element.querySelectorAll('tbody tr')) {
            if (watched.has(row)) continue;
            watched.add(row);
            sight.observe(row);
        }
    }
    const drawSoon = () => {
        paint ||= requestAnimationFrame(() => {
            paint = 0;
            draw();
        });
    };

    // Names in pages of a hundred, up to `most`, from the beginning: what was dropped or made is seen.
    const load = oneAtATime(async () => {
        const fresh = [];
        let goesOn = false;
        for await (const answer of tablePages({signal: page.signal})) {
            fresh.push(...answer.TableNames);
            if (fresh.length > names.length) {
                names = [...fresh];
                draw();
            }
            goesOn = !!answer.LastEvaluatedTableName;
            if (fresh.length >= most) break;
        }
        names = fresh;
        isWhole = !goesOn;
        for (const name of known.keys()) if (isWhole && !names.includes(name)) known.delete(name);
        draw();
    });

    let asking = 0;
    const queue = [];
    function describeSeen(again) {
        if (chosen !== null) return; // the narrow list shows names only
        const listed = new Set(names);
        for (const name of wanted)
            if (listed.has(name) && (again || !known.has(name)) && !queue.includes(name)) {
                if (!known.has(name)) known.set(name, {});
                queue.push(name);
            }
        while (asking < AT_ONCE && queue.length) {
            asking++;
            describe(queue.shift()).finally(() => {
                asking--;
                describeSeen(false);
            });
        }
    }
    async function describe(name) {
        try {
            const {Table} = await dynamo('DescribeTable', {TableName: name}, {signal: page.signal});
            // one that is being made has none yet
            const ttl =
                Table.TableStatus === 'CREATING'
                    ? {}
                    : await dynamo('DescribeTimeToLive', {TableName: name}, {signal: page.signal});
            known.set(name, {
                status: Table.TableStatus,
                keys: keysOf(Table)
                    .map(key => `${key.name} ${key.type}`)
                    .join(', '),
                items: Number(Table.ItemCount),
                bytes: Number(Table.TableSizeBytes),
                indexes: indexesOf(Table).length,
                stream: streamWords(Table),
                expiry: ttlWords(ttl.TimeToLiveDescription),
                billing: billingWords(Table),
            });
        } catch (error) {
            if (error.type === 'ResourceNotFoundException') known.delete(name);
        }
        drawSoon();
    }
    async function refresh(again = true) {
        await faults.run(load);
        describeSeen(again);
    }
    const isRemote = server.info.engine?.kind === 'remote';
    page.every(isRemote ? ELSEWHERE_MS : HERE_MS, () => refresh(!isRemote));

    return {
        element,
        refresh,
        show(route, name) {
            chosen = name ?? ('new' in route.query ? '' : null);
            if (chosen === null) query = route.query;
            if (document.activeElement !== filter) filter.value = query.filter ?? '';
            own.box.checked = !!query.own || !!(name && server.info.prefix && name.startsWith(server.info.prefix));
            heading.hidden = chosen !== null;
            rows.select(name ?? null);
            draw();
            describeSeen(false);
        },
    };
}
