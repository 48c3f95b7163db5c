/* What URLs say: addresses, the header Host, Amazon's regions and streams. */
#include "dynamo/internal.h"
#include "unit/test.h"

struct parsed {
    bool fine;
    struct endpoint endpoint;
    struct arena arena;
    char error[300];
};

static void parse(struct parsed *parsed, const char *url)
{
    *parsed = (struct parsed){0};
    parsed->fine = endpoint_parse(url, &parsed->arena, &parsed->endpoint, parsed->error,
                                  sizeof parsed->error);
}

TEST(an_endpoint_by_host_and_port)
{
    struct parsed parsed;
    parse(&parsed, "http://127.0.0.1:8000");
    CHECK(parsed.fine && !parsed.endpoint.is_amazon);
    CHECK_TEXT(slice_of(parsed.endpoint.url), "http://127.0.0.1:8000/");
    CHECK_TEXT(slice_of(parsed.endpoint.host), "127.0.0.1:8000");
    CHECK_TEXT(slice_of(parsed.endpoint.path), "/");
    CHECK_TEXT(slice_of(parsed.endpoint.stream_url), "http://127.0.0.1:8000/");
    CHECK_TEXT(parsed.endpoint.region, "");
    arena_free(&parsed.arena);
}

TEST(usual_ports_are_not_in_the_host_header)
{
    struct parsed parsed;
    parse(&parsed, "https://db.example.org:443/x/y");
    CHECK_TEXT(slice_of(parsed.endpoint.host), "db.example.org");
    CHECK_TEXT(slice_of(parsed.endpoint.url), "https://db.example.org/x/y");
    CHECK_TEXT(slice_of(parsed.endpoint.path), "/x/y");
    arena_free(&parsed.arena);
    parse(&parsed, "http://db.example.org:443");
    CHECK_TEXT(slice_of(parsed.endpoint.host), "db.example.org:443");
    arena_free(&parsed.arena);
    parse(&parsed, "http://[::1]:8000/");
    CHECK_TEXT(slice_of(parsed.endpoint.host), "[::1]:8000");
    arena_free(&parsed.arena);
}

static void check_amazon(const char *host, const char *region, const char *stream_host)
{
    struct parsed parsed;
    struct buf url = {0};
    buf_printf(&url, "https://%s", host);
    buf_byte(&url, '\0');
    parse(&parsed, url.data);
    CHECK(parsed.fine && parsed.endpoint.is_amazon);
    CHECK_TEXT(parsed.endpoint.region, region);
    CHECK_TEXT(slice_of(parsed.endpoint.stream_host), stream_host);
    arena_free(&parsed.arena);
    buf_free(&url);
}

TEST(amazons_names_tell_region_and_streams)
{
    check_amazon("dynamodb.eu-west-1.amazonaws.com", "eu-west-1", "streams.dynamodb.eu-west-1.amazonaws.com");
    check_amazon("dynamodb.cn-north-1.amazonaws.com.cn", "cn-north-1",
                 "streams.dynamodb.cn-north-1.amazonaws.com.cn");
    check_amazon("dynamodb-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1",
                 "streams.dynamodb-fips.us-gov-west-1.amazonaws.com");
    check_amazon("123456789012.ddb.us-east-2.amazonaws.com", "us-east-2",
                 "streams.dynamodb.us-east-2.amazonaws.com");
    check_amazon("dynamodb.ap-south-1.api.aws", "ap-south-1", "streams-dynamodb.ap-south-1.api.aws");
    check_amazon("vpce-0a1b-2c.dynamodb.us-west-2.vpce.amazonaws.com", "us-west-2",
                 "vpce-0a1b-2c.dynamodb.us-west-2.vpce.amazonaws.com");
    check_amazon("streams.dynamodb.eu-west-1.amazonaws.com", "eu-west-1",
                 "streams.dynamodb.eu-west-1.amazonaws.com");
    check_amazon("dynamodb.amazonaws.com", "us-east-1", "streams.dynamodb.amazonaws.com");
}

TEST(names_that_only_look_like_amazons)
{
    struct parsed parsed;
    parse(&parsed, "https://dynamodb.eu-west-1.amazonaws.com.example.org");
    CHECK(parsed.fine && !parsed.endpoint.is_amazon);
    arena_free(&parsed.arena);
    parse(&parsed, "https://amazonaws.com");
    CHECK(parsed.fine && !parsed.endpoint.is_amazon);
    arena_free(&parsed.arena);
}

TEST(urls_that_cannot_be_called)
{
    static const char *const urls[] = {
        "http://",           "http://:8000",   "http://host:port", "http://host:0",
        "http://host:65536", "http://host:",   "http://user@host", "http://host/?a=b",
        "http://host/a b",   "http://host#x",  "http://[::1]8000", "http://ho\rst",
        "http://h o",        "http://[::1\n]", "http://host/%41",  "http:///x",
    };
    struct parsed parsed;
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        parse(&parsed, urls[i]);
        if (parsed.fine || !strstr(parsed.error, urls[i]))
            test_failed(__FILE__, __LINE__, "%s: %s", urls[i], parsed.error);
        arena_free(&parsed.arena);
    }
}
