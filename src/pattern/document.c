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
#include "pattern/merge.h"
#include "pattern/rows.h"
#include "pattern/tokens.h"

#define WAIT_MOST_MS 60000
#define TOMBSTONE_S  (30 * 24 * 3600)
#define LIST_MOST    1000
#define LIST_USUAL   100

static const struct flow_table documents = {
    "documents",
    "'KeySchema':[{'AttributeName':'collection','KeyType':'HASH'},{'AttributeName':'key','KeyType':'RANGE'}],"
    "'AttributeDefinitions':[{'AttributeName':'collection','AttributeType':'S'},"
    "{'AttributeName':'key','AttributeType':'S'}]",
    "expires"};

/* All rows of one document begin with these two. */
enum { COLLECTION, KEY };
#define FIELD_COLLECTION                                                                                     \
    {                                                                                                        \
        "collection", IN_PATH, FIELD_NAME, true, .help = "which collection"                                  \
    }
#define FIELD_KEY                                                                                            \
    {                                                                                                        \
        "key", IN_PATH, FIELD_NAME, true, .max = 1024, .help = "which document"                              \
    }

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

static void refuse_missing(struct flow *flow)
{
    flow_refuse(flow, 404, "no-such-document", "There is no document '%.*s' in the collection '%.*s'.",
                SLICE_ARG(flow_text(flow, KEY)), SLICE_ARG(flow_text(flow, COLLECTION)));
}

/* The current state of the document does not fit the condition of the request. */
static void refuse_mismatch(struct flow *flow, struct slice item)
{
    if (!is_there(flow, item)) {
        flow_refuse(flow, 412, "version-mismatch", "There is no such document (any more).");
        return;
    }
    int64_t version = version_of(flow, item);
    tell_etag(flow, version);
    flow_refuse_with(flow, flow_compose(flow, "'version':%d", version), 412, "version-mismatch",
                     "The document has version %lld. Read it and decide again.", (long long)version);
}

static void ask_item(struct flow *flow, flow_step *then)
{
    flow_call(flow, then, "GetItem",
              "{'TableName':%T,'Key':{'collection':%S,'key':%S},'ConsistentRead':true}", &documents,
              flow_text(flow, COLLECTION), flow_text(flow, KEY));
}

/* ---- GET ---- */

enum { GET_IF_NONE_MATCH = KEY + 1, GET_WAIT };

static const struct field get_fields[] = {
    FIELD_COLLECTION,
    FIELD_KEY,
    [GET_IF_NONE_MATCH] = {"If-None-Match", IN_HEADER, FIELD_NAME,
                           .help = "304 while it has this version, or one of a list"},
    [GET_WAIT] = {"wait", IN_QUERY, FIELD_DURATION, .max = WAIT_MOST_MS,
                  .help = "wait so long for a document, or for another version than that of If-None-Match"},
};

struct get {
    int64_t until_ms;
};

static flow_step get_taken;

static void get_ask(struct flow *flow)
{
    flow_look(flow);
    ask_item(flow, get_taken);
}

static void get_begin(struct flow *flow)
{
    struct get *get = flow->state = arena_new(flow->arena, struct get);
    get->until_ms = flow->now_ms + flow_int_or(flow, GET_WAIT, 0);
    get_ask(flow);
}

static void get_taken(struct flow *flow)
{
    struct get *get = flow->state;
    struct slice item = flow_item(flow);
    struct etag known = etag_read(flow, GET_IF_NONE_MATCH, true);
    int64_t version = version_of(flow, item);
    bool there = is_there(flow, item);
    bool same = there && etag_has(&known, version);
    if (there) tell_etag(flow, version);
    if (there && !same) {
        flow->is_bare = true;
        flow_answer(flow, 200, "%P", item_attribute(flow->arena, item, "data"));
    } else if (flow->now_ms < get->until_ms) {
        flow_watch(flow, topic_of(flow),
                   flow_item_thing(&documents, flow_text(flow, COLLECTION), flow_text(flow, KEY)),
                   get->until_ms, get_ask);
    } else if (same) {
        flow_finish(flow, 304);
    } else {
        refuse_missing(flow);
    }
}

/* ---- PUT ---- */

enum { PUT_IF_MATCH = KEY + 1, PUT_IF_NONE_MATCH, PUT_TOKEN, PUT_DATA };

static const struct field put_fields[] = {
    FIELD_COLLECTION,
    FIELD_KEY,
    [PUT_IF_MATCH] = {"If-Match", IN_HEADER, FIELD_NAME,
                      .help = "the version that is replaced, a list of such, or *"},
    [PUT_IF_NONE_MATCH] = {"If-None-Match", IN_HEADER, FIELD_NAME, .help = "*: there must be none yet"},
    [PUT_TOKEN] = {"Idempotency-Key", IN_HEADER, FIELD_NAME,
                   .help = "a repeat of the last write writes nothing"},
    [PUT_DATA] = {"document", WHOLE_BODY, FIELD_JSON, true, .help = "the document"},
};

/* The condition of a write that replaces: what the headers ask for, and not what the same key has written. */
static struct slice put_condition(struct flow *flow, struct slice *values)
{
    struct etag match = etag_read(flow, PUT_IF_MATCH, false);
    struct slice wanted = SLICE("");
    *values = SLICE("");
    if (flow_given(flow, PUT_IF_NONE_MATCH))
        wanted = SLICE("(attribute_not_exists(#version) or attribute_exists(#deleted))");
    else if (match.kind == ETAG_ANY)
        wanted = SLICE("attribute_exists(#version) and attribute_not_exists(#deleted)");
    else if (match.kind == ETAG_VERSIONS)
        wanted = flow_compose(flow, "%r and attribute_not_exists(#deleted)",
                              etag_condition(flow, &match, values));
    if (flow_given(flow, PUT_TOKEN))
        wanted = flow_compose(flow, "%r%r(attribute_not_exists(#token) or #token <> :token)", wanted,
                              wanted.len ? SLICE(" and ") : SLICE(""));
    return wanted.len ? flow_compose(flow, "'ConditionExpression':'%r',", wanted) : SLICE("");
}

/* The update of a document to new data: its parts before and behind the condition, without the closing brace.
 */
static void write_document(struct flow *flow, flow_step *then, struct slice data, struct slice condition,
                           struct slice values, unsigned token_field)
{
    bool has_token = flow_given(flow, token_field);
    struct slice token = has_token
                             ? flow_compose(flow, ",':token':%S,':sent':%S", flow_text(flow, token_field),
                                            token_digest(flow, flow->request->body))
                             : SLICE("");
    flow_call(
        flow, then, "UpdateItem",
        "{'TableName':%T,'Key':{'collection':%S,'key':%S},"
        "'UpdateExpression':'SET #version = if_not_exists(#version, :zero) + :one, #data = :data, #changed = "
        ":now%r "
        "REMOVE #deleted, #expires%r',%r%#,'ExpressionAttributeValues':{':zero':{'N':'0'},':one':{'N':'1'},"
        "':data':%J,':now':%S%r%r},'ReturnValues':'UPDATED_NEW',%O}",
        &documents, flow_text(flow, COLLECTION), flow_text(flow, KEY),
        has_token ? SLICE(", #token = :token, #sent = :sent") : SLICE(""),
        has_token ? SLICE("") : SLICE(", #token, #sent"), condition, data,
        moment_text(flow->arena, flow->now_ms), token, values);
}

/* The item is what this very call has written before, and its reply was lost. */
static bool is_own(struct flow *flow, struct slice item, unsigned token_field)
{
    return flow_given(flow, token_field) && is_there(flow, item) &&
           slice_equal(item_text(flow->arena, item, "token"), flow_text(flow, token_field));
}

static void tell_again(struct flow *flow, struct slice item)
{
    if (slice_equal(item_text(flow->arena, item, "sent"), token_digest(flow, flow->request->body)))
        tell_written(flow, version_of(flow, item));
    else
        token_refuse(flow);
}

static void put_done(struct flow *flow)
{
    struct slice item = flow_item(flow);
    if (!flow_failed(flow))
        tell_written(flow, version_of(flow, item));
    else if (is_own(flow, item, PUT_TOKEN))
        tell_again(flow, item);
    else
        refuse_mismatch(flow, item);
}

static void put_begin(struct flow *flow)
{
    struct slice values, condition = put_condition(flow, &values);
    if (flow_given(flow, PUT_IF_NONE_MATCH) && !slice_equal(flow_text(flow, PUT_IF_NONE_MATCH), SLICE("*")))
        flow_refuse(flow, 400, "bad-request", "If-None-Match of a PUT can only be *.");
    else
        write_document(flow, put_done, flow_text(flow, PUT_DATA), condition, values, PUT_TOKEN);
}

/* ---- PATCH ---- */

enum { PATCH_IF_MATCH = KEY + 1, PATCH_TOKEN, PATCH_DATA };

static const struct field patch_fields[] = {
    FIELD_COLLECTION,
    FIELD_KEY,
    [PATCH_IF_MATCH] = {"If-Match", IN_HEADER, FIELD_NAME,
                        .help = "the version that is changed, a list of such, or *"},
    [PATCH_TOKEN] = {"Idempotency-Key", IN_HEADER, FIELD_NAME,
                     .help = "a repeat of the last write writes nothing"},
    [PATCH_DATA] = {"patch", WHOLE_BODY, FIELD_JSON, true, .help = "a merge patch: null removes a member"},
};

struct patch {
    struct slice item; /* as it was seen */
};

static flow_step patch_apply, patch_done;

/* Decides by an image of the document: it is refused, done already, or patched. */
static void patch_decide(struct flow *flow, struct slice item, bool again)
{
    struct patch *patch = flow->state;
    struct etag match = etag_read(flow, PATCH_IF_MATCH, false);
    patch->item = item;
    if (is_own(flow, item, PATCH_TOKEN))
        tell_again(flow, item);
    else if (match.kind == ETAG_VERSIONS &&
             (!is_there(flow, item) || !etag_has(&match, version_of(flow, item))))
        refuse_mismatch(flow, item);
    else if (!is_there(flow, item))
        refuse_missing(flow);
    else if (again)
        flow_again(flow, patch_apply);
    else
        patch_apply(flow);
}

static void patch_read(struct flow *flow)
{
    patch_decide(flow, flow_item(flow), false);
}

static void patch_begin(struct flow *flow)
{
    flow->state = arena_new(flow->arena, struct patch);
    ask_item(flow, patch_read);
}

static void patch_apply(struct flow *flow)
{
    struct patch *patch = flow->state;
    struct slice old = flow_compose(flow, "%P", item_attribute(flow->arena, patch->item, "data"));
    struct slice data = merge_patch(flow->arena, old, flow_text(flow, PATCH_DATA));
    const char *fault = plain_fault(flow->arena, data);
    if (fault) {
        flow_refuse(flow, 400, "bad-request", "The patched document cannot be stored: %s.", fault);
        return;
    }
    write_document(flow, patch_done, data,
                   SLICE("\"ConditionExpression\":\"#version = :seen and attribute_not_exists(#deleted)\","),
                   flow_compose(flow, ",':seen':%N", version_of(flow, patch->item)), PATCH_TOKEN);
}

static void patch_done(struct flow *flow)
{
    if (flow_failed(flow))
        patch_decide(flow, flow_item(flow), true);
    else
        tell_written(flow, version_of(flow, flow_item(flow)));
}

/* ---- DELETE ---- */

enum { DELETE_IF_MATCH = KEY + 1 };

static const struct field delete_fields[] = {
    FIELD_COLLECTION,
    FIELD_KEY,
    [DELETE_IF_MATCH] = {"If-Match", IN_HEADER, FIELD_NAME,
                         .help = "the version that is deleted, a list of such, or *"},
};

static void delete_done(struct flow *flow)
{
    struct slice item = flow_item(flow);
    bool wants_version = etag_read(flow, DELETE_IF_MATCH, false).kind == ETAG_VERSIONS;
    if (!flow_failed(flow)) {
        flow_wake(flow, topic_of(flow));
        flow_answer(flow, 200, "{'deleted':true,'version':%d}", version_of(flow, item));
    } else if (wants_version && is_there(flow, item)) {
        refuse_mismatch(flow, item);
    } else {
        refuse_missing(flow);
    }
}

static void delete_begin(struct flow *flow)
{
    struct etag match = etag_read(flow, DELETE_IF_MATCH, false);
    struct slice values = SLICE(""), condition = SLICE("");
    if (match.kind == ETAG_VERSIONS)
        condition = flow_compose(flow, " and %r", etag_condition(flow, &match, &values));
    flow_call(
        flow, delete_done, "UpdateItem",
        "{'TableName':%T,'Key':{'collection':%S,'key':%S},"
        "'UpdateExpression':'SET #version = #version + :one, #deleted = :true, #changed = :now, #expires = "
        ":expires REMOVE #data, #token','ConditionExpression':'attribute_exists(#version) and "
        "attribute_not_exists(#deleted)%r',%#,'ExpressionAttributeValues':{':one':{'N':'1'},"
        "':true':{'BOOL':true},':now':%S,':expires':%N%r},'ReturnValues':'UPDATED_NEW',%O}",
        &documents, flow_text(flow, COLLECTION), flow_text(flow, KEY), condition,
        moment_text(flow->arena, flow->now_ms), flow->now_ms / 1000 + TOMBSTONE_S, values);
}

/* ---- the documents of a collection ---- */

enum { LIST_COLLECTION, LIST_LIMIT, LIST_AFTER };

static const struct field list_fields[] = {
    [LIST_COLLECTION] = FIELD_COLLECTION,
    [LIST_LIMIT] = {"limit", IN_QUERY, FIELD_INT, .min = 1, .max = LIST_MOST,
                    .help = "at most so many (default: 100)"},
    [LIST_AFTER] = {"after", IN_QUERY, FIELD_NAME, .max = 1024, .help = "the \"next\" of the page before"},
};

static void list_taken(struct flow *flow)
{
    struct raw_look look;
    struct slice item, last = flow_last_key(flow);
    bool first = true;
    raw_look_begin(&look, flow->arena, flow_items(flow));
    buf_text(flow->body, "{\"documents\":[");
    while (raw_look_next(&look, NULL, &item)) {
        buf_slice(flow->body, first ? SLICE("") : SLICE(","));
        first = false;
        buf_slice(flow->body,
                  flow_compose(flow, "{'key':%s,'version':%d,'data':%P}", item_text(flow->arena, item, "key"),
                               version_of(flow, item), item_attribute(flow->arena, item, "data")));
    }
    buf_text(flow->body, "]");
    if (last.data)
        buf_slice(flow->body, flow_compose(flow, ",'next':%s", item_text(flow->arena, last, "key")));
    buf_text(flow->body, "}");
    flow_finish(flow, 200);
}

static void list_begin(struct flow *flow)
{
    struct slice collection = flow_text(flow, LIST_COLLECTION), start = SLICE("");
    if (flow_given(flow, LIST_AFTER))
        start = flow_compose(flow, ",'ExclusiveStartKey':{'collection':%S,'key':%S}", collection,
                             flow_text(flow, LIST_AFTER));
    flow_call(flow, list_taken, "Query",
              "{'TableName':%T,'KeyConditionExpression':'#collection = :collection',"
              "'FilterExpression':'attribute_not_exists(#deleted)',%#,"
              "'ExpressionAttributeValues':{':collection':%S},'Limit':%d,'ConsistentRead':true%r}",
              &documents, collection, flow_int_or(flow, LIST_LIMIT, LIST_USUAL), start);
}

/* ---- rows ---- */

/* clang-format off */
const struct flow_row document_rows[] = {
    {"GET", "/v1/documents/{collection}/{key}", get_begin, "A document; its ETag is its version.", FIELDS(get_fields),
     "{'any':'JSON'}", "doc get -> *"},
    {"PUT", "/v1/documents/{collection}/{key}", put_begin, "Writes a document.", FIELDS(put_fields), "{'version':7}",
     "doc put document? -> version"},
    {"PATCH", "/v1/documents/{collection}/{key}", patch_begin, "Changes members of a document.", FIELDS(patch_fields),
     "{'version':8}", "doc patch patch? -> version"},
    {"DELETE", "/v1/documents/{collection}/{key}", delete_begin, "Deletes a document.", FIELDS(delete_fields),
     "{'deleted':true,'version':9}", "doc rm"},
    {"GET", "/v1/documents/{collection}", list_begin, "The documents of a collection, by key.", FIELDS(list_fields),
     "{'documents':[{'key':'a','version':7,'data':{'any':'JSON'}}],'next':'a'}", "doc ls -> documents"},
};
/* clang-format on */
ROW_COUNT(document);
