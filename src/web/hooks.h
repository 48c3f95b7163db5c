/* The hooks for tests under /_quipu/: they change time, state and luck. Off unless the server was started
 * with --test-hooks. doc/test-hooks.md tells users about them. */
#ifndef WEB_HOOKS_H
#define WEB_HOOKS_H

#include "web/internal.h"

struct hooks;

struct hooks *hooks_new(struct engine *engine, struct api *api, struct web_clock *clock);
void hooks_free(struct hooks *hooks);
/* Answers a request whose path begins with /_quipu/: the body into exchange->reply, the HTTP status as the
 * result. */
int hooks_serve(struct hooks *hooks, struct http_exchange *exchange);
/* Writes what a rule wants this request to meet and answers its status: an exception, its name in *error, or a batch of
 * which nothing was processed. 0 when no rule strikes. */
int hooks_fault(struct hooks *hooks, struct slice operation, struct http_exchange *exchange,
                const char **error);

#endif
