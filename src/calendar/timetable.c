/* Schedule expressions as EventBridge Scheduler has them, and when they are due.
 *
 *     rate(5 minutes)              every five minutes from the anchor on, the anchor included
 *     cron(0 9 ? * MON-FRI *)      by the wall clock of the zone
 *     at(2026-11-15T09:00:00)      once, by the wall clock of the zone
 *     0 9 * * 1-5                  a crontab line, ours
 *
 * Spaces are where the service allows them and nowhere else. */
#include <stdio.h>

#include "calendar/internal.h"

#define RATE_MAX 1000000000u /* of any unit; in milliseconds far from the end of 64 bits */

enum timetable_kind { TIMETABLE_RATE, TIMETABLE_CRON, TIMETABLE_ONCE };

struct timetable {
    enum timetable_kind kind;
    const struct zone *zone;
    bool leaves_out;   /* local times that the clock jumps over */
    int64_t anchor_ms; /* RATE: the first; ONCE: the only one */
    int64_t period_ms; /* RATE */
    struct cron cron;
};

/* ---- reading ---- */

/* name(inside) */
static bool call_read(struct slice text, struct slice name, struct slice *inside)
{
    if (!slice_starts(text, name)) return false;
    *inside = slice_from(text, name.len);
    if (!byte_take(inside, '(') || !inside->len || inside->data[inside->len - 1] != ')') return false;
    inside->len--;
    return true;
}

static bool unit_read(struct slice text, int64_t *out_ms)
{
    static const struct {
        struct slice one, many;
        int64_t ms;
    } units[] = {{SLICE("minute"), SLICE("minutes"), 60000},
                 {SLICE("hour"), SLICE("hours"), 3600000},
                 {SLICE("day"), SLICE("days"), 86400000}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (slice_equal(text, units[i].one) || slice_equal(text, units[i].many)) {
            *out_ms = units[i].ms;
            return true;
        }
    return false;
}

static const char *rate_read(struct slice text, int64_t anchor_ms, struct timetable *out)
{
    unsigned long long value;
    int64_t unit_ms;
    const char *space = text.len ? memchr(text.data, ' ', text.len) : NULL;
    if (!space) return "A rate is a number and a unit, like rate(5 minutes).";
    size_t digits = (size_t)(space - text.data);
    while (text.data + text.len > space + 1 && space[1] == ' ') space++;
    if (!slice_to_u64((struct slice){text.data, digits}, RATE_MAX, &value) || !value)
        return "A rate's number should be a whole one from 1 on.";
    if (!unit_read(slice_from(text, (size_t)(space + 1 - text.data)), &unit_ms))
        return "A rate's unit should be minute, minutes, hour, hours, day or days.";
    out->kind = TIMETABLE_RATE;
    out->anchor_ms = anchor_ms;
    out->period_ms = (int64_t)value * unit_ms;
    return NULL;
}

static const char *once_read(struct slice text, struct timetable *out)
{
    int64_t local_s;
    bool is_exact;
    if (!local_time_take(&text, &local_s) || text.len)
        return "A single time is like at(2026-11-15T09:00:00); its zone stands beside it.";
    out->kind = TIMETABLE_ONCE;
    out->anchor_ms = zone_first_s(out->zone, local_s, &is_exact) * 1000;
    return out->anchor_ms < 0 ? "It lies before 1970." : NULL;
}

struct timetable *timetable_parse(struct arena *arena, struct slice expression, const struct zone *zone,
                                  int64_t anchor_ms, char *error, size_t error_len)
{
    struct timetable *timetable = arena_new(arena, struct timetable);
    struct slice inside;
    const char *fault;
    timetable->kind = TIMETABLE_CRON;
    timetable->zone = zone;
    if (call_read(expression, SLICE("rate"), &inside)) {
        fault = rate_read(inside, anchor_ms, timetable);
    } else if (call_read(expression, SLICE("at"), &inside)) {
        fault = once_read(inside, timetable);
    } else if (call_read(expression, SLICE("cron"), &inside)) {
        timetable->leaves_out = true;
        fault = cron_parse(inside, false, &timetable->cron);
    } else {
        fault = cron_parse(expression, true, &timetable->cron);
    }
    if (!fault) return timetable;
    snprintf(error, error_len, "Invalid Schedule Expression %.*s. %s", SLICE_ARG(expression), fault);
    return NULL;
}

/* ---- due times ---- */

static int64_t cron_next(const struct timetable *timetable, int64_t after_ms)
{
    int64_t reached_s = zone_reached_s(timetable->zone, floor_divide(after_ms, 1000));
    int64_t minute = floor_divide(reached_s, MINUTE_S) + 1;
    for (; cron_search_up(&timetable->cron, minute, &minute); minute++) {
        bool is_exact;
        int64_t due_s = zone_first_s(timetable->zone, minute * MINUTE_S, &is_exact);
        if (is_exact || !timetable->leaves_out) return due_s * 1000;
    }
    return CALENDAR_NEVER;
}

static int64_t cron_last(const struct timetable *timetable, int64_t until_ms)
{
    int64_t reached_s = zone_reached_s(timetable->zone, floor_divide(until_ms, 1000));
    int64_t minute = floor_divide(reached_s, MINUTE_S);
    for (; cron_search_down(&timetable->cron, minute, &minute); minute--) {
        bool is_exact;
        int64_t due_s = zone_first_s(timetable->zone, minute * MINUTE_S, &is_exact);
        if (is_exact || !timetable->leaves_out) return due_s < 0 ? -1 : due_s * 1000;
    }
    return -1;
}

int64_t timetable_next(const struct timetable *timetable, int64_t after_ms)
{
    if (timetable->kind == TIMETABLE_CRON) return cron_next(timetable, after_ms);
    if (after_ms < timetable->anchor_ms) return timetable->anchor_ms;
    if (timetable->kind == TIMETABLE_ONCE) return CALENDAR_NEVER;
    int64_t periods = (after_ms - timetable->anchor_ms) / timetable->period_ms + 1, next_ms;
    if (__builtin_mul_overflow(periods, timetable->period_ms, &next_ms) ||
        __builtin_add_overflow(next_ms, timetable->anchor_ms, &next_ms))
        return CALENDAR_NEVER;
    return next_ms;
}

int64_t timetable_last(const struct timetable *timetable, int64_t until_ms)
{
    if (timetable->kind == TIMETABLE_CRON) return cron_last(timetable, until_ms);
    if (until_ms < timetable->anchor_ms) return -1;
    if (timetable->kind == TIMETABLE_ONCE) return timetable->anchor_ms;
    return until_ms - (until_ms - timetable->anchor_ms) % timetable->period_ms;
}

bool timetable_is_once(const struct timetable *timetable)
{
    return timetable->kind == TIMETABLE_ONCE;
}
