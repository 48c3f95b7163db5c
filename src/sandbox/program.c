/* From a fork to the stranger's code: everything of ours is closed, reset or lowered first (B1). */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox/internal.h"

#define USUAL_PATH       "/usr/local/bin:/usr/bin:/bin"
#define UNSTARTED_STATUS 127 /* as a shell has it */
#define FAILURE_FD       3
#define OPEN_FILES       1024 /* as Lambda has it */
#define OTHER_THREADS    4096 /* that others of the same user may begin later */

static _Noreturn void program_become(const struct request *request, int output, int failure);

pid_t program_start(const struct request *request, int output, int *failure)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return -1;
    pid_t pid = fork();
    if (pid == 0) program_become(request, output, ends[1]);
    int error = errno;
    close(ends[1]);
    if (pid < 0) close(ends[0]);
    *failure = ends[0];
    errno = error;
    return pid;
}

static void signals_reset(void)
{
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t none;
    for (int number = 1; number < NSIG; number++) sigaction(number, &usual, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

#define PROGRAM_UMASK 022 /* as on Lambda, whatever ours is */

/* When the machine has no memory left, the kernel shall end functions rather than the database. */
static void offer_to_kernel(void)
{
    int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    ssize_t written = write(file, "1000", 4);
    (void)written;
    close(file);
}

/* How many threads the machine has now: in /proc/loadavg, behind the slash. */
static rlim_t threads_now(void)
{
    char text[128] = {0};
    int file = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    const char *at = got > 0 ? strchr(text, '/') : NULL;
    rlim_t count = 0;
    while (at && *++at >= '0' && *at <= '9') count = count * 10 + (rlim_t)(*at - '0');
    return count;
}

static rlim_t smaller(rlim_t a, rlim_t b)
{
    return a < b ? a : b;
}

/* The number of processes is of all that the user has, so it cannot be the program's own limit: that is the
 * keeper's. But it stops a bomb, unless we are root, when the keeper gets no time to. */
static void limits_lower(const struct request *request)
{
    struct rlimit limit = {0, 0};
    rlim_t threads = threads_now();
    setpriority(PRIO_PROCESS, 0, request->priority);
    setrlimit(RLIMIT_CORE, &limit);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = smaller(limit.rlim_max, OPEN_FILES);
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (request->temporary && request->storage_bytes && getrlimit(RLIMIT_FSIZE, &limit) == 0) {
        limit.rlim_cur = smaller(limit.rlim_cur, request->storage_bytes);
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    if (threads && getrlimit(RLIMIT_NPROC, &limit) == 0) {
        limit.rlim_cur = smaller(limit.rlim_max, threads + request->process_count + OTHER_THREADS);
        limit.rlim_max = limit.rlim_cur;
        setrlimit(RLIMIT_NPROC, &limit);
    }
}

static const char *path_of(char *const *environment)
{
    for (; *environment; environment++)
        if (strncmp(*environment, "PATH=", 5) == 0) return *environment + 5;
    return USUAL_PATH;
}

/* Tries the file in each folder of PATH. What is there but may not be run is remembered, as shells do. */
static int execute_by_path(const struct request *request)
{
    const char *name = request->arguments[0], *folder = path_of(request->environment), *end;
    char path[PATH_MAX];
    int error = ENOENT;
    for (;; folder = end + 1) {
        end = strchrnul(folder, ':');
        size_t len = (size_t)(end - folder);
        if (len + 1 + strlen(name) < sizeof path) {
            memcpy(path, folder, len);
            path[len] = '/';
            strcpy(path + len + (len > 0), name); /* an empty folder is the working one */
            execve(path, request->arguments, request->environment);
            if (errno != ENOENT && errno != ENOTDIR && error == ENOENT) error = errno;
        }
        if (!*end) return error;
    }
}

/* Its groups first: once it is somebody else, it may not choose any. */
static bool become_user(const struct sandbox_user *user)
{
    gid_t groups[LIMIT_USER_GROUPS];
    if (!user->is_set) return true;
    for (uint32_t i = 0; i < user->group_count; i++) groups[i] = user->groups[i];
    return setgroups(user->group_count, groups) == 0 &&
           setresgid(user->group, user->group, user->group) == 0 &&
           setresuid(user->user, user->user, user->user) == 0;
}

bool program_can_enter(const struct sandbox_user *user, const char *folder)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) _exit(become_user(user) && chdir(folder) == 0 ? 0 : 1);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int execute(const struct request *request)
{
    bool has_mounts = request->has_own_tmp || request->opt || request->files;
    int error = has_mounts ? storage_mount(request->has_own_tmp, request->storage_bytes, request->opt, request->files,
                                           request->files_at)
                           : 0;
    if (error) return error;
    if (!become_user(&request->user)) return errno;
    if (chdir(request->folder) != 0) return errno;
    if (!request->arguments[0][0]) return ENOENT;
    if (!strchr(request->arguments[0], '/')) return execute_by_path(request);
    execve(request->arguments[0], request->arguments, request->environment);
    return errno;
}

/* Standard input is nowhere already: it is the keeper's. A session of its own takes the terminal's signals
 * away, makes a group that can be asked to end, and lets the scheduler weigh it against the keeper as one. */
static _Noreturn void program_become(const struct request *request, int output, int failure)
{
    setsid();
    limits_lower(request);
    offer_to_kernel();
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    if (failure != FAILURE_FD) dup3(failure, FAILURE_FD, O_CLOEXEC);
    closefrom(FAILURE_FD + 1);
    signals_reset();
    umask(PROGRAM_UMASK);
    /* A file that is too large is an error that a program can tell of; a signal would just end it. */
    if (request->temporary && request->storage_bytes) signal(SIGXFSZ, SIG_IGN);
    int error = execute(request);
    ssize_t written = write(FAILURE_FD, &error, sizeof error);
    (void)written;
    _exit(UNSTARTED_STATUS);
}
