/* Verifying streams: every record stands in a shard that could have taken it, and where records carry new
 * images, the last one of each item is what the item is now. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/hash.h"
#include "engine/internal.h"

/* What the newest record of an item said: hash of its image, 0 when it was removed. */
struct last_image {
    uint64_t key_hash, image_hash, sequence;
    uint32_t stream;
    struct slice key; /* the item's stored key */
};

struct stream_check {
    struct store *store;
    const struct catalog *catalog;
    uint64_t *records;
    void (*fault)(void *context, const char *sentence);
    void *context;
    struct stream **streams;
    uint32_t stream_count, stream_capacity;
    uint64_t next_sequence;
    struct last_image *images; /* hash table; key.data NULL: free */
    uint64_t image_slots, image_count;
    struct arena arena, scratch;
};

static void tell(struct stream_check *check, const char *format, uint32_t stream, unsigned long long sequence)
{
    char sentence[200];
    snprintf(sentence, sizeof sentence, format, stream, sequence);
    check->fault(check->context, sentence);
}

static bool load_stream(void *context, struct slice key, struct slice value)
{
    struct stream_check *check = context;
    struct stream *stream = stream_decode(value);
    if (!stream || key.len != 5) {
        tell(check, "stream %u is damaged (%llu bytes)", key.len == 5 ? bytes_u32(key.data + 1) : 0,
             value.len);
        if (stream) engine_stream_release(stream);
        return true;
    }
    if (check->stream_count == check->stream_capacity) {
        check->stream_capacity = check->stream_capacity ? check->stream_capacity * 2 : 16;
        check->streams = must_realloc(check->streams, check->stream_capacity * sizeof *check->streams);
    }
    check->streams[check->stream_count++] = stream;
    return true;
}

static const struct stream *find_stream(const struct stream_check *check, uint32_t number)
{
    for (uint32_t i = 0; i < check->stream_count; i++)
        if (check->streams[i]->number == number) return check->streams[i];
    return NULL;
}

/* The table that writes to the stream now, or NULL. */
static const struct table *writing_table(const struct stream_check *check, const struct stream *stream)
{
    for (uint32_t i = 0; i < check->catalog->count; i++) {
        const struct table_definition *definition = &check->catalog->tables[i]->definition;
        if (definition->stream != STREAM_OFF && definition->stream_number == stream->number)
            return check->catalog->tables[i];
    }
    return NULL;
}

static struct last_image *image_slot(struct last_image *images, uint64_t slots, uint64_t hash,
                                     struct slice key)
{
    uint64_t at = hash & (slots - 1);
    while (images[at].key.data && !(images[at].key_hash == hash && slice_equal(images[at].key, key)))
        at = (at + 1) & (slots - 1);
    return &images[at];
}

static void grow_images(struct stream_check *check)
{
    uint64_t slots = check->image_slots ? check->image_slots * 2 : 1024;
    struct last_image *larger = must_zero(slots, sizeof *larger);
    for (uint64_t i = 0; i < check->image_slots; i++)
        if (check->images[i].key.data)
            *image_slot(larger, slots, check->images[i].key_hash, check->images[i].key) = check->images[i];
    free(check->images);
    check->images = larger;
    check->image_slots = slots;
}

/* Records come shard by shard: the newest is told by its sequence, not by its place. */
static void note_image(struct stream_check *check, uint32_t stream, struct slice key, uint64_t sequence,
                       const struct map *image)
{
    if (check->image_count * 2 >= check->image_slots) grow_images(check);
    uint64_t hash = hash_bytes(key);
    struct last_image *slot = image_slot(check->images, check->image_slots, hash, key);
    if (slot->key.data && slot->sequence > sequence) return;
    if (!slot->key.data) {
        slot->key = arena_copy(&check->arena, key);
        check->image_count++;
    }
    struct buf bytes = {0};
    if (image) item_encode(&bytes, image);
    slot->key_hash = hash;
    slot->sequence = sequence;
    slot->stream = stream;
    slot->image_hash = image ? hash_bytes(buf_view(&bytes)) | 1 : 0;
    buf_free(&bytes);
}

static bool shard_takes(const struct stream *stream, uint32_t number, uint64_t sequence, uint32_t hash)
{
    for (uint32_t i = 0; i < stream->shard_count; i++) {
        const struct shard_description *shard = &stream->shards[i];
        if (shard->number != number) continue;
        return shard->first <= sequence && (!shard->last || sequence <= shard->last) && shard->low <= hash &&
               hash <= shard->high;
    }
    return false;
}

static bool check_record(void *context, struct slice key, struct slice value)
{
    struct stream_check *check = context;
    struct map record;
    arena_reset(&check->scratch);
    ++*check->records;
    uint32_t number = key.len == RECORD_KEY ? bytes_u32(key.data + 1) : 0;
    uint64_t sequence = key.len == RECORD_KEY ? bytes_u64(key.data + 9) : 0;
    const struct stream *stream = find_stream(check, number);
    const struct value *keys = NULL, *hash = NULL, *range = NULL;
    if (stream && item_decode(&check->scratch, value, &record)) keys = map_find(&record, SLICE("keys"));
    if (keys && keys->type == VALUE_M) hash = map_find(&keys->map, stream->hash);
    if (keys && keys->type == VALUE_M && stream->range.len) range = map_find(&keys->map, stream->range);
    if (!hash || (stream->range.len && !range)) {
        tell(check, "stream %u: record %llu is damaged, or of no stream", number, sequence);
        return true;
    }
    const struct table *table = writing_table(check, stream);
    if (sequence >= check->next_sequence)
        tell(check, "stream %u: record %llu is not below the next sequence", number, sequence);
    if (!table) return true;
    struct buf item_key = {0};
    engine_item_key(&item_key, table, hash, range);
    if (!shard_takes(stream, bytes_u32(key.data + 5), sequence, bytes_u32(item_key.data + ITEM_HASH_AT)))
        tell(check, "stream %u: record %llu stands in a shard that could not have taken it", number,
             sequence);
    if (stream->view == STREAM_NEW_IMAGE || stream->view == STREAM_NEW_AND_OLD_IMAGES) {
        const struct value *image = map_find(&record, SLICE("new"));
        note_image(check, number, buf_view(&item_key), sequence, image ? &image->map : NULL);
    }
    buf_free(&item_key);
    return true;
}

static void compare_images(struct stream_check *check)
{
    struct buf bytes = {0};
    for (uint64_t i = 0; i < check->image_slots; i++) {
        const struct last_image *last = &check->images[i];
        if (!last->key.data) continue;
        bytes.len = 0;
        bool there = store_get(check->store, last->key, &bytes) == STORE_OK;
        uint64_t hash = there ? hash_bytes(buf_view(&bytes)) | 1 : 0;
        if (hash != last->image_hash)
            tell(check, "stream %u: record %llu is the last of its item, but differs from it", last->stream,
                 last->sequence);
    }
    buf_free(&bytes);
}

static bool scan_kind(struct stream_check *check, char kind, store_visitor visitor)
{
    const char from = kind, to = (char)(kind + 1);
    return store_scan(check->store, (struct slice){&from, 1}, (struct slice){&to, 1}, false, visitor,
                      check) == STORE_OK;
}

bool check_streams(struct store *store, const struct catalog *catalog, uint64_t *records,
                   void (*fault)(void *context, const char *sentence), void *context)
{
    struct stream_check check = {.store = store,
                                 .catalog = catalog,
                                 .records = records,
                                 .fault = fault,
                                 .context = context,
                                 .next_sequence = 1};
    struct buf bytes = {0};
    if (store_get(store, key_next_sequence, &bytes) == STORE_OK && bytes.len == 8)
        check.next_sequence = bytes_u64(bytes.data);
    bool read = scan_kind(&check, KEY_STREAM, load_stream) && scan_kind(&check, KEY_RECORD, check_record);
    if (read) compare_images(&check);
    for (uint32_t i = 0; i < check.stream_count; i++) engine_stream_release(check.streams[i]);
    free(check.streams);
    free(check.images);
    buf_free(&bytes);
    arena_free(&check.arena);
    arena_free(&check.scratch);
    return read;
}
