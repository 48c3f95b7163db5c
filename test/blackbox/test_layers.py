"""Layers by Lambda's API: published, listed, put below functions, deleted, kept over a restart."""
import io
import json
import zipfile

import botocore.exceptions
import pytest
from lambdas import ROLE, archive, lambda_client
from support.process import Quipu

PYTHON = """
import shutil, subprocess, shared
def handler(event, context):
    tool = shutil.which("tool-of-layer")
    return {"who": shared.WHO, "tool": tool and subprocess.check_output([tool]).decode()}
"""
NODE = "import { who } from 'shared';\nexport const handler = async () => ({ who });\n"


@pytest.fixture(scope="module")
def client(endpoint):
    return lambda_client(endpoint)


def layer_zip(files):
    """A zip whose files in bin may be run."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for name, text in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (0o755 if name.startswith("bin/") else 0o644) << 16
            packed.writestr(info, text)
    return out.getvalue()


def publish(client, name, files, **more):
    return client.publish_layer_version(LayerName=name, Content={"ZipFile": layer_zip(files)}, **more)


def python_layer(who, **more):
    return {"python/shared.py": f"WHO = {who!r}\n", **more}


def create(client, name, layers, runtime="python3.11", file="main.py", source=PYTHON):
    return client.create_function(FunctionName=name, Runtime=runtime, Handler="main.handler", Role=ROLE, Timeout=30,
                                  Code={"ZipFile": archive({file: source})}, Layers=layers)


def invoke(client, name, **more):
    return json.loads(client.invoke(FunctionName=name, Payload=b"{}", **more)["Payload"].read())


def refused(call, **more):
    with pytest.raises(botocore.exceptions.ClientError) as error:
        call(**more)
    return error.value.response["Error"]["Code"], error.value.response["Error"]["Message"]


def test_versions_are_published_listed_and_deleted(client, unused_name):
    first = publish(client, unused_name, python_layer("a"), Description="one", CompatibleRuntimes=["python3.11"])
    second = publish(client, unused_name, python_layer("b"))
    arn = first["LayerArn"]
    assert (first["Version"], second["Version"]) == (1, 2)
    assert first["LayerVersionArn"] == arn + ":1" and first["Content"]["CodeSize"] > 0
    listed = client.list_layer_versions(LayerName=unused_name)["LayerVersions"]
    assert [version["Version"] for version in listed] == [2, 1]
    page = client.list_layer_versions(LayerName=unused_name, MaxItems=1)
    rest = client.list_layer_versions(LayerName=unused_name, Marker=page["NextMarker"])["LayerVersions"]
    assert [version["Version"] for version in rest] == [1]
    only = client.list_layer_versions(LayerName=arn, CompatibleRuntime="python3.11")["LayerVersions"]
    assert [version["Version"] for version in only] == [1]
    mine = [layer for layer in client.list_layers()["Layers"] if layer["LayerName"] == unused_name]
    assert mine[0]["LatestMatchingVersion"]["Version"] == 2
    assert client.get_layer_version(LayerName=unused_name, VersionNumber=1)["Description"] == "one"
    assert client.get_layer_version_by_arn(Arn=arn + ":2")["Version"] == 2
    assert unused_name not in json.dumps(client.list_functions()["Functions"])
    for _ in range(2):
        client.delete_layer_version(LayerName=unused_name, VersionNumber=2)
    assert refused(client.get_layer_version, LayerName=unused_name, VersionNumber=2)[0] == "ResourceNotFoundException"
    assert publish(client, unused_name, python_layer("c"))["Version"] == 3  # numbers are not used again


def test_what_cannot_be_layers_of_a_function(client, unused_name):
    arn = publish(client, unused_name, python_layer("a"))["LayerVersionArn"]
    other = publish(client, unused_name, python_layer("b"))["LayerVersionArn"]
    for layers, message in (([arn + "7"], f"Layer version {arn}7 does not exist."), ([arn, other], "Two different"),
                            ([arn] * 6, "You cannot reference more than 5 layers.")):
        code, text = refused(create, client=client, name=unused_name, layers=layers)
        assert code == "InvalidParameterValueException" and message in text
    big = io.BytesIO()
    with zipfile.ZipFile(big, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        packed.writestr("zeros", bytes(130 << 20))
    arns = [client.publish_layer_version(LayerName=f"{unused_name}-{n}", Content={"ZipFile": big.getvalue()})
            ["LayerVersionArn"] for n in range(2)]
    code, text = refused(create, client=client, name=unused_name, layers=arns)
    assert code == "InvalidParameterValueException" and "exceeds the maximum allowed size of 262144000 bytes" in text
    assert refused(client.get_function, FunctionName=unused_name)[0] == "ResourceNotFoundException"
    for name in (unused_name, f"{unused_name}-0", f"{unused_name}-1"):
        for version in client.list_layer_versions(LayerName=name)["LayerVersions"]:
            client.delete_layer_version(LayerName=name, VersionNumber=version["Version"])


def test_the_size_of_layers_counts_after_a_restart(tmp_path):
    def zeros(megabytes):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
            packed.writestr("zeros", bytes(megabytes << 20))
        return out.getvalue()

    with Quipu("--data", str(tmp_path / "data")) as server:
        client = lambda_client(server.url)
        create(client, "f", [client.publish_layer_version(LayerName=name, Content={"ZipFile": zeros(size)})
                             ["LayerVersionArn"] for name, size in (("one", 100), ("two", 101))])
    with Quipu("--data", str(tmp_path / "data")) as server:
        client = lambda_client(server.url)
        code, text = refused(client.update_function_code, FunctionName="f", ZipFile=zeros(60))
        assert code == "InvalidParameterValueException" and "combined with layers" in text


def test_an_es_module_is_imported_from_a_layer(client, unused_name):
    arn = publish(client, unused_name, {
        "nodejs/node_modules/shared/package.json": '{"name":"shared","type":"module","exports":"./index.js"}',
        "nodejs/node_modules/shared/index.js": "export const who = 'layer';\n"})["LayerVersionArn"]
    create(client, unused_name, [arn], "nodejs20.x", "main.mjs", NODE)
    assert invoke(client, unused_name) == {"who": "layer"}
    client.delete_function(FunctionName=unused_name)


def test_order_update_versions_deletion_and_restart(tmp_path):
    with Quipu("--data", str(tmp_path / "data")) as server:
        client = lambda_client(server.url)
        tool = {"bin/tool-of-layer": "#!/bin/sh\nprintf tool\n"}
        arns = [publish(client, "one", python_layer("one", **tool))["LayerVersionArn"],
                publish(client, "two", python_layer("two"))["LayerVersionArn"]]
        made = create(client, "f", arns)
        assert [sorted(layer) for layer in made["Layers"]] == [["Arn", "CodeSize"]] * 2
        assert [layer["Arn"] for layer in made["Layers"]] == arns
        assert invoke(client, "f") == {"who": "two", "tool": "tool"}  # the later one wins
        client.publish_version(FunctionName="f")
        client.update_function_configuration(FunctionName="f", Layers=arns[::-1])
        assert invoke(client, "f")["who"] == "one"
        assert invoke(client, "f", Qualifier="1")["who"] == "two"
        for name in ("one", "two"):
            client.delete_layer_version(LayerName=name, VersionNumber=1)
        assert client.list_layers()["Layers"] == []
    with Quipu("--data", str(tmp_path / "data")) as server:
        client = lambda_client(server.url)
        assert invoke(client, "f") == {"who": "one", "tool": "tool"}
        assert invoke(client, "f", Qualifier="1")["who"] == "two"
        updated = client.update_function_configuration(FunctionName="f", Layers=[])
        assert "Layers" not in updated
        assert "shared" in invoke(client, "f")["errorMessage"]
        assert publish(client, "one", python_layer("x"))["Version"] == 2
