"""Query and Scan: conditions, filters, order, paging, counting, segments, with boto3."""
import pytest
from values import L, M, N, S, SS, invalid, refused


@pytest.fixture
def letters(client, ranged):
    """Two partitions with the range keys a to j; `n` counts from 0."""
    for partition in ("p", "q"):
        for number, letter in enumerate("abcdefghij"):
            client.put_item(TableName=ranged, Item={"pk": S(partition), "sk": S(letter), "n": N(number)})
    return ranged


def query(client, table, condition, values, **options):
    return client.query(TableName=table, KeyConditionExpression=condition, ExpressionAttributeValues=values, **options)


def range_keys(reply):
    return "".join(item["sk"]["S"] for item in reply["Items"])


@pytest.mark.parametrize("condition, values, expected", [
    ("pk = :p", {}, "abcdefghij"),
    ("pk = :p AND sk = :a", {":a": S("d")}, "d"),
    ("pk = :p AND sk < :a", {":a": S("c")}, "ab"),
    ("pk = :p AND sk <= :a", {":a": S("c")}, "abc"),
    ("pk = :p AND sk > :a", {":a": S("h")}, "ij"),
    ("pk = :p AND sk >= :a", {":a": S("h")}, "hij"),
    ("pk = :p AND sk BETWEEN :a AND :b", {":a": S("b"), ":b": S("e")}, "bcde"),
    ("sk BETWEEN :a AND :b AND pk = :p", {":a": S("b"), ":b": S("e")}, "bcde"),
    ("(pk = :p) AND (begins_with(sk, :a))", {":a": S("f")}, "f"),
    ("pk = :p AND sk > :a", {":a": S("z")}, ""),
])
def test_key_conditions(client, letters, condition, values, expected):
    reply = query(client, letters, condition, {":p": S("p"), **values})
    assert range_keys(reply) == expected
    assert reply["Count"] == reply["ScannedCount"] == len(expected)
    assert "LastEvaluatedKey" not in reply


def test_backwards(client, letters):
    assert range_keys(query(client, letters, "pk = :p", {":p": S("q")}, ScanIndexForward=False)) == "jihgfedcba"


def test_another_partition_stays_out(client, letters):
    assert query(client, letters, "pk = :p", {":p": S("nobody")})["Items"] == []
    assert {i["pk"]["S"] for i in query(client, letters, "pk = :p", {":p": S("q")})["Items"]} == {"q"}


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("size", [1, 3, 10, 11])
def test_pages_give_everything_once(client, letters, forward, size):
    pages = list(client.get_paginator("query").paginate(
        TableName=letters, KeyConditionExpression="pk = :p", ExpressionAttributeValues={":p": S("p")},
        ScanIndexForward=forward, PaginationConfig={"PageSize": size}))
    together = "".join(map(range_keys, pages))
    assert together == ("abcdefghij" if forward else "jihgfedcba")
    assert all(len(p["Items"]) <= size for p in pages)


def test_last_evaluated_key_is_the_last_item(client, letters):
    page = query(client, letters, "pk = :p", {":p": S("p")}, Limit=4)
    assert page["LastEvaluatedKey"] == {"pk": S("p"), "sk": S("d")}


def test_the_filter_comes_after_the_limit(client, letters):
    page = query(client, letters, "pk = :p", {":p": S("p"), ":n": N(3)}, FilterExpression="n >= :n", Limit=5)
    assert (range_keys(page), page["Count"], page["ScannedCount"]) == ("de", 2, 5)
    assert page["LastEvaluatedKey"] == {"pk": S("p"), "sk": S("e")}


def test_select_count(client, letters):
    page = query(client, letters, "pk = :p", {":p": S("p")}, Select="COUNT")
    assert page["Count"] == 10
    assert "Items" not in page


def test_projection(client, letters):
    page = query(client, letters, "pk = :p AND sk = :a", {":p": S("p"), ":a": S("b")}, ProjectionExpression="n")
    assert page["Items"] == [{"n": N(1)}]


def test_consumed_capacity_sums_then_rounds(client, letters):
    page = query(client, letters, "pk = :p", {":p": S("p")}, ReturnConsumedCapacity="TOTAL")
    assert page["ConsumedCapacity"] == {"TableName": letters, "CapacityUnits": 0.5}


def test_a_page_ends_at_one_megabyte(client, ranged):
    for number in range(15):
        client.put_item(TableName=ranged, Item={"pk": S("p"), "sk": S(f"{number:02}"), "v": S("x" * 100_000)})
    first = query(client, ranged, "pk = :p", {":p": S("p")})
    assert 10 <= first["Count"] <= 11
    rest = query(client, ranged, "pk = :p", {":p": S("p")}, ExclusiveStartKey=first["LastEvaluatedKey"])
    assert first["Count"] + rest["Count"] == 15
    filtered = query(client, ranged, "pk = :p", {":p": S("p"), ":v": S("nothing")}, FilterExpression="v = :v")
    assert (filtered["Count"], filtered["ScannedCount"]) == (0, first["ScannedCount"])
    assert "LastEvaluatedKey" in filtered


def test_legacy_key_conditions_and_filter(client, letters):
    reply = client.query(TableName=letters, KeyConditions={
        "pk": {"ComparisonOperator": "EQ", "AttributeValueList": [S("p")]},
        "sk": {"ComparisonOperator": "BETWEEN", "AttributeValueList": [S("b"), S("f")]}},
        QueryFilter={"n": {"ComparisonOperator": "NE", "AttributeValueList": [N(2)]}})
    assert range_keys(reply) == "bdef"


def test_bad_queries(client, letters):
    with invalid("Query condition missed key schema element: pk"):
        query(client, letters, "sk = :p", {":p": S("p")})
    with invalid("Query key condition not supported"):
        query(client, letters, "pk > :p", {":p": S("p")})
    with invalid("Condition parameter type does not match schema type"):
        query(client, letters, "pk = :p", {":p": N(1)})
    with invalid("Filter Expression can only contain non-primary key attributes: Primary key attribute: sk"):
        query(client, letters, "pk = :p", {":p": S("p")}, FilterExpression="sk = :p")
    with invalid("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."):
        client.query(TableName=letters)
    with invalid("The provided starting key is invalid"):
        query(client, letters, "pk = :p", {":p": S("p")}, ExclusiveStartKey={"pk": S("p")})
    with refused("ResourceNotFoundException"):
        query(client, "not-there", "pk = :p", {":p": S("p")})


def test_scan_gives_everything(client, letters):
    reply = client.scan(TableName=letters)
    assert reply["Count"] == reply["ScannedCount"] == 20
    assert len({(i["pk"]["S"], i["sk"]["S"]) for i in reply["Items"]}) == 20


@pytest.mark.parametrize("size", [1, 7, 20, 21])
def test_scan_pages_give_everything_once(client, letters, size):
    pages = client.get_paginator("scan").paginate(TableName=letters, PaginationConfig={"PageSize": size})
    keys = [(i["pk"]["S"], i["sk"]["S"]) for page in pages for i in page["Items"]]
    assert len(keys) == len(set(keys)) == 20


def test_scan_with_filter(client, letters):
    reply = client.scan(TableName=letters, FilterExpression="n IN (:a, :b) AND sk <> :c",
                        ExpressionAttributeValues={":a": N(1), ":b": N(2), ":c": S("c")})
    assert (reply["Count"], reply["ScannedCount"]) == (2, 20)
    assert {i["sk"]["S"] for i in reply["Items"]} == {"b"}


@pytest.mark.parametrize("segments", [1, 3, 16])
def test_segments_give_everything_once(client, letters, segments):
    keys = []
    for segment in range(segments):
        for page in client.get_paginator("scan").paginate(TableName=letters, Segment=segment, TotalSegments=segments,
                                                          PaginationConfig={"PageSize": 2}):
            keys += [(i["pk"]["S"], i["sk"]["S"]) for i in page["Items"]]
    assert len(keys) == len(set(keys)) == 20


def test_bad_segments(client, letters):
    with invalid("less than parameter TotalSegments"):
        client.scan(TableName=letters, Segment=4, TotalSegments=4)
    with invalid():
        client.scan(TableName=letters, Segment=0)


CONDITIONS = [
    ("n = :five", True), ("n <> :five", False), ("n < :six", True), ("n BETWEEN :five AND :six", True),
    ("n IN (:six, :five)", True), ("attribute_exists(m.k)", True), ("attribute_not_exists(m.z)", True),
    ("attribute_type(t, :type)", True), ("begins_with(s, :he)", True), ("contains(s, :ll)", True),
    ("contains(t, :x)", True), ("contains(l, :five)", True), ("size(s) = :five", True), ("size(l) < size(s)", True),
    ("NOT (n = :five)", False), ("n = :six OR m.k = :five AND s = :hello", True),
    ("(n = :six OR m.k = :five) AND n = :six", False),
    ("l[0] = :five", True), ("l[7] = :five", False), ("m.k = n", True), ("s < n", False), ("absent = gone", False),
]


@pytest.mark.parametrize("expression, holds", CONDITIONS)
def test_conditions(client, table, expression, holds):
    client.put_item(TableName=table, Item={"pk": S("a"), "n": N(5), "s": S("hello"), "m": M(k=N(5)), "l": L(N(5)),
                                           "t": SS("x", "y")})
    values = {":five": N(5), ":six": N(6), ":type": S("SS"), ":he": S("he"), ":ll": S("ll"), ":x": S("x"),
              ":hello": S("hello")}
    used = {name: value for name, value in values.items() if name in expression.replace(":hello", ":hello ").split()
            or any(name + end in expression for end in (")", ",", " ")) or expression.endswith(name)}
    options = {"ExpressionAttributeValues": used} if used else {}
    reply = client.scan(TableName=table, FilterExpression=expression, **options)
    assert reply["Count"] == (1 if holds else 0)


@pytest.mark.parametrize("expression, words", [
    ("", "The expression can not be empty;"),
    ("n =", "Syntax error; token: \"<EOF>\""),
    ("n = :v :v", "Syntax error; token: \":v\", near: \":v :v\""),
    ("n = :missing", "An expression attribute value used in expression is not defined; attribute value: :missing"),
    ("#n = :v", "An expression attribute name used in the document path is not defined; attribute name: #n"),
    ("name = :v", "Attribute name is a reserved keyword; reserved keyword: name"),
    ("nope(n, :v)", "Invalid function name; function: nope"),
    ("contains(n)", "Incorrect number of operands for operator or function; operator or function: contains"),
    ("n = :v AND", "Syntax error; token: \"<EOF>\""),
    ("n & :v", "Syntax error; token: \"&\", near: \"n & :v\""),
])
def test_bad_expressions(client, table, expression, words):
    with invalid("Invalid FilterExpression: ", words):
        client.scan(TableName=table, FilterExpression=expression, ExpressionAttributeValues={":v": N(1)})


def test_unused_names_and_values_are_refused(client, table):
    with invalid("Value provided in ExpressionAttributeValues unused in expressions: keys: {:w}"):
        client.scan(TableName=table, FilterExpression="n = :v", ExpressionAttributeValues={":v": N(1), ":w": N(2)})
    with invalid("Value provided in ExpressionAttributeNames unused in expressions: keys: {#x}"):
        client.scan(TableName=table, FilterExpression="n = :v", ExpressionAttributeValues={":v": N(1)},
                    ExpressionAttributeNames={"#x": "x"})
    with invalid("Can not use both expression and non-expression parameters in the same request"):
        client.scan(TableName=table, FilterExpression="attribute_exists(n)", ScanFilter={
            "n": {"ComparisonOperator": "NOT_NULL"}})
