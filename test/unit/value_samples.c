/* See value_samples.h. */
#include "unit/value_samples.h"

static char sample_digit(struct random *random)
{
    static const char common[] = "0000111999";
    return random_below(random, 2) ? common[random_below(random, 10)]
                                   : (char)('0' + random_below(random, 10));
}

struct slice sample_number(struct arena *arena, struct random *random)
{
    char text[80];
    size_t len = 0, digits = 1 + random_below(random, random_below(random, 4) ? 6 : 38);
    if (random_below(random, 2)) text[len++] = '-';
    for (size_t i = 0; i < digits; i++) text[len++] = sample_digit(random);
    long long exponent = random_below(random, 3)
                             ? (long long)random_below(random, 12) - 8
                             : (long long)random_below(random, 255) - 129 - (long long)digits / 2;
    len += (size_t)snprintf(text + len, sizeof text - len, "e%lld", exponent);
    struct slice canonical;
    if (number_canonical(arena, (struct slice){text, len}, &canonical) == NUMBER_OK) return canonical;
    return sample_number(arena, random);
}

struct slice sample_bytes(struct arena *arena, struct random *random)
{
    static const char alphabet[] = {0, 0, 1, 'a', 'b', (char)0xff, (char)0xfe, (char)0x80};
    size_t len = random_below(random, random_below(random, 20) ? 6 : 300);
    char *bytes = arena_alloc(arena, len + 1);
    for (size_t i = 0; i < len; i++) bytes[i] = alphabet[random_below(random, sizeof alphabet)];
    return (struct slice){bytes, len};
}

struct value sample_key(struct arena *arena, struct random *random, enum value_type type)
{
    struct value value = {.type = type};
    value.bytes = type == VALUE_N ? sample_number(arena, random) : sample_bytes(arena, random);
    return value;
}

/* A number one unit in some place away, or a tenth, or its negation. */
static struct slice number_neighbour(struct arena *arena, struct random *random, struct slice text)
{
    struct number number, step, result;
    number_parse(text, &number);
    result = number;
    if (random_below(random, 4) == 0) result.negative = number.digits && !number.negative;
    step = (struct number){1, number.exponent + (int)random_below(random, 6) - 2, random_below(random, 2)};
    struct number moved;
    if (random_below(random, 2) && number_add(&result, &step, &moved) == NUMBER_OK) result = moved;
    return number_text(arena, &result);
}

struct value sample_neighbour(struct arena *arena, struct random *random, const struct value *value)
{
    if (random_below(random, 4) == 0) return sample_key(arena, random, value->type);
    struct value near = *value;
    if (value->type == VALUE_N) {
        near.bytes = number_neighbour(arena, random, value->bytes);
        return near;
    }
    struct slice tail = sample_bytes(arena, random);
    size_t keep = random_below(random, 2) ? value->bytes.len : random_below(random, value->bytes.len + 1);
    size_t add = tail.len < 3 ? tail.len : random_below(random, 3);
    char *bytes = arena_alloc(arena, keep + add + 1);
    memcpy(bytes, value->bytes.data, keep);
    memcpy(bytes + keep, tail.data, add);
    near.bytes = (struct slice){bytes, keep + add};
    return near;
}

static struct value sample_set(struct arena *arena, struct random *random, enum value_type type)
{
    struct value set = {.type = type};
    uint32_t count = 1 + (uint32_t)random_below(random, random_below(random, 8) ? 5 : 60);
    set.members = arena_array(arena, struct slice, count);
    for (uint32_t i = 0; i < count; i++) {
        struct slice member = type == VALUE_NS ? sample_number(arena, random) : sample_bytes(arena, random);
        set.members[set.count++] = member;
        if (!set_sort(type, set.members, set.count)) {
            struct value one = {.type = type, .count = 1, .members = &member};
            set = set_difference(arena, &set, &one);
            set.members = memcpy(arena_array(arena, struct slice, count), set.members,
                                 sizeof *set.members * set.count);
        }
    }
    return set;
}

static struct value sample_list(struct arena *arena, struct random *random, unsigned levels)
{
    struct value list = {.type = VALUE_L, .count = (uint32_t)random_below(random, 5)};
    list.elements = list.count ? arena_array(arena, struct value, list.count) : NULL;
    for (uint32_t i = 0; i < list.count; i++) list.elements[i] = sample_value(arena, random, levels - 1);
    return list;
}

struct value sample_value(struct arena *arena, struct random *random, unsigned levels)
{
    enum value_type type = (enum value_type)random_below(random, VALUE_TYPES);
    if (levels == 0 && (type == VALUE_L || type == VALUE_M)) type = VALUE_N;
    switch (type) {
    case VALUE_BOOL: return (struct value){.type = type, .truth = random_below(random, 2)};
    case VALUE_NULL: return (struct value){.type = type};
    case VALUE_L: return sample_list(arena, random, levels);
    case VALUE_M: return (struct value){.type = type, .map = sample_map(arena, random, levels - 1)};
    case VALUE_SS:
    case VALUE_NS:
    case VALUE_BS: return sample_set(arena, random, type);
    default: return sample_key(arena, random, type);
    }
}

struct map sample_map(struct arena *arena, struct random *random, unsigned levels)
{
    struct map map = {0};
    uint32_t count = (uint32_t)random_below(random, random_below(random, 10) ? 6 : 40);
    for (uint32_t i = 0; i < count; i++) {
        struct value value = sample_value(arena, random, levels);
        map = map_with(arena, &map, sample_bytes(arena, random), &value);
    }
    return map;
}
