/* The follower of one table: from the source's stream into the target. */
#include <string.h>

#include "base/clock.h"
#include "cli/change.h"
#include "cli/copy.h"

#define WAIT_MS         100  /* how soon it notices what it is told */
#define SWITCH_IDLE_MS  1500 /* a remote stream is some hundred milliseconds behind its table */
#define FAILURES_IN_ROW 40

/* A stream without new images only tells that something changed: the source is asked what it is now. */
static bool apply_present_state(struct copied *copied, struct arena *arena, const struct node *keys)
{
    struct buf request = {0};
    request_begin(&request, copied->name);
    put_raw_member(&request, "Key", keys->source);
    buf_text(&request, ",\"ConsistentRead\":true}");
    struct answer answer = place_ask(&copied->copy->source, arena, "GetItem", &request);
    buf_free(&request);
    if (answer.error) {
        place_complain(&copied->copy->source, copied->name, answer.error, answer.message);
        return false;
    }
    const struct node *item = node_member(answer.json, "Item");
    struct sink *sink = copied->copy->sink;
    return item ? sink_put(sink, &copied->table, item->source)
                : sink_delete(sink, &copied->table, keys->source);
}

static bool apply(struct copied *copied, struct slice json)
{
    struct arena arena = {0};
    struct change change;
    const char *fault;
    struct sink *sink = copied->copy->sink;
    const struct node *record = node_parse(&arena, json, &fault);
    bool fine = record && change_read(record, &change);
    if (!fine)
        complain("%s: the stream holds something that is no change: %.*s", copied->name,
                 (int)(json.len < 200 ? json.len : 200), json.data);
    else if (slice_equal(change.event, SLICE("REMOVE")))
        fine = sink_delete(sink, &copied->table, change.keys->source);
    else if (change.new_image)
        fine = sink_put(sink, &copied->table, change.new_image->source);
    else
        fine = apply_present_state(copied, &arena, change.keys);
    if (fine) atomic_fetch_add(&copied->applied, 1);
    arena_free(&arena);
    return fine;
}

/* What was put aside while the items were copied. */
static bool apply_spooled(struct copied *copied)
{
    struct slice json;
    bool fine = spool_rewind(&copied->spool);
    while (fine && !atomic_load(&copied->copy->is_given_up) && spool_next(&copied->spool, &json))
        fine = apply(copied, json);
    fine = fine && !spool_failed(&copied->spool);
    spool_free(&copied->spool);
    return fine;
}

static bool take(struct copied *copied, const struct quipu_record *record, bool is_applying)
{
    struct slice json = {record->json, record->json_len};
    atomic_store(&copied->changed_us, monotonic_us());
    return is_applying ? apply(copied, json) : spool_add(&copied->spool, json);
}

static bool goes_on_after_failure(struct copied *copied, unsigned *in_vain)
{
    const struct quipu_reply *reply = quipu_stream_reply(copied->stream);
    if (error_may_pass(reply->error) && *in_vain < FAILURES_IN_ROW) {
        pause_before_retry((*in_vain)++);
        return true;
    }
    place_complain(&copied->copy->source, copied->name, reply->error, reply->message);
    if (strcmp(reply->error, "TrimmedDataAccessException") == 0)
        complain("%s: changes are lost, since they were not read within the time that the stream keeps them; "
                 "run the "
                 "copy again",
                 copied->name);
    return false;
}

/* One look at the stream. 1: go on, 0: it is over, -1: it has failed. */
static int step(struct copied *copied, bool is_applying, unsigned *in_vain)
{
    struct quipu_record record;
    bool is_last_look = is_applying && atomic_load(&copied->copy->is_switching);
    switch (quipu_stream_next(copied->stream, is_last_look ? SWITCH_IDLE_MS : WAIT_MS, &record)) {
    case QUIPU_FOUND: *in_vain = 0; return take(copied, &record, is_applying) ? 1 : -1;
    case QUIPU_NONE: return is_last_look ? 0 : 1;
    case QUIPU_ENDED: break;
    default: return goes_on_after_failure(copied, in_vain) ? 1 : -1;
    }
    if (!is_applying) return 1;
    complain("%s: the source's stream was switched off; what is written from now on is not followed",
             copied->name);
    return -1;
}

void *follow_run(void *context)
{
    struct copied *copied = context;
    bool is_applying = false;
    unsigned in_vain = 0;
    int result = 1;
    while (result > 0 && !atomic_load(&copied->copy->is_given_up)) {
        if (!is_applying && atomic_load(&copied->has_all_items)) {
            is_applying = true;
            if (!apply_spooled(copied))
                result = -1;
            else
                atomic_store(&copied->changed_us, monotonic_us());
        }
        if (result > 0) result = step(copied, is_applying, &in_vain);
    }
    if (result < 0) atomic_store(&copied->has_failed, true);
    return NULL;
}
