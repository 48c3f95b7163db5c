/* Statements of PartiQL as single reads and writes. */
#include "api/statements.h"

#include "api/decode.h"

const struct shape shape_statement = STRING_SHAPE_SIZED(1, LIMIT_STATEMENT_CHARACTERS);
const struct shape shape_parameters = {
    .kind = SHAPE_LIST, .of = &shape_attribute_value, .has_min = true, .min = 1};

struct slice parameters_fault(const struct node *parameters)
{
    for (uint32_t i = 0; parameters->present && i < parameters->count; i++) {
        const struct node *value = &parameters->elements[i];
        if (value->fault.len) return value->fault;
        if (!value->present) return value_empty_fault;
    }
    return SLICE_NONE;
}

void statement_understand(struct api_call *call, const struct node *text, const struct node *parameters,
                          bool in_transaction, struct statement_run *run)
{
    uint32_t count = parameters->present ? parameters->count : 0;
    struct value *values = arena_array(call->arena, struct value, count);
    for (uint32_t i = 0; i < count; i++) values[i] = parameters->elements[i].value;
    *run = (struct statement_run){0};
    run->statement = statement_parse(call->arena, text->text, values, count, in_transaction, &run->fault);
    if (!run->statement || run->statement->kind != STATEMENT_INSERT) return;
    run->change.write.kind = WRITE_PUT;
    run->change.write.item = run->statement->item;
    run->fault = put_fault(call, &run->change.write);
}

void statement_find_table(struct api_call *call, struct statement_run *run)
{
    run->table = run->change.write.table = look_up_table(call, run->statement->table);
    run->change.table_name = run->statement->table;
    if (run->table) return;
    run->fault = SLICE("Requested resource not found");
    run->is_missing_table = true;
}

/* ---- conditions that every statement has by itself ---- */

/* attribute_exists or attribute_not_exists of the hash key. */
static struct condition *key_exists(struct api_call *call, const struct table *table, bool exists)
{
    struct condition *condition = arena_new(call->arena, struct condition);
    struct path_part *part = arena_new(call->arena, struct path_part);
    part->name = table->keys.hash;
    condition->kind = exists ? CONDITION_EXISTS : CONDITION_NOT_EXISTS;
    condition->operands = arena_new(call->arena, struct operand);
    condition->operands->path = (struct path){part, 1};
    condition->operand_count = 1;
    return condition;
}

static const struct condition *join(struct api_call *call, enum condition_kind kind, struct condition *left,
                                    const struct condition *right)
{
    if (!right) return left;
    struct condition *both = arena_new(call->arena, struct condition);
    both->kind = kind;
    both->left = left;
    both->right = (struct condition *)right;
    return both;
}

/* ---- INSERT ---- */

static void fit_insert(struct api_call *call, enum statement_words words, struct statement_run *run)
{
    struct item_write *insert = &run->change;
    if (words == WORDS_OF_STATEMENTS)
        run->fault = statement_insert_fault(call->arena, run->statement, &run->table->keys);
    if (run->fault.len) return;
    run->fault = key_of_item(call, run->table, &insert->write.item, false, &insert->key);
    insert->is_insert = true;
    insert->write.condition = key_exists(call, run->table, false);
}

/* ---- UPDATE, DELETE, EXISTS ---- */

static void fit_change(struct api_call *call, enum statement_words words, struct statement_run *run)
{
    const struct statement *statement = run->statement;
    struct write *write = &run->change.write;
    struct statement_pin pin;
    enum statement_pinned pinned = statement_pin(call->arena, statement, &run->table->keys, false, &pin,
                                                 &run->fault);
    if (pinned != PINNED_WHOLE) {
        if (words == WORDS_OF_TRANSACTIONS)
            run->fault = SLICE("The provided key element does not match the schema");
        return;
    }
    run->fault = key_of_map(call, run->table, &pin.key, &run->change.key);
    if (run->fault.len) return;
    write->item = pin.key;
    switch (statement->kind) {
    case STATEMENT_UPDATE:
        write->kind = WRITE_UPDATE;
        write->update = statement->update;
        write->plain_size_check = true;
        write->condition = join(call, CONDITION_AND, key_exists(call, run->table, true), pin.condition);
        run->fault = fit_update(call, write, false);
        break;
    case STATEMENT_DELETE:
        write->kind = WRITE_DELETE;
        /* Where there is nothing to delete, no condition is asked. */
        if (pin.condition)
            write->condition = join(call, CONDITION_OR, key_exists(call, run->table, false), pin.condition);
        break;
    default:
        write->kind = WRITE_CHECK;
        write->condition = join(call, CONDITION_AND, key_exists(call, run->table, true), pin.condition);
    }
    if (!run->fault.len)
        run->fault = key_path_fault(call->arena, run->table, pin.condition, write->update, NULL);
}

static enum return_values return_values(enum statement_returning returning)
{
    switch (returning) {
    case RETURNING_ALL_OLD: return RETURN_ALL_OLD;
    case RETURNING_ALL_NEW: return RETURN_ALL_NEW;
    case RETURNING_MODIFIED_OLD: return RETURN_UPDATED_OLD;
    case RETURNING_MODIFIED_NEW: return RETURN_UPDATED_NEW;
    case RETURNING_NONE: break;
    }
    return RETURN_NONE;
}

void statement_fit_write(struct api_call *call, enum statement_words words, struct statement_run *run)
{
    if (run->statement->kind == STATEMENT_INSERT)
        fit_insert(call, words, run);
    else
        fit_change(call, words, run);
    run->change.write.arena = call->arena;
    run->change.write.key = run->change.key.bytes;
    run->change.return_values = return_values(run->statement->returning);
}

/* ---- SELECT of one item ---- */

void statement_fit_get(struct api_call *call, const char *operation, struct statement_run *run)
{
    const struct statement *statement = run->statement;
    const struct index_definition *index = table_index_find(run->table, statement->index);
    struct statement_pin pin;
    if (index && (index->hash_count > 1 || index->range_count > 1)) {
        run->fault = statement_compound_fault;
        return;
    }
    enum statement_pinned pinned = statement_pin(call->arena, statement, &run->table->keys, true, &pin,
                                                 &run->fault);
    run->is_about_key = pinned == PINNED_WRONG;
    if (run->is_about_key) return;
    run->fault = SLICE_NONE;
    if (statement->index.len || pinned != PINNED_WHOLE || pin.condition) {
        run->fault = arena_printf(
            call->arena, "Select statements within %s must specify the primary key in the where clause.",
            operation);
        return;
    }
    run->fault = key_of_map(call, run->table, &pin.key, &run->change.key);
    run->is_about_key = run->fault.len > 0;
    if (!run->fault.len)
        run->fault = key_path_fault(call->arena, run->table, NULL, NULL, statement->projection);
}
