"""What functions write stays apart: each process has temporary files of its own, no more than it may have, and they go
with it; with --function-user it has nothing of the server's rights."""
import json
import os
import re
import shutil
import subprocess
import tempfile

import pytest
from lambdas import ROLE, archive, eventually, lambda_client
from support.process import BINARY, RUN_SECONDS, Quipu, clean_environment, run_quipu

NOBODY = 65534

SOURCE = """
import os, tempfile

def handler(event, context):
    if event["do"] == "tell":
        return {"uid": os.getuid(), "gid": os.getgid(), "groups": os.getgroups(), "tmp": os.listdir("/tmp"),
                "TMPDIR": os.environ.get("TMPDIR"), "gettempdir": tempfile.gettempdir(), "pid": os.getpid()}
    if event["do"] == "write":
        with open(os.path.join(tempfile.gettempdir(), event["name"]), "w") as file:
            file.write("x" * event.get("bytes", 1))
        return os.listdir(tempfile.gettempdir())
    if event["do"] == "fill":
        try:
            with open(os.path.join(tempfile.gettempdir(), "large"), "wb") as file:
                for _ in range(event["megabytes"]):
                    file.write(b"x" * (1 << 20))
        except OSError as error:
            return error.strerror
        return "it fits"
    if event["do"] == "read":
        try:
            with open(event["path"]) as file:
                return file.read()
        except OSError as error:
            return error.strerror
"""


def make(client, name, **more):
    client.create_function(FunctionName=name, Runtime="python3.11", Handler="code.handler", Role=ROLE, Timeout=60,
                           Code={"ZipFile": archive({"code.py": SOURCE})}, **more)


def invoke(client, name, /, **event):
    reply = client.invoke(FunctionName=name, Payload=json.dumps(event).encode())
    payload = json.loads(reply["Payload"].read())
    assert "FunctionError" not in reply, payload
    return payload


@pytest.fixture
def place():
    """Not below /tmp, where functions must see the machine's."""
    folder = tempfile.mkdtemp(prefix="quipu-storage-", dir="/var/tmp")
    os.chmod(folder, 0o777)
    yield folder
    shutil.rmtree(folder)


def as_nobody():
    """How to run something as another user."""
    if os.geteuid() != 0:
        pytest.fail("this needs root")
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


@pytest.mark.parametrize("who", ["root", "nobody"])
def test_each_process_has_a_tmp_of_its_own(who, place):
    mark = tempfile.NamedTemporaryFile(prefix="quipu-mark-", dir="/tmp")
    wrapper = as_nobody() if who == "nobody" else []
    with mark, Quipu("--data", os.path.join(place, "data"), wrapper=wrapper, cwd=place,
                     env={"PATH": "/usr/bin:/bin"}) as server:
        client = lambda_client(server.url)
        make(client, "one")
        make(client, "two")
        told = invoke(client, "one", do="tell")
        assert told["tmp"] == [] and told["TMPDIR"] is None and told["gettempdir"] == "/tmp"
        assert told["uid"] == (NOBODY if who == "nobody" else 0)
        assert invoke(client, "one", do="write", name="secret") == ["secret"]
        assert invoke(client, "two", do="tell")["tmp"] == []
        assert invoke(client, "two", do="read", path="/tmp/secret") == "No such file or directory"
        assert not os.path.exists("/tmp/secret")
        assert invoke(client, "two", do="fill", megabytes=600) == "No space left on device"
        assert server.stderr().count("a /tmp of its own") == 1


def test_storage_is_as_large_as_the_function_says(place):
    with Quipu("--data", os.path.join(place, "data"), env={"PATH": "/usr/bin:/bin"}) as server:
        client = lambda_client(server.url)
        make(client, "large", EphemeralStorage={"Size": 1024})
        assert invoke(client, "large", do="fill", megabytes=520) == "it fits"


def test_below_tmp_a_process_has_a_folder_of_its_own():
    """A server for a test has its data below /tmp, and its functions write there."""
    with Quipu() as server:
        client = lambda_client(server.url)
        make(client, "one")
        told = invoke(client, "one", do="tell")
        folder = told["TMPDIR"]
        assert folder == told["gettempdir"]
        assert os.path.dirname(folder) == os.path.join(server.folder, "data", "functions", "tmp")
        assert os.stat(folder).st_mode & 0o777 == 0o700
        assert invoke(client, "one", do="write", name="mine") == ["mine"]
        reply = client.invoke(FunctionName="one", Payload=b'{"do": "fill", "megabytes": 600}')
        # By the limit of one file; or by that of all, where somebody looks while it is there beside the other.
        assert re.search("File too large|Runtime.OutOfStorage", reply["Payload"].read().decode())
        client.update_function_configuration(FunctionName="one", Environment={"Variables": {"NEW": "process"}})
        other = invoke(client, "one", do="tell")["TMPDIR"]
        assert other != folder and os.listdir(other) == []
        eventually(lambda: not os.path.exists(folder), "the old process's folder is gone")
        assert "TMPDIR" in server.stderr()
        server.stop()
        assert os.listdir(os.path.dirname(other)) == []


def test_many_files_that_are_too_much_end_the_process():
    with Quipu() as server:
        client = lambda_client(server.url)
        code = """
import os
def handler(event, context):
    for n in range(100000):
        with open(os.path.join(os.environ["TMPDIR"], str(n)), "wb") as file:
            file.write(b"x" * (20 << 20))
"""
        client.create_function(FunctionName="greedy", Runtime="python3.11", Handler="code.handler", Role=ROLE,
                               Timeout=60, Code={"ZipFile": archive({"code.py": code})})
        reply = client.invoke(FunctionName="greedy", Payload=b"{}", LogType="Tail")
        error = json.loads(reply["Payload"].read())
        assert error["errorType"] == "Runtime.OutOfStorage" and "EphemeralStorage" in error["errorMessage"]
        folder = os.path.join(server.folder, "data", "functions", "tmp")
        eventually(lambda: os.listdir(folder) == [], "its files are gone")


def test_functions_of_another_user_have_nothing_of_the_server(place):
    as_nobody()
    os.chmod(place, 0o755)
    data = os.path.join(place, "data")
    os.mkdir(data, 0o755)  # as somebody may have made it
    with Quipu("--data", data, "--function-user", "nobody", env={"PATH": "/usr/bin:/bin"}) as server:
        client = lambda_client(server.url)
        make(client, "poor")
        told = invoke(client, "poor", do="tell")
        assert (told["uid"], told["gid"], told["groups"]) == (NOBODY, NOBODY, [NOBODY])
        assert invoke(client, "poor", do="read", path="/etc/shadow") == "Permission denied"
        assert invoke(client, "poor", do="read", path=os.path.join(data, "CURRENT")) == "Permission denied"
        logs = os.path.join(place, "data-functions", "logs")
        assert invoke(client, "poor", do="read", path=os.path.join(logs, "poor")) == "Permission denied"
        assert invoke(client, "poor", do="read", path=f"/proc/{server.process.pid}/environ") == "Permission denied"
        assert invoke(client, "poor", do="write", name="mine") == ["mine"]
        client.delete_function(FunctionName="poor")
        eventually(lambda: not os.path.exists(f"/proc/{told['pid']}"), "its process is ended")


def test_only_root_can_run_functions_as_another_user(place):
    as_nobody()
    result = run_quipu("serve", "--memory", "--port", "0", "--function-user", "no-such-user")
    assert result.returncode == 1 and "there is no such user" in result.stderr
    result = run_quipu("serve", "--memory", "--port", "0", "--function-user", "root")
    assert result.returncode == 1 and "that is root" in result.stderr
    result = subprocess.run([*as_nobody(), BINARY, "serve", "--memory", "--port", "0", "--function-user", "nobody"],
                            env=clean_environment(), capture_output=True, text=True, timeout=RUN_SECONDS, cwd=place)
    assert result.returncode == 1 and "only when the server is started by root" in result.stderr


def test_a_folder_that_the_functions_user_cannot_enter_is_refused_at_start(place):
    as_nobody()
    closed = os.path.join(place, "closed")
    os.mkdir(closed, 0o700)
    result = run_quipu("serve", "--data", os.path.join(closed, "data"), "--port", "0", "--function-user", "nobody")
    assert result.returncode == 1 and "who cannot enter their folder" in result.stderr
