/* All functions, in memory, as the tables have them: found by name without a wait, changed only through the
 * tables. With other servers on the same tables a thread looks at one item every few seconds and reads
 * everything again when it has moved.
 *
 * Callers: the pool and the queue (registry_function and its neighbours, on any thread, never blocking),
 * Lambda's API (everything else, on threads that may wait). */
#include "func/registry.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cond.h"
#include "base/fail.h"
#include "base/limits.h"
#include "base/log.h"
#include "calendar/calendar.h"
#include "func/archive.h"

#define REFRESH_US            2000000
#define SWEEP_EVERY           1800 /* refreshes: about an hour */
#define ASYNC_RETRIES_DEFAULT 2
#define ASYNC_AGE_DEFAULT_MS  (6 * 3600 * 1000)

/* ---- names ---- */

/* Takes "arn:aws:lambda:REGION:ACCOUNT:function:" and its shorter forms "ACCOUNT:function:" and "function:"
 * off the front; what is left is a name, with a qualifier or without. */
static bool take_arn_start(struct slice *text)
{
    static const struct slice kind = SLICE("function:");
    struct slice rest = *text;
    struct arn arn;
    if (slice_starts(rest, SLICE("arn:"))) {
        bool is_function = arn_parse(rest, &arn) && slice_equal(arn.service, SLICE("lambda")) &&
                           arn.region.len && text_is_account(arn.account) && slice_starts(arn.resource, kind);
        if (is_function) *text = slice_from(arn.resource, kind.len);
        return is_function;
    }
    if (text_is_account(slice_cut(&rest, ':')) && slice_starts(rest, kind)) *text = rest;
    if (slice_starts(*text, kind) && text->len > kind.len) *text = slice_from(*text, kind.len);
    return true;
}

static bool is_plain_text(struct slice text, size_t max)
{
    return text.len <= max && text_consists_of(text, "-_");
}

bool function_name_parse(struct slice text, struct slice *name, struct slice *qualifier)
{
    *name = *qualifier = SLICE_NONE;
    if (!text.len || !take_arn_start(&text) || !text.len) return false;
    bool is_qualified = memchr(text.data, ':', text.len) != NULL;
    *name = slice_cut(&text, ':');
    *qualifier = text;
    return is_plain_text(*name, 64) &&
           (!is_qualified || slice_equal(text, SLICE(PART_LATEST)) || is_plain_text(text, 128));
}

/* ---- finding ---- */

/* The version that an alias stands for; of two it chooses by weight. */
static struct slice alias_version(const struct document *alias, uint64_t random_bits, struct arena *scratch)
{
    struct document routing = document_object(alias, "RoutingConfig", scratch);
    struct document weights = document_object(&routing, "AdditionalVersionWeights", scratch);
    double point = (double)(random_bits >> 11) / 9007199254740992.0; /* 2^53: in [0, 1) */
    for (uint32_t i = 0; i < weights.count; i++) {
        char text[32];
        snprintf(text, sizeof text, "%.*s", SLICE_ARG(weights.members[i].value));
        double weight = strtod(text, NULL);
        if (point < weight) return weights.members[i].name;
        point -= weight;
    }
    return document_text(alias, "FunctionVersion", scratch);
}

static struct function *find_in(const struct entry *entry, struct slice qualifier, uint64_t random_bits)
{
    struct arena scratch = {0};
    const struct part *part = entry_qualified(entry, qualifier);
    if (part && !part_is_version(part))
        part = entry_part(entry, alias_version(&part->document, random_bits, &scratch));
    arena_free(&scratch);
    return part && part->function ? function_keep(part->function) : NULL;
}

struct function *registry_function(struct func *func, struct slice name, struct slice qualifier,
                                   uint64_t random_bits)
{
    struct registry *registry = func->registry;
    struct entry *entry = registry_known(registry, name);
    struct function *function = entry ? find_in(entry, qualifier, random_bits) : NULL;
    entry_release(entry);
    if (!function && func->options.shared) {
        /* Lets the refresher look at once: another server may just have made it. */
        pthread_mutex_lock(&registry->lock);
        registry->is_wanted = true;
        pthread_cond_signal(&registry->wake);
        pthread_mutex_unlock(&registry->lock);
    }
    return function;
}

uint32_t registry_reserved(struct func *func, struct slice name)
{
    struct entry *entry = registry_known(func->registry, name);
    const struct part *head = entry ? entry_part(entry, SLICE(PART_FUNCTION)) : NULL;
    int64_t reserved = head ? document_integer(&head->document, "ReservedConcurrentExecutions", UINT32_MAX)
                            : UINT32_MAX;
    entry_release(entry);
    return (uint32_t)reserved;
}

bool func_allows_loops(struct func *func, struct slice name)
{
    struct entry *entry = registry_known(func->registry, name);
    const struct part *head = entry ? entry_part(entry, SLICE(PART_FUNCTION)) : NULL;
    bool allows = head && slice_equal(document_get(&head->document, "RecursiveLoop"), SLICE("\"Allow\""));
    entry_release(entry);
    return allows;
}

void func_log(struct func *func, struct slice name, struct slice line)
{
    struct entry *entry = registry_known(func->registry, name);
    if (entry) logs_append(func->logs, entry->name, line);
    entry_release(entry);
}

static struct slice destination_of(const struct document *settings, const char *when, struct arena *arena)
{
    struct document config = document_object(settings, "DestinationConfig", arena);
    struct document destination = document_object(&config, when, arena);
    return arena_copy(arena, document_text(&destination, "Destination", arena));
}

/* A dead-letter queue is an older way to say where failed calls end up. */
static struct slice dead_letters_of(const struct entry *entry, struct slice qualifier, struct arena *arena)
{
    struct function *function = find_in(entry, qualifier, 0);
    const struct part *part = function ? entry_part(entry, function->version) : NULL;
    struct document config = {0};
    if (part) config = document_object(&part->document, "DeadLetterConfig", arena);
    function_release(function);
    return arena_copy(arena, document_text(&config, "TargetArn", arena));
}

void registry_async_settings(struct func *func, struct slice name, struct slice qualifier,
                             struct arena *arena, struct async_settings *out)
{
    struct entry *entry = registry_known(func->registry, name);
    *out = (struct async_settings){.retries = ASYNC_RETRIES_DEFAULT, .age_max_ms = ASYNC_AGE_DEFAULT_MS};
    if (!entry) return;
    const struct part *part = entry_part_of(entry, PART_ASYNC,
                                            qualifier.len ? qualifier : SLICE(PART_LATEST));
    if (part) {
        const struct document *settings = &part->document;
        out->retries = (uint32_t)document_integer(settings, "MaximumRetryAttempts", ASYNC_RETRIES_DEFAULT);
        out->age_max_ms =
            document_integer(settings, "MaximumEventAgeInSeconds", ASYNC_AGE_DEFAULT_MS / 1000) * 1000;
        out->on_success = destination_of(settings, "OnSuccess", arena);
        out->on_failure = destination_of(settings, "OnFailure", arena);
    }
    if (!out->on_failure.len) out->on_failure = dead_letters_of(entry, qualifier, arena);
    entry_release(entry);
}

/* ---- texts ---- */

struct slice registry_uuid(struct registry *registry, struct arena *arena)
{
    pthread_mutex_lock(&registry->lock);
    uint64_t high = random_next(&registry->random), low = random_next(&registry->random);
    pthread_mutex_unlock(&registry->lock);
    char *text = arena_alloc(arena, UUID_BYTES);
    uuid_put(text, high, low);
    return slice_of(text);
}

struct slice registry_time_text(int64_t ms, struct arena *arena)
{
    struct slice text = moment_text(arena, ms); /* ends in Z */
    return arena_printf(arena, "%.*s+0000", (int)text.len - 1, text.data);
}

/* ---- with other servers ---- */

bool registry_refresh(struct registry *registry)
{
    if (!registry->func->options.shared) return true;
    pthread_mutex_lock(&registry->refreshing);
    int64_t changes = registry_changes(registry);
    bool is_fresh = changes >= 0 && (changes == registry->changes_seen || registry_read_all(registry, NULL));
    if (is_fresh) registry->changes_seen = changes;
    pthread_mutex_unlock(&registry->refreshing);
    return is_fresh;
}

/* Sleeps until it is time, somebody asks for an unknown name, or the end. False: the end. */
static bool wait_for_turn(struct registry *registry)
{
    int64_t until_us = monotonic_us() + REFRESH_US;
    pthread_mutex_lock(&registry->lock);
    while (!registry->ending && !registry->is_wanted)
        if (!cond_wait_until(&registry->wake, &registry->lock, until_us)) break;
    registry->is_wanted = false;
    bool goes_on = !registry->ending;
    pthread_mutex_unlock(&registry->lock);
    return goes_on;
}

bool registry_housekeep(struct registry *registry, bool is_alone)
{
    struct buf untidy = {0};
    bool was_read = registry_read_all(registry, &untidy);
    if (was_read) {
        registry_tidy(registry, buf_view(&untidy), is_alone);
        code_sweep_all(registry);
    }
    buf_free(&untidy);
    return was_read;
}

static void *refresh_loop(void *context)
{
    struct registry *registry = context;
    for (unsigned turn = 1; wait_for_turn(registry); turn++) {
        registry_refresh(registry);
        if (turn % SWEEP_EVERY == 0) registry_housekeep(registry, false);
    }
    return NULL;
}

/* ---- opening and closing ---- */

static bool make_folder(struct registry *registry, char *error, size_t error_len)
{
    struct slice wanted = arena_printf(&registry->arena, "%s/code", registry->func->options.folder);
    char *found = archive_make_folder(wanted.data) ? realpath(wanted.data, NULL) : NULL;
    if (!found) {
        snprintf(error, error_len, "The folder %s cannot be made: %s", wanted.data, strerror(errno));
        return false;
    }
    registry->folder = arena_printf(&registry->arena, "%s", found).data;
    free(found);
    return true;
}

static bool load(struct registry *registry, char *error, size_t error_len)
{
    if (registry->func->options.shared) registry->changes_seen = registry_changes(registry);
    if (!registry_housekeep(registry, !registry->func->options.shared)) {
        snprintf(error, error_len, "The functions cannot be read from the table %.*s",
                 SLICE_ARG(registry->functions_table));
        return false;
    }
    code_sweep_folders(registry);
    return true;
}

struct registry *registry_open(struct func *func, char *error, size_t error_len)
{
    struct registry *registry = must_zero(1, sizeof *registry);
    registry->func = func;
    pthread_mutex_init(&registry->lock, NULL);
    pthread_mutex_init(&registry->reading, NULL);
    pthread_mutex_init(&registry->refreshing, NULL);
    cond_init(&registry->wake);
    random_seed_from_system(&registry->random);
    registry->functions_table = arena_printf(&registry->arena, "%.*sfunctions", SLICE_ARG(func->prefix));
    registry->code_table = arena_printf(&registry->arena, "%.*scode", SLICE_ARG(func->prefix));
    bool opened = make_folder(registry, error, error_len) && load(registry, error, error_len);
    if (opened && func->options.shared) {
        sigset_t all, before; /* signals are for the thread that runs the server */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        ensure(pthread_create(&registry->refresher, NULL, refresh_loop, registry) == 0);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (opened) return registry;
    registry->ending = true; /* there is no refresher to end */
    registry_close(registry);
    return NULL;
}

void registry_close(struct registry *registry)
{
    if (!registry) return;
    bool refreshes = registry->func->options.shared && !registry->ending;
    pthread_mutex_lock(&registry->lock);
    registry->ending = true;
    pthread_cond_signal(&registry->wake);
    pthread_mutex_unlock(&registry->lock);
    if (refreshes) pthread_join(registry->refresher, NULL);
    for (uint32_t i = 0; i < registry->count; i++) entry_release(registry->entries[i]);
    free(registry->entries);
    pthread_mutex_destroy(&registry->lock);
    pthread_mutex_destroy(&registry->reading);
    pthread_mutex_destroy(&registry->refreshing);
    pthread_cond_destroy(&registry->wake);
    arena_free(&registry->arena);
    free(registry);
}
