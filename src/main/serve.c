/* quipu serve: all rooms put together, run, and taken apart in the right order.
 *
 * What runs functions is started first, while the process is small and has one
 * thread; what waits for others is closed before them: triggers, functions,
 * patterns, then the data. */
#include <arpa/inet.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backup/backup.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/slice.h"
#include "base/limits.h"
#include "calendar/calendar.h"
#include "client/client.h"
#include "console/console.h"
#include "drive/drive.h"
#include "dynamo/dynamo.h"
#include "func/func.h"
#include "gateway/gateway.h"
#include "main/descriptors.h"
#include "main/main.h"
#include "main/stop.h"
#include "net/net.h"
#include "pattern/pattern.h"
#include "react/react.h"
#include "sandbox/sandbox.h"
#include "store/store.h"
#include "transfer/transfer.h"
#include "trigger/trigger.h"
#include "web/web.h"

#define CREATING_MS     1000 /* how long a new table is CREATING with --delay-statuses */
#define MEGABYTE        (1024 * 1024ull)
#define STOP_MS         5000           /* for functions that run when the end comes */
#define ACCOUNT         "000000000000" /* in ARNs, as other local DynamoDBs have it */
#define THREADS_MAX     64
#define PROCESSES_MAX   10000
#define PROCESSES_USUAL 100
#define CACHE_MIN_MB    16
#define CACHE_MAX_MB    (1024 * 1024)
#define FOLDER_DEPTH                                                                                         \
    32                     /* folders held open while a temporary one is removed                             \
                            */
#define BLOCK_CACHE_PART 8 /* of the cache, for the store's own blocks */

struct settings {
    const char *host, *data, *on, *prefix, *functions, *function_user, *node_modules, *region, *credentials;
    const char *s3_folder, *s3_endpoint, *console_folder;
    const char *tls_cert, *tls_key;
    const char **allow_origins, **allow_hosts; /* each ends in NULL */
    struct imitation_options imitated;
    uint16_t port;
    unsigned thread_count;
    uint64_t cache_bytes;
    int64_t ttl_interval_ms, stream_retention_ms, keep_log_ms;
    uint32_t shard_count, process_max;
    bool durable, in_memory, is_open, has_hooks, has_functions, is_lenient, delays_statuses, throttles,
        separates_regions, imitates, has_console, console_reads_only;
};

/* ---- settings ---- */

static unsigned long long default_threads(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : cores > 4 ? 4 : (unsigned long long)cores;
}

static unsigned long long default_cache_mb(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages < 0 || page < 0) return 256;
    unsigned long long quarter = (unsigned long long)pages * (unsigned long long)page / MEGABYTE / 4;
    return quarter < CACHE_MIN_MB ? CACHE_MIN_MB : quarter;
}

static bool is_loopback(const char *host)
{
    struct in_addr four;
    if (strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 || strcmp(host, "[::1]") == 0) return true;
    return inet_pton(AF_INET, host, &four) == 1 && ntohl(four.s_addr) >> 24 == 127;
}

/* Zero leaves the engine its default. */
static bool read_house(struct settings *settings, const struct arguments *arguments)
{
    unsigned long long interval = 0, hours = 0, shards = 0;
    if (!argument_number(arguments, "ttl-interval", 1, 86400000, &interval) ||
        !argument_number(arguments, "stream-retention", 1, 8760, &hours) ||
        !argument_number(arguments, "stream-shards", 1, 64, &shards))
        return false;
    settings->ttl_interval_ms = (int64_t)interval;
    settings->stream_retention_ms = (int64_t)hours * 3600 * 1000;
    settings->shard_count = (uint32_t)shards;
    return true;
}

static bool read_numbers(struct settings *settings, const struct arguments *arguments)
{
    unsigned long long port = 8000, threads = default_threads(), cache = default_cache_mb();
    unsigned long long processes = PROCESSES_USUAL;
    if (!argument_number(arguments, "port", 0, 65535, &port) ||
        !argument_number(arguments, "threads", 1, THREADS_MAX, &threads) ||
        !argument_number(arguments, "cache", CACHE_MIN_MB, CACHE_MAX_MB, &cache) ||
        !argument_number(arguments, "processes", 1, PROCESSES_MAX, &processes))
        return false;
    settings->port = (uint16_t)port;
    settings->thread_count = (unsigned)threads;
    settings->cache_bytes = cache * MEGABYTE;
    settings->process_max = (uint32_t)processes;
    return read_house(settings, arguments);
}

static const char *text_or(const struct arguments *arguments, const char *flag, const char *otherwise)
{
    const char *text = argument_text(arguments, flag);
    return text ? text : otherwise;
}

/* QUIPU_ON serves the other commands too, so it is often in the environment of who starts a server; whoever
 * types where the data is does not mean it. */
static const char *text_of_on(const struct arguments *arguments)
{
    bool is_here = argument_typed(arguments, "data") || argument_typed(arguments, "memory") ||
                   argument_typed(arguments, "test-hooks");
    return is_here && !argument_typed(arguments, "on") ? NULL : argument_text(arguments, "on");
}

/* All values of a flag that may be repeated, with a NULL behind them; in one block that the caller frees. */
static const char **texts_of(const struct arguments *arguments, const char *flag)
{
    size_t count = 0;
    while (argument_nth(arguments, flag, count)) count++;
    const char **texts = must_zero(count + 1, sizeof *texts);
    for (size_t i = 0; i < count; i++) texts[i] = argument_nth(arguments, flag, i);
    return texts;
}

static void read_words(struct settings *settings, const struct arguments *arguments)
{
    settings->host = text_or(arguments, "host", "127.0.0.1");
    settings->data = text_or(arguments, "data", "quipu-data");
    settings->region = argument_text(arguments, "region");
    settings->credentials = argument_text(arguments, "credentials");
    settings->allow_origins = texts_of(arguments, "allow-origin");
    settings->allow_hosts = texts_of(arguments, "allow-host");
    settings->tls_cert = argument_text(arguments, "tls-cert");
    settings->tls_key = argument_text(arguments, "tls-key");
    settings->on = text_of_on(arguments);
    settings->prefix = argument_text(arguments, "prefix");
    settings->s3_folder = argument_text(arguments, "s3-folder");
    settings->s3_endpoint = argument_text(arguments, "s3-endpoint");
    settings->functions = argument_text(arguments, "functions");
    settings->node_modules = argument_text(arguments, "node-modules");
    settings->function_user = argument_text(arguments, "function-user");
    settings->has_functions = !argument_given(arguments, "no-functions");
    settings->has_console = !argument_given(arguments, "no-console");
    settings->console_reads_only = argument_given(arguments, "read-only-console");
    settings->console_folder = argument_text(arguments, "console-folder");
    settings->in_memory = argument_given(arguments, "memory");
    settings->is_open = argument_given(arguments, "open");
    settings->has_hooks = argument_given(arguments, "test-hooks");
    settings->separates_regions = argument_given(arguments, "separate-regions");
    settings->is_lenient = argument_given(arguments, "lenient");
    settings->throttles = argument_given(arguments, "throttle");
    settings->delays_statuses = argument_given(arguments, "delay-statuses");
}

static const char *region_of(const struct settings *settings)
{
    return settings->region ? settings->region : "us-east-1";
}

/* An engine that is imitated is nothing else: its data is in memory, and it has no functions and no patterns. */
static bool read_imitation(struct settings *settings, const struct arguments *arguments)
{
    static const char *const others[] = {"data",     "on", "test-hooks", "throttle", "separate-regions",
                                         "functions"};
    const char *text = argument_text(arguments, "imitate");
    char error[400];
    settings->imitates = text != NULL;
    if (!settings->imitates) return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (argument_typed(arguments, others[i])) {
            complain("--imitate and --%s exclude each other", others[i]);
            return false;
        }
    settings->on = NULL;
    settings->in_memory = true;
    settings->has_functions = settings->has_hooks = settings->separates_regions = settings->has_console = false;
    if (imitation_options_read(text, &settings->imitated, error, sizeof error)) return true;
    complain("%s", error);
    return false;
}

/* What single settings cannot tell. */
static bool check_words(struct settings *settings, const struct arguments *arguments)
{
    const char *durability = text_or(arguments, "durability", "sync");
    settings->durable = strcmp(durability, "sync") == 0;
    if (!settings->durable && strcmp(durability, "os") != 0) {
        complain("--durability must be sync or os, not '%s'", durability);
        return false;
    }
    if (settings->in_memory && argument_given(arguments, "data")) {
        complain("--memory and --data exclude each other");
        return false;
    }
    if (settings->on && (settings->in_memory || argument_given(arguments, "data") || settings->has_hooks ||
                         settings->throttles)) {
        complain("with --on (or QUIPU_ON in the environment) the data is elsewhere: --data, --memory, "
                 "--test-hooks and --throttle make no sense beside it");
        return false;
    }
    if (!settings->has_functions && settings->functions) {
        complain("--functions and --no-functions exclude each other");
        return false;
    }
    if (settings->s3_folder && settings->s3_endpoint) {
        complain("--s3-folder and --s3-endpoint exclude each other");
        return false;
    }
    if (settings->separates_regions && (settings->on || settings->has_hooks || settings->functions)) {
        complain("--separate-regions makes many databases: --on, --test-hooks and --functions, which work on "
                 "one, make no sense beside it");
        return false;
    }
    const char *keep = argument_text(arguments, "keep-log");
    if (keep && (!duration_parse(slice_of(keep), LIMIT_BACKUP_KEPT_MS, &settings->keep_log_ms) ||
                 settings->keep_log_ms <= 0)) {
        complain("--keep-log must be a duration such as 12h or 35d, not '%s'", keep);
        return false;
    }
    if (keep && (settings->in_memory || settings->on || settings->separates_regions)) {
        complain("--keep-log keeps the log of one data folder: --memory, --on and --separate-regions make no sense "
                 "beside it");
        return false;
    }
    if (settings->prefix && !pattern_prefix_is_fit(settings->prefix)) {
        complain("--prefix: " PATTERN_PREFIX_RULE);
        return false;
    }
    if (!settings->tls_cert != !settings->tls_key) {
        complain("--tls-cert and --tls-key go together");
        return false;
    }
    if (is_loopback(settings->host) || settings->credentials || settings->is_open) return true;
    complain("%s can be reached from other machines, and without --credentials "
             "everyone there may read and write. "
             "Give --credentials FILE, or --open if that is meant.",
             settings->host);
    return false;
}

static bool read_settings(struct settings *settings, const struct arguments *arguments)
{
    if (!read_numbers(settings, arguments)) return false;
    read_words(settings, arguments);
    if (!read_imitation(settings, arguments) || !check_words(settings, arguments)) return false;
    /* Who may make a function may run anything here: on an open door only by
     * express wish. */
    if (!is_loopback(settings->host) && !settings->credentials && !settings->functions)
        settings->has_functions = false;
    if (settings->separates_regions) settings->has_functions = false;
    return true;
}

/* ---- running ---- */

/* The parts in the order in which they are made; NULL: not yet. */
struct parts {
    struct sandbox *sandbox;
    struct store *store;
    struct engine *engine;
    struct api *api;
    struct transfer *transfer;
    struct dynamo *dynamo;
    struct func *func;
    struct gateway *gateway;
    struct trigger *trigger;
    struct pattern *pattern;
    struct backup *backup;
    struct react *react;
    struct drive *drive;
    struct web_regions *regions;
    struct console *console;
    struct web *web;
    struct net_server *server;
    struct web_clock hook_clock;
    struct clock clock; /* the database's: the system's, unless a hook moves it */
    struct descriptors descriptors;
    char endpoint[300];
    char folder[4096]; /* of functions */
    char s3_folder[4096]; /* of buckets; empty: there is none */
    bool owns_folder;  /* which goes with us */
};

/* What starts functions first, then what runs them, and only then the loops, by which functions speak to us:
 * a batch under way is finished, and need not be run again after the next start. */
static void stop_orderly(void *context)
{
    struct parts *parts = context;
    int64_t until_us = monotonic_us() + STOP_MS * 1000;
    dynamo_hurry(parts->dynamo);
    if (parts->drive) drive_stop(parts->drive);
    if (parts->react) react_stop(parts->react);
    if (parts->trigger) trigger_stop(parts->trigger);
    if (parts->drive) drive_rest(parts->drive, (until_us - monotonic_us()) / 1000);
    if (parts->func) func_stop(parts->func, (until_us - monotonic_us()) / 1000);
    if (parts->backup) backup_stop(parts->backup);
    net_server_stop(parts->server);
}

static void stop_on_failure(void *context)
{
    struct parts *parts = context;
    if (parts->server) net_server_stop(parts->server);
}

/* Where the limit of open files is low, everybody gets less, and the log tells how much. */
static bool deal_descriptors(struct parts *parts, const struct settings *settings, char *error,
                             size_t error_len)
{
    struct descriptors *dealt = &parts->descriptors;
    struct descriptors_needs needs = {.threads = settings->thread_count,
                                      .process_max = settings->has_functions ? settings->process_max : 0,
                                      .on_disk = !settings->in_memory && !settings->on,
                                      .is_elsewhere = settings->on != NULL};
    if (settings->separates_regions && !settings->in_memory) needs.databases = LIMIT_REGION_DATABASES;
    if (!descriptors_deal(dealt, &needs, error, error_len)) return false;
    if (dealt->connections < LIMIT_CONNECTIONS || dealt->process_max < needs.process_max ||
        dealt->databases < needs.databases)
        log_line("only %llu files may be open at a time (ulimit -n): at most %u connections and %u processes "
                 "of functions",
                 (unsigned long long)dealt->limit, dealt->connections, dealt->process_max);
    return true;
}

static bool open_data(struct parts *parts, const struct settings *settings, char *error, size_t error_len)
{
    struct store_options store_options = {.folder = settings->data,
                                          .create = true,
                                          .cache_bytes = settings->cache_bytes / BLOCK_CACHE_PART,
                                          .open_files = parts->descriptors.store_files,
                                          .clock = &parts->clock};
    parts->store = settings->in_memory ? store_open_memory(NULL)
                                       : store_open_disk(&store_options, error, error_len);
    if (!parts->store) return false;
    struct engine_options options = {.store = parts->store,
                                     .durable = settings->durable && !settings->in_memory,
                                     .cache_bytes = settings->cache_bytes - store_options.cache_bytes,
                                     .clock = &parts->clock,
                                     .ttl_interval_ms = settings->ttl_interval_ms,
                                     .stream_retention_ms = settings->stream_retention_ms,
                                     .stream_shards = settings->shard_count,
                                     .on_failure = stop_on_failure,
                                     .failure_context = parts};
    if (settings->function_user && !settings->in_memory && chmod(settings->data, 0700) != 0) {
        snprintf(error, error_len, "the folder %.400s cannot be closed to functions: %s", settings->data,
                 strerror(errno));
        return false;
    }
    parts->engine = engine_open(&options, error, error_len);
    return parts->engine != NULL;
}

/* At the start, or when a database that was not there then has answered for the first time. */
static void tell_alternator(void)
{
    log_line("the database is ScyllaDB Alternator. " PATTERN_ON_ALTERNATOR);
}

static bool open_elsewhere(struct parts *parts, const struct settings *settings, char *error,
                           size_t error_len)
{
    struct dynamo_options options = {
        .region = settings->region, .prefix = settings->prefix, .on_alternator = tell_alternator};
    parts->dynamo = dynamo_open(settings->on, &options, error, error_len);
    if (!parts->dynamo) return false;
    dynamo_kind_ask(parts->dynamo); /* so that it is told at the start */
    return true;
}

static bool open_imitation(struct parts *parts, const struct settings *settings, char *error, size_t error_len)
{
    struct dynamo_options options = {.region = settings->region,
                                     .clock = &parts->clock,
                                     .ttl_interval_ms = settings->ttl_interval_ms,
                                     .stream_retention_ms = settings->stream_retention_ms,
                                     .stream_shards = settings->shard_count};
    parts->dynamo = dynamo_open_imitation(&settings->imitated, &options, error, error_len);
    return parts->dynamo != NULL;
}

static void open_backup(struct parts *parts, const struct settings *settings)
{
    const char *refusal =
        settings->separates_regions
            ? "this server has a database for each key and region: stop it, and back up each folder in DATA/regions "
              "with --on FOLDER"
        : settings->in_memory ? "this server keeps everything in memory: there is nothing to back up"
        : settings->on        ? "the data of this server is elsewhere: back up the database that it works on"
                              : NULL;
    parts->backup = backup_open(&(struct backup_options){.store = parts->store,
                                                         .folder = settings->in_memory ? NULL : settings->data,
                                                         .clock = &parts->clock,
                                                         .keep_ms = settings->keep_log_ms,
                                                         .is_served = true,
                                                         .refusal = refusal});
}

static bool open_local(struct parts *parts, const struct settings *settings, char *error, size_t error_len)
{
    snprintf(parts->endpoint, sizeof parts->endpoint, "%s:%u", settings->host, settings->port);
    parts->api = api_new(&(struct api_options){.engine = parts->engine,
                                               .region = region_of(settings),
                                               .account = ACCOUNT,
                                               .endpoint = parts->endpoint,
                                               .creating_ms = settings->delays_statuses ? CREATING_MS : 0,
                                               .throttles = settings->throttles,
                                               .is_lenient = settings->is_lenient});
    if (settings->s3_folder)
        snprintf(parts->s3_folder, sizeof parts->s3_folder, "%s", settings->s3_folder);
    else if (!settings->in_memory)
        snprintf(parts->s3_folder, sizeof parts->s3_folder, "%s/" FOLDER_BUCKETS, settings->data);
    parts->dynamo = dynamo_open_local(parts->engine, parts->api);
    parts->transfer = transfer_open(
        &(struct transfer_options){.engine = parts->engine,
                                   .api = parts->api,
                                   .backup = parts->backup,
                                   .folder = *parts->s3_folder ? parts->s3_folder : NULL,
                                   .endpoint = settings->s3_endpoint,
                                   .region = settings->region},
        error, error_len);
    return parts->transfer != NULL;
}

/* ---- functions ---- */

static bool choose_folder(struct parts *parts, const struct settings *settings, char *error, size_t error_len)
{
    const char *temporary = getenv("TMPDIR");
    if (settings->functions)
        snprintf(parts->folder, sizeof parts->folder, "%s", settings->functions);
    else if (settings->on)
        snprintf(parts->folder, sizeof parts->folder, "quipu-functions");
    else if (!settings->in_memory)
        snprintf(parts->folder, sizeof parts->folder, settings->function_user ? "%s-functions" : "%s/functions",
                 settings->data);
    if (parts->folder[0]) return true;
    snprintf(parts->folder, sizeof parts->folder, "%s/quipu-functions-XXXXXX",
             temporary && *temporary ? temporary : "/tmp");
    parts->owns_folder = mkdtemp(parts->folder) != NULL;
    if (!parts->owns_folder)
        snprintf(error, error_len, "cannot make a folder for functions: %s", strerror(errno));
    return parts->owns_folder;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    remove(path);
    return 0;
}

static bool open_functions(struct parts *parts, const struct settings *settings, char *error,
                           size_t error_len)
{
    if (!settings->has_functions && !settings->on) {
        func_free_leases(parts->dynamo, settings->prefix);
        trigger_free_leases(parts->dynamo, settings->prefix);
    }
    if (!settings->has_functions) return true;
    if (!choose_folder(parts, settings, error, error_len)) return false;
    parts->func = func_open(&(struct func_options){.prefix = settings->prefix,
                                                   .node_modules = settings->node_modules,
                                                   .dynamo = parts->dynamo,
                                                   .sandbox = parts->sandbox,
                                                   .clock = &parts->clock,
                                                   .folder = parts->folder,
                                                   .region = region_of(settings),
                                                   .account = ACCOUNT,
                                                   .shared = settings->on != NULL,
                                                   .process_max = parts->descriptors.process_max},
                            error, error_len);
    if (!parts->func) return false;
    if (settings->function_user && !sandbox_can_enter(parts->sandbox, parts->folder)) {
        snprintf(error, error_len,
                 "functions run as '%.40s', who cannot enter their folder %.400s: open it and the folders above it "
                 "(chmod o+x), or name another one with --functions",
                 settings->function_user, parts->folder);
        return false;
    }
    parts->trigger = trigger_open(&(struct trigger_options){.prefix = settings->prefix,
                                                            .dynamo = parts->dynamo,
                                                            .func = parts->func,
                                                            .clock = &parts->clock,
                                                            .region = region_of(settings),
                                                            .account = ACCOUNT,
                                                            .shared = settings->on != NULL},
                                  error, error_len);
    parts->gateway = gateway_open(&(struct gateway_options){
        .func = parts->func, .dynamo = parts->dynamo, .prefix = settings->prefix, .shared = settings->on != NULL,
        .clock = &parts->clock, .account = ACCOUNT, .is_signed = web_is_signed});
    return parts->trigger != NULL;
}

/* Functions know nothing of patterns. */
static bool apply_pattern(void *pattern, struct slice call, struct slice body, struct slice event,
                          struct slice cause, struct arena *arena, struct buf *reply, bool *is_final)
{
    return pattern_apply(pattern, call, body, event, cause, arena, reply, is_final);
}

static void open_patterns(struct parts *parts, const struct settings *settings)
{
    parts->pattern = pattern_open(&(struct pattern_options){.prefix = settings->prefix,
                                                            .dynamo = parts->dynamo,
                                                            .clock = &parts->clock,
                                                            .host = &web_pattern_host,
                                                            .sweeps = true});
    if (parts->func) func_set_pattern(parts->func, apply_pattern, parts->pattern);
}

/* Where there are no functions, reactions and histories wait for a server that has them. */
static void open_reactions(struct parts *parts, const struct settings *settings)
{
    if (!parts->trigger) return;
    parts->react = react_open(&(struct react_options){.prefix = settings->prefix,
                                                      .pattern = parts->pattern,
                                                      .trigger = parts->trigger,
                                                      .func = parts->func,
                                                      .region = region_of(settings),
                                                      .account = ACCOUNT});
}

/* Without functions nothing is driven here, either. */
static void open_drive(struct parts *parts, const struct settings *settings)
{
    if (!parts->func) return;
    parts->drive = drive_open(&(struct drive_options){.dynamo = parts->dynamo,
                                                      .pattern = parts->pattern,
                                                      .func = parts->func,
                                                      .clock = &parts->clock,
                                                      .shared = settings->on != NULL});
}

#define REGION_CACHE_BYTES (16 * MEGABYTE) /* of each database: there may be many */

static void open_regions(struct parts *parts, const struct settings *settings)
{
    if (!settings->separates_regions) return;
    struct dynamo_options options = {.cache_bytes = REGION_CACHE_BYTES,
                                     .open_files = parts->descriptors.database_files,
                                     .unsynced = !settings->durable,
                                     .clock = &parts->clock,
                                     .ttl_interval_ms = settings->ttl_interval_ms,
                                     .stream_retention_ms = settings->stream_retention_ms,
                                     .stream_shards = settings->shard_count,
                                     .on_failure = stop_on_failure,
                                     .failure_context = parts,
                                     .creating_ms = settings->delays_statuses ? CREATING_MS : 0,
                                     .throttles = settings->throttles,
                                     .is_lenient = settings->is_lenient,
                                     .s3_folder = *parts->s3_folder ? parts->s3_folder : NULL,
                                     .s3_endpoint = settings->s3_endpoint};
    parts->regions = web_regions_open(settings->in_memory ? NULL : settings->data,
                                      settings->in_memory ? LIMIT_REGION_DATABASES : parts->descriptors.databases,
                                      &options);
}

static bool open_console(struct parts *parts, const struct settings *settings, char *error, size_t error_len)
{
    if (!settings->has_console) return true;
    parts->console = console_open(
        &(struct console_options){.folder = settings->console_folder,
                                  .reads_only = settings->console_reads_only,
                                  .asks_for_keys = settings->credentials != NULL,
                                  .dynamo = parts->dynamo,
                                  .engine = parts->engine,
                                  .func = parts->func,
                                  .trigger = parts->trigger,
                                  .pattern = parts->pattern,
                                  .drive = parts->drive,
                                  .kind = settings->on ? "remote" : settings->in_memory ? "memory" : "folder",
                                  .where = settings->on ? settings->on : settings->in_memory ? NULL : settings->data,
                                  .region = region_of(settings),
                                  .prefix = settings->prefix ? settings->prefix : "quipu-",
                                  .has_hooks = settings->has_hooks,
                                  .put_help = main_put_help,
                                  .clock = &clock_system},
        error, error_len);
    return parts->console != NULL;
}

static bool open_web(struct parts *parts, const struct settings *settings, char *error, size_t error_len)
{
    parts->web = web_new(&(struct web_options){.dynamo = parts->dynamo,
                                               .engine = parts->engine,
                                               .api = parts->api,
                                               .func = parts->func,
                                               .gateway = parts->gateway,
                                               .trigger = parts->trigger,
                                               .pattern = parts->pattern,
                                               .react = parts->react,
                                               .drive = parts->drive,
                                               .backup = parts->backup,
                                               .regions = parts->regions,
                                               .console = parts->console,
                                               .credentials = settings->credentials,
                                               .prefix = settings->prefix,
                                               .nodes = settings->imitated.nodes,
                                               .host = settings->host,
                                               .allow_origins = settings->allow_origins,
                                               .allow_hosts = settings->allow_hosts,
                                               .region = region_of(settings),
                                               .threads = settings->thread_count,
                                               .clock = &clock_system,
                                               .hook_clock = settings->has_hooks ? &parts->hook_clock : NULL},
                         error, error_len);
    if (!parts->web) return false;
    struct net_limits limits = net_limits_default;
    limits.connections = parts->descriptors.connections;
    limits.guests = parts->descriptors.guests;
    parts->server = net_server_new(&(struct net_options){.host = settings->host,
                                                         .port = settings->port,
                                                         .threads = settings->thread_count,
                                                         .tls_cert = settings->tls_cert,
                                                         .tls_key = settings->tls_key,
                                                         .limits = limits,
                                                         .handler = web_handler(parts->web)},
                                   error, error_len);
    if (!parts->server) return false;
    web_set_server(parts->web, parts->server);
    return true;
}

static bool open_all(struct parts *parts, const struct settings *settings, char *error, size_t error_len)
{
    struct sandbox_user user = {0};
    if (settings->function_user && !sandbox_user_find(settings->function_user, &user, error, error_len))
        return false;
    if (user.is_set) umask(022); /* another user reads the functions' code; the data folder itself is closed */
    if (settings->has_functions && !(parts->sandbox = sandbox_new(&user, error, error_len))) return false;
    if (settings->imitates) return open_imitation(parts, settings, error, error_len) &&
                                   open_web(parts, settings, error, error_len);
    if (settings->on) {
        if (!open_elsewhere(parts, settings, error, error_len)) return false;
        open_backup(parts, settings);
    } else {
        if (!open_data(parts, settings, error, error_len)) return false;
        open_backup(parts, settings);
        if (!open_local(parts, settings, error, error_len)) return false;
    }
    if (!open_functions(parts, settings, error, error_len)) return false;
    open_patterns(parts, settings);
    open_reactions(parts, settings);
    open_drive(parts, settings);
    open_regions(parts, settings);
    return open_console(parts, settings, error, error_len) && open_web(parts, settings, error, error_len);
}

static void start_all(struct parts *parts)
{
    if (parts->func) func_start(parts->func, parts->server, web_forward, parts->web);
    if (parts->trigger) trigger_start(parts->trigger);
    if (parts->drive) drive_start(parts->drive);
    web_start(parts->web);
}

static void close_all(struct parts *parts)
{
    console_close(parts->console);
    if (parts->drive) drive_close(parts->drive);
    if (parts->react) react_stop(parts->react);
    if (parts->trigger) trigger_close(parts->trigger);
    if (parts->react) react_close(parts->react);
    if (parts->func) func_close(parts->func);
    gateway_close(parts->gateway);
    if (parts->pattern) pattern_close(parts->pattern);
    if (parts->sandbox) sandbox_free(parts->sandbox);
    if (parts->transfer) transfer_close(parts->transfer);
    backup_close(parts->backup); /* before the store, which belongs to the engine */
    if (parts->engine) engine_close(parts->engine);
    if (parts->regions) web_regions_close(parts->regions);
    if (parts->server) net_server_free(parts->server);
    if (parts->web) web_free(parts->web);
    if (parts->dynamo) dynamo_close(parts->dynamo);
    if (parts->api) api_free(parts->api);
    if (parts->owns_folder) nftw(parts->folder, remove_entry, FOLDER_DEPTH, FTW_DEPTH | FTW_PHYS);
}

static int serve_with(const struct settings *settings)
{
    struct parts parts = {0};
    char error[700];
    parts.clock = settings->has_hooks ? (struct clock){web_clock_now, &parts.hook_clock} : clock_system;
    if (!deal_descriptors(&parts, settings, error, sizeof error) ||
        !open_all(&parts, settings, error, sizeof error)) {
        close_all(&parts);
        return complain("%s", error);
    }
    signal(SIGPIPE, SIG_IGN);
    start_all(&parts);
    stop_expect(stop_orderly, &parts);
    bool bracket = strchr(settings->host, ':') && settings->host[0] != '[';
    printf("quipu: ready on %s://%s%s%s:%u\n", settings->tls_cert ? "https" : "http", bracket ? "[" : "",
           settings->host, bracket ? "]" : "", net_server_port(parts.server));
    fflush(stdout);
    net_server_run(parts.server);
    bool failed = parts.engine && engine_has_failed(parts.engine, error, sizeof error);
    if (!failed && parts.regions) failed = web_regions_failed(parts.regions, error, sizeof error);
    stop_settle();
    close_all(&parts);
    return failed ? complain("stopped, because %s", error) : EXIT_FINE;
}

static int serve(const struct arguments *arguments)
{
    struct settings settings = {0};
    umask(077); /* the data, logs and code are nobody else's, whatever the folder's mode */
    int status = read_settings(&settings, arguments) ? serve_with(&settings) : EXIT_USAGE;
    free(settings.allow_origins);
    free(settings.allow_hosts);
    return status;
}

/* ---- the row ---- */

static const struct flag flags[] = {
    {NULL, NULL, "Where it listens:"},
    {"host", "ADDRESS", "address to bind (default 127.0.0.1)"},
    {"port", "NUMBER", "port; 0 takes any free one (default 8000)"},
    {"open", NULL, "allow an address other than loopback without --credentials"},
    {"tls-cert", "FILE", "serve HTTPS with this certificate (PEM, chain included)"},
    {"tls-key", "FILE", "and this key"},
    {"threads", "NUMBER", "event loops (default: the number of cores, at most 4)"},
    {NULL, NULL, "Where the data is:"},
    {"data", "DIR", "data folder, made when missing (default ./quipu-data)"},
    {"memory", NULL, "keep everything in memory, nothing on disk"},
    {"durability", "MODE",
     "sync: a reply means it is on disk (default)\n"
     "os: survives a crash of quipu, not of the machine; faster"},
    {"keep-log", "TIME",
     "keep what is needed to restore the database as it was at any second of this\n"
     "time (35d, 12h), in DATA/kept; see 'quipu restore' (default: nothing)"},
    {"cache", "MB", "memory for hot items (default: a quarter of the machine's)"},
    {"on", "URL",
     "keep it in another DynamoDB instead: Amazon's, DynamoDB Local, another\n"
     "Quipu; functions, triggers and patterns then run here, on the data there\n"
     "(on ScyllaDB Alternator, which has no transactions, with one limit;\n"
     "doc/engines.md)"},
    {"prefix", "NAME",
     "what the names of the tables that Quipu makes for functions and patterns\n"
     "begin with (default quipu-)"},
    {"s3-folder", "DIR",
     "the buckets of exports and imports: a folder in it is a bucket (default: s3 in\n"
     "the data folder; with --memory none)"},
    {"s3-endpoint", "URL",
     "the buckets are those of an S3 instead: https://s3.eu-central-1.amazonaws.com,\n"
     "MinIO, ...; keys and region by the AWS variables and files"},
    {NULL, NULL, "Functions:"},
    {"functions", "DIR",
     "their unpacked code and logs (default: functions in the data folder; with\n"
     "--function-user a folder beside it, DATA-functions)"},
    {"function-user", "USER",
     "whom functions run as, with nothing of the server's rights; root must start\n"
     "the server (default: the server's own user)"},
    {"node-modules", "DIR",
     "packages that Node functions find besides their own, like AWS's SDK\n"
     "(default: ~/.local/share/quipu/node_modules)"},
    {"processes", "NUMBER", "of all functions at the same time (default 100)"},
    {"no-functions", NULL,
     "run none. Without --credentials, on an address other than loopback, they "
     "run\n"
     "only when --functions is given: whoever may make one can run anything "
     "here"},
    {NULL, NULL, "The console, a web page at / for browsers (doc/console.md):"},
    {"no-console", NULL, "serve none"},
    {"read-only-console", NULL, "its page may only read"},
    {"console-folder", "DIR", "serve the page's files from here, for who works on them (default: the binary's)"},
    {NULL, NULL, "For tests:"},
    {"test-hooks", NULL,
     "serve /_quipu/: move the clock, expire now, snapshot and roll back, "
     "force\n"
     "throttling and conflicts, split stream shards (doc/test-hooks.md)"},
    {"throttle", NULL,
     "refuse what exceeds the provisioned units of tables and indexes, the maxima of\n"
     "on-demand ones, or what one key may take, as Amazon's service does\n"
     "(doc/throttling.md); a table's tag quipu:throttle, on or off, says so of that\n"
     "table"},
    {"imitate", "ENGINE", NULL},
    {"ttl-interval", "MS", "how often expired items are looked for (default 1000)"},
    {"stream-retention", "H", "hours that stream records are kept (default 24)"},
    {"stream-shards", "N", "shards that a new stream begins with (default 4)"},
    {NULL, NULL,
     "In the place of DynamoDB Local, whose flags (-port, -inMemory, -dbPath, ...) are understood:"},
    {"lenient", NULL,
     "take requests that it takes and Amazon's service refuses: numbers as text,\n"
     "unused attribute definitions, Limit 0, ... (doc/from-dynamodb-local.md)"},
    {"separate-regions", NULL,
     "each access key and region has tables of its own, as without -sharedDb;\n"
     "functions do not run then"},
    {"delay-statuses", NULL, "a new table is CREATING for a second, and not of use before"},
    {NULL, NULL, "Who may come in:"},
    {"credentials", "FILE",
     "check signatures against these keys (the form of ~/.aws/credentials; each\n"
     "may have a line role = admin, data or read, see doc/security.md);\n"
     "without it any key is taken, and all regions and keys see the same "
     "tables"},
    {"allow-origin", "ORIGIN",
     "take requests of web pages of this origin (http://localhost:3000; '*': of all\n"
     "pages); may be repeated. Without it only this server's own pages may come in"},
    {"allow-host", "NAME",
     "a name by which clients call this server (db.example.com; .example.com: all\n"
     "below it; '*': any); may be repeated. Known by themselves are localhost,\n"
     "--host and, where that is no loopback address, all addresses and the\n"
     "machine's name"},
    {"region", "NAME", "region in ARNs (default us-east-1)"},
};

/* DynamoDB Local's, so that a script which starts it can start this instead. */
static const struct flag_alias aliases[] = {
    {"-port", "port"},
    {"-inMemory", "memory"},
    {"-dbPath", "data"},
    {"-delayTransientStatuses", "delay-statuses"},
    {"-cors", "allow-origin"},
    {"-sharedDb", NULL},
    {"-disableTelemetry", NULL},
    {"-optimizeDbBeforeStartup", NULL},
    {NULL, NULL},
};

const struct command command_serve = {
    .name = "serve",
    .summary = "run the server: every AWS SDK and the aws command are its clients",
    .usage = "[flags]",
    .about = "Serves DynamoDB's API over HTTP until SIGTERM or Ctrl-C, and "
             "Lambda's and EventBridge Scheduler's for the\n"
             "functions that its changes and the clock start. Prints 'quipu: "
             "ready on URL' when it accepts.\n"
             "Also served: a console for browsers, GET /healthz, GET /metrics (Prometheus).",
    .flags = flags,
    .flag_count = sizeof flags / sizeof *flags,
    .aliases = aliases,
    .examples = "  quipu serve --memory --port 0\n"
                "  quipu serve --data /var/lib/quipu --host 0.0.0.0 --credentials "
                "keys.ini\n"
                "  quipu serve --on https://dynamodb.eu-central-1.amazonaws.com\n"
                "  QUIPU_PORT=9000 QUIPU_TEST_HOOKS=1 quipu serve",
    .has_environment = true,
    .run = serve};
