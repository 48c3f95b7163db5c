/* quipu salvage: what can be read of a damaged data folder, in a new one. */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backup/backup.h"
#include "base/print.h"
#include "engine/engine.h"
#include "main/main.h"
#include "store/store.h"

#define FOLDER_DEPTH 8 /* folders held open while one is removed */

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)kind, (void)place;
    remove(path);
    return 0;
}

/* Missing or empty: what is there must not be mixed with anything. */
static bool is_free(const char *folder)
{
    DIR *directory = opendir(folder);
    if (!directory) return errno == ENOENT;
    unsigned entries = 0;
    while (readdir(directory)) entries++;
    closedir(directory);
    return entries == 2; /* itself and its parent */
}

static void print(const struct buf *lines)
{
    if (lines->len) fwrite(lines->data, 1, lines->len, stdout);
}

static int bring(struct store *from, struct store_salvage *found, const char *to_folder)
{
    char error[600];
    struct store_options options = {.folder = to_folder, .create = true, .cache_bytes = 8 << 20};
    struct store *to = store_open_disk(&options, error, sizeof error);
    if (!to && is_free(to_folder)) return complain("%s", error);
    if (!to) return complain("%s; what is in %s is incomplete: remove it", error, to_folder);
    struct salvage_report report;
    struct buf out = {0};
    bool written = engine_salvage(from, found, to, &report, &out);
    print(&found->sentences);
    print(&out);
    bool is_whole = !found->sentences.len && !out.len;
    if (written)
        printf("%s, %s and %s are in %s; %s\n", counted(report.tables, "table").text,
               counted(report.items, "item").text, counted(report.records, "stream record").text, to_folder,
               is_whole ? "nothing is damaged" : "what is damaged is told above");
    else
        complain("%s; what is in %s is incomplete: remove it", *to->error ? to->error : to->refusal,
                 to_folder);
    buf_free(&out);
    store_close(to);
    return written && is_whole ? EXIT_FINE : EXIT_FAULT;
}

static int salvage(const struct arguments *arguments)
{
    const char *data = argument_text(arguments, "data"), *to = argument_text(arguments, "to");
    char error[600];
    struct store_salvage found;
    struct buf work = {0};
    if (!data || !to)
        return complain_of_usage(arguments,
                                 "say which folder, and where to: quipu salvage --data DIR --to DIR");
    if (!backup_lies_apart(to, error, sizeof error)) return complain("%s", error);
    if (!is_free(to)) return complain("%s is there already and not empty; it is left as it is", to);
    buf_printf(&work, "%s.salvage", to);
    buf_byte(&work, '\0');
    int status = EXIT_FAULT;
    if (mkdir(work.data, 0700) != 0) {
        complain("the folder %s, for links to the files, cannot be made: %s", work.data, strerror(errno));
    } else {
        struct store *from = store_open_salvage(data, work.data, &found, error, sizeof error);
        if (from) {
            status = bring(from, &found, to);
            store_close(from);
        } else {
            print(&found.sentences);
            complain("%s", error);
        }
        store_salvage_free(&found);
        nftw(work.data, remove_entry, FOLDER_DEPTH, FTW_DEPTH | FTW_PHYS);
    }
    buf_free(&work);
    return status;
}

static const struct flag flags[] = {
    {"data", "DIR", "the damaged data folder"},
    {"to", "DIR", "a new folder, on the same file system if there is little room"}};

const struct command command_salvage = {
    .name = "salvage",
    .summary = "bring what can be read of a damaged data folder into a new one",
    .usage = "--data DIR --to DIR",
    .about =
        "Reads a data folder that 'quipu check' finds damaged or that cannot be opened, and makes a new one of all\n"
        "that can be read: tables, items, and the log behind them. The damaged folder is not changed. Indexes,\n"
        "counts and sizes are made anew, so the new folder is sound, whatever is missing.\n"
        "\n"
        "Prints a line for each thing that is damaged and each table that is touched, then a summary. A block of\n"
        "a file that cannot be read costs the items in it. A whole file that cannot be used costs all of its\n"
        "items; some of them may then be as they were before. Where the log is damaged, everything up to there\n"
        "is brought out. Exit status: 0 nothing is damaged, 1 something is, or nothing could be done.",
    .flags = flags,
    .flag_count = 2,
    .has_environment = true,
    .run = salvage};
