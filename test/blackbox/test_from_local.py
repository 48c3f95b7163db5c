"""Coming from DynamoDB Local: its flags, what it takes and the service does not, databases by key and region."""
import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from lambdas import eventually
from support.process import DynamoLocal, Quipu, free_port, run_quipu
from support.wire import Connection

UNITS = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
ID = {"AttributeName": "id", "AttributeType": "S"}
OTHER = {"AttributeName": "other", "AttributeType": "S"}
TABLE = {"TableName": "Tab", "AttributeDefinitions": [ID], "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
         "ProvisionedThroughput": UNITS}
INDEX = {"IndexName": "by-other", "KeySchema": [{"AttributeName": "other", "KeyType": "HASH"}],
         "Projection": {"ProjectionType": "ALL"}, "ProvisionedThroughput": UNITS}

# What DynamoDB Local 3.3 takes and the service refuses.
TAKEN = {
    "throughput as text, as dynamodb-admin sends it":
        ("CreateTable", {**TABLE, "ProvisionedThroughput": {"ReadCapacityUnits": "3", "WriteCapacityUnits": "3"}}),
    "throughput on demand": ("CreateTable", {**TABLE, "BillingMode": "PAY_PER_REQUEST"}),
    "throughput of an index on demand":
        ("CreateTable", {**TABLE, "AttributeDefinitions": [ID, OTHER], "BillingMode": "PAY_PER_REQUEST",
                         "GlobalSecondaryIndexes": [INDEX]}),
    "no local indexes": ("CreateTable", {**TABLE, "LocalSecondaryIndexes": []}),
    "no projected attributes":
        ("CreateTable", {**TABLE, "AttributeDefinitions": [ID, OTHER], "GlobalSecondaryIndexes": [
            {**INDEX, "Projection": {"ProjectionType": "ALL", "NonKeyAttributes": []}}]}),
    "a limit as text": ("ListTables", {"Limit": "10"}),
}
# What Local 3.3 refuses as well, and others take.
TAKEN_ELSEWHERE = {
    "a definition that is no key": ("CreateTable", {**TABLE, "AttributeDefinitions": [ID, OTHER]}),
    "a definition twice": ("CreateTable", {**TABLE, "AttributeDefinitions": [ID, ID]}),
    "no global indexes": ("CreateTable", {**TABLE, "GlobalSecondaryIndexes": []}),
    "a limit of 0": ("ListTables", {"Limit": 0}),
}
# On a table that is there.
TAKEN_OF_ITEMS = {
    "a number as it is": ("PutItem", {"TableName": "Tab", "Item": {"id": {"S": "a"}, "n": {"N": 5}}}),
    "numbers in a set": ("PutItem", {"TableName": "Tab", "Item": {"id": {"S": "a"}, "n": {"NS": [5, 6]}}}),
    "a number as text": ("PutItem", {"TableName": "Tab", "Item": {"id": {"S": 5}}}),
    "a limit as text": ("Scan", {"TableName": "Tab", "Limit": "1"}),
    "an ARN of another region": ("Scan", {"TableName": "arn:aws:dynamodb:ddblocal:000000000000:table/Tab"}),
}


@pytest.fixture(scope="module")
def local():
    with DynamoLocal() as server:
        yield server


@pytest.fixture(scope="module")
def strict():
    with Quipu("--memory") as server:
        yield server


@pytest.fixture(scope="module")
def lenient():
    with Quipu("--memory", "--lenient") as server:
        yield server


def status_of(server, operation, body):
    """On a table Tab that is new, or none where it is to be made."""
    with Connection(server.url) as wire:
        wire.call("DeleteTable", {"TableName": "Tab"})
        if operation not in ("CreateTable", "ListTables"):
            assert wire.call("CreateTable", TABLE).status == 200
        return wire.call(operation, body).status


@pytest.mark.parametrize("name", [*TAKEN, *("items: " + name for name in TAKEN_OF_ITEMS)])
def test_lenient_takes_what_local_takes(name, local, strict, lenient):
    operation, body = TAKEN_OF_ITEMS[name[7:]] if name.startswith("items: ") else TAKEN[name]
    assert status_of(local, operation, body) == 200
    assert status_of(strict, operation, body) == 400
    assert status_of(lenient, operation, body) == 200


@pytest.mark.parametrize("name", TAKEN_ELSEWHERE)
def test_lenient_takes_what_others_take(name, strict, lenient):
    operation, body = TAKEN_ELSEWHERE[name]
    assert status_of(strict, operation, body) == 400
    assert status_of(lenient, operation, body) == 200


def test_what_is_nonsense_is_refused_by_the_lenient_too(lenient):
    for operation, body in (
            ("ListTables", {"Limit": "ten"}),
            ("ListTables", {"Limit": -1}),
            ("PutItem", {"TableName": "Tab", "Item": {"id": {"S": "a"}, "n": {"N": "five"}}}),
            ("PutItem", {"TableName": "Tab", "Item": {"id": {"S": True}}})):
        assert status_of(lenient, operation, body) == 400


# ---- its flags ----

def test_its_flags_start_it(tmp_path):
    port = free_port()
    with Quipu("-inMemory", "-sharedDb", "-disableTelemetry", "-port", str(port), cwd=tmp_path,
               env={"QUIPU_MEMORY": "1", "QUIPU_PORT": "0"}) as server:
        assert server.port == port
    assert not (tmp_path / "quipu-data").exists()
    folder = tmp_path / "there"
    with Quipu("-dbPath", str(folder), env={"QUIPU_DATA": str(folder)}) as server:
        assert status_of(server, "CreateTable", TABLE) == 200
    with Quipu("--data", str(folder)) as server, Connection(server.url) as wire:
        assert wire.call("ListTables", {}).json["TableNames"] == ["Tab"]


def test_its_flag_for_web_pages():
    with Quipu("--memory", "-cors", "http://localhost:3000,http://localhost:4000") as server:
        for origin, status in (("http://localhost:4000", 200), ("http://localhost:5000", 403)):
            with Connection(server.url) as wire:
                assert wire.call("ListTables", {}, {"Origin": origin}).status == status


def test_a_flag_of_nobody_is_named():
    result = run_quipu("serve", "-inMemmory")
    assert result.returncode == 2 and "'-inMemmory'" in result.stderr


def test_delayed_statuses():
    with Quipu("--memory", "-delayTransientStatuses") as server, Connection(server.url) as wire:
        wire.call("CreateTable", TABLE)
        statuses = set()

        def is_active():
            status = wire.call("DescribeTable", {"TableName": "Tab"}).json["Table"]["TableStatus"]
            statuses.add(status)
            return status == "ACTIVE"

        eventually(is_active, "the table is ACTIVE")
        assert statuses <= {"CREATING", "ACTIVE"}
        assert wire.call("PutItem", {"TableName": "Tab", "Item": {"id": {"S": "a"}}}).status == 200


# ---- databases of their own ----

def client_of(server, key, region):
    return boto3.client("dynamodb", endpoint_url=server.url, region_name=region, aws_access_key_id=key,
                        aws_secret_access_key="x", config=Config(retries={"total_max_attempts": 1}))


def test_keys_and_regions_have_tables_of_their_own(tmp_path):
    pairs = [("alpha", "us-east-1"), ("alpha", "eu-west-1"), ("beta", "us-east-1")]
    with Quipu("--separate-regions", "--data", str(tmp_path / "data")) as server:
        for key, region in pairs:
            client = client_of(server, key, region)
            assert client.list_tables()["TableNames"] == []
            client.create_table(**TABLE)
            client.put_item(TableName="Tab", Item={"id": {"S": f"{key} {region}"}})
            arn = client.describe_table(TableName="Tab")["Table"]["TableArn"]
            assert arn.startswith(f"arn:aws:dynamodb:{region}:")
        with Connection(server.url) as wire:  # unsigned: the server's own database
            assert wire.call("ListTables", {}, {"Authorization": None}).json["TableNames"] == []
    with Quipu("--separate-regions", "--data", str(tmp_path / "data")) as server:
        for key, region in pairs:
            items = client_of(server, key, region).scan(TableName="Tab")["Items"]
            assert items == [{"id": {"S": f"{key} {region}"}}]
    assert sorted(path.name for path in (tmp_path / "data" / "regions").iterdir()) == sorted(
        f"{key}_{region}" for key, region in pairs)
    assert run_quipu("check", "--data", str(tmp_path / "data" / "regions" / "alpha_eu-west-1")).returncode == 0


def test_names_that_are_no_folders_are_refused(tmp_path):
    with Quipu("--separate-regions", "--memory") as server:
        for key, region in (("..", "us-east-1"), ("a.b", "us-east-1"), ("a" * 129, "us-east-1")):
            with pytest.raises(ClientError) as refused:
                client_of(server, key, region).list_tables()
            assert "--separate-regions" in str(refused.value)


def test_the_number_of_databases_is_bounded():
    with Quipu("--separate-regions", "--memory") as server:
        for number in range(64):
            client_of(server, f"key{number}", "us-east-1").list_tables()
        with pytest.raises(ClientError, match="room for 64"):
            client_of(server, "key64", "us-east-1").list_tables()
        client_of(server, "key0", "us-east-1").list_tables()


@pytest.mark.parametrize("flags", [["--test-hooks"], ["--functions", "there"], ["--on", "http://127.0.0.1:1"]])
def test_what_works_on_one_database_excludes_them(flags):
    result = run_quipu("serve", "--separate-regions", *flags)
    assert result.returncode == 2 and "--separate-regions" in result.stderr
