/* How a statement would be done, and what it costs: by its text and the table's description, without doing it. What a
 * server would refuse is refused in its words. */
#include <stdio.h>

#include "cli/layout.h"
#include "cli/plain.h"
#include "cli/sql.h"
#include "partiql/partiql.h"

#define READ_UNIT_BYTES      4096 /* of a consistent read; the others cost half */
#define ON_DEMAND_PARTITIONS 4    /* of a new table; a Scan reads something of each */

/* Values of the question marks. Keys are texts, numbers or binaries; all others are stood in for by NULL. */
static struct value *parameters_of(const struct sql *sql, struct arena *arena)
{
    size_t count = sql_parameter_count(sql);
    struct value *values = arena_array(arena, struct value, count + 1);
    for (size_t i = 0; i < count; i++) {
        struct slice text = slice_of(argument_word(sql->arguments, sql->first_parameter + i));
        const char *fault;
        const struct node *json = node_parse(arena, text, &fault);
        struct slice canonical;
        values[i] = (struct value){.type = VALUE_S,
                                   .bytes = json && json->kind == JSON_STRING ? json->text : text};
        if (!json || json->kind == JSON_STRING) continue;
        values[i] = (struct value){.type = VALUE_NULL};
        if (json->kind == JSON_NUMBER && number_canonical(arena, text, &canonical) == NUMBER_OK)
            values[i] = (struct value){.type = VALUE_N, .bytes = canonical};
    }
    return values;
}

static enum value_type type_of(char letter)
{
    return letter == 'N' ? VALUE_N : letter == 'B' ? VALUE_B : VALUE_S;
}

static struct key_fields fields_of(const struct schema *schema)
{
    const struct key *key = &schema->searched;
    struct key_fields fields = {.index = schema->index ? slice_of(schema->index) : SLICE("")};
    for (size_t i = 0; i < key->count; i++) {
        struct key_field field = {key->parts[i].name, type_of(key->parts[i].type)};
        if (i < key->hash_count)
            fields.hash[fields.hash_count++] = field;
        else
            fields.range[fields.range_count++] = field;
    }
    return fields;
}

static void put_counted(struct buf *out, unsigned long long count, const char *what)
{
    put_grouped(out, count);
    buf_printf(out, " %s%s", what, count == 1 ? "" : "s");
}

/* As when it is run. */
static int complain_of_statement(struct slice fault)
{
    return complain("ValidationException: %.*s", SLICE_ARG(fault));
}

/* ---- what an index has ---- */

static bool has_string(const struct node *list, struct slice text)
{
    for (const struct node *one = list ? list->first : NULL; one; one = one->next)
        if (slice_equal(one->text, text)) return true;
    return false;
}

static bool is_part(const struct key *key, struct slice name)
{
    for (size_t i = 0; i < key->count; i++)
        if (slice_equal(key->parts[i].name, name)) return true;
    return false;
}

static bool index_has(const struct schema *schema, struct slice name)
{
    const struct node *projection = node_member(schema->index_description, "Projection");
    if (node_is(projection, "ProjectionType", "ALL") || is_part(&schema->searched, name)) return true;
    if (slice_equal(schema->hash.name, name) || slice_equal(schema->range.name, name)) return true;
    return has_string(node_member(projection, "NonKeyAttributes"), name);
}

static struct name_list missing_of(const struct schema *schema, struct arena *arena,
                                   const struct name_list *names)
{
    struct name_list missing = {0};
    for (uint32_t i = 0; schema->index && i < names->count; i++)
        if (!index_has(schema, names->names[i])) name_list_add(arena, &missing, names->names[i]);
    return missing;
}

/* A SELECT for which a server would fetch each item from the table; a global index refuses it. */
static struct name_list missing_columns(const struct schema *schema, struct arena *arena,
                                        const struct statement *statement)
{
    struct name_list names = {0};
    name_list_add_projection(arena, &names, statement->projection);
    return missing_of(schema, arena, &names);
}

/* What every part of a keyed read filters by and the index lacks; empty when there is such a part without. */
static struct name_list missing_filters(const struct schema *schema, struct arena *arena,
                                        const struct statement_plan *plan)
{
    struct name_list missing = {0};
    for (uint32_t i = 0; i < plan->part_count; i++) {
        struct name_list names = {0};
        name_list_add_condition(arena, &names, plan->parts[i].filter);
        missing = missing_of(schema, arena, &names);
        if (!missing.count) break;
    }
    name_list_hash_order(&missing);
    return missing;
}

/* ---- what it costs ---- */

/* In halves of a unit; of nothing, too, at least one read. */
static unsigned long long halves_of(const struct sql *sql, unsigned long long bytes)
{
    unsigned long long reads = (bytes + READ_UNIT_BYTES - 1) / READ_UNIT_BYTES;
    return (reads ? reads : 1) * (sql->is_consistent ? 2 : 1);
}

static void put_units(struct buf *out, unsigned long long halves)
{
    if (halves == 1) {
        buf_text(out, "half a read unit");
        return;
    }
    put_grouped(out, halves / 2);
    buf_printf(out, "%s read unit%s", halves % 2 ? ".5" : "", halves == 2 ? "" : "s");
}

/* Each partition of an on-demand table is read for itself. */
static void put_scan(struct buf *out, const struct sql *sql, const struct schema *schema)
{
    const struct node *read = schema->index ? schema->index_description : schema->description;
    const struct node *billing = node_member(schema->description, "BillingModeSummary");
    bool has_partitions = !schema->index && node_is(billing, "BillingMode", "PAY_PER_REQUEST");
    unsigned long long bytes = node_count(read, schema->index ? "IndexSizeBytes" : "TableSizeBytes"),
                       partitions = has_partitions ? ON_DEMAND_PARTITIONS : 1;
    buf_text(out, "reads everything: ");
    put_counted(out, node_count(read, "ItemCount"), "item");
    buf_text(out, ", ");
    put_bytes(out, bytes);
    buf_text(out, ", about ");
    put_units(out, partitions * halves_of(sql, (bytes + partitions - 1) / partitions));
}

static void print_units(const struct sql *sql, struct arena *arena, const struct schema *schema,
                        const struct statement *statement, const struct statement_plan *plan)
{
    const char *unit = sql->is_consistent ? "1 read unit" : "half a read unit";
    struct name_list fetched = missing_columns(schema, arena, statement);
    struct buf line = {0};
    if (plan->is_scan)
        put_scan(&line, sql, schema);
    else if (plan->part_count && plan->parts[0].is_get)
        buf_printf(&line, "costs %s for each 4 kB of the item, at least one such", unit);
    else
        buf_printf(&line,
                   "costs %s for each 4 kB of the items under that key, also of those that are filtered out",
                   unit);
    if (fetched.count)
        buf_printf(&line,
                   "\nthe index lacks %.*s: each of these items is fetched from the table, which costs %s more "
                   "for each 4 kB of it",
                   SLICE_ARG(name_list_text(arena, &fetched)), unit);
    printf("%.*s\n", SLICE_ARG(buf_view(&line)));
    buf_free(&line);
}

/* ---- SELECT ---- */

/* A server's refusals, in its words and order. */
static struct slice select_fault(const struct sql *sql, struct arena *arena, const struct schema *schema,
                                 const struct statement *statement, struct statement_plan *plan)
{
    struct key_fields fields = fields_of(schema);
    struct slice fault;
    if (sql->is_consistent && schema->is_global)
        return SLICE("Strongly consistent read is not supported on Global Secondary Indexes");
    if (!statement_plan(arena, statement, &fields, plan, &fault)) return fault;
    struct name_list missing = missing_columns(schema, arena, statement);
    if (missing.count && schema->is_global)
        return arena_printf(arena,
                            "One or more parameter values were invalid: Global secondary index %s does not "
                            "project [%.*s]",
                            schema->index, SLICE_ARG(name_list_text(arena, &missing)));
    missing = missing_filters(schema, arena, plan);
    if (!missing.count) return SLICE_NONE;
    return arena_printf(arena,
                        "One or more parameter values were invalid: Secondary index %s does not project one or "
                        "more filter attributes: [%.*s]",
                        schema->index, SLICE_ARG(name_list_text(arena, &missing)));
}

static int explain_select(struct sql *sql, struct arena *arena, const struct schema *schema,
                          const struct statement *statement)
{
    struct statement_plan plan;
    struct slice fault = select_fault(sql, arena, schema, statement, &plan);
    if (fault.len) return complain_of_statement(fault);
    struct slice words = statement_explain(arena, statement, &plan);
    printf("%.*s\n", SLICE_ARG(words));
    print_units(sql, arena, schema, statement, &plan);
    return EXIT_FINE;
}

/* ---- writes ---- */

static struct slice write_fault(struct arena *arena, const struct schema *schema,
                                const struct statement *statement)
{
    struct key_schema keys = {.hash = schema->hash.name,
                              .range = schema->range.name,
                              .hash_type = type_of(schema->hash.type),
                              .range_type = type_of(schema->range.type)};
    const struct slice names[] = {keys.hash, keys.range};
    struct statement_pin pin;
    struct slice fault;
    if (statement->kind == STATEMENT_INSERT) return statement_insert_fault(arena, statement, &keys);
    if (statement_pin(arena, statement, &keys, false, &pin, &fault) != PINNED_WHOLE) return fault;
    for (size_t i = 0; statement->kind == STATEMENT_UPDATE && i < 2; i++)
        if (names[i].len && update_touches(statement->update, names[i]))
            return arena_printf(arena,
                                "One or more parameter values were invalid: Cannot update attribute %.*s. This "
                                "attribute is part of the key",
                                SLICE_ARG(names[i]));
    return SLICE_NONE;
}

static int explain_write(struct arena *arena, const struct schema *schema, const struct statement *statement)
{
    static const char *const verbs[] = {[STATEMENT_INSERT] = "put of an item that must not be there, into",
                                        [STATEMENT_UPDATE] = "update of one item of",
                                        [STATEMENT_DELETE] = "deletion of one item of"};
    struct slice fault = write_fault(arena, schema, statement);
    if (fault.len) return complain_of_statement(fault);
    printf("%s table %.*s\n", verbs[statement->kind], SLICE_ARG(statement->table));
    puts(
        "costs 1 write unit for each kB of the larger of both images, and as much for each index entry that "
        "changes");
    return EXIT_FINE;
}

const struct statement *sql_parse(const struct sql *sql, struct arena *arena, struct slice text,
                                  struct slice *fault)
{
    return statement_parse(arena, text, parameters_of(sql, arena), (uint32_t)sql_parameter_count(sql), false,
                           fault);
}

static const char *name_or_null(struct arena *arena, struct slice name)
{
    return name.len ? arena_printf(arena, "%.*s", SLICE_ARG(name)).data : NULL;
}

int sql_explain(struct sql *sql, struct slice text)
{
    struct arena arena = {0};
    struct schema schema;
    struct slice fault;
    int status;
    const struct statement *statement = sql_parse(sql, &arena, text, &fault);
    if (!statement)
        status = complain_of_statement(fault);
    else if (!schema_load(&sql->place, &arena, name_or_null(&arena, statement->table),
                          name_or_null(&arena, statement->index), &schema))
        status = EXIT_FAULT;
    else if (statement_is_read(statement))
        status = explain_select(sql, &arena, &schema, statement);
    else
        status = explain_write(&arena, &schema, statement);
    arena_free(&arena);
    return status;
}
