/* What the store's tests share: one folder each that goes away afterwards, and tests that run over all
 * implementations. */
#ifndef TEST_UNIT_STORE_FIXTURE_H
#define TEST_UNIT_STORE_FIXTURE_H

#include <sys/types.h>

#include "store/overlay.h"
#include "store/store.h"
#include "unit/test.h"

#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER
#endif
#endif

/* A fresh, empty folder; free with folder_remove, which deletes it with all it holds. */
char *folder_make(void);
void folder_remove(char *folder);
char *path_in(const char *folder, const char *name); /* free() it */
/* Of the files in the folder below it. */
uint64_t bytes_in(const char *folder, const char *name);

struct store *disk_open(const char *folder); /* with its failure shown; NULL then */

void put(struct store *store, const char *key, const char *value);
/* The value, or "(missing)" or "(failed)"; valid until the next call. */
struct slice value_of(struct store *store, const char *key);
/* "a=1 b=2 " for all keys in the range; valid until the next call. */
struct slice content(struct store *store, const char *from, const char *to, bool backwards);

/* ---- child processes that may be killed ----
 * A child is this same binary, started again with the name of one test; such a test begins with `child_` and
 * does nothing unless the environment names a folder to work in. */

#define CHILD_FOLDER  "QUIPU_TEST_FOLDER"
#define CHILD_DURABLE "QUIPU_TEST_DURABLE"
#define CHILD_REPORT  99 /* the file descriptor that a child reports its batches' numbers on */

struct child {
    pid_t pid;
    int report;
};

struct child child_start(const char *test, const char *folder, const char *durable);
/* Waits for its end and answers the last number that it reported, 0 for none. */
uint32_t child_end(struct child child, int *status);
void child_report(uint32_t number);

/* EACH(name) { ... store ... } runs over an empty store of each kind. */
#define EACH(test_name)                                                                                      \
    static void each_##test_name(struct store *store);                                                       \
    TEST(memory_##test_name)                                                                                 \
    {                                                                                                        \
        struct store *store = store_open_memory(NULL);                                                       \
        each_##test_name(store);                                                                             \
        store_close(store);                                                                                  \
    }                                                                                                        \
    TEST(overlay_##test_name)                                                                                \
    {                                                                                                        \
        struct store *store = store_open_overlay(store_open_memory(NULL));                                   \
        each_##test_name(store);                                                                             \
        store_close(store);                                                                                  \
    }                                                                                                        \
    TEST(disk_##test_name)                                                                                   \
    {                                                                                                        \
        char *folder = folder_make();                                                                        \
        struct store *store = disk_open(folder);                                                             \
        if (store) {                                                                                         \
            each_##test_name(store);                                                                         \
            store_close(store);                                                                              \
        }                                                                                                    \
        folder_remove(folder);                                                                               \
    }                                                                                                        \
    static void each_##test_name(struct store *store)

#endif
