/* Beginning a job once, finding it by its ARN, and listing jobs. */
#include "api/background.h"

#include "base/fail.h"
#include "base/hash.h"
#include "base/raw.h"

#define LIST_DEFAULT 10
#define TOKEN_BYTES  112 /* a NextToken has at least so many hexadecimal digits, and a multiple of 16 */

/* ---- shapes ---- */

static bool is_word_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_bucket_name(struct slice text)
{
    if (text.len < 2 || !is_word_byte(text.data[0]) || !is_word_byte(text.data[text.len - 1])) return false;
    for (size_t i = 0; i < text.len; i++)
        if (!is_word_byte(text.data[i]) && !memchr(".-_", text.data[i], 3)) return false;
    return true;
}

static bool is_owner(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] < '0' || text.data[i] > '9') return false;
    return text.len == 12;
}

static bool is_token(struct slice text)
{
    return text.len && !memchr(text.data, '$', text.len);
}

/* Names of files end at a NUL, and so would a key: what is below it would be written elsewhere. */
static bool is_output_prefix(struct slice text)
{
    return !memchr(text.data, 0, text.len);
}

static const char *const algorithms[] = {"AES256", "KMS", NULL};
static const char *const compressions[] = {"GZIP", "ZSTD", "NONE", NULL};
const struct shape shape_bucket = {.kind = SHAPE_STRING,
                                   .has_max = true,
                                   .max = 255,
                                   .pattern = "^[a-z0-9A-Z]+[\\.\\-\\w]*[a-z0-9A-Z]+$",
                                   .matches = is_bucket_name};
const struct shape shape_bucket_owner = {.kind = SHAPE_STRING, .pattern = "[0-9]{12}", .matches = is_owner};
const struct shape shape_key_prefix = {.kind = SHAPE_STRING, .has_max = true, .max = LIMIT_BUCKET_KEY_BYTES};
const struct shape shape_output_prefix = {.kind = SHAPE_STRING,
                                          .has_max = true,
                                          .max = LIMIT_BUCKET_KEY_BYTES,
                                          .pattern = "[^\\x00]*",
                                          .matches = is_output_prefix};
const struct shape shape_sse_algorithm = ENUM_SHAPE(algorithms);
const struct shape shape_sse_key = STRING_SHAPE_SIZED(1, 2048);
const struct shape shape_client_token = {.kind = SHAPE_STRING, .pattern = "^[^\\$]+$", .matches = is_token};
const struct shape shape_job_arn = STRING_SHAPE_SIZED(37, 1024);
const struct shape shape_compression = ENUM_SHAPE(compressions);
const struct shape shape_list_size = {
    .kind = SHAPE_INT, .has_min = true, .min = 1, .has_max = true, .max = 25};

/* ---- requests ---- */

struct slice background_request(struct api_call *call, const char *const *names)
{
    struct buf out = {0};
    buf_byte(&out, '{');
    for (; *names; names++) {
        struct slice raw = raw_member(call->arena, call->body, *names);
        if (!raw.len || raw_kind(raw) == JSON_NULL) continue;
        if (out.len > 1) buf_byte(&out, ',');
        buf_printf(&out, "\"%s\":%.*s", *names, SLICE_ARG(raw));
    }
    buf_byte(&out, '}');
    return arena_take(call->arena, &out);
}

void put_request_member(struct buf *out, struct arena *arena, const struct api_job *job, const char *name)
{
    struct slice raw = raw_member(arena, job->request, name);
    if (raw.len) buf_printf(out, ",\"%s\":%.*s", name, SLICE_ARG(raw));
}

void put_request_word(struct buf *out, struct arena *arena, const struct api_job *job, const char *name,
                      const char *otherwise)
{
    struct slice raw = raw_member(arena, job->request, name);
    if (raw.len)
        buf_printf(out, ",\"%s\":%.*s", name, SLICE_ARG(raw));
    else
        put_text(out, name, slice_of(otherwise));
}

void put_job_failure(struct buf *out, const struct api_job *job)
{
    if (!job->failure_code.len) return;
    put_text(out, "FailureCode", job->failure_code);
    put_text(out, "FailureMessage", job->failure_message);
}

/* ---- beginning one ---- */

/* What a token was given for, {job, hash, since_ms}: a repeat within hours is the same job. */
static bool token_is_known(struct background_start *start, struct batch *batch, struct slice kind,
                           int64_t hash)
{
    struct api_job *job = &start->job;
    struct arena *arena = start->verdict.arena;
    struct map note;
    if (!start->has_token || !engine_note_in_batch(batch, arena, kind, job->token, &note)) return false;
    if (job->start_ms - map_integer(&note, "since_ms") > LIMIT_TRANSFER_TOKEN_MS) return false;
    if (map_integer(&note, "hash") != hash) {
        reject_as(&start->verdict, start->conflict, "%s", start->conflict_words);
        return true;
    }
    return api_job_in_batch(batch, arena, job->kind, map_text(&note, "job"), job);
}

static void start_apply(struct commit *commit, struct batch *batch)
{
    struct api_call *call = call_of_commit(commit);
    struct background_start *start = call->state;
    struct api_job *job = &start->job;
    struct arena *arena = start->verdict.arena;
    struct slice kind = arena_printf(arena, BACKGROUND_TOKEN "%.*s",
                                     SLICE_ARG(background_kind_name(job->kind)));
    int64_t hash = (int64_t)(hash_bytes(job->request) >> 1);
    if (token_is_known(start, batch, kind, hash) || !start->check(start, batch)) return;
    if (background_count(call->api->engine, arena) >= LIMIT_TRANSFER_JOBS) {
        reject_as(&start->verdict, "LimitExceededException",
                  "Subscriber limit exceeded: at most %d exports, imports and bulk operations at a time",
                  LIMIT_TRANSFER_JOBS);
        return;
    }
    struct map note = {0};
    map_put(arena, &note, SLICE("job"), text_value(job->id));
    map_put(arena, &note, SLICE("hash"), integer_value(arena, hash));
    map_put(arena, &note, SLICE("since_ms"), integer_value(arena, job->start_ms));
    if (!api_job_put(batch, arena, job) ||
        (start->has_token && !engine_note_put(batch, arena, kind, job->token, &note)))
        reject_as(&start->verdict, "LimitExceededException", "There are too many tables to note the job");
}

void background_submit(struct api_call *call, const struct node *token, struct background_start *start)
{
    struct api_job *job = &start->job;
    struct engine *engine = call->api->engine;
    struct slice id = engine_new_id(engine, call->arena);
    job->start_ms = engine_now_ms(engine);
    job->id = arena_printf(call->arena, "0%013lld-%.8s", (long long)job->start_ms, id.data);
    job->token = token->present ? token->text : engine_new_id(engine, call->arena);
    job->status = SLICE("IN_PROGRESS");
    start->has_token = token->present;
    start->verdict.arena = call->arena;
    start->api = call->api;
    call->state = start;
    call->commit.apply = start_apply;
    call->is_write = true;
}

const struct api_job *background_finish(struct api_call *call)
{
    struct background_start *start = call->state;
    return verdict_tell(call, &start->verdict) ? &start->job : NULL;
}

/* ---- finding one ---- */

bool background_by_arn(struct api_call *call, struct slice arn, const struct background_words *words,
                       struct api_job *out)
{
    struct slice rest = arn, region;
    if (!slice_starts(arn, SLICE("arn:aws:dynamodb:"))) return invalid(call, "%s", words->invalid);
    for (int i = 0; i < 3; i++) slice_cut(&rest, ':');
    region = slice_cut(&rest, ':');
    slice_cut(&rest, ':');
    struct slice type = slice_cut(&rest, '/'), table = slice_cut(&rest, '/'), kind = slice_cut(&rest, '/');
    if (!slice_equal(type, SLICE("table")) || !table.len ||
        !slice_equal(kind, background_kind_name(words->kind)) || !rest.len)
        return invalid(call, "%s", words->invalid);
    bool is_here = slice_equal(region, call->api->region);
    if (!is_here && words->elsewhere) return refuse(call, words->not_found, "%s", words->elsewhere);
    if (is_here &&
        api_job_find(call->api->engine, call->arena, words->kind, rest, out) &&
        slice_equal(out->table, table))
        return true;
    return refuse(call, words->not_found, "%s%.*s", words->missing, SLICE_ARG(arn));
}

/* ---- listing ---- */

static bool list_one(void *context, struct slice id, const struct map *fields)
{
    struct background_list *list = context;
    struct api_job job;
    background_read(fields, list->kind, id, &job);
    if (list->table.len && !slice_equal(list->table, job.table)) return true;
    if (list->wants && !list->wants(list, &job)) return true;
    list->more = list->count == list->limit;
    if (list->more) return false;
    if (list->count++) buf_byte(list->call->reply, ',');
    list->put(list, &job);
    list->last = id;
    return true;
}

/* A NextToken is the id of the last job of the page, in hexadecimal digits, and zeros. */
static bool read_token(struct api_call *call, const struct node *token, struct slice *id)
{
    static const char digits[] = "0123456789abcdef";
    *id = SLICE_NONE;
    if (!token->present) return true;
    struct slice text = token->text;
    char *out = arena_alloc(call->arena, text.len / 2 + 1);
    bool fine = text.len >= TOKEN_BYTES && text.len % 16 == 0 && text.len <= 1024;
    for (size_t i = 0; fine && i + 1 < text.len; i += 2) {
        const char *high = text.data[i] ? strchr(digits, text.data[i]) : NULL,
                   *low = text.data[i + 1] ? strchr(digits, text.data[i + 1]) : NULL;
        fine = high && low;
        if (fine) out[i / 2] = (char)((high - digits) << 4 | (low - digits));
    }
    size_t len = text.len / 2;
    while (fine && len && !out[len - 1]) len--;
    if (!fine || !len)
        return invalid(call, "Invalid Request: Provided nextToken is invalid: %.*s", SLICE_ARG(text));
    *id = (struct slice){out, len};
    return true;
}

static void put_token(struct buf *out, struct slice id)
{
    size_t digits = 0;
    buf_text(out, ",\"NextToken\":\"");
    for (size_t i = 0; i < id.len; i++, digits += 2) buf_printf(out, "%02x", (unsigned char)id.data[i]);
    for (; digits < TOKEN_BYTES || digits % 16; digits++) buf_byte(out, '0');
    buf_byte(out, '"');
}

void background_list_put(struct background_list *list, const char *member, const struct node *size,
                         const struct node *token)
{
    struct api_call *call = list->call;
    struct slice before;
    if (!read_token(call, token, &before)) return;
    list->limit = size->present ? size->integer : LIST_DEFAULT;
    buf_printf(call->reply, "{\"%s\":[", member);
    if (engine_notes(call->api->engine, call->arena, background_kind_name(list->kind), before, list_one,
                     list) != ENGINE_OK) {
        refuse(call, "InternalServerError", "Internal server error");
        return;
    }
    buf_byte(call->reply, ']');
    if (list->more) put_token(call->reply, list->last);
    buf_byte(call->reply, '}');
}
