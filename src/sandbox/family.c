/* All that descends from this process, found in /proc.
 *
 * Keepers and the nursery are reapers of what they begin: whoever loses its parent becomes their child,
 * whatever group or session it has made for itself. So the tree below them is complete, and it is walked from
 * the top, by the kernel's lists of children (or, where it was built without them, by the parents that all
 * processes name).
 *
 * A number of a process may be used again by a stranger as soon as it has ended. Therefore nobody is killed
 * by number: /proc/PID is opened, its parent is checked to be of the family, and the signal goes to what was
 * opened.
 *
 * A bomb of forks gets all of the processors, and we one share of thousands. What wins against it is that a
 * whole process group is killed in one system call, which no fork escapes; so a member takes its group with
 * it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "sandbox/internal.h"

#define PATH_ROOM    64    /* "/proc/" and two numbers, and words */
#define STAT_ROOM    1024  /* one line of numbers */
#define LISTING_ROOM 4096
#define WEIGHT_ROOM  2048 /* smaps_rollup: two dozen short lines */

/* Of /proc/PID/stat, counted from what follows the name in parentheses. */
enum {
    STAT_STATE,
    STAT_PARENT,
    STAT_GROUP,
    STAT_USER_TICKS = 11,
    STAT_SYSTEM_TICKS,
    STAT_THREADS = 17,
    STAT_PAGES = 21
};
#define STAT_FIELDS 22

struct linux_dirent64 {
    uint64_t inode;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

/* Where there are no lists of children: all processes with their parents, as of the beginning of the walk. */
static struct family_member census[LIMIT_PROCESSES];
static uint32_t census_count;

/* ---- texts without a library ---- */

/* Reads digits and moves behind them; 0 where there are none. */
static uint64_t take_number(const char **at)
{
    uint64_t number = 0;
    for (; **at >= '0' && **at <= '9'; ++*at) number = number * 10 + (uint64_t)(**at - '0');
    return number;
}

/* As much of the file as there is room for, ended by NUL; false when it cannot be read. */
static bool read_start(int folder, const char *path, char *out, size_t room)
{
    int file = openat(folder, path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    ssize_t got = read(file, out, room - 1);
    close(file);
    out[got > 0 ? got : 0] = 0;
    return got > 0;
}

static bool stat_read(int folder, const char *path, uint64_t fields[STAT_FIELDS])
{
    char text[STAT_ROOM];
    if (!read_start(folder, path, text, sizeof text)) return false;
    const char *at = strrchr(text, ')');
    if (!at) return false;
    for (int i = 0; i < STAT_FIELDS; i++) {
        while (*++at == ' ') continue;
        const char *start = at + (*at == '-'); /* negative ones are of no interest here */
        at = start;
        fields[i] = take_number(&at);
        while (*at && *at != ' ') at++;
        if (!*at) return i == STAT_FIELDS - 1;
    }
    return true;
}

/* ---- who is whose child ---- */

static void family_add(struct family *family, pid_t pid, pid_t parent)
{
    if (pid > 0 && family->count < family->enough)
        family->members[family->count++] = (struct family_member){pid, parent};
}

/* Calls back for each entry of a folder that is a number. */
static void each_number(int folder, void (*found)(void *context, pid_t number), void *context)
{
    _Alignas(8) char room[LISTING_ROOM];
    long got;
    while ((got = syscall(SYS_getdents64, folder, room, sizeof room)) > 0) {
        for (long at = 0; at < got;) {
            const struct linux_dirent64 *entry = (const void *)(room + at);
            const char *name = entry->name;
            uint64_t number = take_number(&name);
            if (number && !*name) found(context, (pid_t)number);
            at += entry->length;
        }
    }
}

static void census_add(void *folder, pid_t pid)
{
    char path[PATH_ROOM];
    uint64_t fields[STAT_FIELDS];
    text_put(text_put_number(path, (uint64_t)pid), "/stat");
    if (census_count < LIMIT_PROCESSES && stat_read(*(int *)folder, path, fields))
        census[census_count++] = (struct family_member){pid, (pid_t)fields[STAT_PARENT]};
}

static void census_take(void)
{
    census_count = 0;
    int folder = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;
    each_number(folder, census_add, &folder);
    close(folder);
}

struct listing {
    struct family *family;
    int folder; /* /proc/PID/task */
    pid_t parent;
};

/* The list may be longer than the room: numbers that are cut in two are put together again. */
static void children_of_thread(void *context, pid_t thread)
{
    struct listing *listing = context;
    char path[PATH_ROOM], room[LISTING_ROOM + 1];
    text_put(text_put_number(path, (uint64_t)thread), "/children");
    int file = openat(listing->folder, path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    pid_t number = 0;
    ssize_t got;
    while ((got = read(file, room, LISTING_ROOM)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            bool is_digit = room[i] >= '0' && room[i] <= '9';
            if (!is_digit) family_add(listing->family, number, listing->parent);
            number = is_digit ? number * 10 + (room[i] - '0') : 0;
        }
    }
    family_add(listing->family, number, listing->parent);
    close(file);
}

static void add_children(struct family *family, int folder, pid_t pid, uint64_t thread_count)
{
    if (!family->has_children_files) {
        for (uint32_t i = 0; i < census_count; i++)
            if (census[i].parent == pid) family_add(family, census[i].pid, pid);
        return;
    }
    struct listing listing = {family, openat(folder, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC), pid};
    if (listing.folder < 0) return;
    if (thread_count == 1)
        children_of_thread(&listing, pid);
    else
        each_number(listing.folder, children_of_thread, &listing);
    close(listing.folder);
}

/* ---- what is done with each ---- */

/* The share of this process in memory that others have too; 0 when the kernel does not tell. */
static uint64_t weight_of(int folder)
{
    char text[WEIGHT_ROOM];
    if (!read_start(folder, "smaps_rollup", text, sizeof text)) return 0;
    const char *at = strstr(text, "\nPss:");
    if (!at) return 0;
    for (at += 5; *at == ' '; at++) continue;
    return take_number(&at) * 1024;
}

static uint64_t bytes_of_pages(uint64_t pages)
{
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool signal_send(int folder, pid_t pid, int number)
{
    if (syscall(SYS_pidfd_send_signal, folder, number, NULL, 0) == 0) return true;
    return errno != ESRCH && kill(pid, number) == 0;
}

/* Stopped first, so that it cannot have more children once they are listed, and its group cannot become
 * another's while it is killed. Only programs that are not run yet are of our own group. */
static void member_kill(struct family *family, struct family_member member, int folder,
                        const uint64_t *fields)
{
    bool is_there = signal_send(folder, member.pid, SIGSTOP);
    add_children(family, folder, member.pid, fields[STAT_THREADS]);
    if (!is_there) return;
    pid_t group = (pid_t)fields[STAT_GROUP];
    if (group > 1 && group != getpgrp()) kill(-group, SIGKILL);
    signal_send(folder, member.pid, SIGKILL);
}

/* ---- who holds a socket ---- */

#define SOCKET_ROOM 40 /* "socket:[12345]" */

struct search {
    struct family *family;
    int folder; /* /proc/PID/fd */
};

static void compare_descriptor(void *context, pid_t number)
{
    struct search *search = context;
    char name[16], target[SOCKET_ROOM + 1];
    if (search->family->is_found) return;
    text_put_number(name, (uint64_t)number);
    ssize_t len = readlinkat(search->folder, name, target, SOCKET_ROOM);
    if (len <= 0) return;
    target[len] = 0;
    const char *at = target + sizeof "socket:[" - 1;
    if (strncmp(target, "socket:[", sizeof "socket:[" - 1) == 0 && take_number(&at) == search->family->inode)
        search->family->is_found = true;
}

/* False when they cannot be read. */
static bool search_descriptors(struct family *family, int folder, const char *path)
{
    struct search search = {family, openat(folder, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (search.folder < 0) return errno == ENOENT;
    compare_descriptor(&search, 0); /* each_number knows no 0 */
    each_number(search.folder, compare_descriptor, &search);
    close(search.folder);
    return true;
}

static void search_thread(void *context, pid_t thread)
{
    struct search *search = context;
    char path[PATH_ROOM];
    if (search->family->is_found || processor_us() >= search->family->seek_until_us) return;
    text_put(text_put_number(path, (uint64_t)thread), "/fd");
    search_descriptors(search->family, search->folder, path);
}

static void member_search(struct family *family, int folder)
{
    if (!search_descriptors(family, folder, "fd")) family->is_hidden = true;
    if (family->is_found || !family->of_threads) return;
    struct search search = {family, openat(folder, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (search.folder < 0) return;
    each_number(search.folder, search_thread, &search);
    close(search.folder);
}

/* ---- the walk ---- */

static void member_visit(struct family *family, struct family_member member, enum family_deed deed)
{
    char path[PATH_ROOM];
    uint64_t fields[STAT_FIELDS];
    text_put_number(text_put(path, "/proc/"), (uint64_t)member.pid);
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;
    if (stat_read(folder, "stat", fields) &&
        ((pid_t)fields[STAT_PARENT] == member.parent || (pid_t)fields[STAT_PARENT] == getpid())) {
        if (deed == FAMILY_KILL)
            member_kill(family, member, folder, fields);
        else
            add_children(family, folder, member.pid, fields[STAT_THREADS]);
        if (deed == FAMILY_SEEK) member_search(family, folder);
        family->alive++;
        family->memory_bytes += bytes_of_pages(fields[STAT_PAGES]);
        family->cpu_ticks += fields[STAT_USER_TICKS] + fields[STAT_SYSTEM_TICKS];
    }
    close(folder);
}

void family_init(struct family *family, uint32_t enough)
{
    char path[PATH_ROOM];
    text_put(text_put_number(text_put(path, "/proc/self/task/"), (uint64_t)getpid()), "/children");
    family->has_children_files = access(path, R_OK) == 0;
    family->count = family->alive = 0;
    family->enough = enough < LIMIT_FAMILY ? enough : LIMIT_FAMILY;
}

void family_walk(struct family *family, enum family_deed deed, bool (*spared)(pid_t pid))
{
    family->count = family->alive = 0;
    family->memory_bytes = family->cpu_ticks = 0;
    if (!family->has_children_files) census_take();
    int self = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (self < 0) return;
    add_children(family, self, getpid(), 1);
    close(self);
    if (spared) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < family->count; i++)
            if (!spared(family->members[i].pid)) family->members[kept++] = family->members[i];
        family->count = kept;
    }
    for (uint32_t i = 0; i < family->count && !family->is_found; i++) {
        if (deed == FAMILY_SEEK && processor_us() >= family->seek_until_us) return;
        member_visit(family, family->members[i], deed);
    }
}

/* ---- memory ---- */

void come_first(void)
{
    struct sched_param least = {.sched_priority = sched_get_priority_min(SCHED_RR)};
    sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &least);
}

static uint64_t members_weigh(const struct family *family)
{
    uint64_t sum = 0, fields[STAT_FIELDS];
    for (uint32_t i = 0; i < family->count; i++) {
        char path[PATH_ROOM];
        text_put_number(text_put(path, "/proc/"), (uint64_t)family->members[i].pid);
        int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0) continue;
        uint64_t weight = weight_of(folder);
        if (!weight && stat_read(folder, "stat", fields)) weight = bytes_of_pages(fields[STAT_PAGES]);
        sum += weight;
        close(folder);
    }
    return sum;
}

/* Whoever reads a process's memory map waits until it has forked, which takes long where a thousand others want the
 * processors. Whoever watches a bomb must not wait for it. */
bool family_weigh(const struct family *family, int patience_ms, uint64_t *bytes)
{
    int ends[2];
    uint64_t sum;
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    pid_t child = fork();
    if (child == 0) {
        come_first();
        sum = members_weigh(family);
        _exit(write(ends[1], &sum, sizeof sum) != (ssize_t)sizeof sum);
    }
    close(ends[1]);
    struct pollfd poll_for = {ends[0], POLLIN, 0};
    bool is_told = child > 0 && poll(&poll_for, 1, patience_ms) > 0 &&
                   read(ends[0], &sum, sizeof sum) == (ssize_t)sizeof sum;
    close(ends[0]);
    if (child > 0) {
        kill(child, SIGKILL);
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR) continue;
    }
    if (is_told) *bytes = sum;
    return is_told;
}

bool family_holds(struct family *family, uint64_t inode, bool of_threads, int64_t until_us)
{
    family->inode = inode;
    family->of_threads = of_threads;
    family->seek_until_us = until_us;
    family->is_hidden = false;
    family_walk(family, FAMILY_SEEK, NULL);
    bool is_found = family->is_found;
    family->is_found = false;
    return is_found;
}
