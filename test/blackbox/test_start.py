"""Starting: flags, environment, help, and each way in which a start can fail, said in one clear line."""
import os
import re
import socket
import subprocess

import pytest
from lambdas import eventually
from support.process import BINARY, Quipu, clean_environment, free_port, run_quipu
from support.wire import Connection


def fails(*arguments, status=1, **options):
    """Runs `quipu serve`, which must end with this status, and answers the one line that it says."""
    result = run_quipu("serve", *arguments, **options)
    assert result.returncode == status, result
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert lines and lines[0].startswith("quipu: "), result.stderr
    if status == 1:
        assert len(lines) == 1, result.stderr
    return lines[0]


def alive(server):
    with Connection(server.url) as wire:
        return wire.call("ListTables", {}).status == 200


# ---- flags ----

@pytest.mark.parametrize("arguments, words", [
    (["--nonsense"], "unknown flag '--nonsense'"),
    (["--prot", "9"], "unknown flag '--prot'; did you mean '--port'?"),
    (["stray"], "unexpected argument 'stray'"),
    (["--port"], "the flag '--port' needs a value"),
    (["--port", "eighty"], "--port must be a number from 0 to 65535, not 'eighty'"),
    (["--port", "65536"], "--port must be a number from 0 to 65535, not '65536'"),
    (["--port", "-1"], "--port must be a number from 0 to 65535, not '-1'"),
    (["--port", ""], "--port must be a number"),
    (["--threads", "0"], "--threads must be a number from 1 to"),
    (["--cache", "1"], "--cache must be a number from"),
    (["--memory=yes"], "the flag '--memory' takes no value"),
    (["--durability", "maybe"], "--durability must be sync or os, not 'maybe'"),
    (["--memory", "--data", "somewhere"], "--memory and --data exclude each other"),
])
def test_bad_flags(arguments, words, tmp_path):
    assert words in fails(*arguments, status=2, cwd=tmp_path)
    assert os.listdir(tmp_path) == []


def test_value_behind_equals_sign(tmp_path):
    with Quipu(f"--data={tmp_path}/data", "--port=0") as server:
        assert alive(server)
    assert (tmp_path / "data").is_dir()


def test_help_and_version():
    for arguments in (["--help"], ["-h"], ["help"]):
        result = run_quipu(*arguments)
        assert result.returncode == 0
        assert "Usage: quipu COMMAND" in result.stdout
    assert re.fullmatch(r"quipu \d+\.\d+\.\d+\n", run_quipu("--version").stdout)
    nothing = run_quipu()
    assert (nothing.returncode, nothing.stdout) == (2, "")
    assert "Usage: quipu COMMAND" in nothing.stderr


@pytest.mark.parametrize("command", ["serve", "check", "show"])
def test_help_of_each_command(command):
    result = run_quipu(command, "--help")
    assert result.returncode == 0
    assert result.stdout.startswith(f"Usage: quipu {command}")
    assert run_quipu("help", command).stdout == result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 120


def test_the_help_names_every_flag():
    text = run_quipu("serve", "--help").stdout
    for flag in ("host", "port", "open", "tls-cert", "tls-key", "threads", "data", "memory", "durability", "cache",
                 "credentials", "region"):
        assert f"--{flag}" in text


def test_an_unknown_command():
    result = run_quipu("sreve")
    assert (result.returncode, result.stdout) == (2, "")
    assert "there is no command 'sreve'; did you mean 'serve'?\n" in result.stderr


# ---- environment ----

def test_environment_variables(tmp_path):
    with Quipu(env={"QUIPU_DATA": str(tmp_path / "data"), "QUIPU_PORT": "0", "QUIPU_REGION": "eu-west-3"}) as server:
        with Connection(server.url) as wire:
            assert b"dynamodb.eu-west-3" in wire.request("GET", "/").body
    assert (tmp_path / "data").is_dir()


def test_a_flag_wins_over_the_environment(tmp_path):
    with Quipu("--data", str(tmp_path / "flag"), env={"QUIPU_DATA": str(tmp_path / "variable")}):
        pass
    assert os.listdir(tmp_path) == ["flag"]


def test_an_endpoint_in_the_environment_is_for_other_commands(tmp_path):
    elsewhere = {"QUIPU_ON": "http://127.0.0.1:1"}
    for here in (["--data", str(tmp_path / "data")], ["--memory"]):
        with Quipu("--port", "0", *here, env=elsewhere) as server:
            assert alive(server)
    assert "the data is elsewhere" in fails("--memory", "--on", "http://127.0.0.1:1", status=2, cwd=tmp_path)
    assert "the data is elsewhere" in fails(env={**elsewhere, "QUIPU_MEMORY": "1"}, status=2, cwd=tmp_path)


def test_a_switch_in_the_environment(tmp_path):
    with Quipu(env={"QUIPU_MEMORY": "1"}, cwd=tmp_path) as server:
        assert alive(server)
    assert os.listdir(tmp_path) == []
    with Quipu("--data", str(tmp_path / "data"), env={"QUIPU_MEMORY": "0"}) as server:
        assert alive(server)


def test_bad_values_in_the_environment(tmp_path):
    assert "--port must be a number" in fails(status=2, env={"QUIPU_PORT": "x"}, cwd=tmp_path)


def test_a_prefix_of_our_own_tables():
    with Quipu("--memory", "--prefix", "stage-") as server, Connection(server.url) as wire:
        assert run_quipu("counter", "add", "x", "--on", server.url, "--prefix", "stage-").stdout == "1\n"
        assert wire.request("POST", "/v1/counters/x").json == {"value": 2}
        assert "stage-counters" in wire.call("ListTables", {}).json["TableNames"]
        assert not [name for name in wire.call("ListTables", {}).json["TableNames"] if name.startswith("quipu-")]
        assert run_quipu("counter", "add", "x", "--on", server.url).stdout == "1\n"
    assert "--prefix: a prefix of tables is 1 to 128 letters" in fails("--memory", "--prefix", "no/slash", status=2)


def test_the_default_folder(tmp_path):
    with Quipu(env={"QUIPU_PORT": "0", "QUIPU_DATA": ""}, cwd=tmp_path) as server:
        assert alive(server)
    assert os.listdir(tmp_path) == ["quipu-data"]


# ---- addresses ----

def test_port_in_use(tmp_path):
    with Quipu("--memory") as server:
        line = fails("--memory", "--port", str(server.port))
        assert str(server.port) in line
        assert "in use" in line
        assert alive(server)


def test_an_address_that_is_not_ours():
    assert "203.0.113.1" in fails("--memory", "--port", "0", "--open", "--host", "203.0.113.1")


def test_an_address_that_is_none():
    fails("--memory", "--port", "0", "--open", "--host", "not an address")


def test_other_machines_only_when_said(tmp_path):
    line = fails("--memory", "--port", "0", "--host", "0.0.0.0", status=2)
    assert "--credentials" in line and "--open" in line
    with Quipu("--memory", "--host", "0.0.0.0", "--open") as server:
        with Connection(f"http://127.0.0.1:{server.port}") as wire:
            assert wire.request("GET", "/healthz").status == 200
    keys = tmp_path / "keys"
    keys.write_text("[a]\naws_access_key_id = a\naws_secret_access_key = b\n")
    with Quipu("--memory", "--host", "0.0.0.0", "--credentials", str(keys)) as server:
        assert server.port


def test_loopback_by_default():
    with Quipu("--memory") as server:
        assert server.host == "127.0.0.1"
        addresses = subprocess.run(["hostname", "-I"], capture_output=True, text=True).stdout.split()
        for address in [a for a in addresses if ":" not in a and not a.startswith("127.")]:
            with pytest.raises(OSError):
                socket.create_connection((address, server.port), timeout=2)


def test_ipv6_loopback():
    try:
        socket.socket(socket.AF_INET6).bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no IPv6")
    with Quipu("--memory", "--host", "::1") as server:
        assert server.url.startswith("http://[::1]:")
        assert alive(server)


# ---- folders ----

def test_the_folder_is_made_with_its_parents(tmp_path):
    with Quipu("--data", str(tmp_path / "a" / "b" / "c")) as server:
        assert alive(server)


def test_a_folder_in_use(tmp_path):
    with Quipu("--data", str(tmp_path / "data")) as server:
        line = fails("--data", str(tmp_path / "data"), "--port", "0")
        assert "in use by another process" in line
        assert str(server.process.pid) in line
        assert alive(server)


def test_a_foreign_folder_is_left_alone(tmp_path):
    (tmp_path / "letter.txt").write_text("dear reader")
    line = fails("--data", str(tmp_path), "--port", "0")
    assert "not empty" in line
    assert os.listdir(tmp_path) == ["letter.txt"]
    assert (tmp_path / "letter.txt").read_text() == "dear reader"


def test_a_file_instead_of_a_folder(tmp_path):
    (tmp_path / "file").write_text("x")
    assert str(tmp_path / "file") in fails("--data", str(tmp_path / "file"), "--port", "0")
    assert str(tmp_path / "file") in fails("--data", str(tmp_path / "file" / "below"), "--port", "0")


def test_a_folder_that_cannot_be_made():
    assert "/proc/quipu" in fails("--data", "/proc/quipu", "--port", "0")


def test_a_folder_of_a_newer_version(tmp_path):
    data = tmp_path / "data"
    with Quipu("--data", str(data)):
        pass
    marker = data / "quipu"
    marker.write_text(re.sub(r"\d+", "99", marker.read_text()))
    assert "newer quipu" in fails("--data", str(data), "--port", "0")


def test_a_damaged_folder(tmp_path):
    data = tmp_path / "data"
    with Quipu("--data", str(data)):
        pass
    for path in (data / "store").glob("CURRENT"):
        path.write_text("nonsense\n")
    assert str(data) in fails("--data", str(data), "--port", "0")


def test_no_room_on_the_disk(tmp_path):
    """A limit on the size of files stands in for a full disk: the write is refused, the server says so and stays
    readable; nothing that it acknowledged is lost, and nothing else is there."""
    data = str(tmp_path / "data")
    with Quipu("--data", data, wrapper=["bash", "-c", 'ulimit -f 2000; trap "" XFSZ; exec "$0" "$@"']) as server:
        acknowledged = fill_until_it_fails(server)
        assert re.search(r"^quipu: .*(no room|too large).*; writes are refused until there is room$",
                         server.stderr(), re.M), server.stderr()
        assert acknowledged > 0
        check_items(server, acknowledged)
        assert server.stop() == 0
    check = run_quipu("check", "--data", data)
    assert check.returncode == 0, check
    with Quipu("--data", data) as server:
        check_items(server, acknowledged)


def check_items(server, count):
    with Connection(server.url) as wire:
        for number in range(count + 1):
            reply = wire.call("GetItem", {"TableName": "full", "Key": {"pk": {"S": str(number)}}})
            assert ("Item" in reply.json) == (number < count), f"item {number} of {count}"


def fill_until_it_fails(server):
    """Puts items until a reply is no success; answers how many were acknowledged."""
    with Connection(server.url) as wire:
        wire.call("CreateTable", {"TableName": "full", "BillingMode": "PAY_PER_REQUEST",
                                  "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                                  "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}]})
        for number in range(10_000):
            text = os.urandom(20_000).hex()
            try:
                reply = wire.call("PutItem", {"TableName": "full", "Item": {"pk": {"S": str(number)},
                                                                            "v": {"S": text}}})
            except Exception:
                return number
            if reply.status != 200:
                assert reply.status == 500
                assert reply.type == "InternalServerError"
                return number
    raise AssertionError("the disk never got full")


def test_only_the_ready_line_on_standard_output(tmp_path):
    with Quipu("--data", str(tmp_path / "data")) as server:
        alive(server)
        assert server.stop() == 0
        assert server.lines == [f"quipu: ready on {server.url}"]
        assert server.stderr() == ""


def test_ready_without_a_reader(tmp_path):
    """Standard output may be closed or full; serving goes on."""
    port = free_port()
    with open("/dev/full", "w") as full:
        process = subprocess.Popen([BINARY, "serve", "--memory", "--port", str(port)], stdout=full,
                                   env=clean_environment())

    def is_reachable():
        try:
            with Connection(f"http://127.0.0.1:{port}") as wire:
                return wire.request("GET", "/healthz").status == 200
        except ConnectionRefusedError:
            return False

    try:
        eventually(is_reachable, "it can be reached")
    finally:
        process.terminate()
        process.wait()
