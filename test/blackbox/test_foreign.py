"""Clients of services that are not here are told which ones are."""
import json

import boto3
import botocore.config
import botocore.exceptions
import pytest
from lambdas import ROLE, archive, lambda_client

HERE = ("this server has DynamoDB, DynamoDB Streams, Application Auto Scaling, Lambda, EventBridge Scheduler and "
        "CloudWatch Logs (reading)")


@pytest.mark.parametrize("service, operation, parameters, name, variable", [
    ("s3", "get_object", {"Bucket": "mine", "Key": "a/b"}, "S3", "S3"),
    ("s3", "put_object", {"Bucket": "v1", "Key": "jobs", "Body": b"x"}, "S3", "S3"),
    ("s3", "list_buckets", {}, "S3", "S3"),
    ("sqs", "send_message", {"QueueUrl": "http://mine", "MessageBody": "x"}, "SQS", "SQS"),
    ("sns", "publish", {"TopicArn": "arn:aws:sns:us-east-1:000000000000:t", "Message": "x"}, "SNS", "SNS"),
    ("secretsmanager", "get_secret_value", {"SecretId": "x"}, "Secrets Manager", "SECRETS_MANAGER"),
    ("kinesis", "list_streams", {}, "Kinesis", "KINESIS"),
    ("events", "put_events", {"Entries": [{"Detail": "{}"}]}, "EventBridge", "EVENTBRIDGE"),
])
def test_other_services_are_named(endpoint, service, operation, parameters, name, variable):
    config = botocore.config.Config(retries={"max_attempts": 0}, s3={"addressing_style": "path"})
    client = boto3.client(service, endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="local",
                          aws_secret_access_key="local", config=config)
    if "QueueUrl" in parameters:
        parameters = {**parameters, "QueueUrl": endpoint + "/000000000000/mine"}
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        getattr(client, operation)(**parameters)
    error = caught.value.response["Error"]
    assert error["Code"] == "NotImplemented"
    assert error["Message"] == f"There is no {name} here: {HERE}. Set AWS_ENDPOINT_URL_{variable} to where it is."


INSIDE = """
import boto3, botocore.exceptions, os
def handler(event, context):
    url = os.environ["AWS_ENDPOINT_URL"]
    logs = boto3.client("logs", endpoint_url=url)
    try:
        boto3.client("s3", endpoint_url=url).list_buckets()
    except botocore.exceptions.ClientError as error:
        return [str(error), [group["logGroupName"] for group in logs.describe_log_groups(
            logGroupNamePrefix=context.log_group_name)["logGroups"]]]
"""


def test_functions_are_told_as_well_and_may_read_logs(endpoint, unused_name):
    client = lambda_client(endpoint)
    client.create_function(FunctionName=unused_name, Runtime="python3.11", Handler="main.handler", Role=ROLE,
                           Timeout=60, MemorySize=512, Code={"ZipFile": archive({"main.py": INSIDE})},
                           Environment={"Variables": {"PYTHONPATH": boto3.__path__[0] + "/.."}})
    message, groups = json.loads(client.invoke(FunctionName=unused_name)["Payload"].read())
    assert "There is no S3 here" in message and groups == ["/aws/lambda/" + unused_name]
    client.delete_function(FunctionName=unused_name)
