"""The patterns over HTTP, on all engines (support/engines.py)."""
import json
import re
import threading
import urllib.error
import urllib.request

import pytest
from conftest import boto_client
from support.engines import ENGINES, OTHERS, UNIT_PARTS, server_on, unit_tests


class Face:
    """The routes of a server. What they answer must be what their description says."""

    def __init__(self, url, database):
        self.url, self.database = url, database
        with urllib.request.urlopen(url + "/v1/openapi.json", timeout=180) as reply:
            paths = json.load(reply)["paths"]
        self.routes = [(re.compile(re.sub(r"\\{[^/]*\\}", "[^/]+", re.escape(path))), methods)
                       for path, methods in sorted(paths.items(), key=lambda one: one[0].count("{"))]

    def check_reply(self, method, path, reply):
        path = path.partition("?")[0]
        described = next(methods[method.lower()] for route, methods in self.routes
                         if route.fullmatch(path) and method.lower() in methods)
        content = described["responses"]["2XX"].get("content")
        if content:
            check_shape(f"{method} {path}", reply, content["application/json"]["schema"])

    def ask(self, method, path, body=None, **headers):
        """Status, body (JSON where it is) and headers."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=headers)
        try:
            reply = urllib.request.urlopen(request, timeout=180)
        except urllib.error.HTTPError as error:
            reply = error
        with reply:
            text = reply.read()
            is_json = reply.headers.get("Content-Type", "").startswith("application/json") and text
            content = json.loads(text) if is_json else text.decode()
            if is_json and reply.status < 300:
                self.check_reply(method, path, content)
            return reply.status, content, reply.headers


TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}


def check_shape(where, value, schema):
    """As much of JSON Schema as the description uses."""
    if "type" in schema:
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        assert type(value) in [TYPES[name] for name in types], f"{where}: {value!r} is not {types}"
    for name, member in schema.get("properties", {}).items():
        if isinstance(value, dict) and name in value:
            check_shape(f"{where}: {name}", value[name], member)
    for element in value if "items" in schema else ():
        check_shape(where, element, schema["items"])


@pytest.fixture(scope="module", params=ENGINES)
def face(request):
    with server_on(request.param) as (server, url):
        yield Face(server.url, url)


def ok(face, method, path, body=None, **headers):
    status, reply, _ = face.ask(method, path, body, **headers)
    assert status in (200, 201), (method, path, status, reply)
    return reply


def refused(face, method, path, body=None):
    status, reply, _ = face.ask(method, path, body)
    return status, reply["error"]


def at_once(count, work):
    """Runs work(i) in so many threads and answers what they returned."""
    results = [None] * count

    def run(i):
        results[i] = work(i)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_counters_never_repeat(face):
    numbers = at_once(8, lambda i: [face.ask("POST", "/v1/counters/herd")[1]["value"] for _ in range(25)])
    assert sorted(n for each in numbers for n in each) == list(range(1, 201))
    assert all(each == sorted(each) for each in numbers)


def test_the_same_key_gets_the_same_number(face):
    assert ok(face, "POST", "/v1/counters/one-key", Idempotency_Key="k") == {"value": 1}
    keyed = at_once(8, lambda i: face.ask("POST", "/v1/counters/keyed", Idempotency_Key=f"key{i % 4}")[1]["value"])
    assert keyed[:4] == keyed[4:] and sorted(keyed[:4]) == [1, 2, 3, 4]


def test_the_original_counter_and_wall(face):
    assert sorted(at_once(5, lambda i: face.ask("GET", "/counter?systemKey=curl")[1])) == [1, 2, 3, 4, 5]
    assert face.ask("GET", "/wall")[1] == "No message yet."
    assert face.ask("POST", "/wall", b"first")[1] == "first\n"
    assert face.ask("POST", "/wall", b"second")[1] == "first\nsecond\n"
    status, text, headers = face.ask("GET", "/wall")
    assert (status, text, headers["Content-Type"]) == (200, "first\nsecond\n", "text/plain; charset=utf-8")
    assert face.ask("PUT", "/wall", b"x")[1] == "Method unsupported."
    assert face.ask("DELETE", "/wall")[1] == "Messages deleted."


def test_two_writers_on_one_document(face):
    status, _, headers = face.ask("PUT", "/v1/documents/pages/home", {"title": "a"}, If_None_Match="*")
    assert status == 201 and headers["ETag"] == '"1"'
    writers = at_once(6, lambda i: face.ask("PUT", "/v1/documents/pages/home", {"by": i}, If_Match='"1"'))
    statuses = [status for status, _, _ in writers]
    assert sorted(statuses) == [200] + [412] * 5
    status, refusal, headers = face.ask("PUT", "/v1/documents/pages/home", {}, If_Match='"1"')
    assert (status, refusal["error"], refusal["version"], headers["ETag"]) == (412, "version-mismatch", 2, '"2"')
    patches = at_once(6, lambda i: face.ask("PATCH", "/v1/documents/pages/home", {f"m{i}": i}))
    assert [p[0] for p in patches] == [200] * 6
    _, document, headers = face.ask("GET", "/v1/documents/pages/home")
    assert headers["ETag"] == '"8"' and all(document[f"m{i}"] == i for i in range(6))
    status, body, headers = face.ask("GET", "/v1/documents/pages/home", If_None_Match='"8"')
    assert (status, body, headers["Content-Type"]) == (304, "", None)


def test_those_who_wait_for_a_lease_take_turns(face):
    """Each holds it for a moment; the fence tells who is the present holder."""
    holders, most = [], []

    def work(i):
        status, lease, _ = face.ask("POST", "/v1/leases/turns", {"owner": f"w{i}", "for": "30s", "wait": "60s"})
        assert status == 200, lease
        holders.append(i)
        most.append(len(holders))
        assert face.ask("GET", "/v1/leases/turns")[1]["fence"] == lease["fence"]
        holders.remove(i)
        assert face.ask("DELETE", f"/v1/leases/turns?owner=w{i}&fence={lease['fence']}")[0] == 200
        return lease["fence"]

    assert sorted(at_once(5, work)) == [1, 2, 3, 4, 5] and max(most) == 1


def test_a_plain_client_takes_part(face):
    """The tables are what their documentation says: boto3 holds the lease, and gives it back."""
    face.ask("POST", "/v1/leases/shared", {"owner": "first", "for": "30s"})
    client = boto_client(face.database)
    item = client.get_item(TableName="quipu-leases", Key={"name": {"S": "shared"}})["Item"]
    assert item["owner"] == {"S": "first"} and item["fence"] == {"N": "1"}
    client.update_item(TableName="quipu-leases", Key={"name": {"S": "shared"}}, ConditionExpression="fence = :f",
                       UpdateExpression="REMOVE #owner", ExpressionAttributeNames={"#owner": "owner"},
                       ExpressionAttributeValues={":f": {"N": "1"}})
    assert face.ask("POST", "/v1/leases/shared", {"owner": "second", "wait": "10s"})[1]["fence"] == 2


def test_work_goes_from_hand_to_hand(face):
    assert face.ask("PUT", "/v1/work/mail", {"lease": "30s", "attempts": 2, "backoff": "1ms"})[0] == 200
    for i in range(20):
        assert face.ask("POST", f"/v1/work/mail/unit{i}", {"data": {"n": i}})[0] == 201
    assert face.ask("POST", "/v1/work/mail/unit3", {"data": {"n": 3}})[0] == 200

    def work(i):
        done = []
        while True:
            status, unit, _ = face.ask("POST", "/v1/work/mail/claim", {"owner": f"w{i}", "wait": "2s"})
            if status == 204:
                return done
            path = f"/v1/work/mail/{unit['id']}"
            if unit["id"] == "unit7":
                assert face.ask("POST", path + "/fail", {"fence": unit["fence"], "reason": "seven"})[0] == 200
                continue
            assert face.ask("POST", path + "/beat", {"fence": unit["fence"], "progress": 1})[0] == 200
            result = {"fence": unit["fence"], "result": unit["data"]["n"] * 2}
            assert face.ask("POST", path + "/finish", result)[0] == 200
            done.append(unit["id"])

    done = sorted(unit for each in at_once(4, work) for unit in each)
    assert done == sorted(f"unit{i}" for i in range(20) if i != 7)
    assert face.ask("GET", "/v1/work/mail/unit5?wait=5s")[1]["result"] == 10
    dead = face.ask("GET", "/v1/work/mail?state=dead")[1]["work"]
    assert [(unit["id"], unit["attempts"], unit["error"]) for unit in dead] == [("unit7", 2, "seven")]


def test_long_polls_end_when_something_comes(face):
    waiting = threading.Thread(target=lambda: results.append(face.ask("GET", "/v1/boards/news?wait=60s")[1]))
    results = []
    waiting.start()
    assert face.ask("POST", "/v1/boards/news", {"text": "it happened"})[0] == 201
    waiting.join()
    assert [m["text"] for m in results[0]["messages"]] == ["it happened"]


def test_costs_are_told(face):
    face.ask("POST", "/v1/counters/cost")
    cost = face.ask("POST", "/v1/counters/cost?cost=1")[1]["cost"]
    assert cost == {"writeUnits": 1, "readUnits": 0, "calls": 1, "dollarsPerMillion": 0.625}


def test_errors_are_clear(face):
    for method, path, body, status, code in [
            ("POST", "/v1/counters/x", b"{", 400, "bad-json"),
            ("POST", "/v1/counters/x", {"buy": 1}, 400, "bad-request"),
            ("GET", "/v1/counters/unknown", None, 404, "no-such-counter"),
            ("PATCH", "/v1/counters/x", {}, 405, "wrong-method"),
            ("PUT", "/v1/leases/unknown", {"owner": "a", "fence": 1}, 404, "no-such-lease"),
            ("POST", "/v1/leases/x", {"owner": "a", "for": "a while"}, 400, "bad-request"),
            ("PUT", "/v1/documents/c/large", "x" * 410000, 413, "too-large"),
            ("POST", "/v1/work/q/unknown/finish", {"fence": 1}, 404, "no-such-work")]:
        got, reply, _ = face.ask(method, path, body)
        assert (got, reply["error"]) == (status, code) and reply["message"].endswith(".")


def test_the_description_is_served(face):
    document = face.ask("GET", "/v1/openapi.json")[1]
    assert document["openapi"].startswith("3.") and "post" in document["paths"]["/v1/counters/{name}"]
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names) and {"jobDone", "counterAdd", "leaseTake"} <= set(names)
    assert all(operation["tags"] and operation["summary"] for operation in operations)


@pytest.mark.parametrize("engine", OTHERS)
@pytest.mark.parametrize("part", UNIT_PARTS)
def test_the_unit_tests_pass_on_other_engines(engine, part):
    """The same tests that run on a database in memory; the explorer needs that one, and is left out."""
    unit_tests(engine, part)
