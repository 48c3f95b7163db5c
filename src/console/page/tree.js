// An editor of an item: every value with its type, nested as deep as it is; numbers stay the text that they are.

import {h, replace} from './dom.js';
import {button, input, select} from './parts.js';
import {NUMBER, TYPES, bytesOf, typeOf} from './value.js';

const SHOWN = 100; // members of a container that are drawn at first
const DIGITS = 38;
const SETS = {SS: 'S', NS: 'N', BS: 'B'};
const isContainer = type => type === 'M' || type === 'L' || type in SETS;

// ---- the model: {type, text} or {type, members: [{name, node}]} ----

function nodeOf(value) {
    const type = typeOf(value),
        inner = value[type];
    if (type === 'M') return {type, members: Object.entries(inner).map(([name, one]) => ({name, node: nodeOf(one)}))};
    if (type === 'L') return {type, members: inner.map(one => ({name: '', node: nodeOf(one)}))};
    if (type in SETS) return {type, members: inner.map(one => ({name: '', node: {type: SETS[type], text: one}}))};
    return {type, text: type === 'NULL' ? '' : String(inner)};
}

function valueOf(node, path) {
    const {type, text, members} = node;
    const refuse = sentence => {
        throw new Error(`${path}: ${sentence}`);
    };
    if (type === 'M') return {M: itemOf(members, path)};
    if (type === 'L') return {L: members.map((one, i) => valueOf(one.node, `${path}[${i}]`))};
    if (type in SETS) {
        const list = members.map((one, i) => Object.values(valueOf(one.node, `${path}[${i}]`))[0]);
        if (!list.length) refuse('a set has at least one member.');
        const twice = list.find((one, i) => list.indexOf(one) !== i);
        if (twice !== undefined) refuse(`“${twice}” is in the set twice.`);
        return {[type]: list};
    }
    if (type === 'N') {
        const written = text.trim();
        if (!NUMBER.test(written)) refuse(`“${text}” is no number.`);
        const digits = written
            .replace(/[eE].*$/, '')
            .replace(/[-.]/g, '')
            .replace(/^0+/, '')
            .replace(/0+$/, '');
        if (digits.length > DIGITS) refuse(`a number has at most ${DIGITS} digits, and this has ${digits.length}.`);
        return {N: written};
    }
    if (type === 'B' && !/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text))
        refuse('binary is written in base64, and this is not.');
    if (type === 'BOOL') return {BOOL: text === 'true'};
    return type === 'NULL' ? {NULL: true} : {[type]: text};
}
function itemOf(members, path) {
    const names = members.map(one => one.name);
    const where = name => (path ? `${path}.${name}` : name);
    if (names.some(name => name === '')) throw new Error(`${path || 'The item'}: a name is empty.`);
    const twice = names.find((name, i) => names.indexOf(name) !== i);
    if (twice !== undefined) throw new Error(`“${where(twice)}” is there twice.`);
    return Object.fromEntries(members.map(({name, node}) => [name, valueOf(node, where(name))]));
}

// What can be kept of a value when its type changes is kept.
function retype(node, type) {
    const {text = '', members = []} = node;
    delete node.text;
    delete node.members;
    node.type = type;
    if (isContainer(type)) {
        const base = SETS[type];
        const kept = members.length || !text ? members : [{name: '', node: {type: base ?? 'S', text}}];
        node.members = kept
            .filter(one => !base || one.node.text !== undefined)
            .map((one, i) => ({
                name: type === 'M' ? one.name || `member${i + 1}` : '',
                node: base ? {type: base, text: one.node.text} : one.node,
            }));
    } else {
        const first = members[0]?.node.text ?? text;
        node.text = type === 'BOOL' ? String(first === 'true') : type === 'NULL' ? '' : first;
    }
}

// ---- the editor ----

// keys: names with their types, which stay as they are; isNew: whether their values may be written.
export function treeEditor(item, {keys, isNew, locked = false, onchange}) {
    const root = {type: 'M', members: Object.entries(item).map(([name, value]) => ({name, node: nodeOf(value)}))};
    const order = new Map(keys.map((key, i) => [key.name, i]));
    const rank = one => order.get(one.name) ?? keys.length;
    root.members.sort((a, b) => rank(a) - rank(b));
    const element = h('div.tree');

    function container(node, path, isRoot) {
        const list = h('ul.tree-list');
        const isSet = node.type in SETS;
        let limit = SHOWN;
        function draw() {
            replace(
                list,
                node.members.slice(0, limit).map((member, i) => line(member, i)),
                node.members.length > limit
                    ? h(
                          'li',
                          button(
                              `${node.members.length - limit} more`,
                              () => {
                                  limit += SHOWN * 5;
                                  draw();
                              },
                              {class: 'small'},
                          ),
                      )
                    : null,
                locked
                    ? null
                    : h('li', button(node.type === 'M' ? 'Add an attribute' : 'Add a member', add, {class: 'small'})),
            );
        }
        function add() {
            node.members.push({name: '', node: {type: SETS[node.type] ?? 'S', text: ''}});
            limit = Math.max(limit, node.members.length);
            draw();
            onchange?.();
            list.querySelectorAll(':scope > li > .tree-line')
                .item(node.members.length - 1)
                ?.querySelector('input')
                ?.focus();
        }
        function line(member, i) {
            const key = isRoot ? keys.find(one => one.name === member.name) : null;
            const label = `${path}${node.type === 'M' ? (path ? '.' : '') + (member.name || 'new') : `[${i}]`}`;
            const nested = h('div.tree-nested');
            const value = h('span.tree-value');
            const isFixed = locked || (key && !isNew);
            const name =
                node.type === 'M'
                    ? input({
                          value: member.name,
                          class: 'tree-name mono',
                          readOnly: locked || !!key,
                          'aria-label': `Name of ${label}`,
                          oninput: event => {
                              member.name = event.target.value;
                              onchange?.();
                          },
                      })
                    : h('span.tree-place.dim', isSet ? '·' : i);
            const type = isSet
                ? null
                : select(Object.entries(TYPES), member.node.type, {
                      'aria-label': `Type of ${label}`,
                      disabled: locked || !!key,
                      onchange: event => {
                          retype(member.node, event.target.value);
                          show(true);
                          onchange?.();
                      },
                  });
            function show(isOpen) {
                replace(value, scalar(member.node, label, isFixed));
                replace(nested);
                if (!isContainer(member.node.type)) return;
                const number = member.node.members.length;
                const inner = h('div', {hidden: true});
                const words = `${number} ${number === 1 ? 'member' : 'members'}`;
                const toggle = button('', () => open(inner.hidden), {
                    class: 'small',
                    'aria-label': `${words} of ${label}`,
                });
                function open(is) {
                    if (is && !inner.hasChildNodes()) inner.append(container(member.node, label, false));
                    inner.hidden = !is;
                    toggle.setAttribute('aria-expanded', String(is));
                    toggle.textContent = `${is ? '▾' : '▸'} ${words}`;
                }
                replace(value, toggle);
                nested.append(inner);
                open(isOpen);
            }
            show(member.node.members?.length <= 10);
            const remove =
                key || locked
                    ? null
                    : button(
                          '✕',
                          () => {
                              node.members.splice(i, 1);
                              draw();
                              onchange?.();
                          },
                          {class: 'small', 'aria-label': `Remove ${label}`},
                      );
            return h('li', h('div.tree-line', name, type, value, remove), nested);
        }
        draw();
        return list;
    }

    function scalar(node, label, isFixed) {
        const change = event => {
            node.text = event.target.value;
            onchange?.();
        };
        if (node.type === 'NULL') return h('span.dim', 'null');
        if (node.type === 'BOOL')
            return select(['true', 'false'], node.text, {
                'aria-label': `Value of ${label}`,
                onchange: change,
                disabled: isFixed,
            });
        const isLong = node.type === 'S' && (node.text.length > 60 || node.text.includes('\n'));
        const field = h(isLong ? 'textarea' : 'input', {
            value: node.text,
            class: 'mono',
            spellcheck: 'false',
            autocomplete: 'off',
            readOnly: isFixed,
            rows: isLong ? 3 : null,
            inputmode: node.type === 'N' ? 'decimal' : null,
            'aria-label': `Value of ${label}`,
            oninput: change,
        });
        return node.type === 'B' ? binary(node, field, label, isFixed) : field;
    }
    function binary(node, field, label, isFixed) {
        const size = h('span.dim', `${bytesOf(node.text)} bytes`);
        field.addEventListener('input', () => (size.textContent = `${bytesOf(node.text)} bytes`));
        const file = h('input.away', {
            type: 'file',
            tabindex: '-1',
            'aria-label': `File for ${label}`,
            onchange: async () => {
                if (!file.files[0]) return;
                node.text = field.value = base64(new Uint8Array(await file.files[0].arrayBuffer()));
                size.textContent = `${bytesOf(node.text)} bytes`;
                onchange?.();
            },
        });
        return [field, size, isFixed ? null : [button('File…', () => file.click(), {class: 'small'}), file]];
    }

    replace(element, container(root, '', true));
    return {element, read: () => itemOf(root.members, '')};
}

function base64(data) {
    let letters = '';
    for (let i = 0; i < data.length; i += 8192) letters += String.fromCharCode(...data.subarray(i, i + 8192));
    return btoa(letters);
}
