// What failed for good, counted and tried again: dead units of work, failed jobs, calls that were given up.

import {at, dynamo, listed, request} from './api.js';
import {hasTable, ownTable} from './calls.js';
import {plural} from './format.js';
import {operate} from './operation.js';

const COUNTED = 1000; // messages that are looked at

// ---- work ----

// They have an index of their own, so all of them can be found.
export async function retryDead(queue) {
    let number = 0;
    for (;;) {
        const {work} = await request('GET', `${at`/v1/work/${queue}`}?state=dead&limit=100`);
        if (!work.length) return number;
        for (const {id} of work) await operate('workRetry', {queue, id});
        number += work.length;
    }
}
async function retryDeadWork() {
    let number = 0;
    for (const {queue} of (await listed('/v1/work', 'queues')).rows) number += await retryDead(queue);
    return number;
}

// ---- jobs ----

async function redriveJobs() {
    const {rows} = await listed('/v1/jobs?state=failed', 'jobs');
    for (const {id} of rows) await operate('jobRedrive', {id});
    return rows.length;
}

// ---- calls ----

// Messages that tell of a failed call; others wait for whoever fetches them. Of the first ones.
export async function countDeadCalls() {
    if (!(await hasTable('queues'))) return 0;
    const {Count} = await dynamo('Scan', {
        TableName: ownTable('queues'),
        Select: 'COUNT',
        FilterExpression:
            'attribute_exists(#function) or (contains(#body, :attempts) and not contains(#body, :success))',
        ExpressionAttributeNames: {'#function': 'function', '#body': 'body'},
        ExpressionAttributeValues: {
            ':attempts': {S: '"approximateInvokeCount":'},
            ':success': {S: '"condition":"Success"'},
        },
        Limit: COUNTED,
    });
    return Number(Count);
}
async function redriveCalls() {
    const {ALL_PARTS, readQueues, redrive} = await import('./letters.js');
    let number = 0;
    for (const {name} of (await readQueues(ALL_PARTS)).queues) number += (await redrive(name)).redriven;
    return number;
}

// ---- all of it ----

const KINDS = {
    work: [retryDeadWork, 'unit of work', 'units of work'],
    jobs: [redriveJobs, 'job', 'jobs'],
    calls: [redriveCalls, 'call', 'calls'],
};
// Of these kinds. Answers in words what was tried again.
export async function retryAll(kinds) {
    const done = [];
    for (const kind of kinds) {
        const [retry, ...words] = KINDS[kind];
        const number = await retry();
        if (number) done.push(plural(number, ...words));
    }
    return done.length ? `${done.join(', ')} tried again.` : 'Nothing could be tried again.';
}
