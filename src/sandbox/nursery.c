/* The nursery: the small process that keepers are forked from, and the reaper of last resort.
 *
 * It is forked while the server is small and has few descriptors, closes those, and knows nothing but the
 * numbers of its keepers. A child of its that is none of them is an orphan whose keeper was killed: it is
 * ended at once (B3). When the server's end of the socket closes, because it wants to end or because it died,
 * the keepers see the same at theirs; those that do not end soon are killed, and then their orphans.
 *
 * That the server has died is learned from the socket, not by PR_SET_PDEATHSIG, which tells of the end of the
 * thread that forked. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "sandbox/internal.h"

#define SOCKET_FD      3
#define SWEEP_PAUSE_MS 5
#define FAREWELL_US    300000 /* for keepers to end by themselves after the server */
#define OUT_OF_THE_WAY 16

struct kept {
    uint64_t id;
    pid_t pid; /* 0: it died before its time, and the server waits to hear that nothing is left of it */
};

/* The nursery's own state: it has one process and one thread to itself. */
static struct kept kept[LIMIT_SANDBOXED];
static uint32_t kept_count;
static struct family orphans;
static int signals;
static bool is_closing;

static _Noreturn void nursery_run(int socket);

/* ---- in the server ---- */

bool nursery_start(struct nursery *nursery)
{
    int ends[2];
    nursery->socket = -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of the server's may run in the child */
    nursery->pid = fork();
    if (nursery->pid == 0) nursery_run(ends[1]);
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(ends[1]);
    nursery->socket = ends[0];
    if (nursery->pid > 0) return true;
    close(ends[0]);
    nursery->socket = -1;
    errno = error;
    return false;
}

void nursery_stop(struct nursery *nursery)
{
    if (nursery->socket < 0) return;
    close(nursery->socket);
    nursery->socket = -1;
    while (waitpid(nursery->pid, NULL, 0) < 0 && errno == EINTR) continue;
}

static bool send_with(int socket, const struct nursery_message *message, const int *fds, int flags)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(KEEPER_ENDS * sizeof(int))];
    } control = {0};
    struct iovec part = {(void *)message, sizeof *message};
    struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
    if (fds) {
        packet.msg_control = control.room;
        packet.msg_controllen = sizeof control.room;
        struct cmsghdr *head = CMSG_FIRSTHDR(&packet);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(KEEPER_ENDS * sizeof(int));
        memcpy(CMSG_DATA(head), fds, KEEPER_ENDS * sizeof(int));
    }
    return sendmsg(socket, &packet, MSG_NOSIGNAL | flags) == (ssize_t)sizeof *message;
}

bool nursery_say(const struct nursery *nursery, enum nursery_word word, uint64_t id,
                 const struct keeper_ends *ends)
{
    struct nursery_message message = {.id = id, .word = word};
    int fds[KEEPER_ENDS];
    if (ends) memcpy(fds, (int[]){ends->control, ends->output, ends->request}, sizeof fds);
    return send_with(nursery->socket, &message, ends ? fds : NULL, MSG_DONTWAIT);
}

/* ---- in the nursery ---- */

static void tell_server(enum nursery_word word, uint64_t id, int error)
{
    struct nursery_message message = {.id = id, .word = word, .error = error};
    send_with(SOCKET_FD, &message, NULL, 0);
}

static bool is_keeper(pid_t pid)
{
    for (uint32_t i = 0; i < kept_count; i++)
        if (kept[i].pid == pid) return true;
    return false;
}

static void keeper_fork(uint64_t id, const struct keeper_ends *ends)
{
    pid_t self = getpid(), pid = -1;
    if (kept_count < LIMIT_SANDBOXED)
        pid = fork();
    else
        errno = EAGAIN;
    if (pid == 0) keeper_run(ends, self);
    if (pid > 0)
        kept[kept_count++] = (struct kept){id, pid};
    else
        tell_server(NURSERY_UNSTARTED, id, errno);
}

static void keeper_kill(uint64_t id)
{
    for (uint32_t i = 0; i < kept_count; i++)
        if (kept[i].id == id && kept[i].pid) kill(kept[i].pid, SIGKILL);
}

/* The descriptors of a packet; false when it has not exactly those of a keeper. */
static bool take_ends(struct msghdr *packet, struct keeper_ends *ends)
{
    struct cmsghdr *head = CMSG_FIRSTHDR(packet);
    if (!head || head->cmsg_type != SCM_RIGHTS || head->cmsg_len != CMSG_LEN(KEEPER_ENDS * sizeof(int)))
        return false;
    int fds[KEEPER_ENDS];
    memcpy(fds, CMSG_DATA(head), sizeof fds);
    *ends = (struct keeper_ends){fds[0], fds[1], fds[2]};
    return true;
}

static void nursery_listen(void)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(KEEPER_ENDS * sizeof(int))];
    } control;
    struct nursery_message message;
    struct keeper_ends ends;
    struct iovec part = {&message, sizeof message};
    struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
    packet.msg_control = control.room;
    packet.msg_controllen = sizeof control.room;
    ssize_t got = recvmsg(SOCKET_FD, &packet, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) is_closing = true;
    if (got != (ssize_t)sizeof message) return;
    if (message.word == NURSERY_KILL) keeper_kill(message.id);
    if (message.word != NURSERY_START) return;
    if (!take_ends(&packet, &ends)) { /* there was no room for them in our table */
        tell_server(NURSERY_UNSTARTED, message.id, EMFILE);
        closefrom(signals + 1);
        return;
    }
    keeper_fork(message.id, &ends);
    close(ends.control);
    close(ends.output);
    close(ends.request);
}

static void keeper_died(pid_t pid, int status)
{
    for (uint32_t i = 0; i < kept_count; i++) {
        if (kept[i].pid != pid) continue;
        kept[i].pid = 0;
        if (status == 0) kept[i] = kept[--kept_count]; /* it has told its result */
        return;
    }
}

/* False when there are no children any more. */
static bool nursery_reap(void)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) keeper_died(pid, status);
    return pid == 0 || errno != ECHILD;
}

/* Ends orphans. When there are none, the keepers that died before their time have left nothing: true. */
static bool nursery_sweep(void)
{
    family_walk(&orphans, FAMILY_KILL, is_keeper);
    if (orphans.count) return false;
    for (uint32_t i = kept_count; i-- > 0;) {
        if (kept[i].pid) continue;
        tell_server(NURSERY_GONE, kept[i].id, 0);
        kept[i] = kept[--kept_count];
    }
    return true;
}

static void nursery_wait(int patience_ms)
{
    struct signalfd_siginfo taken[8];
    struct pollfd poll_for[2] = {{signals, POLLIN, 0}, {SOCKET_FD, POLLIN, 0}};
    poll(poll_for, is_closing ? 1 : 2, patience_ms);
    while (read(signals, taken, sizeof taken) > 0) continue;
    if (!is_closing && poll_for[1].revents) nursery_listen();
}

/* The server is gone, or wants us to be: nothing may be left. */
static _Noreturn void nursery_farewell(void)
{
    int64_t due_us = monotonic_us() + FAREWELL_US;
    while (nursery_reap()) {
        if (monotonic_us() >= due_us)
            for (uint32_t i = 0; i < kept_count; i++)
                if (kept[i].pid) kill(kept[i].pid, SIGKILL);
        nursery_sweep();
        nursery_wait(SWEEP_PAUSE_MS);
    }
    _exit(0);
}

/* Against a bomb of thousands of processes a keeper needs more than its share of the processors. Where we
 * may, we give it to the session, by which some kernels share first, and to the process; the keepers inherit
 * both. */
static void rise(void)
{
    setpriority(PRIO_PROCESS, 0, -20);
    int file = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    ssize_t written = write(file, "-20", 3);
    (void)written;
    close(file);
}

/* Away from the server's terminal, folder, files and signals. */
static void nursery_settle(int socket)
{
    sigset_t set;
    setsid();
    prctl(PR_SET_NAME, "quipu-nursery");
    rise();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    socket = fcntl(socket, F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    nowhere = fcntl(nowhere, F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) dup2(nowhere, fd);
    dup3(socket, SOCKET_FD, O_CLOEXEC);
    closefrom(SOCKET_FD + 1);
    if (chdir("/") != 0) _exit(1);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    family_init(&orphans, LIMIT_FAMILY);
}

static _Noreturn void nursery_run(int socket)
{
    nursery_settle(socket);
    bool is_clean = true;
    while (!is_closing) {
        nursery_wait(is_clean ? -1 : SWEEP_PAUSE_MS);
        nursery_reap();
        is_clean = nursery_sweep();
    }
    nursery_farewell();
}
