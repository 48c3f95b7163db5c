/* A whole Quipu in memory behind HTTP on a free port of the loopback, for tests of what calls one. */
#ifndef TEST_UNIT_SERVED_H
#define TEST_UNIT_SERVED_H

#include <pthread.h>
#include <stdio.h>

#include "base/fail.h"
#include "web/web.h"

struct served {
    struct dynamo *dynamo; /* the local door to the same data */
    struct web *web;
    struct net_server *server;
    pthread_t thread;
    char url[64];
};

static inline void *served_main(void *argument)
{
    net_server_run(argument);
    return NULL;
}

/* credentials: a file of keys to check signatures against, or NULL. */
static inline void served_start(struct served *served, const char *credentials)
{
    char error[700];
    served->dynamo = dynamo_open(":memory:", NULL, error, sizeof error);
    ensure(served->dynamo);
    served->web = web_new(&(struct web_options){.dynamo = served->dynamo,
                                                .engine = dynamo_engine(served->dynamo),
                                                .credentials = credentials,
                                                .region = "us-east-1",
                                                .threads = 1,
                                                .clock = &clock_system},
                          error, sizeof error);
    ensure(served->web);
    served->server = net_server_new(&(struct net_options){.host = "127.0.0.1",
                                                          .threads = 1,
                                                          .limits = net_limits_default,
                                                          .handler = web_handler(served->web)},
                                    error, sizeof error);
    ensure(served->server);
    web_set_server(served->web, served->server);
    snprintf(served->url, sizeof served->url, "http://127.0.0.1:%u", net_server_port(served->server));
    ensure(pthread_create(&served->thread, NULL, served_main, served->server) == 0);
}

static inline void served_stop(struct served *served)
{
    net_server_stop(served->server);
    pthread_join(served->thread, NULL);
    dynamo_close(served->dynamo);
    net_server_free(served->server);
    web_free(served->web);
}

#endif
