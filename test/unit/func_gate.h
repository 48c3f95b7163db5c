/* A door before another one, for faults: it counts the calls that pass, can die at one of them, lets others act in
 * between, repeats writes as a door does whose replies get lost, and reads items one by one. */
#ifndef TEST_UNIT_FUNC_GATE_H
#define TEST_UNIT_FUNC_GATE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "dynamo/internal.h"

struct gate {
    struct dynamo door; /* first: the door is us */
    struct dynamo *inner;
    _Atomic unsigned calls;     /* so far, of all threads */
    _Atomic unsigned dies_at;   /* this call and all later ones fail; 0: never */
    bool dies_late;             /* this call still happens, but nobody hears of it */
    bool is_doubled;            /* each write happens twice, and the second reply is told */
    unsigned pages_of;          /* of each Query and Scan; 0: as large as may be */
    _Atomic unsigned acts_at;   /* before this call ... */
    void (*act)(void *context); /* ... somebody does this */
    void *context;
    _Atomic(const char *) keeps; /* requests that contain this text; NULL: none ... */
    struct buf kept;             /* ... the last of them */
};

/* Keeps the inner door. */
void gate_open(struct gate *gate, struct dynamo *inner);
void gate_close(struct gate *gate);

#endif
