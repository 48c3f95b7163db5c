/* Durations and moments: what is one, what is none, and that writing undoes reading. */
#include "calendar/calendar.h"

#include "unit/test.h"

#define COUNT(list) (sizeof list / sizeof *list)

TEST(durations)
{
    static const struct {
        const char *text;
        int64_t ms;
        const char *shortest;
    } rows[] = {
        {"0s", 0, "0s"},           {"250ms", 250, "250ms"},         {"30s", 30000, "30s"},
        {"5m", 300000, "5m"},      {"1h", 3600000, "1h"},           {"7d", 604800000, "7d"},
        {"90s", 90000, "90s"},     {"1m30s", 90000, "90s"},         {"1h30m", 5400000, "90m"},
        {"24h", 86400000, "1d"},   {"1d1h", 90000000, "25h"},       {"1s500ms", 1500, "1500ms"},
        {"60m", 3600000, "1h"},    {"1000ms", 1000, "1s"},          {"1h0m5s", 3605000, "1h5s"},
        {"007d", 604800000, "7d"}, {"3d7h59m", 287940000, "4799m"}, {"1d2h3m4s5ms", 93784005, "93784s5ms"},
    };
    struct arena arena = {0};
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t ms = -1;
        CHECK(duration_parse(slice_of(rows[i].text), INT64_MAX, &ms));
        CHECK_INT(ms, rows[i].ms);
        CHECK_TEXT(duration_text(&arena, ms), rows[i].shortest);
        int64_t again = -1;
        CHECK(duration_parse(duration_text(&arena, ms), ms, &again) && again == ms);
        if (ms) CHECK(!duration_parse(slice_of(rows[i].text), ms - 1, &again));
    }
    arena_free(&arena);
}

TEST(what_is_no_duration)
{
    static const char *const bad[] = {"",
                                      "5",
                                      "s",
                                      "5 s",
                                      "-5s",
                                      "5S",
                                      "5min",
                                      "1.5h",
                                      "30s1m",
                                      "1m1m",
                                      "5s ",
                                      " 5s",
                                      "99999999999999999999s",
                                      "9223372036854775807d",
                                      "1hm",
                                      "5x"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        int64_t ms = 77;
        if (duration_parse(slice_of(bad[i]), INT64_MAX, &ms))
            test_failed(__FILE__, __LINE__, "'%s' was taken as %lld ms", bad[i], (long long)ms);
        CHECK_INT(ms, 77);
    }
}

TEST(moments)
{
    static const struct {
        const char *text;
        int64_t ms;
        const char *written;
    } rows[] = {
        {"1970-01-01T00:00:00Z", 0, "1970-01-01T00:00:00.000Z"},
        {"2026-11-15T03:42:06Z", 1794714126000, "2026-11-15T03:42:06.000Z"},
        {"2026-11-15T03:42:06.25Z", 1794714126250, "2026-11-15T03:42:06.250Z"},
        {"2026-11-15T03:42:06.2509999Z", 1794714126250, "2026-11-15T03:42:06.250Z"},
        {"2026-11-15T04:42:06+01:00", 1794714126000, "2026-11-15T03:42:06.000Z"},
        {"2026-11-14T22:12:06-0530", 1794714126000, "2026-11-15T03:42:06.000Z"},
        {"2026-11-15T03:42:06", 1794714126000, "2026-11-15T03:42:06.000Z"},
        {"1969-12-31T23:59:59.999Z", -1, "1969-12-31T23:59:59.999Z"},
        {"0000-01-01T00:00:00Z", -62167219200000, "0000-01-01T00:00:00.000Z"},
        {"9999-12-31T23:59:59.999Z", 253402300799999, "9999-12-31T23:59:59.999Z"},
        {"2000-02-29T12:00:00Z", 951825600000, "2000-02-29T12:00:00.000Z"},
    };
    struct arena arena = {0};
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t ms = -77;
        CHECK(moment_parse(slice_of(rows[i].text), &ms));
        CHECK_INT(ms, rows[i].ms);
        CHECK_TEXT(moment_text(&arena, ms), rows[i].written);
    }
    arena_free(&arena);
}

TEST(what_is_no_moment)
{
    static const char *const bad[] = {"",
                                      "2026-11-15",
                                      "2026-11-15 03:42:06",
                                      "2026-11-15T03:42Z",
                                      "2026-11-15T03:42:06z",
                                      "2026-11-15T03:42:06.Z",
                                      "2026-11-15T03:42:06Z ",
                                      "2026-11-15T03:42:06+1",
                                      "2026-11-15T03:42:06+24:00",
                                      "2026-11-15T03:42:06+01:60",
                                      "2026-02-29T00:00:00Z",
                                      "2100-02-29T00:00:00Z",
                                      "2026-1-15T03:42:06Z",
                                      "2026-11-15T24:00:00Z",
                                      "2026-11-15T23:59:60Z"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        int64_t ms = 77;
        if (moment_parse(slice_of(bad[i]), &ms)) test_failed(__FILE__, __LINE__, "'%s' was taken", bad[i]);
        CHECK_INT(ms, 77);
    }
}

/* Every day of four centuries and some: writing undoes reading, and days follow each other. */
TEST(every_day)
{
    struct arena arena = {0};
    for (int64_t day = -100000; day < 100000; day += 7) {
        int64_t ms = day * 86400000 + 12345678, again = 0;
        CHECK(moment_parse(moment_text(&arena, ms), &again) && again == ms);
        arena_reset(&arena);
    }
    arena_free(&arena);
}
