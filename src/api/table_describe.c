/* TableDescription: how the service shows a table. Times are seconds with a fraction; numbers that are not
 * known are left out, not null. */
#include <time.h>

#include "api/backups.h"
#include "api/global_tables.h"
#include "api/tables.h"

void put_text(struct buf *out, const char *name, struct slice text)
{
    buf_printf(out, ",\"%s\":", name);
    json_put_string(out, text);
}

void put_int(struct buf *out, const char *name, int64_t value)
{
    buf_printf(out, ",\"%s\":%lld", name, (long long)value);
}

void put_time(struct buf *out, const char *name, int64_t time_ms)
{
    buf_printf(out, ",\"%s\":%lld.%03lld", name, (long long)(time_ms / 1000), (long long)(time_ms % 1000));
}

void put_stream_label(struct buf *out, int64_t time_ms)
{
    time_t seconds = (time_t)(time_ms / 1000);
    struct tm utc;
    char text[32];
    gmtime_r(&seconds, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    buf_printf(out, "%s.%03lld", text, (long long)(time_ms % 1000));
}

/* ---- keys, attributes, projections ---- */

static void put_attributes(struct buf *out, const struct table_definition *definition)
{
    buf_text(out, ",\"AttributeDefinitions\":[");
    for (uint32_t i = 0; i < definition->attribute_count; i++) {
        if (i) buf_byte(out, ',');
        buf_text(out, "{\"AttributeName\":");
        json_put_string(out, definition->attributes[i].name);
        put_text(out, "AttributeType", value_type_name(definition->attributes[i].type));
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}

static void put_key(struct buf *out, struct slice name, const char *type, bool first)
{
    if (!first) buf_byte(out, ',');
    buf_text(out, "{\"AttributeName\":");
    json_put_string(out, name);
    buf_printf(out, ",\"KeyType\":\"%s\"}", type);
}

void put_key_schema(struct buf *out, const struct table_definition *definition)
{
    buf_text(out, ",\"KeySchema\":[");
    put_key(out, definition->hash, "HASH", true);
    if (definition->range.len) put_key(out, definition->range, "RANGE", false);
    buf_byte(out, ']');
}

void put_index_schema(struct buf *out, const struct index_definition *index)
{
    buf_text(out, ",\"KeySchema\":[");
    for (uint32_t i = 0; i < index->hash_count; i++) put_key(out, index->hash[i], "HASH", i == 0);
    for (uint32_t i = 0; i < index->range_count; i++) put_key(out, index->range[i], "RANGE", false);
    buf_byte(out, ']');
}

void put_projection(struct buf *out, const struct index_definition *index)
{
    static const char *const names[] = {
        [PROJECT_ALL] = "ALL", [PROJECT_KEYS_ONLY] = "KEYS_ONLY", [PROJECT_INCLUDE] = "INCLUDE"};
    buf_printf(out, ",\"Projection\":{\"ProjectionType\":\"%s\"", names[index->projection]);
    if (index->projection == PROJECT_INCLUDE) {
        buf_text(out, ",\"NonKeyAttributes\":[");
        for (uint32_t i = 0; i < index->non_key_count; i++) {
            if (i) buf_byte(out, ',');
            json_put_string(out, index->non_key[i]);
        }
        buf_byte(out, ']');
    }
    buf_byte(out, '}');
}

/* ---- throughput ---- */

static void put_units(struct buf *out, int64_t decreases, const struct throughput *throughput)
{
    buf_printf(out, ",\"ProvisionedThroughput\":{\"NumberOfDecreasesToday\":%lld", (long long)decreases);
    put_int(out, "ReadCapacityUnits", throughput->read_units);
    put_int(out, "WriteCapacityUnits", throughput->write_units);
}

void put_units_only(struct buf *out, const struct throughput *throughput)
{
    buf_printf(out, ",\"ProvisionedThroughput\":{\"ReadCapacityUnits\":%lld", (long long)throughput->read_units);
    put_int(out, "WriteCapacityUnits", throughput->write_units);
    buf_byte(out, '}');
}

/* The service counts the decreases of a calendar day. */
static int64_t decreases_today(const struct table_definition *definition, int64_t now_ms)
{
    return definition->throughput_lowered_ms / DAY_MS == now_ms / DAY_MS ? definition->decreases_today : 0;
}

/* While the throughput changes, the old units and count are shown with the new dates. */
static void put_table_units(struct buf *out, const struct description *description)
{
    const struct table_definition *definition = description->definition, *shown = definition;
    if (description->before && description->before->on_demand == definition->on_demand)
        shown = description->before;
    put_units(out, decreases_today(shown, description->now_ms), &shown->throughput);
    if (definition->throughput_raised_ms)
        put_time(out, "LastIncreaseDateTime", definition->throughput_raised_ms);
    if (definition->throughput_lowered_ms)
        put_time(out, "LastDecreaseDateTime", definition->throughput_lowered_ms);
    buf_byte(out, '}');
}

void put_on_demand(struct buf *out, const struct throughput *throughput)
{
    if (throughput->max_read == -1 && throughput->max_write == -1) return;
    buf_text(out, ",\"OnDemandThroughput\":{");
    if (throughput->max_read != -1)
        buf_printf(out, "\"MaxReadRequestUnits\":%lld", (long long)throughput->max_read);
    if (throughput->max_read != -1 && throughput->max_write != -1) buf_byte(out, ',');
    if (throughput->max_write != -1)
        buf_printf(out, "\"MaxWriteRequestUnits\":%lld", (long long)throughput->max_write);
    buf_byte(out, '}');
}

static void put_warm(struct buf *out, const struct throughput *throughput, bool on_demand, const char *status)
{
    int64_t read, write;
    warm_effective(throughput, on_demand, &read, &write);
    buf_printf(out, ",\"WarmThroughput\":{\"Status\":\"%s\"", status);
    put_int(out, "ReadUnitsPerSecond", read);
    put_int(out, "WriteUnitsPerSecond", write);
    buf_byte(out, '}');
}

/* Warm throughput changes in its own time: the old one is shown, and that it changes. */
static void put_table_warm(struct buf *out, const struct description *description)
{
    const struct table_definition *shown = description->changes_warm ? description->before
                                                                     : description->definition;
    put_warm(out, &shown->throughput, shown->on_demand,
             description->changes_warm ? "UPDATING" : description->status);
}

/* A table that was never on demand has no summary; one that is being made has no date yet. */
static void put_billing(struct buf *out, const struct description *description)
{
    const struct table_definition *definition = description->definition;
    const char *mode = definition->on_demand ? "PAY_PER_REQUEST" : "PROVISIONED";
    bool is_dated = strcmp(description->status, "CREATING") != 0;
    if (!definition->on_demand && !definition->on_demand_since_ms) return;
    buf_printf(out, ",\"BillingModeSummary\":{\"BillingMode\":\"%s\"", mode);
    if (is_dated) put_time(out, "LastUpdateToPayPerRequestDateTime", definition->on_demand_since_ms);
    buf_printf(out, "},\"TableThroughputModeSummary\":{\"TableThroughputMode\":\"%s\"", mode);
    if (is_dated) put_time(out, "LastUpdateToPayPerRequestDateTime", definition->on_demand_since_ms);
    buf_byte(out, '}');
}

/* ---- indexes ---- */

static void index_counts(const struct table *table, const struct index_definition *index, int64_t *items,
                         int64_t *bytes)
{
    for (uint32_t i = 0; table && i < table->definition.index_count; i++) {
        if (table->definition.indexes[i].number != index->number) continue;
        *items = atomic_load(&table->index_counts[i]->items);
        *bytes = atomic_load(&table->index_counts[i]->bytes);
    }
}

static void put_index_head(struct buf *out, const struct description *description,
                           const struct index_definition *index)
{
    buf_text(out, "{\"IndexName\":");
    json_put_string(out, index->name);
    put_index_schema(out, index);
    put_projection(out, index);
    buf_text(out, ",\"IndexArn\":\"");
    put_table_arn(out, description->api, description->definition->name);
    buf_printf(out, "/index/%.*s\"", SLICE_ARG(index->name));
    int64_t items = 0, bytes = 0;
    index_counts(description->table, index, &items, &bytes);
    put_int(out, "IndexSizeBytes", bytes);
    put_int(out, "ItemCount", items);
}

static bool same_throughput(const struct throughput *a, const struct throughput *b)
{
    return a->read_units == b->read_units && a->write_units == b->write_units && a->max_read == b->max_read &&
           a->max_write == b->max_write && a->warm_read == b->warm_read && a->warm_write == b->warm_write;
}

static const char *index_status(const struct description *description, const struct index_definition *index,
                                const struct index_definition *before)
{
    if (!description->before) return index->status == INDEX_CREATING ? "CREATING" : description->status;
    if (!definition_index(description->definition, index->name)) return "DELETING";
    if (!before) return "CREATING";
    return same_throughput(&index->throughput, &before->throughput) ? "ACTIVE" : "UPDATING";
}

/* While an index's units change, the old ones are shown. */
static void put_global_index(struct buf *out, const struct description *description,
                             const struct index_definition *index)
{
    const struct table_definition *old = description->before;
    const struct index_definition *before = old ? definition_index(old, index->name) : NULL;
    const char *status = index_status(description, index, before);
    bool shows_old = before && old->on_demand == description->definition->on_demand;
    put_index_head(out, description, index);
    buf_printf(out, ",\"IndexStatus\":\"%s\"", status);
    if (old && !before) buf_text(out, ",\"Backfilling\":false");
    if (index->status == INDEX_CREATING && !old) buf_text(out, ",\"Backfilling\":true");
    put_units(out, 0, shows_old ? &before->throughput : &index->throughput);
    buf_byte(out, '}');
    put_on_demand(out, &index->throughput);
    bool is_added = strcmp(status, "CREATING") == 0 && strcmp(description->status, "CREATING") != 0;
    put_warm(out, &index->throughput, description->definition->on_demand, is_added ? "UPDATING" : status);
    buf_byte(out, '}');
}

static uint32_t put_global_of(struct buf *out, const struct description *description,
                              const struct table_definition *definition, bool only_dropped, uint32_t count)
{
    for (uint32_t i = 0; i < definition->index_count; i++) {
        const struct index_definition *index = &definition->indexes[i];
        if (!index->global) continue;
        if (only_dropped && definition_index(description->definition, index->name)) continue;
        buf_slice(out, slice_of(count++ ? "," : ",\"GlobalSecondaryIndexes\":["));
        put_global_index(out, description, index);
    }
    return count;
}

/* Those that an update drops are shown as long as it lasts. */
static void put_global_indexes(struct buf *out, const struct description *description)
{
    uint32_t count = put_global_of(out, description, description->definition, false, 0);
    if (description->before) count = put_global_of(out, description, description->before, true, count);
    if (count) buf_byte(out, ']');
}

static void put_local_indexes(struct buf *out, const struct description *description)
{
    const struct table_definition *definition = description->definition;
    uint32_t count = 0;
    for (uint32_t i = 0; i < definition->index_count; i++) {
        if (definition->indexes[i].global) continue;
        buf_slice(out, slice_of(count++ ? "," : ",\"LocalSecondaryIndexes\":["));
        put_index_head(out, description, &definition->indexes[i]);
        buf_byte(out, '}');
    }
    if (count) buf_byte(out, ']');
}

/* ---- the rest ---- */

static void put_stream(struct buf *out, const struct description *description)
{
    const struct table_definition *definition = description->definition;
    if (definition->stream != STREAM_OFF)
        buf_printf(out, ",\"StreamSpecification\":{\"StreamEnabled\":true,\"StreamViewType\":\"%s\"}",
                   stream_view_name(definition->stream));
    if (!definition->stream_since_ms) return;
    buf_text(out, ",\"LatestStreamLabel\":\"");
    put_stream_label(out, definition->stream_since_ms);
    buf_text(out, "\",\"LatestStreamArn\":\"");
    put_table_arn(out, description->api, definition->name);
    buf_text(out, "/stream/");
    put_stream_label(out, definition->stream_since_ms);
    buf_byte(out, '"');
}

/* Without a key of one's own the service names the account's key; ours is named after the table. */
void put_encryption(struct buf *out, const struct description *description)
{
    const struct table_definition *definition = description->definition;
    struct slice key = definition->kms_key.len ? definition->kms_key : definition->id;
    if (!definition->encrypted) return;
    buf_printf(out, ",\"SSEDescription\":{\"Status\":\"%s\",\"SSEType\":\"KMS\",\"KMSMasterKeyArn\":",
               description->changes_encryption ? "UPDATING" : "ENABLED");
    if (slice_starts(key, SLICE("arn:"))) {
        json_put_string(out, key);
    } else {
        struct buf arn = {0};
        buf_printf(&arn, "arn:aws:kms:%.*s:%.*s:key/%.*s", SLICE_ARG(description->api->region),
                   SLICE_ARG(description->api->account), SLICE_ARG(key));
        json_put_string(out, buf_view(&arn));
        buf_free(&arn);
    }
    buf_byte(out, '}');
}

static void put_class(struct buf *out, const struct table_definition *definition)
{
    if (!definition->table_class.len) return;
    buf_text(out, ",\"TableClassSummary\":{\"TableClass\":");
    json_put_string(out, definition->table_class);
    if (definition->table_class_changed_ms)
        put_time(out, "LastUpdateDateTime", definition->table_class_changed_ms);
    buf_byte(out, '}');
}

/* Only while the table is being filled. */
static void put_restore(struct buf *out, const struct description *description)
{
    struct map restoring = setting_map(description->definition, RESTORING);
    if (!restoring.count) return;
    struct slice backup = map_text(&restoring, "backup"), table = map_text(&restoring, "table");
    buf_text(out, ",\"RestoreSummary\":{");
    if (backup.len) {
        buf_text(out, "\"SourceBackupArn\":\"");
        put_backup_arn(out, description->api, table, backup);
        buf_text(out, "\",");
    }
    buf_text(out, "\"SourceTableArn\":\"");
    put_table_arn(out, description->api, table);
    buf_byte(out, '"');
    put_time(out, "RestoreDateTime", map_integer(&restoring, "time_ms"));
    buf_text(out, ",\"RestoreInProgress\":true}");
}

static void put_settings(struct buf *out, const struct description *description)
{
    const struct table_definition *definition = description->definition;
    put_attributes(out, definition);
    put_key_schema(out, definition);
    put_time(out, "CreationDateTime", definition->created_ms);
    put_local_indexes(out, description);
    put_global_indexes(out, description);
    put_vector_indexes(out, description);
    put_stream(out, description);
    put_replicas(out, definition);
    put_restore(out, description);
    put_encryption(out, description);
    put_class(out, definition);
    put_on_demand(out, &definition->throughput);
    put_table_warm(out, description);
}

/* A table that is being deleted is shown without its schema. */
void table_describe(struct buf *out, const struct description *description)
{
    const struct table_definition *definition = description->definition;
    buf_text(out, "{\"TableName\":");
    json_put_string(out, definition->name);
    buf_printf(out, ",\"TableStatus\":\"%s\",\"TableArn\":\"", description->status);
    put_table_arn(out, description->api, definition->name);
    buf_byte(out, '"');
    put_text(out, "TableId", definition->id);
    put_int(out, "ItemCount", description->items);
    put_int(out, "TableSizeBytes", description->bytes);
    put_table_units(out, description);
    put_billing(out, description);
    if (strcmp(description->status, "DELETING") != 0) put_settings(out, description);
    buf_printf(out, ",\"DeletionProtectionEnabled\":%s}", definition->deletion_protected ? "true" : "false");
}
