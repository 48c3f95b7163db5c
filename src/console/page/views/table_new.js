// The form of a new table, and its parts that the settings of a table use as well.

import {dynamo} from '../api.js';
import {h, replace} from '../dom.js';
import {button, changeButton, check, faultPlace, field, input, select, shell, teach} from '../parts.js';
import {go, href} from '../route.js';
import {sdk} from '../sdk.js';
import {VIEWS} from '../table.js';

const TYPES = [
    ['S', 'text'],
    ['N', 'number'],
    ['B', 'binary'],
];
const PROJECTIONS = [
    ['ALL', 'all attributes'],
    ['KEYS_ONLY', 'keys only'],
    ['INCLUDE', 'keys and these'],
];
const CLI_VIEWS = {NEW_AND_OLD_IMAGES: 'new-and-old', NEW_IMAGE: 'new', OLD_IMAGE: 'old', KEYS_ONLY: 'keys'};

// A key's name and type, side by side. read() answers {name, type} or null when no name was typed.
export function keyFields(label, {optional = false, of = ''} = {}) {
    const name = input({'aria-label': `${of}${label}`, placeholder: optional ? `${label} (none)` : label});
    const type = select(TYPES, 'S', {'aria-label': `Type of ${of}${label}`});
    return {
        element: h('span.tables-key', name, type),
        read: () => (name.value.trim() ? {name: name.value.trim(), type: type.value} : null),
    };
}

// One index. read() answers {isLocal, hash, range, definition} as CreateTable has it.
export function indexFields({withLocal = true, onremove = null} = {}) {
    const kind = select(['global', 'local'], 'global', {'aria-label': 'Kind of index', onchange: change});
    const name = input({placeholder: 'index name', 'aria-label': 'Index name'});
    const hash = keyFields('hash key', {of: 'index '}),
        range = keyFields('range key', {optional: true, of: 'index '});
    const projection = select(PROJECTIONS, 'ALL', {'aria-label': 'Attributes in the index', onchange: change});
    const attributes = input({
        placeholder: 'Song, Year',
        'aria-label': 'Other attributes in the index',
        hidden: true,
    });
    function change() {
        hash.element.hidden = kind.value === 'local';
        attributes.hidden = projection.value !== 'INCLUDE';
    }
    return {
        element: h(
            'div.tables-index.bar',
            withLocal ? kind : null,
            name,
            hash.element,
            range.element,
            projection,
            attributes,
            onremove ? button('Remove', onremove, {class: 'small'}) : null,
        ),
        read(tableHash) {
            const isLocal = kind.value === 'local';
            const keys = [isLocal ? tableHash : hash.read(), range.read()];
            if (!name.value.trim()) throw new Error('An index needs a name.');
            if (!keys[0]) throw new Error(`The index “${name.value.trim()}” needs a hash key.`);
            if (isLocal && !keys[1]) throw new Error(`The local index “${name.value.trim()}” needs a range key.`);
            const listed = attributes.value
                .split(',')
                .map(one => one.trim())
                .filter(Boolean);
            return {
                isLocal,
                keys: keys.filter(Boolean),
                definition: {
                    IndexName: name.value.trim(),
                    KeySchema: keySchema(keys),
                    Projection: {
                        ProjectionType: projection.value,
                        NonKeyAttributes: projection.value === 'INCLUDE' ? listed : undefined,
                    },
                },
            };
        },
    };
}

export const keySchema = ([hash, range]) =>
    [
        {AttributeName: hash.name, KeyType: 'HASH'},
        range ? {AttributeName: range.name, KeyType: 'RANGE'} : null,
    ].filter(Boolean);

// Each attribute once: the service refuses one that is given twice, or with two types.
export const definitions = keys => {
    const types = new Map();
    for (const {name, type} of keys) {
        if (types.has(name) && types.get(name) !== type) throw new Error(`“${name}” has two types.`);
        types.set(name, type);
    }
    return [...types].map(([AttributeName, AttributeType]) => ({AttributeName, AttributeType}));
};

// On demand, or so many units. read() answers members of CreateTable and UpdateTable.
export function billingFields(onDemand = true, reads = 5, writes = 5) {
    const mode = select(
        [
            ['PAY_PER_REQUEST', 'on demand'],
            ['PROVISIONED', 'provisioned'],
        ],
        onDemand ? 'PAY_PER_REQUEST' : 'PROVISIONED',
        {'aria-label': 'Billing', onchange: change},
    );
    const read = input({type: 'number', min: 1, value: reads, 'aria-label': 'Read units a second'});
    const write = input({type: 'number', min: 1, value: writes, 'aria-label': 'Write units a second'});
    const units = h('span.bar', read, ' read, ', write, ' write units a second');
    function change() {
        units.hidden = mode.value !== 'PROVISIONED';
    }
    change();
    const throughput = () => ({ReadCapacityUnits: Number(read.value), WriteCapacityUnits: Number(write.value)});
    return {
        element: h('div.bar', mode, units),
        throughput: () => (mode.value === 'PROVISIONED' ? throughput() : undefined),
        read: () => ({
            BillingMode: mode.value,
            ProvisionedThroughput: mode.value === 'PROVISIONED' ? throughput() : undefined,
        }),
    };
}

// Lines NAME=VALUE → [{Key, Value}]
export function readTags(lines) {
    return lines
        .split('\n')
        .map(line => line.trim())
        .filter(Boolean)
        .map(line => {
            const place = line.indexOf('=');
            if (place < 1) throw new Error(`A tag is written NAME=VALUE, and “${line}” is not.`);
            return {Key: line.slice(0, place).trim(), Value: line.slice(place + 1).trim()};
        });
}

export const streamSelect = (value, words = 'off') => select([['', words], ...Object.entries(VIEWS)], value ?? '');

export function newTable(place, refresh) {
    const faults = faultPlace();
    const name = input({required: true, pattern: '[A-Za-z0-9_.\\-]{3,255}'});
    const hash = keyFields('hash key'),
        range = keyFields('range key', {optional: true});
    const indexes = new Set();
    const indexList = h('div.tables-indexes');
    const stream = streamSelect('');
    const ttl = input({placeholder: 'expires'});
    const tags = h('textarea.tables-tags.code', {rows: 2, placeholder: 'team=orders'});
    const billing = billingFields();
    const protect = check('Refuse to delete it (deletion protection)', false);
    const lesson = h('div.tables-lesson');

    function addIndex() {
        const one = indexFields({
            onremove: () => {
                indexes.delete(one);
                one.element.remove();
                showLesson();
            },
        });
        indexes.add(one);
        indexList.append(one.element);
        one.element.querySelector('input').focus();
    }
    function request() {
        if (!name.value.trim()) throw new Error('A table needs a name.');
        const keys = [hash.read(), range.read()];
        if (!keys[0]) throw new Error('A table needs a hash key.');
        const read = [...indexes].map(one => one.read(keys[0]));
        const of = isLocal => {
            const list = read
                .filter(one => one.isLocal === isLocal)
                .map(one => ({
                    ...one.definition,
                    ProvisionedThroughput: isLocal ? undefined : billing.throughput(),
                }));
            return list.length ? list : undefined;
        };
        const tagList = readTags(tags.value);
        return {
            TableName: name.value.trim(),
            AttributeDefinitions: definitions([...keys.filter(Boolean), ...read.flatMap(one => one.keys)]),
            KeySchema: keySchema(keys),
            GlobalSecondaryIndexes: of(false),
            LocalSecondaryIndexes: of(true),
            ...billing.read(),
            StreamSpecification: stream.value ? {StreamEnabled: true, StreamViewType: stream.value} : undefined,
            Tags: tagList.length ? tagList : undefined,
            DeletionProtectionEnabled: protect.box.checked || undefined,
        };
    }
    function commandLine(made) {
        const types = Object.fromEntries(
            made.AttributeDefinitions.map(one => [one.AttributeName, one.AttributeType]),
        );
        const keys = schema => schema.map(one => `${one.AttributeName}:${types[one.AttributeName]}`);
        const spec = (one, from) => {
            const {ProjectionType, NonKeyAttributes} = one.Projection;
            const kept = {ALL: '', KEYS_ONLY: '=keys', INCLUDE: `=${(NonKeyAttributes ?? []).join(',')}`}[
                ProjectionType
            ];
            return `${one.IndexName}:${keys(one.KeySchema).slice(from).join(',')}${kept}`;
        };
        return shell(
            ...['quipu', 'table', 'create', made.TableName, ...keys(made.KeySchema)],
            ...(made.GlobalSecondaryIndexes ?? []).flatMap(one => ['--index', spec(one, 0)]),
            ...(made.LocalSecondaryIndexes ?? []).flatMap(one => ['--local-index', spec(one, 1)]),
            ...(stream.value ? ['--stream', CLI_VIEWS[stream.value]] : []),
            ...(ttl.value.trim() ? ['--ttl', ttl.value.trim()] : []),
        );
    }
    function showLesson() {
        try {
            const made = request();
            replace(lesson, teach(sdk('CreateTable', made, commandLine(made))));
        } catch {
            replace(lesson, teach({CLI: 'quipu table create Music Artist:S Song:S'}));
        }
    }
    async function create() {
        const made = request();
        await dynamo('CreateTable', made);
        if (ttl.value.trim()) {
            await whenActive(made.TableName);
            await dynamo('UpdateTimeToLive', {
                TableName: made.TableName,
                TimeToLiveSpecification: {Enabled: true, AttributeName: ttl.value.trim()},
            });
        }
        refresh();
        go(['tables', made.TableName]);
    }
    const submit = changeButton('Create', () => faults.run(create), {class: 'primary'});
    replace(
        place,
        h(
            'form.tables-new',
            {
                oninput: showLesson,
                onchange: showLesson,
                onsubmit: event => {
                    event.preventDefault();
                    submit.click();
                },
            },
            h('h1', 'New table'),
            field('Name', name, '3 to 255 letters, digits, _ . or -'),
            h('h2', 'Key'),
            h('div.bar', hash.element, range.element),
            h('h2', 'Indexes'),
            indexList,
            h('div', button('Add an index', addIndex)),
            h('h2', 'More'),
            field('Stream of changes', stream, 'what each record of a change shows'),
            field('Expiry', ttl, 'items go at the second since 1970 in this attribute; empty: never'),
            h('div.field', h('span.dim', 'Billing'), billing.element),
            field('Tags', tags, 'one on each line: NAME=VALUE'),
            protect,
            faults.element,
            h('div.actions', submit, h('a.button', {href: href(['tables'])}, 'Cancel')),
        ),
        lesson,
    );
    showLesson();
    name.focus();
    return {update() {}};
}

// A new or changed table takes a moment on some services.
export async function whenActive(name, signal) {
    for (;;) {
        const {Table} = await dynamo('DescribeTable', {TableName: name}, {signal});
        if (Table.TableStatus === 'ACTIVE') return Table;
        await new Promise(resolve => setTimeout(resolve, 300));
    }
}
