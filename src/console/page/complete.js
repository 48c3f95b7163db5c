// Completion of the word before the caret, for a line of text. words(part) answers what could stand there.

import {h, newId, replace} from './dom.js';

const MOST = 12;

export function completing(line, words) {
    const list = h('ul.complete', {
        role: 'listbox',
        id: newId('complete'),
        'aria-label': 'Completions',
        hidden: true,
    });
    let found = [],
        at = -1;
    const attributes = {
        role: 'combobox',
        'aria-autocomplete': 'list',
        'aria-expanded': 'false',
        'aria-controls': list.id,
    };
    for (const [name, value] of Object.entries(attributes)) line.setAttribute(name, value);

    const part = () => /[\w.-]*$/.exec(line.value.slice(0, line.selectionStart))[0];
    function show() {
        const typed = part();
        found = typed
            ? words(typed)
                  .filter(word => word !== typed)
                  .slice(0, MOST)
            : [];
        at = -1;
        draw();
    }
    function draw() {
        list.hidden = !found.length;
        line.setAttribute('aria-expanded', String(!list.hidden));
        if (at >= 0) line.setAttribute('aria-activedescendant', `${list.id}-${at}`);
        else line.removeAttribute('aria-activedescendant');
        replace(
            list,
            found.map((word, i) =>
                h(
                    'li',
                    {
                        role: 'option',
                        id: `${list.id}-${i}`,
                        'aria-selected': String(i === at),
                        onpointerdown: event => {
                            event.preventDefault(); // the line keeps the focus
                            take(word);
                        },
                    },
                    word,
                ),
            ),
        );
    }
    function take(word) {
        const end = line.selectionStart,
            begin = end - part().length;
        line.setRangeText(word, begin, end, 'end');
        found = [];
        draw();
        line.dispatchEvent(new Event('change'));
    }
    line.addEventListener('input', show);
    line.addEventListener('blur', () => {
        found = [];
        draw();
    });
    line.addEventListener('keydown', event => {
        if (!found.length) return;
        if (event.key === 'ArrowDown') at = (at + 1) % found.length;
        else if (event.key === 'ArrowUp') at = (at + found.length - 1) % found.length;
        else if (event.key === 'Escape') found = [];
        else if (event.key === 'Tab' && !event.shiftKey) {
            take(found[Math.max(at, 0)]);
            event.preventDefault();
            return;
        } else if (event.key === 'Enter' && at >= 0) {
            take(found[at]);
            event.preventDefault();
            return;
        } else return;
        event.preventDefault();
        draw();
    });
    return h('span.complete-box.grow', line, list);
}
