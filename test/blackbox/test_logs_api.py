"""CloudWatch Logs' API on what functions print: boto3, and `aws logs` as people type it."""
import json
import os
import subprocess
import time

import boto3
import botocore.config
import botocore.exceptions
import pytest
from lambdas import ROLE, archive, eventually, lambda_client
from support.engines import ENGINES, server_on

TALK = """
def handler(event, context):
    for line in event["lines"]:
        print(line)
"""


@pytest.fixture(scope="module", params=ENGINES)
def endpoint(request, tmp_path_factory):
    """A server of its own, on each engine."""
    with server_on(request.param, "--functions", str(tmp_path_factory.mktemp("functions"))) as (server, _):
        yield server.url


@pytest.fixture(scope="module")
def logs(endpoint):
    config = botocore.config.Config(retries={"max_attempts": 0}, read_timeout=180)
    return boto3.client("logs", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="local",
                        aws_secret_access_key="local", config=config)


@pytest.fixture
def talker(endpoint, unused_name):
    """say("line", ...) has a function of that name print lines."""
    client = lambda_client(endpoint)
    client.create_function(FunctionName=unused_name, Runtime="python3.11", Handler="main.handler", Role=ROLE,
                           Timeout=60, Code={"ZipFile": archive({"main.py": TALK})})

    def say(*lines):
        reply = client.invoke(FunctionName=unused_name, Payload=json.dumps({"lines": lines}).encode())
        assert "FunctionError" not in reply

    say.name, say.group = unused_name, "/aws/lambda/" + unused_name
    yield say
    client.delete_function(FunctionName=unused_name)


def messages(events, word="line"):
    return [event["message"] for event in events if word in event["message"]]


def test_groups_and_streams(logs, talker):
    before = int(time.time() * 1000)
    talker("line one")
    groups = logs.describe_log_groups(logGroupNamePrefix=talker.group)["logGroups"]
    assert [group["logGroupName"] for group in groups] == [talker.group]
    assert groups[0]["arn"] == f"arn:aws:logs:us-east-1:000000000000:log-group:{talker.group}:*"
    assert groups[0]["storedBytes"] > 0
    stream, = logs.describe_log_streams(logGroupName=talker.group)["logStreams"]
    assert stream["logStreamName"] == talker.name
    assert stream["firstEventTimestamp"] <= stream["lastEventTimestamp"]
    assert before - 60_000 <= stream["firstEventTimestamp"] <= time.time() * 1000 + 60_000


def test_groups_come_in_pages(logs, talker):
    talker("line")
    pages = logs.get_paginator("describe_log_groups").paginate(PaginationConfig={"PageSize": 1})
    names = [group["logGroupName"] for page in pages for group in page["logGroups"]]
    assert talker.group in names and len(names) == len(set(names))


def test_events_are_filtered_by_words_and_time(logs, talker):
    talker("line one red", "line two green", "line three red green")

    def found(**more):
        return messages(logs.filter_log_events(logGroupName=talker.group, **more)["events"])

    assert found() == ["line one red", "line two green", "line three red green"]
    assert found(filterPattern="red green") == ["line three red green"]
    assert found(filterPattern="line -red") == ["line two green"]
    assert found(filterPattern='"two green"') == ["line two green"]
    assert found(filterPattern="line ?one ?two") == ["line one red", "line two green"]
    assert found(logStreamNames=[talker.name], limit=2) == ["line one red"]  # START comes first
    assert found(logStreamNames=["other"]) == []
    event = next(event for event in logs.filter_log_events(logGroupName=talker.group)["events"]
                 if event["message"] == "line two green")
    assert "line two green" in found(startTime=event["timestamp"], endTime=event["timestamp"] + 1)
    assert found(startTime=event["timestamp"] + 3_600_000) == found(endTime=event["timestamp"] - 3_600_000) == []
    with pytest.raises(logs.exceptions.InvalidParameterException) as caught:
        found(filterPattern='{ $.level = "ERROR" }')
    assert "not supported" in str(caught.value)


def test_events_come_in_pages_once_each(logs, talker):
    lines = [f"line {i}" for i in range(100)]
    talker(*lines)
    events = [event for page in logs.get_paginator("filter_log_events").paginate(
        logGroupName=talker.group, PaginationConfig={"PageSize": 7}) for event in page["events"]]
    assert messages(events) == lines
    assert len({event["eventId"] for event in events}) == len(events)


def test_get_log_events_goes_forward_and_starts_at_the_end(logs, talker):
    lines = [f"line {i}" for i in range(20)]
    talker(*lines)
    place = {"logGroupName": talker.group, "logStreamName": talker.name}
    read, token = [], {}
    while True:
        page = logs.get_log_events(**place, startFromHead=True, limit=6, **token)
        if token and page["nextForwardToken"] == token["nextToken"]:
            break
        read += page["events"]
        token = {"nextToken": page["nextForwardToken"]}
    assert messages(read) == lines and page["events"] == []
    talker("line later")
    assert messages(logs.get_log_events(**place, **token)["events"]) == ["line later"]
    last = logs.get_log_events(**place, limit=1)
    before = logs.get_log_events(**place, limit=10_000, nextToken=last["nextBackwardToken"])["events"]
    assert messages(before) == lines + ["line later"] and len(last["events"]) == 1
    with pytest.raises(logs.exceptions.InvalidParameterException):
        logs.get_log_events(**place, nextToken="nonsense")


def test_what_is_not_there(logs, talker):
    with pytest.raises(logs.exceptions.ResourceNotFoundException) as caught:
        logs.filter_log_events(logGroupName="/aws/lambda/nobody")
    assert "The specified log group does not exist." in str(caught.value)
    with pytest.raises(logs.exceptions.ResourceNotFoundException) as caught:
        logs.get_log_events(logGroupName=talker.group, logStreamName="nothing")
    assert "The specified log stream does not exist." in str(caught.value)
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        logs.create_log_group(logGroupName="mine")
    assert "DescribeLogGroups, DescribeLogStreams, FilterLogEvents and GetLogEvents" in str(caught.value)


def test_aws_logs_tail_follows(endpoint, talker, tmp_path):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    environment.update(AWS_ACCESS_KEY_ID="local", AWS_SECRET_ACCESS_KEY="local", AWS_DEFAULT_REGION="us-east-1",
                       AWS_CONFIG_FILE="/nonexistent", AWS_SHARED_CREDENTIALS_FILE="/nonexistent", AWS_PAGER="")
    command = ["/usr/bin/aws", "--endpoint-url", endpoint, "logs", "tail", talker.group, "--format", "short"]
    talker("line one")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0 and "line one" in done.stdout, done.stderr
    with open(tmp_path / "out", "w") as out:
        following = subprocess.Popen(command + ["--follow"], env=environment, stdout=out)
    try:
        text = (tmp_path / "out").read_text
        eventually(lambda: "line one" in text(), "the tail has what there was")
        talker("line two")
        eventually(lambda: "line two" in text(), "the tail follows")
    finally:
        following.kill()
        following.wait()
