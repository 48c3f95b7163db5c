/* Limits in every order, with clocks that jump: no more is given than the limit says. */
#include "unit/pattern_explore.h"

#define TAKE     REQUEST("POST /v1/limits/x", "{\"rate\":1,\"per\":\"10s\",\"burst\":2}")
#define BEGIN_MS 1794716005340
#define SHARE_MS 10000

/* One of the burst is gone before. Of what is given by a moment there is at most the other one, and one more for each
 * ten seconds; without faults no fewer, for all ask. */
static void check_rate(struct outcome *outcome)
{
    unsigned given = 0, lost = 0;
    int64_t last_ms = BEGIN_MS;
    for (unsigned i = 0; i < outcome->count; i++) {
        given += outcome->answers[i].status == 200;
        lost += outcome->answers[i].attempts - 1;
        if (outcome->answers[i].now_ms > last_ms) last_ms = outcome->answers[i].now_ms;
    }
    unsigned most = 1 + (unsigned)((last_ms - BEGIN_MS) / SHARE_MS);
    if (given > most) outcome_fault(outcome, "%u of %u were given", given, most);
    if (given + lost < 1) outcome_fault(outcome, "none was given");
}

static const struct exploration rate = {.name = "limit",
                                        .flows = {TAKE, TAKE, TAKE},
                                        .before = {TAKE},
                                        .jumps = {SHARE_MS},
                                        .faults = 1,
                                        .check = check_rate};

TEST(explore_limit)
{
    explore(&rate);
    explore_broken(&rate, "#at = :seen", "#at >= :seen");
}
