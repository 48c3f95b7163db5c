"""The commands on tables and items, against a server and against a folder."""
import base64
import json
import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest
from cli import items, on_terminal, output, quipu
from conftest import boto_client
from support.process import BINARY, ROOT, Quipu, clean_environment, run_quipu
from values import N, S

NINA = {"Artist": "Nina Simone", "Song": "Sinnerman", "Year": 1965}


@pytest.fixture(scope="module", params=["server", "folder"])
def place(request, tmp_path_factory):
    if request.param == "folder":
        yield tmp_path_factory.mktemp("cli") / "data"
        return
    with Quipu("--memory") as server:
        yield server.url


@pytest.fixture
def music(place, unused_name):
    output("table", "create", unused_name, "Artist:S", "Song:S", "--index", "by-year:Year:N,Song:S", on=place)
    yield unused_name
    quipu("table", "drop", unused_name, "--yes", on=place)


@pytest.fixture
def filled(place, music):
    for artist, song, year in [("Nina Simone", "Sinnerman", 1965), ("Nina Simone", "Feeling Good", 1965),
                               ("Nina Simone", "Four Women", 1966), ("Odetta", "Gallows", 1957)]:
        output("put", music, f"Artist={artist}", f"Song={song}", f"Year:={year}", on=place)
    return music


# ---- tables ----

def test_tables_are_made_listed_described_and_dropped(place, unused_name):
    assert output("table", "create", unused_name, "id:S", "no:N", "--index", "glob:x:B=keys",
                  "--local-index", "loc:y:S", "--stream", "new-and-old", "--ttl", "expires", on=place) == ""
    assert unused_name in output("table", "ls", on=place).splitlines()
    table = json.loads(output("table", "describe", unused_name, on=place))
    assert [key["AttributeName"] for key in table["KeySchema"]] == ["id", "no"]
    assert table["GlobalSecondaryIndexes"][0]["Projection"] == {"ProjectionType": "KEYS_ONLY"}
    assert table["LocalSecondaryIndexes"][0]["IndexName"] == "loc"
    assert table["StreamSpecification"]["StreamViewType"] == "NEW_AND_OLD_IMAGES"
    words = output("table", "describe", unused_name, "--table", on=place)
    for line in ("status       ACTIVE", "keys         id S, no N", "items        0, 0 B",
                 "index        glob: x B; keys only", "local index  loc: id S, y S; all attributes",
                  "capacity     on demand",
                 "stream       NEW_AND_OLD_IMAGES", "ttl          expires"):
        assert line in words.splitlines()
    long = output("table", "ls", "--long", on=place)
    assert any(line.split() == [unused_name, "id", "S,", "no", "N", "0", "0", "B", "2"] for line in long.splitlines())
    assert output("table", "drop", unused_name, "--yes", on=place) == ""
    assert unused_name not in output("table", "ls", on=place).splitlines()


def test_a_table_that_is_there_already(place, music):
    result = quipu("table", "create", music, "Artist:S", on=place)
    assert (result.returncode, result.stderr) == (1, f"quipu: there is a table '{music}' already\n")
    assert output("table", "create", music, "Artist:S", "--if-missing", on=place) == ""


def test_settings_of_a_table(place, music):
    output("table", "set", music, "--stream", "keys", "--ttl", "expires", on=place)
    words = output("table", "describe", music, "--table", on=place)
    assert "KEYS_ONLY" in words and "expires" in words
    output("table", "set", music, "--stream", "off", "--ttl", "off", on=place)
    words = output("table", "describe", music, "--table", on=place)
    assert "KEYS_ONLY" not in words and "expires" not in words
    assert quipu("table", "set", music, on=place).returncode == 2
    assert quipu("table", "set", music, "--stream", "some", on=place).returncode == 2


def test_dropping_asks_first(place, music):
    result = quipu("table", "drop", music, on=place, stdin="")
    assert result.returncode == 1 and "--yes" in result.stderr
    status, shown = on_terminal("table", "drop", music, on=place, typed="n\n")
    assert status == 1 and "[y/N]" in shown
    assert music in output("table", "ls", on=place)
    status, _ = on_terminal("table", "drop", music, on=place, typed="y\n")
    assert status == 0
    assert music not in output("table", "ls", on=place)


@pytest.mark.parametrize("arguments, sentence", [
    (["create", "T", "id"], "'id' should be a key and its type, S, N or B: Artist:S"),
    (["create", "T", "id:X"], "'id:X' should be a key and its type, S, N or B: Artist:S"),
    (["create", "T", "id:S", "--index", "i"], "'i' should be NAME:HASH:TYPE or NAME:HASH:TYPE,RANGE:TYPE"),
    (["create", "T", "id:S", "--stream", "all"], "'all' should be new-and-old, new, old or keys"),
    (["create", "T"], "an argument is missing: quipu table create TABLE HASH:TYPE [RANGE:TYPE] [flags]"),
    (["create", "T", "a:S", "b:S", "c:S"], "unexpected argument 'c:S'"),
    (["ls", "--frobnicate"], "unknown flag '--frobnicate'"),
    (["ls", "--on"], "the flag '--on' needs a value: --on WHERE"),
    (["ls", "--long=yes"], "the flag '--long' takes no value"),
])
def test_wrong_usage(tmp_path, arguments, sentence):
    result = quipu("table", *arguments, on=tmp_path / "data")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"quipu: {sentence}\nTry 'quipu table {arguments[0]} --help'.\n"
    assert list(tmp_path.iterdir()) == []


# ---- items ----

def test_put_and_get(place, music):
    assert output("put", music, json.dumps(NINA), on=place) == ""
    assert items("get", music, "Nina Simone", "Sinnerman", on=place) == [NINA]
    assert items("get", music, "Nina Simone", "Sinnerman", "--dynamodb-json", on=place) == [
        {"Artist": S("Nina Simone"), "Song": S("Sinnerman"), "Year": N(1965)}]
    assert items("get", music, "Nina Simone", "Sinnerman", "--fields", "Year", on=place) == [{"Year": 1965}]


def test_every_type_there_and_back(place, music):
    item = {"Artist": "a", "Song": "b", "text": "ä\n\"", "number": -1.5,
            "large": 12345678901234567890123456789012345678, "yes": True, "nothing": None, "list": [1, "x", [None]],
             "map": {"a": {"b": 1}},
            "binary": {"$binary": base64.b64encode(b"\0\xff").decode()}, "texts": {"$set": ["x", "y"]},
            "numbers": {"$set": [1, 2]}, "binaries": {"$set": [{"$binary": "AA=="}]},
            "odd": {"$map": {"$set": [1]}}}
    output("put", music, json.dumps(item), on=place)
    (got,) = items("get", music, "a", "b", on=place)
    assert got == item
    (dynamo,) = items("get", music, "a", "b", "--dynamodb-json", on=place)
    assert dynamo["binaries"] == {"BS": ["AA=="]} and dynamo["odd"] == {"M": {"$set": {"L": [N(1)]}}}
    output("delete", music, "a", "b", on=place)
    output("put", music, json.dumps(dynamo), "--dynamodb-json", on=place)
    assert items("get", music, "a", "b", on=place) == [item]


def test_attributes_one_by_one(place, unused_name):
    output("table", "create", unused_name, "no:N", "key:B", on=place)
    output("put", unused_name, "no=7", "key=AQI=", "text=7", "json:=[1,{\"a\":null}]", "empty=", on=place)
    assert items("get", unused_name, "7", "AQI=", on=place) == [
        {"no": 7, "key": {"$binary": "AQI="}, "text": "7", "json": [1, {"a": None}], "empty": ""}]
    result = quipu("put", unused_name, "no=seven", "key=AQI=", on=place)
    assert result.returncode == 2 and "the key no is a number, and 'seven' is none" in result.stderr
    assert quipu("put", unused_name, "no", on=place).returncode == 2
    assert quipu("put", unused_name, "no:=[", on=place).returncode == 2


def test_put_of_many_items_from_standard_input(place, music):
    lines = "".join(json.dumps({"Artist": "a", "Song": str(n)}) + "\n" for n in range(30))
    output("put", music, on=place, stdin=lines + json.dumps({"Artist": "b", "Song": "laid out"}, indent=2))
    assert output("scan", music, "--count", on=place) == "31\n"
    result = quipu("put", music, "-", on=place, stdin='{"Artist":"a","Song":"x"}\n{"Artist":1}\n')
    assert result.returncode == 1 and "stopped behind 1 item, in line 2" in result.stderr
    result = quipu("put", music, on=place, stdin='{"Artist":"a",')
    assert result.returncode == 1 and "the value that begins here has no end" in result.stderr
    assert quipu("put", music, on=place, stdin='{"Artist":"a",}').returncode == 1


def test_conditions(place, filled):
    result = quipu("put", filled, "Artist=Odetta", "Song=Gallows", "--if", "attribute_not_exists(Artist)", on=place)
    assert (result.returncode, result.stderr) == (
        1, "quipu: the condition is not met: attribute_not_exists(Artist)\n")
    assert items("put", filled, "Artist=Odetta", "Song=Gallows", "--if", "Year = 1957", "--old", on=place) == [
        {"Artist": "Odetta", "Song": "Gallows", "Year": 1957}]
    assert quipu("delete", filled, "Odetta", "Gallows", "--if", "Year = 1957", on=place).returncode == 1


def test_update(place, filled):
    key = ["Nina Simone", "Sinnerman"]
    expression = "SET plays = if_not_exists(plays, 0) + 1, tags = {\"$set\":[\"jazz\"]}, `odd name` = 'it''s'"
    assert items("update", filled, *key, expression, on=place) == [
        {**NINA, "plays": 1, "tags": {"$set": ["jazz"]}, "odd name": "it's"}]
    assert items("update", filled, *key, "SET plays = plays - -1 REMOVE tags, `odd name`", "--if", "plays < 2",
                 on=place) == [{**NINA, "plays": 2}]
    result = quipu("update", filled, *key, "SET plays = plays + 1", "--if", "plays < 2", on=place)
    assert (result.returncode, result.stderr) == (1, "quipu: the condition is not met: plays < 2\n")
    result = quipu("update", filled, *key, "SET plays = :x", on=place)
    assert result.returncode == 2 and "without # and :" in result.stderr
    result = quipu("update", filled, *key, "SET plays plays", on=place)
    assert result.returncode == 1 and "ValidationException: Invalid UpdateExpression" in result.stderr


def test_delete(place, filled):
    assert items("delete", filled, "Odetta", "Gallows", "--old", on=place) == [
        {"Artist": "Odetta", "Song": "Gallows", "Year": 1957}]
    result = quipu("delete", filled, "Odetta", "Gallows", on=place)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == f"quipu: there is no such item in {filled}\n"
    assert quipu("get", filled, "Odetta", "Gallows", on=place).returncode == 1


def test_keys_must_fit_the_table(place, filled):
    result = quipu("get", filled, "Odetta", on=place)
    assert result.returncode == 2 and "has two keys: Artist and Song" in result.stderr


# ---- queries ----

@pytest.mark.parametrize("range_words, songs", [
    ([], ["Feeling Good", "Four Women", "Sinnerman"]),
    (["Sinnerman"], ["Sinnerman"]),
    (["= Sinnerman"], ["Sinnerman"]),
    (["F*"], ["Feeling Good", "Four Women"]),
    (["Fo..T"], ["Four Women", "Sinnerman"]),
    (["> Four Women"], ["Sinnerman"]),
    (["<=Four Women"], ["Feeling Good", "Four Women"]),
    (["--reverse"], ["Sinnerman", "Four Women", "Feeling Good"]),
    (["--limit", "2"], ["Feeling Good", "Four Women"]),
    (["--reverse", "--limit", "1"], ["Sinnerman"]),
    (["--filter", "Year = 1965"], ["Feeling Good", "Sinnerman"]),
    (["--filter", "Year = 1965", "--limit", "1"], ["Feeling Good"]),
    (["--filter", "Year between 1966 and 1970 or attribute_type(Year, 'S')"], ["Four Women"]),
    (["Nothing"], []),
])
def test_query(place, filled, range_words, songs):
    found = items("query", filled, "Nina Simone", *range_words, on=place)
    assert [item["Song"] for item in found] == songs
    if "--limit" not in range_words:
        assert output("query", filled, "Nina Simone", *range_words, "--count", on=place) == f"{len(songs)}\n"


def test_query_of_an_index(place, filled):
    found = items("query", filled, "1965", "--index", "by-year", "--fields", "Song,Year", on=place)
    assert found == [{"Song": "Feeling Good", "Year": 1965}, {"Song": "Sinnerman", "Year": 1965}]
    assert len(items("query", filled, "1965", "S*", "--index", "by-year", on=place)) == 1
    result = quipu("query", filled, "soon", "--index", "by-year", on=place)
    assert result.returncode == 2 and "the key Year is a number, and 'soon' is none" in result.stderr
    result = quipu("query", filled, "1965", "--index", "by-month", on=place)
    assert result.returncode == 1 and f"the table '{filled}' has no index 'by-month'" in result.stderr


def test_an_index_whose_key_has_several_attributes(place, unused_name):
    output("table", "create", unused_name, "id:S", "--index", "by-place:land:S+town:S,year:N+day:N", on=place)
    for n, (town, year, day) in enumerate([("Cusco", 1532, 5), ("Cusco", 1533, 1), ("Lima", 1535, 18)]):
        output("put", unused_name, f"id={n}", "land=Peru", f"town={town}", f"year:={year}", f"day:={day}", on=place)
    assert "index     by-place: land S + town S, year N + day N; all attributes" in output(
        "table", "describe", unused_name, "--table", on=place)
    query = ["query", unused_name, "--index", "by-place", "Peru"]
    assert [item["id"] for item in items(*query, "Cusco", on=place)] == ["0", "1"]
    assert [item["id"] for item in items(*query, "Cusco", "1532", "> 3", on=place)] == ["0"]
    result = quipu(*query, on=place)
    assert result.returncode == 2 and "the key of by-place is land, town, year?, day?" in result.stderr


def test_scan(place, filled):
    assert len(items("scan", filled, on=place)) == 4
    assert len(items("scan", filled, "--limit", "3", on=place)) == 3
    assert output("scan", filled, "--filter", "Year < 1960", "--count", on=place) == "1\n"
    assert items("scan", filled, "--filter", "Year < 1960", "--dynamodb-json", on=place) == [
        {"Artist": S("Odetta"), "Song": S("Gallows"), "Year": N(1957)}]
    assert len(items("scan", filled, "--index", "by-year", on=place)) == 4


def test_searches_go_through_all_pages(place, music):
    lines = "".join(json.dumps({"Artist": "a", "Song": f"{n:04}", "text": "x" * 20000}) + "\n" for n in range(150))
    output("put", music, on=place, stdin=lines)
    assert len(items("query", music, "a", on=place)) == 150
    assert len(items("query", music, "a", "--limit", "120", on=place)) == 120
    assert output("query", music, "a", "--count", on=place) == "150\n"
    assert output("scan", music, "--count", "--limit", "100", on=place) == "100\n"


# ---- on a terminal ----

def test_tables_on_a_terminal(place, filled):
    status, shown = on_terminal("query", filled, "Nina Simone", on=place)
    assert status == 0
    assert shown == ("\033[1mArtist       Song          Year\033[0m\n"
                     "Nina Simone  Feeling Good  1965\n"
                     "Nina Simone  Four Women    1966\n"
                     "Nina Simone  Sinnerman     1965\n"
                     "3 items\n")
    status, shown = on_terminal("get", filled, "Odetta", "Gallows", on=place)
    assert (status, shown) == (0, "Artist  Odetta\nSong    Gallows\nYear    1957\n")
    _, shown = on_terminal("query", filled, "Odetta", "--json", on=place)
    assert shown == '{"Artist":"Odetta","Song":"Gallows","Year":1957}\n'


def test_a_narrow_terminal(place, filled):
    _, shown = on_terminal("query", filled, "Nina Simone", "F*", on=place, columns=24)
    assert shown == ("\033[1mArtist    Song      Year\033[0m\n"
                     "Nina Si\u2026  Feeling\u2026  1965\n"
                     "Nina Si\u2026  Four Wo\u2026  1966\n"
                     "2 items\n")
    _, shown = on_terminal("query", filled, "Nina Simone", "F*", on=place, columns=12)
    assert shown.splitlines()[1:] == ["Nina Simone", "Nina Simone", "2 items; 2 columns did not fit, --json shows all"]


def test_texts_cannot_move_the_cursor(place, music):
    output("put", music, json.dumps({"Artist": "a", "Song": "b", "evil": "\033[2J\nx\u009b"}), on=place)
    for command in (["get", music, "a", "b"], ["scan", music]):
        _, shown = on_terminal(*command, on=place)
        assert "\\x1b[2J\\nx\\x9b" in shown and "\033[2J" not in shown


# ---- help, and what goes wrong ----

COMMANDS = ["serve", "table", "get", "put", "update", "delete", "query", "scan", "sql", "tail", "top", "dump", "load",
            "copy", "function", "layer", "trigger", "schedule", "queue", "check", "show", "completion"]
CHILDREN = {
    "table": ["ls", "create", "set", "describe", "drop", "backup", "backups", "restore", "rm-backup"],
    "function": ["add", "ls", "show", "invoke", "logs", "debug", "publish", "alias", "rm"],
    "layer": ["add", "ls", "rm"],
    "trigger": ["add", "ls", "show", "set", "pause", "resume", "rm"],
    "schedule": ["add", "ls", "show", "next", "pause", "resume", "rm"],
    "queue": ["ls", "read", "rm"],
}
ROWS = [[command] for command in COMMANDS] + [[parent, child] for parent in CHILDREN for child in CHILDREN[parent]]


def test_the_list_of_commands():
    shown = output("--help")
    for command in COMMANDS + ["help", "version"]:
        assert f"\n  {command} " in shown
    assert output("help") == shown
    result = quipu()
    assert (result.returncode, result.stdout, result.stderr) == (2, "", shown)


@pytest.mark.parametrize("command", ROWS)
def test_help(command):
    shown = output(*command, "--help")
    assert shown.startswith(f"Usage: quipu {' '.join(command)} ")
    assert shown == output("help", *command) == output(*command, "-h")
    assert all(len(line) <= 118 for line in shown.splitlines())


def test_the_manual_knows_every_flag():
    manual = open(os.path.join(ROOT, "doc", "quipu.1"), encoding="utf-8").read().replace("\\-", "-")
    for command in ROWS:
        for flag in re.findall(r"^  (--[a-z0-9-]+)", output(*command, "--help"), re.M):
            assert re.search(rf"{flag}\b(?!-)", manual), (command, flag)


def test_unknown_commands():
    result = quipu("frobnicate")
    assert (result.returncode, result.stderr) == (2, "quipu: there is no command 'frobnicate'\nTry 'quipu --help'.\n")
    result = quipu("--on", "http://127.0.0.1:1", "scan", "Music")
    assert (result.returncode, result.stderr) == (
        2, "quipu: the command comes first, its flags behind it: quipu COMMAND --on ...\nTry 'quipu --help'.\n")
    result = quipu("table", "frobnicate")
    assert result.returncode == 2 and "there is no command 'table frobnicate'" in result.stderr
    assert "there is no command 'table lst'; did you mean 'table ls'?\n" in quipu("table", "lst").stderr
    assert quipu("table").returncode == 2


@pytest.mark.parametrize("command", [
    ["get", "Nothing", "a"], ["scan", "Nothing"], ["table", "describe", "Nothing"],
    ["table", "drop", "Nothing", "--yes"], ["tail", "Nothing"], ["dump", "Nothing"]])
def test_a_table_that_is_not_there(place, music, command):
    result = quipu(*command, on=place)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == f"quipu: there is no table 'Nothing' on {place} ('quipu table ls' lists them)\n"


def test_nobody_answers():
    result = quipu("table", "ls", "--on", "http://127.0.0.1:1")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("quipu: nobody answers on http://127.0.0.1:1: ")
    assert result.stderr.count("http://") == 1 and "does a server run there?" in result.stderr


@pytest.mark.parametrize("where, hint", [
    ("localhost:8000", "begins with http:// or https://: did you mean http://localhost:8000"),
    ("ftp://there", "'ftp://there' is no folder that is there; a URL begins with http:// or https://\n")])
def test_a_url_without_its_beginning(where, hint, tmp_path):
    for command in (["table", "ls"], ["load", os.devnull]):
        result = run_quipu(*command, "--on", where, cwd=tmp_path)
        assert (result.returncode, result.stdout) == (1, "") and hint in result.stderr
    assert os.listdir(tmp_path) == []
    (tmp_path / "a:1").mkdir()
    assert run_quipu("table", "create", "Things", "id:S", "--on", "a:1", cwd=tmp_path).returncode == 0


def test_a_folder_that_is_not_there_is_not_made(tmp_path):
    result = quipu("scan", "Music", on=tmp_path / "nothing")
    assert (result.returncode, result.stdout) == (1, "")
    assert str(tmp_path / "nothing") in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_use(tmp_path):
    with Quipu("--data", str(tmp_path / "data")):
        result = quipu("table", "ls", on=tmp_path / "data")
        assert result.returncode == 1 and "in use by another process" in result.stderr


def test_the_flag_wins_over_the_environment(tmp_path):
    output("table", "create", "There", "a:S", on=tmp_path / "data")
    assert output("table", "ls", "--on", str(tmp_path / "data"), on=tmp_path / "nothing") == "There\n"


def test_words_behind_two_dashes_are_no_flags(place, music):
    output("put", music, "Artist=--on", "Song=-h", on=place)
    assert items("get", music, "--", "--on", "-h", on=place) == [{"Artist": "--on", "Song": "-h"}]


def test_words_must_be_utf8(place, music):
    result = subprocess.run([BINARY, "put", music, b"Artist=\xff", "Song=x", "--on", str(place)], capture_output=True,
                            timeout=240, env=clean_environment())
    assert result.returncode == 2 and b"is not UTF-8" in result.stderr


def test_signed_requests(tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("[default]\naws_access_key_id = mine\naws_secret_access_key = secret\n")
    with Quipu("--memory", "--credentials", str(keys)) as server:
        good = {"AWS_ACCESS_KEY_ID": "mine", "AWS_SECRET_ACCESS_KEY": "secret"}
        assert output("table", "create", "Signed", "a:S", on=server.url, env=good) == ""
        assert boto_client(server.url, "mine", "secret").list_tables()["TableNames"] == ["Signed"]
        result = quipu("table", "ls", on=server.url, env={**good, "AWS_SECRET_ACCESS_KEY": "wrong"})
        assert result.returncode == 1 and "InvalidSignatureException" in result.stderr


# ---- completion ----

def test_completion_scripts_name_everything():
    for shell in ("bash", "zsh", "fish"):
        script = output("completion", shell)
        for word in COMMANDS + ["until-idle", "dynamodb-json", "describe", "durability"]:
            assert word in script, (shell, word)
    assert quipu("completion", "tcsh").returncode == 2


@pytest.fixture
def shell_path(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "quipu").symlink_to(BINARY)
    return f"{tmp_path}/bin:/usr/bin:/bin"


def test_bash_completes(shell_path, tmp_path):
    folder = tmp_path / "data"
    output("table", "create", "Music", "a:S", on=folder)

    def complete(*words):
        script = ("source <(quipu completion bash); COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _quipu; "
                  "printf '%s\\n' \"${COMPREPLY[@]}\"")
        result = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, timeout=240,
                                env=clean_environment({"PATH": shell_path}))
        assert result.stderr == ""
        return result.stdout.split()

    assert complete("quipu", "q") == ["query", "queue"]
    assert complete("quipu", "table", "d") == ["describe", "drop"]
    assert complete("quipu", "schedule", "r") == ["resume", "rm"]
    assert complete("quipu", "trigger", "add", "--ba") == ["--batch"]
    assert complete("quipu", "function", "in") == ["invoke"]
    assert complete("quipu", "layer", "") == ["add", "ls", "rm"]
    assert complete("quipu", "layer", "add", "--r") == ["--runtime", "--region"]
    assert complete("quipu", "function", "add", "--la") == ["--layer"]
    assert complete("quipu", "table", "create", "--lo") == ["--local-index"]
    assert complete("quipu", "query", "--on", str(folder), "M") == ["Music"]
    assert "--until-idle" in complete("quipu", "copy", "--")
    assert complete("quipu", "job", "put", "x", "--layout", "") == ["tree", "set"]


def test_fish_completes(shell_path, tmp_path):
    def complete(line):
        script = f"quipu completion fish | source; complete -C '{line}'"
        result = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, timeout=240,
                                env=clean_environment({"PATH": shell_path, "HOME": str(tmp_path)}))
        assert result.stderr == ""
        return [found.split("\t")[0] for found in result.stdout.splitlines()]

    assert complete("quipu q") == ["query", "queue"]
    assert complete("quipu table d") == ["describe", "drop"]
    assert complete("quipu job put x --la") == ["--layout"]
    assert complete("quipu job put x --layout ") == ["set", "tree"]
    assert complete("quipu job put x --deadline ") == []
    assert complete("quipu serve --mem") == ["--memory"]


def test_zsh_completes(shell_path, tmp_path):
    """In a terminal of its own: zsh completes nowhere else."""
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "_quipu").write_text(output("completion", "zsh"))
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve("/usr/bin/zsh", ["zsh", "-f", "-i"], {"PATH": shell_path, "HOME": str(tmp_path), "TERM": "dumb"})

    def see(wanted):
        seen, until = "", time.monotonic() + 120
        while wanted not in seen:
            assert time.monotonic() < until, seen
            if select.select([terminal], [], [], 1)[0]:
                seen += os.read(terminal, 4096).decode(errors="replace")

    try:
        os.write(terminal, f"fpath=({tmp_path}/functions $fpath); autoload -U compinit; compinit -u -D; "
                           "unsetopt zle_bracketed_paste; print -- rea''dy\n".encode())
        see("ready")
        for typed, wanted in (("quipu table desc\t", "table describe "), ("quipu job put x --la\t", "--layout "),
                              ("quipu job put x --layout s\t", "--layout set "),
                              ("quipu serve --mem\t", "--memory ")):
            os.write(terminal, b"\x15" + typed.encode())
            see(wanted)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)
