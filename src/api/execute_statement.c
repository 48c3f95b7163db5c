/* ExecuteStatement: a statement of PartiQL becomes the GetItem, Query, Scan or write that it means.
 *
 * A SELECT may be several reads (see statement_plan). They answer one page together, as far as Limit and a
 * megabyte go; NextToken then holds which of them is next and behind which key, and what request it is for. */
#include "api/statements.h"
#include "api/transact.h"
#include "base/hash.h"

enum {
    EXECUTE_STATEMENT,
    EXECUTE_PARAMETERS,
    EXECUTE_CONSISTENT,
    EXECUTE_NEXT_TOKEN,
    EXECUTE_RETURN_CAPACITY,
    EXECUTE_LIMIT,
    EXECUTE_RETURN_ON_FAILURE,
};

static const struct shape shape_next_token = STRING_SHAPE_SIZED(1, LIMIT_NEXT_TOKEN_CHARACTERS);
static const struct shape_member members[] = {
    [EXECUTE_STATEMENT] = REQUIRED("Statement", shape_statement),
    [EXECUTE_PARAMETERS] = MEMBER("Parameters", shape_parameters),
    [EXECUTE_CONSISTENT] = MEMBER("ConsistentRead", shape_bool),
    [EXECUTE_NEXT_TOKEN] = MEMBER("NextToken", shape_next_token),
    [EXECUTE_RETURN_CAPACITY] = MEMBER("ReturnConsumedCapacity", shape_return_capacity),
    [EXECUTE_LIMIT] = MEMBER("Limit", shape_limit),
    [EXECUTE_RETURN_ON_FAILURE] = MEMBER("ReturnValuesOnConditionCheckFailure",
                                         shape_return_on_check_failure),
};
static const struct shape shape = STRUCT_SHAPE("ExecuteStatementInput", members);

/* A SELECT while it is read. */
struct reading {
    struct api_call *call;
    const struct statement *statement;
    struct statement_plan plan;
    struct page_request page;
    struct page_writer writer;
    uint64_t left; /* of Limit; 0 where there is none */
    uint64_t bytes;
    double table_units, index_units;
    uint64_t request_hash;
    uint32_t part;    /* the one that is read, or comes next */
    struct map start; /* of that part; empty: from its beginning */
    bool has_more;
};

/* ---- NextToken ---- */

#define TOKEN_VERSION 1
#define TOKEN_HEAD    (1 + 8 + 4) /* version, hash of the request, part */

static uint64_t request_hash(struct api_call *call, const struct node *input)
{
    uint64_t parameters = hash_request(call->reply, node_member(input, EXECUTE_PARAMETERS));
    return hash_bytes(node_member(input, EXECUTE_STATEMENT)->text) ^ (parameters * 31 + 1);
}

static void put_token(struct reading *reading)
{
    struct buf token = {0}, *out = reading->call->reply;
    buf_byte(&token, TOKEN_VERSION);
    buf_u64(&token, reading->request_hash);
    buf_u32(&token, reading->part);
    if (reading->start.count) item_encode(&token, &reading->start);
    buf_text(out, ",\"NextToken\":\"");
    base64_put(out, buf_view(&token));
    buf_byte(out, '"');
    buf_free(&token);
}

/* A key of the table, and of the index that is read, with values that keys may have. */
static bool is_start(struct reading *reading, const struct map *start)
{
    const struct page_request *page = &reading->page;
    const struct table *table = page->table;
    struct key_fields fields = page_fields(page);
    const struct slice table_keys[2] = {table->keys.hash, table->keys.range};
    for (uint32_t i = 0; i < start->count; i++) {
        const struct attribute *attribute = &start->attributes[i];
        enum value_type type;
        struct slice number;
        bool is_hash = slice_equal(attribute->name, fields.hash[0].name) ||
                       slice_equal(attribute->name, table->keys.hash);
        if (!table_attribute_type(&table->definition, attribute->name, &type)) return false;
        if (attribute->value.type != type) return false;
        if (key_value_fault(reading->call->arena, attribute->name, &attribute->value, is_hash).len)
            return false;
        if (type == VALUE_N &&
            (number_canonical(reading->call->arena, attribute->value.bytes, &number) != NUMBER_OK ||
             !slice_equal(number, attribute->value.bytes)))
            return false;
    }
    for (int i = 0; i < 2 && table_keys[i].len; i++)
        if (!map_find(start, table_keys[i])) return false;
    if (!map_find(start, fields.hash[0].name)) return false;
    return !fields.range_count || map_find(start, fields.range[0].name);
}

static bool take_token(struct reading *reading, const struct node *node)
{
    struct slice token;
    if (!node->present) return true;
    bool is_ours = base64_decode(reading->call->arena, node->text, &token) == BASE64_OK &&
                   token.len >= TOKEN_HEAD && token.data[0] == TOKEN_VERSION;
    if (!is_ours) return invalid(reading->call, "Invalid NextToken");
    if (bytes_u64(token.data + 1) != reading->request_hash)
        return invalid(reading->call, "NextToken does not match request");
    reading->part = bytes_u32(token.data + 9);
    uint32_t parts = reading->plan.is_scan ? 1 : reading->plan.part_count;
    struct slice key = slice_from(token, TOKEN_HEAD);
    if (reading->part >= parts) return invalid(reading->call, "Invalid NextToken");
    if (!key.len) return true;
    if (!item_decode(reading->call->arena, key, &reading->start) || !is_start(reading, &reading->start))
        return invalid(reading->call, "Invalid NextToken");
    return true;
}

/* ---- reading ---- */

/* One item by its whole key. */
static bool read_item(struct reading *reading, const struct statement_part *part, uint64_t *scanned)
{
    struct api_call *call = reading->call;
    const struct page_request *page = &reading->page;
    const struct value *range = page->table->keys.range.len ? part->keys.range[0] : NULL;
    struct image image;
    struct map item;
    enum engine_result result = engine_get(call->api->engine, page->table,
                                           key_bytes(call, page->table, part->keys.hash[0], range), &image);
    size_t size = result == ENGINE_OK ? item_encoded_size(image.bytes) : 0;
    reading->table_units += capacity_read(size, page->consistent);
    reading->bytes += size;
    *scanned = result == ENGINE_OK;
    if (result != ENGINE_OK) return result == ENGINE_MISSING;
    bool is_sound = true;
    if (!part->filter && !page->projection) {
        page_put_encoded(&reading->writer, image.bytes);
    } else {
        is_sound = item_decode(call->arena, image.bytes, &item);
        if (is_sound && (!part->filter || condition_holds(part->filter, &item)))
            page_put_map(&reading->writer, &item);
    }
    image_release(&image);
    return is_sound && !reading->writer.damaged;
}

/* One part, from its start as far as Limit goes. */
static bool read_part(struct reading *reading)
{
    struct page_request *page = &reading->page;
    struct page_totals totals = {0};
    const struct statement_part *part = reading->plan.is_scan ? NULL : &reading->plan.parts[reading->part];
    uint64_t scanned;
    if (part && part->is_get) {
        if (!read_item(reading, part, &scanned)) return false;
    } else {
        page->key_condition = part ? &part->keys : NULL;
        page->filter = part ? part->filter : reading->statement->where;
        page->start = reading->start.count ? &reading->start : NULL;
        page->limit = reading->left;
        if (!page_read(&reading->writer, page, &totals)) return false;
        reading->table_units += totals.table_units;
        reading->index_units += totals.index_units;
        reading->bytes += totals.bytes;
        scanned = totals.scanned;
    }
    reading->start = (struct map){0};
    if (totals.last) {
        reading->start = page_last_key(reading->call->arena, page, totals.last);
        reading->has_more = true;
    } else {
        reading->part++;
    }
    if (!reading->left) return true;
    reading->left -= scanned;
    reading->has_more |= reading->left == 0;
    return true;
}

static bool read_parts(struct reading *reading)
{
    uint32_t parts = reading->plan.is_scan ? 1 : reading->plan.part_count;
    while (reading->part < parts && !reading->has_more) {
        if (!read_part(reading)) return false;
        reading->has_more |= reading->bytes >= LIMIT_PAGE_BYTES;
    }
    reading->has_more &= reading->part < parts;
    return true;
}

static void put_capacity(struct reading *reading, const struct node *wanted)
{
    const struct page_request *page = &reading->page;
    struct capacity capacity = {.table = reading->table_units};
    if (!capacity_wanted(wanted)) return;
    if (page->index) capacity.indexes[page->index - page->table->definition.indexes] = reading->index_units;
    buf_text(reading->call->reply, ",\"ConsumedCapacity\":");
    capacity_put(reading->call->reply, wanted, page->table_name, page->table, &capacity);
}

/* ---- SELECT ---- */

static bool find_index(struct reading *reading)
{
    struct page_request *page = &reading->page;
    struct slice name = reading->statement->index;
    uint32_t place;
    if (!name.len) return true;
    if (table_vectors_find(page->table, name, &place))
        return invalid(reading->call, "Scan operation not supported on this index type");
    page->index = table_index_find(page->table, name);
    if (!page->index) return invalid(reading->call, "The table does not have the specified index");
    if (page->index->status == INDEX_CREATING)
        return invalid(reading->call, "Cannot read from backfilling global secondary index: %.*s",
                       SLICE_ARG(name));
    if (page->index->global && page->consistent)
        return invalid(reading->call,
                       "Strongly consistent read is not supported on Global Secondary Indexes");
    return true;
}

/* A keyed read refuses filters on what the index does not hold, unless one of its parts has none. */
static bool check_filters(struct reading *reading)
{
    struct slice fault = SLICE_NONE;
    struct page_request page = reading->page;
    for (uint32_t i = 0; page.index && i < reading->plan.part_count; i++) {
        page.filter = reading->plan.parts[i].filter;
        fault = index_filter_fault(reading->call, &page);
        if (!fault.len) return true;
    }
    return invalid_unless_sound(reading->call, fault);
}

static bool plan(struct reading *reading)
{
    static const struct node no_select = {0};
    struct page_request *page = &reading->page;
    struct key_fields fields = page_fields(page);
    struct slice fault;
    if (!statement_plan(reading->call->arena, reading->statement, &fields, &reading->plan, &fault))
        return invalid_text(reading->call, fault);
    page->backwards = reading->plan.backwards;
    if (!check_key_paths(reading->call, page->table, reading->statement->where, NULL, page->projection))
        return false;
    if (page->index && !check_index_select(reading->call, &no_select, page)) return false;
    return check_filters(reading);
}

static void select_items(struct api_call *call, const struct node *input, const struct statement_run *run)
{
    struct reading reading = {.call = call, .statement = run->statement};
    struct page_request *page = &reading.page;
    page->table = run->table;
    page->table_name = run->statement->table;
    page->projection = run->statement->projection;
    page->consistent = node_is_true(node_member(input, EXECUTE_CONSISTENT));
    page->segments = 1;
    if (node_member(input, EXECUTE_LIMIT)->present)
        reading.left = (uint64_t)node_member(input, EXECUTE_LIMIT)->integer;
    reading.request_hash = request_hash(call, input);
    if (!find_index(&reading) || !plan(&reading) ||
        !take_token(&reading, node_member(input, EXECUTE_NEXT_TOKEN)))
        return;
    page_begin(&reading.writer, call, page);
    if (!read_parts(&reading)) {
        refuse(call, "InternalServerError", "Internal server error");
        return;
    }
    struct page_totals totals = {.table_units = reading.table_units, .index_units = reading.index_units};
    if (!check_page_admission(call, page, &totals)) return; /* its parts may be of many partitions */
    buf_byte(call->reply, ']');
    if (reading.has_more) put_token(&reading);
    if (reading.has_more && reading.start.count) {
        buf_text(call->reply, ",\"LastEvaluatedKey\":");
        api_put_item_json(call->reply, &reading.start);
    }
    put_capacity(&reading, node_member(input, EXECUTE_RETURN_CAPACITY));
    buf_byte(call->reply, '}');
}

/* ---- writes ---- */

static void finish(struct api_call *call)
{
    const struct item_write *change = call->state;
    bool written = false;
    if (!check_write_outcome(call, change)) return;
    buf_byte(call->reply, '{');
    if (!put_returned(call, change, SLICE("\"Items\":["), &written)) return;
    if (!written) buf_text(call->reply, "\"Items\":[");
    buf_byte(call->reply, ']');
    written = true;
    put_write_capacity(call, change, &written);
    buf_byte(call->reply, '}');
}

static void begin(struct api_call *call, const struct node *input)
{
    struct statement_run *run = arena_new(call->arena, struct statement_run);
    const struct node *parameters = node_member(input, EXECUTE_PARAMETERS);
    if (!invalid_unless_sound(call, parameters_fault(parameters))) return;
    statement_understand(call, node_member(input, EXECUTE_STATEMENT), parameters, false, run);
    if (!invalid_unless_sound(call, run->fault)) return;
    statement_find_table(call, run);
    if (run->is_missing_table) {
        refuse_text(call, "ResourceNotFoundException", run->fault);
        return;
    }
    if (statement_is_read(run->statement)) {
        select_items(call, input, run);
        return;
    }
    statement_fit_write(call, WORDS_OF_STATEMENTS, run);
    if (!invalid_unless_sound(call, run->fault)) return;
    run->change.return_capacity = node_member(input, EXECUTE_RETURN_CAPACITY);
    run->change.return_on_failure = node_says(node_member(input, EXECUTE_RETURN_ON_FAILURE), "ALL_OLD");
    item_write_submit(call, &run->change);
}

const struct operation operation_ExecuteStatement = {SLICE("ExecuteStatement"), &shape, begin, finish};
