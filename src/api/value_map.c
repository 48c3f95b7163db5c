/* Maps of values out of a request: an Item, a Key, an ExclusiveStartKey as the sorted map that the rooms
 * below work with. The decoder has left each value's fault for the operation to tell in its turn: that is
 * here. */
#include "api/items.h"
#include "base/fail.h"

const struct node *node_field(const struct node *node, unsigned index)
{
    static const struct node absent;
    return node->present ? &node->members[index] : &absent;
}

bool invalid_parts(struct api_call *call, const struct slice *parts, size_t count)
{
    struct buf text = {0};
    for (size_t i = 0; i < count; i++) buf_slice(&text, parts[i]);
    invalid_text(call, buf_view(&text));
    buf_free(&text);
    return false;
}

bool check_attribute_name(struct api_call *call, struct slice name)
{
    if (name.len == 0) return invalid_text(call, SLICE("Empty attribute name"));
    if (name.len > LIMIT_ATTRIBUTE_NAME_BYTES)
        return invalid_text(call, SLICE("Attribute name is too large, must be less than 65536 bytes"));
    return true;
}

/* Takes the entries over as they stand; the values share what the nodes point at. */
static void take_entries(struct api_call *call, const struct node *node, struct map *out)
{
    struct slice twice;
    out->count = node->count;
    out->attributes = arena_array(call->arena, struct attribute, node->count);
    for (uint32_t i = 0; i < node->count; i++)
        out->attributes[i] = (struct attribute){node->entries[i].key, node->entries[i].node.value};
    ensure(map_sort(out, &twice)); /* the decoder keeps one of a name */
}

bool map_from_node(struct api_call *call, const struct node *node, struct map *out)
{
    for (uint32_t i = 0; i < node->count; i++)
        if (!check_attribute_name(call, node->entries[i].key)) return false;
    for (uint32_t i = 0; i < node->count; i++)
        if (node->entries[i].node.fault.len) return invalid_text(call, node->entries[i].node.fault);
    take_entries(call, node, out);
    return true;
}

/* Faults of numbers and of repeated members stand alone; the service says of the others that the key is
 * invalid. */
static bool fault_stands_alone(struct slice fault)
{
    return slice_contains(fault, SLICE("contains duplicates")) ||
           slice_contains(fault, SLICE("number set")) || slice_contains(fault, SLICE("numeric value")) ||
           slice_contains(fault, SLICE("significant digits")) ||
           slice_contains(fault, SLICE("number with magnitude"));
}

bool start_key_from_node(struct api_call *call, const struct node *node, struct map *out)
{
    for (uint32_t i = 0; i < node->count; i++) {
        struct slice fault = node->entries[i].node.fault;
        if (!fault.len) continue;
        if (fault_stands_alone(fault)) return invalid_text(call, fault);
        return INVALID(call, SLICE("The provided starting key is invalid: "), fault);
    }
    take_entries(call, node, out);
    return true;
}
