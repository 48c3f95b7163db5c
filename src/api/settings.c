/* Changes of a table's definition, values in its settings, ARNs of resources. */
#include "api/settings.h"

/* ---- changing a table's definition ---- */

static void change_apply(struct commit *commit, struct batch *batch)
{
    struct table_change *change = call_of_commit(commit)->state;
    struct table *table = engine_table_in_batch(batch, change->table_name);
    if (!table && change->missing) {
        change->missing(change);
    } else if (!table) {
        reject_as(&change->verdict, "ResourceNotFoundException",
                  "Requested resource not found: Table: %.*s not found", SLICE_ARG(change->table_name));
    } else {
        change->definition = table_definition_copy(change->verdict.arena, &table->definition);
        if (change->apply(change)) engine_table_replace(batch, change->definition);
    }
}

void table_change_submit(struct api_call *call, const struct node *input, struct table_change *change)
{
    change->input = *input;
    change->verdict.arena = call->arena;
    change->api = call->api;
    change->now_ms = engine_now_ms(call->api->engine);
    call->state = change;
    call->commit.apply = change_apply;
    call->is_write = true;
}

void table_change_submit_named(struct api_call *call, const struct node *input, const struct node *name,
                               struct table_change *change)
{
    if (table_name_resolve(call, name, &change->table_name)) table_change_submit(call, input, change);
}

struct table_change *table_change_finish(struct api_call *call)
{
    struct table_change *change = call->state;
    return verdict_tell(call, &change->verdict) ? change : NULL;
}

/* ---- values ---- */

struct value text_value(struct slice text)
{
    return (struct value){.type = VALUE_S, .bytes = text};
}

struct value integer_value(struct arena *arena, int64_t integer)
{
    return (struct value){.type = VALUE_N, .bytes = arena_printf(arena, "%lld", (long long)integer)};
}

struct value truth_value(bool truth)
{
    return (struct value){.type = VALUE_BOOL, .truth = truth};
}

struct value map_value(struct map map)
{
    return (struct value){.type = VALUE_M, .map = map};
}

void map_put(struct arena *arena, struct map *map, struct slice name, struct value value)
{
    *map = map_with(arena, map, name, &value);
}

static const struct value *find_of_type(const struct map *map, struct slice name, enum value_type type)
{
    const struct value *value = map_find(map, name);
    return value && value->type == type ? value : NULL;
}

struct slice map_text(const struct map *map, const char *name)
{
    const struct value *value = find_of_type(map, slice_of(name), VALUE_S);
    return value ? value->bytes : SLICE_NONE;
}

int64_t map_integer(const struct map *map, const char *name)
{
    const struct value *value = find_of_type(map, slice_of(name), VALUE_N);
    unsigned long long integer = 0;
    if (value) slice_to_u64(value->bytes, INT64_MAX, &integer);
    return (int64_t)integer;
}

bool map_truth(const struct map *map, const char *name)
{
    const struct value *value = find_of_type(map, slice_of(name), VALUE_BOOL);
    return value && value->truth;
}

struct map map_map(const struct map *map, struct slice name)
{
    const struct value *value = find_of_type(map, name, VALUE_M);
    return value ? value->map : (struct map){0};
}

/* ---- settings by name ---- */

struct map setting_map(const struct table_definition *definition, const char *name)
{
    return map_map(&definition->settings, slice_of(name));
}

struct value setting_list(const struct table_definition *definition, const char *name)
{
    const struct value *value = find_of_type(&definition->settings, slice_of(name), VALUE_L);
    return value ? *value : (struct value){.type = VALUE_L};
}

void setting_put(struct arena *arena, struct table_definition *definition, const char *name,
                 struct value value)
{
    map_put(arena, &definition->settings, slice_of(name), value);
}

void setting_remove(struct arena *arena, struct table_definition *definition, const char *name)
{
    definition->settings = map_without(arena, &definition->settings, slice_of(name));
}

/* ---- ARNs of tables and streams ---- */

const struct shape shape_resource_arn = {.kind = SHAPE_STRING};

/* Takes what stands before the next separator, or all when there is none. */
static struct slice take_part(struct slice *rest, char separator)
{
    const char *end = rest->len ? memchr(rest->data, separator, rest->len) : NULL;
    struct slice part = {rest->data, end ? (size_t)(end - rest->data) : rest->len};
    *rest = slice_from(*rest, end ? part.len + 1 : part.len);
    return part;
}

static bool is_account(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] < '0' || text.data[i] > '9') return false;
    return text.len > 0;
}

/* table/NAME, table/NAME/stream/LABEL, table/NAME/index/NAME */
static enum resource_fault parse_path(struct slice path, struct resource *out)
{
    if (!slice_equal(take_part(&path, '/'), SLICE("table"))) return RESOURCE_FOREIGN;
    out->table_name = take_part(&path, '/');
    if (out->table_name.len < 3 || out->table_name.len > 255 || !is_plain_name(out->table_name))
        return RESOURCE_FOREIGN;
    if (!path.len) return RESOURCE_FINE;
    struct slice kind = take_part(&path, '/');
    if (slice_equal(kind, SLICE("index"))) return RESOURCE_INDEX;
    out->stream_label = path;
    return slice_equal(kind, SLICE("stream")) && path.len ? RESOURCE_FINE : RESOURCE_FOREIGN;
}

enum resource_fault resource_parse(const struct api *api, struct slice arn, struct resource *out)
{
    struct slice rest = arn;
    *out = (struct resource){0};
    if (!slice_starts(arn, SLICE("arn:"))) return RESOURCE_NO_ARN;
    take_part(&rest, ':');
    struct slice partition = take_part(&rest, ':'), service = take_part(&rest, ':'),
                 region = take_part(&rest, ':'), account = take_part(&rest, ':');
    if (!slice_equal(service, SLICE("dynamodb")) || !is_account(account)) return RESOURCE_FOREIGN;
    enum resource_fault fault = parse_path(rest, out);
    if (fault != RESOURCE_FINE) return fault;
    if (!slice_equal(partition, SLICE("aws")) || !slice_equal(region, api->region)) return RESOURCE_ELSEWHERE;
    return slice_equal(account, api->account) ? RESOURCE_FINE : RESOURCE_OTHER_ACCOUNT;
}

bool refuse_resource(struct api_call *call, enum resource_fault fault, struct slice arn)
{
    if (fault == RESOURCE_NO_ARN)
        return invalid(call, INVALID_VALUES "ARNs must start with 'arn:': %.*s", SLICE_ARG(arn));
    if (fault == RESOURCE_INDEX)
        return invalid(call,
                       INVALID_VALUES "Invalid resource arn provided, only table or stream is accepted. "
                                      "Provided resource arn: %.*s",
                       SLICE_ARG(arn));
    return invalid(call, INVALID_VALUES "Provided Arn is not a DynamoDB resource arn: %.*s", SLICE_ARG(arn));
}
