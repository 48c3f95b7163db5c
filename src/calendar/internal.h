/* What the files of calendar share: dates as numbers, local time of a zone, cron's fields. */
#ifndef CALENDAR_INTERNAL_H
#define CALENDAR_INTERNAL_H

#include "calendar/calendar.h"

#define DAY_S     86400
#define HOUR_S    3600
#define MINUTE_S  60
#define YEAR_MIN  1970 /* that a schedule can name, as the service has it */
#define YEAR_MAX  2199
#define MONTH_MAX 12

/* ---- civil.c: the Gregorian calendar without a zone ---- */

struct civil {
    int64_t year;
    int month, day; /* from 1 */
};

/* Days since 1970 of a date, and back. */
int64_t days_from_civil(int64_t year, int month, int day);
struct civil civil_from_days(int64_t days);
int month_days(int64_t year, int month);
/* 0 is Sunday. */
int weekday_of_days(int64_t days);
/* Rounded down, also for negative numbers. */
int64_t floor_divide(int64_t a, int64_t b);
/* A whole text of `count` digits. */
bool digits_take(struct slice *text, size_t count, int *out);
bool byte_take(struct slice *text, char byte);
/* "2026-11-15T03:42:06" off the front of the text, as seconds since 1970 had it been Greenwich's; false when
 * there is no such day or time. */
bool local_time_take(struct slice *text, int64_t *out_s);

/* ---- zone.c: the clock on the wall ---- */

/* The first moment at which the wall shows this local time or a later one; *is_exact tells whether it ever
 * shows it, or is moved on over it. NULL is UTC. Seconds. */
int64_t zone_first_s(const struct zone *zone, int64_t local_s, bool *is_exact);
/* The latest local time that the wall has shown up to this moment: after it was set back, that of before.
 * A local time is first shown after the moment exactly when it is later than this. */
int64_t zone_reached_s(const struct zone *zone, int64_t time_s);

/* ---- rule.c: the rule of a zone for all years to come, as POSIX writes it in TZ ---- */

enum rule_day_kind { RULE_DAY_OF_YEAR, RULE_DAY_WITHOUT_LEAP, RULE_WEEKDAY_OF_MONTH };

struct rule_day {
    enum rule_day_kind kind;
    int day;         /* of the year: from 0, or from 1 and never counting a 29th of February */
    int month, week; /* WEEKDAY_OF_MONTH; week 5 is the last */
    int weekday;
    int32_t second; /* of the day, in the time that is left; may lie days away */
};

struct rule {
    int32_t standard_s, summer_s; /* east of Greenwich */
    bool has_summer;
    struct rule_day begin, end; /* of summer time */
};

bool rule_parse(struct slice text, struct rule *out);
/* The offset at a moment, and when it may change next (INT64_MAX: never). */
int32_t rule_offset_s(const struct rule *rule, int64_t time_s, int64_t *until_s);

/* The largest offset that a zone may have: the file format's own bound. */
#define OFFSET_MAX_S (26 * HOUR_S)

/* ---- cron.c: the fields of cron(...) and of a crontab line ---- */

/* Sets are bits; of days and months the bit of 1 is the second lowest. */
struct cron {
    uint64_t minutes;
    uint32_t hours, months;
    uint64_t years[(YEAR_MAX - YEAR_MIN) / 64 + 1];
    uint32_t days;          /* of the month */
    uint32_t from_last;     /* L, L-3: bit 0 is the last day, bit 3 the third before it */
    uint32_t nearest;       /* 15W: the weekday nearest to it */
    bool last_working_day;  /* LW */
    uint32_t weekdays;      /* bit 0 is Sunday */
    uint32_t last_weekdays; /* 6L */
    int nth_weekday, nth;   /* 6#3; nth 0: none */
    /* Which of the two fields of days counts: one of them (the service's), both, or either (cron's). */
    enum { DAYS_OF_MONTH, DAYS_OF_WEEK, DAYS_OF_BOTH, DAYS_OF_EITHER } by;
};

/* The six fields of cron(...), or the five of a crontab line. A short phrase, or NULL when all is well. */
const char *cron_parse(struct slice text, bool is_crontab, struct cron *out);

/* ---- search.c: local times that fit the fields, in minutes ---- */

/* The first not before, or the last not after; false when there is none. */
bool cron_search_up(const struct cron *cron, int64_t from_minute, int64_t *out);
bool cron_search_down(const struct cron *cron, int64_t from_minute, int64_t *out);

#endif
