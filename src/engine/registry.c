/* The tables by name. Few and rarely changed: a sorted array under a read-write lock. */
#include <stdlib.h>

#include "base/fail.h"
#include "engine/internal.h"

bool table_attribute_type(const struct table_definition *definition, struct slice name, enum value_type *type)
{
    for (uint32_t i = 0; i < definition->attribute_count; i++) {
        if (!slice_equal(definition->attributes[i].name, name)) continue;
        *type = definition->attributes[i].type;
        return true;
    }
    return false;
}

struct table *table_new(const struct table_definition *definition, uint32_t number,
                        struct table_counts *counts)
{
    struct table *table = must_zero(1, sizeof *table);
    table->definition = *table_definition_copy(&table->arena, definition);
    table->number = number;
    table->counts = counts;
    atomic_init(&table->references, 1);
    const struct table_definition *own = &table->definition;
    table->keys = (struct key_schema){.hash = own->hash, .range = own->range};
    ensure(table_attribute_type(own, own->hash, &table->keys.hash_type));
    if (own->range.len) ensure(table_attribute_type(own, own->range, &table->keys.range_type));
    return table;
}

void engine_table_release(struct table *table)
{
    if (atomic_fetch_sub_explicit(&table->references, 1, memory_order_acq_rel) != 1) return;
    arena_free(&table->arena);
    free(table);
}

void registry_init(struct registry *registry)
{
    *registry = (struct registry){0};
    pthread_rwlock_init(&registry->lock, NULL);
}

void registry_free(struct registry *registry)
{
    for (uint32_t i = 0; i < registry->count; i++) engine_table_release(registry->tables[i]);
    free(registry->tables);
    pthread_rwlock_destroy(&registry->lock);
}

/* The first place whose name is not before this one. */
static uint32_t place_of(const struct registry *registry, struct slice name)
{
    uint32_t low = 0, high = registry->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (slice_compare(registry->tables[middle]->definition.name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool stands_at(const struct registry *registry, uint32_t place, struct slice name)
{
    return place < registry->count && slice_equal(registry->tables[place]->definition.name, name);
}

void registry_put(struct registry *registry, struct table *table)
{
    pthread_rwlock_wrlock(&registry->lock);
    uint32_t place = place_of(registry, table->definition.name);
    if (stands_at(registry, place, table->definition.name)) {
        engine_table_release(registry->tables[place]);
    } else {
        if (registry->count == registry->capacity) {
            registry->capacity = registry->capacity ? registry->capacity * 2 : 16;
            registry->tables = must_realloc(registry->tables, registry->capacity * sizeof *registry->tables);
        }
        memmove(registry->tables + place + 1, registry->tables + place,
                (registry->count - place) * sizeof *registry->tables);
        registry->count++;
    }
    registry->tables[place] = table;
    pthread_rwlock_unlock(&registry->lock);
}

void registry_remove(struct registry *registry, struct slice name)
{
    pthread_rwlock_wrlock(&registry->lock);
    uint32_t place = place_of(registry, name);
    if (stands_at(registry, place, name)) {
        engine_table_release(registry->tables[place]);
        registry->count--;
        memmove(registry->tables + place, registry->tables + place + 1,
                (registry->count - place) * sizeof *registry->tables);
    }
    pthread_rwlock_unlock(&registry->lock);
}

struct table *registry_find(struct registry *registry, struct slice name)
{
    pthread_rwlock_rdlock(&registry->lock);
    uint32_t place = place_of(registry, name);
    struct table *table = stands_at(registry, place, name) ? registry->tables[place] : NULL;
    if (table) atomic_fetch_add_explicit(&table->references, 1, memory_order_relaxed);
    pthread_rwlock_unlock(&registry->lock);
    return table;
}

void registry_clear(struct registry *registry)
{
    pthread_rwlock_wrlock(&registry->lock);
    for (uint32_t i = 0; i < registry->count; i++) {
        atomic_store(&registry->tables[i]->counts->dropped, true);
        engine_table_release(registry->tables[i]);
    }
    registry->count = 0;
    pthread_rwlock_unlock(&registry->lock);
}

uint32_t registry_count(struct registry *registry)
{
    pthread_rwlock_rdlock(&registry->lock);
    uint32_t count = registry->count;
    pthread_rwlock_unlock(&registry->lock);
    return count;
}

struct table **registry_all(struct registry *registry, uint32_t *count)
{
    pthread_rwlock_rdlock(&registry->lock);
    *count = registry->count;
    struct table **tables = must_alloc((registry->count + 1) * sizeof *tables);
    for (uint32_t i = 0; i < registry->count; i++) {
        tables[i] = registry->tables[i];
        atomic_fetch_add_explicit(&tables[i]->references, 1, memory_order_relaxed);
    }
    pthread_rwlock_unlock(&registry->lock);
    return tables;
}

struct table *engine_table_find(struct engine *engine, struct slice name)
{
    return registry_find(&engine->registry, name);
}

uint32_t engine_table_names(struct engine *engine, struct arena *arena, struct slice after, uint32_t limit,
                            struct slice *names, bool *more)
{
    struct registry *registry = &engine->registry;
    pthread_rwlock_rdlock(&registry->lock);
    /* The database's own tables come first, as no name that clients may give begins with a '$'. */
    uint32_t place = place_of(registry, after.len ? after : SLICE("$\xff")), count = 0;
    if (after.len && stands_at(registry, place, after)) place++;
    for (; place < registry->count && count < limit; place++, count++)
        names[count] = arena_copy(arena, registry->tables[place]->definition.name);
    *more = place < registry->count;
    pthread_rwlock_unlock(&registry->lock);
    return count;
}

static uint64_t activity(const struct table_rate *rate)
{
    return rate->reads + rate->writes;
}

uint32_t engine_busy_tables(struct engine *engine, struct arena *arena, uint32_t top, struct table_rate *out)
{
    struct registry *registry = &engine->registry;
    uint32_t count = 0;
    pthread_rwlock_rdlock(&registry->lock);
    for (uint32_t i = 0; i < registry->count; i++) {
        const struct table *table = registry->tables[i];
        struct table_counts *counts = table->counts;
        struct table_rate rate = {.name = table->definition.name,
                                  .reads = stats_read(&counts->reads) - counts->told_reads,
                                  .writes = stats_read(&counts->writes) - counts->told_writes};
        counts->told_reads += rate.reads;
        counts->told_writes += rate.writes;
        if (!activity(&rate) || rate.name.data[0] == '$') continue;
        uint32_t place = count < top ? count++ : top;
        while (place > 0 && activity(&out[place - 1]) < activity(&rate)) {
            if (place < top) out[place] = out[place - 1];
            place--;
        }
        if (place < top) out[place] = rate;
    }
    for (uint32_t i = 0; i < count; i++) out[i].name = arena_copy(arena, out[i].name);
    pthread_rwlock_unlock(&registry->lock);
    return count;
}
