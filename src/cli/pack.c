/* Writes zip archives, of what people give as a folder (quipu layer add). libzip is not linked (see
 * func/zip_library.h), and writing needs little: each entry deflated behind its head, then the list of all.
 *
 * Times are left out and names are sorted, so that the same files give the same archive, and the server keeps
 * its bytes once. */
#include "cli/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/node.h"
#include "cli/cli.h"
#include "cli/input.h"

#define SHOWN_MAX      100 /* of a pattern */
#define PATTERN_WAYS   1000000 /* to read a pattern with a name: more are a mistake, or malice */
#define PATTERN_DEPTH  200
#define ENTRIES_MAX    65535  /* what the plain form of the list can count */
#define MADE_ON_UNIX   0x0314 /* so the modes count; by version 2.0 of the format */
#define VERSION_NEEDED 20
#define FLAG_UTF8      0x0800 /* of the name */
#define METHOD_STORED  0
#define METHOD_DEFLATE 8
#define DATE_1980      0x0021 /* the first day that the format has */

#define HEAD_OF_ENTRY 0x04034b50
#define HEAD_IN_LIST  0x02014b50
#define HEAD_OF_END   0x06054b50

/* Of the list's heads and the end's: their lengths, and where something stands in them. */
#define LIST_HEAD_BYTES 46
#define LIST_NAME_AT    28 /* the length of the name; those of what is extra and of a comment follow */
#define END_BYTES       22
#define END_COUNT_AT    10
#define END_LIST_AT     16
#define COMMENT_MAX     65535

struct packing {
    struct buf *out;
    struct buf list; /* what stands behind the entries */
    size_t start;    /* of the archive in `out` */
    uint64_t bytes;  /* of all files */
    const struct node *patterns;
    unsigned count, content_count;
};

struct packed_entry {
    struct slice name;
    mode_t mode;
    struct slice bytes; /* of a file; a link's target */
};

static void put_little(struct buf *out, uint32_t number, int bytes)
{
    for (; bytes--; number >>= 8) buf_byte(out, number & 0xff);
}

/* Appends the bytes deflated, or as they are where that is not more. Answers the method. */
static unsigned put_content(struct buf *out, struct slice bytes)
{
    z_stream stream = {.next_in = (unsigned char *)(uintptr_t)bytes.data, .avail_in = (unsigned)bytes.len};
    ensure(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) ==
           Z_OK);
    unsigned long most = deflateBound(&stream, bytes.len);
    buf_reserve(out, most);
    stream.next_out = (unsigned char *)out->data + out->len;
    stream.avail_out = (unsigned)most;
    ensure(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    bool is_smaller = stream.total_out < bytes.len;
    if (is_smaller)
        out->len += stream.total_out;
    else
        buf_slice(out, bytes);
    deflateEnd(&stream);
    return is_smaller ? METHOD_DEFLATE : METHOD_STORED;
}

/* Readers of archives refuse names with control characters, or change them. */
static bool name_is_sound(struct slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.data[i] < 0x20 || name.data[i] == 0x7f) return false;
    return utf8_valid(name);
}

/* What the entry's own head and the list's have in common: from the flags to the length of what is extra. */
static void put_common(struct buf *out, const struct packed_entry *entry, unsigned method, size_t packed_len)
{
    uint32_t sum = (uint32_t)crc32(0, (const unsigned char *)entry->bytes.data, (unsigned)entry->bytes.len);
    put_little(out, VERSION_NEEDED, 2);
    put_little(out, FLAG_UTF8, 2);
    put_little(out, method, 2);
    put_little(out, 0, 2); /* midnight */
    put_little(out, DATE_1980, 2);
    put_little(out, entry->bytes.len ? sum : 0, 4);
    put_little(out, (uint32_t)packed_len, 4);
    put_little(out, (uint32_t)entry->bytes.len, 4);
    put_little(out, (uint32_t)entry->name.len, 2);
    put_little(out, 0, 2);
}

static void put_entry(struct packing *packing, const struct packed_entry *entry)
{
    struct buf content = {0};
    size_t at = packing->out->len - packing->start;
    unsigned method = put_content(&content, entry->bytes);
    put_little(packing->out, HEAD_OF_ENTRY, 4);
    put_common(packing->out, entry, method, content.len);
    buf_slice(packing->out, entry->name);
    buf_slice(packing->out, buf_view(&content));
    put_little(&packing->list, HEAD_IN_LIST, 4);
    put_little(&packing->list, MADE_ON_UNIX, 2);
    put_common(&packing->list, entry, method, content.len);
    put_little(&packing->list, 0, 4); /* no comment, the first disk */
    put_little(&packing->list, 0, 2);
    put_little(&packing->list, (uint32_t)entry->mode << 16, 4);
    put_little(&packing->list, (uint32_t)at, 4);
    buf_slice(&packing->list, entry->name);
    buf_free(&content);
    packing->count++;
}

static void put_end(struct packing *packing)
{
    size_t at = packing->out->len - packing->start;
    buf_slice(packing->out, buf_view(&packing->list));
    put_little(packing->out, HEAD_OF_END, 4);
    put_little(packing->out, 0, 4); /* the only disk */
    put_little(packing->out, packing->count, 2);
    put_little(packing->out, packing->count, 2);
    put_little(packing->out, (uint32_t)packing->list.len, 4);
    put_little(packing->out, (uint32_t)at, 4);
    put_little(packing->out, 0, 2);
}

/* Appends the content of a file or a link. */
static bool read_content(const FTSENT *file, struct buf *content)
{
    char target[PATH_MAX];
    if (file->fts_info == FTS_F) return input_read(file->fts_accpath, LIMIT_UNPACKED_BYTES, content);
    ssize_t len = readlink(file->fts_accpath, target, sizeof target);
    if (len < 0) return complain("%s cannot be read: %s", file->fts_path, strerror(errno)), false;
    buf_put(content, target, (size_t)len);
    return true;
}

/* Whoever runs a function can read what is in its layers, and run what can be run, whatever umask made it. */
static mode_t plain_mode(mode_t mode)
{
    if (S_ISLNK(mode)) return S_IFLNK | 0777;
    return (mode & S_IFMT) | (S_ISDIR(mode) || mode & S_IXUSR ? 0755 : 0644);
}

static bool pack_one(struct packing *packing, const FTSENT *file, struct slice name)
{
    struct buf content = {0}, path = {0};
    bool is_folder = file->fts_info == FTS_D, fine = true;
    if (!name_is_sound(name))
        return complain("%s: its name is not UTF-8, or has control characters", file->fts_path), false;
    if (!is_folder) {
        fine = read_content(file, &content);
        packing->content_count++;
    }
    if (fine) {
        buf_slice(&path, name);
        if (is_folder) buf_byte(&path, '/');
        packing->bytes += content.len;
        put_entry(packing, &(struct packed_entry){.name = buf_view(&path),
                                                  .mode = plain_mode(file->fts_statp->st_mode),
                                                  .bytes = buf_view(&content)});
    }
    buf_free(&content);
    buf_free(&path);
    return fine;
}

static bool check_size(const struct packing *packing, const char *folder)
{
    if (packing->count > ENTRIES_MAX)
        return complain("%s has more than %d files", folder, ENTRIES_MAX), false;
    if (packing->bytes > LIMIT_UNPACKED_BYTES)
        return complain("%s is larger than %d MB", folder, LIMIT_UNPACKED_BYTES >> 20), false;
    if (packing->out->len + packing->list.len - packing->start > LIMIT_CODE_BYTES)
        return complain("%s is larger than %d MB as an archive", folder, LIMIT_CODE_BYTES >> 20), false;
    return true;
}

static int compare_names(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* ---- which files ---- */

/* Each star may take more or less, and each {a,b} has its choices: the ways to read a pattern are counted. */
struct fitting {
    unsigned ways, depth;
    bool is_endless;
};

static bool fits(struct fitting *fitting, struct slice pattern, struct slice name);

/* {a,b}: one of them, then the rest of the pattern. */
static bool fits_any(struct fitting *fitting, struct slice pattern, size_t end, struct slice name)
{
    struct slice rest = {pattern.data + 1, end - 1};
    bool is_found = false;
    while (!is_found && rest.len && !fitting->is_endless) {
        struct slice one = slice_cut(&rest, ',');
        struct buf whole = {0};
        buf_slice(&whole, one);
        buf_slice(&whole, slice_from(pattern, end + 1));
        is_found = fits(fitting, buf_view(&whole), name);
        buf_free(&whole);
    }
    return is_found;
}

static bool fits_from(struct fitting *fitting, struct slice pattern, struct slice name)
{
    for (; pattern.len; pattern = slice_from(pattern, 1), name = slice_from(name, 1)) {
        char c = pattern.data[0];
        const char *close = c == '{' ? memchr(pattern.data, '}', pattern.len) : NULL;
        if (close) return fits_any(fitting, pattern, (size_t)(close - pattern.data), name);
        if (c == '*') {
            bool crosses = slice_starts(pattern, SLICE("**"));
            struct slice rest = slice_from(pattern, crosses ? 2 : 1);
            /* a folder's ** is also no folder */
            if (crosses && slice_starts(rest, SLICE("/")) && fits(fitting, slice_from(rest, 1), name))
                return true;
            for (; !fits(fitting, rest, name); name = slice_from(name, 1))
                if (!name.len || (!crosses && name.data[0] == '/') || fitting->is_endless) return false;
            return true;
        }
        if (!name.len || (c == '?' ? name.data[0] == '/' : c != name.data[0])) return false;
    }
    return !name.len;
}

static bool fits(struct fitting *fitting, struct slice pattern, struct slice name)
{
    if (++fitting->ways > PATTERN_WAYS || fitting->depth >= PATTERN_DEPTH) fitting->is_endless = true;
    if (fitting->is_endless) return false;
    fitting->depth++;
    bool is_fitting = fits_from(fitting, pattern, name);
    fitting->depth--;
    return is_fitting;
}

bool pack_fits(struct slice pattern, struct slice name, bool *is_endless)
{
    struct fitting fitting = {.is_endless = pattern.len > PATH_MAX};
    bool is_fitting = fits(&fitting, pattern, name);
    *is_endless = fitting.is_endless;
    return is_fitting;
}

/* False after complaining. */
static bool choose(const struct node *patterns, struct slice name, bool *chosen)
{
    bool is_endless;
    *chosen = true;
    for (const struct node *one = patterns->first; one; one = one->next) {
        struct slice pattern = one->text;
        bool leaves_out = slice_starts(pattern, SLICE("!"));
        if (leaves_out) pattern = slice_from(pattern, 1);
        if (slice_starts(pattern, SLICE("./"))) pattern = slice_from(pattern, 2);
        if (pack_fits(pattern, name, &is_endless)) *chosen = !leaves_out;
        if (is_endless)
            return complain("the pattern '%.*s' has too many * and {}",
                            (int)(one->text.len < SHOWN_MAX ? one->text.len : SHOWN_MAX), one->text.data),
                   false;
    }
    return true;
}

static bool pack_file(struct packing *packing, const FTSENT *file, size_t root_len, const char *folder)
{
    switch (file->fts_info) {
    case FTS_DP: return true;
    case FTS_D:
        if (file->fts_level == FTS_ROOTLEVEL) return true;
        break;
    case FTS_F:
    case FTS_SL:
    case FTS_SLNONE: break;
    case FTS_DNR:
    case FTS_NS:
    case FTS_ERR: return complain("%s cannot be read: %s", file->fts_path, strerror(file->fts_errno)), false;
    default: return complain("%s is neither a file nor a folder nor a link", file->fts_path), false;
    }
    struct slice name = slice_of(file->fts_path + root_len);
    while (name.len && name.data[0] == '/') name = slice_from(name, 1);
    bool is_chosen = !packing->patterns || file->fts_info != FTS_D;
    if (packing->patterns && is_chosen && !choose(packing->patterns, name, &is_chosen)) return false;
    if (!is_chosen) return true;
    return pack_one(packing, file, name) && check_size(packing, folder);
}

bool pack_folder(const char *folder, struct buf *out)
{
    return pack_chosen(folder, NULL, out);
}

bool pack_chosen(const char *folder, const struct node *patterns, struct buf *out)
{
    char root[PATH_MAX];
    char *const roots[] = {root, NULL};
    struct packing packing = {.out = out, .start = out->len, .patterns = patterns};
    bool fine = strlen(folder) < sizeof root;
    if (!fine) return complain("%.100s...: its name is too long", folder), false;
    strcpy(root, folder);
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, compare_names);
    if (!tree) return complain("%s cannot be read: %s", folder, strerror(errno)), false;
    size_t root_len = strlen(root);
    for (FTSENT *file; fine && (file = fts_read(tree));) fine = pack_file(&packing, file, root_len, folder);
    fts_close(tree);
    if (fine && !packing.content_count) fine = (complain("%s has nothing in it", folder), false);
    if (fine) put_end(&packing);
    buf_free(&packing.list);
    return fine;
}

void pack_text(const char *name, struct slice text, struct buf *out)
{
    struct packing packing = {.out = out, .start = out->len};
    put_entry(&packing,
              &(struct packed_entry){.name = slice_of(name), .mode = S_IFREG | 0644, .bytes = text});
    put_end(&packing);
    buf_free(&packing.list);
}

/* ---- reading the list ---- */

static uint32_t little_at(struct slice bytes, size_t at, int count)
{
    uint32_t number = 0;
    while (count--) number = number << 8 | (unsigned char)bytes.data[at + (size_t)count];
    return number;
}

/* Where the end's head stands: a comment may follow it. False: nowhere. */
static bool find_end(struct slice archive, size_t *at)
{
    for (size_t back = END_BYTES; back <= archive.len && back <= END_BYTES + COMMENT_MAX; back++) {
        *at = archive.len - back;
        if (little_at(archive, *at, 4) == HEAD_OF_END) return true;
    }
    return false;
}

static bool starts_with_any(struct slice name, const char *const *starts)
{
    for (; *starts; starts++)
        if (slice_starts(name, slice_of(*starts))) return true;
    return false;
}

bool pack_has_any(struct slice archive, const char *const *starts)
{
    size_t end;
    if (!find_end(archive, &end)) return true;
    size_t at = little_at(archive, end + END_LIST_AT, 4);
    uint32_t count = little_at(archive, end + END_COUNT_AT, 2);
    for (uint32_t i = 0; i < count; i++) {
        if (at > end || end - at < LIST_HEAD_BYTES || little_at(archive, at, 4) != HEAD_IN_LIST) return true;
        size_t name_len = little_at(archive, at + LIST_NAME_AT, 2);
        size_t more = little_at(archive, at + LIST_NAME_AT + 2, 2) +
                      little_at(archive, at + LIST_NAME_AT + 4, 2);
        if (end - at - LIST_HEAD_BYTES < name_len + more) return true;
        if (starts_with_any((struct slice){archive.data + at + LIST_HEAD_BYTES, name_len}, starts))
            return true;
        at += LIST_HEAD_BYTES + name_len + more;
    }
    return false;
}
