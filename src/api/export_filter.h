/* FilterSpecification in the requests of exports. */
#ifndef API_EXPORT_FILTER_H
#define API_EXPORT_FILTER_H

#include "api/items.h"
#include "api/tables.h"

extern const struct shape shape_export_filter;

/* table NULL: only what needs none is checked. Refuses. */
bool export_filter_read(struct api_call *call, const struct node *filter, const struct table *table,
                        struct api_filter *out);

#endif
