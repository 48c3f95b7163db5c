/* From the syntax tree to a statement: what the service takes, and its sentence for everything else. */
#include "partiql/internal.h"

#include "base/fail.h"

/* ---- the source ---- */

static bool is_name_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

static bool check_name(struct ql_binding *binding, struct slice name)
{
    bool is_sound = name.len >= 3 && name.len <= 255;
    for (size_t i = 0; is_sound && i < name.len; i++) is_sound = is_name_character(name.data[i]);
    return is_sound || ql_refuse(binding, "Table name should be within the length [3, 255] and only contain "
                                          "'a-z', 'A-Z', '0-9', '-', '_', '.'.");
}

/* table, table.index */
static bool bind_source(struct ql_binding *binding, const struct ql_term *term)
{
    struct path path;
    if (term->kind == TERM_JOIN || term->kind == TERM_UNPIVOT)
        return ql_refuse(binding, "Only select from a single table or index is supported.");
    if (term->kind == TERM_ALIAS) return ql_refuse(binding, "Aliasing is not supported");
    if (!ql_is_path(term)) return ql_refuse(binding, "Unexpected from source");
    if (!ql_bind_path(binding, term, &path)) return false;
    for (uint32_t i = 0; i < path.count; i++)
        if (path.parts[i].is_index) return ql_refuse(binding, "Invalid list expression in source.");
    if (path.count > 2)
        return ql_refuse(binding, "A path may contain at most 2 components in the FROM clause");
    binding->out->table = path.parts[0].name;
    if (!check_name(binding, binding->out->table)) return false;
    if (path.count == 1) return true;
    binding->out->index = path.parts[1].name;
    return check_name(binding, binding->out->index);
}

/* ---- SELECT ---- */

/* A column is named by its last step: "c", or "l[1]". */
static struct slice column_name(struct ql_binding *binding, const struct path *path)
{
    uint32_t start = path->count - 1;
    while (path->parts[start].is_index) start--;
    struct slice name = path->parts[start].name;
    for (uint32_t i = start + 1; i < path->count; i++)
        name = arena_printf(binding->arena, "%.*s[%u]", SLICE_ARG(name), path->parts[i].index);
    return name;
}

static bool bind_columns(struct ql_binding *binding, const struct ql_term *list)
{
    struct projection *projection = arena_new(binding->arena, struct projection);
    struct slice *names = arena_array(binding->arena, struct slice, list->count);
    if (list->first->kind == TERM_STAR) return true;
    projection->paths = arena_array(binding->arena, struct path, list->count);
    projection->names = names;
    for (const struct ql_term *column = list->first; column; column = column->next) {
        struct path *path = &projection->paths[projection->count];
        if (column->kind == TERM_ALIAS) return ql_refuse(binding, "Aliasing is not supported");
        if (!ql_is_path(column)) return ql_refuse_at(binding, column, "Unexpected path component");
        if (column->kind == TERM_PATH && column->last->kind == TERM_STEP_STAR)
            return ql_refuse(binding, "Changing item's hierarchy while reading isn't supported");
        if (!ql_bind_path(binding, column, path)) return false;
        names[projection->count++] = column_name(binding, path);
    }
    for (uint32_t i = 0; i < projection->count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (slice_equal(names[i], names[j]))
                return ql_refuse(binding, "Duplicate identifiers in select clause: %.*s",
                                 SLICE_ARG(names[i]));
    binding->out->projection = projection;
    return paths_are_apart(binding->arena, projection->paths, projection->count, binding->fault);
}

static bool bind_order(struct ql_binding *binding, const struct ql_select *select)
{
    struct statement *out = binding->out;
    if (select->order && !select->where)
        return ql_refuse(binding, "Must have WHERE clause in the statement when using ORDER BY clause.");
    for (const struct ql_sort *sort = select->order; sort; sort = sort->next) out->order_count++;
    out->order = arena_array(binding->arena, struct statement_order, out->order_count);
    out->order_count = 0;
    for (const struct ql_sort *sort = select->order; sort; sort = sort->next) {
        if (sort->term->kind != TERM_NAME)
            return ql_refuse(binding, "Argument to ORDER BY must be of type VariableReference. Type: %.*s",
                             SLICE_ARG(sort->term->kind == TERM_PATH ? SLICE("PATH") : sort->term->text));
        out->order[out->order_count++] = (struct statement_order){sort->term->text, sort->descends};
    }
    return true;
}

static bool refuse_clauses(struct ql_binding *binding, const struct ql_select *select)
{
    if (select->is_value)
        return ql_refuse(binding, "Select projection doesn't support value or pivot keywords");
    if (select->is_distinct) return ql_refuse(binding, "Unsupported token in expression: DISTINCT");
    if (select->group) return ql_refuse(binding, "Unsupported clause: GROUP BY");
    if (select->having) return ql_refuse_at(binding, select->having, "Unsupported clause: HAVING");
    if (select->limit) return ql_refuse_at(binding, select->limit, "Unsupported clause: LIMIT");
    if (select->offset) return ql_refuse_at(binding, select->offset, "Unsupported clause: OFFSET");
    if (select->let) return ql_refuse_at(binding, select->let, "Unsupported clause: LET");
    return true;
}

static bool is_count(const struct ql_term *column)
{
    return column->kind == TERM_CALL && slice_equal(column->text, SLICE("count"));
}

static bool bind_select(struct ql_binding *binding, const struct ql_select *select)
{
    struct statement *out = binding->out;
    out->kind = STATEMENT_SELECT;
    if (!refuse_clauses(binding, select) || !bind_source(binding, select->from)) return false;
    /* COUNT of an index is refused only once the index is known not to be of a kind that is refused first. */
    if (!bind_columns(binding, select->list)) {
        if (!out->index.len || !is_count(select->list->first)) return false;
        out->late_fault = *binding->fault;
        *binding->fault = SLICE_NONE;
    }
    if (select->where && !ql_bind_where(binding, select->where, &out->where)) return false;
    return bind_order(binding, select);
}

/* ---- INSERT ---- */

static bool bind_item(struct ql_binding *binding, const struct ql_term *term)
{
    struct map *item = &binding->out->item;
    struct slice duplicate;
    if (term->kind != TERM_STRUCT)
        return ql_refuse_at(
            binding, term,
            "Unsupported format in item expression. Please use struct format {...} to express "
            "item values for insert statement.");
    *item = (struct map){arena_array(binding->arena, struct attribute, term->count), 0};
    for (const struct ql_term *member = term->first; member; member = member->next) {
        const struct ql_term *name = member->first;
        const struct value *value;
        if (name->kind != TERM_STRING)
            return ql_refuse_at(binding, name,
                                "Tuple keys must be of type String. Actual type: %.*s under root",
                                SLICE_ARG(ql_term_name(name)));
        if (name->text.len == 0) return ql_refuse(binding, "Path component cannot be an empty string");
        for (uint32_t i = 0; i < item->count; i++)
            if (slice_equal(item->attributes[i].name, name->text))
                return ql_refuse_at(binding, name, "Duplicate keys in tuple. Key: %.*s under root",
                                    SLICE_ARG(name->text));
        if (!ql_bind_value(binding, member->last, &value)) return false;
        item->attributes[item->count++] = (struct attribute){name->text, *value};
    }
    ensure(map_sort(item, &duplicate));
    return true;
}

static bool bind_insert(struct ql_binding *binding, const struct ql_term *term)
{
    const struct ql_change *change = term->change;
    struct path path;
    binding->out->kind = STATEMENT_INSERT;
    if (change->kind == CHANGE_INSERT) return ql_refuse(binding, "Unsupported operation: InsertOp");
    if (change->returning) return ql_refuse(binding, "RETURNING is not supported in INSERT");
    if (change->at) return ql_refuse_at(binding, term, "AT is not supported in insert statements.");
    if (change->has_on_conflict) return ql_refuse(binding, "Unsupported clause: ON CONFLICT");
    if (!ql_bind_path(binding, change->target, &path)) return false;
    if (path.count > 1)
        return ql_refuse_at(
            binding, change->target,
            "FROM clause may only contain a single table name in data manipulation statements");
    binding->out->table = path.parts[0].name;
    return check_name(binding, binding->out->table) && bind_item(binding, change->value);
}

/* ---- UPDATE, DELETE ---- */

static bool bind_returning(struct ql_binding *binding, const struct ql_change *change)
{
    static const struct {
        const char *mapping, *words;
        enum statement_returning returning;
    } mappings[] = {{"all_old", "ALL OLD", RETURNING_ALL_OLD},
                    {"all_new", "ALL NEW", RETURNING_ALL_NEW},
                    {"modified_old", "MODIFIED OLD", RETURNING_MODIFIED_OLD},
                    {"modified_new", "MODIFIED NEW", RETURNING_MODIFIED_NEW}};
    const struct ql_returning *returning = change->returning;
    if (!returning) return true;
    if (returning->next)
        return ql_refuse(binding, "Invalid syntax with multiple returning elements in RETURNING clause");
    if (returning->column)
        return ql_refuse(binding, "Expected '*' after ( MODIFIED | ALL ) ( NEW | OLD ) in RETURNING clause");
    for (size_t i = 0; i < sizeof mappings / sizeof *mappings; i++) {
        if (!slice_equal(returning->mapping, slice_of(mappings[i].mapping))) continue;
        binding->out->returning = mappings[i].returning;
        if (change->kind == CHANGE_DELETE && mappings[i].returning != RETURNING_ALL_OLD)
            return ql_refuse(
                binding,
                "Invalid returning clause: RETURNING %s *. Only RETURNING ALL OLD * is allowed in "
                "DELETE statements.",
                mappings[i].words);
    }
    return true;
}

static bool bind_change(struct ql_binding *binding, const struct ql_term *term)
{
    const struct ql_change *change = term->change;
    struct statement *out = binding->out;
    if (change->kind == CHANGE_INSERT || change->kind == CHANGE_INSERT_VALUE)
        return bind_insert(binding, term);
    out->kind = change->kind == CHANGE_UPDATE ? STATEMENT_UPDATE : STATEMENT_DELETE;
    if (!change->target) return ql_refuse(binding, "Only select from a single table or index is supported.");
    if (!bind_source(binding, change->target)) return false;
    if (out->index.len) return ql_refuse(binding, "This operation is not supported on an index");
    for (const struct ql_term *action = change->actions ? change->actions->first : NULL; action;
         action = action->next)
        if (action->kind == TERM_CHANGE)
            return ql_refuse_at(binding, term, "Unsupported FROM ... WHERE ... clause in INSERT statement.");
    if (change->actions && !ql_bind_actions(binding, change->actions, &out->update)) return false;
    if (change->where && !ql_bind_where(binding, change->where, &out->where)) return false;
    return bind_returning(binding, change);
}

/* ---- the others ---- */

static bool is_exists(const struct ql_term *term)
{
    return term->kind == TERM_CALL && slice_equal(term->text, SLICE("exists"));
}

static bool refuse_exists(struct ql_binding *binding)
{
    if (binding->in_transaction) return ql_refuse(binding, "Unsupported operation in transaction.");
    return ql_refuse(binding, "EXISTS can only be used in ExecuteTransaction write requests.");
}

/* What is an expression and no statement at all. */
static bool refuse_expression(struct ql_binding *binding, const struct ql_term *term)
{
    struct slice name = term->kind == TERM_OTHER ? term->text : ql_term_name(term);
    bool is_type = term->kind == TERM_INFIX &&
                   (slice_equal(term->text, SLICE("is")) || slice_equal(term->text, SLICE("is_not")));
    if (is_type) return ql_refuse(binding, "Unsupported operation: IsType");
    if (term->is_aggregate) return ql_refuse(binding, "Unsupported operation: CallAgg");
    if (term->kind == TERM_INFIX || term->kind == TERM_UNARY || term->kind == TERM_CALL)
        return refuse_exists(binding);
    return ql_refuse(binding, "Unsupported operation: %.*s", SLICE_ARG(name));
}

static bool bind_statement(struct ql_binding *binding, const struct ql_term *term)
{
    if (term->kind == TERM_SELECT) return bind_select(binding, term->select);
    if (term->kind == TERM_CHANGE) return bind_change(binding, term);
    bool has_select = is_exists(term) && term->count == 1 && term->first->kind == TERM_SELECT;
    if (!has_select) return refuse_expression(binding, term);
    if (!binding->in_transaction) return refuse_exists(binding);
    bool bound = bind_select(binding, term->first->select);
    binding->out->kind = STATEMENT_EXISTS;
    return bound;
}

struct statement *statement_parse(struct arena *arena, struct slice text, const struct value *parameters,
                                  uint32_t parameter_count, bool in_transaction, struct slice *fault)
{
    struct arena parsing = {0}; /* a tree takes a hundred times the room of its text */
    struct statement *statement = NULL;
    const struct ql_term *term = ql_parse(&parsing, arena, text, fault);
    if (term) {
        statement = arena_new(arena, struct statement);
        struct ql_binding binding = {arena, fault, parameters, parameter_count, in_transaction, statement};
        if (!bind_statement(&binding, term)) statement = NULL;
    }
    arena_free(&parsing);
    return statement;
}
