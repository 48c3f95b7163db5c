/* Chains: entries in one order, numbered without a gap, by conditional writes to single items.
 *
 * A chain is all items of one hash key. Each is a page, which never changes, and stands at the number of its first
 * entry; the first of all has the number 1, or another one that the pattern chooses. To append is to put a page behind
 * the last one that was read, if nothing is there. Whoever loses that race has changed nothing, and reads the page that
 * won in the reply.
 *
 *  U1. A page is put only behind one that was read. So numbers have no gap, and none is given twice.
 *  U2. A seal is a page without entries, behind which nothing is put.
 *  U3. What was put is recognised by its id. So a put that is repeated after a lost reply appends nothing twice.
 *  U4. The tokens of all pages but the last are written down as items of their own, and those of the last before
 *      anything is put behind it. So an entry with a token was appended if, and only if, the token has an item or
 *      stands in the last page. Whoever asks reads the last page first, or goes by an end that was read before.
 *  U5. The time of a page is never less than that of the page before.
 *  U6. A page lives CHAIN_LATE_S longer than its entries are kept. So whoever comes back with an end that it has read
 *      less than that long ago still finds the page that was put behind it.
 *  U7. Where tokens have no items, an entry is not appended if a page that was put behind `end` has its token. So it
 *      is appended once, by however many, if all of them give an end that was read before the first of them began.
 *
 * Attributes have short names, because each page pays for them: `chain` (S) and `first` (N) are the keys; `n` (N): how
 * many entries; `e` (L): the entries, whatever values the pattern makes of them; `t` (N, ms): the time of all of them;
 * `c`: a note of the pattern's; `i` (N): the id; `k` (M): a token's name: "OFFSET MARK" (S), where the mark is the
 * pattern's; `s`: what a seal says; `expires` (N, s).
 *
 * All functions here wait: they are for tasks. */
#ifndef PATTERN_CHAIN_H
#define PATTERN_CHAIN_H

#include "pattern/flow.h"

/* Of a table's definition: nothing but chains is in it, or its other items have the same keys. */
#define CHAIN_KEYS "chain first:N"

#define CHAIN_PAGE_BYTES                                                                                     \
    (256 * 1000) /* of a page's request: who loses a race or begins within a page reads all of it */
#define CHAIN_LATE_S 3600

/* Entries that are appended together, in one page, or refused together, if the pattern says so (chain.check). */
struct chain_together {
    size_t bytes; /* of all of them; no more than a page has */
    bool waits;   /* not in the same page as those before: it depends on them */
    bool is_refused;
};

struct chain_end;
struct chain_entry;

struct chain {
    const struct flow_table *table;
    struct slice key;
    const char *token_kind; /* of tokens.h; NULL: tokens have no items (U7) */
    struct slice token_name;
    int64_t keep_s; /* how long entries are kept, where the table's expiry is "expires"; 0: for ever */
    int64_t
        recalled_ms; /* an end that was remembered longer ago is read again; 0: after a quarter of an hour */
    /* Called before each page is made that is to be put behind this end; it decides on entries that have a `together`.
     * So what it decides holds if, and only if, the page is put. NULL: none has one. */
    void (*check)(struct flow *flow, const struct chain *chain, const struct chain_end *end,
                  struct chain_entry *entries, size_t count);
    void *context; /* for it */
};

/* Where a chain ended when it was read. */
struct chain_end {
    int64_t next;        /* number of the next entry */
    int64_t first;       /* of the last page; 0: there is none */
    int64_t time_ms;     /* of the last page; 0 */
    bool is_sealed;      /* the last page is a seal, */
    struct slice seal;   /* ... which says this: an attribute value */
    struct slice tokens; /* of the last page, which may have no items yet; SLICE_NONE: they have */
    struct slice note;   /* of the last page: an attribute value; SLICE_NONE: it has none */
};

struct chain_entry {
    struct slice value;       /* an attribute value as text: {"S":"x"} */
    struct slice token, mark; /* SLICE_NONE: none; the mark is text of the pattern's choice without quotes */
    struct chain_together *together; /* NULL: it is appended whatever happens */
    /* what became of it */
    int64_t number;          /* 0: it was not appended */
    bool is_repeated;        /* by an earlier call, or entry: there the token has the number, */
    struct slice first_mark; /* ... and this mark; */
    struct slice
        chain; /* the key of the chain that it is in, where that is another one of the same tokens; else
                              * SLICE_NONE, or this one's */

    const struct chain_entry *twin; /* private: the first of the same token */
};

/* By one backward Query. */
void chain_read_end(struct flow *flow, const struct chain *chain, struct chain_end *end);
/* As this process remembers it from its last append, else by that Query. Good enough for an append and a seal, which
 * notice when it is wrong. True: it is remembered. */
bool chain_guess_end(struct flow *flow, const struct chain *chain, struct chain_end *end);
/* Only if it is remembered. */
bool chain_recall_end(struct flow *flow, const struct chain *chain, struct chain_end *end);
void chain_forget_end(struct flow *flow, const struct chain *chain);
/* Appends all entries in their order, in as many pages as they need; `end` moves on with them. False: the chain was
 * sealed before all were appended. */
bool chain_append(struct flow *flow, const struct chain *chain, struct chain_end *end,
                  struct chain_entry *entries, size_t count);
/* Puts one page right behind the end, or none: its entries, `count` attribute values with commas between them, and a
 * note (SLICE_NONE: none). False: another page is there. The end moves behind the page that there is. */
bool chain_put(struct flow *flow, const struct chain *chain, struct chain_end *end, struct slice values,
               size_t count, struct slice note);
/* Reads the pages behind `end`, which moves on with them, and finds the entries whose token one of them has: all pages,
 * unless all entries are found before. */
void chain_catch_up(struct flow *flow, const struct chain *chain, struct chain_end *end,
                    struct chain_entry *entries, size_t count);
/* Puts a seal that says this, an attribute value; where one is there already, that one stays. Afterwards `end` is the
 * seal that there is. It ends after keep_s; 0: never. */
void chain_seal(struct flow *flow, const struct chain *chain, struct chain_end *end, struct slice says,
                int64_t keep_s);

/* The seal that there is ends after keep_s. */
void chain_expire(struct flow *flow, const struct chain *chain, const struct chain_end *end, int64_t keep_s);

/* Reads entries one after the other:
 *     struct chain_reader reader = {.chain = &chain, .from = 17};
 *     while (chain_read(flow, &reader)) ... reader.number, reader.value ... */
struct chain_reader {
    const struct chain *chain;
    int64_t from;   /* the first number that is wanted; backwards the last one, INT64_MAX: the chain's end */
    int64_t page;   /* number of the page that holds it, if that is known; 0: it is not */
    int64_t most;   /* so many entries are wanted; 0: all */
    bool backwards; /* from the end to the beginning */
    bool rewinds;   /* gives back all memory that was allocated since the first chain_read, page by page */

    /* the entry */
    int64_t number, time_ms;
    int64_t first;      /* of its page */
    struct slice value; /* SLICE_NONE: there is none any more */
    bool is_last_of_page;
    int64_t told; /* how many there were; whoever does not count one takes it off */

    /* private */
    bool has_begun, has_more;
    int64_t next;         /* where the next Query begins */
    struct raw_look look; /* over the pages of the last one */
    struct slice *values; /* of the page that is being read */
    int64_t count, at;
    int64_t pages_read, entries_read;
    struct arena_mark mark;
};
bool chain_read(struct flow *flow, struct chain_reader *reader);

/* Deletes pages all of whose entries have numbers below this one, but never the last page: the chain goes on. */
void chain_trim(struct flow *flow, const struct chain *chain, int64_t number);
/* Deletes all pages. */
void chain_remove(struct flow *flow, const struct chain *chain);

#endif
