/* The keys and manifests of an export, as the service writes them:
 *
 *   [PREFIX/]AWSDynamoDB/ID/_started                 empty
 *   [PREFIX/]AWSDynamoDB/ID/data/NAME.json.gz        or .ion.gz; of incremental exports AWSDynamoDB/data/NAME...
 *   [PREFIX/]AWSDynamoDB/ID/manifest-files.json      a line for each data file
 *   [PREFIX/]AWSDynamoDB/ID/manifest-files.md5
 *   [PREFIX/]AWSDynamoDB/ID/manifest-summary.md5
 *   [PREFIX/]AWSDynamoDB/ID/manifest-summary.json    last: whoever finds it has all */
#include "transfer/manifest.h"

#include <openssl/evp.h>
#include <time.h>

#include "base/compose.h"
#include "base/digest.h"
#include "base/fail.h"
#include "base/json.h"

#define MD5_BYTES 16

static void md5(struct slice bytes, unsigned char out[MD5_BYTES])
{
    unsigned len = 0;
    ensure(EVP_Digest(bytes.data, bytes.len, out, &len, EVP_md5(), NULL) == 1 && len == MD5_BYTES);
}

void manifest_put_md5(struct buf *out, struct slice bytes)
{
    unsigned char digest[MD5_BYTES];
    md5(bytes, digest);
    base64_put(out, (struct slice){(const char *)digest, sizeof digest});
}

struct slice manifest_folder(struct arena *arena, struct slice prefix, struct slice id)
{
    while (prefix.len && prefix.data[prefix.len - 1] == '/') prefix.len--;
    return arena_printf(arena, "%.*s%sAWSDynamoDB/%.*s", SLICE_ARG(prefix), prefix.len ? "/" : "",
                        SLICE_ARG(id));
}

/* S3's mark of an object that was sent in one part of a multipart upload. */
void manifest_put_file(struct buf *out, struct slice key, struct slice bytes, int64_t items)
{
    struct arena arena = {0};
    struct buf sum = {0}, etag = {0};
    unsigned char part[MD5_BYTES], whole[MD5_BYTES];
    md5(bytes, part);
    md5((struct slice){(const char *)part, sizeof part}, whole);
    base64_put(&sum, (struct slice){(const char *)part, sizeof part});
    digest_put_hex(&etag, whole, sizeof whole);
    buf_text(&etag, "-1");
    compose(out, "{'itemCount':%d,'md5Checksum':%s,'etag':%s,'dataFileS3Key':%s}", items, buf_view(&sum),
            buf_view(&etag), key);
    buf_byte(out, '\n');
    buf_free(&sum);
    buf_free(&etag);
    arena_free(&arena);
}

/* 2026-11-16T16:20:00.123Z */
static struct slice iso_time(struct arena *arena, int64_t ms)
{
    char text[32];
    struct tm broken;
    time_t seconds = (time_t)(ms / 1000);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &broken));
    return arena_printf(arena, "%s.%03dZ", text, (int)(ms % 1000));
}

static struct slice string_or_null(struct arena *arena, struct slice text)
{
    return text.len ? compose_in(arena, "%s", text) : SLICE("null");
}

void manifest_put_summary(struct buf *out, const struct manifest *manifest)
{
    struct arena arena = {0};
    struct buf export_arn = {0}, table_arn = {0};
    const struct api_job *job = manifest->job;
    api_put_job_arn(&export_arn, manifest->api, job);
    api_put_table_arn(&table_arn, manifest->api, job->table);
    bool is_increment = job->from_ms != 0;
    compose(out, "{'version':%s,'exportArn':%s,'startTime':%s,'endTime':%s,'tableArn':%s,'tableId':%s,",
            is_increment ? SLICE("2023-08-01") : SLICE("2020-06-30"), buf_view(&export_arn),
            iso_time(&arena, job->start_ms), iso_time(&arena, job->end_ms), buf_view(&table_arn),
            job->table_id);
    if (is_increment)
        compose(out, "'exportFromTime':%s,'exportToTime':%s,", iso_time(&arena, job->from_ms),
                iso_time(&arena, job->to_ms));
    else
        compose(out, "'exportTime':%s,", iso_time(&arena, job->export_ms));
    compose(out,
            "'s3Bucket':%s,'s3Prefix':%A,'s3SseAlgorithm':%s,'s3SseKmsKeyId':%A,"
            "'manifestFilesS3Key':%s,'billedSizeBytes':%d,'itemCount':%d,'outputFormat':%s",
            manifest->bucket, string_or_null(&arena, manifest->prefix), manifest->algorithm,
            string_or_null(&arena, manifest->kms_key), manifest->files_key, job->billed_bytes, job->items,
            manifest->format);
    if (is_increment)
        compose(out, ",'outputView':%s,'exportType':'INCREMENTAL_EXPORT'",
                manifest->view.len ? manifest->view : SLICE("NEW_AND_OLD_IMAGES"));
    buf_byte(out, '}');
    buf_free(&export_arn);
    buf_free(&table_arn);
    arena_free(&arena);
}
