/* Arguments as a request: each field's text becomes what its type asks for. What is out of its bounds is left
 * to the flow, which refuses it before its first call, so the sentences are those of HTTP. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/limits.h"
#include "calendar/calendar.h"
#include "cli/input.h"
#include "cli/operation.h"
#include "cli/service.h"

#define WAIT_MOST_MS (100LL * 365 * 86400 * 1000)

void inquiry_free(struct inquiry *inquiry)
{
    buf_free(&inquiry->path);
    buf_free(&inquiry->headers);
    buf_free(&inquiry->body);
}

/* ---- what people type ---- */

bool text_read_all(const char *name, struct buf *out)
{
    if (!input_read(name, LIMIT_EVENT_BYTES, out)) return false;
    if (utf8_valid(buf_view(out))) return true;
    return complain("%s is not UTF-8", name ? name : "standard input"), false;
}

static bool is_json(struct slice text, const char **fault)
{
    struct arena arena = {0};
    bool fine = node_parse(&arena, text, fault) != NULL;
    arena_free(&arena);
    return fine;
}

/* What begins like JSON must be JSON: half an object is a mistake, not a text. */
static bool put_typed(const struct arguments *arguments, const char *what, struct slice text, bool must_be,
                      struct buf *out)
{
    const char *fault;
    if (is_json(text, &fault)) {
        buf_slice(out, text);
        return true;
    }
    if (must_be || (text.len && strchr("{[\"", text.data[0]))) {
        complain_of_usage(arguments, "%s should be JSON: %s", what, fault);
        return false;
    }
    json_put_string(out, text);
    return true;
}

bool typed_json(const struct arguments *arguments, const char *what, const char *text, struct buf *out)
{
    bool is_input = strcmp(text, "-") == 0;
    if (!is_input && text[0] != '@') return put_typed(arguments, what, slice_of(text), false, out);
    struct buf content = {0};
    bool fine = text_read_all(is_input ? NULL : text + 1, &content) &&
                put_typed(arguments, what, buf_view(&content), true, out);
    buf_free(&content);
    return fine;
}

/* JSON, or names with commas between them. */
static bool typed_list(const struct arguments *arguments, const char *what, const char *text, struct buf *out)
{
    if (text[0] == '[' || text[0] == '@' || strcmp(text, "-") == 0)
        return typed_json(arguments, what, text, out);
    buf_byte(out, '[');
    for (const char *at = text;;) {
        struct slice one = {at, strcspn(at, ",")};
        if (at != text) buf_byte(out, ',');
        json_put_string(out, one);
        at += one.len;
        if (!*at++) break;
    }
    buf_byte(out, ']');
    return true;
}

static bool typed_text(const char *text, struct buf *out)
{
    struct buf content = {0};
    if (strcmp(text, "-") != 0) {
        json_put_string(out, slice_of(text));
        return true;
    }
    bool fine = text_read_all(NULL, &content);
    while (content.len && content.data[content.len - 1] == '\n') content.len--;
    if (fine) json_put_string(out, buf_view(&content));
    buf_free(&content);
    return fine;
}

static bool is_no(const char *text)
{
    return strcmp(text, "false") == 0 || strcmp(text, "no") == 0 || strcmp(text, "0") == 0;
}

/* A member of the body by its type. */
static bool put_value(const struct arguments *arguments, const struct field *field, const char *text,
                      struct buf *out)
{
    const char *fault;
    switch (field->type) {
    case FIELD_JSON:
    case FIELD_THEN: return typed_json(arguments, field->name, text, out);
    case FIELD_LIST: return typed_list(arguments, field->name, text, out);
    case FIELD_BOOL: return buf_slice(out, is_no(text) ? SLICE("false") : SLICE("true")), true;
    case FIELD_TEXT: return typed_text(text, out);
    case FIELD_INT:
        if (is_json(slice_of(text), &fault))
            buf_slice(out, slice_of(text));
        else
            json_put_string(out, slice_of(text));
        return true;
    default: json_put_string(out, slice_of(text)); return true;
    }
}

/* ---- the parts of the request ---- */

void inquiry_query(struct inquiry *inquiry, const char *name, struct slice value)
{
    buf_byte(&inquiry->path, memchr(inquiry->path.data, '?', inquiry->path.len) ? '&' : '?');
    buf_printf(&inquiry->path, "%s=", name);
    put_escaped(&inquiry->path, value);
}

void inquiry_path(struct inquiry *inquiry, const char *format, const char *first, const char *second)
{
    const char *names[] = {first, second};
    inquiry->path.len = 0;
    for (size_t nth = 0; *format; format++) {
        if (format[0] == '%') {
            put_escaped(&inquiry->path, slice_of(names[nth++ % 2]));
            format++;
        } else {
            buf_byte(&inquiry->path, (unsigned char)*format);
        }
    }
}

static void path_make(struct inquiry *inquiry, const struct flow_row *row, const struct arguments *arguments)
{
    size_t nth = 0;
    for (const char *at = row->path; *at; at++) {
        if (*at != '{') {
            buf_byte(&inquiry->path, (unsigned char)*at);
            continue;
        }
        put_escaped(&inquiry->path, slice_of(argument_word(arguments, nth++)));
        at += strcspn(at, "}");
    }
}

static bool put_header(struct inquiry *inquiry, const struct field *field, const char *text,
                       const struct arguments *arguments)
{
    char flag[FLAG_NAME_BYTES];
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at < ' ') {
            complain_of_usage(arguments, "--%s must not hold control characters", field_flag(field, flag));
            return false;
        }
    buf_printf(&inquiry->headers, "%s: %s\n", field->name, text);
    return true;
}

static void member_begin(struct buf *body, const char *name)
{
    if (!body->len) buf_byte(body, '{');
    put_name(body, name);
}

/* A wait may be longer here than that of one call. One that is no duration is for the flow to refuse. */
static bool take_wait(struct inquiry *inquiry, const struct field *field, const char *text)
{
    bool is_wait = field->type == FIELD_DURATION && strcmp(field->name, "wait") == 0;
    if (!is_wait || !duration_parse(slice_of(text), WAIT_MOST_MS, &inquiry->wait_ms)) return false;
    inquiry->wait = field;
    return true;
}

static bool put_field(struct inquiry *inquiry, const struct field *field, const char *text,
                      const struct arguments *arguments)
{
    if (take_wait(inquiry, field, text)) return true;
    switch (field->place) {
    case IN_QUERY:
        inquiry_query(inquiry, field->name,
                      field->type == FIELD_BOOL ? is_no(text) ? SLICE("false") : SLICE("true")
                                                : slice_of(text));
        return true;
    case IN_HEADER: return put_header(inquiry, field, text, arguments);
    case WHOLE_BODY:
        if (field->type == FIELD_RAW && strcmp(text, "-") != 0 && text[0] != '@')
            return buf_slice(&inquiry->body, slice_of(text)), true;
        if (field->type == FIELD_RAW) return text_read_all(text[0] == '@' ? text + 1 : NULL, &inquiry->body);
        return typed_json(arguments, field->name, text, &inquiry->body);
    default:
        member_begin(&inquiry->body, field->name);
        return put_value(arguments, field, text, &inquiry->body);
    }
}

/* Several words as a list: numbers stay numbers. */
static bool put_words(struct inquiry *inquiry, const struct field *list, size_t from,
                      const struct arguments *arguments)
{
    member_begin(&inquiry->body, list->name);
    buf_byte(&inquiry->body, '[');
    for (size_t i = from; i < argument_words(arguments); i++) {
        put_comma(&inquiry->body);
        if (!put_typed(arguments, list->name, slice_of(argument_word(arguments, i)), false, &inquiry->body))
            return false;
    }
    buf_byte(&inquiry->body, ']');
    return true;
}

/* What its flag says; NULL: it has none, or it was not given. */
static const char *flag_text(const struct phrase_of_row *phrase, const struct flow_row *row,
                             const struct field *field, const struct arguments *arguments)
{
    char name[FLAG_NAME_BYTES];
    bool is_first = row_field(row, slice_of(field_flag(field, name))) == field;
    is_first &= field->place != IN_REPLY;
    return is_first && !phrase_needs(phrase, field) ? argument_text(arguments, name) : NULL;
}

/* The last word may be a list of them; a needed one that is not there is read from standard input. */
static bool put_word(struct inquiry *inquiry, const struct phrase_of_row *phrase, const struct flow_row *row,
                     size_t nth, const struct arguments *arguments)
{
    const struct field *field = phrase->fields[nth];
    const char *text = argument_word(arguments, nth);
    bool is_last = nth + 1 == phrase->count;
    if (field->place == IN_PATH && !*text) /* the path would be another's */
        return complain_of_usage(arguments, "%s must not be empty", field->name), false;
    if (field->place == IN_PATH) return true;
    if (phrase->list && is_last && (argument_words(arguments) > phrase->count || field == phrase->list))
        return put_words(inquiry, phrase->list, nth, arguments);
    const char *flag = flag_text(phrase, row, field, arguments);
    if (text && flag) return complain_of_usage(arguments, "%s is given twice", field->name), false;
    if (text) return put_field(inquiry, field, text, arguments);
    if (!field->required || flag) return true;
    if (isatty(STDIN_FILENO) == 1) {
        complain_of_usage(arguments, "%s is missing: say it, or give it on standard input", field->name);
        return false;
    }
    return put_field(inquiry, field, "-", arguments);
}

static bool fields_put(struct inquiry *inquiry, const struct flow_row *row,
                       const struct phrase_of_row *phrase, const struct arguments *arguments)
{
    for (size_t i = 0; i < phrase->count; i++)
        if (!put_word(inquiry, phrase, row, i, arguments)) return false;
    for (uint32_t i = 0; i < row->field_count; i++) {
        const struct field *field = &row->fields[i];
        const char *text = flag_text(phrase, row, field, arguments);
        if (text && !put_field(inquiry, field, text, arguments)) return false;
    }
    return true;
}

bool inquiry_read(struct inquiry *inquiry, const struct flow_row *row, const struct arguments *arguments,
                  int *status)
{
    struct phrase_of_row phrase;
    row_phrase(row, &phrase);
    *inquiry = (struct inquiry){.method = row->method};
    *status = EXIT_USAGE;
    path_make(inquiry, row, arguments);
    if (!fields_put(inquiry, row, &phrase, arguments)) return false;
    bool is_object = row->field_count && inquiry->body.len;
    for (uint32_t i = 0; i < row->field_count; i++) is_object &= row->fields[i].place != WHOLE_BODY;
    if (is_object) buf_byte(&inquiry->body, '}');
    if (argument_given(arguments, "cost")) inquiry_query(inquiry, "cost", SLICE("true"));
    *status = EXIT_FINE;
    return true;
}
