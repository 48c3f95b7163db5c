/* What the files with functions of templates share. */
#ifndef TEMPLATE_RESOLVE_H
#define TEMPLATE_RESOLVE_H

#include "template/internal.h"

struct resolver {
    struct template *template;
    struct arena *arena;
    const struct template_ask *ask;
    struct template_notes *notes; /* NULL: what is not understood was told before */
    const struct node *call;      /* the innermost function */
    bool is_condition;            /* resources are not there yet */
};

/* *out is NULL where nothing is left. */
bool resolve(struct resolver *resolver, const struct node *value, const struct node **out);
bool judge(struct resolver *resolver, const struct node *rule, bool *holds);
/* The text of a scalar; an error, with the function's name, when it is none. */
bool text_of(struct resolver *resolver, const struct node *value, const char *whose, struct slice *text);
/* Counts work; an error when there is too much of it. */
bool resolver_work(struct resolver *resolver, const struct node *where, size_t amount);

bool call_ref(struct resolver *resolver, const struct node *argument, const struct node **out);
bool call_get_att(struct resolver *resolver, const struct node *argument, const struct node **out);
bool call_sub(struct resolver *resolver, const struct node *argument, const struct node **out);
bool call_if(struct resolver *resolver, const struct node *argument, const struct node **out);

/* ---- functions.c ---- */

bool call_join(struct resolver *resolver, const struct node *argument, const struct node **out);
bool call_select(struct resolver *resolver, const struct node *argument, const struct node **out);
bool call_split(struct resolver *resolver, const struct node *argument, const struct node **out);
bool call_find_in_map(struct resolver *resolver, const struct node *argument, const struct node **out);
bool call_import_value(struct resolver *resolver, const struct node *argument, const struct node **out);
bool call_base64(struct resolver *resolver, const struct node *argument, const struct node **out);
bool call_cidr(struct resolver *resolver, const struct node *argument, const struct node **out);
bool call_get_azs(struct resolver *resolver, const struct node *argument, const struct node **out);
bool call_length(struct resolver *resolver, const struct node *argument, const struct node **out);
bool call_to_json_string(struct resolver *resolver, const struct node *argument, const struct node **out);

#endif
