/* Printing items. Everything is checked as it is printed: a reply that is no item is a fault, not garbage on
 * the screen. */
#include "cli/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/print.h"
#include "cli/layout.h"
#include "cli/plain.h"

#define BLOCK_ROWS    500
#define COLUMNS_MAX   200 /* of a table; more do not fit any terminal */
#define DEFAULT_WIDTH 100

bool output_is_terminal(void)
{
    return isatty(STDOUT_FILENO) == 1;
}

bool errors_are_terminal(void)
{
    return isatty(STDERR_FILENO) == 1;
}

bool colour_is_wanted(void)
{
    const char *no = getenv("NO_COLOR");
    return output_is_terminal() && !(no && *no);
}

size_t terminal_width(void)
{
    struct winsize size;
    unsigned long long columns;
    const char *wanted = getenv("COLUMNS");
    if (wanted && slice_to_u64(slice_of(wanted), 10000, &columns) && columns) return (size_t)columns;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col) return size.ws_col;
    return DEFAULT_WIDTH;
}

enum form form_chosen(const struct arguments *arguments)
{
    if (argument_given(arguments, "dynamodb-json")) return FORM_DYNAMO;
    if (argument_given(arguments, "json")) return FORM_PLAIN;
    if (argument_given(arguments, "table") || output_is_terminal()) return FORM_TABLE;
    return FORM_PLAIN;
}

static bool complain_of_item(struct slice json)
{
    complain("this is no item in DynamoDB's JSON: %.*s", (int)(json.len < 200 ? json.len : 200), json.data);
    return false;
}

/* ---- columns ---- */

struct columns {
    struct slice names[COLUMNS_MAX];
    size_t count;
};

static void add_column(struct columns *columns, struct slice name)
{
    for (size_t i = 0; i < columns->count; i++)
        if (slice_equal(columns->names[i], name)) return;
    if (columns->count < COLUMNS_MAX) columns->names[columns->count++] = name;
}

static bool any_has(const struct printer *printer, struct slice name)
{
    for (size_t row = 0; row < printer->row_count; row++)
        for (const struct node *one = printer->rows[row]->first; one; one = one->next)
            if (slice_equal(one->name, name)) return true;
    return false;
}

static void add_key_column(const struct printer *printer, struct columns *columns, struct slice name)
{
    if (name.len && any_has(printer, name)) add_column(columns, name);
}

/* Keys first, the index's before the table's, then everything else in the order of its first appearance. */
static void find_columns(const struct printer *printer, struct columns *columns)
{
    const struct schema *schema = printer->schema;
    columns->count = 0;
    for (size_t i = 0; i < schema->searched.count; i++)
        add_key_column(printer, columns, schema->searched.parts[i].name);
    add_key_column(printer, columns, schema->hash.name);
    add_key_column(printer, columns, schema->range.name);
    for (size_t row = 0; row < printer->row_count; row++)
        for (const struct node *one = printer->rows[row]->first; one; one = one->next)
            add_column(columns, one->name);
}

/* The cell of an attribute; false when it is no value. */
static bool make_cell(struct arena *arena, const struct node *value, struct slice *out)
{
    struct buf text = {0};
    bool fine = dynamo_value_to_cell(&text, value);
    *out = text_harmless(arena, arena_copy(arena, buf_view(&text)));
    buf_free(&text);
    return fine;
}

static bool fill_row(struct printer *printer, const struct columns *columns, const struct node *item,
                     struct slice *cells)
{
    for (size_t i = 0; i < columns->count; i++) cells[i] = SLICE("");
    for (const struct node *one = item->first; one; one = one->next)
        for (size_t i = 0; i < columns->count; i++)
            if (slice_equal(columns->names[i], one->name) && !make_cell(&printer->arena, one, &cells[i]))
                return complain_of_item(item->source);
    return true;
}

/* True, and remembered, when the names differ from those above the block before. */
static bool head_is_new(struct printer *printer, const struct columns *columns)
{
    struct buf names = {0};
    for (size_t i = 0; i < columns->count; i++) {
        buf_slice(&names, columns->names[i]);
        buf_byte(&names, 0);
    }
    bool is_new = !slice_equal(buf_view(&names), buf_view(&printer->head));
    buf_free(&printer->head);
    printer->head = names;
    return is_new;
}

static bool print_block(struct printer *printer)
{
    struct columns columns;
    struct buf out = {0};
    find_columns(printer, &columns);
    bool has_head = head_is_new(printer, &columns);
    struct slice *cells = arena_array(&printer->arena, struct slice,
                                      (printer->row_count + 1) * (columns.count + 1));
    for (size_t i = 0; i < columns.count; i++) cells[i] = text_harmless(&printer->arena, columns.names[i]);
    size_t head_rows = has_head ? 1 : 0;
    for (size_t row = 0; row < printer->row_count; row++)
        if (!fill_row(printer, &columns, printer->rows[row], cells + (row + head_rows) * columns.count))
            return false;
    struct grid grid = {.cells = cells,
                        .rows = printer->row_count + head_rows,
                        .columns = columns.count,
                        .has_head = has_head,
                        .is_bold = colour_is_wanted(),
                        .width = terminal_width()};
    printer->columns_left_out = grid_put(&out, &printer->arena, &grid);
    fwrite(out.data, 1, out.len, stdout);
    buf_free(&out);
    printer->row_count = 0;
    arena_reset(&printer->arena);
    return !ferror(stdout);
}

/* ---- printing ---- */

void printer_begin(struct printer *printer, enum form form, const struct schema *schema)
{
    *printer = (struct printer){.form = form, .schema = schema};
    if (form == FORM_TABLE) printer->rows = must_zero(BLOCK_ROWS, sizeof *printer->rows);
}

static bool print_plain(struct arena *arena, struct slice json)
{
    const char *fault;
    struct buf line = {0};
    const struct node *item = node_parse(arena, json, &fault);
    bool fine = item && dynamo_item_to_plain(&line, item);
    if (fine) {
        buf_byte(&line, '\n');
        fwrite(line.data, 1, line.len, stdout);
    } else {
        complain_of_item(json);
    }
    buf_free(&line);
    return fine;
}

bool printer_item(struct printer *printer, struct slice json)
{
    const char *fault;
    bool fine = true;
    printer->count++;
    if (printer->form == FORM_TABLE) {
        const struct node *item = node_parse(&printer->arena, arena_copy(&printer->arena, json), &fault);
        if (!item || item->kind != JSON_OBJECT) return complain_of_item(json);
        printer->rows[printer->row_count++] = item;
        return printer->row_count < BLOCK_ROWS || print_block(printer);
    }
    if (printer->form == FORM_PLAIN) {
        fine = print_plain(&printer->arena, json);
        arena_reset(&printer->arena);
    } else {
        fwrite(json.data, 1, json.len, stdout);
        putchar('\n');
    }
    return fine && !ferror(stdout);
}

static void print_sum(const struct printer *printer)
{
    fputs(counted(printer->count, "item").text, stderr);
    if (printer->columns_left_out)
        fprintf(stderr, "; %s did not fit, --json shows all",
                counted(printer->columns_left_out, "column").text);
    fputc('\n', stderr);
}

bool printer_end(struct printer *printer)
{
    bool fine = !printer->row_count || print_block(printer);
    fine = fflush(stdout) == 0 && fine;
    if (fine && printer->form == FORM_TABLE && errors_are_terminal()) print_sum(printer);
    free(printer->rows);
    buf_free(&printer->head);
    arena_free(&printer->arena);
    return fine;
}

/* Name and value on a line each. */
static bool print_upright(struct printer *printer, const struct node *item)
{
    struct columns columns;
    struct buf out = {0};
    printer->rows[0] = item;
    printer->row_count = 1;
    find_columns(printer, &columns);
    struct slice *values = arena_array(&printer->arena, struct slice, columns.count + 1);
    struct slice *cells = arena_array(&printer->arena, struct slice, 2 * columns.count + 1);
    if (!fill_row(printer, &columns, item, values)) return false;
    for (size_t i = 0; i < columns.count; i++) {
        cells[2 * i] = text_harmless(&printer->arena, columns.names[i]);
        cells[2 * i + 1] = values[i];
    }
    grid_put(&out, &printer->arena, &(struct grid){.cells = cells, .rows = columns.count, .columns = 2});
    fwrite(out.data, 1, out.len, stdout);
    buf_free(&out);
    return true;
}

bool print_item(enum form form, const struct schema *schema, struct slice json)
{
    const char *fault;
    struct printer printer;
    printer_begin(&printer, form, schema);
    bool fine;
    if (form == FORM_TABLE) {
        const struct node *item = node_parse(&printer.arena, json, &fault);
        fine = item && item->kind == JSON_OBJECT ? print_upright(&printer, item) : complain_of_item(json);
    } else {
        fine = printer_item(&printer, json);
    }
    printer.row_count = 0;
    printer.form = FORM_DYNAMO;
    return printer_end(&printer) && fine;
}
