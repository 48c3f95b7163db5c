/* Archives of code, in parts of PREFIXcode: hash key `sha256` (S, base64 as CodeSha256 shows it), range key
 * `part` (N, from 1), `bytes` (B), `upload` (S). What is known of an archive as a whole is an item of the
 * functions' table, name `*code`, part its hash: Size, Parts, Upload, Whole, Used (when somebody last said
 * that he needs it, in milliseconds).
 *
 * The item of the whole is written first and says under which Upload the parts are written; they are complete
 * when it says Whole. Who removes an archive removes that item first, on the condition that it is as he read
 * it, and then the parts of that Upload only: an archive that is stored anew meanwhile has another one. */
#include <dirent.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/digest.h"
#include "base/fail.h"
#include "base/limits.h"
#include "base/log.h"
#include "func/archive.h"
#include "func/registry.h"

#define CODE_NAME        "*code"
#define UNUSED_MS_SHARED (3600 * 1000) /* longer than any request from storing an archive to naming it */
#define STORE_ATTEMPTS   3

struct code_head {
    struct slice sha256, upload;
    int64_t size, parts, used;
    bool is_whole;
};

/* ---- hashes ---- */

struct slice code_sha256(struct slice bytes, struct arena *arena)
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    struct buf text = {0};
    SHA256((const unsigned char *)bytes.data, bytes.len, hash);
    base64_put(&text, (struct slice){(const char *)hash, sizeof hash});
    struct slice copy = arena_copy(arena, buf_view(&text));
    buf_free(&text);
    return copy;
}

struct slice code_folder(struct registry *registry, struct slice sha256, struct arena *arena)
{
    struct slice hash;
    struct buf path = {0};
    if (!sha256.len || base64_decode(arena, sha256, &hash) != BASE64_OK) return SLICE_NONE;
    buf_printf(&path, "%s/", registry->folder);
    digest_put_hex(&path, (const unsigned char *)hash.data, hash.len);
    buf_byte(&path, 0); /* so that it can be handed to the system as it is */
    struct slice copy = arena_copy(arena, buf_view(&path));
    buf_free(&path);
    copy.len--;
    return copy;
}

/* ---- claims ---- */

void code_claim(struct registry *registry, struct code_claim *claim, struct slice sha256)
{
    snprintf(claim->sha256, sizeof claim->sha256, "%.*s", SLICE_ARG(sha256));
    pthread_mutex_lock(&registry->lock);
    claim->next = registry->claims;
    registry->claims = claim;
    pthread_mutex_unlock(&registry->lock);
}

void code_unclaim(struct registry *registry, struct code_claim *claim)
{
    pthread_mutex_lock(&registry->lock);
    struct code_claim **at = &registry->claims;
    while (*at && *at != claim) at = &(*at)->next;
    if (*at) *at = claim->next;
    pthread_mutex_unlock(&registry->lock);
}

static bool is_named(const struct entry *entry, struct slice sha256, struct arena *scratch)
{
    struct slice layers[LIMIT_LAYERS];
    for (uint32_t i = 0; i < entry->count; i++) {
        const struct document *document = &entry->parts[i].document;
        if (slice_equal(document_text(document, "CodeSha256", scratch), sha256)) return true;
        uint32_t count = layers_read(document, scratch, layers);
        for (uint32_t j = 0; j < count; j++)
            if (slice_equal(layers[j], sha256)) return true;
    }
    return false;
}

static bool is_needed(struct registry *registry, struct slice sha256)
{
    struct arena scratch = {0};
    bool needed = false;
    pthread_mutex_lock(&registry->lock);
    for (const struct code_claim *claim = registry->claims; claim && !needed; claim = claim->next)
        needed = slice_equal(slice_of(claim->sha256), sha256);
    for (uint32_t i = 0; i < registry->count && !needed; i++)
        needed = is_named(registry->entries[i], sha256, &scratch);
    pthread_mutex_unlock(&registry->lock);
    arena_free(&scratch);
    return needed;
}

/* ---- the item of the whole ---- */

static void put_head_key(struct buf *out, struct registry *registry, struct slice sha256)
{
    registry_put_table(out, registry->functions_table);
    buf_text(out, "\"Key\":{");
    registry_put_key(out, SLICE(CODE_NAME), sha256);
    buf_text(out, "},");
}

static struct code_head head_of(const struct document *document, struct arena *arena)
{
    return (struct code_head){
        .sha256 = document_text(document, "part", arena),
        .upload = document_text(document, "Upload", arena),
        .size = document_integer(document, "Size", 0),
        .parts = document_integer(document, "Parts", 0),
        .used = document_integer(document, "Used", 0),
        .is_whole = slice_equal(document_get(document, "Whole"), SLICE("true")),
    };
}

/* The item in a reply's member ("Item", "Attributes"); false when there is none. */
static bool head_in_reply(struct slice reply, const char *member, struct arena *arena, struct code_head *head)
{
    struct document document, item;
    struct json_reader reader;
    if (!document_parse(reply, arena, &document)) return false;
    struct slice json = document_get(&document, member);
    if (!json.data) return false;
    json_begin(&reader, json, arena);
    if (!document_of_item(&reader, &item)) return false;
    *head = head_of(&item, arena);
    return true;
}

static void log_failure(const char *what, struct slice sha256, struct slice reply)
{
    struct arena arena = {0};
    struct slice name, message;
    dynamo_error(reply, &arena, &name, &message);
    log_line("the code %.*s cannot be %s: %.*s", SLICE_ARG(sha256), what, SLICE_ARG(message));
    arena_free(&arena);
}

/* Says that the archive is needed now, and makes its item where there is none. */
static bool head_touch(struct registry *registry, struct slice sha256, int64_t size, struct arena *arena,
                       struct code_head *head)
{
    struct buf request = {0}, reply = {0};
    struct slice upload = registry_uuid(registry, arena);
    long long parts = (size + LIMIT_CODE_PART_BYTES - 1) / LIMIT_CODE_PART_BYTES;
    put_head_key(&request, registry, sha256);
    buf_text(&request, "\"UpdateExpression\":\"SET #u = :u, #l = if_not_exists(#l, :l), #s = :s, #p = :p\","
                       "\"ExpressionAttributeNames\":{\"#u\":\"Used\",\"#l\":\"Upload\",\"#s\":\"Size\","
                       "\"#p\":\"Parts\"},\"ReturnValues\":\"ALL_NEW\",\"ExpressionAttributeValues\":");
    buf_printf(&request, "{\":u\":{\"N\":\"%lld\"},\":l\":{\"S\":\"%.*s\"},\":s\":{\"N\":\"%lld\"},",
               (long long)clock_now_ms(registry->func->options.clock), SLICE_ARG(upload), (long long)size);
    buf_printf(&request, "\":p\":{\"N\":\"%lld\"}}}", parts);
    int status = registry_call(registry, "UpdateItem", buf_view(&request), &reply, true);
    bool touched = status == 200 &&
                   head_in_reply(arena_copy(arena, buf_view(&reply)), "Attributes", arena, head);
    if (!touched) log_failure("stored", sha256, buf_view(&reply));
    buf_free(&request);
    buf_free(&reply);
    return touched;
}

/* Says that all parts are there; false when the item is gone or another's meanwhile. */
static bool head_finish(struct registry *registry, const struct code_head *head)
{
    struct buf request = {0}, reply = {0};
    put_head_key(&request, registry, head->sha256);
    buf_printf(&request,
               "\"UpdateExpression\":\"SET #w = :t\",\"ConditionExpression\":\"#l = :l\","
               "\"ExpressionAttributeNames\":{\"#w\":\"Whole\",\"#l\":\"Upload\"},"
               "\"ExpressionAttributeValues\":{\":t\":{\"BOOL\":true},\":l\":{\"S\":\"%.*s\"}}}",
               SLICE_ARG(head->upload));
    int status = registry_call(registry, "UpdateItem", buf_view(&request), &reply, false);
    buf_free(&request);
    buf_free(&reply);
    return status == 200;
}

static bool head_read(struct registry *registry, struct slice sha256, struct arena *arena,
                      struct code_head *head)
{
    struct buf request = {0}, reply = {0};
    put_head_key(&request, registry, sha256);
    buf_text(&request, "\"ConsistentRead\":true}");
    int status = registry_call(registry, "GetItem", buf_view(&request), &reply, false);
    bool found = status == 200 && head_in_reply(arena_copy(arena, buf_view(&reply)), "Item", arena, head);
    buf_free(&request);
    buf_free(&reply);
    return found;
}

/* ---- parts ---- */

static void put_part_key(struct buf *out, struct slice sha256, int64_t part)
{
    buf_text(out, "\"sha256\":{\"S\":");
    json_put_string(out, sha256);
    buf_printf(out, "},\"part\":{\"N\":\"%lld\"}", (long long)part);
}

static bool part_put(struct registry *registry, const struct code_head *head, int64_t part,
                     struct slice bytes)
{
    struct buf request = {0}, reply = {0};
    registry_put_table(&request, registry->code_table);
    buf_text(&request, "\"Item\":{");
    put_part_key(&request, head->sha256, part);
    buf_printf(&request, ",\"upload\":{\"S\":\"%.*s\"},\"bytes\":{\"B\":", SLICE_ARG(head->upload));
    json_put_base64(&request, bytes);
    buf_text(&request, "}}}");
    int status = registry_call(registry, "PutItem", buf_view(&request), &reply, true);
    if (status != 200) log_failure("stored", head->sha256, buf_view(&reply));
    buf_free(&request);
    buf_free(&reply);
    return status == 200;
}

static bool parts_put(struct registry *registry, const struct code_head *head, struct slice bytes)
{
    for (int64_t part = 1; bytes.len; part++) {
        struct slice piece = {bytes.data,
                              bytes.len < LIMIT_CODE_PART_BYTES ? bytes.len : LIMIT_CODE_PART_BYTES};
        if (!part_put(registry, head, part, piece)) return false;
        bytes = slice_from(bytes, piece.len);
    }
    return true;
}

bool code_store(struct registry *registry, struct slice sha256, struct slice bytes)
{
    struct arena arena = {0};
    struct code_head head;
    bool stored = false;
    if (!bytes.data) {
        stored = head_read(registry, sha256, &arena, &head) && head.is_whole &&
                 head_touch(registry, sha256, head.size, &arena, &head) && head.is_whole;
        arena_free(&arena);
        return stored;
    }
    for (int i = 0; i < STORE_ATTEMPTS && !stored; i++) {
        if (!head_touch(registry, sha256, (int64_t)bytes.len, &arena, &head)) break;
        stored = head.is_whole || (parts_put(registry, &head, bytes) && head_finish(registry, &head));
    }
    arena_free(&arena);
    return stored;
}

/* Appends the bytes of one part. */
static bool part_get(struct registry *registry, struct slice sha256, int64_t part, struct buf *bytes)
{
    struct buf request = {0}, reply = {0};
    struct arena arena = {0};
    struct document document = {0};
    struct slice piece;
    registry_put_table(&request, registry->code_table);
    buf_text(&request, "\"Key\":{");
    put_part_key(&request, sha256, part);
    buf_text(&request, "},\"ConsistentRead\":true}");
    int status = registry_call(registry, "GetItem", buf_view(&request), &reply, false);
    if (status == 200) document_parse(buf_view(&reply), &arena, &document);
    struct document item = document_object(&document, "Item", &arena);
    struct document value = document_object(&item, "bytes", &arena);
    struct slice text = document_text(&value, "B", &arena);
    bool got = text.data && base64_decode(&arena, text, &piece) == BASE64_OK;
    if (got) buf_slice(bytes, piece);
    buf_free(&request);
    buf_free(&reply);
    arena_free(&arena);
    return got;
}

bool code_load(struct registry *registry, struct slice sha256, struct buf *bytes)
{
    struct arena arena = {0};
    struct code_head head = {0};
    bool loaded = head_read(registry, sha256, &arena, &head) && head.is_whole &&
                  head.size <= LIMIT_CODE_BYTES;
    for (int64_t part = 1; part <= head.parts && loaded; part++)
        loaded = part_get(registry, sha256, part, bytes);
    loaded = loaded && slice_equal(code_sha256(buf_view(bytes), &arena), sha256);
    arena_free(&arena);
    if (!loaded) log_line("the code %.*s cannot be read", SLICE_ARG(sha256));
    return loaded;
}

bool code_unpack(struct registry *registry, struct slice sha256)
{
    struct arena arena = {0};
    struct buf bytes = {0};
    struct stat stat_of_folder;
    char error[512];
    struct slice folder = code_folder(registry, sha256, &arena);
    bool there = folder.len && stat(folder.data, &stat_of_folder) == 0;
    if (!there && folder.len && code_load(registry, sha256, &bytes)) {
        there = archive_unpack(buf_view(&bytes), folder.data, error, sizeof error) == ARCHIVE_UNPACKED;
        if (!there) log_line("the code %.*s cannot be unpacked: %s", SLICE_ARG(sha256), error);
    }
    buf_free(&bytes);
    arena_free(&arena);
    return there;
}

/* ---- removing ---- */

static bool head_delete(struct registry *registry, const struct code_head *head)
{
    struct buf request = {0}, reply = {0};
    put_head_key(&request, registry, head->sha256);
    buf_printf(&request,
               "\"ConditionExpression\":\"#l = :l AND #u = :u\","
               "\"ExpressionAttributeNames\":{\"#l\":\"Upload\",\"#u\":\"Used\"},"
               "\"ExpressionAttributeValues\":{\":l\":{\"S\":\"%.*s\"},\":u\":{\"N\":\"%lld\"}}}",
               SLICE_ARG(head->upload), (long long)head->used);
    int status = registry_call(registry, "DeleteItem", buf_view(&request), &reply, false);
    buf_free(&request);
    buf_free(&reply);
    return status == 200;
}

static void part_delete(struct registry *registry, const struct code_head *head, int64_t part)
{
    struct buf request = {0}, reply = {0};
    registry_put_table(&request, registry->code_table);
    buf_text(&request, "\"Key\":{");
    put_part_key(&request, head->sha256, part);
    buf_printf(&request,
               "},\"ConditionExpression\":\"#l = :l\",\"ExpressionAttributeNames\":{\"#l\":\"upload\"},"
               "\"ExpressionAttributeValues\":{\":l\":{\"S\":\"%.*s\"}}}",
               SLICE_ARG(head->upload));
    registry_call(registry, "DeleteItem", buf_view(&request), &reply, false);
    buf_free(&request);
    buf_free(&reply);
}

static void sweep_head(struct registry *registry, const struct code_head *head)
{
    int64_t age_ms = clock_now_ms(registry->func->options.clock) - head->used;
    if (registry->func->options.shared && age_ms < UNUSED_MS_SHARED) return;
    if (is_needed(registry, head->sha256) || !head_delete(registry, head)) return;
    for (int64_t part = 1; part <= head->parts; part++) part_delete(registry, head, part);
}

void code_sweep(struct registry *registry, struct slice sha256)
{
    struct arena arena = {0};
    struct code_head head;
    /* With other servers the thread that looks at the tables does it, when nobody can be about to use it. */
    if (!registry->func->options.shared && head_read(registry, sha256, &arena, &head))
        sweep_head(registry, &head);
    arena_free(&arena);
}

static void sweep_page(struct registry *registry, struct slice list, struct arena *arena)
{
    struct json_reader reader;
    struct document item;
    json_begin(&reader, list, arena);
    if (json_peek(&reader) != JSON_ARRAY || !json_enter(&reader)) return;
    while (json_element(&reader)) {
        if (!document_of_item(&reader, &item)) return;
        struct code_head head = head_of(&item, arena);
        sweep_head(registry, &head);
    }
}

void code_sweep_all(struct registry *registry)
{
    struct arena arena = {0};
    struct buf request = {0}, reply = {0};
    struct slice start = SLICE_NONE;
    do {
        struct document page;
        request.len = reply.len = 0;
        registry_put_table(&request, registry->functions_table);
        buf_text(&request, "\"ConsistentRead\":true,\"KeyConditionExpression\":\"#n = :n\","
                           "\"ExpressionAttributeNames\":{\"#n\":\"name\"},"
                           "\"ExpressionAttributeValues\":{\":n\":{\"S\":\"" CODE_NAME "\"}}");
        if (start.data) buf_printf(&request, ",\"ExclusiveStartKey\":%.*s", SLICE_ARG(start));
        buf_byte(&request, '}');
        if (registry_call(registry, "Query", buf_view(&request), &reply, false) != 200) break;
        if (!document_parse(arena_copy(&arena, buf_view(&reply)), &arena, &page)) break;
        start = document_get(&page, "LastEvaluatedKey");
        struct slice list = document_get(&page, "Items");
        if (list.data) sweep_page(registry, list, &arena);
    } while (start.data);
    buf_free(&request);
    buf_free(&reply);
    arena_free(&arena);
}

/* True when a version's code is unpacked into this folder. */
static bool folder_is_used(struct registry *registry, const char *path)
{
    bool used = false;
    pthread_mutex_lock(&registry->lock);
    for (uint32_t i = 0; i < registry->count && !used; i++)
        for (uint32_t j = 0; j < registry->entries[i]->count && !used; j++) {
            const struct function *function = registry->entries[i]->parts[j].function;
            used = function && (slice_equal(function->folder, slice_of(path)) ||
                                slice_equal(function->layers, slice_of(path)));
        }
    pthread_mutex_unlock(&registry->lock);
    return used;
}

void code_sweep_folders(struct registry *registry)
{
    DIR *folder = opendir(registry->folder);
    for (struct dirent *file; folder && (file = readdir(folder));) {
        struct buf path = {0};
        if (file->d_name[0] == '.') continue;
        buf_printf(&path, "%s/%s", registry->folder, file->d_name);
        buf_byte(&path, 0);
        if (!folder_is_used(registry, path.data)) archive_remove(path.data);
        buf_free(&path);
    }
    if (folder) closedir(folder);
}
