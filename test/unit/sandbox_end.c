/* How programs end, above all those that do not want to: after `ended` nothing of them is left. */
#include <sys/prctl.h>
#include <sys/wait.h>

#include "unit/sandbox_fixture.h"

#define PATIENCE_US   30000000 /* what takes so long has failed */
#define STOPPED_TWICE 40

static void check_ended(struct heard *heard, enum sandbox_end end, int status)
{
    struct sandbox_result result = heard_wait(heard);
    CHECK_INT(result.end, end);
    CHECK_INT(result.status, status);
    CHECK_INT(processes_alive(buf_view(&heard->text)), 0);
    CHECK(heard->text.len > 0); /* it has told who must be gone */
}

/* Runs until it is ready and has told its numbers, is stopped, and must be gone with all of them. */
static void check_stop(const char *text, int64_t grace_ms)
{
    struct sandbox *sandbox = sandbox_for_test();
    struct heard heard;
    heard_shell(&heard, sandbox, text);
    heard_wait_for(&heard, "ready");
    sandbox_stop(heard.sandboxed, grace_ms);
    check_ended(&heard, SANDBOX_STOPPED, 0);
    heard_free(&heard);
    sandbox_free(sandbox);
}

TEST(a_stop_ends_who_ignores_signals)
{
    const char *stubborn = "trap '' TERM INT HUP; echo $$ ready; while :; do sleep 0.05; done";
    check_stop(stubborn, 0);
    check_stop(stubborn, 50);
}

TEST(who_heeds_a_stop_may_say_goodbye)
{
    struct sandbox *sandbox = sandbox_for_test();
    struct heard heard;
    heard_shell(&heard, sandbox, "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.01; done");
    heard_wait_for(&heard, "ready");
    sandbox_stop(heard.sandboxed, 20000);
    CHECK_INT(heard_wait(&heard).end, SANDBOX_STOPPED);
    CHECK_TEXT(buf_view(&heard.text), "ready\nbye\n");
    heard_free(&heard);
    sandbox_free(sandbox);
}

TEST(a_later_stop_may_be_shorter)
{
    struct sandbox *sandbox = sandbox_for_test();
    struct heard heard;
    heard_shell(&heard, sandbox, "trap '' TERM; echo $$ ready; while :; do sleep 0.05; done");
    heard_wait_for(&heard, "ready");
    sandbox_stop(heard.sandboxed, 3600000);
    sandbox_stop(heard.sandboxed, 100);
    sandbox_stop(heard.sandboxed, 3600000);
    check_ended(&heard, SANDBOX_STOPPED, 0);
    heard_free(&heard);
    sandbox_free(sandbox);
}

/* It ends without having read the second one. */
TEST(who_is_stopped_twice_ends_once)
{
    struct sandbox *sandbox = sandbox_for_test();
    struct heard heard;
    for (int i = 0; i < STOPPED_TWICE; i++) {
        heard_shell(&heard, sandbox, "echo ready; exec sleep 3600");
        heard_wait_for(&heard, "ready");
        sandbox_stop(heard.sandboxed, 0);
        usleep((useconds_t)i * 20);
        sandbox_stop(heard.sandboxed, 0);
        check_ended(&heard, SANDBOX_STOPPED, 0);
        heard_free(&heard);
    }
    sandbox_free(sandbox);
}

TEST(a_stop_before_the_start_is_heeded)
{
    struct sandbox *sandbox = sandbox_for_test();
    struct heard heard[20];
    for (int i = 0; i < 20; i++) {
        heard_shell(&heard[i], sandbox, "sleep 1000");
        sandbox_stop(heard[i].sandboxed, i % 2 ? 0 : 50);
    }
    for (int i = 0; i < 20; i++) {
        CHECK_INT(heard_wait(&heard[i]).end, SANDBOX_STOPPED);
        heard_free(&heard[i]);
    }
    sandbox_free(sandbox);
}

/* The one that is started exits; what it began must not stay, wherever it has gone. */
static void check_leftovers(const char *text)
{
    struct sandbox *sandbox = sandbox_for_test();
    struct heard heard;
    heard_shell(&heard, sandbox, text);
    check_ended(&heard, SANDBOX_EXITED, 4);
    heard_free(&heard);
    sandbox_free(sandbox);
}

/* A shell that exits when what it began has said who it is. */
#define EXITS_WHEN_TOLD "trap 'exit 4' USR1\n"
#define RESTS           "while :; do sleep 0.02; done"

TEST(children_end_with_their_program)
{
    check_leftovers("sleep 1000 & echo $!; sleep 1000 & echo $!; exit 4");
    check_leftovers("(trap '' TERM HUP; while :; do sleep 0.1; done) & echo $!; exit 4");
}

TEST(daemons_end_with_their_program)
{
    check_leftovers(EXITS_WHEN_TOLD "(setsid sh -c 'echo $$; trap \"\" TERM HUP; (sleep 1000 & echo $!; kill "
                                    "-USR1 $0) & wait; sleep 1000'"
                                    " $$ &)\n" RESTS);
    check_leftovers(
        "(setsid setsid sh -c 'exec > /dev/null < /dev/null 2>&1; sleep 1000' & echo $!); exit 4");
}

/* Each of a chain waits for the next, so that the last one's line of ancestors is long. */
TEST(long_chains_end_with_their_program)
{
    check_leftovers(EXITS_WHEN_TOLD "chain() { if [ $1 -gt 0 ]; then (chain $(($1 - 1))); :; else\n"
                                    "sh -c 'echo $PPID; kill -USR1 $0; sleep 1000' $$; fi; }\n"
                                    "chain 40 &\n" RESTS);
}

/* Whoever is killed is started again by another. */
TEST(those_who_revive_each_other_end)
{
    check_stop("guard() { while :; do (trap '' TERM; echo $$; sleep 1000); done; }\n"
               "guard & guard & guard & echo $! ready; wait",
               0);
}

/* ---- bombs: this program itself, in a part that its environment gives it ---- */

#define FUSE_US 30000000 /* then a bomb ends by itself, should nobody else be able to end it */

static int64_t fuse_us;

static void burn(void)
{
    if (monotonic_us() > fuse_us) _exit(1);
}

static void bomb_grow(bool has_sessions)
{
    for (;; burn()) {
        pid_t pid = fork();
        if (pid == 0 && has_sessions) setsid();
        if (pid < 0) usleep(1000);
    }
}

/* Each is gone, and its child in another session, before anybody has looked. */
static void bomb_run_away(void)
{
    for (; fork() == 0; burn()) setsid();
    _exit(0);
}

__attribute__((constructor)) static void act_a_part(void)
{
    const char *part = getenv("SANDBOX_TEST_PART");
    if (!part) return;
    printf("%ld ready\n", (long)getpid());
    fflush(stdout);
    fuse_us = monotonic_us() + FUSE_US;
    if (strcmp(part, "grow") == 0) bomb_grow(false);
    if (strcmp(part, "spread") == 0) bomb_grow(true);
    if (strcmp(part, "run away") == 0)
        for (int i = 0; i < 3; i++)
            if (fork() == 0) bomb_run_away();
    for (;; burn()) usleep(1000);
}

static void bomb_run(struct heard *heard, struct sandbox *sandbox, const char *part)
{
    struct sandbox_program program = {.arguments = (const char *[]){"/proc/self/exe", NULL},
                                      .environment = (const char *[]){part, NULL},
                                      .process_count = 100};
    heard_run(heard, sandbox, &program);
}

TEST(a_bomb_of_forks_is_bounded)
{
    static const char *const parts[] = {"SANDBOX_TEST_PART=grow", "SANDBOX_TEST_PART=spread"};
    struct sandbox *sandbox = sandbox_for_test();
    struct heard heard;
    for (int i = 0; i < 2; i++) {
        bomb_run(&heard, sandbox, parts[i]);
        check_ended(&heard, SANDBOX_PROCESSES, 0);
        heard_free(&heard);
    }
    heard_shell(&heard, sandbox, "echo fine"); /* and others run on */
    CHECK_INT(heard_wait(&heard).end, SANDBOX_EXITED);
    heard_free(&heard);
    sandbox_free(sandbox);
}

TEST(those_who_run_away_from_their_hunter_end)
{
    struct sandbox *sandbox = sandbox_for_test();
    struct heard heard;
    bomb_run(&heard, sandbox, "SANDBOX_TEST_PART=run away");
    heard_wait_for(&heard, "ready");
    usleep(50000);
    sandbox_stop(heard.sandboxed, 0);
    check_ended(&heard, SANDBOX_STOPPED, 0);
    heard_free(&heard);
    sandbox_free(sandbox);
}

TEST(as_many_processes_as_allowed_are_allowed)
{
    struct sandbox *sandbox = sandbox_for_test();
    struct heard heard;
    const char *arguments[] = {"/bin/sh", "-c", "for i in 1 2 3 4; do sleep 0.6 & done; wait; exit 6", NULL};
    heard_run(&heard, sandbox, &(struct sandbox_program){.arguments = arguments, .process_count = 5});
    CHECK_INT(heard_wait(&heard).end, SANDBOX_EXITED);
    heard_free(&heard);
    arguments[2] = "for i in 1 2 3 4; do sleep 1000 & done; wait";
    heard_run(&heard, sandbox, &(struct sandbox_program){.arguments = arguments, .process_count = 4});
    CHECK_INT(heard_wait(&heard).end, SANDBOX_PROCESSES);
    heard_free(&heard);
    sandbox_free(sandbox);
}

static void run_with_memory(struct heard *heard, struct sandbox *sandbox, const char *text,
                            uint64_t megabytes)
{
    const char *arguments[] = {"/bin/sh", "-c", text, NULL};
    heard_run(heard, sandbox,
              &(struct sandbox_program){.arguments = arguments, .memory_bytes = megabytes * 1024 * 1024});
}

TEST(who_takes_too_much_memory_ends)
{
    struct sandbox *sandbox = sandbox_for_test();
    struct heard heard;
    run_with_memory(&heard, sandbox, "echo $$; exec tail -n 1 /dev/zero", 40);
    check_ended(&heard, SANDBOX_MEMORY, 0);
    CHECK(heard.result.memory_bytes > 40 * 1024 * 1024);
    heard_free(&heard);
    run_with_memory(
        &heard, sandbox,
        "for i in 1 2 3 4; do (head -c 25000000 /dev/zero; sleep 1000) | tail -n 1 & echo $!; done; wait",
        60);
    check_ended(&heard, SANDBOX_MEMORY, 0);
    heard_free(&heard);
    sandbox_free(sandbox);
}

TEST(memory_that_is_shared_after_a_fork_counts_once)
{
    struct sandbox *sandbox = sandbox_for_test();
    struct heard heard;
    run_with_memory(
        &heard, sandbox,
        "x=$(head -c 20000000 /dev/zero | tr '\\0' x); for i in 1 2 3 4 5; do (sleep 0.5; :) & done; wait",
        110);
    CHECK_INT(heard_wait(&heard).end, SANDBOX_EXITED);
    CHECK(heard.result.memory_bytes > 20000000);
    heard_free(&heard);
    sandbox_free(sandbox);
}

TEST(memory_in_use_can_be_asked_for)
{
    struct sandbox *sandbox = sandbox_for_test();
    struct heard heard;
    heard_shell(&heard, sandbox, "(head -c 30000000 /dev/zero; sleep 1000) | tail -n 1");
    int64_t due_us = monotonic_us() + PATIENCE_US;
    while (sandbox_memory_bytes(heard.sandboxed) < 30000000 && monotonic_us() < due_us) usleep(10000);
    CHECK(sandbox_memory_bytes(heard.sandboxed) >= 30000000);
    sandbox_stop(heard.sandboxed, 0);
    heard_free(&heard);
    sandbox_free(sandbox);
}

/* ---- those who hunt the hunters ---- */

/* The terminal's signals, and those of a service manager, are for the server to decide about. */
TEST(keepers_and_nursery_heed_no_signals)
{
    struct sandbox *sandbox = sandbox_for_test();
    struct heard heard;
    heard_shell(&heard, sandbox,
                "read _ _ _ nursery _ < /proc/$PPID/stat\n"
                "for s in INT TERM HUP QUIT USR1 USR2 CHLD PIPE; do kill -$s $PPID $nursery; done\n"
                "sleep 0.1; kill -0 $PPID $nursery && echo both; exit 8");
    CHECK_INT(heard_wait(&heard).status, 8);
    CHECK_TEXT(buf_view(&heard.text), "both\n");
    heard_free(&heard);
    heard_shell(&heard, sandbox, "read _ _ _ _ _ session _ < /proc/$PPID/stat; echo $session");
    heard_wait(&heard);
    CHECK(heard.text.len > 0 && strtol(heard.text.data, NULL, 10) != getsid(0));
    heard_free(&heard);
    sandbox_free(sandbox);
}

TEST(a_keeper_that_is_killed_leaves_nothing)
{
    struct sandbox *sandbox = sandbox_for_test();
    for (int i = 0; i < 5; i++) {
        struct heard heard;
        heard_shell(
            &heard, sandbox,
            "trap '' TERM; echo $$; (setsid sh -c 'echo $$; sleep 1000; :' &); sleep 0.1; kill -9 $PPID; "
            "while :; do sleep 0.1; done");
        check_ended(&heard, SANDBOX_SIGNALLED, SIGKILL);
        heard_free(&heard);
    }
    sandbox_free(sandbox);
}

TEST(a_keeper_that_is_stopped_is_replaced_by_the_nursery)
{
    check_stop(
        "trap '' TERM; echo $$; (setsid sleep 1000 & echo $!); kill -STOP $PPID; echo ready; sleep 1000", 0);
}

TEST(the_server_outlives_the_nursery)
{
    struct sandbox *sandbox = sandbox_for_test();
    struct heard heard;
    heard_shell(&heard, sandbox,
                "trap '' TERM; echo $$; (setsid sleep 1000 & echo $!)\n"
                "read _ _ _ nursery _ < /proc/$PPID/stat; kill -9 $nursery; sleep 1000");
    check_ended(&heard, SANDBOX_STOPPED, 0);
    heard_free(&heard);
    for (int i = 0; i < 3; i++) {
        heard_shell(&heard, sandbox, "echo again; exit 9");
        CHECK_INT(heard_wait(&heard).status, 9);
        heard_free(&heard);
    }
    sandbox_free(sandbox);
}

/* ---- a server that dies ---- */

static const char *const hostile[] = {
    "trap '' TERM HUP INT; echo $$ ready; while :; do sleep 0.1; done",
    "(setsid sh -c 'echo $$ ready; trap \"\" TERM HUP; while :; do sleep 0.1; done' &); sleep 1000",
    "guard() { while :; do (sleep 1000); done; }; guard & guard & echo $! ready; wait",
    "kill -STOP $PPID; echo $$ ready; sleep 1000",
};
#define HOSTILE (sizeof hostile / sizeof *hostile)

/* What is said goes to the test, so that it knows who must be gone. */
static void pass_on(void *context, struct slice bytes)
{
    ssize_t written = write(*(int *)context, bytes.data, bytes.len);
    (void)written;
}

static _Noreturn void serve_until_killed(int out)
{
    struct sandbox *sandbox = sandbox_for_test();
    struct sandbox_program program = {.folder = "/", .output = pass_on, .context = &out};
    for (size_t i = 0; i < HOSTILE; i++) {
        program.arguments = (const char *[]){"/bin/sh", "-c", hostile[i], NULL};
        program.environment = usual_environment;
        sandbox_run(sandbox, &program);
    }
    program.arguments = (const char *[]){"/proc/self/exe", NULL};
    program.environment = (const char *[]){"SANDBOX_TEST_PART=run away", NULL};
    sandbox_run(sandbox, &program);
    for (;;) pause();
}

static size_t ready_count(struct slice text)
{
    size_t count = 0;
    for (size_t i = 0; i + 5 <= text.len; i++) count += memcmp(text.data + i, "ready", 5) == 0;
    return count;
}

/* Who is still there, for whoever reads of a failure. Always false. */
static bool tell_children(void)
{
    int status = system(
        "for p in $(cat /proc/$PPID/task/*/children); do grep -E 'Name|State|^PPid' /proc/$p/status; "
        "cat /proc/$p/stack /proc/$p/wchan 2>/dev/null; ps -o pid,ppid,stat,wchan,etime,args -p $p; done "
        ">&2");
    return status > 255 && false;
}

/* We are the reaper of what the server leaves: when we have no child any more, nothing is left. */
static bool wait_for_all(void)
{
    int64_t due_us = monotonic_us() + PATIENCE_US;
    for (;;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid < 0 && errno == ECHILD) return true;
        if (monotonic_us() > due_us) return tell_children();
        if (pid == 0) usleep(5000);
    }
}

TEST(a_server_that_is_killed_leaves_nothing)
{
    int ends[2];
    struct buf said = {0};
    CHECK(pipe(ends) == 0);
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    pid_t server = fork();
    if (server == 0) serve_until_killed(ends[1]);
    close(ends[1]);
    while (ready_count(buf_view(&said)) < HOSTILE + 1) { /* and the one that runs away */
        char room[512];
        ssize_t got = read(ends[0], room, sizeof room);
        CHECK(got > 0);
        if (got <= 0) break;
        buf_put(&said, room, (size_t)got);
    }
    usleep(100000);
    kill(server, SIGKILL);
    CHECK(wait_for_all());
    CHECK_INT(processes_alive(buf_view(&said)), 0);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    close(ends[0]);
    buf_free(&said);
}
