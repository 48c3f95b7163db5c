/* "CET-1CEST,M3.5.0,M10.5.0/3": the last line of a zone's file, from which all years beyond its table follow.
 *
 * POSIX's form, with the extensions that the file format allows: times of day from -167 to 167 hours. Offsets
 * are written west of Greenwich there and kept east of it here. The time of day at which summer time begins
 * is one of standard time, that at which it ends one of summer time. */
#include "calendar/internal.h"

#define CHANGE_TIME_S    (2 * HOUR_S) /* when nothing is said */
#define CHANGE_HOURS_MAX 167
#define NAME_MIN         3

/* "CET" or "<+03>"; zones without a name of their own have numbers in brackets. */
static bool name_skip(struct slice *text)
{
    size_t len = 0;
    bool has_brackets = byte_take(text, '<');
    for (; len < text->len; len++) {
        char c = text->data[len];
        bool is_letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        bool is_more = (c >= '0' && c <= '9') || c == '+' || c == '-';
        if (!is_letter && !(has_brackets && is_more)) break;
    }
    *text = slice_from(*text, len);
    return len >= NAME_MIN && (!has_brackets || byte_take(text, '>'));
}

static bool number_take(struct slice *text, int max, int *out)
{
    size_t len = 0;
    while (len < text->len && len < 4 && text->data[len] >= '0' && text->data[len] <= '9') len++;
    return len && digits_take(text, len, out) && *out <= max;
}

/* [+-]hh[:mm[:ss]] in seconds. */
static bool time_take(struct slice *text, int hours_max, int32_t *out_s)
{
    int hours, minutes = 0, seconds = 0;
    bool is_negative = byte_take(text, '-');
    if (!is_negative) byte_take(text, '+');
    if (!number_take(text, hours_max, &hours)) return false;
    if (byte_take(text, ':') && !number_take(text, 59, &minutes)) return false;
    if (byte_take(text, ':') && !number_take(text, 59, &seconds)) return false;
    *out_s = hours * HOUR_S + minutes * MINUTE_S + seconds;
    if (is_negative) *out_s = -*out_s;
    return true;
}

static bool month_rule_take(struct slice *text, struct rule_day *out)
{
    out->kind = RULE_WEEKDAY_OF_MONTH;
    return number_take(text, MONTH_MAX, &out->month) && out->month && byte_take(text, '.') &&
           number_take(text, 5, &out->week) && out->week && byte_take(text, '.') &&
           number_take(text, 6, &out->weekday);
}

/* ",M3.5.0/2", ",J60", ",59" */
static bool day_take(struct slice *text, struct rule_day *out)
{
    bool fine;
    if (!byte_take(text, ',')) return false;
    if (byte_take(text, 'M')) {
        fine = month_rule_take(text, out);
    } else if (byte_take(text, 'J')) {
        out->kind = RULE_DAY_WITHOUT_LEAP;
        fine = number_take(text, 365, &out->day) && out->day;
    } else {
        out->kind = RULE_DAY_OF_YEAR;
        fine = number_take(text, 365, &out->day);
    }
    out->second = CHANGE_TIME_S;
    return fine && (!byte_take(text, '/') || time_take(text, CHANGE_HOURS_MAX, &out->second));
}

bool rule_parse(struct slice text, struct rule *out)
{
    int32_t west_s;
    *out = (struct rule){0};
    if (!name_skip(&text) || !time_take(&text, 24, &west_s)) return false;
    out->standard_s = out->summer_s = -west_s;
    if (!text.len) return true;
    if (!name_skip(&text)) return false;
    out->has_summer = true;
    out->summer_s = out->standard_s + HOUR_S;
    if (text.len && text.data[0] != ',') {
        if (!time_take(&text, 24, &west_s)) return false;
        out->summer_s = -west_s;
    }
    return day_take(&text, &out->begin) && day_take(&text, &out->end) && !text.len;
}

/* The day of a change in a year, in days since 1970. */
static int64_t change_day(const struct rule_day *day, int64_t year)
{
    int64_t first = days_from_civil(year, 1, 1);
    if (day->kind == RULE_DAY_OF_YEAR) return first + day->day;
    if (day->kind == RULE_DAY_WITHOUT_LEAP)
        return first + day->day - 1 + (day->day >= 60 && month_days(year, 2) == 29);
    int64_t month = days_from_civil(year, day->month, 1);
    int64_t found = month + (day->weekday - weekday_of_days(month) + 7) % 7 + (day->week - 1) * 7;
    return found < month + month_days(year, day->month) ? found : found - 7;
}

int32_t rule_offset_s(const struct rule *rule, int64_t time_s, int64_t *until_s)
{
    int64_t last_s = INT64_MIN;
    bool is_summer = false;
    *until_s = INT64_MAX;
    if (!rule->has_summer) return rule->standard_s;
    int64_t year = civil_from_days(floor_divide(time_s, DAY_S)).year;
    for (int64_t y = year - 1; y <= year + 1; y++) {
        int64_t end_s = change_day(&rule->end, y) * DAY_S + rule->end.second - rule->summer_s;
        int64_t begin_s = change_day(&rule->begin, y) * DAY_S + rule->begin.second - rule->standard_s;
        if (end_s <= time_s && end_s > last_s) last_s = end_s, is_summer = false;
        if (begin_s <= time_s && begin_s >= last_s) last_s = begin_s, is_summer = true;
        if (end_s > time_s && end_s < *until_s) *until_s = end_s;
        if (begin_s > time_s && begin_s < *until_s) *until_s = begin_s;
    }
    return is_summer ? rule->summer_s : rule->standard_s;
}
