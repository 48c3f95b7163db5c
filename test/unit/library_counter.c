/* Counters, leases and boards by their C functions. */
#include "unit/library_fixture.h"

static void check_counters(struct quipu *db)
{
    struct quipu_reply *reply = NULL;
    int64_t value = -1, first, last;
    CHECK_INT(quipu_counter_get(db, "orders", &value, &reply), QUIPU_MISSING);
    CHECK_TEXT(error_of(reply), "no-such-counter");
    CHECK_INT(value, -1);
    CHECK_INT(quipu_counter_add(db, "orders", 1, &value, &reply), QUIPU_DONE);
    CHECK_INT(value, 1);
    CHECK(!reply->error);
    CHECK_INT(quipu_counter_add(db, "orders", 41, NULL, NULL), QUIPU_DONE);
    CHECK_INT(quipu_counter_block(db, "orders", 10, &first, &last, &reply), QUIPU_DONE);
    CHECK_INT(first, 43);
    CHECK_INT(last, 52);
    CHECK_INT(quipu_counter_get(db, "orders", &value, &reply), QUIPU_FOUND);
    CHECK_INT(value, 52);
    CHECK_INT(quipu_counter_set(db, "orders", -7, &reply), QUIPU_DONE);
    CHECK_INT(quipu_counter_get(db, "orders", &value, NULL), QUIPU_FOUND);
    CHECK_INT(value, -7);
    CHECK_INT(quipu_counter_block(db, "orders", 0, &first, &last, &reply), QUIPU_FAILED);
    CHECK_INT(reply->status, 400);
    CHECK_INT(quipu_counter_delete(db, "orders", &reply), QUIPU_DONE);
    CHECK_INT(quipu_counter_delete(db, "orders", &reply), QUIPU_MISSING);
    quipu_reply_free(reply);
}

static void check_counter_options(struct quipu *db)
{
    struct quipu_reply *reply = NULL;
    int64_t first, last, most = 105;
    struct quipu_counter_options options = {.start = 101, .max = &most, .token = "once"};
    CHECK_INT(quipu_counter_take(db, "seats", &options, &first, &last, &reply), QUIPU_DONE);
    CHECK(first == 101 && last == 101);
    CHECK_INT(quipu_counter_take(db, "seats", &options, &first, &last, &reply), QUIPU_DONE);
    CHECK(first == 101 && last == 101); /* the token again */
    options = (struct quipu_counter_options){.block = 4, .max = &most};
    CHECK_INT(quipu_counter_take(db, "seats", &options, &first, &last, &reply), QUIPU_DONE);
    CHECK(first == 102 && last == 105);
    CHECK_INT(quipu_counter_take(db, "seats", &options, &first, &last, &reply), QUIPU_CONFLICT);
    CHECK_TEXT(error_of(reply), "limit-reached");
    options = (struct quipu_counter_options){.by = -1, .min = &most};
    CHECK_INT(quipu_counter_take(db, "seats", &options, &first, &last, &reply), QUIPU_CONFLICT);
    CHECK_INT(quipu_counter_take(db, "seats", NULL, &first, NULL, &reply), QUIPU_DONE);
    CHECK_INT(first, 106);
    quipu_reply_free(reply);
}

TEST(counters_by_functions)
{
    on_every_engine(check_counters);
    on_every_engine(check_counter_options);
}

/* Whatever would make another request than it should is refused, and nothing is called. */
TEST(names_that_are_none)
{
    struct quipu *db = open_or_fail(":memory:");
    struct quipu_reply *reply = NULL;
    CHECK_INT(quipu_counter_add(db, "", 1, NULL, &reply), QUIPU_FAILED);
    CHECK_INT(reply->status, 400);
    CHECK_TEXT(error_of(reply), "bad-request");
    CHECK_TEXT(slice_of(reply->message), "A name is empty.");
    CHECK_INT(quipu_counter_add(db, NULL, 1, NULL, &reply), QUIPU_FAILED);
    CHECK_INT(quipu_counter_add(db, "\xff", 1, NULL, &reply), QUIPU_FAILED);
    CHECK_TEXT(slice_of(reply->message), "A name is no UTF-8.");
    CHECK_INT(quipu_counter_take(db, "a", &(struct quipu_counter_options){.token = "two\nlines"}, NULL, NULL,
                                 &reply),
              QUIPU_FAILED);
    CHECK_INT(quipu_counter_add(db, "a/b?c=d&e#\xc3\xa9 %41", 5, NULL, &reply), QUIPU_DONE);
    int64_t value;
    CHECK_INT(quipu_counter_get(db, "a/b?c=d&e#\xc3\xa9 %41", &value, &reply), QUIPU_FOUND);
    CHECK_INT(value, 5);
    quipu_reply_free(reply);
    quipu_close(db);
}

/* ---- leases ---- */

static void check_leases(struct quipu *db)
{
    struct quipu_reply *reply = NULL;
    struct quipu_lease mine, again, theirs = {0};
    CHECK_INT(quipu_lease_get(db, "report", &reply), QUIPU_MISSING);
    CHECK_INT(quipu_lease_take(db, "report", "a", 60000, 0, &mine, &reply), QUIPU_DONE);
    CHECK_INT(mine.fence, 1);
    CHECK(mine.until_ms > clock_now_ms(&clock_system) + 30000);
    CHECK_INT(quipu_lease_take(db, "report", "a", 60000, 0, &again, &reply), QUIPU_DONE);
    CHECK_INT(again.fence, 1);
    CHECK_INT(quipu_lease_take(db, "report", "b", 60000, 0, &theirs, &reply), QUIPU_CONFLICT);
    CHECK_TEXT(error_of(reply), "held");
    CHECK_INT(theirs.fence, 0);
    CHECK_INT(quipu_lease_take(db, "report", "b", 60000, 30, &theirs, &reply), QUIPU_CONFLICT);
    CHECK_INT(quipu_lease_renew(db, "report", "a", 3600000, &mine, &reply), QUIPU_DONE);
    CHECK(mine.until_ms > clock_now_ms(&clock_system) + 3000000);
    CHECK_INT(quipu_lease_get(db, "report", &reply), QUIPU_FOUND);
    CHECK(strstr(reply->json, "\"held\":true,\"owner\":\"a\""));
    CHECK_INT(quipu_lease_release(db, "report", "a", &mine, &reply), QUIPU_DONE);
    CHECK_INT(quipu_lease_take(db, "report", "b", 0, 0, &theirs, &reply), QUIPU_DONE);
    CHECK_INT(theirs.fence, 2);
    CHECK_INT(quipu_lease_renew(db, "report", "a", 0, &mine, &reply), QUIPU_CONFLICT);
    CHECK_TEXT(error_of(reply), "stale-fence");
    CHECK_INT(quipu_lease_release(db, "report", "a", &mine, &reply), QUIPU_CONFLICT);
    CHECK_INT(quipu_lease_release(db, "none", "a", &mine, &reply), QUIPU_MISSING);
    CHECK_INT(quipu_lease_take(db, "report", NULL, 0, 0, NULL, &reply), QUIPU_FAILED);
    /* two at a time, each by its fence */
    CHECK_INT(quipu_lease_share(db, "renders", "a", 2, 60000, 0, &mine, &reply), QUIPU_DONE);
    CHECK_INT(quipu_lease_share(db, "renders", "b", 2, 60000, 0, &theirs, &reply), QUIPU_DONE);
    CHECK(theirs.fence > mine.fence && theirs.until_ms > 0);
    CHECK_INT(quipu_lease_share(db, "renders", "c", 2, 60000, 30, &again, &reply), QUIPU_CONFLICT);
    CHECK_INT(quipu_lease_take(db, "renders", "c", 60000, 0, &again, &reply), QUIPU_CONFLICT);
    CHECK_INT(quipu_lease_renew(db, "renders", "a", 3600000, &mine, &reply), QUIPU_DONE);
    CHECK_INT(quipu_lease_release(db, "renders", "b", &theirs, &reply), QUIPU_DONE);
    CHECK_INT(quipu_lease_share(db, "renders", "c", 2, 60000, 0, &again, &reply), QUIPU_DONE);
    CHECK_INT(quipu_lease_renew(db, "renders", "b", 0, &theirs, &reply), QUIPU_CONFLICT);
    CHECK_INT(quipu_lease_share(db, "renders", "d", 0, 0, 0, &again, &reply), QUIPU_FAILED);
    quipu_reply_free(reply);
}

TEST(leases_by_functions)
{
    on_every_engine(check_leases);
}

/* ---- once ---- */

static void check_once(struct quipu *db)
{
    struct quipu_reply *reply = NULL;
    struct quipu_once mine, theirs = {0};
    int64_t until_ms = 0;
    struct quipu_once_options options = {.owner = "a", .for_ms = 60000, .input = "{\"sum\":12}"};
    CHECK_INT(quipu_once_get(db, "charge", "o-1", &theirs, &reply), QUIPU_MISSING);
    CHECK_INT(quipu_once_begin(db, "charge", "o-1", &options, 0, &mine, &reply), QUIPU_DONE);
    CHECK_INT(mine.state, QUIPU_ONCE_BEGUN);
    CHECK_INT(quipu_once_begin(db, "charge", "o-1", NULL, 30, &theirs, &reply), QUIPU_CONFLICT);
    CHECK_TEXT(error_of(reply), "running");
    CHECK_INT(quipu_once_renew(db, "charge", "o-1", mine.fence, 3600000, &until_ms, &reply), QUIPU_DONE);
    CHECK(until_ms > mine.until_ms);
    CHECK_INT(quipu_once_fail(db, "charge", "o-1", mine.fence, "declined", &reply), QUIPU_DONE);
    CHECK_INT(quipu_once_get(db, "charge", "o-1", &theirs, &reply), QUIPU_FOUND);
    CHECK_INT(theirs.state, QUIPU_ONCE_FAILED);
    CHECK_TEXT(slice_of(theirs.error), "declined");
    CHECK_INT(quipu_once_begin(db, "charge", "o-1", &options, 0, &mine, &reply), QUIPU_DONE);
    CHECK_INT(mine.fence, 2);
    CHECK_INT(quipu_once_finish(db, "charge", "o-1", 1, "0", &reply), QUIPU_CONFLICT);
    CHECK_INT(quipu_once_finish(db, "charge", "o-1", 2, "{\"paid\":12}", &reply), QUIPU_DONE);
    CHECK_INT(quipu_once_begin(db, "charge", "o-1", NULL, 0, &theirs, &reply), QUIPU_DONE);
    CHECK_INT(theirs.state, QUIPU_ONCE_DONE);
    CHECK_TEXT(slice_of(theirs.result), "{\"paid\":12}");
    options.input = "{\"sum\":13}";
    CHECK_INT(quipu_once_begin(db, "charge", "o-1", &options, 0, &theirs, &reply), QUIPU_FAILED);
    CHECK_TEXT(error_of(reply), "other-input");
    CHECK_INT(quipu_once_forget(db, "charge", "o-1", &reply), QUIPU_DONE);
    CHECK_INT(quipu_once_forget(db, "charge", "o-1", &reply), QUIPU_MISSING);
    quipu_reply_free(reply);
}

TEST(once_by_functions)
{
    on_every_engine(check_once);
}

/* ---- limits ---- */

static void check_limits(struct quipu *db)
{
    struct quipu_reply *reply = NULL;
    const struct quipu_limit limit = {.rate = 2, .per_ms = 3600000};
    int64_t left = -1, retry_after_ms = -1;
    CHECK_INT(quipu_limit_get(db, "mails", &left, &reply), QUIPU_MISSING);
    CHECK_INT(quipu_limit_take(db, "mails", &limit, 2, 0, &left, &retry_after_ms, &reply), QUIPU_DONE);
    CHECK_INT(left, 0);
    CHECK_INT(retry_after_ms, 0);
    CHECK_INT(quipu_limit_take(db, "mails", &limit, 0, 30, &left, &retry_after_ms, &reply), QUIPU_NONE);
    CHECK_TEXT(error_of(reply), "limited");
    CHECK(retry_after_ms > 1000000 && retry_after_ms <= 1800000);
    CHECK_INT(quipu_limit_get(db, "mails", &left, &reply), QUIPU_FOUND);
    CHECK_INT(left, 0);
    CHECK_INT(quipu_limit_delete(db, "mails", &reply), QUIPU_DONE);
    CHECK_INT(quipu_limit_take(db, "mails", &limit, 3, 0, NULL, NULL, &reply), QUIPU_FAILED);
    quipu_reply_free(reply);
}

TEST(limits_by_functions)
{
    on_every_engine(check_limits);
}

/* ---- boards ---- */

static void check_boards(struct quipu *db)
{
    struct quipu_reply *reply = NULL, *first = NULL;
    const char *id;
    int64_t deleted;
    CHECK_INT(quipu_board_wait(db, "lobby", NULL, 0, &reply), QUIPU_NONE);
    CHECK_INT(quipu_board_post(db, "lobby", "hello \"all\"", "ann", &id, &first), QUIPU_DONE);
    CHECK(id && id[0]);
    CHECK_INT(quipu_board_wait(db, "lobby", id, 20, &reply), QUIPU_NONE);
    CHECK_INT(quipu_board_post(db, "lobby", "bye", NULL, NULL, NULL), QUIPU_DONE);
    CHECK_INT(quipu_board_wait(db, "lobby", id, 1000, &reply), QUIPU_FOUND);
    CHECK(strstr(reply->json, "bye") && !strstr(reply->json, "hello"));
    CHECK_INT(count_pages(quipu_board_list(db, "lobby", NULL)), 2);
    CHECK_INT(count_pages(quipu_list(db, "boards", NULL)), 1);
    CHECK_INT(count_pages(quipu_list(db, "boards", "x")), 0);
    CHECK_INT(count_pages(quipu_list(db, "once/charge", NULL)), 0);
    CHECK_INT(count_pages(quipu_list(db, "nothing", NULL)), -1);
    CHECK_INT(count_pages(quipu_board_list(db, "lobby", id)), 1);
    CHECK_INT(quipu_board_delete(db, "lobby", "", &reply), QUIPU_FAILED); /* and does not clear the board */
    CHECK_INT(quipu_board_delete(db, "lobby", id, &reply), QUIPU_DONE);
    CHECK_INT(quipu_board_delete(db, "lobby", id, &reply), QUIPU_MISSING);
    CHECK_INT(quipu_board_clear(db, "lobby", &deleted, &reply), QUIPU_DONE);
    CHECK_INT(deleted, 1);
    CHECK_INT(quipu_board_post(db, "lobby", NULL, NULL, NULL, &reply), QUIPU_FAILED);
    CHECK_INT(quipu_board_post(db, "lobby", "x", NULL, &id, NULL), QUIPU_DONE);
    CHECK(!id); /* nothing keeps it */
    quipu_reply_free(first);
    quipu_reply_free(reply);
}

TEST(boards_by_functions)
{
    on_every_engine(check_boards);
}
