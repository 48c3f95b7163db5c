/* The walk through all descendants, by the kernel's lists of children and without them. */
#include <sys/prctl.h>
#include <sys/wait.h>

#include "sandbox/internal.h"
#include "unit/sandbox_fixture.h"

#define BRANCHES 6
#define TWIGS    3
#define MEMBERS  (BRANCHES * (1 + TWIGS))
#define WEIGH_MS 60000 /* however busy the machine is */

static struct family family;
static pid_t spared_pid;

static _Noreturn void rest(void)
{
    for (;;) pause();
}

/* Children, some in sessions of their own, with children; all are there when it returns. */
static void family_plant(void)
{
    int ready[2];
    char dot = '.';
    ensure(pipe(ready) == 0);
    for (int i = 0; i < BRANCHES; i++) {
        pid_t branch = fork();
        if (i == 0 && branch > 0) spared_pid = branch;
        if (branch > 0) continue;
        if (i % 2) setsid();
        for (int j = 0; j < TWIGS; j++)
            if (fork() == 0) {
                if (j % 2) setpgid(0, 0);
                if (write(ready[1], &dot, 1) != 1) _exit(1);
                rest();
            }
        if (write(ready[1], &dot, 1) != 1) _exit(1);
        rest();
    }
    close(ready[1]);
    for (int i = 0; i < MEMBERS; i++) CHECK(read(ready[0], &dot, 1) == 1);
    close(ready[0]);
}

static bool is_spared(pid_t pid)
{
    return pid == spared_pid;
}

static void check_walk(bool has_children_files)
{
    family_init(&family, LIMIT_FAMILY);
    CHECK(family.has_children_files); /* of this machine's kernel */
    family.has_children_files = has_children_files;
    family_walk(&family, FAMILY_COUNT, NULL);
    CHECK_INT(family.alive, MEMBERS);
    uint64_t counted = family.memory_bytes, weighed = 0;
    CHECK(family_weigh(&family, WEIGH_MS, &weighed));
    CHECK(weighed > 0 && weighed < counted); /* they share nearly all of it */
    family_walk(&family, FAMILY_COUNT, NULL);
    CHECK_INT(family.alive, MEMBERS); /* whoever weighed them is gone */
    family_walk(&family, FAMILY_COUNT, is_spared);
    CHECK_INT(family.alive, MEMBERS - 1 - TWIGS);
    family_init(&family, 5);
    family.has_children_files = has_children_files;
    family_walk(&family, FAMILY_COUNT, NULL);
    CHECK_INT(family.alive, 5);
}

/* Until nobody is left; those of whom the parent dies become ours. */
static void family_fell(bool has_children_files)
{
    family_init(&family, LIMIT_FAMILY);
    family.has_children_files = has_children_files;
    for (;;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid < 0) return;
        if (pid == 0) {
            family_walk(&family, FAMILY_KILL, NULL);
            usleep(1000);
        }
    }
}

TEST(all_descendants_are_found)
{
    for (int i = 0; i < 2; i++) {
        ensure(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
        family_plant();
        check_walk(i == 0);
        family_fell(i == 0);
        family_walk(&family, FAMILY_COUNT, NULL);
        CHECK_INT(family.alive, 0);
        prctl(PR_SET_CHILD_SUBREAPER, 0);
    }
}

TEST(a_request_is_read_as_it_was_written)
{
    struct sandbox_program program = {.arguments = (const char *[]){"a", "", "c c", NULL},
                                      .environment = (const char *[]){"X=1", NULL},
                                      .folder = "/somewhere",
                                      .memory_bytes = 1ull << 40,
                                      .process_count = 7,
                                      .temporary = "/own",
                                      .opt = "/layers",
                                      .storage_bytes = 9};
    struct sandbox_user user = {.is_set = true, .user = 5, .group = 6, .groups = {6, 7}, .group_count = 2};
    struct request request;
    int error = 0, file = request_write(&program, &user, &error);
    CHECK(file >= 0);
    CHECK_INT(request_read(file, &request), 0);
    CHECK_TEXT(slice_of(request.folder), "/somewhere");
    CHECK_TEXT(slice_of(request.arguments[2]), "c c");
    CHECK(request.arguments[3] == NULL && request.arguments[1][0] == 0);
    CHECK_TEXT(slice_of(request.environment[0]), "X=1");
    CHECK(request.environment[1] == NULL);
    CHECK_TEXT(slice_of(request.temporary), "/own");
    CHECK_TEXT(slice_of(request.opt), "/layers");
    CHECK(request.storage_bytes == 9 && !request.has_own_tmp);
    CHECK(memcmp(&request.user, &user, sizeof user) == 0);
    CHECK(request.memory_bytes == 1ull << 40 && request.process_count == 7);
    for (off_t len = 0; len < 60; len += 7) { /* a file that was cut off is none */
        CHECK(ftruncate(file, len) == 0);
        CHECK(request_read(file, &request) != 0);
    }
    close(file);
}
