/* The mail to the business people, in plain C: the Runtime API is two requests over one connection.
 *
 * It sends no mail; it prints one. The event is JSON, of which a few texts are needed, so no library is. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define REPLY_BYTES (1024 * 1024)

static char reply[REPLY_BYTES + 1];
static FILE *to, *from; /* the server */

static void give_up(const char *why)
{
    fprintf(stderr, "mail: %s\n", why);
    exit(1);
}

static void connect_to(const char *place)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    const char *colon = place ? strrchr(place, ':') : NULL;
    int handle = socket(AF_INET, SOCK_STREAM, 0);
    if (!colon || handle < 0) give_up("no AWS_LAMBDA_RUNTIME_API");
    address.sin_port = htons((unsigned short)atoi(colon + 1));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(handle, (struct sockaddr *)&address, sizeof address) != 0) give_up("cannot connect");
    to = fdopen(dup(handle), "w");
    from = fdopen(handle, "r");
    if (!to || !from) give_up("no memory");
}

/* Sends a request and reads its reply; `id` is set from its head when there is one. */
static void exchange(const char *method, const char *path, const char *body, char id[100])
{
    char line[1000];
    size_t length = 0;
    fprintf(to,
            "%s /2018-06-01/runtime/invocation/%s HTTP/1.1\r\nHost: runtime\r\nContent-Length: %zu\r\n\r\n%s",
            method, path, strlen(body), body);
    if (fflush(to) != 0) give_up("the server is gone");
    while (fgets(line, sizeof line, from) && strcmp(line, "\r\n") != 0) {
        if (strncasecmp(line, "Content-Length:", 15) == 0) length = strtoul(line + 15, NULL, 10);
        if (strncasecmp(line, "Lambda-Runtime-Aws-Request-Id:", 30) == 0)
            sscanf(line + 30, " %99[^\r\n]", id);
    }
    if (length > REPLY_BYTES || fread(reply, 1, length, from) != length) give_up("the server is gone");
    reply[length] = 0;
}

/* The text of the next member of this name, and what stands behind it; NULL: there is none. */
static const char *member(const char *from_here, const char *name, char *out, size_t room)
{
    char quoted[50];
    snprintf(quoted, sizeof quoted, "\"%s\":\"", name);
    const char *at = strstr(from_here, quoted);
    at = at ? at + strlen(quoted) : "";
    snprintf(out, room, "%.*s", (int)strcspn(at, "\""), at);
    return *at ? at : NULL;
}

int main(void)
{
    char id[100] = "", path[150], session[200], page[200];
    connect_to(getenv("AWS_LAMBDA_RUNTIME_API"));
    for (;;) {
        exchange("GET", "next", "", id);
        member(reply, "key", session, sizeof session);
        printf("mail: session %s has made ten clicks:", session);
        for (const char *at = reply; (at = member(at, "page", page, sizeof page));) printf(" %s", page);
        printf("\n");
        fflush(stdout);
        snprintf(path, sizeof path, "%s/response", id);
        exchange("POST", path, "{}", id);
    }
}
