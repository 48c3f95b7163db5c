/* Records of a stream as items of the history: pure, so that whoever reads the stream can put them in one
 * transaction with its position (a trigger's target), or again and again: the same record is the same item.
 */
#include "pattern/history.h"

#include <stdlib.h>

#include "base/compose.h"
#include "base/digest.h"
#include "base/hash.h"
#include "base/limits.h"
#include "calendar/calendar.h"
#include "pattern/internal.h"

#define KEY_PARTS      2
#define SEQUENCE_BYTES 40 /* of a sequence number, filled with zeros in front: the service's have 21 to 40 */
#define IMAGE_DEPTH    56 /* of brackets: a value in a list or map stands in two, and an item has 32 levels */
#define ITEM_SLACK     512 /* of what stands beside key and image */

/* The characters of {"S":"x"}, {"N":"1"}, {"B":"eA=="}. */
static struct slice scalar_text(struct arena *arena, struct slice attribute)
{
    struct slice text = raw_text(arena, raw_member(arena, attribute, "S"));
    struct slice number = raw_text(arena, raw_member(arena, attribute, "N"));
    if (number.data && !number_plain(arena, number, &text)) return SLICE_NONE;
    return text.data ? text : raw_text(arena, raw_member(arena, attribute, "B"));
}

void history_put_key(struct buf *out, struct slice table, const struct history_part *parts, size_t count)
{
    struct buf key = {0};
    bool swapped = count == KEY_PARTS && slice_compare(parts[1].name, parts[0].name) < 0;
    for (size_t i = 0; i < count; i++) {
        const struct history_part *part = &parts[swapped ? count - 1 - i : i];
        if (i) buf_byte(&key, '&');
        rest_encode(&key, part->name);
        buf_byte(&key, '=');
        rest_encode(&key, part->value);
    }
    rest_encode(out, table);
    buf_byte(out, '/');
    if (out->len + key.len <= LIMIT_HASH_KEY_BYTES) {
        buf_slice(out, buf_view(&key));
    } else {
        buf_byte(out, '~');
        digest_put_sha256(out, buf_view(&key));
    }
    buf_free(&key);
}

/* The key of a record's item; false when it has none. */
static bool put_key(struct arena *arena, struct slice table, struct slice keys, struct buf *out)
{
    struct history_part parts[KEY_PARTS];
    struct slice name, value;
    size_t count = 0;
    raw_each_member (arena, keys, &name, &value) {
        if (count == KEY_PARTS) return false;
        parts[count] = (struct history_part){name, scalar_text(arena, value)};
        if (!parts[count++].value.data) return false;
    }
    if (count) history_put_key(out, table, parts, count);
    return count > 0;
}

/* "2026-11-15T04:13:25.000Z-0000...0042": sorts by time, then by the stream's order. The time is the one that
 * every reader of the stream sees, in seconds: a record that somebody brings is the same item. */
static struct slice version_text(struct arena *arena, int64_t time_ms, struct slice sequence)
{
    int zeros = sequence.len < SEQUENCE_BYTES ? SEQUENCE_BYTES - (int)sequence.len : 0;
    return arena_printf(arena, "%.*s-%.*d%.*s", SLICE_ARG(moment_text(arena, time_ms)), zeros, 0,
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

/* Who did it, where the service says so: the time to live. */
static struct slice principal_of(struct arena *arena, struct slice record)
{
    struct slice identity = raw_member(arena, record, "userIdentity");
    struct slice name = raw_text(arena, raw_member(arena, identity, "principalId"));
    return name.data ? name : raw_text(arena, raw_member(arena, identity, "PrincipalId"));
}

/* How deep brackets stand in brackets. */
static unsigned depth_of(struct slice text)
{
    unsigned depth = 0, most = 0;
    bool is_string = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (is_string && c == '\\') i++;
        if (c == '"') is_string = !is_string;
        if (is_string) continue;
        if ((c == '{' || c == '[') && ++depth > most) most = depth;
        if (c == '}' || c == ']') depth--;
    }
    return most;
}

/* A map of attributes by its name, or as text by another where it is nested too deep for one more level. */
static void put_map(struct buf *out, const char *name, const char *text_name, struct slice map)
{
    if (depth_of(map) > IMAGE_DEPTH)
        compose(out, ",%s:%S", slice_of(text_name), map);
    else
        compose(out, ",%s:{'M':%A}", slice_of(name), map);
}

static uint64_t map_bytes(struct arena *arena, struct slice map)
{
    return depth_of(map) > IMAGE_DEPTH ? map.len : item_bytes(arena, map);
}

/* What the change has replaced, by the stream's old image: `before`, the attributes that were changed or
 * removed as they were, and `added`, the names of new ones. So a version tells its own change where the one
 * before it is not known: the item is older than its history, or that version has been pruned. Where it does
 * not fit into the room beside the rest, it is left out. */
static void put_before(struct arena *arena, struct slice old, struct slice image, uint64_t room,
                       struct buf *out)
{
    struct buf before = {0}, added = {0};
    struct slice name, value;
    buf_byte(&before, '{');
    raw_each_member (arena, old, &name, &value) {
        struct slice now = history_attribute(arena, image, name);
        if (!now.data || !attribute_equal(arena, value, now)) compose(&before, "%,%s:%A", name, value);
    }
    buf_byte(&before, '}');
    raw_each_member (arena, image, &name, &value)
        if (!history_attribute(arena, old, name).data) compose(&added, "%,%s", name);
    if (map_bytes(arena, buf_view(&before)) + added.len <= room) {
        put_map(out, "before", "beforeText", buf_view(&before));
        if (added.len) compose(out, ",'added':{'SS':[%A]}", buf_view(&added));
    }
    buf_free(&before);
    buf_free(&added);
}

/* The images of a change, as far as they fit beside so many bytes; the new one goes first. */
static void put_images(struct arena *arena, struct slice change, bool is_removed, uint64_t beside,
                       struct buf *out)
{
    struct slice image = raw_member(arena, change, "NewImage"), old = raw_member(arena, change, "OldImage");
    uint64_t room = LIMIT_ITEM_BYTES - ITEM_SLACK, bytes = image.data ? map_bytes(arena, image) : 0;
    room = room > beside ? room - beside : 0;
    if (image.data && bytes <= room) {
        put_map(out, "image", "imageText", image);
        room -= bytes;
    } else if (!is_removed) {
        /* without one the stream was made another one */
        compose(out, ",'lost':%S", image.data ? SLICE("large") : SLICE("no-image"));
        return;
    }
    if (old.data) put_before(arena, old, image, room, out);
}

/* Where the version stands in the index of the table's changes: the day and one of its shards, and the order in it. */
static void put_place(struct arena *arena, struct slice table, const struct history_item *item,
                      struct buf *out)
{
    uint64_t hash = hash_bytes(item->key);
    compose(out, ",'day':{'S':'%r/%r/%d'},'change':%S", rest_encoded(arena, table),
            (struct slice){item->version.data, sizeof "2026-11-15" - 1}, (int64_t)(hash % HISTORY_SHARDS),
            arena_printf(arena, "%.*s-%016llx", SLICE_ARG(item->version), (unsigned long long)hash));
}

static void put_item(struct arena *arena, struct slice table, struct slice record,
                     const struct history_item *item, struct buf *out)
{
    struct slice change = raw_member(arena, record, "dynamodb"), keys = raw_member(arena, change, "Keys");
    struct slice sequence = raw_text(arena, raw_member(arena, change, "SequenceNumber"));
    struct slice event = raw_text(arena, raw_member(arena, record, "eventName"));
    bool has_old = raw_member(arena, raw_member(arena, record, "dynamodb"), "OldImage").data != NULL;
    if (has_old && slice_equal(event, SLICE("INSERT")))
        event = SLICE("MODIFY"); /* ScyllaDB Alternator may err */
    struct slice cause = raw_text(arena, raw_member(arena, record, "cause"));
    struct slice transaction = raw_text(arena, raw_member(arena, record, "transaction"));
    struct slice principal = principal_of(arena, record);
    int64_t exact_ms = 0;
    bool is_exact = raw_int(raw_text(arena, raw_member(arena, record, "time")), &exact_ms) && exact_ms > 0;
    compose(out, "{'item':%S,'version':%S,'table':%S,'event':%S,'time':%S", item->key, item->version, table,
            event, moment_text(arena, is_exact ? exact_ms : time_of(arena, change)));
    if (is_exact) compose(out, ",'exact':{'BOOL':true}");
    put_place(arena, table, item, out);
    compose(out, ",'sequence':%S", sequence);
    if (cause.len) compose(out, ",'cause':%S", cause);
    if (transaction.len) compose(out, ",'transaction':%S", transaction);
    if (principal.len) compose(out, ",'by':%S", principal);
    compose(out, ",'keys':{'M':%A}", keys);
    put_images(arena, change, slice_equal(event, SLICE("REMOVE")),
               2 * item->key.len + item_bytes(arena, keys) + cause.len, out);
    buf_byte(out, '}');
}

static bool is_record(struct arena *arena, struct slice record)
{
    struct slice change = raw_member(arena, record, "dynamodb");
    struct slice event = raw_text(arena, raw_member(arena, record, "eventName"));
    struct slice sequence = raw_text(arena, raw_member(arena, change, "SequenceNumber"));
    if (!sequence.len || sequence.len > SEQUENCE_BYTES) return false;
    return slice_equal(event, SLICE("INSERT")) || slice_equal(event, SLICE("MODIFY")) ||
           slice_equal(event, SLICE("REMOVE")) ||
           slice_equal(event, SLICE("BASELINE")); /* of our own making */
}

/* False when it is no record with what is needed. */
static bool item_of(struct arena *arena, struct slice table, struct slice record, struct history_item *item)
{
    struct slice change = raw_member(arena, record, "dynamodb");
    struct buf out = {0};
    bool fine = is_record(arena, record) && put_key(arena, table, raw_member(arena, change, "Keys"), &out);
    if (fine) {
        item->key = arena_copy(arena, buf_view(&out));
        item->version = version_text(arena, time_of(arena, change),
                                     raw_text(arena, raw_member(arena, change, "SequenceNumber")));
        out.len = 0;
        put_item(arena, table, record, item, &out);
        item->text = arena_copy(arena, buf_view(&out));
    }
    buf_free(&out);
    return fine;
}

const char *history_items(struct arena *arena, struct slice table, struct slice records,
                          struct history_item *items)
{
    struct slice record;
    raw_each (arena, records, &record)
        if (!item_of(arena, table, record, items++)) return "a record is none of a DynamoDB stream";
    return NULL;
}

bool pattern_history(struct pattern *pattern, struct slice table, struct slice event, struct arena *arena,
                     struct buf *reply)
{
    struct slice records = raw_member(arena, event, "Records");
    const char *fault = "the event has no Records: a history takes records of DynamoDB streams";
    size_t count = raw_kind(records) == JSON_ARRAY ? raw_count(arena, records) : 0;
    struct history_item *items = arena_array(arena, struct history_item, count);
    if (raw_kind(records) == JSON_ARRAY) fault = history_items(arena, table, records, items);
    if (fault) {
        buf_slice(reply, slice_of(fault));
        return false;
    }
    compose(reply, "{'quipu':{'transact':[");
    for (size_t i = 0; i < count; i++)
        compose(reply, "%,{'Put':{'TableName':'%r%r','Item':%A}}", slice_of(pattern->prefix),
                slice_of(history_table.name), items[i].text);
    compose(reply, "]}}");
    return true;
}

/* A table of settings that is not there is the same as one without items. */
bool pattern_histories(struct pattern *pattern, void (*each)(void *context, struct slice table),
                       void *context)
{
    struct arena arena = {0};
    struct slice start = SLICE_NONE, name, message, item;
    int status;
    do {
        struct buf request = {0}, reply = {0};
        compose(&request, "{'TableName':'%r%r','ConsistentRead':true%r%A}", slice_of(pattern->prefix),
                slice_of(history_settings_table.name),
                start.data ? SLICE(",\"ExclusiveStartKey\":") : SLICE(""), start);
        status = dynamo_call(pattern->dynamo, SLICE("Scan"), buf_view(&request), &reply);
        buf_free(&request);
        struct slice page = arena_take(&arena, &reply);
        if (status != 200) dynamo_error(page, &arena, &name, &message);
        if (status != 200 && slice_equal(name, SLICE("ResourceNotFoundException"))) status = 200;
        raw_each (&arena, raw_member(&arena, page, "Items"), &item)
            if (item_has(&arena, item, "hash")) each(context, item_text(&arena, item, "table"));
        start = raw_member(&arena, page, "LastEvaluatedKey");
    } while (start.data);
    arena_free(&arena);
    return status == 200;
}
