/* PutItem, UpdateItem and DeleteItem once they are understood: one write, handed to the writer, and the reply
 * that follows from its outcome. What apply does on the writer's thread is nothing but the write itself. */
#include "api/throttle.h"

enum return_values return_values_from_node(const struct node *node)
{
    if (node_says(node, "ALL_OLD")) return RETURN_ALL_OLD;
    if (node_says(node, "UPDATED_OLD")) return RETURN_UPDATED_OLD;
    if (node_says(node, "ALL_NEW")) return RETURN_ALL_NEW;
    if (node_says(node, "UPDATED_NEW")) return RETURN_UPDATED_NEW;
    return RETURN_NONE;
}

bool encode_put(struct api_call *call, struct write *write)
{
    return invalid_unless_sound(call, put_fault(call, write));
}

/* In the reply's buffer, which has room to build in; the size stands first in the image. */
struct slice put_fault(struct api_call *call, struct write *write)
{
    size_t mark = call->reply->len;
    item_encode(call->reply, &write->item);
    struct slice encoded = {call->reply->data + mark, call->reply->len - mark};
    call->reply->len = mark;
    write->new_size = item_encoded_size(encoded);
    if (write->new_size > LIMIT_ITEM_BYTES) return SLICE("Item size has exceeded the maximum allowed size");
    write->new_image = arena_copy(call->arena, encoded);
    return SLICE_NONE;
}

bool check_write(struct batch *batch, struct write *write, bool only_clears)
{
    engine_write_check(batch, write);
    if (write->outcome != WRITE_APPLIED) return false;
    if (!only_clears || write->existed) return true;
    write->new_image = SLICE_NONE;
    write->new_size = 0;
    return false;
}

void apply_item_write(struct api_call *call, struct batch *batch, struct item_write *item_write)
{
    struct write *write = &item_write->write;
    bool keeps = check_write(batch, write, item_write->only_clears);
    if (throttle_is_on(call->api, write->table) && !call->is_transfer &&
        (write->outcome == WRITE_APPLIED || write->outcome == WRITE_CONDITION_FAILED))
        item_write->throttled = throttle_refusal(call, throttle_write(call, write, false));
    if (keeps && !item_write->throttled) engine_write_keep(batch, write);
}

static void apply_write(struct commit *commit, struct batch *batch)
{
    struct api_call *call = call_of_commit(commit);
    apply_item_write(call, batch, call->state);
}

void item_write_submit(struct api_call *call, struct item_write *item_write)
{
    item_write->write.arena = call->arena;
    item_write->write.key = item_write->key.bytes;
    call->state = item_write;
    call->commit.apply = apply_write;
    call->is_write = true;
}

/* ---- the reply ---- */

static bool refuse_damaged(struct api_call *call)
{
    return refuse(call, "InternalServerError", "Internal server error");
}

static void refuse_condition(struct api_call *call, const struct item_write *item_write)
{
    const struct write *write = &item_write->write;
    struct buf members = {0};
    if (item_write->return_on_failure && write->existed) {
        buf_text(&members, "\"Item\":");
        if (!api_put_encoded_item_json(&members, write->old_image)) members.len = 0;
    }
    refuse_with(call, "ConditionalCheckFailedException", SLICE("The conditional request failed"),
                buf_view(&members));
    buf_free(&members);
}

bool check_write_outcome(struct api_call *call, const struct item_write *item_write)
{
    struct slice fault = item_write->write.fault;
    if (item_write->throttled) return refuse_throttled(call, item_write->throttled);
    switch (item_write->write.outcome) {
    case WRITE_APPLIED: return true;
    case WRITE_CONDITION_FAILED:
        if (item_write->is_insert) return refuse(call, "DuplicateItemException", DUPLICATE_ITEM);
        refuse_condition(call, item_write);
        return false;
    case WRITE_INVALID: return invalid_text(call, item_write->is_legacy ? legacy_update_fault(fault) : fault);
    case WRITE_NO_TABLE: return refuse(call, "ResourceNotFoundException", "Requested resource not found");
    case WRITE_CONFLICT:
        return refuse(call, "TransactionConflictException", "Transaction is ongoing for the item");
    case WRITE_COLLECTION_FULL: return refuse_full_collection(call);
    case WRITE_VECTORS_FULL: return refuse(call, "LimitExceededException", NO_VECTOR_MEMORY);
    }
    return false;
}

/* The parts that the update's paths lead to; nothing when they lead nowhere. */
static bool put_updated(struct api_call *call, const struct item_write *item_write, struct slice image,
                        struct slice member, bool *written)
{
    struct map item, touched;
    *written = false;
    if (!image.len || !item_write->write.update) return true;
    if (!item_decode(call->arena, image, &item)) return refuse_damaged(call);
    touched = update_touched(call->arena, item_write->write.update, &item);
    if (touched.count == 0) return true;
    buf_slice(call->reply, member);
    api_put_item_json(call->reply, &touched);
    *written = true;
    return true;
}

static bool put_whole(struct api_call *call, struct slice image, struct slice member, bool *written)
{
    *written = image.len > 0;
    if (!*written) return true;
    buf_slice(call->reply, member);
    return api_put_encoded_item_json(call->reply, image) || refuse_damaged(call);
}

bool put_returned(struct api_call *call, const struct item_write *item_write, struct slice member,
                  bool *written)
{
    const struct write *write = &item_write->write;
    switch (item_write->return_values) {
    case RETURN_ALL_OLD: return put_whole(call, write->old_image, member, written);
    case RETURN_ALL_NEW: return put_whole(call, write->new_image, member, written);
    case RETURN_UPDATED_OLD: return put_updated(call, item_write, write->old_image, member, written);
    case RETURN_UPDATED_NEW: return put_updated(call, item_write, write->new_image, member, written);
    case RETURN_NONE: break;
    }
    return true;
}

void put_write_capacity(struct api_call *call, const struct item_write *item_write, bool *written)
{
    struct capacity capacity = {0};
    if (!capacity_wanted(item_write->return_capacity)) return;
    capacity_add_write(call, &capacity, &item_write->write);
    if (*written) buf_byte(call->reply, ',');
    buf_text(call->reply, "\"ConsumedCapacity\":");
    capacity_put(call->reply, item_write->return_capacity, item_write->table_name, item_write->write.table,
                 &capacity);
    *written = true;
}

void item_write_finish(struct api_call *call)
{
    const struct item_write *item_write = call->state;
    bool written = false;
    if (!check_write_outcome(call, item_write)) return;
    buf_byte(call->reply, '{');
    if (!put_returned(call, item_write, SLICE("\"Attributes\":"), &written)) return;
    put_write_capacity(call, item_write, &written);
    if (metrics_wanted(item_write->return_metrics, item_write->write.table)) {
        if (written) buf_byte(call->reply, ',');
        buf_text(call->reply, "\"ItemCollectionMetrics\":");
        metrics_put(call, item_write->write.table, item_write->key.hash);
    }
    buf_byte(call->reply, '}');
}
