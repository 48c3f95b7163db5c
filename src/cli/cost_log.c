/* quipu cost log: what a consumer reads to find the few partitions with news among many. The partitions are
 * written as appends and reads would have left them, since that many calls would take an hour. */
#include <stdio.h>

#include "base/raw.h"
#include "cli/cost.h"
#include "cli/progress.h"

#define PARTITIONS_MOST    1000000ULL
#define NEWS_MOST          1000ULL
#define PARTITIONS_DEFAULT 100000ULL
#define NEWS_DEFAULT       10ULL
#define SLOTS              16    /* of the index of news */
#define PUTS               8     /* of a batch, for each of three tables: a batch has 25 */
#define QUIET_MS           60000 /* between what was read and the news */
#define CONSUMER           "/v1/logs/cost/consumers/g"

static void put_head(struct buf *out, struct slice id, unsigned long long number, int64_t second)
{
    buf_printf(
        out,
        "{\"PutRequest\":{\"Item\":{\"partition\":{\"S\":\"cost/%.*s/%llu\"},\"sequence\":{\"N\":\"0\"},"
        "\"touched\":{\"N\":\"%lld\"},\"slot\":{\"S\":\"cost/%.*s/%llu\"}}}}",
        SLICE_ARG(id), number, (long long)second, SLICE_ARG(id), number % SLOTS);
}

static void put_page(struct buf *out, struct slice id, unsigned long long number, int64_t second)
{
    buf_printf(out,
               "{\"PutRequest\":{\"Item\":{\"chain\":{\"S\":\"cost/%.*s/%llu\"},\"first\":{\"N\":\"1\"},"
               "\"n\":{\"N\":\"1\"},\"t\":{\"N\":\"%lld000\"},\"i\":{\"N\":\"1\"},"
               "\"e\":{\"L\":[{\"L\":[{\"S\":\"k\"},{\"NULL\":true}]}]}}}}",
               SLICE_ARG(id), number, (long long)second);
}

static void put_position(struct buf *out, unsigned long long number)
{
    buf_printf(
        out,
        "{\"PutRequest\":{\"Item\":{\"group\":{\"S\":\"cost/g\"},\"partition\":{\"S\":\"%llu\"},"
        "\"position\":{\"N\":\"1\"},\"given\":{\"N\":\"1\"},\"page\":{\"N\":\"2\"},\"fence\":{\"N\":\"1\"},"
        "\"generation\":{\"N\":\"0\"}}}}",
        number);
}

static bool write_batch(struct meter *meter, struct slice id, unsigned long long first,
                        unsigned long long end)
{
    struct buf request = {0};
    buf_printf(&request, "{\"RequestItems\":{\"%slog-heads\":[", meter->prefix);
    for (unsigned long long i = first; i < end; i++) {
        put_comma(&request);
        put_head(&request, id, i, meter->now_ms / 1000);
    }
    buf_printf(&request, "],\"%slog-events\":[", meter->prefix);
    for (unsigned long long i = first; i < end; i++) {
        put_comma(&request);
        put_page(&request, id, i, meter->now_ms / 1000);
    }
    buf_printf(&request, "],\"%slog-positions\":[", meter->prefix);
    for (unsigned long long i = first; i < end; i++) {
        put_comma(&request);
        put_position(&request, i);
    }
    buf_text(&request, "]}}");
    bool fine = meter_call(meter, "BatchWriteItem", buf_view(&request));
    buf_free(&request);
    return fine;
}

/* The log's id, which stands in all keys. */
static struct slice id_of(struct meter *meter, struct arena *arena)
{
    struct slice request = arena_printf(
        arena, "{\"TableName\":\"%slogs\",\"Key\":{\"log\":{\"S\":\"cost\"},\"part\":{\"S\":\"log\"}}}",
        meter->prefix);
    if (!meter_call(meter, "GetItem", request)) return SLICE_NONE;
    struct slice item = raw_member(arena, arena_copy(arena, buf_view(&meter->reply)), "Item");
    return raw_text(arena, raw_member(arena, raw_member(arena, item, "id"), "S"));
}

static bool write_partitions(struct meter *meter, unsigned long long partitions)
{
    struct progress progress;
    struct arena arena = {0};
    struct slice id = id_of(meter, &arena);
    bool fine = id.data != NULL;
    progress_begin(&progress, "partitions", partitions);
    for (unsigned long long i = 0; fine && i < partitions; i += PUTS) {
        fine = write_batch(meter, id, i, i + PUTS < partitions ? i + PUTS : partitions);
        progress_show(&progress, i);
    }
    if (fine && progress.is_drawn) progress_end(&progress, "written", partitions);
    arena_free(&arena);
    return fine;
}

static bool ask(struct meter *meter, const char *request, const char *body, struct measure *out)
{
    if (meter_ask(meter, request, NULL, slice_of(body), out) && out->status < 300) return true;
    complain("%s: %.*s", request, SLICE_ARG(out->reply));
    return false;
}

/* A log all of which has been read a minute ago. */
static bool make_log(struct meter *meter, unsigned long long partitions)
{
    struct measure measure;
    char body[60];
    snprintf(body, sizeof body, "{\"partitions\":%llu}", partitions);
    bool fine = ask(meter, "PUT /v1/logs/cost", body, &measure) &&
                ask(meter, "POST /v1/logs/cost", "{\"key\":\"first\"}", &measure) &&
                ask(meter, "POST " CONSUMER "/read", "{\"owner\":\"o\"}", &measure) &&
                write_partitions(meter, partitions);
    meter_wait(meter, QUIET_MS);
    return fine && ask(meter, "POST " CONSUMER "/read", "{\"owner\":\"o\"}", &measure);
}

static bool append_news(struct meter *meter, unsigned long long news)
{
    struct measure measure;
    char body[60];
    bool fine = true;
    for (unsigned long long i = 0; fine && i < news; i++) {
        snprintf(body, sizeof body, "{\"key\":\"key %llu\"}", i);
        fine = ask(meter, "POST /v1/logs/cost", body, &measure);
    }
    return fine;
}

static void print_row(struct listing *listing, unsigned long long partitions, unsigned long long news,
                      const struct measure *measure)
{
    struct buf json = {0};
    struct arena *arena = &listing->arena;
    buf_printf(&json, "{\"partitions\":%llu,\"news\":%llu", partitions, news);
    put_measure(&json, measure);
    buf_byte(&json, '}');
    struct slice *row = listing_row(listing, buf_view(&json));
    if (row) {
        row[0] = arena_printf(arena, "%llu", partitions);
        row[1] = arena_printf(arena, "%llu", news);
        row[2] = arena_printf(arena, "%llu", measure->calls);
        row[3] = number_shown(arena, measure->reads);
        row[4] = number_shown(arena, measure->dollars);
    }
    buf_free(&json);
}

int cost_of_log(struct meter *meter, const struct arguments *arguments)
{
    static const char *const head[] = {"Partitions", "With news", "Reads to find them", "Read units",
                                       "$ a million"};
    unsigned long long partitions = PARTITIONS_DEFAULT, news = NEWS_DEFAULT;
    struct measure measure;
    struct listing listing;
    if (!argument_number(arguments, "partitions", 1, PARTITIONS_MOST, &partitions) ||
        !argument_number(arguments, "news", 1, NEWS_MOST, &news))
        return EXIT_USAGE;
    if (!make_log(meter, partitions) || !append_news(meter, news) ||
        !ask(meter, "GET " CONSUMER "/lag", "", &measure))
        return EXIT_FAULT;
    listing_begin(&listing, form_listed(arguments), head, sizeof head / sizeof *head);
    print_row(&listing, partitions, news, &measure);
    listing_end(&listing, "logs");
    return EXIT_FINE;
}
