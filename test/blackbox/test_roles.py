"""Roles of keys in the credentials file: what data and read may do, and every way around that is closed."""
import json

import botocore.exceptions
import pytest
from support import sigv4
from support.fixtures import boto_client, create_table
from support.process import Quipu, run_quipu
from support.wire import Connection, request_bytes

SECRET = "some/secret"
KEYS = {"admin": "AKIDADMIN", "data": "AKIDDATA", "read": "AKIDREAD"}
OWN = "quipu-functions"


def keys_file(folder):
    path = folder / "keys.ini"
    path.write_text("".join(f"[{role}]\naws_access_key_id = {key}\naws_secret_access_key = {SECRET}\n"
                            + (f"role = {role}\n" if role != "admin" else "") for role, key in KEYS.items()))
    return str(path)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Quipu("--memory", "--test-hooks", "--credentials", keys_file(tmp_path_factory.mktemp("keys"))) as running:
        create_table(boto_client(running.url, KEYS["admin"], SECRET), "things")
        yield running


def rest(server, role, method, path, body=None, service="quipu"):
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    path, _, query = path.partition("?")
    with Connection(server.url) as wire:
        headers = {"Host": wire.host, **({"Content-Type": "application/json"} if data else {})}
        if role:
            # A signature is of the path encoded once more.
            headers = sigv4.sign(headers, data, KEYS[role], SECRET, service=service, method=method,
                                 path=path.replace("%", "%25"), query=query)
        wire.send(request_bytes(method, path + ("?" + query if query else ""), headers, data))
        return wire.read()


def refused(call, **arguments):
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        call(**arguments)
    assert caught.value.response["Error"]["Code"] == "AccessDeniedException"
    return caught.value.response["Error"]["Message"]


def scale(server, role, table):
    """The status of registering a scalable target, signed as Application Auto Scaling's clients do."""
    body = json.dumps({"ServiceNamespace": "dynamodb", "ResourceId": f"table/{table}", "MinCapacity": 1,
                       "MaxCapacity": 2, "ScalableDimension": "dynamodb:table:ReadCapacityUnits"}).encode()
    with Connection(server.url) as wire:
        headers = {"Host": wire.host, "Content-Type": "application/x-amz-json-1.1",
                   "X-Amz-Target": "AnyScaleFrontendService.RegisterScalableTarget"}
        headers = sigv4.sign(headers, body, KEYS[role], SECRET, service="application-autoscaling")
        wire.send(request_bytes("POST", "/", headers, body))
        reply = wire.read()
        return reply.status, reply.json.get("__type", "").rpartition("#")[2]


def test_scalable_targets_are_settings_of_tables(server):
    assert scale(server, "data", "things") == (200, "")
    assert scale(server, "read", "things") == (400, "AccessDeniedException")
    assert scale(server, "data", OWN) == (400, "AccessDeniedException")


def test_data_reads_and_writes_tables(server):
    client = boto_client(server.url, KEYS["data"], SECRET)
    create_table(client, "made-by-data")
    nested = {"M": {"Arn": {"S": OWN}}}
    client.put_item(TableName="things", Item={"pk": {"S": "a"}, "TableName": {"S": OWN}, "x": nested})
    assert client.get_item(TableName="things", Key={"pk": {"S": "a"}})["Item"]["TableName"] == {"S": OWN}
    client.delete_table(TableName="made-by-data")


def test_read_only_reads(server):
    boto_client(server.url, KEYS["admin"], SECRET).put_item(TableName="things", Item={"pk": {"S": "r"}})
    client = boto_client(server.url, KEYS["read"], SECRET)
    key = {"pk": {"S": "r"}}
    assert client.get_item(TableName="things", Key=key)["Item"] == key
    assert client.scan(TableName="things")["Count"] > 0
    assert client.batch_get_item(RequestItems={"things": {"Keys": [key]}})["Responses"]["things"] == [key]
    assert client.transact_get_items(TransactItems=[{"Get": {"TableName": "things", "Key": key}}])
    assert client.describe_table(TableName="things") and client.list_tables()
    message = refused(client.put_item, TableName="things", Item=key)
    assert "read" in message and "PutItem" in message
    refused(client.delete_item, TableName="things", Key=key)
    refused(client.update_item, TableName="things", Key=key)
    refused(client.batch_write_item, RequestItems={"things": [{"DeleteRequest": {"Key": key}}]})
    refused(client.transact_write_items, TransactItems=[{"Delete": {"TableName": "things", "Key": key}}])
    refused(client.delete_table, TableName="things")
    refused(client.create_table, TableName="other", KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}], BillingMode="PAY_PER_REQUEST")
    assert client.get_item(TableName="things", Key=key)["Item"] == key


@pytest.mark.parametrize("role", ["data", "read"])
def test_the_tables_of_functions_are_out_of_reach(server, role):
    """Neither to be written, which would plant a function, nor to be read, where their secrets are."""
    client = boto_client(server.url, KEYS[role], SECRET)
    item, key = {"name": {"S": "planted"}, "part": {"S": "$LATEST"}}, {"name": {"S": "planted"}}
    arn = f"arn:aws:dynamodb:us-east-1:000000000000:table/{OWN}"
    for table in (OWN, arn):
        refused(client.get_item, TableName=table, Key=key)
        refused(client.scan, TableName=table)
        refused(client.put_item, TableName=table, Item=item)
        refused(client.update_item, TableName=table, Key=key)
        refused(client.delete_item, TableName=table, Key=key)
        refused(client.batch_write_item, RequestItems={table: [{"PutRequest": {"Item": item}}]})
        refused(client.batch_get_item, RequestItems={table: {"Keys": [key]}})
        for action in ("Put", "Delete", "Update", "ConditionCheck"):
            more = {"Item": item} if action == "Put" else {"Key": key}
            more |= {"UpdateExpression": "SET a = :a"} if action == "Update" else {}
            more |= {"ConditionExpression": "a = :a"} if action == "ConditionCheck" else {}
            refused(client.transact_write_items, TransactItems=[{action: {"TableName": table, **more}}])
        refused(client.transact_get_items, TransactItems=[{"Get": {"TableName": table, "Key": key}}])
        refused(client.delete_table, TableName=table)
    refused(client.tag_resource, ResourceArn=arn, Tags=[{"Key": "a", "Value": "b"}])
    # However the name is written in JSON.
    with Connection(server.url) as wire:
        body = json.dumps({"TableName": OWN, "Item": item}).replace("quipu", "\\u0071uipu").encode()
        headers = {"Host": wire.host, "Content-Type": "application/x-amz-json-1.0",
                   "X-Amz-Target": "DynamoDB_20120810.PutItem"}
        wire.send(request_bytes("POST", "/", sigv4.sign(headers, body, KEYS[role], SECRET), body))
        assert wire.read().type == "AccessDeniedException"


@pytest.mark.parametrize("role", ["data", "read"])
@pytest.mark.parametrize("method,path,service", [
    ("GET", "/2015-03-31/functions/", "lambda"), ("POST", "/2015-03-31/functions", "lambda"),
    ("POST", "/2015-03-31/functions/f/invocations", "lambda"), ("GET", "/2015-03-31/event-source-mappings/", "lambda"),
    ("GET", "/schedules", "scheduler"), ("POST", "/schedules/s", "scheduler"), ("GET", "/v1/functions/f/logs", "quipu"),
    ("GET", "/v1/functions/f/code", "quipu"), ("POST", "/_quipu/clock", "quipu"), ("POST", "/_quipu/idle", "quipu"),
    ("POST", "/v1/queues/q/redrive", "quipu")])
def test_functions_and_hooks_are_for_admins(server, role, method, path, service):
    reply = rest(server, role, method, path, {} if method == "POST" else None, service)
    assert reply.status == 403
    assert f"role {role}" in json.dumps(reply.json)
    assert rest(server, "admin", method, path, {} if method == "POST" else None, service).status != 403


def test_a_path_in_disguise_reaches_no_function(server):
    for path in ("/v1/%66unctions/f/logs", "/v1//functions/f/logs", "/v1/./functions/f/code"):
        assert rest(server, "data", "GET", path).status in (403, 404)


def test_patterns_by_role(server):
    assert rest(server, "data", "POST", "/v1/counters/c").status == 200
    assert rest(server, "read", "GET", "/v1/counters/c").status == 200
    reply = rest(server, "read", "POST", "/v1/counters/c")
    assert (reply.status, reply.json["error"]) == (403, "access-denied")
    assert rest(server, "read", "GET", "/counter?systemKey=c").status == 403
    assert rest(server, "read", "GET", "/wall").status == 200
    assert rest(server, "read", "POST", "/wall", b"hello").status == 403


@pytest.mark.parametrize("then", ["some-function", "https://example.com/hook", {"function": "f"}, {"url": "http://a/"},
                                  ["f"], [{"call": "POST /v1/counters/c"}, "f"],
                                  {"call": "PUT /v1/jobs/j", "body": {"total": 1, "then": "f"}},
                                  {"call": "PUT /v1/jobs/j", "body": {"total": 1, "each": "f"}},
                                  {"call": "PUT /v1/work/q", "body": {"each": {"url": "http://a/"}}},
                                  {"call": "PUT /v1/logs/l/consumers/c", "body": {"function": "f"}},
                                  {"call": "POST /v1/history/" + OWN, "body": {}},
                                  {"call": "POST /v1/{state}/" + OWN, "body": {}}])
def test_data_reacts_with_patterns_only(server, then):
    reply = rest(server, "data", "PUT", "/v1/jobs/planted", {"total": 1, "then": then})
    assert (reply.status, reply.json["error"]) == (403, "access-denied")
    assert rest(server, "admin", "GET", "/v1/jobs/planted").status == 404


@pytest.mark.parametrize("table", [OWN, "arn:aws:dynamodb:us-east-1:000000000000:table/" + OWN])
def test_no_job_reads_the_servers_tables(server, table):
    """Each item would be told to a call of the key's choice: the secrets of functions."""
    each = {"call": "POST /v1/logs/stolen", "body": {"events": ["{item}"]}}
    job = {"each": each, "from": {"table": table, "scan": {}}}
    reply = rest(server, "data", "PUT", "/v1/jobs/reader", job)
    assert (reply.status, reply.json["error"]) == (403, "access-denied")
    body = json.dumps(job).replace("quipu", "\\u0071uipu").encode()
    assert rest(server, "data", "PUT", "/v1/jobs/reader", body).status == 403
    assert rest(server, "admin", "GET", "/v1/jobs/reader").status == 404
    for twice in ('"table":"things","scan":{}', '"scan":{},"table":"things"'):
        body = f'{{"each":{json.dumps(each)},"from":{{{twice},"table":"{table}"}}}}'.encode()
        assert rest(server, "data", "PUT", "/v1/jobs/reader", body).status == 400
    twice = '"table":"things","scan":{},"scan":{"TableName":"%s"}' % table
    body = f'{{"each":{json.dumps(each)},"from":{{{twice}}}}}'.encode()
    assert rest(server, "data", "PUT", "/v1/jobs/reader", body).status == 400
    fair = {"each": each, "from": {"table": "things", "scan": {}}}
    assert rest(server, "data", "PUT", "/v1/jobs/fair", fair).status in (200, 201)


def test_a_then_with_escapes_is_seen(server):
    body = b'{"total":1,"then":{"call":"PUT /v1/jobs/j","body":{"total":1,"\\u0074hen":"f"}}}'
    assert rest(server, "data", "PUT", "/v1/jobs/planted", body).status == 403


def test_data_may_react_with_a_pattern(server):
    reply = rest(server, "data", "PUT", "/v1/jobs/fine", {"total": 1, "then": {"call": "POST /v1/counters/ends"}})
    assert reply.status in (200, 201)


@pytest.mark.parametrize("path", ["/v1/history/" + OWN, "/v1/history/quipu%2Dfunctions", "/v1/h%69story/" + OWN,
                                  "/v1/history/arn:aws:dynamodb:us-east-1:000000000000:table%2F" + OWN])
def test_no_history_of_the_servers_tables(server, path):
    """Records could be made up and restored: a function would be planted."""
    for method, more in (("PUT", ""), ("POST", ""), ("GET", ""), ("DELETE", ""), ("POST", "/k/restore")):
        reply = rest(server, "data", method, path + more, {} if method in ("PUT", "POST") else None)
        assert reply.status in (403, 404)
    for table in (OWN, "arn:aws:dynamodb:us-east-1:000000000000:table%2F" + OWN):
        assert rest(server, "data", "PUT", "/v1/history/" + table, {}).status == 403


def test_secrets_are_for_admins(server):
    """Who knows the secret of a webhook can call it in the server's name."""
    hook = {"url": "http://127.0.0.1:9/hook", "secret": "s3cret"}
    inner = {"call": "PUT /v1/jobs/later", "body": {"total": 1, "then": hook}}
    job = {"total": 2, "then": [hook, inner, "f"], "each": hook, "paused": True}
    assert rest(server, "admin", "PUT", "/v1/jobs/hooked", job).status in (200, 201)
    assert rest(server, "admin", "PUT", "/v1/work/hooked", {"each": hook, "paused": True}).status in (200, 201)
    shown = rest(server, "admin", "GET", "/v1/jobs/hooked").json
    assert (shown["then"], shown["each"]) == ([hook, inner, "f"], hook)
    group = {"complete": {"size": 9}, "then": hook}
    assert rest(server, "admin", "PUT", "/v1/groups/hooked", group).status in (200, 201)
    assert rest(server, "admin", "PUT", "/v1/periods/hooked", {"every": "1h", "then": hook}).status in (200, 201)
    assert rest(server, "admin", "PUT", "/v1/logs/hooked", {}).status in (200, 201)
    consumer = rest(server, "admin", "PUT", "/v1/logs/hooked/consumers/c", {"function": hook, "paused": True})
    assert consumer.status in (200, 201), consumer.body
    paths = ("/v1/jobs/hooked", "/v1/work/hooked", "/v1/drives", "/v1/jobs", "/v1/groups/hooked", "/v1/periods/hooked",
             "/v1/logs/hooked/consumers/c")
    for path in paths:
        assert path == "/v1/jobs" or b"s3cret" in rest(server, "admin", "GET", path).body, path
    for role in ("data", "read"):
        for path in paths:
            reply = rest(server, role, "GET", path)
            assert reply.status == 200 and b"s3cret" not in reply.body, (role, path)
        shown = rest(server, role, "GET", "/v1/jobs/hooked").json
        bare = {"url": hook["url"]}
        inner_bare = {"call": inner["call"], "body": {"total": 1, "then": bare}}
        assert (shown["then"], shown["each"]) == ([bare, inner_bare, "f"], bare)


def test_hooks_ask_for_a_signature(server):
    for path in ("/_quipu/clock", "/_quipu/idle", "/_quipu/nothing"):
        reply = rest(server, None, "POST", path, {})
        assert reply.status == 403
        assert "Authentication Token" in reply.json["error"]
    assert rest(server, "admin", "POST", "/_quipu/idle", {}).status == 200


@pytest.mark.parametrize("lines,words", [
    (["role = boss"], "line 4 must be role = admin, data or read"),
    (["role ="], "line 4 must be role = admin, data or read"),
    (["nonsense"], "line 4 is not [profile] or name = value"),
    (["[again]", "aws_access_key_id = AKID"], "line 5 names an aws_access_key_id for the second time")])
def test_faults_of_the_file_name_the_line(tmp_path, lines, words):
    path = tmp_path / "keys.ini"
    path.write_text("\n".join(["[a]", "aws_access_key_id = AKID", "aws_secret_access_key = s", *lines]) + "\n")
    done = run_quipu("serve", "--memory", "--port", "0", "--credentials", str(path))
    assert done.returncode != 0
    assert words in done.stderr
