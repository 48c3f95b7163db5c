"""Functions and triggers of servers that keep nothing themselves: `quipu serve --on URL`, on all engines, one server
and two that share the work."""
import concurrent.futures
import datetime
import json
import os
import time
import urllib.request

import boto3
import pytest
from conftest import boto_client, create_table
from lambdas import KEEP_ACCOUNT, Function, Mapping, eventually, lambda_client, queue_documents, send
from support import engines
from support.engines import OTHERS
from support.process import Quipu

KEYS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
SHARDS = 4


class Database:
    """Where the data is: tables `changes` (with a stream) and `accounts`."""

    def __init__(self, process, kind):
        self.url, self.kind = process.url, kind
        self.client = boto_client(self.url)
        create_table(self.client, "changes", StreamSpecification=STREAM)
        create_table(self.client, "accounts")

    def change(self, numbers, keys=20):
        for n in numbers:
            for key in range(keys):
                self.client.put_item(TableName="changes", Item={"pk": {"S": f"key-{key}"}, "n": {"N": str(n)}})

    def accounts(self):
        items = self.client.scan(TableName="accounts", ConsistentRead=True)["Items"]
        return {item["pk"]["S"]: [int(n["N"]) for n in item["told"]["L"]] for item in items}

    def wait_for_accounts(self, count, keys=20):
        """Each key has been told of everything, once and in order."""
        wanted = {f"key-{key}": list(range(count)) for key in range(keys)}
        eventually(lambda: sum(map(len, self.accounts().values())) >= count * keys, "all changes have had their effect")
        assert self.accounts() == wanted

    def positions(self):
        """Of shards: a mapping that began with LATEST has a note of its beginning there, too."""
        items = self.client.scan(TableName="quipu-positions", ConsistentRead=True)["Items"]
        return [item for item in items if item["shard"]["S"] != "start"]

    def open_positions(self):
        return [item for item in self.positions() if not item["ended"]["BOOL"]]

    def owners(self):
        """How many shards each server holds."""
        owners = [item["owner"]["S"] for item in self.open_positions() if "owner" in item]
        return {owner: owners.count(owner) for owner in owners}


@pytest.fixture(params=OTHERS)
def database(request):
    with engines.database(request.param, "--test-hooks", "--stream-shards", str(SHARDS)) as other:
        yield Database(other, request.param)


@pytest.fixture
def quipu():
    """A second Quipu, whose streams have several shards and can be split."""
    with Quipu("--memory", "--test-hooks", "--no-functions", "--stream-shards", str(SHARDS)) as other:
        yield Database(other, "quipu")


@pytest.fixture
def start(tmp_path):
    """start(database) starts a server on it."""
    running = []

    def start_one(database):
        folder = tmp_path / f"server-{len(running)}"
        running.append(Quipu("--on", database.url, "--functions", str(folder), env=KEYS))
        return running[-1]

    yield start_one
    for server in running:
        server.close()


def metric(server, name):
    with urllib.request.urlopen(server.url + "/metrics", timeout=180) as reply:
        return sum(float(line.split()[1]) for line in reply.read().decode().splitlines() if line.startswith(name + " "))


def keep_accounts(server, folder, **settings):
    functions = lambda_client(server.url)
    function = Function(functions, folder, "bookkeeper", KEEP_ACCOUNT)
    return function, Mapping(functions, "changes", "bookkeeper", BatchSize=10, **settings)


# ---- the server that has the data, and one that reads it from elsewhere ----

class Owner:
    """A Quipu with functions on a folder, and servers that have it as their endpoint."""

    def __init__(self, folder):
        self.folder, self.server = folder, None

    def start(self, *more):
        port = self.server.port if self.server else 0
        self.server = Quipu("--test-hooks", "--port", str(port), "--stream-shards", str(SHARDS),
                            "--data", str(self.folder / "data"), *more)
        return self.server


@pytest.fixture
def owner(tmp_path):
    (tmp_path / "owner").mkdir()
    owner = Owner(tmp_path / "owner")
    yield owner
    owner.server.close()


def log_of(server):
    """What it has said so far; where it writes on stays where it is."""
    return os.pread(server.errors.fileno(), 1 << 20, 0).decode()


def deliveries(function):
    """How often each change was told: (key, number) -> count."""
    counts = {}
    for event in function.events():
        for record in event["Records"]:
            change = record["dynamodb"]["Keys"]["pk"]["S"], int(record["dynamodb"]["NewImage"]["n"]["N"])
            counts[change] = counts.get(change, 0) + 1
    return counts


def test_the_server_that_has_the_data_keeps_what_it_reads(owner, start, tmp_path):
    server = owner.start()
    # by the clock of others all that it writes is an hour old: were its leases to end by time, they would be over
    assert send(server.url, "POST", "/_quipu/clock", {"advance_seconds": -3600})[0] == 200
    database = Database(server, "quipu")
    function = Function(lambda_client(server.url), tmp_path, "reader")
    Mapping(function.client, "changes", "reader", BatchSize=3)
    database.change([0], keys=10)
    eventually(lambda: len(deliveries(function)) == 10, "the server reads what it has")
    owners = database.owners()
    other = start(database)
    eventually(lambda: "the server that has the data reads it" in log_of(other), "the other says why it does not")
    assert send(other.url, "POST", "/2015-03-31/functions/reader/invocations", {"Records": []})[0] == 200  # it could
    database.change(range(1, 10), keys=10)
    eventually(lambda: len(deliveries(function)) >= 100, "all were told")
    assert set(deliveries(function).values()) == {1}
    assert database.owners() == owners and metric(other, "quipu_trigger_shards") == 0
    assert metric(other, "quipu_trigger_records_done_total") == 0


def test_each_takes_over_from_the_other(owner, start, tmp_path):
    """The one that has the data with functions, then without, then with them again: whoever reads goes on."""
    database = Database(owner.start(), "quipu")
    function = Function(lambda_client(owner.server.url), tmp_path, "reader")
    Mapping(function.client, "changes", "reader", BatchSize=3)
    database.change([0], keys=10)
    eventually(lambda: len(deliveries(function)) == 10, "the server reads what it has")
    other = start(database)
    owner.server.kill()  # it can give nothing back
    owner.start("--no-functions")
    database.change([1], keys=10)
    eventually(lambda: len(deliveries(function)) >= 20, "the other reads instead")
    eventually(lambda: metric(other, "quipu_trigger_shards") == SHARDS, "all shards")
    owner.server.kill()
    owner.start()
    eventually(lambda: "another server reads it (--on)" in log_of(owner.server), "it says why it does not")
    database.change([2], keys=10)
    eventually(lambda: len(deliveries(function)) >= 30, "the other goes on")
    assert other.stop() == 0
    database.change([3], keys=10)
    eventually(lambda: len(deliveries(function)) >= 40, "the server that has the data reads again")


def test_a_move_survives_the_death_of_the_server(owner, tmp_path):
    database = Database(owner.start(), "quipu")
    function = Function(lambda_client(owner.server.url), tmp_path, "reader")
    mapping = Mapping(function.client, "changes", "reader", BatchSize=3)
    database.change([0], keys=10)
    eventually(lambda: len(deliveries(function)) == 10, "all were told")
    path = f"/2015-03-31/event-source-mappings/{mapping.id}"
    for times in 2, 3:
        assert send(owner.server.url, "POST", path + "/move", {"To": "start"})[0] == 202
        owner.server.kill()
        owner.start()
        eventually(lambda: min(deliveries(function).values()) >= times, "all are told again")
        eventually(lambda: send(owner.server.url, "GET", path)[1]["State"] == "Enabled", "it is on")
    database.change([1], keys=10)
    eventually(lambda: len(deliveries(function)) == 20, "it goes on")


# ---- one server ----

def test_a_position_is_moved_while_two_servers_read(database, start, tmp_path):
    server, other = start(database), start(database)
    function = Function(lambda_client(server.url), tmp_path, "reader")
    mapping = Mapping(function.client, "changes", "reader", BatchSize=10)
    database.change([0], keys=8)
    eventually(lambda: len(deliveries(function)) == 8, "all were told")
    path = f"/2015-03-31/event-source-mappings/{mapping.id}"
    eventually(lambda: send(other.url, "GET", path)[0] == 200, "the other has heard of it")
    assert send(other.url, "POST", path + "/move", {"To": "start"})[0] == 202
    eventually(lambda: min(deliveries(function).values()) >= 2, "all were told again")
    database.change([1], keys=8)
    eventually(lambda: len(deliveries(function)) == 16, "it goes on")
    for one in server, other:
        eventually(lambda: send(one.url, "GET", path)[1]["State"] == "Enabled", "it is on")


def test_changes_made_elsewhere_reach_a_function_here(database, start, tmp_path):
    server = start(database)
    function = Function(lambda_client(server.url), tmp_path, "reader")
    mapping = Mapping(function.client, "changes", "reader")
    key = {"pk": {"S": "a"}}
    database.client.put_item(TableName="changes", Item={**key, "n": {"N": "1"}, "raw": {"B": b"\0\xff"}})
    database.client.update_item(TableName="changes", Key=key, UpdateExpression="SET n = :two",
                                ExpressionAttributeValues={":two": {"N": "2"}})
    database.client.delete_item(TableName="changes", Key=key)

    def records():
        return [record for event in function.events() for record in event["Records"]]

    eventually(lambda: len(records()) == 3, "all three changes were told")
    made, changed, removed = records()
    assert [made["eventName"], changed["eventName"], removed["eventName"]] == ["INSERT", "MODIFY", "REMOVE"]
    assert made["dynamodb"]["NewImage"] == {**key, "n": {"N": "1"}, "raw": {"B": "AP8="}}
    assert changed["dynamodb"]["OldImage"] == made["dynamodb"]["NewImage"]
    assert "NewImage" not in removed["dynamodb"] and removed["dynamodb"]["OldImage"]["n"] == {"N": "2"}
    arn = database.client.describe_table(TableName="changes")["Table"]["LatestStreamArn"]
    assert made["eventSourceARN"] == arn == mapping.get()["EventSourceArn"]
    eventually(lambda: mapping.get()["LastProcessingResult"] == "OK", "the mapping tells that all went well")


def test_latest_begins_with_what_comes(database, start, tmp_path):
    database.change([1], keys=3)
    server = start(database)
    function = Function(lambda_client(server.url), tmp_path, "reader")
    Mapping(function.client, "changes", "reader", "LATEST")
    shards = 1 if database.kind == "dynamodb local" else SHARDS
    assert len(database.positions()) == shards, "an enabled mapping has its place in each shard"
    database.change([2], keys=3)
    eventually(lambda: len(function.numbers()) >= 3, "what came was told")
    assert function.numbers() == [2, 2, 2]


def test_effects_are_applied_once(database, start, tmp_path):
    server = start(database)
    database.change(range(5))
    keep_accounts(server, tmp_path)
    database.change(range(5, 10))
    database.wait_for_accounts(10)


def test_a_server_that_is_killed_goes_on_where_it_was(database, start, tmp_path):
    server = start(database)
    keep_accounts(server, tmp_path)
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        writing = executor.submit(database.change, range(20))
        for _ in range(2):
            seen = sum(map(len, database.accounts().values()))
            eventually(lambda: writing.done() or sum(map(len, database.accounts().values())) > seen, "it goes on")
            server.kill()
            server = start(database)
        writing.result()
    database.wait_for_accounts(20)


def test_the_whole_of_lambda_is_elsewhere(database, start, tmp_path):
    """Functions, their code and mappings are there for a server that comes later."""
    first = start(database)
    function = Function(lambda_client(first.url), tmp_path, "kept", "def handle(event):\n    return event['n'] + 1\n")
    Mapping(function.client, "changes", "kept", Enabled=False)
    assert first.stop() == 0
    second = lambda_client(start(database).url)
    reply = second.invoke(FunctionName="kept", Payload=b'{"n": 1}')
    assert "FunctionError" not in reply and json.loads(reply["Payload"].read()) == 2
    (mapping,) = second.list_event_source_mappings(FunctionName="kept")["EventSourceMappings"]
    assert mapping["State"] == "Disabled"


# ---- two servers ----

def test_a_function_made_on_one_server_runs_on_the_other(database, start, tmp_path):
    first, second = lambda_client(start(database).url), lambda_client(start(database).url)
    Function(first, tmp_path, "shared", "def handle(event):\n    return 'old'\n")

    def answer():
        try:
            return json.loads(second.invoke(FunctionName="shared", Payload=b"{}")["Payload"].read())
        except second.exceptions.ResourceNotFoundException:
            return None

    assert eventually(answer, "the other server knows it") == "old"
    Function(first, tmp_path, "unused", "def handle(event):\n    return 'new'\n")
    code = {"ZipFile": urllib.request.urlopen(first.get_function(FunctionName="unused")["Code"]["Location"]).read()}
    first.update_function_code(FunctionName="shared", **code)
    eventually(lambda: answer() == "new", "the other server has the new code")
    first.delete_function(FunctionName="shared")
    eventually(lambda: answer() is None, "the other server knows that it is gone")


def test_one_takes_over_from_one_that_is_killed(database, start, tmp_path):
    servers = [start(database), start(database)]
    keep_accounts(servers[0], tmp_path)
    database.change(range(3))
    if database.kind == "quipu":
        eventually(lambda: sorted(database.owners().values()) == [2, 2], "each server has its share")
    busy = eventually(lambda: [server for server in servers if metric(server, "quipu_trigger_shards") > 0], "one reads")
    before = set(database.owners())
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        writing = executor.submit(database.change, range(3, 15))
        eventually(lambda: sum(map(len, database.accounts().values())) > 60, "both are at work")
        busy[0].kill()
        writing.result()
    database.wait_for_accounts(15)
    (survivor,) = [server for server in servers if server is not busy[0]]
    eventually(lambda: list(database.owners().values()) == [len(database.open_positions())], "one has all shards")
    assert metric(survivor, "quipu_trigger_shards") == len(database.open_positions())
    assert before - set(database.owners()), "who was killed holds nothing any more"


def test_who_stops_hands_over(database, start, tmp_path):
    servers = [start(database), start(database)]
    keep_accounts(servers[0], tmp_path)
    database.change(range(3))
    if database.kind == "quipu":
        eventually(lambda: sorted(database.owners().values()) == [2, 2], "each server has its share")
    stopping, *_ = eventually(lambda: [one for one in servers if metric(one, "quipu_trigger_shards") > 0], "one reads")
    (staying,) = [server for server in servers if server is not stopping]
    held = metric(stopping, "quipu_trigger_shards")
    before = database.owners()
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        writing = executor.submit(database.change, range(3, 10))
        assert stopping.stop() == 0
        gone = [owner for owner in before if owner not in database.owners()]
        assert len(gone) == 1 and before[gone[0]] == held, "it has given back what it held"
        writing.result()
    database.wait_for_accounts(10)
    eventually(lambda: metric(staying, "quipu_trigger_shards") == len(database.open_positions()), "the other has all")


def test_who_stops_in_the_middle_of_a_batch_hands_over_too(database, start, tmp_path):
    first = start(database)
    source = "def handle(event):\n    time.sleep(3600 if len(calls()) == 1 else 0)\n"
    function = Function(lambda_client(first.url), tmp_path, "slow", source, Timeout=900)
    Mapping(function.client, "changes", "slow", BatchSize=1)
    database.change([1], keys=1)
    eventually(function.events, "the batch is under way")
    assert first.stop() == 0
    assert database.owners() == {}
    start(database)
    eventually(lambda: function.numbers() == [1, 1], "another server has handled it again")


def test_a_newcomer_gets_its_share(quipu, start, tmp_path):
    first = start(quipu)
    keep_accounts(first, tmp_path)
    quipu.change(range(3))
    eventually(lambda: list(quipu.owners().values()) == [SHARDS], "the first has all shards")
    second = start(quipu)
    quipu.change(range(3, 6))
    eventually(lambda: sorted(quipu.owners().values()) == [SHARDS / 2, SHARDS / 2], "each has half of them")
    done = metric(second, "quipu_trigger_records_done_total")
    quipu.change(range(6, 12))
    quipu.wait_for_accounts(12)
    assert metric(second, "quipu_trigger_records_done_total") > done


@pytest.mark.parametrize("factor", [1, 3])
def test_parents_before_children_on_two_servers(factor, quipu, start, tmp_path):
    servers = [start(quipu), start(quipu)]
    keep_accounts(servers[0], tmp_path, ParallelizationFactor=factor)
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        writing = executor.submit(quipu.change, range(30))
        for _ in range(2):
            told = sum(map(len, quipu.accounts().values()))
            eventually(lambda: writing.done() or sum(map(len, quipu.accounts().values())) > told + 20, "it goes on")
            assert send(quipu.url, "POST", "/_quipu/shards/split", {"table": "changes"})[1]["split"] > 0
        writing.result()
    quipu.wait_for_accounts(30)
    eventually(lambda: len(quipu.open_positions()) == 4 * SHARDS, "the children of the children are read")
    eventually(lambda: len(quipu.owners()) == 2, "by both servers")


def test_an_asynchronous_call_outlives_the_server_that_took_it(database, start, tmp_path):
    servers = [start(database), start(database)]
    source = "def handle(event):\n    time.sleep(3600 if len(calls()) == 1 else 0)\n    note(done=True)\n"
    function = Function(lambda_client(servers[0].url), tmp_path, "slow", source, Timeout=900)
    assert function.client.invoke(FunctionName="slow", InvocationType="Event", Payload=b'{"n":1}')["StatusCode"] == 202
    eventually(lambda: len(function.events()) == 1, "it was begun")
    servers[0].kill()
    eventually(lambda: {"done": True} in function.lines(), "the other server runs it again", 120)
    assert function.events() == [{"n": 1}, {"n": 1}]


def test_a_schedule_fires_once_though_two_servers_run(database, start):
    servers = [start(database), start(database)]
    assert send(servers[0].url, "POST", "/2015-03-31/functions",
                {"FunctionName": "bell", "Code": {"Queue": "bell"}})[0] == 201
    scheduler = boto3.client("scheduler", endpoint_url=servers[0].url, region_name="us-east-1",
                             aws_access_key_id="local", aws_secret_access_key="local")
    soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=6)
    for n in range(20):
        scheduler.create_schedule(Name=f"once-{n}", ScheduleExpression=f"at({soon:%Y-%m-%dT%H:%M:%S})",
                                  FlexibleTimeWindow={"Mode": "OFF"},
                                  Target={"Arn": "arn:aws:lambda:us-east-1:000000000000:function:bell",
                                          "RoleArn": "arn:aws:iam::000000000000:role/any", "Input": json.dumps(n)})
    eventually(lambda: len(queue_documents(database.client, "bell")) >= 20, "all have fired")
    time.sleep(5)  # for who would come second
    assert sorted(queue_documents(database.client, "bell")) == list(range(20))


def test_patterns_of_two_servers_are_the_same(database, start):
    servers = [start(database), start(database)]

    def count(n):
        status, reply = send(servers[n % 2].url, "POST", "/v1/counters/visits", {})
        assert status == 200, reply
        return reply["value"]

    with concurrent.futures.ThreadPoolExecutor(4) as executor:
        assert sorted(executor.map(count, range(40))) == list(range(1, 41))
