/* The room's front: opens and closes its parts and hands each request to
 * the one it is for. */
#include "trigger/trigger.h"

#include <stdlib.h>

#include "base/fail.h"
#include "trigger/consume.h"
#include "trigger/watch.h"

#define WORKERS          2
#define LEASE_DEFAULT_MS 10000
#define POLL_DEFAULT_MS  250

void trigger_free_leases(struct dynamo *dynamo, const char *prefix)
{
    struct buf table = {0};
    buf_printf(&table, "%spositions", prefix ? prefix : "quipu-");
    buf_byte(&table, '\0');
    dynamo_leases_free(dynamo, &(struct dynamo_lease){table.data, "mapping", "shard", "owner", "until"});
    buf_free(&table);
}

struct trigger *trigger_open(const struct trigger_options *options, char *error, size_t error_len)
{
    struct trigger *trigger = must_zero(1, sizeof *trigger);
    trigger->options = *options;
    if (trigger->options.lease_ms <= 0) trigger->options.lease_ms = LEASE_DEFAULT_MS;
    if (trigger->options.poll_ms <= 0) trigger->options.poll_ms = POLL_DEFAULT_MS;
    trigger->prefix = arena_copy(&trigger->texts, slice_of(options->prefix ? options->prefix : "quipu-"));
    trigger->region = arena_copy(&trigger->texts, slice_of(options->region));
    trigger->account = arena_copy(&trigger->texts, slice_of(options->account));
    trigger->workers = rest_workers_new(WORKERS);
    trigger->consumer = consumer_open(trigger);
    trigger->watches = watches_open(trigger);
    trigger->mappings = mappings_open(trigger, error, error_len);
    trigger->consumer->world.mappings = trigger->mappings;
    if (trigger->mappings) trigger->schedules = schedules_open(trigger, error, error_len);
    if (trigger->schedules) return trigger;
    trigger_close(trigger);
    return NULL;
}

void trigger_start(struct trigger *trigger)
{
    consumer_start(trigger->consumer);
    mappings_start(trigger->mappings);
    schedules_start(trigger->schedules);
    watches_start(trigger->watches);
}

void trigger_stop(struct trigger *trigger)
{
    if (trigger->schedules) schedules_halt(trigger->schedules);
    watches_halt(trigger->watches);
    consumer_halt(trigger->consumer);
}

/* Requests first, since they use the rest; the consumer's thread before the
 * mappings that it tells of its results, and the consumer itself after them,
 * since they tell it of changes. */
void trigger_close(struct trigger *trigger)
{
    rest_workers_free(trigger->workers);
    trigger_stop(trigger);
    schedules_close(trigger->schedules);
    if (trigger->mappings) mappings_close(trigger->mappings);
    consumer_close(trigger->consumer);
    watches_close(trigger->watches);
    arena_free(&trigger->texts);
    free(trigger);
}

static bool serve_routes(struct trigger *trigger, struct rest_call *call, const struct rest_route *routes,
                         size_t count)
{
    const struct rest_route *route;
    if (rest_route(routes, count, call, &route) != REST_FOUND) return false;
    route->serve(trigger, call);
    return true;
}

bool trigger_serve(struct trigger *trigger, struct rest_call *call)
{
    return serve_routes(trigger, call, mapping_routes, mapping_route_count) ||
           serve_routes(trigger, call, schedule_routes, schedule_route_count) ||
           mapping_tags_serve(trigger, call);
}

void trigger_put_metrics(struct trigger *trigger, struct buf *out)
{
    consumer_put_metrics(trigger->consumer, out);
}

int64_t trigger_lag_ms(struct trigger *trigger)
{
    return consumer_lag_ms(trigger->consumer);
}

unsigned trigger_lags(struct trigger *trigger, struct trigger_lag out[LIMIT_CONSOLE_TOP])
{
    return consumer_lags(trigger->consumer, out);
}

bool trigger_is_idle(struct trigger *trigger)
{
    watches_look(trigger->watches);
    if (!consumer_is_quiet(trigger->consumer) || !schedules_are_idle(trigger->schedules)) return false;
    return !mappings_follow(trigger->mappings);
}
