/* Archives: unpacked whole or not at all, and never outside their folder. */
#include "func/archive.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "unit/func_lab.h"

static char place[128], folder[192], error[512];

static void place_make_below(const char *above)
{
    snprintf(place, sizeof place, "%s/quipu-archive-XXXXXX", above);
    CHECK(mkdtemp(place) != NULL);
    snprintf(folder, sizeof folder, "%s/code/unpacked", place);
}

static void place_make(void)
{
    place_make_below("/tmp");
}

static enum archive_end unpack(const struct lab_file *files, size_t count)
{
    struct buf zip = {0};
    lab_zip(&zip, files, count);
    enum archive_end end = archive_unpack(buf_view(&zip), folder, error, sizeof error);
    buf_free(&zip);
    return end;
}

static unsigned mode_of(const char *name)
{
    char path[256];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return lstat(path, &status) == 0 ? status.st_mode : 0;
}

/* True when nothing but empty folders is left where archives are unpacked. */
static bool nothing_is_left(void)
{
    char command[256];
    snprintf(command, sizeof command, "test -z \"$(find %s -mindepth 2)\"", place);
    return system(command) == 0;
}

TEST(archive_keeps_modes_and_folders)
{
    struct lab_file files[] = {{"bootstrap", "#!/bin/sh\n", 0100755},
                               {"lib/", "", 040755},
                               {"lib/deep/data.txt", "data", 0100600},
                               {"lib/run", "x", 0100700}};
    place_make();
    CHECK_INT(unpack(files, 4), ARCHIVE_UNPACKED);
    CHECK_INT(mode_of("bootstrap"), 0100755);
    CHECK_INT(mode_of("lib/deep/data.txt"), 0100644); /* whoever runs it can read it */
    CHECK_INT(mode_of("lib/run"), 0100744);
    CHECK(S_ISDIR(mode_of("lib")));
    CHECK_INT(unpack(files, 4), ARCHIVE_UNPACKED); /* it is there already */
    archive_remove(place);
    CHECK(access(place, F_OK) != 0);
}

TEST(archive_without_modes_has_an_executable_bootstrap)
{
    struct lab_file files[] = {{"bootstrap", "#!/bin/sh\n", 0}, {"data.txt", "data", 0}};
    place_make();
    CHECK_INT(unpack(files, 2), ARCHIVE_UNPACKED);
    CHECK_INT(mode_of("bootstrap"), 0100755);
    CHECK_INT(mode_of("data.txt"), 0100644);
    archive_remove(place);
}

TEST(archive_links_inside_are_made)
{
    struct lab_file files[] = {{"bin/tool", "../lib/tool", 0120777}, {"lib/tool", "x", 0100755}};
    place_make();
    CHECK_INT(unpack(files, 2), ARCHIVE_UNPACKED);
    CHECK(S_ISLNK(mode_of("bin/tool")));
    archive_remove(place);
}

TEST(archive_names_that_lead_out_are_refused)
{
    static const struct lab_file hostile[] = {
        {"../outside", "x", 0100644},
        {"/etc/outside", "x", 0100644},
        {"a/../../outside", "x", 0100644},
        {"a//b", "x", 0100644},
        {"./a", "x", 0100644},
        {"link", "/etc/passwd", 0120777},
        {"link", "../outside", 0120777},
        {"a/link", "../../outside", 0120777},
        {"a/link", "b/../x", 0120777},
        {"link", "", 0120777},
    };
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        struct lab_file files[] = {{"bootstrap", "x", 0100755}, hostile[i]};
        place_make();
        enum archive_end end = unpack(files, 2);
        if (end != ARCHIVE_BAD) test_failed(__FILE__, __LINE__, "%s: %d", hostile[i].name, end);
        CHECK(nothing_is_left());
        archive_remove(place);
    }
}

/* What functions share is not for others to write, whatever the archive says of it. */
TEST(archive_files_can_be_written_by_their_owner_only)
{
    struct lab_file files[] = {{"all", "x", 0100777}, {"group", "x", 0100664}, {"set", "x", 0104755}};
    place_make();
    CHECK_INT(unpack(files, 3), ARCHIVE_UNPACKED);
    CHECK_INT(mode_of("all"), 0100755);
    CHECK_INT(mode_of("group"), 0100644);
    CHECK_INT(mode_of("set"), 0100755);
    archive_remove(place);
}

/* "d/d/d/file", as deep as that; and a digit in front, so that each is a folder of its own. */
static void put_deep_name(struct buf *out, size_t number, size_t depth)
{
    buf_printf(out, "%zu", number);
    for (size_t i = 1; i < depth; i++) buf_text(out, "/d");
    buf_byte(out, 0);
}

TEST(archive_names_are_not_too_deep)
{
    struct buf deep = {0}, deeper = {0};
    put_deep_name(&deep, 1, LIMIT_CODE_DEPTH);
    put_deep_name(&deeper, 2, LIMIT_CODE_DEPTH + 1);
    place_make();
    CHECK_INT(unpack(&(struct lab_file){deeper.data, "x", 0100644}, 1), ARCHIVE_BAD);
    CHECK(nothing_is_left());
    CHECK_INT(unpack(&(struct lab_file){deep.data, "x", 0100644}, 1), ARCHIVE_UNPACKED);
    archive_remove(place);
    buf_free(&deep);
    buf_free(&deeper);
}

/* A small archive must not fill the disk with folders. */
TEST(archive_folders_are_counted)
{
    enum { COUNT = LIMIT_CODE_FOLDERS / (LIMIT_CODE_DEPTH - 1) + 2 };
    static struct lab_file files[COUNT];
    static struct buf names[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        put_deep_name(&names[i], i, LIMIT_CODE_DEPTH);
        files[i] = (struct lab_file){names[i].data, "", 0100644};
    }
    place_make_below(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"); /* in memory it is quick */
    CHECK_INT(unpack(files, COUNT), ARCHIVE_BAD);
    CHECK(strstr(error, "too many folders"));
    CHECK(nothing_is_left());
    archive_remove(place);
    for (size_t i = 0; i < COUNT; i++) buf_free(&names[i]);
}

TEST(archive_links_are_not_cut_off)
{
    char target[2000];
    memset(target, 'a', sizeof target - 1);
    for (size_t i = 100; i < sizeof target; i += 100) target[i] = '/';
    target[sizeof target - 1] = 0;
    place_make();
    CHECK_INT(unpack(&(struct lab_file){"link", target, 0120777}, 1), ARCHIVE_BAD);
    CHECK(nothing_is_left());
    archive_remove(place);
}

TEST(archive_files_are_not_written_through_links)
{
    struct lab_file files[] = {{"lib", "other", 0120777}, {"lib/file", "x", 0100644}};
    struct lab_file links[] = {{"other/x", "x", 0100644}, {"a", "other", 0120777}, {"a/b", "other", 0120777}};
    place_make();
    CHECK_INT(unpack(files, 2), ARCHIVE_BAD); /* the file makes a folder where the link should be */
    CHECK_INT(unpack(links, 3), ARCHIVE_BAD);
    CHECK(nothing_is_left());
    archive_remove(place);
}

TEST(archive_that_is_none_is_refused)
{
    static const struct slice texts[] = {{"", 0}, {"hello", 5}, {"PK\3\4 broken", 11}};
    struct lab_file file = {"bootstrap", "content that has a checksum", 0100755};
    struct buf zip = {0};
    place_make();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        CHECK_INT(archive_unpack(texts[i], folder, error, sizeof error), ARCHIVE_BAD);
    lab_zip(&zip, &file, 1);
    zip.data[40] ^= 1; /* a byte of the content */
    CHECK_INT(archive_unpack(buf_view(&zip), folder, error, sizeof error), ARCHIVE_BAD);
    for (size_t len = 1; len < zip.len; len++)
        CHECK_INT(archive_unpack((struct slice){zip.data, len}, folder, error, sizeof error), ARCHIVE_BAD);
    CHECK(nothing_is_left());
    buf_free(&zip);
    archive_remove(place);
}

TEST(archive_links_are_judged_by_where_they_lead)
{
    CHECK(archive_link_is_inside(SLICE("a/b/link"), SLICE("../../x")));
    CHECK(archive_link_is_inside(SLICE("link"), SLICE("x/y")));
    CHECK(archive_link_is_inside(SLICE("a/link"), SLICE("./../x")));
    CHECK(!archive_link_is_inside(SLICE("a/link"), SLICE("../../x")));
    CHECK(!archive_link_is_inside(SLICE("a/b/link"), SLICE("x/../y")));
    CHECK(!archive_link_is_inside(SLICE("link"), SLICE("/x")));
    CHECK(archive_name_is_sound(SLICE("a/b.c/..d")));
    CHECK(!archive_name_is_sound(SLICE("a/..")));
    CHECK(!archive_name_is_sound((struct slice){"a\0b", 3}));
}
