/* Finding the data files of an export. A manifest is believed as far as its names go, which are looked for beside it:
 * keys of a bucket mean nothing here. */
#include "cli/export_folder.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/raw.h"
#include "cli/cli.h"
#include "cli/input.h"

#define DEPTH_MAX      8
#define MANIFEST_BYTES (64u << 20) /* a line for each data file of terabytes */

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool is_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static const char *joined(struct arena *arena, const char *folder, const char *name)
{
    return arena_printf(arena, "%s/%s", folder, name).data;
}

/* What a name says; false when it is no data file. */
static bool read_name(const char *name, struct export_file *file)
{
    static const struct {
        const char *end;
        enum transfer_format format;
        enum transfer_compression compression;
    } kinds[] = {
        {".json.gz", TRANSFER_JSON, TRANSFER_GZIP},  {".ion.gz", TRANSFER_ION, TRANSFER_GZIP},
        {".json", TRANSFER_JSON, TRANSFER_NONE},     {".ion", TRANSFER_ION, TRANSFER_NONE},
        {".json.zst", TRANSFER_JSON, TRANSFER_ZSTD}, {".ion.zst", TRANSFER_ION, TRANSFER_ZSTD},
    };
    size_t len = strlen(name);
    if (strncmp(name, "manifest-", 9) == 0) return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t end = strlen(kinds[i].end);
        if (len <= end || strcmp(name + len - end, kinds[i].end) != 0) continue;
        file->format = kinds[i].format;
        file->compression = kinds[i].compression;
        return true;
    }
    return false;
}

static void add_file(struct export_folder *export, struct arena *arena, struct export_file file)
{
    if ((export->count & (export->count - 1)) == 0) { /* full at each power of two */
        struct export_file *larger = arena_array(arena, struct export_file,
                                                 export->count ? export->count * 2 : 1);
        if (export->count) memcpy(larger, export->files, export->count * sizeof *larger);
        export->files = larger;
    }
    export->files[export->count++] = file;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct export_file *)a)->path, ((const struct export_file *)b)->path);
}

static void add_files_of(struct export_folder *export, struct arena *arena, const char *folder)
{
    DIR *open = opendir(folder);
    if (!open) return;
    for (struct dirent *entry; (entry = readdir(open));) {
        struct export_file file = {.path = joined(arena, folder, entry->d_name), .items = -1};
        if (read_name(entry->d_name, &file) && is_file(file.path)) add_file(export, arena, file);
    }
    closedir(open);
}

/* ---- with a manifest ---- */

struct search {
    struct arena *arena;
    const char *found[2]; /* folders with a manifest: two are too many */
    size_t count;
};

/* The reports of a bulk operation have a summary, too, of another kind. */
static bool has_manifest(struct arena *arena, const char *folder)
{
    const char *path = joined(arena, folder, "manifest-summary.json");
    struct buf text = {0};
    if (!is_file(path)) return false;
    bool is_report = input_read(path, MANIFEST_BYTES, &text) && raw_is_json(arena, buf_view(&text)) &&
                     raw_member(arena, buf_view(&text), "bulkOperationArn").len;
    buf_free(&text);
    return !is_report;
}

static void search(struct search *search_, const char *folder, unsigned depth)
{
    struct arena *arena = search_->arena;
    if (has_manifest(arena, folder)) {
        if (search_->count < 2) search_->found[search_->count] = folder;
        search_->count++;
        return;
    }
    DIR *open = depth < DEPTH_MAX ? opendir(folder) : NULL;
    if (!open) return;
    for (struct dirent *entry; search_->count < 2 && (entry = readdir(open));) {
        const char *path = joined(arena, folder, entry->d_name);
        if (entry->d_name[0] != '.' && is_folder(path)) search(search_, path, depth + 1);
    }
    closedir(open);
}

/* The file that a line of manifest-files.json names. */
static bool add_line(struct export_folder *export, struct arena *arena, const char *folder, struct slice line)
{
    static const char *const names[] = {"dataFileS3Key", "itemCount"};
    struct slice raws[2], key = SLICE_NONE;
    struct export_file file = {.items = -1};
    if (raw_members(arena, line, names, raws, 2)) key = raw_string(arena, raws[0]);
    while (memchr(key.data, '/', key.len)) slice_cut(&key, '/');
    if (!key.len || memchr(key.data, 0, key.len)) {
        complain("%s/manifest-files.json: a line names no data file", folder);
        return false;
    }
    raw_int(raws[1], &file.items);
    const char *name = arena_printf(arena, "%.*s", SLICE_ARG(key)).data;
    file.path = joined(arena, folder, arena_printf(arena, "data/%s", name).data);
    if (!is_file(file.path)) {
        complain("%s is missing, which the export's manifest names", file.path);
        return false;
    }
    if (!read_name(name, &file)) {
        complain("%s: a data file ends in .json.gz or .ion.gz", file.path);
        return false;
    }
    add_file(export, arena, file);
    return true;
}

static bool read_summary(struct export_folder *export, struct arena *arena, const char *folder)
{
    static const char *const names[] = {"tableArn", "exportType"};
    struct buf text = {0};
    struct slice raws[2];
    const char *path = joined(arena, folder, "manifest-summary.json");
    bool fine = input_read(path, MANIFEST_BYTES, &text);
    if (fine && !raw_members(arena, buf_view(&text), names, raws, 2))
        fine = complain("%s is not JSON", path) == EXIT_FINE;
    if (fine && slice_equal(raw_string(arena, raws[1]), SLICE("INCREMENTAL_EXPORT")))
        fine = complain("%s tells of an incremental export: only full ones can be loaded", path) == EXIT_FINE;
    if (fine) {
        struct slice arn = arena_copy(arena, raw_string(arena, raws[0]));
        while (memchr(arn.data, '/', arn.len)) slice_cut(&arn, '/');
        if (arn.len) export->table = arena_printf(arena, "%.*s", SLICE_ARG(arn)).data;
    }
    buf_free(&text);
    return fine;
}

static bool read_manifest(struct export_folder *export, struct arena *arena, const char *folder)
{
    struct buf text = {0};
    bool fine = read_summary(export, arena, folder) &&
                input_read(joined(arena, folder, "manifest-files.json"), MANIFEST_BYTES, &text);
    struct slice rest = buf_view(&text);
    while (fine && rest.len) {
        struct slice line = slice_trim(slice_cut(&rest, '\n'));
        fine = !line.len || add_line(export, arena, folder, line);
    }
    buf_free(&text);
    return fine;
}

bool export_folder_read(const char *path, struct arena *arena, struct export_folder *out)
{
    struct search found = {.arena = arena};
    *out = (struct export_folder){0};
    search(&found, path, 0);
    if (found.count > 1) {
        complain("%s has several exports, %s and %s for two: name one of them", path, found.found[0],
                 found.found[1]);
        return false;
    }
    if (found.count) return read_manifest(out, arena, found.found[0]);
    add_files_of(out, arena, path);
    if (!out->count) add_files_of(out, arena, joined(arena, path, "data"));
    if (out->count > 1) qsort(out->files, out->count, sizeof *out->files, by_path);
    if (!out->count)
        complain("%s is no export: it has neither an export's manifest-summary.json nor files that end in .json.gz "
                 "or .ion.gz",
                 path);
    return out->count > 0;
}
