"""Tasks that wait can be seen: script/gdb.py has gdb print their stacks."""
import os
import platform
import re
import shutil
import subprocess
import urllib.request

import pytest

from support.process import ROOT, Quipu

SECONDS = 300  # ends only what hangs


def test_gdb_shows_where_tasks_wait():
    """Some always do: those that wait for calls of functions."""
    if not shutil.which("gdb") or platform.machine() != "x86_64":
        pytest.skip("no gdb, or not x86-64")
    with Quipu("--memory") as server:
        seen = subprocess.run(["gdb", "-batch", "-nx", "-p", str(server.process.pid), "-x",
                               os.path.join(ROOT, "script", "gdb.py"), "-ex", "quipu-tasks"], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=SECONDS, check=False, cwd=ROOT)
        with urllib.request.urlopen(server.url + "/metrics", timeout=SECONDS) as reply:
            assert "quipu_tasks_waiting " in reply.read().decode()  # it goes on when gdb has left
    if "ptrace" in seen.stderr or "not permitted" in seen.stderr:
        pytest.skip("no process may be traced here")
    tasks = re.split(r"^task \d+, stack at 0x\w+$", seen.stdout, flags=re.M)[1:]
    assert tasks and f"\n{len(tasks)} tasks wait." in tasks[-1], seen.stdout + seen.stderr
    for task in tasks:
        frames = re.findall(r"^  #\d+ .*? (\w+) \(", task, re.M)
        assert frames[1] == "fiber_wait" and len(frames) > 3, task
