/* A pattern's JSON becomes a tree of paths with choices, and sets of branches as bits (internal.h).
 *
 * While it is read, a branch is a list of (path, choice) with the newest first; where $or forks, the lists
 * share their tails. A path that a branch meets twice has the later choice, as on the service: names that are
 * repeated in an object, and a field that is asked for again within $or. At the end every branch gets a bit
 * and sets it where it asks for something. */
#include <stdarg.h>
#include <stdio.h>

#include "base/fail.h"
#include "base/limits.h"
#include "match/internal.h"

struct entry {
    struct node *node;
    struct choice *choice;
    const struct entry *before;
};

struct branches {
    const struct entry **heads;
    uint32_t count, room;
};

bool compile_fail(struct compiler *compiler, const char *format, ...)
{
    if (compiler->failed) return false;
    compiler->failed = true;
    char place[48];
    size_t place_len = (size_t)snprintf(place, sizeof place, ", at character %zu",
                                        json_offset(&compiler->reader) + 1);
    size_t room = compiler->error_len > place_len + 1 ? compiler->error_len - place_len : compiler->error_len;
    va_list args;
    va_start(args, format);
    vsnprintf(compiler->error, room, format, args);
    va_end(args);
    size_t len = strlen(compiler->error);
    snprintf(compiler->error + len, compiler->error_len - len, "%s", place);
    return false;
}

/* ---- branches ---- */

static bool branches_add(struct compiler *compiler, struct branches *branches, const struct entry *head)
{
    if (branches->count == LIMIT_PATTERN_BRANCHES)
        return compile_fail(compiler, "The $or-s of a pattern may have %d combinations at most",
                            LIMIT_PATTERN_BRANCHES);
    if (branches->count == branches->room) {
        uint32_t room = branches->room ? branches->room * 2 : 4;
        const struct entry **grown = arena_array(&compiler->scratch, const struct entry *, room);
        if (branches->count) memcpy(grown, branches->heads, branches->count * sizeof *grown);
        branches->heads = grown;
        branches->room = room;
    }
    branches->heads[branches->count++] = head;
    return true;
}

static bool branches_append(struct compiler *compiler, struct branches *to, const struct branches *from)
{
    for (uint32_t i = 0; i < from->count; i++)
        if (!branches_add(compiler, to, from->heads[i])) return false;
    return true;
}

/* All of them ask for the choice at the node. */
static bool branches_ask(struct compiler *compiler, struct branches *branches, struct node *node,
                         struct choice *choice)
{
    compiler->entry_count += branches->count;
    if (compiler->entry_count > LIMIT_PATTERN_ENTRIES)
        return compile_fail(compiler, "The pattern is too complex");
    for (uint32_t i = 0; i < branches->count; i++) {
        struct entry *entry = arena_alloc(&compiler->scratch, sizeof *entry);
        *entry = (struct entry){node, choice, branches->heads[i]};
        branches->heads[i] = entry;
    }
    return true;
}

/* ---- reading ---- */

static struct node *node_new(struct compiler *compiler, struct slice name)
{
    struct node *node = arena_new(compiler->arena, struct node);
    node->name = name;
    node->index = compiler->node_count++;
    node->all_next = compiler->nodes;
    compiler->nodes = node;
    return node;
}

static struct node *node_child(struct compiler *compiler, struct node *parent, struct slice name)
{
    struct node **at = &parent->children;
    for (; *at; at = &(*at)->next)
        if (slice_equal((*at)->name, name)) return *at;
    return *at = node_new(compiler, name);
}

static bool read_choice(struct compiler *compiler, struct slice name, struct choice *choice)
{
    uint32_t room = 0;
    json_enter(&compiler->reader);
    while (json_element(&compiler->reader)) {
        if (choice->count == room) {
            room = room ? room * 2 : 2;
            struct comparison *grown = arena_array(compiler->arena, struct comparison, room);
            if (choice->count) memcpy(grown, choice->comparisons, choice->count * sizeof *grown);
            choice->comparisons = grown;
        }
        struct comparison *comparison = &choice->comparisons[choice->count++];
        if (!comparison_read(compiler, comparison)) return false;
        if (comparison->kind == COMPARE_ABSENT) choice->absence_will_do = true;
    }
    if (json_failed(&compiler->reader)) return false;
    if (choice->count == 0)
        return compile_fail(compiler, "Empty arrays are not allowed, as in \"%.*s\"", SLICE_ARG(name));
    return true;
}

static bool read_object(struct compiler *compiler, struct node *node, struct branches *branches,
                        bool inside_or);

/* The reader stands before the value of "$or". It means alternatives when that is an array whose objects hold
 * fields; else "$or" is a field's name like any other, as it was before there were alternatives. */
static bool is_alternatives(const struct compiler *compiler)
{
    struct arena arena = {0};
    struct json_reader ahead = compiler->reader;
    struct slice name;
    ahead.arena = &arena;
    bool answer = json_peek(&ahead) == JSON_ARRAY && json_enter(&ahead) && json_element(&ahead) &&
                  json_peek(&ahead) == JSON_OBJECT && json_enter(&ahead) &&
                  (!json_member(&ahead, &name) || !comparison_is_reserved(name));
    arena_free(&arena);
    return answer;
}

static bool read_alternatives(struct compiler *compiler, struct node *node, struct branches *branches)
{
    struct branches all = {0};
    unsigned count = 0;
    json_enter(&compiler->reader);
    while (json_element(&compiler->reader)) {
        struct branches forked = {0};
        if (json_peek(&compiler->reader) != JSON_OBJECT)
            return compile_fail(compiler, "Only JSON objects are allowed in the array of $or");
        if (!branches_append(compiler, &forked, branches) || !read_object(compiler, node, &forked, true) ||
            !branches_append(compiler, &all, &forked))
            return false;
        count++;
    }
    if (json_failed(&compiler->reader)) return false;
    if (count < 2) return compile_fail(compiler, "There must be at least 2 objects in $or");
    *branches = all;
    return true;
}

static bool read_field(struct compiler *compiler, struct node *node, struct branches *branches,
                       struct slice name, bool inside_or)
{
    if (slice_equal(name, SLICE("$or")) && is_alternatives(compiler))
        return read_alternatives(compiler, node, branches);
    if (inside_or && comparison_is_reserved(name))
        return compile_fail(compiler, "\"%.*s\" is a reserved name that cannot be a field inside $or",
                            SLICE_ARG(name));
    enum json_kind kind = json_peek(&compiler->reader);
    if (kind != JSON_OBJECT && kind != JSON_ARRAY) {
        if (kind == JSON_FAULT || kind == JSON_END) return json_skip(&compiler->reader);
        return compile_fail(compiler, "\"%.*s\" must be an object or an array", SLICE_ARG(name));
    }
    struct node *child = node_child(compiler, node, name);
    if (kind == JSON_OBJECT) return read_object(compiler, child, branches, inside_or);
    struct choice *choice = arena_new(compiler->arena, struct choice);
    if (!read_choice(compiler, name, choice)) return false;
    choice->next = child->choices;
    child->choices = choice;
    return branches_ask(compiler, branches, child, choice);
}

static bool read_object(struct compiler *compiler, struct node *node, struct branches *branches,
                        bool inside_or)
{
    struct slice name;
    bool any = false;
    json_enter(&compiler->reader);
    while (json_member(&compiler->reader, &name)) {
        any = true;
        if (!read_field(compiler, node, branches, name, inside_or)) return false;
    }
    if (json_failed(&compiler->reader)) return false;
    return any || compile_fail(compiler, "Empty objects are not allowed");
}

/* ---- bits ---- */

static uint64_t *bits_new(struct compiler *compiler, uint32_t words)
{
    return arena_zero(compiler->arena, words * sizeof(uint64_t));
}

static void bits_set(uint64_t *bits, uint32_t index)
{
    bits[index / 64] |= (uint64_t)1 << (index % 64);
}

static bool bits_has(const uint64_t *bits, uint32_t index)
{
    return bits[index / 64] >> (index % 64) & 1;
}

/* A branch's newest choice of a node is its only one. */
static void branch_settle(struct node *node, struct choice *choice, uint32_t branch)
{
    if (bits_has(node->asking, branch)) return;
    bits_set(node->asking, branch);
    bits_set(choice->branches, branch);
}

static void node_absence(struct node *node, uint32_t words)
{
    for (uint32_t i = 0; i < words; i++) {
        node->absence[i] = ~node->asking[i];
        for (struct choice *choice = node->choices; choice; choice = choice->next)
            if (choice->absence_will_do) node->absence[i] |= choice->branches[i];
    }
}

/* Children first; the tree is as deep as JSON may be. */
static void node_below(struct node *node, uint32_t words)
{
    for (uint32_t i = 0; i < words; i++) node->below[i] = ~(uint64_t)0;
    for (struct node *child = node->children; child; child = child->next) {
        node_below(child, words);
        for (uint32_t i = 0; i < words; i++) node->below[i] &= child->absence[i] & child->below[i];
    }
}

/* Choices that every branch has overridden are forgotten. */
static void node_tidy(struct node *node, uint32_t words)
{
    struct choice **at = &node->choices;
    while (*at) {
        uint64_t any = 0;
        for (uint32_t i = 0; i < words; i++) any |= (*at)->branches[i];
        if (any)
            at = &(*at)->next;
        else
            *at = (*at)->next;
    }
    node->reads_values = node->choices != NULL;
}

static struct event_pattern *finish(struct compiler *compiler, struct node *root,
                                    const struct branches *branches)
{
    struct event_pattern *pattern = arena_new(compiler->arena, struct event_pattern);
    uint32_t words = (branches->count + 63) / 64;
    *pattern = (struct event_pattern){root, compiler->node_count, branches->count, words};
    for (struct node *node = compiler->nodes; node; node = node->all_next) {
        node->asking = bits_new(compiler, words);
        node->absence = bits_new(compiler, words);
        node->below = bits_new(compiler, words);
        for (struct choice *choice = node->choices; choice; choice = choice->next)
            choice->branches = bits_new(compiler, words);
    }
    for (uint32_t i = 0; i < branches->count; i++)
        for (const struct entry *entry = branches->heads[i]; entry; entry = entry->before)
            branch_settle(entry->node, entry->choice, i);
    for (struct node *node = compiler->nodes; node; node = node->all_next) {
        node_tidy(node, words);
        node_absence(node, words);
    }
    node_below(root, words);
    return pattern;
}

static struct event_pattern *compile(struct compiler *compiler)
{
    struct branches branches = {0};
    struct node *root = node_new(compiler, SLICE(""));
    if (json_peek(&compiler->reader) != JSON_OBJECT && !json_failed(&compiler->reader)) {
        compile_fail(compiler, "Filter is not an object");
        return NULL;
    }
    branches_add(compiler, &branches, NULL);
    if (!read_object(compiler, root, &branches, false) || !json_done(&compiler->reader)) {
        if (!compiler->failed) compile_fail(compiler, "The pattern is not JSON: %s", compiler->reader.fault);
        return NULL;
    }
    return finish(compiler, root, &branches);
}

struct event_pattern *pattern_compile(struct arena *arena, struct slice json, char *error, size_t error_len)
{
    ensure(error_len > 0);
    struct compiler compiler = {.arena = arena, .error = error, .error_len = error_len};
    error[0] = '\0';
    if (json.len > LIMIT_PATTERN_BYTES) {
        snprintf(error, error_len, "The pattern has %zu bytes; %d are allowed", json.len,
                 LIMIT_PATTERN_BYTES);
        return NULL;
    }
    json_begin(&compiler.reader, arena_copy(arena, json), arena);
    struct event_pattern *pattern = compile(&compiler);
    arena_free(&compiler.scratch);
    return pattern;
}
