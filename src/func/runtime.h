/* What the files of the Runtime API share. */
#ifndef FUNC_RUNTIME_H
#define FUNC_RUNTIME_H

#include "func/pool.h"

/* {"errorMessage":..., "errorType":...}; both are plain texts. */
void runtime_reply_error(struct http_exchange *exchange, int status, const char *type, const char *message);
#define RUNTIME_PRELUDE_TYPE "application/vnd.awslambda.http-integration-response"
/* ---- runtime_stream.c: replies as they come ---- */
bool runtime_streams(void *instance, struct http_exchange *exchange);
bool runtime_stream_piece(void *instance, struct http_exchange *exchange, struct slice bytes);
void runtime_stream_torn(void *instance, struct http_exchange *exchange);
/* The post that has a stream is whole; false: it was too large, and its run has failed. */
bool runtime_stream_end(struct http_exchange *exchange);
/* runtime_api.c: the run's reply is too large to be sent. */
void runtime_stream_cut(struct instance *instance, struct slice id);

/* Whether the path is of the Runtime API, or of those for extensions. */
bool runtime_owns_path(struct slice path);
void runtime_serve_next(struct instance *instance, struct http_exchange *exchange);
/* It waits until the process ends: there are no events for extensions here. */
void runtime_serve_extension_next(struct instance *instance, struct http_exchange *exchange);

#endif
