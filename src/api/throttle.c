/* Throughput that acts (throttle.h): which buckets an arm draws on, who may come in, and what others are told. */
#include "api/throttle.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "api/bucket.h"
#include "base/fail.h"
#include "base/hash.h"

#define BURST_SECONDS         300 /* unused units are kept so long */
#define PARTITION_READ_UNITS  3000
#define PARTITION_WRITE_UNITS 1000
#define INDEX_KEY_HASH_AT     (ITEM_KEY_HASH_AT + 4) /* the index's number stands in between */

/* What was said about one table. */
struct table_rule {
    char name[LIMIT_KEY_NAME_BYTES + 1];
    bool has_enforced, enforced;
    int64_t drained_ms; /* 0: never */
};

struct throttle {
    _Atomic bool is_on;
    pthread_mutex_t lock; /* of everything below */
    bool all, ignores_tags;
    int64_t burst_seconds, drained_ms;
    struct table_rule rules[LIMIT_THROTTLE_TABLES];
    unsigned rule_count;
    struct bucket_cache units, partitions; /* apart: hot keys must not push tables out */
    uint64_t refused;
};

static void update_is_on(struct throttle *throttle)
{
    bool on = throttle->all;
    for (unsigned i = 0; i < throttle->rule_count; i++) on |= throttle->rules[i].enforced;
    atomic_store(&throttle->is_on, on);
}

struct throttle *throttle_new(bool all)
{
    struct throttle *throttle = must_zero(1, sizeof *throttle);
    pthread_mutex_init(&throttle->lock, NULL);
    throttle->all = all;
    throttle->burst_seconds = BURST_SECONDS;
    update_is_on(throttle);
    return throttle;
}

void throttle_free(struct throttle *throttle)
{
    bucket_cache_free(&throttle->units);
    bucket_cache_free(&throttle->partitions);
    pthread_mutex_destroy(&throttle->lock);
    free(throttle);
}

/* What the table's tag says; false: it says nothing. */
static bool read_tag(const struct table *table, bool *enforced)
{
    const struct table_definition *definition = &table->definition;
    for (uint32_t i = 0; i < definition->tag_count; i++) {
        if (!slice_equal(definition->tags[i].key, SLICE("quipu:throttle"))) continue;
        *enforced = slice_equal(definition->tags[i].value, SLICE("on"));
        return *enforced || slice_equal(definition->tags[i].value, SLICE("off"));
    }
    return false;
}

bool throttle_is_on(const struct api *api, const struct table *table)
{
    bool tagged;
    return atomic_load_explicit(&api->throttle->is_on, memory_order_relaxed) ||
           (read_tag(table, &tagged) && tagged);
}

/* ---- what is said about it at run time ---- */

static struct table_rule *find_rule(struct throttle *throttle, struct slice name)
{
    for (unsigned i = 0; i < throttle->rule_count; i++)
        if (slice_equal(slice_of(throttle->rules[i].name), name)) return &throttle->rules[i];
    return NULL;
}

static struct table_rule *take_rule(struct throttle *throttle, struct slice name)
{
    struct table_rule *rule = find_rule(throttle, name);
    if (rule || throttle->rule_count == LIMIT_THROTTLE_TABLES || name.len > LIMIT_KEY_NAME_BYTES) return rule;
    rule = &throttle->rules[throttle->rule_count++];
    *rule = (struct table_rule){0};
    memcpy(rule->name, name.data, name.len);
    return rule;
}

static bool set_table(struct throttle *throttle, const struct api_throttle *order, uint32_t number,
                      int64_t now_ms)
{
    struct table_rule *rule = take_rule(throttle, order->table);
    if (!rule) return false;
    if (order->has_enforce) {
        rule->has_enforced = true;
        rule->enforced = order->enforce;
    }
    if (!order->drain) return true;
    rule->drained_ms = now_ms;
    bucket_cache_drain(&throttle->units, number, now_ms);
    bucket_cache_drain(&throttle->partitions, number, now_ms);
    return true;
}

static void set_all(struct throttle *throttle, const struct api_throttle *order, int64_t now_ms)
{
    if (order->has_enforce) {
        throttle->all = order->enforce;
        throttle->ignores_tags = true;
        throttle->rule_count = 0;
    }
    if (!order->drain) return;
    throttle->drained_ms = now_ms;
    bucket_cache_drain(&throttle->units, 0, now_ms);
    bucket_cache_drain(&throttle->partitions, 0, now_ms);
}

/* The table is looked up before the lock is taken: the writer takes it, too, in the midst of a batch. */
bool api_throttle(struct api *api, const struct api_throttle *order, uint64_t *refused)
{
    struct throttle *throttle = api->throttle;
    int64_t now_ms = engine_now_ms(api->engine);
    struct table *table = order->table.len ? engine_table_find(api->engine, order->table) : NULL;
    bool known = !order->table.len || table;
    pthread_mutex_lock(&throttle->lock);
    if (table)
        known = set_table(throttle, order, table->number, now_ms);
    else if (known)
        set_all(throttle, order, now_ms);
    if (known && order->has_burst) throttle->burst_seconds = order->burst_seconds;
    update_is_on(throttle);
    *refused = throttle->refused;
    pthread_mutex_unlock(&throttle->lock);
    if (table) engine_table_release(table);
    return known;
}

/* ---- demands ---- */

static uint32_t hash_in_key(struct slice key, size_t at)
{
    const unsigned char *hash = (const unsigned char *)key.data + at;
    ensure(key.len >= at + 4);
    return (uint32_t)hash[0] << 24 | (uint32_t)hash[1] << 16 | (uint32_t)hash[2] << 8 | hash[3];
}

struct throttle_demand throttle_read(const struct table *table, const struct index_definition *index,
                                     struct slice key, double table_units, double index_units)
{
    bool is_global = index && index->global;
    struct throttle_demand demand = {.table = table, .count = 1};
    demand.arms[0] = (struct throttle_arm){
        .index = is_global ? index : NULL, .units = table_units + index_units, .has_partition = key.len > 0};
    if (key.len) demand.arms[0].partition = hash_in_key(key, index ? INDEX_KEY_HASH_AT : ITEM_KEY_HASH_AT);
    return demand;
}

/* The partition of an index that an item's entry is in, or was in. */
static void find_partition(struct api_call *call, const struct write *write, struct throttle_arm *arm)
{
    struct slice images[] = {write->new_image, write->old_image};
    for (int i = 0; i < 2 && !arm->has_partition; i++) {
        struct map item;
        if (!images[i].len || !item_decode(call->arena, images[i], &item)) continue;
        if (!index_holds(write->table, arm->index, &item)) continue;
        struct buf key = {0};
        engine_index_key(&key, write->table, arm->index, &item);
        arm->partition = hash_in_key(buf_view(&key), INDEX_KEY_HASH_AT);
        arm->has_partition = true;
        buf_free(&key);
    }
}

struct throttle_demand throttle_write(struct api_call *call, const struct write *write, bool in_transaction)
{
    const struct table_definition *definition = &write->table->definition;
    struct throttle_demand demand = {.table = write->table, .count = 1};
    struct capacity capacity = {0};
    if (write->outcome == WRITE_APPLIED)
        capacity_add_write(call, &capacity, write);
    else
        capacity.table = capacity_write(write->old_size, 0);
    demand.arms[0] = (struct throttle_arm){.units = capacity.table *
                                                    (in_transaction ? TRANSACTION_FACTOR : 1),
                                           .is_write = true,
                                           .has_partition = true,
                                           .partition = hash_in_key(write->key, ITEM_KEY_HASH_AT)};
    for (uint32_t i = 0; i < definition->index_count; i++) {
        const struct index_definition *index = &definition->indexes[i];
        if (capacity.indexes[i] <= 0) continue;
        if (!index->global) {
            demand.arms[0].units += capacity.indexes[i];
            continue;
        }
        struct throttle_arm *arm = &demand.arms[demand.count++];
        *arm = (struct throttle_arm){.index = index, .units = capacity.indexes[i], .is_write = true};
        find_partition(call, write, arm);
    }
    return demand;
}

/* ---- admission ---- */

/* How much comes in a second, and how much stays; false: there is no bound. */
static bool find_rate(const struct throttle *throttle, const struct table_definition *definition,
                      const struct throttle_arm *arm, double *rate, double *most)
{
    const struct throughput *throughput = arm->index ? &arm->index->throughput : &definition->throughput;
    int64_t units = definition->on_demand
                        ? (arm->is_write ? throughput->max_write : throughput->max_read)
                        : (arm->is_write ? throughput->write_units : throughput->read_units);
    if (units <= 0) return false;
    int64_t seconds = definition->on_demand || throttle->burst_seconds < 1 ? 1 : throttle->burst_seconds;
    *rate = (double)units;
    *most = *rate * (double)seconds;
    return true;
}

static uint64_t bucket_key(const struct throttle_demand *demand, const struct throttle_arm *arm)
{
    struct buf text = {0};
    buf_u32(&text, demand->table->number);
    buf_u32(&text, arm->index ? arm->index->number : 0);
    buf_u32(&text, arm->has_partition ? arm->partition : 0);
    buf_byte(&text, arm->is_write);
    uint64_t key = hash_bytes(buf_view(&text)) | 1;
    buf_free(&text);
    return key;
}

/* What a table has gathered since it exists, or since it was drained. */
static double first_tokens(struct throttle *throttle, const struct table_definition *definition, double rate,
                           double most, int64_t now_ms)
{
    const struct table_rule *rule = find_rule(throttle, definition->name);
    int64_t drained_ms = throttle->drained_ms;
    if (rule && rule->drained_ms > drained_ms) drained_ms = rule->drained_ms;
    bool is_drained = drained_ms >= definition->created_ms;
    int64_t age_ms = now_ms - (is_drained ? drained_ms : definition->created_ms);
    double tokens = age_ms > 0 ? rate * (double)age_ms / 1000 : 0;
    if (!is_drained) tokens += rate; /* the first second's */
    return tokens < most ? tokens : most;
}

/* The buckets that an arm draws on; NULL where there is no bound. */
struct arm_buckets {
    struct bucket *units, *partition;
};

static struct arm_buckets find_buckets(struct throttle *throttle, const struct throttle_demand *demand,
                                       const struct throttle_arm *arm, int64_t now_ms)
{
    const struct table_definition *definition = &demand->table->definition;
    uint32_t owner = demand->table->number;
    struct arm_buckets found = {0};
    double rate, most;
    if (find_rate(throttle, definition, arm, &rate, &most)) {
        struct throttle_arm whole = {.index = arm->index, .is_write = arm->is_write};
        double first = first_tokens(throttle, definition, rate, most, now_ms);
        found.units = bucket_cache_find(&throttle->units, bucket_key(demand, &whole), owner, first, now_ms);
        bucket_fill(found.units, rate, most, now_ms);
    }
    if (arm->has_partition) {
        rate = most = arm->is_write ? PARTITION_WRITE_UNITS : PARTITION_READ_UNITS;
        double first = first_tokens(throttle, definition, rate, most, now_ms);
        found.partition = bucket_cache_find(&throttle->partitions, bucket_key(demand, arm), owner, first,
                                            now_ms);
        bucket_fill(found.partition, rate, most, now_ms);
    }
    return found;
}

static bool is_enforced(struct throttle *throttle, const struct table *table)
{
    const struct table_rule *rule = find_rule(throttle, table->definition.name);
    bool tagged;
    if (rule && rule->has_enforced) return rule->enforced;
    return !throttle->ignores_tags && read_tag(table, &tagged) ? tagged : throttle->all;
}

/* Before anything is taken. */
static bool check_demand(struct throttle *throttle, struct throttle_demand *demand, int64_t now_ms)
{
    bool fine = true;
    for (uint32_t i = 0; i < demand->count; i++) {
        struct throttle_arm *arm = &demand->arms[i];
        struct arm_buckets buckets = find_buckets(throttle, demand, arm, now_ms);
        bool on_demand = demand->table->definition.on_demand;
        arm->cause = THROTTLE_NONE;
        if (buckets.units && !bucket_admits(buckets.units))
            arm->cause = on_demand ? THROTTLE_MAXIMUM : THROTTLE_PROVISIONED;
        else if (buckets.partition && !bucket_admits(buckets.partition))
            arm->cause = THROTTLE_KEY_RANGE;
        fine &= arm->cause == THROTTLE_NONE;
    }
    return fine;
}

static void take_demand(struct throttle *throttle, const struct throttle_demand *demand, int64_t now_ms)
{
    for (uint32_t i = 0; i < demand->count; i++) {
        struct arm_buckets buckets = find_buckets(throttle, demand, &demand->arms[i], now_ms);
        if (buckets.units) bucket_take(buckets.units, demand->arms[i].units);
        if (buckets.partition) bucket_take(buckets.partition, demand->arms[i].units);
    }
}

bool throttle_admit(struct api *api, struct throttle_demand *demands, uint32_t count)
{
    struct throttle *throttle = api->throttle;
    int64_t now_ms = engine_now_ms(api->engine);
    bool fine = true;
    pthread_mutex_lock(&throttle->lock);
    if (!throttle->units.count) {
        bucket_cache_init(&throttle->units, LIMIT_THROTTLE_BUCKETS);
        bucket_cache_init(&throttle->partitions, LIMIT_THROTTLE_BUCKETS);
    }
    for (uint32_t i = 0; i < count; i++)
        if (is_enforced(throttle, demands[i].table)) fine &= check_demand(throttle, &demands[i], now_ms);
    for (uint32_t i = 0; fine && i < count; i++)
        if (is_enforced(throttle, demands[i].table)) take_demand(throttle, &demands[i], now_ms);
    throttle->refused += !fine;
    pthread_mutex_unlock(&throttle->lock);
    return fine;
}

bool throttle_has_refused(const struct throttle_demand *demand)
{
    for (uint32_t i = 0; i < demand->count; i++)
        if (demand->arms[i].cause != THROTTLE_NONE) return true;
    return false;
}

const struct throttle_demand *throttle_refusal(struct api_call *call, struct throttle_demand demand)
{
    if (throttle_admit(call->api, &demand, 1)) return NULL;
    struct throttle_demand *copy = arena_new(call->arena, struct throttle_demand);
    *copy = demand;
    return copy;
}

/* ---- what is told ---- */

static const struct throttle_arm *first_refused(const struct throttle_demand *demand)
{
    for (uint32_t i = 0; i < demand->count; i++)
        if (demand->arms[i].cause != THROTTLE_NONE) return &demand->arms[i];
    ensure(false);
    return NULL;
}

static const struct slice
    on_demand_words = SLICE(
        "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling "
        "your table or index so please try again shortly. If exceptions persist, check if you have a hot key: "
        "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html"),
    provisioned_words = SLICE(
        "The level of configured provisioned throughput for the table was exceeded. Consider increasing your "
        "provisioning level with the UpdateTable API.");

static struct slice message_of(const struct throttle_demand *demand)
{
    const struct throttle_arm *arm = first_refused(demand);
    if (arm->cause == THROTTLE_MAXIMUM)
        return SLICE("Throughput exceeds the maximum OnDemandThroughput configured on table or index");
    if (demand->table->definition.on_demand && arm->index)
        return SLICE("Throughput exceeds the current capacity for one or more global secondary indexes. "
                     "DynamoDB is automatically scaling your index so please try again shortly.");
    if (demand->table->definition.on_demand)
        return on_demand_words;
    if (arm->index)
        return SLICE(
            "The level of configured provisioned throughput for one or more global secondary indexes "
            "of the table was exceeded. Consider increasing your provisioning level for the "
            "under-provisioned global secondary indexes with the UpdateTable API");
    return provisioned_words;
}

static const char *cause_text(enum throttle_cause cause)
{
    switch (cause) {
    case THROTTLE_NONE: break;
    case THROTTLE_PROVISIONED: return "ProvisionedThroughputExceeded";
    case THROTTLE_MAXIMUM: return "MaxOnDemandThroughputExceeded";
    case THROTTLE_KEY_RANGE: return "KeyRangeThroughputExceeded";
    }
    ensure(false);
    return NULL;
}

/* "ThrottlingReasons":[{"reason":"TableWriteProvisionedThroughputExceeded","resource":"arn:..."}] */
static void put_reasons(struct buf *out, const struct api *api, const struct throttle_demand *demand)
{
    bool any = false;
    buf_text(out, "\"ThrottlingReasons\":[");
    for (uint32_t i = 0; i < demand->count; i++) {
        const struct throttle_arm *arm = &demand->arms[i];
        if (arm->cause == THROTTLE_NONE) continue;
        buf_printf(out, "%s{\"reason\":\"%s%s%s\",\"resource\":\"", any ? "," : "",
                   arm->index ? "Index" : "Table", arm->is_write ? "Write" : "Read", cause_text(arm->cause));
        put_table_arn(out, api, demand->table->definition.name);
        if (arm->index) buf_printf(out, "/index/%.*s", SLICE_ARG(arm->index->name));
        buf_text(out, "\"}");
        any = true;
    }
    buf_byte(out, ']');
}

bool refuse_throttled(struct api_call *call, const struct throttle_demand *demand)
{
    struct buf members = {0};
    put_reasons(&members, call->api, demand);
    refuse_with(call,
                demand->table->definition.on_demand ? "ThrottlingException"
                                                    : "ProvisionedThroughputExceededException",
                message_of(demand), buf_view(&members));
    buf_free(&members);
    return false;
}

struct reason throttle_reason(const struct throttle_demand *demand)
{
    if (!throttle_has_refused(demand)) return (struct reason){"None", SLICE_NONE, SLICE_NONE};
    return (struct reason){demand->table->definition.on_demand ? "ThrottlingError"
                                                               : "ProvisionedThroughputExceeded",
                           message_of(demand), SLICE_NONE};
}

/* ---- for tests ---- */

int api_put_throttled(struct buf *out, const struct api *api, const char *error, bool is_write,
                      const struct slice *tables, uint32_t count)
{
    const struct {
        const char *error, *cause;
        struct slice message;
    } kinds[] = {
        {"ProvisionedThroughputExceededException", "ProvisionedThroughputExceeded", provisioned_words},
        {"ThrottlingException", "KeyRangeThroughputExceeded", on_demand_words},
        {"RequestLimitExceeded", "AccountLimitExceeded",
         SLICE("Throughput exceeds the current throughput limit for your account. Please contact AWS Support "
               "at https://aws.amazon.com/support request a limit increase")}};
    size_t kind = 0;
    while (strcmp(kinds[kind].error, error) != 0)
        if (++kind == sizeof kinds / sizeof *kinds) return 0;
    struct buf members = {0};
    buf_text(&members, "\"ThrottlingReasons\":[");
    for (uint32_t i = 0; i < count; i++) {
        struct buf arn = {0};
        buf_printf(&members, "%s{\"reason\":\"Table%s%s\",\"resource\":", i ? "," : "",
                   is_write ? "Write" : "Read", kinds[kind].cause);
        api_put_table_arn(&arn, api, tables[i]);
        json_put_string(&members, buf_view(&arn));
        buf_byte(&members, '}');
        buf_free(&arn);
    }
    buf_byte(&members, ']');
    int status = api_put_error_with(out, error, kinds[kind].message, buf_view(&members));
    buf_free(&members);
    return status;
}
