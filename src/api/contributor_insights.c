/* Contributor insights: Describe, List and Update. Nothing is measured here; what was asked for is kept and
 * shown, with the names that the service would give its rules.
 *
 * The setting "insights" maps an index's number (0: the table itself) to {enabled, mode, changed_ms}. Numbers
 * are never given twice, so an index that is dropped takes its insights with it. */
#include "api/settings.h"

#define LIST_MAX    100
#define NUMBER_TEXT 12

static const char *const actions[] = {"ENABLE", "DISABLE", NULL};
static const char *const modes[] = {"THROTTLED_KEYS", "ACCESSED_AND_THROTTLED_KEYS", NULL};
static const struct shape shape_action = ENUM_SHAPE(actions), shape_mode = ENUM_SHAPE(modes);

/* ---- one table or index ---- */

struct insights {
    bool enabled;
    struct slice mode; /* empty: never asked for */
    int64_t changed_ms;
};

static struct slice key_of_index(char text[NUMBER_TEXT], const struct index_definition *index)
{
    struct buf out = {.data = text, .cap = NUMBER_TEXT};
    buf_decimal(&out, index ? index->number : 0);
    return buf_view(&out);
}

static struct insights insights_of(const struct table_definition *definition,
                                   const struct index_definition *index)
{
    char text[NUMBER_TEXT];
    struct map all = setting_map(definition, "insights"), own = map_map(&all, key_of_index(text, index));
    return (struct insights){map_truth(&own, "enabled"), map_text(&own, "mode"),
                             map_integer(&own, "changed_ms")};
}

static void keep_one(struct arena *arena, struct map *all, const struct index_definition *index,
                     const struct insights *insights)
{
    char text[NUMBER_TEXT];
    struct map own = {0};
    if (!insights->mode.len) return;
    map_put(arena, &own, SLICE("enabled"), truth_value(insights->enabled));
    map_put(arena, &own, SLICE("mode"), text_value(insights->mode));
    map_put(arena, &own, SLICE("changed_ms"), integer_value(arena, insights->changed_ms));
    map_put(arena, all, arena_copy(arena, key_of_index(text, index)), map_value(own));
}

/* Together with those of the table and its other indexes; what belonged to dropped ones is left behind. */
static void keep_insights(struct arena *arena, struct table_definition *definition,
                          const struct index_definition *index, const struct insights *insights)
{
    struct map all = {0};
    struct insights others = insights_of(definition, NULL);
    keep_one(arena, &all, NULL, &others);
    for (uint32_t i = 0; i < definition->index_count; i++) {
        others = insights_of(definition, &definition->indexes[i]);
        keep_one(arena, &all, &definition->indexes[i], &others);
    }
    keep_one(arena, &all, index, insights);
    setting_put(arena, definition, "insights", map_value(all));
}

/* The global index of this name; false when one is named and there is none. */
static bool find_index(const struct table_definition *definition, const struct node *name,
                       const struct index_definition **out)
{
    *out = name->present ? definition_index(definition, name->text) : NULL;
    return !name->present || (*out && (*out)->global);
}

#define NO_INDEX "Requested resource not found: Index: %.*s not found for table: %.*s"

static void put_names(struct buf *out, const struct table_definition *definition,
                      const struct index_definition *index)
{
    buf_text(out, "{\"TableName\":");
    json_put_string(out, definition->name);
    if (index) put_text(out, "IndexName", index->name);
}

/* ---- DescribeContributorInsights ---- */

enum { DESCRIBE_TABLE, DESCRIBE_INDEX };

static const struct shape_member describe_members[] = {
    [DESCRIBE_TABLE] = REQUIRED("TableName", shape_table_name_strict),
    [DESCRIBE_INDEX] = MEMBER("IndexName", shape_index_name),
};
static const struct shape describe_shape = STRUCT_SHAPE("DescribeContributorInsightsInput", describe_members);

static void put_rule(struct buf *out, const char *kind, const struct table_definition *definition,
                     const struct index_definition *index, int64_t changed_ms)
{
    buf_printf(out, "\"DynamoDBContributorInsights-%s-%.*s-%.*s%s%lld\"", kind, SLICE_ARG(definition->name),
               index ? (int)index->name.len : 0, index ? index->name.data : "", index ? "-" : "",
               (long long)changed_ms);
}

/* One for the partition key and one for the sort key, for throttled keys and, in the wider mode, for all. */
static void put_rules(struct buf *out, const struct table_definition *definition,
                      const struct index_definition *index, const struct insights *insights)
{
    bool is_wide = slice_equal(insights->mode, SLICE("ACCESSED_AND_THROTTLED_KEYS"));
    bool has_range = index ? index->range_count > 0 : definition->range.len > 0;
    const char *const kinds[] = {is_wide ? "PKC" : NULL, "PKT", is_wide && has_range ? "SKC" : NULL,
                                 has_range ? "SKT" : NULL};
    const char *before = ",\"ContributorInsightsRuleList\":[";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!kinds[i]) continue;
        buf_slice(out, slice_of(before));
        put_rule(out, kinds[i], definition, index, insights->changed_ms);
        before = ",";
    }
    buf_byte(out, ']');
}

static void describe_begin(struct api_call *call, const struct node *input)
{
    const struct node *index_name = node_member(input, DESCRIBE_INDEX);
    const struct index_definition *index;
    struct slice name;
    if (!table_name_resolve(call, node_member(input, DESCRIBE_TABLE), &name)) return;
    const struct table *table = find_table_to_manage(call, name);
    if (!table) return;
    const struct table_definition *definition = &table->definition;
    if (!find_index(definition, index_name, &index)) {
        refuse(call, "ResourceNotFoundException", NO_INDEX, SLICE_ARG(index_name->text), SLICE_ARG(name));
        return;
    }
    struct insights insights = insights_of(definition, index);
    put_names(call->reply, definition, index);
    if (insights.enabled) put_rules(call->reply, definition, index, &insights);
    put_text(call->reply, "ContributorInsightsStatus", slice_of(insights.enabled ? "ENABLED" : "DISABLED"));
    if (insights.mode.len) {
        put_time(call->reply, "LastUpdateDateTime", insights.changed_ms);
        put_text(call->reply, "ContributorInsightsMode", insights.mode);
    }
    buf_byte(call->reply, '}');
}

const struct operation operation_DescribeContributorInsights = {
    .name = TEXT("DescribeContributorInsights"),
    .input = &describe_shape,
    .begin = describe_begin,
};

/* ---- UpdateContributorInsights ---- */

enum { UPDATE_TABLE, UPDATE_INDEX, UPDATE_ACTION, UPDATE_MODE };

static const struct shape_member update_members[] = {
    [UPDATE_TABLE] = REQUIRED("TableName", shape_table_name_strict),
    [UPDATE_INDEX] = MEMBER("IndexName", shape_index_name),
    [UPDATE_ACTION] = REQUIRED("ContributorInsightsAction", shape_action),
    [UPDATE_MODE] = MEMBER("ContributorInsightsMode", shape_mode),
};
static const struct shape update_shape = STRUCT_SHAPE("UpdateContributorInsightsInput", update_members);

struct insights_change {
    struct table_change change;
    const struct index_definition *index;
    struct insights after;
    bool changed;
};

/* Switching off keeps the mode in which they were on. */
static bool apply(struct table_change *change)
{
    struct insights_change *own = (struct insights_change *)change;
    const struct node *index_name = node_member(&change->input, UPDATE_INDEX),
                      *mode = node_member(&change->input, UPDATE_MODE);
    if (!find_index(change->definition, index_name, &own->index))
        return reject_as(&change->verdict, "ResourceNotFoundException", NO_INDEX, SLICE_ARG(index_name->text),
                         SLICE_ARG(change->table_name));
    bool enable = node_says(node_member(&change->input, UPDATE_ACTION), "ENABLE");
    if (enable && own->index && own->index->status == INDEX_CREATING)
        return reject(
            &change->verdict,
            "Table or Index is not in a valid state to update Key Access Insights: IndexStatus must "
            "be ACTIVE to enable ContributorInsights.");
    struct insights before = insights_of(change->definition, own->index);
    own->after = before;
    own->after.enabled = enable;
    if (enable) own->after.mode = mode->present ? mode->text : SLICE("ACCESSED_AND_THROTTLED_KEYS");
    own->changed = enable != before.enabled || !slice_equal(own->after.mode, before.mode);
    if (!own->changed) return false;
    own->after.changed_ms = change->now_ms;
    keep_insights(change->verdict.arena, change->definition, own->index, &own->after);
    return true;
}

static void update_begin(struct api_call *call, const struct node *input)
{
    struct insights_change *own = arena_new(call->arena, struct insights_change);
    own->change.apply = apply;
    table_change_submit_named(call, input, node_member(input, UPDATE_TABLE), &own->change);
}

static void update_finish(struct api_call *call)
{
    struct table_change *change = table_change_finish(call);
    if (!change) return;
    const struct insights_change *own = (const struct insights_change *)change;
    const char *status = own->after.enabled ? "ENABLED" : "DISABLED";
    if (own->changed) status = own->after.enabled ? "ENABLING" : "DISABLING";
    put_names(call->reply, change->definition, own->index);
    put_text(call->reply, "ContributorInsightsStatus", slice_of(status));
    if (own->after.mode.len) put_text(call->reply, "ContributorInsightsMode", own->after.mode);
    buf_byte(call->reply, '}');
}

const struct operation operation_UpdateContributorInsights = {
    .name = TEXT("UpdateContributorInsights"),
    .input = &update_shape,
    .begin = update_begin,
    .finish = update_finish,
};

/* ---- ListContributorInsights ---- */

enum { LIST_TABLE, LIST_TOKEN, LIST_LIMIT };

static const struct shape shape_list_limit = {.kind = SHAPE_INT, .has_max = true, .max = LIST_MAX};
static const struct shape_member list_members[] = {
    [LIST_TABLE] = MEMBER("TableName", shape_index_name), /* the rules for names are the same */
    [LIST_TOKEN] = MEMBER("NextToken", shape_string),
    [LIST_LIMIT] = MEMBER("MaxResults", shape_list_limit),
};
static const struct shape list_shape = STRUCT_SHAPE("ListContributorInsightsInput", list_members);

/* A page while it is written. The token is "table/index" of the last one shown; no name has a slash. */
struct insights_list {
    struct api_call *call;
    struct slice after_table, after_index; /* empty: from the beginning */
    int64_t limit, count;
    bool more;
    struct buf last;
};

static void list_one(struct insights_list *list, const struct table_definition *definition,
                     const struct index_definition *index)
{
    struct insights insights = insights_of(definition, index);
    struct buf *out = list->call->reply;
    if (!insights.enabled || list->more) return;
    if (list->count == list->limit) {
        list->more = true;
        return;
    }
    if (list->count++) buf_byte(out, ',');
    put_names(out, definition, index);
    put_text(out, "ContributorInsightsStatus", SLICE("ENABLED"));
    put_text(out, "ContributorInsightsMode", insights.mode);
    buf_byte(out, '}');
    list->last.len = 0;
    buf_printf(&list->last, "%.*s/%.*s", SLICE_ARG(definition->name), index ? (int)index->name.len : 0,
               index ? index->name.data : "");
}

/* The table, then its indexes; in the table where the page before ended, only what comes behind. */
static void list_table(struct insights_list *list, const struct table_definition *definition)
{
    bool resumes = slice_equal(definition->name, list->after_table), is_behind = !resumes;
    if (is_behind) list_one(list, definition, NULL);
    if (resumes && !list->after_index.len) is_behind = true;
    for (uint32_t i = 0; i < definition->index_count; i++) {
        if (is_behind && definition->indexes[i].global) list_one(list, definition, &definition->indexes[i]);
        if (slice_equal(definition->indexes[i].name, list->after_index)) is_behind = true;
    }
}

static void list_named(struct insights_list *list, struct slice name)
{
    struct table *table = engine_table_find(list->call->api->engine, name);
    if (!table) return;
    list_table(list, &table->definition);
    engine_table_release(table);
}

static void list_all(struct insights_list *list)
{
    struct slice names[LIST_MAX], after = SLICE_NONE;
    struct engine *engine = list->call->api->engine;
    if (list->after_table.len) list_named(list, list->after_table);
    after = list->after_table;
    for (bool more = true; more && !list->more;) {
        uint32_t count = engine_table_names(engine, list->call->arena, after, LIST_MAX, names, &more);
        for (uint32_t i = 0; i < count; i++) list_named(list, names[i]);
        if (count) after = names[count - 1];
    }
}

static void take_token(struct insights_list *list, const struct node *token)
{
    struct slice text;
    if (!token->present || base64_decode(list->call->arena, token->text, &text) != BASE64_OK || !text.len)
        return;
    const char *slash = memchr(text.data, '/', text.len);
    if (!slash) return;
    list->after_table = (struct slice){text.data, (size_t)(slash - text.data)};
    list->after_index = slice_from(text, list->after_table.len + 1);
}

static void list_begin(struct api_call *call, const struct node *input)
{
    const struct node *limit = node_member(input, LIST_LIMIT), *table = node_member(input, LIST_TABLE);
    struct insights_list list = {.call = call,
                                 .limit = limit->present && limit->integer > 0 ? limit->integer : LIST_MAX};
    if (table->present && !find_table_to_manage(call, table->text)) return;
    take_token(&list, node_member(input, LIST_TOKEN));
    buf_text(call->reply, "{\"ContributorInsightsSummaries\":[");
    if (table->present)
        list_named(&list, table->text);
    else
        list_all(&list);
    buf_byte(call->reply, ']');
    if (list.more) {
        buf_text(call->reply, ",\"NextToken\":");
        json_put_base64(call->reply, buf_view(&list.last));
    }
    buf_byte(call->reply, '}');
    buf_free(&list.last);
}

const struct operation operation_ListContributorInsights = {
    .name = TEXT("ListContributorInsights"),
    .input = &list_shape,
    .begin = list_begin,
};
