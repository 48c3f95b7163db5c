/* What a schedule whose time has come does: which due time is fired, which are left out, what comes next.
 * Pure; time comes in as an argument.
 *
 * A run is missed when its moment passed while no server ran, or the clock jumped. MissedRuns says what then
 * happens: ALL fires each of them, one after the other; LATEST fires the last one and leaves the others out;
 * SKIP fires none that is more than a minute late, which is the precision that the service itself promises.
 */
#include "base/hash.h"
#include "trigger/schedule.h"

#define LATE_MS 60000

/* ---- due times ---- */

static bool is_over(const struct schedule *schedule, const struct timetable *timetable, int64_t due_ms)
{
    if (due_ms == CALENDAR_NEVER) return true;
    return !timetable_is_once(timetable) && schedule->end_ms != SCHEDULE_NONE && due_ms > schedule->end_ms;
}

int64_t schedule_first(const struct schedule *schedule, const struct timetable *timetable, int64_t from_ms)
{
    if (!timetable_is_once(timetable) && schedule->start_ms > from_ms) from_ms = schedule->start_ms;
    int64_t due_ms = timetable_next(timetable, from_ms - 1);
    return is_over(schedule, timetable, due_ms) ? SCHEDULE_NONE : due_ms;
}

/* The window ends at the latest where the next due time begins, so that they never overtake each other. */
int64_t schedule_fire_ms(const struct schedule *schedule, const struct timetable *timetable, int64_t due_ms)
{
    if (schedule->window_min == SCHEDULE_NONE) return due_ms;
    int64_t room_ms = schedule->window_min * 60000, next_ms = timetable_next(timetable, due_ms);
    if (next_ms - due_ms < room_ms) room_ms = next_ms - due_ms;
    struct buf seed = {0};
    buf_printf(&seed, "%.*s/%.*s/%lld", SLICE_ARG(schedule->group), SLICE_ARG(schedule->name),
               (long long)due_ms);
    int64_t jitter_ms = (int64_t)(hash_bytes(buf_view(&seed)) % (uint64_t)room_ms);
    buf_free(&seed);
    return due_ms + jitter_ms;
}

struct schedule_verdict schedule_judge(const struct schedule *schedule, const struct timetable *timetable,
                                       int64_t now_ms)
{
    struct schedule_verdict verdict = {.due_ms = schedule->next_ms};
    if (!slice_equal(schedule->missed, SLICE("ALL"))) {
        /* The latest due time whose moment has come; that of `next` has, so it is that one or a later one. */
        int64_t until_ms = now_ms;
        if (!timetable_is_once(timetable) && schedule->end_ms != SCHEDULE_NONE && schedule->end_ms < until_ms)
            until_ms = schedule->end_ms;
        int64_t latest_ms = timetable_last(timetable, until_ms);
        if (latest_ms > schedule->next_ms && schedule_fire_ms(schedule, timetable, latest_ms) > now_ms)
            latest_ms = timetable_last(timetable, latest_ms - 1);
        verdict.due_ms = latest_ms > schedule->next_ms ? latest_ms : schedule->next_ms;
    }
    int64_t next_ms = timetable_next(timetable, verdict.due_ms);
    verdict.next_ms = is_over(schedule, timetable, next_ms) ? SCHEDULE_NONE : next_ms;
    if (slice_equal(schedule->missed, SLICE("SKIP")) &&
        now_ms - schedule_fire_ms(schedule, timetable, verdict.due_ms) > LATE_MS)
        verdict.due_ms = SCHEDULE_NONE;
    return verdict;
}

/* ---- the event ---- */

/* "2022-03-22T18:59:43Z" */
static struct slice time_text(struct arena *arena, int64_t time_ms)
{
    struct slice text = moment_text(arena, time_ms);
    return arena_printf(arena, "%.*sZ", (int)(text.len - (sizeof ".000Z" - 1)), text.data);
}

#define KEYWORDS 4

/* The text with the keywords of the service replaced. */
static void put_filled(struct buf *out, struct arena *arena, struct slice text,
                       const struct schedule_attempt *attempt)
{
    const struct {
        struct slice keyword, value;
    } rows[KEYWORDS] = {
        {SLICE("<aws.scheduler.schedule-arn>"), attempt->arn},
        {SLICE("<aws.scheduler.scheduled-time>"), time_text(arena, attempt->due_ms)},
        {SLICE("<aws.scheduler.execution-id>"), attempt->execution_id},
        {SLICE("<aws.scheduler.attempt-number>"), arena_printf(arena, "%u", attempt->number)},
    };
    while (text.len) {
        const char *mark = memchr(text.data, '<', text.len);
        size_t plain = mark ? (size_t)(mark - text.data) : text.len, i = 0;
        buf_put(out, text.data, plain);
        text = slice_from(text, plain);
        while (i < KEYWORDS && !slice_starts(text, rows[i].keyword)) i++;
        if (i < KEYWORDS) {
            buf_slice(out, rows[i].value);
            text = slice_from(text, rows[i].keyword.len);
        } else if (text.len) {
            buf_byte(out, '<');
            text = slice_from(text, 1);
        }
    }
}

struct slice schedule_event(struct arena *arena, const struct trigger *trigger,
                            const struct schedule *schedule, const struct schedule_attempt *attempt)
{
    struct buf event = {0};
    if (schedule->input.data)
        put_filled(&event, arena, schedule->input, attempt);
    else
        compose(
            &event,
            "{'version':'0','id':%s,'detail-type':'Scheduled Event','source':'aws.scheduler','account':%s,"
            "'time':%s,'region':%s,'resources':[%s],'detail':'{}'}",
            attempt->execution_id, trigger->account, time_text(arena, attempt->due_ms), trigger->region,
            attempt->arn);
    return arena_take(arena, &event);
}

bool schedule_input_is_json(struct arena *arena, struct slice input)
{
    struct schedule_attempt attempt = {SLICE("arn"), 0, SLICE("id"), 1};
    struct buf filled = {0};
    put_filled(&filled, arena, input, &attempt);
    bool fine = raw_is_json(arena, buf_view(&filled));
    buf_free(&filled);
    return fine;
}
