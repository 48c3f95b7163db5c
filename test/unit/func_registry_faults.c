/* G1, G4, G5: whoever dies between two calls, repeats them, or acts in between, a function is as it was or as it was
 * to be, never a mixture, and what is left over goes. */
#include "func/registry.h"

#include <stdlib.h>

#include "base/raw.h"
#include "unit/func_gate.h"
#include "unit/func_lab.h"

#define FUNCTIONS "/2015-03-31/functions"
#define CALLS_MAX 100 /* of one change: far above what any needs */

/* ---- what is there, in words ---- */

static void put_list(struct lab *lab, const char *target, const char *list, const char *const names[2],
                     struct buf *out)
{
    struct answer answer = lab_send(lab, "GET", target, NULL, NULL);
    struct raw_walk walk;
    struct slice element;
    buf_printf(out, " %s %d:", list, answer.status);
    if (raw_walk_begin(&walk, &answer.arena, answer_member(&answer, list)) == JSON_ARRAY)
        while (raw_walk_next(&walk, NULL, &element))
            for (int i = 0; i < 2; i++)
                buf_printf(out, " %.*s", SLICE_ARG(raw_member(&answer.arena, element, names[i])));
    answer_free(&answer);
}

/* Of the function f or g: its versions, aliases and settings. */
static void put_function(struct lab *lab, char name, struct buf *out)
{
    struct arena arena = {0};
    struct answer answer = lab_send(lab, "GET", arena_printf(&arena, FUNCTIONS "/%c", name).data, NULL, NULL);
    buf_printf(out, "%c %d %.*s %.*s", name, answer.status,
               SLICE_ARG(answer_member(&answer, "Configuration.CodeSha256")),
               SLICE_ARG(answer_member(&answer, "Configuration.Timeout")));
    answer_free(&answer);
    put_list(lab, arena_printf(&arena, FUNCTIONS "/%c/versions", name).data, "Versions",
             (const char *const[]){"Version", "CodeSha256"}, out);
    put_list(lab, arena_printf(&arena, FUNCTIONS "/%c/aliases", name).data, "Aliases",
             (const char *const[]){"Name", "FunctionVersion"}, out);
    put_list(lab, arena_printf(&arena, "/2019-09-25/functions/%c/event-invoke-config/list", name).data,
             "FunctionEventInvokeConfigs", (const char *const[]){"FunctionArn", "MaximumRetryAttempts"}, out);
    buf_byte(out, '\n');
    arena_free(&arena);
}

static struct buf state_of(struct lab *lab)
{
    struct buf out = {0};
    put_function(lab, 'f', &out);
    put_function(lab, 'g', &out);
    put_list(lab, "/2018-10-31/layers/l/versions", "LayerVersions",
             (const char *const[]){"Version", "Description"}, &out);
    return out;
}

/* Parts of f and g, and heads that are Gone. */
static void count_items(struct dynamo *dynamo, int *parts, int *gone)
{
    static const char request[] = "{\"TableName\":\"quipu-functions\"}";
    struct buf reply = {0};
    struct arena arena = {0};
    struct raw_walk walk;
    struct slice item;
    *parts = *gone = 0;
    CHECK_INT(dynamo_call(dynamo, SLICE("Scan"), slice_of(request), &reply), 200);
    raw_walk_begin(&walk, &arena, raw_member(&arena, buf_view(&reply), "Items"));
    while (raw_walk_next(&walk, NULL, &item)) {
        struct slice name = raw_string(&arena, raw_member(&arena, raw_member(&arena, item, "name"), "S"));
        struct slice part = raw_string(&arena, raw_member(&arena, raw_member(&arena, item, "part"), "S"));
        if (name.len != 1) continue;
        *gone += raw_member(&arena, item, "Gone").data != NULL;
        *parts += memchr(part.data, '@', part.len) != NULL;
    }
    buf_free(&reply);
    arena_free(&arena);
}

/* ---- what is done ---- */

enum deed { UPDATE, CONFIGURE, PUBLISH, MAKE_ALIAS, MOVE_ALIAS, DROP_ALIAS, DELETE, CREATE, LAYER, DEEDS };

/* A function that is a URL: archives are written to the disk, which takes its time. */
static int create(struct lab *lab, const char *name, const char *page)
{
    struct arena arena = {0};
    const char *body = arena_printf(&arena,
                                    "{\"FunctionName\":\"%s\",\"Role\":\"arn:aws:iam::000000000000:role/r\","
                                    "\"Publish\":true,\"Code\":{\"Url\":\"http://h/%s\"}}",
                                    name, page)
                           .data;
    struct answer answer = lab_send(lab, "POST", FUNCTIONS, body, NULL);
    int status = answer.status;
    answer_free(&answer);
    arena_free(&arena);
    return status;
}

static int carry_out(struct lab *lab, enum deed deed)
{
    static const struct {
        const char *method, *target, *body;
    } requests[DEEDS] = {
        [UPDATE] = {"PUT", FUNCTIONS "/f/code", "{\"Publish\":true,\"Url\":\"http://h/two\"}"},
        [CONFIGURE] = {"PUT", FUNCTIONS "/f/configuration", "{\"Timeout\":9}"},
        [PUBLISH] = {"POST", FUNCTIONS "/f/versions", "{}"},
        [MAKE_ALIAS] = {"POST", FUNCTIONS "/f/aliases", "{\"Name\":\"next\",\"FunctionVersion\":\"1\"}"},
        [MOVE_ALIAS] = {"PUT", FUNCTIONS "/f/aliases/live", "{\"FunctionVersion\":\"$LATEST\"}"},
        [DROP_ALIAS] = {"DELETE", FUNCTIONS "/f/aliases/live", ""},
        [DELETE] = {"DELETE", FUNCTIONS "/f", ""},
        [LAYER] = {"POST", "/2018-10-31/layers/l/versions", NULL},
    };
    struct buf zip = {0}, body = {0};
    if (deed == CREATE) return create(lab, "g", "three");
    if (deed == LAYER) {
        lab_zip(&zip, &(struct lab_file){"file", "two", 0100644}, 1);
        buf_text(&body, "{\"Content\":{\"ZipFile\":");
        json_put_base64(&body, buf_view(&zip));
        buf_text(&body, "}}");
        buf_byte(&body, 0);
    }
    struct answer answer = lab_send(lab, requests[deed].method, requests[deed].target,
                                    body.len ? body.data : requests[deed].body, NULL);
    int status = answer.status;
    answer_free(&answer);
    buf_free(&zip);
    buf_free(&body);
    return status;
}

/* Makes f, with a version and an alias that has settings, on a database of its own. */
static struct dynamo *furnish(struct lab *lab, bool shared)
{
    if (shared)
        lab_open_shared(lab);
    else
        lab_open(lab);
    CHECK_INT(create(lab, "f", "one"), 201);
    LAB_EXPECT(lab, "PUT", FUNCTIONS "/f/configuration", "{\"Timeout\":5}", 200);
    LAB_EXPECT(lab, "POST", FUNCTIONS "/f/aliases", "{\"Name\":\"live\",\"FunctionVersion\":\"1\"}", 201);
    LAB_EXPECT(lab, "PUT", "/2019-09-25/functions/f/event-invoke-config?Qualifier=live",
               "{\"MaximumRetryAttempts\":1}", 200);
    return lab->dynamo;
}

static void expect_states(const struct buf *got, const struct buf *first, const struct buf *second,
                          enum deed deed, unsigned number, const char *file, int line)
{
    if (slice_equal(buf_view(got), buf_view(first)) || slice_equal(buf_view(got), buf_view(second))) return;
    test_failed(file, line, "deed %d, call %u:\n%.*s\nis neither\n%.*s\nnor\n%.*s", deed, number,
                SLICE_ARG(buf_view(got)), SLICE_ARG(buf_view(first)), SLICE_ARG(buf_view(second)));
}
#define EXPECT_STATES(got, first, second, deed, number)                                                      \
    expect_states(got, first, second, deed, number, __FILE__, __LINE__)

static void states_of(enum deed deed, struct buf *before, struct buf *after)
{
    struct lab lab;
    furnish(&lab, false);
    *before = state_of(&lab);
    CHECK_INT(carry_out(&lab, deed) / 100, 2);
    *after = state_of(&lab);
    CHECK(!slice_equal(buf_view(before), buf_view(after)));
    lab_close(&lab);
}

/* ---- somebody dies ---- */

/* Dies at the call, before it happens or behind it; the next server finds the old or the new, tidies up, and can do
 * the same. False: it had come through before. */
static bool die_at(enum deed deed, unsigned number, bool late, const struct buf *before,
                   const struct buf *after)
{
    struct lab first, dying, next;
    struct gate gate;
    int parts, parts_after, gone;
    gate_open(&gate, furnish(&first, false));
    lab_open_on(&dying, &gate.door, false);
    gate.calls = 0;
    gate.dies_at = number;
    gate.dies_late = late;
    int status = carry_out(&dying, deed);
    bool has_died = gate.calls >= number;
    gate.dies_at = 0;
    lab_close(&dying);
    lab_open_on(&next, gate.inner, false);
    struct buf state = state_of(&next);
    EXPECT_STATES(&state, before, after, deed, number);
    if (status / 100 == 2) EXPECT_STATES(&state, after, after, deed, number);
    count_items(gate.inner, &parts, &gone);
    if (slice_equal(buf_view(&state), buf_view(before))) CHECK_INT(carry_out(&next, deed) / 100, 2);
    buf_free(&state);
    state = state_of(&next);
    EXPECT_STATES(&state, after, after, deed, number);
    buf_free(&state);
    count_items(gate.inner, &parts_after, &gone);
    lab_close(&next);
    lab_close(&first);
    gate_close(&gate);
    /* Of f there are $LATEST, 1, alias:live and async:live: nothing of the dead one is left. */
    static const int more[DEEDS] = {
        [UPDATE] = 1, [PUBLISH] = 1, [MAKE_ALIAS] = 1, [DROP_ALIAS] = -2, [DELETE] = -4, [CREATE] = 2};
    CHECK(parts == 4 || parts == 4 + more[deed]);
    CHECK_INT(parts_after, 4 + more[deed]);
    return has_died;
}

TEST(registry_dies_between_any_two_calls)
{
    for (enum deed deed = 0; deed < DEEDS; deed++) {
        struct buf before, after;
        unsigned number = 1;
        states_of(deed, &before, &after);
        while (number < CALLS_MAX && die_at(deed, number, false, &before, &after)) number++;
        CHECK(number > 3 && number < CALLS_MAX);
        for (unsigned i = 1; i < number; i++) die_at(deed, i, true, &before, &after);
        buf_free(&before);
        buf_free(&after);
    }
}

/* A door that repeats what it got no reply for: a condition that fails then is our own doing. */
TEST(registry_bears_writes_that_happen_twice)
{
    for (enum deed deed = 0; deed < DEEDS; deed++) {
        struct buf before, after;
        struct lab first, doubled;
        struct gate gate;
        states_of(deed, &before, &after);
        gate_open(&gate, furnish(&first, false));
        gate.is_doubled = true;
        lab_open_on(&doubled, &gate.door, false);
        CHECK_INT(carry_out(&doubled, deed) / 100, 2);
        struct buf state = state_of(&doubled);
        EXPECT_STATES(&state, &after, &after, deed, 0);
        lab_close(&doubled);
        lab_close(&first);
        gate_close(&gate);
        buf_free(&state);
        buf_free(&before);
        buf_free(&after);
    }
}

/* G4: a creation that comes once more when the function is gone again. */
TEST(registry_late_creations_find_it_gone)
{
    struct lab first, lab;
    struct gate gate;
    struct buf reply = {0};
    gate_open(&gate, furnish(&first, false));
    gate.keeps = "attribute_not_exists(#name)";
    lab_open_on(&lab, &gate.door, false);
    CHECK_INT(create(&lab, "g", "three"), 201);
    gate.keeps = NULL;
    LAB_EXPECT(&lab, "DELETE", FUNCTIONS "/g", NULL, 204);
    CHECK_INT(dynamo_call(gate.inner, SLICE("PutItem"), buf_view(&gate.kept), &reply), 400);
    LAB_EXPECT(&lab, "GET", FUNCTIONS "/g", NULL, 404);
    CHECK_INT(create(&lab, "g", "four"), 201);
    LAB_EXPECT(&lab, "GET", FUNCTIONS "/g", NULL, 200);
    buf_free(&reply);
    lab_close(&lab);
    lab_close(&first);
    gate_close(&gate);
}

/* ---- two servers ---- */

struct other {
    struct lab *lab;
    enum deed deeds[2]; /* DEEDS: none */
    struct buf state;   /* where it only looks */
    bool looks;
};

static void act(void *context)
{
    struct other *other = context;
    if (other->looks) other->state = state_of(other->lab);
    for (int i = 0; i < 2 && !other->looks; i++)
        if (other->deeds[i] != DEEDS) carry_out(other->lab, other->deeds[i]);
}

/* Between any two calls of a change another server sees the old or the new. */
TEST(registry_readers_see_no_mixture)
{
    for (enum deed deed = 0; deed < DEEDS; deed++) {
        struct buf before, after;
        states_of(deed, &before, &after);
        for (unsigned number = 1; number < CALLS_MAX; number++) {
            struct lab first, writer;
            struct gate gate;
            gate_open(&gate, furnish(&first, true));
            struct other other = {.lab = &first, .looks = true};
            gate.act = act;
            gate.context = &other;
            lab_open_on(&writer, &gate.door, true);
            gate.calls = 0;
            gate.acts_at = number;
            CHECK_INT(carry_out(&writer, deed) / 100, 2);
            gate.acts_at = 0;
            bool has_looked = other.state.len != 0;
            if (has_looked) EXPECT_STATES(&other.state, &before, &after, deed, number);
            buf_free(&other.state);
            lab_close(&writer);
            lab_close(&first);
            gate_close(&gate);
            if (!has_looked) break;
        }
        buf_free(&before);
        buf_free(&after);
    }
}

/* The same for a reader that reads one item at a time, with a whole change between two of them. */
TEST(registry_readers_of_single_items_see_no_mixture)
{
    for (enum deed deed = 0; deed < CREATE; deed++)
        for (unsigned number = 1; number < CALLS_MAX; number++) {
            struct lab first, reader;
            struct gate gate;
            gate_open(&gate, furnish(&first, true));
            struct other other = {.lab = &first, .deeds = {deed, DEEDS}};
            gate.act = act;
            gate.context = &other;
            gate.pages_of = 1;
            lab_open_on(&reader, &gate.door, true);
            gate.calls = 0;
            gate.acts_at = number;
            struct answer answer = lab_send(&reader, "GET", FUNCTIONS "/f", NULL, NULL);
            CHECK(answer.status == 200 || deed == DELETE);
            bool has_acted = gate.calls >= number;
            gate.acts_at = 0;
            struct entry *entry = registry_known(reader.func->registry, SLICE("f"));
            const struct part *head = entry ? entry_part(entry, SLICE(PART_FUNCTION)) : NULL;
            struct arena arena = {0};
            if (head) CHECK_INT(document_object(&head->document, "Parts", &arena).count + 1, entry->count);
            if (!head) CHECK_INT(deed, DELETE);
            arena_free(&arena);
            entry_release(entry);
            answer_free(&answer);
            lab_close(&reader);
            lab_close(&first);
            gate_close(&gate);
            if (!has_acted) break;
        }
}

/* Each part that a head names is there, and nothing is lost that was acknowledged. */
static void check_whole(struct lab *lab, char name)
{
    struct arena arena = {0};
    bool failed;
    struct entry *entry = registry_read(lab->func->registry, (struct slice){&name, 1}, &failed);
    CHECK(!failed);
    const struct part *head = entry ? entry_part(entry, SLICE(PART_FUNCTION)) : NULL;
    if (entry) CHECK(head && entry_part(entry, SLICE(PART_LATEST)));
    if (head) CHECK_INT(document_object(&head->document, "Parts", &arena).count + 1, entry->count);
    entry_release(entry);
    arena_free(&arena);
}

/* Between any two calls of one server's change another one makes a whole one, or two. */
static void meddle(enum deed mine, enum deed theirs, enum deed next)
{
    for (unsigned number = 1; number < CALLS_MAX; number++) {
        struct lab first, writer;
        struct gate gate;
        gate_open(&gate, furnish(&first, true));
        struct other other = {.lab = &first, .deeds = {theirs, next}};
        gate.act = act;
        gate.context = &other;
        lab_open_on(&writer, &gate.door, true);
        gate.calls = 0;
        gate.acts_at = number;
        int status = carry_out(&writer, mine);
        bool has_acted = gate.calls >= number;
        gate.acts_at = 0;
        check_whole(&writer, 'f');
        check_whole(&writer, 'g');
        struct buf state = state_of(&first);
        bool is_there = slice_starts(buf_view(&state), SLICE("f 200"));
        if (!has_acted) CHECK_INT(status / 100, 2);
        if (theirs == DELETE && has_acted) CHECK(!is_there && (status / 100 == 2 || status == 404));
        if (mine == CONFIGURE && theirs == UPDATE && has_acted) /* both, in either order */
            CHECK(status == 200 && slice_contains(buf_view(&state), SLICE("\" 9 ")) &&
                  slice_contains(buf_view(&state), SLICE(" \"2\" ")));
        if (mine == MAKE_ALIAS && has_acted)
            CHECK(status == 201 && slice_contains(buf_view(&state), SLICE("\"next\"")) &&
                  !slice_contains(buf_view(&state), SLICE("\"live\"")));
        if (mine == UPDATE) CHECK(status == 200 && slice_contains(buf_view(&state), SLICE(" \"2\" ")));
        buf_free(&state);
        lab_close(&writer);
        lab_close(&first);
        gate_close(&gate);
        if (!has_acted) break;
    }
}

TEST(registry_servers_change_the_same_function)
{
    meddle(CONFIGURE, UPDATE, PUBLISH);
    meddle(CONFIGURE, DELETE, DEEDS);
    meddle(MAKE_ALIAS, DROP_ALIAS, DEEDS);
    meddle(UPDATE, PUBLISH, CONFIGURE);
    meddle(DROP_ALIAS, MOVE_ALIAS, DEEDS);
    meddle(DELETE, UPDATE, DEEDS);
    meddle(CREATE, CREATE, DEEDS);
    meddle(LAYER, LAYER, DEEDS);
}

static void create_and_delete(void *context)
{
    struct lab *lab = context;
    if (create(lab, "g", "four") == 201) LAB_EXPECT(lab, "DELETE", FUNCTIONS "/g", NULL, 204);
}

static void create_delete_create(void *context)
{
    create_and_delete(context);
    create(context, "g", "five");
}

/* G4, G5: while one creates a function another one creates and deletes it, and removes the first one's parts. */
TEST(registry_creations_meet_deletions)
{
    for (int round = 0; round < 2; round++)
        for (unsigned number = 1; number < CALLS_MAX; number++) {
            struct lab first, writer;
            struct gate gate;
            gate_open(&gate, furnish(&first, true));
            gate.act = round ? create_delete_create : create_and_delete;
            gate.context = &first;
            lab_open_on(&writer, &gate.door, true);
            gate.calls = 0;
            gate.acts_at = number;
            int status = create(&writer, "g", "three");
            bool has_acted = gate.calls >= number;
            gate.acts_at = 0;
            CHECK(status == 201 || status == 409 || (round == 0 && status == 404));
            check_whole(&writer, 'g');
            check_whole(&first, 'g');
            if (status == 201) LAB_EXPECT(&first, "GET", FUNCTIONS "/g", NULL, 200);
            lab_close(&writer);
            lab_close(&first);
            gate_close(&gate);
            if (!has_acted) break;
        }
}

/* What a dead server did not tell is told by another one. */
TEST(registry_dead_changes_are_told)
{
    bool was_seen = false;
    for (unsigned number = 1; number < CALLS_MAX && !was_seen; number++) {
        struct lab first, dying;
        struct gate gate;
        gate_open(&gate, furnish(&first, true));
        lab_open_on(&dying, &gate.door, true);
        gate.calls = 0;
        gate.dies_at = number;
        gate.dies_late = true;
        bool has_died = carry_out(&dying, CONFIGURE) / 100 != 2;
        lab_close(&dying);
        gate_close(&gate);
        first.now_ms += 61 * 1000;
        CHECK(registry_refresh(first.func->registry)); /* ends it ... */
        CHECK(registry_refresh(first.func->registry)); /* ... and reads */
        struct function *known = registry_function(first.func, SLICE("f"), SLICE(""), 0);
        struct entry *entry = registry_known(first.func->registry, SLICE("f"));
        struct entry *read = registry_read_anyway(first.func->registry, SLICE("f"));
        CHECK(entry && read && entry->stamp == read->stamp);
        was_seen = has_died && known->timeout_ms == 9000;
        function_release(known);
        entry_release(entry);
        entry_release(read);
        lab_close(&first);
    }
    CHECK(was_seen);
}

/* With other servers strays wait for an hour, and so does the head of what is deleted. */
TEST(registry_shared_strays_wait_before_they_go)
{
    struct lab first, dying;
    struct gate gate;
    int parts, gone;
    gate_open(&gate, furnish(&first, true));
    gate.keeps = "\"$LATEST@";
    lab_open_on(&dying, &gate.door, true);
    CHECK_INT(carry_out(&dying, CREATE), 201);
    gate.keeps = NULL;
    LAB_EXPECT(&dying, "DELETE", FUNCTIONS "/g", NULL, 204);
    struct buf reply = {0};
    CHECK_INT(dynamo_call(gate.inner, SLICE("PutItem"), buf_view(&gate.kept), &reply), 200); /* comes late */
    lab_close(&dying);
    count_items(gate.inner, &parts, &gone);
    CHECK(parts == 5 && gone == 1);
    lab_reopen(&first);
    count_items(gate.inner, &parts, &gone);
    CHECK(parts == 5 && gone == 1);
    first.now_ms += 3601 * 1000;
    lab_reopen(&first);
    count_items(gate.inner, &parts, &gone);
    CHECK(parts == 4 && gone == 1); /* behind a Stamp that has moved */
    first.now_ms += 3601 * 1000;
    lab_reopen(&first);
    count_items(gate.inner, &parts, &gone);
    CHECK(parts == 4 && gone == 0);
    buf_free(&reply);
    lab_close(&first);
    gate_close(&gate);
}

/* Heads of deleted functions do not pile up while one server runs for long. */
TEST(registry_heads_of_deleted_functions_go)
{
    struct lab lab;
    int parts, gone;
    furnish(&lab, false);
    CHECK_INT(create(&lab, "g", "three"), 201);
    LAB_EXPECT(&lab, "DELETE", FUNCTIONS "/g", NULL, 204);
    count_items(lab.dynamo, &parts, &gone);
    CHECK_INT(gone, 1);
    lab.now_ms += 3601 * 1000;
    for (int i = 0; i < 249; i++) {
        CHECK_INT(create(&lab, "other", "three"), 201);
        LAB_EXPECT(&lab, "DELETE", FUNCTIONS "/other", NULL, 204);
    }
    count_items(lab.dynamo, &parts, &gone);
    CHECK(gone == 0 && parts == 4);
    lab_close(&lab);
}

/* A part that somebody has removed by hand: the rest goes on. */
TEST(registry_bears_a_missing_part)
{
    struct lab lab;
    struct arena arena = {0};
    furnish(&lab, false);
    struct entry *entry = registry_known(lab.func->registry, SLICE("f"));
    const struct part *alias = entry_part_of(entry, PART_ALIAS, SLICE("live"));
    lab_dynamo(&lab, "DeleteItem",
               arena_printf(&arena,
                            "{\"TableName\":\"quipu-functions\",\"Key\":{\"name\":{\"S\":\"f\"},"
                            "\"part\":{\"S\":\"alias:live@%.*s\"}}}",
                            SLICE_ARG(alias->mark))
                   .data,
               &arena);
    entry_release(entry);
    lab_reopen(&lab);
    LAB_EXPECT(&lab, "GET", FUNCTIONS "/f", NULL, 200);
    LAB_EXPECT(&lab, "GET", FUNCTIONS "/f:live", NULL, 404);
    LAB_EXPECT(&lab, "POST", FUNCTIONS "/f/aliases", "{\"Name\":\"live\",\"FunctionVersion\":\"1\"}", 201);
    LAB_EXPECT(&lab, "GET", FUNCTIONS "/f:live", NULL, 200);
    arena_free(&arena);
    lab_close(&lab);
}

/* A table in which parts have no marks: its functions can be read and changed, and get marks then. */
TEST(registry_reads_older_tables)
{
    static const char *const items[] = {
        "\"part\":{\"S\":\"function\"},\"Stamp\":{\"N\":\"17\"},\"LastVersion\":{\"N\":\"1\"}",
        "\"part\":{\"S\":\"$LATEST\"},\"Timeout\":{\"N\":\"4\"},\"CodeSha256\":{\"S\":\"a\"},"
        "\"Quipu\":{\"M\":{\"Url\":{\"S\":\"http://h/\"}}}",
        "\"part\":{\"S\":\"1\"},\"Timeout\":{\"N\":\"5\"},\"CodeSha256\":{\"S\":\"b\"},"
        "\"Quipu\":{\"M\":{\"Url\":{\"S\":\"http://h/\"}}}",
        "\"part\":{\"S\":\"alias:live\"},\"FunctionVersion\":{\"S\":\"1\"}",
    };
    struct lab lab;
    struct arena arena = {0};
    int parts, gone;
    furnish(&lab, false);
    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        lab_dynamo(&lab, "PutItem",
                   arena_printf(&arena,
                                "{\"TableName\":\"quipu-functions\",\"Item\":{\"name\":{\"S\":\"g\"},%s}}",
                                items[i])
                       .data,
                   &arena);
    lab_reopen(&lab);
    struct buf state = {0};
    put_function(&lab, 'g', &state);
    CHECK_TEXT(buf_view(&state),
               "g 200 \"a\" 4 Versions 200: \"$LATEST\" \"a\" \"1\" \"b\" Aliases 200: \"live\" \"1\" "
               "FunctionEventInvokeConfigs 200:\n");
    LAB_EXPECT(&lab, "PUT", FUNCTIONS "/g/aliases/live", "{\"FunctionVersion\":\"$LATEST\"}", 200);
    state.len = 0;
    put_function(&lab, 'g', &state);
    CHECK_TEXT(buf_view(&state),
               "g 200 \"a\" 4 Versions 200: \"$LATEST\" \"a\" \"1\" \"b\" Aliases 200: \"live\" \"$LATEST\" "
               "FunctionEventInvokeConfigs 200:\n");
    count_items(lab.dynamo, &parts, &gone);
    CHECK_INT(parts, 5); /* f's, and the alias */
    LAB_EXPECT(&lab, "DELETE", FUNCTIONS "/g", NULL, 204);
    lab_reopen(&lab);
    struct slice left = lab_dynamo(
        &lab, "Query",
        "{\"TableName\":\"quipu-functions\",\"KeyConditionExpression\":\"#n = :n\","
        "\"ExpressionAttributeNames\":{\"#n\":\"name\"},"
        "\"ExpressionAttributeValues\":{\":n\":{\"S\":\"g\"}}}",
        &arena);
    CHECK(slice_contains(left, SLICE("\"Count\":0")));
    buf_free(&state);
    arena_free(&arena);
    lab_close(&lab);
}
