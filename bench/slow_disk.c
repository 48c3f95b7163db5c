/* A library for LD_PRELOAD: each sync takes SLOW_DISK_US longer, as on a disk that is slower than this one. bench/run
 * has it for all servers by --slow-disk.
 *
 * What is added is waited for, not computed, so threads that do not need the disk go on, as on a slow disk. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static struct timespec more;

__attribute__((constructor)) static void begin(void)
{
    long us = getenv("SLOW_DISK_US") ? atol(getenv("SLOW_DISK_US")) : 0;
    more = (struct timespec){us / 1000000, us % 1000000 * 1000};
}

static void wait_longer(void)
{
    prctl(PR_SET_TIMERSLACK, 1L); /* not 50 us late; of this thread */
    nanosleep(&more, NULL);
}

int fsync(int file)
{
    int result = NEXT(fsync)(file);
    wait_longer();
    return result;
}

int fdatasync(int file)
{
    int result = NEXT(fdatasync)(file);
    wait_longer();
    return result;
}

ssize_t pwritev2(int file, const struct iovec *pieces, int count, off_t at, int flags)
{
    ssize_t result = NEXT(pwritev2)(file, pieces, count, at, flags);
    if (flags & (RWF_DSYNC | RWF_SYNC)) wait_longer();
    return result;
}
