/* Items that only the target has. Its keys are read, and the source is asked for them by the hundred; what it
 * does not know is deleted. An item that appears in the source meanwhile is in its stream, whose changes are
 * applied afterwards. */
#include "base/limits.h"
#include "base/print.h"
#include "cli/copy.h"
#include "cli/interrupt.h"
#include "cli/sweep.h"

struct extras {
    struct copied *copied;
    struct buf projection;
    pthread_mutex_t lock; /* of the keys that are gathered */
    struct buf keys;      /* {...},{...} */
    unsigned key_count;
    atomic_ullong deleted;
};

/* ,"ProjectionExpression":"#h,#r","ExpressionAttributeNames":{...} */
static void put_projection(struct buf *out, const struct sink_table *table)
{
    bool has_range = table->range.name.len > 0;
    put_string_member(out, "ProjectionExpression", has_range ? SLICE("#h,#r") : SLICE("#h"));
    buf_text(out, ",\"ExpressionAttributeNames\":{");
    put_string_member(out, "#h", table->hash.name);
    if (has_range) put_string_member(out, "#r", table->range.name);
    buf_byte(out, '}');
}

/* ---- what the source has of some keys ---- */

static bool is_among(const struct sink_table *table, const struct node *items, struct slice wanted)
{
    struct buf key = {0};
    bool found = false;
    for (const struct node *one = items ? items->first : NULL; one && !found; one = one->next) {
        key.len = 0;
        found = sink_key_bytes(&key, table, one) && slice_equal(buf_view(&key), wanted);
    }
    buf_free(&key);
    return found;
}

/* Those of the keys that were looked up and not found are deleted. */
static bool delete_missing(struct extras *extras, const struct node *keys, const struct node *found,
                           const struct node *unprocessed)
{
    struct copied *copied = extras->copied;
    bool fine = true;
    for (const struct node *one = keys->first; fine && one; one = one->next) {
        struct buf key = {0};
        fine = sink_key_bytes(&key, &copied->table, one);
        if (fine && !is_among(&copied->table, found, buf_view(&key)) &&
            !is_among(&copied->table, unprocessed, buf_view(&key))) {
            fine = sink_delete(copied->copy->sink, &copied->table, one->source);
            atomic_fetch_add(&extras->deleted, 1);
        }
        buf_free(&key);
    }
    return fine;
}

/* Asks for the keys, an array, until all were looked up. */
static bool look_up(struct extras *extras, struct slice keys_json)
{
    struct copied *copied = extras->copied;
    struct arena arena = {0};
    const char *fault;
    const struct node *keys = node_parse(&arena, keys_json, &fault);
    bool fine = keys != NULL;
    for (unsigned in_vain = 0; fine && keys && keys->first; in_vain++) {
        struct buf request = {0};
        buf_text(&request, "{\"RequestItems\":{");
        put_name(&request, copied->name);
        buf_text(&request, "{\"ConsistentRead\":true");
        put_projection(&request, &copied->table);
        put_raw_member(&request, "Keys", keys->source);
        buf_text(&request, "}}}");
        struct answer answer = place_ask(&copied->copy->source, &arena, "BatchGetItem", &request);
        buf_free(&request);
        bool passes = answer.error && error_may_pass(answer.error) && in_vain < 40;
        if (answer.error && !passes) {
            place_complain(&copied->copy->source, copied->name, answer.error, answer.message);
            fine = false;
        } else if (!answer.error) {
            const struct node *found = node_member(node_member(answer.json, "Responses"), copied->name);
            const struct node *left = node_member(node_member(answer.json, "UnprocessedKeys"), copied->name);
            const struct node *unprocessed = node_member(left, "Keys");
            fine = delete_missing(extras, keys, found, unprocessed);
            keys = unprocessed;
        }
        if (passes || (keys && keys->first)) pause_before_retry(in_vain);
    }
    arena_free(&arena);
    return fine;
}

/* ---- the target's keys ---- */

/* Takes what is gathered, as an array, out of the struct. */
static struct buf take_keys(struct extras *extras)
{
    struct buf keys = extras->keys;
    buf_byte(&keys, ']');
    extras->keys = (struct buf){0};
    extras->key_count = 0;
    return keys;
}

static bool take_item(void *context, struct slice item)
{
    struct extras *extras = context;
    struct arena arena = {0};
    struct buf keys = {0};
    const char *fault;
    const struct node *node = node_parse(&arena, item, &fault);
    if (is_interrupted() || !node) return false;
    pthread_mutex_lock(&extras->lock);
    buf_byte(&extras->keys, extras->key_count ? ',' : '[');
    bool fine = sink_key_json(&extras->keys, &extras->copied->table, node);
    if (++extras->key_count == LIMIT_BATCH_GET_KEYS) keys = take_keys(extras);
    pthread_mutex_unlock(&extras->lock);
    if (fine && keys.len) fine = look_up(extras, buf_view(&keys));
    buf_free(&keys);
    arena_free(&arena);
    return fine;
}

bool extras_delete(struct copied *copied)
{
    struct extras extras = {.copied = copied};
    pthread_mutex_init(&extras.lock, NULL);
    buf_byte(&extras.projection, ' '); /* in the midst of a request: a comma comes next */
    put_projection(&extras.projection, &copied->table);
    buf_byte(&extras.projection, 0);
    struct sweep sweep = {.place = &copied->copy->target,
                          .table = copied->name,
                          .projection = extras.projection.data,
                          .segments = copied->copy->segments,
                          .take = take_item,
                          .context = &extras};
    bool fine = sweep_run(&sweep);
    if (fine && extras.key_count) {
        struct buf keys = take_keys(&extras);
        fine = look_up(&extras, buf_view(&keys));
        buf_free(&keys);
    }
    fine = sink_drain(copied->copy->sink) && fine;
    unsigned long long deleted = atomic_load(&extras.deleted);
    if (fine && deleted)
        progress_say(&copied->progress, "%s deleted that the source does not have",
                     counted(deleted, "item").text);
    pthread_mutex_destroy(&extras.lock);
    buf_free(&extras.projection);
    buf_free(&extras.keys);
    return fine;
}
