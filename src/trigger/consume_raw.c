/* Parts of the door's answers, as they stand: what is only handed on is not understood. */
#include "trigger/consume.h"

/* Skips the value that comes next; its text. */
bool raw_take(struct json_reader *reader, struct slice *raw)
{
    json_peek(reader); /* over white space */
    const char *start = reader->at;
    if (!json_skip(reader)) return false;
    *raw = (struct slice){start, (size_t)(reader->at - start)};
    return true;
}

bool raw_members(struct slice object, const char *const *names, struct slice *raws, size_t count,
                 struct arena *arena)
{
    struct json_reader reader;
    struct slice name, raw;
    for (size_t i = 0; i < count; i++) raws[i] = SLICE("");
    json_begin(&reader, object, arena);
    if (json_peek(&reader) != JSON_OBJECT || !json_enter(&reader)) return false;
    while (json_member(&reader, &name)) {
        if (!raw_take(&reader, &raw)) return false;
        for (size_t i = 0; i < count; i++)
            if (slice_equal(name, slice_of(names[i])) && !slice_equal(raw, SLICE("null"))) raws[i] = raw;
    }
    return json_done(&reader);
}

struct slice raw_string(struct slice raw, struct arena *arena)
{
    struct json_reader reader;
    struct slice text;
    json_begin(&reader, raw, arena);
    return json_peek(&reader) == JSON_STRING && json_string(&reader, &text) ? text : SLICE("");
}

bool raw_elements(struct errand *errand, struct slice array,
                  void (*take)(struct errand *errand, struct slice raw))
{
    struct json_reader reader;
    struct slice raw;
    json_begin(&reader, array, &errand->arena);
    if (json_peek(&reader) != JSON_ARRAY || !json_enter(&reader)) return false;
    while (json_element(&reader)) {
        if (!raw_take(&reader, &raw)) return false;
        take(errand, raw);
    }
    return !json_failed(&reader);
}
