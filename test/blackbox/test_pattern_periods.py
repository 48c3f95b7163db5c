"""Periods over HTTP, on all engines: buckets that the server closes by itself, each event in one of them."""
import time
import uuid

import boto3
import pytest
from lambdas import eventually, send
from support.process import Quipu
from test_patterns import at_once, face  # noqa: F401: a fixture

KEYS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_DEFAULT_REGION": "us-east-1"}


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
    assert "never due" in period("PUT", body={"cron": "cron(0 9 * * ? 2025)"}, status=400)["message"]
    assert period("GET", "/buckets?limit=0", status=400)["error"] == "bad-request"
    assert period("DELETE")["deleted"] is True
    assert period("GET", "/buckets", status=404)["error"] == "no-such-period"


def test_buckets_are_listed_and_the_length_may_change(period):
    period("PUT", body={"every": "1h"}, status=201)
    first = period("POST", body={"id": "a", "data": 1}, status=201)["bucket"]
    assert [b["bucket"] for b in period("GET", "/buckets?state=open")["buckets"]] == [first]
    period("PUT", body={"every": "1s"}, status=200)
    second = period("POST", body={"id": "b", "data": 2}, status=201)["bucket"]
    for bucket in (first, second):
        assert period("GET", f"/{bucket}?wait=30s")["count"] == (2 if first == second else 1)
    listed = period("GET", "/buckets")["buckets"]
    assert [b["bucket"] for b in listed] == sorted({first, second})
    assert [b["state"] for b in listed] == ["DONE"] * len(listed)


def test_two_servers_add_the_same_ids_while_both_close():
    """Each id comes to both of them, at the same time; what one of them remembers is old for the other."""
    with Quipu("--memory", "--no-functions") as database, Quipu("--on", database.url, env=KEYS) as one, \
            Quipu("--on", database.url, env=KEYS) as other:
        assert send(one.url, "PUT", "/v1/periods/p", {"every": "1s", "shards": 2})[0] == 201

        def add(which):
            answers = []
            for number in range(40):
                url = (one, other)[which % 2].url
                status, answer = send(url, "POST", "/v1/periods/p", {"id": f"{which // 2}-{number}", "data": number})
                assert status in (200, 201), answer
                answers.append((answer["id"], answer["bucket"]))
            return answers

        told = {pair for answers in at_once(4, add) for pair in answers}
        assert len(told) == len(dict(told)) == 80, "an id was told in two buckets"
        found = []
        for bucket in sorted({bucket for _, bucket in told}):
            status, done = send(other.url, "GET", f"/v1/periods/p/{bucket}?wait=60s")
            assert status == 200 and done["state"] == "DONE" and done["count"] == len(done["events"])
            found += [(event["id"], bucket) for event in done["events"]]
        assert sorted(found) == sorted(told)


def test_a_large_bucket_is_read_in_parts(period):
    period("PUT", body={"every": "1h", "shards": 2}, status=201)
    ids = [f"{number}" for number in range(8)]
    bucket = {period("POST", body={"id": one, "data": "x" * 90000})["bucket"] for one in ids}
    period("PUT", body={"every": "1s"}, status=200)
    found = []
    for begin in sorted(bucket):
        done = period("GET", f"/{begin}?wait=60s")
        assert done["state"] == "DONE", done
        parts = [period("GET", f"/{begin}?part={part}") for part in range(1, done["parts"] + 1)]
        assert sum(len(part["events"]) for part in parts) == done["count"]
        found += [event["id"] for part in parts for event in part["events"] if len(event["data"]) == 90000]
    assert sorted(found) == ids


def test_what_became_due_while_nobody_ran_is_handed_over_once_in_order(tmp_path):
    data = str(tmp_path / "data")
    told = {}
    with Quipu("--data", data) as server:
        assert send(server.url, "PUT", "/v1/periods/p", {"every": "1s", "grace": "2s"})[0] == 201
        for number in range(30):
            told[f"e{number}"] = send(server.url, "POST", "/v1/periods/p", {"id": f"e{number}"})[1]["bucket"]
            time.sleep(0.1)
        server.kill()
    time.sleep(2)
    with Quipu("--data", data) as server:
        def look():
            return send(server.url, "GET", "/v1/periods/p/buckets")[1]["buckets"]

        eventually(lambda: sum(bucket["count"] for bucket in look()) == len(told), "all are handed over")
        buckets = look()
        assert [bucket["bucket"] for bucket in buckets] == sorted(set(told.values()))
        assert [bucket["done"] for bucket in buckets] == sorted(bucket["done"] for bucket in buckets)
        assert done_changes(server.url) == [bucket["bucket"] for bucket in buckets]


def done_changes(url):
    """The buckets that became DONE, in the order of the stream."""
    client = boto3.client("dynamodbstreams", endpoint_url=url, region_name="us-east-1", aws_access_key_id="local",
                          aws_secret_access_key="local")
    arn = client.list_streams(TableName="quipu-period-buckets")["Streams"][0]["StreamArn"]
    records = []
    for shard in client.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
        iterator = client.get_shard_iterator(StreamArn=arn, ShardId=shard["ShardId"],
                                             ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
        records += client.get_records(ShardIterator=iterator)["Records"]
    records.sort(key=lambda record: record["dynamodb"]["SequenceNumber"])
    return [r["dynamodb"]["NewImage"]["bucket"]["S"] for r in records
            if r["dynamodb"]["NewImage"]["state"]["S"] == "DONE"
            and r["dynamodb"].get("OldImage", {}).get("state", {}).get("S") == "OPEN"]
