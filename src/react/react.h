/* What the patterns do by themselves when something changes: histories of tables.
 *
 * Changes reach us by watches (trigger.h), so they are handled once, by one server, whatever dies when; what
 * is written for them is in one transaction with the watch's position. */
#ifndef REACT_REACT_H
#define REACT_REACT_H

#include "pattern/pattern.h"
#include "trigger/trigger.h"

struct react;

struct react_options {
    struct pattern *pattern; /* kept, not owned, as is trigger */
    struct trigger *trigger;
};

/* Before or after trigger_start. */
struct react *react_open(const struct react_options *options);
/* Nothing is watched for any more that is not watched already. Before trigger_close. */
void react_stop(struct react *react);
/* After trigger_close. */
void react_close(struct react *react);

#endif
