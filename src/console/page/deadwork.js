// Units of work that are dead are claimed again: of one queue, or of all.

import {at, listed, request} from './api.js';
import {operate} from './operation.js';

// They have an index of their own, so all of them can be found.
export async function retryDead(queue) {
    for (;;) {
        const {work} = await request('GET', `${at`/v1/work/${queue}`}?state=dead&limit=100`);
        if (!work.length) return;
        for (const {id} of work) await operate('workRetry', {queue, id});
    }
}
export async function retryDeadWork() {
    for (const {queue} of (await listed('/v1/work', 'queues')).rows) await retryDead(queue);
}
