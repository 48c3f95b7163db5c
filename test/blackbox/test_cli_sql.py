"""quipu sql: statements on the command line, from standard input, and typed at a terminal."""
import json
import os

import pytest
from cli import items, on_terminal, output, quipu
from support.fixtures import boto_client
from support.process import Quipu
from support.wire import Connection


@pytest.fixture(scope="module", params=["folder", "server"])
def on(request, tmp_path_factory):
    if request.param == "folder":
        yield tmp_path_factory.mktemp("sql") / "data"
        return
    with Quipu("--memory") as server:
        yield server.url


@pytest.fixture
def filled(on, unused_name):
    music = unused_name
    output("table", "create", music, "Artist:S", "Song:S", "--index", "by-year:Year:N", on=on)
    for artist, song, year in (("Nina Simone", "Sinnerman", 1965), ("Nina Simone", "Feeling Good", 1965),
                               ("Odetta", "Gallows", 1956)):
        output("sql", f"INSERT INTO \"{music}\" VALUE {{'Artist': ?, 'Song': ?, 'Year': ?}}", artist, song, str(year),
               on=on)
    return music


def test_a_statement(on, filled):
    assert items("sql", f"SELECT Song FROM \"{filled}\" WHERE Artist = 'Odetta';", on=on) == [{"Song": "Gallows"}]
    assert len(items("sql", f'SELECT * FROM "{filled}"', on=on)) == 3
    assert len(items("sql", f'SELECT * FROM "{filled}"', "--limit", "2", on=on)) == 2
    by_year = f'SELECT Song FROM "{filled}"."by-year" WHERE "Year" = ?'
    assert items("sql", by_year, "1956", on=on) == [{"Song": "Gallows"}]
    where = "WHERE Artist = 'Odetta' AND Song = ?"
    assert output("sql", f'UPDATE "{filled}" SET plays = 7 {where}', "Gallows", on=on) == ""
    assert items("sql", f'DELETE FROM "{filled}" {where} RETURNING ALL OLD *', "Gallows", on=on) == [
        {"Artist": "Odetta", "Song": "Gallows", "Year": 1956, "plays": 7}]


def test_explain_does_nothing(on, filled):
    by_key = f"SELECT * FROM \"{filled}\" WHERE Artist = 'a' AND Song = 'b'"
    assert "key read" in output("sql", by_key, "--explain", on=on)
    assert "query" in output("sql", f"EXPLAIN SELECT * FROM \"{filled}\" WHERE Artist = 'a'", on=on)
    by_year = f'SELECT * FROM "{filled}"."by-year" WHERE "Year" = ?'
    assert "index by-year" in output("sql", by_year, "1965", "--explain", on=on)
    shown = output("sql", f"SELECT * FROM \"{filled}\" WHERE plays > 3", "--explain", on=on)
    assert "scan" in shown and "3 items" in shown and "about 2 read units" in shown
    assert "write unit" in output("sql", f"DELETE FROM \"{filled}\" WHERE Artist = 'Odetta' AND Song = 'Gallows'",
                                  "--explain", on=on)
    assert len(items("sql", f'SELECT * FROM "{filled}"', on=on)) == 3


@pytest.fixture(scope="module")
def served():
    """Tables on a server that tells what statements cost: on demand, and provisioned with a local index."""
    with Quipu("--memory") as server:
        client = boto_client(server.url)
        text = [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "g", "l")]
        keys = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
        few = {"ProjectionType": "KEYS_ONLY"}
        indexes = {
            "GlobalSecondaryIndexes": [{"IndexName": "gsi", "Projection": few,
                                        "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}]}],
            "LocalSecondaryIndexes": [{"IndexName": "lsi", "Projection": few,
                                       "KeySchema": [keys[0], {"AttributeName": "l", "KeyType": "RANGE"}]}]}
        client.create_table(TableName="ttt", AttributeDefinitions=text, KeySchema=keys, BillingMode="PAY_PER_REQUEST",
                            **indexes)
        client.create_table(TableName="paid", AttributeDefinitions=text[:2], KeySchema=keys,
                            ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 1})
        for name in ("ttt", "paid"):
            for sk in "123":
                client.put_item(TableName=name, Item={key: {"S": value} for key, value in [
                    ("pk", "a"), ("sk", sk), ("g", "g1"), ("l", sk), ("n", "x")]})
        with Connection(server.url) as connection:
            reply = connection.call("CreateTable", {
                "TableName": "vec1", "AttributeDefinitions": text[:1], "KeySchema": keys[:1],
                "BillingMode": "PAY_PER_REQUEST",
                "VectorIndexes": [{"IndexName": "sch", "VectorAttribute": {"AttributeName": "v"}, "Dimensions": 2,
                                   "DistanceFunction": "COSINE", "Projection": {"ProjectionType": "ALL"}}]})
        assert reply.status == 200, reply.message
        yield server


@pytest.mark.parametrize("statement, words, eventual, consistent", [
    ("SELECT * FROM ttt", "about {} read units", "2", "4"),
    ("SELECT * FROM paid", "about {}", "half a read unit", "1 read unit"),
    ("SELECT * FROM ttt.lsi", "about {}", "half a read unit", "1 read unit")])
def test_explain_tells_what_is_charged(served, statement, words, eventual, consistent):
    for units, flags in ((eventual, []), (consistent, ["--consistent"])):
        assert words.format(units) in output("sql", statement, "--explain", *flags, on=served.url)
        number = {"half a read unit": 0.5, "1 read unit": 1}.get(units) or float(units)
        reply = boto_client(served.url).execute_statement(Statement=statement, ConsistentRead=bool(flags),
                                                  ReturnConsumedCapacity="TOTAL")
        assert reply["ConsumedCapacity"]["CapacityUnits"] == number


def test_explain_tells_what_a_local_index_fetches(served):
    statement = "SELECT n FROM ttt.lsi WHERE pk = 'a'"
    shown = output("sql", statement, "--explain", on=served.url).splitlines()
    assert shown[2:] == ["the index lacks n: each of these items is fetched from the table, which costs half a read "
                         "unit more for each 4 kB of it"]
    reply = boto_client(served.url).execute_statement(Statement=statement, ReturnConsumedCapacity="INDEXES")
    assert reply["ConsumedCapacity"]["Table"]["CapacityUnits"] == 1.5  # three items
    assert "lacks" not in output("sql", "SELECT l FROM ttt.lsi WHERE pk = 'a'", "--explain", on=served.url)


@pytest.mark.parametrize("statement, flags", [
    ("UPDATE ttt SET n = 1", []),
    ("UPDATE ttt SET sk = '1' WHERE pk = 'a' AND sk = '1'", []),
    ("DELETE FROM ttt WHERE pk = 'a'", []),
    ("DELETE FROM ttt WHERE pk = 'a' AND sk = 1", []),
    ("INSERT INTO ttt VALUE {'pk': 'a'}", []),
    ("SELECT n FROM ttt.gsi", []),
    ("SELECT g FROM ttt.gsi WHERE g = 'g1' AND n = 'x'", []),
    ("SELECT * FROM ttt.gsi", ["--consistent"]),
    ("SELECT * FROM ttt WHERE pk = 1", [])])
def test_what_a_server_refuses_is_not_explained(served, statement, flags):
    ran = quipu("sql", statement, *flags, on=served.url)
    explained = quipu("sql", statement, "--explain", *flags, on=served.url)
    assert (explained.returncode, explained.stdout) == (1, "") == (ran.returncode, ran.stdout)
    assert explained.stderr == ran.stderr


def test_a_vector_index_is_not_explained(served):
    result = quipu("sql", "SELECT id FROM vec1.sch", "--explain", on=served.url)
    assert (result.returncode, result.stdout, result.stderr) == (
        1, "", "quipu: the index 'sch' of the table 'vec1' is a vector index, which only SearchVectors reads\n")


def test_from_standard_input(on, filled):
    text = (f"SELECT Song FROM \"{filled}\" WHERE Artist = 'Odetta';\n\n"
            f"INSERT INTO \"{filled}\" VALUE {{'Artist': 'a;b', 'Song': 'it''s; \"so\"'}};\n"
            f"SELECT Song FROM \"{filled}\" WHERE Artist = 'a;b'")
    result = quipu("sql", on=on, stdin=text)
    assert (result.returncode, result.stderr) == (0, "")
    songs = [json.loads(line)["Song"] for line in result.stdout.splitlines()]
    assert songs == ["Gallows", "it's; \"so\""]
    broken = quipu("sql", on=on, stdin=f"SELEC;\nSELECT * FROM \"{filled}\";")
    assert (broken.returncode, broken.stdout) == (1, "") and broken.stderr.startswith("quipu: ")
    broken = quipu("sql", on=on, stdin=f"SELECT Song FROM \"{filled}\" WHERE Artist = 'Odetta';\n;\n\nSELEC\n;\n"
                                       f"SELECT * FROM \"{filled}\"")
    assert (broken.returncode, broken.stdout) == (1, '{"Song":"Gallows"}\n')
    assert broken.stderr.splitlines()[-1] == "quipu: statement 2, on line 4, failed; none behind it was run"


@pytest.mark.parametrize("arguments, status, words", [
    ([""], 2, "empty"), (["SELECT 1; SELECT 2"], 2, "more than one statement"),
    (["SELECT * FROM \"nobody-has-this\""], 1, "nobody-has-this"), (["SELEC"], 1, "")])
def test_what_is_refused(on, filled, arguments, status, words):
    result = quipu("sql", *arguments, on=on)
    assert (result.returncode, result.stdout) == (status, "")
    assert words in result.stderr and result.stderr.startswith("quipu: ")


def test_at_a_terminal(on, filled, tmp_path):
    output("table", "create", f"only-{filled}", "pk:S", on=on)
    output("sql", f"INSERT INTO \"only-{filled}\" VALUE {{'pk': 'Odetta', 'Song': 'Gallows'}}", on=on)
    typed = [("quipu> \x1b[K", f"SELECT Song FROM \"only-\t\x7f\" WHERE\r"),  # completed, without its space
             ("...> \x1b[K", "pk = 'Odettx\x7fa';\r"),  # over two lines, with a letter taken back
             ("quipu> \x1b[K", "\x1b[A\x01x\x05\x15.tables\r"),  # a line of the history, given up
             ("quipu> \x1b[K", "SELECT * FROM nonsense WHERE\r"),
             ("...> \x1b[K", "nothing\x03"),  # Ctrl-C: the statement is forgotten
             ("quipu> \x1b[K", f".describe {filled}\r"),
             ("quipu> \x1b[K", "\x04")]
    status, shown = on_terminal("sql", on=on, typed=typed, columns=120, env={"HOME": str(tmp_path)})
    assert status == 0, shown
    assert "Gallows" in shown and f"\n{filled}\n" in shown
    assert 'index "by-year": Year (N, hash)' in shown
    history = (tmp_path / ".quipu_sql_history").read_text().splitlines()
    assert history == [f'SELECT Song FROM "only-{filled}" WHERE', "pk = 'Odetta';", ".tables",
                       "SELECT * FROM nonsense WHERE", f".describe {filled}"]
    assert os.stat(tmp_path / ".quipu_sql_history").st_mode & 0o777 == 0o600
