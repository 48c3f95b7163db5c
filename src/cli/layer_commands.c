/* quipu layer: what functions of a running server share. */
#include "cli/layer_commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "cli/input.h"
#include "cli/listing.h"
#include "cli/pack.h"

#define LAYERS_PATH     "/2018-10-31/layers"
#define NAME_MAX_BYTES  64 /* Lambda's */
#define VERSION_DIGITS  10
#define NAMES_SHOWN     10 /* in a sentence */
#define ARN_OF_LAYER    6  /* colons in arn:aws:lambda:REGION:ACCOUNT:layer:NAME; a version's has one more */
#define ZIP_LEAST_BYTES 4

/* ---- names ---- */

/* Where the version begins, behind its colon; NULL: none is named. */
static const char *version_of(const char *text)
{
    unsigned colons = strncmp(text, "arn:", 4) == 0 ? ARN_OF_LAYER : 0;
    const char *colon = strchr(text, ':');
    for (; colon && colons; colons--) colon = strchr(colon + 1, ':');
    return colon ? colon + 1 : NULL;
}

bool layer_names_agree(const char *a, const char *b)
{
    const char *a_version = version_of(a), *b_version = version_of(b);
    size_t a_len = a_version ? (size_t)(a_version - a - 1) : strlen(a);
    size_t b_len = b_version ? (size_t)(b_version - b - 1) : strlen(b);
    return a_len == b_len && memcmp(a, b, a_len) == 0;
}

static const char *name_of(struct arena *arena, const char *text)
{
    const char *version = version_of(text);
    return version ? arena_printf(arena, "%.*s", (int)(version - text - 1), text).data : text;
}

static bool name_is_sound(struct slice name, const struct arguments *arguments)
{
    size_t i = 0;
    for (; i < name.len; i++) {
        char c = name.data[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_letter && c != '-' && c != '_') break;
    }
    if (name.len && name.len <= NAME_MAX_BYTES && i == name.len) return true;
    complain_of_usage(arguments, "a layer's name should be 1 to %d letters, digits, '-' or '_', not '%.*s'",
                      NAME_MAX_BYTES, SLICE_ARG(name));
    return false;
}

bool layer_name_is_sound(const char *text, const struct arguments *arguments)
{
    const char *version = version_of(text);
    struct slice name = {text, version ? (size_t)(version - text - 1) : strlen(text)};
    size_t digits = version ? strspn(version, "0123456789") : 1;
    if (strncmp(text, "arn:", 4) != 0 && !name_is_sound(name, arguments)) return false;
    if (digits && digits <= VERSION_DIGITS && (!version || !version[digits])) return true;
    complain_of_usage(arguments, "a layer's version should be a number, not '%s'", version);
    return false;
}

struct slice layer_shown(struct slice arn)
{
    const char *mark = memmem(arn.data, arn.len, ":layer:", 7);
    return mark ? slice_from(arn, (size_t)(mark + 7 - arn.data)) : arn;
}

/* ---- finding ---- */

/* Appends the first texts of a list. */
static void put_few(struct buf *out, const struct node *const *nodes, size_t count, const char *member)
{
    for (size_t i = 0; i < count && i < NAMES_SHOWN; i++)
        buf_printf(out, "%s%.*s", i ? ", " : "", SLICE_ARG(node_text(nodes[i], member)));
    if (count > NAMES_SHOWN) buf_printf(out, " and %zu more", count - NAMES_SHOWN);
}

static const struct node **all_layers(struct service *service, struct arena *arena, size_t *count)
{
    return service_list(service, arena, request_to("lambda", "GET", LAYERS_PATH, NULL), "Layers", "Marker",
                        "NextMarker", count);
}

static void complain_of_layer(struct service *service, struct arena *arena, const char *name)
{
    struct buf names = {0};
    size_t count;
    const struct node **layers = all_layers(service, arena, &count);
    if (!layers) return;
    put_few(&names, layers, count, "LayerName");
    if (count)
        complain("there is no layer '%s'; there are: %.*s", name, SLICE_ARG(buf_view(&names)));
    else
        complain("there is no layer '%s', nor any other; 'quipu layer add' makes one", name);
    buf_free(&names);
}

/* All versions of a layer, the newest first; NULL after complaining, also when there are none. */
static const struct node **versions_of(struct service *service, struct arena *arena, const char *name,
                                       size_t *count)
{
    const char *path = path_of(arena, LAYERS_PATH "/%s/versions", name, NULL);
    const struct node **versions = service_list(service, arena, request_to("lambda", "GET", path, NULL),
                                                "LayerVersions", "Marker", "NextMarker", count);
    if (versions && !*count) complain_of_layer(service, arena, name);
    return versions && *count ? versions : NULL;
}

const struct node *layer_find(struct service *service, struct arena *arena, const char *text)
{
    struct buf numbers = {0};
    size_t count;
    const char *name = name_of(arena, text), *wanted = version_of(text);
    const struct node **versions = versions_of(service, arena, name, &count);
    if (!versions) return NULL;
    if (!wanted) return versions[0];
    for (size_t i = 0; i < count; i++)
        if (node_is(versions[i], "Version", wanted)) return versions[i];
    put_few(&numbers, versions, count, "Version");
    complain("the layer '%s' has no version %s; it has %.*s", name, wanted, SLICE_ARG(buf_view(&numbers)));
    buf_free(&numbers);
    return NULL;
}

static void put_runtimes(struct buf *out, const struct node *version)
{
    const struct node *runtimes = node_member(version, "CompatibleRuntimes");
    for (const struct node *one = runtimes ? runtimes->first : NULL; one; one = one->next)
        buf_printf(out, "%s%.*s", out->len ? ", " : "", SLICE_ARG(one->text));
}

/* "python3" is whichever the server has. */
static bool runtimes_agree(struct slice of_layer, struct slice of_function)
{
    bool has_version = memchr(of_function.data, '.', of_function.len) != NULL;
    return has_version ? slice_equal(of_layer, of_function) : slice_starts(of_layer, of_function);
}

bool layer_fits(const struct node *version, struct slice runtime)
{
    const struct node *runtimes = node_member(version, "CompatibleRuntimes");
    struct buf list = {0};
    const struct node *one = runtimes ? runtimes->first : NULL;
    if (!one || !runtime.len) return true;
    while (one && !runtimes_agree(one->text, runtime)) one = one->next;
    if (one) return true;
    put_runtimes(&list, version);
    complain("the layer %.*s is for %.*s, not for %.*s",
             SLICE_ARG(layer_shown(node_text(version, "LayerVersionArn"))), SLICE_ARG(buf_view(&list)),
             SLICE_ARG(runtime));
    buf_free(&list);
    return false;
}

/* ---- adding ---- */

/* The archive, or one of the folder. */
static bool read_content(const struct arguments *arguments, const char *path, struct buf *out)
{
    struct stat status;
    if (stat(path, &status) != 0) return complain("%s cannot be found: %s", path, strerror(errno)), false;
    if (S_ISDIR(status.st_mode)) return pack_folder(path, out);
    if (!input_read(path, LIMIT_CODE_BYTES, out)) return false;
    if (out->len < ZIP_LEAST_BYTES || memcmp(out->data, "PK", 2) != 0)
        return complain_of_usage(arguments, "%s is neither a zip archive nor a folder", path), false;
    return true;
}

static void put_publication(struct buf *out, const struct arguments *arguments, struct slice archive)
{
    const char *description = argument_text(arguments, "description");
    buf_byte(out, '{');
    if (description) put_string_member(out, "Description", slice_of(description));
    if (argument_given(arguments, "runtime")) {
        put_name(out, "CompatibleRuntimes");
        buf_byte(out, '[');
        for (size_t i = 0; argument_nth(arguments, "runtime", i); i++) {
            put_comma(out);
            json_put_string(out, slice_of(argument_nth(arguments, "runtime", i)));
        }
        buf_byte(out, ']');
    }
    put_name(out, "Content");
    buf_text(out, "{\"ZipFile\":");
    json_put_base64(out, archive);
    buf_text(out, "}}");
}

/* The mistake that everybody makes once: packages at the top, or all of it in one folder more. */
static void hint_at_places(const char *name, struct slice archive)
{
    static const char *const places[] = {"python/", "nodejs/", "bin/", "lib/", "bootstrap", NULL};
    if (pack_has_any(archive, places)) return;
    fprintf(
        stderr,
        "Nothing in %s is where functions look by themselves: python, nodejs/node_modules, bin and lib at "
        "its top.\nThey find what is there below /opt, by its name.\n",
        name);
}

static int add(const struct arguments *arguments)
{
    const char *name = argument_word(arguments, 0);
    struct service service;
    struct arena arena = {0};
    struct buf archive = {0}, body = {0};
    struct response response;
    int status = EXIT_USAGE;
    if (name_is_sound(slice_of(name), arguments) &&
        read_content(arguments, argument_word(arguments, 1), &archive)) {
        status = EXIT_FAULT;
        put_publication(&body, arguments, buf_view(&archive));
        if (service_open(&service, arguments)) {
            const char *path = path_of(&arena, LAYERS_PATH "/%s/versions", name, NULL);
            struct request request = request_to("lambda", "POST", path, &body);
            request.total_ms = UPLOAD_MS;
            if (service_call(&service, &arena, &request, &response)) {
                printf("%s:%.*s\n", name, SLICE_ARG(node_text(response.json, "Version")));
                hint_at_places(name, buf_view(&archive));
                status = EXIT_FINE;
            }
            service_close(&service);
        }
    }
    buf_free(&archive);
    buf_free(&body);
    arena_free(&arena);
    return status;
}

/* ---- listing ---- */

static void list_one(struct listing *listing, struct arena *arena, const struct node *version,
                     struct slice json)
{
    struct buf runtimes = {0};
    struct slice *row = listing_row(listing, json);
    if (!row) return;
    put_runtimes(&runtimes, version);
    row[0] = layer_shown(node_text(version, "LayerVersionArn"));
    row[1] = runtimes.len ? arena_copy(arena, buf_view(&runtimes)) : SLICE("any");
    row[2] = node_text(version, "CreatedDate");
    if (row[2].len > 19) row[2].len = 19;
    row[3] = node_text(version, "Description");
    buf_free(&runtimes);
}

static int list(const struct arguments *arguments)
{
    static const char *const head[] = {"LAYER", "RUNTIMES", "MADE", "DESCRIPTION"};
    bool of_one = argument_words(arguments) > 0;
    struct service service;
    struct arena arena = {0};
    struct listing listing;
    size_t count;
    if (of_one && !name_is_sound(slice_of(argument_word(arguments, 0)), arguments)) return EXIT_USAGE;
    if (!service_open(&service, arguments)) return EXIT_FAULT;
    const struct node **all = of_one ? versions_of(&service, &arena, argument_word(arguments, 0), &count)
                                     : all_layers(&service, &arena, &count);
    if (all) {
        listing_begin(&listing, form_listed(arguments), head, sizeof head / sizeof *head);
        for (size_t i = 0; i < count; i++)
            list_one(&listing, &arena, of_one ? all[i] : node_member(all[i], "LatestMatchingVersion"),
                     all[i]->source);
        listing_end(&listing, "layers");
    }
    arena_free(&arena);
    service_close(&service);
    return all ? EXIT_FINE : EXIT_FAULT;
}

/* ---- removing ---- */

/* What one word means: a version, or all of them. */
struct removal {
    const char *name;
    const struct node **versions;
    size_t count;
};

static bool removal_find(struct service *service, struct arena *arena, const char *text, struct removal *out)
{
    *out = (struct removal){.name = name_of(arena, text)};
    if (!version_of(text)) {
        out->versions = versions_of(service, arena, out->name, &out->count);
        return out->versions != NULL;
    }
    out->versions = arena_array(arena, const struct node *, 1);
    out->versions[0] = layer_find(service, arena, text);
    out->count = 1;
    return out->versions[0] != NULL;
}

static bool removal_do(struct service *service, struct arena *arena, const struct removal *removal)
{
    for (size_t i = 0; i < removal->count; i++) {
        struct response response;
        struct slice number = node_text(removal->versions[i], "Version");
        const char *path = path_of(arena, LAYERS_PATH "/%s/versions/%s", removal->name,
                                   arena_printf(arena, "%.*s", SLICE_ARG(number)).data);
        struct request request = request_to("lambda", "DELETE", path, NULL);
        if (!service_call(service, arena, &request, &response)) return false;
    }
    return true;
}

static int remove_layers(const struct arguments *arguments)
{
    struct service service;
    struct arena arena = {0};
    size_t count = argument_words(arguments);
    bool fine = true;
    for (size_t i = 0; i < count; i++)
        if (!layer_name_is_sound(argument_word(arguments, i), arguments)) return EXIT_USAGE;
    if (!service_open(&service, arguments)) return EXIT_FAULT;
    struct removal *removals = arena_array(&arena, struct removal, count);
    for (size_t i = 0; fine && i < count; i++) /* all of them first: a wrong one among them removes nothing */
        fine = removal_find(&service, &arena, argument_word(arguments, i), &removals[i]);
    for (size_t i = 0; fine && i < count; i++) fine = removal_do(&service, &arena, &removals[i]);
    arena_free(&arena);
    service_close(&service);
    return fine ? EXIT_FINE : EXIT_FAULT;
}

/* ---- the rows ---- */

static const struct flag list_flags[] = {LIST_FLAGS};
static const struct flag add_flags[] = {
    {"runtime", "NAME", "what it is for, like python3.11; may be given again (default: any)"},
    {"description", "TEXT", "what is in it"},
};

static const struct command children[] = {
    {.name = "add",
     .summary = "make a layer, or a new version of one",
     .usage = "NAME FILE|DIR [flags]",
     .about =
         "Makes a version of a layer from a zip archive or a folder, and prints NAME:VERSION. Functions\n"
         "that have the layer keep the version that they have.\n\n"
         "A function finds its layers at /opt: Python's modules in python, Node's packages in\n"
         "nodejs/node_modules, programs in bin, libraries in lib. These folders stand at the top of the\n"
         "archive or the folder.",
     FLAGS(add_flags),
     .examples = "  pip install requests --target shared/python && quipu layer add shared ./shared\n"
                 "  quipu layer add images images.zip --runtime python3.11 --description 'Pillow 10'\n"
                 "  quipu function add resize --dir ./resize --layer shared --layer images:1",
     .works_on_server = true,
     .words_min = 2,
     .words_max = 2,
     .run = add},
    {.name = "ls",
     .summary = "list the layers, or the versions of one",
     .usage = "[NAME] [flags]",
     .about = "Lists the layers of a server with their newest versions, or all versions of one.",
     FLAGS(list_flags),
     .works_on_server = true,
     .words_max = 1,
     .run = list},
    {.name = "rm",
     .summary = "remove layers, or versions of them",
     .usage = "NAME[:VERSION]... [flags]",
     .about = "Removes a version of a layer, or all of them. Functions that have it keep it. The numbers of\n"
              "removed versions are not used again.",
     .works_on_server = true,
     .words_min = 1,
     .words_max = WORDS_MANY,
     .run = remove_layers},
};

const struct command command_layer = {.name = "layer",
                                      .summary = "make and remove layers: what functions share",
                                      .usage = "add|ls|rm ...",
                                      .about = "Works on the layers of a running server.",
                                      .children = children,
                                      .child_count = sizeof children / sizeof *children};
