/* quipu function: the functions of a running server. */
#include "cli/function_commands.h"

#include <stdio.h>
#include <string.h>

#include "cli/layer_commands.h"
#include "cli/listing.h"

/* ---- listing and showing ---- */

/* What runs it: a runtime, or where the event goes. */
static struct slice runs_on(struct arena *arena, const struct node *function)
{
    static const char *const targets[] = {"Url", "Table", "Queue", "Pattern"};
    const struct node *ours = node_member(function, "Quipu");
    struct slice runtime = node_text(function, "Runtime");
    if (runtime.len) return runtime;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        struct slice target = node_text(ours, targets[i]);
        const char *word = i == 1 ? "table " : i == 2 ? "queue " : "";
        if (target.len) return arena_printf(arena, "%s%.*s", word, SLICE_ARG(target));
    }
    return SLICE("-");
}

static struct slice with_unit(struct arena *arena, const struct node *function, const char *member,
                              const char *unit)
{
    struct slice text = node_text(function, member);
    return text.len ? arena_printf(arena, "%.*s%s", SLICE_ARG(text), unit) : text;
}

static int list(const struct arguments *arguments)
{
    static const char *const head[] = {"NAME", "RUNS ON", "HANDLER", "MEMORY", "TIMEOUT", "URL", "CHANGED"};
    struct service service;
    struct arena arena = {0};
    struct listing listing;
    size_t count;
    if (!service_open(&service, arguments)) return EXIT_FAULT;
    const struct node **functions = service_list(&service, &arena,
                                                 request_to("lambda", "GET", FUNCTIONS_PATH, NULL),
                                                 "Functions", "Marker", "NextMarker", &count);
    if (functions) {
        listing_begin(&listing, form_listed(arguments), head, sizeof head / sizeof *head);
        for (size_t i = 0; i < count; i++) {
            struct slice *row = listing_row(&listing, functions[i]->source);
            if (!row) continue;
            row[0] = node_text(functions[i], "FunctionName");
            row[1] = runs_on(&arena, functions[i]);
            row[2] = node_text(functions[i], "Handler");
            row[3] = with_unit(&arena, functions[i], "MemorySize", " MB");
            row[4] = with_unit(&arena, functions[i], "Timeout", "s");
            row[5] = node_text(node_member(functions[i], "Quipu"), "UrlPath");
            row[6] = node_text(functions[i], "LastModified");
            if (row[6].len > 19) row[6].len = 19;
        }
        listing_end(&listing, "functions");
    }
    arena_free(&arena);
    service_close(&service);
    return functions ? EXIT_FINE : EXIT_FAULT;
}

static void show_words(struct arena *arena, const struct node *reply)
{
    const struct node *function = node_member(reply, "Configuration");
    const struct node *variables = node_member(node_member(function, "Environment"), "Variables");
    const struct node *layers = node_member(function, "Layers");
    const struct pair settings[] = {
        {"name", node_text(function, "FunctionName")},
        {"description", node_text(function, "Description")},
        {"runs on", runs_on(arena, function)},
        {"handler", node_text(function, "Handler")},
        {"folder", node_text(node_member(function, "Quipu"), "Directory")},
        {"memory", with_unit(arena, function, "MemorySize", " MB")},
        {"timeout", with_unit(arena, function, "Timeout", "s")},
        {"concurrency", node_text(node_member(reply, "Concurrency"), "ReservedConcurrentExecutions")},
        {"url", node_text(node_member(function, "Quipu"), "UrlPath")},
        {"state", node_text(function, "State")},
        {"changed", node_text(function, "LastModified")},
        {"code size", with_unit(arena, function, "CodeSize", " bytes")},
        {"arn", node_text(function, "FunctionArn")},
    };
    size_t count = sizeof settings / sizeof *settings;
    struct pair *pairs = arena_array(arena, struct pair,
                                     count + node_children(layers) + node_children(variables));
    memcpy(pairs, settings, sizeof settings);
    for (const struct node *one = layers ? layers->first : NULL; one; one = one->next)
        pairs[count++] = (struct pair){"layer", layer_shown(node_text(one, "Arn"))};
    for (const struct node *one = variables ? variables->first : NULL; one; one = one->next)
        pairs[count++] = (struct pair){
            "env", arena_printf(arena, "%.*s=%.*s", SLICE_ARG(one->name), SLICE_ARG(one->text))};
    pairs_print(pairs, count);
}

static int show(const struct arguments *arguments)
{
    struct service service;
    struct arena arena = {0};
    struct response response;
    if (!service_open(&service, arguments)) return EXIT_FAULT;
    struct request request = request_to(
        "lambda", "GET", path_of(&arena, FUNCTIONS_PATH "/%s", argument_word(arguments, 0), NULL), NULL);
    bool fine = service_call(&service, &arena, &request, &response);
    if (fine && form_listed(arguments) == FORM_TABLE)
        show_words(&arena, response.json);
    else if (fine)
        json_print(response.body);
    arena_free(&arena);
    service_close(&service);
    return fine ? EXIT_FINE : EXIT_FAULT;
}

/* ---- removing ---- */

static int remove_functions(const struct arguments *arguments)
{
    return service_remove_words(arguments, "lambda", FUNCTIONS_PATH "/%s");
}

/* ---- the rows ---- */

static const struct flag list_flags[] = {LIST_FLAGS};
static const struct flag add_flags[] = {
    {NULL, NULL, "What it runs, one of:"},
    {"dir", "DIR", "a folder of this machine, in place: a change of its files counts at once"},
    {"zip", "FILE", "an archive, which is sent to the server"},
    {"url", "URL", "each event is posted there"},
    {"to-table", "TABLE", "changed items are put into this table, removed ones deleted"},
    {"to-queue", "NAME", "each record becomes a message of this queue"},
    {"to-pattern", "CALL",
     "each record becomes a call of a pattern, in which {places} name values of the record:\n"
     "'POST /v1/counters/{NewImage.shop}'; {eventID}, {Keys.x}, {NewImage}, ..."},
    {"body", "JSON",
     "the body of such a call, with {places} too: '{\"id\":\"{eventID}\",\"data\":\"{NewImage}\"}'"},
    {NULL, NULL, "How it runs:"},
    {"runtime", "NAME", "nodejs20.x, python3.11, provided.al2023, ... (guessed from the folder)"},
    {"handler", "NAME", "what to call, like index.handler (guessed too)"},
    {"timeout", "DURATION", "of one call: 1s to 15m (default: 3s)"},
    {"memory", "MB", "128 to 10240 (default: 128)"},
    {"env", "NAME=VALUE", "a variable of its environment; may be given again"},
    {"layer", "NAME[:VERSION]",
     "a layer that lies below it, the newest version unless one is named; may be given again:\n"
     "of files with the same name the later layer's counts. Replaces the layers that it had"},
    {"no-layers", NULL, "takes away the layers that it had"},
    {"concurrency", "N", "calls at a time, at most"},
    {"per-process", "N", "calls that one process handles at a time"},
    {"secret", "@FILE|-",
     "signs what is posted to --url; of a file, or of standard input. The secret itself may be\n"
     "given, too, but others on this machine may see it"},
    {"description", "TEXT", "what it is for"},
};
static const struct flag invoke_flags[] = {
    {"async", NULL, "do not wait for the answer"},
    {"log", NULL, "print the end of its log on standard error"},
};
static const struct flag logs_flags[] = {{"follow", NULL, "go on as it is written, until Ctrl-C; also -f"}};
static const struct flag debug_flags[] = {
    {"port", "N", "where the debugger listens on the server's machine (default: 9229)"},
};
static const struct flag publish_flags[] = {{"description", "TEXT", "of the version"}};
static const struct flag alias_flags[] = {LIST_FLAGS, {"rm", NULL, "remove the alias"}};
static const struct flag url_flags[] = {
    {"auth", "none|iam", "who may call: everybody, or who signs with a key of the server's (default: none)"},
    {"cors", "ORIGIN", "pages of this origin may use it: http://localhost:3000, or '*'; may be given again"},
    {"rm", NULL, "take the URL away"},
};

static const struct command children[] = {
    {.name = "add",
     .summary = "make a function, or change one",
     .usage = "NAME --dir DIR | --zip FILE | --url URL | --to-table|-queue|-pattern TARGET [flags]",
     .about =
         "Makes a function of a server, or changes the code and settings of one. Runtime and handler are\n"
         "guessed from a folder where that is safe: bootstrap is provided.al2023, index.mjs, index.js or\n"
         "package.json are Node's, lambda_function.py is Python's.",
     FLAGS(add_flags),
     .examples = "  quipu function add resize --dir ./resize\n"
                 "  quipu function add report --zip report.zip --runtime python3.11 --handler report.run\n"
                 "  quipu function add hook --url https://example.com/hook --secret @hook.secret\n"
                 "  quipu function add resize --dir ./resize --timeout 30s --memory 512 --env SIZE=64\n"
                 "  quipu function add resize --dir ./resize --layer images --layer fonts:3",
     .works_on_server = true,
     .words_min = 1,
     .words_max = 1,
     .run = function_add},
    {.name = "ls",
     .summary = "list the functions",
     .usage = "[flags]",
     .about = "Lists the functions of a server.",
     FLAGS(list_flags),
     .works_on_server = true,
     .run = list},
    {.name = "show",
     .summary = "code and settings",
     .usage = "NAME [flags]",
     .about = "Tells everything about a function: readable on a terminal, GetFunction's JSON otherwise.",
     FLAGS(list_flags),
     .works_on_server = true,
     .words_min = 1,
     .words_max = 1,
     .run = show},
    {.name = "invoke",
     .summary = "call a function and print its answer",
     .usage = "NAME [JSON|@FILE|-] [flags]",
     .about = "Calls a function with an event ({}) and prints its answer. The exit status is 1 when the\n"
              "function failed; its error is printed then. NAME may have a version or an alias: NAME:live.",
     FLAGS(invoke_flags),
     .examples = "  quipu function invoke resize '{\"id\":7}' --log\n"
                 "  quipu function invoke resize @event.json\n"
                 "  cat event.json | quipu function invoke resize - --async",
     .works_on_server = true,
     .words_min = 1,
     .words_max = 2,
     .run = function_invoke},
    {.name = "logs",
     .summary = "print what a function printed",
     .usage = "NAME [-f] [flags]",
     .about = "Prints the end of a function's log.",
     FLAGS(logs_flags),
     .works_on_server = true,
     .words_min = 1,
     .words_max = 1,
     .run = function_logs},
    {.name = "debug",
     .summary = "run a function under a debugger",
     .usage = "NAME [flags]",
     .about = "While this runs, the function has one process at a time, which waits for a debugger before it\n"
              "loads its code, and no time limits: not for its start, not for its calls. Other calls wait.\n"
              "Prints how to attach, then the function's log. Ctrl-C ends it, and all is as before; the call\n"
              "under way may finish within the function's own time limit.",
     FLAGS(debug_flags),
     .examples = "  quipu function debug resize\n"
                 "  quipu function debug resize --port 9230",
     .works_on_server = true,
     .words_min = 1,
     .words_max = 1,
     .run = function_debug},
    {.name = "publish",
     .summary = "keep the code as a numbered version",
     .usage = "NAME [flags]",
     .about =
         "Makes a version of a function's code and settings, which never changes, and prints its number.",
     FLAGS(publish_flags),
     .works_on_server = true,
     .words_min = 1,
     .words_max = 1,
     .run = function_publish},
    {.name = "alias",
     .summary = "names for versions",
     .usage = "NAME [ALIAS VERSION] [flags]",
     .about = "Lists the aliases of a function, or lets one point at a version.",
     FLAGS(alias_flags),
     .examples = "  quipu function alias resize live 3\n"
                 "  quipu function alias resize\n"
                 "  quipu function alias resize live --rm",
     .works_on_server = true,
     .words_min = 1,
     .words_max = 3,
     .run = function_alias},
    {.name = "url",
     .summary = "call a function by any HTTP client",
     .usage = "NAME[:ALIAS] [flags]",
     .about = "Gives a function a URL, behind which every request, whatever its method and path, becomes a call;\n"
              "changes the one that it has, where flags are given. Prints it.",
     FLAGS(url_flags),
     .examples = "  quipu function url hello\n"
                 "  curl \"$(quipu function url hello)any/path?a=1\"\n"
                 "  quipu function url hello --cors http://localhost:3000\n"
                 "  quipu function url hello --rm",
     .works_on_server = true,
     .words_min = 1,
     .words_max = 1,
     .run = function_url},
    {.name = "rm",
     .summary = "remove functions",
     .usage = "NAME... [flags]",
     .about = "Removes functions with their versions and aliases. A folder that was run in place stays.",
     .works_on_server = true,
     .words_min = 1,
     .words_max = WORDS_MANY,
     .run = remove_functions},
};

const struct command command_function = {.name = "function",
                                         .summary = "make, call and watch functions",
                                         .usage = "add|ls|show|invoke|logs|debug|publish|alias|url|rm ...",
                                         .about = "Works on the functions of a running server.",
                                         .children = children,
                                         .child_count = sizeof children / sizeof *children};
