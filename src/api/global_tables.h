/* Global tables: the older kind, made by CreateGlobalTable, and replicas, made by UpdateTable. Other regions
 * are names only; their replicas hold nothing here.
 *
 * The setting "global" is {created_ms, regions}, regions a map of names to empty maps; the setting "replicas"
 * maps the names of other regions to what was given with them. */
#ifndef API_GLOBAL_TABLES_H
#define API_GLOBAL_TABLES_H

#include "api/settings.h"

extern const struct shape shape_region;

/* ---- replicas (replicas.c) ---- */

extern const struct shape shape_replica_updates;

/* Checks the updates of UpdateTable against the table and keeps them. */
bool apply_replica_updates(struct verdict *verdict, const struct api *api, const struct node *list,
                           struct table_definition *definition);
/* ,"GlobalTableVersion":...,"Replicas":[...]; nothing when there are none. */
void put_replicas(struct buf *out, const struct table_definition *definition);
bool has_replica(const struct table_definition *definition, const struct api *api, struct slice region);

#endif
