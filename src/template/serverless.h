/* What the files that translate serverless.yml share. */
#ifndef TEMPLATE_SERVERLESS_H
#define TEMPLATE_SERVERLESS_H

#include "template/internal.h"

struct serverless {
    struct template *template;
    struct arena *arena;
    const struct node *root, *provider;
    struct slice service, stage;
    struct node *resources; /* what is made */
    const struct node **end;
    bool has_rest, has_http;
};

/* One function while its parts are made. */
struct serverless_function {
    const struct node *source; /* by its name in the file */
    struct slice prefix;       /* of all ids that belong to it: hello-you is HelloDashyou */
    struct slice id;           /* the function's own */
};

void serverless_put(struct serverless *serverless, const struct node *where, struct slice id,
                    const char *type, const struct node *properties);
void serverless_note(struct serverless *serverless, const struct node *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- serverless_events.c ---- */

void serverless_events(struct serverless *serverless, const struct serverless_function *function);
/* The APIs that functions have routes of. */
void serverless_apis(struct serverless *serverless);

#endif
