"""The JavaScript SDK's Lambda client: lambda_sdk.mjs makes the calls, the results are checked here."""
import json
import os
import subprocess

import pytest
from lambdas import archive
from support.process import npm_folder

HANDLER = """
exports.handler = async (event, context) => {
  console.log("called", context.awsRequestId);
  if (event.fail) throw new TypeError(event.fail);
  return { event, mode: process.env.MODE };
};
"""


@pytest.fixture(scope="module")
def results(endpoint, tmp_path_factory):
    script = os.path.join(os.path.dirname(__file__), "lambda_sdk.mjs")
    code = tmp_path_factory.mktemp("code") / "code.zip"
    code.write_bytes(archive({"index.js": HANDLER}))
    done = subprocess.run(["node", script, endpoint, npm_folder(), str(code)], capture_output=True, text=True,
                          timeout=180)
    if done.returncode:
        pytest.fail("lambda_sdk.mjs: " + done.stderr.strip()[:2000], pytrace=False)
    return json.loads(done.stdout)


def test_waiters_end(results):
    assert (results["active"], results["updated"]) == ("SUCCESS", "SUCCESS")
    assert results["made"]["state"] == "Active"
    assert results["made"]["variables"] == {"MODE": "one"}


def test_invocations(results):
    invoked = results["invoked"]
    assert (invoked["status"], invoked["version"]) == (200, "$LATEST")
    assert invoked["answer"] == {"event": {"n": 1}, "mode": "one"}
    assert "called " in invoked["log"] and "REPORT RequestId" in invoked["log"]
    assert (results["event"], results["dry"]) == (202, 204)
    assert results["parallel"] == list(range(8))


def test_a_functions_error(results):
    failed = results["failed"]
    assert (failed["status"], failed["error"]) == (200, "Unhandled")
    assert (failed["answer"]["errorType"], failed["answer"]["errorMessage"]) == ("TypeError", "as asked")


def test_versions_and_aliases(results):
    assert (results["alias"]["version"], results["alias"]["answer"]["mode"]) == ("1", "one")
    assert (results["latest"]["version"], results["latest"]["answer"]["mode"]) == ("$LATEST", "two")
    assert results["versions"] == ["$LATEST", "1"]


def test_lists_and_settings(results):
    assert results["listed"] and results["signing"]
    assert (results["tags"], results["loop"], results["management"]) == ({"a": "b"}, "Allow", "FunctionUpdate")


def test_function_urls(results):
    url = results["url"]
    assert (url["status"], url["mode"], url["auth"], url["same"]) == (201, "RESPONSE_STREAM", "AWS_IAM", True)
    assert url["cors"] == {"AllowOrigins": ["https://example.com"], "AllowMethods": ["GET"], "MaxAge": 5}
    assert (url["gone"]["name"], url["gone"]["status"]) == ("ResourceNotFoundException", 404)


def test_exceptions_are_recognised(results):
    assert results["throttled"] == {"name": "TooManyRequestsException", "message": "Rate Exceeded.", "status": 429,
                                    "reason": "ReservedFunctionConcurrentInvocationLimitExceeded"}
    assert results["invalid"]["name"] == "ValidationException"
    assert results["invalid"]["message"] == (
        "1 validation error detected: Value '901' at 'timeout' failed to satisfy constraint: Member must have value "
        "less than or equal to 900")
    for missing in (results["missing"], results["gone"]):
        assert (missing["name"], missing["status"]) == ("ResourceNotFoundException", 404)
        assert missing["message"].startswith("Function not found: arn:aws:lambda:us-east-1:000000000000:function:")
