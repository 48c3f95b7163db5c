/* ListStreams and DescribeStream. */
#include "api/streams.h"
#include "api/tables.h"

static void release_streams(struct stream **streams, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) engine_stream_release(streams[i]);
}

/* ---- ListStreams ---- */

enum { LIST_TABLE, LIST_LIMIT, LIST_START };

static const struct shape_member list_members[] = {
    [LIST_TABLE] = MEMBER("TableName", shape_index_name), /* the rules for names are the same */
    [LIST_LIMIT] = MEMBER("Limit", shape_limit),
    [LIST_START] = MEMBER("ExclusiveStartStreamArn", shape_stream_arn),
};
static const struct shape list_shape = STRUCT_SHAPE("ListStreamsInput", list_members);

/* The number behind which the page begins; false when refused. */
static bool list_start(struct api_call *call, const struct node *start, uint32_t *number)
{
    *number = 0;
    if (!start->present) return true;
    struct stream *stream = stream_of_arn(call, start->text);
    if (!stream) return false;
    *number = stream->number;
    engine_stream_release(stream);
    return true;
}

static void put_listed(struct api_call *call, const struct stream *stream)
{
    struct buf *out = call->reply;
    buf_text(out, "{\"StreamArn\":\"");
    put_stream_arn(out, call->api, stream);
    buf_byte(out, '"');
    put_text(out, "TableName", stream->table_name);
    buf_text(out, ",\"StreamLabel\":\"");
    put_stream_label(out, stream->since_ms);
    buf_text(out, "\"}");
}

static void put_list(struct api_call *call, const struct node *input, uint32_t after, int64_t limit)
{
    const struct node *table = node_member(input, LIST_TABLE);
    const struct stream *last = NULL;
    uint32_t count;
    struct stream **streams = engine_streams(call->api->engine, call->arena, &count);
    int64_t listed = 0;
    buf_text(call->reply, "{\"Streams\":[");
    for (uint32_t i = 0; i < count && listed <= limit; i++) {
        if (streams[i]->number <= after) continue;
        if (table->present && !slice_equal(table->text, streams[i]->table_name)) continue;
        if (listed++ == limit) break;
        if (last) buf_byte(call->reply, ',');
        put_listed(call, streams[i]);
        last = streams[i];
    }
    buf_byte(call->reply, ']');
    if (listed > limit) {
        buf_text(call->reply, ",\"LastEvaluatedStreamArn\":\"");
        put_stream_arn(call->reply, call->api, last);
        buf_byte(call->reply, '"');
    }
    buf_byte(call->reply, '}');
    release_streams(streams, count);
}

static void list_begin(struct api_call *call, const struct node *input)
{
    const struct node *limit = node_member(input, LIST_LIMIT);
    uint32_t after;
    if (limit->present && limit->integer > STREAM_PAGE_MAX) {
        invalid(call, INVALID_VALUES "Limit cannot be greater than the maximum allowed size: %d",
                STREAM_PAGE_MAX);
        return;
    }
    if (list_start(call, node_member(input, LIST_START), &after))
        put_list(call, input, after, limit->present ? limit->integer : STREAM_PAGE_MAX);
}

const struct operation operation_ListStreams = {
    .name = TEXT("ListStreams"),
    .input = &list_shape,
    .begin = list_begin,
};

/* ---- DescribeStream ---- */

enum { DESCRIBE_STREAM, DESCRIBE_LIMIT, DESCRIBE_START, DESCRIBE_FILTER };
enum { FILTER_TYPE, FILTER_SHARD };

static const char *const filter_types[] = {"CHILD_SHARDS", NULL};
static const struct shape shape_filter_type = ENUM_SHAPE(filter_types);
static const struct shape_member filter_members[] = {
    [FILTER_TYPE] = REQUIRED("Type", shape_filter_type),
    [FILTER_SHARD] = MEMBER("ShardId", shape_shard_id),
};
static const struct shape shape_filter = STRUCT_SHAPE("ShardFilter", filter_members);
static const struct shape_member describe_members[] = {
    [DESCRIBE_STREAM] = REQUIRED("StreamArn", shape_stream_arn),
    [DESCRIBE_LIMIT] = MEMBER("Limit", shape_limit),
    [DESCRIBE_START] = MEMBER("ExclusiveStartShardId", shape_shard_id),
    [DESCRIBE_FILTER] = MEMBER("ShardFilter", shape_filter),
};
static const struct shape describe_shape = STRUCT_SHAPE("DescribeStreamInput", describe_members);

/* A page of shards. */
struct shard_page {
    struct slice after; /* a shard's id, or empty */
    bool only_children;
    uint32_t parent; /* 0: of no shard at all */
    int64_t limit;
};

static void put_shard(struct buf *out, const struct stream *stream, const struct shard_description *shard)
{
    const struct shard_description *parent = shard_of_number(stream, shard->parent);
    buf_text(out, "{\"ShardId\":\"");
    put_shard_id(out, stream, shard);
    buf_text(out, "\",\"SequenceNumberRange\":{\"StartingSequenceNumber\":\"");
    put_sequence(out, shard->first);
    if (shard->last) {
        buf_text(out, "\",\"EndingSequenceNumber\":\"");
        put_sequence(out, shard->last);
    }
    buf_text(out, "\"}");
    if (parent) {
        buf_text(out, ",\"ParentShardId\":\"");
        put_shard_id(out, stream, parent);
        buf_byte(out, '"');
    }
    buf_byte(out, '}');
}

/* Behind a shard that is there by its place, behind one that is not by its name. */
static uint32_t first_of_page(const struct stream *stream, struct slice after)
{
    const struct shard_description *known = after.len ? shard_of_id(stream, after) : NULL;
    if (known) return (uint32_t)(known - stream->shards) + 1;
    uint32_t first = 0;
    struct buf id = {0};
    for (; after.len && first < stream->shard_count; first++) {
        id.len = 0;
        put_shard_id(&id, stream, &stream->shards[first]);
        if (slice_compare(buf_view(&id), after) > 0) break;
    }
    buf_free(&id);
    return first;
}

static void put_shards(struct buf *out, const struct stream *stream, const struct shard_page *page)
{
    const struct shard_description *last = NULL;
    int64_t listed = 0;
    buf_text(out, ",\"Shards\":[");
    for (uint32_t i = first_of_page(stream, page->after); i < stream->shard_count; i++) {
        const struct shard_description *shard = &stream->shards[i];
        if (page->only_children && (!page->parent || shard->parent != page->parent)) continue;
        if (listed++ == page->limit) break;
        if (last) buf_byte(out, ',');
        put_shard(out, stream, shard);
        last = shard;
    }
    buf_byte(out, ']');
    if (listed <= page->limit) return;
    buf_text(out, ",\"LastEvaluatedShardId\":\"");
    put_shard_id(out, stream, last);
    buf_byte(out, '"');
}

static void put_stream(struct api_call *call, const struct stream *stream, const struct shard_page *page)
{
    struct buf *out = call->reply;
    buf_text(out, "{\"StreamDescription\":{\"StreamArn\":\"");
    put_stream_arn(out, call->api, stream);
    buf_text(out, "\",\"StreamLabel\":\"");
    put_stream_label(out, stream->since_ms);
    buf_printf(out, "\",\"StreamStatus\":\"%s\",\"StreamViewType\":\"%s\"",
               stream->disabled_ms ? "DISABLED" : "ENABLED", stream_view_name(stream->view));
    put_time(out, "CreationRequestDateTime", stream->since_ms);
    put_text(out, "TableName", stream->table_name);
    buf_text(out, ",\"KeySchema\":[{\"AttributeName\":");
    json_put_string(out, stream->hash);
    buf_text(out, ",\"KeyType\":\"HASH\"}");
    if (stream->range.len) {
        buf_text(out, ",{\"AttributeName\":");
        json_put_string(out, stream->range);
        buf_text(out, ",\"KeyType\":\"RANGE\"}");
    }
    buf_byte(out, ']');
    put_shards(out, stream, page);
    buf_text(out, "}}");
}

static struct shard_page page_of(const struct node *input, const struct stream *stream)
{
    const struct node *limit = node_member(input, DESCRIBE_LIMIT),
                      *filter = node_member(input, DESCRIBE_FILTER);
    struct shard_page page = {.after = node_member(input, DESCRIBE_START)->text,
                              .only_children = filter->present,
                              .limit = limit->present ? limit->integer : STREAM_PAGE_MAX};
    if (filter->present) {
        const struct shard_description *parent = shard_of_id(stream, node_member(filter, FILTER_SHARD)->text);
        if (parent) page.parent = parent->number;
    }
    return page;
}

static void describe_begin(struct api_call *call, const struct node *input)
{
    const struct node *limit = node_member(input, DESCRIBE_LIMIT);
    if (limit->present && limit->integer > STREAM_PAGE_MAX) {
        invalid(call, INVALID_VALUES "Limit cannot be greater than the maximum: %d", STREAM_PAGE_MAX);
        return;
    }
    const struct node *filter = node_member(input, DESCRIBE_FILTER);
    if (filter->present && !node_member(filter, FILTER_SHARD)->present) {
        invalid(call, INVALID_VALUES "ShardId must be provided when ShardFilter type is CHILD_SHARDS");
        return;
    }
    struct stream *stream = stream_of_arn(call, node_member(input, DESCRIBE_STREAM)->text);
    if (!stream) return;
    struct shard_page page = page_of(input, stream);
    put_stream(call, stream, &page);
    engine_stream_release(stream);
}

const struct operation operation_DescribeStream = {
    .name = TEXT("DescribeStream"),
    .input = &describe_shape,
    .begin = describe_begin,
};
