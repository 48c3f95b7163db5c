/* What the wall of the original shares with the boards. */
#ifndef PATTERN_BOARD_H
#define PATTERN_BOARD_H

#include "pattern/flow.h"

/* For tasks. */
void board_put(struct flow *flow, struct slice board, struct slice text);
/* A message has come: whoever waits for one may look. */
void board_wake(struct flow *flow, struct slice board);
/* Reads a page of messages: `more` are further members of the Query, each behind a comma. */
void board_list(struct flow *flow, struct slice board, struct slice more, struct slice from);
/* Deletes what is there now, and answers how many messages that were. */
int64_t board_delete(struct flow *flow, struct slice board);

#endif
