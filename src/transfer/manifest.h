/* The keys and manifests of an export; manifest.c has the layout. */
#ifndef TRANSFER_MANIFEST_H
#define TRANSFER_MANIFEST_H

#include "api/api.h"

struct manifest {
    const struct api *api;
    const struct api_job *job; /* with its end, and what was counted */
    struct slice bucket, prefix, algorithm, kms_key, format, files_key;
    struct slice view; /* of an incremental export; empty: the default */
};

/* [PREFIX/]AWSDynamoDB/ID */
struct slice manifest_folder(struct arena *arena, struct slice prefix, struct slice id);
/* The MD5 of the bytes in base64. */
void manifest_put_md5(struct buf *out, struct slice bytes);
/* The line of a data file. */
void manifest_put_file(struct buf *out, struct slice key, struct slice bytes, int64_t items);
void manifest_put_summary(struct buf *out, const struct manifest *manifest);

#endif
