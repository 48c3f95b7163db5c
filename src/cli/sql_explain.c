/* How a statement would be done, and what it costs: by its text and the table's description, without doing it. */
#include <stdio.h>

#include "cli/layout.h"
#include "cli/plain.h"
#include "cli/sql.h"
#include "partiql/partiql.h"

#define READ_UNIT_BYTES 4096 /* of a consistent read; the others cost half */

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

static void print_units(const struct sql *sql, const struct schema *schema, const struct statement_plan *plan)
{
    const char *unit = sql->is_consistent ? "1 read unit" : "half a read unit";
    struct buf line = {0};
    if (plan->is_scan) {
        unsigned long long bytes = node_count(schema->description, "TableSizeBytes");
        unsigned long long halves = (bytes + READ_UNIT_BYTES - 1) / READ_UNIT_BYTES *
                                    (sql->is_consistent ? 2 : 1);
        buf_text(&line, "reads everything: ");
        put_counted(&line, node_count(schema->description, "ItemCount"), "item");
        buf_text(&line, ", ");
        put_bytes(&line, bytes);
        buf_text(&line, ", about ");
        put_counted(&line, (halves + 1) / 2, "read unit");
    } else if (plan->part_count && plan->parts[0].is_get) {
        buf_printf(&line, "costs %s for each 4 kB of the item, at least one such", unit);
    } else {
        buf_printf(&line,
                   "costs %s for each 4 kB of the items under that key, also of those that are filtered out",
                   unit);
    }
    printf("%.*s\n", SLICE_ARG(buf_view(&line)));
    buf_free(&line);
}

static int explain_select(struct sql *sql, struct arena *arena, const struct statement *statement)
{
    struct schema schema;
    struct statement_plan plan;
    struct slice fault;
    const char *table = arena_printf(arena, "%.*s", SLICE_ARG(statement->table)).data;
    const char *index = statement->index.len ? arena_printf(arena, "%.*s", SLICE_ARG(statement->index)).data
                                             : NULL;
    if (!schema_load(&sql->place, arena, table, index, &schema)) return EXIT_FAULT;
    struct key_fields fields = fields_of(&schema);
    if (!statement_plan(arena, statement, &fields, &plan, &fault)) return complain("%.*s", SLICE_ARG(fault));
    struct slice words = statement_explain(arena, statement, &plan);
    printf("%.*s\n", SLICE_ARG(words));
    print_units(sql, &schema, &plan);
    return EXIT_FINE;
}

const struct statement *sql_parse(const struct sql *sql, struct arena *arena, struct slice text,
                                  struct slice *fault)
{
    return statement_parse(arena, text, parameters_of(sql, arena), (uint32_t)sql_parameter_count(sql), false,
                           fault);
}

int sql_explain(struct sql *sql, struct slice text)
{
    static const char *const verbs[] = {[STATEMENT_INSERT] = "put of an item that must not be there, into",
                                        [STATEMENT_UPDATE] = "update of one item of",
                                        [STATEMENT_DELETE] = "deletion of one item of",
                                        [STATEMENT_EXISTS] = "check of one item of"};
    struct arena arena = {0};
    struct slice fault;
    int status = EXIT_FINE;
    const struct statement *statement = sql_parse(sql, &arena, text, &fault);
    if (!statement) {
        status = complain("%.*s", SLICE_ARG(fault));
    } else if (statement->kind == STATEMENT_SELECT) {
        status = explain_select(sql, &arena, statement);
    } else {
        printf("%s table %.*s\n", verbs[statement->kind], SLICE_ARG(statement->table));
        puts(
            "costs 1 write unit for each kB of the larger of both images, and as much for each index entry that "
            "changes");
    }
    arena_free(&arena);
    return status;
}
