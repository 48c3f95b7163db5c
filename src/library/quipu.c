/* Opening, closing, calling: the library's functions over the one door. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "library/internal.h"

void text_set(struct buf *buf, struct slice text)
{
    buf->len = 0;
    buf_slice(buf, text);
    buf_byte(buf, '\0');
    buf->len--;
}

const char *quipu_version(void)
{
    return QUIPU_VERSION;
}

/* A program built against an older header gives a shorter struct. */
static struct quipu_options options_of(const struct quipu_options *given)
{
    struct quipu_options options = QUIPU_OPTIONS;
    if (given) memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
    return options;
}

static struct dynamo_options door_of(const struct quipu_options *options)
{
    return (struct dynamo_options){.region = options->region,
                                   .cache_bytes = options->cache_bytes,
                                   .must_exist = options->must_exist != 0,
                                   .read_only = options->read_only != 0,
                                   .unsynced = options->unsynced != 0,
                                   .access_key = options->access_key,
                                   .secret_key = options->secret_key,
                                   .session_token = options->session_token,
                                   .profile = options->profile,
                                   .ca_file = options->ca_file,
                                   .prefix = options->prefix,
                                   .attempts = options->attempts,
                                   .in_flight = options->in_flight,
                                   .connect_ms = options->connect_ms,
                                   .attempt_ms = options->attempt_ms};
}

struct quipu *quipu_open(const char *where, const struct quipu_options *options, char *error,
                         size_t error_len)
{
    if (options && options->size < sizeof options->size) {
        snprintf(error, error_len, "the options do not tell their size: begin with QUIPU_OPTIONS");
        return NULL;
    }
    struct quipu_options all = options_of(options);
    if (all.prefix && !pattern_prefix_is_fit(all.prefix)) {
        snprintf(error, error_len, PATTERN_PREFIX_RULE);
        return NULL;
    }
    struct dynamo_options door = door_of(&all);
    struct dynamo *dynamo = dynamo_open(where, &door, error, error_len);
    if (!dynamo) return NULL;
    struct quipu *db = must_zero(1, sizeof *db);
    db->dynamo = dynamo;
    db->pattern = pattern_open(&(struct pattern_options){.dynamo = dynamo,
                                                         .prefix = all.prefix,
                                                         .sweeps = all.sweeps && !all.read_only});
    return db;
}

void quipu_close(struct quipu *db)
{
    if (!db) return;
    pattern_close(db->pattern);
    dynamo_close(db->dynamo);
    free(db);
}

/* ---- calls ---- */

static void name_error(struct owned_reply *owned)
{
    struct slice name, message;
    dynamo_error(buf_view(&owned->json), &owned->arena, &name, &message);
    if (!name.len) name = SLICE("UnknownError");
    owned->reply.error = arena_copy(&owned->arena, name).data;
    owned->reply.message = arena_copy(&owned->arena, message).data;
}

void library_show_json(struct owned_reply *owned)
{
    buf_byte(&owned->json, '\0');
    owned->json.len--;
    owned->reply.json = owned->json.data;
    owned->reply.json_len = owned->json.len;
}

struct quipu_reply *library_call(struct quipu *db, struct slice operation, struct slice request)
{
    struct owned_reply *owned = must_zero(1, sizeof *owned);
    owned->reply.status = dynamo_call(db->dynamo, operation, request, &owned->json);
    owned->reply.message = owned->reply.headers = "";
    if (owned->reply.status != 200) name_error(owned);
    library_show_json(owned);
    return &owned->reply;
}

struct slice library_json(const struct quipu_reply *reply)
{
    return (struct slice){reply->json, reply->json_len};
}

struct quipu_reply *library_bad_reply(struct quipu_reply *reply, const char *what)
{
    struct owned_reply *owned = (struct owned_reply *)reply;
    owned->json.len = 0;
    buf_text(&owned->json, "{\"__type\":\"BadReplyException\",\"message\":");
    json_put_string(&owned->json, slice_of(what));
    buf_byte(&owned->json, '}');
    owned->reply.status = 502;
    name_error(owned);
    library_show_json(owned);
    return reply;
}

struct quipu_reply *quipu_call(struct quipu *db, const char *operation, const char *request)
{
    return library_call(db, slice_of(operation), slice_of(request));
}

void quipu_reply_free(struct quipu_reply *reply)
{
    if (!reply) return;
    struct owned_reply *owned = (struct owned_reply *)reply;
    buf_free(&owned->json);
    arena_free(&owned->arena);
    free(owned);
}
