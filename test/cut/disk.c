#include "cut/disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/random.h"

#define PAGE          4096
#define SECTOR        512
#define VERSIONS_MOST 48 /* of a page; of more, some in the middle are forgotten */
#define REMAINS_MOST  64

static const char zeros[PAGE];

struct page {
    char *synced;    /* NULL: zeros */
    char **versions; /* since then */
    uint32_t count;
    bool is_dirty;  /* stands among the node's dirty ones */
    bool is_forgot; /* by a sync that has failed */
};

struct name {
    char *name;
    struct node *node; /* NULL in a change: the name goes */
};

struct change {
    struct name names[2]; /* at once */
    int count;
};

struct node {
    bool is_folder;
    /* of a file */
    struct page *pages;
    size_t page_count;
    size_t *dirty, dirty_count;
    uint64_t size, synced_size;
    uint64_t *sizes; /* since then */
    size_t size_count;
    /* of a folder */
    struct name *names, *synced_names;
    size_t name_count, synced_name_count;
    struct change *changes; /* since then */
    size_t change_count;
    /* of a folder that is being made */
    char *made;
};

struct descriptor {
    uint32_t process;
    int32_t file;
    struct node *node;
};

struct disk {
    struct node *root;
    struct node **nodes;
    size_t node_count;
    struct descriptor *open;
    size_t open_count;
    char *remains[REMAINS_MOST]; /* pages of removed files */
    size_t remain_count;
};

#define APPEND(array, count, element)                                                                        \
    do {                                                                                                     \
        if (((count) & ((count)-1)) == 0)                                                                    \
            (array) = must_realloc((array), ((count) ? 2 * (count) : 1) * sizeof *(array));                  \
        (array)[(count)++] = (element);                                                                      \
    } while (0)

/* ---- nodes and names ---- */

static struct node *node_new(struct disk *disk, bool is_folder)
{
    struct node *node = must_zero(1, sizeof *node);
    node->is_folder = is_folder;
    APPEND(disk->nodes, disk->node_count, node);
    return node;
}

static struct node *name_find(const struct node *folder, const char *name)
{
    for (size_t i = 0; i < folder->name_count; i++)
        if (!strcmp(folder->names[i].name, name)) return folder->names[i].node;
    return NULL;
}

/* In a list of names: sets it, or removes it where the node is NULL. */
static void name_set(struct name **names, size_t *count, const struct name *to)
{
    for (size_t i = 0; i < *count; i++) {
        if (strcmp((*names)[i].name, to->name) != 0) continue;
        free((*names)[i].name);
        (*names)[i] = (*names)[--*count];
        break;
    }
    if (!to->node) return;
    struct name copy = {strdup(to->name), to->node};
    APPEND(*names, *count, copy);
}

static void folder_change(struct node *folder, struct change change)
{
    for (int i = 0; i < change.count; i++) {
        change.names[i].name = strdup(change.names[i].name);
        name_set(&folder->names, &folder->name_count, &change.names[i]);
    }
    APPEND(folder->changes, folder->change_count, change);
}

static void folder_sync(struct node *folder)
{
    for (size_t i = 0; i < folder->change_count; i++) {
        for (int j = 0; j < folder->changes[i].count; j++) {
            name_set(&folder->synced_names, &folder->synced_name_count, &folder->changes[i].names[j]);
            free(folder->changes[i].names[j].name);
        }
    }
    free(folder->changes);
    folder->changes = NULL;
    folder->change_count = 0;
}

/* The folder that the path's last name stands in, and that name. */
static struct node *path_folder(struct disk *disk, const char *path, const char **name)
{
    struct node *at = disk->root;
    char part[NAME_MAX + 1];
    for (const char *slash; (slash = strchr(path, '/')); path = slash + 1) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        at = name_find(at, part);
        ensure(at && at->is_folder);
    }
    *name = path;
    return at;
}

/* ---- bytes ---- */

static char *page_copy(const char *bytes)
{
    if (!memcmp(bytes, zeros, PAGE)) return NULL;
    char *copy = must_alloc(PAGE);
    memcpy(copy, bytes, PAGE);
    return copy;
}

static const char *page_bytes(const char *bytes)
{
    return bytes ? bytes : zeros;
}

static const char *page_now(const struct page *page)
{
    return page_bytes(page->count ? page->versions[page->count - 1] : page->synced);
}

static void page_write(struct node *node, size_t index, const char *bytes)
{
    struct page *page = &node->pages[index];
    if (!page->is_dirty) APPEND(node->dirty, node->dirty_count, index);
    page->is_dirty = true;
    page->is_forgot = false;
    if (page->count == VERSIONS_MOST) {
        free(page->versions[VERSIONS_MOST / 2]);
        memmove(page->versions + VERSIONS_MOST / 2, page->versions + VERSIONS_MOST / 2 + 1,
                (VERSIONS_MOST / 2 - 1) * sizeof *page->versions);
        page->count--;
        page->versions[page->count++] = page_copy(bytes);
        return;
    }
    APPEND(page->versions, page->count, page_copy(bytes));
}

static void page_sync(struct page *page)
{
    if (!page->count || page->is_forgot) return;
    free(page->synced);
    for (uint32_t i = 0; i + 1 < page->count; i++) free(page->versions[i]);
    page->synced = page->versions[page->count - 1];
    free(page->versions);
    page->versions = NULL;
    page->count = 0;
    page->is_dirty = false;
}

static void node_pages(struct node *node, uint64_t size)
{
    size_t count = (size_t)((size + PAGE - 1) / PAGE);
    if (count <= node->page_count) return;
    node->pages = must_realloc(node->pages, count * sizeof *node->pages);
    memset(node->pages + node->page_count, 0, (count - node->page_count) * sizeof *node->pages);
    node->page_count = count;
}

static void node_resize(struct node *node, uint64_t size)
{
    char bytes[PAGE];
    if (size == node->size) return;
    for (size_t i = (size_t)(size / PAGE); i < node->page_count; i++) {
        size_t keep = i == size / PAGE ? (size_t)(size % PAGE) : 0;
        const char *now = page_now(&node->pages[i]);
        if (!memcmp(now + keep, zeros, PAGE - keep)) continue;
        memcpy(bytes, now, PAGE);
        memset(bytes + keep, 0, PAGE - keep);
        page_write(node, i, bytes);
    }
    node_pages(node, size);
    node->size = size;
    APPEND(node->sizes, node->size_count, size);
}

/* data NULL: zeros. */
static void node_write(struct node *node, uint64_t at, const char *data, uint64_t len)
{
    char bytes[PAGE];
    node_pages(node, at + len);
    for (uint64_t done = 0; done < len;) {
        size_t index = (size_t)((at + done) / PAGE), offset = (size_t)((at + done) % PAGE);
        size_t part = PAGE - offset < len - done ? PAGE - offset : (size_t)(len - done);
        memcpy(bytes, page_now(&node->pages[index]), PAGE);
        memcpy(bytes + offset, data ? data + done : zeros, part);
        page_write(node, index, bytes);
        done += part;
    }
    if (at + len <= node->size) return;
    node->size = at + len;
    APPEND(node->sizes, node->size_count, node->size);
}

/* Pages from the first up to the second, and the size. */
static void node_sync(struct node *node, size_t from, size_t to)
{
    size_t left = 0;
    for (size_t i = 0; i < node->dirty_count; i++) {
        size_t index = node->dirty[i];
        if (index >= from && index < to) page_sync(&node->pages[index]);
        if (node->pages[index].is_dirty) node->dirty[left++] = index;
    }
    node->dirty_count = left;
    node->synced_size = node->size;
    free(node->sizes);
    node->sizes = NULL;
    node->size_count = 0;
}

/* ---- records ---- */

static struct descriptor *descriptor_find(struct disk *disk, const struct trace_record *record)
{
    for (size_t i = 0; i < disk->open_count; i++)
        if (disk->open[i].process == record->process && disk->open[i].file == record->file)
            return &disk->open[i];
    return NULL;
}

static struct node *node_of(struct disk *disk, const struct trace_record *record)
{
    struct descriptor *found = descriptor_find(disk, record);
    ensure(found);
    return found->node;
}

static void begin_open(struct disk *disk, const struct trace_record *record, const char *path)
{
    const char *name;
    struct node *folder = path_folder(disk, path, &name), *node = *name ? name_find(folder, name) : folder;
    if (!node) { /* O_CREAT, or made and left empty by a thread that ended with its process before it could tell */
        node = node_new(disk, false);
        folder_change(folder, (struct change){{{(char *)(uintptr_t)name, node}}, 1});
    }
    if (record->flags & O_TRUNC && !node->is_folder) node_resize(node, 0);
    struct descriptor *found = descriptor_find(disk, record), fresh = {record->process, record->file, node};
    if (found) {
        *found = fresh;
    } else {
        APPEND(disk->open, disk->open_count, fresh);
    }
}

static void keep_remains(struct disk *disk, const struct node *node)
{
    for (size_t i = 0; i < node->page_count && i < 8; i++) {
        const char *bytes = page_now(&node->pages[i]);
        if (!memcmp(bytes, zeros, PAGE)) continue;
        size_t at = disk->remain_count++ % REMAINS_MOST;
        free(disk->remains[at]);
        disk->remains[at] = page_copy(bytes);
    }
}

static void begin_name(struct disk *disk, const struct trace_record *record, const char *text)
{
    const char *name, *second;
    struct node *folder = path_folder(disk, text, &name), *node = name_find(folder, name);
    char *own = (char *)(uintptr_t)name;
    if (record->kind == TRACE_MKDIR) {
        folder_change(folder, (struct change){{{own, node_new(disk, true)}}, 1});
    } else if (record->kind == TRACE_UNLINK) {
        if (!node) return; /* made by a thread that ended with its process before it could tell */
        keep_remains(disk, node);
        folder_change(folder, (struct change){{{own, NULL}}, 1});
    } else {
        struct node *to = path_folder(disk, text + strlen(text) + 1, &second);
        struct name fresh = {(char *)(uintptr_t)second, node};
        ensure(node);
        if (record->kind == TRACE_LINK) {
            folder_change(to, (struct change){{fresh}, 1});
        } else {
            ensure(to == folder); /* one folder's change is whole by itself */
            folder_change(folder, (struct change){{{own, NULL}, fresh}, 2});
        }
    }
}

void disk_begin(struct disk *disk, const struct trace_record *record, const char *text, const char *data)
{
    switch ((enum trace_kind)record->kind) {
    case TRACE_OPEN: begin_open(disk, record, text); break;
    case TRACE_WRITE: node_write(node_of(disk, record), record->at, data, record->length); break;
    case TRACE_ZEROS: node_write(node_of(disk, record), record->at, NULL, record->length); break;
    case TRACE_SIZE: node_resize(node_of(disk, record), record->length); break;
    case TRACE_RENAME:
    case TRACE_LINK:
    case TRACE_UNLINK:
    case TRACE_MKDIR: begin_name(disk, record, text); break;
    default: break;
    }
}

void disk_complete(struct disk *disk, const struct trace_record *record)
{
    bool is_write = record->kind == TRACE_WRITE || record->kind == TRACE_ZEROS;
    if (record->kind == TRACE_CLOSE) {
        struct descriptor *found = descriptor_find(disk, record);
        ensure(found);
        found->file = -1;
    } else if (is_write && record->flags && record->length) {
        node_sync(node_of(disk, record), (size_t)(record->at / PAGE),
                  (size_t)((record->at + record->length + PAGE - 1) / PAGE));
    } else if (record->kind == TRACE_SYNC) {
        struct node *node = node_of(disk, record);
        if (record->flags) {
            for (size_t i = 0; i < node->dirty_count; i++) node->pages[node->dirty[i]].is_forgot = true;
        } else if (node->is_folder) {
            folder_sync(node);
        } else {
            node_sync(node, 0, SIZE_MAX);
        }
    }
}

size_t disk_syncing_pages(const struct disk *disk, const struct trace_record *record)
{
    bool is_write = record->kind == TRACE_WRITE && record->flags;
    if (!is_write && record->kind != TRACE_SYNC) return 0;
    return node_of((struct disk *)(uintptr_t)disk, record)->dirty_count;
}

/* ---- making a folder ---- */

struct making {
    const struct disk *disk;
    struct random random;
    bool all, nothing;
    uint64_t keep;               /* of 100 pages */
    uint64_t latest;             /* of 100 that are kept: as they were last */
    uint64_t torn;               /* of 100 */
    bool has_remains;            /* in new pages */
    int sizes, names;            /* 0: those that were synced; 1: the latest; 2: any */
    const struct node *omitting; /* its page is missing */
    size_t omit;
};

static bool chance(struct making *making, uint64_t of_100)
{
    return random_below(&making->random, 100) < of_100;
}

static const char *choose_version(struct making *making, const struct node *node, size_t index)
{
    const struct page *page = &node->pages[index];
    if (making->all || chance(making, making->keep)) {
        if (making->all || chance(making, making->latest)) return page_now(page);
        return page_bytes(page->versions[random_below(&making->random, page->count)]);
    }
    bool is_new = node->synced_size && (uint64_t)index * PAGE >= node->synced_size;
    size_t remains = making->disk->remain_count < REMAINS_MOST ? making->disk->remain_count : REMAINS_MOST;
    if (is_new && making->has_remains && remains && chance(making, 50))
        return making->disk->remains[random_below(&making->random, remains)];
    return page_bytes(page->synced);
}

static void choose_page(struct making *making, const struct node *node, size_t index, char bytes[PAGE])
{
    const struct page *page = &node->pages[index];
    if (making->nothing || !page->count || (making->omitting == node && making->omit == index)) {
        memcpy(bytes, page_bytes(page->synced), PAGE);
        return;
    }
    memcpy(bytes, choose_version(making, node, index), PAGE);
    if (making->all || !chance(making, making->torn)) return;
    const char *other = choose_version(making, node, index);
    for (size_t at = 0; at < PAGE; at += SECTOR)
        if (chance(making, 50)) memcpy(bytes + at, other + at, SECTOR);
}

static uint64_t choose_size(struct making *making, const struct node *node)
{
    if (!node->size_count || making->sizes == 0) return node->synced_size;
    if (making->sizes == 1) return node->size;
    uint64_t which = random_below(&making->random, node->size_count + 1);
    return which ? node->sizes[which - 1] : node->synced_size;
}

static void make_file(struct making *making, struct node *node, const char *path)
{
    char bytes[PAGE];
    if (node->made) {
        ensure(link(node->made, path) == 0);
        return;
    }
    node->made = strdup(path);
    uint64_t size = choose_size(making, node);
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ensure(file >= 0 && ftruncate(file, (off_t)size) == 0);
    for (size_t i = 0; (uint64_t)i * PAGE < size; i++) {
        if (!node->pages[i].count && !node->pages[i].synced) continue;
        choose_page(making, node, i, bytes);
        if (!memcmp(bytes, zeros, PAGE)) continue;
        size_t len = size - (uint64_t)i * PAGE < PAGE ? (size_t)(size - (uint64_t)i * PAGE) : PAGE;
        ensure(pwrite(file, bytes, len, (off_t)(i * PAGE)) == (ssize_t)len);
    }
    close(file);
}

static void make_folder(struct making *making, struct node *folder, const char *path)
{
    struct name *names = NULL;
    size_t count = 0, changes = folder->change_count;
    if (making->names == 0) changes = 0;
    if (making->names == 2) changes = (size_t)random_below(&making->random, changes + 1);
    for (size_t i = 0; i < folder->synced_name_count; i++) name_set(&names, &count, &folder->synced_names[i]);
    for (size_t i = 0; i < changes; i++)
        for (int j = 0; j < folder->changes[i].count; j++)
            name_set(&names, &count, &folder->changes[i].names[j]);
    ensure(mkdir(path, 0700) == 0);
    for (size_t i = 0; i < count; i++) {
        char below[PATH_MAX];
        snprintf(below, sizeof below, "%s/%s", path, names[i].name);
        if (names[i].node->is_folder) {
            make_folder(making, names[i].node, below);
        } else {
            make_file(making, names[i].node, below);
        }
        free(names[i].name);
    }
    free(names);
}

void disk_make(struct disk *disk, const struct trace_record *record, uint64_t seed, int64_t omit,
               const char *folder)
{
    static const uint64_t keeps[] = {3, 20, 50, 80, 97};
    struct making making = {.disk = disk, .all = seed == STATE_ALL, .nothing = seed == STATE_NOTHING};
    random_seed(&making.random, seed);
    making.keep = keeps[random_below(&making.random, 5)];
    making.latest = random_below(&making.random, 2) ? 100 : 60;
    making.torn = random_below(&making.random, 2) ? 0 : 40;
    making.has_remains = random_below(&making.random, 4) == 0;
    making.sizes = (int)random_below(&making.random, 3);
    making.names = (int)random_below(&making.random, 3);
    if (seed < STATE_RANDOM) making.sizes = making.names = seed == STATE_ALL;
    if (omit != OMIT_NONE) {
        making.omitting = node_of(disk, record);
        ensure((size_t)omit < making.omitting->dirty_count);
        making.omit = making.omitting->dirty[omit];
    }
    make_folder(&making, disk->root, folder);
    for (size_t i = 0; i < disk->node_count; i++) {
        free(disk->nodes[i]->made);
        disk->nodes[i]->made = NULL;
    }
}

/* ---- beginning and end ---- */

static void load_folder(struct disk *disk, struct node *folder, const char *path)
{
    DIR *directory = opendir(path);
    ensure(directory);
    for (struct dirent *entry; (entry = readdir(directory));) {
        char below[PATH_MAX], bytes[PAGE];
        struct stat status;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        ensure(stat(below, &status) == 0);
        struct node *node = node_new(disk, S_ISDIR(status.st_mode));
        folder_change(folder, (struct change){{{entry->d_name, node}}, 1});
        if (node->is_folder) {
            load_folder(disk, node, below);
            continue;
        }
        int file = open(below, O_RDONLY | O_CLOEXEC);
        ensure(file >= 0);
        for (uint64_t at = 0; at < (uint64_t)status.st_size; at += PAGE) {
            ssize_t got = pread(file, bytes, PAGE, (off_t)at);
            ensure(got > 0);
            node_write(node, at, bytes, (uint64_t)got);
        }
        close(file);
        node_sync(node, 0, SIZE_MAX);
    }
    closedir(directory);
    folder_sync(folder);
}

struct disk *disk_open(const char *folder)
{
    struct disk *disk = must_zero(1, sizeof *disk);
    disk->root = node_new(disk, true);
    if (folder) load_folder(disk, disk->root, folder);
    return disk;
}

static void node_free(struct node *node)
{
    for (size_t i = 0; i < node->page_count; i++) {
        for (uint32_t j = 0; j < node->pages[i].count; j++) free(node->pages[i].versions[j]);
        free(node->pages[i].versions);
        free(node->pages[i].synced);
    }
    folder_sync(node);
    for (size_t i = 0; i < node->name_count; i++) free(node->names[i].name);
    for (size_t i = 0; i < node->synced_name_count; i++) free(node->synced_names[i].name);
    free(node->names);
    free(node->synced_names);
    free(node->pages);
    free(node->dirty);
    free(node->sizes);
    free(node);
}

void disk_close(struct disk *disk)
{
    for (size_t i = 0; i < disk->node_count; i++) node_free(disk->nodes[i]);
    for (size_t i = 0; i < REMAINS_MOST; i++) free(disk->remains[i]);
    free(disk->nodes);
    free(disk->open);
    free(disk);
}
