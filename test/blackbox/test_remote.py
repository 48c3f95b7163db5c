"""The remote door from outside, through the installed library: TLS, signatures, restarts, many callers."""
import itertools
import json
import signal
import subprocess
import threading
import time
import urllib.request

import pytest
from lambdas import eventually
from support.library import LATEST, NONE, OLDEST, CallError, Library, install
from support.process import DynamoLocal, Quipu, free_port

numbers = itertools.count(1)


class Table:
    """A table with a stream and a name of its own, and requests to it."""

    def __init__(self, database):
        self.name = f"visits-{next(numbers)}"
        self.count = {"TableName": self.name, "Key": {"pk": {"S": "a"}}, "UpdateExpression": "ADD n :1",
                      "ExpressionAttributeValues": {":1": {"N": "1"}}}
        database.call("CreateTable", {
            "TableName": self.name, "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}})
        while database.call("DescribeTable", {"TableName": self.name})["Table"]["TableStatus"] != "ACTIVE":
            time.sleep(0.05)

    def counted(self, database):
        return int(database.call("GetItem", {"TableName": self.name, "Key": {"pk": {"S": "a"}}})["Item"]["n"]["N"])


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prefix")
    install(str(folder))
    return Library(str(folder / "lib" / "libquipu.so"))


@pytest.fixture(scope="module", params=["quipu", "dynamodb local"])
def other(request):
    with Quipu("--memory") if request.param == "quipu" else DynamoLocal() as server:
        yield server.url


def test_calls_errors_pages(library, other):
    with library.open(other) as database:
        table = Table(database)
        for i in range(25):
            item = {"pk": {"S": f"key{i}"}, "text": {"S": "ä€\U0001f600"}}
            database.call("PutItem", {"TableName": table.name, "Item": item})
        items = list(database.pages("Scan", {"TableName": table.name, "Limit": 4}))
        assert sorted(item["pk"]["S"] for item in items) == sorted(f"key{i}" for i in range(25))
        assert {item["text"]["S"] for item in items} == {"ä€\U0001f600"}
        assert table.name in database.pages("ListTables", {"Limit": 1})
        with pytest.raises(CallError) as caught:
            database.call("PutItem", {"TableName": table.name, "Item": {"pk": {"S": "key1"}},
                                      "ConditionExpression": "attribute_not_exists(pk)"})
        assert (caught.value.status, caught.value.error) == (400, "ConditionalCheckFailedException")
        assert caught.value.message == "The conditional request failed"


def test_large_requests_and_replies(library, other):
    with library.open(other) as database:
        table = Table(database)
        for i in range(8):
            item = {"pk": {"S": f"key{i}"}, "v": {"S": "x" * 390_000}}
            database.call("PutItem", {"TableName": table.name, "Item": item})
        keys = [{"pk": {"S": f"key{i}"}} for i in range(8)]
        reply = database.call("BatchGetItem", {"RequestItems": {table.name: {"Keys": keys}}})
        assert sum(len(item["v"]["S"]) for item in reply["Responses"][table.name]) == 8 * 390_000


def test_a_stream(library, other):
    with library.open(other) as database:
        table = Table(database)
        with database.stream(table.name, OLDEST) as oldest, database.stream(table.name, LATEST) as latest:
            assert oldest.next(0) == NONE
            for _ in range(5):
                database.call("UpdateItem", table.count)
            for stream in (oldest, latest):
                values = [stream.next(5000)["dynamodb"]["NewImage"]["n"]["N"] for _ in range(5)]
                assert values == ["1", "2", "3", "4", "5"]
            assert latest.next(50) == NONE


def test_transactions(library, other):
    with library.open(other) as database:
        table = Table(database)
        database.call("TransactWriteItems", {"TransactItems": [{"Update": table.count}]})
        assert table.counted(database) == 1


def test_many_threads(library, other):
    with library.open(other, in_flight=8) as database:
        table = Table(database)
        threads = [threading.Thread(target=lambda: [database.call("UpdateItem", table.count) for _ in range(25)])
                   for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert table.counted(database) == 400


def test_tls(library, tmp_path):
    key, cert = str(tmp_path / "key.pem"), str(tmp_path / "cert.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True)
    with Quipu("--memory", "--tls-cert", cert, "--tls-key", key) as server:
        with library.open(server.url, ca_file=cert) as database:
            assert database.call("ListTables", {}) == {"TableNames": []}
        with library.open(server.url) as database, pytest.raises(CallError) as caught:
            database.call("ListTables", {})
        assert caught.value.error == "NoReplyException" and "certificate" in caught.value.message
        assert "(1 attempt)" in caught.value.message
        with library.open(server.url.replace("https", "http")) as database, pytest.raises(CallError) as caught:
            database.call("ListTables", {})
        assert caught.value.error in ("NoReplyException", "BadReplyException")


def test_signatures(library, tmp_path):
    keys = tmp_path / "keys"
    token = "IQoJb3JpZ2luX2VjE" + "+/aB9" * 150 + "=="
    keys.write_text("[me]\naws_access_key_id = AKIAME\naws_secret_access_key = wJalr/XU+tn=\n"
                    f"aws_session_token = {token}\n")
    with Quipu("--memory", "--credentials", str(keys)) as server:
        with library.open(server.url, access_key="AKIAME", secret_key="wJalr/XU+tn=", session_token=token) as database:
            table = Table(database)
            assert database.call("ListTables", {}) == {"TableNames": [table.name]}
            with database.stream(table.name, OLDEST) as stream:
                assert stream.next(0) == NONE
        with library.open(server.url, access_key="AKIAME", secret_key="wrong", session_token=token) as database:
            with pytest.raises(CallError) as caught:
                database.call("ListTables", {})
        assert caught.value.error == "InvalidSignatureException"


def test_nobody_is_there(library):
    with library.open(f"http://127.0.0.1:{free_port()}") as database, pytest.raises(CallError) as caught:
        database.call("ListTables", {})
    assert (caught.value.status, caught.value.error) == (0, "NoReplyException")
    assert "(3 attempts)" in caught.value.message  # who has never answered is not asked ten times


def test_a_server_that_is_killed_and_comes_back(library, tmp_path):
    """Whatever was answered is there; a call under way when it died is tried again, and may so be counted twice."""
    arguments = ("--data", str(tmp_path / "data"), "--port", str(free_port()))
    server, callers, kills = Quipu(*arguments), 4, 3
    try:
        with library.open(server.url, attempts=1000) as database:  # however long a start takes
            table, stop = Table(database), threading.Event()
            answered, failed = [], []

            def work():
                try:
                    while not stop.is_set():
                        database.call("UpdateItem", table.count)
                        answered.append(1)
                except CallError as error:
                    failed.append(error)

            threads = [threading.Thread(target=work) for _ in range(callers)]
            for thread in threads:
                thread.start()
            for _ in range(kills):
                before = len(answered)
                eventually(lambda: failed or len(answered) > before + callers, "they are at work")
                server.signal(signal.SIGKILL)
                server.wait()
                server.close()
                server = Quipu(*arguments)
            stop.set()
            for thread in threads:
                thread.join()
            assert not failed
            assert len(answered) <= table.counted(database) <= len(answered) + kills * callers
    finally:
        server.close()


def rule(server, body):
    request = urllib.request.Request(f"{server.url}/_quipu/rules", data=json.dumps(body).encode(), method="POST")
    assert urllib.request.urlopen(request, timeout=120).status == 200


@pytest.mark.parametrize("fault", ["ThrottlingException", "InternalServerError", "ServiceUnavailable"])
def test_what_passes_is_waited_out(library, fault):
    with Quipu("--memory", "--test-hooks") as server:
        with library.open(server.url) as database:
            table = Table(database)
            rule(server, {"operation": "UpdateItem", "error": fault, "count": 3})
            database.call("UpdateItem", table.count)
            assert table.counted(database) == 1
        with library.open(server.url, attempts=2) as database:
            rule(server, {"operation": "UpdateItem", "error": fault, "count": 3})
            with pytest.raises(CallError):
                database.call("UpdateItem", table.count)
            assert table.counted(database) == 1
