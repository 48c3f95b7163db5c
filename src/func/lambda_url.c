/* Function URLs: FunctionUrlConfig, one for each qualifier. What is stored is the part url:QUALIFIER; who serves the
 * requests (gateway) finds it by func_url_find. */
#include "func/lambda.h"

#define URL_ID_LETTERS 32 /* as the service has them */

/* Where a URL leads to besides the function's name: http://ID.lambda-url.HOST/ */
#define URL_HOST ".lambda-url."

CHOICE_SHAPE(shape_auth, "NONE", "AWS_IAM");
CHOICE_SHAPE(shape_mode, "BUFFERED", "RESPONSE_STREAM");
static const struct shape shape_max_age = INTEGER_BETWEEN(0, 86400);
static const struct shape shape_header = {TEXT_UP_TO(1024)};
static const struct shape shape_method = {TEXT_UP_TO(6)};
static const struct shape shape_origin = {TEXT_BETWEEN(1, 253)};
#define LIST_UP_TO(shape, most)                                                                              \
    {                                                                                                        \
        .kind = SHAPE_LIST, .of = &(shape), .has_max = true, .max = (most)                                   \
    }
static const struct shape shape_headers = LIST_UP_TO(shape_header, 100);
static const struct shape shape_methods = LIST_UP_TO(shape_method, 6);
static const struct shape shape_origins = LIST_UP_TO(shape_origin, 100);
STRUCT_SHAPE(shape_cors, FIELD("AllowCredentials", lambda_shape_bool), FIELD("AllowHeaders", shape_headers),
             FIELD("AllowMethods", shape_methods), FIELD("AllowOrigins", shape_origins),
             FIELD("ExposeHeaders", shape_headers), FIELD("MaxAge", shape_max_age));
enum { CORS_CREDENTIALS, CORS_HEADERS, CORS_METHODS, CORS_ORIGINS, CORS_EXPOSE, CORS_AGE };

#define URL_GET(X)                                                                                           \
    X(URL_NAME, NAME_FIELD)                                                                                  \
    X(URL_QUALIFIER, QUERY_FIELD("Qualifier", lambda_shape_alias))
#define URL_UPDATE(X)                                                                                        \
    URL_GET(X)                                                                                               \
    X(URL_AUTH, FIELD("AuthType", shape_auth))                                                               \
    X(URL_CORS, FIELD("Cors", shape_cors))                                                                   \
    X(URL_MODE, FIELD("InvokeMode", shape_mode))
#define URL_CREATE(X)                                                                                        \
    URL_GET(X)                                                                                               \
    X(CREATE_AUTH, REQUIRED("AuthType", shape_auth))                                                         \
    X(CREATE_CORS, FIELD("Cors", shape_cors))                                                                \
    X(CREATE_MODE, FIELD("InvokeMode", shape_mode))
MEMBERS(URL_UPDATE)

static bool answer_none(const struct request *request)
{
    return lambda_no_resource(request->call);
}

/* ---- what is shown ---- */

/* Of the name that the request came by: another one's would not lead here. Below an address there are no names. */
static struct slice host_shown(const struct rest_call *call)
{
    struct slice host = call->header(call, SLICE("Host"));
    const char *colon = host.len ? memrchr(host.data, ':', host.len) : NULL;
    struct slice port = colon ? slice_from(host, (size_t)(colon - host.data)) : SLICE("");
    struct slice name = {host.data, host.len - port.len};
    bool is_address = name.len && (name.data[0] == '[' || text_is_number((struct slice){name.data + name.len - 1, 1}));
    bool has_names = name.len && !is_address && memchr(name.data, '.', name.len);
    return has_names ? host : arena_printf(call->arena, "localhost%.*s", SLICE_ARG(port));
}

static void put_config(struct buf *out, const struct request *request, const struct entry *entry,
                       const struct part *part)
{
    struct slice qualifier = part_suffix(part, PART_URL);
    if (slice_equal(qualifier, SLICE(PART_LATEST))) qualifier = SLICE_NONE;
    struct document shown = document_copy(&part->document, request->arena);
    struct slice id = document_text(&shown, "UrlId", request->arena);
    document_set(&shown, "UrlId", SLICE_NONE, request->arena);
    compose(out, "%,{'FunctionUrl':%s,'FunctionArn':%s",
            arena_printf(request->arena, "http%s://%.*s" URL_HOST "%.*s/", request->call->is_secure ? "s" : "",
                         SLICE_ARG(id), SLICE_ARG(host_shown(request->call))),
            lambda_arn(request->func, request->arena, entry->name, qualifier));
    document_put_more(out, &shown);
    buf_byte(out, '}');
}

static const struct part_kind kind = {PART_URL, put_config, answer_none};

/* ---- CreateFunctionUrlConfig, UpdateFunctionUrlConfig ---- */

static bool is_method(struct slice text)
{
    static const char *const methods[] = {"*", "GET", "PUT", "HEAD", "POST", "PATCH", "DELETE"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (slice_equal(text, slice_of(methods[i]))) return true;
    return false;
}

/* The pages' words become lines of replies. */
static bool cors_is_valid(struct request *request)
{
    static const int lists[] = {CORS_HEADERS, CORS_METHODS, CORS_ORIGINS, CORS_EXPOSE};
    const struct shape_node *cors = &request->nodes[URL_CORS];
    for (size_t i = 0; cors->present && i < sizeof lists / sizeof *lists; i++) {
        const struct shape_node *list = &cors->nodes[lists[i]];
        for (uint32_t j = 0; list->present && j < list->count; j++) {
            struct slice text = list->nodes[j].text;
            bool fits = text.len != 0;
            for (size_t k = 0; k < text.len; k++)
                if ((unsigned char)text.data[k] <= ' ' || (unsigned char)text.data[k] >= 0x7f || text.data[k] == ',')
                    fits = false;
            if (lists[i] == CORS_METHODS) fits = is_method(text);
            if (!fits)
                return lambda_refuse(request->call, "Invalid value in Cors.%s: %.*s",
                                     cors->shape->fields[lists[i]].name, SLICE_ARG(text));
        }
    }
    return true;
}

static enum step url_apply(struct request *request, struct change *change, struct document *config)
{
    struct arena *arena = request->arena;
    const struct shape_node *nodes = request->nodes;
    struct slice now = registry_time_text(clock_now_ms(request->func->options.clock), arena);
    if (!document_get(config, "CreationTime").data) document_set_text(config, "CreationTime", now, arena);
    document_set_text(config, "LastModifiedTime", now, arena);
    node_set(config, "AuthType", &nodes[URL_AUTH], arena);
    node_set(config, "InvokeMode", &nodes[URL_MODE], arena);
    node_set(config, "Cors", &nodes[URL_CORS], arena);
    request->part = arena_printf(arena, PART_URL "%.*s", SLICE_ARG(lambda_qualifier(request)));
    change_put(change, request->part, config);
    return STEP_COMMIT;
}

static enum step create_step(struct request *request, struct change *change, void *context)
{
    struct document config = {0};
    struct slice qualifier = lambda_qualifier(request);
    (void)context;
    if (!change->before || !entry_qualified(change->before, qualifier))
        return lambda_missing(request, request->qualifier);
    if (entry_part_of(change->before, PART_URL, qualifier))
        return lambda_error(request->call, 409, "ResourceConflictException",
                            "Failed to create function url config for [functionArn = %.*s]. Error message:  "
                            "FunctionUrlConfig exists for this Lambda function",
                            SLICE_ARG(lambda_arn(request->func, request->arena, request->name,
                                                 request->qualifier)));
    char id[URL_ID_LETTERS + 1];
    random_letters(id, URL_ID_LETTERS, "abcdefghijklmnopqrstuvwxyz234567");
    document_set_text(&config, "UrlId", slice_of(id), request->arena);
    document_set_text(&config, "InvokeMode", SLICE("BUFFERED"), request->arena);
    return url_apply(request, change, &config);
}

static enum step update_step(struct request *request, struct change *change, void *context)
{
    const struct part *part = NULL;
    (void)context;
    if (change->before) part = entry_part_of(change->before, PART_URL, lambda_qualifier(request));
    if (!part) return answer_none(request);
    struct document config = document_copy(&part->document, request->arena);
    return url_apply(request, change, &config);
}

OPERATION(create_url, TARGET_QUALIFIED, URL_CREATE)
{
    if (cors_is_valid(request)) lambda_change_part(request, &kind, create_step, NULL, 201);
}

OPERATION(update_url, TARGET_QUALIFIED, URL_UPDATE)
{
    if (cors_is_valid(request)) lambda_change_part(request, &kind, update_step, NULL, 200);
}

/* ---- GetFunctionUrlConfig, DeleteFunctionUrlConfig ---- */

OPERATION(get_url, TARGET_QUALIFIED, URL_GET)
{
    lambda_get_part(request, &kind, lambda_qualifier(request));
}

OPERATION(delete_url, TARGET_QUALIFIED, URL_GET)
{
    lambda_delete_part(request, &kind);
}

/* ---- ListFunctionUrlConfigs ---- */

#define URL_LIST(X)                                                                                          \
    X(LIST_NAME, NAME_FIELD)                                                                                 \
    X(LIST_MARKER, MARKER_FIELD)                                                                             \
    X(LIST_MAX, QUERY_FIELD("MaxItems", lambda_shape_max_items_50))
MEMBERS(URL_LIST)

OPERATION(list_urls, TARGET_WHOLE | TARGET_ENTRY, URL_LIST)
{
    lambda_list_parts(request, "FunctionUrlConfigs", PART_URL, &request->nodes[LIST_MARKER],
                      &request->nodes[LIST_MAX], NULL, put_config);
}

/* ---- for who serves them ---- */

static void url_read(const struct entry *entry, const struct part *part, struct arena *arena, struct func_url *out)
{
    const struct document *config = &part->document;
    struct slice qualifier = part_suffix(part, PART_URL);
    *out = (struct func_url){
        .function = arena_copy(arena, entry->name),
        .qualifier = slice_equal(qualifier, SLICE(PART_LATEST)) ? SLICE_NONE : arena_copy(arena, qualifier),
        .id = arena_copy(arena, document_text(config, "UrlId", arena)),
        .is_signed = slice_equal(document_text(config, "AuthType", arena), SLICE("AWS_IAM")),
        .streams = slice_equal(document_text(config, "InvokeMode", arena), SLICE("RESPONSE_STREAM")),
        .cors = arena_copy(arena, document_get(config, "Cors")),
    };
}

static bool url_of_name(struct func *func, struct slice text, struct arena *arena, struct func_url *out)
{
    struct slice name, qualifier;
    if (!function_name_parse(text, &name, &qualifier)) return false;
    struct entry *entry = registry_known(func->registry, name);
    const struct part *part = entry ? entry_part_of(entry, PART_URL, qualifier.len ? qualifier : SLICE(PART_LATEST))
                                    : NULL;
    if (part) url_read(entry, part, arena, out);
    entry_release(entry);
    return part != NULL;
}

bool func_url_find(struct func *func, struct slice text, bool is_id, struct arena *arena, struct func_url *out)
{
    struct registry *registry = func->registry;
    bool found = false;
    if (!is_id) return url_of_name(func, text, arena, out);
    pthread_mutex_lock(&registry->lock);
    for (uint32_t i = 0; i < registry->count && !found; i++) {
        const struct entry *entry = registry->entries[i];
        for (uint32_t j = 0; entry->has_urls && j < entry->count && !found; j++) {
            const struct part *part = &entry->parts[j];
            if (!part_suffix(part, PART_URL).data) continue;
            found = slice_equal_ignoring_case(document_text(&part->document, "UrlId", arena), text);
            if (found) url_read(entry, part, arena, out);
        }
    }
    pthread_mutex_unlock(&registry->lock);
    return found;
}

bool func_refresh(struct func *func)
{
    return func->options.shared && registry_refresh(func->registry);
}
