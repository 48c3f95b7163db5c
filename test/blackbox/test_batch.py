"""BatchGetItem and BatchWriteItem, with boto3."""
import boto3
from values import N, S, invalid, refused


def keys(*names):
    return [{"pk": S(n)} for n in names]


def puts(*names, **attributes):
    return [{"PutRequest": {"Item": {"pk": S(n), **attributes}}} for n in names]


def deletes(*names):
    return [{"DeleteRequest": {"Key": {"pk": S(n)}}} for n in names]


def test_write_and_get_over_two_tables(client, make_table):
    one, two = make_table(), make_table()
    reply = client.batch_write_item(RequestItems={one: puts("a", "b", v=N(1)), two: puts("c")})
    assert reply["UnprocessedItems"] == {}
    reply = client.batch_get_item(RequestItems={one: {"Keys": keys("a", "b", "missing")},
                                                two: {"Keys": keys("c"), "ConsistentRead": True}})
    assert reply["UnprocessedKeys"] == {}
    assert sorted(i["pk"]["S"] for i in reply["Responses"][one]) == ["a", "b"]
    assert reply["Responses"][two] == keys("c")


def test_puts_and_deletes_together(client, table):
    client.batch_write_item(RequestItems={table: puts("a", "b")})
    client.batch_write_item(RequestItems={table: deletes("a", "never") + puts("c")})
    assert sorted(i["pk"]["S"] for i in client.scan(TableName=table)["Items"]) == ["b", "c"]


def test_projection(client, table):
    client.batch_write_item(RequestItems={table: puts("a", v=N(1), w=N(2))})
    reply = client.batch_get_item(RequestItems={table: {"Keys": keys("a"), "ProjectionExpression": "#v",
                                                        "ExpressionAttributeNames": {"#v": "v"}}})
    assert reply["Responses"][table] == [{"v": N(1)}]


def test_the_largest_batches(client, table):
    names = [f"{n:03}" for n in range(100)]
    for start in range(0, 100, 25):
        client.batch_write_item(RequestItems={table: puts(*names[start:start + 25])})
    reply = client.batch_get_item(RequestItems={table: {"Keys": keys(*names)}})
    assert sorted(i["pk"]["S"] for i in reply["Responses"][table]) == names


def test_too_many(client, table):
    with invalid():
        client.batch_write_item(RequestItems={table: puts(*map(str, range(26)))})
    with invalid():
        client.batch_get_item(RequestItems={table: {"Keys": keys(*map(str, range(101)))}})


def test_duplicates_are_refused(client, table):
    with invalid("Provided list of item keys contains duplicates"):
        client.batch_write_item(RequestItems={table: puts("a") + deletes("a")})
    with invalid("Provided list of item keys contains duplicates"):
        client.batch_get_item(RequestItems={table: {"Keys": keys("a", "a")}})


def test_one_bad_request_refuses_all(client, table):
    with invalid():
        client.batch_write_item(RequestItems={table: puts("a") + [{"PutRequest": {"Item": {"pk": N(1)}}}]})
    with refused("ResourceNotFoundException"):
        client.batch_write_item(RequestItems={table: puts("a"), "not-there": puts("b")})
    assert client.scan(TableName=table)["Count"] == 0


def test_a_reply_beyond_16_megabytes_leaves_keys_over(client, table):
    names = [f"{n:02}" for n in range(50)]
    for name in names:
        client.put_item(TableName=table, Item={"pk": S(name), "v": S("x" * 380_000)})
    seen, request = [], {table: {"Keys": keys(*names)}}
    rounds = 0
    while request:
        reply = client.batch_get_item(RequestItems=request)
        seen += [i["pk"]["S"] for i in reply["Responses"].get(table, [])]
        request = reply["UnprocessedKeys"]
        rounds += 1
    assert sorted(seen) == names
    assert rounds == 2


def test_consumed_capacity(client, table):
    reply = client.batch_write_item(RequestItems={table: puts("a", "b")}, ReturnConsumedCapacity="TOTAL")
    assert reply["ConsumedCapacity"] == [{"TableName": table, "CapacityUnits": 2.0}]
    reply = client.batch_get_item(RequestItems={table: {"Keys": keys("a", "b", "missing")}},
                                  ReturnConsumedCapacity="TOTAL")
    assert reply["ConsumedCapacity"] == [{"TableName": table, "CapacityUnits": 1.5}]


def test_batch_writer_of_the_resource(endpoint, table):
    resource = boto3.resource("dynamodb", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="local",
                              aws_secret_access_key="local")
    handle = resource.Table(table)
    with handle.batch_writer(overwrite_by_pkeys=["pk"]) as batch:
        for number in range(60):
            batch.put_item(Item={"pk": str(number % 50), "tags": {"a", "b"}, "nested": {"list": [1, None, True]}})
    items = handle.scan()["Items"]
    assert len(items) == 50
    assert items[0]["tags"] == {"a", "b"}
    assert items[0]["nested"] == {"list": [1, None, True]}
    handle.reload()
    assert handle.table_status == "ACTIVE"
