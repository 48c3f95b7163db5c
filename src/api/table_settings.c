/* What a request says about a table beyond its schema: throughput (provisioned units, ceilings on demand,
 * warm throughput), the stream, encryption and class. */
#include "api/tables.h"

#define UNITS_MAX            1000000000000 /* the service's own bound on a number of units */
#define WARM_READ_ON_DEMAND  12000         /* what a new table on demand can serve at once */
#define WARM_WRITE_ON_DEMAND 4000
#define WARM_GUIDE                                                                                           \
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"                                      \
    "on-demand-capacity-mode.html#on-demand-capacity-mode-initial"

const struct throughput throughput_none = {0, 0, -1, -1, -1, -1};

/* ---- provisioned units ---- */

bool check_units(struct verdict *verdict, const struct node *units)
{
    if (!units->present) return true;
    int64_t read = node_member(units, UNITS_READ)->integer, write = node_member(units, UNITS_WRITE)->integer;
    if (read > UNITS_MAX)
        return reject(verdict, "Given value %lld for ReadCapacityUnits is out of bounds", (long long)read);
    if (write > UNITS_MAX)
        return reject(verdict, "Given value %lld for WriteCapacityUnits is out of bounds", (long long)write);
    return true;
}

void take_units(const struct node *units, struct throughput *out)
{
    if (!units->present) return;
    out->read_units = node_member(units, UNITS_READ)->integer;
    out->write_units = node_member(units, UNITS_WRITE)->integer;
}

/* ---- ceilings on demand ---- */

bool has_members(const struct node *node)
{
    if (!node->present) return false;
    for (uint32_t i = 0; i < node->shape->member_count; i++)
        if (node->members[i].present) return true;
    return false;
}

static bool reject_ceiling_mode(struct verdict *verdict, const char *member,
                                const struct throughput_rules *rules)
{
    return reject(verdict,
                  INVALID_VALUES
                  "%s for OnDemandThroughput%s%.*s cannot be specified when %stable BillingMode is "
                  "PROVISIONED%s",
                  member, rules->index.len ? " for index: " : "", SLICE_ARG(rules->index),
                  rules->is_update ? "the " : "", rules->is_update ? "" : ".");
}

static bool take_ceiling(struct verdict *verdict, const struct node *node, const char *member,
                         const struct throughput_rules *rules, int64_t *out)
{
    if (!node->present) return true;
    if (!rules->on_demand) return reject_ceiling_mode(verdict, member, rules);
    if (node->integer < 1 && !(rules->is_update && node->integer == -1))
        return reject(verdict,
                      INVALID_VALUES
                      "Requested %s for OnDemandThroughput for %s%.*s is outside of valid range",
                      member, rules->index.len ? "index : " : "table", SLICE_ARG(rules->index));
    *out = node->integer;
    return true;
}

bool define_on_demand(struct verdict *verdict, const struct node *node, const struct throughput_rules *rules,
                      struct throughput *out)
{
    if (!node->present) return true;
    return take_ceiling(verdict, node_member(node, ON_DEMAND_READ), "MaxReadRequestUnits", rules,
                        &out->max_read) &&
           take_ceiling(verdict, node_member(node, ON_DEMAND_WRITE), "MaxWriteRequestUnits", rules,
                        &out->max_write);
}

/* ---- warm throughput ---- */

static int64_t warm_units(int64_t given, int64_t provisioned, bool on_demand, int64_t initial)
{
    if (given != -1) return given;
    return on_demand ? initial : provisioned;
}

void warm_effective(const struct throughput *throughput, bool on_demand, int64_t *read, int64_t *write)
{
    *read = warm_units(throughput->warm_read, throughput->read_units, on_demand, WARM_READ_ON_DEMAND);
    *write = warm_units(throughput->warm_write, throughput->write_units, on_demand, WARM_WRITE_ON_DEMAND);
}

static bool take_warm(struct verdict *verdict, const struct node *node, const char *what, int64_t least,
                      const struct throughput_rules *rules, int64_t *out)
{
    if (!node->present) return true;
    if (node->integer >= least && node->integer > 0) {
        *out = node->integer;
        return true;
    }
    struct slice why;
    if (rules->is_update)
        why = SLICE("current WarmThroughput, decreasing WarmThroughput is not supported");
    else if (rules->on_demand)
        why = SLICE("initial throughput for OnDemand. See: " WARM_GUIDE);
    else
        why = arena_printf(verdict->arena, "%sCapacityUnits of ProvisionedThroughput", what);
    return reject(
        verdict, INVALID_VALUES "Requested %sUnitsPerSecond for WarmThroughput for %s%.*s is lower than %.*s",
        what, rules->index.len ? "index " : "table", SLICE_ARG(rules->index), SLICE_ARG(why));
}

bool define_warm(struct verdict *verdict, const struct node *node, const struct throughput_rules *rules,
                 struct throughput *out)
{
    int64_t read, write;
    if (!node->present) return true;
    warm_effective(out, rules->on_demand, &read, &write);
    return take_warm(verdict, node_member(node, WARM_READ), "Read", read, rules, &out->warm_read) &&
           take_warm(verdict, node_member(node, WARM_WRITE), "Write", write, rules, &out->warm_write);
}

/* ---- stream, class, encryption ---- */

enum stream_view stream_view_from_node(const struct node *view)
{
    if (node_says(view, "KEYS_ONLY")) return STREAM_KEYS_ONLY;
    if (node_says(view, "NEW_IMAGE")) return STREAM_NEW_IMAGE;
    if (node_says(view, "OLD_IMAGE")) return STREAM_OLD_IMAGE;
    return STREAM_NEW_AND_OLD_IMAGES;
}

const char *stream_view_name(enum stream_view view)
{
    static const char *const names[] = {[STREAM_OFF] = "",
                                        [STREAM_KEYS_ONLY] = "KEYS_ONLY",
                                        [STREAM_NEW_IMAGE] = "NEW_IMAGE",
                                        [STREAM_OLD_IMAGE] = "OLD_IMAGE",
                                        [STREAM_NEW_AND_OLD_IMAGES] = "NEW_AND_OLD_IMAGES"};
    return names[view];
}

bool check_table_class(struct verdict *verdict, const struct node *class)
{
    if (!class->present || node_says(class, "STANDARD") || node_says(class, "STANDARD_INFREQUENT_ACCESS"))
        return true;
    return reject(verdict,
                  "Invalid table-class parameter provided. Please try again with a valid table-class value: "
                  "[STANDARD, STANDARD_INFREQUENT_ACCESS].");
}

bool define_encryption(struct verdict *verdict, const struct node *sse, struct table_definition *out)
{
    if (!sse->present) return true;
    const struct node *enabled = node_member(sse, SSE_ENABLED), *type = node_member(sse, SSE_TYPE);
    const struct node *key = node_member(sse, SSE_KEY);
    if (enabled->present && !enabled->truth && type->present)
        return reject(verdict, INVALID_VALUES "SSEType can not be specified if Enabled is false");
    if (enabled->present && !enabled->truth && key->present)
        return reject(verdict, INVALID_VALUES "KMSMasterKeyId can not be specified if Enabled is false");
    if (node_says(type, "AES256")) return reject(verdict, INVALID_VALUES "SSEType AES256 is not supported");
    if (key->present && !type->present)
        return reject(verdict, INVALID_VALUES "SSEType KMS is required if KMSMasterKeyId is specified");
    out->encrypted = node_is_true(enabled) || type->present;
    out->kms_key = key->present ? key->text : SLICE_NONE;
    return true;
}
