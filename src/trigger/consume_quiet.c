/* Whether all is quiet: every record that was there when somebody asked has been handled.
 *
 * Where commits tell of news, a strand is known to have nothing more when its last question was asked at
 * the newest news and had an empty answer. Elsewhere nobody knows without asking: who wants to know sets a
 * time, and all is quiet when every strand was asked since and had nothing. */
#include "trigger/consume.h"

struct quiet {
    bool is_quiet;
    uint64_t news;
    int64_t since_us;
};

static void look_at_strand(const struct strand *strand, bool shared, struct quiet *quiet)
{
    bool is_anothers = (shared && (strand->state == STRAND_WAITS || strand->state == STRAND_FREE)) ||
                       lease_is_anothers(strand);
    if (strand->state == STRAND_ENDED || is_anothers) return;
    if (!strand_is_listed(strand) && !strand_is_held(strand)) return;
    quiet->is_quiet &= strand_is_quiet(strand) && strand->asked_news == quiet->news;
    if (strand->empty_us < quiet->since_us) quiet->since_us = strand->empty_us;
}

static void look_at_feed(const struct feed *feed, struct quiet *quiet)
{
    bool shared = feed->consumer->settings.shared;
    if (feed->successor) quiet->is_quiet = false;
    if (feed->is_lost_stream || feed->stage == FEED_STOPPED || feed->stage == FEED_GONE) return;
    quiet->is_quiet &= feed->stage == FEED_RUNS && !feed->wanted_of[0] && !feed->must_look_again;
    for (const struct strand *strand = feed->strands; strand; strand = strand->next)
        look_at_strand(strand, shared, quiet);
    quiet->is_quiet = quiet->is_quiet && !strands_miss_children(feed);
}

void consumer_note_quiet(struct consumer *consumer)
{
    if (!atomic_load_explicit(&consumer->is_quiet_wanted, memory_order_relaxed)) return;
    struct quiet quiet = {.is_quiet = true, .news = consumer_news(consumer), .since_us = NEVER_US};
    for (const struct feed *feed = consumer->feeds; feed; feed = feed->next) look_at_feed(feed, &quiet);
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
    if (!is_quiet) inbox_wake(consumer->inbox);
    return is_quiet;
}
