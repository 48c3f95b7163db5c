/* CloudWatch Logs' API, as far as reading goes: `aws logs tail` and every SDK find what functions print.
 *
 * A log group is what a function's LoggingConfig names, /aws/lambda/NAME unless told otherwise; in it each function
 * has one stream, of its own name, with the lines of all its processes. A line is an event. Its time is when it was
 * written, to some milliseconds; its id is its position in the log, so it is the same each time. */
#include <stdio.h>

#include "base/compose.h"
#include "base/limits.h"
#include "base/raw.h"
#include "func/document.h"
#include "func/registry.h"

#define TARGET       "Logs_20140328."
#define EVENTS_MAX   10000 /* of one reply, as the service has it */
#define GROUPS_MAX   50    /* likewise */
#define REPLY_BYTES  (1024 * 1024)
#define WORDS_MAX    32 /* of a filter pattern */
#define ID_DIGITS    "056"
#define TOKEN_DIGITS 20

struct asked {
    struct func *func;
    struct rest_call *call;
    struct document request;
    struct slice group; /* empty: none was named */
};

static void finish(struct rest_call *call, int status)
{
    call->status = status;
    call->content_type = SLICE("application/x-amz-json-1.1");
    call->done(call);
}

static void fail(struct rest_call *call, const char *type, const char *message)
{
    call->reply->len = 0;
    compose(call->reply, "{'__type':%s,'message':%s}", slice_of(type), slice_of(message));
    finish(call, 400);
}

static struct slice text_of(struct asked *asked, const char *name)
{
    return document_text(&asked->request, name, asked->call->arena);
}

/* ---- groups and streams ---- */

/* The functions of a group, or of all groups where none is named, in the order of their names. In the arena. */
static struct function **functions_of(struct asked *asked, struct slice group, uint32_t *count)
{
    uint32_t all;
    struct arena *arena = asked->call->arena;
    struct entry **entries = registry_list(asked->func->registry, FUNCTIONS_BEGIN, LIMIT_FUNCTIONS, arena,
                                           &all);
    struct function **functions = arena_array(arena, struct function *, all + 1);
    *count = 0;
    for (uint32_t i = 0; i < all; i++) {
        const struct part *latest = entry_part(entries[i], SLICE("$LATEST"));
        if (latest && latest->function && (!group.len || slice_equal(latest->function->log_group, group)))
            functions[(*count)++] = function_keep(latest->function);
        entry_release(entries[i]);
    }
    return functions;
}

static void release_all(struct function **functions, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) function_release(functions[i]);
}

/* The functions of the named group; NULL after answering that there is none. */
static struct function **group_find(struct asked *asked, uint32_t *count)
{
    /* A name, or arn:aws:logs:REGION:ACCOUNT:log-group:NAME[:*]. */
    struct slice name = text_of(asked, "logGroupName");
    if (!name.len) name = text_of(asked, "logGroupIdentifier");
    bool is_arn = slice_starts(name, SLICE("arn:"));
    for (int i = 0; i < 6 && is_arn && slice_contains(name, SLICE(":")); i++) slice_cut(&name, ':');
    if (name.len > 2 && memcmp(name.data + name.len - 2, ":*", 2) == 0) name.len -= 2;
    asked->group = name;
    if (!asked->group.len) {
        fail(asked->call, "InvalidParameterException",
             "Either logGroupName or logGroupIdentifier is required");
        return NULL;
    }
    struct function **functions = functions_of(asked, asked->group, count);
    if (*count) return functions;
    fail(asked->call, "ResourceNotFoundException", "The specified log group does not exist.");
    return NULL;
}

static struct slice arn_of(struct asked *asked, struct slice group, const char *kind, struct slice name)
{
    return arena_printf(asked->call->arena, "arn:aws:logs:%.*s:%.*s:log-group:%.*s%s%.*s",
                        SLICE_ARG(asked->func->region), SLICE_ARG(asked->func->account), SLICE_ARG(group),
                        kind, SLICE_ARG(name));
}

static void describe_groups(struct asked *asked)
{
    struct slice prefix = text_of(asked, "logGroupNamePrefix"),
                 pattern = text_of(asked, "logGroupNamePattern");
    struct slice after = text_of(asked, "nextToken"), last = SLICE_NONE;
    int64_t limit = document_integer(&asked->request, "limit", GROUPS_MAX);
    struct buf *out = asked->call->reply;
    uint32_t count, shown = 0;
    bool has_more = false;
    struct function **functions = functions_of(asked, SLICE_NONE, &count);
    compose(out, "{'logGroups':[");
    for (uint32_t i = 0; i < count && !has_more; i++) {
        struct slice group = functions[i]->log_group, name = functions[i]->name;
        bool is_known = false;
        for (uint32_t k = 0; k < i && !is_known; k++) is_known = slice_equal(functions[k]->log_group, group);
        if (is_known || !slice_starts(group, prefix) || (pattern.len && !slice_contains(group, pattern)) ||
            (after.len && slice_compare(name, after) <= 0))
            continue;
        has_more = shown == (limit > 0 && limit < GROUPS_MAX ? limit : GROUPS_MAX);
        if (has_more) break;
        uint64_t bytes;
        struct buf last_byte = {0};
        logs_read(asked->func->logs, name, UINT64_MAX, 1, &last_byte, &bytes);
        buf_free(&last_byte);
        compose(out,
                "%,{'logGroupName':%s,'creationTime':%d,'metricFilterCount':0,'storedBytes':%d,'arn':%s,"
                "'logGroupArn':%s,'logGroupClass':'STANDARD'}",
                group, logs_begun_ms(asked->func->logs, name), (int64_t)bytes,
                arn_of(asked, group, ":*", SLICE("")), arn_of(asked, group, "", SLICE("")));
        last = arena_copy(asked->call->arena, name);
        shown++;
    }
    if (has_more)
        compose(out, "],'nextToken':%s}", last);
    else
        compose(out, "]}");
    release_all(functions, count);
    finish(asked->call, 200);
}

static void describe_streams(struct asked *asked)
{
    uint32_t count;
    struct slice prefix = text_of(asked, "logStreamNamePrefix");
    struct buf *out = asked->call->reply;
    struct function **functions = group_find(asked, &count);
    if (!functions) return;
    compose(out, "{'logStreams':[");
    for (uint32_t i = 0; i < count; i++) {
        struct slice name = functions[i]->name;
        uint32_t time_count;
        struct log_time *times = logs_times(asked->func->logs, name, asked->call->arena, &time_count);
        if (!slice_starts(name, prefix) || !time_count) continue;
        int64_t first_ms = times[0].time_ms, last_ms = times[time_count - 1].time_ms;
        compose(out,
                "%,{'logStreamName':%s,'creationTime':%d,'firstEventTimestamp':%d,'lastEventTimestamp':%d,"
                "'lastIngestionTime':%d,'storedBytes':0,'arn':%s}",
                name, first_ms, first_ms, last_ms, last_ms,
                arn_of(asked, asked->group, ":log-stream:", name));
    }
    compose(out, "]}");
    release_all(functions, count);
    finish(asked->call, 200);
}

/* ---- filter patterns: words ---- */

struct word {
    struct slice text;
    char kind; /* '+' must be there, '-' must not, '?' one of these must */
};
struct words {
    struct word words[WORDS_MAX];
    unsigned count;
};

/* Words and "phrases", all of which must be there; ?one ?of these; -none of these. NULL, or why not. */
static const char *pattern_parse(struct slice text, struct words *out)
{
    out->count = 0;
    while (text.len) {
        struct word word = {.kind = '+'};
        if (text.data[0] == ' ') {
            text = slice_from(text, 1);
            continue;
        }
        if (text.data[0] == '{' || text.data[0] == '[' || text.data[0] == '%')
            return "Filter patterns of JSON fields, of columns and regular expressions are not supported: use words";
        if (text.data[0] == '?' || text.data[0] == '-') {
            word.kind = text.data[0];
            text = slice_from(text, 1);
        }
        bool is_quoted = text.len && text.data[0] == '"';
        if (is_quoted) text = slice_from(text, 1);
        if (is_quoted && !slice_contains(text, SLICE("\"")))
            return "Invalid filter pattern: a quote is not closed";
        word.text = slice_cut(&text, is_quoted ? '"' : ' ');
        if (out->count == WORDS_MAX) return "Invalid filter pattern: too many words";
        if (word.text.len) out->words[out->count++] = word;
    }
    return NULL;
}

static bool pattern_fits(const struct words *pattern, struct slice line)
{
    bool has_choice = false, is_chosen = false;
    for (unsigned i = 0; i < pattern->count; i++) {
        const struct word *word = &pattern->words[i];
        bool has = slice_contains(line, word->text);
        if (word->kind == '?') {
            has_choice = true;
            is_chosen |= has;
        } else if (has != (word->kind == '+')) {
            return false;
        }
    }
    return !has_choice || is_chosen;
}

/* ---- events ---- */

struct search {
    struct asked *asked;
    struct slice function;
    int64_t from_ms, until_ms; /* until: not itself */
    struct words pattern;
    uint64_t limit, found;
    bool with_ids;         /* FilterLogEvents' members */
    uint64_t position_max; /* where to stop, whatever follows */
    struct log_time *times;
    uint32_t time_count, time_at;
};

static int64_t time_at(struct search *search, uint64_t position)
{
    while (search->time_at + 1 < search->time_count &&
           search->times[search->time_at + 1].position <= position)
        search->time_at++;
    return search->time_count ? search->times[search->time_at].time_ms : 0;
}

static void put_event(struct search *search, uint64_t position, int64_t time_ms, struct slice line)
{
    struct buf *out = search->asked->call->reply;
    struct slice message = utf8_valid(line) ? line : SLICE("(not UTF-8)");
    search->found++;
    compose(out, "%,{");
    if (search->with_ids) compose(out, "'logStreamName':%s", search->function);
    compose(out, "%,'timestamp':%d,'message':%s,'ingestionTime':%d", time_ms, message, time_ms);
    if (search->with_ids) buf_printf(out, ",\"eventId\":\"%" ID_DIGITS "llu\"", (unsigned long long)position);
    buf_byte(out, '}');
}

/* Events from a position on, until the reply is full or the log is at its end; answers where to go on. */
static uint64_t search_run(struct search *search, uint64_t position, bool *has_more)
{
    struct func *func = search->asked->func;
    size_t start = search->asked->call->reply->len;
    struct buf piece = {0};
    *has_more = false;
    for (;;) {
        uint64_t next;
        piece.len = 0;
        logs_read(func->logs, search->function, position, LIMIT_LOG_READ_BYTES, &piece, &next);
        uint64_t at = next - piece.len; /* what was cut off meanwhile is skipped */
        struct slice left = buf_view(&piece);
        const char *end;
        while (left.len && (end = memchr(left.data, '\n', left.len))) {
            struct slice line = {left.data, (size_t)(end - left.data)};
            if (at >= search->position_max) break;
            int64_t time_ms = time_at(search, at);
            if (line.len && time_ms >= search->from_ms && time_ms < search->until_ms &&
                pattern_fits(&search->pattern, line)) {
                *has_more = search->found == search->limit ||
                            search->asked->call->reply->len - start > REPLY_BYTES;
                if (*has_more) {
                    buf_free(&piece);
                    return at;
                }
                put_event(search, at, time_ms, line);
            }
            at += line.len + 1;
            left = slice_from(left, line.len + 1);
        }
        if (at == position || !piece.len) break; /* no whole line is left */
        position = at;
    }
    buf_free(&piece);
    return position;
}

/* "FUNCTION/POSITION" */
static uint64_t token_parse(struct slice token, struct slice *name)
{
    unsigned long long position = 0;
    *name = slice_cut(&token, '/');
    if (!slice_to_u64(token, UINT64_MAX - 1, &position)) *name = SLICE_NONE;
    return position;
}

static bool search_begin(struct search *search, struct asked *asked)
{
    int64_t limit = document_integer(&asked->request, "limit", EVENTS_MAX);
    const char *fault = pattern_parse(text_of(asked, "filterPattern"), &search->pattern);
    search->asked = asked;
    search->from_ms = document_integer(&asked->request, "startTime", INT64_MIN);
    search->until_ms = document_integer(&asked->request, "endTime", INT64_MAX);
    search->position_max = UINT64_MAX;
    search->limit = limit > 0 && limit < EVENTS_MAX ? (uint64_t)limit : EVENTS_MAX;
    struct slice name, token = text_of(asked, "nextToken");
    token_parse(token, &name);
    if (!fault && token.len && !name.len) fault = "The specified nextToken is invalid.";
    if (fault) fail(asked->call, "InvalidParameterException", fault);
    return !fault;
}

static void search_in(struct search *search, struct slice function)
{
    search->function = function;
    search->time_at = 0;
    search->times = logs_times(search->asked->func->logs, function, search->asked->call->arena,
                               &search->time_count);
}

/* Where the first line of the time stands: nothing before it need be read. */
static uint64_t search_start(const struct search *search)
{
    uint64_t start = 0;
    for (uint32_t i = 0; i < search->time_count && search->times[i].time_ms < search->from_ms; i++)
        start = search->times[i].position;
    return start;
}

/* True when no streams are named, or this one is. */
static bool stream_is_wanted(struct asked *asked, struct slice name)
{
    struct slice list = document_get(&asked->request, "logStreamNames");
    struct slice prefix = text_of(asked, "logStreamNamePrefix"), text;
    struct json_reader reader;
    if (!slice_starts(name, prefix)) return false;
    if (!list.data) return true;
    json_begin(&reader, list, asked->call->arena);
    if (json_peek(&reader) != JSON_ARRAY || !json_enter(&reader)) return false;
    while (json_element(&reader))
        if (json_string(&reader, &text) && slice_equal(text, name)) return true;
    return false;
}

static void filter_events(struct asked *asked)
{
    uint32_t count;
    struct search search = {.with_ids = true};
    struct slice next_name, token = text_of(asked, "nextToken");
    uint64_t next = token_parse(token, &next_name);
    struct buf *out = asked->call->reply;
    bool has_more = false;
    if (!search_begin(&search, asked)) return;
    struct function **functions = group_find(asked, &count);
    if (!functions) return;
    compose(out, "{'events':[");
    uint32_t i = 0;
    for (; i < count && !has_more; i++) {
        struct slice name = functions[i]->name;
        if (!stream_is_wanted(asked, name) || (next_name.len && slice_compare(name, next_name) < 0)) continue;
        search_in(&search, name);
        bool goes_on = next_name.len && slice_equal(name, next_name);
        next = search_run(&search, goes_on ? next : search_start(&search), &has_more);
    }
    compose(out, "],'searchedLogStreams':[]");
    if (has_more)
        buf_printf(out, ",\"nextToken\":\"%.*s/%llu\"", SLICE_ARG(functions[i - 1]->name),
                   (unsigned long long)next);
    buf_byte(out, '}');
    release_all(functions, count);
    finish(asked->call, 200);
}

/* Forward from a token, from the beginning, or the last `limit` events. */
static void get_events(struct asked *asked)
{
    uint32_t count;
    struct search search = {0};
    struct slice name, stream = text_of(asked, "logStreamName"), token = text_of(asked, "nextToken");
    uint64_t position = token_parse(token, &name);
    bool has_more = false, is_known = false;
    if (!search_begin(&search, asked)) return;
    struct function **functions = group_find(asked, &count);
    if (!functions) return;
    for (uint32_t i = 0; i < count; i++) is_known |= slice_equal(functions[i]->name, stream);
    release_all(functions, count);
    if (!is_known) {
        fail(asked->call, "ResourceNotFoundException", "The specified log stream does not exist.");
        return;
    }
    struct buf *out = asked->call->reply;
    bool backward = slice_equal(name, SLICE("b"));
    bool from_head = slice_equal(document_get(&asked->request, "startFromHead"), SLICE("true")) || token.len;
    if (backward) {
        from_head = false;
        search.position_max = position;
    }
    search_in(&search, stream);
    if (!token.len || backward) position = search_start(&search);
    compose(out, "{'events':[");
    size_t start = out->len;
    uint64_t first = position, end = search_run(&search, position, &has_more);
    while (has_more && !from_head) { /* only the last page counts */
        out->len = start;
        search.found = 0;
        first = end;
        end = search_run(&search, end, &has_more);
    }
    buf_printf(out, "],\"nextForwardToken\":\"f/%0*llu\",\"nextBackwardToken\":\"b/%0*llu\"}", TOKEN_DIGITS,
               (unsigned long long)end, TOKEN_DIGITS, (unsigned long long)first);
    finish(asked->call, 200);
}

/* ---- which ---- */

bool func_serves_target(struct slice target)
{
    return slice_starts(target, SLICE(TARGET));
}

void logs_api_serve(void *room, struct rest_call *call)
{
    static const struct {
        struct slice name;
        void (*serve)(struct asked *asked);
    } operations[] = {{SLICE("DescribeLogGroups"), describe_groups},
                      {SLICE("DescribeLogStreams"), describe_streams},
                      {SLICE("FilterLogEvents"), filter_events},
                      {SLICE("GetLogEvents"), get_events}};
    struct slice target = slice_from(call->header(call, SLICE("X-Amz-Target")), strlen(TARGET));
    struct asked asked = {.func = room, .call = call};
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        if (!slice_equal(target, operations[i].name)) continue;
        if (!document_parse(call->body.len ? call->body : SLICE("{}"), call->arena, &asked.request))
            fail(call, "SerializationException", "The body is no JSON object");
        else
            operations[i].serve(&asked);
        return;
    }
    fail(
        call, "UnknownOperationException",
        "Of CloudWatch Logs there are DescribeLogGroups, DescribeLogStreams, FilterLogEvents and GetLogEvents here");
}
