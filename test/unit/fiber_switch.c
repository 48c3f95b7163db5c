/* Fibers: they wait and go on where they were, on any thread, and nothing is left of those that are dropped. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/slice.h"
#include "fiber/fiber.h"
#include "unit/test.h"

struct story {
    char text[100];
    unsigned waits;
};

static void tell(struct story *story, const char *word)
{
    strcat(story->text, word);
}

static void body_of_three(void *argument)
{
    struct story *story = argument;
    tell(story, "a");
    fiber_wait();
    tell(story, "b");
    fiber_wait();
    tell(story, "c");
}

TEST(fiber_goes_on_where_it_waited)
{
    struct story story = {0};
    CHECK(!fiber_current());
    struct fiber *fiber = fiber_start(body_of_three, &story);
    tell(&story, "1");
    CHECK(fiber && fiber_resume(fiber));
    tell(&story, "2");
    CHECK(!fiber_resume(fiber));
    tell(&story, "3");
    CHECK_TEXT(slice_of(story.text), "a1b2c3");
    CHECK(!fiber_current());
}

static void body_that_does_not_wait(void *argument)
{
    tell(argument, "x");
}

static void end_early(struct story *story)
{
    tell(story, "e");
    fiber_end();
}

static void body_that_ends_early(void *argument)
{
    fiber_wait();
    end_early(argument);
    tell(argument, "never");
}

TEST(fiber_ends_from_within_what_it_calls)
{
    struct story story = {0};
    struct fiber *fiber = fiber_start(body_that_ends_early, &story);
    CHECK(fiber && !fiber_resume(fiber));
    CHECK_TEXT(slice_of(story.text), "e");
}

TEST(fiber_that_does_not_wait_is_over_at_once)
{
    struct story story = {0};
    CHECK(!fiber_start(body_that_does_not_wait, &story));
    CHECK_TEXT(slice_of(story.text), "x");
    CHECK_INT((long long)fiber_count().waiting, 0);
}

TEST(fiber_that_is_dropped_does_nothing_more_and_its_stack_is_used_again)
{
    struct story story = {0};
    fiber_trim();
    for (int i = 0; i < 1000; i++) {
        struct fiber *fiber = fiber_start(body_of_three, &story);
        if (i % 2) fiber_resume(fiber);
        fiber_drop(fiber);
        CHECK_TEXT(slice_of(story.text), i % 2 ? "ab" : "a");
        story.text[0] = 0;
    }
    CHECK_INT((long long)fiber_count().kept, 1);
    CHECK_INT((long long)fiber_count().waiting, 0);
}

/* Its variables, of all kinds, are there behind each wait. */
static void body_that_counts(void *argument)
{
    struct story *story = argument;
    double half = 0;
    uint64_t whole = 0;
    char room[512];
    memset(room, 'r', sizeof room);
    for (unsigned i = 0; i < 100; i++) {
        half += 0.5;
        whole += i;
        fiber_wait();
        ensure(room[i] == 'r' && half == 0.5 * (i + 1) && whole == (uint64_t)i * (i + 1) / 2);
    }
    story->waits = 100;
}

TEST(many_fibers_keep_their_variables)
{
    enum { COUNT = 300 };
    static struct fiber *fibers[COUNT];
    static struct story stories[COUNT];
    for (unsigned i = 0; i < COUNT; i++) fibers[i] = fiber_start(body_that_counts, &stories[i]);
    CHECK_INT((long long)fiber_count().waiting, COUNT);
    for (unsigned turn = 1; turn < 100; turn++)
        for (unsigned i = 0; i < COUNT; i++) ensure(fiber_resume(fibers[i]));
    for (unsigned i = 0; i < COUNT; i++) {
        ensure(!fiber_resume(fibers[i]));
        CHECK_INT(stories[i].waits, 100);
    }
    CHECK_INT((long long)fiber_count().waiting, 0);
    fiber_trim();
    CHECK_INT((long long)fiber_count().kept, 0);
}

static void body_that_counts_itself(void *argument)
{
    *(struct fiber_counts *)argument = fiber_count();
}

TEST(fibers_are_counted)
{
    struct story story = {0};
    struct fiber_counts before = fiber_count(), within;
    struct fiber *fiber = fiber_start(body_of_three, &story);
    fiber_start(body_that_counts_itself, &within);
    CHECK_INT((long long)within.running, 1);
    CHECK_INT((long long)within.waiting, (long long)before.waiting + 1);
    CHECK_INT((long long)fiber_count().running, 0);
    fiber_drop(fiber);
    CHECK_INT((long long)(fiber_count().begun - before.begun), 2);
    CHECK_INT((long long)fiber_count().waiting, (long long)before.waiting);
}

/* ---- one within another ---- */

static void body_outer(void *argument)
{
    struct story *story = argument;
    struct fiber *self = fiber_current(), *inner = fiber_start(body_of_three, story);
    ensure(fiber_current() == self);
    tell(story, "-");
    fiber_wait();
    while (fiber_resume(inner)) tell(story, "-");
}

TEST(fiber_runs_another)
{
    struct story story = {0};
    struct fiber *fiber = fiber_start(body_outer, &story);
    CHECK_TEXT(slice_of(story.text), "a-");
    CHECK(!fiber_resume(fiber));
    CHECK_TEXT(slice_of(story.text), "a-b-c");
}

/* ---- on other threads ---- */

static void *resume_elsewhere(void *argument)
{
    CHECK(!fiber_current());
    return fiber_resume(argument) ? argument : NULL;
}

TEST(fiber_moves_from_thread_to_thread)
{
    struct story story = {0};
    struct fiber *fiber = fiber_start(body_that_counts, &story);
    while (fiber) {
        pthread_t thread;
        void *result;
        ensure(pthread_create(&thread, NULL, resume_elsewhere, fiber) == 0);
        ensure(pthread_join(thread, &result) == 0);
        fiber = result;
    }
    CHECK_INT(story.waits, 100);
}

static void *run_many(void *argument)
{
    for (int i = 0; i < 2000; i++) {
        struct story story = {0};
        struct fiber *fiber = fiber_start(body_of_three, &story);
        if (i % 3 == 0) {
            fiber_drop(fiber);
            continue;
        }
        while (fiber_resume(fiber)) continue;
        ensure(strcmp(story.text, "abc") == 0);
    }
    return argument;
}

TEST(fibers_of_many_threads_share_the_stacks)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) ensure(pthread_create(&threads[i], NULL, run_many, NULL) == 0);
    for (int i = 0; i < 4; i++) ensure(pthread_join(threads[i], NULL) == 0);
    CHECK_INT((long long)fiber_count().waiting, 0);
}

/* ---- the stack ---- */

static __attribute__((noinline)) int dig(int depth, volatile char *above)
{
    volatile char room[1024];
    room[0] = above ? above[0] : 0;
    return depth ? dig(depth - 1, room) + room[0] : 0;
}

static void body_that_digs(void *argument)
{
    dig(*(int *)argument, NULL);
}

TEST(fiber_stack_tells_how_much_of_it_was_used)
{
    int shallow = 1, deep = 40;
    fiber_trim();
    fiber_start(body_that_digs, &shallow);
    size_t before = fiber_count().stack_used_bytes;
    fiber_start(body_that_digs, &deep);
    size_t used = fiber_count().stack_used_bytes;
    CHECK(before > 0 && used >= before + 16 * 1024 && used < fiber_count().stack_bytes);
    fiber_trim();
    CHECK_INT((long long)fiber_count().stack_used_bytes, (long long)used); /* it is a high-water mark */
}

TEST(fiber_that_uses_up_its_stack_ends_the_process)
{
    int depth = 10000, status;
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        if (!freopen("/dev/null", "w", stderr)) _exit(0);
        fiber_start(body_that_digs, &depth);
        _exit(0);
    }
    ensure(waitpid(child, &status, 0) == child);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != 0); /* they report it and end the process themselves */
#else
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
#endif
}
