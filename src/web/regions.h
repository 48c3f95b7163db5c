/* Which database a request belongs to where each access key and region has its own; see regions.c. */
#ifndef WEB_REGIONS_H
#define WEB_REGIONS_H

#include "web/web.h"

enum { REGION_NONE = -1, REGION_REFUSED = -2 };

/* The place of the database that the Authorization header names, opened where need be. REGION_NONE: it names
 * none. REGION_REFUSED: and a sentence why. */
int regions_find(struct web_regions *regions, struct slice authorization, char *error, size_t error_len);
struct dynamo *regions_at(const struct web_regions *regions, int place);
/* A loop has a turn for each place: LIMIT_REGION_DATABASES. */
void regions_turn_end(const struct web_regions *regions, struct dynamo_turn *turns);

#endif
