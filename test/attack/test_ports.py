"""A function's port is its own: nobody else is heard there, whatever keys they know, and what comes from the function
itself is heard only with the keys that were made for its process."""
import concurrent.futures
import json
import os
import shutil
import socket
import subprocess
import sys

import pytest
from lambdas import ROLE, archive, eventually, lambda_client
from support import sigv4
from support.fixtures import boto_client, create_table
from support.process import Quipu

PEOPLE = ["the same user", "another user"]
NOBODY = 65534
KEYS = ("local", "local")
HEAD = "DynamoDB_20120810."

# Runs what the event names, with a small HTTP client of its own: no SDK, so that each part can be made wrong.
SOURCE = '''
import json, os, socket, subprocess, sys, time, urllib.error, urllib.request
sys.path.insert(0, os.path.dirname(__file__))
import sigv4

ENV = os.environ
KEYS = ENV["AWS_ACCESS_KEY_ID"], ENV["AWS_SECRET_ACCESS_KEY"], ENV["AWS_SESSION_TOKEN"]


def fetch(url, method, headers, body=None):
    request = urllib.request.Request(url, None if body is None else body.encode(), headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=120) as reply:
            return {"status": reply.status, "body": reply.read().decode()}
    except urllib.error.HTTPError as error:
        return {"status": error.code, "body": error.read().decode()}
    except (urllib.error.URLError, OSError) as error:
        return {"status": 0, "body": str(error)}


def call(event):
    """A DynamoDB call on a port, signed with whatever keys."""
    port = event.get("port") or int(ENV["AWS_LAMBDA_RUNTIME_API"].rpartition(":")[2])
    body = json.dumps(event["request"])
    headers = {"Host": "127.0.0.1:%d" % port, "X-Amz-Target": "DynamoDB_20120810." + event["operation"],
               "Content-Type": "application/x-amz-json-1.0", **event.get("headers", {})}
    how = event.get("how", "signed")
    if how == "signed":
        key, secret, token = event.get("keys") or KEYS
        headers = sigv4.sign(headers, body.encode(), key, secret, token)
    elif how == "token":
        headers["Authorization"] = "Bearer " + (event.get("token") or ENV["QUIPU_TOKEN"])
    if event.get("body"):
        body = event["body"]
    return fetch("http://127.0.0.1:%d/" % port, "POST", headers, body)


def in_a_child(event):
    """The same by a process that has left its group and lost its parent."""
    code = "import json, os, sys, lambda_function as f\\nif os.fork(): os._exit(0)\\nos.setsid()\\n" \\
           "print(json.dumps(f.call(json.loads(sys.argv[1]))), flush=True)"
    done = subprocess.run([sys.executable, "-c", code, json.dumps(event["event"])], stdout=subprocess.PIPE,
                          cwd=os.path.dirname(__file__), check=True)
    return json.loads(done.stdout)


def lambda_handler(event, context):
    if event["do"] == "tell":
        return {"port": int(ENV["AWS_LAMBDA_RUNTIME_API"].rpartition(":")[2]), "keys": KEYS,
                "token": ENV["QUIPU_TOKEN"], "pid": os.getpid()}
    if event["do"] == "call":
        return call(event)
    if event["do"] == "child":
        return in_a_child(event)
    if event["do"] == "fetch":
        return fetch(event["url"], event.get("method", "GET"), event.get("headers", {}), event.get("body"))
    if event["do"] == "wait":  # until somebody may have answered for us
        open(event["begun"], "w").close()
        while not os.path.exists(event["gate"]):
            time.sleep(0.01)
        return "mine"
'''


def make_function(url, name):
    with open(sigv4.__file__, encoding="utf-8") as file:
        code = archive({"lambda_function.py": SOURCE, "sigv4.py": file.read()})
    lambda_client(url).create_function(FunctionName=name, Runtime="python3.11", Role=ROLE, Timeout=120,
                                       Handler="lambda_function.lambda_handler", Code={"ZipFile": code})


def invoke(url, name, /, **event):
    reply = lambda_client(url).invoke(FunctionName=name, Payload=json.dumps(event).encode())
    payload = json.loads(reply["Payload"].read())
    assert "FunctionError" not in reply, payload
    return payload


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """With keys of its own: what a function's port lets through is past them."""
    file = tmp_path_factory.mktemp("keys") / "credentials"
    file.write_text(f"[default]\naws_access_key_id = {KEYS[0]}\naws_secret_access_key = {KEYS[1]}\n")
    with Quipu("--credentials", str(file)) as server:
        create_table(boto_client(server.url), "loot")
        make_function(server.url, "victim")
        make_function(server.url, "other")
        yield server


@pytest.fixture
def victim(server):
    return invoke(server.url, "victim", do="tell")


# ---- from outside ----

def listening_ports(pid):
    """Of one process, as a scan would find them."""
    inodes = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            inodes.add(os.readlink(f"/proc/{pid}/fd/{name}"))
        except OSError:
            pass
    with open("/proc/net/tcp", encoding="ascii") as lines:
        rows = [line.split() for line in lines][1:]
    return {int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes}


def raw(method, path, port, headers=(), body=b""):
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def signed(operation, request, port, keys, path="/", service="dynamodb"):
    body = json.dumps(request).encode()
    headers = {"Host": f"127.0.0.1:{port}", "Content-Type": "application/x-amz-json-1.0"}
    if operation:
        headers["X-Amz-Target"] = HEAD + operation
    headers = sigv4.sign(headers, body, *keys, service=service, path=path)
    del headers["Host"]
    return raw("POST", path, port, [f"{name}: {value}" for name, value in headers.items()], body)


def attempts(victim):
    """What somebody would send who has found the port, and also the keys."""
    port, keys, token = victim["port"], victim["keys"], f"Authorization: Bearer {victim['token']}"
    item = {"TableName": "loot", "Item": {"pk": {"S": "stolen"}}}
    target = [f"X-Amz-Target: {HEAD}PutItem", "Content-Type: application/x-amz-json-1.0"]
    function = json.dumps({"FunctionName": "intruder", "Role": ROLE, "Runtime": "provided.al2023",
                           "Handler": "x", "Code": {"ZipFile": ""}}).encode()
    runtime = "/2018-06-01/runtime"
    return {
        "PutItem, unsigned": raw("POST", "/", port, target, json.dumps(item).encode()),
        "PutItem, signed with the process's keys": signed("PutItem", item, port, keys),
        "PutItem, with the process's token": raw("POST", "/", port, [*target, token], json.dumps(item).encode()),
        "PutItem, signed with the server's keys": signed("PutItem", item, port, KEYS),
        "CreateFunction": raw("POST", "/2015-03-31/functions", port, [token], function),
        "Invoke": raw("POST", "/2015-03-31/functions/other/invocations", port, [token], b'{"do": "tell"}'),
        "a web page": raw("POST", "/", port, [*target, "Origin: https://evil.example"], json.dumps(item).encode()),
        "next": raw("GET", runtime + "/invocation/next", port),
        "init error": raw("POST", runtime + "/init/error", port, [], b"{}"),
        "an extension": raw("POST", "/2020-01-01/extension/register", port, ["Lambda-Extension-Name: x"], b"{}"),
        "metrics": raw("GET", "/metrics", port, [token]),
        "nothing": b"",
        "garbage": b"\0" * 1000,
    }


# Sends bytes and prints what comes until the connection ends.
KNOCK = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=120) as wire:
    try:
        wire.sendall(bytes.fromhex(sys.argv[2]))
        while part := wire.recv(65536):
            sys.stdout.buffer.write(part)
    except ConnectionError:
        pass
"""


def knock(who, port, data):
    """What the port says to somebody who is not of the family."""
    command = [sys.executable, "-c", KNOCK, str(port), data.hex()]
    if who == "another user":
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            pytest.fail("this needs root and setpriv")
        command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]
    return subprocess.run(command, stdout=subprocess.PIPE, timeout=180, check=True, cwd="/").stdout


@pytest.mark.parametrize("who", PEOPLE)
def test_nobody_else_is_heard_on_a_functions_port(who, server, victim):
    other = invoke(server.url, "other", do="tell")
    ports = listening_ports(server.process.pid)
    assert {server.port, victim["port"], other["port"]} <= ports
    for port in ports - {server.port}:
        for what, data in attempts({**victim, "port": port}).items():
            assert knock(who, port, data) == b"", f"{what} on port {port}"
    dynamodb = boto_client(server.url, *KEYS)
    assert "Item" not in dynamodb.get_item(TableName="loot", Key={"pk": {"S": "stolen"}})
    names = {f["FunctionName"] for f in lambda_client(server.url).list_functions()["Functions"]}
    assert "intruder" not in names
    assert invoke(server.url, "victim", do="tell") == victim  # the same process, unharmed


def test_nobody_else_takes_or_answers_an_event(server, victim, tmp_path):
    begun, gate = str(tmp_path / "begun"), str(tmp_path / "gate")
    with concurrent.futures.ThreadPoolExecutor() as threads:
        running = threads.submit(invoke, server.url, "victim", do="wait", begun=begun, gate=gate)
        try:
            eventually(lambda: os.path.exists(begun), "the function runs")
            for who in PEOPLE:
                port, runtime = victim["port"], "/2018-06-01/runtime/invocation/"
                response = f"{runtime}00000000-0000-4000-8000-000000000000/response"
                assert knock(who, port, raw("GET", runtime + "next", port)) == b""
                assert knock(who, port, raw("POST", response, port, [], b'"theirs"')) == b""
        finally:
            open(gate, "w", encoding="ascii").close()
        assert running.result(timeout=180) == "mine"


def test_a_refused_connection_is_told_but_does_not_fill_the_log(server, victim):
    for _ in range(50):
        assert knock("the same user", victim["port"], b"") == b""
    lines = [line for line in server.stderr().splitlines() if "a connection to the port of the function" in line]
    assert lines and len(lines) < 25
    assert "is not from a process of the function" in lines[0]


def test_a_connection_is_not_inherited_by_who_comes_next(server, victim):
    """Many at once, which all hang up in the middle."""
    for _ in range(200):
        wire = socket.create_connection(("127.0.0.1", victim["port"]))
        wire.sendall(raw("GET", "/2018-06-01/runtime/invocation/next", victim["port"]))
        wire.close()
    assert invoke(server.url, "victim", do="tell") == victim


# ---- from inside ----

def put(key, **more):
    return {"do": "call", "operation": "PutItem", "request": {"TableName": "loot", "Item": {"pk": {"S": key}}}, **more}


def stored(server, key):
    return "Item" in boto_client(server.url, *KEYS).get_item(TableName="loot", Key={"pk": {"S": key}})


@pytest.mark.parametrize("how", ["signed", "token"])
def test_the_function_itself_is_heard_with_its_keys(how, server):
    assert invoke(server.url, "victim", **put(f"own-{how}", how=how))["status"] == 200
    child = put(f"child-{how}", how=how)
    assert invoke(server.url, "victim", do="child", event=child)["status"] == 200
    assert stored(server, f"own-{how}") and stored(server, f"child-{how}")


def test_the_function_itself_is_not_heard_without_its_keys(server, victim):
    other = invoke(server.url, "other", do="tell")
    assert other["keys"] != victim["keys"] and other["token"] != victim["token"]
    key, secret, token = victim["keys"]
    wrong = {
        "nothing": {"how": "unsigned"},
        "another process's keys": {"keys": other["keys"]},
        "another process's token": {"how": "token", "token": other["token"]},
        "the server's keys": {"keys": [*KEYS, None]},
        "a wrong secret": {"keys": [key, secret[:-1] + "x", token]},
        "a wrong session": {"keys": [key, secret, token[:-1] + "x"]},
        "no session": {"keys": [key, secret, None]},
        "a body that was changed": {"body": json.dumps({"TableName": "loot", "Item": {"pk": {"S": "bad"}}}) + " "},
        "an empty token": {"how": "none", "headers": {"Authorization": "Bearer "}},
        "a part of the token": {"how": "token", "token": victim["token"][:-1]},
    }
    for what, how in wrong.items():
        reply = invoke(server.url, "victim", **put("bad", **how))
        assert reply["status"] == 400, (what, reply)
    unsigned = invoke(server.url, "victim", **put("bad", how="unsigned"))
    assert "MissingAuthenticationToken" in unsigned["body"] and "QUIPU_TOKEN" in unsigned["body"]
    assert not stored(server, "bad")


def test_a_url_that_somebody_else_chose_reads_and_starts_nothing(server, victim):
    """What a function is talked into fetching carries no keys."""
    base = f"http://127.0.0.1:{victim['port']}"
    for path in ["/", "/metrics", "/healthz", "/2015-03-31/functions", "/v1/functions/other/logs", "/v1/openapi.json"]:
        reply = invoke(server.url, "victim", do="fetch", url=base + path)
        assert reply["status"] == 403 and "QUIPU_TOKEN" in reply["body"], path
    reply = invoke(server.url, "victim", do="fetch", method="POST", body="{}",
                   url=base + "/2015-03-31/functions/other/invocations")
    assert reply["status"] == 403


def test_no_request_of_a_web_page_is_heard(server, victim):
    """Not even from inside: a function may well run a browser."""
    token, base = {"Authorization": f"Bearer {victim['token']}"}, f"http://127.0.0.1:{victim['port']}"
    runtime = "/2018-06-01/runtime/invocation/next"
    page = {"Origin": "https://evil.example"}
    for headers in [page, {"Sec-Fetch-Site": "cross-site"}, {"Host": "rebound.example"}]:
        for path in ["/2015-03-31/functions"] + ([] if "Host" in headers else [runtime]):
            reply = invoke(server.url, "victim", do="fetch", url=base + path, headers={**token, **headers})
            assert reply["status"] == 403, (headers, path)
        assert invoke(server.url, "victim", **put("page", how="token", headers=headers))["status"] == 403
    assert not stored(server, "page")
    assert invoke(server.url, "victim", do="fetch", url=base + "/2015-03-31/functions", headers=token)["status"] == 200


def test_another_functions_port_is_closed_to_it(server, victim):
    """Even with the keys of the process that has the port."""
    for how in [{"keys": victim["keys"]}, {"how": "token", "token": victim["token"]}]:
        reply = invoke(server.url, "other", **put("bad", port=victim["port"], **how))
        assert reply["status"] == 0, reply
    reply = invoke(server.url, "other", do="fetch",
                   url=f"http://127.0.0.1:{victim['port']}/2018-06-01/runtime/invocation/next")
    assert reply["status"] == 0
    assert not stored(server, "bad")
    assert invoke(server.url, "victim", do="tell") == victim
