/* TransactWriteItems: actions that all happen or none.
 *
 * There are two kinds of faults. What is wrong with the request itself refuses the call: parameters,
 * expressions, values, sizes, tables that are not there, empty keys, two actions on one item. What is wrong
 * between an action and its table or item cancels the transaction, and the reply tells the reason for each
 * action in order: keys of the wrong type, conditions that do not hold, updates that cannot be made, items
 * that another transaction has. The second kind is gathered on the writer's thread, so that an idempotency
 * token is looked at before. */
#include "api/throttle.h"

/* The four actions have their members in common, so they have them in one order. */
enum {
    ACTION_TABLE_NAME,
    ACTION_MAP, /* the Key, or the Item to put */
    ACTION_RETURN_ON_FAILURE,
    ACTION_CONDITION,
    ACTION_NAMES,
    ACTION_VALUES,
    ACTION_UPDATE, /* Update only */
};

#define ACTION_MEMBERS(map_name, condition)                                                                  \
    [ACTION_TABLE_NAME] = REQUIRED("TableName", shape_table_key),                                            \
    [ACTION_MAP] = REQUIRED(map_name, shape_value_map),                                                      \
    [ACTION_RETURN_ON_FAILURE] = MEMBER("ReturnValuesOnConditionCheckFailure",                               \
                                        shape_return_on_check_failure),                                      \
    [ACTION_CONDITION] = condition("ConditionExpression", shape_expression),                                 \
    [ACTION_NAMES] = MEMBER("ExpressionAttributeNames", shape_name_map),                                     \
    [ACTION_VALUES] = MEMBER("ExpressionAttributeValues", shape_value_map)

static const struct shape_member check_members[] = {ACTION_MEMBERS("Key", REQUIRED)};
static const struct shape_member put_members[] = {ACTION_MEMBERS("Item", MEMBER)};
static const struct shape_member delete_members[] = {ACTION_MEMBERS("Key", MEMBER)};
static const struct shape_member update_members[] = {
    ACTION_MEMBERS("Key", MEMBER),
    [ACTION_UPDATE] = REQUIRED("UpdateExpression", shape_expression),
};
static const struct shape shape_check = STRUCT_SHAPE("ConditionCheck", check_members);
static const struct shape shape_put = STRUCT_SHAPE("Put", put_members);
static const struct shape shape_delete = STRUCT_SHAPE("Delete", delete_members);
static const struct shape shape_update = STRUCT_SHAPE("Update", update_members);

enum { ITEM_CHECK, ITEM_PUT, ITEM_DELETE, ITEM_UPDATE, ITEM_KINDS };
static const struct shape_member item_members[] = {
    [ITEM_CHECK] = MEMBER("ConditionCheck", shape_check),
    [ITEM_PUT] = MEMBER("Put", shape_put),
    [ITEM_DELETE] = MEMBER("Delete", shape_delete),
    [ITEM_UPDATE] = MEMBER("Update", shape_update),
};
static const enum write_kind item_kinds[] = {
    [ITEM_CHECK] = WRITE_CHECK,
    [ITEM_PUT] = WRITE_PUT,
    [ITEM_DELETE] = WRITE_DELETE,
    [ITEM_UPDATE] = WRITE_UPDATE,
};
static const struct shape shape_item = STRUCT_SHAPE("TransactWriteItem", item_members);
static const struct shape shape_items = LIST_SHAPE_SIZED(shape_item, 1, LIMIT_TRANSACTION_ACTIONS);
const struct shape shape_request_token = STRING_SHAPE_SIZED(1, LIMIT_TOKEN_CHARACTERS);

enum { TRANSACT_TOKEN, TRANSACT_RETURN_CAPACITY, TRANSACT_RETURN_METRICS, TRANSACT_ITEMS };
static const struct shape_member members[] = {
    [TRANSACT_TOKEN] = MEMBER("ClientRequestToken", shape_request_token),
    [TRANSACT_RETURN_CAPACITY] = MEMBER("ReturnConsumedCapacity", shape_return_capacity),
    [TRANSACT_RETURN_METRICS] = MEMBER("ReturnItemCollectionMetrics", shape_return_metrics),
    [TRANSACT_ITEMS] = REQUIRED("TransactItems", shape_items),
};
static const struct shape shape = STRUCT_SHAPE("TransactWriteItemsInput", members);

/* ---- the request ---- */

/* The one action of an element, or NULL when it has none or several. */
static const struct node *choose_action(struct api_call *call, const struct node *element,
                                        enum write_kind *kind)
{
    const struct node *chosen = NULL;
    for (unsigned i = 0; i < ITEM_KINDS; i++) {
        const struct node *node = node_field(element, i);
        if (!node->present) continue;
        if (chosen) {
            invalid(call, "TransactItems can only contain one of Check, Put, Update or Delete");
            return NULL;
        }
        chosen = node;
        *kind = item_kinds[i];
    }
    if (!chosen)
        invalid(call, "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request");
    return chosen;
}

/* What the service counts of an action: its item or key, the texts, and what their placeholders stand for. */
static size_t action_bytes(const struct write *write, const struct expressions *expressions)
{
    const struct expr_params *params = &expressions->params;
    size_t bytes = write->kind == WRITE_PUT ? write->new_size : map_size(&write->item);
    if (expressions->condition_text->present) bytes += expressions->condition_text->text.len;
    if (expressions->update_text) bytes += expressions->update_text->text.len;
    for (uint32_t i = 0; i < params->name_count; i++) bytes += params->names[i].name.len;
    for (uint32_t i = 0; i < params->value_count; i++) bytes += value_size(&params->values[i].value);
    return bytes;
}

bool transaction_add_bytes(struct api_call *call, struct transaction *transaction, size_t bytes)
{
    transaction->payload_bytes += bytes;
    return transaction->payload_bytes <= LIMIT_TRANSACTION_BYTES ||
           invalid(call, "Transaction payload size cannot exceed 4MB. Payload Size: %zu",
                   transaction->payload_bytes);
}

static bool understand_action(struct api_call *call, const struct node *element,
                              struct transaction *transaction, uint32_t index)
{
    struct many_writes *many = &transaction->many;
    struct write *write = &many->writes[index].write;
    const struct node *node = choose_action(call, element, &write->kind);
    if (!node) return false;
    struct expressions expressions = {
        .names = node_field(node, ACTION_NAMES),
        .values = node_field(node, ACTION_VALUES),
        .update_text = write->kind == WRITE_UPDATE ? node_field(node, ACTION_UPDATE) : NULL,
        .condition_text = node_field(node, ACTION_CONDITION),
    };
    if (!expressions_check(call, &expressions) || !expressions_parse(call, &expressions)) return false;
    if (!map_from_node(call, node_field(node, ACTION_MAP), &write->item)) return false;
    if (write->kind == WRITE_PUT && !encode_put(call, write)) return false;
    write->condition = expressions.condition;
    write->update = expressions.update;
    write->arena = call->arena;
    write->in_transaction = !call->in_order;
    write->plain_size_check = true;
    many->writes[index].place = place_table(many->tables, &many->table_count,
                                            node_field(node, ACTION_TABLE_NAME)->text);
    transaction->actions[index].return_on_failure = node_says(node_field(node, ACTION_RETURN_ON_FAILURE),
                                                              "ALL_OLD");
    transaction->actions[index].only_clears = update_only_clears(write->update);
    return transaction_add_bytes(call, transaction, action_bytes(write, &expressions));
}

void transaction_size(struct api_call *call, struct transaction *transaction, uint32_t count)
{
    struct many_writes *many = &transaction->many;
    many->count = count;
    many->writes = arena_zero(call->arena, count * sizeof *many->writes);
    many->tables = arena_zero(call->arena, count * sizeof *many->tables);
    transaction->actions = arena_zero(call->arena, count * sizeof *transaction->actions);
}

/* The checks that need no table, action by action. */
static bool understand(struct api_call *call, const struct node *items, struct transaction *transaction)
{
    transaction_size(call, transaction, items->count);
    for (uint32_t i = 0; i < items->count; i++)
        if (!understand_action(call, &items->elements[i], transaction, i)) return false;
    return true;
}

/* Of all faults of keys only these refuse the call; the others cancel the transaction. */
bool is_about_empty_key(struct slice fault)
{
    return slice_starts(fault, SLICE("One or more parameter values are not valid."));
}

bool write_is_repeated(const struct many_writes *many, uint32_t index)
{
    struct slice key = many->writes[index].write.key;
    for (uint32_t i = 0; key.len && i < index; i++)
        if (slice_equal(many->writes[i].write.key, key)) return true;
    return false;
}

bool transaction_has_fault(const struct transaction *transaction)
{
    for (uint32_t i = 0; i < transaction->many.count; i++)
        if (transaction->actions[i].fault.len) return true;
    return false;
}

static bool fit_action(struct api_call *call, struct transaction *transaction, uint32_t index)
{
    struct placed_write *placed = &transaction->many.writes[index];
    struct write *write = &placed->write;
    struct table *table = write->table = transaction->many.tables[placed->place].table;
    struct slice fault = write->kind == WRITE_PUT
                             ? key_of_item(call, table, &write->item, false, &placed->key)
                             : key_of_map(call, table, &write->item, &placed->key);
    write->key = placed->key.bytes;
    if (write_is_repeated(&transaction->many, index)) return refuse_twice(call);
    if (!fault.len) fault = fit_update(call, write, false);
    if (is_about_empty_key(fault)) return invalid_text(call, fault);
    if (!transaction_has_fault(transaction)) transaction->actions[index].fault = fault; /* only the first is told */
    return check_key_paths(call, table, write->condition, write->update, NULL);
}

/* ---- on the writer's thread ---- */

/* For a token: the sizes that a repetition of the request is charged for. */
static void keep_token(struct batch *batch, const struct transaction *transaction)
{
    const struct many_writes *many = &transaction->many;
    struct buf note = {0};
    for (uint32_t i = 0; i < many->count; i++) {
        const struct write *write = &many->writes[i].write;
        buf_u64(&note, write->old_size > write->new_size ? write->old_size : write->new_size);
    }
    engine_token_keep(batch, transaction->token, transaction->payload_hash, buf_view(&note));
    buf_free(&note);
}

static void take_note(struct many_writes *many, struct slice note)
{
    for (uint32_t i = 0; i < many->count && note.len >= 8; i++) {
        many->writes[i].write.new_size = 0;
        many->writes[i].write.old_size = bytes_u64(note.data);
        note = slice_from(note, 8);
    }
}

/* True when the transaction has not been seen before. One that was applied has no faults, unless its table is
 * another by now: then it was not this transaction. */
static bool is_new(struct api_call *call, struct batch *batch, struct transaction *transaction)
{
    struct slice note;
    if (!transaction->token.len) return true;
    switch (engine_token_check(batch, call->arena, transaction->token, transaction->payload_hash, &note)) {
    case TOKEN_NEW: return true;
    case TOKEN_DIFFERENT: transaction->outcome = OUTCOME_MISMATCHED; break;
    case TOKEN_RUNNING: transaction->outcome = OUTCOME_RUNNING; break;
    case TOKEN_SAME:
        if (transaction_has_fault(transaction)) return true;
        transaction->outcome = OUTCOME_REPLAYED;
        take_note(&transaction->many, note);
        break;
    }
    return false;
}

/* An action that does not fit its table ends the checking before any item is looked at. No two actions have
 * the same item, so that no check depends on what another action does. */
static enum outcome check_all(struct batch *batch, struct transaction *transaction)
{
    enum outcome outcome = OUTCOME_APPLIED;
    if (any_table_is_gone(batch, transaction->many.tables, transaction->many.table_count))
        return OUTCOME_NO_TABLE;
    if (transaction_has_fault(transaction)) return OUTCOME_CANCELLED;
    for (uint32_t i = 0; i < transaction->many.count; i++) {
        struct action *action = &transaction->actions[i];
        struct write *write = &transaction->many.writes[i].write;
        action->keeps = check_write(batch, write, action->only_clears);
        if (write->outcome != WRITE_APPLIED) outcome = OUTCOME_CANCELLED;
    }
    return outcome;
}

/* All of its actions are let in, or none is. */
static bool is_admitted(struct api_call *call, struct transaction *transaction)
{
    uint32_t count = transaction->many.count;
    bool is_on = false;
    for (uint32_t i = 0; i < count; i++)
        is_on |= throttle_is_on(call->api, transaction->many.writes[i].write.table);
    if (!is_on) return true;
    transaction->demands = arena_array(call->arena, struct throttle_demand, count);
    for (uint32_t i = 0; i < count; i++)
        transaction->demands[i] = throttle_write(call, &transaction->many.writes[i].write, true);
    return throttle_admit(call->api, transaction->demands, count);
}

static void apply(struct commit *commit, struct batch *batch)
{
    struct api_call *call = call_of_commit(commit);
    struct transaction *transaction = call->state;
    if (!is_new(call, batch, transaction)) return;
    transaction->outcome = check_all(batch, transaction);
    if (transaction->outcome == OUTCOME_APPLIED && !is_admitted(call, transaction))
        transaction->outcome = OUTCOME_CANCELLED;
    if (transaction->outcome != OUTCOME_APPLIED) return;
    for (uint32_t i = 0; i < transaction->many.count; i++)
        if (transaction->actions[i].keeps) engine_write_keep(batch, &transaction->many.writes[i].write);
    if (transaction->token.len) keep_token(batch, transaction);
}

/* ---- the reply ---- */

static struct reason reason_of(const struct action *action, const struct write *write)
{
    if (action->fault.len) return (struct reason){"ValidationError", action->fault, SLICE_NONE};
    switch (write->outcome) {
    case WRITE_CONDITION_FAILED:
        if (action->is_insert) return (struct reason){"DuplicateItem", SLICE(DUPLICATE_ITEM), SLICE_NONE};
        return (struct reason){"ConditionalCheckFailed", SLICE("The conditional request failed"),
                               action->return_on_failure ? write->old_image : SLICE_NONE};
    case WRITE_INVALID: return (struct reason){"ValidationError", write->fault, SLICE_NONE};
    case WRITE_CONFLICT:
        return (struct reason){"TransactionConflict", SLICE("Transaction is ongoing for the item"),
                               SLICE_NONE};
    case WRITE_VECTORS_FULL: return (struct reason){"LimitExceeded", SLICE(NO_VECTOR_MEMORY), SLICE_NONE};
    case WRITE_COLLECTION_FULL:
        return (struct reason){"ItemCollectionSizeLimitExceeded", SLICE(COLLECTION_FULL), SLICE_NONE};
    case WRITE_APPLIED:
    case WRITE_NO_TABLE: break;
    }
    return (struct reason){"None", SLICE_NONE, SLICE_NONE};
}

static bool refuse_reasons(struct api_call *call, const struct transaction *transaction)
{
    uint32_t count = transaction->many.count;
    struct reason *reasons = arena_array(call->arena, struct reason, count);
    for (uint32_t i = 0; i < count; i++) {
        reasons[i] = transaction->demands
                         ? throttle_reason(&transaction->demands[i])
                         : reason_of(&transaction->actions[i], &transaction->many.writes[i].write);
        if (is_about_empty_key(reasons[i].message)) return invalid_text(call, reasons[i].message);
    }
    return refuse_cancelled(call, reasons, count);
}

/* Refuses unless the transaction was applied, now or before. */
static bool check_outcome(struct api_call *call, const struct transaction *transaction)
{
    switch (transaction->outcome) {
    case OUTCOME_APPLIED:
    case OUTCOME_REPLAYED: return true;
    case OUTCOME_CANCELLED: return refuse_reasons(call, transaction);
    case OUTCOME_NO_TABLE: return refuse(call, "ResourceNotFoundException", "Requested resource not found");
    case OUTCOME_MISMATCHED:
        return refuse(call, "IdempotentParameterMismatchException",
                      "DynamoDB rejected the request because you retried a request with a different payload "
                      "but with an idempotent token that was already used.");
    case OUTCOME_RUNNING:
        return refuse(call, "TransactionInProgressException",
                      "Transaction from previous request is still in progress");
    }
    return false;
}

void transaction_finish(struct api_call *call)
{
    const struct transaction *transaction = call->state;
    if (!check_outcome(call, transaction)) return;
    buf_byte(call->reply, '{');
    if (transaction->of_statements) buf_text(call->reply, "\"Responses\":[]");
    put_many_capacities(call, &transaction->many,
                        transaction->outcome == OUTCOME_REPLAYED ? AXIS_READ : AXIS_WRITE);
    put_many_metrics(call, &transaction->many);
    buf_byte(call->reply, '}');
}

void transaction_submit(struct api_call *call, struct transaction *transaction, const struct node *token,
                        const struct node *items)
{
    if (token->present) {
        transaction->token = call->commit.token = token->text;
        transaction->payload_hash = hash_request(call->reply, items);
    }
    call->state = transaction;
    call->commit.apply = apply;
    call->is_write = true;
}

static void begin(struct api_call *call, const struct node *input)
{
    struct transaction *transaction = arena_new(call->arena, struct transaction);
    struct many_writes *many = &transaction->many;
    const struct node *items = node_member(input, TRANSACT_ITEMS),
                      *token = node_member(input, TRANSACT_TOKEN);
    many->return_capacity = node_member(input, TRANSACT_RETURN_CAPACITY);
    many->return_metrics = node_member(input, TRANSACT_RETURN_METRICS);
    if (!understand(call, items, transaction) || !find_tables(call, many->tables, many->table_count)) return;
    for (uint32_t i = 0; i < many->count; i++)
        if (!fit_action(call, transaction, i)) return;
    transaction_submit(call, transaction, token, items);
}

const struct operation operation_TransactWriteItems = {SLICE("TransactWriteItems"), &shape, begin,
                                                       transaction_finish};
