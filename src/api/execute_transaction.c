/* ExecuteTransaction: statements that all read, or all write, as one. They become the transactions of
 * TransactGetItems and TransactWriteItems; only what can be said of a statement before that is said here. */
#include "api/statements.h"
#include "api/transact.h"

enum { STATEMENT_TEXT, STATEMENT_PARAMETERS, STATEMENT_RETURN_ON_FAILURE };
static const struct shape_member statement_members[] = {
    [STATEMENT_TEXT] = REQUIRED("Statement", shape_statement),
    [STATEMENT_PARAMETERS] = MEMBER("Parameters", shape_parameters),
    [STATEMENT_RETURN_ON_FAILURE] = MEMBER("ReturnValuesOnConditionCheckFailure",
                                           shape_return_on_check_failure),
};
static const struct shape shape_transact_statement = STRUCT_SHAPE("ParameterizedStatement",
                                                                  statement_members);
static const struct shape shape_statements = LIST_SHAPE_SIZED(shape_transact_statement, 1,
                                                              LIMIT_TRANSACTION_ACTIONS);

enum { EXECUTE_STATEMENTS, EXECUTE_TOKEN, EXECUTE_RETURN_CAPACITY };
static const struct shape_member members[] = {
    [EXECUTE_STATEMENTS] = REQUIRED("TransactStatements", shape_statements),
    [EXECUTE_TOKEN] = MEMBER("ClientRequestToken", shape_request_token),
    [EXECUTE_RETURN_CAPACITY] = MEMBER("ReturnConsumedCapacity", shape_return_capacity),
};
static const struct shape shape = STRUCT_SHAPE("ExecuteTransactionInput", members);

struct execute {
    const struct node *statements, *token, *return_capacity;
    struct statement_run *runs;
    uint32_t count;
    bool reads;
};

/* ---- the request ---- */

/* A refusal that names the statement. Always false. */
static bool refuse_statement(struct api_call *call, uint32_t index, struct slice fault)
{
    return invalid(call, "Validation failed in TransactStatements[%u]: %.*s", index, SLICE_ARG(fault));
}

static bool understand(struct api_call *call, struct execute *execute)
{
    bool has_read = false, has_write = false;
    execute->count = execute->statements->count;
    execute->runs = arena_zero(call->arena, execute->count * sizeof *execute->runs);
    for (uint32_t i = 0; i < execute->count; i++) {
        const struct node *statement = &execute->statements->elements[i];
        if (!statement->present)
            return invalid(
                call,
                "1 validation error detected: Value null at 'transactStatements.%u.member' failed to "
                "satisfy constraint: Member must not be null",
                i + 1);
        if (!invalid_unless_sound(call, parameters_fault(node_member(statement, STATEMENT_PARAMETERS))))
            return false;
    }
    for (uint32_t i = 0; i < execute->count; i++) {
        const struct node *statement = &execute->statements->elements[i];
        struct statement_run *run = &execute->runs[i];
        statement_understand(call, node_member(statement, STATEMENT_TEXT),
                             node_member(statement, STATEMENT_PARAMETERS), true, run);
        if (run->fault.len) return refuse_statement(call, i, run->fault);
        has_read |= statement_is_read(run->statement);
        has_write |= !statement_is_read(run->statement);
    }
    execute->reads = has_read;
    return !(has_read && has_write) ||
           invalid(call, "ExecuteTransaction API does not support both read and write operations in the same "
                         "request.");
}

/* All tables must be there; of those that are, indexes and RETURNING are refused first. */
static bool find_statement_tables(struct api_call *call, struct execute *execute)
{
    bool any_missing = false;
    struct reason *reasons = arena_array(call->arena, struct reason, execute->count);
    for (uint32_t i = 0; i < execute->count; i++) {
        struct statement_run *run = &execute->runs[i];
        statement_find_table(call, run);
        reasons[i] = (struct reason){"None", SLICE_NONE, SLICE_NONE};
        if (run->is_missing_table) {
            any_missing = true;
            reasons[i] = (struct reason){"ResourceNotFound", run->fault, SLICE_NONE};
            continue;
        }
        if (run->statement->returning != RETURNING_NONE)
            return refuse_statement(call, i,
                                    SLICE("RETURNING clause is not supported in ExecuteTransaction."));
        if (run->statement->index.len)
            return refuse_statement(call, i,
                                    SLICE("Reads on indices are not supported within transactions."));
    }
    return !any_missing || refuse_cancelled(call, reasons, execute->count);
}

/* ---- reads ---- */

static bool begin_reads(struct api_call *call, struct execute *execute)
{
    struct transact_get *transaction = arena_new(call->arena, struct transact_get);
    bool any_fault = false;
    transaction->return_capacity = execute->return_capacity;
    transact_get_size(call, transaction, execute->count);
    for (uint32_t i = 0; i < execute->count; i++) {
        struct statement_run *run = &execute->runs[i];
        struct get *get = &transaction->gets[i];
        statement_fit_get(call, "ExecuteTransaction", run);
        if (run->fault.len && !run->is_about_key) return refuse_statement(call, i, run->fault);
        get->fault = run->fault;
        get->item_key = run->change.key;
        get->projection = run->statement->projection;
        get->place = place_table(transaction->tables, &transaction->table_count, run->statement->table);
        transaction->tables[get->place].table = run->table;
        any_fault |= get->fault.len > 0;
        if (get_is_repeated(transaction, i)) return refuse_twice(call);
    }
    if (any_fault) return transact_get_refuse_faults(call, transaction);
    transact_get_submit(call, transaction);
    return true;
}

/* ---- writes ---- */

/* EXISTS must say more of its item than which one it is. */
static bool is_vain_check(struct api_call *call, const struct statement_run *run)
{
    struct statement_pin pin;
    struct slice fault;
    if (run->statement->kind != STATEMENT_EXISTS) return false;
    return statement_pin(call->arena, run->statement, &run->table->keys, false, &pin, &fault) !=
               PINNED_WHOLE ||
           !pin.condition;
}

static bool take_write(struct api_call *call, struct execute *execute, struct transaction *transaction,
                       uint32_t index)
{
    const struct node *statement = &execute->statements->elements[index];
    struct statement_run *run = &execute->runs[index];
    struct placed_write *placed = &transaction->many.writes[index];
    struct action *action = &transaction->actions[index];
    if (is_vain_check(call, run))
        return refuse_statement(call, index,
                                SLICE("EXISTS() must contain a single item read with additional condition"));
    statement_fit_write(call, WORDS_OF_TRANSACTIONS, run);
    run->change.write.in_transaction = !call->in_order;
    run->change.write.plain_size_check = true;
    placed->write = run->change.write;
    placed->key = run->change.key;
    placed->place = place_table(transaction->many.tables, &transaction->many.table_count,
                                run->statement->table);
    transaction->many.tables[placed->place].table = run->table;
    if (write_is_repeated(&transaction->many, index)) return refuse_twice(call);
    if (is_about_empty_key(run->fault)) return invalid_text(call, run->fault);
    if (!transaction_has_fault(transaction)) action->fault = run->fault; /* only the first is told */
    action->is_insert = run->change.is_insert;
    action->return_on_failure = node_says(node_member(statement, STATEMENT_RETURN_ON_FAILURE), "ALL_OLD");
    size_t bytes = placed->write.kind == WRITE_PUT ? placed->write.new_size : map_size(&placed->write.item);
    return transaction_add_bytes(call, transaction, bytes + node_member(statement, STATEMENT_TEXT)->text.len);
}

static bool begin_writes(struct api_call *call, struct execute *execute)
{
    static const struct node no_metrics = {0};
    struct transaction *transaction = arena_new(call->arena, struct transaction);
    transaction->of_statements = true;
    transaction->many.return_capacity = execute->return_capacity;
    transaction->many.return_metrics = &no_metrics;
    transaction_size(call, transaction, execute->count);
    for (uint32_t i = 0; i < execute->count; i++)
        if (!take_write(call, execute, transaction, i)) return false;
    transaction_submit(call, transaction, execute->token, execute->statements);
    return true;
}

static void begin(struct api_call *call, const struct node *input)
{
    struct execute execute = {.statements = node_member(input, EXECUTE_STATEMENTS),
                              .token = node_member(input, EXECUTE_TOKEN),
                              .return_capacity = node_member(input, EXECUTE_RETURN_CAPACITY)};
    if (!understand(call, &execute) || !find_statement_tables(call, &execute)) return;
    if (execute.reads)
        begin_reads(call, &execute);
    else
        begin_writes(call, &execute);
}

static void finish(struct api_call *call)
{
    if (call->only_reads)
        transact_get_finish(call);
    else
        transaction_finish(call);
}

const struct operation operation_ExecuteTransaction = {SLICE("ExecuteTransaction"), &shape, begin, finish};
