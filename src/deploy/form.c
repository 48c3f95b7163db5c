/* Forms: flat objects of what matters about a thing, and their comparison.
 *
 * Templates are loose about types ("256" for 256, "true" for true), the APIs are not; so each member is written in its
 * own type, and scalars are compared by their text. */
#include <string.h>

#include "deploy/internal.h"

/* ---- writing ---- */

static struct slice scalar_text(const struct node *node)
{
    if (node->kind == JSON_TRUE) return SLICE("true");
    if (node->kind == JSON_FALSE) return SLICE("false");
    return node->text;
}

static bool is_number(struct slice text)
{
    size_t i = text.len && text.data[0] == '-' ? 1 : 0;
    bool has_digit = false;
    for (; i < text.len; i++) {
        if (text.data[i] >= '0' && text.data[i] <= '9')
            has_digit = true;
        else if (text.data[i] != '.')
            return false;
    }
    return has_digit;
}

void form_put_value(struct buf *out, const struct node *value, char type)
{
    struct slice text = scalar_text(value);
    bool is_scalar = value->kind != JSON_OBJECT && value->kind != JSON_ARRAY;
    if (type == 'n' && is_scalar && is_number(text)) {
        buf_slice(out, text);
    } else if (type == 'b' && is_scalar && value->kind == JSON_STRING &&
               (slice_equal(text, SLICE("true")) || slice_equal(text, SLICE("false")))) {
        buf_slice(out, text);
    } else if (type == 's' && is_scalar && value->kind != JSON_NULL) {
        json_put_string(out, text);
    } else if ((type == 'l' && value->kind == JSON_ARRAY) || (type == 'm' && value->kind == JSON_OBJECT)) {
        buf_byte(out, type == 'l' ? '[' : '{');
        for (const struct node *one = value->first; one; one = one->next) {
            put_comma(out);
            if (type == 'm') json_put_string(out, one->name), buf_byte(out, ':');
            form_put_value(out, one, 's');
        }
        buf_byte(out, type == 'l' ? ']' : '}');
    } else if (type == 'l' && value->kind == JSON_STRING) { /* one text for a list of one */
        buf_byte(out, '[');
        json_put_string(out, text);
        buf_byte(out, ']');
    } else {
        node_put(out, value);
    }
}

void form_put(struct buf *out, const struct node *object, const struct form_member *members, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct node *value = node_member(object, members[i].name);
        if (value && value->kind == JSON_NULL) value = NULL;
        if (!value && !members[i].otherwise) continue;
        put_name(out, members[i].name);
        if (value)
            form_put_value(out, value, members[i].type);
        else
            buf_slice(out, slice_of(members[i].otherwise));
    }
}

void form_put_tags(struct buf *out, const char *name, const struct node *tags)
{
    put_name(out, name);
    buf_byte(out, '{');
    for (const struct node *tag = tags ? tags->first : NULL; tag; tag = tag->next) {
        const struct node *value = tags->kind == JSON_OBJECT ? tag : node_member(tag, "Value");
        struct slice key = tags->kind == JSON_OBJECT ? tag->name : node_text(tag, "Key");
        if (!value) continue;
        put_comma(out);
        json_put_string(out, key);
        buf_byte(out, ':');
        form_put_value(out, value, 's');
    }
    buf_byte(out, '}');
}

/* ---- comparing ---- */

static bool is_empty(const struct node *node)
{
    if (!node || node->kind == JSON_NULL) return true;
    if (node->kind == JSON_STRING) return !node->text.len;
    if (node->kind != JSON_OBJECT && node->kind != JSON_ARRAY) return false;
    for (const struct node *one = node->first; one; one = one->next)
        if (node->kind == JSON_ARRAY || !is_empty(one)) return false;
    return true;
}

static const struct node *member_of(const struct node *object, struct slice name)
{
    for (const struct node *one = object->first; one; one = one->next)
        if (slice_equal(one->name, name)) return one;
    return NULL;
}

/* All members of the one are in the other. */
static bool is_covered(const struct node *one, const struct node *other, bool is_loose)
{
    for (const struct node *member = one->first; member; member = member->next)
        if (!form_equal(member, member_of(other, member->name), is_loose)) return false;
    return true;
}

bool form_equal(const struct node *want, const struct node *have, bool is_loose)
{
    if (is_empty(want)) return is_loose || is_empty(have);
    if (!have) return false;
    if (want->kind == JSON_OBJECT)
        return have->kind == JSON_OBJECT && is_covered(want, have, is_loose) &&
               (is_loose || is_covered(have, want, false));
    if (want->kind == JSON_ARRAY) {
        const struct node *a = want->first, *b = have->kind == JSON_ARRAY ? have->first : NULL;
        for (; a && b && form_equal(a, b, is_loose); a = a->next) b = b->next;
        return !a && !b && have->kind == JSON_ARRAY;
    }
    if (have->kind == JSON_OBJECT || have->kind == JSON_ARRAY) return false;
    return slice_equal(scalar_text(want), scalar_text(have));
}

bool word_is_in(const char *words, struct slice word)
{
    struct slice rest = slice_of(words ? words : "");
    while (rest.len)
        if (slice_equal(slice_cut(&rest, ' '), word)) return true;
    return false;
}

struct deploy_difference *form_compare(struct deploy *deploy, const struct kind *kind,
                                       const struct node *want, const struct node *have)
{
    struct deploy_difference *first = NULL, **end = &first;
    for (int pass = 0; pass < 2; pass++) { /* what only `have` has comes last */
        for (const struct node *one = pass ? have->first : want->first; one; one = one->next) {
            const struct node *other = member_of(pass ? want : have, one->name);
            const struct node *after = pass ? other : one, *before = pass ? one : other;
            bool is_loose = word_is_in(kind->loose, one->name);
            if ((pass && other) || form_equal(after, before, is_loose)) continue;
            struct deploy_difference *found = arena_new(&deploy->arena, struct deploy_difference);
            *found = (struct deploy_difference){.member = one->name,
                                                .before = before,
                                                .after = after,
                                                .is_exact = !is_loose,
                                                .replaces = word_is_in(kind->replacing, one->name)};
            *end = found;
            end = &found->next;
        }
    }
    return first;
}

bool resource_differs(const struct resource *resource, const char *member)
{
    return resource_differs_in(resource, member);
}

bool resource_differs_in(const struct resource *resource, const char *members)
{
    for (const struct deploy_difference *one = resource->change.differences; one; one = one->next)
        if (word_is_in(members, one->member)) return true;
    return false;
}

/* ---- ARNs ---- */

struct slice arn_last(struct slice arn, char separator)
{
    const char *at = arn.len ? memrchr(arn.data, separator, arn.len) : NULL;
    return at ? slice_from(arn, (size_t)(at + 1 - arn.data)) : arn;
}

void function_split(struct slice text, struct slice *name, struct slice *qualifier)
{
    struct slice rest = text;
    if (slice_starts(text, SLICE("arn:")))
        for (int colons = 0; colons < 6 && rest.len; colons++) slice_cut(&rest, ':');
    *name = slice_cut(&rest, ':');
    *qualifier = rest;
}
