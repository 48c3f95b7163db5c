"""Routes of APIs: how they are defined, which one a request takes, and what its function is told."""
import json
import urllib.parse

import pytest
from cli import items, output, quipu
from lambdas import eventually, lambda_client, send
from support.engines import ENGINES, server_on
from support.process import Quipu
from test_function_urls import ask, event_of, make

ECHO = """
def handler(event, context):
    if (event.get("rawPath") or event.get("path")) == "/fail":
        raise ValueError("as asked")
    if event["version"] == "1.0":
        import json
        return {"statusCode": 200, "multiValueHeaders": {"X-Two": ["1", "2"]}, "body": json.dumps(event)}
    return event
"""


@pytest.fixture(scope="module", params=ENGINES)
def server(request, tmp_path_factory):
    with server_on(request.param, "--functions", str(tmp_path_factory.mktemp("functions"))) as (running, _):
        make(lambda_client(running.url), "echo", ECHO)
        yield running


@pytest.fixture
def api(server, unused_name):
    """define(routes, ...) makes an API and answers its name."""
    name = unused_name.replace("_", "-").lower()

    def define(**definition):
        status, shown = send(server.url, "PUT", f"/v1/routes/{name}", definition)
        assert status in (200, 201), shown
        return name

    yield define
    send(server.url, "DELETE", f"/v1/routes/{name}")


def to(function="echo", **more):
    return {"function": function, **more}


def test_the_most_specific_route_counts(server, api):
    keys = ["GET /users", "GET /users/{id}", "GET /users/me", "ANY /users/{id}", "ANY /{proxy+}", "ANY /users/{rest+}",
            "POST /users/{id}/things/{thing}", "$default"]
    name = api(routes={key: to() for key in keys})
    for method, path, key, parameters in (
            ("GET", "/users", "GET /users", None), ("GET", "/users/", "GET /users", None),
            ("GET", "/users/7", "GET /users/{id}", {"id": "7"}), ("GET", "/users/me", "GET /users/me", None),
            ("PUT", "/users/me", "ANY /users/{id}", {"id": "me"}),
            ("GET", "/users/a%20b", "GET /users/{id}", {"id": "a b"}),
            ("POST", "/users/1/things/2", "POST /users/{id}/things/{thing}", {"id": "1", "thing": "2"}),
            ("GET", "/users/1/things/2", "ANY /users/{rest+}", {"rest": "1/things/2"}),
            ("DELETE", "/else/where", "ANY /{proxy+}", {"proxy": "else/where"}), ("GET", "/", "$default", None)):
        event = event_of(server, method, f"/_api/{name}{path}")
        assert (event["routeKey"], event.get("pathParameters")) == (key, parameters), path
        assert event["requestContext"]["routeKey"] == key and event["rawPath"] == path


def test_what_no_route_takes(server, api):
    name = api(routes={"GET /a": to()})
    for method, path in (("GET", "/b"), ("POST", "/a"), ("GET", "/a/b"), ("GET", "/")):
        assert ask(server, method, f"/_api/{name}{path}")[::2] == (404, b'{"message":"Not Found"}')
    assert ask(server, "GET", "/_api/nobody/")[0] == 404
    assert ask(server, "GET", "/v1/counters/x", host=f"nobody.execute-api.localhost:{server.port}")[0] == 404


def test_by_host(server, api):
    name = api(routes={"ANY /{proxy+}": to()})
    host = f"{name}.execute-api.localhost:{server.port}"
    event = event_of(server, "GET", "/v1/routes", host=host)
    assert (event["rawPath"], event["requestContext"]["apiId"]) == ("/v1/routes", name)
    assert event["requestContext"]["domainName"] == host.split(":")[0]


def test_payload_1(server, api):
    name = api(routes={"GET /things/{id}": to(payload="1.0"), "GET /fail": to(payload="1.0")}, stage="prod",
               stageVariables={"table": "Things"})
    status, headers, text = ask(server, "GET", f"/_api/{name}/prod/things/7?a=1&a=2", headers={"X-One": "1"})
    event = json.loads(text)
    assert (status, headers.get_all("x-two")) == (200, ["1", "2"])
    assert (event["resource"], event["path"], event["httpMethod"]) == ("/things/{id}", "/things/7", "GET")
    assert event["queryStringParameters"] == {"a": "2"}
    assert event["multiValueQueryStringParameters"] == {"a": ["1", "2"]}
    assert event["multiValueHeaders"]["X-One"] == ["1"] and event["body"] is None
    assert event["pathParameters"] == {"id": "7"} and event["stageVariables"] == {"table": "Things"}
    context = event["requestContext"]
    assert (context["stage"], context["resourcePath"], context["path"]) == (
        "prod", "/things/{id}", "/prod/things/7")
    assert context["identity"]["sourceIp"] == "127.0.0.1"
    assert ask(server, "GET", f"/_api/{name}/things/7")[0] == 404  # it lacks the stage
    assert ask(server, "GET", f"/_api/{name}/prod/fail")[::2] == (502, b'{"message":"Internal server error"}')


def test_errors_cors_and_signatures(server, api):
    name = api(routes={"GET /fail": to(), "GET /gone": to("no-such-function"), "GET /signed": to(auth="AWS_IAM"),
                       "GET /": to()}, cors={"AllowOrigins": ["https://example.com"], "AllowMethods": ["GET"]})
    assert ask(server, "GET", f"/_api/{name}/fail")[::2] == (500, b'{"message":"Internal Server Error"}')
    assert ask(server, "GET", f"/_api/{name}/gone")[0] == 500
    assert ask(server, "GET", f"/_api/{name}/signed")[::2] == (403, b'{"message":"Forbidden"}')
    page = {"Origin": "https://example.com"}
    status, headers, _ = ask(server, "OPTIONS", f"/_api/{name}/any",
                             headers={**page, "Access-Control-Request-Method": "GET"})
    assert (status, headers["access-control-allow-origin"]) == (204, "https://example.com")
    assert ask(server, "GET", f"/_api/{name}/", headers=page)[1]["access-control-allow-origin"] == page["Origin"]
    assert ask(server, "GET", f"/_api/{name}/", headers={"Origin": "https://evil.example"})[0] == 403


@pytest.mark.parametrize("definition, sentence", [
    ({"routes": {"GET users": to()}}, "a method and a path"), ({"routes": {"FETCH /": to()}}, "a method and a path"),
    ({"routes": {"GET /{a+}/b": to()}}, "a method and a path"), ({"routes": {"GET /": {}}}, "names no function"),
    ({"routes": {"GET /{a}": to(), "GET /{b}": to()}}, "the same requests"),
    ({"routes": {"GET /": to(payload="3.0")}}, "1.0 or 2.0"), ({"routes": {"GET /": to(color="red")}}, "'color'"),
    ({"routes": {"GET /": {"dynamodb": "Nothing"}}}, "no operation"),
    ({"routes": {"GET /": {"dynamodb": "GetItem", "responses": [{"pattern": "("}]}}}, "a pattern"),
    # Compiled within another pair of parentheses and braces, the first would take 3 GB.
    ({"routes": {"GET /": {"dynamodb": "GetItem", "responses": [{"pattern": "((.{255}){255})"}]}}}, "a pattern"),
    ({"routes": {"GET /": {"dynamodb": "GetItem", "responses": [{"pattern": "(" * 12 + "." + "+)" * 12}]}}},
     "a pattern"),
    ({"routes": {"GET /": to(dynamodb="GetItem")}}, "one of them"),
    ({"routes": []}, "an object"), ({"words": {}}, "no 'words'"), ({"stage": "a/b"}, "stage"),
    ({"cors": {"AllowOrigins": ["a\r\nb"]}}, "AllowOrigins"), ({"stageVariables": {"a": 1}}, "stageVariables")])
def test_what_is_wrong_is_refused(server, unused_name, definition, sentence):
    name = unused_name.lower()
    status, told = send(server.url, "PUT", f"/v1/routes/{name}", definition)
    assert (status, told["error"]) == (400, "invalid") and sentence in told["message"]
    assert send(server.url, "GET", f"/v1/routes/{name}")[0] == 404


def test_definitions_are_put_back_and_changed_by_route(server, api):
    name = api(routes={"GET /a": to(payload="1.0")}, stageVariables={"x": "y"})
    path = f"/v1/routes/{name}"
    shown = send(server.url, "GET", path)[1]
    assert shown["url"].endswith(f"/_api/{name}/") and shown["routes"] == {"GET /a": to(payload="1.0")}
    assert send(server.url, "PUT", path, shown) == (200, shown)
    one = f"{path}/{urllib.parse.quote('POST /b/{c}', safe='')}"
    assert send(server.url, "PUT", one, to()) == (201, to()) and send(server.url, "PUT", one, to())[0] == 200
    assert send(server.url, "GET", one) == (200, to())
    assert event_of(server, "POST", f"/_api/{name}/b/1")["pathParameters"] == {"c": "1"}
    assert send(server.url, "DELETE", one)[0] == 204 and send(server.url, "DELETE", one)[0] == 404
    assert ask(server, "POST", f"/_api/{name}/b/1")[0] == 404
    assert name in [api["api"] for api in send(server.url, "GET", "/v1/routes")[1]["apis"]]
    assert send(server.url, "PUT", "/v1/routes/No_Name", {})[0] == 400


def test_commands(server, unused_name):
    name = unused_name.lower()
    url = output("route", "add", "GET /counter", "echo", "--api", name, on=server.url).strip()
    assert url == f"{server.url}/_api/{name}/"
    output("route", "add", "$default", "echo", "--payload", "1.0", "--api", name, on=server.url)
    listed = sorted(items("route", "ls", "--api", name, on=server.url), key=lambda one: one["route"])
    assert listed == [{"api": name, "route": "$default", "function": "echo", "payload": "1.0"},
                      {"api": name, "route": "GET /counter", "function": "echo"}]
    assert event_of(server, "GET", f"/_api/{name}/counter")["routeKey"] == "GET /counter"
    assert quipu("route", "add", "counter", "echo", on=server.url).returncode == 1
    output("route", "rm", "GET /counter", "--api", name, on=server.url)
    output("route", "rm", "--all", "--api", name, on=server.url)
    assert output("route", "ls", "--api", name, on=server.url) == ""


def test_a_route_may_call_dynamodb_by_templates(server, api, unused_name):
    """The atomic counter without a function: a template makes the request, another the reply."""
    import boto3
    database = boto3.client("dynamodb", endpoint_url=server.url, region_name="us-east-1", aws_access_key_id="local",
                            aws_secret_access_key="local")
    database.create_table(TableName=unused_name, BillingMode="PAY_PER_REQUEST",
                          AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
                          KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}])
    database.get_waiter("table_exists").wait(TableName=unused_name)
    request = """{"TableName": "$stageVariables.table", "Key": {"id": {"S": "$input.params('name')"}},
        "ExpressionAttributeValues": {":n": {"N": "$util.escapeJavaScript($input.params('amount'))"}},
        "UpdateExpression": "ADD tally :n", "ReturnValues": "UPDATED_NEW"}"""
    response = "#set($root = $input.path('$'))\n{\"counter\": $root.Attributes.tally.N, \"stage\": \"$context.stage\"}"
    counter = {"dynamodb": "UpdateItem", "request": request, "response": response}
    bad = {"pattern": "4\\d{2}", "status": 422, "response": "{\"told\":$input.json('$.message')}"}
    wrong = {**counter, "request": "#if(true"}
    name = api(routes={"GET /{name}": counter, "GET /{name}/strict": {**counter, "responses": [bad]},
                       "GET /wrong": wrong, "POST /get": {"dynamodb": "GetItem"}},
               stage="prod", stageVariables={"table": unused_name})
    for expected in (2, 4):
        status, headers, text = ask(server, "GET", f"/_api/{name}/prod/visits?amount=2")
        assert (status, headers["content-type"]) == (200, "application/json")
        assert json.loads(text) == {"counter": expected, "stage": "prod"}
    status, _, text = ask(server, "GET", f"/_api/{name}/prod/visits?amount=many")
    assert status == 400 and "__type" in json.loads(text)  # nothing was said of failures
    status, _, text = ask(server, "GET", f"/_api/{name}/prod/visits/strict?amount=%22")
    assert status == 422 and list(json.loads(text)) == ["told"]
    assert ask(server, "GET", f"/_api/{name}/prod/wrong")[0] == 500
    key = json.dumps({"TableName": unused_name, "Key": {"id": {"S": "visits"}}})
    assert json.loads(ask(server, "POST", f"/_api/{name}/prod/get", body=key)[2])["Item"]["tally"] == {"N": "4"}
    assert ask(server, "POST", f"/_api/{name}/prod/get", body=b"x" * (1024 * 1024 + 1))[0] == 413
    database.delete_table(TableName=unused_name)


def test_pages_may_be_the_first_to_ask(tmp_path):
    """After a restart nothing but a page's requests is needed for the settings of CORS to count."""
    page = {"Origin": "https://example.com"}
    with Quipu("--data", str(tmp_path / "data")) as server:
        make(lambda_client(server.url), "echo", ECHO)
        assert send(server.url, "PUT", "/v1/routes/api", {"routes": {"GET /": to()}, "cors": {
            "AllowOrigins": ["https://example.com"]}})[0] == 201
    with Quipu("--data", str(tmp_path / "data")) as server:
        eventually(lambda: ask(server, "GET", "/_api/api/", headers=page)[0] == 200, "the page is let in")
