/* Chains by themselves: a pattern of the test's own that appends, seals and lists, in every order. */
#include "pattern/chain.h"

#include "unit/pattern_explore.h"
#include "unit/pattern_fixture.h"

static const struct flow_table chains = {"chains", CHAIN_KEYS, "expires"};

static struct chain the_chain(void)
{
    return (struct chain){.table = &chains, .key = SLICE("c"), .token_kind = "chain", .token_name = SLICE("c")};
}

/* ---- the pattern ---- */

enum { APPEND_DATA, APPEND_COUNT, APPEND_TOKEN, APPEND_BYTES };
static const struct field append_fields[] = {
    [APPEND_DATA] = {"data", IN_BODY, FIELD_INT, true, .max = 1000},
    [APPEND_COUNT] = {"count", IN_BODY, FIELD_INT, .min = 1, .max = 5000},
    [APPEND_TOKEN] = {"token", IN_BODY, FIELD_NAME},
    [APPEND_BYTES] = {"bytes", IN_BODY, FIELD_INT, .max = 300000},
};

/* `count` entries, of which the first has the token; the last of several has it once more. */
static void append_begin(struct flow *flow)
{
    struct chain chain = the_chain();
    struct chain_end end;
    size_t count = (size_t)flow_int_or(flow, APPEND_COUNT, 1);
    int64_t bytes = flow_int_or(flow, APPEND_BYTES, 0);
    struct chain_entry *entries = arena_array(flow->arena, struct chain_entry, count);
    for (size_t i = 0; i < count; i++)
        entries[i] = (struct chain_entry){.value = flow_compose(flow, "%N", flow_int(flow, APPEND_DATA))};
    if (bytes) {
        char *text = arena_alloc(flow->arena, (size_t)bytes);
        memset(text, 'x', (size_t)bytes);
        entries[0].value = flow_compose(flow, "%S", (struct slice){text, (size_t)bytes});
    }
    if (flow_given(flow, APPEND_TOKEN)) {
        entries[0].token = entries[count - 1].token = flow_text(flow, APPEND_TOKEN);
        entries[0].mark = entries[count - 1].mark = arena_printf(flow->arena, "%d", (int)flow_int(flow, APPEND_DATA));
    }
    chain_guess_end(flow, &chain, &end);
    bool all = chain_append(flow, &chain, &end, entries, count);
    flow_answer(flow, all ? 201 : 409, "{'number':%d,'last':%d,'repeated':%b,'mark':%s,'next':%d}", entries[0].number,
                entries[count - 1].number, (int)entries[0].is_repeated, entries[0].first_mark, end.next);
}

enum { SEAL_SAYS };
static const struct field seal_fields[] = {[SEAL_SAYS] = {"says", IN_BODY, FIELD_NAME, true}};

static void seal_begin(struct flow *flow)
{
    struct chain chain = the_chain();
    struct chain_end end;
    chain_guess_end(flow, &chain, &end);
    chain_seal(flow, &chain, &end, flow_compose(flow, "%S", flow_text(flow, SEAL_SAYS)), 0);
    flow_answer(flow, 200, "{'says':%P,'next':%d}", end.seal, end.next);
}

enum { LIST_FROM, LIST_PAGE, LIST_COUNT, LIST_BACKWARDS };
static const struct field list_fields[] = {
    [LIST_FROM] = {"from", IN_QUERY, FIELD_INT, .min = 1, .max = INT64_MAX},
    [LIST_PAGE] = {"page", IN_QUERY, FIELD_INT, .min = 1, .max = INT64_MAX},
    [LIST_COUNT] = {"most", IN_QUERY, FIELD_INT, .max = 1000},
    [LIST_BACKWARDS] = {"backwards", IN_QUERY, FIELD_BOOL},
};

/* Numbers and values, and of each whether its page ends behind it. */
static void list_begin(struct flow *flow)
{
    struct chain chain = the_chain();
    bool backwards = flow_int_or(flow, LIST_BACKWARDS, 0) != 0;
    struct chain_reader reader = {.chain = &chain,
                                  .from = flow_int_or(flow, LIST_FROM, backwards ? INT64_MAX : 1),
                                  .page = flow_int_or(flow, LIST_PAGE, 0),
                                  .most = flow_int_or(flow, LIST_COUNT, 0),
                                  .backwards = backwards,
                                  .rewinds = true};
    struct chain_end end;
    chain_read_end(flow, &chain, &end);
    buf_printf(flow->body, "{\"next\":%lld,\"sealed\":%d,\"entries\":[", (long long)end.next, end.is_sealed);
    for (bool first = true; chain_read(flow, &reader); first = false) {
        bool is_text = reader.value.len > 100;
        flow_put(flow, flow->body, "%A[%d,%P%A]", first ? SLICE("") : SLICE(","), reader.number,
                 is_text ? SLICE("{\"S\":\"long\"}") : reader.value, reader.is_last_of_page ? SLICE(",1") : SLICE(""));
    }
    buf_text(flow->body, "]}");
    flow_finish(flow, 200);
}

enum { REMOVE_BELOW };
static const struct field remove_fields[] = {[REMOVE_BELOW] = {"below", IN_QUERY, FIELD_INT, .max = 100000}};

static void remove_begin(struct flow *flow)
{
    struct chain chain = the_chain();
    if (flow_given(flow, REMOVE_BELOW))
        chain_trim(flow, &chain, flow_int(flow, REMOVE_BELOW));
    else
        chain_remove(flow, &chain);
    flow_answer(flow, 200, "{'removed':true}");
}

/* clang-format off */
static const struct flow_row chain_rows[] = {
    {"POST", "/chain", append_begin, "Appends.", append_fields, 4, "{}", NULL},
    {"POST", "/chain/seal", seal_begin, "Seals.", seal_fields, 1, "{}", NULL},
    {"GET", "/chain", list_begin, "Lists.", list_fields, 4, "{}", NULL},
    {"DELETE", "/chain", remove_begin, "Removes.", remove_fields, 1, "{}", NULL},
};
/* clang-format on */
#define CHAIN_ROWS .rows = chain_rows, .row_count = sizeof chain_rows / sizeof *chain_rows

/* ---- what holds in every schedule ---- */

#define ENTRIES 40

struct content {
    int64_t data[ENTRIES];
    unsigned count;
    bool is_sealed;
};

/* U1, U2: numbers from 1 on without a gap, up to the end. */
static struct content content_of(struct outcome *outcome)
{
    struct content content = {0};
    struct slice list = outcome_ask(outcome, "GET /chain", NULL), entry, number, data;
    struct raw_walk walk, parts;
    int64_t next = 0, sealed = 0, at = 0;
    raw_int(raw_member(outcome->arena, list, "next"), &next);
    raw_int(raw_member(outcome->arena, list, "sealed"), &sealed);
    raw_walk_begin(&walk, outcome->arena, raw_member(outcome->arena, list, "entries"));
    while (content.count < ENTRIES && raw_walk_next(&walk, NULL, &entry)) {
        raw_walk_begin(&parts, outcome->arena, entry);
        raw_walk_next(&parts, NULL, &number);
        raw_walk_next(&parts, NULL, &data);
        raw_int(number, &at);
        raw_int(data, &content.data[content.count++]);
        if (at != content.count) outcome_fault(outcome, "%.*s", SLICE_ARG(list));
    }
    if (next != content.count + 1) outcome_fault(outcome, "the end is not %u: %.*s", content.count, SLICE_ARG(list));
    content.is_sealed = sealed != 0;
    return content;
}

/* Whoever was told a number is there. */
static void check_appends(struct outcome *outcome)
{
    struct content content = content_of(outcome);
    for (unsigned i = 0; i < outcome->count; i++) {
        int64_t number = outcome_int(outcome, i, "number");
        if (outcome->answers[i].status != 201)
            outcome_fault(outcome, "%.*s", SLICE_ARG(outcome->answers[i].body));
        else if (number < 1 || number > content.count || content.data[number - 1] != i)
            outcome_fault(outcome, "flow %u is not at its number %lld", i, (long long)number);
    }
    for (unsigned i = 0; i < outcome->count; i++) {
        unsigned times = 0;
        for (unsigned k = 0; k < content.count; k++) times += content.data[k] == i;
        if (times > outcome->answers[i].attempts) outcome_fault(outcome, "flow %u is there %u times", i, times);
    }
}

static const struct exploration appends = {
    .name = "chain appended to by three",
    CHAIN_ROWS,
    .flows = {REQUEST("POST /chain", "{\"data\":0}"), REQUEST("POST /chain", "{\"data\":1}"),
              REQUEST("POST /chain", "{\"data\":2}")},
    .before = {REQUEST("POST /chain", "{\"data\":9}")},
    .check = check_appends};

static const struct exploration repeated_appends = {
    .name = "chain appended to by two, with faults",
    CHAIN_ROWS,
    .flows = {REQUEST("POST /chain", "{\"data\":0}"), REQUEST("POST /chain", "{\"data\":1}")},
    .before = {REQUEST("POST /chain", "{\"data\":9}")},
    .faults = 2,
    .check = check_appends};

TEST(explore_chain_appends)
{
    explore(&appends);
    explore(&repeated_appends);
    explore_broken(&appends, "attribute_not_exists(#first)",
                   "(attribute_not_exists(#first) or attribute_exists(#first))");
}

/* U3, U4: one token, one entry, and everybody is told its number. */
static void check_tokens(struct outcome *outcome)
{
    struct content content = content_of(outcome);
    unsigned count = 0;
    for (unsigned i = 0; i < content.count; i++) count += content.data[i] == 5;
    if (count != 1) outcome_fault(outcome, "%u entries of one token", count);
    if (outcome_int(outcome, 0, "number") != outcome_int(outcome, 1, "number"))
        outcome_fault(outcome, "two numbers of one token");
}

static const struct exploration tokens = {
    .name = "chain with a token that comes twice",
    CHAIN_ROWS,
    .flows = {REQUEST("POST /chain", "{\"data\":5,\"token\":\"t\"}"),
              REQUEST("POST /chain", "{\"data\":5,\"token\":\"t\"}"), REQUEST("POST /chain", "{\"data\":2}")},
    .before = {REQUEST("POST /chain", "{\"data\":9,\"token\":\"x\"}")},
    .faults = 1,
    .check = check_tokens};

TEST(explore_chain_tokens)
{
    explore(&tokens);
    explore_broken(&tokens, "\"token\":{\"S\":\"chain/c/t\"},\"expires\"",
                   "\"token\":{\"S\":\"chain/c/lost\"},\"expires\"");
    explore_broken(&tokens, ",\"k\":{", ",\"nothing\":{");
}

/* U2: all who were told a number are before the seal, all others are told that it is sealed. */
static void check_seal(struct outcome *outcome)
{
    struct content content = content_of(outcome);
    if (!content.is_sealed) outcome_fault(outcome, "not sealed");
    if (outcome_int(outcome, 2, "next") != content.count + 1) outcome_fault(outcome, "something is behind the seal");
    if (!slice_equal(outcome_text(outcome, 2, "says"), SLICE("one"))) outcome_fault(outcome, "another seal");
    for (unsigned i = 0; i < 2; i++) {
        int64_t number = outcome_int(outcome, i, "number");
        bool is_there = number >= 1 && number <= content.count && content.data[number - 1] == i;
        if (is_there != (outcome->answers[i].status == 201))
            outcome_fault(outcome, "%.*s", SLICE_ARG(outcome->answers[i].body));
    }
}

static const struct exploration seals = {
    .name = "chain sealed while others append",
    CHAIN_ROWS,
    .flows = {REQUEST("POST /chain", "{\"data\":0,\"token\":\"t\"}"), REQUEST("POST /chain", "{\"data\":1}"),
              REQUEST("POST /chain/seal", "{\"says\":\"one\"}")},
    .before = {REQUEST("POST /chain", "{\"data\":9,\"token\":\"x\"}")},
    .faults = 1,
    .check = check_seal};

TEST(explore_chain_seals)
{
    explore(&seals);
    explore_broken(&seals, ",\"s\":{\"S\"", ",\"nothing\":{\"S\"");
}

/* ---- pages, readers, removal ---- */


static void is(struct outcome *outcome, const char *request, const char *expected)
{
    struct slice reply = outcome_ask(outcome, request, NULL);
    if (!slice_equal(reply, slice_of(expected))) outcome_fault(outcome, "%s: %.*s", request, SLICE_ARG(reply));
}

/* Three pages: 1 2 3, 4, 5 6; from any number on, in both directions, in parts. */
static void check_reading(struct outcome *outcome)
{
    is(outcome, "GET /chain",
       "{\"next\":7,\"sealed\":1,\"entries\":[[1,1],[2,1],[3,1,1],[4,2,1],[5,3],[6,3,1]]}");
    is(outcome, "GET /chain?from=2&most=2", "{\"next\":7,\"sealed\":1,\"entries\":[[2,1],[3,1,1]]}");
    is(outcome, "GET /chain?from=3", "{\"next\":7,\"sealed\":1,\"entries\":[[3,1,1],[4,2,1],[5,3],[6,3,1]]}");
    is(outcome, "GET /chain?from=6&page=5", "{\"next\":7,\"sealed\":1,\"entries\":[[6,3,1]]}");
    is(outcome, "GET /chain?from=7", "{\"next\":7,\"sealed\":1,\"entries\":[]}");
    is(outcome, "GET /chain?from=7&page=7", "{\"next\":7,\"sealed\":1,\"entries\":[]}");
    is(outcome, "GET /chain?from=900", "{\"next\":7,\"sealed\":1,\"entries\":[]}");
    is(outcome, "GET /chain?backwards=1",
       "{\"next\":7,\"sealed\":1,\"entries\":[[6,3,1],[5,3],[4,2,1],[3,1,1],[2,1],[1,1]]}");
    is(outcome, "GET /chain?backwards=1&from=5&most=3",
       "{\"next\":7,\"sealed\":1,\"entries\":[[5,3],[4,2,1],[3,1,1]]}");
}

static const struct exploration reading = {
    .name = "chain read from everywhere",
    CHAIN_ROWS,
    .flows = {REQUEST("POST /chain/seal", "{\"says\":\"end\"}")},
    .before = {REQUEST("POST /chain", "{\"data\":1,\"count\":3}"), REQUEST("POST /chain", "{\"data\":2}"),
               REQUEST("POST /chain", "{\"data\":3,\"count\":2}")},
    .check = check_reading};

TEST(chain_is_read_from_everywhere)
{
    explore(&reading);
}

/* The last page stays, so the next number is known. */
static void check_trim(struct outcome *outcome)
{
    is(outcome, "DELETE /chain?below=3", "{\"removed\":true}");
    is(outcome, "GET /chain?most=1", "{\"next\":7,\"sealed\":0,\"entries\":[[1,1]]}");
    is(outcome, "DELETE /chain?below=5", "{\"removed\":true}");
    is(outcome, "GET /chain?from=2", "{\"next\":7,\"sealed\":0,\"entries\":[[5,3],[6,3,1]]}");
    is(outcome, "DELETE /chain?below=100", "{\"removed\":true}");
    is(outcome, "GET /chain", "{\"next\":7,\"sealed\":0,\"entries\":[[5,3],[6,3,1]]}");
    is(outcome, "DELETE /chain", "{\"removed\":true}");
    is(outcome, "GET /chain", "{\"next\":1,\"sealed\":0,\"entries\":[]}");
}

static const struct exploration trimming = {
    .name = "chain trimmed and removed",
    CHAIN_ROWS,
    .flows = {REQUEST("POST /chain", "{\"data\":3,\"count\":2}")},
    .before = {REQUEST("POST /chain", "{\"data\":1,\"count\":3}"), REQUEST("POST /chain", "{\"data\":2}")},
    .check = check_trim};

TEST(chain_is_trimmed_but_for_its_last_page)
{
    explore(&trimming);
}

/* What does not fit into one page goes into several; a token that comes twice in one call counts once. */
static void check_large(struct outcome *outcome)
{
    if (outcome_int(outcome, 0, "last") != 1 || outcome_int(outcome, 0, "next") != 5000)
        outcome_fault(outcome, "%.*s", SLICE_ARG(outcome->answers[0].body));
    is(outcome, "GET /chain?most=2", "{\"next\":5000,\"sealed\":0,\"entries\":[[1,\"long\",1],[2,7]]}");
    is(outcome, "GET /chain?from=4998", "{\"next\":5000,\"sealed\":0,\"entries\":[[4998,7],[4999,7,1]]}");
}

static const struct exploration large = {
    .name = "chain with more than a page holds",
    CHAIN_ROWS,
    .flows = {REQUEST("POST /chain", "{\"data\":7,\"count\":5000,\"bytes\":300000,\"token\":\"t\"}")},
    .check = check_large};

TEST(chain_pages_are_bounded)
{
    explore(&large);
}
