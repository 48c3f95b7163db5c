/* Who we are to a remote endpoint, by the rules of AWS's own clients:
 *
 *  1. keys that were asked for;
 *  2. AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, unless a profile is asked for;
 *  3. the profile (asked for, AWS_PROFILE, "default") in AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials);
 *  4. the same profile in AWS_CONFIG_FILE (~/.aws/config).
 *
 * Roles, SSO, credential processes and metadata services need clients of their own; a profile that asks for
 * one of them is refused with a sentence that says how to get keys out of it. */
#include <errno.h>
#include <stdio.h>

#include "base/limits.h"
#include "client/internal.h"

#define READ_BYTES 4096

/* ---- one file's profile ---- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct slice trimmed(struct slice text)
{
    while (text.len && is_blank(text.data[0])) text = slice_from(text, 1);
    while (text.len && is_blank(text.data[text.len - 1])) text.len--;
    return text;
}

static struct slice take_line(struct slice *rest)
{
    const char *end = memchr(rest->data, '\n', rest->len);
    struct slice line = {rest->data, end ? (size_t)(end - rest->data) : rest->len};
    *rest = slice_from(*rest, end ? line.len + 1 : line.len);
    return line;
}

/* "[profile NAME]" or "[NAME]": is it the one? */
static bool opens_section(struct slice line, struct slice name, bool is_config)
{
    const char *end = memchr(line.data, ']', line.len);
    if (!end) return false;
    struct slice title = trimmed((struct slice){line.data + 1, (size_t)(end - line.data) - 1});
    if (slice_equal(title, name) && (!is_config || slice_equal(name, SLICE("default")))) return true;
    struct slice word = SLICE("profile");
    if (!is_config || !slice_starts(title, word) || title.len == word.len || !is_blank(title.data[word.len]))
        return false;
    return slice_equal(trimmed(slice_from(title, word.len)), name);
}

/* A comment behind a value begins with a blank and a mark. */
static struct slice without_comment(struct slice value)
{
    for (size_t i = 1; i < value.len; i++)
        if ((value.data[i] == '#' || value.data[i] == ';') && is_blank(value.data[i - 1])) value.len = i;
    return trimmed(value);
}

static bool asks_for_more(struct slice name)
{
    return slice_equal_ignoring_case(name, SLICE("role_arn")) ||
           slice_equal_ignoring_case(name, SLICE("credential_process")) ||
           slice_equal_ignoring_case(name, SLICE("login_session")) || slice_starts(name, SLICE("sso_"));
}

static void take_setting(struct slice line, struct profile *out)
{
    const char *equals = memchr(line.data, '=', line.len);
    if (!equals) return;
    struct slice name = trimmed((struct slice){line.data, (size_t)(equals - line.data)});
    struct slice value = without_comment(slice_from(line, (size_t)(equals - line.data) + 1));
    if (slice_equal_ignoring_case(name, SLICE("aws_access_key_id"))) out->access_key = value;
    if (slice_equal_ignoring_case(name, SLICE("aws_secret_access_key"))) out->secret_key = value;
    if (slice_equal_ignoring_case(name, SLICE("aws_session_token"))) out->session_token = value;
    if (slice_equal_ignoring_case(name, SLICE("region"))) out->region = value;
    if (asks_for_more(name)) out->uses_more = true;
}

bool profile_find(struct slice text, struct slice name, bool is_config, struct profile *out)
{
    bool inside = false, found = false;
    *out = (struct profile){0};
    while (text.len) {
        struct slice line = take_line(&text);
        if (!line.len || is_blank(line.data[0]) || line.data[0] == '#' || line.data[0] == ';')
            continue; /* what is indented belongs to a setting with parts of its own, of which we need none */
        if (line.data[0] == '[')
            found |= inside = opens_section(line, name, is_config);
        else if (inside)
            take_setting(line, out);
    }
    return found;
}

/* ---- the files ---- */

struct search {
    const struct credentials_wanted *wanted;
    credentials_variable *variable;
    struct arena *arena;
    char *error;
    size_t error_len;
};

static const char *variable(const struct search *search, const char *name)
{
    const char *value = search->variable(name);
    return value && *value ? value : NULL;
}

static struct slice kept(const struct search *search, const char *text)
{
    return text ? arena_copy(search->arena, slice_of(text)) : SLICE("");
}

/* The whole file; nothing when there is none. False when it is there and cannot be read. */
static bool read_file(const struct search *search, const char *path, struct buf *out)
{
    FILE *file = fopen(path, "re");
    if (!file) {
        if (errno == ENOENT || errno == ENOTDIR) return true;
        snprintf(search->error, search->error_len, "the file %.300s cannot be read: %s", path,
                 strerror(errno));
        return false;
    }
    size_t got;
    do {
        buf_reserve(out, READ_BYTES);
        got = fread(out->data + out->len, 1, READ_BYTES, file);
        out->len += got;
    } while (got && out->len <= LIMIT_PROFILES_BYTES);
    bool fine = !ferror(file) && out->len <= LIMIT_PROFILES_BYTES;
    fclose(file);
    if (!fine)
        snprintf(search->error, search->error_len, "the file %.300s cannot be read, or is too long", path);
    return fine;
}

static bool read_named(const struct search *search, const char *path_variable, const char *usual,
                       struct buf *out)
{
    const char *path = variable(search, path_variable), *home = variable(search, "HOME");
    if (!path && !home) return true;
    if (!path) path = arena_printf(search->arena, "%s/.aws/%s", home, usual).data;
    return read_file(search, path, out);
}

static void forget(struct buf *text)
{
    if (text->data) explicit_bzero(text->data, text->len);
    buf_free(text);
}

/* ---- the rules ---- */

static bool fail(const struct search *search, const char *format, const char *profile)
{
    snprintf(search->error, search->error_len, format, profile);
    return false;
}

/* Rules 3 and 4 on the files' texts. */
static bool take_profile(const struct search *search, struct slice shared_text, struct slice config_text,
                         bool needs_keys, struct credentials *out)
{
    struct profile shared, config;
    const char *given = search->wanted->profile ? search->wanted->profile : variable(search, "AWS_PROFILE");
    const char *name = given ? given : "default";
    bool in_shared = profile_find(shared_text, slice_of(name), false, &shared);
    bool in_config = profile_find(config_text, slice_of(name), true, &config);
    if (!out->region.len)
        out->region = arena_copy(search->arena, config.region.len ? config.region : shared.region);
    if (!needs_keys) return true;
    if (given && !in_shared && !in_config)
        return fail(search, "there is no profile '%.100s' in AWS's files", name);
    const struct profile *keys = shared.access_key.len || shared.secret_key.len ? &shared : &config;
    if (!keys->access_key.len != !keys->secret_key.len)
        return fail(search,
                    "the profile '%.100s' has only one of aws_access_key_id and aws_secret_access_key", name);
    if (!keys->access_key.len && (shared.uses_more || config.uses_more))
        return fail(
            search,
            "the profile '%.100s' gets its keys from a role, SSO or a process, which is not supported here; "
            "put them into the environment: eval \"$(aws configure export-credentials --format env)\"",
            name);
    out->access_key = arena_copy(search->arena, keys->access_key);
    out->secret_key = arena_copy(search->arena, keys->secret_key);
    out->session_token = arena_copy(search->arena, keys->session_token);
    return true;
}

static bool find_in_files(const struct search *search, bool needs_keys, struct credentials *out)
{
    struct buf shared = {0}, config = {0};
    bool fine = read_named(search, "AWS_SHARED_CREDENTIALS_FILE", "credentials", &shared) &&
                read_named(search, "AWS_CONFIG_FILE", "config", &config) &&
                take_profile(search, buf_view(&shared), buf_view(&config), needs_keys, out);
    forget(&shared);
    forget(&config);
    return fine;
}

static bool take_pair(const struct search *search, const char *access, const char *secret, const char *token,
                      struct credentials *out)
{
    if (!access != !secret) return fail(search, "a key's id and its secret go together%s", "");
    out->access_key = kept(search, access);
    out->secret_key = kept(search, secret);
    out->session_token = kept(search, access ? token : NULL);
    return true;
}

/* What gets into a header must stay in its line; a line end behind a key is a common slip. */
static bool is_clean(const struct search *search, struct slice key)
{
    for (size_t i = 0; i < key.len; i++)
        if ((unsigned char)key.data[i] <= ' ' || key.data[i] == 127)
            return fail(search, "a key%s holds a blank or a line end", "");
    return true;
}

bool credentials_find(const struct credentials_wanted *wanted, credentials_variable *lookup,
                      struct arena *arena, struct credentials *out, char *error, size_t error_len)
{
    struct search search = {wanted, lookup, arena, error, error_len};
    *out = (struct credentials){0};
    const char *region = wanted->region ? wanted->region : variable(&search, "AWS_REGION");
    if (!region) region = variable(&search, "AWS_DEFAULT_REGION");
    out->region = kept(&search, region);
    if (!take_pair(&search, wanted->access_key, wanted->secret_key, wanted->session_token, out)) return false;
    if (!out->access_key.len && !wanted->profile &&
        !take_pair(&search, variable(&search, "AWS_ACCESS_KEY_ID"),
                   variable(&search, "AWS_SECRET_ACCESS_KEY"), variable(&search, "AWS_SESSION_TOKEN"), out))
        return false;
    if (!out->access_key.len || !out->region.len) {
        if (!find_in_files(&search, !out->access_key.len, out)) return false;
    }
    return is_clean(&search, out->access_key) && is_clean(&search, out->secret_key) &&
           is_clean(&search, out->session_token);
}
