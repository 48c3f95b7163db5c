/* Lists of names, one function for all. */
#include <string.h>

#include "library/ask.h"

#define ROOT "/v1/"

static const char *const paths[] = {
    "/v1/counters",  "/v1/leases", "/v1/limits", "/v1/logs",    "/v1/boards",
    "/v1/documents", "/v1/work",   "/v1/groups", "/v1/periods",
};

struct quipu_pages *quipu_list(struct quipu *db, const char *what, const char *prefix)
{
    static const char once[] = "once/";
    struct ask ask;
    const char *path = NULL;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (strcmp(paths[i] + strlen(ROOT), what) == 0) path = paths[i];
    if (path)
        ask_begin(&ask, db, NULL, "GET", path);
    else if (strncmp(what, once, strlen(once)) == 0)
        ask_begin(&ask, db, NULL, "GET", "/v1/once/*", what + strlen(once));
    else
        ask_begin(&ask, db, NULL, "GET", ROOT); /* is refused: there is no such list */
    ask_query(&ask, "prefix", prefix);
    return ask_pages(&ask);
}
