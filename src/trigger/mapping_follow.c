/* A mapping whose stream is over goes on with the next stream of its table, from that one's beginning: the table
 * was deleted and made again, or its stream was switched off and on. It keeps its id and its settings; only
 * EventSourceArn is another one.
 *
 * The change is written like any other, under the condition that nobody has changed the mapping since. So of
 * several servers one does it, and the others take over what it has written. */
#include <stdlib.h>

#include "base/fail.h"
#include "base/log.h"
#include "trigger/mapping.h"

void mappings_note_over(struct mappings *mappings, struct slice id, struct slice arn, bool is_over)
{
    pthread_mutex_lock(&mappings->lock);
    struct mapping_entry *entry = mappings_find(mappings, id);
    if (entry && slice_equal(entry->mapping->stream_arn, arn)) {
        entry->is_over = is_over;
        if (is_over) {
            mappings->follow_us = 0;
            pthread_cond_signal(&mappings->woken);
        }
    }
    pthread_mutex_unlock(&mappings->lock);
}

/* The next one in the order of ids. */
static struct mapping_entry *next_over(struct mappings *mappings, struct slice after)
{
    struct mapping_entry *entry = mappings->entries;
    while (entry && (!entry->is_over || !entry->mapping->settings->enabled ||
                     entry->mapping->settings->is_deleting || slice_compare(entry->mapping->id, after) <= 0))
        entry = entry->next;
    return entry;
}

bool mappings_have_over(struct mappings *mappings)
{
    return next_over(mappings, SLICE("")) != NULL;
}

static bool take_next_over(struct mappings *mappings, struct slice *id, struct arena *arena,
                           struct settings *settings)
{
    pthread_mutex_lock(&mappings->lock);
    struct mapping_entry *entry = next_over(mappings, *id);
    if (entry) {
        settings_copy(settings, entry->mapping->settings, arena);
        *id = settings->id;
    }
    pthread_mutex_unlock(&mappings->lock);
    return entry != NULL;
}

/* arn:...:table/NAME/stream/ */
static struct slice stem_of(struct slice arn)
{
    struct slice label = slice_behind(arn, SLICE("/stream/"));
    return label.data ? (struct slice){arn.data, arn.len - label.len} : arn;
}

/* Somebody else has changed it: what the table says counts. */
static bool take_stored(struct mappings *mappings, struct slice id, struct arena *arena)
{
    struct settings stored;
    struct refusal refusal;
    bool is_there;
    if (!mapping_table_get(mappings->trigger, id, arena, &stored, &is_there, &refusal) || !is_there)
        return false;
    return mappings_take(mappings, &stored, stored.is_deleting ? MAPPING_DELETING : MAPPING_UPDATING);
}

/* With `changing` held. */
static bool follow(struct mappings *mappings, struct settings *settings, struct arena *arena)
{
    struct trigger *trigger = mappings->trigger;
    struct refusal refusal;
    struct slice arn;
    if (!mapping_next_stream(trigger, settings->stream_arn, arena, &arn) || !arn.len) return false;
    /* A mapping of the same function to a later stream of the same table; empty: none. What comes is for that one,
     * or the function would be called twice. */
    struct slice stem = stem_of(settings->stream_arn), other = SLICE_NONE;
    pthread_mutex_lock(&mappings->lock);
    for (struct mapping_entry *entry = mappings->entries; entry && !other.data; entry = entry->next)
        if (entry->state != MAPPING_DELETING && slice_starts(entry->mapping->stream_arn, stem) &&
            slice_equal(entry->mapping->function_arn, settings->function_arn) &&
            slice_compare(entry->mapping->stream_arn, settings->stream_arn) > 0)
            other = arena_copy(arena, entry->mapping->id);
    pthread_mutex_unlock(&mappings->lock);
    settings->stream_arn = arn;
    if (!other.data) other = mappings_twin(mappings, settings, arena);
    if (other.data) {
        struct slice result = arena_printf(
            arena, "PROBLEM: The stream is closed, and the mapping %.*s reads the table's next one",
            SLICE_ARG(other));
        mappings_note_result(mappings, settings->id, result.data);
        return false;
    }
    settings->has_followed = true;
    settings->revision++;
    settings->modified_ms = clock_now_ms(trigger->options.clock);
    switch (mapping_table_put(trigger, settings, arena, &refusal)) {
    case STORED:
        log_line("triggers: mapping %.*s: its stream is over; it goes on with %.*s", SLICE_ARG(settings->id),
                 SLICE_ARG(arn));
        return mappings_take(mappings, settings, MAPPING_UPDATING);
    case STORED_CONFLICT: return take_stored(mappings, settings->id, arena);
    case STORED_NOT: break;
    }
    return false;
}

bool mappings_follow(struct mappings *mappings)
{
    struct slice id = SLICE("");
    struct settings settings;
    struct arena arena = {0};
    bool has_moved = false;
    pthread_mutex_lock(&mappings->changing);
    while (take_next_over(mappings, &id, &arena, &settings)) has_moved |= follow(mappings, &settings, &arena);
    pthread_mutex_unlock(&mappings->changing);
    arena_free(&arena);
    return has_moved;
}
