/* What the targets of a `then` are told of a record. */
#include "unit/pattern_fixture.h"

#define RECORD(image)                                                                                        \
    "{\"eventID\":\"e1\",\"eventName\":\"MODIFY\",\"dynamodb\":{\"ApproximateCreationDateTime\":2678328805." \
    "5,"                                                                                                     \
    "\"Keys\":{\"id\":{\"S\":\"k\"}},\"NewImage\":{" image ",\"then\":{\"S\":\"f\"}}}}"

static const struct pattern_reaction *reaction_of(const char *table)
{
    for (size_t i = 0; i < pattern_reaction_count; i++)
        if (strcmp(pattern_reactions[i].table, table) == 0) return &pattern_reactions[i];
    ensure(false);
    return NULL;
}

static void expect(const char *table, const char *record, unsigned how, const char *expected)
{
    struct arena arena = {0};
    struct buf out = {0};
    struct pattern_record taken;
    CHECK(pattern_record_read(slice_of(record), &arena, &taken));
    CHECK_TEXT(taken.then, "f");
    pattern_put_event(&out, reaction_of(table), &taken, SLICE("e1-2"), how, &arena);
    CHECK_TEXT(buf_view(&out), expected);
    buf_free(&out);
    arena_free(&arena);
}

#define HEAD(source, type, time)                                                                             \
    "{\"version\":\"0\",\"id\":\"e1-2\",\"source\":\"" source "\",\"detail-type\":\"" type                   \
    "\",\"time\":\"" time "\",\"detail\":"

TEST(event_of_a_job)
{
    expect(
        "jobs",
        RECORD("\"id\":{\"S\":\"a/b\"},\"state\":{\"S\":\"COMPLETE\"},\"total\":{\"N\":\"10\"},"
               "\"failures\":{\"N\":\"2\"},\"full\":{\"NS\":[\"0\"]},\"closed\":{\"S\":\"2054-11-15T00:00:00.000Z\"}"),
        0,
        HEAD("quipu.jobs", "Job COMPLETE",
             "2054-11-15T00:00:00.000Z") "{\"path\":\"/v1/jobs/a%2Fb\",\"id\":\"a/b\",\"state\":\"COMPLETE\","
                                         "\"total\":10,\"closed\":\"2054-11-15T00:00:00.000Z\",\"done\":8,"
                                         "\"failed\":2,\"truncated\":true}}");
    expect("jobs",
           RECORD("\"id\":{\"S\":\"j\"},\"state\":{\"S\":\"EXPIRED\"},\"total\":{\"N\":\"10\"},"
                  "\"counted\":{\"N\":\"7\"}"),
           0,
           HEAD("quipu.jobs", "Job EXPIRED",
                "2054-11-15T04:13:25.000Z") "{\"path\":\"/v1/jobs/j\",\"id\":\"j\",\"state\":\"EXPIRED\","
                                            "\"total\":10,\"done\":7,\"truncated\":true}}");
}

#define GROUP                                                                                                \
    "\"name\":{\"S\":\"g\"},\"key\":{\"S\":\"k\"},\"generation\":{\"N\":\"3\"},\"state\":{"            \
    "\"S\":\"COMPLETE\"},\"fold\":{\"M\":{\"paid\":{\"N\":\"10\"},\"who\":{\"SS\":[\"a\"]}}}," \
    "\"opened\":{\"N\":\"2678328805000\"},\"completed\":{\"S\":\"T\"},\"events\":{\"L\":[{\"M\":{\"id\":{"   \
    "\"S\":\"1\"}}}]}"
#define GROUP_TOLD                                                                                           \
    HEAD("quipu.groups", "Group COMPLETE", "T")                                                              \
    "{\"path\":\"/v1/groups/g/k?generation=3\",\"name\":\"g\",\"key\":\"k\",\"generation\":3,"          \
    "\"state\":\"COMPLETE\",\"fold\":{\"paid\":10,\"who\":[\"a\"]},\"completed\":\"T\","                    \
    "\"opened\":\"2054-11-15T04:13:25.000Z\","

TEST(event_of_a_group_and_its_events)
{
    expect("groups", RECORD(GROUP), 0, GROUP_TOLD "\"events\":[{\"id\":\"1\"}]}}");
    expect("groups", RECORD(GROUP), PATTERN_EVENT_BRIEF, GROUP_TOLD "\"truncated\":true}}");
    expect("groups", RECORD(GROUP ",\"spilled\":{\"BOOL\":true}"), 0,
           GROUP_TOLD "\"truncated\":true}}");
}

TEST(event_of_a_bucket_in_several_parts)
{
    expect("period-buckets",
           RECORD("\"period\":{\"S\":\"p\"},\"bucket\":{\"S\":\"B\"},\"state\":{\"S\":\"DONE\"},"
                  "\"done\":{\"S\":\"T\"},\"count\":{\"N\":\"9\"},\"parts\":{\"N\":\"2\"}"),
           0,
           HEAD("quipu.periods", "Period DONE", "T") "{\"path\":\"/v1/periods/p/B\",\"period\":\"p\","
                                                     "\"bucket\":\"B\",\"state\":\"DONE\",\"count\":9,"
                                                     "\"parts\":2,\"truncated\":true}}");
}

TEST(event_with_its_record_for_the_places_of_a_call)
{
    expect("work", RECORD("\"queue\":{\"S\":\"q\"},\"id\":{\"S\":\"u\"},\"state\":{\"S\":\"DEAD\"}"),
           PATTERN_EVENT_RECORD,
           HEAD("quipu.work", "Work DEAD",
                "2054-11-15T04:13:25.000Z") "{\"path\":\"/v1/work/q/u\",\"queue\":\"q\",\"id\":\"u\","
                                            "\"state\":\"DEAD\"},\"eventID\":\"e1-2\","
                                            "\"eventName\":\"MODIFY\","
                                            "\"dynamodb\":{\"NewImage\":{\"queue\":{\"S\":\"q\"},"
                                            "\"id\":{\"S\":\"u\"},\"state\":{\"S\":\"DEAD\"},"
                                            "\"then\":{\"S\":\"f\"}},\"Keys\":{\"id\":{\"S\":\"k\"}}}}");
}

TEST(event_of_what_is_no_record)
{
    struct arena arena = {0};
    struct pattern_record record;
    CHECK(!pattern_record_read(SLICE("{}"), &arena, &record));
    CHECK(!pattern_record_read(SLICE("{\"eventID\":\"e\",\"dynamodb\":{\"NewImage\":{}}}"), &arena, &record));
    arena_free(&arena);
}
