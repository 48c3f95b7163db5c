/* Dead letters: messages of a queue that tell of a call which has failed, and keep it (letter.c). */
#ifndef FUNC_LETTER_H
#define FUNC_LETTER_H

#include "func/internal.h"

struct letter {
    struct slice queue, id, sent;
    struct func_call call; /* without an id */
    unsigned held;         /* in so many items of the table of calls; 0: in the letter itself */
    bool is_batch;         /* its payload has records of a stream */
};

/* Appends members that put a document of a queue and the call that it tells of (NULL: none). Answers their
 * number; 0, and nothing appended, when the document is too large for an item. A call that nobody could send
 * again, because it is too large for an asynchronous one, is left out. */
unsigned letter_put(struct func *func, struct slice queue, struct slice id, struct slice document,
                    const struct func_call *call, int64_t now_ms, struct buf *members);

/* Reads an item of the table of queues, JSON as the door has it, and what it holds elsewhere; blocks. NULL, or
 * a sentence why the message cannot be redriven. Everything is in the arena. *unreadable is set when the door
 * did not answer: then the sentence is only about now. */
const char *letter_read(struct func *func, struct slice item, struct arena *arena, struct letter *out,
                        bool *unreadable);
/* The id of the call that it becomes. */
void letter_call_id(const struct letter *letter, char id[UUID_BYTES]);
/* The action that removes it, on the condition that it is still there; and those that remove what it holds. */
struct slice letter_removal(const struct func *func, const struct letter *letter, struct arena *arena,
                            struct slice *removals);

#endif
