/* Groups: conditions as people write them, "count >= 3 and contains(kinds, 'vip')", as DynamoDB takes them:
 * names behind #, since the best ones are reserved words, and values apart. What is written in DynamoDB's own
 * way stays as it is. Called by group_put.c. */
#include "pattern/group.h"

struct wording {
    struct flow *flow;
    struct slice rest; /* of what was written */
    struct buf text;
    struct slice values; /* members of a JSON object: ":v0":3 */
    unsigned count;
    const char *fault;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_';
}

static size_t word_length(struct slice text)
{
    size_t len = 0;
    while (len < text.len && (is_letter(text.data[len]) || is_digit(text.data[len]))) len++;
    return len;
}

static struct slice take(struct wording *wording, size_t len)
{
    struct slice taken = {wording->rest.data, len};
    wording->rest = slice_from(wording->rest, len);
    return taken;
}

static void put_value(struct wording *wording, struct slice value)
{
    struct slice name = arena_printf(wording->flow->arena, ":v%u", wording->count++);
    buf_slice(&wording->text, name);
    wording->values = flow_compose(wording->flow, "%r%r%s:%r", wording->values,
                                   wording->values.len ? SLICE(",") : SLICE(""), name, value);
}

static void take_number(struct wording *wording)
{
    size_t len = wording->rest.data[0] == '-';
    size_t first = len;
    while (len < wording->rest.len && (is_digit(wording->rest.data[len]) || wording->rest.data[len] == '.'))
        len++;
    struct slice number = take(wording, len);
    size_t points = 0;
    for (size_t i = first; i < len; i++) points += number.data[i] == '.';
    bool has_zero = len - first > 1 && number.data[first] == '0' && number.data[first + 1] != '.';
    if (points > 1 || has_zero || number.data[len - 1] == '.' || plain_fault(wording->flow->arena, number))
        wording->fault = "it holds a number that is none";
    else
        put_value(wording, number);
}

static void take_text(struct wording *wording)
{
    const char *end = memchr(wording->rest.data + 1, '\'', wording->rest.len - 1);
    if (!end) {
        wording->fault = "a text lacks its closing quote";
        return;
    }
    struct slice quoted = take(wording, (size_t)(end - wording->rest.data) + 1);
    put_value(wording, flow_compose(wording->flow, "%s", (struct slice){quoted.data + 1, quoted.len - 2}));
}

/* A word of the language, a function, true and false, or the name of an attribute. */
static void take_word(struct wording *wording)
{
    static const char *const words[] = {"and", "or", "not", "between", "in"};
    struct slice word = take(wording, word_length(wording->rest)), behind = wording->rest;
    bool is_known = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        is_known |= slice_equal_ignoring_case(word, slice_of(words[i]));
    while (behind.len && behind.data[0] == ' ') behind = slice_from(behind, 1);
    if (slice_equal(word, SLICE("true")) || slice_equal(word, SLICE("false"))) {
        put_value(wording, word);
        return;
    }
    if (!is_known && !(behind.len && behind.data[0] == '(')) buf_byte(&wording->text, '#');
    buf_slice(&wording->text, word);
}

static void take_next(struct wording *wording)
{
    char c = wording->rest.data[0], next = wording->rest.len > 1 ? wording->rest.data[1] : ' ';
    if (is_digit(c) || (c == '-' && is_digit(next)))
        take_number(wording);
    else if (c == '\'')
        take_text(wording);
    else if (is_letter(c))
        take_word(wording);
    else if (c == '#' || c == ':')
        buf_slice(&wording->text, take(wording, 1 + word_length(slice_from(wording->rest, 1))));
    else
        buf_slice(&wording->text, take(wording, 1));
}

struct slice group_when_read(struct flow *flow, struct slice written, struct slice *values,
                             const char **fault)
{
    struct wording wording = {.flow = flow, .rest = written, .values = SLICE("")};
    while (wording.rest.len && !wording.fault) take_next(&wording);
    struct slice text = arena_copy(flow->arena, buf_view(&wording.text));
    buf_free(&wording.text);
    *values = wording.count ? flow_compose(flow, "{%r}", wording.values) : SLICE_NONE;
    *fault = wording.fault;
    return text;
}
