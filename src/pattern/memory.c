/* A table of fixed size: a topic may stand in a few places, and takes that of the oldest where all are taken. */
#include "pattern/memory.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/limits.h"

#define WAYS  4
#define SETS  (LIMIT_REMEMBERED / WAYS)
#define LOCKS 16

struct entry {
    uint64_t topic;
    char *data; /* NULL: the place is free */
    size_t len, room;
    uint32_t written; /* by the set's count */
};

struct set {
    struct entry entries[WAYS];
    uint32_t writes;
};

struct memory {
    pthread_mutex_t locks[LOCKS];
    struct set sets[SETS];
};

struct memory *memory_new(void)
{
    struct memory *memory = must_zero(1, sizeof *memory);
    for (size_t i = 0; i < LOCKS; i++) ensure(pthread_mutex_init(&memory->locks[i], NULL) == 0);
    return memory;
}

void memory_free(struct memory *memory)
{
    for (size_t i = 0; i < SETS; i++)
        for (size_t way = 0; way < WAYS; way++) free(memory->sets[i].entries[way].data);
    for (size_t i = 0; i < LOCKS; i++) pthread_mutex_destroy(&memory->locks[i]);
    free(memory);
}

static struct entry *entry_find(struct set *set, uint64_t topic)
{
    for (size_t way = 0; way < WAYS; way++)
        if (set->entries[way].data && set->entries[way].topic == topic) return &set->entries[way];
    return NULL;
}

static struct slice recall(void *self, uint64_t topic, struct arena *arena)
{
    struct memory *memory = self;
    size_t place = topic % SETS;
    pthread_mutex_lock(&memory->locks[place % LOCKS]);
    const struct entry *entry = entry_find(&memory->sets[place], topic);
    struct slice what = entry ? arena_copy(arena, (struct slice){entry->data, entry->len}) : SLICE_NONE;
    pthread_mutex_unlock(&memory->locks[place % LOCKS]);
    return what;
}

static struct entry *entry_to_fill(struct set *set, uint64_t topic)
{
    struct entry *entry = entry_find(set, topic);
    for (size_t way = 0; !entry && way < WAYS; way++)
        if (!set->entries[way].data) entry = &set->entries[way];
    if (entry) return entry;
    entry = &set->entries[0];
    for (size_t way = 1; way < WAYS; way++)
        if (set->writes - set->entries[way].written > set->writes - entry->written)
            entry = &set->entries[way];
    return entry;
}

static void entry_clear(struct entry *entry)
{
    free(entry->data);
    *entry = (struct entry){0};
}

static void remember(void *self, uint64_t topic, struct slice what)
{
    struct memory *memory = self;
    size_t place = topic % SETS;
    struct set *set = &memory->sets[place];
    pthread_mutex_lock(&memory->locks[place % LOCKS]);
    if (what.data && what.len <= LIMIT_REMEMBERED_BYTES) {
        struct entry *entry = entry_to_fill(set, topic);
        if (entry->room < what.len || entry->room > 2 * what.len + 64) {
            entry_clear(entry);
            entry->room = what.len + 16;
            entry->data = must_alloc(entry->room);
        }
        entry->topic = topic;
        entry->len = what.len;
        memcpy(entry->data, what.data, what.len);
        entry->written = set->writes++;
    } else {
        struct entry *entry = entry_find(set, topic);
        if (entry) entry_clear(entry);
    }
    pthread_mutex_unlock(&memory->locks[place % LOCKS]);
}

struct flow_memory memory_for_flows(struct memory *memory)
{
    return (struct flow_memory){.recall = recall, .remember = remember, .self = memory};
}
