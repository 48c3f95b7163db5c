/* Buckets as folders: keys as paths, and nothing outside. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transfer/buckets.h"
#include "unit/test.h"

struct place {
    char path[64];
    struct buckets *buckets;
    struct transfer_failure failure;
};

static struct place place_make(void)
{
    struct place place = {.path = "/tmp/quipu-unit-XXXXXX"};
    char bucket[100];
    CHECK(mkdtemp(place.path));
    snprintf(bucket, sizeof bucket, "%s/s3", place.path);
    CHECK(mkdir(bucket, 0700) == 0);
    place.buckets = buckets_open_folder(bucket);
    snprintf(bucket, sizeof bucket, "%s/s3/photos", place.path);
    CHECK(mkdir(bucket, 0700) == 0);
    return place;
}

static void place_remove(struct place *place)
{
    char command[100];
    buckets_close(place->buckets);
    snprintf(command, sizeof command, "rm -rf %s", place->path);
    CHECK(system(command) == 0);
}

static bool put(struct place *place, const char *key, const char *text)
{
    place->failure.code = NULL;
    return buckets_put(place->buckets, SLICE("photos"), slice_of(key), slice_of(text), &place->failure);
}

static void check_list(struct place *place, const char *prefix, const char *expected)
{
    struct bucket_list list = {0};
    struct buf out = {0};
    CHECK(buckets_list(place->buckets, SLICE("photos"), slice_of(prefix), &list, &place->failure));
    for (uint32_t i = 0; i < list.count; i++)
        buf_printf(&out, "%.*s:%d ", SLICE_ARG(list.objects[i].key), (int)list.objects[i].bytes);
    CHECK_TEXT(buf_view(&out), expected);
    buf_free(&out);
    bucket_list_free(&list);
}

TEST(objects_are_put_listed_and_read)
{
    struct place place = place_make();
    CHECK(put(&place, "a/b/one", "1") && put(&place, "a/b/two", "22") && put(&place, "a-b", "333"));
    CHECK(put(&place, "a/b/one", "4444"));
    check_list(&place, "", "a-b:3 a/b/one:4 a/b/two:2 ");
    check_list(&place, "a/", "a/b/one:4 a/b/two:2 ");
    check_list(&place, "a/b/o", "a/b/one:4 ");
    check_list(&place, "a/b/one/more", "");
    check_list(&place, "../", "");
    struct bucket_object object = {SLICE("a/b/one"), 4};
    struct transfer_source *source = buckets_open(place.buckets, SLICE("photos"), &object, &place.failure);
    char text[10];
    CHECK(source);
    CHECK_INT(source->read(source, text, sizeof text), 4);
    CHECK_TEXT(((struct slice){text, 4}), "4444");
    CHECK_INT(source->read(source, text, sizeof text), 0);
    source->close(source);
    place_remove(&place);
}

TEST(a_bucket_that_is_no_folder_does_not_exist)
{
    struct place place = place_make();
    static const char *const names[] = {"other", "..", ".",       "photos/..",   "-x",
                                        "a",     "",   "photos/", "../s3/photos"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        place.failure.code = NULL;
        CHECK(!buckets_exist(place.buckets, slice_of(names[i]), &place.failure));
        CHECK(place.failure.code && strcmp(place.failure.code, "S3NoSuchBucket") == 0);
    }
    CHECK(buckets_exist(place.buckets, SLICE("photos"), &place.failure));
    place_remove(&place);
}

TEST(without_a_folder_no_bucket_exists)
{
    struct transfer_failure failure = {0};
    struct buckets *buckets = buckets_open_folder(NULL);
    CHECK(!buckets_exist(buckets, SLICE("photos"), &failure) && strcmp(failure.code, "S3NoSuchBucket") == 0);
    buckets_close(buckets);
}

static void check_fault(const char *key, const char *words)
{
    struct transfer_failure failure = {0};
    CHECK(!bucket_key_check(slice_of(key), &failure));
    CHECK_TEXT(slice_of(failure.code), "S3InvalidKey");
    CHECK_TEXT(slice_of(failure.message), words);
}

TEST(a_key_that_is_refused_is_told_why)
{
    char name[1100];
    memset(name, 'a', sizeof name);
    name[1025] = 0;
    check_fault(name, "A key is at most 1024 bytes long");
    name[256] = 0;
    check_fault(name, "A name in a key is at most 255 bytes long");
    for (int i = 0; i < 128; i += 2) name[i + 1] = '/';
    name[129] = 0;
    check_fault(name, "A key has at most 64 names with a '/' between them");
    check_fault("a/../b", "A name in a key is not empty, is not '.' or '..', does not begin with '.quipu-' and "
                          "has no NUL");
}

TEST(no_key_leads_out_of_its_bucket)
{
    struct place place = place_make();
    static const char *const keys[] = {"../x",  "a/../../x", "..", "/etc/x",     "a//b", "a/",
                                       "a/./b", ".",         "",   ".quipu-x/y", "/",    "a/.."};
    char path[200], *home = place.path;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct bucket_object object = {slice_of(keys[i]), 1};
        if (put(&place, keys[i], "x")) test_failed(__FILE__, __LINE__, "put %s", keys[i]);
        CHECK(!buckets_open(place.buckets, SLICE("photos"), &object, &place.failure));
    }
    CHECK(!bucket_key_check(SLICE("a\0b"), &place.failure));
    check_list(&place, "", "");

    /* Nor does a link that somebody has put there: not as a folder, not as an object. */
    snprintf(path, sizeof path, "%s/s3/photos/link", home);
    CHECK(symlink(home, path) == 0);
    snprintf(path, sizeof path, "%s/secret", home);
    FILE *secret = fopen(path, "w");
    CHECK(secret && fputs("secret", secret) > 0 && fclose(secret) == 0);
    char other[200];
    snprintf(other, sizeof other, "%s/s3/photos/file", home);
    CHECK(symlink(path, other) == 0);
    CHECK(!put(&place, "link/x", "x"));
    struct bucket_object through = {SLICE("link/secret"), 6}, file = {SLICE("file"), 6};
    CHECK(!buckets_open(place.buckets, SLICE("photos"), &through, &place.failure));
    CHECK(!buckets_open(place.buckets, SLICE("photos"), &file, &place.failure));
    check_list(&place, "", "");
    place_remove(&place);
}
