/* How the typed functions of patterns are made: a request is put together, run, and its reply taken apart.
 *
 *     struct ask ask;
 *     ask_begin(&ask, db, reply, "POST", "/v1/counters/" "*", name);
 *     ask_int(&ask, "by", by);
 *     if (ask_run(&ask) > 0) told_int(&ask, "value", 0, value);
 *     return ask_end(&ask);
 *
 * Input that would make another request than it should (an empty name, JSON that is none) is a fault: the
 * request is not made, and the reply says why. */
#ifndef LIBRARY_ASK_H
#define LIBRARY_ASK_H

#include "library/internal.h"

struct ask {
    struct quipu *db;
    const char *method;
    struct buf path, headers, body;
    bool has_query, has_members;
    const char *fault; /* a sentence; NULL: none */
    struct quipu_reply *reply, **slot;
    enum quipu_result result;
};

/* ---- the request ---- */

/* Each * in the path is the next argument, a const char *. */
void ask_begin(struct ask *ask, struct quipu *db, struct quipu_reply **slot, const char *method,
               const char *path, ...);
/* A request without anything more. */
enum quipu_result ask_plain(struct quipu *db, struct quipu_reply **slot, const char *method, const char *path,
                            ...);
/* Members of the body. Texts and JSON that are NULL, and what ask_some has as 0, are left out. */
void ask_text(struct ask *ask, const char *name, const char *text);
void ask_texts(struct ask *ask, const char *name, const char *const *texts, size_t count);
void ask_json(struct ask *ask, const char *name, const char *json);
void ask_int(struct ask *ask, const char *name, int64_t value);
void ask_some(struct ask *ask, const char *name, int64_t value);
void ask_true(struct ask *ask, const char *name, bool value); /* false: left out */
void ask_moment(struct ask *ask, const char *name, int64_t time_ms);
/* The members of another one as an object, unless it has none; that one is used up. */
void ask_object(struct ask *ask, const char *name, struct ask *object);
void ask_element(struct ask *ask, struct ask *object); /* the same in a list of the caller's; {} for none */
/* A list of `count` objects, each with the members that `put` gives it. */
void ask_each(struct ask *ask, const char *name, const void *all, size_t count,
              void (*put)(struct ask *element, const void *all, size_t number));
/* A reaction, or another target: a name or a URL, an object, or a list. */
void ask_target(struct ask *ask, const char *name, const char *target);
void ask_then(struct ask *ask, const char *then);
/* Further members of the body, by the caller: "name": is there already. */
struct buf *ask_member(struct ask *ask, const char *name);
void ask_whole(struct ask *ask, const char *json); /* instead of members */
void ask_query(struct ask *ask, const char *name, const char *text);
void ask_query_some(struct ask *ask, const char *name, int64_t value);
void ask_query_ms(struct ask *ask, const char *name, int64_t ms); /* 0: left out */
void ask_query_moment(struct ask *ask, const char *name, int64_t time_ms);
void ask_header(struct ask *ask, const char *name, const char *text);

/* ---- running it ---- */

enum quipu_result ask_run(struct ask *ask);
/* Again and again until the time is over (negative: for ever) or `is_over` says that there is nothing to wait
 * for; what is waited with is a member of the body or of the query. */
enum quipu_result ask_run_waiting(struct ask *ask, int64_t wait_ms, bool in_query,
                                  bool (*is_over)(struct ask *ask));
/* As it went; hands the reply over. */
enum quipu_result ask_end(struct ask *ask);
/* A request that is a listing, as its pages; the same for one without anything more. */
struct quipu_pages *ask_pages(struct ask *ask);
struct quipu_pages *ask_list(struct quipu *db, const char *path, ...);

/* ---- the reply ---- */

/* Of the reply, and as long as it. */
struct arena *ask_arena(struct ask *ask);
/* The raw text of a member; empty where there is none. */
struct slice told(struct ask *ask, const char *name);
/* All set what `out` points at, unless it is NULL. */
void told_int(struct ask *ask, const char *name, int64_t otherwise, int64_t *out);
bool told_true(struct ask *ask, const char *name);
int64_t told_moment(struct ask *ask, const char *name); /* 0: none */
/* The place of the text among words, the last of which is NULL; 0 when it is none of them. */
int told_word(struct ask *ask, const char *name, const char *const *words);
/* The characters of a string; the text of any JSON. NULL where there is none, or no slot that keeps it. */
const char *told_text(struct ask *ask, const char *name);
const char *told_json(struct ask *ask, const char *name);

/* The same of raw texts. */
int64_t part_number(struct slice raw, int64_t otherwise);
const char *part_json(struct ask *ask, struct slice raw);
const char *part_text(struct ask *ask, struct slice raw);
int64_t part_moment(struct ask *ask, struct slice raw);

#endif
