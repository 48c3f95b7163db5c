/* Any bytes as a function's reply: what is found stands in it, is a list of objects, and has the count that
 * is told. The same bytes as causes: adding and joining give what can be read again. */
#include "base/fail.h"
#include "base/json.h"
#include "base/limits.h"
#include "func/func.h"

static void check_members(struct slice members, uint32_t count, struct arena *arena)
{
    struct buf list = {0};
    struct json_reader reader;
    uint32_t seen = 0;
    buf_byte(&list, '[');
    buf_slice(&list, members);
    buf_byte(&list, ']');
    json_begin(&reader, buf_view(&list), arena);
    ensure(json_peek(&reader) == JSON_ARRAY && json_enter(&reader));
    while (json_element(&reader)) {
        ensure(json_peek(&reader) == JSON_OBJECT && json_skip(&reader));
        seen++;
    }
    ensure(json_done(&reader) && seen == count);
    buf_free(&list);
}

static void check_causes(struct slice text, struct arena *arena)
{
    struct slice name = SLICE("me"), known = cause_add(arena, text, SLICE("x")); /* what can be read of it */
    unsigned before = cause_count(known, name);
    struct slice after = cause_add(arena, known, name);
    ensure(cause_count(after, name) == (before < 999999999 ? before + 1 : before));
    struct slice joined = cause_join(arena, after, SLICE("you:2"));
    ensure(cause_count(joined, SLICE("you")) >= 2 && cause_count(text, name) <= 999999999);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct slice reply = {(const char *)data, size}, members;
    uint32_t count;
    char error[200] = "";
    enum effects effects = func_effects(reply, LIMIT_EFFECTS, &arena, &members, &count, error, sizeof error);
    if (effects == EFFECTS_FOUND) {
        ensure(count > 0 && count <= LIMIT_EFFECTS);
        ensure(members.data >= reply.data && members.data + members.len <= reply.data + reply.len);
        check_members(members, count, &arena);
    } else {
        ensure(count == 0 && members.len == 0 && (effects == EFFECTS_BAD) == (error[0] != 0));
    }
    check_causes(reply, &arena);
    arena_free(&arena);
    return 0;
}
