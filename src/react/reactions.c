/* Reactions: what patterns were told to do `then` is done, once, wherever their tables are.
 *
 * A job that ends, a group that is complete, a unit of work that is given up or a bucket that is over changes
 * the `state` of an item that carries its `then` (pattern_reactions). Each of these tables is watched with a
 * filter, so that of a job's 500 tasks only the one change is seen that somebody waits for. The call of what
 * `then` names is put into the queue of asynchronous calls (func.h) in the commit that moves the watch's position,
 * with an id that follows from the record; from there on it is retried, or put aside, like any asynchronous call.
 * What a `then` says and what targets are told is the patterns' business (pattern.h).
 *
 * Invariants:
 *  X1. A change of state puts each of its targets' calls exactly once, all of them or none.
 *  X2. A `then` that cannot be carried out never holds up those behind it: it is put aside (REACT_QUEUE),
 *      logged and counted.
 *  X3. A chain of reactions that comes back to itself ends: what was called by its own doing REACT_DEPTH
 *      times is put aside, too. */
#include "react/reactions.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/compose.h"
#include "base/fail.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/raw.h"
#include "base/stats.h"

/* What is known of the table of the queue that things are put aside in. */
enum queue_state { QUEUE_UNKNOWN, QUEUE_IN_THE_MAKING, QUEUE_READY, QUEUE_REFUSED };

/* One table. */
struct reaction {
    struct reactions *reactions;
    const struct pattern_reaction *pattern;
};

struct reactions {
    struct pattern *pattern;
    struct func *func;
    struct slice queue; /* its ARN */
    _Atomic int queue_state;
    pthread_t maker; /* of its table */
    bool has_maker;
    struct reaction *all;
    _Atomic uint64_t called, refused;
    struct arena arena;
};

/* One answer. */
struct round {
    const struct reaction *reaction;
    struct arena *arena;
    struct buf *members;
    unsigned count, called, refused;
};

/* One record of it, and those of its targets that are for its state. */
struct change {
    struct pattern_record record;
    struct pattern_target targets[PATTERN_TARGETS];
    struct slice ids[PATTERN_TARGETS], payloads[PATTERN_TARGETS];
    unsigned count;
};

/* ---- what is put aside ---- */

/* What may be shown of a `then`: whoever reads the queue need not see a URL's secret, password or key. */
static struct slice then_shown(struct slice then)
{
    bool has_url = slice_contains(then, SLICE("://")) &&
                   (slice_contains(then, SLICE("@")) || slice_contains(then, SLICE("?")));
    if (then.len > LIMIT_THEN_BYTES) return SLICE("(too long)");
    return has_url || slice_contains(then, SLICE("secret")) ? SLICE("(not shown: it may hold a secret)")
                                                            : then;
}

static void *queue_make(void *argument)
{
    struct reactions *reactions = argument;
    pthread_setname_np(pthread_self(), "quipu-put-aside");
    bool is_made = !destination_fault(reactions->func, reactions->queue);
    atomic_store(&reactions->queue_state, is_made ? QUEUE_READY : QUEUE_REFUSED);
    return NULL;
}

static void maker_join(struct reactions *reactions)
{
    if (reactions->has_maker) pthread_join(reactions->maker, NULL);
    reactions->has_maker = false;
}

/* Whether it is known if the queue can be used. False: it is being made by a thread of its own, since the
 * consumer's must not wait for the door; the batch comes again. */
static bool queue_is_known(struct reactions *reactions)
{
    if (atomic_load(&reactions->queue_state) == QUEUE_UNKNOWN) {
        maker_join(reactions); /* it has ended, without success */
        atomic_store(&reactions->queue_state, QUEUE_IN_THE_MAKING);
        ensure(pthread_create(&reactions->maker, NULL, queue_make, reactions) == 0);
        reactions->has_maker = true;
    }
    return atomic_load(&reactions->queue_state) != QUEUE_IN_THE_MAKING;
}

/* `call` is what could be sent again later; NULL: nothing. False when it cannot be put aside yet. Where there
 * can be no queue, the log alone tells of it (X2). */
static bool refuse(struct round *round, const struct pattern_record *record, struct slice id, const char *why,
                   const struct func_call *call)
{
    struct reactions *reactions = round->reaction->reactions;
    struct buf members = {0};
    if (!queue_is_known(reactions)) return false;
    /* In the form of what is told of other calls that have failed. */
    struct buf out = {0};
    compose(
        &out,
        "{'version':'1.0','requestContext':{'requestId':%s,'condition':'BadReaction'},'then':%s,'requestPayload':",
        id, then_shown(record->then));
    pattern_put_event(&out, round->reaction->pattern, record, id, PATTERN_EVENT_BRIEF, round->arena);
    compose(&out, ",'responsePayload':{'errorType':'BadReaction','errorMessage':%s}}",
            arena_printf(round->arena, "then %s", why));
    struct slice document = arena_take(round->arena, &out);
    log_line("reactions: a change of %s is not answered: then %s", round->reaction->pattern->table, why);
    round->refused++;
    bool is_ready = atomic_load(&reactions->queue_state) == QUEUE_READY;
    if (!is_ready) atomic_store(&reactions->queue_state, QUEUE_UNKNOWN); /* for the next */
    if (is_ready &&
        destination_put(reactions->func, reactions->queue, document, id, call, &members, &round->count)) {
        if (round->members->len) buf_byte(round->members, ',');
        buf_slice(round->members, buf_view(&members));
    }
    buf_free(&members);
    return true;
}

/* ---- what came of itself ---- */

/* NAME of NAME:QUALIFIER or of an ARN. */
static struct slice bare_name(struct slice function)
{
    struct slice name = slice_behind(function, SLICE(":function:"));
    if (!name.data) name = function;
    return slice_cut(&name, ':');
}

static bool is_looped(struct func *func, struct slice cause, const struct pattern_target *target)
{
    if (target->url.len) return false;
    struct slice name = target->call.len ? SLICE(CAUSE_REACTION) : bare_name(target->function);
    return cause_count(cause, name) >= REACT_DEPTH && !func_allows_loops(func, name);
}

/* Whoever wonders why the function is not called looks into its log first. */
static void tell_function_of_loop(struct round *round, const struct pattern_target *target)
{
    struct func *func = round->reaction->reactions->func;
    struct buf line = {0};
    if (!target->function.len) return;
    struct slice name = bare_name(target->function);
    buf_printf(
        &line,
        "LOOP function %.*s was not called for a change in %s whose `then` names it: it caused the change "
        "itself, at depth %u. The call is in the queue " REACT_QUEUE ". To allow it: aws lambda "
        "put-function-recursion-config --function-name %.*s --recursive-loop Allow\n",
        SLICE_ARG(name), round->reaction->pattern->table, REACT_DEPTH, SLICE_ARG(name));
    func_log(func, name, buf_view(&line));
    buf_free(&line);
}

/* ---- payloads ---- */

static bool names_image(const struct pattern_target *target)
{
    static const struct slice images[] = {SLICE("{NewImage"), SLICE("{Keys")};
    for (size_t i = 0; i < sizeof images / sizeof *images; i++)
        if (slice_contains(target->call, images[i]) ||
            (target->body.data && slice_contains(target->body, images[i])))
            return true;
    return false;
}

/* Makes them all; answers the bytes. */
static size_t make_payloads(struct round *round, struct change *change, unsigned how)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < change->count; i++) {
        const struct pattern_target *target = &change->targets[i];
        struct buf text = {0};
        unsigned own = target->call.len ? how | PATTERN_EVENT_ID : how;
        if (!target->call.len || !names_image(target)) own &= ~PATTERN_EVENT_RECORD;
        pattern_put_event(&text, round->reaction->pattern, &change->record, change->ids[i], own,
                          round->arena);
        change->payloads[i] = arena_take(round->arena, &text);
        bytes += change->payloads[i].len;
    }
    return bytes;
}

/* Not for an answer that is too long already: its batch comes again in smaller ones. */
static bool gather(struct round *round, struct pattern_record *record)
{
    if (!round->reaction->pattern->gathers || round->members->len > LIMIT_TRANSACTION_BYTES) return true;
    return pattern_gather(round->reaction->reactions->pattern, record, LIMIT_ASYNC_EVENT_BYTES, round->arena);
}

/* All calls of a change are in one commit, so together they have no more room than one alone. */
static void fit_payloads(struct round *round, struct change *change)
{
    static const unsigned hows[] = {PATTERN_EVENT_RECORD, PATTERN_EVENT_RECORD | PATTERN_EVENT_BRIEF,
                                    PATTERN_EVENT_BRIEF};
    for (size_t i = 0; i < sizeof hows / sizeof *hows; i++)
        if (make_payloads(round, change, hows[i]) <= LIMIT_ASYNC_EVENT_BYTES) return;
}

/* ---- calls ---- */

/* A call that comes of itself too often is put aside, so that a person may send it on. False when the queue
 * cannot be had now. */
static bool put_call(struct round *round, const struct change *change, unsigned index)
{
    struct reactions *reactions = round->reaction->reactions;
    const struct func_call call = {.function = pattern_target_text(&change->targets[index], round->arena),
                                   .payload = change->payloads[index],
                                   .cause = change->record.cause,
                                   .id = change->ids[index],
                                   .on_failure = reactions->queue};
    if (is_looped(reactions->func, call.cause, &change->targets[index])) {
        if (!refuse(round, &change->record, call.id, "was called by its own doing too often", &call))
            return false;
        tell_function_of_loop(round, &change->targets[index]);
        return true;
    }
    if (round->members->len) buf_byte(round->members, ',');
    unsigned count = func_queue_put(reactions->func, &call, round->members);
    round->count += count;
    round->called += count > 0;
    return count > 0;
}

static bool take_record(struct round *round, struct slice text)
{
    struct change change = {0};
    unsigned named;
    if (!pattern_record_read(text, round->arena, &change.record)) return true;
    const char *fault = pattern_then_read(change.record.then, round->arena, change.targets, &named);
    if (fault) return refuse(round, &change.record, change.record.id, fault, NULL);
    /* Those that are for its state, each with its id: its place in the list is part of it. */
    for (unsigned i = 0; i < named; i++) {
        const struct pattern_target target = change.targets[i];
        struct slice id = change.record.id;
        if (i) id = arena_printf(round->arena, "%.*s-%u", SLICE_ARG(id), i);
        if (!pattern_target_is_for(&target, change.record.state, round->arena)) continue;
        change.targets[change.count] = target;
        change.ids[change.count++] = id;
    }
    if (change.count && !gather(round, &change.record)) return false;
    fit_payloads(round, &change);
    for (unsigned i = 0; i < change.count; i++)
        if (!put_call(round, &change, i)) return false;
    return true;
}

/* ---- the watch's answer ---- */

/* {"Records":[...]} */
static bool take_records(struct round *round, struct slice event)
{
    struct raw_walk walk;
    struct slice records = raw_member(round->arena, event, "Records"), record;
    if (raw_walk_begin(&walk, round->arena, records) != JSON_ARRAY) return false;
    while (raw_walk_next(&walk, NULL, &record))
        if (!take_record(round, record)) return false;
    return !json_failed(&walk.reader);
}

static bool answer(void *context, struct slice event, struct slice cause, struct arena *arena,
                   struct buf *reply)
{
    struct buf members = {0};
    struct round round = {.reaction = context, .arena = arena, .members = &members};
    (void)cause; /* each record tells its own */
    bool fine = take_records(&round, event);
    if (fine) {
        stats_add(&round.reaction->reactions->called, round.called);
        stats_add(&round.reaction->reactions->refused, round.refused);
        compose(reply, "{'quipu':{'transact':[%A]}}", buf_view(&members));
    } else {
        buf_text(
            reply,
            "{\"errorType\":\"Reactions\",\"errorMessage\":\"the calls could not be put into the queue\"}");
    }
    buf_free(&members);
    return fine;
}

/* ---- opening and closing ---- */

struct reactions *reactions_open(const struct react_options *options)
{
    struct reactions *reactions = must_zero(1, sizeof *reactions);
    const char *prefix = options->prefix ? options->prefix : "quipu-";
    reactions->pattern = options->pattern;
    reactions->func = options->func;
    reactions->queue = arena_printf(&reactions->arena, "arn:aws:sqs:%s:%s:" REACT_QUEUE, options->region,
                                    options->account);
    reactions->all = must_zero(pattern_reaction_count, sizeof *reactions->all);
    for (size_t i = 0; i < pattern_reaction_count; i++) {
        const struct pattern_reaction *pattern = &pattern_reactions[i];
        reactions->all[i] = (struct reaction){reactions, pattern};
        trigger_watch(options->trigger,
                      &(struct trigger_watch){
                          .name = arena_printf(&reactions->arena, "then/%s", pattern->table).data,
                          .table = arena_printf(&reactions->arena, "%s%s", prefix, pattern->table).data,
                          .filter = pattern->filter,
                          .answer = answer,
                          .context = &reactions->all[i],
                          .waits = pattern->gathers});
    }
    return reactions;
}

void reactions_close(struct reactions *reactions)
{
    if (!reactions) return;
    maker_join(reactions);
    arena_free(&reactions->arena);
    free(reactions->all);
    free(reactions);
}

void reactions_put_metrics(struct reactions *reactions, struct buf *out)
{
    stats_put_head(out, "quipu_reactions_total", "counter", "Targets of `then` by what became of them.");
    buf_printf(out,
               "quipu_reactions_total{what=\"called\"} %llu\nquipu_reactions_total{what=\"refused\"} %llu\n",
               (unsigned long long)stats_read(&reactions->called),
               (unsigned long long)stats_read(&reactions->refused));
}
