/* What several commands do with whole tables. */
#ifndef CLI_TABLES_H
#define CLI_TABLES_H

#include "cli/place.h"

/* Asks until the table and all its indexes are ACTIVE. False after complaining. */
bool table_wait_active(const struct place *place, const char *table);
/* Asks until the table is gone. False after complaining. */
bool table_wait_gone(const struct place *place, const char *table);
/* The table's TTL attribute; empty when it has none, or when the endpoint knows of no TTL. */
struct slice table_ttl(const struct place *place, struct arena *arena, const char *table);
bool table_set_ttl(const struct place *place, struct arena *arena, const char *table, struct slice attribute);
/* The tags of a table as JSON, an array; empty when it has none, or when the endpoint knows of none. */
struct slice table_tags(const struct place *place, struct arena *arena, struct slice arn);
/* All names, or NULL after complaining; *count of them. */
const char **table_names(const struct place *place, struct arena *arena, size_t *count);

#endif
