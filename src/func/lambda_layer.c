/* Layers: archives that functions share. PublishLayerVersion, ListLayers, ListLayerVersions, GetLayerVersion,
 * GetLayerVersionByArn, DeleteLayerVersion; and the member Layers of a function's configuration.
 *
 * A layer is an entry of the registry whose name is LAYER_PREFIX and the layer's name; its parts are its
 * versions by number. A function's document keeps the hashes of its layers' archives beside their ARNs, so a
 * layer version that is deleted goes on working for the functions that have it. Its archive is removed at
 * the next start at the earliest: a request may be about to name it. */
#include <stdlib.h>

#include "base/limits.h"
#include "base/raw.h"
#include "func/lambda.h"

/* ---- names ---- */

static bool is_layer_name(struct slice text)
{
    return text.len <= 64 && text_consists_of(text, "-_");
}

/* Takes "arn:aws:lambda:REGION:ACCOUNT:layer:" off the front; false when it is of somebody else. */
static bool take_layer_arn(struct func *func, struct slice *text)
{
    struct arn arn;
    bool is_arn = arn_parse(*text, &arn);
    struct slice name = arn.resource, kind = slice_cut(&name, ':');
    *text = name;
    return is_arn && slice_equal(arn.service, SLICE("lambda")) && slice_equal(arn.region, func->region) &&
           slice_equal(arn.account, func->account) && slice_equal(kind, SLICE("layer"));
}

/* Finds the entry's name by the layer's name or ARN. False: answered. */
static bool name_layer(struct request *request, const struct shape_node *node)
{
    struct slice name = node->text;
    if (slice_starts(name, SLICE("arn:")) && !take_layer_arn(request->func, &name)) name = SLICE_NONE;
    if (!is_layer_name(name))
        return lambda_error(
            request->call, 400, "ValidationException",
            "1 validation error detected: Value '%.*s' at 'layerName' failed to satisfy constraint: "
            "Member must satisfy regular expression pattern: "
            "(arn:[a-zA-Z0-9-]+:lambda:[a-zA-Z0-9-]+:\\d{12}:layer:[a-zA-Z0-9-_]+)|[a-zA-Z0-9-_]+",
            SLICE_ARG(node->text));
    request->name = arena_printf(request->arena, LAYER_PREFIX "%.*s", SLICE_ARG(name));
    return true;
}

static struct slice shown_name(const struct entry *entry)
{
    return slice_from(entry->name, sizeof LAYER_PREFIX - 1);
}

static struct slice layer_arn(struct func *func, struct slice name, struct arena *arena)
{
    return arena_printf(arena, "arn:aws:lambda:%.*s:%.*s:layer:%.*s", SLICE_ARG(func->region),
                        SLICE_ARG(func->account), SLICE_ARG(name));
}

/* ---- versions ---- */

static bool is_version(const struct part *part)
{
    return !slice_equal(part->name, SLICE(PART_FUNCTION));
}

static int compare_newest_first(const void *a, const void *b)
{
    struct slice first = (*(const struct part *const *)a)->name,
                 second = (*(const struct part *const *)b)->name;
    if (first.len != second.len) return first.len < second.len ? 1 : -1;
    return slice_compare(second, first);
}

static bool is_in_list(const struct document *document, const char *member, const struct shape_node *wanted)
{
    if (!wanted->present) return true;
    struct buf quoted = {0};
    json_put_string(&quoted, wanted->text);
    struct slice list = document_get(document, member);
    bool found = list.len && memmem(list.data, list.len, quoted.data, quoted.len);
    buf_free(&quoted);
    return found;
}

/* The versions that fit the runtime and the architecture, newest first, in the arena. */
static const struct part **layer_versions(const struct entry *entry, const struct shape_node *runtime,
                                          const struct shape_node *architecture, struct arena *arena,
                                          uint32_t *count)
{
    const struct part **versions = arena_array(arena, const struct part *, entry->count);
    *count = 0;
    for (uint32_t i = 0; i < entry->count; i++)
        if (is_version(&entry->parts[i]) &&
            is_in_list(&entry->parts[i].document, "CompatibleRuntimes", runtime) &&
            is_in_list(&entry->parts[i].document, "CompatibleArchitectures", architecture))
            versions[(*count)++] = &entry->parts[i];
    qsort(versions, *count, sizeof *versions, compare_newest_first);
    return versions;
}

static void put_brief(struct buf *out, const struct request *request, const struct entry *entry,
                      const struct part *part)
{
    struct slice arn = layer_arn(request->func, shown_name(entry), request->arena);
    struct document shown = document_copy(&part->document, request->arena);
    document_set(&shown, "CodeSha256", SLICE_NONE, request->arena);
    document_set(&shown, "CodeSize", SLICE_NONE, request->arena);
    compose(out, "%,{'LayerVersionArn':%s,'Version':%A",
            arena_printf(request->arena, "%.*s:%.*s", SLICE_ARG(arn), SLICE_ARG(part->name)), part->name);
    document_put_more(out, &shown);
    buf_byte(out, '}');
}

static void put_whole(struct buf *out, const struct request *request, const struct entry *entry,
                      const struct part *part)
{
    put_brief(out, request, entry, part);
    out->len--; /* the brace */
    compose(out, ",'LayerArn':%s,'Content':{'CodeSha256':%A,'CodeSize':%A}}",
            layer_arn(request->func, shown_name(entry), request->arena),
            document_get(&part->document, "CodeSha256"), document_get(&part->document, "CodeSize"));
}

/* ---- PublishLayerVersion ---- */

static const struct shape_field content_fields[] = {CODE_MEMBERS(FIELD_ROW)};
static const struct shape shape_content = STRUCT_OF(content_fields);
static const struct shape shape_runtimes = {
    .kind = SHAPE_LIST, .has_max = true, .max = 15, .of = &lambda_shape_text};
static const struct shape shape_architectures = {
    .kind = SHAPE_LIST, .has_max = true, .max = 2, .of = &lambda_shape_text};
static const struct shape shape_license = {TEXT_UP_TO(512)};

#define PUBLISH(X)                                                                                           \
    X(PUBLISH_NAME, PATH_FIELD("LayerName", lambda_shape_text, 0))                                           \
    X(PUBLISH_CONTENT, REQUIRED("Content", shape_content))                                                   \
    X(PUBLISH_DESCRIPTION, FIELD("Description", lambda_shape_description))                                   \
    X(PUBLISH_RUNTIMES, FIELD("CompatibleRuntimes", shape_runtimes))                                         \
    X(PUBLISH_ARCHITECTURES, FIELD("CompatibleArchitectures", shape_architectures))                          \
    X(PUBLISH_LICENSE, FIELD("LicenseInfo", shape_license))
static const struct shape_field publish_fields[] = {PUBLISH(FIELD_ROW)};
MEMBERS(PUBLISH)

static enum step publish_step(struct request *request, struct change *change, void *context)
{
    const struct code *code = context;
    struct arena *arena = request->arena;
    struct document document = {0};
    if (!change->before && registry_size(change->registry) >= LIMIT_FUNCTIONS)
        return lambda_refuse(request->call,
                             "There are as many functions and layers as this server can hold.");
    if (change->before && change->before->count >= LIMIT_FUNCTION_PARTS)
        return lambda_refuse(request->call, "This layer has as many versions as it may have. Delete some.");
    int64_t number = document_integer(&change->head, "LastVersion", 0) + 1;
    int64_t now = clock_now_ms(change->registry->func->options.clock);
    document_set_text(&document, "Description", SLICE(""), arena);
    document_set_text(&document, "CreatedDate", registry_time_text(now, arena), arena);
    for (int i = PUBLISH_DESCRIPTION; i <= PUBLISH_LICENSE; i++)
        node_set(&document, publish_fields[i].name, &request->nodes[i], arena);
    document_set_text(&document, "CodeSha256", code->sha256, arena);
    document_set_integer(&document, "CodeSize", code->size, arena);
    document_set_integer(&change->head, "LastVersion", number, arena);
    request->part = arena_printf(arena, "%lld", (long long)number);
    change_put(change, request->part, &document);
    return STEP_COMMIT;
}

OPERATION(publish_layer, TARGET_NONE, PUBLISH)
{
    const struct shape_node *nodes = request->nodes;
    struct change change;
    struct code code;
    if (!name_layer(request, &nodes[PUBLISH_NAME]) ||
        !lambda_check_runtimes(request->call, &nodes[PUBLISH_RUNTIMES]) ||
        !lambda_code_read(request, nodes[PUBLISH_CONTENT].nodes, &code))
        return;
    if (!code.is_archive) {
        lambda_refuse(request->call, "A layer is an archive: Content.ZipFile.");
        return;
    }
    if (!lambda_code_store(request->func, request->call, &code)) return;
    bool published = lambda_change(request, publish_step, &code, &change);
    lambda_code_end(request->func, &code);
    if (published && !lambda_show(request, &change, put_whole, 201))
        lambda_no_resource(request->call); /* deleted again by somebody else */
}

/* ---- ListLayers, GetLayerVersionByArn ---- */

#define LIST_LAYERS(X)                                                                                       \
    X(LIST_RUNTIME, QUERY_FIELD("CompatibleRuntime", lambda_shape_text))                                     \
    X(LIST_ARCHITECTURE, QUERY_FIELD("CompatibleArchitecture", lambda_shape_text))                           \
    X(LIST_MARKER, MARKER_FIELD)                                                                             \
    X(LIST_MAX, QUERY_FIELD("MaxItems", lambda_shape_max_items_50))
#define LIST_VERSIONS(X) LIST_LAYERS(X) X(LIST_NAME, PATH_FIELD("LayerName", lambda_shape_text, 0))
MEMBERS(LIST_VERSIONS)

static void list_entries(struct request *request)
{
    const struct shape_node *nodes = request->nodes;
    struct slice marker = SLICE_NONE, last = SLICE_NONE;
    struct buf *out = request->call->reply;
    uint32_t count, versions_count, shown = 0;
    if (!registry_refresh(request->func->registry)) {
        lambda_unavailable(request->call);
        return;
    }
    struct slice after = arena_printf(request->arena, LAYER_PREFIX "%.*s",
                                      SLICE_ARG(nodes[LIST_MARKER].text));
    struct entry **list = registry_list(request->func->registry, after, UINT32_MAX, request->arena, &count);
    compose(out, "{'Layers':[");
    for (uint32_t i = 0; i < count && !marker.data; i++) {
        if (!slice_starts(list[i]->name, SLICE(LAYER_PREFIX))) break;
        const struct part **versions = layer_versions(
            list[i], &nodes[LIST_RUNTIME], &nodes[LIST_ARCHITECTURE], request->arena, &versions_count);
        if (!versions_count) continue;
        if (shown++ == lambda_list_max(&nodes[LIST_MAX])) {
            marker = last;
            continue;
        }
        last = arena_copy(request->arena, shown_name(list[i]));
        compose(out, "%,{'LayerName':%s,'LayerArn':%s,'LatestMatchingVersion':", last,
                layer_arn(request->func, last, request->arena));
        put_brief(out, request, list[i], versions[0]);
        buf_byte(out, '}');
    }
    for (uint32_t i = 0; i < count; i++) entry_release(list[i]);
    lambda_list_end(request, marker);
}

/* The version that an ARN names; NULL when there is none. The entry is counted. */
static const struct part *version_by_arn(struct func *func, struct slice arn, struct arena *arena,
                                         struct entry **entry, bool *failed)
{
    *entry = NULL;
    *failed = false;
    if (!take_layer_arn(func, &arn)) return NULL;
    struct slice name = slice_cut(&arn, ':');
    if (!is_layer_name(name) || !arn.len) return NULL;
    *entry = registry_look(func->registry, arena_printf(arena, LAYER_PREFIX "%.*s", SLICE_ARG(name)), failed);
    const struct part *part = *entry ? entry_part(*entry, arn) : NULL;
    return part && is_version(part) ? part : NULL;
}

static void reply_version(struct request *request, struct slice arn)
{
    bool failed;
    const struct part *part = version_by_arn(request->func, arn, request->arena, &request->entry, &failed);
    if (part) {
        put_whole(request->call->reply, request, request->entry, part);
        lambda_done(request->call, 200);
    } else if (failed) {
        lambda_unavailable(request->call);
    } else {
        lambda_no_resource(request->call);
    }
}

static void reply_by_arn(struct request *request)
{
    struct slice arn = rest_query(request->call, "Arn");
    reply_version(request, arn.data ? arn : SLICE(""));
}

/* Both have the same path; GetLayerVersionByArn has a query. */
void lambda_list_layers(void *func, struct rest_call *call)
{
    static const struct shape_field fields[] = {LIST_LAYERS(FIELD_ROW)};
    bool finds = rest_query(call, "find").data != NULL;
    lambda_run(func, call, fields, finds ? 0 : FIELD_COUNT(fields), TARGET_NONE,
               finds ? reply_by_arn : list_entries);
}

/* ---- ListLayerVersions ---- */

OPERATION(list_layer_versions, TARGET_NONE, LIST_VERSIONS)
{
    const struct shape_node *nodes = request->nodes;
    struct slice marker = SLICE_NONE;
    unsigned long long below = 0, number;
    uint32_t count = 0, shown = 0;
    const struct part **versions = NULL;
    bool failed;
    if (nodes[LIST_MARKER].present && !slice_to_u64(nodes[LIST_MARKER].text, UINT32_MAX, &below)) {
        lambda_refuse(request->call, "Invalid marker");
        return;
    }
    if (!name_layer(request, &nodes[LIST_NAME])) return;
    request->entry = registry_look(request->func->registry, request->name, &failed);
    if (failed) {
        lambda_unavailable(request->call);
        return;
    }
    if (request->entry)
        versions = layer_versions(request->entry, &nodes[LIST_RUNTIME], &nodes[LIST_ARCHITECTURE],
                                  request->arena, &count);
    compose(request->call->reply, "{'LayerVersions':[");
    for (uint32_t i = 0; i < count; i++) {
        if (!slice_to_u64(versions[i]->name, UINT32_MAX, &number) || (below && number >= below)) continue;
        if (shown++ == lambda_list_max(&nodes[LIST_MAX])) {
            marker = versions[i - 1]->name;
            break;
        }
        put_brief(request->call->reply, request, request->entry, versions[i]);
    }
    lambda_list_end(request, marker);
}

/* ---- GetLayerVersion, DeleteLayerVersion ---- */

static const struct shape shape_number = {TEXT_UP_TO(10)};

#define GET(X)                                                                                               \
    X(GET_NAME, PATH_FIELD("LayerName", lambda_shape_text, 0))                                               \
    X(GET_VERSION, PATH_FIELD("VersionNumber", shape_number, 1))
MEMBERS(GET)

OPERATION(get_layer_version, TARGET_NONE, GET)
{
    if (!name_layer(request, &request->nodes[GET_NAME])) return;
    struct slice name = slice_from(request->name, sizeof LAYER_PREFIX - 1);
    struct slice arn = layer_arn(request->func, name, request->arena);
    reply_version(request, arena_printf(request->arena, "%.*s:%.*s", SLICE_ARG(arn),
                                        SLICE_ARG(request->nodes[GET_VERSION].text)));
}

/* The numbers of deleted versions are not used again: the layer's own part stays. */
static enum step delete_step(struct request *request, struct change *change, void *context)
{
    const struct part *part = change->before ? entry_part(change->before, request->nodes[GET_VERSION].text)
                                             : NULL;
    (void)context;
    if (!part || !is_version(part)) return STEP_NOTHING;
    change_delete(change, part->name);
    return STEP_COMMIT;
}

OPERATION(delete_layer_version, TARGET_NONE, GET)
{
    if (name_layer(request, &request->nodes[GET_NAME])) lambda_change_quietly(request, delete_step, NULL);
}

/* ---- layers of a function ---- */

static bool is_named_twice(const struct shape_node *layers, uint32_t index)
{
    struct slice arn = layers->nodes[index].text;
    const char *colon = memrchr(arn.data, ':', arn.len);
    struct slice layer = {arn.data, colon ? (size_t)(colon - arn.data) + 1 : arn.len};
    for (uint32_t i = 0; i < index; i++)
        if (slice_starts(layers->nodes[i].text, layer)) return true;
    return false;
}

/* Appends one layer to both lists. False: answered. */
static bool add_layer(struct request *request, struct slice arn, struct buf *shown, struct buf *hashes)
{
    struct registry *registry = request->func->registry;
    struct entry *entry;
    bool failed;
    const struct part *part = version_by_arn(request->func, arn, request->arena, &entry, &failed);
    if (part) {
        struct slice sha256 = document_text(&part->document, "CodeSha256", request->arena);
        compose(shown, "%,{'Arn':%s,'CodeSize':%d}", arn, document_integer(&part->document, "CodeSize", 0));
        compose(hashes, "%,%s", sha256);
        /* With other servers: nobody takes the archive for unused now. */
        failed = !code_store(registry, sha256, SLICE_NONE) || !code_unpack(registry, sha256);
    }
    bool is_there = part != NULL;
    entry_release(entry);
    if (failed) return lambda_unavailable(request->call);
    return is_there || lambda_refuse(request->call, "Layer version %.*s does not exist.", SLICE_ARG(arn));
}

static bool check_size(struct request *request, const struct document *document)
{
    struct registry *registry = request->func->registry;
    struct slice hashes[LIMIT_LAYERS + 1];
    uint32_t count = layers_read(document, request->arena, hashes);
    uint64_t size = 0;
    if (!count) return true;
    /* Where layers are merged, their own folders need not be there. */
    for (uint32_t i = 0; i < count; i++)
        if (!code_unpack(registry, hashes[i])) return lambda_unavailable(request->call);
    struct document ours = document_object(document, "Quipu", request->arena);
    if (!document_get(&ours, "Directory").data)
        hashes[count++] = document_text(document, "CodeSha256", request->arena);
    for (uint32_t i = 0; i < count; i++) size += layer_size(code_folder(registry, hashes[i], request->arena));
    if (size <= LIMIT_UNPACKED_BYTES) return true;
    return lambda_refuse(
        request->call,
        "Function code combined with layers exceeds the maximum allowed size of %d bytes. The "
        "actual size is %llu bytes.",
        LIMIT_UNPACKED_BYTES, (unsigned long long)size);
}

bool layers_apply(struct request *request, const struct shape_node *layers, struct document *document)
{
    struct buf shown = {0}, hashes = {0};
    bool all_well = true;
    if (!layers->present) return check_size(request, document);
    if (layers->count > LIMIT_LAYERS)
        return lambda_refuse(request->call, "You cannot reference more than 5 layers.");
    for (uint32_t i = 0; i < layers->count && all_well; i++) {
        all_well = add_layer(request, layers->nodes[i].text, &shown, &hashes);
        if (all_well && is_named_twice(layers, i))
            all_well = lambda_refuse(request->call,
                                     "Two different versions of the same layer are not allowed to be "
                                     "referenced in the same function.");
    }
    if (all_well) { /* else the call was answered, and may be gone */
        struct arena *arena = request->arena;
        struct slice all = SLICE_NONE, all_hashes = SLICE_NONE;
        if (layers->count) all = compose_in(arena, "[%A]", buf_view(&shown));
        if (layers->count) all_hashes = compose_in(arena, "[%A]", buf_view(&hashes));
        document_set(document, "Layers", all, arena);
        document_set(document, LAYER_HASHES, all_hashes, arena);
    }
    buf_free(&shown);
    buf_free(&hashes);
    return all_well && check_size(request, document);
}
