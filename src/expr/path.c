/* Document paths: following them into an item, their order, their text, and the tree that finds overlaps. */
#include "expr/parse.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/fail.h"
#include "base/limits.h"

#define JAVA_FIRST_CAPACITY 16
#define PATH_PART_HASH                                                                                       \
    1040257 /* what the service adds to the hash of a name or index in a path; measured                      \
             */

const struct value *part_find(const struct path_part *part, const struct value *from)
{
    if (part->is_index) {
        if (from->type != VALUE_L || part->index >= from->count) return NULL;
        return &from->elements[part->index];
    }
    return from->type == VALUE_M ? map_find(&from->map, part->name) : NULL;
}

const struct value *path_find(const struct path *path, const struct map *item)
{
    ensure(path->count > 0 && !path->parts[0].is_index);
    const struct value *found = map_find(item, path->parts[0].name);
    for (uint32_t i = 1; found && i < path->count; i++) found = part_find(&path->parts[i], found);
    return found;
}

static int part_compare(const struct path_part *a, const struct path_part *b)
{
    if (a->is_index != b->is_index) return a->is_index ? -1 : 1;
    if (a->is_index) return (a->index > b->index) - (a->index < b->index);
    return slice_compare(a->name, b->name);
}

int path_compare(const struct path *a, const struct path *b)
{
    for (uint32_t i = 0; i < a->count && i < b->count; i++) {
        int order = part_compare(&a->parts[i], &b->parts[i]);
        if (order != 0) return order;
    }
    return (a->count > b->count) - (a->count < b->count);
}

bool path_equal(const struct path *a, const struct path *b)
{
    return a->count == b->count && path_compare(a, b) == 0;
}

int path_order(const void *a, const void *b)
{
    return path_compare(a, b);
}

struct slice path_text(struct arena *arena, const struct path *path)
{
    struct buf text = {0};
    buf_byte(&text, '[');
    for (uint32_t i = 0; i < path->count; i++) {
        if (i) buf_text(&text, ", ");
        if (path->parts[i].is_index) {
            buf_byte(&text, '[');
            buf_decimal(&text, path->parts[i].index);
            buf_byte(&text, ']');
        } else {
            buf_slice(&text, path->parts[i].name);
        }
    }
    buf_byte(&text, ']');
    struct slice copy = arena_copy(arena, buf_view(&text));
    buf_free(&text);
    return copy;
}

/* ---- the order of the service's hash maps ---- */

/* The hash of a Java string runs over UTF-16 units. */
uint32_t java_hash(struct slice key)
{
    uint32_t hash = 0;
    for (size_t i = 0; i < key.len;) {
        unsigned char c = (unsigned char)key.data[i];
        unsigned len = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
        uint32_t code = c < 0x80 ? c : c & (0x7fu >> len);
        for (unsigned j = 1; j < len && i + j < key.len; j++)
            code = code << 6 | ((unsigned char)key.data[i + j] & 0x3f);
        if (code >= 0x10000) {
            hash = hash * 31 + (0xd800 + ((code - 0x10000) >> 10));
            code = 0xdc00 + ((code - 0x10000) & 0x3ff);
        }
        hash = hash * 31 + code;
        i += len;
    }
    return hash;
}

uint32_t java_bucket(uint32_t hash, uint32_t capacity)
{
    return (hash ^ hash >> 16) & (capacity - 1);
}

uint32_t java_capacity(uint32_t count)
{
    uint32_t capacity = JAVA_FIRST_CAPACITY;
    while (count > capacity / 4 * 3) capacity *= 2;
    return capacity;
}

uint32_t java_set_capacity(uint32_t count)
{
    uint32_t capacity = JAVA_FIRST_CAPACITY;
    while (capacity < (uint64_t)count * 4 / 3 + 1) capacity *= 2;
    return capacity;
}

/* ---- overlaps ---- */

struct path_tree {
    struct path_part part;
    bool is_end;       /* a path ends here */
    uint32_t position; /* of that path, as its owner counts */
    uint32_t child_count;
    struct path_tree *children, *last_child, *next; /* in order of arrival */
};

struct path_tree *path_tree_new(struct arena *arena)
{
    return arena_new(arena, struct path_tree);
}

static struct path_tree *tree_find(struct path_tree *tree, const struct path_part *part)
{
    for (struct path_tree *child = tree->children; child; child = child->next) {
        if (part_compare(&child->part, part) == 0) return child;
    }
    return NULL;
}

static struct path_tree *tree_grow(struct arena *arena, struct path_tree *tree, const struct path_part *part)
{
    struct path_tree *child = arena_new(arena, struct path_tree);
    child->part = *part;
    if (tree->last_child)
        tree->last_child->next = child;
    else
        tree->children = child;
    tree->last_child = child;
    tree->child_count++;
    return child;
}

static uint32_t tree_bucket(const struct path_tree *child, uint32_t capacity)
{
    uint32_t hash = child->part.is_index ? child->part.index : java_hash(child->part.name);
    return java_bucket(hash + PATH_PART_HASH, capacity);
}

/* The child that the service's walk over the children meets first. */
static struct path_tree *tree_first(const struct path_tree *tree)
{
    struct path_tree *first = NULL;
    uint32_t capacity = java_capacity(tree->child_count), first_bucket = 0;
    for (struct path_tree *child = tree->children; child; child = child->next) {
        uint32_t bucket = tree_bucket(child, capacity);
        if (first && bucket >= first_bucket) continue;
        first = child;
        first_bucket = bucket;
    }
    return first;
}

/* The service does not name the path that overlaps, but the first one that it finds under the same parent. */
static struct slice other_path(struct arena *arena, const struct path_tree *parent, const struct path *path,
                               uint32_t depth)
{
    struct path_part parts[LIMIT_NESTING];
    struct path other = {parts, depth};
    memcpy(parts, path->parts, depth * sizeof *parts);
    for (const struct path_tree *child = tree_first(parent); child; child = tree_first(child)) {
        ensure(other.count < LIMIT_NESTING);
        parts[other.count++] = child->part;
    }
    return path_text(arena, &other);
}

static bool refuse_pair(struct parser *parser, struct slice what, const struct path *path,
                        struct path_tree *parent, uint32_t depth)
{
    return REFUSE(parser, SLICE("Two document paths "), what,
                  SLICE(" with each other; must remove or rewrite one of these paths; path one: "),
                  path_text(parser->arena, path), SLICE(", path two: "),
                  other_path(parser->arena, parent, path, depth));
}

bool path_tree_add(struct parser *parser, struct path_tree *tree, const struct path *path, uint32_t position)
{
    for (uint32_t depth = 0; depth < path->count; depth++) {
        const struct path_part *part = &path->parts[depth];
        if (tree->children && tree->children->part.is_index != part->is_index)
            return refuse_pair(parser, SLICE("conflict"), path, tree, depth);
        struct path_tree *child = tree_find(tree, part);
        bool is_last = depth + 1 == path->count;
        if (child && (is_last || child->is_end))
            return refuse_pair(parser, SLICE("overlap"), path, tree, depth);
        tree = child ? child : tree_grow(parser->arena, tree, part);
    }
    tree->is_end = true;
    tree->position = position;
    return true;
}

/* A child in its bucket. */
struct tree_place {
    const struct path_tree *child;
    uint32_t bucket, arrival;
};

static int place_order(const void *left, const void *right)
{
    const struct tree_place *a = left, *b = right;
    if (a->bucket != b->bucket) return a->bucket < b->bucket ? -1 : 1;
    return (a->arrival > b->arrival) - (a->arrival < b->arrival);
}

uint32_t path_tree_walk(struct arena *arena, const struct path_tree *tree, uint32_t *positions)
{
    if (tree->is_end) {
        positions[0] = tree->position;
        return 1;
    }
    struct tree_place *places = arena_array(arena, struct tree_place, tree->child_count);
    uint32_t count = 0, capacity = java_capacity(tree->child_count), found = 0;
    for (const struct path_tree *child = tree->children; child; child = child->next, count++)
        places[count] = (struct tree_place){child, tree_bucket(child, capacity), count};
    if (count > 1) qsort(places, count, sizeof *places, place_order);
    for (uint32_t i = 0; i < count; i++) found += path_tree_walk(arena, places[i].child, positions + found);
    return found;
}
