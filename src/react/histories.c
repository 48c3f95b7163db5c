/* Recording histories: each table that has one is watched, and every change becomes an item of the history.
 *
 * Which tables these are is in a table itself (pattern/history.c), where anybody may set one: a thread looks
 * every second. It does not matter when it finds one, since a watch reads its stream from the beginning.
 *
 * Invariants:
 *  Y1. A change is in the history once: the items of a batch are put before the watch's position moves, and a
 *      record that is read again is the same item.
 *  Y2. What a watch is answered with is alive until trigger_unwatch has returned, or the triggers are
 *      closed. */
#include "react/histories.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/compose.h"
#include "base/cond.h"
#include "base/fail.h"
#include "base/limits.h"

#define LOOK_US 1000000
/* Each record is a write; where images are so large that fewer fit what a function may return, the trigger cuts the
 * batch. */
#define BATCH LIMIT_EFFECTS

struct history {
    struct history *next;
    struct pattern *pattern;
    char *table;
    char *name; /* of the watch */
    bool is_set;
};

struct histories {
    struct pattern *pattern;
    struct trigger *trigger;
    struct history *list; /* the thread's own */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_running, is_stopping; /* the latter under the lock */
};

/* ---- one table ---- */

static bool answer(void *context, struct slice event, struct slice cause, struct arena *arena,
                   struct buf *reply)
{
    const struct history *history = context;
    struct buf writes = {0};
    (void)cause; /* each record tells its own */
    bool is_fine = pattern_history(history->pattern, slice_of(history->table), event, arena, &writes);
    compose(reply, is_fine ? "%A" : "{'errorType':'History','errorMessage':%s}", buf_view(&writes));
    buf_free(&writes);
    return is_fine;
}

static char *text_of(const char *prefix, struct slice text)
{
    struct buf out = {0};
    buf_slice(&out, slice_of(prefix));
    buf_slice(&out, text);
    buf_byte(&out, '\0');
    return out.data;
}

static struct history *history_new(struct histories *histories, struct slice table)
{
    struct history *history = must_zero(1, sizeof *history);
    *history = (struct history){.next = histories->list,
                                .pattern = histories->pattern,
                                .table = text_of("", table),
                                .name = text_of("history/", table)};
    return history;
}

static void history_free(struct history *history)
{
    free(history->table);
    free(history->name);
    free(history);
}

/* ---- all of them ---- */

/* There is such a history: the watch is there, or is made. */
static void take(void *context, struct slice table)
{
    struct histories *histories = context;
    struct history *history = histories->list;
    while (history && !slice_equal(slice_of(history->table), table)) history = history->next;
    if (!history) {
        histories->list = history = history_new(histories, table);
        trigger_watch(histories->trigger, &(struct trigger_watch){.name = history->name,
                                                                  .table = history->table,
                                                                  .batch_size = BATCH,
                                                                  .answer = answer,
                                                                  .context = history,
                                                                  .puts_first = true});
    }
    history->is_set = true;
}

/* Where nobody could tell, what there was stays. */
static void look(struct histories *histories)
{
    for (struct history *history = histories->list; history; history = history->next) history->is_set = false;
    if (!pattern_histories(histories->pattern, take, histories)) return;
    for (struct history **at = &histories->list; *at;) {
        struct history *history = *at;
        if (history->is_set) {
            at = &history->next;
            continue;
        }
        *at = history->next;
        trigger_unwatch(histories->trigger, history->name);
        history_free(history);
    }
}

/* True when it is over. */
static bool wait(struct histories *histories)
{
    int64_t until_us = monotonic_us() + LOOK_US;
    pthread_mutex_lock(&histories->lock);
    while (!histories->is_stopping)
        if (!cond_wait_until(&histories->changed, &histories->lock, until_us)) break;
    bool is_over = histories->is_stopping;
    pthread_mutex_unlock(&histories->lock);
    return is_over;
}

static void *run(void *argument)
{
    struct histories *histories = argument;
    pthread_setname_np(pthread_self(), "quipu-histories");
    do look(histories);
    while (!wait(histories));
    return NULL;
}

struct histories *histories_open(struct pattern *pattern, struct trigger *trigger)
{
    struct histories *histories = must_zero(1, sizeof *histories);
    histories->pattern = pattern;
    histories->trigger = trigger;
    pthread_mutex_init(&histories->lock, NULL);
    cond_init(&histories->changed);
    ensure(pthread_create(&histories->thread, NULL, run, histories) == 0);
    histories->is_running = true;
    return histories;
}

void histories_stop(struct histories *histories)
{
    if (!histories->is_running) return;
    pthread_mutex_lock(&histories->lock);
    histories->is_stopping = true;
    pthread_cond_signal(&histories->changed);
    pthread_mutex_unlock(&histories->lock);
    pthread_join(histories->thread, NULL);
    histories->is_running = false;
}

void histories_close(struct histories *histories)
{
    histories_stop(histories);
    while (histories->list) {
        struct history *history = histories->list;
        histories->list = history->next;
        history_free(history);
    }
    pthread_mutex_destroy(&histories->lock);
    pthread_cond_destroy(&histories->changed);
    free(histories);
}
