/* Jobs as notes of the engine: one of the job's kind, under its id; while it runs also one of the kind "running", so
 * that whoever does jobs finds those that are to be done among any number of old ones. */
#include "api/background.h"

static const struct slice kind_names[API_JOB_KINDS] = {
    [API_EXPORT] = TEXT("export"), [API_IMPORT] = TEXT("import"), [API_BULK] = TEXT("bulk-operation"),
    [API_RESTORE] = TEXT("restore")};

#define RUNNING SLICE("running")

void api_put_job_arn(struct buf *out, const struct api *api, const struct api_job *job)
{
    put_table_arn(out, api, job->table);
    buf_printf(out, "/%.*s/%.*s", SLICE_ARG(kind_names[job->kind]), SLICE_ARG(job->id));
}

struct slice background_kind_name(enum api_job_kind kind)
{
    return kind_names[kind];
}

bool api_job_is_running(const struct api_job *job)
{
    return slice_equal(job->status, SLICE("IN_PROGRESS")) || slice_equal(job->status, SLICE("CANCELLING"));
}

static struct slice running_id(struct arena *arena, const struct api_job *job)
{
    return arena_printf(arena, "%.*s/%.*s", SLICE_ARG(kind_names[job->kind]), SLICE_ARG(job->id));
}

bool api_job_put(struct batch *batch, struct arena *arena, const struct api_job *job)
{
    struct map fields = {0}, none = {0};
#define X(member)                                                                                            \
    if (job->member.len) map_put(arena, &fields, SLICE(#member), text_value(job->member));
    API_JOB_TEXTS(X)
#undef X
#define X(member)                                                                                            \
    if (job->member) map_put(arena, &fields, SLICE(#member), integer_value(arena, job->member));
    API_JOB_NUMBERS(X)
#undef X
    if (job->definition.len)
        map_put(arena, &fields, SLICE("definition"),
                (struct value){.type = VALUE_B, .bytes = job->definition});
    if (api_job_is_running(job)) {
        if (!engine_note_put(batch, arena, RUNNING, running_id(arena, job), &none)) return false;
    } else {
        engine_note_delete(batch, arena, RUNNING, running_id(arena, job));
    }
    return engine_note_put(batch, arena, kind_names[job->kind], job->id, &fields);
}

void background_read(const struct map *fields, enum api_job_kind kind, struct slice id, struct api_job *out)
{
    *out = (struct api_job){.kind = kind, .id = id};
#define X(member) out->member = map_text(fields, #member);
    API_JOB_TEXTS(X)
#undef X
#define X(member) out->member = map_integer(fields, #member);
    API_JOB_NUMBERS(X)
#undef X
    const struct value *definition = map_find(fields, SLICE("definition"));
    if (definition && definition->type == VALUE_B) out->definition = definition->bytes;
}

bool api_job_find(struct engine *engine, struct arena *arena, enum api_job_kind kind, struct slice id,
                  struct api_job *out)
{
    struct map fields;
    if (!engine_note_find(engine, arena, kind_names[kind], id, &fields)) return false;
    background_read(&fields, kind, arena_copy(arena, id), out);
    return true;
}

bool api_job_in_batch(struct batch *batch, struct arena *arena, enum api_job_kind kind, struct slice id,
                      struct api_job *out)
{
    struct map fields;
    if (!engine_note_in_batch(batch, arena, kind_names[kind], id, &fields)) return false;
    background_read(&fields, kind, arena_copy(arena, id), out);
    return true;
}

/* ---- those that run ---- */

struct running {
    struct engine *engine;
    struct arena *arena;
    struct slice *ids;
    uint32_t count, capacity;
};

static bool take_running(void *context, struct slice id, const struct map *fields)
{
    struct running *running = context;
    (void)fields;
    if (running->count == running->capacity) {
        uint32_t larger = running->capacity ? running->capacity * 2 : 16;
        struct slice *ids = arena_array(running->arena, struct slice, larger);
        if (running->count) memcpy(ids, running->ids, running->count * sizeof *ids);
        running->ids = ids;
        running->capacity = larger;
    }
    running->ids[running->count++] = id;
    return true;
}

uint32_t background_count(struct engine *engine, struct arena *arena)
{
    struct running running = {.engine = engine, .arena = arena};
    engine_notes(engine, arena, RUNNING, SLICE_NONE, take_running, &running);
    return running.count;
}

uint32_t background_count_of(struct engine *engine, struct arena *arena, enum api_job_kind kind)
{
    struct running running = {.engine = engine, .arena = arena};
    uint32_t count = 0;
    engine_notes(engine, arena, RUNNING, SLICE_NONE, take_running, &running);
    for (uint32_t i = 0; i < running.count; i++) {
        struct slice id = running.ids[i];
        count += slice_equal(slice_cut(&id, '/'), kind_names[kind]);
    }
    return count;
}

bool api_jobs_running(struct engine *engine, struct arena *arena, struct api_job **jobs, uint32_t *count)
{
    struct running running = {.engine = engine, .arena = arena};
    if (engine_notes(engine, arena, RUNNING, SLICE_NONE, take_running, &running) != ENGINE_OK) return false;
    *jobs = arena_array(arena, struct api_job, running.count);
    *count = 0;
    for (uint32_t i = running.count; i-- > 0;) {
        struct slice id = running.ids[i], word = slice_cut(&id, '/');
        for (unsigned kind = 0; kind < API_JOB_KINDS; kind++)
            if (slice_equal(word, kind_names[kind]) &&
                api_job_find(engine, arena, (enum api_job_kind)kind, id, &(*jobs)[*count]))
                (*count)++;
    }
    return true;
}

void api_import_done(struct batch *batch, struct arena *arena, struct slice name, struct slice id)
{
    const struct table *table = engine_table_in_batch(batch, name);
    const struct value *importing = table ? map_find(&table->definition.settings, SLICE(API_IMPORTING))
                                          : NULL;
    if (!importing || !slice_equal(importing->bytes, id)) return;
    struct table_definition *definition = table_definition_copy(arena, &table->definition);
    setting_remove(arena, definition, API_IMPORTING);
    engine_table_replace(batch, definition);
}

/* ---- forgetting ---- */

#define FORGOTTEN_AT_ONCE 500

struct forgetting {
    struct slice ids[FORGOTTEN_AT_ONCE];
    uint32_t count;
    const char *since; /* the member that has the time, */
    int64_t before_ms; /* ... and what is older goes */
};

static bool find_old(void *context, struct slice id, const struct map *fields)
{
    struct forgetting *forgetting = context;
    int64_t since_ms = map_integer(fields, forgetting->since);
    if (since_ms && since_ms < forgetting->before_ms) forgetting->ids[forgetting->count++] = id;
    return forgetting->count < FORGOTTEN_AT_ONCE;
}

/* A job that runs has no end. */
void api_jobs_forget(struct batch *batch, struct engine *engine, struct arena *arena, int64_t now_ms)
{
    struct forgetting *forgetting = arena_new(arena, struct forgetting);
    for (unsigned kind = 0; kind < 2 * API_JOB_KINDS; kind++) {
        bool is_token = kind >= API_JOB_KINDS;
        struct slice name = kind_names[kind % API_JOB_KINDS];
        if (is_token) name = arena_printf(arena, BACKGROUND_TOKEN "%.*s", SLICE_ARG(name));
        *forgetting = (struct forgetting){
            .since = is_token ? "since_ms" : "end_ms",
            .before_ms = now_ms - (is_token ? LIMIT_TRANSFER_TOKEN_MS : LIMIT_TRANSFER_KEPT_MS)};
        engine_notes(engine, arena, name, SLICE_NONE, find_old, forgetting);
        for (uint32_t i = 0; i < forgetting->count; i++)
            engine_note_delete(batch, arena, name, forgetting->ids[i]);
    }
}
