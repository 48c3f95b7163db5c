"""Application Auto Scaling with boto3 and the aws command: targets and policies are kept and described back."""
import json
import os
import subprocess

import boto3
import botocore.config
import pytest
from botocore.exceptions import ClientError
from conftest import boto_client
from support.process import Quipu, clean_environment
from support.wire import Connection

READS, WRITES = "dynamodb:table:ReadCapacityUnits", "dynamodb:table:WriteCapacityUnits"
TRACKING = {"TargetValue": 70.0, "PredefinedMetricSpecification": {"PredefinedMetricType":
                                                                   "DynamoDBReadCapacityUtilization"},
            "ScaleOutCooldown": 60, "ScaleInCooldown": 30, "DisableScaleIn": True}


def scaling_client(url):
    config = botocore.config.Config(retries={"max_attempts": 0}, read_timeout=180)
    return boto3.client("application-autoscaling", endpoint_url=url, region_name="us-east-1",
                        aws_access_key_id="local", aws_secret_access_key="local", config=config)


def make_table(url, name):
    units = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    boto_client(url).create_table(
        TableName=name, ProvisionedThroughput=units,
        AttributeDefinitions=[{"AttributeName": n, "AttributeType": "S"} for n in ("pk", "g")],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        GlobalSecondaryIndexes=[{"IndexName": "by-g", "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                                 "Projection": {"ProjectionType": "ALL"}, "ProvisionedThroughput": units}])


@pytest.fixture(scope="module")
def server():
    with Quipu("--memory") as running:
        yield running


@pytest.fixture
def scaling(server):
    return scaling_client(server.url)


@pytest.fixture
def table(server, request):
    name = request.node.name
    make_table(server.url, name)
    yield name
    boto_client(server.url).delete_table(TableName=name)


def target(table, dimension=READS, index=None):
    resource = f"table/{table}/index/{index}" if index else f"table/{table}"
    return {"ServiceNamespace": "dynamodb", "ResourceId": resource, "ScalableDimension": dimension}


def targets(scaling, table, **more):
    found = scaling.describe_scalable_targets(ServiceNamespace="dynamodb", ResourceIds=[f"table/{table}"], **more)
    return found["ScalableTargets"]


def code_of(call, **arguments):
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    return caught.value.response["Error"]["Code"]


def test_a_target_is_registered_changed_and_deregistered(scaling, table):
    scaling.register_scalable_target(**target(table), MinCapacity=1, MaxCapacity=10)
    (first,) = targets(scaling, table)
    created = first.pop("CreationTime")
    assert created.year >= 2026
    first.pop("ScalableTargetARN", None)  # older SDKs do not know it
    assert first == {**target(table), "MinCapacity": 1, "MaxCapacity": 10,
                     "RoleARN": "arn:aws:iam::000000000000:role/aws-service-role/dynamodb.application-autoscaling."
                                "amazonaws.com/AWSServiceRoleForApplicationAutoScaling_DynamoDBTable",
                     "SuspendedState": {"DynamicScalingInSuspended": False, "DynamicScalingOutSuspended": False,
                                        "ScheduledScalingSuspended": False}}
    scaling.register_scalable_target(**target(table), MaxCapacity=20, RoleARN="arn:aws:iam::1:role/r",
                                     SuspendedState={"DynamicScalingInSuspended": True})
    (changed,) = targets(scaling, table)
    assert (changed["MinCapacity"], changed["MaxCapacity"], changed["RoleARN"], changed["CreationTime"]) == \
        (1, 20, "arn:aws:iam::1:role/r", created)
    assert changed["SuspendedState"]["DynamicScalingInSuspended"] is True
    scaling.deregister_scalable_target(**target(table))
    assert targets(scaling, table) == []
    assert code_of(scaling.deregister_scalable_target, **target(table)) == "ObjectNotFoundException"


def test_what_cannot_be_registered(scaling, table):
    index_reads = "dynamodb:index:ReadCapacityUnits"
    for wrong in [target("nowhere"), target(table, index="by-g"), target(table, index_reads),
                  target(table, index_reads, "nothing"),
                  {**target(table), "ResourceId": "service/cluster/web"}, {**target(table), "ServiceNamespace": "ecs"}]:
        assert code_of(scaling.register_scalable_target, **wrong, MinCapacity=1, MaxCapacity=2) == "ValidationException"
    for capacities in [{}, {"MinCapacity": 1}, {"MinCapacity": 3, "MaxCapacity": 2},
                       {"MinCapacity": 0, "MaxCapacity": 2}]:
        assert code_of(scaling.register_scalable_target, **target(table), **capacities) == "ValidationException"
    assert targets(scaling, table) == []


def test_policies_are_kept_with_their_target(scaling, table):
    assert code_of(scaling.put_scaling_policy, **target(table), PolicyName="track", PolicyType="TargetTrackingScaling",
                   TargetTrackingScalingPolicyConfiguration=TRACKING) == "ObjectNotFoundException"
    scaling.register_scalable_target(**target(table), MinCapacity=1, MaxCapacity=10)
    put = scaling.put_scaling_policy(**target(table), PolicyName="track reads", PolicyType="TargetTrackingScaling",
                                     TargetTrackingScalingPolicyConfiguration=TRACKING)
    assert put["PolicyARN"].startswith("arn:aws:autoscaling:us-east-1:000000000000:scalingPolicy:")
    assert put["PolicyARN"].endswith(f":resource/dynamodb/table/{table}:policyName/track reads") and put["Alarms"] == []
    (policy,) = scaling.describe_scaling_policies(ServiceNamespace="dynamodb",
                                                  ResourceId=f"table/{table}")["ScalingPolicies"]
    assert policy.pop("CreationTime").year >= 2026
    assert policy == {**target(table), "PolicyARN": put["PolicyARN"], "PolicyName": "track reads", "Alarms": [],
                      "PolicyType": "TargetTrackingScaling", "TargetTrackingScalingPolicyConfiguration": TRACKING}
    assert isinstance(policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"], float)
    again = scaling.put_scaling_policy(**target(table), PolicyName="track reads", PolicyType="TargetTrackingScaling",
                                       TargetTrackingScalingPolicyConfiguration={**TRACKING, "TargetValue": 50.5})
    assert again["PolicyARN"] == put["PolicyARN"]
    found = scaling.describe_scaling_policies(ServiceNamespace="dynamodb", PolicyNames=["track reads"])
    assert [p["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] for p in found["ScalingPolicies"]] == [50.5]
    assert code_of(scaling.put_scaling_policy, **target(table), PolicyName="steps", PolicyType="StepScaling",
                   StepScalingPolicyConfiguration={}) == "ValidationException"
    assert code_of(scaling.delete_scaling_policy, **target(table), PolicyName="other") == "ObjectNotFoundException"
    scaling.delete_scaling_policy(**target(table), PolicyName="track reads")
    scaling.put_scaling_policy(**target(table), PolicyName="goes", PolicyType="TargetTrackingScaling",
                               TargetTrackingScalingPolicyConfiguration=TRACKING)
    scaling.deregister_scalable_target(**target(table))
    assert scaling.describe_scaling_policies(ServiceNamespace="dynamodb")["ScalingPolicies"] == []


def raw(url, operation, **members):
    """A call that older SDKs do not know."""
    with Connection(url) as connection:
        return connection.call(operation, members, {"Content-Type": "application/x-amz-json-1.1",
                                                    "X-Amz-Target": f"AnyScaleFrontendService.{operation}"})


def arn_of_target(url, what):
    found = raw(url, "DescribeScalableTargets", ServiceNamespace="dynamodb", ResourceIds=[what["ResourceId"]]).json
    return next(t["ScalableTargetARN"] for t in found["ScalableTargets"]
                if t["ScalableDimension"] == what["ScalableDimension"])


def tags_of(url, arn):
    return raw(url, "ListTagsForResource", ResourceARN=arn).json["Tags"]


def test_targets_have_tags(server, scaling, table):
    url = server.url
    scaling.register_scalable_target(**target(table, WRITES), MinCapacity=1, MaxCapacity=2)
    raw(url, "RegisterScalableTarget", **target(table), MinCapacity=1, MaxCapacity=2, Tags={"team": "a", "env": "x"})
    arn = arn_of_target(url, target(table))
    assert tags_of(url, arn) == {"team": "a", "env": "x"}
    assert raw(url, "TagResource", ResourceARN=arn, Tags={"env": "y", "new": ""}).json == {}
    assert tags_of(url, arn) == {"team": "a", "env": "y", "new": ""}
    assert raw(url, "UntagResource", ResourceARN=arn, TagKeys=["team", "not there"]).json == {}
    assert tags_of(url, arn) == {"env": "y", "new": ""}
    scaling.register_scalable_target(**target(table), MaxCapacity=3)
    assert tags_of(url, arn) == {"env": "y", "new": ""}
    assert tags_of(url, arn_of_target(url, target(table, WRITES))) == {}
    many = {f"k{i}": "" for i in range(49)}
    for wrong, code in ((many, "TooManyTagsException"), ({"aws:x": ""}, "ValidationException"),
                        ({"k": "v" * 257}, "ValidationException")):
        assert raw(url, "TagResource", ResourceARN=arn, Tags=wrong).type == code
    assert tags_of(url, arn) == {"env": "y", "new": ""}
    # Without one they are what DynamoDB's own operations of these names are not.
    for operation, more in (("ListTagsForResource", {}), ("TagResource", {"Tags": {"a": "b"}}),
                            ("UntagResource", {"TagKeys": ["a"]})):
        assert raw(url, operation, ResourceARN=arn + "0", **more).type == "ResourceNotFoundException"
    with Connection(url) as connection:
        assert connection.call("ListTagsForResource", {"ResourceARN": arn}).type == "UnknownOperationException"
    assert raw(url, "TagScalableTarget", ResourceARN=arn, Tags={}).type == "UnknownOperationException"


def test_a_utilization_has_its_bounds(scaling, table):
    """As the service documents them for tables; its words are not known."""
    scaling.register_scalable_target(**target(table), MinCapacity=1, MaxCapacity=10)
    for value in (10, 19.9, 90.1, -1):
        assert code_of(scaling.put_scaling_policy, **target(table), PolicyName="p", PolicyType="TargetTrackingScaling",
                       TargetTrackingScalingPolicyConfiguration={**TRACKING, "TargetValue": value}) == \
            "ValidationException"
    for value in (20, 90):
        scaling.put_scaling_policy(**target(table), PolicyName="p", PolicyType="TargetTrackingScaling",
                                   TargetTrackingScalingPolicyConfiguration={**TRACKING, "TargetValue": value})


def test_targets_come_in_pages(scaling, table):
    wanted = []
    for what in [target(table), target(table, WRITES)] + [
            target(table, f"dynamodb:index:{kind}CapacityUnits", "by-g") for kind in ("Read", "Write")]:
        scaling.register_scalable_target(**what, MinCapacity=1, MaxCapacity=2)
        wanted.append((what["ResourceId"], what["ScalableDimension"]))
    pages = scaling.get_paginator("describe_scalable_targets").paginate(
        ServiceNamespace="dynamodb", PaginationConfig={"PageSize": 1})
    found = [[(t["ResourceId"], t["ScalableDimension"]) for t in page["ScalableTargets"]] for page in pages]
    assert [len(page) for page in found] == [1, 1, 1, 1] and sorted(sum(found, [])) == sorted(wanted)
    assert code_of(scaling.describe_scalable_targets, ServiceNamespace="dynamodb", NextToken="rubbish") == \
        "InvalidNextTokenException"
    assert [t["ScalableDimension"] for t in targets(scaling, table, ScalableDimension=WRITES)] == [WRITES]


def test_the_aws_command(server, table):
    environment = clean_environment({"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
                                     "AWS_DEFAULT_REGION": "us-east-1"})
    command = ["aws", "--endpoint-url", server.url, "--output", "json", "application-autoscaling"]
    about = ["--service-namespace", "dynamodb"]
    done = subprocess.run([*command, "register-scalable-target", *about, "--resource-id", f"table/{table}",
                           "--scalable-dimension", READS, "--min-capacity", "5", "--max-capacity", "50"],
                          capture_output=True, text=True, timeout=180, env=environment)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([*command, "describe-scalable-targets", *about, "--resource-ids", f"table/{table}"],
                          capture_output=True, text=True, timeout=180, env=environment)
    assert [t["MaxCapacity"] for t in json.loads(done.stdout)["ScalableTargets"]] == [50], done.stderr


def test_they_survive_a_restart_and_go_with_their_table(tmp_path):
    folder = os.path.join(tmp_path, "data")
    with Quipu("--data", folder) as server:
        make_table(server.url, "lasting")
        scaling_client(server.url).register_scalable_target(**target("lasting"), MinCapacity=1, MaxCapacity=10)
    with Quipu("--data", folder) as server:
        assert len(targets(scaling_client(server.url), "lasting")) == 1
        boto_client(server.url).delete_table(TableName="lasting")
        assert targets(scaling_client(server.url), "lasting") == []
