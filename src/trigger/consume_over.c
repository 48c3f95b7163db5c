/* When a stream is over: it was closed, with its table or by itself, and all of its records are done; or it is
 * not there any more, and nobody is at work on what was read of it. The mappings are told, and go on with the
 * table's next stream when there is one (mapping_follow.c).
 *
 * Ids of shards differ between streams, so the positions of the old shards are no trouble to the new ones:
 * they are those of shards that the service has forgotten (consume_shards.c). */
#include "trigger/consume.h"

void feed_begin_stream(struct feed *feed)
{
    feed->arn_json.len = 0;
    json_put_string(&feed->arn_json, feed->mapping->stream_arn);
    feed->is_lost_stream = feed->is_disabled_stream = false;
    feed->is_over = feed->has_looked_last = false;
    feed->retry = (struct due){0};
    feed->failures = 0;
}

/* What nobody has read of a stream that is not there is lost; what somebody holds may be in his memory. */
static bool is_finished(const struct strand *strand)
{
    if (strand->state == STRAND_ENDED || strand->seen.ended) return true;
    return strand->feed->is_lost_stream && strand->state == STRAND_WAITS && lease_is_free(strand);
}

static bool is_closed_and_done(const struct feed *feed)
{
    if (!feed->is_lost_stream && !feed->is_disabled_stream) return false;
    for (const struct strand *strand = feed->strands; strand; strand = strand->next)
        if (!is_finished(strand)) return false;
    return true;
}

void stream_over_attend(struct feed *feed)
{
    const struct surroundings *world = &feed->consumer->world;
    if (feed->mapping->watch) return; /* it looks for streams by itself */
    bool is_over = is_closed_and_done(feed);
    if (!is_over) feed->has_looked_last = false;
    if (is_over && !feed->is_lost_stream && !feed->has_looked_last) {
        feed->has_looked_last = feed->must_look_again = true;
        feed->look_us = 0;
        feed_touch(feed);
        return;
    }
    if (is_over == feed->is_over) return;
    feed->is_over = is_over;
    if (is_over && !feed->is_lost_stream)
        feed_note(feed,
                  "PROBLEM: The stream is closed: its table was deleted, or the stream was switched off");
    world->stream_over(world->self, feed->mapping->id, feed->mapping->stream_arn, is_over);
}
