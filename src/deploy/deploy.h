/* Deploying: what a template describes is compared with what a server has, and the server is changed where they differ.
 *
 * A *stack* is what one template has made, under one name. Its record is a document of the collection `quipu-stacks` on
 * the server itself (pattern/document.c), so it works on every engine and anybody can read it.
 *
 * Each kind of resource (kinds.c has the list) knows two flat JSON objects, its *forms*: the one that the template asks
 * for and the one that the server has. One function compares them, member by member; the kind then makes, changes or
 * removes the thing by the server's public APIs. All calls go through a door that the caller gives.
 *
 *   - The record names a thing before it is made, and until it is gone. So whatever interrupts a deploy, the next one
 *       finds all that was begun.
 *   - A deploy that finds nothing to do makes no call that changes anything.
 *   - Only the holder of the stack's lease changes it, and the record only on the version that was read.
 *   - Data is deleted only where the caller has asked for that in so many words (delete_data).
 *   - What a stack has not made is not changed by it, unless the caller asks for that (adopt).
 *
 * Everything lives in the arena of the deploy. */
#ifndef DEPLOY_DEPLOY_H
#define DEPLOY_DEPLOY_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/node.h"

#define DEPLOY_COLLECTION "quipu-stacks" /* of documents: a stack's record by its name */

/* ---- the door ---- */

struct deploy_request {
    const char *
        service; /* that it is signed for: "lambda", "scheduler", "quipu"; "dynamodb": the path is an operation */
    const char *method, *path, *query;
    struct slice body;
    const char *header; /* a further one; NULL: none */
    bool is_upload;     /* may take minutes */
};

struct deploy_reply {
    int status;
    const struct node *json;
    const char *error; /* NULL: all went well */
    const char *message;
    struct slice etag;
};

struct deploy_change;

/* A folder, or one file with this name and text. */
struct deploy_parcel {
    const char *folder;
    const struct node *patterns; /* which files of the folder, as serverless.yml has them; NULL: all */
    const char *name;
    struct slice text;
};

struct deploy_door {
    void *context;
    /* False when nobody answered, after complaining of it. */
    bool (*call)(void *context, struct arena *arena, const struct deploy_request *request,
                 struct deploy_reply *reply);
    /* An archive of it. False after complaining. */
    bool (*pack)(void *context, const struct deploy_parcel *parcel, struct buf *out);
    /* All of a file. False after complaining. */
    bool (*read)(void *context, const char *path, struct buf *out);
    /* A change begins (is_done false), or has been made. */
    void (*progress)(void *context, const struct deploy_change *change, bool is_done);
    void (*pause)(void *context, unsigned nth); /* before asking again */
    int64_t (*now_ms)(void *context);
    /* The owner of a lease is a process of this machine that runs no more. */
    bool (*is_gone)(void *context, struct slice owner);
};

/* ---- what is to be done ---- */

enum deploy_action {
    DEPLOY_SAME,
    DEPLOY_CREATE,
    DEPLOY_CHANGE,
    DEPLOY_REPLACE, /* removed, and made anew */
    DEPLOY_DELETE,
    DEPLOY_LEAVE, /* went away from the template, and stays: nobody asked for its removal, or its policy is Retain */
    DEPLOY_NOTHING, /* has no meaning here: a role, a log group */
    DEPLOY_UNKNOWN, /* not known here, and left out */
};

struct deploy_difference {
    struct slice member;
    const struct node *before, *after; /* NULL: none */
    bool is_exact;                     /* members that only `before` has count, too */
    bool replaces;                     /* cannot be changed */
    struct deploy_difference *next;
};

struct deploy_change {
    enum deploy_action action;
    struct slice id, type;
    const char *name;   /* the physical one */
    const char *reason; /* why it is unknown, stays or is replaced; NULL: there is nothing to say */
    bool holds_data;    /* that goes with it */
    struct deploy_difference *differences;
    struct deploy_change *next;
};

/* Something worth knowing. With `strict` those stop the deploy that are not only advice. */
struct deploy_note {
    const char *text;
    struct deploy_note *next;
};

struct deploy_options {
    const char *stack;
    const char *folder; /* of the template: what paths are relative to */
    const char *file;   /* for the record */
    const char *owner;  /* of the lease: a name of this process */
    bool prune, replace, delete_data, adopt, live;
    int64_t wait_ms; /* for another deploy of the stack to end */
};

/* ---- deploying ---- */

struct deploy;
struct template_given;

/* Learns where the server thinks it is. NULL is never answered: deploy_fault tells what went wrong. Keeps both. */
struct deploy *deploy_open(const struct deploy_door *door, const struct deploy_options *options);
void deploy_close(struct deploy *deploy);

/* Compares a template with the server; an empty text: nothing shall be left of the stack. False: see deploy_fault. */
bool deploy_plan(struct deploy *deploy, struct slice text, const struct template_given *given,
                 size_t given_count);
/* In the order of doing: what is made and changed, then what is deleted. */
const struct deploy_change *deploy_changes(const struct deploy *deploy);
const struct deploy_note *deploy_notes(const struct deploy *deploy);
/* Whether anything is to be done at all. */
bool deploy_is_needed(const struct deploy *deploy);
/* Does it, and waits until it works. The plan is made again where another deploy came in between. */
bool deploy_run(struct deploy *deploy);

/* The first sentence about what went wrong; NULL: nothing, or the door has told it. */
const char *deploy_fault(const struct deploy *deploy);
/* Because another deploy is under way. */
bool deploy_is_busy(const struct deploy *deploy);
/* A JSON object; valid after the run, and after a plan with nothing to do. */
struct slice deploy_outputs(const struct deploy *deploy);
/* All stacks: the list of documents, in the arena of the deploy; NULL after a fault. */
const struct node *deploy_list(struct deploy *deploy);

#endif
