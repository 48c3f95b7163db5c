"""quipu check and quipu show: a data folder from outside."""
import os
import shutil

import pytest
from conftest import boto_client, create_table
from support.process import Quipu, StartError, run_quipu
from values import L, N, S, SS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("inspect") / "data")
    with Quipu("--data", path) as server:
        client = boto_client(server.url)
        create_table(client, "planets")
        create_table(client, "moons", "S", "N")
        client.put_item(TableName="planets", Item={"pk": S("mars"), "tags": SS("red"), "list": L(N(1))})
        for number in range(3):
            client.put_item(TableName="moons", Item={"pk": S("jupiter"), "sk": N(number)})
        client.delete_item(TableName="moons", Key={"pk": S("jupiter"), "sk": N(1)})
        assert server.stop() == 0
    return path


def test_check_of_a_sound_folder(folder):
    result = run_quipu("check", "--data", folder)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "2 tables, 3 items, 0 stream records, 0 faults\n"


def test_show(folder):
    result = run_quipu("show", "--data", folder)
    assert (result.returncode, result.stderr) == (0, "")
    assert "planets" in result.stdout and "moons" in result.stdout
    assert '"pk":{"S":"mars"}' in result.stdout
    assert result.stdout.count('"jupiter"') >= 2
    assert all("\t" in line for line in result.stdout.splitlines())


def test_show_the_log(folder):
    result = run_quipu("show", "--data", folder, "--log")
    assert (result.returncode, result.stderr) == (0, "")
    batches = [line for line in result.stdout.splitlines() if line.startswith("batch ")]
    assert [line.split("\t")[0] for line in batches] == [f"batch {n + 1}" for n in range(len(batches))]
    assert '  put item of planets: pk="mars"\t{"list":' in result.stdout
    assert '  delete item of moons: pk="jupiter" sk=1\t\n' in result.stdout
    later = run_quipu("show", "--data", folder, "--log", "--from", str(len(batches)))
    assert later.stdout and result.stdout.endswith(later.stdout) and later.stdout.count("batch ") == 1
    assert run_quipu("show", "--data", folder, "--log", "--from", str(len(batches) + 1)).stdout == ""
    wrong = run_quipu("show", "--data", folder, "--from", "1")
    assert wrong.returncode == 2 and "--log" in wrong.stderr


def test_both_change_nothing(folder):
    def picture():
        return {os.path.join(root, name): open(os.path.join(root, name), "rb").read()
                for root, _, names in os.walk(folder) for name in names}

    before = picture()
    run_quipu("check", "--data", folder)
    run_quipu("show", "--data", folder)
    assert picture() == before


def test_the_environment_names_the_folder(folder):
    assert run_quipu("check", env={"QUIPU_DATA": folder}).returncode == 0


@pytest.mark.parametrize("command", ["check", "show"])
def test_without_a_folder(command):
    result = run_quipu(command)
    assert (result.returncode, result.stdout) == (2, "")
    assert f"quipu {command} --data DIR" in result.stderr


@pytest.mark.parametrize("command", ["check", "show"])
def test_a_folder_that_is_not_there_is_not_made(command, tmp_path):
    result = run_quipu(command, "--data", str(tmp_path / "nothing"))
    assert (result.returncode, result.stdout) == (1, "")
    assert str(tmp_path / "nothing") in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["check", "show"])
def test_a_folder_in_use(command, tmp_path):
    with Quipu("--data", str(tmp_path / "data")):
        result = run_quipu(command, "--data", str(tmp_path / "data"))
        assert (result.returncode, result.stdout) == (1, "")
        assert "in use by another process" in result.stderr


def test_check_finds_damage(tmp_path):
    """Bytes changed in the store's files: told, not crashed over, and never called sound."""
    data = tmp_path / "data"
    with Quipu("--data", str(data)) as server:
        client = boto_client(server.url)
        create_table(client, "items")
        for number in range(200):
            client.put_item(TableName="items", Item={"pk": S(str(number)), "v": S("x" * 500)})
        assert server.stop() == 0
    first = min((data / "journal").iterdir())
    content = bytearray(first.read_bytes())
    for place in range(len(content) // 4, len(content) // 2, 97):
        content[place] ^= 0x5A
    first.write_bytes(content)
    result = run_quipu("check", "--data", str(data))
    assert (result.returncode, result.stdout) == (1, ""), result
    assert "is damaged" in result.stderr and "quipu salvage" in result.stderr


@pytest.mark.parametrize("what", ["the folder", "its files"])
def test_a_lost_log_is_found_by_all_who_open_it(folder, tmp_path, what):
    """So little was written that the log is all there is."""
    data = tmp_path / "data"
    shutil.copytree(folder, data)
    if what == "the folder":
        shutil.rmtree(data / "journal")
    else:
        for file in (data / "journal").iterdir():
            file.unlink()
    for command in [["check"], ["show"], ["show", "--log"]]:
        result = run_quipu(*command, "--data", str(data))
        assert (result.returncode, result.stdout) == (1, ""), result
        assert f"journal is {'missing' if what == 'the folder' else 'empty'}; its tables have everything up to " \
               "batch 0, and the writes of the batches 1 to " in result.stderr
    with pytest.raises(StartError, match="would be lost"):
        Quipu("--data", str(data)).__enter__()
    result = run_quipu("salvage", "--data", str(data), "--to", str(tmp_path / "new"))
    assert result.returncode == 1 and "the writes of the batches 1 to " in result.stdout
