// One item: read, edited, saved on the condition of what was read, deleted, copied.

import {dynamo} from '../api.js';
import {diffView} from '../diff.js';
import {h, replace, text} from '../dom.js';
import {changeButton, button, copy, faultPlace, menu, shell, whyNoChange} from '../parts.js';
import {parse, print} from '../json.js';
import {Placeholders} from '../phrase.js';
import {meter} from '../price.js';
import {href} from '../route.js';
import {sdk} from '../sdk.js';
import {treeEditor} from '../tree.js';
import {
    cellText,
    isTyped,
    itemFromPlain,
    itemToPlain,
    keyFromWords,
    keyOf,
    keyWords,
    mergeValues,
    sameValue,
} from '../value.js';

const CONDITIONS = 100; // attributes that one condition names: expressions have a longest length

// Entries of a menu: [[words, action], ...]
export function copyAs(name, read) {
    const lines = change => () => copy(read().map(change).join('\n'));
    return [
        ['JSON', lines(item => print(itemToPlain(item), read().length > 1 ? 0 : 2))],
        ['DynamoDB JSON', lines(item => print(item, read().length > 1 ? 0 : 2))],
        ['CLI', lines(item => shell('quipu', 'put', name, print(itemToPlain(item), 0)))],
        ['boto3', lines(item => sdk('PutItem', {TableName: name, Item: item}).boto3)],
        ['JavaScript', lines(item => sdk('PutItem', {TableName: name, Item: item}).JavaScript)],
    ];
}

// The request that makes `old` to `now`, if it is still what it was. An attribute that somebody else added meanwhile
// stays: only what was changed here is written.
function saveRequest(name, keys, old, now) {
    const holders = new Placeholders();
    if (!old)
        return [
            'PutItem',
            {
                TableName: name,
                Item: now,
                ConditionExpression: `attribute_not_exists(${holders.name(keys[0].name)})`,
                ...holders.members(),
            },
        ];
    const isKey = attribute => keys.some(key => key.name === attribute);
    const all = [...new Set([...Object.keys(old), ...Object.keys(now)])].filter(one => !isKey(one));
    const changed = all.filter(one => !sameValue(old[one], now[one]));
    const set = changed.filter(one => now[one]).map(one => `${holders.name(one)} = ${holders.value(now[one])}`);
    const gone = changed.filter(one => !now[one]).map(one => holders.name(one));
    const watched = all.length > CONDITIONS ? changed : all;
    const conditions = [keys[0].name, ...watched].map(one =>
        old[one] ? `${holders.name(one)} = ${holders.value(old[one])}` : `attribute_not_exists(${holders.name(one)})`,
    );
    return [
        'UpdateItem',
        {
            TableName: name,
            Key: keyOf(old, keys),
            UpdateExpression:
                [set.length ? `SET ${set.join(', ')}` : '', gone.length ? `REMOVE ${gone.join(', ')}` : '']
                    .filter(Boolean)
                    .join(' ') || undefined,
            ConditionExpression: conditions.join(' AND '),
            ...holders.members(),
            ReturnValues: 'ALL_NEW',
        },
    ];
}

// words: the key as in the URL; null for a new item. onedit(is): whether there is something that is not saved.
export async function itemPanel({place, table, keys, words, close, onedit, onsave, ondelete}) {
    const {name, signal} = table;
    const faults = faultPlace();
    const locked = !!whyNoChange();
    const isNew = !words;
    const costs = meter();
    let old = null, // as it was read
        form = 'tree',
        editor = null;

    const editorPlace = h('div.item-editor');
    const conflictPlace = h('div.item-conflict');
    const status = h('span.dim', {role: 'status'});
    const FORMS = {tree: 'Values', json: 'JSON', typed: 'DynamoDB JSON'};
    const formButtons = Object.entries(FORMS).map(([kind, label]) =>
        button(label, () => faults.run(() => show(kind, editor.read())), {dataset: {kind}, class: 'small'}),
    );
    const changed = () => {
        text(status, 'changed');
        onedit(true);
    };
    function show(kind, item) {
        form = kind;
        for (const one of formButtons) one.setAttribute('aria-pressed', String(one.dataset.kind === kind));
        if (kind === 'tree') editor = treeEditor(item, {keys, isNew, locked, onchange: changed});
        else {
            const area = h('textarea.code.item-raw', {
                value: print(kind === 'json' ? itemToPlain(item) : item),
                spellcheck: 'false',
                readOnly: locked,
                'aria-label': FORMS[kind],
                oninput: changed,
            });
            editor = {element: area, read: () => readText(kind, area.value)};
        }
        replace(editorPlace, editor.element);
    }
    function readText(kind, written) {
        const value = parse(written);
        if (kind === 'json') return itemFromPlain(value);
        if (!isTyped(value)) throw new Error('An item in DynamoDB’s JSON is {"name": {"S": "text"}, ...}.');
        return value;
    }

    async function read() {
        const reply = await dynamo(
            'GetItem',
            {
                TableName: name,
                Key: keyFromWords(keys, words),
                ConsistentRead: true,
                ReturnConsumedCapacity: 'TOTAL',
            },
            {signal},
        );
        costs.add(reply.ConsumedCapacity);
        text(status, costs.words());
        return reply.Item ?? null;
    }
    async function save(asNew = false) {
        const now = editor.read();
        for (const key of keys) if (!now[key.name]) throw new Error(`The key “${key.name}” is missing.`);
        const base = asNew || isNew ? null : old;
        if (base && keys.some(key => !sameValue(base[key.name], now[key.name])))
            throw new Error('A key cannot be changed: “Save as new” makes another item.');
        const [operation, request] = saveRequest(name, keys, base, now);
        try {
            const reply = await dynamo(operation, {
                ...request,
                ReturnConsumedCapacity: 'TOTAL',
                ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
            });
            costs.add(reply.ConsumedCapacity, true);
            old = reply.Attributes ?? now;
        } catch (error) {
            if (error.type !== 'ConditionalCheckFailedException') throw error;
            conflict(error.body?.Item ?? null, base, now);
            return;
        }
        replace(conflictPlace);
        onedit(false);
        if (!isNew && !asNew) show(form, old);
        text(status, `saved · ${costs.words()}`);
        onsave(old, isNew || asNew);
    }
    // Somebody else was here. Both sides, and what to do.
    function conflict(theirs, base, mine) {
        const take = item => {
            old = item;
            onedit(false);
            replace(conflictPlace);
            show(form, item);
        };
        const again = item =>
            faults.run(async () => {
                old = theirs;
                show(form, item);
                await save(!theirs);
            });
        // What was changed here, upon what is there now. Where both have changed the same value, one looks before it is
        // saved.
        const merge = () => {
            const {value, clashes} = mergeValues({M: base}, {M: theirs}, {M: mine});
            if (!clashes.length) return again(value.M);
            old = theirs;
            show(form, value.M);
            onedit(true);
            const said = ({path, theirs: one}) => {
                const was = one ? `was ${cellText(one)}` : 'is gone';
                return h('p', `Both have changed ${path}: yours stands here, theirs ${was}.`);
            };
            replace(conflictPlace, h('h3', 'Merged, not saved yet'), clashes.map(said));
            return undefined;
        };
        replace(
            conflictPlace,
            h('h3', theirs ? (base ? 'Changed meanwhile' : 'There is one already') : 'Deleted meanwhile'),
            theirs
                ? diffView(itemToPlain(theirs), itemToPlain(mine), {oldWords: 'there now', newWords: 'yours'})
                : h('p', 'Nothing is there any more.'),
            h(
                'div.bar',
                theirs && base ? changeButton('Merge: my changes upon theirs', merge) : null,
                changeButton(theirs ? 'Overwrite with mine' : 'Put mine there again', () => again(mine), {
                    class: 'danger',
                }),
                theirs && base ? button('Take theirs', () => take(theirs)) : null,
                button('Go on editing', () => replace(conflictPlace)),
            ),
        );
        conflictPlace.querySelector('button').focus();
    }

    if (words) {
        replace(place, h('p.dim', 'reading'));
        old = await read().catch(error => {
            faults.show(error);
            return null;
        });
    }
    const heading = h('h2', isNew ? 'New item' : (words.filter(one => one !== undefined).join(' · ') ?? ''));
    const head = h('div.bar', heading, button('Close', close, {class: 'small', 'aria-label': 'Close the item'}));
    if (words && !old) {
        if (!faults.element.hasChildNodes()) faults.show(new Error('There is no such item (any more).'));
        replace(place, head, faults.element);
        return;
    }
    show('tree', old ?? Object.fromEntries(keys.map(key => [key.name, {[key.type]: ''}])));
    const [item, range] = old ? keyWords(old, keys) : [];
    replace(
        place,
        head,
        h(
            'div.bar',
            formButtons,
            old
                ? menu(
                      'Copy as',
                      copyAs(name, () => [old]),
                      {class: 'small'},
                  )
                : null,
            old ? h('a', {href: href(['tables', name, 'history'], {key: item, range})}, 'History') : null,
        ),
        editorPlace,
        conflictPlace,
        faults.element,
        h(
            'div.bar',
            changeButton(isNew ? 'Create' : 'Save', () => faults.run(() => save()), {
                class: 'primary',
            }),
            isNew ? null : changeButton('Save as new', () => faults.run(saveAsNew)),
            isNew
                ? null
                : changeButton('Delete', () => faults.run(() => ondelete(keyOf(old, keys))), {
                      class: 'danger',
                  }),
            status,
        ),
    );
    // Another key has to be written: the form of a new item, filled with this one.
    function saveAsNew() {
        const now = editor.read();
        if (keys.some(key => !sameValue(old[key.name], now[key.name]))) return save(true);
        editor = treeEditor(now, {keys, isNew: true, locked, onchange: changed});
        form = 'tree';
        replace(editorPlace, editor.element);
        text(status, 'Write another key, then “Save as new” again.');
        editorPlace.querySelector('input:not([readonly])')?.focus();
        return undefined;
    }
    if (isNew) editorPlace.querySelector('input:not([readonly])')?.focus();
}
