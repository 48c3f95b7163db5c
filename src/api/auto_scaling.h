/* What the files of Application Auto Scaling share. */
#ifndef API_AUTO_SCALING_H
#define API_AUTO_SCALING_H

#include "api/settings.h"

/* The setting of a table that holds its targets, maps by "RESOURCE DIMENSION". */
#define SCALABLE_TARGETS "scalableTargets"

extern const struct shape shape_scaling_tags;

/* Adds tags of a request to a target, or replaces their values. False: the verdict says why. */
bool scaling_tags_add(struct verdict *verdict, const struct node *tags, struct map *target);
void put_scalable_target_arn(struct buf *out, const struct api *api, const struct map *target);

#endif
