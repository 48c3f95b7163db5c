// Import and export in the browser: JSON lines, plain or DynamoDB's, and CSV.

import {dynamo} from '../api.js';
import {h, text} from '../dom.js';
import {count, plural} from '../format.js';
import {button, changeButton, check, dialog, faultPlace, field, menu} from '../parts.js';
import {parse, print} from '../json.js';
import {fromPlain, isTyped, itemFromPlain, itemToPlain, keyId, toPlain} from '../value.js';

const BATCH = 25; // as many as a BatchWriteItem takes
const AT_ONCE = 4;
const TRIES = 8;
const CHUNK = 1 << 20; // letters that are gathered before they become a part of the file

// ---- export: what the line finds, to its end ----

export function exporter({name, keys, load, prepared, columns}) {
    const status = h('span.dim', {role: 'status'});
    const faults = faultPlace();
    let isStopped = false;
    const stop = button('Stop', () => (isStopped = true), {class: 'small', hidden: true});
    async function run(kind, head, line) {
        if (!prepared()) throw new Error('The line above cannot be read: there is nothing to export.');
        if (prepared().isChange) throw new Error('This statement changes data: it is not run for an export.');
        let parts = [],
            letters = head ?? '',
            number = 0,
            start;
        isStopped = false;
        stop.hidden = false;
        try {
            do {
                const page = await load(start);
                for (const item of page.rows) {
                    letters += line(item) + '\n';
                    if (letters.length > CHUNK) {
                        parts = [new Blob([...parts, letters])]; // the browser keeps large ones on disk
                        letters = '';
                    }
                }
                number += page.rows.length;
                text(status, `${count(number)} exported`);
                start = page.next;
            } while (start !== null && !isStopped);
        } finally {
            stop.hidden = true;
        }
        download(new Blob([...parts, letters]), `${name}.${kind}`);
        text(status, `${plural(number, 'item')} exported${isStopped ? ', then stopped' : ''}`);
    }
    const kinds = {
        'JSON lines': () => run('jsonl', '', item => print(itemToPlain(item), 0)),
        'DynamoDB JSON lines': () => run('dynamodb.jsonl', '', item => print({Item: item}, 0)),
        'CSV of the columns shown': () => {
            const isKey = name => keys.some(key => key.name === name);
            const names = [...new Set([...keys.map(key => key.name), ...columns()])];
            const line = item => names.map(one => csvCell(item[one], isKey(one))).join(',');
            return run('csv', names.map(quoted).join(',') + '\n', line);
        },
    };
    const choose = menu(
        'Export',
        Object.entries(kinds).map(([words, job]) => [words, () => faults.run(job)]),
    );
    return h('span.bar', choose, status, stop, faults.element);
}

function download(blob, name) {
    const link = h('a', {href: URL.createObjectURL(blob), download: name});
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60e3);
}
const MAY_BE_JSON = /^(-?\d|true$|false$|null$|[[{"])/;
const quoted = words => (/[",\r\n]/.test(words) ? `"${words.replaceAll('"', '""')}"` : words);
// A text that would be read as something else, or as nothing, is written as JSON writes it. Keys have their type from
// the table.
function csvCell(value, isKey) {
    if (!value) return '';
    if (value.S !== undefined)
        return quoted(!isKey && (value.S === '' || MAY_BE_JSON.test(value.S)) ? print(value.S, 0) : value.S);
    if (isKey) return quoted(Object.values(value)[0]);
    return quoted(value.N ?? print(toPlain(value), 0));
}

// ---- import ----

// Lines of a file, as it is read.
async function* linesOf(file, isStopped) {
    let rest = '';
    const reader = file.stream().pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
        const {value, done} = await reader.read();
        if (done || isStopped()) break;
        const lines = (rest + value).split('\n');
        rest = lines.pop();
        yield* lines;
    }
    if (rest && !isStopped()) yield rest;
}

async function* jsonItems(file, isStopped) {
    let number = 0;
    for await (const line of linesOf(file, isStopped)) {
        number++;
        if (!line.trim()) continue;
        try {
            const value = parse(line);
            if (value?.DumpBegin || value?.DumpEnd || value?.Table?.KeySchema) continue; // of `quipu dump`
            const inner = isTyped(value?.Item) && Object.keys(value).length === 1 ? value.Item : value;
            yield {item: isTyped(inner) ? inner : itemFromPlain(inner), number};
        } catch (error) {
            throw new Error(`Line ${count(number)}: ${error.message}`);
        }
    }
}

// Rows of CSV: cells may be quoted and hold line ends.
async function* csvRows(file, isStopped) {
    let open = '';
    for await (const line of linesOf(file, isStopped)) {
        open = open ? `${open}\n${line}` : line;
        if (((open.match(/"/g) ?? []).length & 1) === 1) continue;
        const row = open.replace(/\r$/, '');
        open = '';
        if (!row) continue;
        const cells = [];
        for (const match of row.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g))
            cells.push(match[1]?.replaceAll('""', '"') ?? match[2]);
        yield cells;
    }
    if (open && !isStopped()) throw new Error('A quote is not closed.');
}
async function* csvItems(file, keys, isStopped) {
    let names = null,
        number = 0;
    const types = Object.fromEntries(keys.map(key => [key.name, key.type]));
    for await (const cells of csvRows(file, isStopped)) {
        number++;
        if (!names) {
            names = cells.map(cell => cell.trim());
            continue;
        }
        if (cells.length > names.length) throw new Error(`Row ${count(number)} has more cells than the first one.`);
        const pairs = cells
            .map((cell, i) => [names[i], cell])
            .filter(([, cell]) => cell !== '')
            .map(([name, cell]) => [name, types[name] ? {[types[name]]: cell} : csvValue(cell)]);
        yield {item: Object.fromEntries(pairs), number};
    }
}
// A number, true, false, null, a list, an object or a text in JSON's quotes is one; all else is text.
function csvValue(words) {
    if (MAY_BE_JSON.test(words))
        try {
            return fromPlain(parse(words));
        } catch {
            /* a text that only begins so */
        }
    return {S: words};
}

const wait = ms => new Promise(resolve => setTimeout(resolve, ms));

async function writeBatch(name, batch) {
    let requests = batch.map(({item}) => ({PutRequest: {Item: item}}));
    for (let tries = 0; requests.length; tries++) {
        const reply = await dynamo('BatchWriteItem', {RequestItems: {[name]: requests}});
        requests = reply.UnprocessedItems?.[name] ?? [];
        if (!requests.length) return;
        if (tries >= TRIES) throw new Error(`${plural(requests.length, 'item')} were not taken in ${TRIES} tries.`);
        await wait(50 * 2 ** tries);
    }
}

export function importer({table, keys, ondone}) {
    const {name} = table;
    async function open() {
        const file = h('input', {type: 'file', accept: '.json,.jsonl,.ndjson,.csv,.txt'});
        const onlyNew = check('Only items that are not there yet', false);
        const status = h('p.dim', {role: 'status'});
        let isStopped = false;
        const stop = button('Stop', () => (isStopped = true), {class: 'small', hidden: true});
        async function run() {
            if (!file.files[0]) throw new Error('Choose a file first.');
            const isCsv = /\.csv$/i.test(file.files[0].name);
            const source = isCsv
                ? csvItems(file.files[0], keys, () => isStopped)
                : jsonItems(file.files[0], () => isStopped);
            const sum = {written: 0, skipped: 0};
            isStopped = false;
            stop.hidden = false;
            try {
                await (onlyNew.box.checked ? putNew(source, sum) : putAll(source, sum));
            } catch (error) {
                error.message = `${error.message} (${plural(sum.written, 'item')} written before)`;
                throw error;
            } finally {
                stop.hidden = true;
                ondone();
            }
            say(sum);
            text(status, `${status.textContent}${isStopped ? ', then stopped' : '. Done.'}`);
            return false;
        }
        const say = sum =>
            text(
                status,
                `${plural(sum.written, 'item')} written` +
                    (sum.skipped ? `, ${count(sum.skipped)} were there already` : ''),
            );
        // Several batches at once. One batch holds a key once; the last of a file wins, so a key that is on its way is
        // waited for.
        async function putAll(source, sum) {
            const running = new Set();
            let batch = [],
                ids = new Set(),
                fault = null;
            const send = async () => {
                const full = batch;
                batch = [];
                while (running.size >= AT_ONCE) await Promise.race(running);
                if (fault) throw fault;
                const job = writeBatch(name, full)
                    .then(() => {
                        sum.written += full.length;
                        say(sum);
                    })
                    .catch(error => (fault ??= error))
                    .finally(() => running.delete(job));
                running.add(job);
            };
            for await (const one of source) {
                const missing = keys.find(key => !one.item[key.name]);
                if (missing) throw new Error(`Line ${count(one.number)}: the key “${missing.name}” is missing.`);
                const id = keyId(one.item, keys);
                if (ids.has(id)) {
                    if (batch.length) await send();
                    await Promise.all(running);
                    ids = new Set();
                }
                ids.add(id);
                batch.push(one);
                if (batch.length === BATCH) await send();
                if (ids.size > 10 * BATCH * AT_ONCE) {
                    await Promise.all(running);
                    ids = new Set(batch.map(other => keyId(other.item, keys)));
                }
            }
            if (batch.length) await send();
            await Promise.all(running);
            if (fault) throw fault;
        }
        async function putNew(source, sum) {
            const worker = async () => {
                for (let next; !(next = await source.next()).done;) {
                    try {
                        await dynamo('PutItem', {
                            TableName: name,
                            Item: next.value.item,
                            ConditionExpression: 'attribute_not_exists(#k)',
                            ExpressionAttributeNames: {'#k': keys[0].name},
                        });
                        sum.written++;
                    } catch (error) {
                        if (error.type !== 'ConditionalCheckFailedException') throw error;
                        sum.skipped++;
                    }
                    say(sum);
                }
            };
            await Promise.all(Array.from({length: AT_ONCE}, worker));
        }
        await dialog({
            title: `Import into ${name}`,
            body: () => [
                field(
                    'File',
                    file,
                    'JSON lines (plain, or DynamoDB’s as `quipu dump` writes them), or CSV with names on top',
                ),
                onlyNew,
                status,
                stop,
            ],
            actions: [['Import', run, 'primary']],
        });
        isStopped = true;
    }
    return changeButton('Import', open);
}
