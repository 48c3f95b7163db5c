"""The shell blocks of the documents, as a newcomer pastes them.

Each section runs on a server of its own, which is "localhost:8000" to it. Lines that begin with "# " are what the
command above them prints: "..." stands for anything, a time for any time, and white space does not count. Commands
whose output is not shown must succeed. Output that comes by itself after a while (WAITING) is asked for until it is
there.
"""
import os
import re
import subprocess
import time

import pytest

from support.process import BINARY, ROOT, Quipu, clean_environment

DOCUMENTS = ["doc/patterns.md"]
WAITING = ("quipu function logs ", "curl localhost:8000/v1/history/")
PATIENCE_SECONDS = 120
MARK = "\n-- the next command --\n"
TRAP = "trap 'echo \"failed: $BASH_COMMAND\"' ERR\n"
PRINT_MARK = f"\nprintf '%s' '{MARK}'\n"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z"


def sections():
    """A parameter for each section that has shell blocks: its document and the blocks, by its title."""
    for document in DOCUMENTS:
        with open(os.path.join(ROOT, document), encoding="utf-8") as file:
            text = file.read()
        for section in re.split(r"^## ", text, flags=re.M):
            blocks = re.findall(r"^```sh\n(.*?)^```$", section, flags=re.M | re.S)
            if blocks:
                yield pytest.param(blocks, id=f"{document}: {section.splitlines()[0]}")


def steps(block):
    """(commands, what the last of them prints) in the order of the block."""
    commands, printed, result = [], [], []
    for line in block.splitlines():
        if line.startswith("#"):
            printed.append(line[1:])
            continue
        if printed:
            result.append(("\n".join(commands), "".join(printed)))
            commands, printed = [], []
        commands.append(line)
    return result + [("\n".join(commands), "".join(printed))]


def squeeze(text):
    return re.sub(r"\s", "", re.sub(TIME, "TIME", text))


def matches(printed, expected):
    pattern = ".*".join(re.escape(piece) for piece in squeeze(expected).split("..."))
    return re.fullmatch(pattern, squeeze(printed), flags=re.S) is not None


def shell(script, environment, folder):
    script = script.replace("localhost:8000", environment["SERVER"])
    ended = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    return ended.stdout


def wait_for(commands, expected, environment, folder):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        printed = shell(commands, environment, folder)
        if matches(printed, expected) or time.monotonic() > deadline:
            return printed
        time.sleep(0.1)


@pytest.fixture
def newcomer(tmp_path):
    """The environment of a person with a server, `quipu` in the path, and a curl that shows no progress."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "quipu").symlink_to(BINARY)
    (tmp_path / ".curlrc").write_text("silent\n")
    server = Quipu()
    try:
        yield clean_environment({"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "CURL_HOME": str(tmp_path),
                                 "QUIPU_ON": server.url, "SERVER": server.url.split("//")[1]})
    finally:
        server.kill()
        server.close()


@pytest.mark.parametrize("blocks", sections())
def test_blocks_print_what_the_document_says(blocks, newcomer, tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    for block in blocks:
        told = steps(block)
        script = TRAP + PRINT_MARK.join(commands for commands, _ in told)
        for (commands, expected), printed in zip(told, shell(script, newcomer, folder).split(MARK)):
            last = commands.splitlines()[-1] if commands else ""
            if not expected:
                assert "failed: " not in printed, printed
                continue
            printed = re.sub("^failed: .*$", "", printed, flags=re.M)
            if last.startswith(WAITING) and not matches(printed, expected):
                printed = wait_for(last, expected, newcomer, folder)
            assert matches(printed, expected), f"{commands}\nprinted:\n{printed}\ninstead of:\n{expected}"
