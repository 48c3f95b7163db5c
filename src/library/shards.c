/* Finding shards, their order, and iterators for them. */
#include "library/shards.h"

#include <stdlib.h>

#include "base/fail.h"

#define CLOCKS_DIFFER_S 300 /* at most, ours and the service's: what may be too old is rather read twice */

enum quipu_result shards_fail(struct shards *shards, struct quipu_reply *reply)
{
    quipu_reply_free(shards->failure);
    shards->failure = reply;
    return QUIPU_FAILED;
}

/* ---- which there are ---- */

static struct shard *find_shard(const struct shards *shards, struct slice id)
{
    struct shard *shard = shards->first;
    while (shard && !slice_equal(buf_view(&shard->id), id)) shard = shard->next;
    return shard;
}

static struct shard *add_shard(struct shards *shards, struct slice id, struct slice parent)
{
    struct shard *shard = must_zero(1, sizeof *shard), **end = &shards->first;
    while (*end) end = &(*end)->next;
    text_set(&shard->id, id);
    text_set(&shard->parent, parent);
    shard->asked_at_news = UINT64_MAX;
    *end = shard;
    return shard;
}

/* {"ShardId":...,"ParentShardId":...,"SequenceNumberRange":{"StartingSequenceNumber":...,"EndingSequenceNumber":...}}
 */
static void take_shard(struct shards *shards, struct slice raw, struct arena *arena)
{
    static const char *const names[] = {"ShardId", "ParentShardId", "SequenceNumberRange"};
    static const char *const range_names[] = {"EndingSequenceNumber"};
    struct slice raws[3], end;
    if (!raw_members(arena, raw, names, raws, 3)) return;
    raw_members(arena, raws[2], range_names, &end, 1);
    struct slice id = raw_string(arena, raws[0]);
    struct shard *shard = find_shard(shards, id);
    bool is_new = !shard;
    if (is_new) shard = add_shard(shards, id, raw_string(arena, raws[1]));
    shard->is_closed = end.len > 0;
    shard->seen_at = shards->looks;
    if (!is_new || shards->looks > 1 || shards->start != QUIPU_LATEST) return;
    shard->from_latest = true;
    if (shard->is_closed) shard->state = SHARD_IS_DONE;
}

/* One page of DescribeStream. *last is the id where the next begins, in quotes; empty: there is none. */
static bool take_page(struct shards *shards, const struct quipu_reply *reply, struct arena *arena,
                      struct slice *last)
{
    static const char *const outer[] = {"StreamDescription"};
    static const char *const names[] = {"Shards", "LastEvaluatedShardId", "StreamStatus"};
    struct slice description, raws[3], raw;
    struct raw_walk elements;
    if (!raw_members(arena, library_json(reply), outer, &description, 1) ||
        !raw_members(arena, description, names, raws, 3) ||
        raw_walk_begin(&elements, arena, raws[0]) != JSON_ARRAY)
        return false;
    while (raw_walk_next(&elements, NULL, &raw)) take_shard(shards, raw, arena);
    *last = raws[1];
    shards->is_disabled = slice_equal(raw_string(arena, raws[2]), SLICE("DISABLED"));
    return true;
}

static void put_describe(struct buf *request, const struct shards *shards, struct slice last)
{
    request->len = 0;
    buf_text(request, "{\"StreamArn\":");
    buf_slice(request, buf_view(&shards->stream));
    if (last.len) {
        buf_text(request, ",\"ExclusiveStartShardId\":");
        buf_slice(request, last);
    }
    buf_byte(request, '}');
}

static enum quipu_result describe_page(struct shards *shards, struct arena *arena, struct slice *last)
{
    struct buf request = {0};
    put_describe(&request, shards, *last);
    struct quipu_reply *reply = library_call(shards->db, SLICE("DescribeStream"), buf_view(&request));
    buf_free(&request);
    if (reply->error) return shards_fail(shards, reply);
    if (!take_page(shards, reply, arena, last))
        return shards_fail(shards,
                           library_bad_reply(reply, "a stream's description is not of the service's form"));
    *last = arena_copy(arena, *last);
    quipu_reply_free(reply);
    return QUIPU_FOUND;
}

static void shard_free(struct shard *shard)
{
    buf_free(&shard->id);
    buf_free(&shard->parent);
    buf_free(&shard->iterator);
    buf_free(&shard->last_sequence);
    free(shard);
}

/* Those that were read and that the service has trimmed. */
static void forget_gone(struct shards *shards)
{
    for (struct shard **at = &shards->first; *at;) {
        struct shard *shard = *at;
        if (shard->state != SHARD_IS_DONE || shard->seen_at == shards->looks) {
            at = &shard->next;
            continue;
        }
        *at = shard->next;
        shard_free(shard);
    }
}

enum quipu_result shards_refresh(struct shards *shards)
{
    struct arena arena = {0};
    struct slice last = SLICE("");
    enum quipu_result result;
    shards->looks++;
    do result = describe_page(shards, &arena, &last);
    while (result == QUIPU_FOUND && last.len);
    arena_free(&arena);
    if (result == QUIPU_FOUND) forget_gone(shards);
    shards_release(shards);
    return result;
}

/* ---- their order ---- */

void shards_release(struct shards *shards)
{
    for (struct shard *shard = shards->first; shard; shard = shard->next) {
        if (shard->state != SHARD_WAITS) continue;
        const struct shard *parent = find_shard(
            shards, buf_view(&shard->parent)); /* NULL: trimmed, or never had one */
        if (!parent || parent->state == SHARD_IS_DONE) shard->state = SHARD_IS_READ;
    }
}

static bool has_child(const struct shards *shards, const struct shard *parent)
{
    for (const struct shard *shard = shards->first; shard; shard = shard->next)
        if (slice_equal(buf_view(&shard->parent), buf_view(&parent->id))) return true;
    return false;
}

bool shards_miss_children(const struct shards *shards)
{
    if (shards->is_disabled) return false;
    for (const struct shard *shard = shards->first; shard; shard = shard->next)
        if (shard->state == SHARD_IS_DONE && !has_child(shards, shard)) return true;
    return !shards->first;
}

bool shards_are_done(const struct shards *shards)
{
    for (const struct shard *shard = shards->first; shard; shard = shard->next)
        if (shard->state != SHARD_IS_DONE) return false;
    return true;
}

/* ---- iterators ---- */

static void put_iterator_request(struct buf *request, const struct shards *shards, const struct shard *shard)
{
    buf_text(request, "{\"StreamArn\":");
    buf_slice(request, buf_view(&shards->stream));
    buf_text(request, ",\"ShardId\":");
    json_put_string(request, buf_view(&shard->id));
    if (shard->last_sequence.len) {
        buf_text(request, ",\"ShardIteratorType\":\"AFTER_SEQUENCE_NUMBER\",\"SequenceNumber\":");
        json_put_string(request, buf_view(&shard->last_sequence));
    } else if (shard->from_latest) {
        buf_text(request, ",\"ShardIteratorType\":\"LATEST\"");
    } else {
        buf_text(request, ",\"ShardIteratorType\":\"TRIM_HORIZON\"");
    }
    buf_byte(request, '}');
}

static bool take_iterator(struct shard *shard, const struct quipu_reply *reply)
{
    static const char *const names[] = {"ShardIterator"};
    struct arena arena = {0};
    struct slice raw;
    bool fine = raw_members(&arena, library_json(reply), names, &raw, 1) && raw.len;
    text_set(&shard->iterator, raw);
    arena_free(&arena);
    return fine;
}

enum quipu_result shard_prepare(struct shards *shards, struct shard *shard)
{
    struct buf request = {0};
    if (shard->iterator.len) return QUIPU_FOUND;
    put_iterator_request(&request, shards, shard);
    struct quipu_reply *reply = library_call(shards->db, SLICE("GetShardIterator"), buf_view(&request));
    buf_free(&request);
    if (reply->error && strcmp(reply->error, "ResourceNotFoundException") == 0) {
        quipu_reply_free(reply); /* trimmed since it was described */
        shard->state = SHARD_IS_DONE;
        return QUIPU_NONE;
    }
    if (reply->error) return shards_fail(shards, reply);
    if (!take_iterator(shard, reply))
        return shards_fail(shards, library_bad_reply(reply, "an iterator is not of the service's form"));
    quipu_reply_free(reply);
    return QUIPU_FOUND;
}

/* Where nothing was read since LATEST nobody knows any more where that was: all from the begin, less what is
 * surely older. */
void shard_forget_iterator(struct shard *shard, int64_t opened_s)
{
    shard->iterator.len = 0;
    if (!shard->from_latest || shard->last_sequence.len) return;
    shard->from_latest = false;
    shard->oldest_s = opened_s - CLOCKS_DIFFER_S;
}

void shards_free(struct shards *shards)
{
    while (shards->first) {
        struct shard *shard = shards->first;
        shards->first = shard->next;
        shard_free(shard);
    }
    quipu_reply_free(shards->failure);
    buf_free(&shards->stream);
}
