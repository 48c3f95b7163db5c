/* Unpacks zip archives. The sender is a stranger: names are checked before anything is written, sizes are
 * counted as bytes come out (what the archive says of itself may be a lie), and symbolic links are made last,
 * so that no file can be written through one.
 *
 * An unpacked folder appears by a rename, when its bytes are on the disk: what is there is whole. Called by
 * the registry, on the threads of the control plane. */
#include "func/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/limits.h"
#include "base/random.h"
#include "func/zip_library.h"

#define LINK_TARGET_MAX 1024
#define READ_BYTES      (64 * 1024)

struct unpacking {
    const struct zip_library *zip;
    zip_t *archive;
    const char *folder;
    uint64_t bytes;   /* unpacked so far */
    uint32_t folders; /* made so far: an entry's name may ask for many */
    char *error;
    size_t error_len;
    char chunk[READ_BYTES];
};

static enum archive_end fail(struct unpacking *unpacking, enum archive_end end, const char *what,
                             const char *name)
{
    snprintf(unpacking->error, unpacking->error_len, "%s: %.200s", what, name);
    return end;
}

/* ---- names ---- */

bool archive_name_is_sound(struct slice name)
{
    struct slice rest = name;
    size_t depth = 0;
    if (!name.len || name.len >= PATH_MAX / 2 || memchr(name.data, 0, name.len)) return false;
    while (rest.len) {
        struct slice component = slice_cut(&rest, '/');
        if (++depth > LIMIT_CODE_DEPTH || !component.len || component.len > NAME_MAX ||
            slice_equal(component, SLICE("..")) || slice_equal(component, SLICE(".")))
            return false;
    }
    return true;
}

/* ".." may stand only at the front of a target, and only as often as the link is deep. What follows goes
 * down only, through real folders or through links that were checked the same way, so it stays inside. */
bool archive_link_is_inside(struct slice name, struct slice target)
{
    size_t depth = 0;
    bool goes_down = false;
    if (!target.len || target.data[0] == '/' || memchr(target.data, 0, target.len)) return false;
    for (size_t i = 0; i < name.len; i++) depth += name.data[i] == '/';
    while (target.len) {
        struct slice component = slice_cut(&target, '/');
        if (!component.len || slice_equal(component, SLICE("."))) continue;
        if (!slice_equal(component, SLICE(".."))) {
            goes_down = true;
            continue;
        }
        if (goes_down || !depth) return false;
        depth--;
    }
    return true;
}

/* ---- one entry ---- */

struct entry_kind {
    mode_t mode; /* permissions */
    bool is_folder, is_link;
};

static bool path_of(struct unpacking *unpacking, struct slice name, char path[PATH_MAX])
{
    int len = snprintf(path, PATH_MAX, "%s/%.*s", unpacking->folder, SLICE_ARG(name));
    return len > 0 && len < PATH_MAX;
}

/* Makes the folders above a path, beginning below the folder that is unpacked into. None of them is a link:
 * links are made last, and a link is no folder to mkdir. */
static enum archive_end make_parents(struct unpacking *unpacking, char *path)
{
    for (char *slash = path + strlen(unpacking->folder) + 1; (slash = strchr(slash, '/')); slash++) {
        struct stat stat;
        *slash = 0;
        bool made = mkdir(path, 0755) == 0;
        bool is_there = made || (errno == EEXIST && lstat(path, &stat) == 0 && S_ISDIR(stat.st_mode));
        *slash = '/';
        if (made && ++unpacking->folders > LIMIT_CODE_FOLDERS)
            return fail(unpacking, ARCHIVE_BAD, "The archive has too many folders", "more than 20000");
        if (!is_there)
            return fail(unpacking, errno == EEXIST || errno == ENOTDIR ? ARCHIVE_BAD : ARCHIVE_FAILED,
                        strerror(errno), path);
    }
    return ARCHIVE_UNPACKED;
}

static enum archive_end copy_bytes(struct unpacking *unpacking, zip_file_t *file, int to, const char *name)
{
    zip_int64_t got;
    while ((got = unpacking->zip->fread(file, unpacking->chunk, sizeof unpacking->chunk)) > 0) {
        unpacking->bytes += (uint64_t)got;
        if (unpacking->bytes > LIMIT_UNPACKED_BYTES)
            return fail(unpacking, ARCHIVE_LARGE, "The archive is too large", name);
        for (zip_int64_t done = 0; done < got;) {
            ssize_t wrote = write(to, unpacking->chunk + done, (size_t)(got - done));
            if (wrote < 0 && errno != EINTR) return fail(unpacking, ARCHIVE_FAILED, strerror(errno), name);
            if (wrote > 0) done += wrote;
        }
    }
    return got < 0 ? fail(unpacking, ARCHIVE_BAD, "The archive is broken", name) : ARCHIVE_UNPACKED;
}

static enum archive_end unpack_file(struct unpacking *unpacking, zip_file_t *file, const char *path,
                                    mode_t mode)
{
    int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0) return fail(unpacking, errno == EISDIR ? ARCHIVE_BAD : ARCHIVE_FAILED, strerror(errno), path);
    enum archive_end end = copy_bytes(unpacking, file, to, path);
    /* Everybody may read it, as it must be on Lambda; whoever runs it may not be who unpacked it. */
    if (end == ARCHIVE_UNPACKED && fchmod(to, mode | 0444) != 0)
        end = fail(unpacking, ARCHIVE_FAILED, strerror(errno), path);
    if (close(to) != 0 && end == ARCHIVE_UNPACKED)
        end = fail(unpacking, ARCHIVE_FAILED, strerror(errno), path);
    return end;
}

static enum archive_end unpack_link(struct unpacking *unpacking, zip_file_t *file, struct slice name,
                                    const char *path)
{
    char target[LINK_TARGET_MAX + 1];
    zip_int64_t len = unpacking->zip->fread(file, target, sizeof target);
    if (len <= 0) return fail(unpacking, ARCHIVE_BAD, "The archive is broken", path);
    if (len > LINK_TARGET_MAX) return fail(unpacking, ARCHIVE_BAD, "A symbolic link is too long", name.data);
    target[len] = 0;
    if (!archive_link_is_inside(name, (struct slice){target, (size_t)len}))
        return fail(unpacking, ARCHIVE_BAD, "A symbolic link leads out of the archive", name.data);
    if (symlink(target, path) == 0) return ARCHIVE_UNPACKED;
    return fail(unpacking, errno == EEXIST ? ARCHIVE_BAD : ARCHIVE_FAILED, strerror(errno), path);
}

static enum archive_end unpack_content(struct unpacking *unpacking, zip_uint64_t index, struct slice name,
                                       struct entry_kind kind, const char *path)
{
    zip_file_t *file = unpacking->zip->fopen_index(unpacking->archive, index, 0);
    if (!file) return fail(unpacking, ARCHIVE_BAD, "The archive has an entry that cannot be read", path);
    enum archive_end end = kind.is_link ? unpack_link(unpacking, file, name, path)
                                        : unpack_file(unpacking, file, path, kind.mode);
    unpacking->zip->fclose(file);
    return end;
}

static enum archive_end unpack_entry(struct unpacking *unpacking, zip_uint64_t index, bool links)
{
    zip_stat_t stat;
    char path[PATH_MAX];
    if (unpacking->zip->stat_index(unpacking->archive, index, 0, &stat) != 0 || !(stat.valid & ZIP_STAT_NAME))
        return fail(unpacking, ARCHIVE_BAD, "The archive is broken", "an entry has no name");
    struct slice name = slice_of(stat.name);
    struct slice bare = name;
    if (bare.len > 1 && bare.data[bare.len - 1] == '/') bare.len--;
    if (!archive_name_is_sound(bare) || !path_of(unpacking, name, path))
        return fail(unpacking, ARCHIVE_BAD, "The archive has an entry with a name that is not allowed",
                    stat.name);
    /* What an archive made on Unix says of an entry; one made elsewhere has no modes, and then a bootstrap must
     * be able to run all the same. */
    zip_uint8_t system = 0;
    zip_uint32_t attributes = 0;
    unpacking->zip->file_get_external_attributes(unpacking->archive, index, 0, &system, &attributes);
    mode_t mode = system == ZIP_OPSYS_UNIX || system == ZIP_OPSYS_OS_X ? (mode_t)(attributes >> 16) : 0;
    struct entry_kind kind = {.mode = mode & 0755}; /* nobody else writes what functions share */
    kind.is_folder = name.data[name.len - 1] == '/';
    kind.is_link = !kind.is_folder && S_ISLNK(mode);
    if (!kind.mode) kind.mode = slice_equal(name, SLICE("bootstrap")) ? 0755 : 0644;
    if (kind.is_link != links) return ARCHIVE_UNPACKED;
    enum archive_end end = make_parents(unpacking,
                                        path); /* of a folder, whose path ends in a slash: itself */
    if (end != ARCHIVE_UNPACKED || kind.is_folder) return end;
    return unpack_content(unpacking, index, name, kind, path);
}

/* ---- the whole ---- */

static enum archive_end unpack_entries(struct unpacking *unpacking)
{
    zip_int64_t count = unpacking->zip->get_num_entries(unpacking->archive, 0);
    if (count <= 0) return fail(unpacking, ARCHIVE_BAD, "The archive is empty", "no entries");
    if (count > LIMIT_CODE_ENTRIES)
        return fail(unpacking, ARCHIVE_BAD, "The archive has too many files", "more than 100000");
    for (int links = 0; links <= 1; links++)
        for (zip_uint64_t i = 0; i < (zip_uint64_t)count; i++) {
            enum archive_end end = unpack_entry(unpacking, i, links);
            if (end != ARCHIVE_UNPACKED) return end;
        }
    return ARCHIVE_UNPACKED;
}

static enum archive_end open_and_unpack(struct unpacking *unpacking, struct slice archive)
{
    zip_error_t ignored;
    memset(&ignored, 0, sizeof ignored);
    zip_source_t *source = unpacking->zip->source_buffer_create(archive.data, archive.len, 0, &ignored);
    if (!source) return fail(unpacking, ARCHIVE_FAILED, "The archive could not be opened", "libzip");
    unpacking->archive = unpacking->zip->open_from_source(source, ZIP_RDONLY, &ignored);
    if (!unpacking->archive) {
        unpacking->zip->source_free(source);
        return fail(unpacking, ARCHIVE_BAD, "Not a zip archive", "it could not be opened");
    }
    enum archive_end end = unpack_entries(unpacking);
    unpacking->zip->discard(unpacking->archive);
    return end;
}

/* Renames the folder into its place when its bytes are on the disk. */
static enum archive_end settle(struct unpacking *unpacking, const char *folder)
{
    int fd = open(unpacking->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = fd >= 0 && syncfs(fd) == 0;
    if (fd >= 0) close(fd);
    if (!synced) return fail(unpacking, ARCHIVE_FAILED, strerror(errno), unpacking->folder);
    if (rename(unpacking->folder, folder) == 0) return ARCHIVE_UNPACKED;
    if (errno != EEXIST && errno != ENOTEMPTY)
        return fail(unpacking, ARCHIVE_FAILED, strerror(errno), folder);
    archive_remove(unpacking->folder); /* somebody was faster: the same bytes are there already */
    return ARCHIVE_UNPACKED;
}

enum archive_end archive_unpack(struct slice archive, const char *folder, char *error, size_t error_len)
{
    struct stat stat_of_folder;
    char beside[PATH_MAX];
    struct random random;
    if (stat(folder, &stat_of_folder) == 0) return ARCHIVE_UNPACKED;
    const struct zip_library *zip = zip_library_load(error, error_len);
    if (!zip) return ARCHIVE_FAILED;
    random_seed_from_system(&random);
    int len = snprintf(beside, sizeof beside, "%s.%016llx", folder, (unsigned long long)random_next(&random));
    if (len >= (int)sizeof beside || !archive_make_folder(beside)) {
        snprintf(error, error_len, "The folder %.300s cannot be made: %s", beside, strerror(errno));
        return ARCHIVE_FAILED;
    }
    struct unpacking *unpacking = must_alloc(sizeof *unpacking);
    *unpacking = (struct unpacking){.zip = zip, .folder = beside, .error = error, .error_len = error_len};
    enum archive_end end = open_and_unpack(unpacking, archive);
    if (end == ARCHIVE_UNPACKED) end = settle(unpacking, folder);
    if (end != ARCHIVE_UNPACKED) archive_remove(beside);
    free(unpacking);
    return end;
}

/* ---- folders ---- */

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *where)
{
    (void)stat, (void)type, (void)where;
    remove(path);
    return 0;
}

void archive_remove(const char *folder)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

bool archive_make_folder(const char *folder)
{
    char path[PATH_MAX];
    struct stat stat_of_folder;
    int len = snprintf(path, sizeof path, "%s", folder);
    if (len <= 0 || len >= (int)sizeof path) return false;
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(path, 0755);
        *slash = '/';
    }
    mkdir(path, 0755);
    return stat(path, &stat_of_folder) == 0 && S_ISDIR(stat_of_folder.st_mode);
}
