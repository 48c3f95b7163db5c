/* The commands that are more than calls through the library: the server, and a data folder looked at from
 * outside. */
#ifndef MAIN_MAIN_H
#define MAIN_MAIN_H

#include "cli/cli.h"

struct buf;

/* The help texts of all commands, see program_put_help. */
void main_put_help(struct buf *out);

extern const struct command command_serve, command_check, command_show, command_salvage;

#endif
