/* What the operations on streams share: how streams, shards and records are named, and iterators.
 *
 * A stream is named by its table and the time it began (its label), a shard by the time it began and its
 * numbers, a record by its sequence number, an iterator by a token that carries all it needs: nothing about
 * readers is kept. */
#ifndef API_STREAMS_H
#define API_STREAMS_H

#include "api/shapes.h"

#define STREAM_PAGE_MAX 100 /* streams of ListStreams, shards of DescribeStream */

extern const struct shape shape_stream_arn, shape_shard_id;

/* ---- names (stream_names.c) ---- */

void put_stream_arn(struct buf *out, const struct api *api, const struct stream *stream);
void put_shard_id(struct buf *out, const struct stream *stream, const struct shard_description *shard);
/* 21 digits. */
void put_sequence(struct buf *out, uint64_t sequence);
/* False when the text is no number; one that no record ever had becomes UINT64_MAX or 0. */
bool sequence_parse(struct slice text, uint64_t *out);

/* The stream of this ARN, counted: the caller releases it. Refuses and answers NULL when there is none. */
struct stream *stream_of_arn(struct api_call *call, struct slice arn);
/* NULL when the stream has no such shard. */
const struct shard_description *shard_of_id(const struct stream *stream, struct slice id);
const struct shard_description *shard_of_number(const struct stream *stream, uint32_t number);

/* ---- iterators (stream_iterator.c) ---- */

struct iterator {
    uint32_t stream, shard;
    uint64_t position; /* the sequence number from which records are wanted; 0: from the oldest on */
    int64_t made_ms;
};

void put_iterator(struct buf *out, const struct iterator *iterator); /* in quotes */
/* Refuses what is no iterator, or too old a one. */
bool iterator_parse(struct api_call *call, struct slice token, struct iterator *out);
bool refuse_trimmed(struct api_call *call);

#endif
