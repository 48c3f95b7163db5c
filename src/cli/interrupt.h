/* Ctrl-C for commands that end in order: they look whether it was typed. A second one ends them at once. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <stdbool.h>

/* From now on SIGINT and SIGTERM are told by is_interrupted, once each. */
void interrupts_catch(void);
bool is_interrupted(void);

#endif
