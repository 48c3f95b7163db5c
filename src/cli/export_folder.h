/* An export of DynamoDB as it lies in a folder: what S3 has below AWSDynamoDB/ID, copied to this machine. */
#ifndef CLI_EXPORT_FOLDER_H
#define CLI_EXPORT_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "transfer/transfer.h"

struct export_file {
    const char *path;
    int64_t items; /* -1: nobody tells */
    enum transfer_format format;
    enum transfer_compression compression;
};

struct export_folder {
    const char *table; /* whose it is; NULL: nobody tells */
    struct export_file *files;
    size_t count;
};

/* The export whose manifest is in the folder, or somewhere below it; without any manifest the data files that lie
 * there. False after complaining: none, several, an incremental one, or something is missing. */
bool export_folder_read(const char *path, struct arena *arena, struct export_folder *out);

#endif
