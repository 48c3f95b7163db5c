/* What the files of the library share. Everything that a program sees stands in include/quipu.h. */
#ifndef LIBRARY_INTERNAL_H
#define LIBRARY_INTERNAL_H

#pragma GCC visibility push(default) /* all else in libquipu is hidden */
#include <quipu.h>
#pragma GCC visibility pop
#include <stdatomic.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/raw.h"
#include "base/slice.h"
#include "dynamo/dynamo.h"
#include "pattern/pattern.h"

struct quipu {
    struct dynamo *dynamo;
    struct pattern *pattern;
    atomic_bool is_stopped; /* nobody waits any more */
};

/* A reply and what it points at. */
struct owned_reply {
    struct quipu_reply reply; /* the program's part, first */
    struct buf json;
    struct arena arena;
};

/* A call with a request that need not end in NUL. */
struct quipu_reply *library_call(struct quipu *db, struct slice operation, struct slice request);
/* Lets the reply show its JSON, which is complete. */
void library_show_json(struct owned_reply *owned);
/* The reply's JSON. */
struct slice library_json(const struct quipu_reply *reply);
/* Puts a failure in the place of a reply that makes no sense. */
struct quipu_reply *library_bad_reply(struct quipu_reply *reply, const char *what);

/* Sets a text that ends in NUL, which is not counted. */
void text_set(struct buf *buf, struct slice text);

/* ---- pattern.c ---- */

/* quipu_pattern with texts that need not end in NUL; the path has its query. */
struct quipu_reply *library_pattern(struct quipu *db, struct slice method, struct slice path,
                                    struct slice headers, struct slice body);
/* A reply of our own making, in the form of a pattern's. */
struct quipu_reply *library_refusal(int status, const char *code, const char *sentence);

/* ---- pages.c ---- */

/* The pages of a pattern's list. A fault (NULL: none) makes a list that fails with this sentence. */
struct quipu_pages *library_pages(struct quipu *db, struct slice path, const char *fault);

#endif
