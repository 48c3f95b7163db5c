"""URLs of functions: Lambda's API for them, and what plain HTTP meets behind one."""
import base64
import http.client
import json
import socket
import urllib.parse

import botocore.exceptions
import pytest
from lambdas import ROLE, archive, eventually, lambda_client
from support.engines import ENGINES, server_on
from support.process import Quipu
from support.sigv4 import sign

SOURCE = """
import base64, json
def handler(event, context):
    path = event["rawPath"]
    if path == "/text":
        return "plain"
    if path == "/fail":
        raise ValueError("as asked")
    if path == "/line":
        return {"statusCode": 200, "headers": {"x-a": "b\\r\\nx-c: d"}}
    if path == "/status":
        return {"statusCode": 99}
    if path == "/large":
        return "x" * (7 << 20)
    if path == "/whole":
        return {"statusCode": "418", "headers": {"X-Word": "tea", "content-type": "image/x", "Content-Length": 7,
                                                "Access-Control-Allow-Origin": "https://of.the.function"},
                "cookies": ["a=1; Path=/", "b=2"], "isBase64Encoded": True,
                "body": base64.b64encode(b"\\x00\\xff").decode()}
    return event
"""


@pytest.fixture(scope="module", params=ENGINES)
def server(request, tmp_path_factory):
    with server_on(request.param, "--functions", str(tmp_path_factory.mktemp("functions"))) as (running, _):
        yield running


@pytest.fixture(scope="module")
def client(server):
    return lambda_client(server.url)


def make(client, name, source=SOURCE, **more):
    client.create_function(FunctionName=name, Runtime="python3.11", Handler="main.handler", Role=ROLE, Timeout=30,
                           Code={"ZipFile": archive({"main.py": source})}, **more)
    return name


@pytest.fixture
def function(client, unused_name):
    yield make(client, unused_name)
    client.delete_function(FunctionName=unused_name)


def ask(server, method, path, body=None, headers=None, host=None):
    """Status, headers and body of a reply; `host` is what the Host header says."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=180)
    given = {"Host": host or f"localhost:{server.port}", **(headers or {})}
    connection.request(method, path, body=body, headers=given)
    reply = connection.getresponse()
    text = reply.read()
    connection.close()
    return reply.status, reply.headers, text


def event_of(*arguments, **more):
    status, _, text = ask(*arguments, **more)
    assert status == 200, text
    return json.loads(text)


def error_of(call, **request):
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        call(**request)
    return caught.value.response["Error"]["Code"], caught.value.response["ResponseMetadata"]["HTTPStatusCode"]


# ---- Lambda's API ----

def test_a_url_is_made_shown_changed_listed_and_deleted(client, function):
    cors = {"AllowOrigins": ["https://example.com"], "AllowMethods": ["GET"], "MaxAge": 60}
    assert error_of(client.get_function_url_config, FunctionName=function) == ("ResourceNotFoundException", 404)
    assert error_of(client.update_function_url_config, FunctionName=function, AuthType="NONE")[1] == 404
    made = client.create_function_url_config(FunctionName=function, AuthType="NONE", Cors=cors)
    assert made["ResponseMetadata"]["HTTPStatusCode"] == 201
    assert (made["AuthType"], made["Cors"]) == ("NONE", cors)
    assert ".lambda-url.localhost:" in made["FunctionUrl"] and made["FunctionArn"].endswith(":" + function)
    assert error_of(client.create_function_url_config, FunctionName=function, AuthType="NONE") == (
        "ResourceConflictException", 409)
    changed = client.update_function_url_config(FunctionName=function, AuthType="AWS_IAM")
    assert (changed["AuthType"], changed["Cors"], changed["FunctionUrl"]) == ("AWS_IAM", cors, made["FunctionUrl"])
    shown = client.get_function_url_config(FunctionName=function)
    assert (shown["AuthType"], shown["CreationTime"]) == ("AWS_IAM", made["CreationTime"])
    listed = client.list_function_url_configs(FunctionName=function)["FunctionUrlConfigs"]
    assert [one["FunctionUrl"] for one in listed] == [made["FunctionUrl"]]
    client.delete_function_url_config(FunctionName=function)
    assert error_of(client.delete_function_url_config, FunctionName=function)[1] == 404
    assert client.list_function_url_configs(FunctionName=function)["FunctionUrlConfigs"] == []


def test_bytes_that_are_no_utf_8_are_text_in_the_event(server, client, function):
    """Or the function's process could not read it."""
    client.create_function_url_config(FunctionName=function, AuthType="AWS_IAM")
    signed = "AWS4-HMAC-SHA256 Credential=k\xff/20260101/us-east-1/lambda/aws4_request, SignedHeaders=a, Signature=b"
    headers = {"Authorization": signed, "X-A": "\xff", "User-Agent": "\xff", "Cookie": "\xff=1"}
    event = event_of(server, "GET", f"/_url/{function}/%ff?%ff=%ff",
                     host="localhost:\xff", headers=headers)
    context = event["requestContext"]
    assert context["authorizer"]["iam"]["accessKey"] == "k\xff"
    assert (event["headers"]["x-forwarded-port"], context["domainName"]) == ("\xff", "localhost")
    assert (event["headers"]["x-a"], context["http"]["userAgent"], event["cookies"]) == ("\xff", "\xff", ["\xff=1"])
    assert event["rawPath"] == "/%ff"


def test_an_alias_has_a_url_of_its_own(server, client, function):
    version = client.publish_version(FunctionName=function)["Version"]
    assert error_of(client.create_function_url_config, FunctionName=function, AuthType="NONE",
                    Qualifier="live")[1] == 404
    client.create_alias(FunctionName=function, Name="live", FunctionVersion=version)
    made = client.create_function_url_config(FunctionName=function, AuthType="NONE", Qualifier="live")
    assert made["FunctionArn"].endswith(f":{function}:live")
    host = urllib.parse.urlsplit(made["FunctionUrl"]).netloc
    assert event_of(server, "GET", "/x", host=host)["rawPath"] == "/x"
    assert ask(server, "GET", f"/_url/{function}/")[0] == 404  # the function itself has none
    assert event_of(server, "GET", f"/_url/{function}:live/y")["rawPath"] == "/y"
    client.delete_alias(FunctionName=function, Name="live")
    assert ask(server, "GET", "/x", host=host)[0] == 404


@pytest.mark.parametrize("request_", [
    {"AuthType": "ALL"},
    {"AuthType": "NONE", "Cors": {"MaxAge": 86401}}, {"AuthType": "NONE", "Cors": {"AllowMethods": ["STEAL"]}},
    {"AuthType": "NONE", "Cors": {"AllowOrigins": ["https://a\r\nx: y"]}}])
def test_what_is_wrong_is_refused(client, function, request_):
    code, status = error_of(client.create_function_url_config, FunctionName=function, **request_)
    assert status == 400 and code in ("ValidationException", "InvalidParameterValueException")
    assert error_of(client.get_function_url_config, FunctionName=function)[1] == 404


# ---- requests ----

@pytest.fixture
def url(server, client, function):
    """The host of the function's URL."""
    made = client.create_function_url_config(FunctionName=function, AuthType="NONE")
    return urllib.parse.urlsplit(made["FunctionUrl"]).netloc


def test_the_event_of_a_request(server, function, url):
    event = event_of(server, "POST", "/a%20b/c?x=1&x=2&y=a+b%21&empty", body=b'{"n":1}', host=url,
                     headers={"Content-Type": "application/json", "X-Twice": "1", "Cookie": "a=1; b=2",
                              "User-Agent": "tester"})
    assert (event["version"], event["routeKey"], event["rawPath"]) == ("2.0", "$default", "/a%20b/c")
    assert event["rawQueryString"] == "x=1&x=2&y=a+b%21&empty"
    assert event["queryStringParameters"] == {"x": "1,2", "y": "a b!", "empty": ""}
    assert event["cookies"] == ["a=1", "b=2"] and "cookie" not in event["headers"]
    assert event["headers"]["x-twice"] == "1" and event["headers"]["host"] == url
    assert (event["body"], event["isBase64Encoded"]) == ('{"n":1}', False)
    context = event["requestContext"]
    assert context["http"] == {"method": "POST", "path": "/a%20b/c", "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1",
                               "userAgent": "tester"}
    assert (context["stage"], context["accountId"]) == ("$default", "anonymous")
    assert context["domainName"] == url.split(":")[0] and context["domainPrefix"] == context["apiId"]
    assert context["timeEpoch"] > 0 and len(context["requestId"]) == 36


def test_bodies_are_text_or_base64(server, function, url):
    for kind, body, is_base64 in (("text/plain; charset=utf-8", "é".encode(), False), ("image/png", b"\x00\xff", True),
                                  ("application/x-www-form-urlencoded", b"a=1", True), ("text/plain", b"\xff", True),
                                  ("application/vnd.api+json", b"{}", False)):
        event = event_of(server, "PUT", "/", body=body, headers={"Content-Type": kind}, host=url)
        assert event["isBase64Encoded"] == is_base64
        assert (base64.b64decode(event["body"]) if is_base64 else event["body"].encode()) == body
    event = event_of(server, "GET", "/", host=url)
    assert "body" not in event and "queryStringParameters" not in event


def test_answers(server, function, url):
    status, headers, text = ask(server, "GET", "/text", host=url)
    assert (status, headers["content-type"], text) == (200, "application/json", b'"plain"')
    status, headers, text = ask(server, "GET", "/whole", host=url)
    assert (status, headers["content-type"], text) == (418, "image/x", b"\x00\xff")
    assert headers.get_all("set-cookie") == ["a=1; Path=/", "b=2"] and headers["x-word"] == "tea"
    assert headers["access-control-allow-origin"] == "https://of.the.function"  # there are no settings
    status, headers, text = ask(server, "HEAD", "/whole", host=url)
    assert (status, text) == (418, b"") and headers["content-length"] == "2"


@pytest.mark.parametrize("path", ["/fail", "/line", "/status", "/large"])
def test_what_a_function_cannot_answer_is_a_502(server, function, url, path):
    status, headers, text = ask(server, "GET", path, host=url)
    assert (status, json.loads(text)) == (502, {"Message": "Internal Server Error"})
    assert headers["x-c"] is None


def test_too_large_and_too_many(server, client, function, url):
    assert ask(server, "POST", "/", body=b"x" * (6 << 20), host=url)[0] == 413
    client.put_function_concurrency(FunctionName=function, ReservedConcurrentExecutions=0)
    assert ask(server, "GET", "/", host=url)[0] == 429
    client.delete_function_concurrency(FunctionName=function)


def test_paths_below_the_server_are_sandboxed(server, function, url):
    status, headers, text = ask(server, "GET", f"/_url/{function}/deep/er?a=b")
    assert json.loads(text)["rawPath"] == "/deep/er"
    assert headers["content-security-policy"].startswith("sandbox") and "same-origin" not in headers[
        "content-security-policy"]
    assert json.loads(ask(server, "GET", f"/_url/{function}")[2])["rawPath"] == "/"
    assert ask(server, "GET", "/", host=url)[1]["content-security-policy"] is None


def test_the_host_of_a_url_leads_nowhere_else(server, function, url):
    """Not to the database, Lambda's API, /v1 or the health of the server: a page of the function's has that origin."""
    for method, path in (("POST", "/"), ("GET", "/2015-03-31/functions"), ("GET", "/v1/counters/x"),
                         ("GET", "/healthz"), ("GET", f"/_url/{function}/")):
        event = event_of(server, method, path, host=url, headers={"X-Amz-Target": "DynamoDB_20120810.ListTables"})
        assert (event["requestContext"]["http"]["method"], event["rawPath"]) == (method, path)
    unknown = "a" * 32 + url[url.index("."):]
    for path in ("/2015-03-31/functions", "/healthz", "/"):
        assert ask(server, "GET", path, host=unknown)[0] == 404
    for host in ("evil.example", f"{url.split('.')[0]}.lambda-url.evil.example", "x.lambda-url.com"):
        assert ask(server, "GET", "/", host=host)[0] == 403


def test_cors(server, client, function, url):
    page = {"Origin": "https://example.com"}
    assert ask(server, "GET", "/text", host=url, headers=page)[0] == 403
    client.update_function_url_config(FunctionName=function, Cors={
        "AllowOrigins": ["https://example.com", "https://*"], "AllowMethods": ["GET", "PUT"], "AllowHeaders": ["x-a"],
        "ExposeHeaders": ["x-word"], "MaxAge": 7, "AllowCredentials": True})
    status, headers, text = ask(server, "OPTIONS", "/text", host=url,
                                headers={**page, "Access-Control-Request-Method": "PUT"})
    assert (status, text) == (200, b"")
    assert {name: headers[name] for name in headers if name.lower().startswith("access-control")} == {
        "Access-Control-Allow-Origin": "https://example.com", "Access-Control-Allow-Credentials": "true",
        "Access-Control-Allow-Methods": "GET,PUT", "Access-Control-Allow-Headers": "x-a",
        "Access-Control-Max-Age": "7"}
    status, headers, text = ask(server, "GET", "/whole", host=url, headers=page)
    assert headers.get_all("access-control-allow-origin") == ["https://example.com"]
    assert headers["access-control-expose-headers"] == "x-word" and headers["vary"] == "Origin"
    assert ask(server, "GET", "/whole", host=url, headers={"Origin": "http://evil.example"})[0] == 403
    assert ask(server, "GET", "/whole", host=url, headers={"Sec-Fetch-Site": "cross-site"})[0] == 403
    client.update_function_url_config(FunctionName=function, Cors={"AllowOrigins": ["*"]})
    assert ask(server, "GET", "/text", host=url, headers={"Origin": "null"})[1]["access-control-allow-origin"] == "*"
    # what is allowed here is allowed here only
    assert ask(server, "GET", "/healthz", headers=page)[0] == 403


def test_signed_only(server, client, function, url):
    client.update_function_url_config(FunctionName=function, AuthType="AWS_IAM")
    assert ask(server, "GET", "/", host=url)[0] == 403
    headers = sign({"Host": url}, b"", "anybody", "secret", service="lambda", method="GET")
    event = event_of(server, "GET", "/", host=url, headers=headers)
    assert event["requestContext"]["authorizer"]["iam"]["accessKey"] == "anybody"


def test_with_keys_of_its_own(tmp_path):
    """--credentials: NONE is open to everybody, AWS_IAM to keys that are known and may do more than read."""
    keys = tmp_path / "keys"
    keys.write_text("[a]\naws_access_key_id = admin\naws_secret_access_key = s1\n"
                    "[d]\naws_access_key_id = data\naws_secret_access_key = s2\nrole = data\n"
                    "[r]\naws_access_key_id = read\naws_secret_access_key = s3\nrole = read\n")
    with Quipu("--memory", "--credentials", str(keys)) as server:
        import boto3
        client = boto3.client("lambda", endpoint_url=server.url, region_name="us-east-1", aws_access_key_id="admin",
                              aws_secret_access_key="s1")
        make(client, "f")
        client.create_function_url_config(FunctionName="f", AuthType="NONE")
        path, host = "/_url/f/text", f"localhost:{server.port}"
        assert ask(server, "GET", path)[0] == 200
        client.update_function_url_config(FunctionName="f", AuthType="AWS_IAM")
        for key, secret, status in (("admin", "s1", 200), ("data", "s2", 200), ("read", "s3", 403), ("data", "s1", 403),
                                    ("nobody", "s1", 403)):
            headers = sign({"Host": host}, b"", key, secret, service="lambda", method="GET", path=path)
            assert ask(server, "GET", path, headers=headers)[0] == status
        assert ask(server, "GET", path)[0] == 403


def test_a_client_that_leaves_holds_nothing(server, client, unused_name):
    """Its function ends by itself, and the next request is served."""
    name = make(client, unused_name, "import time\ndef handler(event, context):\n"
                "    if event['rawPath'] == '/slow': time.sleep(2)\n    return 'x'\n", MemorySize=128)
    client.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=1)
    client.create_function_url_config(FunctionName=name, AuthType="NONE")
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=180)
    connection.request("GET", f"/_url/{name}/slow")
    connection.close()
    eventually(lambda: ask(server, "GET", f"/_url/{name}/")[0] == 200, "the function is free again")
    client.delete_function(FunctionName=name)


STREAM = """
export const handler = awslambda.streamifyResponse(async (event, stream) => {
  if (event.rawPath === '/plain') { stream.setContentType('text/plain'); stream.write('a'); stream.end('b'); return; }
  const http = awslambda.HttpResponseStream.from(stream, { statusCode: 201, headers: { 'Content-Type': 'text/html',
    'x-word': 'w' }, cookies: ['a=1'] });
  http.write('<p>');
  await new Promise((resolve) => setTimeout(resolve, 5));
  http.end('there</p>');
});
"""


def test_a_handler_that_streams(server, client, unused_name):
    client.create_function(FunctionName=unused_name, Runtime="nodejs20.x", Handler="index.handler", Role=ROLE,
                           Timeout=30, Code={"ZipFile": archive({"index.mjs": STREAM})})
    client.create_function_url_config(FunctionName=unused_name, AuthType="NONE")
    status, headers, text = ask(server, "GET", f"/_url/{unused_name}/")
    assert (status, headers["content-type"], headers["x-word"]) == (201, "text/html", "w")
    assert (text, headers["set-cookie"]) == (b"<p>there</p>", "a=1")
    assert ask(server, "GET", f"/_url/{unused_name}/plain")[::2] == (200, b"ab")
    client.delete_function(FunctionName=unused_name)


PIECES = """
import { existsSync } from 'node:fs';
const written = async (stream, bytes) => {
  if (!stream.write(bytes)) await new Promise((resolve) => stream.once('drain', resolve));
};
export const handler = awslambda.streamifyResponse(async (event, stream) => {
  const path = event.rawPath, { file } = event.queryStringParameters ?? {};
  if (path === '/idle') { stream.end('idle'); return; }
  if (path !== '/plain') stream = awslambda.HttpResponseStream.from(stream, { statusCode: 201,
    headers: { 'Content-Type': 'text/x-piece' } });
  if (path === '/plain') { stream.end('plain'); return; }
  if (path === '/large') {
    const mb = Number(event.queryStringParameters.mb), piece = Buffer.alloc(1 << 20, 'x');
    for (let i = 0; i < mb; i++) await written(stream, piece);
    stream.end();
    return;
  }
  stream.write('first');
  while (file && !existsSync(file)) await new Promise((resolve) => setTimeout(resolve, 10));
  if (path === '/error') throw new Error('in the middle');
  if (path === '/exit') process.exit(3);
  stream.end('second');
});
"""


@pytest.fixture(scope="module")
def pieces(server, client):
    name = "made-in-pieces"
    client.create_function(FunctionName=name, Runtime="nodejs20.x", Handler="index.handler", Role=ROLE,
                           Timeout=120, Code={"ZipFile": archive({"index.mjs": PIECES})})
    client.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=1)
    made = ask(server, "POST", f"/2021-10-31/functions/{name}/url",
               json.dumps({"AuthType": "NONE", "InvokeMode": "RESPONSE_STREAM"}))
    assert made[0] == 201, made # by hand: not every boto3 knows the mode
    yield name
    client.delete_function(FunctionName=name)


def stream_of(server, name, path, receive_bytes=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=180)
    if receive_bytes:
        connection.sock = socket.socket()
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        connection.sock.settimeout(180)
        connection.sock.connect(("127.0.0.1", server.port))
    connection.request("GET", f"/_url/{name}{path}")
    return connection, connection.getresponse()


def test_a_stream_is_sent_as_it_is_made(server, pieces, tmp_path):
    """The first piece is there before the function may write the second."""
    go = tmp_path / "go"
    connection, reply = stream_of(server, pieces, f"/?file={go}")
    assert (reply.status, reply.getheader("content-type")) == (201, "text/x-piece")
    assert reply.read(5) == b"first"
    go.touch()
    assert reply.read() == b"second"
    connection.close()
    status, headers, text = ask(server, "GET", f"/_url/{pieces}/plain")
    assert (status, headers["content-type"], text) == (200, "application/octet-stream", b"plain")


@pytest.mark.parametrize("path", ["/error", "/exit"])
def test_a_stream_that_breaks_off_is_seen_to_be_torn(server, pieces, tmp_path, path):
    go = tmp_path / "go"
    connection, reply = stream_of(server, pieces, f"{path}?file={go}")
    assert (reply.status, reply.read(5)) == (201, b"first")
    go.touch()
    with pytest.raises(http.client.IncompleteRead):
        reply.read()
    connection.close()
    eventually(lambda: ask(server, "GET", f"/_url/{pieces}/idle")[0] == 200, "the function serves again")


def test_a_stream_may_be_larger_than_an_answer_but_not_without_end(server, pieces):
    assert ask(server, "GET", f"/_url/{pieces}/large?mb=19")[::2] == (201, b"x" * (19 << 20))
    connection, reply = stream_of(server, pieces, "/large?mb=22")
    with pytest.raises(http.client.IncompleteRead) as torn:
        reply.read()
    assert len(torn.value.partial) <= 20 << 20
    connection.close()
    eventually(lambda: ask(server, "GET", f"/_url/{pieces}/idle")[0] == 200, "the function serves again")


def test_a_slow_reader_of_a_stream_gets_all_of_it(server, pieces):
    """The function waits meanwhile: another call finds its only process busy."""
    connection, reply = stream_of(server, pieces, "/large?mb=19", receive_bytes=4096)
    assert reply.read(10) == b"x" * 10
    for _ in range(20):
        assert ask(server, "GET", f"/_url/{pieces}/idle")[0] == 429
    assert len(reply.read()) == (19 << 20) - 10
    connection.close()


def test_a_reader_of_a_stream_that_leaves_holds_nothing(server, pieces):
    connection, reply = stream_of(server, pieces, "/large?mb=19", receive_bytes=4096)
    assert reply.read(10) == b"x" * 10
    reply.close()
    connection.close()
    eventually(lambda: ask(server, "GET", f"/_url/{pieces}/idle")[0] == 200, "the function is free again")
