/* The unit tests' whole framework: TEST(name) { ... CHECK(condition); } registers itself; runner.c runs all.
 */
#ifndef TEST_UNIT_TEST_H
#define TEST_UNIT_TEST_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/slice.h"

/* What a test waits for comes, on a busy machine late; this only ends a test whose wait would have no end. */
#define TEST_WAIT_MS 120000

struct test {
    const char *name;
    void (*run)(void);
    struct test *next;
};

void test_register(struct test *test);
void test_failed(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

#define TEST(test_name)                                                                                      \
    static void run_##test_name(void);                                                                       \
    static struct test entry_##test_name = {#test_name, run_##test_name, NULL};                              \
    __attribute__((constructor)) static void register_##test_name(void)                                      \
    {                                                                                                        \
        test_register(&entry_##test_name);                                                                   \
    }                                                                                                        \
    static void run_##test_name(void)

#define CHECK(condition) ((condition) ? (void)0 : test_failed(__FILE__, __LINE__, "%s", #condition))

/* Compares a slice with a string and shows both. */
#define CHECK_TEXT(actual, expected)                                                                         \
    do {                                                                                                     \
        struct slice check_actual = (actual);                                                                \
        const char *check_expected = (expected);                                                             \
        if (!slice_equal(check_actual, slice_of(check_expected)))                                            \
            test_failed(__FILE__, __LINE__, "\n  got:      %.*s\n  expected: %s", SLICE_ARG(check_actual),   \
                        check_expected);                                                                     \
    } while (0)

#define CHECK_INT(actual, expected)                                                                          \
    do {                                                                                                     \
        long long check_actual = (long long)(actual), check_expected = (long long)(expected);                \
        if (check_actual != check_expected)                                                                  \
            test_failed(__FILE__, __LINE__, "%s is %lld, expected %lld", #actual, check_actual,              \
                        check_expected);                                                                     \
    } while (0)

#endif
