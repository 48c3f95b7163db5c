"""CreateBackup and its kin, and restores to a point in time: on disk and in memory, under load, and with a server that
is killed. What comes back is compared item by item with what was acknowledged."""
import json
import os

import pytest
from support.fixtures import boto_client, create_table
from support.process import Quipu, free_port, run_quipu
from support.wire import Connection, call_headers, request_bytes
from test_backups import Writers, moment, until

INDEX = {"IndexName": "by-n", "KeySchema": [{"AttributeName": "n", "KeyType": "HASH"}],
         "Projection": {"ProjectionType": "ALL"}}


class Place:
    """A server, and calls to it in plain JSON: the SDK sends times in whole seconds."""

    def __init__(self, server):
        self.server, self.client = server, boto_client(server.url)

    def call(self, operation, **request):
        with Connection(self.server.url) as wire:
            reply = wire.call(operation, request)
        answer = json.loads(reply.body)
        assert reply.status == 200, answer
        return answer

    def refusal(self, operation, **request):
        with Connection(self.server.url) as wire:
            reply = wire.call(operation, request)
        assert reply.status == 400, reply.body
        answer = json.loads(reply.body)
        return answer["__type"].split("#")[1], answer.get("message") or answer.get("Message")

    def status(self, table):
        names = self.client.list_tables()["TableNames"]
        assert table in names, self.server.stderr()
        return self.client.describe_table(TableName=table)["Table"]["TableStatus"]

    def await_active(self, table):
        until(lambda: self.status(table) == "ACTIVE")

    def restore(self, table, backup=None, **more):
        """From a backup by its ARN, or to a moment; waits for it."""
        if backup:
            said = self.call("RestoreTableFromBackup", TargetTableName=table, BackupArn=backup, **more)
        else:
            said = self.call("RestoreTableToPointInTime", TargetTableName=table, **more)
        description = said["TableDescription"]
        assert description["TableStatus"] == "CREATING" and description["RestoreSummary"]["RestoreInProgress"]
        self.await_active(table)
        return self.items(table)

    def items(self, table):
        pages = self.client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
        return sorted((item for page in pages for item in page["Items"]), key=repr)

    def recovery(self, table, enabled=None):
        if enabled is None:
            said = self.call("DescribeContinuousBackups", TableName=table)
        else:
            said = self.call("UpdateContinuousBackups", TableName=table,
                             PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": enabled})
        return said["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]

    def moment(self, table):
        """One that is over: what is written from now on is later."""
        at = self.recovery(table)["LatestRestorableDateTime"]
        until(lambda: self.recovery(table)["LatestRestorableDateTime"] > at)
        return at

    def path(self, *names):
        return os.path.join(self.server.folder, "data", *names)


@pytest.fixture(scope="module", params=["disk", "memory"])
def place(request):
    with Quipu(*(["--memory"] if request.param == "memory" else [])) as server:
        yield Place(server)


@pytest.fixture
def things(place, unused_name):
    create_table(place.client, unused_name, range_type="N", GlobalSecondaryIndexes=[INDEX], AttributeDefinitions=[
        {"AttributeName": "pk", "AttributeType": "S"}, {"AttributeName": "sk", "AttributeType": "N"},
        {"AttributeName": "n", "AttributeType": "N"}],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
    put(place, unused_name, range(20))
    return unused_name


def put(place, table, numbers, text="x"):
    for n in numbers:
        place.client.put_item(TableName=table, Item={
            "pk": {"S": f"k{n % 3}"}, "sk": {"N": str(n)}, "n": {"N": str(n % 2)}, "text": {"S": text},
            "more": {"M": {"l": {"L": [{"NULL": True}, {"BOOL": False}, {"B": b"\0\1"}]}}}})


def back_up(place, table):
    details = place.call("CreateBackup", TableName=table, BackupName="one")["BackupDetails"]
    assert details["BackupStatus"] == "CREATING"
    described = place.call("DescribeBackup", BackupArn=details["BackupArn"])["BackupDescription"]
    assert described["BackupDetails"]["BackupStatus"] == "AVAILABLE"
    return details["BackupArn"]


def test_a_backup_brings_back_what_was_there(place, things):
    items = place.items(things)
    size = place.client.describe_table(TableName=things)["Table"]["TableSizeBytes"]
    arn = back_up(place, things)
    put(place, things, range(10, 30), "later")
    place.client.delete_item(TableName=things, Key={"pk": {"S": "k0"}, "sk": {"N": "0"}})
    for nth in range(2):  # as often as one likes
        assert place.restore(f"{things}-{nth}", arn) == items
        table = place.client.describe_table(TableName=f"{things}-{nth}")["Table"]
        assert (table["ItemCount"], table["TableSizeBytes"]) == (20, size)
        assert table["GlobalSecondaryIndexes"][0]["ItemCount"] == 20
        assert "RestoreSummary" not in table and "LatestStreamArn" not in table
    found = place.client.query(TableName=f"{things}-0", IndexName="by-n", KeyConditionExpression="n = :n",
                               ExpressionAttributeValues={":n": {"N": "1"}})
    assert found["Count"] == 10
    put(place, f"{things}-0", [1], "mine")  # it is a table as any other
    assert place.restore(f"{things}-2", arn) == items


def test_a_backup_outlives_its_table_and_is_gone_when_it_is_deleted(place, things):
    items, arn = place.items(things), back_up(place, things)
    place.client.delete_table(TableName=things)
    assert place.restore(things, arn) == items
    copy = place.path("backups", arn.split("/")[-1])
    assert os.path.exists(copy) == os.path.exists(place.path())
    deleted = place.call("DeleteBackup", BackupArn=arn)["BackupDescription"]
    assert deleted["BackupDetails"]["BackupStatus"] == "DELETED"
    assert not os.path.exists(copy)
    assert place.refusal("RestoreTableFromBackup", TargetTableName=f"{things}-2", BackupArn=arn) == (
        "BackupNotFoundException", f"Backup not found: {arn}")
    assert place.call("ListBackups", TableName=things) == {"BackupSummaries": []}


def test_overrides_of_a_restore_act(place, things):
    arn = back_up(place, things)
    renamed = dict(INDEX, IndexName="other", ProvisionedThroughput={"ReadCapacityUnits": 7, "WriteCapacityUnits": 8})
    place.restore(f"{things}-1", arn, BillingModeOverride="PROVISIONED", GlobalSecondaryIndexOverride=[renamed],
                  ProvisionedThroughputOverride={"ReadCapacityUnits": 5, "WriteCapacityUnits": 6})
    table = place.client.describe_table(TableName=f"{things}-1")["Table"]
    assert table["ProvisionedThroughput"]["ReadCapacityUnits"] == 5
    assert [(index["IndexName"], index["ItemCount"]) for index in table["GlobalSecondaryIndexes"]] == [("other", 20)]
    place.restore(f"{things}-2", arn, GlobalSecondaryIndexOverride=[])
    table = place.client.describe_table(TableName=f"{things}-2")["Table"]
    assert "GlobalSecondaryIndexes" not in table and len(table["AttributeDefinitions"]) == 2


def test_vectors_come_back_and_can_be_searched(place, unused_name):
    index = {"IndexName": "vix", "VectorAttribute": {"AttributeName": "v"}, "Dimensions": 2,
             "DistanceFunction": "EUCLIDEAN", "Projection": {"ProjectionType": "ALL"}}
    place.call("CreateTable", TableName=unused_name, BillingMode="PAY_PER_REQUEST", VectorIndexes=[index],
               AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
               KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}])
    for n in range(5):
        place.call("PutItem", TableName=unused_name,
                   Item={"pk": {"S": str(n)}, "v": {"L": [{"N": str(n)}, {"N": "0"}]}})
    arn = back_up(place, unused_name)
    described = place.call("DescribeBackup", BackupArn=arn)["BackupDescription"]["SourceTableFeatureDetails"]
    assert described["VectorIndexes"] == [index]
    place.restore(f"{unused_name}-1", arn, VectorIndexOverride=[dict(index, IndexName="renamed")])
    found = place.call("SearchVectors", TableName=f"{unused_name}-1", IndexName="renamed", TopK=1,
                       SearchVector=[{"N": "3.2"}, {"N": "0"}])["SearchResults"]
    assert [result["Item"]["pk"]["S"] for result in found] == ["3"]
    place.restore(f"{unused_name}-2", arn, VectorIndexOverride=[])
    assert "VectorIndexes" not in place.call("DescribeTable", TableName=f"{unused_name}-2")["Table"]


def test_any_moment_since_it_was_switched_on_comes_back(place, things):
    assert place.recovery(things, True)["PointInTimeRecoveryStatus"] == "ENABLED"
    states = {}
    for round in range(4):
        states[place.moment(things)] = place.items(things)
        put(place, things, range(round * 5, round * 5 + 7), f"round {round}")
        place.client.delete_item(TableName=things, Key={"pk": {"S": f"k{round % 3}"}, "sk": {"N": str(round)}})
    for nth, (at, items) in enumerate(states.items()):
        assert place.restore(f"{things}-{nth}", SourceTableName=things, RestoreDateTime=at) == items
    assert place.restore(f"{things}-now", SourceTableName=things,
                         UseLatestRestorableTime=True) == place.items(things)
    kept = place.path("kept")
    assert os.path.exists(kept) == os.path.exists(place.path())
    assert place.recovery(things, False) == {"PointInTimeRecoveryStatus": "DISABLED"}
    assert not os.path.exists(kept)  # nobody else asked for it
    assert place.refusal("RestoreTableToPointInTime", TargetTableName="none", SourceTableName=things,
                         UseLatestRestorableTime=True) == (
        "PointInTimeRecoveryUnavailableException", f"Point in time recovery is not enabled for table '{things}'")
    again = place.recovery(things, True)["EarliestRestorableDateTime"]
    assert again > max(states)  # switched on anew, it begins anew
    place.recovery(things, False)


def test_a_table_that_could_be_brought_back_leaves_a_backup(place, things):
    items = place.items(things)
    place.recovery(things, True)
    place.client.delete_table(TableName=things)
    assert not os.path.exists(place.path("kept"))
    summaries = place.call("ListBackups", TableName=things, BackupType="SYSTEM")["BackupSummaries"]
    assert [summary["BackupName"] for summary in summaries] == [f"{things}$DeletedTableBackup"]
    assert place.restore(things, summaries[0]["BackupArn"]) == items
    assert place.refusal("DeleteBackup", BackupArn=summaries[0]["BackupArn"])[0] == "ValidationException"


def test_the_log_of_keep_log_stays_when_a_table_lets_it_go(tmp_path):
    with Quipu("--data", str(tmp_path / "data"), "--keep-log", "2d") as server:
        place = Place(server)
        create_table(place.client, "things")
        place.recovery("things", True)
        place.recovery("things", False)
        assert os.listdir(tmp_path / "data" / "kept" / "bases")


def test_a_log_that_no_table_wants_any_more_goes_at_the_next_start(tmp_path):
    """As a server leaves it that is killed when recovery is switched off and the log is not removed yet."""
    data, kept, aside = tmp_path / "data", tmp_path / "data" / "kept", tmp_path / "aside"
    with Quipu("--data", str(data)) as server:
        place = Place(server)
        create_table(place.client, "things")
        place.recovery("things", True)
        aside.mkdir()
        for path in data.glob("kept*"):
            os.rename(path, aside / path.name)
        place.recovery("things", False)
        assert not list(data.glob("kept*"))
        server.kill()
    for path in aside.iterdir():
        os.rename(path, data / path.name)
    assert kept.exists()
    with Quipu("--data", str(data)):
        assert not list(data.glob("kept*"))


def test_the_log_of_keep_log_is_left_by_a_server_that_keeps_none(tmp_path):
    data = str(tmp_path / "data")
    with Quipu("--data", data) as server:
        place = Place(server)
        create_table(place.client, "things")
        place.recovery("things", True)
    with Quipu("--data", data, "--keep-log", "2d") as server:
        Place(server).recovery("things", False)
    with Quipu("--data", data):
        assert os.listdir(tmp_path / "data" / "kept" / "bases")


def test_what_was_switched_on_is_still_on_after_a_restart(tmp_path):
    data = str(tmp_path / "data")
    with Quipu("--data", data) as server:
        place = Place(server)
        create_table(place.client, "things")
        begin = place.recovery("things", True)["EarliestRestorableDateTime"]
        place.client.put_item(TableName="things", Item={"pk": {"S": "early"}})
        at = place.moment("things")
        server.kill()
    with Quipu("--data", data) as server:
        place = Place(server)
        place.client.put_item(TableName="things", Item={"pk": {"S": "late"}})
        assert place.recovery("things")["EarliestRestorableDateTime"] == begin
        assert place.restore("old", SourceTableName="things", RestoreDateTime=at) == [{"pk": {"S": "early"}}]
        assert place.restore("new", SourceTableName="things", UseLatestRestorableTime=True) == \
            place.items("things")


def test_each_region_has_backups_of_its_own(tmp_path):
    with Quipu("--data", str(tmp_path / "data"), "--separate-regions") as server:
        clients = [boto_client(server.url, key) for key in ("ann", "bob")]
        for nth, client in enumerate(clients):
            create_table(client, "things")
            client.put_item(TableName="things", Item={"pk": {"S": str(nth)}})
        arn = clients[0].create_backup(TableName="things", BackupName="one")["BackupDetails"]["BackupArn"]
        assert clients[1].list_backups()["BackupSummaries"] == []
        with pytest.raises(clients[1].exceptions.BackupNotFoundException):
            clients[1].restore_table_from_backup(TargetTableName="again", BackupArn=arn)
        clients[0].restore_table_from_backup(TargetTableName="again", BackupArn=arn)
        until(lambda: clients[0].describe_table(TableName="again")["Table"]["TableStatus"] == "ACTIVE")
        assert clients[0].scan(TableName="again")["Items"] == [{"pk": {"S": "0"}}]
        clients[1].update_continuous_backups(TableName="things", PointInTimeRecoverySpecification={
            "PointInTimeRecoveryEnabled": True})
        clients[1].restore_table_to_point_in_time(SourceTableName="things", TargetTableName="moment",
                                                  UseLatestRestorableTime=True)
        until(lambda: clients[1].describe_table(TableName="moment")["Table"]["TableStatus"] == "ACTIVE")
        assert clients[1].scan(TableName="moment")["Items"] == [{"pk": {"S": "1"}}]


@pytest.mark.parametrize("durability", ["sync", "os"])
def test_a_moment_has_all_that_was_acknowledged(tmp_path, durability):
    with Quipu("--data", str(tmp_path / "data"), "--durability", durability) as server:
        place = Place(server)
        create_table(place.client, "things")
        place.recovery("things", True)
        place.client.put_item(TableName="things", Item={"pk": {"S": "a"}})
        assert place.restore("new", SourceTableName="things", UseLatestRestorableTime=True) == [{"pk": {"S": "a"}}]


def compare(writers, items, before, after):
    """Of each writer a run of items without a gap: all that was acknowledged before, nothing that was begun later."""
    writers.compare({(item["pk"]["S"], int(item["n"]["N"])) for item in items}, before)
    for nth, most in enumerate(after):
        assert sum(item["pk"]["S"].startswith(f"{nth}-") for item in items) <= most + 1


def test_under_load_and_with_a_server_that_is_killed(tmp_path):
    data, port = str(tmp_path / "data"), str(free_port())
    with Quipu("--data", data, "--port", port) as server:
        place = Place(server)
        create_table(place.client, "things")
        place.recovery("things", True)
        writers = Writers(server.url, 3)
        try:
            writers.await_more(300)
            before = list(writers.acknowledged)
            arn = back_up(place, "things")
            after = list(writers.acknowledged)
            writers.await_more(100)
            early = list(writers.acknowledged)
            at = place.moment("things")
            late = list(writers.acknowledged)
            writers.await_more(100)
            compare(writers, place.restore("one", arn), before, after)
            compare(writers, place.restore("two", SourceTableName="things", RestoreDateTime=at), early, late)
            # Both once more, and nobody knows how far they were, nor a backup that is being made.
            place.call("RestoreTableFromBackup", TargetTableName="three", BackupArn=arn)
            place.call("RestoreTableToPointInTime", TargetTableName="four", SourceTableName="things",
                       RestoreDateTime=at)
            with Connection(server.url) as wire:
                body = json.dumps({"TableName": "things", "BackupName": "another"}).encode()
                wire.send(request_bytes("POST", "/", {"Host": wire.host, **call_headers("CreateBackup")}, body))
                server.kill()
            with Quipu("--data", data, "--port", port) as again:
                place = Place(again)
                writers.await_more(50)
                place.await_active("three")
                place.await_active("four")
                compare(writers, place.items("three"), before, after)
                compare(writers, place.items("four"), early, late)
                summaries = place.call("ListBackups")["BackupSummaries"]
                assert summaries[0]["BackupArn"] == arn
                names = sorted(summary["BackupArn"].split("/")[-1] for summary in summaries)
                assert sorted(os.listdir(os.path.join(data, "backups"))) == names
                compare(writers, place.restore("five", arn), before, after)
                compare(writers, place.restore("six", SourceTableName="things", RestoreDateTime=at), early, late)
                until(lambda: not os.path.exists(os.path.join(data, "views")) or
                      not os.listdir(os.path.join(data, "views")))
        finally:
            writers.stop()


# ---- the commands ----

def test_commands_on_a_server(place, things):
    def run(*words, status=0):
        result = run_quipu("table", *words, "--on", place.server.url)
        assert result.returncode == status, (result.stdout, result.stderr)
        return result.stdout if status == 0 else result.stderr

    items = place.items(things)
    ident = run("backup", things, "--name", "by-hand").strip()
    listed = [json.loads(line) for line in run("backups", things).splitlines()]
    assert [(one["BackupName"], one["BackupArn"].split("/")[-1]) for one in listed] == [("by-hand", ident)]
    assert ident in run("backups", "--table")
    run("set", things, "--recovery", "7d")
    assert place.recovery(things)["RecoveryPeriodInDays"] == 7
    assert "any moment since" in run("describe", things, "--table")
    at = place.moment(things)
    put(place, things, range(5), "later")
    run("restore", f"{things}-1", "--backup", ident)
    run("restore", f"{things}-2", "--backup", listed[0]["BackupArn"])
    run("restore", f"{things}-3", "--from", things)
    run("restore", f"{things}-4", "--from", things, "--at", moment(round(at * 1000)), "--no-wait")
    place.await_active(f"{things}-4")
    assert place.items(f"{things}-1") == place.items(f"{things}-2") == place.items(f"{things}-4") == items
    assert place.items(f"{things}-3") == place.items(things) != items
    run("set", things, "--recovery", "off")
    run("rm-backup", ident)
    assert f"there is no backup '{ident}'" in run("rm-backup", ident, status=1)
    for words in ([f"{things}-5"], [f"{things}-5", "--backup", ident, "--from", things],
                  [f"{things}-5", "--backup", ident, "--at", "1"], [f"{things}-5", "--from", things, "--at", "soon"]):
        run("restore", *words, status=2)
    run("set", things, "--recovery", "36", status=2)


def test_commands_on_a_folder(tmp_path):
    def run(*words):
        result = run_quipu(*words, "--on", str(tmp_path / "data"))
        assert result.returncode == 0, result.stderr
        return result.stdout

    run("table", "create", "things", "pk:S")
    run("put", "things", "pk=a")
    ident = run("table", "backup", "things").strip()
    run("table", "set", "things", "--recovery", "1")
    run("table", "drop", "things", "--yes")
    run("table", "restore", "again", "--backup", ident)
    assert run("scan", "again") == '{"pk":"a"}\n'
    listed = run("table", "backups", "things", "--table")
    assert ident in listed and "things$DeletedTableBackup" in listed
    run("table", "rm-backup", ident)
    assert ident not in run("table", "backups")
