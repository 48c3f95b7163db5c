/* RestoreTableFromBackup and RestoreTableToPointInTime: a new table with the items of another one as it was.
 *
 * The call makes the table, which is CREATING and of use to nobody, and notes the job that fills it (api.h, jobs), in
 * one commit. What the new table is follows from the old one's definition: that of the backup, or, as on the service,
 * the one that a table has now, whatever moment its items are of. */
#include <math.h>

#include "api/backups.h"

enum {
    RESTORE_TARGET,
    RESTORE_BILLING,
    RESTORE_GLOBAL,
    RESTORE_LOCAL,
    RESTORE_UNITS,
    RESTORE_ON_DEMAND,
    RESTORE_SSE,
    RESTORE_VECTORS,
    RESTORE_BACKUP, /* of a backup; the others are those of a moment */
    RESTORE_SOURCE_ARN = RESTORE_BACKUP,
    RESTORE_SOURCE_NAME,
    RESTORE_LATEST,
    RESTORE_TIME,
};

#define OVERRIDES                                                                                            \
    [RESTORE_TARGET] = REQUIRED("TargetTableName", shape_target),                                            \
    [RESTORE_BILLING] = MEMBER("BillingModeOverride", shape_billing_mode),                                   \
    [RESTORE_GLOBAL] = MEMBER("GlobalSecondaryIndexOverride", shape_global_indexes),                         \
    [RESTORE_LOCAL] = MEMBER("LocalSecondaryIndexOverride", shape_local_indexes),                            \
    [RESTORE_UNITS] = MEMBER("ProvisionedThroughputOverride", shape_units),                                  \
    [RESTORE_ON_DEMAND] = MEMBER("OnDemandThroughputOverride", shape_on_demand),                             \
    [RESTORE_SSE] = MEMBER("SSESpecificationOverride", shape_sse),                                           \
    [RESTORE_VECTORS] = MEMBER("VectorIndexOverride", shape_vector_indexes)

static const struct shape shape_target = {NAME_RULES(3)};
static const struct shape shape_time = {.kind = SHAPE_DOUBLE};
static const struct shape_member backup_members[] = {
    OVERRIDES,
    [RESTORE_BACKUP] = REQUIRED("BackupArn", shape_job_arn),
};
static const struct shape backup_shape = STRUCT_SHAPE("RestoreTableFromBackupInput", backup_members);
static const struct shape_member moment_members[] = {
    OVERRIDES,
    [RESTORE_SOURCE_ARN] = MEMBER("SourceTableArn", shape_string),
    [RESTORE_SOURCE_NAME] = MEMBER("SourceTableName", shape_target),
    [RESTORE_LATEST] = MEMBER("UseLatestRestorableTime", shape_bool),
    [RESTORE_TIME] = MEMBER("RestoreDateTime", shape_time),
};
static const struct shape moment_shape = STRUCT_SHAPE("RestoreTableToPointInTimeInput", moment_members);

struct restore {
    struct verdict verdict;
    const struct api *api;
    struct slice arn; /* the backup's; empty: a moment */
    struct table_definition definition;
    struct api_job job;
};

/* ---- what the new table is ---- */

static bool define_billing(struct verdict *verdict, const struct node *input, struct table_definition *out)
{
    const struct node *mode = node_member(input, RESTORE_BILLING), *units = node_member(input, RESTORE_UNITS),
                      *on_demand = node_member(input, RESTORE_ON_DEMAND);
    static const char *const members[] = {"MaxReadRequestUnits", "MaxWriteRequestUnits"};
    if (node_says(mode, "PAY_PER_REQUEST") && units->present)
        return reject(verdict,
                      "Cannot override ProvisionedThroughput if BillingMode is overridden to PAY_PER_REQUEST");
    if (!mode->present && out->on_demand && units->present)
        return reject(verdict, "Invalid Request: Cannot override ProvisionedThroughput unless BillingMode is "
                               "PROVISIONED");
    if (node_says(mode, "PROVISIONED") && !units->present)
        return reject(verdict,
                      "Must override ProvisionedThroughput if BillingMode is overridden to PROVISIONED");
    if (mode->present) out->on_demand = node_says(mode, "PAY_PER_REQUEST");
    out->on_demand_since_ms = out->on_demand ? out->created_ms : 0;
    if (out->on_demand)
        out->throughput.read_units = out->throughput.write_units = 0;
    else
        out->throughput.max_read = out->throughput.max_write = -1;
    out->throughput.warm_read = out->throughput.warm_write = -1;
    take_units(units, &out->throughput);
    for (unsigned i = 0; on_demand->present && i < 2; i++) {
        const struct node *most = node_member(on_demand, i == 0 ? ON_DEMAND_READ : ON_DEMAND_WRITE);
        if (!most->present) continue;
        if (!out->on_demand)
            return reject(verdict,
                          "Cannot override %s for OnDemandThroughput unless BillingModeOverride is "
                          "PAY_PER_REQUEST",
                          members[i]);
        if (most->integer < 1 && most->integer != -1)
            return reject(verdict, "Requested %s for OnDemandThroughput is outside of valid range", members[i]);
        *(i == 0 ? &out->throughput.max_read : &out->throughput.max_write) = most->integer;
    }
    return check_units(verdict, units);
}

static bool has_keys(const struct index_definition *index, const struct node *keys)
{
    uint32_t hashes = 0, ranges = 0;
    for (uint32_t i = 0; i < keys->count; i++) {
        const struct node *key = &keys->elements[i];
        if (!key->present) continue;
        bool is_hash = node_says(node_member(key, KEY_TYPE), "HASH");
        uint32_t *place = is_hash ? &hashes : &ranges;
        if (*place == (is_hash ? index->hash_count : index->range_count) ||
            !slice_equal(node_member(key, KEY_NAME)->text, (is_hash ? index->hash : index->range)[*place]))
            return false;
        ++*place;
    }
    return hashes == index->hash_count && ranges == index->range_count;
}

static bool has_projection(const struct index_definition *index, const struct node *projection)
{
    static const char *const names[] = {
        [PROJECT_ALL] = "ALL", [PROJECT_KEYS_ONLY] = "KEYS_ONLY", [PROJECT_INCLUDE] = "INCLUDE"};
    const struct node *list = node_member(projection, PROJECTION_NON_KEY);
    uint32_t found = 0, given = 0;
    if (!node_says(node_member(projection, PROJECTION_TYPE), names[index->projection])) return false;
    for (uint32_t i = 0; list->present && i < list->count; i++) {
        if (!list->elements[i].present) continue;
        given++;
        for (uint32_t k = 0; k < index->non_key_count; k++)
            found += slice_equal(list->elements[i].text, index->non_key[k]);
    }
    return found == given && given == index->non_key_count;
}

/* The index of the source that this is, under whichever name; it is then the new table's. */
static bool take_index(struct verdict *verdict, struct table_definition *source, const struct node *node, bool global,
                       struct table_definition *out)
{
    struct slice name = node_member(node, global ? GLOBAL_NAME : LOCAL_NAME)->text;
    const struct node *keys = node_member(node, global ? GLOBAL_KEYS : LOCAL_KEYS),
                      *projection = node_member(node, global ? GLOBAL_PROJECTION : LOCAL_PROJECTION);
    for (uint32_t i = 0; i < source->index_count; i++) {
        struct index_definition *index = &source->indexes[i];
        if (index->global != global || !index->name.len || !has_keys(index, keys) ||
            !has_projection(index, projection))
            continue;
        if (definition_has_index(out, name))
            return reject(verdict, INVALID_VALUES "Duplicate index name: %.*s", SLICE_ARG(name));
        out->indexes[out->index_count] = *index;
        out->indexes[out->index_count++].name = name;
        index->name = SLICE_NONE; /* taken */
        return true;
    }
    return reject(verdict,
                  "Index %.*s does not match a secondary index that existed in the source table and cannot be "
                  "created during the restore operation",
                  SLICE_ARG(name));
}

/* Those of one kind: all, or those that the request names. */
static bool take_indexes(struct verdict *verdict, struct table_definition *source, const struct node *list,
                         bool global, struct table_definition *out)
{
    for (uint32_t i = 0; !list->present && i < source->index_count; i++)
        if (source->indexes[i].global == global) out->indexes[out->index_count++] = source->indexes[i];
    for (uint32_t i = 0; list->present && i < list->count; i++)
        if (list->elements[i].present && !take_index(verdict, source, &list->elements[i], global, out))
            return false;
    return true;
}

static const struct node *override_of(const struct node *list, struct slice name)
{
    for (uint32_t i = 0; list->present && i < list->count; i++)
        if (list->elements[i].present && slice_equal(node_member(&list->elements[i], GLOBAL_NAME)->text, name))
            return &list->elements[i];
    return NULL;
}

static bool define_index_units(struct verdict *verdict, const struct node *input, const struct table_definition *table,
                               struct index_definition *index)
{
    const struct node *given = override_of(node_member(input, RESTORE_GLOBAL), index->name);
    const struct node *units = given ? node_member(given, GLOBAL_UNITS) : NULL;
    struct throughput_rules rules = {.index = index->name, .on_demand = table->on_demand};
    if (table->on_demand) {
        if (units && units->present)
            return reject(verdict,
                          "Cannot override ProvisionedThroughput if BillingMode is overridden to PAY_PER_REQUEST "
                          "for index %.*s",
                          SLICE_ARG(index->name));
        index->throughput.read_units = index->throughput.write_units = 0;
    } else {
        index->throughput.max_read = index->throughput.max_write = -1;
        if (units) take_units(units, &index->throughput);
        if (!index->throughput.read_units || (given && !units->present))
            return reject(verdict, "Must specify provisioned throughput for index %.*s", SLICE_ARG(index->name));
    }
    return (!units || check_units(verdict, units)) &&
           (!given ||
            define_on_demand(verdict, node_member(given, GLOBAL_ON_DEMAND), &rules, &index->throughput));
}

static bool define_vector_override(struct verdict *verdict, const struct table_definition *source,
                                   const struct node *list, struct table_definition *out)
{
    struct table_definition given = *out;
    if (!list->present) {
        out->vectors = source->vectors;
        out->vector_count = source->vector_count;
    }
    if (!list->present || !list->count) return check_vector_billing(verdict, out);
    given.attributes = source->attributes;
    given.attribute_count = source->attribute_count;
    if (!define_vectors(verdict, list, &given)) return false;
    for (uint32_t i = 0; i < given.vector_count; i++) {
        uint32_t place = 0;
        while (place < source->vector_count && !vectors_are_alike(&source->vectors[place], &given.vectors[i])) place++;
        if (place == source->vector_count)
            return reject(verdict,
                          "Index %.*s does not match a secondary index that existed in the source table and cannot "
                          "be created during the restore operation",
                          SLICE_ARG(given.vectors[i].index.name));
    }
    out->vectors = given.vectors;
    out->vector_count = given.vector_count;
    return true;
}

/* Attributes that only indexes had which are left out are not defined any more. */
static void keep_used_attributes(struct arena *arena, const struct table_definition *source,
                                 struct table_definition *out)
{
    out->attributes = arena_array(arena, struct key_attribute, source->attribute_count);
    for (uint32_t i = 0; i < source->attribute_count; i++) {
        struct slice name = source->attributes[i].name;
        bool is_used = definition_uses(out, name);
        for (uint32_t k = 0; k < out->vector_count && !is_used; k++) {
            const struct vector_definition *vectors = &out->vectors[k];
            for (uint32_t j = 0; j < vectors->index.hash_count; j++)
                is_used = is_used || slice_equal(vectors->index.hash[j], name);
            for (uint32_t j = 0; j < vectors->filter_count; j++)
                is_used = is_used || slice_equal(vectors->filters[j], name);
        }
        if (is_used) out->attributes[out->attribute_count++] = source->attributes[i];
    }
}

static bool define_table(struct verdict *verdict, const struct node *input, struct table_definition *source,
                         struct table_definition *out)
{
    out->hash = source->hash;
    out->range = source->range;
    out->on_demand = source->on_demand;
    out->throughput = source->throughput;
    out->encrypted = source->encrypted;
    out->kms_key = source->kms_key;
    out->indexes = arena_array(verdict->arena, struct index_definition, source->index_count + 1);
    if (!define_billing(verdict, input, out) ||
        !take_indexes(verdict, source, node_member(input, RESTORE_LOCAL), false, out) ||
        !take_indexes(verdict, source, node_member(input, RESTORE_GLOBAL), true, out) ||
        !define_vector_override(verdict, source, node_member(input, RESTORE_VECTORS), out))
        return false;
    for (uint32_t i = 0; i < out->index_count; i++) {
        struct index_definition *index = &out->indexes[i];
        index->number = 0;
        index->status = INDEX_ACTIVE;
        index->throughput.warm_read = index->throughput.warm_write = -1;
        if (index->global && !define_index_units(verdict, input, out, index)) return false;
    }
    for (uint32_t i = 0; i < out->vector_count; i++) {
        out->vectors[i].index.number = 0;
        out->vectors[i].index.status = INDEX_ACTIVE;
    }
    keep_used_attributes(verdict->arena, source, out);
    const struct node *sse = node_member(input, RESTORE_SSE);
    if (sse->present) {
        out->encrypted = false;
        out->kms_key = SLICE_NONE;
    }
    return define_encryption(verdict, sse, out);
}

/* ---- the commit ---- */

static bool target_is_free(struct restore *restore, struct batch *batch)
{
    struct slice name = restore->definition.name;
    const struct table *table = engine_table_in_batch(batch, name);
    struct map restoring = table ? setting_map(&table->definition, RESTORING) : (struct map){0};
    if (restoring.count) {
        struct buf arn = {0};
        struct slice source = map_text(&restoring, "table"), backup = map_text(&restoring, "backup");
        if (backup.len)
            put_backup_arn(&arn, restore->api, source, backup);
        else
            put_table_arn(&arn, restore->api, source);
        reject_as(&restore->verdict, "TableInUseException",
                  "Table: %.*s is already being restored from backup: %.*s", SLICE_ARG(name),
                  SLICE_ARG(buf_view(&arn)));
        buf_free(&arn);
        return false;
    }
    return !table || reject_as(&restore->verdict, "TableAlreadyExistsException", "Table already exists: %.*s",
                               SLICE_ARG(name));
}

static bool hold_backup(struct restore *restore, struct batch *batch)
{
    struct backup_note backup;
    struct verdict *verdict = &restore->verdict;
    if (!backup_note_in_batch(batch, verdict->arena, restore->job.backup, &backup))
        return reject_as(verdict, "BackupNotFoundException", "Backup not found: %.*s", SLICE_ARG(restore->arn));
    if (backup.restore.len)
        return reject_as(verdict, "BackupInUseException",
                         "Backup is being used to restore another table: %.*s", SLICE_ARG(restore->arn));
    backup.restore = restore->job.id;
    return backup_note_put(batch, verdict->arena, &backup);
}

/* Whatever rejects it comes before anything is written. */
static void restore_apply(struct commit *commit, struct batch *batch)
{
    struct restore *restore = call_of_commit(commit)->state;
    struct verdict *verdict = &restore->verdict;
    struct api_job *job = &restore->job;
    struct engine *engine = restore->api->engine;
    if (!target_is_free(restore, batch)) return;
    if (background_count_of(engine, verdict->arena, API_RESTORE) >= LIMIT_RESTORES) {
        reject_as(verdict, "LimitExceededException", "Only %d restore operations are allowed at a time",
                  LIMIT_RESTORES);
        return;
    }
    if (restore->arn.len && !hold_backup(restore, batch)) return;
    enum table_change_result made = engine_table_create(batch, &restore->definition);
    if (made == TABLE_CHANGED && api_job_put(batch, verdict->arena, job)) return;
    if (made == TABLE_CHANGED) engine_table_drop(batch, restore->definition.name);
    if (restore->arn.len) api_restore_done(batch, verdict->arena, job, false);
    reject_as(verdict, "LimitExceededException", "There are too many tables");
}

void api_restore_done(struct batch *batch, struct arena *arena, const struct api_job *job, bool is_filled)
{
    struct backup_note backup;
    const struct table *table = engine_table_in_batch(batch, job->table);
    const struct value *own = table ? map_find(&table->definition.settings, SLICE(API_IMPORTING)) : NULL;
    if (own && slice_equal(own->bytes, job->id)) {
        struct table_definition *definition = table_definition_copy(arena, &table->definition);
        setting_remove(arena, definition, API_IMPORTING);
        setting_remove(arena, definition, RESTORING);
        if (is_filled)
            engine_table_replace(batch, definition);
        else
            engine_table_drop(batch, job->table);
    }
    if (!job->backup.len || !backup_note_in_batch(batch, arena, job->backup, &backup) ||
        !slice_equal(backup.restore, job->id))
        return;
    backup.restore = SLICE_NONE;
    backup_note_put(batch, arena, &backup);
}

/* The source is its own copy, of which this may take things. */
static void restore_submit(struct api_call *call, const struct node *input, struct restore *restore,
                           struct table_definition *source)
{
    struct arena *arena = call->arena;
    struct api_job *job = &restore->job;
    struct table_definition *definition = &restore->definition;
    struct map restoring = {0};
    struct buf encoded = {0};
    restore->verdict.arena = arena;
    restore->api = call->api;
    definition->name = node_member(input, RESTORE_TARGET)->text;
    definition->created_ms = job->start_ms = engine_now_ms(call->api->engine);
    if (!define_table(&restore->verdict, input, source, definition)) {
        verdict_tell(call, &restore->verdict);
        return;
    }
    definition->id = engine_new_id(call->api->engine, arena);
    job->kind = API_RESTORE;
    job->id = arena_printf(arena, "0%013lld-%.8s", (long long)job->start_ms,
                           engine_new_id(call->api->engine, arena).data);
    job->status = SLICE("IN_PROGRESS");
    job->table = definition->name;
    job->table_id = definition->id;
    job->source = source->name;
    job->source_id = source->id;
    if (job->backup.len) map_put(arena, &restoring, SLICE("backup"), text_value(job->backup));
    map_put(arena, &restoring, SLICE("table"), text_value(source->name));
    map_put(arena, &restoring, SLICE("time_ms"), integer_value(arena, job->restore_ms));
    setting_put(arena, definition, RESTORING, map_value(restoring));
    setting_put(arena, definition, API_IMPORTING, text_value(job->id));
    table_definition_encode(&encoded, definition);
    job->definition = arena_take(arena, &encoded);
    call->state = restore;
    call->commit.apply = restore_apply;
    call->is_write = true;
}

static void restore_finish(struct api_call *call)
{
    const struct restore *restore = call->state;
    if (!verdict_tell(call, &restore->verdict)) return;
    buf_text(call->reply, "{\"TableDescription\":");
    table_describe(call->reply, &(struct description){.api = call->api,
                                                      .definition = &restore->definition,
                                                      .status = "CREATING",
                                                      .now_ms = restore->definition.created_ms});
    buf_byte(call->reply, '}');
}

/* ---- RestoreTableFromBackup ---- */

static void from_backup_begin(struct api_call *call, const struct node *input)
{
    struct restore *restore = arena_new(call->arena, struct restore);
    struct backup_note backup;
    struct table_definition source;
    restore->arn = node_member(input, RESTORE_BACKUP)->text;
    if (!backup_by_arn(call, restore->arn, &backup) || !backups_are_offered(call)) return;
    if (!table_definition_decode(call->arena, backup.definition, &source)) {
        refuse(call, "InternalServerError", "Internal server error");
        return;
    }
    restore->job.backup = backup.id;
    restore->job.restore_ms = backup.created_ms;
    restore_submit(call, input, restore, &source);
}

const struct operation operation_RestoreTableFromBackup = {
    .name = TEXT("RestoreTableFromBackup"),
    .input = &backup_shape,
    .begin = from_backup_begin,
    .finish = restore_finish,
};

/* ---- RestoreTableToPointInTime ---- */

static bool source_name(struct api_call *call, const struct node *input, struct slice *out)
{
    const struct node *arn = node_member(input, RESTORE_SOURCE_ARN), *name = node_member(input, RESTORE_SOURCE_NAME);
    struct resource resource;
    if (arn->present && name->present)
        return invalid(call, "Must provide exactly one of: sourceTableArn, sourceTableName");
    *out = name->text;
    if (name->present) return true;
    if (!arn->present)
        return invalid(call, "The parameter 'TableName' is required but was not present in the request");
    switch (resource_parse(call->api, arn->text, &resource)) {
    case RESOURCE_FINE: break;
    case RESOURCE_ELSEWHERE:
        if (!node_member(input, RESTORE_SSE)->present)
            return invalid(call, "sseSpecificationOverride must be provided for cross-region restores");
        return refuse_missing_table(call, resource.table_name);
    case RESOURCE_OTHER_ACCOUNT:
        return invalid(call, "This action is only supported by accounts that match the resource owner’s account.");
    case RESOURCE_NO_ARN:
    case RESOURCE_FOREIGN:
    case RESOURCE_INDEX: return invalid(call, "sourceTableArn is not a valid ARN");
    }
    *out = resource.table_name;
    return !resource.stream_label.len || invalid(call, "sourceTableArn is not a valid ARN");
}

static bool check_times(struct api_call *call, const struct node *input)
{
    bool is_latest = node_is_true(node_member(input, RESTORE_LATEST)),
         is_dated = node_member(input, RESTORE_TIME)->present;
    if (is_latest && is_dated)
        return invalid(call, "Invalid Request: Both RestoreDateTime and UseLatestRestorableTime cannot be set for "
                             "point-in-time restore request. Please specify only one of them.");
    return is_latest || is_dated ||
           invalid(call, "Invalid Request: Either one of RestoreDateTime or UseLatestRestorableTime must be "
                         "specified, but not both");
}

static void put_moment(struct buf *out, int64_t time_ms)
{
    put_stream_label(out, time_ms);
    buf_byte(out, 'Z');
}

/* Clients send whole seconds, so the first second counts as a whole. */
static bool find_moment(struct api_call *call, const struct node *input, const struct table_definition *source,
                        int64_t *out)
{
    struct recovery recovery = table_recovery(call->api, source);
    const struct node *time = node_member(input, RESTORE_TIME);
    if (!recovery.is_on)
        return refuse(call, "PointInTimeRecoveryUnavailableException",
                      "Point in time recovery is not enabled for table '%.*s'", SLICE_ARG(source->name));
    int64_t at_ms = recovery.until_ms;
    if (time->present) at_ms = fabs(time->real) < 1e11 ? (int64_t)(time->real * 1000) : INT64_C(99999999999999);
    *out = at_ms < recovery.from_ms ? recovery.from_ms : at_ms;
    if (at_ms >= recovery.from_ms - recovery.from_ms % 1000 && at_ms <= recovery.until_ms) return true;
    struct buf at = {0}, from = {0}, until = {0};
    put_moment(&at, at_ms);
    put_moment(&from, recovery.from_ms);
    put_moment(&until, recovery.until_ms);
    refuse(call, "InvalidRestoreTimeException",
           "RestoreDateTime '%.*s' must be within EarliestRestorableDateTime '%.*s' and LatestRestorableDateTime "
           "'%.*s'",
           SLICE_ARG(buf_view(&at)), SLICE_ARG(buf_view(&from)), SLICE_ARG(buf_view(&until)));
    buf_free(&at);
    buf_free(&from);
    buf_free(&until);
    return false;
}

static void to_moment_begin(struct api_call *call, const struct node *input)
{
    struct restore *restore = arena_new(call->arena, struct restore);
    struct slice name;
    if (!check_times(call, input) || !source_name(call, input, &name) || !backups_are_offered(call)) return;
    struct table *table = find_table_to_back_up(call, name);
    if (!table || !find_moment(call, input, &table->definition, &restore->job.restore_ms)) return;
    restore_submit(call, input, restore, table_definition_copy(call->arena, &table->definition));
}

const struct operation operation_RestoreTableToPointInTime = {
    .name = TEXT("RestoreTableToPointInTime"),
    .input = &moment_shape,
    .begin = to_moment_begin,
    .finish = restore_finish,
};
