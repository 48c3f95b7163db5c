/* Durations ("1h30m") and moments ("2026-11-15T03:42:06Z") as people and replies write them. */
#include "calendar/internal.h"

static const struct {
    const char *name;
    int64_t ms;
} units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};

#define UNITS        (sizeof units / sizeof *units)
#define OFFSET_HOURS 23 /* of a moment, east or west */

/* ---- durations ---- */

/* The unit's number among those from `from` on, or UNITS. The longest name that fits is meant. */
static size_t unit_take(struct slice *text, size_t from)
{
    size_t len = 0, i;
    while (len < text->len && (text->data[len] < '0' || text->data[len] > '9')) len++;
    for (i = from; i < UNITS; i++)
        if (slice_equal((struct slice){text->data, len}, slice_of(units[i].name))) break;
    if (i < UNITS) *text = slice_from(*text, len);
    return i;
}

bool duration_parse(struct slice text, int64_t max_ms, int64_t *out_ms)
{
    int64_t sum_ms = 0;
    if (!text.len) return false;
    for (size_t unit = 0; text.len; unit++) {
        size_t digits = 0;
        unsigned long long number;
        while (digits < text.len && text.data[digits] >= '0' && text.data[digits] <= '9') digits++;
        if (!slice_to_u64((struct slice){text.data, digits}, INT64_MAX, &number)) return false;
        text = slice_from(text, digits);
        unit = unit_take(&text, unit);
        int64_t part_ms;
        if (unit == UNITS || __builtin_mul_overflow((int64_t)number, units[unit].ms, &part_ms) ||
            __builtin_add_overflow(sum_ms, part_ms, &sum_ms))
            return false;
    }
    if (sum_ms > max_ms) return false;
    *out_ms = sum_ms;
    return true;
}

/* As much as possible of each unit, the first one being `unit`. */
static struct slice duration_from(struct arena *arena, int64_t ms, size_t unit)
{
    struct slice text = SLICE("");
    for (; unit < UNITS; unit++) {
        if (ms < units[unit].ms) continue;
        text = arena_printf(arena, "%.*s%lld%s", SLICE_ARG(text), (long long)(ms / units[unit].ms),
                            units[unit].name);
        ms %= units[unit].ms;
    }
    return text.len ? text : SLICE("0s");
}

struct slice duration_text(struct arena *arena, int64_t ms)
{
    struct slice best = duration_from(arena, ms, 0);
    for (size_t unit = 1; unit < UNITS; unit++) {
        struct slice text = duration_from(arena, ms, unit);
        if (text.len < best.len) best = text;
    }
    return best;
}

/* ---- moments ---- */

/* ".25" as milliseconds; digits beyond them are left out. */
static bool fraction_take(struct slice *text, int64_t *out_ms)
{
    int64_t weight = 100;
    *out_ms = 0;
    if (!byte_take(text, '.')) return true;
    if (!text->len || text->data[0] < '0' || text->data[0] > '9') return false;
    for (int digit; digits_take(text, 1, &digit); weight /= 10) *out_ms += digit * weight;
    return true;
}

/* "Z", "+01:00", "-0330", or nothing, which is Greenwich too. */
static bool offset_take(struct slice *text, int64_t *out_s)
{
    int hours, minutes;
    *out_s = 0;
    if (!text->len || byte_take(text, 'Z')) return true;
    bool is_west = byte_take(text, '-');
    if (!is_west && !byte_take(text, '+')) return false;
    if (!digits_take(text, 2, &hours)) return false;
    byte_take(text, ':');
    if (!digits_take(text, 2, &minutes) || hours > OFFSET_HOURS || minutes > 59) return false;
    *out_s = hours * HOUR_S + minutes * MINUTE_S;
    if (is_west) *out_s = -*out_s;
    return true;
}

bool moment_parse(struct slice text, int64_t *out_ms)
{
    int64_t local_s, fraction_ms, offset_s;
    if (!local_time_take(&text, &local_s) || !fraction_take(&text, &fraction_ms) ||
        !offset_take(&text, &offset_s) || text.len)
        return false;
    *out_ms = (local_s - offset_s) * 1000 + fraction_ms;
    return true;
}

struct slice moment_text(struct arena *arena, int64_t time_ms)
{
    int64_t time_s = floor_divide(time_ms, 1000), day = floor_divide(time_s, DAY_S);
    struct civil date = civil_from_days(day);
    int second = (int)(time_s - day * DAY_S);
    return arena_printf(arena, "%04lld-%02d-%02dT%02d:%02d:%02d.%03dZ", (long long)date.year, date.month,
                        date.day, second / HOUR_S, second / MINUTE_S % 60, second % 60,
                        (int)(time_ms - time_s * 1000));
}
