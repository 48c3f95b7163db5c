/* What was probably meant by a name that is not known. */
#include "cli/nearest.h"

#include "unit/test.h"

static struct slice nearest_of(const char *typed)
{
    static const char *const names[] = {"table", "get", "put", "update", "query", "job", "log", "doc", "function"};
    struct nearest nearest = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) nearest_try(&nearest, slice_of(typed), names[i]);
    return slice_of(nearest.name ? nearest.name : "");
}

TEST(nearest_forgives_one_letter_of_four)
{
    CHECK_TEXT(nearest_of("tabel"), "table"); /* two are swapped */
    CHECK_TEXT(nearest_of("jobs"), "job");
    CHECK_TEXT(nearest_of("qery"), "query");
    CHECK_TEXT(nearest_of("functoin"), "function");
    CHECK_TEXT(nearest_of("funtcions"), "function");
    CHECK_TEXT(nearest_of("lag"), "log");
}

TEST(nearest_is_silent_about_what_is_far)
{
    CHECK_TEXT(nearest_of("frobnicate"), "");
    CHECK_TEXT(nearest_of("updaters!"), "");
    CHECK_TEXT(nearest_of("x"), "");
    CHECK_TEXT(nearest_of(""), "");
    CHECK_TEXT(nearest_of("a name that is longer than any of ours could ever be, by far"), "");
}

TEST(nearest_takes_the_closest)
{
    struct nearest nearest = {0};
    nearest_try(&nearest, SLICE("leese"), "leas");
    CHECK_TEXT(slice_of(nearest.name), "leas");
    nearest_try(&nearest, SLICE("leese"), "lease");
    nearest_try(&nearest, SLICE("leese"), "leash");
    CHECK_TEXT(slice_of(nearest.name), "lease");
}
