/* Guesses runtime and handler from a folder, where only one thing can be meant. The versions in the names
 * mean little here, since the interpreter is the machine's; those that AWS knows are used. */
#include "cli/function_guess.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/node.h"

#define NODE          "nodejs20.x"
#define PYTHON        "python3.11"
#define PROVIDED      "provided.al2023"
#define PACKAGE_BYTES (1024 * 1024)

static bool has(const char *folder, const char *name, int mode, struct arena *arena)
{
    return access(arena_printf(arena, "%s/%s", folder, name).data, mode) == 0;
}

/* "main" of package.json, without its suffix; NULL when there is none. */
static const char *main_of_package(const char *folder, struct arena *arena)
{
    const char *fault;
    FILE *file = fopen(arena_printf(arena, "%s/package.json", folder).data, "re");
    if (!file) return NULL;
    char *text = arena_alloc(arena, PACKAGE_BYTES);
    size_t len = fread(text, 1, PACKAGE_BYTES, file);
    fclose(file);
    const struct node *package = node_parse(arena, (struct slice){text, len}, &fault);
    struct slice main = node_text(package, "main");
    if (slice_starts(main, SLICE("./"))) main = slice_from(main, 2);
    const char *dot = main.len ? memrchr(main.data, '.', main.len) : NULL;
    if (!dot || memchr(dot, '/', (size_t)(main.data + main.len - dot))) return NULL;
    return arena_printf(arena, "%.*s.handler", (int)(dot - main.data), main.data).data;
}

static const char *node_handler(const char *folder, struct arena *arena)
{
    if (has(folder, "index.mjs", R_OK, arena) || has(folder, "index.js", R_OK, arena) ||
        has(folder, "index.cjs", R_OK, arena))
        return "index.handler";
    return main_of_package(folder, arena);
}

void function_guess(const char *folder, struct arena *arena, struct function_guess *out)
{
    unsigned found = 0;
    const char *handler = node_handler(folder, arena);
    *out = (struct function_guess){0};
    if (has(folder, "bootstrap", X_OK, arena)) {
        *out = (struct function_guess){PROVIDED, "bootstrap", NULL, false};
        found++;
    }
    if (handler) {
        *out = (struct function_guess){NODE, handler, NULL, false};
        found++;
    }
    if (has(folder, "lambda_function.py", R_OK, arena)) {
        *out = (struct function_guess){PYTHON, "lambda_function.lambda_handler", NULL, false};
        found++;
    }
    if (found == 1) return;
    *out = (struct function_guess){
        .fault = found ? "it has the files of several runtimes"
                       : "it has none of bootstrap, index.mjs, index.js, package.json "
                         "with \"main\", lambda_function.py",
        .lacks_permission = !found && has(folder, "bootstrap", F_OK, arena)};
}
