"""Functions and mappings for tests: small handlers that write down what they were called with.

A handler is Python source with a function `handle(event)`; every call is noted as one line of JSON in a file of the
function's own before it runs, so that a test sees also calls that fail.
"""
import io
import json
import os
import time
import urllib.error
import urllib.request
import zipfile

import boto3
import botocore.config

WAIT_SECONDS = 240  # only what never happens takes so long
ROLE = "arn:aws:iam::000000000000:role/any"

FRAME = """
import json, os, time

def note(**more):
    line = (json.dumps(more) + "\\n").encode()
    descriptor = os.open(os.environ["NOTES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, line)
    os.close(descriptor)

def calls():
    with open(os.environ["NOTES"]) as file:
        return [json.loads(line) for line in file if '"event"' in line]

def numbers(event):
    return [int(r["dynamodb"].get("NewImage", {}).get("n", {}).get("N", -1)) for r in event["Records"]]

def lambda_handler(event, context):
    note(event=event, pid=os.getpid())
    return handle(event)
"""

RETURN_NOTHING = "def handle(event):\n    return None\n"

# Appends to a list what it was told, by a write that it returns: what is lost, doubled or out of order shows.
KEEP_ACCOUNT = """
def handle(event):
    told = {}
    for record in event["Records"]:
        told.setdefault(record["dynamodb"]["Keys"]["pk"]["S"], []).append(record["dynamodb"]["NewImage"]["n"])
    return {"quipu": {"transact": [{"Update": {
        "TableName": "accounts", "Key": {"pk": {"S": key}},
        "UpdateExpression": "SET told = list_append(if_not_exists(told, :none), :more)",
        "ExpressionAttributeValues": {":none": {"L": []}, ":more": {"L": numbers}}}} for key, numbers in told.items()]}}
"""



def lambda_client(url):
    config = botocore.config.Config(retries={"max_attempts": 0}, connect_timeout=60, read_timeout=180)
    return boto3.client("lambda", endpoint_url=url, region_name="us-east-1", aws_access_key_id="local",
                        aws_secret_access_key="local", config=config)


def archive(files):
    """A zip of {name: text}; what is called bootstrap may be run."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for name, text in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (0o755 if name == "bootstrap" else 0o644) << 16
            packed.writestr(info, text)
    return out.getvalue()


def send(url, method, path, body=None, headers=None):
    """A request as it is, for members that SDKs do not know: status and JSON."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data=data, method=method,
                                     headers={"Content-Type": "application/json", **(headers or {})})
    try:
        with urllib.request.urlopen(request, timeout=180) as reply:
            text = reply.read()
            return reply.status, json.loads(text) if text else {}
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"{}")


def eventually(condition, what, seconds=WAIT_SECONDS):
    """Waits until the condition holds and answers its value."""
    until = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < until, f"this did not happen: {what}"
        time.sleep(0.02)


class Function:
    """A function whose calls are noted in a file."""

    def __init__(self, client, folder, name, source=RETURN_NOTHING, **more):
        self.client, self.name = client, name
        self.notes = os.path.join(str(folder), name + ".notes")
        request = {"FunctionName": name, "Runtime": "python3.11", "Handler": "lambda_function.lambda_handler",
                   "Role": ROLE, "Timeout": 30, "Code": {"ZipFile": archive({"lambda_function.py": FRAME + source})},
                   "Environment": {"Variables": {"NOTES": self.notes}}}
        request.update(more)
        self.arn = client.create_function(**request)["FunctionArn"]

    def lines(self):
        if not os.path.exists(self.notes):
            return []
        with open(self.notes) as file:
            return [json.loads(line) for line in file if line.endswith("\n")]  # the last one may be half written

    def events(self):
        return [line["event"] for line in self.lines() if "event" in line]

    def batches(self):
        """The attribute n of each record, by call."""
        return [[int(record["dynamodb"].get("NewImage", {}).get("n", {}).get("N", -1)) for record in event["Records"]]
                for event in self.events()]

    def numbers(self):
        return [n for batch in self.batches() for n in batch]


class Mapping:
    """A mapping that is at work when this is made."""

    def __init__(self, client, source, function, position="TRIM_HORIZON", **settings):
        self.client = client
        reply = client.create_event_source_mapping(EventSourceArn=source, FunctionName=function,
                                                   StartingPosition=position, **settings)
        self.id = reply["UUID"]
        self.wait("Enabled" if settings.get("Enabled", True) else "Disabled")

    def get(self):
        return self.client.get_event_source_mapping(UUID=self.id)

    def wait(self, state):
        eventually(lambda: self.get()["State"] == state, f"the mapping is {state}")

    def update(self, **settings):
        reply = self.client.update_event_source_mapping(UUID=self.id, **settings)
        self.wait("Enabled" if self.get_enabled(settings, reply) else "Disabled")
        return reply

    @staticmethod
    def get_enabled(settings, reply):
        return settings.get("Enabled", reply["State"] not in ("Disabling", "Disabled"))

    def delete(self):
        self.client.delete_event_source_mapping(UUID=self.id)
        eventually(self.is_gone, "the mapping is gone")

    def is_gone(self):
        try:
            self.get()
        except self.client.exceptions.ResourceNotFoundException:
            return True
        return False


def queue_documents(dynamodb, name):
    """What was put into a queue, oldest first."""
    try:
        reply = dynamodb.query(TableName="quipu-queues", KeyConditionExpression="queue = :q",
                               ExpressionAttributeValues={":q": {"S": name}})
    except dynamodb.exceptions.ResourceNotFoundException:
        return []
    return [json.loads(item["body"]["S"]) for item in reply["Items"]]
