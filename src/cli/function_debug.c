/* quipu function debug: a function runs under a debugger for as long as this command does.
 *
 * The server keeps the session only as long as it is asked for it again, so it ends also when this process is
 * killed. Between two requests the function's log is followed. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/function_commands.h"
#include "cli/hold.h"

#define SESSION    "20s" /* how long the server keeps it without hearing of us */
#define WAIT_QUERY "1s"  /* for more of the log: so soon Ctrl-C is noticed */

struct session {
    struct service service;
    struct arena arena;
    const char *path, *logs_path;
    char query[64];
};

static bool session_renew(struct session *session, struct arena *arena, struct response *response)
{
    struct request request = request_to("lambda", "PUT", session->path, NULL);
    request.query = session->query;
    return service_call(&session->service, arena, &request, response);
}

static void session_end(struct session *session)
{
    struct response response;
    struct request request = request_to("lambda", "DELETE", session->path, NULL);
    service_call(&session->service, &session->arena, &request, &response);
}

/* How to attach, by what runs it. */
static void session_explain(const struct arguments *arguments, const struct response *response)
{
    const char *name = argument_word(arguments, 0);
    struct slice runtime = node_text(response->json, "Runtime"), port = node_text(response->json, "Port");
    printf("%s runs under a debugger: one process, no time limits. Ctrl-C ends this.\n", name);
    if (slice_starts(runtime, SLICE("node")))
        printf(
            "It waits for a debugger at 127.0.0.1:%.*s before it loads its code: open chrome://inspect, run\n"
            "'node inspect 127.0.0.1:%.*s', or attach VS Code:\n"
            "  {\"type\": \"node\", \"request\": \"attach\", \"name\": \"%s\", \"port\": %.*s, \"restart\": true}\n",
            SLICE_ARG(port), SLICE_ARG(port), name, SLICE_ARG(port));
    else if (slice_starts(runtime, SLICE("python")))
        printf(
            "Where its Python has debugpy, it waits for a debugger at 127.0.0.1:%.*s before it loads its code:\n"
            "  {\"type\": \"debugpy\", \"request\": \"attach\", \"name\": \"%s\", \"connect\": {\"port\": %.*s}}\n"
            "Where it has not, breakpoint() in its code waits for 'nc 127.0.0.1 %.*s' and speaks pdb.\n",
            SLICE_ARG(port), name, SLICE_ARG(port), SLICE_ARG(port));
    else
        printf("Its bootstrap finds %.*s in QUIPU_DEBUG_PORT: for gdbserver, dlv and the like.\n",
               SLICE_ARG(port));
    printf("Then call it: quipu function invoke %s '{}'\n", name);
    fflush(stdout);
}

/* One piece of the log, from *position on; an empty one: only where it ends. */
static bool session_log(struct session *session, struct arena *arena, char position[32])
{
    struct response response;
    struct request request = request_to("lambda", "GET", session->logs_path, NULL);
    char query[96];
    if (*position)
        snprintf(query, sizeof query, "from=%s&wait=" WAIT_QUERY, position);
    else
        snprintf(query, sizeof query, "max=1");
    request.query = query;
    if (!service_call(&session->service, arena, &request, &response)) return false;
    if (*position) fwrite(response.body.data, 1, response.body.len, stdout);
    snprintf(position, 32, "%.*s", SLICE_ARG(response.position));
    return fflush(stdout) == 0;
}

static int session_run(struct session *session, const struct arguments *arguments)
{
    struct arena piece = {0};
    struct response response;
    char position[32] = "";
    bool fine = session_log(session, &piece, position) && session_renew(session, &piece, &response);
    if (fine && !slice_equal(node_text(response.json, "Begun"), SLICE("true")))
        fprintf(stderr, "quipu: it was being debugged already; this goes on with it\n");
    if (fine) session_explain(arguments, &response);
    bool has_begun = fine;
    while (fine && !signals_pending()) {
        arena_reset(&piece);
        fine = session_log(session, &piece, position) && session_renew(session, &piece, &response);
    }
    if (has_begun) session_end(session);
    if (fine) fprintf(stderr, "\n%s runs as before.\n", argument_word(arguments, 0));
    arena_free(&piece);
    return fine ? EXIT_FINE : EXIT_FAULT;
}

int function_debug(const struct arguments *arguments)
{
    struct session session = {0};
    unsigned long long port = 9229;
    const char *name = argument_word(arguments, 0);
    int status = EXIT_FAULT;
    if (!argument_number(arguments, "port", 1024, 65535, &port)) return EXIT_USAGE;
    signals_keep();
    if (service_open(&session.service, arguments)) {
        session.path = path_of(&session.arena, "/v1/functions/%s/debug", name, NULL);
        session.logs_path = path_of(&session.arena, "/v1/functions/%s/logs", name, NULL);
        snprintf(session.query, sizeof session.query, "for=" SESSION "&port=%llu", port);
        status = session_run(&session, arguments);
        service_close(&session.service);
    }
    arena_free(&session.arena);
    return status;
}
