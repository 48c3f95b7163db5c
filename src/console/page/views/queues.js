// Queues: the asynchronous calls that are not over, and the messages of queues, among them calls that were given up.

import {isRemote, ownTable, paceMs} from '../calls.js';
import {h, replace, text} from '../dom.js';
import {count, plural} from '../format.js';
import {ALL_PARTS, carry, letterFacts, letterList, pretty, readQueue, readQueues, targetWords} from '../letters.js';
import {
    actionButton,
    changeButton,
    confirmTyped,
    empty,
    facts,
    faultPlace,
    grid,
    json,
    oneAtATime,
    select,
    shell,
    since,
    split,
    state,
    teach,
    time,
} from '../parts.js';
import {go, href} from '../route.js';
import {dropCall, readCalls} from '../waiting.js';

export function open(page) {
    const faults = faultPlace(),
        place = h('div.function');
    let route = page.route,
        parts = 1,
        detail = null;
    const list = grid({
        label: 'Queues',
        key: one => one.name,
        href: one => href(['queues', one.name]),
        selected: route.path[1] ?? null,
        empty: h('p.dim', 'No queue holds a message.'),
        columns: [
            {title: 'Queue', cell: one => one.name, sort: one => one.name},
            {
                title: 'Messages',
                right: true,
                cell: one => count(one.messages) + (one.isPart ? '+' : ''),
                sort: one => one.messages,
            },
            {title: 'Oldest', cell: one => since(one.oldest), sort: one => one.oldest},
        ],
    });
    const more = actionButton('Count them all', async () => {
        parts = ALL_PARTS;
        await countQueues();
    });
    more.hidden = true;
    const callsLink = h('a', {href: href(['queues'])}, 'Asynchronous calls');
    replace(
        page.el,
        h('h1', 'Queues'),
        isRemote()
            ? h(
                  'div.bar',
                  actionButton('Refresh', () => refresh(true)),
              )
            : null,
        faults.element,
        split([h('nav.queues-calls', {'aria-label': 'Calls'}, callsLink), list.element, more], place),
    );

    // A part of the table each time, all of it when asked for.
    const countQueues = oneAtATime(() =>
        faults.run(async () => {
            const {queues, isPart} = await readQueues(parts);
            more.hidden = !isPart;
            list.update(queues.map(one => ({...one, isPart})));
        }),
    );
    async function refresh(wanted = false) {
        if (parts === 1 || wanted) await countQueues();
        await detail?.refresh();
    }
    function show() {
        const name = route.path[1] ?? null;
        list.select(name);
        if (name === null) callsLink.setAttribute('aria-current', 'page');
        else callsLink.removeAttribute('aria-current');
        if (!detail || detail.name !== name) {
            detail = {name, ...(name === null ? callsDetail(countQueues) : queueDetail(name, countQueues))};
            replace(place, detail.element);
            page.title(name ?? 'Queues');
        }
        detail.update(route);
    }
    show();
    page.every(paceMs(), () => refresh());
    return {
        update(to) {
            route = to;
            show();
        },
    };
}

// ---- asynchronous calls ----

const STATES = [
    ['', 'all'],
    ['waiting', 'waiting'],
    ['due', 'due'],
    ['running', 'running'],
];

function callsDetail() {
    const faults = faultPlace(),
        sums = h('p', {role: 'status'}),
        place = h('div');
    let query = {},
        calls = [],
        next = null,
        pages = 1,
        shown = '';
    const chooser = select(STATES, '', {
        'aria-label': 'State',
        onchange: () => go(['queues'], {...query, state: chooser.value}, {quietly: true}),
    });
    const list = grid({
        label: 'Asynchronous calls',
        key: call => call.id,
        href: call => href(['queues'], {...query, call: call.id}),
        onmark: paint,
        empty: empty(
            'No asynchronous call waits',
            'Calls that nobody waits for stand here until they are over: ' +
                'those of schedules, those that a pattern makes, and those made with --async.',
            [
                'quipu function invoke --async bill {}',
                `aws --endpoint-url ${location.origin} lambda invoke --function-name bill --invocation-type Event ` +
                    '--payload {} /dev/null',
            ],
        ),
        columns: [
            {title: 'Accepted', cell: call => since(call.accepted), sort: call => call.accepted},
            {title: 'State', cell: call => state(call.kind, call.state), sort: call => call.state},
            {title: 'Calls', cell: call => targetWords(call.function), sort: call => call.function},
            {title: 'Failed attempts', right: true, cell: call => count(call.attempts), sort: call => call.attempts},
            {
                title: 'Next',
                cell: call => (call.state === 'waiting' ? since(call.due) : ''),
                sort: call => call.due,
            },
            {title: 'Event', cell: call => call.payload.slice(0, 120)},
        ],
    });
    const drop = changeButton(
        'Drop marked …',
        async () => {
            const some = calls.filter(call => list.marked.has(call.id));
            let kept = 0;
            const done = await confirmTyped({
                title: `Drop ${plural(some.length, 'call')}?`,
                name: some[0].function.slice(0, 60),
                sentence: 'They will not be made. This cannot be undone. A call that runs now is left alone.',
                words: 'Drop',
                job: async () => {
                    for (const call of some) if (!(await dropCall(call))) kept++;
                },
            });
            if (!done) return;
            list.clearMarks();
            await refresh();
            if (kept) faults.show(new Error(`${plural(kept, 'call')} had begun, or ended, meanwhile.`));
        },
        {class: 'danger'},
    );
    const more = actionButton('More', () => {
        pages++;
        return refresh();
    });
    const element = h(
        'section.function',
        h('div.bar', h('h2.grow', 'Asynchronous calls'), chooser, drop),
        sums,
        faults.element,
        list.element,
        more,
        place,
        teach({
            CLI: shell('quipu', 'scan', ownTable('invocations')),
            AWS: shell('aws', '--endpoint-url', location.origin, 'lambda', 'invoke', '--invocation-type', 'Event'),
        }),
    );
    function paint() {
        drop.hidden = !list.marked.size;
        more.hidden = next === null;
        list.update(query.state ? calls.filter(call => call.state === query.state) : calls);
        const of = words => count(calls.filter(call => call.state === words).length);
        text(
            sums,
            `${of('waiting')} waiting, ${of('due')} due, ${of('running')} running` +
                (next === null ? '' : ' of those that are shown'),
        );
        const call = query.call ? calls.find(one => one.id === query.call) : null;
        const now = call ? `${call.id} ${call.state} ${call.attempts} ${call.due}` : (query.call ?? '');
        if (now === shown) return;
        shown = now;
        replace(place, call ? callFacts(call) : query.call ? h('p.dim', 'This call is over.') : null);
    }
    const refresh = oneAtATime(() =>
        faults.run(async () => {
            const found = [];
            let from = null;
            for (let i = 0; i < pages; i++) {
                const page = await readCalls({next: from});
                found.push(...page.calls);
                from = page.next;
                if (from === null) break;
            }
            calls = found.sort((a, b) => a.due - b.due);
            next = from;
            paint();
        }),
    );
    return {
        element,
        refresh,
        update(route) {
            query = route.query;
            chooser.value = query.state ?? '';
            list.select(query.call ?? null);
            paint();
        },
    };
}

function callFacts(call) {
    const name = call.function.split(':')[0];
    const isFunction = /^[\w-]+(:[\w$-]+)?$/.test(call.function);
    return h(
        'section.letter',
        h('h3', 'Call ', h('code', call.id)),
        facts([
            ['State', state(call.kind, call.state)],
            [
                'Calls',
                isFunction ? h('a', {href: href(['functions', name])}, call.function) : targetWords(call.function),
            ],
            ['Accepted', time(call.accepted)],
            ['Next', time(call.due)],
            ['Failed attempts', count(call.attempts)],
            ['Held by', call.owner],
        ]),
        isFunction
            ? h(
                  'div.bar',
                  h('a', {href: href(['functions', name, 'logs'], {call: call.id})}, 'Its log'),
                  h(
                      'a',
                      {href: href(['functions', name, 'invoke']), onclick: () => carry(name, call.payload)},
                      'Invoke with this event',
                  ),
              )
            : null,
        h('h3', 'Event'),
        json(pretty(call.payload)),
        call.parts > 1 ? h('p.dim', 'This is the beginning of a long event.') : null,
    );
}

// ---- one queue ----

function queueDetail(name, changed) {
    const place = h('div');
    let query = {},
        shown = null;
    const letters = letterList({
        queue: name,
        load: next => readQueue(name, next),
        letterHref: one => href(['queues', name], {id: one.id}),
        onchange: changed,
        empty: h('p.dim', 'The queue is empty.'),
    });
    function show() {
        const one = query.id ? letters.find(name, query.id) : null;
        if ((one?.id ?? null) === shown) return;
        shown = one?.id ?? null;
        replace(place, one ? letterFacts(one, sent) : null);
    }
    async function sent(outcome) {
        go(['queues', name], {}, {quietly: true});
        await letters.refresh();
        show();
        replace(place, outcome);
        await changed();
    }
    letters.refresh().then(show);
    return {
        element: h(
            'section.function',
            h('h2', name),
            letters.element,
            place,
            teach({
                CLI: shell('quipu', 'queue', 'redrive', name),
                curl: shell('curl', '-X', 'POST', `${location.origin}/v1/queues/${encodeURIComponent(name)}/redrive`),
            }),
        ),
        refresh: async () => {
            await letters.look();
            show();
        },
        update(route) {
            query = route.query;
            show();
        },
    };
}
