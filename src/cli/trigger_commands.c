/* quipu trigger: functions that run when tables change. A trigger is an event source mapping of Lambda's API;
 * it is named by its table and its function, or by the beginning of its id. What logs and queues of work call is no
 * mapping, but is added, listed and removed by the same commands (trigger_drives.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "calendar/calendar.h"
#include "cli/lag.h"
#include "cli/listing.h"
#include "cli/service.h"
#include "cli/tables.h"
#include "cli/trigger_drives.h"
#include "cli/trigger_settings.h"

#define READING_WAIT_US 60000000
#define SECONDS_MAX     9999999999u /* since 1970, as of argument_moment */

static const char mappings_path[] = "/2015-03-31/event-source-mappings";

/* ---- the table's stream ---- */

static struct slice stream_arn(const struct place *place, struct arena *arena, const char *table,
                               bool *is_known)
{
    struct schema schema;
    *is_known = schema_load(place, arena, table, NULL, &schema);
    if (!*is_known || !node_is_true(node_member(schema.description, "StreamSpecification"), "StreamEnabled"))
        return SLICE_NONE;
    return node_text(schema.description, "LatestStreamArn");
}

static bool stream_begin(const struct place *place, struct arena *arena, const char *table)
{
    struct buf request = {0};
    request_begin(&request, table);
    buf_text(&request,
             ",\"StreamSpecification\":{\"StreamEnabled\":true,\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"}}");
    bool fine = place_call(place, arena, "UpdateTable", &request) != NULL;
    buf_free(&request);
    if (!fine || !table_wait_active(place, table)) return false;
    fprintf(stderr, "The table %s keeps a stream of its changes from now on, with new and old images.\n",
            table);
    return true;
}

/* The ARN of the table's stream, which is switched on where there is none; no data after complaining. */
static struct slice stream_find(const struct arguments *arguments, struct arena *arena, const char *table)
{
    struct place place;
    bool is_known;
    struct slice arn = SLICE_NONE;
    if (!place_open(&place, arguments, PLACE_WRITE)) return arn;
    arn = stream_arn(&place, arena, table, &is_known);
    if (is_known && !arn.len && stream_begin(&place, arena, table))
        arn = stream_arn(&place, arena, table, &is_known);
    if (is_known && !arn.len) complain("the table '%s' has no stream", table);
    place_close(&place);
    return arn;
}

/* ---- adding ---- */

static const char *path_of_mapping(struct arena *arena, const struct node *mapping)
{
    return arena_printf(arena, "%s/%.*s", mappings_path, SLICE_ARG(node_text(mapping, "UUID"))).data;
}

/* What is written from now on is to start the function, so nothing returns before the stream is being read: it is
 * read from the moment on at which the reader has come to it. */
static void wait_while(struct service *service, struct arena *arena, const struct node *mapping,
                       const char *state)
{
    int64_t until_us = monotonic_us() + READING_WAIT_US;
    struct request request = request_to("lambda", "GET", path_of_mapping(arena, mapping), NULL);
    struct response response = {.json = mapping};
    for (unsigned nth = 0; node_is(response.json, "State", state); nth++) {
        if (nth) pause_before_retry(nth);
        if (monotonic_us() > until_us) {
            fprintf(stderr, "quipu: the trigger is still %s; 'quipu trigger ls' tells when it is not\n",
                    state);
            return;
        }
        if (!service_call(service, arena, &request, &response)) return;
    }
}

static int add_on(struct service *service, struct arena *arena, const struct arguments *arguments,
                  const char *position, const struct buf *settings)
{
    const char *table = argument_word(arguments, 0), *function = argument_word(arguments, 1);
    struct buf body = {0};
    struct response response;
    if (service_lacks_function(service, arena, function)) /* before the table's stream is switched on */
        return complain("there is no function '%s' ('quipu function ls' lists them)", function);
    struct slice stream = stream_find(arguments, arena, table);
    if (!stream.len) return EXIT_FAULT;
    buf_byte(&body, '{');
    put_string_member(&body, "EventSourceArn", stream);
    put_string_member(&body, "FunctionName", slice_of(function));
    put_string_member(&body, "StartingPosition", slice_of(position));
    if (settings->len) put_comma(&body);
    buf_slice(&body, buf_view(settings));
    buf_byte(&body, '}');
    struct request request = request_to("lambda", "POST", mappings_path, &body);
    bool fine = service_call(service, arena, &request, &response);
    buf_free(&body);
    if (!fine) return EXIT_FAULT;
    printf("%.*s\n", SLICE_ARG(node_text(response.json, "UUID")));
    wait_while(service, arena, response.json, "Creating");
    if (errors_are_terminal()) fprintf(stderr, "Changes of %s call %s.\n", table, function);
    return EXIT_FINE;
}

static int add(const struct arguments *arguments)
{
    const char *from = argument_text(arguments, "from"), *position = "LATEST";
    struct service service;
    struct arena arena = {0};
    struct buf settings = {0};
    int status = EXIT_USAGE;
    if (trigger_is_drive(arguments)) return trigger_drive_add(arguments);
    if (from && strcmp(from, "oldest") == 0) position = "TRIM_HORIZON";
    if (from && strcmp(from, "oldest") != 0 && strcmp(from, "latest") != 0)
        return complain_of_usage(arguments, "--from should be oldest or latest, not '%s'", from);
    if (trigger_put_settings(&settings, arguments, &arena)) {
        status = EXIT_FAULT;
        if (service_open(&service, arguments)) {
            status = add_on(&service, &arena, arguments, position, &settings);
            service_close(&service);
        }
    }
    buf_free(&settings);
    arena_free(&arena);
    return status;
}

/* ---- finding ---- */

static const struct node **mappings(struct service *service, struct arena *arena, size_t *count)
{
    return service_list(service, arena, request_to("lambda", "GET", mappings_path, NULL),
                        "EventSourceMappings", "Marker", "NextMarker", count);
}

/* arn:aws:dynamodb:REGION:ACCOUNT:table/NAME/stream/LABEL */
static struct slice table_of(const struct node *mapping)
{
    struct slice arn = after_last(node_text(mapping, "EventSourceArn"), ':');
    if (!slice_starts(arn, SLICE("table/"))) /* the label holds colons */
        arn = node_text(mapping, "EventSourceArn");
    const char *begin = memmem(arn.data, arn.len, "table/", 6);
    if (!begin) return arn;
    arn = slice_from(arn, (size_t)(begin + 6 - arn.data));
    const char *end = memchr(arn.data, '/', arn.len);
    return end ? (struct slice){arn.data, (size_t)(end - arn.data)} : arn;
}

/* arn:aws:lambda:REGION:ACCOUNT:function:NAME[:QUALIFIER] */
static struct slice function_of(const struct node *mapping)
{
    struct slice arn = node_text(mapping, "FunctionArn");
    const char *begin = memmem(arn.data, arn.len, ":function:", 10);
    return begin ? slice_from(arn, (size_t)(begin + 10 - arn.data)) : arn;
}

static bool is_meant(const struct node *mapping, const struct arguments *arguments)
{
    const char *first = argument_word(arguments, 0), *second = argument_word(arguments, 1);
    if (!second) return slice_starts(node_text(mapping, "UUID"), slice_of(first));
    return slice_equal(table_of(mapping), slice_of(first)) &&
           slice_equal(function_of(mapping), slice_of(second));
}

/* The one that the words name; NULL after complaining. */
static const struct node *find(struct service *service, struct arena *arena,
                               const struct arguments *arguments)
{
    size_t count, found = 0;
    const struct node *meant = NULL, **all = mappings(service, arena, &count);
    const char *first = argument_word(arguments, 0), *second = argument_word(arguments, 1);
    for (size_t i = 0; all && i < count; i++)
        if (is_meant(all[i], arguments)) meant = all[i], found++;
    if (!all || found == 1) return meant;
    if (found && second) /* the table was made again, or its stream was */
        complain(
            "there are %zu triggers of %s and %s, of which only one can still be called: name it by its id "
            "('quipu trigger ls' lists them)",
            found, first, second);
    else if (found)
        complain("there are %zu triggers whose id begins with '%s'", found, first);
    else
        complain("there is no trigger '%s%s%s' ('quipu trigger ls' lists them)", first, second ? " " : "",
                 second ? second : "");
    return NULL;
}

/* ---- listing and showing ---- */

static int list(const struct arguments *arguments)
{
    static const char *const head[] = {"ID", "TABLE", "FUNCTION", "STATE", "BATCH", "LAST RESULT"};
    struct service service;
    struct arena arena = {0};
    struct listing listing;
    size_t count;
    if (!service_open(&service, arguments)) return EXIT_FAULT;
    const struct node **all = mappings(&service, &arena, &count);
    if (all) {
        listing_begin(&listing, form_listed(arguments), head, sizeof head / sizeof *head);
        for (size_t i = 0; i < count; i++) {
            struct slice *row = listing_row(&listing, all[i]->source);
            if (!row) continue;
            row[0] = node_text(all[i], "UUID");
            if (row[0].len > 8) row[0].len = 8;
            row[1] = table_of(all[i]);
            row[2] = function_of(all[i]);
            row[3] = node_text(all[i], "State");
            row[4] = node_text(all[i], "BatchSize");
            row[5] = node_text(all[i], "LastProcessingResult");
        }
        if (!trigger_drives_list(&service, &arena, &listing)) all = NULL;
        listing_end(&listing, "triggers");
    }
    arena_free(&arena);
    service_close(&service);
    return all ? EXIT_FINE : EXIT_FAULT;
}

static struct slice lag_words(const struct arguments *arguments, struct arena *arena,
                              const struct node *mapping)
{
    struct place place;
    int64_t lag_ms = -1;
    if (place_open(&place, arguments, PLACE_READ)) {
        lag_ms = lag_of_mapping(&place, arena, node_text(mapping, "UUID"),
                                node_text(mapping, "EventSourceArn"));
        place_close(&place);
    }
    if (lag_ms < 0) return SLICE("unknown");
    if (!lag_ms) return SLICE("none");
    return arena_printf(arena, "%.*s",
                        SLICE_ARG(duration_text(arena, lag_ms < 10000 ? lag_ms : lag_ms / 1000 * 1000)));
}

/* A table that was dropped and made again has another stream. */
static struct slice stream_words(const struct arguments *arguments, struct arena *arena,
                                 const struct node *mapping)
{
    struct place place;
    struct buf request = {0};
    bool is_over = false;
    if (!place_open(&place, arguments, PLACE_READ)) return SLICE("");
    buf_byte(&request, '{');
    put_string_member(&request, "StreamArn", node_text(mapping, "EventSourceArn"));
    buf_byte(&request, '}');
    struct answer answer = place_ask(&place, arena, "DescribeStream", &request);
    if (answer.error)
        is_over = strcmp(answer.error, "ResourceNotFoundException") == 0;
    else
        is_over = node_is(node_member(answer.json, "StreamDescription"), "StreamStatus", "DISABLED");
    buf_free(&request);
    place_close(&place);
    return is_over ? SLICE("over: its table was dropped or switched it off; no changes come any more")
                   : SLICE("");
}

/* A number that says something; -1 means that there is no bound. */
static struct slice number_words(struct arena *arena, const struct node *mapping, const char *member,
                                 const char *unit)
{
    struct slice text = node_text(mapping, member);
    if (!text.len || slice_equal(text, SLICE("0")) || slice_equal(text, SLICE("-1"))) return SLICE("");
    return arena_printf(arena, "%.*s%s", SLICE_ARG(text), unit);
}

static void show_words(const struct arguments *arguments, struct arena *arena, const struct node *mapping)
{
    const struct node *filters = node_member(node_member(mapping, "FilterCriteria"), "Filters");
    const struct node *failure = node_member(node_member(mapping, "DestinationConfig"), "OnFailure");
    const struct pair pairs[] = {
        {"id", node_text(mapping, "UUID")},
        {"table", table_of(mapping)},
        {"function", function_of(mapping)},
        {"state", node_text(mapping, "State")},
        {"stream", stream_words(arguments, arena, mapping)},
        {"lag", lag_words(arguments, arena, mapping)},
        {"last result", node_text(mapping, "LastProcessingResult")},
        {"batch", node_text(mapping, "BatchSize")},
        {"window", number_words(arena, mapping, "MaximumBatchingWindowInSeconds", "s")},
        {"lanes", number_words(arena, mapping, "ParallelizationFactor", "")},
        {"retries", number_words(arena, mapping, "MaximumRetryAttempts", "")},
        {"max age", number_words(arena, mapping, "MaximumRecordAgeInSeconds", "s")},
        {"tumbling", number_words(arena, mapping, "TumblingWindowInSeconds", "s")},
        {"bisect", node_is_true(mapping, "BisectBatchOnFunctionError") ? SLICE("yes") : SLICE("")},
        {"partial", node_children(node_member(mapping, "FunctionResponseTypes")) ? SLICE("yes") : SLICE("")},
        {"on failure", node_text(failure, "Destination")},
        {"depth", number_words(arena, mapping, "MaximumRecursionDepth", "")},
    };
    pairs_print(pairs, sizeof pairs / sizeof *pairs);
    for (const struct node *one = filters ? filters->first : NULL; one; one = one->next) {
        struct pair filter = {"filter     ", node_text(one, "Pattern")};
        pairs_print(&filter, 1);
    }
}

static int show(const struct arguments *arguments)
{
    struct service service;
    struct arena arena = {0};
    if (trigger_is_drive(arguments)) return trigger_drive_show(arguments);
    if (!service_open(&service, arguments)) return EXIT_FAULT;
    const struct node *mapping = find(&service, &arena, arguments);
    if (mapping && form_listed(arguments) == FORM_TABLE)
        show_words(arguments, &arena, mapping);
    else if (mapping)
        json_print(mapping->source);
    arena_free(&arena);
    service_close(&service);
    return mapping ? EXIT_FINE : EXIT_FAULT;
}

/* ---- changing ---- */

/* Finds the trigger and sends a request about it. */
static int change(const struct arguments *arguments, const char *method, const struct buf *body)
{
    struct service service;
    struct arena arena = {0};
    struct response response;
    if (!service_open(&service, arguments)) return EXIT_FAULT;
    const struct node *mapping = find(&service, &arena, arguments);
    bool fine = mapping != NULL;
    if (fine) {
        struct request request = request_to("lambda", method, path_of_mapping(&arena, mapping), body);
        fine = service_call(&service, &arena, &request, &response);
    }
    arena_free(&arena);
    service_close(&service);
    return fine ? EXIT_FINE : EXIT_FAULT;
}

static int set(const struct arguments *arguments)
{
    struct arena arena = {0};
    struct buf body = {0};
    int status = EXIT_USAGE;
    if (trigger_is_drive(arguments)) return trigger_drive_set(arguments);
    buf_byte(&body, '{');
    if (trigger_put_settings(&body, arguments, &arena)) {
        if (body.len == 1)
            status = complain_of_usage(arguments, "say what to set, like --batch 50");
        else
            buf_byte(&body, '}'), status = change(arguments, "PUT", &body);
    }
    buf_free(&body);
    arena_free(&arena);
    return status;
}

static int set_enabled(const struct arguments *arguments, bool is_enabled)
{
    struct buf body = {0};
    if (trigger_is_drive(arguments)) return trigger_drive_pause(arguments, !is_enabled);
    buf_printf(&body, "{\"Enabled\":%s}", is_enabled ? "true" : "false");
    int status = change(arguments, "PUT", &body);
    buf_free(&body);
    return status;
}

static int pause_trigger(const struct arguments *arguments)
{
    return set_enabled(arguments, false);
}

static int resume_trigger(const struct arguments *arguments)
{
    return set_enabled(arguments, true);
}

/* The server knows start, end, times and sequence numbers, which are longer than the seconds since 1970. */
static bool put_move(struct buf *out, const struct arguments *arguments, struct arena *arena)
{
    const char *to = argument_text(arguments, "to"), *shard = argument_text(arguments, "shard");
    unsigned long long seconds;
    char token[UUID_BYTES];
    struct random random;
    if (!to) return complain_of_usage(arguments, "say where it is to go on, like --to start"), false;
    random_seed_from_system(&random);
    uuid_put(token, random_next(&random), random_next(&random));
    buf_byte(out, '{');
    bool is_seconds = slice_to_u64(slice_of(to), SECONDS_MAX, &seconds);
    put_string_member(out, "To", is_seconds ? moment_text(arena, (int64_t)seconds * 1000) : slice_of(to));
    if (shard) put_string_member(out, "ShardId", slice_of(shard));
    put_string_member(out, "ClientToken", slice_of(token));
    buf_byte(out, '}');
    return true;
}

static int move_trigger(const struct arguments *arguments)
{
    struct service service;
    struct arena arena = {0};
    struct buf body = {0};
    struct response response;
    int status = EXIT_USAGE;
    if (trigger_is_drive(arguments))
        return complain_of_usage(arguments,
                                 "only triggers of tables are moved; 'quipu log replay' moves a consumer");
    if (put_move(&body, arguments, &arena)) {
        status = EXIT_FAULT;
        if (service_open(&service, arguments)) {
            const struct node *mapping = find(&service, &arena, arguments);
            if (mapping) {
                struct slice path = arena_printf(&arena, "%s/move", path_of_mapping(&arena, mapping));
                struct request request = request_to("lambda", "POST", path.data, &body);
                if (service_call(&service, &arena, &request, &response)) {
                    wait_while(&service, &arena, response.json, "Updating");
                    status = EXIT_FINE;
                }
            }
            service_close(&service);
        }
    }
    buf_free(&body);
    arena_free(&arena);
    return status;
}

static int remove_trigger(const struct arguments *arguments)
{
    if (trigger_is_drive(arguments)) return trigger_drive_remove(arguments);
    return change(arguments, "DELETE", NULL);
}

/* ---- the rows ---- */

static const struct flag list_flags[] = {LIST_FLAGS};
static const struct flag add_flags[] = {
    {"from", "WHERE", "oldest: what the stream still has; latest: from now on (default)"},
    TRIGGER_SETTING_FLAGS,
};
static const struct flag set_flags[] = {TRIGGER_SETTING_FLAGS};

static const struct flag move_flags[] = {
    {"to", "WHERE", "start, end, a time (2026-11-15T03:42:06Z, or seconds since 1970), or a sequence number"},
    {"shard", "ID", "move only in this shard of the stream"},
};

#define NAMED "TABLE FUNCTION | ID | log:LOG:CONSUMER | work:QUEUE [flags]"

static const struct command children[] = {
    {.name = "add",
     .summary = "call a function with a table's changes",
     .usage = "TABLE FUNCTION [flags]",
     .about =
         "Calls a function with the changes of a table, in batches, in order for each item. Prints the\n"
         "trigger's id. The table's stream is switched on when it has none.\n\n"
         "log:LOG instead of a table calls it with the events of a log, as a consumer of the function's name\n"
         "(log:LOG:CONSUMER: of that name), work:QUEUE with each unit of a queue. --lanes is there how many\n"
         "calls of a partition, or of the queue, run at a time.",
     FLAGS(add_flags),
     .examples = "  quipu trigger add orders invoice\n"
                 "  quipu trigger add orders mail --batch 50 --window 10s --retries 3 --on-failure lost\n"
                 "  quipu trigger add orders audit --filter '{\"eventName\":[\"REMOVE\"]}' --from oldest\n"
                 "  quipu trigger add log:orders bill --batch 100\n"
                 "  quipu trigger add work:mails send-mail --lanes 10",
     .works_on_server = true,
     .words_min = 2,
     .words_max = 2,
     .run = add},
    {.name = "ls",
     .summary = "list the triggers",
     .usage = "[flags]",
     .about = "Lists the triggers with their states and last results.",
     FLAGS(list_flags),
     .works_on_server = true,
     .run = list},
    {.name = "show",
     .summary = "state, lag, last result and settings",
     .usage = NAMED,
     .about = "Tells everything about a trigger: readable on a terminal, its JSON otherwise. The lag is the\n"
              "age of the oldest change that is not yet handled.",
     FLAGS(list_flags),
     .works_on_server = true,
     .words_min = 1,
     .words_max = 2,
     .run = show},
    {.name = "set",
     .summary = "change its settings while it runs",
     .usage = NAMED,
     .about = "Changes the settings of a trigger; it goes on where it is.",
     FLAGS(set_flags),
     .works_on_server = true,
     .words_min = 1,
     .words_max = 2,
     .run = set},
    {.name = "pause",
     .summary = "stop calling, keep the position",
     .usage = NAMED,
     .about = "Stops a trigger after the batches under way. It keeps its position.",
     .works_on_server = true,
     .words_min = 1,
     .words_max = 2,
     .run = pause_trigger},
    {.name = "resume",
     .summary = "go on where it stopped",
     .usage = NAMED,
     .about = "Lets a trigger go on where it was paused.",
     .works_on_server = true,
     .words_min = 1,
     .words_max = 2,
     .run = resume_trigger},
    {.name = "move",
     .summary = "go on elsewhere: handle changes again, or skip them",
     .usage = "TABLE FUNCTION | ID --to start|end|TIME|SEQUENCE [flags]",
     .about =
         "Moves the position of a trigger, after the batches under way. It then goes on with the oldest\n"
         "change that the stream has (start), with those that come (end: what waits is skipped), with those\n"
         "of a time on, or behind a sequence number. A paused trigger stays paused.",
     FLAGS(move_flags),
     .examples =
         "  quipu trigger move orders invoice --to start\n"
         "  quipu trigger move orders invoice --to 2026-11-15T03:42:06Z\n"
         "  quipu trigger move 4f1c --to 000000000000000000042 --shard shardId-00000000000000000001-00000001",
     .works_on_server = true,
     .words_min = 1,
     .words_max = 2,
     .run = move_trigger},
    {.name = "rm",
     .summary = "remove a trigger and its position",
     .usage = NAMED,
     .about = "Removes a trigger. The table's stream stays.",
     .works_on_server = true,
     .words_min = 1,
     .words_max = 2,
     .run = remove_trigger},
};

const struct command command_trigger = {.name = "trigger",
                                        .summary = "call functions with the changes of tables",
                                        .usage = "add|ls|show|set|pause|resume|move|rm ...",
                                        .about = "Triggers call functions of a server when tables change.",
                                        .children = children,
                                        .child_count = sizeof children / sizeof *children};
