"""Local and global secondary indexes: what they hold, their order, their pages."""
import pytest
from values import N, S, invalid

TYPES = [{"AttributeName": name, "AttributeType": kind} for name, kind in (("pk", "S"), ("sk", "S"), ("team", "S"),
                                                                           ("score", "N"))]


def key_schema(hash_name, range_name):
    return [{"AttributeName": hash_name, "KeyType": "HASH"}, {"AttributeName": range_name, "KeyType": "RANGE"}]


@pytest.fixture
def scores(client, make_table):
    """Players by `pk` and `sk`; by-team orders them by score, by-score does so within `pk`."""
    name = make_table(
        AttributeDefinitions=TYPES, KeySchema=key_schema("pk", "sk"),
        GlobalSecondaryIndexes=[{"IndexName": "by-team", "KeySchema": key_schema("team", "score"),
                                 "Projection": {"ProjectionType": "KEYS_ONLY"}}],
        LocalSecondaryIndexes=[{"IndexName": "by-score", "KeySchema": key_schema("pk", "score"),
                                "Projection": {"ProjectionType": "ALL"}}])
    for number in range(10):
        item = {"pk": S("game"), "sk": S(f"player{number}"), "score": N((number * 7) % 10), "extra": S("x")}
        if number % 2:
            item["team"] = S("odd")
        client.put_item(TableName=name, Item=item)
    client.put_item(TableName=name, Item={"pk": S("game"), "sk": S("spectator"), "team": S("odd")})
    return name


def by_team(client, table, **options):
    return client.query(TableName=table, IndexName="by-team", KeyConditionExpression="team = :t",
                        ExpressionAttributeValues={":t": S("odd")}, **options)


def test_a_global_index_is_sorted_by_its_own_key(client, scores):
    reply = by_team(client, scores)
    assert [i["score"]["N"] for i in reply["Items"]] == ["1", "3", "5", "7", "9"]
    assert set(reply["Items"][0]) == {"pk", "sk", "team", "score"}
    reply = by_team(client, scores, ScanIndexForward=False)
    assert [i["score"]["N"] for i in reply["Items"]] == ["9", "7", "5", "3", "1"]


def test_an_item_without_the_index_key_is_not_in_the_index(client, scores):
    assert "spectator" not in {i["sk"]["S"] for i in by_team(client, scores)["Items"]}
    assert client.scan(TableName=scores, IndexName="by-team")["Count"] == 5
    assert client.scan(TableName=scores, IndexName="by-score")["Count"] == 10


def test_a_local_index_orders_the_partition(client, scores):
    reply = client.query(TableName=scores, IndexName="by-score", KeyConditionExpression="pk = :p AND score >= :s",
                         ExpressionAttributeValues={":p": S("game"), ":s": N(6)}, ConsistentRead=True)
    assert [i["score"]["N"] for i in reply["Items"]] == ["6", "7", "8", "9"]
    assert reply["Items"][0]["extra"] == S("x")


def test_pages_of_an_index(client, scores):
    first = by_team(client, scores, Limit=2)
    assert set(first["LastEvaluatedKey"]) == {"pk", "sk", "team", "score"}
    seen, page = [], first
    while True:
        seen += [i["score"]["N"] for i in page["Items"]]
        if "LastEvaluatedKey" not in page:
            break
        page = by_team(client, scores, Limit=2, ExclusiveStartKey=page["LastEvaluatedKey"])
    assert seen == ["1", "3", "5", "7", "9"]


def test_an_index_follows_the_writes(client, scores):
    key = {"pk": S("game"), "sk": S("player1")}
    client.update_item(TableName=scores, Key=key, UpdateExpression="SET score = :s",
                       ExpressionAttributeValues={":s": N(100)})
    assert [i["sk"]["S"] for i in by_team(client, scores)["Items"]][-1] == "player1"
    client.update_item(TableName=scores, Key=key, UpdateExpression="REMOVE team")
    assert by_team(client, scores)["Count"] == 4
    client.delete_item(TableName=scores, Key={"pk": S("game"), "sk": S("player3")})
    assert by_team(client, scores)["Count"] == 3


def test_what_an_index_refuses(client, scores):
    with invalid("The table does not have the specified index: nothing"):
        client.scan(TableName=scores, IndexName="nothing")
    with invalid("Consistent reads are not supported on global secondary indexes"):
        by_team(client, scores, ConsistentRead=True)
    with invalid("Type mismatch for Index Key score Expected: N Actual: S"):
        client.put_item(TableName=scores, Item={"pk": S("a"), "sk": S("b"), "score": S("many")})
    with invalid("Select type ALL_ATTRIBUTES is not supported for global secondary index"):
        by_team(client, scores, Select="ALL_ATTRIBUTES")
