"""quipu backup, quipu restore and quipu serve --keep-log: copies under load, at any moment, and after somebody was
killed. What was acknowledged is compared item by item with what is restored."""
import datetime
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import pytest
from support.fixtures import boto_client, create_table
from support.process import BINARY, Quipu, clean_environment, free_port, run_quipu
from support.wire import Connection, request_bytes

PATIENCE = 180  # seconds, of what only hangs when it is broken
TABLE = "things"


def moment(milliseconds):
    stamp = datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.timezone.utc)
    return stamp.strftime("%Y-%m-%dT%H:%M:%S.") + f"{milliseconds % 1000:03d}Z"


def now():
    return int(time.time() * 1000)


def until(condition):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not come to pass")


def backup(*words):
    result = run_quipu("backup", *words)
    assert result.returncode == 0, result.stderr
    return result


def restored(target, *flags):
    """All items of what is restored, after a check of the folder."""
    with tempfile.TemporaryDirectory(prefix="quipu-restored-") as folder:
        place = os.path.join(folder, "data")
        result = run_quipu("restore", str(target), place, *flags)
        assert result.returncode == 0, result.stderr
        checked = run_quipu("check", "--data", place)
        assert checked.returncode == 0 and " 0 faults" in checked.stdout, checked.stdout
        scanned = run_quipu("scan", TABLE, "--on", place, "--json")
        assert scanned.returncode == 0, scanned.stderr
        return {(item["pk"], item["n"]) for item in map(json.loads, scanned.stdout.splitlines())}


def put(client, key, number=0):
    client.put_item(TableName=TABLE, Item={"pk": {"S": key}, "n": {"N": str(number)}, "text": {"S": "x" * 100}})


class Writers:
    """Each puts items w-0, w-1, ... one after the other, over restarts of the server, until it is told to stop."""

    def __init__(self, url, count=4):
        self.url, self.acknowledged, self.stopping = url, [0] * count, False
        self.threads = [threading.Thread(target=self.run, args=(nth,), daemon=True) for nth in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self, nth):
        client, number = boto_client(self.url), 0
        while not self.stopping:
            try:
                put(client, f"{nth}-{number}", number)
            except Exception:
                time.sleep(0.05)  # the same item again: whether it was written is not known
                continue
            number += 1
            self.acknowledged[nth] = number

    def await_more(self, count):
        goal = sum(self.acknowledged) + count
        until(lambda: sum(self.acknowledged) >= goal)

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join(PATIENCE)

    def compare(self, items, before):
        """Of each writer a run of items without a gap, with all that was acknowledged before."""
        for nth, least in enumerate(before):
            numbers = sorted(n for pk, n in items if pk.startswith(f"{nth}-"))
            assert numbers == list(range(len(numbers)))
            assert len(numbers) >= least


@pytest.fixture
def target(tmp_path):
    return str(tmp_path / "backups")


def test_under_load_everything_acknowledged_before_is_in_it_and_a_second_one_copies_less(target):
    with Quipu() as server:
        create_table(boto_client(server.url), TABLE)
        writers = Writers(server.url)
        try:
            writers.await_more(200)
            before = list(writers.acknowledged)
            first = backup("--on", server.url, target)
            writers.await_more(200)
            later = list(writers.acknowledged)
            second = backup("--on", server.url, target)
        finally:
            writers.stop()
        writers.compare(restored(target), later)
        copied = [list(map(int, re.search(r"Copied (\d+) of (\d+) files", said.stderr).groups()))
                  for said in (first, second)]
        assert copied[0][0] == copied[0][1] and copied[1][0] < copied[1][1]
        # The first one's moment: the end of its log, which its last line tells.
        end = re.search(r"everything up to (\S+) can be restored", first.stderr).group(1)
        at_first = restored(target, "--at", end)
        writers.compare(at_first, before)
        assert len(at_first) < sum(writers.acknowledged)
        assert not os.listdir(os.path.join(server.folder, "data")).count("copies") or \
            not os.listdir(os.path.join(server.folder, "data", "copies"))


def test_one_that_is_killed_leaves_the_older_ones_and_the_next_goes_on(target):
    files = os.path.join(target, "files")
    with Quipu() as server:
        client = boto_client(server.url)
        create_table(client, TABLE)
        put(client, "old", 1)
        backup("--on", server.url, target)
        older = set(os.listdir(files))
        for number in range(60):  # 18 MB: files of several pieces
            client.put_item(TableName=TABLE, Item={"pk": {"S": f"large-{number}"}, "n": {"N": str(number)},
                                                   "bytes": {"B": os.urandom(300000)}})
        for more in (1, 1, 1, 1, 2):
            killed = subprocess.Popen([BINARY, "backup", "--on", server.url, target], env=clean_environment(),
                                      stderr=subprocess.DEVNULL)
            until(lambda: len(set(os.listdir(files)) - older) >= more or killed.poll() is not None)
            killed.kill()
            killed.wait()
            assert ("old", 1) in restored(target)
        backup("--on", server.url, target)
    assert restored(target) == {("old", 1)} | {(f"large-{number}", number) for number in range(60)}
    assert " 0 faults" in backup("--verify", target).stdout


def test_a_folder_that_nobody_has_open(target, tmp_path):
    data = str(tmp_path / "data")
    with Quipu("--data", data) as server:
        create_table(boto_client(server.url), TABLE)
        put(boto_client(server.url), "a", 1)
        held = run_quipu("backup", "--on", data, target)
        assert held.returncode == 1 and "in use by another process" in held.stderr and "--on URL" in held.stderr
    backup("--on", data, target)
    assert restored(target) == {("a", 1)}
    empty = tmp_path / "empty"
    empty.mkdir()
    refused = run_quipu("backup", "--on", str(empty), target)
    assert refused.returncode == 1 and "is no data folder" in refused.stderr
    assert not list(empty.iterdir())


def test_moments_that_are_not_known_and_folders_that_are_not_empty_are_refused(target, tmp_path):
    with Quipu() as server:
        client = boto_client(server.url)
        create_table(client, TABLE)
        put(client, "a", 1)
        backup("--on", server.url, target)
        early = run_quipu("restore", target, str(tmp_path / "r"), "--at", "2001-01-01T00:00:00Z")
        assert early.returncode == 1 and "the oldest moment that they have is 20" in early.stderr
        late = run_quipu("restore", target, str(tmp_path / "r"), "--at", "4000000000")
        assert late.returncode == 1 and "the newest moment that they have is 20" in late.stderr
        assert run_quipu("restore", target, str(tmp_path / "r"), "--at", "yesterday").returncode == 2
        assert not (tmp_path / "r").exists()
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "mine").write_text("here")
        full = run_quipu("restore", target, str(tmp_path / "full"))
        assert full.returncode == 1 and "is not empty" in full.stderr
        assert os.listdir(tmp_path / "full") == ["mine"]
        none = run_quipu("restore", str(tmp_path / "full"), str(tmp_path / "r"))
        assert none.returncode == 1 and "holds no backups of quipu" in none.stderr
        foreign = run_quipu("backup", "--on", server.url, str(tmp_path / "full"))
        assert foreign.returncode == 1 and "holds no backups of quipu" in foreign.stderr


def test_verify_finds_every_flipped_byte(target):
    with Quipu() as server:
        client = boto_client(server.url)
        create_table(client, TABLE)
        put(client, "a", 1)
        backup("--on", server.url, target)
    sound = backup("--verify", target)
    assert sound.stdout.splitlines()[0].endswith(" 0 faults")
    for folder in ("files", "bases", "log"):
        name = sorted(os.listdir(os.path.join(target, folder)))[0]
        path = os.path.join(target, folder, name)
        kept = open(path, "rb").read()
        with open(path, "wb") as file:
            file.write(kept[:len(kept) // 2] + bytes([kept[len(kept) // 2] ^ 8]) + kept[len(kept) // 2 + 1:])
        damaged = run_quipu("backup", "--verify", target)
        assert damaged.returncode == 1 and name in damaged.stdout and "--mend" in damaged.stderr, folder
        with open(path, "wb") as file:
            file.write(kept)
    assert backup("--verify", target).stdout == sound.stdout


class Follower:
    def __init__(self, url, target, env=None):
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([BINARY, "backup", "--follow", "--on", url, target], stderr=self.errors,
                                        env=clean_environment(env), text=True)

    def said(self):
        self.errors.seek(0)
        return self.errors.read()

    def await_said(self, text):
        until(lambda: text in self.said() or self.process.poll() is not None)
        assert text in self.said(), self.said()

    def end(self, number=signal.SIGINT):
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end(signal.SIGKILL)
        self.errors.close()


def lag(server):
    """Batches that the only follower has not got; None: there is none."""
    with Connection(server.url) as wire:
        wire.send(request_bytes("GET", "/metrics", {"Host": wire.host}, b""))
        found = re.search(r'quipu_backup_lag_batches{follower="[^"]*"} (\d+)', wire.read().body.decode())
    return int(found.group(1)) if found else None


def test_a_follower_goes_on_after_either_side_was_killed(target, tmp_path):
    data, port = str(tmp_path / "data"), str(free_port())
    serve = ("--data", data, "--port", port)
    with Quipu(*serve) as server:
        create_table(boto_client(server.url), TABLE)
        writers = Writers(server.url)
        try:
            with Follower(server.url, target) as follower:
                follower.await_said("Following from batch")
                writers.await_more(100)
                until(lambda: lag(server) is not None)
                follower.end(signal.SIGKILL)
            middle = restored(target)
            writers.compare(middle, [0] * 4)
            with Follower(server.url, target) as follower:
                follower.await_said("Following from batch")
                writers.await_more(100)
                server.kill()
                follower.await_said("trying again")
                with Quipu(*serve) as again:
                    follower.await_said("The server is back")
                    writers.await_more(100)
                    writers.stop()
                    until(lambda: lag(again) == 0)
                    assert follower.end() == 0, follower.said()
                    assert "Stopped behind batch" in follower.said()
        finally:
            writers.stop()
    everything = restored(target)
    writers.compare(everything, writers.acknowledged)
    assert middle < everything
    assert " 0 faults" in backup("--verify", target).stdout


def test_only_admins_may_and_a_target_belongs_to_one_database(target, tmp_path):
    keys = tmp_path / "keys.ini"
    keys.write_text("".join(f"[{role}]\naws_access_key_id = AKID{role}\naws_secret_access_key = some/secret\n"
                            f"role = {role}\n" for role in ("admin", "data")))
    admin, data = ({"AWS_ACCESS_KEY_ID": f"AKID{role}", "AWS_SECRET_ACCESS_KEY": "some/secret"}
                   for role in ("admin", "data"))
    with Quipu() as first, Quipu("--credentials", str(keys)) as second:
        for server, key in ((first, "local"), (second, "AKIDadmin")):
            client = boto_client(server.url, key, "some/secret")
            create_table(client, TABLE)
            put(client, "of", 1 if server is first else 2)
        with Follower(first.url, target) as follower:
            follower.await_said("Following from batch")
            until(lambda: lag(first) == 0)
            assert follower.end() == 0
        assert restored(target) == {("of", 1)}
        refused = run_quipu("backup", "--on", second.url, target, env=data)
        assert refused.returncode == 1 and "has the role data, which may not use" in refused.stderr
        unsigned = run_quipu("backup", "--on", second.url, target)
        assert unsigned.returncode == 1
        other = run_quipu("backup", "--on", second.url, target, env=admin)
        assert other.returncode == 1 and "are of another database" in other.stderr
        with Follower(second.url, target, admin) as follower:
            until(lambda: follower.process.poll() is not None)
            assert follower.end() == 1
            assert "are of another database" in follower.said() and "any more" not in follower.said()
        assert restored(target) == {("of", 1)}
        backup_of_second = run_quipu("backup", "--on", second.url, str(tmp_path / "other"), env=admin)
        assert backup_of_second.returncode == 0, backup_of_second.stderr
        assert restored(tmp_path / "other") == {("of", 2)}
    assert " 0 faults" in backup("--verify", target).stdout


def test_a_data_folder_that_was_set_back_is_not_mixed_with_what_it_was(target, tmp_path):
    data, earlier = str(tmp_path / "data"), str(tmp_path / "earlier")

    def follow(keys, is_refused=False):
        with Quipu("--data", data) as server:
            client = boto_client(server.url)
            if not os.path.isdir(earlier):
                create_table(client, TABLE)
            with Follower(server.url, target) as follower:
                if is_refused:
                    until(lambda: follower.process.poll() is not None)
                    return follower.process.returncode, follower.said()
                follower.await_said("Following")
                for key in keys:
                    put(client, key)
                until(lambda: lag(server) == 0)
                return follower.end(), follower.said()

    assert follow(["first"])[0] == 0
    shutil.copytree(data, earlier)
    assert follow([f"old-{n}" for n in range(8)])[0] == 0
    whole = restored(target)
    for keys in ([], ["new-0"], [f"new-{n}" for n in range(12)]):
        shutil.rmtree(data)
        shutil.copytree(earlier, data)
        with Quipu("--data", data) as server:
            for key in keys:
                put(boto_client(server.url), key)
        status, said = follow([], is_refused=True)
        assert status == 1 and "have another history" in said, said
        refused = run_quipu("backup", "--on", data, target)
        assert refused.returncode == 1 and "have another history" in refused.stderr
        assert restored(target) == whole and " 0 faults" in backup("--verify", target).stdout


def test_nothing_is_put_into_a_data_folder_or_into_backups(target, tmp_path):
    data = tmp_path / "data"
    with Quipu("--data", str(data)) as server:
        create_table(boto_client(server.url), TABLE)
        put(boto_client(server.url), "a", 1)
        for place in ("journal/b", "copies", "copies/b", "new/er"):
            refused = run_quipu("backup", "--on", server.url, str(data / place))
            assert refused.returncode == 1 and f"lies in the data folder {data};" in refused.stderr, place
        link = tmp_path / "link"
        link.symlink_to(data / "journal")
        assert "lies in the data folder" in run_quipu("backup", "--on", server.url, str(link / "b")).stderr
        backup("--on", server.url, target)
        assert server.stop() == 0
    before = sorted(str(path) for path in data.rglob("*"))
    for command in (("backup", "--on", str(data), str(data / "kept")),
                    ("restore", target, str(data / "x")),
                    ("salvage", "--data", str(data), "--to", str(data / "x"))):
        refused = run_quipu(*command)
        assert refused.returncode == 1 and "lies in the data folder" in refused.stderr, command
    refused = run_quipu("restore", target, str(data))
    assert refused.returncode == 1 and "is a data folder already" in refused.stderr
    for command in (("restore", target, os.path.join(target, "x")),
                    ("backup", "--on", str(data), os.path.join(target, "log", "x"))):
        refused = run_quipu(*command)
        assert refused.returncode == 1 and f"lies in the backups {target};" in refused.stderr, command
    assert sorted(str(path) for path in data.rglob("*")) == before
    file = tmp_path / "file"
    file.write_text("mine")
    refused = run_quipu("restore", target, str(file))
    assert refused.returncode == 1 and f"{file} is not a folder" in refused.stderr
    assert restored(target) == {("a", 1)}


def test_a_folder_is_only_read(target, tmp_path):
    """Also behind a kill, when its log has more than its tables."""
    data = tmp_path / "data"
    with Quipu("--data", str(data)) as server:
        create_table(boto_client(server.url), TABLE)
        for number in range(20):
            if number == 10:
                middle = now()
                until(lambda: now() > middle + 1)
            put(boto_client(server.url), f"a{number}", number)
        server.kill()
    before = {path: path.stat().st_mtime_ns for path in data.rglob("*")}
    backup("--on", str(data), target)
    assert {path: path.stat().st_mtime_ns for path in data.rglob("*")} == before
    assert restored(target) == {(f"a{number}", number) for number in range(20)}
    assert restored(target, "--at", moment(middle)) == {(f"a{number}", number) for number in range(10)}
    backup("--on", str(data), target)
    with Quipu("--data", str(data)) as server:
        put(boto_client(server.url), "more", 20)
        backup("--on", server.url, target)
    assert len(restored(target)) == 21
    assert " 0 faults" in backup("--verify", target).stdout


def test_an_interrupted_restore_is_no_data_folder_and_can_be_done_again(target, tmp_path):
    with Quipu() as server:
        create_table(boto_client(server.url), TABLE)
        put(boto_client(server.url), "a", 1)
        backup("--on", server.url, target)
    folder = tmp_path / "r"
    assert run_quipu("restore", target, str(folder)).returncode == 0
    work = folder / "quipu-restoring"
    work.mkdir()
    (folder / "quipu").rename(work / "quipu")  # as it is before the last step
    (folder / "journal").rename(work / "journal")
    refused = run_quipu("serve", "--data", str(folder), "--port", "0")
    assert refused.returncode == 1 and "`quipu restore` into it was interrupted" in refused.stderr
    assert run_quipu("restore", target, str(folder)).returncode == 0
    assert run_quipu("check", "--data", str(folder)).returncode == 0


def test_every_second_that_is_kept_can_be_restored(tmp_path):
    data = str(tmp_path / "data")
    with Quipu("--data", data, "--keep-log", "2d") as server:
        client = boto_client(server.url)
        create_table(client, TABLE)
        moments = []
        for number in range(3):
            put(client, "a", number)
            put(client, f"b{number}", number)
            moments.append(now())
            until(lambda: now() > moments[-1] + 1)
        put(client, "last", 9)
        kept = os.path.join(data, "kept")
        until(lambda: run_quipu("restore", kept, str(tmp_path / "probe"), "--at", moment(moments[-1])).returncode == 0)
        for number, at in enumerate(moments):
            expected = {("a", number)} | {(f"b{n}", n) for n in range(number + 1)}
            assert restored(kept, "--at", moment(at)) == expected
        server.kill()
    with Quipu("--data", data, "--keep-log", "2d") as server:
        put(boto_client(server.url), "later", 10)
        assert server.stop() == 0
    assert {("last", 9), ("later", 10)} <= restored(kept)
    assert restored(kept, "--at", moment(moments[0])) == {("a", 0), ("b0", 0)}
    assert " 0 faults" in backup("--verify", kept).stdout


def test_keep_forgets_what_is_too_old_and_leaves_the_rest(target):
    with Quipu("--test-hooks") as server:
        client = boto_client(server.url)
        create_table(client, TABLE)
        hook(server, {"freeze": True})
        for day in range(4):
            put(client, "a", day)
            backup("--on", server.url, target, "--keep", "30h")
            hook(server, {"advance_seconds": 86400})
    assert len(os.listdir(os.path.join(target, "bases"))) == 3  # the oldest of 30 hours ago needs one before it
    assert " 0 faults" in backup("--verify", target).stdout
    assert restored(target) == {("a", 3)}
    assert run_quipu("backup", "--keep", "soon", target).returncode == 2
    assert run_quipu("backup", "--verify", "--keep", "30h", target).returncode == 2
    assert "--on URL|FOLDER       a running 'quipu serve', or a data folder" in run_quipu("backup", "--help").stdout


def hook(server, body):
    with Connection(server.url) as wire:
        wire.send(request_bytes("POST", "/_quipu/clock", {"Host": wire.host}, json.dumps(body).encode()))
        return json.loads(wire.read().body)["now"]


def test_what_is_older_than_the_time_that_is_kept_goes(tmp_path):
    data = str(tmp_path / "data")
    bases = os.path.join(data, "kept", "bases")
    with Quipu("--data", data, "--keep-log", "2d", "--test-hooks") as server:
        client = boto_client(server.url)
        create_table(client, TABLE)
        hook(server, {"freeze": True})
        names, moments = set(), []
        for day in range(6):
            put(client, f"day{day}", day)
            moments.append(hook(server, {"advance_ms": 1000}))
            hook(server, {"advance_seconds": 25 * 3600})
            put(client, "a", day)
            until(lambda: os.path.isdir(bases) and set(os.listdir(bases)) - names)
            names |= set(os.listdir(bases))
        until(lambda: len(os.listdir(bases)) <= 4)
        assert server.stop() == 0
    early = run_quipu("restore", os.path.join(data, "kept"), str(tmp_path / "r"), "--at", moment(moments[0]))
    assert early.returncode == 1 and "the oldest moment that they have" in early.stderr
    found = restored(os.path.join(data, "kept"), "--at", moment(moments[4]))
    assert {pk for pk, _ in found} == {"a"} | {f"day{n}" for n in range(5)}


def ask(server, method, path, headers=None):
    with Connection(server.url) as wire:
        wire.send(request_bytes(method, path, {"Host": wire.host, **(headers or {})}, b""))
        return wire.read()


def newest_batch(reply):
    return int.from_bytes(reply.body[8:16], "big")


def test_who_may_ask_for_copies_and_for_what(tmp_path):
    with Quipu() as server:
        assert ask(server, "POST", "/v1/backup/checkpoints", {"Origin": "http://evil.example"}).status == 403
        made = json.loads(ask(server, "POST", "/v1/backup/checkpoints").body)
        path = f"/v1/backup/checkpoints/{made['id']}/files/"
        for name in ("..", "%2e%2e%2f%2e%2e%2fquipu", "../../quipu", "LOCK", "nothing.sst", "%00"):
            assert ask(server, "GET", path + name).status in (400, 404), name
        for file in made["files"]:
            whole = ask(server, "GET", path + file["name"]).body
            assert len(whole) == 16 + file["bytes"]  # behind the checksum and the newest batch
        before = newest_batch(ask(server, "GET", path + "CURRENT"))
        create_table(boto_client(server.url), TABLE)
        assert newest_batch(ask(server, "GET", path + "CURRENT")) > before  # so whoever copies makes way
        log = f"/v1/backup/log?source={made['source']}"
        for query in ("", "&from=0", "&from=x", "&from=1&wait=99999999", "&from=1&follower=a/b", "&from=1&x=1",
                      "&from=1&follower=kept", "&from=1&follower=" + "a" * 200):
            assert ask(server, "GET", log + query).status == 400, query
        assert ask(server, "GET", "/v1/backup/log?source=0000000000000001&from=1").status == 410
        assert ask(server, "GET", log + "&from=1000000").status == 410
        assert ask(server, "DELETE", path.removesuffix("/files/")).status == 200
        assert ask(server, "GET", path + "CURRENT").status == 404
        # At most four at a time: a client that dies must not fill the disk.
        ids = [ask(server, "POST", "/v1/backup/checkpoints?target=t%d" % nth) for nth in range(5)]
        assert [reply.status for reply in ids] == [200] * 4 + [503]
        assert ask(server, "POST", "/v1/backup/checkpoints?target=t0").status == 200
        first = json.loads(ids[0].body)["id"]
        assert ask(server, "GET", f"/v1/backup/checkpoints/{first}/files/CURRENT").status == 404
        assert ask(server, "POST", "/v1/backup/checkpoints?target=../x").status == 400
    with Quipu("--memory") as server:
        refused = run_quipu("backup", "--on", server.url, str(tmp_path / "t"))
        assert refused.returncode == 1 and "keeps everything in memory" in refused.stderr
    with Quipu("--separate-regions") as server:
        refused = run_quipu("backup", "--on", server.url, str(tmp_path / "t"))
        assert refused.returncode == 1 and "DATA/regions" in refused.stderr
    away = run_quipu("backup", "--follow", "--on", f"http://127.0.0.1:{free_port()}", str(tmp_path / "t"))
    assert away.returncode == 1 and "nobody answers" in away.stderr
