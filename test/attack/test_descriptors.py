"""The store needs descriptors when others want them too: a low limit of open files and more connections than it
allows, and the store still opens its next log and its next file."""
import os
import re
import socket

import pytest
from support.fixtures import boto_client, create_table
from support.process import Quipu, StartError, run_quipu
from support.wire import Connection

LIMIT = 256


def limited(count, *arguments):
    return Quipu(*arguments, wrapper=["bash", "-c", f'ulimit -n {count}; exec "$0" "$@"'])


def open_files(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def connect_idle(server, count):
    """Idle connections that say nothing; the server may close those that are too many."""
    return [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(count)]


def fill(wire, megabytes):
    """Enough for logs and files of the store to be begun; the newest of each key is kept."""
    value = "x" * 390_000
    for number in range(megabytes * 1_000_000 // len(value)):
        item = {"pk": {"S": str(number)}, "v": {"S": value}}
        assert wire.call("PutItem", {"TableName": "kept", "Item": item}).status == 200
    return megabytes * 1_000_000 // len(value)


def test_idle_connections_leave_the_store_its_files(tmp_path):
    data = str(tmp_path / "data")
    with limited(LIMIT, "--data", data) as server:
        create_table(boto_client(server.url), "kept")
        with Connection(server.url) as wire:
            assert wire.call("ListTables", {}).status == 200
            idle = connect_idle(server, 2 * LIMIT)
            count = fill(wire, 80)
            assert open_files(server) < LIMIT
        assert server.process.poll() is None, server.stderr()
        for connection in idle:
            connection.close()
        assert re.search(rf"only {LIMIT} files may be open", server.stderr())
        assert server.stop() == 0
    check = run_quipu("check", "--data", data)
    assert check.returncode == 0, check
    with Quipu("--data", data) as server, Connection(server.url) as wire:
        for number in range(count):
            key = {"TableName": "kept", "Key": {"pk": {"S": str(number)}}, "ProjectionExpression": "pk"}
            assert wire.call("GetItem", key).json["Item"] == {"pk": {"S": str(number)}}


def test_too_few_files_for_a_server_are_told_at_the_start():
    with pytest.raises(StartError, match="only 64 files may be open.*ulimit -n"):
        limited(64)
