/* What happened to an item, told by the difference of its images. */
#include "cli/change.h"

#include "cli/layout.h"
#include "cli/plain.h"

#define VALUE_BYTES_SHOWN 60

bool change_read(const struct node *record, struct change *out)
{
    const struct node *body = node_member(record, "dynamodb"), *who = node_member(record, "userIdentity");
    *out = (struct change){.event = node_text(record, "eventName"),
                           .sequence = node_text(body, "SequenceNumber"),
                           .time = node_text(body, "ApproximateCreationDateTime"),
                           .keys = node_member(body, "Keys"),
                           .old_image = node_member(body, "OldImage"),
                           .new_image = node_member(body, "NewImage")};
    /* Some endpoints spell these with a capital. */
    struct slice type = node_text(who, "type").len ? node_text(who, "type") : node_text(who, "Type");
    out->has_expired = slice_equal(type, SLICE("Service"));
    return out->event.len && out->keys && out->keys->kind == JSON_OBJECT;
}

/* ---- for programs ---- */

static bool put_image(struct buf *out, const char *name, const struct node *image)
{
    if (!image) return true;
    put_name(out, name);
    return dynamo_item_to_plain(out, image);
}

bool change_put_plain(struct buf *out, const struct change *change)
{
    buf_byte(out, '{');
    put_string_member(out, "event", change->event);
    if (change->has_expired) put_raw_member(out, "expired", SLICE("true"));
    if (change->time.len) put_raw_member(out, "time", change->time);
    put_string_member(out, "sequence", change->sequence);
    if (!put_image(out, "keys", change->keys) || !put_image(out, "old", change->old_image) ||
        !put_image(out, "new", change->new_image))
        return false;
    buf_byte(out, '}');
    return true;
}

/* ---- for people ---- */

static const struct node *attribute(const struct node *image, struct slice name)
{
    for (const struct node *one = image ? image->first : NULL; one; one = one->next)
        if (slice_equal(one->name, name)) return one;
    return NULL;
}

static bool put_short(struct buf *out, struct arena *arena, const struct node *value)
{
    struct buf text = {0};
    bool fine = dynamo_value_to_cell(&text, value);
    struct slice shown = text_harmless(arena, arena_copy(arena, buf_view(&text)));
    bool is_long = shown.len > VALUE_BYTES_SHOWN;
    if (is_long) {
        shown.len = VALUE_BYTES_SHOWN;
        while (shown.len && ((unsigned char)shown.data[shown.len] & 0xc0) == 0x80) shown.len--;
    }
    buf_slice(out, shown);
    if (is_long) buf_text(out, "\xe2\x80\xa6");
    buf_free(&text);
    return fine;
}

static bool put_attribute(struct buf *out, struct arena *arena, const struct node *one)
{
    buf_printf(out, " %.*s=", SLICE_ARG(text_harmless(arena, one->name)));
    return put_short(out, arena, one);
}

/* What both images have, but not alike; what only the new one has; what only the old one had. */
static bool put_differences(struct buf *out, struct arena *arena, const struct change *change)
{
    for (const struct node *now = change->new_image->first; now; now = now->next) {
        const struct node *before = attribute(change->old_image, now->name);
        if (before && slice_equal(before->source, now->source)) continue;
        buf_printf(out, "  %.*s: ", SLICE_ARG(text_harmless(arena, now->name)));
        if (before && !put_short(out, arena, before)) return false;
        buf_slice(out, slice_of(before ? " -> " : "-> "));
        if (!put_short(out, arena, now)) return false;
    }
    for (const struct node *before = change->old_image->first; before; before = before->next)
        if (!attribute(change->new_image, before->name))
            buf_printf(out, "  %.*s: gone", SLICE_ARG(text_harmless(arena, before->name)));
    return true;
}

/* All attributes of an image but the keys. */
static bool put_rest(struct buf *out, struct arena *arena, const struct change *change,
                     const struct node *image)
{
    bool is_first = true;
    for (const struct node *one = image->first; one; one = one->next) {
        if (attribute(change->keys, one->name)) continue;
        if (is_first) buf_byte(out, ' ');
        is_first = false;
        if (!put_attribute(out, arena, one)) return false;
    }
    return true;
}

bool change_put_words(struct buf *out, struct arena *arena, const struct change *change)
{
    buf_printf(out, "%-6.*s ", SLICE_ARG(change->event));
    for (const struct node *one = change->keys->first; one; one = one->next)
        if (!put_attribute(out, arena, one)) return false;
    if (change->has_expired) buf_text(out, "  expired");
    if (change->new_image && change->old_image) return put_differences(out, arena, change);
    if (change->new_image) return put_rest(out, arena, change, change->new_image);
    if (change->old_image) return put_rest(out, arena, change, change->old_image);
    return true;
}
