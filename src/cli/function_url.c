/* quipu function url: a function by any HTTP client. */
#include <stdio.h>
#include <string.h>

#include "cli/function_commands.h"

#define METHODS "[\"*\"]"
#define HEADERS "[\"*\"]"

/* The members that the flags give; false after complaining. */
static bool put_settings(struct buf *out, const struct arguments *arguments, bool is_new)
{
    const char *auth = argument_text(arguments, "auth");
    if (auth && strcmp(auth, "none") != 0 && strcmp(auth, "iam") != 0)
        return complain_of_usage(arguments, "--auth should be none or iam, not '%s'", auth), false;
    buf_byte(out, '{');
    if (auth || is_new)
        put_string_member(out, "AuthType", auth && strcmp(auth, "iam") == 0 ? SLICE("AWS_IAM") : SLICE("NONE"));
    if (argument_given(arguments, "cors")) {
        put_name(out, "Cors");
        buf_text(out, "{\"AllowMethods\":" METHODS ",\"AllowHeaders\":" HEADERS ",\"AllowOrigins\":[");
        for (size_t i = 0; argument_nth(arguments, "cors", i); i++) {
            if (i) buf_byte(out, ',');
            json_put_string(out, slice_of(argument_nth(arguments, "cors", i)));
        }
        buf_text(out, "]}");
    }
    buf_byte(out, '}');
    return true;
}

/* Changes it, or makes it where there is none. */
static bool set(struct service *service, struct arena *arena, const struct arguments *arguments, const char *path)
{
    struct buf body = {0};
    struct response response;
    bool changes = argument_given(arguments, "auth") || argument_given(arguments, "cors");
    bool fine = put_settings(&body, arguments, false);
    if (!fine) {
        buf_free(&body);
        return false;
    }
    struct request request = request_to("lambda", changes ? "PUT" : "GET", path, changes ? &body : NULL);
    fine = service_ask(service, arena, &request, &response);
    if (fine && response.status == 404) {
        body.len = 0;
        put_settings(&body, arguments, true);
        request = request_to("lambda", "POST", path, &body);
        fine = service_ask(service, arena, &request, &response);
    }
    buf_free(&body);
    if (fine && response.error) service_complain(&response);
    return fine && !response.error;
}

int function_url(const struct arguments *arguments)
{
    const char *name = argument_word(arguments, 0);
    struct service service;
    struct arena arena = {0};
    struct response response;
    bool fine;
    if (!service_open(&service, arguments)) return EXIT_FAULT;
    const char *path = path_of(&arena, "/2021-10-31/functions/%s/url", name, NULL);
    if (argument_given(arguments, "rm")) {
        struct request request = request_to("lambda", "DELETE", path, NULL);
        fine = service_call(&service, &arena, &request, &response);
    } else {
        fine = set(&service, &arena, arguments, path);
        if (fine) printf("%.*s/_url/%s/\n", SLICE_ARG(service.base), name);
    }
    arena_free(&arena);
    service_close(&service);
    return fine ? EXIT_FINE : EXIT_FAULT;
}
