/* Private to the room: see histories.c. */
#ifndef REACT_HISTORIES_H
#define REACT_HISTORIES_H

#include "pattern/pattern.h"
#include "trigger/trigger.h"

struct histories;

/* Both are kept. */
struct histories *histories_open(struct pattern *pattern, struct trigger *trigger);
/* Looks for no further ones. Before the triggers are closed, which may be answered until then. */
void histories_stop(struct histories *histories);
void histories_close(struct histories *histories);

#endif
