"""The aws command, as the first minute with Quipu goes."""
import json
import os
import subprocess

import pytest


@pytest.fixture(scope="module")
def aws(endpoint):
    """aws("list-tables", ...) answers the parsed output, or the error text of a command that failed."""
    environment = {**os.environ, "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
                   "AWS_DEFAULT_REGION": "us-east-1", "AWS_PAGER": "", "AWS_CONFIG_FILE": "/dev/null",
                   "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_MAX_ATTEMPTS": "1"}

    def run(*arguments):
        command = ["aws", "dynamodb", *arguments, "--endpoint-url", endpoint, "--output", "json"]
        result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240)
        if result.returncode:
            return result.stderr
        return json.loads(result.stdout) if result.stdout.strip() else None

    return run


def test_the_first_minute(aws):
    name = f"music-{os.getpid()}"
    created = aws("create-table", "--table-name", name, "--attribute-definitions",
                  "AttributeName=artist,AttributeType=S", "AttributeName=song,AttributeType=S", "--key-schema",
                  "AttributeName=artist,KeyType=HASH", "AttributeName=song,KeyType=RANGE",
                  "--billing-mode", "PAY_PER_REQUEST")
    assert created["TableDescription"]["TableName"] == name
    assert aws("wait", "table-exists", "--table-name", name) is None
    assert name in aws("list-tables")["TableNames"]
    key = {"artist": {"S": "No One You Know"}, "song": {"S": "Call Me Today"}}
    assert aws("put-item", "--table-name", name, "--item", json.dumps({**key, "plays": {"N": "1"}})) is None
    got = aws("get-item", "--table-name", name, "--key", json.dumps(key), "--consistent-read")
    assert got["Item"] == {**key, "plays": {"N": "1"}}
    updated = aws("update-item", "--table-name", name, "--key", json.dumps(key), "--update-expression",
                  "SET plays = plays + :one", "--expression-attribute-values", '{":one":{"N":"1"}}',
                  "--return-values", "ALL_NEW")
    assert updated["Attributes"]["plays"] == {"N": "2"}
    found = aws("query", "--table-name", name, "--key-condition-expression", "artist = :a",
                "--expression-attribute-values", '{":a":{"S":"No One You Know"}}')
    assert (found["Count"], found["Items"]) == (1, [{**key, "plays": {"N": "2"}}])
    refused = aws("put-item", "--table-name", name, "--item", json.dumps(key), "--condition-expression",
                  "attribute_not_exists(artist)")
    assert "(ConditionalCheckFailedException)" in refused and "The conditional request failed" in refused
    assert aws("delete-item", "--table-name", name, "--key", json.dumps(key)) is None
    assert aws("scan", "--table-name", name)["Count"] == 0
    assert aws("delete-table", "--table-name", name)["TableDescription"]["TableName"] == name
    assert aws("wait", "table-not-exists", "--table-name", name) is None
    assert "(ResourceNotFoundException)" in aws("describe-table", "--table-name", name)
