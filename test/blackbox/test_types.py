"""Every type of value, to the edges: what goes in must come out."""
import pytest
from values import B, BS, FALSE, L, M, N, NS, NULL, S, SS, TRUE, invalid, same


def nested(depth, leaf):
    return leaf if depth == 0 else L(nested(depth - 1, leaf))


VALUES = {
    "text": S("plain"),
    "empty text": S(""),
    "control characters": S("\u0000\u0001\t\r\n\"\\/\u007f"),
    "beyond the basic plane": S("𝄞 😀 \u2028 é é"),
    "number": N(12),
    "negative": N("-0.5"),
    "38 digits": N("1" * 38),
    "38 digits behind the point": N("0." + "9" * 38),
    "largest": N("9" * 38 + "0" * 88),
    "smallest": N("0." + "0" * 129 + "1"),
    "bytes": B(bytes(range(256))),
    "no bytes": B(b""),
    "true": TRUE,
    "false": FALSE,
    "null": NULL,
    "empty list": L(),
    "empty map": M(),
    "mixed list": L(S("a"), N(1), B(b"x"), TRUE, NULL, L(), M(k=SS("z"))),
    "map": M(a=S("x"), b=M(c=L(N(1), M(d=NS(1, 2))))),
    "text set": SS("b", "a", "ä"),
    "number set": NS(3, 1, "2.5", -7),
    "byte set": BS(b"\x00", b"\xff", b"abc"),
    "31 lists deep": nested(31, S("x")),
    "odd names in a map": {"M": {"a.b": S("dot"), "#x": S("hash"), "[0]": S("index")}},
}


@pytest.mark.parametrize("name", VALUES)
def test_comes_back_as_it_was(client, table, name):
    item = {"pk": S(name), "value": VALUES[name]}
    client.put_item(TableName=table, Item=item)
    assert same(client.get_item(TableName=table, Key={"pk": S(name)})["Item"], item)


@pytest.mark.parametrize("sent, kept", [
    ("1.0", "1"), ("01", "1"), ("1e3", "1000"), ("1E-3", "0.001"), ("-0", "0"), ("+5", "5"), (".5", "0.5"), ("5.", "5"),
    ("100.00", "100"), ("1e125", "1" + "0" * 125), ("1e-130", "0." + "0" * 129 + "1"), ("0e500", "0"),
    ("0.00000000000000000000000000000000000000000000001", "0." + "0" * 46 + "1"),
])
def test_numbers_come_back_normalised(client, table, sent, kept):
    client.put_item(TableName=table, Item={"pk": S("a"), "n": N(sent)})
    assert client.get_item(TableName=table, Key={"pk": S("a")})["Item"]["n"] == N(kept)


@pytest.mark.parametrize("number, words", [
    ("1e126", "Number overflow"),
    ("-1e126", "Number overflow"),
    ("1e-131", "Number underflow"),
    ("1" * 39, "Attempting to store more than 38 significant digits in a Number"),
    ("abc", "The parameter cannot be converted to a numeric value"),
    ("", "The parameter cannot be converted to a numeric value"),
    ("1 ", "The parameter cannot be converted to a numeric value"),
    ("0x10", "The parameter cannot be converted to a numeric value"),
    ("NaN", "The parameter cannot be converted to a numeric value"),
    ("Infinity", "The parameter cannot be converted to a numeric value"),
    ("1_000", "The parameter cannot be converted to a numeric value"),
])
def test_numbers_that_are_none(client, table, number, words):
    with invalid(words):
        client.put_item(TableName=table, Item={"pk": S("a"), "n": N(number)})


@pytest.mark.parametrize("value, words", [
    ({"SS": []}, "An string set  may not be empty"),
    ({"NS": []}, "An number set  may not be empty"),
    ({"SS": ["a", "a"]}, "Input collection [a, a] contains duplicates"),
    ({"NS": ["1", "1.0"]}, "Input collection contains duplicates"),
    ({"S": "a", "N": "1"}, "Supplied AttributeValue has more than one datatypes set"),
    ({}, "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"),
    ({"NULL": False}, "Null attribute value types must have the value of true"),
])
def test_values_that_are_none(wire, table, value, words):
    reply = wire.call("PutItem", {"TableName": table, "Item": {"pk": S("a"), "v": value}})
    assert (reply.status, reply.type) == (400, "ValidationException")
    assert words in reply.message


@pytest.mark.parametrize("depth, fits", [(31, True), (32, False), (100, False)])
def test_nesting_has_a_limit(client, table, depth, fits):
    item = {"pk": S("a"), "v": nested(depth, S("x"))}
    if fits:
        client.put_item(TableName=table, Item=item)
    else:
        with invalid("Nesting Levels have exceeded supported limits"):
            client.put_item(TableName=table, Item=item)


@pytest.mark.parametrize("type_, keys", [
    ("S", [S(""), S("A"), S("B"), S("a"), S("aa"), S("b"), S("é"), S("\uffff"), S("😀")]),
    ("N", [N("-1e125"), N("-10"), N("-9.5"), N("-1e-130"), N(0), N("1e-130"), N("0.5"), N(9), N(10), N("1e125")]),
    ("B", [B(b"\x00"), B(b"\x00\x00"), B(b"\x00\x01"), B(b"\x7f"), B(b"\x80"), B(b"\xff"), B(b"\xff\x00")]),
])
def test_range_keys_sort_by_value(client, make_table, type_, keys):
    name = make_table("S", type_)
    keys = [k for k in keys if k != S("")]
    for key in reversed(keys):
        client.put_item(TableName=name, Item={"pk": S("p"), "sk": key})
    request = {"TableName": name, "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": S("p")}}
    ordered = [item["sk"] for item in client.query(**request)["Items"]]
    assert [canonical(k) for k in ordered] == [canonical(k) for k in keys]
    ordered = [item["sk"] for item in client.query(ScanIndexForward=False, **request)["Items"]]
    assert [canonical(k) for k in ordered] == [canonical(k) for k in reversed(keys)]


def canonical(value):
    return float(value["N"]) if "N" in value else value


def test_equal_numbers_are_one_key(client, make_table):
    name = make_table("N")
    client.put_item(TableName=name, Item={"pk": N("1.0"), "v": S("first")})
    client.put_item(TableName=name, Item={"pk": N("1"), "v": S("second")})
    client.put_item(TableName=name, Item={"pk": N("10e-1"), "v": S("third")})
    assert client.scan(TableName=name)["Items"] == [{"pk": N(1), "v": S("third")}]


def test_bytes_as_hash_key(client, make_table):
    name = make_table("B")
    for data in (b"\x00", b"\x00\x00", b"\xff\xfe"):
        client.put_item(TableName=name, Item={"pk": B(data)})
    assert client.get_item(TableName=name, Key={"pk": B(b"\x00\x00")})["Item"] == {"pk": B(b"\x00\x00")}
    assert client.scan(TableName=name)["Count"] == 3
