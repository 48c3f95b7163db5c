// What differs between two values, path by path; plain values, as value.js makes them.

import {h} from './dom.js';
import {Exact, print} from './json.js';

const MOST = 500; // lines of a comparison that are shown
const isMap = value =>
    value !== null && typeof value === 'object' && !Array.isArray(value) && !(value instanceof Exact);
const isSet = value => isMap(value) && Array.isArray(value.$set) && Object.keys(value).length === 1;
const isNested = (a, b) => (isMap(a) && isMap(b) && !isSet(a) && !isSet(b)) || (Array.isArray(a) && Array.isArray(b));

const words = value => print(value, 0);
const same = (a, b) =>
    isSet(a) && isSet(b)
        ? String(a.$set.map(words).sort()) === String(b.$set.map(words).sort())
        : words(a) === words(b);

// [{path, old, new}]: a missing side is undefined. Lists are compared place by place behind their common beginning and
// before their common end, so that one member more is one line.
export function differences(a, b, path = '') {
    if (a !== undefined && b !== undefined && same(a, b)) return [];
    if (!isNested(a, b)) return [{path, old: a, new: b}];
    if (Array.isArray(a)) return listDifferences(a, b, path);
    const names = new Set([...Object.keys(a), ...Object.keys(b)]);
    return [...names].flatMap(name => {
        const below = /^[\w$-]+$/.test(name) ? name : print(name, 0);
        return differences(own(a, name), own(b, name), path ? `${path}.${below}` : below);
    });
}
const own = (map, name) => (Object.hasOwn(map, name) ? map[name] : undefined);

function listDifferences(a, b, path) {
    let from = 0,
        end = 0;
    while (from < a.length && from < b.length && same(a[from], b[from])) from++;
    while (end < a.length - from && end < b.length - from && same(a.at(-1 - end), b.at(-1 - end))) end++;
    const length = Math.max(a.length, b.length) - from - end;
    const at = (list, i) => (i < list.length - end ? list[i] : undefined);
    return Array.from({length}, (_, i) =>
        differences(at(a, from + i), at(b, from + i), `${path}[${from + i}]`),
    ).flat();
}

// Lines − old, + new for each path that differs.
export function diffView(a, b, {oldWords = 'before', newWords = 'after'} = {}) {
    const all = differences(a, b);
    if (!all.length) return h('p.dim', 'no difference');
    const line = (kind, sign, label, value) =>
        value === undefined
            ? null
            : h(
                  `td.diff-${kind}`,
                  h('span', {'aria-label': label, title: label}, sign),
                  ' ',
                  h('span.mono', words(value)),
              );
    const nothing = () => h('td.dim', '·');
    return h(
        'div.scroll.diff',
        {tabindex: '0', role: 'region', 'aria-label': 'Differences'},
        h(
            'table',
            h(
                'thead',
                h('tr', [
                    h('th', {scope: 'col'}, 'path'),
                    h('th', {scope: 'col'}, oldWords),
                    h('th', {scope: 'col'}, newWords),
                ]),
            ),
            h(
                'tbody',
                all
                    .slice(0, MOST)
                    .map(one =>
                        h(
                            'tr',
                            h('th.mono', {scope: 'row'}, one.path || '(all of it)'),
                            line('old', '−', oldWords, one.old) ?? nothing(),
                            line('new', '+', newWords, one.new) ?? nothing(),
                        ),
                    ),
            ),
        ),
        all.length > MOST ? h('p.dim', `and ${all.length - MOST} more`) : null,
    );
}
