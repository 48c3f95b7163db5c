/* How far a long task is, on standard error: a line that redraws itself on a terminal, nothing elsewhere but
 * the end. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdint.h>

#include "base/buf.h"

struct progress {
    const char *what;         /* "Music" */
    const char *thing;        /* what is counted: "item" */
    unsigned long long total; /* as far as it is known; 0: unknown */
    int64_t began_us, drawn_us;
    bool is_drawn; /* on a terminal */
};

void progress_begin(struct progress *progress, const char *what, unsigned long long total);
void progress_show(struct progress *progress, unsigned long long done);
/* Wipes the line and says what it came to: "Music: 1,234 items in 0.5 s". */
void progress_end(struct progress *progress, const char *verb, unsigned long long done);
/* "Music: " and a sentence that stays. */
void progress_say(struct progress *progress, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The line itself: "Music  [=====>    ]  52%  1,234 items  500/s  3 s left". Pure. */
void progress_put(struct buf *out, const struct progress *progress, unsigned long long done,
                  int64_t elapsed_us);

#endif
