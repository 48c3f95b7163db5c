"""The first use of everything on a DynamoDB whose new tables take their time, as Amazon's do: it works, only slower."""
import datetime

import pytest
from conftest import boto_client, create_table
from lambdas import Function, Mapping, eventually, lambda_client, queue_documents, send
from support.process import Quipu
from support.proxy import SlowTables

KEYS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_DEFAULT_REGION": "us-east-1"}
SECONDS = 0.7
STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


class Place:
    def __init__(self, server, database):
        self.url, self.data = server.url, boto_client(database.url)

    def ok(self, method, path, body=None):
        status, reply = send(self.url, method, path, body)
        assert status in (200, 201), (method, path, status, reply)
        return reply


@pytest.fixture
def place(tmp_path):
    """New for each test: every use is a first one."""
    with Quipu("--memory", "--no-functions") as database, SlowTables(database.url, SECONDS) as slow, \
            Quipu("--on", slow.url, "--functions", str(tmp_path / "functions"), env=KEYS) as server:
        yield Place(server, database)


FIRST_CALLS = {
    "counter": [("POST", "/v1/counters/c", {})],
    "job": [("PUT", "/v1/jobs/j", {"total": 2}), ("POST", "/v1/jobs/j/done", {"task": 0})],
    "group": [("PUT", "/v1/groups/g", {"complete": {"size": 2}}), ("POST", "/v1/groups/g/k", {"id": "1"})],
    "period": [("PUT", "/v1/periods/p", {"every": "1h"}), ("POST", "/v1/periods/p", {"id": "1", "data": 1})],
    "work": [("POST", "/v1/work/q/u", {"data": 1}), ("POST", "/v1/work/q/claim", {"owner": "o"})],
    "document": [("PUT", "/v1/documents/c/d", {"a": 1})],
    "lease": [("POST", "/v1/leases/l", {"owner": "o", "for": "1m"})],
    "log": [("PUT", "/v1/logs/l", {"partitions": 2}), ("POST", "/v1/logs/l", {"key": "k", "data": 1, "token": "t"}),
            ("POST", "/v1/logs/l/consumers/c/read", {"owner": "o"})],
    "board": [("POST", "/v1/boards/b", {"text": "hello"})],
}


@pytest.mark.parametrize("calls", FIRST_CALLS.values(), ids=FIRST_CALLS)
def test_patterns(place, calls):
    for call in calls:
        place.ok(*call)


def test_functions_and_triggers(place, tmp_path):
    create_table(place.data, "changes", StreamSpecification=STREAM)
    function = Function(lambda_client(place.url), tmp_path, "reader")
    Mapping(function.client, "changes", "reader")
    place.data.put_item(TableName="changes", Item={"pk": {"S": "a"}, "n": {"N": "1"}})
    assert eventually(function.numbers, "the function is called") == [1]


def test_what_fails_is_put_aside(place, tmp_path):
    create_table(place.data, "changes", StreamSpecification=STREAM)
    function = Function(lambda_client(place.url), tmp_path, "fails", "def handle(event):\n    raise ValueError()\n")
    Mapping(function.client, "changes", "fails", MaximumRetryAttempts=0,
            DestinationConfig={"OnFailure": {"Destination": "arn:aws:sqs:us-east-1:000000000000:aside"}})
    place.data.put_item(TableName="changes", Item={"pk": {"S": "a"}, "n": {"N": "1"}})
    assert eventually(lambda: queue_documents(place.data, "aside"), "it is put aside")


def test_asynchronous_calls(place, tmp_path):
    function = Function(lambda_client(place.url), tmp_path, "later")
    assert function.client.invoke(FunctionName="later", InvocationType="Event", Payload=b"{}")["StatusCode"] == 202
    assert eventually(function.events, "the function is called") == [{}]


def test_reactions(place, tmp_path):
    function = Function(lambda_client(place.url), tmp_path, "finish")
    place.ok("PUT", "/v1/jobs/j", {"total": 1, "then": "finish"})
    place.ok("POST", "/v1/jobs/j/done", {"task": 0})
    assert len(eventually(function.events, "the function is called")) == 1


def test_schedules(place, tmp_path):
    """A time that is over when its schedule is made is not run: where everything is slow, a later one is."""
    function = Function(lambda_client(place.url), tmp_path, "now")
    for seconds in (5, 30, 120):
        time_at = datetime.datetime.utcnow() + datetime.timedelta(seconds=seconds)
        place.ok("POST", f"/schedules/in-{seconds}", {
            "ScheduleExpression": time_at.strftime("at(%Y-%m-%dT%H:%M:%S)"), "FlexibleTimeWindow": {"Mode": "OFF"},
            "Target": {"Arn": function.arn, "RoleArn": "arn:aws:iam::000000000000:role/any", "Input": '{"n":1}'}})
    assert eventually(function.events, "the function is called")[0] == {"n": 1}


def test_history(place):
    create_table(place.data, "kept", StreamSpecification=STREAM)
    place.ok("PUT", "/v1/history/kept")
    place.data.put_item(TableName="kept", Item={"pk": {"S": "a"}, "n": {"N": "1"}})
    eventually(lambda: send(place.url, "GET", "/v1/history/kept/a")[1].get("versions"), "the version is kept")
