/* See descriptors.h. Measured: an idle server has 13 besides the store's 9, a running function has 3 and a
 * connection or two. */
#include "main/descriptors.h"

#include <stdio.h>
#include <sys/resource.h>

#include "base/limits.h"

#define OWN        56 /* standard streams, listeners, watches; files and calls that last a moment */
#define PER_THREAD 2  /* of an event loop */
#define STORE_OTHERS                                                                                         \
    48 /* not counted as the store's files: the commit log has one a segment, up to 20; then
                            * manifest, locks, folders, files being written and merged */
#define LOG_HELD        40 /* more segments, while the log is held for backups: up to 1 GB, or somewhat more */
#define LOG_HELD_PART   16 /* of the limit, at most */
#define STORE_FILES     4096 /* 64 MB each: more than that are opened again when they are read */
#define STORE_FILES_MIN 32
#define PER_PROCESS     4   /* port, supervisor, output, and one to spare */
#define PROCESS_CALLS   2   /* connections that a process of a function has at the least */
#define URL_CALLS       256 /* of functions that are URLs, as func/target_http.c has it, ... */
#define URL_CALLS_PART  16  /* ... or this part of the limit */
#define REMOTE_CALLS    64  /* to a database behind a URL, as client/client.c has it */
#define DATABASES_PART  2   /* of the limit, at most, for databases of their own */
#define CONNECTIONS_MIN 16

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Soft limits are low for the sake of programs that use select. */
static uint64_t limit_raise(uint64_t wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
        setrlimit(RLIMIT_NOFILE, &limit);
        if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
    }
    return limit.rlim_cur;
}

static uint64_t log_held(uint64_t limit)
{
    return smaller(limit / LOG_HELD_PART, LOG_HELD);
}

static uint64_t store_share(const struct descriptors_needs *needs, uint64_t limit)
{
    if (!needs->on_disk) return 0;
    uint64_t files = smaller(limit / 8, STORE_FILES);
    return STORE_OTHERS + log_held(limit) + (files < STORE_FILES_MIN ? STORE_FILES_MIN : files);
}

/* They are opened one by one, as requests name them, so there is a number of them that can be told. */
static uint64_t database_count(const struct descriptors_needs *needs, uint64_t limit)
{
    uint64_t fit = limit / DATABASES_PART / (STORE_OTHERS + STORE_FILES_MIN);
    return smaller(needs->databases, fit ? fit : 1);
}

static uint64_t process_share(const struct descriptors_needs *needs, uint64_t limit)
{
    uint64_t most = (uint64_t)needs->process_max * PER_PROCESS + LIMIT_GUESTS;
    return needs->process_max ? smaller(most, limit / 4) : 0;
}

bool descriptors_deal(struct descriptors *out, const struct descriptors_needs *needs, char *error,
                      size_t error_len)
{
    uint64_t own = OWN + (uint64_t)needs->threads * PER_THREAD;
    uint64_t wanted = 2 * (LIMIT_CONNECTIONS + LIMIT_REFUSED_CONNECTIONS + STORE_FILES + own);
    uint64_t limit = limit_raise(wanted);
    uint64_t store = store_share(needs, limit), processes = process_share(needs, limit);
    uint64_t urls = processes ? smaller(limit / URL_CALLS_PART, URL_CALLS) : 0;
    uint64_t databases = database_count(needs, limit), remote = needs->is_elsewhere ? REMOTE_CALLS : 0;
    uint64_t others = own + store + databases * (STORE_OTHERS + STORE_FILES_MIN) + processes + urls + remote;
    if (limit < others + CONNECTIONS_MIN) {
        snprintf(error, error_len,
                 "only %llu files may be open at a time, too few for a server: raise the limit (ulimit -n), "
                 "best to %llu",
                 (unsigned long long)limit, (unsigned long long)wanted);
        return false;
    }
    uint64_t refused = smaller(LIMIT_REFUSED_CONNECTIONS, (limit - others) / 8);
    out->limit = limit;
    out->connections = (uint32_t)smaller(limit - others - refused, LIMIT_CONNECTIONS);
    out->process_max = (uint32_t)smaller(needs->process_max, processes / (PER_PROCESS + PROCESS_CALLS));
    out->guests = (uint32_t)smaller(processes - (uint64_t)out->process_max * PER_PROCESS, LIMIT_GUESTS);
    out->store_files = needs->on_disk ? (uint32_t)(store - STORE_OTHERS - log_held(limit)) : 0;
    out->databases = (uint32_t)databases;
    out->database_files = STORE_FILES_MIN;
    return true;
}
