/* JSON Merge Patch (RFC 7396): members of the patch replace those of the target, null removes them, objects
 * are merged. Both are sorted by name first, so that large ones cost no more than their size; the order of
 * members has no meaning in an item. */
#include "pattern/merge.h"

#include <stdlib.h>

#include "base/attribute.h"

struct member {
    struct slice name, value;
};

/* By name; of the same name, the later one last. */
static int member_order(const void *a, const void *b)
{
    const struct member *one = a, *other = b;
    int order = slice_compare(one->name, other->name);
    return order ? order : one->value.data < other->value.data ? -1 : 1;
}

/* The members of an object, sorted, each name once: the last one of a name counts. */
static struct member *members_of(struct arena *arena, struct slice object, size_t *count)
{
    struct raw_look look;
    size_t all = raw_kind(object) == JSON_OBJECT ? raw_count(arena, object) : 0, kept = 0, i = 0;
    struct member *members = arena_array(arena, struct member, all);
    raw_look_begin(&look, arena, object);
    while (i < all && raw_look_next(&look, &members[i].name, &members[i].value)) i++;
    if (all) qsort(members, all, sizeof *members, member_order);
    for (i = 0; i < all; i++) {
        bool again = kept && slice_equal(members[kept - 1].name, members[i].name);
        members[again ? kept - 1 : kept++] = members[i];
    }
    *count = kept;
    return members;
}

static void put_merged(struct buf *out, struct arena *arena, struct slice target, struct slice patch);

static void put_merged_object(struct buf *out, struct arena *arena, struct slice target, struct slice patch)
{
    size_t old_count, new_count, old_at = 0, new_at = 0;
    struct member *old = members_of(arena, target, &old_count), *new = members_of(arena, patch, &new_count);
    bool first = true;
    buf_byte(out, '{');
    while (old_at < old_count || new_at < new_count) {
        int order = old_at == old_count   ? 1
                    : new_at == new_count ? -1
                                          : slice_compare(old[old_at].name, new[new_at].name);
        struct slice name = order <= 0 ? old[old_at].name : new[new_at].name;
        struct slice value = order <= 0 ? old[old_at++].value : SLICE_NONE;
        struct slice change = order >= 0 ? new[new_at++].value : SLICE_NONE;
        if (raw_kind(change) == JSON_NULL) continue;
        if (!first) buf_byte(out, ',');
        first = false;
        json_put_string(out, name);
        buf_byte(out, ':');
        put_merged(out, arena, value, change);
    }
    buf_byte(out, '}');
}

/* No patch at all leaves the target as it is. */
static void put_merged(struct buf *out, struct arena *arena, struct slice target, struct slice patch)
{
    if (!patch.data)
        buf_slice(out, target);
    else if (raw_kind(patch) == JSON_OBJECT)
        put_merged_object(out, arena, target, patch);
    else
        buf_slice(out, patch);
}

struct slice merge_patch(struct arena *arena, struct slice target, struct slice patch)
{
    struct buf out = {0};
    put_merged(&out, arena, target, patch);
    return arena_take(arena, &out);
}
