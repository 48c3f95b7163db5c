"""The programs that run handlers in Node.js and Python, against a small Runtime API: what Lambda's users expect."""
import base64
import json
import os
import re
import subprocess
import sys
import threading

import pytest

from support.process import ROOT, clean_environment
from support.runtime_api import SECONDS, RuntimeApi

FUNCTIONS = os.path.join(ROOT, "test", "functions")
BOOTSTRAPS = os.path.join(ROOT, "src", "func", "bootstrap")
COMMANDS = {
    "node": ["node", os.path.join(BOOTSTRAPS, "node.mjs")],
    "python": [sys.executable, os.path.join(BOOTSTRAPS, "python.py")],
    "provided": ["./bootstrap"],
}
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


class Guest:
    """A process that runs a handler, and the Runtime API that it talks to."""

    def __init__(self, language, folder, handler, files, env):
        self.api = RuntimeApi()
        for name, text in files.items():
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        environment = clean_environment({
            "AWS_LAMBDA_RUNTIME_API": self.api.address, "_HANDLER": handler, "LAMBDA_TASK_ROOT": str(folder),
            "AWS_LAMBDA_FUNCTION_NAME": "tested", "AWS_LAMBDA_FUNCTION_VERSION": "7",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256", "AWS_LAMBDA_LOG_GROUP_NAME": "/aws/lambda/tested",
            "AWS_LAMBDA_LOG_STREAM_NAME": "2026/01/01/[7]abc", "TZ": ":UTC", **env})
        self.process = subprocess.Popen(COMMANDS[language], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.output = b""
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.output += line

    def __getattr__(self, name):
        return getattr(self.api, name)

    def ask(self, event=None, **headers):
        """The function's answer; it must not be an error."""
        answer = self.api.invoke(event, **headers)
        assert answer.kind == "response", answer.body
        return answer.json()

    def fail(self, event=None):
        """The function's error."""
        answer = self.api.invoke(event)
        assert answer.kind == "error", answer.body
        assert answer.headers["lambda-runtime-function-error-type"] == answer.json()["errorType"]
        return answer.json()

    def ended(self):
        """The exit status; afterwards all output is there."""
        status = self.process.wait(SECONDS)
        self.reader.join(SECONDS)
        return status

    def said(self):
        """All that was said, once the process was told that it is not wanted any more."""
        self.api.turn_away(410)
        assert self.ended() == 0
        return self.output.decode()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.api.close()


@pytest.fixture
def start(tmp_path):
    guests = []

    def start_guest(language, handler, files=(), folder=tmp_path, **env):
        guests.append(Guest(language, folder, handler, dict(files), env))
        return guests[-1]

    yield start_guest
    for guest in guests:
        guest.close()


@pytest.fixture
def node(start):
    return lambda text, handler="index.handler", file="index.js", **env: start("node", handler, {file: text}, **env)


@pytest.fixture
def python(start):
    def run(text, handler="lambda_function.lambda_handler", file="lambda_function.py", **env):
        return start("python", handler, {file: text}, **env)
    return run


ECHO = {"node": ("index.handler", {"index.js": "exports.handler = async (event) => ({ got: event })"}),
        "python": ("app.handler", {"app.py": "def handler(event, context): return {'got': event}"})}


@pytest.fixture(params=["node", "python"])
def echo(request, start):
    """A function that answers its event, in each language."""
    handler, files = ECHO[request.param]
    return start(request.param, handler, files)


# ---- both ----

@pytest.mark.parametrize("event", [{}, None, "text", 1.5, [1, 2, {"a": None}], {"ü": "日本 \u2028 \U0001f600\n\"\\"}])
def test_events_and_answers_are_json(echo, event):
    assert echo.ask(event) == {"got": event}


def test_large_events_and_answers(echo):
    event = {"text": "ü" * 3_000_000, "list": list(range(50_000))}
    assert echo.ask(event) == {"got": event}
    assert echo.ask("small") == {"got": "small"}


def test_many_events_share_one_connection(echo):
    for i in range(200):
        assert echo.ask(i) == {"got": i}
    assert echo.connection_count == 1


def test_replies_in_chunks(echo):
    echo.api.is_chunked = True
    assert echo.ask("first") == {"got": "first"}
    assert echo.ask({"text": "x" * 100_000}) == {"got": {"text": "x" * 100_000}}


def test_a_process_that_is_not_wanted_any_more_ends_quietly(echo):
    assert echo.ask(1) == {"got": 1}
    assert echo.said() == ""


def test_a_process_whose_server_is_gone_ends(echo):
    echo.ask(1)
    echo.hang_up()
    assert echo.ended() == 1
    assert b"The Runtime API cannot be reached: the Runtime API closed the connection" in echo.output


def test_a_process_whose_server_fails_ends(echo):
    echo.turn_away(500)
    assert echo.ended() == 1


def test_an_event_that_is_no_json_is_an_error(echo):
    answer = echo.invoke(b"{broken")
    assert answer.kind == "error"
    assert answer.json()["errorType"] in ("SyntaxError", "Runtime.UnmarshalError")
    assert echo.ask("next") == {"got": "next"}


CONCURRENT = {
    "node": ("index.handler", {"index.js": """
let waiting = [];
exports.handler = async (event, context) => {
  console.log('begin ' + event);
  const all = await new Promise((resolve) => {
    waiting.push([event, resolve]);
    if (waiting.length === 4) for (const [, done] of waiting) done(waiting.map(([name]) => name));
  });
  console.log('end ' + event);
  return { event, id: context.awsRequestId, all, invoke: globalThis.awslambda.InvokeStore.getXRayTraceId() };
};"""}),
    "python": ("app.handler", {"app.py": """
import logging, threading
barrier, names = threading.Barrier(4), []
def handler(event, context):
    logging.warning('begin %s', event)
    names.append(event)
    barrier.wait()
    logging.warning('end %s', event)
    return {'event': event, 'id': context.aws_request_id, 'all': list(names), 'invoke': 'Root=' + event}
"""}),
}


@pytest.mark.parametrize("language", ["node", "python"])
def test_several_events_at_a_time(start, language):
    handler, files = CONCURRENT[language]
    guest = start(language, handler, files, AWS_LAMBDA_MAX_CONCURRENCY="4")
    for _ in range(4):
        assert guest.waiting.acquire(timeout=SECONDS)  # all ask before there is anything
    ids = {name: guest.send(name, Trace_Id="Root=" + name) for name in "abcd"}
    for name, request_id in ids.items():
        answer = guest.answer(request_id).json()
        assert (answer["event"], answer["id"], answer["invoke"]) == (name, request_id, "Root=" + name)
        assert sorted(answer["all"]) == list("abcd")
    for _ in range(4):
        guest.turn_away(410)
    assert guest.ended() == 0
    said = guest.output.decode()
    for name, request_id in ids.items():
        for word in ("begin", "end"):
            assert re.search(rf"{request_id}\t.*{word} {name}\n", said)


@pytest.mark.parametrize("language", ["node", "python"])
def test_the_trace_is_in_the_environment(start, language):
    files = {"index.js": "exports.handler = async () => process.env._X_AMZN_TRACE_ID ?? 'none'",
             "app.py": "import os\ndef handler(e, c): return os.environ.get('_X_AMZN_TRACE_ID', 'none')"}
    guest = start(language, "index.handler" if language == "node" else "app.handler", files)
    assert guest.ask(Trace_Id="Root=1-2-3") == "Root=1-2-3"
    assert guest.ask() == "none"


# ---- Node.js: where handlers are ----

@pytest.mark.parametrize("file, handler, text", [
    ("index.js", "index.handler", "exports.handler = async () => 'here'"),
    ("index.js", "index.deep.er", "exports.deep = { er: async () => 'here' }"),
    ("src/app.js", "src/app.handler", "exports.handler = async () => 'here'"),
    ("src/index.js", "src/index.main", "exports.main = async () => 'here'"),
    ("index.mjs", "index.handler", "export const handler = async () => 'here'"),
    ("a/b/c.mjs", "a/b/c.handler", "const x = await Promise.resolve('here'); export const handler = async () => x"),
    ("index.cjs", "index.handler", "exports.handler = async () => 'here'"),
    ("lib/index.js", "lib.handler", "exports.handler = async () => 'here'"),
])
def test_node_files(node, file, handler, text):
    assert node(text, handler, file).ask() == "here"


def test_node_package_of_modules(start):
    files = {"package.json": '{"type": "module"}', "x.js": "export const x = 'here'",
             "index.js": "import { x } from './x.js'; export const handler = async () => x"}
    assert start("node", "index.handler", files).ask() == "here"


def test_node_finds_modules_of_the_task_root(start):
    files = {"node_modules/dep/index.js": "exports.x = 'dep'", "shared.js": "exports.x = 'shared'",
             "src/app.js": "exports.handler = async () => [require('dep').x, require('shared').x]"}
    assert start("node", "src/app.handler", files).ask() == ["dep", "shared"]


# ---- Node.js: how handlers answer ----

@pytest.mark.parametrize("text, answer", [
    ("async () => undefined", None),
    ("async () => new Date(0)", "1970-01-01T00:00:00.000Z"),
    ("(event, context, callback) => callback(null, { a: 1 })", {"a": 1}),
    ("(event, context, callback) => { setTimeout(() => callback(null, 'later'), 20) }", "later"),
    ("(event, context, callback) => { callback(null, 1); callback(null, 2); callback('x') }", 1),
    ("(event, context) => { context.succeed('done') }", "done"),
    ("(event, context) => { context.done(null, 'done') }", "done"),
    ("() => {}", None),
    ("() => { setTimeout(() => {}, 20) }", None),
    ("() => 'not a promise'", None),
    ("() => new Promise(() => {})", None),
    ("() => ({ then: (resolve) => resolve('thenable') })", "thenable"),
    ("async () => () => {}", None),
])
def test_node_answers(node, text, answer):
    guest = node("exports.handler = " + text)
    assert guest.ask() == answer
    assert guest.ask() == answer
    assert guest.connection_count == 1


def test_node_callback_waits_for_the_event_loop(node):
    guest = node("""
let ran = 0;
exports.handler = (event, context, callback) => {
  context.callbackWaitsForEmptyEventLoop = event.waits;
  const before = ran;
  setTimeout(() => { ran++; console.log('timer') }, 50);
  callback(null, before);
};""")
    assert guest.ask({"waits": True}) == 0
    assert guest.ask({"waits": True}) == 1
    assert guest.ask({"waits": False}) == 2
    assert guest.ask({"waits": False}) == 2  # the timer of the one before has not run yet


def test_node_context(node):
    guest = node("""
exports.handler = async (event, context) => ({ ...context, callbackWaitsForEmptyEventLoop: undefined,
  waits: context.callbackWaitsForEmptyEventLoop, left: context.getRemainingTimeInMillis(),
  functions: [typeof context.done, typeof context.fail, typeof context.succeed] })""")
    request_id = guest.send({}, Client_Context='{"custom": {"a": "b"}}', Cognito_Identity='{"cognitoIdentityId": "x"}')
    answer = guest.answer(request_id).json()
    assert answer.pop("left") > 1e12
    assert answer == {
        "functionVersion": "7", "functionName": "tested", "memoryLimitInMB": "256", "waits": True,
        "logGroupName": "/aws/lambda/tested", "logStreamName": "2026/01/01/[7]abc", "awsRequestId": request_id,
        "invokedFunctionArn": "arn:aws:lambda:us-east-1:000000000000:function:tested",
        "clientContext": {"custom": {"a": "b"}}, "identity": {"cognitoIdentityId": "x"},
        "functions": ["function"] * 3}
    assert "clientContext" not in guest.ask()


def test_node_console(node):
    guest = node("""
console.log('at the start');
exports.handler = async () => {
  console.log('a', 1, { b: [2] }); console.info('%s!', 'info'); console.warn('warn'); console.error('error');
  console.debug('debug'); process.stdout.write('plain\\n');
}""")
    request_id = guest.send({})
    guest.answer(request_id)
    lines = guest.said().split("\n")
    assert re.fullmatch(rf"{TIME}\tundefined\tINFO\tat the start", lines[0])
    expected = ["INFO\ta 1 { b: [ 2 ] }", "INFO\tinfo!", "WARN\twarn", "ERROR\terror", "DEBUG\tdebug"]
    for line, rest in zip(lines[1:6], expected):
        assert re.fullmatch(rf"{TIME}\t{request_id}\t" + re.escape(rest), line)
    assert lines[6:] == ["plain", ""]


# ---- Node.js: errors ----

@pytest.mark.parametrize("text, kind, message", [
    ("async () => { throw new Error('bad') }", "Error", "bad"),
    ("() => { throw new TypeError('bad') }", "TypeError", "bad"),
    ("async () => { class Own extends Error { name = 'Own' } throw new Own('mine') }", "Own", "mine"),
    ("async () => { throw 'text' }", "string", "text"),
    ("async () => { throw undefined }", "undefined", "undefined"),
    ("(event, context, callback) => callback(new RangeError('called'))", "RangeError", "called"),
    ("(event, context, callback) => callback('called')", "string", "called"),
    ("(event, context) => context.fail('failed')", "string", "failed"),
    ("async () => { const o = {}; o.o = o; return o }", "Error", "Unable to stringify response body"),
    ("async () => 10n", "Error", "Unable to stringify response body"),
])
def test_node_errors(node, text, kind, message):
    guest = node("exports.handler = " + text)
    error = guest.fail()
    assert (error["errorType"], error["errorMessage"]) == (kind, message)
    assert isinstance(error["trace"], list)
    assert guest.fail()["errorType"] == kind  # and the process goes on
    assert re.search(rf"\tid-1\tERROR\tInvoke Error \t{{\"errorType\":\"{kind}\"", guest.said())


def test_node_trace_names_the_place(node):
    error = node("exports.handler = async () => {\n  throw new Error('bad') }").fail()
    assert error["trace"][0] == "Error: bad"
    assert re.search(r"index\.js:2:\d+", error["trace"][1])


@pytest.mark.parametrize("text, kind, status", [
    ("async () => { setTimeout(() => { throw new RangeError('late') }, 1); await new Promise(() => {}) }",
     "RangeError", 129),
    ("async () => { Promise.reject(new Error('late')); await new Promise((r) => setTimeout(r, 5000)) }",
     "Runtime.UnhandledPromiseRejection", 128),
])
def test_node_errors_that_nobody_catches_end_the_process(node, text, kind, status):
    guest = node("exports.handler = " + text)
    error = guest.fail()
    assert (error["errorType"], error["errorMessage"]) == (kind, "late")
    assert guest.ended() == status


@pytest.mark.parametrize("file, handler, text, kind, message", [
    ("index.js", "other.handler", "", "Runtime.ImportModuleError", "Cannot find module 'other'"),
    ("index.js", "index.handler", "require('nowhere')", "Runtime.ImportModuleError", "Cannot find module 'nowhere'"),
    ("index.mjs", "index.handler", "import 'nowhere'", "Runtime.ImportModuleError", "Cannot find package 'nowhere'"),
    ("index.js", "index.handler", "exports.other = 1", "Runtime.HandlerNotFound",
     "index.handler is undefined or not exported"),
    ("index.js", "index.handler", "exports.handler = 1", "Runtime.HandlerNotFound", "index.handler is not a function"),
    ("index.js", "index.handler", "exports.handler = (", "Runtime.UserCodeSyntaxError", "SyntaxError: Unexpected"),
    ("index.mjs", "index.handler", "export const = ", "Runtime.UserCodeSyntaxError", "SyntaxError: Unexpected"),
    ("index.js", "index", "", "Runtime.MalformedHandlerName", "Bad handler"),
    ("index.js", "../index.handler", "", "Runtime.MalformedHandlerName", "'../index.handler' is not a valid handler"),
    ("index.js", "index.handler", "throw new TypeError('early')", "TypeError", "early"),
    ("index.js", "index.handler", "Promise.reject(new Error('early')); exports.handler = async () => 1",
     "Runtime.UnhandledPromiseRejection", "early"),
])
def test_node_errors_at_the_start(node, file, handler, text, kind, message):
    guest = node(text, handler, file)
    answer = guest.init_error()
    assert answer.json()["errorType"] == answer.headers["lambda-runtime-function-error-type"] == kind
    assert message in answer.json()["errorMessage"]
    assert guest.ended() != 0
    assert f'"errorType":"{kind}"' in guest.output.decode()


BROKEN = "const x = {\n  a: 1\n  b: 2,\n};\n"
LINE = "  b: 2,\n  ^"


@pytest.mark.parametrize("files, place", [
    ({"index.js": BROKEN}, "index.js:3"),
    ({"index.mjs": BROKEN}, "index.mjs:3"),
    ({"index.mjs": "import './lib/part.mjs'; console.log('runs');", "lib/part.mjs": BROKEN}, "lib/part.mjs:3"),
    ({"index.mjs": "import './part.cjs'", "part.cjs": BROKEN}, "part.cjs:3"),
    ({"index.js": BROKEN, "package.json": '{"type": "module"}'}, "index.js:3"),
])
def test_node_syntax_errors_name_file_and_line(start, tmp_path, files, place):
    guest = start("node", "index.handler", files)
    error = guest.init_error().json()
    assert error["errorType"] == "Runtime.UserCodeSyntaxError"
    assert error["errorMessage"] == f"SyntaxError: Unexpected identifier 'b' ({tmp_path}/{place})"
    assert error["trace"][:3] == [f"{tmp_path}/{place}", "  b: 2,", "  ^"]
    assert guest.ended() == 1
    assert f"{tmp_path}/{place}\n{LINE}\n" in guest.output.decode() and "runs" not in guest.output.decode()


def test_node_a_missing_export_names_file_and_line(start, tmp_path):
    guest = start("node", "index.handler", {"index.mjs": "\nimport { y } from './part.mjs'\n", "part.mjs": ""})
    error = guest.init_error().json()
    assert error["errorType"] == "Runtime.UserCodeSyntaxError"
    assert "does not provide an export named 'y'" in error["errorMessage"]
    assert f"{tmp_path}/index.mjs:2" in error["errorMessage"]


def test_node_bad_json_at_the_start_names_its_line(node, tmp_path):
    error = node("\nJSON.parse('{x')", file="index.mjs").init_error().json()
    assert error["errorType"] == "Runtime.UserCodeSyntaxError"
    assert any(f"{tmp_path}/index.mjs:2" in line for line in error["trace"])


SDK = {"package.json": '{"name": "@aws-sdk/client-x", "main": "main.cjs", "exports": "./main.cjs"}',
       "main.cjs": "module.exports = { where: __filename };"}
USERS = {"index.mjs": "import { where } from '@aws-sdk/client-x'; export const handler = async () => where;",
         "index.js": "const { where } = require('@aws-sdk/client-x'); exports.handler = async () => where;"}


@pytest.mark.parametrize("file", USERS)
def test_node_finds_packages_that_it_was_not_given(start, tmp_path, file):
    shared, own = tmp_path / "shared" / "node_modules", tmp_path / "own"
    for name, text in SDK.items():
        path = shared / "@aws-sdk" / "client-x" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    own.mkdir()
    guest = start("node", "index.handler", {file: USERS[file]}, folder=own, QUIPU_NODE_MODULES=str(shared))
    assert guest.ask() == str(shared / "@aws-sdk" / "client-x" / "main.cjs")
    files = {file: USERS[file], **{"node_modules/@aws-sdk/client-x/" + name: text for name, text in SDK.items()}}
    guest = start("node", "index.handler", files, folder=own, QUIPU_NODE_MODULES=str(shared))
    assert guest.ask() == str(own / "node_modules/@aws-sdk/client-x/main.cjs")  # its own comes first


@pytest.mark.parametrize("answer, expected", [
    ("(e, c, done) => Promise.resolve().then(() => { done(null, 'called back'); })", "called back"),
    ("async (e, c, done) => { done(null, 'called back'); throw new Error('late'); }", "called back"),
    ("(e, c, done) => { setTimeout(() => done(null, 'late'), 10); return Promise.resolve('promised'); }", "promised"),
])
def test_node_takes_what_comes_first_of_callback_and_promise(start, answer, expected):
    assert start("node", "index.handler", {"index.js": f"exports.handler = {answer};"}).ask() == expected


def test_node_points_an_old_sdk_that_it_shares(start, tmp_path):
    """The SDK v2 does not read AWS_ENDPOINT_URL: the bootstrap sets its configuration, wherever it lies."""
    old = tmp_path / "shared" / "node_modules" / "aws-sdk"
    (old / "lib").mkdir(parents=True)
    (old / "package.json").write_text('{"name": "aws-sdk", "main": "lib/aws.js"}')
    (old / "lib" / "aws.js").write_text("require('./node_loader'); module.exports = require('./core');")
    (old / "lib" / "core.js").write_text("module.exports = {config: {}};")
    (old / "lib" / "node_loader.js").write_text("require('./core').config = {};")
    (tmp_path / "own").mkdir()
    code = "exports.handler = async () => require('aws-sdk').config.dynamodb.endpoint;"
    guest = start("node", "index.handler", {"index.js": code}, folder=tmp_path / "own",
                  QUIPU_NODE_MODULES=str(old.parent), AWS_ENDPOINT_URL="http://127.0.0.1:1")
    assert guest.ask() == "http://127.0.0.1:1"


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("file", USERS)
def test_node_tells_how_to_install_what_lambda_has_built_in(start, tmp_path, file, exists):
    if exists:
        (tmp_path / "shared" / "node_modules").mkdir(parents=True)
    guest = start("node", "index.handler", {file: USERS[file]}, QUIPU_NODE_MODULES=f"{tmp_path}/shared/node_modules")
    error = guest.init_error().json()
    assert error["errorType"] == "Runtime.ImportModuleError"
    assert "Cannot find" in error["errorMessage"] and error["errorMessage"].endswith(
        f"Lambda has @aws-sdk/client-x built in; here: npm install --prefix {tmp_path}/shared @aws-sdk/client-x")


# ---- Node.js: streams ----

def test_node_streams(node):
    guest = node("""
exports.handler = awslambda.streamifyResponse(async (event, stream, context) => {
  stream.setContentType('text/plain');
  stream.write('one ');
  await new Promise((resolve) => setTimeout(resolve, 10));
  stream.write(Buffer.from('two ü'));
  stream.end();
})""")
    for _ in range(2):
        answer = guest.invoke()
        assert (answer.kind, answer.body.decode()) == ("response", "one two ü")
        assert answer.headers["lambda-runtime-function-response-mode"] == "streaming"
        assert answer.headers["content-type"] == "text/plain"
        assert answer.trailers == {}
    assert guest.connection_count == 1


def test_node_streams_write_objects_as_json(node):
    guest = node("""
exports.handler = awslambda.streamifyResponse(async (event, stream) => {
  stream.write({ a: [1, 'ü'] });
  stream.write(['x']);
  stream.write(7);
  stream.write(new Uint8Array([33]));
  await new Promise((resolve) => stream.write({ called: 'back' }, resolve));
  if (event) stream.end({ last: true });
  else stream.end(() => {});
})""")
    text = '{"a":[1,"ü"]}["x"]7!{"called":"back"}'
    for event, last in (True, '{"last":true}'), (False, ""):
        answer = guest.invoke(event)
        assert (answer.kind, answer.body.decode()) == ("response", text + last)


def test_node_streams_with_a_prelude(node):
    guest = node("""
exports.handler = awslambda.streamifyResponse(async (event, stream) => {
  stream = awslambda.HttpResponseStream.from(stream, { statusCode: 201, headers: { a: 'b' } });
  stream.write('body');
  stream.end();
})""")
    answer = guest.invoke()
    prelude, body = answer.body.split(b"\0" * 8)
    assert (json.loads(prelude), body) == ({"statusCode": 201, "headers": {"a": "b"}}, b"body")
    assert answer.headers["content-type"] == "application/vnd.awslambda.http-integration-response"


def test_node_stream_from_a_pipeline(node):
    guest = node("""
const { pipeline } = require('node:stream/promises');
const { Readable } = require('node:stream');
exports.handler = awslambda.streamifyResponse(async (event, stream) => {
  await pipeline(Readable.from(Array(2000).fill('x'.repeat(1000))), stream);
})""")
    assert guest.invoke().body == b"x" * 2_000_000


def test_node_stream_that_breaks_off(node):
    guest = node("""
exports.handler = awslambda.streamifyResponse(async (event, stream) => {
  stream.write('half');
  throw new TypeError('broken');
})""")
    answer = guest.invoke()
    assert (answer.kind, answer.body) == ("response", b"half")
    assert answer.trailers["lambda-runtime-function-error-type"] == "TypeError"
    error = json.loads(base64.b64decode(answer.trailers["lambda-runtime-function-error-body"]))
    assert (error["errorType"], error["errorMessage"]) == ("TypeError", "broken")
    assert guest.invoke().body == b"half"


def test_node_stream_that_fails_before_it_begins(node):
    guest = node("exports.handler = awslambda.streamifyResponse(async () => { throw new Error('early') })")
    assert guest.fail()["errorMessage"] == "early"


def test_node_stream_that_is_never_ended(node):
    guest = node("exports.handler = awslambda.streamifyResponse(async (event, stream) => { stream.write('open') })")
    assert guest.invoke().body == b"open"


# ---- Python ----

@pytest.mark.parametrize("file, handler", [
    ("lambda_function.py", "lambda_function.lambda_handler"),
    ("pkg/mod.py", "pkg.mod.lambda_handler"),
    ("pkg/mod.py", "pkg/mod.lambda_handler"),
    ("pkg/__init__.py", "pkg.lambda_handler"),
])
def test_python_files(python, file, handler):
    assert python("def lambda_handler(event, context): return 'here'", handler, file).ask() == "here"


def test_python_finds_modules_of_the_task_root_and_leaves_no_trace(start, tmp_path):
    files = {"app.py": "import shared\ndef handler(e, c): return shared.x", "shared.py": "x = 'shared'"}
    assert start("python", "app.handler", files).ask() == "shared"
    assert sorted(os.listdir(tmp_path)) == ["app.py", "shared.py"]


def test_python_context(python):
    guest = python("""
def lambda_handler(event, context):
    return {'id': context.aws_request_id, 'name': context.function_name, 'version': context.function_version,
            'arn': context.invoked_function_arn, 'memory': context.memory_limit_in_mb,
            'group': context.log_group_name, 'stream': context.log_stream_name,
            'left': context.get_remaining_time_in_millis(), 'identity': context.identity.cognito_identity_id,
            'custom': context.client_context and context.client_context.custom,
            'title': context.client_context and context.client_context.client.app_title}""")
    request_id = guest.send({}, Client_Context='{"custom": {"a": "b"}, "client": {"app_title": "t"}}',
                            Cognito_Identity='{"cognitoIdentityId": "x"}')
    answer = guest.answer(request_id).json()
    assert answer.pop("left") > 1e12
    assert answer == {
        "id": request_id, "name": "tested", "version": "7", "memory": "256", "group": "/aws/lambda/tested",
        "arn": "arn:aws:lambda:us-east-1:000000000000:function:tested", "stream": "2026/01/01/[7]abc",
        "identity": "x", "custom": {"a": "b"}, "title": "t"}
    assert guest.ask()["custom"] is None


def test_python_output(python):
    guest = python("""
import logging, sys, threading
print('at the start')
logger = logging.getLogger('mine')
logger.setLevel(logging.INFO)
def lambda_handler(event, context):
    print('printed', event)
    logger.info('info %d', 1)
    logging.error('error')
    logging.info('below the level')
    thread = threading.Thread(target=lambda: logging.warning('of a thread'))
    thread.start(), thread.join()
    sys.stdout.write('no line end')""")
    request_id = guest.send({"a": 1})
    guest.answer(request_id)
    lines = guest.said().split("\n")
    assert lines[:2] == ["at the start", "printed {'a': 1}"]
    for line, (level, text) in zip(lines[2:], [("INFO", "info 1"), ("ERROR", "error"), ("WARNING", "of a thread")]):
        assert re.fullmatch(rf"\[{level}\]\t{TIME}\t{request_id}\t{text}", line)
    assert lines[5:] == ["no line end"]


@pytest.mark.parametrize("text, answer", [
    ("None", None), ("{'d': Decimal('1.50')}", {"d": 1.5}), ("(1, 2)", [1, 2]), ("'\\u00fc'", "ü"),
    ("{1: 2}", {"1": 2}),
])
def test_python_answers(python, text, answer):
    guest = python(f"from decimal import Decimal\ndef lambda_handler(event, context): return {text}")
    assert guest.ask() == answer


@pytest.mark.parametrize("execution, sent", [
    ("AWS_Lambda_python3.11", b'"\\u00fc"'), ("AWS_Lambda_python3.12", '"ü"'.encode())])
def test_python_characters(python, execution, sent):
    guest = python("def lambda_handler(event, context): return 'ü'", AWS_EXECUTION_ENV=execution)
    assert guest.invoke().body == sent


def test_python_errors(python):
    guest = python("""
class Own(Exception):
    pass
def deeper():
    raise Own('bad')
def lambda_handler(event, context):
    deeper()""")
    for number in (1, 2):
        error = guest.fail()
        assert (error["errorType"], error["errorMessage"], error["requestId"]) == ("Own", "bad", f"id-{number}")
        assert len(error["stackTrace"]) == 2
        assert re.match(r'  File ".*lambda_function.py", line 7, in lambda_handler\n    deeper\(\)\n',
                        error["stackTrace"][0])
    assert "[ERROR] Own: bad\nTraceback (most recent call last):\n" in guest.said()


@pytest.mark.parametrize("text", ["object()", "b'bytes'", "{(1, 2): 3}", "{1, 2}"])
def test_python_answers_that_are_no_json(python, text):
    guest = python(f"def lambda_handler(event, context): return {text}")
    error = guest.fail()
    assert error["errorType"] == "Runtime.MarshalError"
    assert error["errorMessage"].startswith("Unable to marshal response: ")
    assert error["stackTrace"] == []


def test_python_exit(python):
    guest = python("import sys\ndef lambda_handler(event, context):\n    print('going')\n    sys.exit(event)")
    guest.send(3)
    assert guest.ended() == 3
    assert guest.output == b"going\n"


@pytest.mark.parametrize("handler, text, kind, message", [
    ("other.handler", "", "Runtime.ImportModuleError", "Unable to import module 'other': No module named 'other'"),
    ("lambda_function.handler", "import nowhere", "Runtime.ImportModuleError",
     "Unable to import module 'lambda_function': No module named 'nowhere'"),
    ("lambda_function.handler", "x = 1", "Runtime.HandlerNotFound",
     "Handler 'handler' missing on module 'lambda_function'"),
    ("lambda_function.handler", "def handler(:", "Runtime.UserCodeSyntaxError",
     "Syntax error in module 'lambda_function': "),
    ("lambda_function", "", "Runtime.MalformedHandlerName",
     "Bad handler 'lambda_function': not enough values to unpack (expected 2, got 1)"),
    ("lambda_function.handler", "1 / 0", "ZeroDivisionError", "division by zero"),
])
def test_python_errors_at_the_start(python, handler, text, kind, message):
    guest = python(text, handler)
    answer = guest.init_error()
    assert answer.json()["errorType"] == answer.headers["lambda-runtime-function-error-type"] == kind
    assert answer.json()["errorMessage"].startswith(message)
    assert guest.ended() == 1
    assert f"[ERROR] {kind}: {message}" in guest.output.decode()
    if kind == "ZeroDivisionError":
        assert re.match(r'  File ".*lambda_function.py", line 1, in <module>\n', answer.json()["stackTrace"][0])


# ---- the functions that other tests use ----

@pytest.mark.parametrize("folder, language, handler", [
    ("echo-node", "node", "index.handler"), ("echo-python", "python", "lambda_function.lambda_handler"),
    ("echo-shell", "provided", ""), ("echo-c", "provided", "")])
def test_functions_that_echo(start, tmp_path, folder, language, handler):
    place = os.path.join(FUNCTIONS, folder)
    if folder == "echo-c":
        subprocess.run(["cc", "-o", tmp_path / "bootstrap", os.path.join(place, "bootstrap.c")], check=True)
        place = tmp_path
    guest = start(language, handler, folder=place)
    for event in ({"a": [1, "ü"]}, "text"):
        request_id = guest.send(event)
        assert guest.answer(request_id).json() == {"event": event, "id": request_id, "language": folder[5:]}
    guest.turn_away(410)
    guest.ended()
    assert guest.output.count(b"echo\n") == 2


@pytest.mark.parametrize("folder, language, handler, how, kind", [
    ("fail-node", "node", "index.handler", "throw", "RangeError"),
    ("fail-node", "node", "index.handler", "reject", "string"),
    ("fail-node", "node", "index.handler", "uncaught", "Error"),
    ("fail-node", "node", "index.handler", "unhandled", "Runtime.UnhandledPromiseRejection"),
    ("fail-python", "python", "lambda_function.lambda_handler", "raise", "LookupError"),
    ("fail-python", "python", "lambda_function.lambda_handler", "marshal", "Runtime.MarshalError"),
    ("fail-shell", "provided", "", "", "Function.Failed"),
])
def test_functions_that_fail(start, folder, language, handler, how, kind):
    guest = start(language, handler, folder=os.path.join(FUNCTIONS, folder))
    assert guest.fail({"how": how})["errorType"] == kind


@pytest.mark.parametrize("event, answer", [
    ({}, {"fine": True}), ({"deed": "large", "bytes": 10}, "x" * 10), ({"deed": "slow", "ms": 1}, {"fine": True}),
    ({"deed": "twice"}, {"first": True}), ({"deed": "liar"}, {"status": 202}),
    ({"deed": "loud", "megabytes": 2}, {"fine": True}), ({"deed": "crowd", "connections": 5}, {"connections": 5})])
def test_hostile_deeds_with_an_answer(start, event, answer):
    guest = start("provided", "", folder=os.path.join(FUNCTIONS, "hostile"))
    assert guest.ask(event) == answer


@pytest.mark.parametrize("event, status", [
    ({"deed": "deserter"}, 3), ({"deed": "crash"}, -11), ({"deed": "deserter", "status": 0}, 0)])
def test_hostile_deeds_that_end_it(start, event, status):
    guest = start("provided", "", folder=os.path.join(FUNCTIONS, "hostile"))
    guest.send(event)
    assert guest.ended() == status


def test_hostile_from_the_start(start):
    assert start("provided", "", folder=os.path.join(FUNCTIONS, "hostile"), DEED="absent", STATUS="4").ended() == 4
    guest = start("provided", "", folder=os.path.join(FUNCTIONS, "hostile"), DEED="init error")
    assert guest.init_error().json()["errorType"] == "Own.InitError"
    assert guest.ended() == 1


def test_hostile_daemons(start, tmp_path):
    guest = start("provided", "", folder=os.path.join(FUNCTIONS, "hostile"), NOTES=str(tmp_path / "notes"))
    pids = guest.ask({"deed": "daemonise"})["pids"]
    assert len(set(pids)) == 3
    for pid in pids:
        os.kill(pid, 9)  # so it was there


# ---- logs in JSON ----

def json_lines(guest):
    lines = [json.loads(line) for line in guest.said().splitlines()]
    for line in lines:
        assert re.fullmatch(TIME, line.pop("timestamp"))
    return lines


NODE_TALK = """exports.handler = async (event, context) => {
  console.trace('trace'); console.debug('debug');
  console.log('text %d', 1);
  console.info({ a: [1] });
  console.warn('several', { b: 2 }, new TypeError('inner'));
  console.error(new RangeError('alone'));
  const loop = {}; loop.loop = loop; console.log(loop);
  if (event) throw new Error('as asked');
}"""


def test_node_logs_json(node):
    guest = node(NODE_TALK, AWS_LAMBDA_LOG_FORMAT="JSON", AWS_LAMBDA_LOG_LEVEL="INFO")
    answer = guest.invoke(True)
    lines = json_lines(guest)
    assert [line.pop("level") for line in lines] == ["INFO", "INFO", "WARN", "ERROR", "INFO", "ERROR"]
    assert {line.pop("requestId") for line in lines} == {answer.request_id}
    assert lines[0] == {"message": "text 1"}
    assert lines[1] == {"message": {"a": [1]}}
    assert lines[2]["message"].startswith("several { b: 2 } TypeError: inner")
    assert (lines[2]["errorType"], lines[2]["errorMessage"]) == ("TypeError", "inner") and lines[2]["stackTrace"]
    assert (lines[3]["message"]["errorType"], lines[3]["message"]["errorMessage"]) == ("RangeError", "alone")
    assert "Circular" in lines[4]["message"]
    assert lines[5]["message"]["errorMessage"] == "as asked" and lines[5]["message"]["stackTrace"]


@pytest.mark.parametrize("level, count", [("TRACE", 7), ("DEBUG", 6), ("WARN", 2), ("FATAL", 0)])
def test_node_log_levels(node, level, count):
    guest = node(NODE_TALK, AWS_LAMBDA_LOG_FORMAT="JSON", AWS_LAMBDA_LOG_LEVEL=level)
    guest.ask(False)
    assert len(json_lines(guest)) == count


def test_node_syntax_errors_in_json(node, tmp_path):
    guest = node(BROKEN, file="index.mjs", AWS_LAMBDA_LOG_FORMAT="JSON")
    guest.init_error()
    guest.ended()
    message = json.loads(guest.output)["message"]
    assert message["errorType"] == "Runtime.UserCodeSyntaxError"
    assert f"{tmp_path}/index.mjs:3" in message["errorMessage"]


PYTHON_TALK = """
import logging
def lambda_handler(event, context):
    log = logging.getLogger("app")
    log.debug("debug")
    log.info("text %d", 1, extra={"order": 7, "odd": {1}})
    log.warning("ü")
    try:
        {}["x"]
    except KeyError:
        log.exception("caught")
    if event:
        raise ValueError("as asked")
"""


def test_python_logs_json(python):
    guest = python(PYTHON_TALK, AWS_LAMBDA_LOG_FORMAT="JSON", AWS_LAMBDA_LOG_LEVEL="INFO")
    answer = guest.invoke(True)
    lines = json_lines(guest)
    assert [line["level"] for line in lines] == ["INFO", "WARNING", "ERROR", "ERROR"]
    assert {line["requestId"] for line in lines} == {answer.request_id}
    assert {line.pop("logger") for line in lines[:3]} == {"app"}
    assert lines[0] == {"level": "INFO", "requestId": answer.request_id, "message": "text 1", "order": 7, "odd": "{1}"}
    assert lines[1]["message"] == "ü"
    assert (lines[2]["errorType"], lines[2]["errorMessage"], lines[2]["message"]) == ("KeyError", "'x'", "caught")
    assert lines[2]["stackTrace"] and ":lambda_handler:" in lines[2]["location"]
    assert (lines[3]["errorType"], lines[3]["errorMessage"]) == ("ValueError", "as asked") and lines[3]["stackTrace"]


@pytest.mark.parametrize("level, count", [("TRACE", 4), ("WARN", 2), ("FATAL", 0)])
def test_python_log_levels(python, level, count):
    guest = python(PYTHON_TALK, AWS_LAMBDA_LOG_FORMAT="JSON", AWS_LAMBDA_LOG_LEVEL=level)
    guest.ask(False)
    assert len(json_lines(guest)) == count
