// Ctrl-K: go to anything that has a name.

import {LISTED_MOST, listed, server} from './api.js';
import {functions, scheduleNames} from './calls.js';
import {h, renew} from './dom.js';
import {href} from './route.js';
import {tableNames} from './table.js';

const MOST = 50; // results shown

// Where names come from: [word, path of the view, async () => names]; of each kind LISTED_MOST are looked through.
const list =
    (path, member, name = 'name') =>
    async () =>
        (await listed(path, member)).rows.map(one => (typeof one === 'string' ? one : one[name]));
const functionNames = async () => (await functions(LISTED_MOST / 50)).found.map(one => one.FunctionName);
const SOURCES = [
    ['Table', 'tables', () => tableNames(LISTED_MOST)],
    ['Function', 'functions', functionNames],
    ['Job', 'jobs', list('/v1/jobs', 'jobs', 'id')],
    ['Job', 'jobs', list('/v1/jobs?state=failed', 'jobs', 'id')],
    ['Job', 'jobs', list('/v1/jobs?state=expired', 'jobs', 'id')],
    ['Group', 'groups', list('/v1/groups', 'groups')],
    ['Period', 'periods', list('/v1/periods', 'periods')],
    ['Work queue', 'work', list('/v1/work', 'queues', 'queue')],
    ['Lease', 'leases', list('/v1/leases', 'leases')],
    ['Log', 'logs', list('/v1/logs', 'logs', 'log')],
    ['Counter', 'counters', list('/v1/counters', 'counters')],
    ['Documents', 'documents', list('/v1/documents', 'collections')],
    ['Board', 'boards', list('/v1/boards', 'boards')],
    ['Schedule', 'schedules', scheduleNames],
];

const OF_FUNCTIONS = new Set(['functions', 'schedules']); // only where the server runs them

// How well a name fits what was typed: its beginning, a word's beginning, somewhere, letter by letter; 0: not at all.
function fit(name, typed) {
    const low = name.toLowerCase();
    if (low.startsWith(typed)) return 4;
    const place = low.indexOf(typed);
    if (place > 0) return /[\W_]/.test(low[place - 1]) ? 3 : 2;
    let from = 0;
    for (const letter of typed) {
        from = low.indexOf(letter, from) + 1;
        if (!from) return 0;
    }
    return 1;
}

export function openPalette(sections) {
    if (document.querySelector('dialog.palette')) return;
    const known = sections.map(([path, words]) => ({kind: 'View', name: words, target: href([path])}));
    const results = h('ul', {
        role: 'listbox',
        id: 'palette-results',
        'aria-label': 'Results',
        onclick: event => {
            const line = event.target.closest('li');
            if (line) leave(found[[...results.children].indexOf(line)]);
        },
    });
    const box = h('input', {
        type: 'text',
        role: 'combobox',
        'aria-expanded': 'true',
        'aria-controls': 'palette-results',
        'aria-label': 'Go to',
        placeholder: 'A table, function, job, view …',
        autocomplete: 'off',
        spellcheck: 'false',
        oninput: () => {
            moved = null;
            show();
        },
    });
    const element = h(
        'dialog.palette',
        {'aria-label': 'Go to anything'},
        box,
        results,
        h('p.hint', '↑ ↓ to choose, Enter to go, Esc to leave'),
    );
    let chosen = 0,
        found = [],
        moved = null; // where the arrows went: names that come later do not move it

    function show() {
        const typed = box.value.trim().toLowerCase();
        found = known
            .map(one => ({
                ...one,
                fits: typed ? Math.max(fit(one.name, typed), fit(`${one.kind} ${one.name}`, typed) - 0.5) : 1,
            }))
            .filter(one => one.fits > 0)
            .sort((a, b) => b.fits - a.fits)
            .slice(0, MOST);
        chosen = moved
            ? Math.max(
                  0,
                  found.findIndex(one => one.target === moved),
              )
            : 0;
        draw();
    }
    function draw() {
        renew(
            results,
            found.map((one, i) =>
                h(
                    'li',
                    {
                        role: 'option',
                        id: `result-${i}`,
                        'aria-selected': String(i === chosen),
                    },
                    h('span.kind', one.kind),
                    ' ',
                    one.name,
                ),
            ),
        );
        box.setAttribute('aria-activedescendant', found.length ? `result-${chosen}` : '');
        results.children[chosen]?.scrollIntoView({block: 'nearest'});
    }
    function leave(one) {
        element.close();
        if (one) location.hash = one.target;
    }
    element.addEventListener('keydown', event => {
        if (event.key === 'ArrowDown') chosen = Math.min(chosen + 1, found.length - 1);
        else if (event.key === 'ArrowUp') chosen = Math.max(chosen - 1, 0);
        else if (event.key === 'Enter') {
            event.preventDefault();
            leave(found[chosen]);
            return;
        } else return;
        event.preventDefault();
        moved = found[chosen]?.target;
        draw();
    });
    element.addEventListener('close', () => element.remove());
    element.addEventListener('click', event => {
        if (event.target === element) element.close();
    });
    document.body.append(element);
    element.showModal();
    show();
    for (const [kind, path, names] of SOURCES.filter(([, path]) => server.info.functions || !OF_FUNCTIONS.has(path)))
        names().then(
            all => {
                for (const name of all) known.push({kind, name, target: href([path, name])});
                if (element.isConnected) show();
            },
            () => {
                /* one that cannot be listed is not there */
            },
        );
}
