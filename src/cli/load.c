/* quipu load: what quipu dump printed, or DynamoDB exported, back into tables. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fail.h"
#include "base/print.h"
#include "cli/definition.h"
#include "cli/export_folder.h"
#include "cli/plain.h"
#include "cli/progress.h"
#include "cli/table_spec.h"
#include "cli/values.h"

/* A table that items go to; it stays until the sink is empty. */
struct target {
    struct target *older;
    struct sink_table table;
    struct arena arena; /* of its names */
};

/* The dump that is being read, from its first line to its last. */
struct dump_read {
    const char *file; /* NULL: none is */
    unsigned long long line;
    unsigned long long tables, items; /* since its first line */
};

struct load {
    const struct arguments *arguments;
    struct dump_read dump;
    struct place place;
    struct sink *sink;
    struct target *target; /* of the items to come; NULL: none was named yet */
    bool is_plain;
    struct progress progress;
    const char *file;
    struct values values;
    struct arena arena; /* names of files, which stay until the sink is empty */
};

static bool refuse(const struct load *load, const char *sentence)
{
    complain("%s, line %llu: %s", load->file, load->values.line, sentence);
    return false;
}

static struct target *add_target(struct load *load, const char *name)
{
    struct target *target = must_zero(1, sizeof *target);
    target->older = load->target;
    target->table.name = arena_printf(&target->arena, "%s", name).data;
    load->target = target;
    return target;
}

/* The items to come go to a table that is there: asked for with the first of them, as a definition may make
 * it. */
static bool use_table(struct load *load, const char *name)
{
    struct target *target = add_target(load, name);
    struct schema schema;
    if (!schema_load(&load->place, &target->arena, target->table.name, NULL, &schema)) return false;
    target->table.hash = schema.hash;
    target->table.range = schema.range;
    return true;
}

/* Or to one that is described here, and made when it is missing. */
static bool use_definition(struct load *load, const struct node *definition)
{
    const char *other = argument_text(load->arguments, "table");
    struct slice name = other ? slice_of(other) : node_text(definition, "TableName");
    if (!name.len) return refuse(load, "this definition has no TableName");
    struct target *target = add_target(load, "");
    target->table.name = arena_printf(&target->arena, "%.*s", SLICE_ARG(name)).data;
    if (!definition_keys(definition, &target->table)) return refuse(load, "this definition has no KeySchema");
    struct key_part *hash = &target->table.hash, *range = &target->table.range;
    hash->name = arena_copy(&target->arena, hash->name);
    range->name = arena_copy(&target->arena, range->name);
    load->dump.tables++;
    return definition_apply(&load->place, definition, target->table.name);
}

static bool give_item(struct load *load, struct slice item)
{
    const char *table = argument_text(load->arguments, "table");
    if (!load->target && !table) return refuse(load, "no table is named yet: say --table NAME");
    if (!load->target && !use_table(load, table)) return false;
    struct sink_origin origin = {load->file, load->values.line};
    if (!sink_put_from(load->sink, &load->target->table, item, origin)) return false;
    load->dump.items++;
    progress_show(&load->progress, sink_written(load->sink));
    return true;
}

static bool give_plain(struct load *load, const struct node *node)
{
    struct buf item = {0};
    const char *fault;
    bool fine = plain_item_to_dynamo(&item, node, &fault) ? give_item(load, buf_view(&item))
                                                          : refuse(load, fault);
    buf_free(&item);
    return fine;
}

/* Said when it is known: at the end of all files, or where another dump begins. The lines of a dump may be in
 * several files. */
static bool refuse_cut_dump(const struct load *load)
{
    complain("%s, line %llu: the dump that begins here was cut off: it has no last line {\"" DUMP_END
             "\":...}",
             load->dump.file, load->dump.line);
    return false;
}

static bool begin_dump(struct load *load, const struct node *begin)
{
    unsigned long long version = node_count(begin, "Version");
    if (load->dump.file) return refuse_cut_dump(load);
    if (version != DUMP_VERSION)
        return refuse(load, "a dump of another version: a newer 'quipu load' may read it");
    load->dump = (struct dump_read){.file = load->file, .line = load->values.line};
    return true;
}

static bool end_dump(struct load *load, const struct node *end)
{
    struct dump_read *dump = &load->dump;
    unsigned long long tables = node_count(end, "Tables"), items = node_count(end, "Items");
    if (!dump->file)
        return refuse(load, "a dump ends here whose first line, {\"" DUMP_BEGIN "\":...}, is missing");
    if (tables != dump->tables || items != dump->items) {
        complain("%s, line %llu: the dump that ends here had %s and %s, and %llu and %llu of them came",
                 load->file, load->values.line, counted(tables, "table").text, counted(items, "item").text,
                 dump->tables, dump->items);
        return false;
    }
    *dump = (struct dump_read){0};
    return true;
}

static bool take_value(struct load *load, struct arena *arena, struct slice text)
{
    const char *fault;
    const struct node *node = node_parse(arena, text, &fault);
    if (!node) return refuse(load, fault);
    const struct node *definition = node_member(node, "Table"), *item = node_member(node, "Item");
    const struct node *begin = node_member(node, DUMP_BEGIN), *end = node_member(node, DUMP_END);
    bool is_alone = node->first && !node->first->next;
    if (begin && is_alone && begin->kind == JSON_OBJECT) return begin_dump(load, begin);
    if (end && is_alone && end->kind == JSON_OBJECT) return end_dump(load, end);
    if (definition && is_alone && node_member(definition, "KeySchema"))
        return use_definition(load, definition);
    if (load->is_plain) return give_plain(load, node);
    if (item && is_alone) return give_item(load, item->source);
    return refuse(load, "this is neither {\"Table\":...} nor {\"Item\":...}; for plain JSON say --plain");
}

static bool load_file(struct load *load, FILE *file)
{
    struct arena arena = {0};
    struct slice text;
    enum values_result result;
    bool fine = true;
    values_begin(&load->values, file);
    while (fine && (result = values_next(&load->values, &text)) == VALUES_FOUND) {
        fine = take_value(load, &arena, text);
        arena_reset(&arena);
    }
    if (fine && result != VALUES_END) {
        struct buf fault = {0};
        values_put_fault(&fault, result);
        buf_byte(&fault, 0);
        fine = refuse(load, fault.data);
        if (result == VALUES_CUT && load->dump.file) refuse_cut_dump(load);
        buf_free(&fault);
    }
    values_end(&load->values);
    arena_free(&arena);
    return fine;
}

/* The request that makes a table with these --keys. False after complaining. */
static bool put_keys(struct buf *request, struct arena *arena, const char *name, const char *keys)
{
    const char *fault;
    struct slice rest = slice_of(keys), hash = slice_cut(&rest, ',');
    struct table_spec spec = {.name = name,
                              .hash = arena_printf(arena, "%.*s", SLICE_ARG(hash)).data,
                              .range = rest.len ? arena_printf(arena, "%.*s", SLICE_ARG(rest)).data : NULL};
    return table_spec_put(request, arena, &spec, &fault) || complain("--keys: %s", fault) == EXIT_FINE;
}

/* An export tells the name of its table and not its keys: those are the table's that is there, or --keys. */
static bool make_table(struct load *load, const char *name)
{
    const char *keys = argument_text(load->arguments, "keys");
    struct arena arena = {0};
    struct buf request = {0};
    if (!keys) return true;
    bool fine = put_keys(&request, &arena, name, keys);
    if (fine) {
        struct answer answer = place_ask(&load->place, &arena, "CreateTable", &request);
        fine = !answer.error || strcmp(answer.error, "ResourceInUseException") == 0;
        if (!fine) place_complain(&load->place, NULL, answer.error, answer.message);
    }
    fine = fine && table_wait_active(&load->place, name);
    buf_free(&request);
    arena_free(&arena);
    return fine;
}

static bool load_export_file(struct load *load, const struct export_file *file)
{
    struct transfer_records_options options = {.format = file->format, .compression = file->compression};
    int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    struct slice item;
    const char *fault;
    enum transfer_result result;
    int64_t items = 0;
    bool fine = true;
    load->file = file->path;
    if (fd < 0) {
        complain("%s: %m", file->path);
        return false;
    }
    struct transfer_records *records = transfer_records_open(transfer_source_of_file(fd), &options);
    while (fine && (result = transfer_records_next(records, &item, &fault)) != TRANSFER_END) {
        load->values.line = transfer_records_count(records);
        fine = result == TRANSFER_FOUND ? give_item(load, item) : refuse(load, fault);
        items += fine;
    }
    transfer_records_close(records);
    if (fine && file->items >= 0 && items != file->items) {
        complain("%s has %s, and the export's manifest tells of %lld", file->path,
                 counted((unsigned long long)items, "item").text, (long long)file->items);
        return false;
    }
    return fine;
}

static bool load_folder(struct load *load, const char *path)
{
    const char *table = argument_text(load->arguments, "table");
    struct export_folder export;
    if (!export_folder_read(path, &load->arena, &export)) return false;
    if (!table) table = export.table;
    if (!table) return complain("%s does not tell its table: say --table NAME", path), false;
    if (!make_table(load, table)) return false;
    if (!use_table(load, table)) {
        complain("an export does not tell the keys of its table: --keys HASH:S,RANGE:N makes it");
        return false;
    }
    for (size_t i = 0; i < export.count; i++)
        if (!load_export_file(load, &export.files[i])) return false;
    return true;
}

static bool load_named(struct load *load, const char *name)
{
    struct stat status;
    if (strcmp(name, "-") != 0 && stat(name, &status) == 0 && S_ISDIR(status.st_mode))
        return load_folder(load, name);
    bool is_input = strcmp(name, "-") == 0;
    FILE *file = is_input ? stdin : fopen(name, "r");
    load->file = is_input ? "standard input" : name;
    if (!file) {
        complain("%s: %m", name);
        return false;
    }
    bool fine = load_file(load, file);
    if (!is_input) fclose(file);
    return fine;
}

static bool load_all(struct load *load)
{
    size_t count = argument_words(load->arguments);
    for (size_t i = 0; i < count; i++)
        if (!load_named(load, argument_word(load->arguments, i))) return false;
    if (!count && !load_named(load, "-")) return false;
    return !load->dump.file || refuse_cut_dump(load);
}

static int run(const struct arguments *arguments)
{
    struct load load = {.arguments = arguments, .is_plain = argument_given(arguments, "plain")};
    if (load.is_plain && !argument_given(arguments, "table"))
        return complain_of_usage(arguments, "plain items do not tell their table: say --table NAME");
    if (argument_given(arguments, "keys")) {
        struct buf request = {0};
        bool fine = put_keys(&request, &load.arena, "any", argument_text(arguments, "keys"));
        buf_free(&request);
        if (!fine) return EXIT_USAGE;
    }
    if (!place_open(&load.place, arguments, PLACE_MAKE)) return EXIT_FAULT;
    load.sink = sink_new(&load.place, SINK_LANES);
    progress_begin(&load.progress, "load", 0);
    bool fine = load_all(&load);
    fine = sink_drain(load.sink) && fine;
    unsigned long long written = sink_written(load.sink);
    if (fine)
        progress_end(&load.progress, "written", written);
    else
        progress_say(&load.progress, "not finished; %s written", counted(written, "item").text);
    sink_free(load.sink);
    while (load.target) {
        struct target *target = load.target;
        load.target = target->older;
        arena_free(&target->arena);
        free(target);
    }
    arena_free(&load.arena);
    place_close(&load.place);
    return fine ? EXIT_FINE : EXIT_FAULT;
}

static const struct flag flags[] = {
    {"table", "NAME", "load into this table, whatever the definition calls it"},
    {"keys", "SPEC", "of an export: make its table when it is missing: Artist:S,Song:S"},
    {"plain", NULL, "items are plain JSON, as 'quipu scan' prints them; needs --table"},
};

const struct command command_load = {
    .name = "load",
    .summary = "write tables from a dump or an export",
    .usage = "[FILE|FOLDER...] [flags]",
    .about =
        "Reads what 'quipu dump' prints, or an export of DynamoDB to S3, from files or standard input, "
        "and writes\n"
        "it in batches on several threads. A folder is an export, as 'aws s3 sync' brings it from its bucket:\n"
        "its manifest names the files (JSON or Ion, packed), how many items each has, and the table. It must be a\n"
        "full export: incremental ones are refused.\n"
        "A definition makes its table when it is missing, and brings "
        "one that is\n"
        "there up to it. Items replace those with the same key; the last one in the file wins. "
        "Throttling is\n"
        "waited for, so it may be run again after any failure.\n"
        "A dump that was cut off is loaded as far as it goes, then load fails and says so. Lines without "
        "the first\n"
        "line of a dump, as exports have them, need no last one.",
    .flags = flags,
    .flag_count = sizeof flags / sizeof *flags,
    .examples = "  quipu load music.jsonl --on ./data\n"
                "  aws s3 sync s3://bucket/AWSDynamoDB/01763 out && quipu load out --keys Artist:S,Song:S\n"
                "  zcat export/data/*.json.gz | quipu load --table Music\n"
                "  quipu scan Music --on ./old | quipu load --plain --table Music --on ./new",
    .works_on_data = true,
    .words_max = WORDS_MANY,
    .run = run};
