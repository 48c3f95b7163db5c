/* Which events match which patterns: tables of rows, by topic. */
#include "base/arena.h"
#include "match/match.h"
#include "unit/test.h"

struct row {
    const char *pattern, *event;
    bool matches;
};

static void check_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct arena arena = {0}, scratch = {0};
        char error[256];
        struct event_pattern *pattern = pattern_compile(&arena, slice_of(rows[i].pattern), error,
                                                        sizeof error);
        if (!pattern)
            test_failed(__FILE__, __LINE__, "%s was refused: %s", rows[i].pattern, error);
        else if (pattern_matches(pattern, slice_of(rows[i].event), &scratch) != rows[i].matches)
            test_failed(__FILE__, __LINE__, "%s %s %s", rows[i].pattern,
                        rows[i].matches ? "should match" : "should not match", rows[i].event);
        arena_free(&arena);
        arena_free(&scratch);
    }
}

#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof *(rows))

TEST(plain_values_are_compared_exactly)
{
    static const struct row rows[] = {
        {"{\"a\":[\"x\"]}", "{\"a\":\"x\"}", true},
        {"{\"a\":[\"x\"]}", "{\"a\":\"X\"}", false},
        {"{\"a\":[\"x\"]}", "{\"a\":\"xx\"}", false},
        {"{\"a\":[\"x\"]}", "{\"a\":\"\"}", false},
        {"{\"a\":[\"x\"]}", "{\"b\":\"x\"}", false},
        {"{\"a\":[\"x\"]}", "{}", false},
        {"{\"a\":[\"x\"]}", "{\"a\":{\"x\":1}}", false},
        {"{\"a\":[\"x\"]}", "{\"a\":[]}", false},
        {"{\"a\":[\"x\"]}", "{\"a\":{}}", false},
        {"{\"a\":[\"x\",\"y\"]}", "{\"a\":\"y\"}", true},
        {"{\"a\":[\"x\",\"y\"]}", "{\"a\":\"z\"}", false},
        {"{\"a\":[\"\"]}", "{\"a\":\"\"}", true},
        {"{\"a\":[\"\"]}", "{\"a\":null}", false},
        {"{\"a\":[\"\"]}", "{}", false},
        {"{\"a\":[null]}", "{\"a\":null}", true},
        {"{\"a\":[null]}", "{\"a\":\"\"}", false},
        {"{\"a\":[null]}", "{\"a\":\"null\"}", false},
        {"{\"a\":[null]}", "{}", false},
        {"{\"a\":[true]}", "{\"a\":true}", true},
        {"{\"a\":[true]}", "{\"a\":false}", false},
        {"{\"a\":[true]}", "{\"a\":\"true\"}", false},
        {"{\"a\":[false]}", "{\"a\":false}", true},
        {"{\"a\":[false]}", "{\"a\":0}", false},
        {"{\"a\":[5]}", "{\"a\":5}", true},
        {"{\"a\":[5]}", "{\"a\":5.0}", true},
        {"{\"a\":[5]}", "{\"a\":0.5e1}", true},
        {"{\"a\":[5]}", "{\"a\":\"5\"}", false},
        {"{\"a\":[5]}", "{\"a\":50}", false},
        {"{\"a\":[\"5\"]}", "{\"a\":5}", false},
        {"{\"a\":[\"5\"]}", "{\"a\":\"5\"}", true},
        {"{\"a\":[-0]}", "{\"a\":0}", true},
        {"{\"a\":[\"x\",5,null,{\"prefix\":\"p\"}]}", "{\"a\":\"pq\"}", true},
        {"{\"a\":[\"x\",5,null,{\"prefix\":\"p\"}]}", "{\"a\":5}", true},
        {"{\"a\":[\"x\",5,null,{\"prefix\":\"p\"}]}", "{\"a\":true}", false},
        {"{\"a\":[{\"exactly\":\"x\"}]}", "{\"a\":\"x\"}", true},
        {"{\"a\":[{\"exactly\":\"x\"}]}", "{\"a\":\"y\"}", false},
    };
    CHECK_ROWS(rows);
}

TEST(escapes_are_the_same_text)
{
    static const struct row rows[] = {
        {"{\"a\":[\"\\u00e9\"]}", "{\"a\":\"\xc3\xa9\"}", true},
        {"{\"a\":[\"\xc3\xa9\"]}", "{\"a\":\"\\u00e9\"}", true},
        {"{\"\\u0061\":[\"x\"]}", "{\"a\":\"x\"}", true},
        {"{\"a\":[\"x\"]}", "{\"\\u0061\":\"x\"}", true},
        {"{\"a\":[\"a\\nb\"]}", "{\"a\":\"a\\u000ab\"}", true},
        {"{\"a\":[{\"prefix\":\"\\\"\"}]}", "{\"a\":\"\\\"quoted\\\"\"}", true},
        {"{\"a\":[{\"suffix\":\"\\\"\"}]}", "{\"a\":\"\\\"quoted\\\"\"}", true},
        {"{\"\":[\"x\"]}", "{\"\":\"x\"}", true},
        {"{\"a.b\":[\"x\"]}", "{\"a.b\":\"x\"}", true},
    };
    CHECK_ROWS(rows);
}

TEST(names_must_all_match)
{
    static const struct row rows[] = {
        {"{\"a\":[\"x\"],\"b\":[\"y\"]}", "{\"a\":\"x\",\"b\":\"y\"}", true},
        {"{\"a\":[\"x\"],\"b\":[\"y\"]}", "{\"b\":\"y\",\"c\":1,\"a\":\"x\"}", true},
        {"{\"a\":[\"x\"],\"b\":[\"y\"]}", "{\"a\":\"x\",\"b\":\"z\"}", false},
        {"{\"a\":[\"x\"],\"b\":[\"y\"]}", "{\"a\":\"x\"}", false},
        {"{\"a\":{\"b\":{\"c\":[1]}}}", "{\"a\":{\"b\":{\"c\":1}}}", true},
        {"{\"a\":{\"b\":{\"c\":[1]}}}", "{\"a\":{\"b\":{\"d\":1}}}", false},
        {"{\"a\":{\"b\":{\"c\":[1]}}}", "{\"a\":{\"c\":1}}", false},
        {"{\"a\":{\"b\":{\"c\":[1]}}}", "{\"a\":{\"b\":1}}", false},
        {"{\"a\":{\"b\":{\"c\":[1]}}}", "{\"a\":1}", false},
        {"{\"a\":{\"b\":[1]}}", "{\"b\":1}", false},
        {"{\"a\":{\"b\":[1],\"c\":[2]}}", "{\"a\":{\"c\":2,\"b\":1}}", true},
        {"{\"a\":{\"b\":[1]},\"c\":{\"d\":[2]}}", "{\"a\":{\"b\":1},\"c\":{\"d\":2}}", true},
        {"{\"a\":{\"b\":[1]},\"c\":{\"d\":[2]}}", "{\"a\":{\"b\":1},\"c\":{\"d\":3}}", false},
    };
    CHECK_ROWS(rows);
}

TEST(what_is_not_an_object_of_json_matches_nothing)
{
    static const struct row rows[] = {
        {"{\"a\":[1]}", "", false},
        {"{\"a\":[1]}", "[{\"a\":1}]", false},
        {"{\"a\":[1]}", "1", false},
        {"{\"a\":[1]}", "{\"a\":1", false},
        {"{\"a\":[1]}", "{\"a\":1}}", false},
        {"{\"a\":[1]}", "{\"a\":1,}", false},
        {"{\"a\":[1]}", "{\"a\":1,\"b\":tru}", false},
        {"{\"a\":[1]}", "{\"a\":1,\"b\":\"\xff\"}", false},
        {"{\"a\":[{\"exists\":false}]}", "{\"b\":", false},
        {"{\"a\":[1]}", " {\n\"a\" :\t1 } ", true},
    };
    CHECK_ROWS(rows);
}

TEST(prefix_and_suffix)
{
    static const struct row rows[] = {
        {"{\"a\":[{\"prefix\":\"us-\"}]}", "{\"a\":\"us-east-1\"}", true},
        {"{\"a\":[{\"prefix\":\"us-\"}]}", "{\"a\":\"us-\"}", true},
        {"{\"a\":[{\"prefix\":\"us-\"}]}", "{\"a\":\"us\"}", false},
        {"{\"a\":[{\"prefix\":\"us-\"}]}", "{\"a\":\"US-east\"}", false},
        {"{\"a\":[{\"prefix\":\"\"}]}", "{\"a\":\"\"}", true},
        {"{\"a\":[{\"prefix\":\"\"}]}", "{\"a\":1}", false},
        {"{\"a\":[{\"prefix\":\"1\"}]}", "{\"a\":12}", false},
        {"{\"a\":[{\"prefix\":\"t\"}]}", "{\"a\":true}", false},
        {"{\"a\":[{\"suffix\":\".png\"}]}", "{\"a\":\"x.png\"}", true},
        {"{\"a\":[{\"suffix\":\".png\"}]}", "{\"a\":\".png\"}", true},
        {"{\"a\":[{\"suffix\":\".png\"}]}", "{\"a\":\"png\"}", false},
        {"{\"a\":[{\"suffix\":\".png\"}]}", "{\"a\":\"x.PNG\"}", false},
        {"{\"a\":[{\"prefix\":{\"equals-ignore-case\":\"Us-\"}}]}", "{\"a\":\"uS-east\"}", true},
        {"{\"a\":[{\"prefix\":{\"equals-ignore-case\":\"Us-\"}}]}", "{\"a\":\"us\"}", false},
        {"{\"a\":[{\"suffix\":{\"equals-ignore-case\":\".Png\"}}]}", "{\"a\":\"x.pNG\"}", true},
        {"{\"a\":[{\"suffix\":{\"equals-ignore-case\":\".Png\"}}]}", "{\"a\":\"png\"}", false},
        {"{\"a\":[{\"suffix\":{\"equals-ignore-case\":\"\xc3\xa9t\xc3\xa9\"}}]}",
         "{\"a\":\"l'\xc3\x89T\xc3\x89\"}", true},
        {"{\"a\":[{\"prefix\":{\"equals-ignore-case\":\"\xc3\xa9t\"}}]}", "{\"a\":\"\xc3\x89T\xc3\x89\"}",
         true},
    };
    CHECK_ROWS(rows);
}

TEST(equals_ignore_case)
{
    static const struct row rows[] = {
        {"{\"a\":[{\"equals-ignore-case\":\"Alice\"}]}", "{\"a\":\"aLICE\"}", true},
        {"{\"a\":[{\"equals-ignore-case\":\"Alice\"}]}", "{\"a\":\"alice \"}", false},
        {"{\"a\":[{\"equals-ignore-case\":\"Alice\"}]}", "{\"a\":\"alic\"}", false},
        {"{\"a\":[{\"equals-ignore-case\":\"\"}]}", "{\"a\":\"\"}", true},
        {"{\"a\":[{\"equals-ignore-case\":\"\xce\xa3\"}]}", "{\"a\":\"\xcf\x82\"}", true}, /* sigmas */
        {"{\"a\":[{\"equals-ignore-case\":\"\xc8\xba\"}]}", "{\"a\":\"\xe2\xb1\xa5\"}",
         true}, /* 2 and 3 bytes */
        {"{\"a\":[{\"equals-ignore-case\":\"\xf0\x90\x90\x80\"}]}", "{\"a\":\"\xf0\x90\x90\xa8\"}", true},
        {"{\"a\":[{\"equals-ignore-case\":\"\xd0\x96\"}]}", "{\"a\":\"\xd0\xb6\"}", true},
        {"{\"a\":[{\"equals-ignore-case\":\"true\"}]}", "{\"a\":true}", false},
        {"{\"a\":[{\"equals-ignore-case\":\"[\"}]}", "{\"a\":\"{\"}", false},
    };
    CHECK_ROWS(rows);
}

TEST(wildcards)
{
    static const struct row rows[] = {
        {"{\"a\":[{\"wildcard\":\"*\"}]}", "{\"a\":\"\"}", true},
        {"{\"a\":[{\"wildcard\":\"*\"}]}", "{\"a\":\"anything\"}", true},
        {"{\"a\":[{\"wildcard\":\"*\"}]}", "{\"a\":1}", false},
        {"{\"a\":[{\"wildcard\":\"abc\"}]}", "{\"a\":\"abc\"}", true},
        {"{\"a\":[{\"wildcard\":\"abc\"}]}", "{\"a\":\"abcd\"}", false},
        {"{\"a\":[{\"wildcard\":\"a*c\"}]}", "{\"a\":\"ac\"}", true},
        {"{\"a\":[{\"wildcard\":\"a*c\"}]}", "{\"a\":\"abbbc\"}", true},
        {"{\"a\":[{\"wildcard\":\"a*c\"}]}", "{\"a\":\"abcb\"}", false},
        {"{\"a\":[{\"wildcard\":\"a*a\"}]}", "{\"a\":\"a\"}", false},
        {"{\"a\":[{\"wildcard\":\"a*a\"}]}", "{\"a\":\"aa\"}", true},
        {"{\"a\":[{\"wildcard\":\"ab*ba\"}]}", "{\"a\":\"aba\"}", false},
        {"{\"a\":[{\"wildcard\":\"*b*\"}]}", "{\"a\":\"abc\"}", true},
        {"{\"a\":[{\"wildcard\":\"*b*\"}]}", "{\"a\":\"acc\"}", false},
        {"{\"a\":[{\"wildcard\":\"*a*b*c*\"}]}", "{\"a\":\"xxaxxbxxcxx\"}", true},
        {"{\"a\":[{\"wildcard\":\"*a*b*c*\"}]}", "{\"a\":\"cba\"}", false},
        {"{\"a\":[{\"wildcard\":\"*aab*aab\"}]}", "{\"a\":\"aaabaaaab\"}", true},
        {"{\"a\":[{\"wildcard\":\"*aab*aab\"}]}", "{\"a\":\"xaab\"}", false},
        {"{\"a\":[{\"wildcard\":\"dir/*.png\"}]}", "{\"a\":\"dir/sub/x.png\"}", true},
        {"{\"a\":[{\"wildcard\":\"\\\\*\"}]}", "{\"a\":\"*\"}", true},
        {"{\"a\":[{\"wildcard\":\"\\\\*\"}]}", "{\"a\":\"x\"}", false},
        {"{\"a\":[{\"wildcard\":\"a\\\\\\\\*\"}]}", "{\"a\":\"a\\\\bcd\"}", true},
        {"{\"a\":[{\"wildcard\":\"a\\\\**\"}]}", "{\"a\":\"a*bcd\"}", true},
        {"{\"a\":[{\"wildcard\":\"\"}]}", "{\"a\":\"\"}", true},
        {"{\"a\":[{\"wildcard\":\"\"}]}", "{\"a\":\"a\"}", false},
    };
    CHECK_ROWS(rows);
}

TEST(anything_but)
{
    static const struct row rows[] = {
        {"{\"a\":[{\"anything-but\":\"x\"}]}", "{\"a\":\"y\"}", true},
        {"{\"a\":[{\"anything-but\":\"x\"}]}", "{\"a\":\"x\"}", false},
        {"{\"a\":[{\"anything-but\":\"x\"}]}", "{\"a\":1}", true},
        {"{\"a\":[{\"anything-but\":\"x\"}]}", "{\"a\":null}", true},
        {"{\"a\":[{\"anything-but\":\"x\"}]}", "{}", false},
        {"{\"a\":[{\"anything-but\":\"x\"}]}", "{\"a\":[]}", false},
        {"{\"a\":[{\"anything-but\":\"x\"}]}", "{\"a\":{\"b\":1}}", false},
        {"{\"a\":[{\"anything-but\":\"x\"}]}", "{\"a\":[\"x\",\"y\"]}", true},
        {"{\"a\":[{\"anything-but\":\"x\"}]}", "{\"a\":[\"x\",\"x\"]}", false},
        {"{\"a\":[{\"anything-but\":[\"x\",\"y\"]}]}", "{\"a\":\"y\"}", false},
        {"{\"a\":[{\"anything-but\":[\"x\",\"y\"]}]}", "{\"a\":\"z\"}", true},
        {"{\"a\":[{\"anything-but\":[\"x\"]}]}", "{\"a\":\"x\"}", false},
        {"{\"a\":[{\"anything-but\":5}]}", "{\"a\":5}", false},
        {"{\"a\":[{\"anything-but\":5}]}", "{\"a\":5.00}", false},
        {"{\"a\":[{\"anything-but\":5}]}", "{\"a\":6}", true},
        {"{\"a\":[{\"anything-but\":5}]}", "{\"a\":\"5\"}", true},
        {"{\"a\":[{\"anything-but\":[1,2,3,4,5]}]}", "{\"a\":4}", false},
        {"{\"a\":[{\"anything-but\":[1,2,3,4,5]}]}", "{\"a\":6}", true},
        {"{\"a\":[{\"anything-but\":\"101\"}]}", "{\"a\":\"42\"}", true},
        {"{\"a\":[{\"anything-but\":{\"prefix\":\"in\"}}]}", "{\"a\":\"out\"}", true},
        {"{\"a\":[{\"anything-but\":{\"prefix\":\"in\"}}]}", "{\"a\":\"inside\"}", false},
        {"{\"a\":[{\"anything-but\":{\"prefix\":\"in\"}}]}", "{\"a\":7}", true},
        {"{\"a\":[{\"anything-but\":{\"prefix\":[\"in\",\"on\"]}}]}", "{\"a\":\"onto\"}", false},
        {"{\"a\":[{\"anything-but\":{\"prefix\":[\"in\",\"on\"]}}]}", "{\"a\":\"at\"}", true},
        {"{\"a\":[{\"anything-but\":{\"suffix\":\".txt\"}}]}", "{\"a\":\"a.txt\"}", false},
        {"{\"a\":[{\"anything-but\":{\"suffix\":\".txt\"}}]}", "{\"a\":\"a.png\"}", true},
        {"{\"a\":[{\"anything-but\":{\"suffix\":[\".txt\",\".rtf\"]}}]}", "{\"a\":\"a.rtf\"}", false},
        {"{\"a\":[{\"anything-but\":{\"suffix\":[\".txt\",\".rtf\"]}}]}", "{\"a\":\"a.png\"}", true},
        {"{\"a\":[{\"anything-but\":{\"equals-ignore-case\":\"Stop\"}}]}", "{\"a\":\"STOP\"}", false},
        {"{\"a\":[{\"anything-but\":{\"equals-ignore-case\":\"Stop\"}}]}", "{\"a\":\"stops\"}", true},
        {"{\"a\":[{\"anything-but\":{\"equals-ignore-case\":[\"Stop\",\"Wait\"]}}]}", "{\"a\":\"wait\"}",
         false},
        {"{\"a\":[{\"anything-but\":{\"equals-ignore-case\":[\"Stop\",\"Wait\"]}}]}", "{\"a\":\"go\"}", true},
        {"{\"a\":[{\"anything-but\":{\"wildcard\":\"*/bin/*\"}}]}", "{\"a\":\"/bin/x\"}", false},
        {"{\"a\":[{\"anything-but\":{\"wildcard\":\"*/bin/*\"}}]}", "{\"a\":\"/lib/x\"}", true},
        {"{\"a\":[{\"anything-but\":{\"wildcard\":[\"*.c\",\"*.h\"]}}]}", "{\"a\":\"x.h\"}", false},
        {"{\"a\":[{\"anything-but\":{\"wildcard\":[\"*.c\",\"*.h\"]}}]}", "{\"a\":\"x.o\"}", true},
        {"{\"a\":[\"x\",{\"anything-but\":[\"x\",\"y\"]}]}", "{\"a\":\"x\"}", true},
        {"{\"a\":[\"x\",{\"anything-but\":[\"x\",\"y\"]}]}", "{\"a\":\"y\"}", false},
    };
    CHECK_ROWS(rows);
}

TEST(numbers_are_compared_exactly)
{
    static const struct row rows[] = {
        {"{\"a\":[{\"numeric\":[\"=\",5]}]}", "{\"a\":5}", true},
        {"{\"a\":[{\"numeric\":[\"=\",5]}]}", "{\"a\":5.000}", true},
        {"{\"a\":[{\"numeric\":[\"=\",5]}]}", "{\"a\":50e-1}", true},
        {"{\"a\":[{\"numeric\":[\"=\",5]}]}", "{\"a\":-5}", false},
        {"{\"a\":[{\"numeric\":[\"=\",5]}]}", "{\"a\":\"5\"}", false},
        {"{\"a\":[{\"numeric\":[\"=\",3.018e2]}]}", "{\"a\":301.8}", true},
        {"{\"a\":[{\"numeric\":[\">\",0]}]}", "{\"a\":0.0000001}", true},
        {"{\"a\":[{\"numeric\":[\">\",0]}]}", "{\"a\":0}", false},
        {"{\"a\":[{\"numeric\":[\">\",0]}]}", "{\"a\":-0.0}", false},
        {"{\"a\":[{\"numeric\":[\">\",0]}]}", "{\"a\":-1}", false},
        {"{\"a\":[{\"numeric\":[\">=\",0]}]}", "{\"a\":-0}", true},
        {"{\"a\":[{\"numeric\":[\"<\",0]}]}", "{\"a\":-0.001}", true},
        {"{\"a\":[{\"numeric\":[\"<\",10]}]}", "{\"a\":9.99999}", true},
        {"{\"a\":[{\"numeric\":[\"<\",10]}]}", "{\"a\":10}", false},
        {"{\"a\":[{\"numeric\":[\"<=\",10]}]}", "{\"a\":1e1}", true},
        {"{\"a\":[{\"numeric\":[\"<=\",10]}]}", "{\"a\":10.1}", false},
        {"{\"a\":[{\"numeric\":[\">\",0,\"<=\",5]}]}", "{\"a\":5}", true},
        {"{\"a\":[{\"numeric\":[\">\",0,\"<=\",5]}]}", "{\"a\":0}", false},
        {"{\"a\":[{\"numeric\":[\">\",0,\"<=\",5]}]}", "{\"a\":5.01}", false},
        {"{\"a\":[{\"numeric\":[\">=\",-5,\"<\",-1]}]}", "{\"a\":-5}", true},
        {"{\"a\":[{\"numeric\":[\">=\",-5,\"<\",-1]}]}", "{\"a\":-1}", false},
        {"{\"a\":[{\"numeric\":[\">=\",-5,\"<\",-1]}]}", "{\"a\":-1.0001}", true},
        {"{\"a\":[{\"numeric\":[\">=\",-5,\"<\",-1]}]}", "{\"a\":-6}", false},
        {"{\"a\":[{\"numeric\":[\"=\",12345678901234567890123456789012345678]}]}",
         "{\"a\":12345678901234567890123456789012345678}", true},
        {"{\"a\":[{\"numeric\":[\"=\",12345678901234567890123456789012345678]}]}",
         "{\"a\":12345678901234567890123456789012345679}", false},
        {"{\"a\":[{\"numeric\":[\">\",9007199254740992]}]}", "{\"a\":9007199254740993}", true},
        {"{\"a\":[{\"numeric\":[\"=\",0.3]}]}", "{\"a\":0.30000000000000004}", false},
        {"{\"a\":[{\"numeric\":[\"<\",1e400]}]}", "{\"a\":1e399}", true},
        {"{\"a\":[{\"numeric\":[\"<\",1e400]}]}", "{\"a\":1e401}", false},
        {"{\"a\":[{\"numeric\":[\"<\",1]}]}", "{\"a\":1e-99999999999999999999}", true},
        {"{\"a\":[{\"numeric\":[\"<\",1]}]}", "{\"a\":1e99999999999999999999}", false},
        {"{\"a\":[{\"numeric\":[\">\",1]}]}", "{\"a\":0e99999999999999999999}", false},
        {"{\"a\":[{\"numeric\":[\">\",99]}]}", "{\"a\":[1,2,100]}", true},
        {"{\"a\":[{\"numeric\":[\"=\",0]}]}", "{\"a\":0.000e5}", true},
        {"{\"a\":[{\"numeric\":[\"=\",100]}]}", "{\"a\":100.0}", true},
        {"{\"a\":[{\"numeric\":[\"=\",1.05]}]}", "{\"a\":1.5}", false},
        {"{\"a\":[{\"numeric\":[\">\",1.05]}]}", "{\"a\":1.5}", true},
        {"{\"a\":[{\"numeric\":[\"<\",0.05]}]}", "{\"a\":0.5}", false},
        {"{\"a\":[{\"numeric\":[\"<\",20]}]}", "{\"a\":9}", true},
    };
    CHECK_ROWS(rows);
}

TEST(addresses)
{
    static const struct row rows[] = {
        {"{\"a\":[{\"cidr\":\"10.0.0.0/24\"}]}", "{\"a\":\"10.0.0.255\"}", true},
        {"{\"a\":[{\"cidr\":\"10.0.0.0/24\"}]}", "{\"a\":\"10.0.1.0\"}", false},
        {"{\"a\":[{\"cidr\":\"10.0.0.77/24\"}]}", "{\"a\":\"10.0.0.1\"}", true},
        {"{\"a\":[{\"cidr\":\"10.0.0.0/0\"}]}", "{\"a\":\"255.1.2.3\"}", true},
        {"{\"a\":[{\"cidr\":\"10.0.0.0/0\"}]}", "{\"a\":\"::1\"}", false},
        {"{\"a\":[{\"cidr\":\"10.0.0.128/25\"}]}", "{\"a\":\"10.0.0.127\"}", false},
        {"{\"a\":[{\"cidr\":\"10.0.0.128/25\"}]}", "{\"a\":\"10.0.0.128\"}", true},
        {"{\"a\":[{\"cidr\":\"10.0.0.0/31\"}]}", "{\"a\":\"10.0.0.1\"}", true},
        {"{\"a\":[{\"cidr\":\"10.0.0.0/31\"}]}", "{\"a\":\"10.0.0.2\"}", false},
        {"{\"a\":[{\"cidr\":\"10.0.0.0/24\"}]}", "{\"a\":\"10.0.0\"}", false},
        {"{\"a\":[{\"cidr\":\"10.0.0.0/24\"}]}", "{\"a\":\"localhost\"}", false},
        {"{\"a\":[{\"cidr\":\"10.0.0.0/24\"}]}", "{\"a\":10}", false},
        {"{\"a\":[{\"cidr\":\"2001:db8::/32\"}]}", "{\"a\":\"2001:db8:1::5\"}", true},
        {"{\"a\":[{\"cidr\":\"2001:db8::/32\"}]}", "{\"a\":\"2001:db9::\"}", false},
        {"{\"a\":[{\"cidr\":\"2001:db8::/127\"}]}", "{\"a\":\"2001:db8::1\"}", true},
        {"{\"a\":[{\"cidr\":\"2001:db8::/127\"}]}", "{\"a\":\"2001:db8::2\"}", false},
        {"{\"a\":[\"::1\"]}", "{\"a\":\"0:0:0:0:0:0:0:1\"}", true},
        {"{\"a\":[\"10.0.0.1\"]}", "{\"a\":\"10.0.0.1\"}", true},
        {"{\"a\":[\"10.0.0.1\"]}", "{\"a\":\"10.0.0.2\"}", false},
    };
    CHECK_ROWS(rows);
}

TEST(exists_knows_only_leaves)
{
    static const struct row rows[] = {
        {"{\"a\":[{\"exists\":true}]}", "{\"a\":1}", true},
        {"{\"a\":[{\"exists\":true}]}", "{\"a\":null}", true},
        {"{\"a\":[{\"exists\":true}]}", "{\"a\":\"\"}", true},
        {"{\"a\":[{\"exists\":true}]}", "{\"a\":[1,2]}", true},
        {"{\"a\":[{\"exists\":true}]}", "{\"a\":[]}", false},
        {"{\"a\":[{\"exists\":true}]}", "{\"a\":{\"b\":1}}", false},
        {"{\"a\":[{\"exists\":true}]}", "{\"a\":[{\"b\":1}]}", false},
        {"{\"a\":[{\"exists\":true}]}", "{\"b\":1}", false},
        {"{\"a\":[{\"exists\":false}]}", "{\"b\":1}", true},
        {"{\"a\":[{\"exists\":false}]}", "{}", true},
        {"{\"a\":[{\"exists\":false}]}", "{\"a\":1}", false},
        {"{\"a\":[{\"exists\":false}]}", "{\"a\":null}", false},
        {"{\"a\":[{\"exists\":false}]}", "{\"a\":[]}", true},
        {"{\"a\":[{\"exists\":false}]}", "{\"a\":{\"b\":1}}", true},
        {"{\"a\":[{\"exists\":false},\"x\"]}", "{\"a\":\"x\"}", true},
        {"{\"a\":[{\"exists\":false},\"x\"]}", "{\"a\":\"y\"}", false},
        {"{\"a\":[{\"exists\":false},\"x\"]}", "{}", true},
        {"{\"a\":{\"b\":[{\"exists\":false}]}}", "{}", true},
        {"{\"a\":{\"b\":[{\"exists\":false}]}}", "{\"a\":1}", true},
        {"{\"a\":{\"b\":[{\"exists\":false}]}}", "{\"a\":{\"c\":1}}", true},
        {"{\"a\":{\"b\":[{\"exists\":false}]}}", "{\"a\":{\"b\":1}}", false},
        {"{\"a\":{\"b\":[{\"exists\":false}]},\"c\":[1]}", "{\"c\":1}", true},
        {"{\"a\":{\"b\":[{\"exists\":false}]},\"c\":[1]}", "{\"c\":2}", false},
        {"{\"dynamodb\":{\"NewImage\":{\"o\":[{\"exists\":true}]}}}",
         "{\"dynamodb\":{\"NewImage\":{\"o\":{\"S\":\"x\"}}}}", false},
        {"{\"dynamodb\":{\"NewImage\":{\"o\":[{\"exists\":false}]}}}",
         "{\"dynamodb\":{\"NewImage\":{\"o\":{\"S\":\"x\"}}}}", true},
        {"{\"dynamodb\":{\"NewImage\":{\"o\":{\"S\":[{\"exists\":true}]}}}}",
         "{\"dynamodb\":{\"NewImage\":{\"o\":{\"S\":\"x\"}}}}", true},
        {"{\"dynamodb\":{\"NewImage\":{\"o\":{\"L\":{\"S\":[{\"exists\":true}]}}}}}",
         "{\"dynamodb\":{\"NewImage\":{\"o\":{\"L\":[{\"S\":\"x\"},{\"S\":\"y\"}]}}}}", true},
    };
    CHECK_ROWS(rows);
}

TEST(arrays_of_scalars_match_by_any_element)
{
    static const struct row rows[] = {
        {"{\"t\":[\"admin\"]}", "{\"t\":[\"user\",\"admin\"]}", true},
        {"{\"t\":[\"root\"]}", "{\"t\":[\"user\",\"admin\"]}", false},
        {"{\"t\":[\"admin\"]}", "{\"t\":[[\"user\"],[\"admin\"]]}", true},
        {"{\"t\":[1]}", "{\"t\":[{\"x\":1},1]}", true},
        {"{\"d\":{\"t\":[{\"prefix\":\"ad\"}],\"k\":[{\"exists\":true}]}}",
         "{\"d\":{\"t\":[\"admin\",\"user\"],\"k\":\"G\"}}", true},
        {"{\"t\":[\"a\"],\"u\":[\"x\"]}", "{\"t\":[\"b\",\"a\"],\"u\":[\"x\",\"y\"]}", true},
        {"{\"t\":[null]}", "{\"t\":[1,null]}", true},
        {"{\"a\":[\"x\"],\"a\":{\"b\":[1]}}", "{\"a\":[\"x\",{\"b\":1}]}", true},
        {"{\"a\":[\"x\"],\"a\":{\"b\":[1]}}", "{\"a\":[\"y\",{\"b\":1}]}", false},
    };
    CHECK_ROWS(rows);
}

TEST(arrays_of_objects_match_by_one_element)
{
    static const struct row rows[] = {
        {"{\"e\":{\"f\":[\"Anna\"]}}", "{\"e\":[{\"f\":\"John\"},{\"f\":\"Anna\"}]}", true},
        {"{\"e\":{\"f\":[\"Anna\"],\"l\":[\"Jones\"]}}",
         "{\"e\":[{\"f\":\"Anna\",\"l\":\"Smith\"},{\"f\":\"Peter\",\"l\":\"Jones\"}]}", false},
        {"{\"e\":{\"f\":[\"Anna\"],\"l\":[\"Smith\"]}}",
         "{\"e\":[{\"f\":\"Peter\",\"l\":\"Jones\"},{\"f\":\"Anna\",\"l\":\"Smith\"}]}", true},
        {"{\"e\":{\"f\":[\"Anna\"],\"l\":[\"Smith\"]}}",
         "{\"e\":[[{\"f\":\"P\",\"l\":\"J\"}],[{\"f\":\"Anna\",\"l\":\"Smith\"}]]}", true},
        {"{\"e\":{\"f\":[\"Anna\"],\"l\":[\"Smith\"]}}", "{\"e\":[[{\"f\":\"Anna\"},{\"l\":\"Smith\"}]]}",
         false},
        {"{\"u\":{\"t\":{\"k\":[\"c\"],\"v\":[\"b\"]}}}", "{\"u\":[{\"t\":[{\"k\":\"c\",\"v\":\"b\"}]}]}",
         true},
        {"{\"u\":{\"t\":{\"k\":[\"c\"],\"v\":[\"b\"]}}}", "{\"u\":[{\"t\":[{\"k\":\"c\"},{\"v\":\"b\"}]}]}",
         false},
        {"{\"d\":{\"n\":[{\"exists\":true}],\"i\":{\"x\":[\"1\"]}}}",
         "{\"d\":[{\"n\":\"a\"},{\"i\":{\"x\":\"1\"}}]}", false},
        {"{\"d\":{\"n\":[{\"exists\":true}],\"i\":{\"x\":[\"1\"]}}}",
         "{\"d\":[{\"n\":\"a\",\"i\":{\"x\":\"1\"}}]}", true},
        {"{\"i\":{\"p\":[{\"numeric\":[\">\",0,\"<\",100]}],\"n\":[\"g\"]}}",
         "{\"i\":[{\"n\":\"w\",\"p\":50},{\"n\":\"g\",\"p\":200}]}", false},
        {"{\"u\":{\"s\":[{\"anything-but\":\"no\"}],\"n\":[{\"exists\":true}]}}",
         "{\"u\":[{\"n\":\"a\",\"s\":\"no\"},{\"n\":\"b\",\"s\":\"yes\"}]}", true},
        {"{\"a\":{\"x\":[1]},\"b\":{\"y\":[2]}}", "{\"a\":[{\"x\":0},{\"x\":1}],\"b\":[{\"y\":2}]}", true},
        {"{\"d\":{\"a\":[1],\"b\":[2]},\"e\":[3]}", "{\"d\":[{\"a\":1},{\"b\":2}],\"e\":3}", false},
        {"{\"d\":{\"a\":[{\"exists\":true}]}}", "{\"d\":[]}", false},
        {"{\"d\":{\"a\":[1]}}", "{\"d\":[1,{\"a\":1},\"x\"]}", true},
    };
    CHECK_ROWS(rows);
}

TEST(absence_within_arrays)
{
    static const struct row rows[] = {
        {"{\"d\":{\"a\":[{\"exists\":true}],\"b\":[{\"exists\":false}]}}", "{\"d\":[{\"a\":1}]}", true},
        {"{\"d\":{\"a\":[{\"exists\":true}],\"b\":[{\"exists\":false}]}}", "{\"d\":[{\"a\":1,\"b\":2}]}",
         false},
        {"{\"d\":{\"a\":[1],\"b\":[{\"exists\":false}]}}", "{\"d\":[{\"b\":2},{\"a\":1}]}", true},
        {"{\"d\":{\"a\":[1],\"b\":[{\"exists\":false}]}}", "{\"d\":[{\"a\":1,\"b\":2},{\"a\":2}]}", false},
        {"{\"d\":{\"b\":[{\"exists\":false}]}}", "{\"d\":[{\"a\":1},{\"b\":2}]}", false},
        {"{\"d\":{\"b\":[{\"exists\":false}]}}", "{\"d\":[{\"a\":1},{\"c\":2}]}", true},
        {"{\"d\":{\"b\":[{\"exists\":false}]}}", "{\"d\":[]}", true},
        {"{\"d\":{\"b\":[{\"exists\":false}]}}", "{\"d\":[1,2]}", true},
        {"{\"d\":{\"b\":[{\"exists\":false},5]}}", "{\"d\":[{\"a\":1},{\"b\":5}]}", true},
        {"{\"d\":{\"b\":[{\"exists\":false},5]}}", "{\"d\":[{\"a\":1},{\"b\":6}]}", false},
        {"{\"d\":{\"a\":[1],\"x\":{\"b\":[{\"exists\":false}]}}}",
         "{\"d\":[{\"a\":1,\"x\":[{\"c\":1},{\"b\":2}]}]}", false},
        {"{\"d\":{\"a\":[1],\"x\":{\"b\":[{\"exists\":false}]}}}",
         "{\"d\":[{\"a\":1,\"x\":[{\"c\":1}]},{\"a\":2,\"x\":{\"b\":2}}]}", true},
    };
    CHECK_ROWS(rows);
}

TEST(alternatives_of_fields)
{
    static const struct row rows[] = {
        {"{\"$or\":[{\"a\":[1]},{\"b\":[2]}]}", "{\"a\":1}", true},
        {"{\"$or\":[{\"a\":[1]},{\"b\":[2]}]}", "{\"b\":2}", true},
        {"{\"$or\":[{\"a\":[1]},{\"b\":[2]}]}", "{\"a\":2,\"b\":1}", false},
        {"{\"s\":[0],\"$or\":[{\"a\":[1]},{\"b\":[2]}]}", "{\"s\":0,\"b\":2}", true},
        {"{\"s\":[0],\"$or\":[{\"a\":[1]},{\"b\":[2]}]}", "{\"s\":1,\"b\":2}", false},
        {"{\"$or\":[{\"a\":[1]},{\"b\":[2]}],\"s\":[0]}", "{\"s\":0,\"a\":1}", true},
        {"{\"$or\":[{\"a\":[1]},{\"b\":[2]}],\"s\":[0]}", "{\"a\":1}", false},
        {"{\"$or\":[{\"a\":[1]},{\"b\":[2],\"c\":[3]}]}", "{\"b\":2}", false},
        {"{\"$or\":[{\"a\":[1]},{\"b\":[2],\"c\":[3]}]}", "{\"c\":3,\"b\":2}", true},
        {"{\"d\":{\"$or\":[{\"a\":[1]},{\"b\":[2]}]}}", "{\"d\":{\"b\":2}}", true},
        {"{\"d\":{\"$or\":[{\"a\":[1]},{\"b\":[2]}]}}", "{\"b\":2}", false},
        {"{\"$or\":[{\"a\":[1]},{\"b\":[2]}],\"d\":{\"$or\":[{\"x\":[3]},{\"y\":[4]}]}}",
         "{\"a\":1,\"d\":{\"y\":4}}", true},
        {"{\"$or\":[{\"a\":[1]},{\"b\":[2]}],\"d\":{\"$or\":[{\"x\":[3]},{\"y\":[4]}]}}",
         "{\"a\":1,\"d\":{\"z\":4}}", false},
        {"{\"$or\":[{\"a\":[1]},{\"b\":[2],\"$or\":[{\"c\":[3]},{\"e\":[4]}]}]}", "{\"b\":2,\"e\":4}", true},
        {"{\"$or\":[{\"a\":[1]},{\"b\":[2],\"$or\":[{\"c\":[3]},{\"e\":[4]}]}]}", "{\"b\":2}", false},
        {"{\"$or\":[{\"a\":[1]},{\"b\":[2],\"$or\":[{\"c\":[3]},{\"e\":[4]}]}]}", "{\"a\":1}", true},
        {"{\"e\":{\"$or\":[{\"f\":[\"A\"]},{\"f\":[\"B\"]}],\"l\":[\"J\"]}}",
         "{\"e\":[{\"f\":\"A\",\"l\":\"S\"},{\"f\":\"C\",\"l\":\"J\"}]}", false},
        {"{\"e\":{\"$or\":[{\"f\":[\"A\"]},{\"f\":[\"B\"]}],\"l\":[\"J\"]}}",
         "{\"e\":[{\"f\":\"A\",\"l\":\"S\"},{\"f\":\"B\",\"l\":\"J\"}]}", true},
        {"{\"$or\":[{\"d\":{\"a\":[1]}},{\"x\":[2]}],\"d\":{\"b\":[2]}}", "{\"d\":[{\"a\":1},{\"b\":2}]}",
         false}, /* one element for what both say of d */
        {"{\"$or\":[{\"d\":{\"a\":[1]}},{\"x\":[2]}],\"d\":{\"b\":[2]}}", "{\"d\":[{\"a\":1,\"b\":2}]}",
         true},
        {"{\"$or\":[{\"d\":{\"a\":[1]}},{\"x\":[2]}],\"d\":{\"b\":[2]}}", "{\"x\":2,\"d\":{\"b\":2}}", true},
        {"{\"$or\":[{\"a\":[{\"exists\":false}]},{\"b\":[2]}]}", "{\"a\":1,\"b\":2}", true},
        {"{\"$or\":[{\"a\":[{\"exists\":false}]},{\"b\":[2]}]}", "{\"a\":1}", false},
        {"{\"$or\":[{\"a\":[1]},{\"a\":{\"b\":[2]}}]}", "{\"a\":{\"b\":2}}", true},
        {"{\"$or\":[{\"a\":[1]},{\"a\":{\"b\":[2]}}]}", "{\"a\":1}", true},
        {"{\"$or\":[{\"a\":[1]},{\"a\":{\"b\":[2]}}]}", "{\"a\":2}", false},
        {"{\"$or\":{\"a\":[1]}}", "{\"$or\":{\"a\":1}}", true}, /* a field of that name */
        {"{\"$or\":[\"x\"]}", "{\"$or\":\"x\"}", true},
        {"{\"$or\":[{\"prefix\":\"x\"}]}", "{\"$or\":\"xy\"}", true},
    };
    CHECK_ROWS(rows);
}

TEST(a_repeated_name_has_its_last_list)
{
    static const struct row rows[] = {
        {"{\"a\":[\"x\"],\"a\":[\"y\"]}", "{\"a\":\"y\"}", true},
        {"{\"a\":[\"x\"],\"a\":[\"y\"]}", "{\"a\":\"x\"}", false},
        {"{\"a\":{\"b\":[1]},\"a\":{\"c\":[2]}}", "{\"a\":{\"b\":1,\"c\":2}}", true},
        {"{\"a\":{\"b\":[1]},\"a\":{\"c\":[2]}}", "{\"a\":{\"c\":2}}", false},
        {"{\"a\":[1],\"$or\":[{\"a\":[2]},{\"b\":[3]}]}", "{\"a\":2}", true},
        {"{\"a\":[1],\"$or\":[{\"a\":[2]},{\"b\":[3]}]}", "{\"a\":1,\"b\":3}", true},
        {"{\"a\":[1],\"$or\":[{\"a\":[2]},{\"b\":[3]}]}", "{\"a\":1}", false},
        {"{\"a\":[\"x\"]}", "{\"a\":\"x\",\"a\":\"y\"}", true}, /* in an event: as an array */
        {"{\"a\":[\"y\"]}", "{\"a\":\"x\",\"a\":\"y\"}", true},
        {"{\"a\":{\"b\":[1],\"c\":[2]}}", "{\"a\":{\"b\":1},\"a\":{\"c\":2}}", false},
    };
    CHECK_ROWS(rows);
}

/* A record as the stream gives it, and the patterns that people write for it. */
TEST(stream_records)
{
    static const char record[] =
        "{\"eventID\":\"1\",\"eventName\":\"MODIFY\",\"eventVersion\":\"1.1\","
        "\"eventSource\":\"aws:dynamodb\",\"awsRegion\":\"us-east-1\","
        "\"dynamodb\":{\"ApproximateCreationDateTime\":1678831218.25,"
        "\"Keys\":{\"id\":{\"S\":\"order#17\"}},\"NewImage\":{\"id\":{\"S\":\"order#17\"},"
        "\"state\":{\"S\":\"PAID\"},\"total\":{\"N\":\"101\"},\"open\":{\"BOOL\":false},"
        "\"note\":{\"NULL\":true},"
        "\"tags\":{\"SS\":[\"new\",\"gift\"]},\"lines\":{\"L\":[{\"M\":{\"sku\":{\"S\":\"A\"},"
        "\"n\":{\"N\":\"1\"}}},{\"M\":{\"sku\":{\"S\":\"B\"},\"n\":{\"N\":\"2\"}}}]}},"
        "\"OldImage\":{\"state\":{\"S\":\"NEW\"}},"
        "\"SequenceNumber\":\"111\",\"SizeBytes\":26,\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"},"
        "\"userIdentity\":{\"type\":\"Service\",\"principalId\":\"dynamodb.amazonaws.com\"}}";
    static const struct row rows[] = {
        {"{\"eventName\":[\"INSERT\"]}", record, false},
        {"{\"eventName\":[\"INSERT\",\"MODIFY\"]}", record, true},
        {"{\"eventName\":[\"MODIFY\"],\"eventSource\":[\"aws:dynamodb\"]}", record, true},
        {"{\"dynamodb\":{\"Keys\":{\"id\":{\"S\":[{\"prefix\":\"order#\"}]}}}}", record, true},
        {"{\"dynamodb\":{\"NewImage\":{\"state\":{\"S\":[\"PAID\"]}},"
         "\"OldImage\":{\"state\":{\"S\":[{\"anything-but\":[\"PAID\"]}]}}}}",
         record, true},
        {"{\"dynamodb\":{\"NewImage\":{\"state\":[\"PAID\"]}}}", record, false},
        {"{\"dynamodb\":{\"NewImage\":{\"total\":{\"N\":[{\"numeric\":[\">\",100]}]}}}}", record, false},
        {"{\"dynamodb\":{\"NewImage\":{\"total\":{\"N\":[\"101\"]}}}}", record, true},
        {"{\"dynamodb\":{\"NewImage\":{\"total\":{\"N\":[{\"numeric\":[\">\",100]},{\"anything-but\":\"101\"}]}}}}",
         record, false},
        {"{\"dynamodb\":{\"ApproximateCreationDateTime\":[{\"numeric\":[\">\",0]}]}}", record, true},
        {"{\"dynamodb\":{\"NewImage\":{\"open\":{\"BOOL\":[false]}}}}", record, true},
        {"{\"dynamodb\":{\"NewImage\":{\"note\":{\"NULL\":[true]}}}}", record, true},
        {"{\"dynamodb\":{\"NewImage\":{\"tags\":{\"SS\":[\"gift\"]}}}}", record, true},
        {"{\"dynamodb\":{\"NewImage\":{\"lines\":{\"L\":{\"M\":{\"sku\":{\"S\":[\"B\"]},\"n\":{\"N\":[\"2\"]}}}}}}}",
         record, true},
        {"{\"dynamodb\":{\"NewImage\":{\"lines\":{\"L\":{\"M\":{\"sku\":{\"S\":[\"B\"]},\"n\":{\"N\":[\"1\"]}}}}}}}",
         record, false},
        {"{\"userIdentity\":{\"type\":[\"Service\"],\"principalId\":[\"dynamodb.amazonaws.com\"]}}", record,
         true},
        {"{\"$or\":[{\"eventName\":[\"REMOVE\"]},{\"dynamodb\":{\"NewImage\":{\"state\":{\"S\":[\"PAID\"]}}}}]}",
         record, true},
    };
    CHECK_ROWS(rows);
}
