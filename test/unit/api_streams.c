/* ListStreams, DescribeStream, GetShardIterator and GetRecords: names, pages, records, iterators and their
 * ends. */
#include <stdio.h>

#include "unit/api_fixture.h"

#define TEXT_MAX 600

#define TABLE(name, view)                                                                                    \
    "{\"TableName\":\"" name                                                                                 \
    "\",\"AttributeDefinitions\":[{\"AttributeName\":\"p\",\"AttributeType\":\"S\"}],"                       \
    "\"KeySchema\":[{\"AttributeName\":\"p\",\"KeyType\":\"HASH\"}],\"BillingMode\":\"PAY_PER_REQUEST\","    \
    "\"StreamSpecification\":{\"StreamEnabled\":true,\"StreamViewType\":\"" view "\"}}"
#define ARN          "arn:aws:dynamodb:us-east-1:000000000000:table/abc/stream/2026-11-15T04:13:25.340"
#define HOUR_MS      (3600 * INT64_C(1000))
#define FIRST_SHARD  "shardId-00000001794716005340-0000000200000001"
#define NOT_FOUND(a) "Requested resource not found: Stream: " a " not found"

/* ---- helpers ---- */

static struct slice ask_with(struct world *world, const char *operation, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static struct slice ask_with(struct world *world, const char *operation, const char *format, ...)
{
    static char body[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(body, sizeof body, format, args);
    va_end(args);
    return ask(world, operation, body);
}

/* Copies what stands behind the last occurrence of a mark, up to the next quote; "" when there is none. */
static const char *text_behind(struct slice reply, const char *mark, char out[TEXT_MAX])
{
    size_t len = strlen(mark);
    out[0] = 0;
    for (size_t i = 0; i + len <= reply.len; i++) {
        if (memcmp(reply.data + i, mark, len) != 0) continue;
        size_t end = i + len;
        while (end < reply.len && reply.data[end] != '"' && end - i - len < TEXT_MAX - 1) end++;
        memcpy(out, reply.data + i + len, end - i - len);
        out[end - i - len] = 0;
    }
    return out;
}

static unsigned count_of(struct slice reply, const char *mark)
{
    size_t len = strlen(mark);
    unsigned count = 0;
    for (size_t i = 0; i + len <= reply.len; i++) count += memcmp(reply.data + i, mark, len) == 0;
    return count;
}

/* An iterator at a place of a shard; sequence NULL: none. */
static const char *iterator_at(struct world *world, const char *arn, const char *shard, const char *type,
                               const char *sequence, char out[TEXT_MAX])
{
    struct slice reply = ask_with(
        world, "GetShardIterator",
        "{\"StreamArn\":\"%s\",\"ShardId\":\"%s\",\"ShardIteratorType\":\"%s\"%s%s%s}", arn, shard, type,
        sequence ? ",\"SequenceNumber\":\"" : "", sequence ? sequence : "", sequence ? "\"" : "");
    if (world->status != 200) test_failed(__FILE__, __LINE__, "%.*s", SLICE_ARG(reply));
    return text_behind(reply, "\"ShardIterator\":\"", out);
}

static struct slice records_at(struct world *world, const char *iterator)
{
    struct slice reply = ask_with(world, "GetRecords", "{\"ShardIterator\":\"%s\"}", iterator);
    if (world->status != 200) test_failed(__FILE__, __LINE__, "%.*s", SLICE_ARG(reply));
    return reply;
}

static void put(struct world *world, const char *table, const char *key, int number)
{
    ask_with(world, "PutItem", "{\"TableName\":\"%s\",\"Item\":{\"p\":{\"S\":\"%s\"},\"n\":{\"N\":\"%d\"}}}",
             table, key, number);
    CHECK_INT(world->status, 200);
}

static void delete (struct world *world, const char *table, const char *key)
{
    ask_with(world, "DeleteItem", "{\"TableName\":\"%s\",\"Key\":{\"p\":{\"S\":\"%s\"}}}", table, key);
    CHECK_INT(world->status, 200);
}

struct roll {
    struct commit commit;
    uint32_t stream, shard;
    bool split, done;
};

static void apply_roll(struct commit *commit, struct batch *batch)
{
    struct roll *roll = (struct roll *)commit;
    roll->done = engine_shard_roll(batch, roll->stream, roll->shard, roll->split);
}

static void roll_shard(struct world *world, uint32_t stream, uint32_t shard, bool split)
{
    struct roll roll = {.commit = {.apply = apply_roll}, .stream = stream, .shard = shard, .split = split};
    engine_commit(world->engine, &roll.commit);
    CHECK(roll.done && !roll.commit.failed);
}

static void keep_house(struct world *world)
{
    while (engine_keep_house(world->engine)) continue;
}

/* ---- streams ---- */

TEST(a_stream_is_listed_and_described)
{
    struct world world;
    world_open_with(&world, 1, 0);
    CHECK_FINE(&world, "CreateTable", TABLE("abc", "NEW_AND_OLD_IMAGES"));
    CHECK_ASK(&world, "ListStreams", "{}",
              "{\"Streams\":[{\"StreamArn\":\"" ARN "\",\"TableName\":\"abc\","
              "\"StreamLabel\":\"2026-11-15T04:13:25.340\"}]}");
    CHECK_ASK(&world, "ListStreams", "{\"TableName\":\"other\"}", "{\"Streams\":[]}");
    CHECK_ASK(
        &world, "DescribeStream", "{\"StreamArn\":\"" ARN "\"}",
        "{\"StreamDescription\":{\"StreamArn\":\"" ARN
        "\",\"StreamLabel\":\"2026-11-15T04:13:25.340\",\"StreamStatus\":\"ENABLED\","
        "\"StreamViewType\":\"NEW_AND_OLD_IMAGES\",\"CreationRequestDateTime\":1794716005.340,\"TableName\":\"abc\","
        "\"KeySchema\":[{\"AttributeName\":\"p\",\"KeyType\":\"HASH\"}],\"Shards\":[{"
        "\"ShardId\":\"" FIRST_SHARD "\",\"SequenceNumberRange\":{"
        "\"StartingSequenceNumber\":\"100000000000000000001\"}}]}}");
    world_close(&world);
}

TEST(streams_come_in_pages)
{
    struct world world;
    char last[TEXT_MAX];
    world_open(&world);
    CHECK_FINE(&world, "CreateTable", TABLE("one", "KEYS_ONLY"));
    CHECK_FINE(&world, "CreateTable", TABLE("two", "KEYS_ONLY"));
    CHECK_FINE(&world, "CreateTable", TABLE("three", "KEYS_ONLY"));
    struct slice reply = ask(&world, "ListStreams", "{\"Limit\":2}");
    CHECK_INT(count_of(reply, "\"StreamLabel\""), 2);
    text_behind(reply, "\"LastEvaluatedStreamArn\":\"", last);
    CHECK_CONTAINS(slice_of(last), "table/two/stream/");
    reply = ask_with(&world, "ListStreams", "{\"Limit\":2,\"ExclusiveStartStreamArn\":\"%s\"}", last);
    CHECK_INT(count_of(reply, "\"StreamLabel\""), 1);
    CHECK_CONTAINS(reply, "\"TableName\":\"three\"");
    CHECK(!slice_contains(reply, SLICE("LastEvaluatedStreamArn")));
    CHECK(!slice_contains(ask(&world, "ListStreams", "{\"Limit\":3}"), SLICE("LastEvaluatedStreamArn")));
    world_close(&world);
}

TEST(what_is_no_stream_is_refused)
{
    struct world world;
    world_open(&world);
    CHECK_FINE(&world, "CreateTable", TABLE("abc", "KEYS_ONLY"));
    CHECK_INVALID(
        &world, "ListStreams", "{\"Limit\":0}",
        "1 validation error detected: Value '0' at 'limit' failed to satisfy constraint: Member must "
        "have value greater than or equal to 1");
    CHECK_INVALID(
        &world, "ListStreams", "{\"Limit\":101}",
        "One or more parameter values were invalid: Limit cannot be greater than the maximum allowed "
        "size: 100");
    CHECK_INVALID(&world, "ListStreams",
                  "{\"ExclusiveStartStreamArn\":\"kossaapaaasdafsdaasdasdasdasasdasfadfadfasdasdas\"}",
                  "Invalid StreamArn");
    CHECK_INVALID(
        &world, "DescribeStream", "{}",
        "1 validation error detected: Value null at 'streamArn' failed to satisfy constraint: Member "
        "must not be null");
    CHECK_INVALID(&world, "DescribeStream",
                  "{\"StreamArn\":\"arn:aws:dynamodb:us-east-1:000000000000:table/abc\"}",
                  "Invalid StreamArn");
    CHECK_REFUSED(&world, "DescribeStream", "{\"StreamArn\":\"" ARN "9\"}", "ResourceNotFoundException",
                  NOT_FOUND(ARN "9"));
    CHECK_REFUSED(&world, "DescribeStream",
                  "{\"StreamArn\":\"arn:aws:dynamodb:eu-west-1:000000000000:table/abc/stream/x\"}",
                  "ResourceNotFoundException",
                  NOT_FOUND("arn:aws:dynamodb:eu-west-1:000000000000:table/abc/stream/x"));
    CHECK_INVALID(&world, "DescribeStream", "{\"StreamArn\":\"" ARN "\",\"Limit\":101}",
                  "One or more parameter values were invalid: Limit cannot be greater than the maximum: 100");
    CHECK_INVALID(
        &world, "DescribeStream", "{\"StreamArn\":\"" ARN "\",\"ShardFilter\":{\"Type\":\"X\"}}",
        "1 validation error detected: Value 'X' at 'shardFilter.type' failed to satisfy constraint: "
        "Member must satisfy enum value set: [CHILD_SHARDS]");
    world_close(&world);
}

/* ---- shards ---- */

TEST(shards_have_parents_and_pages)
{
    struct world world;
    char second[TEXT_MAX], child[TEXT_MAX];
    world_open_with(&world, 2, 0);
    CHECK_FINE(&world, "CreateTable", TABLE("abc", "KEYS_ONLY"));
    world.now_ms += 1000;
    roll_shard(&world, 2, 1, true);

    struct slice reply = ask(&world, "DescribeStream", "{\"StreamArn\":\"" ARN "\"}");
    CHECK_INT(count_of(reply, "\"ShardId\""), 4);
    CHECK_INT(count_of(reply, "\"ParentShardId\":\"" FIRST_SHARD "\""), 2);
    CHECK_INT(count_of(reply, "EndingSequenceNumber"), 1);

    reply = ask(&world, "DescribeStream", "{\"StreamArn\":\"" ARN "\",\"Limit\":2}");
    CHECK_INT(count_of(reply, "\"ShardId\""), 2);
    text_behind(reply, "\"LastEvaluatedShardId\":\"", second);
    reply = ask_with(&world, "DescribeStream", "{\"StreamArn\":\"" ARN "\",\"ExclusiveStartShardId\":\"%s\"}",
                     second);
    CHECK_INT(count_of(reply, "\"ShardId\""), 2);
    CHECK(!slice_contains(reply, SLICE("LastEvaluatedShardId")));
    text_behind(reply, "{\"ShardId\":\"", child);
    reply = ask_with(&world, "DescribeStream", "{\"StreamArn\":\"" ARN "\",\"ExclusiveStartShardId\":\"%s\"}",
                     child);
    CHECK_CONTAINS(reply, "\"Shards\":[]");

    /* One that is not there any more is placed by its name. */
    reply = ask(&world, "DescribeStream",
                "{\"StreamArn\":\"" ARN
                "\",\"ExclusiveStartShardId\":\"shardId-00000001794716005340-ffffffffffffffff\"}");
    CHECK_INT(count_of(reply, "\"ShardId\""), 2);

    reply = ask(&world, "DescribeStream",
                "{\"StreamArn\":\"" ARN "\",\"ShardFilter\":{\"Type\":\"CHILD_SHARDS\","
                "\"ShardId\":\"" FIRST_SHARD "\"}}");
    CHECK_INT(count_of(reply, "{\"ShardId\""), 2);
    CHECK_INT(count_of(reply, "\"ParentShardId\""), 2);
    reply = ask_with(
        &world, "DescribeStream",
        "{\"StreamArn\":\"" ARN "\",\"ShardFilter\":{\"Type\":\"CHILD_SHARDS\",\"ShardId\":\"%s\"}}", second);
    CHECK_CONTAINS(reply, "\"Shards\":[]");
    CHECK_CONTAINS(ask(&world, "DescribeStream",
                       "{\"StreamArn\":\"" ARN "\",\"ShardFilter\":{\"Type\":\"CHILD_SHARDS\"}}"),
                   "ValidationException"); /* the service's words are not known */
    world_close(&world);
}

TEST(a_closed_shard_ends)
{
    struct world world;
    char at[TEXT_MAX], latest[TEXT_MAX], next[TEXT_MAX];
    world_open_with(&world, 1, 0);
    CHECK_FINE(&world, "CreateTable", TABLE("abc", "KEYS_ONLY"));
    put(&world, "abc", "x", 1);
    put(&world, "abc", "y", 1);
    iterator_at(&world, ARN, FIRST_SHARD, "TRIM_HORIZON", NULL, at);
    iterator_at(&world, ARN, FIRST_SHARD, "LATEST", NULL, latest);
    roll_shard(&world, 2, 1, false);
    put(&world, "abc", "z", 1);

    struct slice reply = ask_with(&world, "GetRecords", "{\"ShardIterator\":\"%s\",\"Limit\":1}", at);
    CHECK_INT(count_of(reply, "\"eventID\""), 1);
    text_behind(reply, "\"NextShardIterator\":\"", next);
    CHECK(*next);
    /* The page that holds the last record says that there is no other. */
    reply = ask_with(&world, "GetRecords", "{\"ShardIterator\":\"%s\",\"Limit\":1}", next);
    CHECK_CONTAINS(reply, "\"Keys\":{\"p\":{\"S\":\"y\"}}");
    CHECK(!slice_contains(reply, SLICE("NextShardIterator")));
    CHECK_TEXT(records_at(&world, latest), "{\"Records\":[]}");
    iterator_at(&world, ARN, FIRST_SHARD, "LATEST", NULL, latest);
    CHECK_TEXT(records_at(&world, latest), "{\"Records\":[]}");
    world_close(&world);
}

/* ---- records ---- */

TEST(records_are_as_the_service_shapes_them)
{
    struct world world;
    char at[TEXT_MAX];
    world_open_with(&world, 1, 0);
    CHECK_FINE(&world, "CreateTable", TABLE("abc", "NEW_AND_OLD_IMAGES"));
    put(&world, "abc", "x", 1);
    put(&world, "abc", "x", 2);
    put(&world, "abc", "x", 2);
    delete (&world, "abc", "x");
    struct slice reply = records_at(&world, iterator_at(&world, ARN, FIRST_SHARD, "TRIM_HORIZON", NULL, at));
    CHECK_INT(count_of(reply, "\"eventID\":\""), 3); /* what changes nothing leaves no record */
    CHECK_CONTAINS(
        reply, "0000000000000001\",\"eventName\":\"INSERT\",\"eventVersion\":\"1.1\","
               "\"eventSource\":\"aws:dynamodb\",\"awsRegion\":\"us-east-1\","
               "\"dynamodb\":{\"ApproximateCreationDateTime\":1794716005,\"Keys\":{\"p\":{\"S\":\"x\"}},"
               "\"NewImage\":{\"n\":{\"N\":\"1\"},\"p\":{\"S\":\"x\"}},"
               "\"SequenceNumber\":\"100000000000000000001\",\"SizeBytes\":7,"
               "\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"}},{");
    CHECK_CONTAINS(reply, "\"eventName\":\"MODIFY\"");
    CHECK_CONTAINS(reply, "\"NewImage\":{\"n\":{\"N\":\"2\"},\"p\":{\"S\":\"x\"}},"
                          "\"OldImage\":{\"n\":{\"N\":\"1\"},\"p\":{\"S\":\"x\"}},"
                          "\"SequenceNumber\":\"100000000000000000002\",\"SizeBytes\":12,");
    CHECK_CONTAINS(reply, "\"eventName\":\"REMOVE\"");
    CHECK_CONTAINS(reply,
                   "\"Keys\":{\"p\":{\"S\":\"x\"}},\"OldImage\":{\"n\":{\"N\":\"2\"},\"p\":{\"S\":\"x\"}},"
                   "\"SequenceNumber\":\"100000000000000000003\",");
    CHECK(!slice_contains(reply, SLICE("userIdentity")));
    world_close(&world);
}

TEST(records_show_what_the_view_has)
{
    static const struct {
        const char *table, *new_image, *old_image;
    } views[] = {
        {TABLE("abc", "KEYS_ONLY"), NULL, NULL},
        {TABLE("abc", "NEW_IMAGE"), "\"NewImage\":{\"n\":{\"N\":\"2\"}", NULL},
        {TABLE("abc", "OLD_IMAGE"), NULL, "\"OldImage\":{\"n\":{\"N\":\"1\"}"},
    };
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        struct world world;
        char at[TEXT_MAX];
        world_open_with(&world, 1, 0);
        CHECK_FINE(&world, "CreateTable", views[i].table);
        put(&world, "abc", "x", 1);
        iterator_at(&world, ARN, FIRST_SHARD, "LATEST", NULL, at);
        put(&world, "abc", "x", 2);
        struct slice reply = records_at(&world, at);
        CHECK_INT(count_of(reply, "\"Keys\":{\"p\":{\"S\":\"x\"}}"), 1);
        CHECK_INT(count_of(reply, "\"NewImage\""), views[i].new_image != NULL);
        CHECK_INT(count_of(reply, "\"OldImage\""), views[i].old_image != NULL);
        if (views[i].new_image) CHECK_CONTAINS(reply, views[i].new_image);
        if (views[i].old_image) CHECK_CONTAINS(reply, views[i].old_image);
        world_close(&world);
    }
}

TEST(an_expired_item_names_the_service)
{
    struct world world;
    char at[TEXT_MAX];
    world_open_with(&world, 1, 0);
    CHECK_FINE(&world, "CreateTable", TABLE("abc", "OLD_IMAGE"));
    CHECK_FINE(
        &world, "UpdateTimeToLive",
        "{\"TableName\":\"abc\",\"TimeToLiveSpecification\":{\"Enabled\":true,\"AttributeName\":\"n\"}}");
    put(&world, "abc", "x", (int)(world.now_ms / 1000) + 60);
    iterator_at(&world, ARN, FIRST_SHARD, "LATEST", NULL, at);
    world.now_ms += 2 * 60 * 1000;
    keep_house(&world);
    struct slice reply = records_at(&world, at);
    CHECK_CONTAINS(reply, "\"eventName\":\"REMOVE\"");
    CHECK_CONTAINS(reply,
                   "},\"userIdentity\":{\"PrincipalId\":\"dynamodb.amazonaws.com\",\"Type\":\"Service\"}}],");
    world_close(&world);
}

TEST(records_come_in_pages)
{
    struct world world;
    char at[TEXT_MAX], key[20];
    unsigned seen = 0, pages = 0;
    world_open_with(&world, 1, 0);
    CHECK_FINE(&world, "CreateTable", TABLE("abc", "NEW_IMAGE"));
    iterator_at(&world, ARN, FIRST_SHARD, "LATEST", NULL, at);
    for (int i = 0; i < 1003; i++) {
        snprintf(key, sizeof key, "%d", i);
        put(&world, "abc", key, i);
    }
    CHECK_INT(count_of(records_at(&world, at), "\"eventID\""), 1000);
    for (unsigned count = 1; count; pages++) {
        struct slice reply = ask_with(&world, "GetRecords", "{\"ShardIterator\":\"%s\",\"Limit\":400}", at);
        count = count_of(reply, "\"eventID\"");
        seen += count;
        CHECK(*text_behind(reply, "\"NextShardIterator\":\"", at));
    }
    CHECK_INT(seen, 1003);
    CHECK_INT(pages, 4);
    CHECK_INVALID(&world, "GetRecords", "{\"ShardIterator\":\"x\",\"Limit\":1001}",
                  "One or more parameter values were invalid: Limit should be less than or equal to 1000");
    world_close(&world);
}

TEST(a_page_of_large_records_is_about_a_megabyte)
{
    struct world world;
    char at[TEXT_MAX];
    static char body[310000];
    world_open_with(&world, 1, 0);
    CHECK_FINE(&world, "CreateTable", TABLE("abc", "NEW_IMAGE"));
    iterator_at(&world, ARN, FIRST_SHARD, "LATEST", NULL, at);
    for (int i = 0; i < 5; i++) {
        int len = snprintf(body, sizeof body,
                           "{\"TableName\":\"abc\",\"Item\":{\"p\":{\"S\":\"%d\"},\"s\":{\"S\":\"", i);
        memset(body + len, 'x', 300000);
        strcpy(body + len + 300000, "\"}}}");
        CHECK_FINE(&world, "PutItem", body);
    }
    struct slice reply = records_at(&world, at);
    CHECK_INT(count_of(reply, "\"eventID\""), 3);
    CHECK_INT(count_of(records_at(&world, text_behind(reply, "\"NextShardIterator\":\"", at)), "\"eventID\""),
              2);
    world_close(&world);
}

/* ---- iterators ---- */

TEST(iterators_begin_where_they_are_told)
{
    struct world world;
    char at[TEXT_MAX];
    world_open_with(&world, 1, 0);
    CHECK_FINE(&world, "CreateTable", TABLE("abc", "KEYS_ONLY"));
    put(&world, "abc", "x", 1);
    put(&world, "abc", "y", 1);
    put(&world, "abc", "z", 1);
#define SEEN(type, sequence)                                                                                 \
    count_of(records_at(&world, iterator_at(&world, ARN, FIRST_SHARD, type, sequence, at)), "\"eventID\"")
    CHECK_INT(SEEN("TRIM_HORIZON", NULL), 3);
    CHECK_INT(SEEN("LATEST", NULL), 0);
    CHECK_INT(SEEN("AT_SEQUENCE_NUMBER", "100000000000000000002"), 2);
    CHECK_INT(SEEN("AFTER_SEQUENCE_NUMBER", "100000000000000000002"), 1);
    CHECK_INT(SEEN("AFTER_SEQUENCE_NUMBER", "100000000000000000003"), 0);
#undef SEEN
    world_close(&world);
}

TEST(an_idle_reader_moves_on)
{
    struct world world;
    char at[TEXT_MAX];
    world_open_with(&world, 1, HOUR_MS);
    CHECK_FINE(&world, "CreateTable", TABLE("abc", "KEYS_ONLY"));
    CHECK_FINE(&world, "CreateTable", TABLE("two", "KEYS_ONLY"));
    iterator_at(&world, ARN, FIRST_SHARD, "TRIM_HORIZON", NULL, at);
    for (int i = 0; i < 15; i++) { /* others' records are cut off below where it stands */
        put(&world, "two", "x", i);
        text_behind(records_at(&world, at), "\"NextShardIterator\":\"", at);
        world.now_ms += 14 * 60 * 1000;
        keep_house(&world);
    }
    put(&world, "abc", "x", 1);
    CHECK_INT(count_of(records_at(&world, at), "\"eventID\""), 1);
    world_close(&world);
}

#define ITERATOR(rest) "{\"StreamArn\":\"" ARN "\",\"ShardId\":\"" FIRST_SHARD "\"," rest "}"

TEST(iterators_that_cannot_be)
{
    struct world world;
    world_open_with(&world, 1, 0);
    CHECK_FINE(&world, "CreateTable", TABLE("abc", "KEYS_ONLY"));
    CHECK_INVALID(&world, "GetShardIterator", ITERATOR("\"ShardIteratorType\":\"BAD\""),
                  "1 validation error detected: Value 'BAD' at 'shardIteratorType' failed to satisfy "
                  "constraint: Member must satisfy enum value set: [AFTER_SEQUENCE_NUMBER, LATEST, "
                  "AT_SEQUENCE_NUMBER, TRIM_HORIZON]");
    CHECK_INVALID(&world, "GetShardIterator", ITERATOR("\"ShardIteratorType\":\"AT_SEQUENCE_NUMBER\""),
                  "One or more parameter values were invalid: Invalid SequenceNumber");
    CHECK_INVALID(&world, "GetShardIterator",
                  ITERATOR("\"ShardIteratorType\":\"AFTER_SEQUENCE_NUMBER\","
                           "\"SequenceNumber\":\"xxxxxxxxxxxxxxxxxxxxx\""),
                  "One or more parameter values were invalid: Invalid SequenceNumber");
    CHECK_INVALID(&world, "GetShardIterator",
                  ITERATOR("\"ShardIteratorType\":\"LATEST\",\"SequenceNumber\":\"100000000000000000001\""),
                  "One or more parameter values were invalid: SequenceNumber should not be passed for this "
                  "iterator type");
    CHECK_INVALID(&world, "GetShardIterator",
                  ITERATOR("\"ShardIteratorType\":\"AT_SEQUENCE_NUMBER\","
                           "\"SequenceNumber\":\"000000000000000000001\""),
                  "Invalid SequenceNumber for the shard");
    CHECK_INVALID(&world, "GetShardIterator",
                  ITERATOR("\"ShardIteratorType\":\"AT_SEQUENCE_NUMBER\",\"SequenceNumber\":\"1\""),
                  "1 validation error detected: Value '1' at 'sequenceNumber' failed to satisfy constraint: "
                  "Member must have length greater than or equal to 21");
    CHECK_REFUSED(&world, "GetShardIterator",
                  "{\"StreamArn\":\"" ARN "\",\"ShardId\":\"adfasdasdasdasdasdasdasdasdasasdasd\","
                  "\"ShardIteratorType\":\"LATEST\"}",
                  "ResourceNotFoundException", "Requested resource not found: Shard does not exist");
    CHECK_INVALID(&world, "GetRecords", "{\"ShardIterator\":\"abc\"}", "Invalid ShardIterator");
    CHECK_INVALID(&world, "GetRecords",
                  "{\"ShardIterator\":\"sdfsdfsgagaddafgagasgasgasdfasdfasdfasdfasdgasdasdgasdg\"}",
                  "Invalid ShardIterator");
    world_close(&world);
}

TEST(every_changed_letter_spoils_an_iterator)
{
    struct world world;
    char at[TEXT_MAX];
    world_open_with(&world, 1, 0);
    CHECK_FINE(&world, "CreateTable", TABLE("abc", "KEYS_ONLY"));
    iterator_at(&world, ARN, FIRST_SHARD, "LATEST", NULL, at);
    CHECK_INT(strlen(at), 44);
    for (size_t i = 0; i < strlen(at); i++) {
        char kept = at[i];
        at[i] = kept == 'A' ? 'B' : 'A';
        ask_with(&world, "GetRecords", "{\"ShardIterator\":\"%s\"}", at);
        CHECK_INT(world.status, 400);
        at[i] = kept;
    }
    CHECK_FINE(&world, "ListStreams", "{}");
    records_at(&world, at);
    world_close(&world);
}

TEST(iterators_live_a_quarter_of_an_hour)
{
    struct world world;
    char at[TEXT_MAX], body[TEXT_MAX + 40];
    world_open_with(&world, 1, 0);
    CHECK_FINE(&world, "CreateTable", TABLE("abc", "KEYS_ONLY"));
    iterator_at(&world, ARN, FIRST_SHARD, "LATEST", NULL, at);
    world.now_ms += 15 * 60 * 1000;
    records_at(&world, at);
    world.now_ms++;
    snprintf(body, sizeof body, "{\"ShardIterator\":\"%s\"}", at);
    CHECK_REFUSED(&world, "GetRecords", body, "ExpiredIteratorException",
                  "The provided iterator exceeds the maximum age allowed.");
    world_close(&world);
}

TEST(what_is_cut_off_is_said_to_be)
{
    struct world world;
    char oldest[TEXT_MAX], at[TEXT_MAX], body[TEXT_MAX + 40];
    world_open_with(&world, 1, 0);
    CHECK_FINE(&world, "CreateTable", TABLE("abc", "KEYS_ONLY"));
    put(&world, "abc", "x", 1);
    put(&world, "abc", "y", 1);
    world.now_ms += 24 * HOUR_MS + 50 * 1000;
    put(&world, "abc", "z", 1);
    iterator_at(&world, ARN, FIRST_SHARD, "TRIM_HORIZON", NULL, oldest);
    iterator_at(&world, ARN, FIRST_SHARD, "AT_SEQUENCE_NUMBER", "100000000000000000001", at);
    CHECK_INT(count_of(records_at(&world, at), "\"eventID\""), 3);
    world.now_ms += 2 * 60 * 1000;
    keep_house(&world);
    snprintf(body, sizeof body, "{\"ShardIterator\":\"%s\"}", at);
    CHECK_REFUSED(&world, "GetRecords", body, "TrimmedDataAccessException",
                  "The data you are trying to access has been trimmed");
    CHECK_REFUSED(&world, "GetShardIterator",
                  ITERATOR("\"ShardIteratorType\":\"AT_SEQUENCE_NUMBER\","
                           "\"SequenceNumber\":\"100000000000000000002\""),
                  "TrimmedDataAccessException", "The data you are trying to access has been trimmed");
    CHECK_INT(count_of(records_at(&world, oldest), "\"eventID\""), 1);
    world_close(&world);
}

/* ---- the end of a stream ---- */

TEST(a_disabled_stream_stays_readable)
{
    struct world world;
    char at[TEXT_MAX];
    world_open_with(&world, 1, 0);
    CHECK_FINE(&world, "CreateTable", TABLE("abc", "KEYS_ONLY"));
    put(&world, "abc", "x", 1);
    CHECK_FINE(&world, "UpdateTable",
               "{\"TableName\":\"abc\",\"StreamSpecification\":{\"StreamEnabled\":false}}");
    put(&world, "abc", "y", 1);
    struct slice reply = ask(&world, "DescribeStream", "{\"StreamArn\":\"" ARN "\"}");
    CHECK_CONTAINS(reply, "\"StreamStatus\":\"DISABLED\"");
    CHECK_CONTAINS(reply, "\"EndingSequenceNumber\":\"100000000000000000001\"");
    reply = records_at(&world, iterator_at(&world, ARN, FIRST_SHARD, "TRIM_HORIZON", NULL, at));
    CHECK_INT(count_of(reply, "\"eventID\""), 1);
    CHECK(!slice_contains(reply, SLICE("NextShardIterator")));
    CHECK_FINE(&world, "DeleteTable", "{\"TableName\":\"abc\"}");
    CHECK_INT(count_of(ask(&world, "ListStreams", "{\"TableName\":\"abc\"}"), "StreamArn"), 1);
    CHECK_INT(count_of(records_at(&world, iterator_at(&world, ARN, FIRST_SHARD, "TRIM_HORIZON", NULL, at)),
                       "\"eventID\""),
              1);

    world.now_ms += 25 * HOUR_MS;
    keep_house(&world);
    CHECK_ASK(&world, "ListStreams", "{\"TableName\":\"abc\"}", "{\"Streams\":[]}");
    CHECK_REFUSED(&world, "DescribeStream", "{\"StreamArn\":\"" ARN "\"}", "ResourceNotFoundException",
                  NOT_FOUND(ARN));
    world_close(&world);
}

TEST(a_new_stream_has_a_new_name_within_the_same_millisecond)
{
    struct world world;
    char label[TEXT_MAX];
    world_open(&world);
    CHECK_FINE(&world, "CreateTable", TABLE("abc", "KEYS_ONLY"));
    CHECK_FINE(&world, "UpdateTable",
               "{\"TableName\":\"abc\",\"StreamSpecification\":{\"StreamEnabled\":false}}");
    struct slice reply = ask(&world, "UpdateTable",
                             "{\"TableName\":\"abc\",\"StreamSpecification\":{\"StreamEnabled\":true,"
                             "\"StreamViewType\":\"NEW_IMAGE\"}}");
    CHECK_TEXT(slice_of(text_behind(reply, "\"LatestStreamLabel\":\"", label)), "2026-11-15T04:13:25.341");
    reply = ask(&world, "DescribeTable", "{\"TableName\":\"abc\"}");
    CHECK_TEXT(slice_of(text_behind(reply, "\"LatestStreamLabel\":\"", label)), "2026-11-15T04:13:25.341");

    CHECK_FINE(&world, "DeleteTable", "{\"TableName\":\"abc\"}");
    reply = ask(&world, "CreateTable", TABLE("abc", "OLD_IMAGE"));
    CHECK_TEXT(slice_of(text_behind(reply, "\"LatestStreamLabel\":\"", label)), "2026-11-15T04:13:25.342");
    CHECK_INT(count_of(ask(&world, "ListStreams", "{\"TableName\":\"abc\"}"), "StreamArn"), 3);
    reply = ask_with(&world, "DescribeStream", "{\"StreamArn\":\"" ARN "\"}");
    CHECK_CONTAINS(reply, "\"StreamViewType\":\"KEYS_ONLY\"");
    world_close(&world);
}

TEST(a_stream_of_a_table_with_two_keys)
{
    struct world world;
    world_open(&world);
    CHECK_FINE(
        &world, "CreateTable",
        "{\"TableName\":\"abc\",\"AttributeDefinitions\":[{\"AttributeName\":\"p\",\"AttributeType\":\"S\"},"
        "{\"AttributeName\":\"r\",\"AttributeType\":\"N\"}],\"KeySchema\":[{\"AttributeName\":\"p\","
        "\"KeyType\":\"HASH\"},{\"AttributeName\":\"r\",\"KeyType\":\"RANGE\"}],"
        "\"BillingMode\":\"PAY_PER_REQUEST\",\"StreamSpecification\":{\"StreamEnabled\":true,"
        "\"StreamViewType\":\"KEYS_ONLY\"}}");
    struct slice reply = ask(&world, "DescribeStream", "{\"StreamArn\":\"" ARN "\"}");
    CHECK_CONTAINS(reply, "\"KeySchema\":[{\"AttributeName\":\"p\",\"KeyType\":\"HASH\"},"
                          "{\"AttributeName\":\"r\",\"KeyType\":\"RANGE\"}]");
    CHECK_INT(count_of(reply, "\"ShardId\""), 4);
    world_close(&world);
}

TEST(a_broken_store_is_an_internal_error)
{
    struct world world;
    char at[TEXT_MAX], body[TEXT_MAX + 40];
    world_open_with(&world, 1, 0);
    CHECK_FINE(&world, "CreateTable", TABLE("abc", "KEYS_ONLY"));
    put(&world, "abc", "x", 1);
    iterator_at(&world, ARN, FIRST_SHARD, "TRIM_HORIZON", NULL, at);
    snprintf(body, sizeof body, "{\"ShardIterator\":\"%s\"}", at);
    world.faults.fail_at = world.faults.calls + 1;
    CHECK_REFUSED(&world, "GetRecords", body, "InternalServerError", "Internal server error");
    world_close(&world);
}

/* ---- causes ---- */

/* One call with what led to it, or that asks for it. */
static struct slice ask_with_cause(struct world *world, const char *operation, const char *body,
                                   struct slice cause, bool shows_causes)
{
    world->reply.len = 0;
    struct api_call call = {.api = world->api,
                            .arena = &world->arena,
                            .reply = &world->reply,
                            .operation = api_operation_find(slice_of(operation)),
                            .body = slice_of(body),
                            .shows_causes = shows_causes};
    api_begin(&call);
    call.commit.cause = cause;
    if (call.is_write) {
        engine_commit(world->engine, &call.commit);
        api_finish(&call);
    }
    CHECK_INT(call.status, 200);
    return buf_view(&world->reply);
}

TEST(what_led_to_a_change_is_told_to_those_who_ask)
{
    struct world world;
    char iterator[TEXT_MAX], body[TEXT_MAX + 40], cause[TEXT_MAX];
    world_open_with(&world, 1, 0);
    CHECK_FINE(&world, "CreateTable", TABLE("abc", "KEYS_ONLY"));
    ask_with_cause(&world, "PutItem", "{\"TableName\":\"abc\",\"Item\":{\"p\":{\"S\":\"a\"}}}",
                   SLICE("resize:1,\"x\":2"), false);
    CHECK_FINE(
        &world, "TransactWriteItems",
        "{\"ClientRequestToken\":\"order-7\",\"TransactItems\":[{\"Put\":{\"TableName\":\"abc\","
        "\"Item\":{\"p\":{\"S\":\"b\"}}}}]}");
    iterator_at(&world, ARN, FIRST_SHARD, "TRIM_HORIZON", NULL, iterator);
    CHECK_INT(count_of(records_at(&world, iterator), "cause"), 0);
    CHECK_INT(count_of(records_at(&world, iterator), "order-7"), 0);
    snprintf(body, sizeof body, "{\"ShardIterator\":\"%s\"}", iterator);
    struct slice reply = ask_with_cause(&world, "GetRecords", body, SLICE_NONE, true);
    CHECK_INT(count_of(reply, "eventID"), 2);
    CHECK_INT(count_of(reply, "\"cause\":"), 1);
    CHECK_INT(count_of(reply, "\"transaction\":\"order-7\""), 1);
    CHECK_TEXT(slice_of(text_behind(reply, "\"cause\":\"", cause)), "resize:1,\\");
    world_close(&world);
}
