/* Which requests may come in, by Host, Origin, Sec-Fetch-Site and Referer. */
#include <unistd.h>

#include "rest/rest.h"
#include "unit/test.h"

static struct rest_door *door_of(const char *host, const char *origins, const char *hosts)
{
    char error[400] = "";
    struct rest_door *door = rest_door_new(host);
    if (origins) CHECK(rest_door_allow_origin(door, origins, error, sizeof error));
    if (hosts) CHECK(rest_door_allow_host(door, hosts, error, sizeof error));
    CHECK_TEXT(slice_of(error), "");
    return door;
}

/* NULL: that header is not sent. */
static struct rest_head head_with(struct http_header room[4], const char *host, const char *origin,
                                  const char *site, const char *referer)
{
    struct rest_head head = {.method = SLICE("POST"), .path = SLICE("/"), .headers = room};
    const char *names[] = {"host", "Origin", "Sec-Fetch-Site", "REFERER"};
    const char *values[] = {host, origin, site, referer};
    for (int i = 0; i < 4; i++)
        if (values[i])
            room[head.header_count++] = (struct http_header){slice_of(names[i]), slice_of(values[i])};
    return head;
}

static bool comes_in(const struct rest_door *door, const char *host, const char *origin, const char *site,
                     const char *referer)
{
    char reason[600] = "";
    struct http_header room[4];
    struct rest_head head = head_with(room, host, origin, site, referer);
    bool admitted = rest_door_admits(door, &head, reason, sizeof reason);
    CHECK_INT(reason[0] == '\0', admitted);
    return admitted;
}

TEST(door_knows_the_names_of_the_loopback)
{
    static const char *const ours[] = {"localhost", "LocalHost:8000", "localhost.:8000",  "127.0.0.1:8000",
                                       "127.9.8.7", "[::1]:8000",     "api.localhost:80", "0.0.0.0:8000"};
    static const char *const others[] = {"evil.example",
                                         "evil.example:8000",
                                         "localhost.evil.example",
                                         "127.0.0.1.nip.io",
                                         "xlocalhost",
                                         "192.168.1.5:8000",
                                         "[fe80::1]:8000",
                                         "[::1",
                                         "127.0.0.256",
                                         "localhost@evil:8000",
                                         "::1",
                                         "[::1].evil.example]"};
    struct rest_door *door = door_of("127.0.0.1", NULL, NULL);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        CHECK(comes_in(door, ours[i], NULL, NULL, NULL));
        CHECK(comes_in(NULL, ours[i], NULL, NULL, NULL));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (comes_in(door, others[i], NULL, NULL, NULL))
            test_failed(__FILE__, __LINE__, "%s came in", others[i]);
        CHECK(!comes_in(NULL, others[i], NULL, NULL, NULL));
    }
    CHECK(comes_in(door, NULL, NULL, NULL, NULL)); /* HTTP/1.0 */
    CHECK(comes_in(door, "", NULL, NULL, NULL));
    rest_door_free(door);
}

TEST(door_on_a_public_address_knows_addresses_and_the_machine)
{
    char machine[256];
    CHECK_INT(gethostname(machine, sizeof machine), 0);
    struct rest_door *all = door_of("0.0.0.0", NULL, NULL), *named = door_of("db.example.com", NULL, NULL);
    CHECK(comes_in(all, "192.168.1.5:8000", NULL, NULL, NULL));
    CHECK(comes_in(all, "quipu:8000", NULL, NULL, NULL)); /* the service's name among containers */
    CHECK(comes_in(all, "my_db", NULL, NULL, NULL));
    CHECK(!comes_in(all, "quipu.evil.example:8000", NULL, NULL, NULL));
    CHECK(!comes_in(all, "quipu:8000", "http://evil.example", NULL, NULL));
    CHECK(comes_in(all, "[2001:db8::1]:8000", NULL, NULL, NULL));
    CHECK(comes_in(all, machine, NULL, NULL, NULL));
    CHECK(comes_in(all, "localhost:8000", NULL, NULL, NULL));
    CHECK(!comes_in(all, "db.example.com", NULL, NULL, NULL));
    CHECK(comes_in(named, "DB.example.com:443", NULL, NULL, NULL));
    CHECK(!comes_in(named, "evil.example.com", NULL, NULL, NULL));
    rest_door_free(all);
    rest_door_free(named);
}

TEST(door_takes_the_names_that_it_was_given)
{
    struct rest_door *door = door_of("127.0.0.1", NULL, "db.example.com, .corp.test,192.168.1.5,fe80::1");
    CHECK(comes_in(door, "db.example.com:8000", NULL, NULL, NULL));
    CHECK(comes_in(door, "corp.test", NULL, NULL, NULL));
    CHECK(comes_in(door, "a.b.Corp.test", NULL, NULL, NULL));
    CHECK(comes_in(door, "192.168.1.5:8000", NULL, NULL, NULL));
    CHECK(comes_in(door, "[fe80::1]:8000", NULL, NULL, NULL));
    CHECK(!comes_in(door, "evilcorp.test", NULL, NULL, NULL));
    CHECK(!comes_in(door, "x.db.example.com", NULL, NULL, NULL));
    rest_door_free(door);
    door = door_of("127.0.0.1", NULL, "*");
    CHECK(comes_in(door, "anything.example", NULL, NULL, NULL));
    CHECK(!comes_in(door, "anything.example", "http://evil.example", NULL, NULL));
    rest_door_free(door);
}

TEST(door_knows_the_hosts_of_functions)
{
    struct rest_door *own = door_of("127.0.0.1", NULL, NULL), *all = door_of("0.0.0.0", NULL, "db.example.com");
    CHECK(comes_in(own, "abc.lambda-url.localhost:8000", NULL, NULL, NULL));
    CHECK(!comes_in(own, "abc.lambda-url.evil.example", NULL, NULL, NULL));
    CHECK(comes_in(all, "abc.lambda-url.db.example.com:8000", NULL, NULL, NULL));
    CHECK(comes_in(all, "abc.EXECUTE-API.db.example.com", NULL, NULL, NULL));
    CHECK(!comes_in(all, "abc.lambda-url.com", NULL, NULL, NULL)); /* anybody may own that */
    CHECK(!comes_in(all, "abc.lambda-url.", NULL, NULL, NULL));
    CHECK(!comes_in(all, "abc.def.lambda-url.db.example.com", NULL, NULL, NULL));
    CHECK(!comes_in(all, "abc.other.db.example.com", NULL, NULL, NULL));
    CHECK(!comes_in(own, "abc.lambda-url.localhost:8000", "http://evil.example", NULL, NULL));
    rest_door_free(own);
    rest_door_free(all);
}

TEST(door_refuses_foreign_pages)
{
    struct rest_door *door = door_of("127.0.0.1", NULL, NULL);
    const char *host = "localhost:8000", *own = "http://localhost:8000";
    CHECK(comes_in(door, host, own, "same-origin", NULL));
    CHECK(comes_in(door, host, own, NULL, NULL));
    CHECK(comes_in(door, host, "https://localhost:8000", NULL, NULL)); /* behind a proxy that speaks TLS */
    CHECK(comes_in(door, host, NULL, "none", NULL));
    CHECK(comes_in(door, host, NULL, "same-origin", "http://localhost:8000/console"));
    CHECK(comes_in(door, host, NULL, NULL, "http://localhost:8000/console"));
    static const char *const foreign[] = {"http://evil.example",   "http://localhost:3000",
                                          "http://localhost",      "null",
                                          "http://127.0.0.1:8000", "",
                                          "ftp://localhost:8000",  "localhost:8000"};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        if (comes_in(door, host, foreign[i], NULL, NULL))
            test_failed(__FILE__, __LINE__, "%s came in", foreign[i]);
        CHECK(!comes_in(door, host, foreign[i], "same-origin", NULL));
    }
    CHECK(!comes_in(door, host, NULL, "cross-site", NULL));
    CHECK(!comes_in(door, host, NULL, "same-site", NULL));
    CHECK(!comes_in(door, host, NULL, "new-word", NULL));
    CHECK(!comes_in(door, host, own, "cross-site", NULL));
    CHECK(!comes_in(door, host, NULL, NULL, "https://evil.example/page"));
    CHECK(!comes_in(door, NULL, own, NULL, NULL));
    rest_door_free(door);
}

TEST(door_with_two_origins_or_sites_believes_neither)
{
    char reason[600];
    struct http_header twice[] = {{SLICE("Host"), SLICE("localhost:8000")},
                                  {SLICE("Origin"), SLICE("http://evil.example")},
                                  {SLICE("Origin"), SLICE("http://localhost:8000")}};
    struct http_header sites[] = {{SLICE("Sec-Fetch-Site"), SLICE("none")},
                                  {SLICE("Sec-Fetch-Site"), SLICE("cross-site")},
                                  {SLICE("Sec-Fetch-Site"), SLICE("same-origin")}};
    struct rest_head head = {.headers = twice, .header_count = 3};
    CHECK(!rest_door_admits(NULL, &head, reason, sizeof reason));
    head.headers = sites;
    CHECK(!rest_door_admits(NULL, &head, reason, sizeof reason));
}

TEST(door_opens_to_the_origins_that_it_was_given)
{
    struct rest_door *door = door_of("127.0.0.1", "http://localhost:3000,https://app.example", NULL);
    const char *host = "localhost:8000", *app = "https://APP.example";
    struct http_header room[4];
    CHECK(comes_in(door, host, app, "cross-site", NULL));
    CHECK(comes_in(door, host, "http://localhost:3000", "same-site", NULL));
    CHECK(!comes_in(door, host, "http://localhost:3001", "same-site", NULL));
    CHECK(!comes_in(door, host, "http://app.example", NULL, NULL));
    CHECK(!comes_in(door, host, NULL, "cross-site", NULL));
    CHECK(!comes_in(door, "evil.example", app, NULL, NULL));
    struct rest_head head = head_with(room, host, app, NULL, NULL);
    CHECK_TEXT(rest_door_origin(door, &head), "https://APP.example");
    head = head_with(room, host, "http://localhost:8000", NULL, NULL);
    CHECK_TEXT(rest_door_origin(door, &head), "");
    rest_door_free(door);
    door = door_of("127.0.0.1", "*", NULL);
    CHECK(comes_in(door, host, "null", "cross-site", NULL));
    CHECK(comes_in(door, host, NULL, "cross-site", "https://evil.example/"));
    CHECK(!comes_in(door, "evil.example", "http://evil.example", NULL, NULL));
    head = head_with(room, host, "null", NULL, NULL);
    CHECK_TEXT(rest_door_origin(door, &head), "null");
    rest_door_free(door);
}

TEST(door_says_what_is_wrong_with_a_flag)
{
    static const char *const origins[] = {"",          "localhost:3000", "http://",
                                          "http://a/", "http://a/b",     "http://a b",
                                          "http://a,", "a.example",      "://a"};
    static const char *const hosts[] = {"",    "a:80", "http://a",      "[::1]",
                                        "a/b", "a,,b", "*.example.com", "a b"};
    struct rest_door *door = rest_door_new("127.0.0.1");
    for (size_t i = 0; i < sizeof origins / sizeof *origins; i++) {
        char error[400] = "";
        if (rest_door_allow_origin(door, origins[i], error, sizeof error))
            test_failed(__FILE__, __LINE__, "'%s' is taken for an origin", origins[i]);
        CHECK(slice_starts(slice_of(error), SLICE("--allow-origin must be ")));
    }
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        char error[400] = "";
        if (rest_door_allow_host(door, hosts[i], error, sizeof error))
            test_failed(__FILE__, __LINE__, "'%s' is taken for a name", hosts[i]);
        CHECK(slice_starts(slice_of(error), SLICE("--allow-host must be ")));
    }
    rest_door_free(door);
}

TEST(door_names_the_flag_that_would_open_it_and_repeats_no_odd_bytes)
{
    char reason[600];
    struct http_header room[4];
    struct rest_head head = head_with(room, "db.example.com:8000", NULL, NULL, NULL);
    CHECK(!rest_door_admits(NULL, &head, reason, sizeof reason));
    CHECK(slice_contains(slice_of(reason), SLICE("--allow-host db.example.com")));
    head = head_with(room, "localhost", "http://a.example\x01\xff'\"<", NULL, NULL);
    CHECK(!rest_door_admits(NULL, &head, reason, sizeof reason));
    CHECK(slice_contains(slice_of(reason), SLICE("--allow-origin http://a.example?????")));
}
