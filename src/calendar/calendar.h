/* When things are due: rate(5 minutes), cron(0 9 ? * MON-FRI *), at(2026-11-15T09:00:00), in any time zone.
 *
 * Pure, but for reading the zone's file once. Times are milliseconds since 1970. Daylight saving follows
 * EventBridge Scheduler: of cron(...), a local time that the clock jumps over is left out, and one that comes
 * twice is due once, at the first. What is ours follows cron(8): a bare crontab line's time that is jumped
 * over is due at the jump, and so is that of at(...), of which the service says nothing. rate(...) knows no
 * clock: a day is 24 hours. */
#ifndef CALENDAR_CALENDAR_H
#define CALENDAR_CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/slice.h"

#define CALENDAR_NEVER INT64_MAX

struct timetable;
struct zone;

/* A zone of the tz database by name ("Europe/Berlin"; empty: UTC), in the arena. NULL and a sentence. */
struct zone *zone_load(struct arena *arena, struct slice name, char *error, size_t error_len);
/* The same from the bytes of a TZif file. */
struct zone *zone_parse(struct arena *arena, struct slice file, char *error, size_t error_len);
/* Seconds east of Greenwich at a moment. */
int32_t zone_offset_s(const struct zone *zone, int64_t time_ms);

/* rate(...), cron(...), at(...); a bare five-field crontab line is taken too. In the arena, which must
 * outlive it, as must the zone (NULL: UTC). `anchor_ms` is a rate's first due time, from which the others
 * count. NULL and a sentence: the service's "Invalid Schedule Expression ..." and our reason. */
struct timetable *timetable_parse(struct arena *arena, struct slice expression, const struct zone *zone,
                                  int64_t anchor_ms, char *error, size_t error_len);
/* The first due time later than `after_ms`, or CALENDAR_NEVER. */
int64_t timetable_next(const struct timetable *timetable, int64_t after_ms);
/* The last due time not later than `until_ms`, or -1 when there is none. */
int64_t timetable_last(const struct timetable *timetable, int64_t until_ms);
bool timetable_is_once(const struct timetable *timetable); /* at(...) */

/* "250ms", "30s", "5m", "1h", "7d", "1h30m"; false when it is none or exceeds max_ms. */
bool duration_parse(struct slice text, int64_t max_ms, int64_t *out_ms);
/* A short text of that form. */
struct slice duration_text(struct arena *arena, int64_t ms);
/* "2026-11-15T03:42:06Z", with fractions and offsets where given; false when it is none. */
bool moment_parse(struct slice text, int64_t *out_ms);
/* "2026-11-15T03:42:06.250Z" */
struct slice moment_text(struct arena *arena, int64_t time_ms);

#endif
