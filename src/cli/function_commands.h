/* What the files of quipu function share. */
#ifndef CLI_FUNCTION_COMMANDS_H
#define CLI_FUNCTION_COMMANDS_H

#include "cli/service.h"

#define FUNCTIONS_PATH "/2015-03-31/functions"

int function_add(const struct arguments *arguments);
int function_invoke(const struct arguments *arguments);
int function_debug(const struct arguments *arguments);
int function_logs(const struct arguments *arguments);
int function_publish(const struct arguments *arguments);
int function_alias(const struct arguments *arguments);
int function_url(const struct arguments *arguments);

#endif
