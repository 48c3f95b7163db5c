#include "unit/dynamo_scripted.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fail.h"

/* Reads one request, head and body, into last_request. False at the end of the connection. */
static bool read_request(struct scripted *scripted, int fd)
{
    char *text = scripted->last_request;
    size_t len = 0, want = 0;
    for (;;) {
        ssize_t got = read(fd, text + len, sizeof scripted->last_request - 1 - len);
        if (got <= 0) return false;
        len += (size_t)got;
        text[len] = '\0';
        const char *head_end = strstr(text, "\r\n\r\n"), *length = strcasestr(text, "\r\ncontent-length:");
        if (!head_end) continue;
        want = (size_t)(head_end - text) + 4 + (length ? strtoul(length + 17, NULL, 10) : 0);
        ensure(want < sizeof scripted->last_request);
        if (len >= want) return true;
    }
}

static void send_text(int fd, const char *text)
{
    size_t len = strlen(text);
    while (len) {
        ssize_t sent = send(fd, text, len, MSG_NOSIGNAL);
        if (sent <= 0) return;
        text += sent;
        len -= (size_t)sent;
    }
}

static void wait_for_close(int fd)
{
    char byte;
    while (read(fd, &byte, 1) > 0) {
    }
}

/* True when the connection may go on. */
static bool do_step(const struct scripted_step *step, int fd)
{
    char head[1000];
    switch (step->deed) {
    case DEED_REPLY:
        snprintf(
            head, sizeof head,
            "HTTP/1.1 %d Reason\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: %zu\r\n%s\r\n",
            step->status, strlen(step->text), step->headers ? step->headers : "");
        send_text(fd, head);
        send_text(fd, step->text);
        return true;
    case DEED_BYTES: send_text(fd, step->text); return false;
    case DEED_HANG: wait_for_close(fd); return false;
    case DEED_CLOSE: return false;
    }
    return false;
}

static void *scripted_main(void *argument)
{
    struct scripted *scripted = argument;
    for (int fd; (fd = accept(scripted->listener, NULL, NULL)) >= 0; close(fd)) {
        atomic_fetch_add(&scripted->connections, 1);
        while (read_request(scripted, fd)) {
            unsigned number = atomic_fetch_add(&scripted->requests, 1);
            if (number >= scripted->step_count) number = scripted->step_count - 1;
            if (!do_step(&scripted->steps[number], fd)) break;
        }
    }
    return NULL;
}

void scripted_start(struct scripted *scripted, const struct scripted_step *steps, unsigned step_count)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    memset(scripted, 0, sizeof *scripted);
    scripted->steps = steps;
    scripted->step_count = step_count;
    scripted->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ensure(bind(scripted->listener, (struct sockaddr *)&address, len) == 0 &&
           listen(scripted->listener, 16) == 0);
    ensure(getsockname(scripted->listener, (struct sockaddr *)&address, &len) == 0);
    snprintf(scripted->url, sizeof scripted->url, "http://127.0.0.1:%u", ntohs(address.sin_port));
    ensure(pthread_create(&scripted->thread, NULL, scripted_main, scripted) == 0);
}

void scripted_stop(struct scripted *scripted)
{
    shutdown(scripted->listener, SHUT_RDWR);
    pthread_join(scripted->thread, NULL);
    close(scripted->listener);
}
