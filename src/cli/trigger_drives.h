/* Triggers that are no mappings: the server calls a function with what a log or a queue of work has (log:orders,
 * work:mails). */
#ifndef CLI_TRIGGER_DRIVES_H
#define CLI_TRIGGER_DRIVES_H

#include "cli/cli.h"
#include "cli/listing.h"
#include "cli/service.h"

/* Whether the first word names one: "log:LOG[:CONSUMER]" or "work:QUEUE". */
bool trigger_is_drive(const struct arguments *arguments);
/* Commands for such a one. `settings` as the flags say. */
int trigger_drive_add(const struct arguments *arguments);
int trigger_drive_set(const struct arguments *arguments);
int trigger_drive_show(const struct arguments *arguments);
int trigger_drive_pause(const struct arguments *arguments, bool is_paused);
int trigger_drive_remove(const struct arguments *arguments);
/* Rows of 'trigger ls'. False after complaining. */
bool trigger_drives_list(struct service *service, struct arena *arena, struct listing *listing);

#endif
