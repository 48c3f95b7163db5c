/* What the two files of the Runtime API share. */
#ifndef FUNC_RUNTIME_H
#define FUNC_RUNTIME_H

#include "func/pool.h"

/* {"errorMessage":..., "errorType":...}; both are plain texts. */
void runtime_reply_error(struct http_exchange *exchange, int status, const char *type, const char *message);
/* Whether the path is of the Runtime API, or of those for extensions. */
bool runtime_owns_path(struct slice path);
void runtime_serve_next(struct instance *instance, struct http_exchange *exchange);
/* It waits until the process ends: there are no events for extensions here. */
void runtime_serve_extension_next(struct instance *instance, struct http_exchange *exchange);

#endif
