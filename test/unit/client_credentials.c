/* Keys and regions by AWS's variables and files. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/internal.h"
#include "unit/test.h"

/* ---- profiles ---- */

static const char shared_text[] = "# comment\n"
                                  "[default]\n"
                                  "aws_access_key_id = AKDEFAULT\n"
                                  "aws_secret_access_key=secret/default+1 \r\n"
                                  "\n"
                                  "[ work ]\n"
                                  "aws_access_key_id = AKWORK ; why\n"
                                  "aws_secret_access_key = se#cret\n"
                                  "aws_session_token = dG9rZW4==\n"
                                  "[half]\n"
                                  "aws_access_key_id = AKHALF\n";

static const char config_text[] = "[default]\n"
                                  "region = eu-west-1\n"
                                  "s3 =\n"
                                  "  region = nested-1\n"
                                  "[profile work]\n"
                                  "region = ap-south-1\n"
                                  "[profile   only]\n"
                                  "aws_access_key_id = AKONLY\n"
                                  "aws_secret_access_key = secret\n"
                                  "[profile role]\n"
                                  "role_arn = arn:aws:iam::1:role/x\n"
                                  "[bare]\n"
                                  "region = never\n"
                                  "[sso-session work]\n"
                                  "sso_region = us-east-1\n";

TEST(a_profile_of_the_credentials_file)
{
    struct profile profile;
    CHECK(profile_find(slice_of(shared_text), SLICE("default"), false, &profile));
    CHECK_TEXT(profile.access_key, "AKDEFAULT");
    CHECK_TEXT(profile.secret_key, "secret/default+1");
    CHECK_TEXT(profile.session_token, "");
    CHECK(profile_find(slice_of(shared_text), SLICE("work"), false, &profile));
    CHECK_TEXT(profile.access_key, "AKWORK");
    CHECK_TEXT(profile.secret_key, "se#cret");
    CHECK_TEXT(profile.session_token, "dG9rZW4==");
    CHECK(!profile_find(slice_of(shared_text), SLICE("wor"), false, &profile));
    CHECK(!profile_find(SLICE(""), SLICE("default"), false, &profile));
    CHECK(!profile_find(SLICE("[default\nx"), SLICE("default"), false, &profile));
}

TEST(a_profile_of_the_config_file)
{
    struct profile profile;
    CHECK(profile_find(slice_of(config_text), SLICE("default"), true, &profile));
    CHECK_TEXT(profile.region, "eu-west-1");
    CHECK(profile_find(slice_of(config_text), SLICE("work"), true, &profile));
    CHECK_TEXT(profile.region, "ap-south-1");
    CHECK(!profile.uses_more);
    CHECK(profile_find(slice_of(config_text), SLICE("only"), true, &profile));
    CHECK_TEXT(profile.access_key, "AKONLY");
    CHECK(profile_find(slice_of(config_text), SLICE("role"), true, &profile));
    CHECK(profile.uses_more);
    CHECK(!profile_find(slice_of(config_text), SLICE("bare"), true, &profile));
}

/* ---- the whole search ---- */

/* The environment of a test: pairs of name and value, ended by NULL. */
static const char **environment;

static char *lookup(const char *name)
{
    for (const char **at = environment; *at; at += 2)
        if (strcmp(*at, name) == 0) return (char *)(uintptr_t)at[1];
    return NULL;
}

struct found {
    bool fine;
    struct credentials keys;
    struct arena arena;
    char error[400];
};

static void find(struct found *found, const struct credentials_wanted *options)
{
    *found = (struct found){0};
    found->fine = credentials_find(options, lookup, &found->arena, &found->keys, found->error,
                                   sizeof found->error);
}

/* A home with both files. */
static char home[64], shared_path[100], config_path[100];

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void make_home(void)
{
    char folder[80];
    strcpy(home, "/tmp/quipu-home-XXXXXX");
    CHECK(mkdtemp(home) != NULL);
    snprintf(folder, sizeof folder, "%s/.aws", home);
    CHECK(mkdir(folder, 0700) == 0);
    snprintf(shared_path, sizeof shared_path, "%s/credentials", folder);
    snprintf(config_path, sizeof config_path, "%s/config", folder);
    write_file(shared_path, shared_text);
    write_file(config_path, config_text);
}

static void remove_home(void)
{
    char folder[80];
    snprintf(folder, sizeof folder, "%s/.aws", home);
    unlink(shared_path);
    unlink(config_path);
    rmdir(folder);
    rmdir(home);
}

TEST(keys_of_the_options_come_first)
{
    struct found found;
    environment = (const char *[]){
        "AWS_ACCESS_KEY_ID", "AKENV", "AWS_SECRET_ACCESS_KEY", "s", "AWS_SESSION_TOKEN", "t", NULL};
    find(&found, &(struct credentials_wanted){.access_key = "AKOPTION", .secret_key = "so", .region = "r-1"});
    CHECK(found.fine);
    CHECK_TEXT(found.keys.access_key, "AKOPTION");
    CHECK_TEXT(found.keys.session_token, "");
    CHECK_TEXT(found.keys.region, "r-1");
    arena_free(&found.arena);
}

TEST(keys_of_the_variables_come_before_the_files)
{
    struct found found;
    make_home();
    environment = (const char *[]){"AWS_ACCESS_KEY_ID",
                                   "AKENV",
                                   "AWS_SECRET_ACCESS_KEY",
                                   "s",
                                   "AWS_SESSION_TOKEN",
                                   "t",
                                   "HOME",
                                   home,
                                   "AWS_DEFAULT_REGION",
                                   "eu-north-1",
                                   "AWS_PROFILE",
                                   "work",
                                   NULL};
    find(&found, &(struct credentials_wanted){0});
    CHECK(found.fine);
    CHECK_TEXT(found.keys.access_key, "AKENV");
    CHECK_TEXT(found.keys.session_token, "t");
    CHECK_TEXT(found.keys.region, "eu-north-1");
    arena_free(&found.arena);
    find(&found,
         &(struct credentials_wanted){.profile = "work"}); /* named by the options: wins over the variables */
    CHECK_TEXT(found.keys.access_key, "AKWORK");
    arena_free(&found.arena);
    remove_home();
}

TEST(keys_and_region_of_the_files)
{
    struct found found;
    make_home();
    environment = (const char *[]){"HOME", home, "AWS_PROFILE", "", NULL};
    find(&found, &(struct credentials_wanted){0});
    CHECK_TEXT(found.keys.access_key, "AKDEFAULT");
    CHECK_TEXT(found.keys.region, "eu-west-1");
    arena_free(&found.arena);
    environment = (const char *[]){"HOME", home, "AWS_PROFILE", "work", "AWS_REGION", "us-west-2", NULL};
    find(&found, &(struct credentials_wanted){0});
    CHECK_TEXT(found.keys.access_key, "AKWORK");
    CHECK_TEXT(found.keys.session_token, "dG9rZW4==");
    CHECK_TEXT(found.keys.region, "us-west-2");
    arena_free(&found.arena);
    environment = (const char *[]){"HOME", home, "AWS_PROFILE", "only", NULL};
    find(&found, &(struct credentials_wanted){0});
    CHECK_TEXT(found.keys.access_key, "AKONLY");
    arena_free(&found.arena);
    remove_home();
}

TEST(files_named_by_variables)
{
    struct found found;
    make_home();
    environment = (const char *[]){"AWS_SHARED_CREDENTIALS_FILE", shared_path, "AWS_CONFIG_FILE", config_path,
                                   NULL};
    find(&found, &(struct credentials_wanted){.profile = "work"});
    CHECK_TEXT(found.keys.access_key, "AKWORK");
    CHECK_TEXT(found.keys.region, "ap-south-1");
    arena_free(&found.arena);
    environment = (const char *[]){"AWS_SHARED_CREDENTIALS_FILE", home, NULL}; /* a folder */
    find(&found, &(struct credentials_wanted){0});
    CHECK(!found.fine && strstr(found.error, home));
    arena_free(&found.arena);
    remove_home();
}

static void check_refused(const char *profile, const char *words)
{
    struct found found;
    environment = (const char *[]){"HOME", home, NULL};
    find(&found, &(struct credentials_wanted){.profile = profile});
    CHECK(!found.fine);
    if (!strstr(found.error, words)) test_failed(__FILE__, __LINE__, "%s", found.error);
    arena_free(&found.arena);
}

TEST(profiles_that_are_of_no_use_are_refused)
{
    make_home();
    check_refused("nobody", "no profile 'nobody'");
    check_refused("half", "'half' has only one of");
    check_refused("role", "'role' gets its keys from a role");
    remove_home();
}

TEST(no_keys_anywhere_is_no_error_here)
{
    struct found found;
    environment = (const char *[]){"HOME", "/nowhere", NULL};
    find(&found, &(struct credentials_wanted){0});
    CHECK(found.fine);
    CHECK_INT(found.keys.access_key.len, 0);
    CHECK_INT(found.keys.region.len, 0);
    arena_free(&found.arena);
    environment = (const char *[]){NULL};
    find(&found, &(struct credentials_wanted){0});
    CHECK(found.fine);
    arena_free(&found.arena);
    find(&found, &(struct credentials_wanted){
                     .access_key = "id", .secret_key = "secret", .session_token = "token\n"});
    CHECK(!found.fine && strstr(found.error, "line end"));
    arena_free(&found.arena);
    find(&found, &(struct credentials_wanted){.access_key = "alone"});
    CHECK(!found.fine);
    arena_free(&found.arena);
}
