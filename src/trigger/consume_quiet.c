/* Whether all is quiet: every record that was there when somebody asked has been handled.
 *
 * Where commits tell of news, a shard is known to have nothing more when its last question was asked at
 * the newest news and had an empty answer. Elsewhere nobody knows without asking: who wants to know sets a
 * time, and all is quiet when every shard was asked since and had nothing. */
#include "trigger/consume.h"

struct quiet {
    bool is_quiet;
    uint64_t news;
    int64_t since_us;
};

static void look_at_shard(const struct shard *shard, bool shared, struct quiet *quiet)
{
    bool is_anothers = (shared && (shard->state == SHARD_WAITS || shard->state == SHARD_FREE)) ||
                       lease_is_anothers(shard);
    if (shard->state == SHARD_ENDED || is_anothers) return;
    if (!shard_is_listed(shard) && !shard_is_held(shard)) return;
    quiet->is_quiet &= shard_is_quiet(shard) && shard->asked_news == quiet->news;
    if (shard->empty_us < quiet->since_us) quiet->since_us = shard->empty_us;
}

static void look_at_reader(const struct reader *reader, struct quiet *quiet)
{
    bool shared = reader->consumer->settings.shared;
    if (reader->successor) quiet->is_quiet = false;
    if (reader->is_lost_stream || reader->stage == READER_STOPPED || reader->stage == READER_GONE) return;
    quiet->is_quiet &= reader->stage == READER_RUNS && !reader->wanted_of[0] && !reader->must_look_again;
    for (const struct shard *shard = reader->shards; shard; shard = shard->next)
        look_at_shard(shard, shared, quiet);
    quiet->is_quiet = quiet->is_quiet && !misses_children(reader);
}

void consumer_note_quiet(struct consumer *consumer)
{
    if (!atomic_load_explicit(&consumer->is_quiet_wanted, memory_order_relaxed)) return;
    struct quiet quiet = {.is_quiet = true, .news = consumer_news(consumer), .since_us = NEVER_US};
    for (const struct reader *reader = consumer->readers; reader; reader = reader->next)
        look_at_reader(reader, &quiet);
    pthread_mutex_lock(&consumer->quiet_lock);
    consumer->is_quiet = quiet.is_quiet;
    consumer->quiet_news = quiet.news;
    consumer->quiet_since_us = quiet.since_us;
    pthread_mutex_unlock(&consumer->quiet_lock);
}

/* The question must be asked before the answer counts; a good one is used up. */
static bool is_quiet_since_asked(struct consumer *consumer)
{
    int64_t probe_us = atomic_load(&consumer->probe_us);
    if (!probe_us) {
        atomic_store(&consumer->probe_us, consumer_ticks_us(consumer));
        return false;
    }
    if (!consumer->is_quiet || consumer->quiet_since_us < probe_us) return false;
    atomic_store(&consumer->probe_us, 0);
    return true;
}

bool consumer_is_quiet(struct consumer *consumer)
{
    uint64_t news = consumer_news(consumer);
    atomic_store(&consumer->is_quiet_wanted, true);
    pthread_mutex_lock(&consumer->quiet_lock);
    bool has_obeyed = consumer->orders_given == consumer->orders_done;
    bool is_quiet = has_obeyed && consumer->is_quiet && consumer->quiet_news == news;
    if (!consumer->world.news) is_quiet = has_obeyed && is_quiet_since_asked(consumer);
    pthread_mutex_unlock(&consumer->quiet_lock);
    if (!is_quiet) task_host_wake(consumer->host);
    return is_quiet;
}
