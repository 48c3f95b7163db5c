/* Programs of strangers: started, limited, listened to, and ended together with everything they began.
 *
 * A function's process may fork, daemonise, ignore signals, eat memory or fill its output. None of that may
 * outlive it, let alone the server. So the server never forks itself: before it has threads or much memory it
 * starts one small process (the *nursery*), which forks a *keeper* for each program on request. A keeper is
 * the reaper of all that its program begins, also of what has left its process group or session; it watches
 * their memory and number, and ends them all when the program ends, when a limit is passed, when it is told
 * to, or when the server is gone.
 *
 * This protects against accidents and bad manners. Against an attacker it protects only where programs run as
 * another user than the server, who must be root for that.
 *
 * Invariants:
 *  B1. A program gets standard input from nowhere, output and error into one pipe, and no other descriptor.
 *  B2. When `ended` is called, no process of the program is left, and `output` is not called any more.
 *  B3. When the server dies, however it dies, every program is ended: the keepers see their sockets close;
 *      and a keeper that is killed leaves its orphans to the nursery, which ends them.
 *  B4. Output is read as fast as it comes and never makes the server grow: whoever gets it decides what to
 *      keep.
 *  B5. `output` gets a program's bytes in their order, one call at a time. */
#ifndef SANDBOX_SANDBOX_H
#define SANDBOX_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/slice.h"

struct sandbox;
struct sandboxed; /* one program and all that it began */

/* Whom programs run as; not set: the server's own user. */
struct sandbox_user {
    bool is_set;
    uint32_t user, group;
    uint32_t groups[LIMIT_USER_GROUPS]; /* all of them, also the above */
    uint32_t group_count;
};
/* The user of that name. False and a sentence: there is none, it is root, or we are not and cannot become it. */
bool sandbox_user_find(const char *name, struct sandbox_user *user, char *error, size_t error_len);

/* Starts the nursery and the thread that listens. Call it early: before other threads, before memory has
 * grown. `user` may be NULL and is copied. NULL and a sentence on failure. */
struct sandbox *sandbox_new(const struct sandbox_user *user, char *error, size_t error_len);
/* Whether programs can have a /tmp of their own here. */
bool sandbox_has_own_tmp(const struct sandbox *sandbox);
/* Whether programs can see a folder of the caller's at /opt here. */
bool sandbox_has_own_opt(const struct sandbox *sandbox);
/* Whether programs, as whom they run, can enter the folder. */
bool sandbox_can_enter(const struct sandbox *sandbox, const char *folder);
/* Ends all programs and waits until they are gone. */
void sandbox_free(struct sandbox *sandbox);

enum sandbox_end {
    SANDBOX_EXITED,    /* by itself: status */
    SANDBOX_SIGNALLED, /* by a signal that was not ours: status is its number; SIGKILL also if its keeper was
                          killed */
    SANDBOX_STOPPED,   /* by sandbox_stop, or because the nursery was killed */
    SANDBOX_MEMORY,    /* it used more than it may */
    SANDBOX_PROCESSES, /* it began more than it may */
    SANDBOX_STORAGE,   /* its temporary folder holds more than it may */
    SANDBOX_UNSTARTED, /* the program could not be run: status is the errno */
};

struct sandbox_result {
    enum sandbox_end end;
    int status;
    uint64_t memory_bytes; /* the most that was seen in use, of all its processes together */
};

struct sandbox_program {
    const char *const
        *arguments; /* ended by NULL; [0] is the file to run, found by PATH when it has no slash */
    const char *const *environment; /* "NAME=value", ended by NULL */
    const char *folder;
    uint64_t memory_bytes;  /* resident, of all its processes together; 0: no limit */
    uint32_t process_count; /* at most; 0: 1024, as Lambda has it */
    bool has_own_tmp;       /* a /tmp of its own, of storage_bytes; see sandbox_has_own_tmp */
    const char *temporary;  /* else: a folder that is made for it and removed with it; NULL: none */
    uint64_t storage_bytes; /* that either may hold, and a file that is written anywhere where it is the latter */
    const char *opt;        /* an absolute folder that lies at /opt, to be read only; see sandbox_has_own_opt.
                               NULL: the machine's /opt stays */
    const char *files;      /* an absolute folder that lies, to be read and written, at `files_at`, which is /mnt/NAME;
                               where sandbox_has_own_tmp. NULL: none */
    const char *files_at;
    /* Both are called on the sandbox's thread, `output` also from within sandbox_drain, and must be quick. */
    void (*output)(void *context, struct slice bytes);
    void (*ended)(void *context, const struct sandbox_result *result);
    void *context;
};

/* Never NULL: what cannot be started ends as UNSTARTED. Everything is copied. From any thread. */
struct sandboxed *sandbox_run(struct sandbox *sandbox, const struct sandbox_program *program);
/* Asks the program (not its children) to end by SIGTERM, and ends it with everything it began after the
 * grace. 0: at once. May be called again with a shorter one, and until `ended` has returned. From any thread.
 */
void sandbox_stop(struct sandboxed *sandboxed, int64_t grace_ms);
/* Hands over what the program has written so far: `output` has had it all when this returns. From any thread,
 * but not from `output` and not with a lock that `output` takes. */
void sandbox_drain(struct sandboxed *sandboxed);
/* The memory in use now, as last seen. */
uint64_t sandbox_memory_bytes(struct sandboxed *sandboxed);

/* ---- whose connection it is ---- */

enum sandbox_peer {
    SANDBOX_PEER_OWN,      /* a process of the program's holds its end */
    SANDBOX_PEER_STRANGER, /* somebody else does */
    SANDBOX_PEER_GONE,     /* nobody does any more */
    SANDBOX_PEER_UNKNOWN,  /* the system does not tell: take it for a stranger's */
};

/* Belongs to the caller until it is answered, which it is once: also when the program has ended. */
struct sandbox_question {
    uint16_t server_port, peer_port; /* of a connection from 127.0.0.1 to 127.0.0.1 that was accepted */
    /* On the sandbox's thread; must be quick. The connection itself must still be there afterwards, or the
     * answer may be about another one with the same ports. */
    void (*answered)(struct sandbox_question *question, enum sandbox_peer peer);
    /* private */
    struct sandbox_question *next;
};
/* From any thread, until sandbox_release. */
void sandbox_ask_peer(struct sandboxed *sandboxed, struct sandbox_question *question);

/* Forgets it: after `ended`, or from within it. */
void sandbox_release(struct sandboxed *sandboxed);

#endif
