/* Any two texts: what parses has canonical text that is a fixed point, order agrees in all its forms, and
 * sums obey their laws. A line feed separates the two. */
#include "base/fail.h"
#include "value/value.h"

static int sign_of(int order)
{
    return (order > 0) - (order < 0);
}

static bool check_one(struct arena *arena, struct slice text, struct number *number, struct slice *canonical)
{
    enum number_fault fault = number_parse(text, number);
    ensure(number_canonical(arena, text, canonical) == fault);
    if (fault != NUMBER_OK) return false;
    struct number again;
    ensure(slice_equal(number_text(arena, number), *canonical));
    ensure(number_parse(*canonical, &again) == NUMBER_OK);
    ensure(again.digits == number->digits && again.exponent == number->exponent);
    ensure(again.negative == number->negative && (number->digits || !number->negative));
    ensure(number_size(*canonical) >= 1 && number_size(*canonical) <= 22);
    return true;
}

static void check_two(const struct number *a, const struct number *b)
{
    struct number sum, swapped, back;
    enum number_fault fault = number_add(a, b, &sum);
    ensure(number_add(b, a, &swapped) == fault);
    if (fault != NUMBER_OK) return;
    ensure(number_compare(&sum, &swapped) == 0);
    ensure(number_subtract(&sum, b, &back) == NUMBER_OK);
    ensure(number_compare(&back, a) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    struct slice text = {(const char *)data, size}, second = SLICE_NONE;
    const char *line = memchr(data, '\n', size);
    if (line) {
        text.len = (size_t)(line - text.data);
        second = (struct slice){line + 1, size - text.len - 1};
    }
    struct arena arena = {0};
    struct number a, b;
    struct slice text_a, text_b;
    if (check_one(&arena, text, &a, &text_a) && check_one(&arena, second, &b, &text_b)) {
        ensure(sign_of(number_text_compare(text_a, text_b)) == number_compare(&a, &b));
        ensure((number_compare(&a, &b) == 0) == slice_equal(text_a, text_b));
        check_two(&a, &b);
    }
    arena_free(&arena);
    return 0;
}
