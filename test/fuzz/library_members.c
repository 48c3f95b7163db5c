/* Replies taken apart and requests put together by the library. */
#include "base/fail.h"
#include "library/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_json(struct slice text, struct arena *arena)
{
    struct json_reader reader;
    json_begin(&reader, text, arena);
    return json_skip(&reader) && json_done(&reader);
}

static void try_elements(struct slice raw, struct arena *arena)
{
    struct elements elements;
    struct slice element;
    if (!elements_begin(&elements, raw, arena)) return;
    while (elements_next(&elements, &element)) ensure(is_json(element, arena));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"Items", "LastEvaluatedKey"};
    struct arena arena = {0};
    struct buf out = {0};
    struct slice text = {(const char *)data, size}, raws[2], again[2];
    bool is_object = members_find(text, names, raws, 2, &arena);
    if (is_object && raws[0].len) try_elements(raws[0], &arena);
    if (is_object && raws[1].len) {
        ensure(is_json(raws[1], &arena));
        member_replace(&out, text, SLICE("ExclusiveStartKey"), raws[1], &arena);
        ensure(members_find(buf_view(&out), (const char *const[]){"ExclusiveStartKey", "Items"}, again, 2,
                            &arena));
        ensure(slice_equal(again[0], raws[1]) && slice_equal(again[1], raws[0]));
    }
    if (!is_object) {
        member_replace(&out, text, SLICE("NextToken"), SLICE("\"x\""), &arena);
        ensure(slice_equal(buf_view(&out), text));
    }
    buf_free(&out);
    arena_free(&arena);
    return 0;
}
