/* Backups of single tables, and tables that are brought back. A backup is named by its id, the last part of its ARN, or
 * by the whole ARN. */
#include "cli/table_backups.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "calendar/calendar.h"
#include "cli/listing.h"
#include "cli/tables.h"

#define DAYS_MOST 35

/* ---- point-in-time recovery ---- */

bool recovery_days_read(const char *text, unsigned long long *days)
{
    struct slice digits = slice_of(text);
    if (strcmp(text, "off") == 0) {
        *days = 0;
        return true;
    }
    if (digits.len && digits.data[digits.len - 1] == 'd') digits.len--;
    return slice_to_u64(digits, DAYS_MOST, days) && *days;
}

bool table_set_recovery(const struct place *place, struct arena *arena, const char *table, unsigned long long days)
{
    struct buf request = {0};
    request_begin(&request, table);
    buf_printf(&request, ",\"PointInTimeRecoverySpecification\":{\"PointInTimeRecoveryEnabled\":%s",
               days ? "true" : "false");
    if (days) buf_printf(&request, ",\"RecoveryPeriodInDays\":%llu", days);
    buf_text(&request, "}}");
    bool fine = place_call(place, arena, "UpdateContinuousBackups", &request) != NULL;
    buf_free(&request);
    return fine;
}

struct slice table_recovery_text(const struct place *place, struct arena *arena, const char *table)
{
    struct buf request = {0};
    request_begin(&request, table);
    buf_byte(&request, '}');
    struct answer answer = place_ask(place, arena, "DescribeContinuousBackups", &request);
    buf_free(&request);
    if (answer.error) return SLICE("");
    const struct node *recovery = node_member(node_member(answer.json, "ContinuousBackupsDescription"),
                                              "PointInTimeRecoveryDescription");
    if (!node_is(recovery, "PointInTimeRecoveryStatus", "ENABLED")) return SLICE("");
    int64_t from_ms = (int64_t)(node_number(recovery, "EarliestRestorableDateTime") * 1000 + 0.5);
    return arena_printf(arena, "any moment since %.*s, up to %llu days back", SLICE_ARG(moment_text(arena, from_ms)),
                        node_count(recovery, "RecoveryPeriodInDays"));
}

/* ---- finding a backup ---- */

/* Calls `visit` for each summary until it answers false. False after complaining. */
static bool each_backup(const struct place *place, struct arena *arena, const char *table,
                        bool (*visit)(void *context, const struct node *summary), void *context)
{
    struct buf request = {0};
    const char *one, *fault;
    size_t len;
    enum quipu_result result;
    buf_text(&request, "{\"BackupType\":\"ALL\"");
    if (table) put_string_member(&request, "TableName", slice_of(table));
    buf_byte(&request, '}');
    buf_byte(&request, 0);
    struct quipu_pages *pages = quipu_pages_open(place->db, "ListBackups", request.data);
    while ((result = quipu_pages_next(pages, &one, &len)) == QUIPU_FOUND) {
        const struct node *summary = node_parse(arena, arena_copy(arena, (struct slice){one, len}), &fault);
        if (summary && !visit(context, summary)) break;
    }
    const struct quipu_reply *reply = quipu_pages_reply(pages);
    if (result == QUIPU_FAILED) place_complain(place, NULL, reply->error, reply->message);
    quipu_pages_close(pages);
    buf_free(&request);
    return result != QUIPU_FAILED;
}

struct search {
    const char *id;
    struct slice arn;
};

static bool is_it(void *context, const struct node *summary)
{
    struct search *search = context;
    struct slice arn = node_text(summary, "BackupArn");
    if (slice_equal(after_last(arn, '/'), slice_of(search->id))) search->arn = arn;
    return !search->arn.len;
}

/* False after complaining. */
static bool find_backup(const struct place *place, struct arena *arena, const char *id, struct slice *arn)
{
    struct search search = {.id = id};
    *arn = slice_of(id);
    if (slice_starts(*arn, SLICE("arn:"))) return true;
    if (!each_backup(place, arena, NULL, is_it, &search)) return false;
    *arn = search.arn;
    if (!arn->len) complain("there is no backup '%s' on %s; 'quipu table backups' lists them", id, place->where);
    return arn->len > 0;
}

/* ---- backing up ---- */

int table_backup(const struct arguments *arguments)
{
    const char *table = argument_word(arguments, 0), *name = argument_text(arguments, "name");
    struct place place;
    struct arena arena = {0};
    struct buf request = {0};
    char stamp[32];
    struct tm parts;
    time_t now = time(NULL);
    if (!place_open(&place, arguments, PLACE_WRITE)) return EXIT_FAULT;
    gmtime_r(&now, &parts);
    strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &parts);
    request_begin(&request, table);
    put_string_member(&request, "BackupName", name ? slice_of(name) : arena_printf(&arena, "%.200s-%s", table, stamp));
    buf_byte(&request, '}');
    struct answer answer = place_ask(&place, &arena, "CreateBackup", &request);
    struct slice arn = node_text(node_member(answer.json, "BackupDetails"), "BackupArn");
    if (answer.error)
        place_complain(&place, table, answer.error, answer.message);
    else
        printf("%.*s\n", SLICE_ARG(after_last(arn, '/')));
    buf_free(&request);
    arena_free(&arena);
    place_close(&place);
    return answer.error ? EXIT_FAULT : EXIT_FINE;
}

/* ---- listing ---- */

#define BACKUP_COLUMNS 6

static bool list_one(void *context, const struct node *summary)
{
    struct listing *listing = context;
    struct slice *row = listing_row(listing, summary->source);
    struct buf size = {0};
    if (!row) return true;
    put_bytes(&size, node_count(summary, "BackupSizeBytes"));
    row[0] = arena_copy(&listing->arena, after_last(node_text(summary, "BackupArn"), '/'));
    row[1] = arena_copy(&listing->arena, node_text(summary, "TableName"));
    row[2] = arena_copy(&listing->arena, node_text(summary, "BackupName"));
    row[3] = time_shown(&listing->arena, node_number(summary, "BackupCreationDateTime"));
    row[4] = arena_copy(&listing->arena, buf_view(&size));
    row[5] = arena_copy(&listing->arena, node_text(summary, "BackupType"));
    buf_free(&size);
    return true;
}

int table_backups(const struct arguments *arguments)
{
    static const char *const head[BACKUP_COLUMNS] = {"BACKUP", "TABLE", "NAME", "CREATED", "SIZE", "TYPE"};
    struct place place;
    struct arena arena = {0};
    struct listing listing;
    const char *table = argument_words(arguments) ? argument_word(arguments, 0) : NULL;
    if (!place_open(&place, arguments, PLACE_READ)) return EXIT_FAULT;
    listing_begin(&listing, form_listed(arguments), head, BACKUP_COLUMNS);
    bool fine = each_backup(&place, &arena, table, list_one, &listing);
    listing_end(&listing, "backups");
    arena_free(&arena);
    place_close(&place);
    return fine ? EXIT_FINE : EXIT_FAULT;
}

/* ---- restoring ---- */

/* False after complaining. */
static bool put_source(const struct place *place, struct arena *arena, const struct arguments *arguments,
                       struct buf *request)
{
    const char *id = argument_text(arguments, "backup"), *table = argument_text(arguments, "from");
    struct slice arn;
    int64_t at_ms;
    if (id) {
        if (!find_backup(place, arena, id, &arn)) return false;
        put_string_member(request, "BackupArn", arn);
        return true;
    }
    put_string_member(request, "SourceTableName", slice_of(table));
    argument_moment(arguments, "at", INT64_MAX, &at_ms);
    if (at_ms == INT64_MAX)
        buf_text(request, ",\"UseLatestRestorableTime\":true");
    else
        buf_printf(request, ",\"RestoreDateTime\":%lld.%03d", (long long)(at_ms / 1000), (int)(at_ms % 1000));
    return true;
}

int table_restore(const struct arguments *arguments)
{
    const char *table = argument_word(arguments, 0), *id = argument_text(arguments, "backup"),
               *from = argument_text(arguments, "from");
    struct place place;
    struct arena arena = {0};
    struct buf request = {0};
    int64_t at_ms;
    if (!id == !from) return complain_of_usage(arguments, "say from what: --backup ID, or --from TABLE");
    if (id && argument_given(arguments, "at"))
        return complain_of_usage(arguments, "--at goes with --from: a backup is of one moment");
    if (!argument_moment(arguments, "at", INT64_MAX, &at_ms)) return EXIT_USAGE;
    if (!place_open(&place, arguments, PLACE_WRITE)) return EXIT_FAULT;
    buf_byte(&request, '{');
    put_string_member(&request, "TargetTableName", slice_of(table));
    bool fine = put_source(&place, &arena, arguments, &request);
    buf_byte(&request, '}');
    const char *operation = id ? "RestoreTableFromBackup" : "RestoreTableToPointInTime";
    fine = fine && place_call(&place, &arena, operation, &request);
    fine = fine && (argument_given(arguments, "no-wait") || table_wait_active(&place, table));
    if (fine && errors_are_terminal() && argument_given(arguments, "no-wait"))
        fprintf(stderr, "Restoring %s: 'quipu table describe %s' tells how far it is.\n", table, table);
    else if (fine && errors_are_terminal())
        fprintf(stderr, "Restored %s.\n", table);
    buf_free(&request);
    arena_free(&arena);
    place_close(&place);
    return fine ? EXIT_FINE : EXIT_FAULT;
}

/* ---- deleting ---- */

int table_delete_backups(const struct arguments *arguments)
{
    struct place place;
    struct arena arena = {0};
    struct slice arn;
    bool fine = place_open(&place, arguments, PLACE_WRITE);
    if (!fine) return EXIT_FAULT;
    for (size_t i = 0; fine && i < argument_words(arguments); i++) {
        struct buf request = {0};
        fine = find_backup(&place, &arena, argument_word(arguments, i), &arn);
        buf_byte(&request, '{');
        if (fine) put_string_member(&request, "BackupArn", arn);
        buf_byte(&request, '}');
        fine = fine && place_call(&place, &arena, "DeleteBackup", &request);
        buf_free(&request);
    }
    arena_free(&arena);
    place_close(&place);
    return fine ? EXIT_FINE : EXIT_FAULT;
}
