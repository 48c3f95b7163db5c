/* Batches, retries, halves: what follows for the records of a lane.
 *
 * A failed batch is handed over again as it was, until its retries are used up. Where the mapping bisects,
 * only a single record uses retries up: a larger batch is split instead, and a record that always fails is
 * alone in the end. A function that tells where it failed moves the position up to there. */
#include "trigger/judge.h"

#include "base/limits.h"

#define RETRY_LEAST_US 10000
#define RETRY_FIRST_US 10000
#define STREAM_LIFE_MS (24ll * 3600 * 1000) /* the service keeps a record so long; so may retries last */

/* ---- batches ---- */

int64_t window_start_ms(int64_t moment_ms, int64_t tumbling_ms)
{
    int64_t rest = moment_ms % tumbling_ms;
    return moment_ms - (rest < 0 ? rest + tumbling_ms : rest);
}

/* How many belong together; *is_full when no further one can join them. */
static uint32_t count_together(const struct record *records, uint32_t count, const struct cut *cut,
                               bool *is_full)
{
    size_t bytes = 0;
    uint32_t take = 0;
    *is_full = true;
    for (; take < count && take < cut->batch_size; take++) {
        const struct record *record = &records[take];
        if (record->is_looped != records[0].is_looped) return take;
        if (take && record->created_ms >= cut->before_ms) return take;
        if (take && bytes + record->event.len + 1 > cut->room_bytes) return take;
        bytes += record->event.len + 1;
    }
    *is_full = take == cut->batch_size || records[0].is_looped || cut->is_last;
    return take;
}

struct cut_result batch_cut(const struct record *records, uint32_t count, const struct cut *cut)
{
    bool is_full;
    if (!count) return (struct cut_result){.ready = DUE_NEVER};
    uint32_t take = count_together(records, count, cut, &is_full);
    const struct record_page *page = records[0].page;
    struct due ready = {page->arrived_ms + cut->window_ms, page->arrived_us + cut->window_ms * 1000};
    if (is_full || cut->now_ms >= ready.wall_ms || cut->now_us >= ready.ticks_us)
        return (struct cut_result){take, ready};
    return (struct cut_result){0, ready};
}

/* ---- before an invocation ---- */

static uint32_t count_older(const struct record *records, uint32_t count, int64_t than_ms)
{
    uint32_t older = 0;
    while (older < count && records[older].created_ms < than_ms) older++;
    return older;
}

struct next_step judge_next(const struct mapping *mapping, const struct record *records, uint32_t count,
                            int64_t now_ms)
{
    const struct record *head = &records[0];
    if (head->is_looped) return (struct next_step){count, "RecursiveInvocation"};
    int64_t age_max_ms = mapping->age_max_ms;
    if (age_max_ms < 0 && head->failures) age_max_ms = STREAM_LIFE_MS;
    uint32_t older = age_max_ms < 0 ? 0 : count_older(records, count, now_ms - age_max_ms);
    if (older) return (struct next_step){older, "RecordAgeExceeded"};
    if (mapping->retries_max >= 0 && (int64_t)head->failures > mapping->retries_max)
        return (struct next_step){count, "RetryAttemptsExhausted"};
    return (struct next_step){count, NULL};
}

/* ---- behind it ---- */

static struct verdict judge_failure(const struct mapping *mapping, uint32_t count)
{
    if (mapping->bisect && count > 1) return (struct verdict){.splits = true};
    return (struct verdict){.counts = true, .pauses = true};
}

struct verdict judge_result(const struct mapping *mapping, enum outcome outcome, uint32_t count,
                            uint32_t done)
{
    switch (outcome) {
    case OUTCOME_DONE: return (struct verdict){.moves = count};
    case OUTCOME_UNSENT: return (struct verdict){.pauses = true};
    case OUTCOME_TOO_MUCH:
        if (count > 1) return (struct verdict){.splits = true};
        return (struct verdict){.counts = true, .pauses = true};
    case OUTCOME_PARTIAL:
        if (done) return (struct verdict){.moves = done, .counts = !mapping->bisect};
        break;
    case OUTCOME_FAILED: break;
    }
    return judge_failure(mapping, count);
}

int64_t retry_after_us(uint32_t failures, int64_t bound_us, uint64_t random_bits)
{
    return RETRY_LEAST_US + dynamo_pause_us(failures, RETRY_FIRST_US, bound_us - RETRY_LEAST_US, random_bits);
}
