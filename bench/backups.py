"""Backups beside writers: what 64 writers do alone, while whole copies are made one after the other, and while a
follower ships the log; how long a copy takes, and how far the follower is behind. Then CreateBackup beside the
checkpoint that it is made of, each behind a second of writes, so that both have something to flush."""
import http.client
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import threading
import time

import peers
import report

QUIPU = os.path.join(peers.ROOT, "build", "quipu")
CONNECTIONS = 64
ROUNDS = 5
SAMPLE_SECONDS = 0.05
FLUSH_SECONDS = 1  # of writes before each backup and each checkpoint
SHARE_BESIDE_COPIES = 0.7  # of what writers do alone
LAG_SECONDS = 1
LAG = re.compile(r'quipu_backup_lag_(batches|seconds){follower="[^"]*"} ([0-9.]+)')


class Copies:
    """Whole copies, one after the other, until it is stopped; the time of each that came to its end."""

    def __init__(self, server, folder):
        self.server, self.folder, self.seconds, self.bytes, self.stopping = server, folder, [], 0, False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.stopping or not self.seconds:
            begun = time.monotonic()
            done = subprocess.run([QUIPU, "backup", "--on", f"http://127.0.0.1:{self.server.port}", self.folder],
                                  capture_output=True, text=True)
            if done.returncode != 0:
                raise RuntimeError(done.stderr)
            self.seconds.append(time.monotonic() - begun)
            self.bytes = sum(os.path.getsize(os.path.join(path, name)) for path, _, names in os.walk(self.folder)
                             for name in names)
            shutil.rmtree(self.folder)

    def stop(self):
        self.stopping = True
        self.thread.join()


class Following:
    """A follower, and samples of its lag."""

    def __init__(self, server, folder):
        self.server, self.samples, self.stopping = server, {"batches": [], "seconds": []}, False
        command = [QUIPU, "backup", "--follow", "--on", f"http://127.0.0.1:{server.port}", folder]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        while self.lag().get("batches") != "0":  # it was away, or was never here
            time.sleep(SAMPLE_SECONDS)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def lag(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        connection.request("GET", "/metrics")
        found = dict(LAG.findall(connection.getresponse().read().decode()))
        connection.close()
        return found

    def run(self):
        while not self.stopping:
            for name, value in self.lag().items():
                self.samples[name].append(float(value))
            time.sleep(SAMPLE_SECONDS)

    def stop(self):
        self.stopping = True
        self.thread.join()
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)


def back_up(server):
    """CreateBackup until it is AVAILABLE; then it goes."""
    begun = time.monotonic()
    arn = peers.dynamo_call(server.port, "CreateBackup",
                            {"TableName": "bench", "BackupName": "bench"})["BackupDetails"]["BackupArn"]
    while peers.dynamo_call(server.port, "DescribeBackup", {"BackupArn": arn})[
            "BackupDescription"]["BackupDetails"]["BackupStatus"] != "AVAILABLE":
        time.sleep(0.001)
    taken = time.monotonic() - begun
    peers.dynamo_call(server.port, "DeleteBackup", {"BackupArn": arn})
    return taken


def checkpoint(server):
    """What `quipu backup` copies from; then it goes."""
    begun = time.monotonic()
    made = backup_call(server, "POST", "/v1/backup/checkpoints?target=bench")
    taken = time.monotonic() - begun
    backup_call(server, "DELETE", f"/v1/backup/checkpoints/{made['id']}")
    return taken


def backup_call(server, method, path):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
    connection.request(method, path)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    if response.status >= 300:
        raise RuntimeError(f"{method} {path}: {response.status} {body.decode()}")
    return json.loads(body) if body else None


def measure_moments(bench, server, items):
    """Milliseconds of each, in turns."""
    taken = {"CreateBackup": [], "a checkpoint": []}
    for _ in range(ROUNDS):
        for name, take in (("CreateBackup", back_up), ("a checkpoint", checkpoint)):
            bench.generate(server, "put-item", CONNECTIONS, items=items, seconds=FLUSH_SECONDS)
            taken[name].append(take(server) * 1000)
    return {name: {"median": statistics.median(values), "most": max(values)} for name, values in taken.items()}


def share(rates, alone):
    """The median of the rounds' ratios; a short round on a machine that is very busy may have no write at all."""
    return statistics.median([rate / whole for rate, whole in zip(rates, alone) if whole] or [0])


def measure(bench):
    server = bench.server_new(peers.Quipu, "backups")
    server.start()
    items = bench.pace.large_items
    print(f"bench: backups of {items:,} items beside {CONNECTIONS} writers", flush=True)
    bench.fill(server, items)
    rates, seconds, size, samples = {"alone": [], "copies": [], "follower": []}, [], 0, {"batches": [], "seconds": []}
    folder = os.path.join(bench.folder, "backups-target")
    for _ in range(ROUNDS):
        for name in rates:
            beside = {"copies": Copies, "follower": Following}.get(name)
            # The first seconds after a rest are better than what lasts: files are merged only later.
            bench.generate(server, "put-item", CONNECTIONS, items=items, seconds=bench.pace.backup_warmup_seconds)
            running = beside(server, f"{folder}-{name}") if beside else None
            rates[name].append(bench.generate(server, "put-item", CONNECTIONS, items=items,
                                              seconds=bench.pace.backup_slice_seconds)["rate"])
            if running:
                running.stop()
            if name == "copies":
                seconds += running.seconds
                size = running.bytes
            if name == "follower":
                for kind, values in running.samples.items():
                    samples[kind] += values
    bench.results["backups"] = {
        "items": items, "bytes": size, "seconds": statistics.median(seconds),
        "rates": {name: statistics.median(values) for name, values in rates.items()},
        "share": {name: share(values, rates["alone"]) for name, values in rates.items()},
        "lag": {kind: {"median": statistics.median(values), "most": max(values)} for kind, values in samples.items()},
        "moments": measure_moments(bench, server, items)}


def target_rows(results):
    found = results.get("backups") or None
    return [report.target_row("writers beside whole copies / alone", found and found["share"]["copies"],
                              SHARE_BESIDE_COPIES, " x", True),
            report.target_row("a follower's lag, at most", found and found["lag"]["seconds"]["most"], LAG_SECONDS, " s",
                              False)]


def lines(results):
    found = results.get("backups")
    if not found:
        return []
    words = {"alone": "alone", "copies": "while whole copies are made, one after the other",
             "follower": "while a follower ships the log"}
    rows = [[words[name], f"{found['rates'][name]:,.0f}", f"{found['share'][name]:.2f}"] for name in words]
    lag = found["lag"]
    moments = [[name, f"{ms['median']:,.1f}", f"{ms['most']:,.1f}"] for name, ms in found["moments"].items()]
    return ["", f"## Backups of {found['items']:,} items beside {CONNECTIONS} writers (PutItem)", "",
            report.table(["writers", "writes/s", "of alone, median of rounds"], rows), "",
            f"A whole copy of {found['bytes'] / 1e6:.0f} MB beside them: {found['seconds']:.1f} s. The follower's lag: "
            f"median {lag['batches']['median']:.0f} batches, {lag['seconds']['median']:.3f} s; at most "
            f"{lag['batches']['most']:.0f} batches, {lag['seconds']['most']:.3f} s.", "",
            report.table([f"behind {FLUSH_SECONDS} s of writes, {ROUNDS} times", "median ms", "most ms"], moments)]
