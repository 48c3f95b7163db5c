/* Renewing on a thread of its own: a call that hangs must not keep the command from being ended in time. */
#include "cli/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/fail.h"
#include "base/limits.h"
#include "calendar/calendar.h"
#include "cli/place.h"

#define TICK_MS         100
#define RENEWALS        3 /* in the time that one lasts */
#define GRACE_PARTS     6 /* the last part of it is for the command to end by itself */
#define LOST_GRACE_US   2000000
#define RETRY_LEAST_MS  50
#define STUCK_S         1 /* what a renewal is waited for when all is lost */
#define ENVIRONMENT_MAX 4096

/* ---- signals ---- */

static void signal_set(sigset_t *set)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigemptyset(set);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) sigaddset(set, numbers[i]);
}

void signals_keep(void)
{
    sigset_t set;
    signal_set(&set);
    sigaddset(&set, SIGCHLD);
    ensure(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
}

void signals_let(void)
{
    sigset_t set;
    signal_set(&set);
    ensure(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
}

int signals_pending(void)
{
    sigset_t set;
    signal_set(&set);
    int number = sigtimedwait(&set, NULL, &(struct timespec){0, 0});
    return number > 0 ? number : 0;
}

/* ---- renewing ---- */

struct renewer {
    const struct hold *hold;
    pthread_t thread;
    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t changed;
    int64_t until_us; /* it is held for sure, monotonic */
    bool is_refused, ends;
};

/* Sleeps until the moment or the end; true: the end. Called with the lock. */
static bool renewer_sleep(struct renewer *renewer, int64_t until_us)
{
    while (!renewer->ends && cond_wait_until(&renewer->changed, &renewer->lock, until_us)) continue;
    return renewer->ends;
}

/* Others have it, or it is not there any more: asking again is no use. */
static bool is_refusal(const struct heard *heard)
{
    return heard_status(heard) == EXIT_LOST || heard->status == 404 || heard->status == 400;
}

static void *renew(void *context)
{
    struct renewer *renewer = context;
    const struct hold *hold = renewer->hold;
    int64_t part_us = hold->for_ms * 1000 / RENEWALS, next_us = hold->from_us + part_us;
    pthread_mutex_lock(&renewer->lock);
    while (!renewer->is_refused && !renewer_sleep(renewer, next_us)) {
        struct arena arena = {0};
        pthread_mutex_unlock(&renewer->lock);
        int64_t asked_us = monotonic_us();
        struct heard heard = inquiry_run(hold->place, &arena, &hold->renewal);
        pthread_mutex_lock(&renewer->lock);
        bool fine = heard_status(&heard) == EXIT_FINE;
        if (fine) renewer->until_us = asked_us + hold->for_ms * 1000;
        renewer->is_refused = !fine && is_refusal(&heard);
        next_us = fine ? asked_us + part_us : monotonic_us() + RETRY_LEAST_MS * 1000;
        arena_free(&arena);
    }
    pthread_mutex_unlock(&renewer->lock);
    return NULL;
}

static void renewer_begin(struct renewer *renewer, const struct hold *hold)
{
    *renewer = (struct renewer){.hold = hold, .until_us = hold->from_us + hold->for_ms * 1000};
    ensure(pthread_mutex_init(&renewer->lock, NULL) == 0);
    cond_init(&renewer->changed);
    ensure(pthread_create(&renewer->thread, NULL, renew, renewer) == 0);
}

/* A renewal may hang for long where nobody answers. When all is lost nobody should wait for it, and since its
 * thread uses the place, nothing can be closed: the process ends as it is. */
static void renewer_end(struct renewer *renewer, bool is_lost)
{
    struct timespec soon;
    pthread_mutex_lock(&renewer->lock);
    renewer->ends = true;
    pthread_cond_signal(&renewer->changed);
    pthread_mutex_unlock(&renewer->lock);
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_sec += is_lost ? STUCK_S : 0;
    if (is_lost && pthread_timedjoin_np(renewer->thread, NULL, &soon) != 0) {
        complain("nobody answers, so what was held is lost, and the command was ended");
        fflush(NULL);
        _exit(EXIT_LOST);
    }
    if (!is_lost) pthread_join(renewer->thread, NULL);
    pthread_cond_destroy(&renewer->changed);
    pthread_mutex_destroy(&renewer->lock);
}

/* How long it is held for sure: the end by the clock, or at once when it was refused. */
static int64_t renewer_until_us(struct renewer *renewer)
{
    pthread_mutex_lock(&renewer->lock);
    int64_t until_us = renewer->is_refused ? 0 : renewer->until_us;
    pthread_mutex_unlock(&renewer->lock);
    return until_us;
}

/* ---- the command ---- */

struct child {
    pid_t pid;
    bool has_group;   /* its own, so that all it started is ended with it */
    int64_t asked_us; /* when it was asked to end; 0: not yet */
};

static void child_signal(const struct child *child, int number)
{
    kill(child->has_group ? -child->pid : child->pid, number);
}

static void move_to(int from, int to)
{
    if (from >= 0 && from != to) dup2(from, to);
}

/* Between fork and exec, so nothing here takes a lock. A child must not outlive who renews for it. */
static _Noreturn void child_become(const struct program_run *program, char *const *environment, pid_t parent,
                                   bool has_group, int report)
{
    sigset_t none;
    sigemptyset(&none);
    if (has_group) setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    move_to(program->input, STDIN_FILENO);
    move_to(program->output, STDOUT_FILENO);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    place_reset_umask();
    execvpe(program->words[0], program->words, environment);
    int failure = errno;
    ssize_t wrote = write(report, &failure, sizeof failure);
    _exit(wrote == (ssize_t)sizeof failure ? 127 : 126);
}

static char *const *environment_make(struct arena *arena, const char *const *settings)
{
    char **all = arena_array(arena, char *, ENVIRONMENT_MAX);
    size_t count = 0, added = 0;
    for (; settings[added]; added++) all[count++] = (char *)(uintptr_t)settings[added];
    for (char **one = environ; *one && count + 1 < ENVIRONMENT_MAX; one++) {
        bool is_set = false;
        for (size_t i = 0; i < added; i++) {
            size_t name = strcspn(settings[i], "=") + 1;
            is_set |= strncmp(*one, settings[i], name) == 0;
        }
        if (!is_set) all[count++] = *one;
    }
    all[count] = NULL;
    return all;
}

/* 0, or errno. At a terminal the command stays in our group, so that it may read what is typed. */
static int child_start(struct child *child, const struct program_run *program)
{
    struct arena arena = {0};
    int report[2], failure = 0;
    if (pipe2(report, O_CLOEXEC) != 0) return errno;
    char *const *environment = environment_make(&arena, program->settings);
    *child = (struct child){.has_group = isatty(STDIN_FILENO) != 1 || program->input >= 0};
    pid_t parent = getpid();
    child->pid = fork();
    if (child->pid == 0) child_become(program, environment, parent, child->has_group, report[1]);
    if (child->pid < 0) failure = errno;
    if (child->pid > 0 && child->has_group) setpgid(child->pid, child->pid);
    close(report[1]);
    if (child->pid > 0 && read(report[0], &failure, sizeof failure) == (ssize_t)sizeof failure)
        waitpid(child->pid, NULL, 0);
    close(report[0]);
    arena_free(&arena);
    return failure;
}

/* Asks it to end while there is time for that, then ends it. True: it is to end. */
static bool child_hurry(struct child *child, int64_t until_us, int64_t for_ms)
{
    int64_t now_us = monotonic_us(), grace_us = for_ms * 1000 / GRACE_PARTS;
    bool is_refused = until_us == 0;
    if (!is_refused && now_us < until_us - grace_us) return false;
    if (!child->asked_us) {
        child->asked_us = now_us;
        child_signal(child, SIGTERM);
    }
    if (now_us >= (is_refused ? child->asked_us + LOST_GRACE_US : until_us)) child_signal(child, SIGKILL);
    return true;
}

static void child_watch(struct child *child, struct renewer *renewer, int64_t for_ms, struct ran *ran)
{
    sigset_t set;
    signal_set(&set);
    sigaddset(&set, SIGCHLD);
    while (waitpid(child->pid, &ran->wait_status, WNOHANG) == 0) {
        int number = sigtimedwait(&set, NULL, &(struct timespec){0, TICK_MS * 1000000});
        bool is_shared = !child->has_group && (number == SIGINT || number == SIGQUIT); /* it has it already */
        if (number > 0 && number != SIGCHLD) ran->signal = number;
        if (number > 0 && number != SIGCHLD && !is_shared) child_signal(child, number);
        if (child_hurry(child, renewer_until_us(renewer), for_ms)) ran->was_lost = true;
    }
    if (child->has_group) child_signal(child, SIGKILL); /* whatever it left behind */
}

struct ran hold_run(const struct hold *hold, const struct program_run *program)
{
    struct ran ran = {0};
    struct renewer renewer;
    struct child child = {0};
    ran.failure = child_start(&child, program);
    if (ran.failure) return ran;
    renewer_begin(&renewer, hold);
    child_watch(&child, &renewer, hold->for_ms, &ran);
    renewer_end(&renewer, ran.was_lost);
    return ran;
}

int ran_status(const struct ran *ran)
{
    if (ran->failure) return ran->failure == ENOENT ? 127 : 126;
    return WIFEXITED(ran->wait_status) ? WEXITSTATUS(ran->wait_status) : 128 + WTERMSIG(ran->wait_status);
}

/* ---- what these commands share ---- */

const char *owner_make(struct arena *arena)
{
    char host[256] = "";
    if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
    return arena_printf(arena, "%.100s/%d/%llx", host, (int)getpid(), (unsigned long long)monotonic_us())
        .data;
}

bool argument_duration(const struct arguments *arguments, const char *flag, int64_t max_ms, int64_t *out_ms)
{
    const char *text = argument_text(arguments, flag);
    if (!text || duration_parse(slice_of(text), max_ms, out_ms)) return true;
    complain_of_usage(arguments, "--%s should be a duration like 250ms, 30s or 5m, not '%s'", flag, text);
    return false;
}

const char *ran_reason(struct arena *arena, const struct ran *ran)
{
    if (ran->failure)
        return arena_printf(arena, "the command cannot be started: %s", strerror(ran->failure)).data;
    if (WIFSIGNALED(ran->wait_status))
        return arena_printf(arena, "signal %d", WTERMSIG(ran->wait_status)).data;
    int status = WEXITSTATUS(ran->wait_status);
    return status ? arena_printf(arena, "exit status %d", status).data : NULL;
}

void ran_put_result(FILE *output, struct buf *body)
{
    struct buf text = {0};
    struct arena arena = {0};
    const char *fault;
    rewind(output);
    buf_reserve(&text, LIMIT_ITEM_BYTES + 2);
    text.len = fread(text.data, 1, LIMIT_ITEM_BYTES + 2, output);
    while (text.len && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == '\r')) text.len--;
    if (text.len && utf8_valid(buf_view(&text))) {
        put_name(body, "result");
        if (node_parse(&arena, buf_view(&text), &fault))
            buf_slice(body, buf_view(&text));
        else
            json_put_string(body, buf_view(&text));
    }
    arena_free(&arena);
    buf_free(&text);
}
