/* Any bytes as the file of a zone: nothing is read beyond them, no question runs on for ever, offsets stay in
 * their bounds, and schedules in such a zone still have due times that rise. */
#include "base/fail.h"
#include "calendar/calendar.h"

#define DAY_S 86400

static void check_schedule(struct arena *arena, const struct zone *zone, const char *expression)
{
    char error[512];
    struct timetable *timetable = timetable_parse(arena, slice_of(expression), zone, 0, error, sizeof error);
    int64_t after = 1700000000000;
    ensure(timetable);
    for (int i = 0; i < 5; i++) {
        int64_t due = timetable_next(timetable, after);
        ensure(due > after);
        ensure(timetable_last(timetable, due - 1) <= after);
        after = due;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    char error[256] = "";
    struct zone *zone = zone_parse(&arena, (struct slice){(const char *)data, size}, error, sizeof error);
    ensure(zone || *error);
    if (zone) {
        for (int64_t at = -60; at < 60; at++) {
            int32_t offset = zone_offset_s(zone, at * 100 * DAY_S * 1000);
            ensure(offset > -26 * 3600 && offset < 26 * 3600);
        }
        zone_offset_s(zone, INT64_MAX);
        zone_offset_s(zone, INT64_MIN);
        check_schedule(&arena, zone, "cron(0/20 * * * ? *)");
        check_schedule(&arena, zone, "30 2 * * *");
    }
    arena_free(&arena);
    return 0;
}
