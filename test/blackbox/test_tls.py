"""HTTPS with a certificate made on the spot."""
import socket
import ssl
import subprocess

import pytest
from cli import on_terminal, quipu
from conftest import boto_client
from support.process import Quipu, run_quipu
from support.wire import Connection


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    key, cert = str(folder / "key.pem"), str(folder / "cert.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True)
    return cert, key


@pytest.fixture(scope="module")
def server(certificate):
    with Quipu("--memory", "--tls-cert", certificate[0], "--tls-key", certificate[1]) as running:
        yield running


@pytest.fixture(scope="module")
def context(certificate):
    return ssl.create_default_context(cafile=certificate[0])


def test_the_ready_line_says_https(server):
    assert server.url.startswith("https://127.0.0.1:")


def test_calls_over_tls(server, context):
    with Connection(server.url, context) as wire:
        assert wire.socket.version() in ("TLSv1.2", "TLSv1.3")
        for _ in range(3):
            assert wire.call("ListTables", {}).status == 200


def test_boto3_over_tls(server, certificate):
    assert boto_client(server.url, verify=certificate[0]).list_tables()["TableNames"] == []


def test_quipu_top_over_tls(server, certificate):
    trusted = {"AWS_CA_BUNDLE": certificate[0]}
    frame = quipu("top", "--once", on=server.url, env=trusted)
    assert (frame.returncode, frame.stderr) == (0, "")
    assert frame.stdout.startswith(f"quipu top   {server.url}   ")
    status, shown = on_terminal("top", on=server.url, env=trusted, typed=[("connections ", "q")])
    assert status == 0, shown
    refused = quipu("top", "--once", on=server.url)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "SSL certificate problem" in refused.stderr
    assert "AWS_CA_BUNDLE may name a file with certificates to trust" in refused.stderr


def test_large_bodies_both_ways(server, context):
    with Connection(server.url, context) as wire:
        wire.call("CreateTable", {"TableName": "large", "BillingMode": "PAY_PER_REQUEST",
                                  "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                                  "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}]})
        item = {"pk": {"S": "a"}, "v": {"S": "x" * 390_000}}
        assert wire.call("PutItem", {"TableName": "large", "Item": item}).status == 200
        assert wire.call("GetItem", {"TableName": "large", "Key": {"pk": {"S": "a"}}}).json["Item"] == item


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
def test_old_versions_are_refused(server):
    context = ssl._create_unverified_context()
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        Connection(server.url, context)


def test_plain_http_on_the_tls_port_gets_nothing(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as plain:
        plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        try:
            assert b"200 OK" not in plain.recv(1000)
        except ConnectionResetError:
            pass
    with Connection(server.url) as wire:
        assert wire.request("GET", "/healthz").status == 200


def test_a_half_open_handshake_does_not_block_others(server, context):
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as idle:
        idle.sendall(b"\x16\x03\x01")
        with Connection(server.url, context) as wire:
            assert wire.call("ListTables", {}).status == 200


def test_a_certificate_without_its_key(certificate):
    result = run_quipu("serve", "--memory", "--port", "0", "--tls-cert", certificate[0])
    assert result.returncode == 2
    assert "--tls-cert and --tls-key go together" in result.stderr


@pytest.mark.parametrize("cert, key", [("missing.pem", None), (None, "missing.pem"), ("garbage", None)])
def test_files_that_are_none(certificate, tmp_path, cert, key):
    (tmp_path / "garbage").write_text("this is no certificate\n")
    cert = str(tmp_path / cert) if cert else certificate[0]
    key = str(tmp_path / key) if key else certificate[1]
    result = run_quipu("serve", "--memory", "--port", "0", "--tls-cert", cert, "--tls-key", key)
    assert result.returncode == 1
    assert result.stderr.startswith("quipu: ")
    assert str(tmp_path) in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.fixture(scope="module")
def rsa_server(tmp_path_factory):
    """With a key that the older ciphers could use."""
    folder = tmp_path_factory.mktemp("rsa")
    key, cert = str(folder / "key.pem"), str(folder / "cert.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert,
                    "-days", "2", "-subj", "/CN=localhost"], check=True, capture_output=True)
    with Quipu("--memory", "--tls-cert", cert, "--tls-key", key) as running:
        yield running


def tls_1_2(ciphers):
    context = ssl._create_unverified_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(ciphers)
    return context


@pytest.mark.parametrize("ciphers", ["AES256-GCM-SHA384", "AES128-SHA", "ECDHE-RSA-AES256-SHA384",
                                     "ECDHE-RSA-AES128-SHA", "DHE-RSA-AES128-GCM-SHA256"])
def test_ciphers_without_forward_secrecy_or_authentication_are_refused(rsa_server, ciphers):
    with pytest.raises((ssl.SSLError, ConnectionError)):
        Connection(rsa_server.url, tls_1_2(ciphers + ":@SECLEVEL=0"))


@pytest.mark.parametrize("ciphers", ["ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-AES128-GCM-SHA256",
                                     "ECDHE-RSA-CHACHA20-POLY1305"])
def test_good_ciphers_of_tls_1_2(rsa_server, ciphers):
    with Connection(rsa_server.url, tls_1_2(ciphers)) as wire:
        assert wire.call("ListTables", {}).status == 200
