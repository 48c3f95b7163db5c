"""DNS rebinding: a page whose own name has been pointed at the server's address. To the browser it is the server's own
page, so only the Host header tells."""
import socket

import pytest
from support.process import Quipu
from support.wire import Connection, call_headers

FOREIGN = ["evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.nip.io", "[::1].evil.example",
           "localhost@evil.example", "192.168.1.5"]


def ask(server, host, headers=None, method="POST", path="/"):
    with Connection(server.url) as wire:
        known = call_headers("ListTables") if path == "/" else {}
        return wire.request(method, path, {**known, **(headers or {}), "Host": host}, b"{}" if path == "/" else b"")


@pytest.fixture(scope="module")
def server():
    with Quipu("--memory", "--test-hooks") as running:
        yield running


@pytest.mark.parametrize("host", FOREIGN)
@pytest.mark.parametrize("method,path", [("POST", "/"), ("GET", "/v1/openapi.json"), ("GET", "/counter?systemKey=k"),
                                         ("GET", "/2015-03-31/functions/"), ("GET", "/_quipu/idle"),
                                         ("GET", "/healthz")])
def test_a_foreign_name_is_refused(server, host, method, path):
    own = {"Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
    for headers in ({}, own):
        reply = ask(server, host, headers, method, path)
        assert reply.status == 403
        assert "--allow-host" in reply.message


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "LOCALHOST:8000", "127.0.0.1:8000", "127.1.2.3",
                                  "[::1]:8000", "tables.localhost", "0.0.0.0:8000", ""])
def test_the_names_of_the_loopback_are_known(server, host):
    assert ask(server, host).status == 200


def test_a_request_of_http_1_0_needs_no_host(server):
    with Connection(server.url) as wire:
        wire.send(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert wire.read().status == 200


def test_on_all_addresses_the_machine_and_addresses_are_known():
    with Quipu("--memory", "--host", "0.0.0.0", "--open") as server:
        for host in ("192.168.1.5:8000", "[2001:db8::1]", socket.gethostname(), "localhost"):
            assert ask(server, host).status == 200
        assert ask(server, "evil.example").status == 403


def test_names_that_are_allowed():
    with Quipu("--memory", "--allow-host", "db.example.com", "--allow-host", ".corp.test") as server:
        for host in ("db.example.com", "DB.example.com:443", "corp.test", "a.corp.test:8000"):
            assert ask(server, host).status == 200
        for host in ("evil.example", "x.db.example.com", "evilcorp.test"):
            assert ask(server, host).status == 403
        # An allowed name makes its pages our own, and no others.
        assert ask(server, "db.example.com", {"Origin": "https://db.example.com"}).status == 200
        assert ask(server, "db.example.com", {"Origin": "https://evil.example"}).status == 403
    with Quipu("--memory", env={"QUIPU_ALLOW_HOST": "*"}) as server:
        assert ask(server, "anything.example").status == 200
