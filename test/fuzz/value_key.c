/* Any bytes as keys, in two ways. As encoded keys: refused, or the very bytes that the decoded value encodes
 * to. As two values (the first byte says how long the first is): their keys keep their order, and their
 * beginnings. */
#include "base/fail.h"
#include "value/value.h"

static int sign_of(int order)
{
    return (order > 0) - (order < 0);
}

static void check_decode(struct arena *arena, struct slice bytes, enum value_type type)
{
    struct slice rest = bytes;
    struct value value;
    if (!key_decode(arena, &rest, type, &value)) return;
    struct buf out = {0};
    key_encode(&out, &value);
    ensure(slice_equal(buf_view(&out), (struct slice){bytes.data, bytes.len - rest.len}));
    buf_free(&out);
}

static void check_pair(struct arena *arena, const struct value *a, const struct value *b)
{
    struct buf left = {0}, right = {0}, prefix = {0};
    key_encode(&left, a);
    key_encode(&right, b);
    ensure(sign_of(slice_compare(buf_view(&left), buf_view(&right))) == sign_of(value_compare(a, b)));
    ensure(value_equal(a, b) || !slice_starts(buf_view(&left), buf_view(&right)));
    if (a->type != VALUE_N) {
        key_encode_prefix(&prefix, a);
        ensure(slice_starts(buf_view(&right), buf_view(&prefix)) == slice_starts(b->bytes, a->bytes));
    }
    struct slice rest = buf_view(&left);
    struct value back;
    ensure(key_decode(arena, &rest, a->type, &back) && rest.len == 0 && value_equal(a, &back));
    buf_free(&left);
    buf_free(&right);
    buf_free(&prefix);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    struct arena arena = {0};
    struct slice bytes = {(const char *)data, size};
    check_decode(&arena, bytes, VALUE_S);
    check_decode(&arena, bytes, VALUE_N);
    size_t first = data[0] % size;
    struct value a = {.type = VALUE_B, .bytes = {bytes.data + 1, first}};
    struct value b = {.type = VALUE_B, .bytes = slice_from(bytes, 1 + first)};
    check_pair(&arena, &a, &b);
    struct value m = {.type = VALUE_N}, n = m;
    if (number_canonical(&arena, a.bytes, &m.bytes) == NUMBER_OK &&
        number_canonical(&arena, b.bytes, &n.bytes) == NUMBER_OK)
        check_pair(&arena, &m, &n);
    arena_free(&arena);
    return 0;
}
