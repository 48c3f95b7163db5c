/* The interpreter: reads the template once from its beginning and does what it says as it goes. What is not taken of an
 * #if is read as well, with `active` false: nothing is printed or set then. A loop goes back to where its body begins.
 *
 * The first fault sticks: everything after it does nothing. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/limits.h"
#include "velocity/internal.h"

#define ARGUMENTS_MAX 8
#define STEP_BYTES    64 /* of text that count as one step */

struct reader {
    const char *at, *start, *end;
    const struct velocity_input *input;
    struct arena *arena;
    struct buf *out;
    struct value *variables, *context, *stage_variables;
    struct value *root; /* $input.path('$'), once it was asked for */
    struct allowance left;
    int64_t steps;
    unsigned depth;
    bool active, breaks, stops, failed;
    char *error;
    size_t error_len;
};

static void fail(struct reader *reader, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fail(struct reader *reader, const char *format, ...)
{
    char reason[200];
    va_list args;
    unsigned line = 1;
    if (reader->failed) return;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    for (const char *p = reader->start; p < reader->at; p++) line += *p == '\n';
    snprintf(reader->error, reader->error_len, "line %u of the template: %s", line, reason);
    reader->failed = true;
    reader->at = reader->end;
}

static void check_allowance(struct reader *reader)
{
    if (reader->steps < 0 || !vtl_may_go_on(reader->arena, &reader->left))
        fail(reader, "it does more than a template may");
}

/* Each thing that is read counts. */
static bool goes_on(struct reader *reader)
{
    reader->steps--;
    check_allowance(reader);
    return !reader->failed;
}

static struct value *enter(struct reader *reader, struct value *(*read)(struct reader *reader))
{
    if (++reader->depth > LIMIT_VELOCITY_DEPTH) fail(reader, "too much stands in each other");
    struct value *value = goes_on(reader) ? read(reader) : NULL;
    reader->depth--;
    return value ? value : vtl_new(reader->arena, VALUE_NONE);
}

/* ---- characters ---- */

static bool is_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name(char c)
{
    return is_start(c) || (c >= '0' && c <= '9') || c == '-';
}

static char peek(const struct reader *reader, size_t ahead)
{
    return (size_t)(reader->end - reader->at) > ahead ? reader->at[ahead] : '\0';
}

static void skip_space(struct reader *reader)
{
    const char *from = reader->at;
    while (reader->at < reader->end && strchr(" \t\r\n", *reader->at) && *reader->at) reader->at++;
    reader->steps -= (reader->at - from) / STEP_BYTES;
}

static bool take(struct reader *reader, const char *text)
{
    size_t len = strlen(text);
    skip_space(reader);
    if ((size_t)(reader->end - reader->at) < len || memcmp(reader->at, text, len) != 0) return false;
    reader->at += len;
    return true;
}

static bool expect(struct reader *reader, const char *text)
{
    if (reader->failed || take(reader, text)) return !reader->failed;
    fail(reader, "'%s' is missing", text);
    return false;
}

static struct slice take_name(struct reader *reader)
{
    const char *from = reader->at;
    if (reader->at < reader->end && is_start(*reader->at))
        while (reader->at < reader->end && is_name(*reader->at)) reader->at++;
    reader->steps -= (reader->at - from) / STEP_BYTES;
    return (struct slice){from, (size_t)(reader->at - from)};
}

/* ---- what API Gateway gives ---- */

static struct value *object_of(struct arena *arena, struct slice json)
{
    struct value *value = json.len ? vtl_of_json(arena, json) : NULL;
    return value && value->kind == VALUE_MAP ? value : vtl_new(arena, VALUE_MAP);
}

static struct value *input_root(struct reader *reader)
{
    if (!reader->root) reader->root = vtl_of_json(reader->arena, reader->input->body);
    if (!reader->root) reader->root = vtl_new(reader->arena, VALUE_NONE);
    return reader->root;
}

static struct value *find_ignoring_case(const struct value *map, struct slice name)
{
    for (struct member *member = map->first; member; member = member->next)
        if (slice_equal_ignoring_case(member->name, name)) return member->value;
    return NULL;
}

static struct value *input_params(struct reader *reader, struct value **arguments, uint32_t count)
{
    struct arena *arena = reader->arena;
    struct value *path = object_of(arena, reader->input->path), *query = object_of(arena, reader->input->query),
                 *headers = object_of(arena, reader->input->headers), *found;
    reader->left.work -= (int64_t)(reader->input->path.len + reader->input->query.len + reader->input->headers.len);
    if (count) {
        struct slice name = vtl_as_text(arena, arguments[0]);
        found = vtl_member(path, name);
        if (!found) found = vtl_member(query, name);
        if (!found) found = find_ignoring_case(headers, name);
        return found ? found : vtl_text(arena, SLICE(""));
    }
    struct value *all = vtl_new(arena, VALUE_MAP);
    vtl_put(arena, all, SLICE("path"), path);
    vtl_put(arena, all, SLICE("querystring"), query);
    vtl_put(arena, all, SLICE("header"), headers);
    return all;
}

static struct value *input_call(struct reader *reader, struct slice name, struct value **arguments, uint32_t count)
{
    struct arena *arena = reader->arena;
    struct value *found = NULL;
    if (slice_equal(name, SLICE("params")) && count <= 1) return input_params(reader, arguments, count);
    bool is_json = slice_equal(name, SLICE("json"));
    if ((!is_json && !slice_equal(name, SLICE("path"))) || count != 1) {
        fail(reader, "$input has no such method: %.*s", (int)(name.len < 60 ? name.len : 60), name.data);
        return NULL;
    }
    struct slice path = vtl_as_text(arena, arguments[0]);
    if (!vtl_path(arena, input_root(reader), path, &reader->left, &found)) {
        fail(reader, "$input.%.*s takes a path like $.a.b[0]", SLICE_ARG(name));
        return NULL;
    }
    if (!is_json) return found;
    struct buf text = {0};
    if (found && found->kind != VALUE_NONE)
        vtl_print_json(&text, found);
    else
        buf_text(&text, "\"\"");
    reader->left.bytes -= (int64_t)text.len;
    return vtl_text(arena, arena_take(arena, &text));
}

/* ---- references ---- */

static struct value *read_expression(struct reader *reader);

static uint32_t read_arguments(struct reader *reader, struct value **arguments)
{
    uint32_t count = 0;
    reader->at++; /* ( */
    if (take(reader, ")")) return 0;
    do {
        if (count == ARGUMENTS_MAX) fail(reader, "a method with more than %d arguments", ARGUMENTS_MAX);
        if (reader->failed) return 0;
        arguments[count++] = enter(reader, read_expression);
    } while (take(reader, ","));
    expect(reader, ")");
    return count;
}

enum special { SPECIAL_NONE, SPECIAL_INPUT, SPECIAL_UTIL };

/* One of .name, .name(...), [index] behind a value; false: there is none. */
static bool read_access(struct reader *reader, enum special *special, struct value **value)
{
    struct value *arguments[ARGUMENTS_MAX], *found = NULL;
    if (!goes_on(reader)) return false;
    if (*value) reader->left.work -= (*value)->count;
    bool holds = *value && !*special && ((*value)->kind == VALUE_LIST || (*value)->kind == VALUE_MAP);
    if (peek(reader, 0) == '[' && holds) {
        reader->at++;
        struct value *index = enter(reader, read_expression);
        expect(reader, "]");
        *value = (*value)->kind == VALUE_MAP ? vtl_member(*value, vtl_as_text(reader->arena, index))
                 : index->number >= 0 && index->number < 1e9 ? vtl_element(*value, (int64_t)index->number)
                                                              : NULL;
        return true;
    }
    if (peek(reader, 0) != '.' || !is_start(peek(reader, 1))) return false;
    reader->at++;
    struct slice name = take_name(reader);
    bool is_call = peek(reader, 0) == '(';
    uint32_t count = is_call ? read_arguments(reader, arguments) : 0;
    if (reader->failed) return false;
    if (*special == SPECIAL_INPUT) {
        found = is_call                             ? input_call(reader, name, arguments, count)
                : slice_equal(name, SLICE("body")) ? vtl_text(reader->arena, reader->input->body)
                                                   : NULL;
    } else if (*special == SPECIAL_UTIL) {
        if (!is_call || !vtl_util_call(reader->arena, name, arguments, count, &reader->left, &found))
            fail(reader, "$util has no such method: %.*s", (int)(name.len < 60 ? name.len : 60), name.data);
    } else if (*value && is_call) {
        if (!vtl_call(reader->arena, *value, name, arguments, count, reader->active, &reader->left, &found))
            fail(reader, "there is no such method here: %.*s", (int)(name.len < 60 ? name.len : 60), name.data);
    } else if (*value) {
        found = vtl_member(*value, name);
    }
    if (found) reader->left.bytes -= is_call ? (int64_t)found->text.len : 0;
    *special = SPECIAL_NONE;
    *value = found;
    return true;
}

struct reference {
    struct slice name, source;
    bool is_known, is_quiet;
};

/* Behind the $; NULL: it is nothing, or not there. */
static struct value *read_reference(struct reader *reader, struct reference *reference)
{
    const char *from = reader->at - 1;
    enum special special = SPECIAL_NONE;
    struct value *value = NULL;
    *reference = (struct reference){.is_known = true};
    reader->left.work -= reader->variables->count;
    reference->is_quiet = peek(reader, 0) == '!';
    if (reference->is_quiet) reader->at++;
    bool is_formal = peek(reader, 0) == '{';
    if (is_formal) reader->at++;
    struct slice name = reference->name = take_name(reader);
    if (slice_equal(name, SLICE("input"))) special = SPECIAL_INPUT;
    else if (slice_equal(name, SLICE("util"))) special = SPECIAL_UTIL;
    else if (slice_equal(name, SLICE("context"))) value = reader->context;
    else if (slice_equal(name, SLICE("stageVariables"))) value = reader->stage_variables;
    else value = vtl_member(reader->variables, name);
    reference->is_known = special || value;
    while (read_access(reader, &special, &value)) continue;
    if (is_formal) expect(reader, "}");
    reference->source = (struct slice){from, (size_t)(reader->at - from)};
    return special ? NULL : value;
}

/* ---- expressions ---- */

static void put_text(struct reader *reader, struct buf *out);

/* Double quotes: references stand in it. */
static struct value *read_quoted(struct reader *reader)
{
    char quote = *reader->at++;
    const char *from = reader->at;
    while (reader->at < reader->end && *reader->at != quote)
        reader->at += *reader->at == '\\' && reader->at + 1 < reader->end ? 2 : 1;
    reader->steps -= (reader->at - from) / STEP_BYTES;
    if (reader->at >= reader->end) {
        fail(reader, "a text has no end");
        return NULL;
    }
    struct slice inner = {from, (size_t)(reader->at - from)};
    reader->at++;
    if (quote == '\'' || !memchr(inner.data, '$', inner.len)) return vtl_text(reader->arena, inner);
    const char *at = reader->at, *end = reader->end;
    struct buf text = {0};
    reader->at = from;
    reader->end = from + inner.len;
    put_text(reader, &text);
    reader->end = end;
    if (!reader->failed) reader->at = at;
    else reader->at = end;
    return vtl_text(reader->arena, arena_take(reader->arena, &text));
}

static struct value *read_number(struct reader *reader)
{
    const char *from = reader->at;
    char text[64];
    if (*reader->at == '-') reader->at++;
    while (reader->at < reader->end && ((*reader->at >= '0' && *reader->at <= '9') ||
                                        (*reader->at == '.' && peek(reader, 1) >= '0' && peek(reader, 1) <= '9')))
        reader->at++;
    snprintf(text, sizeof text, "%.*s", (int)(reader->at - from < 60 ? reader->at - from : 60), from);
    return vtl_number(reader->arena, strtod(text, NULL));
}

static void add_copy(struct reader *reader, struct value *to, struct slice name, struct value *value)
{
    struct value *copy = vtl_copy(reader->arena, value, &reader->left, 0);
    if (!copy)
        fail(reader, "it does more than a template may");
    else if (to->kind == VALUE_MAP)
        vtl_put(reader->arena, to, name, copy);
    else
        vtl_add(reader->arena, to, copy);
    if (to->kind == VALUE_MAP) reader->left.work -= to->count;
}

/* [a, b] or [1..5] */
static struct value *read_list(struct reader *reader)
{
    struct value *list = vtl_new(reader->arena, VALUE_LIST);
    reader->at++;
    if (take(reader, "]")) return list;
    struct value *first = enter(reader, read_expression);
    if (take(reader, "..")) {
        double from = first->number, to = enter(reader, read_expression)->number, by = from <= to ? 1 : -1;
        if (!(fabs(to - from) <= LIMIT_VELOCITY_ROUNDS))
            fail(reader, "a range of more than %d numbers", LIMIT_VELOCITY_ROUNDS);
        for (double n = from; !reader->failed && (by > 0 ? n <= to : n >= to); n += by)
            vtl_add(reader->arena, list, vtl_number(reader->arena, n));
        reader->left.nodes -= list->count;
    } else {
        add_copy(reader, list, SLICE_NONE, first);
        while (goes_on(reader) && take(reader, ",")) add_copy(reader, list, SLICE_NONE, enter(reader, read_expression));
    }
    expect(reader, "]");
    return list;
}

static struct value *read_map(struct reader *reader)
{
    struct value *map = vtl_new(reader->arena, VALUE_MAP);
    reader->at++;
    if (take(reader, "}")) return map;
    do {
        struct slice name = vtl_as_text(reader->arena, enter(reader, read_expression));
        if (!expect(reader, ":")) break;
        add_copy(reader, map, name, enter(reader, read_expression));
    } while (goes_on(reader) && take(reader, ","));
    expect(reader, "}");
    return map;
}

static bool take_word(struct reader *reader, const char *word)
{
    size_t len = strlen(word);
    skip_space(reader);
    if ((size_t)(reader->end - reader->at) < len || memcmp(reader->at, word, len) != 0 || is_name(peek(reader, len)))
        return false;
    reader->at += len;
    return true;
}

static struct value *read_operand(struct reader *reader)
{
    struct reference reference;
    skip_space(reader);
    char c = peek(reader, 0);
    if (c == '!') {
        reader->at++;
        return vtl_truth(reader->arena, !vtl_is_true(enter(reader, read_operand)));
    }
    if (c == '(') {
        reader->at++;
        struct value *value = enter(reader, read_expression);
        expect(reader, ")");
        return value;
    }
    if (c == '$') {
        reader->at++;
        return read_reference(reader, &reference);
    }
    if (c == '"' || c == '\'') return read_quoted(reader);
    if (c == '[') return read_list(reader);
    if (c == '{') return read_map(reader);
    if ((c >= '0' && c <= '9') || (c == '-' && peek(reader, 1) >= '0' && peek(reader, 1) <= '9'))
        return read_number(reader);
    if (take_word(reader, "true")) return vtl_truth(reader->arena, true);
    if (take_word(reader, "false")) return vtl_truth(reader->arena, false);
    if (take_word(reader, "null")) return vtl_new(reader->arena, VALUE_NONE);
    fail(reader, "an expression is missing");
    return NULL;
}

enum operator {
    OR,
    AND,
    EQUAL,
    UNEQUAL,
    LESS_EQUAL,
    MORE_EQUAL,
    LESS,
    MORE,
    ADD,
    SUBTRACT,
    MULTIPLY,
    DIVIDE,
    REMAINDER,
    OPERATORS
};
static const struct {
    const char *sign, *word;
    int rank;
} operators[OPERATORS] = {{"||", "or", 1}, {"&&", "and", 2}, {"==", "eq", 3}, {"!=", "ne", 3}, {"<=", "le", 4},
                          {">=", "ge", 4}, {"<", "lt", 4},   {">", "gt", 4},  {"+", NULL, 5},  {"-", NULL, 5},
                          {"*", NULL, 6},  {"/", NULL, 6},   {"%", NULL, 6}};

static int take_operator(struct reader *reader, int rank_min)
{
    const char *before = reader->at;
    for (int i = 0; i < OPERATORS; i++) {
        if (operators[i].rank < rank_min) continue;
        if ((operators[i].word && take_word(reader, operators[i].word)) || take(reader, operators[i].sign)) return i;
    }
    reader->at = before;
    return -1;
}

static struct value *calculate(struct reader *reader, enum operator operator, struct value *a, struct value *b)
{
    struct arena *arena = reader->arena;
    bool are_numbers = a->kind == VALUE_NUMBER && b->kind == VALUE_NUMBER;
    double x = a->number, y = b->number;
    switch (operator) {
    case OR: return vtl_truth(arena, vtl_is_true(a) || vtl_is_true(b));
    case AND: return vtl_truth(arena, vtl_is_true(a) && vtl_is_true(b));
    case EQUAL: return vtl_truth(arena, vtl_equal(a, b, &reader->left));
    case UNEQUAL: return vtl_truth(arena, !vtl_equal(a, b, &reader->left));
    case LESS: return vtl_truth(arena, are_numbers && x < y);
    case MORE: return vtl_truth(arena, are_numbers && x > y);
    case LESS_EQUAL: return vtl_truth(arena, are_numbers && x <= y);
    case MORE_EQUAL: return vtl_truth(arena, are_numbers && x >= y);
    default: break;
    }
    if (!are_numbers) {
        if (operator != ADD) return vtl_new(arena, VALUE_NONE);
        struct slice first = vtl_as_text(arena, a), second = vtl_as_text(arena, b);
        reader->left.bytes -= (int64_t)(first.len + second.len);
        if (!goes_on(reader)) return NULL;
        return vtl_text(arena, arena_printf(arena, "%.*s%.*s", SLICE_ARG(first), SLICE_ARG(second)));
    }
    bool are_whole = x == floor(x) && y == floor(y);
    if (operator >= DIVIDE && !(y < 0) && !(y > 0)) return vtl_new(arena, VALUE_NONE);
    return vtl_number(arena, operator == ADD        ? x + y
                               : operator == SUBTRACT ? x - y
                               : operator == MULTIPLY ? x * y
                               : operator == DIVIDE   ? (are_whole ? trunc(x / y) : x / y)
                                                      : fmod(x, y));
}

static struct value *read_ranked(struct reader *reader, int rank_min)
{
    struct value *value = enter(reader, read_operand);
    int operator;
    while (goes_on(reader) && (operator = take_operator(reader, rank_min)) >= 0) {
        if (++reader->depth > LIMIT_VELOCITY_DEPTH) fail(reader, "too much stands in each other");
        struct value *other = reader->failed ? value : read_ranked(reader, operators[operator].rank + 1);
        reader->depth--;
        if (!other) return NULL; /* a fault */
        value = calculate(reader, (enum operator)operator, value, other);
        if (!value) return NULL;
    }
    return value;
}

static struct value *read_expression(struct reader *reader)
{
    return read_ranked(reader, 1);
}

/* ---- texts and directives ---- */

static void print(struct reader *reader, struct buf *out, struct slice text)
{
    if (!reader->active || reader->failed) return;
    reader->left.bytes -= (int64_t)text.len;
    if (reader->left.bytes < 0)
        fail(reader, "it makes more text than a template may");
    else
        buf_slice(out, text);
}

static void print_reference(struct reader *reader, struct buf *out)
{
    struct reference reference;
    char next = peek(reader, 1);
    if (next == '!') next = peek(reader, 2);
    bool begins = is_start(next) || next == '{';
    reader->at++;
    if (!begins) {
        print(reader, out, SLICE("$"));
        return;
    }
    struct value *value = read_reference(reader, &reference);
    struct buf text = {0};
    if (value && !reader->failed) vtl_print(&text, value);
    reader->left.work -= (int64_t)text.len; /* also where nothing is printed */
    if (reference.is_known || reference.is_quiet)
        print(reader, out, buf_view(&text));
    else
        print(reader, out, reference.source);
    buf_free(&text);
}

/* Of a quoted text: no directives. */
static void put_text(struct reader *reader, struct buf *out)
{
    while (reader->at < reader->end && goes_on(reader)) {
        const char *from = reader->at;
        if (*from == '$') {
            print_reference(reader, out);
            continue;
        }
        while (reader->at < reader->end && *reader->at != '$') reader->at++;
        print(reader, out, (struct slice){from, (size_t)(reader->at - from)});
    }
}

/* A line that holds nothing but directives leaves none behind. */
static void end_line(struct reader *reader)
{
    const char *at = reader->at;
    while (at < reader->end && (*at == ' ' || *at == '\t')) at++;
    if (at < reader->end && *at == '\r') at++;
    if (at < reader->end && *at == '\n') reader->at = at + 1;
}

enum ended { ENDED_TEXT, ENDED_END, ENDED_ELSE, ENDED_ELSEIF };
static enum ended read_block(struct reader *reader);

static void read_set(struct reader *reader)
{
    struct slice names[8];
    unsigned count = 0;
    if (!expect(reader, "(") || !expect(reader, "$")) return;
    if (peek(reader, 0) == '{') reader->at++;
    do {
        if (count == 8) fail(reader, "#set of something too deep");
        if (reader->failed) return;
        names[count] = take_name(reader);
        if (!names[count++].len) fail(reader, "#set needs a name");
    } while (!reader->failed && peek(reader, 0) == '.' && reader->at++);
    if (peek(reader, 0) == '}') reader->at++;
    if (!expect(reader, "=")) return;
    struct value *value = enter(reader, read_expression);
    if (!expect(reader, ")") || !reader->active) return;
    bool is_context = count > 1 && slice_equal(names[0], SLICE("context"));
    struct value *to = is_context ? reader->context : reader->variables;
    for (unsigned i = is_context; i + 1 < count; i++) {
        struct value *inner = vtl_member(to, names[i]);
        if (!inner || inner->kind != VALUE_MAP) {
            inner = vtl_new(reader->arena, VALUE_MAP);
            vtl_put(reader->arena, to, names[i], inner);
        }
        reader->left.work -= to->count;
        to = inner;
    }
    reader->left.work -= to->count;
    if (count == 1)
        vtl_put(reader->arena, to, names[0], value);
    else
        add_copy(reader, to, names[count - 1], value);
}

static void read_if(struct reader *reader)
{
    bool was_active = reader->active, is_taken = false;
    enum ended ended = ENDED_ELSEIF;
    while (ended == ENDED_ELSEIF && !reader->failed) {
        if (!expect(reader, "(")) return;
        bool holds = vtl_is_true(enter(reader, read_expression));
        if (!expect(reader, ")")) return;
        end_line(reader);
        reader->active = was_active && holds && !is_taken;
        is_taken = is_taken || holds;
        ended = read_block(reader);
    }
    if (ended == ENDED_ELSE) {
        reader->active = was_active && !is_taken;
        ended = read_block(reader);
    }
    if (ended != ENDED_END) fail(reader, "an #if has no #end");
    reader->active = was_active && !reader->breaks && !reader->stops;
}

static struct value *loop_state(struct reader *reader, uint32_t number, uint32_t count)
{
    struct value *state = vtl_new(reader->arena, VALUE_MAP);
    vtl_put(reader->arena, state, SLICE("index"), vtl_number(reader->arena, number));
    vtl_put(reader->arena, state, SLICE("count"), vtl_number(reader->arena, number + 1));
    vtl_put(reader->arena, state, SLICE("hasNext"), vtl_truth(reader->arena, number + 1 < count));
    vtl_put(reader->arena, state, SLICE("first"), vtl_truth(reader->arena, number == 0));
    vtl_put(reader->arena, state, SLICE("last"), vtl_truth(reader->arena, number + 1 == count));
    return state;
}

static void read_foreach(struct reader *reader)
{
    bool was_active = reader->active, has_ended = false;
    if (!expect(reader, "(") || !expect(reader, "$")) return;
    bool is_formal = peek(reader, 0) == '{';
    reader->at += is_formal;
    struct slice name = take_name(reader);
    if (is_formal) expect(reader, "}");
    if (!name.len || !take_word(reader, "in")) fail(reader, "#foreach is written #foreach($one in $all)");
    struct value *list = reader->failed ? NULL : enter(reader, read_expression);
    if (!list || !expect(reader, ")")) return;
    end_line(reader);
    const char *body = reader->at;
    bool holds = list->kind == VALUE_LIST || list->kind == VALUE_MAP;
    struct value *outer = vtl_member(reader->variables, SLICE("foreach"));
    uint32_t number = 0, count = list->count; /* what the body adds is not of this loop */
    struct member *member = holds && was_active ? list->first : NULL;
    for (; member && number < count && !reader->failed; member = member->next, number++) {
        if (number >= LIMIT_VELOCITY_ROUNDS) fail(reader, "a #foreach has more than %d rounds", LIMIT_VELOCITY_ROUNDS);
        vtl_put(reader->arena, reader->variables, name, member->value);
        vtl_put(reader->arena, reader->variables, SLICE("foreach"), loop_state(reader, number, count));
        vtl_put(reader->arena, reader->variables, SLICE("velocityCount"), vtl_number(reader->arena, number + 1));
        reader->at = body;
        has_ended = read_block(reader) == ENDED_END;
        bool breaks = reader->breaks;
        if (breaks) reader->active = was_active;
        reader->breaks = false;
        if (breaks || !has_ended) break;
    }
    if (outer) vtl_put(reader->arena, reader->variables, SLICE("foreach"), outer);
    if (!has_ended && !reader->failed) { /* once without effect, for its end */
        reader->at = body;
        reader->active = false;
        has_ended = read_block(reader) == ENDED_END;
    }
    reader->active = was_active && !reader->stops;
    if (!has_ended) fail(reader, "a #foreach has no #end");
}

static bool starts(const struct reader *reader, const char *text)
{
    size_t len = strlen(text);
    return (size_t)(reader->end - reader->at) >= len && memcmp(reader->at, text, len) == 0;
}

/* Comments and text that is not read; false: it is neither. */
static bool skip_comment(struct reader *reader)
{
    const char *before = reader->at;
    if (starts(reader, "##")) {
        while (reader->at < reader->end && *reader->at != '\n') reader->at++;
        reader->steps -= (reader->at - before) / STEP_BYTES;
        if (reader->at < reader->end) reader->at++;
        return true;
    }
    bool is_plain = starts(reader, "#[[");
    if (!is_plain && !starts(reader, "#*")) return false;
    const char *sign = is_plain ? "]]#" : "*#", *from = reader->at + (is_plain ? 3 : 2);
    const char *end = memmem(from, (size_t)(reader->end - from), sign, strlen(sign));
    if (!end) end = reader->end;
    if (is_plain) print(reader, reader->out, (struct slice){from, (size_t)(end - from)});
    reader->at = end < reader->end ? end + strlen(sign) : end;
    reader->steps -= (reader->at - before) / STEP_BYTES;
    return true;
}

/* #name or #{name}; false, and nothing is read: it is none of ours. */
static bool take_directive(struct reader *reader, struct slice *name)
{
    static const char *const names[] = {"set", "if", "elseif", "else", "end", "foreach", "break", "stop", "return"};
    const char *before = reader->at++;
    bool is_formal = peek(reader, 0) == '{';
    reader->at += is_formal;
    *name = take_name(reader);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct slice known = slice_of(names[i]);
        bool is_it = slice_equal(*name, known);
        /* "#endless" and "#else{" are read as Velocity does: the word, then the rest */
        if (!is_it && (i == 3 || i == 4) && slice_starts(*name, known) && !slice_starts(*name, SLICE("elseif"))) {
            reader->at -= name->len - known.len;
            *name = known;
            is_it = true;
        }
        if (!is_it) continue;
        if (is_formal) expect(reader, "}");
        return true;
    }
    reader->at = before;
    return false;
}

static enum ended read_directive(struct reader *reader)
{
    struct slice name;
    if (skip_comment(reader)) return ENDED_TEXT;
    if (!take_directive(reader, &name)) {
        print(reader, reader->out, SLICE("#"));
        reader->at++;
        return ENDED_TEXT;
    }
    if (slice_equal(name, SLICE("elseif"))) return ENDED_ELSEIF;
    if (slice_equal(name, SLICE("set"))) read_set(reader);
    if (slice_equal(name, SLICE("if"))) read_if(reader);
    if (slice_equal(name, SLICE("foreach"))) read_foreach(reader);
    if (slice_equal(name, SLICE("break")) && reader->active) {
        reader->breaks = true;
        reader->active = false;
    }
    if ((slice_equal(name, SLICE("stop")) || slice_equal(name, SLICE("return"))) && reader->active) {
        reader->stops = true;
        reader->at = reader->end;
    }
    end_line(reader);
    return slice_equal(name, SLICE("end")) ? ENDED_END : slice_equal(name, SLICE("else")) ? ENDED_ELSE : ENDED_TEXT;
}

/* Until an #end, an #else or the end of the template. */
static enum ended read_block(struct reader *reader)
{
    enum ended ended = ENDED_TEXT;
    if (++reader->depth > LIMIT_VELOCITY_DEPTH) fail(reader, "too much stands in each other");
    while (ended == ENDED_TEXT && reader->at < reader->end && goes_on(reader)) {
        const char *from = reader->at;
        if (*from == '$') {
            print_reference(reader, reader->out);
        } else if (*from == '#') {
            ended = read_directive(reader);
        } else if (*from == '\\' && (peek(reader, 1) == '$' || peek(reader, 1) == '#')) {
            print(reader, reader->out, (struct slice){from + 1, 1});
            reader->at += 2;
        } else {
            do reader->at++;
            while (reader->at < reader->end && *reader->at != '$' && *reader->at != '#' && *reader->at != '\\');
            reader->steps -= (reader->at - from) / STEP_BYTES;
            print(reader, reader->out, (struct slice){from, (size_t)(reader->at - from)});
        }
    }
    reader->depth--;
    return reader->stops ? ENDED_END : ended;
}

static void status_find(const struct value *context, int *status)
{
    struct value *override = vtl_member(context, SLICE("responseOverride"));
    struct value *found = override ? vtl_member(override, SLICE("status")) : NULL;
    double number = found ? found->number : 0;
    unsigned long long text;
    if (found && found->kind == VALUE_TEXT && slice_to_u64(found->text, 599, &text)) number = (double)text;
    if (number >= 200 && number <= 599) *status = (int)number;
}

bool velocity_render(struct slice template, const struct velocity_input *input, struct arena *arena, struct buf *out,
                     int *status, char *error, size_t error_len)
{
    struct reader reader = {.at = template.data,
                            .start = template.data,
                            .end = template.data + template.len,
                            .input = input,
                            .arena = arena,
                            .out = out,
                            .variables = vtl_new(arena, VALUE_MAP),
                            .context = object_of(arena, input->context),
                            .stage_variables = object_of(arena, input->variables),
                            .left = {LIMIT_VELOCITY_BYTES, LIMIT_VELOCITY_NODES, LIMIT_VELOCITY_WORK,
                                     arena->total_bytes + LIMIT_VELOCITY_MEMORY},
                            .steps = LIMIT_VELOCITY_STEPS,
                            .active = true,
                            .error = error,
                            .error_len = error_len};
    enum ended ended = template.len ? read_block(&reader) : ENDED_TEXT;
    if (ended != ENDED_TEXT && !reader.stops) fail(&reader, "there is an #end or #else too many");
    check_allowance(&reader);
    if (!reader.failed) status_find(reader.context, status);
    return !reader.failed;
}
