/* What the files of sandbox share: the words between server, nursery and keepers, and who speaks them.
 *
 * Everything marked "in the children" runs in processes that were forked from a server which may have had
 * threads: no malloc, no stdio, no locks, only system calls and memory of their own. */
#ifndef SANDBOX_INTERNAL_H
#define SANDBOX_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/limits.h"
#include "sandbox/sandbox.h"

/* ---- words on sockets: one packet each, of these sizes ---- */

enum nursery_word {
    NURSERY_START,     /* server to nursery, with the descriptors of a struct keeper_ends */
    NURSERY_KILL,      /* the keeper of this id does not answer: end it and all that it kept */
    NURSERY_GONE,      /* nursery to server: a keeper died before its time, and nothing of it is left */
    NURSERY_UNSTARTED, /* there is no keeper: error tells why */
};

struct nursery_message {
    uint64_t id;
    uint32_t word;
    int32_t error;
};

enum keeper_word {
    KEEPER_STOP,   /* server to keeper: value is the grace in milliseconds */
    KEEPER_MEMORY, /* keeper to server: value is the memory in use now */
    KEEPER_END,    /* all is over and nothing is left: value is the most memory seen */
    KEEPER_PEER,   /* server to keeper: whose connection is this, see PEER_PORTS; keeper to server: the
                      answer, an enum sandbox_peer. One question at a time */
};

struct keeper_message {
    uint32_t word;
    uint32_t end; /* an enum sandbox_end; of KEEPER_PEER: the two ports, or an enum sandbox_peer */
    int32_t status;
    uint32_t unused; /* so that no byte of a packet is undefined */
    uint64_t value;
};

/* Two ports as one number. */
#define PEER_PORTS(server, peer) ((uint32_t)(server) << 16 | (peer))

/* The ends of sockets and files that a keeper lives with, in the order in which they are sent. */
struct keeper_ends {
    int control; /* its socket to the server */
    int output;  /* of the program: the pipe's end for writing */
    int request; /* a file in memory with what to run */
};
#define KEEPER_ENDS 3

/* ---- request.c: what to run, as a file in memory ---- */

/* A new file that holds it, or -1 and an errno. E2BIG when it is larger than LIMIT_SANDBOX_REQUEST_BYTES. */
int request_write(const struct sandbox_program *program, const struct sandbox_user *user, int *error);

struct request {
    char **arguments, **environment;
    const char *folder;
    uint64_t memory_bytes;
    uint32_t process_count;
    int priority;          /* the server's: ours may be higher */
    const char *temporary; /* NULL: none */
    uint64_t storage_bytes;
    bool has_own_tmp;
    const char *opt; /* NULL: the machine's */
    const char *files, *files_at; /* NULL: none */
    struct sandbox_user user;
};
/* In the children. What it points at stays until the process ends. Answers an errno, or 0. */
int request_read(int file, struct request *out);

/* ---- family.c: all that descends from this process; in the children ---- */

struct family_member {
    pid_t pid, parent;
};

enum family_deed {
    FAMILY_COUNT, /* how many, their resident memory, their processor time */
    FAMILY_KILL,
    FAMILY_SEEK, /* who holds a socket: see family_holds */
};

/* `count` may be more than `alive`: who ended while we looked. */
struct family {
    struct family_member members[LIMIT_FAMILY];
    uint32_t count, alive, enough; /* enough: more are not looked for; a bomb may grow faster than we look */
    uint64_t memory_bytes, cpu_ticks;
    uint64_t inode;           /* FAMILY_SEEK: of the socket */
    int64_t seek_until_us;    /* ... when to give up, in processor_us() */
    bool of_threads;          /* ... also look at what a thread has for itself */
    bool is_found, is_hidden; /* ... it is held; somebody's descriptors could not be read */
    bool has_children_files; /* of the kernel, /proc/PID/task/TID/children: else all of /proc is searched */
};

void family_init(struct family *family, uint32_t enough);
/* Walks through all descendants of this process. Children for whom `spared` answers true are left out, with
 * all that is theirs; NULL: nobody is. What begins while we look may be missed; look again. */
void family_walk(struct family *family, enum family_deed deed, bool (*spared)(pid_t pid));
/* The memory of those that the last walk found, where what several of them share counts once. It is asked for by a
 * child, which is ended when the time is over. False: it was, or could not be started. */
bool family_weigh(const struct family *family, int patience_ms, uint64_t *bytes);
/* A bomb of thousands of processes outweighs any share of the processors. Where we may, the calling process comes
 * before all of them, and what it starts does not: it works for moments only. */
void come_first(void);
/* Whether one of them has the socket open. `of_threads`: search also the descriptors of single threads, which
 * may have left those of their process, or outlived its first thread. */
bool family_holds(struct family *family, uint64_t inode, bool of_threads, int64_t until_us);

/* ---- storage.c: temporary files, and /opt ---- */

/* Forks: which of both storage_mount can do. In the server. */
void storage_probe(bool *has_own_tmp, bool *has_own_opt);
/* The calling process gets a /tmp of its own, and the folder at /opt, to be read only; NULL: what is there
 * stays. Answers an errno, or 0. In the children, as are the others. */
int storage_mount(bool has_own_tmp, uint64_t limit_bytes, const char *opt, const char *files, const char *files_at);
int storage_make(const char *path, const struct sandbox_user *user);
/* The bytes below the folder; stops when it is more than the limit, and at the time. */
uint64_t storage_weigh(const char *path, uint64_t limit_bytes, int64_t until_us);
void storage_remove(const char *path);

/* ---- peer.c: whose connection it is; in the children ---- */

enum peer_inode {
    PEER_INODE_FOUND,
    PEER_INODE_NONE,   /* nobody has the other end open */
    PEER_INODE_UNTOLD, /* the kernel does not tell */
};
/* The inode of the socket at 127.0.0.1:peer_port that is connected to 127.0.0.1:server_port. */
enum peer_inode peer_inode_by_diag(uint16_t server_port, uint16_t peer_port, uint64_t *inode);
enum peer_inode peer_inode_by_lists(uint16_t server_port, uint16_t peer_port, uint64_t *inode);
enum sandbox_peer peer_find(struct family *family, uint16_t server_port, uint16_t peer_port);

/* ---- program.c: from a fork to the stranger's code; in the children ---- */

/* Forks the program; *failure can be read from when it has ended: the errno, if it was never run. -1: errno.
 */
/* Whether the user could enter the folder. In the server: forks. */
bool program_can_enter(const struct sandbox_user *user, const char *folder);
pid_t program_start(const struct request *request, int output, int *failure);

/* ---- keeper.c ---- */

_Noreturn void keeper_run(const struct keeper_ends *ends, pid_t nursery);

/* ---- nursery.c ---- */

struct nursery {
    pid_t pid;
    int socket; /* -1: there is none */
};
bool nursery_start(struct nursery *nursery);
/* It ends what it kept; then it is waited for. */
void nursery_stop(struct nursery *nursery);
/* False with EAGAIN when it must be tried again. ends: of a START only. */
bool nursery_say(const struct nursery *nursery, enum nursery_word word, uint64_t id,
                 const struct keeper_ends *ends);

/* ---- text.c: texts without a library, for the children; each ends in a zero and answers where that stands ---- */

char *text_put(char *at, const char *text);
char *text_put_number(char *at, uint64_t number);

#endif
