/* What SIGTERM and SIGINT do: the first begins an orderly end, a second one ends the process at once. */
#ifndef MAIN_STOP_H
#define MAIN_STOP_H

/* From now on the first signal has `orderly` called, once, on a thread of its own; it may take its time. */
void stop_expect(void (*orderly)(void *context), void *context);
/* Waits for `orderly` if it has been begun, and has it never called if not. */
void stop_settle(void);

#endif
