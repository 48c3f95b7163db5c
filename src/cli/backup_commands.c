/* quipu backup and quipu restore: a database's copies in a folder, and back. The work is done in src/backup; here are
 * the words, the progress, and the way to a server. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backup/backup.h"
#include "base/limits.h"
#include "base/print.h"
#include "calendar/calendar.h"
#include "cli/interrupt.h"
#include "cli/layout.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/service.h"

#define FOLLOW_WAIT_MS 2000     /* for a batch: how soon Ctrl-C is noticed */
#define PAUSE_MOST_US  10000000 /* between two attempts to reach a server that is gone */
#define PAUSE_FIRST_US 250000

/* ---- where from ---- */

struct backup_job {
    struct service service;
    bool has_service;
    struct backup_source *source;
    struct backup_target *target;
    struct progress progress;
    const char *target_path;
    int64_t keep_ms; /* 0: everything stays */
    bool is_fast, mends;
    bool is_refused; /* the target is another database's */
    uint64_t lost;   /* the server has not got the log from this batch on: a new base follows; 0: it has */
    int64_t lost_ms; /* of the last moment that is known before */
};

static bool ask_server(void *context, struct backup_ask *ask)
{
    struct service *service = context;
    struct arena arena = {0};
    struct request request = {.name = "quipu",
                              .method = ask->method,
                              .path = ask->path,
                              .query = ask->query,
                              .total_ms = ask->total_ms};
    struct response response;
    struct slice failure;
    bool answered = service_try(service, &arena, &request, &response, &failure);
    if (answered) {
        ask->status = response.status;
        buf_slice(ask->reply, response.body);
    } else {
        snprintf(ask->failure, sizeof ask->failure, "nobody answers on %s: %.*s", service->where,
                 SLICE_ARG(failure));
    }
    arena_free(&arena);
    return answered;
}

/* "host-srv-backups": what a server calls the follower in its metrics. */
static void follower_name(char name[LIMIT_BACKUP_FOLLOWER_BYTES + 1], const char *target)
{
    char host[256] = "", full[PATH_MAX];
    gethostname(host, sizeof host - 1);
    snprintf(name, LIMIT_BACKUP_FOLLOWER_BYTES + 1, "%.40s%.70s", host,
             realpath(target, full) ? full : target);
    for (char *at = name; *at; at++) {
        bool is_letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                         (*at >= '0' && *at <= '9');
        if (!is_letter && *at != '.' && *at != '_') *at = '-';
    }
}

static bool open_source(struct backup_job *job, const struct arguments *arguments, bool follows)
{
    const char *on = argument_text(arguments, "on");
    char error[600], name[LIMIT_BACKUP_FOLLOWER_BYTES + 1];
    if (on && !strstr(on, "://")) {
        if (follows) return complain("only a running server can be followed: --on should be its URL"), false;
        job->source = backup_source_folder(on, error, sizeof error);
        if (!job->source) complain("%s", error);
        if (!job->source && strstr(error, "in use"))
            complain("if a server runs there, give its URL: --on URL");
        return job->source != NULL;
    }
    if (!service_open(&job->service, arguments)) return false;
    job->has_service = true;
    follower_name(name, job->target_path);
    job->source = backup_source_server(ask_server, &job->service, name, follows);
    return true;
}

static void job_close(struct backup_job *job)
{
    if (job->source) backup_source_close(job->source);
    if (job->target) backup_target_close(job->target);
    if (job->has_service) service_close(&job->service);
}

/* ---- a base ---- */

static void tell(void *context, const struct backup_progress *done)
{
    struct backup_job *job = context;
    job->progress.total = done->bytes_all;
    progress_show(&job->progress, done->bytes_done);
}

static bool goes_on(void *context)
{
    (void)context;
    return !is_interrupted();
}

static void say_base(const struct backup_position *position, const struct backup_progress *done)
{
    struct arena arena = {0};
    struct buf line = {0};
    if (errors_are_terminal()) fputs("\r\033[K", stderr);
    buf_printf(&line, "Copied %llu of %s (", (unsigned long long)done->files_copied,
               counted(done->files_all, "file").text);
    put_bytes(&line, done->bytes_copied);
    buf_printf(&line, "): everything up to batch %llu, of %.*s.", (unsigned long long)position->base_number,
               SLICE_ARG(moment_text(&arena, position->base_ms)));
    fprintf(stderr, "%.*s\n", (int)line.len, line.data);
    buf_free(&line);
    arena_free(&arena);
}

static bool take_base(struct backup_job *job, struct backup_position *position, char *error, size_t error_len)
{
    struct backup_progress progress = {
        .is_fast = job->is_fast, .mends = job->mends, .tell = tell, .goes_on = goes_on, .context = job};
    progress_begin(&job->progress, job->target_path, 0);
    job->progress.thing = "byte";
    bool taken = backup_take_base(job->target, job->source, &progress, position, error, error_len);
    job->is_refused = progress.is_refused;
    if (!taken) return false;
    say_base(position, &progress);
    return true;
}

/* What is older than --keep says goes. */
static bool forget(struct backup_job *job, const struct backup_position *position, char *error,
                   size_t error_len)
{
    return !job->keep_ms || backup_forget(job->target, position->until_ms - job->keep_ms, error, error_len);
}

/* The base, and the log behind it; of a server's not more than was written meanwhile, as writers may be quicker than we
 * are. */
static int copy_once(struct backup_job *job)
{
    struct backup_position position = {0};
    struct arena arena = {0};
    char error[600];
    if (!take_base(job, &position, error, sizeof error)) return complain("%s", error);
    uint64_t first = position.next, before;
    enum backup_log result;
    do {
        before = position.next;
        result = backup_ship(job->target, job->source, &position, 0, error, sizeof error);
    } while (result == BACKUP_LOG_BLOCK && position.next > before &&
             (!job->has_service || position.next - first < LIMIT_BACKUP_BEHIND) && !is_interrupted());
    job->source->end(job->source->self);
    if (result == BACKUP_LOG_GONE) { /* it was held for as long as there was room: the base is whole without it */
        fprintf(stderr, "The log behind that did not wait so long: no later moment can be restored.\n");
        arena_free(&arena);
        return forget(job, &position, error, sizeof error) ? EXIT_FINE : complain("%s", error);
    }
    if (result != BACKUP_LOG_BLOCK || !backup_close_piece(job->target, error, sizeof error))
        return complain("the backup is good as it is told above, but without the log behind it: %s", error);
    fprintf(stderr, "With %s of the log behind it: everything up to %.*s can be restored.\n",
            counted(position.next - first, "batch").text, SLICE_ARG(moment_text(&arena, position.until_ms)));
    arena_free(&arena);
    return forget(job, &position, error, sizeof error) ? EXIT_FINE : complain("%s", error);
}

/* ---- following ---- */

static void pause_us(int64_t *pause)
{
    for (int64_t waited = 0; waited < *pause && !is_interrupted(); waited += 100000) usleep(100000);
    *pause = *pause * 2 < PAUSE_MOST_US ? *pause * 2 : PAUSE_MOST_US;
}

static void say_lost(struct backup_job *job, const struct backup_position *position)
{
    struct arena arena = {0};
    fprintf(
        stderr,
        "The server had not got the log behind batch %llu any more, so a new base was made: moments between "
        "%.*s and %.*s are not known.\n",
        (unsigned long long)(job->lost - 1), SLICE_ARG(moment_text(&arena, job->lost_ms)),
        SLICE_ARG(moment_text(&arena, position->base_ms)));
    job->lost = 0;
    arena_free(&arena);
}

/* One step: a base where one is needed, else a block of the log. */
static enum backup_log follow_step(struct backup_job *job, struct backup_position *position, char *error,
                                   size_t error_len)
{
    if (backup_wants_base(position)) {
        if (!take_base(job, position, error, error_len))
            return job->is_refused ? BACKUP_LOG_FAILED : BACKUP_LOG_AWAY;
        if (job->lost) say_lost(job, position);
        fprintf(stderr, "Following from batch %llu on; Ctrl-C ends it.\n",
                (unsigned long long)position->next);
        return forget(job, position, error, error_len) ? BACKUP_LOG_BLOCK : BACKUP_LOG_FAILED;
    }
    enum backup_log result = backup_ship(job->target, job->source, position, FOLLOW_WAIT_MS, error,
                                         error_len);
    job->source->end(job->source->self); /* from here on the log is held for the follower */
    if (result != BACKUP_LOG_GONE) return result;
    job->lost = position->next;
    job->lost_ms = position->until_ms;
    position->source = 0;
    return BACKUP_LOG_BLOCK;
}

/* A server that is away is waited for, unless it never answered. */
static int follow(struct backup_job *job)
{
    struct backup_position position;
    char error[600];
    int64_t pause = PAUSE_FIRST_US;
    bool is_away = false;
    if (!backup_target_position(job->target, &position, error, sizeof error)) return complain("%s", error);
    bool is_new = !position.source;
    if (!is_new)
        fprintf(stderr, "Following from batch %llu on; Ctrl-C ends it.\n", (unsigned long long)position.next);
    while (!is_interrupted()) {
        enum backup_log result = follow_step(job, &position, error, sizeof error);
        if (is_interrupted()) break;
        if (result == BACKUP_LOG_FAILED || (is_new && result == BACKUP_LOG_AWAY))
            return complain("%s", error);
        is_new = false;
        if (result == BACKUP_LOG_AWAY) {
            if (!is_away) fprintf(stderr, "%s; trying again.\n", error);
            pause_us(&pause);
        } else {
            if (is_away) fprintf(stderr, "The server is back.\n");
            pause = PAUSE_FIRST_US;
        }
        is_away = result == BACKUP_LOG_AWAY;
    }
    if (!backup_close_piece(job->target, error, sizeof error)) return complain("%s", error);
    fprintf(stderr, "Stopped behind batch %llu.\n",
            (unsigned long long)(position.next ? position.next - 1 : 0));
    return EXIT_FINE;
}

/* ---- verifying ---- */

static const char verify_advice[] =
    "Damaged files are copied anew by 'quipu backup --mend', as far as the database still has them. What is damaged\n"
    "in the log costs the moments from there to the next backup; a further backup does not need it.\n";

static int verify(const char *target)
{
    struct backup_report report;
    struct buf faults = {0}, line = {0};
    struct arena arena = {0};
    char error[600];
    if (!backup_verify(target, &report, &faults, error, sizeof error)) return complain("%s", error);
    if (faults.len) fwrite(faults.data, 1, faults.len, stdout);
    buf_printf(&line, "%s, %s (", counted(report.bases, "base").text, counted(report.files, "file").text);
    put_bytes(&line, report.file_bytes);
    buf_printf(&line, "), %s in %s of the log, %s\n", counted(report.batches, "batch").text,
               counted(report.pieces, "piece").text, counted(report.faults, "fault").text);
    fwrite(line.data, 1, line.len, stdout);
    if (report.bases)
        printf("from %.*s to %.*s", SLICE_ARG(moment_text(&arena, report.from_ms)),
               SLICE_ARG(moment_text(&arena, report.until_ms)));
    if (report.gaps)
        printf(", but for %s between backups, of which nothing is known", counted(report.gaps, "gap").text);
    if (report.bases) putchar('\n');
    if (report.faults) fputs(verify_advice, stderr);
    buf_free(&faults);
    buf_free(&line);
    arena_free(&arena);
    return report.faults ? EXIT_FAULT : EXIT_FINE;
}

static int backup(const struct arguments *arguments)
{
    struct backup_job job = {.target_path = argument_word(arguments, 0),
                             .is_fast = argument_given(arguments, "fast"),
                             .mends = argument_given(arguments, "mend")};
    char error[600];
    bool follows = argument_given(arguments, "follow");
    if (argument_given(arguments, "verify")) {
        if (follows || job.is_fast || job.mends || argument_typed(arguments, "on") ||
            argument_text(arguments, "keep"))
            return complain_of_usage(arguments,
                                     "--verify only reads the backups: no other flag makes sense beside it");
        return verify(job.target_path);
    }
    const char *keep = argument_text(arguments, "keep");
    if (keep && (!duration_parse(slice_of(keep), LIMIT_BACKUP_KEPT_MS, &job.keep_ms) || job.keep_ms <= 0))
        return complain_of_usage(arguments, "--keep must be a duration such as 12h or 35d, not '%s'", keep);
    if (!backup_lies_apart(job.target_path, error, sizeof error)) return complain("%s", error);
    interrupts_catch();
    if (!open_source(&job, arguments, follows)) {
        job_close(&job);
        return EXIT_FAULT;
    }
    job.target = backup_target_open(job.target_path, error, sizeof error);
    int status = !job.target ? complain("%s", error) : follows ? follow(&job) : copy_once(&job);
    job_close(&job);
    return status;
}

/* ---- restoring ---- */

static int restore(const struct arguments *arguments)
{
    struct backup_restored restored;
    struct arena arena = {0};
    char error[600];
    int64_t at_ms;
    if (!argument_moment(arguments, "at", BACKUP_LATEST, &at_ms)) return EXIT_USAGE;
    const char *folder = argument_word(arguments, 1);
    if (!backup_lies_apart(folder, error, sizeof error)) return complain("%s", error);
    if (!backup_restore(argument_word(arguments, 0), folder, at_ms, &restored, error, sizeof error))
        return complain("%s", error);
    printf("Restored %s to %s: everything up to batch %llu, of %.*s\n",
           counted(restored.tables, "table").text, folder, (unsigned long long)restored.number,
           SLICE_ARG(moment_text(&arena, restored.time_ms)));
    arena_free(&arena);
    return EXIT_FINE;
}

/* ---- the rows ---- */

static const struct flag backup_flags[] = {
    {"fast", NULL, "copy without rests; by default a copy makes way for those who write meanwhile"},
    {"follow", NULL, "go on: ship what is written as it is written, until Ctrl-C"},
    {"keep", "TIME", "remove what only moments longer ago than this need: 35d, 12h (default: keep all)"},
    {"mend", NULL, "read what TARGET has already, too, and copy damaged files anew"},
    {"verify", NULL, "read all backups in TARGET and compare them with their checksums"},
};

const struct command command_backup = {
    .name = "backup",
    .summary = "copy a whole database to a folder while it is written; ship its log",
    .usage = "TARGET [--follow] [--keep TIME] [--mend] [--fast] [--on URL|FOLDER]\n"
             "       quipu backup TARGET --verify",
    .about =
        "Makes a consistent copy of a running server's database (--on URL), or of a data folder that no\n"
        "server has open (--on FOLDER), which is only read, in the folder TARGET. Writers go on meanwhile,\n"
        "and the copy makes way for them. TARGET belongs to one database and may hold many backups of it: a\n"
        "further one copies only files that are new. What is copied is checked against checksums; --verify\n"
        "reads all that is there again. An interrupted backup leaves the older ones as they are, and the\n"
        "next one goes on from it. 'quipu restore' brings them back.\n"
        "\n"
        "With --follow, what is written is shipped to TARGET less than a second later, across restarts of the\n"
        "server, and every moment since then can be restored. Functions' code is in the database and goes\n"
        "with it; their logs do not. doc/backups.md tells more.",
    .flags = backup_flags,
    .flag_count = sizeof backup_flags / sizeof *backup_flags,
    .examples = "  quipu backup /mnt/backups\n"
                "  quipu backup --on ./quipu-data /mnt/backups\n"
                "  quipu backup --follow --on http://db.example.com:8000 /mnt/backups\n"
                "  quipu backup --verify /mnt/backups",
    .works_on_data = true,
    .works_on_server = true,
    .words_min = 1,
    .words_max = 1,
    .run = backup};

static const struct flag restore_flags[] = {
    {"at", "TIME",
     "as it was at this moment: 2026-11-15T03:42:06Z, or seconds since 1970\n(default: the newest that is known)"},
};

const struct command command_restore = {
    .name = "restore",
    .summary = "make a data folder of a backup, as it was at any moment that the backup knows",
    .usage = "TARGET FOLDER [--at TIME]",
    .about =
        "Makes a data folder of what 'quipu backup' has copied to TARGET, or of what 'quipu serve --keep-log'\n"
        "keeps in DATA/kept. FOLDER must be missing or empty, and is a data folder only when everything is\n"
        "in it. Start a server on it with 'quipu serve --data FOLDER'.",
    .flags = restore_flags,
    .flag_count = sizeof restore_flags / sizeof *restore_flags,
    .examples = "  quipu restore /mnt/backups ./restored\n"
                "  quipu restore /mnt/backups ./restored --at 2026-11-15T03:42:06Z\n"
                "  quipu restore ./quipu-data/kept ./restored --at 1794713326",
    .words_min = 2,
    .words_max = 2,
    .run = restore};
