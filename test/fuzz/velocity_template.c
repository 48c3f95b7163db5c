/* Any bytes as a mapping template: it ends, within its limits, and a fault has a sentence. */
#include "base/fail.h"
#include "base/limits.h"
#include "velocity/velocity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct velocity_input input = {.body = SLICE("{\"a\":[{\"b\":1},2,\"three\"],\"c\":{\"d\":null}}"),
                                                .query = SLICE("{\"q\":\"1\"}"),
                                                .context = SLICE("{\"stage\":\"prod\"}")};
    struct arena arena = {0};
    struct buf out = {0};
    char error[300] = "";
    int status = 200;
    bool fine = velocity_render((struct slice){(const char *)data, size}, &input, &arena, &out, &status, error,
                                sizeof error);
    ensure(fine == (error[0] == 0) && out.len <= LIMIT_VELOCITY_BYTES && status >= 200 && status <= 599);
    buf_free(&out);
    arena_free(&arena);
    return 0;
}
