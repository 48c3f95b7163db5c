// What happens now: one stream of samples, one each second, for everybody on the page. A hidden tab has none.
//
// A page may stay open for weeks, so what it holds is bounded: each second of the last minutes, before them each ten
// seconds of a day, as the server keeps them. No more of the past is asked for than a view shows.

import {listen, server} from './api.js';

const KEPT_MS = 24 * 3600e3;
const SECONDS_KEPT_MS = 600e3;
const TEN_MS = 10e3;
const FIRST_REACH_MS = 300e3; // of the past, before a view has asked for more
const RETRY_MS = 2000;
const SILENT_MS = 10e3; // samples come each second: behind it nobody answers
const DEAD_MS = 30e3; // behind it another connection is tried: the machine may have slept

export const live = {samples: [], state: 'waiting'};
const takers = new Set();
const watchers = new Set();

// Called with each new sample until the signal ends it.
export function onSample(take, signal) {
    takers.add(take);
    signal?.addEventListener('abort', () => takers.delete(take));
}
// Called when the stream is there or lost: live.state is 'live', 'waiting' or 'lost'.
export function onState(take) {
    watchers.add(take);
}

function setState(state) {
    if (live.state === state) return;
    live.state = state;
    for (const watcher of watchers) watcher(state);
}

// ---- what is held ----

let tens = 0; // samples at the beginning that are of ten seconds

function keep(sample) {
    const {samples} = live;
    samples.push(sample);
    while (samples[tens]?.step) tens++;
    while (samples.length && sample.t - samples[0].t > KEPT_MS) {
        samples.shift();
        tens = Math.max(0, tens - 1);
    }
    thin(sample.t - SECONDS_KEPT_MS);
}
// The seconds before `until` become tens.
function thin(until) {
    const {samples} = live;
    const tenOf = sample => Math.floor(sample.t / TEN_MS);
    while (tens < samples.length && (tenOf(samples[tens]) + 1) * TEN_MS <= until) {
        let end = tens + 1;
        while (end < samples.length && tenOf(samples[end]) === tenOf(samples[tens])) end++;
        samples.splice(tens, end - tens, together(samples.slice(tens, end)));
        tens++;
    }
}

const LATEST = ['connections', 'memory', 'disk', 'lagMs', 'queue', 'dead'];
const HIGHEST = ['p99'];
const MEANS = ['p50', 'errors', 'commits', 'batch', 'syncUs', 'calls', 'callErrors', 'callUs'];

// Several samples as one: rates are means, the p99 is the highest, and what is a state is the last.
export function together(some) {
    const last = some.at(-1);
    const given = name => some.map(one => one[name]).filter(value => value !== undefined);
    const mean = values => Math.round((values.reduce((sum, one) => sum + one, 0) / values.length) * 100) / 100;
    const all = {t: last.t, step: TEN_MS, ops: {}};
    for (const name of LATEST) all[name] = last[name];
    for (const name of HIGHEST) if (given(name).length) all[name] = Math.max(...given(name));
    for (const name of MEANS) if (given(name).length) all[name] = mean(given(name));
    const names = member => new Set(some.flatMap(one => Object.keys(one[member] ?? {})));
    for (const name of names('ops')) all.ops[name] = mean(some.map(one => one.ops[name] ?? 0));
    if (!some.some(one => one.functions)) return all;
    all.functions = {};
    for (const name of names('functions')) {
        const each = some.map(one => one.functions?.[name] ?? {});
        all.functions[name] = {
            calls: mean(each.map(one => one.calls ?? 0)),
            errors: mean(each.map(one => one.errors ?? 0)),
            running: Math.max(...each.map(one => one.running ?? 0)),
        };
    }
    return all;
}

// ---- the stream ----

let ending = null,
    reach = FIRST_REACH_MS,
    isAnew = true; // all that is asked for comes again

async function run() {
    ending = new AbortController();
    const {signal} = ending;
    while (!signal.aborted && !document.hidden) {
        if (!server.info.signIn || server.keys) await hear(signal).catch(() => {}); // tried again below
        if (signal.aborted) return;
        setState('lost');
        await new Promise(done => setTimeout(done, RETRY_MS));
    }
}

async function hear(signal) {
    const dead = new AbortController();
    let heard = Date.now();
    const watch = setInterval(() => {
        const silent = Date.now() - heard;
        if (silent > SILENT_MS) setState('lost');
        if (silent > DEAD_MS) dead.abort();
    }, 1000);
    const query = isAnew || !live.samples.length ? `last=${reach}` : `since=${live.samples.at(-1).t}`;
    try {
        await listen(
            `/console/events?${query}`,
            message => {
                heard = Date.now();
                setState('live');
                if (isAnew) live.samples.length = tens = 0;
                isAnew = false;
                for (const sample of message.history ?? []) keep(sample);
                if (message.sample) keep(message.sample);
                for (const take of takers) take(message.sample ?? null);
            },
            AbortSignal.any([signal, dead.signal]),
        );
    } finally {
        clearInterval(watch);
    }
}

function restart() {
    ending?.abort();
    if (!document.hidden) run();
    else setState('waiting');
}

// So far back a view shows; what is missing of it is asked for.
export function showsPast(ms) {
    if (ms <= reach) return;
    reach = ms;
    isAnew = true;
    if (ending) restart();
}

export function startLive() {
    document.addEventListener('visibilitychange', restart);
    restart();
}
