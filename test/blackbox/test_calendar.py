"""When schedules are due, compared with Python's zoneinfo: random expressions, every zone of this machine."""
import os
import random
import subprocess
from datetime import datetime
from zoneinfo import ZoneInfo, available_timezones

import pytest
from support import calendar_oracle
from support.process import ROOT

SEED = int(os.environ.get("CALENDAR_SEED", "20261115"))
EXPRESSIONS = int(os.environ.get("CALENDAR_EXPRESSIONS", "1500"))
ZONES = sorted(available_timezones() - {"localtime", "posixrules"})


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    """Lines in, answers out."""
    program = str(tmp_path_factory.mktemp("calendar") / "driver")
    library = os.path.join(ROOT, "build", "lib")
    subprocess.run(["make", "-s", "-C", ROOT, "build/lib/calendar.a", "build/lib/base.a"], check=True)
    subprocess.run(["cc", "-D_GNU_SOURCE", "-I" + os.path.join(ROOT, "src"), "-o", program,
                    os.path.join(ROOT, "test", "support", "calendar_driver.c"), os.path.join(library, "calendar.a"),
                    os.path.join(library, "base.a"), "-lcrypto", "-lxxhash", "-lm"], check=True)

    def run(lines):
        done = subprocess.run([program], input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=300,
                              check=True)
        return done.stdout.splitlines()
    return run


def differences(questions, answers, expected):
    assert len(answers) == len(questions)
    return [(q, a, e) for q, a, e in zip(questions, answers, expected) if a != e][:10]


def test_offsets_of_every_zone(ask):
    """At random moments, and around each change that Python's own tables tell of by bisection."""
    chance = random.Random(SEED)
    questions, expected = [], []
    for name in ZONES:
        zone = ZoneInfo(name)
        moments = [chance.randint(-3000000000, 7000000000) for _ in range(40)]
        moments += [m for year in range(2020, 2045) for m in changes_of_year(zone, year)]
        for moment in moments:
            questions.append(f"offset\t{name}\t{moment}")
            offset = datetime.fromtimestamp(moment, ZoneInfo("UTC")).astimezone(zone).utcoffset()
            expected.append(str(int(offset.total_seconds())))
    assert len(questions) > 20000
    assert differences(questions, ask(questions), expected) == []


def changes_of_year(zone, year):
    """The last second before and the first after each change of the offset between two months."""
    found = []
    for month in range(1, 13):
        low = int(datetime(year, month, 1, tzinfo=ZoneInfo("UTC")).timestamp())
        high = low + 31 * 86400
        before = datetime.fromtimestamp(low, zone).utcoffset()
        if datetime.fromtimestamp(high, zone).utcoffset() == before:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            if datetime.fromtimestamp(middle, zone).utcoffset() == before:
                low = middle
            else:
                high = middle
        found += [low, high]
    return found


def test_random_expressions(ask):
    chance = random.Random(SEED)
    questions, expected = [], []
    while len(questions) < EXPRESSIONS:
        expression, zone = calendar_oracle.random_expression(chance), chance.choice(ZONES)
        after = calendar_oracle.random_moment(chance)
        due = calendar_oracle.cron_due(expression, zone, after, 3, days=3000)
        if None in due:  # rare ones are looked for in the next test
            continue
        questions.append(f"due\t{zone}\t{expression}\t{after}\t3")
        expected.append(" ".join(map(str, due)))
    assert differences(questions, ask(questions), expected) == []


def test_days_on_which_clocks_change(ask):
    """Expressions of every few minutes, started the evening before."""
    chance = random.Random(SEED)
    questions, expected = [], []
    while len(questions) < 300:
        zone = chance.choice(ZONES)
        changes = changes_of_year(ZoneInfo(zone), chance.randint(2005, 2038))
        if not changes:
            continue
        after = chance.choice(changes) - chance.randint(0, 7200)
        minutes = calendar_oracle.random_field(chance, 0, 59)
        hours = chance.choice(["*", "0-3", "1,2", "2", "3", "1-3/2"])
        expression = chance.choice([f"cron({minutes} {hours} * * ? *)", f"{minutes} {hours} * * *"])
        due = calendar_oracle.cron_due(expression, zone, after, 12, days=60)
        if None in due:
            continue
        questions.append(f"due\t{zone}\t{expression}\t{after}\t12")
        expected.append(" ".join(map(str, due)))
    assert differences(questions, ask(questions), expected) == []


@pytest.mark.parametrize("expression, due", [
    ("cron(0 0 29 2 ? *)", "2028-02-29T00:00:00"),
    ("cron(0 0 ? 2 SUN#5 *)", "2032-02-29T00:00:00"),
    ("cron(0 0 29 2 ? 2090-2199)", "2092-02-29T00:00:00"),
    ("cron(0 0 LW 2 ? 2199)", "2199-02-28T00:00:00"),
    ("cron(30 6 1 JAN ? 2150)", "2150-01-01T06:30:00"),
])
def test_rare_ones(ask, expression, due):
    after = calendar_oracle.utc("2026-01-01T00:00:00")
    assert ask([f"due\t\t{expression}\t{after}\t1"]) == [str(calendar_oracle.utc(due))]


def test_what_never_comes(ask):
    assert ask(["due\tEurope/Berlin\tcron(0 0 30 2 ? *)\t0\t1", "due\t\tcron(0 0 1 1 ? 1999)\t1000000000\t1"]) == \
        ["never", "never"]
