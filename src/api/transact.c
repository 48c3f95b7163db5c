/* Cancellation of transactions, and what tells one transaction from another. */
#include "api/transact.h"
#include "base/fail.h"
#include "base/hash.h"

bool refuse_twice(struct api_call *call)
{
    return invalid(call, "Transaction request cannot include multiple operations on one item");
}

uint32_t place_table(struct named_table *tables, uint32_t *count, struct slice name)
{
    uint32_t place = 0;
    while (place < *count && !slice_equal(tables[place].name, name)) place++;
    if (place == *count) tables[(*count)++] = (struct named_table){name, NULL};
    return place;
}

/* ---- cancellation ---- */

static void put_reason(struct buf *out, const struct reason *reason)
{
    buf_printf(out, "{\"Code\":\"%s\"", reason->code);
    if (reason->image.len) {
        size_t mark = out->len;
        buf_text(out, ",\"Item\":");
        if (!api_put_encoded_item_json(out, reason->image)) out->len = mark;
    }
    if (reason->message.len) {
        buf_text(out, ",\"Message\":");
        json_put_string(out, reason->message);
    }
    buf_byte(out, '}');
}

bool refuse_cancelled(struct api_call *call, const struct reason *reasons, uint32_t count)
{
    struct buf message = {0}, members = {0};
    buf_text(&message, "Transaction cancelled, please refer cancellation reasons for specific reasons [");
    buf_text(&members, "\"CancellationReasons\":[");
    for (uint32_t i = 0; i < count; i++) {
        if (i) buf_text(&message, ", ");
        if (i) buf_byte(&members, ',');
        buf_slice(&message, slice_of(reasons[i].code));
        put_reason(&members, &reasons[i]);
    }
    buf_byte(&message, ']');
    buf_byte(&members, ']');
    refuse_with(call, "TransactionCanceledException", buf_view(&message), buf_view(&members));
    buf_free(&message);
    buf_free(&members);
    return false;
}

/* ---- hashes of requests ---- */

/* The hash of what was appended since the mark, which is taken away again. */
static uint64_t hash_from(struct buf *scratch, size_t mark)
{
    uint64_t hash = hash_bytes((struct slice){scratch->data + mark, scratch->len - mark});
    scratch->len = mark;
    return hash;
}

static void put_hash(struct buf *scratch, const struct node *node)
{
    uint64_t hash = hash_request(scratch, node);
    buf_u64(scratch, hash);
}

/* A sum, so that the order of the entries does not matter. */
static uint64_t hash_entries(struct buf *scratch, const struct node *map)
{
    uint64_t sum = map->count;
    for (uint32_t i = 0; i < map->count; i++) {
        size_t mark = scratch->len;
        put_hash(scratch, &map->entries[i].node);
        buf_slice(scratch, map->entries[i].key);
        sum += hash_from(scratch, mark);
    }
    return sum;
}

uint64_t hash_request(struct buf *scratch, const struct node *node)
{
    size_t mark = scratch->len;
    if (!node->present) return 0;
    switch (node->shape->kind) {
    case SHAPE_STRUCT:
        for (uint32_t i = 0; i < node->shape->member_count; i++) put_hash(scratch, &node->members[i]);
        break;
    case SHAPE_LIST:
        for (uint32_t i = 0; i < node->count; i++) put_hash(scratch, &node->elements[i]);
        break;
    case SHAPE_MAP: buf_u64(scratch, hash_entries(scratch, node)); break;
    case SHAPE_STRING: buf_slice(scratch, node->text); break;
    case SHAPE_VALUE: {
        struct attribute attribute = {SLICE_NONE, node->value};
        item_encode(scratch, &(struct map){&attribute, 1});
        break;
    }
    case SHAPE_BOOL:
    case SHAPE_INT:
    case SHAPE_LONG:
    case SHAPE_DOUBLE: ensure(false); /* no action of a transaction has such a member */
    }
    return hash_from(scratch, mark);
}
