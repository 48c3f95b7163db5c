/* Watches: mappings of our own, whose records something in this process answers.
 *
 * A watch names a table, not a stream: the table may be made later, or be deleted and made again. So a thread
 * asks for the table's newest stream, often while there is none, rarely afterwards, and hands the consumer a
 * mapping for each stream that it finds. The mapping's id is made of the watch's name and the stream, so that
 * all servers and all starts of one keep the same positions, and a new stream is read from its beginning.
 *
 * Others that share the tables learn of a new stream by themselves, in less time than it takes them to miss
 * the positions of the old one and make them anew (consume_shards.c). */
#include <stdio.h>
#include <stdlib.h>

#include "base/cond.h"
#include "base/digest.h"
#include "base/fail.h"
#include "base/log.h"
#include "trigger/mapping.h"
#include "trigger/watch.h"

#define LOOK_MISSING_US 1000000  /* for a stream that is not there yet */
#define LOOK_FOUND_US   10000000 /* for another one than we know */
#define BATCH_SIZE      100
/* As the time of the next look: another time than this behind the look means that one more was asked for
 * meanwhile, by somebody who knows more than the look has seen. */
#define BEING_LOOKED_AT INT64_MAX

#define WAITERS                                                                                              \
    2 /* threads for answers that wait for the door: a long one holds up one other table at most */

struct watch {
    struct watch *next;
    struct workers *waiters;     /* the list's own; NULL: its answers wait for nothing */
    _Atomic uint32_t references; /* the list's, and one for each mapping */
    char *name, *table, *filter; /* filter: NULL: none */
    uint32_t batch_size;
    bool puts_first;
    pthread_mutex_t answering; /* held over each answer, so that none begins after the end */
    bool (*answer)(void *context, struct slice event, struct slice cause, struct arena *arena,
                   struct buf *reply); /* NULL: nobody listens any more */
    void *context;
    struct mapping *mapping; /* of the stream that was found last; NULL: none. Whoever looks may change it */
    /* with the list's lock held */
    int64_t look_us;
    bool is_ending;
};

struct watches {
    struct trigger *trigger;
    pthread_mutex_t looking; /* held by whoever looks, over calls of the door; taken first */
    pthread_mutex_t lock;    /* of the list, briefly */
    pthread_cond_t woken;
    struct watch *list;
    struct workers *waiters; /* NULL: nobody has needed them */
    bool is_running, is_closing;
    pthread_t thread;
};

/* ---- one watch ---- */

static char *copy(const char *text)
{
    char *own = text ? strdup(text) : NULL;
    ensure(own || !text);
    return own;
}

static struct watch *watch_keep(struct watch *watch)
{
    atomic_fetch_add_explicit(&watch->references, 1, memory_order_relaxed);
    return watch;
}

void watch_release(struct watch *watch)
{
    if (atomic_fetch_sub_explicit(&watch->references, 1, memory_order_acq_rel) > 1) return;
    pthread_mutex_destroy(&watch->answering);
    free(watch->name);
    free(watch->table);
    free(watch->filter);
    free(watch);
}

bool watch_puts_first(const struct watch *watch)
{
    return watch->puts_first;
}

const char *watch_name(const struct watch *watch)
{
    return watch->name;
}

static void answer_now(struct watch *watch, struct invocation *invocation)
{
    bool is_fine = false;
    pthread_mutex_lock(&watch->answering);
    bool is_heard = watch->answer != NULL;
    if (is_heard)
        is_fine = watch->answer(watch->context, invocation->payload, invocation->cause, invocation->arena,
                                &invocation->reply);
    pthread_mutex_unlock(&watch->answering);
    if (!is_heard) buf_text(&invocation->reply, "the watch has ended");
    invocation->end = !is_heard ? INVOCATION_REFUSED : is_fine ? INVOCATION_ANSWERED : INVOCATION_FAILED;
    invocation->error_kind = "Handled";
    invocation->done(invocation);
}

/* On one of the threads that may wait. */
static void answer_later(void *watch, void *invocation)
{
    answer_now(watch, invocation);
    watch_release(watch);
}

void watch_invoke(struct watch *watch, struct invocation *invocation)
{
    if (watch->waiters)
        workers_run(watch->waiters, answer_later, watch_keep(watch), invocation);
    else
        answer_now(watch, invocation);
}

/* ---- looking ---- */

static void drop_mapping(struct watches *watches, struct watch *watch)
{
    if (!watch->mapping) return;
    consumer_command(watches->trigger->consumer, NULL, watch->mapping->id);
    mapping_release(watch->mapping);
    watch->mapping = NULL;
}

static void take_stream(struct watches *watches, struct watch *watch, struct slice arn)
{
    if (watch->mapping && slice_equal(watch->mapping->stream_arn, arn)) return;
    drop_mapping(watches, watch);
    struct arena arena = {0};
    struct settings settings;
    struct slice filter = slice_of(watch->filter ? watch->filter : "");
    char error[256];
    settings_defaults(&settings);
    /* In the form of a UUID, as all ids of mappings are. */
    struct buf hex = {0};
    digest_put_sha256(&hex, arena_printf(&arena, "%s\n%.*s", watch->name, SLICE_ARG(arn)));
    settings.id = arena_printf(&arena, "%.8s-%.4s-8%.3s-8%.3s-%.12s", hex.data, hex.data + 8, hex.data + 12,
                               hex.data + 15, hex.data + 18);
    buf_free(&hex);
    settings.stream_arn = arn;
    settings.start = START_TRIM_HORIZON;
    settings.revision = 1;
    settings.created_ms = clock_now_ms(watches->trigger->options.clock);
    settings.numbers[SETTING_BATCH_SIZE] = watch->batch_size;
    settings.filters = &filter;
    settings.filter_count = watch->filter != NULL;
    struct mapping *mapping = mapping_new(&settings, error, sizeof error);
    ensure(mapping); /* our own filters are good ones */
    mapping->watch = watch_keep(watch);
    arena_free(&arena);
    watch->mapping = mapping;
    consumer_command(watches->trigger->consumer, mapping, mapping->id);
}

/* Its positions are found by the stream: where that was not found before, it is looked for first. */
static void look_at(struct watches *watches, struct watch *watch, bool is_ending)
{
    struct arena arena = {0};
    struct slice arn;
    bool is_told = mapping_newest_stream(watches->trigger, slice_of(watch->table), &arena, &arn);
    if (is_told && arn.len) take_stream(watches, watch, arn);
    int64_t pause_us = is_told && arn.len ? LOOK_FOUND_US : LOOK_MISSING_US;
    pthread_mutex_lock(&watches->lock);
    if (watch->look_us == BEING_LOOKED_AT) watch->look_us = monotonic_us() + pause_us;
    pthread_mutex_unlock(&watches->lock);
    if (is_ending && (is_told || watch->mapping)) {
        drop_mapping(watches, watch);
        pthread_mutex_lock(&watches->lock);
        struct watch **at = &watches->list;
        while (*at != watch) at = &(*at)->next;
        *at = watch->next;
        pthread_mutex_unlock(&watches->lock);
        watch_release(watch);
    }
    arena_free(&arena);
}

/* When to look at it. One of the same name that ends comes first: they have the same positions. */
static int64_t look_due_us(const struct watches *watches, const struct watch *watch)
{
    for (const struct watch *other = watches->list; other && !watch->is_ending; other = other->next)
        if (other->is_ending && strcmp(other->name, watch->name) == 0) return INT64_MAX;
    return watch->look_us;
}

/* The next one that was not looked at since; NULL: none, and *next_us is when there will be. */
static struct watch *find_due(struct watches *watches, int64_t now_us, bool *is_ending, int64_t *next_us)
{
    struct watch *found = NULL;
    *next_us = INT64_MAX;
    pthread_mutex_lock(&watches->lock);
    for (struct watch *watch = watches->list; watch && !found; watch = watch->next) {
        int64_t due_us = look_due_us(watches, watch);
        if (due_us <= now_us) found = watch;
        if (due_us < *next_us) *next_us = due_us;
    }
    *is_ending = found && found->is_ending;
    if (found) found->look_us = BEING_LOOKED_AT;
    pthread_mutex_unlock(&watches->lock);
    return found;
}

/* Answers when the next look is due. Each is looked at once, however long the looks take. */
static int64_t look_at_due(struct watches *watches)
{
    struct watch *watch;
    bool is_ending;
    int64_t next_us, now_us = monotonic_us();
    pthread_mutex_lock(&watches->looking);
    while ((watch = find_due(watches, now_us, &is_ending, &next_us))) look_at(watches, watch, is_ending);
    pthread_mutex_unlock(&watches->looking);
    return next_us;
}

static bool is_any_due(const struct watches *watches, int64_t now_us)
{
    for (const struct watch *watch = watches->list; watch; watch = watch->next)
        if (look_due_us(watches, watch) <= now_us) return true;
    return false;
}

static void *run(void *argument)
{
    struct watches *watches = argument;
    pthread_setname_np(pthread_self(), "quipu-watches");
    for (;;) {
        int64_t next_us = look_at_due(watches);
        pthread_mutex_lock(&watches->lock);
        while (!watches->is_closing && !is_any_due(watches, monotonic_us()))
            if (!cond_wait_until(&watches->woken, &watches->lock, watches->list ? next_us : INT64_MAX)) break;
        bool is_closing = watches->is_closing;
        pthread_mutex_unlock(&watches->lock);
        if (is_closing) return NULL;
    }
}

/* ---- the room's front ---- */

/* With the lock held; one that ends does not count. */
static struct watch *find(struct watches *watches, const char *name)
{
    struct watch *watch = watches->list;
    while (watch && (watch->is_ending || strcmp(watch->name, name) != 0)) watch = watch->next;
    return watch;
}

void trigger_watch(struct trigger *trigger, const struct trigger_watch *asked)
{
    struct watches *watches = trigger->watches;
    pthread_mutex_lock(&watches->lock);
    if (!find(watches, asked->name)) {
        struct watch *watch = must_zero(1, sizeof *watch);
        watch->references = 1;
        watch->name = copy(asked->name);
        watch->table = copy(asked->table);
        watch->filter = copy(asked->filter);
        watch->batch_size = asked->batch_size ? asked->batch_size : BATCH_SIZE;
        watch->answer = asked->answer;
        watch->context = asked->context;
        pthread_mutex_init(&watch->answering, NULL);
        if (asked->waits && !watches->waiters) watches->waiters = workers_new(WAITERS);
        if (asked->waits) watch->waiters = watches->waiters;
        watch->puts_first = asked->puts_first;
        watch->next = watches->list;
        watches->list = watch;
        pthread_cond_signal(&watches->woken);
    }
    pthread_mutex_unlock(&watches->lock);
}

void trigger_unwatch(struct trigger *trigger, const char *name)
{
    struct watches *watches = trigger->watches;
    pthread_mutex_lock(&watches->lock);
    struct watch *watch = find(watches, name);
    if (watch) {
        pthread_mutex_lock(&watch->answering);
        watch->answer = NULL;
        pthread_mutex_unlock(&watch->answering);
        watch->is_ending = true;
        watch->look_us = 0;
        pthread_cond_signal(&watches->woken);
    }
    pthread_mutex_unlock(&watches->lock);
}

/* ---- opening and closing ---- */

struct watches *watches_open(struct trigger *trigger)
{
    struct watches *watches = must_zero(1, sizeof *watches);
    watches->trigger = trigger;
    pthread_mutex_init(&watches->looking, NULL);
    pthread_mutex_init(&watches->lock, NULL);
    cond_init(&watches->woken);
    return watches;
}

void watches_start(struct watches *watches)
{
    ensure(pthread_create(&watches->thread, NULL, run, watches) == 0);
    watches->is_running = true;
}

void watches_halt(struct watches *watches)
{
    if (!watches->is_running) return;
    pthread_mutex_lock(&watches->lock);
    watches->is_closing = true;
    pthread_cond_signal(&watches->woken);
    pthread_mutex_unlock(&watches->lock);
    pthread_join(watches->thread, NULL);
    watches->is_running = false;
}

void watches_close(struct watches *watches)
{
    watches_halt(watches);
    workers_free(watches->waiters); /* which answers what it has begun */
    while (watches->list) {
        struct watch *watch = watches->list;
        watches->list = watch->next;
        mapping_release(watch->mapping);
        watch_release(watch);
    }
    pthread_cond_destroy(&watches->woken);
    pthread_mutex_destroy(&watches->lock);
    pthread_mutex_destroy(&watches->looking);
    free(watches);
}

/* A stream that nobody has found yet may have records. */
void watches_look(struct watches *watches)
{
    if (!watches->is_running) return;
    pthread_mutex_lock(&watches->lock);
    for (struct watch *watch = watches->list; watch; watch = watch->next) watch->look_us = 0;
    pthread_cond_signal(&watches->woken);
    pthread_mutex_unlock(&watches->lock);
    look_at_due(watches);
}
