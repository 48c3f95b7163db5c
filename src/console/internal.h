/* What the files of console share. */
#ifndef CONSOLE_INTERNAL_H
#define CONSOLE_INTERNAL_H

#include <pthread.h>

#include "base/limits.h"
#include "base/ring.h"
#include "console/console.h"

struct page_file;
struct counts;
struct sample;

enum listener_kind { LISTENS_TO_EVENTS, LISTENS_TO_CHANGES, LISTENER_KINDS };

/* Who reads a stream; in its call's arena. */
struct listener {
    struct ring link;
    struct rest_call *call;
    struct console *console;
    enum listener_kind kind;
    int64_t since_ms; /* of events */
    struct z_stream_s *packer; /* the thread's own: of events in gzip's form; NULL: as they are */
    bool is_new;      /* the thread's own: nothing was sent yet */
    bool is_over;     /* the thread's own: nothing more is to be sent */
    bool has_left;    /* under the lock: its client is gone */
};

/* Samples, the oldest overwritten. */
struct samples {
    struct sample *samples;
    uint32_t capacity, first, count;
};

struct console {
    struct console_options options;
    struct console_source source;
    int64_t started_ms;
    struct page_file *files; /* of the binary */
    size_t file_count;
    /* the thread's own */
    struct counts *now, *second_ago, *tens_ago;
    struct samples seconds, tens;
    uint64_t ticks;
    bool has_listened; /* since the last second: what tables and functions did is of one second */
    pthread_t thread;
    bool is_running;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    struct ring listeners; /* struct listener */
    unsigned listener_counts[LISTENER_KINDS];
    bool is_woken, has_changes, is_ending, is_draining;
};

/* Answers with a sentence for people, {"error":...,"message":...}. */
void console_refuse(struct rest_call *call, int status, const char *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- page.c ---- */

void page_open(struct console *console);
void page_close(struct console *console);
/* "views/tables.js": a file of the page, from the binary or the folder. */
void page_serve(struct console *console, struct rest_call *call, struct slice name, bool takes_gzip);

/* ---- sample.c ---- */

void samples_open(struct console *console);
void samples_close(struct console *console);
/* Counts, and keeps the sample of the last second. Answers it; NULL: this was the first count. */
const struct sample *sample_take(struct console *console);
int64_t sample_time(const struct sample *sample);
void sample_put(struct buf *out, const struct sample *sample, int64_t step_ms);
/* ,"tables":{...},"functions":{...},"jobs":{...},"triggers":{...}: what the busiest did since this was last called. */
void sample_put_busiest(struct console *console, struct buf *out);
const struct sample *samples_at(const struct samples *samples, uint32_t place); /* 0: the oldest */

/* ---- events.c ---- */

void events_open(struct console *console);
void events_close(struct console *console);
void events_serve(struct console *console, struct rest_call *call, bool takes_gzip);
/* Takes a listener in, whose call is then the thread's; false: there is no room for it, and it is to be refused. */
bool events_admit(struct listener *listener);
void events_refuse(struct rest_call *call);
/* With the lock held: the thread has something to do. */
void events_wake(struct console *console);

/* ---- match.c ---- */

void match_serve(struct rest_call *call);

/* ---- changes.c ---- */

void changes_serve(struct console *console, struct rest_call *call);
/* On the thread: sends what has changed; and, when the listener is about to end, forgets it. */
void changes_send(struct listener *listener);
void changes_end(struct listener *listener);

#endif
