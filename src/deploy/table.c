/* AWS::DynamoDB::Table, and AWS::DynamoDB::GlobalTable with its one replica here.
 *
 * In the form, keys have their types and indexes are an object by name, so that each difference is one that a person
 * sees. DynamoDB takes one change of indexes or of the stream at a time; each is waited for. */
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "deploy/internal.h"

#define POLLS_MAX 20000 /* with pauses of up to some seconds: an index on a large table takes its time */

/* ---- forms ---- */

static struct slice attribute_type(const struct node *definitions, struct slice name)
{
    for (const struct node *one = definitions ? definitions->first : NULL; one; one = one->next)
        if (slice_equal(node_text(one, "AttributeName"), name)) return node_text(one, "AttributeType");
    return SLICE("");
}

static void put_keys(struct buf *out, const struct node *keys, const struct node *definitions)
{
    put_name(out, "KeySchema");
    buf_byte(out, '[');
    for (const struct node *key = keys ? keys->first : NULL; key; key = key->next) {
        struct slice name = node_text(key, "AttributeName");
        put_comma(out);
        buf_byte(out, '{');
        put_string_member(out, "AttributeName", name);
        put_string_member(out, "KeyType", node_text(key, "KeyType"));
        put_string_member(out, "AttributeType", attribute_type(definitions, name));
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}

static int compare_texts(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* The attributes of a projection have no order. */
static void put_projection(struct deploy *deploy, struct buf *out, const struct node *projection)
{
    const struct node *list = node_member(projection, "NonKeyAttributes");
    size_t count = node_children(list), i = 0;
    struct slice *names = arena_array(&deploy->arena, struct slice, count);
    for (const struct node *one = list ? list->first : NULL; one; one = one->next) names[i++] = one->text;
    qsort(names, count, sizeof *names, compare_texts);
    put_name(out, "Projection");
    buf_byte(out, '{');
    put_string_member(out, "ProjectionType", node_text(projection, "ProjectionType"));
    if (count) put_name(out, "NonKeyAttributes"), buf_byte(out, '[');
    for (i = 0; i < count; i++) put_comma(out), json_put_string(out, names[i]);
    if (count) buf_byte(out, ']');
    buf_byte(out, '}');
}

static void put_throughput(struct buf *out, const struct node *throughput)
{
    static const struct form_member members[] = {{"ReadCapacityUnits", 'n', NULL},
                                                 {"WriteCapacityUnits", 'n', NULL}};
    put_name(out, "ProvisionedThroughput");
    buf_byte(out, '{');
    form_put(out, throughput, members, 2);
    buf_byte(out, '}');
}

/* `trusted` are indexes as they were asked for, where an engine may have made them with all attributes. */
static void put_indexes(struct deploy *deploy, struct buf *out, const char *name, const struct node *indexes,
                        const struct node *definitions, bool has_throughput, const struct node *trusted)
{
    put_name(out, name);
    buf_byte(out, '{');
    for (const struct node *index = indexes ? indexes->first : NULL; index; index = index->next) {
        if (node_is(index, "IndexStatus", "DELETING")) continue;
        put_name(out, deploy_text(deploy, node_text(index, "IndexName")));
        buf_byte(out, '{');
        put_keys(out, node_member(index, "KeySchema"), definitions);
        const struct node *projection = node_member(index, "Projection");
        const struct node *asked = node_member(trusted, deploy_text(deploy, node_text(index, "IndexName")));
        bool is_widened = asked && node_is(projection, "ProjectionType", "ALL");
        put_projection(deploy, out, is_widened ? node_member(asked, "Projection") : projection);
        if (has_throughput) put_throughput(out, node_member(index, "ProvisionedThroughput"));
        buf_byte(out, '}');
    }
    buf_byte(out, '}');
}

static bool is_true(const struct node *object, const char *name)
{
    return node_is_true(object, name) || node_is(object, name, "true");
}

/* Members that properties and descriptions have in common. */
static void put_common(struct deploy *deploy, struct buf *out, const struct node *table, bool is_on_demand,
                       const struct node *trusted)
{
    const struct node *definitions = node_member(table, "AttributeDefinitions");
    put_keys(out, node_member(table, "KeySchema"), definitions);
    put_string_member(out, "BillingMode", is_on_demand ? SLICE("PAY_PER_REQUEST") : SLICE("PROVISIONED"));
    if (!is_on_demand) put_throughput(out, node_member(table, "ProvisionedThroughput"));
    put_indexes(deploy, out, "GlobalSecondaryIndexes", node_member(table, "GlobalSecondaryIndexes"),
                definitions, !is_on_demand, trusted);
    put_indexes(deploy, out, "LocalSecondaryIndexes", node_member(table, "LocalSecondaryIndexes"),
                definitions, false, NULL);
    put_string_member(out, "StreamViewType",
                      node_text(node_member(table, "StreamSpecification"), "StreamViewType"));
    put_raw_member(out, "DeletionProtectionEnabled",
                   is_true(table, "DeletionProtectionEnabled") ? SLICE("true") : SLICE("false"));
}

static void put_settings(struct buf *out, struct slice class, bool has_recovery, bool has_key)
{
    put_string_member(out, "TableClass", class.len ? class : SLICE("STANDARD"));
    put_raw_member(out, "PointInTimeRecovery", has_recovery ? SLICE("true") : SLICE("false"));
    put_raw_member(out, "SSEEnabled", has_key ? SLICE("true") : SLICE("false"));
}

static bool want_table(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    const struct node *table = resource->properties;
    const struct node *ttl = node_member(table, "TimeToLiveSpecification");
    bool is_on_demand = node_is(table, "BillingMode", "PAY_PER_REQUEST");
    if (!node_children(node_member(table, "KeySchema")))
        return deploy_fail(deploy, "%.*s: a table needs a KeySchema", SLICE_ARG(resource->change.id));
    put_common(deploy, out, table, is_on_demand, NULL);
    put_settings(
        out, node_text(table, "TableClass"),
        is_true(node_member(table, "PointInTimeRecoverySpecification"), "PointInTimeRecoveryEnabled"),
        is_true(node_member(table, "SSESpecification"), "SSEEnabled"));
    put_string_member(out, "TimeToLive",
                      is_true(ttl, "Enabled") ? node_text(ttl, "AttributeName") : SLICE(""));
    form_put_tags(out, "Tags", node_member(table, "Tags"));
    return true;
}

/* Settings have operations of their own, which some engines lack: there they are as if never set. */
static const struct node *ask_setting(struct deploy *deploy, const char *operation, const char *member,
                                      struct slice value)
{
    struct buf body = {0};
    struct deploy_reply reply;
    buf_byte(&body, '{');
    put_string_member(&body, member, value);
    buf_byte(&body, '}');
    return table_ask(deploy, operation, &body, &reply) && !reply.error ? reply.json : NULL;
}

/* True where it could be asked; resource->described is NULL where there is no such table. */
static bool describe(struct deploy *deploy, struct resource *resource)
{
    struct buf body = {0};
    struct deploy_reply reply;
    resource->described = NULL;
    buf_byte(&body, '{');
    put_string_member(&body, "TableName", slice_of(resource->change.name));
    buf_byte(&body, '}');
    if (!table_ask(deploy, "DescribeTable", &body, &reply)) return false;
    if (reply.error && strcmp(reply.error, "ResourceNotFoundException") == 0) return true;
    if (reply.error)
        return deploy_fail(deploy, "%.*s: %s", SLICE_ARG(resource->change.id),
                           *reply.message ? reply.message : reply.error);
    resource->described = node_member(reply.json, "Table");
    return true;
}

static bool is_active(const struct node *table)
{
    const struct node *indexes = node_member(table, "GlobalSecondaryIndexes");
    for (const struct node *one = indexes ? indexes->first : NULL; one; one = one->next)
        if (node_member(one, "IndexStatus") && !node_is(one, "IndexStatus", "ACTIVE")) return false;
    return node_is(table, "TableStatus", "ACTIVE");
}

static bool wait_for_table(struct deploy *deploy, struct resource *resource, bool is_to_be)
{
    for (unsigned nth = 0; nth < POLLS_MAX; nth++) {
        if (!describe(deploy, resource)) return false;
        if (is_to_be ? resource->described && is_active(resource->described) : !resource->described)
            return true;
        if (!lease_keep(deploy, 0)) return false;
        deploy->door->pause(deploy->door->context, nth);
    }
    return deploy_fail(deploy, "the table %s is still not %s", resource->change.name,
                       is_to_be ? "active" : "gone");
}

/* What was asked for last is remembered: some engines give an index all attributes, whatever its projection says. */
static const char *indexes_digest(struct deploy *deploy, const struct node *want)
{
    const struct node *indexes = node_member(want, "GlobalSecondaryIndexes");
    struct buf text = {0}, digest = {0};
    if (!node_children(indexes)) return NULL;
    node_put(&text, indexes);
    digest_put_sha256(&digest, buf_view(&text));
    const char *made = arena_printf(&deploy->arena, "%.16s", digest.data).data;
    buf_free(&text);
    buf_free(&digest);
    return made;
}

static bool have_table(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    struct slice name = slice_of(resource->change.name);
    const char *asked = resource->end_data = indexes_digest(deploy, resource->want);
    if (!describe(deploy, resource)) return false;
    const struct node *table = resource->described;
    if (!table || node_is(table, "TableStatus", "DELETING"))
        return !table || wait_for_table(deploy, resource, false);
    bool is_on_demand = node_is(node_member(table, "BillingModeSummary"), "BillingMode", "PAY_PER_REQUEST");
    const struct node *ttl = node_member(ask_setting(deploy, "DescribeTimeToLive", "TableName", name),
                                         "TimeToLiveDescription");
    const struct node *backups = node_member(
        ask_setting(deploy, "DescribeContinuousBackups", "TableName", name), "ContinuousBackupsDescription");
    const struct node *tags = ask_setting(deploy, "ListTagsOfResource", "ResourceArn",
                                          node_text(table, "TableArn"));
    bool is_as_asked = resource->data && asked && strcmp(resource->data, asked) == 0;
    put_common(deploy, out, table, is_on_demand,
               is_as_asked ? node_member(resource->want, "GlobalSecondaryIndexes") : NULL);
    put_settings(out, node_text(node_member(table, "TableClassSummary"), "TableClass"),
                 backups ? node_is(node_member(backups, "PointInTimeRecoveryDescription"),
                                   "PointInTimeRecoveryStatus", "ENABLED")
                         : node_is_true(resource->want, "PointInTimeRecovery"),
                 node_is(node_member(table, "SSEDescription"), "Status", "ENABLED"));
    bool expires = node_is(ttl, "TimeToLiveStatus", "ENABLED") ||
                   node_is(ttl, "TimeToLiveStatus", "ENABLING");
    put_string_member(out, "TimeToLive", expires ? node_text(ttl, "AttributeName") : SLICE(""));
    if (!tags && resource->want && node_children(node_member(resource->want, "Tags")))
        deploy_note(deploy, "%.*s: the database keeps no tags", SLICE_ARG(resource->change.id));
    form_put_tags(out, "Tags", tags ? node_member(tags, "Tags") : node_member(resource->want, "Tags"));
    return true;
}

/* ---- making ---- */

static void put_plain_keys(struct buf *out, const struct node *keys)
{
    put_name(out, "KeySchema");
    buf_byte(out, '[');
    for (const struct node *key = keys ? keys->first : NULL; key; key = key->next) {
        put_comma(out);
        buf_byte(out, '{');
        put_string_member(out, "AttributeName", node_text(key, "AttributeName"));
        put_string_member(out, "KeyType", node_text(key, "KeyType"));
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}

/* The inside of an index's definition. */
static void put_index(struct buf *out, const struct node *index)
{
    const struct node *throughput = node_member(index, "ProvisionedThroughput");
    put_string_member(out, "IndexName", index->name);
    put_plain_keys(out, node_member(index, "KeySchema"));
    put_name(out, "Projection");
    node_put(out, node_member(index, "Projection"));
    if (throughput) put_name(out, "ProvisionedThroughput"), node_put(out, throughput);
}

static void put_index_list(struct buf *out, const char *name, const struct node *indexes)
{
    if (!node_children(indexes)) return;
    put_name(out, name);
    buf_byte(out, '[');
    for (const struct node *index = indexes->first; index; index = index->next) {
        put_comma(out);
        buf_byte(out, '{');
        put_index(out, index);
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}

/* The attributes that keys use, and no others: DynamoDB refuses those. */
static void put_definitions(struct buf *out, const struct node *want)
{
    struct buf seen = {0};
    const struct node *holders[] = {want, node_member(want, "GlobalSecondaryIndexes"),
                                    node_member(want, "LocalSecondaryIndexes")};
    put_name(out, "AttributeDefinitions");
    buf_byte(out, '[');
    for (size_t i = 0; i < 3; i++) {
        for (const struct node *one = i ? holders[i] ? holders[i]->first : NULL : want; one;
             one = i ? one->next : NULL) {
            const struct node *keys = node_member(one, "KeySchema");
            for (const struct node *key = keys ? keys->first : NULL; key; key = key->next) {
                struct slice name = node_text(key, "AttributeName");
                struct buf word = {0};
                json_put_string(&word, name);
                bool is_new = !slice_contains(buf_view(&seen), buf_view(&word));
                if (is_new) {
                    buf_slice(&seen, buf_view(&word));
                    put_comma(out);
                    buf_byte(out, '{');
                    put_string_member(out, "AttributeName", name);
                    put_string_member(out, "AttributeType", node_text(key, "AttributeType"));
                    buf_byte(out, '}');
                }
                buf_free(&word);
            }
        }
    }
    buf_byte(out, ']');
    buf_free(&seen);
}

static void put_tag_list(struct buf *out, const struct node *tags)
{
    put_name(out, "Tags");
    buf_byte(out, '[');
    for (const struct node *tag = tags ? tags->first : NULL; tag; tag = tag->next) {
        put_comma(out);
        buf_byte(out, '{');
        put_string_member(out, "Key", tag->name);
        put_string_member(out, "Value", tag->text);
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}

static void put_stream(struct buf *out, struct slice view)
{
    put_name(out, "StreamSpecification");
    buf_printf(out, "{\"StreamEnabled\":%s", view.len ? "true" : "false");
    if (view.len) put_string_member(out, "StreamViewType", view);
    buf_byte(out, '}');
}

static bool set_ttl(struct deploy *deploy, struct resource *resource, struct slice attribute, bool is_on)
{
    struct buf body = {0};
    struct deploy_reply reply;
    buf_byte(&body, '{');
    put_string_member(&body, "TableName", slice_of(resource->change.name));
    buf_printf(&body, ",\"TimeToLiveSpecification\":{\"Enabled\":%s", is_on ? "true" : "false");
    put_string_member(&body, "AttributeName", attribute);
    buf_text(&body, "}}");
    return table_call(deploy, resource, "UpdateTimeToLive", &body, &reply);
}

static bool set_recovery(struct deploy *deploy, struct resource *resource)
{
    struct buf body = {0};
    struct deploy_reply reply;
    buf_byte(&body, '{');
    put_string_member(&body, "TableName", slice_of(resource->change.name));
    buf_printf(&body, ",\"PointInTimeRecoverySpecification\":{\"PointInTimeRecoveryEnabled\":%s}}",
               node_is_true(resource->want, "PointInTimeRecovery") ? "true" : "false");
    if (!table_ask(deploy, "UpdateContinuousBackups", &body, &reply)) return false;
    if (reply.error)
        deploy_note(deploy, "%.*s: the database has no recovery to a point in time",
                    SLICE_ARG(resource->change.id));
    return true;
}

static void put_billing(struct buf *out, const struct node *want)
{
    const struct node *throughput = node_member(want, "ProvisionedThroughput");
    put_string_member(out, "BillingMode", node_text(want, "BillingMode"));
    if (throughput) put_name(out, "ProvisionedThroughput"), node_put(out, throughput);
}

static bool create_table(struct deploy *deploy, struct resource *resource)
{
    const struct node *want = resource->want;
    struct slice ttl = node_text(want, "TimeToLive"), view = node_text(want, "StreamViewType");
    struct buf body = {0};
    struct deploy_reply reply;
    buf_byte(&body, '{');
    put_string_member(&body, "TableName", slice_of(resource->change.name));
    put_plain_keys(&body, node_member(want, "KeySchema"));
    put_definitions(&body, want);
    put_billing(&body, want);
    put_index_list(&body, "GlobalSecondaryIndexes", node_member(want, "GlobalSecondaryIndexes"));
    put_index_list(&body, "LocalSecondaryIndexes", node_member(want, "LocalSecondaryIndexes"));
    if (view.len) put_stream(&body, view);
    if (node_children(node_member(want, "Tags"))) put_tag_list(&body, node_member(want, "Tags"));
    if (node_is_true(want, "DeletionProtectionEnabled"))
        buf_text(&body, ",\"DeletionProtectionEnabled\":true");
    if (!node_is(want, "TableClass", "STANDARD"))
        put_string_member(&body, "TableClass", node_text(want, "TableClass"));
    if (node_is_true(want, "SSEEnabled")) buf_text(&body, ",\"SSESpecification\":{\"Enabled\":true}");
    buf_byte(&body, '}');
    return table_call(deploy, resource, "CreateTable", &body, &reply) &&
           wait_for_table(deploy, resource, true) && (!ttl.len || set_ttl(deploy, resource, ttl, true)) &&
           (!node_is_true(want, "PointInTimeRecovery") || set_recovery(deploy, resource));
}

/* ---- changing ---- */

/* Sends the begun request, of which `members` are the inside, and waits until it is done. */
static bool update(struct deploy *deploy, struct resource *resource, struct buf *members)
{
    struct buf body = {0};
    struct deploy_reply reply;
    buf_byte(&body, '{');
    put_string_member(&body, "TableName", slice_of(resource->change.name));
    buf_byte(&body, ',');
    buf_slice(&body, buf_view(members));
    buf_byte(&body, '}');
    buf_free(members);
    return table_call(deploy, resource, "UpdateTable", &body, &reply) &&
           wait_for_table(deploy, resource, true);
}

/* Indexes that stay need their throughput in the same request. */
static bool update_billing(struct deploy *deploy, struct resource *resource)
{
    const struct node *indexes = node_member(resource->want, "GlobalSecondaryIndexes");
    const struct node *there = node_member(resource->have, "GlobalSecondaryIndexes");
    bool is_provisioned = node_is(resource->want, "BillingMode", "PROVISIONED"), is_first = true;
    struct buf members = {0};
    put_billing(&members, resource->want);
    for (const struct node *index = indexes && is_provisioned ? indexes->first : NULL; index;
         index = index->next) {
        if (!node_member(there, deploy_text(deploy, index->name))) continue;
        buf_slice(&members,
                  slice_of(is_first ? ",\"GlobalSecondaryIndexUpdates\":[{\"Update\":{" : ",{\"Update\":{"));
        put_string_member(&members, "IndexName", index->name);
        put_name(&members, "ProvisionedThroughput");
        node_put(&members, node_member(index, "ProvisionedThroughput"));
        buf_text(&members, "}}");
        is_first = false;
    }
    if (!is_first) buf_byte(&members, ']');
    return update(deploy, resource, &members);
}

static bool update_stream(struct deploy *deploy, struct resource *resource)
{
    struct slice view = node_text(resource->want, "StreamViewType");
    struct buf members = {0};
    if (node_text(resource->have, "StreamViewType").len) {
        put_stream(&members, SLICE(""));
        if (!update(deploy, resource, &members)) return false;
    }
    members = (struct buf){0};
    if (view.len) put_stream(&members, view);
    return !view.len || update(deploy, resource, &members);
}

static bool index_is_same(const struct node *want, const struct node *have, bool with_throughput)
{
    return want && form_equal(node_member(want, "KeySchema"), node_member(have, "KeySchema"), false) &&
           form_equal(node_member(want, "Projection"), node_member(have, "Projection"), false) &&
           (!with_throughput || form_equal(node_member(want, "ProvisionedThroughput"),
                                           node_member(have, "ProvisionedThroughput"), false));
}

static bool update_indexes(struct deploy *deploy, struct resource *resource)
{
    const struct node *want = node_member(resource->want, "GlobalSecondaryIndexes");
    const struct node *have = node_member(resource->have, "GlobalSecondaryIndexes");
    for (const struct node *index = have->first; index; index = index->next) {
        const struct node *wanted = node_member(want, deploy_text(deploy, index->name));
        struct buf members = {0};
        if (index_is_same(wanted, index, false)) continue;
        buf_text(&members, "\"GlobalSecondaryIndexUpdates\":[{\"Delete\":{");
        put_string_member(&members, "IndexName", index->name);
        buf_text(&members, "}}]");
        if (!update(deploy, resource, &members)) return false;
    }
    for (const struct node *index = want->first; index; index = index->next) {
        const struct node *there = node_member(have, deploy_text(deploy, index->name));
        const struct node *throughput = node_member(index, "ProvisionedThroughput");
        bool is_kept = there && index_is_same(index, there, false);
        struct buf members = {0};
        if (is_kept && (!throughput || index_is_same(index, there, true))) continue;
        if (is_kept) {
            buf_text(&members, "\"GlobalSecondaryIndexUpdates\":[{\"Update\":{");
            put_string_member(&members, "IndexName", index->name);
            put_name(&members, "ProvisionedThroughput"), node_put(&members, throughput);
        } else {
            put_definitions(&members, resource->want);
            buf_text(&members, ",\"GlobalSecondaryIndexUpdates\":[{\"Create\":{");
            put_index(&members, index);
        }
        buf_text(&members, "}}]");
        if (!update(deploy, resource, &members)) return false;
    }
    return true;
}

static bool update_ttl(struct deploy *deploy, struct resource *resource)
{
    struct slice had = node_text(resource->have, "TimeToLive"),
                 wanted = node_text(resource->want, "TimeToLive");
    return (!had.len || set_ttl(deploy, resource, had, false)) &&
           (!wanted.len || set_ttl(deploy, resource, wanted, true));
}

static bool update_tags(struct deploy *deploy, struct resource *resource)
{
    const struct node *want = node_member(resource->want, "Tags"),
                      *have = node_member(resource->have, "Tags");
    struct slice arn = node_text(resource->described, "TableArn");
    struct deploy_reply reply;
    struct buf set = {0}, gone = {0};
    bool fine = true;
    buf_byte(&gone, '{');
    put_string_member(&gone, "ResourceArn", arn);
    buf_text(&gone, ",\"TagKeys\":[");
    for (const struct node *tag = have->first; tag; tag = tag->next)
        if (!node_member(want, deploy_text(deploy, tag->name)))
            put_comma(&gone), json_put_string(&gone, tag->name);
    bool removes = gone.data[gone.len - 1] != '[';
    buf_text(&gone, "]}");
    buf_byte(&set, '{');
    put_string_member(&set, "ResourceArn", arn);
    put_tag_list(&set, want);
    buf_byte(&set, '}');
    if (removes) fine = table_call(deploy, resource, "UntagResource", &gone, &reply);
    if (fine && node_children(want)) fine = table_call(deploy, resource, "TagResource", &set, &reply);
    buf_free(&gone);
    buf_free(&set);
    return fine;
}

static bool update_table(struct deploy *deploy, struct resource *resource)
{
    struct buf members = {0};
    bool fine = true;
    if (resource_differs_in(resource, "BillingMode ProvisionedThroughput"))
        fine = update_billing(deploy, resource);
    if (fine && resource_differs(resource, "DeletionProtectionEnabled")) {
        buf_printf(&members, "\"DeletionProtectionEnabled\":%s",
                   node_is_true(resource->want, "DeletionProtectionEnabled") ? "true" : "false");
        fine = update(deploy, resource, &members);
    }
    members = (struct buf){0};
    if (fine && resource_differs(resource, "TableClass")) {
        put_string_member(&members, "TableClass", node_text(resource->want, "TableClass"));
        fine = update(deploy, resource, &members);
    }
    members = (struct buf){0};
    if (fine && resource_differs(resource, "SSEEnabled")) {
        buf_printf(&members, "\"SSESpecification\":{\"Enabled\":%s}",
                   node_is_true(resource->want, "SSEEnabled") ? "true" : "false");
        fine = update(deploy, resource, &members);
    }
    if (fine && resource_differs(resource, "GlobalSecondaryIndexes")) fine = update_indexes(deploy, resource);
    if (fine && resource_differs(resource, "StreamViewType")) fine = update_stream(deploy, resource);
    if (fine && resource_differs(resource, "TimeToLive")) fine = update_ttl(deploy, resource);
    if (fine && resource_differs(resource, "PointInTimeRecovery")) fine = set_recovery(deploy, resource);
    if (fine && resource_differs(resource, "Tags")) fine = update_tags(deploy, resource);
    return fine;
}

/* ---- removing, attributes ---- */

static bool remove_table(struct deploy *deploy, struct resource *resource)
{
    struct buf body = {0};
    struct deploy_reply reply;
    buf_byte(&body, '{');
    put_string_member(&body, "TableName", slice_of(resource->change.name));
    buf_byte(&body, '}');
    if (!table_ask(deploy, "DeleteTable", &body, &reply)) return false;
    if (reply.error && strcmp(reply.error, "ResourceNotFoundException") != 0)
        return deploy_fail(deploy, "%.*s: %s", SLICE_ARG(resource->change.id),
                           *reply.message ? reply.message : reply.error);
    return wait_for_table(deploy, resource, false);
}

static struct slice table_attribute(struct deploy *deploy, struct resource *resource, struct slice name)
{
    struct slice stream = node_text(resource->described, "LatestStreamArn");
    bool changes_stream = resource->change.action == DEPLOY_REPLACE ||
                          resource_differs(resource, "StreamViewType");
    if (!name.len) return slice_of(resource->change.name);
    if (slice_equal(name, SLICE("Arn"))) {
        struct slice arn = node_text(resource->described, "TableArn");
        return arn.len ? arn
                       : arena_printf(&deploy->arena, "arn:aws:dynamodb:%.*s:%.*s:table/%s",
                                      SLICE_ARG(deploy->region), SLICE_ARG(deploy->account),
                                      resource->change.name);
    }
    if (slice_equal(name, SLICE("StreamArn"))) {
        bool is_known = stream.len && (resource->is_settled || !changes_stream);
        return is_known ? stream : SLICE_NONE;
    }
    if (slice_equal(name, SLICE("TableId")) && resource->described)
        return node_text(resource->described, "TableId");
    return SLICE_NONE;
}

const struct kind kind_table = {
    .type = "AWS::DynamoDB::Table",
    .name_member = "TableName",
    .name_bytes = 255,
    .known =
        "TableName KeySchema AttributeDefinitions BillingMode ProvisionedThroughput GlobalSecondaryIndexes "
        "LocalSecondaryIndexes StreamSpecification TimeToLiveSpecification Tags DeletionProtectionEnabled "
        "PointInTimeRecoverySpecification SSESpecification TableClass",
    .replacing = "KeySchema LocalSecondaryIndexes",
    .keeps_data = true,
    .want = want_table,
    .have = have_table,
    .create = create_table,
    .update = update_table,
    .remove = remove_table,
    .attribute = table_attribute,
};

/* Its one replica here has the settings that a table has itself. */
static bool want_global_table(struct deploy *deploy, struct resource *resource, struct buf *out)
{
    static const char *const of_replica[] = {"PointInTimeRecoverySpecification", "TableClass", "Tags",
                                             "DeletionProtectionEnabled"};
    const struct node *given = resource->properties, *replicas = node_member(given, "Replicas");
    const struct node *replica = replicas ? replicas->first : NULL;
    const char *fault;
    struct buf plain = {0};
    for (const struct node *one = replicas ? replicas->first : NULL; one; one = one->next)
        if (slice_equal(node_text(one, "Region"), deploy->region)) replica = one;
    if (node_children(replicas) > 1)
        deploy_note(deploy, "%.*s: replicas in other regions are not made here",
                    SLICE_ARG(resource->change.id));
    if (!node_is(given, "BillingMode", "PAY_PER_REQUEST"))
        deploy_note(deploy, "%.*s: a global table is billed PAY_PER_REQUEST here",
                    SLICE_ARG(resource->change.id));
    buf_byte(&plain, '{');
    for (const struct node *one = given->first; one; one = one->next)
        if (!slice_equal(one->name, SLICE("BillingMode")))
            put_name(&plain, deploy_text(deploy, one->name)), node_put(&plain, one);
    put_string_member(&plain, "BillingMode", SLICE("PAY_PER_REQUEST"));
    for (size_t i = 0; i < sizeof of_replica / sizeof *of_replica; i++) {
        const struct node *value = node_member(replica, of_replica[i]);
        if (value) put_name(&plain, of_replica[i]), node_put(&plain, value);
    }
    buf_byte(&plain, '}');
    resource->properties = node_parse(&deploy->arena, arena_take(&deploy->arena, &plain), &fault);
    bool fine = want_table(deploy, resource, out);
    resource->properties = given;
    return fine;
}

const struct kind kind_global_table = {
    .type = "AWS::DynamoDB::GlobalTable",
    .name_member = "TableName",
    .name_bytes = 255,
    .known =
        "TableName KeySchema AttributeDefinitions BillingMode GlobalSecondaryIndexes LocalSecondaryIndexes "
        "StreamSpecification TimeToLiveSpecification Replicas SSESpecification WriteProvisionedThroughputSettings "
        "WriteOnDemandThroughputSettings",
    .replacing = "KeySchema LocalSecondaryIndexes",
    .keeps_data = true,
    .want = want_global_table,
    .have = have_table,
    .create = create_table,
    .update = update_table,
    .remove = remove_table,
    .attribute = table_attribute,
};
