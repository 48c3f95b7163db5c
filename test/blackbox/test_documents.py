"""The shell and Python blocks of the documents, as a newcomer pastes them.

Each section runs on a server of its own, which has port 8000 to it. Lines that begin with "# " are what the
command above them prints: "..." stands for anything, times and UUIDs for any, and white space does not count.
Commands whose output is not shown must succeed. Output that comes by itself after a while (WAITING) is asked for until
it is there.
"""
import os
import re
import subprocess
import sys
import time

import pytest

from support.process import BINARY, ROOT, Quipu, clean_environment

DOCUMENTS = ["README.md", "doc/patterns.md", "doc/functions.md", "doc/backups.md"]
WAITING = ("quipu function logs ", "quipu get ", "curl 'localhost:8000/v1/history/")
PYTHON = f"{sys.executable} - <<'PYTHON'\n%sPYTHON\n"
PATIENCE_SECONDS = 120
# Three seconds, a function's usual time, may be too short where many others want the processors.
PATIENT = ((r"quipu function add \S+ --dir \S+", r"\g<0> --timeout 60s"),
           (r"aws lambda create-function ", r"\g<0>--timeout 60 "))
# Runs files of commands, whose names come by a pipe, one after another in one shell.
SHELL = """
trap 'echo "failed: $BASH_COMMAND"' ERR
while read -r step <&%d; do . "$step" </dev/null; printf '\\0\\n'; done
"""
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?(?:Z|[+-]\d\d:\d\d)"


def sections():
    """A parameter for each section that has shell blocks: the blocks, by its title. The README is read from its
    beginning to its end, so it is one."""
    for document in DOCUMENTS:
        with open(os.path.join(ROOT, document), encoding="utf-8") as file:
            text = file.read()
        for section in [text] if document == "README.md" else re.split(r"^## ", text, flags=re.M):
            blocks = re.findall(r"^```(sh|python)\n(.*?)^```$", section, flags=re.M | re.S)
            blocks = [text if language == "sh" else PYTHON % text for language, text in blocks]
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
    return re.sub(r"\s", "", re.sub(UUID, "UUID", re.sub(TIME, "TIME", text)))


def matches(printed, expected):
    pattern = ".*".join(re.escape(piece) for piece in squeeze(expected).split("..."))
    return re.fullmatch(pattern, squeeze(printed), flags=re.S) is not None


class Shell:
    """One shell for a section, so that a block may use the variables and files of those before it."""

    def __init__(self, environment, folder):
        self.server, self.folder, self.count = environment["SERVER"], folder, 0
        steps_end, self.steps = os.pipe()
        self.process = subprocess.Popen(["bash", "-c", SHELL % steps_end], cwd=folder, env=environment, text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, pass_fds=[steps_end])
        os.close(steps_end)

    def run(self, commands):
        """What the commands print."""
        self.count += 1
        step = self.folder.parent / f"step-{self.count}"
        for written, meant in ((r"(localhost|127\.0\.0\.1):8000", self.server), *PATIENT):
            commands = re.sub(written, meant, commands)
        step.write_text(commands + "\n")
        os.write(self.steps, f"{step}\n".encode())
        printed = ""
        for line in self.process.stdout:
            if line.endswith("\0\n"):
                return printed + line[:-2]
            printed += line
        raise AssertionError(f"the shell ended within:\n{commands}\n{printed}")

    def wait_for(self, command, expected):
        """The same, repeated until it is what is expected, or long enough."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            printed = self.run(command)
            if matches(printed, expected) or time.monotonic() > deadline:
                return printed
            time.sleep(0.1)

    def close(self):
        os.close(self.steps)
        self.process.stdout.close()
        self.process.wait(60)


@pytest.fixture
def newcomer(tmp_path):
    """The environment of a person with a server, `quipu` in the path, and a curl that shows no progress."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "quipu").symlink_to(BINARY)
    (tmp_path / ".curlrc").write_text("silent\n")
    server = Quipu()
    try:
        yield clean_environment({"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "CURL_HOME": str(tmp_path),
                                 "QUIPU_ON": server.url, "SERVER": server.url.split("//")[1],
                                 "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull})
    finally:
        server.kill()
        server.close()


@pytest.mark.parametrize("blocks", sections())
def test_blocks_print_what_the_document_says(blocks, newcomer, tmp_path):
    (tmp_path / "here").mkdir()
    shell = Shell(newcomer, tmp_path / "here")
    try:
        for commands, expected in (step for block in blocks for step in steps(block)):
            last = commands.splitlines()[-1]
            printed = shell.run(commands)
            if expected:  # the last command may be shown to fail
                printed = re.sub(r"(^failed: .*\n)+\Z", "", printed, flags=re.M)
            assert "failed: " not in printed, printed
            if not expected:
                continue
            if last.startswith(WAITING) and not matches(printed, expected):
                printed = shell.wait_for(last, expected)
            assert matches(printed, expected), f"{commands}\nprinted:\n{printed}\ninstead of:\n{expected}"
    finally:
        shell.close()
