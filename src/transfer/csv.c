/* Comma-separated values (RFC 4180): fields between quotes hold anything, "" stands for a quote. */
#include <string.h>

#include "base/json.h"
#include "transfer/formats.h"

/* A field between quotes; *at is behind the first one. */
static bool take_quoted(struct arena *arena, struct slice row, size_t *at, struct slice *field)
{
    size_t start = *at, quotes = 0, end = start;
    while (end < row.len) {
        if (row.data[end] != '"') {
            end++;
        } else if (end + 1 < row.len && row.data[end + 1] == '"') {
            quotes++;
            end += 2;
        } else {
            break;
        }
    }
    if (end == row.len) return false;
    *field = (struct slice){row.data + start, end - start};
    *at = end + 1;
    if (!quotes) return true;
    char *text = arena_alloc(arena, field->len - quotes), *to = text;
    for (size_t i = 0; i < field->len; i++) {
        *to++ = field->data[i];
        if (field->data[i] == '"') i++;
    }
    *field = (struct slice){text, (size_t)(to - text)};
    return true;
}

bool csv_split(struct arena *arena, struct slice row, char delimiter, struct slice **fields, uint32_t *count,
               const char **fault)
{
    uint32_t room = 16;
    size_t at = 0;
    *fields = arena_array(arena, struct slice, room);
    *count = 0;
    for (;;) {
        struct slice field;
        if (at < row.len && row.data[at] == '"') {
            at++;
            if (!take_quoted(arena, row, &at, &field)) return *fault = "a quote is not closed", false;
            if (at < row.len && row.data[at] != delimiter)
                return *fault = "text stands behind a closed quote", false;
        } else {
            const char *end = at < row.len ? memchr(row.data + at, delimiter, row.len - at) : NULL;
            field = (struct slice){row.data + at, end ? (size_t)(end - row.data) - at : row.len - at};
            at += field.len;
        }
        if (*count == LIMIT_TRANSFER_COLUMNS) return *fault = "a row has too many columns", false;
        if (*count == room) {
            struct slice *larger = arena_array(arena, struct slice, room *= 2);
            memcpy(larger, *fields, *count * sizeof *larger);
            *fields = larger;
        }
        (*fields)[(*count)++] = field;
        if (at == row.len) return true;
        at++; /* the delimiter */
    }
}

static enum value_type type_of(struct slice name, const struct transfer_column *types, uint32_t type_count)
{
    for (uint32_t i = 0; i < type_count; i++)
        if (slice_equal(types[i].name, name)) return types[i].type;
    return VALUE_S;
}

bool csv_item_put(struct buf *json, const struct slice *names, uint32_t name_count,
                  const struct slice *fields, uint32_t field_count, const struct transfer_column *types,
                  uint32_t type_count, const char **fault)
{
    if (field_count > name_count) return *fault = "the row has more fields than there are columns", false;
    buf_byte(json, '{');
    for (uint32_t i = 0; i < field_count; i++) {
        if (!utf8_valid(fields[i])) return *fault = "the row is not UTF-8", false;
        if (i) buf_byte(json, ',');
        json_put_string(json, names[i]);
        buf_text(json, ":{\"");
        buf_slice(json, value_type_name(type_of(names[i], types, type_count)));
        buf_text(json, "\":");
        json_put_string(json, fields[i]);
        buf_byte(json, '}');
    }
    buf_byte(json, '}');
    return true;
}
