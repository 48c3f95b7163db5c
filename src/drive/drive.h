/* Drivers: what the server does by itself for things that were told to be driven. It takes a unit (of a queue, of a
 * log, of a job), calls a target for it (a function, a URL, a pattern), and writes down what became of it.
 *
 * A driver is a client of the patterns like any other: it claims, beats, finishes and fails by the calls that
 * everybody can make (/v1/work/..., /v1/logs/..., /v1/leases/...), only in this process and on tasks, so no thread
 * waits for any of it. What is decided is decided there. The driver keeps nothing that must last.
 *
 * Invariants:
 *  DR1. A unit is called at least once, and as often as the pattern's rules allow: a call under way when its server
 *       dies is made again.
 *  DR2. No more calls of a thing are begun at a time than its concurrency says, over all servers, as far as their
 *       clocks agree: it is cut into shares, and only the holder of a share's lease begins calls in its seats
 *       (share.c).
 *  DR3. What is paused, gone, or whose server stops begins no further call; those under way are brought to their
 *       end. */
#ifndef DRIVE_DRIVE_H
#define DRIVE_DRIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "dynamo/dynamo.h"
#include "func/func.h"
#include "pattern/pattern.h"

struct drive;

struct drive_options {
    struct dynamo *dynamo; /* kept, not owned, as are all others */
    struct pattern *pattern;
    struct func *func;
    const struct clock *clock;
    bool
        shared; /* other servers may drive, too, and this one has no lease by being the only one that has the data */
};

struct drive *drive_open(const struct drive_options *options);
/* Begins to drive what there is, and what comes: when functions can run. */
void drive_start(struct drive *drive);
/* Begins nothing more. */
void drive_stop(struct drive *drive);
/* Waits so long for calls under way. */
void drive_rest(struct drive *drive, int64_t wait_ms);
/* Before functions and patterns are closed. What is still under way is left to whoever comes next. */
void drive_close(struct drive *drive);
/* The tasks of a job whose target this server is calling now: JSON, a comma between them. */
void drive_put_running(struct drive *drive, struct slice job, struct buf *out);
/* Lines for /metrics. */
void drive_put_metrics(struct drive *drive, struct buf *out);

#endif
