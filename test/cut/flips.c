#include "cut/flips.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/random.h"

#define BLOCK         4096
#define HEAD          64  /* of a block of the journal: where frames and segments have their heads */
#define TRIES         200 /* to find a block that is not empty */
#define FILES_MOST    512
#define FAILURES_MOST 10

enum kind { KIND_JOURNAL, KIND_TABLE, KIND_OTHER, KINDS };

struct file {
    char path[NAME_MAX * 2]; /* below the folder */
    uint64_t bytes;
    enum kind kind;
};

struct files {
    struct file list[FILES_MOST];
    size_t count;
};

static bool ends_in(const char *name, const char *end)
{
    size_t len = strlen(name), end_len = strlen(end);
    return len >= end_len && !strcmp(name + len - end_len, end);
}

static void find_files(struct files *files, const char *folder, const char *below)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, below);
    DIR *directory = opendir(path);
    ensure(directory);
    for (struct dirent *entry; (entry = readdir(directory));) {
        struct file file;
        struct stat status;
        if (entry->d_name[0] == '.') continue;
        snprintf(file.path, sizeof file.path, "%s%s%s", below, *below ? "/" : "", entry->d_name);
        snprintf(path, sizeof path, "%s/%s", folder, file.path);
        ensure(stat(path, &status) == 0);
        if (S_ISDIR(status.st_mode)) {
            find_files(files, folder, file.path);
            continue;
        }
        file.bytes = (uint64_t)status.st_size;
        file.kind = ends_in(file.path, ".journal") ? KIND_JOURNAL
                    : ends_in(file.path, ".sst")   ? KIND_TABLE
                                                   : KIND_OTHER;
        ensure(files->count < FILES_MOST);
        files->list[files->count++] = file;
    }
    closedir(directory);
}

static void copy_file(const char *from, const char *to)
{
    char bytes[65536];
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ensure(in >= 0 && out >= 0);
    for (ssize_t got; (got = read(in, bytes, sizeof bytes)) > 0;)
        ensure(write(out, bytes, (size_t)got) == got);
    close(in);
    close(out);
}

/* Tables are never written again, so a link will do, but for the one that is to be changed. */
static void copy_folder(const struct files *files, const char *from, const char *to,
                        const struct file *changed)
{
    char source[PATH_MAX], target[PATH_MAX];
    mkdir(to, 0700);
    for (size_t i = 0; i < files->count; i++) {
        const struct file *file = &files->list[i];
        snprintf(source, sizeof source, "%s/%s", from, file->path);
        snprintf(target, sizeof target, "%s/%s", to, file->path);
        for (char *slash = target + strlen(to) + 1; (slash = strchr(slash, '/')); slash++) {
            *slash = '\0';
            mkdir(target, 0700);
            *slash = '/';
        }
        if (file->kind != KIND_TABLE || file == changed || link(source, target) != 0)
            copy_file(source, target);
    }
}

/* A file of the kind, and a byte of it: of the journal often one of a head. False: there is none. */
static bool choose(const struct files *files, const char *folder, struct random *random, enum kind kind,
                   const struct file **file, uint64_t *at)
{
    char path[PATH_MAX], block[BLOCK];
    for (int i = 0; i < TRIES; i++) {
        *file = &files->list[random_below(random, files->count)];
        if ((*file)->kind != kind || !(*file)->bytes) continue;
        *at = random_below(random, (*file)->bytes);
        if (kind != KIND_JOURNAL) return true;
        snprintf(path, sizeof path, "%s/%s", folder, (*file)->path);
        int descriptor = open(path, O_RDONLY | O_CLOEXEC);
        ensure(descriptor >= 0);
        ssize_t got = pread(descriptor, block, sizeof block, (off_t)(*at / BLOCK * BLOCK));
        close(descriptor);
        if (random_below(random, 4)) *at = *at / BLOCK * BLOCK + random_below(random, HEAD);
        if (got == BLOCK && (block[0] || memcmp(block, block + 1, BLOCK - 1))) return true;
    }
    return false;
}

static void flip(const char *path, uint64_t at, unsigned bit)
{
    unsigned char byte;
    int file = open(path, O_RDWR | O_CLOEXEC);
    ensure(file >= 0 && pread(file, &byte, 1, (off_t)at) == 1);
    byte ^= (unsigned char)(1u << bit);
    ensure(pwrite(file, &byte, 1, (off_t)at) == 1);
    close(file);
}

void flips_judge(const struct judgement *judgement, const char *scratch, uint64_t seed, uint64_t flips,
                 uint64_t *passed, uint64_t *failed)
{
    struct files *files = must_zero(1, sizeof *files);
    char copy[PATH_MAX / 2], path[PATH_MAX], words[4096];
    uint64_t found_count[KINDS] = {0}, count[KINDS] = {0};
    struct random random;
    random_seed(&random, seed);
    find_files(files, judgement->folder, "");
    snprintf(copy, sizeof copy, "%s/flip-%d", scratch, (int)getpid());
    for (uint64_t i = 0; i < flips; i++) {
        const struct file *file;
        uint64_t at;
        bool found = false;
        if (!choose(files, judgement->folder, &random, (enum kind)(i % KINDS), &file, &at)) continue;
        copy_folder(files, judgement->folder, copy, file);
        snprintf(path, sizeof path, "%s/%s", copy, file->path);
        unsigned bit = (unsigned)random_below(&random, 8);
        flip(path, at, bit);
        struct judgement own = *judgement;
        own.folder = copy;
        bool right = judge_damaged(&own, &found, words, sizeof words);
        ++*(right ? passed : failed);
        count[file->kind]++;
        found_count[file->kind] += found;
        if (!right && *failed <= FAILURES_MOST)
            printf("FAILED with bit %u turned in byte %llu of %s: %s", bit, (unsigned long long)at,
                   file->path, words);
        remove_folder(copy);
    }
    printf(
        "found %llu of %llu in journals, %llu of %llu in tables, %llu of %llu in other files; the rest had no effect\n",
        (unsigned long long)found_count[0], (unsigned long long)count[0], (unsigned long long)found_count[1],
        (unsigned long long)count[1], (unsigned long long)found_count[2], (unsigned long long)count[2]);
    free(files);
}

/* Removes at least one segment of the copy; the words say which ones. */
static void take_away(const struct files *files, const char *copy, struct random *random, char *words,
                      size_t words_len)
{
    char path[PATH_MAX];
    bool all = !random_below(random, 6), one = random_below(random, 2);
    *words = '\0';
    while (!*words) {
        size_t len = 0, chosen = (size_t)random_below(random, files->count);
        for (size_t i = 0; i < files->count; i++) {
            const struct file *file = &files->list[i];
            if (file->kind != KIND_JOURNAL) continue;
            if (!all && (one ? i != chosen : random_below(random, 2) == 0)) continue;
            snprintf(path, sizeof path, "%s/%s", copy, file->path);
            ensure(unlink(path) == 0);
            len += (size_t)snprintf(words + len, words_len - len, " %s", file->path);
            ensure(len < words_len);
        }
    }
}

void lost_judge(const struct judgement *judgement, const char *scratch, uint64_t seed, uint64_t times,
                uint64_t *passed, uint64_t *failed)
{
    struct files *files = must_zero(1, sizeof *files);
    char copy[PATH_MAX / 2], words[4096], taken[FILES_MOST * 32];
    uint64_t refused = 0;
    struct random random;
    random_seed(&random, seed);
    find_files(files, judgement->folder, "");
    snprintf(copy, sizeof copy, "%s/lost-%d", scratch, (int)getpid());
    for (uint64_t i = 0; i < times; i++) {
        bool found = false;
        copy_folder(files, judgement->folder, copy, NULL);
        take_away(files, copy, &random, taken, sizeof taken);
        struct judgement own = *judgement;
        own.folder = copy;
        bool right = judge_damaged(&own, &found, words, sizeof words);
        ++*(right ? passed : failed);
        refused += found;
        if (!right && *failed <= FAILURES_MOST) printf("FAILED without%s: %s", taken, words);
        remove_folder(copy);
    }
    printf("refused %llu of %llu logs that lack segments; the rest lack what the tables have\n",
           (unsigned long long)refused, (unsigned long long)times);
    free(files);
}
