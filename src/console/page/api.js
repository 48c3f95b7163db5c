// Calls of the server. Every fault becomes an ApiError with the server's own sentence.

import {parse, print} from './json.js';
import {sign, signedPath} from './sign.js';

export class ApiError extends Error {
    constructor(status, type, message, body) {
        super(message);
        Object.assign(this, {status, type, body});
    }
}

// What GET /console/info told, and the keys of whoever signed in: they stay in this tab.
export const server = {info: {}, keys: load()};

function load() {
    try {
        return JSON.parse(sessionStorage.getItem('keys'));
    } catch {
        return null;
    }
}
export function signIn(keys) {
    server.keys = keys;
    if (keys) sessionStorage.setItem('keys', JSON.stringify(keys));
    else sessionStorage.removeItem('keys');
}

function serviceOf(path, headers) {
    if (headers['X-Amz-Target']) return headers['X-Amz-Target'].startsWith('Logs_') ? 'logs' : 'dynamodb';
    if (path.startsWith('/schedules') || path.startsWith('/schedule-groups')) return 'scheduler';
    return /^\/20\d\d-\d\d-\d\d\//.test(path) ? 'lambda' : 'quipu';
}

// The response itself, for streams and downloads. Throws an ApiError unless it is a good one.
export async function open(method, path, {body, headers = {}, signal} = {}) {
    let all = {...headers, 'X-Quipu-Console': '1'};
    if (body !== undefined && typeof body !== 'string' && !(body instanceof Uint8Array)) {
        body = print(body, 0);
        all['Content-Type'] ??= 'application/json';
    }
    if (server.info.signIn && server.keys) {
        path = signedPath(path);
        all = await sign({
            method,
            path,
            headers: all,
            body,
            service: serviceOf(path, all),
            region: server.info.region,
            keys: server.keys,
        });
    }
    let response;
    try {
        response = await fetch(path, {method, headers: all, body, signal, cache: 'no-store', credentials: 'omit'});
    } catch (error) {
        if (error.name === 'AbortError') throw error;
        throw new ApiError(0, 'NoAnswer', 'The server does not answer.');
    }
    if (response.ok) return response;
    const said = await response.text();
    let fault = {};
    try {
        fault = parse(said);
    } catch {
        /* a plain sentence */
    }
    const type = String(fault.__type ?? response.headers.get('x-amzn-ErrorType') ?? fault.error ?? response.status)
        .split('#')
        .pop()
        .split(':')[0];
    throw new ApiError(
        response.status,
        type,
        fault.message ?? fault.Message ?? fault.errorMessage ?? (said.slice(0, 500) || response.statusText),
        fault,
    );
}

export async function request(method, path, options = {}) {
    const response = await open(method, path, options);
    const said = await response.text();
    if (options.whole) return {status: response.status, headers: response.headers, body: said ? parse(said) : null};
    return said ? parse(said) : null;
}

// DynamoDB, its streams, CloudWatch's logs: dynamo('Scan', {TableName}, {signal})
const target =
    (prefix, version) =>
    (operation, input = {}, options = {}) =>
        request('POST', '/', {
            ...options,
            body: input,
            headers: {'Content-Type': `application/x-amz-json-${version}`, 'X-Amz-Target': `${prefix}.${operation}`},
        });
export const dynamo = target('DynamoDB_20120810', '1.0');
export const streams = target('DynamoDBStreams_20120810', '1.0');
export const logs = target('Logs_20140328', '1.1');

// A path of names, each encoded: at`/v1/logs/${name}/split`
export const at = (parts, ...names) =>
    parts.reduce((path, part, i) => path + encodeURIComponent(names[i - 1]) + part);

// All pages of a list: each(page => page.Items) of a call that takes what the last page said to go on with.
export async function* pages(call, next) {
    let from;
    do {
        const page = await call(from);
        yield page;
        from = next(page);
    } while (from !== null && from !== undefined && from !== '');
}

// The members of a list of /v1, page by page, up to LISTED_MOST: {rows, hasMore}.
export const LISTED_MOST = 1000;
export async function listed(path, member, options = {}) {
    const rows = [];
    const turn = after => {
        const query = new URLSearchParams({limit: LISTED_MOST, ...(after === undefined ? {} : {after})});
        return request('GET', `${path}${path.includes('?') ? '&' : '?'}${query}`, options);
    };
    for await (const page of pages(turn, one => one.next)) {
        rows.push(...(page[member] ?? []));
        if (rows.length >= LISTED_MOST) return {rows, hasMore: rows.length > LISTED_MOST || page.next !== undefined};
    }
    return {rows, hasMore: false};
}

// A server-sent stream by fetch, which can be signed and ended: calls `take` with each event's data, parsed.
export async function listen(path, take, signal) {
    const response = await open('GET', path, {signal, headers: {Accept: 'text/event-stream'}});
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (;;) {
        const {value, done} = await reader.read();
        if (done) return;
        rest += value;
        const events = rest.split('\n\n');
        rest = events.pop();
        for (const event of events) {
            const lines = event.split('\n');
            const data = lines
                .filter(line => line.startsWith('data:'))
                .map(line => line.slice(5).trimStart())
                .join('\n');
            const name =
                lines
                    .find(line => line.startsWith('event:'))
                    ?.slice(6)
                    .trim() ?? 'message';
            if (data) take(parse(data), name);
        }
    }
}
