/* quipu table ls, create, set, describe, drop; and the rows of those on backups. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/print.h"
#include "cli/layout.h"
#include "cli/listing.h"
#include "cli/table_backups.h"
#include "cli/table_spec.h"
#include "cli/tables.h"

/* ---- describing ---- */

#define FACTS_MAX 80 /* lines about a table: 25 indexes, 50 tags in one, and the rest */

/* Lines of a name and a text. */
struct facts {
    struct arena *arena;
    struct slice cells[2 * FACTS_MAX];
    size_t count;
};

static void add_fact(struct facts *facts, const char *name, const struct buf *text)
{
    if (facts->count == FACTS_MAX) return;
    facts->cells[2 * facts->count] = slice_of(name);
    facts->cells[2 * facts->count + 1] = text_harmless(facts->arena,
                                                       arena_copy(facts->arena, buf_view(text)));
    facts->count++;
}

/* "Artist S, Song S"; the parts of an index's hash with + between them, and so those of its range. */
static void put_keys(struct buf *out, const struct node *table, const struct node *key_schema)
{
    struct key key;
    schema_key(table, key_schema, &key);
    for (size_t i = 0; i < key.count; i++)
        buf_printf(out, "%s%.*s %c",
                   i == 0                ? ""
                   : i == key.hash_count ? ", "
                                         : " + ",
                   SLICE_ARG(key.parts[i].name), key.parts[i].type);
}

static void put_projection(struct buf *out, const struct node *projection)
{
    const struct node *names = node_member(projection, "NonKeyAttributes");
    if (node_is(projection, "ProjectionType", "ALL")) buf_text(out, "; all attributes");
    if (node_is(projection, "ProjectionType", "KEYS_ONLY")) buf_text(out, "; keys only");
    if (names && names->first) buf_text(out, "; with");
    for (const struct node *one = names ? names->first : NULL; one; one = one->next)
        buf_printf(out, "%s %.*s", one == names->first ? "" : ",", SLICE_ARG(one->text));
}

static void add_indexes(struct facts *facts, const struct node *table, const char *member, const char *name)
{
    const struct node *indexes = node_member(table, member);
    for (const struct node *one = indexes ? indexes->first : NULL; one; one = one->next) {
        struct buf text = {0};
        buf_printf(&text, "%.*s: ", SLICE_ARG(node_text(one, "IndexName")));
        put_keys(&text, table, node_member(one, "KeySchema"));
        put_projection(&text, node_member(one, "Projection"));
        struct slice status = node_text(one, "IndexStatus");
        if (status.len && !slice_equal(status, SLICE("ACTIVE")))
            buf_printf(&text, "; %.*s", SLICE_ARG(status));
        add_fact(facts, name, &text);
        buf_free(&text);
    }
}

/* "near: embedding, 384 dimensions, COSINE; all attributes" */
static void add_vector_indexes(struct facts *facts, const struct node *table)
{
    const struct node *indexes = node_member(table, "VectorIndexes");
    for (const struct node *one = indexes ? indexes->first : NULL; one; one = one->next) {
        struct buf text = {0};
        const struct node *schema = node_member(one, "SearchSchema");
        buf_printf(&text, "%.*s: %.*s, %s, %.*s", SLICE_ARG(node_text(one, "IndexName")),
                   SLICE_ARG(node_text(node_member(one, "VectorAttribute"), "AttributeName")),
                   counted(node_count(one, "Dimensions"), "dimension").text,
                   SLICE_ARG(node_text(one, "DistanceFunction")));
        for (const struct node *element = schema ? schema->first : NULL; element; element = element->next)
            buf_printf(&text, "%s %.*s", element == schema->first ? "; by" : ",",
                       SLICE_ARG(node_text(element, "AttributeName")));
        put_projection(&text, node_member(one, "Projection"));
        struct slice status = node_text(one, "IndexStatus");
        if (status.len && !slice_equal(status, SLICE("ACTIVE"))) buf_printf(&text, "; %.*s", SLICE_ARG(status));
        add_fact(facts, "vector index", &text);
        buf_free(&text);
    }
}

static void put_capacity(struct buf *out, const struct node *table)
{
    const struct node *billing = node_member(table, "BillingModeSummary");
    const struct node *throughput = node_member(table, "ProvisionedThroughput");
    unsigned long long reads = node_count(throughput, "ReadCapacityUnits");
    if (node_is(billing, "BillingMode", "PAY_PER_REQUEST") || !reads)
        buf_text(out, "on demand");
    else
        buf_printf(out, "%s, %s a second", counted(reads, "read").text,
                   counted(node_count(throughput, "WriteCapacityUnits"), "write").text);
}

static void put_tags(struct buf *out, struct arena *arena, struct slice json)
{
    const char *fault;
    const struct node *tags = node_parse(arena, json, &fault);
    for (const struct node *one = tags ? tags->first : NULL; one; one = one->next)
        buf_printf(out, "%s%.*s=%.*s", one == tags->first ? "" : ", ", SLICE_ARG(node_text(one, "Key")),
                   SLICE_ARG(node_text(one, "Value")));
}

static void gather_facts(struct facts *facts, const struct node *table)
{
    struct buf text = {0};
    buf_slice(&text, node_text(table, "TableStatus"));
    add_fact(facts, "status", &text);
    text.len = 0;
    put_keys(&text, table, node_member(table, "KeySchema"));
    add_fact(facts, "keys", &text);
    text.len = 0;
    put_grouped(&text, node_count(table, "ItemCount"));
    buf_text(&text, ", ");
    put_bytes(&text, node_count(table, "TableSizeBytes"));
    add_fact(facts, "items", &text);
    add_indexes(facts, table, "GlobalSecondaryIndexes", "index");
    add_indexes(facts, table, "LocalSecondaryIndexes", "local index");
    add_vector_indexes(facts, table);
    text.len = 0;
    put_capacity(&text, table);
    add_fact(facts, "capacity", &text);
    const struct node *stream = node_member(table, "StreamSpecification"),
                      *restore = node_member(table, "RestoreSummary");
    text.len = 0;
    buf_printf(&text, "from %.*s", SLICE_ARG(after_last(node_text(restore, "SourceTableArn"), '/')));
    if (node_text(restore, "SourceBackupArn").len)
        buf_printf(&text, ", backup %.*s", SLICE_ARG(after_last(node_text(restore, "SourceBackupArn"), '/')));
    if (node_is_true(restore, "RestoreInProgress")) add_fact(facts, "restoring", &text);
    text.len = 0;
    buf_slice(&text, node_text(stream, "StreamViewType"));
    if (node_is_true(stream, "StreamEnabled")) add_fact(facts, "stream", &text);
    buf_free(&text);
}

static void gather_more(struct facts *facts, const struct place *place, const struct schema *schema)
{
    struct slice arn = node_text(schema->description, "TableArn");
    struct slice ttl = table_ttl(place, facts->arena, schema->table);
    struct slice tags = arn.len ? table_tags(place, facts->arena, arn) : SLICE("");
    struct buf text = {0};
    buf_slice(&text, ttl);
    if (ttl.len) add_fact(facts, "ttl", &text);
    text.len = 0;
    buf_slice(&text, table_recovery_text(place, facts->arena, schema->table));
    if (text.len) add_fact(facts, "recovery", &text);
    text.len = 0;
    put_tags(&text, facts->arena, tags);
    if (tags.len) add_fact(facts, "tags", &text);
    text.len = 0;
    buf_slice(&text, arn);
    if (arn.len) add_fact(facts, "arn", &text);
    buf_free(&text);
}

static void print_facts(const struct place *place, struct arena *arena, const struct schema *schema)
{
    struct facts *facts = arena_new(arena, struct facts);
    struct buf out = {0};
    facts->arena = arena;
    gather_facts(facts, schema->description);
    gather_more(facts, place, schema);
    grid_put(&out, arena, &(struct grid){.cells = facts->cells, .rows = facts->count, .columns = 2});
    fwrite(out.data, 1, out.len, stdout);
    buf_free(&out);
}

static int describe(const struct arguments *arguments)
{
    struct place place;
    struct arena arena = {0};
    struct schema schema;
    if (!place_open(&place, arguments, PLACE_READ)) return EXIT_FAULT;
    bool fine = schema_load(&place, &arena, argument_word(arguments, 0), NULL, &schema);
    if (fine && form_chosen(arguments) == FORM_TABLE) {
        print_facts(&place, &arena, &schema);
    } else if (fine) {
        struct slice json = schema.description->source;
        printf("%.*s\n", SLICE_ARG(json));
    }
    arena_free(&arena);
    place_close(&place);
    return fine ? EXIT_FINE : EXIT_FAULT;
}

/* ---- listing ---- */

#define LIST_COLUMNS 5

/* The row of one table; false after complaining. */
static bool list_row(const struct place *place, struct arena *arena, const char *name, struct slice *cells)
{
    struct schema schema;
    struct buf text = {0};
    if (!schema_load(place, arena, name, NULL, &schema)) return false;
    cells[0] = slice_of(name);
    put_keys(&text, schema.description, node_member(schema.description, "KeySchema"));
    cells[1] = text_harmless(arena, arena_copy(arena, buf_view(&text)));
    text.len = 0;
    put_grouped(&text, node_count(schema.description, "ItemCount"));
    cells[2] = arena_copy(arena, buf_view(&text));
    text.len = 0;
    put_bytes(&text, node_count(schema.description, "TableSizeBytes"));
    cells[3] = arena_copy(arena, buf_view(&text));
    cells[4] = arena_printf(arena, "%zu",
                            node_children(node_member(schema.description, "GlobalSecondaryIndexes")) +
                                node_children(node_member(schema.description, "LocalSecondaryIndexes")));
    buf_free(&text);
    return true;
}

static bool list_long(const struct place *place, struct arena *arena, const char **names, size_t count)
{
    static const char *const head[LIST_COLUMNS] = {"TABLE", "KEYS", "ITEMS", "SIZE", "INDEXES"};
    struct slice *cells = arena_array(arena, struct slice, (count + 1) * LIST_COLUMNS);
    struct buf out = {0};
    for (size_t i = 0; i < LIST_COLUMNS; i++) cells[i] = slice_of(head[i]);
    for (size_t i = 0; i < count; i++)
        if (!list_row(place, arena, names[i], cells + (i + 1) * LIST_COLUMNS)) return false;
    grid_put(&out, arena,
             &(struct grid){.cells = cells,
                            .rows = count + 1,
                            .columns = LIST_COLUMNS,
                            .has_head = true,
                            .is_bold = colour_is_wanted(),
                            .width = output_is_terminal() ? terminal_width() : 0});
    fwrite(out.data, 1, out.len, stdout);
    buf_free(&out);
    return true;
}

static int list(const struct arguments *arguments)
{
    struct place place;
    struct arena arena = {0};
    size_t count;
    if (!place_open(&place, arguments, PLACE_READ)) return EXIT_FAULT;
    const char **names = table_names(&place, &arena, &count);
    bool fine = names != NULL;
    if (fine && argument_given(arguments, "long"))
        fine = list_long(&place, &arena, names, count);
    else
        for (size_t i = 0; fine && i < count; i++) puts(names[i]);
    if (fine && !count && errors_are_terminal()) fprintf(stderr, "There are no tables on %s.\n", place.where);
    arena_free(&arena);
    place_close(&place);
    return fine ? EXIT_FINE : EXIT_FAULT;
}

/* ---- creating ---- */

static bool gather_texts(const struct arguments *arguments, const char *flag, const char **texts)
{
    size_t count = 0;
    for (const char *text; (text = argument_nth(arguments, flag, count)); count++) {
        if (count == SPEC_INDEXES_MAX) {
            complain_of_usage(arguments, "at most %d times --%s", SPEC_INDEXES_MAX, flag);
            return false;
        }
        texts[count] = text;
    }
    return true;
}

static int create_on(const struct place *place, struct arena *arena, const struct arguments *arguments,
                     const struct buf *request)
{
    const char *name = argument_word(arguments, 0), *ttl = argument_text(arguments, "ttl");
    struct answer answer = place_ask(place, arena, "CreateTable", request);
    bool exists = answer.error && strcmp(answer.error, "ResourceInUseException") == 0;
    if (exists && argument_given(arguments, "if-missing")) return EXIT_FINE;
    if (exists) return complain("there is a table '%s' already", name);
    if (answer.error) return place_complain(place, NULL, answer.error, answer.message);
    if (!table_wait_active(place, name)) return EXIT_FAULT;
    if (ttl && !table_set_ttl(place, arena, name, slice_of(ttl))) return EXIT_FAULT;
    if (errors_are_terminal()) fprintf(stderr, "Created %s.\n", name);
    return EXIT_FINE;
}

/* The spec of the arguments; false after complaining. */
static bool read_spec(const struct arguments *arguments, struct arena *arena, struct buf *request)
{
    struct table_spec spec = {.name = argument_word(arguments, 0),
                              .hash = argument_word(arguments, 1),
                              .range = argument_word(arguments, 2),
                              .stream = argument_text(arguments, "stream")};
    const char *fault;
    if (!gather_texts(arguments, "index", spec.global_indexes) ||
        !gather_texts(arguments, "local-index", spec.local_indexes))
        return false;
    bool fine = table_spec_put(request, arena, &spec, &fault);
    if (!fine) complain_of_usage(arguments, "%s", fault);
    return fine;
}

static int create(const struct arguments *arguments)
{
    struct arena arena = {0};
    struct buf request = {0};
    struct place place;
    int status = EXIT_USAGE;
    if (read_spec(arguments, &arena, &request)) {
        status = EXIT_FAULT;
        if (place_open(&place, arguments, PLACE_MAKE)) {
            status = create_on(&place, &arena, arguments, &request);
            place_close(&place);
        }
    }
    buf_free(&request);
    arena_free(&arena);
    return status;
}

/* ---- settings ---- */

static bool is_off(const char *text)
{
    return strcmp(text, "off") == 0;
}

static bool set_stream(const struct place *place, struct arena *arena, const char *table, const char *text)
{
    struct buf request = {0};
    request_begin(&request, table);
    if (is_off(text))
        buf_text(&request, ",\"StreamSpecification\":{\"StreamEnabled\":false}}");
    else
        buf_printf(&request, ",\"StreamSpecification\":{\"StreamEnabled\":true,\"StreamViewType\":\"%s\"}}",
                   stream_view(text));
    bool fine = place_call(place, arena, "UpdateTable", &request) != NULL;
    buf_free(&request);
    return fine && table_wait_active(place, table);
}

static bool set_ttl(const struct place *place, struct arena *arena, const char *table, const char *text)
{
    if (!is_off(text)) return table_set_ttl(place, arena, table, slice_of(text));
    struct slice now = table_ttl(place, arena, table);
    if (!now.len) return true;
    struct buf request = {0};
    request_begin(&request, table);
    buf_text(&request, ",\"TimeToLiveSpecification\":{\"Enabled\":false");
    put_string_member(&request, "AttributeName", now);
    buf_text(&request, "}}");
    bool fine = place_call(place, arena, "UpdateTimeToLive", &request) != NULL;
    buf_free(&request);
    return fine;
}

static int set(const struct arguments *arguments)
{
    const char *table = argument_word(arguments, 0);
    const char *stream = argument_text(arguments, "stream"), *ttl = argument_text(arguments, "ttl"),
               *recovery = argument_text(arguments, "recovery");
    struct place place;
    struct arena arena = {0};
    unsigned long long days = 0;
    if (!stream && !ttl && !recovery)
        return complain_of_usage(arguments, "say what to set: --stream, --ttl or --recovery");
    if (recovery && !recovery_days_read(recovery, &days))
        return complain_of_usage(arguments, "--recovery should be a number of days from 1 to 35, or off, not '%s'",
                                 recovery);
    if (stream && !is_off(stream) && !stream_view(stream))
        return complain_of_usage(arguments, "'%s' should be new-and-old, new, old, keys or off", stream);
    if (!place_open(&place, arguments, PLACE_WRITE)) return EXIT_FAULT;
    bool fine = (!stream || set_stream(&place, &arena, table, stream)) &&
                (!ttl || set_ttl(&place, &arena, table, ttl)) &&
                (!recovery || table_set_recovery(&place, &arena, table, days));
    arena_free(&arena);
    place_close(&place);
    return fine ? EXIT_FINE : EXIT_FAULT;
}

/* ---- dropping ---- */

static bool person_agrees(const struct place *place, const struct arguments *arguments)
{
    char reply[16] = "";
    size_t count = argument_words(arguments);
    if (argument_given(arguments, "yes")) return true;
    if (isatty(STDIN_FILENO) != 1) {
        complain("this cannot be undone: say --yes to drop %s", argument_word(arguments, 0));
        return false;
    }
    if (count == 1)
        fprintf(stderr, "Drop the table '%s' on %s", argument_word(arguments, 0), place->where);
    else
        fprintf(stderr, "Drop %zu tables on %s", count, place->where);
    fputs(" with everything in it? [y/N] ", stderr);
    if (!fgets(reply, sizeof reply, stdin)) return false;
    return reply[0] == 'y' || reply[0] == 'Y';
}

static bool drop_one(const struct place *place, struct arena *arena, const char *table)
{
    struct buf request = {0};
    request_begin(&request, table);
    buf_byte(&request, '}');
    struct answer answer = place_ask(place, arena, "DeleteTable", &request);
    buf_free(&request);
    if (!answer.error) return table_wait_gone(place, table);
    place_complain(place, table, answer.error, answer.message);
    return false;
}

static int drop(const struct arguments *arguments)
{
    struct place place;
    struct arena arena = {0};
    if (!place_open(&place, arguments, PLACE_WRITE)) return EXIT_FAULT;
    bool fine = person_agrees(&place, arguments);
    for (size_t i = 0; fine && i < argument_words(arguments); i++)
        fine = drop_one(&place, &arena, argument_word(arguments, i));
    arena_free(&arena);
    place_close(&place);
    return fine ? EXIT_FINE : EXIT_FAULT;
}

/* ---- the rows ---- */

static const struct flag list_flags[] = {{"long", NULL, "keys, items, size and indexes too"}};
static const struct flag describe_flags[] = {FORM_FLAGS};
static const struct flag create_flags[] = {
    {"index", "SPEC",
     "a global index: NAME:HASH:TYPE or NAME:HASH:TYPE,RANGE:TYPE;\n"
     "behind it =keys for keys only, =a,b for these attributes too.\n"
     "May be given again"},
    {"local-index", "SPEC", "a local index: NAME:RANGE:TYPE"},
    {"stream", "VIEW", "keep a stream of changes: new-and-old, new, old or keys"},
    {"ttl", "ATTRIBUTE", "items expire at the second since 1970 in this attribute"},
    {"if-missing", NULL, "do nothing when the table exists"},
};
static const struct flag set_flags[] = {
    {"stream", "VIEW", "keep a stream of changes: new-and-old, new, old or keys; or off"},
    {"ttl", "ATTRIBUTE", "items expire at the second since 1970 in this attribute; or off"},
    {"recovery", "DAYS", "keep the log, so that any moment of the last 1 to 35 days can be restored; or off"},
};
static const struct flag drop_flags[] = {{"yes", NULL, "do not ask"}};
static const struct flag backup_flags[] = {
    {"name", "NAME", "the backup's name (default: the table's, and the time)"}};
static const struct flag backups_flags[] = {LIST_FLAGS};
static const struct flag restore_flags[] = {
    {"backup", "ID", "from this backup: an id of 'quipu table backups', or an ARN"},
    {"from", "TABLE", "from this table"},
    {"at", "TIME",
     "as it was at this moment: 2026-11-15T03:42:06Z, or seconds since 1970\n(default: as it is now)"},
    {"no-wait", NULL, "begin it only: 'quipu table describe NEW' shows how far it is"},
};

static const struct command children[] = {
    {.name = "ls",
     .summary = "list the tables",
     .usage = "[flags]",
     .about = "Lists the tables, a name on each line.",
     FLAGS(list_flags),
     .works_on_data = true,
     .run = list},
    {.name = "create",
     .summary = "make a table",
     .usage = "TABLE HASH:TYPE [RANGE:TYPE] [flags]",
     .about = "Makes a table and waits until it is ready. A key is written with its type: S for text, N for\n"
              "numbers, B for binary. Capacity is on demand.",
     FLAGS(create_flags),
     .examples =
         "  quipu table create Music Artist:S Song:S\n"
         "  quipu table create Music Artist:S Song:S --index by-year:Year:N,Song:S --stream new-and-old\n"
         "  quipu table create Sessions Id:S --ttl Expires --on ./data",
     .works_on_data = true,
     .words_min = 2,
     .words_max = 3,
     .run = create},
    {.name = "set",
     .summary = "switch a stream, expiry or recovery on or off",
     .usage = "TABLE [flags]",
     .about = "Changes a table's stream, time to live and point-in-time recovery.",
     FLAGS(set_flags),
     .examples = "  quipu table set Music --stream new-and-old\n"
                 "  quipu table set Sessions --ttl off\n"
                 "  quipu table set Music --recovery 35",
     .works_on_data = true,
     .words_min = 1,
     .words_max = 1,
     .run = set},
    {.name = "describe",
     .summary = "keys, indexes, sizes and settings",
     .usage = "TABLE [flags]",
     .about = "Tells everything about a table: readable on a terminal, DescribeTable's JSON otherwise.",
     FLAGS(describe_flags),
     .works_on_data = true,
     .words_min = 1,
     .words_max = 1,
     .run = describe},
    {.name = "drop",
     .summary = "delete tables with everything in them",
     .usage = "TABLE... [flags]",
     .about = "Deletes tables and waits until they are gone. Asks first.",
     FLAGS(drop_flags),
     .works_on_data = true,
     .words_min = 1,
     .words_max = WORDS_MANY,
     .run = drop},
    {.name = "backup",
     .summary = "copy a table as it is now, within the database",
     .usage = "TABLE [flags]",
     .about = "Makes a backup of a table and prints its id. It takes moments, whatever the size: the database's\n"
              "files are linked. The backup stays when the table is dropped; 'quipu table restore' brings it back.\n"
              "It is on the same disk: 'quipu backup' copies the whole database elsewhere.",
     FLAGS(backup_flags),
     .examples = "  quipu table backup Music\n"
                 "  quipu table backup Music --name before-the-upgrade",
     .works_on_data = true,
     .words_min = 1,
     .words_max = 1,
     .run = table_backup},
    {.name = "backups",
     .summary = "list backups of tables",
     .usage = "[TABLE] [flags]",
     .about = "Lists the backups of a table, or of all, the oldest first; those of dropped tables too.",
     FLAGS(backups_flags),
     .works_on_data = true,
     .words_max = 1,
     .run = table_backups},
    {.name = "restore",
     .summary = "make a table of a backup, or of another table as it was",
     .usage = "NEW --backup ID | --from TABLE [--at TIME] [flags]",
     .about = "Makes a new table with the items of a backup, or of a table as it was at any moment since\n"
              "'quipu table set TABLE --recovery 35', and waits until it is ready. Keys, indexes, capacity and\n"
              "encryption come back; the stream, expiry and tags do not. Others go on meanwhile.",
     FLAGS(restore_flags),
     .examples = "  quipu table restore Music2 --backup 01794857419498-c0a6fc15\n"
                 "  quipu table restore Music2 --from Music --at 2026-11-15T03:42:06Z",
     .works_on_data = true,
     .words_min = 1,
     .words_max = 1,
     .run = table_restore},
    {.name = "rm-backup",
     .summary = "delete backups of tables",
     .usage = "ID... [flags]",
     .about = "Deletes backups, by the ids that 'quipu table backups' shows, and frees their files.",
     .works_on_data = true,
     .words_min = 1,
     .words_max = WORDS_MANY,
     .run = table_delete_backups},
};

const struct command command_table = {.name = "table",
                                      .summary = "list, create, describe, set, drop, back up and restore tables",
                                      .usage = "ls|create|set|describe|drop|backup|backups|restore|rm-backup ...",
                                      .about = "Works on whole tables.",
                                      .children = children,
                                      .child_count = sizeof children / sizeof *children};
