/* Tables change in their own time: what is asked for is waited for, by asking again. */
#include "cli/tables.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"

#define WAIT_MAX_US   (20 * 60 * 1000000LL) /* a large table's index takes the service minutes */
#define POLL_MIN_MS   5
#define POLL_MAX_MS   1000
#define NAMES_AT_ONCE 64

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static bool all_indexes_active(const struct node *table)
{
    const struct node *indexes = node_member(table, "GlobalSecondaryIndexes");
    for (const struct node *one = indexes ? indexes->first : NULL; one; one = one->next)
        if (node_member(one, "IndexStatus") && !node_is(one, "IndexStatus", "ACTIVE")) return false;
    return true;
}

enum wish { WISH_ACTIVE, WISH_GONE };

/* One look: 1 it is so, 0 not yet, -1 it cannot be seen. */
static int look(const struct place *place, const char *table, enum wish wish)
{
    struct arena arena = {0};
    struct buf request = {0};
    request_begin(&request, table);
    buf_byte(&request, '}');
    struct answer answer = place_ask(place, &arena, "DescribeTable", &request);
    bool is_gone = answer.error && strcmp(answer.error, "ResourceNotFoundException") == 0;
    const struct node *found = answer.error ? NULL : node_member(answer.json, "Table");
    int result = 0;
    if (is_gone)
        result = wish == WISH_GONE;
    else if (answer.error && !error_may_pass(answer.error)) {
        place_complain(place, table, answer.error, answer.message);
        result = -1;
    } else if (wish == WISH_ACTIVE && found)
        result = node_is(found, "TableStatus", "ACTIVE") && all_indexes_active(found);
    buf_free(&request);
    arena_free(&arena);
    return result;
}

static bool wait_until(const struct place *place, const char *table, enum wish wish)
{
    int64_t end = monotonic_us() + WAIT_MAX_US;
    long pause_ms = POLL_MIN_MS;
    for (;;) {
        int result = look(place, table, wish);
        if (result != 0) return result > 0;
        if (monotonic_us() > end) {
            complain("the table '%s' is still not %s", table, wish == WISH_ACTIVE ? "active" : "gone");
            return false;
        }
        sleep_ms(pause_ms);
        if (pause_ms < POLL_MAX_MS) pause_ms *= 2;
    }
}

bool table_wait_active(const struct place *place, const char *table)
{
    return wait_until(place, table, WISH_ACTIVE);
}

bool table_wait_gone(const struct place *place, const char *table)
{
    return wait_until(place, table, WISH_GONE);
}

/* ---- settings that have operations of their own; some endpoints lack them ---- */

struct slice table_ttl(const struct place *place, struct arena *arena, const char *table)
{
    struct buf request = {0};
    request_begin(&request, table);
    buf_byte(&request, '}');
    struct answer answer = place_ask(place, arena, "DescribeTimeToLive", &request);
    buf_free(&request);
    if (answer.error) return SLICE("");
    const struct node *ttl = node_member(answer.json, "TimeToLiveDescription");
    bool is_on = node_is(ttl, "TimeToLiveStatus", "ENABLED") || node_is(ttl, "TimeToLiveStatus", "ENABLING");
    return is_on ? node_text(ttl, "AttributeName") : SLICE("");
}

bool table_set_ttl(const struct place *place, struct arena *arena, const char *table, struct slice attribute)
{
    struct buf request = {0};
    request_begin(&request, table);
    buf_text(&request, ",\"TimeToLiveSpecification\":{\"Enabled\":true");
    put_string_member(&request, "AttributeName", attribute);
    buf_text(&request, "}}");
    bool fine = place_call(place, arena, "UpdateTimeToLive", &request) != NULL;
    buf_free(&request);
    return fine;
}

struct slice table_tags(const struct place *place, struct arena *arena, struct slice arn)
{
    const char *one;
    size_t len;
    struct buf tags = {0}, request = {0};
    buf_byte(&request, '{');
    put_string_member(&request, "ResourceArn", arn);
    buf_text(&request, "}");
    buf_byte(&request, 0);
    struct quipu_pages *pages = quipu_pages_open(place->db, "ListTagsOfResource", request.data);
    buf_byte(&tags, '[');
    while (quipu_pages_next(pages, &one, &len) == QUIPU_FOUND) {
        put_comma(&tags);
        buf_put(&tags, one, len);
    }
    buf_byte(&tags, ']');
    quipu_pages_close(pages);
    struct slice result = tags.len > 2 ? arena_copy(arena, buf_view(&tags)) : SLICE("");
    buf_free(&tags);
    buf_free(&request);
    return result;
}

/* ---- names ---- */

static const char **grow(struct arena *arena, const char **names, size_t count)
{
    const char **larger = arena_array(arena, const char *, 2 * count + NAMES_AT_ONCE);
    if (count) memcpy(larger, names, count * sizeof *names);
    return larger;
}

const char **table_names(const struct place *place, struct arena *arena, size_t *count)
{
    const char **names = grow(arena, NULL, 0), *one, *fault;
    size_t room = NAMES_AT_ONCE, len;
    enum quipu_result result;
    struct quipu_pages *pages = quipu_pages_open(place->db, "ListTables", "{}");
    *count = 0;
    while ((result = quipu_pages_next(pages, &one, &len)) == QUIPU_FOUND) {
        if (*count == room) {
            names = grow(arena, names, *count);
            room = 2 * room + NAMES_AT_ONCE;
        }
        const struct node *name = node_parse(arena, arena_copy(arena, (struct slice){one, len}), &fault);
        if (name) names[(*count)++] = arena_printf(arena, "%.*s", SLICE_ARG(name->text)).data;
    }
    const struct quipu_reply *reply = quipu_pages_reply(pages);
    if (result == QUIPU_FAILED) place_complain(place, NULL, reply->error, reply->message);
    quipu_pages_close(pages);
    return result == QUIPU_FAILED ? NULL : names;
}
