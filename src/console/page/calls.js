// What the views of functions, triggers, schedules and queues share.

import {LISTED_MOST, dynamo, open, pages, request, server} from './api.js';
import {h, replace} from './dom.js';

export const isRemote = () => server.info.engine?.kind === 'remote';
// How often an open view asks: each request to a service costs money.
export const paceMs = () => (isRemote() ? 15e3 : 3e3);

// Where the server runs none: the view says so. True when there is nothing else to show.
export function lacksFunctions(page, title) {
    if (server.info.functions !== false) return false;
    replace(
        page.el,
        h('h1', title),
        h('p', 'This server runs no functions: it was started with ', h('code', '--no-functions'), '.'),
    );
    return true;
}

// ---- ARNs ----

// name or name:qualifier of a function's ARN; anything else as it is
export const functionOf = arn => /:function:(.+)$/.exec(arn ?? '')?.[1] ?? arn ?? '';
export const tableOf = arn => /:table\/([^/]+)/.exec(arn ?? '')?.[1] ?? arn ?? '';
// Where a destination leads: the queue's name; else null.
export const queueOf = arn =>
    /^arn:aws:(?:sqs|sns):[^:]*:[^:]*:(.+)$/.exec(arn ?? '')?.[1] ??
    /^arn:aws:s3:::(.+)$/.exec(arn ?? '')?.[1] ??
    null;
// A bare name means a queue, as the command line has it.
export const destinationOf = words =>
    !words || /^(arn:|https?:)/.test(words) ? words : `arn:aws:sqs:${server.info.region}:000000000000:${words}`;
export const destinationWords = arn => queueOf(arn) ?? arn ?? '';

// ---- lists ----

export async function functions(pages = 1) {
    const found = [];
    let marker;
    for (let i = 0; i < pages && marker !== null; i++) {
        const query = marker ? '&Marker=' + encodeURIComponent(marker) : '';
        const page = await request('GET', `/2015-03-31/functions?MaxItems=50${query}`);
        found.push(...page.Functions);
        marker = page.NextMarker || null;
    }
    return {found, hasMore: marker !== null};
}

export async function mappings(pages = 1, query = '') {
    const found = [];
    let marker;
    for (let i = 0; i < pages && marker !== null; i++) {
        const more = marker ? '&Marker=' + encodeURIComponent(marker) : '';
        const page = await request('GET', `/2015-03-31/event-source-mappings?MaxItems=100${query}${more}`);
        found.push(...page.EventSourceMappings);
        marker = page.NextMarker || null;
    }
    return {found, hasMore: marker !== null};
}

export async function scheduleNames() {
    const names = [];
    const turn = token =>
        request('GET', `/schedules?MaxResults=100${token ? '&NextToken=' + encodeURIComponent(token) : ''}`);
    for await (const page of pages(turn, one => one.NextToken)) {
        names.push(...page.Schedules.map(one => one.Name));
        if (names.length >= LISTED_MOST) break;
    }
    return names;
}

// What runs: words for a function's code.
export function kindOf(one) {
    const own = one.Quipu ?? {};
    if (own.Url) return 'URL';
    if (own.Table) return 'table';
    if (own.Queue) return 'queue';
    if (own.Pattern) return 'pattern';
    return one.Runtime ?? '';
}
export function codeOf(one) {
    const own = one.Quipu ?? {};
    return own.Url ?? own.Directory ?? own.Pattern ?? own.Table ?? own.Queue ?? `archive of ${one.CodeSize} bytes`;
}

// Whether one of the server's own tables is there: asked by a list, since a question about a table that is not there
// is an error. One that was there stays.
const known = new Set();
export async function hasTable(part) {
    const name = server.info.prefix + part;
    if (!known.has(name)) {
        const page = await dynamo('ListTables', {Limit: 100, ExclusiveStartTableName: name.slice(0, -1)});
        if (page.TableNames.includes(name)) known.add(name);
    }
    return known.has(name);
}
export const ownTable = part => server.info.prefix + part;

// ---- numbers of functions ----

// name → {calls, failed, seconds, processes, running} since the server began, of /metrics.
export async function meters() {
    const said = await (await open('GET', '/metrics')).text();
    const all = new Map();
    for (const [, what, labels, value] of said.matchAll(/^quipu_function_(\w+)\{(function="[^\n]*)\} (\S+)$/gm)) {
        const [, quoted, end] = /^function="((?:[^"\\]|\\.)*)"(?:,end="(\w+)")?/.exec(labels) ?? [];
        const name = quoted?.replace(/\\(.)/g, (_, letter) => (letter === 'n' ? '\n' : letter));
        if (name === undefined) continue;
        const one = all.get(name) ?? {calls: 0, failed: 0, seconds: 0, processes: 0, running: 0};
        all.set(name, one);
        if (what === 'calls_total') {
            one.calls += Number(value);
            if (end !== 'answered') one.failed += Number(value);
        } else if (what === 'call_seconds_total') one.seconds = Number(value);
        else if (what === 'live_processes') one.processes = Number(value);
        else if (what === 'running_calls') one.running = Number(value);
    }
    return all;
}
