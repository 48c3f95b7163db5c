/* Ctrl-C, noted. */
#include "cli/interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t has_come;

/* The second signal finds the usual reaction again, which is to end. */
static void note(int signal_number)
{
    (void)signal_number;
    has_come = 1;
}

void interrupts_catch(void)
{
    struct sigaction action = {.sa_handler = note, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool is_interrupted(void)
{
    return has_come != 0;
}
