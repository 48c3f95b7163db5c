/* POST /console/match {"pattern":{...},"events":[{...},...]}: which events an event pattern matches, by the matcher
 * that decides for triggers. It reads nothing but the request, and is bounded, since it runs on a loop's thread. */
#include "match/match.h"

#include "base/raw.h"
#include "console/internal.h"

void match_serve(struct rest_call *call)
{
    static const char *const names[] = {"pattern", "events"};
    struct slice raws[2], event;
    struct raw_walk walk;
    char error[256];
    if (call->body.len > LIMIT_CONSOLE_MATCH_BYTES) {
        console_refuse(call, 413, "too-large", "A pattern is tried out on %d bytes of events at most.",
                       LIMIT_CONSOLE_MATCH_BYTES);
        return;
    }
    if (!raw_is_json(call->arena, call->body) || !raw_members(call->arena, call->body, names, raws, 2) ||
        !raws[0].data || raw_kind(raws[1]) != JSON_ARRAY) {
        console_refuse(call, 400, "bad-request", "The body should be {\"pattern\":{...},\"events\":[...]}.");
        return;
    }
    if (raws[0].len > LIMIT_FILTER_CHARACTERS) {
        console_refuse(call, 400, "bad-pattern", "A pattern has %d characters at most.", LIMIT_FILTER_CHARACTERS);
        return;
    }
    struct event_pattern *pattern = pattern_compile(call->arena, raws[0], error, sizeof error);
    if (!pattern) {
        console_refuse(call, 400, "bad-pattern", "%s", error);
        return;
    }
    unsigned count = 0;
    size_t before = call->reply->len;
    buf_text(call->reply, "{\"matches\":[");
    raw_walk_begin(&walk, call->arena, raws[1]);
    while (count <= LIMIT_CONSOLE_MATCH_EVENTS && raw_walk_next(&walk, NULL, &event)) {
        struct arena scratch = {0};
        if (count++) buf_byte(call->reply, ',');
        buf_slice(call->reply, pattern_matches(pattern, event, &scratch) ? SLICE("true") : SLICE("false"));
        arena_free(&scratch);
    }
    if (count > LIMIT_CONSOLE_MATCH_EVENTS) {
        call->reply->len = before;
        console_refuse(call, 400, "too-many", "A pattern is tried out on %d events at most.",
                       LIMIT_CONSOLE_MATCH_EVENTS);
        return;
    }
    buf_text(call->reply, "]}\n");
    rest_add_header(call, "Cache-Control: no-store");
    call->status = 200;
    call->done(call);
}
