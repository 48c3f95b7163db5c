/* quipu queue: the messages of queues, which are items of one table: hash `queue`, range `id` (by time),
 * `body`, `sent`. Works on any place, like the commands for items. A dead letter has further attributes for
 * redriving it, which a running server does; what it holds in the table of calls goes with it (letter.c). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/print.h"
#include "cli/layout.h"
#include "cli/listing.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/service.h"

#define REDRIVE_WAIT_MS 300000 /* for one request: a hundred transactions on a slow line */
#define REDRIVE_REASONS 16

struct queues {
    struct place place;
    struct schema schema;
    struct arena arena;
};

/* False when there is no such table, which is to have no messages, or after complaining. */
static bool queues_open(struct queues *out, const struct arguments *arguments, enum place_use use,
                        int *status)
{
    struct buf request = {0};
    *out = (struct queues){.schema = {.hash = {SLICE("queue"), 'S'}, .range = {SLICE("id"), 'S'}}};
    *status = EXIT_FAULT;
    if (!place_open(&out->place, arguments, use)) return false;
    out->schema.table = arena_printf(&out->arena, "%squeues", out->place.prefix).data;
    request_begin(&request, out->schema.table);
    buf_byte(&request, '}');
    struct answer answer = place_ask(&out->place, &out->arena, "DescribeTable", &request);
    buf_free(&request);
    if (!answer.error) return true;
    if (strcmp(answer.error, "ResourceNotFoundException") != 0) {
        place_complain(&out->place, NULL, answer.error, answer.message);
    } else {
        *status = EXIT_FINE;
        if (errors_are_terminal()) fprintf(stderr, "There are no queues on %s.\n", out->place.where);
    }
    arena_free(&out->arena);
    place_close(&out->place);
    return false;
}

static void queues_close(struct queues *queues)
{
    arena_free(&queues->arena);
    place_close(&queues->place);
}

/* Items one after the other; `each` answers false to stop. False after complaining, or when it was stopped.
 */
static bool queues_each(struct queues *queues, const char *operation, const struct buf *request,
                        bool (*each)(void *context, struct slice item), void *context)
{
    const char *json;
    size_t len;
    bool fine = true;
    enum quipu_result result = QUIPU_NONE;
    const char *text = arena_printf(&queues->arena, "%.*s", SLICE_ARG(buf_view(request))).data;
    struct quipu_pages *pages = quipu_pages_open(queues->place.db, operation, text);
    while (fine && (result = quipu_pages_next(pages, &json, &len)) == QUIPU_FOUND)
        fine = each(context, (struct slice){json, len});
    const struct quipu_reply *reply = quipu_pages_reply(pages);
    if (fine && result == QUIPU_FAILED) {
        place_complain(&queues->place, queues->schema.table, reply->error, reply->message);
        fine = false;
    }
    quipu_pages_close(pages);
    return fine;
}

/* ---- listing ---- */

struct count {
    struct slice name;
    unsigned long long messages;
    struct slice oldest;
};

struct counts {
    struct arena arena;
    struct count *all;
    size_t count, room;
};

static bool count_message(void *context, struct slice item)
{
    struct counts *counts = context;
    struct arena arena = {0};
    const char *fault;
    const struct node *message = node_parse(&arena, item, &fault);
    struct slice name = node_text(node_member(message, "queue"), "S"),
                 sent = node_text(node_member(message, "sent"), "S");
    size_t i = 0;
    while (i < counts->count && !slice_equal(counts->all[i].name, name)) i++;
    if (i == counts->room) {
        struct count *larger = arena_array(&counts->arena, struct count, i ? i * 2 : 16);
        if (i) memcpy(larger, counts->all, i * sizeof *larger);
        counts->all = larger;
        counts->room = i ? i * 2 : 16;
    }
    if (i == counts->count)
        counts->all[counts->count++] = (struct count){arena_copy(&counts->arena, name), 0,
                                                      arena_copy(&counts->arena, sent)};
    counts->all[i].messages++;
    arena_free(&arena);
    return true;
}

static void print_counts(const struct arguments *arguments, struct counts *counts)
{
    static const char *const head[] = {"QUEUE", "MESSAGES", "OLDEST"};
    struct listing listing;
    struct buf json = {0};
    listing_begin(&listing, form_listed(arguments), head, sizeof head / sizeof *head);
    for (size_t i = 0; i < counts->count; i++) {
        json.len = 0;
        buf_byte(&json, '{');
        put_string_member(&json, "queue", counts->all[i].name);
        put_name(&json, "messages");
        buf_printf(&json, "%llu", counts->all[i].messages);
        put_string_member(&json, "oldest", counts->all[i].oldest);
        buf_byte(&json, '}');
        struct slice *row = listing_row(&listing, buf_view(&json));
        if (!row) continue;
        row[0] = counts->all[i].name;
        row[1] = arena_printf(&counts->arena, "%llu", counts->all[i].messages);
        row[2] = counts->all[i].oldest;
    }
    listing_end(&listing, "queues");
    buf_free(&json);
}

static int list(const struct arguments *arguments)
{
    struct queues queues;
    struct counts counts = {0};
    struct buf request = {0};
    int status;
    if (!queues_open(&queues, arguments, PLACE_READ, &status)) return status;
    request_begin(&request, queues.schema.table);
    buf_text(&request, ",\"ProjectionExpression\":\"queue,sent\"}");
    bool fine = queues_each(&queues, "Scan", &request, count_message, &counts);
    if (fine) print_counts(arguments, &counts);
    buf_free(&request);
    arena_free(&counts.arena);
    queues_close(&queues);
    return fine ? EXIT_FINE : EXIT_FAULT;
}

/* ---- reading ---- */

static void put_messages_request(struct buf *out, const struct queues *queues, const char *queue)
{
    request_begin(out, queues->schema.table);
    buf_text(out, ",\"ProjectionExpression\":\"queue,id,sent,body\",\"KeyConditionExpression\":"
                  "\"queue = :queue\",\"ExpressionAttributeValues\":{\":queue\":{");
    put_string_member(out, "S", slice_of(queue));
    buf_text(out, "}}}");
}

struct reading {
    struct printer printer;
    unsigned long long limit;
};

static bool print_message(void *context, struct slice item)
{
    struct reading *reading = context;
    return printer_item(&reading->printer, item) && reading->printer.count < reading->limit;
}

static int read_queue(const struct arguments *arguments)
{
    struct queues queues;
    struct reading reading = {.limit = ~0ull};
    struct buf request = {0};
    int status;
    if (!argument_number(arguments, "limit", 1, 1000000000, &reading.limit)) return EXIT_USAGE;
    if (!queues_open(&queues, arguments, PLACE_READ, &status)) return status;
    put_messages_request(&request, &queues, argument_word(arguments, 0));
    printer_begin(&reading.printer, form_chosen(arguments), &queues.schema);
    bool fine = queues_each(&queues, "Query", &request, print_message, &reading);
    fine = printer_end(&reading.printer) && (fine || reading.printer.count == reading.limit);
    buf_free(&request);
    queues_close(&queues);
    return fine ? EXIT_FINE : EXIT_FAULT;
}

/* ---- removing ---- */

/* The items of the table of calls that a dead letter holds. */
static bool held_delete(struct queues *queues, struct arena *arena, struct slice queue, struct slice id,
                        struct slice held)
{
    const char *table = arena_printf(arena, "%sinvocations", queues->place.prefix).data;
    unsigned long long count = 0;
    bool fine = true;
    if (!slice_to_u64(held, 100, &count)) return true;
    for (unsigned part = 1; fine && part <= count; part++) {
        struct buf request = {0};
        request_begin(&request, table);
        buf_text(&request, ",\"Key\":{\"id\":{");
        put_string_member(&request, "S",
                          arena_printf(arena, "letter/%.*s/%.*s", SLICE_ARG(queue), SLICE_ARG(id)));
        buf_printf(&request, "},\"part\":{\"N\":\"%u\"}}}", part);
        fine = place_call(&queues->place, arena, "DeleteItem", &request) != NULL;
        buf_free(&request);
    }
    return fine;
}

static bool message_delete(struct queues *queues, struct slice queue, struct slice id)
{
    struct buf request = {0};
    struct arena arena = {0};
    request_begin(&request, queues->schema.table);
    buf_text(&request, ",\"Key\":{\"queue\":{");
    put_string_member(&request, "S", queue);
    buf_text(&request, "},\"id\":{");
    put_string_member(&request, "S", id);
    buf_text(&request, "}},\"ReturnValues\":\"ALL_OLD\"}");
    const struct node *reply = place_call(&queues->place, &arena, "DeleteItem", &request);
    const struct node *held = node_member(node_member(reply, "Attributes"), "held");
    bool fine = reply && (!held || held_delete(queues, &arena, queue, id, node_text(held, "N")));
    buf_free(&request);
    arena_free(&arena);
    return fine;
}

static bool delete_message(void *context, struct slice item)
{
    struct queues *queues = context;
    struct arena arena = {0};
    const char *fault;
    const struct node *message = node_parse(&arena, item, &fault);
    bool fine = message_delete(queues, node_text(node_member(message, "queue"), "S"),
                               node_text(node_member(message, "id"), "S"));
    arena_free(&arena);
    return fine;
}

static bool person_agrees(const struct arguments *arguments)
{
    char reply[16] = "";
    const char *queue = argument_word(arguments, 0);
    if (argument_given(arguments, "yes") || argument_words(arguments) > 1) return true;
    if (isatty(STDIN_FILENO) != 1) {
        complain("this cannot be undone: say --yes to remove all messages of %s", queue);
        return false;
    }
    fprintf(stderr, "Remove all messages of the queue '%s'? [y/N] ", queue);
    return fgets(reply, sizeof reply, stdin) && (reply[0] == 'y' || reply[0] == 'Y');
}

static int remove_messages(const struct arguments *arguments)
{
    const char *queue = argument_word(arguments, 0);
    struct queues queues;
    struct buf request = {0};
    int status;
    if (!person_agrees(arguments)) return EXIT_FAULT;
    if (!queues_open(&queues, arguments, PLACE_WRITE, &status)) return status;
    bool fine = true;
    for (size_t i = 1; fine && i < argument_words(arguments); i++)
        fine = message_delete(&queues, slice_of(queue), slice_of(argument_word(arguments, i)));
    if (argument_words(arguments) == 1) {
        put_messages_request(&request, &queues, queue);
        fine = queues_each(&queues, "Query", &request, delete_message, &queues);
    }
    buf_free(&request);
    queues_close(&queues);
    return fine ? EXIT_FINE : EXIT_FAULT;
}

/* ---- redriving ---- */

struct redrive {
    struct service service;
    const char *queue, *id;
    unsigned long long max, redriven, refused, later, left;
    struct slice next; /* where the server is to go on; empty: at the beginning */
    struct {
        struct slice text, id;
        unsigned long long count;
    } reasons[REDRIVE_REASONS];
    struct arena arena; /* of the texts above */
};

static void put_redrive(struct buf *out, const struct redrive *redrive)
{
    buf_byte(out, '{');
    if (redrive->id)
        put_string_member(out, "id", slice_of(redrive->id));
    else
        buf_printf(out, "\"max\":%llu", redrive->max - redrive->redriven);
    if (redrive->next.len) put_string_member(out, "next", redrive->next);
    buf_byte(out, '}');
}

static void add_reasons(struct redrive *redrive, const struct node *reasons)
{
    for (const struct node *reason = reasons ? reasons->first : NULL; reason; reason = reason->next) {
        const struct node *ids = node_member(reason, "ids");
        struct slice text = node_text(reason, "reason");
        size_t at = 0;
        while (at < REDRIVE_REASONS - 1 && redrive->reasons[at].count &&
               !slice_equal(redrive->reasons[at].text, text))
            at++;
        if (!redrive->reasons[at].count) {
            redrive->reasons[at].text = arena_copy(&redrive->arena, text);
            if (ids && ids->first) redrive->reasons[at].id = arena_copy(&redrive->arena, ids->first->text);
        }
        redrive->reasons[at].count += node_count(reason, "count");
    }
}

/* One request; false after complaining. */
static bool redrive_page(struct redrive *redrive)
{
    struct arena arena = {0};
    struct buf body = {0};
    struct response response;
    put_redrive(&body, redrive);
    struct request request = request_to(
        "lambda", "POST", path_of(&arena, "/v1/queues/%s/redrive", redrive->queue, NULL), &body);
    request.total_ms = REDRIVE_WAIT_MS;
    bool fine = service_call(&redrive->service, &arena, &request, &response);
    if (fine) {
        redrive->redriven += node_count(response.json, "redriven");
        redrive->refused += node_count(response.json, "refused");
        redrive->later += node_count(response.json, "later");
        redrive->left = node_count(response.json, "left");
        redrive->next = arena_copy(&redrive->arena, node_text(response.json, "next"));
        add_reasons(redrive, node_member(response.json, "reasons"));
    }
    buf_free(&body);
    arena_free(&arena);
    return fine;
}

static void print_refused(const struct redrive *redrive)
{
    for (size_t i = 0; i < REDRIVE_REASONS && redrive->reasons[i].count; i++) {
        unsigned long long count = redrive->reasons[i].count;
        complain("%s cannot be redriven (%.*s%s): %.*s", counted(count, "message").text,
                 SLICE_ARG(redrive->reasons[i].id), count == 1 ? "" : ", ...",
                 SLICE_ARG(redrive->reasons[i].text));
    }
}

static int redrive_queue(const struct arguments *arguments)
{
    struct redrive redrive = {.queue = argument_word(arguments, 0), .id = argument_text(arguments, "id")};
    struct progress progress;
    redrive.max = 1000000000;
    if (redrive.id && argument_given(arguments, "max"))
        return complain_of_usage(arguments, "--id and --max do not go together");
    if (!argument_number(arguments, "max", 1, redrive.max, &redrive.max)) return EXIT_USAGE;
    if (!service_open(&redrive.service, arguments)) return EXIT_FAULT;
    progress_begin(&progress, redrive.queue, 0);
    progress.thing = "message";
    bool fine;
    do {
        fine = redrive_page(&redrive);
        progress.total = redrive.redriven + redrive.left;
        if (fine && redrive.next.len) progress_show(&progress, redrive.redriven);
    } while (fine && redrive.next.len && redrive.redriven < redrive.max);
    if (fine && !redrive.redriven && !redrive.refused && !redrive.later && !redrive.left && !redrive.id)
        fprintf(stderr, "There are no messages in the queue '%s'.\n", redrive.queue);
    else if (fine || redrive.redriven)
        progress_end(&progress, "redriven", redrive.redriven);
    if (redrive.later)
        fprintf(stderr, "%s: %s came after this was begun and stay%s\n", redrive.queue,
                counted(redrive.later, "message").text, redrive.later == 1 ? "s" : "");
    if (fine && redrive.left && !redrive.id)
        fprintf(stderr, "%s: %s left\n", redrive.queue, counted(redrive.left, "message").text);
    print_refused(&redrive);
    service_close(&redrive.service);
    arena_free(&redrive.arena);
    return fine && !redrive.refused ? EXIT_FINE : EXIT_FAULT;
}

/* ---- the rows ---- */

static const struct flag list_flags[] = {LIST_FLAGS};
static const struct flag read_flags[] = {{"limit", "N", "at most so many messages"}, FORM_FLAGS};
static const struct flag remove_flags[] = {{"yes", NULL, "do not ask"}};
static const struct flag redrive_flags[] = {{"max", "N", "at most so many messages"},
                                            {"id", "ID", "this message alone"}};

static const struct command children[] = {
    {.name = "ls",
     .summary = "list the queues",
     .usage = "[flags]",
     .about = "Lists the queues that hold messages. They are items of the table quipu-queues.",
     FLAGS(list_flags),
     .works_on_data = true,
     .run = list},
    {.name = "read",
     .summary = "print a queue's messages, the oldest first",
     .usage = "NAME [flags]",
     .about = "Prints the messages of a queue; they stay in it.",
     FLAGS(read_flags),
     .works_on_data = true,
     .words_min = 1,
     .words_max = 1,
     .run = read_queue},
    {.name = "rm",
     .summary = "remove messages",
     .usage = "NAME [ID...] [flags]",
     .about = "Removes messages of a queue: those with these ids, or all of them. Asks before the latter.",
     FLAGS(remove_flags),
     .works_on_data = true,
     .words_min = 1,
     .words_max = WORDS_MANY,
     .run = remove_messages},
    {.name = "redrive",
     .summary = "send failed calls again",
     .usage = "NAME [flags]",
     .about =
         "Sends failed calls again that ended in this queue. Each goes to its target as before, once, with\n"
         "the same payload and all its attempts, and its message is removed; it comes back if the call\n"
         "fails again. The queue 'reactions' has what patterns were to do 'then'. What arrives after the\n"
         "command was begun is left alone. Messages that hold no failed call stay, and the exit status is 1.",
     FLAGS(redrive_flags),
     .examples = "  quipu queue redrive reactions           all reactions that have failed\n"
                 "  quipu queue redrive reactions --max 1   try with one",
     .works_on_server = true,
     .words_min = 1,
     .words_max = 1,
     .run = redrive_queue},
};

const struct command command_queue = {.name = "queue",
                                      .summary = "look at queues: dead letters and what targets send",
                                      .usage = "ls|read|rm|redrive ...",
                                      .about = "Works on the messages of queues.",
                                      .children = children,
                                      .child_count = sizeof children / sizeof *children};
