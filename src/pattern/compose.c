/* Requests and answers from formats: JSON that can be read in the source, with its values filled in. The
 * placeholders are documented at flow_compose in flow.h. */
#include <stdlib.h>

#include "base/fail.h"
#include "pattern/flow.h"

/* What one text is made with. Values that are not there count as empty. */
struct composer {
    struct flow *flow;
    struct buf *out;
    struct slice names[32]; /* #words since the last %#, each once */
    unsigned name_count;
};

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Remembers the #word that begins here. */
static void name_note(struct composer *composer, const char *at, const char *end)
{
    struct slice word = {at + 1, 0};
    while (word.data + word.len < end && is_word(word.data[word.len])) word.len++;
    if (!word.len) return;
    for (unsigned i = 0; i < composer->name_count; i++)
        if (slice_equal(composer->names[i], word)) return;
    ensure(composer->name_count < sizeof composer->names / sizeof *composer->names);
    composer->names[composer->name_count++] = word;
}

static void put_names(struct composer *composer)
{
    struct buf *out = composer->out;
    buf_text(out, "\"ExpressionAttributeNames\":{");
    for (unsigned i = 0; i < composer->name_count; i++) {
        if (i) buf_byte(out, ',');
        buf_text(out, "\"#");
        buf_slice(out, composer->names[i]);
        buf_text(out, "\":\"");
        buf_slice(out, composer->names[i]);
        buf_byte(out, '"');
    }
    buf_byte(out, '}');
    composer->name_count = 0;
}

/* ' becomes ", eight bytes at a time: of a byte that is a quote nothing but its mark is left, and the two
 * differ by their lowest and third bit. */
static void quotes_turn(char *at, size_t len)
{
    const uint64_t ones = UINT64_MAX / 255, sevens = ones * 0x7f;
    for (; len >= 8; at += 8, len -= 8) {
        uint64_t word, marks;
        memcpy(&word, at, sizeof word);
        marks = word ^ ones * '\'';
        marks = ~(((marks & sevens) + sevens) | marks | sevens);
        word ^= (marks >> 7) * ('\'' ^ '"');
        memcpy(at, &word, sizeof word);
    }
    for (; len; at++, len--)
        if (*at == '\'') *at = '"';
}

static void names_note(struct composer *composer, struct slice text)
{
    const char *end = text.data + text.len, *at = text.data;
    while (at < end && (at = memchr(at, '#', (size_t)(end - at)))) name_note(composer, at++, end);
}

/* Text of ours: quotes are turned, #words noted. */
static void put_own(struct composer *composer, struct slice text)
{
    struct buf *out = composer->out;
    if (!text.len) return;
    names_note(composer, text);
    buf_slice(out, text);
    quotes_turn(out->data + out->len - text.len, text.len);
}

static void put_raw(struct composer *composer, struct slice text)
{
    names_note(composer, text);
    buf_slice(composer->out, text);
}

/* The table's name, and it is noted for the case that there is no such table. */
static void put_table(struct composer *composer, const struct flow_table *table)
{
    struct flow *flow = composer->flow;
    buf_byte(composer->out, '"');
    buf_slice(composer->out, flow->world->prefix);
    buf_slice(composer->out, slice_of(table->name));
    buf_byte(composer->out, '"');
    for (uint32_t i = 0; i < flow->table_count; i++)
        if (flow->tables[i] == table) return;
    ensure(flow->table_count < FLOW_TABLES);
    flow->tables[flow->table_count++] = table;
}

static void put_string(struct buf *out, struct slice text)
{
    json_put_string(out, text.data ? text : SLICE(""));
}

static void put_typed(struct buf *out, char type, struct slice text)
{
    buf_text(out, "{\"");
    buf_byte(out, (unsigned char)type);
    buf_text(out, "\":");
    put_string(out, text);
    buf_byte(out, '}');
}

static void put_number(struct buf *out, int64_t value)
{
    buf_text(out, "{\"N\":\"");
    json_put_int(out, value);
    buf_text(out, "\"}");
}

static void put_argument(struct composer *composer, char kind, va_list *args)
{
    struct buf *out = composer->out;
    struct arena *arena = composer->flow->arena;
    switch (kind) {
    case 'T': put_table(composer, va_arg(*args, const struct flow_table *)); return;
    case 'S': put_typed(out, 'S', va_arg(*args, struct slice)); return;
    case 'N': put_number(out, va_arg(*args, int64_t)); return;
    case 'J': attribute_put_plain(out, arena, va_arg(*args, struct slice)); return;
    case 'P': plain_put_attribute(out, arena, va_arg(*args, struct slice)); return;
    case 'A': buf_slice(out, va_arg(*args, struct slice)); return;
    case 'r': put_raw(composer, va_arg(*args, struct slice)); return;
    case 's': put_string(out, va_arg(*args, struct slice)); return;
    case 'd': json_put_int(out, va_arg(*args, int64_t)); return;
    case 'b': buf_slice(out, va_arg(*args, int) ? SLICE("true") : SLICE("false")); return;
    case '#': put_names(composer); return;
    case 'O': buf_text(out, "\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\""); return;
    case '%': buf_byte(out, '%'); return;
    default: ensure(false); /* no placeholder */
    }
}

void flow_vcompose(struct flow *flow, struct buf *out, const char *format, va_list args)
{
    struct composer composer = {.flow = flow, .out = out};
    va_list own;
    va_copy(own, args);
    for (const char *at = format; *at;) {
        const char *mark = strchr(at, '%');
        put_own(&composer, (struct slice){at, mark ? (size_t)(mark - at) : strlen(at)});
        if (!mark) break;
        put_argument(&composer, mark[1], &own);
        at = mark + 2;
    }
    va_end(own);
}

void flow_put(struct flow *flow, struct buf *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    flow_vcompose(flow, out, format, args);
    va_end(args);
}

struct slice flow_compose(struct flow *flow, const char *format, ...)
{
    struct buf out = {0};
    va_list args;
    va_start(args, format);
    flow_vcompose(flow, &out, format, args);
    va_end(args);
    struct slice text = arena_copy(flow->arena, buf_view(&out));
    buf_free(&out);
    return text;
}
