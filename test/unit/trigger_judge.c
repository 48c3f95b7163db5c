/* What follows from results, errors and leases: every case of the consumer's decisions. */
#include "base/limits.h"
#include "trigger/judge.h"
#include "unit/test.h"

static struct record_page page = {.arrived_ms = 1000, .arrived_us = 5000000};

static struct record record_at(const char *sequence, int64_t created_ms)
{
    return (struct record){
        .event = SLICE("{\"a\":1}"), .sequence = slice_of(sequence), .page = &page, .created_ms = created_ms};
}

static struct cut whole_cut(uint32_t batch_size, int64_t window_ms)
{
    return (struct cut){.batch_size = batch_size,
                        .window_ms = window_ms,
                        .before_ms = INT64_MAX,
                        .room_bytes = LIMIT_EVENT_BYTES,
                        .now_ms = 1000,
                        .now_us = 5000000};
}

static uint32_t take_of(const struct record *records, uint32_t count, const struct cut *cut)
{
    return batch_cut(records, count, cut).take;
}

/* ---- batches ---- */

TEST(batch_takes_what_is_there_without_a_window)
{
    struct record records[3] = {record_at("1", 1), record_at("2", 1), record_at("3", 1)};
    struct cut cut = whole_cut(100, 0);
    CHECK_INT(take_of(records, 3, &cut), 3);
    CHECK_INT(take_of(records, 0, &cut), 0);
    CHECK(batch_cut(records, 0, &cut).ready.ticks_us == NEVER_US);
    cut.batch_size = 2;
    CHECK_INT(take_of(records, 3, &cut), 2);
}

TEST(batch_waits_for_its_window_on_either_clock)
{
    struct record records[2] = {record_at("1", 1), record_at("2", 1)};
    struct cut cut = whole_cut(3, 10000);
    CHECK_INT(take_of(records, 2, &cut), 0);
    CHECK_INT(batch_cut(records, 2, &cut).ready.now_ms, 11000);
    CHECK_INT(batch_cut(records, 2, &cut).ready.ticks_us, 15000000);
    cut.now_ms = 10999;
    CHECK_INT(take_of(records, 2, &cut), 0);
    cut.now_ms = 11000;
    CHECK_INT(take_of(records, 2, &cut), 2);
    cut.now_ms = 0; /* set back: the other clock goes on */
    cut.now_us = 15000000;
    CHECK_INT(take_of(records, 2, &cut), 2);
}

TEST(batch_is_full_before_its_window)
{
    struct record records[3] = {record_at("1", 1), record_at("2", 1), record_at("3", 1)};
    struct cut cut = whole_cut(3, 10000);
    CHECK_INT(take_of(records, 3, &cut), 3);
    CHECK_INT(take_of(records, 2, &cut), 0);
    cut.is_last = true;
    CHECK_INT(take_of(records, 2, &cut), 2);
}

TEST(batch_is_cut_at_its_bytes_but_takes_one)
{
    struct record records[3] = {record_at("1", 1), record_at("2", 1), record_at("3", 1)};
    struct cut cut = whole_cut(3, 10000);
    cut.room_bytes = 16; /* two records of seven bytes, each with a comma */
    CHECK_INT(take_of(records, 3, &cut), 2);
    CHECK_INT(take_of(records, 2, &cut), 0); /* another could be smaller, but this one still waits */
    cut.room_bytes = 1;
    CHECK_INT(take_of(records, 3, &cut), 1);
}

TEST(batch_keeps_windows_and_loops_apart)
{
    struct record records[4] = {record_at("1", 1000), record_at("2", 1999), record_at("3", 2000),
                                record_at("4", 900)};
    struct cut cut = whole_cut(10, 10000);
    cut.before_ms = 2000;
    CHECK_INT(take_of(records, 4, &cut), 2);
    CHECK_INT(take_of(records, 2, &cut), 0);
    records[0].is_looped = true;
    CHECK_INT(take_of(records, 4, &cut), 1);
    CHECK_INT(take_of(records, 1, &cut), 1); /* nobody waits for what is not handed over */
}

TEST(window_starts_are_multiples)
{
    CHECK_INT(window_start_ms(0, 1000), 0);
    CHECK_INT(window_start_ms(999, 1000), 0);
    CHECK_INT(window_start_ms(1000, 1000), 1000);
    CHECK_INT(window_start_ms(-1, 1000), -1000);
}

/* ---- before an invocation ---- */

static struct mapping plain_mapping(void)
{
    return (struct mapping){.retries_max = -1, .age_max_ms = -1};
}

static void check_next(const struct mapping *mapping, const struct record *records, int64_t now_ms,
                       uint32_t count, const char *condition)
{
    struct next_step step = judge_next(mapping, records, 3, now_ms);
    CHECK_INT(step.count, count);
    CHECK_TEXT(slice_of(step.condition ? step.condition : "none"), condition ? condition : "none");
}

TEST(a_batch_is_handed_over_until_its_retries_are_used_up)
{
    struct record records[3] = {record_at("1", 1000), record_at("2", 2000), record_at("3", 3000)};
    struct mapping mapping = plain_mapping();
    records[0].failures = 1000;
    check_next(&mapping, records, 4000, 3, NULL);
    mapping.retries_max = 0;
    records[0].failures = 0;
    check_next(&mapping, records, 4000, 3, NULL);
    records[0].failures = 1;
    check_next(&mapping, records, 4000, 3, "RetryAttemptsExhausted");
    mapping.retries_max = 3;
    records[0].failures = 3;
    check_next(&mapping, records, 4000, 3, NULL);
    records[0].failures = 4;
    check_next(&mapping, records, 4000, 3, "RetryAttemptsExhausted");
}

TEST(old_records_are_given_up_alone)
{
    struct record records[3] = {record_at("1", 1000), record_at("2", 2000), record_at("3", 3000)};
    struct mapping mapping = plain_mapping();
    mapping.age_max_ms = 60000;
    check_next(&mapping, records, 61000, 3, NULL);
    check_next(&mapping, records, 61001, 1, "RecordAgeExceeded");
    check_next(&mapping, records, 62500, 2, "RecordAgeExceeded");
    check_next(&mapping, records, 90000, 3, "RecordAgeExceeded");
}

TEST(retries_without_a_limit_end_with_the_streams_own_age)
{
    struct record records[3] = {record_at("1", 1000), record_at("2", 2000), record_at("3", 3000)};
    struct mapping mapping = plain_mapping();
    int64_t day_ms = 24ll * 3600 * 1000;
    check_next(&mapping, records, day_ms + 9000, 3, NULL); /* late, but it never failed */
    records[0].failures = 1;
    check_next(&mapping, records, day_ms + 1000, 3, NULL);
    check_next(&mapping, records, day_ms + 2001, 2, "RecordAgeExceeded");
}

TEST(what_a_function_caused_itself_is_kept_from_it)
{
    struct record records[3] = {record_at("1", 1000), record_at("2", 2000), record_at("3", 3000)};
    struct mapping mapping = plain_mapping();
    records[0].is_looped = true;
    check_next(&mapping, records, 4000, 3, "RecursiveInvocation");
}

/* ---- behind it ---- */

static void check_verdict(const struct mapping *mapping, enum outcome outcome, uint32_t count, uint32_t done,
                          const char *expected)
{
    struct verdict verdict = judge_result(mapping, outcome, count, done);
    char text[100];
    snprintf(text, sizeof text, "%u%s%s%s", verdict.moves, verdict.splits ? " splits" : "",
             verdict.counts ? " counts" : "", verdict.pauses ? " pauses" : "");
    CHECK_TEXT(slice_of(text), expected);
}

TEST(every_result_has_its_consequence)
{
    struct mapping plain = plain_mapping(), halves = plain_mapping();
    halves.bisect = true;
    check_verdict(&plain, OUTCOME_DONE, 5, 0, "5");
    check_verdict(&halves, OUTCOME_DONE, 5, 0, "5");
    check_verdict(&plain, OUTCOME_FAILED, 5, 0, "0 counts pauses");
    check_verdict(&plain, OUTCOME_FAILED, 1, 0, "0 counts pauses");
    check_verdict(&halves, OUTCOME_FAILED, 5, 0, "0 splits");
    check_verdict(&halves, OUTCOME_FAILED, 1, 0, "0 counts pauses");
    check_verdict(&plain, OUTCOME_PARTIAL, 5, 2, "2 counts");
    check_verdict(&halves, OUTCOME_PARTIAL, 5, 2, "2");
    check_verdict(&plain, OUTCOME_PARTIAL, 5, 0, "0 counts pauses");
    check_verdict(&halves, OUTCOME_PARTIAL, 5, 0, "0 splits");
    check_verdict(&plain, OUTCOME_UNSENT, 5, 0, "0 pauses");
    check_verdict(&halves, OUTCOME_UNSENT, 5, 0, "0 pauses");
    check_verdict(&plain, OUTCOME_TOO_MUCH, 5, 0, "0 splits");
    check_verdict(&plain, OUTCOME_TOO_MUCH, 1, 0, "0 counts pauses");
}

TEST(pauses_grow_up_to_their_bound)
{
    for (uint32_t failures = 0; failures < 40; failures++) {
        struct random random;
        int64_t most = 0;
        random_seed(&random, failures + 1);
        for (int i = 0; i < 1000; i++) {
            int64_t pause = retry_after_us(failures, 5000000, random_next(&random));
            CHECK(pause >= 10000 && pause <= 5000000);
            if (pause > most) most = pause;
        }
        if (failures > 1 && failures < 8) CHECK(most > 10000 + (9000ll << (failures - 1)));
        if (failures > 12) CHECK(most > 4500000);
    }
}

/* ---- answers ---- */

static struct answer read_of(const char *reply, bool reports)
{
    struct arena arena = {0};
    struct answer answer;
    struct record records[3] = {record_at("100", 1), record_at("101", 1), record_at("200", 1)};
    answer_read(slice_of(reply), reports, records, 3, &arena, &answer);
    arena_free(&arena);
    return answer;
}

static void check_answer(const char *reply, enum outcome outcome, uint32_t done)
{
    struct answer answer = read_of(reply, true);
    if (answer.outcome != outcome || answer.done != done)
        test_failed(__FILE__, __LINE__, "%s: %d, %u", reply, answer.outcome, answer.done);
    CHECK((answer.fault != NULL) == (outcome == OUTCOME_FAILED));
    CHECK_INT(read_of(reply, false).outcome, OUTCOME_DONE);
}

TEST(answers_say_where_a_batch_failed)
{
    check_answer("", OUTCOME_DONE, 0);
    check_answer("null", OUTCOME_DONE, 0);
    check_answer("{}", OUTCOME_DONE, 0);
    check_answer("\"fine\"", OUTCOME_DONE, 0);
    check_answer("{\"batchItemFailures\":null}", OUTCOME_DONE, 0);
    check_answer("{\"batchItemFailures\":[]}", OUTCOME_DONE, 0);
    check_answer("{\"batchItemFailures\":[{\"itemIdentifier\":\"101\"}]}", OUTCOME_PARTIAL, 1);
    check_answer("{\"x\":1, \"batchItemFailures\" : [ {\"itemIdentifier\":\"200\"}, "
                 "{\"note\":[1],\"itemIdentifier\":\"100\"} ]}",
                 OUTCOME_PARTIAL, 0);
    check_answer("{\"batchItemFailures\":[{\"itemIdentifier\":\"200\"}]}", OUTCOME_PARTIAL, 2);
}

TEST(answers_that_cannot_be_understood_mean_that_all_failed)
{
    check_answer("{\"batchItemFailures\":{}}", OUTCOME_FAILED, 0);
    check_answer("{\"batchItemFailures\":\"101\"}", OUTCOME_FAILED, 0);
    check_answer("{\"batchItemFailures\":[{\"itemIdentifier\":\"\"}]}", OUTCOME_FAILED, 0);
    check_answer("{\"batchItemFailures\":[{\"itemIdentifier\":null}]}", OUTCOME_FAILED, 0);
    check_answer("{\"batchItemFailures\":[{\"itemIdentifer\":\"101\"}]}", OUTCOME_FAILED, 0);
    check_answer("{\"batchItemFailures\":[{\"itemIdentifier\":\"102\"}]}", OUTCOME_FAILED, 0);
    check_answer("{\"batchItemFailures\":[{\"itemIdentifier\":\"300\"}]}", OUTCOME_FAILED, 0);
    check_answer("{\"batchItemFailures\":[{\"itemIdentifier\":\"0101\"}]}", OUTCOME_FAILED, 0);
    check_answer("{\"batchItemFailures\":[\"101\"]}", OUTCOME_FAILED, 0);
    check_answer("{\"batchItemFailures\":[", OUTCOME_FAILED, 0);
    check_answer("no json", OUTCOME_FAILED, 0);
    check_answer("{} {}", OUTCOME_FAILED, 0);
}

TEST(answers_carry_the_state_of_a_window)
{
    CHECK_TEXT(read_of("{\"state\": {\"n\":1} }", false).state, "{\"n\":1}");
    CHECK_TEXT(read_of("{\"state\":null}", false).state, "");
    CHECK_TEXT(read_of("{\"states\":1}", false).state, "");
    CHECK_TEXT(read_of("{\"state\":1", false).state, "");
    CHECK_TEXT(read_of("{\"batchItemFailures\":[{\"itemIdentifier\":\"101\"}],\"state\":7}", true).state,
               "7");
}

TEST(sequence_numbers_are_compared_as_numbers)
{
    CHECK(sequence_compare(SLICE("9"), SLICE("10")) < 0);
    CHECK(sequence_compare(SLICE("000009"), SLICE("10")) < 0);
    CHECK(sequence_compare(SLICE("0010"), SLICE("10")) == 0);
    CHECK(sequence_compare(SLICE("4421584500000000017450439091"), SLICE("4421584500000000017450439092")) < 0);
    CHECK(sequence_compare(SLICE("000000000000000000123"), SLICE("000000000000000000099")) > 0);
    CHECK(sequence_compare(SLICE("0"), SLICE("")) == 0);
}

/* ---- errors ---- */

/* ---- leases ---- */

/* "a": held by a; "a>b": b has asked for it; "-": free; "->b": given up for b; "." in front: not open. */
static void view_of(char *text, struct lease_view *view)
{
    view->is_open = *text != '.';
    if (*text == '.') text++;
    char *arrow = strchr(text, '>');
    view->wanted = arrow ? arrow + 1 : "";
    if (arrow) *arrow = 0;
    view->owner = strcmp(text, "-") == 0 ? "" : text;
}

static void check_wishes(const char *leases, const char *me, const char *expected)
{
    char text[200], got[64] = "", *rest;
    struct lease_view views[16];
    enum lease_wish wishes[16];
    uint32_t count = 0;
    snprintf(text, sizeof text, "%s", leases);
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        view_of(word, &views[count++]);
    lease_wishes(views, count, me, wishes);
    for (uint32_t i = 0; i < count; i++) got[i] = "-TA"[wishes[i]];
    if (strcmp(got, expected) != 0) test_failed(__FILE__, __LINE__, "%s: %s, not %s", leases, got, expected);
}

TEST(leases_are_shared_fairly)
{
    check_wishes("- - - -", "a", "TTTT");
    check_wishes("b - - -", "a", "-TT-"); /* two servers: two each */
    check_wishes("b b - -", "a", "--TT");
    check_wishes("b b b -", "a", "---T");
    check_wishes("b c - - -", "a", "--TT-");
    check_wishes("a a - -", "a", "--TT");
    check_wishes("a a b -", "a", "----"); /* b may have it */
    check_wishes(".- - .b", "a", "-T-");  /* only what is open is taken or counted; b is there */
}

TEST(leases_are_asked_for_when_somebody_has_more)
{
    check_wishes("b b b b", "a", "AA--");
    check_wishes("b b b", "a", "A--");
    check_wishes("b b", "a", "A-");
    check_wishes("b", "a", "-");
    check_wishes("a b b", "a", "---");
    check_wishes("a b b b", "a", "-A--");
    check_wishes("b>a b>a b b", "a", "----"); /* asked already */
    check_wishes("b>a b b b", "a", "-A--");
    check_wishes("b>c b b b", "a", "-A--");
    check_wishes("b b c c c c", "a", "--AA--");
}

TEST(leases_that_were_given_up_are_for_who_asked)
{
    check_wishes("->a ->a b b", "a", "TT--");
    check_wishes("->a ->a b b", "b", "----");
    check_wishes("->c - b b", "a", "-T--");
}

/* Servers that act on what they see come to rest, each with its share. */
TEST(leases_come_to_rest)
{
    for (unsigned servers = 1; servers <= 5; servers++)
        for (unsigned shards = 1; shards <= 12; shards++) {
            static const char *const all[] = {"a", "b", "c", "d", "e"};
            struct lease_view views[12];
            enum lease_wish wishes[12];
            for (unsigned i = 0; i < shards; i++) views[i] = (struct lease_view){"a", "", true};
            for (unsigned round = 0; round < 40; round++) {
                const char *me = all[round % servers];
                lease_wishes(views, shards, me, wishes);
                for (unsigned i = 0; i < shards; i++) {
                    if (wishes[i] == LEASE_TAKE) views[i] = (struct lease_view){me, "", true};
                    if (wishes[i] == LEASE_ASK) views[i].wanted = me;
                    if (strcmp(views[i].owner, me) == 0 && *views[i].wanted) views[i].owner = "";
                }
            }
            unsigned most = 0, least = shards;
            for (unsigned s = 0; s < servers; s++) {
                unsigned held = 0;
                for (unsigned i = 0; i < shards; i++) held += strcmp(views[i].owner, all[s]) == 0;
                if (held > most) most = held;
                if (held < least) least = held;
            }
            if (most - least > 1)
                test_failed(__FILE__, __LINE__, "%u servers, %u shards: %u to %u", servers, shards, least,
                            most);
        }
}
