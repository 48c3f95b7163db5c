/* A program's place for temporary files: its own, limited, and gone with it. And what it sees at /opt.
 *
 * Where the system lets us, the program sees a /tmp of its own: a file system in memory of the size that it
 * may use, in a mount namespace that ends with its last process. Root makes one as it is; others need a user
 * namespace, in which they stay who they are. Elsewhere the program is given a folder (the caller tells it by
 * TMPDIR), which the keeper makes, weighs now and then, and removes.
 *
 * In the same kind of namespace a folder of the caller's can lie at /opt, where the program can read it and
 * not write; and another one at /mnt/NAME, where it can do both.
 *
 * Everything but storage_probe runs in the children. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "sandbox/internal.h"

#define TEXT_ROOM   200
#define LIST_ROOM   4096
#define BLOCK_BYTES 512  /* of st_blocks */
#define FILE_BYTES  4096 /* that the file system in memory has for each name */

/* ---- a /tmp and a /opt of its own ---- */

static bool write_file(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0) return false;
    ssize_t written = write(file, text, strlen(text));
    close(file);
    return written == (ssize_t)strlen(text);
}

/* "1000 1000 1": the same number inside as outside, and no other. */
static bool map_self(const char *path, uint64_t number)
{
    char text[TEXT_ROOM], *at = text_put_number(text, number);
    text_put(text_put_number(text_put(at, " "), number), " 1");
    return write_file(path, text);
}

static bool namespace_enter(void)
{
    uid_t user = geteuid();
    gid_t group = getegid();
    if (user == 0) return unshare(CLONE_NEWNS) == 0;
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && write_file("/proc/self/setgroups", "deny") &&
           map_self("/proc/self/uid_map", user) && map_self("/proc/self/gid_map", group);
}

static bool mount_tmp(uint64_t limit_bytes)
{
    char options[TEXT_ROOM], *at = text_put(options, "mode=1777,size=");
    at = text_put_number(at, limit_bytes);
    text_put_number(text_put(at, ",nr_inodes="), limit_bytes / FILE_BYTES + 1);
    return mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, options) == 0;
}

/* A bind mount becomes read-only in a second step. In a user namespace that step is refused when it drops a
 * flag of the file system that the folder lies on, so "no programs" stays. */
static bool mount_opt(const char *folder)
{
    struct statvfs about;
    if (mount(folder, "/opt", NULL, MS_BIND, NULL) != 0 || statvfs("/opt", &about) != 0) return false;
    unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV;
    if (about.f_flag & ST_NOEXEC) flags |= MS_NOEXEC;
    return mount(NULL, "/opt", NULL, flags, NULL) == 0;
}

/* What the machine has below /mnt is hidden, unless it has the very name. The folder itself may lie there, so it is
 * named by its descriptor. */
static bool mount_files(int folder, const char *at)
{
    char path[TEXT_ROOM];
    struct stat about;
    text_put_number(text_put(path, "/proc/self/fd/"), (uint64_t)folder);
    if (stat(at, &about) != 0 &&
        (mount("tmpfs", "/mnt", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=64k") != 0 || mkdir(at, 0755) != 0))
        return false;
    return mount(path, at, NULL, MS_BIND, NULL) == 0;
}

int storage_mount(bool has_own_tmp, uint64_t limit_bytes, const char *opt, const char *files, const char *files_at)
{
    errno = 0;
    bool fine = namespace_enter() && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
    int folder = fine && files ? open(files, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    fine = fine && (!files || folder >= 0) && (!opt || mount_opt(opt)) && (!has_own_tmp || mount_tmp(limit_bytes)) &&
           (!files || mount_files(folder, files_at));
    int error = fine ? 0 : errno ? errno : EPERM;
    if (folder >= 0) close(folder);
    return error;
}

#define PROBE_TMP 1
#define PROBE_OPT 2

/* The folder for /opt is made in the /tmp that is mounted first: nothing of it is left. */
static int probe(void)
{
    if (storage_mount(true, 1 << 20, NULL, NULL, NULL) != 0) return 0;
    return mkdir("/tmp/opt", 0755) == 0 && mount_opt("/tmp/opt") ? PROBE_TMP | PROBE_OPT : PROBE_TMP;
}

void storage_probe(bool *has_own_tmp, bool *has_own_opt)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) _exit(probe());
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    int found = pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    *has_own_tmp = found & PROBE_TMP;
    *has_own_opt = found & PROBE_OPT;
}

/* ---- a folder ---- */

struct entry {
    uint64_t inode;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

static bool is_dots(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

static int folder_open(int above, const char *name)
{
    return openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* What the files below use on the disk; stops at the limit, at the time, and where it is too deep to go on. */
static uint64_t folder_weigh(int folder, uint64_t limit_bytes, int64_t until_us, int depth)
{
    _Alignas(8) char room[LIST_ROOM];
    uint64_t total = 0;
    long got;
    while ((got = syscall(SYS_getdents64, folder, room, sizeof room)) > 0) {
        for (long at = 0; at < got; at += ((struct entry *)(void *)(room + at))->length) {
            const struct entry *entry = (const void *)(room + at);
            struct stat stat;
            if (total > limit_bytes || monotonic_us() >= until_us) return total;
            if (is_dots(entry->name) || fstatat(folder, entry->name, &stat, AT_SYMLINK_NOFOLLOW) != 0)
                continue;
            total += (uint64_t)stat.st_blocks * BLOCK_BYTES;
            int below = S_ISDIR(stat.st_mode) && depth ? folder_open(folder, entry->name) : -1;
            if (below < 0) continue;
            total += folder_weigh(below, limit_bytes, until_us, depth - 1);
            close(below);
        }
    }
    return total;
}

uint64_t storage_weigh(const char *path, uint64_t limit_bytes, int64_t until_us)
{
    int folder = folder_open(AT_FDCWD, path);
    if (folder < 0) return 0;
    uint64_t total = folder_weigh(folder, limit_bytes, until_us, LIMIT_STORAGE_DEPTH);
    close(folder);
    return total;
}

/* The list is read anew until nothing of it could be removed: entries go while it is read. */
static void folder_empty(int folder, int depth)
{
    _Alignas(8) char room[LIST_ROOM];
    bool is_less = true;
    while (is_less) {
        is_less = false;
        lseek(folder, 0, SEEK_SET);
        long got;
        while ((got = syscall(SYS_getdents64, folder, room, sizeof room)) > 0) {
            for (long at = 0; at < got; at += ((struct entry *)(void *)(room + at))->length) {
                const struct entry *entry = (const void *)(room + at);
                if (is_dots(entry->name)) continue;
                bool is_gone = unlinkat(folder, entry->name, 0) == 0;
                if (!is_gone && (errno == EISDIR || errno == EPERM) && depth) {
                    int below = folder_open(folder, entry->name);
                    if (below < 0 && errno == EACCES &&
                        geteuid() != 0) { /* root needs no leave, and no link's */
                        fchmodat(folder, entry->name, 0700, 0);
                        below = folder_open(folder, entry->name);
                    }
                    if (below < 0) continue;
                    folder_empty(below, depth - 1);
                    close(below);
                    is_gone = unlinkat(folder, entry->name, AT_REMOVEDIR) == 0;
                }
                is_less = is_less || is_gone;
            }
        }
    }
}

int storage_make(const char *path, const struct sandbox_user *user)
{
    if (mkdir(path, 0700) != 0) return errno;
    return user->is_set && lchown(path, user->user, user->group) != 0 ? errno : 0;
}

void storage_remove(const char *path)
{
    int folder = folder_open(AT_FDCWD, path);
    if (folder < 0) return;
    folder_empty(folder, LIMIT_STORAGE_DEPTH);
    close(folder);
    rmdir(path);
}
