/* quipu check and quipu show: a data folder looked at from outside. */
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "main/main.h"
#include "store/store.h"

static const char check_help[] =
    "Usage: quipu check --data DIR\n"
    "\n"
    "Reads a whole data folder and verifies it: every definition and item decodes, every item stands under its own\n"
    "key, stored sizes are right, and the items add up to the stored counts. Changes nothing. The server must not be\n"
    "running on the folder.\n"
    "\n"
    "Prints a line for each fault, then a summary. Exit status: 0 sound, 1 faults or unreadable.\n";

static const char show_help[] =
    "Usage: quipu show --data DIR\n"
    "\n"
    "Prints every entry of a data folder on a line: what its key means, a tab, and its value (items in DynamoDB\n"
    "JSON). Changes nothing. The server must not be running on the folder.\n";

/* Opens the folder for reading; NULL after complaining, with *status what to exit with. */
static struct store *open_folder(const char *command, const char *help_text, int argc, char **argv, int *status)
{
    const char *data = NULL;
    const struct flag flags[] = {{"data", &data, false}};
    char error[600];
    bool help;
    *status = EXIT_USAGE;
    if (!flags_read(flags, 1, command, argc, argv, &help)) return NULL;
    if (help) {
        fputs(help_text, stdout);
        *status = EXIT_FINE;
        return NULL;
    }
    if (!data) {
        complain("say which folder: quipu %s --data DIR", command);
        return NULL;
    }
    struct store_options options = {.folder = data, .read_only = true, .cache_bytes = 8 << 20};
    struct store *store = store_open_disk(&options, error, sizeof error);
    if (!store) *status = complain("%s", error);
    return store;
}

int command_check(int argc, char **argv)
{
    int status;
    struct store *store = open_folder("check", check_help, argc, argv, &status);
    if (!store) return status;
    struct check_report report;
    struct buf out = {0};
    bool read = engine_check(store, &report, &out);
    fwrite(out.data, 1, out.len, stdout);
    if (!read) {
        complain("the store cannot be read: %s", store->error);
        status = EXIT_FAULT;
    } else {
        printf("%llu tables, %llu items, %llu stream records, %llu faults\n", (unsigned long long)report.tables,
               (unsigned long long)report.items, (unsigned long long)report.records,
               (unsigned long long)report.faults);
        status = report.faults ? EXIT_FAULT : EXIT_FINE;
    }
    buf_free(&out);
    store_close(store);
    return status;
}

static bool print_entry(void *context, enum stored_kind kind, struct slice meaning, struct slice value)
{
    struct buf *line = context;
    line->len = 0;
    buf_slice(line, meaning);
    buf_byte(line, '\t');
    if (kind == STORED_ITEM) {
        if (!api_put_encoded_item_json(line, value)) buf_text(line, "(damaged)");
    } else if (kind == STORED_UNKNOWN) {
        buf_printf(line, "(%zu bytes)", value.len);
    } else {
        buf_slice(line, value);
    }
    buf_byte(line, '\n');
    return fwrite(line->data, 1, line->len, stdout) == line->len;
}

int command_show(int argc, char **argv)
{
    int status;
    struct store *store = open_folder("show", show_help, argc, argv, &status);
    if (!store) return status;
    struct buf line = {0};
    status = EXIT_FINE;
    if (!engine_show(store, print_entry, &line)) status = complain("the store cannot be read: %s", store->error);
    buf_free(&line);
    store_close(store);
    return status;
}
