/* Histories by their C functions: the program itself brings the changes. */
#include "unit/library_fixture.h"

/* Takes so many changes of the stream into the history. */
static void feed(struct quipu *db, struct quipu_stream *stream, int count)
{
    struct quipu_reply *reply = NULL;
    struct quipu_record record;
    for (int i = 0; i < count; i++) {
        CHECK_INT(quipu_stream_next(stream, -1, &record), QUIPU_FOUND);
        CHECK_INT(quipu_history_feed(db, "Tab", &record, &reply), QUIPU_DONE);
        CHECK_INT(quipu_history_feed(db, "Tab", &record, &reply), QUIPU_DONE); /* once is enough */
    }
    quipu_reply_free(reply);
}

static void check_history(struct quipu *db)
{
    char error[QUIPU_ERROR_BYTES];
    struct quipu_reply *reply = NULL;
    int64_t now_ms = clock_now_ms(&clock_system);
    create_table(db, true);
    CHECK_INT(quipu_history_show(db, "Tab", &reply), QUIPU_MISSING);
    CHECK_INT(quipu_history_put(db, "None", 0, 0, &reply), QUIPU_MISSING);
    CHECK_INT(quipu_history_put(db, "Tab", 3600000, 10, &reply), QUIPU_DONE);
    CHECK_INT(quipu_history_show(db, "Tab", &reply), QUIPU_FOUND);
    CHECK(strstr(reply->json, "\"hash\":\"k\""));
    struct quipu_stream *stream = quipu_stream_open(db, "Tab", QUIPU_OLDEST, error, sizeof error);
    put(db, "a", 1, 10);
    put(db, "a", 1, 11);
    feed(db, stream, 2);
    CHECK_INT(count_pages(quipu_history_versions(db, "Tab", "a", "1", 0, 0)), 2);
    CHECK_INT(count_pages(quipu_history_versions(db, "Tab", "a", "1", now_ms - 60000, now_ms + 60000)), 2);
    CHECK_INT(count_pages(quipu_history_versions(db, "Tab", "a", "1", 0, now_ms - 60000)), 0);
    CHECK_INT(count_pages(quipu_history_versions(db, "Tab", "a", NULL, 0, 0)), -1);
    CHECK_INT(quipu_history_at(db, "Tab", "a", "1", now_ms + 60000, &reply), QUIPU_FOUND);
    CHECK(strstr(reply->json, "\"v\":11"));
    CHECK_INT(quipu_history_at(db, "Tab", "a", "1", now_ms - 60000, &reply), QUIPU_MISSING);
    struct quipu_pages *versions = quipu_history_versions(db, "Tab", "a", "1", 0, 0);
    const char *json;
    char version[100] = "";
    CHECK_INT(quipu_pages_next(versions, &json, NULL), QUIPU_FOUND);
    CHECK(sscanf(json, "{\"version\":\"%99[^\"]", version) == 1);
    quipu_pages_close(versions);
    CHECK_INT(quipu_history_restore(db, "Tab", "a", "1",
                                    &(struct quipu_restore){.version = version, .expect = version}, &reply),
              QUIPU_CONFLICT); /* there is a later one */
    CHECK_INT(quipu_history_restore(db, "Tab", "a", "1", &(struct quipu_restore){.version = version}, &reply),
              QUIPU_DONE);
    CHECK(strstr(reply->json, "\"v\":10"));
    feed(db, stream, 1);
    CHECK_INT(count_pages(quipu_history_versions(db, "Tab", "a", "1", 0, 0)), 3);
    CHECK_INT(quipu_history_restore(db, "Tab", "a", "1", &(struct quipu_restore){.time_ms = now_ms - 60000},
                                    &reply),
              QUIPU_MISSING);
    CHECK_INT(count_pages(quipu_history_list(db)), 1);
    CHECK_INT(count_pages(quipu_history_changes(db, "Tab", 0, 0)), 3);
    CHECK_INT(count_pages(quipu_history_changes(db, "Tab", now_ms - 60000, now_ms - 30000)), 0);
    CHECK_INT(count_pages(quipu_history_table(db, "Tab", now_ms + 60000)), 1);
    CHECK_INT(quipu_history_delete(db, "Tab", &reply), QUIPU_DONE);
    CHECK_INT(quipu_history_delete(db, "Tab", &reply), QUIPU_MISSING);
    quipu_stream_close(stream);
    quipu_reply_free(reply);
}

TEST(histories_by_functions)
{
    on_every_engine(check_history);
}
