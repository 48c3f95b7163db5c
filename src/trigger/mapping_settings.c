/* Settings of a mapping, and the immutable mapping that the consumer gets of them. */
#include <stdarg.h>
#include <stdlib.h>

#include "base/fail.h"
#include "trigger/mapping.h"
#include "trigger/watch.h"

const struct number_rule number_rules[SETTING_NUMBERS] = {
#define X(name, member, attribute, min, max, otherwise)                                                      \
    [SETTING_##name] = {member, attribute, min, max, otherwise},
    MAPPING_NUMBERS(X)
#undef X
};

void settings_defaults(struct settings *settings)
{
    *settings = (struct settings){.enabled = true};
    for (int i = 0; i < SETTING_NUMBERS; i++) settings->numbers[i] = number_rules[i].otherwise;
}

struct slice start_name(enum start_position start)
{
    return start == START_LATEST ? SLICE("LATEST") : SLICE("TRIM_HORIZON");
}

void settings_copy(struct settings *to, const struct settings *from, struct arena *arena)
{
    *to = *from;
#define TEXT(name, attribute) to->name = arena_copy(arena, from->name);
#define OTHER(name, attribute)
    MAPPING_ATTRIBUTES(TEXT, OTHER, OTHER)
#undef TEXT
#undef OTHER
    to->filters = arena_array(arena, struct slice, from->filter_count);
    for (uint32_t i = 0; i < from->filter_count; i++) to->filters[i] = arena_copy(arena, from->filters[i]);
}

static int64_t ms_of(int64_t seconds)
{
    return seconds < 0 ? -1 : seconds * 1000;
}

static bool compile_filters(struct mapping *mapping, const struct settings *own, char *error,
                            size_t error_len)
{
    mapping->filters = own->filters;
    mapping->filter_count = own->filter_count;
    mapping->patterns = arena_array(&mapping->arena, struct event_pattern *, own->filter_count);
    for (uint32_t i = 0; i < own->filter_count; i++) {
        mapping->patterns[i] = pattern_compile(&mapping->arena, own->filters[i], error, error_len);
        if (!mapping->patterns[i]) return false;
    }
    return true;
}

struct mapping *mapping_new(const struct settings *settings, char *error, size_t error_len)
{
    struct mapping *mapping = must_zero(1, sizeof *mapping);
    struct settings *own = arena_new(&mapping->arena, struct settings);
    settings_copy(own, settings, &mapping->arena);
    mapping->settings = own;
    mapping->references = 1;
    mapping->id = own->id;
    mapping->stream_arn = own->stream_arn;
    mapping->function = own->function;
    mapping->function_arn = own->function_arn;
    mapping->start = own->has_followed ? START_TRIM_HORIZON : own->start;
    mapping->move = (struct mapping_move){own->move_number, own->move_to, own->move_since_ms,
                                          own->move_shard};
    mapping->revision = (uint64_t)own->revision;
    mapping->enabled = own->enabled;
    mapping->batch_size = (uint32_t)own->numbers[SETTING_BATCH_SIZE];
    mapping->window_ms = ms_of(own->numbers[SETTING_BATCH_WINDOW]);
    mapping->lanes = (uint32_t)own->numbers[SETTING_PARALLEL];
    mapping->retries_max = own->numbers[SETTING_RETRIES];
    mapping->age_max_ms = ms_of(own->numbers[SETTING_RECORD_AGE]);
    mapping->bisect = own->bisects;
    mapping->reports_failures = own->reports_failures;
    mapping->tumbling_ms = ms_of(own->numbers[SETTING_TUMBLING]);
    mapping->on_failure = own->on_failure;
    mapping->depth_max = (uint32_t)own->numbers[SETTING_RECURSION];
    if (compile_filters(mapping, own, error, error_len)) return mapping;
    mapping_release(mapping);
    return NULL;
}

struct mapping *mapping_keep(struct mapping *mapping)
{
    atomic_fetch_add_explicit(&mapping->references, 1, memory_order_relaxed);
    return mapping;
}

void mapping_release(struct mapping *mapping)
{
    if (!mapping) return;
    uint32_t before = atomic_fetch_sub_explicit(&mapping->references, 1, memory_order_acq_rel);
    ensure(before > 0);
    if (before > 1) return;
    if (mapping->watch) watch_release(mapping->watch);
    arena_free(&mapping->arena);
    free(mapping);
}

bool decline(struct refusal *refusal, struct arena *arena, int status, const char *type, const char *format,
             ...)
{
    va_list args;
    va_start(args, format);
    refusal->message = arena_vprintf(arena, format, args);
    va_end(args);
    refusal->status = status;
    refusal->type = type;
    return false;
}
