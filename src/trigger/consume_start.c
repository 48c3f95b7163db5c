/* A feed's first and last calls: our table is made, LATEST is written down, positions are deleted.
 *
 * LATEST means the moment at which the mapping began, also when the server is started anew before the
 * first record came. The service tells no sequence number for it, only an iterator; so each shard's
 * position keeps that iterator, which is good for a while, and the time, by which older records are left
 * out afterwards. The item "start" comes last: shards that have no position by then came later and are
 * read from their begin. */
#include "base/log.h"
#include "trigger/consume.h"

#define TABLE_WAIT_US 300000 /* between looks at a table that is being made */
#define DELETES_MAX   25     /* of one BatchWriteItem */

/* ---- our table ---- */

static void put_table_name(struct buf *out, const struct feed *feed)
{
    buf_text(out, "{\"TableName\":");
    buf_slice(out, buf_view(&feed->consumer->table));
}

static bool is_active(struct errand *errand)
{
    static const char *const outer[] = {"Table"}, *const inner[] = {"TableStatus"};
    struct slice table, status;
    return raw_members(&errand->arena, buf_view(&errand->reply), outer, &table, 1) &&
           raw_members(&errand->arena, table, inner, &status, 1) &&
           slice_equal(raw_string(&errand->arena, status), SLICE("ACTIVE"));
}

static void table_answered(struct errand *errand)
{
    struct consumer *consumer = errand->consumer;
    struct feed *feed = errand->feed;
    enum dynamo_fault fault = errand_fault(errand);
    uint32_t failures = feed->failures;
    bool is_fine = feed_answered(errand);
    consumer->positions_state = POSITIONS_UNKNOWN;
    if (is_fine && is_active(errand)) {
        consumer->positions_state = POSITIONS_READY;
    } else if (is_fine) {
        feed_wait(feed, TABLE_WAIT_US);
    } else if (fault == DYNAMO_MISSING) {
        consumer->positions_state = POSITIONS_MISSING;
        feed->retry = (struct due){0};
    } else if (!failures) {
        log_line("triggers: the table of positions cannot be described: %s: %.*s",
                 errand->call.error ? errand->call.error : "", SLICE_ARG(errand_message(errand)));
    }
    for (struct feed *other = consumer->feeds; other; other = other->next) feed_touch(other);
}

/* Made by us, by somebody else, or not at all: looking again tells. */
static void table_made(struct errand *errand)
{
    errand->consumer->positions_state = POSITIONS_UNKNOWN;
    feed_answered(errand);
}

static void make_table(struct feed *feed)
{
    struct errand *errand = feed_ask(feed, table_made);
    put_table_name(&errand->request, feed);
    buf_text(&errand->request, ",\"BillingMode\":\"PAY_PER_REQUEST\","
                               "\"AttributeDefinitions\":[{\"AttributeName\":\"mapping\","
                               "\"AttributeType\":\"S\"},{\"AttributeName\":\"shard\","
                               "\"AttributeType\":\"S\"}],\"KeySchema\":[{\"AttributeName\":\"mapping\","
                               "\"KeyType\":\"HASH\"},{\"AttributeName\":\"shard\","
                               "\"KeyType\":\"RANGE\"}]}");
    errand_call(errand, SLICE("CreateTable"));
}

static void look_for_table(struct feed *feed)
{
    struct errand *errand = feed_ask(feed, table_answered);
    put_table_name(&errand->request, feed);
    buf_byte(&errand->request, '}');
    errand_call(errand, SLICE("DescribeTable"));
}

/* One feed asks; the others wait for its answer. */
void table_attend(struct feed *feed)
{
    struct consumer *consumer = feed->consumer;
    enum positions_state state = consumer->positions_state;
    if (state == POSITIONS_READY) feed_enter(feed, FEED_POSITIONS);
    if (state == POSITIONS_READY || state == POSITIONS_ASKED) return;
    consumer->positions_state = POSITIONS_ASKED;
    if (state == POSITIONS_MISSING)
        make_table(feed);
    else
        look_for_table(feed);
}

/* ---- LATEST ---- */

/* Then it came into being after the mapping did: all of it is wanted. */
static bool continues_a_marked_one(const struct feed *feed, const struct strand *strand)
{
    const struct strand *parent = strand->parent[0] ? strand_find(feed, slice_of(strand->parent)) : NULL;
    return parent && parent->seen.exists && !parent->seen.ended;
}

/* The next shard that LATEST means and that has no position. */
static struct strand *next_to_mark(struct feed *feed)
{
    for (struct strand *strand = feed->strands; strand; strand = strand->next)
        if (!strand->seen.exists && !strand->is_marked && strand_is_listed(strand) &&
            !continues_a_marked_one(feed, strand))
            return strand;
    return NULL;
}

static void marked(struct errand *errand)
{
    enum dynamo_fault fault = errand_fault(errand);
    bool is_there = feed_answered(errand) || fault == DYNAMO_CONDITION;
    if (!is_there) return;
    errand->feed->retry = (struct due){0};
    errand->strand->is_marked = true;
}

static void mark(struct feed *feed, struct strand *strand, struct slice iterator)
{
    struct errand *errand = feed_ask_for(feed, strand, marked);
    struct new_position fresh = {.at = POINT_LATEST,
                                 .lanes = feed->mapping->lanes,
                                 .is_ended = strand->is_closed,
                                 .iterator = iterator};
    put_position_create(&errand->request, strand, &fresh);
    errand_call(errand, SLICE("PutItem"));
}

static void iterator_answered(struct errand *errand)
{
    struct feed *feed = errand->feed;
    struct slice iterator;
    if (!feed_answered(errand)) {
        if (errand_fault(errand) == DYNAMO_MISSING) errand->strand->is_marked = true; /* trimmed since */
        return;
    }
    if (feed->stage != FEED_START) return;
    if (iterator_read(errand, &iterator))
        mark(feed, errand->strand, iterator);
    else
        feed_failed(feed);
}

static void ask_for_latest(struct feed *feed, struct strand *strand)
{
    struct errand *errand = feed_ask_for(feed, strand, iterator_answered);
    put_iterator_question(&errand->request, strand, SLICE("LATEST"), NULL);
    errand_call(errand, SLICE("GetShardIterator"));
}

/* The items that were made, by us or by others at the same time, are read like any other. */
static void started(struct errand *errand)
{
    if (feed_answered(errand) && errand->feed->stage == FEED_START) feed_enter(errand->feed, FEED_POSITIONS);
}

void start_attend(struct feed *feed)
{
    struct strand *strand = next_to_mark(feed);
    if (strand && strand->is_closed) {
        mark(feed, strand, SLICE(""));
    } else if (strand) {
        ask_for_latest(feed, strand);
    } else {
        struct errand *errand = feed_ask(feed, started);
        put_table_name(&errand->request, feed);
        buf_text(&errand->request, ",\"Item\":");
        put_position_key(&errand->request, feed, SLICE("start"));
        buf_byte(&errand->request, '}');
        errand_call(errand, SLICE("PutItem"));
    }
}

/* ---- the end ---- */

static void deleted(struct errand *errand)
{
    feed_answered(errand);
}

static void put_deletion(struct errand *errand, struct slice key)
{
    struct buf *out = &errand->consumer->text;
    if (out->len) buf_byte(out, ',');
    buf_text(out, "{\"DeleteRequest\":{\"Key\":");
    buf_slice(out, key);
    buf_text(out, "}}");
}

static void feed_is_gone(struct feed *feed)
{
    feed->stage = FEED_GONE;
    feed->consumer->world.reached(feed->consumer->world.self, feed->mapping->id, MAPPING_DELETING);
}

static void keys_answered(struct errand *errand)
{
    static const char *const names[] = {"Items"};
    struct feed *feed = errand->feed;
    struct buf *deletions = &feed->consumer->text;
    struct slice items;
    bool is_fine = feed_answered(errand);
    deletions->len = 0;
    if (is_fine && raw_members(&errand->arena, buf_view(&errand->reply), names, &items, 1))
        errand_each(errand, items, put_deletion);
    if (deletions->len) {
        struct errand *deletion = feed_ask(feed, deleted);
        buf_text(&deletion->request, "{\"RequestItems\":{");
        buf_slice(&deletion->request, buf_view(&feed->consumer->table));
        buf_text(&deletion->request, ":[");
        buf_slice(&deletion->request, buf_view(deletions));
        buf_text(&deletion->request, "]}}");
        errand_call(deletion, SLICE("BatchWriteItem"));
    } else if (is_fine || errand_fault(errand) == DYNAMO_MISSING) {
        feed_is_gone(feed);
    }
}

/* All items of the mapping, a few at a time, until there is none. */
void delete_attend(struct feed *feed)
{
    struct errand *errand = feed_ask(feed, keys_answered);
    struct buf *out = &errand->request;
    put_table_name(out, feed);
    buf_text(out, ",\"ConsistentRead\":true,\"KeyConditionExpression\":\"#m = :m\","
                  "\"ProjectionExpression\":\"#m, #s\",\"Limit\":");
    buf_decimal(out, DELETES_MAX);
    buf_text(out, ",\"ExpressionAttributeNames\":{\"#m\":\"mapping\",\"#s\":\"shard\"},"
                  "\"ExpressionAttributeValues\":{\":m\":{\"S\":");
    json_put_string(out, feed->mapping->id);
    buf_text(out, "}}}");
    errand_call(errand, SLICE("Query"));
}
