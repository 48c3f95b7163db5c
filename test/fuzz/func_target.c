/* Targets that make writes of events, under arbitrary events. Checked besides memory safety: every answer is
 * JSON; what counts as answered is effects that whoever called can apply, within the limit. */
#include <stdlib.h>

#include "base/fail.h"
#include "base/limits.h"
#include "dynamo/internal.h"
#include "func/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int64_t fixed_now_ms(void *self)
{
    (void)self;
    return 1794714126123;
}

static void note_done(struct invocation *invocation)
{
    ++*(unsigned *)invocation->context;
}

static void check_failure(struct invocation *invocation)
{
    struct json_reader reader;
    ensure(invocation->end == INVOCATION_FAILED && invocation->error_kind);
    json_begin(&reader, buf_view(&invocation->reply), invocation->arena);
    json_skip(&reader);
    ensure(json_done(&reader));
}

static void check_kind(enum function_kind kind, struct slice event)
{
    static const struct clock clock = {fixed_now_ms, NULL};
    static const struct dynamo_methods methods; /* of a door that nobody goes through */
    static struct dynamo door = {.methods = &methods};
    struct func func = {.options.clock = &clock,
                        .options.dynamo = &door,
                        .prefix = SLICE("quipu-"),
                        .queues_are_made = true};
    struct function function = {
        .kind = kind, .version = SLICE("$LATEST"), .table = SLICE("mirror"), .queue = SLICE("letters")};
    struct arena arena = {0};
    unsigned done = 0;
    struct invocation invocation = {.payload = event, .arena = &arena, .done = note_done, .context = &done};
    target_invoke(&func, &function, &invocation);
    ensure(done == 1);
    if (invocation.end == INVOCATION_ANSWERED) {
        struct slice members;
        uint32_t count;
        char error[200];
        enum effects effects = func_effects(buf_view(&invocation.reply), LIMIT_EFFECTS, &arena, &members,
                                            &count, error, sizeof error);
        bool is_empty = slice_equal(buf_view(&invocation.reply), SLICE("{\"quipu\":{\"transact\":[]}}"));
        ensure(effects == EFFECTS_FOUND || (effects == EFFECTS_NONE && is_empty));
    } else {
        check_failure(&invocation);
    }
    buf_free(&invocation.reply);
    arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice event = {(const char *)data, size};
    check_kind(FUNCTION_TABLE, event);
    check_kind(FUNCTION_QUEUE, event);
    return 0;
}
