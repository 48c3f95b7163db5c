/* A table as a target: the change that each record of a stream tells of is made there, too. The new image is
 * put, a removed item deleted by its keys; so the table becomes a copy, and must have the same keys.
 *
 * A transaction touches an item once, so of several records of one key only the last counts: it tells how the
 * item is in the end. The writes are made of slices of the event's text. Tens of thousands of records a
 * second come by here, so nothing is built that need not be: one pass over the text, and a table of the keys.
 */
#include "base/fail.h"
#include "base/hash.h"
#include "base/limits.h"
#include "func/target.h"

#define KEY_PARTS 2   /* of a table: hash and range */
#define SLOTS     256 /* of the table of keys: a power of two, more than twice LIMIT_EFFECTS */

/* One attribute of a key; texts of the event, or of the arena where they had escapes. */
struct key_part {
    struct slice name, type, value;
};

struct table_write {
    struct key_part key[KEY_PARTS]; /* by name */
    uint32_t key_count;
    uint64_t hash;
    struct slice keys, image; /* JSON; no image: the item is removed */
};

struct table_batch {
    struct json_reader json;
    struct invocation *invocation;
    uint32_t record_number; /* from 1 */
    bool has_records, has_failed;
    struct table_write writes[LIMIT_EFFECTS];
    uint32_t count;
    unsigned char slots[SLOTS]; /* a write's number from 1; 0: free */
};

_Static_assert(LIMIT_EFFECTS < 256 && LIMIT_EFFECTS * 2 < SLOTS,
               "slots are bytes, and half of them are free");

/* ---- records of one item ---- */

static bool same_key(const struct table_write *a, const struct table_write *b)
{
    if (a->hash != b->hash || a->key_count != b->key_count) return false;
    for (uint32_t i = 0; i < a->key_count; i++)
        if (!slice_equal(a->key[i].value, b->key[i].value) || !slice_equal(a->key[i].type, b->key[i].type) ||
            !slice_equal(a->key[i].name, b->key[i].name))
            return false;
    return true;
}

/* In the place of an earlier write to the same item, or as one more. False when there is no room. */
static bool batch_add(struct table_batch *batch, struct table_write *write)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < write->key_count; i++)
        hash = (hash ^ hash_bytes(write->key[i].name)) * 31 + hash_bytes(write->key[i].value);
    write->hash = hash;
    uint32_t at = (uint32_t)(write->hash ^ write->hash >> 32) % SLOTS;
    for (; batch->slots[at]; at = (at + 1) % SLOTS) {
        struct table_write *earlier = &batch->writes[batch->slots[at] - 1];
        if (!same_key(earlier, write)) continue;
        *earlier = *write;
        return true;
    }
    if (batch->count == LIMIT_EFFECTS) return false;
    batch->writes[batch->count++] = *write;
    batch->slots[at] = (unsigned char)batch->count;
    return true;
}

/* ---- reading the event ---- */

/* Always false. What is no JSON is told as that, in the end. */
static bool bad_record(struct table_batch *batch, const char *what)
{
    if (batch->has_failed || json_failed(&batch->json)) return false;
    target_fail(batch->invocation, "Target.BadEvent", "record %u %s", batch->record_number, what);
    batch->has_failed = true;
    return false;
}

/* {"S":"text"}: the value's type and text. */
static bool take_key_value(struct json_reader *json, struct key_part *part)
{
    struct slice more;
    return json_peek(json) == JSON_OBJECT && json_enter(json) && json_member(json, &part->type) &&
           json_peek(json) == JSON_STRING && json_string(json, &part->value) && !json_member(json, &more);
}

/* Keys may name their attributes in any order; ours is by name. */
static bool take_keys(struct table_batch *batch, struct table_write *write)
{
    struct json_reader *json = &batch->json;
    struct key_part part;
    if (json_peek(json) != JSON_OBJECT) return bad_record(batch, "has Keys that are no object");
    const char *start = json->at;
    json_enter(json);
    write->key_count = 0;
    while (json_member(json, &part.name)) {
        if (write->key_count == KEY_PARTS || !take_key_value(json, &part))
            return bad_record(batch, "has Keys that are no key of an item");
        bool is_first = write->key_count == 1 && slice_compare(part.name, write->key[0].name) < 0;
        if (is_first) write->key[1] = write->key[0];
        write->key[is_first ? 0 : write->key_count] = part;
        write->key_count++;
    }
    write->keys = (struct slice){start, (size_t)(json->at - start)};
    return !json_failed(json);
}

static bool take_change(struct table_batch *batch, struct table_write *write)
{
    struct json_reader *json = &batch->json;
    struct slice name;
    if (json_peek(json) != JSON_OBJECT) return bad_record(batch, "has no object \"dynamodb\"");
    json_enter(json);
    while (json_member(json, &name)) {
        bool fine = slice_equal(name, SLICE("Keys"))       ? take_keys(batch, write)
                    : slice_equal(name, SLICE("NewImage")) ? raw_take(json, &write->image)
                                                           : json_skip(json);
        if (!fine) return false;
    }
    return !json_failed(json);
}

static bool take_word(struct json_reader *json, struct slice *word)
{
    return json_peek(json) == JSON_STRING ? json_string(json, word) : json_skip(json);
}

static bool check_record(struct table_batch *batch, struct slice source, struct slice event,
                         struct table_write *write)
{
    if (source.data && !slice_equal(source, SLICE("aws:dynamodb")) &&
        !slice_equal(source, SLICE("scylladb:alternator")))
        return bad_record(batch, "is of another source than a DynamoDB stream");
    if (!write->key_count)
        return bad_record(batch, "has no Keys: a table takes records of DynamoDB streams only");
    if (slice_equal(event, SLICE("REMOVE"))) {
        write->image = SLICE_NONE;
        return true;
    }
    if (!slice_equal(event, SLICE("INSERT")) && !slice_equal(event, SLICE("MODIFY")))
        return bad_record(batch, "has no eventName INSERT, MODIFY or REMOVE");
    if (write->image.len && write->image.data[0] == '{') return true;
    return bad_record(batch, "has no NewImage: the StreamViewType must be NEW_IMAGE or NEW_AND_OLD_IMAGES");
}

static bool take_record(struct table_batch *batch)
{
    struct json_reader *json = &batch->json;
    struct slice name, event = SLICE_NONE, source = SLICE_NONE;
    struct table_write write = {0};
    batch->record_number++;
    if (json_peek(json) != JSON_OBJECT) return bad_record(batch, "is no object");
    json_enter(json);
    while (json_member(json, &name)) {
        bool fine = slice_equal(name, SLICE("dynamodb"))      ? take_change(batch, &write)
                    : slice_equal(name, SLICE("eventName"))   ? take_word(json, &event)
                    : slice_equal(name, SLICE("eventSource")) ? take_word(json, &source)
                                                              : json_skip(json);
        if (!fine) return false;
    }
    if (json_failed(json) || !check_record(batch, source, event, &write)) return false;
    if (batch_add(batch, &write)) return true;
    batch->has_failed = true;
    target_fail_too_many(batch->invocation);
    return false;
}

static bool take_event(struct table_batch *batch)
{
    struct json_reader *json = &batch->json;
    struct slice name;
    if (json_peek(json) != JSON_OBJECT) {
        json_skip(json);
        return json_done(json);
    }
    json_enter(json);
    while (json_member(json, &name)) {
        if (!slice_equal(name, SLICE("Records")) || json_peek(json) != JSON_ARRAY) {
            json_skip(json);
            continue;
        }
        batch->has_records = true;
        json_enter(json);
        while (json_element(json))
            if (!take_record(batch)) return false;
    }
    return json_done(json);
}

/* ---- the writes ---- */

static void put_write(struct buf *out, const struct table_write *write, struct slice table)
{
    if (write->image.data)
        buf_text(out, "{\"Put\":{\"TableName\":");
    else
        buf_text(out, "{\"Delete\":{\"TableName\":");
    buf_slice(out, table);
    if (write->image.data)
        buf_text(out, ",\"Item\":");
    else
        buf_text(out, ",\"Key\":");
    buf_slice(out, write->image.data ? write->image : write->keys);
    buf_text(out, "}}");
}

void target_table(struct func *func, const struct function *function, struct invocation *invocation)
{
    (void)func;
    struct table_batch batch;
    batch.invocation = invocation;
    batch.record_number = batch.count = 0;
    batch.has_records = batch.has_failed = false;
    memset(batch.slots, 0, sizeof batch.slots); /* the writes need no clearing */
    json_begin(&batch.json, target_event(invocation), invocation->arena);
    bool whole = take_event(&batch);
    if (batch.has_failed) return;
    if (!whole || !batch.has_records) {
        target_fail(invocation, "Target.BadEvent",
                    whole ? "the event has no Records: a table takes records of DynamoDB streams only"
                          : "the event is no JSON");
        return;
    }
    struct buf table = {0}, *reply = &invocation->reply;
    json_put_string(&table, function->table);
    buf_reserve(reply, invocation->payload.len + 64);
    buf_text(reply, "{\"quipu\":{\"transact\":[");
    for (uint32_t i = 0; i < batch.count; i++) {
        if (i) buf_byte(reply, ',');
        put_write(reply, &batch.writes[i], buf_view(&table));
    }
    buf_text(reply, "]}}");
    buf_free(&table);
    invocation->is_repeatable = true;
    invocation->end = INVOCATION_ANSWERED;
}
