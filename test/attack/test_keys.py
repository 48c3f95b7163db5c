"""The server's keys stay with the server: a function has keys of its own, and its SDK, however old, speaks to Quipu."""
import json

import pytest
from lambdas import ROLE, archive, lambda_client
from support.fixtures import boto_client, create_table
from support.process import Quipu

# As they would be on the machine of somebody who works with Amazon, too.
SECRETS = {"AWS_ACCESS_KEY_ID": "AKIATHESERVERSOWN", "AWS_SECRET_ACCESS_KEY": "the-servers-own-secret",
           "AWS_SESSION_TOKEN": "the-servers-own-token", "AWS_SECURITY_TOKEN": "the-servers-own-token",
           "AWS_PROFILE": "the-servers-own", "GITHUB_TOKEN": "the-servers-own", "DB_SECRET_URL": "the-servers-own",
           "QUIPU_CREDENTIALS": ""}

TELL = "import os\ndef handler(event, context):\n    return dict(os.environ)\n"

BOTO = """
import boto3, botocore

def handler(event, context):
    names = ["dynamodb", "dynamodbstreams", "lambda", "scheduler", "s3"]
    clients = {name: boto3.client(name).meta.endpoint_url for name in names}
    boto3.resource("dynamodb").Table("things").put_item(Item={"pk": "by boto3"})
    chosen = boto3.client("dynamodb", endpoint_url="http://127.0.0.1:1").meta.endpoint_url
    return {"version": botocore.__version__, "clients": clients, "chosen": chosen,
            "names": boto3.client("lambda").list_functions()["Functions"][0]["FunctionName"]}
"""

# The files of the SDK v2 by which every program gets it, with as much of its behaviour as matters here: the
# configuration is made anew by node_loader.js, and holds a part for each service.
OLD_SDK = {
    "node_modules/aws-sdk/package.json": '{"name": "aws-sdk", "version": "2.1692.0", "main": "lib/aws.js"}',
    "node_modules/aws-sdk/lib/aws.js": "require('./node_loader');\nmodule.exports = require('./core');\n",
    "node_modules/aws-sdk/lib/core.js": "module.exports = { config: {} };\n",
    "node_modules/aws-sdk/lib/node_loader.js": "require('./core').config = { region: process.env.AWS_REGION };\n",
    "node_modules/aws-sdk/clients/dynamodb.js":
        "require('../lib/node_loader');\nmodule.exports = require('../lib/core');\n",
}


def make(client, name, files, runtime="python3.11", handler="code.handler", **variables):
    more = {"Environment": {"Variables": variables}} if variables else {}
    client.create_function(FunctionName=name, Runtime=runtime, Handler=handler, Role=ROLE, Timeout=60,
                           Code={"ZipFile": archive(files)}, **more)


def invoke(client, name):
    reply = client.invoke(FunctionName=name, Payload=b"{}")
    payload = json.loads(reply["Payload"].read())
    assert "FunctionError" not in reply, payload
    return payload


@pytest.fixture(scope="module", params=[None, "/usr/bin:/bin"], ids=["this Python", "the system's Python"])
def server(request):
    """The system's has a boto3 that is older than AWS_ENDPOINT_URL."""
    path = {"PATH": request.param} if request.param else {}
    with Quipu(env={**SECRETS, **path}) as server:
        create_table(boto_client(server.url), "things")
        yield server


@pytest.fixture(scope="module")
def functions(server):
    return lambda_client(server.url)


def test_nothing_of_the_servers_environment_is_handed_on(functions):
    make(functions, "tell", {"code.py": TELL})
    found = invoke(functions, "tell")
    assert not [name for name, value in found.items() if "the-servers-own" in value or "THESERVERSOWN" in value]
    assert not set(found) & {"AWS_PROFILE", "AWS_SECURITY_TOKEN", "GITHUB_TOKEN", "DB_SECRET_URL", "QUIPU_CREDENTIALS"}
    assert found["AWS_ACCESS_KEY_ID"].startswith("QUIPU")


def test_keys_of_the_functions_own_win_and_are_taken_here_too(functions, server):
    own = {"AWS_ACCESS_KEY_ID": "AKIATHEFUNCTIONS", "AWS_SECRET_ACCESS_KEY": "its-own-secret"}
    make(functions, "own", {"code.py": TELL}, **own)
    found = invoke(functions, "own")
    assert {name: found[name] for name in own} == own and "AWS_SESSION_TOKEN" not in found
    make(functions, "own-boto", {"code.py": BOTO}, **own)
    invoke(functions, "own-boto")


def test_boto3_of_any_age_speaks_to_quipu(functions, server):
    make(functions, "boto", {"code.py": BOTO})
    found = invoke(functions, "boto")
    here = {name: url for name, url in found["clients"].items() if url.startswith("http://127.0.0.1:")}
    assert set(here) >= {"dynamodb", "dynamodbstreams", "lambda", "scheduler"}, found
    assert found["chosen"] == "http://127.0.0.1:1"
    item = boto_client(server.url).get_item(TableName="things", Key={"pk": {"S": "by boto3"}})
    assert "Item" in item


def test_endpoints_of_the_functions_own_win(functions):
    make(functions, "elsewhere", {"code.py": """
import boto3
def handler(event, context):
    return [boto3.client(name).meta.endpoint_url for name in ("dynamodb", "lambda")]
"""}, AWS_ENDPOINT_URL_DYNAMODB="https://dynamodb.example")
    dynamodb, lambda_ = invoke(functions, "elsewhere")
    assert dynamodb == "https://dynamodb.example" and lambda_.startswith("http://127.0.0.1:")


@pytest.mark.parametrize("way", ["require('aws-sdk')", "require('aws-sdk/clients/dynamodb')", "import"])
def test_the_old_javascript_sdk_speaks_to_quipu(functions, way):
    get = ("import AWS from 'aws-sdk';\nexport const handler" if way == "import"
           else f"const AWS = {way};\nexports.handler")
    name = "old-" + "".join(c for c in way if c.isalpha())
    code = {"index.mjs" if way == "import" else "index.js": get + " = async () => AWS.config;\n", **OLD_SDK}
    make(functions, name, code, "nodejs20.x", "index.handler", AWS_ENDPOINT_URL_LAMBDA="http://lambda.example")
    config = invoke(functions, name)
    for service in ("dynamodb", "dynamodbstreams", "scheduler"):
        assert config[service]["endpoint"].startswith("http://127.0.0.1:"), config
    assert config["lambda"]["endpoint"] == "http://lambda.example"
    assert config["region"] == "us-east-1" and "s3" not in config
