"""HTTP/1.1 as it stands on the wire: bodies, connections, limits, headers, what is refused and how."""
import gzip
import json
import re
import threading
import zlib

import pytest
from support.wire import Closed, Connection, call_headers, chunked, crc32, request_bytes

LIST = json.dumps({"Limit": 1}).encode()


def list_tables(body=LIST, **headers):
    """A ListTables request as bytes; a header of None is left out."""
    return request_bytes("POST", "/", {"Host": "localhost", **call_headers("ListTables"), **headers}, body)


def chunked_request(*pieces, **options):
    headers = {"Host": "localhost", **call_headers("ListTables"), "Transfer-Encoding": "chunked"}
    return request_bytes("POST", "/", headers) + chunked(*pieces, **options)


# ---- replies ----

def test_headers_of_a_reply(wire):
    reply = wire.call("ListTables", {})
    assert reply.status == 200
    assert reply.header("content-type") == "application/x-amz-json-1.0"
    assert re.fullmatch("[A-Z0-9]{52}", reply.header("x-amzn-RequestId"))
    assert reply.header("x-amz-crc32") == crc32(reply.raw)
    assert reply.header("date").endswith(" GMT")
    assert int(reply.header("content-length")) == len(reply.raw)


def test_request_ids_differ(wire):
    ids = {wire.call("ListTables", {}).header("x-amzn-RequestId") for _ in range(50)}
    assert len(ids) == 50


def test_an_error_has_the_same_headers(wire):
    reply = wire.call("DescribeTable", {"TableName": "not-there"})
    assert reply.status == 400
    assert reply.json["__type"] == "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException"
    assert reply.header("x-amz-crc32") == crc32(reply.raw)
    assert len(reply.header("x-amzn-RequestId")) == 52


def test_content_type_mirrors_the_request(wire):
    reply = wire.call("ListTables", {}, {"Content-Type": "application/json"})
    assert reply.header("content-type") == "application/json"
    reply = wire.call("ListTables", {}, {"Content-Type": "application/x-amz-json-1.0; charset=utf-8"})
    assert (reply.status, reply.header("content-type")) == (200, "application/x-amz-json-1.0")


# ---- bodies ----

def test_chunked_body(wire):
    wire.send(chunked_request(LIST[:3], LIST[3:4], LIST[4:]))
    assert wire.read().status == 200


def test_chunked_body_with_extensions_and_trailers(wire):
    wire.send(chunked_request(LIST, extension=";name=value", trailers=["X-Checksum: abc", "X-Other: d"]))
    assert wire.read().status == 200
    assert wire.call("ListTables", {}).status == 200


def test_chunked_body_byte_by_byte(wire):
    for byte in chunked_request(LIST[:5], LIST[5:]):
        wire.send(bytes([byte]))
    assert wire.read().status == 200


@pytest.mark.parametrize("body", [b"zz\r\n{}\r\n0\r\n\r\n", b"-1\r\n{}\r\n0\r\n\r\n", b"2\r\n{}X\r\n0\r\n\r\n",
                                  b"ffffffffffffffffff\r\n"])
def test_malformed_chunks(wire, body):
    headers = {"Host": "localhost", **call_headers("ListTables"), "Transfer-Encoding": "chunked"}
    wire.send(request_bytes("POST", "/", headers) + body)
    assert wire.read().status in (400, 413)
    assert wire.closed_by_server()


def test_gzip_request(wire):
    assert wire.call("ListTables", gzip.compress(LIST), {"Content-Encoding": "gzip"}).status == 200
    two_members = gzip.compress(LIST[:4]) + gzip.compress(LIST[4:])
    assert wire.call("ListTables", two_members, {"Content-Encoding": "gzip"}).status == 200


def test_deflate_request(wire):
    assert wire.call("ListTables", zlib.compress(LIST), {"Content-Encoding": "deflate"}).status == 200


def test_gzip_request_that_is_none(wire):
    reply = wire.call("ListTables", LIST, {"Content-Encoding": "gzip"})
    assert reply.status == 500 and reply.json["__type"].endswith("#InternalServerError")


def test_gzip_bomb(endpoint):
    """17 MB of blanks in 17 KB."""
    with Connection(endpoint) as wire:
        reply = wire.call("ListTables", gzip.compress(b" " * 17_000_000), {"Content-Encoding": "gzip"})
        assert reply.status == 413


def test_unknown_encoding(wire):
    assert wire.call("ListTables", LIST, {"Content-Encoding": "br"}).status == 500


def test_nothing_is_no_gzip(wire):
    assert wire.call("ListTables", b"", {"Content-Encoding": "gzip"}).status == 500


def test_gzip_reply_and_its_checksum(wire, client, table):
    """The service's checksum is of the bytes as sent, so of the compressed ones."""
    client.put_item(TableName=table, Item={"pk": {"S": "a"}, "v": {"S": "x" * 50_000}})
    request = {"TableName": table, "Key": {"pk": {"S": "a"}}}
    plain = wire.call("GetItem", request)
    assert plain.header("content-encoding") is None
    packed = wire.call("GetItem", request, {"Accept-Encoding": "gzip"})
    assert packed.header("content-encoding") == "gzip"
    assert len(packed.raw) < 5000
    assert packed.json == plain.json
    assert packed.header("x-amz-crc32") == crc32(packed.raw)
    assert wire.call("GetItem", request, {"Accept-Encoding": "gzip;q=0"}).header("content-encoding") is None
    small = wire.call("ListTables", {"Limit": 1}, {"Accept-Encoding": "gzip"})
    assert small.header("content-encoding") is None


# ---- connections ----

def test_pipelining_answers_in_order(wire, client, table):
    """Writes and reads mixed in one go: a read behind a write must see it."""
    requests = b""
    for number in range(20):
        item = {"pk": {"S": "a"}, "n": {"N": str(number)}}
        requests += request_bytes("POST", "/", {"Host": "localhost", **call_headers("PutItem")},
                                  json.dumps({"TableName": table, "Item": item}).encode())
        requests += request_bytes("POST", "/", {"Host": "localhost", **call_headers("GetItem")},
                                  json.dumps({"TableName": table, "Key": {"pk": {"S": "a"}}}).encode())
    wire.send(requests)
    for number in range(20):
        assert wire.read().json == {}
        assert wire.read().json["Item"]["n"] == {"N": str(number)}


def test_a_request_in_small_pieces(wire):
    data = list_tables()
    for start in range(0, len(data), 7):
        wire.send(data[start:start + 7])
    assert wire.read().status == 200


def test_keep_alive_and_close(wire):
    for _ in range(3):
        assert wire.call("ListTables", {}).status == 200
    reply = wire.call("ListTables", {}, {"Connection": "close"})
    assert reply.header("connection") == "close"
    assert wire.closed_by_server()


def test_http_1_0_closes(wire):
    wire.send(list_tables().replace(b"HTTP/1.1", b"HTTP/1.0"))
    assert wire.read().status == 200
    assert wire.closed_by_server()


def test_expect_continue(wire):
    wire.send(list_tables(body=b"", **{"Expect": "100-continue", "Content-Length": str(len(LIST))}))
    assert wire.read().status == 100
    wire.send(LIST)
    assert wire.read().status == 200


def test_expect_something_else(wire):
    wire.send(list_tables(Expect="magic"))
    assert wire.read().status == 417


def test_many_connections_at_once(endpoint):
    errors = []

    def work():
        try:
            with Connection(endpoint) as wire:
                for _ in range(10):
                    assert wire.call("ListTables", {"Limit": 1}).status == 200
        except Exception as error:  # shown by the assertion below
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_a_client_that_leaves_early_hurts_nobody(endpoint, client, table):
    for number in range(20):
        wire = Connection(endpoint)
        item = {"pk": {"S": str(number)}}
        wire.send(request_bytes("POST", "/", {"Host": "localhost", **call_headers("PutItem")},
                                json.dumps({"TableName": table, "Item": item}).encode()))
        wire.close()
    with Connection(endpoint) as wire:
        assert wire.call("ListTables", {}).status == 200


# ---- methods and paths ----

def test_health(wire):
    reply = wire.request("GET", "/healthz")
    assert (reply.status, reply.json) == (200, {"status": "ok"})
    assert reply.header("content-type") == "application/json"


def test_head_has_no_body(wire):
    reply = wire.request("HEAD", "/healthz")
    assert reply.status == 200
    assert int(reply.header("content-length")) > 0
    assert wire.request("GET", "/healthz").status == 200


def test_get_of_the_root(wire):
    reply = wire.request("GET", "/")
    assert reply.status == 200
    assert reply.body.startswith(b"healthy: dynamodb.us-east-1.amazonaws.com")


def test_a_path_that_is_not_there(wire):
    assert wire.request("GET", "/nothing").status == 404


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "BREW"])
def test_wrong_methods(wire, method):
    reply = wire.request(method, "/")
    assert reply.status == 404
    assert b"UnknownOperationException" in reply.body


def test_options_without_a_page(wire):
    reply = wire.request("OPTIONS", "/")
    assert reply.status == 200
    assert "POST" in reply.header("allow")
    assert reply.header("access-control-allow-origin") is None


@pytest.mark.parametrize("target", ["DynamoDB_20120810.NoSuchOperation", "DynamoDB_20120810.", "PutItem",
                                    "DynamoDB_20111205.ListTables", "", "DynamoDB_20120810.listtables"])
def test_bad_targets(wire, target):
    reply = wire.call("ListTables", {}, {"X-Amz-Target": target})
    assert (reply.status, reply.json["__type"]) == (400, "com.amazon.coral.service#UnknownOperationException")


def test_no_target(wire):
    reply = wire.call("ListTables", {}, {"X-Amz-Target": None})
    assert reply.type == "UnknownOperationException"


def test_wrong_content_type(wire):
    reply = wire.call("ListTables", {}, {"Content-Type": "text/plain"})
    assert reply.status == 404


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"nonsense", b'{"Limit": 1,}', b'{"Limit": 01}',
                                  b'{"Limit": 1} x', b'"ListTables"', b'{"ExclusiveStartTableName": "\xff\xfe"}',
                                  b'{"ExclusiveStartTableName": "a\nb"}', b"\xef\xbb\xbf{}", b"[" * 100_000])
def test_bodies_that_are_no_request(wire, body):
    reply = wire.call("ListTables", body)
    assert (reply.status, reply.type) == (400, "SerializationException")


# ---- limits ----

def test_too_large_a_body(endpoint):
    with Connection(endpoint) as wire:
        wire.send(list_tables(body=b"", **{"Content-Length": str(16 * 1024 * 1024 + 1)}))
        reply = wire.read()
        assert (reply.status, reply.type) == (413, "RequestEntityTooLargeException")
        assert wire.closed_by_server()


def test_too_large_a_chunked_body(endpoint):
    with Connection(endpoint) as wire:
        wire.send(request_bytes("POST", "/", {"Host": "localhost", **call_headers("ListTables"),
                                              "Transfer-Encoding": "chunked"}))
        piece = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
        try:
            for _ in range(20):
                wire.send(piece)
        except OSError:
            pass  # it stops listening as soon as it knows
        try:
            assert wire.read().status == 413
        except (ConnectionResetError, Closed):
            pass  # the reply was lost because our bytes were still under way


def test_the_largest_body_is_served(wire):
    padded = LIST + b" " * (16 * 1024 * 1024 - len(LIST))
    assert wire.call("ListTables", padded).status == 200


def test_too_large_headers(endpoint):
    with Connection(endpoint) as wire:
        reply = wire.request("GET", "/healthz", {"X-Long": "x" * 70_000})
        assert reply.status == 400
        assert wire.closed_by_server()


def test_requests_to_dynamodb_have_16_kb_of_headers(endpoint):
    """As the service has it: two headers of 8 KB are too much, also for a request's line."""
    with Connection(endpoint) as wire:
        assert wire.call("ListTables", LIST, {"X-One": "x" * 8000}).status == 200
        assert wire.call("ListTables", LIST, {"X-One": "x" * 8192, "X-Two": "x" * 8192}).status == 400
    with Connection(endpoint) as wire:
        reply = wire.request("GET", "/" + "x" * 17_000)
        assert (reply.status, reply.header("server")) == (400, "Quipu")


def test_replies_name_the_server(wire):
    assert wire.call("ListTables", LIST).header("server") == "Quipu"
    assert wire.call("DescribeTable", {"TableName": "missing"}).header("server") == "Quipu"


def test_tagging_answers_with_nothing(wire, client, table):
    arn = client.describe_table(TableName=table)["Table"]["TableArn"]
    for operation, request in [("TagResource", {"Tags": [{"Key": "k", "Value": "v"}]}),
                               ("UntagResource", {"TagKeys": ["k"]})]:
        reply = wire.call(operation, {"ResourceArn": arn, **request})
        assert (reply.status, reply.raw) == (200, b"")


def test_long_headers_within_the_limit(wire):
    assert wire.request("GET", "/healthz", {"X-Long": "x" * 60_000}).status == 200


def test_too_many_headers(endpoint):
    with Connection(endpoint) as wire:
        assert wire.request("GET", "/healthz", {f"X-{n}": "x" for n in range(120)}).status == 400


def test_too_long_a_target(endpoint):
    with Connection(endpoint) as wire:
        assert wire.request("GET", "/" + "x" * 70_000).status == 400


@pytest.mark.parametrize("head", [
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET /healthz\r\n\r\n",
    b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET / HTTP/1.1\nHost: a\n\n",
    b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +2\r\n\r\n{}",
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS hello \r\n\r\n",
])
def test_malformed_heads_are_refused_and_closed(endpoint, head):
    with Connection(endpoint) as wire:
        wire.send(head)
        assert wire.read().status == 400
        assert wire.closed_by_server()


def test_other_versions_and_codings(endpoint):
    with Connection(endpoint) as wire:
        wire.send(b"GET / HTTP/2.0\r\nHost: a\r\n\r\n")
        assert wire.read().status == 505
    with Connection(endpoint) as wire:
        wire.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n")
        assert wire.read().status == 501
