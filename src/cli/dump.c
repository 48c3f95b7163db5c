/* quipu dump: tables as lines of DynamoDB's JSON.
 *
 * The last line is printed when everything before it was taken by standard output, so whoever finds it has all.
 * Parts of a dump are for other tools, which expect lines of one kind: they have neither a first line nor a last.
 */
#include <pthread.h>
#include <stdio.h>

#include "cli/definition.h"
#include "cli/progress.h"
#include "cli/sweep.h"

struct dump {
    struct place place;
    unsigned segments;
    bool has_definitions, has_items;
    bool has_begun;                   /* the first line is printed */
    unsigned long long tables, items; /* printed */
    pthread_mutex_t lock;             /* of standard output and items */
    struct progress progress;
};

static bool take_item(void *context, struct slice item)
{
    struct dump *dump = context;
    pthread_mutex_lock(&dump->lock);
    bool fine = fputs("{\"Item\":", stdout) >= 0 && fwrite(item.data, 1, item.len, stdout) == item.len &&
                fputs("}\n", stdout) >= 0;
    if (fine)
        dump->items++;
    else
        complain("standard output takes no more: %m");
    pthread_mutex_unlock(&dump->lock);
    return fine;
}

static void print_begin(struct dump *dump)
{
    if (dump->has_begun || !dump->has_definitions || !dump->has_items) return;
    printf("{\"" DUMP_BEGIN "\":{\"Version\":%d}}\n", DUMP_VERSION);
    dump->has_begun = true;
}

static void print_end(struct dump *dump)
{
    print_begin(dump); /* where there are no tables */
    if (dump->has_begun)
        printf("{\"" DUMP_END "\":{\"Tables\":%llu,\"Items\":%llu}}\n", dump->tables, dump->items);
}

/* An error of standard output is kept in its flag, also when later lines could be written again. */
static bool flush_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return true;
    complain("standard output takes no more: %m");
    return false;
}

static void tick(void *context, unsigned long long items)
{
    struct dump *dump = context;
    progress_show(&dump->progress, items);
    dump->progress.total = dump->progress.total < items ? items : dump->progress.total;
}

static bool print_definition(struct dump *dump, struct arena *arena, const struct schema *schema)
{
    struct buf line = {0};
    bool fine = definition_load(&line, &dump->place, arena, schema);
    if (fine) {
        print_begin(dump);
        printf("{\"Table\":%.*s}\n", (int)line.len, line.data);
        dump->tables++;
    }
    buf_free(&line);
    return fine;
}

static bool dump_table(struct dump *dump, const char *name)
{
    struct arena arena = {0};
    struct schema schema;
    bool fine = schema_load(&dump->place, &arena, name, NULL, &schema);
    if (fine && dump->has_definitions) fine = print_definition(dump, &arena, &schema);
    if (fine && dump->has_items) {
        struct sweep sweep = {.place = &dump->place,
                              .table = name,
                              .segments = dump->segments,
                              .take = take_item,
                              .tick = tick,
                              .context = dump};
        progress_begin(&dump->progress, name, node_count(schema.description, "ItemCount"));
        fine = sweep_run(&sweep);
    }
    arena_free(&arena);
    return fine;
}

static bool dump_all(struct dump *dump, struct arena *arena, const struct arguments *arguments)
{
    size_t count = argument_words(arguments);
    const char **all = count ? NULL : table_names(&dump->place, arena, &count);
    if (!all && !argument_words(arguments)) return false;
    for (size_t i = 0; i < count; i++)
        if (!dump_table(dump, all ? all[i] : argument_word(arguments, i))) return false;
    if (!flush_output()) return false;
    print_end(dump);
    return flush_output();
}

static int run(const struct arguments *arguments)
{
    struct dump dump = {.has_definitions = !argument_given(arguments, "no-definition"),
                        .has_items = !argument_given(arguments, "no-items")};
    struct arena arena = {0};
    unsigned long long segments = SWEEP_SEGMENTS;
    if (!argument_number(arguments, "segments", 1, 256, &segments)) return EXIT_USAGE;
    dump.segments = (unsigned)segments;
    if (!place_open(&dump.place, arguments, PLACE_READ)) return EXIT_FAULT;
    pthread_mutex_init(&dump.lock, NULL);
    bool fine = dump_all(&dump, &arena, arguments);
    pthread_mutex_destroy(&dump.lock);
    arena_free(&arena);
    place_close(&dump.place);
    return fine ? EXIT_FINE : EXIT_FAULT;
}

static const struct flag flags[] = {
    {"segments", "NUMBER", "read so many parts of a table at the same time (default 4)"},
    {"no-definition", NULL, "items only"},
    {"no-items", NULL, "definitions only"},
};

const struct command command_dump = {
    .name = "dump",
    .summary = "print whole tables as DynamoDB JSON lines, for 'quipu load'",
    .usage = "[TABLE...] [flags]",
    .about =
        "Prints tables, or all of them, on standard output: first the definition, {\"Table\":{...}}, "
        "with keys,\n"
        "indexes, stream, TTL and tags; then each item on a line, {\"Item\":{...}}, in DynamoDB's JSON, "
        "the form of\n"
        "DynamoDB's own exports to S3. The first line is {\"DumpBegin\":...} and the last "
        "{\"DumpEnd\":...} with the counts:\n"
        "'quipu load' fails where the end is missing. Parts (--no-definition, --no-items) have neither, for "
        "other tools.\n"
        "Throttling is waited for. Items that are written meanwhile may be in it or not; 'quipu copy' "
        "follows them.",
    .flags = flags,
    .flag_count = sizeof flags / sizeof *flags,
    .examples = "  quipu dump Music > music.jsonl\n"
                "  quipu dump --on https://dynamodb.eu-central-1.amazonaws.com | gzip > all.jsonl.gz\n"
                "  quipu dump Music --no-definition | jq -c .Item",
    .works_on_data = true,
    .words_max = WORDS_MANY,
    .run = run};
