/* Commands that send many from lines of standard input: quipu log append, group add, period add, work submit. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/operation.h"
#include "cli/print.h"
#include "cli/special.h"

#define BATCH_EVENTS 99 /* fit one transaction */
#define BATCH_BYTES  1000000
#define LINE_BYTES   (1 << 20)

struct appending {
    const struct arguments *arguments;
    struct place place;
    const char *path, *name; /* "/v1/logs/%s", and what stands there */
    const char *list;        /* the member of the call */
    const char *shape, *end; /* what a line is, and what becomes of it */
    const char *key;         /* whose data the lines are; NULL: each is an object */
    bool knows_token;        /* the command has --idempotency-key */
    struct buf events;       /* "[...,..." */
    size_t count;            /* in it */
    unsigned long long done, line;
    bool has_refused; /* one of them, by itself */
};

static bool has_refused(const struct heard *heard, const char *list)
{
    const struct node *all = node_member(heard->json, list);
    for (const struct node *one = all ? all->first : NULL; one; one = one->next)
        if (node_member(one, "error")) return true;
    return false;
}

/* All of the batch or nothing is repeated: lines with tokens are appended once for all that. */
static int batch_send(struct appending *appending)
{
    struct inquiry inquiry = {.method = "POST"};
    int status = EXIT_FINE;
    if (!appending->count) return EXIT_FINE;
    inquiry_path(&inquiry, appending->path, appending->name, "");
    buf_printf(&inquiry.body, "{\"%s\":[%.*s]}", appending->list, SLICE_ARG(buf_view(&appending->events)));
    struct arena arena = {0};
    struct heard heard = inquiry_run(&appending->place, &arena, &inquiry);
    status = heard_status(&heard);
    if (status == EXIT_FINE) {
        heard_print(appending->arguments, &heard, slice_of(appending->list));
        appending->has_refused |= has_refused(&heard, appending->list);
        appending->done += appending->count;
    } else {
        heard_complain(appending->arguments, &appending->place, &heard);
        complain("the first %llu %s are %s; of those behind them, up to line %llu, some may be",
                 appending->done, appending->list, appending->end, appending->line);
    }
    inquiry_free(&inquiry);
    arena_free(&arena);
    appending->events.len = 0;
    appending->count = 0;
    return status;
}

/* With a key the line is the data, JSON or else a text; without, an event. */
static int line_take(struct appending *appending, struct slice line)
{
    struct arena arena = {0};
    const char *fault;
    struct buf *events = &appending->events;
    const struct node *json = node_parse(&arena, line, &fault);
    int status = EXIT_FINE;
    if (!utf8_valid(line)) {
        status = complain("line %llu is not UTF-8", appending->line);
    } else if (!appending->key && (!json || json->kind != JSON_OBJECT)) {
        status = complain("line %llu should be %s: %s", appending->line, appending->shape,
                          json ? "it is no object" : fault);
    } else {
        if (appending->count) buf_byte(events, ',');
        if (appending->key) {
            buf_byte(events, '{');
            put_string_member(events, "key", slice_of(appending->key));
            put_name(events, "data");
        }
        if (json)
            buf_slice(events, line);
        else
            json_put_string(events, line);
        if (appending->key) buf_byte(events, '}');
        appending->count++;
    }
    arena_free(&arena);
    return status;
}

/* The next line, of which no more is kept than is too long; false: there is none. */
static bool line_read(struct buf *text)
{
    int c;
    text->len = 0;
    while (text->len <= LINE_BYTES && (c = getc(stdin)) != EOF) {
        if (c == '\n') return true;
        buf_byte(text, (unsigned char)c);
    }
    return text->len > 0;
}

static int lines_append(struct appending *appending)
{
    struct buf text = {0};
    int status = EXIT_FINE;
    while (status == EXIT_FINE && line_read(&text)) {
        struct slice line = buf_view(&text);
        appending->line++;
        while (line.len && line.data[line.len - 1] == '\r') line.len--;
        if (!line.len) continue;
        status = line.len > LINE_BYTES ? complain("line %llu is longer than 1 MB", appending->line)
                                       : line_take(appending, line);
        bool is_full = appending->count == BATCH_EVENTS || appending->events.len >= BATCH_BYTES;
        if (status == EXIT_FINE && is_full) status = batch_send(appending);
    }
    buf_free(&text);
    if (status == EXIT_FINE) status = batch_send(appending);
    return status;
}

static int lines_run(struct appending *appending)
{
    if (appending->knows_token && argument_given(appending->arguments, "idempotency-key"))
        return complain_of_usage(appending->arguments,
                                 "--idempotency-key belongs to one call; lines may have ids or tokens");
    if (!place_open(&appending->place, appending->arguments, PLACE_MAKE)) return EXIT_FAULT;
    int status = lines_append(appending);
    if (errors_are_terminal())
        fprintf(stderr, "%llu %s %s\n", appending->done, appending->list, appending->end);
    buf_free(&appending->events);
    place_close(&appending->place);
    return status == EXIT_FINE && appending->has_refused ? EXIT_FAULT : status;
}

/* None of these is given, by a flag or as a word behind the first `words`; and lines come from somewhere. */
static bool reads_lines(const struct arguments *arguments, unsigned words, const char *const *flags)
{
    bool is_given = argument_word(arguments, words);
    for (; *flags; flags++) is_given |= argument_given(arguments, *flags);
    return !is_given && isatty(STDIN_FILENO) != 1 && *argument_word(arguments, 0);
}

int log_append(const struct arguments *arguments)
{
    static const char *const flags[] = {"data", "events", "token", NULL};
    const char *key = argument_word(arguments, 1), *flag = argument_text(arguments, "key");
    struct appending appending = {.arguments = arguments,
                                  .path = "/v1/logs/%s",
                                  .name = argument_word(arguments, 0),
                                  .list = "events",
                                  .shape = "{\"key\":...,\"data\":...}",
                                  .end = "appended",
                                  .knows_token = true,
                                  .key = key ? key : flag};
    if (!reads_lines(arguments, 2, flags)) return operation_run(arguments);
    if (argument_given(arguments, "expected"))
        return complain_of_usage(arguments, "--expected belongs to one call: give data, or --events");
    return lines_run(&appending);
}

int group_add_lines(const struct arguments *arguments)
{
    static const char *const flags[] = {"id", "kind", "data", "amount", "deadline", NULL};
    struct appending appending = {.arguments = arguments,
                                  .path = "/v1/groups/%s",
                                  .name = argument_word(arguments, 0),
                                  .list = "events",
                                  .shape = "{\"key\":...,\"id\":...,\"data\":...}",
                                  .end = "sent",
                                  .knows_token = true};
    if (argument_word(arguments, 1)) return operation_run(arguments);
    if (reads_lines(arguments, 1, flags)) return lines_run(&appending);
    return complain_of_usage(arguments, "a KEY is missing, or events on standard input, one on each line");
}

int period_add_lines(const struct arguments *arguments)
{
    static const char *const flags[] = {"id", "data", "time", "events", NULL};
    struct appending appending = {.arguments = arguments,
                                  .path = "/v1/periods/%s",
                                  .name = argument_word(arguments, 0),
                                  .list = "events",
                                  .shape = "{\"id\":...,\"data\":...}",
                                  .end = "sent",
                                  .knows_token = true};
    return reads_lines(arguments, 1, flags) ? lines_run(&appending) : operation_run(arguments);
}

int work_submit_lines(const struct arguments *arguments)
{
    static const char *const flags[] = {"data", "delay", NULL};
    struct appending appending = {.arguments = arguments,
                                  .path = "/v1/work/%s",
                                  .name = argument_word(arguments, 0),
                                  .list = "units",
                                  .shape = "{\"id\":...,\"data\":...}",
                                  .end = "submitted"};
    if (argument_word(arguments, 1)) return operation_run(arguments);
    if (reads_lines(arguments, 1, flags)) return lines_run(&appending);
    return complain_of_usage(arguments, "an ID is missing, or units on standard input, one on each line");
}
