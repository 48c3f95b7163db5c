"""Layers of strangers: archives that lead out, swell or have odd names; functions that try to change what they share;
layers that go while functions use them."""
import io
import json
import os
import shutil
import stat
import subprocess
import tempfile
import threading
import zipfile

import botocore.exceptions
import pytest
from lambdas import ROLE, archive, lambda_client
from support.process import Quipu

NOBODY = 65534
PATHS = {"PATH": "/usr/bin:/bin"}

SOURCE = """
import os, subprocess

def handler(event, context):
    if event["do"] == "read":
        with open(os.path.join(os.environ["QUIPU_LAYERS"], event["name"])) as file:
            return file.read()
    if event["do"] == "list":
        return sorted(os.listdir(os.environ["QUIPU_LAYERS"]))
    if event["do"] == "run":
        ran = subprocess.run(event["command"], capture_output=True, text=True)
        return [ran.returncode, ran.stdout + ran.stderr]
    if event["do"] == "write":
        try:
            with open(event["path"], "w") as file:
                file.write("changed")
            return "done"
        except OSError as error:
            return error.strerror
"""


def zip_of(*entries):
    """A zip of (name, content, mode) as they are, also names that no tool would write."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content, mode in entries:
            info = zipfile.ZipInfo()
            info.filename = name
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            packed.writestr(info, content)
    return out.getvalue()


def file(name, content="x"):
    return name, content, stat.S_IFREG | 0o666


def link(name, target):
    return name, target, stat.S_IFLNK | 0o777


def publish(client, name, *entries):
    return client.publish_layer_version(LayerName=name, Content={"ZipFile": zip_of(*entries)})["LayerVersionArn"]


def refused(client, content):
    with pytest.raises(botocore.exceptions.ClientError) as error:
        client.publish_layer_version(LayerName="bad", Content={"ZipFile": content})
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    return error.value.response["Error"]["Message"]


def create(client, name, layers):
    client.create_function(FunctionName=name, Runtime="python3.11", Handler="main.handler", Role=ROLE, Timeout=60,
                           Code={"ZipFile": archive({"main.py": SOURCE})}, Layers=layers)


def invoke(client, name, do, /, **event):
    reply = client.invoke(FunctionName=name, Payload=json.dumps({"do": do, **event}).encode())
    payload = json.loads(reply["Payload"].read())
    assert "FunctionError" not in reply, payload
    return payload


@pytest.fixture(scope="module")
def server():
    with Quipu() as running:
        yield running


@pytest.fixture
def client(server):
    return lambda_client(server.url)


@pytest.fixture
def place():
    """Where also another user can enter."""
    folder = tempfile.mkdtemp(prefix="quipu-layers-", dir="/var/tmp")
    os.chmod(folder, 0o777)
    yield folder
    shutil.rmtree(folder)


def code_folder(server):
    return os.path.join(server.folder, "data", "functions", "code")


@pytest.mark.parametrize("entry", [
    file("../outside"), file("/tmp/outside"), file("python/../../outside"), file("a/./b"), link("python", "/etc"),
    link("python", "../../.."), link("a/b", "../../x"), link("a", "b/../../x"), link("a", "x/" * 600),
    file("d/" * 101 + "f"),
])
def test_archives_that_lead_out_change_nothing(entry, server, client):
    before = sorted(os.listdir(code_folder(server)))
    assert "Could not unzip uploaded file" in refused(client, zip_of(file("python/fine.py"), entry))
    assert sorted(os.listdir(code_folder(server))) == before
    assert "bad" not in [layer["LayerName"] for layer in client.list_layers()["Layers"]]


def test_links_of_one_layer_do_not_lead_the_files_of_another(client, unused_name):
    """A file of the second layer stands where the first has a link to a folder, and below it."""
    first = publish(client, unused_name + "-1", file("real/kept", "kept"), link("python", "real"),
                    link("both", "real/kept"))
    second = publish(client, unused_name + "-2", file("python/new", "new"), file("both", "new"))
    create(client, unused_name, [first, second])
    assert invoke(client, unused_name, "list") == ["both", "python", "real"]
    assert invoke(client, unused_name, "read", name="real/kept") == "kept"
    assert invoke(client, unused_name, "read", name="both") == "new"
    assert invoke(client, unused_name, "run", command=["sh", "-c", "ls $QUIPU_LAYERS/real"]) == [0, "kept\n"]
    client.update_function_configuration(FunctionName=unused_name, Layers=[first])
    assert invoke(client, unused_name, "read", name="python/kept") == "kept"
    client.delete_function(FunctionName=unused_name)


def test_archives_that_swell_are_stopped_and_leave_nothing(server, client):
    before = sorted(os.listdir(code_folder(server)))
    swollen = zip_of(file("python/zeros", bytes(251 << 20)))
    assert len(swollen) < 1 << 20
    assert "Unzipped size must be smaller than 262144000 bytes" in refused(client, swollen)
    # The same bytes under many names, and a head that lies about their number.
    many = bytearray(zip_of(*[file(f"python/{n}", bytes(26 << 20)) for n in range(10)]))
    directory = many.rindex(b"PK\x05\x06")
    at = int.from_bytes(many[directory + 16:directory + 20], "little")
    while many[at:at + 4] == b"PK\x01\x02":
        many[at + 24:at + 28] = (1000).to_bytes(4, "little")
        name = int.from_bytes(many[at + 28:at + 30], "little")
        at += 46 + name
    assert refused(client, bytes(many))
    assert sorted(os.listdir(code_folder(server))) == before


def test_names_with_control_characters_reach_no_terminal(server, client, unused_name):
    arn = publish(client, unused_name, file("python/a\x1b[2J\r\nb.py"), file("\x07"), file("tab\tand ünder"))
    create(client, unused_name, [arn])
    assert len(invoke(client, unused_name, "list")) == 3
    message = refused(client, zip_of(file("../a\x1b[2J")))
    assert "Could not unzip" in message
    assert "\x1b" not in server.stderr()
    client.delete_function(FunctionName=unused_name)


def test_a_layer_that_is_deleted_stays_for_processes_and_starts(client, unused_name):
    arns = [publish(client, f"{unused_name}-{n}", file(f"file-{n}", str(n))) for n in range(2)]
    for name in ("one", "two"):
        create(client, f"{unused_name}-{name}", arns)
    assert invoke(client, f"{unused_name}-one", "list") == ["file-0", "file-1"]
    for n in range(2):
        client.delete_layer_version(LayerName=f"{unused_name}-{n}", VersionNumber=1)
    assert invoke(client, f"{unused_name}-one", "read", name="file-0") == "0"  # the process that runs
    assert invoke(client, f"{unused_name}-two", "read", name="file-1") == "1"  # one that starts now
    client.delete_function(FunctionName=f"{unused_name}-one")
    client.update_function_configuration(FunctionName=f"{unused_name}-two", Environment={"Variables": {"NEW": "1"}})
    assert invoke(client, f"{unused_name}-two", "list") == ["file-0", "file-1"]
    client.delete_function(FunctionName=f"{unused_name}-two")


def test_many_functions_get_the_same_layers_at_once(server, client, unused_name):
    arns = [publish(client, f"{unused_name}-{n}", *[file(f"{n}/{i}") for i in range(200)]) for n in range(3)]
    made = []

    def make(number):
        own = lambda_client(server.url)
        create(own, f"{unused_name}-{number}", arns)
        made.append(number)

    threads = [threading.Thread(target=make, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == list(range(8))
    for number in (0, 7):
        assert invoke(client, f"{unused_name}-{number}", "list") == ["0", "1", "2"]
    assert not [name for name in os.listdir(code_folder(server)) if name.startswith("tmp-")]
    for number in range(8):
        client.delete_function(FunctionName=f"{unused_name}-{number}")


@pytest.mark.parametrize("who", ["a server that is not root", "--function-user"])
def test_a_function_cannot_lift_what_keeps_it_from_writing(who, place):
    """Not by namespaces of its own, and not by the folder's other name where it is another user."""
    if os.geteuid() != 0:
        pytest.fail("this needs root")
    if subprocess.run(["unshare", "--mount", "mount", "--bind", "/usr", "/opt"], capture_output=True,
                      check=False).returncode:
        pytest.skip("no mount namespaces here, or no /opt")
    wrapper = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if who[0] == "a" else []
    more = [who, "nobody"] if who[0] == "-" else []
    with Quipu("--data", os.path.join(place, "data"), *more, wrapper=wrapper, cwd=place, env=PATHS) as server:
        client = lambda_client(server.url)
        arn = publish(client, "shared", file("data", "as it was"))
        create(client, "evil", [arn])
        create(client, "good", [arn])
        assert invoke(client, "good", "read", name="data") == "as it was"
        assert "functions find their layers at /opt" in server.stderr()
        for script in ("mount -o remount,bind,rw /opt && echo changed >/opt/data", "umount /opt && test ! -e /opt/data",
                       "echo changed >/opt/data", "chmod 777 /opt/data"):
            for namespace in ([], ["unshare", "--user", "--map-root-user", "--mount"]):
                ran = invoke(client, "evil", "run", command=[*namespace, "sh", "-c", script])
                assert ran[0] != 0, (namespace, script, ran)
        if more:
            folder = os.path.join(place, "data-functions", "code")
            layer, = [name for name in os.listdir(folder) if os.path.exists(os.path.join(folder, name, "data"))]
            for path in ("data", "new"):
                assert invoke(client, "evil", "write", path=os.path.join(folder, layer, path)) == "Permission denied"
        assert invoke(client, "good", "read", name="data") == "as it was"


def test_a_folder_of_layers_that_somebody_removed_is_told_and_made_again(tmp_path):
    data = str(tmp_path / "data")
    with Quipu("--data", data) as server:
        client = lambda_client(server.url)
        create(client, "f", [publish(client, "a", file("a")), publish(client, "b", file("b"))])
        code = os.path.join(data, "functions", "code")
        merged, = [name for name in os.listdir(code) if sorted(os.listdir(os.path.join(code, name))) == ["a", "b"]]
        shutil.rmtree(os.path.join(code, merged))
        with pytest.raises(botocore.exceptions.ClientError, match="the server unpacks it again when it is restarted"):
            invoke(client, "f", "list")
    with Quipu("--data", data) as server:
        assert invoke(lambda_client(server.url), "f", "list") == ["a", "b"]
