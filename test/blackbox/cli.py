"""Running quipu's commands, plain or on a terminal of their own."""
import json
import os
import pty
import select
import subprocess
import time

from support.process import BINARY, clean_environment, run_quipu

TIMEOUT = 240  # only what hangs takes so long
started = []


def quipu(*arguments, on=None, stdin=None, env=None, timeout=TIMEOUT):
    """Runs a command; `on` is a server's URL or a folder."""
    environment = dict(env or {})
    if on:
        environment["QUIPU_ON"] = str(on)
    return run_quipu(*arguments, env=environment, timeout=timeout, input=stdin)


def output(*arguments, **options):
    """What a command prints; it must succeed and complain of nothing."""
    result = quipu(*arguments, **options)
    assert result.returncode == 0, (arguments, result.stderr)
    return result.stdout


def items(*arguments, **options):
    """The JSON lines that a command prints."""
    return [json.loads(line) for line in output(*arguments, **options).splitlines()]


def start(*arguments, on=None, **options):
    """A command that goes on running, at most until its test ends."""
    environment = clean_environment({"QUIPU_ON": str(on)} if on else {})
    started.append(subprocess.Popen([BINARY, *arguments], env=environment, text=True, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, **options))
    return started[-1]


def end_started():
    while started:
        process = started.pop()
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def on_terminal(*arguments, on=None, typed="", columns=80, timeout=TIMEOUT, env=None):
    """Runs a command with a terminal as its input and outputs. Answers the exit status and everything it showed. What
    is typed may be a list of pairs: each text is typed when what stands before it was shown."""
    environment = clean_environment({"COLUMNS": str(columns), "TERM": "xterm", **(env or {})})
    if on:
        environment["QUIPU_ON"] = str(on)
    leader, follower = pty.openpty()
    process = subprocess.Popen([BINARY, *arguments], env=environment, stdin=follower, stdout=follower, stderr=follower,
                               close_fds=True)
    os.close(follower)
    steps = [("", typed)] if isinstance(typed, str) else list(typed)
    shown, seen, end = b"", 0, time.monotonic() + timeout
    while time.monotonic() < end:
        while steps and (found := shown.find(steps[0][0].encode(), seen)) >= 0:
            seen = found + len(steps[0][0].encode())
            os.write(leader, steps.pop(0)[1].encode())
        if not select.select([leader], [], [], 0.1)[0]:
            if process.poll() is not None:
                break
            continue
        try:
            piece = os.read(leader, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(leader)
    try:
        status = process.wait(timeout)
    finally:
        process.kill()
    return status, shown.decode().replace("\r\n", "\n")
