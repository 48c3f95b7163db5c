/* Databases of their own for each access key and region (`--separate-regions`), as DynamoDB Local has them
 * when it is started without -sharedDb.
 *
 * Each is a whole database, in memory or in a folder below the server's data, opened when its first request
 * comes and closed with the server. A request names its database by its credential scope, signed or not:
 * this separates test runs that share a server, it keeps nobody out (`--credentials` does). Requests without
 * a scope belong to the server's own database.
 *
 * Databases are only ever added, so a loop reads the list without the lock. */
#include "web/regions.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fail.h"
#include "base/limits.h"

#define NAME_BYTES (LIMIT_ACCESS_KEY_BYTES + 1 + LIMIT_REGION_BYTES + 1)

struct region_database {
    char name[NAME_BYTES]; /* KEY_REGION, as DynamoDB Local names its files */
    char region[LIMIT_REGION_BYTES + 1];
    struct dynamo *dynamo;
};

struct web_regions {
    pthread_mutex_t lock; /* held by who adds */
    struct region_database databases[LIMIT_REGION_DATABASES];
    _Atomic uint32_t count;
    uint32_t most;
    struct dynamo_options options;
    char *folder; /* NULL: in memory */
};

struct web_regions *web_regions_open(const char *folder, uint32_t most, const struct dynamo_options *options)
{
    struct web_regions *regions = must_zero(1, sizeof *regions);
    pthread_mutex_init(&regions->lock, NULL);
    ensure(most <= LIMIT_REGION_DATABASES);
    regions->most = most;
    regions->options = *options;
    if (folder) regions->folder = strdup(folder);
    ensure(!folder || regions->folder);
    return regions;
}

void web_regions_close(struct web_regions *regions)
{
    for (uint32_t i = 0; i < regions->count; i++) dynamo_close(regions->databases[i].dynamo);
    pthread_mutex_destroy(&regions->lock);
    free(regions->folder);
    free(regions);
}

bool web_regions_failed(struct web_regions *regions, char *reason, size_t reason_len)
{
    uint32_t count = atomic_load(&regions->count);
    for (uint32_t i = 0; i < count; i++)
        if (engine_has_failed(dynamo_engine(regions->databases[i].dynamo), reason, reason_len)) return true;
    return false;
}

/* ---- finding ---- */

/* A region has no '_', so KEY_REGION stands for one pair only. */
static bool is_name(struct slice text, size_t most, bool may_underscore)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && !(c >= '0' && c <= '9') && c != '-' && !(c == '_' && may_underscore)) return false;
    }
    return text.len > 0 && text.len <= most;
}

static bool take_part(struct slice *rest, struct slice *part)
{
    const char *slash = rest->len ? memchr(rest->data, '/', rest->len) : NULL;
    if (!slash) return false;
    *part = (struct slice){rest->data, (size_t)(slash - rest->data)};
    *rest = slice_from(*rest, part->len + 1);
    return true;
}

/* Credential=KEY/DATE/REGION/SERVICE/aws4_request; false where there is none. */
static bool read_scope(struct slice authorization, struct slice *key, struct slice *region)
{
    struct slice rest = authorization, word = SLICE("Credential="), date;
    while (rest.len && !slice_starts(rest, word)) rest = slice_from(rest, 1);
    if (!rest.len) return false;
    rest = slice_from(rest, word.len);
    return take_part(&rest, key) && take_part(&rest, &date) && take_part(&rest, region);
}

static int find_named(const struct web_regions *regions, const char *name)
{
    uint32_t count = atomic_load(&regions->count);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(regions->databases[i].name, name) == 0) return (int)i;
    return REGION_REFUSED;
}

/* "DIR/regions/KEY_REGION" in *path. */
static bool make_folder(const struct web_regions *regions, const char *name, char *path, size_t path_len,
                        char *error, size_t error_len)
{
    int len = snprintf(path, path_len, "%s/regions", regions->folder);
    if (len < 0 || (size_t)len + 1 + strlen(name) >= path_len) {
        snprintf(error, error_len, "the data folder's name is too long");
        return false;
    }
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        snprintf(error, error_len, "cannot make the folder %s: %s", path, strerror(errno));
        return false;
    }
    snprintf(path + len, path_len - (size_t)len, "/%s", name);
    return true;
}

static int add(struct web_regions *regions, const char *name, struct slice region, char *error,
               size_t error_len)
{
    char path[4096] = ":memory:";
    uint32_t count = atomic_load(&regions->count);
    struct region_database *database = &regions->databases[count];
    if (count == regions->most) {
        snprintf(error, error_len, "--separate-regions has room for %u pairs of key and region%s",
                 regions->most,
                 regions->most < LIMIT_REGION_DATABASES
                     ? ", since so few files may be open at a time (ulimit -n of the server)"
                     : "");
        return REGION_REFUSED;
    }
    if (regions->folder && !make_folder(regions, name, path, sizeof path, error, error_len))
        return REGION_REFUSED;
    strcpy(database->name, name);
    snprintf(database->region, sizeof database->region, "%.*s", SLICE_ARG(region));
    struct dynamo_options options = regions->options;
    options.region = database->region;
    database->dynamo = dynamo_open(path, &options, error, error_len);
    if (!database->dynamo) return REGION_REFUSED;
    atomic_store(&regions->count, count + 1);
    return (int)count;
}

int regions_find(struct web_regions *regions, struct slice authorization, char *error, size_t error_len)
{
    char name[NAME_BYTES];
    struct slice key, region;
    if (!read_scope(authorization, &key, &region)) return REGION_NONE;
    if (!is_name(key, LIMIT_ACCESS_KEY_BYTES, true) || !is_name(region, LIMIT_REGION_BYTES, false)) {
        snprintf(
            error, error_len,
            "with --separate-regions an access key is of up to %d letters, digits, '-' and '_', a region "
            "of up to %d letters, digits and '-'",
            LIMIT_ACCESS_KEY_BYTES, LIMIT_REGION_BYTES);
        return REGION_REFUSED;
    }
    snprintf(name, sizeof name, "%.*s_%.*s", SLICE_ARG(key), SLICE_ARG(region));
    int place = find_named(regions, name);
    if (place >= 0) return place;
    pthread_mutex_lock(&regions->lock);
    place = find_named(regions, name); /* another loop may have been quicker */
    if (place < 0) place = add(regions, name, region, error, error_len);
    pthread_mutex_unlock(&regions->lock);
    return place;
}

struct dynamo *regions_at(const struct web_regions *regions, int place)
{
    ensure(place >= 0 && (uint32_t)place < atomic_load(&regions->count));
    return regions->databases[place].dynamo;
}

void regions_turn_end(const struct web_regions *regions, struct dynamo_turn *turns)
{
    uint32_t count = atomic_load(&regions->count);
    for (uint32_t i = 0; i < count; i++) dynamo_turn_end(regions->databases[i].dynamo, &turns[i]);
}
