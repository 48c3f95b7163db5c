/* What the files of task share. */
#ifndef TASK_INTERNAL_H
#define TASK_INTERNAL_H

#include "task/task.h"

/* Effects whose decision is known to have been made, by hashes of their marks: the last ones. */
struct task_applied {
    uint64_t decided[512];
    unsigned next;
};
/* The host's. */
struct task_applied *task_applied(void);
/* A call was refused because there are none. */
void task_has_no_transactions(void);

#endif
