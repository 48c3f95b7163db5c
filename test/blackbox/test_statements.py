"""PartiQL as programs use it: the JavaScript SDK (statements.mjs makes the calls), boto3, a restart between pages."""
import json
import os
import subprocess

import boto3
import pytest
from botocore.config import Config
from support.process import Quipu, npm_folder
from values import S


@pytest.fixture(scope="module")
def results(endpoint):
    script = os.path.join(os.path.dirname(__file__), "statements.mjs")
    done = subprocess.run(["node", script, endpoint, npm_folder()], capture_output=True, text=True, timeout=120)
    if done.returncode:
        pytest.fail("statements.mjs: " + done.stderr.strip()[:2000], pytrace=False)
    return json.loads(done.stdout)


def test_pages_are_followed_by_their_tokens(results):
    assert results["pages"] == [[0, 2], [4], [6]]


def test_exceptions_are_recognised(results):
    assert results["duplicate"]["name"] == "DuplicateItemException"
    assert results["condition"]["name"] == "ConditionalCheckFailedException"
    assert results["condition"]["item"] == {"pk": S("a"), "sk": {"N": "1"}, "even": {"BOOL": False}}
    assert results["malformed"]["name"] == "ValidationException"
    assert results["malformed"]["message"] == "Statement wasn't well formed, can't be processed: Unexpected term"


def test_writes_return_and_cost(results):
    changed = {"L": [{"N": "1"}, {"M": {"k": {"SS": ["s"]}}}]}
    item = {"pk": S("a"), "sk": {"N": "1"}, "even": {"BOOL": False}, "x": changed}
    assert results["updated"]["Items"] == [item]
    assert results["updated"]["ConsumedCapacity"]["CapacityUnits"] == 1


def test_batches_tell_each_outcome(results):
    found, malformed, missing = results["batch"]
    assert found["Item"] == {"x": {"L": [{"N": "1"}, {"M": {"k": {"SS": ["s"]}}}]}}
    assert (malformed["Error"]["Code"], missing["Error"]["Code"]) == ("ValidationError", "ResourceNotFound")


def test_transactions_are_all_or_nothing(results):
    assert results["cancelled"]["name"] == "TransactionCanceledException"
    assert [reason["Code"] for reason in results["cancelled"]["reasons"]] == ["None", "ConditionalCheckFailed"]
    assert results["read"] == [{"Item": {"n": {"N": "5"}}}, {}]


def client_of(server):
    return boto3.client("dynamodb", endpoint_url=server.url, region_name="us-east-1", aws_access_key_id="local",
                        aws_secret_access_key="local", config=Config(retries={"max_attempts": 1}))


def test_a_token_outlives_the_server(tmp_path):
    select = {"Statement": "SELECT id FROM things WHERE id IN ['a', 'b', 'c']", "Limit": 2}
    with Quipu("--data", str(tmp_path / "data")) as server:
        client = client_of(server)
        client.create_table(TableName="things", BillingMode="PAY_PER_REQUEST",
                            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
                            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}])
        client.batch_execute_statement(Statements=[{"Statement": f"INSERT INTO things VALUE {{'id': '{name}'}}"}
                                                   for name in "abc"])
        page = client.execute_statement(**select)
        assert [item["id"]["S"] for item in page["Items"]] == ["a", "b"]
    with Quipu("--data", str(tmp_path / "data")) as server:
        rest = client_of(server).execute_statement(**select, NextToken=page["NextToken"])
        assert [item["id"]["S"] for item in rest["Items"]] == ["c"] and "NextToken" not in rest
