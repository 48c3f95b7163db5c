/* Statements from standard input: typed by a person, or out of a file. */
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/print.h"
#include "cli/input.h"
#include "cli/line_edit.h"
#include "cli/sql.h"
#include "cli/tables.h"

static const char *const words[] = {"SELECT",  "FROM",        "WHERE",    "INSERT INTO", "VALUE",
                                    "UPDATE",  "SET",         "REMOVE",   "DELETE FROM", "AND",
                                    "OR",      "NOT",         "BETWEEN",  "IN",          "IS",
                                    "MISSING", "EXISTS",      "ORDER BY", "ASC",         "DESC",
                                    "EXPLAIN", "RETURNING",   "ALL",      "OLD",         "MODIFIED",
                                    "NEW",     "begins_with", "contains", "size",        "attribute_type",
                                    ".tables", ".describe",   ".help",    ".quit"};

struct shell {
    struct sql *sql;
    struct line_edit edit;
    struct arena names; /* of tables and their attributes, and the array */
    const char **tables;
    size_t table_count;
    struct buf history; /* path; empty: none is kept */
};

/* Names are asked for once, and again by .tables. */
static void load_names(struct shell *shell)
{
    arena_reset(&shell->names);
    shell->table_count = 0;
    shell->tables = table_names(&shell->sql->place, &shell->names, &shell->table_count);
}

static void complete(void *context, struct slice before, struct slice word,
                     void (*add)(void *list, struct slice candidate), void *list)
{
    struct shell *shell = context;
    (void)before, (void)word;
    for (size_t i = 0; i < shell->table_count; i++) add(list, slice_of(shell->tables[i]));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) add(list, slice_of(words[i]));
}

/* ---- what is no statement ---- */

static void show_help(void)
{
    fputs("Statements end with a semicolon: SELECT * FROM Music WHERE Artist = 'Odetta';\n"
          "EXPLAIN before one tells how it would be done, and what it costs.\n"
          "  .tables            the names of all tables\n"
          "  .describe TABLE    keys, indexes and counts\n"
          "  .help              this\n"
          "  .quit              the end, as Ctrl-D\n",
          stdout);
}

static void show_tables(struct shell *shell)
{
    load_names(shell);
    for (size_t i = 0; i < shell->table_count; i++) puts(shell->tables[i]);
}

static void put_key(const char *what, const struct key *key)
{
    printf("%s", what);
    for (size_t i = 0; i < key->count; i++)
        printf(" %.*s (%c%s)", SLICE_ARG(key->parts[i].name), key->parts[i].type,
               i < key->hash_count ? ", hash" : ", range");
    putchar('\n');
}

static void describe(struct shell *shell, struct slice name)
{
    static const char *const lists[] = {"GlobalSecondaryIndexes", "LocalSecondaryIndexes"};
    struct arena arena = {0};
    struct schema schema;
    const char *table = arena_printf(&arena, "%.*s", SLICE_ARG(name)).data;
    if (schema_load(&shell->sql->place, &arena, table, NULL, &schema)) {
        put_key("key:", &schema.searched);
        for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
            const struct node *list = node_member(schema.description, lists[i]);
            for (const struct node *one = list ? list->first : NULL; one; one = one->next) {
                struct key key;
                schema_key(schema.description, node_member(one, "KeySchema"), &key);
                put_key(arena_printf(&arena, "index \"%.*s\":", SLICE_ARG(node_text(one, "IndexName"))).data,
                        &key);
            }
        }
        printf("%s, %s\n", counted(node_count(schema.description, "ItemCount"), "item").text,
               counted(node_count(schema.description, "TableSizeBytes"), "byte").text);
    }
    arena_free(&arena);
}

/* False: it is time to end. */
static bool run_dot(struct shell *shell, struct slice line)
{
    struct slice rest = line, name = slice_cut(&rest, ' ');
    if (slice_equal(name, SLICE(".quit")) || slice_equal(name, SLICE(".exit"))) return false;
    if (slice_equal(name, SLICE(".tables")))
        show_tables(shell);
    else if (slice_equal(name, SLICE(".describe")) && sql_trim(rest).len)
        describe(shell, sql_trim(rest));
    else
        show_help();
    return true;
}

/* ---- at a terminal ---- */

static void find_history(struct shell *shell)
{
    const char *home = getenv("HOME");
    if (!home || !*home) return;
    buf_printf(&shell->history, "%s/.quipu_sql_history", home);
    buf_byte(&shell->history, 0);
    line_history_load(&shell->edit, shell->history.data);
}

static void remember(struct shell *shell, struct slice line)
{
    line_history_add(&shell->edit, line);
    if (shell->history.len) line_history_save(shell->history.data, line);
}

/* Runs the whole statements at the beginning of the text and leaves the rest. */
static int run_whole(struct sql *sql, struct buf *text, int status)
{
    struct slice rest = buf_view(text), statement;
    while (sql_cut(rest, &statement, &rest))
        if (statement.len) status = sql_run(sql, statement);
    size_t left = rest.len;
    if (left) memmove(text->data, rest.data, left);
    text->len = sql_trim(rest).len ? left : 0;
    return status;
}

int sql_shell(struct sql *sql)
{
    struct shell shell = {.sql = sql};
    struct buf line = {0}, text = {0};
    int status = EXIT_FINE;
    enum line_result result;
    shell.edit = (struct line_edit){.complete = complete, .context = &shell};
    find_history(&shell);
    load_names(&shell);
    fprintf(stderr, "PartiQL on %s; .help tells more, Ctrl-D ends\n", sql->place.where);
    while ((result = line_read(&shell.edit, text.len ? "   ...> " : "quipu> ", &line)) != LINE_END) {
        struct slice typed = sql_trim(buf_view(&line));
        if (result == LINE_GIVEN_UP) {
            text.len = 0;
            continue;
        }
        if (!typed.len) continue;
        remember(&shell, typed);
        if (!text.len && typed.data[0] == '.') {
            if (!run_dot(&shell, typed)) break;
            continue;
        }
        if (text.len) buf_byte(&text, '\n');
        buf_slice(&text, typed);
        status = run_whole(sql, &text, status);
    }
    line_edit_free(&shell.edit);
    arena_free(&shell.names);
    buf_free(&shell.history);
    buf_free(&line);
    buf_free(&text);
    return status;
}

/* ---- from a file ---- */

static unsigned long long line_of(struct slice text, struct slice statement)
{
    unsigned long long line = 1;
    for (const char *at = text.data; at < statement.data; at++) line += *at == '\n';
    return line;
}

/* The first that fails is the last: what stands behind it may count on it. */
int sql_stream(struct sql *sql)
{
    struct buf text = {0};
    struct slice rest, statement = SLICE_NONE;
    unsigned long long number = 0;
    int status = EXIT_FAULT;
    if (!input_read(NULL, LIMIT_SQL_BYTES, &text)) return status;
    status = EXIT_FINE;
    rest = buf_view(&text);
    for (bool is_last = false; status == EXIT_FINE && !is_last;) {
        is_last = !sql_cut(rest, &statement, &rest);
        if (is_last) statement = sql_trim(rest);
        if (!statement.len) continue;
        number++;
        status = sql_run(sql, statement);
    }
    if (status != EXIT_FINE)
        complain("statement %llu, on line %llu, failed; none behind it was run", number,
                 line_of(buf_view(&text), statement));
    buf_free(&text);
    return status;
}
