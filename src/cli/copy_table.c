/* One table from its definition to its last item. */
#include "base/clock.h"
#include "base/fail.h"
#include "cli/copy.h"
#include "cli/interrupt.h"
#include "cli/sweep.h"

/* ---- the stream ---- */

static bool set_stream(const struct copied *copied, bool is_on)
{
    const struct place *source = &copied->copy->source;
    struct arena arena = {0};
    struct buf request = {0};
    request_begin(&request, copied->name);
    put_name(&request, "StreamSpecification");
    buf_slice(&request, slice_of(is_on ? "{\"StreamEnabled\":true,\"StreamViewType\":\"NEW_IMAGE\"}}"
                                       : "{\"StreamEnabled\":false}}"));
    bool fine = place_call(source, &arena, "UpdateTable", &request) &&
                table_wait_active(source, copied->name);
    buf_free(&request);
    arena_free(&arena);
    return fine;
}

/* The changes from now on; a stream of our own is new, so all of it is. */
static bool open_stream(struct copied *copied, bool source_has_stream)
{
    char error[QUIPU_ERROR_BYTES];
    if (!source_has_stream) {
        progress_say(&copied->progress,
                     "the source has no stream; one is switched on for the time of the copy");
        if (!set_stream(copied, true)) return false;
        copied->stream_is_ours = true;
    }
    copied->stream = quipu_stream_open(copied->copy->source.db, copied->name,
                                       copied->stream_is_ours ? QUIPU_OLDEST : QUIPU_LATEST, error,
                                       sizeof error);
    if (!copied->stream) complain("%s: %s", copied->name, error);
    return copied->stream != NULL;
}

static bool begin_following(struct copied *copied, const struct schema *schema)
{
    bool source_has_stream = node_is_true(node_member(schema->description, "StreamSpecification"),
                                          "StreamEnabled");
    if (!copied->copy->follows) return true;
    if (!open_stream(copied, source_has_stream)) return false;
    ensure(pthread_create(&copied->follower, NULL, follow_run, copied) == 0);
    copied->has_follower = true;
    return true;
}

/* ---- the definition ---- */

static bool copy_definition(struct copied *copied, const struct schema *schema)
{
    const char *fault;
    struct buf text = {0};
    bool fine = definition_load(&text, &copied->copy->source, &copied->arena, schema);
    if (fine) {
        const struct node *definition = node_parse(&copied->arena,
                                                   arena_copy(&copied->arena, buf_view(&text)), &fault);
        fine = definition && definition_keys(definition, &copied->table) &&
               definition_apply(&copied->copy->target, definition, copied->name);
    }
    buf_free(&text);
    return fine;
}

/* ---- the items ---- */

static bool take_item(void *context, struct slice item)
{
    struct copied *copied = context;
    if (is_interrupted() || atomic_load(&copied->has_failed)) return false;
    return sink_put(copied->copy->sink, &copied->table, item);
}

static void tick(void *context, unsigned long long items)
{
    struct copied *copied = context;
    progress_show(&copied->progress, items);
    if (copied->item_count < items) copied->item_count = items;
}

static bool copy_items(struct copied *copied)
{
    struct copy *copy = copied->copy;
    struct sweep sweep = {.place = &copy->source,
                          .table = copied->name,
                          .segments = copy->segments,
                          .take = take_item,
                          .tick = tick,
                          .context = copied};
    unsigned long long count = copied->item_count;
    progress_begin(&copied->progress, copied->name, count);
    copied->item_count = 0;
    if (!sweep_run(&sweep) || !sink_drain(copy->sink)) return false;
    progress_end(&copied->progress, "copied", copied->item_count);
    return !copy->deletes_extra || extras_delete(copied);
}

bool copied_run(struct copied *copied, struct copy *copy, const char *name)
{
    struct schema schema;
    *copied = (struct copied){
        .copy = copy, .name = name, .table = {.name = name}, .changed_us = monotonic_us()};
    progress_begin(&copied->progress, name, 0);
    if (!schema_load(&copy->source, &copied->arena, name, NULL, &schema)) return false;
    copied->item_count = node_count(schema.description, "ItemCount");
    if (!copy_definition(copied, &schema) || !begin_following(copied, &schema) || !copy_items(copied))
        return false;
    atomic_store(&copied->has_all_items, true);
    return true;
}

bool copied_end(struct copied *copied)
{
    if (copied->has_follower) pthread_join(copied->follower, NULL);
    quipu_stream_close(copied->stream);
    if (copied->stream_is_ours && set_stream(copied, false))
        progress_say(&copied->progress, "the source's stream is switched off again");
    spool_free(&copied->spool);
    arena_free(&copied->arena);
    return !atomic_load(&copied->has_failed);
}
