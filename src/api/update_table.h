/* What update_table.c and update_indexes.c share: an UpdateTable between begin and finish. */
#ifndef API_UPDATE_TABLE_H
#define API_UPDATE_TABLE_H

#include "api/tables.h"

struct table_update {
    struct node input;
    struct slice name;
    struct verdict verdict;
    struct table_definition *before,
        *after; /* copies of the definition as the writer found it; after gets changed */
    const struct table *table; /* as the writer found it */
    const struct api *api;
    int64_t now_ms;
    int64_t items, bytes;
};

extern const struct shape shape_index_updates, shape_vector_updates;

/* What can be said about the list without knowing the table. */
bool check_index_updates(struct verdict *verdict, const struct node *list);
/* True when the list creates or deletes an index. */
bool builds_indexes(const struct node *list);
/* Updates, creates and deletes the indexes of update->after. `attributes` are those that the request itself
 * defines. */
bool apply_index_updates(struct table_update *update, const struct node *list,
                         const struct attributes *attributes);
/* A table that leaves on-demand mode must get units for each of its global indexes. */
bool check_index_units(struct table_update *update);

/* The same for VectorIndexUpdates (update_vectors.c). */
bool check_vector_updates(struct verdict *verdict, const struct node *list);
bool apply_vector_updates(struct table_update *update, const struct node *list,
                          const struct attributes *attributes);
/* Only one index at a time is created or deleted. */
bool reject_online_index(struct verdict *verdict);

#endif
