"""Tables: create, describe, list, update, delete, with boto3."""
import datetime

import pytest
from conftest import create_table
from values import N, S, invalid, refused


def keys(hash_name="pk"):
    return {"AttributeDefinitions": [{"AttributeName": hash_name, "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": hash_name, "KeyType": "HASH"}]}


def test_create_answers_the_description(client, unused_name):
    description = create_table(client, unused_name, "S", "N")
    assert description["TableName"] == unused_name
    assert description["TableStatus"] in ("CREATING", "ACTIVE")
    assert description["KeySchema"] == [{"AttributeName": "pk", "KeyType": "HASH"},
                                        {"AttributeName": "sk", "KeyType": "RANGE"}]
    assert description["ItemCount"] == 0
    assert description["TableSizeBytes"] == 0
    assert description["TableArn"].startswith("arn:aws:dynamodb:")
    assert description["TableArn"].endswith(f":table/{unused_name}")
    assert isinstance(description["CreationDateTime"], datetime.datetime)
    client.delete_table(TableName=unused_name)


def test_describe_is_active_after_the_waiter(client, table):
    description = client.describe_table(TableName=table)["Table"]
    assert description["TableStatus"] == "ACTIVE"
    assert description["AttributeDefinitions"] == [{"AttributeName": "pk", "AttributeType": "S"}]
    age = datetime.datetime.now(datetime.timezone.utc) - description["CreationDateTime"]
    assert abs(age) < datetime.timedelta(minutes=5)


def test_on_demand_is_told_in_the_billing_mode(client, table):
    description = client.describe_table(TableName=table)["Table"]
    assert description["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert description["ProvisionedThroughput"]["ReadCapacityUnits"] == 0


def test_provisioned_throughput_is_kept(client, make_table):
    name = make_table(BillingMode="PROVISIONED",
                      ProvisionedThroughput={"ReadCapacityUnits": 7, "WriteCapacityUnits": 3})
    throughput = client.describe_table(TableName=name)["Table"]["ProvisionedThroughput"]
    assert (throughput["ReadCapacityUnits"], throughput["WriteCapacityUnits"]) == (7, 3)
    assert throughput["NumberOfDecreasesToday"] == 0


def test_create_twice_is_refused(client, table):
    with refused("ResourceInUseException", "Table already exists", table):
        create_table(client, table)


def test_update_table_changes_throughput(client, make_table):
    name = make_table(BillingMode="PROVISIONED",
                      ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 1})
    client.update_table(TableName=name, ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 6})
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 30})
    throughput = client.describe_table(TableName=name)["Table"]["ProvisionedThroughput"]
    assert (throughput["ReadCapacityUnits"], throughput["WriteCapacityUnits"]) == (5, 6)


def test_update_table_to_the_same_throughput_is_refused(client, make_table):
    name = make_table(BillingMode="PROVISIONED",
                      ProvisionedThroughput={"ReadCapacityUnits": 2, "WriteCapacityUnits": 2})
    with invalid("The provisioned throughput for the table will not change"):
        client.update_table(TableName=name, ProvisionedThroughput={"ReadCapacityUnits": 2, "WriteCapacityUnits": 2})


def test_deletion_protection(wire, table):
    wire.call("UpdateTable", {"TableName": table, "DeletionProtectionEnabled": True})
    reply = wire.call("DeleteTable", {"TableName": table})
    assert (reply.status, reply.type) == (400, "ValidationException")
    assert "protected against deletion" in reply.message
    assert wire.call("UpdateTable", {"TableName": table, "DeletionProtectionEnabled": False}).status == 200
    assert wire.call("DeleteTable", {"TableName": table}).status == 200


def test_delete_waits_until_it_is_gone(client, unused_name):
    create_table(client, unused_name)
    client.put_item(TableName=unused_name, Item={"pk": S("a")})
    description = client.delete_table(TableName=unused_name)["TableDescription"]
    assert description["TableName"] == unused_name
    client.get_waiter("table_not_exists").wait(TableName=unused_name, WaiterConfig={"Delay": 1, "MaxAttempts": 30})
    with refused("ResourceNotFoundException"):
        client.describe_table(TableName=unused_name)


def test_a_new_table_of_an_old_name_is_empty(client, unused_name):
    create_table(client, unused_name)
    client.put_item(TableName=unused_name, Item={"pk": S("a")})
    client.delete_table(TableName=unused_name)
    client.get_waiter("table_not_exists").wait(TableName=unused_name, WaiterConfig={"Delay": 1, "MaxAttempts": 30})
    create_table(client, unused_name)
    assert client.scan(TableName=unused_name)["Count"] == 0
    assert "Item" not in client.get_item(TableName=unused_name, Key={"pk": S("a")})
    client.delete_table(TableName=unused_name)


def test_list_tables_pages(client, make_table):
    names = sorted(make_table() for _ in range(5))
    listed = [n for page in client.get_paginator("list_tables").paginate(PaginationConfig={"PageSize": 2})
              for n in page["TableNames"]]
    assert [n for n in listed if n in names] == names
    assert len(listed) == len(set(listed))
    page = client.list_tables(Limit=1, ExclusiveStartTableName=names[1])
    assert page["TableNames"] == [names[2]]
    assert page["LastEvaluatedTableName"] == names[2]


def test_item_count_follows_the_items(client, table):
    for number in range(4):
        client.put_item(TableName=table, Item={"pk": S(str(number)), "value": N(number)})
    client.delete_item(TableName=table, Key={"pk": S("0")})
    description = client.describe_table(TableName=table)["Table"]
    assert description["ItemCount"] == 3
    assert description["TableSizeBytes"] > 0


def test_indexes_are_described(client, make_table):
    name = make_table(
        AttributeDefinitions=[{"AttributeName": n, "AttributeType": "S"} for n in ("pk", "sk", "g", "l")],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        GlobalSecondaryIndexes=[{"IndexName": "by-g", "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                                 "Projection": {"ProjectionType": "KEYS_ONLY"}}],
        LocalSecondaryIndexes=[{"IndexName": "by-l", "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"},
                                                                   {"AttributeName": "l", "KeyType": "RANGE"}],
                                "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["x"]}}])
    description = client.describe_table(TableName=name)["Table"]
    index = description["GlobalSecondaryIndexes"][0]
    assert (index["IndexName"], index["IndexStatus"]) == ("by-g", "ACTIVE")
    assert index["Projection"] == {"ProjectionType": "KEYS_ONLY"}
    assert index["IndexArn"] == description["TableArn"] + "/index/by-g"
    index = description["LocalSecondaryIndexes"][0]
    assert index["Projection"] == {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["x"]}


@pytest.mark.parametrize("name", ["ab", "a" * 256, "with space", "slash/es", ""])
def test_bad_table_names(client, name):
    with invalid():
        client.create_table(TableName=name, BillingMode="PAY_PER_REQUEST", **keys())


def test_a_key_that_is_not_defined(client, unused_name):
    with invalid():
        client.create_table(TableName=unused_name, BillingMode="PAY_PER_REQUEST", **{
            **keys(), "AttributeDefinitions": [{"AttributeName": "other", "AttributeType": "S"}]})


def test_a_definition_that_is_no_key(client, unused_name):
    definitions = keys()["AttributeDefinitions"] + [{"AttributeName": "other", "AttributeType": "S"}]
    with invalid("Number of attributes in KeySchema does not exactly match number of attributes defined in "
                 "AttributeDefinitions"):
        client.create_table(TableName=unused_name, BillingMode="PAY_PER_REQUEST",
                            **{**keys(), "AttributeDefinitions": definitions})


def test_provisioned_without_throughput(client, unused_name):
    with invalid("ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED"):
        client.create_table(TableName=unused_name, **keys())


def test_limits_are_told(client):
    limits = client.describe_limits()
    assert limits["TableMaxReadCapacityUnits"] > 0
    assert limits["AccountMaxWriteCapacityUnits"] >= limits["TableMaxWriteCapacityUnits"]
