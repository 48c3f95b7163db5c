/* What the api asks for backups (api.h, api_backups): copies of the database, and how long its log is kept. */
#include "backup/backup.h"
#include "base/log.h"
#include "transfer/jobs.h"

static struct table *take_copy(void *self, struct slice id, struct slice name, char *error, size_t error_len)
{
    struct transfer *transfer = self;
    struct backup_past past;
    struct table *table = NULL;
    if (!backup_copy_take(transfer->backup, id, error, error_len)) return NULL;
    if (backup_past_copy(transfer->backup, id, &past, error, error_len)) {
        table = engine_past_table(past.store, name);
        error[0] = '\0';
        backup_past_close(&past);
    }
    if (!table) backup_copy_drop(transfer->backup, id);
    return table;
}

static void drop_copy(void *self, struct slice id)
{
    backup_copy_drop(((struct transfer *)self)->backup, id);
}

static bool has_copy(void *self, struct slice id)
{
    return backup_copy_exists(((struct transfer *)self)->backup, id);
}

/* A restore of a moment may not have opened it yet. */
static bool a_moment_is_restored(struct transfer *transfer)
{
    struct arena arena = {0};
    struct api_job *jobs;
    uint32_t count;
    bool is_one = false;
    if (api_jobs_running(transfer->engine, &arena, &jobs, &count))
        for (uint32_t i = 0; i < count; i++)
            is_one = is_one || (jobs[i].kind == API_RESTORE && !jobs[i].backup.len);
    arena_free(&arena);
    return is_one;
}

static bool keep_log(void *self, int64_t days, char *error, size_t error_len)
{
    struct transfer *transfer = self;
    pthread_mutex_lock(&transfer->keeping); /* of two that change it at a time the later one sees what the first did */
    int64_t asked = api_recovery_days(transfer->engine);
    if (asked > days) days = asked;
    if (!days && a_moment_is_restored(transfer)) days = 1;
    bool fine = backup_keep(transfer->backup, days * 24 * 3600 * 1000, error, error_len);
    pthread_mutex_unlock(&transfer->keeping);
    return fine;
}

static int64_t kept_from(void *self)
{
    return backup_kept_from(((struct transfer *)self)->backup);
}

struct sweep {
    struct transfer *transfer;
    struct arena arena;
};

static bool is_known(void *context, struct slice name)
{
    struct sweep *sweep = context;
    bool is = api_backup_exists(sweep->transfer->engine, &sweep->arena, name);
    arena_reset(&sweep->arena);
    return is;
}

void transfer_backups_open(struct transfer *transfer)
{
    struct sweep sweep = {.transfer = transfer};
    char error[600];
    transfer->backups = (struct api_backups){.self = transfer,
                                             .take = take_copy,
                                             .drop = drop_copy,
                                             .has = has_copy,
                                             .keep = keep_log,
                                             .kept_from = kept_from};
    pthread_mutex_init(&transfer->keeping, NULL);
    if (!transfer->backup) return;
    backup_copies_sweep(transfer->backup, is_known, &sweep);
    arena_free(&sweep.arena);
    if (!keep_log(transfer, 0, error, sizeof error)) log_line("the log cannot be kept: %s", error);
    api_set_backups(transfer->api, &transfer->backups);
    api_deletions_finish(transfer->api);
    api_backups_expire(transfer->api);
}
