/* Forms: how members are written, and when two are the same. */
#include "deploy/internal.h"
#include "unit/test.h"

static struct arena arena;

static const struct node *tree(const char *text)
{
    const char *fault;
    const struct node *node = node_parse(&arena, slice_of(text), &fault);
    CHECK(node);
    return node;
}

static bool same(const char *want, const char *have, bool is_loose)
{
    return form_equal(tree(want), tree(have), is_loose);
}

TEST(form_scalars_are_compared_by_their_text)
{
    CHECK(same("{\"a\":\"5\",\"b\":\"true\"}", "{\"b\":true,\"a\":5}", false));
    CHECK(!same("{\"a\":5}", "{\"a\":6}", false));
    CHECK(!same("{\"a\":[1,2]}", "{\"a\":[2,1]}", false));
    CHECK(!same("{\"a\":[1]}", "{\"a\":[1,2]}", false));
    CHECK(!same("{\"a\":\"x\"}", "{\"a\":{\"x\":1}}", false));
    arena_free(&arena);
}

TEST(form_what_is_empty_is_as_if_it_were_not_there)
{
    CHECK(same("{}", "{\"OnFailure\":{},\"list\":[],\"text\":\"\",\"none\":null}", false));
    CHECK(!same("{}", "{\"OnFailure\":{\"Destination\":\"x\"}}", false));
    CHECK(!same("{\"a\":false}", "{}", false));
    arena_free(&arena);
}

TEST(form_a_loose_member_may_have_more_on_the_server)
{
    CHECK(same("{\"LogFormat\":\"Text\"}", "{\"LogFormat\":\"Text\",\"LogGroup\":\"/a\"}", true));
    CHECK(!same("{\"LogFormat\":\"JSON\"}", "{\"LogFormat\":\"Text\",\"LogGroup\":\"/a\"}", true));
    CHECK(!same("{\"LogFormat\":\"Text\"}", "{\"LogFormat\":\"Text\",\"LogGroup\":\"/a\"}", false));
    arena_free(&arena);
}

TEST(form_members_are_written_in_their_types)
{
    static const struct form_member members[] = {{"size", 'n', "128"}, {"on", 'b', "false"},
                                                 {"text", 's', NULL},  {"list", 'l', NULL},
                                                 {"map", 'm', NULL},   {"gone", 'n', NULL}};
    struct buf out = {0};
    buf_byte(&out, '{');
    form_put(&out, tree("{\"size\":\"256\",\"text\":7,\"list\":\"one\",\"map\":{\"a\":1,\"b\":true}}"),
             members, 6);
    buf_byte(&out, '}');
    CHECK(slice_equal(buf_view(&out), SLICE("{\"size\":256,\"on\":false,\"text\":\"7\",\"list\":[\"one\"],"
                                            "\"map\":{\"a\":\"1\",\"b\":\"true\"}}")));
    buf_free(&out);
    arena_free(&arena);
}

TEST(form_functions_and_arns_are_taken_apart)
{
    struct slice name, qualifier;
    function_split(SLICE("arn:aws:lambda:us-east-1:000000000000:function:count:live"), &name, &qualifier);
    CHECK(slice_equal(name, SLICE("count")) && slice_equal(qualifier, SLICE("live")));
    function_split(SLICE("count"), &name, &qualifier);
    CHECK(slice_equal(name, SLICE("count")) && !qualifier.len);
    CHECK(slice_equal(arn_last(SLICE("a/b/c"), '/'), SLICE("c")) &&
          slice_equal(arn_last(SLICE("a"), '/'), SLICE("a")));
    CHECK(word_is_in("One Two", SLICE("Two")) && !word_is_in("One Two", SLICE("T")) &&
          !word_is_in(NULL, SLICE("x")));
}
