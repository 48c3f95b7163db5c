/* Templates of applications as others write them: CloudFormation (also what `cdk synth` writes), SAM, serverless.yml.
 *
 * A template becomes one tree (base/node.h), whichever language it is written in. YAML's short forms are the long ones
 * there: `!Ref x` is {"Ref":"x"}, `!GetAtt a.b` is {"Fn::GetAtt":["a","b"]}, `!Sub` is {"Fn::Sub":...}.
 *
 *   - Nodes have the line and column of the text. Every error begins with file:line:column.
 *   - Bytes, nodes and depth are bounded (base/limits.h), and aliases count as what they stand for.
 *   - A name stands once in an object. Where the text has it twice, the last one counts, and a note tells it.
 *
 * Trees, notes and texts live in the arena that the caller gives. */
#ifndef TEMPLATE_TEMPLATE_H
#define TEMPLATE_TEMPLATE_H

#include "base/node.h"

#define TEMPLATE_ERROR_BYTES 512

/* What was not understood, in the order of finding. */
struct template_note {
    uint32_t line, column;
    struct slice text; /* a sentence without its full stop */
    struct template_note *next;
};

struct template_notes {
    struct template_note *first, *last;
    size_t count;
};

/* The tree of a text in YAML or JSON; the name is that of its file, for errors. NULL and the error when it cannot be
 * read. The tree keeps the text. */
const struct node *template_read(struct arena *arena, struct slice text, const char *name,
                                 struct template_notes *notes, char error[TEMPLATE_ERROR_BYTES]);

/* ---- a template ---- */

enum template_kind { TEMPLATE_CLOUDFORMATION, TEMPLATE_SAM, TEMPLATE_SERVERLESS };

struct template_given {
    struct slice name, value;
};

/* What a template may ask for from outside. */
struct template_world {
    const char *name;                   /* of the file */
    const struct template_given *given; /* parameters */
    size_t given_count;
    struct slice stack, region, account; /* AWS::StackName and so on; empty ones have values of their own */
    /* What serverless.yml asks for; each may be NULL. A file is named as the template names it. SLICE_NONE: no such. */
    struct slice (*read)(void *context, struct arena *arena, struct slice path);
    struct slice (*variable)(void *context, struct arena *arena, struct slice name); /* of the environment */
    void *context;
};

/* One resource, whose condition holds. Nodes are as the template has them: resolve them before use. */
struct template_resource {
    struct slice id, type;
    const struct node *source;     /* the whole of it: line and column, Metadata */
    const struct node *properties; /* NULL: none */
    bool is_retained;              /* DeletionPolicy is Retain */
    const size_t *needs;           /* those that must be there before it, by their place in the list */
    size_t need_count;
};

struct template_output {
    struct slice name;
    const struct node *value, *description, *export_name; /* of these, the last two may be NULL */
};

struct template
{
    enum template_kind kind;
    struct template_resource *resources; /* each behind all that it needs */
    size_t resource_count;
    struct template_output *outputs; /* those whose condition holds */
    size_t output_count;
    struct template_notes notes;
    const struct node *root; /* as plain CloudFormation */
    /* private */
    struct arena *arena;
    const struct template_world *world;
    struct parameter *parameters;
    size_t parameter_count;
    struct condition *conditions;
    size_t condition_count;
    char *error;
    size_t work; /* of functions, in this call */
    unsigned nesting; /* of what is being resolved: a condition may stand for another one */
};

/* Reads a template and checks it: parameters, conditions, references, their order. Keeps the arena, the text and the
 * world. NULL and the error when it cannot be used. */
struct template *template_open(struct arena *arena, struct slice text, const struct template_world *world,
                               char error[TEMPLATE_ERROR_BYTES]);

const struct template_resource *template_find(const struct template *template, struct slice id);

enum template_answer {
    TEMPLATE_KNOWN, /* *value is it */
    TEMPLATE_LATER, /* it is not known yet, or never will be: the text becomes ${Id.Attribute}, and unknown */
    TEMPLATE_NONE,  /* there is no such attribute: an error */
};

/* Who knows what Ref and GetAtt of a resource stand for. */
struct template_ask {
    /* An attribute; empty: what Ref stands for. Without a resource: what another stack exports by that name. */
    enum template_answer (*answer)(void *context, const struct template_resource *resource,
                                   struct slice attribute, struct slice *value);
    void *context;
};

/* The value without functions; *out is NULL where nothing is left of it (AWS::NoValue). False and the error when that
 * cannot be done. */
bool template_resolve(struct template *template, const struct node *value, const struct template_ask *ask,
                      const struct node **out, char error[TEMPLATE_ERROR_BYTES]);
/* The same for a resource's properties; an empty object where it has none. */
bool template_properties(struct template *template, const struct template_resource *resource,
                         const struct template_ask *ask, const struct node **out,
                         char error[TEMPLATE_ERROR_BYTES]);
/* Whether anything in the value is unknown. */
bool template_is_unknown(const struct node *value);

#endif
