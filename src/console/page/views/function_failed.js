// What failed of a function: calls that wait for another attempt, and those that were given up, with their events.

import {paceMs} from '../calls.js';
import {h, replace} from '../dom.js';
import {every, faultPlace, grid, shell, since, state, teach} from '../parts.js';
import {readCalls} from '../waiting.js';
import {letterFacts, letterList, pretty, readFailed, carry} from '../letters.js';
import {href} from '../route.js';

export function openFailed({el, name, route, signal}) {
    const faults = faultPlace();
    let query = route.query;
    const waiting = grid({
        label: 'Calls that wait for another attempt',
        key: call => call.id,
        empty: h('p.dim', 'No call waits for another attempt.'),
        columns: [
            {title: 'Accepted', cell: call => since(call.accepted)},
            {title: 'State', cell: call => state(call.kind, call.state)},
            {title: 'Failed attempts', right: true, cell: call => String(call.attempts)},
            {title: 'Next', cell: call => since(call.due)},
            {
                title: 'Event',
                once: true,
                cell: call =>
                    h(
                        'a',
                        {
                            href: href(['functions', name, 'invoke']),
                            title: pretty(call.payload),
                            onclick: () => carry(name, call.payload),
                        },
                        'invoke with it',
                    ),
            },
            {
                title: 'Log',
                once: true,
                cell: call => h('a', {href: href(['functions', name, 'logs'], {call: call.id})}, 'log'),
            },
        ],
    });
    const letters = letterList({
        load: next => readFailed(name, next),
        letterHref: one => href(['functions', name, 'failed'], {queue: one.queue, id: one.id}),
        empty: h('p.dim', 'No message of a queue tells of a failed call of this function.'),
    });
    const one = h('div');
    replace(
        el,
        h('h3', 'Waiting for another attempt'),
        faults.element,
        waiting.element,
        h('h3', 'Given up'),
        letters.element,
        one,
        h(
            'p.dim',
            'A call that fails for good is kept where a queue is named for it: by the function (Settings), its ' +
                'trigger or schedule. A call whose caller waits for the answer is only in the log.',
        ),
        teach({
            CLI: 'quipu queue ls',
            AWS: shell(
                'aws',
                '--endpoint-url',
                location.origin,
                'lambda',
                'get-function-event-invoke-config',
                '--function-name',
                name,
            ),
        }),
    );
    function show() {
        const letter = query.id ? letters.find(query.queue, query.id) : null;
        if (letter) replace(one, letterFacts(letter, sent));
        else replace(one, query.id ? h('p', {role: 'status'}, 'The message is not in its queue any more.') : null);
    }
    async function sent(outcome) {
        await letters.refresh();
        replace(one, outcome);
    }
    every(
        paceMs(),
        () =>
            faults.run(async () => {
                const page = await readCalls({name});
                waiting.update(page.calls);
            }),
        signal,
    );
    letters.refresh().then(show);
    return {
        update(to) {
            query = to.query;
            show();
        },
    };
}
