"""Failed calls that ended in a queue are sent again: once, with the same payload, to the same target; on Quipu and on
DynamoDB Local. What holds no call stays and is told of."""
import concurrent.futures
import contextlib
import http.server
import json
import threading
import urllib.request

import pytest
from cli import output, quipu
from conftest import boto_client
from lambdas import Function, eventually, lambda_client, send
from support.engines import ENGINES, server_on
from support.process import Quipu

KEYS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
ARN = "arn:aws:sqs:us-east-1:000000000000:"
MANY = 120  # more than one request looks at

FLAWED = """
def handle(event):
    if not os.path.exists(os.environ["NOTES"] + ".mended"):
        raise ValueError("not yet")
"""


class Place:
    """A server, and where it keeps its data."""

    def __init__(self, server, url):
        self.server, self.url, self.data_url = server, server.url, url
        self.data, self.functions = boto_client(url), lambda_client(server.url)

    def items(self, table, **more):
        try:
            pages = self.data.get_paginator("scan").paginate(TableName=table, ConsistentRead=True, **more)
            return [item for page in pages for item in page["Items"]]
        except self.data.exceptions.ResourceNotFoundException:
            return []

    def letters(self, queue):
        return [item for item in self.items("quipu-queues") if item["queue"]["S"] == queue]

    def letter(self, queue, text=""):
        """The only one with this text in it, as soon as it is there."""
        def find():
            found = [item for item in self.letters(queue) if text in item["body"]["S"]]
            assert len(found) < 2, found
            return found
        return eventually(find, "the failed call is in the queue")[0]

    def held(self, queue):
        """What the letters of a queue hold in the table of calls."""
        return {item["id"]["S"] for item in self.items("quipu-invocations", ProjectionExpression="id")
                if item["id"]["S"].startswith(f"letter/{queue}/")}

    def settle(self):
        """Where there are no transactions, calls that have ended stay as tombstones."""
        eventually(lambda: all("ended" in item or item["id"]["S"].startswith("letter/")
                               for item in self.items("quipu-invocations")), "all calls are through")

    def redrive(self, queue, url=None, **body):
        status, reply = send(url or self.url, "POST", f"/v1/queues/{queue}/redrive", body or None)
        assert status == 200, reply
        return reply


class Flawed(Function):
    """A function that fails until it is mended; its failed calls go to a queue, if one is named."""

    def __init__(self, place, folder, name, queue=None):
        super().__init__(place.functions, folder, name, FLAWED)
        more = {"DestinationConfig": {"OnFailure": {"Destination": ARN + queue}}} if queue else {}
        place.functions.put_function_event_invoke_config(FunctionName=name, MaximumRetryAttempts=0, **more)

    def call(self, payload):
        self.client.invoke(FunctionName=self.name, InvocationType="Event",
                           Payload=json.dumps(payload, ensure_ascii=False).encode())

    def mend(self):
        with open(self.notes + ".mended", "w"):
            pass


@pytest.fixture(scope="module")
def here():
    with Quipu("--memory", "--test-hooks") as server:
        yield Place(server, server.url)



@contextlib.contextmanager
def second_server(place, folder):
    """The URL of another server on the same tables, where there can be one."""
    if place.url == place.data_url:
        yield place.url
    else:
        with Quipu("--on", place.data_url, "--functions", str(folder / "functions"), env=KEYS) as server:
            yield server.url


@pytest.fixture(scope="module", params=ENGINES)
def place(request, tmp_path_factory):
    if request.param == "embedded":
        yield request.getfixturevalue("here")
        return
    with server_on(request.param, "--functions", str(tmp_path_factory.mktemp("functions"))) as (server, url):
        yield Place(server, url)


# ---- calls ----

def test_a_failed_call_arrives_once_after_its_function_was_mended(place, tmp_path, unused_name):
    function, payload = Flawed(place, tmp_path, unused_name, unused_name), {"n": 1, "text": "a \"ä\" \u0001 b"}
    function.call(payload)
    told = json.loads(place.letter(unused_name)["body"]["S"])
    assert told["requestContext"]["condition"] == "RetriesExhausted"
    function.mend()
    result = quipu("queue", "redrive", unused_name, on=place.url)
    assert (result.returncode, result.stdout) == (0, ""), result
    assert f"{unused_name}: 1 message redriven in " in result.stderr
    eventually(lambda: len(function.events()) == 2, "the call is sent again")
    place.settle()
    assert function.events() == [payload, payload] and not place.letters(unused_name)
    assert place.redrive(unused_name) == {"redriven": 0, "refused": 0, "later": 0, "left": 0, "reasons": []}


def test_a_payload_that_fills_several_items(place, tmp_path, unused_name):
    function, payload = Flawed(place, tmp_path, unused_name, unused_name), {"text": "ä" * 350000}
    function.call(payload)
    letter = place.letter(unused_name)
    assert json.loads(letter["body"]["S"])["requestPayload"] is None
    assert set(letter) == {"queue", "id", "sent", "body", "held"} and place.held(unused_name)
    function.mend()
    assert place.redrive(unused_name)["redriven"] == 1
    eventually(lambda: len(function.events()) == 2, "the call is sent again")
    place.settle()
    assert function.events() == [payload, payload]
    assert not place.letters(unused_name) and not place.held(unused_name)


def test_a_large_call_is_removed_with_its_letter(here, tmp_path, unused_name):
    function = Flawed(here, tmp_path, unused_name, unused_name)
    for _ in "ab":
        function.call({"text": "x" * 700000})
    first, second = eventually(lambda: len(here.letters(unused_name)) == 2 and here.letters(unused_name),
                               "both calls are in the queue")
    assert here.held(unused_name) == {f"letter/{unused_name}/{letter['id']['S']}" for letter in (first, second)}
    output("queue", "rm", unused_name, first["id"]["S"], on=here.url)
    assert here.held(unused_name) == {f"letter/{unused_name}/{second['id']['S']}"}
    output("queue", "rm", unused_name, "--yes", on=here.url)
    assert not here.letters(unused_name) and not here.held(unused_name)


def test_a_payload_that_is_no_json_object(here, tmp_path, unused_name):
    function = Flawed(here, tmp_path, unused_name, unused_name)
    for payload in ("a text", 5, [1, {"two": None}]):
        function.call(payload)
    eventually(lambda: len(here.letters(unused_name)) == 3, "all calls are in the queue")
    function.mend()
    assert here.redrive(unused_name)["redriven"] == 3
    eventually(lambda: len(function.events()) == 6, "all calls are sent again")
    assert sorted(map(repr, function.events())) == sorted(map(repr, ["a text", 5, [1, {"two": None}]] * 2))


def test_a_call_that_fails_again_comes_back(here, tmp_path, unused_name):
    place, function = here, Flawed(here, tmp_path, unused_name, unused_name)
    function.call({"n": 1})
    first = place.letter(unused_name)["id"]["S"]
    output("queue", "redrive", unused_name, on=place.url)
    eventually(lambda: len(function.events()) == 2, "the call is sent again")
    second = eventually(lambda: place.letters(unused_name), "it is in the queue again")[0]["id"]["S"]
    assert second != first
    function.client.delete_function(FunctionName=function.name)  # its settings go with it, also the destination
    place.redrive(unused_name)
    told = eventually(lambda: [json.loads(item["body"]["S"]) for item in place.letters(unused_name)
                               if item["id"]["S"] != second], "it is in the queue once more")[0]
    assert told["requestContext"]["condition"] == "FunctionNotFound" and told["requestPayload"] == {"n": 1}


def test_many_redrive_at_once(place, tmp_path, unused_name):
    function, count = Flawed(place, tmp_path, unused_name, unused_name), 12
    for n in range(count):
        function.call({"n": n})
    eventually(lambda: len(place.letters(unused_name)) == count, "all calls are in the queue")
    function.mend()
    with second_server(place, tmp_path) as second, concurrent.futures.ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda url: place.redrive(unused_name, url=url), [place.url, second] * 2))
        eventually(lambda: len(function.events()) >= 2 * count, "all calls are sent again")
        place.settle()
    assert sum(reply["redriven"] for reply in replies) == count and not any(reply["refused"] for reply in replies)
    assert sorted(event["n"] for event in function.events()) == sorted([*range(count), *range(count)])
    assert not place.letters(unused_name)


def test_a_server_that_is_killed_after_the_answer(tmp_path, unused_name):
    arguments = ["--data", str(tmp_path / "data")]
    with Quipu(*arguments) as server:
        place = Place(server, server.url)
        function = Flawed(place, tmp_path, unused_name, unused_name)
        function.call({"n": 1})
        place.letter(unused_name)
        function.mend()
        assert place.redrive(unused_name)["redriven"] == 1
        server.kill()
    with Quipu(*arguments) as server:
        eventually(lambda: len(function.events()) >= 2, "the call is sent again")
        assert not Place(server, server.url).letters(unused_name)


def test_a_database_that_refuses_the_transaction(tmp_path, unused_name):
    with Quipu("--memory", "--test-hooks") as base, \
            Quipu("--on", base.url, "--functions", str(tmp_path / "functions"), env=KEYS) as server:
        place = Place(server, base.url)
        function = Flawed(place, tmp_path, unused_name, unused_name)
        for n in range(2):
            function.call({"n": n})
        eventually(lambda: len(place.letters(unused_name)) == 2, "both calls are in the queue")
        place.settle()
        function.mend()
        rule = {"error": "ResourceNotFoundException", "operation": "TransactWriteItems"}
        assert send(base.url, "POST", "/_quipu/rules", rule)[0] == 200
        status, reply = send(place.url, "POST", f"/v1/queues/{unused_name}/redrive")
        assert status == 503 and "Nothing was redriven: ResourceNotFoundException" in json.dumps(reply), reply
        result = quipu("queue", "redrive", unused_name, on=place.url)
        assert result.returncode == 1 and "Nothing was redriven" in result.stderr
        assert len(place.letters(unused_name)) == 2 and len(function.events()) == 2
        assert send(base.url, "DELETE", "/_quipu/rules")[0] == 200
        # What meets another transaction is tried again.
        rule = {"error": "TransactionCanceledException", "operation": "TransactWriteItems", "count": 3}
        assert send(base.url, "POST", "/_quipu/rules", rule)[0] == 200
        assert place.redrive(unused_name)["redriven"] == 2
        eventually(lambda: len(function.events()) == 4, "both calls are sent again")
        place.settle()
        assert sorted(event["n"] for event in function.events()) == [0, 0, 1, 1]
        with urllib.request.urlopen(server.url + "/metrics", timeout=180) as reply:
            assert 'quipu_async_calls_total{what="redriven"} 2\n' in reply.read().decode()


# ---- reactions ----

def test_a_reaction_that_failed(place, tmp_path, unused_name):
    function = Flawed(place, tmp_path, unused_name)
    assert send(place.url, "PUT", "/v1/jobs/" + unused_name, {"total": 1, "then": function.name})[0] == 201
    assert send(place.url, "POST", f"/v1/jobs/{unused_name}/done", {"task": 0})[0] == 200
    letter = place.letter("reactions", unused_name)
    function.mend()
    output("queue", "redrive", "reactions", "--id", letter["id"]["S"], on=place.url)
    eventually(lambda: len(function.events()) == 2, "the reaction is sent again")
    place.settle()
    first, second = function.events()
    assert first == second and first["detail"]["id"] == unused_name


def test_a_chain_that_was_cut_goes_on_for_a_round(here, unused_name):
    group, said = "/v1/groups/" + unused_name, "was called by its own doing too often"
    then = {"call": f"POST {group}/k", "body": {"id": "{eventID}", "data": 1}}
    assert send(here.url, "PUT", group, {"complete": {"size": 1}, "late": "new", "then": then})[0] in (200, 201)
    assert send(here.url, "POST", group + "/k", {"id": "first", "data": 1})[0] in (200, 201)

    def letters():
        return [item["id"]["S"] for item in here.letters("reactions")
                if unused_name in item["body"]["S"] and said in item["body"]["S"]]

    [first] = eventually(letters, "the chain is cut")
    generation = send(here.url, "GET", group + "/k")[1]["generation"]
    assert here.redrive("reactions", id=first)["redriven"] == 1
    eventually(lambda: letters() not in ([], [first]), "it is cut again")
    assert send(here.url, "GET", group + "/k")[1]["generation"] == generation + 1 and len(letters()) == 1


@pytest.fixture
def hook():
    """A URL that fails until `mended` is set, and what was sent to it."""
    received, mended = [], threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append((self.path, dict(self.headers), json.loads(body)))
            self.send_response(204 if mended.is_set() else 500)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}", received, mended
    server.shutdown()
    server.server_close()


def test_secrets_of_urls_stay_hidden(here, hook, unused_name):
    address, received, mended = hook
    targets = [f"http://ada:pa55word@{address}/hook?key=k3y",
               {"url": f"http://{address}/hook?key=k3y", "secret": "s3cret"}]
    assert send(here.url, "PUT", "/v1/jobs/" + unused_name, {"total": 1, "then": targets})[0] == 201
    assert send(here.url, "POST", f"/v1/jobs/{unused_name}/done", {"task": 0})[0] == 200
    eventually(lambda: len(received) == 2, "both URLs are called")
    eventually(lambda: [item["attempts"]["N"] for item in here.items("quipu-invocations")
                        if address in item.get("function", {}).get("S", "")] == ["1", "1"],
               "both wait to be tried again")
    # After six hours, they are too old for that.
    assert send(here.url, "POST", "/_quipu/clock", {"advance_seconds": 7 * 3600})[0] == 200
    letters = eventually(lambda: (found := [letter for letter in here.letters("reactions")
                                            if unused_name in letter["body"]["S"]]) and len(found) == 2 and found,
                         "both calls are in the queue")
    shown = output("queue", "read", "reactions", on=here.url) + json.dumps(letters)
    assert "http://" + address + "/hook" in shown
    for secret in ("pa55word", "k3y", "s3cret"):
        assert secret not in shown and secret not in here.server.stderr(), secret
    mended.set()
    for letter in letters:
        assert here.redrive("reactions", id=letter["id"]["S"])["redriven"] == 1
    eventually(lambda: len(received) == 4, "both URLs are called again")
    here.settle()
    assert all(path == "/hook?key=k3y" for path, _, _ in received)
    assert len([1 for _, headers, _ in received if "Authorization" in headers]) == 2
    assert len({body["id"] for _, _, body in received}) == 2 and len(received) == 4


# ---- what cannot be redriven, and pages ----

def put_messages(place, queue, count, **attributes):
    """Messages as a server puts them."""
    for n in range(count):
        item = {"queue": queue, "id": f"{len(attributes)}-{n:04}", "sent": "2026-01-01T00:00:00.000Z",
                "body": json.dumps({"requestPayload": {"n": n}}), **attributes}
        place.data.put_item(TableName="quipu-queues", Item={name: {"S": text} for name, text in item.items()})


@pytest.fixture
def sink(here, unused_name):
    """A function that puts its events into a queue."""
    output("function", "add", unused_name + "-sink", "--to-queue", unused_name + "-out", on=here.url)
    here.functions.invoke(FunctionName=unused_name + "-sink", InvocationType="Event")  # makes the table
    eventually(lambda: here.letters(unused_name + "-out"), "the queue is there")
    output("queue", "rm", unused_name + "-out", "--yes", on=here.url)
    return unused_name + "-sink", unused_name + "-out"


def test_messages_without_a_call_stay(here, sink, unused_name):
    function, out = sink
    put_messages(here, unused_name, 2)
    put_messages(here, unused_name, 1, function=function)
    result = quipu("queue", "redrive", unused_name, on=here.url)
    assert result.returncode == 1
    assert "2 messages cannot be redriven (0-0000, ...): it holds no failed call" in result.stderr
    assert f"{unused_name}: 1 message redriven" in result.stderr
    assert [letter["id"]["S"] for letter in here.letters(unused_name)] == ["0-0000", "0-0001"]
    reply = here.redrive(unused_name, id="0-0001")
    assert (reply["redriven"], reply["refused"]) == (0, 1) and reply["reasons"][0]["ids"] == ["0-0001"]
    eventually(lambda: len(here.letters(out)) == 1, "the call is sent")


def test_a_long_queue_goes_page_by_page(here, sink, unused_name):
    function, out = sink
    put_messages(here, unused_name, MANY)
    put_messages(here, unused_name, MANY, function=function)
    first = here.redrive(unused_name)  # begins with what cannot be redriven
    assert (first["redriven"], first["refused"], first["left"]) == (0, 100, 2 * MANY - 100) and first["next"]
    second = here.redrive(unused_name, next=first["next"], max=7)
    assert (second["redriven"], second["refused"], second["left"]) == (7, 20, MANY - 7)
    result = quipu("queue", "redrive", unused_name, "--max", "3", on=here.url)
    assert f"{unused_name}: 3 messages redriven" in result.stderr and f"{MANY - 10} messages left" in result.stderr
    result = quipu("queue", "redrive", unused_name, on=here.url)
    assert f"{MANY} messages cannot be redriven" in result.stderr
    assert f"{unused_name}: {MANY - 10} messages redriven" in result.stderr
    eventually(lambda: len(here.letters(out)) == MANY, "all calls are sent")
    here.settle()
    assert sorted(json.loads(item["body"]["S"])["n"] for item in here.letters(out)) == list(range(MANY))


def test_what_came_later_is_left_alone(here, sink, unused_name):
    function, _ = sink
    put_messages(here, unused_name, 2, function=function)
    first = here.redrive(unused_name, max=1)
    here.data.put_item(TableName="quipu-queues", Item={
        "queue": {"S": unused_name}, "id": {"S": "later"}, "sent": {"S": "9999-01-01T00:00:00.000Z"},
        "body": {"S": "{}"}, "function": {"S": function}})
    second = here.redrive(unused_name, next=first["next"])
    assert (second["redriven"], second["later"], second["left"]) == (1, 1, 0) and "next" not in second
    result = quipu("queue", "redrive", unused_name, on=here.url)
    assert result.returncode == 0 and "1 message came after this was begun and stays" in result.stderr
    assert [letter["id"]["S"] for letter in here.letters(unused_name)] == ["later"]


@pytest.mark.parametrize("body, message", [
    ([1], "the body must be a JSON object"),
    ({"max": 0}, "max must be a whole number from 1"),
    ({"max": "5"}, "max must be a whole number from 1"),
    ({"id": ""}, "id must be the id of a message"),
    ({"id": 5}, "id must be the id of a message"),
    ({"next": "5"}, "next must be what an answer before had as its next"),
    ({"count": 5}, "count is unknown: there are max, id and next"),
    ({"id": "a", "next": "2026-01-01T00:00:00.000Z/a"}, "id and next do not go together"),
])
def test_bad_requests(here, body, message):
    status, reply = send(here.url, "POST", "/v1/queues/q/redrive", body)
    assert status == 400 and message in reply["message"], reply


def test_a_message_that_is_not_there(here):
    status, reply = send(here.url, "POST", "/v1/queues/none/redrive", {"id": "absent"})
    assert (status, reply["Message"]) == (404, "There is no message absent in the queue none")
    result = quipu("queue", "redrive", "none", "--id", "absent", on=here.url)
    assert result.returncode == 1 and "There is no message absent" in result.stderr
    result = quipu("queue", "redrive", "none", on=here.url)
    assert (result.returncode, result.stderr) == (0, "There are no messages in the queue 'none'.\n")
    assert quipu("queue", "redrive", "none", "--id", "a", "--max", "1", on=here.url).returncode == 2
    assert send(here.url, "GET", "/v1/queues/none/redrive")[0] == 405


# ---- what triggers and schedules gave up ----

def test_a_run_of_a_schedule_whose_function_was_not_there(here, unused_name):
    function, out = unused_name + "-sink", unused_name + "-out"
    result = quipu("schedule", "add", unused_name, "rate(9 days)", function, "--on-failure", unused_name,
                   "--input", '{"n": 1}', on=here.url)
    assert result.returncode == 0, result
    here.letter(unused_name)
    output("function", "add", function, "--to-queue", out, on=here.url)
    assert here.redrive(unused_name)["redriven"] == 1
    assert json.loads(here.letter(out)["body"]["S"]) == {"n": 1}
    assert not here.letters(unused_name)
    output("schedule", "rm", unused_name, on=here.url)


def give_up(place, table, function, *flags):
    """One record of a table that its function does not take."""
    output("table", "create", table, "id:S", on=place.url)
    result = quipu("trigger", "add", table, function, "--from", "oldest", "--retries", "0", "--on-failure", table,
                   *flags, on=place.url)
    assert result.returncode == 0, result
    output("put", table, "id=1", on=place.url)
    return place.letter(table)


def test_a_batch_of_records(here, tmp_path, unused_name):
    function = Flawed(here, tmp_path, unused_name)
    letter = give_up(here, unused_name, function.name)
    assert json.loads(letter["body"]["S"])["DDBStreamBatchInfo"]["batchSize"] == 1
    function.mend()
    assert here.redrive(unused_name) == {"redriven": 1, "refused": 0, "later": 0, "left": 0, "reasons": []}
    eventually(lambda: len(function.events()) == 2, "the records are sent again")
    first, second = function.events()
    assert first == second and first["Records"][0]["dynamodb"]["Keys"] == {"id": {"S": "1"}}
    assert not here.letters(unused_name)


def test_batches_that_cannot_be_sent_again(here, tmp_path, unused_name):
    # Nobody would hear which of the records fail.
    function = Flawed(here, tmp_path, unused_name)
    give_up(here, unused_name, function.name, "--partial")
    [reason] = here.redrive(unused_name)["reasons"]
    assert "names records of a stream and does not hold them" in reason["reason"] and reason["count"] == 1
    # An old image would overwrite a newer one: the trigger's function copies into a table that is made later.
    copy = unused_name + "-copy"
    output("function", "add", copy, "--to-table", copy, on=here.url)
    give_up(here, unused_name + "-2", copy)
    output("table", "create", copy, "id:S", on=here.url)
    [reason] = here.redrive(unused_name + "-2")["reasons"]
    assert "would overwrite what their target table has got since" in reason["reason"]
    assert len(here.letters(unused_name)) == len(here.letters(unused_name + "-2")) == 1


WRITE_EACH = """
def handle(event):
    if not os.path.exists(os.environ["NOTES"] + ".mended"):
        raise ValueError("not yet")
    return {"quipu": {"transact": [{"Update": {
        "TableName": "written", "Key": {"id": record["dynamodb"]["Keys"]["id"]}, "UpdateExpression": "ADD times :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}}}} for record in event["Records"]]}}
"""


def test_a_batch_with_more_writes_than_a_transaction_takes_is_divided(tmp_path):
    """A trigger would hand it over in smaller ones; so does who sends it again, with each record once."""
    with Quipu("--memory") as server:
        data, functions = boto_client(server.url), lambda_client(server.url)
        for name, more in (("source", {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}}),
                           ("written", {})):
            data.create_table(TableName=name, BillingMode="PAY_PER_REQUEST",
                              KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
                              AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}], **more)
        keys = {str(number) for number in range(600)}
        for key in keys:
            data.put_item(TableName="source", Item={"id": {"S": key}})
        function = Function(functions, tmp_path, "writer", WRITE_EACH)
        functions.put_function_event_invoke_config(FunctionName="writer", MaximumRetryAttempts=0)
        functions.create_event_source_mapping(
            EventSourceArn="source", FunctionName="writer", StartingPosition="TRIM_HORIZON", MaximumRetryAttempts=0,
            DestinationConfig={"OnFailure": {"Destination": ARN + "lost"}})
        place = Place(server, server.url)

        def batches():
            return [json.loads(letter["body"]["S"])["DDBStreamBatchInfo"]["batchSize"] for letter in
                    place.letters("lost")]
        eventually(lambda: sum(batches()) == len(keys), "all have failed")
        assert max(batches()) > 90
        with open(function.notes + ".mended", "w"):
            pass
        status, reply = send(server.url, "POST", "/v1/queues/lost/redrive", {})
        assert status == 200 and not reply["refused"], reply
        eventually(lambda: len(place.items("written")) == len(keys), "all are written")
        assert {item["id"]["S"] for item in place.items("written")} == keys
        assert {item["times"]["N"] for item in place.items("written")} == {"1"}
        assert not place.letters("lost")
