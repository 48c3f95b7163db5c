"""The engines that patterns, functions, triggers and schedules are tested on, and which tests run on them today.

A test whose fixture or parameter is named like an engine other than the embedded one is a test on another engine. With
`script/test --long` (ENGINE_SHARE=100) all of them run; else a share of them that changes with the day: ENGINE_SEED, a
number, stands for the day and repeats a run. The run prints both.

What an engine cannot do yet is listed in REFUSED, and nowhere else. Such a test must fail with the sentence that
users get; when it does anything else, also when it begins to work, it has failed."""
import contextlib
import datetime
import hashlib
import os
import re
import subprocess

from support.process import ROOT, DynamoLocal, Quipu, clean_environment

OTHERS = ["quipu", "dynamodb local", "alternator"]
ENGINES = ["embedded", *OTHERS]
SHARE = int(os.environ.get("ENGINE_SHARE", "30"))
ALWAYS = ["test_remote.py"]  # the door to other engines itself
KEYS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}

# Engine, tests (a regular expression that matches a whole id without its file's folder), and why.
REFUSED = []


def database(engine, *arguments):
    """The data of an engine other than the embedded one; arguments are those of a Quipu's. Streams of the imitation are
    late by a second, not by ten, and its indexes not at all: many tests look at once for what they have written.
    test_alternator.py and test/crash/patterns have late indexes."""
    if engine == "quipu":
        return Quipu("--memory", "--no-functions", *arguments)
    if engine == "alternator":
        hookless = [one for one in arguments if one != "--test-hooks"]
        return Quipu("--imitate", "alternator,stream-delay=1000,index-delay=0", *hookless)
    return DynamoLocal()


@contextlib.contextmanager
def server_on(engine, *arguments):
    """A server that has its data in an engine, and the URL of that."""
    if engine == "embedded":
        with Quipu("--memory", *arguments) as server:
            yield server, server.url
        return
    with database(engine) as data, Quipu("--on", data.url, *arguments, env=KEYS) as server:
        yield server, data.url


# ---- the unit tests of the patterns ----

# Of their names; the explorer's need a database in memory, and leave themselves out.
UNIT_PARTS = ["counter", "lease_", "once_", "limit_", "document_", "board_", "work_", "job_", "group_", "period_",
              "log_", "names_", "history_", "batch_of_", "the_original_"]

# Engine, and the tests that fail there for the reason that stands in REFUSED.
UNIT_REFUSED = {"alternator": set()}
# Engine, and parts of which nothing works there yet, each with a test that would.
UNIT_PARTS_REFUSED = {"alternator": {}}


def unit_tests(engine, part):
    """Runs them on an engine."""
    binary = os.path.join(ROOT, "build", "unit", "pattern")
    if not os.path.exists(binary):
        subprocess.run(["make", "-s", "build/unit/pattern"], cwd=ROOT, check=True, capture_output=True)
    probe = UNIT_PARTS_REFUSED.get(engine, {}).get(part)
    reads_at_once = engine == "alternator" and part == "history_"  # what it has written, by its stream
    with Quipu("--imitate", "alternator,stream-delay=0,index-delay=0") if reads_at_once else database(engine) as other:
        run = subprocess.run([binary, probe or part], env=clean_environment({"PATTERNS_ON": other.url}), text=True,
                             timeout=590, capture_output=True)
    failed = set(re.findall("^FAILED (\\w+)$", run.stderr, re.M))
    if probe:
        assert failed, f"{probe} works on {engine} now: take {part} out of UNIT_PARTS_REFUSED"
        return
    expected = {name for name in UNIT_REFUSED.get(engine, ()) if part in name}
    assert re.search("^[0-9]+ passed, [0-9]+ failed", run.stdout, re.M), run.stdout + run.stderr
    assert not failed - expected, run.stderr
    assert not expected - failed, f"these work on {engine} now: take them out of UNIT_REFUSED: {expected - failed}"


# ---- which tests run ----

def today():
    """The same for all processes of a run, also at midnight."""
    return os.environ.setdefault("ENGINE_SEED", datetime.date.today().strftime("%Y%m%d"))


def engine_of(item):
    """None: the embedded one, or no engine at all."""
    is_parametrized = hasattr(item, "callspec") and item.path.name not in ALWAYS
    values = item.callspec.params.values() if is_parametrized else ()
    return next((value for value in values if isinstance(value, str) and value in OTHERS), None)


def is_of_today(item):
    number = int.from_bytes(hashlib.sha256(f"{today()} {item.nodeid}".encode()).digest()[:4], "big")
    return number % 100 < SHARE


def refusal_of(item):
    name = item.path.name + "::" + item.nodeid.split("::", 1)[1]
    engine = engine_of(item)
    return next((why for other, tests, why in REFUSED if other == engine and re.fullmatch(tests, name)), None)


def choose(config, items):
    """Takes the tests on other engines that are not of today out of the list."""
    away = [item for item in items if engine_of(item) and not is_of_today(item)]
    if away:
        left = set(away)
        items[:] = [item for item in items if item not in left]
        config.hook.pytest_deselected(items=away)


def header():
    return f"tests on other engines: {SHARE} of 100 (ENGINE_SHARE), chosen by ENGINE_SEED={today()}"


# ---- what is expected to be refused ----

SENTENCES = re.compile(r"ScyllaDB Alter|work on it;|\b501\b")


def judge(item, report):
    """Turns an expected refusal into a result of its own, and anything else where one was expected into a failure."""
    why = refusal_of(item)
    if not why or report.when == "teardown":
        return
    if report.failed and SENTENCES.search(report.longreprtext):
        report.outcome, report.wasxfail = "skipped", why
    elif report.when == "call" and report.passed:
        report.outcome = "failed"
        report.longrepr = (f"{item.nodeid} works on this engine now: take it out of REFUSED in test/support/engines.py "
                           f"(where it stands because: {why}), and say so in doc/engines.md")
