/* Routes that call DynamoDB: a template makes the request, another one the reply, as integrations of the type AWS do
 * behind API Gateway's REST APIs. Which template makes the reply, and with which status, is chosen by the status of
 * DynamoDB's own. */
#include <regex.h>
#include <stdio.h>

#include "base/compose.h"
#include "base/json.h"
#include "base/log.h"
#include "base/raw.h"
#include "gateway/internal.h"

#define PATTERN_BYTES  64
#define PATTERN_COPIES 1000 /* regcomp copies what is repeated: (((.{255}){255}){255}) would take gigabytes */

/* Whether its repetitions, were each within the next, made too many copies. */
static bool repeats_too_much(struct slice pattern)
{
    unsigned copies = 1, number = 0, most = 1;
    bool is_inside = false; /* { } */
    for (size_t i = 0; i < pattern.len && copies <= PATTERN_COPIES && number <= PATTERN_COPIES; i++) {
        char c = pattern.data[i];
        number = is_inside && c >= '0' && c <= '9' ? number * 10 + (unsigned)(c - '0') : 0;
        if (number > most) most = number;
        if (c == '+' || (is_inside && c == '}')) copies *= c == '+' ? 2 : most;
        if (c == '{') most = 1;
        is_inside = c == '{' || (is_inside && c != '}');
    }
    return copies > PATTERN_COPIES || number > PATTERN_COPIES;
}

/* Patterns are Java's; of what these have and POSIX' have not, \d is what is used for a status. */
bool mapping_pattern_fits(struct slice pattern, int status, bool *fits)
{
    char text[PATTERN_BYTES * 5 + 8] = "^(", number[8];
    size_t len = 2;
    regex_t regex;
    if (!pattern.len || pattern.len > PATTERN_BYTES || repeats_too_much(pattern)) return false;
    for (size_t i = 0; i < pattern.len; i++) {
        bool is_digit = pattern.data[i] == '\\' && i + 1 < pattern.len && pattern.data[i + 1] == 'd';
        if (is_digit) {
            memcpy(text + len, "[0-9]", 5);
            len += 5;
            i++;
        } else {
            text[len++] = pattern.data[i];
        }
    }
    memcpy(text + len, ")$", 3);
    if (regcomp(&regex, text, REG_EXTENDED | REG_NOSUB) != 0) return false;
    snprintf(number, sizeof number, "%d", status);
    *fits = regexec(&regex, number, 0, NULL, 0) == 0;
    regfree(&regex);
    return true;
}

static void refuse(struct visit *visit, int status, const char *reason,
                   void (*finish)(struct visit *visit, int status))
{
    struct rest_call *call = visit->call;
    log_line("routes: %.*s of %.*s: %s", SLICE_ARG(visit->route), SLICE_ARG(visit->place), reason);
    call->reply->len = 0;
    compose(call->reply, "{'message':'Internal server error'}");
    finish(visit, status);
}

/* The template and the status for what DynamoDB answered. Where nothing is said of failures, they are told as they are.
 */
static struct slice choose(const struct route *route, int answered, struct arena *arena, int *status)
{
    struct slice one;
    int64_t number;
    bool fits = false;
    raw_each(arena, route->responses, &one)
    {
        struct slice pattern = raw_string(arena, raw_member(arena, one, "pattern")),
                     chosen = raw_member(arena, one, "status");
        if (!mapping_pattern_fits(pattern, answered, &fits) || !fits) continue;
        *status = raw_int(chosen, &number) ? (int)number : answered;
        return raw_string(arena, raw_member(arena, one, "response"));
    }
    bool passes = answered >= 400 && !route->responses.len;
    *status = passes ? answered : route->status;
    return passes ? SLICE_NONE : route->response;
}

void mapping_run(struct visit *visit, void (*finish)(struct visit *visit, int status))
{
    struct rest_call *call = visit->call;
    struct arena *arena = call->arena;
    const struct route *route = visit->mapped;
    struct velocity_input input = http_mapping_input(visit);
    struct buf request = {0}, reply = {0};
    char error[300];
    int status = 200;
    call->content_type = SLICE("application/json");
    if (!route->request.data) buf_slice(&request, call->body.len ? call->body : SLICE("{}"));
    if (!velocity_render(route->request, &input, arena, &request, &status, error, sizeof error)) {
        buf_free(&request);
        refuse(visit, 500, error, finish);
        return;
    }
    int answered = dynamo_call_caused(visit->gateway->options.dynamo, call->cause, route->operation,
                                      arena_take(arena, &request), &reply);
    input.body = arena_take(arena, &reply);
    struct slice template = choose(route, answered ? answered : 500, arena, &status);
    if (!template.data) buf_slice(call->reply, input.body);
    if (!velocity_render(template, &input, arena, call->reply, &status, error, sizeof error)) {
        refuse(visit, 500, error, finish);
        return;
    }
    finish(visit, status);
}
