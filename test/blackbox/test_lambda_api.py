"""Lambda's API from outside: boto3, raw HTTP, restarts. The functions are real processes."""
import base64
import concurrent.futures
import hashlib
import io
import json
import os
import urllib.request
import zipfile

import botocore.exceptions
import pytest
from lambdas import ROLE, archive, eventually, lambda_client, send
from support.engines import ENGINES, server_on
from support.process import Quipu

ECHO = """
import os
def handler(event, context):
    print("hello from", context.function_name)
    client = getattr(context, "client_context", None)
    if isinstance(event, dict) and event.get("fail"):
        raise ValueError("as asked")
    return {"event": event, "version": context.function_version, "mode": os.environ.get("MODE"),
            "custom": client.custom if client else None}
"""


@pytest.fixture(scope="module", params=ENGINES)
def endpoint(request, tmp_path_factory):
    """A server of its own, on each engine."""
    with server_on(request.param, "--functions", str(tmp_path_factory.mktemp("functions"))) as (server, _):
        yield server.url


@pytest.fixture(scope="module")
def client(endpoint):
    return lambda_client(endpoint)


@pytest.fixture
def make(client, unused_name):
    """make(source, **settings) creates a function in Python and answers its name; it goes after the test."""
    names = []

    def create(source=ECHO, **more):
        name = f"{unused_name}-{len(names)}"
        request = {"FunctionName": name, "Runtime": "python3.11", "Handler": "main.handler", "Role": ROLE,
                   "Timeout": 30, "Code": {"ZipFile": archive({"main.py": source})}}
        request.update(more)
        client.create_function(**request)
        names.append(name)
        return name

    yield create
    for name in names:
        try:
            client.delete_function(FunctionName=name)
        except client.exceptions.ResourceNotFoundException:
            pass


def invoke(client, name, payload=None, **more):
    reply = client.invoke(FunctionName=name, Payload=json.dumps(payload).encode(), **more)
    return reply, json.loads(reply["Payload"].read() or b"null")


def refused(call, *arguments, **more):
    """The error that a call ends in: code, message, status."""
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        call(*arguments, **more)
    response = caught.value.response
    return response["Error"]["Code"], response["Error"]["Message"], response["ResponseMetadata"]["HTTPStatusCode"]


# ---- the life of a function ----

def test_waiters_end(client, make):
    name = make()
    client.get_waiter("function_exists").wait(FunctionName=name)
    client.get_waiter("function_active").wait(FunctionName=name)
    client.get_waiter("function_active_v2").wait(FunctionName=name)
    client.update_function_configuration(FunctionName=name, Description="new")
    client.get_waiter("function_updated").wait(FunctionName=name)
    client.get_waiter("function_updated_v2").wait(FunctionName=name)


def test_a_function_is_described_as_it_was_made(client, make):
    code = archive({"main.py": ECHO})
    name = make(MemorySize=256, Description="länger", Environment={"Variables": {"MODE": "x"}}, Tags={"team": "a"},
                Architectures=["arm64"], EphemeralStorage={"Size": 1024}, TracingConfig={"Mode": "Active"},
                VpcConfig={"SubnetIds": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}, Code={"ZipFile": code})
    got = client.get_function(FunctionName=name)
    configuration = got["Configuration"]
    assert configuration["FunctionArn"] == f"arn:aws:lambda:us-east-1:000000000000:function:{name}"
    assert configuration["CodeSha256"] == base64.b64encode(hashlib.sha256(code).digest()).decode()
    assert configuration["CodeSize"] == len(code)
    assert (configuration["State"], configuration["LastUpdateStatus"]) == ("Active", "Successful")
    assert (configuration["MemorySize"], configuration["Timeout"], configuration["Description"]) == (256, 30, "länger")
    assert configuration["Environment"] == {"Variables": {"MODE": "x"}}
    assert configuration["Architectures"] == ["arm64"]
    assert configuration["EphemeralStorage"] == {"Size": 1024}
    assert configuration["VpcConfig"]["SubnetIds"] == ["subnet-1"]
    assert got["Tags"] == {"team": "a"}
    plain = client.get_function_configuration(FunctionName=configuration["FunctionArn"])
    assert {k: v for k, v in plain.items() if k != "ResponseMetadata"} == configuration


def test_the_archive_can_be_had_back(client, make):
    code = archive({"main.py": ECHO, "data/more.txt": "x" * 1000})
    name = make(Code={"ZipFile": code})
    location = client.get_function(FunctionName=name)["Code"]["Location"]
    with urllib.request.urlopen(location, timeout=180) as reply:
        assert reply.headers["Content-Type"] == "application/zip"
        assert reply.read() == code


def test_code_and_configuration_change_what_runs(client, make):
    name = make()
    assert invoke(client, name, 1)[1] == {"event": 1, "version": "$LATEST", "mode": None, "custom": None}
    client.update_function_configuration(FunctionName=name, Environment={"Variables": {"MODE": "fast"}})
    assert invoke(client, name, 2)[1]["mode"] == "fast"
    code = archive({"main.py": "def handler(e, c):\n  return 'new'\n"})
    updated = client.update_function_code(FunctionName=name, ZipFile=code)
    assert updated["Version"] == "$LATEST"
    assert invoke(client, name, 3)[1] == "new"


def test_dry_run_of_code_changes_nothing(client, make):
    name = make()
    before = client.get_function_configuration(FunctionName=name)
    dry = client.update_function_code(FunctionName=name, ZipFile=archive({"main.py": "other"}), DryRun=True)
    assert dry["CodeSha256"] != before["CodeSha256"]
    after = client.get_function_configuration(FunctionName=name)
    assert (after["CodeSha256"], after["RevisionId"]) == (before["CodeSha256"], before["RevisionId"])


def test_revisions_guard_changes(client, make):
    name = make()
    revision = client.get_function_configuration(FunctionName=name)["RevisionId"]
    client.update_function_configuration(FunctionName=name, Timeout=7, RevisionId=revision)
    code, message, status = refused(client.update_function_configuration, FunctionName=name, Timeout=8,
                                    RevisionId=revision)
    assert (code, status) == ("PreconditionFailedException", 412)
    assert message == ("The Revision Id provided does not match the latest Revision Id. Call the GetFunction/GetAlias "
                       "API to retrieve the latest Revision Id")
    assert client.get_function_configuration(FunctionName=name)["Timeout"] == 7


def test_a_deleted_function_is_gone(client, make):
    name = make()
    client.delete_function(FunctionName=name)
    assert refused(client.get_function, FunctionName=name) == (
        "ResourceNotFoundException", f"Function not found: arn:aws:lambda:us-east-1:000000000000:function:{name}", 404)
    assert refused(client.invoke, FunctionName=name)[0] == "ResourceNotFoundException"


def test_functions_are_listed_in_pages(client, make):
    names = sorted(make(Code={"ZipFile": archive({"main.py": ECHO})}) for _ in range(5))
    pages = list(client.get_paginator("list_functions").paginate(PaginationConfig={"PageSize": 2}))
    listed = [f["FunctionName"] for page in pages for f in page["Functions"]]
    assert all(len(page["Functions"]) <= 2 for page in pages)
    assert [name for name in listed if name in names] == names
    assert len(listed) == len(set(listed))
    with_versions = client.get_paginator("list_functions").paginate(FunctionVersion="ALL")
    arns = [f["FunctionArn"] for page in with_versions for f in page["Functions"]]
    assert any(arn.endswith(names[0] + ":$LATEST") for arn in arns)


# ---- invoking ----

def test_invoke_with_log_and_context(client, make):
    name = make()
    context = base64.b64encode(json.dumps({"custom": {"who": "me"}}).encode()).decode()
    reply, answer = invoke(client, name, {"a": 1}, LogType="Tail", ClientContext=context)
    assert (reply["StatusCode"], reply["ExecutedVersion"], reply.get("FunctionError")) == (200, "$LATEST", None)
    assert answer["custom"] == {"who": "me"}
    log = base64.b64decode(reply["LogResult"]).decode()
    assert "START RequestId: " in log and "hello from " + name in log and "REPORT RequestId: " in log


TALKER = """
import sys
def handler(event, context):
    for i in range(5):
        print("call", event["n"], "out", i)
        print("call", event["n"], "err", i, file=sys.stderr)
    sys.stdout.write("call %d without an end" % event["n"])
"""


def lines_of(n):
    return sorted([f"call {n} {where} {i}" for i in range(5) for where in ("out", "err")] +
                  [f"call {n} without an end"])


def printed(client, name, n):
    """What the log of one call holds between START and END."""
    reply, _ = invoke(client, name, {"n": n}, LogType="Tail")
    lines = base64.b64decode(reply["LogResult"]).decode().splitlines()
    assert lines[0].startswith("START ") and [line.split()[0] for line in lines[-2:]] == ["END", "REPORT"]
    return sorted(lines[1:-2])


def test_the_log_of_a_call_has_its_own_lines_only(client, make):
    name = make(TALKER)
    for n in range(200):
        assert printed(client, name, n) == lines_of(n)
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        for n, lines in enumerate(threads.map(lambda n: printed(client, name, n), range(200))):
            assert lines == lines_of(n)


def test_lines_stand_between_start_and_end_of_their_call(client, make, endpoint):
    name = make(TALKER)
    for n in range(50):
        invoke(client, name, {"n": n})
    with urllib.request.urlopen(f"{endpoint}/v1/functions/{name}/logs?max=1000000", timeout=180) as reply:
        log = reply.read().decode()
    calls = log.split("START RequestId: ")[1:]
    assert len(calls) == 50
    for n, call in enumerate(calls):
        lines = call.splitlines()
        assert sorted(lines[1:-2]) == lines_of(n) and lines[-2].startswith("END "), call


LOGGER = """
import logging, os, sys
def handler(event, context):
    logging.info("hello"); logging.debug("detail")
    if event.get("end"): os._exit(3)
    return [os.environ.get("AWS_LAMBDA_LOG_FORMAT"), os.environ.get("AWS_LAMBDA_LOG_LEVEL")]
"""


def logged(client, name, event):
    """The answer of a call, and its log as objects."""
    reply, answer = invoke(client, name, event, LogType="Tail")
    return answer, [json.loads(line) for line in base64.b64decode(reply["LogResult"]).decode().splitlines()]


def kinds(lines):
    return [line.get("type") or line["level"] for line in lines]


def set_logging(endpoint, name, **logging):
    """By hand: older SDKs do not know the member."""
    status, reply = send(endpoint, "PUT", f"/2015-03-31/functions/{name}/configuration", {"LoggingConfig": logging})
    return reply["LoggingConfig"] if status == 200 else (status, reply["message"])


def test_logs_in_json(client, make, endpoint):
    name = make(LOGGER)
    assert set_logging(endpoint, name, LogFormat="JSON") == {
        "LogFormat": "JSON", "ApplicationLogLevel": "INFO", "SystemLogLevel": "INFO", "LogGroup": "/aws/lambda/" + name}
    answer, lines = logged(client, name, {})
    assert answer == ["JSON", "INFO"]
    assert kinds(lines) == ["platform.start", "INFO", "platform.report"]
    request_id = lines[0]["record"]["requestId"]
    assert lines[0]["record"] == {"requestId": request_id, "version": "$LATEST"}
    assert (lines[1]["requestId"], lines[1]["message"]) == (request_id, "hello")
    assert (lines[2]["record"]["requestId"], lines[2]["record"]["status"]) == (request_id, "success")
    assert {"durationMs", "billedDurationMs", "memorySizeMB", "maxMemoryUsedMB", "initDurationMs"} == \
        set(lines[2]["record"]["metrics"])
    _, lines = logged(client, name, {"end": True})
    assert kinds(lines) == ["platform.start", "INFO", "ERROR", "platform.runtimeDone", "platform.report"]
    assert (lines[2]["errorType"], lines[2]["message"]) == (
        "Runtime.ExitError", "Runtime exited with error: exit status 3")
    assert (lines[4]["record"]["status"], lines[4]["record"]["errorType"]) == ("error", "Runtime.ExitError")


def test_log_levels(client, make, endpoint):
    name = make(LOGGER)
    assert set_logging(endpoint, name, SystemLogLevel="WARN") == (
        400, "ApplicationLogLevel and SystemLogLevel can only be set where LogFormat is JSON")
    set_logging(endpoint, name, LogFormat="JSON", SystemLogLevel="WARN")
    assert kinds(logged(client, name, {})[1]) == ["INFO"]
    set_logging(endpoint, name, SystemLogLevel="DEBUG", ApplicationLogLevel="DEBUG")  # the format stays
    answer, lines = logged(client, name, {})
    assert answer == ["JSON", "DEBUG"]
    assert kinds(lines) == ["platform.start", "INFO", "DEBUG", "platform.runtimeDone", "platform.report"]
    assert set_logging(endpoint, name, LogFormat="Text") == {"LogFormat": "Text", "LogGroup": "/aws/lambda/" + name}
    reply, answer = invoke(client, name, {}, LogType="Tail")
    assert answer == ["Text", None] and base64.b64decode(reply["LogResult"]).startswith(b"START ")


def test_a_functions_error_is_told(client, make):
    reply, answer = invoke(client, make(), {"fail": True})
    assert (reply["StatusCode"], reply["FunctionError"]) == (200, "Unhandled")
    assert (answer["errorType"], answer["errorMessage"]) == ("ValueError", "as asked")


def test_an_archive_without_a_bootstrap_is_the_functions_error(client, make):
    name = make(Runtime="provided.al2023", Code={"ZipFile": archive({"readme": "nothing to run"})})
    reply, answer = invoke(client, name, {}, LogType="Tail")
    assert (reply["StatusCode"], reply["FunctionError"]) == (200, "Unhandled")
    assert answer["errorType"] == "Runtime.InvalidEntrypoint"
    assert "Couldn't find valid bootstrap(s): [" in answer["errorMessage"]
    log = base64.b64decode(reply["LogResult"]).decode()
    assert "Couldn't find valid bootstrap(s)" in log and "Error Type: Runtime.InvalidEntrypoint" in log


def test_dry_run_and_event(client, make, tmp_path):
    notes = tmp_path / "notes"
    name = make("import os\ndef handler(e, c):\n  open(os.environ['NOTES'], 'a').write(e['text'])\n",
                Environment={"Variables": {"NOTES": str(notes)}})
    assert client.invoke(FunctionName=name, InvocationType="DryRun")["StatusCode"] == 204
    assert client.invoke(FunctionName=name, InvocationType="Event", Payload=b'{"text": "done"}')["StatusCode"] == 202
    eventually(lambda: notes.exists() and notes.read_text() == "done", "the accepted call has run")
    assert client.invoke_async(FunctionName=name, InvokeArgs=b'{"text": "!"}')["Status"] == 202
    eventually(lambda: notes.read_text() == "done!", "the second call has run")


def test_payloads_that_are_none(client, make, endpoint):
    name = make()
    assert refused(client.invoke, FunctionName=name, Payload=b"{not json")[0] == "InvalidRequestContentException"
    code, message, status = refused(client.invoke, FunctionName=name, Payload=b'"' + b"x" * 6 * 1024 * 1024 + b'"')
    assert (code, status) == ("RequestTooLargeException", 413)
    assert message == "Request must be smaller than 6291456 bytes for the InvokeFunction operation"
    reply = client.invoke(FunctionName=name)
    assert json.loads(reply["Payload"].read())["event"] == {}


def test_no_reserved_concurrency_is_no_call(client, make):
    name = make()
    client.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
    with pytest.raises(client.exceptions.TooManyRequestsException) as caught:
        client.invoke(FunctionName=name)
    assert caught.value.response["Reason"] == "ReservedFunctionConcurrentInvocationLimitExceeded"
    assert client.get_function_concurrency(FunctionName=name)["ReservedConcurrentExecutions"] == 0
    client.delete_function_concurrency(FunctionName=name)
    assert invoke(client, name, 1)[1]["event"] == 1


# ---- versions and aliases ----

def test_versions_stay_as_they_were_published(client, make):
    name = make(Environment={"Variables": {"MODE": "one"}}, Publish=True)
    client.update_function_configuration(FunctionName=name, Environment={"Variables": {"MODE": "two"}})
    assert client.publish_version(FunctionName=name, Description="second")["Version"] == "2"
    assert client.publish_version(FunctionName=name)["Version"] == "2"
    client.update_function_configuration(FunctionName=name, Environment={"Variables": {"MODE": "three"}})
    modes = {q: invoke(client, name, 0, Qualifier=q) for q in ("1", "2", "$LATEST")}
    assert {q: (reply["ExecutedVersion"], answer["mode"]) for q, (reply, answer) in modes.items()} == {
        "1": ("1", "one"), "2": ("2", "two"), "$LATEST": ("$LATEST", "three")}
    assert all(answer["version"] == q for q, (_, answer) in modes.items())
    versions = client.get_paginator("list_versions_by_function").paginate(FunctionName=name)
    assert [v["Version"] for page in versions for v in page["Versions"]] == ["$LATEST", "1", "2"]


def test_an_alias_with_two_versions_calls_both(client, make):
    name = make(Publish=True)
    client.update_function_configuration(FunctionName=name, Timeout=20)
    client.publish_version(FunctionName=name)
    alias = client.create_alias(FunctionName=name, Name="live", FunctionVersion="1",
                                RoutingConfig={"AdditionalVersionWeights": {"2": 0.5}})
    assert alias["RoutingConfig"] == {"AdditionalVersionWeights": {"2": 0.5}}
    executed = {invoke(client, alias["AliasArn"], 0)[0]["ExecutedVersion"] for _ in range(40)}
    assert executed == {"1", "2"}
    client.update_alias(FunctionName=name, Name="live", RoutingConfig={"AdditionalVersionWeights": {}})
    assert {invoke(client, name, 0, Qualifier="live")[0]["ExecutedVersion"] for _ in range(10)} == {"1"}
    assert [a["Name"] for a in client.list_aliases(FunctionName=name)["Aliases"]] == ["live"]
    assert refused(client.delete_function, FunctionName=name, Qualifier="1")[0] == "ResourceConflictException"
    client.delete_alias(FunctionName=name, Name="live")
    client.delete_function(FunctionName=name, Qualifier="1")
    assert refused(client.get_alias, FunctionName=name, Name="live")[0] == "ResourceNotFoundException"


# ---- settings ----

def test_event_invoke_configs(client, make):
    name = make()
    arn = "arn:aws:sqs:us-east-1:000000000000:dead"
    put = client.put_function_event_invoke_config(FunctionName=name, MaximumRetryAttempts=0,
                                                  DestinationConfig={"OnFailure": {"Destination": arn}})
    assert put["FunctionArn"].endswith(name + ":$LATEST")
    updated = client.update_function_event_invoke_config(FunctionName=name, MaximumEventAgeInSeconds=60)
    assert (updated["MaximumRetryAttempts"], updated["MaximumEventAgeInSeconds"]) == (0, 60)
    got = client.get_function_event_invoke_config(FunctionName=name)
    assert got["DestinationConfig"]["OnFailure"]["Destination"] == arn
    assert got["LastModified"].year >= 2025
    listed = client.list_function_event_invoke_configs(FunctionName=name)["FunctionEventInvokeConfigs"]
    assert len(listed) == 1
    client.delete_function_event_invoke_config(FunctionName=name)
    assert refused(client.get_function_event_invoke_config, FunctionName=name)[0] == "ResourceNotFoundException"


def test_tags_and_policies(client, make):
    name = make()
    arn = client.get_function(FunctionName=name)["Configuration"]["FunctionArn"]
    client.tag_resource(Resource=arn, Tags={"a": "1", "b/c d": "ü"})
    client.untag_resource(Resource=arn, TagKeys=["a", "never"])
    assert client.list_tags(Resource=arn)["Tags"] == {"b/c d": "ü"}
    client.add_permission(FunctionName=name, StatementId="s3", Action="lambda:InvokeFunction",
                          Principal="s3.amazonaws.com", SourceArn="arn:aws:s3:::bucket")
    policy = client.get_policy(FunctionName=name)
    assert json.loads(policy["Policy"])["Statement"] == [
        {"Sid": "s3", "Effect": "Allow", "Principal": {"Service": "s3.amazonaws.com"},
         "Action": "lambda:InvokeFunction", "Resource": arn,
         "Condition": {"ArnLike": {"AWS:SourceArn": "arn:aws:s3:::bucket"}}}]
    client.remove_permission(FunctionName=name, StatementId="s3", RevisionId=policy["RevisionId"])
    assert refused(client.get_policy, FunctionName=name)[0] == "ResourceNotFoundException"


def test_the_account(client, make):
    make()
    settings = client.get_account_settings()
    assert settings["AccountUsage"]["FunctionCount"] >= 1
    assert settings["AccountLimit"]["ConcurrentExecutions"] >= 1


def test_members_of_ours(client, endpoint, unused_name, tmp_path):
    (tmp_path / "main.py").write_text("def handler(event, context):\n    return 'in place'\n")
    status, made = send(endpoint, "POST", "/2015-03-31/functions", {
        "FunctionName": unused_name, "Runtime": "python3.11", "Handler": "main.handler", "Timeout": 30,
        "Code": {"Directory": str(tmp_path)}})
    assert (status, made["Quipu"]) == (201, {"Directory": str(tmp_path)})
    assert invoke(client, unused_name)[1] == "in place"
    client.get_function(FunctionName=unused_name)
    client.delete_function(FunctionName=unused_name)


# ---- what is refused ----

@pytest.mark.parametrize("change, code, message", [
    ({"MemorySize": 10241}, "ValidationException", "1 validation error detected: Value '10241' at 'memorySize' failed "
     "to satisfy constraint: Member must have value less than or equal to 10240"),
    ({"Runtime": "cobol74"}, "InvalidParameterValueException", "Value cobol74 at 'runtime' failed to satisfy"),
    ({"Code": {"S3Bucket": "bucket", "S3Key": "key"}}, "InvalidParameterValueException", "Code cannot be fetched"),
    ({"Code": {"ZipFile": b"no zip"}}, "InvalidParameterValueException", "Could not unzip uploaded file."),
    ({"PackageType": "Image", "Code": {"ImageUri": "x"}}, "InvalidParameterValueException", "Functions from container"),
    ({"Layers": ["arn:aws:lambda:us-east-1:000000000000:layer:l:1"]}, "InvalidParameterValueException", "Layer "),
    ({"Environment": {"Variables": {"AWS_REGION": "x"}}}, "InvalidParameterValueException", "Lambda was unable to"),
    ({"Environment": {"Variables": {"BIG": "x" * 5000}}}, "InvalidParameterValueException", "Lambda was unable to"),
    ({"FunctionName": "no good name"}, "ValidationException", "1 validation error detected: Value 'no good name'"),
], ids=lambda value: "-".join(value) if isinstance(value, dict) else "")
def test_functions_that_cannot_be(client, unused_name, change, code, message):
    request = {"FunctionName": unused_name, "Runtime": "python3.11", "Handler": "main.handler", "Role": ROLE,
               "Code": {"ZipFile": archive({"main.py": ECHO})}}
    request.update(change)
    told = refused(client.create_function, **request)
    assert (told[0], told[2]) == (code, 400) and told[1].startswith(message)
    assert refused(client.get_function, FunctionName=unused_name)[0] == "ResourceNotFoundException"


def test_a_function_is_not_made_twice(client, make):
    name = make()
    assert refused(client.create_function, FunctionName=name, Runtime="python3.11", Handler="main.handler", Role=ROLE,
                   Code={"ZipFile": archive({"main.py": ECHO})}) == (
        "ResourceConflictException", f"Function already exist: {name}", 409)


def test_archives_have_limits(client, unused_name):
    request = {"FunctionName": unused_name, "Runtime": "python3.11", "Handler": "main.handler", "Role": ROLE}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as large:
        for number in range(3):
            large.writestr(f"zeros{number}", b"\0" * (100 << 20))
    assert refused(client.create_function, Code={"ZipFile": packed.getvalue()}, **request) == (
        "InvalidParameterValueException", "Unzipped size must be smaller than 262144000 bytes", 400)
    assert refused(client.create_function, Code={"ZipFile": b"x" * (50 * 1024 * 1024 + 1)}, **request) == (
        "RequestEntityTooLargeException", "Zipped size must be smaller than 52428800 bytes", 413)


def test_what_is_not_offered_says_so(client):
    code, message, status = refused(client.get_layer_version_policy, LayerName="l", VersionNumber=1)
    assert (code, status) == ("UnsupportedOperationException", 400)


# ---- across restarts ----

def test_functions_survive_a_restart(tmp_path):
    data = str(tmp_path / "data")
    with Quipu("--data", data) as server:
        client = lambda_client(server.url)
        client.create_function(FunctionName="kept", Runtime="python3.11", Handler="main.handler", Role=ROLE, Timeout=30,
                               Code={"ZipFile": archive({"main.py": ECHO})}, Publish=True,
                               Environment={"Variables": {"MODE": "kept"}})
        client.create_alias(FunctionName="kept", Name="live", FunctionVersion="1")
        server.kill()
    with Quipu("--data", data) as server:
        client = lambda_client(server.url)
        reply, answer = invoke(client, "kept", 5, Qualifier="live")
        assert (reply["ExecutedVersion"], answer["event"], answer["mode"]) == ("1", 5, "kept")


def test_the_tables_are_plain(client, endpoint, make):
    """What is stored of a function can be read with a plain client."""
    import boto3
    name = make(Description="readable", Environment={"Variables": {"MODE": "x"}})
    table = boto3.resource("dynamodb", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="local",
                           aws_secret_access_key="local").Table("quipu-functions")
    mark = table.get_item(Key={"name": name, "part": "function"})["Item"]["Parts"]["$LATEST"]
    item = table.get_item(Key={"name": name, "part": f"$LATEST@{mark}"})["Item"]
    assert (item["Runtime"], item["Description"], item["Timeout"]) == ("python3.11", "readable", 30)
    assert item["Environment"] == {"Variables": {"MODE": "x"}}


@pytest.mark.parametrize("by", ["flag", "home"])
def test_node_functions_find_shared_packages(tmp_path, by):
    folder = tmp_path / "quipu" / "node_modules" if by == "home" else tmp_path / "node_modules"
    (folder / "shared").mkdir(parents=True)
    (folder / "shared" / "index.js").write_text("exports.n = 7;")
    arguments = ("--node-modules", str(folder)) if by == "flag" else ()
    with Quipu("--memory", *arguments, env={"XDG_DATA_HOME": str(tmp_path)}) as server:
        client = lambda_client(server.url)
        client.create_function(FunctionName="user", Runtime="nodejs18.x", Handler="index.handler", Role=ROLE,
                               Timeout=30, Code={"ZipFile": archive({"index.mjs": "import { n } from 'shared'; "
                                                         "export const handler = async () => n;"})})
        assert invoke(client, "user")[1] == 7
