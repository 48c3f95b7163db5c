/* Mappings through the API: created, listed, changed, deleted; states as the consumer follows; the table as
 * what lasts, shared by two servers. The consumer and the functions are stand-ins that write down what they
 * hear. */
#include <stdlib.h>
#include <unistd.h>

#include "base/fail.h"
#include "trigger/mapping.h"
#include "unit/test.h"

/* ---- a trigger that is nothing but its mappings ---- */

struct fixture {
    struct trigger trigger;
    struct mapping *last; /* that the consumer was given */
    _Atomic unsigned sets, removes;
    char removed[40];
};

/* The consumer that is told of mappings is the fixture itself. */
static bool resolve(struct func *func, struct slice function, struct arena *arena, struct slice *arn,
                    struct slice *name)
{
    (void)func, (void)name;
    const char *mark = memmem(function.data, function.len, "function:", 9);
    if (mark) function = slice_from(function, (size_t)(mark + 9 - function.data));
    if (slice_starts(function, SLICE("missing"))) return false;
    *arn = arena_printf(arena, "arn:aws:lambda:us-east-1:000000000000:function:%.*s", SLICE_ARG(function));
    return true;
}

static const char *destination_refused(struct func *func, struct slice destination)
{
    (void)func;
    return slice_contains(destination, SLICE(":sqs:")) ? NULL : "it is no queue";
}

static void take_command(struct consumer *consumer, struct mapping *mapping, struct slice id)
{
    struct fixture *fixture = (struct fixture *)consumer;
    if (!mapping) {
        snprintf(fixture->removed, sizeof fixture->removed, "%.*s", SLICE_ARG(id));
        fixture->removes++;
        return;
    }
    mapping_release(fixture->last);
    fixture->last = mapping_keep(mapping);
    fixture->sets++;
}

static const struct mapping_world world = {resolve, destination_refused, take_command};

static void fixture_open(struct fixture *fixture, struct dynamo *dynamo, bool shared)
{
    char error[256] = "";
    *fixture = (struct fixture){
        .trigger = {.options = {.dynamo = dynamo, .clock = &clock_system, .shared = shared},
                    .prefix = SLICE("quipu-"),
                    .region = SLICE("us-east-1"),
                    .account = SLICE("000000000000")}};
    fixture->trigger.workers = workers_new(2);
    fixture->trigger.consumer = (struct consumer *)fixture;
    fixture->trigger.mappings = mappings_new(&fixture->trigger, &world, error, sizeof error);
    if (!fixture->trigger.mappings) test_failed(__FILE__, __LINE__, "%s", error);
    mappings_start(fixture->trigger.mappings);
}

static void fixture_close(struct fixture *fixture)
{
    workers_free(fixture->trigger.workers);
    mappings_close(fixture->trigger.mappings);
    mapping_release(fixture->last);
}

static struct dynamo *open_database(void)
{
    char error[256] = "";
    struct dynamo *dynamo = dynamo_open(":memory:", NULL, error, sizeof error);
    struct buf reply = {0};
    ensure(dynamo != NULL);
    static const char *const tables[] = {"orders", "users", "plain"};
    for (int i = 0; i < 3; i++) {
        struct buf request = {0};
        buf_printf(
            &request,
            "{\"TableName\":\"%s\",\"KeySchema\":[{\"AttributeName\":\"k\",\"KeyType\":\"HASH\"}],"
            "\"AttributeDefinitions\":[{\"AttributeName\":\"k\",\"AttributeType\":\"S\"}],"
            "\"BillingMode\":\"PAY_PER_REQUEST\"%s}",
            tables[i],
            i == 2 ? ""
                   : ",\"StreamSpecification\":{\"StreamEnabled\":true,\"StreamViewType\":\"NEW_IMAGE\"}");
        CHECK_INT(dynamo_call(dynamo, SLICE("CreateTable"), buf_view(&request), &reply), 200);
        buf_free(&request);
    }
    buf_free(&reply);
    return dynamo;
}

/* ---- calls ---- */

struct answer {
    struct rest_call call;
    struct arena arena;
    struct buf reply;
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool is_done;
};

static void answer_done(struct rest_call *call)
{
    struct answer *answer = call->context;
    pthread_mutex_lock(&answer->lock);
    answer->is_done = true;
    pthread_cond_signal(&answer->done);
    pthread_mutex_unlock(&answer->lock);
}

/* Serves one request and waits for its answer; free with answer_free. */
static void ask(struct fixture *fixture, struct answer *answer, const char *method, const char *path,
                const char *query, const char *body)
{
    const struct rest_route *route;
    *answer = (struct answer){.call = {.method = slice_of(method),
                                       .path = slice_of(path),
                                       .query = slice_of(query),
                                       .body = slice_of(body),
                                       .done = answer_done}};
    pthread_mutex_init(&answer->lock, NULL);
    pthread_cond_init(&answer->done, NULL);
    answer->call.arena = &answer->arena;
    answer->call.reply = &answer->reply;
    answer->call.context = answer;
    if (mapping_tags_serve(&fixture->trigger, &answer->call)) {
        route = NULL;
    } else if (rest_route(mapping_routes, mapping_route_count, &answer->call, &route) != REST_FOUND) {
        test_failed(__FILE__, __LINE__, "%s %s has no route", method, path);
        return;
    }
    if (route) route->serve(&fixture->trigger, &answer->call);
    pthread_mutex_lock(&answer->lock);
    while (!answer->is_done) pthread_cond_wait(&answer->done, &answer->lock);
    pthread_mutex_unlock(&answer->lock);
}

static void answer_free(struct answer *answer)
{
    arena_free(&answer->arena);
    buf_free(&answer->reply);
    pthread_mutex_destroy(&answer->lock);
    pthread_cond_destroy(&answer->done);
}

/* The text or number of a member, as it stands; empty when it is not there. */
static struct slice member(struct answer *answer, const char *wanted)
{
    struct json_reader reader;
    struct slice name, text = SLICE_NONE;
    json_begin(&reader, buf_view(&answer->reply), &answer->arena);
    json_peek(&reader);
    json_enter(&reader);
    while (json_member(&reader, &name)) {
        enum json_kind kind = json_peek(&reader);
        const char *start = reader.at;
        if (!slice_equal(name, slice_of(wanted)))
            json_skip(&reader);
        else if (kind == JSON_STRING)
            json_string(&reader, &text);
        else if (json_skip(&reader))
            text = (struct slice){start, (size_t)(reader.at - start)};
    }
    return text;
}

#define ROOT "/2015-03-31/event-source-mappings"

static void check_error(struct fixture *fixture, const char *body, int status, const char *type,
                        const char *message)
{
    struct answer answer;
    ask(fixture, &answer, "POST", ROOT "/", "", body);
    CHECK_INT(answer.call.status, status);
    CHECK(slice_contains(answer.call.headers, slice_of(type)));
    struct slice text = member(&answer, "message");
    CHECK_TEXT(text.len ? text : member(&answer, "Message"), message);
    answer_free(&answer);
}

/* Creates one on the newest stream of a table and answers its id. */
static void make(struct fixture *fixture, const char *table, const char *function, const char *more,
                 char id[40])
{
    struct answer answer;
    char body[700];
    snprintf(body, sizeof body,
             "{\"EventSourceArn\":\"%s\",\"FunctionName\":\"%s\",\"StartingPosition\":\"LATEST\"%s}", table,
             function, more);
    ask(fixture, &answer, "POST", ROOT, "", body);
    if (answer.call.status != 202)
        test_failed(__FILE__, __LINE__, "%.*s", SLICE_ARG(buf_view(&answer.reply)));
    snprintf(id, 40, "%.*s", SLICE_ARG(member(&answer, "UUID")));
    answer_free(&answer);
}

static void path_of(char path[100], const char *id)
{
    snprintf(path, 100, ROOT "/%s", id);
}

static void check_state(struct fixture *fixture, const char *id, const char *state)
{
    struct answer answer;
    char path[100];
    path_of(path, id);
    ask(fixture, &answer, "GET", path, "", "");
    CHECK_TEXT(member(&answer, "State"), state);
    answer_free(&answer);
}

static bool is_there(struct fixture *fixture, const char *id)
{
    struct answer answer;
    char path[100];
    path_of(path, id);
    ask(fixture, &answer, "GET", path, "", "");
    int status = answer.call.status;
    answer_free(&answer);
    return status == 200;
}

/* Others move on their own threads; how long that may take is no matter. */
static bool comes_true(bool (*holds)(struct fixture *fixture, const char *id), struct fixture *fixture,
                       const char *id)
{
    for (int i = 0; i < 3000; i++) {
        if (holds(fixture, id)) return true;
        usleep(10000);
    }
    return false;
}

static bool is_missing(struct fixture *fixture, const char *id)
{
    return !is_there(fixture, id);
}

/* ---- tests ---- */

TEST(a_new_mapping_is_told_as_lambda_tells_it)
{
    struct dynamo *dynamo = open_database();
    struct fixture fixture;
    struct answer answer;
    fixture_open(&fixture, dynamo, false);
    ask(&fixture, &answer, "POST", ROOT "/", "",
        "{\"EventSourceArn\":\"orders\",\"FunctionName\":\"resize\",\"StartingPosition\":\"TRIM_HORIZON\","
        "\"BatchSize\":3,\"FilterCriteria\":{\"Filters\":[{\"Pattern\":\"{\\\"eventName\\\":[\\\"INSERT\\\"]}\"}]}}");
    CHECK_INT(answer.call.status, 202);
    CHECK_INT(member(&answer, "UUID").len, 36);
    CHECK_TEXT(member(&answer, "StartingPosition"), "TRIM_HORIZON");
    CHECK_TEXT(member(&answer, "BatchSize"), "3");
    CHECK_TEXT(member(&answer, "MaximumBatchingWindowInSeconds"), "0");
    CHECK_TEXT(member(&answer, "ParallelizationFactor"), "1");
    CHECK(slice_starts(member(&answer, "EventSourceArn"),
                       SLICE("arn:aws:dynamodb:us-east-1:000000000000:table/orders/stream/")));
    CHECK_TEXT(member(&answer, "FunctionArn"), "arn:aws:lambda:us-east-1:000000000000:function:resize");
    CHECK_TEXT(member(&answer, "FilterCriteria"),
               "{\"Filters\":[{\"Pattern\":\"{\\\"eventName\\\":[\\\"INSERT\\\"]}\"}]}");
    CHECK_TEXT(member(&answer, "LastProcessingResult"), "No records processed");
    CHECK_TEXT(member(&answer, "State"), "Creating");
    CHECK_TEXT(member(&answer, "StateTransitionReason"), "User action");
    CHECK_TEXT(member(&answer, "DestinationConfig"), "{\"OnFailure\":{}}");
    CHECK_TEXT(member(&answer, "MaximumRecordAgeInSeconds"), "-1");
    CHECK_TEXT(member(&answer, "MaximumRetryAttempts"), "-1");
    CHECK_TEXT(member(&answer, "BisectBatchOnFunctionError"), "false");
    CHECK_TEXT(member(&answer, "TumblingWindowInSeconds"), "0");
    CHECK_TEXT(member(&answer, "FunctionResponseTypes"), "[]");
    CHECK(member(&answer, "MaximumRecursionDepth").len == 0 && member(&answer, "MetricsConfig").len == 0);
    CHECK(slice_contains(member(&answer, "LastModified"), SLICE(".")));
    CHECK(slice_starts(member(&answer, "EventSourceMappingArn"),
                       SLICE("arn:aws:lambda:us-east-1:000000000000:event-source-mapping:")));
    CHECK_INT(fixture.sets, 1);
    CHECK_TEXT(fixture.last->function, "resize");
    CHECK_INT(fixture.last->filter_count, 1);
    answer_free(&answer);
    fixture_close(&fixture);
    dynamo_close(dynamo);
}

TEST(sources_and_functions_must_be_there)
{
    struct dynamo *dynamo = open_database();
    struct fixture fixture;
    fixture_open(&fixture, dynamo, false);
    check_error(
        &fixture,
        "{\"EventSourceArn\":\"orders\",\"FunctionName\":\"missing\",\"StartingPosition\":\"LATEST\"}", 400,
        "InvalidParameterValueException", "Function does not exist");
    check_error(&fixture,
                "{\"EventSourceArn\":\"nowhere\",\"FunctionName\":\"f\",\"StartingPosition\":\"LATEST\"}",
                400, "InvalidParameterValueException", "Stream not found: there is no table nowhere.");
    check_error(&fixture,
                "{\"EventSourceArn\":\"plain\",\"FunctionName\":\"f\",\"StartingPosition\":\"LATEST\"}", 400,
                "InvalidParameterValueException", "Stream not found: the table plain has no stream.");
    check_error(&fixture,
                "{\"EventSourceArn\":"
                "\"arn:aws:dynamodb:us-east-1:000000000000:table/orders/stream/2000-01-01T00:00:00.000\","
                "\"FunctionName\":\"f\",\"StartingPosition\":\"LATEST\"}",
                400, "InvalidParameterValueException",
                "Stream not found: "
                "arn:aws:dynamodb:us-east-1:000000000000:table/orders/stream/2000-01-01T00:00:00.000");
    check_error(&fixture,
                "{\"EventSourceArn\":\"arn:aws:sqs:us-east-1:000000000000:q\",\"FunctionName\":\"f\","
                "\"StartingPosition\":\"LATEST\"}",
                400, "InvalidParameterValueException",
                "Unrecognized event source, must be a dynamodb stream. Unsupported source arn : "
                "arn:aws:sqs:us-east-1:000000000000:q");
    check_error(&fixture,
                "{\"EventSourceArn\":\"orders\",\"FunctionName\":\"f\",\"StartingPosition\":\"LATEST\","
                "\"DestinationConfig\":{\"OnFailure\":{\"Destination\":\"arn:aws:x:us-east-1:000000000000:y\"}}}",
                400, "InvalidParameterValueException",
                "Invalid request provided: the destination arn:aws:x:us-east-1:000000000000:y cannot be used: it is "
                "no queue");
    CHECK_INT(fixture.sets, 0);
    fixture_close(&fixture);
    dynamo_close(dynamo);
}

TEST(a_pair_of_stream_and_function_has_one_mapping)
{
    struct dynamo *dynamo = open_database();
    struct fixture fixture;
    char id[40], other[40], message[400];
    fixture_open(&fixture, dynamo, false);
    make(&fixture, "orders", "f", "", id);
    snprintf(message, sizeof message,
             "The event source arn (\" %.*s \") and function (\" f \") provided mapping already exists. "
             "Please update "
             "or delete the existing mapping with UUID %s",
             SLICE_ARG(fixture.last->stream_arn), id);
    check_error(
        &fixture,
        "{\"EventSourceArn\":\"arn:aws:dynamodb:us-east-1:000000000000:table/orders\","
        "\"FunctionName\":\"arn:aws:lambda:us-east-1:000000000000:function:f\","
        "\"StartingPosition\":\"TRIM_HORIZON\"}",
        409, "ResourceConflictException", message);
    make(&fixture, "orders", "g", "", other);
    make(&fixture, "orders", "f:live", "", other);
    make(&fixture, "users", "f", "", other);
    CHECK_INT(fixture.sets, 4);
    fixture_close(&fixture);
    dynamo_close(dynamo);
}

TEST(states_move_as_the_consumer_follows)
{
    struct dynamo *dynamo = open_database();
    struct fixture fixture;
    struct answer answer;
    char id[40], path[100];
    fixture_open(&fixture, dynamo, false);
    struct mappings *mappings = fixture.trigger.mappings;
    make(&fixture, "orders", "f", "", id);
    path_of(path, id);
    check_state(&fixture, id, "Creating");
    mappings_reached(mappings, slice_of(id), MAPPING_DISABLED); /* of an older wish: not what is wanted */
    check_state(&fixture, id, "Creating");
    mappings_reached(mappings, slice_of(id), MAPPING_ENABLED);
    check_state(&fixture, id, "Enabled");
    ask(&fixture, &answer, "PUT", path, "", "{\"Enabled\":false}");
    CHECK_INT(answer.call.status, 202);
    CHECK_TEXT(member(&answer, "State"), "Disabling");
    answer_free(&answer);
    CHECK(!fixture.last->enabled && fixture.last->revision == 2);
    mappings_reached(mappings, slice_of(id), MAPPING_ENABLED);
    check_state(&fixture, id, "Disabling");
    mappings_reached(mappings, slice_of(id), MAPPING_DISABLED);
    check_state(&fixture, id, "Disabled");
    ask(&fixture, &answer, "PUT", path, "", "{\"BatchSize\":9}");
    CHECK_TEXT(member(&answer, "State"), "Updating");
    CHECK_TEXT(member(&answer, "BatchSize"), "9");
    answer_free(&answer);
    mappings_reached(mappings, slice_of(id), MAPPING_DISABLED);
    ask(&fixture, &answer, "PUT", path, "", "{\"Enabled\":true,\"FunctionName\":\"g:1\"}");
    CHECK_TEXT(member(&answer, "State"), "Enabling");
    CHECK_TEXT(member(&answer, "FunctionArn"), "arn:aws:lambda:us-east-1:000000000000:function:g:1");
    answer_free(&answer);
    CHECK_TEXT(fixture.last->function, "g:1");
    CHECK_INT(fixture.last->batch_size, 9);
    mappings_note_result(mappings, slice_of(id), "PROBLEM: Function call failed");
    mappings_note_result(mappings, SLICE("nobody"), "OK");
    ask(&fixture, &answer, "GET", path, "", "");
    CHECK_TEXT(member(&answer, "LastProcessingResult"), "PROBLEM: Function call failed");
    answer_free(&answer);
    fixture_close(&fixture);
    dynamo_close(dynamo);
}

TEST(a_deleted_mapping_goes_when_the_consumer_let_it_go)
{
    struct dynamo *dynamo = open_database();
    struct fixture fixture;
    struct answer answer;
    char id[40], path[100];
    fixture_open(&fixture, dynamo, false);
    make(&fixture, "orders", "f", "", id);
    path_of(path, id);
    ask(&fixture, &answer, "DELETE", path, "", "");
    CHECK_INT(answer.call.status, 202);
    CHECK_TEXT(member(&answer, "State"), "Deleting");
    answer_free(&answer);
    CHECK_INT(fixture.removes, 1);
    CHECK(strcmp(fixture.removed, id) == 0);
    ask(&fixture, &answer, "DELETE", path, "", "");
    CHECK_INT(answer.call.status, 400);
    CHECK_TEXT(member(&answer, "Message"), "Cannot delete the event source mapping because it is in use.");
    answer_free(&answer);
    ask(&fixture, &answer, "PUT", path, "", "{\"BatchSize\":1}");
    CHECK_TEXT(member(&answer, "Message"), "Cannot update the event source mapping because it is in use.");
    answer_free(&answer);
    mappings_reached(fixture.trigger.mappings, slice_of(id), MAPPING_ENABLED);
    check_state(&fixture, id, "Deleting");
    mappings_reached(fixture.trigger.mappings, slice_of(id), MAPPING_DELETING);
    CHECK(comes_true(is_missing, &fixture, id));
    ask(&fixture, &answer, "PUT", path, "", "{}");
    CHECK_INT(answer.call.status, 404);
    CHECK_TEXT(member(&answer, "Message"), "The resource you requested does not exist.");
    answer_free(&answer);
    make(&fixture, "orders", "f", "", id); /* the pair is free again */
    fixture_close(&fixture);
    dynamo_close(dynamo);
}

TEST(the_table_is_what_lasts)
{
    struct dynamo *dynamo = open_database();
    struct fixture fixture;
    struct answer answer;
    char id[40], gone[40], path[100];
    fixture_open(&fixture, dynamo, false);
    make(&fixture, "orders", "f", ",\"MaximumRetryAttempts\":3,\"MaximumRecursionDepth\":2,\"Enabled\":false",
         id);
    make(&fixture, "users", "f", "", gone);
    path_of(path, gone);
    ask(&fixture, &answer, "DELETE", path, "", ""); /* and the server ends before the consumer is done */
    answer_free(&answer);
    fixture_close(&fixture);

    fixture_open(&fixture, dynamo, false);
    CHECK_INT(fixture.sets, 1);
    CHECK_INT(fixture.removes, 1);
    CHECK(strcmp(fixture.removed, gone) == 0);
    CHECK_TEXT(fixture.last->id, id);
    CHECK(!fixture.last->enabled && fixture.last->retries_max == 3 && fixture.last->depth_max == 2);
    check_state(&fixture, id, "Disabled");
    check_state(&fixture, gone, "Deleting");
    path_of(path, id);
    ask(&fixture, &answer, "GET", path, "", "");
    CHECK_TEXT(member(&answer, "MaximumRecursionDepth"), "2");
    answer_free(&answer);
    mappings_reached(fixture.trigger.mappings, slice_of(gone), MAPPING_DELETING);
    CHECK(comes_true(is_missing, &fixture, gone));
    fixture_close(&fixture);

    fixture_open(&fixture, dynamo, false);
    CHECK_INT(fixture.sets + fixture.removes, 1);
    fixture_close(&fixture);
    dynamo_close(dynamo);
}

TEST(lists_are_filtered_and_come_in_pages)
{
    struct dynamo *dynamo = open_database();
    struct fixture fixture;
    struct answer answer;
    char id[40], query[300], functions[6][16];
    fixture_open(&fixture, dynamo, false);
    for (int i = 0; i < 6; i++) {
        snprintf(functions[i], sizeof functions[i], "f%d", i);
        make(&fixture, i % 2 ? "orders" : "users", functions[i], "", id);
    }
    ask(&fixture, &answer, "GET", ROOT "/", "", "");
    CHECK_INT(answer.call.status, 200);
    CHECK(member(&answer, "NextMarker").len == 0);
    for (int i = 0; i < 6; i++) {
        char arn[80];
        snprintf(arn, sizeof arn, "function:f%d\"", i);
        CHECK(slice_contains(buf_view(&answer.reply), slice_of(arn)));
    }
    answer_free(&answer);
    snprintf(query, sizeof query, "EventSourceArn=%.*s", SLICE_ARG(fixture.last->stream_arn));
    ask(&fixture, &answer, "GET", ROOT, query, "");
    CHECK(slice_contains(buf_view(&answer.reply), SLICE("function:f5\"")));
    CHECK(!slice_contains(buf_view(&answer.reply), SLICE("function:f4\"")));
    answer_free(&answer);
    ask(&fixture, &answer, "GET", ROOT,
        "FunctionName=arn%3Aaws%3Alambda%3Aus-east-1%3A000000000000%3Afunction%3Af4", "");
    CHECK(slice_contains(buf_view(&answer.reply), SLICE("function:f4\"")));
    CHECK(!slice_contains(buf_view(&answer.reply), SLICE("function:f5\"")));
    answer_free(&answer);
    int pages = 0;
    snprintf(query, sizeof query, "MaxItems=2");
    for (bool more = true; more && pages < 10; pages++) {
        ask(&fixture, &answer, "GET", ROOT, query, "");
        more = member(&answer, "NextMarker").len > 0;
        snprintf(query, sizeof query, "MaxItems=2&Marker=%.*s", SLICE_ARG(member(&answer, "NextMarker")));
        answer_free(&answer);
    }
    CHECK_INT(pages, 3);
    ask(&fixture, &answer, "GET", ROOT, "MaxItems=0", "");
    CHECK_INT(answer.call.status, 400);
    answer_free(&answer);
    fixture_close(&fixture);
    dynamo_close(dynamo);
}

static bool is_at_nine(struct fixture *fixture, const char *id)
{
    struct answer answer;
    char path[100];
    path_of(path, id);
    ask(fixture, &answer, "GET", path, "", "");
    bool is = slice_equal(member(&answer, "BatchSize"), SLICE("9"));
    answer_free(&answer);
    return is;
}

static bool was_removed(struct fixture *fixture, const char *id)
{
    (void)id;
    return fixture->removes > 0;
}

TEST(two_servers_see_each_others_changes)
{
    struct dynamo *dynamo = open_database();
    struct fixture one, two;
    struct answer answer;
    char id[40], path[100];
    fixture_open(&one, dynamo, true);
    fixture_open(&two, dynamo, true);
    make(&one, "orders", "f", "", id);
    path_of(path, id);
    CHECK(comes_true(is_there, &two, id));
    check_state(&two, id, "Creating");
    ask(&one, &answer, "PUT", path, "", "{\"BatchSize\":9}");
    CHECK_INT(answer.call.status, 202);
    answer_free(&answer);
    /* at once, before the other can have seen it: what one has set is kept */
    ask(&two, &answer, "PUT", path, "", "{\"ParallelizationFactor\":4}");
    CHECK_TEXT(member(&answer, "BatchSize"), "9");
    CHECK_TEXT(member(&answer, "ParallelizationFactor"), "4");
    answer_free(&answer);
    CHECK(comes_true(is_at_nine, &two, id));
    ask(&two, &answer, "DELETE", path, "", "");
    CHECK_INT(answer.call.status, 202);
    answer_free(&answer);
    mappings_reached(two.trigger.mappings, slice_of(id), MAPPING_DELETING);
    CHECK(comes_true(is_missing, &two, id));
    CHECK(comes_true(was_removed, &one, id));
    CHECK_INT(one.removes, 1);
    mappings_reached(one.trigger.mappings, slice_of(id), MAPPING_DELETING);
    CHECK(comes_true(is_missing, &one, id));
    fixture_close(&one);
    fixture_close(&two);
    dynamo_close(dynamo);
}

/* A door that repeats a put whose reply was lost: the condition fails then, and it is stored all the same. */
TEST(a_mapping_that_was_put_twice_is_stored)
{
    struct dynamo *dynamo = open_database();
    struct fixture fixture;
    struct arena arena = {0};
    struct refusal refusal;
    struct settings settings;
    fixture_open(&fixture, dynamo, false);
    settings_defaults(&settings);
    settings.id = SLICE("14e0db71-1c0e-4c5e-8d0f-6f0e2f1b7a11");
    settings.stream_arn = settings.function = settings.function_arn = SLICE("x");
    settings.filters = &(struct slice){"{\"a\":[\"'\"]}", 11};
    settings.filter_count = 1;
    for (settings.revision = 1; settings.revision <= 2; settings.revision++) {
        CHECK_INT(mapping_table_put(&fixture.trigger, &settings, &arena, &refusal), STORED);
        CHECK_INT(mapping_table_put(&fixture.trigger, &settings, &arena, &refusal), STORED);
        settings.modified_ms++; /* another's */
        CHECK_INT(mapping_table_put(&fixture.trigger, &settings, &arena, &refusal), STORED_CONFLICT);
    }
    fixture_close(&fixture);
    dynamo_close(dynamo);
    arena_free(&arena);
}

TEST(an_item_that_is_no_mapping_is_left_alone)
{
    struct dynamo *dynamo = open_database();
    struct fixture fixture;
    struct buf reply = {0};
    char id[40];
    fixture_open(&fixture, dynamo, false);
    make(&fixture, "orders", "f", "", id);
    fixture_close(&fixture);
    CHECK_INT(dynamo_call(dynamo, SLICE("PutItem"),
                          SLICE("{\"TableName\":\"quipu-mappings\",\"Item\":{\"id\":{\"S\":\"note\"}}}"),
                          &reply),
              200);
    fixture_open(&fixture, dynamo, false);
    CHECK_INT(fixture.sets, 1);
    fixture_close(&fixture);
    buf_free(&reply);
    dynamo_close(dynamo);
}

TEST(mappings_have_tags)
{
    struct dynamo *dynamo = open_database();
    struct fixture fixture;
    struct answer answer;
    char id[40], path[200];
    fixture_open(&fixture, dynamo, false);
    make(&fixture, "orders", "f", ",\"Tags\":{\"team\":\"a\",\"cost\":\"1\"}", id);
    snprintf(
        path, sizeof path,
        "/2017-03-31/tags/arn%%3Aaws%%3Alambda%%3Aus-east-1%%3A000000000000%%3Aevent-source-mapping%%3A%s",
        id);
    ask(&fixture, &answer, "GET", path, "", "");
    CHECK_TEXT(member(&answer, "Tags"), "{\"team\":\"a\",\"cost\":\"1\"}");
    answer_free(&answer);
    ask(&fixture, &answer, "POST", path, "", "{\"Tags\":{\"team\":\"b\",\"new\":\"\"}}");
    CHECK_INT(answer.call.status, 204);
    CHECK_INT(answer.reply.len, 0);
    answer_free(&answer);
    check_state(&fixture, id, "Creating");
    ask(&fixture, &answer, "DELETE", path, "tagKeys=cost&tagKeys=nobody", "");
    CHECK_INT(answer.call.status, 204);
    answer_free(&answer);
    ask(&fixture, &answer, "GET", path, "", "");
    CHECK_TEXT(member(&answer, "Tags"), "{\"team\":\"b\",\"new\":\"\"}");
    answer_free(&answer);
    ask(&fixture, &answer, "POST", path, "", "{}");
    CHECK_INT(answer.call.status, 400);
    answer_free(&answer);
    ask(&fixture, &answer, "GET",
        "/2017-03-31/tags/arn:aws:lambda:us-east-1:000000000000:event-source-mapping:x", "", "");
    CHECK_INT(answer.call.status, 404);
    answer_free(&answer);
    struct rest_call other = {
        .method = SLICE("GET"),
        .path = SLICE("/2017-03-31/tags/arn:aws:lambda:us-east-1:000000000000:function:f"),
        .arena = &answer.arena};
    CHECK(!mapping_tags_serve(&fixture.trigger, &other));
    arena_free(&answer.arena);
    fixture_close(&fixture);
    dynamo_close(dynamo);
}

static void check_move(struct fixture *fixture, const char *id, const char *body, int status, const char *message)
{
    struct answer answer;
    char path[110];
    snprintf(path, sizeof path, ROOT "/%s/move", id);
    ask(fixture, &answer, "POST", path, "", body);
    CHECK_INT(answer.call.status, status);
    if (message && !slice_contains(buf_view(&answer.reply), slice_of(message)))
        test_failed(__FILE__, __LINE__, "%.*s", SLICE_ARG(buf_view(&answer.reply)));
    answer_free(&answer);
}

TEST(a_move_is_a_change_of_the_mapping_and_comes_once_for_a_token)
{
    struct dynamo *dynamo = open_database();
    struct fixture fixture;
    char id[40];
    fixture_open(&fixture, dynamo, false);
    make(&fixture, "orders", "f", "", id);
    CHECK_INT(fixture.last->move.number, 0);
    check_move(&fixture, id, "{\"To\":\"start\",\"ClientToken\":\"one\"}", 202, "\"State\":\"Updating\"");
    CHECK_INT(fixture.last->move.number, 2);
    CHECK_TEXT(fixture.last->move.to, "TRIM_HORIZON");
    check_move(&fixture, id, "{\"To\":\"start\",\"ClientToken\":\"one\"}", 202, NULL);
    CHECK_INT(fixture.last->move.number, 2);
    check_move(&fixture, id, "{\"To\":\"end\"}", 202, NULL);
    CHECK_INT(fixture.last->move.number, 4);
    CHECK_TEXT(fixture.last->move.to, "LATEST");
    CHECK_INT(fixture.last->move.since_ms, 0);
    check_move(&fixture, id, "{\"To\":\"2026-11-15T03:42:06Z\"}", 202, NULL);
    CHECK_INT(fixture.last->move.since_ms, 1794714126000);
    int64_t number = fixture.last->move.number;
    check_move(&fixture, id, "{\"To\":\"start\",\"ShardId\":\"shardId-none\"}", 400, "has no shard shardId-none");
    check_move(&fixture, id, "{\"To\":\"yesterday\"}", 400, "To should be start, end, a time");
    check_move(&fixture, id, "{\"To\":\"99999999999999999999999\"}", 400, "sequence number");
    check_move(&fixture, id, "{}", 400, "to");
    check_move(&fixture, "no-such", "{\"To\":\"start\"}", 404, NULL);
    CHECK_INT(fixture.last->move.number, number);
    fixture_close(&fixture); /* what is written down is there for the next one */
    fixture_open(&fixture, dynamo, false);
    CHECK_INT(fixture.last->move.number, number);
    CHECK_INT(fixture.last->move.since_ms, 1794714126000);
    fixture_close(&fixture);
    dynamo_close(dynamo);
}
