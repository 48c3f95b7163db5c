/* What the files of targets share: functions that need no process (target.c, target_http.c, target_table.c,
 * target_queue.c) and destinations, which write into the same queues. */
#ifndef FUNC_TARGET_H
#define FUNC_TARGET_H

#include "base/raw.h"
#include "func/internal.h"

/* ---- target.c ---- */

/* The answer of an invocation that failed: {"errorType":..., "errorMessage":...} in the place of the reply.
 */
void target_fail(struct invocation *invocation, const char *type, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for one that cannot run here or now. */
void target_refuse(struct invocation *invocation, const char *why);
/* The same, where an event cannot be one transaction because it has too many records. */
void target_fail_too_many(struct invocation *invocation);
/* The event, {} where there is none. */
struct slice target_event(const struct invocation *invocation);

/* ---- the kinds; each fills end, reply and error_kind, and the first two do so before they return ---- */

void target_table(struct func *func, const struct function *function, struct invocation *invocation);
void target_queue(struct func *func, const struct function *function, struct invocation *invocation);
/* Answer later, with done. */
void target_pattern(struct func *func, const struct function *function, struct invocation *invocation);
void target_http(struct func *func, const struct function *function, struct invocation *invocation);

/* Whether the call of a pattern and its body can be understood; else a sentence is appended. */
bool target_pattern_is_sound(struct func *func, struct slice pattern, struct slice body, struct arena *arena,
                             struct buf *why);

/* ---- queues.c: the table of queues ---- */

/* Makes PREFIXqueues when it is not there; blocks. False when that fails. */
bool queues_make(struct func *func);
struct queues_message {
    struct slice queue, id, document;
    struct slice more; /* further attributes, ready and each with a comma before it, and their size */
    size_t more_bytes;
    int64_t now_ms;
};
/* Appends {"Put":{...}} for a document of a queue, into the table of queues or one of the user's. Answers the item's
 * size; 0, and nothing appended, when it is too large for an item. */
size_t queues_put(struct slice table, const struct queues_message *message, struct buf *members);
struct slice queues_table(const struct func *func, struct arena *arena);
/* Of a time as the attribute `sent` has it (moment_text); such texts are in the order of time. */
#define QUEUES_TIME_BYTES 24

#endif
