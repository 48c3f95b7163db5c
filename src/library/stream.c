/* Following a table's stream: records of all shards, one by one, waiting for those to come.
 *
 * Embedded, the engine tells when a commit wrote records (`news`); a shard whose last answer was empty is
 * asked again only after news. Elsewhere nobody tells, and an empty shard is asked again after a pause that
 * grows. */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cond.h"
#include "base/fail.h"
#include "library/shards.h"

#define PAUSE_MIN_US  20000    /* remote: after the first empty answer of a shard */
#define PAUSE_MAX_US  250000   /* and at most; the service allows five questions a second */
#define NEWS_PAUSE_US 2000     /* embedded: news may be another table's, and they may be many */
#define EXPIRED_US    20000    /* before an iterator is asked for in the place of one that has expired */
#define LOOK_SOON_US  1000000  /* between looks for shards, when one is expected or looking is cheap */
#define LOOK_LATER_US 30000000 /* and else */

struct quipu_stream {
    struct quipu *db;
    struct shards shards;
    struct shard *current; /* whose records are being handed out, or were last */
    int64_t refresh_at_us; /* not before */
    /* the newest answer's records */
    struct quipu_reply *reply;
    struct arena scratch;
    struct raw_walk records;
    bool has_records;
    struct buf json, event, sequence; /* of the record that was handed out last */
    /* waiting */
    struct engine_watcher watcher;
    bool is_watching;
    pthread_mutex_t lock; /* of the next two */
    uint64_t news;
    bool is_woken;
    pthread_cond_t changed;
};

/* ---- opening ---- */

static void tell_news(struct engine_watcher *watcher, uint64_t next_sequence)
{
    struct quipu_stream *stream = (struct quipu_stream *)(void *)((char *)watcher -
                                                                  offsetof(struct quipu_stream, watcher));
    (void)next_sequence;
    pthread_mutex_lock(&stream->lock);
    stream->news++;
    pthread_cond_signal(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
}

static struct quipu_stream *new_stream(struct quipu *db, enum quipu_stream_start start)
{
    struct quipu_stream *stream = must_zero(1, sizeof *stream);
    stream->db = db;
    stream->shards.db = db;
    stream->shards.start = start;
    stream->shards.opened_s = clock_now_ms(&clock_system) / 1000;
    pthread_mutex_init(&stream->lock, NULL);
    cond_init(&stream->changed);
    stream->watcher.notify = tell_news;
    return stream;
}

/* The ARN of the table's newest stream, in quotes, into shards.stream. */
static bool find_stream(struct quipu_stream *stream, const char *table, char *error, size_t error_len)
{
    static const char *const outer[] = {"Table"}, *const inner[] = {"LatestStreamArn"};
    struct arena arena = {0};
    struct buf request = {0};
    struct slice description, arn = SLICE("");
    buf_text(&request, "{\"TableName\":");
    json_put_string(&request, slice_of(table));
    buf_byte(&request, '}');
    struct quipu_reply *reply = library_call(stream->db, SLICE("DescribeTable"), buf_view(&request));
    if (!reply->error && raw_members(&arena, library_json(reply), outer, &description, 1))
        raw_members(&arena, description, inner, &arn, 1);
    buf_slice(&stream->shards.stream, arn);
    if (reply->error)
        snprintf(error, error_len, "%s: %s", reply->error, reply->message);
    else if (!arn.len)
        snprintf(error, error_len, "the table %.255s has no stream: UpdateTable can give it one", table);
    quipu_reply_free(reply);
    buf_free(&request);
    arena_free(&arena);
    return arn.len > 0;
}

static bool name_stream(struct quipu_stream *stream, const char *what, char *error, size_t error_len)
{
    if (!strstr(what, "/stream/")) return find_stream(stream, what, error, error_len);
    json_put_string(&stream->shards.stream, slice_of(what));
    return true;
}

/* LATEST means now: the iterators are taken before the stream is handed out. */
static enum quipu_result fix_start(struct quipu_stream *stream)
{
    if (stream->shards.start != QUIPU_LATEST) return QUIPU_FOUND;
    for (struct shard *shard = stream->shards.first; shard; shard = shard->next)
        if (shard->state == SHARD_IS_READ && shard_prepare(&stream->shards, shard) == QUIPU_FAILED)
            return QUIPU_FAILED;
    return QUIPU_FOUND;
}

struct quipu_stream *quipu_stream_open(struct quipu *db, const char *what, enum quipu_stream_start start,
                                       char *error, size_t error_len)
{
    struct quipu_stream *stream = new_stream(db, start);
    bool is_named = name_stream(stream, what, error, error_len);
    if (!is_named || shards_refresh(&stream->shards) == QUIPU_FAILED || fix_start(stream) == QUIPU_FAILED) {
        const struct quipu_reply *failure = stream->shards.failure;
        if (is_named) snprintf(error, error_len, "%s: %s", failure->error, failure->message);
        quipu_stream_close(stream);
        return NULL;
    }
    struct engine *engine = dynamo_engine(db->dynamo);
    if (engine) engine_watch(engine, &stream->watcher);
    stream->is_watching = engine != NULL;
    return stream;
}

void quipu_stream_close(struct quipu_stream *stream)
{
    if (!stream) return;
    if (stream->is_watching) engine_unwatch(dynamo_engine(stream->db->dynamo), &stream->watcher);
    quipu_reply_free(stream->reply);
    arena_free(&stream->scratch);
    buf_free(&stream->json);
    buf_free(&stream->event);
    buf_free(&stream->sequence);
    shards_free(&stream->shards);
    pthread_cond_destroy(&stream->changed);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

/* ---- records at hand ---- */

/* Takes a record apart; false when it is to be left out. */
static bool take_record(struct quipu_stream *stream, struct slice raw)
{
    static const char *const outer[] = {"eventName", "dynamodb"};
    static const char *const inner[] = {"SequenceNumber", "ApproximateCreationDateTime"};
    struct slice raws[2], details[2];
    raw_members(&stream->scratch, raw, outer, raws, 2);
    raw_members(&stream->scratch, raws[1], inner, details, 2);
    text_set(&stream->json, raw);
    text_set(&stream->event, raw_string(&stream->scratch, raws[0]));
    text_set(&stream->sequence, raw_string(&stream->scratch, details[0]));
    text_set(&stream->current->last_sequence, buf_view(&stream->sequence));
    if (!stream->current->oldest_s) return true;
    struct slice created = arena_copy(&stream->scratch, details[1]);
    return strtod(created.data, NULL) >= (double)stream->current->oldest_s;
}

static bool next_record(struct quipu_stream *stream, struct quipu_record *record)
{
    struct slice raw;
    while (stream->has_records && raw_walk_next(&stream->records, NULL, &raw)) {
        if (!take_record(stream, raw)) continue;
        *record = (struct quipu_record){.json = stream->json.data,
                                        .json_len = stream->json.len,
                                        .event = stream->event.data,
                                        .sequence = stream->sequence.data,
                                        .shard = stream->current->id.data};
        return true;
    }
    stream->has_records = false;
    return false;
}

/* ---- asking ---- */

/* After an empty answer: not before there is news, or time has gone by. */
static void put_off(struct quipu_stream *stream, struct shard *shard, uint64_t news)
{
    shard->asked_at_news = news;
    if (stream->is_watching) {
        shard->pause_us = NEWS_PAUSE_US;
    } else {
        shard->pause_us = shard->pause_us ? shard->pause_us * 2 : PAUSE_MIN_US;
        if (shard->pause_us > PAUSE_MAX_US) shard->pause_us = PAUSE_MAX_US;
    }
    shard->ask_at_us = monotonic_us() + shard->pause_us;
}

/* Takes a good answer in: its records, and where the shard goes on. */
static bool take_answer(struct quipu_stream *stream, struct shard *shard, uint64_t news)
{
    static const char *const names[] = {"Records", "NextShardIterator"};
    struct slice raws[2], first;
    if (!raw_members(&stream->scratch, library_json(stream->reply), names, raws, 2) ||
        raw_walk_begin(&stream->records, &stream->scratch, raws[0]) != JSON_ARRAY)
        return false;
    struct raw_walk look = stream->records;
    stream->has_records = raw_walk_next(&look, NULL, &first);
    stream->current = shard;
    text_set(&shard->iterator, raws[1]);
    if (!raws[1].len) {
        shard->state = SHARD_IS_DONE;
        stream->refresh_at_us = 0;
    }
    if (stream->has_records)
        shard->pause_us = shard->ask_at_us = 0;
    else
        put_off(stream, shard, news);
    return true;
}

static enum quipu_result take_failure(struct quipu_stream *stream, struct shard *shard)
{
    struct quipu_reply *reply = stream->reply;
    stream->reply = NULL;
    if (strcmp(reply->error, "ExpiredIteratorException") != 0) return shards_fail(&stream->shards, reply);
    shard_forget_iterator(shard, stream->shards.opened_s);
    shard->ask_at_us = monotonic_us() + EXPIRED_US;
    shard->pause_us = 0;
    quipu_reply_free(reply);
    return QUIPU_NONE;
}

static uint64_t news_now(struct quipu_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    uint64_t news = stream->news;
    pthread_mutex_unlock(&stream->lock);
    return news;
}

/* QUIPU_FOUND: the shard was asked; there may be records. */
static enum quipu_result ask(struct quipu_stream *stream, struct shard *shard)
{
    struct buf request = {0};
    uint64_t news = news_now(stream); /* before the answer is made, so that none is missed */
    enum quipu_result result = shard_prepare(&stream->shards, shard);
    if (result == QUIPU_NONE) stream->refresh_at_us = 0;
    if (result != QUIPU_FOUND) return result;
    buf_text(&request, "{\"ShardIterator\":");
    buf_slice(&request, buf_view(&shard->iterator));
    buf_byte(&request, '}');
    quipu_reply_free(stream->reply);
    arena_reset(&stream->scratch);
    stream->reply = library_call(stream->db, SLICE("GetRecords"), buf_view(&request));
    buf_free(&request);
    if (stream->reply->error) return take_failure(stream, shard);
    if (take_answer(stream, shard, news)) return QUIPU_FOUND;
    struct quipu_reply *reply = library_bad_reply(stream->reply,
                                                  "an answer to GetRecords is not of the service's form");
    stream->reply = NULL;
    return shards_fail(&stream->shards, reply);
}

/* ---- who is asked next, and when ---- */

/* Only time keeps it from being asked: there is news, or none will come to tell of its end. */
static bool waits_for_time(const struct quipu_stream *stream, const struct shard *shard, uint64_t news)
{
    if (shard->state != SHARD_IS_READ) return false;
    bool is_ending = shard->is_closed || stream->shards.is_disabled;
    return !stream->is_watching || is_ending || shard->pause_us == 0 || shard->asked_at_news != news;
}

static bool is_due(const struct quipu_stream *stream, const struct shard *shard, uint64_t news, int64_t now)
{
    return waits_for_time(stream, shard, news) && shard->ask_at_us <= now;
}

/* The next one behind the current in the round, so that a busy shard keeps no other one waiting. */
static struct shard *next_due(struct quipu_stream *stream, uint64_t news, int64_t now)
{
    struct shard *start = stream->current && stream->current->next ? stream->current->next
                                                                   : stream->shards.first;
    for (struct shard *shard = start; shard; shard = shard->next)
        if (is_due(stream, shard, news, now)) return shard;
    for (struct shard *shard = stream->shards.first; shard != start; shard = shard->next)
        if (is_due(stream, shard, news, now)) return shard;
    return NULL;
}

/* Until when nothing is to be done, unless there is news. */
static int64_t idle_until(const struct quipu_stream *stream, uint64_t news)
{
    int64_t until = stream->refresh_at_us;
    for (const struct shard *shard = stream->shards.first; shard; shard = shard->next)
        if (waits_for_time(stream, shard, news) && shard->ask_at_us < until) until = shard->ask_at_us;
    return until;
}

/* Waits; true when the program said quipu_stream_wake. */
static bool wait_until(struct quipu_stream *stream, int64_t until_us, uint64_t news)
{
    pthread_mutex_lock(&stream->lock);
    while (!stream->is_woken && stream->news == news)
        if (!cond_wait_until(&stream->changed, &stream->lock, until_us)) break;
    bool is_woken = stream->is_woken;
    stream->is_woken = false;
    pthread_mutex_unlock(&stream->lock);
    return is_woken;
}

/* New shards are looked for when one has come to its end, and else now and then for the end of the stream. */
static enum quipu_result refresh(struct quipu_stream *stream, int64_t now)
{
    if (now < stream->refresh_at_us) return QUIPU_FOUND;
    if (stream->current && stream->current->state == SHARD_IS_DONE)
        stream->current = NULL; /* may be forgotten */
    enum quipu_result result = shards_refresh(&stream->shards);
    bool soon = stream->is_watching || shards_miss_children(&stream->shards);
    stream->refresh_at_us = now + (soon ? LOOK_SOON_US : LOOK_LATER_US);
    return result;
}

enum quipu_result quipu_stream_next(struct quipu_stream *stream, int wait_ms, struct quipu_record *record)
{
    int64_t deadline = wait_ms < 0 ? INT64_MAX : monotonic_us() + wait_ms * 1000ll;
    for (;;) {
        if (next_record(stream, record)) return QUIPU_FOUND;
        int64_t now = monotonic_us();
        uint64_t news = news_now(stream);
        if (refresh(stream, now) == QUIPU_FAILED) return QUIPU_FAILED;
        struct shard *shard = next_due(stream, news, now);
        if (shard) {
            if (ask(stream, shard) == QUIPU_FAILED) return QUIPU_FAILED;
            continue;
        }
        if (stream->shards.is_disabled && shards_are_done(&stream->shards)) return QUIPU_ENDED;
        if (now >= deadline) return QUIPU_NONE;
        int64_t until = idle_until(stream, news);
        if (wait_until(stream, until < deadline ? until : deadline, news)) return QUIPU_NONE;
    }
}

void quipu_stream_wake(struct quipu_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    stream->is_woken = true;
    pthread_cond_signal(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
}

const struct quipu_reply *quipu_stream_reply(const struct quipu_stream *stream)
{
    return stream->shards.failure;
}
