// Conditions as people write them, with names and values where they are meant: total > 100 and contains(tags, "jazz").
// The same words as the command line's --filter: names with odd letters in `backticks`, texts in "quotes" or 'quotes'.

import {parse, print} from './json.js';
import {fromPlain, toPlain} from './value.js';

export const FUNCTIONS = [
    'begins_with',
    'contains',
    'attribute_exists',
    'attribute_not_exists',
    'attribute_type',
    'size',
];
export const KEYWORDS = ['AND', 'OR', 'NOT', 'BETWEEN', 'IN'];
const IS_KEYWORD = /^(and|or|not|between|in)$/i;
const COMPARATORS = ['=', '<', '<=', '>', '>='];

// ---- tokens: {kind: 'name' | 'value' | 'word' | 'call' | 'sign' | 'index', text, value} ----

export function tokens(text) {
    const found = [];
    let at = 0,
        isValueDue = true; // so that a minus is a sign, and a bracket a list, not an index
    const take = (pattern, sentence) => {
        pattern.lastIndex = at;
        const match = pattern.exec(text);
        if (!match) throw new Error(`${sentence}: ${text.slice(at)}`);
        at += match[0].length;
        return match[0];
    };
    const push = (kind, words, value) => {
        found.push({kind, text: words, value});
        isValueDue = kind === 'word' || kind === 'call' || (kind === 'sign' && words !== ')' && words !== '.');
    };
    while (at < text.length) {
        const c = text[at];
        if (/\s/.test(c)) at++;
        else if (c === '#' || c === ':')
            throw new Error(`Write names and values where they belong, without # and :: ${text.slice(at)}`);
        else if (c === "'") {
            const quoted = take(/'(?:[^']|'')*'/y, 'A quote is not closed');
            push('value', quoted, {S: quoted.slice(1, -1).replaceAll("''", "'")});
        } else if (c === '`') {
            const quoted = take(/`(?:[^`]|``)*`/y, 'A quote is not closed');
            push('name', quoted.slice(1, -1).replaceAll('``', '`'));
        } else if (c === '[' && !isValueDue) push('index', take(/\[\d+\]/y, 'A place in a list is written [number]'));
        else if (c === '"' || c === '{' || c === '[' || /\d/.test(c) || (c === '-' && isValueDue)) {
            const source = jsonAt(text, at);
            at += source.length;
            push('value', source, fromPlain(parse(source)));
        } else if (/[A-Za-z_]/.test(c)) {
            const isMember = found.at(-1)?.kind === 'sign' && found.at(-1).text === '.';
            const word = take(/\w+/y);
            if (isMember) push('name', word);
            else if (/^(true|false|null)$/.test(word)) push('value', word, fromPlain(JSON.parse(word)));
            else if (IS_KEYWORD.test(word)) push('word', word.toUpperCase());
            else if (/^\s*\(/.test(text.slice(at))) push('call', word);
            else push('name', word);
        } else push('sign', take(/<>|<=|>=|[<>=(),.]/y, 'This cannot be read'));
    }
    return found;
}

// The JSON value that begins here.
function jsonAt(text, from) {
    const simple = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/y;
    simple.lastIndex = from;
    if (text[from] !== '{' && text[from] !== '[') {
        const match = simple.exec(text);
        if (!match) throw new Error(`This value cannot be read: ${text.slice(from)}`);
        return match[0];
    }
    let depth = 0;
    for (let at = from; at < text.length; at++) {
        if (text[at] === '"') {
            simple.lastIndex = at;
            const match = simple.exec(text);
            if (!match) break;
            at += match[0].length - 1;
        } else if ('{['.includes(text[at])) depth++;
        else if ('}]'.includes(text[at]) && --depth === 0) return text.slice(from, at + 1);
    }
    throw new Error(`This value cannot be read: ${text.slice(from)}`);
}

// ---- expressions with placeholders ----

export class Placeholders {
    names = new Map();
    values = [];
    name(name) {
        if (!this.names.has(name)) this.names.set(name, `#n${this.names.size}`);
        return this.names.get(name);
    }
    value(value) {
        this.values.push(value);
        return `:v${this.values.length}`;
    }
    // The members of a request; none where nothing was named.
    members() {
        return {
            ExpressionAttributeNames: this.names.size
                ? Object.fromEntries([...this.names].map(([name, holder]) => [holder, name]))
                : undefined,
            ExpressionAttributeValues: this.values.length
                ? Object.fromEntries(this.values.map((value, i) => [`:v${i + 1}`, value]))
                : undefined,
        };
    }
    expression(list) {
        let out = '';
        list.forEach((token, i) => {
            const isTight = token.text === '.' || list[i - 1]?.text === '.' || token.kind === 'index';
            const words =
                token.kind === 'name'
                    ? this.name(token.text)
                    : token.kind === 'value'
                      ? this.value(token.value)
                      : token.text;
            out += (i && !isTight ? ' ' : '') + words;
        });
        return out;
    }
}

// A sentence of the server with the names and values that a person wrote, instead of the placeholders of the request.
export function inOwnWords(sentence, {ExpressionAttributeNames: names = {}, ExpressionAttributeValues: values = {}}) {
    return sentence.replace(/#n\d+|:v\d+/g, holder => {
        if (Object.hasOwn(names, holder)) return names[holder];
        return Object.hasOwn(values, holder) ? print(toPlain(values[holder]), 0) : holder;
    });
}

// ---- from one line to a Query or a Scan ----

const word = value => String(Object.values(value)[0]);

// The parts between AND, where nothing but AND joins them; null where OR does.
function conjuncts(list) {
    const parts = [[]];
    let depth = 0,
        isBetween = false;
    for (const token of list) {
        if (token.text === '(' && token.kind === 'sign') depth++;
        if (token.text === ')' && token.kind === 'sign') depth--;
        if (depth === 0 && token.kind === 'word') {
            if (token.text === 'OR') return null;
            if (token.text === 'BETWEEN') isBetween = true;
            else if (token.text === 'AND' && isBetween) isBetween = false;
            else if (token.text === 'AND') {
                parts.push([]);
                continue;
            }
        }
        parts.at(-1).push(token);
    }
    return parts;
}

// What a part says of a key: {name, operator, values} when it is a condition that a key takes, else null.
function keyPart(part) {
    const kinds = part
        .map(token => (token.kind === 'sign' || token.kind === 'word' ? token.text : token.kind))
        .join(' ');
    const values = part.filter(token => token.kind === 'value').map(token => token.value);
    if (
        part.length === 3 &&
        part[0].kind === 'name' &&
        COMPARATORS.includes(part[1].text) &&
        part[2].kind === 'value'
    )
        return {name: part[0].text, operator: part[1].text, values, tokens: part};
    if (kinds === 'name BETWEEN value AND value')
        return {name: part[0].text, operator: 'BETWEEN', values, tokens: part};
    if (kinds === 'call ( name , value )' && part[0].text === 'begins_with')
        return {name: part[2].text, operator: 'begins_with', values, tokens: part};
    return null;
}

// The request of a line, for a table or index with these keys: {operation, input, key: [parts], filter}. A value alone
// is the hash key's. What names the whole hash key is a Query, all else a Scan.
export function requestOf(line, keys) {
    const holders = new Placeholders();
    let list = tokens(line);
    if (list.length === 1 && list[0].kind === 'value') {
        const value = {[keys[0].type]: word(list[0].value)};
        list = [
            {kind: 'name', text: keys[0].name},
            {kind: 'sign', text: '='},
            {...list[0], value},
        ];
    }
    if (!list.length) return {operation: 'Scan', input: {}, key: [], filter: []};
    const parts = conjuncts(list);
    const hashes = keys.filter(key => key.isHash),
        ranges = keys.filter(key => !key.isHash);
    const conditions = (parts ?? []).map(keyPart);
    const used = [];
    for (const key of hashes) used.push(conditions.findIndex(one => one?.name === key.name && one.operator === '='));
    if (!parts || used.includes(-1)) return scan();
    for (const key of ranges) {
        const place = conditions.findIndex(one => one?.name === key.name);
        if (place < 0) break;
        used.push(place);
    }
    const rest = parts.filter((part, i) => !used.includes(i));
    const namesKey = rest.some(part =>
        part.some(
            (token, i) =>
                token.kind === 'name' && part[i - 1]?.text !== '.' && keys.some(key => key.name === token.text),
        ),
    );
    if (namesKey) return scan(); // a filter of a Query may not name its key
    const key = used.map(place => conditions[place]);
    const filter = rest.flatMap((part, i) => (i ? [{kind: 'word', text: 'AND'}, ...part] : part));
    const input = {
        KeyConditionExpression: key.map(one => holders.expression(one.tokens)).join(' AND '),
        FilterExpression: filter.length ? holders.expression(filter) : undefined,
    };
    return {operation: 'Query', input: {...input, ...holders.members()}, key, filter};

    function scan() {
        const input = {FilterExpression: holders.expression(list)};
        return {operation: 'Scan', input: {...input, ...holders.members()}, key: [], filter: list};
    }
}

export const isStatement = line => /^\s*(select|insert|update|delete)\s+[^\s=<>(]/i.test(line);
export const isChange = line => isStatement(line) && !/^\s*select\b/i.test(line);

// ---- the command line's form of the same ----

export const filterWords = list =>
    list
        .map((token, i) => {
            const isTight =
                !i ||
                token.text === '.' ||
                list[i - 1].text === '.' ||
                token.kind === 'index' ||
                token.text === ',' ||
                token.text === ')' ||
                list[i - 1].text === '(' ||
                list[i - 1].kind === 'call';
            const words =
                token.kind === 'name' && !/^[A-Za-z_]\w*$/.test(token.text) ? `\`${token.text}\`` : token.text;
            return (isTight ? '' : ' ') + words;
        })
        .join('');
export function keyCommandWords(key) {
    return key.map(one => {
        const [low, high] = one.values.map(word);
        if (one.operator === 'BETWEEN') return `${low}..${high}`;
        if (one.operator === 'begins_with') return `${low}*`;
        return one.operator === '=' ? low : `${one.operator} ${low}`;
    });
}
