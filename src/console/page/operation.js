// The server's own description of its resources (/v1/openapi.json) as forms and as commands to copy: what a dialog asks
// for, and its words, are those of the command line.

import {request} from './api.js';
import {h} from './dom.js';
import {parse, print} from './json.js';
import {check, dialog, field, input, json, select, shell} from './parts.js';

let loading = null;

// Operations by their id: {method, path, names (of the path), queries, members, required, summary, command}
export function operations() {
    loading ??= request('GET', '/v1/openapi.json').then(described => {
        const all = {};
        for (const [path, methods] of Object.entries(described.paths))
            for (const [method, one] of Object.entries(methods)) {
                const schema = one.requestBody?.content?.['application/json']?.schema ?? {};
                const named = place =>
                    (one.parameters ?? []).filter(each => each.in === place && each.name !== 'cost');
                all[one.operationId] = {
                    method: method.toUpperCase(),
                    path,
                    names: named('path').map(each => each.name),
                    queries: named('query'),
                    members: schema.properties ?? {},
                    required: schema.required ?? [],
                    summary: one.summary,
                    command: one['x-command'] ?? '',
                };
            }
        return all;
    });
    return loading;
}

const placed = (path, names) => path.replace(/\{(\w+)\}/g, (all, name) => encodeURIComponent(names[name]));

// Calls an operation: names of the path, members of the body and of the query, all in one object.
export async function operate(id, given) {
    const one = (await operations())[id];
    const query = new URLSearchParams();
    const body = {};
    for (const [key, value] of Object.entries(given)) {
        if (one.names.includes(key) || value === undefined) continue;
        if (key in one.members) body[key] = value;
        else query.set(key, value);
    }
    const search = query.size ? `?${query}` : '';
    const carries = Object.keys(one.members).length > 0 && one.method !== 'GET';
    return request(one.method, placed(one.path, given) + search, {body: carries ? body : undefined});
}

// The same call in the forms that people copy.
export async function commands(id, given = {}) {
    const one = (await operations())[id];
    // "lease take owner? -> fence": the command's words, then its positional arguments
    const words = one.command.split(' -> ')[0].split(' ');
    const plain = value => (typeof value === 'object' ? print(value, 0) : String(value));
    const places = words.slice(2).map(word => word.replace(/[?.]+$/, '').split('|')[0]);
    const rest = Object.entries(given).filter(([key, value]) => value !== undefined && !one.names.includes(key));
    const flags = rest.filter(([key]) => !places.includes(key));
    const args = [...one.names, ...places].filter(name => given[name] !== undefined).map(name => plain(given[name]));
    const line = flags.flatMap(([key, value]) => (value === true ? [`--${key}`] : [`--${key}`, plain(value)]));
    const url = location.origin + placed(one.path, given);
    const members = Object.fromEntries(rest.filter(([key]) => key in one.members));
    const body = Object.keys(members).length ? print(members, 0) : null;
    const verb = one.method === 'GET' ? [] : ['-X', one.method];
    const options = [`method: '${one.method}'`, body ? `body: JSON.stringify(${body})` : '']
        .filter(Boolean)
        .join(', ');
    return {
        CLI: one.command ? shell('quipu', ...words.slice(0, 2), ...args, ...line) : null,
        curl: shell('curl', ...verb, url, ...(body ? ['-d', body] : [])),
        JavaScript: `await fetch('${url}', {${options}}).then(reply => reply.json())`,
    };
}

// ---- forms ----

function control(name, schema, value) {
    const types = [schema.type].flat();
    if (schema.enum)
        return {element: select([['', ''], ...schema.enum], value ?? ''), read: element => element.value};
    if (types.includes('boolean') && types.length === 1) {
        const box = check(name, Boolean(value));
        return {element: box, read: () => box.box.checked || (value === undefined ? '' : false)};
    }
    const shown = value === undefined ? '' : typeof value === 'string' ? value : print(value, 0);
    const long = types[0] === undefined || types.includes('array') || types.includes('object');
    const element = long
        ? h('textarea.code', {value: shown, rows: 3, spellcheck: 'false'})
        : input({value: shown, placeholder: schema.examples?.[0] ?? ''});
    return {element, read: () => typed(element.value, types)};
}

// What was typed as a value: text where only text is meant, else JSON, else text.
function typed(words, types) {
    const trimmed = words.trim();
    if (trimmed === '') return '';
    if (types.length === 1 && types[0] === 'string') return words;
    if (types.includes('string') && !/^-?\d+$/.test(trimmed)) return trimmed;
    try {
        return parse(trimmed);
    } catch {
        if (types[0] === undefined) return trimmed;
        throw new Error(`That is no JSON: ${trimmed.slice(0, 80)}`);
    }
}

// Asks for what an operation takes and calls it. given: what is fixed; preset: what stands in the fields at first;
// only: the members that are asked for (default: all). Answers the reply, undefined when it was left.
export async function operationDialog(
    id,
    given = {},
    {title, words = 'Go', preset = {}, only, kind = 'primary', onlyChanged = false} = {},
) {
    const one = (await operations())[id];
    const asked = [
        ...one.names.map(name => [name, {type: 'string', description: 'the name'}, true]),
        ...one.queries.map(each => [each.name, each.schema, each.required]),
        ...Object.entries(one.members).map(([name, schema]) => [name, schema, one.required.includes(name)]),
    ].filter(
        ([name, schema], i, all) =>
            !(name in given) &&
            !schema.readOnly &&
            (!only || only.includes(name) || one.names.includes(name)) &&
            all.findIndex(other => other[0] === name) === i,
    );
    const controls = asked.map(([name, schema, must]) => ({
        name,
        must,
        schema,
        ...control(name, schema, preset[name]),
    }));
    const said = h('p.dim');
    return dialog({
        title: title ?? one.summary,
        wide: controls.length > 4,
        body: () => [
            title ? h('p.dim', one.summary) : null,
            h(
                'div.operation-fields',
                controls.map(each =>
                    each.element.classList.contains('check')
                        ? h('div.field', each.element, h('small', each.schema.description))
                        : field(each.must ? `${each.name} *` : each.name, each.element, each.schema.description),
                ),
            ),
            said,
        ],
        actions: [
            [
                words,
                async () => {
                    const values = {...given};
                    for (const each of controls) {
                        const value = each.read(each.element);
                        if (onlyChanged && print(value, 0) === print(preset[each.name] ?? '', 0)) continue;
                        if (value !== '') values[each.name] = value;
                        else if (each.must) throw new Error(`${each.name} is missing.`);
                    }
                    return {values, reply: await operate(id, values)};
                },
                kind,
            ],
        ],
    });
}

// The same for what is there already: its settings stand in the fields, but those of `unset`, which mean another thing
// when they are read. A change sends what was changed; what is put anew is sent whole.
export async function settingsDialog(id, given, now, {title, unset = []}) {
    const one = (await operations())[id];
    const preset = Object.fromEntries(
        Object.entries(now).filter(([name]) => name in one.members && !(name in given) && !unset.includes(name)),
    );
    return operationDialog(id, given, {title, words: 'Save', preset, onlyChanged: one.method === 'PATCH'});
}

// Shows a reply in a dialog: for those that are not seen elsewhere in the view.
export const showReply = (title, reply) => dialog({title, wide: true, body: () => json(reply)});
