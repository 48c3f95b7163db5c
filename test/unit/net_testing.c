#include "unit/net_testing.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "unit/test.h"

#define KEPT_MAX  64
#define TURN_MAX  256
#define LOOPS_MAX 8

/* What a loop collects for its turn_end; one for each, on its own thread. */
struct turn {
    struct http_exchange *waiting[TURN_MAX];
    unsigned count;
};

static struct turn turns[LOOPS_MAX];
static _Atomic unsigned turns_ended; /* of all loops */
static _Atomic unsigned long_now; /* of the only loop */
static _Atomic unsigned long_most;
static _Atomic bool is_let_go;
static _Atomic unsigned handled[LOOPS_MAX], turns_with_requests, kept_count, posters_running, acted;
static struct later {
    struct net_task task;
    struct http_exchange *exchange;
} * kept[KEPT_MAX];
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

static void answer(struct http_exchange *exchange)
{
    http_reply(exchange, 200, SLICE("text/plain"), SLICE_NONE);
}

static void echo(struct http_exchange *exchange)
{
    buf_slice(&exchange->reply, exchange->method_text);
    buf_text(&exchange->reply, " ");
    buf_slice(&exchange->reply, exchange->path);
    buf_text(&exchange->reply, " [");
    buf_slice(&exchange->reply, exchange->query);
    buf_text(&exchange->reply, "] ");
    buf_slice(&exchange->reply, exchange->body);
}

static void repeat(struct http_exchange *exchange)
{
    unsigned long long count = 0;
    slice_to_u64(exchange->query, 100 * 1024 * 1024, &count);
    buf_reserve(&exchange->reply, count + 1);
    for (unsigned long long i = 0; i < count; i++) buf_byte(&exchange->reply, (unsigned char)('a' + i % 23));
}

static void act(struct http_exchange *exchange)
{
    acted++;
    exchange->has_acted = true;
    repeat(exchange);
}

static void run_later(struct net_task *task)
{
    struct later *later = (struct later *)task;
    echo(later->exchange);
    answer(later->exchange);
    free(later);
}

static void *later_thread(void *argument)
{
    struct later *later = argument;
    sleep_ms(5);
    net_post(later->exchange->loop, &later->task);
    posters_running--;
    return NULL;
}

static struct later *later_new(struct http_exchange *exchange)
{
    struct later *later = calloc(1, sizeof *later);
    later->task.run = run_later;
    later->exchange = exchange;
    return later;
}

static void keep(struct http_exchange *exchange)
{
    pthread_mutex_lock(&kept_lock);
    kept[kept_count++] = later_new(exchange);
    pthread_mutex_unlock(&kept_lock);
}

void testing_release(void)
{
    pthread_mutex_lock(&kept_lock);
    for (unsigned i = 0; i < kept_count; i++) net_post(kept[i]->exchange->loop, &kept[i]->task);
    kept_count = 0;
    pthread_mutex_unlock(&kept_lock);
}

void testing_forget(void)
{
    for (unsigned i = 0; i < kept_count; i++) free(kept[i]);
    kept_count = 0;
}

unsigned testing_kept(void)
{
    return kept_count;
}

static void reply_packed(struct http_exchange *exchange)
{
    repeat(exchange);
    bool packed = http_reply_pack(exchange);
    struct slice extra = arena_printf(&exchange->arena, "X-Packed: %d %zu\r\n", packed, exchange->reply.len);
    http_reply(exchange, 200, SLICE("text/plain"), extra);
}

/* A piece a turn, each a line with its number. */
struct dripping {
    struct net_task task;
    struct http_exchange *exchange;
    unsigned long long sent, count;
};

static void run_drip(struct net_task *task)
{
    struct dripping *dripping = (struct dripping *)task;
    struct http_exchange *exchange = dripping->exchange;
    char line[32];
    int len = snprintf(line, sizeof line, "%llu\n", dripping->sent++);
    if (dripping->sent <= dripping->count && http_reply_piece(exchange, (struct slice){line, (size_t)len})) {
        net_post(exchange->loop, task);
        return;
    }
    http_reply_end(exchange);
    free(dripping);
}

static void drip(struct http_exchange *exchange)
{
    struct dripping *dripping = calloc(1, sizeof *dripping);
    *dripping = (struct dripping){{run_drip, NULL}, exchange, 0, 0};
    slice_to_u64(exchange->query, 100 * 1024 * 1024, &dripping->count);
    buf_text(&exchange->reply, "first\n");
    http_reply_begin(exchange, 200, SLICE("text/plain"), SLICE("X-Pieces: yes\r\n"));
    net_post(exchange->loop, &dripping->task);
}

/* A task that posts the next one: how many turns have ended until that ran? */
struct relay {
    struct net_task first, second;
    struct http_exchange *exchange;
    unsigned turns_before;
};

static void run_relay_second(struct net_task *task)
{
    struct relay *relay = (struct relay *)(void *)((char *)task - offsetof(struct relay, second));
    buf_printf(&relay->exchange->reply, "%u turns later", turns_ended - relay->turns_before);
    answer(relay->exchange);
    free(relay);
}

static void run_relay_first(struct net_task *task)
{
    struct relay *relay = (struct relay *)task;
    net_post(relay->exchange->loop, &relay->second);
}

static void pass_on(struct http_exchange *exchange)
{
    struct relay *relay = calloc(1, sizeof *relay);
    *relay = (struct relay){{run_relay_first, NULL}, {run_relay_second, NULL}, exchange, turns_ended};
    net_post(exchange->loop, &relay->first);
}

static void list_headers(struct http_exchange *exchange)
{
    for (uint32_t i = 0; i < exchange->header_count; i++) {
        buf_slice(&exchange->reply, exchange->headers[i].name);
        buf_text(&exchange->reply, "=");
        buf_slice(&exchange->reply, exchange->headers[i].value);
        buf_text(&exchange->reply, "\n");
    }
}

static void take_long(void)
{
    int64_t until_us = monotonic_us() + 2000;
    long_now++;
    while (monotonic_us() < until_us) {
    }
}

static void on_request(void *context, struct http_exchange *exchange)
{
    (void)context;
    struct slice path = exchange->path;
    unsigned index = net_loop_index(exchange->loop);
    handled[index]++;
    if (slice_equal(path, SLICE("/later"))) {
        pthread_t thread;
        posters_running++;
        pthread_create(&thread, NULL, later_thread, later_new(exchange));
        pthread_detach(thread);
    } else if (slice_equal(path, SLICE("/keep"))) {
        keep(exchange);
    } else if (slice_equal(path, SLICE("/turn"))) {
        turns[index].waiting[turns[index].count++] = exchange;
    } else if (slice_equal(path, SLICE("/pieces"))) {
        drip(exchange);
    } else if (slice_equal(path, SLICE("/relay"))) {
        pass_on(exchange);
    } else if (slice_equal(path, SLICE("/packed"))) {
        reply_packed(exchange);
    } else if (slice_equal(path, SLICE("/act")) && !http_has_room(exchange)) {
        http_reply_crowded(exchange);
    } else if (slice_equal(path, SLICE("/empty"))) {
        http_reply(exchange, 204, SLICE_NONE, SLICE_NONE);
    } else if (slice_equal(path, SLICE("/coded"))) {
        for (int i = 0; i < 2000; i++) buf_byte(&exchange->reply, 'x');
        http_reply(exchange, 200, SLICE("text/plain"), SLICE("X-First: 1\r\ncontent-encoding: br\r\n"));
    } else {
        if (slice_equal(path, SLICE("/headers")))
            list_headers(exchange);
        else if (slice_equal(path, SLICE("/long")))
            take_long();
        else if (slice_equal(path, SLICE("/hold")))
            while (!is_let_go) sleep_ms(1);
        else if (slice_equal(path, SLICE("/repeat")))
            repeat(exchange);
        else if (slice_equal(path, SLICE("/act")))
            act(exchange);
        else if (slice_equal(path, SLICE("/size")))
            buf_printf(&exchange->reply, "%zu %zu", exchange->body.len, exchange->body_sent.len);
        else
            echo(exchange);
        answer(exchange);
    }
}

static void on_turn_end(void *context, struct net_loop *loop)
{
    (void)context;
    struct turn *turn = &turns[net_loop_index(loop)];
    turns_ended++;
    if (turn->count) turns_with_requests++;
    if (long_now > long_most) long_most = long_now;
    long_now = 0;
    for (unsigned i = 0; i < turn->count; i++) {
        echo(turn->waiting[i]);
        answer(turn->waiting[i]);
    }
    turn->count = 0;
}

static struct slice on_refusal(void *context, int *status, const char *reason, struct buf *body)
{
    (void)context;
    buf_printf(body, "{\"status\":%d,\"reason\":\"%s\"}", *status, reason);
    return SLICE("application/json");
}

const struct net_handler testing_handler = {
    .request = on_request, .turn_end = on_turn_end, .refusal = on_refusal};

void testing_let_go(void)
{
    is_let_go = true;
}

unsigned testing_long_in_a_turn(void)
{
    return atomic_exchange(&long_most, 0);
}

unsigned testing_acted(void)
{
    return acted;
}

unsigned testing_turns_with_requests(void)
{
    return turns_with_requests;
}

void testing_loop_share(unsigned loops, unsigned *most, unsigned *least)
{
    *most = *least = handled[0];
    for (unsigned i = 1; i < loops; i++) {
        if (handled[i] > *most) *most = handled[i];
        if (handled[i] < *least) *least = handled[i];
    }
}

static void *server_thread(void *server)
{
    net_server_run(server);
    return NULL;
}

void testing_start(struct testing *testing, testing_adjust *adjust)
{
    char error[256] = "";
    struct net_options options = {
        .host = "127.0.0.1", .threads = 1, .limits = net_limits_default, .handler = testing_handler};
    if (adjust) adjust(&options);
    for (unsigned i = 0; i < LOOPS_MAX; i++) handled[i] = 0;
    turns_with_requests = 0;
    is_let_go = false;
    testing->server = net_server_new(&options, error, sizeof error);
    if (!testing->server) {
        fprintf(stderr, "no server: %s\n", error);
        abort();
    }
    testing_run(testing, testing->server);
}

void testing_run(struct testing *testing, struct net_server *server)
{
    testing->server = server;
    testing->port = net_server_port(server);
    pthread_create(&testing->thread, NULL, server_thread, server);
}

void testing_end(struct testing *testing)
{
    net_server_stop(testing->server);
    pthread_join(testing->thread, NULL);
    while (posters_running) sleep_ms(1); /* net_post may not have returned in all of them */
    net_server_free(testing->server);
}

/* ---- the client ---- */
void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

int client_connect(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct timeval patience = {.tv_sec = 60};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        test_failed(__FILE__, __LINE__, "connect: %s", strerror(errno));
    return fd;
}

size_t client_send_bytes(int fd, const void *bytes, size_t len)
{
    size_t sent = 0;
    while (sent < len) {
        ssize_t now = send(fd, (const char *)bytes + sent, len - sent, MSG_NOSIGNAL);
        if (now <= 0) break;
        sent += (size_t)now;
    }
    return sent;
}

size_t client_send(int fd, const char *text)
{
    return client_send_bytes(fd, text, strlen(text));
}

bool client_read_head(int fd, struct reply *reply)
{
    size_t len = 0;
    *reply = (struct reply){0};
    while (len < sizeof reply->head - 1 && !strstr(reply->head, "\r\n\r\n")) {
        if (recv(fd, reply->head + len, 1, 0) != 1) return false;
        reply->head[++len] = 0;
    }
    if (strncmp(reply->head, "HTTP/1.1 ", 9) != 0) return false;
    reply->status = atoi(reply->head + 9);
    return true;
}

const char *reply_header(const struct reply *reply, const char *name)
{
    static _Thread_local char value[1024];
    size_t name_len = strlen(name);
    for (const char *line = strstr(reply->head, "\r\n"); line && line[2]; line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, name, name_len) != 0 || line[2 + name_len] != ':') continue;
        const char *start = line + 2 + name_len + 2;
        snprintf(value, sizeof value, "%.*s", (int)strcspn(start, "\r"), start);
        return value;
    }
    return NULL;
}

bool client_read(int fd, struct reply *reply)
{
    if (!client_read_head(fd, reply)) return false;
    const char *length = reply_header(reply, "Content-Length");
    size_t wanted = length ? strtoul(length, NULL, 10) : 0;
    reply->body = calloc(1, wanted + 1);
    while (reply->body_len < wanted) {
        ssize_t now = recv(fd, reply->body + reply->body_len, wanted - reply->body_len, 0);
        if (now <= 0) return false;
        reply->body_len += (size_t)now;
    }
    return true;
}

void reply_free(struct reply *reply)
{
    free(reply->body);
    reply->body = NULL;
}

bool client_closed(int fd)
{
    char byte;
    ssize_t count = recv(fd, &byte, 1, 0);
    return count == 0 || (count < 0 && errno == ECONNRESET);
}

int client_status(uint16_t port, const char *text)
{
    struct reply reply;
    int fd = client_connect(port);
    client_send(fd, text);
    int status = client_read(fd, &reply) ? reply.status : 0;
    reply_free(&reply);
    close(fd);
    return status;
}
