"""quipu salvage: what can be read of a damaged folder comes out, nothing else does, and the rest is told."""
import json
import os
import shutil
import subprocess

import pytest
from cli import items, output, quipu
from conftest import boto_client, create_table
from support.process import BINARY, Quipu
from values import N, S

SIZE = 250  # items of each of two files, of 20 KB: more than is left to the log when a server stops


def picture(folder):
    return {os.path.join(root, name): open(os.path.join(root, name), "rb").read()
            for root, _, names in os.walk(folder) for name in names}


def content(folder):
    """All items by table, and key."""
    found, table = {}, None
    for line in output("dump", on=folder).splitlines():
        entry = json.loads(line)
        if "Table" in entry:
            table = found.setdefault(entry["Table"]["TableName"], {})
        elif "Item" in entry:
            table[entry["Item"]["pk"]["S"]] = entry["Item"]
    return found


def write(folder, first, count):
    lines = "".join(json.dumps({"pk": str(number), "kind": number % 7, "text": f"{number:05}" * 4000}) + "\n"
                    for number in range(first, first + count))
    output("put", "many", on=folder, stdin=lines)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """Two tables, two files, and a log that has some more."""
    folder = str(tmp_path_factory.mktemp("salvage") / "data")
    with Quipu("--data", folder) as server:
        client = boto_client(server.url)
        index = {"IndexName": "by-kind", "KeySchema": [{"AttributeName": "kind", "KeyType": "HASH"}],
                 "Projection": {"ProjectionType": "KEYS_ONLY"}}
        create_table(client, "many", GlobalSecondaryIndexes=[index],
                     AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"},
                                           {"AttributeName": "kind", "AttributeType": "N"}])
        create_table(client, "few", StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"})
        for name in ("mars", "venus"):
            client.put_item(TableName="few", Item={"pk": S(name), "end": N(4000000000)})
        client.update_time_to_live(TableName="few", TimeToLiveSpecification={"Enabled": True, "AttributeName": "end"})
        assert server.stop() == 0
    write(folder, 0, SIZE)
    write(folder, SIZE, SIZE)
    output("put", "few", "pk=last", on=folder)
    files = [name for name in os.listdir(os.path.join(folder, "store")) if name.endswith(".sst")]
    assert len(files) > 1, "there should be several files"
    return folder


@pytest.fixture
def damaged(original, tmp_path):
    copy = tmp_path / "damaged"
    shutil.copytree(original, copy)
    return copy


def tables(folder):
    """Files of tables, the largest first."""
    return sorted((folder / "store").glob("*.sst"), key=lambda path: -path.stat().st_size)


def flip(path, *parts):
    """Changes a bit at each part of the file."""
    content = bytearray(path.read_bytes())
    for part in parts:
        content[int(len(content) * part)] ^= 4
    path.write_bytes(content)


def salvage(folder, status):
    """The new folder, which must be sound, and what was said of it; the damaged one must be as it was."""
    new, before = str(folder) + "-new", picture(folder)
    result = quipu("salvage", "--data", str(folder), "--to", new)
    assert (result.returncode, result.stderr) == (status, ""), result
    assert picture(folder) == before
    assert not os.path.exists(new + ".salvage")
    check = quipu("check", "--data", new)
    assert check.returncode == 0, check
    return new, result.stdout


def test_of_a_sound_folder_everything_comes_out(original, damaged):
    new, said = salvage(damaged, 0)
    assert said == f"2 tables, {2 * SIZE + 3} items and 3 stream records are in {new}; nothing is damaged\n"
    assert content(new) == content(original)
    assert len(items("query", "many", "3", "--index", "by-kind", on=new)) == len(range(3, 2 * SIZE, 7))
    output("put", "few", "pk=another", on=new)  # it can be worked with


def test_what_the_log_has_too_is_not_lost(original, damaged):
    newest = max(tables(damaged))
    flip(newest, 0.3, 0.6)
    assert quipu("check", "--data", str(damaged)).returncode == 1
    new, said = salvage(damaged, 1)
    assert "checksum mismatch" in said and newest.name in said
    assert "table many: some of its keys could not be read" in said
    assert content(new) == content(original)


def test_a_flipped_bit_costs_the_items_of_its_block(original, damaged):
    shutil.rmtree(damaged / "journal")
    flip(tables(damaged)[0], 0.3, 0.6)
    new, said = salvage(damaged, 1)
    before, after = content(original), content(new)
    missing = set(before["many"]) - set(after["many"])
    assert 0 < len(missing) < 20
    assert all(before["many"][key] == item for key, item in after["many"].items())
    assert {"mars", "venus"} <= set(after["few"]) and "table few" not in said
    assert said.count("checksum mismatch") == 2
    assert "journal is missing: what came behind batch" in said
    assert "records of streams are left out" in said


@pytest.mark.parametrize("name", ["CURRENT", "MANIFEST"])
def test_without_the_list_of_files(name, original, damaged):
    for path in (damaged / "store").glob(f"{name}*"):
        path.unlink()
    new, said = salvage(damaged, 1)
    assert name in said
    assert content(new) == content(original)


@pytest.mark.parametrize("how", ["is missing", "is cut off"])
def test_without_a_file(how, original, damaged):
    """The others are there, whole."""
    shutil.rmtree(damaged / "journal")
    lost = max(tables(damaged))
    if how == "is missing":
        lost.unlink()
    else:
        os.truncate(lost, lost.stat().st_size - 100)
    new, said = salvage(damaged, 1)
    assert lost.stem in said
    before, after = content(original), content(new)
    assert 0 < len(after["many"]) < len(before["many"])
    assert all(before["many"][key] == item for key, item in after["many"].items())


def test_items_without_their_table_are_counted(damaged):
    shutil.rmtree(damaged / "journal")
    min(tables(damaged)).unlink()  # the first one, which has the definitions
    new, said = salvage(damaged, 1)
    assert f"{SIZE} items belong to tables whose definitions are missing, and are left out" in said
    assert content(new) == {}


def test_a_damaged_log_is_read_up_to_the_damage(tmp_path):
    folder = tmp_path / "damaged"
    output("table", "create", "few", "pk:S", on=folder)
    for number in range(20):
        output("put", "few", f"pk={number}", on=folder)
    log, = (folder / "journal").glob("*.journal")
    content_of_log = log.read_bytes()
    at = content_of_log.index(b"pk", content_of_log.index(b"pk") + 40_000)  # in a batch of an item
    log.write_bytes(content_of_log[:at] + b"x" + content_of_log[at + 1:])
    assert quipu("get", "few", "1", on=folder).returncode == 1
    new, said = salvage(folder, 1)
    assert "the log is damaged: " in said and log.name in said
    found = {int(key) for key in content(new)["few"]}
    assert 0 < len(found) < 20 and found == set(range(len(found)))


def test_where_it_may_not_write(original, tmp_path):
    there = tmp_path / "there"
    there.mkdir()
    (there / "file").write_text("mine")
    result = quipu("salvage", "--data", original, "--to", str(there))
    assert result.returncode == 1 and "is there already and not empty" in result.stderr
    assert os.listdir(there) == ["file"]
    assert quipu("salvage", "--data", original).returncode == 2
    result = quipu("salvage", "--data", str(tmp_path / "nothing"), "--to", str(tmp_path / "new"))
    assert result.returncode == 1
    assert result.stderr == f"quipu: the data folder {tmp_path / 'nothing'} does not exist\n"
    result = quipu("salvage", "--data", str(there / "file"), "--to", str(tmp_path / "new"))
    assert result.returncode == 1 and "is not a folder" in result.stderr
    result = quipu("salvage", "--data", str(there), "--to", str(tmp_path / "new"))
    assert result.returncode == 1 and "holds no data of quipu that could be read" in result.stderr
    assert sorted(os.listdir(tmp_path)) == ["there"]
    with Quipu("--data", str(tmp_path / "used")):
        result = quipu("salvage", "--data", str(tmp_path / "used"), "--to", str(tmp_path / "new"))
        assert result.returncode == 1 and "in use by another process" in result.stderr


FULL = """mount -t tmpfs -o size=1m none "$0" && { dd if=/dev/zero of="$0/filler" bs=4k 2> /dev/null || true; } &&
"$1" salvage --data "$2" --to "$0/new"; ls -A "$0/new"; rm "$0/filler"; "$1" salvage --data "$2" --to "$0/new" """


def test_a_full_disk_leaves_nothing_in_the_way(original, tmp_path):
    """The folder that it began to make is empty, so that it can be tried again when there is room."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    result = subprocess.run(["unshare", "--mount", "sh", "-c", FULL, str(tmp_path), BINARY, str(original)],
                            capture_output=True, text=True, timeout=120, check=False)
    first, second = result.stderr.splitlines()
    assert result.stdout == "" and "the disk is full" in first and "the disk is full" in second, result
