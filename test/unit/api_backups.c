/* Backups and restores as the api sees them: words, shapes, overrides, and what refuses what. Copies are snapshots that
 * this file takes, and nobody fills the tables that are restored, so that they stay CREATING. Texts hold ' for ". */
#include <stdio.h>

#include "unit/api_schema.h"

#define ARN        "arn:aws:dynamodb:us-east-1:000000000000:table/abc"
#define NO_ARN     ARN "/backup/01489602797149-73d8d5bc"
#define SPECS(b)   "'PointInTimeRecoverySpecification':{'PointInTimeRecoveryEnabled':" b "}"
#define BACKUPS(b) "{'TableName':'abc'," SPECS(b) "}"

struct copies {
    struct world *world;
    char ids[8][40];
    struct store *all[8];
    unsigned count, dropped;
    bool is_elsewhere; /* the database was restored without them */
    int64_t days, kept_from;
    const char *fault; /* of the next one */
    struct engine_snapshot *sealed; /* what a process that dies while it deletes a table leaves */
};

static struct table *take(void *self, struct slice id, struct slice table, char *error, size_t error_len)
{
    struct copies *copies = self;
    if (copies->fault) {
        snprintf(error, error_len, "%s", copies->fault);
        return NULL;
    }
    struct store_snapshot *snapshot = store_snapshot_take(copies->world->store);
    struct store *copy = copies->all[copies->count] = store_open_memory(NULL);
    snprintf(copies->ids[copies->count++], 40, "%.*s", SLICE_ARG(id));
    store_snapshot_restore(copy, snapshot);
    store_snapshot_free(snapshot);
    return engine_past_table(copy, table);
}

static void drop(void *self, struct slice id)
{
    struct copies *copies = self;
    for (unsigned i = 0; i < copies->count; i++) copies->dropped += slice_equal(slice_of(copies->ids[i]), id);
}

static bool has(void *self, struct slice id)
{
    const struct copies *copies = self;
    for (unsigned i = 0; i < copies->count && !copies->is_elsewhere; i++)
        if (slice_equal(slice_of(copies->ids[i]), id)) return true;
    return false;
}

static bool keep(void *self, int64_t days, char *error, size_t error_len)
{
    struct copies *copies = self;
    int64_t asked = api_recovery_days(copies->world->engine);
    if (copies->fault) snprintf(error, error_len, "%s", copies->fault);
    if (copies->fault) return false;
    copies->days = days > asked ? days : asked;
    if (!copies->days)
        copies->kept_from = INT64_MAX;
    else if (copies->kept_from == INT64_MAX)
        copies->kept_from = copies->world->now_ms;
    return true;
}

static int64_t kept_from(void *self)
{
    return ((struct copies *)self)->kept_from;
}

static struct api_backups hooks;

static void open_world(struct world *world, struct copies *copies)
{
    world_open(world);
    *copies = (struct copies){.world = world, .kept_from = INT64_MAX};
    hooks = (struct api_backups){copies, take, drop, has, keep, kept_from};
    api_set_backups(world->api, &hooks);
    FINE(world, "CreateTable",
         "{'TableName':'abc','AttributeDefinitions':[{'AttributeName':'p','AttributeType':'S'},"
         "{'AttributeName':'s','AttributeType':'S'},{'AttributeName':'r','AttributeType':'N'}],"
         "'KeySchema':[{'AttributeName':'p','KeyType':'HASH'},{'AttributeName':'s','KeyType':'RANGE'}],"
         "'BillingMode':'PAY_PER_REQUEST','GlobalSecondaryIndexes':[{'IndexName':'gsi',"
         "'KeySchema':[{'AttributeName':'r','KeyType':'HASH'}],"
         "'Projection':{'ProjectionType':'INCLUDE','NonKeyAttributes':['x','y']}}],"
         "'LocalSecondaryIndexes':[{'IndexName':'lsi','KeySchema':[{'AttributeName':'p','KeyType':'HASH'},"
         "{'AttributeName':'r','KeyType':'RANGE'}],'Projection':{'ProjectionType':'ALL'}}],"
         "'StreamSpecification':{'StreamEnabled':true,'StreamViewType':'KEYS_ONLY'},"
         "'Tags':[{'Key':'k','Value':'v'}],'DeletionProtectionEnabled':true,"
         "'OnDemandThroughput':{'MaxReadRequestUnits':70},'SSESpecification':{'Enabled':true}}");
    FINE(world, "PutItem", "{'TableName':'abc','Item':{'p':{'S':'1'},'s':{'S':'2'},'r':{'N':'3'}}}");
}

static void close_world(struct world *world, struct copies *copies)
{
    for (unsigned i = 0; i < copies->count; i++) store_close(copies->all[i]);
    world_close(world);
}

/* Its ARN, until the world is closed. */
static const char *back_up(struct world *world, const char *name)
{
    char body[200];
    snprintf(body, sizeof body, "{'TableName':'abc','BackupName':'%s'}", name);
    FINE(world, "CreateBackup", body);
    SHOWS(world, "{'BackupDetails':{'BackupArn':'" ARN "/backup/0");
    SHOWS(world, "'BackupStatus':'CREATING','BackupType':'USER'");
    struct slice reply = buf_view(&world->reply);
    size_t at = strlen("{\"BackupDetails\":{\"BackupArn\":\"");
    return arena_printf(&world->scratch, "%.*s", (int)strlen(NO_ARN), reply.data + at).data;
}

static const char *with(struct world *world, const char *format, const char *arn)
{
    char body[1500];
    snprintf(body, sizeof body, format, arn);
    return quoted(world, arena_printf(&world->scratch, "%s", body).data);
}

#define REFUSES(world, operation, body, short_name, message)                                                 \
    CHECK_REFUSED(world, operation, quoted(world, body), short_name, message)

/* ---- backups ---- */

TEST(backup_is_described_with_the_table_as_it_was)
{
    struct world world;
    struct copies copies;
    open_world(&world, &copies);
    const char *arn = back_up(&world, "first");
    FINE(&world, "PutItem", "{'TableName':'abc','Item':{'p':{'S':'1'},'s':{'S':'3'}}}");
    FINE(&world, "UpdateTable", "{'TableName':'abc','DeletionProtectionEnabled':false}");
    FINE(&world, "DeleteTable", "{'TableName':'abc'}");
    CHECK_FINE(&world, "DescribeBackup", with(&world, "{'BackupArn':'%s'}", arn));
    SHOWS(&world, "'BackupName':'first','BackupSizeBytes':7,'BackupStatus':'AVAILABLE','BackupType':'USER',"
                  "'BackupCreationDateTime':1794716005.340}");
    SHOWS(&world, "'SourceTableDetails':{'TableName':'abc','TableId':'");
    SHOWS(&world, "'TableArn':'" ARN "','TableSizeBytes':7,'KeySchema':[{'AttributeName':'p','KeyType':'HASH'},"
                  "{'AttributeName':'s','KeyType':'RANGE'}],'TableCreationDateTime':1794716005.340,"
                  "'ProvisionedThroughput':{'ReadCapacityUnits':0,'WriteCapacityUnits':0},"
                  "'OnDemandThroughput':{'MaxReadRequestUnits':70},'ItemCount':1,'BillingMode':'PAY_PER_REQUEST'}");
    SHOWS(&world, "'SourceTableFeatureDetails':{'LocalSecondaryIndexes':[{'IndexName':'lsi','KeySchema':["
                  "{'AttributeName':'p','KeyType':'HASH'},{'AttributeName':'r','KeyType':'RANGE'}],"
                  "'Projection':{'ProjectionType':'ALL'}}],'GlobalSecondaryIndexes':[{'IndexName':'gsi',"
                  "'KeySchema':[{'AttributeName':'r','KeyType':'HASH'}],'Projection':{'ProjectionType':'INCLUDE',"
                  "'NonKeyAttributes':['x','y']},'ProvisionedThroughput':{'ReadCapacityUnits':0,"
                  "'WriteCapacityUnits':0}}],'StreamDescription':{'StreamEnabled':true,"
                  "'StreamViewType':'KEYS_ONLY'},'SSEDescription':{'Status':'ENABLED'");
    CHECK_INT(copies.dropped, 0);
    CHECK_FINE(&world, "DeleteBackup", with(&world, "{'BackupArn':'%s'}", arn));
    SHOWS(&world, "'BackupStatus':'DELETED'");
    SHOWS(&world, "'ItemCount':1");
    CHECK_INT(copies.dropped, 1);
    for (int i = 0; i < 3; i++) {
        static const char *const operations[] = {"DescribeBackup", "DeleteBackup", "RestoreTableFromBackup"};
        CHECK_REFUSED(&world, operations[i], with(&world, "{'TargetTableName':'new','BackupArn':'%s'}", arn),
                      "BackupNotFoundException", with(&world, "Backup not found: %s", arn));
    }
    close_world(&world, &copies);
}

TEST(backups_whose_copies_are_elsewhere_are_forgotten)
{
    struct world world;
    struct copies copies;
    open_world(&world, &copies);
    const char *arn = back_up(&world, "first");
    api_backups_expire(world.api);
    CHECK_FINE(&world, "DescribeBackup", with(&world, "{'BackupArn':'%s'}", arn));
    copies.is_elsewhere = true;
    api_backups_expire(world.api);
    CHECK_REFUSED(&world, "DescribeBackup", with(&world, "{'BackupArn':'%s'}", arn), "BackupNotFoundException",
                  with(&world, "Backup not found: %s", arn));
    close_world(&world, &copies);
}

TEST(backup_of_what_cannot_be)
{
    struct world world;
    struct copies copies;
    open_world(&world, &copies);
    REFUSES(&world, "CreateBackup", "{'TableName':'missing','BackupName':'one'}", "TableNotFoundException",
            "Table not found: missing");
    INVALID(&world, "CreateBackup", "{'TableName':'abc','BackupName':'a/b'}",
            "1 validation error detected: Value 'a/b' at 'backupName' failed to satisfy constraint: Member must "
            "satisfy regular expression pattern: [a-zA-Z0-9_.-]+");
    copies.fault = "the disk is full";
    REFUSES(&world, "CreateBackup", "{'TableName':'abc','BackupName':'one'}", "LimitExceededException",
            "The backup cannot be made: the disk is full");
    api_set_backups(world.api, NULL);
    REFUSES(&world, "CreateBackup", "{'TableName':'abc','BackupName':'one'}", "UnsupportedOperationException",
            "CreateBackup is not offered here.");
    FINE(&world, "ListBackups", "{}");
    SHOWS(&world, "{'BackupSummaries':[]}");
    close_world(&world, &copies);
}

TEST(backup_arns_are_judged_in_the_words_of_the_service)
{
    struct world world;
    struct copies copies;
    open_world(&world, &copies);
    static const char *const rows[][3] = {
        {"arn:aws:dynamodb:us-east-1:000000000000:table/abcdef", "ValidationException", "Invalid Backup ARN"},
        {"something-else-that-is-long-enough-to-be-an-arn", "ValidationException", "Invalid Backup ARN"},
        {ARN "/export/01489602797149-73d8d5bc", "ValidationException", "Invalid Backup ARN"},
        {"arn:aws:dynamodb:nowhere:000000000000:table/abc/backup/01489602797149-73d8d5bc", "ValidationException",
         "Invalid Request: BackupArn is not valid"},
        {"arn:aws:dynamodb:xx-mars-9:000000000000:table/abc/backup/01489602797149-73d8d5bc",
         "ValidationException", "Invalid Request: BackupArn is not valid"},
        {"arn:aws:dynamodb:eu-mars-1:000000000000:table/abc/backup/01489602797149-73d8d5bc",
         "ValidationException", "Invalid Request: BackupArn is not valid"},
        {"arn:awe:dynamodb:us-east-1:000000000000:table/abc/backup/01489602797149-73d8d5bc",
         "ValidationException", "Invalid Request: BackupArn is not valid"},
        {"arn:aws:dynamo:us-east-1:000000000000:table/abc/backup/01489602797149-73d8d5bc", "ValidationException",
         "Invalid Request: BackupArn is not valid"},
        {"arn:aws:dynamodb:us-east-1:000000000001:table/abc/backup/01489602797149-73d8d5bc",
         "AccessDeniedException", "Access is denied"},
        {NO_ARN, "BackupNotFoundException", "Backup not found: " NO_ARN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_REFUSED(&world, "DescribeBackup", with(&world, "{'BackupArn':'%s'}", rows[i][0]), rows[i][1],
                      rows[i][2]);
    close_world(&world, &copies);
}

TEST(backups_are_listed_by_time_in_pages)
{
    struct world world;
    struct copies copies;
    const char *arns[4];
    open_world(&world, &copies);
    for (int i = 0; i < 4; i++) {
        arns[i] = back_up(&world, "same-name");
        world.now_ms += 1000;
    }
    FINE(&world, "ListBackups", "{'Limit':3}");
    struct slice reply = buf_view(&world.reply);
    CHECK(slice_starts(reply, slice_of(with(&world, "{'BackupSummaries':[{'BackupArn':'%s'", arns[0]))));
    CHECK_CONTAINS(reply, with(&world, "}],'LastEvaluatedBackupArn':'%s'}", arns[2]));
    SHOWS(&world, "'TableName':'abc','TableId':'");
    CHECK_FINE(&world, "ListBackups", with(&world, "{'ExclusiveStartBackupArn':'%s'}", arns[2]));
    reply = buf_view(&world.reply);
    CHECK(slice_starts(reply, slice_of(with(&world, "{'BackupSummaries':[{'BackupArn':'%s'", arns[3]))));
    LACKS(&world, "LastEvaluatedBackupArn");
    /* The lower bound is in it, the upper one is not. */
    FINE(&world, "ListBackups",
         "{'TableName':'abc','TimeRangeLowerBound':1794716006.340,'TimeRangeUpperBound':1794716008.340}");
    CHECK(slice_contains(buf_view(&world.reply), slice_of(arns[1])) &&
          slice_contains(buf_view(&world.reply), slice_of(arns[2])));
    CHECK(!slice_contains(buf_view(&world.reply), slice_of(arns[0])) &&
          !slice_contains(buf_view(&world.reply), slice_of(arns[3])));
    static const char *const empty[] = {"{'TableName':'missing'}", "{'BackupType':'SYSTEM'}",
                                        "{'BackupType':'AWS_BACKUP'}", "{'TimeRangeLowerBound':1894716006}"};
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++)
        CHECK_TEXT(ASK(&world, "ListBackups", empty[i]), "{\"BackupSummaries\":[]}");
    FINE(&world, "ListBackups", "{'BackupType':'ALL'}");
    CHECK(slice_contains(buf_view(&world.reply), slice_of(arns[3])));
    INVALID(&world, "ListBackups", "{'TimeRangeLowerBound':2,'TimeRangeUpperBound':1}",
            "One or more parameter values were invalid: Time range lower bound must be less than or equal to upper "
            "bound");
    INVALID(&world, "ListBackups",
            "{'ExclusiveStartBackupArn':'arn:aws:dynamodb:eu-west-1:000000000000:table/abc/backup/"
            "01489602797149-73d8d5bc'}",
            "Invalid Request: The supplied ExclusiveStartBackupArn does not match the region");
    close_world(&world, &copies);
}

/* ---- restoring ---- */

TEST(restore_makes_a_table_that_is_of_no_use_yet)
{
    struct world world;
    struct copies copies;
    open_world(&world, &copies);
    const char *arn = back_up(&world, "first");
    CHECK_FINE(&world, "RestoreTableFromBackup", with(&world, "{'TargetTableName':'new','BackupArn':'%s'}", arn));
    SHOWS(&world, "{'TableDescription':{'TableName':'new','TableStatus':'CREATING'");
    CHECK_CONTAINS(buf_view(&world.reply),
                   with(&world, "'RestoreSummary':{'SourceBackupArn':'%s','SourceTableArn':'" ARN "',"
                                "'RestoreDateTime':1794716005.340,'RestoreInProgress':true}", arn));
    SHOWS(&world, "'GlobalSecondaryIndexes':[{'IndexName':'gsi'");
    SHOWS(&world, "'LocalSecondaryIndexes':[{'IndexName':'lsi'");
    SHOWS(&world, "'OnDemandThroughput':{'MaxReadRequestUnits':70}");
    SHOWS(&world, "'SSEDescription':{'Status':'ENABLED'");
    SHOWS(&world, "'DeletionProtectionEnabled':false");
    LACKS(&world, "Stream");
    FINE(&world, "DescribeTable", "{'TableName':'new'}");
    SHOWS(&world, "'TableStatus':'CREATING'");
    SHOWS(&world, "'RestoreInProgress':true");
    FINE(&world, "ListTagsOfResource", "{'ResourceArn':'arn:aws:dynamodb:us-east-1:000000000000:table/new'}");
    SHOWS(&world, "{'Tags':[]}");
    REFUSES(&world, "GetItem", "{'TableName':'new','Key':{'p':{'S':'1'},'s':{'S':'2'}}}",
            "ResourceNotFoundException", "Requested resource not found");
    REFUSES(&world, "CreateBackup", "{'TableName':'new','BackupName':'one'}", "TableNotFoundException",
            "Table not found: new");
    REFUSES(&world, "DescribeContinuousBackups", "{'TableName':'new'}", "TableNotFoundException",
            "Table not found: new");
    REFUSES(&world, "DeleteTable", "{'TableName':'new'}", "ResourceInUseException",
            "Attempt to change a resource which is still in use: Table is being created: new");
    CHECK_REFUSED(&world, "RestoreTableFromBackup", with(&world, "{'TargetTableName':'more','BackupArn':'%s'}", arn),
                  "BackupInUseException", with(&world, "Backup is being used to restore another table: %s", arn));
    CHECK_REFUSED(&world, "DeleteBackup", with(&world, "{'BackupArn':'%s'}", arn), "BackupInUseException",
                  with(&world, "Backup is being used to restore table: %s", arn));
    CHECK_REFUSED(&world, "RestoreTableFromBackup", with(&world, "{'TargetTableName':'new','BackupArn':'%s'}", arn),
                  "TableInUseException",
                  with(&world, "Table: new is already being restored from backup: %s", arn));
    CHECK_REFUSED(&world, "RestoreTableFromBackup", with(&world, "{'TargetTableName':'abc','BackupArn':'%s'}", arn),
                  "TableAlreadyExistsException", "Table already exists: abc");
    close_world(&world, &copies);
}

#define GSI(name, rest)                                                                                      \
    "{'IndexName':'" name "','KeySchema':[{'AttributeName':'r','KeyType':'HASH'}],"                          \
    "'Projection':{'ProjectionType':'INCLUDE','NonKeyAttributes':['y','x']}" rest "}"

TEST(restore_overrides_what_the_service_lets_it)
{
    struct world world;
    struct copies copies;
    open_world(&world, &copies);
    FINE(&world, "UpdateContinuousBackups", BACKUPS("true"));
#define RESTORE(rest) "{'TargetTableName':'new','SourceTableName':'abc','UseLatestRestorableTime':true," rest "}"
    static const char *const rows[][2] = {
        {RESTORE("'ProvisionedThroughputOverride':{'ReadCapacityUnits':1,'WriteCapacityUnits':1}"),
         "Invalid Request: Cannot override ProvisionedThroughput unless BillingMode is PROVISIONED"},
        {RESTORE("'BillingModeOverride':'PROVISIONED'"),
         "Must override ProvisionedThroughput if BillingMode is overridden to PROVISIONED"},
        {RESTORE("'BillingModeOverride':'PAY_PER_REQUEST','ProvisionedThroughputOverride':{'ReadCapacityUnits':1,"
                 "'WriteCapacityUnits':1}"),
         "Cannot override ProvisionedThroughput if BillingMode is overridden to PAY_PER_REQUEST"},
        {RESTORE("'BillingModeOverride':'PROVISIONED','ProvisionedThroughputOverride':{'ReadCapacityUnits':1,"
                 "'WriteCapacityUnits':1}"),
         "Must specify provisioned throughput for index gsi"},
        {RESTORE("'GlobalSecondaryIndexOverride':[" GSI("gsi", ",'ProvisionedThroughput':{'ReadCapacityUnits':1,"
                                                               "'WriteCapacityUnits':1}") "]"),
         "Cannot override ProvisionedThroughput if BillingMode is overridden to PAY_PER_REQUEST for index gsi"},
        {RESTORE("'OnDemandThroughputOverride':{'MaxReadRequestUnits':0}"),
         "Requested MaxReadRequestUnits for OnDemandThroughput is outside of valid range"},
        {RESTORE("'BillingModeOverride':'PROVISIONED','ProvisionedThroughputOverride':{'ReadCapacityUnits':1,"
                 "'WriteCapacityUnits':1},'OnDemandThroughputOverride':{'MaxReadRequestUnits':5}"),
         "Cannot override MaxReadRequestUnits for OnDemandThroughput unless BillingModeOverride is PAY_PER_REQUEST"},
        {RESTORE("'LocalSecondaryIndexOverride':[" GSI("other", "") "]"),
         "Index other does not match a secondary index that existed in the source table and cannot be created "
         "during the restore operation"},
        {RESTORE("'GlobalSecondaryIndexOverride':[" GSI("one", "") "," GSI("two", "") "]"),
         "Index two does not match a secondary index that existed in the source table and cannot be created "
         "during the restore operation"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        INVALID(&world, "RestoreTableToPointInTime", rows[i][0], rows[i][1]);
    FINE(&world, "RestoreTableToPointInTime",
         RESTORE("'GlobalSecondaryIndexOverride':[" GSI("renamed", "") "],'LocalSecondaryIndexOverride':[],"
                 "'OnDemandThroughputOverride':{'MaxWriteRequestUnits':9},'SSESpecificationOverride':"
                 "{'Enabled':false}"));
    SHOWS(&world, "'GlobalSecondaryIndexes':[{'IndexName':'renamed'");
    SHOWS(&world, "'OnDemandThroughput':{'MaxReadRequestUnits':70,'MaxWriteRequestUnits':9}");
    LACKS(&world, "LocalSecondaryIndexes");
    LACKS(&world, "SSEDescription");
    LACKS(&world, "SourceBackupArn");
    FINE(&world, "RestoreTableToPointInTime",
         "{'TargetTableName':'bare','SourceTableName':'abc','UseLatestRestorableTime':true,"
         "'BillingModeOverride':'PROVISIONED','ProvisionedThroughputOverride':{'ReadCapacityUnits':3,"
         "'WriteCapacityUnits':4},'GlobalSecondaryIndexOverride':[],'LocalSecondaryIndexOverride':[]}");
    SHOWS(&world, "'ReadCapacityUnits':3,'WriteCapacityUnits':4");
    SHOWS(&world, "'AttributeDefinitions':[{'AttributeName':'p','AttributeType':'S'},{'AttributeName':'s',"
                  "'AttributeType':'S'}]");
    LACKS(&world, "OnDemandThroughput");
    close_world(&world, &copies);
}

/* ---- moments ---- */

#define RECOVERY(rest)                                                                                       \
    "{'ContinuousBackupsDescription':{'ContinuousBackupsStatus':'ENABLED','PointInTimeRecoveryDescription':" \
    "{'PointInTimeRecoveryStatus':" rest "}}}"
#define ANSWERS(world, operation, body, expected)                                                            \
    CHECK_TEXT(ASK(world, operation, body), quoted(world, expected))

TEST(continuous_backups_tell_what_can_be_restored)
{
    struct world world;
    struct copies copies;
    open_world(&world, &copies);
    ANSWERS(&world, "DescribeContinuousBackups", "{'TableName':'abc'}", RECOVERY("'DISABLED'"));
    ANSWERS(&world, "UpdateContinuousBackups", BACKUPS("true"),
            RECOVERY("'ENABLED','RecoveryPeriodInDays':35,'EarliestRestorableDateTime':1794716005.340,"
                     "'LatestRestorableDateTime':1794716005.340"));
    CHECK_INT(copies.days, 35);
    world.now_ms += 10 * 60 * 1000;
    ANSWERS(&world, "UpdateContinuousBackups", BACKUPS("true,'RecoveryPeriodInDays':7"),
            RECOVERY("'ENABLED','RecoveryPeriodInDays':7,'EarliestRestorableDateTime':1794716005.340,"
                     "'LatestRestorableDateTime':1794716605.340"));
    world.now_ms += 8 * 24 * 3600 * INT64_C(1000);
    ANSWERS(&world, "DescribeContinuousBackups", "{'TableName':'abc'}",
            RECOVERY("'ENABLED','RecoveryPeriodInDays':7,'EarliestRestorableDateTime':1794803005.340,"
                     "'LatestRestorableDateTime':1795407805.340"));
    copies.kept_from = world.now_ms - 1000; /* there was a gap */
    ANSWERS(&world, "DescribeContinuousBackups", "{'TableName':'abc'}",
            RECOVERY("'ENABLED','RecoveryPeriodInDays':7,'EarliestRestorableDateTime':1795407804.340,"
                     "'LatestRestorableDateTime':1795407805.340"));
    ANSWERS(&world, "UpdateContinuousBackups", BACKUPS("false"), RECOVERY("'DISABLED'"));
    CHECK_INT(copies.days, 0);
    copies.fault = "the disk is full";
    REFUSES(&world, "UpdateContinuousBackups", BACKUPS("true"), "ContinuousBackupsUnavailableException",
            "The log cannot be kept: the disk is full");
    ANSWERS(&world, "DescribeContinuousBackups", "{'TableName':'abc'}", RECOVERY("'DISABLED'"));
    close_world(&world, &copies);
}

TEST(continuous_backups_that_cannot_be)
{
    struct world world;
    struct copies copies;
    open_world(&world, &copies);
    REFUSES(&world, "DescribeContinuousBackups", "{'TableName':'missing'}", "TableNotFoundException",
            "Table not found: missing");
    REFUSES(&world, "UpdateContinuousBackups", "{'TableName':'missing'," SPECS("true") "}",
            "TableNotFoundException", "Table not found: missing");
    INVALID(&world, "UpdateContinuousBackups", BACKUPS("false,'RecoveryPeriodInDays':7"),
            "Invalid Request: Cannot specify RecoveryPeriodInDays when disabling point-in-time recovery.");
    INVALID(
        &world, "UpdateContinuousBackups", BACKUPS("true,'RecoveryPeriodInDays':36"),
        "1 validation error detected: Value '36' at 'pointInTimeRecoverySpecification.recoveryPeriodInDays' "
        "failed to satisfy constraint: Member must have value less than or equal to 35");
    close_world(&world, &copies);
}

TEST(restore_to_a_moment_is_judged_in_the_order_of_the_service)
{
    struct world world;
    struct copies copies;
    open_world(&world, &copies);
#define TO "RestoreTableToPointInTime"
    INVALID(&world, TO, "{'TargetTableName':'abc','SourceTableName':'abc'}",
            "Invalid Request: Either one of RestoreDateTime or UseLatestRestorableTime must be specified, but not "
            "both");
    INVALID(&world, TO,
            "{'TargetTableName':'abc','SourceTableName':'abc','RestoreDateTime':1,'UseLatestRestorableTime':true}",
            "Invalid Request: Both RestoreDateTime and UseLatestRestorableTime cannot be set for point-in-time "
            "restore request. Please specify only one of them."); /* the end of it is not known for sure */
    INVALID(&world, TO, "{'TargetTableName':'abc','UseLatestRestorableTime':true}",
            "The parameter 'TableName' is required but was not present in the request");
    INVALID(&world, TO,
            "{'TargetTableName':'abc','UseLatestRestorableTime':true,'SourceTableName':'abc','SourceTableArn':'" ARN
            "'}",
            "Must provide exactly one of: sourceTableArn, sourceTableName");
    INVALID(&world, TO, "{'TargetTableName':'abc','UseLatestRestorableTime':true,'SourceTableArn':'abc'}",
            "sourceTableArn is not a valid ARN");
    INVALID(&world, TO,
            "{'TargetTableName':'abc','UseLatestRestorableTime':true,'SourceTableArn':"
            "'arn:aws:dynamodb:us-east-1:000000000001:table/abc'}",
            "This action is only supported by accounts that match the resource owner’s account.");
    INVALID(&world, TO,
            "{'TargetTableName':'abc','UseLatestRestorableTime':true,'SourceTableArn':"
            "'arn:aws:dynamodb:eu-west-1:000000000000:table/abc'}",
            "sseSpecificationOverride must be provided for cross-region restores");
    REFUSES(&world, TO, "{'TargetTableName':'abc','UseLatestRestorableTime':true,'SourceTableName':'missing'}",
            "TableNotFoundException", "Table not found: missing");
    REFUSES(&world, TO, "{'TargetTableName':'abc','UseLatestRestorableTime':true,'SourceTableArn':'" ARN "'}",
            "PointInTimeRecoveryUnavailableException", "Point in time recovery is not enabled for table 'abc'");
    FINE(&world, "UpdateContinuousBackups", BACKUPS("true"));
    world.now_ms += 60000;
    REFUSES(&world, TO, "{'TargetTableName':'abc','SourceTableName':'abc','RestoreDateTime':1794716004}",
            "InvalidRestoreTimeException",
            "RestoreDateTime '2026-11-15T04:13:24.000Z' must be within EarliestRestorableDateTime "
            "'2026-11-15T04:13:25.340Z' and LatestRestorableDateTime '2026-11-15T04:14:25.340Z'");
    REFUSES(&world, TO, "{'TargetTableName':'abc','SourceTableName':'abc','RestoreDateTime':1794716066}",
            "InvalidRestoreTimeException",
            "RestoreDateTime '2026-11-15T04:14:26.000Z' must be within EarliestRestorableDateTime "
            "'2026-11-15T04:13:25.340Z' and LatestRestorableDateTime '2026-11-15T04:14:25.340Z'");
    REFUSES(&world, TO, "{'TargetTableName':'abc','SourceTableName':'abc','RestoreDateTime':1794716030}",
            "TableAlreadyExistsException", "Table already exists: abc");
    /* Clients send whole seconds: the one that it was switched on in counts. */
    FINE(&world, TO, "{'TargetTableName':'new','SourceTableName':'abc','RestoreDateTime':1794716005}");
    SHOWS(&world, "'RestoreSummary':{'SourceTableArn':'" ARN "','RestoreDateTime':1794716005.340,"
                  "'RestoreInProgress':true}");
    close_world(&world, &copies);
}

/* ---- what a table leaves ---- */

TEST(a_table_that_could_be_brought_back_leaves_a_backup_that_expires)
{
    struct world world;
    struct copies copies;
    open_world(&world, &copies);
    FINE(&world, "UpdateTable", "{'TableName':'abc','DeletionProtectionEnabled':false}");
    FINE(&world, "UpdateContinuousBackups", BACKUPS("true"));
    FINE(&world, "DeleteTable", "{'TableName':'abc'}");
    SHOWS(&world, "'TableStatus':'DELETING'");
    CHECK_INT(copies.days, 0);
    REFUSES(&world, "DescribeTable", "{'TableName':'abc'}", "ResourceNotFoundException",
            "Requested resource not found: Table: abc not found");
    CHECK_TEXT(ASK(&world, "ListBackups", "{}"), "{\"BackupSummaries\":[]}");
    FINE(&world, "ListBackups", "{'BackupType':'SYSTEM'}");
    SHOWS(&world, "{'BackupSummaries':[{'BackupArn':'" ARN "/backup/01794716005340-00000000',"
                  "'BackupName':'abc$DeletedTableBackup','BackupSizeBytes':7,'BackupStatus':'AVAILABLE',"
                  "'BackupType':'SYSTEM','BackupCreationDateTime':1794716005.340,"
                  "'BackupExpiryDateTime':1797740005.340,");
    FINE(&world, "DescribeBackup", "{'BackupArn':'" ARN "/backup/01794716005340-00000000'}");
    SHOWS(&world, "'ItemCount':1,'BillingMode':'PAY_PER_REQUEST'},'SourceTableFeatureDetails':{}}}");
    INVALID(&world, "DeleteBackup", "{'BackupArn':'" ARN "/backup/01794716005340-00000000'}",
            "Invalid Request: User is not allowed to delete the system backup with arn " ARN
            "/backup/01794716005340-00000000. It will automatically expire on 2026-12-20T04:13:25.340Z");
    FINE(&world, "RestoreTableFromBackup",
         "{'TargetTableName':'abc','BackupArn':'" ARN "/backup/01794716005340-00000000'}");
    world.now_ms += 36 * 24 * 3600 * INT64_C(1000);
    api_backups_expire(world.api); /* not while it is read */
    CHECK_INT(copies.dropped, 0);
    close_world(&world, &copies);

    open_world(&world, &copies);
    FINE(&world, "UpdateContinuousBackups", BACKUPS("true"));
    INVALID(&world, "DeleteTable", "{'TableName':'abc'}",
            "Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection "
            "first.");
    FINE(&world, "UpdateTable", "{'TableName':'abc','DeletionProtectionEnabled':false}");
    copies.fault = "the disk is full"; /* which is no reason to keep the table */
    FINE(&world, "DeleteTable", "{'TableName':'abc'}");
    CHECK_TEXT(ASK(&world, "ListBackups", "{'BackupType':'ALL'}"), "{\"BackupSummaries\":[]}");
    close_world(&world, &copies);

    open_world(&world, &copies);
    FINE(&world, "UpdateTable", "{'TableName':'abc','DeletionProtectionEnabled':false}");
    FINE(&world, "UpdateContinuousBackups", BACKUPS("true"));
    FINE(&world, "DeleteTable", "{'TableName':'abc'}");
    world.now_ms += 36 * 24 * 3600 * INT64_C(1000);
    api_backups_expire(world.api);
    CHECK_INT(copies.dropped, 1);
    CHECK_TEXT(ASK(&world, "ListBackups", "{'BackupType':'ALL'}"), "{\"BackupSummaries\":[]}");
    close_world(&world, &copies);
}

static struct table *take_at_a_bad_time(void *self, struct slice id, struct slice table, char *error, size_t error_len)
{
    struct copies *copies = self;
    struct world *world = copies->world;
    struct arena arena = {0};
    struct buf reply = {0};
    static const char *const asked[][3] = {
        {"PutItem", "{'TableName':'abc','Item':{'p':{'S':'1'},'s':{'S':'late'}}}", "ResourceNotFoundException"},
        {"DeleteTable", "{'TableName':'abc'}", "ResourceInUseException"},
        {"DescribeTable", "{'TableName':'abc'}", NULL},
    };
    for (unsigned i = 0; i < 3; i++) {
        struct api_call call = {.api = world->api,
                                .arena = &arena,
                                .reply = &reply,
                                .operation = api_operation_find(slice_of(asked[i][0])),
                                .body = slice_of(quoted(world, asked[i][1]))};
        reply.len = 0;
        api_run(&call);
        CHECK_TEXT(slice_of(call.error ? call.error : ""), asked[i][2] ? asked[i][2] : "");
    }
    CHECK_CONTAINS(buf_view(&reply), "\"TableStatus\":\"DELETING\"");
    buf_free(&reply);
    arena_free(&arena);
    copies->sealed = engine_snapshot_take(world->engine);
    return take(self, id, table, error, error_len);
}

TEST(a_table_that_is_being_deleted_is_of_no_use)
{
    struct world world;
    struct copies copies;
    open_world(&world, &copies);
    FINE(&world, "UpdateTable", "{'TableName':'abc','DeletionProtectionEnabled':false}");
    FINE(&world, "UpdateContinuousBackups", BACKUPS("true"));
    hooks.take = take_at_a_bad_time;
    FINE(&world, "DeleteTable", "{'TableName':'abc'}");
    FINE(&world, "ListBackups", "{'BackupType':'SYSTEM'}");
    SHOWS(&world, "abc$DeletedTableBackup");
    engine_snapshot_restore(world.engine, copies.sealed); /* as if it had died then */
    engine_snapshot_free(copies.sealed);
    FINE(&world, "DescribeTable", "{'TableName':'abc'}");
    SHOWS(&world, "'TableStatus':'DELETING'");
    hooks.take = take;
    api_deletions_finish(world.api);
    CHECK_TEXT(ASK(&world, "ListTables", "{}"), "{\"TableNames\":[]}");
    FINE(&world, "ListBackups", "{'BackupType':'SYSTEM'}");
    SHOWS(&world, "abc$DeletedTableBackup");
    close_world(&world, &copies);
}
