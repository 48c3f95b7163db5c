/* quipu cost: the command. */
#include <stdio.h>
#include <string.h>

#include "cli/cost.h"
#include "pattern/pattern.h"

static const struct flag cost_flags[] = {
    {"tasks", "N,N,...", "job: its sizes; 1000,2000,10000,100000"},
    {"layout", "tree|set", "job: how it counts; tree"},
    {"partitions", "N", "log: how many there are; 100000"},
    {"news", "N", "log: how many of them have something new; 10"},
    {"bytes", "N",
     "of the JSON that each event, document or unit holds in the table\nof all operations; 200"},
    {"after", "'METHOD PATH [BODY]'", "a call that is made before the one that is measured; may be repeated"},
    {"header", "'NAME: VALUE'", "goes with the call that is measured: 'Idempotency-Key: a'"},
    {"on", "URL",
     "measure on this DynamoDB, in tables of its own that are removed\nafterwards, instead of in memory"},
    {"region", "NAME", "its region, where the URL does not tell"},
    {"profile", "NAME", "the profile of AWS's configuration to take keys from"},
    LIST_FLAGS,
};

static bool has_route(const struct measure *measure)
{
    return !node_is(measure->json, "error", "no-such-route") &&
           !node_is(measure->json, "error", "wrong-method");
}

/* "POST /v1/counters/x {...}": the body begins behind the second space. */
static int prepare(struct meter *meter, const struct arguments *arguments, const char *call)
{
    struct measure measure;
    const char *space = strchr(call, ' '), *end = space ? strchr(space + 1, ' ') : NULL;
    struct slice request = {call, end ? (size_t)(end - call) : strlen(call)};
    char text[2048];
    if (request.len >= sizeof text) return complain_of_usage(arguments, "--after is too long");
    snprintf(text, sizeof text, "%.*s", SLICE_ARG(request));
    if (!meter_ask(meter, text, NULL, slice_of(end ? end + 1 : ""), &measure) || !has_route(&measure))
        return complain_of_usage(arguments, "--after: there is no route '%s'", text);
    if (measure.status < 400) return EXIT_FINE;
    return complain("%s: %.*s", text, SLICE_ARG(measure.reply));
}

static void print_call(const struct arguments *arguments, const char *request, const struct measure *measure)
{
    static const char *const head[] = {"Request",    "Status", "Write units",
                                       "Read units", "Calls",  "$ a million"};
    struct listing listing;
    struct buf json = {0};
    listing_begin(&listing, form_listed(arguments), head, sizeof head / sizeof *head);
    buf_byte(&json, '{');
    put_string_member(&json, "request", slice_of(request));
    buf_printf(&json, ",\"status\":%d", measure->status);
    put_measure(&json, measure);
    buf_byte(&json, '}');
    struct slice *row = listing_row(&listing, buf_view(&json));
    if (row) {
        row[0] = slice_of(request);
        row[1] = arena_printf(&listing.arena, "%d", measure->status);
        row[2] = number_shown(&listing.arena, measure->writes);
        row[3] = number_shown(&listing.arena, measure->reads);
        row[4] = arena_printf(&listing.arena, "%llu", measure->calls);
        row[5] = number_shown(&listing.arena, measure->dollars);
    }
    listing_end(&listing, "calls");
    buf_free(&json);
}

static int cost_of_call(struct meter *meter, const struct arguments *arguments)
{
    struct measure measure;
    struct buf request = {0};
    const char *body = argument_word(arguments, 2), *after;
    int status = EXIT_FINE;
    for (size_t i = 0; status == EXIT_FINE && (after = argument_nth(arguments, "after", i)); i++)
        status = prepare(meter, arguments, after);
    buf_printf(&request, "%s %s", argument_word(arguments, 0), argument_word(arguments, 1));
    bool is_met = status == EXIT_FINE && meter_ask(meter, request.data, argument_text(arguments, "header"),
                                                   slice_of(body ? body : ""), &measure);
    if (status == EXIT_FINE && (!is_met || !has_route(&measure)))
        status = complain_of_usage(arguments, "there is no route '%s'", request.data);
    if (status == EXIT_FINE) {
        print_call(arguments, request.data, &measure);
        if (measure.status >= 400) status = complain("it was refused: %.*s", SLICE_ARG(measure.reply));
    }
    buf_free(&request);
    return status;
}

static int run_cost(const struct arguments *arguments)
{
    struct meter meter;
    size_t words = argument_words(arguments);
    const char *what = words ? argument_word(arguments, 0) : "";
    bool is_known = strcmp(what, "job") == 0 || strcmp(what, "log") == 0;
    int status;
    if (words == 1 && !is_known)
        return complain_of_usage(arguments, "'%s' should be job, log, or a method with a path behind it",
                                 what);
    const char *header = argument_text(arguments, "header");
    if (header && !strchr(header, ':'))
        return complain_of_usage(arguments, "--header should be 'Name: value', not '%s'", header);
    if (words > 1 && is_known) return complain_of_usage(arguments, "'%s' takes flags only", what);
    if (!meter_open(&meter, arguments)) return EXIT_FAULT;
    if (!words)
        status = cost_of_book(&meter, arguments);
    else if (words > 1)
        status = cost_of_call(&meter, arguments);
    else
        status = *what == 'j' ? cost_of_job(&meter, arguments) : cost_of_log(&meter, arguments);
    if (status == EXIT_FINE && errors_are_terminal())
        fprintf(stderr,
                "Prices: on demand, us-east-1, since November 2024: $%g a million write units, $%g a million "
                "read\n"
                "units, $%g a million reads of a stream. doc/scale.md tells what follows from it.\n",
                PRICE_WRITES, PRICE_READS, PRICE_STREAMS);
    meter_close(&meter);
    return status;
}

const struct command command_cost = {
    .name = "cost",
    .summary = "what the patterns cost on Amazon DynamoDB",
    .usage = "[job | log | METHOD PATH [BODY]] [flags]",
    .about = "Measures what the patterns would cost on Amazon DynamoDB: write units, read units, calls, and "
             "dollars\n"
             "per million of them. Nothing of yours is touched: it runs on a database in memory.\n\n"
             "Alone, it prints every operation of every pattern. 'job' prints what a task costs in jobs of "
             "several\n"
             "sizes, 'log' what a consumer reads to find the partitions with news. A method and a path "
             "measure that\n"
             "one call. A running server tells the same of any call that has ?cost in its query.",
    .flags = cost_flags,
    .flag_count = sizeof cost_flags / sizeof *cost_flags,
    .examples = "  quipu cost\n"
                "  quipu cost job --tasks 1000,2000,10000,100000\n"
                "  quipu cost job --layout set\n"
                "  quipu cost log --partitions 100000 --news 10\n"
                "  quipu cost POST /v1/counters/orders '{\"block\":100}'\n"
                "  quipu cost POST /v1/jobs/j/done '{\"task\":1}' --after 'PUT /v1/jobs/j {\"total\":500}'",
    .words_max = 3,
    .run = run_cost,
};
