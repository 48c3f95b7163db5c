/* The pure part of HTTP/1.1: bytes in, structure out. No sockets, no clock, no memory of its own, so that a
 * fuzzer can drive all of it. Strict where leniency lets two parsers disagree about where a request ends (RFC
 * 9112, 11.2). */
#ifndef NET_HTTP_PARSE_H
#define NET_HTTP_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "net/net.h"

enum http_progress {
    HTTP_MORE,    /* all well, but it does not end here */
    HTTP_WHOLE,   /* complete */
    HTTP_REFUSED, /* the fault tells why */
};

struct http_fault {
    int status;
    const char *reason;
};

enum http_coding { HTTP_CODING_NONE, HTTP_CODING_ZLIB, HTTP_CODING_UNKNOWN };

/* What a request's head says. Slices point into the parsed bytes, headers at the caller's array. */
struct http_head {
    enum http_method method;
    struct slice method_text, target, path, query;
    struct http_header *headers;
    uint32_t header_count, header_room;
    size_t bytes; /* the head's own length, with the empty line */
    uint64_t content_length;
    struct slice accept_encoding;
    enum http_coding coding; /* of the body: gzip and deflate look the same to zlib */
    bool has_length, chunked, http_1_0, says_close, says_keep_alive, has_host, expects_continue,
        expects_other;
    struct http_fault fault;
};

/* Parses a request's head from its first byte. headers has room for header_room fields; one more is refused
 * with 431. */
enum http_progress http_head_parse(struct http_head *head, struct slice bytes, struct http_header *headers,
                                   uint32_t header_room);

/* One "Name: value" line at *at; moves *at behind its CRLF when whole. */
enum http_progress http_field_parse(const char **at, const char *end, struct http_header *field,
                                    struct http_fault *fault);

/* The first byte in at..end that may not stand in a header's value: a control character other than tab. */
const char *http_text_end(const char *at, const char *end);

/* True when an Accept-Encoding value admits gzip. */
bool http_accepts_gzip(struct slice accept_encoding);

/* True when the connection may serve another request after this one. */
static inline bool http_head_keeps_alive(const struct http_head *head)
{
    return !head->says_close && (!head->http_1_0 || head->says_keep_alive);
}

/* ---- chunked bodies ---- */
enum http_chunks_state { CHUNK_SIZE, CHUNK_DATA, CHUNK_DATA_END, CHUNK_TRAILER, CHUNK_DONE };

/* A zeroed one stands before the first chunk. */
struct http_chunks {
    enum http_chunks_state state;
    uint64_t left;       /* bytes missing from the current chunk */
    uint64_t body_bytes; /* decoded so far */
    size_t trailer_bytes;
    struct buf *trailer; /* takes the trailer's lines; NULL: they are thrown away */
    struct http_fault fault;
};

/* Decodes in place what has arrived: afterwards data holds *body decoded bytes, then *rest bytes that are not
 * used yet (an unfinished line, or what follows the body). trailer_max bounds the trailer fields together,
 * body_max the body. */
enum http_progress http_chunks_decode(struct http_chunks *chunks, char *data, size_t len, uint64_t body_max,
                                      size_t trailer_max, size_t *body, size_t *rest);

#endif
