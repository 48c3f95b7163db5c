/* Effects: the writes that a function returns instead of making them, {"quipu":{"transact":[...]}}.
 *
 * Whoever called the function puts them into the transaction that moves its own position, so here they are
 * only found, counted and checked for their outer shape; what is inside is the door's to judge. Text that is
 * not JSON, or has no such member, is an ordinary reply. Everything that is nearly right is an error: a
 * misspelt member that was passed over in silence would be a lost write. Pure; called by triggers and by
 * queue.c. */
#include <stdarg.h>
#include <stdio.h>

#include "base/json.h"
#include "func/func.h"

struct effects_reader {
    struct json_reader json;
    struct slice members;
    uint32_t count, count_max;
    bool seen, found, bad;
    char *error;
    size_t error_len;
};

/* Always false, so that callers can return it. */
__attribute__((format(printf, 2, 3))) static bool bad(struct effects_reader *reader, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!reader->bad && reader->error_len) vsnprintf(reader->error, reader->error_len, format, args);
    va_end(args);
    reader->bad = true;
    return false;
}

static bool is_action(struct slice name)
{
    return slice_equal(name, SLICE("Put")) || slice_equal(name, SLICE("Update")) ||
           slice_equal(name, SLICE("Delete")) || slice_equal(name, SLICE("ConditionCheck"));
}

/* {"Put": {...}}: exactly one action. */
static bool read_write(struct effects_reader *reader)
{
    struct slice name;
    unsigned actions = 0;
    if (json_peek(&reader->json) != JSON_OBJECT || !json_enter(&reader->json))
        return bad(reader, "write %u of \"transact\" is no object", reader->count + 1);
    while (json_member(&reader->json, &name)) {
        if (!is_action(name) || json_peek(&reader->json) != JSON_OBJECT)
            return bad(reader, "write %u of \"transact\" must be one of Put, Update, Delete, ConditionCheck",
                       reader->count + 1);
        if (!json_skip(&reader->json)) return false;
        actions++;
    }
    if (json_failed(&reader->json)) return false;
    return actions == 1 ||
           bad(reader, "write %u of \"transact\" has %u actions, not one", reader->count + 1, actions);
}

static bool read_transact(struct effects_reader *reader)
{
    if (reader->found) return bad(reader, "\"transact\" is there twice");
    if (json_peek(&reader->json) != JSON_ARRAY) return bad(reader, "\"transact\" must be a list of writes");
    json_enter(&reader->json);
    const char *start = reader->json.at;
    while (json_element(&reader->json)) {
        if (reader->count == reader->count_max)
            return bad(reader, "\"transact\" has more than %u writes", reader->count_max);
        if (!read_write(reader)) return false;
        reader->count++;
    }
    if (json_failed(&reader->json)) return false;
    reader->members = (struct slice){start, (size_t)(reader->json.at - 1 - start)};
    reader->found = true;
    return true;
}

static bool read_quipu(struct effects_reader *reader)
{
    struct slice name;
    if (json_peek(&reader->json) != JSON_OBJECT) return bad(reader, "\"quipu\" must be an object");
    json_enter(&reader->json);
    while (json_member(&reader->json, &name)) {
        if (!slice_equal(name, SLICE("transact")))
            return bad(reader, "\"quipu\" has no member \"%.*s\"; \"transact\" is one",
                       (int)(name.len < 64 ? name.len : 64), name.data);
        if (!read_transact(reader)) return false;
    }
    return !json_failed(&reader->json);
}

static void read_reply(struct effects_reader *reader)
{
    struct slice name;
    if (json_peek(&reader->json) != JSON_OBJECT) return;
    json_enter(&reader->json);
    while (json_member(&reader->json, &name)) {
        if (!slice_equal(name, SLICE("quipu"))) {
            json_skip(&reader->json);
        } else {
            if (reader->seen) bad(reader, "\"quipu\" is there twice");
            reader->seen = true;
            if (!read_quipu(reader)) return;
        }
    }
    json_done(&reader->json);
}

enum effects func_effects(struct slice reply, uint32_t count_max, struct arena *arena, struct slice *members,
                          uint32_t *count, char *error, size_t error_len)
{
    *members = SLICE_NONE;
    *count = 0;
    /* Most replies have none: one search spares them the parser. A name written with escapes is not ours. */
    if (!slice_contains(reply, SLICE("\"quipu\""))) return EFFECTS_NONE;
    struct effects_reader reader = {.count_max = count_max, .error = error, .error_len = error_len};
    json_begin(&reader.json, reply, arena);
    read_reply(&reader);
    if (json_failed(&reader.json)) {
        if (!reader.seen) return EFFECTS_NONE;
        bad(&reader, "the reply is no JSON: %s", reader.json.fault);
    }
    if (reader.bad) return EFFECTS_BAD;
    if (!reader.found || reader.count == 0) return EFFECTS_NONE;
    *members = reader.members;
    *count = reader.count;
    return EFFECTS_FOUND;
}
