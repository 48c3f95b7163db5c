"""What destinations are told of asynchronous calls: Lambda's record, with payloads as JSON."""
import base64
import json
import re
import urllib.request

import pytest
from conftest import boto_client
from lambdas import ROLE, Function, archive, eventually, lambda_client, queue_documents, send
from support.engines import ENGINES, server_on

ARN = "arn:aws:lambda:us-east-1:000000000000:function:"
QUEUES = "arn:aws:sqs:us-east-1:000000000000:"

ECHO = """
def handle(event):
    if event.get("fails"):
        raise ValueError("it was told to")
    return {"told": event, "text": "x" * event.get("letters", 0)}
"""

# A runtime of its own, which answers with the very bytes that the event names.
RAW = """#!/usr/bin/python3
import json, os, urllib.request
api = "http://" + os.environ["AWS_LAMBDA_RUNTIME_API"] + "/2018-06-01/runtime/invocation/"
while True:
    with urllib.request.urlopen(api + "next") as reply:
        number, event = reply.headers["Lambda-Runtime-Aws-Request-Id"], json.load(reply)
    urllib.request.urlopen(api + number + "/response", bytes.fromhex(event["hex"])).close()
"""


@pytest.fixture(scope="module", params=ENGINES)
def server(request, tmp_path_factory):
    with server_on(request.param, "--functions", str(tmp_path_factory.mktemp("functions"))) as (running, _):
        yield running


class Called:
    """A function whose ends are told to two queues."""

    def __init__(self, server, name, **settings):
        self.client, self.data, self.name = lambda_client(server.url), boto_client(server.url), name
        settings = {"MaximumRetryAttempts": 0, **settings}
        destinations = {when: {"Destination": QUEUES + f"{name}-{when}"} for when in ("OnSuccess", "OnFailure")}
        self.client.put_function_event_invoke_config(FunctionName=name, DestinationConfig=destinations, **settings)

    def call(self, event, **more):
        reply = self.client.invoke(FunctionName=self.name, InvocationType="Event", Payload=json.dumps(event), **more)
        assert reply["StatusCode"] == 202
        return reply["ResponseMetadata"]["RequestId"]

    def told(self, when, request_id=None):
        """The record of the call, once it is there; the other queue has none of it."""
        def find(queue):
            return [one for one in queue_documents(self.data, f"{self.name}-{queue}")
                    if request_id in (None, one["requestContext"]["requestId"])]
        record, = eventually(lambda: find(when), "the end of the call is told")
        assert not find("OnFailure" if when == "OnSuccess" else "OnSuccess")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record.pop("timestamp"))
        assert record.pop("version") == "1.0"
        return record


@pytest.fixture
def echo(server, tmp_path, unused_name):
    Function(lambda_client(server.url), tmp_path, unused_name, ECHO)
    return Called(server, unused_name)


def context(called, condition, count=1, qualifier="$LATEST"):
    return {"functionArn": f"{ARN}{called.name}:{qualifier}", "condition": condition, "approximateInvokeCount": count}


def test_a_success(echo):
    event = {"a": [1, "two", None], "b": {"c": "\u00e4\n\""}}
    record = echo.told("OnSuccess", echo.call(event))
    assert list(record) == ["requestContext", "requestPayload", "responseContext", "responsePayload"]
    record["requestContext"].pop("requestId")
    assert record == {"requestContext": context(echo, "Success"), "requestPayload": event,
                      "responseContext": {"statusCode": 200, "executedVersion": "$LATEST"},
                      "responsePayload": {"told": event, "text": ""}}


def test_a_version(echo):
    echo.client.publish_version(FunctionName=echo.name)
    echo.client.put_function_event_invoke_config(
        FunctionName=echo.name, Qualifier="1", MaximumRetryAttempts=0,
        DestinationConfig={"OnSuccess": {"Destination": QUEUES + echo.name + "-OnSuccess"}})
    record = echo.told("OnSuccess", echo.call({}, Qualifier="1"))
    record["requestContext"].pop("requestId")
    assert record["requestContext"] == context(echo, "Success", qualifier="1")
    assert record["responseContext"] == {"statusCode": 200, "executedVersion": "1"}


def test_a_failure(echo):
    record = echo.told("OnFailure", echo.call({"fails": True}))
    error = record.pop("responsePayload")
    record["requestContext"].pop("requestId")
    assert record == {
        "requestContext": context(echo, "RetriesExhausted"), "requestPayload": {"fails": True},
        "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"}}
    assert (error["errorType"], error["errorMessage"]) == ("ValueError", "it was told to") and error["stackTrace"]


def retries(server):
    with urllib.request.urlopen(server.url + "/metrics", timeout=180) as reply:
        return int(re.search(r'^quipu_async_calls_total\{what="retried"\} (\d+)$', reply.read().decode(), re.M)[1])


def test_all_attempts_are_counted(server, tmp_path, unused_name):
    function = Function(lambda_client(server.url), tmp_path, unused_name, ECHO)
    called = Called(server, unused_name, MaximumRetryAttempts=1)
    before = retries(server)
    request_id = called.call({"fails": True})
    eventually(lambda: retries(server) > before, "the first attempt has failed")
    send(server.url, "POST", "/_quipu/clock", {"advance_seconds": 61})  # the second is due a minute later
    eventually(lambda: len(function.events()) == 2, "the second attempt")
    record = called.told("OnFailure", request_id)
    assert record["requestContext"] == {"requestId": request_id, **context(called, "RetriesExhausted", 2)}


def test_a_retry_that_would_come_too_late_is_not_made(server, tmp_path, unused_name):
    function = Function(lambda_client(server.url), tmp_path, unused_name, ECHO)
    called = Called(server, unused_name, MaximumRetryAttempts=2, MaximumEventAgeInSeconds=60)
    request_id = called.call({"fails": True})
    record = called.told("OnFailure", request_id)
    assert record["requestContext"] == {"requestId": request_id, **context(called, "EventAgeExceeded")}
    assert record["responsePayload"]["errorType"] == "ValueError" and len(function.events()) == 1


def test_a_function_that_is_switched_off(echo):
    echo.client.put_function_concurrency(FunctionName=echo.name, ReservedConcurrentExecutions=0)
    request_id = echo.call({"a": 1})
    assert echo.told("OnFailure", request_id) == {
        "requestContext": {"requestId": request_id, **context(echo, "ZeroReservedConcurrency", 0)},
        "requestPayload": {"a": 1}}


def test_an_answer_that_is_too_large_is_left_out(echo):
    record = echo.told("OnSuccess", echo.call({"letters": 300 * 1024}))
    assert record["requestContext"]["condition"] == "Success"
    assert record["requestPayload"] is None and record["responsePayload"] is None
    record = echo.told("OnSuccess", echo.call({"letters": 200 * 1024}))
    assert len(record["responsePayload"]["text"]) == 200 * 1024 and record["requestPayload"] == {"letters": 200 * 1024}


@pytest.mark.parametrize("answer, told", [(b'say "hello"\n', 'say "hello"\n'), (b"", None), (b" [1, 2] ", [1, 2]),
                                          (b"\xff\xfe", "(not UTF-8)"), (b'{"a": 1} x', '{"a": 1} x')])
def test_an_answer_that_is_no_json_is_a_text(server, unused_name, answer, told):
    lambda_client(server.url).create_function(FunctionName=unused_name, Runtime="provided.al2023", Handler="any",
                                              Role=ROLE, Timeout=60, Code={"ZipFile": archive({"bootstrap": RAW})})
    called = Called(server, unused_name)
    record = called.told("OnSuccess", called.call({"hex": answer.hex()}))
    assert record["responsePayload"] == told and record["responseContext"]["statusCode"] == 200


def test_a_reply_has_the_id_of_its_call(echo):
    """As on Lambda: by it the lines of the log are found, and the record of an asynchronous call (above)."""
    reply = echo.client.invoke(FunctionName=echo.name, Payload="{}", LogType="Tail")
    log = base64.b64decode(reply["LogResult"]).decode()
    assert f"START RequestId: {reply['ResponseMetadata']['RequestId']} " in log
