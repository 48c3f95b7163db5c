/* What a program gets, says and leaves: arguments, environment, folder, descriptors, output, status. */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "unit/sandbox_fixture.h"

static struct sandbox_result run_shell(struct sandbox *sandbox, const char *text, struct buf *said)
{
    struct heard heard;
    heard_shell(&heard, sandbox, text);
    struct sandbox_result result = heard_wait(&heard);
    if (said) buf_slice(said, buf_view(&heard.text));
    heard_free(&heard);
    return result;
}

static struct sandbox_result run_program(struct sandbox *sandbox, const struct sandbox_program *program,
                                         struct buf *said)
{
    struct heard heard;
    heard_run(&heard, sandbox, program);
    struct sandbox_result result = heard_wait(&heard);
    if (said) buf_slice(said, buf_view(&heard.text));
    heard_free(&heard);
    return result;
}

static void check_end(struct sandbox_result result, enum sandbox_end end, int status)
{
    CHECK_INT(result.end, end);
    CHECK_INT(result.status, status);
}

TEST(an_exit_has_its_status)
{
    struct sandbox *sandbox = sandbox_for_test();
    check_end(run_shell(sandbox, "exit 0", NULL), SANDBOX_EXITED, 0);
    check_end(run_shell(sandbox, "exit 7", NULL), SANDBOX_EXITED, 7);
    check_end(run_shell(sandbox, "exit 255", NULL), SANDBOX_EXITED, 255);
    sandbox_free(sandbox);
}

TEST(a_signal_has_its_number)
{
    struct sandbox *sandbox = sandbox_for_test();
    check_end(run_shell(sandbox, "kill -TERM $$", NULL), SANDBOX_SIGNALLED, SIGTERM);
    check_end(run_shell(sandbox, "kill -KILL $$", NULL), SANDBOX_SIGNALLED, SIGKILL);
    check_end(run_shell(sandbox, "kill -SEGV $$", NULL), SANDBOX_SIGNALLED, SIGSEGV);
    sandbox_free(sandbox);
}

/* The program proves by a file that it has written all. */
TEST(what_was_written_is_there_when_it_is_drained)
{
    struct sandbox *sandbox = sandbox_for_test();
    for (int i = 0; i < 50; i++) {
        struct heard heard;
        char mark[64] = "/tmp/quipu-drain-XXXXXX", text[200];
        int file = mkstemp(mark);
        ensure(file >= 0 && close(file) == 0);
        snprintf(text, sizeof text, "echo one; echo two >&2; rm %s; exec sleep 1000", mark);
        heard_shell(&heard, sandbox, text);
        while (access(mark, F_OK) == 0) usleep(100);
        sandbox_drain(heard.sandboxed);
        pthread_mutex_lock(&heard.lock);
        CHECK_TEXT(buf_view(&heard.text), "one\ntwo\n");
        pthread_mutex_unlock(&heard.lock);
        sandbox_stop(heard.sandboxed, 0);
        heard_wait(&heard);
        sandbox_drain(heard.sandboxed); /* nothing is left to read */
        heard_free(&heard);
    }
    sandbox_free(sandbox);
}

TEST(what_cannot_be_run_tells_why)
{
    struct sandbox *sandbox = sandbox_for_test();
    const char *missing[] = {"/no/such/file", NULL}, *unnamed[] = {"no-such-command", NULL},
               *folder[] = {"/etc", NULL}, *text[] = {"/etc/passwd", NULL}, *empty[] = {"", NULL};
    check_end(run_program(sandbox, &(struct sandbox_program){.arguments = missing}, NULL), SANDBOX_UNSTARTED,
              ENOENT);
    check_end(run_program(sandbox, &(struct sandbox_program){.arguments = unnamed}, NULL), SANDBOX_UNSTARTED,
              ENOENT);
    check_end(run_program(sandbox, &(struct sandbox_program){.arguments = folder}, NULL), SANDBOX_UNSTARTED,
              EACCES);
    check_end(run_program(sandbox, &(struct sandbox_program){.arguments = text}, NULL), SANDBOX_UNSTARTED,
              EACCES);
    check_end(run_program(sandbox, &(struct sandbox_program){.arguments = empty}, NULL), SANDBOX_UNSTARTED,
              ENOENT);
    const char *fine[] = {"/bin/true", NULL};
    struct sandbox_program nowhere = {.arguments = fine, .folder = "/no/such/folder"};
    check_end(run_program(sandbox, &nowhere, NULL), SANDBOX_UNSTARTED, ENOENT);
    sandbox_free(sandbox);
}

TEST(a_command_is_found_by_the_path_of_its_environment)
{
    struct sandbox *sandbox = sandbox_for_test();
    struct buf said = {0};
    const char *arguments[] = {"echo", "found", NULL};
    check_end(run_program(sandbox, &(struct sandbox_program){.arguments = arguments}, &said), SANDBOX_EXITED,
              0);
    CHECK_TEXT(buf_view(&said), "found\n");
    struct sandbox_program elsewhere = {.arguments = arguments,
                                        .environment = (const char *[]){"PATH=/etc::", NULL}};
    check_end(run_program(sandbox, &elsewhere, NULL), SANDBOX_UNSTARTED, ENOENT);
    elsewhere.environment = (const char *[]){NULL};
    check_end(run_program(sandbox, &elsewhere, NULL), SANDBOX_EXITED, 0); /* the usual one */
    elsewhere.environment = (const char *[]){"PATH=/etc:", NULL};
    elsewhere.folder = "/bin"; /* an empty part of the path is the working folder */
    check_end(run_program(sandbox, &elsewhere, NULL), SANDBOX_EXITED, 0);
    buf_free(&said);
    sandbox_free(sandbox);
}

TEST(arguments_environment_and_folder_are_those_given)
{
    struct sandbox *sandbox = sandbox_for_test();
    struct buf said = {0};
    const char *arguments[] = {"/bin/sh", "-c", "printf '%s|' \"$@\"; pwd", "sh", "a b", "", "c\"'", NULL};
    struct sandbox_program program = {.arguments = arguments, .folder = "/usr/lib"};
    run_program(sandbox, &program, &said);
    CHECK_TEXT(buf_view(&said), "a b||c\"'|/usr/lib\n");
    said.len = 0;
    struct sandbox_program env = {.arguments = (const char *[]){"/usr/bin/env", NULL},
                                  .environment = (const char *[]){"B=1", "A=two words", "EMPTY=", NULL}};
    setenv("QUIPU_SECRET_OF_THE_SERVER", "1", 1);
    run_program(sandbox, &env, &said);
    CHECK_TEXT(buf_view(&said), "B=1\nA=two words\nEMPTY=\n");
    buf_free(&said);
    sandbox_free(sandbox);
}

TEST(too_many_arguments_are_refused)
{
    struct sandbox *sandbox = sandbox_for_test();
    size_t count = 3000;
    char *large = must_alloc(1000);
    memset(large, 'x', 999);
    large[999] = 0;
    const char **arguments = must_zero(count + 1, sizeof *arguments);
    arguments[0] = "/bin/true";
    for (size_t i = 1; i < count; i++) arguments[i] = large;
    check_end(run_program(sandbox, &(struct sandbox_program){.arguments = arguments}, NULL),
              SANDBOX_UNSTARTED, E2BIG);
    arguments[1000] = NULL;
    check_end(run_program(sandbox, &(struct sandbox_program){.arguments = arguments}, NULL), SANDBOX_EXITED,
              0);
    free(arguments);
    free(large);
    sandbox_free(sandbox);
}

TEST(no_descriptor_and_no_signal_of_the_server_is_inherited)
{
    int leaked[20]; /* on purpose without O_CLOEXEC, before and after the nursery */
    for (int i = 0; i < 10; i++) leaked[i] = open("/etc/passwd", O_RDONLY);
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    sigaction(SIGPIPE, &ignore, &before);
    struct sandbox *sandbox = sandbox_for_test();
    for (int i = 10; i < 20; i++) leaked[i] = open("/etc/passwd", O_RDONLY);
    struct buf said = {0};
    /* Signals 32 and 33 are the C library's own, which it lets nobody change: make leaves them ignored. */
    run_shell(sandbox,
              "readlink /proc/$$/fd/0; ls /proc/$$/fd; "
              "grep -E 'Sig(Blk|Ign)' /proc/self/status | sed -E 's/[01][08]0{7}$/000000000/'",
              &said);
    CHECK_TEXT(buf_view(&said), "/dev/null\n0\n1\n2\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    said.len = 0;
    run_shell(sandbox,
              "ulimit -c; ulimit -S -n; test \"$(readlink /proc/$$/fd/1)\" = \"$(readlink /proc/$$/fd/2)\"; "
              "echo $?",
              &said);
    CHECK_TEXT(buf_view(&said), "0\n1024\n0\n");
    sigaction(SIGPIPE, &before, NULL);
    for (int i = 0; i < 20; i++) close(leaked[i]);
    buf_free(&said);
    sandbox_free(sandbox);
}

TEST(output_and_errors_come_in_order)
{
    struct sandbox *sandbox = sandbox_for_test();
    struct buf said = {0};
    run_shell(sandbox, "for i in 1 2 3; do echo out $i; echo err $i >&2; done", &said);
    CHECK_TEXT(buf_view(&said), "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n");
    buf_free(&said);
    sandbox_free(sandbox);
}

TEST(large_output_is_whole_and_is_not_kept)
{
    struct sandbox *sandbox = sandbox_for_test();
    struct heard heard;
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    heard_shell(&heard, sandbox, "head -c 104857600 /dev/zero; exit 3");
    check_end(heard_wait(&heard), SANDBOX_EXITED, 3);
    getrusage(RUSAGE_SELF, &after);
    CHECK_INT(heard.total_bytes, 104857600);
    CHECK(after.ru_maxrss - before.ru_maxrss < 10 * 1024); /* in kilobytes */
    heard_free(&heard);
    sandbox_free(sandbox);
}

/* One that fills its output does not keep the other's from being heard. */
TEST(a_loud_program_does_not_silence_a_quiet_one)
{
    struct sandbox *sandbox = sandbox_for_test();
    struct heard loud, quiet;
    heard_shell(&loud, sandbox, "echo ready; cat /dev/zero");
    heard_wait_for(&loud, "ready");
    heard_shell(&quiet, sandbox, "echo here");
    check_end(heard_wait(&quiet), SANDBOX_EXITED, 0);
    CHECK_TEXT(buf_view(&quiet.text), "here\n");
    sandbox_stop(loud.sandboxed, 0);
    check_end(heard_wait(&loud), SANDBOX_STOPPED, 0);
    heard_free(&loud);
    heard_free(&quiet);
    sandbox_free(sandbox);
}

TEST(many_at_once_and_thousands_after_each_other_leave_nothing)
{
    enum { AT_ONCE = 50, ROUNDS = 40 };
    struct sandbox *sandbox = sandbox_for_test();
    static struct heard heard[AT_ONCE];
    unsigned before = descriptor_count();
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < AT_ONCE; i++)
            heard_run(&heard[i], sandbox,
                      &(struct sandbox_program){.arguments = (const char *[]){"/bin/true", NULL}});
        for (int i = 0; i < AT_ONCE; i++) check_end(heard_wait(&heard[i]), SANDBOX_EXITED, 0);
        for (int i = 0; i < AT_ONCE; i++) heard_free(&heard[i]);
    }
    CHECK_INT(descriptor_count(), before);
    sandbox_free(sandbox);
}

TEST(memory_is_seen)
{
    struct sandbox *sandbox = sandbox_for_test();
    struct heard heard;
    /* tail keeps what has no line end: 48 MB of it */
    heard_shell(&heard, sandbox,
                "head -c 50331648 /dev/zero | (tail -n 1 > /dev/null; echo done); sleep 0.5");
    struct sandbox_result result = heard_wait(&heard);
    CHECK(result.memory_bytes > 48 * 1024 * 1024);
    CHECK(result.memory_bytes < 150 * 1024 * 1024);
    heard_free(&heard);
    sandbox_free(sandbox);
}

TEST(freeing_ends_what_runs)
{
    struct sandbox *sandbox = sandbox_for_test();
    struct heard heard[3];
    for (int i = 0; i < 3; i++)
        heard_shell(&heard[i], sandbox, "trap '' TERM; echo $$ ready; while :; do sleep 1; done");
    for (int i = 0; i < 3; i++) heard_wait_for(&heard[i], "ready");
    sandbox_free(sandbox);
    for (int i = 0; i < 3; i++) {
        CHECK(heard[i].has_ended);
        CHECK_INT(heard[i].result.end, SANDBOX_STOPPED);
        CHECK_INT(processes_alive(buf_view(&heard[i].text)), 0);
        heard_free(&heard[i]);
    }
}

static void end_and_release(void *context, const struct sandbox_result *result)
{
    struct heard *heard = context;
    sandbox_release(heard->sandboxed);
    heard_ended(context, result);
}

TEST(a_program_may_be_released_when_it_ends)
{
    struct sandbox *sandbox = sandbox_for_test();
    struct heard heard = {0};
    pthread_mutex_init(&heard.lock, NULL);
    pthread_cond_init(&heard.change, NULL);
    struct sandbox_program program = {.arguments = (const char *[]){"/bin/sleep", "1000", NULL},
                                      .environment = usual_environment,
                                      .folder = "/",
                                      .ended = end_and_release,
                                      .context = &heard};
    heard.sandboxed = sandbox_run(sandbox, &program);
    sandbox_stop(heard.sandboxed, 0);
    check_end(heard_wait(&heard), SANDBOX_STOPPED, 0);
    sandbox_free(sandbox);
    pthread_mutex_destroy(&heard.lock);
    pthread_cond_destroy(&heard.change);
}
