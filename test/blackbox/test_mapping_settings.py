"""Each setting of an event source mapping by its effect, with real functions."""
import itertools
import json
import os
import time
import urllib.request

import pytest
from conftest import boto_client, create_table
from lambdas import Function, Mapping, archive, eventually, lambda_client, queue_documents, send
from support.process import Quipu

numbers = itertools.count(1)
QUEUE_ARN = "arn:aws:sqs:us-east-1:000000000000:"


@pytest.fixture(scope="module")
def server():
    with Quipu("--memory", "--test-hooks", "--stream-shards", "1") as running:
        yield running


@pytest.fixture(scope="module")
def dynamodb(server):
    return boto_client(server.url)


@pytest.fixture(scope="module")
def functions(server):
    return lambda_client(server.url)


@pytest.fixture
def table(dynamodb):
    name = f"things-{next(numbers)}"
    create_table(dynamodb, name, range_type="N",
                 StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"})
    yield name
    dynamodb.delete_table(TableName=name)


@pytest.fixture
def make_function(functions, tmp_path):
    made = []

    def make(source="def handle(event):\n    return None\n", **more):
        made.append(Function(functions, tmp_path, f"function-{next(numbers)}", source, **more))
        return made[-1]

    yield make
    for function in made:
        functions.delete_function(FunctionName=function.name)


@pytest.fixture
def make_mapping(functions):
    made = []

    def make(source, function, position="TRIM_HORIZON", **settings):
        made.append(Mapping(functions, source, function.name, position, **settings))
        return made[-1]

    yield make
    for mapping in made:
        if not mapping.is_gone():
            mapping.delete()


def put(dynamodb, table, *values, pk="a", **more):
    """Items of one hash key, so that their records are in one order."""
    for n in values:
        dynamodb.put_item(TableName=table, Item={"pk": {"S": pk}, "sk": {"N": str(n)}, "n": {"N": str(n)}, **more})


def hook(server, path, body=None):
    status, reply = send(server.url, "POST", f"/_quipu/{path}", body)
    assert status == 200, reply
    return reply


def advance(server, seconds):
    hook(server, "clock", {"advance_seconds": seconds})


def settle(server):
    """All records that are there have been handled, so that what was not called now will not be."""
    hook(server, "idle")


# ---- where to begin ----

def test_trim_horizon_begins_with_the_oldest_record_and_latest_with_the_next(server, dynamodb, table, make_function,
                                                                            make_mapping):
    put(dynamodb, table, 1, 2)
    oldest, newest = make_function(), make_function()
    make_mapping(table, oldest)
    make_mapping(table, newest, "LATEST")
    put(dynamodb, table, 3)
    eventually(lambda: newest.numbers() == [3], "LATEST sees what was written after it was made")
    eventually(lambda: oldest.numbers() == [1, 2, 3], "TRIM_HORIZON sees everything")


def test_the_source_may_be_a_stream_a_table_or_a_name(dynamodb, table, make_function, make_mapping):
    description = dynamodb.describe_table(TableName=table)["Table"]
    for source in description["LatestStreamArn"], description["TableArn"], table:
        function = make_function()
        mapping = make_mapping(source, function)
        assert mapping.get()["EventSourceArn"] == description["LatestStreamArn"]
        assert mapping.get()["FunctionArn"] == function.arn


def test_the_event_is_lambdas(dynamodb, table, make_function, make_mapping):
    function = make_function()
    mapping = make_mapping(table, function)
    put(dynamodb, table, 1, flag={"BOOL": True}, raw={"B": b"\0\xff"})
    put(dynamodb, table, 1, flag={"BOOL": False})
    eventually(lambda: len(function.numbers()) == 2, "both changes were seen")
    first, second = [record for event in function.events() for record in event["Records"]]
    assert first["eventName"] == "INSERT" and second["eventName"] == "MODIFY"
    assert first["eventVersion"] == "1.1" and first["eventSource"] == "aws:dynamodb"
    assert first["awsRegion"] == "us-east-1"
    assert first["eventSourceARN"] == mapping.get()["EventSourceArn"]
    assert first["dynamodb"]["Keys"] == {"pk": {"S": "a"}, "sk": {"N": "1"}}
    assert first["dynamodb"]["NewImage"]["raw"] == {"B": "AP8="} and "OldImage" not in first["dynamodb"]
    assert second["dynamodb"]["OldImage"] == first["dynamodb"]["NewImage"]
    assert second["dynamodb"]["NewImage"]["flag"] == {"BOOL": False}
    assert isinstance(first["dynamodb"]["ApproximateCreationDateTime"], (int, float))
    assert first["dynamodb"]["StreamViewType"] == "NEW_AND_OLD_IMAGES" and first["dynamodb"]["SizeBytes"] > 0
    assert int(first["dynamodb"]["SequenceNumber"]) < int(second["dynamodb"]["SequenceNumber"])
    eventually(lambda: mapping.get()["LastProcessingResult"] == "OK", "the mapping tells that all went well")


# ---- batches ----

def test_batches_have_the_size_at_most(dynamodb, table, make_function, make_mapping):
    put(dynamodb, table, *range(10))
    function = make_function()
    make_mapping(table, function, BatchSize=3)
    eventually(lambda: len(function.numbers()) == 10, "all records were handled")
    assert function.batches() == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]


def test_a_large_backlog_comes_in_full_batches(dynamodb, table, make_function, make_mapping):
    put(dynamodb, table, *range(120))
    function = make_function()
    make_mapping(table, function)
    eventually(lambda: len(function.numbers()) == 120, "all records were handled")
    assert [len(batch) for batch in function.batches()] == [100, 20]
    assert function.numbers() == list(range(120))


def test_a_window_waits_for_a_full_batch_or_its_end(server, dynamodb, table, make_function, make_mapping):
    function = make_function()
    make_mapping(table, function, BatchSize=5, MaximumBatchingWindowInSeconds=300)
    put(dynamodb, table, 1, 2, 3)
    time.sleep(0.5)
    assert function.batches() == []
    put(dynamodb, table, 4, 5)
    eventually(lambda: function.batches() == [[1, 2, 3, 4, 5]], "the full batch did not wait for the window's end")
    put(dynamodb, table, 6)
    time.sleep(0.3)
    assert len(function.batches()) == 1

    def is_sent():
        advance(server, 301)  # the window begins when the record is read, and nobody tells of that
        return function.batches()[1:] == [[6]]

    eventually(is_sent, "the window's end sent what was there")


# ---- parallel batches ----

MEETS_ANOTHER = """
import uuid

def handle(event):
    folder = os.environ["NOTES"] + ".inside"
    os.makedirs(folder, exist_ok=True)
    mine = os.path.join(folder, str(uuid.uuid4()))
    open(mine, "w").close()
    until = time.monotonic() + 20
    met = False
    while not met and time.monotonic() < until and not os.path.exists(folder + ".met"):
        met = len(os.listdir(folder)) > 1
        time.sleep(0.005)
    if met:
        open(folder + ".met", "w").close()
    os.unlink(mine)
    note(met=met)
"""


def test_parallel_batches_keep_the_order_of_each_key(server, dynamodb, table, make_function, make_mapping):
    for version in range(8):
        for key in "abcdefghijkl":
            put(dynamodb, table, version, pk=key)
    function = make_function(MEETS_ANOTHER)
    make_mapping(table, function, BatchSize=4, ParallelizationFactor=10)
    eventually(lambda: len(function.numbers()) == 96, "all records were handled")
    settle(server)
    assert any(line.get("met") for line in function.lines()), "two batches of one shard ran at the same time"
    seen = {}
    for event in function.events():
        for record in event["Records"]:
            seen.setdefault(record["dynamodb"]["Keys"]["pk"]["S"], []).append(
                int(record["dynamodb"]["NewImage"]["n"]["N"]))
    assert seen == {key: list(range(8)) for key in "abcdefghijkl"}


def test_without_it_a_shard_has_one_batch_at_a_time(server, dynamodb, table, make_function, make_mapping):
    for key in "abcdef":
        put(dynamodb, table, 1, 2, pk=key)
    function = make_function(MEETS_ANOTHER.replace("+ 20", "+ 0.1"))
    make_mapping(table, function, BatchSize=2)
    eventually(lambda: len(function.numbers()) == 12, "all records were handled")
    settle(server)
    assert not any(line.get("met") for line in function.lines())


# ---- failures ----

FAILS_ON_SEVEN = """
def handle(event):
    if 7 in numbers(event):
        raise ValueError("seven")
"""


def test_retries_are_counted_and_the_rest_goes_on(server, dynamodb, table, make_function, make_mapping):
    function = make_function(FAILS_ON_SEVEN)
    queue = f"dead-{next(numbers)}"
    mapping = make_mapping(table, function, BatchSize=1, MaximumRetryAttempts=2,
                           DestinationConfig={"OnFailure": {"Destination": QUEUE_ARN + queue}})
    put(dynamodb, table, 6, 7, 8)
    eventually(lambda: 8 in function.numbers(), "what follows is handled")
    assert function.batches() == [[6], [7], [7], [7], [8]]
    settle(server)
    [document] = queue_documents(dynamodb, queue)
    record = function.events()[1]["Records"][0]
    context = document["requestContext"]
    assert context["condition"] == "RetryAttemptsExhausted" and context["approximateInvokeCount"] == 3
    assert context["functionArn"] == function.arn and len(context["requestId"]) == 36
    assert document["responseContext"] == {"statusCode": 200, "executedVersion": "$LATEST",
                                           "functionError": "Unhandled"}
    assert "seven" in document["responsePayload"]["errorMessage"]  # what the function said
    assert document["version"] == "1.0" and document["timestamp"].endswith("Z")
    batch = document["DDBStreamBatchInfo"]
    assert batch["startSequenceNumber"] == batch["endSequenceNumber"] == record["dynamodb"]["SequenceNumber"]
    assert batch["batchSize"] == 1 and batch["streamArn"] == mapping.get()["EventSourceArn"]
    assert batch["shardId"].startswith("shardId-")
    assert batch["approximateArrivalOfFirstRecord"].endswith("Z")
    assert batch["approximateArrivalOfLastRecord"].endswith("Z")
    assert "payload" not in document


@pytest.mark.parametrize("padding", [0, 390000])
def test_a_bucket_gets_the_event_with_the_failure_where_it_fits(padding, server, dynamodb, table, make_function,
                                                                make_mapping):
    function = make_function(FAILS_ON_SEVEN)
    bucket = f"bucket-{next(numbers)}"
    make_mapping(table, function, MaximumRetryAttempts=0,
                 DestinationConfig={"OnFailure": {"Destination": "arn:aws:s3:::" + bucket}})
    dynamodb.put_item(TableName=table, Item={"pk": {"S": "a"}, "sk": {"N": "7"}, "n": {"N": "7"},
                                             "pad": {"S": '"' * (padding // 2) + "x" * (padding // 2)}})
    eventually(lambda: queue_documents(dynamodb, bucket), "it was given up")
    settle(server)
    [document] = queue_documents(dynamodb, bucket)
    assert document["requestContext"]["condition"] == "RetryAttemptsExhausted"
    assert document["DDBStreamBatchInfo"]["batchSize"] == 1
    if padding:
        assert "payload" not in document
    else:
        assert json.loads(document["payload"]) == function.events()[0]


def test_no_retries_means_one_call(server, dynamodb, table, make_function, make_mapping):
    function = make_function(FAILS_ON_SEVEN)
    make_mapping(table, function, BatchSize=10, MaximumRetryAttempts=0)
    put(dynamodb, table, 7)
    eventually(lambda: function.batches() == [[7]], "the record was tried")
    settle(server)
    assert function.batches() == [[7]]
    assert queue_documents(dynamodb, "nobody") == []


FAILS_FOR_NOW = """
def handle(event):
    if not os.path.exists(os.environ["NOTES"] + ".fine"):
        raise ValueError("not yet")
"""


def test_without_a_bound_it_is_tried_until_it_succeeds(server, dynamodb, table, make_function, make_mapping):
    function = make_function(FAILS_FOR_NOW)
    mapping = make_mapping(table, function, BatchSize=10)
    put(dynamodb, table, 1)
    eventually(lambda: "PROBLEM" in mapping.get()["LastProcessingResult"], "the failure is told")
    eventually(lambda: len(function.batches()) >= 3, "it is tried again and again")
    put(dynamodb, table, 2)
    with open(function.notes + ".fine", "w"):
        pass
    eventually(lambda: 2 in function.numbers(), "what follows is handled")
    settle(server)
    *tries, last = function.batches()
    assert last == [2] and set(map(tuple, tries)) == {(1,)}
    assert mapping.get()["LastProcessingResult"] == "OK"


def test_a_failed_batch_is_bisected_to_the_bad_record(server, dynamodb, table, make_function, make_mapping):
    put(dynamodb, table, *range(10))
    function = make_function(FAILS_ON_SEVEN + "    note(done=numbers(event))\n")
    queue = f"dead-{next(numbers)}"
    make_mapping(table, function, BatchSize=10, BisectBatchOnFunctionError=True, MaximumRetryAttempts=1,
                 DestinationConfig={"OnFailure": {"Destination": QUEUE_ARN + queue}})
    eventually(lambda: queue_documents(dynamodb, queue), "the bad record was given up")
    settle(server)
    done = [n for line in function.lines() for n in line.get("done", [])]
    assert done == [0, 1, 2, 3, 4, 5, 6, 8, 9]
    [document] = queue_documents(dynamodb, queue)
    assert document["DDBStreamBatchInfo"]["batchSize"] == 1
    assert function.batches()[0] == list(range(10)) and function.batches()[1] == [0, 1, 2, 3, 4]


def test_partial_responses_go_on_at_the_failed_record(server, dynamodb, table, make_function, make_mapping):
    put(dynamodb, table, *range(6))
    function = make_function("""
def handle(event):
    for record, n in zip(event["Records"], numbers(event)):
        if n in (3, 4) and len(calls()) == 1:
            return {"batchItemFailures": [{"itemIdentifier": record["dynamodb"]["SequenceNumber"]}]}
    return {"batchItemFailures": []}
""")
    make_mapping(table, function, BatchSize=10, FunctionResponseTypes=["ReportBatchItemFailures"])
    eventually(lambda: len(function.batches()) == 2, "the rest was tried again")
    settle(server)
    assert function.batches() == [[0, 1, 2, 3, 4, 5], [3, 4, 5]]


def test_partial_responses_with_a_bound_give_up_what_is_left(server, dynamodb, table, make_function, make_mapping):
    put(dynamodb, table, 1, 2, 3)
    function = make_function("""
def handle(event):
    failed = [r["dynamodb"]["SequenceNumber"] for r, n in zip(event["Records"], numbers(event)) if n >= 2]
    return {"batchItemFailures": [{"itemIdentifier": number} for number in reversed(failed)]}
""")
    queue = f"dead-{next(numbers)}"
    make_mapping(table, function, BatchSize=10, FunctionResponseTypes=["ReportBatchItemFailures"],
                 MaximumRetryAttempts=1, DestinationConfig={"OnFailure": {"Destination": QUEUE_ARN + queue}})
    [document] = eventually(lambda: queue_documents(dynamodb, queue), "the rest was given up")
    settle(server)
    assert function.batches() == [[1, 2, 3], [2, 3], [2, 3]][:len(function.batches())] and len(function.batches()) >= 2
    assert document["DDBStreamBatchInfo"]["batchSize"] == 2


@pytest.mark.parametrize("answer", ['{"batchItemFailures": [{"itemIdentifier": "no such number"}]}',
                                    '{"batchItemFailures": [{"itemIdentifier": ""}]}',
                                    '{"batchItemFailures": [{"wrong": "1"}]}'])
def test_a_partial_response_that_makes_no_sense_fails_the_batch(server, dynamodb, table, make_function, make_mapping,
                                                                answer):
    put(dynamodb, table, 1, 2)
    function = make_function(f"def handle(event):\n    return json.loads('{answer}') if len(calls()) == 1 else None\n")
    make_mapping(table, function, BatchSize=10, FunctionResponseTypes=["ReportBatchItemFailures"])
    eventually(lambda: len(function.batches()) == 2, "the batch was tried again")
    settle(server)
    assert function.batches() == [[1, 2], [1, 2]]


def test_without_the_response_type_such_an_answer_means_nothing(server, dynamodb, table, make_function, make_mapping):
    put(dynamodb, table, 1, 2)
    function = make_function("""
def handle(event):
    return {"batchItemFailures": [{"itemIdentifier": event["Records"][0]["dynamodb"]["SequenceNumber"]}]}
""")
    make_mapping(table, function, BatchSize=10)
    eventually(lambda: function.batches() == [[1, 2]], "the batch was handled")
    settle(server)
    assert function.batches() == [[1, 2]]


def test_records_that_are_too_old_are_given_up(server, dynamodb, table, make_function, make_mapping):
    function = make_function()
    queue = f"dead-{next(numbers)}"
    mapping = make_mapping(table, function, BatchSize=10, MaximumRecordAgeInSeconds=60, Enabled=False,
                           DestinationConfig={"OnFailure": {"Destination": QUEUE_ARN + queue}})
    put(dynamodb, table, 1, 2)
    advance(server, 120)
    put(dynamodb, table, 3)
    mapping.update(Enabled=True)
    eventually(lambda: 3 in function.numbers(), "the young record is handled")
    settle(server)
    assert function.batches() == [[3]]
    [document] = queue_documents(dynamodb, queue)
    assert document["DDBStreamBatchInfo"]["batchSize"] == 2
    assert document["requestContext"]["condition"] != "RetryAttemptsExhausted"


def test_a_failing_record_is_given_up_when_it_gets_too_old(server, dynamodb, table, make_function, make_mapping):
    function = make_function(FAILS_ON_SEVEN)
    make_mapping(table, function, BatchSize=1, MaximumRecordAgeInSeconds=60)
    put(dynamodb, table, 7)
    eventually(lambda: function.batches().count([7]) >= 2, "it was tried again")
    advance(server, 120)
    put(dynamodb, table, 8)
    eventually(lambda: 8 in function.numbers(), "what follows is handled")


# ---- windows with state ----

COUNTS = """
def handle(event):
    state = event.get("state") or {}
    total = state.get("total", 0) + sum(numbers(event))
    if event["isFinalInvokeForWindow"]:
        note(final=total, window=event["window"])
        return None
    return {"state": {"total": total}}
"""


def test_tumbling_windows_carry_state_to_their_end(server, dynamodb, table, make_function, make_mapping):
    function = make_function(COUNTS)
    advance(server, 601 - hook(server, "clock")["now"] // 1000 % 600)  # a window has just begun
    mapping = make_mapping(table, function, BatchSize=2, TumblingWindowInSeconds=600)
    put(dynamodb, table, *range(1, 8))
    eventually(lambda: len(function.numbers()) == 7, "all records were handled")
    advance(server, 700)
    put(dynamodb, table, 100)
    [final] = eventually(lambda: [line for line in function.lines() if "final" in line], "the window was closed")
    assert final["final"] == 28
    assert set(final["window"]) == {"start", "end"} and final["window"]["start"] < final["window"]["end"]
    first = function.events()[0]
    assert first["eventSourceARN"] == mapping.get()["EventSourceArn"] and first["shardId"].startswith("shardId-")
    assert first["isWindowTerminatedEarly"] is False and first["state"] == {}
    advance(server, 700)
    eventually(lambda: len([line for line in function.lines() if "final" in line]) == 2, "so was the next one")
    assert [line["final"] for line in function.lines() if "final" in line] == [28, 100]


# ---- filters ----

def test_an_aggregate_of_ten_events_causes_one_call(server, dynamodb, table, make_function, make_mapping):
    function = make_function()
    make_mapping(table, function, FilterCriteria={"Filters": [{"Pattern": json.dumps(
        {"dynamodb": {"NewImage": {"count": {"N": ["10"]}}}})}]})
    for _ in range(10):
        dynamodb.update_item(TableName=table, Key={"pk": {"S": "job"}, "sk": {"N": "0"}},
                             UpdateExpression="ADD #c :one", ExpressionAttributeNames={"#c": "count"},
                             ExpressionAttributeValues={":one": {"N": "1"}})
    eventually(lambda: len(function.events()) == 1, "the tenth event called the function")
    settle(server)
    [event] = function.events()
    assert [record["dynamodb"]["NewImage"]["count"] for record in event["Records"]] == [{"N": "10"}]


@pytest.mark.parametrize("patterns, wanted", [
    ([{"eventName": ["INSERT"]}], [1, 2, 3]),
    ([{"eventName": ["MODIFY"]}], [2]),
    ([{"eventName": ["REMOVE"]}], [-1]),
    ([{"eventName": ["REMOVE"]}, {"dynamodb": {"NewImage": {"kind": {"S": [{"prefix": "re"}]}}}}], [1, 2, -1]),
    ([{"dynamodb": {"NewImage": {"kind": {"S": [{"anything-but": ["red"]}]}}}}], [2, 3, 2]),
    ([{"dynamodb": {"NewImage": {"kind": {"S": [{"suffix": {"equals-ignore-case": "EEN"}}]}}}}], [2]),
    ([{"dynamodb": {"NewImage": {"kind": {"S": [{"exists": False}]}}}, "eventName": ["INSERT"]}], []),
    ([{"dynamodb": {"NewImage": {"n": {"N": [{"numeric": [">", 0]}]}}}}], []),
    ([{"dynamodb": {"SizeBytes": [{"numeric": [">", 0]}]}, "eventName": ["MODIFY"]}], [2]),
    ([{"$or": [{"eventName": ["MODIFY"]}, {"dynamodb": {"NewImage": {"n": {"N": ["3"]}}}}]}], [3, 2]),
])
def test_filters(server, dynamodb, table, make_function, make_mapping, patterns, wanted):
    put(dynamodb, table, 1, kind={"S": "red"})
    put(dynamodb, table, 2, kind={"S": "blue"})
    put(dynamodb, table, 3, kind={"S": "blue"})
    put(dynamodb, table, 2, kind={"S": "reen"})
    dynamodb.delete_item(TableName=table, Key={"pk": {"S": "a"}, "sk": {"N": "1"}})
    function = make_function()
    make_mapping(table, function,
                 FilterCriteria={"Filters": [{"Pattern": json.dumps(pattern)} for pattern in patterns]})
    settle(server)
    assert function.numbers() == wanted


# ---- changes while it runs ----

def test_a_disabled_mapping_waits_and_goes_on_where_it_was(server, dynamodb, table, make_function, make_mapping):
    function = make_function()
    mapping = make_mapping(table, function)
    put(dynamodb, table, 1)
    eventually(lambda: function.numbers() == [1], "the first record was handled")
    assert mapping.update(Enabled=False)["State"] == "Disabling"
    put(dynamodb, table, 2, 3)
    time.sleep(0.5)
    assert function.numbers() == [1]
    assert mapping.update(Enabled=True)["State"] == "Enabling"
    eventually(lambda: function.numbers() == [1, 2, 3], "it went on where it was")


def test_settings_change_while_it_runs(server, dynamodb, table, make_function, make_mapping):
    first, second = make_function(), make_function()
    mapping = make_mapping(table, first, BatchSize=1)
    put(dynamodb, table, 1, 2)
    eventually(lambda: first.batches() == [[1], [2]], "one at a time")
    mapping.update(Enabled=False)
    put(dynamodb, table, 3, 4)
    mapping.update(Enabled=True, BatchSize=10, FunctionName=second.name)
    eventually(lambda: second.batches() == [[3, 4]], "two at a time, by the other function")
    assert mapping.get()["BatchSize"] == 10 and mapping.get()["FunctionArn"] == second.arn
    mapping.update(FilterCriteria={"Filters": [{"Pattern": '{"eventName": ["REMOVE"]}'}]})
    put(dynamodb, table, 5)
    settle(server)
    assert second.numbers() == [3, 4] and first.numbers() == [1, 2]
    mapping.update(FilterCriteria={"Filters": []})
    put(dynamodb, table, 6)
    eventually(lambda: second.numbers() == [3, 4, 6], "without the filter everything passes again")


def test_a_deleted_mapping_is_gone_and_a_new_one_begins_anew(server, dynamodb, table, make_function, make_mapping):
    function = make_function()
    mapping = make_mapping(table, function)
    put(dynamodb, table, 1)
    eventually(lambda: function.numbers() == [1], "the record was handled")
    mapping.delete()
    put(dynamodb, table, 2)
    settle(server)
    assert function.numbers() == [1]
    make_mapping(table, function)
    eventually(lambda: function.numbers() == [1, 1, 2], "the new one has no memory of the old one")


def test_a_mapping_goes_on_after_a_restart(tmp_path):
    data = os.path.join(str(tmp_path), "data")
    with Quipu("--data", data) as server:
        dynamodb, functions = boto_client(server.url), lambda_client(server.url)
        create_table(dynamodb, "lasting", range_type="N",
                     StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"})
        function = Function(functions, tmp_path, "lasting")
        mapping = Mapping(functions, "lasting", function.name, BatchSize=7, MaximumRetryAttempts=1)
        put(dynamodb, "lasting", 1, 2)
        eventually(lambda: function.numbers() == [1, 2], "both were handled")
        told = mapping.get()
        server.stop()
    with Quipu("--data", data) as server:
        dynamodb, mapping.client = boto_client(server.url), lambda_client(server.url)
        mapping.wait("Enabled")
        again = mapping.get()
        assert {name: again[name] for name in told if name not in ("LastProcessingResult", "ResponseMetadata")} == \
            {name: told[name] for name in told if name not in ("LastProcessingResult", "ResponseMetadata")}
        put(dynamodb, "lasting", 3)
        eventually(lambda: 3 in function.numbers(), "the next one was handled")
        assert function.numbers() == [1, 2, 3]


def test_several_mappings_follow_one_stream(dynamodb, table, make_function, make_mapping):
    many = [make_function() for _ in range(4)]
    for size, function in enumerate(many, 1):
        make_mapping(table, function, BatchSize=size)
    put(dynamodb, table, *range(12))
    for function in many:
        eventually(lambda: len(function.numbers()) == 12, "each has seen everything")
        assert function.numbers() == list(range(12))


# ---- loops ----

WRITES_BACK = """
import urllib.request

def handle(event):
    for n in numbers(event):
        request = {"TableName": os.environ["TABLE"],
                   "Item": {"pk": {"S": "loop"}, "sk": {"N": str(n + 1)}, "n": {"N": str(n + 1)}}}
        urllib.request.urlopen(urllib.request.Request(
            os.environ["AWS_ENDPOINT_URL_DYNAMODB"], data=json.dumps(request).encode(), method="POST",
            headers={"X-Amz-Target": "DynamoDB_20120810.PutItem", "Content-Type": "application/x-amz-json-1.0",
                     "Authorization": "Bearer " + os.environ["QUIPU_TOKEN"]})).read()
"""


def test_a_loop_is_found_and_broken(server, dynamodb, table, make_function, make_mapping, tmp_path):
    notes = os.path.join(str(tmp_path), "looping.notes")
    function = make_function(WRITES_BACK, Environment={"Variables": {"NOTES": notes, "TABLE": table}})
    function.notes = notes
    other = make_function()
    make_mapping(table, function)
    make_mapping(table, other)
    put(dynamodb, table, 1)
    eventually(lambda: 2 in other.numbers(), "the function's write is there")
    settle(server)
    assert function.numbers() == [1], "its own write did not call it again"
    assert sorted(other.numbers()) == [1, 2], "others see it"


def test_a_loop_is_allowed_up_to_its_depth(server, dynamodb, table, make_function, make_mapping, tmp_path):
    notes = os.path.join(str(tmp_path), "looping.notes")
    function = make_function(WRITES_BACK, Environment={"Variables": {"NOTES": notes, "TABLE": table}})
    function.notes = notes
    mapping = make_mapping(table, function)
    status, reply = send(server.url, "PUT", f"/2015-03-31/event-source-mappings/{mapping.id}",
                         {"MaximumRecursionDepth": 3})
    assert status == 202 and reply["MaximumRecursionDepth"] == 3
    mapping.wait("Enabled")
    put(dynamodb, table, 1)
    eventually(lambda: len(function.numbers()) >= 4, "it was called three times by its own writes")
    settle(server)
    assert function.numbers() == [1, 2, 3, 4]


def test_a_function_is_told_of_its_loop_and_may_be_allowed_it(server, dynamodb, table, make_function, make_mapping,
                                                              tmp_path):
    notes = os.path.join(str(tmp_path), "allowed.notes")
    function = make_function(WRITES_BACK, Environment={"Variables": {"NOTES": notes, "TABLE": table}})
    function.notes = notes
    make_mapping(table, function)
    put(dynamodb, table, 1)
    eventually(lambda: function.numbers() == [1], "it was called")
    settle(server)
    with urllib.request.urlopen(f"{server.url}/v1/functions/{function.name}/logs", timeout=60) as reply:
        log = reply.read().decode()
    assert f"LOOP function {function.name} was not called for a record that it caused itself, at depth 1" in log
    assert f"put-function-recursion-config --function-name {function.name} --recursive-loop Allow" in log
    config = f"/2024-08-31/functions/{function.name}/recursion-config"
    assert send(server.url, "PUT", config, {"RecursiveLoop": "Allow"}) == (200, {"RecursiveLoop": "Allow"})
    put(dynamodb, table, 10)
    eventually(lambda: len(function.numbers()) >= 4, "its own writes call it")
    assert send(server.url, "PUT", config, {"RecursiveLoop": "Terminate"})[0] == 200
    settle(server)


CALLS_A_PATTERN = """
import urllib.request

def handle(event):
    for record in event["Records"]:
        url = os.environ["AWS_ENDPOINT_URL_DYNAMODB"] + "/v1/counters/" + os.environ["AWS_LAMBDA_FUNCTION_NAME"]
        urllib.request.urlopen(urllib.request.Request(url, data=b"{}", method="POST", headers={
            "Authorization": "Bearer " + os.environ["QUIPU_TOKEN"]})).read()
"""


@pytest.mark.parametrize("way", ["a function's request", "a target"])
def test_a_loop_through_a_pattern_is_found_and_broken(server, dynamodb, functions, make_function, make_mapping, way):
    name = f"counting-{next(numbers)}"
    if way == "a target":
        assert send(server.url, "POST", "/2015-03-31/functions", {
            "FunctionName": name, "Role": "arn:aws:iam::000000000000:role/any",
            "Code": {"Pattern": "POST /v1/counters/{NewImage.name}"}})[0] == 201
    else:
        name = make_function(CALLS_A_PATTERN).name
    counter = f"/v1/counters/{name}"
    assert send(server.url, "POST", counter) == (200, {"value": 1})
    dynamodb.update_table(TableName="quipu-counters", StreamSpecification={
        "StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"})
    mapping = Mapping(functions, "quipu-counters", name, FilterCriteria={"Filters": [{"Pattern": json.dumps(
        {"dynamodb": {"Keys": {"name": {"S": [name]}}}})}]})
    assert send(server.url, "POST", counter) == (200, {"value": 2})
    eventually(lambda: send(server.url, "GET", counter)[1]["value"] >= 3, "the change called it")
    settle(server)
    assert send(server.url, "GET", counter) == (200, {"value": 3}), "what it wrote did not call it again"
    mapping.delete()
    dynamodb.update_table(TableName="quipu-counters", StreamSpecification={"StreamEnabled": False})


# ---- the API ----

def test_what_a_mapping_tells(functions, dynamodb, table, make_function, make_mapping):
    function = make_function()
    settings = {"BatchSize": 7, "MaximumBatchingWindowInSeconds": 2, "ParallelizationFactor": 3,
                "MaximumRetryAttempts": 4, "MaximumRecordAgeInSeconds": 3600, "BisectBatchOnFunctionError": True,
                "TumblingWindowInSeconds": 60, "FunctionResponseTypes": ["ReportBatchItemFailures"],
                "FilterCriteria": {"Filters": [{"Pattern": '{"eventName": ["INSERT"]}'}]},
                "DestinationConfig": {"OnFailure": {"Destination": QUEUE_ARN + "told"}}}
    mapping = make_mapping(table, function, "LATEST", **settings)
    told = mapping.get()
    assert {name: told[name] for name in settings} == settings
    assert told["StartingPosition"] == "LATEST" and told["StateTransitionReason"] == "User action"
    assert told["LastModified"].year >= 2020 and told["LastProcessingResult"] == "No records processed"
    listed = functions.list_event_source_mappings(FunctionName=function.name)["EventSourceMappings"]
    assert [entry["UUID"] for entry in listed] == [mapping.id]
    listed = functions.list_event_source_mappings(EventSourceArn=told["EventSourceArn"])["EventSourceMappings"]
    assert [entry["UUID"] for entry in listed] == [mapping.id]


def test_faults_are_told_in_lambdas_words(functions, dynamodb, table, make_function, make_mapping):
    function = make_function()
    mapping = make_mapping(table, function)

    def fault(call, **request):
        with pytest.raises(functions.exceptions.ClientError) as caught:
            getattr(functions, call)(**request)
        return caught.value.response["Error"]["Code"], caught.value.response["Error"]["Message"]

    create = {"EventSourceArn": table, "FunctionName": function.name, "StartingPosition": "LATEST"}
    code, message = fault("create_event_source_mapping", **create)
    assert code == "ResourceConflictException" and message.endswith(f"existing mapping with UUID {mapping.id}")
    assert fault("create_event_source_mapping", **{**create, "FunctionName": "nobody"}) == (
        "InvalidParameterValueException", "Function does not exist")
    assert fault("create_event_source_mapping", **{**create, "EventSourceArn": "nothing"}) == (
        "InvalidParameterValueException", "Stream not found: there is no table nothing.")
    assert fault("create_event_source_mapping", **{**create, "StartingPosition": "AT_TIMESTAMP"})[1].startswith(
        "Unsupported starting position for arn type: ")
    del create["StartingPosition"]
    assert fault("create_event_source_mapping", **create)[0] == "InvalidParameterValueException"
    assert fault("get_event_source_mapping", UUID="0") == (
        "ResourceNotFoundException", "The resource you requested does not exist.")
    assert fault("update_event_source_mapping", UUID=mapping.id,
                 FilterCriteria={"Filters": [{"Pattern": '{"a": 1}'}]}) == (
        "InvalidParameterValueException",
        'Invalid filter pattern definition. "a" must be an object or an array, at character 7')
    status, reply = send(functions.meta.endpoint_url, "PUT", f"/2015-03-31/event-source-mappings/{mapping.id}",
                         {"BatchSize": 10001})
    assert status == 400 and reply["message"] == (
        "1 validation error detected: Value '10001' at 'batchSize' failed to satisfy constraint: Member must have "
        "value less than or equal to 10000")
    assert mapping.get()["BatchSize"] == 100


def test_tags_of_mappings(functions, table, make_function, make_mapping):
    mapping = make_mapping(table, make_function())
    arn = f"arn:aws:lambda:us-east-1:000000000000:event-source-mapping:{mapping.id}"
    assert functions.list_tags(Resource=arn)["Tags"] == {}
    functions.tag_resource(Resource=arn, Tags={"team": "a", "cost": "1"})
    functions.untag_resource(Resource=arn, TagKeys=["cost"])
    assert functions.list_tags(Resource=arn)["Tags"] == {"team": "a"}


# ---- the fan-out of todos: two functions on one stream, batch 3, window 10 s, retries 3 ----

TODO_NODE = """
import { appendFileSync } from "node:fs";
export const handler = async (event) => {
    appendFileSync(process.env.NOTES, JSON.stringify({ event }) + "\\n");
    return event.Records.map((record) => {
        const todo = record.dynamodb.NewImage;
        if (!todo.id || todo.description.S === "broken") throw new Error("a todo without id");
        return todo.id.S;
    });
};
"""

LOG_SHELL = r"""#!/bin/sh
api="http://$AWS_LAMBDA_RUNTIME_API/2018-06-01/runtime"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
while curl -sS -D "$folder/head" -o "$folder/event" "$api/invocation/next"; do
    id=$(sed -n 's/^Lambda-Runtime-Aws-Request-Id: *//Ip' "$folder/head" | tr -d '\r')
    { printf '{"event":'; tr -d '\n' <"$folder/event"; printf '}\n'; } >"$folder/line"
    cat "$folder/line" >>"$NOTES"
    curl -sS -o /dev/null --data-binary null "$api/invocation/$id/response"
done
"""


def todo_ids(function):
    return sorted(record["dynamodb"]["Keys"]["id"]["S"] for event in function.events() for record in event["Records"])


def test_the_fan_out_of_todos(tmp_path):
    limited = {"BatchSize": 3, "MaximumBatchingWindowInSeconds": 10, "MaximumRetryAttempts": 3}
    with Quipu("--test-hooks") as server:
        dynamodb, functions = boto_client(server.url), lambda_client(server.url)
        arn = dynamodb.create_table(
            TableName="TodoTable-20200118", BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
        )["TableDescription"]["LatestStreamArn"]
        todo = Function(functions, tmp_path, "TodoLambda", Runtime="nodejs20.x", Handler="index.handler",
                        Code={"ZipFile": archive({"index.mjs": TODO_NODE})})
        log = Function(functions, tmp_path, "LogInputLambda", Runtime="provided.al2023", Handler="bootstrap",
                       Code={"ZipFile": archive({"bootstrap": LOG_SHELL})})
        for function in todo, log:
            Mapping(functions, arn, function.name, "LATEST", **limited)

        def load(*todos):
            for name, description in todos:
                dynamodb.put_item(TableName="TodoTable-20200118",
                                  Item={"id": {"S": name}, "description": {"S": description},
                                        "lastUpdatedDateTime": {"S": "2020-01-18T00:00:00Z"}})

        load(("1", "wash"), ("2", "cook"), ("3", "write"))
        for function in todo, log:
            eventually(lambda: todo_ids(function) == ["1", "2", "3"], "each function has each todo once")
            assert all(len(event["Records"]) <= 3 for event in function.events())
        load(("4", "broken"))
        eventually(lambda: todo_ids(log).count("4") == 1, "the other function does not mind")
        eventually(lambda: todo_ids(todo).count("4") == 4, "one call and three retries", 90)
        load(("5", "rest"))
        eventually(lambda: "5" in todo_ids(todo) and "5" in todo_ids(log), "and then it goes on", 90)
        hook(server, "idle")
        assert todo_ids(todo) == ["1", "2", "3", "4", "4", "4", "4", "5"]
        assert todo_ids(log) == ["1", "2", "3", "4", "5"]
