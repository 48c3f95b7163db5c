/* What the wall of the original shares with the boards. */
#ifndef PATTERN_BOARD_H
#define PATTERN_BOARD_H

#include "pattern/flow.h"

void board_put(struct flow *flow, flow_step *then, struct slice board, struct slice text);
/* A message has come: whoever waits for one may look. */
void board_wake(struct flow *flow, struct slice board);
/* A page of messages: `more` are further members of the Query, each behind a comma. */
void board_list(struct flow *flow, flow_step *then, struct slice board, struct slice more);
/* Deletes what is there now, then takes the step; flow->state is not the caller's any more. */
void board_delete(struct flow *flow, flow_step *then, struct slice board);
/* How many messages that were. */
size_t board_deleted(const struct flow *flow);

#endif
