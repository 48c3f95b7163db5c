/* What a request says about a table beyond its schema: throughput (provisioned units, ceilings on demand,
 * warm throughput), the stream, encryption. */
#include "api/tables.h"

#define UNITS_MAX 1000000000000 /* the service's own bound on a number of units */

const struct throughput throughput_none = {0, 0, -1, -1, -1, -1};

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

/* One number of units that may be absent. */
static bool take_ceiling(struct verdict *verdict, const struct node *node, const char *what, bool removable,
                         int64_t *out)
{
    if (!node->present) return true;
    if (node->integer < 1 && !(removable && node->integer == -1))
        return reject(verdict, INVALID_VALUES "Requested %s for table is outside of valid range", what);
    *out = node->integer;
    return true;
}

bool define_warm(struct verdict *verdict, const struct node *node, struct throughput *out)
{
    if (!node->present) return true;
    return take_ceiling(verdict, node_member(node, WARM_READ), "ReadUnitsPerSecond for WarmThroughput", false,
                        &out->warm_read) &&
           take_ceiling(verdict, node_member(node, WARM_WRITE), "WriteUnitsPerSecond for WarmThroughput",
                        false, &out->warm_write);
}

bool define_on_demand(struct verdict *verdict, const struct node *node, bool removable,
                      struct throughput *out)
{
    if (!node->present) return true;
    return take_ceiling(verdict, node_member(node, ON_DEMAND_READ),
                        "MaxReadRequestUnits for OnDemandThroughput", removable, &out->max_read) &&
           take_ceiling(verdict, node_member(node, ON_DEMAND_WRITE),
                        "MaxWriteRequestUnits for OnDemandThroughput", removable, &out->max_write);
}

const char *on_demand_member(const struct node *node)
{
    if (!node->present) return NULL;
    if (node_member(node, ON_DEMAND_READ)->present) return "MaxReadRequestUnits";
    if (node_member(node, ON_DEMAND_WRITE)->present) return "MaxWriteRequestUnits";
    return NULL;
}

/* ---- stream and encryption ---- */

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

void define_encryption(const struct node *sse, struct table_definition *out)
{
    if (!sse->present) return;
    const struct node *enabled = node_member(sse, SSE_ENABLED), *key = node_member(sse, SSE_KEY);
    out->encrypted = node_is_true(enabled) || (!enabled->present && key->present);
    out->kms_key = out->encrypted && key->present ? key->text : SLICE_NONE;
}
