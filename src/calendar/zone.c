/* Time zones out of the tz database's compiled files (TZif, RFC 8536), by code of our own: the C library
 * keeps one zone for the whole process and setting another is no thing to do beside threads.
 *
 * A zone is a table of the moments at which its offset changed, and a rule for all that come after the last.
 * Between two changes local time runs like any clock; the two questions that schedules ask (when is a local
 * time first shown, what has been shown so far) are answered by walking such spans. Files are hostile input:
 * every count is checked against the bytes that are there. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/limits.h"
#include "calendar/internal.h"

#define FOLDER      "/usr/share/zoneinfo"
#define HEAD_BYTES  44
#define TYPE_BYTES  6                  /* offset, is summer time, index of the name */
#define SPAN_BACK_S (2 * OFFSET_MAX_S) /* before that nothing can have shown a later local time */

struct zone {
    size_t count;
    const int64_t *times_s;   /* of the changes, rising */
    const int32_t *offsets_s; /* from each of them on */
    int32_t first_s;          /* the offset before all of them */
    bool has_rule;
    struct rule rule;
};

static struct zone *fail(char *error, size_t error_len, struct slice name, const char *reason)
{
    snprintf(error, error_len, "'%.*s' is no time zone: %s", SLICE_ARG(name), reason);
    return NULL;
}

/* ---- reading ---- */

/* Names are paths below the folder, and must stay there. */
static bool name_is_harmless(struct slice name)
{
    if (name.len > LIMIT_ZONE_NAME || name.data[0] == '/' || slice_contains(name, SLICE(".."))) return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        bool is_letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!is_letter && !strchr("/_+-.", c)) return false;
    }
    return true;
}

/* The whole file, or no data and errno. */
static struct slice file_read(struct arena *arena, const char *path)
{
    char *data = arena_alloc(arena, LIMIT_ZONE_BYTES);
    size_t len = 0;
    ssize_t got = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return SLICE_NONE;
    while (len < LIMIT_ZONE_BYTES && (got = read(file, data + len, LIMIT_ZONE_BYTES - len)) != 0) {
        if (got < 0 && errno != EINTR) break;
        if (got > 0) len += (size_t)got;
    }
    close(file);
    return got < 0 ? SLICE_NONE : (struct slice){data, len};
}

struct zone *zone_load(struct arena *arena, struct slice name, char *error, size_t error_len)
{
    const char *folder = getenv("TZDIR");
    char reason[128];
    if (!name.len || slice_equal(name, SLICE("UTC")) || slice_equal(name, SLICE("Etc/UTC")))
        return arena_new(arena, struct zone);
    if (!name_is_harmless(name)) return fail(error, error_len, name, "names are like Europe/Berlin");
    if (!folder || !*folder) folder = FOLDER;
    struct slice file = file_read(arena, arena_printf(arena, "%s/%.*s", folder, SLICE_ARG(name)).data);
    if (!file.data) {
        snprintf(reason, sizeof reason, "%s has no such file", folder);
        return fail(error, error_len, name,
                    access(folder, R_OK) == 0 ? reason : "this machine has no tz database");
    }
    struct zone *zone = zone_parse(arena, file, reason, sizeof reason);
    return zone ? zone : fail(error, error_len, name, reason);
}

/* ---- the file's bytes ---- */

struct head {
    char version;
    uint32_t utc_count, standard_count, leap_count, time_count, type_count, name_bytes;
};

static bool head_take(struct slice *file, struct head *out)
{
    if (file->len < HEAD_BYTES || !slice_starts(*file, SLICE("TZif"))) return false;
    uint32_t counts[6];
    for (size_t i = 0; i < 6; i++) counts[i] = bytes_u32(file->data + 20 + i * 4);
    *out = (struct head){file->data[4], counts[0], counts[1], counts[2], counts[3], counts[4], counts[5]};
    *file = slice_from(*file, HEAD_BYTES);
    return true;
}

/* The bytes behind the head; times have 4 bytes in the first block and 8 in the second. */
static uint64_t block_bytes(const struct head *head, unsigned time_bytes)
{
    return (uint64_t)head->time_count * (time_bytes + 1u) + (uint64_t)head->type_count * TYPE_BYTES +
           head->name_bytes + (uint64_t)head->leap_count * (time_bytes + 4u) + head->standard_count +
           head->utc_count;
}

static bool block_skip(struct slice *file, const struct head *head, unsigned time_bytes)
{
    uint64_t bytes = block_bytes(head, time_bytes);
    if (bytes > file->len) return false;
    *file = slice_from(*file, (size_t)bytes);
    return true;
}

/* The changes of the second block; false when they are out of order or of no type. */
static bool table_read(struct zone *zone, struct arena *arena, struct slice block, const struct head *head)
{
    int64_t *times = arena_array(arena, int64_t, head->time_count);
    int32_t *offsets = arena_array(arena, int32_t, head->time_count);
    const char *kinds = block.data + (size_t)head->time_count * 8, *types = kinds + head->time_count;
    for (uint32_t i = 0; i < head->type_count; i++) {
        int32_t offset = (int32_t)bytes_u32(types + (size_t)i * TYPE_BYTES);
        if (offset <= -OFFSET_MAX_S || offset >= OFFSET_MAX_S) return false;
    }
    for (uint32_t i = 0; i < head->time_count; i++) {
        unsigned char kind = (unsigned char)kinds[i];
        times[i] = (int64_t)bytes_u64(block.data + (size_t)i * 8);
        if (kind >= head->type_count || (i && times[i] <= times[i - 1])) return false;
        offsets[i] = (int32_t)bytes_u32(types + (size_t)kind * TYPE_BYTES);
    }
    zone->count = head->time_count;
    zone->times_s = times;
    zone->offsets_s = offsets;
    zone->first_s = (int32_t)bytes_u32(types);
    return true;
}

/* A line of its own at the end; an empty one says that nothing is known beyond the table. */
static bool footer_read(struct zone *zone, struct slice text)
{
    if (!byte_take(&text, '\n')) return false;
    const char *end = memchr(text.data, '\n', text.len);
    if (!end) return false;
    text.len = (size_t)(end - text.data);
    zone->has_rule = text.len != 0;
    return !zone->has_rule || rule_parse(text, &zone->rule);
}

struct zone *zone_parse(struct arena *arena, struct slice file, char *error, size_t error_len)
{
    struct zone *zone = arena_new(arena, struct zone);
    struct head head;
    const char *fault = NULL;
    if (!head_take(&file, &head))
        fault = "its file is not one of the tz database";
    else if (head.version < '2')
        fault = "its file is of the format's first version, which ends in 2037";
    else if (!block_skip(&file, &head, 4) || !head_take(&file, &head))
        fault = "its file is cut off";
    else if (block_bytes(&head, 8) > file.len)
        fault = "its file is cut off";
    else if (head.leap_count)
        fault = "its file counts leap seconds";
    else if (!head.type_count || !table_read(zone, arena, file, &head))
        fault = "its file makes no sense";
    else if (!block_skip(&file, &head, 8) || !footer_read(zone, file))
        fault = "the rule at its file's end makes no sense";
    if (fault) snprintf(error, error_len, "%s", fault);
    return fault ? NULL : zone;
}

/* ---- asking ---- */

/* The offset at a moment, and the moment until which it holds. */
static int32_t span_at(const struct zone *zone, int64_t time_s, int64_t *until_s)
{
    size_t below = 0, above = zone ? zone->count : 0; /* the first change later than time_s lies between */
    *until_s = INT64_MAX;
    if (!zone) return 0;
    while (below < above) {
        size_t middle = below + (above - below) / 2;
        if (zone->times_s[middle] <= time_s)
            below = middle + 1;
        else
            above = middle;
    }
    if (below < zone->count) {
        *until_s = zone->times_s[below];
        return below ? zone->offsets_s[below - 1] : zone->first_s;
    }
    if (zone->has_rule) return rule_offset_s(&zone->rule, time_s, until_s);
    return zone->count ? zone->offsets_s[zone->count - 1] : zone->first_s;
}

int32_t zone_offset_s(const struct zone *zone, int64_t time_ms)
{
    int64_t until_s;
    return span_at(zone, floor_divide(time_ms, 1000), &until_s);
}

int64_t zone_first_s(const struct zone *zone, int64_t local_s, bool *is_exact)
{
    int64_t at_s = local_s - OFFSET_MAX_S;
    for (;;) {
        int64_t until_s;
        int32_t offset_s = span_at(zone, at_s, &until_s);
        int64_t found_s = local_s - offset_s > at_s ? local_s - offset_s : at_s;
        if (found_s < until_s) {
            *is_exact = found_s + offset_s == local_s;
            return found_s;
        }
        at_s = until_s;
    }
}

int64_t zone_reached_s(const struct zone *zone, int64_t time_s)
{
    int64_t at_s = time_s - SPAN_BACK_S, reached_s = INT64_MIN;
    for (;;) {
        int64_t until_s;
        int32_t offset_s = span_at(zone, at_s, &until_s);
        int64_t shown_s = (until_s <= time_s ? until_s - 1 : time_s) + offset_s;
        if (shown_s > reached_s) reached_s = shown_s;
        if (until_s > time_s) return reached_s;
        at_s = until_s;
    }
}
