/* ImportTable as it is done: the bucket is found, the table is made, all objects with the prefix are read in the order
 * of their keys, and the table is given free. Repeated from its beginning after the process has died, which comes to
 * the same: nobody else can write the table meanwhile. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/log.h"
#include "base/raw.h"
#include "transfer/jobs.h"

#define SOME_FAILED                                                                                          \
    "Some of the items failed validation checks and were not imported. Please check CloudWatch error logs "  \
    "for more details."
#define LOGGED 20 /* faults that the server's log tells of, of each import */

struct import {
    struct transfer_run *run;
    struct slice bucket, key; /* key: of the object that is read */
    struct transfer_records_options options;
    struct table_definition definition;
    struct putter *putter;
    enum table_change_result made;
    uint64_t finished_bytes; /* of objects that were read */
    char first_fault[600];
};

/* ---- the request ---- */

static void read_csv(struct import *import)
{
    struct transfer_run *run = import->run;
    struct arena *arena = &run->arena;
    struct slice csv = raw_member(arena, raw_member(arena, run->job.request, "InputFormatOptions"), "Csv"),
                 name;
    struct slice delimiter = raw_string(arena, raw_member(arena, csv, "Delimiter")),
                 headers = raw_member(arena, csv, "HeaderList");
    struct transfer_records_options *options = &import->options;
    const struct table_definition *definition = &import->definition;
    if (delimiter.len) options->delimiter = delimiter.data[0];
    if (raw_kind(headers) == JSON_ARRAY) {
        struct slice *names = arena_array(arena, struct slice, raw_count(arena, headers));
        raw_each (arena, headers, &name) names[options->name_count++] = raw_string(arena, name);
        options->names = names;
    }
    struct transfer_column *types = arena_array(arena, struct transfer_column, definition->attribute_count);
    for (uint32_t i = 0; i < definition->attribute_count; i++)
        types[i] = (struct transfer_column){definition->attributes[i].name, definition->attributes[i].type};
    options->types = types;
    options->type_count = definition->attribute_count;
}

static void read_request(struct import *import)
{
    struct slice format = transfer_run_text(import->run, NULL, "InputFormat");
    ensure(table_definition_decode(&import->run->arena, import->run->job.definition, &import->definition));
    import->bucket = transfer_run_text(import->run, "S3BucketSource", "S3Bucket");
    import->options.compression = transfer_run_compression(
        transfer_run_text(import->run, NULL, "InputCompressionType"));
    import->options.format = slice_equal(format, SLICE("CSV"))   ? TRANSFER_CSV
                             : slice_equal(format, SLICE("ION")) ? TRANSFER_ION
                                                                 : TRANSFER_JSON;
    if (import->options.format == TRANSFER_CSV) read_csv(import);
}

/* ---- the table ---- */

struct making {
    struct commit commit;
    struct import *import;
};

/* A table that this very import has made before the process died is its own. */
static void make_apply(struct commit *commit, struct batch *batch)
{
    struct import *import = ((struct making *)(void *)commit)->import;
    struct arena *arena = &import->run->arena;
    struct value id = {.type = VALUE_S, .bytes = import->run->job.id};
    const struct table *table = engine_table_in_batch(batch, import->definition.name);
    const struct value *own = table ? map_find(&table->definition.settings, SLICE(API_IMPORTING)) : NULL;
    import->definition.settings = map_with(arena, &import->definition.settings, SLICE(API_IMPORTING), &id);
    import->made = own && slice_equal(own->bytes, id.bytes) ? TABLE_CHANGED
                                                            : engine_table_create(batch, &import->definition);
}

static bool make_table(struct import *import)
{
    struct making making = {.commit = {.apply = make_apply}, .import = import};
    engine_commit(import->run->transfer->engine, &making.commit);
    if (making.commit.failed) return false;
    if (import->made == TABLE_EXISTS)
        transfer_run_fail(import->run, "TableAlreadyExists", "The table was made by somebody else meanwhile",
                          NULL);
    else if (import->made != TABLE_CHANGED)
        transfer_run_fail(import->run, "LimitExceededException", "There are too many tables", NULL);
    return import->made == TABLE_CHANGED;
}

/* ---- the items ---- */

static void note_fault(struct import *import, uint64_t number, struct slice message)
{
    struct api_job *job = &import->run->job;
    if (!job->errors++)
        snprintf(import->first_fault, sizeof import->first_fault,
                 "%s The first: s3://%.*s/%.*s, item %llu: %.*s", SOME_FAILED, SLICE_ARG(import->bucket),
                 (int)(import->key.len < 100 ? import->key.len : 100), import->key.data,
                 (unsigned long long)number, SLICE_ARG(message));
    if (job->errors <= LOGGED)
        log_line("import of %.*s: s3://%.*s/%.*s, item %llu: %.*s", SLICE_ARG(job->table),
                 SLICE_ARG(import->bucket), SLICE_ARG(import->key), (unsigned long long)number,
                 SLICE_ARG(message));
}

static void put_failed(void *context, const struct put_failure *failure)
{
    note_fault(context, failure->number, failure->message);
}

/* False when the import is not to go on. */
static bool read_object(struct import *import, const struct bucket_object *object)
{
    struct transfer_run *run = import->run;
    struct transfer_failure failure = {0};
    struct transfer_source *source = buckets_open(run->transfer->buckets, import->bucket, object, &failure);
    struct slice item;
    const char *fault;
    enum transfer_result result;
    import->key = object->key;
    if (!source) {
        note_fault(import, 0, slice_of(failure.message));
        return true;
    }
    struct transfer_records *records = transfer_records_open(source, &import->options);
    bool fine = true;
    while (fine && !transfer_run_is_stopped(run) &&
           (result = transfer_records_next(records, &item, &fault)) != TRANSFER_END) {
        run->job.items++;
        if (result == TRANSFER_FOUND)
            fine = putter_add(import->putter, item, SLICE_NONE, transfer_records_count(records));
        else
            note_fault(import, transfer_records_count(records), slice_of(fault));
        run->job.written = (int64_t)putter_written(import->putter);
        if (fine) fine = transfer_run_note(run, false);
    }
    fine = fine && !transfer_run_is_stopped(run) && putter_flush(import->putter);
    run->job.bytes += (int64_t)object->bytes;
    run->job.written = (int64_t)putter_written(import->putter);
    transfer_records_close(records);
    return fine;
}

static void give_free(struct transfer_run *run, struct batch *batch, struct arena *arena)
{
    api_import_done(batch, arena, run->job.table, run->job.id);
}

static void import_objects(struct import *import, const struct bucket_list *list)
{
    struct transfer_run *run = import->run;
    bool fine = true;
    if (!make_table(import)) return;
    import->putter = putter_open(run->transfer, run->job.table,
                                 (struct put_listener){.failed = put_failed, .context = import});
    for (uint32_t i = 0; fine && i < list->count; i++) fine = read_object(import, &list->objects[i]);
    putter_close(import->putter);
    if (!fine) return; /* the process ends, or cannot write: the note stays as it is */
    if (run->job.errors)
        transfer_run_fail(run, "ItemValidationError", import->first_fault, give_free);
    else
        transfer_run_end(run, "COMPLETED", give_free);
}

void transfer_import(struct transfer_run *run)
{
    struct import import = {.run = run};
    struct bucket_list list = {0};
    struct transfer_failure failure = {0};
    struct buckets *buckets = run->transfer->buckets;
    transfer_run_held(run);
    run->job.items = run->job.written = run->job.errors = run->job.bytes = 0;
    read_request(&import);
    struct slice prefix = transfer_run_text(run, "S3BucketSource", "S3KeyPrefix");
    if (buckets_exist(buckets, import.bucket, &failure) &&
        buckets_list(buckets, import.bucket, prefix, &list, &failure))
        import_objects(&import, &list);
    else
        transfer_run_fail(run, failure.code, failure.message, give_free);
    bucket_list_free(&list);
}
