/* All items of a table, read by several threads at the same time. */
#ifndef CLI_SWEEP_H
#define CLI_SWEEP_H

#include "cli/place.h"

#define SWEEP_SEGMENTS 4

struct sweep {
    const struct place *place;
    const char *table;
    const char *projection; /* members to add to the request: a projection and its names; NULL: whole items */
    unsigned segments;
    /* Takes an item; false ends the sweep. Called by several threads at the same time. */
    bool (*take)(void *context, struct slice item);
    /* Called some ten times a second by the caller's thread; NULL: not. */
    void (*tick)(void *context, unsigned long long items);
    void *context;
};

/* Reads everything; failures that pass are waited for. False when it could not, after complaining. */
bool sweep_run(const struct sweep *sweep);

#endif
