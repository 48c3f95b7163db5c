/* What is in memory: entries in the order of their names, replaced as a whole. Readers hold the lock for a
 * binary search and a count; everything that takes long happens before an entry is published. */
#include <stdlib.h>

#include "base/fail.h"
#include "func/registry.h"

/* ---- counted things ---- */

struct function *function_keep(struct function *function)
{
    atomic_fetch_add_explicit(&function->references, 1, memory_order_relaxed);
    return function;
}

void function_release(struct function *function)
{
    if (!function || atomic_fetch_sub_explicit(&function->references, 1, memory_order_acq_rel) != 1) return;
    struct arena arena = function->arena; /* the function lives in it */
    arena_free(&arena);
}

struct entry *entry_keep(struct entry *entry)
{
    atomic_fetch_add_explicit(&entry->references, 1, memory_order_relaxed);
    return entry;
}

void entry_release(struct entry *entry)
{
    if (!entry || atomic_fetch_sub_explicit(&entry->references, 1, memory_order_acq_rel) != 1) return;
    for (uint32_t i = 0; i < entry->count; i++) function_release(entry->parts[i].function);
    struct arena arena = entry->arena;
    arena_free(&arena);
}

/* ---- parts of an entry ---- */

static int compare_name(const void *name, const void *part)
{
    return slice_compare(*(const struct slice *)name, ((const struct part *)part)->name);
}

const struct part *entry_part(const struct entry *entry, struct slice name)
{
    return entry->count ? bsearch(&name, entry->parts, entry->count, sizeof *entry->parts, compare_name) : NULL;
}

struct slice part_suffix(const struct part *part, const char *prefix)
{
    struct slice start = slice_of(prefix);
    return slice_starts(part->name, start) ? slice_from(part->name, start.len) : SLICE_NONE;
}

const struct part *entry_part_of(const struct entry *entry, const char *prefix, struct slice qualifier)
{
    for (uint32_t i = 0; i < entry->count; i++) {
        struct slice suffix = part_suffix(&entry->parts[i], prefix);
        if (suffix.data && slice_equal(suffix, qualifier)) return &entry->parts[i];
    }
    return NULL;
}

bool part_is_version(const struct part *part)
{
    return part->function != NULL;
}

const struct part *entry_qualified(const struct entry *entry, struct slice qualifier)
{
    const struct part *part = entry_part(entry, qualifier.len ? qualifier : SLICE(PART_LATEST));
    if (part && part_is_version(part)) return part;
    return entry_part_of(entry, PART_ALIAS, qualifier);
}

static int compare_versions(const void *a, const void *b)
{
    struct slice first = (*(const struct part *const *)a)->name,
                 second = (*(const struct part *const *)b)->name;
    if (first.data[0] == '$' || second.data[0] == '$')
        return (second.data[0] == '$') - (first.data[0] == '$');
    if (first.len != second.len) return first.len < second.len ? -1 : 1;
    return slice_compare(first, second);
}

const struct part **entry_versions(const struct entry *entry, struct arena *arena, uint32_t *count)
{
    const struct part **versions = arena_array(arena, const struct part *, entry->count);
    *count = 0;
    for (uint32_t i = 0; i < entry->count; i++)
        if (part_is_version(&entry->parts[i])) versions[(*count)++] = &entry->parts[i];
    qsort(versions, *count, sizeof *versions, compare_versions);
    return versions;
}

/* ---- the index ---- */

/* The place of the name: where it is, or where it would be. */
static uint32_t place_of(const struct registry *registry, struct slice name, bool *found)
{
    uint32_t low = 0, high = registry->count;
    *found = false;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        int order = slice_compare(registry->entries[middle]->name, name);
        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct entry *registry_known(struct registry *registry, struct slice name)
{
    bool found;
    pthread_mutex_lock(&registry->lock);
    uint32_t place = place_of(registry, name, &found);
    struct entry *entry = found ? entry_keep(registry->entries[place]) : NULL;
    pthread_mutex_unlock(&registry->lock);
    return entry;
}

uint32_t registry_size(struct registry *registry)
{
    pthread_mutex_lock(&registry->lock);
    uint32_t count = registry->count;
    pthread_mutex_unlock(&registry->lock);
    return count;
}

struct entry **registry_list(struct registry *registry, struct slice after, uint32_t max, struct arena *arena,
                             uint32_t *count)
{
    bool found;
    *count = 0;
    pthread_mutex_lock(&registry->lock);
    uint32_t place = place_of(registry, after, &found);
    if (found) place++;
    uint32_t left = registry->count - place;
    struct entry **list = arena_array(arena, struct entry *, left < max ? left : max);
    while (*count < max && place < registry->count) list[(*count)++] = entry_keep(registry->entries[place++]);
    pthread_mutex_unlock(&registry->lock);
    return list;
}

static void insert_at(struct registry *registry, uint32_t place, struct entry *entry)
{
    if (registry->count == registry->room) {
        registry->room = registry->room ? registry->room * 2 : 64;
        registry->entries = must_realloc(registry->entries, registry->room * sizeof *registry->entries);
    }
    memmove(registry->entries + place + 1, registry->entries + place,
            (registry->count - place) * sizeof *registry->entries);
    registry->entries[place] = entry;
    registry->count++;
}

/* Processes of what the name was before end: all of them when it is gone, else those of older revisions. */
static void retire(struct registry *registry, const struct entry *old, const struct entry *entry)
{
    struct pool *pool = registry->func->pool;
    const struct part *before = entry_part(old, SLICE(PART_LATEST));
    const struct part *now = entry_part(entry, SLICE(PART_LATEST));
    if (!pool || !before || !before->function) return;
    if (!now || !now->function)
        pool_retire(pool, old->name, UINT64_MAX);
    else if (now->function->revision != before->function->revision)
        pool_retire(pool, old->name, now->function->revision);
}

void registry_publish(struct registry *registry, struct entry *entry)
{
    bool found;
    pthread_mutex_lock(&registry->lock);
    uint32_t place = place_of(registry, entry->name, &found);
    struct entry *old = found ? registry->entries[place] : NULL;
    if (!entry->count) {
        if (found) {
            registry->count--;
            memmove(registry->entries + place, registry->entries + place + 1,
                    (registry->count - place) * sizeof *registry->entries);
        }
    } else if (found) {
        registry->entries[place] = entry_keep(entry);
    } else {
        insert_at(registry, place, entry_keep(entry));
    }
    pthread_mutex_unlock(&registry->lock);
    if (old) retire(registry, old, entry);
    entry_release(old);
    entry_release(entry);
}
