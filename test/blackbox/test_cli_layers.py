"""The commands on layers, against a running server: made of archives and folders, listed, removed, below functions."""
import json
import os
import zipfile

import pytest
from cli import items, on_terminal, output, quipu
from lambdas import lambda_client
from support.process import Quipu

SOURCE = """
import os, shutil, subprocess
def lambda_handler(event, context):
    import shared
    layers = os.environ["QUIPU_LAYERS"]
    tool = shutil.which("tool-of-layer")
    return {"who": shared.WHO, "tool": tool and subprocess.check_output([tool]).decode(),
            "link": os.path.exists(layers + "/link") and open(layers + "/link").read()}
"""


@pytest.fixture(scope="module")
def server():
    with Quipu() as running:
        yield running


@pytest.fixture
def on(server):
    """The server without layers."""
    yield server.url
    for layer in items("layer", "ls", on=server.url):
        output("layer", "rm", layer["LayerName"], on=server.url)


@pytest.fixture
def code(tmp_path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "lambda_function.py").write_text(SOURCE)
    return str(tmp_path / "code")


def make_folder(folder, who):
    (folder / "python").mkdir(parents=True)
    (folder / "python" / "shared.py").write_text(f"WHO = {who!r}\n")
    return str(folder)


def fails(*arguments, status=1, **options):
    result = quipu(*arguments, **options)
    assert result.returncode == status, (result.stdout, result.stderr)
    assert result.stdout == ""
    return result.stderr


def invoke(name, on):
    return json.loads(output("function", "invoke", name, on=on))


def test_a_folder_becomes_a_layer_and_a_function_has_it(on, code, tmp_path, unused_name):
    folder = tmp_path / "shared"
    make_folder(folder, "folder")
    (folder / "bin").mkdir()
    (folder / "bin" / "tool-of-layer").write_text("#!/bin/sh\nprintf ran\n")
    (folder / "bin" / "tool-of-layer").chmod(0o755)
    (folder / "empty").mkdir()
    (folder / "python" / "empty.py").write_text("")
    (folder / "large").write_bytes(os.urandom(70_000) + bytes(3_000_000))
    (folder / "ümlaut").write_text("linked")
    (folder / "link").symlink_to("ümlaut")
    assert output("layer", "add", unused_name, str(folder) + "/", on=on) == f"{unused_name}:1\n"
    output("function", "add", unused_name, "--dir", code, "--timeout", "60s", "--layer", unused_name, on=on)
    assert invoke(unused_name, on) == {"who": "folder", "tool": "ran", "link": "linked"}
    output("function", "rm", unused_name, on=on)


def test_the_newest_version_the_named_one_the_order_and_none(on, code, tmp_path, unused_name):
    first, _ = (output("layer", "add", unused_name, make_folder(tmp_path / who, who), on=on).strip()
                for who in ("one", "two"))
    over = output("layer", "add", "over", make_folder(tmp_path / "over", "over"), on=on).strip()
    add = ["function", "add", unused_name, "--dir", code, "--timeout", "60s"]
    output(*add, "--layer", unused_name, on=on)
    assert invoke(unused_name, on)["who"] == "two"
    output(*add, "--layer", first, on=on)
    assert invoke(unused_name, on)["who"] == "one"
    output(*add, "--layer", first, "--layer", "over", on=on)
    assert invoke(unused_name, on)["who"] == "over"
    output(*add, on=on)  # they stay
    shown = output("function", "show", unused_name, "--table", on=on)
    assert [line.split()[1] for line in shown.splitlines() if line.startswith("layer ")] == [first, over]
    layers = json.loads(output("function", "show", unused_name, on=on))["Configuration"]["Layers"]
    output(*add, "--layer", layers[0]["Arn"], on=on)
    assert invoke(unused_name, on)["who"] == "one"
    output(*add, "--no-layers", on=on)
    assert "Layers" not in json.loads(output("function", "show", unused_name, on=on))["Configuration"]
    output("function", "rm", unused_name, on=on)


def test_an_archive_becomes_a_layer(on, tmp_path):
    with zipfile.ZipFile(tmp_path / "shared.zip", "w") as packed:
        packed.writestr("python/shared.py", "WHO = 1\n")
    output("layer", "add", "shared", str(tmp_path / "shared.zip"), "--runtime", "python3.11", "--runtime",
           "python3.12", "--description", "of an archive", on=on)
    newest = items("layer", "ls", on=on)[0]["LatestMatchingVersion"]
    assert newest["CompatibleRuntimes"] == ["python3.11", "python3.12"] and newest["Description"] == "of an archive"


def test_what_lies_in_the_wrong_place_is_told(on, tmp_path):
    folder = make_folder(tmp_path / "above" / "shared", "one")
    for path, is_told in ((folder, False), (os.path.dirname(folder), True)):
        result = quipu("layer", "add", "shared", path, on=on)
        assert result.returncode == 0 and result.stdout.startswith("shared:")
        assert ("python, nodejs/node_modules, bin and lib at its top" in result.stderr) == is_told


def test_lists_and_removal(on, tmp_path, unused_name):
    first, second = unused_name + "-a", unused_name + "-b"
    folder = make_folder(tmp_path / "one", "one")
    for name in (first, second, second, second):
        output("layer", "add", name, folder, "--description", f"of {name}", on=on)
    assert [layer["LayerName"] for layer in items("layer", "ls", on=on)] == [first, second]
    status, shown = on_terminal("layer", "ls", on=on)
    assert status == 0 and all(word in shown.split("\n")[0] for word in ("LAYER", "RUNTIMES", "MADE", "DESCRIPTION"))
    assert [line.split()[0] for line in shown.split("\n")[1:3]] == [first + ":1", second + ":3"]
    assert [version["Version"] for version in items("layer", "ls", second, on=on)] == [3, 2, 1]
    assert "has no version 9" in fails("layer", "rm", second + ":2", first, second + ":9", on=on)
    assert len(items("layer", "ls", on=on)) == 2 and len(items("layer", "ls", second, on=on)) == 3  # all or nothing
    output("layer", "rm", second + ":2", on=on)
    assert [version["Version"] for version in items("layer", "ls", second, on=on)] == [3, 1]
    output("layer", "rm", second, first + ":1", on=on)
    assert items("layer", "ls", on=on) == []
    assert output("layer", "add", second, folder, on=on) == second + ":4\n"  # numbers are not used again


def test_a_layer_that_is_not_there(on, code, tmp_path, unused_name):
    add = ["function", "add", unused_name, "--dir", code]
    assert "there is no layer 'shared', nor any other; 'quipu layer add' makes one" in \
        fails(*add, "--layer", "shared", on=on)
    folder, first, second = make_folder(tmp_path / "one", "one"), unused_name + "-a", unused_name + "-b"
    for name in (first, second, second):
        output("layer", "add", name, folder, on=on)
    assert f"there is no layer 'shared'; there are: {first}, {second}" in fails(*add, "--layer", "shared", on=on)
    assert f"the layer '{second}' has no version 7; it has 2, 1" in fails(*add, "--layer", second + ":7", on=on)
    assert quipu("function", "show", unused_name, on=on).returncode == 1  # nothing was made
    assert f"there is no layer 'shared'; there are: {first}, {second}" in fails("layer", "rm", "shared", on=on)
    assert f"the layer '{first}' has no version 2; it has 1" in fails("layer", "rm", first + ":2", on=on)
    assert "there is no layer 'shared'" in fails("layer", "ls", "shared", on=on)
    assert len(items("layer", "ls", on=on)) == 2


def test_a_runtime_that_does_not_fit(on, code, tmp_path, unused_name):
    folder = make_folder(tmp_path / "one", "one")
    runtimes = ["--runtime", "nodejs20.x", "--runtime", "nodejs22.x"]
    layer = output("layer", "add", "shared", folder, *runtimes, on=on).strip()
    add = ["function", "add", unused_name, "--dir", code, "--runtime", "python3.11"]
    sentence = f"the layer {layer} is for nodejs20.x, nodejs22.x, not for python3.11"
    assert sentence in fails(*add, "--layer", "shared", on=on)
    assert quipu("function", "show", unused_name, on=on).returncode == 1
    output(*add, on=on)
    before = json.loads(output("function", "show", unused_name, on=on))["Configuration"]["RevisionId"]
    assert sentence in fails(*add, "--layer", "shared", on=on)
    assert json.loads(output("function", "show", unused_name, on=on))["Configuration"]["RevisionId"] == before
    output(*add[:-1], "nodejs", "--handler", "any.handler", "--layer", "shared", on=on)  # whichever the server has
    error = fails("layer", "add", "other", folder, "--runtime", "cobol", on=on)
    assert "cobol" in error and "python3.11" in error
    assert [layer["LayerName"] for layer in items("layer", "ls", on=on)] == ["shared"]
    output("function", "rm", unused_name, on=on)


def test_what_cannot_become_a_layer(on, tmp_path):
    nothing = tmp_path / "nothing"
    (nothing / "below").mkdir(parents=True)
    text = tmp_path / "text"
    text.write_text("no archive")
    broken = tmp_path / "broken.zip"
    broken.write_bytes(b"PK\x03\x04 and no more")
    away = tmp_path / "away"
    make_folder(away, "away")
    (away / "link").symlink_to("/etc/passwd")
    odd = tmp_path / "odd"
    make_folder(odd, "odd")
    os.mkfifo(odd / "pipe")
    name = tmp_path / "name"
    make_folder(name, "name")
    with open(os.fsencode(name) + b"/\xff", "w", encoding="utf-8"):
        pass
    control = tmp_path / "control"
    make_folder(control, "control")
    (control / "a\x1b[2Jb").write_text("")
    for path, status, sentence in (
            (tmp_path / "none", 2, f"{tmp_path}/none cannot be found: No such file or directory"),
            (nothing, 2, f"{nothing} has nothing in it"), (text, 2, f"{text} is neither a zip archive nor a folder"),
            (broken, 1, "Not a zip archive"), (away, 1, "A symbolic link leads out of the archive: link"),
            (odd, 2, f"{odd}/pipe is neither a file nor a folder nor a link"),
            (name, 2, "\\xff: its name is not UTF-8"),
            (control, 2, "a\\x1b[2Jb: its name is not UTF-8, or has control characters")):
        assert sentence in fails("layer", "add", "shared", str(path), status=status, on=on)
    assert items("layer", "ls", on=on) == []


def test_a_folder_that_is_too_large(on, tmp_path):
    with open(tmp_path / "zeros", "wb") as file:
        file.truncate((250 << 20) + 1)
    assert "zeros is larger than 250 MB" in fails("layer", "add", "shared", str(tmp_path), status=2, on=on)
    with open(tmp_path / "zeros", "wb") as file:
        for _ in range(51):
            file.write(os.urandom(1 << 20))
    assert f"{tmp_path} is larger than 50 MB as an archive" in \
        fails("layer", "add", "shared", str(tmp_path), status=2, on=on)


@pytest.mark.parametrize("arguments, sentence", [
    (["layer", "add", "a b", "."], "a layer's name should be 1 to 64 letters, digits, '-' or '_', not 'a b'"),
    (["layer", "add", "a:1", "."], "not 'a:1'"), (["layer", "ls", ""], "not ''"),
    (["layer", "rm", "a:x"], "a layer's version should be a number, not 'x'"), (["layer", "rm", "a:"], "not ''"),
    (["layer", "add", "a"], "an argument is missing: quipu layer add NAME FILE|DIR"),
    (["function", "add", "f", "--dir", ".", "--runtime", "python3.11", "--layer", "a:b"], "should be a number"),
    (["function", "add", "f", "--to-queue", "q", "--layer", "a"], "--layer goes with --dir or --zip"),
    (["function", "add", "f", "--dir", ".", "--runtime", "python3.11", "--layer", "a", "--no-layers"],
     "--layer and --no-layers do not go together"),
    (["function", "add", "f", "--dir", ".", "--runtime", "python3.11", "--layer", "a", "--layer", "a:2"],
     "'a:2' names a layer that was named before"),
    (["function", "add", "f", "--dir", ".", "--runtime", "python3.11",
      *[word for letter in "abcdef" for word in ("--layer", letter)]], "a function can have 5 layers at most"),
])
def test_arguments_that_make_no_sense(arguments, sentence, on):
    assert sentence in fails(*arguments, status=2, on=on)


def test_the_same_files_make_the_same_archive(on, tmp_path, unused_name):
    """Whenever they were written, in whatever order, and with whatever umask."""
    client, hashes = lambda_client(on), set()
    for number, order in enumerate(("ab", "ba"), 1):
        folder = tmp_path / order
        folder.mkdir()
        for name in order:
            (folder / name).write_text(name)
            os.utime(folder / name, (number, number))
            (folder / name).chmod(0o700 if number == 1 else 0o755)
        folder.chmod(0o700 if number == 1 else 0o755)
        output("layer", "add", unused_name, str(folder), on=on)
        hashes.add(client.get_layer_version(LayerName=unused_name, VersionNumber=number)["Content"]["CodeSha256"])
    assert len(hashes) == 1
