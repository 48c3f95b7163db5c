/* GET /console/changes?table=NAME: each change of a table as it happens, with a stream or without.
 *
 * The writer leaves what it changed with each who watches, up to a limit; the console's thread makes events of it. More
 * than fits, as nobody could read it, is counted and told as {"skipped":n}. */
#include <stdio.h>

#include "api/api.h"
#include "base/compose.h"
#include "console/internal.h"
#include "engine/engine.h"
#include "value/value.h"

struct watch {
    struct listener listener; /* first */
    struct engine_observer observer;
    struct slice hash, range; /* names of the key's attributes; range may be empty */
    uint64_t sequence;        /* of the last event */
    int64_t full_since_us;    /* 0: its client takes what it is sent */
    /* under the console's lock */
    struct buf pending; /* of each change a struct change and its images */
    uint64_t skipped;
};

struct change {
    int64_t t_ms;
    uint32_t old_len, new_len;
};

/* On the writer's thread. */
static void take_change(struct engine_observer *observer, struct slice old, struct slice new)
{
    struct watch *watch = (struct watch *)(void *)((char *)observer - offsetof(struct watch, observer));
    struct console *console = watch->listener.console;
    struct change change = {clock_now_ms(&clock_system), (uint32_t)old.len, (uint32_t)new.len};
    size_t bytes = sizeof change + old.len + new.len;
    pthread_mutex_lock(&console->lock);
    if (watch->pending.len && watch->pending.len + bytes > LIMIT_CONSOLE_CHANGES_BYTES) {
        watch->skipped++;
    } else {
        buf_put(&watch->pending, &change, sizeof change);
        buf_slice(&watch->pending, old);
        buf_slice(&watch->pending, new);
    }
    if (!console->has_changes) events_wake(console);
    console->has_changes = true;
    pthread_mutex_unlock(&console->lock);
}

static bool refuse_table(struct console *console, struct rest_call *call, struct slice name)
{
    const struct console_options *options = &console->options;
    if (!name.len)
        console_refuse(call, 400, "bad-request", "Which table? /console/changes?table=NAME");
    else if (!options->engine)
        console_refuse(call, 400, "elsewhere",
                       "The data of this server is elsewhere, and only a table's stream tells its changes: quipu tail "
                       "%.*s --on %s",
                       SLICE_ARG(name), options->where);
    else if (call->role != ROLE_ADMIN && rest_role_owns_table(name, slice_of(options->prefix)))
        console_refuse(call, 403, "access-denied",
                       "This key has the role %s, which may not use the tables that begin with '%s'.",
                       rest_role_name(call->role), options->prefix);
    else
        return false;
    return true;
}

void changes_serve(struct console *console, struct rest_call *call)
{
    struct slice name = rest_query(call, "table");
    if (refuse_table(console, call, name)) return;
    struct table *table = engine_table_find(console->options.engine, name);
    if (!table || name.data[0] == '$') {
        if (table) engine_table_release(table);
        console_refuse(call, 404, "not-found", "There is no table '%.*s' here.",
                       (int)(name.len < 255 ? name.len : 255), name.data);
        return;
    }
    struct watch *watch = arena_zero(call->arena, sizeof *watch);
    watch->listener = (struct listener){.call = call, .console = console, .kind = LISTENS_TO_CHANGES};
    watch->observer = (struct engine_observer){.table = name, .changed = take_change};
    watch->hash = arena_copy(call->arena, table->definition.hash);
    watch->range = arena_copy(call->arena, table->definition.range);
    engine_table_release(table);
    engine_observe(console->options.engine, &watch->observer);
    if (events_admit(&watch->listener)) return;
    changes_end(&watch->listener);
    events_refuse(call);
}

/* ---- on the console's thread ---- */

static void put_keys(struct buf *out, const struct watch *watch, struct arena *arena, struct slice image)
{
    struct map item, keys = {0};
    const struct value *value;
    if (!item_decode(arena, image, &item)) return;
    if ((value = map_find(&item, watch->hash))) keys = map_with(arena, &keys, watch->hash, value);
    if (watch->range.len && (value = map_find(&item, watch->range)))
        keys = map_with(arena, &keys, watch->range, value);
    api_put_item_json(out, &keys);
}

static void put_change(struct buf *out, struct watch *watch, int64_t t_ms, struct slice old, struct slice new)
{
    struct arena arena = {0};
    compose(out, "data: {'seq':%d,'t':%d,'kind':%s,'keys':", (int64_t)++watch->sequence, t_ms,
            !old.len ? SLICE("INSERT") : new.len ? SLICE("MODIFY") : SLICE("REMOVE"));
    put_keys(out, watch, &arena, new.len ? new : old);
    if (old.len) buf_text(out, ",\"old\":");
    if (old.len) api_put_encoded_item_json(out, old);
    if (new.len) buf_text(out, ",\"new\":");
    if (new.len) api_put_encoded_item_json(out, new);
    buf_text(out, "}\n\n");
    arena_free(&arena);
}

static void put_changes(struct buf *out, struct watch *watch, struct slice pending)
{
    while (pending.len) {
        struct change change;
        memcpy(&change, pending.data, sizeof change);
        struct slice old = {pending.data + sizeof change, change.old_len}, new = {old.data + old.len, change.new_len};
        put_change(out, watch, change.t_ms, old, new);
        pending = slice_from(pending, sizeof change + old.len + new.len);
    }
}

/* A client that reads nothing is told once why it hears no more. False: it is to wait. */
static bool client_reads(struct watch *watch)
{
    struct rest_call *call = watch->listener.call;
    if (!call->is_full(call)) {
        watch->full_since_us = 0;
        return true;
    }
    if (!watch->full_since_us) watch->full_since_us = monotonic_us();
    if (monotonic_us() - watch->full_since_us < LIMIT_CONSOLE_STUCK_MS * 1000) return false;
    call->piece(call, SLICE("data: {\"end\":\"The changes were not read fast enough.\"}\n\n"));
    watch->listener.is_over = true;
    return false;
}

void changes_send(struct listener *listener)
{
    struct watch *watch = (struct watch *)listener;
    struct console *console = listener->console;
    struct buf out = {0}, pending = {0};
    if (listener->is_over || !client_reads(watch)) return;
    pthread_mutex_lock(&console->lock);
    pending = watch->pending;
    watch->pending = (struct buf){0};
    uint64_t skipped = watch->skipped;
    watch->skipped = 0;
    pthread_mutex_unlock(&console->lock);
    if (listener->is_new) buf_text(&out, ": watching\n\n");
    listener->is_new = false;
    put_changes(&out, watch, buf_view(&pending));
    if (skipped) compose(&out, "data: {'skipped':%d}", (int64_t)skipped);
    if (skipped) buf_text(&out, "\n\n");
    if (out.len) listener->is_over = !listener->call->piece(listener->call, buf_view(&out));
    buf_free(&pending);
    buf_free(&out);
}

void changes_end(struct listener *listener)
{
    struct watch *watch = (struct watch *)listener;
    engine_unobserve(listener->console->options.engine, &watch->observer);
    buf_free(&watch->pending);
}
