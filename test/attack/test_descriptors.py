"""The store needs descriptors when others want them too: a low limit of open files and more connections than it
allows, and the store still opens its next log and its next file."""
import json
import os
import re
import socket

import botocore.exceptions

import pytest
from lambdas import ROLE, archive, eventually, lambda_client
from support.fixtures import boto_client, create_table
from support.process import Quipu, StartError, run_quipu
from support.wire import Connection

LIMIT = 256
RESERVED = 80  # of them for the store: files of tables, segments of its log, files that are being written

# Takes connections to its own port until it gets no more, and ends when it is told to.
HOG = """
import os, socket, time
host, port = os.environ["AWS_LAMBDA_RUNTIME_API"].split(":")
def handler(event, context):
    taken = []
    for _ in range(40):
        try:
            taken.append(socket.create_connection((host, int(port)), timeout=5))
        except OSError:
            break
    open(f"{event['folder']}/{os.getpid()}", "w").close()
    while not os.path.exists(f"{event['folder']}/over"):
        time.sleep(0.05)
"""


def limited(count, *arguments):
    return Quipu(*arguments, wrapper=["bash", "-c", f'ulimit -n {count}; exec "$0" "$@"'])


def others_files(server, data):
    """Descriptors that are not the store's."""
    folder, count = f"/proc/{server.process.pid}/fd", 0
    for name in os.listdir(folder):
        try:
            path = os.readlink(f"{folder}/{name}")
        except FileNotFoundError:
            continue
        count += not path.startswith((f"{data}/store", f"{data}/journal"))
    return count


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
            assert others_files(server, data) <= LIMIT - RESERVED
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


def test_functions_take_nothing_of_the_store(tmp_path):
    """As many processes as there may be, connections as they get, and idle clients besides."""
    data, marks = str(tmp_path / "data"), tmp_path / "marks"
    marks.mkdir()
    with limited(LIMIT, "--data", data) as server:
        client = lambda_client(server.url)
        create_table(boto_client(server.url), "kept")
        client.create_function(FunctionName="hog", Runtime="python3.11", Handler="code.handler", Role=ROLE, Timeout=300,
                               Code={"ZipFile": archive({"code.py": HOG})})
        processes = int(re.search(r"and (\d+) processes of functions", server.stderr()).group(1))
        assert processes > 1
        for _ in range(2 * processes):
            client.invoke(FunctionName="hog", InvocationType="Event", Payload=json.dumps({"folder": str(marks)}))
        with Connection(server.url) as wire:
            assert wire.call("ListTables", {}).status == 200
            eventually(lambda: os.listdir(marks), "a process holds all connections that it gets")
            idle = connect_idle(server, LIMIT)
            fill(wire, 40)
            assert others_files(server, data) <= LIMIT - RESERVED
            (marks / "over").touch()
        assert server.process.poll() is None, server.stderr()
        for connection in idle:
            connection.close()
        assert server.stop() == 0
    check = run_quipu("check", "--data", data)
    assert check.returncode == 0, check


def test_databases_of_regions_have_their_files(tmp_path):
    """There are as many as can have their share; the next is refused, and those that are there can be written."""
    data = str(tmp_path / "data")
    with limited(LIMIT, "--separate-regions", "--data", data) as server:
        clients, refused = [], None
        while not refused and len(clients) < LIMIT:
            client = boto_client(server.url, key=f"key{len(clients)}")
            try:
                create_table(client, "kept")
                clients.append(client)
            except botocore.exceptions.ClientError as error:
                refused = str(error)
        assert f"room for {len(clients)} pairs of key and region" in refused and "ulimit -n" in refused
        assert clients and len(os.listdir(f"/proc/{server.process.pid}/fd")) < LIMIT - RESERVED
        for client in clients:
            client.put_item(TableName="kept", Item={"pk": {"S": "a"}})


def test_too_few_files_for_a_server_are_told_at_the_start():
    with pytest.raises(StartError, match="only 64 files may be open.*ulimit -n"):
        limited(64)
