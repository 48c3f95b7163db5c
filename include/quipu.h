/* quipu.h: a DynamoDB-compatible database inside your program, or the way to one elsewhere.
 *
 *     #include <quipu.h>                       cc app.c $(pkg-config --cflags --libs quipu)
 *
 *     char error[QUIPU_ERROR_BYTES];
 *     struct quipu *db = quipu_open("./data", NULL, error, sizeof error);
 *     if (!db) ... puts(error) ...
 *     struct quipu_reply *reply = quipu_call(db, "GetItem", "{\"TableName\":\"Music\",\"Key\":{...}}");
 *     puts(reply->error ? reply->message : reply->json);
 *     quipu_reply_free(reply);
 *     quipu_close(db);
 *
 * There is one way to data: the name of an operation of DynamoDB's API and a request in its JSON go in, a
 * reply in its JSON comes out. What is behind it is chosen by quipu_open: a folder (the whole database runs
 * in this process, as SQLite does), memory, or the URL of Amazon DynamoDB, ScyllaDB Alternator, DynamoDB
 * Local or a Quipu server. On top of calls there are two helpers for what takes many of them: quipu_pages
 * walks through all pages of a Query or Scan, quipu_stream follows the changes of a table.
 *
 * Errors. quipu_open and quipu_stream_open answer NULL and put one sentence into the caller's buffer. A call
 * always answers a reply; when it went wrong, the reply names the service's exception
 * ("ConditionalCheckFailedException") and its message. Out of memory ends the program.
 *
 * Memory. What a function returns belongs to the caller until it is handed to the function that frees or
 * closes it. What an item or a record points at lives until the next call on the same quipu_pages or
 * quipu_stream. Texts that are passed in are copied or no longer needed when the function returns. All texts
 * are UTF-8 and end in a zero byte.
 *
 * Threads. A `struct quipu` may be used by any number of threads at the same time; calls of different threads
 * run side by side, and embedded writes that wait at the same time share one sync of the disk. A reply, a
 * quipu_pages and a quipu_stream belong to one thread at a time (but for quipu_stream_wake). Close all pages
 * and streams, and let all calls end, before quipu_close. A database must not be used in a child after
 * fork().
 *
 * Durability. A reply to an embedded write means that it is on disk, unless `unsynced` was asked for. A
 * folder is used by one process at a time; a second one is told so by quipu_open.
 *
 * The manual page is quipu(3); examples/embed.c is a program to begin with. */
#ifndef QUIPU_H
#define QUIPU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUIPU_VERSION     "0.1.0"
#define QUIPU_ERROR_BYTES 700 /* room for any sentence of quipu_open and quipu_stream_open */

/* The version of the library that runs, which may be newer than QUIPU_VERSION. */
const char *quipu_version(void);

/* ---- opening and closing ---- */

struct quipu;

/* Begin with `struct quipu_options options = QUIPU_OPTIONS;` and set what should differ: zero is always the
 * default. */
struct quipu_options {
    size_t size; /* of this struct, so that it can grow: QUIPU_OPTIONS sets it */

    /* The region in ARNs and signatures. NULL: that of an AWS endpoint's name, else AWS_REGION,
     * AWS_DEFAULT_REGION, the profile's in ~/.aws/config, and us-east-1. */
    const char *region;

    /* ---- for a folder or memory ---- */

    uint64_t cache_bytes; /* memory for hot items; 0: 64 MB */
    int must_exist;       /* not 0: a missing folder is an error; 0: it is made */
    int unsynced; /* not 0: replies do not wait for the disk. What was answered survives a crash of the
                   * process, but not one of the machine */

    /* ---- for a URL ---- */

    /* Keys. NULL: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, else the profile's in
     * AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials) and AWS_CONFIG_FILE (~/.aws/config). Files are read
     * again when keys have expired. An endpoint that is not Amazon's is also called without any keys. */
    const char *access_key, *secret_key, *session_token;
    const char *profile; /* NULL: AWS_PROFILE, else "default" */
    const char *ca_file; /* certificates to trust, PEM; NULL: AWS_CA_BUNDLE, else the system's */
    uint32_t attempts;   /* of a call, at most: throttling, 5xx and faults of the connection are tried again
                          * with growing, random pauses; 0: 10 */
    uint32_t in_flight;  /* calls on the wire at the same time; more wait; 0: 64, at most 1024 */
    uint32_t connect_ms; /* time-out of connecting; 0: 5000 */
    uint32_t attempt_ms; /* time-out of an attempt; 0: 60000 */

    /* ---- for patterns ---- */

    const char *prefix; /* of the names of their tables; NULL: "quipu-" */
};

/* clang-format off */
#define QUIPU_OPTIONS {.size = sizeof(struct quipu_options)}
/* clang-format on */

/* Opens `where`: a folder, ":memory:" (gone when closed), or "http://host:port" or "https://...". options may
 * be NULL. On failure NULL, and a sentence in error. A URL is not tried before the first call. */
struct quipu *quipu_open(const char *where, const struct quipu_options *options, char *error,
                         size_t error_len);
/* Syncs and closes; NULL is allowed. */
void quipu_close(struct quipu *db);

/* ---- calls ---- */

struct quipu_reply {
    int status; /* of HTTP: 200; 400, 500, ... for errors; 0: no reply came */

    /* NULL when all went well; else the exception's name without its namespace. Besides the service's there
     * are NoReplyException (nobody answered in all attempts: a write may have happened or not) and
     * BadReplyException (what answered is no DynamoDB). */
    const char *error;
    const char *message; /* of the error, never NULL; "" when all went well */
    const char *json;    /* the whole reply, an error's too */
    size_t json_len;

    /* Of patterns: the version of a document, without quotes; NULL: none was told. */
    const char *etag;
    /* Of patterns: what HTTP would tell besides (ETag, Quipu-Cost, Retry-After), lines "Name: value\n"; "". */
    const char *headers;
};

/* Calls an operation of DynamoDB ("PutItem") or DynamoDB Streams ("GetRecords") with a request in DynamoDB's
 * JSON, and waits. Never NULL; free it with quipu_reply_free. */
struct quipu_reply *quipu_call(struct quipu *db, const char *operation, const char *request);
void quipu_reply_free(struct quipu_reply *reply); /* NULL is allowed */

/* ---- patterns ---- */

/* Calls a pattern by the method and the path of its HTTP route ("POST", "/v1/counters/orders?cost=1"), and
 * waits. All of it runs in this process; behind a URL, only the calls of DynamoDB's API that it makes go
 * there. Names in the path are percent-encoded. headers: NULL, or lines "If-Match: \"7\"\nIdempotency-Key:
 * x"; body: NULL, or what the route takes, mostly JSON. Routes that answer in pieces are answered when they
 * have ended. In the reply, error is a pattern's own code ("no-such-job"). Never NULL. */
struct quipu_reply *quipu_pattern(struct quipu *db, const char *method, const char *path, const char *headers,
                                  const char *body);

/* What the iterators below answer. */
enum quipu_result {
    QUIPU_FAILED = -1, /* see quipu_pages_reply, quipu_stream_reply */
    QUIPU_NONE = 0,    /* pages: that was all. streams: nothing new within the time given */
    QUIPU_FOUND = 1,
    QUIPU_ENDED = 2 /* streams: it was switched off, and everything in it was read */
};

/* ---- pages ---- */

/* One by one what a listing operation answers, page after page: Query, Scan and ExecuteStatement (items),
 * ListTables (names), ListStreams, ListTagsOfResource, ListBackups, ListGlobalTables,
 * ListContributorInsights, ListExports and ListImports (their entries). The request is that of the operation;
 * a Limit in it is the size of a page, as on the service, not of the whole. A page is fetched when the one
 * before it is used up. */
struct quipu_pages;

/* Nothing is called yet. NULL only when the operation is none of those above. */
struct quipu_pages *quipu_pages_open(struct quipu *db, const char *operation, const char *request);
/* The next one as JSON: an item is {"name":{"S":"..."},...}, a table's name "...". QUIPU_FOUND, QUIPU_NONE or
 * QUIPU_FAILED; after a failure that may pass (NoReplyException, throttling) it may be called again and goes
 * on where it was. *json_len may be NULL. */
enum quipu_result quipu_pages_next(struct quipu_pages *pages, const char **json, size_t *json_len);
/* The newest page's reply, for its error, Count or ConsumedCapacity; NULL before the first. Lives until the
 * next page. */
const struct quipu_reply *quipu_pages_reply(const struct quipu_pages *pages);
/* For whoever wants whole pages, or only counts them: fetches the next page, whatever is left of this one.
 * QUIPU_FOUND: quipu_pages_reply has it; QUIPU_NONE: there is no other; QUIPU_FAILED as above. */
enum quipu_result quipu_pages_turn(struct quipu_pages *pages);
/* Where it stands, as the ExclusiveStartKey (NextToken, ...) of the page to come: JSON, NULL before the first
 * and after the last. */
const char *quipu_pages_position(const struct quipu_pages *pages);
void quipu_pages_close(struct quipu_pages *pages); /* NULL is allowed */

/* ---- streams ---- */

/* All changes of a table, from all shards of its stream. Changes of the same item come in the order in which
 * they were made: a shard is read after the one that it continues. New shards are found by themselves.
 *
 * Each record comes once. With one exception: when a stream that was opened at QUIPU_LATEST is left alone for
 * 15 minutes before the first record of a shard, the service forgets where that was; up to five minutes from
 * before the opening may then come too. */
struct quipu_stream;

enum quipu_stream_start {
    QUIPU_OLDEST, /* TRIM_HORIZON: from the oldest record that is kept (24 hours) */
    QUIPU_LATEST  /* LATEST: what is written after quipu_stream_open has returned */
};

/* A record of the stream; its texts live until the next call on the stream. */
struct quipu_record {
    /* As in GetRecords: {"eventName":"INSERT","dynamodb":{"Keys":{...},"NewImage":{...},...},...} */
    const char *json;
    size_t json_len;
    const char *event;    /* "INSERT", "MODIFY" or "REMOVE" */
    const char *sequence; /* number of the record, decimal digits */
    const char *shard;    /* id of its shard */
};

/* `what` is a table's name, whose newest stream it is, or a stream's ARN. NULL and a sentence when there is
 * no such stream. */
struct quipu_stream *quipu_stream_open(struct quipu *db, const char *what, enum quipu_stream_start start,
                                       char *error, size_t error_len);
/* The next record. Waits for one up to wait_ms (0: not at all; negative: for ever). Embedded, the waiting
 * ends with the commit of the change and costs nothing meanwhile; over a URL the shards are asked again in
 * short, growing pauses, at most four times a second each. QUIPU_FOUND, QUIPU_NONE, QUIPU_ENDED or
 * QUIPU_FAILED; after a failure that may pass it may be called again. When records were trimmed before they
 * were read, it fails with TrimmedDataAccessException: some are lost, begin anew. */
enum quipu_result quipu_stream_next(struct quipu_stream *stream, int wait_ms, struct quipu_record *record);
/* From any thread: lets a waiting quipu_stream_next answer QUIPU_NONE at once, or the next one when none
 * waits. */
void quipu_stream_wake(struct quipu_stream *stream);
/* The reply that made quipu_stream_next fail; NULL when none did. */
const struct quipu_reply *quipu_stream_reply(const struct quipu_stream *stream);
void quipu_stream_close(struct quipu_stream *stream); /* NULL is allowed */

#ifdef __cplusplus
}
#endif

#endif
