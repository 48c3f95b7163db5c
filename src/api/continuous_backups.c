/* DescribeContinuousBackups and UpdateContinuousBackups: whether a table is to be restorable to any point in
 * time. The wish is kept and shown; there is no restoring yet.
 *
 * The setting "backups" is {since_ms, days} while it is wished for. */
#include "api/settings.h"

#define DAYS_MAX    35
#define LATENESS_MS (5 * 60 * INT64_C(1000)) /* the service can restore up to five minutes ago */

enum { UPDATE_NAME, UPDATE_SPECIFICATION };
enum { SPECIFICATION_ENABLED, SPECIFICATION_DAYS };

static const struct shape shape_days = {
    .kind = SHAPE_INT, .has_min = true, .min = 1, .has_max = true, .max = DAYS_MAX};
static const struct shape_member specification_members[] = {
    [SPECIFICATION_ENABLED] = REQUIRED("PointInTimeRecoveryEnabled", shape_bool),
    [SPECIFICATION_DAYS] = MEMBER("RecoveryPeriodInDays", shape_days),
};
static const struct shape shape_specification = STRUCT_SHAPE("PointInTimeRecoverySpecification",
                                                             specification_members);
static const struct shape_member update_members[] = {
    [UPDATE_NAME] = REQUIRED("TableName", shape_table_name_strict),
    [UPDATE_SPECIFICATION] = REQUIRED("PointInTimeRecoverySpecification", shape_specification),
};
static const struct shape update_shape = STRUCT_SHAPE("UpdateContinuousBackupsInput", update_members);

static const struct shape_member describe_members[] = {REQUIRED("TableName", shape_table_name_strict)};
static const struct shape describe_shape = STRUCT_SHAPE("DescribeContinuousBackupsInput", describe_members);

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void put_backups(struct buf *out, const struct table_definition *definition, int64_t now_ms)
{
    struct map backups = setting_map(definition, "backups");
    int64_t since_ms = map_integer(&backups, "since_ms"), days = map_integer(&backups, "days");
    buf_printf(out,
               "{\"ContinuousBackupsDescription\":{\"ContinuousBackupsStatus\":\"ENABLED\","
               "\"PointInTimeRecoveryDescription\":{\"PointInTimeRecoveryStatus\":\"%s\"",
               backups.count ? "ENABLED" : "DISABLED");
    if (backups.count) {
        put_int(out, "RecoveryPeriodInDays", days);
        put_time(out, "EarliestRestorableDateTime", later(since_ms, now_ms - days * DAY_MS));
        put_time(out, "LatestRestorableDateTime", later(since_ms, now_ms - LATENESS_MS));
    }
    buf_text(out, "}}}");
}

/* ---- UpdateContinuousBackups ---- */

static void table_is_missing(struct table_change *change)
{
    reject_as(&change->verdict, "TableNotFoundException", "Table not found: %.*s",
              SLICE_ARG(change->table_name));
}

/* Switched on again while on, only the days change; switched off, even they are forgotten. */
static bool apply(struct table_change *change)
{
    const struct node *specification = node_member(&change->input, UPDATE_SPECIFICATION),
                      *days = node_member(specification, SPECIFICATION_DAYS);
    struct arena *arena = change->verdict.arena;
    struct map backups = setting_map(change->definition, "backups");
    if (!node_member(specification, SPECIFICATION_ENABLED)->truth) {
        if (backups.count) setting_remove(arena, change->definition, "backups");
        return backups.count > 0;
    }
    if (!backups.count) {
        map_put(arena, &backups, SLICE("since_ms"), integer_value(arena, change->now_ms));
        map_put(arena, &backups, SLICE("days"), integer_value(arena, DAYS_MAX));
    }
    if (days->present) map_put(arena, &backups, SLICE("days"), integer_value(arena, days->integer));
    setting_put(arena, change->definition, "backups", map_value(backups));
    return true;
}

static void update_begin(struct api_call *call, const struct node *input)
{
    const struct node *specification = node_member(input, UPDATE_SPECIFICATION);
    struct table_change *change = arena_new(call->arena, struct table_change);
    if (!node_member(specification, SPECIFICATION_ENABLED)->truth &&
        node_member(specification, SPECIFICATION_DAYS)->present) {
        invalid(call, "Invalid Request: Cannot specify RecoveryPeriodInDays when disabling point-in-time "
                      "recovery.");
        return;
    }
    change->apply = apply;
    change->missing = table_is_missing;
    table_change_submit_named(call, input, node_member(input, UPDATE_NAME), change);
}

static void update_finish(struct api_call *call)
{
    const struct table_change *change = table_change_finish(call);
    if (change) put_backups(call->reply, change->definition, change->now_ms);
}

const struct operation operation_UpdateContinuousBackups = {
    .name = TEXT("UpdateContinuousBackups"),
    .input = &update_shape,
    .begin = update_begin,
    .finish = update_finish,
};

/* ---- DescribeContinuousBackups ---- */

static void describe_begin(struct api_call *call, const struct node *input)
{
    struct slice name;
    if (!table_name_resolve(call, node_member(input, 0), &name)) return;
    struct table *table = engine_table_find(call->api->engine, name);
    if (!table) {
        refuse(call, "TableNotFoundException", "Table not found: %.*s", SLICE_ARG(name));
        return;
    }
    put_backups(call->reply, &table->definition, engine_now_ms(call->api->engine));
    engine_table_release(table);
}

const struct operation operation_DescribeContinuousBackups = {
    .name = TEXT("DescribeContinuousBackups"),
    .input = &describe_shape,
    .begin = describe_begin,
};
