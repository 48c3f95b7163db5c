/* The guest: the test's own binary, run once more as a function's `bootstrap`. It speaks the Runtime API over
 * plain sockets and does what its event says; what it does before its first event is said by the variable
 * GUEST. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

extern char **environ;

struct wire {
    int fd;
    char *bytes; /* what was read: a head, then the body */
    size_t len, room, head_len, body_len;
};

static int dial(void)
{
    const char *api = getenv("AWS_LAMBDA_RUNTIME_API");
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)atoi(strchr(api, ':') + 1))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one,
               sizeof one); /* head and body are sent one after the other */
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) _exit(90);
    return fd;
}

static void send_all(int fd, const char *bytes, size_t len)
{
    while (len) {
        ssize_t count = send(fd, bytes, len, MSG_NOSIGNAL);
        if (count <= 0) return; /* refused before all was sent: the reply tells */
        bytes += count;
        len -= (size_t)count;
    }
}

/* Reads one reply and answers its status; 0 when the connection was closed. */
static int read_reply(struct wire *wire)
{
    wire->len = wire->head_len = wire->body_len = 0;
    for (;;) {
        if (wire->room - wire->len < 65536) wire->bytes = realloc(wire->bytes, wire->room += 1 << 20);
        ssize_t count = recv(wire->fd, wire->bytes + wire->len, wire->room - wire->len - 1, 0);
        if (count <= 0) return 0;
        wire->len += (size_t)count;
        wire->bytes[wire->len] = 0;
        char *end = wire->head_len ? NULL : strstr(wire->bytes, "\r\n\r\n");
        if (end) {
            wire->head_len = (size_t)(end + 4 - wire->bytes);
            const char *length = strcasestr(wire->bytes, "\r\ncontent-length:");
            wire->body_len = length && length < end ? (size_t)atol(length + 17) : 0;
        }
        if (wire->head_len && wire->len >= wire->head_len + wire->body_len) return atoi(wire->bytes + 9);
    }
}

static int ask(struct wire *wire, const char *method, const char *path, const char *headers, const char *body,
               size_t body_len)
{
    char head[1024];
    int len = snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %zu\r\n%s\r\n",
                       method, path, path[1] == '2' ? "any" : "localhost", body_len, headers);
    send_all(wire->fd, head, (size_t)len);
    send_all(wire->fd, body, body_len);
    return read_reply(wire);
}

static const char *header(const struct wire *wire, const char *name, char *out, size_t room)
{
    char wanted[100];
    snprintf(wanted, sizeof wanted, "\r\n%s: ", name);
    const char *at = strcasestr(wire->bytes, wanted);
    if (!at || at >= wire->bytes + wire->head_len) return "";
    at += strlen(wanted);
    snprintf(out, room, "%.*s", (int)strcspn(at, "\r"), at);
    return out;
}

#define NEXT "/2018-06-01/runtime/invocation/next"

static int answer(struct wire *wire, const char *id, const char *what, const char *headers, const char *body,
                  size_t len)
{
    char path[200];
    snprintf(path, sizeof path, "/2018-06-01/runtime/invocation/%s/%s", id, what);
    return ask(wire, "POST", path, headers, body, len);
}

static void answer_environment(struct wire *wire, const char *id)
{
    char *out = calloc(1, 65536);
    size_t len = 0;
    for (char **at = environ; *at; at++) len += (size_t)snprintf(out + len, 65536 - len, "%s\n", *at);
    answer(wire, id, "response", "", out, len);
    free(out);
}

/* The same without showing whose it is. */
static void answer_by_server_unsigned(struct wire *wire, const char *id)
{
    struct wire other = {.fd = dial()};
    char out[2000];
    int status = ask(&other, "POST", "/elsewhere", "", "{}", 2);
    int len = snprintf(out, sizeof out, "%d %.*s", status, (int)other.body_len, other.bytes + other.head_len);
    answer(wire, id, "response", "", out, (size_t)len);
    close(other.fd);
    free(other.bytes);
}

/* Sends a request on to the server as the function's own and answers what came back. */
static void answer_by_server(struct wire *wire, const char *id, const char *headers)
{
    struct wire other = {.fd = dial()};
    char all[600];
    const char *token = getenv("QUIPU_TOKEN");
    snprintf(all, sizeof all, "Authorization: Bearer %s\r\n%s", token ? token : "", headers);
    ask(&other, "POST", "/elsewhere", all, "{}", 2);
    answer(wire, id, "response", "", other.bytes + other.head_len, other.body_len);
    close(other.fd);
    free(other.bytes);
}

static void answer_large(struct wire *wire, const char *id, size_t len)
{
    char *body = malloc(len), status[40];
    memset(body, 'x', len);
    int code = answer(wire, id, "response", "", body, len);
    snprintf(status, sizeof status, "status %d\n", code);
    if (write(1, status, strlen(status)) < 0) _exit(91);
    free(body);
}

static void answer_wrongly(struct wire *wire, const char *id)
{
    char out[200];
    int a = answer(wire, "00000000-0000-4000-8000-000000000000", "response", "", "{}", 2);
    int b = ask(wire, "POST", "/2018-06-01/runtime/init/error", "", "{}", 2);
    int c = ask(wire, "GET", "/2018-06-01/ping", "", "", 0);
    int d = ask(wire, "PUT", "/2020-08-15/logs", "", "{}", 2);
    int e = ask(wire, "POST", "/2020-01-01/extension/register", "Lambda-Extension-Name: x\r\n", "{}", 2);
    int f = ask(wire, "GET", "/2018-06-01/runtime/restore/next", "", "", 0);
    int len = snprintf(out, sizeof out, "%d %d %d %d %d %d", a, b, c, d, e, f);
    int g = answer(wire, id, "response", "", out, (size_t)len);
    int h = answer(wire, id, "response", "", out, (size_t)len);
    printf("then %d %d\n", g, h);
    fflush(stdout);
}

/* Asks for `next` again before it has answered: it is given the same event. */
static void answer_after_asking_again(struct wire *wire, const char *id)
{
    char again[64] = "", out[200];
    struct wire other = {.fd = dial()};
    ask(&other, "GET", NEXT, "", "", 0);
    header(&other, "Lambda-Runtime-Aws-Request-Id", again, sizeof again);
    int len = snprintf(out, sizeof out, "%s %.*s", strcmp(id, again) == 0 ? "same" : again,
                       (int)other.body_len, other.bytes + other.head_len);
    close(other.fd);
    answer(wire, id, "response", "", out, (size_t)len);
    free(other.bytes);
}

/* Asks for `next` and leaves, so many times. */
static void ask_and_leave(int times)
{
    static const char request[] = "GET " NEXT " HTTP/1.1\r\nHost: x\r\n\r\n";
    for (int i = 0; i < times; i++) {
        int fd = dial();
        send_all(fd, request, strlen(request));
        usleep(20000);
        close(fd);
    }
    usleep(400000);
}

static void be_hostile(void)
{
    signal(SIGTERM, SIG_IGN);
    if (fork() == 0) {
        setsid();
        for (;;) pause();
    }
    for (;;) pause();
}

static void fill_memory(void)
{
    for (;;) {
        char *more = malloc(1 << 20);
        for (size_t i = 0; i < 1 << 20; i += 512) more[i] = (char)i;
        usleep(100);
    }
}

static void answer_headers(struct wire *wire, const char *id)
{
    char out[2048], a[64], b[300], c[200], d[300];
    int len = snprintf(out, sizeof out, "%s\n%s\n%s\n%s\n",
                       header(wire, "Lambda-Runtime-Deadline-Ms", a, sizeof a),
                       header(wire, "Lambda-Runtime-Invoked-Function-Arn", b, sizeof b),
                       header(wire, "Lambda-Runtime-Trace-Id", c, sizeof c),
                       header(wire, "Lambda-Runtime-Client-Context", d, sizeof d));
    answer(wire, id, "response", "", out, (size_t)len);
}

/* With a body in chunks and an error behind it. */
static void answer_broken_stream(struct wire *wire, const char *id)
{
    char out[1000];
    int len = snprintf(
        out, sizeof out,
        "POST /2018-06-01/runtime/invocation/%s/response HTTP/1.1\r\nHost: x\r\n"
        "Lambda-Runtime-Function-Response-Mode: streaming\r\nTransfer-Encoding: chunked\r\n"
        "Trailer: Lambda-Runtime-Function-Error-Type, Lambda-Runtime-Function-Error-Body\r\n\r\n"
        "4\r\nhalf\r\n0\r\nLambda-Runtime-Function-Error-Type: Broken\r\n"
        "Lambda-Runtime-Function-Error-Body: eyJlcnJvclR5cGUiOiJCcm9rZW4ifQ==\r\n\r\n",
        id);
    send_all(wire->fd, out, (size_t)len);
    read_reply(wire);
}

static void handle(struct wire *wire, const char *id, const char *event, size_t event_len)
{
    static const char mine[] = "{\"errorType\":\"Mine\",\"errorMessage\":\"said so\"}";
    char what[128] = "", out[100];
    sscanf(event, "\"%127[^\"]", what);
    if (strcmp(what, "environment") == 0)
        answer_environment(wire, id);
    else if (strcmp(what, "headers") == 0)
        answer_headers(wire, id);
    else if (strcmp(what, "error") == 0)
        answer(wire, id, "error", "", mine, strlen(mine));
    else if (strcmp(what, "error text") == 0)
        answer(wire, id, "error", "Lambda-Runtime-Function-Error-Type: Function.Odd\r\n", "plain", 5);
    else if (strncmp(what, "exit ", 5) == 0)
        _exit(atoi(what + 5));
    else if (strcmp(what, "abort") == 0)
        kill(getpid(), SIGKILL);
    else if (strcmp(what, "hang") == 0)
        be_hostile();
    else if (strcmp(what, "eat") == 0)
        fill_memory();
    else if (strcmp(what, "server") == 0)
        answer_by_server(wire, id, "");
    else if (strcmp(what, "unsigned") == 0)
        answer_by_server_unsigned(wire, id);
    else if (strncmp(what, "large ", 6) == 0)
        answer_large(wire, id, (size_t)atol(what + 6));
    else if (strcmp(what, "wrong") == 0)
        answer_wrongly(wire, id);
    else if (strcmp(what, "again") == 0)
        answer_after_asking_again(wire, id);
    else if (strcmp(what, "broken stream") == 0)
        answer_broken_stream(wire, id);
    else if (strcmp(what, "mode") == 0)
        answer(wire, id, "response", "Lambda-Runtime-Function-Response-Mode: odd\r\n", "{}", 2);
    else if (strncmp(what, "print ", 6) == 0) {
        printf("%s\npart", what + 6);
        fflush(stdout);
        answer(wire, id, "response", "", "1", 1);
    } else if (strncmp(what, "sleep ", 6) == 0) {
        usleep((useconds_t)atoi(what + 6) * 1000);
        answer(wire, id, "response", "", "2", 1);
    } else if (strncmp(what, "until ", 6) == 0) {
        while (access(what + 6, F_OK) != 0) usleep(5000);
        answer(wire, id, "response", "", "2", 1);
    } else if (strcmp(what, "leave") == 0) {
        answer(wire, id, "response", "", "4", 1);
        ask_and_leave(1);
    } else if (strcmp(what, "pid") == 0)
        answer(wire, id, "response", "", out, (size_t)snprintf(out, sizeof out, "%d", getpid()));
    else if (strcmp(what, "answer and exit") == 0) {
        answer(wire, id, "response", "", "3", 1);
        _exit(0);
    } else
        answer(wire, id, "response", "", event, event_len);
}

static void *serve(void *unused)
{
    struct wire wire = {.fd = dial()};
    for (;;) {
        char id[64] = "";
        int status = ask(&wire, "GET", NEXT, "", "", 0);
        if (status != 200) _exit(status ? 92 : 93);
        header(&wire, "Lambda-Runtime-Aws-Request-Id", id, sizeof id);
        char *event = strndup(wire.bytes + wire.head_len, wire.body_len);
        handle(&wire, id, event, wire.body_len);
        free(event);
    }
    return unused;
}

static void begin(const char *how)
{
    struct wire wire = {.fd = -1};
    if (strcmp(how, "exit") == 0) _exit(7);
    if (strcmp(how, "exit quietly") == 0) _exit(0);
    if (strcmp(how, "say init error") == 0) {
        static const char bad[] = "{\"errorType\":\"Init.Bad\",\"errorMessage\":\"no\"}";
        wire.fd = dial();
        ask(&wire, "POST", "/2018-06-01/runtime/init/error", "", bad, strlen(bad));
        for (;;) pause(); /* it does not even exit */
    }
    if (strcmp(how, "never ask") == 0)
        for (;;) pause();
    if (strcmp(how, "leave first") == 0) ask_and_leave(2);
    if (strcmp(how, "print and exit") == 0) {
        printf("last words\n");
        fflush(stdout);
        _exit(3);
    }
}

__attribute__((constructor)) static void be_guest(void)
{
    const char *how = getenv("GUEST"), *many = getenv("AWS_LAMBDA_MAX_CONCURRENCY");
    if (!how || !getenv("AWS_LAMBDA_RUNTIME_API")) return;
    signal(SIGPIPE, SIG_IGN);
    begin(how);
    for (int i = 1; many && i < atoi(many); i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, serve, NULL);
    }
    serve(NULL);
}
