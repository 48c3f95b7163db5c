"""quipu cost: what the patterns cost, measured on the spot."""
import pytest
from cli import items, on_terminal, output, quipu
from conftest import boto_client
from support.process import Quipu


def measured(*arguments):
    [row] = items("cost", *arguments)
    return row["writeUnits"], row["readUnits"], row["calls"]


def test_one_call():
    made = ["--after", "POST /v1/counters/x"]
    assert measured("POST", "/v1/counters/x") == (3, 0, 3)  # the first one enters its name into the list of counters
    assert measured("POST", "/v1/counters/x", *made) == (1, 0, 1)
    assert measured("POST", "/v1/counters/x", '{"block": 100}', *made) == (1, 0, 1)
    assert measured("POST", "/v1/counters/x", "--header", "Idempotency-Key: a", *made) == (3, 1, 4)
    [row] = items("cost", "GET", "/v1/counters/x", "--after", "POST /v1/counters/x")
    assert row == {"request": "GET /v1/counters/x", "status": 200, "writeUnits": 0, "readUnits": 1, "calls": 1,
                   "dollarsPerMillion": 0.125}
    after = ["--after", 'PUT /v1/jobs/j {"total": 500}', "--after", 'POST /v1/jobs/j/done {"task": 0}']
    assert measured("POST", "/v1/jobs/j/done", '{"task": 1}', *after) == (1, 0, 1)
    after = ["--after", 'PUT /v1/documents/c/first {"text": "x"}']
    assert measured("PUT", "/v1/documents/c/d", '{"text": "%s"}' % ("x" * 3000), *after) == (3, 0, 1)


def test_a_call_that_is_refused_costs_too():
    result = quipu("cost", "POST", "/v1/leases/l", '{"owner": "b"}', "--after", 'POST /v1/leases/l {"owner": "a"}')
    assert result.returncode == 1 and '"status":409,"writeUnits":1,' in result.stdout and "held" in result.stderr
    assert quipu("cost", "POST", "/v1/jobs/j/done", '{"task": 1}').returncode == 1


@pytest.mark.parametrize("arguments", [
    ("huh",), ("job", "x"), ("GET", "/v1/nothing"), ("PUT", "/v1/jobs"), ("GET", "/v1/jobs", "--after", "x"),
    ("job", "--tasks", "10,0"), ("job", "--tasks", "10,,20"), ("job", "--layout", "heap"), ("--bytes", "0"),
    ("log", "--news", "0"), ("GET", "/v1/counters/c", "--header", "If-Match"),
    ("job", "--layout", "set", "--tasks", "100001")])
def test_nonsense_is_told(arguments):
    result = quipu("cost", *arguments)
    assert result.returncode == 2 and not result.stdout and result.stderr.startswith("quipu: ")


def test_a_job_costs_one_write_a_task():
    small, large = items("cost", "job", "--tasks", "1000,10000")
    assert small["tasks"] == 1000 and large["tasks"] == 10000 and small["measured"] and large["measured"]
    assert all(1 <= job["writeUnitsPerTask"] < 1.02 for job in (small, large))
    dollars = large["writeUnitsPerTask"] * 0.625 + large["readUnitsPerTask"] * 0.125
    assert large["dollars"] == pytest.approx(10000 * dollars / 1e6)


def test_a_set_costs_more_with_every_task():
    measured_one, reckoned, ten, hundred = items("cost", "job", "--layout", "set", "--tasks", "2000,2001,10000,100000")
    assert measured_one["measured"] and not reckoned["measured"]
    assert reckoned["writeUnitsPerTask"] == pytest.approx(measured_one["writeUnitsPerTask"], rel=0.02)
    assert reckoned["readUnitsPerTask"] == pytest.approx(measured_one["readUnitsPerTask"], rel=0.02, abs=0.001)
    assert 14 < ten["writeUnitsPerTask"] < 16 and 170 < hundred["writeUnitsPerTask"] < 190


def test_news_are_found_whatever_the_number_of_partitions():
    few = items("cost", "log", "--partitions", "100", "--news", "10")[0]
    many = items("cost", "log", "--partitions", "10000", "--news", "10")[0]
    assert many["calls"] <= 40 and many["readUnits"] <= 40 and abs(many["calls"] - few["calls"]) <= 6


def test_people_get_a_table():
    shown = output("cost", "--table").splitlines()
    assert shown[0].split() == ["Pattern", "Operation", "Write", "units", "Read", "units", "Calls", "$", "a", "million"]
    assert shown[2].split() == ["counter", "next", "1", "0", "1", "0.625"]
    status, shown = on_terminal("cost", "POST", "/v1/counters/x", columns=120)
    assert status == 0 and "Write units" in shown and "us-east-1" in shown


def test_elsewhere_it_leaves_nothing_behind():
    with Quipu("--memory") as server:
        client = boto_client(server.url)
        client.create_table(TableName="quipu-cost", KeySchema=[{"AttributeName": "a", "KeyType": "HASH"}],
                            AttributeDefinitions=[{"AttributeName": "a", "AttributeType": "S"}],
                            BillingMode="PAY_PER_REQUEST")
        assert items("cost", "--on", server.url) == items("cost")
        assert client.list_tables()["TableNames"] == ["quipu-cost"]
    result = quipu("cost", "--on", "somewhere")
    assert result.returncode == 1 and "URL" in result.stderr


def test_larger_things_cost_more():
    small, large = ({(row["pattern"], row["operation"]): row for row in items("cost", "--bytes", size)}
                    for size in ("100", "2500"))
    put, append = ("document", "write a new one"), ("log", "append")
    assert (small[put]["writeUnits"], large[put]["writeUnits"]) == (1, 3)
    assert (small[append]["writeUnits"], large[append]["writeUnits"]) == (1, 3)
