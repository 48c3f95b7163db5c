/* What is not there is called by its name, on every route that may meet it. */
#include "base/raw.h"
#include "unit/pattern_fixture.h"

static const struct {
    const char *request, *body, *says;
} unknown[] = {
    {"GET /v1/counters/c", NULL, "There is no counter 'c'; its first number makes it."},
    {"DELETE /v1/counters/a%20b", NULL, "There is no counter 'a b'; its first number makes it."},
    {"GET /v1/jobs/j", NULL, "There is no job 'j'."},
    {"POST /v1/jobs/j/done", "{\"task\":1}", "There is no job 'j'."},
    {"POST /v1/jobs/j/failed", "{\"task\":1}", "There is no job 'j'."},
    {"PATCH /v1/jobs/j", "{\"total\":1}", "There is no job 'j'."},
    {"POST /v1/jobs/j/redrive", NULL, "There is no job 'j'."},
    {"GET /v1/jobs/j/missing", NULL, "There is no job 'j'."},
    {"GET /v1/jobs/j/events", NULL, "There is no job 'j'."},
    {"DELETE /v1/jobs/j", NULL, "There is no job 'j'."},
    {"GET /v1/groups/g", NULL, "There are no groups named 'g': put their rules first."},
    {"POST /v1/groups/g/k", NULL, "There are no groups named 'g': put their rules first."},
    {"GET /v1/groups/g/k", NULL, "There is no group 'k' of 'g'."},
    {"POST /v1/groups/g/k/complete", NULL, "There is no group 'k' of 'g'."},
    {"DELETE /v1/groups/g/k", NULL, "There is no group 'k' of 'g'."},
    {"GET /v1/periods/p", NULL, "There is no period 'p'; put makes it."},
    {"POST /v1/periods/p", NULL, "There is no period 'p'; put makes it."},
    {"POST /v1/periods/p/close", NULL, "There is no period 'p'; put makes it."},
    {"GET /v1/periods/p/now", NULL, "There is no period 'p'; put makes it."},
    {"GET /v1/periods/p/buckets", NULL, "There is no period 'p'; put makes it."},
    {"GET /v1/work/q/u", NULL, "There is no unit 'u' in the queue 'q'."},
    {"POST /v1/work/q/u/beat", "{\"fence\":1}", "There is no unit 'u' in the queue 'q'."},
    {"POST /v1/work/q/u/fail", "{\"fence\":1}", "There is no unit 'u' in the queue 'q'."},
    {"POST /v1/work/q/u/retry", NULL, "There is no unit 'u' in the queue 'q'."},
    {"DELETE /v1/work/q/u", NULL, "There is no unit 'u' in the queue 'q'."},
    {"GET /v1/documents/c/d%2Fe", NULL, "There is no document 'd/e' in the collection 'c'."},
    {"GET /v1/leases/l", NULL, "There is no lease 'l'; its first grant makes it."},
    {"PUT /v1/leases/l", "{\"owner\":\"o\",\"fence\":1}", "There is no lease 'l'; its first grant makes it."},
    {"PUT /v1/history/no-such-table", NULL, "There is no table 'no-such-table'."},
    {"GET /v1/history/no-such-table", NULL, "The table 'no-such-table' has no history; put makes it."},
    {"GET /v1/history/no-such-table/1", NULL, "The table 'no-such-table' has no history; put makes it."},
    {"DELETE /v1/history/no-such-table", NULL, "The table 'no-such-table' has no history."},
    {"GET /v1/logs/l", NULL, "There is no log 'l'; put makes it."},
    {"POST /v1/logs/l", "{\"key\":\"k\",\"data\":1}", "There is no log 'l'; put makes it."},
    {"POST /v1/logs/l/split", "{\"partition\":\"0\"}", "There is no log 'l'; put makes it."},
    {"POST /v1/logs/l/consumers/g/read", "{\"owner\":\"o\"}", "There is no log 'l'; put makes it."},
    {"DELETE /v1/logs/l", NULL, "There is no log 'l'."},
};

TEST(what_is_not_there_is_called_by_its_name)
{
    struct patterns patterns;
    patterns_open(&patterns);
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        struct slice reply = asks(&patterns, unknown[i].request, unknown[i].body);
        CHECK_INT(patterns.call.status, 404);
        CHECK_TEXT(raw_text(&patterns.arena, raw_member(&patterns.arena, reply, "message")), unknown[i].says);
    }
    asks(&patterns, "PUT /v1/logs/there", "{\"partitions\":1}");
    struct slice reply = asks(&patterns, "GET /v1/logs/there/consumers/g/lag", NULL);
    CHECK(slice_contains(reply,
                         SLICE("The log 'there' has no group of consumers 'g'; its first read makes it.")));
    reply = asks(&patterns, "GET /v1/logs/there/partitions/7", NULL);
    CHECK(slice_contains(reply, SLICE("The log 'there' has no partition 7.")));
    patterns_close(&patterns);
}
