/* What quipu top shows, and how: a frame of text, without where it goes. */
#ifndef CLI_TOP_H
#define CLI_TOP_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/node.h"

#define TOP_SECONDS 120 /* of the line of blocks */
#define TOP_ROWS    200 /* tables, functions, jobs and triggers, that are remembered, of each */
#define TOP_IDLE    10  /* seconds after which one that does nothing is forgotten */

enum top_sort { SORT_BUSY, SORT_FIRST, SORT_SECOND, SORT_NAME, TOP_SORTS };

/* A table: reads and writes. A function: calls and errors, and how many run. A job: tasks that were done and that
 * failed, and all that it has. A trigger, "table > function": its lag in milliseconds. */
struct top_row {
    char name[256];
    double first, second, third;
    unsigned idle;
};

struct top_rows {
    struct top_row rows[TOP_ROWS];
    size_t count;
};

struct top {
    struct arena arena; /* of the sample */
    const struct node *sample; /* the latest; NULL: none yet */
    double rates[TOP_SECONDS]; /* operations in each second, the latest last */
    size_t rate_count;
    struct top_rows tables, functions, jobs, lags;
    enum top_sort sort;
    size_t scrolled; /* rows of tables above the first that is shown */
};

/* Takes what the server sends: one event. */
void top_take(struct top *top, struct slice json);
void top_free(struct top *top);
/* Appends the frame. height 0: all of it; is_bold: with a terminal's escapes for headings. */
void top_put(struct buf *out, const struct top *top, const char *where, size_t width, size_t height, bool is_bold);

#endif
