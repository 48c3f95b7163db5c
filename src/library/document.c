/* Documents: versions go as ETag, If-Match and If-None-Match, as over HTTP. */
#include <inttypes.h>
#include <stdio.h>

#include "library/ask.h"

#define NOT_THERE 0

/* The version in the reply: of its header, or of a refusal's body. */
static void version_told(struct ask *ask, int64_t *version)
{
    const char *etag = ask->reply->etag;
    if (!version) return;
    if (etag)
        *version = part_number(slice_of(etag), NOT_THERE);
    else
        told_int(ask, "version", NOT_THERE, version);
}

static void ask_version(struct ask *ask, const char *header, int64_t version)
{
    char text[40];
    snprintf(text, sizeof text, "\"%" PRId64 "\"", version);
    ask_header(ask, header, text);
}

/* What a write may replace. */
static void ask_seen(struct ask *ask, int64_t seen)
{
    if (seen == NOT_THERE)
        ask_header(ask, "If-None-Match", "*");
    else if (seen != QUIPU_ANY)
        ask_version(ask, "If-Match", seen);
}

static bool document_is_over(struct ask *ask)
{
    return ask->result != QUIPU_NONE && ask->result != QUIPU_MISSING;
}

static enum quipu_result document_end(struct ask *ask, int64_t *version)
{
    if (ask->result != QUIPU_FAILED) version_told(ask, version);
    return ask_end(ask);
}

enum quipu_result quipu_document_get(struct quipu *db, const char *collection, const char *key,
                                     int64_t *version, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "GET", "/v1/documents/*/*", collection, key);
    ask_run(&ask);
    return document_end(&ask, version);
}

enum quipu_result quipu_document_wait(struct quipu *db, const char *collection, const char *key, int64_t seen,
                                      int64_t wait_ms, int64_t *version, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "GET", "/v1/documents/*/*", collection, key);
    if (seen > NOT_THERE) ask_version(&ask, "If-None-Match", seen);
    ask_run_waiting(&ask, wait_ms, true, document_is_over);
    return document_end(&ask, version);
}

enum quipu_result quipu_document_put(struct quipu *db, const char *collection, const char *key,
                                     const char *json, int64_t seen, int64_t *version,
                                     struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "PUT", "/v1/documents/*/*", collection, key);
    ask_seen(&ask, seen);
    ask_whole(&ask, json);
    ask_run(&ask);
    return document_end(&ask, version);
}

enum quipu_result quipu_document_patch(struct quipu *db, const char *collection, const char *key,
                                       const char *patch, int64_t seen, int64_t *version,
                                       struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "PATCH", "/v1/documents/*/*", collection, key);
    if (seen == NOT_THERE) ask.fault = "There is nothing to patch where no document has been seen.";
    ask_seen(&ask, seen);
    ask_whole(&ask, patch);
    ask_run(&ask);
    return document_end(&ask, version);
}

enum quipu_result quipu_document_delete(struct quipu *db, const char *collection, const char *key,
                                        int64_t seen, int64_t *version, struct quipu_reply **reply)
{
    struct ask ask;
    ask_begin(&ask, db, reply, "DELETE", "/v1/documents/*/*", collection, key);
    if (seen == NOT_THERE) ask.fault = "There is nothing to delete where no document has been seen.";
    ask_seen(&ask, seen);
    ask_run(&ask);
    return document_end(&ask, version);
}

struct quipu_pages *quipu_document_list(struct quipu *db, const char *collection)
{
    return ask_list(db, "/v1/documents/*", collection);
}
