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
 * in this process, as SQLite does), memory, or the URL of Amazon DynamoDB, DynamoDB Local, ScyllaDB
 * Alternator (which has no transactions: there histories and a `then` answer 501,
 * not-on-this-database; tested on an imitation only) or a Quipu server. On top of
 * calls there are two helpers for what takes many of them: quipu_pages
 * walks through all pages of a Query or Scan, quipu_stream follows the changes of a table. And there are the
 * patterns: counters, jobs, leases, logs and more, each as one function.
 *
 * Errors. quipu_open and quipu_stream_open answer NULL and put one sentence into the caller's buffer. A call
 * always answers a reply; when it went wrong, the reply names the service's exception
 * ("ConditionalCheckFailedException") and its message. Functions of patterns answer how it went, see there.
 * Out of memory ends the program.
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
 * The manual page is quipu(3); examples/embed.c and examples/patterns.c are programs to begin with. */
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
    int sweeps;         /* not 0: a thread of the library does what is due; see quipu_sweep */

    /* ---- for a folder ---- */

    /* Not 0: nothing in the folder changes, so it may be write-protected or on a full disk, and others may read it at
     * the same time. It must be there. Calls that write are answered with AccessDeniedException, and items whose
     * time to live is over stay. For a URL it means nothing: permissions are the server's matter. */
    int read_only;
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
    /* Of patterns: what HTTP would tell besides (ETag, Quipu-Cost, Retry-After), lines "Name: value\n"; "".
     */
    const char *headers;
};

/* Calls an operation of DynamoDB ("PutItem") or DynamoDB Streams ("GetRecords") with a request in DynamoDB's
 * JSON, and waits. Never NULL; free it with quipu_reply_free. */
struct quipu_reply *quipu_call(struct quipu *db, const char *operation, const char *request);
void quipu_reply_free(struct quipu_reply *reply); /* NULL is allowed */

/* What the functions below answer: below 0, something is wrong. */
enum quipu_result {
    QUIPU_CONFLICT = -3, /* patterns: not as things are: held by another, closed, a stale fence, another
                          * version (409 and 412 of HTTP) */
    QUIPU_MISSING = -2,  /* patterns: what was named is not there (404) */
    QUIPU_FAILED = -1,   /* see the reply, quipu_pages_reply, quipu_stream_reply */
    QUIPU_NONE = 0,      /* pages: that was all. streams: nothing new within the time given */
    QUIPU_FOUND = 1,
    QUIPU_DONE = 1,
    QUIPU_ENDED = 2 /* streams: it was switched off, and everything in it was read */
};

/* ---- pages ---- */

/* One by one what a listing operation answers, page after page: Query, Scan and ExecuteStatement (items),
 * ListTables (names), ListStreams, ListTagsOfResource, ListBackups, ListGlobalTables,
 * ListContributorInsights, ListExports, ListImports and ListBulkOperations (their entries). The request is
 * that of the operation;
 * a Limit in it is the size of a page, as on the service, not of the whole. A page is fetched when the one
 * before it is used up. Lists of patterns are walked through likewise: as operation "GET", the request is the
 * path of the list ("/v1/jobs?state=open"), see quipu_pattern. */
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

/* ---- patterns ---- */

/* The coordination that people rebuild on DynamoDB by hand, each as one function: counters, jobs, groups,
 * periods, work, documents, leases, once, limits, histories, logs, boards. doc/patterns.md tells what each of them
 * promises. They run in this process; behind a URL, only the calls of DynamoDB's API that they make go there.
 * Their state is in ordinary tables, so programs, servers and the command line on the same data take part in
 * the same patterns.
 *
 * All functions below have one form.
 *
 * They answer QUIPU_DONE (or QUIPU_FOUND, which is the same); QUIPU_NONE when there was nothing to be had, or
 * not in time; or what is below zero: QUIPU_CONFLICT, QUIPU_MISSING, QUIPU_FAILED. What was refused has
 * changed nothing.
 *
 * The last parameter is a place for the whole reply: NULL when it is not wanted, else *reply is NULL or an
 * earlier reply, which is freed. So one variable serves for many calls, and is freed once:
 *
 *     struct quipu_reply *reply = NULL;
 *     int64_t number;
 *     if (quipu_counter_add(db, "orders", 1, &number, &reply) < 0) puts(reply->message);
 *     ...
 *     quipu_reply_free(reply);
 *
 * reply->error is the pattern's own code ("stale-fence"), reply->json what HTTP would answer.
 *
 * Results come by the pointers before it, each of which may be NULL; they are set when the answer is
 * QUIPU_NONE or above (where it is QUIPU_NONE, only what then makes sense). Texts in them belong to the
 * reply: they live as long as it does, and are NULL where no reply is wanted.
 *
 * Options may be NULL; zeroed they are the defaults. Durations are milliseconds, times milliseconds since
 * 1970. What is called JSON is a text of any JSON value, or NULL for none. A `token` (NULL: none) makes a
 * call that may be repeated: with the same one, it is counted once and gets the same answer. Where something
 * is waited for, 0 does not wait at all, and a negative time waits for ever, that is, until quipu_stop.
 * `then` is the name of a function, a URL, or JSON (an object, a list of them): what a server
 * on the same data calls at the end.
 *
 * What these leave out (?cost, the data of a lease, ...) quipu_pattern can do. */

/* Calls a pattern by the method and the path of its HTTP route ("POST", "/v1/counters/orders?cost=1"), and
 * waits. Names in the path are percent-encoded. headers: NULL, or lines "If-Match: \"7\"\nIdempotency-Key:
 * x"; body: NULL, or what the route takes, mostly JSON. Routes that answer in pieces are answered when they
 * have ended. Never NULL. */
struct quipu_reply *quipu_pattern(struct quipu *db, const char *method, const char *path, const char *headers,
                                  const char *body);

/* From any thread: whoever waits is answered at once (QUIPU_FAILED, "stopping"), and nobody waits any more.
 * For the end of a program, before quipu_close. */
void quipu_stop(struct quipu *db);

/* Does what is due now: jobs whose deadline is over, groups that are quiet, periods that have ended. A server
 * does so by itself, and so does a program with the option `sweeps`; without either, things that are due are
 * due until somebody does this. Reactions (`then`) are carried out by servers only: they are kept in the
 * tables and their streams until one comes, up to a day. */
enum quipu_result quipu_sweep(struct quipu *db, struct quipu_reply **reply);

/* ---- lists ---- */

/* What there is, by name: `what` is "counters", "leases", "limits", "logs", "boards", "documents" (the collections),
 * "work" (the queues), "groups" (the rules), "periods", or "once/NAME" (the keys that failed). NULL as the prefix: all.
 * Each element is a JSON object. Finished jobs: quipu_job_list(db, "complete", 0). */
struct quipu_pages *quipu_list(struct quipu *db, const char *what, const char *prefix);

/* ---- counters: numbers that are given once ---- */

struct quipu_counter_options {
    int64_t by;         /* what to add; 0: 1 */
    int64_t block;      /* instead: how many numbers to take at once */
    int64_t start;      /* the first number of a new counter; 0: what is added */
    const int64_t *max; /* the value is never raised above it, nor */
    const int64_t *min; /* lowered below it: QUIPU_CONFLICT; NULL: no limit */
    const char *token;
};

/* The next number. */
enum quipu_result quipu_counter_add(struct quipu *db, const char *name, int64_t by, int64_t *value,
                                    struct quipu_reply **reply);
/* The next `count` numbers: from *first to *last. */
enum quipu_result quipu_counter_block(struct quipu *db, const char *name, int64_t count, int64_t *first,
                                      int64_t *last, struct quipu_reply **reply);
/* Either, with all options; one number is both first and last. */
enum quipu_result quipu_counter_take(struct quipu *db, const char *name,
                                     const struct quipu_counter_options *options, int64_t *first,
                                     int64_t *last, struct quipu_reply **reply);
/* The last number that was given. */
enum quipu_result quipu_counter_get(struct quipu *db, const char *name, int64_t *value,
                                    struct quipu_reply **reply);
/* Numbers may be given again behind these two. */
enum quipu_result quipu_counter_set(struct quipu *db, const char *name, int64_t value,
                                    struct quipu_reply **reply);
enum quipu_result quipu_counter_delete(struct quipu *db, const char *name, struct quipu_reply **reply);

/* ---- jobs: many tasks, and one caller who is told that all are done ---- */

struct quipu_job_options {
    int64_t total; /* how many tasks, numbered from `first` on; 0: told later, by quipu_job_change */
    const char *const *tasks; /* or their names */
    size_t task_count;
    int64_t first;
    int one_set;          /* not 0: one growing item for all tasks, as small jobs may have; 0: a tree */
    int64_t deadline_ms;  /* from now; 0: none */
    const char *tolerate; /* so many tasks may fail: "3", "5%"; NULL: none */
    int64_t keep_ms;      /* behind its end; 0: for ever */
    const char *then;
    /* A server calls a function, a URL or a pattern for each task by itself; in the form of `then`. */
    const char *each;
    int64_t concurrency; /* so many calls at a time; 0: 10 */
    int64_t attempts;    /* of a task; 0: 3 */
    int64_t backoff_ms;  /* behind the first attempt, doubled with each; 0: 1 s */
    int64_t timeout_ms;  /* of a call; 0: the function's own */
    int paused;          /* above 0: no call is begun; below 0: they are again; 0: as it is */
    const char *items;   /* a JSON list, what each task is given, instead of a total; or quipu_job_items */
    const char *from;    /* or JSON that names their table: {"table": ..., "scan": {}} */
};

enum quipu_job_state { QUIPU_JOB_OPEN, QUIPU_JOB_COMPLETE, QUIPU_JOB_FAILED, QUIPU_JOB_EXPIRED };

struct quipu_job {
    enum quipu_job_state state;
    int64_t total, done, missing, failed; /* -1 where it was not counted */
};

/* What came of tasks that are done or have failed. */
struct quipu_done {
    int64_t counted; /* of the tasks given, those that were not counted before */
    int complete;    /* the job is */
    int last;        /* told to the callers of one task (or of one token), and to nobody else */
    int64_t done;    /* of the whole job, so far; -1 where it was not counted */
};

/* Several tasks, or one with more than its number. */
struct quipu_tasks {
    const int64_t *numbers;
    const char *const *names; /* instead of numbers */
    size_t count;
    const char *result; /* JSON, of a single task */
    const char *token;  /* tells callers of the same task apart; NULL: they are one */
    int progress;       /* not 0: tells how many are done, of large jobs at least */
};

/* Opens a job; again, with a larger total, it grows. */
enum quipu_result quipu_job_put(struct quipu *db, const char *id, const struct quipu_job_options *options,
                                struct quipu_job *job, struct quipu_reply **reply);
/* Adds items, one JSON value in a line, behind the first `from` of a job that was opened without a total and has no
 * task yet; what is there already is passed over, so a call may be repeated. is_end not 0: no more come, and the job
 * has as many tasks as items. QUIPU_CONFLICT: those before are missing ("stored" of the reply tells how many there
 * are), or they have ended. */
enum quipu_result quipu_job_items(struct quipu *db, const char *id, const char *lines, int64_t from, int is_end,
                                  int64_t *stored, struct quipu_reply **reply);
/* Of an open job: total, further tasks, deadline, tolerance, each and how it is called; what is zero
 * stays. A deadline opens an expired one again. */
enum quipu_result quipu_job_change(struct quipu *db, const char *id, const struct quipu_job_options *options,
                                   struct quipu_job *job, struct quipu_reply **reply);
enum quipu_result quipu_job_done(struct quipu *db, const char *id, int64_t task, struct quipu_done *done,
                                 struct quipu_reply **reply);
enum quipu_result quipu_job_done_tasks(struct quipu *db, const char *id, const struct quipu_tasks *tasks,
                                       struct quipu_done *done, struct quipu_reply **reply);
/* A failed task may still be done later. reason may be NULL. */
enum quipu_result quipu_job_failed(struct quipu *db, const char *id, int64_t task, const char *reason,
                                   struct quipu_done *done, struct quipu_reply **reply);
enum quipu_result quipu_job_failed_name(struct quipu *db, const char *id, const char *task,
                                        const char *reason, struct quipu_done *done,
                                        struct quipu_reply **reply);
enum quipu_result quipu_job_get(struct quipu *db, const char *id, struct quipu_job *job,
                                struct quipu_reply **reply);
/* The same, with how many are done; of more than 4,096 tasks at least so many, unless the job is near its end. */
enum quipu_result quipu_job_progress(struct quipu *db, const char *id, struct quipu_job *job,
                                     struct quipu_reply **reply);
/* Waits for its end. QUIPU_NONE: it is still open. */
enum quipu_result quipu_job_wait(struct quipu *db, const char *id, int64_t wait_ms, struct quipu_job *job,
                                 struct quipu_reply **reply);
/* Failed tasks are missing again, and the job is open. */
enum quipu_result quipu_job_redrive(struct quipu *db, const char *id, struct quipu_reply **reply);
enum quipu_result quipu_job_delete(struct quipu *db, const char *id, struct quipu_reply **reply);

/* Lists, one by one by quipu_pages_next: unfinished jobs ("open", "failed", "expired"), the oldest first,
 * opened at least older_ms ago; and of a job the tasks that are missing, 17 or "name"; those that have
 * failed,
 * {"task":17,"reason":"..."}; the results, {"task":17,"result":...}. */
struct quipu_pages *quipu_job_list(struct quipu *db, const char *state, int64_t older_ms);
struct quipu_pages *quipu_job_missing(struct quipu *db, const char *id);
struct quipu_pages *quipu_job_failures(struct quipu *db, const char *id);
struct quipu_pages *quipu_job_results(struct quipu *db, const char *id);

/* ---- groups: events collected until they are complete ---- */

/* Groups are complete when all of the first three that are given hold; or when nothing came for quiet_ms, or
 * deadline_ms after the first event. */
struct quipu_group_options {
    int64_t size;             /* so many events */
    const char *const *kinds; /* at least one of each */
    size_t kind_count;
    const char *when;   /* a condition in DynamoDB's language over count, kinds, sum, ..., and the names of fold */
    const char *values; /* JSON, of the condition: {":least": 3} */
    const char *fold;   /* JSON, values folded from the events' data: {"paid": {"sum": "amount", "of": "payment"}} */
    int64_t quiet_ms, deadline_ms;
    const char *late; /* what comes to a complete group: "discard", "append", "new"; NULL: "discard" */
    int64_t keep_ms;  /* complete ones; 0: for ever */
    const char *then;
};

struct quipu_group_event {
    const char *id;       /* the same one again is not added; NULL: one is made */
    const char *kind;     /* NULL: none */
    const char *data;     /* JSON */
    const char *amount;   /* a number, as text, added to the group's sum; NULL: none */
    const char *deadline; /* "2026-11-15T03:42:06Z", of the group that it opens; NULL: by the rules */
    const char *key;      /* quipu_group_add_many: the group */
};

struct quipu_group {
    int64_t generation, count;
    int complete;
    int accepted;  /* quipu_group_add: it was not there yet */
    int completed; /* quipu_group_add, _complete: this caller has completed it, and is the only one to be told so */
};

/* Changed rules hold for open groups, too, when it has returned. */
enum quipu_result quipu_group_put(struct quipu *db, const char *name,
                                  const struct quipu_group_options *options, struct quipu_reply **reply);
/* The rules, as JSON in the reply; forgets them, while open groups keep theirs. */
enum quipu_result quipu_group_show(struct quipu *db, const char *name, struct quipu_reply **reply);
enum quipu_result quipu_group_forget(struct quipu *db, const char *name, struct quipu_reply **reply);

/* QUIPU_CONFLICT: the group is complete and takes nothing more. */
enum quipu_result quipu_group_add(struct quipu *db, const char *name, const char *key,
                                  const struct quipu_group_event *event, struct quipu_group *group,
                                  struct quipu_reply **reply);
/* Up to 1,000 events at once, each to the group of its key; their answers are "events" of the reply, in this order, and
 * those that were refused have an "error". */
enum quipu_result quipu_group_add_many(struct quipu *db, const char *name, const struct quipu_group_event *events,
                                       size_t count, struct quipu_reply **reply);
/* The newest generation, with up to 100 events in the reply; quipu_group_events has all. */
enum quipu_result quipu_group_get(struct quipu *db, const char *name, const char *key,
                                  struct quipu_group *group, struct quipu_reply **reply);
/* QUIPU_NONE: it is not complete yet. */
enum quipu_result quipu_group_wait(struct quipu *db, const char *name, const char *key, int64_t wait_ms,
                                   struct quipu_group *group, struct quipu_reply **reply);
/* Completes it now, whatever the rules say (generation 0: the newest). With a token, which may be NULL, the call may be
 * made again: it means the same generation, and group->completed is told as the first time. */
enum quipu_result quipu_group_complete(struct quipu *db, const char *name, const char *key, int64_t generation,
                                       const char *token, struct quipu_group *group, struct quipu_reply **reply);
enum quipu_result quipu_group_delete(struct quipu *db, const char *name, const char *key,
                                     struct quipu_reply **reply);
/* The open groups, the oldest first; the events of one (generation 0: the newest). */
struct quipu_pages *quipu_group_list(struct quipu *db, const char *name, int64_t older_ms);
struct quipu_pages *quipu_group_events(struct quipu *db, const char *name, const char *key,
                                       int64_t generation);

/* ---- periods: what came within an hour, handed over when it is over ---- */

struct quipu_period_options {
    int64_t every_ms;        /* how long a bucket is, */
    const char *cron, *zone; /* or when one ends and the next begins: "0 9 * * 1-5", and on whose clock */
    int64_t grace_ms;        /* a bucket stays open so long behind its end */
    int64_t shards;          /* 0: 4 */
    int64_t keep_ms;         /* 0: a week */
    const char *then;
};

enum quipu_bucket_state { QUIPU_BUCKET_OPEN, QUIPU_BUCKET_CLOSING, QUIPU_BUCKET_DONE };

struct quipu_bucket {
    enum quipu_bucket_state state;
    const char *bucket;   /* its name: the time of its begin */
    int64_t count, parts; /* of a DONE one; else -1 */
};

enum quipu_result quipu_period_put(struct quipu *db, const char *name,
                                   const struct quipu_period_options *options, struct quipu_reply **reply);
enum quipu_result quipu_period_show(struct quipu *db, const char *name, struct quipu_reply **reply);
enum quipu_result quipu_period_delete(struct quipu *db, const char *name, struct quipu_reply **reply);
/* Adds to the bucket of now, or of an earlier time that is still open. id: the same one again is not added,
 * NULL: one is made. *bucket: where it went. */
enum quipu_result quipu_period_add(struct quipu *db, const char *name, const char *id, const char *data,
                                   int64_t time_ms, const char **bucket, struct quipu_reply **reply);
/* Up to 1,000 at once; those of one bucket are written together. Their answers are "events" of the reply. */
struct quipu_period_event {
    const char *id;   /* NULL: one is made */
    const char *data; /* JSON */
    int64_t time_ms;  /* 0: now */
};
enum quipu_result quipu_period_add_many(struct quipu *db, const char *name, const struct quipu_period_event *events,
                                        size_t count, struct quipu_reply **reply);
/* bucket: its name, any time within it, "now", "last". The events are in the reply; of a large one that is
 * DONE, those of one part (from 1 on; 0: the first). */
enum quipu_result quipu_period_get(struct quipu *db, const char *name, const char *bucket, int64_t part,
                                   struct quipu_bucket *found, struct quipu_reply **reply);
/* Waits until it is DONE. QUIPU_NONE: it is not yet. */
enum quipu_result quipu_period_wait(struct quipu *db, const char *name, const char *bucket, int64_t wait_ms,
                                    struct quipu_bucket *found, struct quipu_reply **reply);
/* Closes the buckets that are over; see quipu_sweep. */
enum quipu_result quipu_period_close(struct quipu *db, const char *name, int64_t *closed,
                                     struct quipu_reply **reply);
/* All periods; the buckets of one, "done" or "open" (NULL: both). */
struct quipu_pages *quipu_period_list(struct quipu *db);
struct quipu_pages *quipu_period_buckets(struct quipu *db, const char *name, const char *state);

/* ---- work: units that somebody claims, works at and finishes, whoever dies on the way ---- */

struct quipu_work_options {
    int64_t lease_ms;   /* how long a claim lasts without a beat; 0: 30 s */
    int64_t attempts;   /* claims before a unit is DEAD; 0: 5 */
    int64_t backoff_ms; /* behind the first failure, doubled with each; 0: 1 s */
    int64_t keep_ms;    /* what is DONE or DEAD; 0: a week */
    const char *then;   /* of units that become DEAD */
};

enum quipu_work_state { QUIPU_WORK_READY, QUIPU_WORK_CLAIMED, QUIPU_WORK_DONE, QUIPU_WORK_DEAD };

struct quipu_work {
    enum quipu_work_state state;
    int64_t attempts, fence, until_ms; /* 0 where there is none */
    int64_t step;
    const char *id;
    const char *data, *progress, *result; /* JSON */
    const char *error;                    /* why it failed last */
};

struct quipu_beat {
    int64_t for_ms;       /* instead of the queue's lease */
    const char *progress; /* JSON: to go on from, whoever does */
    int64_t step;         /* grows with the progress: an old beat never overwrites a newer one; 0: not told */
};

struct quipu_failure {
    const char *reason;
    int give_up;      /* not 0: it is no use to try again */
    int64_t after_ms; /* instead of the queue's back-off */
};

enum quipu_result quipu_work_put(struct quipu *db, const char *queue,
                                 const struct quipu_work_options *options, struct quipu_reply **reply);
/* Submits a unit, not to be claimed before delay_ms; again, it answers what became of it. */
enum quipu_result quipu_work_submit(struct quipu *db, const char *queue, const char *id, const char *data,
                                    int64_t delay_ms, struct quipu_work *work, struct quipu_reply **reply);
/* Up to 100 at once; what became of each is in "units" of the reply. */
struct quipu_work_unit {
    const char *id;
    const char *data; /* JSON */
    int64_t delay_ms;
};
enum quipu_result quipu_work_submit_many(struct quipu *db, const char *queue, const struct quipu_work_unit *units,
                                         size_t count, struct quipu_reply **reply);
/* QUIPU_NONE: there is nothing to do. Keep the reply as long as the unit's texts are needed, and use another
 * one for beats. owner may be NULL; for_ms 0: the queue's lease. */
enum quipu_result quipu_work_claim(struct quipu *db, const char *queue, const char *owner, int64_t for_ms,
                                   int64_t wait_ms, struct quipu_work *work, struct quipu_reply **reply);
/* The next three act on the fence of the claim only. QUIPU_CONFLICT: it is over. */
enum quipu_result quipu_work_beat(struct quipu *db, const char *queue, const char *id, int64_t fence,
                                  const struct quipu_beat *beat, struct quipu_reply **reply);
enum quipu_result quipu_work_finish(struct quipu *db, const char *queue, const char *id, int64_t fence,
                                    const char *result, struct quipu_reply **reply);
enum quipu_result quipu_work_fail(struct quipu *db, const char *queue, const char *id, int64_t fence,
                                  const struct quipu_failure *failure, struct quipu_reply **reply);
enum quipu_result quipu_work_get(struct quipu *db, const char *queue, const char *id, struct quipu_work *work,
                                 struct quipu_reply **reply);
/* Waits until it is DONE or DEAD. QUIPU_NONE: it is not yet. */
enum quipu_result quipu_work_wait(struct quipu *db, const char *queue, const char *id, int64_t wait_ms,
                                  struct quipu_work *work, struct quipu_reply **reply);
/* Makes a DEAD unit READY again. */
enum quipu_result quipu_work_retry(struct quipu *db, const char *queue, const char *id,
                                   struct quipu_reply **reply);
enum quipu_result quipu_work_delete(struct quipu *db, const char *queue, const char *id,
                                    struct quipu_reply **reply);
/* state: "ready", "claimed", "done", "dead", or NULL for all. */
struct quipu_pages *quipu_work_list(struct quipu *db, const char *queue, const char *state);

/* ---- documents: nobody overwrites what they have not seen ---- */

#define QUIPU_ANY (-1) /* a version: whatever is there */

/* Versions grow from 1 with each write; 0 stands for a document that is not there. `seen` is the version that
 * may be replaced, 0 when there must be none yet, or QUIPU_ANY; when it is another one, the answer is
 * QUIPU_CONFLICT and *version tells which. The document is the JSON of the reply. */
enum quipu_result quipu_document_get(struct quipu *db, const char *collection, const char *key,
                                     int64_t *version, struct quipu_reply **reply);
/* Waits for another version than `seen`. QUIPU_NONE: it is still the same. */
enum quipu_result quipu_document_wait(struct quipu *db, const char *collection, const char *key, int64_t seen,
                                      int64_t wait_ms, int64_t *version, struct quipu_reply **reply);
enum quipu_result quipu_document_put(struct quipu *db, const char *collection, const char *key,
                                     const char *json, int64_t seen, int64_t *version,
                                     struct quipu_reply **reply);
/* A merge patch (RFC 7396): members that are null are removed. */
enum quipu_result quipu_document_patch(struct quipu *db, const char *collection, const char *key,
                                       const char *patch, int64_t seen, int64_t *version,
                                       struct quipu_reply **reply);
enum quipu_result quipu_document_delete(struct quipu *db, const char *collection, const char *key,
                                        int64_t seen, int64_t *version, struct quipu_reply **reply);
/* {"key":"...","version":7,"data":...}, by key. */
struct quipu_pages *quipu_document_list(struct quipu *db, const char *collection);

/* ---- leases: one holder at a time, or as many as you say ---- */

struct quipu_lease {
    int64_t fence;    /* grows with each grant: whoever guards something refuses smaller ones */
    int64_t until_ms; /* the holder's no longer than that */
};

/* QUIPU_CONFLICT: somebody else has it, also after waiting in line. Owners tell themselves apart: the same
 * one gets its own lease again. for_ms 0: 30 s. */
enum quipu_result quipu_lease_take(struct quipu *db, const char *name, const char *owner, int64_t for_ms,
                                   int64_t wait_ms, struct quipu_lease *lease, struct quipu_reply **reply);
/* The same where up to so many owners hold it at a time (1 to 1,000), each by a fence of its own: a semaphore. Renewal
 * and release are those below. QUIPU_CONFLICT: all places are taken. */
enum quipu_result quipu_lease_share(struct quipu *db, const char *name, const char *owner, int64_t holders,
                                    int64_t for_ms, int64_t wait_ms, struct quipu_lease *lease,
                                    struct quipu_reply **reply);
/* By the fence in *lease; sets its new end. QUIPU_CONFLICT: it is not the owner's any more. */
enum quipu_result quipu_lease_renew(struct quipu *db, const char *name, const char *owner, int64_t for_ms,
                                    struct quipu_lease *lease, struct quipu_reply **reply);
enum quipu_result quipu_lease_release(struct quipu *db, const char *name, const char *owner,
                                      const struct quipu_lease *lease, struct quipu_reply **reply);
/* Who holds it and who waits, as JSON in the reply. */
enum quipu_result quipu_lease_get(struct quipu *db, const char *name, struct quipu_reply **reply);

/* ---- once: one caller does a thing, all others get its result ---- */

enum quipu_once_state {
    QUIPU_ONCE_LOST,    /* who began it is gone: the next caller may */
    QUIPU_ONCE_BEGUN,   /* by this caller: do it, then finish or fail it, by the fence */
    QUIPU_ONCE_RUNNING, /* by another one */
    QUIPU_ONCE_FAILED,  /* the next caller may try */
    QUIPU_ONCE_DONE,    /* `result` tells what came of it */
};

struct quipu_once {
    enum quipu_once_state state;
    int64_t fence;      /* grows with each caller that begins it */
    int64_t until_ms;   /* BEGUN, RUNNING: the caller's no longer than that */
    const char *result; /* DONE: JSON */
    const char *error;  /* FAILED: why */
};

struct quipu_once_options {
    const char *owner; /* the same one that asks again gets the same fence; NULL: nobody asks again */
    int64_t for_ms;    /* how long the caller has for it without renewing; 0: 30 s */
    int64_t keep_ms;   /* how long its end is remembered; 0: a day */
    const char *input; /* JSON: the same key with another one is refused; NULL: not compared */
};

/* Sets a state of BEGUN or DONE. QUIPU_CONFLICT: another is at it, also after waiting. */
enum quipu_result quipu_once_begin(struct quipu *db, const char *name, const char *key,
                                   const struct quipu_once_options *options, int64_t wait_ms,
                                   struct quipu_once *once, struct quipu_reply **reply);
/* From now on for so long, 0: 30 s. QUIPU_CONFLICT, of all three: it has ended, or is another caller's. */
enum quipu_result quipu_once_renew(struct quipu *db, const char *name, const char *key, int64_t fence,
                                   int64_t for_ms, int64_t *until_ms, struct quipu_reply **reply);
enum quipu_result quipu_once_finish(struct quipu *db, const char *name, const char *key, int64_t fence,
                                    const char *result, struct quipu_reply **reply);
enum quipu_result quipu_once_fail(struct quipu *db, const char *name, const char *key, int64_t fence,
                                  const char *error, struct quipu_reply **reply);
enum quipu_result quipu_once_get(struct quipu *db, const char *name, const char *key,
                                 struct quipu_once *once, struct quipu_reply **reply);
/* The next caller does it again. */
enum quipu_result quipu_once_forget(struct quipu *db, const char *name, const char *key,
                                    struct quipu_reply **reply);

/* ---- limits: so many in a time ---- */

struct quipu_limit {
    int64_t rate;   /* how many are given in the time that per_ms says */
    int64_t per_ms; /* 0: a second */
    int64_t burst;  /* how many may be taken at once after a rest; 0: as many as rate */
};

/* Takes `count` (0: one); waits a minute at most. QUIPU_NONE: the limit is reached, also after waiting;
 * *retry_after_ms tells how long it is worth to wait, and is 0 otherwise. *left: how many could be taken now. */
enum quipu_result quipu_limit_take(struct quipu *db, const char *name, const struct quipu_limit *limit,
                                   int64_t count, int64_t wait_ms, int64_t *left, int64_t *retry_after_ms,
                                   struct quipu_reply **reply);
enum quipu_result quipu_limit_get(struct quipu *db, const char *name, int64_t *left, struct quipu_reply **reply);
/* All of it can be taken again. */
enum quipu_result quipu_limit_delete(struct quipu *db, const char *name, struct quipu_reply **reply);

/* ---- histories: every change of a table ---- */

/* Keeps every change of a table from now on, each version for keep_ms and `versions` of an item (0: all). The
 * changes are brought by a server on the same data, or by the program itself: what a stream of the table
 * tells, in its order; the same record again changes nothing. */
enum quipu_result quipu_history_put(struct quipu *db, const char *table, int64_t keep_ms, int64_t versions,
                                    struct quipu_reply **reply);
enum quipu_result quipu_history_feed(struct quipu *db, const char *table, const struct quipu_record *record,
                                     struct quipu_reply **reply);
enum quipu_result quipu_history_show(struct quipu *db, const char *table, struct quipu_reply **reply);
enum quipu_result quipu_history_delete(struct quipu *db, const char *table, struct quipu_reply **reply);
/* An item by its hash key and, where the table has one, range key (else NULL), as texts. What it was at a
 * time: {"version":"...","event":"MODIFY","time":"...","precision":"1ms","item":{...}}; QUIPU_MISSING: it was
 * not there yet. */
enum quipu_result quipu_history_at(struct quipu *db, const char *table, const char *key, const char *range,
                                   int64_t time_ms, struct quipu_reply **reply);
struct quipu_restore {
    const char *version; /* which one; NULL: */
    int64_t time_ms;     /* what it was then */
    const char *expect;  /* only if this version is its last, else QUIPU_CONFLICT; NULL: whatever it is now */
};
/* Makes it what it was. QUIPU_CONFLICT also when somebody changes it all the time. */
enum quipu_result quipu_history_restore(struct quipu *db, const char *table, const char *key,
                                        const char *range, const struct quipu_restore *restore,
                                        struct quipu_reply **reply);
/* All versions of an item from one time to another (0: no bound), the oldest first; all histories. */
struct quipu_pages *quipu_history_versions(struct quipu *db, const char *table, const char *key,
                                           const char *range, int64_t from_ms, int64_t to_ms);
struct quipu_pages *quipu_history_list(struct quipu *db);
/* All changes of the table between two times (0: the beginning, now); and the whole table as of a time. */
struct quipu_pages *quipu_history_changes(struct quipu *db, const char *table, int64_t from_ms, int64_t to_ms);
struct quipu_pages *quipu_history_table(struct quipu *db, const char *table, int64_t time_ms);

/* ---- logs: events numbered without a gap, read by groups of consumers ---- */

#define QUIPU_PARKED (-1) /* the partition of parked events that are read again */

struct quipu_event {
    const char *key;   /* events of one key stay in order */
    const char *data;  /* JSON */
    const char *token; /* when appending */
    int64_t sequence;  /* when reading: from 1 on, in its partition, and */
    int64_t time_ms;   /* when it was appended */
};

struct quipu_read {
    const char *owner; /* who reads: nobody else may use the same */
    int64_t max;       /* at most so many events; 0: 100 */
    int64_t wait_ms;   /* for events */
    int64_t for_ms;    /* how long the partition is the reader's without an ack; 0: 30 s */
};

/* Events of one partition, which is leased to the reader. */
struct quipu_batch {
    int64_t partition, fence, until_ms;
    int64_t position; /* the number before the first */
    int more;         /* there are further ones already */
    size_t count;
    const struct quipu_event *events; /* belong to the reply */
};

/* partitions 0: 4; keep_ms 0: events are kept for ever. */
enum quipu_result quipu_log_put(struct quipu *db, const char *log, int64_t partitions, int64_t keep_ms,
                                struct quipu_reply **reply);
/* Has servers split a partition that gets more events than this ("500/s", "30/m"), and merge two neighbours that get
 * less together (NULL: never), up to so many partitions (0: 64). split_above NULL: no more. */
enum quipu_result quipu_log_scale(struct quipu *db, const char *log, const char *split_above,
                                  const char *merge_below, int64_t partitions, struct quipu_reply **reply);
enum quipu_result quipu_log_show(struct quipu *db, const char *log, struct quipu_reply **reply);
enum quipu_result quipu_log_delete(struct quipu *db, const char *log, struct quipu_reply **reply);
/* Appends of different threads to one partition are made together. */
enum quipu_result quipu_log_append(struct quipu *db, const char *log, const char *key, const char *data,
                                   const char *token, int64_t *partition, int64_t *sequence,
                                   struct quipu_reply **reply);
/* Up to 1000, in order; where each went is in the reply. */
enum quipu_result quipu_log_append_many(struct quipu *db, const char *log, const struct quipu_event *events,
                                        size_t count, struct quipu_reply **reply);
/* Appends events of one key, all or none, if none of the key stands behind the number `expected` (0: if there is none).
 * *sequence: the number of the last of them; after QUIPU_CONFLICT the one that the key's last event has (0: the number
 * expected is not there yet, or too far back). */
enum quipu_result quipu_log_append_expected(struct quipu *db, const char *log, int64_t expected,
                                            const struct quipu_event *events, size_t count, int64_t *sequence,
                                            struct quipu_reply **reply);

/* Leases a partition with unread events to a consumer of a group. QUIPU_NONE: there are none. Keep the reply
 * as long as the events are needed, and use another one for acks. */
enum quipu_result quipu_log_read(struct quipu *db, const char *log, const char *group,
                                 const struct quipu_read *read, struct quipu_batch *batch,
                                 struct quipu_reply **reply);
/* All up to this number is done with; 0: only renews the lease. Behind the last that was given, the partition
 * is free for others. QUIPU_CONFLICT: the fence is an old one. */
enum quipu_result quipu_log_ack(struct quipu *db, const char *log, const char *group, int64_t partition,
                                int64_t fence, int64_t sequence, struct quipu_reply **reply);
/* Sets an event aside; those before it are done with. */
enum quipu_result quipu_log_park(struct quipu *db, const char *log, const char *group, int64_t partition,
                                 int64_t fence, int64_t sequence, const char *reason,
                                 struct quipu_reply **reply);
/* Reads again: a partition from a number on; all from a past time on (0: from the start, negative: only what
 * comes from now on); what was parked. */
enum quipu_result quipu_log_replay(struct quipu *db, const char *log, const char *group, int64_t partition,
                                   int64_t sequence, struct quipu_reply **reply);
enum quipu_result quipu_log_replay_time(struct quipu *db, const char *log, const char *group, int64_t time_ms,
                                        struct quipu_reply **reply);
enum quipu_result quipu_log_replay_parked(struct quipu *db, const char *log, const char *group,
                                          int64_t *replayed, struct quipu_reply **reply);
/* How many events a group has not read yet, and has set aside. */
enum quipu_result quipu_log_lag(struct quipu *db, const char *log, const char *group, int64_t *lag,
                                int64_t *parked, struct quipu_reply **reply);
/* Removes a group: its positions and parked events. */
enum quipu_result quipu_log_leave(struct quipu *db, const char *log, const char *group,
                                  struct quipu_reply **reply);
/* Seals a partition and goes on with two in its place (at: the first hash of the second, 16 hexadecimal
 * digits; NULL: the middle); seals two neighbours and goes on with one. */
enum quipu_result quipu_log_split(struct quipu *db, const char *log, int64_t partition, const char *at,
                                  int64_t children[2], struct quipu_reply **reply);
enum quipu_result quipu_log_merge(struct quipu *db, const char *log, int64_t one, int64_t other,
                                  int64_t *child, struct quipu_reply **reply);
/* The open partitions; the events of one, or of a key, behind a number, without a group; what a group has parked. */
struct quipu_pages *quipu_log_partitions(struct quipu *db, const char *log);
struct quipu_pages *quipu_log_events(struct quipu *db, const char *log, int64_t partition, int64_t after);
struct quipu_pages *quipu_log_key(struct quipu *db, const char *log, const char *key, int64_t after);
struct quipu_pages *quipu_log_parked(struct quipu *db, const char *log, const char *group);

/* ---- boards: messages in the order of their time ---- */

/* author may be NULL. *id: the message's. */
enum quipu_result quipu_board_post(struct quipu *db, const char *board, const char *text, const char *author,
                                   const char **id, struct quipu_reply **reply);
/* Waits for messages behind one (NULL: for any). They are in the reply. QUIPU_NONE: there are none. */
enum quipu_result quipu_board_wait(struct quipu *db, const char *board, const char *after, int64_t wait_ms,
                                   struct quipu_reply **reply);
/* What is there now, not what comes meanwhile. */
enum quipu_result quipu_board_clear(struct quipu *db, const char *board, int64_t *deleted,
                                    struct quipu_reply **reply);
enum quipu_result quipu_board_delete(struct quipu *db, const char *board, const char *id,
                                     struct quipu_reply **reply);
/* {"id":"...","time":"...","text":"..."}, the oldest first, behind one (NULL: all). */
struct quipu_pages *quipu_board_list(struct quipu *db, const char *board, const char *after);

#ifdef __cplusplus
}
#endif

#endif
