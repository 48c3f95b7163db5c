"""Reads whole streams on both sides: each item must have had the same history.

Numbers, times, shards and the order of different items are a server's own. What is left is the history of each item:
the kind of each change and the images before and after it."""
import json

from compare import as_it_is, canonical, normal, plain_number

VIEW = {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}}


def shards(side, table):
    """The shards of the newest stream of the table, parents first."""
    streams = side.stream_call("ListStreams", {"TableName": table}).body["Streams"]
    arn = max(streams, key=lambda stream: stream["StreamLabel"])["StreamArn"]
    request, found = {"StreamArn": arn}, []
    while True:
        description = side.stream_call("DescribeStream", request).body["StreamDescription"]
        found += [(arn, shard["ShardId"]) for shard in description["Shards"]]
        if "LastEvaluatedShardId" not in description:
            return found
        request["ExclusiveStartShardId"] = description["LastEvaluatedShardId"]


def records(side, table):
    """All records of the table's stream. A page without records is the end: nothing is being written."""
    for arn, shard in shards(side, table):
        iterator = side.stream_call("GetShardIterator", {"StreamArn": arn, "ShardId": shard,
                                                         "ShardIteratorType": "TRIM_HORIZON"}).body["ShardIterator"]
        while iterator:
            page = side.stream_call("GetRecords", {"ShardIterator": iterator}).body
            yield from page["Records"]
            iterator = page.get("NextShardIterator") if page["Records"] else None


def histories(side, table, number):
    """{key: [(event, old image, new image)]}, numbers passed through `number`."""
    found = {}
    for record in records(side, table):
        change = normal(record["dynamodb"], number)
        key = canonical(change["Keys"])
        images = [without_empty(json.loads(canonical(change.get(name)))) for name in ("OldImage", "NewImage")]
        if record["eventName"] != "MODIFY" or images[0] != images[1]:
            found.setdefault(key, []).append((record["eventName"], *images))
    return {key: without_detours(history, key) for key, history in found.items()}


def without_empty(node):
    """Empty lists and maps as Local's streams have them: without a type."""
    if node in ({"L": []}, {"M": {}}):
        return {}
    if isinstance(node, dict):
        return {name: without_empty(part) for name, part in node.items()}
    return [without_empty(part) for part in node] if isinstance(node, list) else node


def without_detours(history, key):
    """Local makes an item of an update that only clears, and the test takes it away again: so nothing happened."""
    result = []
    for event in history:
        if event[0] == "REMOVE" and result and result[-1][0] == "INSERT" and canonical(result[-1][2]) == key:
            result.pop()
        else:
            result.append(event)
    return result


def different_histories(ours, theirs, table):
    """The keys of items whose histories differ, each with both."""
    us, them = histories(ours, table, as_it_is), histories(theirs, table, plain_number)
    keys = sorted(set(us) | set(them))
    return [(key, us.get(key, []), them.get(key, [])) for key in keys if us.get(key, []) != them.get(key, [])]
