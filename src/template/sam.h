/* What the files that translate SAM share. */
#ifndef TEMPLATE_SAM_H
#define TEMPLATE_SAM_H

#include "template/internal.h"

struct sam {
    struct template *template;
    struct arena *arena;
    const struct node *source;  /* the Resources of the template */
    const struct node *globals; /* NULL: none */
    struct node *resources;     /* what is made of them */
    const struct node **end;
    bool has_rest, has_http; /* functions have events of an API that nobody describes */
};

/* One function while its parts are made. */
struct sam_function {
    const struct node *source;     /* the resource, by its id */
    const struct node *properties; /* with those of Globals */
    const struct node *target;     /* its ARN, or its alias' */
    struct slice alias;            /* the alias' own id; empty: it has none */
};

/* Adds a resource that stands where `where` does, with the condition of the resource that it comes from. Properties
 * may be NULL. */
void sam_put(struct sam *sam, const struct node *where, struct slice id, const char *type,
             const struct node *properties);
void sam_note(struct sam *sam, const struct node *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Two texts as one, in the arena. */
struct slice sam_id(struct sam *sam, struct slice first, const char *rest);
/* The members of a list of names, "A B C", in their order. */
struct node *sam_pick(struct sam *sam, const struct node *object, const char *names);

/* ---- sam_events.c ---- */

void sam_events(struct sam *sam, const struct sam_function *function);

/* ---- sam_api.c ---- */

/* The event of a function that is an API's route. */
void sam_route(struct sam *sam, const struct sam_function *function, const struct node *event, bool is_rest);
void sam_api(struct sam *sam, const struct node *source, const struct node *properties, bool is_rest);
/* The APIs that nobody describes. */
void sam_implicit_apis(struct sam *sam);

#endif
