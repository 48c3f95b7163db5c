// Triggers: what changes of tables, logs and queues of work start, how far each has come, and mending.

import {request, server} from '../api.js';
import {functionOf, isRemote, lacksFunctions, mappings, paceMs, tableOf} from '../calls.js';
import {h, replace} from '../dom.js';
import {duration, short} from '../format.js';
import {print} from '../json.js';
import {
    actionButton,
    changeButton,
    check,
    empty,
    faultPlace,
    grid,
    oneAtATime,
    split,
    state,
    teach,
} from '../parts.js';
import {lagOf, positions} from '../positions.js';
import {go, href} from '../route.js';
import {triggerMap} from '../triggermap.js';
import {driveDetail, mappingDetail} from './trigger_detail.js';
import {addDialog} from './trigger_form.js';

const PICTURED = 40; // in the map
const LOOKED_AT = 10; // whose lag is found out all the time; of others when they are chosen

const NOTHING = empty(
    'No triggers yet',
    'A trigger calls a function with the changes of a table, in order for each item, exactly as often as is needed.',
    ['quipu table create orders id:S', 'quipu function add bill --dir bill', 'quipu trigger add orders bill'],
);

// ---- one row for whatever starts something ----

export function mappingState(one) {
    if (one.State === 'Disabled') return ['waiting', 'paused'];
    if (one.State !== 'Enabled') return ['waiting', one.State.toLowerCase()];
    return one.LastProcessingResult?.startsWith('PROBLEM') ? ['failed', 'has a problem'] : ['ok', 'on'];
}

function mappingRow(one) {
    const filters = one.FilterCriteria?.Filters ?? [];
    const target = functionOf(one.FunctionArn);
    return {
        key: one.UUID,
        mapping: one,
        source: tableOf(one.EventSourceArn),
        sourceHref: href(['tables', tableOf(one.EventSourceArn)]),
        target,
        targetHref: href(['functions', target.split(':')[0]]),
        filter: filters.length > 1 ? `${filters.length} filters` : (filters[0]?.Pattern ?? ''),
        state: mappingState(one),
        result: one.LastProcessingResult ?? '',
    };
}

const wordsOf = target => (typeof target === 'string' ? target : print(target, 0));
function driveRow(one) {
    const target = wordsOf(one.each ?? one.function ?? '');
    const isFunction = /^[\w-]+(:[\w$-]+)?$/.test(target);
    const sections = {work: 'work', log: 'logs', job: 'jobs'};
    return {
        key: one.id,
        drive: one,
        source: `${one.kind} ${one.name}`,
        sourceHref: sections[one.kind] ? href([sections[one.kind], one.name]) : null,
        target,
        targetHref: isFunction ? href(['functions', target.split(':')[0]]) : null,
        filter: one.part ? `consumer ${one.part}` : '',
        state: one.paused ? ['waiting', 'paused'] : ['ok', 'on'],
        result: '',
        lag: null,
        rate: 0,
    };
}

const order = (a, b, member) => (a[member] < b[member] ? -1 : a[member] > b[member] ? 1 : 0);

// ---- the view ----

export function open(page) {
    if (lacksFunctions(page, 'Triggers')) return {update() {}};
    const faults = faultPlace();
    const map = triggerMap();
    const known = new Map(); // of a mapping's id: {positions, lag, rate, moves, t}
    let route = page.route,
        wantsAll = false, // lags, also on a service
        rows = [],
        pages = 1,
        detail = null,
        showsOwn = route.query.own === '1';
    const list = grid({
        label: 'Triggers',
        key: row => row.key,
        href: row => href(['triggers', row.key], showsOwn ? {own: 1} : {}),
        selected: route.path[1] ?? null,
        empty: NOTHING,
        columns: [
            {title: 'Source', cell: row => row.source, sort: row => row.source},
            {title: 'Calls', cell: row => row.target, sort: row => row.target},
            {title: 'State', cell: row => state(...row.state), sort: row => row.state[1]},
            {
                title: 'Lag',
                right: true,
                cell: row => (row.lag === null || row.lag === undefined ? '' : row.lag ? duration(row.lag) : '0 s'),
                sort: row => row.lag ?? -1,
            },
            {title: 'Batches/s', right: true, cell: row => (row.mapping ? short(row.rate) : '')},
            {title: 'Last result', cell: row => row.result},
        ],
    });
    const more = actionButton('More triggers', () => {
        pages++;
        return refresh();
    });
    more.hidden = true;
    const own = check('The server’s own', showsOwn, {
        onchange: () => go(route.path, own.box.checked ? {own: 1} : {}),
    });
    const place = h('div.function');
    const hint = h('div.triggers-hint');
    const picture = h(
        'div.scroll.triggers-picture',
        {tabindex: '0', role: 'region', 'aria-label': 'Map of triggers', hidden: true},
        map.element,
    );
    const panes = split(list.element, place);
    panes.classList.add('coming'); // the map comes above the list when it is known
    replace(
        page.el,
        h('h1', 'Triggers'),
        h(
            'div.bar',
            changeButton('Add a trigger …', add),
            isRemote() ? actionButton('Refresh', () => refresh(true)) : null,
            own,
        ),
        faults.element,
        picture,
        panes,
        more,
        hint,
    );
    replace(
        hint,
        teach({
            CLI: 'quipu trigger ls',
            AWS: `aws --endpoint-url ${location.origin} lambda list-event-source-mappings`,
            curl: `curl -s ${location.origin}/2015-03-31/event-source-mappings/`,
        }),
    );

    async function add() {
        const made = await addDialog();
        if (!made) return;
        rows.push(mappingRow(made));
        go(['triggers', made.UUID]); // at once: later one may have gone elsewhere
        await refresh();
    }
    // Lag and rate of one; rate: batches a second since it was last looked at.
    async function look(row) {
        const found = await positions(row.key);
        const moves = found.reduce((sum, one) => sum + one.moves, 0),
            t = Date.now(),
            before = known.get(row.key);
        const rate =
            before && moves >= before.moves ? ((moves - before.moves) * 1000) / Math.max(1, t - before.t) : 0;
        known.set(row.key, {positions: found, lag: await lagOf(row.mapping, found), rate, moves, t});
    }
    const readRows = oneAtATime(() =>
        faults.run(async () => {
            const [made, driven] = await Promise.all([mappings(pages), request('GET', '/v1/drives')]);
            more.hidden = !made.hasMore;
            const isOwn = row => row.source.startsWith(server.info.prefix);
            rows = [
                ...made.found.map(mappingRow).filter(row => showsOwn || !isOwn(row)),
                ...driven.drives.map(driveRow),
            ];
            rows.sort((a, b) => order(a, b, 'source') || order(a, b, 'target') || order(a, b, 'key'));
            paint();
            panes.classList.remove('coming');
        }),
    );
    const readLags = oneAtATime(async () => {
        const seen = rows.filter(row => row.mapping);
        const chosen = seen.filter(row => row.key === route.path[1]);
        // on a service each look costs a handful of requests
        const looked = isRemote() && !wantsAll ? chosen : [...new Set([...chosen, ...seen.slice(0, LOOKED_AT)])];
        wantsAll = false;
        try {
            for (const row of looked) {
                if (page.signal.aborted) return;
                await look(row);
            }
        } catch (error) {
            faults.show(error);
        }
        paint();
    });
    // Done when their states are shown; how far they are, which takes longer, follows.
    async function refresh(all = false) {
        wantsAll ||= all;
        await readRows();
        readLags();
    }
    function paint() {
        for (const row of rows) if (row.mapping) Object.assign(row, {lag: null, rate: 0}, pick(known.get(row.key)));
        list.update(rows);
        picture.hidden = !rows.length;
        const pictured = rows
            .slice(0, PICTURED)
            .map(({mapping, drive, positions: ignored, state: [kind, words], ...row}) => ({...row, kind, words}));
        map.update(pictured, route.path[1]);
        showDetail();
    }
    const pick = seen =>
        seen ? {lag: seen.lag, rate: Math.round(seen.rate * 10) / 10, positions: seen.positions} : {};

    function showDetail() {
        const key = route.path[1];
        panes.classList.toggle('triggers-alone', !key);
        hint.hidden = !!key;
        if (detail && detail.key !== key) {
            replace(place);
            detail = null;
        }
        if (!key) return;
        const row = rows.find(one => one.key === key);
        if (!row) {
            if (rows.length) replace(place, h('p.dim', 'There is no such trigger (any more).'));
            detail = null;
            return;
        }
        if (!detail) {
            const make = row.mapping ? mappingDetail : driveDetail;
            detail = {key, ...make({refresh: () => refresh(true), signal: page.signal})};
            replace(place, detail.element);
        }
        detail.update(row, route.query);
    }
    page.every(paceMs(), async () => {
        await readRows();
        await readLags();
    });
    return {
        update(to) {
            route = to;
            showsOwn = to.query.own === '1';
            own.box.checked = showsOwn;
            list.select(to.path[1] ?? null);
            paint();
            refresh();
        },
    };
}
