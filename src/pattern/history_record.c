/* Records of a stream as items of the history: pure, so that whoever reads the stream can put them in one
 * transaction with its position (a trigger's target), or again and again: the same record is the same item.
 */
#include "pattern/history.h"

#include <stdlib.h>

#include "base/fail.h"
#include "base/limits.h"
#include "calendar/calendar.h"
#include "pattern/pattern.h"

#define KEY_PARTS 2
#define SEQUENCE_BYTES                                                                                       \
    40 /* of a sequence number, filled with zeros in front: the service's have 21 to 40 digits */
#define ITEM_SLACK 1024

struct part {
    struct slice name, value;
};

/* The characters of {"S":"x"}, {"N":"1"}, {"B":"eA=="}. */
static struct slice scalar_text(struct arena *arena, struct slice attribute)
{
    struct slice text = raw_text(arena, raw_member(arena, attribute, "S"));
    if (!text.data) text = raw_text(arena, raw_member(arena, attribute, "N"));
    return text.data ? text : raw_text(arena, raw_member(arena, attribute, "B"));
}

/* "name=value&name=value", names in order. */
static bool put_key(struct arena *arena, struct slice keys, struct buf *out)
{
    struct part parts[KEY_PARTS];
    struct slice name, value;
    struct raw_walk walk;
    size_t count = 0;
    raw_walk_begin(&walk, arena, keys);
    while (raw_walk_next(&walk, &name, &value)) {
        if (count == KEY_PARTS) return false;
        struct part part = {name, scalar_text(arena, value)};
        if (!part.value.data) return false;
        if (count && slice_compare(name, parts[0].name) < 0) {
            parts[1] = parts[0];
            parts[0] = part;
        } else {
            parts[count] = part;
        }
        count++;
    }
    for (size_t i = 0; i < count; i++) {
        if (i) buf_byte(out, '&');
        rest_encode(out, parts[i].name);
        buf_byte(out, '=');
        rest_encode(out, parts[i].value);
    }
    return count > 0;
}

static void put_member(struct buf *out, const char *name, char type, struct slice text)
{
    buf_printf(out, ",\"%s\":{\"%c\":", name, type);
    json_put_string(out, text);
    buf_byte(out, '}');
}

/* "2026-11-15T04:13:25.000Z#0000...0042": sorts by time, then by the stream's order. */
static struct slice version_text(struct arena *arena, int64_t time_ms, struct slice sequence)
{
    int zeros = sequence.len < SEQUENCE_BYTES ? SEQUENCE_BYTES - (int)sequence.len : 0;
    return arena_printf(arena, "%.*s#%.*d%.*s", SLICE_ARG(moment_text(arena, time_ms)), zeros, 0,
                        SLICE_ARG(sequence));
}

static int64_t time_of(struct arena *arena, struct slice change)
{
    struct slice text = raw_text(arena, raw_member(arena, change, "ApproximateCreationDateTime"));
    char copy[40];
    if (!text.len || text.len >= sizeof copy) return 0;
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    double seconds = strtod(copy, NULL);
    return seconds > 0 && seconds < 1e11 ? (int64_t)(seconds * 1000 + 0.5) : 0;
}

static void put_item(struct arena *arena, const struct history_rule *rule, struct slice record,
                     struct slice change, struct buf *out)
{
    struct slice sequence = raw_text(arena, raw_member(arena, change, "SequenceNumber"));
    struct slice keys = raw_member(arena, change, "Keys"), image = raw_member(arena, change, "NewImage");
    struct slice cause = raw_text(arena, raw_member(arena, record, "cause"));
    int64_t time_ms = time_of(arena, change);
    put_member(out, "version", 'S', version_text(arena, time_ms, sequence));
    put_member(out, "table", 'S', rule->table);
    put_member(out, "event", 'S', raw_text(arena, raw_member(arena, record, "eventName")));
    put_member(out, "time", 'S', moment_text(arena, time_ms));
    put_member(out, "sequence", 'S', sequence);
    if (cause.len) put_member(out, "cause", 'S', cause);
    if (rule->keep_s)
        put_member(out, "expires", 'N',
                   arena_printf(arena, "%lld", (long long)(time_ms / 1000 + rule->keep_s)));
    buf_text(out, ",\"keys\":{\"M\":");
    buf_slice(out, keys);
    buf_byte(out, '}');
    if (!image.data) return;
    if (item_bytes(arena, image) + item_bytes(arena, keys) + ITEM_SLACK > LIMIT_ITEM_BYTES) {
        buf_text(out,
                 ",\"large\":{\"BOOL\":true}"); /* beside the key of its version it does not fit an item */
        return;
    }
    buf_text(out, ",\"image\":{\"M\":");
    buf_slice(out, image);
    buf_byte(out, '}');
}

/* False when it is no record with what is needed. */
static bool put_action(struct arena *arena, const struct history_rule *rule, struct slice record,
                       struct buf *out)
{
    struct slice change = raw_member(arena, record, "dynamodb");
    struct slice event = raw_text(arena, raw_member(arena, record, "eventName"));
    struct slice sequence = raw_text(arena, raw_member(arena, change, "SequenceNumber"));
    bool is_removal = slice_equal(event, SLICE("REMOVE"));
    struct buf key = {0};
    rest_encode(&key, rule->table);
    buf_byte(&key, '/');
    bool fine = put_key(arena, raw_member(arena, change, "Keys"), &key) && sequence.len &&
                sequence.len <= SEQUENCE_BYTES &&
                (is_removal || slice_equal(event, SLICE("INSERT")) || slice_equal(event, SLICE("MODIFY"))) &&
                (is_removal || raw_member(arena, change, "NewImage").data);
    if (fine) {
        buf_text(out, "{\"Put\":{\"TableName\":\"");
        buf_slice(out, rule->prefix);
        buf_text(out, "history\",\"Item\":{\"item\":{\"S\":");
        json_put_string(out, buf_view(&key));
        buf_byte(out, '}');
        put_item(arena, rule, record, change, out);
        buf_text(out, "}}}");
    }
    buf_free(&key);
    return fine;
}

bool history_actions(struct arena *arena, const struct history_rule *rule, struct slice records,
                     struct buf *out, size_t *count, const char **fault)
{
    struct raw_walk walk;
    struct slice record;
    *count = 0;
    if (raw_kind(records) != JSON_ARRAY) {
        *fault = "the event has no Records: a history takes records of DynamoDB streams";
        return false;
    }
    raw_walk_begin(&walk, arena, records);
    while (raw_walk_next(&walk, NULL, &record)) {
        if (*count) buf_byte(out, ',');
        if (!put_action(arena, rule, record, out)) {
            *fault = "a record is none of a DynamoDB stream with new images";
            return false;
        }
        ++*count;
    }
    return true;
}

bool pattern_history(struct slice prefix, struct slice table, int64_t keep_s, struct slice event,
                     struct arena *arena, struct buf *reply)
{
    struct history_rule rule = {.prefix = prefix, .table = table, .keep_s = keep_s};
    struct buf actions = {0};
    const char *fault = NULL;
    size_t count;
    bool fine = history_actions(arena, &rule, raw_member(arena, event, "Records"), &actions, &count, &fault);
    if (fine) {
        buf_text(reply, "{\"quipu\":{\"transact\":[");
        buf_slice(reply, buf_view(&actions));
        buf_text(reply, "]}}");
    } else {
        buf_slice(reply, slice_of(fault));
    }
    buf_free(&actions);
    return fine;
}
