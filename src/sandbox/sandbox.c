/* The server's side: one thread that starts programs through the nursery, reads their output and their
 * keepers' words, and calls back.
 *
 * Any thread may ask for a program or for its end; what is asked goes onto a list, and the thread is woken.
 * All else in a struct sandboxed belongs to the thread, so that there is one lock, held for a few
 * instructions. Only the output is also read by others (sandbox_drain): whoever reads it holds output_lock from
 * before the read until `output` has returned, which keeps the bytes in their order.
 * A sandboxed is counted: by its owner until sandbox_release, and by the thread until no event
 * of it can come any more. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "sandbox/internal.h"

#define EVENTS_AT_ONCE 64
#define OUTPUT_READS   4 /* of one program before the others have their turn */
#define KEEPER_SILENCE_US                                                                                    \
    2000000 /* after its time a keeper that has not ended its program is ended itself                        \
             */
#define NOT_ASKED INT64_MAX

/* What an event is about. */
enum watch_kind { WATCH_WAKE, WATCH_NURSERY, WATCH_CONTROL, WATCH_OUTPUT };
struct watch {
    enum watch_kind kind;
    struct sandboxed *sandboxed;
};

enum phase {
    PHASE_ASKED,    /* not yet handed to the nursery */
    PHASE_RUNNING,  /* or about to: it has a keeper */
    PHASE_ORPHANED, /* the keeper is gone without a word; the nursery ends what is left */
    PHASE_ENDED,
};

struct sandboxed {
    struct sandbox *sandbox;
    struct sandbox_program program; /* callbacks only: the rest is in the file */
    _Atomic uint32_t references;
    _Atomic uint64_t memory_bytes;
    pthread_mutex_t output_lock; /* of `output`: taken to read it and to change it */
    int output;                  /* the end of the pipe that we read; -1: none */
    /* under the lock */
    struct sandboxed *asked_next;
    bool is_listed, is_known; /* on the list of what is asked; taken from it before */
    int64_t grace_ms;         /* NOT_ASKED, or that of a stop that the thread has not seen */
    struct sandbox_question *asked_peers, **asked_peers_end; /* that the thread has not seen */
    /* the thread's */
    uint64_t id;
    enum phase phase;
    int control, error;      /* error: why there is no request */
    struct keeper_ends ends; /* to be handed over */
    struct watch control_watch, output_watch;
    pid_t nursery;     /* that has its keeper */
    int64_t silent_us; /* when its keeper counts as stuck; INT64_MAX: nobody has asked it to end */
    struct sandbox_question *open_peers, **open_peers_end; /* the keeper was asked the first of them */
    struct sandbox_result result;
    struct sandboxed *next, *previous; /* of all that have not ended */
    struct sandboxed *ended_next;
};

struct sandbox {
    pthread_t thread;
    pthread_mutex_t lock;
    struct sandboxed *asked, **asked_end; /* under the lock */
    bool is_closing;                      /* under the lock */
    int epoll, wake;
    struct watch wake_watch, nursery_watch;
    struct nursery nursery;
    struct sandbox_user user;
    bool has_own_tmp, has_own_opt;
    uint64_t last_id;
    struct sandboxed *first, *last; /* all that have not ended, oldest first */
    struct sandboxed *ended;        /* in this turn */
    bool is_nursery_full;           /* wait until it takes more */
    char room[LIMIT_OUTPUT_READ_BYTES];
};

static void *sandbox_work(void *context);
static void sandboxed_drop(struct sandboxed *sandboxed);

/* ---- opening and closing ---- */

static bool watch_fd(struct sandbox *sandbox, int fd, struct watch *watch)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = watch};
    return epoll_ctl(sandbox->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static void sandbox_dispose(struct sandbox *sandbox)
{
    nursery_stop(&sandbox->nursery);
    if (sandbox->epoll >= 0) close(sandbox->epoll);
    if (sandbox->wake >= 0) close(sandbox->wake);
    pthread_mutex_destroy(&sandbox->lock);
    free(sandbox);
}

/* The server's signals are its main thread's business. */
static int thread_start(struct sandbox *sandbox)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&sandbox->thread, NULL, sandbox_work, sandbox);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

bool sandbox_user_find(const char *name, struct sandbox_user *user, char *error, size_t error_len)
{
    const struct passwd *found = getpwnam(name);
    gid_t groups[LIMIT_USER_GROUPS];
    int count = LIMIT_USER_GROUPS;
    if (!found || found->pw_uid == 0)
        snprintf(error, error_len, found ? "functions cannot run as '%s': that is root"
                                         : "functions cannot run as '%s': there is no such user", name);
    else if (geteuid() != 0)
        snprintf(error, error_len, "functions can run as '%s' only when the server is started by root", name);
    else if (getgrouplist(name, found->pw_gid, groups, &count) < 0)
        snprintf(error, error_len, "functions cannot run as '%s': it is in more than %d groups", name,
                 LIMIT_USER_GROUPS);
    else {
        *user = (struct sandbox_user){
            .is_set = true, .user = found->pw_uid, .group = found->pw_gid, .group_count = (uint32_t)count};
        for (int i = 0; i < count; i++) user->groups[i] = groups[i];
        return true;
    }
    return false;
}

bool sandbox_has_own_tmp(const struct sandbox *sandbox)
{
    return sandbox->has_own_tmp;
}

bool sandbox_has_own_opt(const struct sandbox *sandbox)
{
    return sandbox->has_own_opt;
}

bool sandbox_can_enter(const struct sandbox *sandbox, const char *folder)
{
    return program_can_enter(&sandbox->user, folder);
}

struct sandbox *sandbox_new(const struct sandbox_user *user, char *error, size_t error_len)
{
    if (access("/proc/self/stat", R_OK) != 0) {
        snprintf(error, error_len, "functions cannot run here: there is no /proc");
        return NULL;
    }
    struct sandbox *sandbox = must_zero(1, sizeof *sandbox);
    if (user) sandbox->user = *user;
    storage_probe(&sandbox->has_own_tmp, &sandbox->has_own_opt);
    pthread_mutex_init(&sandbox->lock, NULL);
    sandbox->asked_end = &sandbox->asked;
    sandbox->wake_watch.kind = WATCH_WAKE;
    sandbox->nursery_watch.kind = WATCH_NURSERY;
    sandbox->epoll = sandbox->wake = -1;
    if (nursery_start(&sandbox->nursery) && (sandbox->epoll = epoll_create1(EPOLL_CLOEXEC)) >= 0 &&
        (sandbox->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) >= 0 &&
        watch_fd(sandbox, sandbox->wake, &sandbox->wake_watch) &&
        watch_fd(sandbox, sandbox->nursery.socket, &sandbox->nursery_watch)) {
        errno = thread_start(sandbox);
        if (errno == 0) return sandbox;
    }
    snprintf(error, error_len, "cannot start the process that runs functions: %s", strerror(errno));
    sandbox_dispose(sandbox);
    return NULL;
}

static void sandbox_wake(struct sandbox *sandbox)
{
    uint64_t one = 1;
    ssize_t written = write(sandbox->wake, &one, sizeof one);
    (void)written; /* it can only fail when the thread is about to wake up anyway */
}

void sandbox_free(struct sandbox *sandbox)
{
    pthread_mutex_lock(&sandbox->lock);
    sandbox->is_closing = true;
    pthread_mutex_unlock(&sandbox->lock);
    sandbox_wake(sandbox);
    pthread_join(sandbox->thread, NULL);
    sandbox_dispose(sandbox);
}

/* ---- asking, from any thread ---- */

static void sandboxed_list(struct sandboxed *sandboxed, int64_t grace_ms, struct sandbox_question *question)
{
    struct sandbox *sandbox = sandboxed->sandbox;
    pthread_mutex_lock(&sandbox->lock);
    if (grace_ms < sandboxed->grace_ms) sandboxed->grace_ms = grace_ms;
    if (question) {
        question->next = NULL;
        *sandboxed->asked_peers_end = question;
        sandboxed->asked_peers_end = &question->next;
    }
    bool is_first = !sandbox->asked;
    if (!sandboxed->is_listed) {
        sandboxed->is_listed = true;
        sandboxed->asked_next = NULL;
        *sandbox->asked_end = sandboxed;
        sandbox->asked_end = &sandboxed->asked_next;
        atomic_fetch_add(&sandboxed->references, 1); /* the list's */
    }
    pthread_mutex_unlock(&sandbox->lock);
    if (is_first) sandbox_wake(sandbox);
}

struct sandboxed *sandbox_run(struct sandbox *sandbox, const struct sandbox_program *program)
{
    struct sandboxed *sandboxed = must_zero(1, sizeof *sandboxed);
    sandboxed->sandbox = sandbox;
    sandboxed->program.output = program->output;
    sandboxed->program.ended = program->ended;
    sandboxed->program.context = program->context;
    sandboxed->references = 2; /* the owner's and the thread's */
    sandboxed->grace_ms = NOT_ASKED;
    sandboxed->silent_us = INT64_MAX;
    sandboxed->control = sandboxed->output = -1;
    sandboxed->asked_peers_end = &sandboxed->asked_peers;
    sandboxed->open_peers_end = &sandboxed->open_peers;
    pthread_mutex_init(&sandboxed->output_lock, NULL);
    sandboxed->ends = (struct keeper_ends){-1, -1, request_write(program, &sandbox->user, &sandboxed->error)};
    sandboxed->control_watch = (struct watch){WATCH_CONTROL, sandboxed};
    sandboxed->output_watch = (struct watch){WATCH_OUTPUT, sandboxed};
    sandboxed_list(sandboxed, NOT_ASKED, NULL);
    return sandboxed;
}

void sandbox_stop(struct sandboxed *sandboxed, int64_t grace_ms)
{
    sandboxed_list(sandboxed, grace_ms < 0 ? 0 : grace_ms, NULL);
}

void sandbox_ask_peer(struct sandboxed *sandboxed, struct sandbox_question *question)
{
    sandboxed_list(sandboxed, NOT_ASKED, question);
}

uint64_t sandbox_memory_bytes(struct sandboxed *sandboxed)
{
    return atomic_load(&sandboxed->memory_bytes);
}

/* As much as is in the pipe now, and no more: somebody may write without end. Its end is the thread's to see. */
void sandbox_drain(struct sandboxed *sandboxed)
{
    char room[16384];
    int left = 0;
    pthread_mutex_lock(&sandboxed->output_lock);
    if (sandboxed->output >= 0 && ioctl(sandboxed->output, FIONREAD, &left) != 0) left = 0;
    while (left > 0) {
        ssize_t got = read(sandboxed->output, room, (size_t)left < sizeof room ? (size_t)left : sizeof room);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        if (sandboxed->program.output)
            sandboxed->program.output(sandboxed->program.context, (struct slice){room, (size_t)got});
        left -= (int)got;
    }
    pthread_mutex_unlock(&sandboxed->output_lock);
}

void sandbox_release(struct sandboxed *sandboxed)
{
    sandboxed_drop(sandboxed);
}

static void sandboxed_drop(struct sandboxed *sandboxed)
{
    if (atomic_fetch_sub(&sandboxed->references, 1) != 1) return;
    pthread_mutex_destroy(&sandboxed->output_lock);
    free(sandboxed);
}

/* ---- the end of a program, on the thread ---- */

static void close_fd(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

/* To close it is not enough: a nursery that is just being forked has it too, and its events would still come.
 */
static void close_watched(struct sandbox *sandbox, int *fd)
{
    if (*fd >= 0) epoll_ctl(sandbox->epoll, EPOLL_CTL_DEL, *fd, NULL);
    close_fd(fd);
}

static void close_ends(struct keeper_ends *ends)
{
    close_fd(&ends->control);
    close_fd(&ends->output);
    close_fd(&ends->request);
}

/* Answers how much came; 0 when there is nothing now, and closes the pipe at its end. */
static size_t read_output(struct sandboxed *sandboxed)
{
    struct sandbox *sandbox = sandboxed->sandbox;
    ssize_t got = -1;
    pthread_mutex_lock(&sandboxed->output_lock);
    if (sandboxed->output >= 0) got = read(sandboxed->output, sandbox->room, sizeof sandbox->room);
    if (got > 0 && sandboxed->program.output)
        sandboxed->program.output(sandboxed->program.context, (struct slice){sandbox->room, (size_t)got});
    else if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        close_watched(sandbox, &sandboxed->output);
    pthread_mutex_unlock(&sandboxed->output_lock);
    return got > 0 ? (size_t)got : 0;
}

/* What is still in the pipe is all that was written: nobody is left. More than a pipe holds can only come
 * from somebody else to whom the program gave its end, and need not be read. */
static void read_rest(struct sandboxed *sandboxed)
{
    for (size_t rest = 0, got; rest < LIMIT_OUTPUT_LEFT_BYTES; rest += got)
        if ((got = read_output(sandboxed)) == 0) return;
}

static void unlink_live(struct sandboxed *sandboxed)
{
    struct sandbox *sandbox = sandboxed->sandbox;
    *(sandboxed->previous ? &sandboxed->previous->next : &sandbox->first) = sandboxed->next;
    *(sandboxed->next ? &sandboxed->next->previous : &sandbox->last) = sandboxed->previous;
}

static void answer_first_peer(struct sandboxed *sandboxed, enum sandbox_peer peer)
{
    struct sandbox_question *question = sandboxed->open_peers;
    sandboxed->open_peers = question->next;
    if (!sandboxed->open_peers) sandboxed->open_peers_end = &sandboxed->open_peers;
    question->answered(question, peer);
}

static void answer_all_peers(struct sandboxed *sandboxed, enum sandbox_peer peer)
{
    while (sandboxed->open_peers) answer_first_peer(sandboxed, peer);
}

static void sandboxed_end(struct sandboxed *sandboxed, enum sandbox_end end, int status)
{
    struct sandbox *sandbox = sandboxed->sandbox;
    if (sandboxed->phase == PHASE_ENDED) return;
    sandboxed->phase = PHASE_ENDED;
    sandboxed->result.end = end;
    sandboxed->result.status = status;
    answer_all_peers(sandboxed, SANDBOX_PEER_GONE);
    read_rest(sandboxed);
    close_watched(sandbox, &sandboxed->control);
    pthread_mutex_lock(&sandboxed->output_lock);
    close_watched(sandbox, &sandboxed->output);
    pthread_mutex_unlock(&sandboxed->output_lock);
    close_ends(&sandboxed->ends);
    unlink_live(sandboxed);
    sandboxed->ended_next = sandbox->ended;
    sandbox->ended = sandboxed;
    if (sandboxed->program.ended) sandboxed->program.ended(sandboxed->program.context, &sandboxed->result);
}

/* ---- the beginning of a program, on the thread ---- */

/* The request is a file already; the sockets are made here, where they are watched. */
static bool make_ends(struct sandboxed *sandboxed)
{
    int control[2], output[2];
    if (sandboxed->ends.control >= 0) return true;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) != 0) return false;
    sandboxed->control = control[0];
    sandboxed->ends.control = control[1];
    if (pipe2(output, O_CLOEXEC) != 0) return false;
    pthread_mutex_lock(&sandboxed->output_lock);
    sandboxed->output = output[0];
    pthread_mutex_unlock(&sandboxed->output_lock);
    sandboxed->ends.output = output[1];
    return fcntl(output[0], F_SETFL, O_NONBLOCK) == 0 &&
           watch_fd(sandboxed->sandbox, sandboxed->control, &sandboxed->control_watch) &&
           watch_fd(sandboxed->sandbox, output[0], &sandboxed->output_watch);
}

/* False when the nursery takes no more now. */
static bool sandboxed_begin(struct sandboxed *sandboxed)
{
    struct sandbox *sandbox = sandboxed->sandbox;
    if (sandboxed->ends.request < 0 || !make_ends(sandboxed)) {
        sandboxed_end(sandboxed, SANDBOX_UNSTARTED, sandboxed->ends.request < 0 ? sandboxed->error : errno);
        return true;
    }
    if (!nursery_say(&sandbox->nursery, NURSERY_START, sandboxed->id, &sandboxed->ends)) {
        if (errno == EAGAIN || errno == ENOBUFS) return false;
        sandboxed_end(sandboxed, SANDBOX_UNSTARTED, errno);
        return true;
    }
    close_ends(&sandboxed->ends);
    sandboxed->phase = PHASE_RUNNING;
    sandboxed->nursery = sandbox->nursery.pid;
    return true;
}

static void watch_nursery(struct sandbox *sandbox, bool is_full)
{
    if (is_full == sandbox->is_nursery_full) return;
    sandbox->is_nursery_full = is_full;
    struct epoll_event event = {.events = EPOLLIN | (is_full ? EPOLLOUT : 0),
                                .data.ptr = &sandbox->nursery_watch};
    epoll_ctl(sandbox->epoll, EPOLL_CTL_MOD, sandbox->nursery.socket, &event);
}

static void begin_all(struct sandbox *sandbox)
{
    for (struct sandboxed *each = sandbox->first, *next; each; each = next) {
        next = each->next;
        if (each->phase != PHASE_ASKED) continue;
        if (!sandboxed_begin(each)) {
            watch_nursery(sandbox, true);
            return;
        }
    }
    watch_nursery(sandbox, false);
}

/* ---- stopping, on the thread ---- */

static void sandboxed_stop(struct sandboxed *sandboxed, int64_t grace_ms)
{
    struct keeper_message message = {.word = KEEPER_STOP, .value = (uint64_t)grace_ms};
    int64_t silent_us = monotonic_us() + grace_ms * 1000 + KEEPER_SILENCE_US;
    if (sandboxed->phase == PHASE_ASKED) sandboxed_end(sandboxed, SANDBOX_STOPPED, 0);
    if (sandboxed->phase != PHASE_RUNNING) return;
    if (silent_us < sandboxed->silent_us) sandboxed->silent_us = silent_us;
    send(sandboxed->control, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Programs can stop their keeper as they can stop anybody of the same user. It does not help them. */
static void kill_silent(struct sandbox *sandbox)
{
    int64_t now = monotonic_us();
    for (struct sandboxed *each = sandbox->first; each; each = each->next) {
        if (each->phase != PHASE_RUNNING || each->silent_us > now) continue;
        nursery_say(&sandbox->nursery, NURSERY_KILL, each->id, NULL);
        each->silent_us = now + KEEPER_SILENCE_US;
    }
}

static int patience_ms(struct sandbox *sandbox)
{
    int64_t due = INT64_MAX;
    for (struct sandboxed *each = sandbox->first; each; each = each->next)
        if (each->silent_us < due) due = each->silent_us;
    if (due == INT64_MAX) return -1;
    int64_t left = (due - monotonic_us()) / 1000 + 1;
    return left < 0 ? 0 : left > INT32_MAX ? INT32_MAX : (int)left;
}

/* ---- whose connection it is, on the thread ---- */

/* One question at a time: hundreds at once would not fit the socket. */
static void ask_first_peer(struct sandboxed *sandboxed)
{
    struct sandbox_question *question;
    while ((question = sandboxed->open_peers)) {
        struct keeper_message message = {.word = KEEPER_PEER,
                                         .end = PEER_PORTS(question->server_port, question->peer_port)};
        if (send(sandboxed->control, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return;
        answer_first_peer(sandboxed, SANDBOX_PEER_UNKNOWN);
    }
}

/* One that has no process, or none any more, holds nothing. */
static void ask_peers(struct sandboxed *sandboxed, struct sandbox_question *asked)
{
    if (!asked) return;
    bool was_idle = !sandboxed->open_peers;
    *sandboxed->open_peers_end = asked;
    while (*sandboxed->open_peers_end) sandboxed->open_peers_end = &(*sandboxed->open_peers_end)->next;
    if (sandboxed->phase != PHASE_RUNNING)
        answer_all_peers(sandboxed,
                         sandboxed->phase == PHASE_ASKED ? SANDBOX_PEER_STRANGER : SANDBOX_PEER_GONE);
    else if (was_idle)
        ask_first_peer(sandboxed);
}

static void hear_peer(struct sandboxed *sandboxed, enum sandbox_peer peer)
{
    if (sandboxed->open_peers) answer_first_peer(sandboxed, peer);
    ask_first_peer(sandboxed);
}

/* ---- what is heard ---- */

static void hear_asked(struct sandbox *sandbox)
{
    uint64_t woken;
    ssize_t taken = read(sandbox->wake, &woken, sizeof woken);
    (void)taken;
    pthread_mutex_lock(&sandbox->lock);
    struct sandboxed *list = sandbox->asked;
    sandbox->asked = NULL;
    sandbox->asked_end = &sandbox->asked;
    pthread_mutex_unlock(&sandbox->lock);
    while (list) {
        struct sandboxed *each = list;
        pthread_mutex_lock(&sandbox->lock);
        list = each->asked_next;
        int64_t grace_ms = each->grace_ms;
        struct sandbox_question *peers = each->asked_peers;
        each->asked_peers = NULL;
        each->asked_peers_end = &each->asked_peers;
        bool is_new = !each->is_known;
        each->is_listed = false;
        each->is_known = true;
        each->grace_ms = NOT_ASKED;
        pthread_mutex_unlock(&sandbox->lock);
        if (is_new) {
            each->id = ++sandbox->last_id;
            each->previous = sandbox->last;
            *(sandbox->last ? &sandbox->last->next : &sandbox->first) = each;
            sandbox->last = each;
        }
        if (grace_ms != NOT_ASKED) sandboxed_stop(each, grace_ms);
        ask_peers(each, peers);
        sandboxed_drop(each);
    }
}

/* Its keeper was killed, and nothing is left. */
static void orphaned_end(struct sandboxed *sandboxed)
{
    bool is_asked = sandboxed->silent_us != INT64_MAX;
    sandboxed_end(sandboxed, is_asked ? SANDBOX_STOPPED : SANDBOX_SIGNALLED, is_asked ? 0 : SIGKILL);
}

/* A keeper that was killed says nothing; the nursery will, when it has ended what was left. One that ended
 * before it had read all that we told it resets the connection: this is told first and once, and its last
 * word comes behind it. */
static void hear_keeper(struct sandboxed *sandboxed)
{
    struct keeper_message message;
    ssize_t got = recv(sandboxed->control, &message, sizeof message, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET)) return;
    if (got != (ssize_t)sizeof message) {
        sandboxed->phase = PHASE_ORPHANED;
        close_watched(sandboxed->sandbox, &sandboxed->control);
        if (sandboxed->nursery != sandboxed->sandbox->nursery.pid) orphaned_end(sandboxed);
    } else if (message.word == KEEPER_MEMORY) {
        atomic_store(&sandboxed->memory_bytes, message.value);
    } else if (message.word == KEEPER_PEER) {
        hear_peer(sandboxed, (enum sandbox_peer)message.end);
    } else if (message.word == KEEPER_END) {
        sandboxed->result.memory_bytes = message.value;
        sandboxed_end(sandboxed, (enum sandbox_end)message.end, message.status);
    }
}

static void hear_output(struct sandboxed *sandboxed)
{
    for (int i = 0; i < OUTPUT_READS; i++)
        if (read_output(sandboxed) < sizeof sandboxed->sandbox->room) return;
}

/* Keepers see the nursery's end too, and end their programs. A new one is forked: from a process that is
 * large by now and has threads, which costs more, but beats a server that runs nothing any more. */
static void nursery_died(struct sandbox *sandbox)
{
    epoll_ctl(sandbox->epoll, EPOLL_CTL_DEL, sandbox->nursery.socket, NULL);
    nursery_stop(&sandbox->nursery);
    for (struct sandboxed *each = sandbox->first, *next; each; each = next) {
        next = each->next;
        if (each->phase == PHASE_ORPHANED) orphaned_end(each);
    }
    sandbox->is_nursery_full = false;
    bool is_new = nursery_start(&sandbox->nursery) &&
                  watch_fd(sandbox, sandbox->nursery.socket, &sandbox->nursery_watch);
    log_line("the process that runs functions was killed; %s",
             is_new ? "there is a new one" : strerror(errno));
}

static void hear_nursery(struct sandbox *sandbox)
{
    struct nursery_message message;
    ssize_t got = recv(sandbox->nursery.socket, &message, sizeof message, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got != (ssize_t)sizeof message) {
        nursery_died(sandbox);
        return;
    }
    for (struct sandboxed *each = sandbox->first; each; each = each->next) {
        if (each->id != message.id) continue;
        if (message.word == NURSERY_UNSTARTED)
            sandboxed_end(each, SANDBOX_UNSTARTED, message.error);
        else
            orphaned_end(each);
        return;
    }
}

static void hear(struct sandbox *sandbox, const struct watch *watch, uint32_t events)
{
    struct sandboxed *sandboxed = watch->sandboxed;
    switch (watch->kind) {
    case WATCH_WAKE: hear_asked(sandbox); break;
    case WATCH_NURSERY:
        if (events & ~(uint32_t)EPOLLOUT) hear_nursery(sandbox);
        break;
    case WATCH_CONTROL:
        if (sandboxed->control >= 0) hear_keeper(sandboxed);
        break;
    case WATCH_OUTPUT: hear_output(sandboxed); break;
    }
}

/* ---- the thread ---- */

/* Only now: events of this turn may still have pointed at them. */
static void drop_ended(struct sandbox *sandbox)
{
    while (sandbox->ended) {
        struct sandboxed *each = sandbox->ended;
        sandbox->ended = each->ended_next;
        sandboxed_drop(each);
    }
}

/* True when the thread may end: nothing runs and nothing is asked for any more. */
static bool is_closed(struct sandbox *sandbox)
{
    pthread_mutex_lock(&sandbox->lock);
    bool is_closing = sandbox->is_closing, is_asked = sandbox->asked != NULL;
    pthread_mutex_unlock(&sandbox->lock);
    if (!is_closing || is_asked) return false;
    for (struct sandboxed *each = sandbox->first, *next; each; each = next) {
        next = each->next;
        if (each->silent_us == INT64_MAX) sandboxed_stop(each, 0);
    }
    drop_ended(sandbox);
    return !sandbox->first;
}

static void *sandbox_work(void *context)
{
    struct sandbox *sandbox = context;
    struct epoll_event events[EVENTS_AT_ONCE];
    while (!is_closed(sandbox)) {
        int count = epoll_wait(sandbox->epoll, events, EVENTS_AT_ONCE, patience_ms(sandbox));
        for (int i = 0; i < count; i++) hear(sandbox, events[i].data.ptr, events[i].events);
        drop_ended(sandbox);
        begin_all(sandbox);
        kill_silent(sandbox);
        drop_ended(sandbox);
    }
    return NULL;
}
