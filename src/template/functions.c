/* The functions of templates that make texts and lists of texts and lists. A text that is made of one that is not known
 * yet is not known either. */
#include <stdio.h>

#include "base/limits.h"
#include "template/resolve.h"

/* The argument as a list of at least and at most so many values. */
static bool arguments_of(struct resolver *resolver, const struct node *argument, size_t least, size_t most,
                         const char *takes, const struct node **list)
{
    *list = NULL;
    if (!resolve(resolver, argument, list)) return false;
    size_t count = *list && (*list)->kind == JSON_ARRAY ? node_children(*list) : 0;
    if (count >= least && count <= most) return true;
    return template_fail(resolver->template, argument, "%.*s takes %s", SLICE_ARG(argument->name), takes);
}

static const struct node *put_text(struct resolver *resolver, struct slice text, bool unknown)
{
    struct node *node = make_text(resolver->arena, resolver->call, text);
    node->unknown = unknown;
    return node;
}

bool call_join(struct resolver *resolver, const struct node *argument, const struct node **out)
{
    const struct node *list, *parts;
    struct slice delimiter, text;
    struct buf joined = {0};
    if (!arguments_of(resolver, argument, 2, 2, "a delimiter and a list", &list)) return false;
    if (!text_of(resolver, list->first, "Fn::Join", &delimiter)) return false;
    parts = list->first->next;
    bool unknown = parts->unknown, fine = true;
    if (unknown)
        buf_slice(&joined, parts->text);
    else if (parts->kind != JSON_ARRAY)
        return template_fail(resolver->template, argument, "Fn::Join takes a delimiter and a list");
    for (const struct node *part = parts->first; part && fine; part = part->next) {
        if (part != parts->first) buf_slice(&joined, delimiter);
        fine = text_of(resolver, part, "Fn::Join", &text) &&
               resolver_work(resolver, argument, text.len + delimiter.len + 1);
        if (fine) buf_slice(&joined, text);
        unknown |= part->unknown;
    }
    *out = put_text(resolver, arena_take(resolver->arena, &joined), unknown);
    return fine;
}

bool call_split(struct resolver *resolver, const struct node *argument, const struct node **out)
{
    const struct node *list;
    struct slice delimiter, text;
    if (!arguments_of(resolver, argument, 2, 2, "a delimiter and a text", &list)) return false;
    if (!text_of(resolver, list->first, "Fn::Split", &delimiter) ||
        !text_of(resolver, list->first->next, "Fn::Split", &text))
        return false;
    if (list->first->next->unknown) {
        *out = list->first->next;
        return true;
    }
    if (!delimiter.len) return template_fail(resolver->template, argument, "Fn::Split needs a delimiter");
    struct node *parts = make_node(resolver->arena, JSON_ARRAY, resolver->call);
    const struct node **end = &parts->first;
    for (;;) {
        const char *found = memmem(text.data, text.len, delimiter.data, delimiter.len);
        size_t length = found ? (size_t)(found - text.data) : text.len;
        struct node *part = make_text(resolver->arena, resolver->call, (struct slice){text.data, length});
        *end = part;
        end = &part->next;
        if (!resolver_work(resolver, argument, sizeof *part)) return false;
        if (!found) break;
        text = slice_from(text, length + delimiter.len);
    }
    *out = parts;
    return true;
}

bool call_select(struct resolver *resolver, const struct node *argument, const struct node **out)
{
    const struct node *list, *from;
    struct slice text;
    unsigned long long index;
    if (!arguments_of(resolver, argument, 2, 2, "a number and a list", &list)) return false;
    from = list->first->next;
    if (!text_of(resolver, list->first, "Fn::Select", &text)) return false;
    if (from->unknown) {
        *out = from;
        return true;
    }
    if (from->kind != JSON_ARRAY || !slice_to_u64(text, LIMIT_TEMPLATE_NODES, &index))
        return template_fail(resolver->template, argument, "Fn::Select takes a number and a list");
    const struct node *element = from->first;
    for (unsigned long long i = 0; element && i < index; i++) element = element->next;
    if (!element)
        return template_fail(resolver->template, argument, "Fn::Select wants element %llu of a list of %zu",
                             index, node_children(from));
    *out = element;
    return resolver_work(resolver, argument, index);
}

/* [map, key, key], and perhaps {"DefaultValue": ...}. */
bool call_find_in_map(struct resolver *resolver, const struct node *argument, const struct node **out)
{
    const struct node *list, *at = node_member(resolver->template->root, "Mappings"), *key;
    if (!arguments_of(resolver, argument, 3, 4, "a map and two keys", &list)) return false;
    const struct node *otherwise = node_member(list->first->next->next->next, "DefaultValue");
    key = list->first;
    for (int i = 0; i < 3; i++, key = key->next) {
        struct slice name;
        if (!text_of(resolver, key, "Fn::FindInMap", &name)) return false;
        const struct node *found = at && at->kind == JSON_OBJECT ? at->first : NULL;
        for (; found && !slice_equal(found->name, name); found = found->next)
            if (!resolver_work(resolver, argument, 1)) return false;
        at = found;
        if (found) continue;
        if (otherwise) {
            *out = otherwise;
            return true;
        }
        return template_fail(resolver->template, key, "Fn::FindInMap finds no '%.*s' in 'Mappings'",
                             SLICE_ARG(name));
    }
    *out = at;
    return true;
}

bool call_import_value(struct resolver *resolver, const struct node *argument, const struct node **out)
{
    const struct node *made = NULL;
    struct slice name, value = SLICE_NONE;
    if (!resolve(resolver, argument, &made) || !text_of(resolver, made, "Fn::ImportValue", &name))
        return false;
    if (!resolver_work(resolver, argument, name.len)) return false;
    enum template_answer answer = TEMPLATE_LATER;
    if (!made->unknown && !resolver->is_condition)
        answer = resolver->ask->answer(resolver->ask->context, NULL, name, &value);
    if (answer == TEMPLATE_NONE)
        return template_fail(resolver->template, argument, "no stack exports '%.*s'", SLICE_ARG(name));
    if (answer == TEMPLATE_LATER)
        value = arena_printf(resolver->arena, "${Fn::ImportValue %.*s}", SLICE_ARG(name));
    *out = put_text(resolver, value, answer == TEMPLATE_LATER);
    return true;
}

bool call_base64(struct resolver *resolver, const struct node *argument, const struct node **out)
{
    const struct node *made = NULL;
    struct slice text;
    struct buf encoded = {0};
    if (!resolve(resolver, argument, &made) || !text_of(resolver, made, "Fn::Base64", &text)) return false;
    if (!made->unknown) base64_put(&encoded, text);
    *out = made->unknown ? made : put_text(resolver, arena_take(resolver->arena, &encoded), false);
    return resolver_work(resolver, argument, text.len * 2);
}

/* [block, count, bits of each]: blocks of IPv4. */
bool call_cidr(struct resolver *resolver, const struct node *argument, const struct node **out)
{
    const char *takes = "a block of IPv4 addresses, a number of blocks (up to 256) and their bits (up to 32)";
    const struct node *list;
    unsigned a, b, c, d, length, bits = 8;
    unsigned long long count, given_bits;
    struct slice block, number, last = SLICE("8");
    if (!arguments_of(resolver, argument, 2, 3, takes, &list)) return false;
    const struct node *third = list->first->next->next;
    if (list->first->unknown) {
        *out = list->first;
        return true;
    }
    if (!text_of(resolver, list->first, "Fn::Cidr", &block) ||
        !text_of(resolver, list->first->next, "Fn::Cidr", &number) ||
        (third && !text_of(resolver, third, "Fn::Cidr", &last)))
        return false;
    struct slice text = arena_printf(resolver->arena, "%.*s", SLICE_ARG(block));
    char rest;
    if (sscanf(text.data, "%3u.%3u.%3u.%3u/%2u%c", &a, &b, &c, &d, &length, &rest) != 5 || a > 255 ||
        b > 255 || c > 255 || d > 255 || length > 32 || !slice_to_u64(number, 256, &count) ||
        !slice_to_u64(last, 32, &given_bits))
        return template_fail(resolver->template, argument, "Fn::Cidr takes %s", takes);
    bits = (unsigned)given_bits;
    struct node *blocks = make_node(resolver->arena, JSON_ARRAY, resolver->call);
    uint64_t start = ((uint64_t)a << 24) | (b << 16) | (c << 8) | d;
    if (bits < 32 - length ? (count << bits) > (1ull << (32 - length)) : count > 1)
        return template_fail(resolver->template, argument,
                             "Fn::Cidr: %.*s has no room for %llu blocks of %u bits", SLICE_ARG(block), count,
                             bits);
    for (unsigned long long i = 0; i < count; i++) {
        uint64_t address = start + (i << bits);
        make_append(blocks,
                    make_text(resolver->arena, resolver->call,
                              arena_printf(resolver->arena, "%u.%u.%u.%u/%u", (unsigned)(address >> 24) & 255,
                                           (unsigned)(address >> 16) & 255, (unsigned)(address >> 8) & 255,
                                           (unsigned)address & 255, 32 - bits)));
    }
    *out = blocks;
    return resolver_work(resolver, argument, count * sizeof *blocks);
}

bool call_get_azs(struct resolver *resolver, const struct node *argument, const struct node **out)
{
    const struct node *made = NULL;
    struct slice region;
    if (!resolve(resolver, argument, &made)) return false;
    if (made && made->kind == JSON_NULL) made = make_text(resolver->arena, argument, SLICE(""));
    if (!text_of(resolver, made, "Fn::GetAZs", &region)) return false;
    if (!region.len) region = resolver->template->world->region;
    if (!resolver_work(resolver, argument, 4 * (sizeof(struct node) + region.len))) return false;
    struct node *zones = make_node(resolver->arena, JSON_ARRAY, resolver->call);
    for (char zone = 'a'; zone <= 'c'; zone++)
        make_append(zones, make_text(resolver->arena, resolver->call,
                                     arena_printf(resolver->arena, "%.*s%c", SLICE_ARG(region), zone)));
    *out = zones;
    return true;
}

bool call_length(struct resolver *resolver, const struct node *argument, const struct node **out)
{
    const struct node *list = NULL;
    if (!resolve(resolver, argument, &list)) return false;
    if (!list || list->kind != JSON_ARRAY)
        return template_fail(resolver->template, argument, "Fn::Length takes a list");
    struct node *number = make_node(resolver->arena, JSON_NUMBER, resolver->call);
    number->text = arena_printf(resolver->arena, "%zu", node_children(list));
    *out = number;
    return true;
}

bool call_to_json_string(struct resolver *resolver, const struct node *argument, const struct node **out)
{
    const struct node *made = NULL;
    struct buf text = {0};
    if (!resolve(resolver, argument, &made)) return false;
    if (!made || (made->kind != JSON_OBJECT && made->kind != JSON_ARRAY))
        return template_fail(resolver->template, argument, "Fn::ToJsonString takes an object or a list");
    node_put(&text, made);
    *out = put_text(resolver, arena_take(resolver->arena, &text), template_is_unknown(made));
    return resolver_work(resolver, argument, (*out)->text.len);
}
