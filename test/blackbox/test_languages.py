"""Functions in Node, Python, shell and C on a real server: invoked, and started by a change."""
import base64
import json
import os
import subprocess
import urllib.request

import pytest

from conftest import boto_client, create_table
from lambdas import Mapping, eventually, lambda_client, send
from support.process import Quipu, ROOT

LANGUAGES = [("node", "nodejs20.x", "index.handler"), ("python", "python3.11", "lambda_function.lambda_handler"),
             ("shell", "provided.al2023", ""), ("c", "provided.al2023", "")]


@pytest.fixture(scope="module")
def own_server():
    server = Quipu("--memory")
    yield server
    server.close()


def folder_of(language, tmp_path):
    place = os.path.join(ROOT, "test", "functions", "echo-" + language)
    if language != "c":
        return place
    subprocess.run(["cc", "-o", tmp_path / "bootstrap", os.path.join(place, "bootstrap.c")], check=True)
    return str(tmp_path)


@pytest.mark.parametrize("language, runtime, handler", LANGUAGES)
def test_a_function_is_invoked_and_started_by_a_change(own_server, tmp_path, language, runtime, handler):
    client, tables = lambda_client(own_server.url), boto_client(own_server.url)
    request = {"FunctionName": language, "Runtime": runtime, "Timeout": 20, "MemorySize": 512,
               "Code": {"Directory": folder_of(language, tmp_path)}}
    if handler:
        request["Handler"] = handler
    assert send(own_server.url, "POST", "/2015-03-31/functions", request)[0] == 201
    reply = client.invoke(FunctionName=language, Payload=b'{"a": [1, "x"]}', LogType="Tail")
    answer = json.loads(reply["Payload"].read())
    assert (answer["event"], answer["language"]) == ({"a": [1, "x"]}, language)
    assert b"REPORT RequestId: " in base64.b64decode(reply["LogResult"])
    stream = create_table(tables, "changes-" + language, StreamSpecification={
        "StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"})["LatestStreamArn"]
    mapping = Mapping(client, stream, language)
    tables.put_item(TableName="changes-" + language, Item={"pk": {"S": "1"}})
    eventually(lambda: mapping.get()["LastProcessingResult"] == "OK", "the change was handled")
    with urllib.request.urlopen(f"{own_server.url}/v1/functions/{language}/logs", timeout=120) as logs:
        assert logs.read().count(b"START RequestId: ") == 2
