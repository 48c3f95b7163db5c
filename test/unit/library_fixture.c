/* Helpers of the library's tests. */
#include "unit/library_fixture.h"

#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER
#endif
#endif

#ifdef THREAD_SANITIZER
/* RocksDB is not compiled for it: what its threads agree on by atomics would be taken for races. */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "called_from_lib:librocksdb.so\n";
}
#endif

static void on_one(const char *where, void (*check)(struct quipu *db))
{
    struct quipu *db = open_or_fail(where);
    check(db);
    quipu_close(db);
}

void on_every_engine(void (*check)(struct quipu *db))
{
    char folder[] = "/tmp/quipu-library-XXXXXX", command[60];
    struct served served;
    on_one(":memory:", check);
    CHECK(mkdtemp(folder) != NULL);
    on_one(folder, check);
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0);
    served_start(&served, NULL);
    on_one(served.url, check);
    served_stop(&served);
}
