/* Where a function's code comes from: an archive in the request, or what only we have: a folder of this
 * machine that runs in place, and targets without a process (a URL, a table, a queue, a pattern). */
#include <sys/stat.h>

#include "base/limits.h"
#include "func/archive.h"
#include "func/lambda.h"
#include "func/target.h"

#define S3_REFUSAL                                                                                           \
    "Code cannot be fetched from S3 here. Send the archive itself (Code.ZipFile, `aws lambda ... "           \
    "--zip-file "                                                                                            \
    "fileb://...`), or name a folder of this machine (Code.Directory)."

/* ---- archives ---- */

static bool read_archive(struct func *func, struct rest_call *call, const struct shape_node *node, struct code *out)
{
    char error[512] = "";
    if (base64_decode(call->arena, node->text, &out->zip) != BASE64_OK)
        return lambda_error(call, 400, "SerializationException", "ZipFile is not valid base64");
    if (out->zip.len > LIMIT_CODE_BYTES)
        return lambda_error(call, 413, "RequestEntityTooLargeException",
                            "Zipped size must be smaller than %d bytes", LIMIT_CODE_BYTES);
    if (!out->zip.len) return lambda_refuse(call, "Uploaded file must be a non-empty zip");
    out->sha256 = code_sha256(out->zip, call->arena);
    out->size = (int64_t)out->zip.len;
    out->is_archive = out->needs_runtime = true;
    switch (archive_unpack(out->zip, code_folder(func->registry, out->sha256, call->arena).data, error,
                           sizeof error)) {
    case ARCHIVE_UNPACKED: return true;
    case ARCHIVE_BAD:
        return lambda_refuse(
            call, "Could not unzip uploaded file. Please check your file, then try to upload again. %s",
            error);
    case ARCHIVE_LARGE: return lambda_refuse(call, "Unzipped size must be smaller than 262144000 bytes");
    case ARCHIVE_FAILED: break;
    }
    return lambda_error(call, 500, "ServiceException", "%s", error);
}

/* ---- what only we have ---- */

static bool is_folder(struct slice path, struct arena *arena)
{
    struct stat stat_of_path;
    if (path.data[0] != '/' || memchr(path.data, 0, path.len)) return false;
    return stat(arena_copy(arena, path).data, &stat_of_path) == 0 && S_ISDIR(stat_of_path.st_mode);
}

static bool is_url(struct slice url)
{
    for (size_t i = 0; i < url.len; i++)
        if ((unsigned char)url.data[i] <= ' ' || url.data[i] == 0x7f) return false;
    return url.len < LIMIT_REMOTE_URL_BYTES && ((slice_starts(url, SLICE("http://")) && url.len > 7) ||
                                                (slice_starts(url, SLICE("https://")) && url.len > 8));
}

static bool is_table_name(struct slice name, size_t least, size_t most)
{
    return name.len >= least && name.len <= most && text_consists_of(name, "-_.");
}

static bool check_ours(struct rest_call *call, const struct shape_node *nodes)
{
    const struct shape_node *directory = &nodes[CODE_DIRECTORY], *url = &nodes[CODE_URL];
    if (nodes[CODE_SECRET].present && !url->present)
        return lambda_refuse(call, "Code.Secret goes with Code.Url.");
    if (directory->present && !(directory->text.len && is_folder(directory->text, call->arena)))
        return lambda_refuse(
            call, "Code.Directory must be the absolute path of a folder on the server's machine: %.*s",
            SLICE_ARG(directory->text));
    if (url->present && !is_url(url->text))
        return lambda_refuse(call, "Code.Url must begin with http:// or https:// and have no spaces.");
    if (nodes[CODE_TABLE].present && !is_table_name(nodes[CODE_TABLE].text, 3, 255))
        return lambda_refuse(call,
                             "Code.Table must be a table's name: 3 to 255 letters, digits, '-', '_' or '.'.");
    if (nodes[CODE_QUEUE].present && !is_table_name(nodes[CODE_QUEUE].text, 1, 255))
        return lambda_refuse(call, "Code.Queue must be 1 to 255 letters, digits, '-', '_' or '.'.");
    return true;
}

static bool check_pattern(struct func *func, struct rest_call *call, const struct shape_node *nodes)
{
    const struct shape_node *pattern = &nodes[CODE_PATTERN], *body = &nodes[CODE_BODY];
    struct buf why = {0};
    if (body->present && !pattern->present) return lambda_refuse(call, "Code.Body goes with Code.Pattern.");
    bool fine = !pattern->present ||
                target_pattern_is_sound(func, pattern->text, body->present ? body->text : SLICE_NONE,
                                        call->arena, &why);
    if (!fine) lambda_refuse(call, "Code.Pattern cannot be used: %.*s.", SLICE_ARG(buf_view(&why)));
    buf_free(&why);
    return fine;
}

/* ---- the whole ---- */

bool lambda_code_read(struct request *request, const struct shape_node *nodes, struct code *out)
{
    struct func *func = request->func;
    struct rest_call *call = request->call;
    static const enum code_member sources[] = {CODE_ZIP_FILE, CODE_DIRECTORY, CODE_URL,
                                               CODE_TABLE,    CODE_QUEUE,     CODE_PATTERN};
    unsigned given = 0;
    *out = (struct code){0};
    if (nodes[CODE_S3_BUCKET].present || nodes[CODE_S3_KEY].present || nodes[CODE_S3_VERSION].present)
        return lambda_refuse(call, S3_REFUSAL);
    if (nodes[CODE_IMAGE_URI].present)
        return lambda_refuse(
            call, "Functions from container images (Code.ImageUri) are not offered: code is an archive "
                  "(Code.ZipFile) or a folder (Code.Directory).");
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) given += nodes[sources[i]].present;
    if (!given) return lambda_refuse(call, "Please provide a source for function code.");
    if (given > 1)
        return lambda_refuse(
            call,
            "Please provide one source for function code: ZipFile, Directory, Url, Table, Queue or Pattern.");
    if (nodes[CODE_ZIP_FILE].present) return read_archive(func, call, &nodes[CODE_ZIP_FILE], out);
    if (!check_ours(call, nodes) || !check_pattern(func, call, nodes)) return false;
    /* The members of ours as one object. */
    static const struct shape_field ours[] = {CODE_OURS(FIELD_ROW)};
    struct buf json = {0};
    buf_byte(&json, '{');
    for (uint32_t i = 0; i < FIELD_COUNT(ours); i++)
        if (nodes[CODE_DIRECTORY + i].present)
            compose(&json, "%,%s:%s", slice_of(ours[i].name), nodes[CODE_DIRECTORY + i].text);
    buf_byte(&json, '}');
    out->ours = arena_take(call->arena, &json);
    out->sha256 = code_sha256(out->ours, call->arena);
    out->needs_runtime = nodes[CODE_DIRECTORY].present;
    return true;
}

bool lambda_code_store(struct func *func, struct rest_call *call, struct code *code)
{
    if (!code->is_archive) return true;
    code_claim(func->registry, &code->claim, code->sha256);
    if (code_store(func->registry, code->sha256, code->zip)) return true;
    lambda_code_end(func, code);
    return lambda_unavailable(call);
}

void lambda_code_end(struct func *func, struct code *code)
{
    if (!code->is_archive) return;
    code_unclaim(func->registry, &code->claim);
    code_sweep(func->registry, slice_of(code->claim.sha256)); /* nobody named it after all: it goes */
}

/* Members of ours that are no code (Concurrency) stay. */
static struct slice ours_merged(const struct code *code, const struct document *document, struct arena *arena)
{
    struct document old = document_object(document, "Quipu", arena), ours = {0};
    struct slice concurrency = document_get(&old, "Concurrency");
    if (code->ours.data) document_parse(code->ours, arena, &ours);
    if (concurrency.data) document_set(&ours, "Concurrency", concurrency, arena);
    if (!ours.count) return SLICE_NONE;
    return document_json(&ours, arena);
}

void lambda_code_apply(const struct code *code, struct document *document, struct arena *arena)
{
    document_set_text(document, "CodeSha256", code->sha256, arena);
    document_set_integer(document, "CodeSize", code->size, arena);
    document_set(document, "Quipu", ours_merged(code, document, arena), arena);
}
