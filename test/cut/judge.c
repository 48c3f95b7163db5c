/* The first process opens the folder (perhaps once more before, only to read) and reads all of it. The second one must
 * find the same, writes one more batch, and finds that too. */
#include "cut/judge.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"
#include "cut/trace.h"
#include "store/journal.h"

#define CHILD_SECONDS 120
#define CACHE_BYTES   (1024 * 1024)

/* ---- the store, with a small journal ---- */

struct journal *__real_journal_open(const struct journal_options *options, char *error, size_t error_len);
struct journal *__wrap_journal_open(const struct journal_options *options, char *error, size_t error_len);
struct journal *__wrap_journal_open(const struct journal_options *options, char *error, size_t error_len)
{
    struct journal_options smaller = *options;
    const char *small = getenv(CUT_SMALL);
    if (small) smaller.segment_bytes = 4 * strtoull(small, NULL, 10);
    return __real_journal_open(&smaller, error, error_len);
}

struct store *open_store(const char *folder, bool read_only, char *words, size_t words_len)
{
    struct store_options options = {
        .folder = folder, .read_only = read_only, .create = !read_only, .cache_bytes = CACHE_BYTES};
    return store_open_disk(&options, words, words_len);
}

static bool open_and_verify(const struct judgement *judgement, bool read_only, uint32_t least, uint32_t most,
                            uint32_t *number, struct store **store, char *words, size_t words_len)
{
    char error[1024];
    *store = open_store(judgement->folder, read_only, error, sizeof error);
    if (!*store) {
        snprintf(words, words_len, "does not open%s: %s", read_only ? " to be read" : "", error);
        return false;
    }
    return batches_verify(judgement->batches, *store, least, most, number, words, words_len);
}

/* In a child: what it is told is printed, and nothing when all is right. */
static bool judge_first(const struct judgement *judgement, uint32_t *number)
{
    char words[2048];
    struct store *store;
    uint32_t seen;
    if (judgement->read_only_first && judgement->least) {
        if (!open_and_verify(judgement, true, judgement->least, judgement->most, &seen, &store, words,
                             sizeof words)) {
            printf("read only: %s\n", words);
            return false;
        }
        store_close(store);
    }
    if (!open_and_verify(judgement, false, judgement->least, judgement->most, number, &store, words,
                         sizeof words)) {
        printf("%s\n", words);
        return false;
    }
    if (!judgement->dies) store_close(store);
    return true;
}

static bool judge_again(const struct judgement *judgement, uint32_t number)
{
    char words[2048];
    struct store *store;
    uint32_t seen;
    struct store_batch batch = {0};
    if (!open_and_verify(judgement, false, number, number, &seen, &store, words, sizeof words)) {
        printf("opened again: %s\n", words);
        return false;
    }
    batch_make(judgement->batches, number + 1, &batch);
    if (store_write(store, &batch, true) != STORE_OK) {
        printf("cannot be written to: %s\n", store->error);
        return false;
    }
    store_batch_free(&batch);
    store_close(store);
    if (!open_and_verify(judgement, true, number + 1, number + 1, &seen, &store, words, sizeof words)) {
        printf("opened after one more batch: %s\n", words);
        return false;
    }
    store_close(store);
    return true;
}

/* Damage that is told is right. What was told is printed. */
static bool judge_once(const struct judgement *judgement)
{
    char words[2048];
    struct store *store;
    uint32_t number;
    if (open_and_verify(judgement, false, judgement->least, judgement->most, &number, &store, words,
                        sizeof words)) {
        store_close(store);
        return true;
    }
    printf("%s\n", words);
    return !strncmp(words, "does not open", strlen("does not open")) ||
           !strncmp(words, "cannot be read", strlen("cannot be read"));
}

bool judge_in_child(bool (*part)(void *context), void *context, char *words, size_t words_len)
{
    int pipes[2];
    fflush(stdout);
    ensure(pipe(pipes) == 0);
    pid_t child = fork();
    ensure(child >= 0);
    if (!child) {
        alarm(CHILD_SECONDS);
        dup2(pipes[1], STDOUT_FILENO);
        dup2(pipes[1], STDERR_FILENO);
        close(pipes[0]);
        bool right = part(context);
        fflush(stdout);
        _exit(right ? 0 : 1);
    }
    close(pipes[1]);
    size_t len = 0;
    for (ssize_t got; len + 1 < words_len && (got = read(pipes[0], words + len, words_len - 1 - len)) > 0;)
        len += (size_t)got;
    words[len] = '\0';
    close(pipes[0]);
    int status;
    ensure(waitpid(child, &status, 0) == child);
    if (WIFSIGNALED(status)) snprintf(words + len, words_len - len, "DIED of signal %d\n", WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

struct part {
    const struct judgement *judgement;
    uint32_t number; /* of the last batch that was found */
};

/* Tells the number, which its parent cannot see. */
static bool run_first(void *context)
{
    struct part *part = context;
    bool right = judge_first(part->judgement, &part->number);
    if (right) printf("%u", part->number);
    return right;
}

static bool run_again(void *context)
{
    const struct part *part = context;
    return judge_again(part->judgement, part->number);
}

static bool run_once(void *context)
{
    return judge_once(((const struct part *)context)->judgement);
}

bool judge(const struct judgement *judgement, char *words, size_t words_len)
{
    struct part part = {.judgement = judgement};
    if (!judge_in_child(run_first, &part, words, words_len)) return false;
    part.number = (uint32_t)strtoul(words, NULL, 10);
    return judgement->once || judge_in_child(run_again, &part, words, words_len);
}

bool judge_damaged(const struct judgement *judgement, bool *found, char *words, size_t words_len)
{
    struct part part = {.judgement = judgement};
    bool right = judge_in_child(run_once, &part, words, words_len);
    *found = words[0];
    return right;
}

void remove_folder(const char *folder)
{
    DIR *directory = opendir(folder);
    if (!directory) return;
    for (struct dirent *entry; (entry = readdir(directory));) {
        char path[PATH_MAX];
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (unlink(path) != 0) remove_folder(path);
    }
    closedir(directory);
    rmdir(folder);
}
