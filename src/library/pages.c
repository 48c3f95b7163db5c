/* Walking through the pages of a listing: the same request again and again, each time with the place where
 * the last page ended. */
#include <stdlib.h>

#include "base/fail.h"
#include "library/internal.h"

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
    {"ListContributorInsights", "ContributorInsightsSummaries", "NextToken", "NextToken"},
    {"ListExports", "ExportSummaries", "NextToken", "NextToken"},
    {"ListImports", "ImportSummaryList", "NextToken", "NextToken"},
};

struct quipu_pages {
    struct quipu *db;
    const struct listing *listing;
    struct buf request, position; /* the position ends in NUL; empty: the first page, or none */
    struct buf entry;             /* the one that was handed out last */
    struct quipu_reply *reply;
    struct arena scratch; /* of the newest page */
    struct elements entries;
    bool has_entries; /* left in this page, as far as is known */
    bool is_last;     /* no page follows this one */
};

static const struct listing *find_listing(const char *operation)
{
    for (size_t i = 0; i < sizeof listings / sizeof *listings; i++)
        if (strcmp(listings[i].operation, operation) == 0) return &listings[i];
    return NULL;
}

struct quipu_pages *quipu_pages_open(struct quipu *db, const char *operation, const char *request)
{
    const struct listing *listing = find_listing(operation);
    if (!listing) return NULL;
    struct quipu_pages *pages = must_zero(1, sizeof *pages);
    pages->db = db;
    pages->listing = listing;
    buf_slice(&pages->request, slice_of(request));
    return pages;
}

/* ---- pages ---- */

static struct quipu_reply *call_page(struct quipu_pages *pages)
{
    struct slice operation = slice_of(pages->listing->operation);
    if (!pages->position.len) return library_call(pages->db, operation, buf_view(&pages->request));
    struct buf request = {0};
    member_replace(&request, buf_view(&pages->request), slice_of(pages->listing->start),
                   buf_view(&pages->position), &pages->scratch);
    struct quipu_reply *reply = library_call(pages->db, operation, buf_view(&request));
    buf_free(&request);
    return reply;
}

/* Takes the new page apart. */
static bool open_page(struct quipu_pages *pages)
{
    const char *names[] = {pages->listing->entries, pages->listing->end};
    struct slice raws[2];
    if (!members_find(library_json(pages->reply), names, raws, 2, &pages->scratch)) return false;
    pages->has_entries = raws[0].len > 0; /* none when only a count was asked for */
    if (pages->has_entries && !elements_begin(&pages->entries, raws[0], &pages->scratch)) return false;
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
    if (pages->has_entries) pages->has_entries = elements_next(&pages->entries, raw);
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
