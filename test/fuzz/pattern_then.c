/* Any text as a `then`: it is refused by a phrase, or what it names is within its bounds. */
#include "base/fail.h"
#include "base/limits.h"
#include "pattern/pattern.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct arena arena = {0};
    struct pattern_target targets[PATTERN_TARGETS];
    unsigned count;
    struct slice then = arena_copy(&arena, (struct slice){(const char *)data, size});
    const char *fault = pattern_then_read(then, &arena, targets, &count);
    ensure(count <= PATTERN_TARGETS);
    if (fault) {
        ensure(*fault);
    } else {
        ensure(size <= LIMIT_THEN_BYTES);
        for (unsigned i = 0; i < count; i++) {
            ensure(!!targets[i].function.len + !!targets[i].url.len + !!targets[i].call.len == 1);
            pattern_target_is_for(&targets[i], SLICE("COMPLETE"), &arena);
        }
    }
    arena_free(&arena);
    return 0;
}
