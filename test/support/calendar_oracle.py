"""What is due when, worked out a second time: slowly, day by day, with Python's datetime and zoneinfo.

`python3 test/support/calendar_oracle.py` writes the rows of test/unit/calendar_cases.h; test_calendar.py asks for
random ones. Understands what an expression means, not whether it is well-formed.
"""
import calendar
import random
from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()
WEEKDAYS = "SUN MON TUE WED THU FRI SAT".split()
NEVER = "never"


def number(text, names, base):
    return names.index(text.upper()) + base if text.upper() in names else int(text)


def values(field, low, high, names=()):
    """The numbers that a list of values, ranges and steps means."""
    found = set()
    for item in field.split(","):
        text, _, step = item.partition("/")
        if text == "*":
            first, last = low, high
        elif "-" in text:
            first, last = (number(part, names, low) for part in text.split("-"))
        else:
            first = number(text, names, low)
            last = high if step else first
        if last < first:
            last += high - low + 1
        found |= {(n - low) % (high - low + 1) + low for n in range(first, last + 1, int(step or 1))}
    return found


def weekday(day):
    return (day.weekday() + 1) % 7  # Sunday is 0


def nearest_working_day(day):
    """The Friday before a Saturday and the Monday after a Sunday, but never in another month."""
    for step in (0, -1, 1, -2, 2):
        other = day + timedelta(step)
        if other.month == day.month and other.weekday() < 5:
            return other


def day_of_month_fits(field, day):
    last = calendar.monthrange(day.year, day.month)[1]
    for item in field.upper().split(","):
        if item == "L":
            fits = day.day == last
        elif item == "LW":
            fits = nearest_working_day(day.replace(day=last)) == day
        elif item.startswith("L-"):
            fits = day.day == last - int(item[2:])
        elif item.endswith("W"):
            fits = int(item[:-1]) <= last and nearest_working_day(day.replace(day=int(item[:-1]))) == day
        else:
            fits = day.day in values(item, 1, 31)
        if fits:
            return True
    return False


def day_of_week_fits(field, day):
    last = calendar.monthrange(day.year, day.month)[1]
    if "#" in field:
        name, nth = field.split("#")
        return weekday(day) == number(name, WEEKDAYS, 1) - 1 and (day.day - 1) // 7 + 1 == int(nth)
    for item in field.upper().split(","):
        if item == "L":
            fits = weekday(day) == 6
        elif item.endswith("L"):
            fits = weekday(day) == number(item[:-1], WEEKDAYS, 1) - 1 and day.day + 7 > last
        else:
            fits = weekday(day) + 1 in values(item, 1, 7, WEEKDAYS)
        if fits:
            return True
    return False


class Cron:
    def __init__(self, expression):
        self.is_crontab = not expression.startswith("cron(")
        fields = (expression if self.is_crontab else expression[5:-1]).split()
        self.minutes, self.hours = sorted(values(fields[0], 0, 59)), sorted(values(fields[1], 0, 23))
        self.day, self.weekday = fields[2], fields[4]
        self.months = values(fields[3], 1, 12, MONTHS)
        self.years = set(range(1970, 2200)) if self.is_crontab else values(fields[5], 1970, 2199)

    def fits(self, day):
        if day.month not in self.months or day.year not in self.years:
            return False
        if not self.is_crontab:
            return day_of_week_fits(self.weekday, day) if self.day == "?" else day_of_month_fits(self.day, day)
        by_month = day.day in values(self.day, 1, 31)
        by_week = bool({weekday(day), weekday(day) or 7} & values(self.weekday, 0, 7, WEEKDAYS))
        if self.day.startswith("*") or self.weekday.startswith("*"):
            return by_month and by_week
        return by_month or by_week


def change_near(zone, moment):
    """The moment of the one change of the offset within a day and a half of this one."""
    low, high = moment - 130000, moment + 130000
    before = datetime.fromtimestamp(low, zone).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high


def due_of_local(local, zone, leaves_out):
    """When the wall first shows a local time; None when it jumps over it and that is left out."""
    aware = local.replace(tzinfo=zone)
    moment = int(aware.timestamp())
    if datetime.fromtimestamp(moment, zone).replace(tzinfo=None) == local:
        return moment
    return None if leaves_out else change_near(zone, moment)


def cron_due(expression, zone_name, after, count=1, days=20000):
    """The first `count` due times later than the second `after`."""
    cron, zone, found = Cron(expression), ZoneInfo(zone_name or "UTC"), []
    day = datetime.fromtimestamp(after, zone).date() - timedelta(2)
    for _ in range(days):
        if day.year > 2199:
            break
        if cron.fits(day):
            for hour in cron.hours:
                for minute in cron.minutes:
                    local = datetime(day.year, day.month, day.day, hour, minute)
                    due = due_of_local(local, zone, not cron.is_crontab)
                    if due is not None and due > after and due not in found:
                        found.append(due)
                        if len(found) == count:
                            return found
        day += timedelta(1)
    return found + [None]


# ---- rows for the unit tests ----

EXPRESSIONS = [
    "cron(0 9 ? * MON-FRI *)", "cron(15 10 ? * 6L *)", "cron(0 8 1 * ? *)", "cron(0/15 10-16 ? * MON-FRI *)",
    "cron(0 0 L * ? *)", "cron(30 2 * * ? *)", "cron(0 12 15W * ? *)", "cron(0 12 LW * ? *)", "cron(5 6 1W * ? *)",
    "cron(0 0 L-3 * ? *)", "cron(10 10 ? * 3#2 *)", "cron(10 10 ? * FRI#5 *)", "cron(0-15/1 8-8 ? * 2,3,4,5,6,7 *)",
    "cron(1-31/30 1-1 ? * 1,7 *)", "cron(59 23 31 12 ? *)", "cron(0 0 29 2 ? *)", "cron(0 0 29 FEB ? 2028-2199)",
    "cron(*/7 */5 */3 */2 ? *)", "cron(0 22-2 ? * FRI-MON *)", "cron(30 1 ? OCT-MAR SUN *)", "cron(0 * * * ? *)",
    "cron(0,30 2,3 * * ? 2025,2027)", "cron(45 23 31W * ? *)", "cron(0 3 ? * L *)", "cron(* * * * ? *)",
    "cron(0 0 1,15,L * ? *)", "cron(0 0/6 ? 1/3 TUE,THU *)", "0 9 * * 1-5", "30 2 * * *", "*/10 * * * *",
    "0 0 13 * 5", "0 0 */2 * 1", "15 14 1 * *", "0 22 * * 1-5", "5 4 * * sun", "0 0 1,15 * 3", "23 0-20/2 * * *",
    "0 4 8-14 * *", "0 0 * 2 7", "30 1 * * 0",
]
MOMENTS = [
    ("", "2025-06-01T11:59:59"), ("", "2024-02-28T23:59:00"), ("Europe/Berlin", "2025-03-29T12:00:00"),
    ("Europe/Berlin", "2025-03-30T00:59:59"), ("Europe/Berlin", "2025-10-26T00:15:00"),
    ("Europe/Berlin", "2025-10-26T01:10:00"), ("America/New_York", "2025-03-09T06:30:00"),
    ("America/New_York", "2024-11-03T05:30:00"), ("Australia/Lord_Howe", "2024-10-05T15:00:00"),
    ("Australia/Lord_Howe", "2025-04-05T14:59:59"), ("Asia/Kolkata", "2025-01-31T18:29:59"),
    ("Pacific/Apia", "2011-12-30T05:00:00"), ("America/Sao_Paulo", "2018-11-04T02:59:00"),
    ("Europe/Dublin", "2024-12-31T23:58:00"), ("Africa/Casablanca", "2023-03-19T01:30:00"),
    ("Asia/Tehran", "2022-03-21T19:00:00"), ("America/St_Johns", "2011-11-06T02:00:00"),
]


def utc(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp())


def text_of(moment):
    return datetime.fromtimestamp(moment, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S") if moment is not None else NEVER


def write_cases():
    print("/* Expressions, zones, moments (of Greenwich), and the next three due times; written by\n"
          " * test/support/calendar_oracle.py. Included by calendar_timetable.c only. What lies in the future of a\n"
          " * zone is left out: laws change. */\n"
          "// clang-format off\n"
          "static const struct {\n    const char *expression, *zone, *after, *due[3];\n} due_cases[] = {")
    for i, expression in enumerate(EXPRESSIONS):
        for k in range(10):
            zone, moment = MOMENTS[(i * 5 + k) % len(MOMENTS)]
            due = (cron_due(expression, zone, utc(moment), 3) + [None] * 3)[:3]
            if not zone or (due[2] and due[2] < utc("2026-01-01T00:00:00")):
                print(f'    {{"{expression}", "{zone}", "{moment}",\n'
                      f'     {{"{text_of(due[0])}", "{text_of(due[1])}", "{text_of(due[2])}"}}}},')
    print("};\n// clang-format on")


# ---- random expressions ----

def random_field(chance, low, high, names=()):
    def one():
        n = chance.randint(low, high)
        return chance.choice([str(n), names[n - low]]) if names and n - low < len(names) else str(n)

    def item():
        kind = chance.randrange(6)
        if kind == 0:
            return "*"
        if kind == 1:
            return f"*/{chance.randint(1, 20)}"
        if kind == 2:
            return f"{one()}/{chance.randint(1, 20)}"
        if kind == 3 and high < 1000:
            return f"{one()}-{one()}" + (f"/{chance.randint(1, 5)}" if chance.random() < 0.3 else "")
        return one()
    return ",".join(item() for _ in range(chance.choice([1, 1, 1, 2, 3])))


def random_expression(chance):
    minute, hour = random_field(chance, 0, 59), random_field(chance, 0, 23)
    month = chance.choice(["*", "*", random_field(chance, 1, 12, MONTHS)])
    if chance.random() < 0.3:
        day = chance.choice(["*", random_field(chance, 1, 31)])
        week = chance.choice(["*", random_field(chance, 0, 6, WEEKDAYS)])
        return f"{minute} {hour} {day} {month} {week}"
    year = chance.choice(["*", "*", "*", random_field(chance, 2020, 2040)])
    if chance.random() < 0.5:
        week = chance.choice(["*", random_field(chance, 1, 7, WEEKDAYS), f"{chance.randint(1, 7)}L",
                              f"{chance.choice(WEEKDAYS)}#{chance.randint(1, 5)}", "L"])
        return f"cron({minute} {hour} ? {month} {week} {year})"
    day = chance.choice(["*", random_field(chance, 1, 31), "L", "LW", f"L-{chance.randint(1, 30)}",
                         f"{chance.randint(1, 31)}W", f"{chance.randint(1, 31)},L"])
    return f"cron({minute} {hour} {day} {month} ? {year})"


def random_moment(chance):
    return chance.randint(utc("2000-01-01T00:00:00"), utc("2039-12-31T00:00:00"))


if __name__ == "__main__":
    random.seed(1)
    write_cases()
