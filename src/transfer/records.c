/* The records of an object, one after the other: lines of JSON, values of Ion, rows of CSV. What was read and not yet
 * handed out is kept in one buffer, which holds a record at most. */
#include <stdlib.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/raw.h"
#include "transfer/formats.h"

#define READ_BYTES (64 * 1024)

struct transfer_records {
    struct transfer_records_options options;
    struct transfer_source *source;
    struct unpack *unpack;
    struct buf bytes;    /* read, from `start` on not yet handed out */
    size_t start, at;    /* at: looked at up to here for an end */
    struct ion_scan ion; /* these two: where in a record `at` is */
    bool in_quotes;
    bool is_over, has_stopped;
    uint64_t count;
    struct slice text;
    struct buf json;
    struct arena arena;       /* of one record */
    struct arena names_arena; /* of the header */
    const struct slice *names;
    uint32_t name_count;
};

struct file_source {
    struct transfer_source source;
    int fd;
};

static ssize_t file_read(struct transfer_source *source, char *out, size_t most)
{
    ssize_t got = read(((struct file_source *)source)->fd, out, most);
    if (got < 0) source->fault = "it cannot be read";
    return got;
}

static void file_close(struct transfer_source *source)
{
    close(((struct file_source *)source)->fd);
    free(source);
}

struct transfer_source *transfer_source_of_file(int fd)
{
    struct file_source *file = must_zero(1, sizeof *file);
    file->source = (struct transfer_source){.read = file_read, .close = file_close};
    file->fd = fd;
    return &file->source;
}

struct transfer_records *transfer_records_open(struct transfer_source *source,
                                               const struct transfer_records_options *options)
{
    struct transfer_records *records = must_zero(1, sizeof *records);
    records->options = *options;
    if (!options->delimiter) records->options.delimiter = ',';
    records->source = source;
    records->unpack = unpack_open(source, options->compression);
    records->names = options->names;
    records->name_count = options->name_count;
    return records;
}

void transfer_records_close(struct transfer_records *records)
{
    unpack_close(records->unpack);
    records->source->close(records->source);
    buf_free(&records->bytes);
    buf_free(&records->json);
    arena_free(&records->arena);
    arena_free(&records->names_arena);
    free(records);
}

uint64_t transfer_records_count(const struct transfer_records *records)
{
    return records->count;
}

struct slice transfer_records_text(const struct transfer_records *records)
{
    return records->text;
}

/* ---- where a record ends ---- */

/* A row of CSV may have line ends between quotes. A quote opens where a field begins, or doubles one that has just
 * closed; within a field that has none around it, it is a byte like any. */
static bool find_row(struct transfer_records *records)
{
    struct buf *bytes = &records->bytes;
    for (; records->at < bytes->len; records->at++) {
        char c = bytes->data[records->at],
             before = records->at > records->start ? bytes->data[records->at - 1] : '\n';
        bool opens = before == records->options.delimiter || before == '\n' || before == '"';
        if (c == '"' && (records->in_quotes || opens)) records->in_quotes = !records->in_quotes;
        if (c == '\n' && !records->in_quotes) return records->at++, true;
    }
    return false;
}

static bool find_line(struct transfer_records *records)
{
    struct buf *bytes = &records->bytes;
    char *end = records->at < bytes->len ? memchr(bytes->data + records->at, '\n', bytes->len - records->at)
                                         : NULL;
    records->at = end ? (size_t)(end - bytes->data) + 1 : bytes->len;
    return end != NULL;
}

static bool find_end(struct transfer_records *records)
{
    switch (records->options.format) {
    case TRANSFER_CSV: return find_row(records);
    case TRANSFER_ION: return ion_scan(&records->ion, buf_view(&records->bytes), &records->at);
    default: return find_line(records);
    }
}

static enum transfer_result stop(struct transfer_records *records, const char *sentence, const char **fault)
{
    records->has_stopped = true;
    *fault = sentence;
    return TRANSFER_STOP;
}

/* Blanks and tabs may be fields of a row. */
static struct slice trim(const struct transfer_records *records, struct slice text)
{
    if (records->options.format != TRANSFER_CSV) return slice_trim(text);
    while (text.len && memchr("\r\n", text.data[text.len - 1], 2)) text.len--;
    return text;
}

/* Editors put it before the first record. */
static const struct slice byte_order_mark = SLICE("\xef\xbb\xbf");

/* The next record that is not empty, into `text`. */
static enum transfer_result next_text(struct transfer_records *records, const char **fault)
{
    struct buf *bytes = &records->bytes;
    for (;;) {
        bool is_found = find_end(records), is_end;
        if (!is_found && records->at - records->start > LIMIT_TRANSFER_RECORD_BYTES) {
            records->count++;
            return stop(records, "a record is too long", fault);
        }
        if (is_found || (records->is_over && records->at > records->start)) {
            records->text = trim(records,
                                 (struct slice){bytes->data + records->start, records->at - records->start});
            if (!records->count && slice_starts(records->text, byte_order_mark))
                records->text = slice_trim(slice_from(records->text, byte_order_mark.len));
            records->start = records->at;
            records->ion = (struct ion_scan){0};
            records->in_quotes = false;
            if (!records->text.len) continue;
            records->count++;
            return TRANSFER_FOUND;
        }
        if (records->is_over) return TRANSFER_END;
        if (records->start) {
            memmove(bytes->data, bytes->data + records->start, bytes->len - records->start);
            bytes->len -= records->start;
            records->at -= records->start;
            records->start = 0;
        }
        if (!unpack_read(records->unpack, bytes, READ_BYTES, &is_end, fault)) {
            records->count++;
            return stop(records, *fault, fault);
        }
        records->is_over = is_end;
    }
}

/* ---- what is in it ---- */

/* {"Item":{...}}. A line that is no JSON stops its object, as on the service. */
static enum transfer_result read_json(struct transfer_records *records, struct slice *item,
                                      const char **fault)
{
    static const char *const names[] = {"Item"};
    bool is_object = raw_members(&records->arena, records->text, names, item, 1);
    if (is_object && raw_kind(*item) == JSON_OBJECT) return TRANSFER_FOUND;
    if (!is_object && !raw_is_json(&records->arena, records->text))
        return stop(records, "a line is not JSON", fault);
    *fault = "there is no Item in it";
    return TRANSFER_BAD;
}

static enum transfer_result read_ion(struct transfer_records *records, struct slice *item, const char **fault)
{
    records->json.len = 0;
    enum transfer_result result = ion_item_read(records->text, &records->json, fault);
    *item = buf_view(&records->json);
    return result == TRANSFER_STOP ? stop(records, *fault, fault) : result;
}

static enum transfer_result read_row(struct transfer_records *records, struct slice *item, const char **fault)
{
    struct slice *fields;
    uint32_t count;
    const struct transfer_records_options *options = &records->options;
    if (!csv_split(&records->arena, records->text, options->delimiter, &fields, &count, fault))
        return stop(records, *fault, fault);
    records->json.len = 0;
    bool fine = csv_item_put(&records->json, records->names, records->name_count, fields, count,
                             options->types, options->type_count, fault);
    *item = buf_view(&records->json);
    return fine ? TRANSFER_FOUND : TRANSFER_BAD;
}

/* The first row names the columns. */
static enum transfer_result read_header(struct transfer_records *records, const char **fault)
{
    struct slice *names;
    enum transfer_result result = next_text(records, fault);
    if (result != TRANSFER_FOUND) return result;
    struct slice row = arena_copy(&records->names_arena, records->text);
    records->count--;
    if (!utf8_valid(row)) return stop(records, "the header is not UTF-8", fault);
    if (!csv_split(&records->names_arena, row, records->options.delimiter, &names, &records->name_count,
                   fault))
        return stop(records, *fault, fault);
    records->names = names;
    return TRANSFER_FOUND;
}

enum transfer_result transfer_records_next(struct transfer_records *records, struct slice *item,
                                           const char **fault)
{
    enum transfer_result result = TRANSFER_FOUND;
    if (records->has_stopped) return TRANSFER_END;
    arena_reset(&records->arena);
    records->text = SLICE_NONE;
    if (records->options.format == TRANSFER_CSV && !records->names) result = read_header(records, fault);
    if (result == TRANSFER_FOUND) result = next_text(records, fault);
    if (result != TRANSFER_FOUND) return result;
    switch (records->options.format) {
    case TRANSFER_CSV: return read_row(records, item, fault);
    case TRANSFER_ION: return read_ion(records, item, fault);
    default: return read_json(records, item, fault);
    }
}
