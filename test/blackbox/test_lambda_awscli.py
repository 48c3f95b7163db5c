"""`aws lambda`, as people type it."""
import json
import os
import subprocess

import pytest
from lambdas import ROLE, archive

CODE = "def handler(event, context):\n    return {'got': event}\n"


@pytest.fixture
def aws(endpoint, tmp_path):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    environment.update(AWS_ACCESS_KEY_ID="local", AWS_SECRET_ACCESS_KEY="local", AWS_DEFAULT_REGION="us-east-1",
                       AWS_CONFIG_FILE="/nonexistent", AWS_SHARED_CREDENTIALS_FILE="/nonexistent", AWS_PAGER="")

    def run(*arguments):
        return subprocess.run(["/usr/bin/aws", "--endpoint-url", endpoint, "lambda", *arguments], env=environment,
                              cwd=tmp_path, capture_output=True, text=True, timeout=120)

    return run


def ok(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if done.stdout.strip() else None


def test_the_life_of_a_function(aws, tmp_path, unused_name):
    (tmp_path / "code.zip").write_bytes(archive({"main.py": CODE}))
    made = ok(aws("create-function", "--function-name", unused_name, "--runtime", "python3.11",
                  "--handler", "main.handler", "--role", ROLE, "--timeout", "30", "--zip-file", "fileb://code.zip",
                  "--environment", "Variables={MODE=cli}"))
    assert made["State"] == "Active" and made["Environment"] == {"Variables": {"MODE": "cli"}}
    ok(aws("wait", "function-active-v2", "--function-name", unused_name))
    reply = ok(aws("invoke", "--function-name", unused_name, "--cli-binary-format", "raw-in-base64-out", "--payload",
                   '{"a": [1]}', "out.json"))
    assert reply == {"StatusCode": 200, "ExecutedVersion": "$LATEST"}
    assert json.loads((tmp_path / "out.json").read_text()) == {"got": {"a": [1]}}
    ok(aws("update-function-configuration", "--function-name", unused_name, "--timeout", "9"))
    assert ok(aws("publish-version", "--function-name", unused_name))["Version"] == "1"
    ok(aws("create-alias", "--function-name", unused_name, "--name", "live", "--function-version", "1"))
    assert ok(aws("get-function", "--function-name", unused_name + ":live"))["Configuration"]["Timeout"] == 9
    names = ok(aws("list-functions", "--query", "Functions[].FunctionName"))
    assert unused_name in names
    ok(aws("delete-function", "--function-name", unused_name))
    gone = aws("get-function", "--function-name", unused_name)
    assert gone.returncode != 0
    assert ("An error occurred (ResourceNotFoundException) when calling the GetFunction operation: Function not found: "
            f"arn:aws:lambda:us-east-1:000000000000:function:{unused_name}") in gone.stderr
