/* Finds local times that fit cron's fields. Months are the unit: the days of a month that fit are one number
 * of bits, so even an expression that never comes true costs no more than a look at each month of 230 years.
 */
#include "calendar/internal.h"

#define DAY_MINUTES 1440
#define SATURDAY    6

/* ---- which days of a month fit ---- */

static uint32_t bit(int day)
{
    return 1u << day;
}

/* The working day nearest to a day, which stays in its month; 0 when the month has no such day. */
static int nearest_working_day(int day, int days, int weekday)
{
    if (day > days) return 0;
    if (weekday == SATURDAY) return day > 1 ? day - 1 : day + 2;
    if (weekday == 0) return day < days ? day + 1 : day - 2;
    return day;
}

static uint32_t days_by_month(const struct cron *cron, int days, int first_weekday)
{
    uint32_t fits = cron->days;
    for (int before = 0; before < days; before++)
        if (cron->from_last & bit(before)) fits |= bit(days - before);
    for (int day = 1; day <= days; day++)
        if (cron->nearest & bit(day))
            fits |= bit(nearest_working_day(day, days, (first_weekday + day - 1) % 7));
    if (cron->last_working_day) fits |= bit(nearest_working_day(days, days, (first_weekday + days - 1) % 7));
    return fits;
}

static uint32_t days_by_week(const struct cron *cron, int days, int first_weekday)
{
    uint32_t fits = 0;
    for (int day = 1; day <= days; day++) {
        int weekday = (first_weekday + day - 1) % 7;
        bool is_nth = cron->nth && weekday == cron->nth_weekday && (day - 1) / 7 == cron->nth - 1;
        bool is_last = (cron->last_weekdays & bit(weekday)) && day + 7 > days;
        if ((cron->weekdays & bit(weekday)) || is_nth || is_last) fits |= bit(day);
    }
    return fits;
}

/* The days that fit as bits, that of the 1st being bit 1; 0 when neither month nor year fits. */
static uint32_t month_fits(const struct cron *cron, int64_t year, int month)
{
    int64_t index = year - YEAR_MIN;
    if (!(cron->months & bit(month)) || !(cron->years[index / 64] >> (index % 64) & 1)) return 0;
    int days = month_days(year, month), first_weekday = weekday_of_days(days_from_civil(year, month, 1));
    uint32_t by_month = days_by_month(cron, days, first_weekday);
    uint32_t by_week = days_by_week(cron, days, first_weekday), fits = by_month;
    if (cron->by == DAYS_OF_WEEK) fits = by_week;
    if (cron->by == DAYS_OF_BOTH) fits = by_month & by_week;
    if (cron->by == DAYS_OF_EITHER) fits = by_month | by_week;
    return fits & (uint32_t)((UINT64_C(1) << (days + 1)) - 2);
}

/* ---- days and times of day, in both directions ---- */

static bool day_search_up(const struct cron *cron, int64_t from, int64_t *out)
{
    int64_t first = days_from_civil(YEAR_MIN, 1, 1);
    struct civil at = civil_from_days(from > first ? from : first);
    for (; at.year <= YEAR_MAX; at.day = 1) {
        uint32_t fits = month_fits(cron, at.year, at.month) & ~(bit(at.day) - 1);
        if (fits) {
            *out = days_from_civil(at.year, at.month, __builtin_ctz(fits));
            return true;
        }
        at.month = at.month % MONTH_MAX + 1;
        if (at.month == 1) at.year++;
    }
    return false;
}

static bool day_search_down(const struct cron *cron, int64_t from, int64_t *out)
{
    int64_t last = days_from_civil(YEAR_MAX, MONTH_MAX, 31);
    struct civil at = civil_from_days(from < last ? from : last);
    for (; at.year >= YEAR_MIN; at.day = 31) {
        uint32_t fits = month_fits(cron, at.year, at.month) & (bit(at.day) | (bit(at.day) - 1));
        if (fits) {
            *out = days_from_civil(at.year, at.month, 31 - __builtin_clz(fits));
            return true;
        }
        at.month = at.month == 1 ? MONTH_MAX : at.month - 1;
        if (at.month == MONTH_MAX) at.year--;
    }
    return false;
}

static bool minute_fits(const struct cron *cron, int minute)
{
    return cron->hours >> minute / 60 & 1 && cron->minutes >> minute % 60 & 1;
}

/* The nearest minute of the day that fits, in steps of 1 or -1; -1 when there is none. */
static int minute_search(const struct cron *cron, int minute, int step)
{
    for (; minute >= 0 && minute < DAY_MINUTES; minute += step)
        if (minute_fits(cron, minute)) return minute;
    return -1;
}

bool cron_search_up(const struct cron *cron, int64_t from_minute, int64_t *out)
{
    int64_t from_day = floor_divide(from_minute, DAY_MINUTES), day;
    if (!day_search_up(cron, from_day, &day)) return false;
    int minute = minute_search(cron, day == from_day ? (int)(from_minute - from_day * DAY_MINUTES) : 0, 1);
    if (minute < 0) { /* too late that day: the next one has all its minutes */
        if (!day_search_up(cron, from_day + 1, &day)) return false;
        minute = minute_search(cron, 0, 1);
    }
    *out = day * DAY_MINUTES + minute;
    return true;
}

bool cron_search_down(const struct cron *cron, int64_t from_minute, int64_t *out)
{
    int64_t from_day = floor_divide(from_minute, DAY_MINUTES), day;
    int whole = DAY_MINUTES - 1;
    if (!day_search_down(cron, from_day, &day)) return false;
    int minute = minute_search(cron, day == from_day ? (int)(from_minute - from_day * DAY_MINUTES) : whole,
                               -1);
    if (minute < 0) {
        if (!day_search_down(cron, from_day - 1, &day)) return false;
        minute = minute_search(cron, whole, -1);
    }
    *out = day * DAY_MINUTES + minute;
    return true;
}
