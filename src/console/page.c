/* The page's files: out of the binary, where the Makefile has put each of them compressed, or out of a folder for who
 * works on them.
 *
 * A file is fetched again only when it has changed: browsers ask each time (no-cache) and name the hash of what they
 * have (ETag). The hash is weak, as it stands for the file compressed and not. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/limits.h"
#include "console/internal.h"

#define NAME_BYTES 200
#define ETAG_BYTES 24
#define PATH_BYTES 4300

/* Nothing from elsewhere, no script but the files themselves, in nobody's frame, out of reach of who opened it. */
#define HEADERS                                                                                              \
    "Server: Quipu\r\n"                                                                                      \
    "Cache-Control: no-cache\r\n"                                                                            \
    "Vary: Accept, Accept-Encoding\r\n"                                                                      \
    "X-Content-Type-Options: nosniff\r\n"                                                                    \
    "Referrer-Policy: no-referrer\r\n"                                                                       \
    "Cross-Origin-Opener-Policy: same-origin\r\n"                                                            \
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "                     \
    "img-src 'self' data:; connect-src 'self'; font-src 'none'; base-uri 'none'; form-action 'none'; "       \
    "frame-ancestors 'none'\r\n"

/* From the Makefile: of each file its name and its bytes in gzip's form, the length of each before it (32 bits). */
extern const char console_page_start[], console_page_end[];

struct page_file {
    struct slice name, packed;
    char etag[ETAG_BYTES];
};

static void put_etag(char out[ETAG_BYTES], struct slice bytes)
{
    snprintf(out, ETAG_BYTES, "W/\"%016llx\"", (unsigned long long)hash_bytes(bytes));
}

static struct slice take_text(const char **at)
{
    uint32_t len;
    ensure((size_t)(console_page_end - *at) >= sizeof len);
    memcpy(&len, *at, sizeof len);
    struct slice text = {*at + sizeof len, len};
    *at = text.data + len;
    ensure(*at <= console_page_end);
    return text;
}

void page_open(struct console *console)
{
    for (const char *at = console_page_start; at < console_page_end;) {
        struct page_file *files = must_realloc(console->files, (console->file_count + 1) * sizeof *files);
        struct page_file *file = &files[console->file_count++];
        console->files = files;
        file->name = take_text(&at);
        file->packed = take_text(&at);
        put_etag(file->etag, file->packed);
    }
}

void page_close(struct console *console)
{
    free(console->files);
}

/* ---- serving ---- */

static struct slice type_of(struct slice name)
{
    static const struct {
        struct slice end, type;
    } types[] = {
        {SLICE(".html"), SLICE("text/html; charset=utf-8")},     {SLICE(".css"), SLICE("text/css; charset=utf-8")},
        {SLICE(".js"), SLICE("text/javascript; charset=utf-8")}, {SLICE(".svg"), SLICE("image/svg+xml")},
        {SLICE(".json"), SLICE("application/json")},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct slice end = types[i].end;
        if (name.len > end.len && slice_equal(slice_from(name, name.len - end.len), end)) return types[i].type;
    }
    return SLICE("application/octet-stream");
}

static void answer(struct rest_call *call, struct slice name, const char *etag, bool is_packed)
{
    struct slice known = call->header(call, SLICE("If-None-Match"));
    bool is_same = slice_contains(known, slice_of(etag + 2)) || slice_equal(slice_trim(known), SLICE("*"));
    call->status = is_same ? 304 : 200;
    if (is_same) call->reply->len = 0;
    call->content_type = type_of(name);
    call->is_bare = true;
    call->headers = arena_printf(call->arena, HEADERS "ETag: %s\r\n%s", etag,
                                 is_packed && !is_same ? "Content-Encoding: gzip\r\n" : "");
    call->done(call);
}

/* The binary's own bytes, which gzip has made: nothing can be wrong with them. */
static void put_unpacked(struct buf *out, struct slice packed)
{
    uint32_t len;
    z_stream stream = {0};
    ensure(packed.len > 18);
    memcpy(&len, packed.data + packed.len - sizeof len, sizeof len); /* gzip's last word, little-endian */
    len = le32toh(len);
    buf_reserve(out, (size_t)len + 1);
    stream.next_in = (Bytef *)(uintptr_t)packed.data;
    stream.avail_in = (uInt)packed.len;
    stream.next_out = (Bytef *)out->data + out->len;
    stream.avail_out = len + 1;
    ensure(inflateInit2(&stream, 16 + MAX_WBITS) == Z_OK);
    ensure(inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.total_out == len);
    inflateEnd(&stream);
    out->len += len;
}

/* Letters, digits, . _ - in segments that do not begin with a dot: no way out of the folder. */
static bool is_name(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i], before = i ? name.data[i - 1] : '/';
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                        c == '-';
        if (!is_plain && !((c == '.' || c == '/') && before != '/')) return false;
    }
    return name.len && name.len < NAME_BYTES;
}

static bool read_file(const char *folder, struct slice name, struct buf *out)
{
    char path[PATH_BYTES];
    struct stat status;
    if (snprintf(path, sizeof path, "%s/%.*s", folder, SLICE_ARG(name)) >= (int)sizeof path) return false;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    bool fine = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= LIMIT_CONSOLE_FILE_BYTES;
    while (fine) {
        buf_reserve(out, 65536);
        ssize_t got = read(file, out->data + out->len, 65536);
        if (got <= 0) {
            fine = got == 0;
            break;
        }
        out->len += (size_t)got;
    }
    close(file);
    return fine;
}

void page_serve(struct console *console, struct rest_call *call, struct slice name, bool takes_gzip)
{
    char etag[ETAG_BYTES];
    if (console->options.folder && is_name(name) && read_file(console->options.folder, name, call->reply)) {
        put_etag(etag, buf_view(call->reply));
        answer(call, name, etag, false);
        return;
    }
    for (size_t i = 0; !console->options.folder && i < console->file_count; i++) {
        const struct page_file *file = &console->files[i];
        if (!slice_equal(file->name, name)) continue;
        if (takes_gzip)
            buf_slice(call->reply, file->packed);
        else
            put_unpacked(call->reply, file->packed);
        answer(call, name, file->etag, takes_gzip);
        return;
    }
    call->reply->len = 0;
    console_refuse(call, 404, "not-found", "The console has no file '%.*s'.",
                   (int)(name.len < NAME_BYTES ? name.len : NAME_BYTES), name.data);
}
