/* The commands that are more than calls through the library: the server, and a data folder looked at from
 * outside. */
#ifndef MAIN_MAIN_H
#define MAIN_MAIN_H

#include "cli/cli.h"

extern const struct command command_serve, command_check, command_show, command_salvage;

#endif
