// Keys, and the resources with the words of the command line.

import {h, replace} from '../dom.js';
import {operations} from '../operation.js';
import {faultPlace, input} from '../parts.js';
import {go} from '../route.js';

const KEYS = [
    ['Ctrl K', 'go to any table, function, job, view'],
    ['Tab, ↑ ↓', 'move through a list'],
    ['Enter', 'open what is chosen'],
    ['Esc', 'leave a dialog'],
    ['Back', 'the view before: every state has its URL'],
];

export async function open(page) {
    const faults = faultPlace();
    const list = h('div.stack');
    let all = {};
    const find = input({
        placeholder: 'Find',
        'aria-label': 'Find in the help',
        value: page.route.query.find ?? '',
        oninput: () => go(['help'], {find: find.value}, {quietly: true}),
    });
    function show() {
        const wanted = find.value.trim().toLowerCase();
        const rows = Object.values(all).filter(
            one => one.command && `${one.command} ${one.summary} ${one.path}`.toLowerCase().includes(wanted),
        );
        replace(
            list,
            rows.map(one =>
                h(
                    'details',
                    h('summary', h('code', `quipu ${one.command.split(' -> ')[0]}`), ' ', one.summary),
                    h('p', h('code', `${one.method} ${one.path}`)),
                    h(
                        'dl.facts',
                        [...one.queries.map(each => [each.name, each.schema]), ...Object.entries(one.members)].map(
                            ([name, schema]) => h('div', h('dt', h('code', name)), h('dd', schema.description)),
                        ),
                    ),
                ),
            ),
        );
    }
    replace(
        page.el,
        h('h1', 'Help'),
        h(
            'p',
            'Everything here is also a command: each view shows its line below, to copy. ',
            h('code', 'quipu --help'),
            ' lists them all.',
        ),
        h(
            'dl.facts',
            KEYS.map(([key, words]) => h('div', h('dt', h('kbd', key)), h('dd', words))),
        ),
        h('div.bar', h('h2.grow', 'Patterns'), find),
        faults.element,
        list,
    );
    await faults.run(async () => {
        all = await operations();
        show();
    });
    return {update: show};
}
