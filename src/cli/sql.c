/* quipu sql: PartiQL statements, one by one. */
#include "cli/sql.h"

#include <stdio.h>
#include <unistd.h>

#include "base/json.h"
#include "base/limits.h"
#include "cli/input.h"
#include "cli/plain.h"
#include "partiql/partiql.h"

/* ---- texts ---- */

struct slice sql_trim(struct slice text)
{
    while (text.len && strchr(" \t\r\n", text.data[0])) text = slice_from(text, 1);
    while (text.len && strchr(" \t\r\n", text.data[text.len - 1])) text.len--;
    return text;
}

bool sql_cut(struct slice text, struct slice *statement, struct slice *rest)
{
    char quote = 0;
    for (size_t i = 0; i < text.len; i++) {
        char byte = text.data[i];
        if (quote) {
            if (byte == quote) quote = 0; /* a doubled one opens the next at once */
        } else if (byte == '\'' || byte == '"') {
            quote = byte;
        } else if (byte == ';') {
            *statement = sql_trim((struct slice){text.data, i});
            *rest = slice_from(text, i + 1);
            return true;
        }
    }
    return false;
}

/* ---- parameters ---- */

size_t sql_parameter_count(const struct sql *sql)
{
    size_t words = argument_words(sql->arguments);
    return words > sql->first_parameter ? words - sql->first_parameter : 0;
}

bool sql_parameter(const struct sql *sql, size_t nth, struct buf *out)
{
    struct slice text = slice_of(argument_word(sql->arguments, sql->first_parameter + nth));
    struct arena arena = {0};
    const char *fault;
    const struct node *value = node_parse(&arena, text, &fault);
    bool fine = true;
    if (value) {
        fine = plain_value_to_dynamo(out, value, &fault);
        if (!fine) complain_of_usage(sql->arguments, "parameter %zu: %s", nth + 1, fault);
    } else {
        buf_text(out, "{\"S\":");
        json_put_string(out, text);
        buf_byte(out, '}');
    }
    arena_free(&arena);
    return fine;
}

static bool add_parameters(const struct sql *sql, struct buf *request)
{
    size_t count = sql_parameter_count(sql);
    if (!count) return true;
    buf_text(request, ",\"Parameters\":[");
    for (size_t i = 0; i < count; i++) {
        if (i) buf_byte(request, ',');
        if (!sql_parameter(sql, i, request)) return false;
    }
    buf_byte(request, ']');
    return true;
}

/* ---- running ---- */

/* The statement's table, and its keys, which stand first in a readable table. What cannot be parsed here may be run. */
static void find_schema(struct sql *sql, struct arena *arena, struct slice text, struct schema *out)
{
    struct slice fault;
    *out = (struct schema){0};
    const struct statement *statement = sql_parse(sql, arena, text, &fault);
    if (!statement) return;
    out->table = arena_printf(arena, "%.*s", SLICE_ARG(statement->table)).data;
    if (sql->form != FORM_TABLE || statement->kind != STATEMENT_SELECT) return;
    struct buf request = {0};
    request_begin(&request, out->table);
    buf_byte(&request, '}');
    struct answer answer = place_ask(&sql->place, arena, "DescribeTable", &request);
    const struct node *table = answer.error ? NULL : node_member(answer.json, "Table");
    if (table) schema_keys(table, &out->hash, &out->range);
    buf_free(&request);
}

/* One page. False when there is no next one, or something failed: *status. */
static bool run_page(struct sql *sql, struct arena *arena, struct buf *request, struct buf *next,
                     struct printer *printer, int *status)
{
    size_t len = request->len;
    if (next->len) put_string_member(request, "NextToken", buf_view(next));
    if (sql->limit) buf_printf(request, ",\"Limit\":%llu", sql->limit - printer->count);
    buf_byte(request, '}');
    struct answer answer = place_ask(&sql->place, arena, "ExecuteStatement", request);
    request->len = len;
    if (answer.error) {
        *status = place_complain(&sql->place, printer->schema->table, answer.error, answer.message);
        return false;
    }
    const struct node *items = node_member(answer.json, "Items");
    for (const struct node *item = items ? items->first : NULL; item; item = item->next) {
        if (sql->limit && printer->count == sql->limit) break;
        if (printer_item(printer, item->source)) continue;
        *status = EXIT_FAULT;
        return false;
    }
    struct slice token = node_text(answer.json, "NextToken");
    next->len = 0;
    buf_slice(next, token);
    return token.len && !(sql->limit && printer->count >= sql->limit);
}

static int run_pages(struct sql *sql, struct slice statement, struct buf *request)
{
    struct arena arena = {0}, of_schema = {0};
    struct schema schema;
    struct printer printer;
    struct buf next = {0};
    int status = EXIT_FINE;
    find_schema(sql, &of_schema, statement, &schema);
    printer_begin(&printer, sql->form, &schema);
    while (run_page(sql, &arena, request, &next, &printer, &status)) arena_reset(&arena);
    if (!printer.count) printer.form = FORM_DYNAMO; /* nothing to count */
    if (!printer_end(&printer)) status = EXIT_FAULT;
    buf_free(&next);
    arena_free(&arena);
    arena_free(&of_schema);
    return status;
}

static bool is_word(struct slice text, struct slice word)
{
    return text.len > word.len && slice_equal_ignoring_case((struct slice){text.data, word.len}, word) &&
           strchr(" \t\r\n", text.data[word.len]);
}

int sql_run(struct sql *sql, struct slice statement)
{
    struct buf request = {0};
    statement = sql_trim(statement);
    if (is_word(statement, SLICE("explain"))) return sql_explain(sql, sql_trim(slice_from(statement, 7)));
    if (sql->explains) return sql_explain(sql, statement);
    buf_text(&request, "{\"Statement\":");
    json_put_string(&request, statement);
    if (sql->is_consistent) buf_text(&request, ",\"ConsistentRead\":true");
    int status = add_parameters(sql, &request) ? run_pages(sql, statement, &request) : EXIT_USAGE;
    buf_free(&request);
    return status;
}

/* ---- the command ---- */

/* A statement of the command line, with a semicolon behind it or not. */
static int run_typed(struct sql *sql, const char *typed)
{
    struct buf text = {0};
    struct slice statement, rest;
    int status = EXIT_FAULT;
    if (input_take(typed, LIMIT_SQL_BYTES, &text)) {
        bool has_end = sql_cut(buf_view(&text), &statement, &rest);
        if (!has_end) statement = sql_trim(buf_view(&text));
        if (has_end && sql_trim(rest).len)
            status = complain_of_usage(sql->arguments,
                                       "this is more than one statement; several are read from "
                                       "standard input");
        else if (!statement.len)
            status = complain_of_usage(sql->arguments, "the statement is empty");
        else
            status = sql_run(sql, statement);
    }
    buf_free(&text);
    return status;
}

static int run(const struct arguments *arguments)
{
    struct sql sql = {.arguments = arguments,
                      .form = form_chosen(arguments),
                      .explains = argument_given(arguments, "explain"),
                      .is_consistent = argument_given(arguments, "consistent"),
                      .first_parameter = 1};
    if (!argument_number(arguments, "limit", 1, 1000000000000ull, &sql.limit)) return EXIT_USAGE;
    if (!place_open(&sql.place, arguments, PLACE_LOOK)) return EXIT_FAULT;
    int status;
    if (argument_words(arguments))
        status = run_typed(&sql, argument_word(arguments, 0));
    else if (isatty(STDIN_FILENO) == 1 && output_is_terminal())
        status = sql_shell(&sql);
    else
        status = sql_stream(&sql);
    place_close(&sql.place);
    return status;
}

static const struct flag flags[] = {
    {"explain", NULL, "tell how it would be done, and what it costs, and do nothing"},
    {"limit", "NUMBER", "stop behind so many items"},
    {"consistent", NULL, "read what was written last"},
    FORM_FLAGS};

const struct command command_sql = {
    .name = "sql",
    .summary = "run PartiQL: SELECT, INSERT, UPDATE, DELETE",
    .usage = "[STATEMENT [PARAMETER...]] [flags]",
    .about =
        "Runs a PartiQL statement as DynamoDB takes it. Items are printed as a readable table on a terminal, as\n"
        "JSON lines otherwise. PARAMETERs are the values of its question marks: JSON, or else a text. So 1 is a\n"
        "number; the text is '\"1\"'.\n"
        "STATEMENT may be @FILE, or - for standard input.\n"
        "\n"
        "Without a STATEMENT, statements are read from standard input, each ended by a semicolon: at a\n"
        "terminal with history, and completion of names by Tab; .help tells what else it knows. From a file the\n"
        "first that fails ends it.\n"
        "\n"
        "--explain, or EXPLAIN before a statement, tells whether it reads by key, by an index, or everything,\n"
        "and what that costs. What a server would refuse is refused, too.",
    FLAGS(flags),
    .examples = "  quipu sql \"SELECT * FROM Music WHERE Artist = 'Nina Simone'\"\n"
                "  quipu sql 'SELECT Song FROM Music.\"by-year\" WHERE Year = ?' 1965 --explain\n"
                "  quipu sql \"INSERT INTO Music VALUE {'Artist': 'Odetta', 'Song': 'Gallows'}\"\n"
                "  quipu sql 'SELECT * FROM Rooms WHERE house = ? AND room = ?' Elm '\"12\"'   # a text of digits\n"
                "  quipu sql < statements.sql",
    .works_on_data = true,
    .words_max = WORDS_MANY,
    .run = run};
