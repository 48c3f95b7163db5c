"""Folders that cannot be written: what only reads works on them, and what writes says in one sentence why it cannot.

The folder is one whose server was killed: its newest writes are in the log alone, and a reader must show them without
writing. Each command has a mount namespace of its own, so nothing stays mounted.
"""
import os
import shutil
import subprocess
import tempfile

import pytest
from cli import items, output, quipu, start
from conftest import boto_client, create_table
from support.process import BINARY, Quipu, clean_environment
from values import N, S

NOBODY = 65534
READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
# A copy in memory that has no byte left, mounted where the folder is.
FULL = ('mkdir -p "$0.original" && mount --bind "$0" "$0.original" && '
        'mount -t tmpfs -o size=$(($(du -sk "$0" | cut -f1) + 1024))k none "$0" && cp -a "$0.original/." "$0" && '
        '{ dd if=/dev/zero of="$0/store/filler" bs=4k 2> /dev/null || true; } && '
        'test "$(df --output=avail "$0" | tail -1)" -eq 0 && exec "$@"')
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
PLACES = {"read-only mount": ["unshare", "--mount", "sh", "-c", READ_ONLY, "DATA"],
          "another user's": AS_NOBODY,
          "full disk": ["unshare", "--mount", "sh", "-c", FULL, "DATA"]}
REASONS = {"read-only mount": "Read-only file system", "another user's": "Permission denied", "full disk": "full"}

READING = [
    (["table", "ls"], "planets"),
    (["table", "describe", "planets"], '"ItemCount":3'),
    (["get", "planets", "mars"], '"moons":2'),
    (["query", "planets", "mars"], '"moons":2'),
    (["scan", "planets"], '"moons":0'),
    (["dump", "planets"], '"DumpEnd"'),
    (["tail", "planets", "--from", "start", "--no-follow"], '"INSERT"'),
    (["queue", "ls"], ""),
    (["copy", "DATA", ":memory:"], ""),
    (["check", "--data", "DATA"], "0 faults"),
    (["show", "--data", "DATA"], '"pk":{"S":"mars"}'),
]
PATTERNS = [
    (["counter", "get", "bills"], "1"),
    (["counter", "list"], "bills"),
    (["job", "get", "pages"], '"done":1'),
    (["doc", "get", "notes", "one"], '"a":1'),
]
WRITING = [
    ["put", "planets", "pk=pluto"],
    ["update", "planets", "mars", "SET moons = 3"],
    ["delete", "planets", "mars"],
    ["table", "create", "more", "pk:S"],
    ["table", "set", "planets", "--ttl", "end"],
    ["table", "drop", "planets", "--yes"],
    ["load"],
    ["copy", ":memory:", "DATA"],
    ["counter", "add", "bills"],
    ["doc", "put", "notes", "two", "{}"],
    ["serve", "--port", "0", "--data", "DATA"],
]


@pytest.fixture(scope="module")
def base():
    """Where another user may look, too."""
    path = tempfile.mkdtemp(prefix="quipu-protected-")
    os.chmod(path, 0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def folder(base):
    path = os.path.join(base, "data")
    with Quipu("--data", path) as server:
        client = boto_client(server.url)
        create_table(client, "planets", StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
        for name, moons in (("mars", 2), ("venus", 0), ("earth", 1)):
            client.put_item(TableName="planets", Item={"pk": S(name), "moons": N(moons)})
        output("counter", "add", "bills", on=server.url)
        output("job", "put", "pages", "--total", "3", on=server.url)
        output("job", "done", "pages", "2", on=server.url)
        output("doc", "put", "notes", "one", '{"a":1}', on=server.url)
        server.process.kill()
        server.process.wait()
    for root, _, names in os.walk(path):  # so that others may read it, and nobody may write it
        os.chmod(root, 0o555)
        for name in names:
            os.chmod(os.path.join(root, name), 0o444)
    return path


def run_there(place, folder, arguments):
    """Runs a command on the folder as it is there."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("folders that cannot be written need root and setpriv to be tried")
    wrapper = [folder if word == "DATA" else word for word in PLACES[place]]
    tried = subprocess.run([*wrapper, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"nothing can be mounted here: {tried.stderr.strip()}")
    command = [BINARY, *(folder if word == "DATA" else word for word in arguments)]
    environment = {} if "DATA" in arguments else {"QUIPU_ON": folder}
    return subprocess.run([*wrapper, *command], env=clean_environment(environment), capture_output=True, text=True,
                          input="", timeout=120, cwd="/", check=False)


def picture(folder):
    return {os.path.join(root, name): open(os.path.join(root, name), "rb").read()
            for root, _, names in os.walk(folder) for name in names}


@pytest.mark.parametrize("place", PLACES)
def test_what_only_reads_works(place, folder):
    for arguments, words in READING:
        result = run_there(place, folder, arguments)
        assert result.returncode == 0, (arguments, result.stderr)
        assert words in result.stdout, (arguments, result)


@pytest.mark.parametrize("place", PLACES)
def test_patterns_tell_what_is_there(place, folder):
    for arguments, words in PATTERNS:
        result = run_there(place, folder, arguments)
        assert (result.returncode, result.stderr) == (0, ""), (arguments, result)
        assert words in result.stdout, (arguments, result)


@pytest.mark.parametrize("place", PLACES)
def test_what_writes_says_why_it_cannot(place, folder):
    for arguments in WRITING:
        result = run_there(place, folder, arguments)
        assert result.returncode == 1, (arguments, result)
        assert result.stderr.startswith("quipu: ") and result.stderr.count("\n") == 1, (arguments, result.stderr)
        assert folder in result.stderr and REASONS[place] in result.stderr, (arguments, result.stderr)
        assert result.stdout == "", arguments


def test_a_pattern_that_would_have_to_make_its_table(folder):
    result = run_there("read-only mount", folder, ["lease", "get", "nobody"])
    assert result.returncode == 1
    assert result.stderr == ("quipu: The table quipu-leases could not be made: the database answered "
                             "AccessDeniedException: the data was opened for reading only, so CreateTable is refused\n")


def test_reading_changes_nothing(folder, tmp_path):
    """Also where it could."""
    copy = tmp_path / "data"
    shutil.copytree(folder, copy)
    subprocess.run(["chmod", "-R", "u+w", copy], check=True)
    before = picture(copy)
    for arguments, _ in READING:
        words = [str(copy) if word == "DATA" else word for word in arguments]
        output(*words, on=None if "DATA" in arguments else copy)
    assert picture(copy) == before


def test_many_read_at_the_same_time(folder, tmp_path):
    copy = tmp_path / "data"
    shutil.copytree(folder, copy)
    subprocess.run(["chmod", "-R", "u+w", copy], check=True)
    follower = start("tail", "planets", "--from", "start", on=copy)
    assert "INSERT" in follower.stdout.readline()
    assert items("get", "planets", "mars", on=copy) == [{"pk": "mars", "moons": 2}]
    refused = quipu("put", "planets", "pk=pluto", on=copy)
    assert refused.returncode == 1 and "in use by another process" in refused.stderr
    follower.kill()
    follower.wait()
    assert quipu("put", "planets", "pk=pluto", on=copy).returncode == 0
