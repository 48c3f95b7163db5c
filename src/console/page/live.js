// What happens now: one stream of samples, one each second, for everybody on the page. A hidden tab has none.

import {listen, server} from './api.js';

const KEPT_MS = 24 * 3600e3;
const RETRY_MS = 2000;

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

function keep(sample) {
    live.samples.push(sample);
    while (live.samples.length && sample.t - live.samples[0].t > KEPT_MS) live.samples.shift();
}

let ending = null;
async function run() {
    ending = new AbortController();
    const {signal} = ending;
    while (!signal.aborted && !document.hidden) {
        if (!server.info.signIn || server.keys)
            try {
                const since = live.samples.at(-1)?.t ?? 0;
                await listen(
                    `/console/events?since=${since}`,
                    message => {
                        setState('live');
                        for (const sample of message.history ?? []) keep(sample);
                        if (message.sample) keep(message.sample);
                        for (const take of takers) take(message.sample ?? null);
                    },
                    signal,
                );
            } catch {
                /* tried again below */
            }
        if (signal.aborted) return;
        setState('lost');
        await new Promise(done => setTimeout(done, RETRY_MS));
    }
}

export function startLive() {
    document.addEventListener('visibilitychange', () => {
        ending?.abort();
        if (!document.hidden) run();
        else setState('waiting');
    });
    if (!document.hidden) run();
}
