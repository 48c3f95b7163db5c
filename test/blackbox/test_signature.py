"""Signatures with --credentials: what is let in, and the service's words for what is not."""
import hashlib
import json

import botocore.exceptions
import pytest
from conftest import boto_client
from support import sigv4
from support.process import Quipu
from support.wire import Connection, request_bytes

KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
TEMPORARY, TEMPORARY_SECRET, TOKEN = "ASIATEMPORARY", "temporary/secret", "session+token/with=signs"
BODY = json.dumps({"Limit": 1}).encode()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("keys") / "keys.ini"
    path.write_text(f"""# who may come in
[default]
aws_access_key_id = {KEY}
aws_secret_access_key = {SECRET}

[session]
aws_access_key_id={TEMPORARY}
aws_secret_access_key={TEMPORARY_SECRET}
aws_session_token={TOKEN}
""")
    with Quipu("--memory", "--credentials", str(path)) as running:
        yield running


@pytest.fixture
def wire(server):
    with Connection(server.url) as connection:
        yield connection


def headers_of(wire):
    return {"Host": wire.host, "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": "DynamoDB_20120810.ListTables"}


def signed(wire, body=BODY, key=KEY, secret=SECRET, **options):
    return sigv4.sign(headers_of(wire), body, key, secret, **options)


def send(wire, headers, body=BODY):
    wire.send(request_bytes("POST", "/", headers, body))
    return wire.read()


def test_a_good_signature(wire):
    assert send(wire, signed(wire)).status == 200


def test_any_region_is_taken(wire):
    assert send(wire, signed(wire, region="eu-central-1")).status == 200


def test_boto3_and_its_wrong_secret(server):
    assert boto_client(server.url, KEY, SECRET).list_tables()["TableNames"] == []
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        boto_client(server.url, KEY, "another").list_tables()
    assert caught.value.response["Error"]["Code"] == "InvalidSignatureException"


def test_session_token(server):
    assert boto_client(server.url, TEMPORARY, TEMPORARY_SECRET, TOKEN).list_tables()["TableNames"] == []
    for token in (None, "another"):
        with pytest.raises(botocore.exceptions.ClientError) as caught:
            boto_client(server.url, TEMPORARY, TEMPORARY_SECRET, token).list_tables()
        assert caught.value.response["Error"]["Code"] == "UnrecognizedClientException"


def test_wrong_secret(wire):
    reply = send(wire, signed(wire, secret="another"))
    assert (reply.status, reply.type) == (400, "InvalidSignatureException")
    assert reply.message.startswith("The request signature we calculated does not match the signature you provided.")


def test_unknown_key(wire):
    reply = send(wire, signed(wire, key="AKIDNOBODY"))
    assert (reply.status, reply.type) == (400, "UnrecognizedClientException")
    assert reply.message == "The security token included in the request is invalid."


def test_no_signature(wire):
    reply = send(wire, headers_of(wire))
    assert (reply.status, reply.type) == (400, "MissingAuthenticationTokenException")
    assert reply.message == "Request is missing Authentication Token"


@pytest.mark.parametrize("part", ["Credential", "SignedHeaders", "Signature"])
def test_a_part_of_the_header_is_missing(wire, part):
    headers = signed(wire)
    headers["Authorization"] = headers["Authorization"].replace(part + "=", "Nothing=")
    reply = send(wire, headers)
    assert (reply.status, reply.type) == (400, "IncompleteSignatureException")
    assert f"Authorization header requires '{part}' parameter." in reply.message


def test_tampered_body(wire):
    reply = send(wire, signed(wire), json.dumps({"Limit": 2}).encode())
    assert reply.type == "InvalidSignatureException"


def test_tampered_target(wire):
    headers = signed(wire)
    headers["X-Amz-Target"] = "DynamoDB_20120810.DescribeLimits"
    assert send(wire, headers).type == "InvalidSignatureException"


def test_the_target_must_be_signed(wire):
    """Otherwise whoever sees a signed read could turn it into another operation."""
    target = headers_of(wire)["X-Amz-Target"]
    headers = headers_of(wire)
    del headers["X-Amz-Target"]
    headers = {**sigv4.sign(headers, BODY, KEY, SECRET), "X-Amz-Target": target}
    assert send(wire, headers).type == "InvalidSignatureException"


@pytest.mark.parametrize("offset, words", [(-1000, "Signature expired"), (1000, "Signature not yet current")])
def test_a_date_that_is_off(wire, offset, words):
    reply = send(wire, signed(wire, date=sigv4.now(offset)))
    assert reply.type == "InvalidSignatureException"
    assert reply.message.startswith(words)


def test_a_date_within_the_quarter_of_an_hour(wire):
    assert send(wire, signed(wire, date=sigv4.now(-800))).status == 200
    assert send(wire, signed(wire, date=sigv4.now(800))).status == 200


def test_another_service(wire):
    assert send(wire, signed(wire, service="s3")).type == "InvalidSignatureException"


@pytest.mark.parametrize("authorization", ["", "Basic dXNlcjpwYXNz", "AWS4-HMAC-SHA256", "AWS4-HMAC-SHA256 ,,,=,",
                                           "AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=;, Signature=" + "0" * 64,
                                           "AWS4-HMAC-SHA256 " + "x" * 10_000])
def test_nonsense_as_authorization(wire, authorization):
    reply = send(wire, {**signed(wire), "Authorization": authorization})
    assert reply.status == 400
    assert reply.type.endswith("Exception")


def test_health_and_metrics_need_no_key(wire):
    assert wire.request("GET", "/healthz").status == 200
    assert wire.request("GET", "/metrics").status == 200


@pytest.mark.parametrize("text, words", [
    ("", "holds no [profile]"),
    ("[default]\naws_access_key_id = only\n", "needs aws_access_key_id and aws_secret_access_key"),
    ("nonsense\n", "line 1"),
])
def test_a_bad_credentials_file_stops_the_start(tmp_path, text, words):
    from support.process import run_quipu
    path = tmp_path / "keys.ini"
    path.write_text(text)
    result = run_quipu("serve", "--memory", "--port", "0", "--credentials", str(path))
    assert result.returncode == 1
    assert words in result.stderr
    assert str(path) in result.stderr


def test_content_type_need_not_be_signed(wire):
    """The JavaScript SDK v2 never signs it."""
    headers = headers_of(wire)
    value = headers.pop("Content-Type", "application/x-amz-json-1.0")
    assert send(wire, {**sigv4.sign(headers, BODY, KEY, SECRET), "Content-Type": value}).status == 200


@pytest.mark.parametrize("name", ["X-Amz-User-Agent", "x-amz-anything"])
def test_what_has_a_meaning_must_be_signed(wire, name):
    headers = headers_of(wire)
    value = headers.pop(name, "application/x-amz-json-1.0")
    reply = send(wire, {**sigv4.sign(headers, BODY, KEY, SECRET), name: value})
    assert reply.type == "InvalidSignatureException"
    assert f"'{name}' must be a 'SignedHeader'" in reply.message
    assert send(wire, sigv4.sign({**headers, name: value}, BODY, KEY, SECRET)).status == 200


@pytest.mark.parametrize("name", ["Authorization", "X-Amz-Target", "X-Amz-Date", "Content-Type", "x-amz-anything"])
def test_a_header_that_stands_there_twice(wire, name):
    headers = sigv4.sign({**headers_of(wire), "x-amz-anything": "a"}, BODY, KEY, SECRET)
    other = "DynamoDB_20120810.DeleteTable" if name == "X-Amz-Target" else headers[name]
    data = request_bytes("POST", "/", headers, BODY)
    line = f"{name.upper()}: {other}\r\n".encode()
    first, rest = data.split(b"\r\n", 1)
    for doubled in (first + b"\r\n" + line + rest, data.replace(b"\r\n\r\n", b"\r\n" + line + b"\r\n", 1)):
        wire.send(doubled)
        assert wire.read().type == "IncompleteSignatureException"


@pytest.mark.parametrize("part", ["Credential=AKIDOTHER/20260101/us-east-1/dynamodb/aws4_request",
                                  "SignedHeaders=host", "Signature=" + "0" * 64])
def test_a_parameter_that_stands_there_twice(wire, part):
    headers = signed(wire)
    for doubled in (headers["Authorization"] + ", " + part,
                    headers["Authorization"].replace("SHA256 ", f"SHA256 {part}, ")):
        assert send(wire, {**headers, "Authorization": doubled}).type == "IncompleteSignatureException"


@pytest.mark.parametrize("name", ["X-Amz-Signature", "x-amz-algorithm", "X-Amz-Credential", "X-Amz-Expires"])
def test_a_url_with_a_signature_is_refused(wire, name):
    headers = sigv4.sign(headers_of(wire), BODY, KEY, SECRET, query=name + "=1")
    for given in (headers, headers_of(wire)):
        wire.send(request_bytes("POST", f"/?{name}=1", given, BODY))
        assert wire.read().type == "IncompleteSignatureException"


@pytest.mark.parametrize("value", ["0" * 64, "UNSIGNED-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", ""])
def test_a_hash_that_is_not_the_bodys(wire, value):
    headers = sigv4.sign({**headers_of(wire), "X-Amz-Content-Sha256": value}, BODY, KEY, SECRET)
    assert send(wire, headers).type == "InvalidSignatureException"


def test_the_hash_of_the_body(wire):
    value = hashlib.sha256(BODY).hexdigest()
    assert send(wire, sigv4.sign({**headers_of(wire), "X-Amz-Content-Sha256": value}, BODY, KEY, SECRET)).status == 200
