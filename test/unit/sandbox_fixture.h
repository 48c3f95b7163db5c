/* A sandbox, a program in it that runs a shell's text, and what was heard of it. */
#ifndef TEST_UNIT_SANDBOX_FIXTURE_H
#define TEST_UNIT_SANDBOX_FIXTURE_H

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fail.h"
#include "sandbox/sandbox.h"
#include "unit/test.h"

#define HEARD_KEPT 65536

struct heard {
    pthread_mutex_t lock;
    pthread_cond_t change;
    struct buf text; /* the first of it */
    uint64_t total_bytes;
    bool has_ended, has_spoken_after;
    struct sandbox_result result;
    struct sandboxed *sandboxed;
};

static inline void heard_output(void *context, struct slice bytes)
{
    struct heard *heard = context;
    pthread_mutex_lock(&heard->lock);
    size_t room = HEARD_KEPT - heard->text.len;
    buf_put(&heard->text, bytes.data, bytes.len < room ? bytes.len : room);
    heard->total_bytes += bytes.len;
    if (heard->has_ended) heard->has_spoken_after = true;
    pthread_cond_broadcast(&heard->change);
    pthread_mutex_unlock(&heard->lock);
}

static inline void heard_ended(void *context, const struct sandbox_result *result)
{
    struct heard *heard = context;
    pthread_mutex_lock(&heard->lock);
    heard->has_ended = true;
    heard->result = *result;
    pthread_cond_broadcast(&heard->change);
    pthread_mutex_unlock(&heard->lock);
}

static inline struct sandbox *sandbox_for_test(void)
{
    char error[200];
    struct sandbox *sandbox = sandbox_new(NULL, error, sizeof error);
    if (!sandbox) fprintf(stderr, "%s\n", error);
    ensure(sandbox);
    return sandbox;
}

static const char *const usual_environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", NULL};

static inline void heard_run(struct heard *heard, struct sandbox *sandbox,
                             const struct sandbox_program *program)
{
    struct sandbox_program copy = *program;
    memset(heard, 0, sizeof *heard);
    pthread_mutex_init(&heard->lock, NULL);
    pthread_cond_init(&heard->change, NULL);
    copy.output = heard_output;
    copy.ended = heard_ended;
    copy.context = heard;
    if (!copy.environment) copy.environment = usual_environment;
    if (!copy.folder) copy.folder = "/";
    heard->sandboxed = sandbox_run(sandbox, &copy);
}

/* sh -c text */
static inline void heard_shell(struct heard *heard, struct sandbox *sandbox, const char *text)
{
    heard_run(heard, sandbox,
              &(struct sandbox_program){.arguments = (const char *[]){"/bin/sh", "-c", text, NULL}});
}

/* Until the program has said this. */
static inline void heard_wait_for(struct heard *heard, const char *word)
{
    pthread_mutex_lock(&heard->lock);
    while (!slice_contains(buf_view(&heard->text), slice_of(word)) && !heard->has_ended)
        pthread_cond_wait(&heard->change, &heard->lock);
    pthread_mutex_unlock(&heard->lock);
}

static inline struct sandbox_result heard_wait(struct heard *heard)
{
    pthread_mutex_lock(&heard->lock);
    while (!heard->has_ended) pthread_cond_wait(&heard->change, &heard->lock);
    pthread_mutex_unlock(&heard->lock);
    return heard->result;
}

static inline void heard_free(struct heard *heard)
{
    heard_wait(heard);
    sandbox_release(heard->sandboxed);
    CHECK(!heard->has_spoken_after);
    buf_free(&heard->text);
    pthread_mutex_destroy(&heard->lock);
    pthread_cond_destroy(&heard->change);
}

/* Whether a process of this number is there and is more than a zombie. */
static inline bool process_is_alive(long pid)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file) return false;
    bool is_read = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    const char *state = is_read ? strrchr(line, ')') : NULL;
    return state && state[2] != 'Z' && state[2] != 'X';
}

/* All numbers in the text, which programs print of their children, are of processes that are gone. */
static inline unsigned processes_alive(struct slice text)
{
    unsigned alive = 0;
    for (const char *at = text.data, *end = at + text.len; at < end;) {
        long pid = 0;
        const char *start = at;
        for (; at < end && *at >= '0' && *at <= '9'; at++) pid = pid * 10 + (*at - '0');
        if (at > start && process_is_alive(pid)) alive++;
        if (at == start) at++;
    }
    return alive;
}

/* Descriptors that this process has open. */
static inline unsigned descriptor_count(void)
{
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder)) count++;
    if (folder) closedir(folder);
    return count;
}

#endif
