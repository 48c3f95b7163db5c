/* Layers as people name them: "NAME" for the newest version, "NAME:3" for that one, or an ARN. */
#ifndef CLI_LAYER_COMMANDS_H
#define CLI_LAYER_COMMANDS_H

#include "cli/service.h"

/* False after complaining. */
bool layer_name_is_sound(const char *text, const struct arguments *arguments);
/* Whether both name the same layer, of whatever version. */
bool layer_names_agree(const char *a, const char *b);
/* The version that is meant, as ListLayerVersions tells it; NULL after complaining. */
const struct node *layer_find(struct service *service, struct arena *arena, const char *text);
/* Whether the version is for functions of the runtime; an empty one is not known. False after complaining. */
bool layer_fits(const struct node *version, struct slice runtime);
/* "NAME:3" of a version's ARN. */
struct slice layer_shown(struct slice arn);

#endif
