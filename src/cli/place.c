/* Opening and calling. Errors of the service keep their names, since people look them up; those that a person
 * at a command line meets every day get a sentence that says what to do. */
#include "cli/place.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "dynamo/dynamo.h"

#define DEFAULT_PLACE "http://127.0.0.1:8000"
#define PAUSE_MAX_MS  5000

const char *place_prefix(const struct arguments *arguments)
{
    const char *prefix = argument_offered(arguments, "prefix") ? argument_text(arguments, "prefix") : NULL;
    if (!prefix) prefix = getenv("QUIPU_PREFIX");
    return prefix && *prefix ? prefix : "quipu-";
}

static mode_t usual_umask; /* ours before we opened a folder */
static bool has_umask;

void place_reset_umask(void)
{
    if (has_umask) umask(usual_umask);
}

/* localhost:8000, ftp://x: what somebody typed who meant a URL. A folder may have such a name. */
static bool place_is_meant_as_url(const char *where)
{
    struct stat found;
    const char *colon = strchr(where, ':');
    if (!colon || colon == where || stat(where, &found) == 0) return false;
    if (strncmp(colon, "://", 3) == 0) return true;
    return colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1);
}

bool place_open_at(struct place *out, const char *where, const struct arguments *arguments,
                   enum place_use use)
{
    char error[QUIPU_ERROR_BYTES];
    struct quipu_options options = QUIPU_OPTIONS;
    options.must_exist = use != PLACE_MAKE;
    options.read_only = use == PLACE_READ;
    options.region = argument_text(arguments, "region");
    options.profile = argument_text(arguments, "profile");
    options.prefix = place_prefix(arguments);
    *out = (struct place){.where = where, .prefix = options.prefix};
    out->is_url = strncmp(where, "http://", 7) == 0 || strncmp(where, "https://", 8) == 0;
    if (!out->is_url && place_is_meant_as_url(where))
        return complain("'%s' is no folder that is there; a URL begins with http:// or https://%s%s", where,
                        strstr(where, "://") ? "" : ": did you mean http://",
                        strstr(where, "://") ? "" : where),
               false;
    if (!out->is_url && !has_umask) { /* what is made in a data folder is nobody else's */
        usual_umask = umask(077);
        has_umask = true;
    }
    out->db = quipu_open(where, &options, error, sizeof error);
    if (!out->db && use == PLACE_LOOK) {
        options.read_only = true;
        out->db = quipu_open(where, &options, error, sizeof error);
    }
    if (!out->db) complain("%s", error);
    return out->db != NULL;
}

bool place_open(struct place *out, const struct arguments *arguments, enum place_use use)
{
    const char *on = argument_text(arguments, "on");
    bool fine = place_open_at(out, on ? on : DEFAULT_PLACE, arguments, use);
    out->is_default = !on;
    return fine;
}

void place_close(struct place *place)
{
    quipu_close(place->db);
    place->db = NULL;
}

static const char *text_in(struct arena *arena, const char *text)
{
    return arena_printf(arena, "%s", text).data;
}

struct answer place_ask(const struct place *place, struct arena *arena, const char *operation,
                        const struct buf *request)
{
    const char *fault;
    struct slice text = arena_printf(arena, "%.*s", (int)request->len, request->data);
    struct quipu_reply *reply = quipu_call(place->db, operation, text.data);
    struct slice json = arena_copy(arena, (struct slice){reply->json, reply->json_len});
    struct answer answer = {.json = node_parse(arena, json, &fault),
                            .message = text_in(arena, reply->message)};
    if (reply->error)
        answer.error = text_in(arena, reply->error);
    else if (!answer.json)
        answer.error = "UnreadableReply", answer.message = "the reply is not JSON";
    quipu_reply_free(reply);
    return answer;
}

const struct node *place_call(const struct place *place, struct arena *arena, const char *operation,
                              const struct buf *request)
{
    struct answer answer = place_ask(place, arena, operation, request);
    if (!answer.error) return answer.json;
    place_complain(place, NULL, answer.error, answer.message);
    return NULL;
}

/* The sentences of those below begin with the URL, which ours has already. */
static const char *without_url(const char *message, const char *url)
{
    const char *at = strstr(message, url), *behind = at ? strstr(at + strlen(url), ": ") : NULL;
    return behind ? behind + 2 : message;
}

int place_complain(const struct place *place, const char *table, const char *error, const char *message)
{
    if (strcmp(error, "NoReplyException") == 0)
        return complain(
            "nobody answers on %s: %s\n%s", place->where, without_url(message, place->where),
            place->is_default
                ? "Start a server with 'quipu serve', or say where the data is: --on WHERE"
                : "That is what --on or $QUIPU_ON says. Is it right, and does a server run there?");
    if (table && strcmp(error, "ResourceNotFoundException") == 0)
        return complain("there is no table '%s' on %s ('quipu table ls' lists them)", table, place->where);
    return complain("%s%s%s", error, *message ? ": " : "", message);
}

bool error_may_pass(const char *error)
{
    return dynamo_fault_may_pass(dynamo_fault(400, slice_of(error)));
}

void pause_before_retry(unsigned nth)
{
    long ms = nth > 8 ? PAUSE_MAX_MS : 25L << nth;
    if (ms > PAUSE_MAX_MS) ms = PAUSE_MAX_MS;
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}
