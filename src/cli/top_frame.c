/* A frame of quipu top: one line of numbers after the other, a line of blocks, the busiest tables, functions and jobs,
 * and the triggers that lag. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/layout.h"
#include "cli/top.h"

#define CELLS 4
#define LEAST_LINES 3 /* of a grid below the tables: an empty line, its head, and a row */

/* ---- taking ---- */

static double number_of(const struct node *object, const char *name)
{
    char text[64];
    struct slice number = node_text(object, name);
    if (!number.len || number.len >= sizeof text) return -1;
    snprintf(text, sizeof text, "%.*s", SLICE_ARG(number));
    return strtod(text, NULL);
}

static double number_or_zero(const struct node *object, const char *name)
{
    double number = number_of(object, name);
    return number < 0 ? 0 : number;
}

static double rate_of(const struct node *sample)
{
    double rate = 0;
    const struct node *operations = node_member(sample, "ops");
    for (const struct node *one = operations ? operations->first : NULL; one; one = one->next)
        rate += strtod(one->text.data, NULL);
    return rate;
}

static void add_rate(struct top *top, double rate)
{
    if (top->rate_count == TOP_SECONDS) memmove(top->rates, top->rates + 1, (--top->rate_count) * sizeof rate);
    top->rates[top->rate_count++] = rate;
}

/* A row stays for a while after it has become idle, so that nothing flickers. */
static void age_rows(struct top_rows *rows, bool keeps_third)
{
    size_t kept = 0;
    for (size_t i = 0; i < rows->count; i++) {
        struct top_row *row = &rows->rows[i];
        row->first = row->second = 0;
        if (!keeps_third) row->third = 0;
        if (row->idle++ < TOP_IDLE) rows->rows[kept++] = *row;
    }
    rows->count = kept;
}

static void take_row(struct top_rows *rows, struct slice name, const struct node *one, const char *const members[3])
{
    size_t place = 0;
    while (place < rows->count && !slice_equal(slice_of(rows->rows[place].name), name)) place++;
    if (place == TOP_ROWS || name.len >= sizeof rows->rows[0].name) return;
    if (place == rows->count) rows->count++;
    struct top_row *row = &rows->rows[place];
    *row = (struct top_row){.first = number_or_zero(one, members[0]),
                            .second = members[1] ? number_or_zero(one, members[1]) : 0,
                            .third = members[2] ? number_or_zero(one, members[2]) : 0};
    memcpy(row->name, name.data, name.len);
}

static void take_rows(struct top_rows *rows, const struct node *all, const char *const members[3], bool keeps_third)
{
    age_rows(rows, keeps_third);
    for (const struct node *one = all ? all->first : NULL; one; one = one->next)
        take_row(rows, one->name, one, members);
}

static void take_lags(struct top_rows *rows, const struct node *all)
{
    static const char *const members[3] = {"lagMs"};
    struct arena arena = {0};
    age_rows(rows, false);
    for (const struct node *one = all ? all->first : NULL; one; one = one->next)
        take_row(rows,
                 arena_printf(&arena, "%.*s > %.*s", SLICE_ARG(node_text(one, "table")),
                              SLICE_ARG(node_text(one, "function"))),
                 one, members);
    arena_free(&arena);
}

static void take_sample(struct top *top, const struct node *sample)
{
    static const char *const of_tables[3] = {"r", "w"}, *const of_functions[3] = {"calls", "errors", "running"},
                             *const of_jobs[3] = {"done", "failed", "total"};
    add_rate(top, rate_of(sample));
    take_rows(&top->tables, node_member(sample, "tables"), of_tables, false);
    take_rows(&top->functions, node_member(sample, "functions"), of_functions, false);
    take_rows(&top->jobs, node_member(sample, "jobs"), of_jobs, true); /* its tasks stay as many */
    take_lags(&top->lags, node_member(sample, "triggers"));
    top->sample = sample;
}

void top_take(struct top *top, struct slice json)
{
    const char *fault;
    struct arena arena = {0};
    const struct node *event = node_parse(&arena, arena_copy(&arena, json), &fault);
    const struct node *sample = node_member(event, "sample"), *history = node_member(event, "history");
    for (const struct node *one = history ? history->first : NULL; one; one = one->next)
        if (!node_member(one, "step")) add_rate(top, rate_of(one));
    if (!sample) {
        arena_free(&arena);
        return;
    }
    arena_free(&top->arena);
    top->arena = arena;
    take_sample(top, sample);
}

void top_free(struct top *top)
{
    arena_free(&top->arena);
}

/* ---- numbers for people ---- */

static void put_count(struct buf *out, double number)
{
    if (number > 0 && number < 10 && number != (double)(long long)number)
        buf_printf(out, "%.1f", number);
    else
        put_grouped(out, (unsigned long long)(number + 0.5));
}

static void put_micros(struct buf *out, double us)
{
    if (us < 0)
        buf_text(out, "-");
    else if (us < 1000)
        buf_printf(out, "%.0f us", us);
    else if (us < 1e6)
        buf_printf(out, "%.1f ms", us / 1000);
    else
        buf_printf(out, "%.1f s", us / 1e6);
}

static void put_label(struct buf *out, const char *label)
{
    if (out->len && out->data[out->len - 1] != '\n') buf_text(out, "   ");
    buf_slice(out, slice_of(label));
    buf_byte(out, ' ');
}

/* ---- lines ---- */

/* Cuts the line that begins at `start` to the width, and ends it. */
static void end_line(struct buf *out, size_t start, size_t width)
{
    while (width && text_width((struct slice){out->data + start, out->len - start}) > width) {
        out->len--;
        while (out->len > start && ((unsigned char)out->data[out->len] & 0xc0) == 0x80) out->len--;
    }
    buf_byte(out, '\n');
}

static void put_numbers(struct buf *out, const struct top *top, size_t width)
{
    static const struct {
        const char *label, *member;
        enum { COUNT, MICROS, MILLIS, BYTES } kind;
        bool ends_line;
    } numbers[] = {{"p50", "p50", MICROS, false},      {"p99", "p99", MICROS, false},
                   {"errors/s", "errors", COUNT, false}, {"commits/s", "commits", COUNT, false},
                   {"batch", "batch", COUNT, false},   {"sync", "syncUs", MICROS, true},
                   {"calls/s", "calls", COUNT, false}, {"failed/s", "callErrors", COUNT, false},
                   {"call", "callUs", MICROS, false},  {"lag", "lagMs", MILLIS, false},
                   {"queue", "queue", COUNT, false},   {"messages", "dead", COUNT, true},
                   {"connections", "connections", COUNT, false},
                   {"memory", "memory", BYTES, false}, {"disk", "disk", BYTES, true}};
    size_t start = out->len;
    put_label(out, "ops/s");
    put_count(out, rate_of(top->sample));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        double number = number_of(top->sample, numbers[i].member);
        put_label(out, numbers[i].label);
        if (numbers[i].kind == MICROS || numbers[i].kind == MILLIS)
            put_micros(out, numbers[i].kind == MILLIS && number > 0 ? number * 1000 : number);
        else if (number < 0)
            buf_byte(out, '-');
        else if (numbers[i].kind == BYTES)
            put_bytes(out, (unsigned long long)number);
        else
            put_count(out, number);
        if (!numbers[i].ends_line) continue;
        end_line(out, start, width);
        start = out->len;
    }
}

static void put_blocks(struct buf *out, const struct top *top, size_t width)
{
    static const char *const blocks[] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                         "\u2585", "\u2586", "\u2587", "\u2588"};
    size_t room = width > 30 ? width - 25 : 5, shown = top->rate_count < room ? top->rate_count : room;
    double highest = 0;
    size_t start = out->len;
    for (size_t i = top->rate_count - shown; i < top->rate_count; i++)
        if (top->rates[i] > highest) highest = top->rates[i];
    for (size_t i = top->rate_count - shown; i < top->rate_count; i++) {
        double part = highest > 0 ? top->rates[i] / highest * 8 : 0;
        buf_slice(out, slice_of(blocks[top->rates[i] > 0 && part < 1 ? 1 : (int)(part + 0.5)]));
    }
    buf_text(out, "  ops/s, most ");
    put_count(out, highest);
    end_line(out, start, width);
}

static int compare_names(const struct top_row *a, const struct top_row *b)
{
    return strcmp(a->name, b->name);
}

static enum top_sort sorted_by; /* qsort has no context */

static int compare_rows(const void *left, const void *right)
{
    const struct top_row *a = left, *b = right;
    double x = sorted_by == SORT_BUSY     ? a->first + a->second
               : sorted_by == SORT_FIRST  ? a->first
               : sorted_by == SORT_SECOND ? a->second
                                          : 0;
    double y = sorted_by == SORT_BUSY     ? b->first + b->second
               : sorted_by == SORT_FIRST  ? b->first
               : sorted_by == SORT_SECOND ? b->second
                                          : 0;
    return x != y ? (x < y ? 1 : -1) : compare_names(a, b);
}

static struct slice cell(struct arena *arena, double number, bool is_lag)
{
    struct buf out = {0};
    if (is_lag)
        put_micros(&out, number * 1000);
    else
        put_count(&out, number);
    struct slice text = arena_copy(arena, buf_view(&out));
    buf_free(&out);
    return text;
}

/* A grid of the rows in the chosen order, from `scrolled` on; so many lines with its head. */
static void put_rows(struct buf *out, const struct top *top, const struct top_rows *all, const char *const head[CELLS],
                     size_t scrolled, size_t lines, size_t width, bool is_bold)
{
    struct arena arena = {0};
    struct top_row *rows = arena_array(&arena, struct top_row, all->count + 1);
    bool has_lags = all == &top->lags;
    size_t columns = has_lags ? 2 : head[3] ? 4 : 3, count = 0;
    struct slice *cells = arena_array(&arena, struct slice, (all->count + 1) * CELLS);
    memcpy(rows, all->rows, all->count * sizeof *rows);
    sorted_by = top->sort;
    qsort(rows, all->count, sizeof *rows, compare_rows);
    for (size_t i = 0; i < columns; i++) {
        bool is_chosen = top->sort == (i == 0 ? SORT_NAME : i == 1 ? SORT_FIRST : i == 2 ? SORT_SECOND : TOP_SORTS);
        cells[i] = arena_printf(&arena, "%s%s", head[i], is_chosen ? "*" : "");
    }
    for (size_t i = scrolled; i < all->count && count + 1 < lines; i++) {
        struct slice *row = &cells[++count * columns];
        row[0] = text_harmless(&arena, slice_of(rows[i].name));
        row[1] = cell(&arena, rows[i].first, has_lags);
        if (columns > 2) row[2] = cell(&arena, rows[i].second, false);
        if (columns > 3) row[3] = cell(&arena, rows[i].third, false);
    }
    grid_put(out, &arena,
             &(struct grid){.cells = cells,
                            .rows = count + 1,
                            .columns = columns,
                            .has_head = true,
                            .is_bold = is_bold,
                            .width = width});
    arena_free(&arena);
}

static void put_operations(struct buf *out, const struct top *top, size_t width)
{
    size_t start = out->len;
    const struct node *operations = node_member(top->sample, "ops");
    for (const struct node *one = operations ? operations->first : NULL; one; one = one->next) {
        if (out->len > start) buf_text(out, "   ");
        buf_slice(out, one->name);
        buf_byte(out, ' ');
        put_count(out, strtod(one->text.data, NULL));
    }
    end_line(out, start, width);
}

/* The tables, and below them what else there is, each of it in as many lines as it needs, or its part of a terminal. */
static void put_grids(struct buf *out, const struct top *top, size_t lines, size_t width, bool is_bold)
{
    static const char *const heads[][CELLS] = {{"FUNCTION", "CALLS/s", "ERRORS/s", "RUNNING"},
                                               {"JOB", "DONE/s", "FAILED/s", "TASKS"},
                                               {"TRIGGER", "LAG", NULL, NULL}},
                             *const of_tables[CELLS] = {"TABLE", "READS/s", "WRITES/s", NULL};
    const struct top_rows *const below[] = {&top->functions, &top->jobs, &top->lags};
    size_t most = lines / 4 < LEAST_LINES ? LEAST_LINES : lines / 4, wanted[3] = {0}, left = lines;
    for (size_t i = 0; i < 3; i++) {
        if (!below[i]->count || left <= 2 * LEAST_LINES) continue;
        wanted[i] = below[i]->count + 2 < most ? below[i]->count + 2 : most;
        left -= wanted[i];
    }
    put_rows(out, top, &top->tables, of_tables, top->scrolled, left, width, is_bold);
    for (size_t i = 0; i < 3; i++) {
        if (!wanted[i]) continue;
        buf_byte(out, '\n');
        put_rows(out, top, below[i], heads[i], 0, wanted[i] - 1, width, is_bold);
    }
}

void top_put(struct buf *out, const struct top *top, const char *where, size_t width, size_t height, bool is_bold)
{
    char clock[16];
    struct tm parts;
    size_t start = out->len;
    time_t seconds = (time_t)(number_or_zero(top->sample, "t") / 1000);
    localtime_r(&seconds, &parts);
    strftime(clock, sizeof clock, "%H:%M:%S", &parts);
    buf_printf(out, "quipu top   %s   %s", where, top->sample ? clock : "waiting");
    end_line(out, start, width);
    if (!top->sample) return;
    put_numbers(out, top, width);
    put_blocks(out, top, width);
    put_operations(out, top, width);
    buf_byte(out, '\n');
    put_grids(out, top, height > 12 ? height - 9 : height ? 3 : SIZE_MAX, width, is_bold);
}
