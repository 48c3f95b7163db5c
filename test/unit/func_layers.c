/* Layers: merged in their order into folders that functions share, limited, kept for who has them. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "func/archive.h"
#include "func/registry.h"
#include "unit/func_lab.h"

#define FUNCTIONS   "/2015-03-31/functions"
#define LAYERS      "/2018-10-31/layers"
#define ARN         "arn:aws:lambda:us-east-1:000000000000:layer:"
#define COUNT(list) (sizeof(list) / sizeof *(list))

/* ---- helpers ---- */

static const char *layer_body(struct arena *arena, const struct lab_file *files, size_t count,
                              const char *more)
{
    struct buf zip = {0}, body = {0};
    lab_zip(&zip, files, count);
    buf_text(&body, "{\"Content\":{\"ZipFile\":");
    json_put_base64(&body, buf_view(&zip));
    const char *text =
        arena_printf(arena, "%.*s}%s%s}", SLICE_ARG(buf_view(&body)), more ? "," : "", more ? more : "").data;
    buf_free(&zip);
    buf_free(&body);
    return text;
}

static void publish(struct lab *lab, const char *name, const struct lab_file *files, size_t count)
{
    struct arena arena = {0};
    const char *path = arena_printf(&arena, LAYERS "/%s/versions", name).data;
    LAB_EXPECT(lab, "POST", path, layer_body(&arena, files, count, NULL), 201);
    arena_free(&arena);
}

/* "Layers":[...] of names like "a:1 b:2". */
static const char *layers_of(struct arena *arena, const char *names)
{
    struct buf out = {0};
    buf_text(&out, "\"Layers\":[");
    for (const char *end; *names; names = *end ? end + 1 : end) {
        end = strchrnul(names, ' ');
        buf_printf(&out, "%s\"" ARN "%.*s\"", out.len > 10 ? "," : "", (int)(end - names), names);
    }
    buf_byte(&out, ']');
    const char *text = arena_printf(arena, "%.*s", SLICE_ARG(buf_view(&out))).data;
    buf_free(&out);
    return text;
}

static void create(struct lab *lab, const char *name, const char *layers)
{
    struct arena arena = {0};
    const char *more = layers_of(&arena, layers);
    LAB_EXPECT(lab, "POST", FUNCTIONS, lab_create_body(&arena, name, "#!/bin/sh\n", more), 201);
    arena_free(&arena);
}

/* The folder that the function would see at /opt. */
static struct slice opt_of(struct lab *lab, const char *name, struct arena *arena)
{
    bool failed;
    struct entry *entry = registry_look(lab->func->registry, slice_of(name), &failed);
    const struct part *part = entry ? entry_part(entry, SLICE("$LATEST")) : NULL;
    struct slice folder = part && part->function ? part->function->layers : SLICE_NONE;
    folder = arena_printf(arena, "%.*s", SLICE_ARG(folder));
    entry_release(entry);
    return folder;
}

/* What is there: the content of a file, "-> target" of a link, "/" for a folder, "" for nothing. */
static struct slice seen(struct slice folder, const char *name, struct arena *arena)
{
    char text[256];
    struct stat status;
    const char *path = arena_printf(arena, "%.*s/%s", SLICE_ARG(folder), name).data;
    if (lstat(path, &status) != 0) return SLICE("");
    if (S_ISDIR(status.st_mode)) return SLICE("/");
    if (S_ISLNK(status.st_mode)) {
        ssize_t len = readlink(path, text, sizeof text);
        return arena_printf(arena, "-> %.*s", (int)len, text);
    }
    FILE *file = fopen(path, "r");
    size_t len = file ? fread(text, 1, sizeof text, file) : 0;
    if (file) fclose(file);
    return arena_printf(arena, "%.*s", (int)len, text);
}

/* ---- merging ---- */

TEST(layers_later_ones_lie_over_earlier_ones)
{
    struct lab_file first[] = {{"both", "first", 0100644},   {"only/first", "1", 0100644},
                               {"folder/a", "a", 0100644},   {"link", "both", 0120777},
                               {"shut/inner", "x", 0100644}, {"run", "old", 0100755}};
    struct lab_file second[] = {{"both", "second", 0100644},   {"only/second", "2", 0100644},
                                {"folder", "a file", 0100644}, {"link/below", "b", 0100644},
                                {"shut", "both", 0120777},     {"run", "new", 0100755}};
    struct lab lab;
    struct arena arena = {0};
    lab_open(&lab);
    publish(&lab, "one", first, COUNT(first));
    publish(&lab, "two", second, COUNT(second));
    create(&lab, "over", "one:1 two:1");
    struct slice opt = opt_of(&lab, "over", &arena);
    CHECK_TEXT(seen(opt, "both", &arena), "second");
    CHECK_TEXT(seen(opt, "only/first", &arena), "1");
    CHECK_TEXT(seen(opt, "only/second", &arena), "2");
    CHECK_TEXT(seen(opt, "folder", &arena), "a file");
    CHECK_TEXT(seen(opt, "link", &arena), "/"); /* nothing is written through a link of an earlier one */
    CHECK_TEXT(seen(opt, "link/below", &arena), "b");
    CHECK_TEXT(seen(opt, "shut", &arena), "-> both");
    CHECK_TEXT(seen(opt, "run", &arena), "new");
    CHECK(access(arena_printf(&arena, "%.*s/run", SLICE_ARG(opt)).data, X_OK) == 0);
    create(&lab, "under", "two:1 one:1");
    opt = opt_of(&lab, "under", &arena);
    CHECK_TEXT(seen(opt, "both", &arena), "first");
    CHECK_TEXT(seen(opt, "folder", &arena), "/");
    CHECK_TEXT(seen(opt, "folder/a", &arena), "a");
    CHECK_TEXT(seen(opt, "link", &arena), "-> both");
    CHECK_TEXT(seen(opt, "shut/inner", &arena), "x");
    /* The layers themselves are as they were. */
    create(&lab, "alone", "one:1");
    CHECK_TEXT(seen(opt_of(&lab, "alone", &arena), "both", &arena), "first");
    arena_free(&arena);
    lab_close(&lab);
}

TEST(layers_functions_share_the_folder_of_the_same_layers)
{
    struct lab_file files[] = {{"a", "1", 0100644}}, others[] = {{"b", "2", 0100644}};
    struct lab lab;
    struct arena arena = {0};
    lab_open(&lab);
    publish(&lab, "one", files, 1);
    publish(&lab, "two", others, 1);
    create(&lab, "first", "one:1 two:1");
    create(&lab, "second", "one:1 two:1");
    create(&lab, "third", "two:1 one:1");
    create(&lab, "none", "");
    struct slice shared = opt_of(&lab, "first", &arena);
    CHECK(slice_equal(shared, opt_of(&lab, "second", &arena)));
    CHECK(!slice_equal(shared, opt_of(&lab, "third", &arena)));
    CHECK_INT(opt_of(&lab, "none", &arena).len, 0);
    LAB_EXPECT(&lab, "DELETE", FUNCTIONS "/first", NULL, 204);
    CHECK_TEXT(seen(opt_of(&lab, "second", &arena), "a", &arena), "1");
    lab_reopen(&lab); /* which sweeps what nobody has */
    CHECK_TEXT(seen(shared, "a", &arena), "1");
    LAB_EXPECT(&lab, "DELETE", FUNCTIONS "/second", NULL, 204);
    lab_reopen(&lab);
    CHECK_TEXT(seen(shared, "a", &arena), "");
    CHECK_TEXT(seen(opt_of(&lab, "third", &arena), "b", &arena), "2");
    arena_free(&arena);
    lab_close(&lab);
}

/* Also when the folder was lost, and the layer's name is gone: the archive is kept for who has it. */
TEST(layers_that_are_deleted_stay_for_who_has_them)
{
    struct lab_file files[] = {{"a", "1", 0100644}}, others[] = {{"b", "2", 0100644}};
    struct lab lab;
    struct arena arena = {0};
    lab_open(&lab);
    publish(&lab, "one", files, 1);
    publish(&lab, "two", others, 1);
    create(&lab, "f", "one:1 two:1");
    LAB_EXPECT(&lab, "DELETE", LAYERS "/one/versions/1", NULL, 204);
    LAB_EXPECT(&lab, "DELETE", LAYERS "/two/versions/1", NULL, 204);
    CHECK_TEXT(seen(opt_of(&lab, "f", &arena), "a", &arena), "1");
    char command[256];
    snprintf(command, sizeof command, "rm -r %.100s/code/*", lab.folder);
    CHECK_INT(system(command), 0);
    lab_reopen(&lab);
    CHECK_TEXT(seen(opt_of(&lab, "f", &arena), "a", &arena), "1");
    CHECK_TEXT(seen(opt_of(&lab, "f", &arena), "b", &arena), "2");
    /* Who does not have it cannot get it. */
    const char *more = layers_of(&arena, "one:1");
    LAB_REFUSED(&lab, "POST", FUNCTIONS, lab_create_body(&arena, "late", "#!/bin/sh\n", more), 400,
                "InvalidParameterValueException", "Layer version " ARN "one:1 does not exist.");
    arena_free(&arena);
    lab_close(&lab);
}

/* ---- limits ---- */

TEST(layers_are_five_at_most_and_different)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    struct lab lab;
    struct arena arena = {0};
    lab_open(&lab);
    for (size_t i = 0; i < COUNT(names); i++) {
        struct lab_file file = {names[i], names[i], 0100644};
        publish(&lab, names[i], &file, 1);
    }
    publish(&lab, "a", &(struct lab_file){"a", "newer", 0100644}, 1);
    const char *six = layers_of(&arena, "a:1 b:1 c:1 d:1 e:1 f:1"), *twice = layers_of(&arena, "a:1 b:1 a:2");
    LAB_REFUSED(&lab, "POST", FUNCTIONS, lab_create_body(&arena, "f", "x", six), 400,
                "InvalidParameterValueException", "You cannot reference more than 5 layers.");
    LAB_REFUSED(
        &lab, "POST", FUNCTIONS, lab_create_body(&arena, "f", "x", twice), 400,
        "InvalidParameterValueException",
        "Two different versions of the same layer are not allowed to be referenced in the same function.");
    LAB_EXPECT(&lab, "GET", FUNCTIONS "/f", NULL, 404);
    create(&lab, "f", "a:2 b:1 c:1 d:1 e:1");
    for (size_t i = 1; i < LIMIT_LAYERS; i++)
        CHECK_TEXT(seen(opt_of(&lab, "f", &arena), names[i], &arena), names[i]);
    CHECK_TEXT(seen(opt_of(&lab, "f", &arena), "a", &arena), "newer");
    arena_free(&arena);
    lab_close(&lab);
}

/* Sizes are of what is unpacked, of all layers and the function: sparse files stand for large ones. */
TEST(layers_and_code_have_250_mb_together)
{
    struct lab_file one[] = {{"large", "1", 0100644}}, two[] = {{"large", "2", 0100644}};
    struct lab lab;
    struct arena arena = {0};
    lab_open(&lab);
    publish(&lab, "one", one, 1);
    publish(&lab, "two", two, 1);
    create(&lab, "a", "one:1");
    create(&lab, "b", "two:1");
    static const char *const owners[] = {"a", "b"};
    for (size_t i = 0; i < COUNT(owners); i++) {
        struct slice folder = opt_of(&lab, owners[i], &arena);
        CHECK(truncate(arena_printf(&arena, "%.*s/large", SLICE_ARG(folder)).data,
                       LIMIT_UNPACKED_BYTES / 2) == 0);
        CHECK_INT(layer_size(folder), LIMIT_UNPACKED_BYTES / 2);
    }
    const char *both = layers_of(&arena, "one:1 two:1");
    struct answer got = lab_send(&lab, "POST", FUNCTIONS, lab_create_body(&arena, "f", "x", both), NULL);
    CHECK_INT(got.status, 400); /* its bootstrap has one byte */
    CHECK_TEXT(answer_text(&got, "message"),
               "Function code combined with layers exceeds the maximum allowed size of 262144000 bytes. The "
               "actual size is 262144001 bytes.");
    answer_free(&got);
    LAB_EXPECT(&lab, "GET", FUNCTIONS "/f", NULL, 404);
    LAB_EXPECT(&lab, "PUT", FUNCTIONS "/a/configuration", arena_printf(&arena, "{%s}", both).data, 400);
    CHECK_INT(layer_size(opt_of(&lab, "a", &arena)), LIMIT_UNPACKED_BYTES / 2); /* it has what it had */
    arena_free(&arena);
    lab_close(&lab);
}

/* ---- strangers' archives ---- */

TEST(layers_whose_names_or_links_lead_out_are_refused)
{
    static const struct lab_file hostile[] = {
        {"../outside", "x", 0100644},           {"/outside", "x", 0100644},
        {"python/../../outside", "x", 0100644}, {"python", "/etc", 0120777},
        {"lib/link", "../../code", 0120777},    {"link", "python/../..", 0120777},
    };
    struct lab lab;
    struct arena arena = {0};
    lab_open(&lab);
    for (size_t i = 0; i < COUNT(hostile); i++) {
        struct lab_file files[] = {{"python/fine.py", "x", 0100644}, hostile[i]};
        struct answer got = lab_send(&lab, "POST", LAYERS "/bad/versions", layer_body(&arena, files, 2, NULL),
                                     NULL);
        if (got.status != 400) test_failed(__FILE__, __LINE__, "%s: %d", hostile[i].name, got.status);
        CHECK(slice_starts(answer_text(&got, "message"), SLICE("Could not unzip uploaded file.")));
        answer_free(&got);
    }
    struct answer got = lab_send(&lab, "GET", LAYERS, NULL, NULL);
    CHECK_TEXT(answer_member(&got, "Layers"), "[]");
    answer_free(&got);
    char command[256];
    snprintf(command, sizeof command, "test -z \"$(find %.100s/code -mindepth 1)\"", lab.folder);
    CHECK_INT(system(command), 0);
    arena_free(&arena);
    lab_close(&lab);
}

TEST(layers_are_for_runtimes_that_there_are)
{
    struct lab_file file = {"a", "1", 0100644};
    struct lab lab;
    struct arena arena = {0};
    lab_open(&lab);
    const char *fine = "\"CompatibleRuntimes\":[\"python3.11\",\"java21\",\"nodejs22.x\",\"ruby3.4\"]";
    LAB_EXPECT(&lab, "POST", LAYERS "/l/versions", layer_body(&arena, &file, 1, fine), 201);
    const char *wrong = "\"CompatibleRuntimes\":[\"python3.11\",\"cobol\"]";
    struct answer got = lab_send(&lab, "POST", LAYERS "/l/versions", layer_body(&arena, &file, 1, wrong),
                                 NULL);
    CHECK_INT(got.status, 400);
    CHECK(slice_starts(answer_text(&got, "message"),
                       SLICE("Value cobol at 'compatibleRuntimes' failed to satisfy constraint")));
    answer_free(&got);
    LAB_EXPECT(&lab, "GET", LAYERS "/l/versions/2", NULL, 404);
    arena_free(&arena);
    lab_close(&lab);
}
