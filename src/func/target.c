/* Targets: functions that need no process. An event is handed to a URL (target_http.c), becomes calls of a
 * pattern (target_pattern.c), or writes into a table (target_table.c) or a queue (target_queue.c).
 *
 * The last two are pure: they answer with effects, {"quipu":{"transact":[...]}}, and touch nothing, so that
 * whoever called them applies the writes together with its own position, once. They answer on the caller's
 * thread before target_invoke returns (but for the very first call of a queue); an HTTP target answers on the
 * client's thread.
 *
 * An invocation that fails is answered like one of a process. errorType is one of
 *   Target.BadEvent         the event is not what the target can use
 *   Target.BatchTooLarge    it is, but does not fit one transaction
 *   Target.HttpStatus       the URL answered with another status than 2xx
 *   Target.PatternRefused   a pattern did not take a record
 *   Target.Unreachable      nobody is there, nothing was sent
 *   Target.ConnectionLost   the connection broke before the whole answer was there
 *   Target.Refused          the URL or its answer is of no use: no HTTP, no trusted certificate, too long
 *   Sandbox.Timedout        the function's time-out is over, in Lambda's words */
#include "func/target.h"

#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

#include "base/compose.h"
#include "base/fail.h"
#include "base/limits.h"

#define URL_TIMEOUT_MS 30000 /* of a URL that nobody made a function of: a destination */

/* A queue's first use: its table is made on a thread that may wait for the door. */
static void run_first_use(void *func, void *job)
{
    struct invocation *invocation = job;
    if (!queues_make(func)) target_refuse(invocation, "the table of queues cannot be made");
    invocation->done(invocation);
}

/* Its writes would find no table. */
static bool is_first_use(struct func *func, const struct function *function, struct invocation *invocation)
{
    return function->kind == FUNCTION_QUEUE && invocation->end == INVOCATION_ANSWERED &&
           !atomic_load(&func->queues_are_made);
}

void target_invoke(struct func *func, struct function *function, struct invocation *invocation)
{
    ensure(function->kind != FUNCTION_PROCESS); /* that is the pool's */
    invocation->reply = invocation->log = (struct buf){0};
    invocation->error_kind = NULL;
    invocation->is_repeatable = false;
    if (!invocation->request_id[0]) {
        struct random random;
        random_seed_from_system(&random);
        uuid_put(invocation->request_id, random_next(&random), random_next(&random));
    }
    snprintf(invocation->version, sizeof invocation->version, "%.*s", SLICE_ARG(function->version));
    invocation->started_us = monotonic_us();
    switch (function->kind) {
    case FUNCTION_HTTP: target_http(func, function, invocation); return;
    case FUNCTION_PATTERN: target_pattern(func, function, invocation); return;
    case FUNCTION_TABLE: target_table(func, function, invocation); break;
    case FUNCTION_QUEUE: target_queue(func, function, invocation); break;
    case FUNCTION_PROCESS: break;
    }
    if (is_first_use(func, function, invocation))
        workers_run(func->workers, run_first_use, func, invocation);
    else
        invocation->done(invocation);
}

bool target_is_url(struct slice text)
{
    return (text.len > 7 && strncasecmp(text.data, "http://", 7) == 0) ||
           (text.len > 8 && strncasecmp(text.data, "https://", 8) == 0);
}

struct function *target_of_url(struct slice url)
{
    struct arena arena = {0};
    struct function *function = arena_new(&arena, struct function);
    function->arena = arena;
    function->references = 1;
    function->kind = FUNCTION_HTTP;
    function->url = arena_copy(&function->arena, url);
    function->name = function->arn = function->url;
    function->version = SLICE("$LATEST");
    function->timeout_ms = URL_TIMEOUT_MS;
    function->concurrency = 1;
    return function;
}

/* The members of a target as JSON; all but the body are strings. */
struct target_text {
    struct slice url, secret, call, body;
};

static bool read_text(struct slice text, struct arena *arena, struct target_text *out)
{
    static const char *const names[] = {"url", "secret", "call", "body"};
    struct slice raws[4];
    *out = (struct target_text){0};
    if (!text.len || text.data[0] != '{' || !raw_members(arena, text, names, raws, 4)) return false;
    *out = (struct target_text){raw_string(arena, raws[0]), raw_string(arena, raws[1]),
                                raw_string(arena, raws[2]), raws[3]};
    return (out->url.len > 0) != (out->call.len > 0);
}

struct function *target_of_text(struct slice text)
{
    struct arena arena = {0};
    struct target_text target;
    struct function *function = NULL;
    if (target_is_url(text)) return target_of_url(text);
    if (read_text(text, &arena, &target)) {
        function = target_of_url(target.url);
        function->secret = arena_copy(&function->arena, target.secret);
        function->pattern = arena_copy(&function->arena, target.call);
        function->body = arena_copy(&function->arena, target.body);
        if (target.call.len) function->kind = FUNCTION_PATTERN;
        if (target.call.len) function->name = function->arn = SLICE(CAUSE_REACTION);
    }
    arena_free(&arena);
    return function;
}

/* scheme://host/path: without user:password and without the query, which may be a key. */
static struct slice url_shown(struct slice url, struct arena *arena)
{
    size_t scheme = (size_t)((const char *)memchr(url.data, ':', url.len) - url.data) + 3;
    struct slice rest = slice_from(url, scheme), host = rest;
    for (size_t i = 0; i < rest.len; i++) {
        if (rest.data[i] != '?' && rest.data[i] != '#') continue;
        rest.len = i;
        break;
    }
    const char *slash = rest.len ? memchr(rest.data, '/', rest.len) : NULL;
    host.len = slash ? (size_t)(slash - rest.data) : rest.len;
    const char *at = host.len ? memrchr(host.data, '@', host.len) : NULL;
    if (at) rest = slice_from(rest, (size_t)(at - rest.data) + 1);
    return arena_printf(arena, "%.*s%.*s", (int)scheme, url.data, SLICE_ARG(rest));
}

struct slice target_shown(struct slice text, struct arena *arena)
{
    struct target_text target = {.url = text};
    if (!target_is_url(text) && !read_text(text, arena, &target)) return text;
    if (target.call.len) return target.call;
    return target_is_url(target.url) ? url_shown(target.url, arena) : target.url;
}

bool target_has_secret(struct slice text, struct arena *arena)
{
    struct target_text target = {.url = text};
    if (!target_is_url(text) && !read_text(text, arena, &target)) return false;
    return target.secret.len || (target.url.len && !slice_equal(target_shown(text, arena), target.url));
}

void target_fail(struct invocation *invocation, const char *type, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct slice message = arena_vprintf(invocation->arena, format, args);
    va_end(args);
    invocation->reply.len = 0;
    compose(&invocation->reply, "{'errorType':%s,'errorMessage':%s}", slice_of(type), message);
    invocation->end = INVOCATION_FAILED;
    invocation->error_kind = "Unhandled";
}

void target_refuse(struct invocation *invocation, const char *why)
{
    target_fail(invocation, "Target.Refused", "%s", why);
    invocation->end = INVOCATION_REFUSED;
    invocation->error_kind = NULL;
}

void target_fail_too_many(struct invocation *invocation)
{
    invocation->is_too_much = true;
    target_fail(
        invocation, "Target.BatchTooLarge",
        "the event writes more than %d items, which is more than one transaction holds: the BatchSize of "
        "the mapping must be %d or less",
        LIMIT_EFFECTS, LIMIT_EFFECTS);
}

struct slice target_event(const struct invocation *invocation)
{
    return invocation->payload.len ? invocation->payload : SLICE("{}");
}
