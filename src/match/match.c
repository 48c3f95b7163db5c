/* An event against a compiled pattern: one pass over its text, no tree of it.
 *
 * Beside every node of the pattern's tree stands a tally of what the event has had for it so far, in sets of
 * branches. An object is done with by joining the tallies of the node's children: a branch is met by it when
 * all its choices below are. Of an array of objects one element must meet all that a branch asks for (the
 * service's rule of array consistency); where a branch only asks that fields are absent, no element may have
 * them. Scalars in an array belong to the field itself, each as good as the others; nested arrays are the
 * same as one. A name that occurs twice in an event counts as an array of its values.
 *
 * The recursion follows the pattern's tree and the arrays of the event, both bounded by JSON's depth. */
#include "match/internal.h"

struct tally {
    uint64_t *hit;  /* branches whose choice a scalar has met */
    uint64_t *met;  /* branches of which an object met all that is below, not only by absence */
    uint64_t *none; /* branches that all objects so far met by absence only */
    bool present;   /* there was a scalar */
};

struct matching {
    const struct event_pattern *pattern;
    struct json_reader reader;
    struct tally *tallies;
    uint64_t *met, *fixed; /* of the object that was done with last: met, and not only by absence */
};

static void tally_reset(const struct matching *matching, const struct node *node)
{
    struct tally *tally = &matching->tallies[node->index];
    tally->present = false;
    for (uint32_t i = 0; i < matching->pattern->words; i++) {
        tally->hit[i] = tally->met[i] = 0;
        tally->none[i] = node->below[i];
    }
}

/* ---- scalars ---- */

static bool choice_holds(const struct choice *choice, const struct scalar *value)
{
    for (uint32_t i = 0; i < choice->count; i++)
        if (comparison_holds(&choice->comparisons[i], value)) return true;
    return false;
}

static void node_take_scalar(struct matching *matching, const struct node *node, enum json_kind kind)
{
    struct scalar value = {kind, SLICE_NONE};
    struct json_reader *reader = &matching->reader;
    bool read = kind == JSON_STRING   ? json_string(reader, &value.text)
                : kind == JSON_NUMBER ? json_number(reader, &value.text)
                                      : json_skip(reader);
    if (!read) return;
    struct tally *tally = &matching->tallies[node->index];
    tally->present = true;
    for (const struct choice *choice = node->choices; choice; choice = choice->next) {
        if (!choice_holds(choice, &value)) continue;
        for (uint32_t i = 0; i < matching->pattern->words; i++) tally->hit[i] |= choice->branches[i];
    }
}

/* ---- objects ---- */

static const struct node *node_find(const struct node *node, struct slice name)
{
    for (const struct node *child = node->children; child; child = child->next)
        if (slice_equal(child->name, name)) return child;
    return NULL;
}

/* What all children together say of the object that has just been read. */
static void object_sum(struct matching *matching, const struct node *node)
{
    for (uint32_t i = 0; i < matching->pattern->words; i++) {
        uint64_t met = ~(uint64_t)0, fixed = 0;
        for (const struct node *child = node->children; child; child = child->next) {
            const struct tally *tally = &matching->tallies[child->index];
            uint64_t own = tally->hit[i] | (tally->present ? ~child->asking[i] : child->absence[i]);
            met &= own & (tally->met[i] | tally->none[i]);
            fixed |= tally->hit[i] | tally->met[i];
        }
        matching->met[i] = met;
        matching->fixed[i] = fixed;
    }
}

static void node_take(struct matching *matching, const struct node *node);

static void object_read(struct matching *matching, const struct node *node)
{
    struct slice name;
    for (const struct node *child = node->children; child; child = child->next) tally_reset(matching, child);
    json_enter(&matching->reader);
    while (json_member(&matching->reader, &name)) {
        const struct node *child = node_find(node, name);
        if (child)
            node_take(matching, child);
        else
            json_skip(&matching->reader);
    }
    object_sum(matching, node);
}

static void node_take_object(struct matching *matching, const struct node *node)
{
    object_read(matching, node);
    struct tally *tally = &matching->tallies[node->index];
    for (uint32_t i = 0; i < matching->pattern->words; i++) {
        tally->met[i] |= matching->met[i] & matching->fixed[i];
        tally->none[i] &= matching->met[i] & ~matching->fixed[i];
    }
}

/* ---- any value ---- */

static void node_take(struct matching *matching, const struct node *node)
{
    enum json_kind kind = json_peek(&matching->reader);
    switch (kind) {
    case JSON_OBJECT:
        if (node->children)
            node_take_object(matching, node);
        else
            json_skip(&matching->reader);
        break;
    case JSON_ARRAY:
        json_enter(&matching->reader);
        while (json_element(&matching->reader)) node_take(matching, node);
        break;
    default:
        if (node->reads_values)
            node_take_scalar(matching, node, kind);
        else
            json_skip(&matching->reader);
    }
}

static void matching_begin(struct matching *matching, struct arena *scratch)
{
    const struct event_pattern *pattern = matching->pattern;
    uint32_t words = pattern->words;
    uint64_t *bits = arena_array(scratch, uint64_t, (size_t)words * (3 * pattern->node_count + 2));
    matching->tallies = arena_array(scratch, struct tally, pattern->node_count);
    for (uint32_t i = 0; i < pattern->node_count; i++, bits += 3 * words)
        matching->tallies[i] = (struct tally){bits, bits + words, bits + 2 * words, false};
    matching->met = bits;
    matching->fixed = bits + words;
}

bool pattern_matches(const struct event_pattern *pattern, struct slice event, struct arena *scratch)
{
    struct matching matching = {.pattern = pattern};
    json_begin(&matching.reader, event, scratch);
    if (json_peek(&matching.reader) != JSON_OBJECT) return false;
    matching_begin(&matching, scratch);
    object_read(&matching, pattern->root);
    if (!json_done(&matching.reader)) return false;
    for (uint32_t i = 0; i < pattern->words; i++) {
        uint32_t left = pattern->branch_count - i * 64;
        uint64_t real = left >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << left) - 1;
        if (matching.met[i] & real) return true;
    }
    return false;
}
