// The parts that views are made of.

import {server} from './api.js';
import {append, h, newId, renew, replace, text} from './dom.js';
import {ago, count, utc, when} from './format.js';
import {Exact, compareNumbers, print} from './json.js';

// ---- words with a shape beside their colour ----

const SAID_AGAIN_MS = 2000;
const SHAPES = {ok: '●', running: '▶', waiting: '○', failed: '✕'};
export const state = (kind, words) =>
    h(`span.state.${kind}`, h('span', {'aria-hidden': 'true'}, SHAPES[kind]), ' ', words);

export const time = value => (value ? h('time', {datetime: utc(value), title: utc(value)}, when(value)) : '');
// Said anew every few seconds, by one timer for all.
export const since = value =>
    value ? h('time.since', {datetime: utc(value), title: `${when(value)} · ${utc(value)}`}, ago(value)) : '';
setInterval(() => {
    if (!document.hidden) for (const one of document.querySelectorAll('time.since')) text(one, ago(one.dateTime));
}, SAID_AGAIN_MS);
export const exact = (words, value) => h('span', {title: String(value)}, words);

// ---- faults, told where they happened ----

export function errorLine(error) {
    if (!error || error.name === 'AbortError') return null;
    return h(
        'p.fault',
        {role: 'alert'},
        error.type && !/^\d+$/.test(error.type) ? h('b', error.type) : null,
        error.type ? ' ' : '',
        error.message,
    );
}

// A place for faults: run(job) clears it, and shows what the job throws. Answers what the job answered.
export function faultPlace() {
    const element = h('div.faults');
    return {
        element,
        show: error => replace(element, errorLine(error)),
        async run(job) {
            replace(element);
            try {
                return await job();
            } catch (error) {
                replace(element, errorLine(error));
                return undefined;
            }
        },
    };
}

// ---- buttons ----

export function button(words, onclick, props = {}) {
    return h('button', {type: 'button', onclick, ...props}, words);
}

// A fault in words behind the line that the button stands in; null where one has gone elsewhere: nothing is missed.
function tellBeside(element, error) {
    const line = errorLine(error);
    if (!line || !element.isConnected) return null;
    (element.closest('.bar') ?? element).after(line);
    return line;
}

// Does not work twice at once, and shows that it works.
export function actionButton(words, job, props = {}) {
    let told = null;
    const element = button(
        words,
        async () => {
            if (element.getAttribute('aria-busy')) return;
            element.setAttribute('aria-busy', 'true');
            told?.remove();
            try {
                await job();
            } catch (error) {
                told = tellBeside(element, error); // what its job has not told by itself
            } finally {
                element.removeAttribute('aria-busy');
            }
        },
        props,
    );
    return element;
}

// Why nothing may be changed here; null: it may.
export const whyNoChange = () =>
    server.info.readOnly
        ? 'This console may only read.'
        : server.info.role === 'read'
          ? 'This key may only read.'
          : null;

// One that changes something: not where one may only read.
export const changeButton = (words, job, props = {}) =>
    actionButton(words, job, whyNoChange() ? {...props, disabled: true, title: whyNoChange()} : props);

export function copyButton(value, words = 'Copy') {
    const element = button(
        words,
        async () => {
            await copy(typeof value === 'function' ? value() : value);
            text(element, 'Copied');
            setTimeout(() => text(element, words), 1200);
        },
        {class: 'small'},
    );
    return element;
}

export async function copy(words) {
    if (navigator.clipboard) return navigator.clipboard.writeText(words);
    const area = h('textarea', {value: words, class: 'away'}); // without HTTPS there is no clipboard to be had
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
    return undefined;
}

// A button that opens a list of actions: [[words, action], ...]
export function menu(words, items, props = {}) {
    const list = h('div.menu', {role: 'menu', hidden: true});
    const opener = button(words, () => (list.hidden ? open() : close()), {
        'aria-haspopup': 'menu',
        'aria-expanded': 'false',
        ...props,
    });
    const box = h('span.menu-box', opener, list);
    for (const [label, action] of items)
        list.append(
            h(
                'button',
                {
                    type: 'button',
                    role: 'menuitem',
                    onclick: () => {
                        close();
                        action();
                    },
                },
                label,
            ),
        );
    const entries = () => [...list.children];
    function outside(event) {
        if (!box.contains(event.target)) close();
    }
    function open() {
        list.hidden = false;
        opener.setAttribute('aria-expanded', 'true');
        entries()[0]?.focus();
        document.addEventListener('pointerdown', outside);
    }
    function close() {
        if (list.hidden) return;
        list.hidden = true;
        opener.setAttribute('aria-expanded', 'false');
        document.removeEventListener('pointerdown', outside);
        opener.focus();
    }
    list.addEventListener('keydown', event => {
        const all = entries(),
            at = all.indexOf(document.activeElement);
        if (event.key === 'Escape') {
            event.stopPropagation();
            close();
        } else if (event.key === 'ArrowDown') all[(at + 1) % all.length].focus();
        else if (event.key === 'ArrowUp') all[(at + all.length - 1) % all.length].focus();
        else return;
        event.preventDefault();
    });
    return box;
}

// ---- forms ----

export function field(label, input, hint) {
    const id = input.id || (input.id = newId('field'));
    const note = hint ? h('small', {id: id + '-hint'}, hint) : null;
    if (note) input.setAttribute('aria-describedby', note.id);
    return h('div.field', h('label', {for: id}, label), input, note);
}
export const input = (props = {}) => h('input', {type: 'text', spellcheck: 'false', autocomplete: 'off', ...props});
export const select = (options, value, props = {}) => {
    const element = h(
        'select',
        props,
        options.map(option => {
            const [key, words] = Array.isArray(option) ? option : [option, option];
            return h('option', {value: key}, words);
        }),
    );
    if (value !== undefined) element.value = value;
    return element;
};
export const check = (label, checked, props = {}) => {
    const box = h('input', {type: 'checkbox', checked, ...props});
    return Object.assign(h('label.check', box, ' ', label), {box});
};

// ---- dialogs ----

// Shows a dialog and answers what `done(value)` was called with; undefined when it was left.
// body(done, faults) answers its content; actions: [[words, job, kind]]: a job's answer other than false ends the
// dialog.
export function dialog({title, body, actions = [], wide = false}) {
    const faults = faultPlace();
    const heading = newId('dialog');
    const element = h('dialog', {'aria-labelledby': heading, class: wide ? 'wide' : ''});
    const before = document.activeElement;
    return new Promise(resolve => {
        let answer,
            working = null; // a job that goes on when the dialog is left tells its answer all the same
        const done = value => {
            answer = value;
            element.close();
        };
        const buttons = actions.map(([words, job, kind]) =>
            actionButton(
                words,
                async () => {
                    working = faults.run(job);
                    const value = await working;
                    if (value !== undefined && value !== false) done(value);
                },
                {class: kind ?? ''},
            ),
        );
        const form = h(
            'form',
            {
                method: 'dialog',
                onsubmit: event => {
                    event.preventDefault();
                    buttons.find(one => !one.disabled)?.click();
                },
            },
            h('h2', {id: heading}, title),
            body?.(done, faults),
            h('button', {type: 'submit', hidden: true}), // Enter in a field needs one
            faults.element,
            h(
                'div.actions',
                buttons,
                button('Cancel', () => element.close()),
            ),
        );
        append(element, form);
        // What it asks is about what is shown: it does not stand over another view.
        const leave = () => element.close();
        addEventListener('hashchange', leave);
        element.addEventListener('close', async () => {
            removeEventListener('hashchange', leave);
            element.remove();
            before?.focus?.();
            await working;
            resolve(answer);
        });
        document.body.append(element);
        element.showModal();
    });
}

// Asks before something small is destroyed; answers whether it was.
export const confirmOnce = ({title, sentence, words, job}) =>
    dialog({
        title,
        body: () => h('p', sentence),
        actions: [[words, async () => (await job(), true), 'danger']],
    });

// For what cannot be taken back: the name has to be typed. job() does it; answers whether it was done.
export function confirmTyped({title, name, sentence, words, job}) {
    const typed = input({'aria-label': `Type ${name}`});
    return dialog({
        title,
        body: () => [h('p', sentence), field(h('span', 'Type ', h('b', name), ' to go on'), typed)],
        actions: [
            [
                words,
                async () => {
                    if (typed.value !== name) throw new Error(`That is not “${name}”.`);
                    await job();
                    return true;
                },
                'danger',
            ],
        ],
    });
}

// ---- what one can do by hand: the line that teaches its command ----

// forms: {CLI: 'quipu ...', curl: '...', boto3: '...', JavaScript: '...'}
export function teach(forms) {
    const code = h('code', {tabindex: '0'});
    const names = Object.keys(forms).filter(name => forms[name]);
    let current = names.includes(localStorage.getItem('teach')) ? localStorage.getItem('teach') : names[0];
    const chooser = select(names, current, {
        'aria-label': 'Language of the example',
        onchange: () => {
            current = chooser.value;
            localStorage.setItem('teach', current);
            text(code, forms[current]);
        },
    });
    text(code, forms[current]);
    return h(
        'div.teach',
        chooser,
        code,
        copyButton(() => forms[current]),
    );
}

// A command of a shell with its words quoted where they must be.
export const shell = (...words) =>
    words
        .filter(word => word !== null && word !== undefined && word !== '')
        .map(word => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${String(word).replaceAll("'", "'\\''")}'`))
        .join(' ');

// An empty view: what the thing is for, and the lines that make the first one.
export function empty(title, sentence, lines) {
    return h(
        'section.empty',
        h('h2', title),
        h('p', sentence),
        lines ? h('pre', {tabindex: '0'}, lines.join('\n')) : null,
        lines ? copyButton(lines.join('\n')) : null,
    );
}

// ---- lists ----

// A table of rows that stay where they are. columns: [{title, cell(row), sort(row), right, wide, once}]; once: a cell
// is made with its row and not again, for buttons and links, which keep the focus. key(row) tells rows apart;
// href(row): where a row's first cell leads; selected: a key; empty: what stands there without rows; onmark(keys): rows
// can be ticked. update(rows) changes rows in place; while the pointer or the focus is on them, or the list is
// scrolled, new rows wait behind "3 new"; not with steady: false, for short lists that tell a state.
export function grid({
    columns,
    key,
    href,
    selected = null,
    empty: nothing = null,
    onmark = null,
    label,
    steady = true,
}) {
    const body = h('tbody');
    const news = h('button.news', {type: 'button', hidden: true, onclick: () => apply(true)});
    const marked = new Set();
    const all = onmark
        ? h('input', {
              type: 'checkbox',
              'aria-label': 'All rows',
              onchange: () => {
                  for (const row of shown.values()) mark(row, all.checked);
                  onmark(marked);
              },
          })
        : null;
    let sorting = null,
        latest = [];
    const shown = new Map(); // key → {element, cells, data}

    const head = columns.map(column => {
        const cell = h('th', {scope: 'col', class: column.right ? 'right' : ''});
        if (!column.sort) return append(cell, column.title);
        cell.append(
            h(
                'button.sort',
                {
                    type: 'button',
                    onclick: () => {
                        sorting = sorting?.column === column ? {column, down: !sorting.down} : {column, down: false};
                        for (const other of head) other.removeAttribute('aria-sort');
                        cell.setAttribute('aria-sort', sorting.down ? 'descending' : 'ascending');
                        apply(true);
                    },
                },
                column.title,
            ),
        );
        return cell;
    });
    const table = h(
        'table',
        {'aria-label': label},
        h('thead', h('tr', onmark ? h('th.mark', all) : null, head)),
        body,
    );
    const scroller = h('div.scroll', {tabindex: '0', role: 'region', 'aria-label': label}, table);
    const element = h('div.grid', news, scroller);

    function mark(row, is) {
        row.box.checked = is;
        if (is) marked.add(row.id);
        else marked.delete(row.id);
    }
    function makeRow(id, data) {
        const cells = columns.map((column, i) =>
            h(i ? 'td' : 'th', {
                scope: i ? null : 'row',
                class: [column.right && 'right', column.wide && 'wide'].filter(Boolean).join(' '),
            }),
        );
        const row = {id, cells, data};
        row.box = onmark
            ? h('input', {
                  type: 'checkbox',
                  'aria-label': `Mark ${id}`,
                  onchange: () => {
                      mark(row, row.box.checked);
                      onmark(marked);
                  },
              })
            : null;
        row.element = h('tr', {dataset: {key: id}}, row.box ? h('td.mark', row.box) : null, cells);
        return row;
    }
    // What did not change is not touched: a button under the pointer stays the same one.
    function fill(row, data) {
        const printed = print(data, 0);
        if (row.printed !== printed) fillCells(row, data);
        row.printed = printed;
        const is = selected !== null && String(row.id) === String(selected);
        row.element.classList.toggle('selected', is);
        if (is) row.element.setAttribute('aria-current', 'true');
        else row.element.removeAttribute('aria-current');
    }
    function fillCells(row, data) {
        row.data = data;
        columns.forEach((column, i) => {
            let cell = row.cells[i];
            if (column.once && cell.firstChild) return;
            const content = column.cell(data);
            if (i === 0 && href) {
                if (!cell.querySelector('a')) replace(cell, h('a'));
                cell = cell.querySelector('a'); // the same one, so that it keeps the focus
                cell.setAttribute('href', href(data));
            }
            if (content instanceof Node || Array.isArray(content)) renew(cell, content);
            else text(cell, content);
            if (i === 0 && typeof content === 'string') cell.title = content; // it may be cut
        });
    }
    function ordered() {
        if (!sorting) return latest;
        const {column, down} = sorting;
        const compare = (a, b) =>
            a instanceof Exact || b instanceof Exact
                ? compareNumbers(String(a), String(b))
                : a < b
                  ? -1
                  : a > b
                    ? 1
                    : 0;
        const rows = [...latest].sort((a, b) => compare(column.sort(a), column.sort(b)));
        return down ? rows.reverse() : rows;
    }
    const isRead = () =>
        steady && (scroller.scrollTop > 0 || body.matches(':hover') || body.contains(document.activeElement));
    function apply(force) {
        const rows = ordered();
        const ids = new Set(rows.map(row => String(key(row))));
        const fresh = rows.filter(row => !shown.has(String(key(row))));
        if (!force && shown.size && fresh.length && isRead()) {
            for (const data of rows) {
                const row = shown.get(String(key(data)));
                if (row) fill(row, data);
            }
            for (const [id, row] of shown) row.element.classList.toggle('gone', !ids.has(id));
            text(news, `${count(fresh.length)} new`);
            news.hidden = false;
            return;
        }
        news.hidden = true;
        for (const [id, row] of shown)
            if (!ids.has(id)) {
                if (!force && isRead()) row.element.classList.add('gone');
                else {
                    row.element.remove();
                    shown.delete(id);
                    marked.delete(id);
                }
            }
        let place = null;
        for (const data of rows) {
            const id = String(key(data));
            let row = shown.get(id);
            if (!row) shown.set(id, (row = makeRow(id, data)));
            row.element.classList.remove('gone');
            fill(row, data);
            const next = place ? place.nextElementSibling : body.firstElementChild;
            if (next !== row.element) body.insertBefore(row.element, next);
            place = row.element;
        }
        if (nothing) {
            scroller.hidden = !rows.length;
            if (!nothing.isConnected) element.append(nothing);
            nothing.hidden = !!rows.length;
        }
    }
    // Arrows go from row to row, Enter follows the link.
    body.addEventListener('keydown', event => {
        const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
        const row = event.target.closest('tr');
        if (!step || !row || event.target.matches('input,select,textarea')) return;
        const other = step > 0 ? row.nextElementSibling : row.previousElementSibling;
        other?.querySelector('a,button')?.focus();
        event.preventDefault();
    });
    return {
        element,
        marked,
        update(rows) {
            latest = rows;
            apply(false);
        },
        select(id) {
            selected = id;
            for (const row of shown.values()) fill(row, row.data);
        },
        clearMarks() {
            for (const row of shown.values()) if (row.box) mark(row, false);
            if (all) all.checked = false;
        },
    };
}

// Two panes: the list, and the chosen thing beside it (below it on narrow screens).
export function split(list, detail) {
    return h('div.split', h('section.pane.list', list), h('section.pane.detail', {'aria-live': 'off'}, detail));
}

const WIDE = matchMedia('(min-width: 1100px)'); // as in style.css
// Whether the chosen one stands beside the list.
export const isBeside = () => WIDE.matches;

// What was opened below the screen, where the panes are one under the other, is brought to where it is seen.
export function bringIntoView(element) {
    requestAnimationFrame(() => {
        if (element.getBoundingClientRect().top > innerHeight * 0.6) element.scrollIntoView({block: 'start'});
    });
}

// [[words, href, isCurrent], ...]
export const tabs = (items, label = 'Parts') =>
    h(
        'nav.tabs',
        {'aria-label': label},
        items.map(([words, target, current]) =>
            h('a', {href: target, 'aria-current': current ? 'page' : null}, words),
        ),
    );

// Pairs of a name and what it is: [['Keys', 'id'], ...]; those without a value are left out.
export const facts = pairs =>
    h(
        'dl.facts',
        pairs
            .filter(pair => pair && pair[1] !== null && pair[1] !== undefined && pair[1] !== '')
            .map(([name, value]) => h('div', h('dt', name), h('dd', value))),
    );

export const json = value => h('pre.json', {tabindex: '0'}, typeof value === 'string' ? value : print(value));

// A job that asks and shows, never twice at once: whoever calls it while it runs gets the next run, which begins when
// this one has ended. So an older answer never comes after a newer one, and who waits for it sees what was there after
// the call.
export function oneAtATime(job) {
    let last = Promise.resolve(),
        next = null; // the run that has not begun
    return () =>
        (next ??= last =
            last
                .catch(() => {})
                .then(() => {
                    next = null;
                    return job();
                }));
}

// Asks again and again while the page is open and seen: the next time begins when the last has ended.
export function every(ms, job, signal) {
    let timer;
    async function turn() {
        if (signal.aborted) return;
        if (!document.hidden) await job();
        if (!signal.aborted) timer = setTimeout(turn, ms);
    }
    signal.addEventListener('abort', () => clearTimeout(timer));
    return turn();
}
