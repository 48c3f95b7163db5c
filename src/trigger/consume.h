/* What the files of the consumer share.
 *
 * A *reader* is a mapping at work. It knows the shards of its stream: the place of each among its parents and children,
 * and the position item as it was last seen. A shard whose lease we hold has an iterator and *lanes*. A lane is a queue
 * of records whose batches run one after the other; a key always has the same lane.
 *
 * Each does its work in tasks (task.h): one for the reader, and for each shard that we hold one that commits, one that
 * reads and one for each lane. They share one thread and tell each other by signals: whoever changes something gives
 * the signal of the shard or the reader, and whoever waits looks again. All that lies outside (door, functions, clock)
 * is behind `struct environment`, so that a test runs the whole consumer from a seed, without threads, and can let
 * anything fail at any time.
 *
 * Invariants, beside T1 to T6 in trigger.h:
 *
 *  L1. Between an item's lease being taken and lost, `moves` of the item counts our commits on it: each is
 *      conditional on the number before, so that none is applied twice, and one whose reply was lost is found
 *      by it and its `mark` when it is repeated.
 *
 *  L2. A shard has at most one commit and one read under way; a lane at most one invocation.
 *
 *  L3. What comes back for a shard whose lease was dropped since is ignored: its tasks end before it is taken again.
 *
 *  L4. A record leaves its lane's queue only when the commit that moves the lane's point behind it is
 *      through.
 *
 *  L5. A reader that meets a position of a later move than it knew of when it began begins anew: a shard that it thinks
 *      done may be to be read again, and before its children. It reads nothing before all are moved, parents first. */
#ifndef TRIGGER_CONSUME_H
#define TRIGGER_CONSUME_H

#include "base/limits.h"
#include "base/raw.h"
#include "base/stats.h"
#include "task/task.h"
#include "trigger/internal.h"
#include "trigger/judge.h"

#define LANES_MAX    10 /* Lambda's ParallelizationFactor */
#define SEGMENTS_MAX 16 /* halves of halves of ten thousand records, and room for partial answers */
#define OWNER_BYTES  37 /* a UUID */

struct consumer;
struct reader;
struct shard;
struct lane;

/* ---- what lies outside ---- */

/* The functions of func.h, internal.h and engine.h, and their first arguments. */
struct environment {
    struct func *func;
    void (*invoke)(struct func *func, struct invocation *invocation);
    bool (*destination)(struct func *func, struct slice destination, struct slice document, struct slice id,
                        const struct func_call *call, struct buf *members, unsigned *count);
    bool (*mend_tables)(struct func *func);
    void (*wake_queue)(struct func *func);
    bool (*allows_loops)(struct func *func, struct slice function);
    void (*log_to)(struct func *func, struct slice function, struct slice line); /* the function's own log */
    /* What changes when records may have come; NULL: nobody tells, and shards are asked by time. */
    struct engine *engine;
    uint64_t (*news)(struct engine *engine);
    struct mappings *mappings;
    void (*note_result)(struct mappings *mappings, struct slice id, const char *result);
    void (*reached)(struct mappings *mappings, struct slice id, enum mapping_state state);
    void (*stream_over)(struct mappings *mappings, struct slice id, struct slice arn, bool is_over);
};

struct consumer_settings {
    const char *prefix;        /* of our table's name. Kept */
    char owner[OWNER_BYTES];   /* who we are in leases */
    bool shared;               /* the data is elsewhere, and others may read it as we do */
    int64_t lease_ms, poll_ms; /* as in trigger_options, but never 0 */
};

/* ---- positions (consume_position.c) ---- */

/* The position item as it was last seen. */
struct position {
    bool exists, ended, names_effect;
    int64_t fence, until_ms; /* of the lease, as is the owner */
    int64_t moves, mark, wanted_until_ms, since_ms;
    int64_t moved; /* the number of the move that it has made last */
    char owner[OWNER_BYTES], wanted[OWNER_BYTES]; /* empty: nobody */
    uint32_t lanes;
    struct point at[LANES_MAX];
    struct buf iterator; /* LATEST: the iterator of the moment when the mapping began */
};

void position_free(struct position *position);
/* Reads an item in DynamoDB's JSON; false when it is not one of ours. */
bool position_parse(struct slice item, struct arena *arena, struct position *out, struct slice *shard);

/* One commit on a position item. */
struct commit_plan {
    bool moves_lane[LANES_MAX];
    struct point to[LANES_MAX];
    uint32_t lanes; /* not 0: the item gets so many, all at to[0] */
    bool ends, renews;
    bool loses_iterator;
    int64_t mark; /* by which it is known in the item */
    const struct lane
        *names_effect_of; /* moves nothing yet: it only tells of this lane's effect. NULL: a usual one */
};

/* Nobody has the lease, or its time is over. */
bool lease_is_free(const struct shard *shard);
/* Somebody else who is alive holds it. */
bool lease_is_anothers(const struct shard *shard);
/* How long we may count on one, from when it was asked for. */
int64_t lease_held_ms(const struct consumer *consumer);

/* Who makes the effects of a lane (task.h). */
struct slice position_source(const struct shard *shard, uint32_t lane);
/* What brings an effect that the position names to its end; where it moves not, the effect is only forgotten. */
void position_finish(const struct shard *shard, struct slice effect, bool moves, struct task_commit *out);

/* Requests, in the task's arena: */
struct slice position_latest(const struct shard *shard, struct slice iterator, bool is_ended);
struct slice position_move(const struct shard *shard, struct slice iterator, bool is_ended);
struct slice position_take(const struct shard *shard);
struct slice position_ask(const struct shard *shard);
struct slice position_release(const struct shard *shard);
struct slice position_commit(const struct shard *shard, const struct commit_plan *plan);
/* Of any item of the mapping's. */
struct slice position_delete(const struct reader *reader, struct slice name);

/* ---- records (consume_read.c) ---- */

/* A record of GetRecords taken apart; slices of its text. */
struct raw_record {
    struct slice text, keys, sequence, cause;
    int64_t created_ms;
    bool is_special; /* more is to be changed than a member to be added */
    bool has_old;    /* the image before the change */
    size_t time_at;  /* where the member "time" at the end begins, with its comma; 0: there is none */
};

/* Reads the record that comes next. */
bool raw_record_read(struct json_reader *reader, struct raw_record *out);
/* The record as Lambda shows it; with what only the door in this process tells, for watches. */
void put_event_record(struct buf *out, const struct raw_record *raw, struct slice arn_json, bool with_own,
                      struct arena *arena);
/* Which of so many lanes it goes to: by its hash key, or by all of its key where that is not known. */
uint32_t lane_of_keys(struct slice keys, struct slice hash_key, uint32_t lanes, struct arena *arena);
void record_free(struct record *record);

/* ---- what others tell us to do ---- */

struct command {
    struct task_note note;
    struct consumer *consumer;
    struct mapping *mapping; /* NULL: remove */
    char id[OWNER_BYTES];
};

/* ---- lanes (consume_lane.c) ---- */

enum lane_state {
    LANE_IDLE,
    LANE_CALLED,     /* its function runs */
    LANE_PAUSED,     /* its batch will be tried again */
    LANE_SETTLED,    /* its batch waits to be committed */
    LANE_COMMITTING, /* it is in the commit under way */
};

/* What the next commit does for a lane. */
struct settlement {
    uint32_t moves; /* records that are done with */
    /* Members of its transaction, separated by commas; none: a plain write of the position will do. Effects are what a
     * function returned, children what may be made twice: letters, calls, states of windows. */
    struct buf effects, children, cause;
    unsigned effect_count, child_count;
    bool has_document;
    enum { WINDOW_STAYS, WINDOW_STATES, WINDOW_CLOSES } window;
    struct buf state;
    int64_t version; /* STATES: of its items */
    uint32_t parts;
    uint64_t number; /* who came first */
};

struct tumbling {
    bool is_open;
    bool is_finishing; /* its last call is under way, or to be repeated */
    bool ends_early;   /* its state became too large */
    int64_t start_ms, end_ms;
    struct buf state; /* raw JSON */
    /* of the items that hold it, where the position's does not: now, and before the last commit */
    int64_t version, old_version;
    uint32_t parts, old_parts, parts_read;
    uint32_t failures; /* of its last call */
};

/* A batch that its function has. */
struct batch_call {
    struct task_completion completion;
    struct batch_call *next; /* where it is spare */
    struct consumer *consumer;
    struct watch *watch;
    struct invocation invocation;
    struct arena arena;
    struct buf payload;
};

struct lane {
    struct shard *shard;
    uint32_t number;
    enum lane_state state;
    struct point at; /* as the item has it */
    struct record *records;
    uint32_t first, count, capacity; /* the queue: `count` records from `first` on */
    size_t bytes;
    uint32_t segments[SEGMENTS_MAX], depth; /* the batch at hand, in the pieces in which it is tried */
    uint32_t take;                          /* records of the invocation under way */
    uint32_t invocations;                   /* of the batch at hand */
    uint32_t pauses;                        /* in a row */
    uint32_t cap;                           /* records at a time, so that effects fit; 0: any */
    struct task_moment retry;
    struct settlement settlement;
    bool gives_up; /* the settlement does */
    struct tumbling window;
    /* of the last invocation, for the document of a failure */
    char request_id[37], version[16], error_kind[16];
    struct buf error; /* what it said, or what is wrong with it: {"errorType":...,"errorMessage":...}; empty: nothing */
    bool was_invoked;
};

/* Hands records to the function until the shard is left, or gets other lanes. */
void lane_task(void *lane);
const struct mapping *lane_mapping(const struct lane *lane);
void lane_add(struct lane *lane, const struct record *record);
/* The first record of the queue; the others follow. */
struct record *lane_head(const struct lane *lane);
void lane_free(struct lane *lane);
/* Another batch could be gathered beside the one at hand. */
bool lane_has_room(const struct lane *lane);
/* The event of the first records. */
void put_payload(struct buf *out, const struct lane *lane, uint32_t count);
struct slice join_causes(const struct lane *lane, uint32_t count, struct arena *arena);
void lane_result(struct lane *lane, enum outcome outcome, uint32_t done);
void lane_fail(struct lane *lane, const char *why);
void lane_failed(struct lane *lane);
void lane_pause(struct lane *lane, bool is_throttled);
void lane_give_up(struct lane *lane, uint32_t count, const char *condition);
/* Of the commit that it was in: */
void lane_committed(struct lane *lane);
void lane_refused(struct lane *lane, const char *reason);
void lane_undocumented(struct lane *lane, const char *reason);

/* consume_document.c */
/* "2026-11-15T03:42:06Z" */
struct slice moment_shown(struct arena *arena, int64_t moment_ms);
bool put_failure_document(struct lane *lane, uint32_t count, const char *condition);

/* consume_window.c */
int64_t window_end_for(const struct lane *lane);
/* The window's last call is to be made. Else *until is when it may be. */
bool window_is_over(struct lane *lane, struct task_moment *until);
void window_put_members(struct buf *out, const struct lane *lane);
bool window_takes_state(struct lane *lane, struct slice state);
struct slice window_attribute(const struct lane *lane, struct arena *arena);
void window_failed(struct lane *lane);
void window_committed(struct lane *lane);
/* Deletes what a commit has left over of the state before it. Waits. */
void window_sweep(struct lane *lane);
/* Between taking the lease and reading, from the position's item; waits. False: it cannot be read now. */
bool windows_load(struct shard *shard, struct slice item);

/* ---- shards (consume_shard.c) ---- */

enum shard_state {
    SHARD_WAITS, /* for its parent */
    SHARD_FREE,  /* may be taken, or somebody else has it */
    SHARD_TAKING,
    SHARD_HELD,
    SHARD_LEAVING, /* its tasks end */
    SHARD_ENDED,
};

struct shard {
    struct shard *next;
    struct reader *reader;
    char id[LIMIT_SHARD_ID_BYTES + 1], parent[LIMIT_SHARD_ID_BYTES + 1];
    bool is_closed;              /* the service will write no more to it */
    bool is_marked;              /* LATEST: its position is written down */
    int64_t known_us;            /* since when we know of it */
    uint32_t listed_at, seen_at; /* in which look for shards, for positions it was there last */
    enum shard_state state;
    struct position seen;
    enum lease_wish wish;
    struct task_moment retry; /* of taking a lease */
    struct task_signal changed;
    unsigned tasks; /* that work on it */
    /* while it is held */
    struct lane *lanes;
    uint32_t lane_count;
    unsigned lane_tasks;
    bool ends_lanes;                     /* there will be others */
    int64_t held_us, lease_us, renew_us; /* since when, until when, when to renew */
    bool is_handing_over;                /* somebody asked for it: finish and give it back */
    bool is_missing;                     /* its item is not there any more */
    /* reading */
    struct buf iterator;  /* in quotes; empty: to be asked for */
    bool from_horizon;    /* the next iterator: what we knew of its place is of no use */
    bool has_lost_latest; /* where LATEST was is known by its time only */
    bool is_reading, is_read_out;
    bool has_more;         /* the last answer had records, or there is another reason to ask */
    struct point read_at;  /* the last record that was read */
    struct point known_to; /* the furthest lane when the lease was taken */
    int64_t ask_us, last_ask_us, pause_us;
    uint32_t read_failures;
    uint64_t asked_news;        /* when the last question with an empty answer was asked; */
    int64_t empty_us, empty_ms; /* likewise; -1: none yet */
    size_t bytes;               /* of records that wait or run */
    uint32_t skipped;           /* records that went by since the last commit, */
    int64_t skipped_us;         /* and since when */
    /* committing */
    bool is_committing;
    struct commit_plan plan;
    uint64_t settled; /* gives settlements their numbers */
};

struct shard *add_shard(struct reader *reader, struct slice id);
void shard_free(struct shard *shard);
/* Takes the lease, and works until it is given back, lost, or the shard is read to its end. */
void shard_task(void *shard);
void shard_touch(struct shard *shard);
/* The lease is not ours any more: the items are to be looked at again. */
void shard_lose(struct shard *shard);
bool shard_is_held(const struct shard *shard);
bool shard_is_stopping(const struct shard *shard);
bool shard_is_changing_lanes(const struct shard *shard);
bool shard_is_quiet(const struct shard *shard);

/* consume_read.c */
void read_task(void *shard);
void put_iterator_question(struct buf *out, const struct shard *shard, struct slice type,
                           const struct point *at);
bool iterator_read(struct slice reply, struct arena *arena, struct slice *iterator);

/* ---- readers (consume_reader.c) ---- */

enum reader_stage {
    READER_PREPARES, /* table, positions, shards, and where LATEST is */
    READER_RUNS,
    READER_DRAINS, /* batches under way end, leases are given back */
    READER_STOPPED,
    READER_DELETES, /* its positions */
    READER_GONE,
};

struct reader {
    struct reader *next;
    struct consumer *consumer;
    struct mapping *mapping;
    struct mapping *successor; /* of the same id, set while this one is being removed; NULL: none */
    struct buf arn_json;       /* the stream's, in quotes */
    struct slice function_name;
    enum reader_stage stage;
    struct task_signal changed;
    bool must_drain, is_removed;
    bool has_start;       /* LATEST is written down */
    int64_t start_moved;  /* the last move that is written down for all shards */
    int64_t moved;        /* the last one that some position had when it began (L5) */
    bool must_look_again; /* for all shards: several ended at once, or a look has failed */
    bool is_disabled_stream, is_lost_stream;
    bool is_over;            /* as it was told: nothing will come from this stream any more */
    bool has_looked_last;    /* for all shards, after the last one of a closed stream was done */
    bool has_moved;          /* to another stream, from which nothing was told yet */
    bool has_told_of_others; /* the log has said who else reads it */
    bool knows_filter;       /* the service has ShardFilter, as far as we know */
    struct shard *shards;
    struct buf hash_key;
    char wanted_of[LIMIT_SHARD_ID_BYTES + 1]; /* whose children are to be looked for next */
    uint32_t look, looked;                    /* for shards: the one begun last, the one completed last */
    int64_t looked_us;
    uint32_t position_looks;
    uint32_t failures;
    int64_t look_us, positions_us; /* when shards, positions are to be looked at again */
    int64_t create_us; /* no position is made before: they were deleted, perhaps with the mapping */
    int64_t warned_us; /* of loops */
    char result[160];  /* the last one told */
};

struct reader *reader_new(struct consumer *consumer, struct mapping *mapping);
void reader_free(struct reader *reader);
void reader_touch(struct reader *reader);
void reader_change(struct reader *reader, struct mapping *mapping);
void reader_remove(struct reader *reader);
void reader_stop(struct reader *reader);
/* True: it was moved since the reader began, which begins anew (L5). */
bool reader_meet(struct reader *reader, const struct position *position);
/* Drops all that it knows and starts again. */
void reader_begin_anew(struct reader *reader);
bool reader_is_stopped(const struct reader *reader);
bool reader_is_running(const struct reader *reader);
/* Tells LastProcessingResult, when it is another one than before. */
void reader_note(struct reader *reader, const char *format, ...) __attribute__((format(printf, 2, 3)));
void reader_look_soon(struct reader *reader, const struct shard *ended);
/* True: its task is to end what it does. */
bool reader_is_leaving(const struct reader *reader);
/* Waits so long, or until the reader is to stop. */
void reader_pause(struct reader *reader, int64_t us);
/* A call about the reader itself has failed: waits, longer each time. */
void reader_failed(struct reader *reader);

/* consume_shards.c: these two wait. False: it failed, or the reader is to stop. */
bool look_for_shards(struct reader *reader);
bool look_at_all_positions(struct reader *reader);
struct shard *find_shard(const struct reader *reader, struct slice id);
bool shard_is_listed(const struct shard *shard);
void release_shards(struct reader *reader);
/* Begins to take the leases that are wanted, and asks for others. Answers when it is to be called again. */
struct task_moment leases_act(struct reader *reader);
bool forget_a_shard(struct reader *reader);
bool misses_children(const struct reader *reader);

/* ---- the consumer (consume.c) ---- */

/* Member of struct consumer_counts, name of the metric, type, help. */
#define CONSUMER_COUNTS(X)                                                                                   \
    X(readers, "mappings", "gauge", "Event source mappings that are known.")                                 \
    X(watches, "watches", "gauge", "Streams that the server itself follows.")                                \
    X(shards_held, "shards", "gauge", "Shards that are being read.")                                         \
    X(buffered_bytes, "buffered_bytes", "gauge", "Records that wait or run.")                                \
    X(reads, "reads_total", "counter", "Answers to GetRecords.")                                             \
    X(records_read, "records_read_total", "counter", "Records that were read.")                              \
    X(records_filtered, "records_filtered_total", "counter", "Records that no filter wanted.")               \
    X(records_done, "records_done_total", "counter", "Records that were handled.")                           \
    X(records_given_up, "records_given_up_total", "counter", "Records that were given up.")                  \
    X(records_looped, "records_looped_total", "counter", "Records kept from the function that caused them.") \
    X(batches, "invocations_total", "counter", "Batches handed to functions.")                               \
    X(failures, "failures_total", "counter", "Invocations that failed.")                                     \
    X(throttled, "throttled_total", "counter", "Invocations that were not begun.")                           \
    X(commits, "commits_total", "counter", "Positions that were moved.")                                     \
    X(effects, "effects_total", "counter", "Writes of functions that were applied.")                         \
    X(conflicts, "conflicts_total", "counter", "Commits that met another transaction.")                      \
    X(leases_lost, "leases_lost_total", "counter", "Leases that were lost.")                                 \
    X(trimmed, "trimmed_total", "counter", "Times that records were cut off before they were read.")

struct consumer_counts {
#define COUNT(member, name, type, help) _Atomic uint64_t member;
    CONSUMER_COUNTS(COUNT)
#undef COUNT
    struct histogram start_us; /* from the arrival of a batch's first record to its invocation */
};

enum positions_state { POSITIONS_UNKNOWN, POSITIONS_ASKED, POSITIONS_MISSING, POSITIONS_READY };

struct consumer {
    struct environment world;
    struct consumer_settings settings;
    struct task_host *host;
    uint32_t invocations; /* under way */
    struct reader *readers;
    struct buf table; /* its name, in quotes */
    enum positions_state positions_state;
    uint64_t last_news;
    size_t buffered_bytes;
    bool is_stopping, is_late;        /* late: batches under way are not waited for any more */
    struct arena scratch, page_arena; /* of a record, and of the page that it is in */
    struct buf text;                  /* scratch, too */
    struct batch_call *spare_batches; /* with their memory */
    unsigned spare_batch_count;
    struct consumer_counts counts;
    /* Whether all is quiet: worked out once somebody has asked . */
    _Atomic bool is_quiet_wanted;
    _Atomic int64_t probe_us;   /* where nobody tells of news, all must have been
                                   asked since; 0: nobody asks */
    pthread_mutex_t quiet_lock; /* of the following */
    bool is_quiet;
    uint64_t quiet_news;
    int64_t quiet_since_us;
    uint64_t commands_given, commands_done;
    struct trigger_lag lags[LIMIT_CONSOLE_TOP]; /* the oldest first; of each `ms` is when its change was made */
    unsigned lag_count;
    /* The oldest change in hand, or 0: worked out once somebody has asked. */
    _Atomic bool is_oldest_wanted;
    _Atomic int64_t oldest_ms;
    /* of consumer_open; not of tests */
    struct engine_watcher watcher;
    pthread_t thread;
    bool is_running;
    _Atomic bool is_ending;
};

/* The host becomes the consumer's. */
struct consumer *consumer_new(struct task_host *host, const struct environment *world,
                              const struct consumer_settings *settings);
void consumer_free(struct consumer *consumer);
/* Does what can be done now. Answers after how many microseconds something is due; less than 0: never. */
int64_t consumer_step(struct consumer *consumer);
/* Lets batches under way end and gives leases back; consumer_has_stopped when that is done. */
void consumer_stop(struct consumer *consumer);
bool consumer_has_stopped(const struct consumer *consumer);
int64_t consumer_now_ms(const struct consumer *consumer);
int64_t consumer_ticks_us(const struct consumer *consumer);
uint64_t consumer_news(const struct consumer *consumer);
uint64_t consumer_random(struct consumer *consumer);
void batch_calls_free(struct consumer *consumer);

/* Ends the thread; consumer_close does so, too. */
void consumer_halt(struct consumer *consumer);

#endif
