// What the views of patterns have in common: a list of names on the left, the chosen one on the right, both asked for
// again while one looks.

import {request, server} from './api.js';
import {isRemote, paceMs} from './calls.js';
import {h, renew, replace} from './dom.js';
import {commands, operationDialog} from './operation.js';
import {
    bringIntoView,
    button,
    changeButton,
    confirmTyped,
    empty,
    faultPlace,
    grid,
    input,
    isBeside,
    oneAtATime,
    split,
    teach,
} from './parts.js';
import {go, href} from './route.js';

const PAGE = 100;

// A list that is asked for page by page: fetchPage(after) → {rows, next}. What it answers loads anew as many pages as
// are shown.
export function pagedList(fetchPage, table, more) {
    let shown = 1;
    const load = oneAtATime(async () => {
        const rows = [];
        let next;
        for (let i = 0; i < shown; i++) {
            const page = await fetchPage(next);
            rows.push(...page.rows);
            next = page.next;
            if (next === undefined || next === null) break;
        }
        table.update(rows);
        more.hidden = next === undefined || next === null;
    });
    more.addEventListener('click', () => {
        shown++;
        load();
    });
    return load;
}

// The view of a pattern:
//   section, title, one: its words; sentence, first: for the empty view
//   list: {path, member, key, columns, query(route), keep(row, route)}
//   filter(to) → {element, follow(route)}: beside the title, may be missing
//   make: {id, words}: the operation that makes one
//   detail(page, name, route) → {element, refresh(), title} of a chosen one; remove: an operation's id and its words
//   teach(name): [operation's id, what is given] of what is looked at
export function patternView(view) {
    return function open(page) {
        const faults = faultPlace();
        const more = button('More', null, {hidden: true});
        let chosen = page.route.path[1] ?? null,
            route = page.route,
            detail = null;
        const place = h('div.chosen');
        const lesson = h('div');
        const nothing = empty(view.title, view.sentence, view.first);
        const table = grid({
            label: view.title,
            columns: view.list.columns,
            key: view.list.key,
            href: row => href([view.section, view.list.key(row)], keptQuery()),
            selected: chosen,
            empty: nothing,
        });
        const prefix = input({
            placeholder: 'Begins with',
            'aria-label': 'Names that begin with',
            value: route.query.prefix ?? '',
            oninput: () => go(path(), {...route.query, prefix: prefix.value}, {quietly: true}),
        });
        const path = () => [view.section, ...(chosen === null ? [] : [chosen])];
        const keptQuery = () => ({prefix: route.query.prefix, state: route.query.state});

        const load = pagedList(
            async after => {
                const query = new URLSearchParams({limit: PAGE, ...view.list.query?.(route)});
                if (route.query.prefix && view.list.prefix !== false) query.set('prefix', route.query.prefix);
                if (after !== undefined) query.set('after', after);
                const reply = await request('GET', `${view.list.path}?${query}`, {signal: page.signal});
                const rows = reply[view.list.member] ?? [];
                return {rows: view.list.keep ? rows.filter(row => view.list.keep(row, route)) : rows, next: reply.next};
            },
            table,
            more,
        );

        const filter = view.filter?.(query => go(path(), {...route.query, ...query}));
        filter?.follow(route);
        const bar = h(
            'div.bar',
            h('h1.grow', view.title),
            filter?.element,
            view.list.prefix === false ? null : prefix,
            isRemote() ? button('Refresh', () => refreshAll()) : null,
            view.make
                ? changeButton(
                      view.make.words,
                      async () => {
                          const made = await operationDialog(
                              view.make.id,
                              {},
                              {title: view.make.words, words: view.make.words},
                          );
                          if (made) {
                              // at once: later one may have gone elsewhere
                              if (view.make.open) go([view.section, view.make.open(made)]);
                              await load();
                          }
                      },
                      {class: 'primary'},
                  )
                : null,
        );
        const panes = split([bar, faults.element, table.element, more], [place]);
        let tellListed;
        const isListed = new Promise(done => (tellListed = done));
        if (!isBeside()) {
            // what stands below the list is not pushed down by it
            panes.lastChild.classList.add('coming');
            isListed.then(() => panes.lastChild.classList.remove('coming'));
        }
        replace(page.el, panes, lesson);

        async function showDetail() {
            table.select(chosen);
            page.title(chosen ?? view.title);
            detail?.close?.();
            detail = null;
            lessons();
            if (chosen === null) {
                replace(place, h('p.dim', `Choose one of the ${view.title.toLowerCase()}.`));
                return;
            }
            const mine = chosen;
            const opened = view.detail(page, mine, route);
            const own = faultPlace();
            const ask = oneAtATime(opened.refresh);
            let isLost = false; // what is told of the last turn goes when the next one succeeds
            opened.refresh = async () => {
                try {
                    await ask();
                    if (isLost) own.show(null);
                    isLost = false;
                } catch (error) {
                    if (error.name === 'AbortError' || detail !== opened) return;
                    isLost = true;
                    own.show(error);
                }
            };
            detail = opened;
            opened.faults = own;
            const content = h('div.chosen.coming', opened.element); // its space is kept until all of it is known
            const actions = h('span.chosen-actions.coming', opened.actions); // forms are filled by what is known
            replace(
                place,
                h(
                    'div.bar',
                    h('h2.grow', mine),
                    actions,
                    view.remove
                        ? changeButton(
                              view.remove.words,
                              async () => {
                                  const done = await confirmTyped({
                                      title: `${view.remove.words}: ${mine}`,
                                      name: mine,
                                      sentence: view.remove.sentence,
                                      words: view.remove.words,
                                      job: () => request('DELETE', view.remove.path(mine)),
                                  });
                                  if (done) {
                                      go([view.section], keptQuery());
                                      load();
                                  }
                              },
                              {class: 'danger'},
                          )
                        : null,
                ),
                own.element,
                content,
            );
            await Promise.all([opened.refresh(), isBeside() ? null : isListed]);
            for (const one of [content, actions]) one.classList.remove('coming');
            if (detail === opened) bringIntoView(place);
        }
        async function lessons() {
            const [id, given] = view.teach(chosen, route);
            try {
                replace(lesson, teach(await commands(id, given)));
            } catch {
                replace(lesson);
            }
        }
        async function refreshAll() {
            await faults.run(load);
            tellListed();
            await detail?.refresh();
        }
        page.every(paceMs(), refreshAll);
        // What is written to the pattern's tables is seen within the second. Those of an engine elsewhere are not told.
        const own = server.info.prefix + view.section.replace(/s$/, '');
        page.onSample(sample => {
            const tables = Object.entries(sample?.tables ?? {});
            const isAsking = document.querySelector('dialog[open]'); // what it destroys is not asked about meanwhile
            if (!isAsking && tables.some(([name, {w}]) => w && name.startsWith(own))) refreshAll();
        });
        showDetail();
        return {
            async update(next) {
                const other = next.path[1] ?? null;
                const filtered = ['prefix', 'state'].some(name => next.query[name] !== route.query[name]);
                route = next;
                filter?.follow(route);
                if (document.activeElement !== prefix) prefix.value = route.query.prefix ?? '';
                if (other !== chosen) {
                    chosen = other;
                    await showDetail();
                } else {
                    lessons();
                    detail?.update?.(route);
                }
                if (filtered) await faults.run(load);
            },
        };
    };
}

// Facts that change in place: set(pairs) makes them once and then only changes their words.
export function liveFacts() {
    const element = h('dl.facts');
    const cells = new Map();
    return {
        element,
        set(pairs) {
            for (const [name, value] of pairs) {
                let cell = cells.get(name);
                if (!cell) {
                    cell = h('dd');
                    cells.set(name, cell);
                    element.append(h('div', h('dt', name), cell));
                }
                cell.parentElement.hidden = value === null || value === undefined || value === '';
                renew(cell, value);
            }
        },
    };
}
