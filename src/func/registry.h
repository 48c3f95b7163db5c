/* What the files of the registry share with each other and with Lambda's API: entries, changes, code.
 *
 * The table PREFIXfunctions has the hash key `name` and the range key `part`, both strings. One function is
 * an item `function`, its *head*, and the items that the head names, each a document (document.h):
 *
 *   function         Stamp, Parts, LastVersion, Tags, ReservedConcurrentExecutions, RecursiveLoop, Recent
 *   $LATEST, 1, 2..  a version's configuration, in the words of Lambda's API; Revision counts its changes
 *   alias:NAME       FunctionVersion, RoutingConfig, Description
 *   async:QUALIFIER  how asynchronous calls are retried and where they end up
 *   policy:QUALIFIER the statements of AddPermission
 *   runtime:QUALIFIER  PutRuntimeManagementConfig's
 *   url:QUALIFIER    its URL: UrlId, AuthType, InvokeMode, Cors
 *
 * The range key of a part is its name, "@" and the mark of the change that wrote it: alias:live@19a8c2f0e1b-5f3c9d21.
 * The head's Parts has each part's mark. (A head without Parts is of an older table: it names all parts without a
 * mark, and an empty mark in Parts stands for one of those.)
 *
 * `*layer:NAME` is a layer: its versions' parts are 1, 2.., its head has Stamp, Parts and LastVersion.
 *
 * Two names are none of either: `*code` has an item for each archive (part: its SHA-256 in base64), whose
 * bytes are in PREFIXcode; `*changes` has one item that moves with every change, for servers that share.
 *
 * Invariants:
 *  G1. The head decides. A change puts its parts under its own mark, which nobody else has; then it replaces the
 *      head, by one write on the condition that the Stamp is the one that was read; then it removes what the head
 *      names no more. So nobody overwrites what he has not seen, parts never change, and who finds all parts that
 *      a head names has the function as it was at one moment.
 *  G2. What is in memory was read from the table; reading a name and publishing it happen as one step, so
 *      memory never goes back.
 *  G3. An archive is removed only when no version names it, nobody here is about to, and (with other servers)
 *      nobody has touched it for an hour.
 *  G4. A Stamp only grows. A function that is deleted leaves its head, with Gone, for an hour: a creation that was
 *      begun before, or comes late, finds another Stamp than it knows.
 *  G5. A part that no head names is of a change that is under way, has lost, or has died. It is removed by whoever
 *      has seen it and moved the Stamp since: then its change cannot come through any more. */
#ifndef FUNC_REGISTRY_H
#define FUNC_REGISTRY_H

#include "base/limits.h"
#include "func/document.h"
#include "func/internal.h"

#define PART_FUNCTION "function" /* the head */
#define PART_LATEST   "$LATEST"
#define PART_ALIAS    "alias:"
#define PART_ASYNC    "async:"
#define PART_POLICY   "policy:"
#define PART_RUNTIME  "runtime:"
#define PART_URL      "url:"

#define LAYER_PREFIX    "*layer:"   /* of an entry's name: it is a layer; parts: `function`, 1, 2.. */
#define FUNCTIONS_BEGIN SLICE("+")  /* names of functions sort behind it, those of layers before */
#define LAYER_HASHES    "LayerCode" /* of a version's document: the archives of its layers */

/* ---- entries: all that the table has of one name; immutable and counted ---- */

struct part {
    struct slice name;
    struct slice mark; /* of the change that wrote it; empty: of an older table, or the head */
    struct document document;
    struct function *function; /* of a version; owned */
};

struct entry {
    struct slice name;
    uint64_t stamp;     /* 0: there is no head, nor has there been one lately */
    struct part *parts; /* in the order of their names; none: there is no such function */
    uint32_t count;
    bool has_urls;
    struct slice *strays; /* range keys of parts that the head does not name (G5) */
    uint32_t stray_count;
    struct slice recent; /* marks of the last changes, the newest first, each with a blank behind it */
    struct arena arena;
    _Atomic uint32_t references;
};

struct entry *entry_keep(struct entry *entry);
void entry_release(struct entry *entry); /* NULL is fine */
const struct part *entry_part(const struct entry *entry, struct slice name);
/* "alias:" and "live", ...; the name is looked up without making text. */
const struct part *entry_part_of(const struct entry *entry, const char *prefix, struct slice qualifier);
/* The part of a version, or of an alias where the qualifier is none: NULL when there is neither. */
const struct part *entry_qualified(const struct entry *entry, struct slice qualifier);
bool part_is_version(const struct part *part);
/* The part's name behind the prefix; NULL data when it has another one. */
struct slice part_suffix(const struct part *part, const char *prefix);
/* Versions by number, $LATEST first: an array in the arena. */
const struct part **entry_versions(const struct entry *entry, struct arena *arena, uint32_t *count);

/* ---- the registry ---- */

/* An archive that a request is about to name. The hash is the claim's own: the request may be answered, and
 * gone, before its claim is. */
struct code_claim {
    char sha256[48];
    struct code_claim *next;
};

struct registry {
    struct func *func;
    struct slice functions_table, code_table; /* names */
    const char *folder;                       /* absolute, of unpacked archives */
    pthread_mutex_t lock;                     /* of all below */
    struct entry **entries;                   /* in the order of their names */
    uint32_t count, room;
    struct random random;
    struct code_claim *claims;
    uint32_t removals; /* functions that were deleted here */
    pthread_mutex_t reading; /* held from reading a name to publishing it (G2) */

    /* with other servers: a thread that looks at the tables again */
    pthread_t refresher;
    pthread_cond_t wake;
    bool ending, is_wanted; /* wanted: a name was asked for that is not known */
    pthread_mutex_t refreshing;
    int64_t changes_seen; /* under `refreshing` */
    struct arena arena;
};

/* A text like 8b9a79f0-5c1e-4d0f-9c2b-0d6f5d3c9a11. */
struct slice registry_uuid(struct registry *registry, struct arena *arena);
/* "2026-11-15T03:42:06.123+0000", as Lambda writes times. */
struct slice registry_time_text(int64_t ms, struct arena *arena);

/* The name as the table has it now, counted; NULL when there is none, or the table could not be read. */
struct entry *registry_read(struct registry *registry, struct slice name, bool *failed);
/* The same as last seen, where nobody else changes it. */
struct entry *registry_look(struct registry *registry, struct slice name, bool *failed);
/* All names behind `after`, in order, at most `max`: counted, in the arena. Functions begin behind
 * FUNCTIONS_BEGIN; behind "" there are the layers, too. */
struct entry **registry_list(struct registry *registry, struct slice after, uint32_t max, struct arena *arena,
                             uint32_t *count);
/* Reads all names again. Those that have strays, or nothing but a head that is Gone, are appended to `untidy`, each
 * with a zero behind it; NULL: nobody wants to know. */
bool registry_read_all(struct registry *registry, struct buf *untidy);
/* The same where other servers have changed something since. */
bool registry_refresh(struct registry *registry);
/* Removes what nobody needs any more, from what the tables have now: what dead changes have left, heads that are Gone,
 * archives. Only what is old, unless nobody else can be changing anything. False: the tables cannot be read. */
bool registry_housekeep(struct registry *registry, bool is_alone);
uint32_t registry_size(struct registry *registry);

/* ---- registry_index.c: what is in memory ---- */

/* Takes the entry over; whoever has the `reading` lock. An entry without parts removes the name. */
void registry_publish(struct registry *registry, struct entry *entry);
struct entry *registry_known(struct registry *registry, struct slice name); /* counted, or NULL */

/* ---- registry_read.c: items into entries ---- */

/* As registry_read, but an entry also where there is no function: its stamp and strays. NULL: it failed. */
struct entry *registry_read_anyway(struct registry *registry, struct slice name);

/* ---- registry_change.c: changes ---- */

/* Calls the door; a missing table is made when `makes_tables`, and the call repeated. */
struct dynamo_reply registry_call(struct registry *registry, struct arena *arena, const char *operation,
                                  bool makes_tables, struct slice request);
/* The most that a change puts or deletes one by one: an alias and what is set for it. */
#define CHANGE_PARTS_MAX 5

struct change {
    struct registry *registry;
    struct slice name;
    struct arena *arena;
    struct entry *seen;         /* what was read, with its stamp and strays */
    const struct entry *before; /* the same; NULL: there is no such function */
    struct document head;       /* to be changed, written with every change */
    struct {
        struct slice name;
        struct document document;
        bool is_deleted;
    } parts[CHANGE_PARTS_MAX];
    uint32_t count;
    bool removes; /* the function itself */
    uint64_t stamp;
    char mark[32];
    struct entry *after; /* when committed; NULL: it is gone */
};

enum change_end {
    CHANGE_DONE,
    CHANGE_AGAIN, /* somebody else was faster: read and try again */
    CHANGE_FAILED,
};

/* Reads the function; false when that failed. Ended with change_free in any case. */
bool change_begin(struct change *change, struct registry *registry, struct slice name, struct arena *arena);
void change_put(struct change *change, struct slice part, const struct document *document);
void change_delete(struct change *change, struct slice part);
enum change_end change_commit(struct change *change);
void change_free(struct change *change);

/* Removes what dead changes have left, of names that registry_read_all found untidy (G4, G5): only what is old, so that
 * changes under way are not disturbed, unless nobody else can be changing anything. */
void registry_tidy(struct registry *registry, struct slice untidy, bool is_alone);
/* How often anything was changed, ever, for servers that share; -1 when it cannot be known. Ends changes of servers
 * that have died. */
int64_t registry_changes(struct registry *registry);

/* ---- registry_code.c: archives ---- */

/* From here on nobody in this process removes the archive. */
void code_claim(struct registry *registry, struct code_claim *claim, struct slice sha256);
void code_unclaim(struct registry *registry, struct code_claim *claim);
/* Stores the archive, or only says that it is needed when it is there; bytes without data: it must be. */
bool code_store(struct registry *registry, struct slice sha256, struct slice bytes);
bool code_load(struct registry *registry, struct slice sha256, struct buf *bytes);
/* The folder of the unpacked archive, in the arena; it need not be there. */
struct slice code_folder(struct registry *registry, struct slice sha256, struct arena *arena);
/* Unpacks it where it is not yet. False, with a line in the log, when that could not be done. */
bool code_unpack(struct registry *registry, struct slice sha256);
/* Removes the archive when nobody needs it any more (G3). */
void code_sweep(struct registry *registry, struct slice sha256);
void code_sweep_all(struct registry *registry);
/* Removes unpacked folders that no function uses; at the start only, when no process runs in one. */
void code_sweep_folders(struct registry *registry);
/* Base64 of the SHA-256 of some bytes, as CodeSha256 shows it. */
struct slice code_sha256(struct slice bytes, struct arena *arena);

/* ---- layers.c: archives that functions share ---- */

/* The hashes of a version's layers, in their order: how many. */
uint32_t layers_read(const struct document *document, struct arena *arena,
                     struct slice hashes[static LIMIT_LAYERS]);
/* The folder with all layers of a version, merged, in the arena; made where it is not there. Empty: it has
 * none. */
struct slice layers_folder(struct registry *registry, const struct document *document, struct arena *arena);
/* The bytes of all files in a folder. */
uint64_t layer_size(struct slice folder);

#endif
