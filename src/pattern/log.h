/* What the files of logs share: tables, the layout, keys, and the walk through what is unread. log.c tells
 * the story. */
#ifndef PATTERN_LOG_H
#define PATTERN_LOG_H

#include "pattern/chain.h"
#include "pattern/drive.h"
#include "pattern/edit.h"
#include "pattern/flow.h"
#include "pattern/hold.h"
#include "pattern/listing.h"

extern const struct flow_table log_table, log_heads, log_events, log_positions, log_parked;

#define LOG_SLOTS           16      /* of the index of news, at most */
#define LOG_PARTITIONS_MOST 1000000 /* at the beginning */
#define LOG_PARKED          (-1) /* the number of a group's own partition: parked events to be read again */
#define LOG_LEASE_MOST_MS   (24 * 3600 * 1000ll)
#define LOG_LEASE_USUAL_MS  30000
#define LOG_NUMBER_MOST     9007199254740991 /* 2^53 - 1: what every JSON reader can hold */
#define LOG_TOUCHED_S       5 /* a head says of its events when they came, so far back at the most */
#define LOG_ID_CHARS        10

/* All rows begin with the log; those of a consumer group go on with its name. */
enum { LOG_NAME, LOG_GROUP };
#define FIELD_LOG       FIELD_IN_PATH("log", 200, "the log")
#define FIELD_LOG_GROUP FIELD_IN_PATH("name", 200, "the group of consumers")

/* ---- log.c: the layout ---- */

/* When a server changes the number of partitions by itself; events a minute. */
struct log_scale {
    int64_t above;      /* so many split a partition; 0: nothing is done */
    int64_t below;      /* two neighbours that have less together are merged; 0: never */
    int64_t partitions; /* at most */
};

/* What the log's own item says. */
struct log_layout {
    int64_t partitions; /* at the beginning: 0 .. partitions - 1 share the hashes evenly */
    int64_t slots;
    int64_t version; /* grows with each split and merge; 0: there was none */
    int64_t next;    /* number of the next partition */
    int64_t keep_s;  /* of events; 0: for ever */
    struct log_scale scale;
    char id[LOG_ID_CHARS + 1];
    int64_t read_ms; /* when it was read */
    /* only where it was read just now: */
    struct slice created, change; /* change: the split or merge that is under way, SLICE_NONE: none */
};
/* Members of an answer: what PUT takes. */
struct slice log_settings(struct flow *flow, const struct log_layout *layout);
/* By the log's item. Where there is no such log the task ends with a refusal. */
void log_layout_read(struct flow *flow, struct slice item, struct log_layout *layout);
/* As it is. */
void log_layout_get(struct flow *flow, struct log_layout *layout);
/* As this process remembers it: true; else as it is. */
bool log_layout_guess(struct flow *flow, struct log_layout *layout);
void log_layout_forget(struct flow *flow);

struct log_range {
    uint64_t from, to; /* hashes, both of it */
    int64_t partition;
};
/* The partition that a hash belonged to at the beginning, with its range. */
struct log_range log_range_of(const struct log_layout *layout, uint64_t hash);
/* Of one of the first partitions. */
struct log_range log_range_first(const struct log_layout *layout, int64_t partition);
/* Of an item of the table: a route, or the head of a partition that was not among the first. */
bool log_range_read(struct flow *flow, struct slice item, struct log_range *range);
/* The partition that a hash belongs to now, with its range, or with a part of it. */
struct log_range log_route(struct flow *flow, const struct log_layout *layout, uint64_t hash);
/* This hash belongs elsewhere. */
void log_route_forget(struct flow *flow, const struct log_layout *layout, uint64_t hash);

/* What drives a group (drive.h). */
struct drive_thing log_drive_thing(struct flow *flow, struct slice group);

/* ---- log.c: keys and texts ---- */

/* Key of a partition's head and events, and of a slot: "LOG/ID/7"; of LOG_PARKED "LOG/ID/parked/GROUP". */
struct slice log_key(struct flow *flow, const struct log_layout *layout, int64_t partition);
/* Its number; LOG_PARKED where it has none. */
int64_t log_key_number(struct slice key);
/* "LOG/GROUP". */
struct slice log_group_key(struct flow *flow);
struct slice log_hex(struct flow *flow, uint64_t hash);
bool log_hex_read(struct slice text, uint64_t *out);
/* As people see a partition: "7", "parked". */
struct slice log_partition_text(struct flow *flow, int64_t partition);
/* The children that a seal names, as JSON strings, and how many there are. */
struct slice log_children_text(struct flow *flow, struct slice seal, unsigned *count);
/* The partition that a text means, also "parked" where it may; what is none ends the task with a refusal. */
int64_t log_partition_of(struct flow *flow, struct slice text, bool may_be_parked);
/* The key of an item of the table of logs: of the log, by its part; of the log itself; of the group. */
struct slice log_item_key(struct flow *flow, struct slice part);
#define LOG_KEY(flow)       log_item_key(flow, SLICE("log"))
#define LOG_GROUP_KEY(flow) log_item_key(flow, log_group_part(flow))
/* Something was appended, or became free to be read. */
uint64_t log_topic(const struct flow *flow);
_Noreturn void log_refuse_partition(struct flow *flow, int64_t partition);

/* ---- log_events.c: what a partition holds ---- */

/* A partition as a chain, with its tokens. */
struct chain log_chain(struct flow *flow, const struct log_layout *layout, int64_t partition);
/* An entry of it of plain data, answering what is wrong with that or NULL. */
const char *log_entry(struct flow *flow, struct slice key, struct slice data, struct slice *entry);

/* Where a page may be put behind, also where all pages have ended by their age. True: it is what this process
 * remembers. */
bool log_end_guess(struct flow *flow, const struct log_layout *layout, int64_t partition,
                   const struct chain *chain, struct chain_end *end);
/* Says of the partition, before something is put behind its end, that it has news. */
void log_touch(struct flow *flow, const struct log_layout *layout, int64_t partition,
               const struct chain *chain, const struct chain_end *end, size_t count);
/* The head; SLICE_NONE: nothing was ever put into the partition. Its `sequence` is at most the last number. */
struct slice log_head_get(struct flow *flow, const struct log_layout *layout, int64_t partition);

struct log_end {
    int64_t sequence, time_ms; /* of the last event; 0: there was none */
    bool is_sealed;
    struct slice seal;
};
struct log_end log_end_get(struct flow *flow, const struct log_layout *layout, int64_t partition);
/* The last number; it may be a little behind. 0: there is none. */
int64_t log_last_number(struct flow *flow, const struct log_layout *layout, int64_t partition);

/* Reads events one after the other, without those that have ended by their age:
 *     struct log_reader reader = {.layout = &layout, .partition = 3, .from = 17, .most = 100};
 *     while (log_read_event(flow, &reader)) ... reader.sequence, reader.key ... */
struct log_reader {
    const struct log_layout *layout;
    int64_t partition;
    int64_t from; /* the first number that is wanted */
    int64_t page; /* the `page_of` of the event before it, if that is known: spares a call; 0: it is not */
    int64_t most; /* so many are wanted; 0: all */
    bool rewinds; /* gives back all memory that was allocated since the first event, page by page */

    /* the event */
    int64_t sequence, time_ms;
    int64_t page_of;     /* where the next event stands or will stand: `page` of a reader from there on */
    struct slice key;    /* text */
    struct slice data;   /* attribute value */
    struct slice origin; /* of LOG_PARKED: attribute values, where it was parked, and why */
    struct slice reason;

    /* private */
    struct chain chain;
    struct chain_reader entries;
};
bool log_read_event(struct flow *flow, struct log_reader *reader);
/* Appends the event as JSON to the answer. */
void log_reader_put(struct flow *flow, const struct log_reader *reader);

/* ---- log_key.c: the events of one key, whatever partitions they are in ---- */

/* Reads them one after the other, by looking at all events of these partitions:
 *     struct log_key_reader reader = {.layout = &layout, .key = key, .hash = hash, .from = 18, .budget = 1000};
 *     while (log_key_read(flow, &reader)) ... reader.event.sequence ... */
struct log_key_reader {
    const struct log_layout *layout; /* as it is */
    struct slice key;
    uint64_t hash;
    int64_t from;   /* the first number that is wanted; behind the last one that was looked at */
    int64_t budget; /* how many events may still be looked at, of any key; 0: that is why there is no more */
    struct log_reader event;

    /* private */
    struct log_lineage *rest;
};
bool log_key_read(struct flow *flow, struct log_key_reader *reader);

/* ---- log_look.c: what is open ---- */

struct log_routes {
    struct log_range range;
    struct log_routes *next;
};
/* All items of the log: itself, its routes in the order of their hashes, and the names of its groups as JSON. */
struct slice log_items_read(struct flow *flow, struct log_routes **routes, struct slice *consumers);
/* The open partition of a hash. Hashes must come in order: routes that lie before are passed over. */
struct log_range log_open_at(const struct log_layout *layout, struct log_routes **routes, uint64_t hash);

/* ---- log_scale.c: what a server changes by itself ---- */

/* The field `scale` of PUT, which is given: what is wrong with it ends the task. */
struct log_scale log_scale_read(struct flow *flow, struct slice json, int64_t partitions);
/* As it is stored, as an attribute value, and back; as it is answered, as a member. */
struct slice log_scale_attribute(struct flow *flow, const struct log_scale *scale);
struct log_scale log_scale_of(struct flow *flow, struct slice item);
struct slice log_scale_member(struct flow *flow, const struct log_scale *scale);
/* Has servers look at the log, or no more, as the layout says. */
void log_scale_enter(struct flow *flow, const struct log_layout *layout);
/* What a server has measured; SLICE_NONE: nothing. */
struct slice log_scale_state(struct flow *flow, const struct log_layout *layout);
/* Members of an answer: the rate of a partition, and the last changes. */
struct slice log_scale_rate(struct flow *flow, struct slice state, int64_t partition);
struct slice log_scale_changes(struct flow *flow, struct slice state);

/* ---- log_change.c ---- */

struct log_change {
    unsigned old_count, new_count;
    int64_t olds[2];
    struct log_range news[2];
    bool has_at;
    uint64_t at; /* of a split: the first hash of the second child; else the middle */
};
/* Splits or merges. False: one of them is sealed, or the children would wait for too many. */
bool log_change_try(struct flow *flow, struct log_change *change);

/* A split or merge that is under way is brought to its end, whoever has begun it; the layout is not read again. */
void log_change_finish(struct flow *flow, const struct log_layout *layout);

/* ---- log_scan.c: what is unread ---- */

struct log_group {
    struct slice item; /* SLICE_NONE: there was none */
    int64_t turn, generation, since_ms;
    int64_t again; /* parked events are to be read again, up to this number; 0: none */
};

enum log_news {
    LOG_READ,   /* read to its end */
    LOG_UNREAD, /* there is something to read, most likely */
    LOG_UNSURE, /* log_scan_check finds out */
};

/* A partition that may have news, and where the group stands in it. */
struct log_candidate {
    enum log_news news; /* whoever finds out more about it says so here */
    int64_t partition;
    int64_t touched_s; /* by its head, as is the next */
    int64_t announced; /* something was put behind this number, or was about to be */
    unsigned slot;
    struct slice parents;
    struct slice item; /* the position's; SLICE_NONE: none */
    int64_t position;  /* -1: to be found by the group's `since` */
};

#define LOG_PAGE 25 /* candidates at a time */

struct log_scan {
    struct log_layout layout;
    struct log_group group;
    struct log_candidate candidates[LOG_PAGE]; /* of this page */
    unsigned count;

    /* private */
    bool parked_is_next, parked_is_read;
    unsigned slot, slots_done;
    struct slice last_key; /* of the slot's page; SLICE_NONE: the next one is the slot's first */
    int64_t overlap_s;     /* a mark is so far from the present */
    struct {
        bool is_walked;
        int64_t asked_s;  /* before the slot's first page was asked for; 0: it was not */
        int64_t unread_s; /* touched of the slot's first unread one; 0: none */
        int64_t passed_s; /* touched of the last read one before it */
        unsigned passed;  /* how many a new mark would spare */
    } slots[LOG_SLOTS];
};

/* A group that does not exist is made, or the task ends with a refusal. */
void log_scan_begin(struct flow *flow, struct log_scan *scan, bool makes_group);
/* The next page of candidates; false: there is none. What is said of the page before counts. */
bool log_scan_page(struct flow *flow, struct log_scan *scan);
/* Looks whether there is something to read where that is unsure. */
void log_scan_check(struct flow *flow, struct log_scan *scan);
/* Writes down how far the group has read everything, if that is worth a write. */
void log_scan_mark(struct flow *flow, struct log_scan *scan, unsigned worth);
/* The log's item and the group's, by one call. Without the log the task ends with a refusal. */
void log_group_get(struct flow *flow, struct log_layout *layout, struct log_group *group);
/* Positions of partitions, in their order; SLICE_NONE where there is none. */
void log_positions_get(struct flow *flow, const int64_t *partitions, unsigned count, struct slice *items);
/* The key of a position's item, which a consumer holds while it works. */
struct slice log_position(struct flow *flow, int64_t partition);
/* A position as it was read, but for what is left to do of parking an event of it (log_ack.c). */
struct slice log_park_finish(struct flow *flow, const struct log_layout *layout, int64_t partition,
                             struct slice item);
/* A group as it was read, but for what is left to do of a replay (log_replay.c). */
struct slice log_replay_finish(struct flow *flow, struct slice item);
/* Where the group stands by the position's item: -1 where that is to be found by `since`. */
int64_t log_position_of(struct flow *flow, const struct log_group *group, int64_t partition,
                        struct slice item);
/* Finds, by halves, the number of the last event before a time. */
int64_t log_position_before(struct flow *flow, const struct log_layout *layout, int64_t partition,
                            int64_t time_ms);
/* Before it nothing of the slot is unread; in seconds. */
int64_t log_mark(struct flow *flow, const struct log_group *group, int64_t slot);
/* "group/GROUP" */
struct slice log_group_part(struct flow *flow);
_Noreturn void log_refuse_group(struct flow *flow);

/* ---- rows of the other files ---- */

flow_step log_get_begin, log_key_begin, log_events_begin, log_append_begin, log_split_begin, log_merge_begin,
    log_read_begin, log_ack_begin, log_park_begin, log_replay_begin, log_lag_begin, log_parked_begin,
    log_delete_begin, log_leave_begin;
extern const struct field log_get_fields[3], log_key_fields[5], log_events_fields[4], log_append_fields[7],
    log_split_fields[3], log_merge_fields[2], log_read_fields[7], log_ack_fields[6], log_park_fields[6],
    log_replay_fields[6], log_lag_fields[2], log_parked_fields[4];

#endif
