/* What trigger.c, the consumer and mappings ask of watches. */
#ifndef TRIGGER_WATCH_H
#define TRIGGER_WATCH_H

#include "trigger/internal.h"

struct watches *watches_open(struct trigger *trigger);
/* From here on streams are looked for and handed to the consumer, which must run. */
void watches_start(struct watches *watches);
/* No stream is looked for any more. Before the consumer is closed. */
void watches_halt(struct watches *watches);
/* After the consumer was closed: what it still holds is answered by nobody. */
void watches_close(struct watches *watches);
/* Looks for all streams now, and waits for it: what they hold is then the consumer's to tell. */
void watches_look(struct watches *watches);

/* Of a mapping: */
void watch_release(struct watch *watch);
const char *watch_name(const struct watch *watch);
bool watch_puts_first(const struct watch *watch);
/* As func_invoke; it is done when this returns, unless the watch waits. */
void watch_invoke(struct watch *watch, struct invocation *invocation);

#endif
