/* What the room's front asks of reactions. */
#ifndef REACT_REACTIONS_H
#define REACT_REACTIONS_H

#include "react/react.h"

#define REACT_QUEUE "reactions" /* in the table of queues: what could not be carried out, or has failed */
#define REACT_DEPTH 16          /* Lambda's own for functions that call themselves by way of others */

struct reactions;

struct reactions *reactions_open(const struct react_options *options);
/* After trigger_close: it is asked until then. */
void reactions_close(struct reactions *reactions);
void reactions_put_metrics(struct reactions *reactions, struct buf *out);

#endif
