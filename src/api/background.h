/* What the operations on exports, imports and bulk writes share: beginning a job once, and finding it by its ARN. */
#ifndef API_BACKGROUND_H
#define API_BACKGROUND_H

#include "api/settings.h"

extern const struct shape shape_bucket, shape_bucket_owner, shape_key_prefix, shape_output_prefix,
    shape_sse_algorithm,
    shape_sse_key, shape_client_token, shape_job_arn, shape_compression, shape_list_size;

/* The kind of the notes of tokens begins so, and ends in the kind of the jobs. */
#define BACKGROUND_TOKEN "token/"

struct slice background_kind_name(enum api_job_kind kind);
void background_read(const struct map *fields, enum api_job_kind kind, struct slice id, struct api_job *out);
uint32_t background_count(struct engine *engine, struct arena *arena);
uint32_t background_count_of(struct engine *engine, struct arena *arena, enum api_job_kind kind);

/* The named members of the request as one JSON object, for api_job.request. */
struct slice background_request(struct api_call *call, const char *const *names);
/* ,"name":... as the request had it; nothing where it had none. */
void put_request_member(struct buf *out, struct arena *arena, const struct api_job *job, const char *name);
/* The same with a default, a word. */
void put_request_word(struct buf *out, struct arena *arena, const struct api_job *job, const char *name,
                      const char *otherwise);
/* ,"FailureCode":...,"FailureMessage":... where it has failed. */
void put_job_failure(struct buf *out, const struct api_job *job);

/* A job between begin and finish. */
struct background_start {
    struct api_job job;
    struct verdict verdict;
    bool has_token; /* the client's own */
    /* On the writer's thread, once it is sure that the job is a new one: may reject it, and fill in the rest. */
    bool (*check)(struct background_start *start, struct batch *batch);
    const char *conflict, *conflict_words; /* for a token that was used for another job */
    const struct api *api;
};
/* Gives the job its id, token and time, and hands it to the writer. Keeps `start`: it must be in the call's arena. */
void background_submit(struct api_call *call, const struct node *token, struct background_start *start);
/* In finish: the job, new or begun before with the same token; NULL when it was refused. */
const struct api_job *background_finish(struct api_call *call);

/* The job that an ARN names; refuses in the words of its kind. */
struct background_words {
    enum api_job_kind kind;
    const char *invalid;   /* ValidationException */
    const char *not_found; /* the exception's short name, */
    const char *missing;   /* ... and its sentence, before the ARN */
    const char *elsewhere; /* the sentence for another region's; NULL: the same */
};
bool background_by_arn(struct api_call *call, struct slice arn, const struct background_words *words,
                       struct api_job *out);

/* A page of jobs of a kind, newest first: calls `put` for those that `wants` (NULL: all), and writes NextToken. */
struct background_list {
    struct api_call *call;
    enum api_job_kind kind;
    struct slice table; /* only of this one; empty: of all */
    int64_t limit;
    bool (*wants)(struct background_list *list, const struct api_job *job);
    void (*put)(struct background_list *list, const struct api_job *job);
    int64_t count;
    bool more;
    struct slice last;
};
/* `size` and `token`: members of the request. Refuses, or writes {"member":[...],"NextToken":...}. */
void background_list_put(struct background_list *list, const char *member, const struct node *size,
                         const struct node *token);

#endif
