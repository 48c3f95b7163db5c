/* Signature Version 4: who signed this request, and did they? Used only when the server was given keys.
 *
 * The signing key depends on the day, region and service, not on the request; it costs four HMACs and is made
 * anew each time: a few microseconds against a round trip. Comparison takes the same time for every wrong
 * signature. */
#include <ctype.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/fail.h"
#include "rest/rest.h"

#define HASH_HEX        64
#define SKEW_SECONDS    900 /* how far a request's date may be off, as the service allows */
#define KEYRING_MAX     1000
#define CREDENTIAL_LINE 4096

struct key {
    struct slice id, secret, token; /* token.len 0: none asked for */
    enum rest_role role;
};

struct keyring {
    struct arena arena; /* the keys' texts */
    struct key *keys;
    unsigned count, capacity;
};

/* ---- the keys ---- */

struct keyring *keyring_new(void)
{
    return must_zero(1, sizeof(struct keyring));
}

static struct key *add_key(struct keyring *keyring)
{
    if (keyring->count == keyring->capacity) {
        keyring->capacity = keyring->capacity ? keyring->capacity * 2 : 4;
        keyring->keys = must_realloc(keyring->keys, keyring->capacity * sizeof *keyring->keys);
    }
    struct key *key = &keyring->keys[keyring->count++];
    *key = (struct key){0};
    return key;
}

void keyring_add(struct keyring *keyring, struct slice id, struct slice secret, struct slice token)
{
    struct key *key = add_key(keyring);
    key->id = arena_copy(&keyring->arena, id);
    key->secret = arena_copy(&keyring->arena, secret);
    key->token = arena_copy(&keyring->arena, token);
}

void keyring_free(struct keyring *keyring)
{
    arena_free(&keyring->arena);
    free(keyring->keys);
    free(keyring);
}

static const struct key *find_key(const struct keyring *keyring, struct slice id)
{
    for (unsigned i = 0; i < keyring->count; i++)
        if (slice_equal(keyring->keys[i].id, id)) return &keyring->keys[i];
    return NULL;
}

/* ---- reading them ---- */

static struct slice trimmed(struct slice text)
{
    while (text.len && (text.data[0] == ' ' || text.data[0] == '\t')) text = slice_from(text, 1);
    while (text.len && strchr(" \t\r\n", text.data[text.len - 1])) text.len--;
    return text;
}

/* One line of the file; a section begins a new key. NULL, or what is wrong with it. */
static const char *read_line(struct keyring *keyring, struct slice line, struct key **current)
{
    line = trimmed(line);
    if (!line.len || line.data[0] == '#' || line.data[0] == ';') return NULL;
    if (line.data[0] == '[') {
        if (keyring->count == KEYRING_MAX) return "is the profile after the 1000th, which is the last";
        *current = add_key(keyring);
        return NULL;
    }
    const char *equals = memchr(line.data, '=', line.len);
    if (!equals || !*current) return "is not [profile] or name = value";
    struct slice name = trimmed((struct slice){line.data, (size_t)(equals - line.data)});
    struct slice value = trimmed(slice_from(line, name.len ? (size_t)(equals + 1 - line.data) : 0));
    value = arena_copy(&keyring->arena, value);
    if (slice_equal(name, SLICE("role")) && !rest_role_find(value, &(*current)->role))
        return "must be role = admin, data or read";
    if (slice_equal(name, SLICE("aws_access_key_id"))) {
        if (find_key(keyring, value)) return "names an aws_access_key_id for the second time";
        (*current)->id = value;
    }
    if (slice_equal(name, SLICE("aws_secret_access_key"))) (*current)->secret = value;
    if (slice_equal(name, SLICE("aws_session_token"))) (*current)->token = value;
    return NULL;
}

static bool read_lines(struct keyring *keyring, FILE *file, const char *path, char *error, size_t error_len)
{
    char line[CREDENTIAL_LINE];
    struct key *current = NULL;
    for (unsigned number = 1; fgets(line, sizeof line, file); number++) {
        const char *wrong = read_line(keyring, slice_of(line), &current);
        if (!wrong) continue;
        snprintf(error, error_len, "the credentials file %s: line %u %s", path, number, wrong);
        return false;
    }
    if (!keyring->count) {
        snprintf(error, error_len, "the credentials file %s holds no [profile] with keys", path);
        return false;
    }
    for (unsigned i = 0; i < keyring->count; i++) {
        if (keyring->keys[i].id.len && keyring->keys[i].secret.len) continue;
        snprintf(error, error_len,
                 "the credentials file %s: profile %u needs aws_access_key_id and aws_secret_access_key",
                 path, i + 1);
        return false;
    }
    return true;
}

struct keyring *keyring_read(const char *path, char *error, size_t error_len)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        snprintf(error, error_len, "the credentials file %s cannot be read: %m", path);
        return NULL;
    }
    struct keyring *keyring = keyring_new();
    bool fine = read_lines(keyring, file, path, error, error_len);
    fclose(file);
    if (fine) return keyring;
    keyring_free(keyring);
    return NULL;
}

/* ---- the Authorization header ---- */

struct authorization {
    struct slice whole, credential, signed_headers, signature;
    struct slice key_id, scope; /* of the credential: key/date/region/service/aws4_request */
    struct slice date, region, service, terminator;
};

static struct slice take_until(struct slice *rest, char mark)
{
    const char *at = rest->len ? memchr(rest->data, mark, rest->len) : NULL;
    struct slice part = {rest->data, at ? (size_t)(at - rest->data) : rest->len};
    *rest = slice_from(*rest, at ? part.len + 1 : part.len);
    return part;
}

/* False when a parameter stands there twice. */
static bool take_parameter(struct slice *out, struct slice value)
{
    bool is_first = !out->data;
    *out = value;
    return is_first;
}

static bool parse_parameters(struct slice rest, struct authorization *out)
{
    bool fine = true;
    while (rest.len) {
        struct slice part = trimmed(take_until(&rest, ','));
        struct slice name = take_until(&part, '=');
        if (slice_equal(name, SLICE("Credential"))) fine &= take_parameter(&out->credential, part);
        if (slice_equal(name, SLICE("SignedHeaders"))) fine &= take_parameter(&out->signed_headers, part);
        if (slice_equal(name, SLICE("Signature"))) fine &= take_parameter(&out->signature, part);
    }
    struct slice credential = out->credential;
    out->key_id = take_until(&credential, '/');
    out->scope = credential;
    out->date = take_until(&credential, '/');
    out->region = take_until(&credential, '/');
    out->service = take_until(&credential, '/');
    out->terminator = credential;
    return fine;
}

static struct slice missing_parts(struct arena *arena, const struct authorization *header, struct slice date)
{
    return arena_printf(
        arena, "%s%s%s%s",
        header->credential.len ? "" : "Authorization header requires 'Credential' parameter. ",
        header->signature.len ? "" : "Authorization header requires 'Signature' parameter. ",
        header->signed_headers.len ? "" : "Authorization header requires 'SignedHeaders' parameter. ",
        date.len ? ""
                 : "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. ");
}

/* ---- the signature ---- */

static void hmac(struct slice key, struct slice text, unsigned char out[DIGEST_BYTES])
{
    unsigned len = DIGEST_BYTES;
    HMAC(EVP_sha256(), key.data, (int)key.len, (const unsigned char *)text.data, text.len, out, &len);
}

/* A header's value with the white space at its ends gone and runs inside it as one blank. */
static void put_folded(struct buf *out, struct slice value)
{
    bool blank = false;
    value = trimmed(value);
    for (size_t i = 0; i < value.len; i++) {
        bool space = value.data[i] == ' ' || value.data[i] == '\t';
        if (space && blank) continue;
        buf_byte(out, space ? ' ' : (unsigned char)value.data[i]);
        blank = space;
    }
}

static int compare_pairs(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

static void put_query(struct buf *out, struct arena *arena, struct slice query)
{
    size_t count = 0, capacity = query.len / 2 + 1;
    struct slice *pairs = arena_array(arena, struct slice, capacity);
    while (query.len && count < capacity) {
        struct slice pair = take_until(&query, '&');
        if (pair.len)
            pairs[count++] = memchr(pair.data, '=', pair.len) ? pair
                                                              : arena_printf(arena, "%.*s=", SLICE_ARG(pair));
    }
    qsort(pairs, count, sizeof *pairs, compare_pairs);
    for (size_t i = 0; i < count; i++) {
        if (i) buf_byte(out, '&');
        buf_slice(out, pairs[i]);
    }
}

/* Signed is the path as it was sent, encoded once more. */
static void put_path(struct buf *out, struct slice path)
{
    while (path.len) {
        const char *slash = memchr(path.data, '/', path.len);
        size_t len = slash ? (size_t)(slash - path.data) : path.len;
        rest_encode(out, (struct slice){path.data, len});
        if (slash) buf_byte(out, '/');
        path = slice_from(path, slash ? len + 1 : len);
    }
}

static void put_canonical_request(struct buf *out, const struct rest_head *head, struct slice body,
                                  const struct authorization *header, struct arena *arena)
{
    buf_slice(out, head->method);
    buf_byte(out, '\n');
    put_path(out, head->path);
    buf_byte(out, '\n');
    put_query(out, arena, head->query);
    buf_byte(out, '\n');
    struct slice names = header->signed_headers;
    while (names.len) {
        struct slice name = take_until(&names, ';');
        buf_slice(out, name);
        buf_byte(out, ':');
        put_folded(out, rest_head_find(head, name));
        buf_byte(out, '\n');
    }
    buf_byte(out, '\n');
    buf_slice(out, header->signed_headers);
    buf_byte(out, '\n');
    digest_put_sha256(out, body);
}

static void sign(const struct key *key, const struct authorization *header, struct slice text,
                 char hex[HASH_HEX])
{
    unsigned char hash[DIGEST_BYTES];
    struct slice parts[] = {header->date, header->region, header->service, SLICE("aws4_request"), text};
    struct buf secret = {0}, out = {0};
    buf_text(&secret, "AWS4");
    buf_slice(&secret, key->secret);
    struct slice signing = buf_view(&secret);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        unsigned char next[DIGEST_BYTES];
        hmac(signing, parts[i], next);
        memcpy(hash, next, sizeof hash);
        signing = (struct slice){(const char *)hash, sizeof hash};
    }
    digest_put_hex(&out, hash, sizeof hash);
    memcpy(hex, out.data, HASH_HEX);
    OPENSSL_cleanse(secret.data, secret.len);
    buf_free(&secret);
    buf_free(&out);
}

static bool signature_matches(const struct key *key, const struct rest_head *head, struct slice body,
                              const struct authorization *header, struct slice date, struct arena *arena)
{
    struct buf request = {0}, text = {0};
    char expected[HASH_HEX];
    put_canonical_request(&request, head, body, header, arena);
    buf_text(&text, "AWS4-HMAC-SHA256\n");
    buf_slice(&text, date);
    buf_byte(&text, '\n');
    buf_slice(&text, header->scope);
    buf_byte(&text, '\n');
    digest_put_sha256(&text, buf_view(&request));
    sign(key, header, buf_view(&text), expected);
    buf_free(&request);
    buf_free(&text);
    return header->signature.len == HASH_HEX &&
           CRYPTO_memcmp(expected, header->signature.data, HASH_HEX) == 0;
}

/* ---- the checks, in the service's order ---- */

static struct slice iso_time(struct arena *arena, int64_t seconds)
{
    time_t time = (time_t)seconds;
    struct tm broken;
    char text[17];
    gmtime_r(&time, &broken);
    strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &broken);
    return arena_copy(arena, slice_of(text));
}

static bool date_is_off(struct arena *arena, struct slice date, int64_t now_seconds, struct slice *message)
{
    int64_t then = time_from_basic_iso(date.data, date.len);
    if (then < 0) {
        *message = arena_printf(arena,
                                "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of "
                                "date from HTTP: '%.*s'",
                                SLICE_ARG(date));
        return true;
    }
    struct slice now = iso_time(arena, now_seconds);
    if (then < now_seconds - SKEW_SECONDS) {
        struct slice edge = iso_time(arena, now_seconds - SKEW_SECONDS);
        *message = arena_printf(arena, "Signature expired: %.*s is now earlier than %.*s (%.*s - 15 min.)",
                                SLICE_ARG(date), SLICE_ARG(edge), SLICE_ARG(now));
        return true;
    }
    if (then > now_seconds + SKEW_SECONDS) {
        struct slice edge = iso_time(arena, now_seconds + SKEW_SECONDS);
        *message = arena_printf(arena,
                                "Signature not yet current: %.*s is still later than %.*s (%.*s + 15 min.)",
                                SLICE_ARG(date), SLICE_ARG(edge), SLICE_ARG(now));
        return true;
    }
    return false;
}

static bool is_signed(struct slice names, struct slice wanted)
{
    while (names.len)
        if (slice_equal(take_until(&names, ';'), wanted)) return true;
    return false;
}

static bool is_signed_name(struct arena *arena, struct slice names, struct slice header)
{
    char *lower = arena_alloc(arena, header.len);
    for (size_t i = 0; i < header.len; i++) lower[i] = (char)tolower((unsigned char)header.data[i]);
    return is_signed(names, (struct slice){lower, header.len});
}

/* Headers that change what a request means. */
static bool has_meaning(struct slice name)
{
    struct slice ours = SLICE("x-amz-"), start = {name.data, name.len < ours.len ? name.len : ours.len};
    return slice_equal_ignoring_case(start, ours) || slice_equal_ignoring_case(name, SLICE("content-type"));
}

/* What is not signed could be changed on the way: above all the operation's name. The JavaScript SDK v2 never signs
 * Content-Type. */
static bool lacks_signed_header(struct arena *arena, const struct rest_head *head, struct slice names,
                                enum signed_door door, struct slice *message)
{
    struct slice needed[] = {SLICE("host"), SLICE("x-amz-date"), SLICE("x-amz-target")}, missing = SLICE_NONE;
    size_t count = door == DOOR_DYNAMODB ? 3 : 2;
    for (size_t i = 0; i < count && !missing.data; i++)
        if (!is_signed(names, needed[i])) missing = needed[i];
    for (uint32_t i = 0; i < head->header_count && !missing.data; i++)
        if (has_meaning(head->headers[i].name) && !is_signed_name(arena, names, head->headers[i].name) &&
            !slice_equal_ignoring_case(head->headers[i].name, SLICE("content-type")))
            missing = head->headers[i].name;
    if (!missing.data) return false;
    *message = slice_equal(missing, needed[0])
                   ? SLICE("'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.")
                   : arena_printf(arena, "'%.*s' must be a 'SignedHeader' in the AWS Authorization.",
                                  SLICE_ARG(missing));
    return true;
}

/* Of two headers with one name the signature could be of the one and the request be taken by the other. */
static bool has_header_twice(struct arena *arena, const struct rest_head *head, struct slice *message)
{
    for (uint32_t i = 0; i < head->header_count; i++) {
        struct slice name = head->headers[i].name;
        if (!has_meaning(name) && !slice_equal_ignoring_case(name, SLICE("authorization"))) continue;
        for (uint32_t j = 0; j < i; j++) {
            if (!slice_equal_ignoring_case(head->headers[j].name, name)) continue;
            *message = arena_printf(arena, "The header '%.*s' stands in the request twice.", SLICE_ARG(name));
            return true;
        }
    }
    return false;
}

/* A signature in the URL is none that we check: a request with one is not taken for signed by its header. */
static bool is_presigned(struct slice query)
{
    static const struct slice names[] = {
        SLICE("X-Amz-Algorithm"),     SLICE("X-Amz-Credential"),     SLICE("X-Amz-Signature"),
        SLICE("X-Amz-SignedHeaders"), SLICE("X-Amz-Security-Token"), SLICE("X-Amz-Expires"),
        SLICE("X-Amz-Date")};
    while (query.len) {
        struct slice pair = take_until(&query, '&'), name = take_until(&pair, '=');
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (slice_equal_ignoring_case(name, names[i])) return true;
    }
    return false;
}

/* The signature covers the hash of the body that came; a header that says another one lies. */
static bool hash_is_wrong(const struct rest_head *head, struct slice body, struct slice *message)
{
    struct slice said = trimmed(rest_head_find(head, SLICE("X-Amz-Content-Sha256")));
    struct buf hash = {0};
    if (!said.data) return false;
    digest_put_sha256(&hash, body);
    bool wrong = !slice_equal(said, buf_view(&hash));
    buf_free(&hash);
    if (wrong)
        *message = SLICE("The value of 'X-Amz-Content-Sha256' is not the SHA-256 of the request's body.");
    return wrong;
}

static bool service_is_known(const struct authorization *header, enum signed_door door)
{
    static const struct slice others[] = {SLICE("lambda"), SLICE("scheduler"), SLICE("logs"), SLICE("quipu")};
    if (door == DOOR_DYNAMODB)
        return slice_equal(header->service, SLICE("dynamodb")) ||
               slice_equal(header->service, SLICE("application-autoscaling"));
    if (door == DOOR_FUNCTION)
        return slice_equal(header->service, SLICE("lambda")) || slice_equal(header->service, SLICE("execute-api"));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (slice_equal(header->service, others[i])) return true;
    return false;
}

static bool scope_is_wrong(struct arena *arena, const struct authorization *header, enum signed_door door,
                           struct slice date, struct slice *message)
{
    struct slice day = {date.data, date.len < 8 ? date.len : 8};
    if (!slice_equal(header->terminator, SLICE("aws4_request")))
        *message = arena_printf(
            arena, "Credential should be scoped with a valid terminator: 'aws4_request', not '%.*s'.",
            SLICE_ARG(header->terminator));
    else if (!service_is_known(header, door))
        *message =
            door == DOOR_DYNAMODB
                ? SLICE("Credential should be scoped to correct service: 'dynamodb'. ")
            : door == DOOR_FUNCTION
                ? SLICE("Credential should be scoped to correct service: 'lambda' or 'execute-api'. ")
                : SLICE("Credential should be scoped to correct service: 'lambda', 'scheduler', 'logs' or 'quipu'. ");
    else if (!slice_equal(header->date, day))
        *message = arena_printf(
            arena,
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date "
            "from HTTP: '%.*s' != '%.*s', from '%.*s'.",
            SLICE_ARG(header->date), SLICE_ARG(day), SLICE_ARG(date));
    else
        return false;
    return true;
}

const char *signature_fault(const struct keyring *keyring, const struct rest_head *head, struct slice body,
                            enum signed_door door, int64_t now_ms, struct arena *arena, struct slice *message,
                            enum rest_role *role)
{
    struct slice whole = trimmed(rest_head_find(head, SLICE("Authorization")));
    struct authorization header = {.whole = whole};
    struct slice scheme = SLICE("AWS4-HMAC-SHA256 ");
    if (is_presigned(head->query)) {
        *message = SLICE("Presigned URLs are not taken: sign with the Authorization header.");
        return "IncompleteSignatureException";
    }
    if (has_header_twice(arena, head, message)) return "IncompleteSignatureException";
    if (!slice_starts(whole, scheme)) {
        *message = SLICE("Request is missing Authentication Token");
        return "MissingAuthenticationTokenException";
    }
    if (!parse_parameters(slice_from(whole, scheme.len), &header)) {
        *message = arena_printf(arena, "Authorization header has a parameter twice. Authorization=%.*s",
                                SLICE_ARG(whole));
        return "IncompleteSignatureException";
    }
    struct slice date = trimmed(rest_head_find(head, SLICE("X-Amz-Date")));
    struct slice missing = missing_parts(arena, &header, date);
    if (missing.len) {
        *message = arena_printf(arena, "%.*sAuthorization=%.*s", SLICE_ARG(missing), SLICE_ARG(whole));
        return "IncompleteSignatureException";
    }
    const struct key *key = find_key(keyring, header.key_id);
    struct slice token = rest_head_find(head, SLICE("X-Amz-Security-Token"));
    if (!key || (key->token.len && !(token.len == key->token.len &&
                                     CRYPTO_memcmp(token.data, key->token.data, token.len) == 0))) {
        *message = SLICE("The security token included in the request is invalid.");
        return "UnrecognizedClientException";
    }
    if (lacks_signed_header(arena, head, header.signed_headers, door, message) ||
        hash_is_wrong(head, body, message) || date_is_off(arena, date, now_ms / 1000, message) ||
        scope_is_wrong(arena, &header, door, date, message))
        return "InvalidSignatureException";
    if (signature_matches(key, head, body, &header, date, arena)) {
        if (role) *role = key->role;
        return NULL;
    }
    *message = SLICE(
        "The request signature we calculated does not match the signature you provided. Check your AWS "
        "Secret Access Key and signing method. Consult the service documentation for details.");
    return "InvalidSignatureException";
}
