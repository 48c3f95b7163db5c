/* Any text as an expression, a duration and a moment: nothing crashes or runs on for ever, and due times obey
 * their laws: they rise, and what is next after one is not found before it. The zone is one with two changes
 * a year, given by the rule at the end of its file. */
#include "base/fail.h"
#include "calendar/calendar.h"

#define ROUNDS 4

/* Everything of a zone's file but its table: two heads, a type each, the rule. */
static const char berlin[] = "TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                             "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4"
                             "\0\0\0\0\0\0UTC\0"
                             "TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                             "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4"
                             "\0\0\0\0\0\0UTC\0"
                             "\nCET-1CEST,M3.5.0,M10.5.0/3\n";

static void check_due(const struct timetable *timetable, int64_t after)
{
    for (int i = 0; i < ROUNDS; i++) {
        int64_t due = timetable_next(timetable, after);
        ensure(due > after);
        if (due == CALENDAR_NEVER) return;
        ensure(timetable_next(timetable, due - 1) == due);
        ensure(due < 0 || timetable_last(timetable, due) == due);
        ensure(timetable_last(timetable, due - 1) <= after);
        after = due;
    }
}

static void check_words(struct arena *arena, struct slice text)
{
    int64_t ms = 0, again = 0;
    if (duration_parse(text, INT64_MAX, &ms)) {
        ensure(ms >= 0 && duration_parse(duration_text(arena, ms), INT64_MAX, &again) && again == ms);
    }
    if (moment_parse(text, &ms) && ms >= -62167219200000)
        ensure(moment_parse(moment_text(arena, ms), &again) && again == ms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    char error[512] = "";
    struct slice text = {(const char *)data, size};
    struct zone *zone = zone_parse(&arena, (struct slice){berlin, sizeof berlin - 1}, error, sizeof error);
    ensure(zone);
    struct timetable *timetable = timetable_parse(&arena, text, zone, 5000, error, sizeof error);
    ensure(timetable || *error);
    if (timetable) {
        check_due(timetable, 0);
        check_due(timetable, 1743289200000 - 3600000);  /* the morning of a day of 23 hours */
        check_due(timetable, 1761436800000 - 3600000);  /* and of one of 25 */
        check_due(timetable, 7258118400000 - 86400000); /* the last of 2199 */
        ensure(timetable_next(timetable, INT64_MAX / 2) >= INT64_MAX / 2);
        timetable_last(timetable, INT64_MIN / 2);
    }
    check_words(&arena, text);
    arena_free(&arena);
    return 0;
}
