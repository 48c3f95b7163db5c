/* Time as a table of functions, so that a test or a simulation can set it. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

struct clock {
    int64_t (*now_ms)(void *self); /* wall clock, since 1970 */
    void *self;
};

extern const struct clock clock_system;

static inline int64_t clock_now_ms(const struct clock *clock)
{
    return clock->now_ms(clock->self);
}

/* Never goes back; for durations and time-outs only, never stored. */
int64_t monotonic_us(void);

/* The processor's time that this process has used: bounds work alike on a busy and on a quiet machine. */
int64_t processor_us(void);

/* "20261115T034206Z" -> seconds since 1970; -1 when malformed. */
int64_t time_from_basic_iso(const char *text, unsigned long len);

#endif
