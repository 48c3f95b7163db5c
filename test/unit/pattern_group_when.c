/* Conditions of groups by the types of what they compare: taken is what can hold, refused what never can. The
 * engine itself is asked which is which, with a group that has everything and one that has only what all have. */
#include "base/attribute.h"
#include "unit/pattern_fixture.h"

#define EVENT                                                                                                \
    "{'M':{'id':{'S':'a'},'kind':{'S':'a'},'amount':{'N':'3'},'time':{'S':'a'},'late':{'BOOL':true},"        \
    "'data':{'S':'a'}}}"
#define ALWAYS "'count':{'N':'3'},'opened':{'N':'3'},'touched':{'N':'3'}"
static const char *const groups[] = {"{'id':{'S':'all'}," ALWAYS
                                     ",'sum':{'N':'3'},'kinds':{'SS':['a','b']},'events':{'L':[" EVENT "]}}",
                                     "{'id':{'S':'few'}," ALWAYS "}"};

static const char *const names[] = {"count",
                                    "sum",
                                    "opened",
                                    "touched",
                                    "kinds",
                                    "events",
                                    "events[0]",
                                    "events[0].id",
                                    "events[0].kind",
                                    "events[0].amount",
                                    "events[0].time",
                                    "events[0].late",
                                    "size(kinds)",
                                    "size(events)",
                                    "size(events[0].id)"};

/* Of each type values with which something may hold, in plain JSON and as DynamoDB has them. */
#define PLAIN_EVENT "{'id':'a','kind':'a','amount':3,'time':'a','late':true,'data':'a'}"
static const struct {
    const char *plain, *typed;
} values[] = {
    {"'a'", "{'S':'a'}"},
    {"' '", "{'S':' '}"},
    {"'z'", "{'S':'z'}"},
    {"3", "{'N':'3'}"},
    {"-1", "{'N':'-1'}"},
    {"9", "{'N':'9'}"},
    {"2", "{'N':'2'}"},
    {"1", "{'N':'1'}"},
    {"true", "{'BOOL':true}"},
    {"null", "{'NULL':true}"},
    {"['a']", "{'L':[{'S':'a'}]}"},
    {"[" PLAIN_EVENT "]", "{'L':[" EVENT "]}"},
    {PLAIN_EVENT, EVENT},
};
#define VALUES (sizeof values / sizeof *values)
static const size_t types[] = {0, 3, 8, 9, 10, 12, VALUES}; /* the first of each type, and behind the last */
#define TYPES (sizeof types / sizeof *types - 1)

/* With ~ for the name. */
static const char *const conditions[] = {"~ = :v",    "~ < :v",          "~ <= :v",
                                         "~ > :v",    "~ >= :v",         ":v = ~",
                                         ":v < ~",    ":v >= ~",         "~ between :v and :v",
                                         "~ in (:v)", "contains(~, :v)", "begins_with(~, :v)"};

/* The text with " for ' and the name for ~, its words with # or without. */
static void put_with(struct buf *out, const char *format, const char *name, bool marks)
{
    for (const char *c = format; *c; c++) {
        if (*c != '~') buf_byte(out, (unsigned char)(*c == '\'' ? '"' : *c));
        for (const char *n = name; *c == '~' && *n; n++) {
            bool begins = (n == name || n[-1] == '(' || n[-1] == '.') && strncmp(n, "size(", 5) != 0;
            if (marks && begins) buf_byte(out, '#');
            buf_byte(out, (unsigned char)(*n == '\'' ? '"' : *n));
        }
    }
}

static void call(struct patterns *patterns, const char *operation, struct slice request, struct buf *reply)
{
    reply->len = 0;
    dynamo_call(patterns->dynamo, slice_of(operation), request, reply);
}

/* ExpressionAttributeNames of the words with # in the name. */
static void put_names(struct buf *out, const char *name)
{
    unsigned count = 0;
    if (strncmp(name, "size(", 5) == 0) name += 5;
    while (*name) {
        size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz");
        if (len) buf_printf(out, "%s\"#%.*s\":\"%.*s\"", count++ ? "," : "", (int)len, name, (int)len, name);
        name += len;
        name += strspn(name, "[0].)");
    }
}

/* Is there a group in which it holds? `value` NULL: it has none. What the engine refuses never holds. */
static bool holds(struct patterns *patterns, const char *condition, const char *name, const char *value)
{
    struct buf request = {0}, reply = {0};
    buf_printf(&request, "{\"TableName\":\"%smatrix\",\"FilterExpression\":\"", patterns->prefix);
    put_with(&request, condition, name, true);
    buf_text(&request, "\",\"ExpressionAttributeNames\":{");
    put_names(&request, name);
    buf_text(&request, "}");
    if (value) put_with(&request, ",'ExpressionAttributeValues':{':v':~}", value, false);
    buf_text(&request, "}");
    call(patterns, "Scan", buf_view(&request), &reply);
    bool found = slice_contains(buf_view(&reply), SLICE("\"Count\":")) &&
                 !slice_contains(buf_view(&reply), SLICE("\"Count\":0"));
    buf_free(&request);
    buf_free(&reply);
    return found;
}

static bool is_taken(struct patterns *patterns, const char *condition, const char *name, const char *value,
                     struct slice *reply)
{
    struct buf body = {0};
    buf_text(&body, "{\"complete\":{\"when\":{\"expression\":\"");
    put_with(&body, condition, name, true);
    buf_text(&body, "\"");
    if (value) put_with(&body, ",'values':{':v':~}", value, false);
    buf_put(&body, "}}}", 4);
    *reply = asks(patterns, "PUT /v1/groups/g", body.data);
    bool taken = patterns->call.status == 200;
    if (!taken) CHECK_INT(patterns->call.status, 400);
    buf_free(&body);
    return taken;
}

static void table_make(struct patterns *patterns)
{
    struct buf reply = {0}, request = {0};
    buf_printf(&request, "{\"TableName\":\"%smatrix\"", patterns->prefix);
    put_with(&request,
             ",'BillingMode':'PAY_PER_REQUEST','KeySchema':[{'AttributeName':'id','KeyType':'HASH'}],"
             "'AttributeDefinitions':[{'AttributeName':'id','AttributeType':'S'}]}",
             "", false);
    call(patterns, "CreateTable", buf_view(&request), &reply);
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        request.len = 0;
        buf_printf(&request, "{\"TableName\":\"%smatrix\",\"Item\":", patterns->prefix);
        put_with(&request, groups[i], "", false);
        buf_byte(&request, '}');
        call(patterns, "PutItem", buf_view(&request), &reply);
        CHECK(!slice_contains(buf_view(&reply), SLICE("__type")));
    }
    buf_free(&request);
    buf_free(&reply);
}

TEST(group_conditions_are_taken_if_they_can_hold)
{
    struct patterns patterns;
    struct slice reply;
    unsigned taken = 0, refused = 0;
    if (getenv("PATTERNS_ON")) return; /* elsewhere it would take long, and say the same */
    patterns_open(&patterns);
    table_make(&patterns);
    for (size_t c = 0; c < sizeof conditions / sizeof *conditions; c++)
        for (size_t n = 0; n < sizeof names / sizeof *names; n++)
            for (size_t t = 0; t < TYPES; t++) {
                bool can = false;
                for (size_t v = types[t]; v < types[t + 1]; v++)
                    can |= holds(&patterns, conditions[c], names[n], values[v].typed);
                bool is = is_taken(&patterns, conditions[c], names[n], values[types[t]].plain, &reply);
                taken += is;
                refused += !is;
                if (is != can)
                    test_failed(__FILE__, __LINE__, "%s with %s and %s %s: %.*s", conditions[c], names[n],
                                values[types[t]].plain, can ? "can hold" : "never holds", SLICE_ARG(reply));
            }
    printf("group: of %u conditions by types %u are taken, %u refused\n", taken + refused, taken, refused);
    CHECK(taken > 100 && refused > 500);
    patterns_close(&patterns);
}

TEST(group_conditions_of_types_and_presence)
{
    static const char *const letters[] = {"'S'", "'N'", "'BOOL'", "'NULL'", "'L'", "'M'", "'SS'"};
    static const char *const presence[] = {"attribute_exists(~)", "attribute_not_exists(~)",
                                           "not attribute_exists(~)", "not attribute_not_exists(~)"};
    struct patterns patterns;
    struct slice reply;
    char typed[40];
    if (getenv("PATTERNS_ON")) return;
    patterns_open(&patterns);
    table_make(&patterns);
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        if (strncmp(names[n], "size", 4) == 0) continue;
        for (size_t t = 0; t < sizeof letters / sizeof *letters; t++) {
            snprintf(typed, sizeof typed, "{'S':%s}", letters[t]);
            bool can = holds(&patterns, "attribute_type(~, :v)", names[n], typed);
            if (is_taken(&patterns, "attribute_type(~, :v)", names[n], letters[t], &reply) != can)
                test_failed(__FILE__, __LINE__, "attribute_type of %s, %s: %.*s", names[n], letters[t],
                            SLICE_ARG(reply));
        }
        for (size_t p = 0; p < sizeof presence / sizeof *presence; p++) {
            bool can = holds(&patterns, presence[p], names[n], NULL);
            if (is_taken(&patterns, presence[p], names[n], NULL, &reply) != can)
                test_failed(__FILE__, __LINE__, "%s of %s: %.*s", presence[p], names[n], SLICE_ARG(reply));
        }
    }
    patterns_close(&patterns);
}

/* Sizes of what has none, and conditions that are deep or broken: an answer, and no harm. */
TEST(group_conditions_that_are_odd)
{
    static const char *const sizeless[] = {"count", "sum", "opened", "touched"};
    static const char *const broken[] = {"~ >",          "not",           "contains(~",
                                         "~ between :v", "~ in ()",       "size(",
                                         "~[",           "~[0",           "~.",
                                         "~ = :none",    "~ = :v and",    "(~ = :v",
                                         "not not not",  "begins_with()", "attribute_type(~)"};
    struct patterns patterns;
    struct buf body = {0};
    struct slice reply;
    patterns_open(&patterns);
    for (size_t i = 0; i < sizeof sizeless / sizeof *sizeless; i++)
        CHECK(!is_taken(&patterns, "size(~) > :v", sizeless[i], "1", &reply));
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        if (is_taken(&patterns, broken[i], "count", "1", &reply))
            test_failed(__FILE__, __LINE__, "taken: %s", broken[i]);
    buf_text(&body, "{\"complete\":{\"when\":{\"values\":{\":v\":1},\"expression\":\"");
    for (int i = 0; i < 400; i++) buf_byte(&body, '(');
    buf_text(&body, "#count > :v");
    for (int i = 0; i < 400; i++) buf_byte(&body, ')');
    buf_put(&body, "\"}}}", 5);
    asks(&patterns, "PUT /v1/groups/g", body.data);
    CHECK_INT(patterns.call.status, 400);
    for (int last = 0; last < 2; last++) { /* with as many names as it may have; the last of it never holds */
        body.len = 0;
        buf_printf(&body, "{\"complete\":{\"when\":{\"values\":{\":v\":1%s},\"expression\":\"#count>:v",
                   last ? ",\":w\":\"x\"" : "");
        for (int i = 0; i < 8; i++) buf_text(&body, " and #count>:v");
        buf_slice(&body, last ? SLICE(" and #count>:w") : SLICE(" and #count>:v"));
        buf_put(&body, "\"}}}", 5);
        reply = asks(&patterns, "PUT /v1/groups/g", body.data);
        CHECK_INT(patterns.call.status, last ? 400 : 200);
        CHECK(!last || slice_contains(reply, SLICE("count is a number, which it compares with \\\"x\\\"")));
    }
    buf_free(&body);
    patterns_close(&patterns);
}
