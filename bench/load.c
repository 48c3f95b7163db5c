/* Load generator of the benchmark: N connections, each with one request in flight, one epoll loop a thread.
 *
 * It speaks just enough HTTP/1.1 (DynamoDB's JSON, the patterns' routes and plain GET) and RESP (Redis) to
 * drive every server of the benchmark alike. It shares its two cores with the server it measures, so it must
 * cost little: a request is built once as a template, and per operation only digits are patched into its
 * holes; a reply is parsed just enough to know its end and that it succeeded. One send and one receive per
 * operation, one reading of the clock per reply.
 *
 * Invariants: 1. a connection has at most one request in flight; 2. holes have fixed widths, so a request
 * never changes its length; 3. an operation is counted only after its whole reply was checked; any error
 * fails the run.
 *
 * bench/run calls it and reads the one line of JSON it prints. */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fail.h"
#include "base/random.h"
#include "operations.h"

#define REPLY_BYTES_MAX   (64 * 1024) /* the longest, ten items of Query, has about 5 KB */
#define HOLES_MAX         512         /* a batch of 25 events has 176 */
#define CONNECTIONS_MAX   4096
#define THREADS_MAX       64
#define EVENTS_MAX        256
#define SILENCE_MS        20000 /* no reply to anybody for so long: the server hangs */
#define ERROR_TEXT_MAX    512
#define LOAD_SCATTER      2654435761 /* a prime above any number of batches, to load them scattered */
#define SUB_BITS          6          /* 64 buckets a power of two: percentiles are exact to 1.6% */
#define HISTOGRAM_BUCKETS ((64 - SUB_BITS) << SUB_BITS)

/* ---- structs ---- */
struct hole {
    uint32_t offset;
    uint16_t width;
    char kind;
};

struct plan {
    struct buf bytes;
    struct hole holes[HOLES_MAX];
    size_t hole_count;
};

struct settings {
    const struct operation *operation;
    struct sockaddr_in address;
    unsigned connections, threads;
    double seconds, warmup_seconds;
    uint64_t count; /* operations to do; 0: as many as --seconds allow */
    uint64_t items, seed;
    uint64_t first; /* number of the first request, where requests are numbered */
    bool in_order;  /* ticket i writes the i-th items, instead of random ones */
    bool verbose;
};

struct connection {
    int fd;
    bool busy;
    char *request;
    char *reply;
    size_t got;
    int64_t started_ns;
};

struct worker {
    pthread_t thread;
    struct random random;
    struct connection *connections;
    unsigned connection_count, busy_count;
    int epoll;
    uint64_t histogram[HISTOGRAM_BUCKETS];
    uint64_t measured, total;
    int64_t slowest_ns, last_ns;
    size_t body_bytes; /* of the latest reply */
};

/* What is read from a complete reply. */
struct reply {
    int status;
    struct slice body;
};
enum progress { PARTIAL, COMPLETE, MALFORMED };

static struct settings settings = {.connections = 1, .threads = 1, .items = 10000, .seed = 1};
static struct plan plan;
static _Atomic uint64_t tickets;
static pthread_barrier_t connected;
static int64_t measure_from_ns, measure_until_ns; /* set before the barrier opens */

static pthread_mutex_t error_mutex = PTHREAD_MUTEX_INITIALIZER;
static char first_error[ERROR_TEXT_MAX];
static _Atomic uint64_t error_count;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

__attribute__((format(printf, 1, 2))) static void error_note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&error_mutex);
    if (!first_error[0]) vsnprintf(first_error, sizeof first_error, format, args);
    pthread_mutex_unlock(&error_mutex);
    va_end(args);
    atomic_fetch_add(&error_count, 1);
}

/* ---- histogram: exact below 2^SUB_BITS, then 2^SUB_BITS buckets for every power of two ---- */
static size_t histogram_bucket(uint64_t value)
{
    if (value < 1u << SUB_BITS) return value;
    unsigned shift = 63u - (unsigned)__builtin_clzll(value) - SUB_BITS;
    return ((size_t)shift << SUB_BITS) + (size_t)(value >> shift);
}

/* The largest value of a bucket. */
static uint64_t histogram_value(size_t bucket)
{
    if (bucket < 2u << SUB_BITS) return bucket;
    unsigned shift = (unsigned)(bucket >> SUB_BITS) - 1;
    return ((bucket - ((size_t)shift << SUB_BITS) + 1) << shift) - 1;
}

static double quantile_us(const struct worker *sum, double quantile)
{
    uint64_t seen = 0;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += sum->histogram[i];
        if (!seen || (double)seen < quantile * (double)sum->measured) continue;
        double value = (double)histogram_value(i), slowest = (double)sum->slowest_ns;
        return (value < slowest ? value : slowest) / 1e3;
    }
    return 0;
}

/* ---- building the template ---- */
/* What stands between the marks of repetition comes BATCH_ITEMS times. */
static void body_put(struct buf *body, const char *text)
{
    const char *from = strchr(text, REPEAT_FROM), *to = from ? strchr(from, REPEAT_TO) : NULL;
    if (!from) {
        buf_slice(body, slice_of(text));
        return;
    }
    ensure(to);
    buf_put(body, text, (size_t)(from - text));
    for (int i = 0; i < BATCH_ITEMS; i++) {
        if (i) buf_byte(body, ',');
        buf_put(body, from + 1, (size_t)(to - from) - 1);
    }
    buf_slice(body, slice_of(to + 1));
}

static void request_put_route(struct buf *out, const struct operation *operation)
{
    struct buf body = {0};
    body_put(&body, operation->body);
    buf_printf(out,
               "%s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nContent-Type: application/json\r\n"
               "Content-Length: %zu\r\n\r\n",
               operation->target, ntohs(settings.address.sin_port), body.len);
    buf_slice(out, buf_view(&body));
    buf_free(&body);
}

static void request_put_dynamo(struct buf *out, const struct operation *operation)
{
    struct buf body = {0};
    body_put(&body, operation->body);
    char stamp[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &utc));
    buf_printf(out,
               "POST / HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nX-Amz-Target: DynamoDB_20120810.%s\r\n"
               "Content-Type: application/x-amz-json-1.0\r\nX-Amz-Date: %s\r\n"
               "Authorization: AWS4-HMAC-SHA256 Credential=local/%.8s/us-east-1/dynamodb/aws4_request, "
               "SignedHeaders=content-type;host;x-amz-date;x-amz-target, "
               "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7\r\n"
               "Content-Length: %zu\r\n\r\n",
               ntohs(settings.address.sin_port), operation->target, stamp, stamp, body.len);
    buf_slice(out, buf_view(&body));
    buf_free(&body);
}

static void request_put_resp(struct buf *out, const struct operation *operation)
{
    struct slice rest = slice_of(operation->body);
    int words = 1;
    for (size_t i = 0; i < rest.len; i++) words += rest.data[i] == '|';
    buf_printf(out, "*%d\r\n", words);
    for (; words; words--) {
        const char *bar = memchr(rest.data, '|', rest.len);
        size_t len = bar ? (size_t)(bar - rest.data) : rest.len;
        buf_printf(out, "$%zu\r\n", len);
        buf_put(out, rest.data, len);
        buf_text(out, "\r\n");
        rest = slice_from(rest, bar ? len + 1 : len);
    }
}

static void plan_find_holes(struct plan *out)
{
    const struct buf *bytes = &out->bytes;
    for (size_t at = 0; at < bytes->len;) {
        char kind = bytes->data[at];
        size_t end = at + 1;
        if (kind >= HOLE_PARTITION && kind <= HOLE_TASK) {
            while (end < bytes->len && bytes->data[end] == kind) end++;
            ensure(out->hole_count < HOLES_MAX);
            out->holes[out->hole_count++] = (struct hole){(uint32_t)at, (uint16_t)(end - at), kind};
        }
        at = end;
    }
}

static void plan_build(struct plan *out, const struct operation *operation)
{
    switch (operation->protocol) {
    case DYNAMO: request_put_dynamo(&out->bytes, operation); break;
    case ROUTE: request_put_route(&out->bytes, operation); break;
    case RESP: request_put_resp(&out->bytes, operation); break;
    case PLAIN:
        buf_printf(&out->bytes, "GET / HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n",
                   ntohs(settings.address.sin_port));
        break;
    }
    plan_find_holes(out);
}

/* ---- sending ---- */
static void digits_put(char *at, unsigned width, uint64_t value)
{
    while (width--) {
        at[width] = (char)('0' + value % 10);
        value /= 10;
    }
}

static void request_patch(char *request, uint64_t ticket, uint64_t item, struct random *random)
{
    for (size_t i = 0; i < plan.hole_count; i++) {
        const struct hole *hole = &plan.holes[i];
        char *at = request + hole->offset;
        switch (hole->kind) {
        case HOLE_PARTITION: digits_put(at, hole->width, item / PARTITION_ITEMS); break;
        case HOLE_ORDER: digits_put(at, hole->width, item++ % PARTITION_ITEMS); break;
        case HOLE_TICKET: digits_put(at, hole->width, ticket); break;
        case HOLE_LEAF: digits_put(at, hole->width, ticket / LEAF_TASKS); break;
        case HOLE_TASK: digits_put(at, hole->width, ticket % LEAF_TASKS); break;
        default: digits_put(at, hole->width, random_next(random)); break;
        }
    }
}

/* The first item of a request. Loading scatters the batches, as items arrive in life, not sorted. */
static uint64_t item_choose(uint64_t ticket, struct random *random)
{
    if (!settings.in_order) return random_below(random, settings.items);
    if (settings.operation->protocol == RESP) return ticket;
    uint64_t batches = settings.items / BATCH_ITEMS;
    return ticket * LOAD_SCATTER % batches * BATCH_ITEMS;
}

/* Blocks while the socket is full, at most SILENCE_MS: a request is small, so that hardly happens. */
static bool send_all(int fd, const char *data, size_t len)
{
    while (len) {
        ssize_t sent = send(fd, data, len, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return false;
        data += sent;
        len -= (size_t)sent;
    }
    return true;
}

static void connection_stop(struct worker *worker, struct connection *connection)
{
    ensure(connection->busy);
    connection->busy = false;
    worker->busy_count--;
    epoll_ctl(worker->epoll, EPOLL_CTL_DEL, connection->fd, NULL);
}

/* Sends the next request, or retires the connection when the run is over. */
static void connection_next(struct worker *worker, struct connection *connection, int64_t now)
{
    uint64_t ticket = atomic_fetch_add_explicit(&tickets, 1, memory_order_relaxed);
    bool over = settings.count ? ticket >= settings.count : now >= measure_until_ns;
    if (over) {
        connection_stop(worker, connection);
        return;
    }
    uint64_t item = item_choose(ticket, &worker->random);
    request_patch(connection->request, settings.first + ticket, item, &worker->random);
    connection->got = 0;
    connection->started_ns = now;
    if (!send_all(connection->fd, connection->request, plan.bytes.len)) {
        error_note("send: %s", strerror(errno));
        connection_stop(worker, connection);
    }
}

/* ---- reading replies ---- */
/* The value of a header, without leading blanks; head ends behind its last line's CR LF. */
static struct slice header_find(struct slice head, struct slice name)
{
    const char *line = head.data, *end = head.data + head.len;
    while (line < end) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        if (!next) break;
        if ((size_t)(next - line) > name.len && line[name.len] == ':' &&
            strncasecmp(line, name.data, name.len) == 0) {
            const char *value = line + name.len + 1;
            while (value < next && *value == ' ') value++;
            return (struct slice){value, (size_t)(next - value)};
        }
        line = next + 1;
    }
    return SLICE_NONE;
}

/* Joins the chunks at the front of the body. */
static enum progress chunks_join(char *body, size_t len, struct reply *reply)
{
    char *at = body, *end = body + len, *out = body;
    for (;;) {
        char *line_end = memmem(at, (size_t)(end - at), "\r\n", 2);
        if (!line_end) return PARTIAL;
        size_t size = strtoul(at, NULL, 16);
        at = line_end + 2;
        if ((size_t)(end - at) < size + 2) return PARTIAL;
        if (size == 0) break;
        memmove(out, at, size);
        out += size;
        at += size + 2;
    }
    reply->body = (struct slice){body, (size_t)(out - body)};
    return COMPLETE;
}

/* True when the last chunk has come; only then may the chunks be joined, which moves bytes. */
static bool chunks_ended(const char *body, size_t len)
{
    return len >= 5 && memcmp(body + len - 5, "0\r\n\r\n", 5) == 0;
}

static enum progress http_parse(char *data, size_t len, struct reply *reply)
{
    char *body = memmem(data, len, "\r\n\r\n", 4);
    if (!body) return PARTIAL;
    body += 4;
    struct slice head = {data, (size_t)(body - data) - 2};
    if (head.len < 12 || memcmp(data, "HTTP/1.1 ", 9) != 0) return MALFORMED;
    reply->status = atoi(data + 9);
    size_t body_len = len - (size_t)(body - data);
    struct slice length = header_find(head, SLICE("content-length"));
    if (!length.len) {
        if (!header_find(head, SLICE("transfer-encoding")).len) return MALFORMED;
        return chunks_ended(body, body_len) ? chunks_join(body, body_len, reply) : PARTIAL;
    }
    size_t expected = strtoul(length.data, NULL, 10);
    if (body_len < expected) return PARTIAL;
    reply->body = (struct slice){body, expected};
    return body_len == expected ? COMPLETE : MALFORMED;
}

/* Status 200 stands for anything but an error and a missing key. */
static enum progress resp_parse(const char *data, size_t len, struct reply *reply)
{
    if (len < 3) return PARTIAL;
    const char *line_end = memmem(data, len, "\r\n", 2);
    if (!line_end) return PARTIAL;
    size_t line = (size_t)(line_end - data) + 2;
    reply->status = 200;
    if (data[0] == '$') {
        long bulk = strtol(data + 1, NULL, 10);
        if (bulk < 0) reply->status = 404;
        if (bulk >= 0) line += (size_t)bulk + 2;
    } else if (data[0] != '+' && data[0] != ':') {
        reply->status = 500;
    }
    if (len < line) return PARTIAL;
    reply->body = (struct slice){data, line};
    return len == line ? COMPLETE : MALFORMED;
}

/* What is expected stands at the end of Query's replies and at the start of others: look there first. */
static bool body_contains(struct slice body, const char *part, size_t part_len)
{
    size_t tail = body.len < 64 ? body.len : 64;
    return memmem(body.data + body.len - tail, tail, part, part_len) ||
           memmem(body.data, body.len, part, part_len);
}

static bool reply_is_success(const struct connection *connection, const struct reply *reply)
{
    const struct operation *operation = settings.operation;
    if (reply->status != 200 && (reply->status != 201 || operation->protocol != ROUTE)) return false;
    if (!body_contains(reply->body, operation->expect, strlen(operation->expect))) return false;
    if (!operation->echo_key) return true;
    const struct hole *key = &plan.holes[0];
    return memmem(reply->body.data, reply->body.len, connection->request + key->offset, key->width) != NULL;
}

static void worker_count(struct worker *worker, const struct connection *connection, int64_t now)
{
    worker->total++;
    worker->last_ns = now;
    if (now < measure_from_ns || (!settings.count && now > measure_until_ns)) return;
    int64_t took = now - connection->started_ns;
    worker->measured++;
    worker->histogram[histogram_bucket((uint64_t)took)]++;
    if (took > worker->slowest_ns) worker->slowest_ns = took;
}

static void connection_finish(struct worker *worker, struct connection *connection, const struct reply *reply)
{
    int64_t now = now_ns();
    worker->body_bytes = reply->body.len;
    if (reply_is_success(connection, reply)) {
        worker_count(worker, connection, now);
    } else {
        error_note("status %d: %.*s", reply->status, (int)(reply->body.len < 300 ? reply->body.len : 300),
                   reply->body.data);
    }
    connection_next(worker, connection, now);
}

static void connection_read(struct worker *worker, struct connection *connection)
{
    ssize_t got = recv(connection->fd, connection->reply + connection->got, REPLY_BYTES_MAX - connection->got,
                       0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
        error_note("receive: %s",
                   got ? strerror(errno) : "the server closed the connection or sent too much");
        connection_stop(worker, connection);
        return;
    }
    connection->got += (size_t)got;
    connection->reply[connection->got] = '\0'; /* so that strtoul stops */
    struct reply reply = {0};
    enum progress progress = settings.operation->protocol == RESP
                                 ? resp_parse(connection->reply, connection->got, &reply)
                                 : http_parse(connection->reply, connection->got, &reply);
    if (progress == COMPLETE) connection_finish(worker, connection, &reply);
    if (progress == MALFORMED) {
        error_note("malformed reply: %.300s", connection->reply);
        connection_stop(worker, connection);
    }
}

/* ---- threads ---- */
static void connection_open(struct worker *worker, struct connection *connection)
{
    connection->request = must_alloc(plan.bytes.len);
    memcpy(connection->request, plan.bytes.data, plan.bytes.len);
    connection->reply = must_alloc(REPLY_BYTES_MAX + 1);
    connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ensure(connection->fd >= 0);
    if (connect(connection->fd, (struct sockaddr *)&settings.address, sizeof settings.address) != 0) {
        error_note("connect: %s", strerror(errno));
        return;
    }
    int on = 1;
    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct timeval silence = {.tv_sec = SILENCE_MS / 1000};
    setsockopt(connection->fd, SOL_SOCKET, SO_SNDTIMEO, &silence, sizeof silence);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    ensure(epoll_ctl(worker->epoll, EPOLL_CTL_ADD, connection->fd, &event) == 0);
    connection->busy = true;
    worker->busy_count++;
}

static void connection_close(struct connection *connection)
{
    close(connection->fd);
    free(connection->request);
    free(connection->reply);
}

static void worker_loop(struct worker *worker)
{
    struct epoll_event events[EVENTS_MAX];
    while (worker->busy_count) {
        int ready = epoll_wait(worker->epoll, events, EVENTS_MAX, SILENCE_MS);
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) {
            error_note("no reply for %d seconds", SILENCE_MS / 1000);
            return;
        }
        for (int i = 0; i < ready; i++) connection_read(worker, events[i].data.ptr);
    }
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    worker->epoll = epoll_create1(EPOLL_CLOEXEC);
    ensure(worker->epoll >= 0);
    worker->connections = must_zero(worker->connection_count, sizeof *worker->connections);
    for (unsigned i = 0; i < worker->connection_count; i++) connection_open(worker, &worker->connections[i]);
    pthread_barrier_wait(&connected);
    pthread_barrier_wait(&connected);
    for (unsigned i = 0; i < worker->connection_count; i++) {
        if (worker->connections[i].busy) connection_next(worker, &worker->connections[i], now_ns());
    }
    worker_loop(worker);
    for (unsigned i = 0; i < worker->connection_count; i++) connection_close(&worker->connections[i]);
    free(worker->connections);
    close(worker->epoll);
    return NULL;
}

static void worker_merge(struct worker *into, const struct worker *from)
{
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) into->histogram[i] += from->histogram[i];
    into->measured += from->measured;
    into->total += from->total;
    if (from->slowest_ns > into->slowest_ns) into->slowest_ns = from->slowest_ns;
    if (from->last_ns > into->last_ns) into->last_ns = from->last_ns;
    into->body_bytes = from->body_bytes;
}

/* The clock starts when every thread has its connections. */
static void run_all(struct worker *sum)
{
    unsigned threads = settings.threads;
    struct worker *workers = must_zero(threads, sizeof *workers);
    pthread_barrier_init(&connected, NULL, threads + 1);
    for (unsigned i = 0; i < threads; i++) {
        random_seed(&workers[i].random, settings.seed * THREADS_MAX + i);
        workers[i].connection_count = settings.connections / threads + (i < settings.connections % threads);
        ensure(pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) == 0);
    }
    pthread_barrier_wait(&connected);
    measure_from_ns = now_ns() + (settings.count ? 0 : (int64_t)(settings.warmup_seconds * 1e9));
    measure_until_ns = measure_from_ns + (int64_t)(settings.seconds * 1e9);
    pthread_barrier_wait(&connected);
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        worker_merge(sum, &workers[i]);
    }
    pthread_barrier_destroy(&connected);
    free(workers);
}

/* ---- results ---- */
static double own_cpu_us(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return 1e6 * (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void result_print(const struct worker *sum)
{
    double seconds = settings.count ? (double)(sum->last_ns - measure_from_ns) / 1e9 : settings.seconds;
    if (!sum->measured) seconds = 0;
    double rate = seconds > 0 ? (double)sum->measured / seconds : 0;
    double p50 = quantile_us(sum, 0.5);
    double p99 = quantile_us(sum, 0.99);
    double p999 = quantile_us(sum, 0.999);
    double slowest = (double)sum->slowest_ns / 1e3;
    double cpu = sum->total ? own_cpu_us() / (double)sum->total : 0;
    uint64_t errors = atomic_load(&error_count);
    const char *format =
        settings.verbose
            ? "%s: %u connections, %u threads, %.3f s, %llu operations (%llu with warm-up), %llu errors\n"
              "%.0f operations/s, p50 %.1f us, p99 %.1f us, p99.9 %.1f us, max %.1f us\n"
              "generator: %.2f us of CPU per operation; reply body: %zu bytes\n"
            : "{\"operation\":\"%s\",\"connections\":%u,\"threads\":%u,\"seconds\":%.3f,\"operations\":%llu,"
              "\"total\":%llu,\"errors\":%llu,\"rate\":%.1f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,"
              "\"max_us\":%.1f,\"generator_cpu_us\":%.2f,\"body_bytes\":%zu}\n";
    printf(format, settings.operation->name, settings.connections, settings.threads, seconds,
           (unsigned long long)sum->measured, (unsigned long long)sum->total, (unsigned long long)errors,
           rate, p50, p99, p999, slowest, cpu, sum->body_bytes);
    if (errors)
        fprintf(stderr, "load: %llu errors, the first: %s\n", (unsigned long long)errors, first_error);
}

/* ---- command line ---- */
static void help_print(FILE *out)
{
    fputs(
        "usage: load --op OPERATION --port PORT [option ...]\n\n"
        "Drives one server with one operation over N connections, each waiting for its reply before it sends "
        "the\n"
        "next request, and prints one line of JSON: rate, latency, errors. Exits with 1 after any error.\n\n"
        "  --port N           port of the server on 127.0.0.1\n"
        "  --connections N    requests in flight (1)\n"
        "  --threads N        threads of the generator (1)\n"
        "  --seconds S        how long to measure (1)\n"
        "  --warmup S         seconds before that, which do not count (0)\n"
        "  --count N          do N operations instead; no warm-up\n"
        "  --items N          items in the table, a multiple of 50 (10000)\n"
        "  --first N          number of the first request, where requests are numbered (0)\n"
        "  --seed N           of keys and values; another seed gives put-new other keys (1)\n"
        "  --verbose          print for people\n\noperations:\n",
        out);
    for (size_t i = 0; i < OPERATION_COUNT; i++)
        fprintf(out, "  %-18s %s\n", operations[i].name, operations[i].help);
}

_Noreturn static void usage_fail(const char *what)
{
    fprintf(stderr, "load: %s; --help explains\n", what);
    exit(2);
}

static const struct operation *operation_find(const char *name)
{
    for (size_t i = 0; i < OPERATION_COUNT; i++)
        if (strcmp(operations[i].name, name) == 0) return &operations[i];
    usage_fail("no such operation");
}

static double option_number(const char *text, double least, double most)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= least && value <= most))
        usage_fail("a number is malformed or out of range");
    return value;
}

static void settings_parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"op", 1, NULL, 'o'},      {"port", 1, NULL, 'p'},    {"connections", 1, NULL, 'c'},
        {"threads", 1, NULL, 't'}, {"seconds", 1, NULL, 's'}, {"warmup", 1, NULL, 'w'},
        {"count", 1, NULL, 'n'},   {"items", 1, NULL, 'i'},   {"seed", 1, NULL, 'r'},
        {"first", 1, NULL, 'f'},   {"verbose", 0, NULL, 'v'}, {"help", 0, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    settings.seconds = 1;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'o': settings.operation = operation_find(optarg); break;
        case 'p': settings.address.sin_port = htons((uint16_t)option_number(optarg, 1, 65535)); break;
        case 'c': settings.connections = (unsigned)option_number(optarg, 1, CONNECTIONS_MAX); break;
        case 't': settings.threads = (unsigned)option_number(optarg, 1, THREADS_MAX); break;
        case 's': settings.seconds = option_number(optarg, 0.001, 86400); break;
        case 'w': settings.warmup_seconds = option_number(optarg, 0, 86400); break;
        case 'n': settings.count = (uint64_t)option_number(optarg, 1, 1e15); break;
        case 'i': settings.items = (uint64_t)option_number(optarg, 50, 1e10); break;
        case 'r': settings.seed = (uint64_t)option_number(optarg, 0, 1e15); break;
        case 'f': settings.first = (uint64_t)option_number(optarg, 0, 1e15); break;
        case 'v': settings.verbose = true; break;
        case 'h': help_print(stdout); exit(0);
        default: usage_fail("unknown option");
        }
    }
    if (!settings.operation || !settings.address.sin_port || optind != argc)
        usage_fail("--op and --port are needed");
    if (settings.threads > settings.connections) usage_fail("more threads than connections");
    if (settings.items % 50 != 0) usage_fail("--items must be a multiple of 50");
}

/* Some operations say themselves how often they run. */
static void settings_complete(void)
{
    settings.address.sin_family = AF_INET;
    settings.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const char *name = settings.operation->name;
    bool load = strcmp(name, "load") == 0, redis_load = strcmp(name, "redis-load") == 0;
    settings.in_order = load || redis_load;
    if (load) settings.count = settings.items / BATCH_ITEMS;
    if (redis_load) settings.count = settings.items;
    if (strncmp(name, "create", 6) == 0 || strstr(name, "-make")) settings.count = 1;
}

int main(int argc, char **argv)
{
    settings_parse(argc, argv);
    settings_complete();
    plan_build(&plan, settings.operation);
    struct worker *sum = must_zero(1, sizeof *sum);
    run_all(sum);
    result_print(sum);
    bool failed = atomic_load(&error_count) || !sum->total;
    free(sum);
    buf_free(&plan.bytes);
    return failed ? 1 : 0;
}
