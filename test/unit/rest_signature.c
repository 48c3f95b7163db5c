/* The check of signatures, against a request that botocore 1.26 signed. */
#include "rest/rest.h"
#include "unit/test.h"

#define TIME_MS 1794719282000 /* 20261115T050802Z */
#define SCOPE   "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261115/eu-west-1/dynamodb/aws4_request, "
#define NAMES   "SignedHeaders=content-type;host;x-amz-date;x-amz-target, "
#define HASH    "Signature=c36a2039841c24cc7b7838ff0fb6fa649c7f14693b7b87850d8749dcd48ecfe4"

static struct http_header headers[] = {
    {SLICE("Host"), SLICE("dynamodb.eu-west-1.amazonaws.com")},
    {SLICE("Content-Type"), SLICE("application/x-amz-json-1.0")},
    {SLICE("X-Amz-Date"), SLICE("20261115T050802Z")},
    {SLICE("X-Amz-Target"), SLICE("DynamoDB_20120810.ListTables")},
    {SLICE("Authorization"), SLICE(SCOPE NAMES HASH)},
};

static const struct rest_head signed_head = {
    .method = SLICE("POST"), .path = SLICE("/"), .headers = headers, .header_count = 5};

static struct keyring *example_keys(void)
{
    struct keyring *keyring = keyring_new();
    keyring_add(keyring, SLICE("AKIDOTHER"), SLICE("another"), SLICE_NONE);
    keyring_add(keyring, SLICE("AKIDEXAMPLE"), SLICE("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"), SLICE_NONE);
    return keyring;
}

/* "" for no fault. */
static struct slice fault_of(struct arena *arena, struct slice body, int64_t now_ms)
{
    struct keyring *keyring = example_keys();
    struct slice message = SLICE_NONE;
    const char *fault = signature_fault(keyring, &signed_head, body, DOOR_DYNAMODB, now_ms, arena, &message, NULL);
    CHECK_INT(fault != NULL, message.len > 0);
    keyring_free(keyring);
    return slice_of(fault ? fault : "");
}

TEST(a_signed_request_is_known)
{
    struct arena arena = {0};
    CHECK_TEXT(fault_of(&arena, SLICE("{}"), TIME_MS), "");
    CHECK_TEXT(fault_of(&arena, SLICE("{ }"), TIME_MS), "InvalidSignatureException");
    arena_free(&arena);
}

TEST(a_signature_is_good_for_a_quarter_of_an_hour)
{
    struct arena arena = {0};
    CHECK_TEXT(fault_of(&arena, SLICE("{}"), TIME_MS + 900000), "");
    CHECK_TEXT(fault_of(&arena, SLICE("{}"), TIME_MS - 900000), "");
    CHECK_TEXT(fault_of(&arena, SLICE("{}"), TIME_MS + 901000), "InvalidSignatureException");
    CHECK_TEXT(fault_of(&arena, SLICE("{}"), TIME_MS - 901000), "InvalidSignatureException");
    arena_free(&arena);
}
