"""Every example as a newcomer starts it: it says that everything was right, and leaves neither process nor file."""
import os
import subprocess
import sys

import pytest

from support.process import BINARY, ROOT, clean_environment

EXAMPLES = os.path.join(ROOT, "examples")
NAMES = sorted(name for name in os.listdir(EXAMPLES) if os.path.exists(os.path.join(EXAMPLES, name, "run")))

# Runs a command; what it leaves behind becomes a child of this program, which then says so.
NURSE = """
import ctypes, os, subprocess, sys, time
PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
status = subprocess.run(sys.argv[1:]).returncode
left, deadline = True, time.monotonic() + 120
while left and time.monotonic() < deadline:
    try:
        left = os.waitpid(-1, os.WNOHANG) and True
        time.sleep(0.05)
    except ChildProcessError:
        left = False
sys.exit("processes were left: " + open("/proc/self/task/%d/children" % os.getpid()).read() if left else status)
"""


@pytest.fixture
def quick(tmp_path):
    """The environment: the binary under test, a folder for temporary files, and short waits."""
    return clean_environment({"TMPDIR": str(tmp_path), "QUIPU_BIN": os.path.dirname(BINARY), "WINDOW": "1s"})


def run(name, environment, timeout=400):
    return subprocess.run([sys.executable, "-c", NURSE, os.path.join(EXAMPLES, name, "run")], env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=timeout)


@pytest.mark.parametrize("name", NAMES)
def test_example(name, quick, tmp_path):
    ended = run(name, quick)
    assert ended.returncode == 0, ended.stdout
    assert ended.stdout.splitlines()[-1] == name + ": everything was right"
    assert "WRONG" not in ended.stdout and "no python3 here has boto3" not in ended.stdout
    assert os.listdir(tmp_path) == []


def test_an_example_that_goes_wrong_says_so(quick, tmp_path):
    ended = run("counter", {**quick, "QUIPU_URL": "http://127.0.0.1:1"})
    assert ended.returncode == 1 and "WRONG: nothing answers at QUIPU_URL=http://127.0.0.1:1" in ended.stdout
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", NAMES)
def test_example_is_described(name):
    with open(os.path.join(EXAMPLES, "README.md"), encoding="utf-8") as table:
        assert f"| [{name}]({name}) |" in table.read()
    with open(os.path.join(EXAMPLES, name, "README.md"), encoding="utf-8") as page:
        text = page.read()
    assert f"\nexamples/{name}/run" in text
    for words in ("Whose problem.", "How it works.", "By hand"):
        assert f"**{words}**" in text
