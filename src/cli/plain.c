/* Both directions walk a tree, since whether {"$set":...} is a set or a map is known only when all its
 * members are. */
#include "cli/plain.h"

#include "base/raw.h"

/* The only member of an object with just one, when it has this name; else NULL. */
static const struct node *only_member(const struct node *node, const char *name)
{
    if (node->kind != JSON_OBJECT || !node->first || node->first->next) return NULL;
    return slice_equal(node->first->name, slice_of(name)) ? node->first : NULL;
}

static bool is_notation(struct slice name)
{
    return slice_equal(name, SLICE("$binary")) || slice_equal(name, SLICE("$set")) ||
           slice_equal(name, SLICE("$map"));
}

/* ---- plain to DynamoDB ---- */

static bool refuse(const char **fault, const char *sentence)
{
    *fault = sentence;
    return false;
}

static bool put_list(struct buf *out, const struct node *list, const char **fault)
{
    buf_text(out, "{\"L\":[");
    for (const struct node *element = list->first; element; element = element->next) {
        put_comma(out);
        if (!plain_value_to_dynamo(out, element, fault)) return false;
    }
    buf_text(out, "]}");
    return true;
}

static bool put_map(struct buf *out, const struct node *map, const char **fault)
{
    if (map->kind != JSON_OBJECT) return refuse(fault, "\"$map\" needs an object");
    buf_text(out, "{\"M\":");
    if (!plain_item_to_dynamo(out, map, fault)) return false;
    buf_byte(out, '}');
    return true;
}

static bool put_binary(struct buf *out, const struct node *binary, const char **fault)
{
    if (binary->kind != JSON_STRING) return refuse(fault, "\"$binary\" needs a string of base64");
    buf_text(out, "{\"B\":");
    json_put_string(out, binary->text);
    buf_byte(out, '}');
    return true;
}

/* "SS", "NS" or "BS" by what a set's member is; NULL when no set can hold it. */
static const char *set_type(const struct node *member)
{
    if (member->kind == JSON_STRING) return "SS";
    if (member->kind == JSON_NUMBER) return "NS";
    const struct node *binary = only_member(member, "$binary");
    return binary && binary->kind == JSON_STRING ? "BS" : NULL;
}

static bool put_set(struct buf *out, const struct node *set, const char **fault)
{
    const char *type = set->kind == JSON_ARRAY && set->first ? set_type(set->first) : NULL;
    if (!type) return refuse(fault, "\"$set\" needs a list of strings, of numbers or of {\"$binary\":...}");
    buf_printf(out, "{\"%s\":[", type);
    for (const struct node *member = set->first; member; member = member->next) {
        if (set_type(member) != type) return refuse(fault, "the members of a \"$set\" must be of one type");
        put_comma(out);
        json_put_string(out, member->kind == JSON_OBJECT ? member->first->text : member->text);
    }
    buf_text(out, "]}");
    return true;
}

static bool put_object(struct buf *out, const struct node *object, const char **fault)
{
    const struct node *inner;
    if ((inner = only_member(object, "$binary"))) return put_binary(out, inner, fault);
    if ((inner = only_member(object, "$set"))) return put_set(out, inner, fault);
    if ((inner = only_member(object, "$map"))) return put_map(out, inner, fault);
    return put_map(out, object, fault);
}

bool plain_value_to_dynamo(struct buf *out, const struct node *value, const char **fault)
{
    switch (value->kind) {
    case JSON_STRING:
        buf_text(out, "{\"S\":");
        json_put_string(out, value->text);
        break;
    case JSON_NUMBER:
        buf_text(out, "{\"N\":");
        json_put_string(out, value->text);
        break;
    case JSON_NULL: buf_text(out, "{\"NULL\":true"); break;
    case JSON_TRUE: buf_text(out, "{\"BOOL\":true"); break;
    case JSON_FALSE: buf_text(out, "{\"BOOL\":false"); break;
    case JSON_ARRAY: return put_list(out, value, fault);
    default: return put_object(out, value, fault);
    }
    buf_byte(out, '}');
    return true;
}

bool plain_item_to_dynamo(struct buf *out, const struct node *item, const char **fault)
{
    if (item->kind != JSON_OBJECT) return refuse(fault, "an item is an object: {\"name\":value,...}");
    buf_byte(out, '{');
    for (const struct node *member = item->first; member; member = member->next) {
        put_comma(out);
        json_put_string(out, member->name);
        buf_byte(out, ':');
        if (!plain_value_to_dynamo(out, member, fault)) return false;
    }
    buf_byte(out, '}');
    return true;
}

/* ---- DynamoDB to plain ---- */

static bool put_plain_list(struct buf *out, const struct node *list)
{
    if (list->kind != JSON_ARRAY) return false;
    buf_byte(out, '[');
    for (const struct node *element = list->first; element; element = element->next) {
        put_comma(out);
        if (!dynamo_value_to_plain(out, element)) return false;
    }
    buf_byte(out, ']');
    return true;
}

static bool put_plain_map(struct buf *out, const struct node *map)
{
    bool is_mistakable = map->kind == JSON_OBJECT && map->first && !map->first->next &&
                         is_notation(map->first->name);
    if (is_mistakable) buf_text(out, "{\"$map\":");
    if (!dynamo_item_to_plain(out, map)) return false;
    if (is_mistakable) buf_byte(out, '}');
    return true;
}

static bool put_plain_binary(struct buf *out, const struct node *binary)
{
    if (binary->kind != JSON_STRING) return false;
    buf_text(out, "{\"$binary\":");
    json_put_string(out, binary->text);
    buf_byte(out, '}');
    return true;
}

/* A number's digits, which are JSON when the service wrote them. */
static bool put_plain_number(struct buf *out, const struct node *number)
{
    struct arena arena = {0};
    if (number->kind != JSON_STRING) return false;
    bool is_number = raw_kind(number->text) == JSON_NUMBER && raw_is_json(&arena, number->text);
    if (is_number) buf_slice(out, number->text);
    arena_free(&arena);
    return is_number;
}

static bool put_plain_set(struct buf *out, char type, const struct node *set)
{
    if (set->kind != JSON_ARRAY) return false;
    buf_text(out, "{\"$set\":[");
    for (const struct node *member = set->first; member; member = member->next) {
        put_comma(out);
        bool fine = member->kind == JSON_STRING;
        if (fine && type == 'S')
            json_put_string(out, member->text);
        else if (fine && type == 'N')
            fine = put_plain_number(out, member);
        else if (fine)
            fine = put_plain_binary(out, member);
        if (!fine) return false;
    }
    buf_text(out, "]}");
    return true;
}

bool dynamo_value_to_plain(struct buf *out, const struct node *value)
{
    const struct node *inner;
    if ((inner = only_member(value, "S"))) {
        if (inner->kind == JSON_STRING) json_put_string(out, inner->text);
        return inner->kind == JSON_STRING;
    }
    if ((inner = only_member(value, "BOOL"))) {
        buf_slice(out, inner->source);
        return inner->kind == JSON_TRUE || inner->kind == JSON_FALSE;
    }
    if (only_member(value, "NULL")) {
        buf_text(out, "null");
        return true;
    }
    if ((inner = only_member(value, "N"))) return put_plain_number(out, inner);
    if ((inner = only_member(value, "B"))) return put_plain_binary(out, inner);
    if ((inner = only_member(value, "L"))) return put_plain_list(out, inner);
    if ((inner = only_member(value, "M"))) return put_plain_map(out, inner);
    if ((inner = only_member(value, "SS"))) return put_plain_set(out, 'S', inner);
    if ((inner = only_member(value, "NS"))) return put_plain_set(out, 'N', inner);
    if ((inner = only_member(value, "BS"))) return put_plain_set(out, 'B', inner);
    return false;
}

bool dynamo_item_to_plain(struct buf *out, const struct node *item)
{
    if (item->kind != JSON_OBJECT) return false;
    buf_byte(out, '{');
    for (const struct node *member = item->first; member; member = member->next) {
        put_comma(out);
        json_put_string(out, member->name);
        buf_byte(out, ':');
        if (!dynamo_value_to_plain(out, member)) return false;
    }
    buf_byte(out, '}');
    return true;
}

bool dynamo_value_to_cell(struct buf *out, const struct node *value)
{
    const struct node *text = only_member(value, "S");
    if (!text || text->kind != JSON_STRING) return dynamo_value_to_plain(out, value);
    buf_slice(out, text->text);
    return true;
}
