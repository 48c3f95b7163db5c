/* The records of a text that comes in pieces: a source for tests and fuzz drivers of formats. */
#ifndef TEST_UNIT_TRANSFER_TEXT_H
#define TEST_UNIT_TRANSFER_TEXT_H

#include <stdlib.h>

#include "base/fail.h"
#include "transfer/formats.h"

struct text_source {
    struct transfer_source source;
    struct slice rest;
    size_t piece;
};

static inline ssize_t text_read(struct transfer_source *source, char *out, size_t most)
{
    struct text_source *text = (struct text_source *)source;
    size_t count = text->rest.len < text->piece ? text->rest.len : text->piece;
    if (count > most) count = most;
    if (count) memcpy(out, text->rest.data, count);
    text->rest = slice_from(text->rest, count);
    return (ssize_t)count;
}

static inline void text_close(struct transfer_source *source)
{
    free(source);
}

static inline struct transfer_records *open_text(struct slice text, size_t piece,
                                                 struct transfer_records_options options)
{
    struct text_source *source = must_zero(1, sizeof *source);
    *source = (struct text_source){{.read = text_read, .close = text_close}, text, piece};
    return transfer_records_open(&source->source, &options);
}

#endif
