/* Texts that the remote door did not write: URLs, AWS's files of profiles, requests that need a token,
 * replies of whoever answers. The first byte says which. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/json.h"
#include "client/internal.h"
#include "dynamo/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_within(struct slice part, struct slice whole)
{
    return part.len == 0 || (part.data >= whole.data && part.data + part.len <= whole.data + whole.len);
}

static void try_url(struct slice text, struct arena *arena)
{
    struct endpoint endpoint;
    char error[300], *url = must_alloc(text.len + 10);
    snprintf(url, text.len + 10, "%s%.*s", text.len % 2 ? "http://" : "https://", SLICE_ARG(text));
    if (endpoint_parse(url, arena, &endpoint, error, sizeof error)) {
        ensure(endpoint.host[0] && endpoint.path[0] == '/' && !strpbrk(endpoint.url, " \r\n?#@"));
        ensure(strstr(endpoint.url, endpoint.host) && strstr(endpoint.stream_url, endpoint.stream_host));
    }
    free(url);
}

static void try_profiles(struct slice text)
{
    struct profile profile;
    static const char *const names[] = {"default", "work", ""};
    for (int i = 0; i < 6; i++) {
        if (!profile_find(text, slice_of(names[i / 2]), i % 2, &profile)) continue;
        ensure(is_within(profile.access_key, text) && is_within(profile.secret_key, text));
        ensure(is_within(profile.session_token, text) && is_within(profile.region, text));
    }
}

/* A request that was an object is one afterwards. */
static void try_token(struct slice text, struct arena *arena)
{
    struct json_reader reader;
    struct slice with = request_with_token(SLICE("TransactWriteItems"), text, arena,
                                           (const uint64_t[]){1, 2});
    if (with.len == text.len) return;
    json_begin(&reader, with, arena);
    ensure(json_skip(&reader) && json_done(&reader));
}

static void try_reply(struct slice text, struct arena *arena)
{
    struct slice name, message;
    dynamo_error(text, arena, &name, &message);
    ensure(name.len <= text.len && message.len <= text.len);
    retry_clock_offset_s(SLICE("RequestExpired"), message, text, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    if (!size) return 0;
    struct slice text = {(const char *)data + 1, size - 1};
    switch (data[0] % 4) {
    case 0: try_url(text, &arena); break;
    case 1: try_profiles(text); break;
    case 2: try_token(text, &arena); break;
    case 3: try_reply(text, &arena); break;
    }
    arena_free(&arena);
    return 0;
}
