/* Documents with versions: nobody overwrites what they have not seen.
 *
 * Table PREFIXdocuments: hash key `collection` (S), range key `key` (S); `version` (N) grows by one with each
 * write; `data`: the document as an attribute value; `changed` (S): when, in ISO 8601; `token` (S): the
 * Idempotency-Key of the last write, if it had one, and `sent` (S) a digest of what it sent. A deleted
 * document stays for a month as {version, deleted: true, expires}, so that a new one of the same key goes on
 * counting and an old version never fits it; `expires` (N, seconds) is the time to live.
 *
 * A write says by If-Match which version it replaces (the ETag that came with it), by If-None-Match: * that
 * there must be none, or nothing and then replaces whatever is there. PATCH (a merge patch, RFC 7396) without
 * If-Match repeats its own read-modify-write until nobody came in between. */
#include "calendar/calendar.h"
#include "pattern/listing.h"
#include "pattern/merge.h"
#include "pattern/names.h"
#include "pattern/rows.h"
#include "pattern/tokens.h"

#define TOMBSTONE_S (30 * 24 * 3600)

static const struct flow_table documents = {"documents", "collection key", "expires"};

/* All rows of one document begin with these two. */
enum { COLLECTION, KEY };
#define FIELD_COLLECTION FIELD_IN_PATH("collection", 0, "which collection")
#define FIELD_KEY        FIELD_IN_PATH("key", 1024, "which document")

/* ---- versions in headers ---- */

enum etag_kind { ETAG_NONE, ETAG_ANY, ETAG_VERSIONS };

#define ETAGS_MOST 100 /* operands of IN */

struct etag {
    enum etag_kind kind;
    unsigned count;
    int64_t versions[ETAGS_MOST]; /* only those that a document may have */
};

/* The next tag of a list, "7" or W/"7" or 7, and whether it is a weak one; false at the end. */
static bool etag_next(struct slice *rest, struct slice *tag, bool *is_weak)
{
    while (rest->len && (rest->data[0] == ' ' || rest->data[0] == '\t' || rest->data[0] == ','))
        *rest = slice_from(*rest, 1);
    *is_weak = slice_starts(*rest, SLICE("W/"));
    if (*is_weak) *rest = slice_from(*rest, 2);
    if (!rest->len) return false;
    bool is_quoted = rest->data[0] == '"';
    if (is_quoted) *rest = slice_from(*rest, 1);
    const char *end = rest->len ? memchr(rest->data, is_quoted ? '"' : ',', rest->len) : NULL;
    *tag = (struct slice){rest->data, end ? (size_t)(end - rest->data) : rest->len};
    *rest = slice_from(*rest, tag->len + (end != NULL));
    while (!is_quoted && tag->len && tag->data[tag->len - 1] == ' ') tag->len--;
    return true;
}

/* A list of tags, or *. A weak one says that two are as good as each other, not the same: it never matches where
 * something is replaced (RFC 9110, 13.1.1). */
static struct etag etag_read(const struct flow *flow, unsigned field, bool takes_weak)
{
    struct etag etag = {.kind = ETAG_NONE};
    struct slice rest = flow_text(flow, field), tag;
    unsigned long long version;
    bool is_weak;
    if (!flow_given(flow, field)) return etag;
    etag.kind = slice_equal(rest, SLICE("*")) ? ETAG_ANY : ETAG_VERSIONS;
    while (etag.kind == ETAG_VERSIONS && etag.count < ETAGS_MOST && etag_next(&rest, &tag, &is_weak))
        if ((takes_weak || !is_weak) && tag.len && slice_to_u64(tag, INT64_MAX - 1, &version))
            etag.versions[etag.count++] = (int64_t)version;
    return etag;
}

static bool etag_has(const struct etag *etag, int64_t version)
{
    bool found = etag->kind == ETAG_ANY;
    for (unsigned i = 0; i < etag->count; i++) found |= etag->versions[i] == version;
    return found;
}

/* "#version = :seen" or "#version in (:seen0, :seen1)", and the values, each behind a comma; no version fits:
 * none is 0. */
static struct slice etag_condition(struct flow *flow, struct etag *etag, struct slice *values)
{
    struct slice list = SLICE("");
    *values = SLICE("");
    if (!etag->count) etag->versions[etag->count++] = 0;
    if (etag->count == 1) {
        *values = flow_compose(flow, ",':seen':%N", etag->versions[0]);
        return SLICE("#version = :seen");
    }
    for (unsigned i = 0; i < etag->count; i++) {
        list = arena_printf(flow->arena, "%.*s%s:seen%u", SLICE_ARG(list), i ? ", " : "", i);
        *values = flow_compose(flow, "%r,':seen%r':%N", *values, arena_printf(flow->arena, "%u", i),
                               etag->versions[i]);
    }
    return arena_printf(flow->arena, "#version in (%.*s)", SLICE_ARG(list));
}

/* ---- what is the same for all ---- */

static uint64_t topic_of(const struct flow *flow)
{
    return flow_topic("document", flow_text(flow, COLLECTION), flow_text(flow, KEY));
}

static bool is_there(struct flow *flow, struct slice item)
{
    return item_has(flow->arena, item, "version") && !item_has(flow->arena, item, "deleted");
}

static int64_t version_of(struct flow *flow, struct slice item)
{
    return item_int(flow->arena, item, "version", 0);
}

static void tell_etag(struct flow *flow, int64_t version)
{
    flow->etag = flow_compose(flow, "%d", version);
}

static void tell_written(struct flow *flow, int64_t version)
{
    flow_wake(flow, topic_of(flow));
    tell_etag(flow, version);
    flow_answer(flow, version == 1 ? 201 : 200, "{'version':%d}", version);
}

static _Noreturn void refuse_missing(struct flow *flow)
{
    task_refuse(flow, 404, "no-such-document", "There is no document '%.*s' in the collection '%.*s'.",
                SLICE_ARG(flow_text(flow, KEY)), SLICE_ARG(flow_text(flow, COLLECTION)));
}

/* The current state of the document does not fit the condition of the request. */
static _Noreturn void refuse_mismatch(struct flow *flow, struct slice item)
{
    if (!is_there(flow, item))
        task_refuse(flow, 412, "version-mismatch", "There is no such document (any more).");
    int64_t version = version_of(flow, item);
    tell_etag(flow, version);
    task_refuse_with(flow, flow_compose(flow, "'version':%d", version), 412, "version-mismatch",
                     "The document has version %lld. Read it and decide again.", (long long)version);
}

static struct slice read_item(struct flow *flow)
{
    return task_get(flow, &documents, "{'collection':%S,'key':%S}", flow_text(flow, COLLECTION),
                    flow_text(flow, KEY));
}

/* ---- GET ---- */

enum { GET_IF_NONE_MATCH = KEY + 1, GET_WAIT };

static const struct field get_fields[] = {
    FIELD_COLLECTION,
    FIELD_KEY,
    [GET_IF_NONE_MATCH] = {"If-None-Match", IN_HEADER, FIELD_NAME,
                           .help = "304 while it has this version, or one of a list"},
    [GET_WAIT] = FIELD_WAIT(IN_QUERY,
                            "wait so long for a document, or for another version than that of If-None-Match"),
};

static void get_document(struct flow *flow)
{
    int64_t until_ms = flow->now_ms + flow_int_or(flow, GET_WAIT, 0);
    struct etag known = etag_read(flow, GET_IF_NONE_MATCH, true);
    struct slice item;
    for (;;) {
        flow_look(flow);
        item = read_item(flow);
        bool is_new = is_there(flow, item) && !etag_has(&known, version_of(flow, item));
        if (is_new || flow->now_ms >= until_ms) break;
        task_watch(flow, topic_of(flow),
                   flow_item_thing(&documents, flow_text(flow, COLLECTION), flow_text(flow, KEY)), until_ms);
    }
    if (!is_there(flow, item)) refuse_missing(flow);
    tell_etag(flow, version_of(flow, item));
    if (etag_has(&known, version_of(flow, item))) {
        flow_finish(flow, 304);
        return;
    }
    flow->is_bare = true;
    flow_answer(flow, 200, "%P", item_attribute(flow->arena, item, "data"));
}

/* ---- PUT ---- */

enum { PUT_IF_MATCH = KEY + 1, PUT_IF_NONE_MATCH, PUT_TOKEN, PUT_DATA };

static const struct field put_fields[] = {
    FIELD_COLLECTION,
    FIELD_KEY,
    [PUT_IF_MATCH] = {"If-Match", IN_HEADER, FIELD_NAME,
                      .help = "the version that is replaced, a list of such, or *"},
    [PUT_IF_NONE_MATCH] = {"If-None-Match", IN_HEADER, FIELD_NAME, .help = "*: there must be none yet"},
    [PUT_TOKEN] = FIELD_REPEATS("a repeat of the last write writes nothing"),
    [PUT_DATA] = {"document", WHOLE_BODY, FIELD_JSON, true, .help = "the document"},
};

/* The condition of a write that replaces: what the headers ask for, and not what the same key has written. */
static struct slice put_condition(struct flow *flow, struct slice *values)
{
    struct etag match = etag_read(flow, PUT_IF_MATCH, false);
    struct slice wanted = SLICE_NONE;
    *values = SLICE("");
    if (flow_given(flow, PUT_IF_NONE_MATCH))
        wanted = SLICE("(attribute_not_exists(#version) or attribute_exists(#deleted))");
    else if (match.kind == ETAG_ANY)
        wanted = SLICE("attribute_exists(#version) and attribute_not_exists(#deleted)");
    else if (match.kind == ETAG_VERSIONS)
        wanted = flow_compose(flow, "%r and attribute_not_exists(#deleted)",
                              etag_condition(flow, &match, values));
    if (!flow_given(flow, PUT_TOKEN)) return wanted;
    return flow_compose(flow, "%[%r and %](attribute_not_exists(#token) or #token <> :token)", wanted);
}

/* Writes new data, and answers the item: as it is now, or as it was where the condition did not hold. */
static struct slice write_document(struct flow *flow, struct slice data, struct slice condition,
                                   struct slice values, unsigned token_field)
{
    struct slice token = flow_text(flow, token_field);
    names_note(flow, SLICE("collection"), flow_text(flow, COLLECTION));
    task_call(
        flow, "UpdateItem",
        "{'TableName':%T,'Key':{'collection':%S,'key':%S},'UpdateExpression':'SET #version = "
        "if_not_exists(#version, :zero) + :one, #data = :data, #changed = :now%[%?, #token = :token, #sent = :sent%] "
        "REMOVE #deleted, #expires%[%?, #token, #sent%]'%[,'ConditionExpression':'%r'%],%#,"
        "'ExpressionAttributeValues':{':zero':{'N':'0'},':one':{'N':'1'},':data':%J,':now':%S"
        "%[,':token':%S,':sent':%S%]%A},'ReturnValues':'UPDATED_NEW',%O}",
        &documents, flow_text(flow, COLLECTION), flow_text(flow, KEY), token.data != NULL, token.data == NULL,
        condition, data, moment_text(flow->arena, flow->now_ms), token,
        token_digest(flow, flow->request->body), values);
    return flow_item(flow);
}

/* The item is what this very call has written before, and its reply was lost. */
static bool is_own(struct flow *flow, struct slice item, unsigned token_field)
{
    return flow_given(flow, token_field) && is_there(flow, item) &&
           slice_equal(item_text(flow->arena, item, "token"), flow_text(flow, token_field));
}

static void tell_again(struct flow *flow, struct slice item)
{
    if (!slice_equal(item_text(flow->arena, item, "sent"), token_digest(flow, flow->request->body)))
        token_refuse(flow);
    tell_written(flow, version_of(flow, item));
}

static void put_document(struct flow *flow)
{
    struct slice values, condition = put_condition(flow, &values);
    if (flow_given(flow, PUT_IF_NONE_MATCH) && !slice_equal(flow_text(flow, PUT_IF_NONE_MATCH), SLICE("*")))
        task_refuse(flow, 400, "bad-request", "If-None-Match of a PUT can only be *.");
    struct slice item = write_document(flow, flow_text(flow, PUT_DATA), condition, values, PUT_TOKEN);
    if (!flow_failed(flow))
        tell_written(flow, version_of(flow, item));
    else if (is_own(flow, item, PUT_TOKEN))
        tell_again(flow, item);
    else
        refuse_mismatch(flow, item);
}

/* ---- PATCH ---- */

enum { PATCH_IF_MATCH = KEY + 1, PATCH_TOKEN, PATCH_DATA };

static const struct field patch_fields[] = {
    FIELD_COLLECTION,
    FIELD_KEY,
    [PATCH_IF_MATCH] = {"If-Match", IN_HEADER, FIELD_NAME,
                        .help = "the version that is changed, a list of such, or *"},
    [PATCH_TOKEN] = FIELD_REPEATS("a repeat of the last write writes nothing"),
    [PATCH_DATA] = {"patch", WHOLE_BODY, FIELD_JSON, true, .help = "a merge patch: null removes a member"},
};

/* The data of the document with the patch; what cannot be stored ends the task. */
static struct slice patched(struct flow *flow, struct slice item)
{
    struct slice old = flow_compose(flow, "%P", item_attribute(flow->arena, item, "data"));
    struct slice data = merge_patch(flow->arena, old, flow_text(flow, PATCH_DATA));
    const char *fault = plain_fault(flow->arena, data);
    if (!fault) return data;
    task_refuse(flow, 400, "bad-request", "The patched document cannot be stored: %s.", fault);
}

static void patch_document(struct flow *flow)
{
    struct etag match = etag_read(flow, PATCH_IF_MATCH, false);
    struct slice item = read_item(flow);
    for (;; task_again(flow)) {
        if (is_own(flow, item, PATCH_TOKEN)) {
            tell_again(flow, item);
            return;
        }
        if (match.kind == ETAG_VERSIONS &&
            (!is_there(flow, item) || !etag_has(&match, version_of(flow, item))))
            refuse_mismatch(flow, item);
        if (!is_there(flow, item)) refuse_missing(flow);
        item = write_document(flow, patched(flow, item),
                              SLICE("#version = :seen and attribute_not_exists(#deleted)"),
                              flow_compose(flow, ",':seen':%N", version_of(flow, item)), PATCH_TOKEN);
        if (!flow_failed(flow)) break;
    }
    tell_written(flow, version_of(flow, item));
}

/* ---- DELETE ---- */

enum { DELETE_IF_MATCH = KEY + 1 };

static const struct field delete_fields[] = {
    FIELD_COLLECTION,
    FIELD_KEY,
    [DELETE_IF_MATCH] = {"If-Match", IN_HEADER, FIELD_NAME,
                         .help = "the version that is deleted, a list of such, or *"},
};

static void delete_document(struct flow *flow)
{
    struct etag match = etag_read(flow, DELETE_IF_MATCH, false);
    struct slice values = SLICE(""), condition = SLICE_NONE;
    if (match.kind == ETAG_VERSIONS) condition = etag_condition(flow, &match, &values);
    task_call(
        flow, "UpdateItem",
        "{'TableName':%T,'Key':{'collection':%S,'key':%S},"
        "'UpdateExpression':'SET #version = #version + :one, #deleted = :true, #changed = :now, #expires = "
        ":expires REMOVE #data, #token','ConditionExpression':'attribute_exists(#version) and "
        "attribute_not_exists(#deleted)%[ and %r%]',%#,'ExpressionAttributeValues':{':one':{'N':'1'},"
        "':true':{'BOOL':true},':now':%S,':expires':%N%r},'ReturnValues':'UPDATED_NEW',%O}",
        &documents, flow_text(flow, COLLECTION), flow_text(flow, KEY), condition,
        moment_text(flow->arena, flow->now_ms), flow->now_ms / 1000 + TOMBSTONE_S, values);
    struct slice item = flow_item(flow);
    if (flow_failed(flow) && match.kind == ETAG_VERSIONS && is_there(flow, item)) refuse_mismatch(flow, item);
    if (flow_failed(flow)) refuse_missing(flow);
    flow_wake(flow, topic_of(flow));
    flow_answer(flow, 200, "{'deleted':true,'version':%d}", version_of(flow, item));
}

/* ---- the documents of a collection ---- */

enum { LIST_COLLECTION, LIST_LIMIT, LIST_AFTER, LIST_PREFIX };

static const struct field list_fields[] = {
    [LIST_COLLECTION] = FIELD_COLLECTION,
    [LIST_LIMIT] = FIELD_LIMIT(LIST_MOST),
    [LIST_AFTER] = {"after", IN_QUERY, FIELD_NAME, .max = 1024, .help = "the \"next\" of the page before"},
    [LIST_PREFIX] = {"prefix", IN_QUERY, FIELD_NAME, .max = 1024, .help = "only keys that begin so"},
};

static void list_documents(struct flow *flow)
{
    struct slice collection = flow_text(flow, LIST_COLLECTION), prefix = flow_text(flow, LIST_PREFIX), item;
    task_query(flow, "#collection = :collection%[%? and begins_with(#key, :prefix)%]",
               ",'FilterExpression':'attribute_not_exists(#deleted)','Limit':%d" READ_FRESH
               "%[,'ExclusiveStartKey':{'collection':%S,'key':%S}%]",
               "':collection':%S%[,':prefix':%S%]", &documents, prefix.data != NULL,
               flow_int_or(flow, LIST_LIMIT, LIST_USUAL), collection, flow_text(flow, LIST_AFTER), collection,
               prefix);
    buf_text(flow->body, "{\"documents\":[");
    raw_each (flow->arena, flow_items(flow), &item)
        flow_put(flow, flow->body, "%,{'key':%s,'version':%d,'data':%P}", item_text(flow->arena, item, "key"),
                 version_of(flow, item), item_attribute(flow->arena, item, "data"));
    page_finish(flow, item_text(flow->arena, flow_last_key(flow), "key"));
}

NAMES_LIST(list_collections, SLICE("collection"), "collections", "name", "collection", .children = &documents)

/* ---- rows ---- */

/* clang-format off */
const struct flow_row document_rows[] = {
    {"GET", "/v1/documents/{collection}/{key}", get_document, "A document; its ETag is its version.",
     FIELDS(get_fields), "{'any':'JSON'}", "doc get -> *"},
    {"PUT", "/v1/documents/{collection}/{key}", put_document, "Writes a document.", FIELDS(put_fields), "{'version':7}",
     "doc put document? -> version"},
    {"PATCH", "/v1/documents/{collection}/{key}", patch_document, "Changes members of a document.",
     FIELDS(patch_fields), "{'version':8}", "doc patch patch? -> version"},
    {"DELETE", "/v1/documents/{collection}/{key}", delete_document, "Deletes a document.", FIELDS(delete_fields),
     "{'deleted':true,'version':9}", "doc rm"},
    {"GET", "/v1/documents/{collection}", list_documents, "The documents of a collection, by key.", FIELDS(list_fields),
     "{'documents':[{'key':'a','version':7,'data':{'any':'JSON'}}],'next':'a'}", "doc ls -> documents"},
    {"GET", "/v1/documents", list_collections, "The collections that have documents, by name.", FIELDS(names_fields),
     "{'collections':[{'name':'users'}]}", "doc list -> collections"},
};
/* clang-format on */
ROW_COUNT(document);
