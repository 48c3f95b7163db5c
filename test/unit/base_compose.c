/* JSON from formats. */
#include "base/compose.h"
#include "unit/test.h"

TEST(compose_fills_in_values)
{
    struct buf out = {0};
    compose(&out, "{'s':%s,'none':%s,'n':%d,'t':%b,'raw':%A,'%%':[%S,%N,%J,%P]}", SLICE("a\"'%#b"), SLICE_NONE,
            (int64_t)-7, 1, SLICE("{\"x\":[]}"), SLICE("q"), (int64_t)3, SLICE("[true]"), SLICE("{\"N\":\"5\"}"));
    CHECK_TEXT(buf_view(&out), "{\"s\":\"a\\\"'%#b\",\"none\":\"\",\"n\":-7,\"t\":true,\"raw\":{\"x\":[]},"
                               "\"%\":[{\"S\":\"q\"},{\"N\":\"3\"},{\"L\":[{\"BOOL\":true}]},5]}");
    buf_free(&out);
}

TEST(compose_puts_commas_between)
{
    struct buf out = {0};
    compose(&out, "%,{'list':[");
    for (int64_t i = 0; i < 3; i++) compose(&out, "%,{%,'n':%d%,'m':{}}", i);
    compose(&out, "%,'{']%,'end':[%,]}");
    CHECK_TEXT(buf_view(&out), "{\"list\":[{\"n\":0,\"m\":{}},{\"n\":1,\"m\":{}},{\"n\":2,\"m\":{}},\"{\"],"
                               "\"end\":[]}");
    buf_free(&out);
}

TEST(compose_names_the_words_of_expressions)
{
    struct arena arena = {0};
    struct slice text = compose_in(&arena, "{'e':'#b = :b and %r <> #b',%#,'f':%A,'g':'#c',%#}", SLICE("#a"),
                                   SLICE("\"#no\""));
    CHECK_TEXT(text, "{\"e\":\"#b = :b and #a <> #b\",\"ExpressionAttributeNames\":{\"#b\":\"b\",\"#a\":\"a\"},"
                     "\"f\":\"#no\",\"g\":\"#c\",\"ExpressionAttributeNames\":{\"#c\":\"c\"}}");
    arena_free(&arena);
}

TEST(compose_takes_any_number_of_words_that_name_nothing)
{
    struct arena arena = {0};
    struct buf words = {0};
    for (int i = 0; i < 100; i++) buf_printf(&words, "#w%d ", i);
    struct slice text = compose_in(&arena, "{'e':'#a',%#,'f':'%r'}", buf_view(&words));
    struct slice start = SLICE("{\"e\":\"#a\",\"ExpressionAttributeNames\":{\"#a\":\"a\"},\"f\":\"#w0 #w1 ");
    CHECK(slice_starts(text, start));
    buf_free(&words);
    arena_free(&arena);
}

TEST(compose_leaves_out_segments_that_lack_something)
{
    struct arena arena = {0};
    static const char format[] = "{'e':'#a%[ and #b = %r%]%[%? or #c%]',%#%[,'s':%s,'n':%d%]}";
    CHECK_TEXT(compose_in(&arena, format, SLICE("#d"), 1, SLICE("x"), (int64_t)7),
               "{\"e\":\"#a and #b = #d or #c\",\"ExpressionAttributeNames\":{\"#a\":\"a\",\"#b\":\"b\",\"#d\":\"d\","
               "\"#c\":\"c\"},\"s\":\"x\",\"n\":7}");
    CHECK_TEXT(compose_in(&arena, format, SLICE_NONE, 0, SLICE_NONE, (int64_t)7),
               "{\"e\":\"#a\",\"ExpressionAttributeNames\":{\"#a\":\"a\"}}");
    CHECK_TEXT(compose_in(&arena, "{%[%?'a':{}%]%[,'b':%S%]}", 1, SLICE_NONE), "{\"a\":{}}");
    arena_free(&arena);
}
