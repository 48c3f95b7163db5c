/* A server on the loopback that does to each request what a script says: answers it, closes, hangs, or talks
 * nonsense. Connections are served one after the other; when the script is at its end, the last step goes on.
 */
#ifndef TEST_UNIT_DYNAMO_SCRIPTED_H
#define TEST_UNIT_DYNAMO_SCRIPTED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum scripted_deed { DEED_REPLY, DEED_CLOSE, DEED_HANG, DEED_BYTES };

struct scripted_step {
    enum scripted_deed deed;
    int status;          /* REPLY */
    const char *headers; /* REPLY: further lines, each ended by CRLF; may be NULL */
    const char *text;    /* REPLY: the body; BYTES: all there is, then close */
};

struct scripted {
    const struct scripted_step *steps;
    unsigned step_count;
    char url[64];
    _Atomic unsigned requests, connections;
    char last_request[8192]; /* head and body; to be read when no call is under way */
    /* private */
    int listener;
    pthread_t thread;
};

void scripted_start(struct scripted *scripted, const struct scripted_step *steps, unsigned step_count);
void scripted_stop(struct scripted *scripted);

#endif
