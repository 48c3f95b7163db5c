"""Periods over HTTP, on three engines: buckets that the server closes by itself, each event in one of them."""
import time
import uuid

import pytest
from test_patterns import at_once, face  # noqa: F401: a fixture


@pytest.fixture
def period(face):  # noqa: F811
    path = "/v1/periods/" + uuid.uuid4().hex[:8]

    def ask(method, more="", body=None, status=None):
        got, reply, _ = face.ask(method, path + more, body)
        assert got in ((status,) if status else (200, 201)), (method, more, body, got, reply)
        return reply

    return ask


def test_every_event_is_handed_over_once(period):
    period("PUT", body={"every": "1s"}, status=201)
    ids = [f"{i}" for i in range(40)]

    def add(which):
        answers = []
        for n in range(which, len(ids), 4):
            answers.append(period("POST", body={"id": ids[n], "data": n}))
            time.sleep(0.05)
        return answers

    told = {answer["id"]: answer["bucket"] for answers in at_once(4, add) for answer in answers}
    assert sorted(told) == sorted(ids)
    again = period("POST", body={"id": "7", "data": 7}, status=200)
    assert again["bucket"] == told["7"]
    found = {}
    for bucket in sorted(set(told.values())):
        done = period("GET", f"/{bucket}?wait=30s")
        assert done["state"] == "DONE" and done["count"] == len(done["events"])
        for event in done["events"]:
            assert found.setdefault(event["id"], bucket) == bucket and event["data"] == int(event["id"])
    assert found == told


def test_errors_have_their_own_words(period):
    assert period("POST", body={"data": 1}, status=404)["error"] == "no-such-period"
    assert period("PUT", body={"cron": "every noon"}, status=400)["error"] == "bad-request"
    assert period("PUT", body={"every": "soon"}, status=400)["error"] == "bad-request"
    period("PUT", body={"cron": "0 9 * * 1-5", "zone": "Europe/Berlin"}, status=201)
    assert period("POST", body={"data": "x" * 420000}, status=413)["error"] == "too-large"
    assert period("GET", "/yesterday", status=400)["error"] == "bad-request"
    assert period("DELETE")["deleted"] is True
