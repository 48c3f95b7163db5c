/* DescribeContinuousBackups and UpdateContinuousBackups: whether a table can be brought back to any moment.
 *
 * The setting "backups" is {since_ms, days} while it can. The log is kept before the setting is (api.h, api_backups),
 * so that the moment of the reply is one to go back to. Unlike the service, which is five minutes behind, everything up
 * to now can be restored, and that is what is shown. */
#include "api/backups.h"

#define DAYS_MAX 35

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

struct recovery table_recovery(const struct api *api, const struct table_definition *definition)
{
    const struct api_backups *keeper = api->backups;
    struct map backups = setting_map(definition, "backups");
    int64_t now_ms = engine_now_ms(api->engine), days = map_integer(&backups, "days"),
            kept_ms = keeper ? keeper->kept_from(keeper->self) : INT64_MAX;
    struct recovery recovery = {.is_on = backups.count > 0, .days = days, .until_ms = now_ms};
    recovery.from_ms = later(later(map_integer(&backups, "since_ms"), now_ms - days * DAY_MS), kept_ms);
    if (recovery.from_ms > now_ms) recovery.from_ms = now_ms;
    return recovery;
}

static void put_backups(struct api_call *call, const struct table_definition *definition)
{
    struct recovery recovery = table_recovery(call->api, definition);
    struct buf *out = call->reply;
    buf_printf(out,
               "{\"ContinuousBackupsDescription\":{\"ContinuousBackupsStatus\":\"ENABLED\","
               "\"PointInTimeRecoveryDescription\":{\"PointInTimeRecoveryStatus\":\"%s\"",
               recovery.is_on ? "ENABLED" : "DISABLED");
    if (recovery.is_on) {
        put_int(out, "RecoveryPeriodInDays", recovery.days);
        put_time(out, "EarliestRestorableDateTime", recovery.from_ms);
        put_time(out, "LatestRestorableDateTime", recovery.until_ms);
    }
    buf_text(out, "}}}");
}

int64_t api_recovery_days(struct engine *engine)
{
    struct slice names[LIMIT_LIST_TABLES], after = SLICE_NONE;
    struct arena arena = {0};
    int64_t most = 0;
    for (bool more = true; more;) {
        uint32_t count = engine_table_names(engine, &arena, after, LIMIT_LIST_TABLES, names, &more);
        for (uint32_t i = 0; i < count; i++) {
            struct table *table = engine_table_find(engine, names[i]);
            if (!table) continue;
            struct map backups = setting_map(&table->definition, "backups");
            most = later(most, map_integer(&backups, "days"));
            engine_table_release(table);
        }
        if (count) after = names[count - 1];
    }
    arena_free(&arena);
    return most;
}

void api_deletions_finish(struct api *api)
{
    struct slice names[LIMIT_LIST_TABLES], after = SLICE_NONE;
    struct arena arena = {0};
    for (bool more = true; more;) {
        uint32_t count = engine_table_names(api->engine, &arena, after, LIMIT_LIST_TABLES, names, &more);
        for (uint32_t i = 0; i < count; i++) {
            struct table *table = engine_table_find(api->engine, names[i]);
            bool is_deleting = table && map_find(&table->definition.settings, SLICE(API_DELETING));
            if (table) engine_table_release(table);
            if (!is_deleting) continue;
            struct buf reply = {0};
            struct api_call call = {.api = api,
                                    .arena = &arena,
                                    .reply = &reply,
                                    .operation = &operation_DeleteTable,
                                    .body = arena_printf(&arena, "{\"TableName\":\"%.*s\"}", SLICE_ARG(names[i])),
                                    .is_transfer = true};
            api_run(&call);
            buf_free(&reply);
        }
        if (count) after = names[count - 1];
    }
    arena_free(&arena);
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

/* On: the log is kept before anybody is told so. Off: it is let go behind the commit. */
static void update_work(struct api_call *call)
{
    struct table_change *change = call->state;
    const struct api_backups *backups = call->api->backups;
    const struct node *specification = node_member(&change->input, UPDATE_SPECIFICATION),
                      *days = node_member(specification, SPECIFICATION_DAYS);
    char error[600] = "";
    bool is_on = node_member(specification, SPECIFICATION_ENABLED)->truth;
    if (is_on && !backups->keep(backups->self, days->present ? days->integer : DAYS_MAX, error, sizeof error)) {
        reject_as(&change->verdict, "ContinuousBackupsUnavailableException", "The log cannot be kept: %s", error);
        return;
    }
    change->now_ms = engine_now_ms(call->api->engine);
    engine_commit(call->api->engine, &call->commit);
    if (!is_on || change->verdict.error) backups->keep(backups->self, 0, error, sizeof error);
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
    if (!backups_are_offered(call)) return;
    change->apply = apply;
    change->missing = table_is_missing;
    if (!table_name_resolve(call, node_member(input, UPDATE_NAME), &change->table_name) ||
        !find_table_to_back_up(call, change->table_name))
        return;
    table_change_submit(call, input, change);
    call->is_write = false; /* the work commits it */
    call->work = update_work;
}

static void update_finish(struct api_call *call)
{
    const struct table_change *change = table_change_finish(call);
    if (change) put_backups(call, change->definition);
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
    struct table *table = find_table_to_back_up(call, name);
    if (table) put_backups(call, &table->definition);
}

const struct operation operation_DescribeContinuousBackups = {
    .name = TEXT("DescribeContinuousBackups"),
    .input = &describe_shape,
    .begin = describe_begin,
};
