"""quipu tail, dump and load."""
import itertools
import json
import os
import signal
import subprocess
import threading
import time
import urllib.request

import pytest
from cli import TIMEOUT, items, output, quipu, start
from conftest import boto_client, create_table
from lambdas import eventually
from support.process import BINARY, Quipu, clean_environment, run_quipu
from values import B, N, S, SS

STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


@pytest.fixture(scope="module")
def server():
    with Quipu("--memory", "--test-hooks") as running:
        yield running


@pytest.fixture(scope="module")
def hooked(server):
    return boto_client(server.url)


def throttle(server, operation, count):
    rule = {"operation": operation, "error": "ProvisionedThroughputExceededException", "count": count}
    urllib.request.urlopen(server.url + "/_quipu/rules", json.dumps(rule).encode()).close()


# ---- tail ----

def change(client, table):
    client.put_item(TableName=table, Item={"pk": S("a"), "n": N(1)})
    client.update_item(TableName=table, Key={"pk": S("a")}, UpdateExpression="SET n = :n REMOVE m",
                       ExpressionAttributeValues={":n": N(2)})
    client.delete_item(TableName=table, Key={"pk": S("a")})


def test_tail_follows_from_now(server, hooked, unused_name):
    create_table(hooked, unused_name, StreamSpecification=STREAM)
    hooked.put_item(TableName=unused_name, Item={"pk": S("before")})
    process = start("tail", unused_name, on=server.url)
    try:
        follows, lines = threading.Event(), []

        def read():
            for line in process.stdout:
                lines.append(json.loads(line))
                follows.set()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        probes = itertools.count()  # each another: a put that changes nothing is no change
        while not follows.wait(0.1):  # nobody says when it has begun to follow
            hooked.put_item(TableName=unused_name, Item={"pk": S("probe"), "n": N(next(probes))})
        change(hooked, unused_name)
        eventually(lambda: lines[-1]["event"] == "REMOVE", "the last change is shown")
        process.send_signal(signal.SIGINT)
        assert (process.wait(120), process.stderr.read()) == (0, "")
        reader.join()
    finally:
        process.kill()
    assert not [line for line in lines if line["keys"]["pk"] == "before"]
    lines = [line for line in lines if line["keys"]["pk"] == "a"]
    assert [line["event"] for line in lines] == ["INSERT", "MODIFY", "REMOVE"]
    assert lines[0]["new"] == {"pk": "a", "n": 1} and "old" not in lines[0]
    assert lines[1]["keys"] == {"pk": "a"} and lines[1]["old"]["n"] == 1 and lines[1]["new"]["n"] == 2
    assert lines[2]["old"] == {"pk": "a", "n": 2} and "new" not in lines[2]
    assert len({line["sequence"] for line in lines}) == 3
    assert all(abs(line["time"] - time.time()) < 600 for line in lines)


def test_tail_from_the_start(server, hooked, unused_name):
    create_table(hooked, unused_name, StreamSpecification=STREAM)
    change(hooked, unused_name)
    assert [line["event"] for line in items("tail", unused_name, "--from", "start", "--no-follow", on=server.url)] == [
        "INSERT", "MODIFY", "REMOVE"]
    words = output("tail", unused_name, "--from", "start", "--limit", "3", "--table", on=server.url).splitlines()
    assert [line[9:] for line in words] == ["INSERT  pk=a  n=1", "MODIFY  pk=a  n: 1 -> 2", "REMOVE  pk=a  n=2"]
    records = items("tail", unused_name, "--from", "start", "--limit", "1", "--dynamodb-json", on=server.url)
    assert records[0]["eventName"] == "INSERT" and records[0]["dynamodb"]["NewImage"] == {"pk": S("a"), "n": N(1)}


def test_tail_ends_with_ctrl_c(server, hooked, unused_name):
    create_table(hooked, unused_name, StreamSpecification=STREAM)
    process = start("tail", unused_name, "--from", "start", on=server.url)
    hooked.put_item(TableName=unused_name, Item={"pk": S("a")})
    assert json.loads(process.stdout.readline())["event"] == "INSERT"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=120) == ("", "")
    assert process.returncode == 0


def test_tail_of_an_expired_item(server, hooked, unused_name):
    create_table(hooked, unused_name, StreamSpecification=STREAM)
    output("table", "set", unused_name, "--ttl", "expires", on=server.url)
    hooked.put_item(TableName=unused_name, Item={"pk": S("a"), "expires": N(int(time.time()) - 10)})
    lines = items("tail", unused_name, "--from", "start", "--limit", "2", on=server.url)
    assert lines[1]["event"] == "REMOVE" and lines[1]["expired"] is True


def test_tail_of_a_table_without_a_stream(server, hooked, unused_name):
    create_table(hooked, unused_name)
    result = quipu("tail", unused_name, on=server.url)
    assert (result.returncode, result.stdout) == (1, "")
    assert f"'quipu table set {unused_name} --stream new-and-old' gives it one" in result.stderr
    assert quipu("tail", unused_name, "--from", "yesterday", on=server.url).returncode == 2


# ---- dump and load ----

def make_example(client, name, count=300):
    """A table with everything that a definition can have."""
    create_table(
        client, name, "S", "N", StreamSpecification=STREAM,
        AttributeDefinitions=[{"AttributeName": n, "AttributeType": t} for n, t in
                              (("pk", "S"), ("sk", "N"), ("year", "N"), ("other", "B"))],
        GlobalSecondaryIndexes=[{"IndexName": "by-year", "KeySchema": [{"AttributeName": "year", "KeyType": "HASH"}],
                                 "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["tags"]}}],
        LocalSecondaryIndexes=[{"IndexName": "by-other",
                                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"},
                                              {"AttributeName": "other", "KeyType": "RANGE"}],
                                "Projection": {"ProjectionType": "KEYS_ONLY"}}],
        Tags=[{"Key": "team", "Value": "music"}])
    client.update_time_to_live(TableName=name,
                               TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires"})
    for n in range(count):
        client.put_item(TableName=name, Item={"pk": S(f"p{n % 7}"), "sk": N(n), "year": N(1900 + n % 3),
                                              "other": B(bytes([n % 256])), "tags": SS("a", f"t{n}"),
                                              "text": S("äöü" * (n % 50))})


def in_order(node):
    """JSON in which only the order of an object's members, of sets and of definitions' lists is settled."""
    if isinstance(node, dict):
        return {name: in_order(node[name]) for name in sorted(node)}
    if isinstance(node, list):
        return sorted(map(in_order, node), key=json.dumps)
    return node


def everything(place, *tables):
    """A dump as definitions and items, each in an order that does not depend on the place."""
    lines = [in_order(json.loads(line)) for line in output("dump", *tables, on=place).splitlines()]
    return ([line for line in lines if "Table" in line],
            sorted((line for line in lines if "Item" in line), key=json.dumps))


def test_a_dump_loaded_elsewhere_is_the_same(server, hooked, unused_name, tmp_path):
    make_example(hooked, unused_name)
    text = output("dump", unused_name, "--segments", "3", on=server.url)
    begin, first, *rest, end = [json.loads(line) for line in text.splitlines()]
    assert (begin, end) == ({"DumpBegin": {"Version": 1}}, {"DumpEnd": {"Tables": 1, "Items": 300}})
    assert first["Table"]["TableName"] == unused_name and first["Table"]["Tags"] == [{"Key": "team", "Value": "music"}]
    assert first["Table"]["TimeToLiveSpecification"] == {"Enabled": True, "AttributeName": "expires"}
    assert len(rest) == 300 and all(list(line) == ["Item"] for line in rest)
    file = tmp_path / "dump.jsonl"
    file.write_text(text)
    result = quipu("load", str(file), on=tmp_path / "data")
    assert (result.returncode, result.stdout) == (0, "") and "300 items written" in result.stderr
    assert everything(tmp_path / "data") == everything(server.url, unused_name)
    assert output("query", unused_name, "1901", "--index", "by-year", "--count", on=tmp_path / "data") == "100\n"
    assert quipu("load", str(file), on=tmp_path / "data").returncode == 0  # again, over what is there
    assert everything(tmp_path / "data") == everything(server.url, unused_name)


def test_parts_of_a_dump(server, hooked, unused_name):
    make_example(hooked, unused_name, 3)
    assert len(output("dump", unused_name, "--no-items", on=server.url).splitlines()) == 1
    assert len(output("dump", unused_name, "--no-definition", on=server.url).splitlines()) == 3
    assert unused_name in output("dump", "--no-items", on=server.url)


def test_a_dump_of_nothing(tmp_path):
    output("table", "create", "Gone", "pk:S", on=tmp_path / "data")
    output("table", "drop", "Gone", "--yes", on=tmp_path / "data")
    text = output("dump", on=tmp_path / "data")
    assert text == '{"DumpBegin":{"Version":1}}\n{"DumpEnd":{"Tables":0,"Items":0}}\n'
    assert quipu("load", on=tmp_path / "copy", stdin=text).returncode == 0


CUT_OFF = 'the dump that begins here was cut off: it has no last line {"DumpEnd":...}'


def test_a_dump_that_was_cut_off(server, hooked, unused_name, tmp_path):
    make_example(hooked, unused_name, 5)
    text = output("dump", unused_name, on=server.url)
    lines = text.splitlines(keepends=True)
    file = tmp_path / "cut.jsonl"
    for kept, written in ((1, 0), (2, 0), (4, 2), (7, 5)):
        file.write_text("".join(lines[:kept]))
        result = quipu("load", str(file), on=tmp_path / "data")
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr == (f"quipu: {file}, line 1: {CUT_OFF}\n"
                                 f"load: not finished; {written} item{'' if written == 1 else 's'} written\n")
    file.write_text(text[:text.index("DumpEnd") + 3])  # within a line
    result = quipu("load", str(file), on=tmp_path / "data")
    assert result.returncode == 1 and "line 8: the value that begins here has no end" in result.stderr
    assert CUT_OFF in result.stderr and "5 items written" in result.stderr
    assert quipu("load", on=tmp_path / "data", stdin=text.rstrip("\n")).returncode == 0  # all but the last byte


def test_dumps_one_behind_the_other_and_in_parts(server, hooked, unused_name, tmp_path):
    make_example(hooked, unused_name, 5)
    text = output("dump", unused_name, on=server.url)
    lines = text.splitlines(keepends=True)
    more = '{"Item":{"pk":{"S":"p"},"sk":{"N":"1000"}}}\n'
    assert quipu("load", on=tmp_path / "data", stdin=text + text + more).returncode == 0
    assert output("scan", unused_name, "--count", on=tmp_path / "data") == "6\n"
    for number, part in enumerate((lines[:3], lines[3:6], lines[6:])):
        (tmp_path / f"part{number}").write_text("".join(part))
    parts = [str(tmp_path / f"part{number}") for number in range(3)]
    assert quipu("load", *parts, on=tmp_path / "data").returncode == 0
    result = quipu("load", *parts[:2], parts[0], on=tmp_path / "data")
    assert result.returncode == 1 and f"{parts[0]}, line 1: {CUT_OFF}" in result.stderr


@pytest.mark.parametrize("change, sentence", [
    (lambda lines: lines[1:], 'line 7: a dump ends here whose first line, {"DumpBegin":...}, is missing'),
    (lambda lines: lines[:4] + lines[5:],
     "line 7: the dump that ends here had 1 table and 5 items, and 1 and 4 of them came"),
    (lambda lines: lines[:2] + lines[1:],
     "line 9: the dump that ends here had 1 table and 5 items, and 2 and 5 of them came"),
    (lambda lines: [lines[0].replace("1", "2"), *lines[1:]],
     "line 1: a dump of another version: a newer 'quipu load' may read it"),
], ids=["head", "item", "table", "version"])
def test_a_dump_with_other_lines(server, hooked, unused_name, tmp_path, change, sentence):
    make_example(hooked, unused_name, 5)
    lines = output("dump", unused_name, on=server.url).splitlines(keepends=True)
    result = quipu("load", on=tmp_path / "data", stdin="".join(change(lines)))
    assert result.returncode == 1 and f"standard input, {sentence}" in result.stderr


def test_lines_by_hand_need_no_end(server, hooked, unused_name, tmp_path):
    """As dumps were before they had one."""
    make_example(hooked, unused_name, 5)
    lines = output("dump", unused_name, on=server.url).splitlines(keepends=True)[1:-1]
    assert quipu("load", on=tmp_path / "data", stdin="".join(lines)).returncode == 0
    assert everything(tmp_path / "data") == everything(server.url, unused_name)


def test_a_dump_to_a_full_disk(server, hooked, unused_name):
    make_example(hooked, unused_name, 5)
    with open("/dev/full", "w") as full:
        result = subprocess.run([BINARY, "dump", unused_name, "--on", server.url], env=clean_environment({}),
                                stdout=full, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT)
    assert result.returncode == 1
    assert result.stderr == "quipu: standard output takes no more: No space left on device\n"


def test_load_under_another_name(server, hooked, unused_name, tmp_path):
    make_example(hooked, unused_name, 20)
    text = output("dump", unused_name, on=server.url)
    assert quipu("load", "--table", "Other", on=tmp_path / "data", stdin=text).returncode == 0
    assert output("table", "ls", on=tmp_path / "data") == "Other\n"
    assert output("scan", "Other", "--count", on=tmp_path / "data") == "20\n"


def test_load_of_an_export_without_a_definition(server, hooked, unused_name):
    create_table(hooked, unused_name)
    lines = "".join(json.dumps({"Item": {"pk": S(str(n))}}) + "\n" for n in range(100))
    assert quipu("load", "--table", unused_name, on=server.url, stdin=lines).returncode == 0
    assert output("scan", unused_name, "--count", on=server.url) == "100\n"
    result = quipu("load", on=server.url, stdin=lines)
    assert result.returncode == 1 and "no table is named yet: say --table NAME" in result.stderr


def test_load_of_plain_items(server, hooked, unused_name):
    create_table(hooked, unused_name)
    assert quipu("load", "--plain", "--table", unused_name, on=server.url,
                 stdin='{"pk":"a","tags":{"$set":["x"]}}\n{"pk":"Item"}\n').returncode == 0
    assert items("get", unused_name, "a", on=server.url) == [{"pk": "a", "tags": {"$set": ["x"]}}]
    assert quipu("load", "--plain", on=server.url, stdin="").returncode == 2


def test_the_last_item_with_a_key_wins(server, hooked, unused_name):
    create_table(hooked, unused_name, "N")
    numbers = ["1", "1.0", "10e-1", "0.1E1"]
    lines = "".join(json.dumps({"Item": {"pk": {"N": numbers[n % 4]}, "n": N(n)}}) + "\n" for n in range(1000))
    assert quipu("load", "--table", unused_name, on=server.url, stdin=lines).returncode == 0
    assert items("scan", unused_name, on=server.url) == [{"pk": 1, "n": 999}]


@pytest.mark.parametrize("text, sentence", [
    ('{"Item":{"pk":{"S":"a"}}}\n{"Item":', "standard input, line 2: the value that begins here has no end"),
    ('{"pk":"a"}',
     'line 1: this is neither {"Table":...} nor {"Item":...}; for plain JSON say --plain'),
    ('{"Item":{"pk":{"N":"1"}}}', "standard input, line 1: this has no key of the table"),
    ('\n\n{"Item":{"other":{"S":"1"}}}', "standard input, line 3: this has no key of the table"),
    ("nonsense", "standard input, line 1: "),
    ('{"Item":{"pk":{"S":"a"},"bad":{"N":"x"}}}', "The parameter cannot be converted to a numeric value: x"),
    ('{"Item":{"pk":{"S":"a"}}}\n{"Item":{"pk":{"S":"b"},"bad":{"N":"x"}}}\n',
     'standard input, line 2: refused: {"PutRequest":{"Item":{"pk":{"S":"b"}'),
    ('{"Item":{"pk":{"S":"a"}}}\n{"Item":{"pk":{"S":"b"},"bad":[]}}\n', "standard input, line 2: refused: "),
])
def test_load_of_what_cannot_be(server, hooked, unused_name, text, sentence):
    create_table(hooked, unused_name)
    result = quipu("load", "--table", unused_name, on=server.url, stdin=text)
    assert (result.returncode, result.stdout) == (1, "") and sentence in result.stderr


def test_a_line_without_end_is_not_read_to_its_end(server, hooked, unused_name, tmp_path):
    """A gigabyte that is no line of a dump: what was read of it is where the open file stands."""
    create_table(hooked, unused_name)
    path = tmp_path / "hostile.jsonl"
    path.write_text('{"Item":{"pk":{"S":"first"}}}\n{"Item":{"pk":{"S":"')
    os.truncate(path, 1 << 30)
    sentence = "line 2: this value is longer than 32 MB, which no item needs"
    with open(path) as file:
        result = run_quipu("load", "--table", unused_name, "--on", server.url, stdin=file)
        assert os.lseek(file.fileno(), 0, os.SEEK_CUR) < 34 << 20
    assert result.returncode == 1 and f"standard input, {sentence}" in result.stderr
    assert result.stderr.endswith("load: not finished; 1 item written\n")
    for plain in ([], ["--plain"]):
        result = quipu("load", "--table", unused_name, *plain, str(path), on=server.url)
        assert result.returncode == 1
        assert plain or f"{path}, {sentence}" in result.stderr
    with open(path) as file:
        result = run_quipu("put", unused_name, "--on", server.url, stdin=file)
    assert result.returncode == 1


def test_a_line_of_more_values_than_an_item_can_hold(server, hooked, unused_name):
    create_table(hooked, unused_name)
    text = '{"Item":{"pk":{"S":"a"},"list":{"L":[' + "[]," * (1 << 20) + "1]}}}"
    result = quipu("load", "--table", unused_name, on=server.url, stdin=text)
    sentence = "standard input, line 1: this has more than 1048576 values, which no item can hold"
    assert result.returncode == 1 and sentence in result.stderr
    most = '{"Item":{"pk":{"S":"a"},"list":{"L":[' + ",".join(['{"S":""}'] * 409000) + "]}}}"
    assert quipu("load", "--table", unused_name, on=server.url, stdin=most).returncode == 0


def test_the_longest_text_of_an_item_is_loaded(unused_name, tmp_path):
    """An item of nearly 400 KB that takes 19 MB when its numbers are written out."""
    numbers = ",".join(['{"N":"1E-130"}'] * 136000)
    output("table", "create", unused_name, "pk:S", on=tmp_path / "data")
    output("load", "--table", unused_name, on=tmp_path / "data",
           stdin=f'{{"Item":{{"pk":{{"S":"a"}},"list":{{"L":[{numbers}]}}}}}}\n')
    text = output("dump", unused_name, on=tmp_path / "data")
    assert len(text) > 18 << 20
    output("load", on=tmp_path / "copy", stdin=text)
    assert output("dump", unused_name, on=tmp_path / "copy") == text


def test_a_file_that_cannot_be_read(server, unused_name, tmp_path):
    result = quipu("load", "--table", unused_name, str(tmp_path), on=server.url)
    assert result.returncode == 1 and f"{tmp_path} is no export" in result.stderr


def test_load_refuses_other_keys(server, hooked, unused_name, tmp_path):
    create_table(hooked, unused_name)
    text = output("dump", unused_name, on=server.url)
    output("table", "create", unused_name, "other:S", on=tmp_path / "data")
    result = quipu("load", on=tmp_path / "data", stdin=text)
    assert result.returncode == 1 and "its keys are others" in result.stderr


def test_load_brings_a_table_up_to_its_definition(server, hooked, unused_name, tmp_path):
    make_example(hooked, unused_name, 30)
    text = output("dump", unused_name, on=server.url)
    output("table", "create", unused_name, "pk:S", "sk:N", "--local-index", "by-other:other:B=keys",
           on=tmp_path / "data")
    assert quipu("load", on=tmp_path / "data", stdin=text).returncode == 0
    assert everything(tmp_path / "data") == everything(server.url, unused_name)


def test_throttling_only_makes_it_slower(server, hooked, unused_name):
    """More of it than the library's own attempts bear, since it strikes whoever comes next."""
    make_example(hooked, unused_name, 60)
    text = output("dump", unused_name, on=server.url)
    hooked.delete_table(TableName=unused_name)
    throttle(server, "BatchWriteItem", 20)
    assert quipu("load", on=server.url, stdin=text).returncode == 0
    throttle(server, "Scan", 11)
    assert output("dump", unused_name, "--segments", "1", on=server.url).count("\n") == 63
