/* quipu function invoke, logs, publish, alias. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/log.h"
#include "cli/function_commands.h"
#include "cli/input.h"
#include "cli/listing.h"

#define ESCAPED_RUN 256                  /* bytes of a log that are escaped at a time */
#define INVOKE_MS   (12LL * 3600 * 1000) /* the server ends it after 15 minutes, but for one under a debugger */
#define WAIT_QUERY  "20s"                /* how long the server waits for more of a log, at most */
#define WAIT_MS     40000

/* ---- invoking ---- */

/* JSON, @file, or - for standard input; {} when nothing is said. False after complaining. */
static bool event_read(const struct arguments *arguments, struct buf *out)
{
    const char *text = argument_word(arguments, 1), *fault;
    struct arena arena = {0};
    bool fine = input_take(text ? text : "{}", LIMIT_EVENT_BYTES, out);
    if (fine && !node_parse(&arena, buf_view(out), &fault)) {
        complain_of_usage(arguments, "the event should be JSON: %s", fault);
        fine = false;
    }
    arena_free(&arena);
    return fine;
}

static void print_tail(struct arena *arena, struct slice log)
{
    struct slice text;
    if (log.len && base64_decode(arena, log, &text) == BASE64_OK) fwrite(text.data, 1, text.len, stderr);
}

static int invoke_on(struct service *service, struct arena *arena, const struct arguments *arguments,
                     const struct buf *event)
{
    const char *name = argument_word(arguments, 0);
    struct response response;
    struct request request = request_to("lambda", "POST",
                                        path_of(arena, FUNCTIONS_PATH "/%s/invocations", name, NULL), event);
    request.total_ms = INVOKE_MS;
    request.header = argument_given(arguments, "async") ? "X-Amz-Invocation-Type: Event"
                                                        : "X-Amz-Invocation-Type: RequestResponse";
    if (argument_given(arguments, "log")) request.header2 = "X-Amz-Log-Type: Tail";
    if (!service_call(service, arena, &request, &response)) return EXIT_FAULT;
    print_tail(arena, response.log_tail);
    if (response.body.len) printf("%.*s\n", SLICE_ARG(response.body));
    if (response.function_error.len && errors_are_terminal()) fprintf(stderr, "The function failed.\n");
    return response.function_error.len ? EXIT_FAULT : EXIT_FINE;
}

int function_invoke(const struct arguments *arguments)
{
    struct service service;
    struct arena arena = {0};
    struct buf event = {0};
    int status = EXIT_FAULT;
    if (event_read(arguments, &event) && service_open(&service, arguments)) {
        status = invoke_on(&service, &arena, arguments, &event);
        service_close(&service);
    }
    buf_free(&event);
    arena_free(&arena);
    return status;
}

/* ---- logs ---- */

/* At a terminal, control characters are shown and not obeyed; a pipe gets what the function wrote. */
static void print_log(struct slice text)
{
    char shown[4 * ESCAPED_RUN];
    if (!isatty(STDOUT_FILENO)) {
        fwrite(text.data, 1, text.len, stdout);
        return;
    }
    while (text.len) {
        size_t run = 0;
        while (run < text.len && run < ESCAPED_RUN / 2 && text.data[run] != '\n' && text.data[run] != '\t')
            run++;
        /* A control of two bytes is not torn. */
        if (run > 1 && run < text.len && (unsigned char)text.data[run - 1] == 0xc2) run--;
        fwrite(shown, 1, log_escape(shown, sizeof shown, text.data, run), stdout);
        if (run == 0) fputc(text.data[run++], stdout);
        text = slice_from(text, run);
    }
}

/* One piece of the log; false after complaining, or when standard output is gone. */
static bool log_piece(struct service *service, struct arena *arena, const char *path, const char *query,
                      struct response *response)
{
    struct request request = request_to("lambda", "GET", path, NULL);
    request.query = query;
    request.total_ms = WAIT_MS;
    if (!service_call(service, arena, &request, response)) return false;
    print_log(response->body);
    return fflush(stdout) == 0;
}

int function_logs(const struct arguments *arguments)
{
    struct service service;
    struct arena arena = {0}, piece = {0};
    struct response response;
    char query[96] = "";
    if (!service_open(&service, arguments)) return EXIT_FAULT;
    const char *path = path_of(&arena, "/v1/functions/%s/logs", argument_word(arguments, 0), NULL);
    bool fine = log_piece(&service, &piece, path, NULL, &response);
    while (fine && argument_given(arguments, "follow") && response.position.len) {
        snprintf(query, sizeof query, "from=%.*s&wait=" WAIT_QUERY, SLICE_ARG(response.position));
        arena_reset(&piece);
        fine = log_piece(&service, &piece, path, query, &response);
    }
    arena_free(&piece);
    arena_free(&arena);
    service_close(&service);
    return fine ? EXIT_FINE : EXIT_FAULT;
}

/* ---- versions and aliases ---- */

int function_publish(const struct arguments *arguments)
{
    const char *description = argument_text(arguments, "description"), *name = argument_word(arguments, 0);
    struct service service;
    struct arena arena = {0};
    struct buf body = {0};
    struct response response;
    buf_byte(&body, '{');
    if (description) put_string_member(&body, "Description", slice_of(description));
    buf_byte(&body, '}');
    bool fine = service_open(&service, arguments);
    if (fine) {
        struct request request = request_to(
            "lambda", "POST", path_of(&arena, FUNCTIONS_PATH "/%s/versions", name, NULL), &body);
        fine = service_call(&service, &arena, &request, &response);
        if (fine) printf("%.*s\n", SLICE_ARG(node_text(response.json, "Version")));
        service_close(&service);
    }
    buf_free(&body);
    arena_free(&arena);
    return fine ? EXIT_FINE : EXIT_FAULT;
}

static bool alias_list(struct service *service, struct arena *arena, const struct arguments *arguments)
{
    static const char *const head[] = {"ALIAS", "VERSION", "DESCRIPTION"};
    struct listing listing;
    size_t count;
    const char *path = path_of(arena, FUNCTIONS_PATH "/%s/aliases", argument_word(arguments, 0), NULL);
    const struct node **all = service_list(service, arena, request_to("lambda", "GET", path, NULL), "Aliases",
                                           "Marker", "NextMarker", &count);
    if (!all) return false;
    listing_begin(&listing, form_listed(arguments), head, sizeof head / sizeof *head);
    for (size_t i = 0; i < count; i++) {
        struct slice *row = listing_row(&listing, all[i]->source);
        if (!row) continue;
        row[0] = node_text(all[i], "Name");
        row[1] = node_text(all[i], "FunctionVersion");
        row[2] = node_text(all[i], "Description");
    }
    listing_end(&listing, "aliases");
    return true;
}

/* Makes it, or points it elsewhere. */
static bool alias_set(struct service *service, struct arena *arena, const struct arguments *arguments)
{
    const char *name = argument_word(arguments, 0), *alias = argument_word(arguments, 1);
    struct buf body = {0};
    struct response response;
    buf_byte(&body, '{');
    put_string_member(&body, "FunctionVersion", slice_of(argument_word(arguments, 2)));
    put_string_member(&body, "Name", slice_of(alias));
    buf_byte(&body, '}');
    struct request request = request_to("lambda", "PUT",
                                        path_of(arena, FUNCTIONS_PATH "/%s/aliases/%s", name, alias), &body);
    bool fine = service_ask(service, arena, &request, &response);
    if (fine && response.status == 404) {
        request = request_to("lambda", "POST", path_of(arena, FUNCTIONS_PATH "/%s/aliases", name, NULL),
                             &body);
        fine = service_ask(service, arena, &request, &response);
    }
    buf_free(&body);
    if (fine && response.error) service_complain(&response);
    return fine && !response.error;
}

static bool alias_remove(struct service *service, struct arena *arena, const struct arguments *arguments)
{
    struct response response;
    const char *path = path_of(arena, FUNCTIONS_PATH "/%s/aliases/%s", argument_word(arguments, 0),
                               argument_word(arguments, 1));
    struct request request = request_to("lambda", "DELETE", path, NULL);
    return service_call(service, arena, &request, &response);
}

int function_alias(const struct arguments *arguments)
{
    struct service service;
    struct arena arena = {0};
    size_t words = argument_words(arguments);
    bool removes = argument_given(arguments, "rm"), fine;
    if (removes ? words != 2 : words == 2)
        return complain_of_usage(arguments,
                                 removes ? "say which alias to remove" : "say which version it is for");
    if (!service_open(&service, arguments)) return EXIT_FAULT;
    if (removes)
        fine = alias_remove(&service, &arena, arguments);
    else
        fine = words == 1 ? alias_list(&service, &arena, arguments) : alias_set(&service, &arena, arguments);
    arena_free(&arena);
    service_close(&service);
    return fine ? EXIT_FINE : EXIT_FAULT;
}
