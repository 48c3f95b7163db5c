/* JSON from formats: the text can be read in the source, with its values filled in.
 *
 * Formats are JSON with ' for ", in which
 *   %S struct slice   {"S":...}                 %N int64_t   {"N":"..."}
 *   %J struct slice   plain JSON as an attribute value
 *   %P struct slice   an attribute value as plain JSON
 *   %s struct slice   a string, in quotes       %d int64_t   a number     %b int   true or false
 *   %A struct slice   JSON that goes in as it is
 *   %r struct slice   text of an expression that goes in as it is, with #words of its own
 *   %#                "ExpressionAttributeNames":{...} for all #words since the last %# or the start
 *   %O                "ReturnValuesOnConditionCheckFailure":"ALL_OLD"
 *   %,                a comma, where something stands before it in the same object or array
 *   %[ ... %]         what stands between is left out where a slice of it is not there
 *   %? int            within such: and where this is 0
 *   %%                %
 * Outside of %[ %] a slice that is not there counts as empty. Integers must be passed as int64_t, whatever their size.
 * Formats are literals: each is read once and remembered. Write attribute names as #words in expressions: many good
 * words are reserved. */
#ifndef BASE_COMPOSE_H
#define BASE_COMPOSE_H

#include <stdarg.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/slice.h"

/* Appends to the buf. */
void compose(struct buf *out, const char *format, ...);
void compose_list(struct buf *out, const char *format, va_list args);
/* The text, in the arena. */
struct slice compose_in(struct arena *arena, const char *format, ...);

/* For who has placeholders of his own. */
struct composer {
    struct buf *out;
    struct arena *arena;
    void (*put_other)(struct composer *composer, char kind, va_list *args); /* NULL: there are no others */
    /* private */
    struct slice names[48]; /* #words since the last %#, each once */
    unsigned name_count;
    size_t segment_start;   /* where the text of the last %[ began, */
    unsigned segment_names; /* ... how many names there were then, */
    bool is_lacking;        /* ... and something that it needs is not there */
};
void compose_with(struct composer *composer, const char *format, va_list args);

#endif
