"""Layers at /opt: where a process may have mounts of its own it finds them there, to be read only; elsewhere by the
variables that name their folder."""
import json
import os
import shutil
import subprocess
import tempfile

import botocore.exceptions
import pytest
from lambdas import ROLE, archive, lambda_client
from support.process import Quipu
from test_layers import publish

NOBODY = 65534
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
WITHOUT_MOUNTS = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
OPT_OF_ITS_OWN = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /opt && mkdir /opt/data && exec "$@"', "-"]
PATHS = {"PATH": "/usr/bin:/bin"}

SOURCE = """
import os, shutil, subprocess

def attempt(what):
    try:
        what()
        return "done"
    except OSError as error:
        return error.strerror

def handler(event, context):
    opt = event.get("opt", "/opt")
    both = os.path.join(opt, "both")
    changes = [lambda: open(both, "a"), lambda: open(opt + "/new", "w"), lambda: os.mkdir(opt + "/folder"),
               lambda: os.unlink(both), lambda: os.rename(both, opt + "/other"), lambda: os.chmod(both, 0o777)]
    try:
        import shared
        who = shared.WHO
    except ImportError:
        who = None
    names = ("QUIPU_LAYERS", "PYTHONPATH", "PATH", "LD_LIBRARY_PATH", "LAMBDA_TASK_ROOT")
    tool = shutil.which("tool-of-layer")
    return {"uid": os.getuid(), "opt": sorted(os.listdir("/opt")), "who": who,
            "both": attempt(lambda: open(both)) == "done" and open(both).read(),
            "changes": [attempt(change) for change in changes] if event.get("change") else None,
            "tool": tool and [tool, subprocess.check_output([tool]).decode()],
            "environment": {name: os.environ.get(name) for name in names}}
"""
FIRST = {"python/shared.py": "WHO = 'first'\n", "both": "first", "bin/tool-of-layer": "#!/bin/sh\nprintf ran\n"}
SECOND = {"both": "second", "lib/only": "second"}


@pytest.fixture
def place():
    """Not below /tmp, where another user could not enter, and functions must see the machine's /tmp."""
    folder = tempfile.mkdtemp(prefix="quipu-layers-", dir="/var/tmp")
    os.chmod(folder, 0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def mounts():
    """Skips where the system lets nobody have mounts of his own: only the variables are there then."""
    namespace = ["--mount"] if os.geteuid() == 0 else ["--mount", "--map-root-user"]
    tried = subprocess.run(["unshare", *namespace, "mount", "--bind", "/usr", "/opt"], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip("no mount namespaces here, or no /opt")


def needs_root():
    if os.geteuid() != 0:
        pytest.skip("only root can choose whom the server or its functions run as")


def create(client, name, layers):
    client.create_function(FunctionName=name, Runtime="python3.11", Handler="main.handler", Role=ROLE, Timeout=60,
                           Code={"ZipFile": archive({"main.py": SOURCE})}, Layers=layers)


def both_layers(client):
    return [publish(client, "first", FIRST)["LayerVersionArn"], publish(client, "second", SECOND)["LayerVersionArn"]]


def invoke(client, name, /, **event):
    reply = client.invoke(FunctionName=name, Payload=json.dumps(event).encode())
    payload = json.loads(reply["Payload"].read())
    assert "FunctionError" not in reply, payload
    return payload


@pytest.mark.parametrize("who", ["the server's user", "a server that is not root", "--function-user"])
def test_layers_lie_at_opt_and_cannot_be_changed_there(who, place, mounts):
    wrapper, more = [], []
    if who != "the server's user":
        needs_root()
        wrapper = AS_NOBODY if who.startswith("a server") else []
        more = [who, "nobody"] if who.startswith("--") else []
    before = sorted(os.listdir("/opt"))
    with Quipu("--data", os.path.join(place, "data"), *more, wrapper=wrapper, cwd=place, env=PATHS) as server:
        client = lambda_client(server.url)
        create(client, "f", both_layers(client))
        create(client, "plain", [])
        seen = invoke(client, "f", change=True)
        assert seen["uid"] == (NOBODY if wrapper or more else os.geteuid())
        assert seen["opt"] == ["bin", "both", "lib", "python"]
        assert (seen["who"], seen["both"]) == ("first", "second")
        assert seen["tool"] == ["/opt/bin/tool-of-layer", "ran"]
        refusals = ["Read-only file system"] + ["Permission denied"] * bool(more)  # whichever is looked at first
        assert len(seen["changes"]) == 6 and all(change in refusals for change in seen["changes"])
        told, task = seen["environment"], seen["environment"]["LAMBDA_TASK_ROOT"]
        assert told["QUIPU_LAYERS"] == "/opt" and told["PATH"] == PATHS["PATH"] + ":/opt/bin"
        assert told["PYTHONPATH"] == "/opt/python:/opt/python/lib/python3.11/site-packages"
        assert told["LD_LIBRARY_PATH"] == f"{task}:{task}/lib:/opt/lib"
        plain = invoke(client, "plain")
        assert plain["opt"] == before and plain["environment"]["QUIPU_LAYERS"] is None
        client.update_function_configuration(FunctionName="f", Layers=[])
        assert invoke(client, "f")["opt"] == before
        assert server.stderr().count("functions find their layers at /opt") == 1
    assert sorted(os.listdir("/opt")) == before


def check_variables(server, reason):
    """The function sees the machine's /opt, and all of its layers by the variables."""
    client = lambda_client(server.url)
    create(client, "f", both_layers(client))
    seen = invoke(client, "f")
    folder = seen["environment"]["QUIPU_LAYERS"]
    assert os.path.isabs(folder) and folder != "/opt" and folder + "/python:" in seen["environment"]["PYTHONPATH"]
    assert seen["who"] == "first" and seen["tool"] == [folder + "/bin/tool-of-layer", "ran"]
    assert invoke(client, "f", opt=folder)["both"] == "second"
    assert server.stderr().count(reason) == 1 and "layers at /opt\n" not in server.stderr()
    return seen


def test_where_nothing_can_be_mounted_variables_name_the_layers(place):
    needs_root()
    with Quipu("--data", os.path.join(place, "data"), wrapper=WITHOUT_MOUNTS, cwd=place, env=PATHS) as server:
        seen = check_variables(server, "functions cannot find their layers at /opt here")
        assert seen["opt"] == sorted(os.listdir("/opt"))


def test_a_server_that_lives_below_opt_leaves_it_alone(place, mounts):
    needs_root()
    with Quipu("--data", "/opt/data", wrapper=OPT_OF_ITS_OWN, cwd=place, env=PATHS) as server:
        assert check_variables(server, "see the machine's /opt")["opt"] == ["data"]


def test_an_interpreter_below_opt_is_not_hidden(place, mounts):
    """Also where a script of another folder starts it."""
    needs_root()
    os.mkdir(os.path.join(place, "bin"))
    script = os.path.join(place, "bin", "python3")
    with open(script, "w", encoding="utf-8") as file:
        file.write('#!/bin/sh\nexec /opt/data/python "$@"\n')
    os.chmod(script, 0o755)
    prepare = OPT_OF_ITS_OWN[4].replace("exec", "cp /usr/bin/python3 /opt/data/python && exec")
    wrapper = [*OPT_OF_ITS_OWN[:4], prepare, "-"]
    with Quipu("--data", os.path.join(place, "data"), wrapper=wrapper, cwd=place,
               env={"PATH": f"{place}/bin:/bin:/usr/bin"}) as server:
        client = lambda_client(server.url)
        create(client, "f", both_layers(client))
        client.update_function_configuration(FunctionName="f", Runtime="python3.999")
        seen = invoke(client, "f")
        assert seen["opt"] == ["data"] and seen["who"] == "first"


RUNTIME = """#!/usr/bin/python3
import os, urllib.request
base = "http://" + os.environ["AWS_LAMBDA_RUNTIME_API"] + "/2018-06-01/runtime/invocation/"
while True:
    with urllib.request.urlopen(base + "next") as event:
        name = event.headers["Lambda-Runtime-Aws-Request-Id"]
    with open(os.path.join(os.environ["LAMBDA_TASK_ROOT"], "reply")) as file:
        urllib.request.urlopen(base + name + "/response", file.read().encode())
"""


def test_a_bootstrap_that_names_opt_means_its_layers(place, mounts):
    """Runtimes for Lambda do so: a layer has a bootstrap that starts a program of the layer."""
    with Quipu("--data", os.path.join(place, "data"), cwd=place, env=PATHS) as server:
        client = lambda_client(server.url)
        arn = publish(client, "runtime", {"bin/runtime": RUNTIME})["LayerVersionArn"]
        client.create_function(
            FunctionName="f", Runtime="provided.al2023", Handler="any", Role=ROLE, Timeout=60, Layers=[arn],
            Code={"ZipFile": archive({"bootstrap": "#!/bin/sh\nexec /opt/bin/runtime\n", "reply": '"from opt"'})})
        assert invoke(client, "f") == "from opt"


def test_a_layer_may_bring_the_wrapper(place):
    """AWS_LAMBDA_EXEC_WRAPPER, as the layers of those who watch functions have it."""
    with Quipu("--data", os.path.join(place, "data"), cwd=place, env=PATHS) as server:
        client = lambda_client(server.url)
        wrapper = '#!/bin/sh\nexport WRAPPED="$QUIPU_LAYERS $#"\nexec "$@"\n'
        arn = publish(client, "wrapper", {"bin/wrapper": wrapper, "plain": "no program"})["LayerVersionArn"]
        code = "import os\ndef handler(event, context):\n    return os.environ['WRAPPED'].split()\n"
        client.create_function(FunctionName="f", Runtime="python3.11", Handler="main.handler", Role=ROLE, Timeout=60,
                               Code={"ZipFile": archive({"main.py": code})}, Layers=[arn],
                               Environment={"Variables": {"AWS_LAMBDA_EXEC_WRAPPER": "/opt/bin/wrapper"}})
        folder, count = invoke(client, "f")
        assert os.path.isabs(folder) and count == "2"
        for path, sentence in (("/opt/none", "No such file or directory"), ("/opt/plain", "Permission denied"),
                               ("wrapper", "it should be an absolute path")):
            client.update_function_configuration(
                FunctionName="f", Environment={"Variables": {"AWS_LAMBDA_EXEC_WRAPPER": path}})
            with pytest.raises(botocore.exceptions.ClientError) as error:
                client.invoke(FunctionName="f", Payload=b"{}")
            assert f"AWS_LAMBDA_EXEC_WRAPPER cannot be run: {path}: {sentence}" in str(error.value)


def test_a_layer_may_bring_the_bootstrap(place):
    with Quipu("--data", os.path.join(place, "data"), cwd=place, env=PATHS) as server:
        client = lambda_client(server.url)
        arn = client.publish_layer_version(LayerName="runtime", Content={
            "ZipFile": archive({"bootstrap": RUNTIME})})["LayerVersionArn"]
        client.create_function(FunctionName="f", Runtime="provided.al2023", Handler="any", Role=ROLE, Timeout=60,
                               Code={"ZipFile": archive({"reply": '"by the layer"'})}, Layers=[arn])
        assert invoke(client, "f") == "by the layer"
        client.update_function_configuration(FunctionName="f", Layers=[])
        reply = json.loads(client.invoke(FunctionName="f", Payload=b"{}")["Payload"].read())
        assert "Couldn't find valid bootstrap(s)" in reply["errorMessage"]
