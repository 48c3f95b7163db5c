/* A set: vectors in blocks of some megabytes, what belongs to each beside them, and a table from keys to
 * slots. A small set, as one of many tenants is, has one block that doubles until it is a whole one; a large one
 * has sketches of its vectors, too (sketch.c). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fail.h"
#include "base/hash.h"
#include "vector/internal.h"

#define BLOCK_BYTES     (4u * 1024 * 1024)
#define HUGE_PAGE       (2u * 1024 * 1024)
#define FIRST_SLOTS     2
#define SKETCH_FLOATS   64 /* shorter vectors are compared as fast as their sketches would be */
#define MIN_TABLE_SLOTS 8

struct vector_set *vector_set_new(enum vector_metric metric, uint32_t dimensions, uint32_t exact_max)
{
    ensure(dimensions > 0 && dimensions <= LIMIT_VECTOR_DIMENSIONS);
    struct vector_set *set = must_zero(1, sizeof *set);
    set->metric = metric;
    set->dimensions = dimensions;
    set->stride = (dimensions + VECTOR_PAD - 1) / VECTOR_PAD * VECTOR_PAD;
    set->kernel = vector_kernel();
    set->block_slots = 1;
    while ((uint64_t)set->block_slots * 2 * set->stride * sizeof(float) <= BLOCK_BYTES) set->block_slots *= 2;
    set->bytes = sizeof *set;
    set->exact_max = set->stride < SKETCH_FLOATS ? UINT32_MAX : exact_max;
    return set;
}

void vector_set_free(struct vector_set *set)
{
    if (!set) return;
    vector_set_clear(set);
    free(set);
}

void vector_set_clear(struct vector_set *set)
{
    for (uint32_t i = 0; i < set->count; i++) free(set->entries[i]);
    for (uint32_t i = 0; i < set->block_count; i++) free(set->blocks[i]);
    free(set->blocks);
    free(set->entries);
    free(set->table);
    sketch_free(set->sketch);
    *set = (struct vector_set){.metric = set->metric,
                               .dimensions = set->dimensions,
                               .stride = set->stride,
                               .kernel = set->kernel,
                               .block_slots = set->block_slots,
                               .bytes = sizeof *set,
                               .exact_max = set->exact_max,
                               .searches = set->searches};
}

uint32_t vector_set_count(const struct vector_set *set)
{
    return set->count;
}

bool vector_set_is_searched(const struct vector_set *set)
{
    return set->searches != NULL;
}

uint64_t vector_set_bytes(const struct vector_set *set)
{
    return set->bytes;
}

static uint64_t entry_bytes(const struct vector_entry *entry)
{
    return sizeof *entry + entry->key_len + entry->note_len + 16; /* 16: what malloc keeps for itself */
}

/* ---- the table ---- */

/* Where the key stands, or the free place where it belongs. */
static uint32_t *table_place(const struct vector_set *set, uint64_t hash, struct slice key)
{
    uint32_t at = (uint32_t)hash & (set->table_slots - 1);
    for (;; at = (at + 1) & (set->table_slots - 1)) {
        if (!set->table[at]) return &set->table[at];
        const struct vector_entry *entry = set->entries[set->table[at] - 1];
        if (entry->hash == hash && slice_equal(vector_entry_key(entry), key)) return &set->table[at];
    }
}

static void resize_table(struct vector_set *set, uint32_t slots)
{
    set->bytes += ((uint64_t)slots - set->table_slots) * sizeof *set->table;
    free(set->table);
    set->table = must_zero(slots, sizeof *set->table);
    set->table_slots = slots;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct vector_entry *entry = set->entries[i];
        *table_place(set, entry->hash, vector_entry_key(entry)) = i + 1;
    }
}

/* Those behind it that belong before the hole move up, so that no search ends at it. */
static void table_remove(struct vector_set *set, uint32_t *place)
{
    uint32_t mask = set->table_slots - 1, hole = (uint32_t)(place - set->table), at = hole;
    for (;;) {
        at = (at + 1) & mask;
        if (!set->table[at]) break;
        uint32_t home = (uint32_t)set->entries[set->table[at] - 1]->hash & mask;
        if (((at - home) & mask) < ((at - hole) & mask)) continue;
        set->table[hole] = set->table[at];
        hole = at;
    }
    set->table[hole] = 0;
}

/* ---- slots ---- */

static float *block_new(struct vector_set *set)
{
    size_t bytes = (size_t)set->block_slots * set->stride * sizeof(float);
    if (bytes < HUGE_PAGE) return vector_memory(bytes / sizeof(float));
    float *block = must_align(HUGE_PAGE, bytes);
    madvise(block, bytes, MADV_HUGEPAGE); /* a search walks through all of it: fewer pages to look up */
    memset(block, 0, bytes);
    return block;
}

static void resize_first(struct vector_set *set, uint32_t slots)
{
    uint64_t vector_bytes = set->stride * sizeof(float);
    float *block = slots == set->block_slots ? block_new(set) : vector_memory((size_t)slots * set->stride);
    memcpy(block, set->blocks[0], set->count * vector_bytes);
    free(set->blocks[0]);
    set->blocks[0] = block;
    set->bytes += ((uint64_t)slots - set->first_slots) * vector_bytes;
    set->first_slots = slots;
}

/* The first block doubles until it is a whole one; then whole ones follow. */
static void add_room(struct vector_set *set)
{
    uint64_t vector_bytes = set->stride * sizeof(float);
    if (set->block_count == 1 && set->first_slots < set->block_slots) {
        resize_first(set, set->first_slots * 2);
        return;
    }
    set->blocks = must_realloc(set->blocks, (set->block_count + 1) * sizeof *set->blocks);
    uint32_t slots = set->block_count || set->block_slots < FIRST_SLOTS ? set->block_slots : FIRST_SLOTS;
    bool whole = slots == set->block_slots;
    set->blocks[set->block_count++] = whole ? block_new(set) : vector_memory((size_t)slots * set->stride);
    set->bytes += slots * vector_bytes;
    if (set->block_count == 1) set->first_slots = slots;
}

static uint32_t room(const struct vector_set *set)
{
    return set->block_count > 1 ? set->block_count * set->block_slots : set->block_count * set->first_slots;
}

static void resize_entries(struct vector_set *set, uint32_t capacity)
{
    set->bytes += ((uint64_t)capacity - set->entries_capacity) * sizeof *set->entries;
    set->entries = must_realloc(set->entries, capacity * sizeof *set->entries);
    set->entries_capacity = capacity;
}

static uint32_t take_slot(struct vector_set *set)
{
    if (set->count == room(set)) add_room(set);
    if (set->count == set->entries_capacity)
        resize_entries(set, set->entries_capacity ? set->entries_capacity * 2 : FIRST_SLOTS);
    set->entries[set->count] = NULL;
    return set->count++;
}

/* Much later than it was taken, so that one that comes and goes does not cost a copy each time. */
static void give_room_back(struct vector_set *set)
{
    uint64_t vector_bytes = set->stride * sizeof(float);
    if (set->block_count > 1 && room(set) - set->count >= set->block_slots + set->block_slots / 2) {
        free(set->blocks[--set->block_count]);
        set->bytes -= set->block_slots * vector_bytes;
    } else if (set->block_count == 1 && set->first_slots > FIRST_SLOTS &&
               set->count <= set->first_slots / 4) {
        resize_first(set, set->first_slots / 2);
    }
    if (set->entries_capacity > FIRST_SLOTS && set->count <= set->entries_capacity / 4)
        resize_entries(set, set->entries_capacity / 2);
    if (set->table_slots > MIN_TABLE_SLOTS && set->count <= set->table_slots / 8)
        resize_table(set, set->table_slots / 2);
}

/* The last vector moves there. */
static void give_slot(struct vector_set *set, uint32_t slot)
{
    uint32_t last = set->count - 1;
    if (slot != last) {
        struct vector_entry *moved = set->entries[last];
        *table_place(set, moved->hash, vector_entry_key(moved)) = slot + 1;
        set->entries[slot] = moved;
        memcpy(vector_at(set, slot), vector_at(set, last), set->stride * sizeof(float));
    }
    set->count--;
    give_room_back(set);
    sketch_shrink(set, slot);
    for (struct vector_search *at = set->searches; at; at = at->next_search) vector_search_removed(at, slot);
}

/* ---- putting and removing ---- */

/* Where the angle counts vectors are kept with length 1: the cosine is then a dot product, and no product can
 * overflow. One without a length stays all zeros. */
void vector_place(enum vector_metric metric, uint32_t dimensions, const float *vector, float *out)
{
    double length = 0;
    if (metric != VECTOR_COSINE) {
        memcpy(out, vector, dimensions * sizeof *vector);
        return;
    }
    for (uint32_t i = 0; i < dimensions; i++) length += (double)vector[i] * (double)vector[i];
    double scale = length > 0 ? 1 / sqrt(length) : 0;
    for (uint32_t i = 0; i < dimensions; i++) out[i] = (float)((double)vector[i] * scale);
}

static void set_entry(struct vector_set *set, uint32_t slot, uint64_t hash, struct slice key,
                      struct slice note, uint64_t stamp)
{
    struct vector_entry *entry = must_alloc(sizeof *entry + key.len + note.len);
    *entry = (struct vector_entry){hash, stamp, (uint32_t)key.len, (uint32_t)note.len};
    memcpy(entry->data, key.data, key.len);
    if (note.len) memcpy(entry->data + key.len, note.data, note.len);
    if (set->entries[slot]) set->bytes -= entry_bytes(set->entries[slot]);
    free(set->entries[slot]);
    set->entries[slot] = entry;
    set->bytes += entry_bytes(entry);
}

void vector_set_put(struct vector_set *set, struct slice key, const float *vector, struct slice note,
                    uint64_t stamp)
{
    uint64_t hash = hash_bytes(key);
    if ((set->count + 1) * 4 > set->table_slots * 3)
        resize_table(set, set->table_slots ? set->table_slots * 2 : MIN_TABLE_SLOTS);
    uint32_t *place = table_place(set, hash, key);
    if (!*place) *place = take_slot(set) + 1;
    uint32_t slot = *place - 1;
    set_entry(set, slot, hash, key, note, stamp);
    vector_place(set->metric, set->dimensions, vector, vector_at(set, slot));
    if (set->sketch || set->count > set->exact_max) sketch_follow(set, slot);
}

bool vector_set_renote(struct vector_set *set, struct slice key, struct slice note, uint64_t stamp)
{
    if (!set->count) return false;
    uint64_t hash = hash_bytes(key);
    const uint32_t *place = table_place(set, hash, key);
    if (!*place) return false;
    set_entry(set, *place - 1, hash, key, note, stamp);
    return true;
}

bool vector_set_has(const struct vector_set *set, struct slice key)
{
    return set->count && *table_place(set, hash_bytes(key), key);
}

bool vector_set_remove(struct vector_set *set, struct slice key)
{
    if (!set->count) return false;
    uint32_t *place = table_place(set, hash_bytes(key), key);
    if (!*place) return false;
    uint32_t slot = *place - 1;
    table_remove(set, place);
    set->bytes -= entry_bytes(set->entries[slot]);
    free(set->entries[slot]);
    give_slot(set, slot);
    return true;
}
