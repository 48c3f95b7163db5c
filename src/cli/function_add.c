/* quipu function add: code becomes a function, or an existing function's code and settings are changed. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/limits.h"
#include "calendar/calendar.h"
#include "cli/function_commands.h"
#include "cli/function_guess.h"
#include "cli/input.h"
#include "cli/layer_commands.h"
#include "cli/print.h"

#define SECRET_BYTES_MAX 4096 /* far more than a secret may have; the server refuses with its own words */
#define TIMEOUT_MAX_MS   (INT64_C(900) * 1000)
#define ROLE             "arn:aws:iam::000000000000:role/quipu" /* Lambda wants one; nobody assumes it */

/* What was asked for. */
struct addition {
    const struct arguments *arguments;
    struct arena arena;
    struct buf code;   /* the member Code of a new function, without braces */
    struct buf config; /* settings */
    const char *runtime, *handler;
    bool has_process; /* it needs a runtime */
};

/* ---- code ---- */

static bool read_file(struct addition *add, const char *path, struct buf *out)
{
    if (!input_read(path, LIMIT_CODE_BYTES, out)) return false;
    if (out->len < 4 || memcmp(out->data, "PK", 2) != 0)
        return complain_of_usage(add->arguments, "%s is no zip archive", path), false;
    return true;
}

static bool put_archive(struct addition *add, const char *path)
{
    struct buf bytes = {0};
    bool fine = read_file(add, path, &bytes);
    if (fine) {
        put_name(&add->code, "ZipFile");
        json_put_base64(&add->code, buf_view(&bytes));
    }
    buf_free(&bytes);
    add->has_process = true;
    return fine;
}

static bool put_folder(struct addition *add, const char *path)
{
    char full[PATH_MAX];
    struct stat status;
    if (!realpath(path, full) || stat(full, &status) != 0)
        return complain("%s cannot be found: %s", path, strerror(errno)), false;
    if (!S_ISDIR(status.st_mode)) return complain_of_usage(add->arguments, "%s is no folder", path), false;
    put_string_member(&add->code, "Directory", slice_of(full));
    add->has_process = true;
    struct function_guess guess;
    function_guess(full, &add->arena, &guess);
    if (!add->runtime) add->runtime = guess.runtime;
    if (!add->handler && add->runtime && guess.runtime && strncmp(add->runtime, guess.runtime, 4) == 0)
        add->handler = guess.handler;
    if (!add->runtime && guess.lacks_permission)
        return complain("bootstrap is there but not executable: chmod +x %s/bootstrap", path), false;
    if (!add->runtime)
        return complain_of_usage(add->arguments, "say --runtime: what runs %s cannot be guessed, %s", path,
                                 guess.fault),
               false;
    if (!add->handler && strncmp(add->runtime, "provided", 8) == 0) add->handler = "bootstrap";
    return true;
}

/* Of a file or of standard input, it does not stand in the list of processes. Its last line end is the editor's. */
static bool put_secret(struct addition *add, const char *given)
{
    struct buf secret = {0};
    bool fine = input_take(given, SECRET_BYTES_MAX, &secret);
    while (secret.len && (secret.data[secret.len - 1] == '\n' || secret.data[secret.len - 1] == '\r'))
        secret.len--;
    if (fine && !utf8_valid(buf_view(&secret))) fine = (complain("the secret is not UTF-8"), false);
    if (fine) put_string_member(&add->code, "Secret", buf_view(&secret));
    if (secret.data) explicit_bzero(secret.data, secret.cap);
    buf_free(&secret);
    return fine;
}

/* Exactly one of the flags that name code. */
static bool put_code(struct addition *add)
{
    static const char *const sources[] = {"dir", "zip", "url", "to-table", "to-queue", "to-pattern"};
    static const char *const members[] = {NULL, NULL, "Url", "Table", "Queue", "Pattern"};
    const struct arguments *arguments = add->arguments;
    const char *found = NULL, *secret = argument_text(arguments, "secret");
    const char *body = argument_text(arguments, "body");
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        const char *text = argument_text(arguments, sources[i]);
        if (!text) continue;
        if (found)
            return complain_of_usage(arguments, "--%s and --%s do not go together", found, sources[i]), false;
        found = sources[i];
        if (i == 0 && !put_folder(add, text)) return false;
        if (i == 1 && !put_archive(add, text)) return false;
        if (members[i]) put_string_member(&add->code, members[i], slice_of(text));
    }
    if (!found)
        return complain_of_usage(
                   arguments,
                   "say what it runs: --dir, --zip, --url, --to-table, --to-queue or --to-pattern"),
               false;
    if (secret && strcmp(found, "url") != 0)
        return complain_of_usage(arguments, "--secret goes with --url"), false;
    if (secret && !put_secret(add, secret)) return false;
    if (body && strcmp(found, "to-pattern") != 0)
        return complain_of_usage(arguments, "--body goes with --to-pattern"), false;
    if (body) put_string_member(&add->code, "Body", slice_of(body));
    return true;
}

/* ---- settings ---- */

static bool put_variables(struct addition *add)
{
    const struct arguments *arguments = add->arguments;
    if (!argument_given(arguments, "env")) return true;
    put_name(&add->config, "Environment");
    buf_text(&add->config, "{\"Variables\":{");
    for (size_t i = 0; argument_nth(arguments, "env", i); i++) {
        const char *text = argument_nth(arguments, "env", i), *equals = strchr(text, '=');
        if (!equals || equals == text)
            return complain_of_usage(arguments, "--env should be NAME=VALUE, not '%s'", text), false;
        const char *name = arena_printf(&add->arena, "%.*s", (int)(equals - text), text).data;
        put_string_member(&add->config, name, slice_of(equals + 1));
    }
    buf_text(&add->config, "}}");
    return true;
}

static bool put_limits(struct addition *add)
{
    const struct arguments *arguments = add->arguments;
    const char *timeout = argument_text(arguments, "timeout");
    unsigned long long memory = 0, concurrency = 0;
    int64_t ms;
    if (timeout && (!duration_parse(slice_of(timeout), TIMEOUT_MAX_MS, &ms) || ms % 1000 || !ms))
        return complain_of_usage(arguments, "--timeout should be whole seconds up to 15m, like 30s, not '%s'",
                                 timeout),
               false;
    if (!argument_number(arguments, "memory", 128, 10240, &memory) ||
        !argument_number(arguments, "per-process", 1, 1000, &concurrency))
        return false;
    if (timeout) {
        put_name(&add->config, "Timeout");
        buf_printf(&add->config, "%lld", (long long)(ms / 1000));
    }
    if (memory) {
        put_name(&add->config, "MemorySize");
        buf_printf(&add->config, "%llu", memory);
    }
    if (concurrency) {
        put_name(&add->config, "Quipu");
        buf_printf(&add->config, "{\"Concurrency\":%llu}", concurrency);
    }
    return true;
}

static bool put_settings(struct addition *add)
{
    const char *description = argument_text(add->arguments, "description");
    if (add->runtime) put_string_member(&add->config, "Runtime", slice_of(add->runtime));
    if (add->handler) put_string_member(&add->config, "Handler", slice_of(add->handler));
    if (description) put_string_member(&add->config, "Description", slice_of(description));
    return put_limits(add) && put_variables(add);
}

/* What can be said of them without asking the server. */
static bool check_layers(const struct addition *add)
{
    const struct arguments *arguments = add->arguments;
    bool takes_away = argument_given(arguments, "no-layers"), gives = argument_given(arguments, "layer");
    if (gives && takes_away)
        return complain_of_usage(arguments, "--layer and --no-layers do not go together"), false;
    if (gives && !add->has_process)
        return complain_of_usage(arguments, "--layer goes with --dir or --zip"), false;
    for (size_t i = 0; argument_nth(arguments, "layer", i); i++) {
        if (i == LIMIT_LAYERS)
            return complain_of_usage(arguments, "a function can have %d layers at most", LIMIT_LAYERS), false;
        const char *text = argument_nth(arguments, "layer", i);
        if (!layer_name_is_sound(text, arguments)) return false;
        for (size_t j = 0; j < i; j++)
            if (layer_names_agree(argument_nth(arguments, "layer", j), text))
                return complain_of_usage(arguments, "'%s' names a layer that was named before", text), false;
    }
    return true;
}

/* ---- the server ---- */

/* Asks for the versions that are meant; `function` is the one that is there, or NULL. */
static bool put_layers(struct service *service, struct addition *add, const struct node *function)
{
    const struct arguments *arguments = add->arguments;
    struct slice runtime = add->runtime ? slice_of(add->runtime) : node_text(function, "Runtime");
    if (!argument_given(arguments, "layer") && !argument_given(arguments, "no-layers")) return true;
    put_name(&add->config, "Layers");
    buf_byte(&add->config, '[');
    for (size_t i = 0; argument_nth(arguments, "layer", i); i++) {
        const struct node *version = layer_find(service, &add->arena, argument_nth(arguments, "layer", i));
        if (!version || !layer_fits(version, runtime)) return false;
        put_comma(&add->config);
        json_put_string(&add->config, node_text(version, "LayerVersionArn"));
    }
    buf_byte(&add->config, ']');
    return true;
}

static bool create(struct service *service, struct addition *add, struct response *response)
{
    const struct arguments *arguments = add->arguments;
    struct buf body = {0};
    if (add->has_process && (!add->runtime || !add->handler))
        return complain_of_usage(arguments, "say %s: what runs it cannot be guessed",
                                 add->runtime   ? "--handler too"
                                 : add->handler ? "--runtime too"
                                                : "--runtime and --handler"),
               false;
    buf_byte(&body, '{');
    put_string_member(&body, "FunctionName", slice_of(argument_word(arguments, 0)));
    buf_printf(&body, ",\"Code\":{%.*s}", SLICE_ARG(buf_view(&add->code)));
    put_string_member(&body, "Role", SLICE(ROLE));
    if (add->config.len) buf_printf(&body, ",%.*s", SLICE_ARG(buf_view(&add->config)));
    buf_byte(&body, '}');
    struct request request = request_to("lambda", "POST", FUNCTIONS_PATH, &body);
    request.total_ms = UPLOAD_MS;
    bool fine = service_call(service, &add->arena, &request, response);
    buf_free(&body);
    return fine;
}

static bool put_part(struct service *service, struct addition *add, const char *what,
                     const struct buf *members, struct response *response)
{
    struct buf body = {0};
    buf_printf(&body, "{%.*s}", SLICE_ARG(buf_view(members)));
    const char *path = path_of(&add->arena, FUNCTIONS_PATH "/%s/", argument_word(add->arguments, 0), NULL);
    struct request request = request_to("lambda", "PUT", arena_printf(&add->arena, "%s%s", path, what).data,
                                        &body);
    request.total_ms = UPLOAD_MS;
    bool fine = service_call(service, &add->arena, &request, response);
    buf_free(&body);
    return fine;
}

static bool set_concurrency(struct service *service, struct addition *add)
{
    unsigned long long number = 0;
    struct buf body = {0};
    struct response response;
    if (!argument_given(add->arguments, "concurrency")) return true;
    argument_number(add->arguments, "concurrency", 0, 1000000, &number);
    buf_printf(&body, "{\"ReservedConcurrentExecutions\":%llu}", number);
    const char *name = argument_word(add->arguments, 0);
    struct request request = request_to(
        "lambda", "PUT", path_of(&add->arena, "/2017-10-31/functions/%s/concurrency", name, NULL), &body);
    bool fine = service_call(service, &add->arena, &request, &response);
    buf_free(&body);
    return fine;
}

/* The code first: a runtime that fits only the new code must not meet the old. */
static int add_on(struct service *service, struct addition *add)
{
    const char *name = argument_word(add->arguments, 0);
    struct response response;
    struct request request = request_to("lambda", "GET",
                                        path_of(&add->arena, FUNCTIONS_PATH "/%s", name, NULL), NULL);
    if (!service_ask(service, &add->arena, &request, &response)) return EXIT_FAULT;
    bool exists = !response.error;
    if (response.error && response.status != 404) return service_complain(&response);
    if (!put_layers(service, add, exists ? node_member(response.json, "Configuration") : NULL))
        return EXIT_FAULT;
    bool fine = exists ? put_part(service, add, "code", &add->code, &response) &&
                             (!add->config.len ||
                              put_part(service, add, "configuration", &add->config, &response))
                       : create(service, add, &response);
    if (!fine || !set_concurrency(service, add)) return EXIT_FAULT;
    if (errors_are_terminal()) fprintf(stderr, "%s %s.\n", exists ? "Changed" : "Added", name);
    return EXIT_FINE;
}

int function_add(const struct arguments *arguments)
{
    struct addition add = {.arguments = arguments,
                           .runtime = argument_text(arguments, "runtime"),
                           .handler = argument_text(arguments, "handler")};
    struct service service;
    unsigned long long number;
    int status = EXIT_USAGE;
    if (put_code(&add) && put_settings(&add) && check_layers(&add) &&
        argument_number(arguments, "concurrency", 0, 1000000, &number)) {
        status = EXIT_FAULT;
        if (service_open(&service, arguments)) {
            status = add_on(&service, &add);
            service_close(&service);
        }
    }
    buf_free(&add.code);
    buf_free(&add.config);
    arena_free(&add.arena);
    return status;
}
