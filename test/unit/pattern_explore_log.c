/* Logs in every order: no gap, no number twice, one reader per fence, fences only grow, a stale fence moves
 * nothing, children after parents, nothing unread is overlooked. */
#include "unit/pattern_explore.h"

#define LEASE_MS 30000
#define READ     "POST /v1/logs/l/consumers/g/read"
#define ACK      "POST /v1/logs/l/consumers/g/ack"
#define EVENTS   40

/* What a partition holds, in order. */
struct content {
    int64_t sequence; /* by its head */
    int64_t base;     /* numbers begin behind it: the parents' last */
    unsigned count;
    int64_t data[EVENTS];
    bool has_gap;
};

static int64_t int_of(struct outcome *outcome, struct slice object, const char *name)
{
    int64_t value = INT64_MIN;
    raw_int(raw_text(outcome->arena, raw_member(outcome->arena, object, name)), &value);
    return value;
}

static struct content content_of(struct outcome *outcome, const char *partition)
{
    char request[80];
    struct raw_walk walk;
    struct slice event;
    struct content content = {0};
    snprintf(request, sizeof request, "GET /v1/logs/l/partitions/%s", partition);
    struct slice page = outcome_ask(outcome, request, NULL);
    content.sequence = int_of(outcome, page, "sequence");
    struct slice parents = raw_member(outcome->arena, page, "parents");
    if (raw_count(outcome->arena, parents))
        content.base = int_of(outcome, raw_first(outcome->arena, parents), "end");
    raw_walk_begin(&walk, outcome->arena, raw_member(outcome->arena, page, "events"));
    while (content.count < EVENTS && raw_walk_next(&walk, NULL, &event)) {
        content.data[content.count++] = int_of(outcome, event, "data");
        if (int_of(outcome, event, "sequence") != content.base + content.count) content.has_gap = true;
    }
    return content;
}

static void check_content(struct outcome *outcome, const struct content *content)
{
    if (content->has_gap) outcome_fault(outcome, "a gap");
    if (content->sequence != content->base + content->count)
        outcome_fault(outcome, "%u events up to number %lld", content->count, (long long)content->sequence);
}

/* ---- appends ---- */

static void check_appends(struct outcome *outcome)
{
    struct content content = content_of(outcome, "0");
    check_content(outcome, &content);
    for (unsigned i = 0; i < outcome->count; i++) {
        int64_t sequence = outcome_int(outcome, i, "sequence");
        if (outcome->answers[i].status != 201)
            outcome_fault(outcome, "%.*s", SLICE_ARG(outcome->answers[i].body));
        else if (sequence < 1 || sequence > content.count || content.data[sequence - 1] != i)
            outcome_fault(outcome, "flow %u is not at its number %lld", i, (long long)sequence);
    }
}

static const struct exploration appends = {
    .name = "log appended to by three",
    .flows = {REQUEST("POST /v1/logs/l", "{\"key\":\"a\",\"data\":0}"),
              REQUEST("POST /v1/logs/l", "{\"key\":\"b\",\"data\":1}"),
              REQUEST("POST /v1/logs/l", "{\"key\":\"c\",\"data\":2}")},
    .before = {REQUEST("PUT /v1/logs/l", "{\"partitions\":1}"),
               REQUEST("POST /v1/logs/l", "{\"key\":\"a\",\"data\":9}")},
    .check = check_appends};

static const struct exploration new_appends = {
    .name = "log of one that was never written to",
    .flows = {REQUEST("POST /v1/logs/l", "{\"key\":\"a\",\"data\":0}"),
              REQUEST("POST /v1/logs/l", "{\"key\":\"b\",\"data\":1}")},
    .before = {REQUEST("PUT /v1/logs/l", "{\"partitions\":1}"),
               REQUEST("PUT /v1/logs/m", "{\"partitions\":1}"),
               REQUEST("POST /v1/logs/m", "{\"key\":\"a\",\"data\":9}")},
    .faults = 2,
    .check = check_appends};

TEST(explore_log_appends)
{
    explore(&appends);
    explore_broken(&appends, "attribute_not_exists(#first)",
                   "(attribute_not_exists(#first) or attribute_exists(#first))");
    explore(&new_appends);
}

/* Two calls with one token, one of them repeated by a crash: one event. */
static void check_tokens(struct outcome *outcome)
{
    struct content content = content_of(outcome, "0");
    unsigned count = 0;
    check_content(outcome, &content);
    for (unsigned i = 0; i < content.count; i++) count += content.data[i] == 0;
    if (count != 1) outcome_fault(outcome, "%u events of one token", count);
    if (outcome_int(outcome, 0, "sequence") != outcome_int(outcome, 1, "sequence"))
        outcome_fault(outcome, "two numbers of one token");
}

static const struct exploration tokens = {
    .name = "log with a repeated token",
    .flows = {REQUEST("POST /v1/logs/l", "{\"key\":\"a\",\"data\":0,\"token\":\"t\"}"),
              REQUEST("POST /v1/logs/l", "{\"key\":\"a\",\"data\":0,\"token\":\"t\"}")},
    .before = {REQUEST("PUT /v1/logs/l", "{\"partitions\":1}"),
               REQUEST("POST /v1/logs/l", "{\"key\":\"a\",\"data\":9,\"token\":\"x\"}")},
    .faults = 2,
    .check = check_tokens};

TEST(explore_log_tokens)
{
    explore(&tokens);
    explore_broken(&tokens, ",\"k\":{", ",\"nothing\":{");
}

/* ---- split and merge ---- */

/* The partition ends where its children say, and nothing is lost or doubled. */
static void check_split(struct outcome *outcome)
{
    static const char *const names[] = {"0", "1", "2"};
    unsigned found[3] = {0};
    struct content contents[3];
    for (unsigned i = 0; i < 3; i++) {
        contents[i] = content_of(outcome, names[i]);
        check_content(outcome, &contents[i]);
        for (unsigned k = 0; k < contents[i].count; k++)
            if (contents[i].data[k] < 3) found[contents[i].data[k]]++;
    }
    for (unsigned i = 1; i < 3; i++)
        if (found[i] != 1) outcome_fault(outcome, "event %u is there %u times", i, found[i]);
    struct slice page = outcome_ask(outcome, "GET /v1/logs/l/partitions/1", NULL);
    char end[60];
    snprintf(end, sizeof end, "\"end\":%lld", (long long)contents[0].sequence);
    if (!slice_contains(page, slice_of(end)))
        outcome_fault(outcome, "%lld events before %.*s", (long long)contents[0].sequence, SLICE_ARG(page));
}

static const struct exploration splits = {
    .name = "log split while others append",
    .flows = {REQUEST("POST /v1/logs/l/split", "{\"partition\":\"0\"}"),
              REQUEST("POST /v1/logs/l", "{\"key\":\"a\",\"data\":1,\"token\":\"t\"}"),
              REQUEST("POST /v1/logs/l", "{\"key\":\"b\",\"data\":2,\"token\":\"u\"}")},
    .before = {REQUEST("PUT /v1/logs/l", "{\"partitions\":1}"),
               REQUEST("POST /v1/logs/l", "{\"key\":\"a\",\"data\":9,\"token\":\"x\"}")},
    .check = check_split};

static const struct exploration crashed_splits = {
    .name = "log split again after a crash",
    .flows = {REQUEST("POST /v1/logs/l/split", "{\"partition\":\"0\"}"),
              REQUEST("POST /v1/logs/l", "{\"events\":[{\"key\":\"a\",\"data\":1,\"token\":\"t\"},"
                                         "{\"key\":\"a\",\"data\":2,\"token\":\"u\"}]}")},
    .before = {REQUEST("PUT /v1/logs/l", "{\"partitions\":1}"),
               REQUEST("POST /v1/logs/l", "{\"key\":\"a\",\"data\":9,\"token\":\"x\"}")},
    .faults = 1,
    .check = check_split};

TEST(explore_log_splits)
{
    explore(&splits);
    explore(&crashed_splits);
    explore_broken(&splits, "attribute_not_exists(#first)",
                   "(attribute_not_exists(#first) or attribute_exists(#first))");
}

/* Two merge overlapping neighbours: one of them wins, and no hash has two partitions. */
static void check_merges(struct outcome *outcome)
{
    struct raw_walk walk;
    struct slice log = outcome_ask(outcome, "GET /v1/logs/l", NULL), partition;
    unsigned done = 0, open = 0;
    for (unsigned i = 0; i < 2; i++) done += outcome->answers[i].status == 200;
    raw_walk_begin(&walk, outcome->arena, raw_member(outcome->arena, log, "open"));
    while (raw_walk_next(&walk, NULL, &partition)) open++;
    if (done != 1) outcome_fault(outcome, "%u merged", done);
    if (open != 2) outcome_fault(outcome, "%.*s", SLICE_ARG(log));
    struct slice sealed = outcome_ask(outcome, "GET /v1/logs/l/partitions/1", NULL);
    if (!slice_contains(sealed, SLICE("\"children\":[\"3\"]")))
        outcome_fault(outcome, "%.*s", SLICE_ARG(sealed));
}

static const struct exploration merges = {
    .name = "log merged by two",
    .flows = {REQUEST("POST /v1/logs/l/merge", "{\"partitions\":[\"0\",\"1\"]}"),
              REQUEST("POST /v1/logs/l/merge", "{\"partitions\":[\"1\",\"2\"]}")},
    .before = {REQUEST("PUT /v1/logs/l", "{\"partitions\":3}"),
               REQUEST("PUT /v1/logs/m", "{\"partitions\":2}"),
               REQUEST("POST /v1/logs/m/merge", "{\"partitions\":[\"0\",\"1\"]}")},
    .faults = 1,
    .check = check_merges};

TEST(explore_log_merges)
{
    explore(&merges);
}

/* ---- deleted and made anew ---- */

/* Whoever was told that its event is there finds it, unless the log was deleted behind it. */
static void check_anew(struct outcome *outcome)
{
    if (outcome->answers[0].status != 200)
        outcome_fault(outcome, "%.*s", SLICE_ARG(outcome->answers[0].body));
    if (outcome->answers[2].status != 201) return; /* it came before the end of the old one */
    struct content content = content_of(outcome, "0");
    int64_t sequence = outcome_int(outcome, 1, "sequence");
    check_content(outcome, &content);
    if (outcome->answers[1].event <= outcome->answers[2].event) return; /* its last call is the put */
    if (outcome->answers[1].status != 201)
        outcome_fault(outcome, "%.*s", SLICE_ARG(outcome->answers[1].body));
    else if (sequence != 1 || content.data[0] != 2)
        outcome_fault(outcome, "what was appended to the new log is not there");
}

static const struct exploration anew = {.name = "log deleted and made anew while others append",
                                        .flows = {REQUEST("DELETE /v1/logs/l", NULL),
                                                  REQUEST("POST /v1/logs/l", "{\"key\":\"a\",\"data\":2}"),
                                                  REQUEST("PUT /v1/logs/l", "{\"partitions\":1}")},
                                        .before = {REQUEST("PUT /v1/logs/l", "{\"partitions\":1}"),
                                                   REQUEST("POST /v1/logs/l", "{\"key\":\"a\",\"data\":9}"),
                                                   REQUEST("POST /v1/logs/l", "{\"key\":\"a\",\"data\":9}")},
                                        .check = check_anew};

TEST(explore_log_made_anew)
{
    explore(&anew);
}

/* Settings of a log that goes meanwhile: what is made then is a new log, not the old one. */
static void check_changed(struct outcome *outcome)
{
    struct slice reply = outcome_ask(outcome, "POST /v1/logs/l", "{\"key\":\"a\",\"data\":2}");
    if (!slice_contains(reply, SLICE("\"sequence\":1")) && !slice_contains(reply, SLICE("no-such-log")))
        outcome_fault(outcome, "%.*s", SLICE_ARG(reply));
}

static const struct exploration changed = {
    .name = "log changed while it is deleted",
    .flows = {REQUEST("DELETE /v1/logs/l", NULL), REQUEST("PUT /v1/logs/l", "{\"keep\":\"1h\"}")},
    .before = {REQUEST("PUT /v1/logs/l", "{\"partitions\":1}"),
               REQUEST("POST /v1/logs/l", "{\"key\":\"a\",\"data\":9}")},
    .check = check_changed};

TEST(explore_log_changed)
{
    explore(&changed);
}

/* ---- readers ---- */

/* clang-format off */
#define TWO_EVENTS                                                                                           \
    REQUEST("PUT /v1/logs/l", "{\"partitions\":1}"),                                                    \
    REQUEST("POST /v1/logs/l", "{\"events\":[{\"key\":\"a\",\"data\":1},{\"key\":\"a\",\"data\":2}]}")

/* The group is there, with a position that nobody holds, and so are the tables. */
#define GROUP_OF_NOBODY                                                                                      \
    REQUEST("POST /v1/logs/l/consumers/g/replay", "{\"time\":\"start\"}"),                              \
    REQUEST("POST /v1/logs/l/consumers/g/replay", "{\"partition\":\"0\",\"sequence\":1}")

/* clang-format on */

static void check_readers(struct outcome *outcome)
{
    unsigned got = 0;
    for (unsigned i = 0; i < 2; i++) got += outcome->answers[i].status == 200;
    if (got == 2 && outcome_int(outcome, 0, "fence") == outcome_int(outcome, 1, "fence"))
        outcome_fault(outcome, "one fence for two");
    if (got == 2 && outcome->answers[0].now_ms == outcome->answers[1].began_ms &&
        outcome->answers[1].now_ms == outcome->answers[0].began_ms)
        outcome_fault(outcome, "two at the same time");
    if (got == 0) outcome_fault(outcome, "nobody reads");
}

static const struct exploration readers = {
    .name = "log read by two",
    .flows = {REQUEST(READ, "{\"owner\":\"one\"}"), REQUEST(READ, "{\"owner\":\"two\"}")},
    .before = {TWO_EVENTS, GROUP_OF_NOBODY},
    .jumps = {LEASE_MS + 1},
    .check = check_readers};

static const struct exploration crashed_readers = {
    .name = "log read by two, one of which crashes",
    .flows = {REQUEST(READ, "{\"owner\":\"one\"}"), REQUEST(READ, "{\"owner\":\"two\"}")},
    .before = {TWO_EVENTS, GROUP_OF_NOBODY},
    .faults = 1,
    .never_late = true,
    .check = check_readers};

TEST(explore_log_readers)
{
    explore(&readers);
    explore(&crashed_readers);
    explore_broken(&readers, "#until < :now or", "#until < :now or :now > :turn or");
    explore_broken(&readers, "if_not_exists(#fence, :zero) + :one", ":one + :zero");
}

/* The first reader acks, perhaps when its time is over and another has read. */
static void check_acks(struct outcome *outcome)
{
    const struct explored_answer *old_ack = &outcome->answers[0], *read = &outcome->answers[1],
                                 *new_ack = &outcome->answers[2];
    struct slice lag = outcome_ask(outcome, "GET /v1/logs/l/consumers/g/lag", NULL);
    bool is_acked = old_ack->status == 200 || new_ack->status == 200;
    if (old_ack->status == 200 && new_ack->status == 200) outcome_fault(outcome, "acked by two fences");
    if (old_ack->status == 200 && read->status == 200 && read->event < old_ack->called)
        outcome_fault(outcome, "a stale fence moved something");
    if (int_of(outcome, lag, "lag") != (is_acked ? 0 : 2))
        outcome_fault(outcome, "%u %u %.*s", (unsigned)old_ack->status, (unsigned)new_ack->status,
                      SLICE_ARG(lag));
}

static const struct exploration acks = {
    .name = "log acked by an old and a new reader",
    .flows = {REQUEST(ACK, "{\"partition\":\"0\",\"fence\":1,\"sequence\":2}"),
              REQUEST(READ, "{\"owner\":\"two\"}"),
              REQUEST(ACK, "{\"partition\":\"0\",\"fence\":2,\"sequence\":2}")},
    .before = {TWO_EVENTS, REQUEST(READ, "{\"owner\":\"one\"}")},
    .jumps = {LEASE_MS + 1},
    .faults = 1,
    .never_late = true, /* the second ack is sent before its fence was given */
    .check = check_acks};

TEST(explore_log_acks)
{
    explore(&acks);
    explore_broken(&acks, "#fence = :fence and attribute_exists(#owner)",
                   "#fence >= :fence and attribute_exists(#owner)");
}

/* The child gets an event, the parent is not acked: nobody gets the child's before. */
static void check_children(struct outcome *outcome)
{
    outcome_ask(outcome, "POST /v1/logs/l", "{\"events\":[{\"key\":\"a\"},{\"key\":\"b\"},{\"key\":\"c\"}]}");
    struct slice first = outcome_text(outcome, 1, "partition");
    struct slice next = outcome_ask(outcome, READ, "{\"owner\":\"late\"}");
    if (!slice_equal(first, SLICE("0"))) outcome_fault(outcome, "%.*s is read", SLICE_ARG(first));
    if (next.len && !slice_contains(next, SLICE("\"partition\":\"0\"")))
        outcome_fault(outcome, "before its parent: %.*s", SLICE_ARG(next));
}

static const struct exploration children = {
    .name = "log read while it is split",
    .flows = {REQUEST("POST /v1/logs/l/split", "{\"partition\":\"0\"}"),
              REQUEST(READ, "{\"owner\":\"one\",\"max\":1}")},
    .before = {TWO_EVENTS, GROUP_OF_NOBODY},
    .faults = 1,
    .never_late = true,
    .check = check_children};

TEST(explore_log_children)
{
    explore(&children);
    explore_broken(&children, "\"end\":{\"N\":\"2\"}", "\"end\":{\"N\":\"0\"}");
}

/* ---- marks ---- */

/* A reader that finds nothing raises the mark while a replay goes back: what is unread stays to be found. */
static void check_replay(struct outcome *outcome)
{
    struct slice lag = outcome_ask(outcome, "GET /v1/logs/l/consumers/g/lag", NULL);
    if (int_of(outcome, lag, "lag") != 2) outcome_fault(outcome, "overlooked: %.*s", SLICE_ARG(lag));
}

static const struct exploration replays = {
    .name = "log replayed while its mark is raised",
    .flows = {REQUEST(READ, "{\"owner\":\"one\"}"),
              REQUEST("POST /v1/logs/l/consumers/g/replay", "{\"partition\":\"0\",\"sequence\":1}")},
    .before = {TWO_EVENTS, REQUEST(READ, "{\"owner\":\"one\"}"),
               REQUEST(ACK, "{\"partition\":\"0\",\"fence\":1,\"sequence\":2}")},
    .jumps = {60000},
    .faults = 1,
    .check = check_replay};

/* An append that takes its time: less than the overlap, which is what it may take. */
static void check_late_append(struct outcome *outcome)
{
    struct slice lag = outcome_ask(outcome, "GET /v1/logs/l/consumers/g/lag", NULL);
    if (int_of(outcome, lag, "lag") != 1) outcome_fault(outcome, "overlooked: %.*s", SLICE_ARG(lag));
}

static const struct exploration late_appends = {
    .name = "log appended to while its mark is raised",
    .flows = {REQUEST(READ, "{\"owner\":\"one\"}"),
              REQUEST("POST /v1/logs/l", "{\"key\":\"a\",\"data\":3,\"token\":\"t\"}")},
    .before = {TWO_EVENTS, REQUEST(READ, "{\"owner\":\"one\"}"),
               REQUEST(ACK, "{\"partition\":\"0\",\"fence\":1,\"sequence\":2}")},
    .jumps = {9000},
    .check = check_late_append};

TEST(explore_log_marks)
{
    explore(&replays);
    explore_broken(&replays, "\"ConditionExpression\":\"#turn = :turn\"",
                   "\"ConditionExpression\":\"attribute_exists(#turn) and :turn <> :mark0\"");
    explore(&late_appends);
}

/* A replay of one partition sets its position back once: whoever has read since keeps the partition, though others have
 * finished what the replay has begun, and the replay goes on late. (One that is repeated replays once more.) */
static void check_replay_once(struct outcome *outcome)
{
    char ack[80];
    if (outcome->answers[0].status != 200)
        outcome_fault(outcome, "%.*s", SLICE_ARG(outcome->answers[0].body));
    if (outcome->answers[1].status != 200 || outcome->answers[0].attempts > 1) return;
    snprintf(ack, sizeof ack, "{\"partition\":\"0\",\"fence\":%lld,\"sequence\":2}",
             (long long)outcome_int(outcome, 1, "fence"));
    struct slice reply = outcome_ask(outcome, ACK, ack);
    if (int_of(outcome, reply, "position") != 2) outcome_fault(outcome, "%.*s", SLICE_ARG(reply));
}

/* clang-format off */
#define READ_AND_ACKED                                                                                       \
    TWO_EVENTS, REQUEST(READ, "{\"owner\":\"one\"}"),                                                        \
    REQUEST(ACK, "{\"partition\":\"0\",\"fence\":1,\"sequence\":2}")

#define REPLAY_AND_READ                                                                                      \
    REQUEST("POST /v1/logs/l/consumers/g/replay", "{\"partition\":\"0\",\"sequence\":1}"),                   \
    REQUEST(READ, "{\"owner\":\"two\"}")
/* clang-format on */

static const struct exploration replays_once = {.name = "log replayed and read at the same time",
                                                .flows = {REPLAY_AND_READ},
                                                .before = {READ_AND_ACKED},
                                                .check = check_replay_once};

static const struct exploration crashed_replays = {
    .name = "log replayed and read, one of which crashes",
    .flows = {REPLAY_AND_READ},
    .before = {READ_AND_ACKED},
    .faults = 1,
    .never_late = true, /* a late copy of the read takes the partition again, for the same owner */
    .check = check_replay_once};

TEST(explore_log_replays)
{
    explore(&replays_once);
    explore(&crashed_replays);
    explore_broken(&replays_once, "#replayed < :turn", "#replayed <= :turn");
}

/* ---- parked ---- */

#define PARK          "POST /v1/logs/l/consumers/g/park"
#define PARK_FIRST    REQUEST(PARK, "{\"partition\":\"0\",\"fence\":1,\"sequence\":1}")
#define REPLAY_PARKED REQUEST("POST /v1/logs/l/consumers/g/replay", "{\"parked\":true}")

/* How many events the group's own partition holds. */
static int64_t events_again(struct outcome *outcome)
{
    struct slice pages = outcome_call(
        outcome, "Scan",
        "{\"TableName\":\"quipu-log-events\",\"FilterExpression\":\"contains(#c, :p)\","
        "\"ExpressionAttributeNames\":{\"#c\":\"chain\"},"
        "\"ExpressionAttributeValues\":{\":p\":{\"S\":\"/parked/g\"}}}");
    struct raw_walk walk;
    struct slice item;
    int64_t count = 0;
    raw_walk_begin(&walk, outcome->arena, raw_member(outcome->arena, pages, "Items"));
    while (raw_walk_next(&walk, NULL, &item)) count += item_int(outcome->arena, item, "n", 0);
    return count;
}

/* An event that was parked is read again once, however often it is replayed. */
static void check_parked(struct outcome *outcome)
{
    int64_t count = events_again(outcome);
    count += int_of(outcome, outcome_ask(outcome, "POST /v1/logs/l/consumers/g/replay", "{\"parked\":true}"),
                    "replayed");
    if (outcome->answers[0].status != 200)
        outcome_fault(outcome, "%.*s", SLICE_ARG(outcome->answers[0].body));
    if (count != 1) outcome_fault(outcome, "parked %lld times", (long long)count);
}

static const struct exploration parkings = {
    .name = "log with parked events that are replayed by two",
    .flows = {PARK_FIRST, REPLAY_PARKED, REPLAY_PARKED},
    .before = {TWO_EVENTS, REQUEST(READ, "{\"owner\":\"one\"}"), REPLAY_PARKED},
    .check = check_parked};

static const struct exploration crashed_parkings = {
    .name = "log with an event parked again after a crash",
    .flows = {PARK_FIRST, REPLAY_PARKED},
    .before = {TWO_EVENTS, REQUEST(READ, "{\"owner\":\"one\"}"), REPLAY_PARKED},
    .faults = 2,
    .check = check_parked};

/* The one who parks has lost its partition, or has not: the event is parked, or the next one gets it, never both. */
static void check_parked_or_given(struct outcome *outcome)
{
    struct slice lag = outcome_ask(outcome, "GET /v1/logs/l/consumers/g/lag", NULL);
    int64_t parked = int_of(outcome, lag, "parked"), unread = int_of(outcome, lag, "lag");
    bool is_given = outcome->answers[1].status == 200 && outcome_int(outcome, 1, "position") == 0;
    if (outcome->answers[0].status == 200 && parked != 1)
        outcome_fault(outcome, "lost: %.*s", SLICE_ARG(lag));
    if (is_given && parked) outcome_fault(outcome, "a stale fence parked something: %.*s", SLICE_ARG(lag));
    if (parked + unread != 2) outcome_fault(outcome, "%.*s", SLICE_ARG(lag));
}

static const struct exploration stale_parkings = {
    .name = "log with an event parked while its lease ends",
    .flows = {PARK_FIRST, REQUEST(READ, "{\"owner\":\"two\"}")},
    .before = {TWO_EVENTS, REQUEST(READ, "{\"owner\":\"one\"}")},
    .jumps = {LEASE_MS + 1},
    .faults = 1,
    .check = check_parked_or_given};

/* What was parked is read again by one, and is found as long as it is not acked. */
static void check_read_again(struct outcome *outcome)
{
    struct slice lag = outcome_ask(outcome, "GET /v1/logs/l/consumers/g/lag", NULL);
    if (events_again(outcome) != 1 || int_of(outcome, lag, "lag") != 1)
        outcome_fault(outcome, "overlooked: %.*s", SLICE_ARG(lag));
}

static const struct exploration parked_reads = {
    .name = "log with parked events read while they are replayed",
    .flows = {REPLAY_PARKED, REQUEST(READ, "{\"owner\":\"two\"}")},
    .before = {TWO_EVENTS, REQUEST(READ, "{\"owner\":\"one\"}"), PARK_FIRST,
               REQUEST(ACK, "{\"partition\":\"0\",\"fence\":1,\"sequence\":2}")},
    .faults = 1,
    .check = check_read_again};

TEST(explore_log_parked)
{
    explore(&parkings);
    explore(&crashed_parkings);
    explore(&stale_parkings);
    explore(&parked_reads);
    explore_broken(&parkings, ",\"k\":{", ",\"nothing\":{");
    explore_broken(&stale_parkings, "#fence = :fence and #position < :sequence",
                   "#fence >= :fence and #position < :sequence");
}
