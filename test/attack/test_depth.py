"""Requests that are nested as deeply as they may be, and deeper: patterns run on small stacks."""
import json
import urllib.error
import urllib.request

import pytest
from support.process import Quipu


def ask(server, method, path, body):
    request = urllib.request.Request(server.url + path, method=method, data=body.encode())
    try:
        with urllib.request.urlopen(request, timeout=180) as reply:
            return reply.status
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.status


def objects(depth):
    return '{"a":' * depth + "1" + "}" * depth


def lists(depth):
    return "[" * depth + "]" * depth


@pytest.mark.parametrize("depth, status", [(31, 200), (32, 400), (200, 400), (100000, 400)])
def test_nested_documents(depth, status):
    with Quipu("--memory") as server:
        for text in (objects(depth), lists(depth)):
            key = f"/v1/documents/c/{len(text)}"
            assert ask(server, "PUT", key, text) == (201 if status == 200 else status)
            assert ask(server, "PATCH", key, text) == status
            assert ask(server, "POST", "/v1/leases/x", f'{{"owner":"a","data":{text}}}') == status


@pytest.mark.parametrize("condition", ["(" * 490 + "count > 1" + ")" * 490, "not " * 247 + "count > 1",
                                       "size(" * 160 + "kinds" + ")" * 160 + " > 1"])
def test_nested_conditions(condition):
    with Quipu("--memory") as server:
        assert len(condition) <= 1000
        status = ask(server, "PUT", "/v1/groups/g", json.dumps({"complete": {"when": condition}}))
        assert status in (200, 400)
        assert ask(server, "PUT", "/v1/groups/g", '{"complete":{"size":2}}') == 200
