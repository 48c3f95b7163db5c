/* Points in a shard; batches, retries, halves: what follows for the records of a lane; shares of leases.
 *
 * A failed batch is handed over again as it was, until its retries are used up. Where the mapping bisects,
 * only a single record uses retries up: a larger batch is split instead, and a record that always fails is
 * alone in the end. A function that tells where it failed moves the position up to there.
 *
 * Lambda's rules for answers: where the mapping has ReportBatchItemFailures, the lowest sequence number that the
 * answer names is where the function failed; an empty list, null, or no such member means that all is done; a list that
 * cannot be understood, or names a record that was not handed over, means that all has failed.
 *
 * Where several servers share the work, each looks at the leases of a mapping and decides for itself; conditional
 * writes settle it when two want the same. A lease that is free is taken up to a fair share: all that are open, divided
 * by the servers that hold or ask for one, rounded up. Nobody knows of a server that holds nothing, so a newcomer
 * writes its name on a lease of who has most; the holder finishes its batches and gives it up. */
#include "trigger/judge.h"

#include "base/limits.h"
#include "base/raw.h"

#define RETRY_LEAST_US 10000
#define RETRY_FIRST_US 10000
#define STREAM_LIFE_MS (24ll * 3600 * 1000) /* the service keeps a record so long; so may retries last */

/* ---- points ---- */

int sequence_compare(struct slice a, struct slice b)
{
    while (a.len && a.data[0] == '0') a = slice_from(a, 1);
    while (b.len && b.data[0] == '0') b = slice_from(b, 1);
    if (a.len != b.len) return a.len < b.len ? -1 : 1;
    return a.len ? memcmp(a.data, b.data, a.len) : 0;
}

bool point_set(struct point *point, struct slice text)
{
    if (!text.len || text.len > sizeof point->text) return false;
    point->len = (unsigned char)text.len;
    memcpy(point->text, text.data, text.len);
    return true;
}

bool point_is_number(const struct point *point)
{
    return point->len && point->text[0] >= '0' && point->text[0] <= '9';
}

int point_compare(const struct point *a, const struct point *b)
{
    bool a_counts = point_is_number(a), b_counts = point_is_number(b);
    if (a_counts != b_counts) return a_counts ? 1 : -1;
    if (a_counts) return sequence_compare(point_view(a), point_view(b));
    return slice_compare(point_view(a), point_view(b));
}

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
    if (!count) return (struct cut_result){.ready = TASK_NEVER};
    uint32_t take = count_together(records, count, cut, &is_full);
    const struct record_page *page = records[0].page;
    struct task_moment ready = {.ticks_us = page->arrived_us + cut->window_ms * 1000,
                                .now_ms = page->arrived_ms + cut->window_ms};
    if (is_full || cut->now_ms >= ready.now_ms || cut->now_us >= ready.ticks_us)
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

const char *judge_last_call(const struct mapping *mapping, uint32_t failures, int64_t end_ms, int64_t now_ms)
{
    int64_t age_max_ms = mapping->age_max_ms < 0 ? STREAM_LIFE_MS : mapping->age_max_ms;
    if (mapping->retries_max >= 0 && (int64_t)failures > mapping->retries_max)
        return "RetryAttemptsExhausted";
    return now_ms - end_ms > age_max_ms ? "RecordAgeExceeded" : NULL;
}

/* ---- behind it ---- */

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
    if (mapping->bisect && count > 1) return (struct verdict){.splits = true};
    return (struct verdict){.counts = true, .pauses = true};
}

int64_t retry_after_us(uint32_t failures, int64_t bound_us, uint64_t random_bits)
{
    return RETRY_LEAST_US + dynamo_pause_us(failures, RETRY_FIRST_US, bound_us - RETRY_LEAST_US, random_bits);
}

/* ---- answers ---- */

/* Records of a batch are in the order of their numbers. */
static bool find_record(struct slice sequence, const struct record *records, uint32_t count, uint32_t *found)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (sequence_compare(records[middle].sequence, sequence) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = low;
    return low < count && slice_equal(records[low].sequence, sequence);
}

static void fail(struct answer *answer, const char *fault)
{
    answer->outcome = OUTCOME_FAILED;
    answer->fault = fault;
}

/* [{"itemIdentifier":"..."}, ...] */
static void read_failures(struct slice list, const struct record *records, uint32_t count,
                          struct arena *arena, struct answer *answer)
{
    struct slice failure;
    uint32_t lowest = count, index;
    if (raw_kind(list) != JSON_ARRAY) {
        fail(answer, "batchItemFailures is not a list");
        return;
    }
    raw_each (arena, list, &failure) {
        struct slice identifier = raw_string(arena, raw_member(arena, failure, "itemIdentifier"));
        if (!find_record(identifier, records, count, &index)) {
            fail(answer, "batchItemFailures names no record of the batch");
            return;
        }
        if (index < lowest) lowest = index;
    }
    if (lowest == count) return;
    answer->outcome = OUTCOME_PARTIAL;
    answer->done = lowest;
}

void answer_read(struct slice reply, bool reports_failures, const struct record *records, uint32_t count,
                 struct arena *arena, struct answer *out)
{
    static const char *const names[] = {"state", "batchItemFailures"};
    struct slice raws[2];
    *out = (struct answer){.outcome = OUTCOME_DONE, .state = SLICE("")};
    bool is_object = raw_members(arena, reply, names, raws, 2);
    bool is_json = is_object || !slice_trim(reply).len || raw_is_json(arena, reply);
    if (is_object && raws[0].data) out->state = raws[0];
    if (!reports_failures) return;
    if (!is_json)
        fail(out, "the answer is not JSON");
    else if (is_object && raws[1].data)
        read_failures(raws[1], records, count, arena, out);
}

/* ---- sharing ---- */

static bool names(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static bool is_first_of(const struct lease_view *views, uint32_t index, const char *who)
{
    for (uint32_t i = 0; i < index; i++)
        if (names(views[i].owner, who) || names(views[i].wanted, who)) return false;
    return true;
}

static uint32_t count_of(const struct lease_view *views, uint32_t count, const char *owner)
{
    uint32_t held = 0;
    for (uint32_t i = 0; i < count; i++) held += views[i].is_open && names(views[i].owner, owner);
    return held;
}

static bool is_takeable(const struct lease_view *view, const char *me)
{
    return view->is_open && !*view->owner && (!*view->wanted || names(view->wanted, me));
}

/* Those that were given up for us come first: nobody else takes them. */
static uint32_t take_free(const struct lease_view *views, uint32_t count, const char *me, uint32_t room,
                          enum lease_wish *wishes)
{
    uint32_t taken = 0;
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < count && taken < room; i++) {
            bool is_ours = *views[i].wanted != 0;
            if (!is_takeable(&views[i], me) || is_ours != (pass == 0)) continue;
            wishes[i] = LEASE_TAKE;
            taken++;
        }
    return taken;
}

/* What is asked for counts as given already, by who has it and to who asked. */
static uint32_t count_left(const struct lease_view *views, uint32_t count, const char *owner,
                           const enum lease_wish *wishes)
{
    uint32_t left = count_of(views, count, owner);
    for (uint32_t i = 0; i < count; i++)
        left -= views[i].is_open && names(views[i].owner, owner) &&
                (*views[i].wanted || wishes[i] == LEASE_ASK);
    return left;
}

/* A lease of who would have most left. */
static uint32_t find_richest(const struct lease_view *views, uint32_t count, const char *me,
                             const enum lease_wish *wishes, uint32_t *left)
{
    uint32_t richest = 0;
    *left = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct lease_view *view = &views[i];
        if (!view->is_open || !*view->owner || names(view->owner, me) || *view->wanted ||
            wishes[i] == LEASE_ASK)
            continue;
        uint32_t has = count_left(views, count, view->owner, wishes);
        if (has <= *left) continue;
        *left = has;
        richest = i;
    }
    return richest;
}

static void ask_for_more(const struct lease_view *views, uint32_t count, const char *me, uint32_t mine,
                         enum lease_wish *wishes)
{
    uint32_t left;
    for (uint32_t i = 0; i < count; i++) mine += *views[i].owner && names(views[i].wanted, me);
    for (;; mine++) {
        uint32_t richest = find_richest(views, count, me, wishes, &left);
        if (left < mine + 2) return;
        wishes[richest] = LEASE_ASK;
    }
}

void lease_wishes(const struct lease_view *views, uint32_t count, const char *me, enum lease_wish *wishes)
{
    uint32_t open = 0, free_ones = 0;
    for (uint32_t i = 0; i < count; i++) {
        wishes[i] = LEASE_LEAVE;
        open += views[i].is_open;
        free_ones += is_takeable(&views[i], me);
    }
    /* Servers that hold a lease or have asked for one, and we. */
    uint32_t servers = 1;
    for (uint32_t i = 0; i < count; i++) {
        const char *owner = views[i].owner, *wanted = views[i].wanted;
        if (*owner && !names(owner, me) && is_first_of(views, i, owner)) servers++;
        if (*wanted && !names(wanted, me) && !names(wanted, owner) && is_first_of(views, i, wanted))
            servers++;
    }
    uint32_t share = (open + servers - 1) / servers, mine = count_of(views, count, me);
    if (mine < share) mine += take_free(views, count, me, share - mine, wishes);
    if (!free_ones) ask_for_more(views, count, me, mine, wishes);
}
