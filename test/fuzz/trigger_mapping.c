/* Any text as the body of a create or update (the first byte says which), and the same text as an item of the
 * table: it is refused with a type and a sentence, or what comes out of it can be stored, read back and told.
 */
#include "base/fail.h"
#include "base/raw.h"
#include "trigger/mapping.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Items and settings are each made of the other. */
static void check_stored(const struct settings *settings, struct arena *arena)
{
    struct buf first = {0}, second = {0};
    struct settings again;
    put_mapping_item(&first, settings);
    ensure(raw_is_json(arena, buf_view(&first)) && mapping_item_parse(buf_view(&first), arena, &again));
    put_mapping_item(&second, &again);
    ensure(slice_equal(buf_view(&first), buf_view(&second)));
    buf_free(&first);
    buf_free(&second);
}

static void check_told(const struct settings *settings, struct arena *arena)
{
    struct trigger trigger = {.region = SLICE("us-east-1"), .account = SLICE("000000000000")};
    struct mapping_view view = {settings, MAPPING_ENABLED, "OK"};
    struct json_reader reader;
    struct buf out = {0};
    put_mapping(&out, &trigger, &view);
    json_begin(&reader, buf_view(&out), arena);
    ensure(json_skip(&reader) && json_done(&reader));
    buf_free(&out);
}

static void check_body(struct slice body, bool is_create, struct arena *arena)
{
    struct mapping_request request;
    struct refusal refusal = {0};
    struct settings settings;
    char error[200];
    struct rest_call call = {.body = body, .arena = arena};
    if (!mapping_request_parse(&call, is_create, &request, &refusal)) {
        ensure(refusal.status == 400 && refusal.type && refusal.message.len);
        return;
    }
    settings_defaults(&settings);
    mapping_request_apply(&request, arena, &settings);
    settings.id = SLICE("14e0db71-1c0e-4c5e-8d0f-6f0e2f1b7a11");
    settings.stream_arn = settings.function = settings.function_arn = SLICE("x");
    settings.tags = node_json(&request.nodes[GIVEN_TAGS], arena);
    settings.revision = 1;
    struct mapping *mapping = mapping_new(&settings, error, sizeof error);
    ensure(mapping != NULL);
    mapping_release(mapping);
    check_stored(&settings, arena);
    check_told(&settings, arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    struct arena arena = {0};
    struct slice text = {(const char *)data + 1, size - 1};
    struct settings settings;
    check_body(text, data[0] & 1, &arena);
    /* Items come from the door, which writes JSON. */
    if (raw_is_json(&arena, text) && mapping_item_parse(text, &arena, &settings)) {
        check_stored(&settings, &arena);
        check_told(&settings, &arena);
    }
    arena_free(&arena);
    return 0;
}
