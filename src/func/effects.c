/* Effects: the writes that a function returns instead of making them, {"quipu":{"transact":[...]}}.
 *
 * Whoever called the function puts them into the transaction that moves its own position, so here they are
 * only found, counted and checked for their outer shape; what is inside is the door's to judge. Text that is
 * not JSON, or has no such member, is an ordinary reply. Everything that is nearly right is an error: a
 * misspelt member that was passed over in silence would be a lost write. Pure; called by triggers and by
 * queue.c. */
#include <stdarg.h>
#include <stdio.h>

#include "base/raw.h"
#include "func/func.h"

__attribute__((format(printf, 3, 4))) static enum effects bad(char *error, size_t error_len,
                                                              const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (error_len) vsnprintf(error, error_len, format, args);
    va_end(args);
    return EFFECTS_BAD;
}

static bool is_action(struct slice name)
{
    return slice_equal(name, SLICE("Put")) || slice_equal(name, SLICE("Update")) ||
           slice_equal(name, SLICE("Delete")) || slice_equal(name, SLICE("ConditionCheck"));
}

/* {"Put": {...}}, ...: each has exactly one action. */
static enum effects read_writes(struct slice list, uint32_t count_max, struct arena *arena, uint32_t *count,
                                char *error, size_t error_len)
{
    struct slice write, name, action;
    *count = 0;
    raw_each (arena, list, &write) {
        unsigned actions = 0;
        if (*count == count_max)
            return bad(error, error_len, "\"transact\" has more than %u writes", count_max);
        if (raw_kind(write) != JSON_OBJECT)
            return bad(error, error_len, "write %u of \"transact\" is no object", *count + 1);
        raw_each_member (arena, write, &name, &action) {
            if (!is_action(name) || raw_kind(action) != JSON_OBJECT)
                return bad(error, error_len,
                           "write %u of \"transact\" must be one of Put, Update, Delete, ConditionCheck",
                           *count + 1);
            actions++;
        }
        if (actions != 1)
            return bad(error, error_len, "write %u of \"transact\" has %u actions, not one", *count + 1,
                       actions);
        ++*count;
    }
    return *count ? EFFECTS_FOUND : EFFECTS_NONE;
}

enum effects func_effects(struct slice reply, uint32_t count_max, struct arena *arena, struct slice *members,
                          uint32_t *count, char *error, size_t error_len)
{
    struct raw_walk walk;
    struct slice name = SLICE_NONE, value, quipu = SLICE_NONE, list = SLICE_NONE;
    bool is_twice = false;
    *members = SLICE_NONE;
    *count = 0;
    /* Most replies have none: one search spares them the parser. A name written with escapes is not ours. */
    if (!slice_contains(reply, SLICE("\"quipu\""))) return EFFECTS_NONE;
    if (raw_walk_begin(&walk, arena, reply) != JSON_OBJECT) return EFFECTS_NONE;
    while (raw_walk_next(&walk, &name, &value)) {
        if (!slice_equal(name, SLICE("quipu"))) continue;
        is_twice |= quipu.data != NULL;
        quipu = value;
    }
    if (!json_done(&walk.reader)) {
        if (!quipu.data && !slice_equal(name, SLICE("quipu"))) return EFFECTS_NONE;
        return bad(error, error_len, "the reply is no JSON: %s", walk.reader.fault);
    }
    if (!quipu.data) return EFFECTS_NONE;
    if (is_twice) return bad(error, error_len, "\"quipu\" is there twice");
    if (raw_kind(quipu) != JSON_OBJECT) return bad(error, error_len, "\"quipu\" must be an object");
    raw_each_member (arena, quipu, &name, &value) {
        if (!slice_equal(name, SLICE("transact")))
            return bad(error, error_len, "\"quipu\" has no member \"%.*s\"; \"transact\" is one",
                       (int)(name.len < 64 ? name.len : 64), name.data);
        if (list.data) return bad(error, error_len, "\"transact\" is there twice");
        if (raw_kind(value) != JSON_ARRAY)
            return bad(error, error_len, "\"transact\" must be a list of writes");
        list = value;
    }
    if (!list.data) return EFFECTS_NONE;
    enum effects found = read_writes(list, count_max, arena, count, error, error_len);
    if (found == EFFECTS_FOUND) *members = (struct slice){list.data + 1, list.len - 2};
    if (found != EFFECTS_FOUND) *count = 0;
    return found;
}
