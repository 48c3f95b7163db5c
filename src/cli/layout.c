/* Columns. The widths are settled first: each column gets what its widest cell needs, and when that is too
 * much, the widest ones give way down to a common bound, so that narrow columns are never cut for the sake of
 * a wide one. */
#include "cli/layout.h"

#include <stdio.h>

#define GAP        2 /* spaces between columns */
#define NARROW     8 /* what a column is not cut below */
#define ELLIPSIS   "\xe2\x80\xa6"
#define CELL_BYTES 4096 /* more of a text is not looked at: no terminal is that wide */

/* ---- the width of texts ---- */

/* The letter at the front of the text; its length in *len. Malformed bytes count as letters of their own. */
static unsigned letter_at(struct slice text, size_t *len)
{
    unsigned char c = (unsigned char)text.data[0];
    size_t wanted = c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    *len = wanted <= text.len ? wanted : text.len;
    unsigned letter = wanted == 1 ? c : c & (0xffu >> (wanted + 1));
    for (size_t i = 1; i < *len; i++) letter = letter << 6 | ((unsigned char)text.data[i] & 0x3f);
    return letter;
}

struct letters {
    unsigned first, last;
};

static bool is_among(unsigned letter, const struct letters *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (letter >= ranges[i].first && letter <= ranges[i].last) return true;
    return false;
}

static size_t letter_width(unsigned letter)
{
    static const struct letters none[] = {{0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},
                                          {0x610, 0x61a},   {0x64b, 0x65f},   {0x1ab0, 0x1aff},
                                          {0x1dc0, 0x1dff}, {0x200b, 0x200f}, {0x20d0, 0x20ff},
                                          {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}};
    static const struct letters wide[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},
                                          {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe4f},
                                          {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x1f300, 0x1f64f},
                                          {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
    if (letter < 0x300) return 1;
    if (is_among(letter, none, sizeof none / sizeof *none)) return 0;
    return is_among(letter, wide, sizeof wide / sizeof *wide) ? 2 : 1;
}

size_t text_width(struct slice text)
{
    size_t width = 0, len;
    for (; text.len; text = slice_from(text, len)) width += letter_width(letter_at(text, &len));
    return width;
}

static bool is_control(unsigned letter)
{
    return letter < 0x20 || (letter >= 0x7f && letter < 0xa0);
}

struct slice text_harmless(struct arena *arena, struct slice text)
{
    struct buf clean = {0};
    bool changed = false;
    size_t len;
    if (text.len > CELL_BYTES) text.len = CELL_BYTES;
    for (struct slice rest = text; rest.len; rest = slice_from(rest, len)) {
        unsigned letter = letter_at(rest, &len);
        if (!is_control(letter)) {
            buf_put(&clean, rest.data, len);
            continue;
        }
        changed = true;
        if (letter == '\n')
            buf_text(&clean, "\\n");
        else if (letter == '\t')
            buf_text(&clean, "\\t");
        else
            buf_printf(&clean, "\\x%02x", letter);
    }
    struct slice result = changed ? arena_copy(arena, buf_view(&clean)) : text;
    buf_free(&clean);
    return result;
}

/* ---- the grid ---- */

static struct slice cell(const struct grid *grid, size_t row, size_t column)
{
    return grid->cells[row * grid->columns + column];
}

static bool looks_like_number(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!strchr("0123456789.,-+eE", text.data[i])) return false;
    return true;
}

/* A column of numbers and nothing else but gaps. */
static bool is_number_column(const struct grid *grid, size_t column)
{
    bool has_any = false;
    for (size_t row = grid->has_head; row < grid->rows; row++) {
        if (!looks_like_number(cell(grid, row, column))) return false;
        has_any |= cell(grid, row, column).len > 0;
    }
    return has_any;
}

static void measure(const struct grid *grid, size_t *widths)
{
    for (size_t column = 0; column < grid->columns; column++) {
        widths[column] = 0;
        for (size_t row = 0; row < grid->rows; row++) {
            size_t width = text_width(cell(grid, row, column));
            if (width > widths[column]) widths[column] = width;
        }
    }
}

static size_t total_width(const size_t *widths, size_t columns, size_t bound)
{
    size_t total = columns ? (columns - 1) * GAP : 0;
    for (size_t i = 0; i < columns; i++) total += widths[i] < bound ? widths[i] : bound;
    return total;
}

/* How many of the columns fit when each is cut to the bound. */
static size_t columns_that_fit(const size_t *widths, size_t columns, size_t bound, size_t width)
{
    while (columns > 1 && total_width(widths, columns, bound) > width) columns--;
    return columns;
}

static size_t settle_widths(size_t *widths, size_t columns, size_t width)
{
    if (!width) return columns;
    size_t shown = columns_that_fit(widths, columns, NARROW, width);
    size_t bound = width;
    while (bound > NARROW && total_width(widths, shown, bound) > width) bound--;
    for (size_t i = 0; i < shown; i++)
        if (widths[i] > bound) widths[i] = bound;
    return shown;
}

static void put_spaces(struct buf *out, size_t count)
{
    while (count--) buf_byte(out, ' ');
}

/* The text cut to the width, with an ellipsis as its last letter. */
static void put_cut(struct buf *out, struct slice text, size_t width)
{
    size_t used = 0, len;
    for (; text.len; text = slice_from(text, len)) {
        size_t letter = letter_width(letter_at(text, &len));
        if (used + letter > width - 1) break;
        buf_put(out, text.data, len);
        used += letter;
    }
    buf_text(out, ELLIPSIS);
    put_spaces(out, width - 1 - used);
}

static void put_cell(struct buf *out, struct slice text, size_t width, bool at_right, bool is_last)
{
    size_t own = text_width(text);
    if (own > width) {
        put_cut(out, text, width);
        return;
    }
    if (at_right) put_spaces(out, width - own);
    buf_slice(out, text);
    if (!at_right && !is_last) put_spaces(out, width - own);
}

size_t grid_put(struct buf *out, struct arena *arena, const struct grid *grid)
{
    size_t *widths = arena_array(arena, size_t, grid->columns + 1);
    bool *at_right = arena_array(arena, bool, grid->columns + 1);
    measure(grid, widths);
    size_t shown = settle_widths(widths, grid->columns, grid->width);
    for (size_t column = 0; column < shown; column++) at_right[column] = is_number_column(grid, column);
    for (size_t row = 0; row < grid->rows; row++) {
        bool is_head = row == 0 && grid->has_head && grid->is_bold;
        if (is_head) buf_text(out, "\033[1m");
        for (size_t column = 0; column < shown; column++) {
            if (column) put_spaces(out, GAP);
            put_cell(out, cell(grid, row, column), widths[column], at_right[column], column + 1 == shown);
        }
        while (out->len && out->data[out->len - 1] == ' ') out->len--;
        if (is_head) buf_text(out, "\033[0m");
        buf_byte(out, '\n');
    }
    return grid->columns - shown;
}

/* ---- numbers for people ---- */

void put_grouped(struct buf *out, unsigned long long number)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%llu", number);
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0) buf_byte(out, ',');
        buf_byte(out, (unsigned char)digits[i]);
    }
}

void put_bytes(struct buf *out, unsigned long long bytes)
{
    static const char *const units[] = {"kB", "MB", "GB", "TB"};
    if (bytes < 1000) {
        buf_printf(out, "%llu B", bytes);
        return;
    }
    double value = (double)bytes / 1000;
    size_t unit = 0;
    for (; value >= 1000 && unit < 3; unit++) value /= 1000;
    buf_printf(out, value < 10 ? "%.1f %s" : "%.0f %s", value, units[unit]);
}
