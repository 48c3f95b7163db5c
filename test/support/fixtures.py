"""Fixtures of test/blackbox and test/attack: one server for all tests that only need a server, boto3 clients,
tables that vanish after their test. Both conftest.py import all of it.

QUIPU_TEST_ENDPOINT names a running server (any DynamoDB) to test instead of build/quipu.
"""
import itertools
import os
import signal

import boto3
import botocore.config
import pytest

from cli import end_started
from support import engines
from support.process import Missing, Quipu
from support.wire import Connection

TEST_SECONDS = 600  # far more than the longest takes: only what hangs is ended

numbers = itertools.count(1)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """A test that hangs fails where it stands, instead of taking the time of those behind it."""
    def end(_number, _frame):
        raise TimeoutError(f"{item.nodeid} did not end within {TEST_SECONDS} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(TEST_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def boto_client(url, key="local", secret="local", token=None, verify=None):
    config = botocore.config.Config(retries={"max_attempts": 0}, connect_timeout=60, read_timeout=180,
                                    parameter_validation=False)
    return boto3.client("dynamodb", endpoint_url=url, region_name="us-east-1", aws_access_key_id=key,
                        aws_secret_access_key=secret, aws_session_token=token, config=config, verify=verify)


def create_table(client, name, hash_type="S", range_type=None, **more):
    """A table with the hash key `pk` and, when range_type is given, the range key `sk`."""
    keys = [("pk", "HASH", hash_type)] + ([("sk", "RANGE", range_type)] if range_type else [])
    request = {
        "TableName": name,
        "AttributeDefinitions": [{"AttributeName": n, "AttributeType": t} for n, _, t in keys],
        "KeySchema": [{"AttributeName": n, "KeyType": k} for n, k, _ in keys],
        "BillingMode": "PAY_PER_REQUEST",
    }
    request.update(more)
    description = client.create_table(**request)["TableDescription"]
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 180})
    return description


@pytest.fixture(autouse=True)
def nothing_goes_on():
    """What a test has started ends with it, however it ends."""
    yield
    end_started()


@pytest.fixture(scope="session")
def endpoint():
    given = os.environ.get("QUIPU_TEST_ENDPOINT")
    if given:
        yield given
        return
    with Quipu() as server:
        yield server.url


@pytest.fixture(scope="session")
def client(endpoint):
    return boto_client(endpoint)


@pytest.fixture
def unused_name():
    return f"test-{os.getpid()}-{next(numbers)}"


@pytest.fixture
def make_table(client):
    """make_table(hash_type, range_type) creates a table and answers its name."""
    names = []

    def make(hash_type="S", range_type=None, **more):
        name = f"test-{os.getpid()}-{next(numbers)}"
        create_table(client, name, hash_type, range_type, **more)
        names.append(name)
        return name

    yield make
    for name in names:
        try:
            client.delete_table(TableName=name)
        except client.exceptions.ResourceNotFoundException:
            pass


@pytest.fixture
def table(make_table):
    """A table with a string hash key `pk`."""
    return make_table()


@pytest.fixture
def ranged(make_table):
    """A table with string keys `pk` and `sk`."""
    return make_table("S", "S")


@pytest.fixture
def wire(endpoint):
    with Connection(endpoint) as connection:
        yield connection


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """What the machine lacks is told in one line for each test, without the way to it."""
    report = (yield).get_result()
    if call.excinfo and call.excinfo.errisinstance(Missing):
        report.longrepr = f"{item.nodeid}: {call.excinfo.value}"
    engines.judge(item, report)


def pytest_report_header(config):
    return engines.header()  # also fixes the day, before the processes of a run begin


def pytest_terminal_summary(terminalreporter):
    """The line that script/test counts. A skipped test could not run, so it failed; except where the machine has
    nothing to test it with, which is said once for each reason."""
    stats = terminalreporter.stats
    reasons = [report.longrepr[2].removeprefix("Skipped: ") for report in stats.get("skipped", [])]
    lacking = [reason for reason in reasons if reason.startswith("this machine has no ")]
    count = {kind: len(stats.get(kind, [])) for kind in ("passed", "failed", "error", "skipped")}
    count["skipped"] -= len(lacking)
    terminalreporter.ensure_newline()
    for reason in sorted(set(lacking)):
        terminalreporter.write_line(f"{lacking.count(reason)} not run: {reason}")
    terminalreporter.write_line(engines.header())
    for why in sorted({report.wasxfail for report in stats.get("xfailed", [])}):
        reports = [report for report in stats["xfailed"] if report.wasxfail == why]
        terminalreporter.write_line(f"{len(reports)} refused as expected: {why}")
    again = run_again(stats, count) if os.environ.get("AGAIN_LIST") else 0
    terminalreporter.write_line(f"{count.pop('passed')} passed, {sum(count.values()) - again} failed")


AGAIN_MOST = 3  # more failures than these are no accident


def run_again(stats, count):
    """Lists the few tests that failed, for script/test to run them once more, alone, and answers how often they did.
    Nothing is run again where tests could not be found or could not run."""
    reports = stats.get("failed", []) + stats.get("error", [])
    failed = sorted({report.nodeid for report in reports})
    if count["skipped"] or not 0 < len(failed) <= AGAIN_MOST or not all("::" in name for name in failed):
        return 0
    with open(os.environ["AGAIN_LIST"], "w") as listed:
        listed.writelines(name + "\n" for name in failed)
    return len(reports)
