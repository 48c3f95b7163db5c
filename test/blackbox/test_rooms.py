"""The check of the rooms must see each offence: a small repository with one of each."""
import os
import subprocess

import pytest
from support.process import ROOT

ROOMS = next(line for line in open(os.path.join(ROOT, "Makefile")) if line.startswith("ROOMS "))
MAKEFILE = ROOMS + "all:\n\techo\n"


@pytest.fixture
def repository(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "Makefile").write_text(MAKEFILE)
    write(tmp_path, "src/value/value.c", '/* values */\n#include "base/arena.h"\n#include "value/value.h"\n')
    return tmp_path


def write(repository, path, text):
    (repository / path).parent.mkdir(parents=True, exist_ok=True)
    (repository / path).write_text(text)


def check(repository):
    return subprocess.run(["/usr/bin/python3", "-B", os.path.join(ROOT, "test", "rooms"), str(repository)],
                          capture_output=True, text=True)


def test_a_clean_repository(repository):
    result = check(repository)
    assert result.returncode == 0, result.stdout
    assert result.stdout.splitlines()[-1] == "12 passed, 0 failed"


@pytest.mark.parametrize("path, text, sentence", [
    ("src/value/a.c", '/* a */\n#include "engine/engine.h"\n', "src/value/a.c:2: room value must not use room engine"),
    ("src/net/a.c", '/* a */\n#include "value/value.h"\n', "src/net/a.c:2: room net must not use room value"),
    ("src/api/a.c", '/* a */\n#include "engine/internal.h"\n', "src/api/a.c:2: \"engine/internal.h\" is private"),
    ("src/api/a.c", '/* a */\n#include "internal.h"\n', "src/api/a.c:2: \"internal.h\" does not name its room"),
    ("src/api/a.c", '/* a */\n#include "cellar/a.h"\n', "src/api/a.c:2: \"cellar/a.h\" is in no known room"),
    ("src/cellar/a.c", "/* a */\n", "src/cellar/a.c:1: is not a file of a known room"),
    ("src/api/a.c", "int a;\n", "src/api/a.c:1: does not start with a comment"),
    ("src/api/a.c", "/* a */\n" * 901, "src/api/a.c:901: has more than 900 lines"),
    ("src/api/a.c", "/* a */\nvoid f(void)\n{\n" + "    g();\n" * 81 + "}\n", "src/api/a.c:3: a function of more than"),
    ("src/api/a.c", "/* a */ \n", "src/api/a.c:1: white space at the end of the line"),
    ("src/api/a.c", "/* a\tb */\n", "src/api/a.c:1: a tab"),
    ("src/api/a.c", "/* a */\n/* " + "x" * 120 + " */\n", "src/api/a.c:2: 126 columns, more than 120"),
    ("src/api/a.c", "/* a\n *  A1. One. A2. Two. */\n", "src/api/a.c:2: an invariant's number stands within a line"),
    ("src/api/a.c", "/* a\n *  A1. One.\n *  A1. Two. */\n", "src/api/a.c:3: there is another A1 in src/api/a.c"),
    ("README.md", "no line end", "README.md:1: no line end at the end of the file"),
    ("Makefile", MAKEFILE.replace("net value", "value net"), "Makefile:1: ROOMS differs"),
])
def test_each_offence_is_seen(repository, path, text, sentence):
    write(repository, path, text)
    result = check(repository)
    assert result.returncode == 1
    assert sentence in result.stdout
    assert result.stdout.splitlines()[-1] == "11 passed, 1 failed"


def test_a_letter_of_invariants_belongs_to_one_room(repository):
    write(repository, "src/api/a.h", "/* a\n *  A1. One. */\n")
    write(repository, "src/api/b.h", "/* b\n *  A2. Two. */\n")
    assert check(repository).returncode == 0
    write(repository, "src/net/a.h", "/* a\n *  A3. Three. */\n")
    assert "src/net/a.h:2: the letter A belongs to room api" in check(repository).stdout


def test_the_table_of_threads_names_every_file_that_starts_one():
    design = open(os.path.join(ROOT, "DESIGN.md"), encoding="utf-8").read()
    starting = subprocess.run(["grep", "-rl", "pthread_create(", "src"], cwd=ROOT, capture_output=True, text=True,
                              check=True).stdout.split()
    assert starting and [path for path in starting if f"`{path}`" not in design] == []
