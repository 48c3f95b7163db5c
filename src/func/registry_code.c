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

#include "base/attribute.h"
#include "base/compose.h"
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
    return arena_take(arena, &text);
}

struct slice code_folder(struct registry *registry, struct slice sha256, struct arena *arena)
{
    struct slice hash;
    struct buf path = {0};
    if (!sha256.len || base64_decode(arena, sha256, &hash) != BASE64_OK) return SLICE_NONE;
    buf_printf(&path, "%s/", registry->folder);
    digest_put_hex(&path, (const unsigned char *)hash.data, hash.len);
    return arena_take(arena, &path);
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

static struct code_head head_of(struct slice item, struct arena *arena)
{
    struct slice whole = raw_member(arena, item_attribute(arena, item, "Whole"), "BOOL");
    return (struct code_head){
        .sha256 = item_text(arena, item, "part"),
        .upload = item_text(arena, item, "Upload"),
        .size = item_int(arena, item, "Size", 0),
        .parts = item_int(arena, item, "Parts", 0),
        .used = item_int(arena, item, "Used", 0),
        .is_whole = slice_equal(whole, SLICE("true")),
    };
}

static bool stored(struct slice sha256, const struct dynamo_reply *reply)
{
    if (reply->status != 200)
        log_line("the code %.*s cannot be stored: %.*s", SLICE_ARG(sha256), SLICE_ARG(reply->message));
    return reply->status == 200;
}

/* Says that the archive is needed now, and makes its item where there is none. */
static bool head_touch(struct registry *registry, struct slice sha256, int64_t size, struct arena *arena,
                       struct code_head *head)
{
    struct dynamo_reply reply = registry_call(
        registry, arena, "UpdateItem", true,
        compose_in(
            arena,
            "{'TableName':%s,'Key':{'name':%S,'part':%S},'ReturnValues':'ALL_NEW','UpdateExpression':'SET "
            "#Used = :used, #Upload = if_not_exists(#Upload, :upload), #Size = :size, #Parts = :parts',%#,"
            "'ExpressionAttributeValues':{':used':%N,':upload':%S,':size':%N,':parts':%N}}",
            registry->functions_table, SLICE(CODE_NAME), sha256, clock_now_ms(registry->func->options.clock),
            registry_uuid(registry, arena), size,
            (size + LIMIT_CODE_PART_BYTES - 1) / LIMIT_CODE_PART_BYTES));
    *head = head_of(raw_member(arena, reply.body, "Attributes"), arena);
    return stored(sha256, &reply);
}

/* Says that all parts are there; false when the item is gone or another's meanwhile. */
static bool head_finish(struct registry *registry, const struct code_head *head, struct arena *arena)
{
    return registry_call(
               registry, arena, "UpdateItem", false,
               compose_in(
                   arena,
                   "{'TableName':%s,'Key':{'name':%S,'part':%S},'UpdateExpression':'SET #Whole = :true',"
                   "'ConditionExpression':'#Upload = :upload',%#,"
                   "'ExpressionAttributeValues':{':true':{'BOOL':true},':upload':%S}}",
                   registry->functions_table, SLICE(CODE_NAME), head->sha256, head->upload))
               .status == 200;
}

static bool head_read(struct registry *registry, struct slice sha256, struct arena *arena,
                      struct code_head *head)
{
    struct dynamo_reply reply = registry_call(
        registry, arena, "GetItem", false,
        compose_in(arena, "{'TableName':%s,'Key':{'name':%S,'part':%S},'ConsistentRead':true}",
                   registry->functions_table, SLICE(CODE_NAME), sha256));
    struct slice item = raw_member(arena, reply.body, "Item");
    *head = head_of(item, arena);
    return item.data != NULL;
}

/* ---- parts ---- */

static bool part_put(struct registry *registry, const struct code_head *head, int64_t part,
                     struct slice bytes)
{
    struct arena arena = {0};
    struct buf request = {0};
    compose(&request,
            "{'TableName':%s,'Item':{'sha256':%S,'part':%N,'upload':%S,'bytes':{'B':", registry->code_table,
            head->sha256, part, head->upload);
    json_put_base64(&request, bytes);
    buf_text(&request, "}}}");
    struct dynamo_reply reply = registry_call(registry, &arena, "PutItem", true, buf_view(&request));
    bool is_stored = stored(head->sha256, &reply);
    buf_free(&request);
    arena_free(&arena);
    return is_stored;
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
    bool is_stored = false;
    if (!bytes.data) {
        is_stored = head_read(registry, sha256, &arena, &head) && head.is_whole &&
                    head_touch(registry, sha256, head.size, &arena, &head) && head.is_whole;
        arena_free(&arena);
        return is_stored;
    }
    for (int i = 0; i < STORE_ATTEMPTS && !is_stored; i++) {
        if (!head_touch(registry, sha256, (int64_t)bytes.len, &arena, &head)) break;
        is_stored = head.is_whole ||
                    (parts_put(registry, &head, bytes) && head_finish(registry, &head, &arena));
    }
    arena_free(&arena);
    return is_stored;
}

/* Appends the bytes of one part. */
static bool part_get(struct registry *registry, struct slice sha256, int64_t part, struct buf *bytes)
{
    struct arena arena = {0};
    struct slice piece = SLICE_NONE;
    struct dynamo_reply reply = registry_call(
        registry, &arena, "GetItem", false,
        compose_in(&arena, "{'TableName':%s,'Key':{'sha256':%S,'part':%N},'ConsistentRead':true}",
                   registry->code_table, sha256, part));
    struct slice value = item_attribute(&arena, raw_member(&arena, reply.body, "Item"), "bytes");
    struct slice text = raw_string(&arena, raw_member(&arena, value, "B"));
    bool got = text.data && base64_decode(&arena, text, &piece) == BASE64_OK;
    if (got) buf_slice(bytes, piece);
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

static void sweep_head(struct registry *registry, const struct code_head *head, struct arena *arena)
{
    int64_t age_ms = clock_now_ms(registry->func->options.clock) - head->used;
    if (registry->func->options.shared && age_ms < UNUSED_MS_SHARED) return;
    if (is_needed(registry, head->sha256)) return;
    struct dynamo_reply reply = registry_call(
        registry, arena, "DeleteItem", false,
        compose_in(arena,
                   "{'TableName':%s,'Key':{'name':%S,'part':%S},'ConditionExpression':'#Upload = :upload AND "
                   "#Used = :used',%#,'ExpressionAttributeValues':{':upload':%S,':used':%N}}",
                   registry->functions_table, SLICE(CODE_NAME), head->sha256, head->upload, head->used));
    for (int64_t part = 1; reply.status == 200 && part <= head->parts;
         part++) /* or they are of another upload */
        registry_call(
            registry, arena, "DeleteItem", false,
            compose_in(
                arena,
                "{'TableName':%s,'Key':{'sha256':%S,'part':%N},'ConditionExpression':'#upload = :upload',%#,"
                "'ExpressionAttributeValues':{':upload':%S}}",
                registry->code_table, head->sha256, part, head->upload));
}

void code_sweep(struct registry *registry, struct slice sha256)
{
    struct arena arena = {0};
    struct code_head head;
    /* With other servers the thread that looks at the tables does it, when nobody can be about to use it. */
    if (!registry->func->options.shared && head_read(registry, sha256, &arena, &head))
        sweep_head(registry, &head, &arena);
    arena_free(&arena);
}

void code_sweep_all(struct registry *registry)
{
    struct arena arena = {0};
    struct slice last = SLICE_NONE, item;
    do {
        struct slice start = last.data ? compose_in(&arena, ",'ExclusiveStartKey':%A", last) : SLICE("");
        struct dynamo_reply reply = registry_call(
            registry, &arena, "Query", false,
            compose_in(&arena,
                       "{'TableName':%s,'ConsistentRead':true,'KeyConditionExpression':'#name = "
                       ":name',%#,'ExpressionAttributeValues':{':name':%S}%A}",
                       registry->functions_table, SLICE(CODE_NAME), start));
        raw_each (&arena, raw_member(&arena, reply.body, "Items"), &item) {
            struct code_head head = head_of(item, &arena);
            sweep_head(registry, &head, &arena);
        }
        last = raw_member(&arena, reply.body, "LastEvaluatedKey");
    } while (last.data);
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
