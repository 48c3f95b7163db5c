/* Schedule expressions: which are taken, what is said of the others, and when they are due; the due times of
 * hundreds of expressions, zones and moments were worked out by Python. */
#include "calendar/calendar.h"

#include "unit/calendar_cases.h"
#include "unit/test.h"

#define COUNT(list) (sizeof list / sizeof *list)

static int64_t moment(const char *text)
{
    int64_t ms = -1;
    CHECK(moment_parse(slice_of(text), &ms));
    return ms;
}

static const struct zone *zone_named(struct arena *arena, const char *name)
{
    char error[256] = "";
    const struct zone *zone = zone_load(arena, slice_of(name), error, sizeof error);
    if (!zone) test_failed(__FILE__, __LINE__, "%s", error);
    return zone;
}

static struct timetable *parse(struct arena *arena, const char *expression, const char *zone, int64_t anchor)
{
    char error[512] = "";
    struct timetable *timetable = timetable_parse(arena, slice_of(expression), zone_named(arena, zone),
                                                  anchor, error, sizeof error);
    if (!timetable) test_failed(__FILE__, __LINE__, "%s", error);
    return timetable;
}

/* ---- due times ---- */

static void check_case(size_t i)
{
    struct arena arena = {0};
    struct timetable *timetable = parse(&arena, due_cases[i].expression, due_cases[i].zone, 0);
    int64_t at = moment(due_cases[i].after);
    for (size_t k = 0; timetable && k < 3; k++) {
        int64_t due = timetable_next(timetable, at);
        if (due != moment(due_cases[i].due[k]))
            test_failed(__FILE__, __LINE__, "%s in %s after %s: %.*s, expected %s", due_cases[i].expression,
                        due_cases[i].zone, due_cases[i].after, SLICE_ARG(moment_text(&arena, due)),
                        due_cases[i].due[k]);
        CHECK_INT(timetable_last(timetable, due), due);
        CHECK_INT(timetable_next(timetable, due - 1), due);
        CHECK(timetable_last(timetable, due - 1) <= at);
        at = due;
    }
    arena_free(&arena);
}

TEST(due_times_as_python_has_them)
{
    CHECK(COUNT(due_cases) > 300);
    for (size_t i = 0; i < COUNT(due_cases); i++) check_case(i);
}

TEST(what_lies_between_two_due_times)
{
    struct arena arena = {0};
    struct timetable *timetable = parse(&arena, "cron(0 9 ? * MON *)", "Europe/Berlin", 0);
    int64_t monday = moment("2025-06-02T07:00:00"), next = moment("2025-06-09T07:00:00");
    for (int64_t at = monday; at < next; at += 3600000 * 5) {
        CHECK_INT(timetable_next(timetable, at), next);
        CHECK_INT(timetable_last(timetable, at), monday);
    }
    CHECK_INT(timetable_next(timetable, monday + 1), next);
    CHECK_INT(timetable_last(timetable, next - 1), monday);
    arena_free(&arena);
}

/* 2:30 on the day without it, and on the day with two of them. */
TEST(daylight_saving)
{
    struct arena arena = {0};
    struct timetable *service = parse(&arena, "cron(30 2 * * ? *)", "Europe/Berlin", 0);
    struct timetable *crontab = parse(&arena, "30 2 * * *", "Europe/Berlin", 0);
    struct timetable *once = parse(&arena, "at(2025-03-30T02:30:00)", "Europe/Berlin", 0);
    int64_t before = moment("2025-03-29T12:00:00"), jump = moment("2025-03-30T01:00:00");
    CHECK_INT(timetable_next(service, before), moment("2025-03-31T00:30:00"));
    CHECK_INT(timetable_next(crontab, before), jump);
    CHECK_INT(timetable_next(crontab, jump), moment("2025-03-31T00:30:00"));
    CHECK_INT(timetable_next(once, before), jump);
    CHECK_INT(timetable_last(service, jump), moment("2025-03-29T01:30:00"));
    CHECK_INT(timetable_last(crontab, jump), jump);

    int64_t first = moment("2025-10-26T00:30:00"), second = moment("2025-10-26T01:30:00");
    CHECK_INT(timetable_next(service, first - 1), first);
    CHECK_INT(timetable_next(service, first), moment("2025-10-27T01:30:00"));
    CHECK_INT(timetable_last(service, second), first);
    CHECK_INT(timetable_last(crontab, second), first);
    arena_free(&arena);
}

/* An hourly schedule leaves out the hour that comes a second time. */
TEST(an_hour_that_comes_twice)
{
    struct arena arena = {0};
    struct timetable *hourly = parse(&arena, "cron(0 * * * ? *)", "America/New_York", 0);
    int64_t one = moment("2024-11-03T05:00:00"), two = moment("2024-11-03T07:00:00");
    CHECK_INT(timetable_next(hourly, one), two);
    for (int64_t at = one; at < two; at += 60000) {
        CHECK_INT(timetable_last(hourly, at), one);
        CHECK_INT(timetable_next(hourly, at), two);
    }
    arena_free(&arena);
}

TEST(rates_count_from_their_anchor)
{
    struct arena arena = {0};
    struct timetable *rate = parse(&arena, "rate(5 minutes)", "", 1000);
    CHECK_INT(timetable_next(rate, -1), 1000);
    CHECK_INT(timetable_next(rate, 999), 1000);
    CHECK_INT(timetable_next(rate, 1000), 301000);
    CHECK_INT(timetable_next(rate, 300999), 301000);
    CHECK_INT(timetable_next(rate, 301000), 601000);
    CHECK_INT(timetable_last(rate, 999), -1);
    CHECK_INT(timetable_last(rate, 1000), 1000);
    CHECK_INT(timetable_last(rate, 300999), 1000);
    CHECK_INT(timetable_last(rate, 301000), 301000);
    CHECK(!timetable_is_once(rate));
    CHECK_INT(timetable_next(parse(&arena, "rate(1 hour)", "", 0), 0), 3600000);
    CHECK_INT(timetable_next(parse(&arena, "rate(2 hours)", "", 0), 0), 7200000);
    CHECK_INT(timetable_next(parse(&arena, "rate(1 minute)", "", 0), 0), 60000);
    CHECK_INT(timetable_next(parse(&arena, "rate(1 minutes)", "", 0), 0), 60000);
    CHECK_INT(timetable_next(parse(&arena, "rate(7 days)", "", 0), 0), 604800000);
    CHECK_INT(timetable_next(parse(&arena, "rate(1 day)", "Europe/Berlin", 0), 1743202800000), 1743206400000);
    CHECK(timetable_next(parse(&arena, "rate(1000000000 days)", "", 0), INT64_MAX - 1) == CALENDAR_NEVER);
    arena_free(&arena);
}

TEST(a_single_time)
{
    struct arena arena = {0};
    struct timetable *once = parse(&arena, "at(2026-11-15T09:00:00)", "Asia/Kolkata", 0);
    int64_t due = moment("2026-11-15T03:30:00");
    CHECK(timetable_is_once(once));
    CHECK_INT(timetable_next(once, 0), due);
    CHECK_INT(timetable_next(once, due - 1), due);
    CHECK(timetable_next(once, due) == CALENDAR_NEVER);
    CHECK_INT(timetable_last(once, due - 1), -1);
    CHECK_INT(timetable_last(once, due), due);
    CHECK_INT(timetable_last(once, INT64_MAX), due);
    arena_free(&arena);
}

TEST(what_never_comes)
{
    static const char *const never[] = {"cron(0 0 30 2 ? *)", "cron(0 0 31 4,6,9,11 ? *)",
                                        "cron(0 0 ? 2 MON#5 2025)", "cron(* * * * ? 1999)", "0 0 31 2 *"};
    struct arena arena = {0};
    for (size_t i = 0; i < COUNT(never); i++) {
        struct timetable *timetable = parse(&arena, never[i], "Europe/Berlin", 0);
        CHECK(timetable_next(timetable, moment("2020-01-01T00:00:00")) == CALENDAR_NEVER);
    }
    CHECK_INT(timetable_last(parse(&arena, "cron(0 0 30 2 ? *)", "", 0), moment("2030-01-01T00:00:00")), -1);
    CHECK_INT(timetable_last(parse(&arena, "cron(0 0 1 1 ? 2050)", "", 0), moment("2030-01-01T00:00:00")),
              -1);
    struct timetable *minutely = parse(&arena, "cron(* * * * ? *)", "", 0);
    CHECK(timetable_next(minutely, moment("2199-12-31T23:59:00")) == CALENDAR_NEVER);
    CHECK_INT(timetable_last(minutely, INT64_MAX / 2), moment("2199-12-31T23:59:00"));
    CHECK_INT(timetable_next(minutely, -86400000), 0);
    arena_free(&arena);
}

/* ---- what is taken and what is not ---- */

TEST(expressions_that_are_taken)
{
    static const char *const good[] = {
        "cron(15 10 * * ? *)",
        "cron(0 18 ? * MON-FRI *)",
        "cron(0 8 1 * ? *)",
        "cron(0/10 * ? * MON-FRI *)",
        "cron(0/5 8-17 ? * MON-FRI *)",
        "cron(0/30 20-2 ? * MON-FRI *)",
        "cron(30-30 13-13 ? * 2,4,6 *)",
        "cron(0 0 ? * mon-fri *)",
        "cron(0 0 ? * FRIL *)",
        "cron(0 0 ? * L *)",
        "cron(0 0 l * ? *)",
        "cron(0 0 lw * ? *)",
        "cron(0 0 1,15W,L-2 * ? 2030-2040/2)",
        "cron(0/60 * * * ? *)",
        "cron(0  12   * * ? *)",
        "cron(* * ? * SAT-SUN *)",
        "cron(00 09 01 01 ? *)",
        "rate(1 minute)",
        "rate(100 hours)",
        "rate(1000000000 minutes)",
        "at(2026-02-28T23:59:59)",
        "at(9999-12-31T23:59:59)",
        "at(1970-01-01T00:00:00)",
        "* * * * *",
        "0 0 1 1 0",
        "0 0 1 JAN sun",
        "*/5 1-3,5 * * 1-5,7",
    };
    struct arena arena = {0};
    for (size_t i = 0; i < COUNT(good); i++) CHECK(parse(&arena, good[i], "", 0));
    arena_free(&arena);
}

TEST(expressions_that_are_not)
{
    static const char *const bad[] = {
        "",
        " ",
        "rate",
        "rate(",
        "rate()",
        "rate(10)",
        "rate(10 seconds)",
        "rate(10 years)",
        "rate(0 minutes)",
        "rate(10 minutess)",
        "rate(foo minutes)",
        "rate(-10 minutes)",
        "rate( 10 minutes )",
        " rate(10 minutes)",
        "rate(10 minutes) ",
        "rate(1.5 hours)",
        "rate(10minutes)",
        "rate(10 Minutes)",
        "rate(1000000001 days)",
        "rate(5 minutes 3)",
        "RATE(5 minutes)",
        "at(2021-12-31T23:59:59Z)",
        "at(2021-12-31)",
        "at()",
        "at(2021-02-29T00:00:00)",
        "at(2021-13-01T00:00:00)",
        "at(2021-00-01T00:00:00)",
        "at(2021-01-01T24:00:00)",
        "at(2021-01-01T00:60:00)",
        "at(2021-01-01T00:00:60)",
        "at(2021-01-01 00:00:00)",
        "at(21-01-01T00:00:00)",
        "at(1969-12-31T23:59:59)",
        "cron()",
        "cron(INVALID)",
        "cron(0 1 * * * *)",
        "cron(0 1 ? * ? *)",
        "cron(0 1 1 * 2 *)",
        "cron(7 20 * * NOT *)",
        "cron(0 dummy ? * MON-FRI *)",
        "cron(71 8 1 * ? *)",
        "cron(0 24 1 * ? *)",
        "cron(0 0 0 * ? *)",
        "cron(0 0 32 * ? *)",
        "cron(0 0 1 0 ? *)",
        "cron(0 0 1 13 ? *)",
        "cron(0 0 ? * 0 *)",
        "cron(0 0 ? * 8 *)",
        "cron(0 0 1 * ? 1969)",
        "cron(0 0 1 * ? 2200)",
        "cron(0 0 1 * ?)",
        "cron(0 0 1 * ? * *)",
        "cron( 0 0 1 * ? *)",
        "cron(0 0 1 * ? * )",
        "cron(0 0 1 * ? *) ",
        "cron(*/0 * * * ? *)",
        "cron(1- * * * ? *)",
        "cron(-1 * * * ? *)",
        "cron(1,,2 * * * ? *)",
        "cron(, * * * ? *)",
        "cron(1/ * * * ? *)",
        "cron(1/2/3 * * * ? *)",
        "cron(1-2-3 * * * ? *)",
        "cron(0 0 0W * ? *)",
        "cron(0 0 32W * ? *)",
        "cron(0 0 W * ? *)",
        "cron(0 0 L-0 * ? *)",
        "cron(0 0 L-31 * ? *)",
        "cron(0 0 ? * 3#0 *)",
        "cron(0 0 ? * 3#6 *)",
        "cron(0 0 ? * #2 *)",
        "cron(0 0 ? * 3#1,6#3 *)",
        "cron(0 0 ? * 8L *)",
        "cron(0 0 ? * MONDAY *)",
        "cron(0 0 ? JANUARY * *)",
        "cron(0 0 1 * ? 2030-2025)",
        "cron(? 0 1 * ? *)",
        "cron(0 0 1-5W * ? *)",
        "cron(0 0 10W-12 * ? *)",
        "cron(00000 0 1 * ? *)",
        "cron(0 0 1 * ? *",
        "Cron(0 0 1 * ? *)",
        "* * * *",
        "* * * * * *",
        "0 0 ? * MON",
        "0 0 L * *",
        "60 0 * * *",
        "0 0 * * 8",
        " * * * * *",
        "* * * * * ",
        "@daily",
        "at(2026-11-15T09:00:00)x",
        "cron(\t0 0 1 * ? *)",
    };
    struct arena arena = {0};
    for (size_t i = 0; i < COUNT(bad); i++) {
        char error[512] = "", start[256];
        if (timetable_parse(&arena, slice_of(bad[i]), NULL, 0, error, sizeof error))
            test_failed(__FILE__, __LINE__, "'%s' was taken", bad[i]);
        snprintf(start, sizeof start, "Invalid Schedule Expression %s. ", bad[i]);
        CHECK(slice_starts(slice_of(error), slice_of(start)));
        CHECK(strlen(error) > strlen(start) && error[strlen(error) - 1] == '.');
    }
    arena_free(&arena);
}

TEST(sentences)
{
    static const char *const rows[][2] = {
        {"cron(0 1 * * * *)", "Exactly one of the day of the month and the day of the week should be ?."},
        {"cron(61 1 * * ? *)", "The minutes should be 0 to 59."},
        {"cron(0 1 * * ?)",
         "It should have six fields: minutes, hours, day of month, month, day of week, year."},
        {"rate(5 fortnights)", "A rate's unit should be minute, minutes, hour, hours, day or days."},
        {"every day", "It should be rate(...), cron(...), at(...), or the five fields of a crontab line."},
        {"0 0 * * 9", "The day of the week should be 0 to 7 or SUN to SAT."},
        {"at(tomorrow)", "A single time is like at(2026-11-15T09:00:00); its zone stands beside it."},
    };
    struct arena arena = {0};
    for (size_t i = 0; i < COUNT(rows); i++) {
        char error[512] = "", expected[512];
        CHECK(!timetable_parse(&arena, slice_of(rows[i][0]), NULL, 0, error, sizeof error));
        snprintf(expected, sizeof expected, "Invalid Schedule Expression %s. %s", rows[i][0], rows[i][1]);
        CHECK_TEXT(slice_of(error), expected);
    }
    arena_free(&arena);
}
