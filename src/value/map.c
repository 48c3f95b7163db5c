/* Maps: attributes in one array, sorted by name (V2), so that a look-up is a binary search and equality one
 * walk. A map is never changed in place; an update copies the array, whose values still share what they point
 * at (V4). */
#include <stdlib.h>

#include "value/value.h"

#define INSERTION_SORT_MAX 16 /* below this, sorting in place beats qsort's calls */

static int by_name(const void *a, const void *b)
{
    return slice_compare(((const struct attribute *)a)->name, ((const struct attribute *)b)->name);
}

static void insertion_sort(struct attribute *attributes, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        if (slice_compare(attributes[i - 1].name, attributes[i].name) <= 0) continue;
        struct attribute moving = attributes[i];
        uint32_t at = i;
        for (; at > 0 && slice_compare(attributes[at - 1].name, moving.name) > 0; at--)
            attributes[at] = attributes[at - 1];
        attributes[at] = moving;
    }
}

bool map_sort(struct map *map, struct slice *duplicate)
{
    if (map->count <= INSERTION_SORT_MAX)
        insertion_sort(map->attributes, map->count);
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
