/* quipu queue: the messages of queues, which are items of one table: hash `queue`, range `id` (by time),
 * `body`, `sent`. Works on any place, like the commands for items. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/layout.h"
#include "cli/listing.h"
#include "cli/print.h"

struct queues {
    struct place place;
    struct schema schema;
    struct arena arena;
};

/* False when there is no such table, which is to have no messages, or after complaining. */
static bool queues_open(struct queues *out, const struct arguments *arguments, int *status)
{
    struct buf request = {0};
    *out = (struct queues){.schema = {.hash = {SLICE("queue"), 'S'}, .range = {SLICE("id"), 'S'}}};
    *status = EXIT_FAULT;
    if (!place_open(&out->place, arguments, false)) return false;
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
    if (!queues_open(&queues, arguments, &status)) return status;
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
    buf_text(out,
             ",\"KeyConditionExpression\":\"queue = :queue\",\"ExpressionAttributeValues\":{\":queue\":{");
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
    if (!queues_open(&queues, arguments, &status)) return status;
    put_messages_request(&request, &queues, argument_word(arguments, 0));
    printer_begin(&reading.printer, form_chosen(arguments), &queues.schema);
    bool fine = queues_each(&queues, "Query", &request, print_message, &reading);
    fine = printer_end(&reading.printer) && (fine || reading.printer.count == reading.limit);
    buf_free(&request);
    queues_close(&queues);
    return fine ? EXIT_FINE : EXIT_FAULT;
}

/* ---- removing ---- */

static bool message_delete(struct queues *queues, struct slice queue, struct slice id)
{
    struct buf request = {0};
    struct arena arena = {0};
    request_begin(&request, queues->schema.table);
    buf_text(&request, ",\"Key\":{\"queue\":{");
    put_string_member(&request, "S", queue);
    buf_text(&request, "},\"id\":{");
    put_string_member(&request, "S", id);
    buf_text(&request, "}}}");
    bool fine = place_call(&queues->place, &arena, "DeleteItem", &request) != NULL;
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
    if (!queues_open(&queues, arguments, &status)) return status;
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

/* ---- the rows ---- */

static const struct flag list_flags[] = {LIST_FLAGS};
static const struct flag read_flags[] = {{"limit", "N", "at most so many messages"}, FORM_FLAGS};
static const struct flag remove_flags[] = {{"yes", NULL, "do not ask"}};

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
};

const struct command command_queue = {.name = "queue",
                                      .summary = "look at queues: dead letters and what targets send",
                                      .usage = "ls|read|rm ...",
                                      .about = "Works on the messages of queues.",
                                      .children = children,
                                      .child_count = sizeof children / sizeof *children};
