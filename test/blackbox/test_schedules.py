"""EventBridge Scheduler's API as boto3 and `aws scheduler` see it; what is fired, seen in a queue. On all engines, but
for tests that move the clock: a rate is due for the first time when its schedule is made, so most need not."""
import datetime
import json
import os
import subprocess
import time
import urllib.request

import boto3
import botocore.config
import botocore.exceptions
import pytest
from conftest import boto_client
from lambdas import send
from support.engines import ENGINES, server_on
from support.process import Quipu, clean_environment

KEYS = {"region_name": "us-east-1", "aws_access_key_id": "local", "aws_secret_access_key": "local"}
HOUR = 3600


def client_of(service, url):
    config = botocore.config.Config(retries={"max_attempts": 0}, connect_timeout=60, read_timeout=180)
    return boto3.client(service, endpoint_url=url, config=config, **KEYS)


def hook(server, path, **body):
    request = urllib.request.Request(f"{server.url}/_quipu/{path}", data=json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=180) as reply:
        return json.load(reply)


@pytest.fixture(scope="module", params=ENGINES)
def server(request):
    with server_on(request.param) as (running, _):
        yield running


@pytest.fixture(scope="module")
def scheduler(server):
    return client_of("scheduler", server.url)


@pytest.fixture
def sink(server, unused_name):
    """A function whose events end up in a queue of the same name."""
    make_sink(server, unused_name)
    return unused_name


def make_sink(server, name):
    body = json.dumps({"FunctionName": name, "Code": {"Queue": name}}).encode()
    request = urllib.request.Request(f"{server.url}/2015-03-31/functions", data=body, method="POST",
                                     headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=180) as reply:
        assert reply.status == 201


def messages(server, queue):
    try:
        found = boto_client(server.url).query(
            TableName="quipu-queues", KeyConditionExpression="queue = :q", ConsistentRead=True,
            ExpressionAttributeValues={":q": {"S": queue}})["Items"]
    except botocore.exceptions.ClientError:
        return []
    return [json.loads(item["body"]["S"]) for item in found]


def until(question, seconds=240):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        answer = question()
        if answer:
            return answer
        time.sleep(0.02)
    raise AssertionError("it never came true")


def arn(name):
    return f"arn:aws:lambda:us-east-1:000000000000:function:{name}"


def make(scheduler, name, expression, function, **more):
    target = {"Arn": arn(function), "RoleArn": "arn:aws:iam::000000000000:role/any",
              "Input": '{"at":"<aws.scheduler.scheduled-time>"}', **more.pop("Target", {})}
    return scheduler.create_schedule(Name=name, ScheduleExpression=expression, Target=target,
                                     FlexibleTimeWindow={"Mode": "OFF"}, **more)


def refused(call, code, **arguments):
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        call(**arguments)
    assert caught.value.response["Error"]["Code"] == code
    return caught.value.response["Error"]["Message"]


def test_create_get_update_delete(scheduler, sink, unused_name):
    name = unused_name + "-s"
    start = datetime.datetime(2035, 1, 1, tzinfo=datetime.timezone.utc)
    made = make(scheduler, name, "cron(0 9 ? * MON-FRI *)", sink, ScheduleExpressionTimezone="Europe/Berlin",
                Description="every morning", StartDate=start, EndDate=start + datetime.timedelta(days=30))
    assert made["ScheduleArn"] == f"arn:aws:scheduler:us-east-1:000000000000:schedule/default/{name}"
    got = scheduler.get_schedule(Name=name)
    assert (got["Arn"], got["GroupName"], got["State"]) == (made["ScheduleArn"], "default", "ENABLED")
    assert (got["StartDate"], got["EndDate"]) == (start, start + datetime.timedelta(days=30))
    assert got["Target"]["RetryPolicy"] == {"MaximumEventAgeInSeconds": 86400, "MaximumRetryAttempts": 185}
    assert got["FlexibleTimeWindow"] == {"Mode": "OFF"} and got["Description"] == "every morning"
    scheduler.update_schedule(Name=name, ScheduleExpression="rate(2 days)", State="DISABLED",
                              FlexibleTimeWindow={"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 30},
                              Target={"Arn": arn(sink), "RoleArn": "arn:aws:iam::000000000000:role/any"})
    changed = scheduler.get_schedule(Name=name)
    assert (changed["ScheduleExpression"], changed["State"]) == ("rate(2 days)", "DISABLED")
    assert "Description" not in changed and "StartDate" not in changed
    assert changed["CreationDate"] == got["CreationDate"]
    scheduler.delete_schedule(Name=name)
    assert refused(scheduler.get_schedule, "ResourceNotFoundException", Name=name) == f"Schedule {name} does not exist."


def test_what_is_refused(scheduler, sink):
    assert refused(lambda: make(scheduler, "bad", "cron(0 1 * * * *)", sink), "ValidationException").startswith(
        "Invalid Schedule Expression cron(0 1 * * * *).")
    assert "is no function" in refused(
        lambda: make(scheduler, "bad", "rate(1 day)", sink, Target={"Arn": "arn:aws:sqs:us-east-1:123456789012:q"}),
        "ValidationException")
    assert refused(lambda: make(scheduler, "bad", "rate(1 day)", sink, GroupName="absent"),
                   "ResourceNotFoundException") == "Schedule group absent does not exist."
    assert "Mars/Base" in refused(
        lambda: make(scheduler, "bad", "rate(1 day)", sink, ScheduleExpressionTimezone="Mars/Base"),
        "ValidationException")


def test_tokens(scheduler, sink, unused_name):
    first = make(scheduler, unused_name, "at(2040-01-01T00:00:00)", sink, ClientToken="token-1")
    assert make(scheduler, unused_name, "at(2040-01-01T00:00:00)", sink, ClientToken="token-1")["ScheduleArn"] == \
        first["ScheduleArn"]
    assert refused(lambda: make(scheduler, unused_name, "at(2040-01-01T00:00:00)", sink, ClientToken="token-2"),
                   "ConflictException") == f"Schedule {unused_name} already exists."
    for _ in range(2):
        scheduler.delete_schedule(Name=unused_name, ClientToken="token-3")


def test_groups_lists_and_tags(scheduler, sink, unused_name):
    group = scheduler.create_schedule_group(Name=unused_name, Tags=[{"Key": "team", "Value": "a"}])["ScheduleGroupArn"]
    refused(scheduler.create_schedule_group, "ConflictException", Name=unused_name)
    for i in range(7):
        make(scheduler, f"s{i}", "at(2040-01-01T00:00:00)", sink, GroupName=unused_name,
             State="ENABLED" if i % 2 else "DISABLED")
    pages = scheduler.get_paginator("list_schedules")
    found = [s["Name"] for page in pages.paginate(GroupName=unused_name, PaginationConfig={"PageSize": 3})
             for s in page["Schedules"]]
    assert found == [f"s{i}" for i in range(7)]
    assert len(scheduler.list_schedules(GroupName=unused_name, State="DISABLED")["Schedules"]) == 4
    assert len(scheduler.list_schedules(GroupName=unused_name, NamePrefix="s3")["Schedules"]) == 1
    groups = [g["Name"] for page in scheduler.get_paginator("list_schedule_groups").paginate(
        PaginationConfig={"PageSize": 1}) for g in page["ScheduleGroups"]]
    assert "default" in groups and unused_name in groups
    scheduler.tag_resource(ResourceArn=group, Tags=[{"Key": "cost", "Value": "b"}])
    assert {t["Key"]: t["Value"] for t in scheduler.list_tags_for_resource(ResourceArn=group)["Tags"]} == \
        {"team": "a", "cost": "b"}
    scheduler.untag_resource(ResourceArn=group, TagKeys=["team", "absent"])
    assert scheduler.list_tags_for_resource(ResourceArn=group)["Tags"] == [{"Key": "cost", "Value": "b"}]
    assert scheduler.get_schedule_group(Name=unused_name)["State"] == "ACTIVE"
    scheduler.delete_schedule_group(Name=unused_name)
    refused(scheduler.get_schedule_group, "ResourceNotFoundException", Name=unused_name)
    refused(scheduler.get_schedule, "ResourceNotFoundException", Name="s1", GroupName=unused_name)


def test_a_run_is_fired_and_ends_its_schedule(server, scheduler, sink, unused_name):
    """Each schedule has one due time: now. It is deleted with it, or has nothing to come."""
    group = unused_name + "-g"
    scheduler.create_schedule_group(Name=group)
    for name, after in (("kept", "NONE"), ("gone", "DELETE")):
        body = {"GroupName": group, "ScheduleExpression": "rate(9 days)", "EndDate": time.time() + 24 * HOUR,
                "ActionAfterCompletion": after, "FlexibleTimeWindow": {"Mode": "OFF"}, "Target": {"Arn": sink}}
        assert send(server.url, "POST", f"/schedules/{name}", body)[0] == 200  # older SDKs do not know it all
    until(lambda: len(messages(server, sink)) == 2)
    until(lambda: [s["Name"] for s in scheduler.list_schedules(GroupName=group)["Schedules"]] == ["kept"])
    assert scheduler.get_schedule(Name="kept", GroupName=group)["State"] == "ENABLED"
    refused(scheduler.get_schedule, "ResourceNotFoundException", Name="gone", GroupName=group)
    make(scheduler, "gone", "rate(9 days)", sink, GroupName=group)  # another one
    until(lambda: len(messages(server, sink)) == 3)
    scheduler.delete_schedule_group(Name=group)
    assert len(messages(server, sink)) == 3


def test_runs_are_fired_once():
    with Quipu("--test-hooks") as server:
        scheduler = client_of("scheduler", server.url)
        make_sink(server, "sink")
        make(scheduler, "hourly", "cron(0 * * * ? *)", "sink")
        for i in range(5):
            hook(server, "clock", advance_seconds=HOUR)
            until(lambda: len(messages(server, "sink")) >= i + 1)
            hook(server, "idle")
        times = [datetime.datetime.fromisoformat(message["at"][:-1]) for message in messages(server, "sink")]
    assert len(times) in (5, 6)  # an hour may have struck meanwhile
    assert all(t.minute == t.second == 0 for t in times)
    assert [later - earlier for earlier, later in zip(times, times[1:])] == \
        [datetime.timedelta(hours=1)] * (len(times) - 1)


def test_a_restart_makes_up_for_what_was_missed(tmp_path):
    data = str(tmp_path / "data")
    with Quipu("--test-hooks", "--data", data) as server:
        scheduler = client_of("scheduler", server.url)
        make_sink(server, "latest")
        make_sink(server, "single")
        make(scheduler, "latest", "cron(* * * * ? *)", "latest")
        later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=3)
        make(scheduler, "single", f"at({later:%Y-%m-%dT%H:%M:%S})", "single")
        server.kill()
    with Quipu("--test-hooks", "--data", data) as server:
        hook(server, "clock", advance_seconds=10 * HOUR)
        until(lambda: len(messages(server, "single")) == 1)
        until(lambda: messages(server, "latest"))
        hook(server, "idle")
        assert len(messages(server, "latest")) <= 3  # those of before the end, and one for all that were missed
        assert messages(server, "single") == [{"at": f"{later:%Y-%m-%dT%H:%M:%S}Z"}]
        server.kill()
    with Quipu("--test-hooks", "--data", data) as server:
        hook(server, "clock", advance_seconds=10 * HOUR)
        hook(server, "idle")
        assert len(messages(server, "single")) == 1


def test_dead_letters(server, scheduler, unused_name):
    queue = unused_name + "-dead"
    make(scheduler, unused_name, "rate(9 days)", "absent-function",
         Target={"DeadLetterConfig": {"Arn": f"arn:aws:sqs:us-east-1:000000000000:{queue}"}})
    letter = until(lambda: messages(server, queue))[0]
    assert letter["ERROR_CODE"] == "ResourceNotFoundException" and letter["SCHEDULE_ARN"].endswith(unused_name)
    assert set(letter["payload"]) == {"at"}
    scheduler.delete_schedule(Name=unused_name)


def test_dead_letters_where_there_was_no_queue_before():
    """The table of queues is made for the first letter; until then the schedule must not wait for it for ever."""
    with Quipu("--memory") as server:
        client = boto3.client("scheduler", endpoint_url=server.url, region_name="us-east-1",
                              aws_access_key_id="local", aws_secret_access_key="local")
        make(client, "lost", "rate(9 days)", "absent-function",
             Target={"DeadLetterConfig": {"Arn": "arn:aws:sqs:us-east-1:000000000000:first"}})
        assert until(lambda: messages(server, "first"))[0]["ERROR_CODE"] == "ResourceNotFoundException"


def test_the_aws_command(server, sink, unused_name):
    def aws(*arguments):
        environment = clean_environment({"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
                                         "AWS_DEFAULT_REGION": "us-east-1", "HOME": os.environ.get("HOME", "/")})
        done = subprocess.run(["aws", "scheduler", *arguments, "--endpoint-url", server.url], capture_output=True,
                              text=True, timeout=120, env=environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout.strip() else None

    target = json.dumps({"Arn": arn(sink), "RoleArn": "arn:aws:iam::000000000000:role/any", "Input": '{"from":"aws"}'})
    aws("create-schedule", "--name", unused_name, "--schedule-expression", "rate(5 days)", "--target", target,
        "--flexible-time-window", '{"Mode":"OFF"}')
    until(lambda: messages(server, sink) == [{"from": "aws"}])
    assert aws("get-schedule", "--name", unused_name)["ScheduleExpression"] == "rate(5 days)"
    assert unused_name in [s["Name"] for s in aws("list-schedules")["Schedules"]]
    aws("delete-schedule", "--name", unused_name)
