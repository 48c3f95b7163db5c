/* Request heads. Every byte of every request passes here, so values are scanned eight bytes at a time and
 * only the few headers that HTTP itself needs are looked at.
 *
 * Refused, because another parser on the way might read it differently: a bare CR or LF, NUL and other
 * controls, a folded line, a space before the colon, Content-Length together with Transfer-Encoding, two
 * lengths that differ. */
#include "net/http_parse.h"

#include <endian.h>

#include "base/fail.h"
#include "base/limits.h"

#define ONES  0x0101010101010101u
#define HIGHS 0x8080808080808080u

/* RFC 9110: tchar. */
static const unsigned char token_chars[256] = {
    ['!'] = 1, ['#'] = 1, ['$'] = 1, ['%'] = 1, ['&'] = 1, ['\''] = 1, ['*'] = 1, ['+'] = 1, ['-'] = 1,
    ['.'] = 1, ['^'] = 1, ['_'] = 1, ['`'] = 1, ['|'] = 1, ['~'] = 1,  ['0'] = 1, ['1'] = 1, ['2'] = 1,
    ['3'] = 1, ['4'] = 1, ['5'] = 1, ['6'] = 1, ['7'] = 1, ['8'] = 1,  ['9'] = 1, ['A'] = 1, ['B'] = 1,
    ['C'] = 1, ['D'] = 1, ['E'] = 1, ['F'] = 1, ['G'] = 1, ['H'] = 1,  ['I'] = 1, ['J'] = 1, ['K'] = 1,
    ['L'] = 1, ['M'] = 1, ['N'] = 1, ['O'] = 1, ['P'] = 1, ['Q'] = 1,  ['R'] = 1, ['S'] = 1, ['T'] = 1,
    ['U'] = 1, ['V'] = 1, ['W'] = 1, ['X'] = 1, ['Y'] = 1, ['Z'] = 1,  ['a'] = 1, ['b'] = 1, ['c'] = 1,
    ['d'] = 1, ['e'] = 1, ['f'] = 1, ['g'] = 1, ['h'] = 1, ['i'] = 1,  ['j'] = 1, ['k'] = 1, ['l'] = 1,
    ['m'] = 1, ['n'] = 1, ['o'] = 1, ['p'] = 1, ['q'] = 1, ['r'] = 1,  ['s'] = 1, ['t'] = 1, ['u'] = 1,
    ['v'] = 1, ['w'] = 1, ['x'] = 1, ['y'] = 1, ['z'] = 1,
};

static const struct {
    struct slice name;
    enum http_method method;
} methods[] = {
    {{"GET", 3}, HTTP_GET},         {{"HEAD", 4}, HTTP_HEAD},   {{"POST", 4}, HTTP_POST},
    {{"PUT", 3}, HTTP_PUT},         {{"PATCH", 5}, HTTP_PATCH}, {{"DELETE", 6}, HTTP_DELETE},
    {{"OPTIONS", 7}, HTTP_OPTIONS},
};

static enum http_progress refuse(struct http_fault *fault, int status, const char *reason)
{
    *fault = (struct http_fault){status, reason};
    return HTTP_REFUSED;
}

static bool is_token(char c)
{
    return token_chars[(unsigned char)c];
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_control(unsigned char c)
{
    return (c < 0x20 && c != '\t') || c == 0x7f;
}

/* Lower-case literal; the name holds token characters only, among which no other byte becomes a letter or '-'
 * by |0x20. */
static bool name_is(struct slice name, struct slice lower)
{
    if (name.len != lower.len) return false;
    for (size_t i = 0; i < name.len; i++)
        if ((name.data[i] | 0x20) != lower.data[i]) return false;
    return true;
}

/* Of eight bytes, the high bit of each that is below ' ' or is DEL. Bytes above the first such one may be
 * marked in error: a borrow travels upward. */
static uint64_t controls_of(uint64_t word)
{
    uint64_t below_space = (word - ONES * 0x20) & ~word;
    uint64_t rubout = word ^ (ONES * 0x7f);
    return (below_space | ((rubout - ONES) & ~rubout)) & HIGHS;
}

const char *http_text_end(const char *at, const char *end)
{
    while (end - at >= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        uint64_t controls = controls_of(le64toh(word));
        if (!controls) {
            at += 8;
            continue;
        }
        at += __builtin_ctzll(controls) / 8;
        if (*at != '\t') return at;
        at++;
    }
    while (at < end && !is_control((unsigned char)*at)) at++;
    return at;
}

/* The CRLF that must stand at *at. */
static enum http_progress line_end(const char **at, const char *end, struct http_fault *fault)
{
    if (*at == end) return HTTP_MORE;
    if (**at != '\r') return refuse(fault, 400, "a line holds a control character or does not end in CRLF");
    if (*at + 1 == end) return HTTP_MORE;
    if ((*at)[1] != '\n') return refuse(fault, 400, "a carriage return stands alone");
    *at += 2;
    return HTTP_WHOLE;
}

enum http_progress http_field_parse(const char **at, const char *end, struct http_header *field,
                                    struct http_fault *fault)
{
    const char *name = *at, *p = name;
    while (p < end && is_token(*p)) p++;
    if (p == end) return HTTP_MORE;
    if (p == name || *p != ':') return refuse(fault, 400, "a header's name is malformed");
    field->name = (struct slice){name, (size_t)(p - name)};
    p++;
    while (p < end && is_space(*p)) p++;
    const char *value = p;
    p = http_text_end(p, end);
    const char *value_end = p;
    enum http_progress progress = line_end(&p, end, fault);
    if (progress != HTTP_WHOLE) return progress;
    while (value_end > value && is_space(value_end[-1])) value_end--;
    field->value = (struct slice){value, (size_t)(value_end - value)};
    *at = p;
    return HTTP_WHOLE;
}

/* ---- the request line ---- */
static enum http_method method_of(struct slice text)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (slice_equal(text, methods[i].name)) return methods[i].method;
    return HTTP_OTHER;
}

/* Splits the target into path and query; an absolute form gives its scheme and authority up. */
static bool target_split(struct http_head *head)
{
    struct slice rest = head->target;
    if (rest.data[0] != '/') {
        if (slice_equal(rest, SLICE("*"))) {
            head->path = rest;
            return head->method == HTTP_OPTIONS;
        }
        size_t scheme = 0;
        if (rest.len > 7 && name_is((struct slice){rest.data, 7}, SLICE("http://"))) scheme = 7;
        if (rest.len > 8 && name_is((struct slice){rest.data, 8}, SLICE("https://"))) scheme = 8;
        if (!scheme) return false;
        rest = slice_from(rest, scheme);
        if (rest.data[0] == '/' || rest.data[0] == '?') return false;
        size_t authority = 0;
        while (authority < rest.len && rest.data[authority] != '/' && rest.data[authority] != '?')
            authority++;
        rest = slice_from(rest, authority);
    }
    const char *mark = rest.len ? memchr(rest.data, '?', rest.len) : NULL;
    size_t path_len = mark ? (size_t)(mark - rest.data) : rest.len;
    head->path = path_len ? (struct slice){rest.data, path_len} : SLICE("/");
    if (mark) head->query = slice_from(rest, path_len + 1);
    return true;
}

static enum http_progress version_parse(struct http_head *head, const char **at, const char *end)
{
    static const char name[] = "HTTP/";
    const char *p = *at;
    for (size_t i = 0; i < sizeof name - 1; i++, p++) {
        if (p == end) return HTTP_MORE;
        if (*p != name[i])
            return refuse(&head->fault, 400, "the request line does not end in an HTTP version");
    }
    if (end - p < 3) return HTTP_MORE;
    if (p[0] < '0' || p[0] > '9' || p[1] != '.' || p[2] < '0' || p[2] > '9')
        return refuse(&head->fault, 400, "the HTTP version is malformed");
    if (p[0] != '1') return refuse(&head->fault, 505, "only HTTP/1.1 and HTTP/1.0 are spoken here");
    head->http_1_0 = p[2] == '0';
    *at = p + 3;
    return line_end(at, end, &head->fault);
}

static enum http_progress request_line_parse(struct http_head *head, const char **at, const char *end)
{
    const char *p = *at;
    /* Some clients end a body with a CRLF that it does not count; RFC 9112, 2.2 asks to overlook it. */
    while (end - p >= 2 && p[0] == '\r' && p[1] == '\n') p += 2;
    const char *method = p;
    if (end - p == 1 && *p == '\r') return HTTP_MORE;
    while (p < end && is_token(*p)) p++;
    if (p == end) return HTTP_MORE;
    if (p == method || *p != ' ') return refuse(&head->fault, 400, "the request line is malformed");
    head->method_text = (struct slice){method, (size_t)(p - method)};
    head->method = method_of(head->method_text);
    const char *target = ++p;
    while (p < end && (unsigned char)*p > ' ' && *p != 0x7f) p++;
    if (p == end) return HTTP_MORE;
    if (p == target || *p != ' ') return refuse(&head->fault, 400, "the request line is malformed");
    head->target = (struct slice){target, (size_t)(p - target)};
    if (!target_split(head))
        return refuse(&head->fault, 400, "the request's target is neither a path nor a URL");
    *at = p + 1;
    return version_parse(head, at, end);
}

/* ---- the headers that HTTP itself needs ---- */
static enum http_progress length_note(struct http_head *head, struct slice value)
{
    unsigned long long length = 0;
    for (size_t i = 0; i < value.len; i++)
        if (value.data[i] < '0' || value.data[i] > '9') value.len = 0;
    if (value.len == 0) return refuse(&head->fault, 400, "the Content-Length is not a number");
    if (!slice_to_u64(value, UINT64_MAX - 1, &length)) length = UINT64_MAX; /* too large for any limit */
    if (head->has_length && head->content_length != length)
        return refuse(&head->fault, 400, "two Content-Lengths differ");
    head->has_length = true;
    head->content_length = length;
    return HTTP_WHOLE;
}

/* The next element of a comma-separated list, trimmed; false at the end. */
static bool list_next(struct slice *list, struct slice *element)
{
    if (!list->data) return false;
    const char *comma = list->len ? memchr(list->data, ',', list->len) : NULL;
    *element = (struct slice){list->data, comma ? (size_t)(comma - list->data) : list->len};
    *list = comma ? slice_from(*list, element->len + 1) : SLICE_NONE;
    while (element->len && is_space(element->data[0])) *element = slice_from(*element, 1);
    while (element->len && is_space(element->data[element->len - 1])) element->len--;
    return true;
}

static void connection_note(struct http_head *head, struct slice value)
{
    struct slice option;
    while (list_next(&value, &option)) {
        if (slice_equal_ignoring_case(option, SLICE("close"))) head->says_close = true;
        if (slice_equal_ignoring_case(option, SLICE("keep-alive"))) head->says_keep_alive = true;
    }
}

static enum http_progress transfer_coding_note(struct http_head *head, struct slice value)
{
    if (head->chunked) return refuse(&head->fault, 400, "two Transfer-Encodings");
    if (!slice_equal_ignoring_case(value, SLICE("chunked")))
        return refuse(&head->fault, 501, "the only transfer coding understood is chunked");
    head->chunked = true;
    return HTTP_WHOLE;
}

static void content_coding_note(struct http_head *head, struct slice value)
{
    bool known = slice_equal_ignoring_case(value, SLICE("gzip")) ||
                 slice_equal_ignoring_case(value, SLICE("x-gzip")) ||
                 slice_equal_ignoring_case(value, SLICE("deflate"));
    bool none = value.len == 0 || slice_equal_ignoring_case(value, SLICE("identity"));
    if (none) return;
    head->coding = known && head->coding == HTTP_CODING_NONE ? HTTP_CODING_ZLIB : HTTP_CODING_UNKNOWN;
}

static enum http_progress header_note(struct http_head *head, const struct http_header *field)
{
    switch (field->name.len) { /* most headers differ in length from all of these */
    case 4:
        if (!name_is(field->name, SLICE("host"))) break;
        if (head->has_host) return refuse(&head->fault, 400, "two Host headers");
        head->has_host = true;
        break;
    case 6:
        if (!name_is(field->name, SLICE("expect"))) break;
        if (slice_equal_ignoring_case(field->value, SLICE("100-continue")))
            head->expects_continue = true;
        else
            head->expects_other = true;
        break;
    case 10:
        if (name_is(field->name, SLICE("connection"))) connection_note(head, field->value);
        break;
    case 14:
        if (name_is(field->name, SLICE("content-length"))) return length_note(head, field->value);
        break;
    case 15:
        if (name_is(field->name, SLICE("accept-encoding"))) head->accept_encoding = field->value;
        break;
    case 16:
        if (name_is(field->name, SLICE("content-encoding"))) content_coding_note(head, field->value);
        break;
    case 17:
        if (name_is(field->name, SLICE("transfer-encoding"))) return transfer_coding_note(head, field->value);
        break;
    default: break;
    }
    return HTTP_WHOLE;
}

/* What only the whole head can show. */
static enum http_progress head_check(struct http_head *head)
{
    if (head->chunked && head->has_length)
        return refuse(&head->fault, 400, "Content-Length and Transfer-Encoding exclude each other");
    if (head->chunked && head->http_1_0)
        return refuse(&head->fault, 400, "HTTP/1.0 knows no Transfer-Encoding");
    if (!head->has_host && !head->http_1_0) return refuse(&head->fault, 400, "the Host header is missing");
    if (head->http_1_0) head->expects_continue = false;
    return HTTP_WHOLE;
}

enum http_progress http_head_parse(struct http_head *head, struct slice bytes, struct http_header *headers,
                                   uint32_t header_room)
{
    const char *at = bytes.data, *end = bytes.data + bytes.len;
    *head = (struct http_head){.headers = headers, .header_room = header_room};
    enum http_progress progress = request_line_parse(head, &at, end);
    while (progress == HTTP_WHOLE) {
        if (at == end) return HTTP_MORE;
        if (*at == '\r') {
            progress = line_end(&at, end, &head->fault);
            if (progress != HTTP_WHOLE) return progress;
            head->bytes = (size_t)(at - bytes.data);
            return head_check(head);
        }
        struct http_header surplus;
        struct http_header *field = head->header_count < header_room ? &headers[head->header_count]
                                                                     : &surplus;
        progress = http_field_parse(&at, end, field, &head->fault);
        if (progress != HTTP_WHOLE) return progress;
        if (field == &surplus) return refuse(&head->fault, 431, "too many headers");
        head->header_count++;
        progress = header_note(head, field);
    }
    return progress;
}

/* "gzip;q=0" and "gzip; q=0.000" say no; any other weight says yes. */
static bool weight_is_zero(struct slice parameters)
{
    const char *q = parameters.len ? memchr(parameters.data, '=', parameters.len) : NULL;
    if (!q) return false;
    for (q++; q < parameters.data + parameters.len; q++)
        if (*q != '0' && *q != '.' && !is_space(*q)) return false;
    return true;
}

bool http_accepts_gzip(struct slice accept_encoding)
{
    struct slice element;
    bool any = false;
    while (list_next(&accept_encoding, &element)) {
        const char *semicolon = element.len ? memchr(element.data, ';', element.len) : NULL;
        struct slice name = {element.data, semicolon ? (size_t)(semicolon - element.data) : element.len};
        bool yes = !weight_is_zero(slice_from(element, name.len));
        while (name.len && is_space(name.data[name.len - 1])) name.len--;
        if (slice_equal_ignoring_case(name, SLICE("gzip")) ||
            slice_equal_ignoring_case(name, SLICE("x-gzip")))
            return yes;
        if (slice_equal(name, SLICE("*"))) any = yes;
    }
    return any;
}
