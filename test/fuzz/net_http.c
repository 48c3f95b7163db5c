/* The HTTP parser under arbitrary bytes. The first byte chooses the size of the pieces in which a chunked
 * body arrives; the rest is a request. Checked besides memory safety: slices stay inside the bytes, no prefix
 * of a whole head is whole or refused, and a chunked body decodes to the same in pieces as at once. */
#include <stdlib.h>

#include "base/fail.h"
#include "net/http_parse.h"

#define ROOM     20
#define BODY_MAX 100000
#define TRAILER  2000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct slice part, struct slice whole)
{
    if (part.len == 0 || slice_equal(part, SLICE("/"))) return;
    ensure(part.data >= whole.data && part.data + part.len <= whole.data + whole.len);
}

static void check_head(const struct http_head *head, struct slice bytes)
{
    struct http_header again[ROOM];
    struct http_head shorter;
    ensure(head->bytes <= bytes.len && head->header_count <= ROOM && !(head->chunked && head->has_length));
    check_inside(head->method_text, bytes);
    check_inside(head->target, bytes);
    check_inside(head->path, head->target);
    check_inside(head->query, head->target);
    for (uint32_t i = 0; i < head->header_count; i++) {
        check_inside(head->headers[i].name, bytes);
        check_inside(head->headers[i].value, bytes);
        for (size_t j = 0; j < head->headers[i].value.len; j++)
            ensure(!memchr("\r\n\0", head->headers[i].value.data[j], 3));
    }
    for (size_t cut = 0; cut < head->bytes; cut++)
        ensure(http_head_parse(&shorter, (struct slice){bytes.data, cut}, again, ROOM) == HTTP_MORE);
    (void)http_head_keeps_alive(head);
    (void)http_accepts_gzip(head->accept_encoding);
}

struct decoded {
    char *body;
    size_t len, rest;
    enum http_progress progress;
};

static struct decoded decode(struct slice bytes, size_t step)
{
    struct http_chunks chunks = {0};
    struct decoded result = {malloc(bytes.len + 1), 0, 0, HTTP_MORE};
    size_t at = 0;
    while (result.progress == HTTP_MORE && at < bytes.len) {
        size_t now = bytes.len - at < step ? bytes.len - at : step, body;
        memcpy(result.body + result.len + result.rest, bytes.data + at, now);
        at += now;
        result.progress = http_chunks_decode(&chunks, result.body + result.len, result.rest + now, BODY_MAX,
                                             TRAILER, &body, &result.rest);
        result.len += body;
    }
    result.rest += bytes.len - at;
    return result;
}

static void check_chunks(struct slice bytes, size_t step)
{
    struct decoded once = decode(bytes, bytes.len), pieces = decode(bytes, step);
    /* In pieces a fault may show earlier (a line longer than allowed), never a different body. */
    if (once.progress != HTTP_REFUSED && pieces.progress != HTTP_REFUSED) {
        ensure(once.progress == pieces.progress && once.len == pieces.len && once.rest == pieces.rest);
        ensure(memcmp(once.body, pieces.body, once.len) == 0);
    }
    ensure((once.progress == HTTP_REFUSED) == (pieces.progress == HTTP_REFUSED));
    free(once.body);
    free(pieces.body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_header headers[ROOM];
    struct http_head head;
    if (size < 1 || size > 8192) return 0;
    char *copy = malloc(size); /* its own allocation, so that reading past the end is seen */
    memcpy(copy, data + 1, size - 1);
    struct slice bytes = {copy, size - 1};
    enum http_progress progress = http_head_parse(&head, bytes, headers, ROOM);
    if (progress == HTTP_REFUSED)
        ensure(head.fault.status >= 400 && head.fault.status < 600 && head.fault.reason);
    if (progress == HTTP_WHOLE) {
        check_head(&head, bytes);
        if (head.chunked) check_chunks(slice_from(bytes, head.bytes), 1 + data[0] % 64u);
    } else {
        check_chunks(bytes, 1 + data[0] % 64u);
    }
    free(copy);
    return 0;
}
