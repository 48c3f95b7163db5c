/* Answers what it was given: the Runtime API over a plain socket. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROOM (7 * 1024 * 1024)

static char reply[ROOM + 1];
static const char *host;
static int server;

static void say(const char *text, size_t len)
{
    for (ssize_t sent; len > 0; text += sent, len -= (size_t)sent)
        if ((sent = send(server, text, len, MSG_NOSIGNAL)) <= 0) exit(1);
}

/* Reads a whole reply and answers its body, ended by NUL. */
static char *hear(void)
{
    size_t len = 0;
    for (;;) {
        ssize_t got = recv(server, reply + len, ROOM - len, 0);
        if (got <= 0) exit(1);
        reply[len += (size_t)got] = 0;
        char *body = strstr(reply, "\r\n\r\n"), *length = strcasestr(reply, "\nContent-Length:");
        if (body && length && len >= (size_t)(body + 4 - reply) + strtoul(length + 16, NULL, 10)) return body + 4;
    }
}

static void header_copy(const char *name, char *out, size_t room)
{
    char *at = strcasestr(reply, name);
    if (!at || strncmp(reply, "HTTP/1.1 200", 12) != 0) exit(1);
    at += strlen(name) + strspn(at + strlen(name), " ");
    snprintf(out, room, "%.*s", (int)strcspn(at, "\r\n"), at);
}

int main(void)
{
    struct sockaddr_in place = {.sin_family = AF_INET};
    host = getenv("AWS_LAMBDA_RUNTIME_API");
    const char *colon = host ? strrchr(host, ':') : NULL;
    if (!colon) return 1;
    place.sin_port = htons((unsigned short)atoi(colon + 1));
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (connect(server, (struct sockaddr *)&place, sizeof place) != 0) return 1;
    for (;;) {
        char text[500], id[100];
        int len = snprintf(text, sizeof text,
                           "GET /2018-06-01/runtime/invocation/next HTTP/1.1\r\nHost: %s\r\n\r\n", host);
        say(text, (size_t)len);
        char *event = hear();
        header_copy("Lambda-Runtime-Aws-Request-Id:", id, sizeof id);
        puts("echo");
        fflush(stdout);
        char end[150];
        int end_len = snprintf(end, sizeof end, ",\"id\":\"%s\",\"language\":\"c\"}", id);
        size_t body_len = strlen("{\"event\":") + strlen(event) + (size_t)end_len;
        len = snprintf(text, sizeof text,
                       "POST /2018-06-01/runtime/invocation/%s/response HTTP/1.1\r\nHost: %s\r\n"
                       "Content-Length: %zu\r\n\r\n{\"event\":",
                       id, host, body_len);
        say(text, (size_t)len);
        say(event, strlen(event));
        say(end, (size_t)end_len);
        hear();
    }
}
