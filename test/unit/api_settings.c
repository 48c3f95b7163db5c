/* Time to live, tags, resource policies, contributor insights, Kinesis destinations: what
 * is kept, how it is shown, and what is refused. Texts hold ' for ". */
#include <stdio.h>

#include "unit/api_schema.h"

#define TABLE_ARN  "arn:aws:dynamodb:us-east-1:000000000000:table/abc"
#define OTHER_ARN  "arn:aws:dynamodb:us-east-1:000000000000:table/missing"
#define NO_TABLE   "Requested resource not found: Table: abc not found"
#define KINESIS(n) "arn:aws:kinesis:us-east-1:000000000000:stream/" n
#define STREAM_ARN TABLE_ARN "/stream/2026-11-15T04:13:25.340"

/* ---- helpers ---- */

static struct slice call(struct world *world, const char *operation, const char *body)
{
    return ask(world, operation, quoted(world, body));
}

#define ANSWERS(world, operation, body, expected)                                                            \
    CHECK_TEXT(call(world, operation, body), quoted(world, expected))
#define REFUSES(world, operation, body, short_name, message)                                                 \
    CHECK_REFUSED(world, operation, quoted(world, body), short_name, message)
#define HIDES(world, part) CHECK(!slice_contains(buf_view(&(world)->reply), slice_of(quoted(world, part))))

static void open_table(struct world *world)
{
    world_open(world);
    FINE(world, "CreateTable",
         "{'TableName':'abc','AttributeDefinitions':[{'AttributeName':'p','AttributeType':'S'},"
         "{'AttributeName':'r','AttributeType':'S'}],'KeySchema':[{'AttributeName':'p','KeyType':'HASH'}],"
         "'BillingMode':'PAY_PER_REQUEST','GlobalSecondaryIndexes':[{'IndexName':'gsi',"
         "'KeySchema':[{'AttributeName':'r',"
         "'KeyType':'HASH'},{'AttributeName':'p','KeyType':'RANGE'}],'Projection':{'ProjectionType':'ALL'}}],"
         "'StreamSpecification':{'StreamEnabled':true,'StreamViewType':'KEYS_ONLY'}}");
}

/* What was kept is there after the engine read its store anew. */
static void reopen(struct world *world)
{
    struct engine_snapshot *snapshot = engine_snapshot_take(world->engine);
    engine_snapshot_restore(world->engine, snapshot);
    engine_snapshot_free(snapshot);
}

/* ---- time to live ---- */

#define TTL(enabled, name)                                                                                   \
    "{'TableName':'abc','TimeToLiveSpecification':{'Enabled':" enabled ",'AttributeName':'" name "'}}"

TEST(time_to_live_is_switched_on_and_off)
{
    struct world world;
    open_table(&world);
    ANSWERS(&world, "DescribeTimeToLive", "{'TableName':'abc'}",
            "{'TimeToLiveDescription':{'TimeToLiveStatus':'DISABLED'}}");
    INVALID(&world, "UpdateTimeToLive", TTL("false", "ttl"), "TimeToLive is already disabled");
    ANSWERS(&world, "UpdateTimeToLive", TTL("true", "ttl"),
            "{'TimeToLiveSpecification':{'Enabled':true,'AttributeName':'ttl'}}");
    reopen(&world);
    ANSWERS(&world, "DescribeTimeToLive", "{'TableName':'" TABLE_ARN "'}",
            "{'TimeToLiveDescription':{'TimeToLiveStatus':'ENABLED','AttributeName':'ttl'}}");
    INVALID(&world, "UpdateTimeToLive", TTL("true", "ttl"), "TimeToLive is already enabled");
    INVALID(&world, "UpdateTimeToLive", TTL("true", "x"),
            "TimeToLive is active on a different AttributeName: current AttributeName is ttl");
    INVALID(&world, "UpdateTimeToLive", TTL("false", "x"),
            "TimeToLive is active on a different AttributeName: current AttributeName is ttl");
    ANSWERS(&world, "UpdateTimeToLive", TTL("false", "ttl"),
            "{'TimeToLiveSpecification':{'Enabled':false,'AttributeName':'ttl'}}");
    ANSWERS(&world, "DescribeTimeToLive", "{'TableName':'abc'}",
            "{'TimeToLiveDescription':{'TimeToLiveStatus':'DISABLED'}}");
    FINE(&world, "UpdateTimeToLive", TTL("true", "x"));
    world_close(&world);
}

TEST(time_to_live_of_nothing)
{
    struct world world;
    world_open(&world);
    REFUSES(&world, "UpdateTimeToLive", TTL("true", "ttl"), "ResourceNotFoundException", NO_TABLE);
    REFUSES(&world, "DescribeTimeToLive", "{'TableName':'abc'}", "ResourceNotFoundException", NO_TABLE);
    INVALID(
        &world, "UpdateTimeToLive", TTL("true", ""),
        "1 validation error detected: Value '' at 'timeToLiveSpecification.attributeName' failed to satisfy "
        "constraint: Member must have length greater than or equal to 1");
    INVALID(
        &world, "UpdateTimeToLive", "{'TableName':'abc','TimeToLiveSpecification':{}}",
        "2 validation errors detected: Value null at 'timeToLiveSpecification.enabled' failed to satisfy "
        "constraint: Member must not be null; Value null at 'timeToLiveSpecification.attributeName' failed "
        "to "
        "satisfy constraint: Member must not be null");
    world_close(&world);
}

/* ---- tags ---- */

#define TAG(tags)    "{'ResourceArn':'" TABLE_ARN "','Tags':[" tags "]}"
#define KV(key, val) "{'Key':'" key "','Value':'" val "'}"
#define UNTAG(keys)  "{'ResourceArn':'" TABLE_ARN "','TagKeys':[" keys "]}"
#define TAGS         "{'ResourceArn':'" TABLE_ARN "'}"

TEST(tags_are_added_replaced_and_taken_away)
{
    struct world world;
    open_table(&world);
    ANSWERS(&world, "ListTagsOfResource", TAGS, "{'Tags':[]}");
    ANSWERS(&world, "TagResource", TAG(KV("env", "test") "," KV("Env", "")), "{}");
    ANSWERS(&world, "TagResource", TAG(KV("team", "a b+c-d=e.f_g:h/i@j") "," KV("env", "live")), "{}");
    reopen(&world);
    ANSWERS(&world, "ListTagsOfResource", TAGS,
            "{'Tags':[{'Key':'env','Value':'live'},{'Key':'Env','Value':''},{'Key':'team','Value':'a "
            "b+c-d=e.f_g:h/i@j'}]}");
    ANSWERS(&world, "UntagResource", UNTAG("'Env','nothing','team'"), "{}");
    ANSWERS(&world, "ListTagsOfResource", TAGS, "{'Tags':[{'Key':'env','Value':'live'}]}");
    FINE(&world, "TagResource",
         TAG(KV("caf\xc3\xa9", "\xe8\xa1\xa8") "," KV("\xd0\xba\xd0\xbb\xd1\x8e\xd1\x87", " ")));
    world_close(&world);
}

static const char *tag_list(struct world *world, int first, int end)
{
    struct buf list = {0};
    for (int i = first; i < end; i++)
        buf_printf(&list, "%s{'Key':'k%02d','Value':'v'}", i > first ? "," : "", i);
    const char *body = arena_printf(&world->scratch, "{'ResourceArn':'" TABLE_ARN "','Tags':[%.*s]}",
                                    SLICE_ARG(buf_view(&list)))
                           .data;
    buf_free(&list);
    return body;
}

/* The service lists forty tags without a NextToken. A call that cannot be done as a whole stores nothing of it. */
TEST(tags_are_listed_at_once_and_stored_all_or_none)
{
    struct world world;
    open_table(&world);
    FINE(&world, "TagResource", tag_list(&world, 0, 30));
    FINE(&world, "ListTagsOfResource", "{'ResourceArn':'" TABLE_ARN "','NextToken':'rubbish'}");
    SHOWS(&world, "{'Tags':[{'Key':'k00'");
    SHOWS(&world, "{'Key':'k29','Value':'v'}]}");
    INVALID(&world, "TagResource", TAG(KV("fine", "1") "," KV("bad", "#!%")),
            "The Tag Value provided is invalid, Value: #!%");
    INVALID(&world, "TagResource", tag_list(&world, 29, 51),
            "Number of Tags exceed the current limit for the provided ResourceArn");
    FINE(&world, "ListTagsOfResource", TAGS);
    SHOWS(&world, "{'Key':'k29','Value':'v'}]}");
    FINE(&world, "TagResource", tag_list(&world, 20, 50));
    INVALID(&world, "TagResource", TAG(KV("one", "more")),
            "Number of Tags exceed the current limit for the provided ResourceArn");
    INVALID(&world, "TagResource", tag_list(&world, 0, 51),
            "Number of Tags exceed the current limit for the provided ResourceArn");
    world_close(&world);
}

TEST(tags_that_cannot_be)
{
    struct world world;
    char body[600], message[400], key[200];
    open_table(&world);
    INVALID(&world, "TagResource", TAG(""), "Atleast one Tag needs to be provided as Input.");
    INVALID(&world, "UntagResource", UNTAG(""), "Atleast one Tag Key needs to be provided as Input.");
    INVALID(&world, "TagResource", TAG("{}"), "The Tag Key provided is invalid, Key: null");
    INVALID(&world, "TagResource", TAG("null"), "The Tag Key provided is invalid, Key: null");
    INVALID(&world, "TagResource", TAG("{'Key':'a'}"), "The Tag Value provided is invalid, Value: null");
    INVALID(&world, "TagResource", TAG(KV("", "x")), "The Tag Key provided is invalid, Key: ");
    INVALID(&world, "TagResource", TAG(KV("bad#char", "x")),
            "The Tag Key provided is invalid, Key: bad#char");
    INVALID(&world, "TagResource", TAG(KV("x", "100%")), "The Tag Value provided is invalid, Value: 100%");
    INVALID(&world, "TagResource", TAG(KV("x", "\xf0\x9f\x94\x91")),
            "The Tag Value provided is invalid, Value: \xf0\x9f\x94\x91");
    INVALID(&world, "TagResource", TAG(KV("good", "x") "," KV("aws:foo", "x")),
            "Tag Key cannot be prefixed with aws:, Key: aws:foo");
    INVALID(&world, "UntagResource", UNTAG("'aws:foo'"),
            "Tag Key cannot be prefixed with aws:, Key: aws:foo");
    INVALID(&world, "TagResource", TAG(KV("dup", "x") "," KV("dup", "y")),
            "Duplicate Tag Keys provided as input: Duplicate Tag Key found dup");
    memset(key, 'k', 129);
    key[129] = 0;
    snprintf(body, sizeof body, "{'ResourceArn':'" TABLE_ARN "','Tags':[{'Key':'%s','Value':''}]}", key);
    snprintf(message, sizeof message, "The Tag Key provided is invalid, Key: %s", key);
    INVALID(&world, "TagResource", body, message);
    ANSWERS(&world, "ListTagsOfResource", TAGS, "{'Tags':[]}");
    world_close(&world);
}

TEST(tags_of_other_things)
{
    struct world world;
    open_table(&world);
    INVALID(&world, "ListTagsOfResource", "{}", "Invalid TableArn");
    INVALID(&world, "ListTagsOfResource", "{'ResourceArn':'abc'}", WRONG "ARNs must start with 'arn:': abc");
    INVALID(&world, "ListTagsOfResource", "{'ResourceArn':'arn:aws:s3:::abc'}",
            WRONG "Provided Arn is not a DynamoDB resource arn: arn:aws:s3:::abc");
    INVALID(
        &world, "ListTagsOfResource", "{'ResourceArn':'" TABLE_ARN "/index/gsi'}",
        WRONG
        "Invalid resource arn provided, only table or stream is accepted. Provided resource arn: " TABLE_ARN
        "/index/gsi");
    INVALID(&world, "ListTagsOfResource",
            "{'ResourceArn':'arn:aws:dynamodb:eu-west-1:000000000000:table/abc'}",
            "Invalid TableArn: Invalid ResourceArn provided as input "
            "arn:aws:dynamodb:eu-west-1:000000000000:table/abc");
    REFUSES(&world, "TagResource",
            "{'ResourceArn':'arn:aws:dynamodb:us-east-1:123456789012:table/abc','Tags':[" KV("a", "b") "]}",
            "AccessDeniedException",
            "User: arn:aws:iam::000000000000:root is not authorized to perform: dynamodb:TagResource on "
            "resource: "
            "arn:aws:dynamodb:us-east-1:123456789012:table/abc");
    REFUSES(&world, "TagResource", "{'ResourceArn':'" OTHER_ARN "','Tags':[" KV("a", "b") "]}",
            "ResourceNotFoundException",
            "Requested resource not found: ResourceArn: " OTHER_ARN " not found");
    REFUSES(&world, "UntagResource", "{'ResourceArn':'" OTHER_ARN "','TagKeys':['a']}",
            "ResourceNotFoundException",
            "Requested resource not found: ResourceArn: " OTHER_ARN " not found");
    call(&world, "ListTagsOfResource", "{'ResourceArn':'" OTHER_ARN "'}");
    CHECK_TEXT(slice_of(world.error), "AccessDeniedException");
    world_close(&world);
}

TEST(tags_come_with_a_table)
{
    struct world world;
    world_open(&world);
#define WITH_TAGS(tags)                                                                                      \
    "{'TableName':'abc','AttributeDefinitions':[{'AttributeName':'p','AttributeType':'S'}],'KeySchema':[{"   \
    "'AttributeName':'p','KeyType':'HASH'}],'BillingMode':'PAY_PER_REQUEST','Tags':[" tags "]}"
    INVALID(&world, "CreateTable", WITH_TAGS(KV("aws:foo", "x")),
            "Tag Key cannot be prefixed with aws:, Key: aws:foo");
    INVALID(&world, "CreateTable", WITH_TAGS(KV("a", "x") "," KV("a", "y")),
            "Duplicate Tag Keys provided as input: Duplicate Tag Key found a");
    FINE(&world, "CreateTable", WITH_TAGS(KV("a", "x")));
    ANSWERS(&world, "ListTagsOfResource", TAGS, "{'Tags':[{'Key':'a','Value':'x'}]}");
    world_close(&world);
}

/* ---- resource policies ---- */

/* In requests a policy stands in a string: ` is an escaped quote. */
static struct slice put_policy(struct world *world, const char *arn, const char *policy, const char *rest)
{
    struct buf body = {0};
    buf_printf(&body, "{'ResourceArn':'%s','Policy':'", arn);
    for (const char *c = policy; *c; c++) {
        if (*c == '`') buf_byte(&body, '\\');
        if (*c == '\n')
            buf_text(&body, "\\n");
        else
            buf_byte(&body, *c == '`' ? '\'' : (unsigned char)*c);
    }
    buf_printf(&body, "'%s}", rest);
    buf_byte(&body, 0);
    struct slice reply = call(world, "PutResourcePolicy", body.data);
    buf_free(&body);
    return reply;
}

#define PUTS(world, policy, expected)                                                                        \
    CHECK_TEXT(put_policy(world, TABLE_ARN, policy, ""), quoted(world, expected))
#define POLICY_WRONG(world, policy, text)                                                                    \
    do {                                                                                                     \
        struct slice wrong_reply = put_policy(world, TABLE_ARN, policy, "");                                 \
        CHECK_TEXT(slice_of((world)->error ? (world)->error : "no error"), "ValidationException");           \
        CHECK_TEXT(member_text(world, wrong_reply, "message"), text);                                        \
    } while (0)

#define STATEMENT(action)                                                                                    \
    "{`Effect`:`Allow`,`Principal`:{`AWS`:`arn:aws:iam::123456789012:root`},`Action`:" action                \
    ",`Resource`:`*`}"
#define POLICY(action) "{`Version`:`2012-10-17`,`Statement`:[" STATEMENT(action) "]}"

TEST(policies_have_revisions)
{
    struct world world;
    open_table(&world);
    REFUSES(&world, "GetResourcePolicy", TAGS, "PolicyNotFoundException",
            "Resource-based policy not found for the provided ResourceArn: " TABLE_ARN);
    ANSWERS(&world, "DeleteResourcePolicy", TAGS, "{}");
    PUTS(&world, POLICY("`dynamodb:GetItem`"), "{'RevisionId':'1794716005340'}");
    reopen(&world);
    ANSWERS(
        &world, "GetResourcePolicy", TAGS,
        "{'Policy':'{\\'Version\\':\\'2012-10-17\\',\\'Statement\\':[{\\'Effect\\':\\'Allow\\',"
        "\\'Principal\\':{\\'AWS\\':\\'arn:aws:iam::123456789012:root\\'},"
        "\\'Action\\':\\'dynamodb:GetItem\\',\\'Resource\\':\\'*\\'}]}','RevisionId':'1794716005340'}");
    PUTS(&world, POLICY("`dynamodb:GetItem`"), "{'RevisionId':'1794716005340'}");
    PUTS(&world, POLICY("`dynamodb:PutItem`"), "{'RevisionId':'1794716005341'}");
    REFUSES(&world, "DeleteResourcePolicy",
            "{'ResourceArn':'" TABLE_ARN "','ExpectedRevisionId':'1794716005340'}", "PolicyNotFoundException",
            "Resource-based policy not found for the provided ResourceArn: Requested update for policy with "
            "revision id 1794716005340, but the policy associated to target table abc has revision id "
            "1794716005341.");
    world.now_ms += 1000;
    ANSWERS(&world, "DeleteResourcePolicy",
            "{'ResourceArn':'" TABLE_ARN "','ExpectedRevisionId':'1794716005341'}",
            "{'RevisionId':'1794716005341'}");
    REFUSES(&world, "GetResourcePolicy", TAGS, "PolicyNotFoundException",
            "Resource-based policy not found for the provided ResourceArn: " TABLE_ARN);
    ANSWERS(&world, "DeleteResourcePolicy", TAGS, "{'RevisionId':'1794716006340'}");
    world_close(&world);
}

TEST(policies_can_expect_a_revision)
{
    struct world world;
    open_table(&world);
    struct slice reply = put_policy(&world, TABLE_ARN, POLICY("`dynamodb:*`"), ",'ExpectedRevisionId':'123'");
    CHECK_TEXT(
        member_text(&world, reply, "message"),
        "Resource-based policy not found for the provided ResourceArn: Requested update for policy with "
        "revision id 123, but table abc has no associated policy.");
    put_policy(&world, TABLE_ARN, POLICY("`dynamodb:*`"), ",'ExpectedRevisionId':'NO_POLICY'");
    CHECK_INT(world.status, 200);
    reply = put_policy(&world, TABLE_ARN, POLICY("`dynamodb:GetItem`"), ",'ExpectedRevisionId':'NO_POLICY'");
    CHECK_TEXT(
        member_text(&world, reply, "message"),
        "Resource-based policy not found for the provided ResourceArn: Requested policy update expecting "
        "none to be present for table abc, but a policy exists with revision id 1794716005340.");
    put_policy(&world, TABLE_ARN, POLICY("`dynamodb:GetItem`"), ",'ExpectedRevisionId':'1794716005340'");
    CHECK_INT(world.status, 200);
    world_close(&world);
}

TEST(policies_that_mean_the_same_are_the_same)
{
    static const char *const forms[] = {
        "{`Statement`:[{`Resource`:[`*`],`Sid`:`s`,`Action`:[`dynamodb:GetItem`],`Effect`:`allow`,`Principal`"
        ":{"
        "`AWS`:`123456789012`}}],`Version`:`2012-10-17`}",
        "{\n  `Version`: `2012-10-17`,\n  `Statement`: { `Sid`: `s`, `Effect`: `Allow`, `Principal`: {`AWS`: "
        "[`123456789012`, `arn:aws:iam::123456789012:root`]}, `Action`: `dynamodb:GetItem`, `Resource`: `*` "
        "}}",
    };
    struct world world;
    open_table(&world);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        world.now_ms += 1000;
        PUTS(&world, forms[i], "{'RevisionId':'1794716006340'}");
    }
    FINE(&world, "GetResourcePolicy", TAGS);
    SHOWS(&world,
          "{\\'Version\\':\\'2012-10-17\\',\\'Statement\\':[{\\'Sid\\':\\'s\\',\\'Effect\\':\\'Allow\\',"
          "\\'Principal\\':{\\'AWS\\':\\'arn:aws:iam::123456789012:root\\'},"
          "\\'Action\\':\\'dynamodb:GetItem\\',\\'Resource\\':\\'*\\'}]}");
    PUTS(&world, "{`Statement`:[" STATEMENT("[`dynamodb:GetItem`, `dynamodb:PutItem`]") "]}",
         "{'RevisionId':'1794716007340'}");
    FINE(&world, "GetResourcePolicy", TAGS);
    SHOWS(&world, "{\\'Version\\':\\'2008-10-17\\',");
    SHOWS(&world, "\\'Action\\':[\\'dynamodb:GetItem\\',\\'dynamodb:PutItem\\']");
    world_close(&world);
}

TEST(policies_that_are_none)
{
    struct world world;
    open_table(&world);
#define BAD WRONG "Invalid policy document: "
    POLICY_WRONG(&world, "", BAD "This policy contains invalid Json");
    POLICY_WRONG(&world, "[]", BAD "This policy contains invalid Json");
    POLICY_WRONG(&world, "{not json", BAD "This policy contains invalid Json");
    POLICY_WRONG(&world, "null", BAD "This text appears not to be a policy");
    POLICY_WRONG(&world, "{}", BAD "Syntax error at position (1,3)");
    POLICY_WRONG(&world, "{`Statement`:[]}", BAD "Could not parse the policy: Statement is empty!");
    POLICY_WRONG(&world, "{`Statement`:[{}]}", BAD "Missing required field Effect");
    POLICY_WRONG(&world, "{`Statement`:[{`Effect`:`Deny`,`Principal`:`*`,`Action`:`dynamodb:*`}]}",
                 BAD "Missing required field Resource");
    POLICY_WRONG(&world,
                 "{`Statement`:[{`Sid`:`a`,`Effect`:`Deny`,`Principal`:`*`,`Action`:`x`,`Resource`:`*`},"
                 "{`Sid`:`a`,`Effect`:`Deny`,`Principal`:`*`,`Action`:`x`,`Resource`:`*`}]}",
                 BAD "The Statement Ids in the policy are not unique");
    POLICY_WRONG(&world, "{`Statement`:[{`Effect`:`Allow`,`Principal`:`*`,`Action`:`x`,`Resource`:`*`}]}",
                 "Resource-based policy grants unbounded access in one or more elements. Please revise the "
                 "policy to ensure least-privilege form of access");
    POLICY_WRONG(&world,
                 "{`Statement`:[{`Effect`:`Deny`,`Principal`:`123456789012`,`Action`:`x`,`Resource`:`*`}]}",
                 WRONG "Invalid principal in policy document.");
    static char large[21000];
    memset(large, ' ', sizeof large - 1);
    POLICY_WRONG(&world, large, WRONG "Maximum policy size of 20480 bytes exceeded");
    world_close(&world);
}

TEST(policies_of_other_things)
{
    struct world world;
    open_table(&world);
    INVALID(&world, "GetResourcePolicy", "{'ResourceArn':'abc'}", WRONG "ARNs must start with 'arn:': abc");
    INVALID(&world, "GetResourcePolicy",
            "{'ResourceArn':'arn:aws-cn:dynamodb:us-east-1:000000000000:table/abc'}",
            WRONG "Invalid resource Arn: arn:aws-cn:dynamodb:us-east-1:000000000000:table/abc");
    INVALID(&world, "GetResourcePolicy",
            "{'ResourceArn':'arn:aws:dynamodb:us-east-1:123456789012:table/abc'}",
            "This action is only supported by accounts that match the resource owner\xe2\x80\x99s account.");
    INVALID(&world, "GetResourcePolicy", "{'ResourceArn':'" TABLE_ARN "/backup/01'}",
            WRONG "Provided Arn is not a DynamoDB resource arn: " TABLE_ARN "/backup/01");
    REFUSES(&world, "GetResourcePolicy", "{'ResourceArn':'" OTHER_ARN "'}", "ResourceNotFoundException",
            "Requested resource not found: Table: missing not found");
    REFUSES(&world, "GetResourcePolicy", "{'ResourceArn':'" TABLE_ARN "/stream/2000-01-01T00:00:00.000'}",
            "ResourceNotFoundException",
            "Requested resource not found: Stream: 2000-01-01T00:00:00.000 not found for Table: abc");
    REFUSES(&world, "GetResourcePolicy", "{'ResourceArn':'" STREAM_ARN "'}", "PolicyNotFoundException",
            "Resource-based policy not found for the provided ResourceArn: " STREAM_ARN);
    put_policy(&world, STREAM_ARN, POLICY("`dynamodb:GetRecords`"), "");
    CHECK_INT(world.status, 200);
    FINE(&world, "GetResourcePolicy", "{'ResourceArn':'" STREAM_ARN "'}");
    SHOWS(&world, "dynamodb:GetRecords");
    REFUSES(&world, "GetResourcePolicy", TAGS, "PolicyNotFoundException",
            "Resource-based policy not found for the provided ResourceArn: " TABLE_ARN);
    world_close(&world);
}

/* ---- contributor insights ---- */

#define INSIGHTS(rest) "{'TableName':'abc','ContributorInsightsAction':" rest "}"

TEST(insights_are_kept_for_tables_and_indexes)
{
    struct world world;
    open_table(&world);
    ANSWERS(&world, "DescribeContributorInsights", "{'TableName':'abc'}",
            "{'TableName':'abc','ContributorInsightsStatus':'DISABLED'}");
    ANSWERS(&world, "UpdateContributorInsights", INSIGHTS("'DISABLE'"),
            "{'TableName':'abc','ContributorInsightsStatus':'DISABLED'}");
    ANSWERS(&world, "UpdateContributorInsights", INSIGHTS("'ENABLE'"),
            "{'TableName':'abc','ContributorInsightsStatus':'ENABLING',"
            "'ContributorInsightsMode':'ACCESSED_AND_THROTTLED_KEYS'}");
    ANSWERS(&world, "UpdateContributorInsights", INSIGHTS("'ENABLE'"),
            "{'TableName':'abc','ContributorInsightsStatus':'ENABLED',"
            "'ContributorInsightsMode':'ACCESSED_AND_THROTTLED_KEYS'}");
    ANSWERS(&world, "UpdateContributorInsights",
            INSIGHTS("'ENABLE','IndexName':'gsi','ContributorInsightsMode':'THROTTLED_KEYS'"),
            "{'TableName':'abc','IndexName':'gsi','ContributorInsightsStatus':'ENABLING',"
            "'ContributorInsightsMode':'THROTTLED_KEYS'}");
    reopen(&world);
    ANSWERS(&world, "DescribeContributorInsights", "{'TableName':'abc'}",
            "{'TableName':'abc','ContributorInsightsRuleList':['DynamoDBContributorInsights-PKC-abc-1794716005340',"
            "'DynamoDBContributorInsights-PKT-abc-1794716005340'],'ContributorInsightsStatus':'ENABLED',"
            "'LastUpdateDateTime':1794716005.340,'ContributorInsightsMode':'ACCESSED_AND_THROTTLED_KEYS'}");
    FINE(&world, "DescribeContributorInsights", "{'TableName':'abc','IndexName':'gsi'}");
    SHOWS(&world,
          "['DynamoDBContributorInsights-PKT-abc-gsi-1794716005340','DynamoDBContributorInsights-SKT-abc-"
          "gsi-1794716005340']");
    ANSWERS(&world, "ListContributorInsights", "{}",
            "{'ContributorInsightsSummaries':[{'TableName':'abc','ContributorInsightsStatus':'ENABLED',"
            "'ContributorInsightsMode':'ACCESSED_AND_THROTTLED_KEYS'},{'TableName':'abc','IndexName':'gsi',"
            "'ContributorInsightsStatus':'ENABLED','ContributorInsightsMode':'THROTTLED_KEYS'}]}");

    ANSWERS(&world, "UpdateContributorInsights", INSIGHTS("'DISABLE'"),
            "{'TableName':'abc','ContributorInsightsStatus':'DISABLING',"
            "'ContributorInsightsMode':'ACCESSED_AND_THROTTLED_KEYS'}");
    ANSWERS(&world, "DescribeContributorInsights", "{'TableName':'abc'}",
            "{'TableName':'abc','ContributorInsightsStatus':'DISABLED','LastUpdateDateTime':1794716005.340,"
            "'ContributorInsightsMode':'ACCESSED_AND_THROTTLED_KEYS'}");
    world_close(&world);
}

TEST(insights_come_in_pages)
{
    struct world world;
    char body[200];
    open_table(&world);
    FINE(&world, "CreateTable",
         "{'TableName':'second','AttributeDefinitions':[{'AttributeName':'p','AttributeType':'S'}],"
         "'KeySchema':[{'AttributeName':'p','KeyType':'HASH'}],'BillingMode':'PAY_PER_REQUEST'}");
    FINE(&world, "UpdateContributorInsights", INSIGHTS("'ENABLE'"));
    FINE(&world, "UpdateContributorInsights", INSIGHTS("'ENABLE','IndexName':'gsi'"));
    FINE(&world, "UpdateContributorInsights", "{'TableName':'second','ContributorInsightsAction':'ENABLE'}");
    unsigned pages = 0, shown = 0;
    struct slice token = SLICE_NONE;
    do {
        snprintf(body, sizeof body, "{'MaxResults':1%s%.*s%s}", token.len ? ",'NextToken':'" : "",
                 SLICE_ARG(token), token.len ? "'" : "");
        struct slice reply = call(&world, "ListContributorInsights", body);
        shown += slice_contains(reply, SLICE("\"TableName\""));
        token = arena_copy(&world.scratch, member_text(&world, reply, "NextToken"));
        pages++;
    } while (token.len);
    CHECK_INT(pages, 3);
    CHECK_INT(shown, 3);
    FINE(&world, "ListContributorInsights", "{'TableName':'second'}");
    SHOWS(&world, "[{'TableName':'second'");
    HIDES(&world, "abc");
    REFUSES(&world, "ListContributorInsights", "{'TableName':'third'}", "ResourceNotFoundException",
            "Requested resource not found: Table: third not found");
    world_close(&world);
}

TEST(insights_of_nothing)
{
    struct world world;
    open_table(&world);
    REFUSES(&world, "DescribeContributorInsights", "{'TableName':'abc','IndexName':'nope'}",
            "ResourceNotFoundException",
            "Requested resource not found: Index: nope not found for table: abc");
    REFUSES(&world, "UpdateContributorInsights", INSIGHTS("'ENABLE','IndexName':'nope'"),
            "ResourceNotFoundException",
            "Requested resource not found: Index: nope not found for table: abc");
    REFUSES(&world, "DescribeContributorInsights", "{'TableName':'missing'}", "ResourceNotFoundException",
            "Requested resource not found: Table: missing not found");
    INVALID(&world, "UpdateContributorInsights", INSIGHTS("'PERHAPS'"),
            "1 validation error detected: Value 'PERHAPS' at 'contributorInsightsAction' failed to satisfy "
            "constraint: Member must satisfy enum value set: [ENABLE, DISABLE]");

    /* An index of the same name is another index. */
    FINE(&world, "UpdateContributorInsights", INSIGHTS("'ENABLE','IndexName':'gsi'"));
    FINE(&world, "UpdateTable",
         "{'TableName':'abc','GlobalSecondaryIndexUpdates':[{'Delete':{'IndexName':'gsi'}}]}");
    FINE(&world, "PutItem", "{'TableName':'abc','Item':{'p':{'S':'x'},'r':{'S':'y'}}}");
    FINE(&world, "UpdateTable",
         "{'TableName':'abc','AttributeDefinitions':[{'AttributeName':'r','AttributeType':'S'}],"
         "'GlobalSecondaryIndexUpdates':[{'Create':{'IndexName':'gsi',"
         "'KeySchema':[{'AttributeName':'r','KeyType':'HASH'}],'Projection':{'ProjectionType':'ALL'}}}]}");
    ANSWERS(&world, "DescribeContributorInsights", "{'TableName':'abc','IndexName':'gsi'}",
            "{'TableName':'abc','IndexName':'gsi','ContributorInsightsStatus':'DISABLED'}");
    INVALID(
        &world, "UpdateContributorInsights", INSIGHTS("'ENABLE','IndexName':'gsi'"),
        "Table or Index is not in a valid state to update Key Access Insights: IndexStatus must be ACTIVE to "
        "enable ContributorInsights.");
    while (engine_keep_house(world.engine)) continue;
    FINE(&world, "UpdateContributorInsights", INSIGHTS("'ENABLE','IndexName':'gsi'"));
    world_close(&world);
}

/* ---- Kinesis destinations ---- */

#define DESTINATION(n, rest) "{'TableName':'abc','StreamArn':'" KINESIS(n) "'" rest "}"
#define STATE                "Table is not in a valid state to enable Kinesis Streaming Destination: "

TEST(one_destination_is_active_at_a_time)
{
    struct world world;
    open_table(&world);
    ANSWERS(&world, "DescribeKinesisStreamingDestination", "{'TableName':'abc'}",
            "{'TableName':'abc','KinesisDataStreamDestinations':[]}");
    ANSWERS(&world, "EnableKinesisStreamingDestination", DESTINATION("one", ""),
            "{'TableName':'abc','StreamArn':'" KINESIS("one") "','DestinationStatus':'ENABLING',"
                                                              "'EnableKinesisStreamingConfiguration':{}}");
    ANSWERS(&world, "DescribeKinesisStreamingDestination", "{'TableName':'abc'}",
            "{'TableName':'abc','KinesisDataStreamDestinations':[{'StreamArn':'" KINESIS(
                "one") "',"
                       "'DestinationStatus':'ACTIVE'}]}");
    INVALID(
        &world, "EnableKinesisStreamingDestination", DESTINATION("two", ""),
        STATE
        "EnableKinesisStreamingDestination must be DISABLED or ENABLE_FAILED to perform ENABLE operation.");
    INVALID(&world, "DisableKinesisStreamingDestination", DESTINATION("two", ""),
            STATE "KinesisStreamingDestination must be ACTIVE to perform DISABLE operation.");
    ANSWERS(&world, "DisableKinesisStreamingDestination", DESTINATION("one", ""),
            "{'TableName':'abc','StreamArn':'" KINESIS("one") "','DestinationStatus':'DISABLING',"
                                                              "'EnableKinesisStreamingConfiguration':{}}");
    ANSWERS(&world, "EnableKinesisStreamingDestination",
            DESTINATION("two", ",'EnableKinesisStreamingConfiguration':"
                               "{'ApproximateCreationDateTimePrecision':'MICROSECOND'}"),
            "{'TableName':'abc','StreamArn':'" KINESIS("two") "','DestinationStatus':'ENABLING',"
            "'EnableKinesisStreamingConfiguration':{'ApproximateCreationDateTimePrecision':'MICROSECOND'}}");
    reopen(&world);
    ANSWERS(&world, "DescribeKinesisStreamingDestination", "{'TableName':'abc'}",
            "{'TableName':'abc','KinesisDataStreamDestinations':[{'StreamArn':'" KINESIS("two") "',"
            "'DestinationStatus':'ACTIVE','ApproximateCreationDateTimePrecision':'MICROSECOND'},"
            "{'StreamArn':'" KINESIS("one") "','DestinationStatus':'DISABLED'}]}");
    world_close(&world);
}

#define PRECISION(p) ",'UpdateKinesisStreamingConfiguration':{'ApproximateCreationDateTimePrecision':'" p "'}"

TEST(a_destination_has_a_precision)
{
    struct world world;
    open_table(&world);
    INVALID(&world, "UpdateKinesisStreamingDestination", DESTINATION("one", PRECISION("MICROSECOND")),
            STATE
            "Kinesis streaming is not in ACTIVE state. Updates are only allowed in ACTIVE state. TableName: "
            "abc, kdsArn: " KINESIS("one"));
    FINE(&world, "EnableKinesisStreamingDestination", DESTINATION("one", ""));
    INVALID(
        &world, "UpdateKinesisStreamingDestination", DESTINATION("one", ""),
        "Streaming destination cannot be updated with given parameters: UpdateKinesisStreamingConfiguration "
        "cannot be null or contain only null values");
    call(&world, "UpdateKinesisStreamingDestination", DESTINATION("one", PRECISION("MILLISECOND")));
    SHOWS(&world,
          "Invalid Request: Precision is already set to the desired value of MILLISECOND for tableId: ");
    ANSWERS(&world, "UpdateKinesisStreamingDestination", DESTINATION("one", PRECISION("MICROSECOND")),
            "{'TableName':'abc','StreamArn':'" KINESIS(
                "one") "','DestinationStatus':'UPDATING',"
                       "'UpdateKinesisStreamingConfiguration':{'ApproximateCreationDateTimePrecision':'MICROSECOND'}}");
    REFUSES(&world, "DescribeKinesisStreamingDestination", "{'TableName':'missing'}",
            "ResourceNotFoundException", "Requested resource not found: Table: missing not found");
    INVALID(
        &world, "EnableKinesisStreamingDestination", "{'TableName':'abc','StreamArn':'short'}",
        "1 validation error detected: Value 'short' at 'streamArn' failed to satisfy constraint: Member must "
        "have length greater than or equal to 37");
    world_close(&world);
}

TEST(destinations_are_forgotten_in_the_end)
{
    struct world world;
    char body[200];
    open_table(&world);
    for (int i = 0; i < 40; i++) {
        snprintf(body, sizeof body, DESTINATION("%02d", ""), i);
        FINE(&world, "EnableKinesisStreamingDestination", body);
        FINE(&world, "DisableKinesisStreamingDestination", body);
    }
    FINE(&world, "DescribeKinesisStreamingDestination", "{'TableName':'abc'}");
    SHOWS(&world, KINESIS("39"));
    HIDES(&world, KINESIS("02"));
    world_close(&world);
}

/* ---- all of them ---- */

TEST(lists_of_what_is_not_there_are_empty)
{
    struct world world;
    world_open(&world);
    CHECK_TEXT(ASK(&world, "ListBackups", "{'Limit':5}"), "{\"BackupSummaries\":[]}");
    CHECK_TEXT(ASK(&world, "ListExports", "{}"), "{\"ExportSummaries\":[]}");
    CHECK_TEXT(ASK(&world, "ListImports", "{}"), "{\"ImportSummaryList\":[]}");
    CHECK_INT(world.status, 200);
    world_close(&world);
}

TEST(operations_are_in_the_order_of_their_names)
{
    struct world world;
    world_open(&world);
    CHECK_INT(api_operation_count(), 66 + 9); /* and those of Application Auto Scaling */
    for (unsigned i = 1; i < api_operation_count(); i++)
        CHECK(slice_compare(api_operation_name(api_operation_at(i - 1)),
                            api_operation_name(api_operation_at(i))) < 0);
    world_close(&world);
}
