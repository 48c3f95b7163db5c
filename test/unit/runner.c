/* Runs the registered tests of one binary: all, or those whose name contains the first argument. Names those that
 * take more than a second: they are what people wait for. */
#include <signal.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#include "unit/test.h"

static struct test *tests, **tests_end = &tests;
static unsigned failures_of_current;

void test_register(struct test *test)
{
    *tests_end = test;
    tests_end = &test->next;
}

void test_failed(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    failures_of_current++;
}

/* Whoever ends a program that hangs wants to know in which test it did. */
static struct test *current;

static void tell_current(int signal_number)
{
    const char *parts[] = {"FAILED ", current ? current->name : "between tests", " was under way\n"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (write(STDERR_FILENO, parts[i], strlen(parts[i])) < 0) break;
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static double now_s(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void run_test(struct test *test)
{
    double began = now_s(CLOCK_MONOTONIC), busy = now_s(CLOCK_PROCESS_CPUTIME_ID);
    failures_of_current = 0;
    current = test;
    test->run();
    double took = now_s(CLOCK_MONOTONIC) - began;
    if (took > 1)
        printf("slow: %s took %.1f s, %.1f s of them busy\n", test->name, took,
               now_s(CLOCK_PROCESS_CPUTIME_ID) - busy);
    fflush(stdout); /* children that tests fork must not print it again */
}

int main(int argc, char **argv)
{
    unsigned passed = 0, failed = 0;
    signal(SIGABRT, tell_current);
    for (struct test *test = tests; test; test = test->next) {
        if (argc > 1 && !strstr(test->name, argv[1])) continue;
        run_test(test);
        if (failures_of_current) {
            fprintf(stderr, "FAILED %s\n", test->name);
            failed++;
        } else {
            passed++;
        }
    }
    printf("%u passed, %u failed\n", passed, failed);
    return failed ? 1 : 0;
}
