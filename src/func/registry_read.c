/* Items into entries and functions, and the reading of them: one name by a query, all by a scan. Items are not read at
 * one moment: where one that the head names is missing, because a later change has removed it, the name is read
 * again (G1). What cannot be understood (somebody wrote into the table by hand) is left out. */
#include <stdlib.h>

#include "base/compose.h"
#include "base/fail.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/raw.h"
#include "func/registry.h"

#define TIMEOUT_DEFAULT_S  3
#define MEMORY_DEFAULT_MB  128
#define STORAGE_DEFAULT_MB 512
#define READ_TRIES         50 /* of a function that others change meanwhile ... */
#define READ_TRIES_STILL   5  /* ... and that nobody changes */

/* ---- a version's document as a function ---- */

static void read_files(struct registry *registry, struct function *function, const struct document *document,
                       struct arena *scratch)
{
    struct slice first = raw_first(scratch, document_get(document, "FileSystemConfigs")), arn, at;
    struct document files;
    if (!first.data || !document_parse(first, scratch, &files)) return;
    arn = document_text(&files, "Arn", scratch);
    at = document_text(&files, "LocalMountPath", scratch);
    function->files = files_folder(registry->func, arn, &function->arena);
    function->files_at = arena_copy(&function->arena, at);
}

static void read_target(struct registry *registry, struct function *function, const struct document *document,
                        struct arena *scratch)
{
    struct document ours = document_object(document, "Quipu", scratch);
    struct arena *arena = &function->arena;
    function->url = arena_copy(arena, document_text(&ours, "Url", scratch));
    function->secret = arena_copy(arena, document_text(&ours, "Secret", scratch));
    function->table = arena_copy(arena, document_text(&ours, "Table", scratch));
    function->queue = arena_copy(arena, document_text(&ours, "Queue", scratch));
    function->pattern = arena_copy(arena, document_text(&ours, "Pattern", scratch));
    function->body = arena_copy(arena, document_text(&ours, "Body", scratch));
    function->folder = arena_copy(arena, document_text(&ours, "Directory", scratch));
    function->in_place = function->folder.len != 0;
    int64_t concurrency = document_integer(&ours, "Concurrency", 1);
    function->concurrency = concurrency >= 1 && concurrency <= LIMIT_FUNCTION_CONCURRENCY
                                ? (uint32_t)concurrency
                                : 1;
    function->kind = function->url.len       ? FUNCTION_HTTP
                     : function->table.len   ? FUNCTION_TABLE
                     : function->queue.len   ? FUNCTION_QUEUE
                     : function->pattern.len ? FUNCTION_PATTERN
                                             : FUNCTION_PROCESS;
    if (function->kind == FUNCTION_PROCESS && !function->in_place)
        function->folder = code_folder(registry, document_text(document, "CodeSha256", scratch), arena);
}

/* ---- entries ---- */

static bool is_version_name(struct slice name)
{
    unsigned long long number;
    return slice_equal(name, SLICE(PART_LATEST)) || slice_to_u64(name, UINT32_MAX, &number);
}

static int compare_parts(const void *a, const void *b)
{
    return slice_compare(((const struct part *)a)->name, ((const struct part *)b)->name);
}

static struct document document_deep_copy(const struct document *document, struct arena *arena)
{
    struct document copy = document_copy(document, arena);
    for (uint32_t i = 0; i < copy.count; i++) {
        copy.members[i].name = arena_copy(arena, copy.members[i].name);
        copy.members[i].value = arena_copy(arena, copy.members[i].value);
    }
    return copy;
}

/* The function of the part: the one there was, when it has not changed since. */
static struct function *function_of(struct registry *registry, struct slice name, const struct part *part,
                                    const struct entry *before, struct arena *scratch)
{
    const struct part *old = before ? entry_part(before, part->name) : NULL;
    uint64_t revision = (uint64_t)document_integer(&part->document, "Revision", 0);
    if (old && old->function && old->function->revision == revision) return function_keep(old->function);
    struct arena arena = {0};
    struct function *function = arena_new(&arena, struct function);
    const struct document *document = &part->document;
    function->arena = arena;
    arena = (struct arena){0}; /* it is the function's now */
    struct arena *own = &function->arena;
    function->references = 1;
    function->name = arena_copy(own, name);
    function->version = arena_copy(own, part->name);
    function->arn = arena_printf(own, "arn:aws:lambda:%.*s:%.*s:function:%.*s",
                                 SLICE_ARG(registry->func->region), SLICE_ARG(registry->func->account),
                                 SLICE_ARG(name));
    function->revision = (uint64_t)document_integer(document, "Revision", 0);
    function->runtime = arena_copy(own, document_text(document, "Runtime", scratch));
    function->handler = arena_copy(own, document_text(document, "Handler", scratch));
    function->timeout_ms = (uint32_t)document_integer(document, "Timeout", TIMEOUT_DEFAULT_S) * 1000;
    function->memory_mb = (uint32_t)document_integer(document, "MemorySize", MEMORY_DEFAULT_MB);
    struct document storage = document_object(document, "EphemeralStorage", scratch);
    function->storage_mb = (uint32_t)document_integer(&storage, "Size", STORAGE_DEFAULT_MB);
    struct document environment = document_object(document, "Environment", scratch);
    struct document variables = document_object(&environment, "Variables", scratch);
    function->variables = arena_array(&function->arena, struct function_variable, variables.count);
    for (uint32_t i = 0; i < variables.count; i++) {
        struct slice value = raw_string(scratch, variables.members[i].value);
        if (!value.data) continue;
        function->variables[function->variable_count++] = (struct function_variable){
            arena_copy(&function->arena, variables.members[i].name), arena_copy(&function->arena, value)};
    }
    struct document logging = document_object(document, "LoggingConfig", scratch);
    struct slice system = document_text(&logging, "SystemLogLevel", scratch);
    struct slice group = document_text(&logging, "LogGroup", scratch);
    function->logs_json = slice_equal(document_text(&logging, "LogFormat", scratch), SLICE("JSON"));
    function->log_level = arena_copy(&function->arena,
                                     document_text(&logging, "ApplicationLogLevel", scratch));
    function->system_level = slice_equal(system, SLICE("DEBUG"))  ? SYSTEM_DEBUG
                             : slice_equal(system, SLICE("WARN")) ? SYSTEM_WARN
                                                                  : SYSTEM_INFO;
    function->log_group = group.len
                              ? arena_copy(&function->arena, group)
                              : arena_printf(&function->arena, "/aws/lambda/%.*s", SLICE_ARG(function->name));
    read_files(registry, function, document, scratch);
    read_target(registry, function, document, scratch);
    if (function->kind == FUNCTION_PROCESS && !function->in_place)
        code_unpack(registry, document_text(&part->document, "CodeSha256", scratch));
    function->layers = arena_copy(&function->arena, layers_folder(registry, &part->document, scratch));
    return function;
}

/* What a name's head says of the other items of the name. */
struct naming {
    const struct document *head; /* NULL: there is none */
    bool is_gone;
    bool names_unmarked;   /* an older table's */
    struct document marks; /* of the parts */
};

static struct slice key_of(const struct document *document, struct arena *arena)
{
    return document_text(document, "part", arena);
}

static struct naming naming_of(const struct document *documents, uint32_t count, struct arena *arena)
{
    struct naming naming = {0};
    for (uint32_t i = 0; i < count && !naming.head; i++)
        if (slice_equal(key_of(&documents[i], arena), SLICE(PART_FUNCTION))) naming.head = &documents[i];
    if (!naming.head) return naming;
    naming.is_gone = document_get(naming.head, "Gone").data != NULL;
    naming.marks = document_object(naming.head, "Parts", arena);
    naming.names_unmarked = !document_get(naming.head, "Parts").data;
    return naming;
}

/* Splits a key; true when the head names it, or is it. */
static bool is_named(const struct naming *naming, struct slice key, struct slice *name, struct slice *mark)
{
    const char *at = key.len ? memchr(key.data, '@', key.len) : NULL;
    *name = (struct slice){key.data, at ? (size_t)(at - key.data) : key.len};
    *mark = at ? slice_from(key, name->len + 1) : SLICE("");
    if (!naming->head || naming->is_gone) return false;
    if (slice_equal(key, SLICE(PART_FUNCTION)) || (naming->names_unmarked && !at)) return true;
    for (uint32_t i = 0; i < naming->marks.count; i++) {
        struct slice value = naming->marks.members[i].value; /* in quotes */
        if (slice_equal(naming->marks.members[i].name, *name))
            return value.len >= 2 && slice_equal((struct slice){value.data + 1, value.len - 2}, *mark);
    }
    return false;
}

/* How many parts the head names that are not there. */
static uint32_t count_missing(const struct naming *naming, const struct document *documents, uint32_t count,
                              struct arena *arena)
{
    struct slice name, mark;
    uint32_t found = 0;
    if (!naming->head || naming->is_gone || naming->names_unmarked) return 0;
    for (uint32_t i = 0; i < count; i++)
        found += is_named(naming, key_of(&documents[i], arena), &name, &mark);
    return naming->marks.count + 1 - found;
}

/* Of all documents of one name, in any order; the entry is made even when there are none. Functions that have not
 * changed are those of `before`. */
static struct entry *entry_new(struct registry *registry, struct slice name, const struct document *documents,
                               uint32_t count, const struct entry *before)
{
    struct arena arena = {0}, scratch = {0};
    struct entry *entry = arena_new(&arena, struct entry);
    struct naming naming = naming_of(documents, count, &scratch);
    entry->arena = arena;
    entry->references = 1;
    entry->name = arena_copy(&entry->arena, name);
    entry->parts = arena_array(&entry->arena, struct part, count);
    entry->strays = arena_array(&entry->arena, struct slice, count);
    if (naming.head) {
        entry->stamp = (uint64_t)document_integer(naming.head, "Stamp", 0);
        entry->recent = arena_copy(&entry->arena, document_text(naming.head, "Recent", &scratch));
    }
    for (uint32_t i = 0; i < count; i++) {
        struct slice key = arena_copy(&entry->arena, key_of(&documents[i], &scratch)), part_name, mark;
        if (!is_named(&naming, key, &part_name, &mark)) {
            if (&documents[i] != naming.head) entry->strays[entry->stray_count++] = key;
            continue;
        }
        struct part *part = &entry->parts[entry->count++];
        *part = (struct part){part_name, mark, document_deep_copy(&documents[i], &entry->arena), NULL};
        if (slice_starts(part->name, SLICE(PART_URL))) entry->has_urls = true;
        document_set(&part->document, "name", SLICE_NONE, &entry->arena);
        document_set(&part->document, "part", SLICE_NONE, &entry->arena);
        if (is_version_name(part->name) && !slice_starts(name, SLICE(LAYER_PREFIX)))
            part->function = function_of(registry, name, part, before, &scratch);
    }
    qsort(entry->parts, entry->count, sizeof *entry->parts, compare_parts);
    arena_free(&scratch);
    return entry;
}

/* ---- pages of items ---- */

struct items {
    struct document *documents;
    uint32_t count, room;
    struct slice last_key; /* JSON; NULL data: the last page */
    struct arena *arena;
};

static bool items_read(struct items *items, struct slice reply)
{
    struct document page, document;
    struct json_reader reader;
    items->last_key = SLICE_NONE;
    if (!document_parse(reply, items->arena, &page)) return false;
    items->last_key = document_get(&page, "LastEvaluatedKey");
    struct slice list = document_get(&page, "Items");
    if (!list.data) return false;
    json_begin(&reader, list, items->arena);
    if (json_peek(&reader) != JSON_ARRAY || !json_enter(&reader)) return false;
    while (json_element(&reader)) {
        if (!document_of_item(&reader, &document)) continue;
        items->documents = arena_grow(items->arena, items->documents, items->count, &items->room,
                                      sizeof document);
        items->documents[items->count++] = document;
    }
    return !json_failed(&reader);
}

/* Asks for all pages of a scan, or of a query for one name. A table that is not there has no items. */
static bool items_collect(struct registry *registry, struct slice name, struct items *items)
{
    struct arena *arena = items->arena;
    struct slice of_name = SLICE_NONE;
    bool all_well = true;
    if (name.data)
        of_name = compose_in(
            arena, ",'KeyConditionExpression':'#name = :name',%#,'ExpressionAttributeValues':{':name':%S}",
            name);
    do {
        struct slice start = items->last_key;
        if (start.data) start = compose_in(arena, ",'ExclusiveStartKey':%A", start);
        struct dynamo_reply reply = registry_call(registry, arena, name.data ? "Query" : "Scan", false,
                                                  compose_in(arena,
                                                             "{'TableName':%s,'ConsistentRead':true%A%A}",
                                                             registry->functions_table, start, of_name));
        items->last_key = SLICE_NONE;
        all_well = reply.status == 200 ? items_read(items, reply.body) : reply.fault == DYNAMO_MISSING;
        if (reply.status != 200 && !all_well)
            log_line("functions cannot be read: %.*s", SLICE_ARG(reply.message));
    } while (all_well && items->last_key.data);
    return all_well;
}

/* ---- one name ---- */

/* Reads until all that the head names is there. Where it stays missing although nothing moves, it was lost or removed
 * by hand, and is left out. False: it cannot be read. */
static bool collect_whole(struct registry *registry, struct slice name, struct items *items)
{
    int64_t last_stamp = -1;
    for (int tries = 0, still = 0; tries < READ_TRIES; tries++) {
        items->count = 0;
        if (!items_collect(registry, name, items)) return false;
        struct naming naming = naming_of(items->documents, items->count, items->arena);
        uint32_t missing = count_missing(&naming, items->documents, items->count, items->arena);
        if (!missing) return true;
        int64_t stamp = document_integer(naming.head, "Stamp", 0);
        still = stamp == last_stamp ? still + 1 : 0;
        last_stamp = stamp;
        if (still == READ_TRIES_STILL) {
            log_line("%u parts of the function %.*s are missing in its table", missing, SLICE_ARG(name));
            return true;
        }
    }
    log_line("the function %.*s changes faster than it can be read", SLICE_ARG(name));
    return false;
}

/* Whoever has the `reading` lock; counted. */
static struct entry *read_and_publish(struct registry *registry, struct slice name)
{
    struct arena arena = {0};
    struct items items = {.arena = &arena};
    struct entry *entry = NULL;
    if (collect_whole(registry, name, &items)) {
        struct entry *before = registry_known(registry, name);
        entry = entry_new(registry, name, items.documents, items.count, before);
        registry_publish(registry, entry_keep(entry));
        entry_release(before);
    }
    arena_free(&arena);
    return entry;
}

struct entry *registry_read_anyway(struct registry *registry, struct slice name)
{
    pthread_mutex_lock(&registry->reading);
    struct entry *entry = read_and_publish(registry, name);
    pthread_mutex_unlock(&registry->reading);
    return entry;
}

struct entry *registry_read(struct registry *registry, struct slice name, bool *failed)
{
    struct entry *entry = registry_read_anyway(registry, name);
    *failed = !entry;
    if (!entry || entry->count) return entry;
    entry_release(entry);
    return NULL;
}

struct entry *registry_look(struct registry *registry, struct slice name, bool *failed)
{
    *failed = false;
    return registry->func->options.shared ? registry_read(registry, name, failed)
                                          : registry_known(registry, name);
}

/* ---- all names ---- */

static struct slice name_of(const struct document *document, struct arena *arena)
{
    return document_text(document, "name", arena);
}

static int compare_names(const void *a, const void *b, void *arena)
{
    return slice_compare(name_of(a, arena), name_of(b, arena));
}

/* Publishes the documents of each name; they are in the order of names. */
static bool publish_all(struct registry *registry, const struct items *items, struct buf *untidy)
{
    for (uint32_t i = 0, next; i < items->count; i = next) {
        struct slice name = name_of(&items->documents[i], items->arena);
        for (next = i + 1; next < items->count; next++)
            if (!slice_equal(name_of(&items->documents[next], items->arena), name)) break;
        if (!name.len || (name.data[0] == '*' && !slice_starts(name, SLICE(LAYER_PREFIX))))
            continue; /* ours: neither function nor layer */
        const struct document *documents = items->documents + i;
        struct naming naming = naming_of(documents, next - i, items->arena);
        struct entry *before = registry_known(registry, name), *entry = NULL;
        if (count_missing(&naming, documents, next - i, items->arena)) {
            entry = read_and_publish(registry, name);
        } else {
            entry = entry_new(registry, name, documents, next - i, before);
            registry_publish(registry, entry_keep(entry));
        }
        entry_release(before);
        if (!entry) return false;
        if (untidy && (!entry->count || entry->stray_count)) {
            buf_slice(untidy, name);
            buf_byte(untidy, 0);
        }
        entry_release(entry);
    }
    return true;
}

/* Forgets the names that the table does not have any more. Both are in the order of names. */
static void forget_missing(struct registry *registry, const struct items *items)
{
    uint32_t count, at = 0;
    struct entry **known = registry_list(registry, SLICE(""), UINT32_MAX, items->arena, &count);
    for (uint32_t i = 0; i < count; i++) {
        int order = -1;
        while (at < items->count &&
               (order = slice_compare(name_of(&items->documents[at], items->arena), known[i]->name)) < 0)
            at++;
        if (at == items->count || order != 0)
            registry_publish(registry, entry_new(registry, known[i]->name, NULL, 0, NULL));
        entry_release(known[i]);
    }
}

bool registry_read_all(struct registry *registry, struct buf *untidy)
{
    struct arena arena = {0};
    struct items items = {.arena = &arena};
    pthread_mutex_lock(&registry->reading);
    bool all_well = items_collect(registry, SLICE_NONE, &items);
    if (all_well) {
        if (items.count)
            qsort_r(items.documents, items.count, sizeof *items.documents, compare_names, &arena);
        all_well = publish_all(registry, &items, untidy);
        forget_missing(registry, &items);
    }
    pthread_mutex_unlock(&registry->reading);
    arena_free(&arena);
    return all_well;
}
