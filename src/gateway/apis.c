/* APIs in their table, and those that are in memory.
 *
 * The table PREFIXroutes has the hash key `api`; an item has the whole definition, so that a change is one write, on
 * the condition of the `version` that was read. */
#include <stdlib.h>

#include "base/attribute.h"
#include "base/clock.h"
#include "base/compose.h"
#include "base/fail.h"
#include "base/log.h"
#include "gateway/internal.h"

#define ATTEMPTS 20 /* of a change that others make at the same time */

static bool is_missing(int status, struct slice reply, struct arena *arena)
{
    struct slice name, message;
    dynamo_error(reply, arena, &name, &message);
    return dynamo_fault(status, name) == DYNAMO_MISSING;
}

static void log_failure(struct slice reply, struct arena *arena)
{
    struct slice name, message;
    dynamo_error(reply, arena, &name, &message);
    log_line("routes: %.*s: %.*s", SLICE_ARG(name), SLICE_ARG(message));
}

/* ---- the table ---- */

bool apis_read(struct gateway *gateway, struct slice name, struct arena *arena, struct slice *definition,
                int64_t *version)
{
    struct buf reply = {0}, plain = {0};
    struct slice request = compose_in(arena, "{'TableName':%s,'ConsistentRead':true,'Key':{'api':%S}}",
                                      gateway->table, name);
    int status = dynamo_call(gateway->options.dynamo, SLICE("GetItem"), request, &reply);
    struct slice text = arena_take(arena, &reply);
    *definition = SLICE_NONE;
    *version = 0;
    if (status != 200) {
        if (is_missing(status, text, arena)) return true;
        log_failure(text, arena);
        return false;
    }
    struct slice item = raw_member(arena, text, "Item");
    if (!item.data || !item_has(arena, item, "definition")) return true;
    plain_put_attribute(&plain, arena, item_attribute(arena, item, "definition"));
    *definition = arena_take(arena, &plain);
    *version = item_int(arena, item, "version", 0);
    return true;
}

/* An empty definition deletes it. */
static enum stored apis_write(struct gateway *gateway, struct slice name, struct slice definition, int64_t version)
{
    struct arena arena = {0};
    struct buf reply = {0};
    enum stored stored = STORED_FAILED;
    struct slice condition =
        version ? compose_in(&arena, "'ConditionExpression':'#version = :v','ExpressionAttributeValues':{':v':%N},"
                                     "'ExpressionAttributeNames':{'#version':'version'}",
                             version)
                : SLICE("\"ConditionExpression\":\"attribute_not_exists(api)\"");
    struct slice request =
        definition.len
            ? compose_in(&arena, "{'TableName':%s,%A,'Item':{'api':%S,'version':%N,'definition':%J}}", gateway->table,
                         condition, name, version + 1, definition)
            : compose_in(&arena, "{'TableName':%s,%A,'Key':{'api':%S}}", gateway->table, condition, name);
    for (int i = 0; i < 2; i++) {
        char error[256];
        reply.len = 0;
        int status = dynamo_call(gateway->options.dynamo, definition.len ? SLICE("PutItem") : SLICE("DeleteItem"),
                                 request, &reply);
        struct slice error_name, message;
        dynamo_error(buf_view(&reply), &arena, &error_name, &message);
        enum dynamo_fault fault = dynamo_fault(status, error_name);
        stored = fault == DYNAMO_FINE ? STORED_FINE : fault == DYNAMO_CONDITION ? STORED_AGAIN : STORED_FAILED;
        if (fault != DYNAMO_MISSING) break;
        struct dynamo_table table = {.name = gateway->table, .hash = "api"};
        if (!dynamo_table_make(gateway->options.dynamo, &table, error, sizeof error)) log_line("routes: %s", error);
    }
    if (stored == STORED_FAILED) log_failure(buf_view(&reply), &arena);
    buf_free(&reply);
    arena_free(&arena);
    apis_forget(gateway, name);
    return stored;
}

bool apis_list(struct gateway *gateway, struct arena *arena, void (*each)(void *context, struct slice name,
                                                                           struct slice definition),
                void *context)
{
    struct slice start = SLICE_NONE;
    do {
        struct buf reply = {0};
        struct slice request = start.data ? compose_in(arena, "{'TableName':%s,'ConsistentRead':true,"
                                                              "'ExclusiveStartKey':%A}", gateway->table, start)
                                          : compose_in(arena, "{'TableName':%s,'ConsistentRead':true}", gateway->table);
        int status = dynamo_call(gateway->options.dynamo, SLICE("Scan"), request, &reply);
        struct slice text = arena_take(arena, &reply), item;
        if (status != 200) return is_missing(status, text, arena);
        raw_each(arena, raw_member(arena, text, "Items"), &item)
        {
            struct buf plain = {0};
            if (!item_has(arena, item, "definition")) continue;
            plain_put_attribute(&plain, arena, item_attribute(arena, item, "definition"));
            each(context, item_text(arena, item, "api"), arena_take(arena, &plain));
        }
        start = raw_member(arena, text, "LastEvaluatedKey");
    } while (start.data);
    return true;
}

enum stored apis_change(struct gateway *gateway, struct slice name, apis_edit *edit, void *context)
{
    enum stored stored = STORED_AGAIN;
    for (int i = 0; i < ATTEMPTS && stored == STORED_AGAIN; i++) {
        struct arena arena = {0};
        struct slice before, after = SLICE_NONE;
        int64_t version;
        if (!apis_read(gateway, name, &arena, &before, &version))
            stored = STORED_FAILED;
        else if (!edit(context, before, &arena, &after))
            stored = STORED_ANSWERED;
        else
            stored = apis_write(gateway, name, after, version);
        arena_free(&arena);
    }
    return stored;
}

/* ---- in memory ---- */

static struct api **place_of(struct gateway *gateway, struct slice name)
{
    struct api **at = &gateway->apis;
    while (*at && !slice_equal((*at)->name, name)) at = &(*at)->next;
    return at;
}

void apis_forget(struct gateway *gateway, struct slice name)
{
    pthread_mutex_lock(&gateway->lock);
    struct api **at = place_of(gateway, name), *api = *at;
    if (api) {
        *at = api->next;
        gateway->api_count--;
    }
    gateway->changes++;
    pthread_mutex_unlock(&gateway->lock);
    api_release(api);
}

struct api *apis_known(struct gateway *gateway, struct slice name, bool any_age)
{
    pthread_mutex_lock(&gateway->lock);
    struct api *api = *place_of(gateway, name);
    bool is_old = api && !any_age && gateway->options.shared && monotonic_us() - api->read_us > LIMIT_API_AGE_MS * 1000;
    if (api && !is_old) api_keep(api);
    pthread_mutex_unlock(&gateway->lock);
    return is_old ? NULL : api;
}

struct api *apis_load(struct gateway *gateway, struct slice name, bool *failed)
{
    struct arena arena = {0};
    struct slice definition;
    int64_t version;
    char error[400];
    struct api *api = NULL;
    pthread_mutex_lock(&gateway->lock);
    uint64_t changes = gateway->changes;
    pthread_mutex_unlock(&gateway->lock);
    int64_t now_us = monotonic_us();
    *failed = !apis_read(gateway, name, &arena, &definition, &version);
    if (definition.len) api = api_read(name, definition, error, sizeof error);
    if (definition.len && !api) log_line("routes: the definition of %.*s is wrong: %s", SLICE_ARG(name), error);
    arena_free(&arena);
    if (!api) return NULL;
    api->read_us = now_us;
    pthread_mutex_lock(&gateway->lock);
    struct api **at = place_of(gateway, name), *old = *at;
    bool is_kept = gateway->changes == changes && (old || gateway->api_count < LIMIT_APIS_KEPT);
    if (is_kept) {
        api->next = old ? old->next : NULL;
        *at = api_keep(api);
        gateway->api_count += !old;
    }
    pthread_mutex_unlock(&gateway->lock);
    if (is_kept) api_release(old);
    return api;
}

static void read_one(void *context, struct slice name, struct slice definition)
{
    bool failed;
    (void)definition;
    api_release(apis_load(context, name, &failed));
}

static void read_all(void *room, void *none)
{
    struct gateway *gateway = room;
    struct arena arena = {0};
    (void)none;
    atomic_store(&gateway->is_reading, false); /* what changes from here on is worth another look */
    apis_list(gateway, &arena, read_one, gateway);
    arena_free(&arena);
}

void apis_read_soon(struct gateway *gateway)
{
    if (!atomic_exchange(&gateway->is_reading, true)) workers_run(gateway->workers, read_all, gateway, NULL);
}

void apis_close(struct gateway *gateway)
{
    while (gateway->apis) {
        struct api *api = gateway->apis;
        gateway->apis = api->next;
        api_release(api);
    }
}
