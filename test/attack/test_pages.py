"""A web page in the browser of somebody whose machine runs the server: what it sends is refused before it does
anything, on every door, unless --allow-origin names the page."""
import base64
import json

import pytest
from lambdas import archive
from support.fixtures import boto_client, create_table
from support.process import Quipu, run_quipu
from support.wire import Connection, call_headers, request_bytes

PAGE = "https://evil.example"
# What browsers send with a page's request, by the way that the page takes. Pages cannot set these headers themselves.
WAYS = {
    "fetch": {"Origin": PAGE, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"},
    "older browser": {"Origin": PAGE},
    "form": {"Origin": PAGE, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    "sandboxed frame": {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
    "image": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
    "older image": {"Referer": PAGE + "/page"},
    "another port": {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"},
    "image of another port": {"Sec-Fetch-Site": "same-site"},
}
DOORS = [("POST", "/"), ("GET", "/"), ("GET", "/healthz"), ("GET", "/metrics"), ("GET", "/counter?systemKey=k"),
         ("GET", "/wall"), ("POST", "/wall"), ("DELETE", "/wall"), ("POST", "/v1/counters/c"),
         ("GET", "/v1/counters/c"), ("PUT", "/v1/documents/d/k"), ("GET", "/v1/openapi.json"),
         ("GET", "/2015-03-31/functions/"),
         ("POST", "/2015-03-31/functions"), ("POST", "/2015-03-31/functions/f/invocations"), ("GET", "/schedules"),
         ("POST", "/schedules/s"), ("GET", "/tags/x"), ("POST", "/_quipu/clock"), ("GET", "/_quipu/idle"),
         ("POST", "/_quipu/rollback"), ("OPTIONS", "/"), ("HEAD", "/"), ("BREW", "/nowhere")]


@pytest.fixture(scope="module")
def server():
    with Quipu("--memory", "--test-hooks") as running:
        yield running


def is_refused(reply):
    return reply.status == 403 and reply.header("access-control-allow-origin") is None


def send(server, method, path, headers, body=b""):
    with Connection(server.url) as wire:
        return wire.request(method, path, headers, body)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("method,path", DOORS)
def test_no_door_is_open_to_a_page(server, method, path, way):
    assert is_refused(send(server, method, path, WAYS[way]))


def test_the_refusal_says_which_flag_opens_the_door(server):
    reply = send(server, "POST", "/", WAYS["fetch"])
    assert reply.type == "AccessDeniedException"
    assert f"--allow-origin {PAGE}" in reply.message
    assert "--allow-origin" in send(server, "GET", "/wall", WAYS["image"]).message


def test_a_page_is_refused_before_its_body_is_read(server):
    with Connection(server.url) as wire:
        wire.send(request_bytes("POST", "/", {"Host": wire.host, **WAYS["fetch"], "Content-Length": "1000000",
                                              "Expect": "100-continue"}))
        assert is_refused(wire.read())  # and no 100 Continue before it
        assert wire.closed_by_server()


def test_what_follows_a_refusal_on_the_connection_is_not_served(server):
    with Connection(server.url) as wire:
        inner = request_bytes("POST", "/v1/counters/smuggled", {"Host": wire.host})
        wire.send(request_bytes("POST", "/", {"Host": wire.host, **WAYS["fetch"], "Content-Type": "text/plain"}, inner)
                  + inner)
        assert is_refused(wire.read())
        assert wire.closed_by_server()
    assert send(server, "GET", "/v1/counters/smuggled", {}).json.get("value", 0) == 0


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data",
                                          "application/x-amz-json-1.0", "application/json"])
def test_a_page_writes_no_item(server, content_type):
    client = boto_client(server.url)
    name = "items-" + content_type.replace("/", "-")
    create_table(client, name)
    body = json.dumps({"TableName": name, "Item": {"pk": {"S": "planted"}}}).encode()
    for headers in WAYS.values():
        reply = send(server, "POST", "/", {**call_headers("PutItem"), "Content-Type": content_type, **headers}, body)
        assert is_refused(reply)
    assert client.scan(TableName=name)["Count"] == 0


def test_a_page_changes_nothing_by_get(server):
    with Connection(server.url) as wire:
        assert wire.request("POST", "/v1/counters/drained").status == 200
        before = wire.request("GET", "/v1/counters/drained").json
        for headers in WAYS.values():
            assert is_refused(send(server, "GET", "/counter?systemKey=drained", headers))
        assert wire.request("GET", "/v1/counters/drained").json == before


@pytest.mark.parametrize("path", ["/", "/?all=1", "/console", "/console/"])
def test_a_link_opens_the_console_and_nothing_else(server, path):
    """At the host of an API the same paths are the API's, and who follows the link does what it does."""
    api = {"routes": {"$default": {"dynamodb": "ListTables", "response": "done"}}}
    assert send(server, "PUT", "/v1/routes/linked", {}, json.dumps(api).encode()).status in (200, 201)
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document",
            "Accept": "text/html"}
    assert send(server, "GET", path, link).status in (200, 302)
    for host in ("linked.execute-api.localhost", "any.lambda-url.localhost"):
        assert is_refused(send(server, "GET", path, {"Host": host, **link}))
    assert send(server, "GET", path, {"Host": "linked.execute-api.localhost"}).body == b"done"


def test_a_page_plants_no_function(server):
    """Neither by Lambda's API nor by the tables in which functions are kept."""
    code = archive({"lambda_function.py": "def lambda_handler(event, context):\n    return 1\n"})
    create = {"FunctionName": "planted", "Role": "arn:aws:iam::000000000000:role/any", "Runtime": "python3.11",
              "Handler": "lambda_function.lambda_handler", "Code": {"ZipFile": base64.b64encode(code).decode()}}
    item = {"TableName": "quipu-functions", "Item": {"name": {"S": "planted"}, "part": {"S": "$LATEST"}}}
    for headers in WAYS.values():
        plain = {**headers, "Content-Type": "text/plain"}
        assert is_refused(send(server, "POST", "/2015-03-31/functions", plain, json.dumps(create).encode()))
        assert is_refused(send(server, "POST", "/", {**call_headers("PutItem"), **headers}, json.dumps(item).encode()))
    assert send(server, "GET", "/2015-03-31/functions/", {}).json["Functions"] == []


def test_a_preflight_tells_a_page_nothing(server):
    reply = send(server, "OPTIONS", "/", {**WAYS["fetch"], "Access-Control-Request-Method": "POST",
                                          "Access-Control-Request-Headers": "x-amz-target"})
    assert is_refused(reply)
    assert not [name for name, _ in reply.headers if name.lower().startswith("access-control")]


def test_programs_and_own_pages_come_in(server):
    own = f"http://{server.host}:{server.port}"
    for headers in ({}, {"Origin": own}, {"Origin": own, "Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"},
                    {"Sec-Fetch-Site": "same-origin", "Referer": own + "/console"}):
        reply = send(server, "GET", "/healthz", headers)
        assert reply.status == 200
        assert reply.header("access-control-allow-origin") is None


def test_an_allowed_page_comes_in_and_no_other():
    mine, other = "http://localhost:3000", "http://localhost:3001"
    with Quipu("--memory", "--allow-origin", mine, "--allow-origin", "https://app.example") as server:
        asks = {"Sec-Fetch-Site": "cross-site", "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "content-type,x-amz-target",
                "Access-Control-Request-Private-Network": "true"}
        for origin in (mine, "https://app.example"):
            reply = send(server, "OPTIONS", "/", {"Origin": origin, **asks})
            assert reply.status == 200
            assert reply.header("access-control-allow-origin") == origin
            assert reply.header("vary") == "Origin"
            assert reply.header("access-control-allow-methods") == "POST"
            assert reply.header("access-control-allow-headers") == "content-type,x-amz-target"
            assert reply.header("access-control-allow-private-network") == "true"
            reply = send(server, "POST", "/", {**call_headers("ListTables"), "Origin": origin}, b"{}")
            assert (reply.status, reply.header("access-control-allow-origin")) == (200, origin)
            reply = send(server, "POST", "/v1/counters/c", {"Origin": origin})
            assert (reply.status, reply.header("access-control-allow-origin")) == (200, origin)
        assert is_refused(send(server, "POST", "/", {**call_headers("ListTables"), "Origin": other}, b"{}"))
        assert is_refused(send(server, "OPTIONS", "/", {"Origin": other, **asks}))
        assert is_refused(send(server, "GET", "/wall", WAYS["image"]))


def test_all_pages_come_in_where_that_is_meant():
    with Quipu("--memory", env={"QUIPU_ALLOW_ORIGIN": "*"}) as server:
        for headers in WAYS.values():
            reply = send(server, "POST", "/v1/counters/c", headers)
            assert reply.status == 200
            assert reply.header("access-control-allow-origin") == headers.get("Origin")


@pytest.mark.parametrize("flag,value", [("--allow-origin", "localhost:3000"), ("--allow-origin", "http://a/b"),
                                        ("--allow-host", "a:80"), ("--allow-host", "http://a")])
def test_a_flag_that_makes_no_sense_is_refused(flag, value):
    done = run_quipu("serve", "--memory", "--port", "0", flag, value)
    assert done.returncode != 0
    assert f"{flag} must be" in done.stderr and f"'{value}'" in done.stderr
