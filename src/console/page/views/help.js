// Keys, and all commands with the words of the command line; those of patterns with their requests.

import {request} from '../api.js';
import {h, replace} from '../dom.js';
import {operations} from '../operation.js';
import {faultPlace, input, json} from '../parts.js';
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
    let commands = [],
        requests = new Map(); // of a command's name
    const find = input({
        placeholder: 'Find',
        'aria-label': 'Find in the help',
        value: page.route.query.find ?? '',
        oninput: () => go(['help'], {find: find.value}, {quietly: true}),
    });
    // What is in a command is made when it is opened.
    function entry({name, summary, help}) {
        const inside = h('div.stack');
        return h(
            'details',
            {
                ontoggle: () => {
                    if (inside.hasChildNodes()) return;
                    const one = requests.get(name);
                    replace(inside, one ? h('p', h('code', `${one.method} ${one.path}`)) : null, json(help));
                },
            },
            h('summary', h('code', `quipu ${name}`), ' ', summary),
            inside,
        );
    }
    function show() {
        const wanted = find.value.trim().toLowerCase();
        const words = one => `quipu ${one.name} ${one.summary} ${requests.get(one.name)?.path ?? ''}`.toLowerCase();
        replace(list, commands.filter(one => words(one).includes(wanted)).map(entry));
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
        h('div.bar', h('h2.grow', 'Commands'), find),
        faults.element,
        list,
    );
    await faults.run(async () => {
        const [help, all] = await Promise.all([request('GET', '/console/help'), operations()]);
        ({commands} = help);
        const nameOf = one => one.command.split(' ').slice(0, 2).join(' ');
        requests = new Map(Object.values(all).map(one => [nameOf(one), one]));
        show();
    });
    return {update: show};
}
