/* Conditions of threads: waiting for a signal, and for a moment. */
#include "base/cond.h"

#include "base/clock.h"
#include "unit/test.h"

struct word {
    pthread_mutex_t lock;
    pthread_cond_t condition;
    bool is_said;
};

static void *say(void *context)
{
    struct word *word = context;
    pthread_mutex_lock(&word->lock);
    word->is_said = true;
    pthread_cond_signal(&word->condition);
    pthread_mutex_unlock(&word->lock);
    return NULL;
}

TEST(cond_ends_by_its_signal_or_by_its_moment)
{
    struct word word = {.lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t thread;
    cond_init(&word.condition);
    pthread_mutex_lock(&word.lock);
    CHECK(!cond_wait_until(&word.condition, &word.lock, 0));
    int64_t until_us = monotonic_us() + 1000;
    while (cond_wait_until(&word.condition, &word.lock, until_us)) continue;
    CHECK(monotonic_us() >= until_us);
    CHECK(pthread_create(&thread, NULL, say, &word) == 0);
    while (!word.is_said) CHECK(cond_wait_until(&word.condition, &word.lock, INT64_MAX));
    pthread_mutex_unlock(&word.lock);
    pthread_join(thread, NULL);
    pthread_cond_destroy(&word.condition);
    pthread_mutex_destroy(&word.lock);
}
