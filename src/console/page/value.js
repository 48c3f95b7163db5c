// DynamoDB's values, {"N":"1965"}, and plain ones as the command line prints them: 1965, {"$set":[...]},
// {"$binary":"..."}, and {"$map":{...}} for a map that would be taken for one of these.

import {Exact, compareNumbers, print} from './json.js';

export const TYPES = {
    S: 'text',
    N: 'number',
    BOOL: 'boolean',
    NULL: 'null',
    M: 'map',
    L: 'list',
    SS: 'set of texts',
    NS: 'set of numbers',
    B: 'binary',
    BS: 'set of binaries',
};
export const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$/;
const NOTATIONS = ['$binary', '$set', '$map'];

export const typeOf = value => Object.keys(value)[0];
export const mapItem = (item, change) =>
    Object.fromEntries(Object.entries(item).map(([name, value]) => [name, change(value, name)]));

export function toPlain(value) {
    const type = typeOf(value),
        inner = value[type];
    if (type === 'N') return new Exact(inner);
    if (type === 'B') return {$binary: inner};
    if (type === 'NULL') return null;
    if (type === 'L') return inner.map(toPlain);
    if (type === 'SS') return {$set: inner};
    if (type === 'NS') return {$set: inner.map(one => new Exact(one))};
    if (type === 'BS') return {$set: inner.map(one => ({$binary: one}))};
    if (type !== 'M') return inner;
    const map = itemToPlain(inner),
        names = Object.keys(map);
    return names.length === 1 && NOTATIONS.includes(names[0]) ? {$map: map} : map;
}
export const itemToPlain = item => mapItem(item, toPlain);

export function fromPlain(plain) {
    if (plain === null) return {NULL: true};
    if (typeof plain === 'string') return {S: plain};
    if (typeof plain === 'boolean') return {BOOL: plain};
    if (typeof plain === 'number' || plain instanceof Exact) return {N: String(plain)};
    if (Array.isArray(plain)) return {L: plain.map(fromPlain)};
    const names = Object.keys(plain);
    if (names.length === 1) {
        const inner = plain[names[0]];
        if (names[0] === '$map') return {M: itemFromPlain(inner)};
        if (names[0] === '$binary') {
            if (typeof inner !== 'string') throw new Error('“$binary” needs a text of base64.');
            return {B: inner};
        }
        if (names[0] === '$set') return setFromPlain(inner);
    }
    return {M: itemFromPlain(plain)};
}
export function itemFromPlain(plain) {
    if (plain === null || typeof plain !== 'object' || Array.isArray(plain) || plain instanceof Exact)
        throw new Error('An item is an object: {"name": value, ...}');
    return mapItem(plain, fromPlain);
}
function setFromPlain(list) {
    const members = Array.isArray(list) ? list.map(fromPlain) : [];
    const type = members.length ? typeOf(members[0]) : null;
    if (!['S', 'N', 'B'].includes(type) || members.some(one => typeOf(one) !== type))
        throw new Error('“$set” needs a list of texts, of numbers or of {"$binary": ...}, all of one type.');
    return {[type + 'S']: members.map(one => one[type])};
}

// Whether it is an item in DynamoDB's own JSON: every value an object with one known type.
export const isTyped = item =>
    !!item &&
    typeof item === 'object' &&
    !Array.isArray(item) &&
    Object.values(item).every(
        value => value && typeof value === 'object' && Object.keys(value).length === 1 && typeOf(value) in TYPES,
    );

export const bytesOf = base64 => Math.floor((base64.replace(/=+$/, '').length * 3) / 4);

const LONGEST = 300; // letters of a value in a list

// A value in one line of a list.
export function cellText(value) {
    if (!value) return '';
    const type = typeOf(value),
        inner = value[type];
    if (type === 'S' || type === 'N') return inner.length > LONGEST ? inner.slice(0, LONGEST) + '…' : inner;
    if (type === 'B') return `${inner.slice(0, 40)} (${bytesOf(inner)} bytes)`;
    const words = print(toPlain(value), 0);
    return words.length > LONGEST ? words.slice(0, LONGEST) + '…' : words;
}

// Sets have no order, maps neither.
export function sameValue(a, b) {
    if (!a || !b) return a === b;
    return canonical(a) === canonical(b);
}
function canonical(value) {
    const type = typeOf(value),
        inner = value[type];
    if (type === 'M')
        return `{${Object.keys(inner)
            .sort()
            .map(name => print(name, 0) + canonical(inner[name]))
            .join()}}`;
    if (type === 'L') return `[${inner.map(canonical).join()}]`;
    return type + print(Array.isArray(inner) ? [...inner].sort() : inner, 0);
}

// What became of `base` on two sides, together: {value, clashes}. Where both have changed the same value, `mine` stays
// and clashes gets {path, theirs}. A value that is not there is undefined.
export function mergeValues(base, theirs, mine, path = '') {
    const clashes = [];
    const merge = (was, one, other, at) => {
        if (sameValue(was, other) || sameValue(one, other)) return one;
        if (sameValue(was, one)) return other;
        const types = [was, one, other].map(each => each && typeOf(each));
        const [type] = types;
        if (type && types.every(each => each === type)) {
            const inner = [was[type], one[type], other[type]];
            if (type === 'M') return {M: mergeNamed(...inner, at)};
            if (type === 'L' && inner.every(each => each.length === inner[0].length))
                return {L: inner[0].map((each, i) => merge(each, inner[1][i], inner[2][i], `${at}[${i}]`))};
            if (type.length === 2) return mergeSets(type, ...inner);
        }
        clashes.push({path: at, theirs: one});
        return other;
    };
    const mergeNamed = (was, one, other, at) => {
        const names = new Set([...Object.keys(one), ...Object.keys(other)]);
        const pairs = [...names].map(name => [
            name,
            merge(was[name], one[name], other[name], at ? `${at}.${name}` : name),
        ]);
        return Object.fromEntries(pairs.filter(([, value]) => value));
    };
    return {value: merge(base, theirs, mine, path), clashes};
}
// What either side added, without what either took away. An empty set is none.
function mergeSets(type, was, one, other) {
    const members = [...new Set([...one, ...other])].filter(
        each => (one.includes(each) && other.includes(each)) || !was.includes(each),
    );
    return members.length ? {[type]: members} : undefined;
}

// For sorting: nothing first, then numbers, then texts, then what is nested.
export function compareValues(a, b) {
    if (!a || !b) return a ? 1 : b ? -1 : 0;
    if (a.N !== undefined && b.N !== undefined) return compareNumbers(a.N, b.N);
    if (a.N !== undefined || b.N !== undefined) return a.N !== undefined ? -1 : 1;
    const [one, other] = [cellText(a), cellText(b)];
    return one < other ? -1 : one > other ? 1 : 0;
}

// ---- keys: as words of a URL and of the command line ----

export const keyOf = (item, keys) => Object.fromEntries(keys.map(key => [key.name, item[key.name]]));
export const hasKey = (item, keys) => keys.every(key => item?.[key.name]);
export const keyWords = (item, keys) => keys.map(key => Object.values(item[key.name])[0]);
export const keyId = (item, keys) => keyWords(item, keys).join('\u0000');
export function keyFromWords(keys, words) {
    return Object.fromEntries(keys.map((key, i) => [key.name, {[key.type]: String(words[i] ?? '')}]));
}
