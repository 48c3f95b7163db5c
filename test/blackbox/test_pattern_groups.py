"""Groups over HTTP, on all engines: complete once, by each kind of rule, whatever comes in between."""
import pytest
from conftest import boto_client
from test_patterns import at_once, face, ok, refused  # noqa: F401


@pytest.fixture
def group(unused_name):
    return "/v1/groups/" + unused_name


def test_ten_clicks_not_eleven_or_twelve(face, group):
    """The seed's first example: the notification comes at ten clicks, once."""
    ok(face, "PUT", group, {"complete": {"size": 10}})
    clicks = at_once(8, lambda i: [face.ask("POST", group + "/session", {"id": f"{i}-{n}"}) for n in range(3)])
    clicks = [click for part in clicks for click in part]
    assert sorted(status for status, _, _ in clicks) == [201] * 10 + [409] * 14
    assert sum(reply.get("completed", False) for _, reply, _ in clicks) == 1
    assert {reply["error"] for status, reply, _ in clicks if status == 409} == {"closed-group"}
    end = ok(face, "GET", group + "/session")
    assert (end["state"], end["count"], len(end["events"]), end["why"]) == ("COMPLETE", 10, 10, "rule")


def test_recommendations_meet_a_login(face, group):
    """The seed's second example: two streams are merged, and processed when both are there."""
    ok(face, "PUT", group, {"complete": {"kinds": ["recommendation", "login"]}, "late": "append"})
    assert ok(face, "POST", group + "/u1", {"kind": "recommendation", "data": "a book"})["state"] == "OPEN"
    assert ok(face, "POST", group + "/u1", {"kind": "recommendation", "data": "a film"})["state"] == "OPEN"
    assert ok(face, "POST", group + "/u2", {"kind": "login"})["state"] == "OPEN"
    assert ok(face, "POST", group + "/u1", {"kind": "login"})["completed"]
    late = ok(face, "POST", group + "/u1", {"kind": "login"})
    assert (late["accepted"], late["completed"], late["count"]) == (True, False, 4)
    assert ok(face, "GET", group + "/u1")["events"][3]["late"]
    assert [g["key"] for g in ok(face, "GET", group + "?state=open")["groups"]] == ["u2"]


def test_generations(face, group):
    ok(face, "PUT", group, {"complete": {"size": 3}, "late": "new"})
    replies = at_once(6, lambda i: [ok(face, "POST", group + "/k", {"id": f"{i}-{n}"}) for n in range(5)])
    assert all(reply["accepted"] for part in replies for reply in part)
    seen = []
    for generation in range(1, 11):
        end = ok(face, "GET", f"{group}/k?generation={generation}")
        assert (end["state"], end["count"]) == ("COMPLETE", 3)
        seen += [event["id"] for event in end["events"]]
    assert sorted(seen) == sorted(f"{i}-{n}" for i in range(6) for n in range(5))
    again = ok(face, "POST", group + "/k", {"id": "0-0"})
    assert (again["accepted"], again["duplicate"]) == (False, True)
    assert refused(face, "GET", group + "/k?generation=11") == (404, "no-such-group")


def test_condition(face, group):
    ok(face, "PUT", group, {"complete": {"when": {"expression": "#sum >= :least", "values": {":least": 100}}}})
    assert not ok(face, "POST", group + "/k", {"amount": 60})["completed"]
    assert ok(face, "POST", group + "/k", {"amount": 40.5})["completed"]
    assert ok(face, "GET", group + "/k")["sum"] == 100.5


def await_end(face, path):
    end = ok(face, "GET", path + "?wait=30s")
    while end["state"] in ("OPEN", "CLOSING"):
        end = ok(face, "GET", path + "?wait=30s")
    return end


def test_quiet_and_deadline_by_the_sweep(face, group):
    ok(face, "PUT", group, {"quiet": "1s", "deadline": "1h"})
    ok(face, "POST", group + "/quiet", {"data": 1})
    end = await_end(face, group + "/quiet")
    assert (end["state"], end["why"], end["count"]) == ("COMPLETE", "quiet", 1)
    ok(face, "PUT", group, {"complete": {"size": 100}, "deadline": "1s"})
    ok(face, "POST", group + "/late", {"data": 1})
    end = await_end(face, group + "/late")
    assert (end["state"], end["why"]) == ("COMPLETE", "deadline")
    assert refused(face, "POST", group + "/late", {"data": 1}) == (409, "closed-group")


def test_larger_than_an_item(face, group):
    ok(face, "PUT", group, {"complete": {"size": 12}})
    for n in range(12):
        last = ok(face, "POST", group + "/k", {"id": f"{n:02}", "data": "x" * 100_000})
    assert last["completed"]
    ids, after = [], ""
    while after is not None:
        page = ok(face, "GET", group + "/k?limit=5" + (after and "&after=" + after))
        ids += [event["id"] for event in page["events"]]
        after = page.get("next")
    assert ids == [f"{n:02}" for n in range(12)]


def test_rules_are_read_and_forgotten(face, group):
    rules = {"complete": {"size": 2, "kinds": ["a"]}, "quiet": "5m", "deadline": "1h", "late": "append",
             "then": "tell-me"}
    told = ok(face, "PUT", group, rules)
    assert told == ok(face, "GET", group) == dict(rules, name=group.rsplit("/", 1)[1])
    ok(face, "POST", group + "/k", {"kind": "a"})
    assert ok(face, "DELETE", group) == {"deleted": True}
    assert refused(face, "GET", group) == (404, "no-such-group")
    assert refused(face, "POST", group + "/other", {}) == (404, "no-such-group")
    assert ok(face, "POST", group + "/k", {})["completed"]
    item = boto_client(face.database).get_item(TableName="quipu-groups", Key={
        "group": {"S": group.rsplit("/", 1)[1] + "/k"}, "generation": {"N": "1"}})["Item"]
    assert (item["state"]["S"], item["then"]["S"]) == ("COMPLETE", "tell-me")
    assert ok(face, "DELETE", group + "/k") == {"deleted": 1}
    assert refused(face, "GET", group + "/k") == (404, "no-such-group")


def test_open_groups_by_age(face, group):
    ok(face, "PUT", group, {"complete": {"size": 2}})
    keys = [f"k{i}" for i in range(7)]
    for key in keys:
        ok(face, "POST", f"{group}/{key}", {})
    ok(face, "POST", f"{group}/k4", {})
    listed, after = [], ""
    while after is not None:
        page = ok(face, "GET", group + "?state=open&limit=2" + (after and "&after=" + after))
        listed += [g["key"] for g in page["groups"]]
        after = page.get("next")
    assert sorted(listed) == sorted(set(keys) - {"k4"})
    assert ok(face, "GET", group + "?state=open&older=1h") == {"groups": []}


@pytest.mark.parametrize("method, path, body, status, error", [
    ("POST", "/k", {"data": 1}, 404, "no-such-group"),
    ("GET", "/k", None, 404, "no-such-group"),
    ("DELETE", "", None, 404, "no-such-group"),
    ("PUT", "", {}, 400, "bad-rule"),
    ("PUT", "", {"complete": {"size": -1}}, 400, "bad-rule"),
    ("PUT", "", {"complete": {"kinds": "a"}}, 400, "bad-rule"),
    ("PUT", "", {"complete": {"when": "#count >="}}, 400, "bad-rule"),
    ("PUT", "", {"complete": {"when": "#a = #b) or (#c = #d"}}, 400, "bad-rule"),
    ("PUT", "", {"quiet": "a while"}, 400, "bad-request"),
    ("PUT", "", {"quiet": "1s", "late": "never"}, 400, "bad-request"),
])
def test_clear_refusals(face, group, method, path, body, status, error):
    assert refused(face, method, group + path, body) == (status, error)


def test_a_too_large_event(face, group):
    ok(face, "PUT", group, {"complete": {"size": 2}})
    assert refused(face, "POST", group + "/k", {"data": "x" * 500_000}) == (413, "too-large")
    assert refused(face, "GET", group + "/k") == (404, "no-such-group")
