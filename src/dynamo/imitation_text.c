/* What the imitation of ScyllaDB Alternator makes of requests and replies: texts in, texts out.
 *
 * Its facts: 24 operations; names of tables up to 192 bytes, with an index 222; every index projects everything and
 * has one attribute as hash and one as range key; 100 writes in a batch; ConsumedCapacity without indexes; stream
 * records without SizeBytes, from `scylladb:alternator`, that may call a change an INSERT. */
#include "base/hash.h"
#include "base/limits.h"
#include "base/raw.h"
#include "dynamo/imitation.h"

#define INSERT_PART 4 /* one MODIFY of so many is told as an INSERT */

static bool is_among(struct slice name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(name, slice_of(names[i]))) return true;
    return false;
}

#define IS_AMONG(name, names) is_among(name, names, sizeof names / sizeof *names)

bool imitation_has(struct slice operation)
{
    static const char *const names[] = {"BatchGetItem",
                                        "BatchWriteItem",
                                        "CreateTable",
                                        "DeleteItem",
                                        "DeleteTable",
                                        "DescribeEndpoints",
                                        "DescribeTable",
                                        "DescribeContinuousBackups",
                                        "DescribeStream",
                                        "DescribeTimeToLive",
                                        "GetItem",
                                        "GetRecords",
                                        "GetShardIterator",
                                        "ListStreams",
                                        "ListTables",
                                        "ListTagsOfResource",
                                        "PutItem",
                                        "Query",
                                        "Scan",
                                        "TagResource",
                                        "UntagResource",
                                        "UpdateItem",
                                        "UpdateTable",
                                        "UpdateTimeToLive"};
    return IS_AMONG(operation, names);
}

bool imitation_writes(struct slice operation)
{
    static const char *const names[] = {"BatchWriteItem", "DeleteItem", "PutItem", "UpdateItem"};
    return IS_AMONG(operation, names);
}

bool imitation_reads_index(struct slice operation, struct slice request, struct arena *arena)
{
    static const char *const names[] = {"Query", "Scan"};
    if (!IS_AMONG(operation, names) || !raw_is_json(arena, request)) return false;
    return raw_member(arena, request, "IndexName").data &&
           raw_kind(raw_member(arena, request, "ConsistentRead")) != JSON_TRUE;
}

/* ---- requests ---- */

static struct slice in_arena(struct buf *text, struct arena *arena)
{
    struct slice copy = arena_copy(arena, buf_view(text));
    buf_free(text);
    return copy;
}

static bool refuse(struct imitation_fault *fault, struct slice message)
{
    *fault = (struct imitation_fault){"ValidationException", message};
    return false;
}

/* Copies a definition of a table; every Projection becomes that of all attributes. */
static void put_projecting_all(struct buf *out, struct slice value, struct arena *arena)
{
    struct raw_look look;
    struct slice name, part;
    enum json_kind kind = raw_kind(value);
    if (kind != JSON_OBJECT && kind != JSON_ARRAY) {
        buf_slice(out, value);
        return;
    }
    size_t count = 0;
    raw_look_begin(&look, arena, value);
    buf_byte(out, kind == JSON_OBJECT ? '{' : '[');
    while (raw_look_next(&look, &name, &part)) {
        if (count++) buf_byte(out, ',');
        if (kind == JSON_OBJECT) {
            json_put_string(out, name);
            buf_byte(out, ':');
        }
        if (kind == JSON_OBJECT && slice_equal(name, SLICE("Projection")))
            buf_text(out, "{\"ProjectionType\":\"ALL\"}");
        else
            put_projecting_all(out, part, arena);
    }
    buf_byte(out, kind == JSON_OBJECT ? '}' : ']');
}

/* An index by its definition, or by the member Create of a change. */
static bool check_index(struct slice table, struct slice index, struct arena *arena,
                        struct imitation_fault *fault)
{
    struct slice created = raw_member(arena, index, "Create");
    if (created.data) index = created;
    struct slice name = raw_string(arena, raw_member(arena, index, "IndexName"));
    if (table.len + name.len > LIMIT_ALTERNATOR_INDEX_NAME)
        return refuse(fault,
                      arena_printf(arena, "The names of the table and its index %.*s have more than %d bytes",
                                   SLICE_ARG(name), LIMIT_ALTERNATOR_INDEX_NAME));
    if (raw_count(arena, raw_member(arena, index, "KeySchema")) > 2)
        return refuse(fault, SLICE("KeySchema of an index has one HASH and at most one RANGE attribute"));
    return true;
}

static bool check_indexes(struct slice table, struct slice indexes, struct arena *arena,
                          struct imitation_fault *fault)
{
    struct raw_look look;
    struct slice name, index;
    if (raw_kind(indexes) != JSON_ARRAY) return true;
    raw_look_begin(&look, arena, indexes);
    while (raw_look_next(&look, &name, &index))
        if (!check_index(table, index, arena, fault)) return false;
    return true;
}

static bool check_tags(struct slice tags, struct arena *arena, struct imitation_fault *fault)
{
    static const char *const values[] = {"a",          "always", "always_use_lwt",    "f", "forbid",
                                         "forbid_rmw", "o",      "only_rmw_uses_lwt", "u", "unsafe",
                                         "unsafe_rmw"};
    struct raw_look look;
    struct slice name, tag;
    if (raw_kind(tags) != JSON_ARRAY) return true;
    raw_look_begin(&look, arena, tags);
    while (raw_look_next(&look, &name, &tag)) {
        struct slice key = raw_string(arena, raw_member(arena, tag, "Key"));
        struct slice value = raw_string(arena, raw_member(arena, tag, "Value"));
        if (slice_equal(key, SLICE("system:write_isolation")) && !IS_AMONG(value, values))
            return refuse(fault,
                          SLICE("Incorrect write isolation tag. Allowed values: always, always_use_lwt, "
                                "forbid, forbid_rmw, only_rmw_uses_lwt, unsafe, unsafe_rmw"));
    }
    return true;
}

static bool check(struct slice request, struct arena *arena, struct imitation_fault *fault)
{
    struct slice table = raw_string(arena, raw_member(arena, request, "TableName"));
    if (table.len > LIMIT_ALTERNATOR_TABLE_NAME)
        return refuse(fault,
                      arena_printf(arena, "TableName must be at least 3 characters long and at most %d",
                                   LIMIT_ALTERNATOR_TABLE_NAME));
    struct slice wanted = raw_string(arena, raw_member(arena, request, "ReturnConsumedCapacity"));
    if (slice_equal(wanted, SLICE("INDEXES")))
        return refuse(fault, SLICE("INDEXES consumed capacity is not supported."));
    return check_tags(raw_member(arena, request, "Tags"), arena, fault) &&
           check_indexes(table, raw_member(arena, request, "GlobalSecondaryIndexes"), arena, fault) &&
           check_indexes(table, raw_member(arena, request, "GlobalSecondaryIndexUpdates"), arena, fault);
}

/* A copy of the object with another value for one member. */
static struct slice with_member(struct slice object, const char *member, struct slice value,
                                struct arena *arena)
{
    struct buf out = {0};
    struct raw_look look;
    struct slice name, old;
    buf_byte(&out, '{');
    raw_look_begin(&look, arena, object);
    while (raw_look_next(&look, &name, &old)) {
        if (out.len > 1) buf_byte(&out, ',');
        json_put_string(&out, name);
        buf_byte(&out, ':');
        buf_slice(&out, slice_equal(name, slice_of(member)) ? value : old);
    }
    buf_byte(&out, '}');
    return in_arena(&out, arena);
}

struct slice imitation_request(struct slice operation, struct slice request, struct arena *arena,
                               struct imitation_fault *fault)
{
    static const char *const defining[] = {"CreateTable", "UpdateTable"};
    *fault = (struct imitation_fault){0};
    if (!raw_is_json(arena, request) || !check(request, arena, fault)) return request;
    if (imitation_writes(operation) && raw_member(arena, request, "ReturnConsumedCapacity").data)
        return with_member(request, "ReturnConsumedCapacity", SLICE("\"INDEXES\""), arena);
    if (!IS_AMONG(operation, defining)) return request;
    struct buf out = {0};
    put_projecting_all(&out, request, arena);
    return in_arena(&out, arena);
}

/* ---- batches ---- */

/* The part that is being written: whole once it has as many writes as the service takes. */
struct splitting {
    struct slice *parts;
    size_t count, writes;
    struct buf text;
    struct slice table; /* whose list is open */
    struct arena *arena;
};

static void end_part(struct splitting *split)
{
    if (!split->writes) return;
    buf_text(&split->text, "]}}");
    split->parts[split->count++] = in_arena(&split->text, split->arena);
    split->text = (struct buf){0};
    split->writes = 0;
    split->table = SLICE_NONE;
}

static void add_write(struct splitting *split, struct slice table, struct slice write)
{
    if (split->writes == LIMIT_BATCH_WRITE_REQUESTS) end_part(split);
    if (!split->writes) buf_text(&split->text, "{\"ReturnConsumedCapacity\":\"INDEXES\",\"RequestItems\":{");
    if (split->table.data != table.data) {
        if (split->writes) buf_text(&split->text, "],");
        json_put_string(&split->text, table);
        buf_text(&split->text, ":[");
    } else {
        buf_byte(&split->text, ',');
    }
    split->table = table;
    buf_slice(&split->text, write);
    split->writes++;
}

size_t imitation_split(struct slice request, struct arena *arena, struct slice **parts)
{
    struct raw_look tables, writes;
    struct slice table, list, none, write, items = SLICE_NONE;
    size_t total = 0;
    if (raw_is_json(arena, request)) items = raw_member(arena, request, "RequestItems");
    if (raw_kind(items) != JSON_OBJECT) return 1;
    raw_look_begin(&tables, arena, items);
    while (raw_look_next(&tables, &table, &list)) total += raw_count(arena, list);
    if (total > LIMIT_ALTERNATOR_BATCH) return 0;
    if (total <= LIMIT_BATCH_WRITE_REQUESTS) return 1;
    struct splitting split = {
        .arena = arena, .parts = arena_array(arena, struct slice, total / LIMIT_BATCH_WRITE_REQUESTS + 1)};
    raw_look_begin(&tables, arena, items);
    while (raw_look_next(&tables, &table, &list)) {
        raw_look_begin(&writes, arena, list);
        while (raw_look_next(&writes, &none, &write)) add_write(&split, table, write);
    }
    end_part(&split);
    *parts = split.parts;
    return split.count;
}

/* ---- replies ---- */

size_t imitation_old_enough(struct slice reply, int64_t until_ms, struct arena *arena)
{
    struct raw_look look;
    struct slice none, record;
    size_t count = 0;
    int64_t time_ms;
    raw_look_begin(&look, arena, raw_member(arena, reply, "Records"));
    while (raw_look_next(&look, &none, &record)) {
        if (raw_int(raw_member(arena, record, "time"), &time_ms) && time_ms > until_ms) return count;
        count++;
    }
    return count;
}

/* Units of the table alone; of those of its indexes nothing is told. */
static void put_capacity(struct buf *out, struct slice capacity, struct arena *arena)
{
    struct raw_look look;
    struct slice none, one;
    if (raw_kind(capacity) == JSON_ARRAY) {
        size_t count = 0;
        buf_byte(out, '[');
        raw_look_begin(&look, arena, capacity);
        for (; raw_look_next(&look, &none, &one); count++) {
            if (count) buf_byte(out, ',');
            put_capacity(out, one, arena);
        }
        buf_byte(out, ']');
        return;
    }
    struct slice table = raw_member(arena, capacity, "Table");
    struct slice units = raw_member(arena, table.data ? table : capacity, "CapacityUnits");
    struct slice name = raw_member(arena, capacity, "TableName");
    buf_printf(out, "{\"TableName\":%.*s,\"CapacityUnits\":%.*s}", SLICE_ARG(name), SLICE_ARG(units));
}

static void put_change(struct buf *out, struct slice change, struct arena *arena)
{
    struct raw_look look;
    struct slice name, value;
    size_t count = 0;
    buf_byte(out, '{');
    raw_look_begin(&look, arena, change);
    while (raw_look_next(&look, &name, &value)) {
        if (slice_equal(name, SLICE("SizeBytes"))) continue;
        if (count++) buf_byte(out, ',');
        json_put_string(out, name);
        buf_byte(out, ':');
        buf_slice(out, value);
    }
    buf_byte(out, '}');
}

/* The same record is always told in the same way. */
static bool is_told_as_insert(struct slice change, uint64_t seed, struct arena *arena)
{
    struct slice number = raw_string(arena, raw_member(arena, change, "SequenceNumber"));
    return (hash_bytes(number) ^ seed) % INSERT_PART == 0;
}

static void put_record(struct buf *out, struct slice record, uint64_t seed, struct arena *arena)
{
    static const char *const ours[] = {"cause", "transaction", "time"};
    struct raw_look look;
    struct slice name, value, change = raw_member(arena, record, "dynamodb");
    size_t count = 0;
    buf_byte(out, '{');
    raw_look_begin(&look, arena, record);
    while (raw_look_next(&look, &name, &value)) {
        if (IS_AMONG(name, ours)) continue;
        if (count++) buf_byte(out, ',');
        json_put_string(out, name);
        buf_byte(out, ':');
        if (slice_equal(name, SLICE("eventSource")))
            buf_text(out, "\"scylladb:alternator\"");
        else if (slice_equal(name, SLICE("dynamodb")))
            put_change(out, value, arena);
        else if (slice_equal(value, SLICE("\"MODIFY\"")) && is_told_as_insert(change, seed, arena))
            buf_text(out, "\"INSERT\"");
        else
            buf_slice(out, value);
    }
    buf_byte(out, '}');
}

static void put_records(struct buf *out, struct slice records, uint64_t seed, struct arena *arena)
{
    struct raw_look look;
    struct slice none, record;
    size_t count = 0;
    buf_byte(out, '[');
    raw_look_begin(&look, arena, records);
    for (; raw_look_next(&look, &none, &record); count++) {
        if (count) buf_byte(out, ',');
        put_record(out, record, seed, arena);
    }
    buf_byte(out, ']');
}

struct slice imitation_reply(struct slice operation, struct slice reply, uint64_t seed, struct arena *arena)
{
    struct buf out = {0};
    bool of_records = slice_equal(operation, SLICE("GetRecords"));
    struct slice part = raw_member(arena, reply, of_records ? "Records" : "ConsumedCapacity");
    if (!part.data) return reply;
    if (of_records)
        put_records(&out, part, seed, arena);
    else
        put_capacity(&out, part, arena);
    struct slice value = in_arena(&out, arena);
    return with_member(reply, of_records ? "Records" : "ConsumedCapacity", value, arena);
}

/* ---- keys ---- */

/* The attributes of a PutItem's item that are its key. */
static struct slice key_of(struct slice item, struct slice schema, struct arena *arena)
{
    struct buf out = {0};
    struct raw_look look;
    struct slice none, element;
    buf_byte(&out, '{');
    raw_look_begin(&look, arena, schema);
    while (raw_look_next(&look, &none, &element)) {
        struct slice name = raw_string(arena, raw_member(arena, element, "AttributeName"));
        if (out.len > 1) buf_byte(&out, ',');
        json_put_string(&out, name);
        buf_byte(&out, ':');
        buf_slice(&out, raw_member(arena, item, arena_printf(arena, "%.*s", SLICE_ARG(name)).data));
    }
    buf_byte(&out, '}');
    return in_arena(&out, arena);
}

void imitation_keys(struct slice operation, struct slice request, struct arena *arena,
                    struct slice (*describe)(void *context, struct slice table, struct arena *arena),
                    imitation_key *each, void *context)
{
    struct raw_look tables, writes;
    struct slice table = raw_string(arena, raw_member(arena, request, "TableName")), list, none, write;
    struct slice item = raw_member(arena, request, "Item");
    if (!slice_equal(operation, SLICE("BatchWriteItem"))) {
        each(context, table,
             item.data ? key_of(item, describe(context, table, arena), arena)
                       : raw_member(arena, request, "Key"));
        return;
    }
    raw_look_begin(&tables, arena, raw_member(arena, request, "RequestItems"));
    while (raw_look_next(&tables, &table, &list)) {
        struct slice schema = describe(context, table, arena);
        raw_look_begin(&writes, arena, list);
        while (raw_look_next(&writes, &none, &write)) {
            item = raw_member(arena, raw_member(arena, write, "PutRequest"), "Item");
            each(context, table,
                 item.data ? key_of(item, schema, arena)
                           : raw_member(arena, raw_member(arena, write, "DeleteRequest"), "Key"));
        }
    }
}
