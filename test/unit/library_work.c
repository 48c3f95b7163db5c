/* Work and documents by their C functions. */
#include <unistd.h>

#include "unit/library_fixture.h"

static void check_work(struct quipu *db)
{
    struct quipu_reply *claim = NULL, *reply = NULL;
    struct quipu_work work = {0};
    struct quipu_work_options options = {
        .lease_ms = 60000, .attempts = 2, .backoff_ms = 1, .keep_ms = 3600000};
    CHECK_INT(quipu_work_put(db, "mails", &options, &reply), QUIPU_DONE);
    CHECK_INT(quipu_work_claim(db, "mails", "me", 0, 10, &work, &reply), QUIPU_NONE);
    CHECK_INT(quipu_work_submit(db, "mails", "one", "{\"to\":\"ann\"}", 0, &work, &reply), QUIPU_DONE);
    CHECK(work.state == QUIPU_WORK_READY && strcmp(work.id, "one") == 0);
    CHECK_INT(quipu_work_claim(db, "mails", "me", 30000, -1, &work, &claim), QUIPU_DONE);
    CHECK(work.state == QUIPU_WORK_CLAIMED && work.fence == 1 && work.attempts == 1 && work.until_ms > 0);
    CHECK_TEXT(slice_of(work.id), "one");
    CHECK_TEXT(slice_of(work.data), "{\"to\":\"ann\"}");
    CHECK(!work.progress && !work.result && !work.error);
    CHECK_INT(quipu_work_beat(db, "mails", work.id, 1, NULL, &reply), QUIPU_DONE);
    CHECK_INT(quipu_work_beat(db, "mails", work.id, 1, &(struct quipu_beat){60000, "\"half\"", 5}, &reply),
              QUIPU_DONE);
    CHECK_INT(quipu_work_delete(db, "mails", work.id, &reply), QUIPU_CONFLICT);
    CHECK_INT(quipu_work_fail(db, "mails", work.id, 1,
                              &(struct quipu_failure){.reason = "no \"ink\"", .after_ms = 1}, &reply),
              QUIPU_DONE);
    CHECK_INT(quipu_work_finish(db, "mails", work.id, 1, NULL, &reply), QUIPU_CONFLICT);
    CHECK_INT(quipu_work_claim(db, "mails", NULL, 0, -1, &work, &claim), QUIPU_DONE);
    CHECK_INT(work.fence, 2);
    CHECK_TEXT(slice_of(work.error), "no \"ink\"");
    CHECK_TEXT(slice_of(work.progress), "\"half\"");
    CHECK_INT(work.step, 5);
    CHECK_INT(quipu_work_wait(db, "mails", work.id, 10, NULL, &reply), QUIPU_NONE);
    CHECK_INT(quipu_work_finish(db, "mails", work.id, 2, "[1]", &reply), QUIPU_DONE);
    CHECK_INT(quipu_work_wait(db, "mails", "one", -1, &work, &reply), QUIPU_FOUND);
    CHECK_INT(work.state, QUIPU_WORK_DONE);
    CHECK_TEXT(slice_of(work.result), "[1]");
    CHECK_INT(quipu_work_submit(db, "mails", "one", NULL, 0, &work, &reply), QUIPU_DONE);
    CHECK_INT(work.state, QUIPU_WORK_DONE); /* what became of it */
    quipu_reply_free(claim);
    quipu_reply_free(reply);
}

static void check_dead_work(struct quipu *db)
{
    struct quipu_reply *reply = NULL;
    struct quipu_work work = {0};
    CHECK_INT(quipu_work_get(db, "q", "x", &work, &reply), QUIPU_MISSING);
    CHECK_INT(quipu_work_submit(db, "q", "claim", NULL, 0, &work, NULL),
              QUIPU_DONE); /* a name like any other */
    CHECK(work.state == QUIPU_WORK_READY && !work.id);
    CHECK_INT(quipu_work_submit(db, "q", "later", NULL, 3600000, NULL, NULL), QUIPU_DONE);
    CHECK_INT(quipu_work_claim(db, "q", NULL, 0, -1, &work, &reply), QUIPU_DONE);
    CHECK_INT(quipu_work_claim(db, "q", NULL, 0, 0, NULL, NULL), QUIPU_NONE);
    CHECK_INT(quipu_work_fail(db, "q", "claim", work.fence, &(struct quipu_failure){.give_up = 1}, &reply),
              QUIPU_DONE);
    CHECK_INT(count_pages(quipu_work_list(db, "q", "dead")), 1);
    CHECK_INT(count_pages(quipu_work_list(db, "q", NULL)), 2);
    CHECK_INT(count_pages(quipu_work_list(db, "q", "asleep")), -1);
    CHECK_INT(quipu_work_get(db, "q", "claim", &work, &reply), QUIPU_FOUND);
    CHECK_INT(work.state, QUIPU_WORK_DEAD);
    CHECK_INT(quipu_work_retry(db, "q", "claim", &reply), QUIPU_DONE);
    CHECK_INT(quipu_work_fail(db, "q", "claim", 7, NULL, &reply), QUIPU_CONFLICT);
    CHECK_INT(quipu_work_delete(db, "q", "claim", &reply), QUIPU_DONE);
    CHECK_INT(quipu_work_delete(db, "q", "", &reply), QUIPU_FAILED);
    CHECK_INT(quipu_work_beat(db, "q", "x", 1, &(struct quipu_beat){.progress = "]"}, &reply), QUIPU_FAILED);
    CHECK_INT(quipu_work_put(db, "q", NULL, &reply), QUIPU_DONE);
    quipu_reply_free(reply);
}

TEST(work_by_functions)
{
    on_every_engine(check_work);
    on_every_engine(check_dead_work);
}

/* ---- documents ---- */

static void check_documents(struct quipu *db)
{
    struct quipu_reply *reply = NULL;
    int64_t version = -1;
    CHECK_INT(quipu_document_get(db, "notes", "a/b", &version, &reply), QUIPU_MISSING);
    CHECK_INT(version, 0);
    CHECK_INT(quipu_document_put(db, "notes", "a/b", "{\"n\":1}", version, &version, &reply), QUIPU_DONE);
    CHECK_INT(version, 1);
    CHECK_INT(quipu_document_put(db, "notes", "a/b", "{}", 0, &version, &reply), QUIPU_CONFLICT);
    CHECK_INT(version, 1);
    CHECK_TEXT(error_of(reply), "version-mismatch");
    CHECK_INT(quipu_document_put(db, "notes", "a/b", "[2]", 1, &version, &reply), QUIPU_DONE);
    CHECK_INT(
        quipu_document_put(db, "notes", "a/b", "{\"m\":{\"x\":1,\"y\":2}}", QUIPU_ANY, &version, &reply),
        QUIPU_DONE);
    CHECK_INT(version, 3);
    CHECK_INT(quipu_document_patch(db, "notes", "a/b", "{\"m\":{\"x\":null}}", 3, &version, &reply),
              QUIPU_DONE);
    CHECK_INT(quipu_document_patch(db, "notes", "a/b", "{}", 3, &version, &reply), QUIPU_CONFLICT);
    CHECK_INT(version, 4);
    CHECK_INT(quipu_document_patch(db, "notes", "a/b", "{}", 0, NULL, &reply), QUIPU_FAILED);
    CHECK_INT(quipu_document_get(db, "notes", "a/b", &version, &reply), QUIPU_FOUND);
    CHECK_TEXT(slice_of(reply->json), "{\"m\":{\"y\":2}}");
    CHECK_INT(version, 4);
    CHECK_INT(quipu_document_wait(db, "notes", "a/b", 4, 20, &version, &reply), QUIPU_NONE);
    CHECK_INT(version, 4);
    CHECK_INT(quipu_document_wait(db, "notes", "a/b", 3, -1, &version, &reply), QUIPU_FOUND);
    CHECK_INT(quipu_document_wait(db, "notes", "none", 0, 20, NULL, NULL), QUIPU_MISSING);
    CHECK_INT(quipu_document_put(db, "notes", "bad", "{", QUIPU_ANY, NULL, &reply), QUIPU_FAILED);
    CHECK_INT(quipu_document_put(db, "notes", "bad", NULL, QUIPU_ANY, NULL, &reply), QUIPU_FAILED);
    CHECK_INT(count_pages(quipu_document_list(db, "notes")), 1);
    CHECK_INT(quipu_document_delete(db, "notes", "a/b", 3, &version, &reply), QUIPU_CONFLICT);
    CHECK_INT(quipu_document_delete(db, "notes", "a/b", 0, NULL, &reply), QUIPU_FAILED);
    CHECK_INT(quipu_document_delete(db, "notes", "a/b", 4, NULL, &reply), QUIPU_DONE);
    CHECK_INT(quipu_document_delete(db, "notes", "a/b", QUIPU_ANY, NULL, &reply), QUIPU_MISSING);
    CHECK_INT(count_pages(quipu_document_list(db, "notes")), 0);
    quipu_reply_free(reply);
}

/* Lists go on behind their first page, also when they begin behind a place. */
static void check_pages(struct quipu *db)
{
    char key[20];
    for (int i = 0; i < 25; i++) {
        snprintf(key, sizeof key, "\"%02d\"", i);
        CHECK_INT(quipu_document_put(db, "many", key, "1", 0, NULL, NULL), QUIPU_DONE);
    }
    CHECK_INT(count_pages(quipu_pages_open(db, "GET", "/v1/documents/many?limit=10")), 25);
    CHECK_INT(count_pages(quipu_pages_open(db, "GET", "/v1/documents/many?limit=4&after=%2210%22")), 14);
    CHECK_INT(count_pages(quipu_pages_open(db, "GET", "/v1/documents/many")), 25);
    CHECK_INT(count_pages(quipu_pages_open(db, "GET", "/nowhere")), -1);
}

TEST(documents_by_functions)
{
    on_every_engine(check_documents);
    on_every_engine(check_pages);
}

static void *write_soon(void *argument)
{
    usleep(10000);
    CHECK_INT(quipu_document_put(argument, "notes", "new", "7", 0, NULL, NULL), QUIPU_DONE);
    return NULL;
}

TEST(waiting_for_a_document_of_another_thread)
{
    struct quipu *db = open_or_fail(":memory:");
    struct quipu_reply *reply = NULL;
    int64_t version;
    pthread_t writer;
    CHECK(pthread_create(&writer, NULL, write_soon, db) == 0);
    CHECK_INT(quipu_document_wait(db, "notes", "new", 0, -1, &version, &reply), QUIPU_FOUND);
    CHECK_TEXT(slice_of(reply->json), "7");
    CHECK_INT(version, 1);
    pthread_join(writer, NULL);
    quipu_reply_free(reply);
    quipu_close(db);
}
