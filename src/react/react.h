/* What the server does by itself when something changes: the reactions of patterns (reactions.c), and
 * histories of tables (histories.c).
 *
 * Changes reach us by watches (trigger.h), so they are handled once, by one server, whatever dies when; what
 * is written for them goes into the commit of the watch's position, under names that follow from the records. */
#ifndef REACT_REACT_H
#define REACT_REACT_H

#include "base/buf.h"
#include "func/func.h"
#include "pattern/pattern.h"
#include "trigger/trigger.h"

struct react;

struct react_options {
    struct pattern *pattern; /* kept, not owned, as are trigger and func */
    struct trigger *trigger;
    struct func *func;
    const char *region, *account; /* of ARNs */
    const char *prefix;           /* of the patterns' tables; NULL: "quipu-" */
};

/* Before or after trigger_start. */
struct react *react_open(const struct react_options *options);
/* Nothing is watched for any more that is not watched already. Before trigger_close. */
void react_stop(struct react *react);
/* After trigger_close. */
void react_close(struct react *react);
/* Lines for /metrics. */
void react_put_metrics(struct react *react, struct buf *out);

#endif
