/* Formatted text: whatever the format and the room, it is what vsnprintf writes. */
#include "base/print.h"

#include <limits.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "unit/test.h"

#define ROOM 200

__attribute__((format(printf, 1, 2))) static void expect_same(const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    char wanted[ROOM];
    size_t whole = (size_t)vsnprintf(wanted, sizeof wanted, format, again);
    va_end(again);
    for (size_t room = 0; room <= whole + 2; room++) {
        char text[ROOM + 8], cut[ROOM];
        memset(text, '#', sizeof text);
        va_copy(again, args);
        CHECK_INT(print_text(room ? text : NULL, room, format, again), whole);
        va_end(again);
        snprintf(cut, sizeof cut, "%.*s", (int)(room ? room - 1 : 0), wanted);
        if (room && strcmp(text, cut) != 0)
            test_failed(__FILE__, __LINE__, "%s: '%s', not '%s'", format, text, cut);
        CHECK(text[room] == '#');
    }
    va_end(args);
}

TEST(print_writes_what_vsnprintf_writes)
{
    expect_same("nothing to fill in");
    expect_same("%s/%s", "", "a longer text");
    expect_same("%.*s|%.*s|%.*s", 3, "abcdef", 0, "abc", 10, "ends\0early");
    const char *volatile none = NULL; /* unseen by the compiler, which would warn */
    expect_same("%.*s %.*s", -1, "all of it", 0, none);
    expect_same("%d %d %d %d", 0, -7, INT_MAX, INT_MIN);
    expect_same("%u %u", 0u, UINT_MAX);
    expect_same("%lld %lld %lld", 0ll, LLONG_MAX, LLONG_MIN);
    expect_same("%llu %zu", ULLONG_MAX, SIZE_MAX);
    expect_same("%s %06llx %s", "others", 0x2aull, "too");
    expect_same("%d%% %5.2f %-8s| %ld %c %x", 9, 1.5, "left", -3l, 'c', 255u);
}

TEST(print_into_arenas_and_bufs_of_any_room)
{
    struct arena arena = {0};
    struct buf buf = {0};
    char wanted[64];
    for (int i = 0; i < 2000; i++) {
        struct slice text = arena_printf(&arena, "%s-%d-%.*s", "part", i, i % 40,
                                         "0123456789012345678901234567890123456789");
        snprintf(wanted, sizeof wanted, "%s-%d-%.*s", "part", i, i % 40,
                 "0123456789012345678901234567890123456789");
        CHECK_TEXT(text, wanted);
        CHECK(text.data[text.len] == 0 && (size_t)text.data % 16 == 0);
        size_t before = buf.len;
        buf_printf(&buf, "%s", wanted);
        CHECK_TEXT(slice_from(buf_view(&buf), before), wanted);
    }
    buf_free(&buf);
    arena_free(&arena);
}

TEST(counts_agree_with_their_nouns)
{
    static const struct {
        unsigned long long count;
        const char *noun, *text;
    } cases[] = {
        {0, "table", "0 tables"},
        {1, "table", "1 table"},
        {2, "stream record", "2 stream records"},
        {1, "batch", "1 batch"},
        {0, "batch", "0 batches"},
        {3, "index", "3 indexes"},
        {1, "entry", "1 entry"},
        {2, "entry", "2 entries"},
        {2, "key", "2 keys"},
        {2, "process", "2 processes"},
        {18446744073709551615ull, "byte", "18446744073709551615 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_TEXT(slice_of(counted(cases[i].count, cases[i].noun).text), cases[i].text);
}
