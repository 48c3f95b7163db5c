/* Tags in requests: CreateTable takes them too. */
#ifndef API_TAGS_H
#define API_TAGS_H

#include "api/tables.h"

/* Each tag by itself, and no key twice. */
bool check_tags(struct verdict *verdict, const struct node *list);
/* Adds the tags of a checked list, or replaces values; too many are rejected. */
bool merge_tags(struct verdict *verdict, const struct node *list, struct table_definition *definition);

#endif
