/* JSON from formats. Each is read once, into pieces that are copied from then on, and is known by its address. */
#include "base/compose.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/attribute.h"
#include "base/fail.h"
#include "base/json.h"

/* ---- formats, read once ---- */

/* What stands before a placeholder, or behind the last one. */
struct part {
    struct slice text;         /* with " for ' */
    const struct slice *words; /* its #words, each once */
    unsigned word_count;
    char kind; /* of the placeholder; 0: none, the format ends here */
};

struct format {
    char *source, *text;
    struct slice *words;
    struct part parts[];
};

#define FORMATS 4096 /* more than the program has */

static _Atomic(struct format *) formats[FORMATS];

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The next #word of the text, without its mark; SLICE_NONE: there is none any more. */
static struct slice word_next(struct slice *rest)
{
    const char *mark;
    while (rest->len && (mark = memchr(rest->data, '#', rest->len))) {
        struct slice word = {mark + 1, 0};
        *rest = slice_from(*rest, (size_t)(mark + 1 - rest->data));
        while (word.len < rest->len && is_word(word.data[word.len])) word.len++;
        if (word.len) return word;
    }
    return SLICE_NONE;
}

static bool word_is_among(const struct slice *words, unsigned count, struct slice word)
{
    for (unsigned i = 0; i < count; i++)
        if (slice_equal(words[i], word)) return true;
    return false;
}

static struct format *format_read(const char *source)
{
    size_t len = strlen(source), part_count = 1, mark_count = 0;
    for (const char *at = source; *at; at++) {
        part_count += *at == '%';
        mark_count += *at == '#';
    }
    struct format *format = must_alloc(sizeof *format + part_count * sizeof *format->parts);
    format->source = must_alloc(len + 1);
    format->text = must_alloc(len + 1);
    format->words = must_alloc((mark_count + 1) * sizeof *format->words);
    memcpy(format->source, source, len + 1);
    for (size_t i = 0; i <= len; i++) format->text[i] = source[i] == '\'' ? '"' : source[i];
    struct slice *words = format->words;
    char *at = format->text;
    struct part *part = format->parts;
    for (;; part++) {
        char *mark = strchr(at, '%');
        struct slice text = {at, mark ? (size_t)(mark - at) : strlen(at)}, rest = text, word;
        *part = (struct part){.text = text, .words = words, .kind = mark ? mark[1] : 0};
        while ((word = word_next(&rest)).data)
            if (!word_is_among(part->words, part->word_count, word)) words[part->word_count++] = word;
        words += part->word_count;
        if (!mark) break;
        ensure(part->kind);
        at = mark + 2;
    }
    /* Words that no %# comes behind are names of nothing: texts of users may have any number of them. */
    for (bool has_names = false; part >= format->parts; part--) {
        has_names |= part->kind == '#';
        if (!has_names && part->kind == 'r') part->kind = 'A';
        if (!has_names) part->word_count = 0;
    }
    return format;
}

static void format_free(struct format *format)
{
    free(format->source);
    free(format->text);
    free(format->words);
    free(format);
}

/* Known by its address, where the same text must still stand. It is kept as long as the program runs. */
static const struct format *format_of(const char *source)
{
    size_t at = ((uintptr_t)source * UINT64_C(0x9e3779b97f4a7c15)) >> 40;
    for (unsigned tries = 0; tries < FORMATS; tries++, at++) {
        struct format *known = atomic_load_explicit(&formats[at % FORMATS], memory_order_acquire);
        if (!known) {
            struct format *format = format_read(source);
            if (atomic_compare_exchange_strong(&formats[at % FORMATS], &known, format)) return format;
            format_free(format); /* another thread was quicker: known is what it has put */
        }
        if (strcmp(known->source, source) == 0) return known;
    }
    ensure(false);
    return NULL;
}

/* ---- composing ---- */

static void word_note(struct composer *composer, struct slice word)
{
    if (word_is_among(composer->names, composer->name_count, word)) return;
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

static void put_raw(struct composer *composer, struct slice text)
{
    struct slice rest = text, word;
    while ((word = word_next(&rest)).data) word_note(composer, word);
    buf_slice(composer->out, text);
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

/* A comma where something stands before it in the same object or array. */
static void put_comma(struct buf *out)
{
    if (out->len && !strchr("{[,:", out->data[out->len - 1])) buf_byte(out, ',');
}

/* The next argument; a segment with one that is not there is left out. */
static struct slice next_slice(struct composer *composer, va_list *args)
{
    struct slice slice = va_arg(*args, struct slice);
    composer->is_lacking |= !slice.data;
    return slice;
}

static void segment_begin(struct composer *composer)
{
    composer->segment_start = composer->out->len;
    composer->segment_names = composer->name_count;
    composer->is_lacking = false;
}

static void segment_end(struct composer *composer)
{
    if (!composer->is_lacking) return;
    composer->out->len = composer->segment_start;
    composer->name_count = composer->segment_names;
}

static void put_argument(struct composer *composer, char kind, va_list *args)
{
    struct buf *out = composer->out;
    switch (kind) {
    case 'S': put_typed(out, 'S', next_slice(composer, args)); return;
    case 'N': put_number(out, va_arg(*args, int64_t)); return;
    case 'J': attribute_put_plain(out, composer->arena, next_slice(composer, args)); return;
    case 'P': plain_put_attribute(out, composer->arena, next_slice(composer, args)); return;
    case 'A': buf_slice(out, next_slice(composer, args)); return;
    case 'r': put_raw(composer, next_slice(composer, args)); return;
    case 's': put_string(out, next_slice(composer, args)); return;
    case 'd': json_put_int(out, va_arg(*args, int64_t)); return;
    case 'b': buf_slice(out, va_arg(*args, int) ? SLICE("true") : SLICE("false")); return;
    case '#': put_names(composer); return;
    case 'O': buf_text(out, "\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\""); return;
    case ',': put_comma(out); return;
    case '[': segment_begin(composer); return;
    case '?': composer->is_lacking |= !va_arg(*args, int); return;
    case ']': segment_end(composer); return;
    case '%': buf_byte(out, '%'); return;
    default: ensure(composer->put_other); composer->put_other(composer, kind, args);
    }
}

void compose_with(struct composer *composer, const char *format, va_list args)
{
    const struct part *part = format_of(format)->parts;
    va_list own;
    composer->name_count = 0;
    composer->is_lacking = false;
    va_copy(own, args);
    for (;; part++) {
        for (unsigned i = 0; i < part->word_count; i++) word_note(composer, part->words[i]);
        buf_slice(composer->out, part->text);
        if (!part->kind) break;
        put_argument(composer, part->kind, &own);
    }
    va_end(own);
}

void compose_list(struct buf *out, const char *format, va_list args)
{
    struct arena arena = {0};
    struct composer composer;
    composer.out = out;
    composer.arena = &arena;
    composer.put_other = NULL;
    compose_with(&composer, format, args);
    arena_free(&arena);
}

void compose(struct buf *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    compose_list(out, format, args);
    va_end(args);
}

struct slice compose_in(struct arena *arena, const char *format, ...)
{
    struct buf out = {0};
    struct composer composer;
    va_list args;
    composer.out = &out;
    composer.arena = arena;
    composer.put_other = NULL;
    va_start(args, format);
    compose_with(&composer, format, args);
    va_end(args);
    return arena_take(arena, &out);
}
