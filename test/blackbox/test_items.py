"""PutItem, GetItem, UpdateItem and DeleteItem, with boto3."""
import pytest
from values import L, M, N, NS, S, SS, TRUE, invalid, refused, same


def put(client, table, **attributes):
    return client.put_item(TableName=table, Item=attributes)


def get(client, table, key, **options):
    return client.get_item(TableName=table, Key={"pk": S(key)}, **options).get("Item")


def test_put_and_get(client, table):
    item = {"pk": S("a"), "text": S("Žluťoučký 🐎"), "count": N(3)}
    reply = client.put_item(TableName=table, Item=item)
    assert reply["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert "Attributes" not in reply
    assert get(client, table, "a") == item
    assert get(client, table, "a", ConsistentRead=True) == item


def test_get_of_nothing_has_no_item(client, table):
    assert "Item" not in client.get_item(TableName=table, Key={"pk": S("nobody")})


def test_put_replaces_the_whole_item(client, table):
    put(client, table, pk=S("a"), old=S("x"))
    put(client, table, pk=S("a"), new=S("y"))
    assert get(client, table, "a") == {"pk": S("a"), "new": S("y")}


def test_put_returns_the_old_item(client, table):
    first = {"pk": S("a"), "v": N(1)}
    assert "Attributes" not in client.put_item(TableName=table, Item=first, ReturnValues="ALL_OLD")
    assert client.put_item(TableName=table, Item={"pk": S("a")}, ReturnValues="ALL_OLD")["Attributes"] == first


def test_put_only_when_it_is_new(client, table):
    condition = {"ConditionExpression": "attribute_not_exists(pk)"}
    client.put_item(TableName=table, Item={"pk": S("a"), "v": N(1)}, **condition)
    with refused("ConditionalCheckFailedException", "The conditional request failed"):
        client.put_item(TableName=table, Item={"pk": S("a"), "v": N(2)}, **condition)
    assert get(client, table, "a")["v"] == N(1)


def test_the_failed_condition_shows_the_item_when_asked(wire, client, table):
    put(client, table, pk=S("a"), v=N(1))
    request = {"TableName": table, "Item": {"pk": S("a")}, "ConditionExpression": "attribute_not_exists(pk)"}
    reply = wire.call("PutItem", {**request, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"})
    assert reply.type == "ConditionalCheckFailedException"
    assert reply.json["Item"] == {"pk": S("a"), "v": N(1)}
    assert "Item" not in wire.call("PutItem", request).json


def test_delete(client, table):
    put(client, table, pk=S("a"), v=N(1))
    old = client.delete_item(TableName=table, Key={"pk": S("a")}, ReturnValues="ALL_OLD")["Attributes"]
    assert old == {"pk": S("a"), "v": N(1)}
    assert get(client, table, "a") is None


def test_delete_of_nothing_succeeds(client, table):
    assert "Attributes" not in client.delete_item(TableName=table, Key={"pk": S("a")}, ReturnValues="ALL_OLD")


def test_delete_with_condition(client, table):
    put(client, table, pk=S("a"), v=N(1))
    values = {":v": N(2)}
    with refused("ConditionalCheckFailedException"):
        client.delete_item(TableName=table, Key={"pk": S("a")}, ConditionExpression="v = :v",
                           ExpressionAttributeValues=values)
    values[":v"] = N(1)
    client.delete_item(TableName=table, Key={"pk": S("a")}, ConditionExpression="v = :v",
                       ExpressionAttributeValues=values)
    assert get(client, table, "a") is None


def update(client, table, expression, values=None, names=None, key="a", **options):
    request = {"TableName": table, "Key": {"pk": S(key)}, "UpdateExpression": expression, **options}
    if values:
        request["ExpressionAttributeValues"] = values
    if names:
        request["ExpressionAttributeNames"] = names
    return client.update_item(**request)


def test_update_creates_the_item(client, table):
    update(client, table, "SET v = :v", {":v": N(1)})
    assert get(client, table, "a") == {"pk": S("a"), "v": N(1)}


def test_update_without_expression_creates_the_key_alone(client, table):
    client.update_item(TableName=table, Key={"pk": S("a")})
    assert get(client, table, "a") == {"pk": S("a")}


def test_an_update_that_only_removes_creates_nothing(client, table):
    client.update_item(TableName=table, Key={"pk": S("a")}, AttributeUpdates={"v": {"Action": "DELETE"}})
    update(client, table, "REMOVE v")
    update(client, table, "DELETE tags :t", {":t": SS("x")})
    assert get(client, table, "a") is None


def test_an_attribute_update_without_action_is_a_put(client, table):
    client.update_item(TableName=table, Key={"pk": S("a")}, AttributeUpdates={"v": {"Value": N(1)}})
    assert get(client, table, "a") == {"pk": S("a"), "v": N(1)}


def test_update_set_remove_add_delete_in_one(client, table):
    put(client, table, pk=S("a"), gone=S("x"), count=N(5), tags=SS("a", "b"), nested=M(list=L(N(1), N(2))))
    update(client, table, "SET nested.#l[1] = :v, fresh = if_not_exists(fresh, :v) REMOVE gone "
           "ADD #c :v DELETE tags :t", {":v": N(7), ":t": SS("a", "z")}, {"#l": "list", "#c": "count"})
    assert same(get(client, table, "a"), {"pk": S("a"), "count": N(12), "tags": SS("b"), "fresh": N(7),
                                          "nested": M(list=L(N(1), N(7)))})


def test_counter(client, table):
    for expected in range(1, 6):
        reply = update(client, table, "ADD n :one", {":one": N(1)}, ReturnValues="UPDATED_NEW")
        assert reply["Attributes"] == {"n": N(expected)}


@pytest.mark.parametrize("what, expected", [
    ("NONE", None),
    ("ALL_OLD", {"pk": S("a"), "v": N(1), "w": S("x")}),
    ("ALL_NEW", {"pk": S("a"), "v": N(2), "w": S("x")}),
    ("UPDATED_OLD", {"v": N(1)}),
    ("UPDATED_NEW", {"v": N(2)}),
])
def test_update_return_values(client, table, what, expected):
    put(client, table, pk=S("a"), v=N(1), w=S("x"))
    reply = update(client, table, "SET v = v + :one", {":one": N(1)}, ReturnValues=what)
    assert reply.get("Attributes") == expected


def test_an_emptied_set_vanishes(client, table):
    put(client, table, pk=S("a"), tags=NS(1, 2))
    update(client, table, "DELETE tags :t", {":t": NS(1, 2)})
    assert get(client, table, "a") == {"pk": S("a")}


def test_list_append_and_beyond_the_end(client, table):
    put(client, table, pk=S("a"), list=L(N(1)))
    update(client, table, "SET #l = list_append(:head, #l)", {":head": L(N(0))}, {"#l": "list"})
    update(client, table, "SET #l[17] = :v", {":v": N(2)}, {"#l": "list"})
    assert get(client, table, "a")["list"] == L(N(0), N(1), N(2))


def test_update_of_a_key_is_refused(client, table):
    with invalid("Cannot update attribute pk. This attribute is part of the key"):
        update(client, table, "SET pk = :v", {":v": S("b")})


def test_update_of_a_missing_path_is_refused(client, table):
    put(client, table, pk=S("a"))
    with invalid("The document path provided in the update expression is invalid for update"):
        update(client, table, "SET nothing.here = :v", {":v": S("b")})


def test_arithmetic_on_text_is_refused(client, table):
    put(client, table, pk=S("a"), v=S("x"))
    with invalid("An operand in the update expression has an incorrect data type"):
        update(client, table, "SET v = v + :one", {":one": N(1)})


def test_a_failed_update_changes_nothing(client, table):
    put(client, table, pk=S("a"), v=N(1))
    with invalid():
        update(client, table, "SET v = :two, x = missing", {":two": N(2)})
    assert get(client, table, "a") == {"pk": S("a"), "v": N(1)}


def test_projection(client, table):
    put(client, table, pk=S("a"), m=M(x=N(1), y=N(2)), l=L(S("p"), S("q"), S("r")), other=TRUE)
    projected = get(client, table, "a", ProjectionExpression="#m.y, l[2], absent", ExpressionAttributeNames={"#m": "m"})
    assert projected == {"m": M(y=N(2)), "l": L(S("r"))}


def test_attributes_to_get(client, table):
    put(client, table, pk=S("a"), x=N(1), y=N(2))
    assert get(client, table, "a", AttributesToGet=["x", "missing"]) == {"x": N(1)}


def test_legacy_updates_and_expected(client, table):
    client.update_item(TableName=table, Key={"pk": S("a")}, AttributeUpdates={
        "n": {"Action": "ADD", "Value": N(2)}, "s": {"Action": "PUT", "Value": S("x")}})
    client.update_item(TableName=table, Key={"pk": S("a")}, AttributeUpdates={"s": {"Action": "DELETE"}},
                       Expected={"n": {"ComparisonOperator": "GT", "AttributeValueList": [N(1)]}})
    assert get(client, table, "a") == {"pk": S("a"), "n": N(2)}
    with refused("ConditionalCheckFailedException"):
        client.put_item(TableName=table, Item={"pk": S("a")}, Expected={"pk": {"Exists": False}})


def test_consumed_capacity(client, table):
    reply = client.put_item(TableName=table, Item={"pk": S("a"), "v": S("x" * 3000)}, ReturnConsumedCapacity="TOTAL")
    assert reply["ConsumedCapacity"] == {"TableName": table, "CapacityUnits": 3.0}
    request = {"TableName": table, "Key": {"pk": S("a")}, "ReturnConsumedCapacity": "TOTAL"}
    assert client.get_item(**request)["ConsumedCapacity"]["CapacityUnits"] == 0.5
    assert client.get_item(ConsistentRead=True, **request)["ConsumedCapacity"]["CapacityUnits"] == 1.0
    reply = client.delete_item(**request)
    assert reply["ConsumedCapacity"]["CapacityUnits"] == 3.0


def test_wrong_and_missing_keys(client, table, ranged):
    with invalid("The provided key element does not match the schema"):
        client.get_item(TableName=table, Key={"other": S("a")})
    with invalid("The provided key element does not match the schema"):
        client.get_item(TableName=ranged, Key={"pk": S("a")})
    with invalid("Missing the key pk in the item"):
        client.put_item(TableName=table, Item={"other": S("a")})
    with invalid("Type mismatch for key pk expected: S actual: N"):
        client.put_item(TableName=table, Item={"pk": N(1)})


def test_empty_keys_are_refused(client, table):
    with invalid("empty string value"):
        client.put_item(TableName=table, Item={"pk": S("")})
    put(client, table, pk=S("a"), value=S(""))
    assert get(client, table, "a")["value"] == S("")


def test_a_table_that_is_not_there(client):
    for call in (client.get_item, client.delete_item, client.update_item):
        with refused("ResourceNotFoundException", "Requested resource not found"):
            call(TableName="not-there", Key={"pk": S("a")})
    with refused("ResourceNotFoundException", "Requested resource not found"):
        client.put_item(TableName="not-there", Item={"pk": S("a")})


def test_too_large_an_item(client, table):
    fits = 400 * 1024 - len("pk") - len("a") - len("v")
    client.put_item(TableName=table, Item={"pk": S("a"), "v": S("x" * fits)})
    with invalid("Item size has exceeded the maximum allowed size"):
        client.put_item(TableName=table, Item={"pk": S("a"), "v": S("x" * (fits + 1))})
    assert len(get(client, table, "a")["v"]["S"]) == fits


def test_an_update_that_grows_too_large(client, table):
    put(client, table, pk=S("a"), v=S("x" * 300_000))
    with invalid("Item size to update has exceeded the maximum allowed size"):
        update(client, table, "SET w = :w", {":w": S("y" * 110_000)})
    assert "w" not in get(client, table, "a")


def test_keys_of_their_longest(client, ranged):
    key = {"pk": S("h" * 2048), "sk": S("r" * 1024)}
    client.put_item(TableName=ranged, Item=key)
    assert client.get_item(TableName=ranged, Key=key)["Item"] == key
    with invalid("hashkey has exceeded the maximum size limit of2048 bytes"):
        client.put_item(TableName=ranged, Item={**key, "pk": S("h" * 2049)})
    with invalid("Aggregated size of all range keys has exceeded the size limit of 1024 bytes"):
        client.put_item(TableName=ranged, Item={**key, "sk": S("r" * 1025)})


@pytest.mark.parametrize("pages, units", [(1, 1), (1000, 3), (2000, 6)])
def test_a_growing_set_of_done_pages_costs_what_the_service_charges(client, make_table, pages, units):
    table = make_table()
    done = {"NS": [str(page) for page in range(1, pages)]} if pages > 1 else {"NS": ["0"]}
    client.put_item(TableName=table, Item={"pk": {"S": "document"}, "done": done})
    reply = client.update_item(
        TableName=table, Key={"pk": {"S": "document"}}, ReturnConsumedCapacity="TOTAL", ReturnValues="UPDATED_NEW",
        UpdateExpression="ADD done :page", ConditionExpression="NOT contains(done, :number)",
        ExpressionAttributeValues={":page": {"NS": [str(pages)]}, ":number": {"N": str(pages)}})
    assert reply["ConsumedCapacity"]["CapacityUnits"] == units
    assert len(reply["Attributes"]["done"]["NS"]) == max(pages, 2)
