/* Opening by name: a folder, memory, or a URL. For the first two the whole database is put together here, for
 * programs that embed it; a server puts its parts together itself and comes in by dynamo_open_local. */
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "dynamo/internal.h"
#include "store/store.h"

#define CACHE_BYTES      (64 * 1024 * 1024ull)
#define BLOCK_CACHE_PART 8 /* of the cache, for the store's own blocks */

static struct store *open_store(const char *where, const struct dynamo_options *options, uint64_t cache_bytes,
                                char *error, size_t error_len)
{
    if (strcmp(where, ":memory:") == 0) return store_open_memory(NULL);
    return store_open_disk(&(struct store_options){.folder = where,
                                                   .read_only = options->read_only,
                                                   .create = !options->must_exist,
                                                   .cache_bytes = cache_bytes,
                                                   .open_files = options->open_files,
                                                   .clock = options->clock},
                           error, error_len);
}

/* The region that ARNs of an embedded database carry. */
static const char *embedded_region(const struct dynamo_options *options, char *error, size_t error_len)
{
    const char *region = options->region;
    if (!region) region = getenv("AWS_REGION");
    if (!region || !*region) region = getenv("AWS_DEFAULT_REGION");
    if (!region || !*region) region = "us-east-1";
    if (strlen(region) <= LIMIT_REGION_BYTES) return region;
    snprintf(error, error_len, "a region's name has at most %d bytes", LIMIT_REGION_BYTES);
    return NULL;
}

static struct dynamo *open_embedded(const char *where, const struct dynamo_options *options, char *error,
                                    size_t error_len)
{
    uint64_t cache = options->cache_bytes ? options->cache_bytes : CACHE_BYTES;
    const char *region = embedded_region(options, error, error_len);
    struct store *store = region ? open_store(where, options, cache / BLOCK_CACHE_PART, error, error_len)
                                 : NULL;
    if (!store) return NULL;
    struct engine_options engine_options = {.store = store,
                                            .durable = !options->unsynced && strcmp(where, ":memory:") != 0,
                                            .read_only = options->read_only,
                                            .cache_bytes = cache - cache / BLOCK_CACHE_PART,
                                            .clock = options->clock ? options->clock : &clock_system,
                                            .ttl_interval_ms = options->ttl_interval_ms,
                                            .stream_retention_ms = options->stream_retention_ms,
                                            .stream_shards = options->stream_shards,
                                            .records_no_change = options->records_no_change,
                                            .on_failure = options->on_failure,
                                            .failure_context = options->failure_context};
    struct engine *engine = engine_open(&engine_options, error, error_len);
    if (!engine) return NULL;
    char s3_folder[4096];
    int len = snprintf(s3_folder, sizeof s3_folder, "%s/" FOLDER_BUCKETS, where);
    bool on_disk = strcmp(where, ":memory:") != 0, has_own = on_disk && len > 0 && (size_t)len < sizeof s3_folder;
    struct local_parts parts = {.engine = engine,
                                .store = store,
                                .data = on_disk ? where : NULL,
                                .region = region,
                                .s3_folder = options->s3_folder ? options->s3_folder
                                             : has_own          ? s3_folder
                                                                : NULL};
    return local_open_owning(&parts, options, error, error_len);
}

static bool is_url(const char *where)
{
    return strncmp(where, "http://", 7) == 0 || strncmp(where, "https://", 8) == 0;
}

struct dynamo *dynamo_open(const char *where, const struct dynamo_options *options, char *error,
                           size_t error_len)
{
    static const struct dynamo_options defaults;
    if (!options) options = &defaults;
    if (!*where) {
        snprintf(error, error_len, "no folder and no URL was named");
        return NULL;
    }
    if (!is_url(where)) return open_embedded(where, options, error, error_len);
    return remote_open(where, options, error, error_len);
}
