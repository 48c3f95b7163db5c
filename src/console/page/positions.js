// How far a trigger has come in the shards of its table's stream, what waits, and what changes it.

import {at, dynamo, request, streams} from './api.js';
import {hasTable, ownTable} from './calls.js';

const ITERATOR_MS = 10 * 60e3; // they are good for 15 minutes

// ---- where it is ----

// [{shard, point (of its slowest lane), ended, owner, moves, iterator, since}]
export async function positions(id) {
    if (!(await hasTable('positions'))) return [];
    const found = [];
    let from;
    do {
        const page = await dynamo('Query', {
            TableName: ownTable('positions'),
            KeyConditionExpression: '#mapping = :id and begins_with(#shard, :shard)',
            ExpressionAttributeNames: {'#mapping': 'mapping', '#shard': 'shard'},
            ExpressionAttributeValues: {':id': {S: id}, ':shard': {S: 'shardId-'}},
            ExclusiveStartKey: from,
        });
        found.push(...page.Items.map(position));
        from = page.LastEvaluatedKey;
    } while (from && found.length < 1000);
    return found;
}

function position(item) {
    const points = Object.values(item.at?.M ?? {}).map(point => point.S);
    return {
        shard: item.shard.S,
        point: points.reduce((least, point) => (isBefore(point, least) ? point : least), points[0] ?? ''),
        ended: item.ended?.BOOL ?? false,
        owner: item.owner?.S ?? null,
        moves: Number(item.moves?.N ?? 0),
        iterator: item.iterator?.S ?? null,
        since: Number(item.since?.N ?? 0),
    };
}

const isNumber = point => /^\d/.test(point ?? '');
// By value: a longer one is larger. What is no number yet comes before all that are.
function isBefore(a, b) {
    if (!isNumber(a) || !isNumber(b)) return !isNumber(a) && isNumber(b);
    return a.length !== b.length ? a.length < b.length : a < b;
}

// ---- what waits ----

const iterators = new Map(); // stream, shard and point → {iterator, made}

async function iteratorOf(stream, one) {
    if (one.iterator && Date.now() - one.since < ITERATOR_MS) return one.iterator; // where LATEST was
    const key = `${stream} ${one.shard} ${one.point}`;
    const known = iterators.get(key);
    if (known && Date.now() - known.made < ITERATOR_MS) return known.iterator;
    const {ShardIterator: iterator} = await streams('GetShardIterator', {
        StreamArn: stream,
        ShardId: one.shard,
        ShardIteratorType: isNumber(one.point) ? 'AFTER_SEQUENCE_NUMBER' : one.point,
        SequenceNumber: isNumber(one.point) ? one.point : undefined,
    });
    if (iterators.size > 1000) iterators.clear();
    iterators.set(key, {iterator, made: Date.now()});
    return iterator;
}

// The age in ms of the oldest change that a shard still has for it; 0: none.
export async function shardLag(stream, one) {
    if (one.ended || !one.point) return 0;
    const page = await streams('GetRecords', {ShardIterator: await iteratorOf(stream, one), Limit: 1});
    const [record] = page.Records;
    if (!record) return 0;
    return Math.max(1, Date.now() - Number(record.dynamodb.ApproximateCreationDateTime) * 1000);
}

// Of all shards; null: that cannot be found out. Tells each its own as `lag`.
export async function lagOf(mapping, all) {
    let lag = 0;
    for (const one of all)
        try {
            one.lag = await shardLag(mapping.EventSourceArn, one);
            lag = Math.max(lag, one.lag);
        } catch {
            one.lag = null;
            lag = null;
            break;
        }
    return lag;
}

// ---- changing ----

const pathOf = id => at`/2015-03-31/event-source-mappings/${id}`;

export const enable = (id, is) => request('PUT', pathOf(id), {body: {Enabled: is}});

// to: start, end, a time, or the sequence number behind which it goes on. shard: only this one.
export const move = (id, to, shard) =>
    request('POST', pathOf(id) + '/move', {body: {To: to, ShardId: shard || undefined}});
