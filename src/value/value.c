/* Values: their types' names, equality, order, billed size and depth; and sets, whose members are kept sorted
 * (V2) so that equality is one walk, and membership, sum and difference are searches. */
#include "value/value.h"

#include <stdlib.h>

#include "base/fail.h"

#define INSERTION_SORT_MAX 16 /* below this, sorting in place beats qsort's calls */

static const struct slice type_names[VALUE_TYPES] = {
    [VALUE_S] = {"S", 1},       [VALUE_N] = {"N", 1},   [VALUE_B] = {"B", 1}, [VALUE_BOOL] = {"BOOL", 4},
    [VALUE_NULL] = {"NULL", 4}, [VALUE_L] = {"L", 1},   [VALUE_M] = {"M", 1}, [VALUE_SS] = {"SS", 2},
    [VALUE_NS] = {"NS", 2},     [VALUE_BS] = {"BS", 2},
};

struct slice value_type_name(enum value_type type)
{
    ensure((unsigned)type < VALUE_TYPES);
    return type_names[type];
}

bool value_type_from_name(struct slice name, enum value_type *out)
{
    for (unsigned type = 0; type < VALUE_TYPES; type++) {
        /* names of one length differ in their first letter */
        if (name.len != type_names[type].len || name.data[0] != type_names[type].data[0]) continue;
        if (!slice_equal(name, type_names[type])) return false;
        *out = (enum value_type)type;
        return true;
    }
    return false;
}

static bool members_equal(const struct value *a, const struct value *b)
{
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (!slice_equal(a->members[i], b->members[i])) return false;
    return true;
}

static bool elements_equal(const struct value *a, const struct value *b)
{
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (!value_equal(&a->elements[i], &b->elements[i])) return false;
    return true;
}

bool value_equal(const struct value *a, const struct value *b)
{
    if (a->type != b->type) return false;
    switch (a->type) {
    case VALUE_S:
    case VALUE_N:
    case VALUE_B: return slice_equal(a->bytes, b->bytes);
    case VALUE_BOOL: return a->truth == b->truth;
    case VALUE_NULL: return true;
    case VALUE_L: return elements_equal(a, b);
    case VALUE_M: return map_equal(&a->map, &b->map);
    case VALUE_SS:
    case VALUE_NS:
    case VALUE_BS: return members_equal(a, b);
    }
    fail_ensure("type of a value", __FILE__, __LINE__);
}

int value_compare(const struct value *a, const struct value *b)
{
    ensure(a->type == b->type && a->type <= VALUE_B);
    return a->type == VALUE_N ? number_text_compare(a->bytes, b->bytes) : slice_compare(a->bytes, b->bytes);
}

/* ---- sets ---- */

static bool is_set(enum value_type type)
{
    return type == VALUE_SS || type == VALUE_NS || type == VALUE_BS;
}

static int member_compare(enum value_type type, struct slice a, struct slice b)
{
    return type == VALUE_NS ? number_text_compare(a, b) : slice_compare(a, b);
}

static int by_bytes(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

static int by_number(const void *a, const void *b)
{
    return number_text_compare(*(const struct slice *)a, *(const struct slice *)b);
}

static void insertion_sort(enum value_type type, struct slice *members, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        struct slice moving = members[i];
        uint32_t at = i;
        for (; at > 0 && member_compare(type, members[at - 1], moving) > 0; at--)
            members[at] = members[at - 1];
        members[at] = moving;
    }
}

static bool is_strictly_sorted(enum value_type type, const struct slice *members, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (member_compare(type, members[i - 1], members[i]) >= 0) return false;
    return true;
}

bool set_sort(enum value_type type, struct slice *members, uint32_t count)
{
    ensure(is_set(type));
    if (is_strictly_sorted(type, members, count)) return true;
    if (count <= INSERTION_SORT_MAX)
        insertion_sort(type, members, count);
    else
        qsort(members, count, sizeof *members, type == VALUE_NS ? by_number : by_bytes);
    return is_strictly_sorted(type, members, count);
}

/* Where the member stands, or else belongs, between the two. */
static uint32_t set_place(const struct value *set, uint32_t low, uint32_t high, struct slice member,
                          bool *found)
{
    *found = false;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = member_compare(set->type, set->members[middle], member);
        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool set_contains(const struct value *set, struct slice member)
{
    ensure(is_set(set->type));
    bool found;
    set_place(set, 0, set->count, member, &found);
    return found;
}

/* The same from `low` on, where it is likely to be near: in steps that double. */
static uint32_t set_place_behind(const struct value *set, uint32_t low, struct slice member, bool *found)
{
    uint32_t high = low, step = 1;
    while (high < set->count && member_compare(set->type, set->members[high], member) < 0) {
        low = high + 1;
        high = step < set->count - high ? high + step : set->count;
        step *= 2;
    }
    return set_place(set, low, high < set->count ? high + 1 : high, member, found);
}

/* Room for the result of one walk over both. */
static struct value set_room(struct arena *arena, const struct value *a, size_t capacity)
{
    struct value set = {.type = a->type};
    set.members = capacity ? arena_array(arena, struct slice, capacity) : NULL;
    return set;
}

static void set_append(struct value *set, const struct slice *members, uint32_t count)
{
    if (count) memcpy(set->members + set->count, members, count * sizeof *members);
    set->count += count;
}

/* The members of the smaller set are looked for in the larger one; what lies between them is copied as it is. */
struct value set_union(struct arena *arena, const struct value *a, const struct value *b)
{
    ensure(is_set(a->type) && a->type == b->type);
    const struct value *large = a->count >= b->count ? a : b, *small = large == a ? b : a;
    struct value sum = set_room(arena, a, (size_t)a->count + b->count);
    uint32_t at = 0;
    for (uint32_t i = 0; i < small->count; i++) {
        bool found;
        uint32_t place = set_place_behind(large, at, small->members[i], &found);
        set_append(&sum, large->members + at, place - at);
        set_append(&sum, &small->members[i], 1);
        at = place + found;
    }
    if (at < large->count) set_append(&sum, large->members + at, large->count - at);
    return sum;
}

struct value set_difference(struct arena *arena, const struct value *a, const struct value *b)
{
    ensure(is_set(a->type) && a->type == b->type);
    struct value rest = set_room(arena, a, a->count);
    uint32_t at = 0;
    for (uint32_t i = 0; i < b->count && at < a->count; i++) {
        bool found;
        uint32_t place = set_place_behind(a, at, b->members[i], &found);
        set_append(&rest, a->members + at, place - at);
        at = place + found;
    }
    if (at < a->count) set_append(&rest, a->members + at, a->count - at);
    return rest;
}

/* ---- size and depth ---- */

static size_t members_size(const struct value *set)
{
    size_t size = 0;
    for (uint32_t i = 0; i < set->count; i++)
        size += set->type == VALUE_NS ? number_size(set->members[i]) : set->members[i].len;
    return size;
}

/* A list or map costs 3 bytes, and each of its entries 1 on top of what it holds. */
static size_t list_size(const struct value *list)
{
    size_t size = 3;
    for (uint32_t i = 0; i < list->count; i++) size += 1 + value_size(&list->elements[i]);
    return size;
}

size_t value_size(const struct value *value)
{
    switch (value->type) {
    case VALUE_S:
    case VALUE_B: return value->bytes.len;
    case VALUE_N: return number_size(value->bytes);
    case VALUE_BOOL:
    case VALUE_NULL: return 1;
    case VALUE_L: return list_size(value);
    case VALUE_M: return 3 + value->map.count + map_size(&value->map);
    case VALUE_SS:
    case VALUE_NS:
    case VALUE_BS: return members_size(value);
    }
    fail_ensure("type of a value", __FILE__, __LINE__);
}

unsigned value_depth(const struct value *value)
{
    unsigned deepest = 0;
    if (value->type == VALUE_L) {
        for (uint32_t i = 0; i < value->count; i++) {
            unsigned depth = value_depth(&value->elements[i]);
            if (depth > deepest) deepest = depth;
        }
    } else if (value->type == VALUE_M) {
        for (uint32_t i = 0; i < value->map.count; i++) {
            unsigned depth = value_depth(&value->map.attributes[i].value);
            if (depth > deepest) deepest = depth;
        }
    } else {
        return 0;
    }
    return deepest + 1;
}
