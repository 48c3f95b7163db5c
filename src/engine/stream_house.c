/* What keeps streams bounded: old records are cut off, old shards rolled over, empty ended streams forgotten.
 */
#include <stdlib.h>

#include "base/fail.h"
#include "engine/internal.h"

#define SHARD_AGE_MS     (4ll * 3600 * 1000) /* then a shard is rolled over, about as often as on the service */
#define TRIM_INTERVAL_MS 60000
#define MINUTE_MS        60000

struct trim {
    struct commit commit;
    uint64_t before; /* records below this sequence are older than the retention */
    uint64_t minute; /* of the newest mark that is old enough; 0: none */
    int64_t now_ms, retention_ms;
};

static bool newest_old_mark(void *context, struct slice key, struct slice value)
{
    struct trim *trim = context;
    (void)value;
    if (key.len == 9) trim->minute = bytes_u64(key.data + 1);
    return false;
}

static bool next_mark(void *context, struct slice key, struct slice value)
{
    struct trim *trim = context;
    (void)key;
    if (value.len == 8) trim->before = bytes_u64(value.data);
    return false;
}

static void minute_key(struct buf *out, uint64_t minute)
{
    out->len = 0;
    buf_byte(out, KEY_MINUTE);
    buf_u64(out, minute);
}

/* The records from one mark to the next were written in the first one's minute. Where no next one is to be
 * seen, that holds for all records that could be seen before: trim->before was taken then. */
static bool find_marks(struct engine *engine, struct trim *trim)
{
    struct buf from = {0}, to = {0};
    int64_t oldest = (trim->now_ms - trim->retention_ms) /
                     MINUTE_MS; /* minutes before this one are over for long enough */
    minute_key(&from, 0);
    minute_key(&to, oldest > 0 ? (uint64_t)oldest : 0);
    bool read = store_scan(engine->store, buf_view(&from), buf_view(&to), true, newest_old_mark, trim) ==
                STORE_OK;
    if (read && trim->minute) {
        minute_key(&from, trim->minute + 1);
        minute_key(&to, UINT64_MAX);
        read = store_scan(engine->store, buf_view(&from), buf_view(&to), false, next_mark, trim) == STORE_OK;
    }
    buf_free(&from);
    buf_free(&to);
    return read;
}

static void delete_records(struct batch *batch, uint32_t stream, uint32_t shard, uint64_t before)
{
    struct buf from = {0}, to = {0};
    key_of_kind(&from, KEY_RECORD, stream);
    buf_u32(&from, shard);
    buf_slice(&to, buf_view(&from));
    buf_u64(&to, before);
    batch_clear(batch, buf_view(&from), buf_view(&to));
    buf_free(&from);
    buf_free(&to);
}

static void delete_marks(struct batch *batch, uint64_t up_to)
{
    struct buf from = {0}, to = {0};
    minute_key(&from, 0);
    minute_key(&to, up_to + 1);
    batch_clear(batch, buf_view(&from), buf_view(&to));
    buf_free(&from);
    buf_free(&to);
}

/* Old open shards are rolled over, one at a time: each changes the stream. */
static void roll_old_shards(struct batch *batch, uint32_t number, int64_t now_ms)
{
    for (bool rolled = true; rolled;) {
        struct stream *stream = stream_in_batch(batch, number);
        rolled = false;
        for (uint32_t i = 0; stream && i < stream->shard_count && !rolled; i++)
            if (!stream->shards[i].last && stream->shards[i].created_ms + SHARD_AGE_MS <= now_ms)
                rolled = engine_shard_roll(batch, number, stream->shards[i].number, false);
    }
}

static void trim_stream(struct trim *trim, struct batch *batch, uint32_t number)
{
    struct stream *stream = stream_in_batch(batch, number);
    bool live = false;
    for (uint32_t i = 0; i < stream->shard_count; i++) {
        const struct shard_description *shard = &stream->shards[i];
        if (trim->minute && shard->first < trim->before)
            delete_records(batch, number, shard->number, trim->before);
        live |= !shard->last || shard->last >= trim->before;
    }
    if (stream->disabled_ms && stream->disabled_ms + trim->retention_ms <= trim->now_ms) {
        stream_forget(batch, number);
        return;
    }
    if (!stream->disabled_ms) roll_old_shards(batch, number, trim->now_ms);
    if (live && trim->minute) stream_drop_shards(batch, number, trim->before);
}

static void apply_trim(struct commit *commit, struct batch *batch)
{
    struct trim *trim = (struct trim *)commit;
    struct engine *engine = batch->engine;
    for (uint32_t i = 0; i < engine->streams_count; i++)
        if (stream_in_batch(batch, engine->streams[i]->number))
            trim_stream(trim, batch, engine->streams[i]->number);
    if (!trim->minute) return;
    delete_marks(batch, trim->minute);
    atomic_store(&engine->trimmed_sequence, trim->before);
}

bool stream_keep_house(struct engine *engine)
{
    int64_t now = engine_now_ms(engine);
    if (now < engine->trim_due_ms && now >= engine->trim_due_ms - TRIM_INTERVAL_MS) return false;
    engine->trim_due_ms = now + TRIM_INTERVAL_MS;
    pthread_rwlock_rdlock(&engine->streams_lock);
    bool any = engine->streams_count > 0;
    pthread_rwlock_unlock(&engine->streams_lock);
    if (!any) return false;
    struct trim trim = {
        .commit = {.apply = apply_trim}, .now_ms = now, .retention_ms = engine->stream_retention_ms};
    trim.before = engine_stream_next(engine);
    if (find_marks(engine, &trim)) engine_commit(engine, &trim.commit);
    return false;
}
