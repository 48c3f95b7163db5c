/* Maps: attributes in one array, sorted by name (V2), so that a look-up is a binary search and equality one
 * walk. A map is never changed in place; an update copies the array, whose values still share what they point
 * at (V4). */
#include <endian.h>
#include <stdlib.h>

#include "value/value.h"

#define INSERTION_SORT_MAX 16 /* up to this, insertion beats qsort's calls */

static int by_name(const void *a, const void *b)
{
    return slice_compare(((const struct attribute *)a)->name, ((const struct attribute *)b)->name);
}

/* The first bytes as a number of the same order; where they are equal the names must be compared. */
static uint64_t name_prefix(struct slice name)
{
    uint64_t prefix = 0;
    if (name.len >= sizeof prefix)
        memcpy(&prefix, name.data, sizeof prefix);
    else if (name.len)
        memcpy(&prefix, name.data, name.len);
    return be64toh(prefix);
}

/* Attributes are large, so their places are sorted and each attribute is moved once. */
static void sort_few(struct attribute *attributes, uint32_t count)
{
    struct place {
        uint64_t prefix;
        uint32_t at;
    } places[INSERTION_SORT_MAX];
    struct attribute sorted[INSERTION_SORT_MAX];
    bool moved = false;
    for (uint32_t i = 0; i < count; i++) {
        struct place place = {name_prefix(attributes[i].name), i};
        uint32_t to = i;
        for (; to > 0 && places[to - 1].prefix >= place.prefix; to--) {
            struct place *before = &places[to - 1];
            if (before->prefix == place.prefix &&
                slice_compare(attributes[before->at].name, attributes[i].name) <= 0)
                break;
            places[to] = *before;
            moved = true;
        }
        places[to] = place;
    }
    if (!moved) return;
    for (uint32_t i = 0; i < count; i++) sorted[i] = attributes[places[i].at];
    memcpy(attributes, sorted, count * sizeof *attributes);
}

bool map_sort(struct map *map, struct slice *duplicate)
{
    if (map->count <= INSERTION_SORT_MAX)
        sort_few(map->attributes, map->count);
    else
        qsort(map->attributes, map->count, sizeof *map->attributes, by_name);
    for (uint32_t i = 1; i < map->count; i++) {
        if (!slice_equal(map->attributes[i - 1].name, map->attributes[i].name)) continue;
        *duplicate = map->attributes[i].name;
        return false;
    }
    return true;
}

/* Where the name stands, or else belongs. */
static uint32_t map_place(const struct map *map, struct slice name, bool *found)
{
    uint32_t low = 0, high = map->count;
    *found = false;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = slice_compare(map->attributes[middle].name, name);
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

const struct value *map_find(const struct map *map, struct slice name)
{
    bool found;
    uint32_t place = map_place(map, name, &found);
    return found ? &map->attributes[place].value : NULL;
}

static void copy_attributes(struct attribute *to, const struct attribute *from, uint32_t count)
{
    if (count) memcpy(to, from, sizeof *to * count);
}

struct map map_with(struct arena *arena, const struct map *map, struct slice name, const struct value *value)
{
    bool found;
    uint32_t place = map_place(map, name, &found), rest = place + found;
    struct map copy = {.count = map->count + !found};
    copy.attributes = arena_array(arena, struct attribute, copy.count);
    copy_attributes(copy.attributes, map->attributes, place);
    copy.attributes[place] = (struct attribute){name, *value};
    if (rest < map->count)
        copy_attributes(copy.attributes + place + 1, map->attributes + rest, map->count - rest);
    return copy;
}

struct map map_without(struct arena *arena, const struct map *map, struct slice name)
{
    bool found;
    uint32_t place = map_place(map, name, &found);
    if (!found) return *map;
    struct map copy = {.count = map->count - 1};
    if (copy.count == 0) return copy;
    copy.attributes = arena_array(arena, struct attribute, copy.count);
    copy_attributes(copy.attributes, map->attributes, place);
    copy_attributes(copy.attributes + place, map->attributes + place + 1, copy.count - place);
    return copy;
}

bool map_equal(const struct map *a, const struct map *b)
{
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++) {
        const struct attribute *left = &a->attributes[i], *right = &b->attributes[i];
        if (!slice_equal(left->name, right->name) || !value_equal(&left->value, &right->value)) return false;
    }
    return true;
}

size_t map_size(const struct map *map)
{
    size_t size = 0;
    for (uint32_t i = 0; i < map->count; i++)
        size += map->attributes[i].name.len + value_size(&map->attributes[i].value);
    return size;
}
