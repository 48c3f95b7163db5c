/* The words of the language. One pass, no allocation: a token is a slice of the text.
 *
 * Keywords are known in any case, names must begin with a letter, and white space is what JSON calls so. What
 * begins no token is a token of its own, one character long, so that a syntax error can show it. */
#include "expr/parse.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_part(char c)
{
    return is_letter(c) || is_digit(c) || c == '_';
}

static const char *skip_name(const char *at, const char *end)
{
    while (at < end && is_name_part(*at)) at++;
    return at;
}

static enum token_kind keyword(struct slice word)
{
    static const struct {
        struct slice word;
        enum token_kind kind;
    } keywords[] = {
        {{"and", 3}, TOKEN_AND},         {{"or", 2}, TOKEN_OR},   {{"not", 3}, TOKEN_NOT},
        {{"between", 7}, TOKEN_BETWEEN}, {{"in", 2}, TOKEN_IN},   {{"set", 3}, TOKEN_SET},
        {{"remove", 6}, TOKEN_REMOVE},   {{"add", 3}, TOKEN_ADD}, {{"delete", 6}, TOKEN_DELETE},
    };
    if (word.len < 2 || word.len > 7) return TOKEN_NAME;
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) {
        if ((word.data[0] | 0x20) != keywords[i].word.data[0]) continue;
        if (slice_equal_ignoring_case(word, keywords[i].word)) return keywords[i].kind;
    }
    return TOKEN_NAME;
}

static struct token token_of(enum token_kind kind, const char *start, const char *end)
{
    return (struct token){kind, {start, (size_t)(end - start)}};
}

/* #name or :value; the mark alone is no token. */
static struct token read_placeholder(enum token_kind kind, const char *at, const char *end)
{
    const char *stop = skip_name(at + 1, end);
    if (stop == at + 1) return token_of(TOKEN_UNKNOWN, at, stop);
    return token_of(kind, at, stop);
}

static struct token read_index(const char *at, const char *end)
{
    const char *stop = at + 1;
    if (*at != '0') {
        while (stop < end && is_digit(*stop)) stop++;
    }
    return token_of(TOKEN_INDEX, at, stop);
}

/* A whole character, so that a fault never shows half of one. */
static struct token read_unknown(const char *at, const char *end)
{
    const char *stop = at + 1;
    while (stop < end && (*stop & 0xc0) == 0x80) stop++;
    return token_of(TOKEN_UNKNOWN, at, stop);
}

static struct token read_mark(const char *at, const char *end)
{
    char second = at + 1 < end ? at[1] : '\0';
    switch (*at) {
    case '(': return token_of(TOKEN_OPEN, at, at + 1);
    case ')': return token_of(TOKEN_CLOSE, at, at + 1);
    case '[': return token_of(TOKEN_OPEN_INDEX, at, at + 1);
    case ']': return token_of(TOKEN_CLOSE_INDEX, at, at + 1);
    case '.': return token_of(TOKEN_DOT, at, at + 1);
    case ',': return token_of(TOKEN_COMMA, at, at + 1);
    case '+': return token_of(TOKEN_PLUS, at, at + 1);
    case '-': return token_of(TOKEN_MINUS, at, at + 1);
    case '=': return token_of(TOKEN_EQ, at, at + 1);
    case '<':
        if (second == '>') return token_of(TOKEN_NE, at, at + 2);
        if (second == '=') return token_of(TOKEN_LE, at, at + 2);
        return token_of(TOKEN_LT, at, at + 1);
    case '>':
        if (second == '=') return token_of(TOKEN_GE, at, at + 2);
        return token_of(TOKEN_GT, at, at + 1);
    default: return read_unknown(at, end);
    }
}

struct token token_read(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')) at++;
    if (at == end) return token_of(TOKEN_END, at, at);
    if (is_letter(*at)) {
        struct token token = token_of(TOKEN_NAME, at, skip_name(at, end));
        token.kind = keyword(token.text);
        return token;
    }
    if (*at == '#') return read_placeholder(TOKEN_NAME_PLACEHOLDER, at, end);
    if (*at == ':') return read_placeholder(TOKEN_VALUE_PLACEHOLDER, at, end);
    if (is_digit(*at)) return read_index(at, end);
    return read_mark(at, end);
}
