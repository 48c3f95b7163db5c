/* Walking through the pages of a listing: the same request again and again, each time with the place where
 * the last page ended. */
#include <stdlib.h>

#include "base/fail.h"
#include "library/internal.h"
#include "rest/rest.h"

/* What a listing operation calls its parts. */
struct listing {
    const char *operation;
    const char *entries; /* of the reply */
    const char *end;     /* of the reply: where the page ended */
    const char *start;   /* of the request: where the next begins */
};

static const struct listing listings[] = {
    {"Query", "Items", "LastEvaluatedKey", "ExclusiveStartKey"},
    {"Scan", "Items", "LastEvaluatedKey", "ExclusiveStartKey"},
    {"ExecuteStatement", "Items", "NextToken", "NextToken"},
    {"ListTables", "TableNames", "LastEvaluatedTableName", "ExclusiveStartTableName"},
    {"ListStreams", "Streams", "LastEvaluatedStreamArn", "ExclusiveStartStreamArn"},
    {"ListTagsOfResource", "Tags", "NextToken", "NextToken"},
    {"ListBackups", "BackupSummaries", "LastEvaluatedBackupArn", "ExclusiveStartBackupArn"},
    {"ListGlobalTables", "GlobalTables", "LastEvaluatedGlobalTableName", "ExclusiveStartGlobalTableName"},
    {"ListBulkOperations", "BulkOperationsSummaryList", "NextToken", "NextToken"},
    {"ListContributorInsights", "ContributorInsightsSummaries", "NextToken", "NextToken"},
    {"ListExports", "ExportSummaries", "NextToken", "NextToken"},
    {"ListImports", "ImportSummaryList", "NextToken", "NextToken"},
};

/* A pattern's list: the request is its path, and its entries have one of these names. */
static const struct listing pattern_listing = {"GET", NULL, "next", "after"};
static const char *const pattern_entries[] = {"jobs",      "missing",  "failures",   "results", "groups",
                                              "events",    "periods",  "buckets",    "work",    "documents",
                                              "histories", "versions", "open",       "partitions",
                                              "parked",    "messages", "counters",   "leases",  "limits",
                                              "logs",      "boards",   "collections", "queues", "failed",
                                              "changes"};
#define PATTERN_ENTRIES (sizeof pattern_entries / sizeof *pattern_entries)

struct quipu_pages {
    struct quipu *db;
    const struct listing *listing;
    const char *fault;            /* the request cannot be made: a sentence; NULL: it can */
    struct buf request, position; /* the position ends in NUL; empty: the first page, or none */
    struct buf entry;             /* the one that was handed out last */
    struct quipu_reply *reply;
    struct arena scratch; /* of the newest page */
    struct raw_walk entries;
    bool has_entries; /* left in this page, as far as is known */
    bool is_last;     /* no page follows this one */
};

static const struct listing *find_listing(const char *operation)
{
    for (size_t i = 0; i < sizeof listings / sizeof *listings; i++)
        if (strcmp(listings[i].operation, operation) == 0) return &listings[i];
    return strcmp(operation, pattern_listing.operation) == 0 ? &pattern_listing : NULL;
}

static struct quipu_pages *pages_new(struct quipu *db, const struct listing *listing, struct slice request)
{
    struct quipu_pages *pages = must_zero(1, sizeof *pages);
    pages->db = db;
    pages->listing = listing;
    buf_slice(&pages->request, request);
    return pages;
}

struct quipu_pages *quipu_pages_open(struct quipu *db, const char *operation, const char *request)
{
    const struct listing *listing = find_listing(operation);
    return listing ? pages_new(db, listing, slice_of(request)) : NULL;
}

struct quipu_pages *library_pages(struct quipu *db, struct slice path, const char *fault)
{
    struct quipu_pages *pages = pages_new(db, &pattern_listing, path);
    pages->fault = fault;
    return pages;
}

/* ---- pages ---- */

/* The first `after` of a query counts. */
static struct quipu_reply *call_pattern(struct quipu_pages *pages)
{
    struct slice path = buf_view(&pages->request), position = buf_view(&pages->position);
    struct buf place = {0};
    if (pages->fault) return library_refusal(400, "bad-request", pages->fault);
    const char *mark = path.len ? memchr(path.data, '?', path.len) : NULL;
    buf_slice(&place, (struct slice){path.data, mark ? (size_t)(mark - path.data) : path.len});
    if (position.len) {
        buf_text(&place, "?after=");
        rest_encode(&place, position.data[0] == '"' ? raw_string(&pages->scratch, position) : position);
    }
    if (mark) buf_byte(&place, position.len ? '&' : '?');
    if (mark) buf_slice(&place, slice_from(path, (size_t)(mark - path.data) + 1));
    struct quipu_reply *reply = library_pattern(pages->db, SLICE("GET"), buf_view(&place), SLICE(""),
                                                SLICE(""));
    buf_free(&place);
    return reply;
}

static void put_member(struct buf *out, struct slice name, struct slice raw)
{
    buf_byte(out, out->len > 1 ? ',' : '{');
    json_put_string(out, name);
    buf_byte(out, ':');
    buf_slice(out, raw);
}

/* The object without the named member and with it, at its front, in this form; as it was when it is no
 * object. */
static void member_replace(struct buf *out, struct slice object, struct slice name, struct slice raw,
                           struct arena *arena)
{
    struct raw_walk walk;
    struct slice other, other_raw;
    out->len = 0;
    put_member(out, name, raw);
    bool is_object = raw_walk_begin(&walk, arena, object) == JSON_OBJECT;
    while (is_object && raw_walk_next(&walk, &other, &other_raw))
        if (!slice_equal(other, name)) put_member(out, other, other_raw);
    buf_byte(out, '}');
    if (is_object && json_done(&walk.reader)) return;
    out->len = 0;
    buf_slice(out, object);
}

static struct quipu_reply *call_page(struct quipu_pages *pages)
{
    struct slice operation = slice_of(pages->listing->operation);
    if (pages->listing == &pattern_listing) return call_pattern(pages);
    if (!pages->position.len) return library_call(pages->db, operation, buf_view(&pages->request));
    struct buf request = {0};
    member_replace(&request, buf_view(&pages->request), slice_of(pages->listing->start),
                   buf_view(&pages->position), &pages->scratch);
    struct quipu_reply *reply = library_call(pages->db, operation, buf_view(&request));
    buf_free(&request);
    return reply;
}

/* The raw texts of the page's entries and of its end. */
static bool find_parts(struct quipu_pages *pages, struct slice raws[2])
{
    const char *names[] = {pages->listing->entries, pages->listing->end};
    struct slice json = library_json(pages->reply), candidates[PATTERN_ENTRIES];
    if (names[0]) return raw_members(&pages->scratch, json, names, raws, 2);
    if (!raw_members(&pages->scratch, json, pattern_entries, candidates, PATTERN_ENTRIES)) return false;
    raw_members(&pages->scratch, json, &names[1], &raws[1], 1);
    raws[0] = SLICE("");
    for (size_t i = 0; i < PATTERN_ENTRIES; i++)
        if (candidates[i].len && candidates[i].data[0] == '[') raws[0] = candidates[i];
    return true;
}

/* Takes the new page apart. */
static bool open_page(struct quipu_pages *pages)
{
    struct slice raws[2];
    if (!find_parts(pages, raws)) return false;
    pages->has_entries = raws[0].len > 0; /* none when only a count was asked for */
    if (pages->has_entries && raw_walk_begin(&pages->entries, &pages->scratch, raws[0]) != JSON_ARRAY)
        return false;
    pages->is_last = raws[1].len == 0;
    text_set(&pages->position, raws[1]);
    return true;
}

enum quipu_result quipu_pages_turn(struct quipu_pages *pages)
{
    if (pages->is_last) return QUIPU_NONE;
    pages->has_entries = false;
    quipu_reply_free(pages->reply);
    arena_reset(&pages->scratch);
    pages->reply = call_page(pages);
    if (pages->reply->error) return QUIPU_FAILED;
    if (open_page(pages)) return QUIPU_FOUND;
    library_bad_reply(pages->reply, "a page that is not of the service's form");
    return QUIPU_FAILED;
}

static bool take_entry(struct quipu_pages *pages, struct slice *raw)
{
    if (pages->has_entries) pages->has_entries = raw_walk_next(&pages->entries, NULL, raw);
    return pages->has_entries;
}

enum quipu_result quipu_pages_next(struct quipu_pages *pages, const char **json, size_t *json_len)
{
    struct slice raw;
    while (!take_entry(pages, &raw)) {
        enum quipu_result result = quipu_pages_turn(pages);
        if (result != QUIPU_FOUND) return result;
    }
    text_set(&pages->entry, raw);
    *json = pages->entry.data;
    if (json_len) *json_len = pages->entry.len;
    return QUIPU_FOUND;
}

const struct quipu_reply *quipu_pages_reply(const struct quipu_pages *pages)
{
    return pages->reply;
}

const char *quipu_pages_position(const struct quipu_pages *pages)
{
    return pages->position.len ? pages->position.data : NULL;
}

void quipu_pages_close(struct quipu_pages *pages)
{
    if (!pages) return;
    quipu_reply_free(pages->reply);
    buf_free(&pages->request);
    buf_free(&pages->position);
    buf_free(&pages->entry);
    arena_free(&pages->scratch);
    free(pages);
}
