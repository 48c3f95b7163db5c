/* The patterns' commands that are more than one call, see pattern_special.c. */
#ifndef CLI_SPECIAL_H
#define CLI_SPECIAL_H

#include "cli/cli.h"

int lease_run(const struct arguments *arguments);
int once_run(const struct arguments *arguments);
int work_run(const struct arguments *arguments);
int doc_edit(const struct arguments *arguments);
int job_start(const struct arguments *arguments);
int job_watch(const struct arguments *arguments);
/* lines.c: many from lines of standard input, where the command's words do not name one */
int log_append(const struct arguments *arguments);
int group_add_lines(const struct arguments *arguments);
int period_add_lines(const struct arguments *arguments);
int work_submit_lines(const struct arguments *arguments);
int log_read(const struct arguments *arguments);

#endif
