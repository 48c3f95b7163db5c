/* The environment of a function's process: Lambda's variables, the way back to this server, the user's own.
 *
 * Three classes: what the protocol depends on is ours whatever the user says; what is only a default (PATH,
 * TZ, the endpoints) yields to the user's; and names that begin with an underscore are not passed, but for
 * the two that Lambda itself has. Nothing of the server's own environment is handed on but what is named
 * here. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "func/pool.h"

#define OWN_VARIABLES 40
#define SANE_PATH     "/usr/local/bin:/usr/bin:/bin"

struct environment {
    const struct function *function;
    struct slice layers; /* where the process finds its layers; empty: it has none */
    struct arena *arena;
    const char **entries;
    uint32_t count;
};

struct slice function_variable(const struct function *function, struct slice name)
{
    for (uint32_t i = 0; i < function->variable_count; i++)
        if (slice_equal(function->variables[i].name, name)) return function->variables[i].value;
    return SLICE_NONE;
}

static bool user_has(const struct function *function, struct slice name)
{
    return function_variable(function, name).data != NULL;
}

static void put(struct environment *environment, const char *name, struct slice value)
{
    environment->entries[environment->count++] =
        arena_printf(environment->arena, "%s=%.*s", name, SLICE_ARG(value)).data;
}

/* Unless the user has one. */
static void put_default(struct environment *environment, const char *name, struct slice value)
{
    if (!user_has(environment->function, slice_of(name))) put(environment, name, value);
}

/* The server's own value where it has one. */
static void put_inherited(struct environment *environment, const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    put_default(environment, name, slice_of(value && *value ? value : otherwise));
}

/* Ours whatever the user says, so the user's is left out. */
static bool is_protocol(struct slice name)
{
    static const char *const names[] = {"AWS_LAMBDA_RUNTIME_API",
                                        "LAMBDA_TASK_ROOT",
                                        "LAMBDA_RUNTIME_DIR",
                                        "AWS_LAMBDA_FUNCTION_NAME",
                                        "AWS_LAMBDA_FUNCTION_VERSION",
                                        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
                                        "AWS_LAMBDA_LOG_GROUP_NAME",
                                        "AWS_LAMBDA_LOG_STREAM_NAME",
                                        "AWS_LAMBDA_LOG_FORMAT",
                                        "AWS_LAMBDA_LOG_LEVEL",
                                        "AWS_LAMBDA_INITIALIZATION_TYPE",
                                        "AWS_LAMBDA_MAX_CONCURRENCY",
                                        "QUIPU_NODE_MODULES",
                                        "QUIPU_LAYERS",
                                        "QUIPU_TOKEN",
                                        "AWS_EXECUTION_ENV"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (slice_equal(name, slice_of(names[i]))) return true;
    return false;
}

/* Absolute: the process works elsewhere. */
static struct slice absolute(const char *folder, const char *below, struct arena *arena)
{
    char path[PATH_MAX];
    return arena_printf(arena, "%s%s", realpath(folder, path) ? path : folder, below);
}

/* Where Node functions find packages that they did not bring. */
static struct slice node_modules(const struct func *func, struct arena *arena)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (func->options.node_modules) return absolute(func->options.node_modules, "", arena);
    if (data && *data == '/') return arena_printf(arena, "%s/quipu/node_modules", data);
    return arena_printf(arena, "%s/.local/share/quipu/node_modules", home && *home ? home : "/root");
}

static void put_protocol(struct environment *environment, struct func *func, uint16_t port)
{
    const struct function *function = environment->function;
    struct arena *arena = environment->arena;
    put(environment, "AWS_LAMBDA_RUNTIME_API", arena_printf(arena, "127.0.0.1:%u", port));
    put(environment, "_HANDLER", function->handler);
    put(environment, "LAMBDA_TASK_ROOT", function->folder);
    put(environment, "LAMBDA_RUNTIME_DIR", absolute(func->options.folder, "/runtime", arena));
    put(environment, "AWS_LAMBDA_FUNCTION_NAME", function->name);
    put(environment, "AWS_LAMBDA_FUNCTION_VERSION", function->version);
    put(environment, "AWS_LAMBDA_FUNCTION_MEMORY_SIZE", arena_printf(arena, "%u", function->memory_mb));
    put(environment, "AWS_LAMBDA_INITIALIZATION_TYPE", SLICE("on-demand"));
    if (slice_starts(function->runtime, SLICE("nodejs")))
        put(environment, "QUIPU_NODE_MODULES", node_modules(func, arena));
    if (function->concurrency > 1)
        put(environment, "AWS_LAMBDA_MAX_CONCURRENCY", arena_printf(arena, "%u", function->concurrency));
    if (!slice_starts(function->runtime, SLICE("provided")))
        put(environment, "AWS_EXECUTION_ENV",
            arena_printf(arena, "AWS_Lambda_%.*s", SLICE_ARG(function->runtime)));
}

static void put_log_names(struct environment *environment, struct func *func, uint64_t stream)
{
    const struct function *function = environment->function;
    time_t seconds = (time_t)(clock_now_ms(func->options.clock) / 1000);
    struct tm day;
    gmtime_r(&seconds, &day);
    put(environment, "AWS_LAMBDA_LOG_FORMAT", function->logs_json ? SLICE("JSON") : SLICE("Text"));
    if (function->log_level.len) put(environment, "AWS_LAMBDA_LOG_LEVEL", function->log_level);
    put(environment, "AWS_LAMBDA_LOG_GROUP_NAME", function->log_group);
    put(environment, "AWS_LAMBDA_LOG_STREAM_NAME",
        arena_printf(environment->arena, "%04d/%02d/%02d/[%.*s]%016llx%016llx", day.tm_year + 1900,
                     day.tm_mon + 1, day.tm_mday, SLICE_ARG(function->version), (unsigned long long)stream,
                     (unsigned long long)(stream * 0x9e3779b97f4a7c15u)));
}

/* Keys that are good for this process's port and for nothing else. The server's own stay with the server: an
 * SDK that does not know of our endpoint would take them to Amazon. A function that means Amazon has keys of
 * its own, all of them: keys of different accounts do not mix. */
static void put_credentials(struct environment *environment, const struct instance_keys *keys)
{
    const struct function *function = environment->function;
    put(environment, "QUIPU_TOKEN", slice_of(keys->token));
    if (user_has(function, SLICE("AWS_ACCESS_KEY_ID")) ||
        user_has(function, SLICE("AWS_SECRET_ACCESS_KEY")) ||
        user_has(function, SLICE("AWS_SESSION_TOKEN")))
        return;
    put(environment, "AWS_ACCESS_KEY_ID", slice_of(keys->id));
    put(environment, "AWS_SECRET_ACCESS_KEY", slice_of(keys->secret));
    put(environment, "AWS_SESSION_TOKEN", slice_of(keys->token));
}

/* Where interpreters, the loader and the shell look for what layers bring: as on Lambda where they lie at
 * /opt. */
static void put_layers(struct environment *environment)
{
    const struct function *function = environment->function;
    struct arena *arena = environment->arena;
    struct slice opt = environment->layers, folder = function->folder;
    const char *path = getenv("PATH");
    if (!opt.len) return;
    put(environment, "QUIPU_LAYERS", opt);
    put_default(environment, "PATH",
                arena_printf(arena, "%s:%.*s/bin", path && *path ? path : SANE_PATH, SLICE_ARG(opt)));
    put_default(environment, "LD_LIBRARY_PATH",
                arena_printf(arena, "%.*s:%.*s/lib:%.*s/lib", SLICE_ARG(folder), SLICE_ARG(folder),
                             SLICE_ARG(opt)));
    if (slice_starts(function->runtime, SLICE("nodejs")))
        put_default(environment, "NODE_PATH", arena_printf(arena, "%.*s/nodejs/node_modules", SLICE_ARG(opt)));
    if (slice_starts(function->runtime, SLICE("python")))
        put_default(environment, "PYTHONPATH",
                    arena_printf(arena, "%.*s/python:%.*s/python/lib/%.*s/site-packages", SLICE_ARG(opt),
                                 SLICE_ARG(opt), SLICE_ARG(function->runtime)));
}

static void put_system(struct environment *environment)
{
    struct slice folder = environment->function->folder;
    put_layers(environment);
    put_inherited(environment, "LANG", "C.UTF-8");
    put_default(environment, "TZ", SLICE(":UTC"));
    if (environment->layers.len) return; /* it has the rest */
    put_inherited(environment, "PATH", SANE_PATH);
    put_default(environment, "LD_LIBRARY_PATH",
                arena_printf(environment->arena, "%.*s:%.*s/lib", SLICE_ARG(folder), SLICE_ARG(folder)));
}

const char *const *environment_make(struct func *func, const struct function *function, uint16_t port,
                                    const struct instance_keys *keys, uint64_t stream,
                                    const struct sandbox_program *program, struct arena *arena)
{
    struct environment environment = {.function = function, .arena = arena};
    environment.layers = program->opt ? SLICE("/opt") : function->layers;
    environment.entries = arena_array(arena, const char *, OWN_VARIABLES + function->variable_count + 1);
    put_protocol(&environment, func, port);
    put_log_names(&environment, func, stream);
    /* The process's own port is the endpoint of every service that we have, so that what it sends is known as its
     * own. */
    static const char *const names[] = {"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB",
                                        "AWS_ENDPOINT_URL_DYNAMODB_STREAMS", "AWS_ENDPOINT_URL_LAMBDA",
                                        "AWS_ENDPOINT_URL_SCHEDULER"};
    struct slice url = arena_printf(environment.arena, "http://127.0.0.1:%u", port);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) put_default(&environment, names[i], url);
    put_default(&environment, "AWS_REGION", func->region);
    put_default(&environment, "AWS_DEFAULT_REGION", func->region);
    put_credentials(&environment, keys);
    put_system(&environment);
    if (program->temporary) put_default(&environment, "TMPDIR", slice_of(program->temporary));
    for (uint32_t i = 0; i < function->variable_count; i++) {
        const struct function_variable *variable = &function->variables[i];
        bool hidden = variable->name.len && variable->name.data[0] == '_' &&
                      !slice_equal(variable->name, SLICE("_X_AMZN_TRACE_ID"));
        if (hidden || is_protocol(variable->name)) continue;
        environment.entries[environment.count++] =
            arena_printf(arena, "%.*s=%.*s", SLICE_ARG(variable->name), SLICE_ARG(variable->value)).data;
    }
    environment.entries[environment.count] = NULL;
    return environment.entries;
}
