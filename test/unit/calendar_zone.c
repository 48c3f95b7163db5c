/* Zones: the machine's files, files that are made here byte by byte, and broken ones. */
#include "calendar/calendar.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "unit/test.h"

#define COUNT(list) (sizeof list / sizeof *list)

/* ---- files made here ---- */

struct change {
    int64_t at_s;
    unsigned char kind;
};

static void put_head(struct buf *out, char version, uint32_t leaps, uint32_t times, uint32_t types)
{
    const uint32_t counts[] = {0, 0, leaps, times, types, 4};
    buf_text(out, "TZif");
    buf_byte(out, (unsigned char)version);
    for (int i = 0; i < 15; i++) buf_byte(out, 0);
    for (size_t i = 0; i < COUNT(counts); i++) buf_u32(out, counts[i]);
}

/* A file with these changes and offsets; the first block, of the old form, is empty. */
static void put_file(struct buf *out, const struct change *changes, uint32_t count, const int32_t *offsets,
                     uint32_t types, const char *footer)
{
    put_head(out, '2', 0, 0, 1);
    for (int i = 0; i < 10; i++) buf_byte(out, 0);
    put_head(out, '2', 0, count, types);
    for (uint32_t i = 0; i < count; i++) buf_u64(out, (uint64_t)changes[i].at_s);
    for (uint32_t i = 0; i < count; i++) buf_byte(out, changes[i].kind);
    for (uint32_t i = 0; i < types; i++) {
        buf_u32(out, (uint32_t)offsets[i]);
        buf_byte(out, 0);
        buf_byte(out, 0);
    }
    buf_text(out, "LMT");
    buf_byte(out, 0);
    buf_printf(out, "\n%s\n", footer);
}

static struct zone *zone_with_footer(struct arena *arena, const char *footer)
{
    struct buf file = {0};
    char error[256] = "";
    put_file(&file, NULL, 0, (const int32_t[]){0}, 1, footer);
    struct zone *zone = zone_parse(arena, buf_view(&file), error, sizeof error);
    buf_free(&file);
    return zone;
}

static int64_t moment(const char *text)
{
    int64_t ms = -1;
    CHECK(moment_parse(slice_of(text), &ms));
    return ms;
}

TEST(zone_table)
{
    static const struct change changes[] = {{1000, 1}, {2000, 2}, {3000, 1}};
    static const int32_t offsets[] = {60, 3600, -7200};
    struct arena arena = {0};
    struct buf file = {0};
    char error[256] = "";
    put_file(&file, changes, 3, offsets, 3, "");
    struct zone *zone = zone_parse(&arena, buf_view(&file), error, sizeof error);
    CHECK(zone);
    CHECK_INT(zone_offset_s(zone, -1), 60);
    CHECK_INT(zone_offset_s(zone, 999999), 60);
    CHECK_INT(zone_offset_s(zone, 1000000), 3600);
    CHECK_INT(zone_offset_s(zone, 2000000), -7200);
    CHECK_INT(zone_offset_s(zone, 2999999), -7200);
    CHECK_INT(zone_offset_s(zone, 3000000), 3600);
    CHECK_INT(zone_offset_s(zone, INT64_MAX), 3600);
    CHECK_INT(zone_offset_s(zone, INT64_MIN), 60);
    /* Every shorter file is cut off somewhere, and says so instead of reading on. */
    for (size_t len = 0; len < file.len - 1; len++)
        CHECK(!zone_parse(&arena, (struct slice){file.data, len}, error, sizeof error));
    buf_free(&file);
    arena_free(&arena);
}

TEST(zone_rules)
{
    static const struct {
        const char *footer, *at;
        int32_t offset;
    } rows[] = {
        {"UTC0", "2040-07-01T00:00:00", 0},
        {"CET-1CEST,M3.5.0,M10.5.0/3", "2050-03-27T00:59:59", 3600},
        {"CET-1CEST,M3.5.0,M10.5.0/3", "2050-03-27T01:00:00", 7200},
        {"CET-1CEST,M3.5.0,M10.5.0/3", "2050-10-30T00:59:59", 7200},
        {"CET-1CEST,M3.5.0,M10.5.0/3", "2050-10-30T01:00:00", 3600},
        {"EST5EDT,M3.2.0,M11.1.0", "2060-03-14T06:59:59", -18000},
        {"EST5EDT,M3.2.0,M11.1.0", "2060-03-14T07:00:00", -14400},
        {"EST5EDT,M3.2.0,M11.1.0", "2060-11-07T05:59:59", -14400},
        {"EST5EDT,M3.2.0,M11.1.0", "2060-11-07T06:00:00", -18000},
        {"AEST-10AEDT,M10.1.0,M4.1.0/3", "2041-01-01T00:00:00", 39600},
        {"AEST-10AEDT,M10.1.0,M4.1.0/3", "2041-07-01T00:00:00", 36000},
        {"<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", "2041-12-01T00:00:00", 39600},
        {"<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", "2041-06-01T00:00:00", 37800},
        {"IST-1GMT0,M10.5.0,M3.5.0/1", "2050-07-01T00:00:00", 3600},
        {"IST-1GMT0,M10.5.0,M3.5.0/1", "2050-12-01T00:00:00", 0},
        {"<-0330>3:30", "2050-12-01T00:00:00", -12600},
        {"AAA3BBB,J60,J300", "2024-03-01T04:59:59", -10800},
        {"AAA3BBB,J60,J300", "2024-03-01T05:00:00", -7200},
        {"AAA3BBB,J60,J300", "2023-03-01T05:00:00", -7200},
        {"AAA3BBB,59,300", "2024-02-29T05:00:00", -7200},
        {"AAA3BBB,59,300", "2023-03-01T04:59:59", -10800},
        {"XXX3EDT4,0/0,J365/23", "2045-06-01T00:00:00", -14400},
        {"XXX3EDT4,0/0,J365/23", "2046-01-01T02:59:59", -14400},
        {"XXX3EDT4,0/0,J365/23", "2046-01-01T03:00:00", -14400},
        {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2050-03-27T00:59:59", -7200},
        {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2050-03-27T01:00:00", -3600},
        {"AAA-3:07:30", "2050-03-27T01:00:00", 11250},
    };
    struct arena arena = {0};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct zone *zone = zone_with_footer(&arena, rows[i].footer);
        if (!zone)
            test_failed(__FILE__, __LINE__, "%s was refused", rows[i].footer);
        else if (zone_offset_s(zone, moment(rows[i].at)) != rows[i].offset)
            test_failed(__FILE__, __LINE__, "%s at %s: %d, expected %d", rows[i].footer, rows[i].at,
                        zone_offset_s(zone, moment(rows[i].at)), rows[i].offset);
    }
    arena_free(&arena);
}

TEST(zone_rules_that_make_no_sense)
{
    static const char *const bad[] = {"C-1",
                                      "CET",
                                      "CET-",
                                      "CET-25",
                                      "CET-1:60",
                                      "CET-1CEST",
                                      "CET-1CEST,M3.5.0",
                                      "CET-1CEST,M3.5.0,",
                                      "CET-1CEST,M13.5.0,M10.5.0",
                                      "CET-1CEST,M0.5.0,M10.5.0",
                                      "CET-1CEST,M3.6.0,M10.5.0",
                                      "CET-1CEST,M3.0.0,M10.5.0",
                                      "CET-1CEST,M3.5.7,M10.5.0",
                                      "CET-1CEST,J0,J300",
                                      "CET-1CEST,J366,J300",
                                      "CET-1CEST,366,300",
                                      "CET-1CEST,M3.5.0,M10.5.0/168",
                                      "CET-1CEST,M3.5.0,M10.5.0/3x",
                                      "<+03-3",
                                      "<>-3",
                                      "CET-1 "};
    struct arena arena = {0};
    for (size_t i = 0; i < COUNT(bad); i++)
        if (zone_with_footer(&arena, bad[i])) test_failed(__FILE__, __LINE__, "'%s' was taken", bad[i]);
    arena_free(&arena);
}

static void check_refused(const struct buf *file, const char *expected)
{
    struct arena arena = {0};
    char error[256] = "";
    CHECK(!zone_parse(&arena, buf_view(file), error, sizeof error));
    CHECK_TEXT(slice_of(error), expected);
    arena_free(&arena);
}

TEST(zone_files_that_make_no_sense)
{
    static const struct change wrong_order[] = {{2000, 0}, {1000, 0}}, wrong_kind[] = {{1000, 1}};
    struct buf file = {0};
    buf_text(&file, "not a zone");
    check_refused(&file, "its file is not one of the tz database");
    file.len = 0;
    put_head(&file, 0, 0, 0, 1);
    check_refused(&file, "its file is of the format's first version, which ends in 2037");
    file.len = 0;
    put_file(&file, wrong_order, 2, (const int32_t[]){0}, 1, "");
    check_refused(&file, "its file makes no sense");
    file.len = 0;
    put_file(&file, wrong_kind, 1, (const int32_t[]){0}, 1, "");
    check_refused(&file, "its file makes no sense");
    file.len = 0;
    put_file(&file, NULL, 0, (const int32_t[]){26 * 3600}, 1, "");
    check_refused(&file, "its file makes no sense");
    file.len = 0;
    put_head(&file, '2', 0, 0, 1);
    for (int i = 0; i < 10; i++) buf_byte(&file, 0);
    put_head(&file, '2', 0, 0xffffffff, 0xffffffff);
    check_refused(&file, "its file is cut off");
    file.len = 0;
    put_head(&file, '2', 0, 0, 1);
    for (int i = 0; i < 10; i++) buf_byte(&file, 0);
    put_head(&file, '2', 1, 0, 1);
    for (int i = 0; i < 40; i++) buf_byte(&file, 0);
    check_refused(&file, "its file counts leap seconds");
    buf_free(&file);
}

/* ---- the machine's files ---- */

TEST(zones_by_name)
{
    static const struct {
        const char *name, *at;
        int32_t offset;
    } rows[] = {
        {"", "2025-07-01T00:00:00", 0},
        {"UTC", "2025-07-01T00:00:00", 0},
        {"Europe/Berlin", "2025-07-01T00:00:00", 7200},
        {"Europe/Berlin", "2025-01-01T00:00:00", 3600},
        {"Europe/Berlin", "1850-01-01T00:00:00", 3208},
        {"Europe/Berlin", "1945-06-01T00:00:00", 10800},
        {"America/New_York", "2025-07-01T00:00:00", -14400},
        {"Asia/Kolkata", "2025-07-01T00:00:00", 19800},
        {"Asia/Kathmandu", "2025-07-01T00:00:00", 20700},
        {"Australia/Lord_Howe", "2025-01-01T00:00:00", 39600},
        {"Australia/Lord_Howe", "2025-07-01T00:00:00", 37800},
        {"Etc/GMT+12", "2025-07-01T00:00:00", -43200},
        {"America/Argentina/Buenos_Aires", "2025-07-01T00:00:00", -10800},
    };
    struct arena arena = {0};
    for (size_t i = 0; i < COUNT(rows); i++) {
        char error[256] = "";
        struct zone *zone = zone_load(&arena, slice_of(rows[i].name), error, sizeof error);
        CHECK_TEXT(slice_of(error), "");
        if (zone) CHECK_INT(zone_offset_s(zone, moment(rows[i].at)), rows[i].offset);
    }
    arena_free(&arena);
}

TEST(names_of_no_zone)
{
    static const char *const bad[] = {"Europe/Atlantis",
                                      "Europe",
                                      "../../../etc/passwd",
                                      "/etc/passwd",
                                      "Europe/../UTC",
                                      "Europe Berlin",
                                      "tzdata.zi",
                                      "europe/berlin;",
                                      "Mars/Olympus_Mons_with_a_name_that_is_longer_than_fifty_letters"};
    struct arena arena = {0};
    for (size_t i = 0; i < COUNT(bad); i++) {
        char error[256] = "", start[128];
        CHECK(!zone_load(&arena, slice_of(bad[i]), error, sizeof error));
        snprintf(start, sizeof start, "'%s' is no time zone: ", bad[i]);
        CHECK(slice_starts(slice_of(error), slice_of(start)));
    }
    arena_free(&arena);
}

TEST(zones_of_another_folder)
{
    char folder[] = "/tmp/quipu-zones-XXXXXX", path[64], error[256] = "";
    struct arena arena = {0};
    struct buf file = {0};
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/Moon", folder);
    put_file(&file, NULL, 0, (const int32_t[]){0}, 1, "LUN-0:30");
    FILE *out = fopen(path, "w");
    fwrite(file.data, 1, file.len, out);
    fclose(out);
    setenv("TZDIR", folder, 1);
    struct zone *zone = zone_load(&arena, SLICE("Moon"), error, sizeof error);
    CHECK(zone && zone_offset_s(zone, 0) == 1800);
    CHECK(!zone_load(&arena, SLICE("Europe/Berlin"), error, sizeof error));
    setenv("TZDIR", "/nowhere", 1);
    CHECK(!zone_load(&arena, SLICE("Moon"), error, sizeof error));
    CHECK_TEXT(slice_of(error), "'Moon' is no time zone: this machine has no tz database");
    unsetenv("TZDIR");
    unlink(path);
    rmdir(folder);
    buf_free(&file);
    arena_free(&arena);
}
