/* Buckets as folders: <folder>/<bucket>/<key>, so that `aws s3 sync` of one gives what S3 has.
 *
 * Names come from requests and are hostile. A bucket's name has no slash and begins with a letter or digit; a key is
 * walked part by part with openat, and no part may be a link (O_NOFOLLOW): nothing leads out of the bucket, whoever
 * changes folders meanwhile. The folder of a bucket itself may be a link: that is its owner's choice.
 *
 * An object is written under another name, synced and renamed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/random.h"
#include "transfer/buckets.h"

#define HIDDEN ".quipu-" /* names of objects that are being written begin so */

struct folder {
    struct buckets buckets;
    char *path; /* NULL: none */
};

bool transfer_fail(struct transfer_failure *failure, const char *code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    failure->code = code;
    vsnprintf(failure->message, sizeof failure->message, format, args);
    va_end(args);
    return false;
}

void bucket_list_add(struct bucket_list *list, struct slice key, uint64_t bytes)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? list->capacity * 2 : 64;
        list->objects = must_realloc(list->objects, list->capacity * sizeof *list->objects);
    }
    list->objects[list->count++] = (struct bucket_object){arena_copy(&list->arena, key), bytes};
    list->total_bytes += bytes;
}

void bucket_list_free(struct bucket_list *list)
{
    free(list->objects);
    arena_free(&list->arena);
}

/* ---- names ---- */

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool bucket_name_is_valid(struct slice name)
{
    if (name.len < 2 || name.len > 255) return false;
    if (!is_letter_or_digit(name.data[0]) || !is_letter_or_digit(name.data[name.len - 1])) return false;
    for (size_t i = 0; i < name.len; i++)
        if (!is_letter_or_digit(name.data[i]) && !memchr(".-_", name.data[i], 3)) return false;
    return true;
}

static bool part_is_valid(struct slice part)
{
    if (!part.len || part.len > NAME_MAX || memchr(part.data, 0, part.len)) return false;
    return !slice_equal(part, SLICE(".")) && !slice_equal(part, SLICE("..")) &&
           !slice_starts(part, SLICE(HIDDEN));
}

static bool key_is_invalid(struct transfer_failure *failure, const char *words, int most)
{
    return transfer_fail(failure, "S3InvalidKey", words, most);
}

bool bucket_key_check(struct slice key, struct transfer_failure *failure)
{
    struct slice rest = key;
    unsigned parts = 1;
    if (key.len > LIMIT_BUCKET_KEY_BYTES)
        return key_is_invalid(failure, "A key is at most %d bytes long", LIMIT_BUCKET_KEY_BYTES);
    for (size_t i = 0; i < key.len; i++) parts += key.data[i] == '/';
    if (parts > LIMIT_BUCKET_KEY_PARTS)
        return key_is_invalid(failure, "A key has at most %d names with a '/' between them",
                              LIMIT_BUCKET_KEY_PARTS);
    while (parts-- > 0) {
        struct slice part = slice_cut(&rest, '/');
        if (part.len > NAME_MAX)
            return key_is_invalid(failure, "A name in a key is at most %d bytes long", NAME_MAX);
        if (!part_is_valid(part))
            return transfer_fail(failure, "S3InvalidKey",
                                 "A name in a key is not empty, is not '.' or '..', does not begin with "
                                 "'" HIDDEN "' and has no NUL");
    }
    return true;
}

/* ---- walking ---- */

static bool no_bucket(struct folder *folder, struct slice bucket, struct transfer_failure *failure)
{
    const char *words =
        "The specified bucket does not exist (Service: Amazon S3; Status Code: 404; Error Code: "
        "NoSuchBucket)";
    if (!folder->path)
        return transfer_fail(failure, "S3NoSuchBucket", "%s: the server was started without --s3-folder",
                             words);
    return transfer_fail(failure, "S3NoSuchBucket", "%s: there is no folder %.200s/%.*s", words, folder->path,
                         SLICE_ARG(bucket));
}

static bool world_failed(struct transfer_failure *failure, const char *what, struct slice key)
{
    const char *code = errno == EACCES || errno == EPERM ? "S3AccessDenied" : "S3Error";
    return transfer_fail(failure, code, "The object '%.*s' cannot be %s: %s", SLICE_ARG(key), what,
                         strerror(errno));
}

static int open_bucket(struct folder *folder, struct slice bucket, struct transfer_failure *failure)
{
    char path[4096];
    int fd = -1;
    if (!bucket_name_is_valid(bucket) || !folder->path) return no_bucket(folder, bucket, failure), -1;
    int len = snprintf(path, sizeof path, "%s/%.*s", folder->path, SLICE_ARG(bucket));
    if (len > 0 && (size_t)len < sizeof path) fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) return fd;
    if (errno == EACCES)
        transfer_fail(failure, "S3AccessDenied", "The folder %.300s cannot be opened: %s", path,
                      strerror(errno));
    else
        no_bucket(folder, bucket, failure);
    return -1;
}

/* The folder that a key's last part belongs to; `parent` is closed, or it. -1: errno tells why. */
static int walk(int parent, struct slice *key, bool makes)
{
    char name[NAME_MAX + 1];
    while (memchr(key->data, '/', key->len)) {
        struct slice part = slice_cut(key, '/');
        snprintf(name, sizeof name, "%.*s", SLICE_ARG(part));
        bool is_made = makes && mkdirat(parent, name, 0777) == 0;
        int next = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int kept = errno;
        if (is_made) fsync(parent);
        close(parent);
        errno = kept;
        if (next < 0) return -1;
        parent = next;
    }
    return parent;
}

/* ---- the methods ---- */

static bool folder_exists(struct buckets *buckets, struct slice bucket, struct transfer_failure *failure)
{
    int fd = open_bucket((struct folder *)buckets, bucket, failure);
    if (fd < 0) return false;
    close(fd);
    return true;
}

struct listing {
    struct slice prefix;
    struct bucket_list *list;
    struct transfer_failure *failure;
    struct buf path; /* of the folder that is looked into, with a slash at its end */
};

static bool list_folder(struct listing *listing, int fd, unsigned depth);

static bool list_entry(struct listing *listing, int folder, const char *name, unsigned depth)
{
    struct stat status;
    struct buf *path = &listing->path;
    size_t before = path->len;
    bool fine = true;
    if (!part_is_valid(slice_of(name))) return true;
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return true; /* gone meanwhile */
    buf_slice(path, slice_of(name));
    if (S_ISDIR(status.st_mode)) buf_byte(path, '/');
    struct slice key = buf_view(path), prefix = listing->prefix;
    size_t shared = key.len < prefix.len ? key.len : prefix.len;
    bool may_match = memcmp(key.data, prefix.data, shared) == 0;
    if (S_ISDIR(status.st_mode) && may_match && depth < LIMIT_BUCKET_KEY_PARTS) {
        int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        fine = fd < 0 || list_folder(listing, fd, depth + 1);
    } else if (S_ISREG(status.st_mode) && slice_starts(key, prefix) && key.len <= LIMIT_BUCKET_KEY_BYTES) {
        if (listing->list->count == LIMIT_TRANSFER_OBJECTS)
            fine = transfer_fail(listing->failure, "S3TooManyObjects",
                                 "More than %d objects have the prefix '%.*s'", LIMIT_TRANSFER_OBJECTS,
                                 SLICE_ARG(prefix));
        else
            bucket_list_add(listing->list, key, (uint64_t)status.st_size);
    }
    path->len = before;
    return fine;
}

static bool list_folder(struct listing *listing, int fd, unsigned depth)
{
    DIR *folder = fdopendir(fd);
    bool fine = true;
    if (!folder) return close(fd), world_failed(listing->failure, "listed", buf_view(&listing->path));
    for (struct dirent *entry; fine && (entry = readdir(folder));)
        fine = list_entry(listing, fd, entry->d_name, depth);
    closedir(folder);
    return fine;
}

static int by_key(const void *a, const void *b)
{
    return slice_compare(((const struct bucket_object *)a)->key, ((const struct bucket_object *)b)->key);
}

static bool folder_list(struct buckets *buckets, struct slice bucket, struct slice prefix,
                        struct bucket_list *out, struct transfer_failure *failure)
{
    struct listing listing = {.prefix = prefix, .list = out, .failure = failure};
    int fd = open_bucket((struct folder *)buckets, bucket, failure);
    bool fine = fd >= 0 && list_folder(&listing, fd, 1);
    if (out->count > 1) qsort(out->objects, out->count, sizeof *out->objects, by_key);
    buf_free(&listing.path);
    return fine;
}

static struct transfer_source *folder_open(struct buckets *buckets, struct slice bucket,
                                           const struct bucket_object *object,
                                           struct transfer_failure *failure)
{
    struct slice rest = object->key;
    char name[NAME_MAX + 1];
    struct stat status;
    if (!bucket_key_check(rest, failure)) return NULL;
    int fd = open_bucket((struct folder *)buckets, bucket, failure);
    if (fd < 0) return NULL;
    int parent = walk(fd, &rest, false);
    snprintf(name, sizeof name, "%.*s", SLICE_ARG(rest));
    fd = parent < 0 ? -1 : openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (parent >= 0) close(parent);
    if (fd >= 0 && (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))) {
        close(fd);
        fd = -1;
        errno = EINVAL;
    }
    if (fd < 0) return world_failed(failure, "read", object->key), NULL;
    return transfer_source_of_file(fd);
}

static bool write_whole(int fd, struct slice bytes)
{
    while (bytes.len) {
        ssize_t done = write(fd, bytes.data, bytes.len);
        if (done < 0 && errno != EINTR) return false;
        if (done > 0) bytes = slice_from(bytes, (size_t)done);
    }
    return fsync(fd) == 0;
}

static bool put_file(int parent, const char *name, struct slice bytes)
{
    char hidden[64];
    struct random random;
    random_seed_from_system(&random);
    snprintf(hidden, sizeof hidden, HIDDEN "%016llx", (unsigned long long)random_next(&random));
    int fd = openat(parent, hidden, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) return false;
    bool fine = write_whole(fd, bytes);
    fine = close(fd) == 0 && fine;
    fine = fine && renameat(parent, hidden, parent, name) == 0 && fsync(parent) == 0;
    if (!fine) {
        int kept = errno;
        unlinkat(parent, hidden, 0);
        errno = kept;
    }
    return fine;
}

static bool folder_put(struct buckets *buckets, struct slice bucket, struct slice key, struct slice bytes,
                       struct transfer_failure *failure)
{
    struct slice rest = key;
    char name[NAME_MAX + 1];
    if (!bucket_key_check(key, failure)) return false;
    int fd = open_bucket((struct folder *)buckets, bucket, failure);
    if (fd < 0) return false;
    int parent = walk(fd, &rest, true);
    snprintf(name, sizeof name, "%.*s", SLICE_ARG(rest));
    bool fine = parent >= 0 && put_file(parent, name, bytes);
    if (!fine) world_failed(failure, "written", key);
    if (parent >= 0) close(parent);
    return fine;
}

static void folder_close(struct buckets *buckets)
{
    struct folder *folder = (struct folder *)buckets;
    free(folder->path);
    free(folder);
}

static const struct buckets_methods folder_methods = {.exists = folder_exists,
                                                      .list = folder_list,
                                                      .open = folder_open,
                                                      .put = folder_put,
                                                      .close = folder_close};

struct buckets *buckets_open_folder(const char *path)
{
    struct folder *folder = must_zero(1, sizeof *folder);
    folder->buckets.methods = &folder_methods;
    if (path) ensure((folder->path = strdup(path)));
    return &folder->buckets;
}
