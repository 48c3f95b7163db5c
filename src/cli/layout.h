/* Text laid out in columns for a terminal. Pure: what goes where, not where it is printed. */
#ifndef CLI_LAYOUT_H
#define CLI_LAYOUT_H

#include "base/arena.h"
#include "base/buf.h"

/* How many columns of a terminal a text takes: none for accents, two for the wide letters of East Asia and
 * emoji. */
size_t text_width(struct slice text);
/* The text without what would move a terminal's cursor: control characters as \n, \t, \x1b. In the arena, or
 * itself. */
struct slice text_harmless(struct arena *arena, struct slice text);

struct grid {
    const struct slice *cells; /* row by row; harmless texts */
    size_t rows, columns;
    bool has_head; /* the first row holds the columns' names */
    bool is_bold;  /* and is shown so */
    size_t width;  /* of the terminal; 0: no bound */
};

/* Appends the grid. Wide columns are cut with an ellipsis until all fit; where even narrow ones do not, those
 * at the right are left out. Columns of numbers stand at their right edge. Answers how many columns were left
 * out. */
size_t grid_put(struct buf *out, struct arena *arena, const struct grid *grid);

/* 1234567 -> "1,234,567", 1536 -> "1.5 kB". */
void put_grouped(struct buf *out, unsigned long long number);
void put_bytes(struct buf *out, unsigned long long bytes);

#endif
