"""The JavaScript SDK, version 3: client.mjs makes the calls, the results are checked here."""
import json
import os
import subprocess

import pytest
from support.process import npm_folder
from values import S


@pytest.fixture(scope="module")
def results(endpoint):
    script = os.path.join(os.path.dirname(__file__), "client.mjs")
    done = subprocess.run(["node", script, endpoint, npm_folder()], capture_output=True, text=True, timeout=120)
    if done.returncode:
        pytest.fail("client.mjs: " + done.stderr.strip()[:2000], pytrace=False)
    return json.loads(done.stdout)


def test_waiters(results):
    assert (results["waiter"], results["gone"]) == ("SUCCESS", "SUCCESS")


def test_an_item_comes_back(results):
    assert results["item"] == {"id": S("a"), "text": S("ü"), "number": {"N": "1.5"}, "bytes": [0, 1, 255],
                               "list": {"L": [{"NULL": True}, {"BOOL": False}]}, "map": {"M": {"k": {"SS": ["x"]}}}}


def test_update_returns_the_counter(results):
    assert results["updated"] == {"count": {"N": "1"}}


def test_batches_pages_and_queries(results):
    assert (results["scanned"], results["batch"], results["queried"]) == (27, 2, 1)


def test_exceptions_are_recognised(results):
    condition = results["condition"]
    assert (condition["name"], condition["status"]) == ("ConditionalCheckFailedException", 400)
    assert condition["item"] == {"id": S("counter"), "count": {"N": "1"}}
    assert results["invalid"]["name"] == "ValidationException"
    assert results["invalid"]["message"] == "The provided key element does not match the schema"
    assert results["missing"]["name"] == "ResourceNotFoundException"


def test_parallel_additions_are_all_different(results):
    assert results["parallel"] == list(range(1, 51))
