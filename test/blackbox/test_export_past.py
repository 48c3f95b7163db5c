"""Exports of moments that are over, and of the changes between two of them. The clock stands still and is moved by the
tests, so that it is known when everything was written."""
import gzip
import json
import os
import threading
import time
import urllib.request

import pytest
from support.wire import Closed, Connection
from test_transfer import (ANN, BOB, Place, arn_of, call, exported, in_order, make_recoverable, read_key, start_export,
                           wait_export)

MINUTE = 60 * 1000


class Moments(Place):
    """A place with a clock."""

    def __init__(self, *arguments):
        super().__init__("--test-hooks", *arguments)
        self.set_clock({"freeze": True})

    def set_clock(self, body):
        request = urllib.request.Request(f"{self.server.url}/_quipu/clock", json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=120) as reply:
            return json.load(reply)["now"]

    def later(self, ms):
        return self.set_clock({"advance_ms": ms})

    def put(self, *arguments, **more):
        if len(arguments) == 2 and isinstance(arguments[1], dict):
            return self.client.put_item(TableName=arguments[0], Item=arguments[1])
        return super().put(*arguments, **more)

    def delete(self, name, item):
        return self.client.delete_item(TableName=name, Key={"pk": item["pk"]})

    def export(self, name, **more):
        begun = start_export(self, name, **more)
        reply = call(self, "DescribeExport", {"ExportArn": begun["ExportArn"]}).json["ExportDescription"]
        assert {**begun, **reply}["ExportArn"] == begun["ExportArn"]
        wait_export(self.client, begun["ExportArn"])
        return call(self, "DescribeExport", {"ExportArn": begun["ExportArn"]}).json["ExportDescription"]

    def increment(self, name, from_ms, to_ms=None, view=None, **more):
        specification = {"ExportFromTime": from_ms / 1000}
        if to_ms:
            specification["ExportToTime"] = to_ms / 1000
        if view:
            specification["ExportViewType"] = view
        return self.export(name, ExportType="INCREMENTAL_EXPORT", IncrementalExportSpecification=specification, **more)


@pytest.fixture(scope="module", params=["disk", "memory"])
def place(request, tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("buckets"))
    place = Moments(*(["--memory", "--s3-folder", folder] if request.param == "memory" else []))
    if request.param == "memory":
        place.buckets = folder
        os.makedirs(os.path.join(folder, "photos"))
    yield place
    place.server.close()


def text(**attributes):
    return {name: {"S": value} for name, value in attributes.items()}


# ---- full exports ----

def test_a_table_as_it_was(place, unused_name):
    make_recoverable(place.client, unused_name, ANN)
    first = place.later(MINUTE)
    place.later(1)
    place.put(unused_name, BOB)
    place.delete(unused_name, ANN)
    second = place.later(MINUTE)
    place.later(5 * MINUTE)
    place.delete(unused_name, BOB)
    place.later(MINUTE)
    for moment, wanted in [(first, [ANN]), (first + 1, [BOB]), (second, [BOB])]:
        ended = place.export(unused_name, ExportTime=moment / 1000)
        assert ended["ExportTime"] * 1000 == pytest.approx(moment, abs=0.5)
        assert [record["Item"] for record in exported(place, ended)] == wanted
        summary = json.loads(read_key(place, ended["ExportManifest"]))
        assert summary["version"] == "2020-06-30" and summary["exportTime"].endswith(f".{moment % 1000:03}Z")
    assert exported(place, place.export(unused_name)) == []
    filter = {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": ANN["pk"]}}
    for moment, wanted in [(first, [ANN]), (second, [])]:
        ended = place.export(unused_name, ExportTime=moment / 1000, FilterSpecification=filter)
        assert [record["Item"] for record in exported(place, ended)] == wanted


def test_moments_that_are_refused(place, unused_name):
    place.later(3 * MINUTE)
    make_recoverable(place.client, unused_name, ANN)
    now = place.later(MINUTE)
    for moment in (now - 5 * MINUTE, now + 5 * MINUTE):
        reply = call(place, "ExportTableToPointInTime",
                     {"TableArn": arn_of(unused_name), "S3Bucket": "photos", "ExportTime": moment / 1000})
        assert (reply.type, reply.message) == ("InvalidExportTimeException", "Export Time is invalid")


# ---- incremental exports ----

def changes_of(place, name):
    """Writes a history into the table. Answers when it began and ended, and what is to be told of each item."""
    same, changed, gone, back = (text(pk=key, v="0") for key in ("same", "changed", "gone", "back"))
    make_recoverable(place.client, name, same, changed, gone, back)
    place.later(MINUTE)
    place.delete(name, gone)  # just before
    place.put(name, gone)
    start = place.later(1)
    times = {}
    place.put(name, text(pk="changed", v="1"))  # in the first moment
    place.put(name, text(pk="short", v="1"))
    times["back"] = place.later(MINUTE)
    place.delete(name, back)
    place.put(name, back)
    times["changed"] = times["gone"] = place.later(MINUTE)
    place.put(name, text(pk="changed", v="2"))
    place.delete(name, gone)
    place.delete(name, text(pk="short"))
    times["new"] = end = place.later(20 * MINUTE)
    place.put(name, text(pk="new", v="1"))
    end = place.later(1)
    place.put(name, text(pk="late", v="1"))  # in the moment that is not part of it any more
    place.put(name, text(pk="changed", v="3"))
    place.later(MINUTE)
    wanted = {"changed": (changed, text(pk="changed", v="2")), "gone": (gone, None), "back": (back, back),
              "new": (None, text(pk="new", v="1"))}
    return start, end, times, wanted


def test_the_changes_between_two_moments(place, unused_name):
    start, end, times, wanted = changes_of(place, unused_name)
    ended = place.increment(unused_name, start, end, S3Prefix="some/where")
    assert ended["IncrementalExportSpecification"] == {
        "ExportFromTime": pytest.approx(start / 1000), "ExportToTime": pytest.approx(end / 1000),
        "ExportViewType": "NEW_AND_OLD_IMAGES"}
    assert ended["ExportType"] == "INCREMENTAL_EXPORT" and "ExportTime" not in ended
    assert (ended["ItemCount"], ended["BilledSizeBytes"]) == (4, 10000000)
    found = {record["Keys"]["pk"]["S"]: record for record in exported(place, ended)}
    for key, (before, after) in wanted.items():
        record = {"Metadata": {"WriteTimestampMicros": {"N": str(times[key] * 1000)}}, "Keys": text(pk=key)}
        record |= ({"OldImage": before} if before else {}) | ({"NewImage": after} if after else {})
        assert found.pop(key) == record
    assert not found
    summary = json.loads(read_key(place, ended["ExportManifest"]))
    identity = ended["ExportArn"].rsplit("/", 1)[1]
    assert ended["ExportManifest"] == f"some/where/AWSDynamoDB/{identity}/manifest-summary.json"
    assert (summary["version"], summary["exportType"], summary["outputView"]) == (
        "2023-08-01", "INCREMENTAL_EXPORT", "NEW_AND_OLD_IMAGES")
    assert summary["exportFromTime"].endswith(f".{start % 1000:03}Z") and "exportTime" not in summary
    assert summary["exportToTime"].endswith(f".{end % 1000:03}Z")
    line = json.loads(read_key(place, ended["ExportManifest"].replace("-summary", "-files")))
    assert line["dataFileS3Key"].startswith("some/where/AWSDynamoDB/data/")
    listed = call(place, "ListExports", {"TableArn": arn_of(unused_name)}).json["ExportSummaries"]
    assert [one["ExportType"] for one in listed] == ["INCREMENTAL_EXPORT"]


def test_the_changes_in_other_forms(place, unused_name):
    start, end, times, wanted = changes_of(place, unused_name)
    ended = place.increment(unused_name, start, end, view="NEW_IMAGE")
    found = {record["Keys"]["pk"]["S"]: record for record in exported(place, ended)}
    assert {key: record.get("NewImage") for key, record in found.items()} == {
        key: after for key, (_, after) in wanted.items()}
    assert not any("OldImage" in record for record in found.values())
    # the form of Ion is as the service's documentation shows it
    ended = place.increment(unused_name, start, end, ExportFormat="ION")
    file = json.loads(read_key(place, ended["ExportManifest"].replace("-summary", "-files")))
    lines = gzip.decompress(read_key(place, file["dataFileS3Key"])).decode().splitlines()
    assert f'$ion_1_0 {{Record:{{Metadata:{{WriteTimestampMicros:{times["gone"] * 1000}.}},Keys:{{pk:"gone"}},' \
           'OldImage:{pk:"gone",v:"0"}}}' in lines and len(lines) == 4
    # a filter looks at what is new, and of what is gone at what was there
    filter = {"FilterExpression": "v <> :v", "ProjectionExpression": "v",
              "ExpressionAttributeValues": {":v": {"S": "0"}}}
    ended = place.increment(unused_name, start, end, FilterSpecification=filter)
    found = {record["Keys"]["pk"]["S"]: record for record in exported(place, ended)}
    assert sorted(found) == ["changed", "new"]
    assert (found["changed"]["OldImage"], found["changed"]["NewImage"]) == (text(v="0"), text(v="2"))
    filter = {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "gone"}}}
    only, = exported(place, place.increment(unused_name, start, end, FilterSpecification=filter))
    assert only["Keys"] == text(pk="gone")
    everything = {record["Keys"]["pk"]["S"]: record for record in
                  exported(place, place.increment(unused_name, start))}  # to now
    assert everything["changed"]["NewImage"] == text(pk="changed", v="3") and "late" in everything


def test_increments_one_after_the_other_lead_to_the_table(place, unused_name):
    """A full export and the increments behind it, applied in order, are the table."""
    make_recoverable(place.client, unused_name, *(text(pk=f"k{number}", v="0") for number in range(20)))
    moments = [place.later(MINUTE)]
    for step in range(3):
        for number in range(30):
            place.later(1000)
            if (number + step) % 3:
                place.put(unused_name, text(pk=f"k{number}", v=str(step)))
            else:
                place.delete(unused_name, text(pk=f"k{number}"))
        moments.append(place.later(16 * MINUTE))
    place.later(MINUTE)
    copy = {record["Item"]["pk"]["S"]: record["Item"] for record in
            exported(place, place.export(unused_name, ExportTime=moments[0] / 1000))}
    assert len(copy) == 20
    for start, end in zip(moments, moments[1:]):
        for record in exported(place, place.increment(unused_name, start, end)):
            key = record["Keys"]["pk"]["S"]
            assert copy.get(key) == record.get("OldImage")
            if "NewImage" in record:
                copy[key] = record["NewImage"]
            else:
                del copy[key]
        whole = exported(place, place.export(unused_name, ExportTime=(end - 1) / 1000))
        assert in_order(copy.values()) == in_order(record["Item"] for record in whole)


@pytest.mark.parametrize("from_ms, to_ms, message", [
    (-20 * MINUTE, -MINUTE, "Incremental export period from time cannot be less than the table creation time : "),
    (-MINUTE, MINUTE, "Incremental export period to time cannot be greater than the current time : "),
    (0, 14 * MINUTE, "Difference between export period from time and export period to time is less than 15 minutes"),
    (0, 24 * 60 * MINUTE + 1000,
     "Difference between export period from time and export period to time is greater than 24 hours"),
])
def test_windows_that_are_refused(place, unused_name, from_ms, to_ms, message):
    made = place.later(MINUTE) // 1000 * 1000 + 1000
    make_recoverable(place.client, unused_name)
    now = place.later(1500 * MINUTE if to_ms > 20 * MINUTE else 20 * MINUTE)
    base = now if from_ms == -MINUTE else made
    specification = {"ExportFromTime": (base + from_ms) / 1000, "ExportToTime": (base + to_ms) / 1000}
    reply = call(place, "ExportTableToPointInTime", {
        "TableArn": arn_of(unused_name), "S3Bucket": "photos", "ExportType": "INCREMENTAL_EXPORT",
        "IncrementalExportSpecification": specification})
    assert reply.type == "InvalidExportTimeException" and reply.message.startswith(message), reply.message


# ---- under load, and killed ----

class Writer(threading.Thread):
    """Puts and deletes items that are its own, and remembers when each request was sent and answered."""

    def __init__(self, place, name, number):
        super().__init__()
        self.url, self.table, self.stops = place.server.url, name, threading.Event()
        self.keys = [f"w{number}-{key}" for key in range(20)]
        self.history = {key: [] for key in self.keys}  # of each: [sent, answered or None, item or None]
        self.count = 0

    def run(self):
        try:
            with Connection(self.url) as connection:
                while not self.stops.is_set():
                    self.write(connection)
        except (OSError, Closed):
            pass  # the server was killed: the last request may have been done or not

    def write(self, connection):
        key = self.keys[self.count % len(self.keys)]
        item = text(pk=key, v=str(self.count)) if self.count % 7 else None
        request = {"TableName": self.table, **({"Item": item} if item else {"Key": text(pk=key)})}
        entry = [time.time(), None, item]
        self.history[key].append(entry)
        self.count += 1
        assert connection.call("PutItem" if item else "DeleteItem", request).status == 200
        entry[1] = time.time()

    def allowed(self, key, before, after):
        """What the item may have been at a moment between these two times."""
        history = [[0, 0, None], *self.history[key]]
        done = before - 0.002
        last = max(n for n, (_, answered, _) in enumerate(history) if answered is not None and answered < done)
        return [item for n, (sent, _, item) in enumerate(history) if n == last or (n > last and sent <= after)]


def run_writers(place, name, numbers):
    writers = [Writer(place, name, number) for number in numbers]
    for writer in writers:
        writer.start()
    return writers


def wait_for_writes(writers, count):
    until, least = time.monotonic() + 180, {writer: writer.count + count for writer in writers}
    while any(writer.count < least[writer] for writer in writers):
        assert time.monotonic() < until and all(writer.is_alive() for writer in writers)
        time.sleep(0.005)


def test_exports_of_the_past_are_exact_though_the_server_is_killed():
    name, place = "loaded", Moments()
    place.set_clock({"reset": True})
    try:
        make_recoverable(place.client, name, *(text(pk=f"old-{n}", v="0") for n in range(50)))
        time.sleep(0.01)
        start = place.later(0)
        writers = run_writers(place, name, range(3))
        wait_for_writes(writers, 60)
        for writer in writers:
            writer.stops.set()
            writer.join()
        place.later(16 * MINUTE)
        writers = run_writers(place, name, range(3, 6))
        wait_for_writes(writers, 60)
        before = time.time()
        end = place.later(0)
        after = time.time()
        wait_for_writes(writers, 30)
        place.later(5000)
        whole = start_export(place, name, ExportTime=(end - 1) / 1000)["ExportArn"]
        changes = start_export(place, name, ExportType="INCREMENTAL_EXPORT", IncrementalExportSpecification={
            "ExportFromTime": start / 1000, "ExportToTime": end / 1000})["ExportArn"]
        place.crash("--test-hooks")
        for writer in writers:
            writer.join()
        place.set_clock({"now": end + 20000})
        first = place.export(name, ExportTime=(start - 1) / 1000)
        state = {record["Item"]["pk"]["S"]: record["Item"] for record in exported(place, first)}
        assert sorted(state) == sorted(f"old-{n}" for n in range(50))
        found = {record["Item"]["pk"]["S"]: record["Item"] for record in
                 exported(place, wait_export(place.client, whole))}
        for record in exported(place, wait_export(place.client, changes)):
            key = record["Keys"]["pk"]["S"]
            assert state.get(key) == record.get("OldImage")
            state[key] = record.get("NewImage")
        assert {key: item for key, item in state.items() if item} == found
        for writer in writers:
            for key in writer.keys:
                assert found.get(key) in writer.allowed(key, before, after), (key, writer.history[key])
    finally:
        place.server.close()
