/* The counts that a service tells of its tables are hours old, so a total is only a guess: the bar never
 * claims to be full before the end. */
#include "cli/progress.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "cli/layout.h"
#include "cli/print.h"

#define BAR_WIDTH 24
#define REDRAW_US 100000
#define WIPE      "\r\033[K"
#define SECOND_US 1000000

void progress_begin(struct progress *progress, const char *what, unsigned long long total)
{
    *progress = (struct progress){.what = what,
                                  .thing = "item",
                                  .total = total,
                                  .began_us = monotonic_us(),
                                  .is_drawn = errors_are_terminal()};
}

static void put_bar(struct buf *out, unsigned long long percent)
{
    size_t filled = (size_t)(percent * BAR_WIDTH / 100);
    buf_text(out, "  [");
    for (size_t i = 0; i < BAR_WIDTH; i++) buf_byte(out, i < filled ? '=' : i == filled ? '>' : ' ');
    buf_printf(out, "] %2llu%%", percent);
}

void progress_put(struct buf *out, const struct progress *progress, unsigned long long done,
                  int64_t elapsed_us)
{
    unsigned long long total = progress->total;
    unsigned long long percent = total ? done * 100 / total : 0;
    unsigned long long rate = elapsed_us > 0 ? done * SECOND_US / (unsigned long long)elapsed_us : 0;
    buf_slice(out, slice_of(progress->what));
    if (total) put_bar(out, percent > 99 ? 99 : percent);
    buf_text(out, "  ");
    put_grouped(out, done);
    buf_printf(out, " %s%s", progress->thing, done == 1 ? "" : "s");
    if (!rate) return;
    buf_text(out, "  ");
    put_grouped(out, rate);
    buf_text(out, "/s");
    if (total > done) buf_printf(out, "  %llu s left", (total - done + rate - 1) / rate);
}

void progress_show(struct progress *progress, unsigned long long done)
{
    int64_t now_us = monotonic_us();
    if (!progress->is_drawn || now_us - progress->drawn_us < REDRAW_US) return;
    struct buf line = {0};
    progress->drawn_us = now_us;
    progress_put(&line, progress, done, now_us - progress->began_us);
    fprintf(stderr, WIPE "%.*s", (int)line.len, line.data);
    fflush(stderr);
    buf_free(&line);
}

void progress_end(struct progress *progress, const char *verb, unsigned long long done)
{
    struct buf line = {0};
    double seconds = (double)(monotonic_us() - progress->began_us) / SECOND_US;
    put_grouped(&line, done);
    fprintf(stderr, "%s%s: %.*s %s%s %s in %.1f s\n", progress->is_drawn ? WIPE : "", progress->what,
            (int)line.len, line.data, progress->thing, done == 1 ? "" : "s", verb, seconds);
    buf_free(&line);
}

void progress_say(struct progress *progress, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (progress->is_drawn) fputs(WIPE, stderr);
    fprintf(stderr, "%s: ", progress->what);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}
