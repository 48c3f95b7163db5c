/* quipu check and quipu show: a data folder looked at from outside. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/api.h"
#include "base/print.h"
#include "main/main.h"
#include "store/store.h"

/* Opens the folder for reading; NULL after complaining, with *status what to exit with. */
static struct store *open_folder(const struct arguments *arguments, const char *command, int *status)
{
    const char *data = argument_text(arguments, "data");
    char error[600];
    *status = EXIT_USAGE;
    if (!data) {
        complain_of_usage(arguments, "say which folder: quipu %s --data DIR", command);
        return NULL;
    }
    struct store_options options = {.folder = data, .read_only = true, .cache_bytes = 8 << 20};
    struct store *store = store_open_disk(&options, error, sizeof error);
    if (!store) *status = complain("%s", error);
    return store;
}

static int check(const struct arguments *arguments)
{
    int status;
    struct store *store = open_folder(arguments, "check", &status);
    if (!store) return status;
    struct check_report report;
    struct buf out = {0};
    bool read = engine_check(store, &report, &out);
    if (out.len) fwrite(out.data, 1, out.len, stdout);
    if (!read) {
        complain("the store cannot be read: %s", store->error);
        status = EXIT_FAULT;
    } else {
        printf("%s, %s, %s, %s\n", counted(report.tables, "table").text, counted(report.items, "item").text,
               counted(report.records, "stream record").text, counted(report.faults, "fault").text);
        status = report.faults ? EXIT_FAULT : EXIT_FINE;
    }
    buf_free(&out);
    store_close(store);
    return status;
}

static bool print_line(struct buf *line, enum stored_kind kind, struct slice value)
{
    buf_byte(line, '\t');
    if (kind == STORED_ITEM) {
        if (!api_put_encoded_item_json(line, value)) buf_text(line, "(damaged)");
    } else if (kind == STORED_UNKNOWN) {
        buf_printf(line, "(%s)", counted(value.len, "byte").text);
    } else {
        buf_slice(line, value);
    }
    buf_byte(line, '\n');
    return fwrite(line->data, 1, line->len, stdout) == line->len;
}

static bool print_entry(void *context, enum stored_kind kind, struct slice meaning, struct slice value)
{
    struct buf *line = context;
    line->len = 0;
    buf_slice(line, meaning);
    return print_line(line, kind, value);
}

static void print_batch(void *context, uint64_t number, int64_t time_ms, uint32_t entries, size_t bytes)
{
    time_t seconds = (time_t)(time_ms / 1000);
    struct tm parts;
    char text[32];
    (void)context;
    gmtime_r(&seconds, &parts);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    printf("batch %llu\t%s.%03dZ, %s, %s\n", (unsigned long long)number, text, (int)(time_ms % 1000),
           counted(entries, "entry").text, counted(bytes, "byte").text);
}

static void print_change(void *context, const char *verb, enum stored_kind kind, struct slice meaning,
                         struct slice value)
{
    struct buf *line = context;
    line->len = 0;
    buf_printf(line, "  %s %.*s", verb, SLICE_ARG(meaning));
    print_line(line, kind, value);
}

static int show(const struct arguments *arguments)
{
    int status;
    unsigned long long from = 0;
    char error[600];
    if (!argument_number(arguments, "from", 1, UINT64_MAX, &from)) return EXIT_USAGE;
    if (from && !argument_given(arguments, "log"))
        return complain_of_usage(arguments, "--from names a batch of the log: it goes with --log");
    struct store *store = open_folder(arguments, "show", &status);
    if (!store) return status;
    struct buf line = {0};
    struct engine_log_visitor log = {print_batch, print_change, &line};
    status = EXIT_FINE;
    if (!argument_given(arguments, "log")) {
        if (!engine_show(store, print_entry, &line))
            status = complain("the store cannot be read: %s", store->error);
    } else if (!engine_show_log(store, from, &log, error, sizeof error)) {
        status = complain("%s", error);
    }
    buf_free(&line);
    store_close(store);
    return status;
}

/* ---- the rows ---- */

static const struct flag flags[] = {{"data", "DIR", "the data folder"}};
static const struct flag show_flags[] = {
    {"data", "DIR", "the data folder"},
    {"log", NULL, "print the commit log instead: each batch with its number and time, and what it changed"},
    {"from", "NUMBER", "with --log: begin with this batch"},
};

const struct command command_check = {
    .name = "check",
    .summary = "verify a data folder: items, keys, indexes, streams, sizes and counts",
    .usage = "--data DIR",
    .about = "Reads a whole data folder and verifies it: every definition and item decodes, every item "
             "stands under its\n"
             "own key, indexes and streams agree with the items, stored sizes are right, and the items add "
             "up to the\n"
             "stored counts. Changes nothing. The server must not be running on the folder.\n"
             "\n"
             "Prints a line for each fault, then a summary. Exit status: 0 sound, 1 faults or unreadable.",
    .flags = flags,
    .flag_count = 1,
    .has_environment = true,
    .run = check};

const struct command command_show = {
    .name = "show",
    .summary = "print what a data folder holds, entry by entry",
    .usage = "--data DIR [--log [--from NUMBER]]",
    .about =
        "Prints every entry of a data folder on a line: what its key means, a tab, and its value (items in\n"
        "DynamoDB JSON). Changes nothing. The server must not be running on the folder.\n"
        "\n"
        "The log has what was written last; older batches go when the tables' files have them.",
    FLAGS(show_flags),
    .has_environment = true,
    .run = show};
