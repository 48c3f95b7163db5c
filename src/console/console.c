/* The console's routes, and what the page asks first. */
#include "console/console.h"

#include <quipu.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/compose.h"
#include "base/fail.h"
#include "base/json.h"
#include "console/internal.h"
#include "drive/drive.h"

struct console *console_open(const struct console_options *options, char *error, size_t error_len)
{
    if (options->folder && access(options->folder, R_OK | X_OK) != 0) {
        snprintf(error, error_len, "--console-folder: %.400s cannot be read", options->folder);
        return NULL;
    }
    struct console *console = must_zero(1, sizeof *console);
    console->options = *options;
    console->started_ms = clock_now_ms(options->clock);
    page_open(console);
    samples_open(console);
    events_open(console);
    return console;
}

void console_close(struct console *console)
{
    if (!console) return;
    events_close(console);
    samples_close(console);
    page_close(console);
    free(console);
}

bool console_reads_only(const struct console *console)
{
    return console->options.reads_only;
}

void console_refuse(struct rest_call *call, int status, const char *error, const char *format, ...)
{
    char message[500];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    compose(call->reply, "{'error':%s,'message':%s}\n", slice_of(error), slice_of(message));
    call->status = status;
    call->done(call);
}

static struct slice text_or_empty(const char *text)
{
    return text ? slice_of(text) : SLICE("");
}

/* Strangers are not told where the data is. */
static void serve_info(struct console *console, struct rest_call *call, bool is_signed)
{
    const struct console_options *options = &console->options;
    bool has_transactions = dynamo_kind(options->dynamo) != DYNAMO_KIND_ALTERNATOR;
    compose(call->reply,
            "{'version':%s,'engine':{'kind':%s,'where':%s,'transactions':%b},'region':%s,'prefix':%s,'startedMs':%d,"
            "'readOnly':%b,'signIn':%b,'role':%s,'functions':%b,'testHooks':%b}\n",
            SLICE(QUIPU_VERSION), slice_of(options->kind), is_signed ? text_or_empty(options->where) : SLICE(""),
            has_transactions, text_or_empty(options->region), text_or_empty(options->prefix), console->started_ms,
            options->reads_only, options->asks_for_keys,
            is_signed ? slice_of(rest_role_name(call->role)) : SLICE(""), options->func != NULL,
            options->has_hooks);
    rest_add_header(call, "Cache-Control: no-store");
    rest_add_header(call, "X-Content-Type-Options: nosniff");
    call->status = 200;
    call->done(call);
}

/* The tables do not tell of a task that it is being done: only who does it knows. */
static void serve_running(struct console *console, struct rest_call *call)
{
    struct slice job = rest_query(call, "job");
    if (!job.len) {
        console_refuse(call, 400, "bad-request", "Of which job? /console/running?job=ID");
        return;
    }
    buf_text(call->reply, "{\"tasks\":[");
    if (console->options.drive) drive_put_running(console->options.drive, job, call->reply);
    buf_text(call->reply, "]}\n");
    rest_add_header(call, "Cache-Control: no-store");
    rest_add_header(call, "X-Content-Type-Options: nosniff");
    call->status = 200;
    call->done(call);
}

/* Under the lock, since the commands of patterns are made when they are first asked for. */
static void serve_help(struct console *console, struct rest_call *call)
{
    buf_text(call->reply, "{\"commands\":[");
    pthread_mutex_lock(&console->lock);
    if (console->options.put_help) console->options.put_help(call->reply);
    pthread_mutex_unlock(&console->lock);
    buf_text(call->reply, "]}\n");
    rest_add_header(call, "Cache-Control: no-store");
    rest_add_header(call, "X-Content-Type-Options: nosniff");
    call->status = 200;
    call->done(call);
}

/* ---- routes ---- */

static const struct slice below = SLICE("/console/");

static bool is_info(struct slice path)
{
    return slice_equal(path, SLICE("/console/info"));
}

static bool is_running(struct slice path)
{
    return slice_equal(path, SLICE("/console/running"));
}

static bool is_match(struct slice path)
{
    return slice_equal(path, SLICE("/console/match"));
}

bool console_is_open(struct slice path)
{
    return !slice_equal(path, SLICE("/console/events")) && !slice_equal(path, SLICE("/console/changes")) &&
           !is_match(path) && !is_running(path);
}

void console_serve(struct console *console, struct rest_call *call, const struct console_visit *visit)
{
    struct slice path = call->path;
    bool reads = slice_equal(call->method, SLICE("GET")) || slice_equal(call->method, SLICE("HEAD"));
    if (is_match(path) && slice_equal(call->method, SLICE("POST"))) {
        match_serve(call);
    } else if (is_match(path) || !reads) {
        rest_add_header(call, is_match(path) ? "Allow: POST" : "Allow: GET, HEAD");
        console_refuse(call, 405, "method-not-allowed", "The console is only read: %s %.*s.",
                       is_match(path) ? "POST" : "GET", (int)(path.len < 200 ? path.len : 200), path.data);
    } else if (path.len == 1) {
        page_serve(console, call, SLICE("index.html"), visit->takes_gzip);
    } else if (path.len <= below.len) { /* /console and /console/ */
        call->status = 302;
        rest_add_header(call, "Location: /");
        call->done(call);
    } else if (is_info(path)) {
        serve_info(console, call, visit->is_signed);
    } else if (slice_equal(path, SLICE("/console/events"))) {
        events_serve(console, call, visit->takes_gzip);
    } else if (slice_equal(path, SLICE("/console/changes"))) {
        changes_serve(console, call);
    } else if (slice_equal(path, SLICE("/console/help"))) {
        serve_help(console, call);
    } else if (is_running(path)) {
        serve_running(console, call);
    } else {
        page_serve(console, call, slice_from(path, below.len), visit->takes_gzip);
    }
}
