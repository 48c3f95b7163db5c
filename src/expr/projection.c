/* Projections: the paths of a ProjectionExpression, and the parts of an item they lead to.
 *
 * The paths are kept sorted, so that all that begin alike stand together and list elements come in the order
 * of their indexes. The legacy parameters bring theirs in any order. */
#include "expr/parse.h"

#include <stdlib.h>

#include "base/fail.h"

#define FIRST_PATHS 8

/* ---- parsing ---- */

static bool parse_paths(struct parser *parser, struct projection *out)
{
    uint32_t capacity = 0;
    for (;;) {
        if (out->count == capacity) {
            capacity = capacity ? capacity * 4 : FIRST_PATHS;
            struct path *paths = arena_array(parser->arena, struct path, capacity);
            if (out->count) memcpy(paths, out->paths, out->count * sizeof *paths);
            out->paths = paths;
        }
        if (!parse_path(parser, &out->paths[out->count++])) return false;
        if (parser->token.kind == TOKEN_END) return true;
        if (!parser_expect(parser, TOKEN_COMMA)) return false;
    }
}

bool paths_are_apart(struct arena *arena, const struct path *paths, uint32_t count, struct slice *fault)
{
    struct parser parser = {.arena = arena, .kind = EXPR_STATEMENT, .fault = fault};
    struct path_tree *tree = path_tree_new(arena);
    for (uint32_t i = 0; i < count; i++)
        if (!path_tree_add(&parser, tree, &paths[i], i)) return false;
    return true;
}

/* The service binds the last path first. */
static bool bind_paths(struct parser *parser, struct projection *out)
{
    struct path_tree *tree = path_tree_new(parser->arena);
    for (uint32_t i = out->count; i-- > 0;) {
        if (!bind_path(parser, &out->paths[i]) || !path_tree_add(parser, tree, &out->paths[i], i))
            return false;
    }
    return true;
}

bool projection_parse(struct arena *arena, struct slice text, struct expr_params *params,
                      struct projection *out, struct slice *fault)
{
    struct parser parser;
    *out = (struct projection){0};
    if (!parser_begin(&parser, arena, EXPR_PROJECTION, text, params, fault)) return false;
    if (!parse_paths(&parser, out)) return false;
    for (uint32_t i = 0; i < out->count; i++) {
        if (!check_path_words(&parser, &out->paths[i])) return false;
    }
    if (!bind_paths(&parser, out)) return false;
    qsort(out->paths, out->count, sizeof *out->paths, path_order);
    return true;
}

/* ---- applying ---- */

/* Paths that agree in their first `depth` parts, seen from the value that those parts lead to. */
struct view {
    struct arena *arena;
    const struct path *paths;
    uint32_t count, depth;
};

static bool project_value(const struct view *view, const struct value *from, struct value *out);

/* How many paths of the view, from `start` on, share their next part. */
static uint32_t group_size(const struct view *view, uint32_t start)
{
    struct path prefix = {view->paths[start].parts, view->depth + 1};
    uint32_t end = start + 1;
    for (; end < view->count; end++) {
        struct path other = {view->paths[end].parts, view->depth + 1};
        if (path_compare(&prefix, &other) != 0) break;
    }
    return end - start;
}

static struct map project_map(const struct view *view, const struct map *from)
{
    struct map out = {arena_array(view->arena, struct attribute, view->count), 0};
    for (uint32_t i = 0, size; i < view->count; i += size) {
        size = group_size(view, i);
        const struct path_part *part = &view->paths[i].parts[view->depth];
        const struct value *found = part->is_index ? NULL : map_find(from, part->name);
        struct view inner = {view->arena, view->paths + i, size, view->depth + 1};
        if (!found || !project_value(&inner, found, &out.attributes[out.count].value)) continue;
        out.attributes[out.count++].name = part->name;
    }
    return out;
}

static struct value project_list(const struct view *view, const struct value *from)
{
    struct value out = {.type = VALUE_L, .elements = arena_array(view->arena, struct value, view->count)};
    for (uint32_t i = 0, size; i < view->count; i += size) {
        size = group_size(view, i);
        const struct value *found = part_find(&view->paths[i].parts[view->depth], from);
        struct view inner = {view->arena, view->paths + i, size, view->depth + 1};
        if (found && project_value(&inner, found, &out.elements[out.count])) out.count++;
    }
    return out;
}

/* False when no path of the view leads anywhere. */
static bool project_value(const struct view *view, const struct value *from, struct value *out)
{
    if (view->paths[0].count == view->depth) {
        ensure(view->count == 1);
        *out = *from;
        return true;
    }
    if (from->type == VALUE_M) {
        *out = (struct value){.type = VALUE_M, .map = project_map(view, &from->map)};
        return out->map.count > 0;
    }
    if (from->type != VALUE_L) return false;
    *out = project_list(view, from);
    return out->count > 0;
}

static bool are_sorted(const struct path *paths, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        if (path_compare(&paths[i - 1], &paths[i]) > 0) return false;
    }
    return true;
}

struct map project(struct arena *arena, const struct path *paths, uint32_t count, const struct map *item)
{
    if (!are_sorted(paths, count)) {
        struct path *sorted = arena_array(arena, struct path, count);
        memcpy(sorted, paths, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, path_order);
        paths = sorted;
    }
    struct view view = {arena, paths, count, 0};
    return project_map(&view, item);
}

/* Names are distinct, so the result needs only to be sorted. */
static struct map project_flat(struct arena *arena, const struct projection *projection,
                               const struct map *item)
{
    struct map out = {arena_array(arena, struct attribute, projection->count), 0};
    struct slice duplicate;
    for (uint32_t i = 0; i < projection->count; i++) {
        const struct value *found = path_find(&projection->paths[i], item);
        if (found) out.attributes[out.count++] = (struct attribute){projection->names[i], *found};
    }
    ensure(map_sort(&out, &duplicate));
    return out;
}

struct map projection_apply(struct arena *arena, const struct projection *projection, const struct map *item)
{
    if (projection->names) return project_flat(arena, projection, item);
    return project(arena, projection->paths, projection->count, item);
}
