/* Archives of folders: what is in them, and that reading a list of entries never leaves the bytes. */
#include "cli/pack.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "unit/test.h"

static char place[64];

static const char *at(struct arena *arena, const char *name)
{
    return arena_printf(arena, "%s/%s", place, name).data;
}

static void put_file(struct arena *arena, const char *name, const char *text)
{
    FILE *file = fopen(at(arena, name), "w");
    CHECK(file != NULL);
    if (!file) return;
    fputs(text, file);
    fclose(file);
}

static void place_make(struct arena *arena)
{
    snprintf(place, sizeof place, "/tmp/quipu-pack-XXXXXX");
    CHECK(mkdtemp(place) != NULL);
    CHECK(mkdir(at(arena, "python"), 0755) == 0);
    put_file(arena, "python/a.py", "print('a')\n");
    put_file(arena, "zzz", "");
    CHECK(symlink("python/a.py", at(arena, "link")) == 0);
}

static void place_remove(struct arena *arena)
{
    unlink(at(arena, "python/a.py"));
    unlink(at(arena, "zzz"));
    unlink(at(arena, "link"));
    CHECK(rmdir(at(arena, "python")) == 0 && rmdir(place) == 0);
}

static bool has(const struct buf *archive, const char *start)
{
    return pack_has_any(buf_view(archive), (const char *const[]){start, NULL});
}

TEST(pack_has_all_of_a_folder)
{
    struct arena arena = {0};
    struct buf archive = {0}, again = {0};
    place_make(&arena);
    CHECK(pack_folder(place, &archive));
    CHECK(has(&archive, "python/") && has(&archive, "python/a.py") && has(&archive, "link") &&
          has(&archive, "zzz"));
    CHECK(!has(&archive, "a.py") && !has(&archive, "python/a.pyc") && !has(&archive, "nodejs/"));
    buf_text(&again, "before"); /* what is there already stays */
    CHECK(pack_folder(place, &again));
    CHECK(slice_equal(slice_from(buf_view(&again), 6), buf_view(&archive)));
    buf_free(&archive);
    buf_free(&again);
    place_remove(&arena);
    arena_free(&arena);
}

TEST(pack_refuses_a_folder_with_nothing_in_it)
{
    struct buf archive = {0};
    char folder[] = "/tmp/quipu-pack-XXXXXX";
    CHECK(mkdtemp(folder) != NULL);
    CHECK(!pack_folder(folder, &archive));
    CHECK(rmdir(folder) == 0);
    CHECK(!pack_folder(folder, &archive)); /* nor one that is not there */
    buf_free(&archive);
}

TEST(pack_patterns_fit_whole_names)
{
    static const struct {
        const char *pattern, *name;
        bool fits;
    } cases[] = {
        {"a.js", "a.js", true},
        {"a.js", "a.jsx", false},
        {"*.js", "a.js", true},
        {"*.js", "b/a.js", false},
        {"**/*.js", "a.js", true},
        {"**/*.js", "b/c/a.js", true},
        {"b/**", "b/c/a.js", true},
        {"b/**", "bc/a.js", false},
        {"**", "b/a", true},
        {"?.js", "a.js", true},
        {"b?a", "b/a", false},
        {"{a,b}/*", "b/x", true},
        {"{a,b}/*", "c/x", false},
        {"{a", "{a", true},
        {"", "", true},
        {"*", "", true},
        {"a*b*c", "a1b2c", true},
        {"a*b*c", "a1b2", false},
        {"**/x/**", "x/y", true},
        {"{a,b/**}.{js,ts}", "b/c.ts", true},
    };
    bool is_endless;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK(pack_fits(slice_of(cases[i].pattern), slice_of(cases[i].name), &is_endless) == cases[i].fits);
        CHECK(!is_endless);
    }
}

TEST(pack_patterns_have_an_end)
{
    struct slice name = SLICE("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    bool is_endless;
    CHECK(!pack_fits(SLICE("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*ab"), name, &is_endless));
    CHECK(is_endless);
    struct buf stars = {0};
    for (int i = 0; i < 1000000; i++) buf_byte(&stars, '*');
    CHECK(!pack_fits(buf_view(&stars), name, &is_endless));
    CHECK(is_endless);
    buf_free(&stars);
}

/* Lists that are cut off, or whose numbers lead elsewhere: nothing is said of them. */
TEST(pack_reads_no_list_beyond_the_archive)
{
    struct arena arena = {0};
    struct buf archive = {0};
    place_make(&arena);
    CHECK(pack_folder(place, &archive));
    for (size_t len = 0; len < archive.len; len++) {
        struct buf cut = {0};
        buf_put(&cut, archive.data, len); /* of its own, so that a sanitizer sees who reads on */
        CHECK(has(&cut, "nothing"));
        buf_free(&cut);
    }
    for (size_t i = 0; i < archive.len; i++)
        for (int bit = 0; bit < 8; bit++) {
            archive.data[i] = (char)(archive.data[i] ^ 1 << bit);
            (void)has(&archive, "nothing");
            archive.data[i] = (char)(archive.data[i] ^ 1 << bit);
        }
    CHECK(!has(&archive, "nothing"));
    buf_free(&archive);
    place_remove(&arena);
    arena_free(&arena);
}
