"""quipu deploy: templates become tables, functions and what starts them; again, interrupted, and away."""
import http.client
import http.server
import json
import re
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile

import pytest
from cli import items, on_terminal, output, quipu, start
from support.engines import ENGINES, server_on
from support.process import BINARY, Quipu, clean_environment

HANDLER = """
exports.handler = async (event) => {
  if (event.Records) console.log('records', event.Records.length, process.env.TABLE);
  return {table: process.env.TABLE, stage: process.env.STAGE};
};
"""

TEMPLATE = """
Parameters:
  Stage: {Type: String, Default: dev}
  Memory: {Type: Number, Default: 256}
Conditions:
  IsLive: !Equals [!Ref Stage, live]
Resources:
  Orders:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}, {AttributeName: day, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
      BillingMode: PAY_PER_REQUEST
      StreamSpecification: {StreamViewType: NEW_IMAGE}
      GlobalSecondaryIndexes:
        - IndexName: by-day
          KeySchema: [{AttributeName: day, KeyType: HASH}]
          Projection: {ProjectionType: INCLUDE, NonKeyAttributes: [b, a]}
      TimeToLiveSpecification: {AttributeName: expires, Enabled: true}
      Tags: [{Key: stage, Value: !Ref Stage}]
  Role: {Type: AWS::IAM::Role, Properties: {AssumeRolePolicyDocument: {}}}
  Shared:
    Type: AWS::Lambda::LayerVersion
    Properties: {LayerName: !Sub "${AWS::StackName}-shared", Content: ./layer}
  Count:
    Type: AWS::Lambda::Function
    Properties:
      Code: ./code
      Handler: index.handler
      Runtime: nodejs20.x
      Role: !GetAtt Role.Arn
      MemorySize: !Ref Memory
      Layers: [!Ref Shared]
      Environment: {Variables: {TABLE: !Ref Orders, STAGE: !If [IsLive, serious, trial]}}
  Newest: {Type: AWS::Lambda::Version, Properties: {FunctionName: !Ref Count}}
  Live:
    Type: AWS::Lambda::Alias
    Properties: {FunctionName: !Ref Count, FunctionVersion: !GetAtt Newest.Version, Name: live}
  Changes:
    Type: AWS::Lambda::EventSourceMapping
    Properties:
      EventSourceArn: !GetAtt Orders.StreamArn
      FunctionName: !Ref Count
      StartingPosition: TRIM_HORIZON
      BatchSize: 10
      MaximumRetryAttempts: "2"
      DestinationConfig: {OnFailure: {Destination: !GetAtt Lost.Arn}}
      FilterCriteria: {Filters: [{Pattern: '{"eventName": ["INSERT"]}'}]}
  Lost: {Type: AWS::SQS::Queue}
  Async:
    Type: AWS::Lambda::EventInvokeConfig
    Properties: {FunctionName: !Ref Count, Qualifier: $LATEST, MaximumRetryAttempts: 1}
  Nightly:
    Type: AWS::Events::Rule
    Properties: {ScheduleExpression: rate(1 day), Targets: [{Id: first, Arn: !GetAtt Count.Arn}]}
  Hourly:
    Type: AWS::Scheduler::Schedule
    Properties:
      ScheduleExpression: rate(1 hour)
      FlexibleTimeWindow: {Mode: "OFF"}
      Target: {Arn: !GetAtt Count.Arn, RoleArn: !GetAtt Role.Arn, Input: '{"a": 1}'}
Outputs:
  Table: {Value: !Ref Orders}
  Function: {Value: !GetAtt Count.Arn}
"""
MADE = ["Orders", "Shared", "Count", "Newest", "Live", "Changes", "Async", "Nightly", "Hourly"]


@pytest.fixture(scope="module")
def server():
    with Quipu("--test-hooks") as running:
        yield running


@pytest.fixture
def on(server):
    return server.url


@pytest.fixture
def app(tmp_path):
    """A folder with a template, code and a layer."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "index.js").write_text(HANDLER)
    (tmp_path / "layer" / "nodejs").mkdir(parents=True)
    (tmp_path / "layer" / "nodejs" / "shared.js").write_text("module.exports = 1;")
    (tmp_path / "template.yaml").write_text(TEMPLATE)
    return tmp_path


@pytest.fixture
def stack(on, unused_name):
    yield unused_name
    quipu("deploy", "--delete", unused_name, "--delete-data", on=on)


def deploy(app, stack, *flags, on, status=0):
    result = quipu("deploy", str(app / "template.yaml"), "--stack", stack, *flags, on=on)
    assert result.returncode == status, result.stderr
    return result


def actions(app, stack, *flags, on):
    """What each thing of a plan is to become."""
    shown = json.loads(deploy(app, stack, "--plan", "--json", *flags, on=on).stdout)
    return {change["id"]: change["action"] for change in shown["changes"]}


def edit(app, *pairs):
    text = (app / "template.yaml").read_text()
    for before, after in pairs:
        assert before in text, before
        text = text.replace(before, after)
    (app / "template.yaml").write_text(text)


def state(on, stack):
    """All that a stack has on the server, without what differs with every making."""
    def get(path):
        with urllib.request.urlopen(on + path, timeout=60) as reply:
            return json.load(reply)
    table = items("table", "describe", stack + "-Orders", "--json", on=on)[0]
    function = get(f"/2015-03-31/functions/{stack}-Count")
    mappings = get(f"/2015-03-31/event-source-mappings/?FunctionName={stack}-Count")["EventSourceMappings"]
    names = [s["Name"] for s in items("schedule", "ls", "--json", on=on) if s["Name"].startswith(stack)]
    return {
        "table": [table[m] for m in ("KeySchema", "AttributeDefinitions", "StreamSpecification")],
        "indexes": sorted(i["IndexName"] for i in table.get("GlobalSecondaryIndexes", [])),
        "function": [function["Configuration"][m] for m in ("CodeSha256", "MemorySize", "Environment", "Handler")],
        "layers": len(function["Configuration"]["Layers"]),
        "mappings": [[m["BatchSize"], m["MaximumRetryAttempts"], m["State"], m["FilterCriteria"]] for m in mappings],
        "schedules": sorted(names),
        "alias": get(f"/2015-03-31/functions/{stack}-Count/aliases/live")["FunctionVersion"] != "$LATEST",
        "async": get(f"/2019-09-25/functions/{stack}-Count/event-invoke-config")["MaximumRetryAttempts"],
    }


# ---- making, changing, removing ----

def test_a_template_becomes_what_it_describes_and_a_second_run_does_nothing(on, app, stack):
    planned = actions(app, stack, on=on)
    assert {i for i, a in planned.items() if a == "create"} == set(MADE)
    assert planned["Role"] == "nothing" and planned["Lost"] == "unknown"
    made = deploy(app, stack, on=on)
    assert "9 created." in made.stderr and "left out: there is no SQS here" in made.stderr
    assert f"Table = {stack}-Orders" in made.stdout
    now = state(on, stack)
    assert now["function"][1] == 256 and now["layers"] == 1 and now["async"] == 1
    assert now["function"][2]["Variables"] == {"TABLE": stack + "-Orders", "STAGE": "trial"}
    assert now["mappings"] == [[10, 2, "Enabled", {"Filters": [{"Pattern": '{"eventName": ["INSERT"]}'}]}]]
    assert now["schedules"] == [stack + "-Hourly", stack + "-Nightly"]
    again = deploy(app, stack, on=on)
    assert "Nothing to do." in again.stderr and again.stdout == made.stdout
    output("put", stack + "-Orders", "id=1", on=on)
    until(lambda: f"records 1 {stack}-Orders" in output("function", "logs", stack + "-Count", on=on))


def until(question, seconds=240):
    end = time.monotonic() + seconds
    while not question():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.05)


def test_only_what_differs_is_changed(on, app, stack):
    deploy(app, stack, on=on)
    edit(app, ("BatchSize: 10", "BatchSize: 20"), ("rate(1 hour)", "rate(2 hours)"), ("by-day", "by-date"),
         ("AttributeName: expires", "AttributeName: until"))
    changed = deploy(app, stack, "--parameter", "Memory=512", on=on).stderr
    assert "BatchSize: 10 -> 20" in changed and "MemorySize: 256 -> 512" in changed
    assert "GlobalSecondaryIndexes: +by-date -by-day" in changed and "TimeToLive: expires -> until" in changed
    now = state(on, stack)
    assert now["function"][1] == 512 and now["mappings"][0][0] == 20 and now["indexes"] == ["by-date"]
    assert set(actions(app, stack, "--parameter", "Memory=512", on=on).values()) <= {"same", "nothing", "unknown"}
    (app / "code" / "index.js").write_text(HANDLER + "// other\n")
    planned = actions(app, stack, "--parameter", "Memory=512", on=on)
    assert {i for i, a in planned.items() if a == "change"} == {"Count", "Newest", "Live"}
    assert "CodeSha256: new code" in deploy(app, stack, "--parameter", "Memory=512", on=on).stderr


def test_what_went_away_stays_until_it_is_pruned(on, app, stack):
    deploy(app, stack, on=on)
    text = (app / "template.yaml").read_text()
    begin, end = text.index("  Hourly:"), text.index("Outputs:")
    (app / "template.yaml").write_text(text[:begin] + text[end:])
    assert "Hourly" in deploy(app, stack, on=on).stderr
    assert len(state(on, stack)["schedules"]) == 2
    assert "- Hourly" in deploy(app, stack, "--prune", on=on).stderr
    assert state(on, stack)["schedules"] == [stack + "-Nightly"]
    assert "Nothing to do." in deploy(app, stack, "--prune", on=on).stderr


def test_data_goes_only_where_that_was_asked_for(on, app, stack):
    deploy(app, stack, on=on)
    output("put", stack + "-Orders", "id=1", on=on)
    edit(app, ("KeySchema: [{AttributeName: id, KeyType: HASH}]",
               "KeySchema: [{AttributeName: id, KeyType: HASH}, {AttributeName: day, KeyType: RANGE}]"))
    assert "--replace deletes" in deploy(app, stack, on=on, status=1).stderr
    assert "--delete-data" in deploy(app, stack, "--replace", on=on, status=1).stderr
    assert items("get", stack + "-Orders", "1", on=on) == [{"id": "1"}]
    deploy(app, stack, "--replace", "--delete-data", on=on)
    assert len(state(on, stack)["table"][0]) == 2 and items("scan", stack + "-Orders", on=on) == []
    assert "Nothing to do." in deploy(app, stack, on=on).stderr
    output("put", stack + "-Orders", "id=1", "day=2", on=on)
    result = quipu("deploy", "--delete", stack, on=on)
    assert result.returncode == 1 and "holds items" in result.stderr
    output("deploy", "--delete", stack, "--delete-data", on=on)
    assert stack + "-Orders" not in output("table", "ls", on=on).split()
    assert stack not in output("deploy", "--list", on=on)


def test_a_table_with_deletion_policy_retain_is_kept(on, app, stack):
    edit(app, ("    Type: AWS::DynamoDB::Table\n", "    Type: AWS::DynamoDB::Table\n    DeletionPolicy: Retain\n"))
    deploy(app, stack, on=on)
    assert "Retain" in quipu("deploy", "--delete", stack, on=on).stderr
    assert stack + "-Orders" in output("table", "ls", on=on).split()
    assert "--adopt" in deploy(app, stack, on=on, status=1).stderr
    assert deploy(app, stack, "--adopt", on=on)
    output("deploy", "--delete", stack, on=on)
    output("table", "drop", stack + "-Orders", "--yes", on=on)


def test_what_another_has_made_is_not_touched(on, app, stack):
    output("table", "create", stack + "-Orders", "other:S", on=on)
    assert "has not made" in deploy(app, stack, on=on, status=1).stderr
    assert stack + "-Count" not in output("function", "ls", on=on)
    output("table", "drop", stack + "-Orders", "--yes", on=on)


def test_strict_changes_nothing_where_anything_is_unknown(on, app, stack):
    assert "--strict" in deploy(app, stack, "--strict", on=on, status=1).stderr
    assert stack not in output("deploy", "--list", on=on)


def test_what_code_lacks_is_told(on, tmp_path, stack):
    for name in ("ts", "py"):
        (tmp_path / name).mkdir()
    (tmp_path / "ts" / "app.ts").write_text("export const handler = async () => 1;")
    (tmp_path / "py" / "app.py").write_text("def handler(event, context): return 1")
    (tmp_path / "py" / "requirements.txt").write_text("boto3\nrequests==2.31\n")
    functions = {name: {"Type": "AWS::Lambda::Function", "Properties": {
        "Code": "./" + name, "Handler": "app.handler", "Runtime": runtime, "Role": "r"}}
        for name, runtime in (("ts", "nodejs20.x"), ("py", "python3.11"))}
    functions["java"] = {"Type": "AWS::Lambda::Function", "Properties": {
        "Code": "./py", "Handler": "a", "Runtime": "java21", "Role": "r"}}
    functions["inline"] = {"Type": "AWS::Lambda::Function", "Properties": {
        "Code": {"ZipFile": "exports.handler = async () => 'in line';"}, "Handler": "index.handler",
        "Runtime": "nodejs20.x", "Role": "r"}}
    (tmp_path / "template.json").write_text(json.dumps({"Resources": functions}))
    told = quipu("deploy", str(tmp_path / "template.json"), "--stack", stack, on=on).stderr
    assert "app.ts is TypeScript: run 'sam build'" in told and "requests is not installed" in told
    assert "java21 does not run here" in told and "boto3" not in told
    assert output("function", "invoke", stack + "-inline", on=on) == '"in line"\n'


def test_code_may_be_one_file(on, tmp_path, stack):
    (tmp_path / "app.py").write_text("def handler(event, context): return 'one file'")
    (tmp_path / "bad.zip").write_text("no archive")
    text = ("Transform: AWS::Serverless-2016-10-31\nResources:\n  One:\n    Type: AWS::Serverless::Function\n"
            "    Properties: {Handler: app.handler, Runtime: python3.11, CodeUri: %s}\n")
    (tmp_path / "template.yaml").write_text(text % "./bad.zip")
    assert "bad.zip is no zip archive" in deploy(tmp_path, stack, on=on, status=1).stderr
    (tmp_path / "template.yaml").write_text(text % "./app.py")
    deploy(tmp_path, stack, on=on)
    assert output("function", "invoke", stack + "-One", on=on) == '"one file"\n'
    assert "Nothing to do." in deploy(tmp_path, stack, on=on).stderr


PATTERNS = """
service: shop
package: {patterns: ['!**/*.md', '!code/{big,old}/**', 'code/big/keep.md'], exclude: ['secret.txt']}
provider: {name: aws, runtime: nodejs20.x}
functions:
  all: {handler: code/index.handler}
  few: {handler: code/index.handler, package: {patterns: ['!**', './code/*.js']}}
"""


def test_patterns_of_a_serverless_yml_choose_what_is_packed(on, tmp_path, stack):
    code = ("const fs = require('fs'); exports.handler = async () => "
            "fs.readdirSync(process.env.LAMBDA_TASK_ROOT, {recursive: true, withFileTypes: true})"
            ".filter((e) => e.isFile()).map((e) => e.name).sort();")
    for name in ("code/index.js", "code/big/a.js", "code/big/keep.md", "code/old/deep/b.js", "notes.md", "secret.txt",
                 "data.json", "package.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(code if name == "code/index.js" else '{"dependencies": {"moment": "1"}}')
    (tmp_path / "serverless.yml").write_text(PATTERNS)
    made = quipu("deploy", str(tmp_path / "serverless.yml"), "--stack", stack, on=on)
    assert made.returncode == 0, made.stderr
    assert made.stderr.count("moment is not installed") == 1  # once for the folder, not for each function
    names = {name: json.loads(output("function", "invoke", f"shop-dev-{name}", on=on)) for name in ("all", "few")}
    assert names == {"all": ["data.json", "index.js", "keep.md", "package.json", "serverless.yml"],
                     "few": ["index.js"]}
    assert "Nothing to do." in quipu("deploy", str(tmp_path / "serverless.yml"), "--stack", stack, on=on).stderr


# ---- interruptions ----

def changes_something(method, path, target):
    if target:
        return not target.split(".")[-1].startswith(("Describe", "List", "Scan", "Get"))
    return method != "GET"


class Proxy:
    """Stands before a server, and kills a process at its nth call that changes something: before or behind it."""

    def __init__(self, url):
        self.there = urllib.parse.urlsplit(url).netloc
        self.calls, self.kill_at, self.behind, self.victim = [], None, False, None
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if outer.admit(self.command, self.path, self.headers.get("X-Amz-Target"), False):
                    self.close_connection = True
                    return
                there = http.client.HTTPConnection(outer.there, timeout=120)
                kept = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "content-length")}
                there.request(self.command, self.path, body, {**kept, "Host": outer.there})
                reply = there.getresponse()
                text = reply.read()
                if outer.admit(self.command, self.path, self.headers.get("X-Amz-Target"), True):
                    self.close_connection = True
                    return
                self.send_response(reply.status)
                for name, value in reply.getheaders():
                    if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_PUT = do_POST = do_DELETE = do_PATCH = serve

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def admit(self, method, path, target, is_behind):
        """True where the caller was killed."""
        if not changes_something(method, path, target):
            return False
        if not is_behind:
            self.calls.append((method, target or path))
        if self.kill_at != len(self.calls) or self.behind != is_behind:
            return False
        self.victim.send_signal(signal.SIGKILL)
        self.victim.wait()
        return True

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def proxy(on):
    running = Proxy(on)
    yield running
    running.close()


def run_until_killed(proxy, app, stack, at, behind):
    """Deploys; True where it came to its end because there is no such call."""
    proxy.calls, proxy.kill_at, proxy.behind = [], at, behind
    environment = clean_environment({"QUIPU_ON": proxy.url})
    proxy.victim = subprocess.Popen([BINARY, "deploy", str(app / "template.yaml"), "--stack", stack, "--prune"],
                                    env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    told = proxy.victim.communicate(timeout=240)[1]
    assert proxy.victim.returncode in (0, -signal.SIGKILL), told
    return proxy.victim.returncode == 0


def test_a_second_run_makes_no_call_that_changes(on, app, stack, proxy):
    deploy(app, stack, on=proxy.url)
    assert proxy.calls
    proxy.calls = []
    deploy(app, stack, on=proxy.url)
    deploy(app, stack, "--plan", on=proxy.url)
    assert proxy.calls == []
    text = (app / "template.yaml").read_text()
    (app / "template.yaml").write_text(text[:text.index("  Nightly:")] + text[text.index("Outputs:"):])
    deploy(app, stack, on=proxy.url)  # two things went away and stay
    proxy.calls = []
    deploy(app, stack, on=proxy.url)
    assert proxy.calls == []


@pytest.mark.parametrize("behind", [False, True], ids=["before", "behind"])
def test_whatever_interrupts_it_the_next_run_ends_in_the_same_state(on, app, stack, proxy, behind):
    """The stack is made and changed with a kill at the first call, the second, and so on."""
    deploy(app, stack, on=on)
    expected = state(on, stack)
    output("deploy", "--delete", stack, "--delete-data", on=on)
    at, is_whole = 2 if behind else 1, False
    while not is_whole:
        assert at < 60, "it has no end"
        is_whole = run_until_killed(proxy, app, stack, at, behind)
        deploy(app, stack, on=on)
        assert state(on, stack) == expected, (at, proxy.calls)
        assert "Nothing to do." in deploy(app, stack, "--prune", on=on).stderr
        quipu("deploy", "--delete", stack, "--delete-data", on=on)
        assert stack + "-Orders" not in output("table", "ls", on=on).split()
        at += 2  # the other half is that of the other parameter
    assert at > len(MADE)


def test_what_an_interrupted_run_has_made_can_be_pruned(on, app, stack, proxy):
    """Killed right behind the making of the mapping, whose id nobody has written down."""
    deploy(app, stack, on=proxy.url)
    nth = [n for n, (_, path) in enumerate(proxy.calls, 1) if path.startswith("/2015-03-31/event-source")][0]
    output("deploy", "--delete", stack, on=on)
    assert not run_until_killed(proxy, app, stack, nth, True)
    assert len(items("trigger", "ls", "--json", on=on)) == 1
    output("deploy", "--delete", stack, on=on)
    assert items("trigger", "ls", "--json", on=on) == []


def test_two_deploys_at_once(on, app, stack):
    """One holds the lease; the other is refused, or waits."""
    def lease(method, query="", body=None):
        request = urllib.request.Request(f"{on}/v1/leases/quipu-stacks%2F{stack}{query}", body, method=method)
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)
    fence = lease("POST", body=b'{"owner": "somebody", "for": "10m"}')["fence"]
    refused = quipu("deploy", str(app / "template.yaml"), "--stack", stack, on=on)
    assert refused.returncode == 3 and "another deploy" in refused.stderr and "somebody" in refused.stderr
    waiting = start("deploy", str(app / "template.yaml"), "--stack", stack, "--wait", "4m", on=on)
    time.sleep(0.2)  # it does not matter whether it waits yet
    lease("DELETE", f"?owner=somebody&fence={fence}")
    told = waiting.communicate(timeout=240)[1]
    assert waiting.returncode == 0 and "9 created." in told


# ---- where templates are ----

def test_assets_of_cdk_and_archives(on, tmp_path, stack):
    folder = tmp_path / "cdk.out"
    (folder / "asset.abc").mkdir(parents=True)
    (folder / "asset.abc" / "index.js").write_text("exports.handler = async () => 'asset';")
    with zipfile.ZipFile(folder / "asset.def.zip", "w") as archive:
        archive.writestr("index.js", "exports.handler = async () => 'zip';")
    template = {"Resources": {
        name: {"Type": "AWS::Lambda::Function", "Properties": {
            "Code": {"S3Bucket": {"Fn::Sub": "cdk-assets-${AWS::AccountId}-${AWS::Region}"}, "S3Key": key},
            "Handler": "index.handler", "Runtime": "nodejs20.x", "Role": "r"}}
        for name, key in (("A", "abc.zip"), ("B", "def.zip"), ("C", "gone.zip"))}}
    (folder / f"{stack}.template.json").write_text(json.dumps(template))
    environment = clean_environment({"QUIPU_ON": on})
    result = subprocess.run([BINARY, "deploy"], cwd=tmp_path, env=environment, capture_output=True, text=True,
                            timeout=240)
    assert result.returncode == 0 and "2 created." in result.stderr and "its code is in S3" in result.stderr
    assert output("function", "invoke", stack + "-A", on=on) == '"asset"\n'
    assert output("function", "invoke", stack + "-B", on=on) == '"zip"\n'


def test_live_functions_run_in_their_folders(on, app, stack):
    deploy(app, stack, "--live", on=on)
    function = items("function", "show", stack + "-Count", on=on)[0]
    assert function["Configuration"]["Quipu"]["Directory"] == str(app / "code")
    assert "Nothing to do." in deploy(app, stack, "--live", on=on).stderr


def test_words_that_make_no_sense(on, tmp_path):
    nowhere = subprocess.run([BINARY, "deploy"], cwd=tmp_path, env=clean_environment({"QUIPU_ON": on}),
                             capture_output=True, text=True, timeout=60)
    assert nowhere.returncode == 1 and "name a template" in nowhere.stderr
    assert quipu("deploy", "--parameter", "x", on=on).returncode == 2
    assert quipu("deploy", "--stack", "a/b", on=on).returncode == quipu("deploy", "--delete", "", on=on).returncode == 2
    assert quipu("deploy", "x.yaml", "--delete", "y", on=on).returncode == 2
    assert quipu("deploy", str(tmp_path / "no.yaml"), on=on).returncode == 1
    (tmp_path / "broken.yaml").write_text("Resources: {A: {Type")
    broken = quipu("deploy", str(tmp_path / "broken.yaml"), on=on)
    assert broken.returncode == 1 and "broken.yaml:" in broken.stderr


# ---- applications ----

SAM = """
Transform: AWS::Serverless-2016-10-31
Globals:
  Function: {Runtime: nodejs20.x, CodeUri: code/, Environment: {Variables: {TABLE: !Ref Orders}}}
Resources:
  Orders: {Type: AWS::Serverless::SimpleTable, Properties: {PrimaryKey: {Name: id, Type: String}}}
  Api:
    Type: AWS::Serverless::Function
    Properties:
      Handler: index.handler
      AutoPublishAlias: live
      FunctionUrlConfig: {AuthType: NONE}
      Events:
        Get: {Type: HttpApi, Properties: {Path: '/orders/{id}', Method: get}}
        Old: {Type: Api, Properties: {Path: '/old', Method: post, RequestModel: {Model: Any, ValidateBody: true}}}
        Tick: {Type: Schedule, Properties: {Schedule: rate(1 day)}}
Outputs:
  Get: {Value: !Sub "https://${ServerlessHttpApi}.execute-api.${AWS::Region}.amazonaws.com/orders/7"}
  Old: {Value: !Sub "https://${ServerlessRestApi}.execute-api.${AWS::Region}.amazonaws.com/Prod/old"}
  Direct: {Value: !GetAtt ApiUrl.FunctionUrl}
  Made: {Value: !Sub ["${ServerlessRestApi.Stage} ${Api.Alias} ${!Api.Alias} ${x}", {x: !Sub "${AWS::Region}"}]}
"""


def fetch(url, method="GET", data=None):
    with urllib.request.urlopen(urllib.request.Request(url, data, method=method), timeout=60) as reply:
        return json.load(reply)


def test_a_sam_application_answers(on, app, stack):
    (app / "template.yaml").write_text(SAM)
    (app / "code" / "index.js").write_text(
        "exports.handler = async (e) => ({statusCode: 200, body: JSON.stringify({version: e.version, "
        "id: e.pathParameters && e.pathParameters.id, body: e.body || undefined})});")
    made = json.loads(deploy(app, stack, "--json", on=on).stdout)
    outputs = made["outputs"]
    assert any("nobody checks 'RequestModel' of the event 'Old'" in note for note in made["notes"])
    assert fetch(outputs["Get"]) == {"version": "2.0", "id": "7"}
    assert fetch(outputs["Old"], "POST")["version"] == "1.0"
    assert fetch(outputs["Old"], "POST", b'{"a":1}')["body"] == '{"a":1}'  # a form, as curl --data sends it
    assert ".lambda-url." in outputs["Direct"]
    assert re.fullmatch(r"Prod \S*:live \$\{Api.Alias\} us-east-1", outputs["Made"]), outputs["Made"]
    assert "Nothing to do." in deploy(app, stack, on=on).stderr
    edit(app, ("/orders/{id}", "/bills/{id}"), ("amazonaws.com/orders", "amazonaws.com/bills"))
    outputs = json.loads(deploy(app, stack, "--json", on=on).stdout)["outputs"]
    assert fetch(outputs["Get"])["id"] == "7"
    with pytest.raises(urllib.error.HTTPError):
        fetch(outputs["Get"].replace("bills", "orders"))
    assert "Nothing to do." in deploy(app, stack, on=on).stderr
    output("deploy", "--delete", stack, on=on)
    assert stack not in json.dumps(fetch(on + "/v1/routes"))


WALL = """
Resources:
  Files: {Type: AWS::EFS::FileSystem}
  Point: {Type: AWS::EFS::AccessPoint, Properties: {FileSystemId: !Ref Files}}
  Wall:
    Type: AWS::Lambda::Function
    Properties:
      Runtime: nodejs20.x
      Handler: index.handler
      Timeout: 30
      Code: {ZipFile: "exports.handler = async (e) => { const fs = require('fs');
        if (e.add) fs.appendFileSync('/mnt/msg/wall', e.add); return fs.readFileSync('/mnt/msg/wall', 'utf8'); }"}
      FileSystemConfigs:
        - LocalMountPath: /mnt/msg
          Arn: !Sub 'arn:${AWS::Partition}:elasticfilesystem:${AWS::Region}:${AWS::AccountId}:access-point/${Point}'
"""


def test_a_file_system_is_a_folder_of_the_server(on, app, stack):
    (app / "template.yaml").write_text(WALL)
    deploy(app, stack, on=on)
    assert "Nothing to do." in deploy(app, stack, on=on).stderr
    assert json.loads(output("function", "invoke", f"{stack}-Wall", '{"add": "hello "}', on=on)) == "hello "
    edit(app, ("Timeout: 30", "Timeout: 40"))
    deploy(app, stack, on=on)
    assert json.loads(output("function", "invoke", f"{stack}-Wall", '{"add": "again"}', on=on)) == "hello again"


SERVERLESS = """
service: ${file(names.json):service}
provider:
  name: aws
  runtime: nodejs20.x
  stage: ${opt:stage, 'dev'}
  environment: {TABLE: '${self:service}-${sls:stage}', HOME_OF: '${env:HOME, "nobody"}'}
plugins: [serverless-offline, serverless-webpack]
functions:
  hello:
    handler: code/index.handler
    events:
      - http: GET hello/{name}
      - httpApi: {path: /new, method: post}
      - schedule: rate(1 day)
      - stream: {type: dynamodb, arn: !GetAtt Table.StreamArn}
resources:
  Resources:
    Table:
      Type: AWS::DynamoDB::Table
      Properties:
        TableName: ${self:provider.environment.TABLE}
        AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
        KeySchema: [{AttributeName: id, KeyType: HASH}]
        BillingMode: PAY_PER_REQUEST
        StreamSpecification: {StreamViewType: NEW_IMAGE}
"""


def test_a_serverless_yml_answers(on, app, stack):
    (app / "serverless.yml").write_text(SERVERLESS)
    (app / "names.json").write_text(json.dumps({"service": stack}))
    (app / "code" / "index.js").write_text(
        "exports.handler = async (e) => ({statusCode: 200, body: JSON.stringify({version: e.version, "
        "name: e.pathParameters && e.pathParameters.name, table: process.env.TABLE})});")
    command = ("deploy", str(app / "serverless.yml"), "--stack", stack, "--parameter", "stage=test")
    made = quipu(*command, "--json", on=on)
    assert made.returncode == 0 and "the plugin 'serverless-webpack' is not run" in made.stdout, made.stderr
    outputs = json.loads(made.stdout)["outputs"]
    table = stack + "-test"
    assert fetch(outputs["ServiceEndpoint"] + "/hello/Ada") == {"version": "1.0", "name": "Ada", "table": table}
    assert fetch(outputs["HttpApiUrl"] + "/new", "POST") == {"version": "2.0", "table": table}
    assert items("table", "describe", table, "--json", on=on)
    assert "Nothing to do." in quipu(*command, on=on).stderr


UPDATE = """{"TableName": "${Tallies}", "Key": {"id": {"S": "c"}}, "UpdateExpression": "ADD tally :n",
 "ExpressionAttributeValues": {":n": {"N": "1"}}, "ReturnValues": "UPDATED_NEW"}"""


def test_methods_of_a_rest_api(on, app, stack):
    def proxy_to(name):
        return {"Type": "AWS_PROXY", "IntegrationHttpMethod": "POST", "Uri": {"Fn::Join": ["", [
            "arn:", {"Ref": "AWS::Partition"}, ":apigateway:", {"Ref": "AWS::Region"},
            ":lambda:path/2015-03-31/functions/", {"Fn::GetAtt": [name, "Arn"]}, "/invocations"]]}}
    api, users = {"Ref": "Api"}, {"Ref": "Users"}
    resources = {
        "Say": {"Type": "AWS::Lambda::Function", "Properties": {
            "Code": {"ZipFile": "exports.handler = async (e) => ({statusCode: 200, body: `\"${e.resource}\"`});"},
            "Handler": "index.handler", "Runtime": "nodejs20.x", "Role": "r"}},
        "Api": {"Type": "AWS::ApiGateway::RestApi", "Properties": {"Name": "users"}},
        "Users": {"Type": "AWS::ApiGateway::Resource", "Properties": {
            "RestApiId": api, "ParentId": {"Fn::GetAtt": ["Api", "RootResourceId"]}, "PathPart": "users"}},
        "User": {"Type": "AWS::ApiGateway::Resource", "Properties": {
            "RestApiId": api, "ParentId": users, "PathPart": "{id}"}},
        "Get": {"Type": "AWS::ApiGateway::Method", "Properties": {
            "RestApiId": api, "ResourceId": {"Ref": "User"}, "HttpMethod": "GET", "AuthorizationType": "NONE",
            "Integration": proxy_to("Say")}},
        "Options": {"Type": "AWS::ApiGateway::Method", "Properties": {
            "RestApiId": api, "ResourceId": users, "HttpMethod": "OPTIONS", "AuthorizationType": "NONE",
            "Integration": {"Type": "MOCK"}}},
        "Tallies": {"Type": "AWS::DynamoDB::Table", "Properties": {
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}], "BillingMode": "PAY_PER_REQUEST"}},
        "Counter": {"Type": "AWS::ApiGateway::Resource", "Properties": {
            "RestApiId": api, "ParentId": {"Fn::GetAtt": ["Api", "RootResourceId"]}, "PathPart": "counter"}},
        "Count": {"Type": "AWS::ApiGateway::Method", "Properties": {
            "RestApiId": api, "ResourceId": {"Ref": "Counter"}, "HttpMethod": "GET", "AuthorizationType": "NONE",
            "Integration": {
                "Type": "AWS", "IntegrationHttpMethod": "POST",
                "Uri": {"Fn::Sub": "arn:aws:apigateway:${AWS::Region}:dynamodb:action/UpdateItem"},
                "RequestTemplates": {"application/json": {"Fn::Sub": UPDATE}},
                "IntegrationResponses": [
                    {"StatusCode": "200", "ResponseTemplates": {
                        "application/json": '{"counter": $input.path("$.Attributes.tally.N")}'}},
                    {"StatusCode": "400", "SelectionPattern": "4\\d{2}", "ResponseTemplates": {
                        "application/json": '{"error": "Bad input!"}'}}]}}},
        "Deployment": {"Type": "AWS::ApiGateway::Deployment", "DependsOn": ["Get"], "Properties": {"RestApiId": api}},
        "Stage": {"Type": "AWS::ApiGateway::Stage", "Properties": {
            "RestApiId": api, "DeploymentId": {"Ref": "Deployment"}, "StageName": "prod"}},
    }
    outputs = {"Url": {"Value": {"Fn::Sub": "https://${Api}.execute-api.${AWS::Region}.${AWS::URLSuffix}/${Stage}/"}}}
    (app / "template.yaml").write_text(json.dumps({"Resources": resources, "Outputs": outputs}))
    made = deploy(app, stack, on=on)
    assert "its integration is MOCK" in made.stderr
    url = made.stdout.split(" = ")[1].strip()
    assert fetch(url + "users/7") == "/users/{id}"
    assert [fetch(url + "counter"), fetch(url + "counter")] == [{"counter": 1}, {"counter": 2}]
    assert "Nothing to do." in deploy(app, stack, on=on).stderr
    output("deploy", "--delete", stack, "--delete-data", on=on)
    del resources["Stage"]  # a deployment that names a stage makes it
    resources["Deployment"]["Properties"]["StageName"] = "first"
    outputs["Url"]["Value"]["Fn::Sub"] = "https://${Api}.execute-api.${AWS::Region}.${AWS::URLSuffix}/first/"
    (app / "template.yaml").write_text(json.dumps({"Resources": resources, "Outputs": outputs}))
    url = deploy(app, stack, on=on).stdout.split(" = ")[1].strip()
    assert url.endswith("/first/") and fetch(url + "users/7") == "/users/{id}"
    assert "Nothing to do." in deploy(app, stack, on=on).stderr
    output("deploy", "--delete", stack, "--delete-data", on=on)


def test_names_with_control_characters_reach_no_terminal(on, app, stack):
    """They could hide what a template makes: a plan is read before it is done."""
    (app / "template.yaml").write_text("""
Resources:
  "Lost\\e[2J\\nSame": {Type: "AWS::X\\e[8m::Y"}
  "Made\\e[8m":
    Type: AWS::DynamoDB::Table
    Properties:
      TableName: !Sub "${AWS::StackName}-made"
      KeySchema: [{AttributeName: id, KeyType: HASH}]
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      BillingMode: PAY_PER_REQUEST
Outputs: {"Out\\e[8m": {Value: "v\\e[8m"}}
"Foo\\e[8m": 1
""")
    arguments = ("deploy", str(app / "template.yaml"), "--stack", stack)
    for more in (["--plan"], []):
        status, shown = on_terminal(*arguments, *more, on=on)
        assert "\x1b[8m" not in shown and "\x1b[2J" not in shown and "\nSame" not in shown
        assert (status, "Lost\\x1b[2J\\nSame" in shown) == (0, True), shown
    assert "Out\\x1b[8m = v\\x1b[8m" in shown
    assert quipu(*arguments, on=on).stdout == "Out\x1b[8m = v\x1b[8m\n"  # for whoever is no person


def test_a_long_attribute_takes_no_more_memory_than_it_is_long(on, app):
    many = {"Fn::GetAtt": ["A", "b"] + ["c"] * 100_000}
    resources = {"A": {"Type": "AWS::X::Y"}, "B": {"Type": "AWS::X::Y", "Properties": {"P": many}}}
    (app / "template.yaml").write_text(json.dumps({"Resources": resources}))
    done = subprocess.run(["prlimit", "--as=2000000000", BINARY, "deploy", str(app / "template.yaml"), "--plan"],
                          env=clean_environment({"QUIPU_ON": on}), capture_output=True, text=True, timeout=180)
    assert (done.returncode, "Nothing to do." in done.stdout) == (0, True), done.stderr


# ---- other engines ----

@pytest.mark.parametrize("engine", ENGINES[1:])
def test_a_stack_on_another_engine(engine, app, unused_name):
    stack = unused_name
    with server_on(engine) as (server, _):
        assert "9 created." in deploy(app, stack, on=server.url).stderr
        assert "Nothing to do." in deploy(app, stack, on=server.url).stderr
        edit(app, ("BatchSize: 10", "BatchSize: 20"), ("by-day", "by-date"), ("NEW_IMAGE", "NEW_AND_OLD_IMAGES"))
        deploy(app, stack, on=server.url)
        assert state(server.url, stack)["indexes"] == ["by-date"]
        assert "Nothing to do." in deploy(app, stack, on=server.url).stderr
        output("deploy", "--delete", stack, on=server.url)
        assert stack + "-Orders" not in output("table", "ls", on=server.url).split()
