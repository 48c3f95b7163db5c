/* Control characters in logs. */
#include "base/log.h"

#include "base/slice.h"
#include "unit/test.h"

static struct slice escaped(char room[200], struct slice text)
{
    return (struct slice){room, log_escape(room, 200, text.data, text.len)};
}

TEST(log_shows_controls_and_leaves_the_rest)
{
    char room[200];
    CHECK_TEXT(escaped(room, SLICE("plain \xc3\xa4 \\ \"")), "plain \xc3\xa4 \\ \"");
    CHECK_TEXT(escaped(room, SLICE("a\nquipu: b\tc\r")), "a\\nquipu: b\\tc\\x0d");
    CHECK_TEXT(escaped(room, SLICE("\x1b[31m\x7f\x00\x07")), "\\x1b[31m\\x7f\\x00\\x07");
    CHECK_TEXT(escaped(room, SLICE("\xc2\x9b"
                                   "1m \xc2\xa0")),
               "\\x9b"
               "1m \xc2\xa0");
}

TEST(log_writes_no_more_than_there_is_room_for)
{
    char room[40], many[100];
    memset(many, 0x1b, sizeof many);
    memset(room, '-', sizeof room);
    size_t len = log_escape(room, 32, many, sizeof many);
    CHECK(len > 16 && len <= 32);
    CHECK_TEXT(((struct slice){room + 32, 8}), "--------");
}
