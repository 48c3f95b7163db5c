"""doc/scale.md: its units are those that are really consumed, and its dollars follow from them."""
import collections
import json
import math
import os
import re

import pytest
from cli import items
from support.process import ROOT, DynamoLocal, Quipu
from support.proxy import Proxy

KEYS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_DEFAULT_REGION": "us-east-1"}


# ---- the same calls on two engines ----

def book_of(proxy):
    """The rows of quipu cost on what is behind the proxy, and its calls that were charged."""
    rows = items("cost", "--on", proxy.url, env=KEYS)
    calls = [call for call in proxy.calls if "ReturnConsumedCapacity" in call.request]
    return rows, strip(calls)


@pytest.fixture(scope="module")
def engines():
    """Of the embedded engine's rules and of DynamoDB Local: rows and calls."""
    with Quipu("--memory") as quipu, DynamoLocal() as local, Proxy(quipu.url) as ours, Proxy(local.url) as theirs:
        yield book_of(ours), book_of(theirs)


def strip(calls):
    """The calls as they are whatever the tables are called."""
    for call in calls:
        call.request, call.reply = (json.loads(re.sub(r"quipu-cost-[0-9a-f]{8}-", "", json.dumps(text)))
                                    for text in (call.request, call.reply))
    return calls


def units_of_nothing(call):
    """What a read is charged for that it looked for and did not find: table, arm, units."""
    if call.operation == "Query" and not call.reply["ScannedCount"]:
        units = 1 if "ConsistentRead" in call.request else 0.5
        yield call.request["TableName"], call.request.get("IndexName", ""), units
    if call.operation == "BatchGetItem":
        for table, wanted in call.request["RequestItems"].items():
            lost = len(wanted["Keys"]) - len(call.reply["Responses"].get(table, []))
            yield table, "", lost * (1 if "ConsistentRead" in wanted else 0.5)


def actions_of(call):
    """How many items of each table a transaction writes."""
    tables = [list(action.values())[0]["TableName"] for action in call.request["TransactItems"]]
    return collections.Counter(tables)


def in_transaction(call, ours):
    """Each item is charged twice, its index entries once. Local charges each table twice and the index entries of one
    of its items twice, so it says nothing about the entries where there are several items of a table."""
    consumed = call.consumed()
    for table, items_written in actions_of(call).items():
        arms = {arm: units / 2 for arm, units in consumed[table].items()} if items_written == 1 else ours[table]
        consumed[table] = {**arms, "": 2 * items_written}
    return consumed


def by_the_service(call, ours):
    """What Local says a call consumed, put right where the service is known to count otherwise: a query or batch that
    finds nothing is charged as if it found something small (Local: nothing), and transactions as above."""
    if call.status == 200 and call.operation == "TransactWriteItems":
        return in_transaction(call, ours)
    consumed = call.consumed()
    for table, arm, units in units_of_nothing(call) if call.status == 200 else []:
        consumed.setdefault(table, {"": 0})[arm] = consumed[table].get(arm, 0) + units
    return consumed


def test_every_call_consumes_what_dynamodb_says(engines):
    (_, ours), (_, theirs) = engines
    assert len(ours) == len(theirs) > 300
    seen = collections.Counter()
    for one, other in zip(ours, theirs):
        assert (one.operation, one.status) == (other.operation, other.status)
        assert one.consumed() == by_the_service(other, one.consumed()), (one.operation, one.request)
        seen[one.operation] += 1
    assert {"GetItem", "Query", "BatchGetItem", "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem",
            "TransactWriteItems"} <= set(seen) and not seen["Scan"]
