/* What the files of this room share. */
#ifndef DEPLOY_INTERNAL_H
#define DEPLOY_INTERNAL_H

#include <stdint.h>

#include "deploy/deploy.h"
#include "template/template.h"

struct kind;

/* One thing of the stack: of the template, or of the record alone. */
struct resource {
    struct deploy_change change;            /* first: what the caller sees of it */
    const struct kind *kind;                /* NULL: unknown */
    const struct template_resource *source; /* NULL: only the record has it */
    const struct node *properties;          /* resolved */
    const struct node *want, *have;         /* forms; have NULL: it is not there */
    const struct node *described;           /* what the server says of it, for attributes; NULL: nothing */
    struct slice code;                      /* the archive of a function or a layer */
    const char *directory;                  /* its folder, where it runs in place */
    const char *recorded_name;              /* that the record has for it; NULL: none */
    const char *old_name;                   /* the one that it had before, and that is to go; NULL: none */
    const char *data;     /* what the kind wants to be remembered in the record; NULL: nothing */
    const char *end_data; /* in place of that when all is done; NULL: the same */
    bool is_recorded, is_retained, is_checked;
    bool is_settled; /* it is as the template wants it: the server need not be asked again */
    struct resource *next;
};

/* A kind of resource. All functions answer false after deploy_fail. */
struct kind {
    const char *type;
    const char *name_member; /* "TableName"; NULL: it has no name of its own */
    size_t name_bytes;       /* how long one may be */
    const char *known;       /* the properties that are understood: "TableName KeySchema ..." */
    const char *replacing;   /* members of the form that cannot be changed */
    const char *loose;       /* members whose parts the server fills up with defaults */
    bool is_numbered;        /* the server gives its physical name */
    bool keeps_data;         /* tables */
    /* The form that the properties ask for. */
    bool (*want)(struct deploy *deploy, struct resource *resource, struct buf *out);
    /* The form that the server has; nothing is written where the thing is not there. */
    bool (*have)(struct deploy *deploy, struct resource *resource, struct buf *out);
    bool (*create)(struct deploy *deploy, struct resource *resource);
    bool (*update)(struct deploy *deploy, struct resource *resource);
    bool (*remove)(struct deploy *deploy, struct resource *resource);
    /* An attribute, or what Ref stands for (name empty); SLICE_NONE: not known before it is made. */
    struct slice (*attribute)(struct deploy *deploy, struct resource *resource, struct slice name);
};

struct deploy {
    const struct deploy_door *door;
    const struct deploy_options *options;
    struct arena arena;
    struct slice region, account;                /* of the server */
    struct resource *resources, **resources_end; /* in the order of making */
    struct deploy_note *notes, **notes_end;
    const char *fault; /* the first one */
    bool was_silent;   /* the door has complained already */
    bool is_busy;      /* another deploy is under way */
    /* the record */
    struct slice etag; /* of the record that was read; empty: there was none */
    const struct node *record;
    int64_t fence, lease_until_ms;
    struct slice outputs; /* JSON, an object */
    /* the template */
    struct slice text; /* empty: the stack is to go */
    const struct template_given *given;
    size_t given_count;
    struct template *template;
    struct resource *asking; /* whose properties are being resolved */
};

/* ---- plan.c ---- */

struct resource *resource_find(struct deploy *deploy, struct slice id);
/* A thing by its kind and physical name, of the template; NULL: there is none. */
struct resource *resource_named(struct deploy *deploy, const char *type, struct slice name);

/* ---- call.c ---- */

/* Always false; the first sentence stays. */
bool deploy_fail(struct deploy *deploy, const char *format, ...) __attribute__((format(printf, 2, 3)));
void deploy_note(struct deploy *deploy, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *deploy_text(struct deploy *deploy, struct slice text);

/* Asks; false when nobody answered. */
bool deploy_ask(struct deploy *deploy, const struct deploy_request *request, struct deploy_reply *reply);
/* The same for who needs a reply: an error is a fault of the resource. NULL: any. */
bool deploy_call(struct deploy *deploy, const struct resource *resource, const struct deploy_request *request,
                 struct deploy_reply *reply);
/* An operation of DynamoDB. The body is freed. */
bool table_ask(struct deploy *deploy, const char *operation, struct buf *body, struct deploy_reply *reply);
bool table_call(struct deploy *deploy, const struct resource *resource, const char *operation,
                struct buf *body, struct deploy_reply *reply);
/* A path with one or two names in it, escaped. */
const char *path_with(struct deploy *deploy, const char *format, struct slice first, struct slice second);
/* GET of a path; *json stays NULL where there is nothing of that name. */
bool rest_get(struct deploy *deploy, const struct resource *resource, const char *service, const char *path,
              const char *query, const struct node **json);
/* Sends a body, which is freed; NULL: none. What is not there is fine for a DELETE. *json may be NULL. */
bool rest_send(struct deploy *deploy, const struct resource *resource, const char *service,
               const char *method, const char *path, struct buf *body, const struct node **json);

/* ---- form.c ---- */

/* A member of a form: its name, how it is written, and its default as JSON (NULL: none, it is left out then).
 * s a text, n a number, b a truth value, j anything, l a list of texts, m an object of texts */
struct form_member {
    const char *name;
    char type;
    const char *otherwise;
};
/* Writes the members that the object has, in their types; `out` has an open object. */
void form_put(struct buf *out, const struct node *object, const struct form_member *members, size_t count);
void form_put_value(struct buf *out, const struct node *value, char type);
/* Tags as an object, whether they are one or a list of {Key, Value}. */
void form_put_tags(struct buf *out, const char *name, const struct node *tags);
/* Equal but for members that are empty. Loose: `have` may have more. */
bool form_equal(const struct node *want, const struct node *have, bool is_loose);
struct deploy_difference *form_compare(struct deploy *deploy, const struct kind *kind,
                                       const struct node *want, const struct node *have);
bool resource_differs(const struct resource *resource, const char *member);
/* Any of "A B C". */
bool resource_differs_in(const struct resource *resource, const char *members);
bool word_is_in(const char *words, struct slice word);

/* The last part of an ARN, behind the character. */
struct slice arn_last(struct slice arn, char separator);
/* Of a function's name or ARN: the name alone, and the qualifier (empty: none). */
void function_split(struct slice text, struct slice *name, struct slice *qualifier);

/* ---- kinds.c ---- */

const struct kind *kind_find(struct slice type);
/* Has no meaning here, and needs none. */
bool type_is_nothing(struct slice type);
/* What Ref and GetAtt of a thing answer that is not made here. */
struct slice stranger_attribute(struct deploy *deploy, const struct resource *resource, struct slice name);

extern const struct kind kind_table, kind_global_table, kind_function, kind_layer, kind_version, kind_alias,
    kind_mapping, kind_event_invoke, kind_url, kind_schedule, kind_schedule_group, kind_rule, kind_http_api,
    kind_rest_api, kind_route, kind_method, kind_http_stage, kind_rest_stage, kind_deployment;

/* Whether a deployment of a REST API makes no stage. */
bool deployment_is_nothing(const struct deploy *deploy, const struct template_resource *source);

/* ---- gateway.c ---- */

/* What Ref of an integration or a resource of an API stands for. */
struct slice gateway_part(struct deploy *deploy, const struct resource *resource);
/* A URL of an API on AWS as that of the API here; any other text as it is. */
struct slice gateway_local_url(struct deploy *deploy, struct slice text);

/* ---- code.c ---- */

/* The archive, or the folder, of a function or a layer: resource->code or ->directory. False after deploy_fail. */
bool code_find(struct deploy *deploy, struct resource *resource, const struct node *code);
void code_put_hash(struct buf *out, struct slice code);
/* Notes on what would have to be built or installed first. */
void code_check(struct deploy *deploy, const struct resource *resource, const char *folder);

/* ---- record.c ---- */

bool record_read(struct deploy *deploy);
/* All of the stack's things as they are known now. */
bool record_write(struct deploy *deploy, const char *state);
bool record_remove(struct deploy *deploy);
/* What would be written at the end is what is there. */
bool record_is_up_to_date(struct deploy *deploy);
bool lease_take(struct deploy *deploy);
bool lease_keep(struct deploy *deploy, int64_t for_ms);
void lease_release(struct deploy *deploy);

#endif
