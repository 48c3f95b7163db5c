"""FileSystemConfigs: a folder at /mnt/NAME that all processes of a function share, and that outlives them."""
import json

import botocore.exceptions
import pytest
from lambdas import ROLE, archive, lambda_client
from support.process import Quipu
from test_function_urls import ask

POINT = "arn:aws:elasticfilesystem:us-east-1:000000000000:access-point/fsap-0123456789abcdef0"
# As the message wall of the seeds: GET reads, POST adds, DELETE empties.
WALL = """
import base64, os
FILE = "/mnt/messages/content"
def handler(event, context):
    method = event["requestContext"]["http"]["method"]
    if method == "DELETE" and os.path.exists(FILE):
        os.remove(FILE)
    if method == "POST":
        body = event["body"]
        if event["isBase64Encoded"]:
            body = base64.b64decode(body).decode()
        with open(FILE, "a") as file:
            file.write(body + "\\n")
    return open(FILE).read() if os.path.exists(FILE) else "No message yet."
"""


def make(client, name, arn, path="/mnt/messages"):
    client.create_function(FunctionName=name, Runtime="python3.11", Handler="main.handler", Role=ROLE, Timeout=30,
                           Code={"ZipFile": archive({"main.py": WALL})},
                           FileSystemConfigs=[{"Arn": arn, "LocalMountPath": path}])
    client.create_function_url_config(FunctionName=name, AuthType="NONE")


def wall(server, name, method, body=None):
    status, _, text = ask(server, method, f"/_url/{name}/whatever", body=body)
    assert status == 200, text
    return json.loads(text)


def test_the_message_wall(tmp_path):
    with Quipu("--data", str(tmp_path / "data")) as server:
        client = lambda_client(server.url)
        make(client, "wall", POINT)
        assert client.get_function_configuration(FunctionName="wall")["FileSystemConfigs"] == [
            {"Arn": POINT, "LocalMountPath": "/mnt/messages"}]
        assert wall(server, "wall", "GET") == "No message yet."
        wall(server, "wall", "POST", b"hello")
        make(client, "other", POINT)  # shares it
        assert wall(server, "other", "POST", b"there") == "hello\nthere\n"
    with Quipu("--data", str(tmp_path / "data")) as server:
        assert wall(server, "wall", "GET") == "hello\nthere\n"
        assert wall(server, "wall", "DELETE") == "No message yet."


def test_a_folder_of_the_machine(tmp_path):
    with Quipu("--memory") as server:
        client = lambda_client(server.url)
        (tmp_path / "content").write_text("here already\n")
        make(client, "wall", str(tmp_path))
        assert wall(server, "wall", "POST", b"more") == "here already\nmore\n"
        assert (tmp_path / "content").read_text() == "here already\nmore\n"
        client.update_function_configuration(FunctionName="wall", FileSystemConfigs=[])
        assert "FileSystemConfigs" not in client.get_function_configuration(FunctionName="wall")
        assert ask(server, "POST", "/_url/wall/", body=b"x")[0] == 502  # there is no such folder any more
        for arn, path in ((str(tmp_path / "none"), "/mnt/a"), ("arn:aws:s3:::bucket", "/mnt/a"), ("x", "/mnt/a"),
                          (POINT, "/mnt/.."), (POINT, "/mnt/a/b"), (POINT, "/etc/x"), (POINT + "/../..", "/mnt/a")):
            with pytest.raises(botocore.exceptions.ClientError) as caught:
                make(client, "wrong", arn, path)
            assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
