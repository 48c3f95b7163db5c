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

#define LIST_DEFAULT 50 /* Lambda answers at most so many at once */

static bool refuse(struct rest_call *call, const char *message)
{
    lambda_error(call, 400, "InvalidParameterValueException", "%s", message);
    return false;
}

static void answer_not_found(struct rest_call *call)
{
    lambda_error(call, 404, "ResourceNotFoundException", "The resource you requested does not exist.");
}

/* ---- names ---- */

static bool is_layer_name(struct slice text)
{
    if (!text.len || text.len > 64) return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_letter && c != '-' && c != '_') return false;
    }
    return true;
}

/* Takes "arn:aws:lambda:REGION:ACCOUNT:layer:" off the front; false when it is of somebody else. */
static bool take_layer_arn(struct func *func, struct slice *text)
{
    struct slice start[6];
    for (int i = 0; i < 6; i++) start[i] = lambda_take_field(text);
    return slice_equal(start[0], SLICE("arn")) && slice_starts(start[1], SLICE("aws")) &&
           slice_equal(start[2], SLICE("lambda")) && slice_equal(start[3], func->region) &&
           slice_equal(start[4], func->account) && slice_equal(start[5], SLICE("layer"));
}

/* A layer's name or ARN as the name of its entry; NULL data: answered. */
static struct slice entry_name(struct func *func, struct rest_call *call, struct slice text)
{
    struct slice name = text;
    if (slice_starts(text, SLICE("arn:")) && !take_layer_arn(func, &name)) name = SLICE_NONE;
    if (is_layer_name(name)) return arena_printf(call->arena, LAYER_PREFIX "%.*s", SLICE_ARG(name));
    lambda_error(call, 400, "ValidationException",
                 "1 validation error detected: Value '%.*s' at 'layerName' failed to satisfy constraint: "
                 "Member must satisfy regular expression pattern: "
                 "(arn:[a-zA-Z0-9-]+:lambda:[a-zA-Z0-9-]+:\\d{12}:layer:[a-zA-Z0-9-_]+)|[a-zA-Z0-9-_]+",
                 SLICE_ARG(text));
    return SLICE_NONE;
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

static bool is_in_list(const struct document *document, const char *member, const struct node *wanted)
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
static const struct part **layer_versions(const struct entry *entry, const struct node *runtime,
                                          const struct node *architecture, struct arena *arena,
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

static void put_version(struct rest_call *call, struct func *func, const struct entry *entry,
                        const struct part *part, bool is_whole)
{
    struct buf *out = call->reply;
    struct slice arn = layer_arn(func, shown_name(entry), call->arena);
    struct document shown = document_copy(&part->document, call->arena);
    struct slice sha256 = document_get(&shown, "CodeSha256"), size = document_get(&shown, "CodeSize");
    document_set(&shown, "CodeSha256", SLICE_NONE, call->arena);
    document_set(&shown, "CodeSize", SLICE_NONE, call->arena);
    buf_printf(out, "{\"LayerVersionArn\":\"%.*s:%.*s\",\"Version\":%.*s", SLICE_ARG(arn),
               SLICE_ARG(part->name), SLICE_ARG(part->name));
    if (is_whole)
        buf_printf(out, ",\"LayerArn\":\"%.*s\",\"Content\":{\"CodeSha256\":%.*s,\"CodeSize\":%.*s}",
                   SLICE_ARG(arn), SLICE_ARG(sha256), SLICE_ARG(size));
    document_put_more(out, &shown);
    buf_byte(out, '}');
}

/* ---- PublishLayerVersion ---- */

enum {
    PUBLISH_NAME,
    PUBLISH_CONTENT,
    PUBLISH_DESCRIPTION,
    PUBLISH_RUNTIMES,
    PUBLISH_ARCHITECTURES,
    PUBLISH_LICENSE,
    PUBLISH_MEMBERS,
};

static const struct field content_fields[] = {CODE_FIELDS};
static const struct shape shape_content = STRUCT_OF(content_fields);
static const struct shape shape_runtimes = {
    .kind = SHAPE_LIST, .has_max = true, .max = 15, .of = &lambda_shape_text};
static const struct shape shape_architectures = {
    .kind = SHAPE_LIST, .has_max = true, .max = 2, .of = &lambda_shape_text};
static const struct shape shape_license = {.kind = SHAPE_STRING, .has_max = true, .max = 512};
static const struct field publish_fields[PUBLISH_MEMBERS] = {
    [PUBLISH_NAME] = PATH_FIELD("LayerName", lambda_shape_text, 0),
    [PUBLISH_CONTENT] = REQUIRED("Content", shape_content),
    [PUBLISH_DESCRIPTION] = FIELD("Description", lambda_shape_description),
    [PUBLISH_RUNTIMES] = FIELD("CompatibleRuntimes", shape_runtimes),
    [PUBLISH_ARCHITECTURES] = FIELD("CompatibleArchitectures", shape_architectures),
    [PUBLISH_LICENSE] = FIELD("LicenseInfo", shape_license),
};

struct publication {
    const struct node *nodes;
    const struct code *code;
    struct slice version;
};

static enum step publish_step(struct rest_call *call, struct change *change, void *context)
{
    struct publication *publication = context;
    struct arena *arena = call->arena;
    struct document document = {0};
    if (!change->before && registry_size(change->registry) >= LIMIT_FUNCTIONS) {
        refuse(call, "There are as many functions and layers as this server can hold.");
        return STEP_ANSWERED;
    }
    if (change->before && change->before->count >= LIMIT_FUNCTION_PARTS) {
        refuse(call, "This layer has as many versions as it may have. Delete some.");
        return STEP_ANSWERED;
    }
    int64_t number = document_integer(&change->head, "LastVersion", 0) + 1;
    int64_t now = clock_now_ms(change->registry->func->options.clock);
    document_set_text(&document, "Description", SLICE(""), arena);
    document_set_text(&document, "CreatedDate", registry_time_text(now, arena), arena);
    for (int i = PUBLISH_DESCRIPTION; i < PUBLISH_MEMBERS; i++)
        if (publication->nodes[i].present)
            document_set(&document, publish_fields[i].name, node_json(&publication->nodes[i], arena), arena);
    document_set_text(&document, "CodeSha256", publication->code->sha256, arena);
    document_set_integer(&document, "CodeSize", publication->code->size, arena);
    document_set_integer(&change->head, "LastVersion", number, arena);
    publication->version = arena_printf(arena, "%lld", (long long)number);
    change_put(change, publication->version, &document);
    return STEP_COMMIT;
}

void lambda_publish_layer(struct func *func, struct rest_call *call)
{
    struct node nodes[PUBLISH_MEMBERS];
    struct target target = {0};
    struct change change;
    struct code code;
    if (!lambda_decode(call, publish_fields, PUBLISH_MEMBERS, nodes)) return;
    target.name = entry_name(func, call, nodes[PUBLISH_NAME].text);
    if (!target.name.data || !lambda_check_runtimes(call, &nodes[PUBLISH_RUNTIMES]) ||
        !lambda_code_read(func, call, nodes[PUBLISH_CONTENT].nodes, &code))
        return;
    if (!code.is_archive) {
        refuse(call, "A layer is an archive: Content.ZipFile.");
        return;
    }
    if (!lambda_code_store(func, call, &code)) return;
    struct publication publication = {.nodes = nodes, .code = &code};
    bool published = lambda_change(func, call, &target, publish_step, &publication, &change);
    lambda_code_end(func, &code);
    if (!published) return;
    const struct part *part = change.after ? entry_part(change.after, publication.version) : NULL;
    if (part) put_version(call, func, change.after, part, true);
    bool shown = part != NULL;
    change_free(&change);
    if (shown)
        lambda_done(call, 201);
    else
        answer_not_found(call); /* deleted again by somebody else */
}

/* ---- ListLayers, GetLayerVersionByArn ---- */

enum { LIST_RUNTIME, LIST_ARCHITECTURE, LIST_MARKER, LIST_MAX, LIST_NAME, LIST_MEMBERS };

static const struct field list_fields[LIST_MEMBERS] = {
    [LIST_RUNTIME] = QUERY_FIELD("CompatibleRuntime", lambda_shape_text),
    [LIST_ARCHITECTURE] = QUERY_FIELD("CompatibleArchitecture", lambda_shape_text),
    [LIST_MARKER] = QUERY_FIELD("Marker", lambda_shape_text),
    [LIST_MAX] = QUERY_FIELD("MaxItems", lambda_shape_max_items_50),
    [LIST_NAME] = PATH_FIELD("LayerName", lambda_shape_text, 0),
};

static uint32_t list_max(const struct node *nodes)
{
    return nodes[LIST_MAX].present ? (uint32_t)nodes[LIST_MAX].integer : LIST_DEFAULT;
}

static void end_list(struct rest_call *call, struct slice marker)
{
    buf_byte(call->reply, ']');
    if (marker.data) {
        buf_text(call->reply, ",\"NextMarker\":");
        json_put_string(call->reply, marker);
    }
    buf_byte(call->reply, '}');
}

static void list_layers(struct func *func, struct rest_call *call)
{
    struct node nodes[LIST_MEMBERS];
    struct slice marker = SLICE_NONE, last = SLICE_NONE;
    uint32_t count, versions_count, shown = 0;
    if (!lambda_decode(call, list_fields, LIST_NAME, nodes)) return;
    if (!registry_refresh(func->registry)) {
        lambda_unavailable(call);
        return;
    }
    struct slice after = arena_printf(call->arena, LAYER_PREFIX "%.*s", SLICE_ARG(nodes[LIST_MARKER].text));
    struct entry **list = registry_list(func->registry, after, UINT32_MAX, call->arena, &count);
    buf_text(call->reply, "{\"Layers\":[");
    for (uint32_t i = 0; i < count && !marker.data; i++) {
        if (!slice_starts(list[i]->name, SLICE(LAYER_PREFIX))) break;
        const struct part **versions = layer_versions(
            list[i], &nodes[LIST_RUNTIME], &nodes[LIST_ARCHITECTURE], call->arena, &versions_count);
        if (!versions_count) continue;
        if (shown == list_max(nodes)) {
            marker = last;
            continue;
        }
        last = arena_copy(call->arena, shown_name(list[i]));
        buf_printf(call->reply, "%s{\"LayerName\":\"%.*s\",\"LayerArn\":\"%.*s\",\"LatestMatchingVersion\":",
                   shown++ ? "," : "", SLICE_ARG(last), SLICE_ARG(layer_arn(func, last, call->arena)));
        put_version(call, func, list[i], versions[0], false);
        buf_byte(call->reply, '}');
    }
    end_list(call, marker);
    for (uint32_t i = 0; i < count; i++) entry_release(list[i]);
    lambda_done(call, 200);
}

/* The version that an ARN names; NULL when there is none. The entry is counted. */
static const struct part *version_by_arn(struct func *func, struct slice arn, struct arena *arena,
                                         struct entry **entry, bool *failed)
{
    *entry = NULL;
    *failed = false;
    if (!take_layer_arn(func, &arn)) return NULL;
    struct slice name = lambda_take_field(&arn);
    if (!is_layer_name(name) || !arn.len) return NULL;
    *entry = registry_look(func->registry, arena_printf(arena, LAYER_PREFIX "%.*s", SLICE_ARG(name)), failed);
    const struct part *part = *entry ? entry_part(*entry, arn) : NULL;
    return part && is_version(part) ? part : NULL;
}

static void reply_version(struct func *func, struct rest_call *call, struct slice arn)
{
    struct entry *entry;
    bool failed;
    const struct part *part = version_by_arn(func, arn, call->arena, &entry, &failed);
    if (part) put_version(call, func, entry, part, true);
    entry_release(entry);
    if (part)
        lambda_done(call, 200);
    else if (failed)
        lambda_unavailable(call);
    else
        answer_not_found(call);
}

/* Both have the same path; GetLayerVersionByArn has a query. */
void lambda_list_layers(struct func *func, struct rest_call *call)
{
    struct slice arn = rest_query(call, "Arn");
    if (rest_query(call, "find").data)
        reply_version(func, call, arn.data ? arn : SLICE(""));
    else
        list_layers(func, call);
}

/* ---- ListLayerVersions ---- */

void lambda_list_layer_versions(struct func *func, struct rest_call *call)
{
    struct node nodes[LIST_MEMBERS];
    struct slice marker = SLICE_NONE;
    unsigned long long below = 0, number;
    uint32_t count = 0, shown = 0;
    bool failed;
    if (!lambda_decode(call, list_fields, LIST_MEMBERS, nodes)) return;
    if (nodes[LIST_MARKER].present && !slice_to_u64(nodes[LIST_MARKER].text, UINT32_MAX, &below)) {
        refuse(call, "Invalid marker");
        return;
    }
    struct slice name = entry_name(func, call, nodes[LIST_NAME].text);
    if (!name.data) return;
    struct entry *entry = registry_look(func->registry, name, &failed);
    if (failed) {
        lambda_unavailable(call);
        return;
    }
    const struct part **versions = NULL;
    if (entry)
        versions = layer_versions(entry, &nodes[LIST_RUNTIME], &nodes[LIST_ARCHITECTURE], call->arena,
                                  &count);
    buf_text(call->reply, "{\"LayerVersions\":[");
    for (uint32_t i = 0; i < count; i++) {
        if (!slice_to_u64(versions[i]->name, UINT32_MAX, &number) || (below && number >= below)) continue;
        if (shown == list_max(nodes)) {
            marker = arena_copy(call->arena, versions[i - 1]->name);
            break;
        }
        if (shown++) buf_byte(call->reply, ',');
        put_version(call, func, entry, versions[i], false);
    }
    end_list(call, marker);
    entry_release(entry);
    lambda_done(call, 200);
}

/* ---- GetLayerVersion, DeleteLayerVersion ---- */

enum { GET_NAME, GET_VERSION, GET_MEMBERS };

static const struct shape shape_number = {.kind = SHAPE_STRING, .has_max = true, .max = 10};
static const struct field get_fields[GET_MEMBERS] = {
    [GET_NAME] = PATH_FIELD("LayerName", lambda_shape_text, 0),
    [GET_VERSION] = PATH_FIELD("VersionNumber", shape_number, 1),
};

void lambda_get_layer_version(struct func *func, struct rest_call *call)
{
    struct node nodes[GET_MEMBERS];
    if (!lambda_decode(call, get_fields, GET_MEMBERS, nodes)) return;
    struct slice name = entry_name(func, call, nodes[GET_NAME].text);
    if (!name.data) return;
    struct slice arn = layer_arn(func, slice_from(name, sizeof LAYER_PREFIX - 1), call->arena);
    reply_version(func, call,
                  arena_printf(call->arena, "%.*s:%.*s", SLICE_ARG(arn), SLICE_ARG(nodes[GET_VERSION].text)));
}

/* The numbers of deleted versions are not used again: the layer's own part stays. */
static enum step delete_step(struct rest_call *call, struct change *change, void *context)
{
    const struct slice *version = context;
    const struct part *part = change->before ? entry_part(change->before, *version) : NULL;
    (void)call;
    if (!part || !is_version(part)) return STEP_NOTHING;
    change_delete(change, part->name);
    return STEP_COMMIT;
}

void lambda_delete_layer_version(struct func *func, struct rest_call *call)
{
    struct node nodes[GET_MEMBERS];
    struct target target = {0};
    struct change change;
    if (!lambda_decode(call, get_fields, GET_MEMBERS, nodes)) return;
    target.name = entry_name(func, call, nodes[GET_NAME].text);
    if (!target.name.data ||
        !lambda_change(func, call, &target, delete_step, &nodes[GET_VERSION].text, &change))
        return;
    change_free(&change);
    lambda_done(call, 204);
}

/* ---- layers of a function ---- */

static bool is_named_twice(const struct node *layers, uint32_t index)
{
    struct slice arn = layers->nodes[index].text;
    const char *colon = memrchr(arn.data, ':', arn.len);
    struct slice layer = {arn.data, colon ? (size_t)(colon - arn.data) + 1 : arn.len};
    for (uint32_t i = 0; i < index; i++)
        if (slice_starts(layers->nodes[i].text, layer)) return true;
    return false;
}

/* Appends one layer to both lists. False: answered. */
static bool add_layer(struct func *func, struct rest_call *call, struct slice arn, struct buf *shown,
                      struct buf *hashes)
{
    struct entry *entry;
    bool failed;
    const char *comma = shown->len > 1 ? "," : "";
    const struct part *part = version_by_arn(func, arn, call->arena, &entry, &failed);
    if (part) {
        buf_printf(shown, "%s{\"Arn\":\"%.*s\",\"CodeSize\":%lld}", comma, SLICE_ARG(arn),
                   (long long)document_integer(&part->document, "CodeSize", 0));
        buf_printf(hashes, "%s%.*s", comma, SLICE_ARG(document_get(&part->document, "CodeSha256")));
        /* With other servers: nobody takes the archive for unused now. */
        failed = !code_store(func->registry, document_text(&part->document, "CodeSha256", call->arena),
                             SLICE_NONE) ||
                 !code_unpack(func->registry, document_text(&part->document, "CodeSha256", call->arena));
    }
    entry_release(entry);
    if (failed)
        lambda_unavailable(call);
    else if (!part)
        lambda_error(call, 400, "InvalidParameterValueException", "Layer version %.*s does not exist.",
                     SLICE_ARG(arn));
    return part && !failed;
}

static bool check_size(struct func *func, struct rest_call *call, const struct document *document)
{
    struct slice hashes[LIMIT_LAYERS + 1];
    uint32_t count = layers_read(document, call->arena, hashes);
    uint64_t size = 0;
    if (!count) return true;
    /* Where layers are merged, their own folders need not be there. */
    for (uint32_t i = 0; i < count; i++)
        if (!code_unpack(func->registry, hashes[i])) {
            lambda_unavailable(call);
            return false;
        }
    struct document ours = document_object(document, "Quipu", call->arena);
    if (!document_get(&ours, "Directory").data)
        hashes[count++] = document_text(document, "CodeSha256", call->arena);
    for (uint32_t i = 0; i < count; i++)
        size += layer_size(code_folder(func->registry, hashes[i], call->arena));
    if (size <= LIMIT_UNPACKED_BYTES) return true;
    lambda_error(call, 400, "InvalidParameterValueException",
                 "Function code combined with layers exceeds the maximum allowed size of %d bytes. The "
                 "actual size is %llu bytes.",
                 LIMIT_UNPACKED_BYTES, (unsigned long long)size);
    return false;
}

bool layers_apply(struct func *func, struct rest_call *call, const struct node *layers,
                  struct document *document)
{
    struct buf shown = {0}, hashes = {0};
    bool all_well = true;
    if (!layers->present) return check_size(func, call, document);
    if (layers->count > LIMIT_LAYERS) return refuse(call, "You cannot reference more than 5 layers.");
    buf_byte(&shown, '[');
    buf_byte(&hashes, '[');
    for (uint32_t i = 0; i < layers->count && all_well; i++) {
        all_well = add_layer(func, call, layers->nodes[i].text, &shown, &hashes);
        if (all_well && is_named_twice(layers, i))
            all_well = refuse(call, "Two different versions of the same layer are not allowed to be "
                                    "referenced in the same function.");
    }
    buf_byte(&shown, ']');
    buf_byte(&hashes, ']');
    if (all_well) { /* else the call was answered, and may be gone */
        bool has_any = layers->count != 0;
        document_set(document, "Layers", has_any ? arena_copy(call->arena, buf_view(&shown)) : SLICE_NONE,
                     call->arena);
        document_set(document, LAYER_HASHES,
                     has_any ? arena_copy(call->arena, buf_view(&hashes)) : SLICE_NONE, call->arena);
    }
    buf_free(&shown);
    buf_free(&hashes);
    return all_well && check_size(func, call, document);
}
