/* PutResourcePolicy, GetResourcePolicy and DeleteResourcePolicy, for tables and their streams. Policies are
 * kept and shown; they decide nothing, as there are no users to decide about.
 *
 * A table's policy is definition.resource_policy; its revision is in the setting "policy_revision", or the
 * table's own time when the policy came with it. A revision without a policy is that of its deletion. Streams
 * have theirs in the setting "stream_policies", which maps a stream's label to {policy, revision}. */
#include "api/policy_document.h"
#include "api/settings.h"

#define NO_POLICY "Resource-based policy not found for the provided ResourceArn: "

enum { PUT_RESOURCE, PUT_POLICY, PUT_REVISION, PUT_CONFIRM };
enum { DELETE_RESOURCE, DELETE_REVISION };

static const struct shape shape_arn = STRING_SHAPE_SIZED(1, 1283);
static const struct shape shape_revision = STRING_SHAPE_SIZED(1, 255);

static const struct shape_member put_members[] = {
    [PUT_RESOURCE] = REQUIRED("ResourceArn", shape_arn),
    [PUT_POLICY] = REQUIRED("Policy", shape_string),
    [PUT_REVISION] = MEMBER("ExpectedRevisionId", shape_revision),
    [PUT_CONFIRM] = MEMBER("ConfirmRemoveSelfResourceAccess", shape_bool),
};
static const struct shape put_shape = STRUCT_SHAPE("PutResourcePolicyInput", put_members);

static const struct shape_member delete_members[] = {
    [DELETE_RESOURCE] = REQUIRED("ResourceArn", shape_arn),
    [DELETE_REVISION] = MEMBER("ExpectedRevisionId", shape_revision),
};
static const struct shape delete_shape = STRUCT_SHAPE("DeleteResourcePolicyInput", delete_members);

static const struct shape_member get_members[] = {REQUIRED("ResourceArn", shape_arn)};
static const struct shape get_shape = STRUCT_SHAPE("GetResourcePolicyInput", get_members);

/* ---- the policy of a table or stream ---- */

struct policy_state {
    struct slice text; /* empty: none */
    int64_t revision;  /* 0: there never was one */
};

static struct policy_state policy_of(const struct table_definition *definition, struct slice stream_label)
{
    if (stream_label.len) {
        struct map all = setting_map(definition, "stream_policies"), own = map_map(&all, stream_label);
        return (struct policy_state){map_text(&own, "policy"), map_integer(&own, "revision")};
    }
    struct policy_state state = {definition->resource_policy,
                                 map_integer(&definition->settings, "policy_revision")};
    if (state.text.len && !state.revision) state.revision = definition->created_ms;
    return state;
}

static void keep_policy(struct arena *arena, struct table_definition *definition, struct slice stream_label,
                        const struct policy_state *state)
{
    if (!stream_label.len) {
        definition->resource_policy = state->text;
        setting_put(arena, definition, "policy_revision", integer_value(arena, state->revision));
        return;
    }
    struct map all = {0}, own = {0}; /* those of earlier streams can be asked for no more */
    map_put(arena, &own, SLICE("policy"), text_value(state->text));
    map_put(arena, &own, SLICE("revision"), integer_value(arena, state->revision));
    map_put(arena, &all, stream_label, map_value(own));
    setting_put(arena, definition, "stream_policies", map_value(all));
}

/* ---- which table ---- */

static bool find_resource(struct api_call *call, struct slice arn, struct resource *out)
{
    enum resource_fault fault = resource_parse(call->api, arn, out);
    if (fault == RESOURCE_FINE) return true;
    if (fault == RESOURCE_ELSEWHERE)
        return invalid(call, INVALID_VALUES "Invalid resource Arn: %.*s", SLICE_ARG(arn));
    if (fault == RESOURCE_OTHER_ACCOUNT)
        return invalid(call,
                       "This action is only supported by accounts that match the resource owner\xe2\x80\x99s "
                       "account.");
    return refuse_resource(call, fault, arn);
}

/* Only a stream that the table has or had last can be named. */
static bool has_stream(const struct table_definition *definition, struct slice label)
{
    struct buf own = {0};
    if (!definition->stream_since_ms) return false;
    put_stream_label(&own, definition->stream_since_ms);
    bool is_it = slice_equal(buf_view(&own), label);
    buf_free(&own);
    return is_it;
}

#define NO_STREAM "Requested resource not found: Stream: %.*s not found for Table: %.*s"

/* ---- changes ---- */

struct policy_change {
    struct table_change change;
    struct resource resource;
    struct slice policy;             /* empty: to be deleted */
    const struct node *expected;     /* a revision */
    struct policy_state before, now; /* now: after the change */
};

static bool reject_policy(struct table_change *change, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool reject_policy(struct table_change *change, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct slice words = arena_vprintf(change->verdict.arena, format, args);
    va_end(args);
    return reject_as(&change->verdict, "PolicyNotFoundException", NO_POLICY "%.*s", SLICE_ARG(words));
}

static bool check_revision(struct policy_change *own)
{
    struct table_change *change = &own->change;
    struct slice expected = own->expected->text, table = change->table_name;
    char revision[24];
    if (!own->expected->present) return true;
    if (own->policy.len && slice_equal(expected, SLICE("NO_POLICY")))
        return !own->before.text.len ||
               reject_policy(
                   change,
                   "Requested policy update expecting none to be present for table %.*s, but a policy "
                   "exists with revision id %lld.",
                   SLICE_ARG(table), (long long)own->before.revision);
    if (!own->before.revision)
        return reject_policy(change,
                             "Requested update for policy with revision id %.*s, but table %.*s has no "
                             "associated policy.",
                             SLICE_ARG(expected), SLICE_ARG(table));
    struct buf text = {.data = revision, .cap = sizeof revision};
    json_put_int(&text, own->before.revision);
    return (own->before.text.len && slice_equal(buf_view(&text), expected)) ||
           reject_policy(change,
                         "Requested update for policy with revision id %.*s, but the policy associated to "
                         "target table %.*s has revision id %lld.",
                         SLICE_ARG(expected), SLICE_ARG(table), (long long)own->before.revision);
}

/* Revisions are times, and grow. What changes nothing makes no new one. */
static bool apply(struct table_change *change)
{
    struct policy_change *own = (struct policy_change *)change;
    struct slice label = own->resource.stream_label;
    if (label.len && !has_stream(change->definition, label))
        return reject_as(&change->verdict, "ResourceNotFoundException", NO_STREAM, SLICE_ARG(label),
                         SLICE_ARG(change->table_name));
    own->now = own->before = policy_of(change->definition, label);
    if (!check_revision(own)) return false;
    if (slice_equal(own->before.text, own->policy)) return false;
    int64_t least = own->before.revision + 1;
    own->now = (struct policy_state){own->policy, change->now_ms > least ? change->now_ms : least};
    keep_policy(change->verdict.arena, change->definition, label, &own->now);
    return true;
}

static void put_revision(struct buf *out, int64_t revision)
{
    buf_printf(out, "\"RevisionId\":\"%lld\"", (long long)revision);
}

static void put_begin(struct api_call *call, const struct node *input)
{
    struct verdict verdict = {.arena = call->arena};
    struct policy_change *own = arena_new(call->arena, struct policy_change);
    if (!find_resource(call, node_member(input, PUT_RESOURCE)->text, &own->resource)) return;
    policy_canonical(&verdict, node_member(input, PUT_POLICY)->text, &own->policy);
    if (!verdict_tell(call, &verdict)) return;
    own->expected = node_member(input, PUT_REVISION);
    own->change.apply = apply;
    own->change.table_name = own->resource.table_name;
    table_change_submit(call, input, &own->change);
}

static void put_finish(struct api_call *call)
{
    const struct policy_change *own = (const struct policy_change *)table_change_finish(call);
    if (!own) return;
    buf_byte(call->reply, '{');
    put_revision(call->reply, own->now.revision);
    buf_byte(call->reply, '}');
}

const struct operation operation_PutResourcePolicy = {
    .name = TEXT("PutResourcePolicy"),
    .input = &put_shape,
    .begin = put_begin,
    .finish = put_finish,
};

static void delete_begin(struct api_call *call, const struct node *input)
{
    struct policy_change *own = arena_new(call->arena, struct policy_change);
    if (!find_resource(call, node_member(input, DELETE_RESOURCE)->text, &own->resource)) return;
    own->expected = node_member(input, DELETE_REVISION);
    own->change.apply = apply;
    own->change.table_name = own->resource.table_name;
    table_change_submit(call, input, &own->change);
}

/* The revision that went, or that of an earlier deletion; nothing when there never was a policy. */
static void delete_finish(struct api_call *call)
{
    const struct policy_change *own = (const struct policy_change *)table_change_finish(call);
    if (!own) return;
    buf_byte(call->reply, '{');
    if (own->before.revision) put_revision(call->reply, own->before.revision);
    buf_byte(call->reply, '}');
}

const struct operation operation_DeleteResourcePolicy = {
    .name = TEXT("DeleteResourcePolicy"),
    .input = &delete_shape,
    .begin = delete_begin,
    .finish = delete_finish,
};

/* ---- GetResourcePolicy ---- */

static void get_begin(struct api_call *call, const struct node *input)
{
    struct slice arn = node_member(input, 0)->text;
    struct resource resource;
    if (!find_resource(call, arn, &resource)) return;
    const struct table *table = find_table_to_manage(call, resource.table_name);
    if (!table) return;
    struct slice label = resource.stream_label;
    struct policy_state state = policy_of(&table->definition, label);
    if (label.len && !has_stream(&table->definition, label)) {
        refuse(call, "ResourceNotFoundException", NO_STREAM, SLICE_ARG(label),
               SLICE_ARG(resource.table_name));
    } else if (!state.text.len) {
        refuse(call, "PolicyNotFoundException", NO_POLICY "%.*s", SLICE_ARG(arn));
    } else {
        buf_text(call->reply, "{\"Policy\":");
        json_put_string(call->reply, state.text);
        buf_byte(call->reply, ',');
        put_revision(call->reply, state.revision);
        buf_byte(call->reply, '}');
    }
}

const struct operation operation_GetResourcePolicy = {
    .name = TEXT("GetResourcePolicy"),
    .input = &get_shape,
    .begin = get_begin,
};
