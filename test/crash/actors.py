"""The clients of the crash test of patterns: one process with many connections, which is killed and started again.

  actors.py PORT SLOT SLOTS SEED JOURNAL   until SIGTERM, or until killed

An actor asks one thing after the other on a connection of its own, and repeats what was not answered until it is, as a
client does that was told nothing. What it was told stands in the journal of its process before it goes on: one write
for all that came together, so SIGKILL loses no line that a later request relies on. A process that is started again
reads its journal and goes on where the last one was killed: all that an actor asks follows from its name, the seed
and what it was told, so what was perhaps asked for is asked for again, with the same idempotency key.

Lines of the journal: "# {pattern: operations}" counts what was answered; "! sentence" is a broken promise; all others
are [actor, ...] in JSON, read by verdicts.py.
"""
import json
import os
import random
import select
import signal
import socket
import sys
import time
from datetime import datetime

RETRY_SECONDS = 0.02
ANSWER_SECONDS = 120
COUNTERS, LEASES, DOCUMENTS, BOARDS = 4, 4, 3, 3
LEASE_MS = 300
LIMIT = {"rate": 40, "per": "1s", "burst": 10}
GROUP_SIZE, GROUP_EVENTS = 10, 20  # events of a generation; events that an actor adds to one key
CHANGES = 100  # of an item
JOB_SIZES = (1, 2, 255, 256, 257, 300, 700)
EACH_TASKS = 20  # of a job that the server does by itself


class Request:
    """What an actor yields: sent again and again until it is answered."""

    def __init__(self, pattern, method, path, body=None, headers=None):
        text = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(text)}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        self.pattern, self.bytes = pattern, "\r\n".join(lines).encode() + b"\r\n\r\n" + text


class Sleep:
    def __init__(self, seconds):
        self.seconds = seconds


class Reply:
    def __init__(self, status, head, body):
        self.status, self.head = status, head
        self.json = json.loads(body) if body else None

    def etag(self):
        return next(line.split(b'"')[1].decode() for line in self.head.split(b"\r\n") if line.startswith(b"ETag:"))


def dynamo_headers(operation):
    return {"X-Amz-Target": f"DynamoDB_20120810.{operation}", "Content-Type": "application/x-amz-json-1.0",
            "Authorization": "AWS4-HMAC-SHA256 Credential=local/20261115/us-east-1/dynamodb/aws4_request, "
                             "SignedHeaders=host, Signature=0"}


def milliseconds(text):
    return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


# ---- actors: generators of requests, each with its name, its random numbers and what it was told before ----

class Actor:
    def __init__(self, process, number):
        kind = type(self).__name__.lower()
        self.process, self.number = process, number
        self.name = f"{kind}-{process.slot}-{number}"
        self.count, self.last = process.told.get(self.name, (0, None))  # how much it was told, and what at last
        self.rng = random.Random(f"{process.seed}/{self.name}/{self.count}")

    def note(self, *what):
        self.process.lines.append(json.dumps([self.name, *what]))

    def expect(self, fine, sentence):
        if not fine:
            self.process.lines.append(f"! {self.name}: {sentence}")


class Keyed(Actor):
    """Numbers with a key each: nothing twice, nothing left out."""
    many = 3

    @staticmethod
    def request(name, n):
        key = {"Idempotency-Key": f"{name}-{n}"}
        return Request("counter", "POST", f"/v1/counters/keyed-{n % COUNTERS}", None, key)

    def run(self):
        n = self.count
        while True:
            reply = yield self.request(self.name, n)
            self.expect(reply.status == 200, reply.json)
            self.note(n, reply.json["value"])
            if self.rng.random() < 0.05:
                again = yield self.request(self.name, n)
                self.expect(again.json == reply.json, f"{again.json} after {reply.json}")
            n += 1


class Plain(Actor):
    """Numbers and blocks without a key: some may be left out, none comes twice."""
    many = 4

    def run(self):
        last = 0
        while True:
            block = self.rng.choice((None, None, None, 5))
            reply = yield Request("counter", "POST", "/v1/counters/plain", block and {"block": block})
            self.expect(reply.status == 200, reply.json)
            first, end = (reply.json["first"], reply.json["last"]) if block else (reply.json["value"],) * 2
            self.expect(first > last and end - first + 1 == (block or 1), f"{reply.json} after {last}")
            last = end
            self.note(first, end)


class Job(Actor):
    """All do their tasks of one job after the other, some twice. Each call has a key, so whoever was the last is told
    so again."""
    many = 4

    @staticmethod
    def head(seed, wave):
        rng = random.Random(f"{seed}/job/{wave}")
        total = rng.choice(JOB_SIZES)
        return {"total": total, "layout": "set" if wave % 5 == 4 and total <= 300 else "tree"}

    @classmethod
    def calls(cls, seed, slots, name, wave):
        """What this actor says is done, call by call."""
        _, slot, number = name.split("-")
        own, all_actors = int(slot) * cls.many + int(number), slots * cls.many
        total = cls.head(seed, wave)["total"]
        rng = random.Random(f"{seed}/{name}/{wave}")
        tasks = [task for task in range(total) if task % all_actors == own]
        rng.shuffle(tasks)
        calls = []
        while tasks:
            some = tasks[:rng.choice((1, 1, 1, 4))]
            tasks = tasks[len(some):]
            if rng.random() < 0.05:
                some.append(rng.randrange(total))
            calls.append({"tasks": some})
        return calls

    @staticmethod
    def request(name, wave, i, call):
        return Request("job", "POST", f"/v1/jobs/job-{wave}/done", call, {"Idempotency-Key": f"{name}-{wave}-{i}"})

    def run(self):
        wave, i = self.last[:2] if self.last else (0, -1)
        while True:
            calls = self.calls(self.process.seed, self.process.slots, self.name, wave)
            if i < 0:
                reply = yield Request("job", "PUT", f"/v1/jobs/job-{wave}", self.head(self.process.seed, wave))
                self.expect(reply.status in (200, 201), reply.json)
            for at in range(i + 1, len(calls)):
                reply = yield self.request(self.name, wave, at, calls[at])
                self.expect(reply.status == 200, reply.json)
                self.expect(reply.json["complete"] or not reply.json["last"], reply.json)
                self.note(wave, at, reply.json["last"])
            wave, i = wave + 1, -1


class Group(Actor):
    """Events of many for one key, ten to a generation. So many are large that some have items of their own."""
    many = 4

    @staticmethod
    def request(name, n):
        return Request("group", "POST", f"/v1/groups/tens/key-{n // GROUP_EVENTS}",
                       {"id": f"{name}-{n}", "data": n if n % 3 else "x" * 400})

    def run(self):
        n = self.count
        while True:
            reply = yield self.request(self.name, n)
            self.expect(reply.status in (200, 201), reply.json)
            self.note(n, reply.json["generation"], reply.json["completed"])
            n += 1


class Producer(Actor):
    """Appends one event or several, each with a token."""
    many = 4

    @staticmethod
    def events(seed, name, n):
        rng = random.Random(f"{seed}/{name}/{n}")
        return [{"key": f"{name}-{rng.randrange(3)}", "data": {"from": name, "number": n, "part": part},
                 "token": f"{name}-{n}-{part}"} for part in range(rng.choice((1, 1, 1, 2, 8)))]

    @classmethod
    def request(cls, seed, name, n):
        return Request("log", "POST", "/v1/logs/crash", {"events": cls.events(seed, name, n)})

    def run(self):
        n = self.count
        while True:
            reply = yield self.request(self.process.seed, self.name, n)
            self.expect(reply.status == 201, reply.json)
            self.note(n, [[int(event["partition"]), event["sequence"]] for event in reply.json["events"]])
            n += 1


class Consumer(Actor):
    """Reads and acknowledges; now and then it forgets what it has read."""
    many = 2

    def run(self):
        path = "/v1/logs/crash/consumers/all"
        while True:
            wanted = {"owner": self.name, "max": 50, "for": "1s", "wait": "1s"}
            reply = yield Request("log", "POST", f"{path}/read", wanted)
            if reply.status == 204:
                continue
            self.expect(reply.status == 200, reply.json)
            read = reply.json
            numbers = [event["sequence"] for event in read["events"]]
            first = read["position"] + 1
            if first == 1 and numbers:  # a partition that a split made begins behind its parent's numbers
                first = numbers[0]
            wanted = list(range(first, first + len(numbers)))
            self.expect(numbers == wanted, f"read {numbers} behind {read['position']}")
            if not numbers or self.rng.random() < 0.03:
                continue
            fence = {"partition": read["partition"], "fence": read["fence"]}
            reply = yield Request("log", "POST", f"{path}/ack", {**fence, "sequence": numbers[-1]})
            self.expect(reply.status in (200, 409), reply.json)
            if reply.status == 200:
                self.note(int(read["partition"]), read["fence"], numbers[0], numbers[-1])


class Holder(Actor):
    """Takes a lease and gives it back, perhaps after making it longer, or keeps it until it ends."""
    many = 4

    def run(self):
        fences = {}
        while True:
            name, owner = f"lease-{self.rng.randrange(LEASES)}", f"{self.name}-{self.rng.randrange(1 << 40)}"
            path = f"/v1/leases/{name}"
            reply = yield Request("lease", "POST", path, {"owner": owner, "for": f"{LEASE_MS}ms", "wait": "1s"})
            if reply.status != 200:
                self.expect(reply.status == 409, reply.json)
                continue
            fence = reply.json["fence"]
            self.expect(fence > fences.get(name, 0), f"fence {fence} after {fences.get(name)}")
            fences[name] = fence
            self.note(name, fence, "until", milliseconds(reply.json["until"]), int(time.time() * 1000))
            luck = self.rng.random()
            if luck < 0.3:
                yield Sleep(0.05)
            if luck < 0.05:
                reply = yield Request("lease", "PUT", path, {"owner": owner, "fence": fence, "for": f"{LEASE_MS}ms"})
                self.expect(reply.status in (200, 409), reply.json)
                if reply.status == 200:
                    self.note(name, fence, "renewed", milliseconds(reply.json["until"]))
            if luck < 0.9:
                self.note(name, fence, "released", int(time.time() * 1000))
                reply = yield Request("lease", "DELETE", f"{path}?owner={owner}&fence={fence}")
                self.expect(reply.status in (200, 409), reply.json)


class Doer(Actor):
    """All do one thing after the other, each once: who may begins it and ends it, gives it up, or just goes away."""
    many = 3

    def run(self):
        thing = self.last[0] if self.last else 0
        while True:
            path, owner = f"/v1/once/things/{thing}", f"{self.name}-{self.rng.randrange(1 << 40)}"
            reply = yield Request("once", "POST", path, {"owner": owner, "for": f"{LEASE_MS}ms", "wait": "1s"})
            if reply.status == 200:
                self.note(thing, "told", reply.json["result"])
                thing += 1
                continue
            if reply.status != 201:
                self.expect(reply.status == 409, reply.json)
                continue
            fence, luck = reply.json["fence"], self.rng.random()
            self.note(thing, "begun", fence)
            if luck < 0.1:
                continue
            end = "fail" if luck < 0.3 else "finish"
            body = {"fence": fence, "result": owner} if end == "finish" else {"fence": fence}
            reply = yield Request("once", "POST", f"{path}/{end}", body)
            self.expect(reply.status in (200, 409), reply.json)
            if end == "finish" and reply.status == 200:
                self.note(thing, "told", owner)
                thing += 1


class Taker(Actor):
    """Takes from one limit as fast as it may; what it was given stands with the time of its call."""
    many = 3

    def run(self):
        while True:
            begun = int(time.time() * 1000)
            reply = yield Request("limit", "POST", "/v1/limits/crash", {**LIMIT, "count": self.rng.choice((1, 1, 3))})
            self.expect(reply.status in (200, 429), reply.json)
            if reply.status == 200:
                self.note(begun, int(time.time() * 1000), reply.json["given"])
            else:
                yield Sleep(min(reply.json["retryAfter"], 500) / 1000)


class Patcher(Actor):
    """Its own member of documents that all patch. A process that is started again takes another member: what the killed
    one had asked for last may still be written after what is asked for now."""
    many = 3

    def run(self):
        n, member = self.count, f"{self.name}-{os.getpid()}"
        while True:
            n += 1
            reply = yield Request("document", "PATCH", f"/v1/documents/crash/shared-{n % DOCUMENTS}", {member: n})
            self.expect(reply.status == 200, reply.json)
            self.note(n, reply.json["version"], member)


class Writer(Actor):
    """Reads a document and writes it by its version."""
    many = 2

    def run(self):
        path = "/v1/documents/crash/sum"
        while True:
            reply = yield Request("document", "GET", path)
            self.expect(reply.status == 200, reply.json)
            value, version = reply.json["value"], reply.etag()
            reply = yield Request("document", "PUT", path, {"value": value + 1}, {"If-Match": f'"{version}"'})
            self.expect(reply.status in (200, 412), reply.json)
            if reply.status == 200:
                self.note(reply.json["version"], value + 1)


class Submitter(Actor):
    many = 1

    def run(self):
        n = self.count
        while True:
            reply = yield Request("work", "POST", f"/v1/work/units/{self.name}-{n}", {"data": n})
            self.expect(reply.status in (200, 201), reply.json)
            self.note(n)
            n += 1
            yield Sleep(0.004)


class Labourer(Actor):
    """Claims and finishes; sometimes it fails, or dies with what it has."""
    many = 3

    def run(self):
        while True:
            reply = yield Request("work", "POST", "/v1/work/units/claim", {"owner": self.name, "wait": "200ms"})
            if reply.status != 200 or self.rng.random() < 0.03:
                self.expect(reply.status in (200, 204), reply.json)
                continue
            unit, fence = reply.json["id"], reply.json["fence"]
            path = f"/v1/work/units/{unit}"
            if self.rng.random() < 0.05:
                reason = {"fence": fence, "reason": "bad luck", "after": "1ms"}
                reply = yield Request("work", "POST", f"{path}/fail", reason)
                self.expect(reply.status in (200, 409), reply.json)
                continue
            reply = yield Request("work", "POST", f"{path}/finish", {"fence": fence, "result": fence})
            self.expect(reply.status in (200, 409), reply.json)
            if reply.status == 200:
                self.expect(reply.json["result"] == fence, reply.json)
                self.note(unit, fence)


class Pusher(Actor):
    """Submits units that the server hands to a function by itself."""
    many = 1

    def run(self):
        n = self.count
        while True:
            reply = yield Request("push", "POST", f"/v1/work/pushed/{self.name}-{n}", {"data": n})
            self.expect(reply.status in (200, 201), reply.json)
            self.note(n)
            n += 1
            yield Sleep(0.02)


class Starter(Actor):
    """Opens jobs whose tasks the server hands to a function by itself, one after the other: with a total, with items,
    and with items that come one by one."""
    many = 1

    @staticmethod
    def head(n):
        """The settings of a job, and the items that follow; the item of task i is [i]."""
        settings = {"each": "pushed", "concurrency": 1 + n % 8, "attempts": 100, "backoff": "1ms",
                    "then": ["pushed", {"call": "POST /v1/counters/each-ends"}]}
        if n % 3 == 0:
            settings["total"] = EACH_TASKS
        elif n % 3 == 1:
            settings["items"] = [[i] for i in range(EACH_TASKS)]
        return settings, [[i] for i in range(EACH_TASKS)] if n % 3 == 2 else []

    @classmethod
    def requests(cls, name, n):
        """All that opens a job; whatever of it was asked before may be asked again."""
        path, (settings, items) = f"/v1/jobs/each-{name}-{n}", cls.head(n)
        yield Request("each", "PUT", path, settings)
        for i, item in enumerate(items):
            end = "&end=true" if i + 1 == len(items) else ""
            yield Request("each", "POST", f"{path}/items?from={i}{end}", item)

    def run(self):
        n = self.count
        while True:
            for request in self.requests(self.name, n):
                reply = yield request
                self.expect(reply.status in (200, 201), reply.json)
            state = "OPEN"
            while state == "OPEN":
                reply = yield Request("each", "GET", f"/v1/jobs/each-{self.name}-{n}?wait=1s")
                state = reply.json.get("state")
            self.expect(state == "COMPLETE", reply.json)
            self.note(n)
            n += 1


class Poster(Actor):
    """Posts to boards of all, and sometimes to its own, which it empties before."""
    many = 2

    @staticmethod
    def request(name, n):
        return Request("board", "POST", f"/v1/boards/wall-{n % BOARDS}", {"text": f"{name}-{n}"},
                       {"Idempotency-Key": f"{name}-{n}"})

    def run(self):
        n = self.count
        while True:
            reply = yield self.request(self.name, n)
            self.expect(reply.status == 201, reply.json)
            self.note(n, reply.json["id"])
            n += 1
            if n % 20 == 0:
                yield from self.own_board()

    def own_board(self):
        path = f"/v1/boards/own-{self.name}-{self.count}"
        reply = yield Request("board", "DELETE", path)
        self.expect(reply.status == 200, reply.json)
        key = f"{self.name}-own-{self.rng.randrange(1 << 40)}"
        posted = yield Request("board", "POST", path, {"text": "here"}, {"Idempotency-Key": key})
        reply = yield Request("board", "GET", path)
        ids = [message["id"] for message in reply.json["messages"]]
        self.expect(ids == [posted.json["id"]], f"{ids} on an empty board, {posted.json['id']} was posted")


class Collector(Actor):
    """Adds to the bucket of the present second."""
    many = 2

    @staticmethod
    def request(name, n):
        return Request("period", "POST", "/v1/periods/seconds", {"id": f"{name}-{n}", "data": n})

    def run(self):
        n = self.count
        while True:
            reply = yield self.request(self.name, n)
            self.expect(reply.status in (200, 201), reply.json)
            self.note(n, reply.json["bucket"])
            n += 1


class Changer(Actor):
    """Changes items of a table that has a history, without any pattern."""
    many = 2

    def run(self):
        n = self.count
        while True:
            key = f"{self.name}-{n // CHANGES}"
            reply = yield Request("history", "POST", "/", {
                "TableName": "crash", "Key": {"pk": {"S": key}}, "UpdateExpression": "ADD n :one",
                "ExpressionAttributeValues": {":one": {"N": "1"}}, "ReturnValues": "UPDATED_NEW"},
                                  dynamo_headers("UpdateItem"))
            self.expect(reply.status == 200, reply.json)
            self.note(key, int(reply.json["Attributes"]["n"]["N"]))
            n += 1


KINDS = (Keyed, Plain, Job, Group, Producer, Consumer, Holder, Doer, Taker, Patcher, Writer, Submitter, Labourer,
         Pusher, Starter, Poster, Collector, Changer)


# ---- the process ----

class Line:
    """An actor, its connection, and what it waits for."""

    def __init__(self, process, actor):
        self.process, self.steps, self.socket = process, actor.run(), None
        self.request, self.answer, self.wake_at = None, b"", None

    def go_on(self, reply):
        """The next thing that the actor wants; it is sent when the journal is written."""
        wanted = self.steps.send(reply)
        if isinstance(wanted, Sleep):
            self.request, self.wake_at = None, time.monotonic() + wanted.seconds
            self.process.sleeping.add(self)
        else:
            self.request = wanted
            self.process.unsent.append(self)

    def send(self):
        self.answer = b""
        try:
            if self.socket is None:
                self.socket = socket.create_connection(("127.0.0.1", self.process.port), timeout=ANSWER_SECONDS)
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.process.poll.register(self.socket, select.EPOLLIN)
                self.process.lines_by_fd[self.socket.fileno()] = self
            self.socket.sendall(self.request.bytes)
        except OSError:
            self.retry()

    def retry(self):
        """The server is gone, or has no time: the same again, a little later."""
        if self.socket is not None:
            self.process.poll.unregister(self.socket)
            del self.process.lines_by_fd[self.socket.fileno()]
            self.socket.close()
            self.socket = None
        self.wake_at = time.monotonic() + RETRY_SECONDS
        self.process.sleeping.add(self)

    def receive(self):
        try:
            part = self.socket.recv(1 << 18)
        except OSError:
            part = b""
        if not part:
            self.retry()
            return
        self.answer += part
        end = self.answer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self.answer[:end]
        at = head.find(b"Content-Length: ")
        length = int(head[at + 16:].split(b"\r\n", 1)[0]) if at >= 0 else 0
        if len(self.answer) < end + 4 + length:
            return
        status = int(self.answer[9:12])
        if status == 503:
            self.retry()
            return
        counts = self.process.counts
        counts[self.request.pattern] = counts.get(self.request.pattern, 0) + 1
        self.go_on(Reply(status, head, self.answer[end + 4:]))


class Process:
    def __init__(self, port, slot, slots, seed, journal, without=()):
        self.without = without  # kinds of actors, by name
        self.port, self.slot, self.slots, self.seed = port, slot, slots, seed
        self.told, self.lines, self.counts = told_before(journal), [], {}
        self.journal = os.open(journal, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        os.write(self.journal, b"\n")  # a line that SIGKILL cut off ends here
        self.poll, self.lines_by_fd = select.epoll(), {}
        self.unsent, self.sleeping, self.over = [], set(), False

    def run(self):
        lines = [Line(self, kind(self, number)) for kind in KINDS if kind.__name__ not in self.without
                 for number in range(kind.many)]
        for line in lines:
            line.go_on(None)
        while not self.over:
            self.write()
            unsent, self.unsent = self.unsent, []
            for line in unsent:
                line.send()
            for fd, _ in self.poll.poll(self.pause()):
                self.lines_by_fd[fd].receive()
            self.wake()
        self.write()

    def pause(self):
        if not self.sleeping:
            return 0.5
        return max(0, min(line.wake_at for line in self.sleeping) - time.monotonic())

    def wake(self):
        now = time.monotonic()
        for line in [line for line in self.sleeping if line.wake_at <= now]:
            self.sleeping.remove(line)
            if line.request is None:
                line.go_on(None)
            else:
                self.unsent.append(line)

    def write(self):
        """What was told is on record before anything that follows from it is asked."""
        if not self.counts and not self.lines:
            return
        text = "\n".join([f"# {json.dumps(self.counts)}", *self.lines, ""])
        os.write(self.journal, text.encode())
        self.counts, self.lines = {}, []


def journal_records(journal):
    """Actor and text of each record, in order. A line that SIGKILL cut off is none."""
    if not os.path.exists(journal):
        return
    with open(journal) as lines:
        for line in lines:
            if line.startswith("[") and line.endswith("]\n"):
                yield line[2:line.index('"', 2)], line


def told_before(journal):
    """How many records each actor has, and the last one, without its name."""
    counts, last = {}, {}
    for name, line in journal_records(journal):
        counts[name] = counts.get(name, 0) + 1
        last[name] = line
    return {name: (count, json.loads(last[name])[1:]) for name, count in counts.items()}


def main():
    port, slot, slots, seed, journal, *without = sys.argv[1:]
    process = Process(int(port), int(slot), int(slots), int(seed), journal, without)

    def stop(*_):
        process.over = True
    signal.signal(signal.SIGTERM, stop)
    process.run()


if __name__ == "__main__":
    main()
