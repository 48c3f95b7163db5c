// The changes of a table as they happen: told by the server whose data it is, else by the table's stream.

import {at, listen, server, streams} from './api.js';

const SHARDS = 20; // open shards that are followed
const PAUSE_MS = 5000; // each request costs money on a service

export const needsStream = () => server.info.engine?.kind === 'remote';

// take({seq, t, kind, keys, old, new}) for each, items in DynamoDB's JSON; take({skipped}) for those that came faster
// than anybody reads. Ends when the server ends it.
export const followChanges = ({name, arn, take, signal}) =>
    needsStream() ? followShards(arn, take, signal) : listen(at`/console/changes?table=${name}`, toldBy(take), signal);

// The last event may say why there are no more.
const toldBy = take => change => {
    if (change.end) throw new Error(change.end);
    take(change);
};

async function followShards(arn, take, signal) {
    const iterators = new Map(); // shard → where to go on; null: at its end
    let isFirst = true;
    while (!signal.aborted) {
        const {StreamDescription} = await streams('DescribeStream', {StreamArn: arn}, {signal});
        const open = StreamDescription.Shards.filter(one => !one.SequenceNumberRange?.EndingSequenceNumber);
        for (const {ShardId} of open.slice(-SHARDS))
            if (!iterators.has(ShardId)) {
                const ShardIteratorType = isFirst ? 'LATEST' : 'TRIM_HORIZON';
                const asked = {StreamArn: arn, ShardId, ShardIteratorType};
                iterators.set(ShardId, (await streams('GetShardIterator', asked, {signal})).ShardIterator);
            }
        isFirst = false;
        for (const [shard, iterator] of iterators) {
            if (!iterator) continue;
            const reply = await streams('GetRecords', {ShardIterator: iterator}, {signal});
            iterators.set(shard, reply.NextShardIterator ?? null);
            for (const {eventName, dynamodb} of reply.Records)
                take({
                    seq: dynamodb.SequenceNumber,
                    t: Number(dynamodb.ApproximateCreationDateTime) * 1000,
                    kind: eventName,
                    keys: dynamodb.Keys,
                    old: dynamodb.OldImage,
                    new: dynamodb.NewImage,
                });
        }
        await new Promise(resolve => {
            const timer = setTimeout(resolve, PAUSE_MS);
            signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), {once: true});
        });
    }
}
