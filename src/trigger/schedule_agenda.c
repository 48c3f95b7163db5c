/* The agenda: when each schedule is to be looked at next. A heap by time, whose entries are found by name
 * through a table of buckets. */
#include <stdlib.h>

#include "base/fail.h"
#include "base/hash.h"
#include "trigger/schedule.h"

#define BUCKETS_MIN 64

static uint64_t hash_of(struct slice group, struct slice name)
{
    return hash_bytes(group) * 31 + hash_bytes(name);
}

struct slice agenda_group(const struct agenda_entry *entry)
{
    return (struct slice){entry->names, entry->group_len};
}

struct slice agenda_name(const struct agenda_entry *entry)
{
    return (struct slice){entry->names + entry->group_len, entry->name_len};
}

void agenda_free(struct agenda *agenda)
{
    for (uint32_t i = 0; i < agenda->count; i++) free(agenda->heap[i]);
    free(agenda->heap);
    free(agenda->buckets);
    *agenda = (struct agenda){0};
}

/* ---- the heap ---- */

static void put_at(struct agenda *agenda, uint32_t place, struct agenda_entry *entry)
{
    agenda->heap[place] = entry;
    entry->place = place;
}

/* Moves an entry whose time has changed up or down to where it belongs. */
static void heap_settle(struct agenda *agenda, struct agenda_entry *entry)
{
    uint32_t place = entry->place;
    while (place && agenda->heap[(place - 1) / 2]->at_ms > entry->at_ms) {
        put_at(agenda, place, agenda->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    for (;;) {
        uint32_t child = place * 2 + 1;
        if (child + 1 < agenda->count && agenda->heap[child + 1]->at_ms < agenda->heap[child]->at_ms) child++;
        if (child >= agenda->count || agenda->heap[child]->at_ms >= entry->at_ms) break;
        put_at(agenda, place, agenda->heap[child]);
        place = child;
    }
    put_at(agenda, place, entry);
}

/* ---- finding by name ---- */

static struct agenda_entry **find_link(const struct agenda *agenda, struct slice group, struct slice name)
{
    struct agenda_entry **link = &agenda->buckets[hash_of(group, name) & (agenda->bucket_count - 1)];
    while (*link && (!slice_equal(agenda_group(*link), group) || !slice_equal(agenda_name(*link), name)))
        link = &(*link)->chain;
    return link;
}

struct agenda_entry *agenda_find(const struct agenda *agenda, struct slice group, struct slice name)
{
    return agenda->bucket_count ? *find_link(agenda, group, name) : NULL;
}

static void buckets_grow(struct agenda *agenda)
{
    uint32_t count = agenda->bucket_count ? agenda->bucket_count * 2 : BUCKETS_MIN;
    free(agenda->buckets);
    agenda->buckets = must_zero(count, sizeof *agenda->buckets);
    agenda->bucket_count = count;
    for (uint32_t i = 0; i < agenda->count; i++) {
        struct agenda_entry *entry = agenda->heap[i];
        uint64_t hash = hash_of(agenda_group(entry), agenda_name(entry));
        struct agenda_entry **link = &agenda->buckets[hash & (count - 1)];
        entry->chain = *link;
        *link = entry;
    }
}

static struct agenda_entry *entry_add(struct agenda *agenda, struct slice group, struct slice name)
{
    struct agenda_entry *entry = must_zero(1, sizeof *entry + group.len + name.len);
    if (agenda->count == agenda->room) {
        agenda->room = agenda->room ? agenda->room * 2 : BUCKETS_MIN;
        agenda->heap = must_realloc(agenda->heap, agenda->room * sizeof *agenda->heap);
    }
    if (agenda->count >= agenda->bucket_count) buckets_grow(agenda);
    entry->group_len = group.len;
    entry->name_len = name.len;
    memcpy(entry->names, group.data, group.len);
    memcpy(entry->names + group.len, name.data, name.len);
    struct agenda_entry **link = find_link(agenda, group, name);
    entry->chain = *link;
    *link = entry;
    put_at(agenda, agenda->count++, entry);
    return entry;
}

struct agenda_entry *agenda_set(struct agenda *agenda, struct slice group, struct slice name, int64_t at_ms)
{
    struct agenda_entry *entry = agenda_find(agenda, group, name);
    if (!entry) entry = entry_add(agenda, group, name);
    entry->at_ms = at_ms;
    heap_settle(agenda, entry);
    return entry;
}

static void entry_remove(struct agenda *agenda, struct agenda_entry *entry)
{
    struct agenda_entry *last = agenda->heap[--agenda->count];
    *find_link(agenda, agenda_group(entry), agenda_name(entry)) = entry->chain;
    if (last != entry) {
        put_at(agenda, entry->place, last);
        heap_settle(agenda, last);
    }
    free(entry);
}

void agenda_remove(struct agenda *agenda, struct slice group, struct slice name)
{
    struct agenda_entry *entry = agenda_find(agenda, group, name);
    if (entry) entry_remove(agenda, entry);
}

struct agenda_entry *agenda_first(const struct agenda *agenda)
{
    return agenda->count ? agenda->heap[0] : NULL;
}

void agenda_sweep(struct agenda *agenda, uint64_t round)
{
    struct agenda_entry **gone = must_alloc((agenda->count + 1) * sizeof *gone);
    uint32_t count = 0;
    for (uint32_t i = 0; i < agenda->count; i++)
        if (agenda->heap[i]->round < round) gone[count++] = agenda->heap[i];
    for (uint32_t i = 0; i < count; i++) entry_remove(agenda, gone[i]);
    free(gone);
}
