/* Auto scaling and throughput of a table's replicas, as both kinds of global tables set them. Nothing is
 * scaled here; what was asked for is kept and shown.
 *
 * The setting "scaling" is a tree of maps: `write` for the table, `indexes` by name with their own `write`,
 * `replicas` by region with `read` and again `indexes` with `read`. A place that has no auto scaling is
 * absent. Numbers of units stand beside, as `write_units` and `read_units`. */
#ifndef API_SCALING_H
#define API_SCALING_H

#include "api/settings.h"

extern const struct shape shape_scaling; /* AutoScalingSettingsUpdate */

#define SCALING_PATH_MAX 4

/* A place in the tree: names from the root on. */
struct scaling_path {
    struct slice names[SCALING_PATH_MAX];
    unsigned count;
};

struct scaling_path scaling_of_table(void);
struct scaling_path scaling_of_index(struct slice index);
struct scaling_path scaling_of_replica(struct slice region);
struct scaling_path scaling_of_replica_index(struct slice region, struct slice index);

/* Judges an update (absent ones are fine) and keeps it as `write` or `read` at the place. */
bool scaling_take(struct table_change *change, const struct node *update, const struct scaling_path *path,
                  bool is_write);
/* A number of units, or any other value, at the place. */
void scaling_put(struct table_change *change, const struct scaling_path *path, const char *name,
                 struct value value);

bool has_global_index(const struct table_definition *definition, struct slice name);

/* How one replica is shown: with_units as part of the older kind of global tables. */
void put_replica_scaling(struct buf *out, const struct api *api, const struct table_definition *definition,
                         struct slice region, bool with_units);

#endif
