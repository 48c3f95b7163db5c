/* What the files of the queue share. The story stands in queue.c, the table in queue_item.c. */
#ifndef FUNC_QUEUE_H
#define FUNC_QUEUE_H
#include "func/internal.h"
/* Begins nothing more; what is under way goes on to its end. */
void queue_stop(struct queue *queue);
#endif
