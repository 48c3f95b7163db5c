// Functions: the list, and one of them with its tabs.

import {at, request} from '../api.js';
import {functions, kindOf, lacksFunctions, meters, paceMs} from '../calls.js';
import {h, replace, text} from '../dom.js';
import {count, duration, short} from '../format.js';
import {live, onSample} from '../live.js';
import {
    actionButton,
    changeButton,
    confirmTyped,
    empty,
    errorLine,
    faultPlace,
    grid,
    oneAtATime,
    shell,
    since,
    split,
    tabs,
    teach,
} from '../parts.js';
import {go, href} from '../route.js';
import {addDialog} from './function_add.js';
import {openFailed} from './function_failed.js';
import {openInvoke} from './function_invoke.js';
import {openLogs} from './function_logs.js';
import {openNow} from './function_now.js';
import {openSettings} from './function_settings.js';
import {openVersions} from './function_versions.js';

const TABS = [
    ['now', 'Now', openNow],
    ['invoke', 'Invoke', openInvoke],
    ['logs', 'Logs', openLogs],
    ['failed', 'Failed', openFailed],
    ['settings', 'Settings', openSettings],
    ['versions', 'Versions and URLs', openVersions],
];

const NOTHING = empty(
    'No functions yet',
    'A function is code that runs when a table changes, at certain times, by HTTP, or when it is called.',
    [
        "mkdir hello && echo 'export const handler = async event => ({hello: event});' > hello/index.mjs",
        'quipu function add hello --dir hello',
        'quipu function invoke hello \'{"name": "ann"}\'',
    ],
);

export function open(page) {
    if (lacksFunctions(page, 'Functions')) return {update() {}};
    const faults = faultPlace();
    let found = [],
        pages = 1,
        totals = new Map(),
        chosen = page.route.path[1] ?? null,
        detail = null;
    // With what is known of it now: calls and errors a second, and all since the server began.
    const rowOf = one => {
        const now = live.samples.at(-1)?.functions?.[one.FunctionName] ?? {},
            total = totals.get(one.FunctionName) ?? {};
        return {
            name: one.FunctionName,
            runs: kindOf(one),
            rate: now.calls ?? 0,
            errorRate: now.errors ?? 0,
            running: now.running ?? total.running ?? 0,
            calls: total.calls ?? 0,
            errors: total.failed ?? 0,
            meanMs: total.calls ? (total.seconds / total.calls) * 1000 : null,
            memory: one.Runtime ? one.MemorySize : null,
            timeout: one.Timeout,
            changed: one.LastModified,
        };
    };
    const number = (title, member, words = count) => ({
        title,
        right: true,
        cell: row => (row[member] === null ? '' : words(row[member])),
        sort: row => row[member] ?? -1,
    });
    const all = [
        {title: 'Name', cell: row => row.name, sort: row => row.name},
        {title: 'Runs', cell: row => row.runs, sort: row => row.runs},
        number('Calls/s', 'rate', short),
        number('Errors/s', 'errorRate', short),
        number('Running', 'running'),
        number('Calls', 'calls'),
        number('Errors', 'errors'),
        number('Mean duration', 'meanMs', duration),
        number('Memory', 'memory', value => `${value} MB`),
        number('Time-out', 'timeout', value => `${value} s`),
        {title: 'Changed', cell: row => since(row.changed), sort: row => row.changed},
    ];
    const makeList = columns =>
        grid({
            label: 'Functions',
            key: row => row.name,
            href: row => href(['functions', row.name]),
            columns,
            selected: chosen,
            empty: NOTHING,
        });
    let list = null;
    const more = actionButton('More functions', () => {
        pages++;
        return refresh();
    });
    more.hidden = true;

    const refresh = oneAtATime(() =>
        faults.run(async () => {
            const answer = await functions(pages);
            found = answer.found;
            more.hidden = !answer.hasMore;
            totals = await meters().catch(() => totals);
            list.update(found.map(rowOf));
        }),
    );

    async function add() {
        const name = await addDialog();
        if (!name) return;
        go(['functions', name]); // at once: later one may have gone elsewhere
        await refresh();
    }
    // Without a chosen one the list has all columns; beside one it is narrow.
    function layOut(route) {
        const name = route.path[1] ?? null;
        if (!list || (chosen === null) !== (name === null)) {
            chosen = name;
            list = makeList(name === null ? all : all.slice(0, 3));
            list.update(found.map(rowOf));
            const place = h('div.function');
            detail = name === null ? null : {place, name: null};
            const listing = [faults.element, list.element, more];
            replace(
                page.el,
                h('h1', 'Functions'),
                h('div.bar', changeButton('Add a function …', add)),
                name === null
                    ? [
                          listing,
                          teach({CLI: 'quipu function ls', curl: `curl -s ${location.origin}/2015-03-31/functions/`}),
                      ]
                    : split(listing, place),
            );
        }
        chosen = name;
        list.select(name);
        if (detail) openOne(detail, route, page);
    }

    page.onSample(() => list.update(found.map(rowOf)));
    layOut(page.route);
    page.every(paceMs(), refresh);
    return {update: layOut};
}

// ---- one function ----

// Fills the place beside the list; called again whenever the URL changes.
async function openOne(detail, route, page) {
    const name = route.path[1];
    const tab = TABS.find(([path]) => path === route.path[2]) ?? TABS[0];
    detail.route = route;
    if (detail.name === name && detail.tab === tab) {
        detail.view?.update?.(route);
        return;
    }
    detail.ending?.abort();
    const ending = (detail.ending = new AbortController());
    page.signal.addEventListener('abort', () => ending.abort(), {signal: ending.signal});
    Object.assign(detail, {name, tab, view: null});
    page.title(name);
    const body = h('div.function-body');
    const state = h('span');
    replace(
        detail.place,
        h('div.bar', h('h2.grow', name, ' ', state), removal(name)),
        tabs(
            TABS.map(one => [one[1], href(['functions', name, one[0]]), one === tab]),
            `Parts of ${name}`,
        ),
        body,
    );
    try {
        const {Configuration: configuration} = await request('GET', at`/2015-03-31/functions/${name}`, {
            signal: ending.signal,
        });
        text(state, configuration.State === 'Active' ? '' : configuration.State);
        if (ending.signal.aborted) return;
        detail.view = await tab[2]({
            el: body,
            name,
            route,
            configuration,
            signal: ending.signal,
            onSample: take => onSample(take, ending.signal),
        });
        if (detail.route !== route) detail.view?.update?.(detail.route); // it went on meanwhile
    } catch (error) {
        if (!ending.signal.aborted) replace(body, errorLine(error));
    }
}

function removal(name) {
    return changeButton(
        'Delete …',
        async () => {
            const done = await confirmTyped({
                title: `Delete the function ${name}?`,
                name,
                sentence:
                    'Its versions, aliases and URLs go with it. What starts it stays, and finds no function then.',
                words: 'Delete',
                job: () => request('DELETE', at`/2015-03-31/functions/${name}`),
            });
            if (done) go(['functions']);
        },
        {class: 'danger', title: shell('quipu', 'function', 'rm', name)},
    );
}
