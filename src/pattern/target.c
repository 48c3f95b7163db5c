/* Patterns as targets of triggers: each record of an event becomes one call of a pattern.
 *
 * The call is a text, "POST /v1/groups/clicks/{NewImage.session}", and its body a JSON text in which strings
 * may have {places} too. A place names a value of the record: {eventID}, {eventName}, or an attribute of
 * {Keys.x}, {NewImage.x}, {OldImage.x}, as plain JSON; without a name behind it, all of the image. A string
 * that is nothing but a place becomes the value itself, with its type. Of an event that has no records the
 * whole is the one record.
 *
 * A batch that is handed over again calls again. Each call carries the record's id as its Idempotency-Key,
 * and may name it in its body, so that the patterns see that they have been called before. */
#include "base/attribute.h"
#include "base/compose.h"
#include "base/limits.h"
#include "pattern/internal.h"

#define STATUS_TOO_MANY 429 /* of requests: the next may be taken */

struct target {
    struct pattern *pattern;
    struct slice method, path, body, cause;
    struct arena *arena;
    struct buf *reply; /* of a call */
    struct slice record;
    struct slice fault; /* a sentence; empty: none */
    int status;         /* of the call that was refused; 0: none was made */
};

struct target_call {
    struct rest_call call; /* first */
    struct slice id;
};

static bool fail(struct target *target, struct slice sentence)
{
    target->fault = sentence;
    return false;
}

/* ---- places ---- */

static struct slice member_of(struct target *target, struct slice object, struct slice name)
{
    return raw_member(target->arena, object, arena_printf(target->arena, "%.*s", SLICE_ARG(name)).data);
}

static bool is_image(struct slice word)
{
    return slice_equal(word, SLICE("Keys")) || slice_equal(word, SLICE("NewImage")) ||
           slice_equal(word, SLICE("OldImage"));
}

/* An attribute by its path, as plain JSON; SLICE_NONE: it is not there. */
static struct slice image_value(struct target *target, struct slice image, struct slice path)
{
    struct buf plain = {0};
    struct slice value = image;
    bool is_item = true;
    while (path.len && value.data) {
        if (!is_item) value = raw_member(target->arena, value, "M");
        value = member_of(target, value, slice_cut(&path, '.'));
        is_item = false;
    }
    if (!value.data) return SLICE_NONE;
    if (is_item)
        plain_put_item(&plain, target->arena, value);
    else
        plain_put_attribute(&plain, target->arena, value);
    return arena_take(target->arena, &plain);
}

static struct slice place_value(struct target *target, struct slice path)
{
    struct slice rest = path, word = slice_cut(&rest, '.'), value = target->record;
    if (is_image(word)) {
        struct slice change = raw_member(target->arena, target->record, "dynamodb");
        return image_value(target, member_of(target, change, word), rest);
    }
    while (path.len && value.data) value = member_of(target, value, slice_cut(&path, '.'));
    return value;
}

/* The next place of a text; false when there is none. *before is what stands in front of it. */
static bool place_take(struct slice *text, struct slice *before, struct slice *path)
{
    const char *open = text->len ? memchr(text->data, '{', text->len) : NULL;
    const char *end = open ? memchr(open, '}', (size_t)(text->data + text->len - open)) : NULL;
    *before = *text;
    if (!end || end == open + 1) return false;
    before->len = (size_t)(open - text->data);
    *path = (struct slice){open + 1, (size_t)(end - open) - 1};
    *text = slice_from(*text, before->len + path->len + 2);
    return true;
}

static bool place_text(struct target *target, struct slice path, struct slice *text)
{
    struct slice value = place_value(target, path);
    *text = raw_text(target->arena, value);
    if (!value.data)
        return fail(target, arena_printf(target->arena, "the record has no %.*s", SLICE_ARG(path)));
    if (!text->data) *text = value; /* true, null, a list: as it is written */
    return true;
}

/* ---- the call of a record ---- */

static bool expand_path(struct target *target, struct buf *out)
{
    struct slice text = target->path, before, path, value;
    while (place_take(&text, &before, &path)) {
        buf_slice(out, before);
        if (!place_text(target, path, &value)) return false;
        if (!value.len) return fail(target, arena_printf(target->arena, "%.*s is empty", SLICE_ARG(path)));
        rest_encode(out, value);
    }
    buf_slice(out, before);
    return true;
}

static bool expand_string(struct target *target, struct slice text, struct buf *out)
{
    struct slice whole = text, before, path, value;
    struct buf joined = {0};
    bool fine = true;
    if (place_take(&whole, &before, &path) && !before.len && !whole.len) {
        value = place_value(target, path);
        if (value.data)
            buf_slice(out, value);
        else
            buf_text(out, "null");
        return true;
    }
    while (fine && place_take(&text, &before, &path)) {
        buf_slice(&joined, before);
        fine = place_text(target, path, &value);
        if (fine) buf_slice(&joined, value);
    }
    buf_slice(&joined, before);
    json_put_string(out, buf_view(&joined));
    buf_free(&joined);
    return fine;
}

static bool expand_value(struct target *target, struct slice value, struct buf *out)
{
    struct slice name, member;
    enum json_kind kind = raw_kind(value);
    bool is_object = kind == JSON_OBJECT;
    if (kind == JSON_STRING) return expand_string(target, raw_text(target->arena, value), out);
    if (!is_object && kind != JSON_ARRAY) {
        buf_slice(out, value);
        return true;
    }
    buf_byte(out, is_object ? '{' : '[');
    raw_each_member (target->arena, value, &name, &member) {
        compose(out, "%,%[%?%s:%]", is_object, name);
        if (!expand_value(target, member, out)) return false;
    }
    buf_byte(out, is_object ? '}' : ']');
    return true;
}

static struct slice header_of(const struct rest_call *call, struct slice name)
{
    const struct target_call *own = (const struct target_call *)call;
    return own->id.len && slice_equal_ignoring_case(name, SLICE("Idempotency-Key")) ? own->id : SLICE_NONE;
}

/* A group whose rule is to discard what comes late has said so: that is no failure of the record. */
static bool is_discarded(struct target *target, int status)
{
    struct slice reply = buf_view(target->reply), code = raw_member(target->arena, reply, "error");
    return status == 409 && slice_equal(raw_text(target->arena, code), SLICE("closed-group"));
}

static bool call_pattern(struct target *target, struct slice path, struct slice body)
{
    struct arena *arena = target->arena;
    struct target_call own = {.call = {.method = target->method,
                                       .path = path,
                                       .body = body,
                                       .header = header_of,
                                       .cause = target->cause,
                                       .arena = arena},
                              .id = raw_text(arena, raw_member(arena, target->record, "eventID"))};
    target->reply->len = 0;
    own.call.reply = target->reply;
    pattern_run(target->pattern, &own.call); /* which answers whatever begins with /v1/ */
    if (own.call.status < 300 || is_discarded(target, own.call.status)) return true;
    target->status = own.call.status;
    return fail(target,
                arena_printf(arena, "%.*s %.*s answered with status %d: %.*s", SLICE_ARG(target->method),
                             SLICE_ARG(path), own.call.status, SLICE_ARG(buf_view(target->reply))));
}

static bool call_for_record(struct target *target, struct slice record)
{
    struct buf path = {0}, body = {0};
    target->record = record;
    bool fine = expand_path(target, &path) &&
                (!target->body.len || expand_value(target, target->body, &body)) &&
                call_pattern(target, buf_view(&path), buf_view(&body));
    buf_free(&path);
    buf_free(&body);
    return fine;
}

/* ---- the event ---- */

/* "POST /v1/...": the two words. */
static bool call_read(struct target *target, struct slice call)
{
    static const struct slice methods[] = {SLICE("POST "), SLICE("PUT "), SLICE("PATCH "), SLICE("DELETE ")};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (!slice_starts(call, methods[i])) continue;
        target->method = (struct slice){call.data, methods[i].len - 1};
        target->path = slice_from(call, methods[i].len);
    }
    if (!slice_starts(target->path, SLICE("/v1/")))
        return fail(
            target,
            SLICE("a pattern is called by POST, PUT, PATCH or DELETE and a path that begins with /v1/"));
    const char *fault = then_call_fault(call);
    if (fault) return fail(target, arena_printf(target->arena, "it %s", fault));
    if (target->body.len && !raw_is_json(target->arena, target->body))
        return fail(target, SLICE("the body is not JSON"));
    return true;
}

bool pattern_apply(struct pattern *pattern, struct slice call, struct slice body, struct slice event,
                   struct slice cause, struct arena *arena, struct buf *reply, bool *is_final)
{
    struct buf answer = {0};
    struct target target = {
        .pattern = pattern, .body = body, .cause = cause, .arena = arena, .reply = &answer};
    struct slice record, records = event.len ? raw_member(arena, event, "Records") : SLICE_NONE;
    int64_t count = 0;
    bool fine = call_read(&target, call);
    if (fine && event.len && raw_kind(records) == JSON_ARRAY) {
        raw_each (arena, records, &record) {
            if (!fine) break;
            fine = call_for_record(&target, record);
            count++;
        }
    } else if (fine && event.len) {
        fine = call_for_record(&target, event);
        count++;
    }
    if (fine)
        buf_printf(reply, "{\"called\":%lld}", (long long)count);
    else
        buf_slice(reply, target.fault);
    if (is_final) *is_final = !fine && target.status < 500 && target.status != STATUS_TOO_MANY;
    buf_free(&answer);
    return fine;
}
