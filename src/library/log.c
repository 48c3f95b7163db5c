/* Logs. Partitions are numbers here; "parked" is QUIPU_PARKED. */
#include <inttypes.h>
#include <stdio.h>

#include "library/ask.h"

enum quipu_result quipu_log_put(struct quipu *db, const char *log, int64_t partitions, int64_t keep_ms,
                                struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "PUT", "/v1/logs/*", log);
    ask_some(&ask, "partitions", partitions);
    ask_some(&ask, "keep", keep_ms);
    ask_run(&ask);
    return ask_end(&ask);
}

enum quipu_result quipu_log_scale(struct quipu *db, const char *log, const char *split_above,
                                  const char *merge_below, int64_t partitions, struct quipu_reply **reply)
{
    struct ask ask, scale = {0};
    ask_begin(&ask, db, reply, "PUT", "/v1/logs/*", log);
    struct buf *body = ask_member(&ask, "scale");
    if (split_above) {
        ask_text(&scale, "split_above", split_above);
        ask_text(&scale, "merge_below", merge_below);
        ask_some(&scale, "partitions", partitions);
        ask_element(&ask, &scale);
    } else {
        buf_text(body, "null");
    }
    ask_run(&ask);
    return ask_end(&ask);
}

enum quipu_result quipu_log_show(struct quipu *db, const char *log, struct quipu_reply **reply)
{
    return ask_plain(db, reply, "GET", "/v1/logs/*", log);
}

enum quipu_result quipu_log_delete(struct quipu *db, const char *log, struct quipu_reply **reply)
{
    return ask_plain(db, reply, "DELETE", "/v1/logs/*", log);
}

/* ---- partitions ---- */

struct partition_name {
    char text[24];
};

static struct partition_name partition_name(int64_t partition)
{
    struct partition_name name = {"parked"};
    if (partition != QUIPU_PARKED) snprintf(name.text, sizeof name.text, "%" PRId64, partition);
    return name;
}

/* Of a raw string. */
static int64_t partition_of(struct slice raw)
{
    if (raw.len < 2 || slice_equal(raw, SLICE("\"parked\""))) return QUIPU_PARKED;
    return part_number((struct slice){raw.data + 1, raw.len - 2}, QUIPU_PARKED);
}

static void ask_partition(struct ask *ask, int64_t partition)
{
    ask_text(ask, "partition", partition_name(partition).text);
}

static void told_partition(struct ask *ask, const char *name, int64_t *partition)
{
    if (partition) *partition = partition_of(told(ask, name));
}

/* ---- appending ---- */

static void ask_event(struct ask *ask, const char *key, const char *data, const char *token)
{
    ask_text(ask, "key", key);
    ask_json(ask, "data", data);
    ask_text(ask, "token", token);
}

enum quipu_result quipu_log_append(struct quipu *db, const char *log, const char *key, const char *data,
                                   const char *token, int64_t *partition, int64_t *sequence,
                                   struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/logs/*", log);
    ask_event(&ask, key, data, token);
    if (ask_run(&ask) > 0) {
        told_partition(&ask, "partition", partition);
        told_int(&ask, "sequence", 0, sequence);
    }
    return ask_end(&ask);
}

static void put_event(struct ask *element, const void *all, size_t number)
{
    const struct quipu_event *event = (const struct quipu_event *)all + number;
    ask_event(element, event->key, event->data, event->token);
}

static void ask_events(struct ask *ask, const struct quipu_event *events, size_t count)
{
    ask_each(ask, "events", events, count, put_event);
}

enum quipu_result quipu_log_append_many(struct quipu *db, const char *log, const struct quipu_event *events,
                                        size_t count, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/logs/*", log);
    ask_events(&ask, events, count);
    ask_run(&ask);
    return ask_end(&ask);
}

enum quipu_result quipu_log_append_expected(struct quipu *db, const char *log, int64_t expected,
                                            const struct quipu_event *events, size_t count, int64_t *sequence,
                                            struct quipu_reply **reply)
{
    struct ask ask;
    struct raw_walk elements;
    struct slice raw;
    ask_begin(&ask, db, reply, "POST", "/v1/logs/*", log);
    ask_events(&ask, events, count);
    ask_int(&ask, "expected", expected);
    if (ask_run(&ask) > 0 && sequence &&
        raw_walk_begin(&elements, ask_arena(&ask), told(&ask, "events")) == JSON_ARRAY) {
        while (raw_walk_next(&elements, NULL, &raw))
            *sequence = part_number(raw_member(ask_arena(&ask), raw, "sequence"), *sequence);
    } else if (ask.result == QUIPU_CONFLICT) {
        told_int(&ask, "sequence", 0, sequence);
    }
    return ask_end(&ask);
}

/* ---- reading ---- */

static struct quipu_event event_of(struct ask *ask, struct slice raw)
{
    static const char *const names[] = {"sequence", "key", "time", "data"};
    struct slice raws[4];
    raw_members(ask_arena(ask), raw, names, raws, 4);
    return (struct quipu_event){.sequence = part_number(raws[0], 0),
                                .key = part_text(ask, raws[1]),
                                .time_ms = part_moment(ask, raws[2]),
                                .data = part_json(ask, raws[3])};
}

/* The events as an array in the reply. */
static void events_told(struct ask *ask, struct quipu_batch *batch)
{
    struct slice list = told(ask, "events"), raw;
    struct raw_walk elements;
    size_t count = raw_kind(list) == JSON_ARRAY ? raw_count(ask_arena(ask), list) : 0;
    if (!count || !ask->slot) return;
    struct quipu_event *events = arena_array(ask_arena(ask), struct quipu_event, count);
    raw_walk_begin(&elements, ask_arena(ask), list);
    for (size_t i = 0; raw_walk_next(&elements, NULL, &raw); i++) events[i] = event_of(ask, raw);
    batch->count = count;
    batch->events = events;
}

static bool read_is_over(struct ask *ask)
{
    return ask->result != QUIPU_NONE;
}

enum quipu_result quipu_log_read(struct quipu *db, const char *log, const char *group,
                                 const struct quipu_read *read, struct quipu_batch *batch,
                                 struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/logs/*/consumers/*/read", log, group);
    ask_text(&ask, "owner", read->owner);
    ask_some(&ask, "max", read->max);
    ask_some(&ask, "for", read->for_ms);
    if (ask_run_waiting(&ask, read->wait_ms, false, read_is_over) > 0 && batch) {
        *batch = (struct quipu_batch){.until_ms = told_moment(&ask, "until"),
                                      .more = told_true(&ask, "more")};
        told_partition(&ask, "partition", &batch->partition);
        told_int(&ask, "fence", 0, &batch->fence);
        told_int(&ask, "position", 0, &batch->position);
        events_told(&ask, batch);
    }
    return ask_end(&ask);
}

static void ask_place(struct ask *ask, int64_t partition, int64_t fence, int64_t sequence)
{
    ask_partition(ask, partition);
    ask_int(ask, "fence", fence);
    ask_some(ask, "sequence", sequence);
}

enum quipu_result quipu_log_ack(struct quipu *db, const char *log, const char *group, int64_t partition,
                                int64_t fence, int64_t sequence, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/logs/*/consumers/*/ack", log, group);
    ask_place(&ask, partition, fence, sequence);
    ask_run(&ask);
    return ask_end(&ask);
}

enum quipu_result quipu_log_park(struct quipu *db, const char *log, const char *group, int64_t partition,
                                 int64_t fence, int64_t sequence, const char *reason,
                                 struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/logs/*/consumers/*/park", log, group);
    ask_place(&ask, partition, fence, sequence);
    ask_text(&ask, "reason", reason);
    ask_run(&ask);
    return ask_end(&ask);
}

/* ---- reading again ---- */

#define REPLAY "/v1/logs/*/consumers/*/replay"

enum quipu_result quipu_log_replay(struct quipu *db, const char *log, const char *group, int64_t partition,
                                   int64_t sequence, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", REPLAY, log, group);
    ask_partition(&ask, partition);
    ask_int(&ask, "sequence", sequence);
    ask_run(&ask);
    return ask_end(&ask);
}

enum quipu_result quipu_log_replay_time(struct quipu *db, const char *log, const char *group, int64_t time_ms,
                                        struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", REPLAY, log, group);
    if (time_ms > 0)
        ask_moment(&ask, "time", time_ms);
    else
        ask_text(&ask, "time", time_ms ? "now" : "start");
    ask_run(&ask);
    return ask_end(&ask);
}

enum quipu_result quipu_log_replay_parked(struct quipu *db, const char *log, const char *group,
                                          int64_t *replayed, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", REPLAY, log, group);
    ask_true(&ask, "parked", true);
    if (ask_run(&ask) > 0) told_int(&ask, "replayed", 0, replayed);
    return ask_end(&ask);
}

enum quipu_result quipu_log_lag(struct quipu *db, const char *log, const char *group, int64_t *lag,
                                int64_t *parked, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "GET", "/v1/logs/*/consumers/*/lag", log, group);
    if (ask_run(&ask) > 0) {
        told_int(&ask, "lag", 0, lag);
        told_int(&ask, "parked", 0, parked);
    }
    return ask_end(&ask);
}

enum quipu_result quipu_log_leave(struct quipu *db, const char *log, const char *group,
                                  struct quipu_reply **reply)
{
    return ask_plain(db, reply, "DELETE", "/v1/logs/*/consumers/*", log, group);
}

/* ---- splitting and merging ---- */

enum quipu_result quipu_log_split(struct quipu *db, const char *log, int64_t partition, const char *at,
                                  int64_t children[2], struct quipu_reply **reply)
{
    struct ask ask;
    struct raw_walk elements;
    struct slice raw;
    ask_begin(&ask, db, reply, "POST", "/v1/logs/*/split", log);
    ask_partition(&ask, partition);
    ask_text(&ask, "at", at);
    if (ask_run(&ask) > 0 && children &&
        raw_walk_begin(&elements, ask_arena(&ask), told(&ask, "children")) == JSON_ARRAY)
        for (int i = 0; i < 2 && raw_walk_next(&elements, NULL, &raw); i++) children[i] = partition_of(raw);
    return ask_end(&ask);
}

enum quipu_result quipu_log_merge(struct quipu *db, const char *log, int64_t one, int64_t other,
                                  int64_t *child, struct quipu_reply **reply)
{
    struct partition_name names[2] = {partition_name(one), partition_name(other)};
    const char *const texts[] = {names[0].text, names[1].text};
    struct ask ask;
    ask_begin(&ask, db, reply, "POST", "/v1/logs/*/merge", log);
    ask_texts(&ask, "partitions", texts, 2);
    if (ask_run(&ask) > 0) told_partition(&ask, "child", child);
    return ask_end(&ask);
}

/* ---- lists ---- */

struct quipu_pages *quipu_log_partitions(struct quipu *db, const char *log)
{
    return ask_list(db, "/v1/logs/*", log);
}

struct quipu_pages *quipu_log_events(struct quipu *db, const char *log, int64_t partition, int64_t after)
{
    struct ask ask;
    ask_begin(&ask, db, NULL, "GET", "/v1/logs/*/partitions/*", log, partition_name(partition).text);
    ask_query_some(&ask, "after", after);
    return ask_pages(&ask);
}

struct quipu_pages *quipu_log_key(struct quipu *db, const char *log, const char *key, int64_t after)
{
    struct ask ask;
    ask_begin(&ask, db, NULL, "GET", "/v1/logs/*/keys/*", log, key);
    ask_query_some(&ask, "after", after);
    return ask_pages(&ask);
}

struct quipu_pages *quipu_log_parked(struct quipu *db, const char *log, const char *group)
{
    return ask_list(db, "/v1/logs/*/consumers/*/parked", log, group);
}
