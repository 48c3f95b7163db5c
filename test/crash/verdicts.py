"""What must hold of patterns whatever died when: the journals of all clients against what the server has now.

Each verdict is a generator of sentences, one for each broken promise. Before it judges, it asks once more for what an
actor may have asked for when it was killed (its next request, with the same key): then nothing is unknown, and numbers
can be counted.
"""
import http.client
import json
import os
import time
import urllib.parse

from actors import BOARDS, COUNTERS, DOCUMENTS, EACH_TASKS, GROUP_EVENTS, GROUP_SIZE, LEASE_MS, LIMIT
from actors import Collector, Group, Job, Keyed, Poster, Producer, Pusher, Starter, Submitter
from actors import dynamo_headers, journal_records

SETTLE_SECONDS = 240
CLOCK_MS = 2  # moments are told in whole milliseconds


class Server:
    """Asks the server, which stays up now."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=180)

    def ask(self, method, path, body=None):
        self.connection.request(method, path, None if body is None else json.dumps(body))
        reply = self.connection.getresponse()
        text = reply.read()
        return reply.status, json.loads(text) if text else None

    def send(self, request):
        """A request of an actor's, byte by byte."""
        head, _, body = request.bytes.partition(b"\r\n\r\n")
        first, *headers = head.decode().split("\r\n")
        method, path, _ = first.split(" ")
        named = dict(header.split(": ", 1) for header in headers if not header.startswith(("Host", "Content-Length")))
        self.connection.request(method, path, body, named)
        reply = self.connection.getresponse()
        text = reply.read()
        return reply.status, json.loads(text) if text else None

    def dynamo(self, operation, request):
        self.connection.request("POST", "/", json.dumps(request), dynamo_headers(operation))
        reply = self.connection.getresponse()
        text = reply.read()
        assert reply.status == 200, f"{operation}: {reply.status} {text}"
        return json.loads(text)

    def get_item(self, table, key):
        return self.dynamo("GetItem", {"TableName": table, "Key": key, "ConsistentRead": True})["Item"]

    def get(self, path):
        status, reply = self.ask("GET", path)
        assert status == 200, f"GET {path}: {status} {reply}"
        return reply


class Records:
    """All journals together."""

    def __init__(self, seed, slots, journals):
        self.seed, self.slots = seed, slots
        self.told, self.faults = {}, []
        for journal in journals:
            for name, line in journal_records(journal):
                self.told.setdefault(name, []).append(json.loads(line)[1:])
            with open(journal) as lines:
                for line in lines:
                    if line.startswith("!"):
                        self.faults.append(line[2:].strip())

    def of(self, kind):
        """Name and records of each actor of a kind, also of those that were told nothing yet."""
        for slot in range(self.slots):
            for number in range(kind.many):
                name = f"{kind.__name__.lower()}-{slot}-{number}"
                yield name, self.told.get(name, [])

    def all(self, kind_name):
        for name, records in self.told.items():
            if name.startswith(kind_name + "-"):
                yield from records


# ---- counters ----

def keyed_counters(server, records):
    """No number twice, none left out; the same key, the same number."""
    numbers = {counter: [] for counter in range(COUNTERS)}
    for name, told in records.of(Keyed):
        for n, value in told:
            numbers[n % COUNTERS].append(value)
        _, reply = server.send(Keyed.request(name, len(told)))
        numbers[len(told) % COUNTERS].append(reply["value"])
    for counter, values in numbers.items():
        stored = server.get(f"/v1/counters/keyed-{counter}")["value"]
        if sorted(values) != list(range(1, stored + 1)):
            yield f"keyed-{counter} stands at {stored}, but {len(set(values))} of {len(values)} told numbers differ"


def plain_counter(server, records):
    """No number twice, and none above the counter's value."""
    ranges = sorted(map(tuple, records.all("plain")))
    for (_, end), (begin, _) in zip(ranges, ranges[1:]):
        if begin <= end:
            yield f"plain gave {begin} twice"
    stored = server.get("/v1/counters/plain")["value"]
    if ranges and ranges[-1][1] > stored:
        yield f"plain stands at {stored}, but {ranges[-1][1]} was told"


# ---- jobs ----

def jobs(server, records):
    """One last caller for each job, and all its tasks counted."""
    told, lasts = dict(records.of(Job)), {}
    waves = 1 + max((record[0] for told_one in told.values() for record in told_one), default=-1)
    for wave in range(waves):
        server.ask("PUT", f"/v1/jobs/job-{wave}", Job.head(records.seed, wave))
    for name, told_one in told.items():
        known = {(wave, i): last for wave, i, last in told_one}
        for wave in range(waves):
            for i, call in enumerate(Job.calls(records.seed, records.slots, name, wave)):
                last = known.get((wave, i))
                if last is None:
                    status, reply = server.send(Job.request(name, wave, i, call))
                    last = status == 200 and reply["last"]
                if last:
                    lasts.setdefault(wave, []).append(f"{name}-{wave}-{i}")
    for wave in range(waves):
        job, total = server.get(f"/v1/jobs/job-{wave}"), Job.head(records.seed, wave)["total"]
        if len(lasts.get(wave, [])) != 1:
            yield f"job-{wave}: {lasts.get(wave)} were told to be last"
        if job["state"] != "COMPLETE" or job["done"] != total:
            yield f"job-{wave} of {total} tasks: {job}"


# ---- groups ----

def groups(server, records):
    """Each event in one generation, the one that was told; each generation is full and was completed once."""
    told, completed = {}, {}
    for name, told_one in records.of(Group):
        for n, generation, is_completer in told_one:
            told[f"{name}-{n}"] = (n // GROUP_EVENTS, generation)
            if is_completer:
                key = (n // GROUP_EVENTS, generation)
                completed[key] = completed.get(key, 0) + 1
        n = len(told_one)
        _, reply = server.send(Group.request(name, n))
        told[f"{name}-{n}"] = (n // GROUP_EVENTS, reply["generation"])
    yield from (f"key-{key} generation {g} was completed by {n}" for (key, g), n in completed.items() if n > 1)
    found = {}
    for key in sorted({key for key, _ in told.values()}):
        newest = server.get(f"/v1/groups/tens/key-{key}")["generation"]
        for generation in range(1, newest + 1):
            group = server.get(f"/v1/groups/tens/key-{key}?generation={generation}")
            full = len(group["events"]) == GROUP_SIZE
            if full != (group["state"] == "COMPLETE") or (generation < newest and not full):
                yield f"key-{key} generation {generation} is {group['state']} with {len(group['events'])} events"
            for event in group["events"]:
                if event["id"] in found:
                    yield f"{event['id']} is in {found[event['id']]} and in {(key, generation)}"
                found[event["id"]] = (key, generation)
    for event, where in told.items():
        if found.get(event) != where:
            yield f"{event} was told to be in {where} and is in {found.get(event)}"


# ---- logs ----

def partition_events(server, partition):
    """All events of a partition; their numbers have no gap."""
    events = []
    while True:
        after = events[-1]["sequence"] if events else 0
        page = server.get(f"/v1/logs/crash/partitions/{partition}?after={after}&limit=1000")
        events += page["events"]
        if not page["events"] or events[-1]["sequence"] >= page["sequence"]:
            return events, page


def logs(server, records):
    """Without gap, each event once and where it was told to be; events of a key in the order of their calls."""
    told = {}
    for name, told_one in records.of(Producer):
        n = len(told_one)
        _, reply = server.send(Producer.request(records.seed, name, n))
        places = [[int(event["partition"]), event["sequence"]] for event in reply["events"]]
        for number, where in told_one + [[n, places]]:
            for part, place in enumerate(where):
                told[(name, number, part)] = tuple(place)
    open_partitions = [int(part["partition"]) for part in server.get("/v1/logs/crash")["open"]]
    found, keys, sequences = {}, {}, {}
    for partition in range(max(open_partitions) + 1):
        events, page = partition_events(server, partition)
        sequences[partition] = page["sequence"]
        base = max((parent["end"] for parent in page.get("parents", [])), default=0)
        if [event["sequence"] for event in events] != list(range(base + 1, page["sequence"] + 1)):
            yield f"partition {partition} of {page['sequence']} has {len(events)} events, or a gap"
        for event in events:
            what = (event["data"]["from"], event["data"]["number"], event["data"]["part"])
            if what in found:
                yield f"{what} is in the log twice, at {found[what]} and {partition}, {event['sequence']}"
            found[what] = (partition, event["sequence"])
            keys.setdefault(event["key"], []).append(what[1:])
    for what, where in told.items():
        if found.get(what) != where:
            yield f"{what} was told to be at {where} and is at {found.get(what)}"
    yield from (f"the events of {key} are not in order" for key, order in keys.items() if order != sorted(order))
    yield from consumers(server, records, sequences)


def consumers(server, records, sequences):
    """Nothing is acknowledged twice, and all is read to its end."""
    acked = {}
    for partition, fence, first, last in records.all("consumer"):
        acked.setdefault(partition, []).append((first, last, fence))
    for partition, ranges in acked.items():
        ranges.sort()
        for (_, end, fence), (begin, _, later) in zip(ranges, ranges[1:]):
            if begin <= end or later < fence:
                yield f"partition {partition}: {begin} was acknowledged by fence {later}, {end} before by {fence}"
        if ranges[-1][1] > sequences[partition]:
            yield f"partition {partition}: {ranges[-1][1]} was acknowledged, of {sequences[partition]}"
    deadline, path = time.monotonic() + SETTLE_SECONDS, "/v1/logs/crash/consumers/all"
    while time.monotonic() < deadline:
        status, read = server.ask("POST", f"{path}/read", {"owner": "last", "max": 1000, "wait": "1s"})
        if status == 200 and read["events"]:
            server.ask("POST", f"{path}/ack", {"partition": read["partition"], "fence": read["fence"],
                                               "sequence": read["events"][-1]["sequence"]})
        elif server.get(f"{path}/lag")["lag"] == 0:
            return
    yield f"not all is read: {server.get(f'{path}/lag')}"


# ---- leases ----

def leases(_, records):
    """A fence has one holder, and nobody holds a lease while another does: who was not given it back took it when it
    was over by its own time, and who took it after that was told so after its holder had begun to give it back. (The
    time of a grant is that of its request, which may have waited while the lease was given back.)"""
    grants = {}
    for name, fence, what, moment, *told in records.all("holder"):
        if what == "until" and (name, fence) in grants:
            yield f"{name}: fence {fence} twice"
        grant = grants.setdefault((name, fence), {"begin": moment - LEASE_MS, "released": float("inf")})
        if what == "released":
            grant["released"] = moment
        else:
            grant["until"] = moment
            grant["told"] = grant.get("told", *told)
    for (name, fence), grant in grants.items():
        following = grants.get((name, fence + 1))
        if following is None:
            continue
        if following["begin"] < grant["until"] - CLOCK_MS and following["told"] < grant["released"] - CLOCK_MS:
            yield f"{name}: {fence} held it until {grant}, the next {following}"


# ---- once ----

def once(server, records):
    """A thing has one result, which all are told, and a fence one caller."""
    results, fences = {}, set()
    for thing, what, told in records.all("doer"):
        if what == "told":
            results.setdefault(thing, set()).add(told)
        elif (thing, told) in fences:
            yield f"thing {thing}: fence {told} twice"
        else:
            fences.add((thing, told))
    yield from (f"thing {thing} has the results {some}" for thing, some in results.items() if len(some) > 1)
    for thing in sorted(results)[-50:]:
        stored = server.get(f"/v1/once/things/{thing}")
        if {stored.get("result")} != results[thing]:
            yield f"thing {thing}: {stored}, and {results[thing]} was told"


# ---- limits ----

def limits(_, records):
    """Between any two moments no more was given than a burst and what the rate allows; what was given stands by the
    call's begin and end, between which it was."""
    taken = sorted(records.all("taker"))
    if not taken:
        yield "nothing was given"
    for first in range(0, len(taken), max(1, len(taken) // 100)):
        begin, given = taken[first][0], 0
        by_end = sorted(((end, count) for start, end, count in taken[first:]))
        for end, count in by_end:
            given += count
            most = LIMIT["burst"] + LIMIT["rate"] * (end - begin + CLOCK_MS) / 1000
            if given > most:
                yield f"{given} were given from {begin} to {end}, {most:.0f} are allowed"
                break


# ---- documents ----

def documents(server, records):
    """No patch is lost, and a version is told once."""
    stored = [server.get(f"/v1/documents/crash/shared-{i}") for i in range(DOCUMENTS)]
    versions, last = {}, {}
    for n, version, member in records.all("patcher"):
        versions.setdefault((n % DOCUMENTS, version), []).append(f"{member}: {n}")
        last[(n % DOCUMENTS, member)] = n
    for (i, member), n in last.items():
        if stored[i].get(member, 0) < n:
            yield f"{member} was told {n}, shared-{i} has {stored[i].get(member)}"
    yield from (f"{who} were told the same version {what}" for what, who in versions.items() if len(who) > 1)
    written, value = list(records.all("writer")), server.get("/v1/documents/crash/sum")["value"]
    if len({version for version, _ in written}) != len(written):
        yield "two writers were told the same version"
    yield from (f"version {version} has value {told}" for version, told in written if told != version - 1)
    if value < max((told for _, told in written), default=0):
        yield f"the sum is {value}, less than was told"


# ---- work ----

def work(server, records):
    """Every unit is finished, once, by one fence."""
    finished = {}
    for unit, fence in records.all("labourer"):
        finished.setdefault(unit, set()).add(fence)
    yield from (f"{unit} was finished by {sorted(fences)}" for unit, fences in finished.items() if len(fences) > 1)
    submitted = []
    for name, told in records.of(Submitter):
        submitted += [f"{name}-{n}" for n, in told]
    left, deadline = set(submitted), time.monotonic() + SETTLE_SECONDS
    while left and time.monotonic() < deadline:
        for unit in sorted(left):
            state = server.get(f"/v1/work/units/{unit}")
            if state["state"] != "DONE":
                continue
            left.discard(unit)
            if state["result"] not in finished.get(unit, {state["result"]}):
                yield f"{unit} is {state}, but {finished[unit]} finished it"
        status, unit = 0, None
        if left:
            status, unit = server.ask("POST", "/v1/work/units/claim", {"owner": "last", "wait": "1s"})
        while status == 200:
            server.ask("POST", f"/v1/work/units/{unit['id']}/finish", {"fence": unit["fence"], "result": unit["fence"]})
            status, unit = server.ask("POST", "/v1/work/units/claim", {"owner": "last", "wait": "600ms"})
    yield from (f"{unit} was never finished" for unit in sorted(left))


# ---- push ----

def push(server, records):
    """The function was called for every unit and every event, the events of a key in order."""
    deadline, path = time.monotonic() + SETTLE_SECONDS, "/v1/logs/crash/consumers/pushed"
    units = [f"{name}-{n}" for name, told in records.of(Pusher) for n, in told]
    left = set(units)
    while time.monotonic() < deadline and (left or server.get(f"{path}/lag")["lag"]):
        left = {unit for unit in left if server.get(f"/v1/work/pushed/{unit}")["state"] != "DONE"}
        time.sleep(0.2)
    lag = server.get(f"{path}/lag")
    if lag["lag"] or lag["parked"]:
        yield f"not all is called for: {lag}"
    yield from (f"{unit} was never finished" for unit in sorted(left))
    called, keys = set(), {}
    with open(os.environ["QUIPU_CRASH_PUSHED"]) as notes:  # where the function has noted its calls
        for line in notes:
            for key, what in json.loads(line):
                if (key, str(what)) not in called and key:
                    keys.setdefault(key, []).append(what)
                called.add((key, str(what)))
    yield from (f"the function was not called for {unit}" for unit in units if ("", unit) not in called)
    yield from (f"the events of {key} were called out of order" for key, told in keys.items() if told != sorted(told))
    open_partitions = [int(part["partition"]) for part in server.get("/v1/logs/crash")["open"]]
    for partition in range(max(open_partitions) + 1):
        for event in partition_events(server, partition)[0]:
            what = [event["data"]["number"], event["data"]["part"]]
            if (event["key"], str(what)) not in called:
                yield f"the function was not called for {what} of {event['key']}"


# ---- each ----

def each_notes():
    """What the function has noted: the results it gave, by job and task, and the ends it was told, by job."""
    given, ends = {}, {}
    with open(os.environ["QUIPU_CRASH_PUSHED"] + ".each") as notes:
        for line in notes:
            event, result = json.loads(line)
            if "detail" in event:
                ends.setdefault(event["detail"]["id"], []).append(event)
            else:
                given.setdefault((event["job"], event["task"]), []).append((event.get("item"), result))
    return given, ends


def each_judge(job, results, given, ends):
    """One job: its results are among those that the function gave, and its end is one event, with all of them."""
    if [one["task"] for one in results] != list(range(EACH_TASKS)):
        yield f"{job} has results of {[one['task'] for one in results]}"
    is_plain = Starter.head(int(job.split("-")[-1]))[0].get("total")
    for one in results:
        if ([one["task"]] if not is_plain else None, one.get("result")) not in given.get((job, one["task"]), []):
            yield f"{job}: {one} is none of {given.get((job, one['task']))}"
    if len({end["id"] for end in ends}) != 1:
        yield f"{job}: its end has the ids {[end['id'] for end in ends]}"
    for end in ends:
        if end["detail"]["state"] != "COMPLETE" or end["detail"]["results"] != results:
            yield f"{job}: it was told to end as {end['detail']}, its results are {results}"


def each(server, records):
    """Every task was called, one result of it counts, and the end of each job is told once, with all results."""
    deadline, jobs_of_all = time.monotonic() + SETTLE_SECONDS, []
    for name, told in records.of(Starter):
        for request in Starter.requests(name, len(told)):  # perhaps it was opened, perhaps by half
            status, reply = server.send(request)
            if status not in (200, 201):
                yield f"each-{name}-{len(told)}: {status} {reply}"
        jobs_of_all += [f"each-{name}-{n}" for n in range(len(told) + 1)]
    for job in jobs_of_all:
        state = server.get(f"/v1/jobs/{job}?wait=20s")
        while state["state"] == "OPEN" and time.monotonic() < deadline:
            state = server.get(f"/v1/jobs/{job}?wait=20s")
        if (state["state"], state["total"], state.get("done")) != ("COMPLETE", EACH_TASKS, EACH_TASKS):
            yield f"{job} is {state}"
    told, ends = 0, {}
    while (told < len(jobs_of_all) or len(ends) < len(jobs_of_all)) and time.monotonic() < deadline:
        time.sleep(0.1)
        told, (given, ends) = server.get("/v1/counters/each-ends")["value"], each_notes()
    if told != len(jobs_of_all):
        yield f"{told} ends of {len(jobs_of_all)} jobs were told"
    for job in jobs_of_all:
        results = sorted(listed(server, f"/v1/jobs/{job}/results", "", lambda one: one), key=lambda one: one["task"])
        yield from each_judge(job, results, given, ends.get(job, []))


# ---- boards ----

def boards(server, records):
    """Each message is there once, under the id that was told."""
    found = {}
    for board in range(BOARDS):
        after = ""
        while True:
            messages = server.get(f"/v1/boards/wall-{board}?limit=1000{after}")["messages"]
            for message in messages:
                if message["text"] in found:
                    yield f"{message['text']} was posted twice"
                found[message["text"]] = message["id"]
            if not messages:
                break
            after = f"&after={messages[-1]['id']}"
    for name, told in records.of(Poster):
        n = len(told)
        for number, message in told:
            if found.get(f"{name}-{number}") != message:
                yield f"{name}-{number} was posted as {message}, there is {found.get(f'{name}-{number}')}"
        found.pop(f"{name}-{n}", None)
        for number in range(n):
            found.pop(f"{name}-{number}", None)
    yield from (f"nobody posted {text}" for text in found)


# ---- periods ----

def bucket_ids(server, bucket):
    """The events of a bucket that is over, all parts of it."""
    ids, part, deadline = [], 1, time.monotonic() + SETTLE_SECONDS
    server.ask("POST", "/v1/periods/seconds/close")
    while True:
        reply = server.get(f"/v1/periods/seconds/{bucket}?wait=10s")
        if reply["state"] == "DONE" or time.monotonic() > deadline:
            break
    while "parts" in reply and part <= reply["parts"]:
        ids += [event["id"] for event in server.get(f"/v1/periods/seconds/{bucket}?part={part}")["events"]]
        part += 1
    return reply["state"], ids


def periods(server, records):
    """Every bucket is handed over, and each event is in one, the one that was told."""
    told, found = {}, {}
    for name, told_one in records.of(Collector):
        told.update({f"{name}-{n}": bucket for n, bucket in told_one})
        _, reply = server.send(Collector.request(name, len(told_one)))
        told[f"{name}-{len(told_one)}"] = reply["bucket"]
    time.sleep(1.1)  # the last second is over
    for bucket in sorted(set(told.values())):
        state, ids = bucket_ids(server, bucket)
        if state != "DONE":
            yield f"bucket {bucket} is {state}"
        for one in ids:
            if one in found:
                yield f"{one} is in {found[one]} and in {bucket}"
            found[one] = bucket
    lost = [event for event, bucket in told.items() if found.get(event) != bucket]
    yield from (f"{event} was told to be in {told[event]} and is in {found.get(event)}" for event in lost)


# ---- histories ----

def versions_of(server, key, wanted):
    """The numbers in an item's versions, once there are so many: they are recorded behind the changes."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        versions = server.get(f"/v1/history/crash/{key}?limit=1000")["versions"]
        versions = [version for version in versions if version["event"] != "BASELINE"]
        if len(versions) >= wanted or time.monotonic() > deadline:
            return [version["item"]["n"] for version in versions]
        time.sleep(0.1)


def histories(server, records):
    """An item's history is all its changes, each once, in order, up to what it is now."""
    told = {}
    for key, number in records.all("changer"):
        if number in told.setdefault(key, set()):
            yield f"{key} was told {number} twice"
        told[key].add(number)
    for key, numbers in told.items():
        item = server.get_item("crash", {"pk": {"S": key}})
        now = int(item["n"]["N"])
        found = versions_of(server, key, now)
        if found != list(range(1, now + 1)) or max(numbers) > now:
            yield f"{key} is {now}, {max(numbers)} was told, its history has {len(found)} versions"


# ---- lists ----

def scanned(server, table, attribute):
    """All values of an attribute in a table."""
    values, request = set(), {"TableName": table, "ConsistentRead": True}
    while True:
        page = server.dynamo("Scan", request)
        values |= {item[attribute]["S"] for item in page["Items"] if attribute in item}
        if "LastEvaluatedKey" not in page:
            return values
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def listed(server, path, query, read):
    """What a list tells, over its pages."""
    found, after = [], ""
    while after is not None:
        page = server.get(f"{path}?limit=50{query}" + (after and "&after=" + urllib.parse.quote(after)))
        found += [read(one) for one in next(value for value in page.values() if isinstance(value, list))]
        after = page.get("next")
    return found


def lists(server, records):
    """Whatever has been made is listed, once, however its making was interrupted; nothing else is."""
    for kind, table, attribute in (("counters", "quipu-counters", "name"), ("leases", "quipu-leases", "name"),
                                   ("limits", "quipu-limits", "name"), ("boards", "quipu-boards", "board"),
                                   ("documents", "quipu-documents", "collection")):
        there, found = scanned(server, table, attribute), listed(server, f"/v1/{kind}", "", lambda one: one["name"])
        if sorted(found) != sorted(there):
            yield (f"of {len(there)} {kind} {len(there - set(found))} are not listed, "
                   f"and {len(set(found) - there)} others are")


def whole_table(server, records):
    """A table with a history as of now is the table, once all changes are recorded."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        now = scanned(server, "crash", "pk")
        found = listed(server, "/v1/history/crash", "&at=2999-01-01T00:00:00Z", lambda one: one["keys"]["pk"])
        if sorted(found) == sorted(now):
            return
        if time.monotonic() > deadline:
            yield f"of {len(now)} items the history tells {len(found)}, {len(set(found) & now)} of them there"
            return
        time.sleep(0.1)


VERDICTS = {
    "numbers with keys: none twice, none left out": keyed_counters,
    "numbers without: none twice": plain_counter,
    "jobs: one last caller, every task counted": jobs,
    "groups: one completion, each event in one generation": groups,
    "logs: no gap, nothing twice, order of keys, acknowledged once, read to the end": logs,
    "leases: one holder at a time, fences grow": leases,
    "once: one result, which all are told": once,
    "limits: no more than a burst and the rate": limits,
    "documents: no patch lost, versions once": documents,
    "work: finished once, by one fence": work,
    "push: called for every unit and event, in the order of keys": push,
    "each: every task called, every result counted once, every end told once, with all results": each,
    "boards: every message once": boards,
    "periods: every bucket done, every event in one": periods,
    "histories: every change once, in order": histories,
    "histories: the table as of now is the table": whole_table,
    "lists: what is there is listed": lists,
}
