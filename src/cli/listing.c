/* Lists and descriptions of functions, triggers, schedules. */
#include "cli/listing.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROWS_FIRST 32

enum form form_listed(const struct arguments *arguments)
{
    if (argument_given(arguments, "json")) return FORM_PLAIN;
    return argument_given(arguments, "table") || output_is_terminal() ? FORM_TABLE : FORM_PLAIN;
}

void listing_begin(struct listing *listing, enum form form, const char *const *head, size_t columns)
{
    *listing = (struct listing){.columns = columns, .room = ROWS_FIRST, .is_table = form == FORM_TABLE};
    listing->cells = arena_array(&listing->arena, struct slice, listing->room * columns);
    for (size_t i = 0; i < columns; i++) listing->cells[i] = slice_of(head[i]);
    listing->rows = 1;
}

struct slice *listing_row(struct listing *listing, struct slice json)
{
    if (!listing->is_table) {
        json_print(json);
        return NULL;
    }
    if (listing->rows == listing->room) {
        size_t used = listing->rows * listing->columns;
        struct slice *larger = arena_array(&listing->arena, struct slice, used * 2);
        memcpy(larger, listing->cells, used * sizeof *larger);
        listing->cells = larger;
        listing->room *= 2;
    }
    struct slice *row = listing->cells + listing->rows++ * listing->columns;
    memset(row, 0, listing->columns * sizeof *row);
    return row;
}

void listing_end(struct listing *listing, const char *what)
{
    struct buf out = {0};
    size_t cells = listing->rows * listing->columns;
    if (listing->is_table && listing->rows == 1 && errors_are_terminal())
        fprintf(stderr, "There are no %s.\n", what);
    for (size_t i = 0; i < cells; i++) listing->cells[i] = text_harmless(&listing->arena, listing->cells[i]);
    if (listing->is_table && listing->rows > 1)
        grid_put(&out, &listing->arena,
                 &(struct grid){.cells = listing->cells,
                                .rows = listing->rows,
                                .columns = listing->columns,
                                .has_head = true,
                                .is_bold = colour_is_wanted(),
                                .width = output_is_terminal() ? terminal_width() : 0});
    if (out.len) fwrite(out.data, 1, out.len, stdout);
    buf_free(&out);
    arena_free(&listing->arena);
}

void pairs_print(const struct pair *pairs, size_t count)
{
    struct arena arena = {0};
    size_t width = 0;
    for (size_t i = 0; i < count; i++)
        if (pairs[i].text.len && strlen(pairs[i].name) > width) width = strlen(pairs[i].name);
    for (size_t i = 0; i < count; i++)
        if (pairs[i].text.len)
            printf("%-*s  %.*s\n", (int)width, pairs[i].name,
                   SLICE_ARG(text_harmless(&arena, pairs[i].text)));
    arena_free(&arena);
}

/* The server writes replies on one line. */
void json_print(struct slice json)
{
    printf("%.*s\n", SLICE_ARG(json));
}

struct slice time_shown(struct arena *arena, double seconds)
{
    char text[32];
    struct tm parts;
    time_t time = (time_t)seconds;
    if (seconds < 0 || !localtime_r(&time, &parts) ||
        !strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %Z", &parts))
        return SLICE("-");
    return arena_copy(arena, slice_of(text));
}

double node_number(const struct node *object, const char *name)
{
    struct slice text = node_text(object, name);
    char digits[64];
    if (!text.len || text.len >= sizeof digits) return -1;
    memcpy(digits, text.data, text.len);
    digits[text.len] = 0;
    return strtod(digits, NULL);
}

struct slice after_last(struct slice text, char byte)
{
    const char *found = text.len ? memrchr(text.data, byte, text.len) : NULL;
    return found ? slice_from(text, (size_t)(found + 1 - text.data)) : text;
}
