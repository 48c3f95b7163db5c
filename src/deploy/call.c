/* Calls through the door, faults and notes. */
#include <stdarg.h>
#include <string.h>

#include "deploy/internal.h"

#define UPLOAD_BYTES    100000
#define UPLOAD_LEASE_MS (10 * 60 * 1000) /* what is sent may take minutes, and the lease must last */

const char *deploy_text(struct deploy *deploy, struct slice text)
{
    return arena_printf(&deploy->arena, "%.*s", SLICE_ARG(text)).data;
}

bool deploy_fail(struct deploy *deploy, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!deploy->fault) deploy->fault = arena_vprintf(&deploy->arena, format, args).data;
    va_end(args);
    return false;
}

void deploy_note(struct deploy *deploy, const char *format, ...)
{
    va_list args;
    struct deploy_note *note = arena_new(&deploy->arena, struct deploy_note);
    va_start(args, format);
    note->text = arena_vprintf(&deploy->arena, format, args).data;
    va_end(args);
    for (const struct deploy_note *other = deploy->notes; other; other = other->next)
        if (strcmp(other->text, note->text) == 0) return;
    *deploy->notes_end = note;
    deploy->notes_end = &note->next;
}

bool deploy_ask(struct deploy *deploy, const struct deploy_request *request, struct deploy_reply *reply)
{
    *reply = (struct deploy_reply){.message = ""};
    if (deploy->door->call(deploy->door->context, &deploy->arena, request, reply)) return true;
    deploy->was_silent = true;
    return deploy_fail(deploy, "nobody answers");
}

bool deploy_call(struct deploy *deploy, const struct resource *resource, const struct deploy_request *request,
                 struct deploy_reply *reply)
{
    if (!deploy_ask(deploy, request, reply)) return false;
    if (!reply->error) return true;
    const char *said = *reply->message ? reply->message : reply->error;
    if (!resource) return deploy_fail(deploy, "%s", said);
    return deploy_fail(deploy, "%.*s (%.*s): %s", SLICE_ARG(resource->change.id),
                       SLICE_ARG(resource->change.type), said);
}

static struct deploy_request table_request(struct deploy *deploy, const char *operation, struct buf *body)
{
    return (struct deploy_request){
        .service = "dynamodb", .method = "POST", .path = operation, .body = arena_take(&deploy->arena, body)};
}

bool table_ask(struct deploy *deploy, const char *operation, struct buf *body, struct deploy_reply *reply)
{
    struct deploy_request request = table_request(deploy, operation, body);
    return deploy_ask(deploy, &request, reply);
}

bool table_call(struct deploy *deploy, const struct resource *resource, const char *operation,
                struct buf *body, struct deploy_reply *reply)
{
    struct deploy_request request = table_request(deploy, operation, body);
    return deploy_call(deploy, resource, &request, reply);
}

static void put_escaped_part(struct buf *out, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                        (c && strchr("-._~", c));
        if (is_plain)
            buf_byte(out, c);
        else
            buf_printf(out, "%%%02X", c);
    }
}

const char *path_with(struct deploy *deploy, const char *format, struct slice first, struct slice second)
{
    struct buf out = {0};
    struct slice names[] = {first, second};
    for (size_t nth = 0; *format; format++) {
        if (format[0] == '%' && format[1] == 's')
            put_escaped_part(&out, names[nth++ % 2]), format++;
        else
            buf_byte(&out, (unsigned char)*format);
    }
    buf_byte(&out, '\0');
    return arena_take(&deploy->arena, &out).data;
}

bool rest_get(struct deploy *deploy, const struct resource *resource, const char *service, const char *path,
              const char *query, const struct node **json)
{
    struct deploy_request request = {.service = service, .method = "GET", .path = path, .query = query};
    struct deploy_reply reply;
    *json = NULL;
    if (!deploy_ask(deploy, &request, &reply)) return false;
    if (reply.status == 404) return true;
    if (reply.error)
        return deploy_fail(deploy, "%.*s: %s", SLICE_ARG(resource->change.id),
                           *reply.message ? reply.message : reply.error);
    *json = reply.json;
    return true;
}

bool rest_send(struct deploy *deploy, const struct resource *resource, const char *service,
               const char *method, const char *path, struct buf *body, const struct node **json)
{
    struct deploy_reply reply;
    struct deploy_request request = {.service = service, .method = method, .path = path};
    if (body) request.body = arena_take(&deploy->arena, body);
    request.is_upload = request.body.len > UPLOAD_BYTES;
    if (request.is_upload && !lease_keep(deploy, UPLOAD_LEASE_MS)) return false;
    if (!deploy_ask(deploy, &request, &reply)) return false;
    bool is_gone = reply.status == 404 && strcmp(method, "DELETE") == 0;
    if (reply.error && !is_gone)
        return deploy_fail(deploy, "%.*s (%.*s): %s", SLICE_ARG(resource->change.id),
                           SLICE_ARG(resource->change.type), *reply.message ? reply.message : reply.error);
    if (json) *json = reply.json;
    return true;
}
