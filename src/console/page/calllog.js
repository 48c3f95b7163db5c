// A function's log, cut into calls: Lambda's START and REPORT lines, or their objects in a JSON log.

import {at, logs, open} from './api.js';
import {parse} from './json.js';

const LINES = 1000; // of the past
const CALLS_KEPT = 500;
const LINES_KEPT = 400; // of one call, and outside of calls
const RETRY_MS = 2000;

// All that was heard of a log. `calls`: the oldest first, each {id, version, t, lines, ms, initMs, memoryMb, status}.
export class CallLog {
    constructor() {
        this.calls = new Map();
        this.others = []; // lines of no call: of a start, or of a function that printed without being called
        this.latest = null;
    }
    call(id, t) {
        let call = this.calls.get(id);
        if (!call) {
            this.calls.set(id, (call = {id, t, lines: [], cut: 0}));
            if (this.calls.size > CALLS_KEPT) this.calls.delete(this.calls.keys().next().value);
        }
        return call;
    }
    take(line, t) {
        const said = read(line);
        if (said.id) {
            const call = this.call(said.id, t);
            this.latest = said.ends ? null : call;
            const {id, ends, ...rest} = said;
            Object.assign(call, rest);
            keep(call, line);
        } else if (this.latest) keep(this.latest, line);
        else {
            this.others.push(line);
            if (this.others.length > LINES_KEPT) this.others.shift();
        }
    }
}

function keep(call, line) {
    call.lines.push(line);
    if (call.lines.length > LINES_KEPT) {
        call.lines.splice(1, 1); // the first one stays
        call.cut++;
    }
}

const number = (words, pattern) => {
    const found = pattern.exec(words);
    return found ? Number(found[1]) : undefined;
};

function read(line) {
    let found = /^START RequestId: (\S+) Version: (\S+)/.exec(line);
    if (found) return {id: found[1], version: found[2]};
    if ((found = /^END RequestId: (\S+)/.exec(line))) return {id: found[1], ends: true};
    if ((found = /^REPORT RequestId: (\S+)\t(.*)/.exec(line)))
        return {
            id: found[1],
            ends: true,
            ms: number(found[2], /(?:^|\t)Duration: ([\d.]+) ms/),
            initMs: number(found[2], /Init Duration: ([\d.]+) ms/),
            memoryMb: number(found[2], /Max Memory Used: (\d+) MB/),
            status: /Status: (\w+)/.exec(found[2])?.[1] ?? 'success',
        };
    if ((found = /^\S+Z\t([0-9a-f-]{36})\t/.exec(line))) return {id: found[1]};
    return line.startsWith('{') ? readJson(line) : {};
}

function readJson(line) {
    let said;
    try {
        said = parse(line);
    } catch {
        return {};
    }
    const record = said.record ?? {};
    const id = typeof record.requestId === 'string' ? record.requestId : said.requestId;
    if (typeof id !== 'string') return {};
    if (said.type === 'platform.start') return {id, version: record.version};
    if (said.type !== 'platform.report') return {id};
    const {durationMs: ms, initDurationMs: initMs, maxMemoryUsedMB: memoryMb} = record.metrics ?? {};
    return {id, ends: true, ms, initMs, memoryMb, status: record.status ?? 'success'};
}

// The end of the log, which has the times of its lines. Answers where it goes on.
async function readPast(name, group, log, options) {
    const stream = {logGroupName: group, logStreamName: name, limit: LINES};
    const last = await logs('GetLogEvents', stream, options);
    let events = last.events;
    if (events.length && events.length < LINES / 2) {
        const before = await logs('GetLogEvents', {...stream, nextToken: last.nextBackwardToken}, options);
        events = [...before.events, ...events];
    }
    for (const event of events) log.take(event.message, Number(event.timestamp));
    return Number(last.nextForwardToken.slice(2));
}

// Reads a function's log and goes on as it is written. take(): something came. fault(error): it is tried again;
// fault(null): it goes on.
export async function follow({name, group}, log, take, fault, signal) {
    let position = null,
        rest = '',
        isLost = false;
    while (!signal.aborted) {
        const hidden = new AbortController();
        const hide = () => document.hidden && hidden.abort();
        document.addEventListener('visibilitychange', hide);
        const both = {signal: AbortSignal.any([signal, hidden.signal])};
        try {
            if (position === null) {
                position = await readPast(name, group, log, both);
                take();
            }
            const path = at`/v1/functions/${name}/logs` + `?follow=1&from=${position}`;
            const reader = (await open('GET', path, both)).body.getReader();
            if (isLost) fault(null);
            isLost = false;
            const decoder = new TextDecoder();
            for (;;) {
                const {value, done} = await reader.read();
                if (done) break;
                position += value.length;
                const lines = (rest + decoder.decode(value, {stream: true})).split('\n');
                rest = lines.pop();
                for (const line of lines) log.take(line, Date.now());
                if (lines.length) take();
            }
        } catch (error) {
            isLost = !both.signal.aborted;
            if (isLost) fault(error);
        }
        document.removeEventListener('visibilitychange', hide);
        if (document.hidden) await shown(signal);
        else if (!signal.aborted) await new Promise(done => setTimeout(done, RETRY_MS));
    }
}

const shown = signal =>
    new Promise(done => {
        const ending = new AbortController();
        const end = () => {
            if (!document.hidden || signal.aborted) {
                ending.abort();
                done();
            }
        };
        document.addEventListener('visibilitychange', end, {signal: ending.signal});
        signal.addEventListener('abort', end, {signal: ending.signal});
    });
