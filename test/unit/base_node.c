/* A tree that was read is written as the same JSON, without white space. */
#include "base/node.h"

#include "unit/test.h"

TEST(node_is_written_as_it_was_read)
{
    struct arena arena = {0};
    struct buf out = {0};
    const char *fault = NULL;
    const struct node *node =
        node_parse(&arena, SLICE("{\"a\": [1.50, true, false, null, {}, []], \"b\\n\": \"x\\u0001y\"}"), &fault);
    CHECK(node);
    node_put(&out, node);
    CHECK_TEXT(buf_view(&out), "{\"a\":[1.50,true,false,null,{},[]],\"b\\n\":\"x\\u0001y\"}");
    buf_free(&out);
    arena_free(&arena);
}
