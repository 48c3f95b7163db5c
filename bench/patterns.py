"""The patterns beside the raw calls that they make, and logs beside streams of Redis.

A pattern and all that it is compared with take turns in slices, several rounds, and the medians count. Raw calls are
DynamoDB's requests as the flow makes them, on the same tables, sent by the generator; where a flow makes several one
after the other, the time of the raw form is the sum of theirs. A batch counts as its events."""
import http.client
import json
import statistics
import time

import peers
import report

BATCH_EVENTS = 25
FIRST_TASK = 1000000

# Each: name, the generator's operation, events of one request, and those that it is compared with: name, operations,
# events, the least ratio that is wanted. Those of Redis have their names.
ROWS = (
    ("counter, next number", "counter-next", 1, (("raw UpdateItem", ("counter-raw",), 1, 0.95),)),
    ("job, task done", "job-done", 1, (("raw UpdateItem", ("job-raw-leaf",), 1, 0.95),)),
    ("log, append", "log-append", 1,
     (("raw PutItem", ("log-raw",), 1, None), ("Redis XADD, synced", ("redis-xadd",), 1, 0.8))),
    ("log of 4 partitions, append", "log-append-4", 1, (("Redis XADD, synced", ("redis-xadd",), 1, None),)),
    ("log, append of 25, in events", "log-append-25", BATCH_EVENTS,
     (("raw PutItem", ("log-raw-25",), BATCH_EVENTS, None), ("Redis XADD, synced", ("redis-xadd",), 1, 4))),
    ("log of 4 partitions, append of 25 of one key, in events", "log-append-25-4", BATCH_EVENTS,
     (("Redis XADD, synced", ("redis-xadd",), 1, 4),)),
    ("lease, granted", "lease-grant", 1, (("raw UpdateItem", ("lease-raw",), 1, None),)),
    ("lease, released", "lease-release", 1, (("raw UpdateItem", ("lease-raw-release",), 1, None),)),
)
# What is given back must have been taken: the releases of a slice are those of the grants' slice before it.
GRANTS = {"lease-release": "lease-grant", "lease-raw-release": "lease-raw"}


class Turns:
    """The servers, and the slices of each operation so far."""

    def __init__(self, bench, quipu, redis):
        self.bench, self.quipu, self.redis, self.slices = bench, quipu, redis, {}

    def generate(self, operation, **settings):
        server = self.redis if operation.startswith("redis") else self.quipu
        if operation in GRANTS:
            first = self.bench.numbers.get(GRANTS[operation], 0)
            granted = self.bench.generate(server, GRANTS[operation], report.TARGET_CONNECTIONS, **settings)
            settings = {"count": granted["total"], "first": first}
        return self.bench.generate(server, operation, report.TARGET_CONNECTIONS, **settings)

    def slice(self, operation):
        pace = self.bench.pace
        one = self.generate(operation, seconds=pace.slice_seconds, warmup=pace.slice_warmup_seconds)
        self.slices.setdefault(operation, []).append(one)

    def median(self, operation, figure):
        return statistics.median(one[figure] for one in self.slices[operation])

    def figures(self, operations, events):
        """Of calls that are made one after the other; the rate counts events."""
        rate = 1 / sum(1 / self.median(operation, "rate") for operation in operations)
        sums = {figure: sum(self.median(operation, figure) for operation in operations)
                for figure in ("p50_us", "p99_us", "cpu_us")}
        return dict(sums, rate=rate * events, events=events)


def measure(bench):
    quipu = bench.server_new(peers.Quipu, "patterns")
    quipu.start()
    redis = redis_start(bench)
    turns = Turns(bench, quipu, redis)
    prepare(bench, quipu)
    for name, ours, events, others in ROWS:
        print(f"bench: {name}", flush=True)
        able = [other for other in others if redis or not other[1][0].startswith("redis")]
        operations = sorted({ours, *(operation for other in able for operation in other[1])})
        for operation in operations:
            turns.slices.pop(operation, None)
            turns.generate(operation, seconds=bench.pace.other_warmup_slice_seconds)
        for _ in range(bench.pace.rounds[report.TARGET_CONNECTIONS]):
            for operation in operations:
                turns.slice(operation)
        row = {"name": name, "operation": ours, "others": [],
               "rates": [one["rate"] for one in turns.slices[ours]]}
        row.update(turns.figures((ours,), 1), events=events)
        for other_name, calls, other_events, target in able:
            row["others"].append(dict(turns.figures(calls, other_events), name=other_name, target=target))
        bench.results["patterns"].append(row)
    check(bench, quipu)


def redis_start(bench):
    if "redis" not in bench.wanted:
        return None
    redis = bench.server_new(peers.Redis, "patterns-redis")
    try:
        redis.start()
        return redis
    except peers.Unavailable as problem:
        bench.skip(f"{redis.name}: {problem}")
        return None


def prepare(bench, quipu):
    """The tables are made by the first calls."""
    for operation in ("job-make", "log-make", "log-make-4", "counter-next", "counter-raw-make",
                      "log-append", "lease-grant"):
        bench.generate(quipu, operation, 1, count=1)
    bench.generate(quipu, "job-done", 1, count=1, first=FIRST_TASK)


def ask(quipu, path):
    connection = http.client.HTTPConnection("127.0.0.1", quipu.port, timeout=60)
    connection.request("GET", path)
    reply = connection.getresponse()
    text = reply.read()
    connection.close()
    if reply.status != 200:
        raise RuntimeError(f"{path}: {reply.status} {text!r}")
    return json.loads(text)


def check(bench, quipu):
    """What was acknowledged must be there, once."""
    done = bench.numbers
    time.sleep(0.1)
    found = {"counter-next": ask(quipu, "/v1/counters/bench")["value"],
             "job-done": ask(quipu, "/v1/jobs/bench?exact=1")["done"] + FIRST_TASK,
             "log-append": ask(quipu, "/v1/logs/bench/partitions/0")["sequence"]}
    wanted = {"counter-next": done["counter-next"], "job-done": done["job-done"],
              "log-append": done["log-append"] + BATCH_EVENTS * done["log-append-25"]}
    for operation, number in wanted.items():
        if found[operation] != number:
            raise RuntimeError(f"{operation}: {number} were acknowledged, {found[operation]} are there")
