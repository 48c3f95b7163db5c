/* The record of a stack, and the lease of who changes it. Both are patterns of the server, by their public routes. */
#include <string.h>

#include "deploy/internal.h"

#define LEASE_MS      60000
#define LEASE_WAIT_MS 20000 /* of one call; the whole wait is made of many */

static const char *record_path(struct deploy *deploy)
{
    return path_with(deploy, "/v1/documents/" DEPLOY_COLLECTION "/%s", slice_of(deploy->options->stack),
                     SLICE(""));
}

static const char *lease_path(struct deploy *deploy)
{
    return path_with(deploy, "/v1/leases/" DEPLOY_COLLECTION "%2F%s", slice_of(deploy->options->stack),
                     SLICE(""));
}

bool record_read(struct deploy *deploy)
{
    struct deploy_request request = {.service = "quipu", .method = "GET", .path = record_path(deploy)};
    struct deploy_reply reply;
    deploy->record = NULL;
    deploy->etag = SLICE("");
    if (!deploy_ask(deploy, &request, &reply)) return false;
    if (reply.status == 404) return true;
    if (reply.error)
        return deploy_fail(deploy, "the record of %s cannot be read: %s", deploy->options->stack,
                           reply.message);
    deploy->record = reply.json;
    deploy->etag = reply.etag;
    return true;
}

/* What is recorded: what is there, what will be, and what is still to go. */
static bool is_kept(const struct deploy *deploy, const struct resource *resource, bool is_end)
{
    switch (resource->change.action) {
    case DEPLOY_NOTHING:
    case DEPLOY_UNKNOWN: return resource->is_recorded && !is_end;
    case DEPLOY_DELETE: return !is_end;
    case DEPLOY_LEAVE: return !(deploy->options->prune && resource->is_retained);
    default: return true;
    }
}

static void put_entry(struct buf *out, const struct resource *resource, bool is_end)
{
    put_comma(out);
    buf_byte(out, '{');
    put_string_member(out, "id", resource->change.id);
    put_string_member(out, "type", resource->change.type);
    put_string_member(out, "name", slice_of(resource->change.name));
    if (resource->old_name && !is_end) put_string_member(out, "old", slice_of(resource->old_name));
    const char *data = is_end && resource->end_data ? resource->end_data : resource->data;
    if (data) put_string_member(out, "data", slice_of(data));
    if (resource->is_retained) put_raw_member(out, "retain", SLICE("true"));
    buf_byte(out, '}');
}

/* In the order of making, which the list of what went away has the other way round. */
static void put_orphans(const struct deploy *deploy, struct buf *out, const struct resource *resource,
                        bool is_end)
{
    if (!resource) return;
    put_orphans(deploy, out, resource->next, is_end);
    if (!resource->source && is_kept(deploy, resource, is_end)) put_entry(out, resource, is_end);
}

static void record_put(struct deploy *deploy, struct buf *out, const char *state)
{
    bool is_end = strcmp(state, "DEPLOYED") == 0;
    buf_byte(out, '{');
    put_string_member(out, "stack", slice_of(deploy->options->stack));
    put_string_member(out, "file", slice_of(deploy->options->file ? deploy->options->file : ""));
    put_string_member(out, "state", slice_of(state));
    put_name(out, "resources");
    buf_byte(out, '[');
    put_orphans(deploy, out, deploy->resources, is_end);
    for (const struct resource *one = deploy->resources; one; one = one->next)
        if (one->source && is_kept(deploy, one, is_end)) put_entry(out, one, is_end);
    buf_byte(out, ']');
    put_raw_member(out, "outputs", deploy->outputs.len ? deploy->outputs : SLICE("{}"));
    buf_byte(out, '}');
}

bool record_is_up_to_date(struct deploy *deploy)
{
    const char *fault;
    struct buf text = {0};
    record_put(deploy, &text, "DEPLOYED");
    const struct node *wanted = node_parse(&deploy->arena, arena_take(&deploy->arena, &text), &fault);
    return deploy->record && form_equal(wanted, deploy->record, false);
}

static bool send_record(struct deploy *deploy, const char *method, struct buf *body)
{
    struct deploy_reply reply;
    struct deploy_request request = {
        .service = "quipu",
        .method = method,
        .path = record_path(deploy),
        .header = deploy->etag.len
                      ? arena_printf(&deploy->arena, "If-Match: %.*s", SLICE_ARG(deploy->etag)).data
                      : "If-None-Match: *",
    };
    if (body) request.body = arena_take(&deploy->arena, body);
    if (!deploy_ask(deploy, &request, &reply)) return false;
    if (reply.status == 412 || reply.status == 409)
        return deploy_fail(deploy, "another deploy has changed the stack %s meanwhile: try again",
                           deploy->options->stack);
    if (reply.error)
        return deploy_fail(deploy, "the record of %s cannot be written: %s", deploy->options->stack,
                           reply.message);
    deploy->etag = reply.etag;
    return true;
}

bool record_write(struct deploy *deploy, const char *state)
{
    struct buf body = {0};
    record_put(deploy, &body, state);
    return send_record(deploy, "PUT", &body);
}

bool record_remove(struct deploy *deploy)
{
    return !deploy->etag.len || send_record(deploy, "DELETE", NULL);
}

/* ---- the lease ---- */

static bool lease_send(struct deploy *deploy, const char *method, int64_t for_ms, int64_t wait_ms,
                       struct deploy_reply *reply)
{
    struct buf body = {0};
    buf_byte(&body, '{');
    put_string_member(&body, "owner", slice_of(deploy->options->owner));
    put_int_member(&body, "for", for_ms);
    if (wait_ms) put_int_member(&body, "wait", wait_ms);
    if (deploy->fence) put_int_member(&body, "fence", deploy->fence);
    buf_byte(&body, '}');
    struct deploy_request request = {.service = "quipu",
                                     .method = method,
                                     .path = lease_path(deploy),
                                     .body = arena_take(&deploy->arena, &body)};
    int64_t asked_ms = deploy->door->now_ms(deploy->door->context);
    if (!deploy_ask(deploy, &request, reply)) return false;
    if (!reply->error) deploy->lease_until_ms = asked_ms + for_ms;
    return true;
}

static bool lease_send_release(struct deploy *deploy, struct slice owner, int64_t fence)
{
    struct deploy_reply reply;
    struct deploy_request request = {
        .service = "quipu",
        .method = "DELETE",
        .path = lease_path(deploy),
        .query = arena_printf(&deploy->arena, "fence=%lld&%s", (long long)fence,
                              path_with(deploy, "owner=%s", owner, SLICE("")))
                     .data,
    };
    return deploy_ask(deploy, &request, &reply);
}

/* Waits for it as long as the caller wants. A holder that has died on this machine is not waited for. */
bool lease_take(struct deploy *deploy)
{
    const struct deploy_door *door = deploy->door;
    struct deploy_reply reply;
    int64_t end_ms = door->now_ms(door->context) + deploy->options->wait_ms;
    bool has_ended_one = false;
    deploy->fence = 0;
    for (;;) {
        int64_t left_ms = end_ms - door->now_ms(door->context);
        if (left_ms > LEASE_WAIT_MS) left_ms = LEASE_WAIT_MS;
        if (!lease_send(deploy, "POST", LEASE_MS, left_ms > 0 ? left_ms : 0, &reply)) return false;
        if (!reply.error) break;
        struct slice owner = node_text(reply.json, "owner");
        bool is_gone = owner.len && !has_ended_one && door->is_gone(door->context, owner);
        if (is_gone) {
            has_ended_one = true;
            if (!lease_send_release(deploy, owner, (int64_t)node_count(reply.json, "fence"))) return false;
            continue;
        }
        if (reply.status != 409 && reply.status != 423 && reply.status != 408 && reply.status != 503)
            return deploy_fail(deploy, "the lease of the stack cannot be taken: %s", reply.message);
        if (door->now_ms(door->context) >= end_ms) {
            deploy->is_busy = true;
            return deploy_fail(deploy,
                               "another deploy of %s is under way, by %.*s (--wait 5m waits for its end)",
                               deploy->options->stack, SLICE_ARG(owner.len ? owner : SLICE("somebody")));
        }
    }
    deploy->fence = (int64_t)node_count(reply.json, "fence");
    return true;
}

bool lease_keep(struct deploy *deploy, int64_t for_ms)
{
    struct deploy_reply reply;
    int64_t left_ms = deploy->lease_until_ms - deploy->door->now_ms(deploy->door->context);
    if (for_ms < LEASE_MS) for_ms = LEASE_MS;
    if (!deploy->fence || left_ms > for_ms / 2) return true;
    if (!lease_send(deploy, "PUT", for_ms, 0, &reply)) return false;
    if (!reply.error) return true;
    return deploy_fail(deploy,
                       "the lease of the stack %s was lost: another deploy may be under way; try again",
                       deploy->options->stack);
}

void lease_release(struct deploy *deploy)
{
    if (deploy->fence && !deploy->was_silent)
        lease_send_release(deploy, slice_of(deploy->options->owner), deploy->fence);
    deploy->fence = 0;
}
