/* Groups: conditions as people write them, "count >= 3 and contains(kinds, 'vip')", as DynamoDB takes them.
 * What is written in its own way (#count) stays as it is. Called by group_put.c. */
#include "expr/expr.h"
#include "pattern/group.h"

static bool put_value(struct buf *out, struct arena *arena, struct slice json, const char **fault)
{
    *fault = plain_fault(arena, json);
    buf_slice(out, json);
    return !*fault;
}

/* The condition stands in the group's items, its names do not: they are what follows the #. */
static bool has_odd_name(const struct phrases *phrases)
{
    for (const struct phrase_name *name = phrases->names; name; name = name->older)
        if (!slice_equal(slice_from(name->placeholder, 1), name->name)) return true;
    return false;
}

struct slice group_when_read(struct flow *flow, struct slice written, struct slice *values,
                             const char **fault)
{
    struct phrases phrases = {.arena = flow->arena, .keeps_placeholders = true, .put_value = put_value};
    struct buf text = {0};
    bool fine = phrase_put(&text, &phrases, written);
    struct slice expression = arena_copy(flow->arena, buf_view(&text));
    *fault = !fine                    ? phrases.fault
             : has_odd_name(&phrases) ? "names in it begin with a letter and hold letters, digits and _"
                                      : NULL;
    *values = phrases.value_count ? flow_compose(flow, "{%r}", buf_view(&phrases.values)) : SLICE_NONE;
    buf_free(&text);
    phrases_free(&phrases);
    return expression;
}
