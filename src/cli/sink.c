/* Lanes. Each has a list of waiting writes and a thread that takes as many as one BatchWriteItem may hold. A
 * later write on a key that is already in the batch replaces the earlier one: a batch must not name a key
 * twice, and nobody could see the earlier one anyway. */
#include "cli/sink.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/limits.h"
#include "value/value.h"

#define BATCH_BYTES      (4 * 1024 * 1024) /* of JSON; well below the limit of a request */
#define LANE_WRITES      400               /* waiting in a lane before the giver waits too ... */
#define LANE_BYTES       (8 * 1024 * 1024) /* ... or so many bytes */
#define SHOWN_BYTES      300               /* of a write that somebody has to find again */
#define ATTEMPTS_IN_VAIN 40                /* in a row, before a lane gives up: some minutes */

struct sink_write {
    struct sink_write *next;
    const struct sink_table *table;
    struct sink_origin origin;
    struct slice key, request; /* behind the struct, in the same piece of memory */
};

struct lane {
    struct sink *sink;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* waiting writes, room for more, or the end */
    struct sink_write *first, **end;
    size_t count, bytes; /* waiting, without the batch under way */
    bool is_busy, is_over;
};

struct sink {
    const struct place *place;
    unsigned lane_count;
    struct lane *lanes;
    atomic_ullong written;
    atomic_bool has_failed;
};

/* ---- keys ---- */

static const struct node *key_value(const struct node *item, const struct key_part *part)
{
    for (const struct node *one = item->first; one; one = one->next)
        if (slice_equal(one->name, part->name)) return one->kind == JSON_OBJECT ? one->first : NULL;
    return NULL;
}

/* Numbers are the same key however they are written. */
static bool put_key_part(struct buf *out, const struct node *item, const struct key_part *part)
{
    struct arena arena = {0};
    const struct node *value = key_value(item, part);
    if (!value || value->kind != JSON_STRING || value->name.len != 1 || value->name.data[0] != part->type)
        return false;
    struct slice text = value->text;
    bool fine = part->type != 'N' || number_canonical(&arena, value->text, &text) == NUMBER_OK;
    buf_varint(out, text.len);
    buf_slice(out, text);
    arena_free(&arena);
    return fine;
}

bool sink_key_bytes(struct buf *out, const struct sink_table *table, const struct node *item)
{
    if (item->kind != JSON_OBJECT || !put_key_part(out, item, &table->hash)) return false;
    return !table->range.name.len || put_key_part(out, item, &table->range);
}

bool sink_key_json(struct buf *out, const struct sink_table *table, const struct node *item)
{
    const struct key_part *parts[] = {&table->hash, &table->range};
    buf_byte(out, '{');
    for (size_t i = 0; i < 2; i++) {
        if (!parts[i]->name.len) continue;
        const struct node *value = key_value(item, parts[i]);
        if (!value || value->kind != JSON_STRING) return false;
        put_comma(out);
        json_put_string(out, parts[i]->name);
        buf_printf(out, ":{\"%c\":", parts[i]->type);
        json_put_string(out, value->text);
        buf_byte(out, '}');
    }
    buf_byte(out, '}');
    return true;
}

/* ---- giving ---- */

static struct sink_write *new_write(const struct sink_table *table, struct slice key, struct slice before,
                                    struct slice body)
{
    size_t request_len = before.len + body.len + 2;
    struct sink_write *write = must_alloc(sizeof *write + key.len + request_len);
    char *bytes = (char *)(write + 1);
    *write = (struct sink_write){
        .table = table, .key = {bytes, key.len}, .request = {bytes + key.len, request_len}};
    memcpy(bytes, key.data, key.len);
    bytes += key.len;
    memcpy(bytes, before.data, before.len);
    memcpy(bytes + before.len, body.data, body.len);
    memcpy(bytes + before.len + body.len, "}}", 2);
    return write;
}

static bool has_room(const struct lane *lane)
{
    return lane->count < LANE_WRITES && lane->bytes < LANE_BYTES;
}

static void lane_give(struct lane *lane, struct sink_write *write)
{
    pthread_mutex_lock(&lane->lock);
    while (!has_room(lane) && !atomic_load(&lane->sink->has_failed))
        pthread_cond_wait(&lane->changed, &lane->lock);
    *lane->end = write;
    lane->end = &write->next;
    lane->count++;
    lane->bytes += write->request.len;
    pthread_cond_broadcast(&lane->changed);
    pthread_mutex_unlock(&lane->lock);
}

/* A sentence about a write and the beginning of it. */
static void complain_of(struct sink_origin origin, const char *sentence, struct slice text)
{
    int shown = (int)(text.len < SHOWN_BYTES ? text.len : SHOWN_BYTES);
    if (origin.file)
        complain("%s, line %llu: %s: %.*s", origin.file, origin.line, sentence, shown, text.data);
    else
        complain("%s: %.*s", sentence, shown, text.data);
}

static bool give(struct sink *sink, const struct sink_table *table, struct slice before, struct slice object,
                 struct sink_origin origin)
{
    struct arena arena = {0};
    struct buf key = {0};
    const char *fault;
    if (atomic_load(&sink->has_failed)) return false;
    const struct node *node = node_parse(&arena, object, &fault);
    bool fine = node && sink_key_bytes(&key, table, node);
    if (fine) {
        struct sink_write *write = new_write(table, buf_view(&key), before, node->source);
        write->origin = origin;
        lane_give(&sink->lanes[hash_bytes(buf_view(&key)) % sink->lane_count], write);
    } else {
        struct slice sentence = arena_printf(&arena, "this has no key of the table '%s'", table->name);
        complain_of(origin, sentence.data, object);
    }
    buf_free(&key);
    arena_free(&arena);
    return fine;
}

bool sink_put(struct sink *sink, const struct sink_table *table, struct slice item)
{
    return sink_put_from(sink, table, item, (struct sink_origin){0});
}

bool sink_put_from(struct sink *sink, const struct sink_table *table, struct slice item,
                   struct sink_origin origin)
{
    return give(sink, table, SLICE("{\"PutRequest\":{\"Item\":"), item, origin);
}

bool sink_delete(struct sink *sink, const struct sink_table *table, struct slice key)
{
    return give(sink, table, SLICE("{\"DeleteRequest\":{\"Key\":"), key, (struct sink_origin){0});
}

/* ---- writing ---- */

struct batch {
    struct sink_write *writes[LIMIT_BATCH_WRITE_REQUESTS];
    size_t count, bytes;
    size_t taken; /* from the lane, with those that were replaced */
};

/* The place of a write on the same key in the batch; count when there is none. */
static size_t find_in_batch(const struct batch *batch, const struct sink_write *write)
{
    size_t i = 0;
    while (i < batch->count && !slice_equal(batch->writes[i]->key, write->key)) i++;
    return i;
}

/* Moves what fits from the lane into the batch; the lock is held. */
static void fill_batch(struct lane *lane, struct batch *batch)
{
    *batch = (struct batch){0};
    while (lane->first) {
        struct sink_write *write = lane->first;
        if (batch->count && batch->writes[0]->table != write->table) break;
        size_t at = find_in_batch(batch, write);
        if (at == LIMIT_BATCH_WRITE_REQUESTS ||
            (batch->count && batch->bytes + write->request.len > BATCH_BYTES))
            break;
        lane->first = write->next;
        if (!lane->first) lane->end = &lane->first;
        lane->count--;
        lane->bytes -= write->request.len;
        if (at < batch->count)
            free(batch->writes[at]);
        else
            batch->count++;
        batch->writes[at] = write;
        batch->bytes += write->request.len;
        batch->taken++;
    }
}

static void sink_fail(struct sink *sink, const struct answer *answer, const char *table)
{
    if (atomic_exchange(&sink->has_failed, true)) return;
    place_complain(sink->place, table, answer->error, answer->message);
}

/* Asks until everything is taken. False when the service refuses for good, with its answer. */
static bool ask_until_taken(struct sink *sink, struct arena *arena, struct buf *request,
                            struct answer *answer)
{
    for (unsigned in_vain = 0; in_vain < ATTEMPTS_IN_VAIN && !atomic_load(&sink->has_failed);) {
        arena_reset(arena);
        *answer = place_ask(sink->place, arena, "BatchWriteItem", request);
        const struct node *left = answer->error ? NULL : node_member(answer->json, "UnprocessedItems");
        if (!answer->error && (!left || !left->first)) return true;
        if (answer->error && !error_may_pass(answer->error)) return false;
        if (left) {
            size_t before = request->len;
            request->len = 0;
            buf_text(request, "{\"RequestItems\":");
            buf_slice(request, left->source);
            buf_byte(request, '}');
            if (request->len < before) in_vain = 0;
            answer->error = "ThrottlingException";
            answer->message = "the place takes no more items";
        }
        pause_before_retry(in_vain++);
    }
    return false;
}

static bool write_some(struct sink *sink, struct sink_write *const *writes, size_t count, struct arena *arena,
                       struct answer *answer)
{
    struct buf request = {0};
    buf_text(&request, "{\"RequestItems\":{");
    put_name(&request, writes[0]->table->name);
    buf_byte(&request, '[');
    for (size_t i = 0; i < count; i++) {
        put_comma(&request);
        buf_slice(&request, writes[i]->request);
    }
    buf_text(&request, "]}}");
    bool fine = ask_until_taken(sink, arena, &request, answer);
    buf_free(&request);
    return fine;
}

/* Whether the service refuses what an item is, and not the table or who asks. */
static bool is_about_an_item(const char *error)
{
    return error &&
           (strcmp(error, "ValidationException") == 0 || strcmp(error, "SerializationException") == 0 ||
            strcmp(error, "RequestEntityTooLargeException") == 0);
}

/* A refused batch is offered item by item, so that the complaint is about the one that is at fault. Answers how
 * many of the writes were taken by the place. */
static size_t write_batch(struct sink *sink, const struct batch *batch)
{
    struct arena arena = {0};
    struct answer answer = {0};
    bool fine = write_some(sink, batch->writes, batch->count, &arena, &answer);
    size_t written = fine ? batch->taken : 0;
    if (!fine && is_about_an_item(answer.error)) {
        for (; written < batch->count; written++) {
            const struct sink_write *write = batch->writes[written];
            fine = write_some(sink, &batch->writes[written], 1, &arena, &answer);
            if (fine) continue;
            if (answer.error && !atomic_load(&sink->has_failed))
                complain_of(write->origin, "refused", write->request);
            break;
        }
    }
    if (!fine && answer.error) sink_fail(sink, &answer, batch->writes[0]->table->name);
    arena_free(&arena);
    return written;
}

static void *run_lane(void *context)
{
    struct lane *lane = context;
    struct batch batch;
    pthread_mutex_lock(&lane->lock);
    for (;;) {
        while (!lane->first && !lane->is_over) pthread_cond_wait(&lane->changed, &lane->lock);
        if (lane->is_over) break;
        fill_batch(lane, &batch);
        lane->is_busy = true;
        pthread_cond_broadcast(&lane->changed);
        pthread_mutex_unlock(&lane->lock);
        if (!atomic_load(&lane->sink->has_failed))
            atomic_fetch_add(&lane->sink->written, write_batch(lane->sink, &batch));
        for (size_t i = 0; i < batch.count; i++) free(batch.writes[i]);
        pthread_mutex_lock(&lane->lock);
        lane->is_busy = false;
        pthread_cond_broadcast(&lane->changed);
    }
    pthread_mutex_unlock(&lane->lock);
    return NULL;
}

/* ---- life ---- */

struct sink *sink_new(const struct place *place, unsigned lanes)
{
    struct sink *sink = must_zero(1, sizeof *sink);
    sink->place = place;
    sink->lane_count = lanes;
    sink->lanes = must_zero(lanes, sizeof *sink->lanes);
    for (unsigned i = 0; i < lanes; i++) {
        struct lane *lane = &sink->lanes[i];
        lane->sink = sink;
        lane->end = &lane->first;
        pthread_mutex_init(&lane->lock, NULL);
        pthread_cond_init(&lane->changed, NULL);
        ensure(pthread_create(&lane->thread, NULL, run_lane, lane) == 0);
    }
    return sink;
}

bool sink_drain(struct sink *sink)
{
    for (unsigned i = 0; i < sink->lane_count; i++) {
        struct lane *lane = &sink->lanes[i];
        pthread_mutex_lock(&lane->lock);
        while (lane->first || lane->is_busy) pthread_cond_wait(&lane->changed, &lane->lock);
        pthread_mutex_unlock(&lane->lock);
    }
    return !atomic_load(&sink->has_failed);
}

unsigned long long sink_written(const struct sink *sink)
{
    return atomic_load(&sink->written);
}

static void lane_free(struct lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    lane->is_over = true;
    pthread_cond_broadcast(&lane->changed);
    pthread_mutex_unlock(&lane->lock);
    pthread_join(lane->thread, NULL);
    while (lane->first) {
        struct sink_write *write = lane->first;
        lane->first = write->next;
        free(write);
    }
    pthread_cond_destroy(&lane->changed);
    pthread_mutex_destroy(&lane->lock);
}

void sink_free(struct sink *sink)
{
    if (!sink) return;
    for (unsigned i = 0; i < sink->lane_count; i++) lane_free(&sink->lanes[i]);
    free(sink->lanes);
    free(sink);
}
