/* quipu query and quipu scan: many items. */
#include <stdio.h>

#include "cli/phrase.h"
#include "cli/print.h"

struct search {
    const struct arguments *arguments;
    const char *operation;
    bool is_query;
    struct place place;
    struct schema schema;
    struct arena arena;
    struct phrases phrases;
    struct buf request; /* without its closing brace */
    unsigned long long limit;
    int status;
};

static bool refuse(struct search *search)
{
    search->status = complain_of_usage(search->arguments, "%s", search->phrases.fault);
    return false;
}

static bool add_key_condition(struct search *search)
{
    const char *words[KEY_PARTS_MAX];
    size_t count = argument_words(search->arguments) - 1;
    struct buf text = {0};
    for (size_t i = 0; i < count; i++) words[i] = argument_word(search->arguments, i + 1);
    bool fine = phrase_key_condition(&text, &search->phrases, &search->schema, words, count);
    put_string_member(&search->request, "KeyConditionExpression", buf_view(&text));
    buf_free(&text);
    return fine || refuse(search);
}

static bool add_filter(struct search *search)
{
    const char *filter = argument_text(search->arguments, "filter");
    struct buf text = {0};
    if (!filter) return true;
    bool fine = phrase_put(&text, &search->phrases, slice_of(filter));
    put_string_member(&search->request, "FilterExpression", buf_view(&text));
    buf_free(&text);
    return fine || refuse(search);
}

static bool add_fields(struct search *search)
{
    const char *fields = argument_text(search->arguments, "fields");
    struct buf text = {0};
    if (!fields) return true;
    bool fine = phrase_put_paths(&text, &search->phrases, slice_of(fields));
    put_string_member(&search->request, "ProjectionExpression", buf_view(&text));
    buf_free(&text);
    return fine || refuse(search);
}

static bool build_request(struct search *search)
{
    struct buf *request = &search->request;
    request_begin(request, search->schema.table);
    if (search->schema.index) put_string_member(request, "IndexName", slice_of(search->schema.index));
    if (search->is_query && !add_key_condition(search)) return false;
    if (search->is_query && argument_given(search->arguments, "reverse"))
        put_raw_member(request, "ScanIndexForward", SLICE("false"));
    if (!add_filter(search)) return false;
    if (argument_given(search->arguments, "count"))
        put_string_member(request, "Select", SLICE("COUNT"));
    else if (!add_fields(search))
        return false;
    /* A page of a filtered search may hold none that match: there a small page would only be slow. */
    if (search->limit && search->limit < 1000 && !argument_given(search->arguments, "filter"))
        buf_printf(request, ",\"Limit\":%llu", search->limit);
    phrases_put_members(request, &search->phrases);
    return true;
}

/* ---- items ---- */

static int print_items(struct search *search)
{
    struct printer printer;
    const char *json;
    size_t len;
    enum quipu_result result = QUIPU_NONE;
    bool fine = true;
    buf_text(&search->request, "}");
    buf_byte(&search->request, 0);
    struct quipu_pages *pages = quipu_pages_open(search->place.db, search->operation, search->request.data);
    printer_begin(&printer, form_chosen(search->arguments), &search->schema);
    while (fine && (!search->limit || printer.count < search->limit) &&
           (result = quipu_pages_next(pages, &json, &len)) == QUIPU_FOUND)
        fine = printer_item(&printer, (struct slice){json, len});
    fine = printer_end(&printer) && fine;
    const struct quipu_reply *reply = quipu_pages_reply(pages);
    if (result == QUIPU_FAILED) {
        place_complain(&search->place, search->schema.table, reply->error, reply->message);
        fine = false;
    }
    quipu_pages_close(pages);
    return fine ? EXIT_FINE : EXIT_FAULT;
}

/* ---- counting: the pages hold no items, only their number ---- */

static int print_count(struct search *search)
{
    struct arena arena = {0};
    struct buf next = {0};
    unsigned long long count = 0;
    for (;;) {
        size_t len = search->request.len;
        if (next.len) put_raw_member(&search->request, "ExclusiveStartKey", buf_view(&next));
        buf_byte(&search->request, '}');
        struct answer answer = place_ask(&search->place, &arena, search->operation, &search->request);
        search->request.len = len;
        if (answer.error) {
            place_complain(&search->place, search->schema.table, answer.error, answer.message);
            break;
        }
        count += node_count(answer.json, "Count");
        const struct node *last = node_member(answer.json, "LastEvaluatedKey");
        next.len = 0;
        if (last) buf_slice(&next, last->source);
        arena_reset(&arena);
        if (last && (!search->limit || count < search->limit)) continue;
        printf("%llu\n", search->limit && count > search->limit ? search->limit : count);
        search->status = EXIT_FINE;
        break;
    }
    buf_free(&next);
    arena_free(&arena);
    return search->status;
}

static int run(const struct arguments *arguments, bool is_query)
{
    struct search search = {.arguments = arguments,
                            .operation = is_query ? "Query" : "Scan",
                            .is_query = is_query,
                            .status = EXIT_FAULT};
    search.phrases = phrases_of_request(&search.arena);
    if (!argument_number(arguments, "limit", 1, 1000000000000ull, &search.limit)) return EXIT_USAGE;
    if (!place_open(&search.place, arguments, PLACE_READ)) return EXIT_FAULT;
    if (schema_load(&search.place, &search.arena, argument_word(arguments, 0),
                    argument_text(arguments, "index"), &search.schema) &&
        build_request(&search))
        search.status = argument_given(arguments, "count") ? print_count(&search) : print_items(&search);
    place_close(&search.place);
    phrases_free(&search.phrases);
    buf_free(&search.request);
    arena_free(&search.arena);
    return search.status;
}

static int query(const struct arguments *arguments)
{
    return run(arguments, true);
}

static int scan(const struct arguments *arguments)
{
    return run(arguments, false);
}

/* ---- the rows ---- */

#define SEARCH_FLAGS                                                                                         \
    {"index", "NAME", "search this index"},                                                                  \
        {"filter", "CONDITION",                                                                              \
         "only items for which this is so: 'Year > 1960 and contains(tags, \"jazz\")'"},                     \
        {"fields", "LIST", "only these attributes: 'Song,Year'"},                                            \
        {"limit", "NUMBER", "stop behind so many items"},                                                    \
    {                                                                                                        \
        "count", NULL, "print how many there are instead"                                                    \
    }

static const struct flag query_flags[] = {
    SEARCH_FLAGS, {"reverse", NULL, "from the largest range key down"}, FORM_FLAGS};
static const struct flag scan_flags[] = {SEARCH_FLAGS, FORM_FLAGS};

const struct command command_query = {
    .name = "query",
    .summary = "print the items with one hash key",
    .usage = "TABLE HASH [RANGE] [flags]",
    .about =
        "Prints all items with this hash key, ordered by their range key: a readable table on a "
        "terminal, JSON\n"
        "lines otherwise. RANGE narrows them down:\n"
        "\n"
        "  F    or '= F'        equal\n"
        "  'F*'                 begins with F\n"
        "  'A..B'               from A to B, both included\n"
        "  '> F' '>= F' '< F' '<= F'\n"
        "\n"
        "An index whose key has several attributes takes a value for each. Conditions are written as in\n"
        "'quipu update --help'.",
    FLAGS(query_flags),
    .examples = "  quipu query Music 'Nina Simone'\n"
                "  quipu query Music 'Nina Simone' 'S*' --reverse --limit 10\n"
                "  quipu query Music 1965 --index by-year --fields Artist,Song\n"
                "  quipu query Orders 42 2024-01..2024-06 --filter 'total > 100' --count",
    .works_on_data = true,
    .words_min = 2,
    .words_max = 1 + KEY_PARTS_MAX,
    .run = query};

const struct command command_scan = {.name = "scan",
                                     .summary = "print all items of a table",
                                     .usage = "TABLE [flags]",
                                     .about = "Prints all items of a table or of an index, in no order: a "
                                              "readable table on a terminal, JSON lines\n"
                                              "otherwise. For a copy of everything see 'quipu dump'.",
                                     FLAGS(scan_flags),
                                     .examples = "  quipu scan Music --limit 20\n"
                                                 "  quipu scan Music --filter 'plays >= 100' | jq .Song\n"
                                                 "  quipu scan Music --count",
                                     .works_on_data = true,
                                     .words_min = 1,
                                     .words_max = 1,
                                     .run = scan};
