/* From text to tokens. Words of one meaning become one token (IS NOT, INSERT INTO, ALL OLD), comments and
 * white space none. What has no tokens is refused without a detail, as the service does. */
#include "partiql/internal.h"

#define FIRST_TOKENS 32
#define MERGED_WORDS 4 /* at most so many words become one token */

/* Sources of a join all end in the refusal of several tables, so they need no names of their own. */
#define JOIN "join"

/* Longest first. */
static const struct {
    const char *words[MERGED_WORDS];
    unsigned count;
    const char *merged;
    bool is_operator;
} merges[] = {
    {{"left", "outer", "cross", "join"}, 4, JOIN, false},
    {{"right", "outer", "cross", "join"}, 4, JOIN, false},
    {{"full", "outer", "cross", "join"}, 4, JOIN, false},
    {{"inner", "cross", "join"}, 3, JOIN, false},
    {{"left", "outer", "join"}, 3, JOIN, false},
    {{"left", "cross", "join"}, 3, JOIN, false},
    {{"right", "outer", "join"}, 3, JOIN, false},
    {{"right", "cross", "join"}, 3, JOIN, false},
    {{"full", "outer", "join"}, 3, JOIN, false},
    {{"full", "cross", "join"}, 3, JOIN, false},
    {{"outer", "cross", "join"}, 3, JOIN, false},
    {{"not", "in"}, 2, "not_in", true},
    {{"is", "not"}, 2, "is_not", true},
    {{"not", "between"}, 2, "not_between", true},
    {{"not", "like"}, 2, "not_like", true},
    {{"intersect", "all"}, 2, "intersect_all", true},
    {{"except", "all"}, 2, "except_all", true},
    {{"union", "all"}, 2, "union_all", true},
    {{"character", "varying"}, 2, "character_varying", false},
    {{"double", "precision"}, 2, "double_precision", false},
    {{"cross", "join"}, 2, JOIN, false},
    {{"inner", "join"}, 2, JOIN, false},
    {{"left", "join"}, 2, JOIN, false},
    {{"right", "join"}, 2, JOIN, false},
    {{"full", "join"}, 2, JOIN, false},
    {{"outer", "join"}, 2, JOIN, false},
    {{"insert", "into"}, 2, "insert_into", false},
    {{"on", "conflict"}, 2, "on_conflict", false},
    {{"do", "nothing"}, 2, "do_nothing", false},
    {{"modified", "old"}, 2, "modified_old", false},
    {{"modified", "new"}, 2, "modified_new", false},
    {{"all", "old"}, 2, "all_old", false},
    {{"all", "new"}, 2, "all_new", false},
};

struct lexer {
    struct arena *arena, *texts;
    const char *at, *end;
    uint32_t line, column; /* of `at` */
    struct ql_tokens *out;
    uint32_t capacity;
    uint32_t parameters;
};

/* ---- characters ---- */

/* One character, whatever number of bytes it has. A line ends in CR, LF, or both. */
static void step(struct lexer *lexer)
{
    unsigned char c = (unsigned char)*lexer->at++;
    while (lexer->at < lexer->end && ((unsigned char)*lexer->at & 0xc0) == 0x80) lexer->at++;
    if (c == '\n' || (c == '\r' && !(lexer->at < lexer->end && *lexer->at == '\n'))) {
        lexer->line++;
        lexer->column = 1;
    } else if (c != '\r') {
        lexer->column++;
    }
}

static char peek(const struct lexer *lexer, size_t ahead)
{
    return (size_t)(lexer->end - lexer->at) > ahead ? lexer->at[ahead] : 0;
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_white(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* ---- what separates tokens ---- */

static bool skip_block_comment(struct lexer *lexer)
{
    step(lexer);
    step(lexer);
    while (lexer->at < lexer->end) {
        bool is_end = *lexer->at == '*' && peek(lexer, 1) == '/';
        step(lexer);
        if (!is_end) continue;
        step(lexer);
        return true;
    }
    return false;
}

static bool skip_separators(struct lexer *lexer)
{
    for (;;) {
        if (lexer->at < lexer->end && is_white(*lexer->at)) {
            step(lexer);
        } else if (peek(lexer, 0) == '-' && peek(lexer, 1) == '-') {
            while (lexer->at < lexer->end && *lexer->at != '\n' && *lexer->at != '\r') step(lexer);
        } else if (peek(lexer, 0) == '/' && peek(lexer, 1) == '*') {
            if (!skip_block_comment(lexer)) return false;
        } else {
            return true;
        }
    }
}

/* ---- tokens ---- */

static struct slice word_of(const struct ql_token *token)
{
    bool has_word = token->kind == QL_KEYWORD || token->kind == QL_OPERATOR;
    return has_word ? token->text : SLICE_NONE;
}

/* Makes one of the last tokens, where their words are one. The place is that of the first. */
static void merge(struct ql_tokens *tokens)
{
    for (size_t i = 0; i < sizeof merges / sizeof *merges; i++) {
        unsigned count = merges[i].count, matched = 0;
        if (tokens->count < count) continue;
        struct ql_token *first = &tokens->list[tokens->count - count];
        while (matched < count && slice_equal(word_of(&first[matched]), slice_of(merges[i].words[matched])))
            matched++;
        if (matched < count) continue;
        first->kind = merges[i].is_operator ? QL_OPERATOR : QL_KEYWORD;
        first->text = slice_of(merges[i].merged);
        tokens->count -= count - 1;
        return;
    }
}

static void add(struct lexer *lexer, struct ql_token token)
{
    struct ql_tokens *tokens = lexer->out;
    if (tokens->count == lexer->capacity) {
        lexer->capacity = lexer->capacity ? lexer->capacity * 2 : FIRST_TOKENS;
        struct ql_token *wider = arena_array(lexer->arena, struct ql_token, lexer->capacity);
        if (tokens->count) memcpy(wider, tokens->list, tokens->count * sizeof *wider);
        tokens->list = wider;
    }
    tokens->list[tokens->count++] = token;
    if (token.kind == QL_KEYWORD || token.kind == QL_OPERATOR) merge(tokens);
}

static struct slice canonical_type(struct slice word)
{
    static const char *const aliases[][2] = {
        {"varchar", "character_varying"},
        {"char", "character"},
        {"dec", "decimal"},
        {"int", "integer"},
        {"int2", "smallint"},
        {"integer2", "smallint"},
        {"int4", "integer4"},
        {"int8", "integer8"},
        {"bigint", "integer8"},
        {"bool", "boolean"},
    };
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (slice_equal(word, slice_of(aliases[i][0]))) return slice_of(aliases[i][1]);
    return word;
}

static enum ql_token_kind kind_of_keyword(struct slice word)
{
    static const struct {
        const char *word;
        enum ql_token_kind kind;
    } kinds[] = {
        {"not", QL_OPERATOR},    {"and", QL_OPERATOR},
        {"or", QL_OPERATOR},     {"is", QL_OPERATOR},
        {"in", QL_OPERATOR},     {"between", QL_OPERATOR},
        {"like", QL_OPERATOR},   {"union", QL_OPERATOR},
        {"except", QL_OPERATOR}, {"intersect", QL_OPERATOR},
        {"as", QL_AS},           {"at", QL_AT},
        {"by", QL_BY},           {"for", QL_FOR},
        {"asc", QL_ASC},         {"desc", QL_DESC},
        {"null", QL_NULL},       {"missing", QL_MISSING},
        {"true", QL_BOOL},       {"false", QL_BOOL},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (slice_equal(word, slice_of(kinds[i].word))) return kinds[i].kind;
    return QL_KEYWORD;
}

static bool read_word(struct lexer *lexer, struct ql_token *token)
{
    const char *start = lexer->at;
    while (lexer->at < lexer->end && (is_name_start(*lexer->at) || is_digit(*lexer->at))) step(lexer);
    token->text = (struct slice){start, (size_t)(lexer->at - start)};
    struct slice keyword = ql_keyword(token->text);
    token->kind = QL_NAME;
    if (!keyword.len) return true;
    token->kind = kind_of_keyword(keyword);
    token->text = token->kind == QL_KEYWORD ? canonical_type(keyword) : keyword;
    return true;
}

/* An exponent, or the number of digits behind the point with it, must fit 32 bits. */
static bool is_sane_exponent(long long exponent, size_t fraction)
{
    long long scale = (long long)fraction - exponent;
    return exponent >= -2147483647 - 1LL && exponent <= 2147483647 && scale >= -2147483647 &&
           scale <= 2147483647;
}

static void skip_digits(struct lexer *lexer)
{
    while (lexer->at < lexer->end && is_digit(*lexer->at)) step(lexer);
}

static bool read_number(struct lexer *lexer, struct ql_token *token)
{
    const char *start = lexer->at;
    size_t fraction = 0;
    skip_digits(lexer);
    if (peek(lexer, 0) == '.') {
        step(lexer);
        const char *point = lexer->at;
        skip_digits(lexer);
        fraction = (size_t)(lexer->at - point);
    }
    if (peek(lexer, 0) == 'e' || peek(lexer, 0) == 'E') {
        long long exponent = 0;
        step(lexer);
        bool is_negative = peek(lexer, 0) == '-';
        if (is_negative || peek(lexer, 0) == '+') step(lexer);
        if (!is_digit(peek(lexer, 0))) return false;
        for (; is_digit(peek(lexer, 0)); step(lexer))
            if (exponent < (1LL << 40)) exponent = exponent * 10 + (*lexer->at - '0');
        if (!is_sane_exponent(is_negative ? -exponent : exponent, fraction)) return false;
    }
    token->kind = QL_NUMBER;
    token->text = (struct slice){start, (size_t)(lexer->at - start)};
    return true;
}

/* The bytes between two quotes; a quote within is written twice. */
static bool read_quoted(struct lexer *lexer, struct ql_token *token, char quote, enum ql_token_kind kind)
{
    step(lexer);
    const char *start = lexer->at;
    while (lexer->at < lexer->end && (*lexer->at != quote || peek(lexer, 1) == quote)) {
        if (*lexer->at == quote) step(lexer);
        step(lexer);
    }
    if (lexer->at == lexer->end) return false;
    char *copy = arena_alloc(lexer->texts, (size_t)(lexer->at - start));
    size_t len = 0;
    for (const char *from = start; from < lexer->at; from++) {
        copy[len++] = *from;
        from += *from == quote;
    }
    step(lexer);
    token->kind = kind;
    token->text = (struct slice){copy, len};
    return true;
}

/* `...`: refused later, whatever it holds. */
static bool read_ion(struct lexer *lexer, struct ql_token *token)
{
    step(lexer);
    const char *start = lexer->at;
    while (lexer->at < lexer->end && *lexer->at != '`') step(lexer);
    if (lexer->at == lexer->end) return false;
    token->text = (struct slice){start, (size_t)(lexer->at - start)};
    if (!slice_trim(token->text).len) return false;
    step(lexer);
    token->kind = QL_ION;
    return true;
}

static bool read_symbol(struct lexer *lexer, struct ql_token *token)
{
    static const struct {
        const char *text;
        enum ql_token_kind kind;
        const char *word;
    } symbols[] = {
        {"<=", QL_OPERATOR, "<="},   {"<>", QL_OPERATOR, "<>"},   {"<<", QL_LEFT_ANGLES, ""},
        {">=", QL_OPERATOR, ">="},   {">>", QL_RIGHT_ANGLES, ""}, {"!=", QL_OPERATOR, "<>"},
        {"||", QL_OPERATOR, "||"},   {"<", QL_OPERATOR, "<"},     {">", QL_OPERATOR, ">"},
        {"=", QL_OPERATOR, "="},     {"+", QL_OPERATOR, "+"},     {"-", QL_OPERATOR, "-"},
        {"/", QL_OPERATOR, "/"},     {"%", QL_OPERATOR, "%"},     {"@", QL_OPERATOR, "@"},
        {"*", QL_STAR, "*"},         {".", QL_DOT, ""},           {",", QL_COMMA, ""},
        {":", QL_COLON, ""},         {";", QL_SEMICOLON, ""},     {"?", QL_PARAMETER, ""},
        {"(", QL_LEFT_PAREN, ""},    {")", QL_RIGHT_PAREN, ""},   {"[", QL_LEFT_BRACKET, ""},
        {"]", QL_RIGHT_BRACKET, ""}, {"{", QL_LEFT_CURLY, ""},    {"}", QL_RIGHT_CURLY, ""},
    };
    struct slice rest = {lexer->at, (size_t)(lexer->end - lexer->at)};
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        struct slice text = slice_of(symbols[i].text);
        if (!slice_starts(rest, text)) continue;
        for (size_t j = 0; j < text.len; j++) step(lexer);
        token->kind = symbols[i].kind;
        token->text = slice_of(symbols[i].word);
        return true;
    }
    return false;
}

static bool read_token(struct lexer *lexer, struct ql_token *token)
{
    char c = *lexer->at;
    if (is_name_start(c)) return read_word(lexer, token);
    if (is_digit(c) || (c == '.' && is_digit(peek(lexer, 1)))) return read_number(lexer, token);
    if (c == '\'') return read_quoted(lexer, token, '\'', QL_STRING);
    if (c == '"') return read_quoted(lexer, token, '"', QL_QUOTED_NAME);
    if (c == '`') return read_ion(lexer, token);
    return read_symbol(lexer, token);
}

static uint32_t characters(const char *from, const char *to)
{
    uint32_t count = 0;
    for (; from < to; from++) count += ((unsigned char)*from & 0xc0) != 0x80;
    return count;
}

bool ql_tokens_read(struct arena *arena, struct arena *texts, struct slice text, struct ql_tokens *out)
{
    struct lexer lexer = {
        .arena = arena, .texts = texts, .at = text.data, .end = text.data + text.len, .out = out};
    lexer.line = lexer.column = 1;
    *out = (struct ql_tokens){0};
    for (;;) {
        if (!skip_separators(&lexer)) return false;
        struct ql_token token = {.line = lexer.line, .column = lexer.column};
        const char *start = lexer.at;
        if (start < lexer.end && !read_token(&lexer, &token)) return false;
        token.length = characters(start, lexer.at);
        if (token.kind == QL_PARAMETER) token.ordinal = lexer.parameters++;
        add(&lexer, token);
        if (token.kind == QL_END) return true;
    }
}
