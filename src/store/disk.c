/* The store on disk: our own folder rules (folder.c), a commit log (journal.h), and RocksDB behind it (rocks.h).
 *
 * A batch is appended to the journal, with a sync when it is to be durable, and then handed to RocksDB, which keeps it
 * in memory, lets readers see it (S2), and brings it to its own files some time later. The hand-over may end after
 * disk_write has answered; readers wait for it (disk_filler.h). Without a sync the journal has reached the operating
 * system, so the end of this process loses nothing. Each batch takes its number into RocksDB. So at the next start
 * RocksDB tells up to which number its files go, and the journal hands it the rest.
 *
 * A failed write or sync, or a failure that RocksDB met in the background, ends all writing (S3). A disk without room
 * does not: the journal's segments are written before they are used, so that what cannot be kept is refused before
 * anything has changed; and RocksDB's files are tried again by RocksDB, while the journal has all that is missing.
 *
 * Called by any thread to read and by the writer's alone to write, stats excepted. */
#include "store/disk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/random.h"
#include "store/disk_filler.h"
#include "store/disk_keeper.h"
#include "store/failure.h"
#include "store/folder.h"
#include "store/journal.h"
#include "store/manifest.h"
#include "store/overlay.h"
#include "store/rocks.h"
#include "store/salvage.h"

#define FLUSH_AT_CLOSE_BYTES                                                                                 \
    (4 * 1024 * 1024) /* less is read from the journal at the next start, in milliseconds */

struct disk {
    struct store store; /* first: a store is cast back to its disk */
    struct folder folder;
    const struct clock *clock;
    struct store *content;   /* RocksDB; when it is only read, with the journal's batches in memory over it */
    struct journal *journal; /* NULL: nothing was ever written, or it is only read */
    struct disk_keeper keeper;
    struct disk_filler filler;
    struct failure failure;
    bool read_only, is_open;
    bool log_is_short; /* than the tables, and nothing was written to it since */
    char *view;        /* for a reader: where the tables are read, their list of files being torn; else NULL */
};

static const struct store_methods disk_methods;

static struct disk *disk_of(struct store *store)
{
    ensure(store->methods == &disk_methods);
    return (struct disk *)store;
}

/* ---- reading ---- */

static enum store_result read_ended(struct disk *disk, struct store *read, enum store_result result)
{
    if (result == STORE_FAILED) result = failure_of_read(&disk->failure, &disk->store, read->error);
    disk_filler_read_end(&disk->filler, read);
    return result;
}

static enum store_result never_filled(struct disk *disk)
{
    return failure_of_read(&disk->failure, &disk->store, disk->content->refusal);
}

static enum store_result disk_get(struct store *store, struct slice key, struct buf *value)
{
    struct disk *disk = disk_of(store);
    struct store *read = disk_filler_read_begin(&disk->filler);
    return read ? read_ended(disk, read, store_get(read, key, value)) : never_filled(disk);
}

static enum store_result disk_scan(struct store *store, struct slice from, struct slice to, bool backwards,
                                   store_visitor visitor, void *context)
{
    struct disk *disk = disk_of(store);
    struct store *read = disk_filler_read_begin(&disk->filler);
    if (!read) return never_filled(disk);
    return read_ended(disk, read, store_scan(read, from, to, backwards, visitor, context));
}

/* ---- writing ---- */

static enum store_result write_failed(struct disk *disk, const char *sentence)
{
    return failure_of_write(&disk->failure, &disk->store, sentence);
}

static enum store_result no_room(struct disk *disk, const char *sentence)
{
    snprintf(disk->store.refusal, sizeof disk->store.refusal, "%s", sentence);
    return STORE_FULL;
}

static enum store_result journal_failed(struct disk *disk, enum journal_result result)
{
    char sentence[sizeof disk->store.error];
    bool full = result == JOURNAL_FULL;
    snprintf(sentence, sizeof sentence, "the data folder %s %s: %s", disk->folder.path,
             full ? "has no room" : "cannot be written", journal_error(disk->journal));
    if (!full) return write_failed(disk, sentence);
    disk_keeper_is_full(&disk->keeper);
    return no_room(disk, sentence);
}

/* Hands a batch that is in the journal to RocksDB, behind all that came before it: at the next start a batch stands for
 * all of its predecessors, too. */
static enum rocks_result fill(struct disk *disk, const struct store_batch *batch, bool durable)
{
    struct rocks_mark mark = {journal_id(disk->journal), journal_last(disk->journal)};
    if (!disk_filler_wait(&disk->filler)) return ROCKS_FAILED;
    if (disk_filler_add(&disk->filler, batch, mark)) return ROCKS_OK;
    bool is_for_thread = durable && disk_filler_is_for(&disk->filler, batch);
    enum rocks_result result = is_for_thread ? ROCKS_NO_ROOM : rocks_write(disk->content, batch, mark);
    if (result != ROCKS_NO_ROOM) return result;
    disk_filler_begin(&disk->filler, batch, mark); /* it has time to wait for room, too */
    return ROCKS_OK;
}

/* Before anything changes. */
static enum rocks_result state_of_rocks(struct disk *disk, char *sentence, size_t sentence_len)
{
    if (disk_filler_waits_for_room(&disk->filler, sentence, sentence_len)) return ROCKS_NO_ROOM;
    if (rocks_is_well(disk->content)) return ROCKS_OK;
    enum rocks_result state = disk_filler_wait(&disk->filler) ? ROCKS_OK : ROCKS_FAILED;
    if (disk_filler_waits_for_room(&disk->filler, sentence, sentence_len)) return ROCKS_NO_ROOM;
    if (state == ROCKS_OK) state = rocks_state(disk->content);
    snprintf(sentence, sentence_len, "%s", disk->content->refusal);
    return state;
}

/* Gives the space of large ranges back. Their deletions must be on disk before any file is dropped. */
static enum store_result reclaim(struct disk *disk)
{
    if (disk_filler_is_filling(&disk->filler) || !rocks_has_cleared(disk->content)) return STORE_OK;
    enum journal_result synced = journal_sync(disk->journal);
    if (synced != JOURNAL_OK) return journal_failed(disk, synced);
    rocks_reclaim(disk->content);
    return STORE_OK;
}

/* Before the first batch of the journal, and before the first one without a sync, the folder must know of it: else a
 * journal that is lost could be taken for one that never was, or one that is shorter for a damaged one. */
static enum store_result note_log(struct disk *disk, const struct store_batch *batch, bool durable)
{
    struct folder_log log = disk->folder.log;
    char sentence[sizeof disk->store.error];
    if (log.id && (durable || log.is_unsynced)) return STORE_OK;
    enum journal_result begun = journal_begin(disk->journal, batch->entries.len);
    if (begun != JOURNAL_OK) return journal_failed(disk, begun);
    log.id = journal_id(disk->journal);
    log.is_unsynced |= !durable;
    if (folder_note_log(&disk->folder, log)) return STORE_OK;
    int failure = errno;
    snprintf(sentence, sizeof sentence, "the data folder %s cannot be written: %s", disk->folder.path,
             strerror(failure));
    return failure == ENOSPC || failure == EDQUOT ? no_room(disk, sentence) : write_failed(disk, sentence);
}

static enum store_result disk_write(struct store *store, const struct store_batch *batch, bool durable)
{
    struct disk *disk = disk_of(store);
    ensure(!disk->read_only);
    if (disk->failure.writes_refused) return STORE_FAILED;
    if (disk_keeper_waits_for_room(&disk->keeper)) return STORE_FULL;
    char sentence[sizeof disk->content->refusal];
    enum rocks_result state = state_of_rocks(disk, sentence, sizeof sentence);
    if (state == ROCKS_NO_ROOM) return no_room(disk, sentence);
    if (state == ROCKS_FAILED) return write_failed(disk, sentence);
    enum store_result noted = note_log(disk, batch, durable);
    if (noted != STORE_OK) return noted;
    enum journal_result appended = journal_append(disk->journal, buf_view(&batch->entries),
                                                  clock_now_ms(disk->clock), durable);
    if (appended != JOURNAL_OK) return journal_failed(disk, appended);
    disk->log_is_short = false;
    if (fill(disk, batch, durable) != ROCKS_OK) return write_failed(disk, disk->content->refusal);
    if (journal_wants_next(disk->journal)) disk_keeper_wake(&disk->keeper);
    return reclaim(disk);
}

static enum store_result disk_sync(struct store *store)
{
    struct disk *disk = disk_of(store);
    if (disk->failure.writes_refused) return STORE_FAILED;
    enum journal_result synced = journal_sync(disk->journal);
    return synced == JOURNAL_OK ? STORE_OK : journal_failed(disk, synced);
}

/* ---- the rest ---- */

struct journal *disk_journal(struct store *store)
{
    return store->methods == &disk_methods ? disk_of(store)->journal : NULL;
}

struct store *disk_rocks(struct store *store)
{
    struct disk *disk = disk_of(store);
    ensure(!disk->read_only);
    disk_filler_wait(&disk->filler);
    return disk->content;
}

static void disk_stats(struct store *store, struct store_stats *stats)
{
    struct disk *disk = disk_of(store);
    store_stats(disk->content, stats);
    stats->disk_bytes = folder_bytes(&disk->folder);
}

/* In order: then all of it is on disk, and the folder says how far it goes. */
static void close_journal(struct disk *disk)
{
    struct folder_log log = disk->folder.log;
    bool goes_on = !disk->failure.writes_refused && !disk->read_only;
    if (goes_on && rocks_unflushed_bytes(disk->content) > FLUSH_AT_CLOSE_BYTES) rocks_flush(disk->content);
    bool is_synced = goes_on && journal_sync(disk->journal) == JOURNAL_OK;
    uint64_t last = journal_last(disk->journal);
    journal_close(disk->journal);
    if (!is_synced || !log.id || disk->log_is_short || (log.last == last && !log.is_unsynced)) return;
    /* If that fails, the folder says what it said before, which is true, too. */
    folder_note_log(&disk->folder, (struct folder_log){log.id, last, false});
}

static void disk_close(struct store *store)
{
    struct disk *disk = disk_of(store);
    disk_filler_stop(&disk->filler);
    disk_keeper_stop(&disk->keeper);
    if (disk->journal && disk->is_open) close_journal(disk);
    if (disk->journal && !disk->is_open) journal_abandon(disk->journal);
    if (disk->content) store_close(disk->content);
    manifest_view_free(disk->view);
    folder_close(&disk->folder);
    failure_free(&disk->failure);
    free(disk);
}

static const struct store_methods disk_methods = {
    disk_get, disk_scan, disk_write, disk_sync, disk_stats, disk_close,
};

/* ---- opening ---- */

struct opening {
    struct disk *disk;
    struct rocks_mark mark; /* up to where RocksDB's files go */
    char *error;
    size_t error_len;
    bool failed;
};

/* What its tables or its marker tell; 0: neither does. */
static uint64_t id_of_journal(const struct opening *opening)
{
    return opening->mark.journal ? opening->mark.journal : opening->disk->folder.log.id;
}

/* Always false. `from` is the first batch that cannot be read, if that is known. */
static bool refuse_damage_from(const struct opening *opening, const char *what, uint64_t from)
{
    const struct folder *folder = &opening->disk->folder;
    uint64_t tables = opening->mark.number, known = folder->log.last;
    struct salvage_log log;
    char lost[160];
    salvage_log_read(folder->journal_path, &log, NULL, NULL);
    if (id_of_journal(opening) && log.id != id_of_journal(opening)) log = (struct salvage_log){0};
    if (log.known > known) known = log.known;
    if (!from) from = salvage_log_fits(&log, tables) ? log.last + 1 : tables + 1;
    if (known < from)
        snprintf(lost, sizeof lost, "what was written from batch %llu on would be lost",
                 (unsigned long long)from);
    else
        snprintf(lost, sizeof lost, "the writes of the batches %llu to %llu, if not more, would be lost",
                 (unsigned long long)from, (unsigned long long)known);
    snprintf(opening->error, opening->error_len,
             "the data folder %s is damaged: %s; its tables have everything up to batch %llu, and %s; `quipu "
             "salvage` brings out what can be read",
             folder->path, what, (unsigned long long)tables, lost);
    return false;
}

static bool refuse_damage(const struct opening *opening, const char *what)
{
    return refuse_damage_from(opening, what, 0);
}

/* Once. Not before damage would have been found in what is on disk: a damaged folder is left as it is. */
static bool settle(struct opening *opening)
{
    const struct disk *disk = opening->disk;
    if (disk->read_only || journal_unsettled(disk->journal) == UINT64_MAX) return true;
    bool is_named = folder_settle(&disk->folder);
    if (is_named && journal_settle(disk->journal)) return true;
    opening->failed = true;
    snprintf(opening->error, opening->error_len, "the data folder %s cannot be written: %s",
             disk->folder.path, is_named ? journal_error(disk->journal) : strerror(errno));
    return false;
}

/* A batch that RocksDB has not got yet. */
static bool replay_one(void *context, const struct journal_batch *found)
{
    struct opening *opening = context;
    struct disk *disk = opening->disk;
    char what[64];
    struct store_batch batch;
    if (!store_batch_from_bytes(found->payload, &batch)) {
        snprintf(what, sizeof what, "the batch %llu cannot be read", (unsigned long long)found->number);
        opening->failed = true;
        return refuse_damage_from(opening, what, found->number);
    }
    if (found->number >= journal_unsettled(disk->journal) && !settle(opening)) return false;
    struct rocks_mark mark = {journal_id(disk->journal), found->number};
    bool fine = disk->read_only ? store_write(disk->content, &batch, false) == STORE_OK
                                : rocks_write(disk->content, &batch, mark) == ROCKS_OK;
    if (fine) return true;
    snprintf(opening->error, opening->error_len, "%s", disk->content->refusal);
    opening->failed = true;
    return false;
}

static bool replay(struct opening *opening)
{
    struct disk *disk = opening->disk;
    uint64_t last = journal_last(disk->journal);
    if (last <= opening->mark.number) {
        disk->log_is_short = last < opening->mark.number;
        if (disk->log_is_short && !disk->read_only) journal_skip_to(disk->journal, opening->mark.number + 1);
        return true;
    }
    if (disk->read_only) disk->content = store_open_overlay(disk->content);
    bool fine = journal_replay(disk->journal, opening->mark.number + 1, replay_one, opening);
    if (!fine) return refuse_damage(opening, journal_error(disk->journal));
    return !opening->failed;
}

static uint64_t new_journal_id(void)
{
    struct random random;
    random_seed_from_system(&random);
    return random_next(&random) | 1;
}

/* Whether the journal goes as far as it must. A batch is on disk in it before RocksDB has it, unless batches were
 * written without a sync; and what was on disk once is there, or in the tables. */
static bool journal_is_long_enough(struct opening *opening)
{
    const struct disk *disk = opening->disk;
    const struct folder_log *log = &disk->folder.log;
    uint64_t last = journal_last(disk->journal), tables = opening->mark.number;
    bool must_have_all = log->id && !log->is_unsynced;
    char what[512];
    if (journal_has_lost_last(disk->journal)) {
        snprintf(what, sizeof what, "%s has lost its last segments: none of those that are there has a batch",
                 disk->folder.journal_path);
        return refuse_damage(opening, what);
    }
    uint64_t least = log->last;
    if (must_have_all && tables > least) least = tables;
    if (!must_have_all && tables >= least) least = 0;
    if (last >= least) return true;
    snprintf(what, sizeof what, "%s ends with batch %llu, and had %llu", disk->folder.journal_path,
             (unsigned long long)last, (unsigned long long)least);
    return refuse_damage(opening, what);
}

/* What is there now is on disk, so it must be there from now on. */
static bool note_what_is_there(struct opening *opening)
{
    struct disk *disk = opening->disk;
    struct folder_log log = {journal_id(disk->journal), journal_last(disk->journal), false},
                      *had = &disk->folder.log;
    if (disk->read_only || disk->log_is_short || journal_is_new(disk->journal)) return true;
    if (log.id == had->id && log.last == had->last && !had->is_unsynced) return true;
    if (folder_note_log(&disk->folder, log)) return true;
    snprintf(opening->error, opening->error_len, "the data folder %s cannot be written: %s",
             disk->folder.path, strerror(errno));
    return false;
}

/* No file of the journal is there: was there ever one? */
static bool journal_may_be_new(const struct opening *opening)
{
    return !opening->mark.number && !opening->disk->folder.log.id;
}

static bool journal_attach(struct opening *opening)
{
    struct disk *disk = opening->disk;
    uint64_t id = id_of_journal(opening), noted = disk->folder.log.id;
    char what[512];
    bool has_journal, may_be_new = journal_may_be_new(opening);
    if (!folder_find_journal(&disk->folder, !disk->read_only && may_be_new, &has_journal, opening->error,
                             opening->error_len))
        return false;
    if (!has_journal && !may_be_new) {
        snprintf(what, sizeof what, "%s is missing", disk->folder.journal_path);
        return refuse_damage(opening, what);
    }
    if (!has_journal) return true;
    struct journal_options options = {
        .folder = disk->folder.journal_path, .read_only = disk->read_only, .id = id ? id : new_journal_id()};
    disk->journal = journal_open(&options, what, sizeof what);
    if (!disk->journal) return refuse_damage(opening, what);
    if (!may_be_new && journal_is_new(disk->journal)) {
        snprintf(what, sizeof what, "%s is empty", disk->folder.journal_path);
        return refuse_damage(opening, what);
    }
    if ((id && journal_id(disk->journal) != id) || (noted && noted != id)) {
        snprintf(what, sizeof what, "%s belongs to another data folder", disk->folder.journal_path);
        return refuse_damage(opening, what);
    }
    return journal_is_long_enough(opening) && replay(opening) && settle(opening) &&
           note_what_is_there(opening);
}

bool disk_begin_log(struct store *rocks, char *error, size_t error_len)
{
    struct rocks_mark mark = {new_journal_id(), 0}, found;
    struct store_batch nothing = {0};
    bool fine = rocks_write(rocks, &nothing, mark) == ROCKS_OK;
    if (fine) rocks_flush(rocks);
    fine = fine && rocks_state(rocks) == ROCKS_OK && rocks_mark_on_disk(rocks, &found);
    if (fine && found.journal == mark.journal) return true;
    snprintf(error, error_len, "%s", fine ? "RocksDB did not bring its log to its files" : rocks->refusal);
    return false;
}

/* Up to format 1 RocksDB had a log of its own, which it has just read. Everything is brought to its files, and from
 * then on the journal is the log. Until the last step the folder is as it was. */
static bool take_over(struct opening *opening)
{
    struct disk *disk = opening->disk;
    int from = disk->folder.format;
    if (!disk_begin_log(disk->content, opening->error, opening->error_len) ||
        !folder_raise_format(&disk->folder, opening->error, opening->error_len))
        return false;
    log_line(
        "the data folder %s has been brought from format %d to %d: its log is in %s now, and older versions of quipu "
        "cannot open it any more",
        disk->folder.path, from, disk->folder.format, disk->folder.journal_path);
    return true;
}

/* The first batch that the journal has. */
static bool find_first_batch(const struct disk *disk, uint64_t *first)
{
    char error[512];
    struct journal_options options = {.folder = disk->folder.journal_path, .read_only = true};
    struct journal *journal = journal_open(&options, error, sizeof error);
    if (!journal) return false;
    *first = journal_first(journal);
    journal_close(journal);
    return true;
}

/* NULL and a sentence, which is about what was there before anything was mended. */
static struct store *open_rocks(struct opening *opening, const struct rocks_options *options)
{
    struct disk *disk = opening->disk;
    uint64_t first;
    struct store *rocks = rocks_open(options, opening->error, opening->error_len);
    if (rocks || disk->folder.format == FOLDER_FORMAT_WITH_LOG || !find_first_batch(disk, &first)) return rocks;
    struct rocks_options mended = *options;
    if (disk->read_only)
        mended.path = disk->view = manifest_view(options->path, first);
    else if (!manifest_mend(disk->folder.path, options->path, first))
        return NULL;
    if (!mended.path) return NULL;
    opening->error[0] = '\0';
    return rocks_open(&mended, opening->error, opening->error_len);
}

static bool open_content(struct opening *opening, const struct store_options *options)
{
    struct disk *disk = opening->disk;
    bool is_old = disk->folder.format == FOLDER_FORMAT_WITH_LOG;
    struct rocks_options rocks = {.folder = disk->folder.path,
                                  .path = disk->folder.store_path,
                                  .read_only = disk->read_only,
                                  .cache_bytes = options->cache_bytes,
                                  .open_files = options->open_files};
    /* Before the first flush there may be no file to read. */
    bool is_new = disk->read_only && !folder_is_store(disk->folder.store_path);
    if (!disk->read_only) folder_tidy_logs(&disk->folder);
    disk->content = is_new ? store_open_memory(NULL) : open_rocks(opening, &rocks);
    if (!disk->content) return false;
    if (is_old && disk->read_only) return true;
    if (is_old && !take_over(opening)) return false;
    if (!is_new && !rocks_mark_on_disk(disk->content, &opening->mark)) {
        snprintf(opening->error, opening->error_len, "%s", disk->content->error);
        return false;
    }
    return journal_attach(opening);
}

struct store *store_open_disk(const struct store_options *options, char *error, size_t error_len)
{
    struct folder folder;
    if (!folder_open(&folder, options, error, error_len)) return NULL;
    struct disk *disk = must_zero(1, sizeof *disk);
    disk->store.methods = &disk_methods;
    disk->folder = folder;
    disk->clock = options->clock ? options->clock : &clock_system;
    disk->read_only = options->read_only;
    failure_init(&disk->failure);
    struct opening opening = {.disk = disk, .error = error, .error_len = error_len};
    bool opened = open_content(&opening, options);
    disk_keeper_init(&disk->keeper, disk->journal, disk->content);
    disk_filler_init(&disk->filler, disk->content);
    disk->is_open = opened;
    if (opened) return &disk->store;
    disk_close(&disk->store);
    return NULL;
}
