/* Expressions as people write them. One pass over the text, token by token. Only what must change is changed:
 * operators, parentheses and spaces stay as they are, so that the service's own complaints still speak of the
 * text that was typed. */
#include <ctype.h>

#include "base/raw.h"
#include "expr/expr.h"

struct scan {
    struct slice text;
    size_t at;
    bool value_is_due; /* so that a minus is a sign, and a bracket a list, not an index */
    struct buf *out;
    struct phrases *phrases;
};

void phrases_free(struct phrases *phrases)
{
    buf_free(&phrases->values);
}

static bool refuse(struct phrases *phrases, const char *sentence, struct slice text)
{
    phrases->fault = arena_printf(phrases->arena, "%s: %.*s", sentence, SLICE_ARG(text)).data;
    return false;
}

/* ---- names ---- */

static bool is_name_start(char c)
{
    return isalpha((unsigned char)c) || c == '_';
}

static bool is_name_part(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Those with an underscore in front are left to the odd ones. */
static bool is_simple_name(struct slice name)
{
    if (name.len == 0 || name.len > 200 || name.data[0] == '_') return false;
    for (size_t i = 0; i < name.len; i++)
        if (!is_name_part(name.data[i])) return false;
    return true;
}

static struct slice placeholder_for(struct phrases *phrases, struct slice name)
{
    for (const struct phrase_name *known = phrases->names; known; known = known->older)
        if (slice_equal(known->name, name)) return known->placeholder;
    struct phrase_name *new = arena_new(phrases->arena, struct phrase_name);
    phrases->name_count++;
    new->name = arena_copy(phrases->arena, name);
    new->placeholder = is_simple_name(name) ? arena_printf(phrases->arena, "#%.*s", SLICE_ARG(name))
                                            : arena_printf(phrases->arena, "#_%u_", phrases->name_count);
    new->older = phrases->names;
    phrases->names = new;
    return new->placeholder;
}

void phrase_put_name(struct buf *out, struct phrases *phrases, struct slice name)
{
    buf_slice(out, placeholder_for(phrases, name));
}

static void put_placeholder(struct scan *scan, struct slice name)
{
    phrase_put_name(scan->out, scan->phrases, name);
    scan->value_is_due = false;
}

/* ---- values ---- */

static bool put_value(struct scan *scan, struct slice json)
{
    struct phrases *phrases = scan->phrases;
    const char *fault;
    scan->value_is_due = false;
    phrase_value_begin(scan->out, phrases);
    return phrases->put_value(&phrases->values, phrases->arena, json, &fault) || refuse(phrases, fault, json);
}

void phrase_value_begin(struct buf *out, struct phrases *phrases)
{
    unsigned number = ++phrases->value_count;
    buf_printf(&phrases->values, "%s\":v%u\":", number > 1 ? "," : "", number);
    buf_printf(out, ":v%u", number);
}

/* A literal that is JSON as it stands. */
static bool scan_json(struct scan *scan)
{
    struct json_reader reader;
    struct slice rest = slice_from(scan->text, scan->at), json;
    json_begin(&reader, rest, scan->phrases->arena);
    if (!raw_take(&reader, &json)) return refuse(scan->phrases, "this value cannot be read", rest);
    scan->at += json_offset(&reader);
    return put_value(scan, json);
}

/* 'text' with '' for a quote in it, or `name`: the bytes between, in the arena. */
static bool scan_quoted(struct scan *scan, char quote, struct slice *out)
{
    struct slice rest = slice_from(scan->text, scan->at);
    char *copy = arena_alloc(scan->phrases->arena, rest.len);
    size_t len = 0, i = 1;
    for (; i < rest.len; i++) {
        if (rest.data[i] == quote) {
            if (i + 1 >= rest.len || rest.data[i + 1] != quote) break;
            i++;
        }
        copy[len++] = rest.data[i];
    }
    if (i >= rest.len) return refuse(scan->phrases, "a quote is not closed", rest);
    scan->at += i + 1;
    *out = (struct slice){copy, len};
    return true;
}

static bool scan_text(struct scan *scan)
{
    struct buf json = {0};
    struct slice text;
    if (!scan_quoted(scan, '\'', &text)) return false;
    json_put_string(&json, text);
    text = arena_copy(scan->phrases->arena, buf_view(&json));
    buf_free(&json);
    return put_value(scan, text);
}

static bool scan_backticks(struct scan *scan)
{
    struct slice name;
    if (!scan_quoted(scan, '`', &name)) return false;
    put_placeholder(scan, name);
    return true;
}

/* ---- words ---- */

static bool is_any(struct slice word, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal_ignoring_case(word, slice_of(list[i]))) return true;
    return false;
}

static bool is_keyword(struct slice word)
{
    static const char *const keywords[] = {"and", "or",     "not", "between", "in",
                                           "set", "remove", "add", "delete"};
    return is_any(word, keywords, sizeof keywords / sizeof *keywords);
}

static bool is_constant(struct slice word)
{
    return slice_equal(word, SLICE("true")) || slice_equal(word, SLICE("false")) ||
           slice_equal(word, SLICE("null"));
}

static bool parenthesis_follows(const struct scan *scan, size_t at)
{
    while (at < scan->text.len && scan->text.data[at] == ' ') at++;
    return at < scan->text.len && scan->text.data[at] == '(';
}

static bool scan_word(struct scan *scan)
{
    size_t end = scan->at;
    while (end < scan->text.len && is_name_part(scan->text.data[end])) end++;
    struct slice word = {scan->text.data + scan->at, end - scan->at};
    bool is_member = scan->at > 0 && scan->text.data[scan->at - 1] == '.';
    if (!is_member && is_constant(word)) return scan_json(scan);
    scan->at = end;
    if (!is_member && (is_keyword(word) || parenthesis_follows(scan, end))) {
        buf_slice(scan->out, word);
        scan->value_is_due = true;
        return true;
    }
    put_placeholder(scan, word);
    return true;
}

/* [0] behind a path, kept as it is. */
static bool scan_index(struct scan *scan)
{
    size_t end = scan->at + 1;
    while (end < scan->text.len && isdigit((unsigned char)scan->text.data[end])) end++;
    if (end == scan->at + 1 || end >= scan->text.len || scan->text.data[end] != ']')
        return refuse(scan->phrases, "a place in a list is written [number]",
                      slice_from(scan->text, scan->at));
    buf_put(scan->out, scan->text.data + scan->at, end + 1 - scan->at);
    scan->at = end + 1;
    scan->value_is_due = false;
    return true;
}

/* Placeholders of the service's own need their names and values from somewhere else. */
static bool scan_placeholder(struct scan *scan)
{
    size_t end = scan->at + 1;
    if (!scan->phrases->keeps_placeholders)
        return refuse(scan->phrases, "write names and values where they belong, without # and :",
                      slice_from(scan->text, scan->at));
    while (end < scan->text.len && is_name_part(scan->text.data[end])) end++;
    buf_put(scan->out, scan->text.data + scan->at, end - scan->at);
    scan->at = end;
    scan->value_is_due = false;
    return true;
}

static bool scan_token(struct scan *scan)
{
    char c = scan->text.data[scan->at];
    char next = scan->at + 1 < scan->text.len ? scan->text.data[scan->at + 1] : 0;
    if (c == '#' || c == ':') return scan_placeholder(scan);
    if (c == '\'') return scan_text(scan);
    if (c == '`') return scan_backticks(scan);
    if (c == '[' && !scan->value_is_due) return scan_index(scan);
    if (c == '"' || c == '{' || c == '[' || isdigit((unsigned char)c)) return scan_json(scan);
    if (c == '-' && scan->value_is_due && isdigit((unsigned char)next)) return scan_json(scan);
    if (is_name_start(c)) return scan_word(scan);
    buf_byte(scan->out, (unsigned char)c);
    if (c != ' ' && c != '.' && c != ')')
        scan->value_is_due = true;
    else if (c == ')')
        scan->value_is_due = false;
    scan->at++;
    return true;
}

bool phrase_put(struct buf *out, struct phrases *phrases, struct slice text)
{
    struct scan scan = {.text = text, .value_is_due = true, .out = out, .phrases = phrases};
    while (scan.at < text.len)
        if (!scan_token(&scan)) return false;
    return true;
}

static bool is_path(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (strchr("\"'(){}<>=+-", text.data[i])) return false;
    return true;
}

bool phrase_put_paths(struct buf *out, struct phrases *phrases, struct slice text)
{
    if (!is_path(text)) return refuse(phrases, "this should be names with commas between", text);
    struct scan scan = {.text = text, .out = out, .phrases = phrases};
    while (scan.at < text.len) {
        char c = text.data[scan.at];
        size_t end = scan.at;
        while (end < text.len && is_name_part(text.data[end])) end++;
        if (end > scan.at && is_name_start(c)) {
            put_placeholder(&scan, (struct slice){text.data + scan.at, end - scan.at});
            scan.at = end;
        } else if (!scan_token(&scan)) {
            return false;
        }
        scan.value_is_due = false;
    }
    return true;
}
