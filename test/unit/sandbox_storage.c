/* Temporary files: a /tmp of its own, or a folder that is limited and goes with the program. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>

#include "sandbox/internal.h"
#include "unit/sandbox_fixture.h"

#define MEGABYTE (1ull << 20)

static struct sandbox_result run(struct sandbox *sandbox, struct sandbox_program *program, const char *text,
                                 struct buf *said)
{
    struct heard heard;
    program->arguments = (const char *[]){"/bin/sh", "-c", text, NULL};
    heard_run(&heard, sandbox, program);
    struct sandbox_result result = heard_wait(&heard);
    buf_slice(said, buf_view(&heard.text));
    heard_free(&heard);
    return result;
}

TEST(storage_own_tmp_is_empty_limited_and_gone)
{
    struct sandbox *sandbox = sandbox_for_test();
    if (!sandbox_has_own_tmp(sandbox)) { /* a machine without mount namespaces */
        sandbox_free(sandbox);
        return;
    }
    char name[] = "/tmp/quipu-storage-XXXXXX";
    int file = mkstemp(name);
    struct buf said = {0};
    struct sandbox_program program = {.has_own_tmp = true, .storage_bytes = 4 * MEGABYTE};
    struct sandbox_result result = run(
        sandbox, &program,
        "ls /tmp | wc -l; echo mine >/tmp/mine; head -c 3000000 /dev/zero >/tmp/a && echo fits; "
        "head -c 3000000 /dev/zero 2>/dev/null >/tmp/b || echo full; "
        "stat -c %a /tmp",
        &said);
    CHECK_INT(result.end, SANDBOX_EXITED);
    CHECK(slice_contains(buf_view(&said), SLICE("0\nfits\nfull\n1777\n")));
    CHECK(access(name, F_OK) == 0 && access("/tmp/mine", F_OK) != 0);
    said.len = 0;
    run(sandbox, &program, "ls /tmp | wc -l", &said);
    CHECK_TEXT(buf_view(&said), "0\n"); /* each has its own */
    buf_free(&said);
    close(file);
    unlink(name);
    sandbox_free(sandbox);
}

/* Reads what lies at /opt and tries to change it in every way that a shell has. */
static const char opt_attempts[] =
    "cat /opt/bin/tool; /opt/bin/tool; ls /opt; echo x 2>/dev/null >/opt/new || echo no; "
    "echo x 2>/dev/null >>/opt/bin/tool || echo no; rm -f /opt/bin/tool 2>/dev/null || echo no; "
    "chmod 777 /opt/bin/tool 2>/dev/null || echo no; mkdir /opt/more 2>/dev/null || echo no";

static void check_opt(struct sandbox *sandbox, const char *folder, bool has_own_tmp)
{
    struct buf said = {0};
    struct sandbox_program program = {
        .opt = folder, .folder = "/", .has_own_tmp = has_own_tmp, .storage_bytes = 4 * MEGABYTE};
    struct sandbox_result result = run(sandbox, &program, opt_attempts, &said);
    CHECK_INT(result.end, SANDBOX_EXITED);
    CHECK_TEXT(buf_view(&said), "#!/bin/sh\necho ran\nran\nbin\nno\nno\nno\nno\nno\n");
    said.len = 0;
    run(sandbox, &(struct sandbox_program){.folder = "/"}, "cat /opt/bin/tool 2>/dev/null || echo none",
        &said);
    CHECK_TEXT(buf_view(&said), "none\n"); /* the machine's own is as it was */
    buf_free(&said);
}

TEST(storage_a_folder_at_opt_can_be_read_and_not_written)
{
    struct sandbox *sandbox = sandbox_for_test();
    struct sandbox_user user;
    char folder[] = "/var/tmp/quipu-storage-XXXXXX", path[64], error[200];
    ensure(mkdtemp(folder) && chmod(folder, 0777) == 0);
    snprintf(path, sizeof path, "%s/bin", folder);
    ensure(mkdir(path, 0777) == 0 && chmod(path, 0777) == 0);
    snprintf(path, sizeof path, "%s/bin/tool", folder);
    FILE *tool = fopen(path, "w");
    fputs("#!/bin/sh\necho ran\n", tool);
    fclose(tool);
    ensure(chmod(path, 0777) == 0);
    if (sandbox_has_own_opt(sandbox)) { /* else: a machine without mount namespaces, or without /opt */
        check_opt(sandbox, folder, true);
        check_opt(sandbox, folder, false);
    }
    sandbox_free(sandbox);
    if (geteuid() == 0 && sandbox_user_find("nobody", &user, error, sizeof error)) {
        sandbox = sandbox_new(&user, error, sizeof error);
        if (sandbox_has_own_opt(sandbox)) check_opt(sandbox, folder, true);
        sandbox_free(sandbox);
    }
    unlink(path);
    snprintf(path, sizeof path, "%s/bin", folder);
    CHECK(rmdir(path) == 0 && rmdir(folder) == 0);
}

TEST(storage_a_folder_for_opt_that_is_gone)
{
    struct sandbox *sandbox = sandbox_for_test();
    struct buf said = {0};
    struct sandbox_program program = {.opt = "/var/tmp/quipu-no-such-folder", .folder = "/"};
    if (sandbox_has_own_opt(sandbox)) {
        struct sandbox_result result = run(sandbox, &program, "echo ran", &said);
        CHECK_INT(result.end, SANDBOX_UNSTARTED);
        CHECK_INT(result.status, ENOENT);
    }
    buf_free(&said);
    sandbox_free(sandbox);
}

TEST(storage_folder_is_made_and_removed)
{
    struct sandbox *sandbox = sandbox_for_test();
    char above[] = "/tmp/quipu-storage-XXXXXX", path[64], aside[64];
    ensure(mkdtemp(above));
    snprintf(path, sizeof path, "%s/own", above);
    snprintf(aside, sizeof aside, "%s/aside", above);
    struct buf said = {0};
    const char *environment[] = {"PATH=/usr/bin:/bin", path, NULL};
    struct sandbox_program program = {
        .temporary = path, .storage_bytes = 4 * MEGABYTE, .environment = environment, .folder = above};
    run(sandbox, &program,
        "stat -c %a own; echo kept >aside; cd own; mkdir -p a/b/c; echo x >a/b/c/x; ln -s ../../aside a/link; "
        "ln -s / a/root; mkdir closed; echo y >closed/y; chmod 0 closed; head -c 5000000 /dev/zero >large || "
        "echo too large",
        &said);
    CHECK(slice_starts(buf_view(&said), SLICE("700\n")));
    CHECK(slice_contains(buf_view(&said), SLICE("too large")));
    CHECK(access(path, F_OK) != 0 && access(aside, F_OK) == 0); /* links are not followed */
    unlink(aside);
    CHECK(rmdir(above) == 0);
    buf_free(&said);
    sandbox_free(sandbox);
}

TEST(storage_folder_is_weighed)
{
    struct sandbox *sandbox = sandbox_for_test();
    char above[] = "/tmp/quipu-storage-XXXXXX", path[64];
    ensure(mkdtemp(above));
    snprintf(path, sizeof path, "%s/own", above);
    struct buf said = {0};
    struct sandbox_program program = {.temporary = path, .storage_bytes = 2 * MEGABYTE, .folder = above};
    struct sandbox_result result = run(
        sandbox, &program,
        "cd own; mkdir d; n=0; while :; do n=$((n+1)); head -c 100000 /dev/zero >d/$n; done", &said);
    CHECK_INT(result.end, SANDBOX_STORAGE);
    CHECK(access(path, F_OK) != 0);
    CHECK(rmdir(above) == 0);
    buf_free(&said);
    sandbox_free(sandbox);
}

TEST(storage_user_is_found_or_refused)
{
    struct sandbox_user user;
    char error[200];
    CHECK(!sandbox_user_find("no-such-user-here", &user, error, sizeof error));
    CHECK(strstr(error, "no such user"));
    CHECK(!sandbox_user_find("root", &user, error, sizeof error));
    if (geteuid() != 0) {
        CHECK(!sandbox_user_find("nobody", &user, error, sizeof error) && strstr(error, "by root"));
        return;
    }
    CHECK(sandbox_user_find("nobody", &user, error, sizeof error));
    struct sandbox *sandbox = sandbox_new(&user, error, sizeof error);
    char above[] = "/var/tmp/quipu-storage-XXXXXX", path[64];
    ensure(sandbox && mkdtemp(above) && chmod(above, 0711) == 0);
    snprintf(path, sizeof path, "%s/own", above);
    struct buf said = {0};
    struct sandbox_program program = {.temporary = path, .folder = "/"};
    run(sandbox, &program,
        "id -u; id -G; cat /etc/shadow >/dev/null 2>&1 || echo closed; grep CapEff /proc/self/status", &said);
    CHECK_TEXT(buf_view(&said), "65534\n65534\nclosed\nCapEff:\t0000000000000000\n");
    program = (struct sandbox_program){.folder = "/"};
    struct heard heard;
    program.arguments = (const char *[]){"/bin/sh", "-c", "trap '' TERM; setsid sleep 1000 & echo up; wait",
                                         NULL};
    heard_run(&heard, sandbox, &program);
    heard_wait_for(&heard, "up");
    sandbox_stop(heard.sandboxed, 10);
    CHECK_INT(heard_wait(&heard).end, SANDBOX_STOPPED);
    heard_free(&heard);
    CHECK(rmdir(above) == 0);
    buf_free(&said);
    sandbox_free(sandbox);
}
