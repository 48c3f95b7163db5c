/* The Gregorian calendar as arithmetic: dates to days since 1970 and back, for any year.
 *
 * Years are counted from March, so that the leap day is the last of its year and every month's first day is a
 * linear function of its number; 400 years are one period of 146097 days. */
#include "calendar/internal.h"

#define PERIOD_DAYS    146097 /* of 400 years */
#define DAYS_BEFORE_70 719468 /* from the 1st of March of the year 0 to 1970 */
#define DAY_OF_1970    4      /* a Thursday */

int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

int64_t days_from_civil(int64_t year, int month, int day)
{
    if (month <= 2) year--;
    int64_t period = floor_divide(year, 400);
    int64_t year_of_period = year - period * 400;
    int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    int64_t day_of_period = year_of_period * 365 + year_of_period / 4 - year_of_period / 100 + day_of_year;
    return period * PERIOD_DAYS + day_of_period - DAYS_BEFORE_70;
}

struct civil civil_from_days(int64_t days)
{
    days += DAYS_BEFORE_70;
    int64_t period = floor_divide(days, PERIOD_DAYS);
    int64_t day_of_period = days - period * PERIOD_DAYS;
    int64_t year_of_period = (day_of_period - day_of_period / 1460 + day_of_period / 36524 -
                              day_of_period / (PERIOD_DAYS - 1)) /
                             365;
    int64_t day_of_year = day_of_period - (365 * year_of_period + year_of_period / 4 - year_of_period / 100);
    int month_from_march = (int)((5 * day_of_year + 2) / 153);
    struct civil civil = {.year = year_of_period + period * 400,
                          .month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9,
                          .day = (int)(day_of_year - (153 * month_from_march + 2) / 5 + 1)};
    if (civil.month <= 2) civil.year++;
    return civil;
}

int month_days(int64_t year, int month)
{
    static const int days[] = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month] + (month == 2 && is_leap);
}

int weekday_of_days(int64_t days)
{
    int64_t weeks = floor_divide(days + DAY_OF_1970, 7);
    return (int)(days + DAY_OF_1970 - weeks * 7);
}

bool digits_take(struct slice *text, size_t count, int *out)
{
    unsigned long long number;
    if (text->len < count || !slice_to_u64((struct slice){text->data, count}, 99999, &number)) return false;
    *out = (int)number;
    *text = slice_from(*text, count);
    return true;
}

bool byte_take(struct slice *text, char byte)
{
    if (!text->len || text->data[0] != byte) return false;
    *text = slice_from(*text, 1);
    return true;
}

bool local_time_take(struct slice *text, int64_t *out_s)
{
    int year, month, day, hour, minute, second;
    if (!digits_take(text, 4, &year) || !byte_take(text, '-') || !digits_take(text, 2, &month) ||
        !byte_take(text, '-') || !digits_take(text, 2, &day) || !byte_take(text, 'T') ||
        !digits_take(text, 2, &hour) || !byte_take(text, ':') || !digits_take(text, 2, &minute) ||
        !byte_take(text, ':') || !digits_take(text, 2, &second))
        return false;
    if (month < 1 || month > MONTH_MAX || day < 1 || day > month_days(year, month)) return false;
    if (hour > 23 || minute > 59 || second > 59) return false;
    *out_s = days_from_civil(year, month, day) * DAY_S + hour * HOUR_S + minute * MINUTE_S + second;
    return true;
}
