/* Logs of functions: positions that go on, bounded files, readers that wait. */
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/limits.h"
#include "func/archive.h"
#include "unit/func_stage.h"

struct shelf {
    struct logs *logs;
    char folder[64];
};

static void shelf_open(struct shelf *shelf)
{
    snprintf(shelf->folder, sizeof shelf->folder, "/tmp/quipu-logs-XXXXXX");
    ensure(mkdtemp(shelf->folder));
    shelf->logs = logs_open(shelf->folder);
}

static void shelf_reopen(struct shelf *shelf)
{
    logs_close(shelf->logs);
    shelf->logs = logs_open(shelf->folder);
}

static void shelf_close(struct shelf *shelf)
{
    logs_close(shelf->logs);
    archive_remove(shelf->folder);
}

static void expect(struct shelf *shelf, uint64_t from, size_t max, const char *text, uint64_t next)
{
    struct buf out = {0};
    uint64_t at;
    logs_read(shelf->logs, SLICE("f"), from, max, &out, &at);
    CHECK_TEXT(buf_view(&out), text);
    CHECK_INT(at, next);
    buf_free(&out);
}

TEST(logs_are_read_by_position_before_and_after_a_restart)
{
    struct shelf shelf;
    shelf_open(&shelf);
    expect(&shelf, 0, 100, "", 0);
    expect(&shelf, UINT64_MAX, 100, "", 0);
    logs_append(shelf.logs, SLICE("f"), SLICE("one\n"));
    logs_append(shelf.logs, SLICE("g"), SLICE("other\n"));
    logs_append(shelf.logs, SLICE("f"), SLICE("two\nthree\n"));
    for (int i = 0; i < 2; i++) {
        expect(&shelf, 0, 100, "one\ntwo\nthree\n", 14);
        expect(&shelf, 4, 3, "two", 7);
        expect(&shelf, 14, 100, "", 14);
        expect(&shelf, 1000, 100, "", 14); /* behind the end: from the end on */
        expect(&shelf, UINT64_MAX, 8, "three\n", 14);
        expect(&shelf, UINT64_MAX, 100, "one\ntwo\nthree\n", 14);
        shelf_reopen(&shelf);
    }
    logs_append(shelf.logs, SLICE("f"), SLICE("four\n"));
    expect(&shelf, 8, 100, "three\nfour\n", 19);
    shelf_close(&shelf);
}

TEST(logs_lead_nowhere_else)
{
    struct shelf shelf;
    char path[128];
    struct stat status;
    shelf_open(&shelf);
    logs_append(shelf.logs, SLICE("../escaped"), SLICE("x\n"));
    logs_append(shelf.logs, SLICE(""), SLICE("x\n"));
    shelf_reopen(&shelf);
    snprintf(path, sizeof path, "%s/../escaped.log", shelf.folder);
    CHECK(stat(path, &status) != 0);
    shelf_close(&shelf);
}

static uint64_t folder_bytes(const char *folder)
{
    char command[128];
    unsigned long long bytes = 0;
    snprintf(command, sizeof command, "cat %s/*.log | wc -c", folder);
    FILE *pipe = popen(command, "r");
    ensure(pipe && fscanf(pipe, "%llu", &bytes) == 1);
    pclose(pipe);
    return bytes;
}

/* Far more than is kept, with a pause after each piece, so that nothing is dropped. */
static uint64_t write_much(struct shelf *shelf, uint64_t bytes)
{
    struct buf piece = {0};
    uint64_t written = 0, next;
    while (piece.len < LIMIT_LOG_PENDING_BYTES / 2) buf_text(&piece, "0123456789abcde\n");
    while (written < bytes) {
        struct buf out = {0};
        logs_append(shelf->logs, SLICE("f"), buf_view(&piece));
        written += piece.len;
        usleep(20000); /* the thread's own pause is shorter; what is too fast is dropped, and counted below */
        logs_read(shelf->logs, SLICE("f"), written - 16, 100, &out, &next);
        buf_free(&out);
    }
    buf_free(&piece);
    return written;
}

TEST(logs_are_bounded_and_their_positions_go_on)
{
    struct shelf shelf;
    struct buf out = {0};
    uint64_t next, end;
    shelf_open(&shelf);
    write_much(&shelf, LIMIT_LOG_BYTES * 2);
    logs_append(shelf.logs, SLICE("f"), SLICE("the end\n"));
    shelf_reopen(&shelf);
    CHECK(folder_bytes(shelf.folder) <= LIMIT_LOG_BYTES + LIMIT_LOG_PENDING_BYTES);
    CHECK(folder_bytes(shelf.folder) >= LIMIT_LOG_BYTES / 2);
    logs_read(shelf.logs, SLICE("f"), UINT64_MAX, 24, &out, &end);
    CHECK_TEXT(buf_view(&out), "the end\n");
    CHECK(end > LIMIT_LOG_BYTES);
    out.len = 0;
    logs_read(shelf.logs, SLICE("f"), 0, LIMIT_LOG_BYTES * 2, &out, &next); /* what is cut off is skipped */
    CHECK_INT(next, end);
    CHECK(out.len >= LIMIT_LOG_BYTES / 2 && out.len <= LIMIT_LOG_BYTES + LIMIT_LOG_PENDING_BYTES);
    buf_free(&out);
    shelf_close(&shelf);
}

TEST(logs_tell_what_was_dropped)
{
    struct shelf shelf;
    struct buf piece = {0}, out = {0};
    uint64_t next;
    shelf_open(&shelf);
    while (piece.len < LIMIT_LOG_PENDING_BYTES - 10) buf_byte(&piece, 'x');
    for (int i = 0; i < 5; i++) logs_append(shelf.logs, SLICE("f"), buf_view(&piece));
    shelf_reopen(&shelf);
    logs_read(shelf.logs, SLICE("f"), 0, LIMIT_LOG_BYTES, &out, &next);
    CHECK(slice_contains(buf_view(&out), SLICE(" bytes of output were dropped: they came too fast)\n")));
    buf_free(&piece);
    buf_free(&out);
    shelf_close(&shelf);
}

/* ---- waiting ---- */

struct waiting {
    struct logs_waiter waiter; /* first: the waiter is us */
    _Atomic int calls;
};

static void count_call(struct logs_waiter *waiter)
{
    atomic_fetch_add(&((struct waiting *)waiter)->calls, 1);
}

static bool was_called(void *waiting)
{
    return atomic_load(&((struct waiting *)waiting)->calls) > 0;
}

TEST(logs_call_who_waits)
{
    struct shelf shelf;
    struct waiting more = {.waiter = {.ready = count_call, .function = SLICE("f"), .from = 4}};
    struct waiting due = {.waiter = {.ready = count_call, .function = SLICE("f"), .from = 1000}};
    struct waiting last = {.waiter = {.ready = count_call, .function = SLICE("g")}};
    shelf_open(&shelf);
    logs_append(shelf.logs, SLICE("f"), SLICE("one\n"));
    due.waiter.due_us = monotonic_us() + 20000;
    logs_wait(shelf.logs, &more.waiter);
    logs_wait(shelf.logs, &due.waiter);
    logs_wait(shelf.logs, &last.waiter);
    CHECK(stage_until(was_called, &due));
    CHECK(!was_called(&more));
    logs_append(shelf.logs, SLICE("f"), SLICE("two\n"));
    CHECK(stage_until(was_called, &more));
    CHECK(!more.waiter.is_last && !was_called(&last));
    shelf_close(&shelf);
    CHECK_INT(last.calls, 1);
    CHECK(last.waiter.is_last);
    CHECK_INT(more.calls, 1);
    CHECK_INT(due.calls, 1);
}

/* ---- the routes ---- */

TEST(logs_are_served)
{
    struct stage stage;
    struct arena arena = {0};
    struct slice reply;
    stage_open(&stage, &(struct stage_options){0});
    stage_function(&stage, "f", "", "");
    CHECK_INT(stage_rest(&stage, "GET", "/v1/functions/f/logs", "", &arena, &reply), 200);
    CHECK_TEXT(reply, "");
    STAGE_EXPECT(&stage, "f", "\"print hello\"", INVOCATION_ANSWERED, "1");
    CHECK_INT(stage_rest(&stage, "GET", "/v1/functions/f/logs?from=0&wait=60s", "", &arena, &reply), 200);
    CHECK(slice_starts(reply, SLICE("START RequestId: ")));
    stage_log(&stage, "f", "REPORT", &arena);
    CHECK_INT(stage_rest(&stage, "GET", "/v1/functions/f/logs?from=6&max=9", "", &arena, &reply), 200);
    CHECK_TEXT(reply, "RequestId");
    CHECK_INT(stage_rest(&stage, "GET", "/v1/functions/f/logs?from=100000&wait=10ms", "", &arena, &reply),
              200);
    CHECK_TEXT(reply, "");
    CHECK_INT(stage_rest(&stage, "GET", "/v1/functions/f/logs?from=x", "", &arena, &reply), 400);
    CHECK_INT(stage_rest(&stage, "GET", "/v1/functions/f/logs?wait=2h", "", &arena, &reply), 400);
    CHECK_INT(stage_rest(&stage, "GET", "/v1/functions/nobody/logs", "", &arena, &reply), 404);
    CHECK_INT(stage_rest(&stage, "DELETE", "/v1/functions/f/logs", "", &arena, &reply), 405);
    const struct slice idle = SLICE(
        "{\"Processes\":[{\"Process\":1,\"State\":\"Idle\",\"Version\":\"$LATEST\",");
    do { /* it was answered, but need not have asked for the next call yet */
        CHECK_INT(stage_rest(&stage, "GET", "/v1/functions/f/processes", "", &arena, &reply), 200);
    } while (!slice_starts(reply, idle) && poll(NULL, 0, 10) == 0);
    CHECK(slice_contains(reply, SLICE(",\"Invocations\":1,\"Running\":0,")));
    arena_free(&arena);
    stage_close(&stage);
}

/* A reader that follows hears what comes until the server drains. */
struct follower {
    struct rest_call call; /* first: the call is us */
    pthread_mutex_t lock;
    struct buf heard, last;
    struct arena arena;
    _Atomic bool is_done;
};

static bool take_piece(struct rest_call *call, struct slice bytes)
{
    struct follower *follower = (struct follower *)call;
    pthread_mutex_lock(&follower->lock);
    buf_slice(&follower->heard, bytes);
    pthread_mutex_unlock(&follower->lock);
    return true;
}

static void follow_done(struct rest_call *call)
{
    atomic_store(&((struct follower *)call)->is_done, true);
}

static bool has_heard(void *context)
{
    struct follower *follower = context;
    pthread_mutex_lock(&follower->lock);
    bool heard = slice_contains(buf_view(&follower->heard), SLICE("second\n"));
    pthread_mutex_unlock(&follower->lock);
    return heard;
}

static bool has_ended(void *follower)
{
    return atomic_load(&((struct follower *)follower)->is_done);
}

TEST(logs_are_followed)
{
    struct stage stage;
    struct follower follower = {.lock = PTHREAD_MUTEX_INITIALIZER};
    follower.call = (struct rest_call){.method = SLICE("GET"),
                                       .path = SLICE("/v1/functions/f/logs"),
                                       .query = SLICE("follow=1&from=0"),
                                       .arena = &follower.arena,
                                       .done = follow_done,
                                       .piece = take_piece,
                                       .headers = SLICE(""),
                                       .reply = &follower.last};
    stage_open(&stage, &(struct stage_options){0});
    stage_function(&stage, "f", "", "");
    CHECK(func_serve(stage.func, &follower.call));
    STAGE_EXPECT(&stage, "f", "\"print first\"", INVOCATION_ANSWERED, "1");
    STAGE_EXPECT(&stage, "f", "\"print second\"", INVOCATION_ANSWERED, "1");
    CHECK(stage_until(has_heard, &follower));
    CHECK(slice_contains(buf_view(&follower.heard), SLICE("first\n")) && !atomic_load(&follower.is_done));
    func_drain(stage.func);
    CHECK(stage_until(has_ended, &follower));
    stage_close(&stage);
    CHECK_INT(follower.call.status, 200);
    buf_free(&follower.heard);
    buf_free(&follower.last);
    arena_free(&follower.arena);
}
