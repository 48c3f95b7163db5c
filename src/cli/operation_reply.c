/* Calling a pattern, and its answer on standard output: for a person the member that matters, lists line by
 * line with all their pages; what HTTP has, whole, with --json. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/listing.h"
#include "cli/operation.h"

#define PAGES_MOST   1000000
#define COLUMNS_MOST 24 /* of a table */
#define PAIRS_MOST   64

/* ---- calling ---- */

static const char *text_in(struct arena *arena, const char *text)
{
    return text ? arena_printf(arena, "%s", text).data : NULL;
}

static struct slice header_find(struct arena *arena, const char *headers, const char *name)
{
    const char *line = headers ? strstr(headers, name) : NULL;
    if (!line) return SLICE("");
    line += strlen(name);
    return arena_copy(arena, (struct slice){line, strcspn(line, "\n")});
}

/* The path and the body with the wait in its place. */
static const char *path_make(struct arena *arena, const struct inquiry *inquiry, int64_t wait_ms)
{
    struct slice path = buf_view(&inquiry->path);
    if (!inquiry->wait || inquiry->wait->place != IN_QUERY)
        return arena_printf(arena, "%.*s", SLICE_ARG(path)).data;
    return arena_printf(arena, "%.*s%cwait=%lldms", SLICE_ARG(path),
                        memchr(path.data, '?', path.len) ? '&' : '?', (long long)wait_ms)
        .data;
}

static const char *body_make(struct arena *arena, const struct inquiry *inquiry, int64_t wait_ms)
{
    struct slice body = buf_view(&inquiry->body);
    if (!inquiry->wait || inquiry->wait->place != IN_BODY)
        return body.len ? arena_copy(arena, body).data : NULL;
    body.len -= body.len > 0; /* the brace */
    return arena_printf(arena, "%.*s%s\"wait\":%lld}", SLICE_ARG(body),
                        body.len > 1 ? ","
                        : body.len   ? ""
                                     : "{",
                        (long long)wait_ms)
        .data;
}

struct heard inquiry_run(const struct place *place, struct arena *arena, const struct inquiry *inquiry)
{
    int64_t most_ms = inquiry->wait ? inquiry->wait->max : 0;
    int64_t wait_ms = inquiry->wait_ms < most_ms ? inquiry->wait_ms : most_ms;
    const char *fault, *path = path_make(arena, inquiry, wait_ms);
    const char *headers = arena_printf(arena, "%.*s", SLICE_ARG(buf_view(&inquiry->headers))).data;
    const char *body = body_make(arena, inquiry, wait_ms);
    struct quipu_reply *reply = quipu_pattern(place->db, inquiry->method, path, headers, body);
    struct heard heard = {.status = reply->status,
                          .error = text_in(arena, reply->error),
                          .message = text_in(arena, reply->message),
                          .body = arena_copy(arena, (struct slice){reply->json, reply->json_len}),
                          .etag = text_in(arena, reply->etag),
                          .cost = header_find(arena, reply->headers, "Quipu-Cost: ")};
    if (heard.body.len) heard.json = node_parse(arena, heard.body, &fault);
    quipu_reply_free(reply);
    return heard;
}

/* ---- what came of it ---- */

/* Codes that scripts go on from in their own way, by exit status. */
static const struct {
    const char *code;
    int status;
} known_codes[] = {
    {"held", EXIT_LATER},
    {"running", EXIT_LATER},
    {"limited", EXIT_LATER},
    {"others-wait", EXIT_LATER},
    {"too-many-waiting", EXIT_LATER},
    {"busy", EXIT_LATER},
    {"stopping", EXIT_LATER},
    {"claimed", EXIT_LATER},
    {"version-mismatch", EXIT_LOST},
    {"stale-fence", EXIT_LOST},
    {"not-held", EXIT_LOST},
    {"expired", EXIT_LOST},
    {"not-claimed", EXIT_LOST},
    {"unexpected", EXIT_LOST},
    {"refused", EXIT_FAULT},
};

int heard_status(const struct heard *heard)
{
    if (heard->status == 204 || heard->status == 304) return EXIT_LATER;
    if (heard->status >= 200 && heard->status < 300) return EXIT_FINE;
    for (size_t i = 0; heard->error && i < sizeof known_codes / sizeof *known_codes; i++)
        if (strcmp(heard->error, known_codes[i].code) == 0) return known_codes[i].status;
    return heard->status == 400 ? EXIT_USAGE : EXIT_FAULT;
}

int heard_complain(const struct arguments *arguments, const struct place *place, const struct heard *heard)
{
    int status = heard_status(heard);
    if (!heard->error) { /* nothing came, which is no fault */
        if (errors_are_terminal())
            fprintf(stderr, "%s\n", heard->status == 304 ? "It has not changed." : "There is nothing now.");
        return status;
    }
    if (strcmp(heard->error, "no-reply") == 0)
        return place_complain(place, NULL, "NoReplyException", heard->message);
    if (status == EXIT_USAGE) return complain_of_usage(arguments, "%s", heard->message);
    complain("%s", *heard->message ? heard->message : heard->error);
    return status;
}

/* ---- printing ---- */

/* The member that people want; NULL: none. */
static const struct node *answer_in(const struct heard *heard, struct slice answer)
{
    const struct node *object = heard->json && heard->json->kind == JSON_OBJECT ? heard->json : NULL;
    for (const struct node *member = object ? object->first : NULL; member; member = member->next)
        if (slice_equal(member->name, answer)) return member;
    return NULL;
}

static struct slice cell_of(const struct node *node)
{
    return node->kind == JSON_STRING ? node->text : node->source;
}

static void print_text(struct slice text)
{
    fwrite(text.data, 1, text.len, stdout);
    putchar('\n');
}

static void print_object(struct arena *arena, const struct node *object)
{
    struct pair pairs[PAIRS_MOST];
    size_t count = 0;
    for (const struct node *member = object->first; member && count < PAIRS_MOST; member = member->next)
        pairs[count++] = (struct pair){arena_printf(arena, "%.*s", SLICE_ARG(member->name)).data,
                                       cell_of(member)};
    pairs_print(pairs, count);
}

/* The columns are the members of all rows, in the order in which they come. */
static size_t columns_find(struct arena *arena, const struct node *list, const char **names)
{
    size_t count = 0;
    for (const struct node *row = list->first; row; row = row->next)
        for (const struct node *member = row->first; member && count < COLUMNS_MOST; member = member->next) {
            size_t i = 0;
            while (i < count && !slice_equal(slice_of(names[i]), member->name)) i++;
            if (i == count) names[count++] = arena_printf(arena, "%.*s", SLICE_ARG(member->name)).data;
        }
    return count;
}

static void print_table(struct arena *arena, const struct node *list)
{
    const char *names[COLUMNS_MOST];
    struct listing listing;
    size_t count = columns_find(arena, list, names);
    if (!count) return;
    listing_begin(&listing, FORM_TABLE, names, count);
    for (const struct node *row = list->first; row; row = row->next) {
        struct slice *cells = listing_row(&listing, row->source);
        for (size_t i = 0; i < count; i++) {
            const struct node *member = node_member(row, names[i]);
            cells[i] = member ? cell_of(member) : SLICE("");
        }
    }
    listing_end(&listing, "entries");
}

static void print_list(struct arena *arena, const struct node *list, bool is_readable)
{
    bool is_table = is_readable && list->first && list->first->kind == JSON_OBJECT;
    if (is_table) {
        print_table(arena, list);
        return;
    }
    for (const struct node *one = list->first; one; one = one->next)
        print_text(is_readable ? text_harmless(arena, cell_of(one)) : one->source);
}

/* Special commands need not have it. */
static bool flag_is_given(const struct arguments *arguments, const char *name)
{
    for (size_t i = 0; i < arguments->command->flag_count; i++)
        if (strcmp(arguments->command->flags[i].name, name) == 0) return argument_given(arguments, name);
    return false;
}

void heard_print(const struct arguments *arguments, const struct heard *heard, struct slice answer)
{
    bool is_whole = flag_is_given(arguments, "json") || flag_is_given(arguments, "cost") ||
                    slice_equal(answer, SLICE("*"));
    bool is_readable = output_is_terminal();
    struct arena arena = {0};
    const struct node *wanted = is_whole ? NULL : answer_in(heard, answer);
    if (!heard->body.len)
        ; /* nothing came */
    else if (is_whole || !heard->json)
        print_text(heard->body);
    else if (wanted && wanted->kind == JSON_ARRAY)
        print_list(&arena, wanted, is_readable);
    else if (wanted)
        print_text(is_readable ? text_harmless(&arena, cell_of(wanted)) : cell_of(wanted));
    else if (is_readable && heard->json->kind == JSON_OBJECT)
        print_object(&arena, heard->json);
    else
        print_text(heard->body);
    if (heard->cost.len) fprintf(stderr, "cost: %.*s\n", SLICE_ARG(heard->cost));
    arena_free(&arena);
}

/* ---- running ---- */

/* A wait that ended without what was waited for: an end, a document, a message. */
static bool is_over(const struct flow_row *row, const struct heard *heard, struct slice answer)
{
    static const char *const unfinished[] = {"OPEN", "CLOSING", "READY", "CLAIMED"};
    struct slice state = node_text(heard->json, "state");
    const struct node *list = answer_in(heard, answer);
    if (strcmp(row->method, "GET") != 0) return false; /* a claim's state is what was asked for */
    for (size_t i = 0; i < sizeof unfinished / sizeof *unfinished; i++)
        if (slice_equal(state, slice_of(unfinished[i]))) return true;
    bool is_none = heard->error && strcmp(heard->error, "no-such-document") == 0;
    return is_none || (list && list->kind == JSON_ARRAY && !list->first);
}

/* All pages of a list, where nobody asked for one of them. */
static bool wants_pages(const struct arguments *arguments, struct slice answer)
{
    const struct flow_row *row = arguments->command->operation;
    return answer.len && row_field(row, SLICE("after")) && !flag_is_given(arguments, "after") &&
           !flag_is_given(arguments, "limit") && !argument_given(arguments, "json");
}

static int answer_take(const struct arguments *arguments, const struct place *place,
                       const struct heard *heard, struct slice answer)
{
    int status = heard_status(heard);
    if (status == EXIT_FINE) {
        heard_print(arguments, heard, answer);
        if (heard->etag && slice_equal(answer, SLICE("*")) && errors_are_terminal())
            fprintf(stderr, "version %s\n", heard->etag);
    } else {
        status = heard_complain(arguments, place, heard);
    }
    bool waited = flag_is_given(arguments, "wait");
    return waited && is_over(arguments->command->operation, heard, answer) ? EXIT_LATER : status;
}

/* Again and again while one call cannot wait as long as we are told to. What is answered before its time is
 * not about time. */
static struct heard answer_await(const struct flow_row *row, const struct place *place, struct arena *arena,
                                 struct inquiry *inquiry, struct slice answer)
{
    int64_t end_us = inquiry->wait ? monotonic_us() + inquiry->wait_ms * 1000 : 0;
    for (;;) {
        int64_t began_us = monotonic_us();
        struct heard heard = inquiry_run(place, arena, inquiry);
        bool is_later = heard_status(&heard) == EXIT_LATER || is_over(row, &heard, answer);
        int64_t now_us = monotonic_us(), most_us = inquiry->wait ? inquiry->wait->max * 1000 : 0;
        if (!inquiry->wait || !is_later || now_us - began_us < most_us || now_us >= end_us) return heard;
        arena_reset(arena);
        inquiry->wait_ms = (end_us - now_us) / 1000 + 1;
    }
}

static int pages_run(const struct arguments *arguments, const struct place *place, struct inquiry *inquiry,
                     struct slice answer)
{
    size_t first_len = inquiry->path.len;
    int status = EXIT_FINE;
    bool goes_on = true;
    for (unsigned page = 0; goes_on && page < PAGES_MOST; page++) {
        struct arena arena = {0};
        struct heard heard = answer_await(arguments->command->operation, place, &arena, inquiry, answer);
        inquiry->wait = NULL; /* further pages are there, or not */
        status = answer_take(arguments, place, &heard, answer);
        struct slice next = node_text(heard.json, "next");
        goes_on = status == EXIT_FINE && next.len && wants_pages(arguments, answer) && !ferror(stdout);
        inquiry->path.len = first_len;
        if (goes_on) inquiry_query(inquiry, "after", next);
        arena_free(&arena);
    }
    return status;
}

int operation_run(const struct arguments *arguments)
{
    const struct flow_row *row = arguments->command->operation;
    struct phrase_of_row phrase;
    struct inquiry inquiry;
    struct place place;
    int status;
    row_phrase(row, &phrase);
    if (inquiry_read(&inquiry, row, arguments, &status)) {
        status = EXIT_FAULT;
        if (place_open(&place, arguments, strcmp(row->method, "GET") == 0 ? PLACE_LOOK : PLACE_MAKE)) {
            status = pages_run(arguments, &place, &inquiry, phrase.answer);
            place_close(&place);
        }
    }
    inquiry_free(&inquiry);
    return status;
}
