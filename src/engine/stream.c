/* Streams: each change of an item is a record, written in the batch of the change itself, numbered in the
 * order of commits.
 *
 * A stream begins with several shards, each with a part of the range of hashes, so that the records of one
 * item are all in one shard and its successors. A shard is closed and followed by one or two children;
 * readers finish parents first. A stream that was switched off stays readable until its last record is
 * trimmed. */
#include <stdlib.h>

#include "base/fail.h"
#include "engine/internal.h"

#define MINUTE_MS 60000

/* ---- the stored form ---- */

static struct value shard_value(struct arena *arena, const struct shard_description *shard)
{
    struct builder builder = {.arena = arena};
    builder_integer(&builder, "number", shard->number);
    builder_integer(&builder, "parent", shard->parent);
    builder_integer(&builder, "first", (int64_t)shard->first);
    builder_integer(&builder, "last", (int64_t)shard->last);
    builder_integer(&builder, "low", shard->low);
    builder_integer(&builder, "high", shard->high);
    builder_integer(&builder, "created_ms", shard->created_ms);
    return (struct value){.type = VALUE_M, .map = builder_finish(&builder)};
}

static void stream_encode(struct arena *arena, struct buf *out, const struct stream *stream)
{
    struct builder builder = {.arena = arena};
    struct value shards = {.type = VALUE_L, .count = stream->shard_count};
    shards.elements = arena_array(arena, struct value, stream->shard_count);
    for (uint32_t i = 0; i < stream->shard_count; i++)
        shards.elements[i] = shard_value(arena, &stream->shards[i]);
    builder_integer(&builder, "number", stream->number);
    builder_text(&builder, "table", stream->table_name);
    builder_integer(&builder, "view", stream->view);
    builder_integer(&builder, "since_ms", stream->since_ms);
    builder_integer(&builder, "disabled_ms", stream->disabled_ms);
    builder_text(&builder, "hash", stream->hash);
    builder_text(&builder, "range", stream->range);
    builder_add(&builder, "shards", shards);
    struct map item = builder_finish(&builder);
    item_encode(out, &item);
}

static struct shard_description shard_from(const struct map *map)
{
    return (struct shard_description){.number = (uint32_t)stored_integer(map, "number"),
                                      .parent = (uint32_t)stored_integer(map, "parent"),
                                      .first = (uint64_t)stored_integer(map, "first"),
                                      .last = (uint64_t)stored_integer(map, "last"),
                                      .low = (uint32_t)stored_integer(map, "low"),
                                      .high = (uint32_t)stored_integer(map, "high"),
                                      .created_ms = stored_integer(map, "created_ms")};
}

struct stream *stream_decode(struct slice bytes)
{
    struct stream *stream = must_zero(1, sizeof *stream);
    struct map map;
    atomic_init(&stream->references, 1);
    bool sound = item_decode(&stream->arena, arena_copy(&stream->arena, bytes), &map);
    const struct value *shards = sound ? map_find(&map, SLICE("shards")) : NULL;
    if (!shards || shards->type != VALUE_L) {
        engine_stream_release(stream);
        return NULL;
    }
    stream->number = (uint32_t)stored_integer(&map, "number");
    stream->table_name = stored_text(&map, "table");
    stream->view = (enum stream_view)stored_integer(&map, "view");
    stream->since_ms = stored_integer(&map, "since_ms");
    stream->disabled_ms = stored_integer(&map, "disabled_ms");
    stream->hash = stored_text(&map, "hash");
    stream->range = stored_text(&map, "range");
    stream->shards = arena_array(&stream->arena, struct shard_description, shards->count);
    for (uint32_t i = 0; i < shards->count; i++)
        if (shards->elements[i].type == VALUE_M)
            stream->shards[stream->shard_count++] = shard_from(&shards->elements[i].map);
    return stream;
}

/* ---- finding ---- */

void engine_stream_release(struct stream *stream)
{
    if (atomic_fetch_sub_explicit(&stream->references, 1, memory_order_acq_rel) != 1) return;
    arena_free(&stream->arena);
    free(stream);
}

static struct stream *hold(struct stream *stream)
{
    atomic_fetch_add_explicit(&stream->references, 1, memory_order_relaxed);
    return stream;
}

struct stream *engine_stream_find(struct engine *engine, uint32_t number)
{
    struct stream *found = NULL;
    pthread_rwlock_rdlock(&engine->streams_lock);
    for (uint32_t i = 0; i < engine->streams_count && !found; i++)
        if (engine->streams[i]->number == number) found = hold(engine->streams[i]);
    pthread_rwlock_unlock(&engine->streams_lock);
    return found;
}

struct stream **engine_streams(struct engine *engine, struct arena *arena, uint32_t *count)
{
    pthread_rwlock_rdlock(&engine->streams_lock);
    *count = engine->streams_count;
    struct stream **streams = arena_array(arena, struct stream *, *count + 1);
    for (uint32_t i = 0; i < *count; i++) streams[i] = hold(engine->streams[i]);
    pthread_rwlock_unlock(&engine->streams_lock);
    return streams;
}

uint64_t engine_stream_next(struct engine *engine)
{
    return atomic_load(&engine->published_sequence);
}

uint64_t engine_stream_horizon(struct engine *engine)
{
    return atomic_load(&engine->trimmed_sequence);
}

/* The writer alone changes the list, so it needs no lock to read it. */
struct stream *stream_in_batch(struct batch *batch, uint32_t number)
{
    for (uint32_t i = batch->streams_count; i-- > 0;)
        if (batch->streams[i].number == number) return batch->streams[i].stream;
    struct engine *engine = batch->engine;
    uint32_t low = 0, high = engine->streams_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (engine->streams[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < engine->streams_count && engine->streams[low]->number == number ? engine->streams[low]
                                                                                 : NULL;
}

/* ---- changing ---- */

static void note_stream(struct batch *batch, uint32_t number, struct stream *stream)
{
    if (batch->streams_count == batch->streams_capacity) {
        batch->streams_capacity = batch->streams_capacity ? batch->streams_capacity * 2 : 8;
        batch->streams = must_realloc(batch->streams, batch->streams_capacity * sizeof *batch->streams);
    }
    batch->streams[batch->streams_count++] = (struct stream_change){number, stream};
}

/* Stores the stream and makes it the batch's version of its number; the given one stays the caller's. */
static void stream_put(struct batch *batch, const struct stream *stream)
{
    batch->value.len = batch->key.len = 0;
    stream_encode(&batch->scratch, &batch->value, stream);
    key_of_kind(&batch->key, KEY_STREAM, stream->number);
    store_batch_put(&batch->writes, buf_view(&batch->key), buf_view(&batch->value));
    struct stream *own = stream_decode(buf_view(&batch->value));
    ensure(own != NULL);
    note_stream(batch, stream->number, own);
}

static uint32_t next_number(struct batch *batch)
{
    uint32_t number = batch->engine->next_table_number++;
    batch->value.len = 0;
    buf_u32(&batch->value, number + 1);
    store_batch_put(&batch->writes, key_next_table, buf_view(&batch->value));
    return number;
}

static bool stands_for(const struct stream *stream, const struct table_definition *definition)
{
    return stream && stream->since_ms == definition->stream_since_ms &&
           slice_equal(stream->table_name, definition->name);
}

/* A stream is known by its table's name and the time it began, which therefore must differ from those of the
 * streams before. */
static void find_own_time(struct batch *batch, struct table_definition *definition)
{
    struct engine *engine = batch->engine;
    for (bool taken = true; taken; definition->stream_since_ms += taken) {
        taken = false;
        for (uint32_t i = 0; i < engine->streams_count; i++)
            taken |= stands_for(engine->streams[i], definition);
        for (uint32_t i = 0; i < batch->streams_count; i++)
            taken |= stands_for(batch->streams[i].stream, definition);
    }
}

uint32_t stream_begin(struct batch *batch, struct table_definition *definition)
{
    find_own_time(batch, definition);
    struct engine *engine = batch->engine;
    uint32_t count = engine->stream_shards;
    struct stream stream = {.number = next_number(batch),
                            .table_name = definition->name,
                            .view = definition->stream,
                            .since_ms = definition->stream_since_ms,
                            .hash = definition->hash,
                            .range = definition->range,
                            .shard_count = count};
    stream.shards = arena_array(&batch->scratch, struct shard_description, count);
    for (uint32_t i = 0; i < count; i++)
        stream.shards[i] = (struct shard_description){
            .number = i + 1,
            .first = engine->next_sequence,
            .low = (uint32_t)(((uint64_t)i << 32) / count),
            .high = (uint32_t)((((uint64_t)i + 1) << 32) / count - 1),
            .created_ms = engine_now_ms(engine)};
    stream_put(batch, &stream);
    return stream.number;
}

/* A copy whose shards can be changed and added to. */
static struct stream stream_edit(struct batch *batch, const struct stream *stream, uint32_t more)
{
    struct stream copy = {.number = stream->number,
                          .table_name = stream->table_name,
                          .view = stream->view,
                          .since_ms = stream->since_ms,
                          .disabled_ms = stream->disabled_ms,
                          .hash = stream->hash,
                          .range = stream->range,
                          .shard_count = stream->shard_count};
    copy.shards = arena_array(&batch->scratch, struct shard_description, stream->shard_count + more);
    memcpy(copy.shards, stream->shards, stream->shard_count * sizeof *copy.shards);
    return copy;
}

/* A closed shard's last sequence is the last that could have been in it. One that never had a record ends
 * before it began. */
static void shard_close(struct shard_description *shard, uint64_t next_sequence)
{
    shard->last = next_sequence > shard->first ? next_sequence - 1 : shard->first;
}

void stream_end(struct batch *batch, uint32_t number)
{
    struct stream *stream = stream_in_batch(batch, number);
    if (!stream || stream->disabled_ms) return;
    struct stream ended = stream_edit(batch, stream, 0);
    ended.disabled_ms = engine_now_ms(batch->engine);
    for (uint32_t i = 0; i < ended.shard_count; i++)
        if (!ended.shards[i].last) shard_close(&ended.shards[i], batch->engine->next_sequence);
    batch->engine->next_sequence++; /* readers that wait for the next record learn that none will come */
    stream_put(batch, &ended);
}

void stream_forget(struct batch *batch, uint32_t number)
{
    batch->key.len = 0;
    key_of_kind(&batch->key, KEY_STREAM, number);
    store_batch_delete(&batch->writes, buf_view(&batch->key));
    note_stream(batch, number, NULL);
}

/* Closed shards whose records are all cut off; their children no longer have a parent to wait for. */
void stream_drop_shards(struct batch *batch, uint32_t number, uint64_t before)
{
    const struct stream *stream = stream_in_batch(batch, number);
    struct stream kept = stream_edit(batch, stream, 0);
    kept.shard_count = 0;
    for (uint32_t i = 0; i < stream->shard_count; i++)
        if (!stream->shards[i].last || stream->shards[i].last >= before)
            kept.shards[kept.shard_count++] = stream->shards[i];
    if (kept.shard_count < stream->shard_count) stream_put(batch, &kept);
}

static uint32_t next_shard_number(const struct stream *stream)
{
    uint32_t highest = 0; /* open shards are never dropped, and the newest is open: no number comes twice */
    for (uint32_t i = 0; i < stream->shard_count; i++)
        if (stream->shards[i].number > highest) highest = stream->shards[i].number;
    return highest + 1;
}

bool engine_shard_roll(struct batch *batch, uint32_t number, uint32_t shard_number, bool split)
{
    struct stream *stream = stream_in_batch(batch, number);
    if (!stream || stream->disabled_ms) return false;
    struct stream rolled = stream_edit(batch, stream, 2);
    struct shard_description *parent = rolled.shards, *end = rolled.shards + rolled.shard_count;
    while (parent < end && parent->number != shard_number) parent++;
    if (parent == end || parent->last) return false;
    uint32_t middle = parent->low + (parent->high - parent->low) / 2;
    split = split && parent->low < parent->high;
    /* Sequences are of the whole engine: skipping one keeps parent and child apart even when nothing was
     * written between. */
    uint64_t first = batch->engine->next_sequence++;
    shard_close(parent, first);
    struct shard_description child = {.number = next_shard_number(stream),
                                      .parent = parent->number,
                                      .first = first + 1,
                                      .low = parent->low,
                                      .high = split ? middle : parent->high,
                                      .created_ms = engine_now_ms(batch->engine)};
    *end++ = child;
    if (split) {
        child.number++;
        child.low = middle + 1;
        child.high = parent->high;
        *end++ = child;
    }
    rolled.shard_count = (uint32_t)(end - rolled.shards);
    stream_put(batch, &rolled);
    return true;
}

unsigned engine_shard_split(struct batch *batch, uint32_t number, uint32_t shard)
{
    const struct stream *stream = stream_in_batch(batch, number);
    unsigned count = 0;
    uint32_t shards = stream ? stream->shard_count : 0, more = shard ? 1 : 0;
    for (uint32_t i = 0; !shard && i < shards; i++) more += !stream->shards[i].last;
    if (shards + 2 * more > LIMIT_STREAM_SHARDS) return ENGINE_SHARDS_FULL;
    if (shard) return engine_shard_roll(batch, number, shard, true);
    uint32_t *open = arena_array(&batch->scratch, uint32_t, shards);
    for (uint32_t i = 0; i < shards; i++) open[i] = stream->shards[i].last ? 0 : stream->shards[i].number;
    for (uint32_t i = 0; i < shards; i++) count += open[i] && engine_shard_roll(batch, number, open[i], true);
    return count;
}

/* ---- records ---- */

static const struct shard_description *shard_of(const struct stream *stream, uint32_t hash)
{
    for (uint32_t i = stream->shard_count; i-- > 0;) {
        const struct shard_description *shard = &stream->shards[i];
        if (!shard->last && shard->low <= hash && hash <= shard->high) return shard;
    }
    return NULL;
}

static struct map keys_of(struct arena *arena, const struct table *table, const struct map *item)
{
    struct attribute *attributes = arena_array(arena, struct attribute, 2);
    struct map keys = {attributes, 0};
    attributes[keys.count++] = (struct attribute){table->keys.hash, *map_find(item, table->keys.hash)};
    if (table->keys.range.len)
        attributes[keys.count++] = (struct attribute){table->keys.range, *map_find(item, table->keys.range)};
    struct slice duplicate;
    ensure(map_sort(&keys, &duplicate));
    return keys;
}

static void put_record(struct batch *batch, const struct change *change, enum stream_view view,
                       int64_t now_ms)
{
    struct builder builder = {.arena = &batch->scratch};
    const struct map *any = change->new ? change->new : change->old;
    struct map keys = keys_of(&batch->scratch, change->table, any);
    size_t size = map_size(&keys);
    bool with_new = change->new && (view == STREAM_NEW_IMAGE || view == STREAM_NEW_AND_OLD_IMAGES);
    bool with_old = change->old && (view == STREAM_OLD_IMAGE || view == STREAM_NEW_AND_OLD_IMAGES);
    if (with_new) {
        builder_add(&builder, "new", (struct value){.type = VALUE_M, .map = *change->new});
        size += map_size(change->new);
    }
    if (with_old) {
        builder_add(&builder, "old", (struct value){.type = VALUE_M, .map = *change->old});
        size += map_size(change->old);
    }
    builder_add(&builder, "keys", (struct value){.type = VALUE_M, .map = keys});
    builder_integer(&builder, "event", !change->old ? 0 : change->new ? 1 : 2);
    builder_integer(&builder, "time", now_ms);
    builder_integer(&builder, "size", (int64_t)size);
    if (change->by_expiry) builder_truth(&builder, "expired", true);
    builder_text(&builder, "cause", batch->cause);
    builder_text(&builder, "token", batch->token);
    struct map record = builder_finish(&builder);
    batch->value.len = 0;
    item_encode(&batch->value, &record);
}

/* The first record of a minute leaves a mark by which older ones can be cut off later. */
static void mark_minute(struct batch *batch, int64_t now_ms)
{
    uint64_t minute = (uint64_t)(now_ms / MINUTE_MS);
    if (minute <= batch->engine->marked_minute) return; /* a clock that went back must not mix the marks up */
    batch->engine->marked_minute = minute;
    struct buf key = {0}, value = {0};
    buf_byte(&key, KEY_MINUTE);
    buf_u64(&key, minute);
    buf_u64(&value, batch->engine->next_sequence);
    store_batch_put(&batch->writes, buf_view(&key), buf_view(&value));
    buf_free(&key);
    buf_free(&value);
}

void stream_follow(struct batch *batch, const struct change *change)
{
    const struct table_definition *definition = &change->table->definition;
    if (definition->stream == STREAM_OFF) return;
    bool is_change = !change->old || !change->new || !slice_equal(change->old_image, change->new_image);
    if (!is_change && !batch->engine->records_no_change) return;
    struct stream *stream = stream_in_batch(batch, definition->stream_number);
    const struct shard_description *shard = stream
                                                ? shard_of(stream, bytes_u32(change->key.data + ITEM_HASH_AT))
                                                : NULL;
    if (!shard || stream->disabled_ms)
        return; /* the write was checked against a version of the table that is gone */
    int64_t now_ms = engine_now_ms(batch->engine);
    mark_minute(batch, now_ms);
    put_record(batch, change, stream->view, now_ms);
    batch->key.len = 0;
    key_of_kind(&batch->key, KEY_RECORD, stream->number);
    buf_u32(&batch->key, shard->number);
    buf_u64(&batch->key, batch->engine->next_sequence++);
    store_batch_put(&batch->writes, buf_view(&batch->key), buf_view(&batch->value));
    batch->bytes += batch->value.len;
}

/* ---- reading ---- */

struct record_walk {
    engine_record_visitor visitor;
    void *context;
};

static bool visit_record(void *context, struct slice key, struct slice value)
{
    struct record_walk *walk = context;
    return key.len == RECORD_KEY && walk->visitor(walk->context, bytes_u64(key.data + 9), value);
}

static void record_key(struct buf *out, uint32_t stream, uint32_t shard, uint64_t sequence)
{
    key_of_kind(out, KEY_RECORD, stream);
    buf_u32(out, shard);
    buf_u64(out, sequence);
}

enum engine_result engine_stream_read(struct engine *engine, uint32_t stream, uint32_t shard, uint64_t from,
                                      engine_record_visitor visitor, void *context)
{
    struct record_walk walk = {visitor, context};
    struct buf first = {0}, end = {0};
    record_key(&first, stream, shard, from);
    record_key(&end, stream, shard, UINT64_MAX);
    enum store_result result = store_scan(engine->store, buf_view(&first), buf_view(&end), false,
                                          visit_record, &walk);
    buf_free(&first);
    buf_free(&end);
    return result == STORE_OK ? ENGINE_OK : ENGINE_FAILED;
}

void engine_watch(struct engine *engine, struct engine_watcher *watcher)
{
    pthread_mutex_lock(&engine->watchers_lock);
    watcher->next = engine->watchers;
    engine->watchers = watcher;
    pthread_mutex_unlock(&engine->watchers_lock);
}

void engine_unwatch(struct engine *engine, struct engine_watcher *watcher)
{
    pthread_mutex_lock(&engine->watchers_lock);
    struct engine_watcher **place = &engine->watchers;
    while (*place && *place != watcher) place = &(*place)->next;
    if (*place) *place = watcher->next;
    pthread_mutex_unlock(&engine->watchers_lock);
}
