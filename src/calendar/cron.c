/* The fields of cron(...) as EventBridge Scheduler writes them, and of a crontab line as cron(5) does.
 *
 *     cron(15 10 ? * MON-FRI *)    minutes hours day-of-month month day-of-week year
 *     15 10 * * 1-5                minutes hours day-of-month month day-of-week
 *
 * A field is a list of items; an item is *, a value, a range or either with a step. Values of months and days
 * may be names. The two differ in their days: the service counts the week from Sunday = 1, wants ? in exactly
 * one of the two fields of days, and knows L, W and #; cron counts from Sunday = 0 (7 is Sunday too), and a
 * day is meant when either field fits, unless one of them begins with *. A range may run over the end
 * (FRI-MON). */
#include <stdio.h>

#include "calendar/internal.h"

#define VALUES_MAX 230 /* of one field: years */
#define STEP_MAX   9999

enum { FIELD_MINUTE, FIELD_HOUR, FIELD_DAY, FIELD_MONTH, FIELD_WEEKDAY, FIELD_YEAR, FIELD_COUNT };

struct field {
    int min, max;
    const char *names; /* three letters each, of min and those that follow */
    const char *fault;
};

static const char months[] = "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC";
static const char weekdays[] = "SUNMONTUEWEDTHUFRISAT";

static const struct field service_fields[FIELD_COUNT] = {
    {0, 59, "", "The minutes should be 0 to 59."},
    {0, 23, "", "The hours should be 0 to 23."},
    {1, 31, "", "The day of the month should be 1 to 31, with L or W, or ?."},
    {1, 12, months, "The month should be 1 to 12 or JAN to DEC."},
    {1, 7, weekdays, "The day of the week should be 1 to 7 or SUN to SAT, with L or #, or ?."},
    {YEAR_MIN, YEAR_MAX, "", "The year should be 1970 to 2199."},
};
static const struct field crontab_fields[FIELD_COUNT - 1] = {
    {0, 59, "", "The minutes should be 0 to 59."},
    {0, 23, "", "The hours should be 0 to 23."},
    {1, 31, "", "The day of the month should be 1 to 31."},
    {1, 12, months, "The month should be 1 to 12 or JAN to DEC."},
    {0, 7, weekdays, "The day of the week should be 0 to 7 or SUN to SAT."},
};

/* The values that a field names, those of its minimum first. */
struct values {
    bool has[VALUES_MAX];
};

/* ---- values, ranges, steps, lists ---- */

/* Cuts off what stands before the byte, or all. */
static struct slice part_take(struct slice *text, char byte, bool *is_last)
{
    const char *found = text->len ? memchr(text->data, byte, text->len) : NULL;
    struct slice part = *text;
    *is_last = !found;
    if (found) {
        part.len = (size_t)(found - text->data);
        *text = slice_from(*text, part.len + 1);
    } else {
        *text = slice_from(*text, text->len);
    }
    return part;
}

static bool value_read(const struct field *field, struct slice text, int *out)
{
    unsigned long long number;
    if (slice_to_u64(text, (unsigned long long)field->max, &number)) {
        *out = (int)number;
        return text.len <= 4 && *out >= field->min;
    }
    for (int i = 0; text.len == 3 && field->names[i * 3]; i++)
        if (slice_equal_ignoring_case(text, (struct slice){field->names + i * 3, 3})) {
            *out = field->min + i;
            return true;
        }
    return false;
}

/* "*", "5", "5-10", "FRI-MON" and each with "/2"; a value with a step goes on to the end. */
static bool item_read(const struct field *field, struct slice text, struct values *values)
{
    bool is_whole, is_single;
    unsigned long long step = 1;
    struct slice range = part_take(&text, '/', &is_whole);
    int from = field->min, to = field->max, span = field->max - field->min + 1;
    if (!is_whole && (!slice_to_u64(text, STEP_MAX, &step) || !step)) return false;
    if (!slice_equal(range, SLICE("*"))) {
        struct slice first = part_take(&range, '-', &is_single);
        if (!value_read(field, first, &from)) return false;
        if (!is_single && !value_read(field, range, &to)) return false;
        if (is_single && is_whole) to = from;
    }
    if (to < from && field->min == YEAR_MIN) return false;
    int count = (to < from ? to + span : to) - from;
    for (unsigned long long i = 0; i <= (unsigned long long)count; i += step)
        values->has[(from - field->min + (int)i) % span] = true;
    return true;
}

static bool list_read(const struct field *field, struct slice text, struct values *values)
{
    bool is_last = false;
    while (!is_last)
        if (!item_read(field, part_take(&text, ',', &is_last), values)) return false;
    return true;
}

static uint64_t bits_of(const struct values *values, int from, int count)
{
    uint64_t bits = 0;
    for (int i = 0; i < count; i++)
        if (values->has[from + i]) bits |= (uint64_t)1 << i;
    return bits;
}

/* ---- days: what only the service has ---- */

static bool ends_with(struct slice *text, char byte)
{
    if (text->len < 2 || (text->data[text->len - 1] | 32) != (byte | 32)) return false;
    text->len--;
    return true;
}

/* L, L-3, LW, 15W; false when it is none of them. */
static bool special_day_read(struct slice text, struct cron *out)
{
    unsigned long long number;
    if (slice_equal_ignoring_case(text, SLICE("L"))) {
        out->from_last |= 1;
    } else if (slice_equal_ignoring_case(text, SLICE("LW"))) {
        out->last_working_day = true;
    } else if (text.len > 2 && slice_equal_ignoring_case((struct slice){text.data, 2}, SLICE("L-"))) {
        if (!slice_to_u64(slice_from(text, 2), 30, &number) || !number) return false;
        out->from_last |= 1u << number;
    } else {
        if (!ends_with(&text, 'W') || !slice_to_u64(text, 31, &number) || !number) return false;
        out->nearest |= 1u << number;
    }
    return true;
}

static bool days_read(const struct field *field, struct slice text, struct cron *out)
{
    struct values values = {{false}};
    bool is_last = false;
    while (!is_last) {
        struct slice item = part_take(&text, ',', &is_last);
        if (!special_day_read(item, out) && !item_read(field, item, &values)) return false;
    }
    out->days = (uint32_t)(bits_of(&values, 0, 31) << 1);
    return true;
}

/* 6L, FRIL, L (which is Saturday, the week's last). False when it is none of them. */
static bool last_weekday_read(const struct field *field, struct slice text, struct cron *out)
{
    int day;
    if (slice_equal_ignoring_case(text, SLICE("L"))) {
        out->weekdays |= 1u << 6;
        return true;
    }
    if (!ends_with(&text, 'L') || !value_read(field, text, &day)) return false;
    out->last_weekdays |= 1u << (day - 1);
    return true;
}

/* "6#3", the third Friday: it must stand alone. */
static bool nth_weekday_read(const struct field *field, struct slice text, struct cron *out)
{
    unsigned long long nth;
    bool has_none;
    struct slice day = part_take(&text, '#', &has_none);
    if (has_none || !value_read(field, day, &out->nth_weekday)) return false;
    if (!slice_to_u64(text, 5, &nth) || !nth) return false;
    out->nth_weekday--;
    out->nth = (int)nth;
    return true;
}

static bool weekdays_read(const struct field *field, struct slice text, struct cron *out)
{
    struct values values = {{false}};
    bool is_last = false;
    if (nth_weekday_read(field, text, out)) return true;
    while (!is_last) {
        struct slice item = part_take(&text, ',', &is_last);
        if (!last_weekday_read(field, item, out) && !item_read(field, item, &values)) return false;
    }
    out->weekdays |= (uint32_t)bits_of(&values, 0, 7);
    return true;
}

/* ---- the whole ---- */

/* The fields of a line, between spaces; false when there are more or fewer. */
static bool fields_split(struct slice text, struct slice *out, size_t count)
{
    size_t found = 0;
    if (text.len && (text.data[text.len - 1] == ' ' || text.data[0] == ' ')) return false;
    for (bool is_last = false; !is_last;) {
        struct slice part = part_take(&text, ' ', &is_last);
        if (!part.len && !is_last) continue;
        if (!part.len || found == count) return false;
        out[found++] = part;
    }
    return found == count;
}

/* Minutes, hours and months, which both forms have alike. */
static const char *times_read(const struct field *fields, const struct slice *texts, struct cron *out)
{
    struct values minutes = {{false}}, hours = {{false}}, months_named = {{false}};
    if (!list_read(&fields[FIELD_MINUTE], texts[FIELD_MINUTE], &minutes)) return fields[FIELD_MINUTE].fault;
    if (!list_read(&fields[FIELD_HOUR], texts[FIELD_HOUR], &hours)) return fields[FIELD_HOUR].fault;
    if (!list_read(&fields[FIELD_MONTH], texts[FIELD_MONTH], &months_named)) return fields[FIELD_MONTH].fault;
    out->minutes = bits_of(&minutes, 0, 60);
    out->hours = (uint32_t)bits_of(&hours, 0, 24);
    out->months = (uint32_t)(bits_of(&months_named, 0, MONTH_MAX) << 1);
    return NULL;
}

static void years_keep(struct cron *out, const struct values *years)
{
    for (int i = 0; i <= YEAR_MAX - YEAR_MIN; i++)
        if (years->has[i]) out->years[i / 64] |= (uint64_t)1 << (i % 64);
}

static const char *service_read(struct slice text, struct cron *out)
{
    const struct field *fields = service_fields;
    struct slice texts[FIELD_COUNT];
    struct values years = {{false}};
    const char *fault;
    if (!fields_split(text, texts, FIELD_COUNT))
        return "It should have six fields: minutes, hours, day of month, month, day of week, year.";
    bool by_week = slice_equal(texts[FIELD_DAY], SLICE("?"));
    if (by_week == slice_equal(texts[FIELD_WEEKDAY], SLICE("?")))
        return "Exactly one of the day of the month and the day of the week should be ?.";
    if ((fault = times_read(fields, texts, out))) return fault;
    out->by = by_week ? DAYS_OF_WEEK : DAYS_OF_MONTH;
    if (!by_week && !days_read(&fields[FIELD_DAY], texts[FIELD_DAY], out)) return fields[FIELD_DAY].fault;
    if (by_week && !weekdays_read(&fields[FIELD_WEEKDAY], texts[FIELD_WEEKDAY], out))
        return fields[FIELD_WEEKDAY].fault;
    if (!list_read(&fields[FIELD_YEAR], texts[FIELD_YEAR], &years)) return fields[FIELD_YEAR].fault;
    years_keep(out, &years);
    return NULL;
}

static const char *crontab_read(struct slice text, struct cron *out)
{
    const struct field *fields = crontab_fields;
    struct slice texts[FIELD_COUNT - 1];
    struct values days = {{false}}, week = {{false}}, years;
    const char *fault;
    if (!fields_split(text, texts, FIELD_COUNT - 1))
        return "It should be rate(...), cron(...), at(...), or the five fields of a crontab line.";
    if ((fault = times_read(fields, texts, out))) return fault;
    if (!list_read(&fields[FIELD_DAY], texts[FIELD_DAY], &days)) return fields[FIELD_DAY].fault;
    if (!list_read(&fields[FIELD_WEEKDAY], texts[FIELD_WEEKDAY], &week)) return fields[FIELD_WEEKDAY].fault;
    if (week.has[7]) week.has[0] = true;
    bool is_any = texts[FIELD_DAY].data[0] == '*' || texts[FIELD_WEEKDAY].data[0] == '*';
    out->by = is_any ? DAYS_OF_BOTH : DAYS_OF_EITHER;
    out->days = (uint32_t)(bits_of(&days, 0, 31) << 1);
    out->weekdays = (uint32_t)bits_of(&week, 0, 7);
    memset(&years, true, sizeof years);
    years_keep(out, &years);
    return NULL;
}

const char *cron_parse(struct slice text, bool is_crontab, struct cron *out)
{
    *out = (struct cron){0};
    return is_crontab ? crontab_read(text, out) : service_read(text, out);
}
