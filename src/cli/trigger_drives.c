/* Triggers of logs and queues of work: settings of the log's consumer, or of the queue, which the server drives by
 * itself. What 'quipu log push' and 'quipu work put --each' say is said here in the words of triggers. */
#include "cli/trigger_drives.h"

#include <string.h>

#include "base/node.h"

struct drive_named {
    bool is_log;
    const char *path; /* of the resource that has the settings */
};

bool trigger_is_drive(const struct arguments *arguments)
{
    struct slice first = slice_of(argument_word(arguments, 0));
    return slice_starts(first, SLICE("log:")) || slice_starts(first, SLICE("work:"));
}

/* The consumer of a log is named, or has the function's name. False after complaining. */
static bool read_name(const struct arguments *arguments, struct arena *arena, struct drive_named *out)
{
    const char *first = argument_word(arguments, 0), *function = argument_word(arguments, 1);
    struct slice rest = slice_of(first), kind = slice_cut(&rest, ':'), log = slice_cut(&rest, ':');
    *out = (struct drive_named){.is_log = slice_equal(kind, SLICE("log"))};
    if (!out->is_log) {
        out->path = path_of(arena, "/v1/work/%s", first + kind.len + 1, NULL);
        return true;
    }
    const char *consumer = rest.len ? arena_copy(arena, rest).data : function;
    if (!consumer || !log.len || strchr(consumer, '/')) {
        complain_of_usage(arguments, "name the consumer of the log, as in log:orders:billing");
        return false;
    }
    out->path = path_of(arena, "/v1/logs/%s/consumers/%s", arena_printf(arena, "%.*s", SLICE_ARG(log)).data,
                        consumer);
    return true;
}

/* ---- settings ---- */

/* What a flag of triggers is called there; NULL: it has no such setting. */
static const struct drive_flag {
    const char *flag, *of_log, *of_work;
} drive_flags[] = {
    {"batch", "batch", NULL},
    {"window", "window", NULL},
    {"lanes", "parallel", "concurrency"},
    {"retries", "attempts", "attempts"},
    {"bisect", "bisect", NULL},
    {"filter", NULL, NULL},
    {"max-age", NULL, NULL},
    {"partial", NULL, NULL},
    {"tumbling", NULL, NULL},
    {"on-failure", NULL, "then"},
    {"depth", NULL, NULL},
};

static bool put_flags(struct buf *out, const struct arguments *arguments, const struct drive_named *named)
{
    for (size_t i = 0; i < sizeof drive_flags / sizeof *drive_flags; i++) {
        const struct drive_flag *row = &drive_flags[i];
        const char *member = named->is_log ? row->of_log : row->of_work,
                   *text = argument_text(arguments, row->flag);
        unsigned long long number;
        if (!argument_given(arguments, row->flag)) continue;
        if (!member) return complain_of_usage(arguments, "--%s is for triggers of tables", row->flag), false;
        bool is_text = !strcmp(row->flag, "window") || !strcmp(row->flag, "on-failure");
        if (!strcmp(row->flag, "bisect")) {
            put_name(out, member);
            buf_text(out, "true");
        } else if (is_text) {
            put_string_member(out, member, slice_of(text));
        } else if (slice_to_u64(slice_of(text), 1000000, &number)) {
            put_name(out, member);
            buf_printf(out, "%llu", number + !strcmp(row->flag, "retries")); /* the first call is no retry */
        } else {
            return complain_of_usage(arguments, "--%s should be a number, not '%s'", row->flag, text), false;
        }
    }
    return true;
}

/* Sends what `body` has so far, and the flags. */
static int put_settings(const struct arguments *arguments, struct buf *body, const char *function)
{
    struct service service;
    struct arena arena = {0};
    struct drive_named named;
    struct response response;
    int status = EXIT_USAGE;
    if (read_name(arguments, &arena, &named)) {
        buf_byte(body, '{');
        if (function) put_string_member(body, named.is_log ? "function" : "each", slice_of(function));
        if (put_flags(body, arguments, &named)) {
            buf_byte(body, '}');
            struct request request = request_to("lambda", "PUT", named.path, body);
            status = EXIT_FAULT;
            if (service_open(&service, arguments)) {
                bool is_there = !function || strchr(function, '/') ||
                                !service_lacks_function(&service, &arena, function);
                if (!is_there)
                    complain("there is no function '%s' ('quipu function ls' lists them)", function);
                else if (service_call(&service, &arena, &request, &response))
                    status = EXIT_FINE;
                service_close(&service);
            }
        }
    }
    arena_free(&arena);
    return status;
}

int trigger_drive_add(const struct arguments *arguments)
{
    struct buf body = {0};
    if (argument_given(arguments, "from"))
        return complain_of_usage(arguments,
                                 "--from is for triggers of tables; 'quipu log replay' moves a consumer");
    int status = put_settings(arguments, &body, argument_word(arguments, 1));
    buf_free(&body);
    return status;
}

int trigger_drive_set(const struct arguments *arguments)
{
    struct buf body = {0};
    int status = put_settings(arguments, &body, NULL);
    buf_free(&body);
    return status;
}

/* ---- the others ---- */

/* Sends a request about it, and prints the reply where that is wanted. */
static int ask(const struct arguments *arguments, const char *method, const char *of_log, const char *of_work,
               bool prints)
{
    struct service service;
    struct arena arena = {0};
    struct drive_named named;
    struct response response;
    struct buf body = {0};
    bool fine = read_name(arguments, &arena, &named);
    if (!fine || !service_open(&service, arguments)) {
        arena_free(&arena);
        return fine ? EXIT_FAULT : EXIT_USAGE;
    }
    buf_slice(&body, slice_of(named.is_log ? of_log : of_work));
    struct request request = request_to("lambda", method, named.path, body.len ? &body : NULL);
    fine = service_call(&service, &arena, &request, &response);
    if (fine && prints) json_print(response.body);
    service_close(&service);
    buf_free(&body);
    arena_free(&arena);
    return fine ? EXIT_FINE : EXIT_FAULT;
}

int trigger_drive_show(const struct arguments *arguments)
{
    return ask(arguments, "GET", "", "", true);
}

int trigger_drive_pause(const struct arguments *arguments, bool is_paused)
{
    const char *body = is_paused ? "{\"paused\":true}" : "{\"paused\":false}";
    return ask(arguments, "PUT", body, body, false);
}

int trigger_drive_remove(const struct arguments *arguments)
{
    return ask(arguments, "PUT", "{\"function\":[]}", "{\"each\":[]}", false);
}

bool trigger_drives_list(struct service *service, struct arena *arena, struct listing *listing)
{
    struct request request = request_to("lambda", "GET", "/v1/drives", NULL);
    struct response response;
    if (!service_call(service, arena, &request, &response)) return false;
    const struct node *drives = node_member(response.json, "drives");
    for (const struct node *one = drives ? drives->first : NULL; one; one = one->next) {
        const struct node *each = node_member(one, "each"),
                          *target = each ? each : node_member(one, "function");
        struct slice text = node_text(one, each ? "each" : "function");
        struct slice *row = listing_row(listing, one->source);
        if (!row) continue;
        row[0] = row[1] = node_text(one, "id");
        row[2] = text.len || !target ? text : target->source;
        row[3] = node_is_true(one, "paused") ? SLICE("Disabled") : SLICE("Enabled");
        row[4] = node_text(one, each ? "concurrency" : "batch");
        row[5] = SLICE("");
    }
    return true;
}
