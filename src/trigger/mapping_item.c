/* A mapping as an item of the table PREFIXmappings, and back.
 *
 * The table: hash key `id` (S, the UUID). Attributes, all of them words of the API: those of MAPPING_ATTRIBUTES and
 * MAPPING_NUMBERS (mapping.h); startingPosition (S); filters (L of S: patterns). A text that is empty is not there.
 * `tags` is a JSON object; `created` and `modified` are milliseconds since 1970; `revision` grows with each change,
 * and is what writes are conditional on; `followed`: the stream is not the one that the mapping was made for, but
 * a later one of the same table, and all of it is read; `moveTo`, `moveShard`, `moveSince`: where its position was last
 * moved to, by the change whose revision is `moved`; `moveToken` tells it from others; `deleting`: the mapping is to
 * be removed, by whichever server gets to it.
 *
 * Whoever writes into the table by hand may write anything: what is not of this form is not a mapping. */
#include "base/attribute.h"
#include "base/compose.h"
#include "base/limits.h"
#include "trigger/mapping.h"

void put_mapping_item(struct buf *out, const struct settings *settings)
{
    compose(out, "{'startingPosition':%S,'filters':{'L':[", start_name(settings->start));
    for (uint32_t i = 0; i < settings->filter_count; i++) compose(out, "%,%S", settings->filters[i]);
    buf_text(out, "]}");
#define TEXT(name, attribute)                                                                                \
    if (settings->name.len) compose(out, ",'" attribute "':%S", settings->name);
#define FLAG(name, attribute)  compose(out, ",'" attribute "':{'BOOL':%b}", settings->name);
#define WHOLE(name, attribute) compose(out, ",'" attribute "':%N", settings->name);
    MAPPING_ATTRIBUTES(TEXT, FLAG, WHOLE)
#undef TEXT
#undef FLAG
#undef WHOLE
    for (int i = 0; i < SETTING_NUMBERS; i++)
        compose(out, ",%s:%N", slice_of(number_rules[i].attribute), settings->numbers[i]);
    buf_byte(out, '}');
}

/* Where it is there it must be a number within its bounds. */
static bool take_number(struct arena *arena, struct slice item, const char *name, int64_t min, int64_t max,
                        int64_t *out)
{
    struct slice attribute = item_attribute(arena, item, name);
    if (!attribute.data) return true;
    *out = attribute_int(arena, attribute, INT64_MIN);
    return *out >= min && *out <= max;
}

static bool take_filters(struct arena *arena, struct slice item, struct settings *out)
{
    struct slice attribute = item_attribute(arena, item, "filters"), type, content, filter;
    if (!attribute.data) return true;
    if (!attribute_open(arena, attribute, &type, &content) || !slice_equal(type, SLICE("L"))) return false;
    out->filters = arena_array(arena, struct slice, LIMIT_FILTERS);
    raw_each (arena, content, &filter) {
        struct slice text = attribute_text(arena, filter);
        if (out->filter_count == LIMIT_FILTERS || !text.data) return false;
        out->filters[out->filter_count++] = text;
    }
    return true;
}

bool mapping_item_parse(struct slice item, struct arena *arena, struct settings *out)
{
    struct slice flag;
    bool good = true;
    settings_defaults(out);
    if (item_says(arena, item, "startingPosition", "LATEST")) out->start = START_LATEST;
#define TEXT(name, attribute) out->name = item_text(arena, item, attribute);
#define FLAG(name, attribute)                                                                                \
    flag = raw_member(arena, item_attribute(arena, item, attribute), "BOOL");                                \
    if (flag.data) out->name = slice_equal(flag, SLICE("true"));
#define WHOLE(name, attribute) good = good && take_number(arena, item, attribute, 0, INT64_MAX, &out->name);
    MAPPING_ATTRIBUTES(TEXT, FLAG, WHOLE)
#undef TEXT
#undef FLAG
#undef WHOLE
    for (int i = 0; i < SETTING_NUMBERS; i++)
        good = good && take_number(arena, item, number_rules[i].attribute, number_rules[i].min,
                                   number_rules[i].max, &out->numbers[i]);
    return good && take_filters(arena, item, out) && out->id.len == 36 && out->stream_arn.len &&
           out->function.len && out->function_arn.len && out->revision > 0;
}
