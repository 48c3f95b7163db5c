/* The folder that a function sees as /opt: its layers, unpacked and merged in their order; of files with the
 * same name the later layer's stays. It is made of hard links, once for each sequence of layers. */
#include <dirent.h>
#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/log.h"
#include "func/archive.h"
#include "func/registry.h"

uint32_t layers_read(const struct document *document, struct arena *arena,
                     struct slice hashes[static LIMIT_LAYERS])
{
    struct json_reader reader;
    uint32_t count = 0;
    struct slice list = document_get(document, LAYER_HASHES);
    if (!list.data) return 0;
    json_begin(&reader, list, arena);
    if (json_peek(&reader) != JSON_ARRAY || !json_enter(&reader)) return 0;
    while (count < LIMIT_LAYERS && json_element(&reader))
        if (json_peek(&reader) != JSON_STRING || !json_string(&reader, &hashes[count++])) return 0;
    return count;
}

uint64_t layer_size(struct slice folder)
{
    char path[4096];
    char *const roots[] = {path, NULL};
    uint64_t size = 0;
    snprintf(path, sizeof path, "%.*s", SLICE_ARG(folder));
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    for (FTSENT *file; tree && (file = fts_read(tree));)
        if (file->fts_info == FTS_F) size += (uint64_t)file->fts_statp->st_size;
    if (tree) fts_close(tree);
    return size;
}

/* Puts one file, link or folder where another layer may have put something. */
static bool merge_one(const FTSENT *file, const char *target)
{
    struct stat there;
    char link_target[4096];
    bool is_folder = file->fts_info == FTS_D;
    if (lstat(target, &there) == 0) {
        if (is_folder && S_ISDIR(there.st_mode)) return true;
        if (S_ISDIR(there.st_mode))
            archive_remove(target);
        else
            unlink(target);
    }
    if (is_folder) return mkdir(target, 0755) == 0;
    if (file->fts_info == FTS_F) return link(file->fts_accpath, target) == 0;
    ssize_t len = readlink(file->fts_accpath, link_target, sizeof link_target - 1);
    if (len < 0) return false;
    link_target[len] = 0;
    return symlink(link_target, target) == 0;
}

static bool merge(const char *source, const char *target)
{
    char root[4096];
    char *const roots[] = {root, NULL};
    bool merged = true;
    snprintf(root, sizeof root, "%s", source);
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    for (FTSENT *file; tree && merged && (file = fts_read(tree));) {
        struct buf path = {0};
        if (file->fts_info == FTS_DP) continue;
        buf_printf(&path, "%s%s", target, file->fts_path + strlen(source));
        buf_byte(&path, 0);
        merged = merge_one(file, path.data);
        buf_free(&path);
    }
    if (tree) fts_close(tree);
    return tree && merged;
}

/* The name of the merged folder: the hash of the hashes. One layer needs no merging. */
static struct slice merged_folder(struct registry *registry, const struct slice *hashes, uint32_t count,
                                  struct arena *arena)
{
    struct buf all = {0};
    if (count == 1) return code_folder(registry, hashes[0], arena);
    for (uint32_t i = 0; i < count; i++) buf_slice(&all, hashes[i]);
    struct slice folder = code_folder(registry, code_sha256(buf_view(&all), arena), arena);
    buf_free(&all);
    return folder;
}

struct slice layers_folder(struct registry *registry, const struct document *document, struct arena *arena)
{
    struct slice hashes[LIMIT_LAYERS];
    struct stat there;
    uint32_t count = layers_read(document, arena, hashes);
    if (!count) return SLICE_NONE;
    struct slice folder = merged_folder(registry, hashes, count, arena);
    if (stat(folder.data, &there) == 0) return folder;
    bool made = true;
    for (uint32_t i = 0; i < count; i++) made = code_unpack(registry, hashes[i]) && made;
    if (count == 1) return folder;
    /* A name of its own: several threads may make the same one, and the start removes the rest. */
    struct slice uuid = registry_uuid(registry, arena);
    struct slice beside = arena_printf(arena, "%s/tmp-%.*s", registry->folder, SLICE_ARG(uuid));
    for (uint32_t i = 0; i < count && made; i++)
        made = merge(code_folder(registry, hashes[i], arena).data, beside.data);
    made = made && (rename(beside.data, folder.data) == 0 || errno == EEXIST || errno == ENOTEMPTY);
    if (!made)
        log_line("the layers of a function cannot be merged into %s: %s", folder.data, strerror(errno));
    archive_remove(beside.data); /* where it could not be made, or somebody else was faster */
    return folder;
}
