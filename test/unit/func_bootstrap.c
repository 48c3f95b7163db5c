/* Runtimes' names, commands for them, and the programs that are written into the folder. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "func/internal.h"
#include "unit/test.h"

/* A folder of its own, with an empty PATH that leads to its part "bin". */
struct place {
    char folder[64], before[4096];
    struct arena arena;
    struct func func;
    struct function function;
    char error[512];
};

static const char *place_path(struct place *place, const char *name)
{
    return arena_printf(&place->arena, "%s/%s", place->folder, name).data;
}

static void place_open(struct place *place, const char *runtime)
{
    memset(place, 0, sizeof *place);
    strcpy(place->folder, "/tmp/quipu-bootstrap-XXXXXX");
    ensure(mkdtemp(place->folder));
    ensure(mkdir(place_path(place, "bin"), 0777) == 0);
    snprintf(place->before, sizeof place->before, "%s", getenv("PATH") ? getenv("PATH") : "");
    setenv("PATH", place_path(place, "bin"), 1);
    place->func.options.folder = place->folder;
    place->function.runtime = slice_of(runtime);
    place->function.folder = slice_of(place->folder);
    place->function.memory_mb = 200;
}

static void place_close(struct place *place)
{
    setenv("PATH", place->before, 1);
    char command[200];
    snprintf(command, sizeof command, "rm -r '%s'", place->folder);
    CHECK(system(command) == 0);
    arena_free(&place->arena);
}

static void place_put(struct place *place, const char *name, mode_t mode)
{
    int file = open(place_path(place, name), O_CREAT | O_WRONLY, mode);
    ensure(file >= 0 && fchmod(file, mode) == 0);
    close(file);
}

static void place_write(struct place *place, const char *name, const char *text)
{
    FILE *file = fopen(place_path(place, name), "w");
    ensure(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static const char *const *place_command(struct place *place)
{
    place->error[0] = 0;
    return bootstrap_command(&place->func, &place->function, &place->arena, place->error,
                             sizeof place->error);
}

static void check_refused(struct place *place, const char *words)
{
    CHECK(place_command(place) == NULL);
    if (!strstr(place->error, words)) CHECK_TEXT(slice_of(place->error), words);
}

TEST(runtimes_are_known_by_their_language)
{
    static const char *const known[] = {"nodejs20.x", "nodejs18.x",   "python3.8",       "python3.11",
                                        "provided",   "provided.al2", "provided.al2023", "nodejs24.x"};
    static const char *const unknown[] = {"",      "node20",       "python2.7",  "ruby3.2",     "java21",
                                          "go1.x", "dotnet8",      "nodejs20/x", "python3.11 ", "Python3.11",
                                          "rust1", "nodejs20.x;rm"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) CHECK(runtime_is_known(slice_of(known[i])));
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        CHECK(!runtime_is_known(slice_of(unknown[i])));
    CHECK(runtime_is_concurrent(SLICE("nodejs20.x")));
    CHECK(runtime_is_concurrent(SLICE("python3.11")));
    CHECK(!runtime_is_concurrent(SLICE("provided.al2023")));
    CHECK(!runtime_is_concurrent(SLICE("java21")));
}

TEST(a_bootstrap_of_the_function_must_be_there_and_executable)
{
    struct place place;
    place_open(&place, "provided.al2023");
    check_refused(&place, "Couldn't find valid bootstrap(s): [");
    ensure(mkdir(place_path(&place, "bootstrap"), 0777) == 0);
    check_refused(&place, "Couldn't find valid bootstrap(s): [");
    ensure(rmdir(place_path(&place, "bootstrap")) == 0);
    place_put(&place, "bootstrap", 0644);
    check_refused(&place, "bootstrap is there but not executable: chmod +x ");
    place_put(&place, "bootstrap", 0755);
    const char *const *command = place_command(&place);
    CHECK(command && strcmp(command[0], place_path(&place, "bootstrap")) == 0 && !command[1]);
    place_close(&place);
}

TEST(an_interpreter_is_found_on_the_path)
{
    struct place place;
    place_open(&place, "python3.11");
    check_refused(&place,
                  "There is no Python on this machine: python3.11 needs 'python3' on the server's PATH");
    place_put(&place, "bin/python3", 0644); /* not one that can be run */
    ensure(mkdir(place_path(&place, "bin/python3.11"), 0777) == 0);
    check_refused(&place, "There is no Python on this machine");
    place_put(&place, "bin/python3", 0755);
    const char *const *command = place_command(&place);
    CHECK(command && strcmp(command[0], place_path(&place, "bin/python3")) == 0);
    CHECK(command && strcmp(command[1], place_path(&place, "runtime/python.py")) == 0 && !command[2]);
    ensure(rmdir(place_path(&place, "bin/python3.11")) == 0);
    place_put(&place, "bin/python3.11", 0755); /* just that version comes first */
    command = place_command(&place);
    CHECK(command && strcmp(command[0], place_path(&place, "bin/python3.11")) == 0);
    place_close(&place);
}

TEST(a_script_of_a_version_manager_is_no_interpreter_of_its_version)
{
    struct place place;
    place_open(&place, "python3.12");
    place_put(&place, "bin/python3.12", 0755);
    place_write(&place, "bin/python3.12", "#!/bin/sh\nexit 127\n"); /* it knows the version, and has it not */
    check_refused(&place, "There is no Python on this machine");
    place_put(&place, "bin/python3", 0755);
    place_write(&place, "bin/python3", "#!/bin/sh\nexec the-one-that-is-switched-on\n");
    const char *const *command = place_command(&place);
    CHECK(command && strcmp(command[0], place_path(&place, "bin/python3")) == 0);
    place_write(&place, "bin/python3.12", "\177ELF"); /* a real one is taken */
    command = place_command(&place);
    CHECK(command && strcmp(command[0], place_path(&place, "bin/python3.12")) == 0);
    place_close(&place);
}

TEST(a_folder_that_is_gone_is_named)
{
    struct place place;
    place_open(&place, "python3.11");
    place_put(&place, "bin/python3", 0755);
    place.function.in_place = true;
    CHECK(place_command(&place) != NULL);
    place.function.folder = slice_of(place_path(&place, "gone"));
    check_refused(&place, "/gone cannot be entered: No such file or directory");
    place.function.in_place = false;
    check_refused(&place, "No such file or directory; the server unpacks it again when it is restarted");
    place_close(&place);
}

TEST(node_gets_most_of_the_memory)
{
    struct place place;
    place_open(&place, "nodejs20.x");
    check_refused(&place, "There is no Node.js on this machine");
    place_put(&place, "bin/nodejs", 0755); /* as some systems call it */
    const char *const *command = place_command(&place);
    CHECK(command && strcmp(command[0], place_path(&place, "bin/nodejs")) == 0);
    CHECK(command && strcmp(command[1], "--max-old-space-size=180") == 0);
    CHECK(command && strcmp(command[2], place_path(&place, "runtime/node.mjs")) == 0 && !command[3]);
    place_close(&place);
}

TEST(the_path_may_have_strange_parts)
{
    struct place place;
    place_open(&place, "nodejs20.x");
    place_put(&place, "bin/node", 0755);
    char path[200];
    snprintf(path, sizeof path, "::relative/bin:/no/such/folder:%s/bin:", place.folder);
    setenv("PATH", path, 1);
    CHECK(place_command(&place) != NULL);
    setenv("PATH", "", 1); /* the usual places */
    place_command(&place);
    CHECK(place.error[0] == 0 || strstr(place.error, "There is no Node.js"));
    place_close(&place);
}

TEST(other_runtimes_are_refused_with_a_way_out)
{
    struct place place;
    place_open(&place, "ruby3.2");
    check_refused(&place,
                  "ruby3.2 functions cannot run here: the runtimes are nodejs*, python3* and provided*");
    place.function.runtime = SLICE("cobol");
    check_refused(&place, "cobol functions cannot run here");
    place_close(&place);
}

TEST(a_relative_folder_becomes_absolute)
{
    struct place place;
    char here[4096];
    place_open(&place, "nodejs20.x");
    place_put(&place, "bin/node", 0755);
    ensure(getcwd(here, sizeof here) && chdir(place.folder) == 0);
    ensure(mkdir("data", 0777) == 0);
    place.func.options.folder = "data";
    const char *const *command = place_command(&place);
    CHECK(command && strcmp(command[2], place_path(&place, "data/runtime/node.mjs")) == 0);
    place.func.options.folder = "gone";
    check_refused(&place, "the folder gone is gone");
    ensure(chdir(here) == 0);
    place_close(&place);
}

/* ---- files ---- */

static struct timespec modified(const char *path)
{
    struct stat status = {0};
    CHECK(stat(path, &status) == 0);
    return status.st_mtim;
}

static bool file_contains(const char *path, const char *words)
{
    static char room[200000];
    FILE *file = fopen(path, "r");
    if (!file) return false;
    size_t len = fread(room, 1, sizeof room, file);
    fclose(file);
    return slice_contains((struct slice){room, len}, slice_of(words));
}

TEST(programs_are_written_when_they_differ)
{
    struct place place;
    place_open(&place, "nodejs20.x");
    CHECK(bootstrap_install(place.folder, place.error, sizeof place.error));
    const char *node = place_path(&place, "runtime/node.mjs"),
               *python = place_path(&place, "runtime/python.py");
    CHECK(file_contains(node, "class HttpResponseStream"));
    CHECK(file_contains(python, "class LambdaContext"));
    struct timespec old = {.tv_sec = 1000}, times[2] = {old, old};
    utimensat(AT_FDCWD, node, times, 0);
    utimensat(AT_FDCWD, python, times, 0);
    CHECK(truncate(python, 100) == 0);
    utimensat(AT_FDCWD, python, times, 0);
    CHECK(bootstrap_install(place.folder, place.error, sizeof place.error));
    CHECK_INT(modified(node).tv_sec, 1000); /* it was as it should be */
    CHECK(modified(python).tv_sec != 1000);
    CHECK(file_contains(python, "class LambdaContext"));
    place_close(&place);
}

TEST(a_folder_that_cannot_be_written_is_told)
{
    struct place place;
    place_open(&place, "nodejs20.x");
    place_put(&place, "runtime", 0644);
    CHECK(!bootstrap_install(place.folder, place.error, sizeof place.error));
    CHECK(strstr(place.error, "the runtimes' programs cannot be written to") != NULL);
    CHECK(!bootstrap_install("/no/such/folder", place.error, sizeof place.error));
    place_close(&place);
}
