/* The system's clocks. */
#include "base/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

static int64_t system_now_ms(void *self)
{
    (void)self;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

const struct clock clock_system = {.now_ms = system_now_ms, .self = NULL};

static int64_t clock_us(clockid_t which)
{
    struct timespec now;
    clock_gettime(which, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t monotonic_us(void)
{
    return clock_us(CLOCK_MONOTONIC);
}

int64_t processor_us(void)
{
    return clock_us(CLOCK_PROCESS_CPUTIME_ID);
}

static bool two_digits(const char *text, int *out)
{
    if (text[0] < '0' || text[0] > '9' || text[1] < '0' || text[1] > '9') return false;
    *out = (text[0] - '0') * 10 + (text[1] - '0');
    return true;
}

int64_t time_from_basic_iso(const char *text, unsigned long len)
{
    int century, year, month, day, hour, minute, second;
    if (len != 16 || text[8] != 'T' || text[15] != 'Z') return -1;
    if (!two_digits(text, &century) || !two_digits(text + 2, &year) || !two_digits(text + 4, &month) ||
        !two_digits(text + 6, &day) || !two_digits(text + 9, &hour) || !two_digits(text + 11, &minute) ||
        !two_digits(text + 13, &second))
        return -1;
    if (month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60) return -1;
    struct tm broken = {.tm_year = century * 100 + year - 1900,
                        .tm_mon = month - 1,
                        .tm_mday = day,
                        .tm_hour = hour,
                        .tm_min = minute,
                        .tm_sec = second};
    return (int64_t)timegm(&broken);
}
