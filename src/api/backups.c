/* CreateBackup, DescribeBackup, ListBackups and DeleteBackup.
 *
 * A backup is a copy of the whole database, made of links (api.h, api_backups), and a note that tells which table of it
 * is meant. The copy is made first: it has what was acknowledged before the call and nothing that is written behind its
 * reply, and one without a note is nobody's. The note has the table's definition and counts as the copy has them. */
#include "api/backups.h"

#include "base/fail.h"
#include "base/log.h"

/* ---- notes ---- */

bool backup_note_put(struct batch *batch, struct arena *arena, const struct backup_note *backup)
{
    struct map fields = {0};
#define X(member)                                                                                            \
    if (backup->member.len) map_put(arena, &fields, SLICE(#member), text_value(backup->member));
    BACKUP_TEXTS(X)
#undef X
#define X(member)                                                                                            \
    if (backup->member) map_put(arena, &fields, SLICE(#member), integer_value(arena, backup->member));
    BACKUP_NUMBERS(X)
#undef X
    map_put(arena, &fields, SLICE("definition"),
            (struct value){.type = VALUE_B, .bytes = backup->definition});
    return engine_note_put(batch, arena, BACKUP_NOTE, backup->id, &fields);
}

static void note_read(const struct map *fields, struct slice id, struct backup_note *out)
{
    *out = (struct backup_note){.id = id};
#define X(member) out->member = map_text(fields, #member);
    BACKUP_TEXTS(X)
#undef X
#define X(member) out->member = map_integer(fields, #member);
    BACKUP_NUMBERS(X)
#undef X
    const struct value *definition = map_find(fields, SLICE("definition"));
    if (definition && definition->type == VALUE_B) out->definition = definition->bytes;
}

bool backup_note_in_batch(struct batch *batch, struct arena *arena, struct slice id, struct backup_note *out)
{
    struct map fields;
    if (!engine_note_in_batch(batch, arena, BACKUP_NOTE, id, &fields)) return false;
    note_read(&fields, id, out);
    return true;
}

bool api_backup_exists(struct engine *engine, struct arena *arena, struct slice id)
{
    struct map fields;
    return engine_note_find(engine, arena, BACKUP_NOTE, id, &fields);
}

void put_backup_arn(struct buf *out, const struct api *api, struct slice table, struct slice id)
{
    put_table_arn(out, api, table);
    buf_printf(out, "/backup/%.*s", SLICE_ARG(id));
}

/* "us-east-1": as the regions of the partition aws are named; and whatever region this server was given. */
static bool is_region(const struct api *api, struct slice text)
{
    static const char *const places[] = {"af", "ap", "ca", "eu", "il", "me", "mx", "sa", "us"},
                            *const directions[] = {"central",   "north",     "south",     "east",     "west",
                                                   "northeast", "northwest", "southeast", "southwest"};
    struct slice rest = text, place = slice_cut(&rest, '-'), direction = slice_cut(&rest, '-');
    bool has_place = false, has_direction = false, has_number = rest.len == 1 && rest.data[0] >= '1' &&
                                                               rest.data[0] <= '9';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        has_place |= slice_equal(place, slice_of(places[i]));
    for (size_t i = 0; i < sizeof directions / sizeof *directions; i++)
        has_direction |= slice_equal(direction, slice_of(directions[i]));
    return (has_place && has_direction && has_number) || slice_equal(text, api->region);
}

bool backup_by_arn(struct api_call *call, struct slice arn, struct backup_note *out)
{
    struct slice rest = arn, scheme = slice_cut(&rest, ':'), partition = slice_cut(&rest, ':'),
                 service = slice_cut(&rest, ':'), region = slice_cut(&rest, ':'), account = slice_cut(&rest, ':');
    struct slice type = slice_cut(&rest, '/'), table = slice_cut(&rest, '/'), kind = slice_cut(&rest, '/');
    struct map fields;
    if (!slice_equal(scheme, SLICE("arn")) || !slice_equal(type, SLICE("table")) || !is_plain_name(table) ||
        !slice_equal(kind, SLICE("backup")) || !is_plain_name(rest))
        return invalid(call, "Invalid Backup ARN");
    if (!slice_equal(partition, SLICE("aws")) || !slice_equal(service, SLICE("dynamodb")) ||
        !is_region(call->api, region))
        return invalid(call, "Invalid Request: BackupArn is not valid");
    if (!slice_equal(account, call->api->account))
        return refuse(call, "AccessDeniedException", "Access is denied");
    if (!slice_equal(region, call->api->region) ||
        !engine_note_find(call->api->engine, call->arena, BACKUP_NOTE, rest, &fields))
        return refuse(call, "BackupNotFoundException", "Backup not found: %.*s", SLICE_ARG(arn));
    note_read(&fields, rest, out);
    return slice_equal(out->table, table) ||
           refuse(call, "BackupNotFoundException", "Backup not found: %.*s", SLICE_ARG(arn));
}

/* ---- showing ---- */

static void put_details(struct buf *out, const struct api *api, const struct backup_note *backup, const char *status)
{
    buf_text(out, "{\"BackupArn\":\"");
    put_backup_arn(out, api, backup->table, backup->id);
    buf_byte(out, '"');
    put_text(out, "BackupName", backup->name);
    put_int(out, "BackupSizeBytes", backup->bytes);
    buf_printf(out, ",\"BackupStatus\":\"%s\"", status);
    put_text(out, "BackupType", backup->type);
    put_time(out, "BackupCreationDateTime", backup->created_ms);
    if (backup->expires_ms) put_time(out, "BackupExpiryDateTime", backup->expires_ms);
}

static void put_source(struct buf *out, const struct api *api, const struct backup_note *backup,
                       const struct table_definition *definition)
{
    buf_text(out, "{\"TableName\":");
    json_put_string(out, definition->name);
    put_text(out, "TableId", definition->id);
    buf_text(out, ",\"TableArn\":\"");
    put_table_arn(out, api, definition->name);
    buf_byte(out, '"');
    put_int(out, "TableSizeBytes", backup->bytes);
    put_key_schema(out, definition);
    put_time(out, "TableCreationDateTime", definition->created_ms);
    put_units_only(out, &definition->throughput);
    put_on_demand(out, &definition->throughput);
    put_int(out, "ItemCount", backup->items);
    buf_printf(out, ",\"BillingMode\":\"%s\"}", definition->on_demand ? "PAY_PER_REQUEST" : "PROVISIONED");
}

static void put_indexes(struct buf *out, const struct table_definition *definition, bool global)
{
    const char *head = global ? ",\"GlobalSecondaryIndexes\":[" : ",\"LocalSecondaryIndexes\":[";
    uint32_t count = 0;
    for (uint32_t i = 0; i < definition->index_count; i++) {
        const struct index_definition *index = &definition->indexes[i];
        if (index->global != global) continue;
        buf_slice(out, slice_of(count++ ? "," : head));
        buf_text(out, "{\"IndexName\":");
        json_put_string(out, index->name);
        put_index_schema(out, index);
        put_projection(out, index);
        if (global) put_units_only(out, &index->throughput);
        if (global) put_on_demand(out, &index->throughput);
        buf_byte(out, '}');
    }
    if (count) buf_byte(out, ']');
}

/* Each member begins with a comma, and there may be none. */
static void put_features(struct buf *out, const struct api *api, const struct table_definition *definition)
{
    struct buf members = {0};
    put_indexes(&members, definition, false);
    put_indexes(&members, definition, true);
    put_vector_definitions(&members, definition);
    if (definition->stream != STREAM_OFF)
        buf_printf(&members, ",\"StreamDescription\":{\"StreamEnabled\":true,\"StreamViewType\":\"%s\"}",
                   stream_view_name(definition->stream));
    if (definition->ttl_attribute.len) {
        buf_text(&members, ",\"TimeToLiveDescription\":{\"TimeToLiveStatus\":\"ENABLED\"");
        put_text(&members, "AttributeName", definition->ttl_attribute);
        buf_byte(&members, '}');
    }
    put_encryption(&members, &(struct description){.api = api, .definition = definition});
    buf_byte(out, '{');
    if (members.len) buf_slice(out, slice_from(buf_view(&members), 1));
    buf_byte(out, '}');
    buf_free(&members);
}

static void put_description(struct api_call *call, const struct backup_note *backup, const char *status)
{
    struct buf *out = call->reply;
    struct table_definition definition;
    if (!table_definition_decode(call->arena, backup->definition, &definition)) {
        refuse(call, "InternalServerError", "Internal server error");
        return;
    }
    buf_text(out, "{\"BackupDescription\":{\"BackupDetails\":");
    put_details(out, call->api, backup, status);
    buf_text(out, "},\"SourceTableDetails\":");
    put_source(out, call->api, backup, &definition);
    buf_text(out, ",\"SourceTableFeatureDetails\":");
    if (slice_equal(backup->type, SLICE("SYSTEM")))
        buf_text(out, "{}");
    else
        put_features(out, call->api, &definition);
    buf_text(out, "}}");
}

/* ---- CreateBackup ---- */

bool refuse_missing_table(struct api_call *call, struct slice name)
{
    return refuse(call, "TableNotFoundException", "Table not found: %.*s", SLICE_ARG(name));
}

struct table *find_table_to_back_up(struct api_call *call, struct slice name)
{
    struct table *table = look_up_table(call, name);
    if (!table) refuse_missing_table(call, name);
    return table;
}

bool backups_are_offered(struct api_call *call)
{
    if (call->api->read_only)
        return refuse(call, "AccessDeniedException", "the data was opened for reading only, so %.*s is refused",
                      SLICE_ARG(call->operation->name));
    return call->api->backups || refuse(call, "UnsupportedOperationException", "%.*s is not offered here.",
                                        SLICE_ARG(call->operation->name));
}

enum { CREATE_TABLE, CREATE_NAME };
static const struct shape shape_backup_name = {NAME_RULES(3)};
static const struct shape_member create_members[] = {
    [CREATE_TABLE] = REQUIRED("TableName", shape_table_name_strict),
    [CREATE_NAME] = REQUIRED("BackupName", shape_backup_name),
};
static const struct shape create_shape = STRUCT_SHAPE("CreateBackupInput", create_members);

struct backup_creation {
    struct commit commit;
    struct arena *arena;
    struct backup_note backup;
    struct verdict verdict;
};

static void note_apply(struct commit *commit, struct batch *batch)
{
    struct backup_creation *creation = (struct backup_creation *)(void *)commit;
    if (!backup_note_put(batch, creation->arena, &creation->backup))
        reject_as(&creation->verdict, "LimitExceededException", "There are too many tables to note the backup");
}

/* The table as the copy has it, whatever became of it since. */
static bool copy_table(struct api_call *call, struct backup_creation *creation)
{
    const struct api_backups *backups = call->api->backups;
    struct backup_note *backup = &creation->backup;
    char error[600] = "";
    struct buf encoded = {0};
    struct table *table = backups->take(backups->self, backup->id, backup->table, error, sizeof error);
    if (!table && error[0])
        return reject_as(&creation->verdict, "LimitExceededException", "The backup cannot be made: %s", error);
    if (!table)
        return reject_as(&creation->verdict, "TableNotFoundException", "Table not found: %.*s",
                         SLICE_ARG(backup->table));
    table_definition_encode(&encoded, &table->definition);
    backup->definition = arena_take(call->arena, &encoded);
    backup->items = atomic_load(&table->counts->items);
    backup->bytes = atomic_load(&table->counts->bytes);
    engine_table_release(table);
    return true;
}

#define SYSTEM_MS (35 * DAY_MS)

void system_backup_take(struct api_call *call, struct slice table, struct backup_note *out)
{
    struct backup_creation creation = {.verdict.arena = call->arena};
    int64_t now_ms = engine_now_ms(call->api->engine);
    api_backups_expire(call->api);
    creation.backup = (struct backup_note){
        .id = arena_printf(call->arena, "0%013lld-00000000", (long long)now_ms),
        .name = arena_printf(call->arena, "%.*s$DeletedTableBackup", SLICE_ARG(table)),
        .table = table,
        .type = SLICE("SYSTEM"),
        .created_ms = now_ms,
        .expires_ms = now_ms + SYSTEM_MS};
    *out = (struct backup_note){0};
    if (copy_table(call, &creation))
        *out = creation.backup;
    else
        log_line("the table %.*s is deleted without a backup: %.*s", SLICE_ARG(table),
                 SLICE_ARG(creation.verdict.message));
}

static void create_work(struct api_call *call)
{
    struct backup_creation *creation = call->state;
    api_backups_expire(call->api);
    if (!copy_table(call, creation)) return;
    engine_commit(call->api->engine, &creation->commit);
    call->commit.failed = creation->commit.failed;
}

static void create_begin(struct api_call *call, const struct node *input)
{
    struct backup_creation *creation = arena_new(call->arena, struct backup_creation);
    struct backup_note *backup = &creation->backup;
    if (!table_name_resolve(call, node_member(input, CREATE_TABLE), &backup->table) ||
        !backups_are_offered(call) || !find_table_to_back_up(call, backup->table))
        return;
    creation->commit.apply = note_apply;
    creation->arena = creation->verdict.arena = call->arena;
    backup->name = node_member(input, CREATE_NAME)->text;
    backup->type = SLICE("USER");
    backup->created_ms = engine_now_ms(call->api->engine);
    backup->id = arena_printf(call->arena, "0%013lld-%.8s", (long long)backup->created_ms,
                              engine_new_id(call->api->engine, call->arena).data);
    call->state = creation;
    call->work = create_work;
}

static void create_finish(struct api_call *call)
{
    const struct backup_creation *creation = call->state;
    if (!verdict_tell(call, &creation->verdict)) return;
    buf_text(call->reply, "{\"BackupDetails\":");
    put_details(call->reply, call->api, &creation->backup, "CREATING");
    buf_text(call->reply, "}}");
}

const struct operation operation_CreateBackup = {
    .name = TEXT("CreateBackup"),
    .input = &create_shape,
    .begin = create_begin,
    .finish = create_finish,
};

/* ---- DescribeBackup ---- */

static const struct shape_member arn_members[] = {REQUIRED("BackupArn", shape_job_arn)};
static const struct shape describe_shape = STRUCT_SHAPE("DescribeBackupInput", arn_members);
static const struct shape delete_shape = STRUCT_SHAPE("DeleteBackupInput", arn_members);

static void describe_begin(struct api_call *call, const struct node *input)
{
    struct backup_note backup;
    if (backup_by_arn(call, node_member(input, 0)->text, &backup)) put_description(call, &backup, "AVAILABLE");
}

const struct operation operation_DescribeBackup = {
    .name = TEXT("DescribeBackup"),
    .input = &describe_shape,
    .begin = describe_begin,
};

/* ---- DeleteBackup ---- */

struct backup_deletion {
    struct commit commit;
    struct slice arn;
    struct backup_note backup;
    struct verdict verdict;
};

static void delete_apply(struct commit *commit, struct batch *batch)
{
    struct backup_deletion *deletion = (struct backup_deletion *)(void *)commit;
    struct verdict *verdict = &deletion->verdict;
    if (!backup_note_in_batch(batch, verdict->arena, deletion->backup.id, &deletion->backup))
        reject_as(verdict, "BackupNotFoundException", "Backup not found: %.*s", SLICE_ARG(deletion->arn));
    else if (deletion->backup.restore.len)
        reject_as(verdict, "BackupInUseException", "Backup is being used to restore table: %.*s",
                  SLICE_ARG(deletion->arn));
    else
        engine_note_delete(batch, verdict->arena, BACKUP_NOTE, deletion->backup.id);
}

/* The note goes first: a copy that is left behind by a crash is swept away at the next start. */
static void delete_work(struct api_call *call)
{
    struct backup_deletion *deletion = call->state;
    const struct api_backups *backups = call->api->backups;
    engine_commit(call->api->engine, &deletion->commit);
    call->commit.failed = deletion->commit.failed;
    if (!deletion->verdict.error && !deletion->commit.failed) backups->drop(backups->self, deletion->backup.id);
}

static void delete_begin(struct api_call *call, const struct node *input)
{
    struct backup_deletion *deletion = arena_new(call->arena, struct backup_deletion);
    deletion->arn = node_member(input, 0)->text;
    if (!backup_by_arn(call, deletion->arn, &deletion->backup) || !backups_are_offered(call)) return;
    if (slice_equal(deletion->backup.type, SLICE("SYSTEM"))) {
        struct buf until = {0};
        put_stream_label(&until, deletion->backup.expires_ms);
        invalid(call,
                "Invalid Request: User is not allowed to delete the system backup with arn %.*s. It will "
                "automatically expire on %.*sZ",
                SLICE_ARG(deletion->arn), SLICE_ARG(buf_view(&until)));
        buf_free(&until);
        return;
    }
    deletion->commit.apply = delete_apply;
    deletion->verdict.arena = call->arena;
    call->state = deletion;
    call->work = delete_work;
}

static void delete_finish(struct api_call *call)
{
    const struct backup_deletion *deletion = call->state;
    if (verdict_tell(call, &deletion->verdict)) put_description(call, &deletion->backup, "DELETED");
}

const struct operation operation_DeleteBackup = {
    .name = TEXT("DeleteBackup"),
    .input = &delete_shape,
    .begin = delete_begin,
    .finish = delete_finish,
};

/* ---- those that expire ---- */

#define EXPIRED_AT_ONCE 100

struct expiring {
    struct commit commit;
    const struct api_backups *backups;
    struct arena arena;
    int64_t now_ms;
    struct slice ids[EXPIRED_AT_ONCE];
    uint32_t count;
};

static bool find_expired(void *context, struct slice id, const struct map *fields)
{
    struct expiring *expiring = context;
    int64_t expires_ms = map_integer(fields, "expires_ms");
    bool is_over = expires_ms && expires_ms <= expiring->now_ms;
    if (!map_text(fields, "restore").len && (is_over || !expiring->backups->has(expiring->backups->self, id)))
        expiring->ids[expiring->count++] = id;
    return expiring->count < EXPIRED_AT_ONCE;
}

static void expire_apply(struct commit *commit, struct batch *batch)
{
    struct expiring *expiring = (struct expiring *)(void *)commit;
    for (uint32_t i = 0; i < expiring->count; i++)
        engine_note_delete(batch, &expiring->arena, BACKUP_NOTE, expiring->ids[i]);
}

void api_backups_expire(struct api *api)
{
    struct expiring expiring = {.commit = {.apply = expire_apply},
                                .backups = api->backups,
                                .now_ms = engine_now_ms(api->engine)};
    engine_notes_after(api->engine, &expiring.arena, BACKUP_NOTE, SLICE_NONE, find_expired, &expiring);
    if (expiring.count) engine_commit(api->engine, &expiring.commit);
    for (uint32_t i = 0; i < expiring.count && !expiring.commit.failed; i++)
        api->backups->drop(api->backups->self, expiring.ids[i]);
    arena_free(&expiring.arena);
}

/* ---- ListBackups ---- */

enum { LIST_TABLE, LIST_LIMIT, LIST_LOWER, LIST_UPPER, LIST_START, LIST_TYPE };
#define LIST_MOST 100

static const char *const list_types[] = {"USER", "SYSTEM", "AWS_BACKUP", "ALL", NULL};
static const struct shape shape_list_type = ENUM_SHAPE(list_types);
static const struct shape shape_time = {.kind = SHAPE_DOUBLE};
static const struct shape shape_list_limit = {
    .kind = SHAPE_INT, .has_min = true, .min = 1, .has_max = true, .max = LIST_MOST};
static const struct shape_member list_members[] = {
    [LIST_TABLE] = MEMBER("TableName", shape_string),
    [LIST_LIMIT] = MEMBER("Limit", shape_list_limit),
    [LIST_LOWER] = MEMBER("TimeRangeLowerBound", shape_time),
    [LIST_UPPER] = MEMBER("TimeRangeUpperBound", shape_time),
    [LIST_START] = MEMBER("ExclusiveStartBackupArn", shape_job_arn),
    [LIST_TYPE] = MEMBER("BackupType", shape_list_type),
};
static const struct shape list_shape = STRUCT_SHAPE("ListBackupsInput", list_members);

struct listing {
    struct api_call *call;
    struct slice table, type; /* table empty: of all; type: "ALL", or one */
    int64_t lower_ms, upper_ms, limit, count;
    struct backup_note last;
    bool more;
};

static bool list_one(void *context, struct slice id, const struct map *fields)
{
    struct listing *listing = context;
    struct buf *out = listing->call->reply;
    struct backup_note backup;
    struct table_definition definition;
    note_read(fields, id, &backup);
    if ((listing->table.len && !slice_equal(backup.table, listing->table)) ||
        (!slice_equal(listing->type, SLICE("ALL")) && !slice_equal(backup.type, listing->type)) ||
        backup.created_ms < listing->lower_ms || backup.created_ms >= listing->upper_ms ||
        !table_definition_decode(listing->call->arena, backup.definition, &definition))
        return true;
    listing->more = listing->count == listing->limit;
    if (listing->more) return false;
    if (listing->count++) buf_byte(out, ',');
    put_details(out, listing->call->api, &backup, "AVAILABLE");
    put_text(out, "TableName", backup.table);
    put_text(out, "TableId", definition.id);
    buf_text(out, ",\"TableArn\":\"");
    put_table_arn(out, listing->call->api, backup.table);
    buf_text(out, "\"}");
    listing->last = backup;
    return true;
}

/* A cursor: its backup need not be there. */
static bool read_start(struct api_call *call, const struct node *start, struct slice *id)
{
    struct slice rest = start->text;
    *id = SLICE_NONE;
    if (!start->present) return true;
    for (int i = 0; i < 3; i++) slice_cut(&rest, ':');
    struct slice region = slice_cut(&rest, ':');
    slice_cut(&rest, ':');
    struct slice type = slice_cut(&rest, '/'), table = slice_cut(&rest, '/'), kind = slice_cut(&rest, '/');
    if (!slice_starts(start->text, SLICE("arn:")) || !slice_equal(type, SLICE("table")) || !table.len ||
        !slice_equal(kind, SLICE("backup")) || !rest.len)
        return invalid(call, "Invalid Backup ARN");
    if (!slice_equal(region, call->api->region))
        return invalid(call,
                       "Invalid Request: The supplied ExclusiveStartBackupArn does not match the region");
    *id = rest;
    return true;
}

static int64_t bound_ms(const struct node *time, int64_t otherwise)
{
    return time->present && time->real > -1e12 && time->real < 1e12 ? (int64_t)(time->real * 1000) : otherwise;
}

static void list_begin(struct api_call *call, const struct node *input)
{
    const struct node *table = node_member(input, LIST_TABLE), *limit = node_member(input, LIST_LIMIT),
                      *type = node_member(input, LIST_TYPE);
    struct listing listing = {.call = call,
                              .type = type->present ? type->text : SLICE("USER"),
                              .lower_ms = bound_ms(node_member(input, LIST_LOWER), INT64_MIN),
                              .upper_ms = bound_ms(node_member(input, LIST_UPPER), INT64_MAX),
                              .limit = limit->present ? limit->integer : LIST_MOST};
    struct slice start;
    if (table->present && !table_name_resolve(call, table, &listing.table)) return;
    if (!read_start(call, node_member(input, LIST_START), &start)) return;
    if (listing.lower_ms > listing.upper_ms) {
        invalid(call, INVALID_VALUES "Time range lower bound must be less than or equal to upper bound");
        return;
    }
    buf_text(call->reply, "{\"BackupSummaries\":[");
    if (engine_notes_after(call->api->engine, call->arena, BACKUP_NOTE, start, list_one, &listing) != ENGINE_OK) {
        refuse(call, "InternalServerError", "Internal server error");
        return;
    }
    buf_byte(call->reply, ']');
    if (listing.more) {
        buf_text(call->reply, ",\"LastEvaluatedBackupArn\":\"");
        put_backup_arn(call->reply, call->api, listing.last.table, listing.last.id);
        buf_byte(call->reply, '"');
    }
    buf_byte(call->reply, '}');
}

const struct operation operation_ListBackups = {
    .name = TEXT("ListBackups"),
    .input = &list_shape,
    .begin = list_begin,
};
