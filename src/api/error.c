/* Errors in the service's form. One table (API_ERRORS) knows each exception's status, namespace and spelling.
 */
#include "api/internal.h"

#include "base/fail.h"

struct error_kind {
    const char *name, *type;
    int status;
    const char *message_member;
};

static const struct error_kind error_kinds[] = {
#define X(name, status, prefix, message_member) {#name, prefix #name, status, message_member},
    API_ERRORS(X)
#undef X
};

static const struct error_kind *find_error(const char *short_name)
{
    size_t i = 0;
    while (strcmp(error_kinds[i].name, short_name) != 0) {
        i++;
        ensure(i < sizeof error_kinds / sizeof *error_kinds);
    }
    return &error_kinds[i];
}

/* Without a message there is no such member: so the service answers what is not JSON at all. */
static void put_error(struct buf *out, const struct error_kind *kind, struct slice message,
                      struct slice members)
{
    buf_text(out, "{\"__type\":\"");
    buf_slice(out, slice_of(kind->type));
    buf_byte(out, '"');
    if (message.len) {
        buf_text(out, ",\"");
        buf_slice(out, slice_of(kind->message_member));
        buf_text(out, "\":");
        json_put_string(out, message);
    }
    if (members.len) {
        buf_byte(out, ',');
        buf_slice(out, members);
    }
    buf_byte(out, '}');
}

int api_put_error_with(struct buf *out, const char *short_name, struct slice message, struct slice members)
{
    const struct error_kind *kind = find_error(short_name);
    put_error(out, kind, message, members);
    return kind->status;
}

int api_put_error(struct buf *out, const char *short_name, struct slice message)
{
    return api_put_error_with(out, short_name, message, SLICE_NONE);
}

const char *api_error_find(struct slice short_name)
{
    for (size_t i = 0; i < sizeof error_kinds / sizeof *error_kinds; i++)
        if (slice_equal(slice_of(error_kinds[i].name), short_name)) return error_kinds[i].name;
    return NULL;
}

bool refuse_with(struct api_call *call, const char *short_name, struct slice message, struct slice members)
{
    const struct error_kind *kind = find_error(short_name);
    ensure(!call->error);
    call->reply->len = call->reply_start;
    put_error(call->reply, kind, message, members);
    call->status = kind->status;
    call->error = kind->name;
    return false;
}

bool refuse_text(struct api_call *call, const char *short_name, struct slice message)
{
    return refuse_with(call, short_name, message, SLICE_NONE);
}

bool refuse(struct api_call *call, const char *short_name, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct slice message = arena_vprintf(call->arena, format, args);
    va_end(args);
    return refuse_text(call, short_name, message);
}

bool invalid_text(struct api_call *call, struct slice message)
{
    return refuse_text(call, "ValidationException", message);
}

bool invalid(struct api_call *call, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct slice message = arena_vprintf(call->arena, format, args);
    va_end(args);
    return invalid_text(call, message);
}
