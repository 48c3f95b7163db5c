/* What the files of the consumer share.
 *
 * A *feed* is a mapping at work. It has a *strand* for each shard of its stream: the shard's place among its
 * parents and children, the position item as it was last seen, and, while we hold its lease, an iterator and
 * *lanes*. A lane is a queue of records whose batches run one after the other; a key always has the same one.
 *
 * Everything happens on one thread and nothing waits: a call of the door or of a function is an *errand* that
 * comes back through the inbox. The thread takes what came back, attends to each strand and feed that was
 * touched by it, and sleeps until something else comes or is due. All that lies outside (door, functions,
 * clock, random numbers) is behind `struct surroundings`, so that a test runs the whole consumer from a seed,
 * without threads, and can let anything fail at any time.
 *
 * Invariants, beside T1 to T6 in trigger.h:
 *
 *  L1. Between an item's lease being taken and lost, `moves` of the item counts our commits on it: each is
 *      conditional on the number before, so that none is applied twice, and one whose reply was lost is found
 *      by it and its `mark`.
 *
 *  L2. A strand has at most one commit and one read under way; a lane at most one invocation.
 *
 *  L3. What comes back for a strand whose lease was dropped since is known by its term and is ignored.
 *
 *  L4. A record leaves its lane's queue only when the commit that moves the lane's point behind it is
 *      through. */
#ifndef TRIGGER_CONSUME_H
#define TRIGGER_CONSUME_H

#include "base/limits.h"
#include "base/raw.h"
#include "base/stats.h"
#include "trigger/internal.h"
#include "trigger/judge.h"

#define LANES_MAX    10 /* Lambda's ParallelizationFactor */
#define SEGMENTS_MAX 16 /* halves of halves of ten thousand records, and room for partial answers */
#define POINT_BYTES  47
#define OWNER_BYTES  37 /* a UUID */

struct consumer;
struct feed;
struct strand;
struct lane;
struct errand;

/* ---- what lies outside ---- */

struct surroundings {
    void *self;
    /* the door: as dynamo_begin, dynamo_turn_end, dynamo_finish */
    bool (*begin)(void *self, struct dynamo_call *call);
    void (*turn_end)(void *self);
    void (*finish)(void *self, struct dynamo_call *call);
    /* functions: as in func.h */
    void (*invoke)(void *self, struct invocation *invocation);
    enum effects (*effects)(struct slice reply, uint32_t count_max, struct arena *arena,
                            struct slice *members, uint32_t *count, char *error, size_t error_len);
    bool (*destination)(void *self, struct slice destination, struct slice document, struct slice id,
                        const struct func_call *call, struct buf *members, unsigned *count);
    void (*wake_queue)(void *self);
    unsigned (*cause_count)(struct slice cause, struct slice function);
    struct slice (*cause_add)(struct arena *arena, struct slice cause, struct slice function);
    struct slice (*cause_join)(struct arena *arena, struct slice a, struct slice b);
    bool (*allows_loops)(void *self, struct slice function);
    void (*log_to)(void *self, struct slice function, struct slice line); /* the function's own log */
    /* time */
    int64_t (*now_ms)(void *self);   /* since 1970; may jump */
    int64_t (*ticks_us)(void *self); /* never goes back */
    /* What changes when records may have come; NULL: nobody tells, and shards are asked by time. */
    uint64_t (*news)(void *self);
    /* the mappings: as in internal.h */
    void (*note_result)(void *self, struct slice id, const char *result);
    void (*reached)(void *self, struct slice id, enum mapping_state state);
    void (*stream_over)(void *self, struct slice id, struct slice arn, bool is_over);
};

struct consumer_settings {
    const char *prefix;        /* of our table's name. Kept */
    char owner[OWNER_BYTES];   /* who we are in leases */
    bool shared;               /* the data is elsewhere, and others may read it as we do */
    int64_t lease_ms, poll_ms; /* as in trigger_options, but never 0 */
    uint64_t seed;             /* of jitter */
};

/* ---- points, positions (consume_position.c) ---- */

/* How far a lane has come: a sequence number, TRIM_HORIZON or LATEST. */
struct point {
    unsigned char len;
    char text[POINT_BYTES];
};

#define POINT_HORIZON ((struct point){12, "TRIM_HORIZON"})
#define POINT_LATEST  ((struct point){6, "LATEST"})

static inline struct slice point_view(const struct point *point)
{
    return (struct slice){point->text, point->len};
}

bool point_set(struct point *point, struct slice text);          /* false when it does not fit */
bool point_is_number(const struct point *point);                 /* else a word */
int point_compare(const struct point *a, const struct point *b); /* words before all numbers */

/* The position item as it was last seen. */
struct position {
    bool exists, ended;
    uint64_t fence, moves, mark;
    int64_t until_ms, wanted_until_ms, since_ms;
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
    uint64_t mark; /* by which it is known in the item */
};

/* A position that is to be made. */
struct new_position {
    struct point at; /* of all lanes */
    uint32_t lanes;
    bool is_owned, is_ended;
    struct slice iterator; /* LATEST; else empty */
};

void put_position_key(struct buf *out, const struct feed *feed, struct slice shard);
void put_position_probe(struct buf *out, const struct strand *strand);
void put_position_create(struct buf *out, const struct strand *strand, const struct new_position *fresh);
void put_position_take(struct buf *out, const struct strand *strand);
void put_position_ask(struct buf *out, const struct strand *strand);
void put_position_release(struct buf *out, const struct strand *strand);
void put_position_commit(struct buf *out, const struct strand *strand, const struct commit_plan *plan);

/* ---- records (consume_record.c) ---- */

/* A record of GetRecords taken apart; slices of its text. */
struct raw_record {
    struct slice text, keys, sequence, cause;
    int64_t created_ms;
    bool is_special; /* more is to be changed than a member to be added */
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

/* ---- errands and the inbox (consume_errand.c) ---- */

struct errand {
    struct errand *next;
    struct consumer *consumer;
    struct inbox *inbox;
    void (*answered)(struct errand *errand);
    struct dynamo_call call;
    struct invocation invocation;
    bool is_invocation, needs_finish;
    struct feed *feed;
    struct strand *strand; /* or NULL */
    struct lane *lane;     /* or NULL */
    uint64_t term;         /* of the strand's lease when it began */
    int64_t began_us, began_ms;
    uint64_t news; /* when it began */
    struct arena arena;
    struct buf request, reply;
};

/* What others tell us to do. */
struct order {
    struct order *next;
    struct mapping *mapping; /* NULL: remove */
    char id[OWNER_BYTES];
};

struct inbox {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct errand *first, *last;
    struct order *first_order, *last_order;
    bool is_woken, is_closed;
    _Atomic uint32_t references; /* the consumer's, and one for each invocation under way */
};

struct inbox *inbox_new(void);
void inbox_release(struct inbox *inbox);
void inbox_wake(struct inbox *inbox);
void inbox_order(struct inbox *inbox, struct order *order);
/* From here on, what comes back is freed. */
void inbox_close(struct inbox *inbox);
/* Waits until something is there, at most so long; less than 0: for ever. */
void inbox_wait(struct inbox *inbox, int64_t wait_us);
void inbox_take(struct inbox *inbox, struct errand **errands, struct order **orders);
void order_free(struct order *order);

/* A call of the door for a feed, or a strand of it: write its `request`, then call. */
struct errand *errand_new(struct feed *feed, struct strand *strand, void (*answered)(struct errand *errand));
void errand_call(struct errand *errand, struct slice operation);
void errand_invoke(struct errand *errand);
void errand_free(struct errand *errand);
/* Lets the answer be handled. The errand is gone afterwards. */
void errand_deliver(struct errand *errand);
/* True when its strand still has the lease under which it was begun. */
bool errand_is_current(const struct errand *errand);
enum dynamo_fault errand_fault(const struct errand *errand);
struct slice errand_message(struct errand *errand);
/* Calls `take` with each element of an array in its answer; false when it is none. */
bool errand_each(struct errand *errand, struct slice array,
                 void (*take)(struct errand *errand, struct slice raw));

/* ---- lanes (consume_lane.c, consume_reply.c) ---- */

enum lane_state {
    LANE_IDLE,
    LANE_CALLED,     /* its function runs */
    LANE_PAUSED,     /* its batch will be tried again */
    LANE_SETTLED,    /* its batch waits to be committed */
    LANE_COMMITTING, /* it is in the commit under way */
};

/* What the next commit does for a lane. */
struct settlement {
    uint32_t moves;            /* records that are done with */
    struct buf members, cause; /* of its transaction; none: a plain write of the
                                  position will do */
    unsigned member_count;
    uint32_t effect_count;
    bool has_effects, has_document;
    enum { WINDOW_STAYS, WINDOW_STATES, WINDOW_CLOSES } window;
    struct buf state;
    uint64_t number; /* who came first */
};

struct tumbling {
    bool is_open;
    bool is_finishing; /* its last call is under way, or to be repeated */
    bool ends_early;   /* its state became too large */
    int64_t start_ms, end_ms;
    struct buf state;           /* raw JSON */
    uint32_t parts, next_parts; /* items that hold the state, now and after the commit */
    uint32_t failures;          /* of its last call */
};

struct lane {
    struct strand *strand;
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
    struct due retry;
    struct settlement settlement;
    bool gives_up; /* the settlement does */
    struct tumbling window;
    /* of the last invocation, for the document of a failure */
    char request_id[37], version[16], error_kind[16];
    bool was_invoked;
};

const struct mapping *lane_mapping(const struct lane *lane);
void lane_attend(struct lane *lane);
void lane_add(struct lane *lane, const struct record *record);
/* The first record of the queue; the others follow. */
struct record *lane_head(const struct lane *lane);
void lane_pop(struct lane *lane, uint32_t count);
void lane_free(struct lane *lane);
bool lane_is_hungry(const struct lane *lane);
/* The event of the first records. */
void put_payload(struct buf *out, const struct lane *lane, uint32_t count);
struct slice join_causes(const struct lane *lane, uint32_t count, struct arena *arena);
void lane_invoke(struct lane *lane, uint32_t count);
void lane_answered(struct errand *errand);
void lane_result(struct lane *lane, enum outcome outcome, uint32_t done);
void lane_fail(struct lane *lane, const char *why);
void lane_failed(struct lane *lane);
void lane_pause(struct lane *lane, bool is_throttled);
void lane_settle(struct lane *lane, uint32_t moves);
void lane_give_up(struct lane *lane, uint32_t count, const char *condition);
void lane_committed(struct lane *lane);
void lane_refused(struct lane *lane, const char *reason);
void lane_undocumented(struct lane *lane, const char *reason);

/* consume_document.c */
void put_moment(struct buf *out, int64_t moment_ms);
void put_document(struct buf *out, const struct lane *lane, uint32_t count, const char *condition,
                  int64_t now_ms);
bool put_failure_document(struct lane *lane, uint32_t count, const char *condition);

/* consume_window.c */
int64_t window_end_for(const struct lane *lane);
bool window_attend(struct lane *lane);
void window_put_members(struct buf *out, const struct lane *lane);
bool window_takes_state(struct lane *lane, struct slice state);
void window_put_closing(struct lane *lane);
void window_finished(struct lane *lane);
void window_failed(struct lane *lane);
void window_committed(struct lane *lane);
void windows_load(struct strand *strand);

/* ---- strands (consume_strand.c) ---- */

enum strand_state {
    STRAND_WAITS, /* for its parent */
    STRAND_FREE,  /* may be taken, or somebody else has it */
    STRAND_TAKING,
    STRAND_LOADING, /* states of windows */
    STRAND_HELD,
    STRAND_ENDED,
};

struct strand {
    struct strand *next, *next_touched;
    struct feed *feed;
    bool is_touched;
    char id[LIMIT_SHARD_ID_BYTES + 1], parent[LIMIT_SHARD_ID_BYTES + 1];
    bool is_closed;              /* the service will write no more to it */
    bool is_marked;              /* LATEST: its position is written down */
    int64_t known_us;            /* since when we know of it */
    uint32_t listed_at, seen_at; /* in which look for shards, for positions it was there last */
    enum strand_state state;
    struct position seen;
    enum lease_wish wish;
    uint32_t lanes_asked; /* of the position that is being made */
    uint64_t term;        /* grows with each lease that is taken, lost or given up */
    uint32_t errands;
    int64_t due_us;   /* wants attention then */
    struct due retry; /* of taking a lease */
    /* while it is held */
    struct lane *lanes;
    uint32_t lane_count;
    int64_t held_us, lease_us, renew_us; /* since when, until when, when to renew */
    bool is_handing_over;                /* somebody asked for it: finish and give it back */
    /* reading */
    struct buf iterator;  /* in quotes; empty: to be asked for */
    bool from_horizon;    /* the next iterator: what we knew of its place is of no
                             use */
    bool has_lost_latest; /* where LATEST was is known by its time only */
    bool is_reading, is_read_out;
    bool has_more;         /* the last answer had records, or there is another reason to
                              ask */
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
    bool is_unsure; /* whether the commit happened has still to be asked */
    struct commit_plan plan;
    int64_t commit_us;
    struct due commit_retry;
    uint32_t commit_failures;
    uint64_t settled; /* gives settlements their numbers */
};

struct strand *strand_new(struct feed *feed, struct slice id);
void strand_free(struct strand *strand);
void strand_touch(struct strand *strand);
void strand_wake_at(struct strand *strand, int64_t ticks_us);
void strand_wake_due(struct strand *strand, const struct due *due);
void strand_attend(struct strand *strand);
void strand_hold(struct strand *strand, int64_t asked_us);
/* The lease is given up: all that belongs to it is dropped. Lost: and the items are looked at again. */
void strand_drop(struct strand *strand);
void strand_lose(struct strand *strand);
void strand_end(struct strand *strand);
void strand_relane(struct strand *strand, uint32_t count, const struct point *at);
bool strand_is_held(const struct strand *strand);
bool strand_is_busy(const struct strand *strand);
bool strand_is_stopping(const struct strand *strand);
bool strand_is_changing_lanes(const struct strand *strand);
bool strand_is_quiet(const struct strand *strand);

/* consume_lease.c */
void leases_weigh(struct feed *feed);
void lease_attend(struct strand *strand);
void lease_release(struct strand *strand);
void lease_renewed(struct strand *strand, int64_t asked_us);
bool lease_is_over(struct strand *strand);
/* Nobody has it, or its time is over. */
bool lease_is_free(const struct strand *strand);
/* Somebody else who is alive holds it. */
bool lease_is_anothers(const struct strand *strand);
int64_t lease_margin_ms(const struct consumer *consumer);

/* consume_read.c, consume_commit.c */
void read_attend(struct strand *strand);
void put_iterator_question(struct buf *out, const struct strand *strand, struct slice type,
                           const struct point *at);
bool iterator_read(struct errand *errand, struct slice *iterator);
void commit_attend(struct strand *strand);

/* ---- feeds (consume_feed.c) ---- */

enum feed_stage {
    FEED_TABLE, /* our table must be there */
    FEED_POSITIONS,
    FEED_SHARDS,
    FEED_START, /* LATEST: where that is, is written down */
    FEED_RUNS,
    FEED_DRAINS, /* batches under way end, leases are given back */
    FEED_STOPPED,
    FEED_DELETES, /* its positions */
    FEED_GONE,
};

struct feed {
    struct feed *next;
    struct consumer *consumer;
    struct mapping *mapping;
    struct mapping *successor; /* of the same id, set while this one is being removed; NULL: none */
    struct buf arn_json;       /* the stream's, in quotes */
    struct slice function_name;
    enum feed_stage stage;
    bool is_touched, is_busy; /* busy: a call about the feed itself is under way */
    bool is_removed;
    bool has_start;       /* LATEST is written down */
    bool must_look_again; /* for all shards: several ended at once, or a look has failed */
    bool is_disabled_stream, is_lost_stream;
    bool is_over;         /* as it was told: nothing will come from this stream any more */
    bool has_looked_last; /* for all shards, after the last one of a closed stream was done */
    bool has_moved;       /* to another stream, from which nothing was told yet */
    bool has_told_of_others; /* the log has said who else reads it */
    bool knows_filter; /* the service has ShardFilter, as far as we know */
    struct strand *strands;
    struct buf hash_key;
    struct buf page_key;                      /* where the next page of what is being read begins, raw */
    char wanted_of[LIMIT_SHARD_ID_BYTES + 1]; /* whose children are to be looked for next */
    char child_of[LIMIT_SHARD_ID_BYTES + 1];  /* and are looked for now */
    bool is_child_look;
    uint32_t look, looked; /* for shards: the one begun last, the one completed last */
    int64_t look_began_us, looked_us;
    uint32_t position_looks;
    uint32_t errands;
    struct due retry;
    uint32_t failures;
    int64_t look_us, positions_us; /* when shards, positions are to be looked at again */
    int64_t create_us;             /* no position is made before: they were deleted, perhaps
                                      with the mapping */
    int64_t due_us;
    int64_t warned_us; /* of loops */
    char result[160];  /* the last one told */
};

struct feed *feed_new(struct consumer *consumer, struct mapping *mapping);
void feed_free(struct feed *feed);
void feed_touch(struct feed *feed);
void feed_attend(struct feed *feed);
void feed_change(struct feed *feed, struct mapping *mapping);
void feed_remove(struct feed *feed);
void feed_stop(struct feed *feed);
/* Drops all that it knows and starts again. */
void feed_begin_anew(struct feed *feed);
bool feed_is_stopped(const struct feed *feed);
bool feed_is_running(const struct feed *feed);
void feed_enter(struct feed *feed, enum feed_stage stage);
/* Tells LastProcessingResult, when it is another one than before. */
void feed_note(struct feed *feed, const char *format, ...) __attribute__((format(printf, 2, 3)));
void feed_look_soon(struct feed *feed, const struct strand *ended);
void feed_looked(struct feed *feed);
void feed_wait(struct feed *feed, int64_t us);
void feed_wake_at(struct feed *feed, int64_t ticks_us);
/* A call about the feed itself; one at a time. */
struct errand *feed_ask(struct feed *feed, void (*answered)(struct errand *errand));
struct errand *feed_ask_for(struct feed *feed, struct strand *strand,
                            void (*answered)(struct errand *errand));
/* Notes that it is answered; false when it failed and will be repeated after a pause. */
bool feed_answered(struct errand *errand);
void feed_failed(struct feed *feed);

/* consume_shards.c */
void shards_ask(struct feed *feed);
void positions_ask(struct feed *feed);
struct strand *strand_find(const struct feed *feed, struct slice id);
bool strand_is_listed(const struct strand *strand);
void strands_release(struct feed *feed);
void strands_forget(struct feed *feed);
bool strands_miss_children(const struct feed *feed);

/* consume_over.c: tells when the stream is over. */
void stream_over_attend(struct feed *feed);
/* The stream is to be looked at anew, and is another one where the mapping says so. */
void feed_begin_stream(struct feed *feed);

/* consume_start.c */
void table_attend(struct feed *feed);
void start_attend(struct feed *feed);
void delete_attend(struct feed *feed);

/* ---- the consumer (consume_loop.c) ---- */

struct consumer_counts {
    _Atomic uint64_t records_read, records_filtered, records_done, records_given_up, records_looped;
    _Atomic uint64_t batches, failures, throttled, commits, effects, conflicts, leases_lost, trimmed, reads;
    _Atomic uint64_t feeds, watches, strands_held, buffered_bytes;
    struct histogram start_us; /* from the arrival of a batch's first record to
                                  its invocation */
};

enum positions_state { POSITIONS_UNKNOWN, POSITIONS_ASKED, POSITIONS_MISSING, POSITIONS_READY };

struct consumer {
    struct surroundings world;
    struct consumer_settings settings;
    struct inbox *inbox;
    struct errand *ready_first, *ready_last; /* answered at once */
    struct errand *spare;
    uint32_t spare_count;
    uint32_t calls, invocations; /* under way */
    bool has_turn;               /* calls were begun and not handed over */
    struct feed *feeds;
    struct strand *touched_first, *touched_last;
    struct random random;
    struct buf table; /* its name, in quotes */
    enum positions_state positions_state;
    int64_t next_due_us;
    int64_t wall_offset_us; /* between the clocks, to see a jump */
    uint64_t last_news;
    size_t buffered_bytes;
    bool is_stopping;
    struct arena scratch;
    struct buf text; /* scratch, too */
    struct consumer_counts counts;
    /* Whether all is quiet: worked out once somebody has asked (consume_quiet.c). */
    _Atomic bool is_quiet_wanted;
    _Atomic int64_t probe_us;   /* where nobody tells of news, all must have been
                                   asked since; 0: nobody asks */
    pthread_mutex_t quiet_lock; /* of the following */
    bool is_quiet;
    uint64_t quiet_news;
    int64_t quiet_since_us;
    uint64_t orders_given, orders_done;
    void *host; /* the thread and what else is real (consume.c) */
};

struct consumer *consumer_new(const struct surroundings *world, const struct consumer_settings *settings);
void consumer_free(struct consumer *consumer);
/* Does what can be done now. Answers after how many microseconds something is due; less than 0: never. */
int64_t consumer_step(struct consumer *consumer);
/* Lets batches under way end and gives leases back; consumer_has_stopped when that is done. */
void consumer_stop(struct consumer *consumer);
bool consumer_has_stopped(const struct consumer *consumer);
void consumer_order(struct consumer *consumer, struct mapping *mapping, struct slice id);
int64_t consumer_now_ms(const struct consumer *consumer);
int64_t consumer_ticks_us(const struct consumer *consumer);
uint64_t consumer_news(const struct consumer *consumer);
struct due due_after_us(const struct consumer *consumer, int64_t us);
bool due_is_over(const struct consumer *consumer, const struct due *due);

/* consume.c: ends the thread; consumer_close does so, too */
void consumer_halt(struct consumer *consumer);

/* consume_quiet.c */
void consumer_note_quiet(struct consumer *consumer);
bool consumer_is_quiet(struct consumer *consumer);

#endif
