// A list of any length that holds a few thousand rows. Pages are fetched as one scrolls down; each page's start is
// remembered, its rows are dropped when they are far away and fetched again when they are near. Only the rows on the
// screen are in the document.

import {h, replace} from './dom.js';
import {count} from './format.js';

const ROW_PX = 25; // as in style.css
const HELD = 3000; // rows in memory
const AHEAD = 15; // rows drawn above and below the screen
const NEAR = 100; // rows before the known end at which the next page is fetched
const AT_ONCE = 2; // pages that are fetched at the same time
const TALLEST_PX = 6e6; // browsers do not scroll taller elements exactly: behind it a pixel stands for more of them

// load(start, signal) → {rows, next}; next: where the next page starts, null at the end.
// columns() → [{name, title, cell(row), sort(a, b)}]; id(row): tells rows apart; isLast(row, start): whether the page
// that begins at `start` comes right behind this row; href(row): where its first cell leads; onmark(marked);
// onsort({name, down}), or null: another order is asked for, by order().
export function rowList({label, load, columns, id, isLast, href, onmark, onsort, onload, onfault}) {
    const body = h('tbody');
    const head = h('tr');
    const widths = h('colgroup');
    const table = h('table', {'aria-label': label}, widths, h('thead', head), body);
    const scroller = h('div.scroll.rows', {tabindex: '0', role: 'region', 'aria-label': label}, table);
    const above = h('tr.rows-space', {'aria-hidden': 'true'}, h('td')),
        below = h('tr.rows-space', {'aria-hidden': 'true'}, h('td'));
    const marked = new Map(); // id → row
    let pages = [], // {start, rows | null, count, isAsked}
        from = [0], // row number at which each page begins, and the end
        next, // where the page behind the last one starts: undefined at the beginning, null at the end
        isPaused = true, // nothing is asked for before restart(): whoever made the list says when
        ending = new AbortController(),
        sorting = null, // {name, down, rows}
        selected = null,
        drawn = new Map(), // row number → element
        shape = []; // columns in the document

    // ---- pages ----

    const total = () => (sorting ? sorting.rows.length : from.at(-1));
    const held = () => pages.reduce((sum, page) => sum + (page.rows?.length ?? 0), 0);
    function pageAt(row) {
        let low = 0,
            high = pages.length - 1;
        while (low < high) {
            const middle = (low + high + 1) >> 1;
            if (from[middle] <= row) low = middle;
            else high = middle - 1;
        }
        return low;
    }
    function rowAt(number) {
        if (sorting) return sorting.rows[number];
        const page = pageAt(number);
        return pages[page]?.rows?.[number - from[page]];
    }
    function renumber(first) {
        for (let i = first; i < pages.length; i++) from[i + 1] = from[i] + pages[i].count;
        from.length = pages.length + 1;
    }
    function ask() {
        if (sorting) return;
        const {first, last} = seen();
        const wanted = [];
        if (pages.length)
            for (let i = pageAt(first); i <= pageAt(last); i++)
                if (!pages[i].rows && !pages[i].isAsked) wanted.push(i);
        const isAtEnd = last >= total() - NEAR;
        if (!wanted.length && isAtEnd && next !== null && !isPaused && !pages.at(-1)?.isAsked) {
            pages.push({start: next, rows: null, count: 0, isAsked: false, isNew: true});
            renumber(pages.length - 1);
            wanted.push(pages.length - 1);
        }
        let free = AT_ONCE - pages.filter(page => page.isAsked).length;
        for (const i of wanted) if (free-- > 0) fetchPage(pages[i]);
    }
    async function fetchPage(page) {
        const {signal} = ending;
        page.isAsked = true;
        let answer;
        try {
            answer = await load(page.start, signal);
        } catch (error) {
            if (signal.aborted) return;
            page.isAsked = false;
            if (page.isNew) {
                pages.pop();
                renumber(0);
            }
            isPaused = true; // until one asks again
            onfault(error);
            return;
        }
        if (signal.aborted) return;
        page.isAsked = false;
        const place = pages.indexOf(page);
        let {rows} = answer;
        if (page.isNew) {
            page.isNew = false;
            next = answer.next;
        } else {
            // Where items came or went since, the page still ends before the one behind it.
            const end = pages[place + 1] ? rows.findIndex(row => isLast(row, pages[place + 1].start)) : -1;
            if (end >= 0) rows = rows.slice(0, end + 1);
        }
        page.rows = rows;
        page.count = rows.length;
        const {top} = seen();
        renumber(place);
        drop(place);
        onload?.({total: total(), held: held(), isWhole: next === null, rows});
        draw(top);
        ask();
    }
    function drop(kept) {
        const {first} = seen();
        let over = held() - HELD;
        const middle = pages.length ? pageAt(first) : 0;
        const far = pages
            .map((page, i) => [Math.abs(i - middle), page, i])
            .filter(([, page, i]) => page.rows && i !== kept)
            .sort((a, b) => b[0] - a[0]);
        for (const [, page] of far) {
            if (over <= 0) break;
            over -= page.rows.length;
            page.rows = null;
        }
    }

    // ---- where one is ----

    const height = () => total() * ROW_PX;
    const viewPx = () => Math.max(scroller.clientHeight - ROW_PX, ROW_PX); // without the head
    const isScaled = () => height() > TALLEST_PX;
    // Pixels of rows for a pixel of the scroll bar.
    const scale = () => (isScaled() ? (height() - viewPx()) / (TALLEST_PX - viewPx()) : 1);
    function seen() {
        const top = scroller.scrollTop * scale();
        const first = Math.max(0, Math.min(Math.floor(top / ROW_PX), total() - 1));
        return {top, first, last: Math.min(total() - 1, first + Math.ceil(viewPx() / ROW_PX))};
    }

    // ---- drawing ----

    // `keep`: the pixel of all rows that stays on top although their number has changed.
    function draw(keep = null) {
        if (keep !== null && isScaled() && Math.abs(scroller.scrollTop * scale() - keep) > 1)
            scroller.scrollTop = keep / scale();
        const {top, first, last} = seen();
        const whole = Math.min(height(), TALLEST_PX);
        // Where a pixel stands for many, there is less room above and below than the rows there would need.
        const roomAbove = isScaled() ? Math.floor(scroller.scrollTop / ROW_PX) : AHEAD,
            roomBelow = isScaled() ? Math.floor((whole - scroller.scrollTop - viewPx()) / ROW_PX) : AHEAD;
        const begin = Math.max(0, first - Math.min(AHEAD, roomAbove)),
            end = Math.min(total(), last + 1 + Math.max(0, Math.min(AHEAD, roomBelow)));
        const aboveDrawn = isScaled() ? Math.max(0, scroller.scrollTop - (top - begin * ROW_PX)) : begin * ROW_PX;
        above.firstChild.style.height = `${aboveDrawn}px`;
        below.firstChild.style.height = `${Math.max(0, whole - aboveDrawn - (end - begin) * ROW_PX)}px`;
        for (const [number, element] of drawn)
            if (number < begin || number >= end) {
                if (element.contains(document.activeElement)) scroller.focus({preventScroll: true});
                element.remove();
                drawn.delete(number);
            }
        if (!above.isConnected) replace(body, above, below);
        let before = above;
        for (let number = begin; number < end; number++) {
            const row = rowAt(number) ?? null;
            let element = drawn.get(number);
            if (!element || element.row !== row) {
                const fresh = makeRow(number, row);
                if (element) {
                    const isFocused = element.contains(document.activeElement);
                    element.replaceWith(fresh);
                    if (isFocused) fresh.querySelector('a')?.focus({preventScroll: true});
                }
                drawn.set(number, (element = fresh));
            }
            if (before.nextSibling !== element) before.after(element);
            before = element;
        }
        table.setAttribute('aria-rowcount', next === null || sorting ? total() + 1 : -1);
        Object.assign(scroller.dataset, {held: held(), known: total(), drawn: drawn.size});
    }
    function makeRow(number, row) {
        const element = h('tr', {'aria-rowindex': number + 2});
        element.row = row;
        if (!row) {
            element.append(h('td.dim', {colspan: shape.length + 1}, `${count(number + 1)} …`));
            return element;
        }
        const name = id(row);
        const box = h('input', {
            type: 'checkbox',
            'aria-label': `Mark row ${number + 1}`,
            checked: marked.has(name),
            onchange: () => {
                if (box.checked) marked.set(name, row);
                else marked.delete(name);
                onmark?.(marked);
            },
        });
        element.append(h('td.mark', box));
        shape.forEach((column, i) => {
            const {words, kind} = column.cell(row);
            const target = i === 0 ? href(row) : null;
            element.append(
                h(
                    i ? 'td' : 'th',
                    {scope: i ? null : 'row', class: kind ?? '', title: words.length > 20 ? words : null},
                    target ? h('a', {href: target}, words || '(empty)') : words,
                ),
            );
        });
        mark(element, name);
        return element;
    }
    function mark(element, name) {
        const is = selected !== null && name === selected;
        element.classList.toggle('selected', is);
        if (is) element.setAttribute('aria-current', 'true');
        else element.removeAttribute('aria-current');
    }
    function redraw() {
        shape = columns();
        const all = h('input', {
            type: 'checkbox',
            'aria-label': 'Mark all rows that are loaded',
            onchange: () => {
                marked.clear();
                if (all.checked)
                    for (const page of pages) for (const row of page.rows ?? []) marked.set(id(row), row);
                onmark?.(marked);
                redrawRows();
            },
        });
        replace(
            head,
            h('th.mark', {scope: 'col'}, all),
            shape.map(column => {
                const isThis = sorting?.name === column.name;
                return h(
                    'th',
                    {scope: 'col', 'aria-sort': isThis ? (sorting.down ? 'descending' : 'ascending') : null},
                    h(
                        'button.sort',
                        {type: 'button', title: 'Sort the rows that are loaded', onclick: () => onsort(after(column))},
                        column.title,
                    ),
                );
            }),
        );
        replace(
            widths,
            h('col.mark'),
            shape.map(column => {
                const col = h('col');
                col.style.width = `${column.width}ch`;
                return col;
            }),
        );
        table.style.minWidth = `${shape.reduce((sum, column) => sum + column.width, 4)}ch`;
        redrawRows();
    }
    function redrawRows() {
        for (const element of drawn.values()) element.remove();
        drawn = new Map();
        draw();
    }
    // Up, down, and back to the order in which they came.
    function after({name}) {
        if (sorting?.name !== name) return {name, down: false};
        return sorting.down ? null : {name, down: true};
    }
    function order(wanted) {
        const column = wanted && shape.find(one => one.name === wanted.name);
        const rows = sorting?.rows ?? pages.flatMap(page => page.rows ?? []);
        if (!column) sorting = null;
        else {
            const {name, down} = wanted;
            const compare = (a, b) => (down ? column.sort(b, a) : column.sort(a, b));
            sorting = {name, down, rows: [...rows].sort(compare)};
        }
        scroller.scrollTop = 0;
        redraw();
        onload?.({total: total(), held: held(), isWhole: next === null, rows: [], sorted: sorting?.rows.length});
        ask();
    }

    let frame = 0;
    scroller.addEventListener('scroll', () => {
        frame ||= requestAnimationFrame(() => {
            frame = 0;
            draw();
            ask();
        });
    });
    const size = new ResizeObserver(() => {
        draw();
        ask();
    });
    size.observe(scroller);
    body.addEventListener('keydown', event => {
        const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
        const element = event.target.closest('tr');
        if (!step || !element) return;
        event.preventDefault();
        const number = Number(element.getAttribute('aria-rowindex')) - 2 + step;
        if (number < 0 || number >= total()) return;
        const {top} = seen();
        if (number * ROW_PX < top) scroller.scrollTop = (number * ROW_PX) / scale();
        else if ((number + 1) * ROW_PX > top + viewPx())
            scroller.scrollTop = ((number + 1) * ROW_PX - viewPx()) / scale();
        draw();
        const target = event.target.matches('input') ? 'input' : 'a';
        drawn.get(number)?.querySelector(target)?.focus({preventScroll: true});
    });

    // Forgets all, and asks for nothing until it is restarted.
    function clear() {
        ending.abort();
        ending = new AbortController();
        pages = [];
        from = [0];
        next = undefined;
        isPaused = true;
        sorting = null;
        marked.clear();
        onmark?.(marked);
        scroller.scrollTop = 0;
        redraw();
    }

    return {
        element: scroller,
        marked,
        redraw,
        order,
        clear,
        restart() {
            clear();
            isPaused = false;
            ask();
        },
        stop() {
            ending.abort();
            size.disconnect();
        },
        pause(is) {
            isPaused = is;
            if (!is) ask();
        },
        select(name) {
            selected = name;
            for (const element of drawn.values()) if (element.row) mark(element, id(element.row));
        },
        clearMarks() {
            marked.clear();
            onmark?.(marked);
            redraw();
        },
        // Rows that are gone (change answers null) or different, without asking again.
        change(change) {
            for (const page of pages) {
                if (!page.rows) continue;
                page.rows = page.rows.map(change).filter(Boolean);
                page.count = page.rows.length;
            }
            if (sorting) sorting.rows = sorting.rows.map(change).filter(Boolean);
            renumber(0);
            redrawRows();
            ask();
        },
        rows: () => pages.flatMap(page => page.rows ?? []),
    };
}
