// Messages of queues, and among them dead letters: what failed for good, why, with its event; sent again or dropped.

import {at, dynamo, request} from './api.js';
import {functionOf, hasTable, ownTable} from './calls.js';
import {h, replace} from './dom.js';
import {count, plural} from './format.js';
import {parse, print} from './json.js';
import {
    actionButton,
    changeButton,
    confirmTyped,
    facts,
    faultPlace,
    grid,
    json,
    oneAtATime,
    since,
    time,
} from './parts.js';
import {href} from './route.js';

const PAGE = 100;
const REDRIVE_ROUNDS = 1000; // of 100 messages each
const PART = 1000; // messages of one part of the table
export const ALL_PARTS = 50; // when all queues are wanted

// ---- reading ----

// A message as the table of queues has it.
function letter(item) {
    const one = {
        queue: item.queue.S,
        id: item.id.S,
        sent: item.sent?.S,
        body: item.body?.S ?? '',
        payload: item.payload?.S ?? null,
        held: Number(item.held?.N ?? 0),
    };
    try {
        one.document = parse(one.body);
    } catch {
        one.document = null;
    }
    const {requestContext, requestPayload, responsePayload} = one.document ?? {};
    one.function = item.function?.S ?? functionOf(requestContext?.functionArn);
    one.condition = requestContext?.condition ?? '';
    one.attempts = requestContext?.approximateInvokeCount;
    one.requestId = requestContext?.requestId;
    one.reason = [responsePayload?.errorType, responsePayload?.errorMessage].filter(Boolean).join(': ');
    if (one.payload === null && requestPayload !== undefined && requestPayload !== null)
        one.payload = print(requestPayload, 0);
    return one;
}

// A page of a queue's messages, the oldest first: {letters, next}. beginning: of their ids.
export async function readQueue(queue, next, beginning = '') {
    if (!(await hasTable('queues'))) return {letters: [], next: null};
    const page = await dynamo('Query', {
        TableName: ownTable('queues'),
        KeyConditionExpression: '#queue = :queue' + (beginning ? ' and begins_with(#id, :id)' : ''),
        ExpressionAttributeNames: {'#queue': 'queue', ...(beginning ? {'#id': 'id'} : {})},
        ExpressionAttributeValues: {':queue': {S: queue}, ...(beginning ? {':id': {S: beginning}} : {})},
        Limit: PAGE,
        ExclusiveStartKey: next ?? undefined,
    });
    return {letters: page.Items.map(letter), next: page.LastEvaluatedKey ?? null};
}

// The queues, by a walk through so many parts of the table, as the command line does it: {queues, isPart}, each
// {name, messages, oldest}.
export async function readQueues(parts) {
    const queues = new Map();
    let next;
    if (await hasTable('queues'))
        for (let i = 0; i < parts && next !== null; i++) {
            const page = await dynamo('Scan', {
                TableName: ownTable('queues'),
                ProjectionExpression: '#queue, sent',
                ExpressionAttributeNames: {'#queue': 'queue'},
                Limit: PART,
                ExclusiveStartKey: next,
            });
            for (const {queue, sent} of page.Items) {
                const one = queues.get(queue.S) ?? {name: queue.S, messages: 0, oldest: sent?.S ?? ''};
                one.messages++;
                if (sent?.S && sent.S < one.oldest) one.oldest = sent.S;
                queues.set(queue.S, one);
            }
            next = page.LastEvaluatedKey ?? null;
        }
    return {queues: [...queues.values()], isPart: !!next};
}

// Those of a function in any queue, of the next part of the table: {letters, next}
export async function readFailed(name, next) {
    if (!(await hasTable('queues'))) return {letters: [], next: null};
    const page = await dynamo('Scan', {
        TableName: ownTable('queues'),
        FilterExpression: '#function = :name or begins_with(#function, :qualified) or contains(#body, :arn)',
        ExpressionAttributeNames: {'#function': 'function', '#body': 'body'},
        ExpressionAttributeValues: {
            ':name': {S: name},
            ':qualified': {S: name + ':'},
            ':arn': {S: `:function:${name}"`},
        },
        Limit: 1000,
        ExclusiveStartKey: next ?? undefined,
    });
    return {letters: page.Items.map(letter), next: page.LastEvaluatedKey ?? null};
}

// ---- changing ----

// Sends one, or all that are there now. Answers {redriven, refused, later, left, reasons: [[reason, count]]}.
export async function redrive(queue, id = null) {
    const sum = {redriven: 0, refused: 0, later: 0, left: 0, reasons: new Map()};
    let next;
    for (let i = 0; i < REDRIVE_ROUNDS; i++) {
        const reply = await request('POST', at`/v1/queues/${queue}/redrive`, {body: id ? {id} : {next}});
        for (const part of ['redriven', 'refused', 'later']) sum[part] += Number(reply[part] ?? 0);
        sum.left = Number(reply.left ?? 0);
        for (const one of reply.reasons ?? [])
            sum.reasons.set(one.reason, (sum.reasons.get(one.reason) ?? 0) + Number(one.count));
        next = reply.next;
        if (id || !next) break;
    }
    return sum;
}

export async function drop({queue, id}) {
    const gone = await dynamo('DeleteItem', {
        TableName: ownTable('queues'),
        Key: {queue: {S: queue}, id: {S: id}},
        ReturnValues: 'ALL_OLD',
    });
    for (let part = 1; part <= Number(gone.Attributes?.held?.N ?? 0); part++)
        await dynamo('DeleteItem', {
            TableName: ownTable('invocations'),
            Key: {id: {S: `letter/${queue}/${id}`}, part: {N: String(part)}},
        });
}

function addUp(sums) {
    const all = {redriven: 0, refused: 0, later: 0, left: 0, reasons: new Map()};
    for (const sum of sums) {
        for (const part of ['redriven', 'refused', 'later']) all[part] += sum[part];
        for (const [reason, n] of sum.reasons) all.reasons.set(reason, (all.reasons.get(reason) ?? 0) + n);
    }
    return all;
}

const outcome = sum =>
    h(
        'p',
        {role: 'status'},
        `${plural(sum.redriven, 'message')} sent again.`,
        sum.later ? ` ${count(sum.later)} came meanwhile and ${sum.later === 1 ? 'stays' : 'stay'}.` : '',
        [...sum.reasons].map(([reason, n]) => ` ${plural(n, 'message')} stayed: ${reason}.`),
    );

// ---- the list ----

// Letters with what can be done about them. load(next) answers {letters, next}; queue: all are of this one, so that
// all can be sent at once. letterHref(letter): where one leads. onchange(): some were sent or dropped.
export function letterList({load, queue = null, letterHref, onchange = null, empty}) {
    const faults = faultPlace();
    const said = h('div');
    let letters = [],
        next = null;
    const chosen = () => letters.filter(one => list.marked.has(keyOf(one)));
    const list = grid({
        label: 'Messages',
        key: keyOf,
        href: letterHref,
        empty,
        onmark: paint,
        columns: [
            {title: 'Sent', cell: one => (one.sent ? since(one.sent) : one.id), sort: one => one.sent ?? ''},
            queue === null ? {title: 'Queue', cell: one => one.queue, sort: one => one.queue} : null,
            {title: 'Function', cell: one => targetWords(one.function), sort: one => one.function},
            {title: 'Why', cell: one => one.condition, sort: one => one.condition},
            {
                title: 'Attempts',
                right: true,
                cell: one => count(one.attempts),
                sort: one => Number(one.attempts ?? 0),
            },
            {title: 'Reason', wide: true, cell: one => one.reason || (one.condition ? '' : one.body.slice(0, 200))},
        ].filter(Boolean),
    });
    const send = changeButton('Redrive marked', () =>
        act(async () => addUp(await inTurn(chosen(), one => redrive(one.queue, one.id)))),
    );
    const sendAll = changeButton('Redrive all', () =>
        act(async () =>
            queue === null ? addUp(await inTurn(letters, one => redrive(one.queue, one.id))) : redrive(queue),
        ),
    );
    const remove = changeButton(
        'Drop marked …',
        async () => {
            const some = chosen();
            const name = queue ?? some[0].queue;
            const done = await confirmTyped({
                title: `Drop ${plural(some.length, 'message')}?`,
                name,
                sentence: 'The calls that they hold will not be made. This cannot be undone.',
                words: 'Drop',
                job: () => inTurn(some, drop),
            });
            if (!done) return;
            list.clearMarks();
            await refresh();
            await onchange?.();
        },
        {class: 'danger'},
    );
    const more = actionButton('More', () => faults.run(readMore), {hidden: true});

    function paint() {
        for (const one of [send, remove]) one.hidden = !list.marked.size;
        sendAll.hidden = !letters.length;
        more.hidden = next === null;
    }
    async function act(job) {
        const sum = await faults.run(job);
        if (sum) replace(said, outcome(sum));
        list.clearMarks();
        await refresh();
        await onchange?.();
    }
    async function readMore() {
        const page = await load(next);
        letters = [...letters, ...page.letters];
        next = page.next;
        list.update(letters);
        paint();
    }
    // The first page again; pages that were asked for beside it stay until then.
    const refresh = oneAtATime(() =>
        faults.run(async () => {
            const page = await load(null);
            letters = page.letters;
            next = page.next;
            // a part of the table without any says nothing about the next
            for (let i = 0; i < 10 && !letters.length && next !== null; i++) await readMore();
            list.update(letters);
            paint();
        }),
    );
    paint();
    return {
        element: h('div.letters', h('div.bar', send, sendAll, remove), faults.element, said, list.element, more),
        refresh,
        // the same while nobody has asked for more than the first page
        look: () => (letters.length <= PAGE ? refresh() : null),
        find: (ofQueue, id) => letters.find(one => one.queue === ofQueue && one.id === id),
    };
}
const keyOf = one => `${one.queue}\n${one.id}`;
// A target that is no function is JSON.
export const targetWords = target => (target?.startsWith('{') ? target.slice(0, 200) : (target ?? ''));

async function inTurn(things, job) {
    const answers = [];
    for (const one of things) answers.push(await job(one));
    return answers;
}

// All about one; `done` is called after it was sent or dropped.
export function letterFacts(one, done) {
    const faults = faultPlace();
    const said = h('div');
    const name = one.function.split(':')[0];
    const isFunction = /^[\w-]+(:[\w$-]+)?$/.test(one.function);
    return h(
        'section.letter',
        h('h3', 'Message ', h('code', one.id)),
        h(
            'div.bar',
            changeButton('Redrive', async () => {
                const sum = await faults.run(() => redrive(one.queue, one.id));
                if (!sum) return;
                replace(said, outcome(sum));
                if (sum.redriven) await done(outcome(sum));
            }),
            isFunction && one.payload !== null
                ? h(
                      'a',
                      {href: href(['functions', name, 'invoke']), onclick: () => carry(name, one.payload)},
                      'Invoke with this event',
                  )
                : null,
            isFunction && one.requestId
                ? h('a', {href: href(['functions', name, 'logs'], {call: one.requestId})}, 'Its log')
                : null,
        ),
        faults.element,
        said,
        facts([
            ['Queue', h('a', {href: href(['queues', one.queue])}, one.queue)],
            ['Sent', time(one.sent)],
            [
                'Function',
                isFunction ? h('a', {href: href(['functions', name])}, one.function) : targetWords(one.function),
            ],
            ['Why', one.condition],
            ['Attempts', one.attempts === undefined ? null : count(one.attempts)],
            ['Reason', one.reason],
            ['Request', one.requestId],
        ]),
        one.payload === null ? null : [h('h3', 'Event'), json(pretty(one.payload))],
        one.held ? h('p.dim', 'Its event is kept apart, since it is long or has a secret.') : null,
        h('h3', 'Message'),
        json(pretty(one.body)),
    );
}

export function pretty(words) {
    try {
        return print(parse(words));
    } catch {
        return words;
    }
}

// An event on its way to the form that invokes a function.
export const carry = (name, payload) => sessionStorage.setItem(`event/${name}`, pretty(payload));
export function carried(name) {
    const found = sessionStorage.getItem(`event/${name}`);
    sessionStorage.removeItem(`event/${name}`);
    return found;
}
