/* Records of streams in words and in plain JSON; definitions; keys; progress; what is put aside. */
#include "cli/change.h"

#include "cli/definition.h"
#include "cli/progress.h"
#include "cli/spool.h"
#include "unit/test.h"

static struct arena arena;
static struct buf out;

static void finish(void)
{
    buf_free(&out);
    arena_free(&arena);
}

static const struct node *parsed(const char *text)
{
    const char *fault = NULL;
    return node_parse(&arena, slice_of(text), &fault);
}

/* ---- changes ---- */

#define KEYS "\"Keys\":{\"pk\":{\"S\":\"a\"}}"

static struct slice in_words(const char *record)
{
    struct change change;
    out.len = 0;
    if (!change_read(parsed(record), &change) || !change_put_words(&out, &arena, &change))
        return SLICE("refused");
    return buf_view(&out);
}

TEST(changes_in_words)
{
    CHECK_TEXT(in_words("{\"eventName\":\"INSERT\",\"dynamodb\":{" KEYS
                        ",\"NewImage\":{\"pk\":{\"S\":\"a\"},\"n\":{\"N\":\"1\"},\"t\":{\"SS\":[\"x\"]}}}}"),
               "INSERT  pk=a  n=1 t={\"$set\":[\"x\"]}");
    CHECK_TEXT(in_words("{\"eventName\":\"MODIFY\",\"dynamodb\":{" KEYS
                        ",\"OldImage\":{\"pk\":{\"S\":\"a\"},\"n\":{\"N\":\"1\"},\"same\":{\"N\":\"5\"},"
                        "\"old\":{\"N\":\"7\"}},\"NewImage\":{\"pk\":{\"S\":\"a\"},\"n\":{\"N\":\"2\"},"
                        "\"same\":{\"N\":\"5\"},\"new\":{\"S\":\"\\n\"}}}}"),
               "MODIFY  pk=a  n: 1 -> 2  new: -> \\n  old: gone");
    CHECK_TEXT(
        in_words("{\"eventName\":\"REMOVE\",\"userIdentity\":{\"type\":\"Service\"},\"dynamodb\":{" KEYS
                 ",\"OldImage\":{\"pk\":{\"S\":\"a\"},\"n\":{\"N\":\"1\"}}}}"),
        "REMOVE  pk=a  expired  n=1");
    CHECK_TEXT(in_words("{\"eventName\":\"MODIFY\",\"dynamodb\":{" KEYS "}}"), "MODIFY  pk=a");
    finish();
}

TEST(long_values_are_cut_between_letters)
{
    struct buf record = {0};
    buf_text(&record, "{\"eventName\":\"INSERT\",\"dynamodb\":{" KEYS ",\"NewImage\":{\"t\":{\"S\":\"x");
    for (int i = 0; i < 60; i++) buf_text(&record, "\xc3\xa4");
    buf_text(&record, "\"}}}}");
    buf_byte(&record, 0);
    struct slice words = in_words(record.data);
    CHECK(utf8_valid(words));
    CHECK(slice_equal(slice_from(words, words.len - 5), SLICE("\xc3\xa4\xe2\x80\xa6")));
    buf_free(&record);
    finish();
}

TEST(changes_in_plain_json)
{
    struct change change;
    CHECK(
        change_read(parsed("{\"eventName\":\"REMOVE\",\"userIdentity\":{\"type\":\"Service\"},"
                           "\"dynamodb\":{\"ApproximateCreationDateTime\":12.5,"
                           "\"SequenceNumber\":\"100\"," KEYS
                           ",\"OldImage\":{\"pk\":{\"S\":\"a\"}}}}"),
                    &change));
    CHECK(change_put_plain(&out, &change));
    CHECK_TEXT(buf_view(&out), "{\"event\":\"REMOVE\",\"expired\":true,\"time\":12.5,\"sequence\":\"100\","
                               "\"keys\":{\"pk\":\"a\"},\"old\":{\"pk\":\"a\"}}");
    CHECK(!change_read(parsed("{}"), &change));
    CHECK(!change_read(parsed("{\"eventName\":\"INSERT\",\"dynamodb\":{}}"), &change));
    finish();
}

/* ---- definitions ---- */

TEST(a_definition_is_what_a_request_takes)
{
    definition_put(
        &out,
        parsed("{\"TableName\":\"T\",\"TableStatus\":\"ACTIVE\",\"ItemCount\":5,"
               "\"AttributeDefinitions\":[{\"AttributeName\":\"p\",\"AttributeType\":\"S\"}],"
               "\"KeySchema\":[{\"AttributeName\":\"p\",\"KeyType\":\"HASH\"}],"
               "\"ProvisionedThroughput\":{\"ReadCapacityUnits\":5,\"WriteCapacityUnits\":6,"
               "\"NumberOfDecreasesToday\":0},"
               "\"GlobalSecondaryIndexes\":[{\"IndexName\":\"i\",\"IndexStatus\":\"ACTIVE\",\"ItemCount\":5,"
               "\"KeySchema\":[{\"AttributeName\":\"p\",\"KeyType\":\"HASH\"}],"
               "\"Projection\":{\"ProjectionType\":\"ALL\",\"NonKeyAttributes\":[]},"
               "\"ProvisionedThroughput\":{\"ReadCapacityUnits\":1,\"WriteCapacityUnits\":2}}],"
               "\"StreamSpecification\":{\"StreamEnabled\":true,\"StreamViewType\":\"NEW_IMAGE\"},"
               "\"LatestStreamArn\":\"arn\",\"TableClassSummary\":{\"TableClass\":\"STANDARD\"},"
               "\"DeletionProtectionEnabled\":true}"),
        SLICE("expires"), SLICE("[{\"Key\":\"k\",\"Value\":\"v\"}]"));
    CHECK_TEXT(
        buf_view(&out),
        "{\"TableName\":\"T\",\"AttributeDefinitions\":[{\"AttributeName\":\"p\",\"AttributeType\":\"S\"}],"
        "\"KeySchema\":[{\"AttributeName\":\"p\",\"KeyType\":\"HASH\"}],\"BillingMode\":\"PROVISIONED\","
        "\"ProvisionedThroughput\":{\"ReadCapacityUnits\":5,\"WriteCapacityUnits\":6},"
        "\"GlobalSecondaryIndexes\":[{\"IndexName\":\"i\","
        "\"KeySchema\":[{\"AttributeName\":\"p\",\"KeyType\":\"HASH\"}],"
        "\"Projection\":{\"ProjectionType\":\"ALL\"},\"ProvisionedThroughput\":{\"ReadCapacityUnits\":1,"
        "\"WriteCapacityUnits\":2}}],"
        "\"StreamSpecification\":{\"StreamEnabled\":true,\"StreamViewType\":\"NEW_IMAGE\"},"
        "\"TableClass\":\"STANDARD\",\"DeletionProtectionEnabled\":true,"
        "\"Tags\":[{\"Key\":\"k\",\"Value\":\"v\"}],\"TimeToLiveSpecification\":{\"Enabled\":true,"
        "\"AttributeName\":\"expires\"}}");
    finish();
}

/* ---- keys ---- */

static const struct sink_table both = {.name = "T", .hash = {{"p", 1}, 'S'}, .range = {{"q", 1}, 'N'}};

static bool same_key(const char *a, const char *b)
{
    struct buf first = {0}, second = {0};
    CHECK(sink_key_bytes(&first, &both, parsed(a)) && sink_key_bytes(&second, &both, parsed(b)));
    bool same = slice_equal(buf_view(&first), buf_view(&second));
    buf_free(&first);
    buf_free(&second);
    return same;
}

TEST(keys_are_the_same_when_their_values_are)
{
    CHECK(same_key("{\"p\":{\"S\":\"a\"},\"q\":{\"N\":\"1\"},\"x\":{\"S\":\"1\"}}",
                   "{\"q\":{\"N\":\"1.0e0\"},\"p\":{\"S\":\"a\"}}"));
    CHECK(
        !same_key("{\"p\":{\"S\":\"a\"},\"q\":{\"N\":\"1\"}}", "{\"p\":{\"S\":\"a\"},\"q\":{\"N\":\"2\"}}"));
    CHECK(!same_key("{\"p\":{\"S\":\"a1\"},\"q\":{\"N\":\"1\"}}",
                    "{\"p\":{\"S\":\"a\"},\"q\":{\"N\":\"11\"}}"));
    const char *const bad[] = {"{\"p\":{\"S\":\"a\"}}", "{\"p\":{\"N\":\"1\"},\"q\":{\"N\":\"1\"}}",
                               "{\"p\":{\"S\":\"a\"},\"q\":{\"N\":\"x\"}}",
                               "{\"p\":\"a\",\"q\":{\"N\":\"1\"}}", "[]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECK(!sink_key_bytes(&out, &both, parsed(bad[i])));
    out.len = 0;
    CHECK(sink_key_json(&out, &both,
                        parsed("{\"x\":{\"S\":\"1\"},\"q\":{\"N\":\"1\"},\"p\":{\"S\":\"\\\"\"}}")));
    CHECK_TEXT(buf_view(&out), "{\"p\":{\"S\":\"\\\"\"},\"q\":{\"N\":\"1\"}}");
    finish();
}

/* ---- progress, and what is put aside ---- */

TEST(progress_lines)
{
    progress_put(&out, &(struct progress){.what = "T", .thing = "item", .total = 2000}, 500, 1000000);
    CHECK_TEXT(buf_view(&out), "T  [======>                 ] 25%  500 items  500/s  3 s left");
    out.len = 0;
    progress_put(&out, &(struct progress){.what = "T", .thing = "item", .total = 0}, 1, 0);
    CHECK_TEXT(buf_view(&out), "T  1 item");
    out.len = 0;
    progress_put(&out, &(struct progress){.what = "T", .thing = "item", .total = 2000}, 3000,
                 2000000); /* the total was only a guess */
    CHECK_TEXT(buf_view(&out), "T  [=======================>] 99%  3,000 items  1,500/s");
    finish();
}

TEST(what_is_put_aside_comes_back_in_order)
{
    struct spool spool = {0};
    struct slice json;
    CHECK(!spool_next(&spool, &json) && !spool_failed(&spool));
    CHECK(spool_add(&spool, SLICE("first\n")) && spool_add(&spool, SLICE("")) &&
          spool_add(&spool, SLICE("third")));
    CHECK_INT(spool.count, 3);
    CHECK(spool_rewind(&spool));
    CHECK(spool_next(&spool, &json));
    CHECK_TEXT(json, "first\n");
    CHECK(spool_next(&spool, &json));
    CHECK_TEXT(json, "");
    CHECK(spool_next(&spool, &json));
    CHECK_TEXT(json, "third");
    CHECK(!spool_next(&spool, &json) && !spool_failed(&spool));
    spool_free(&spool);
}
