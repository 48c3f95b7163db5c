/* The function of the simulation: it answers as it should, most of the time. */
#include "unit/trigger_simulation.h"

#include <stdlib.h>

#define RECORDS_MAX 10000

struct entry {
    struct slice pk, sequence, number;
};

static struct slice find_text(struct slice text, const char *before)
{
    const char *at = memmem(text.data, text.len, before, strlen(before));
    if (!at) return SLICE("");
    at += strlen(before);
    const char *end = memchr(at, '"', (size_t)(text.data + text.len - at));
    return (struct slice){at, (size_t)(end - at)};
}

static unsigned read_records(struct slice payload, struct entry *entries)
{
    static const char mark[] = "{\"eventID\"";
    unsigned count = 0;
    const char *at = memmem(payload.data, payload.len, mark, sizeof mark - 1);
    while (at && count < RECORDS_MAX) {
        size_t left = (size_t)(payload.data + payload.len - at);
        const char *next = memmem(at + 1, left - 1, mark, sizeof mark - 1);
        struct slice text = {at, next ? (size_t)(next - at) : left};
        entries[count++] = (struct entry){find_text(text, "\"pk\":{\"S\":\""),
                                          find_text(text, "\"SequenceNumber\":\""),
                                          find_text(text, "\"text\":{\"S\":\"")};
        at = next;
    }
    return count;
}

/* The state of a window: ["key-1 n5", "key-7 n6", ...] */
static unsigned read_state(struct slice payload, struct entry *entries)
{
    unsigned count = 0;
    const char *at = memmem(payload.data, payload.len, "\"state\":[", 9);
    if (!at) return 0;
    at += 8;
    while (strchr("[,", *at) && at[1] == '"' && count < RECORDS_MAX) {
        at += 2;
        const char *blank = strchr(at, ' '), *end = strchr(at, '"');
        entries[count++] = (struct entry){.pk = {at, (size_t)(blank - at)},
                                          .number = {blank + 1, (size_t)(end - blank - 1)}};
        at = end + 1;
    }
    return count;
}

static void put_append(struct buf *out, const struct entry *entries, unsigned first, unsigned count)
{
    bool is_first = true;
    buf_printf(out,
               "{\"Update\":{\"TableName\":\"lists\",\"Key\":{\"pk\":{\"S\":\"%.*s\"}},"
               "\"UpdateExpression\":\"SET #l = list_append(if_not_exists(#l, :none), :new)\","
               "\"ExpressionAttributeNames\":{\"#l\":\"list\"},"
               "\"ExpressionAttributeValues\":{\":none\":{\"L\":[]},\":new\":{\"L\":[",
               SLICE_ARG(entries[first].pk));
    for (unsigned i = first; i < count; i++) {
        if (!slice_equal(entries[i].pk, entries[first].pk)) continue;
        buf_printf(out, "%s{\"S\":\"%.*s\"}", is_first ? "" : ",", SLICE_ARG(entries[i].number));
        is_first = false;
    }
    buf_text(out, "]}}}}");
}

/* One write for each key: what is appended to its list. The answer's brace is left open. */
static void put_effects(struct buf *out, const struct entry *entries, unsigned count)
{
    bool is_first = true;
    buf_text(out, "{\"quipu\":{\"transact\":[");
    for (unsigned i = 0; i < count; i++) {
        bool was_seen = false;
        for (unsigned j = 0; j < i; j++) was_seen |= slice_equal(entries[j].pk, entries[i].pk);
        if (was_seen) continue;
        if (!is_first) buf_byte(out, ',');
        is_first = false;
        put_append(out, entries, i, count);
    }
    buf_text(out, "]}");
}

static void put_state(const struct play *play, struct buf *out, struct slice payload, const struct entry *entries,
                      unsigned count)
{
    static struct entry former[RECORDS_MAX];
    unsigned former_count = read_state(payload, former);
    buf_text(out, "{\"state\":[");
    for (unsigned i = 0; i < former_count + count; i++) {
        const struct entry *entry = i < former_count ? &former[i] : &entries[i - former_count];
        buf_printf(out, "%s\"%.*s %.*s\"", i ? "," : "", SLICE_ARG(entry->pk), SLICE_ARG(entry->number));
    }
    if (play->has_long_states)
        for (unsigned i = 0; i < LIMIT_WINDOW_INLINE_BYTES; i++) buf_byte(out, ' ');
    buf_byte(out, ']');
}

/* Does what is to be done for so many of them. The answer's brace is left open. */
static void handle(struct play *play, struct invocation *invocation, struct entry *entries, unsigned count)
{
    bool is_last = count_text(invocation->payload, "\"isFinalInvokeForWindow\":true") > 0;
    if (play->kind == PLAY_WINDOWS && is_last) count = read_state(invocation->payload, entries);
    if (play->kind == PLAY_WINDOWS && !is_last)
        put_state(play, &invocation->reply, invocation->payload, entries, count);
    else
        put_effects(&invocation->reply, entries, count);
}

static void answer_partly(struct play *play, struct invocation *invocation, struct entry *entries,
                          unsigned count)
{
    unsigned good = (unsigned)random_below(&play->stage.random, count);
    handle(play, invocation, entries, good);
    buf_printf(&invocation->reply, ",\"batchItemFailures\":[{\"itemIdentifier\":\"%.*s\"}]}",
               SLICE_ARG(entries[good].sequence));
}

/* In some way in which functions go wrong; false when it did not. */
static bool go_wrong(struct play *play, struct invocation *invocation)
{
    if (play_chance(play, play->trouble)) {
        invocation->end = INVOCATION_THROTTLED;
        return true;
    }
    if (play->kind == PLAY_POISON) return false; /* only what is poisoned may use retries up */
    if (play_chance(play, play->trouble)) {
        stage_fail(invocation, "chance");
    } else if (play_chance(play, play->trouble)) {
        stage_answer(invocation, "{\"quipu\":{\"transact\":[{\"Delete\":{\"TableName\":\"none\","
                                 "\"Key\":{\"pk\":{\"S\":\"x\"}}}}]},\"state\":[]}");
    } else if (play_chance(play, play->trouble)) {
        stage_answer(invocation, "{\"quipu\":{\"transact\":[{\"Delete\":{\"TableName\":\"lists\","
                                 "\"Key\":{\"pk\":{\"S\":\"x\"}},"
                                 "\"ConditionExpression\":\"attribute_exists(pk)\"}}]},\"state\":[]}");
    } else {
        return false;
    }
    return true;
}

static bool has_poison(const struct entry *entries, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (count_text(entries[i].number, "poison")) return true;
    return false;
}

void play_function(struct stage *stage, struct invocation *invocation)
{
    static struct entry entries[RECORDS_MAX];
    struct play *play = stage->context;
    unsigned count = read_records(invocation->payload, entries);
    if (go_wrong(play, invocation)) return;
    if (has_poison(entries, count)) {
        stage_fail(invocation, "poison");
        return;
    }
    if (play->reports && count > 1 && play->kind != PLAY_POISON && play_chance(play, 200)) {
        answer_partly(play, invocation, entries, count);
        return;
    }
    handle(play, invocation, entries, count);
    buf_byte(&invocation->reply, '}');
}
