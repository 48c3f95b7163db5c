/* Leases in every order, with clocks that jump: one holder at a time, fences only grow, no release is missed.
 */
#include "calendar/calendar.h"
#include "unit/pattern_explore.h"

#define BEGIN_MS 1794716005340
#define HOLD_MS  10000
#define WAIT_MS  5000
#define HELD     REQUEST("POST /v1/leases/x", "{\"owner\":\"a\",\"for\":\"10s\"}")

/* When the grant of an answer was written, and until when it holds: all of them for ten seconds. */
static int64_t until_of(struct outcome *outcome, unsigned flow)
{
    int64_t until_ms = 0;
    moment_parse(outcome_text(outcome, flow, "until"), &until_ms);
    return until_ms;
}

static bool is_granted(struct outcome *outcome, unsigned flow)
{
    return outcome->answers[flow].status == 200;
}

/* Fence 1 was a's, from the beginning for ten seconds, or as long as a renewal (flow 0) has told. */
static void check_one_holder(struct outcome *outcome)
{
    int64_t first_until = BEGIN_MS + HOLD_MS;
    if (is_granted(outcome, 0) && until_of(outcome, 0) > first_until) first_until = until_of(outcome, 0);
    for (unsigned i = 1; i < outcome->count; i++) {
        if (!is_granted(outcome, i)) continue;
        int64_t fence = outcome_int(outcome, i, "fence"), from_ms = until_of(outcome, i) - HOLD_MS;
        if (fence < 2) outcome_fault(outcome, "fence %lld again", (long long)fence);
        if (from_ms <= first_until) outcome_fault(outcome, "flow %u has it while a has", i);
        for (unsigned j = 1; j < i; j++) {
            if (!is_granted(outcome, j)) continue;
            int64_t other = outcome_int(outcome, j, "fence"), other_ms = until_of(outcome, j) - HOLD_MS;
            if (other == fence) outcome_fault(outcome, "fence %lld twice", (long long)fence);
            if ((other < fence) != (other_ms + HOLD_MS < from_ms))
                outcome_fault(outcome, "two at the same time");
        }
    }
}

static const struct exploration expiry = {
    .name = "lease that expires",
    .flows = {REQUEST("PUT /v1/leases/x", "{\"owner\":\"a\",\"fence\":1,\"for\":\"10s\"}"),
              REQUEST("POST /v1/leases/x", "{\"owner\":\"b\",\"for\":\"10s\"}"),
              REQUEST("POST /v1/leases/x", "{\"owner\":\"c\",\"for\":\"10s\"}")},
    .before = {HELD},
    .jumps = {HOLD_MS + 1, HOLD_MS + 1},
    .faults = 1,
    .check = check_one_holder};

TEST(explore_lease_that_expires)
{
    explore(&expiry);
    explore_broken(&expiry, "(attribute_not_exists(#owner) or #until < :now)", "(:now > :zero)");
    explore_broken(&expiry, "#fence = if_not_exists(#fence, :zero) + :one",
                   "#fence = if_not_exists(#fence, :one) + :zero");
    explore_broken(&expiry, "#fence = :fence and attribute_exists(#owner) and #owner = :owner",
                   "(#owner = :owner or #fence >= :fence)");
}

/* The owner's later grant has another fence: the old one must not move it. */
static void check_old_fence(struct outcome *outcome)
{
    bool renewed = is_granted(outcome, 0);
    if (renewed && outcome_int(outcome, 0, "fence") != 1)
        outcome_fault(outcome, "an old fence renewed a new grant");
    if (outcome_int(outcome, 1, "fence") < 1) outcome_fault(outcome, "not granted");
}

static const struct exploration old_fence = {
    .name = "lease with an old fence",
    .flows = {REQUEST("PUT /v1/leases/x", "{\"owner\":\"a\",\"fence\":1,\"for\":\"10s\"}"),
              REQUEST("POST /v1/leases/x", "{\"owner\":\"a\",\"for\":\"10s\"}")},
    .before = {HELD},
    .jumps = {HOLD_MS + 1},
    .faults = 2,
    .check = check_old_fence};

TEST(explore_lease_with_an_old_fence)
{
    explore(&old_fence);
    explore_broken(&old_fence, "#fence = :fence and", "#fence >= :fence and");
}

/* a gives it back while b and c wait for it: one of them gets it, and nobody stays in line. */
static void check_handed_over(struct outcome *outcome)
{
    unsigned granted = 0;
    for (unsigned i = 1; i < outcome->count; i++) granted += is_granted(outcome, i);
    struct slice end = outcome_ask(outcome, "GET /v1/leases/x", NULL);
    if (granted != 1) outcome_fault(outcome, "%u got it", granted);
    if (!slice_contains(end, SLICE("\"waiting\":[]"))) outcome_fault(outcome, "%.*s", SLICE_ARG(end));
    if (!slice_contains(end, SLICE("\"held\":true"))) outcome_fault(outcome, "%.*s", SLICE_ARG(end));
}

static const struct exploration hand_over = {
    .name = "lease handed over",
    .flows = {REQUEST("DELETE /v1/leases/x?owner=a&fence=1", NULL),
              REQUEST("POST /v1/leases/x", "{\"owner\":\"b\",\"for\":\"1m\",\"wait\":\"5s\"}"),
              REQUEST("POST /v1/leases/x", "{\"owner\":\"c\",\"for\":\"1m\",\"wait\":\"5s\"}")},
    .before = {HELD},
    .faults = 1,
    .never_away = true,
    .check = check_handed_over};

TEST(explore_lease_handed_over)
{
    explore(&hand_over);
    explore_broken(&hand_over, "(attribute_not_exists(#owner) or #until < :now)", "(:now > :zero)");
}

/* ---- several holders ---- */

#define SEAT(owner) REQUEST("POST /v1/leases/s", "{\"owner\":\"" owner "\",\"for\":\"10s\",\"holders\":2}")

/* Two have it at a time, each by a fence of its own: of three that came at once one is refused, or came later. */
static void check_seats(struct outcome *outcome)
{
    for (unsigned i = 0; i < outcome->count; i++) {
        unsigned together = 0;
        for (unsigned j = 0; j < outcome->count; j++) {
            if (!is_granted(outcome, i) || !is_granted(outcome, j)) continue;
            int64_t begin_ms = until_of(outcome, i) - HOLD_MS;
            together += until_of(outcome, j) - HOLD_MS <= begin_ms && begin_ms <= until_of(outcome, j);
            if (i != j && outcome_int(outcome, i, "fence") == outcome_int(outcome, j, "fence"))
                outcome_fault(outcome, "a fence twice");
        }
        if (together > 2) outcome_fault(outcome, "%u have it together", together);
    }
}

static const struct exploration several = {
    .name = "lease of two",
    .flows = {SEAT("a"), SEAT("b"), SEAT("c")},
    .before = {SEAT("z"), REQUEST("DELETE /v1/leases/s?owner=z&fence=1", NULL)},
    .jumps = {HOLD_MS + 1},
    .faults = 1,
    .check = check_seats};

TEST(explore_lease_of_two)
{
    explore(&several);
    explore_broken(&several, "#seats = :places and #fence = :last", "(#seats = :places or #fence >= :last)");
}

/* One of two gives its seat back while two others wait: one of them has it, unless the time of both was over, and
 * nobody stays in line. */
static void check_seat_handed_over(struct outcome *outcome)
{
    unsigned granted = 0, late = 0;
    struct slice end = outcome_ask(outcome, "GET /v1/leases/s", NULL);
    for (unsigned i = 1; i < outcome->count; i++) {
        granted += is_granted(outcome, i);
        late += outcome->answers[i].now_ms - outcome->answers[i].began_ms >= WAIT_MS;
    }
    if (granted != 1 && (granted || late < 2)) outcome_fault(outcome, "%u got it", granted);
    if (!slice_contains(end, SLICE("\"waiting\":[]"))) outcome_fault(outcome, "%.*s", SLICE_ARG(end));
    if (!slice_contains(end, granted ? SLICE("\"taken\":2") : SLICE("\"taken\":1")))
        outcome_fault(outcome, "%.*s", SLICE_ARG(end));
}

static const struct exploration seat_handed_over = {
    .name = "lease of two handed over",
    .flows = {REQUEST("DELETE /v1/leases/s?owner=a&fence=1", NULL),
              REQUEST("POST /v1/leases/s", "{\"owner\":\"c\",\"for\":\"1d\",\"wait\":\"5s\",\"holders\":2}"),
              REQUEST("POST /v1/leases/s", "{\"owner\":\"d\",\"for\":\"1d\",\"wait\":\"5s\",\"holders\":2}")},
    .before = {REQUEST("POST /v1/leases/s", "{\"owner\":\"a\",\"for\":\"1d\",\"holders\":2}"),
               REQUEST("POST /v1/leases/s", "{\"owner\":\"b\",\"for\":\"1d\",\"holders\":2}")},
    .faults = 1,
    .check = check_seat_handed_over};

TEST(explore_lease_of_two_handed_over)
{
    explore(&seat_handed_over);
}
