/* All mappings in memory: the settings as the table has them, the state that is told, and the keeper, a
 * thread that reads the table again where other servers write it too, removes the items of what was
 * deleted, and looks for the next stream where one is over.
 *
 * Who changes a mapping holds `changing` from reading what was there to telling the consumer, so that
 * revisions reach it in their order. The list itself has a lock of its own that is never held over a call; it gains and
 * loses entries, and these their settings, only by who holds both, so with either of them it can be walked. A
 * state is of this server: what is written down is only whether a mapping is enabled or to be deleted, and
 * each server moves through the states as its own consumer follows. */
#include "trigger/mapping.h"

#include <stdlib.h>

#include "base/cond.h"
#include "base/fail.h"
#include "base/limits.h"
#include "base/log.h"

#define REFRESH_US (2 * 1000000) /* how old others' changes may be when they are seen here */
#define RETRY_US   (1 * 1000000) /* of an item that could not be deleted */
/* Between looks for the stream that follows one that is over: here they cost next to nothing. */
#define FOLLOW_US        (1 * 1000000)
#define FOLLOW_SHARED_US (3 * 1000000)

static void entry_free(struct mapping_entry *entry)
{
    mapping_release(entry->mapping);
    free(entry);
}

struct mapping_entry *mappings_find(struct mappings *mappings, struct slice id)
{
    for (struct mapping_entry *entry = mappings->entries; entry; entry = entry->next)
        if (slice_equal(entry->mapping->id, id)) return entry;
    return NULL;
}

struct slice mappings_twin(struct mappings *mappings, const struct settings *settings, struct arena *arena)
{
    struct slice other = SLICE_NONE;
    pthread_mutex_lock(&mappings->lock);
    for (struct mapping_entry *entry = mappings->entries; entry; entry = entry->next)
        if (!slice_equal(entry->mapping->id, settings->id) && entry->state != MAPPING_DELETING &&
            slice_equal(entry->mapping->stream_arn, settings->stream_arn) &&
            slice_equal(entry->mapping->function_arn, settings->function_arn))
            other = arena_copy(arena, entry->mapping->id);
    pthread_mutex_unlock(&mappings->lock);
    return other;
}

/* ---- taking settings over ---- */

/* With the lock held: found, or new in its place. */
static struct mapping_entry *entry_of(struct mappings *mappings, struct slice id)
{
    struct mapping_entry **at = &mappings->entries;
    while (*at && slice_compare((*at)->mapping->id, id) < 0) at = &(*at)->next;
    if (*at && slice_equal((*at)->mapping->id, id)) return *at;
    struct mapping_entry *entry = must_zero(1, sizeof *entry);
    snprintf(entry->result, sizeof entry->result, "No records processed");
    entry->next = *at;
    *at = entry;
    mappings->count++;
    return entry;
}

static void tell_consumer(struct mappings *mappings, struct mapping *mapping, bool is_deleting)
{
    mappings->world.command(mappings->trigger->consumer, is_deleting ? NULL : mapping, mapping->id);
}

bool mappings_take(struct mappings *mappings, const struct settings *settings, enum mapping_state state)
{
    char error[256];
    struct mapping *mapping = mapping_new(settings, error, sizeof error);
    if (!mapping) {
        log_line("the mapping %.*s is left out, its filter is broken: %s", SLICE_ARG(settings->id), error);
        return false;
    }
    pthread_mutex_lock(&mappings->lock);
    struct mapping_entry *entry = entry_of(mappings, settings->id);
    struct mapping *old = entry->mapping;
    entry->is_over = entry->is_over && slice_equal(old->stream_arn, mapping->stream_arn);
    entry->mapping = mapping;
    entry->state = state;
    entry->is_seen = true;
    bool tells = mappings->is_started;
    mapping_keep(mapping);
    pthread_mutex_unlock(&mappings->lock);
    mapping_release(old);
    if (tells) tell_consumer(mappings, mapping, mapping->settings->is_deleting);
    mapping_release(mapping);
    return true;
}

/* ---- what the consumer reports ---- */

void mappings_note_result(struct mappings *mappings, struct slice id, const char *result)
{
    pthread_mutex_lock(&mappings->lock);
    struct mapping_entry *entry = mappings_find(mappings, id);
    if (entry) snprintf(entry->result, sizeof entry->result, "%s", result);
    pthread_mutex_unlock(&mappings->lock);
}

/* What was reached may be what an older revision asked for: it counts only where it is still wanted. */
static bool state_may_become(const struct mapping_entry *entry, enum mapping_state state)
{
    if (entry->state == MAPPING_DELETING) return false;
    return state == MAPPING_ENABLED ? entry->mapping->settings->enabled
                                    : state == MAPPING_DISABLED && !entry->mapping->settings->enabled;
}

void mappings_reached(struct mappings *mappings, struct slice id, enum mapping_state state)
{
    pthread_mutex_lock(&mappings->lock);
    struct mapping_entry *entry = mappings_find(mappings, id);
    if (entry && state == MAPPING_DELETING && entry->state == MAPPING_DELETING) {
        entry->is_gone = mappings->has_gone = true;
        pthread_cond_signal(&mappings->woken);
    } else if (entry && state_may_become(entry, state)) {
        entry->state = state;
    }
    pthread_mutex_unlock(&mappings->lock);
}

/* ---- reading the table again ---- */

static void found_again(void *context, const struct settings *settings)
{
    struct mappings *mappings = context;
    pthread_mutex_lock(&mappings->lock);
    struct mapping_entry *known = mappings_find(mappings, settings->id);
    bool is_old = known && known->mapping->settings->revision >= settings->revision;
    enum mapping_state state = settings->is_deleting                                    ? MAPPING_DELETING
                               : !known                                                 ? MAPPING_CREATING
                               : known->mapping->settings->enabled == settings->enabled ? MAPPING_UPDATING
                               : settings->enabled                                      ? MAPPING_ENABLING
                                                                                        : MAPPING_DISABLING;
    if (known) known->is_seen = true;
    bool is_full = !known && mappings->count >= LIMIT_MAPPINGS;
    pthread_mutex_unlock(&mappings->lock);
    if (!is_old && !is_full) mappings_take(mappings, settings, state);
}

/* Reads the table again: what others have changed. With `changing` held. */
static void mappings_refresh(struct mappings *mappings)
{
    char error[256];
    for (struct mapping_entry *entry = mappings->entries; entry; entry = entry->next) entry->is_seen = false;
    if (!mapping_table_scan(mappings->trigger, found_again, mappings, error, sizeof error)) return;
    for (struct mapping_entry *entry = mappings->entries; entry; entry = entry->next) {
        pthread_mutex_lock(&mappings->lock);
        bool was_removed = !entry->is_seen &&
                           entry->state != MAPPING_DELETING; /* by others: ours stops, too */
        if (was_removed) entry->state = MAPPING_DELETING;
        pthread_mutex_unlock(&mappings->lock);
        if (was_removed) tell_consumer(mappings, entry->mapping, true);
    }
}

/* ---- the keeper ---- */

/* False when the door would not, and it is to be tried again later. */
static bool remove_gone(struct mappings *mappings)
{
    bool good = true;
    pthread_mutex_lock(&mappings->changing);
    pthread_mutex_lock(&mappings->lock);
    mappings->has_gone = false;
    for (struct mapping_entry **at = &mappings->entries; *at;) {
        struct mapping_entry *entry = *at;
        if (!entry->is_gone) {
            at = &entry->next;
            continue;
        }
        pthread_mutex_unlock(&mappings->lock);
        good = mapping_table_delete(mappings->trigger, entry->mapping->id);
        pthread_mutex_lock(&mappings->lock);
        if (!good) break;
        *at = entry->next;
        mappings->count--;
        entry_free(entry);
    }
    pthread_mutex_unlock(&mappings->lock);
    pthread_mutex_unlock(&mappings->changing);
    return good;
}

static void *keep(void *context)
{
    struct mappings *mappings = context;
    int64_t retry_us = 0;
    pthread_mutex_lock(&mappings->lock);
    while (!mappings->is_closing) {
        int64_t now = monotonic_us();
        bool removes = mappings->has_gone && now >= retry_us;
        bool shared = mappings->trigger->options.shared;
        bool looks = shared && mappings->is_started && now >= mappings->look_us;
        bool follows = now >= mappings->follow_us && mappings_have_over(mappings);
        if (!removes && !looks && !follows) {
            cond_wait_until(&mappings->woken, &mappings->lock, now + REFRESH_US / 2);
            continue;
        }
        if (looks) mappings->look_us = now + REFRESH_US;
        if (follows) mappings->follow_us = now + (shared ? FOLLOW_SHARED_US : FOLLOW_US);
        pthread_mutex_unlock(&mappings->lock);
        if (removes && !remove_gone(mappings)) {
            retry_us = now + RETRY_US;
            pthread_mutex_lock(&mappings->lock);
            mappings->has_gone = true;
            pthread_mutex_unlock(&mappings->lock);
        }
        if (looks) {
            pthread_mutex_lock(&mappings->changing);
            mappings_refresh(mappings);
            pthread_mutex_unlock(&mappings->changing);
        }
        if (follows) mappings_follow(mappings);
        pthread_mutex_lock(&mappings->lock);
    }
    pthread_mutex_unlock(&mappings->lock);
    return NULL;
}

/* ---- opening and closing ---- */

static void found_first(void *context, const struct settings *settings)
{
    struct mappings *mappings = context;
    if (mappings->count >= LIMIT_MAPPINGS) return;
    mappings_take(mappings, settings,
                  settings->is_deleting ? MAPPING_DELETING
                  : settings->enabled   ? MAPPING_ENABLED
                                        : MAPPING_DISABLED);
}

struct mappings *mappings_new(struct trigger *trigger, const struct mapping_world *world, char *error,
                              size_t error_len)
{
    struct mappings *mappings = must_zero(1, sizeof *mappings);
    mappings->trigger = trigger;
    mappings->world = *world;
    random_seed_from_system(&mappings->random);
    pthread_mutex_init(&mappings->changing, NULL);
    pthread_mutex_init(&mappings->lock, NULL);
    cond_init(&mappings->woken);
    if (!mapping_table_scan(trigger, found_first, mappings, error, error_len)) {
        mappings_close(mappings);
        return NULL;
    }
    ensure(pthread_create(&mappings->keeper, NULL, keep, mappings) == 0);
    mappings->is_keeping = true;
    return mappings;
}

struct mappings *mappings_open(struct trigger *trigger, char *error, size_t error_len)
{
    static const struct mapping_world real = {func_resolve, destination_fault, consumer_command};
    return mappings_new(trigger, &real, error, error_len);
}

void mappings_start(struct mappings *mappings)
{
    pthread_mutex_lock(&mappings->changing);
    pthread_mutex_lock(&mappings->lock);
    mappings->is_started = true;
    pthread_mutex_unlock(&mappings->lock);
    for (struct mapping_entry *entry = mappings->entries; entry; entry = entry->next)
        tell_consumer(mappings, entry->mapping, entry->mapping->settings->is_deleting);
    pthread_mutex_unlock(&mappings->changing);
}

void mappings_close(struct mappings *mappings)
{
    if (!mappings) return;
    pthread_mutex_lock(&mappings->lock);
    mappings->is_closing = true;
    pthread_cond_signal(&mappings->woken);
    pthread_mutex_unlock(&mappings->lock);
    if (mappings->is_keeping) pthread_join(mappings->keeper, NULL);
    for (struct mapping_entry *entry = mappings->entries, *next; entry; entry = next) {
        next = entry->next;
        entry_free(entry);
    }
    pthread_cond_destroy(&mappings->woken);
    pthread_mutex_destroy(&mappings->lock);
    pthread_mutex_destroy(&mappings->changing);
    free(mappings);
}
