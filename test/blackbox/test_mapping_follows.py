"""A table that is deleted and made again, or whose stream is switched off and on, is followed by its mappings:
embedded, and by servers that have their data elsewhere (`quipu serve --on URL`)."""
import pytest
from cli import output
from conftest import boto_client, create_table
from lambdas import KEEP_ACCOUNT, Function, Mapping, eventually, lambda_client, send
from support.engines import ENGINES, OTHERS, database
from support.process import Quipu

KEYS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
WRITES = 12


class World:
    """The data, and the server that runs functions on it. `kind`: where the data is."""

    def __init__(self, kind, folder, shards="1"):
        self.kind, self.folder, self.count, self.written = kind, folder, 0, {}
        self.servers, self.data = [], None
        if kind != "embedded":
            self.data = database(kind, "--stream-shards", shards)
        try:
            self.start()
        except Exception:  # one that cannot have functions does not start
            self.close()
            raise
        self.client = boto_client(self.data.url if self.data else self.server.url)
        create_table(self.client, "accounts")
        self.make()

    @property
    def server(self):
        return self.servers[0]

    @property
    def functions(self):
        return lambda_client(self.server.url)

    def start(self):
        """One more server; an embedded one has the port of the one before, and is alone."""
        folder = str(self.folder / f"functions-{len(self.servers)}")
        if self.data:
            self.servers.append(Quipu("--on", self.data.url, "--functions", folder, env=KEYS))
        else:
            port = str(self.servers.pop().port if self.servers else 0)
            self.servers.append(Quipu("--test-hooks", "--data", str(self.folder / "data"), "--port", port))
        return self.servers[-1]

    def restart(self, between=lambda: None):
        """`between` happens while no function can be called."""
        self.server.stop()
        if self.data:
            between()
            self.servers.pop()
            self.start()
        else:
            self.start()
            between()

    def close(self):
        for process in self.servers + ([self.data] if self.data else []):
            process.close()

    def make(self):
        create_table(self.client, "changes", StreamSpecification=STREAM)

    def drop(self):
        self.client.delete_table(TableName="changes")
        self.client.get_waiter("table_not_exists").wait(TableName="changes", WaiterConfig={"Delay": 1})

    def stream(self):
        return self.client.describe_table(TableName="changes")["Table"]["LatestStreamArn"]

    def write(self):
        for _ in range(WRITES):
            self.count += 1
            key = f"key-{self.count % 5}"
            self.client.put_item(TableName="changes", Item={"pk": {"S": key}, "n": {"N": str(self.count)}})
            self.written.setdefault(key, []).append(self.count)

    def told(self):
        items = self.client.scan(TableName="accounts", ConsistentRead=True)["Items"]
        return {item["pk"]["S"]: [int(n["N"]) for n in item["told"]["L"]] for item in items}

    def wait_until_told(self):
        """Of each write once, and in order."""
        eventually(lambda: sum(map(len, self.told().values())) >= self.count, "all changes have had their effect")
        assert self.told() == self.written

    def mapping(self):
        mapping, = self.functions.list_event_source_mappings()["EventSourceMappings"]
        return mapping

    def wait_for_problem(self):
        eventually(lambda: self.mapping()["LastProcessingResult"].startswith("PROBLEM: The stream"),
                   "the mapping says that its stream is gone")

    def wait_until_followed(self):
        wanted = self.stream()
        eventually(lambda: self.mapping()["EventSourceArn"] == wanted, "the mapping has the new stream")
        eventually(lambda: self.mapping()["State"] == "Enabled", "it is at work")
        eventually(lambda: "PROBLEM" not in self.mapping()["LastProcessingResult"], "the problem is gone")


@pytest.fixture(params=ENGINES)
def world(request, tmp_path):
    world = World(request.param, tmp_path)
    yield world
    world.close()


@pytest.fixture
def elsewhere(request, tmp_path):
    world = World("quipu", tmp_path, "4" if "servers" in request.node.name else "1")
    yield world
    world.close()


@pytest.fixture
def embedded(tmp_path):
    world = World("embedded", tmp_path)
    yield world
    world.close()


def test_a_table_that_is_made_again_is_followed(world):
    Function(world.functions, world.folder, "bookkeeper", KEEP_ACCOUNT)
    uuid = output("trigger", "add", "changes", "bookkeeper", on=world.server.url).split()[0]
    eventually(lambda: world.mapping()["State"] == "Enabled", "it is at work")
    world.write()
    if world.kind == "dynamodb local":  # the others keep a stream for a day, whatever becomes of its table
        world.wait_until_told()
    world.drop()
    world.wait_until_told()
    world.wait_for_problem()
    world.make()
    world.write()
    world.wait_until_told()
    world.wait_until_followed()
    world.restart(lambda: (world.drop(), world.make(), world.write()))
    world.wait_until_told()
    world.wait_until_followed()
    mapping = world.mapping()
    assert mapping["UUID"] == uuid and mapping["StartingPosition"] == "LATEST"


def switch(world, on):
    world.client.update_table(TableName="changes", StreamSpecification=STREAM if on else {"StreamEnabled": False})


def test_a_stream_that_is_switched_off_and_on_is_followed_and_none_between_is_left_out(elsewhere):
    world = elsewhere
    Function(world.functions, world.folder, "bookkeeper", KEEP_ACCOUNT)
    Mapping(world.functions, "changes", "bookkeeper")
    world.write()
    switch(world, False)
    world.wait_until_told()
    world.wait_for_problem()

    def changes():
        for _ in range(3):
            switch(world, True)
            world.write()
            switch(world, False)
        switch(world, True)
        world.write()

    world.restart(changes)
    world.wait_until_told()
    world.wait_until_followed()


def test_of_several_servers_one_follows_and_the_others_go_along(elsewhere):
    world = elsewhere
    second = lambda_client(world.start().url)
    Function(world.functions, world.folder, "bookkeeper", KEEP_ACCOUNT)
    mapping = Mapping(world.functions, "changes", "bookkeeper")
    seen = lambda: {each["EventSourceArn"]: each["State"] for each in
                    second.list_event_source_mappings()["EventSourceMappings"]}
    for _ in range(2):
        eventually(lambda: seen().get(world.stream()) == "Enabled", "the second server is at work, too")
        world.write()
        world.drop()
        world.make()
        world.write()
        world.wait_until_told()
        world.wait_until_followed()
    eventually(lambda: seen() == {world.stream(): "Enabled"}, "the second server has gone along")
    item = world.client.get_item(TableName="quipu-mappings", Key={"id": {"S": mapping.id}}, ConsistentRead=True)["Item"]
    assert item["revision"] == {"N": "3"} and item["stream"] == {"S": world.stream()}  # each step was made once


def test_a_mapping_that_is_switched_off_follows_when_it_is_switched_on(embedded):
    world = embedded
    Function(world.functions, world.folder, "bookkeeper", KEEP_ACCOUNT)
    mapping = Mapping(world.functions, "changes", "bookkeeper")
    world.write()
    world.wait_until_told()
    first = world.stream()
    mapping.update(Enabled=False)
    world.write()
    world.drop()
    world.make()
    world.write()
    assert mapping.get()["EventSourceArn"] == first and mapping.get()["State"] == "Disabled"
    mapping.update(Enabled=True)
    world.wait_until_told()
    world.wait_until_followed()


def test_where_another_mapping_reads_the_new_stream_the_old_one_stays(embedded):
    world = embedded
    Function(world.functions, world.folder, "bookkeeper", KEEP_ACCOUNT)
    old = Mapping(world.functions, "changes", "bookkeeper")
    old.update(Enabled=False)
    world.drop()
    world.make()
    new = Mapping(world.functions, "changes", "bookkeeper")
    old.update(Enabled=True)
    eventually(lambda: new.id in old.get()["LastProcessingResult"], "the old one names the new one")
    world.write()
    world.wait_until_told()
    assert old.get()["EventSourceArn"] != new.get()["EventSourceArn"]
    world.drop()  # the new one goes on; the stream that it has read is not for the old one either
    world.make()
    eventually(lambda: new.get()["EventSourceArn"] == world.stream(), "the new one follows")
    world.write()
    # All that can be done has been done when it is idle: an answer of 504 says that it takes long.
    eventually(lambda: send(world.server.url, "POST", "/_quipu/idle")[0] == 200, "nothing is left to do")
    world.wait_until_told()
    assert new.id in old.get()["LastProcessingResult"]
    new.delete()
    eventually(lambda: old.get()["EventSourceArn"] == world.stream(), "when that is gone, it follows")
