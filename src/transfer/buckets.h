/* Buckets: objects by their keys. Two kinds behind one table of functions: folders of this machine (folder.c) and any
 * S3 over HTTP (s3.c). */
#ifndef TRANSFER_BUCKETS_H
#define TRANSFER_BUCKETS_H

#include <stdatomic.h>

#include "transfer/transfer.h"

/* Why something did not work, in the words of the service: FailureCode and FailureMessage of a job. */
struct transfer_failure {
    const char *code; /* static; NULL: nothing failed */
    char message[600];
};
/* Always false. */
bool transfer_fail(struct transfer_failure *failure, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

struct bucket_object {
    struct slice key;
    uint64_t bytes;
};

struct bucket_list {
    struct arena arena;
    struct bucket_object *objects; /* in the order of their keys */
    uint32_t count, capacity;
    uint64_t total_bytes;
};
void bucket_list_add(struct bucket_list *list, struct slice key, uint64_t bytes);
void bucket_list_free(struct bucket_list *list);

struct buckets;
struct buckets_methods {
    bool (*exists)(struct buckets *, struct slice bucket, struct transfer_failure *);
    bool (*list)(struct buckets *, struct slice bucket, struct slice prefix, struct bucket_list *,
                 struct transfer_failure *);
    struct transfer_source *(*open)(struct buckets *, struct slice bucket, const struct bucket_object *,
                                    struct transfer_failure *);
    bool (*put)(struct buckets *, struct slice bucket, struct slice key, struct slice bytes,
                struct transfer_failure *);
    void (*close)(struct buckets *);
};
struct buckets {
    const struct buckets_methods *methods;
    _Atomic bool stops; /* the process ends: nothing is tried again */
};

/* NULL: there is none, and no bucket exists. The folder need not be there yet. */
struct buckets *buckets_open_folder(const char *folder);
/* http(s)://host[:port]; region NULL: by AWS's variables and files, as the keys. NULL and a sentence when it cannot be
 * called at all. */
struct buckets *buckets_open_s3(const char *url, const char *region, char *error, size_t error_len);

static inline bool buckets_exist(struct buckets *buckets, struct slice bucket,
                                 struct transfer_failure *failure)
{
    return buckets->methods->exists(buckets, bucket, failure);
}

/* All objects whose keys begin with the prefix, which need not end where a folder does. */
static inline bool buckets_list(struct buckets *buckets, struct slice bucket, struct slice prefix,
                                struct bucket_list *out, struct transfer_failure *failure)
{
    return buckets->methods->list(buckets, bucket, prefix, out, failure);
}

static inline struct transfer_source *buckets_open(struct buckets *buckets, struct slice bucket,
                                                   const struct bucket_object *object,
                                                   struct transfer_failure *failure)
{
    return buckets->methods->open(buckets, bucket, object, failure);
}

/* The whole object at once: nobody sees a part of it. */
static inline bool buckets_put(struct buckets *buckets, struct slice bucket, struct slice key,
                               struct slice bytes, struct transfer_failure *failure)
{
    return buckets->methods->put(buckets, bucket, key, bytes, failure);
}

static inline void buckets_close(struct buckets *buckets)
{
    buckets->methods->close(buckets);
}

/* S3's own rule: letters, digits, '.', '-' and '_', of which the first and the last are a letter or digit. So it is
 * never "..", and never a path. */
bool bucket_name_is_valid(struct slice name);
/* A key that folders can hold: names between slashes, none of them too long, empty, "." or "..", no NUL. Else
 * *failure. */
bool bucket_key_check(struct slice key, struct transfer_failure *failure);

#endif
