/* What the console keeps of the past, and how it comes to who listens. */
#include <semaphore.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/fail.h"
#include "base/node.h"
#include "console/internal.h"
#include "unit/test.h"

#define FIRST_MS 1700000000000

static struct fixture {
    int64_t now_ms;
    struct clock clock;
    struct histogram *operations;
    struct console_counts counts;
    struct console *console;
} fixture;

static int64_t fixture_now(void *self)
{
    return ((struct fixture *)self)->now_ms;
}

static void fixture_count(void *self, struct console_counts *out)
{
    *out = ((struct fixture *)self)->counts;
}

static unsigned number_of(struct slice name)
{
    unsigned number = 0;
    CHECK(api_operation_search(name, &number));
    return number;
}

/* So many seconds, in each of which there were 100 PutItem, of which two took long, and one error. */
static void fixture_open(unsigned seconds)
{
    char error[200];
    fixture = (struct fixture){.now_ms = FIRST_MS,
                               .clock = {fixture_now, &fixture},
                               .operations = must_zero(api_operation_count(), sizeof(struct histogram))};
    struct console_options options = {.clock = &fixture.clock, .prefix = "quipu-", .kind = "remote"};
    fixture.console = console_open(&options, error, sizeof error);
    CHECK(fixture.console);
    fixture.console->source = (struct console_source){fixture.operations, fixture_count, &fixture};
    CHECK(!sample_take(fixture.console)); /* the first count has nothing to be compared with */
    for (unsigned i = 0; i < seconds; i++) {
        fixture.now_ms += 1000;
        fixture.counts.errors++;
        for (unsigned j = 0; j < 100; j++)
            histogram_add(&fixture.operations[number_of(SLICE("PutItem"))], j < 98 ? 100 : 5000);
        CHECK(sample_take(fixture.console));
    }
}

static void fixture_close(void)
{
    console_close(fixture.console);
    free(fixture.operations);
}

static double number_in(const struct node *object, const char *name)
{
    char text[64] = "";
    struct slice number = node_text(object, name);
    CHECK(number.len && number.len < sizeof text);
    memcpy(text, number.data, number.len);
    return strtod(text, NULL);
}

static const struct node *sample_node(struct arena *arena, const struct sample *sample, int64_t step_ms)
{
    const char *fault;
    struct buf out = {0};
    sample_put(&out, sample, step_ms);
    const struct node *node = node_parse(arena, arena_copy(arena, buf_view(&out)), &fault);
    buf_free(&out);
    CHECK(node);
    return node;
}

TEST(console_samples_are_differences)
{
    struct arena arena = {0};
    fixture_open(25);
    const struct sample *last = samples_at(&fixture.console->seconds, 24);
    const struct node *second = sample_node(&arena, last, 1000);
    CHECK(number_in(second, "t") == FIRST_MS + 25000);
    CHECK(number_in(node_member(second, "ops"), "PutItem") == 100 && number_in(second, "errors") == 1);
    CHECK(number_in(second, "p50") > 64 && number_in(second, "p50") <= 128);
    CHECK(number_in(second, "p99") > 4096 && number_in(second, "p99") <= 8192);
    CHECK(!node_member(second, "callUs") && !node_member(second, "step")); /* there were no calls */
    CHECK_INT(fixture.console->tens.count, 2);
    const struct node *tens = sample_node(&arena, samples_at(&fixture.console->tens, 1), 10000);
    CHECK(number_in(tens, "step") == 10000 && number_in(tens, "t") == FIRST_MS + 20000);
    CHECK(number_in(node_member(tens, "ops"), "PutItem") == 100); /* a second, too */
    CHECK(number_in(tens, "p99") > 4096);
    arena_free(&arena);
    fixture_close();
}

/* ---- who listens ---- */

static struct heard {
    struct rest_call call;
    struct arena arena;
    struct buf text, reply;
    size_t first; /* bytes of the first piece */
    sem_t came, ended;
} heard;

static bool take_piece(struct rest_call *call, struct slice bytes)
{
    (void)call;
    buf_slice(&heard.text, bytes);
    if (!heard.first) heard.first = bytes.len;
    sem_post(&heard.came);
    return true;
}

static void call_done(struct rest_call *call)
{
    (void)call;
    sem_post(&heard.ended);
}

static struct slice no_header(const struct rest_call *call, struct slice name)
{
    (void)call, (void)name;
    return SLICE_NONE;
}

static void listen_to(const char *query, bool takes_gzip)
{
    heard = (struct heard){0};
    sem_init(&heard.came, 0, 0);
    sem_init(&heard.ended, 0, 0);
    heard.call = (struct rest_call){.method = SLICE("GET"),
                                    .path = SLICE("/console/events"),
                                    .query = slice_of(query),
                                    .header = no_header,
                                    .arena = &heard.arena,
                                    .piece = take_piece,
                                    .done = call_done,
                                    .reply = &heard.reply};
    console_serve(fixture.console, &heard.call, &(struct console_visit){.is_signed = true, .takes_gzip = takes_gzip});
    sem_wait(&heard.came);
}

TEST(console_tells_the_last_minutes_by_the_second_and_the_day_by_tens)
{
    const char *fault;
    unsigned tens = 0, seconds = 0;
    int64_t last_ms = 0;
    fixture_open(LIMIT_CONSOLE_SECONDS + 1000);
    CHECK_INT(fixture.console->seconds.count, LIMIT_CONSOLE_SECONDS);
    console_start(fixture.console, &fixture.console->source);
    listen_to("since=0", false);
    console_drain(fixture.console);
    sem_wait(&heard.ended);
    struct slice rest = buf_view(&heard.text);
    while (slice_starts(rest, SLICE("data: {\"history\""))) {
        struct slice line = slice_cut(&rest, '\n');
        const struct node *event = node_parse(&heard.arena, slice_from(line, 6), &fault);
        CHECK(event && rest.len && rest.data[0] == '\n');
        rest = slice_from(rest, 1);
        bool is_of_tens = number_in(event, "stepMs") == 10000;
        for (const struct node *one = node_member(event, "history")->first; one; one = one->next) {
            CHECK((int64_t)number_in(one, "t") >= last_ms); /* in order, also from one to the other */
            last_ms = (int64_t)number_in(one, "t");
            tens += is_of_tens;
            seconds += !is_of_tens;
        }
    }
    CHECK(tens == 100 || tens == 101);
    CHECK(seconds >= LIMIT_CONSOLE_SECONDS - 2); /* the thread may have counted once or twice meanwhile */
    buf_free(&heard.text);
    arena_free(&heard.arena);
    fixture_close();
}

TEST(console_tells_so_much_of_the_past_as_is_asked_for)
{
    fixture_open(120);
    console_start(fixture.console, &fixture.console->source);
    listen_to("last=5000", false);
    console_drain(fixture.console);
    sem_wait(&heard.ended);
    struct slice line = slice_cut(&(struct slice){heard.text.data, heard.text.len}, '\n');
    const char *fault;
    const struct node *event = node_parse(&heard.arena, slice_from(line, 6), &fault);
    CHECK(event && node_member(event, "history"));
    CHECK(number_in(node_member(event, "history")->first, "t") == FIRST_MS + 116000); /* behind that time */
    buf_free(&heard.text);
    arena_free(&heard.arena);
    fixture_close();
}

/* The same bytes, a tenth of them, in whole pieces: what was sent can be read before the next is. */
TEST(console_tells_the_past_in_few_bytes)
{
    static char plain[4 * 1024 * 1024];
    z_stream stream = {0};
    fixture_open(LIMIT_CONSOLE_SECONDS);
    console_start(fixture.console, &fixture.console->source);
    listen_to("since=0", true);
    console_drain(fixture.console);
    sem_wait(&heard.ended);
    CHECK(inflateInit2(&stream, 16 + MAX_WBITS) == Z_OK);
    stream.next_out = (Bytef *)plain;
    stream.avail_out = sizeof plain;
    stream.next_in = (Bytef *)heard.text.data;
    stream.avail_in = (uInt)heard.first;
    CHECK(inflate(&stream, Z_SYNC_FLUSH) == Z_OK && !stream.avail_in);
    CHECK(stream.total_out > 2 && memcmp(plain + stream.total_out - 2, "\n\n", 2) == 0);
    CHECK(heard.first * 5 < stream.total_out && heard.first < LIMIT_CONSOLE_SECONDS * 100);
    stream.next_in = (Bytef *)heard.text.data + heard.first;
    stream.avail_in = (uInt)(heard.text.len - heard.first);
    CHECK(inflate(&stream, Z_SYNC_FLUSH) == Z_STREAM_END && !stream.avail_in);
    inflateEnd(&stream);
    buf_free(&heard.text);
    arena_free(&heard.arena);
    fixture_close();
}
