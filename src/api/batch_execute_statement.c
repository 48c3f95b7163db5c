/* BatchExecuteStatement: up to 25 statements, each about one item, all of which read or all of which write.
 * Each succeeds or fails by itself and tells so in its place; only what is wrong with the batch as a whole
 * refuses it. All writes go into one commit. */
#include "api/statements.h"
#include "api/throttle.h"
#include "api/transact.h"

enum { STATEMENT_TEXT, STATEMENT_PARAMETERS, STATEMENT_CONSISTENT, STATEMENT_RETURN_ON_FAILURE };
static const struct shape_member statement_members[] = {
    [STATEMENT_TEXT] = REQUIRED("Statement", shape_statement),
    [STATEMENT_PARAMETERS] = MEMBER("Parameters", shape_parameters),
    [STATEMENT_CONSISTENT] = MEMBER("ConsistentRead", shape_bool),
    [STATEMENT_RETURN_ON_FAILURE] = MEMBER("ReturnValuesOnConditionCheckFailure",
                                           shape_return_on_check_failure),
};
static const struct shape shape_batch_statement = STRUCT_SHAPE("BatchStatementRequest", statement_members);
static const struct shape shape_statements = LIST_SHAPE_SIZED(shape_batch_statement, 1,
                                                              LIMIT_STATEMENT_BATCH);

enum { BATCH_STATEMENTS, BATCH_RETURN_CAPACITY };
static const struct shape_member members[] = {
    [BATCH_STATEMENTS] = REQUIRED("Statements", shape_statements),
    [BATCH_RETURN_CAPACITY] = MEMBER("ReturnConsumedCapacity", shape_return_capacity),
};
static const struct shape shape = STRUCT_SHAPE("BatchExecuteStatementInput", members);

struct batch_execute {
    struct statement_run *runs;
    uint32_t count;
    const struct node *statements, *return_capacity;
    struct capacity *capacities; /* by the place of the table among `tables` */
    struct named_table *tables;
    uint32_t table_count;
};

/* ---- the request ---- */

/* Statements that do not parse, or have unsound parameters, are left out of what is said of all together. */
static bool check_kinds(struct api_call *call, const struct batch_execute *batch, bool *writes)
{
    bool has_read = false;
    *writes = false;
    for (uint32_t i = 0; i < batch->count; i++) {
        if (!batch->runs[i].statement) continue;
        if (statement_is_read(batch->runs[i].statement))
            has_read = true;
        else
            *writes = true;
    }
    return !(has_read && *writes) ||
           invalid(call, "Read and write requests together in the same batch is not supported.");
}

static bool check_duplicates(struct api_call *call, const struct batch_execute *batch)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        struct slice key = batch->runs[i].change.key.bytes;
        for (uint32_t j = 0; key.len && j < i; j++)
            if (slice_equal(batch->runs[j].change.key.bytes, key))
                return invalid(call, "Provided list of item keys contains duplicates");
    }
    return true;
}

static bool understand(struct api_call *call, struct batch_execute *batch, bool *writes)
{
    const struct node *statements = batch->statements;
    batch->count = statements->count;
    batch->runs = arena_zero(call->arena, batch->count * sizeof *batch->runs);
    batch->tables = arena_zero(call->arena, batch->count * sizeof *batch->tables);
    batch->capacities = arena_zero(call->arena, batch->count * sizeof *batch->capacities);
    for (uint32_t i = 0; i < batch->count; i++) {
        const struct node *statement = &statements->elements[i];
        if (!statement->present)
            return invalid(
                call,
                "1 validation error detected: Value null at 'statements.%u.member' failed to satisfy "
                "constraint: Member must not be null",
                i + 1);
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        const struct node *statement = &statements->elements[i],
                          *parameters = node_member(statement, STATEMENT_PARAMETERS);
        batch->runs[i].fault = parameters_fault(parameters);
        if (!batch->runs[i].fault.len)
            statement_understand(call, node_member(statement, STATEMENT_TEXT), parameters, false,
                                 &batch->runs[i]);
    }
    return check_kinds(call, batch, writes);
}

static bool fit(struct api_call *call, struct batch_execute *batch)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        struct statement_run *run = &batch->runs[i];
        if (!run->fault.len) statement_find_table(call, run);
        if (run->fault.len) continue;
        if (statement_is_read(run->statement))
            statement_fit_get(call, "BatchExecuteStatement", run);
        else
            statement_fit_write(call, WORDS_OF_STATEMENTS, run);
    }
    return check_duplicates(call, batch);
}

/* ---- the reply ---- */

static struct capacity *capacity_of(struct batch_execute *batch, const struct statement_run *run)
{
    uint32_t place = place_table(batch->tables, &batch->table_count, run->statement->table);
    batch->tables[place].table = run->table;
    return &batch->capacities[place];
}

/* {"Error":{...}}; the table is named where the statement came as far as its item. */
static void put_error(struct buf *out, const struct statement_run *run, const char *code,
                      struct slice message, bool names_table)
{
    buf_printf(out, "{\"Error\":{\"Code\":\"%s\",\"Message\":", code);
    json_put_string(out, message);
    buf_byte(out, '}');
    if (names_table) {
        buf_text(out, ",\"TableName\":");
        json_put_string(out, run->statement->table);
    }
    buf_byte(out, '}');
}

static void put_refusal(struct buf *out, const struct statement_run *run)
{
    put_error(out, run, run->is_missing_table ? "ResourceNotFound" : "ValidationError", run->fault, false);
}

static void put_throttled(struct buf *out, const struct statement_run *run)
{
    struct reason reason = throttle_reason(run->change.throttled);
    put_error(out, run, reason.code, reason.message, true);
}

static void begin_success(struct buf *out, const struct statement_run *run)
{
    buf_text(out, "{\"TableName\":");
    json_put_string(out, run->statement->table);
}

static void put_capacities(struct buf *out, const struct batch_execute *batch)
{
    if (!capacity_wanted(batch->return_capacity)) return;
    buf_text(out, ",\"ConsumedCapacity\":[");
    for (uint32_t i = 0; i < batch->table_count; i++) {
        if (i) buf_byte(out, ',');
        capacity_put(out, batch->return_capacity, batch->tables[i].name, batch->tables[i].table,
                     &batch->capacities[i]);
    }
    buf_byte(out, ']');
}

/* ---- reads ---- */

static bool put_item(struct api_call *call, struct batch_execute *batch, uint32_t index)
{
    struct statement_run *run = &batch->runs[index];
    bool consistent = node_is_true(node_member(&batch->statements->elements[index], STATEMENT_CONSISTENT));
    struct image image;
    enum engine_result result = engine_get(call->api->engine, run->table, run->change.key.bytes, &image);
    if (result == ENGINE_FAILED) return false;
    double units = capacity_read(result == ENGINE_OK ? item_encoded_size(image.bytes) : 0, consistent);
    if (throttle_is_on(call->api, run->table))
        run->change.throttled = throttle_refusal(
            call, throttle_read(run->table, NULL, run->change.key.bytes, units, 0));
    if (run->change.throttled) {
        if (result == ENGINE_OK) image_release(&image);
        put_throttled(call->reply, run);
        return true;
    }
    capacity_of(batch, run)->table += units;
    begin_success(call->reply, run);
    bool is_sound = true;
    if (result == ENGINE_OK) {
        buf_text(call->reply, ",\"Item\":");
        is_sound = put_read_item(call, image.bytes, run->statement->projection);
        image_release(&image);
    }
    buf_byte(call->reply, '}');
    return is_sound;
}

static void read_items(struct api_call *call, struct batch_execute *batch)
{
    buf_text(call->reply, "{\"Responses\":[");
    for (uint32_t i = 0; i < batch->count; i++) {
        if (i) buf_byte(call->reply, ',');
        if (batch->runs[i].fault.len) {
            put_refusal(call->reply, &batch->runs[i]);
        } else if (!put_item(call, batch, i)) {
            refuse(call, "InternalServerError", "Internal server error");
            return;
        }
    }
    buf_byte(call->reply, ']');
    put_capacities(call->reply, batch);
    buf_byte(call->reply, '}');
}

/* ---- writes ---- */

/* No two have the same item, so that each can be kept before the next is checked. */
static void apply(struct commit *commit, struct batch *writer)
{
    struct api_call *call = call_of_commit(commit);
    struct batch_execute *batch = call->state;
    for (uint32_t i = 0; i < batch->count; i++)
        if (!batch->runs[i].fault.len) apply_item_write(call, writer, &batch->runs[i].change);
}

/* What became of a write that is not applied. */
static void put_failure(struct api_call *call, const struct statement_run *run)
{
    const struct write *write = &run->change.write;
    struct buf *out = call->reply;
    switch (write->outcome) {
    case WRITE_CONDITION_FAILED:
        if (run->change.is_insert)
            put_error(out, run, "DuplicateItem", SLICE(DUPLICATE_ITEM), true);
        else
            put_error(out, run, "ConditionalCheckFailed", SLICE("The conditional request failed"), true);
        return;
    case WRITE_INVALID: put_error(out, run, "ValidationError", write->fault, true); return;
    case WRITE_NO_TABLE:
        put_error(out, run, "ResourceNotFound", SLICE("Requested resource not found"), false);
        return;
    case WRITE_CONFLICT:
        put_error(out, run, "TransactionConflict", SLICE("Transaction is ongoing for the item"), true);
        return;
    case WRITE_COLLECTION_FULL:
        put_error(out, run, "ItemCollectionSizeLimitExceeded", SLICE(COLLECTION_FULL), true);
        return;
    case WRITE_VECTORS_FULL: put_error(out, run, "ValidationError", SLICE(NO_VECTOR_MEMORY), true); return;
    case WRITE_APPLIED: return;
    }
}

static bool put_written(struct api_call *call, const struct statement_run *run)
{
    bool written;
    begin_success(call->reply, run);
    bool is_sound = put_returned(call, &run->change, SLICE(",\"Item\":"), &written);
    buf_byte(call->reply, '}');
    return is_sound;
}

/* What failed adds to the sum of its table, unless everything there failed. */
static void add_failures(struct batch_execute *batch)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        const struct write *write = &batch->runs[i].change.write;
        if (batch->runs[i].fault.len || batch->runs[i].change.throttled || write->outcome == WRITE_APPLIED)
            continue;
        for (uint32_t place = 0; place < batch->table_count; place++)
            if (batch->tables[place].table == batch->runs[i].table)
                batch->capacities[place].failed += capacity_write(write->old_size, write->new_size);
    }
}

static void finish(struct api_call *call)
{
    struct batch_execute *batch = call->state;
    buf_text(call->reply, "{\"Responses\":[");
    for (uint32_t i = 0; i < batch->count; i++) {
        struct statement_run *run = &batch->runs[i];
        if (i) buf_byte(call->reply, ',');
        if (run->fault.len) {
            put_refusal(call->reply, run);
        } else if (run->change.throttled) {
            put_throttled(call->reply, run);
        } else if (run->change.write.outcome != WRITE_APPLIED) {
            put_failure(call, run);
        } else {
            capacity_add_write(call, capacity_of(batch, run), &run->change.write);
            if (!put_written(call, run)) return;
        }
    }
    add_failures(batch);
    buf_byte(call->reply, ']');
    put_capacities(call->reply, batch);
    buf_byte(call->reply, '}');
}

static void begin(struct api_call *call, const struct node *input)
{
    struct batch_execute *batch = arena_new(call->arena, struct batch_execute);
    bool writes;
    batch->statements = node_member(input, BATCH_STATEMENTS);
    batch->return_capacity = node_member(input, BATCH_RETURN_CAPACITY);
    if (!understand(call, batch, &writes) || !fit(call, batch)) return;
    if (!writes) {
        read_items(call, batch);
        return;
    }
    call->state = batch;
    call->commit.apply = apply;
    call->is_write = true;
}

const struct operation operation_BatchExecuteStatement = {SLICE("BatchExecuteStatement"), &shape, begin,
                                                          finish};
