/* The keeper of one program: parent of it, reaper of all that it began, and its end.
 *
 * It sleeps until the program ends, the server speaks or goes away, the nursery dies, or it is time to look
 * at the family's memory and number. Whatever happens first leads to the same end: everything is killed until
 * no child is left (which means no descendant, since orphans become our children), then the result is told.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "sandbox/internal.h"

#define PROCESSES_USUAL    1024 /* as Lambda has it */
#define LOOK_MIN_MS        10
#define LOOK_BUSY_MS       100
#define LOOK_IDLE_MS       250        /* each look at a quiet program costs some 50 microseconds */
#define GROWTH_PER_MS      (2u << 20) /* the fastest that a program is thought to fill memory */
#define FORKS_PER_MS       20
#define GROWING_LOOKS      10
#define WEIGH_MS           50
#define VAGUE_LOOKS        4 /* 0.05 s to weigh them, 0.1, 0.2, 0.4: others may want the processors, too */
#define FEW_PROCESSES      32
#define MEMORY_TOLD_BYTES  (256 << 10) /* changes that the server is told of */
#define KILL_PAUSE_MS      2
#define STORAGE_PAUSE_US   500000  /* between two looks at the temporary folder ... */
#define STORAGE_WEIGH_US   100000  /* ... each of which may take so long */
#define SIGNAL_OF_ORPHANED SIGUSR2 /* sent by the kernel when the nursery dies */
#define OUT_OF_THE_WAY     16      /* a number that no descriptor that is kept gets */

struct keeper {
    struct request request;
    int control, signals, failure;
    pid_t program;
    bool is_over, is_asked; /* is_asked: the server wants it to end */
    struct keeper_message result;
    int64_t kill_us, look_us; /* when the grace is over; when to look at the family again */
    int64_t look_ms;
    uint64_t told_bytes, peak_bytes, cpu_ticks;
    unsigned growing_looks; /* in which there were more processes than before */
    int64_t storage_us;     /* when to weigh its temporary folder again */
    unsigned vague_looks;   /* in which the time did not suffice to weigh them */
};

static struct family family;
static struct family seekers; /* the same, when a socket is looked for: the other's figures stay */

static void keeper_tell(struct keeper *keeper, enum keeper_word word, uint64_t value, int flags)
{
    keeper->result.word = word;
    keeper->result.value = value;
    send(keeper->control, &keeper->result, sizeof keeper->result, MSG_NOSIGNAL | flags);
}

/* The first reason is the one that is told. */
static void keeper_conclude(struct keeper *keeper, enum sandbox_end end, int status)
{
    if (keeper->is_over) return;
    keeper->is_over = true;
    keeper->result.end = end;
    keeper->result.status = status;
}

/* ---- children ---- */

/* The kernel's own note of its peak: what ends between two looks is measured, too. */
static void program_ended(struct keeper *keeper, int status, const struct rusage *usage)
{
    uint64_t most_bytes = (uint64_t)usage->ru_maxrss * 1024;
    if (most_bytes > keeper->peak_bytes) keeper->peak_bytes = most_bytes;
    keeper->program = 0;
    if (keeper->is_asked)
        keeper_conclude(keeper, SANDBOX_STOPPED, 0);
    else if (WIFSIGNALED(status))
        keeper_conclude(keeper, SANDBOX_SIGNALLED, WTERMSIG(status));
    else
        keeper_conclude(keeper, SANDBOX_EXITED, WEXITSTATUS(status));
}

/* False when there are no children any more. */
static bool keeper_reap(struct keeper *keeper)
{
    struct rusage usage;
    int status;
    pid_t pid;
    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0)
        if (pid == keeper->program) program_ended(keeper, status, &usage);
    return pid == 0 || errno != ECHILD;
}

static void signals_clear(struct keeper *keeper)
{
    struct signalfd_siginfo taken[8];
    while (read(keeper->signals, taken, sizeof taken) > 0) continue;
}

/* Who is killed needs the processors to end: whoever comes first leaves them as much time as it takes. */
static void keeper_end_family(struct keeper *keeper)
{
    family_init(&family, LIMIT_FAMILY);
    struct pollfd poll_for = {keeper->signals, POLLIN, 0};
    while (keeper_reap(keeper)) {
        int64_t begin_us = monotonic_us();
        family_walk(&family, FAMILY_KILL, NULL);
        poll(&poll_for, 1, KILL_PAUSE_MS + (int)((monotonic_us() - begin_us) / 1000));
        signals_clear(keeper);
    }
}

/* ---- limits ---- */

/* False: the time did not suffice. Next time it is longer, and in the end all count in full. */
static bool keeper_weigh(struct keeper *keeper)
{
    bool is_weighed = family_weigh(&family, WEIGH_MS << keeper->vague_looks, &family.memory_bytes);
    bool is_vague = !is_weighed && keeper->vague_looks + 1 < VAGUE_LOOKS;
    keeper->vague_looks = is_vague ? keeper->vague_looks + 1 : 0;
    return !is_vague;
}

/* Pages that a fork shares with its parent count in each of them. Where there are several processes and their
 * sum would be news, it is measured exactly: slower, and it waits for each that is just forking. So not while
 * they become more, or a bomb would win the time that it needs. Those who become more for long, and seem to
 * use too much, are weighed if they are few; else the sum is taken as it is. False: not measured. */
static bool family_measure(struct keeper *keeper)
{
    uint32_t before = family.alive;
    uint64_t limit = keeper->request.memory_bytes;
    family_walk(&family, FAMILY_COUNT, NULL);
    if (family.alive > keeper->request.process_count) {
        keeper_conclude(keeper, SANDBOX_PROCESSES, 0);
        return false;
    }
    if (family.alive <= 1 || family.memory_bytes <= keeper->peak_bytes) return true;
    bool is_growing = family.alive > before;
    keeper->growing_looks = is_growing ? keeper->growing_looks + 1 : 0;
    if (is_growing && (!limit || family.memory_bytes <= limit || keeper->growing_looks < GROWING_LOOKS))
        return false;
    return (is_growing && family.alive > FEW_PROCESSES) || keeper_weigh(keeper);
}

/* When it can have passed a limit, at that speed. */
static int64_t time_until(uint64_t now, uint64_t limit, uint64_t speed_per_ms)
{
    uint64_t left = limit > now ? limit - now : 0;
    return limit == 0 || left / speed_per_ms > LOOK_BUSY_MS ? LOOK_BUSY_MS : (int64_t)(left / speed_per_ms);
}

/* One that has used no processor time cannot have grown. */
static int64_t next_look_ms(const struct keeper *keeper)
{
    if (family.cpu_ticks == keeper->cpu_ticks && family.alive <= 1)
        return keeper->look_ms * 2 < LOOK_IDLE_MS ? keeper->look_ms * 2 : LOOK_IDLE_MS;
    int64_t memory_ms = time_until(family.memory_bytes, keeper->request.memory_bytes, GROWTH_PER_MS);
    int64_t count_ms = time_until(family.alive, keeper->request.process_count, FORKS_PER_MS);
    int64_t wanted_ms = memory_ms < count_ms ? memory_ms : count_ms;
    return wanted_ms < LOOK_MIN_MS ? LOOK_MIN_MS : wanted_ms;
}

/* One that has used no processor time cannot have written either. */
static void keeper_weigh_storage(struct keeper *keeper)
{
    const struct request *request = &keeper->request;
    int64_t now_us = monotonic_us();
    if (!request->temporary || !request->storage_bytes || now_us < keeper->storage_us) return;
    if (family.cpu_ticks == keeper->cpu_ticks && keeper->storage_us) return;
    if (storage_weigh(request->temporary, request->storage_bytes, now_us + STORAGE_WEIGH_US) >
        request->storage_bytes)
        keeper_conclude(keeper, SANDBOX_STORAGE, 0);
    keeper->storage_us = monotonic_us() + STORAGE_PAUSE_US;
}

static void keeper_note_memory(struct keeper *keeper, uint64_t now)
{
    uint64_t limit = keeper->request.memory_bytes, told = keeper->told_bytes;
    if (now > keeper->peak_bytes) keeper->peak_bytes = now;
    if (limit && now > limit) keeper_conclude(keeper, SANDBOX_MEMORY, 0);
    if ((now > told ? now - told : told - now) < MEMORY_TOLD_BYTES) return;
    keeper->told_bytes = now;
    keeper_tell(keeper, KEEPER_MEMORY, now, MSG_DONTWAIT);
}

static void keeper_look(struct keeper *keeper)
{
    if (family_measure(keeper)) keeper_note_memory(keeper, family.memory_bytes);
    keeper_weigh_storage(keeper);
    keeper->look_ms = next_look_ms(keeper);
    keeper->look_us = monotonic_us() + keeper->look_ms * 1000;
    keeper->cpu_ticks = family.cpu_ticks;
}

/* ---- the server's words ---- */

static void keeper_stop(struct keeper *keeper, int64_t grace_ms)
{
    int64_t kill_us = monotonic_us() + grace_ms * 1000;
    if (grace_ms > 0 && !keeper->is_asked && keeper->program > 0) kill(keeper->program, SIGTERM);
    keeper->is_asked = true;
    if (kill_us < keeper->kill_us) keeper->kill_us = kill_us;
}

static void keeper_answer_peer(struct keeper *keeper, const struct keeper_message *asked)
{
    struct keeper_message answer = {.word = KEEPER_PEER};
    answer.end = peer_find(&seekers, (uint16_t)(asked->end >> 16), (uint16_t)asked->end);
    send(keeper->control, &answer, sizeof answer, MSG_NOSIGNAL);
}

static void keeper_listen(struct keeper *keeper)
{
    struct keeper_message message;
    ssize_t got = recv(keeper->control, &message, sizeof message, MSG_DONTWAIT);
    if (got == (ssize_t)sizeof message && message.word == KEEPER_STOP)
        keeper_stop(keeper, (int64_t)message.value);
    else if (got == (ssize_t)sizeof message && message.word == KEEPER_PEER)
        keeper_answer_peer(keeper, &message);
    else if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        keeper_conclude(keeper, SANDBOX_STOPPED, 0); /* the server is gone */
}

static int keeper_patience_ms(const struct keeper *keeper)
{
    int64_t due = keeper->kill_us < keeper->look_us ? keeper->kill_us : keeper->look_us;
    int64_t left = due - monotonic_us();
    return left <= 0 ? 0 : (int)(left / 1000 + 1);
}

static void keeper_watch(struct keeper *keeper, pid_t nursery)
{
    struct pollfd poll_for[2] = {{keeper->control, POLLIN, 0}, {keeper->signals, POLLIN, 0}};
    while (!keeper->is_over) {
        poll(poll_for, 2, keeper_patience_ms(keeper));
        signals_clear(keeper);
        keeper_reap(keeper);
        if (poll_for[0].revents) keeper_listen(keeper);
        if (getppid() != nursery || monotonic_us() >= keeper->kill_us)
            keeper_conclude(keeper, SANDBOX_STOPPED, 0);
        if (!keeper->is_over && monotonic_us() >= keeper->look_us) keeper_look(keeper);
    }
}

/* ---- its life ---- */

/* Leaves only the ends, at the numbers behind standard error; those lead nowhere since the nursery. */
static void keep_only(struct keeper_ends *ends)
{
    int *fds[KEEPER_ENDS] = {&ends->control, &ends->output, &ends->request};
    for (int i = 0; i < KEEPER_ENDS; i++) *fds[i] = fcntl(*fds[i], F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);
    for (int i = 0; i < KEEPER_ENDS; i++) *fds[i] = dup2(*fds[i], STDERR_FILENO + 1 + i);
    closefrom(STDERR_FILENO + 1 + KEEPER_ENDS);
}

static void keeper_settle(struct keeper *keeper)
{
    sigset_t set;
    come_first();
    prctl(PR_SET_NAME, "quipu-keeper");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGNAL_OF_ORPHANED);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGNAL_OF_ORPHANED);
    keeper->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void keeper_begin(struct keeper *keeper, struct keeper_ends *ends)
{
    int error = request_read(ends->request, &keeper->request);
    close(ends->request);
    if (!error && keeper->request.temporary)
        error = storage_make(keeper->request.temporary, &keeper->request.user);
    if (!error && keeper->request.files) {
        error = storage_make(keeper->request.files, &keeper->request.user);
        if (error == EEXIST) error = 0; /* whatever it holds */
    }
    if (!error) {
        if (!keeper->request.process_count) keeper->request.process_count = PROCESSES_USUAL;
        keeper->program = program_start(&keeper->request, ends->output, &keeper->failure);
        if (keeper->program < 0) error = errno;
    }
    close(ends->output);
    if (error) keeper_conclude(keeper, SANDBOX_UNSTARTED, error);
    family_init(&family, keeper->request.process_count + 1);
    family_init(&seekers, LIMIT_FAMILY);
}

_Noreturn void keeper_run(const struct keeper_ends *given, pid_t nursery)
{
    struct keeper_ends ends = *given;
    keep_only(&ends);
    struct keeper keeper = {
        .control = ends.control, .failure = -1, .kill_us = INT64_MAX, .look_ms = LOOK_MIN_MS};
    keeper_settle(&keeper);
    keeper_begin(&keeper, &ends);
    keeper.look_us = monotonic_us() + keeper.look_ms * 1000;
    keeper_watch(&keeper, nursery);
    keeper_end_family(&keeper);
    if (keeper.request.temporary) storage_remove(keeper.request.temporary);
    int error = 0;
    if (keeper.failure >= 0 && read(keeper.failure, &error, sizeof error) == (ssize_t)sizeof error) {
        keeper.result.end = SANDBOX_UNSTARTED;
        keeper.result.status = error;
    }
    keeper_tell(&keeper, KEEPER_END, keeper.peak_bytes, 0);
    _exit(0);
}
