"""The commit log: what a durable commit costs beside RocksDB's own log, and how soon a server that was killed behind
256 MB of writes answers again, beside Redis."""
import json
import os
import shutil
import signal
import subprocess
import time

import peers
import report

COMMITS = os.path.join(peers.ROOT, "build", "commits")
BATCH_VALUES = (1, 64)  # as one client's commits, and as those of 64 connections
VALUE_BYTES = 300
LOG_BYTES = 256 * 1024 * 1024
ITEM_LOG_BYTES = 300  # of one of the benchmark's items, with its key
RESTART_ITEMS = LOG_BYTES // ITEM_LOG_BYTES // 50 * 50
LOAD_CONNECTIONS = 64
LOAD_SECONDS_MAX = 600
# The server empties its log at 256 MB. A batch takes at least a block of 4 KB of it, and a counter's takes no more: so
# this is the most batches that a start may have to read back.
FULL_LOG_BYTES = 224 * 1024 * 1024
FULL_LOG = "Quipu, its log at the limit"


def measure_commits(bench):
    for values in BATCH_VALUES:
        print(f"bench: commits, values in each: {values}", flush=True)
        folder = os.path.join(bench.folder, f"commits-{values}")
        os.makedirs(folder)
        done = subprocess.run([COMMITS, f"--folder={folder}", f"--values={values}", f"--bytes={VALUE_BYTES}",
                               f"--batches={bench.pace.commits}"], capture_output=True, text=True, timeout=600)
        shutil.rmtree(folder)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        bench.results["commits"].append(json.loads(done.stdout))


def measure_restart(bench):
    """Kills the server behind the last acknowledged write; the same for Redis. Everything must be there again."""
    quipu = bench.server_new(peers.Quipu, "restart")
    quipu.start()
    bench.generate(quipu, "create", 1)
    servers = [(quipu, "load", lambda: peers.dynamo_call(quipu.port, "DescribeTable", {"TableName": "bench"})
                ["Table"]["ItemCount"])]
    redis = bench.server_new(peers.Redis, "restart-redis") if "redis" in bench.wanted else None
    if redis:
        try:
            redis.start()
            servers.append((redis, "redis-load", lambda: int(redis.ask("DBSIZE")[1:])))
        except peers.Unavailable as problem:
            bench.skip(f"{redis.name}: {problem}")
    for server, operation, count in servers:
        print(f"bench: restart of {server.name} behind {LOG_BYTES >> 20} MB of writes", flush=True)
        bench.generate(server, operation, LOAD_CONNECTIONS, LOAD_SECONDS_MAX, items=RESTART_ITEMS)
        server.stop(signal.SIGKILL)
        left = log_bytes(server.folder)
        begun = time.monotonic()
        server.start()
        found = count()
        bench.results["restart"][server.name] = {"ms": (time.monotonic() - begun) * 1000, "log_bytes": left}
        if found != RESTART_ITEMS:
            raise RuntimeError(f"{server.name}: {RESTART_ITEMS} items were acknowledged, {found} are there")
        server.stop()
    measure_full_log(bench)


def measure_full_log(bench):
    """One connection raises one counter until the log is almost as long as it may become, then the server is killed."""
    quipu = bench.server_new(peers.Quipu, "restart-full-log")
    quipu.start()
    bench.generate(quipu, "create", 1)
    print(f"bench: restart of {FULL_LOG}", flush=True)
    ended = time.monotonic() + LOAD_SECONDS_MAX
    left = 0
    while left < FULL_LOG_BYTES:
        if time.monotonic() > ended:
            raise RuntimeError(f"the log has {left} bytes after {LOAD_SECONDS_MAX} s")
        bench.generate(quipu, "counter", 1, seconds=1)
        left = log_bytes(quipu.folder)
    quipu.stop(signal.SIGKILL)
    begun = time.monotonic()
    quipu.start()
    stored = quipu.counter()
    bench.results["restart"][FULL_LOG] = {"ms": (time.monotonic() - begun) * 1000, "log_bytes": left}
    if stored != quipu.hits:
        raise RuntimeError(f"{quipu.hits} increments were acknowledged, {stored} are there")
    quipu.stop()


def log_bytes(folder):
    """Of what a start may have to read back: logs of RocksDB, segments of the journal, Redis' log and its base."""
    def is_log(path, name):
        return name.endswith((".log", ".aof", ".rdb")) and name != "server.log" or os.path.basename(path) == "journal"

    return sum(os.path.getsize(os.path.join(path, name)) for path, _, names in os.walk(folder) for name in names
               if is_log(path, name))


# ---- the report ----
def target_rows(results):
    one = commit_of(results, BATCH_VALUES[-1])
    ratio = one and one["rocksdb"]["p50_us"] / one["journal_and_memory"]["p50_us"]
    quipu, full = results["restart"].get("Quipu"), results["restart"].get(FULL_LOG)
    return [report.target_row(f"commit of {BATCH_VALUES[-1]} values, p50: RocksDB's log / ours", ratio, 1.43, " x",
                              True),
            report.target_row(f"first answer after SIGKILL behind {LOG_BYTES >> 20} MB", quipu and quipu["ms"],
                              report.RESTART_MS, " ms", False),
            report.target_row("first answer after SIGKILL, the log at its limit", full and full["ms"],
                              report.RESTART_MS, " ms", False)]


def commit_of(results, values):
    return next((one for one in results["commits"] if one["values"] == values), None)


def lines(results):
    out = []
    if results["commits"]:
        rows = [[one["values"], name, f"{one[side]['p50_us']:.0f}",
                 f"{one[side]['p99_us']:.0f}", f"{one['rocksdb']['p50_us'] / one[side]['p50_us']:.2f}",
                 f"{one['rocksdb']['p99_us'] / one[side]['p99_us']:.2f}"]
                for one in results["commits"]
                for name, side in (("RocksDB, its own log, sync", "rocksdb"), ("our log, sync", "journal"),
                                   ("our log, sync, then RocksDB's memory", "journal_and_memory"))]
        heads = ["values", "where", "p50 us", "p99 us", "RocksDB / this, p50", "p99"]
        out += ["", f"## Commits of values of {VALUE_BYTES} bytes, one after the other", "", report.table(heads, rows)]
    if results["restart"]:
        ours = results["restart"]["Quipu"]["ms"]
        rows = [[name, f"{one['log_bytes'] / 1e6:.0f}", f"{one['ms']:.0f}", f"{one['ms'] / ours:.2f}"]
                for name, one in results["restart"].items()]
        heads = ["server", "MB of logs left", "ms until the first answer", "this / Quipu"]
        out += ["", f"## Restart after SIGKILL behind {LOG_BYTES >> 20} MB of writes", "", report.table(heads, rows)]
    return out
