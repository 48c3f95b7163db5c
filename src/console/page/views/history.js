// What the items of a table were: the versions of one on a line of time, compared and restored; and the changes of the
// whole table.

import {at, request} from '../api.js';
import {diffView} from '../diff.js';
import {h, replace, text} from '../dom.js';
import {count, moment, plural} from '../format.js';
import {parse, print} from '../json.js';
import {
    actionButton,
    button,
    changeButton,
    confirmTyped,
    empty,
    faultPlace,
    field,
    grid,
    input,
    json,
    shell,
    state,
    teach,
    time,
} from '../parts.js';
import {go, href} from '../route.js';
import {keysOf} from '../table.js';
import {timeline} from '../timeline.js';

const PAGE = 100;
const VERSIONS = 1000; // of an item, asked for without a click
const LOOKED_THROUGH = 20; // pages, before a filter that finds little asks whether to go on
const MATCHED_BYTES = 300e3; // of changes that the server's matcher is given at a time
const KINDS = {
    INSERT: ['ok', 'insert'],
    MODIFY: ['running', 'modify'],
    REMOVE: ['failed', 'remove'],
    BASELINE: ['waiting', 'baseline'],
};
// ?name=value&...: spaces as %20, which every reader of a path takes for one.
const searchOf = members =>
    '?' +
    Object.entries(members)
        .filter(([, value]) => value !== undefined && value !== '')
        .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
        .join('&');
// Those that have the words in them, or match an event pattern: by the server's own matcher.
async function fitting(rows, filter, signal) {
    if (!filter) return rows;
    if (!filter.trimStart().startsWith('{'))
        return rows.filter(row => print(row, 0).toLowerCase().includes(filter.toLowerCase()));
    const pattern = parse(filter),
        found = [];
    for (let from = 0; from < rows.length; ) {
        let bytes = 0,
            end = from;
        while (end < rows.length && (end === from || bytes < MATCHED_BYTES)) bytes += print(rows[end++], 0).length;
        const some = rows.slice(from, end);
        const {matches} = await request('POST', '/console/match', {body: {pattern, events: some}, signal});
        found.push(...some.filter((_, i) => matches[i]));
        from = end;
    }
    return found;
}
const kindOf = event => state(...(KINDS[event] ?? ['waiting', String(event).toLowerCase()]));

export async function history({el, route, table, signal, reopen}) {
    const {name} = table;
    const path = ['tables', name, 'history'];
    const keys = keysOf(table.description);
    let query = route.query;

    // By the list: of a table without one a request of its own would be an error in the browser's console.
    const {histories} = await request('GET', '/v1/history?limit=1000', {signal});
    const kept = histories.find(one => one.table === name);
    if (!kept) return withoutHistory({el, name, reopen});

    // ---- the settings ----

    const settings = h(
        'p.dim',
        'kept since ',
        time(kept.since),
        kept.keep ? ` · each version for ${kept.keep} after it was replaced` : ' · for ever',
        kept.versions ? ` · the last ${kept.versions} of each item` : '',
        kept.baseline
            ? ` · baseline ${kept.baseline.state.toLowerCase()}, ${plural(kept.baseline.items ?? 0, 'item')}`
            : '',
    );
    const forget = changeButton(
        'Forget…',
        async () => {
            const isDone = await confirmTyped({
                title: 'Forget a history',
                name,
                sentence: 'All versions of all items are removed, and no more are kept. The items themselves stay.',
                words: 'Forget',
                job: () => request('DELETE', at`/v1/history/${name}`),
            });
            if (isDone) reopen();
        },
        {class: 'small danger'},
    );

    const key = input({'aria-label': `Key ${keys[0].name}`, placeholder: keys[0].name});
    const range = keys[1] ? input({'aria-label': `Key ${keys[1].name}`, placeholder: keys[1].name}) : null;
    const show = h('form.bar', {
        onsubmit: event => {
            event.preventDefault();
            go(path, {key: key.value, range: range?.value});
        },
    });
    show.append(
        h('span.dim', 'Item'),
        key,
        ...(range ? [range] : []),
        h('button', {type: 'submit'}, 'Show'),
        h('a', {href: href(path)}, 'The whole table'),
    );
    const place = h('div.history-place');
    const lesson = h('div.history-lesson');
    replace(el, h('div.bar', settings, forget), show, place, lesson);

    let open = null; // what `place` shows: {id, update}
    function update(next) {
        query = next.query;
        if (document.activeElement !== key) key.value = query.key ?? '';
        if (range && document.activeElement !== range) range.value = query.range ?? '';
        const id = query.key ? `${query.key}\u0000${query.range ?? ''}` : '';
        if (open?.id !== id) {
            open = {id, update: () => {}};
            const mine = open;
            const part = query.key ? ofItem() : ofTable();
            part.then(
                made => Object.assign(mine, {update: made}),
                error => {
                    if (signal.aborted || open !== mine) return;
                    const faults = faultPlace();
                    faults.show(error);
                    replace(place, faults.element);
                },
            );
        } else open.update();
    }

    // ---- one item ----

    async function ofItem() {
        const [hash, sort] = [query.key, query.range];
        const route = at`/v1/history/${name}/${hash}`;
        const faults = faultPlace();
        const line = timeline({
            label: 'Versions',
            onmove: (from, to) =>
                go(path, {...query, from: versions[from].version, to: versions[to].version}, {quietly: true}),
        });
        const comparison = h('div.history-diff');
        const status = h('span.dim', {role: 'status'});
        const more = actionButton('More', () => faults.run(() => load(PAGE)), {hidden: true});
        const list = grid({
            label: 'Versions',
            key: one => one.version,
            columns: [
                {title: 'Time', cell: one => time(one.time)},
                {title: 'Change', cell: one => kindOf(one.event)},
                {
                    title: 'Compare',
                    cell: one => [
                        button('from', () => go(path, {...query, from: one.version}, {quietly: true}), {
                            class: 'small',
                            'aria-label': `Compare from ${one.version}`,
                        }),
                        ' ',
                        button('to', () => go(path, {...query, to: one.version}, {quietly: true}), {
                            class: 'small',
                            'aria-label': `Compare to ${one.version}`,
                        }),
                    ],
                },
                {title: 'Version', cell: one => h('span.mono.dim', one.version)},
            ],
        });
        let versions = [], // oldest first
            next;
        async function reload() {
            versions = [];
            next = undefined;
            await load(VERSIONS);
        }
        async function load(most) {
            let asked = 0;
            do {
                const search = searchOf({limit: PAGE, range: keys[1] ? sort : undefined, after: next});
                const page = await request('GET', route + search, {signal});
                versions.push(...page.versions);
                next = page.next;
                asked += page.versions.length;
            } while (next && asked < most);
            more.hidden = !next;
            draw();
        }
        const placeOf = (version, otherwise) => {
            const found = versions.findIndex(one => one.version === version);
            return found < 0 ? otherwise : found;
        };
        function draw() {
            line.element.hidden = list.element.hidden = !versions.length;
            if (!versions.length) {
                replace(comparison, h('p.dim', 'No version of this item is kept.'));
                return;
            }
            const to = placeOf(query.to, versions.length - 1),
                from = placeOf(query.from, Math.max(0, to - 1));
            line.update(
                versions.map(one => ({
                    time: moment(one.time).getTime(),
                    words: String(one.event).toLowerCase(),
                    kind: (KINDS[one.event] ?? ['waiting'])[0],
                })),
                from,
                to,
            );
            list.update([...versions].reverse());
            text(status, `${plural(versions.length, 'version')}${next ? ' so far' : ''}`);
            const [a, b] = [versions[from], versions[to]];
            const side = (one, words) =>
                h(
                    'div.history-side',
                    h('h3', `${words}: `, kindOf(one.event), ' ', time(one.time)),
                    h(
                        'p',
                        changeButton(`Restore “${words}”`, () => restore(one)),
                    ),
                    one.item ? json(one.item) : h('p.dim', 'no item'),
                );
            replace(
                comparison,
                diffView(a.item ?? {}, b.item ?? {}, {oldWords: 'from', newWords: 'to'}),
                h('div.history-sides', side(a, 'from'), side(b, 'to')),
            );
        }
        // Only if nobody changed it since these versions were read.
        async function restore(one) {
            await faults.run(async () => {
                const last = versions.at(-1).version;
                const done = await request('POST', `${route}/restore`, {
                    body: {version: one.version, range: keys[1] ? sort : undefined, expect: next ? undefined : last},
                });
                text(status, 'restored');
                // The restore is a version itself: it is there when the stream has been read.
                for (let tries = 0; tries < 20 && versions.at(-1).version === last; tries++) {
                    await new Promise(resolve => setTimeout(resolve, 250));
                    if (signal.aborted) return done;
                    await reload();
                }
                query = {...query, from: '', to: ''};
                go(path, query, {quietly: true});
                draw();
                text(status, `restored; ${plural(versions.length, 'version')}`);
                return done;
            });
        }
        replace(
            place,
            h('h2', [hash, sort].filter(one => one !== undefined).join(' · ')),
            line.element,
            faults.element,
            comparison,
            h(
                'div.bar',
                h('h3', 'All versions'),
                status,
                actionButton('Refresh', () => faults.run(reload), {class: 'small'}),
            ),
            list.element,
            more,
        );
        replace(
            lesson,
            teach({
                CLI: shell('quipu', 'history', 'get', name, hash, ...(keys[1] && sort ? ['--range', sort] : [])),
                curl: shell('curl', '-s', `${location.origin}${route}${keys[1] ? at`?range=${sort}` : ''}`),
            }),
        );
        await reload();
        return draw;
    }

    // ---- the whole table ----

    async function ofTable() {
        const faults = faultPlace();
        const local = value => {
            const date = moment(value);
            return date ? new Date(date - date.getTimezoneOffset() * 60e3).toISOString().slice(0, 19) : '';
        };
        const momentInput = label => input({type: 'datetime-local', step: 1, 'aria-label': label});
        const from = momentInput('Changes from'),
            asOf = momentInput('The table as of');
        const read = field => (field.value ? new Date(field.value).toISOString() : '');
        const status = h('span.dim', {role: 'status'});
        const more = actionButton('More', () => faults.run(load), {hidden: true});
        const wordsOf = one => keys.map(each => String(one.keys[each.name]));
        const list = grid({
            label: 'Changes',
            key: one => `${one.version} ${wordsOf(one).join(' ')}`,
            href: one => {
                const [item, sort] = wordsOf(one);
                return href(path, {key: item, range: sort, to: one.version});
            },
            columns: [
                {title: 'Item', cell: one => wordsOf(one).join(' · ')},
                {title: 'Time', cell: one => time(one.time)},
                {title: 'Change', cell: one => kindOf(one.event)},
                {
                    title: 'What it was then',
                    cell: one => (one.item ? brief(one.item) : h('span.dim', 'gone')),
                },
            ],
            empty: h('p.dim', 'No changes in this time.'),
        });
        const brief = item => print(item, 0).slice(0, 300);
        const filter = input({
            type: 'search',
            'aria-label': 'Filter changes',
            placeholder: 'words, or {"event": ["REMOVE"]}',
            value: query.filter ?? '',
            onchange: () => go(path, {...query, filter: filter.value}),
        });
        let rows = [],
            looked = 0,
            next;
        async function load() {
            const wanted = rows.length + (query.filter ? 1 : 0);
            let pages = 0;
            do {
                const search = searchOf({
                    limit: PAGE,
                    at: query.at,
                    from: query.at ? undefined : query.since || new Date(Date.now() - 24 * 3600e3).toISOString(),
                    after: next,
                });
                const page = await request('GET', at`/v1/history/${name}` + search, {signal});
                rows.push(...(await fitting(page.changes, query.filter, signal)));
                looked += page.changes.length;
                next = page.next;
            } while (next && rows.length < wanted && ++pages < LOOKED_THROUGH);
            more.hidden = !next;
            list.update(rows);
            const found = plural(looked, query.at ? 'item' : 'change');
            text(
                status,
                (query.filter ? `${count(rows.length)} of ${found}` : found) + (next ? ' so far' : ''),
            );
        }
        async function begin() {
            rows = [];
            looked = 0;
            next = undefined;
            filter.value = query.filter ?? '';
            from.value = local(query.since);
            asOf.value = local(query.at);
            list.update([]);
            await load();
        }
        replace(
            place,
            h(
                'div.bar',
                h('span.dim', 'Changes from'),
                from,
                button('Show changes', () => go(path, {since: read(from), filter: query.filter})),
                h('span.dim', 'or the table as of'),
                asOf,
                button('Show the table', () => go(path, {at: read(asOf), filter: query.filter})),
                filter,
                actionButton('Refresh', () => faults.run(begin), {class: 'small'}),
                status,
            ),
            faults.element,
            list.element,
            more,
        );
        replace(
            lesson,
            teach({
                CLI: `quipu history show ${name} --from ${new Date(Date.now() - 3600e3).toISOString().slice(0, 19)}Z`,
                curl: shell('curl', '-s', `${location.origin}${at`/v1/history/${name}`}?from=${kept.since}`),
            }),
        );
        const asked = () => `${query.since} ${query.at} ${query.filter}`;
        let shown = asked();
        await faults.run(begin);
        return () => {
            if (shown === asked()) return;
            shown = asked();
            faults.run(begin);
        };
    }

    update({query});
    return {update};
}

function withoutHistory({el, name, reopen}) {
    const faults = faultPlace();
    const keep = input({placeholder: '30d'});
    const versions = input({type: 'number', min: 1, placeholder: 'all'});
    const make = changeButton(
        'Keep every change',
        () =>
            faults.run(async () => {
                await request('PUT', at`/v1/history/${name}`, {
                    body: {
                        keep: keep.value.trim() || undefined,
                        versions: versions.value ? Number(versions.value) : undefined,
                    },
                });
                reopen();
            }),
        {class: 'primary'},
    );
    replace(
        el,
        empty(
            'No history',
            'A history keeps every change of the table from now on: what each item was, and a way back.',
            [`quipu history put ${name} --keep 30d`, `quipu history get ${name} KEY`],
        ),
        h(
            'div.history-new',
            field('Keep versions for', keep, 'after they were replaced: 12h, 30d; empty: for ever'),
            field('Versions of each item', versions, 'the last so many; empty: all'),
            make,
        ),
        faults.element,
    );
    return {update() {}};
}
