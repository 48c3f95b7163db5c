"""Logs over HTTP, on all engines: producers, groups of consumers, splits in mid-stream, a consumer that dies."""
import threading
import time
import uuid

import pytest
from conftest import boto_client
from test_patterns import at_once, face  # noqa: F401: a fixture


@pytest.fixture
def log(face):  # noqa: F811
    """A log of its own: log(method, path, body) asks for something of it; log.name, log.face."""
    return Log(face, "log " + uuid.uuid4().hex[:8])


class Log:
    def __init__(self, face, name):  # noqa: F811
        self.face, self.name, self.path = face, name, "/v1/logs/" + name.replace(" ", "%20")

    def __call__(self, method, path="", body=None, status=None, **headers):
        got, reply, _ = self.face.ask(method, self.path + path, body, **headers)
        expected = (status,) if status else (200, 201, 204)
        assert got in expected, (method, path, body, got, reply)
        return reply

    def read(self, owner, group="g", **more):
        """The page that was read, or None."""
        return self("POST", f"/consumers/{group}/read", {"owner": owner, **more}) or None

    def ack(self, page, group="g", sequence=None, status=None):
        return self("POST", f"/consumers/{group}/ack", {"partition": page["partition"], "fence": page["fence"],
                    "sequence": sequence or page["events"][-1]["sequence"]}, status)

    def drain(self, owner="reader", group="g", **more):
        """All events until there are none, each page acked."""
        events = []
        while page := self.read(owner, group, **more):
            events += page["events"]
            self.ack(page, group)
        return events


def in_order(events):
    """The data of each key in the order of reading."""
    by_key = {}
    for event in events:
        by_key.setdefault(event["key"], []).append(event["data"])
    return by_key


def test_what_was_written_is_read_once(log):
    log("PUT", body={"partitions": 3}, status=201)
    sent = [{"key": f"k{i % 7}", "data": i} for i in range(60)]
    for event in sent[:10]:
        log("POST", body=event, status=201)
    replies = log("POST", body={"events": sent[10:]}, status=201)["events"]
    assert len(replies) == 50
    assert in_order(log.drain(max=7)) == in_order(sent)
    assert log.read("reader") is None
    assert in_order(log.drain(group="another")) == in_order(sent)
    assert log("GET", "/consumers/g/lag")["lag"] == 0


def test_numbers_have_no_gap_and_a_plain_sdk_sees_them(log):
    log("PUT", body={"partitions": 2})
    at_once(6, lambda i: [log("POST", body={"key": f"p{i}", "data": n, "token": f"{i}/{n}"}) for n in range(20)])
    client = boto_client(log.face.database)
    total = 0
    item = client.get_item(TableName="quipu-logs", Key={"log": {"S": log.name}, "part": {"S": "log"}})["Item"]
    identity = item["id"]["S"]
    for partition in log("GET")["open"]:
        key = f"{log.name.replace(' ', '%20')}/{identity}/{partition['partition']}"
        pages = client.query(TableName="quipu-log-events", KeyConditionExpression="#c = :c",
                             ExpressionAttributeNames={"#c": "chain"},
                             ExpressionAttributeValues={":c": {"S": key}})["Items"]
        events = [entry["L"] for page in pages for entry in page["e"]["L"]]
        counts = [int(page["n"]["N"]) for page in pages]
        assert [int(page["first"]["N"]) for page in pages] == [1 + sum(counts[:i]) for i in range(len(pages))]
        assert len(events) == sum(counts) == partition["sequence"]
        total += len(events)
        by_key = {}
        for event_key, data in events:
            by_key.setdefault(event_key["S"], []).append(int(data["N"]))
        assert all(numbers == list(range(20)) for numbers in by_key.values())
    assert total == 120


def test_a_token_is_taken_once(log):
    log("PUT", body={"partitions": 4})
    replies = at_once(8, lambda i: log("POST", body={"key": "k", "data": 1, "token": "once"}))
    assert len({(r["partition"], r["sequence"]) for r in replies}) == 1
    assert sum(not r.get("repeated") for r in replies) == 1
    again = [log("POST", body={"key": "k", "data": 2}, Idempotency_Key="call")["sequence"] for _ in range(3)]
    assert len(set(again)) == 1
    assert len(log.drain()) == 2
    assert log("POST", body={"key": "k", "data": 3, "token": "once"}, status=422)["error"] == "token-reused"


def test_errors_have_their_own_words(log):
    assert log("POST", body={"key": "k"}, status=404)["error"] == "no-such-log"
    log("PUT", body={"partitions": 2})
    assert log("PUT", body={"partitions": 3}, status=409)["error"] == "exists"
    assert log("POST", body={"data": 1}, status=400)["error"] == "bad-request"
    assert log("POST", body={"key": "k", "data": "x" * 410000}, status=413)["error"] == "too-large"
    assert log("POST", "/split", {"partition": "9"}, status=404)["error"] == "no-such-partition"
    assert log("GET", "/consumers/nobody/lag", status=404)["error"] == "no-such-consumer"
    log("POST", body={"key": "k", "data": 1})
    page = log.read("one")
    assert log.ack(page, sequence=2, status=409)["error"] == "not-given"
    assert log.ack({**page, "fence": 7}, status=409)["error"] == "stale-fence"
    assert log("POST", "/consumers/g/replay", {"time": "yesterday"}, status=400)["error"] == "bad-request"


def test_a_split_in_mid_stream_keeps_the_order_of_each_key(log):
    log("PUT", body={"partitions": 2})
    keys, count, stopped = 6, 40, threading.Event()
    events, guard = [], threading.Lock()

    def produce(i):
        for n in range(count):
            log("POST", body={"key": f"k{i}", "data": n, "token": f"{i}/{n}"})

    def consume(i):
        while True:
            was_stopped = stopped.is_set()
            page = log.read(f"consumer {i}", max=5)
            if page:
                with guard:  # the order in which pages are worked at is the order of their acks
                    events.extend(page["events"])
                    log.ack(page)
            elif was_stopped:
                return

    def change():
        log("POST", "/split", {"partition": "0"})
        log("POST", "/split", {"partition": "1"})
        log("POST", "/merge", {"partitions": ["3", "4"]})

    consumers = [threading.Thread(target=consume, args=(i,)) for i in range(3)]
    changes = threading.Thread(target=change)
    for thread in consumers + [changes]:
        thread.start()
    at_once(keys, produce)
    changes.join()
    stopped.set()
    for thread in consumers:
        thread.join()
    assert in_order(events) == {f"k{i}": list(range(count)) for i in range(keys)}
    assert [p["partition"] for p in log("GET")["open"]] == ["2", "6", "5"]


def test_another_takes_over_from_a_consumer_that_dies(log):
    log("PUT", body={"partitions": 1})
    log("POST", body={"events": [{"key": "k", "data": n} for n in range(4)]})
    began = time.monotonic()
    dead = log.read("dead", max=2, **{"for": "3s"})
    assert [e["data"] for e in dead["events"]] == [0, 1]
    alive = log.read("alive")
    assert alive is None or time.monotonic() > began + 3
    alive = alive or log.read("alive", wait="55s")
    assert [e["data"] for e in alive["events"]] == [0, 1, 2, 3] and alive["fence"] > dead["fence"]
    assert log.ack(dead, status=409)["error"] == "stale-fence"
    log.ack(alive)
    assert log.read("alive") is None


def test_a_reader_that_waits_is_told_at_once(log):
    log("PUT", body={"partitions": 20})
    pages = []
    reader = threading.Thread(target=lambda: pages.append(log.read("reader", wait="30s")))
    reader.start()
    time.sleep(0.3)
    log("POST", body={"key": "k", "data": "news"})
    reader.join()
    assert [e["data"] for e in pages[0]["events"]] == ["news"]


def test_parked_events_and_replays(log):
    log("PUT", body={"partitions": 1})
    log("POST", body={"events": [{"key": "k", "data": n} for n in range(3)]})
    page = log.read("one")
    parked = log("POST", "/consumers/g/park",
                 {"partition": "0", "fence": page["fence"], "sequence": 2, "reason": "odd"})
    assert parked["position"] == 2
    log.ack(page)
    assert [(p["data"], p["reason"]) for p in log("GET", "/consumers/g/parked")["parked"]] == [(1, "odd")]
    assert log("GET", "/consumers/g/lag")["parked"] == 1
    assert log("POST", "/consumers/g/replay", {"parked": True}) == {"replayed": 1}
    again = log.drain()
    assert [(e["data"], e["origin"]) for e in again] == [(1, {"partition": "0", "sequence": 2})]
    log("POST", "/consumers/g/replay", {"partition": "0", "sequence": 2})
    assert [e["data"] for e in log.drain()] == [1, 2]
    log("POST", "/consumers/g/replay", {"time": "start"})
    assert [e["data"] for e in log.drain()] == [0, 1, 2]
    log("POST", "/consumers/g/replay", {"time": again[0]["time"]})
    assert [e["data"] for e in log.drain()] == [0, 1, 2]


def test_a_deleted_log_is_empty_when_it_is_made_again(log):
    for _ in range(2):
        log("PUT", body={"partitions": 2}, status=201)
        log("POST", body={"events": [{"key": f"k{n}", "data": n, "token": f"t{n}"} for n in range(30)]})
        assert len(log.drain()) == 30
        assert log("DELETE") == {"deleted": True}
        assert log("DELETE", status=404)["error"] == "no-such-log"


# ---- one key ----

def test_one_of_many_who_expect_the_same_appends(log):
    log("PUT", body={"partitions": 2})
    log("POST", body={"key": "s", "data": 0, "expected": 0})
    last, written = 1, ["first"]
    for turn in range(3):
        replies = at_once(5, lambda i: log.face.ask(
            "POST", log.path, {"key": "s", "data": f"{turn}.{i}", "expected": last})[:2])
        appended = [(i, reply) for i, (status, reply) in enumerate(replies) if status == 201]
        assert len(appended) == 1 and all(status in (201, 409) for status, _ in replies), replies
        who, last = appended[0][0], appended[0][1]["sequence"]
        assert {reply["sequence"] for status, reply in replies if status == 409} == {last}
        written.append(f"{turn}.{who}")
        log("POST", body={"key": "other", "data": turn})
    log("POST", "/split", {"partition": log("GET", "/keys/s")["events"][0]["partition"]})
    assert log("POST", body={"key": "s", "data": "late", "expected": 1}, status=409)["sequence"] == last
    log("POST", body={"events": [{"key": "s", "data": "a"}, {"key": "s", "data": "b"}], "expected": last})
    page = log("GET", "/keys/s?limit=4")
    rest = log("GET", f"/keys/s?after={page['next']}")
    assert [event["data"] for event in page["events"] + rest["events"]] == [0] + written[1:] + ["a", "b"]
    assert page["read"] >= 4 and "next" not in rest


def test_reader_of_a_key_waits_for_it(log):
    log("PUT", body={"partitions": 1})
    position = log("POST", body={"key": "s", "data": 1})["sequence"]
    got = []
    reader = threading.Thread(target=lambda: got.append(log("GET", f"/keys/s?after={position}&wait=60s")))
    reader.start()
    log("POST", body={"key": "other", "data": 2})
    assert log("GET", f"/keys/s?after={position}&wait=1ms") == {"key": "s", "events": [], "position": 2, "read": 1}
    log("POST", body={"key": "s", "data": 3})
    reader.join(90)
    assert [event["data"] for event in got[0]["events"]] == [3]
