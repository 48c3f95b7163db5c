/* AttributeValues from JSON and back: what is kept, what is said about the rest. */
#include "api/decode.h"
#include "api/shapes.h"
#include "unit/test.h"

/* One value read as an element of a map, or as a field; the reply holds the refusal, if any. */
struct reading {
    struct arena arena;
    struct buf reply;
    struct api api; /* a strict one */
    struct api_call call;
    struct node root;
    bool decoded;
};

enum { HOLDER_MAP, HOLDER_FIELD, HOLDER_LIST };
static const struct shape_member holder_members[] = {
    [HOLDER_MAP] = MEMBER("Item", shape_value_map),
    [HOLDER_FIELD] = MEMBER("Value", shape_attribute_value),
    [HOLDER_LIST] = MEMBER("List", shape_value_list),
};
static const struct shape holder_shape = STRUCT_SHAPE("Holder", holder_members);

static void reading_begin(struct reading *reading, const char *format, const char *value)
{
    *reading = (struct reading){0};
    reading->call.api = &reading->api;
    reading->call.arena = &reading->arena;
    reading->call.reply = &reading->reply;
    reading->call.body = arena_printf(&reading->arena, format, value);
    reading->decoded = request_decode(&reading->call, &holder_shape, &reading->root);
}

static void reading_end(struct reading *reading)
{
    buf_free(&reading->reply);
    arena_free(&reading->arena);
}

static void check_round_trip(const char *value, const char *expected)
{
    struct reading reading;
    struct buf out = {0};
    reading_begin(&reading, "{\"Item\":{\"a\":%s}}", value);
    CHECK(reading.decoded);
    if (reading.decoded) {
        const struct node *node = &node_member(&reading.root, HOLDER_MAP)->entries[0].node;
        CHECK_TEXT(node->fault, "");
        value_put_json(&out, &node->value);
        CHECK_TEXT(buf_view(&out), expected);
    }
    buf_free(&out);
    reading_end(&reading);
}

static void check_fault(const char *value, const char *fault)
{
    struct reading reading;
    reading_begin(&reading, "{\"Item\":{\"a\":%s}}", value);
    CHECK(reading.decoded);
    if (reading.decoded) CHECK_TEXT(node_member(&reading.root, HOLDER_MAP)->entries[0].node.fault, fault);
    reading_end(&reading);
}

static void check_refused(const char *format, const char *value, const char *message)
{
    struct reading reading;
    reading_begin(&reading, format, value);
    CHECK(!reading.decoded);
    struct slice expected = arena_printf(
        &reading.arena, "{\"__type\":\"com.amazon.coral.service#SerializationException\",\"Message\":\"%s\"}",
        message);
    CHECK_TEXT(buf_view(&reading.reply), expected.data);
    reading_end(&reading);
}

TEST(values_round_trip)
{
    const char *same[] = {"{\"S\":\"\"}",
                          "{\"S\":\"x \\\"y\\\" \\n\"}",
                          "{\"N\":\"0\"}",
                          "{\"B\":\"\"}",
                          "{\"B\":\"AP8=\"}",
                          "{\"BOOL\":true}",
                          "{\"BOOL\":false}",
                          "{\"NULL\":true}",
                          "{\"L\":[]}",
                          "{\"M\":{}}",
                          "{\"L\":[{\"S\":\"a\"},{\"N\":\"1\"},{\"L\":[{\"NULL\":true}]}]}",
                          "{\"M\":{\"a\":{\"S\":\"x\"},\"b\":{\"M\":{\"\":{\"N\":\"5\"}}}}}",
                          "{\"SS\":[\"\",\"a\",\"b\"]}",
                          "{\"NS\":[\"-1\",\"2\",\"10\"]}",
                          "{\"BS\":[\"AA==\",\"AQ==\"]}"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) check_round_trip(same[i], same[i]);
}

TEST(values_are_made_canonical)
{
    check_round_trip("{\"N\":\"001.500\"}", "{\"N\":\"1.5\"}");
    check_round_trip("{\"N\":\"1E2\"}", "{\"N\":\"100\"}");
    check_round_trip("{\"NS\":[\"10\",\"2\",\"1E0\"]}", "{\"NS\":[\"1\",\"2\",\"10\"]}");
    check_round_trip("{\"SS\":[\"b\",\"a\"]}", "{\"SS\":[\"a\",\"b\"]}");
    check_round_trip("{\"M\":{\"b\":{\"S\":\"1\"},\"a\":{\"S\":\"2\"}}}",
                     "{\"M\":{\"a\":{\"S\":\"2\"},\"b\":{\"S\":\"1\"}}}");
    check_round_trip("{\"BOOL\":\"yes\"}", "{\"BOOL\":true}");
    check_round_trip("{\"Nonsense\":[1],\"S\":\"a\",\"N\":null}", "{\"S\":\"a\"}");
}

TEST(the_last_of_a_repeated_name_counts)
{
    check_round_trip("{\"S\":\"a\",\"S\":\"b\"}", "{\"S\":\"b\"}");
    check_round_trip("{\"M\":{\"a\":{\"S\":\"1\"},\"b\":{\"S\":\"2\"},\"a\":{\"S\":\"3\"}}}",
                     "{\"M\":{\"a\":{\"S\":\"3\"},\"b\":{\"S\":\"2\"}}}");
}

/* More names than are compared each with each, and repeated ones among them. */
TEST(large_maps_keep_the_last_of_a_repeated_name)
{
    struct reading reading;
    struct buf body = {0};
    enum { NAMES = 300 };
    for (int i = 0; i < 2 * NAMES; i++)
        buf_printf(&body, "%s\"k%d\":{\"N\":\"%d\"}", i ? "," : "{", i * 7 % NAMES, i);
    buf_text(&body, "}");
    buf_byte(&body, 0);
    reading_begin(&reading, "{\"Item\":%s}", body.data);
    const struct node *map = node_member(&reading.root, HOLDER_MAP);
    CHECK_INT(map->count, NAMES);
    for (uint32_t i = 0; i < map->count; i++)
        CHECK_TEXT(map->entries[i].node.value.bytes, arena_printf(&reading.arena, "%d", NAMES + (int)i).data);
    reading_end(&reading);

    reading_begin(&reading, "{\"Value\":{\"M\":%s}}", body.data);
    const struct map *nested = &node_member(&reading.root, HOLDER_FIELD)->value.map;
    CHECK_INT(nested->count, NAMES);
    for (uint32_t i = 1; i < nested->count; i++)
        CHECK(slice_compare(nested->attributes[i - 1].name, nested->attributes[i].name) < 0);
    reading_end(&reading);
    buf_free(&body);
}

TEST(values_without_or_with_many_types)
{
    const char *empty =
        "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes";
    const char *many =
        "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported "
        "datatypes";
    check_fault("{}", empty);
    check_fault("null", empty);
    check_fault("{\"S\":null}", empty);
    check_fault("{\"X\":\"a\"}", empty);
    check_fault("{\"L\":[{}]}", empty);
    check_fault("{\"M\":{\"a\":null}}", empty);
    check_fault("{\"S\":\"a\",\"N\":\"1\"}", many);
    check_fault("{\"L\":[{\"S\":\"a\",\"BOOL\":true}]}", many);
}

TEST(faults_of_numbers)
{
    check_fault("{\"N\":\"\"}", "The parameter cannot be converted to a numeric value");
    check_fault("{\"N\":\"b\"}", "The parameter cannot be converted to a numeric value: b");
    check_fault("{\"NS\":[\"1\",\" 2\"]}", "The parameter cannot be converted to a numeric value:  2");
    check_fault("{\"N\":\"123456789012345678901234567890123456789\"}",
                "Attempting to store more than 38 significant digits in a Number");
    check_fault("{\"N\":\"-1e126\"}",
                "Number overflow. Attempting to store a number with magnitude larger than supported range");
    check_fault("{\"N\":\"1e-131\"}",
                "Number underflow. Attempting to store a number with magnitude smaller than supported range");
    check_fault("{\"S\":\"a\",\"N\":\"b\"}", "The parameter cannot be converted to a numeric value: b");
}

TEST(faults_of_sets_and_null)
{
    const char *invalid = "One or more parameter values were invalid: ";
    struct arena arena = {0};
#define FAULT(text) arena_printf(&arena, "%s%s", invalid, text).data
    check_fault("{\"SS\":[]}", FAULT("An string set  may not be empty"));
    check_fault("{\"NS\":[]}", FAULT("An number set  may not be empty"));
    check_fault("{\"BS\":[]}", FAULT("Binary sets should not be empty"));
    check_fault("{\"SS\":[\"a\",\"b\",\"a\"]}", FAULT("Input collection [a, b, a] contains duplicates."));
    check_fault("{\"NS\":[\"1\",\"1.0\"]}", "Input collection contains duplicates");
    check_fault("{\"BS\":[\"AQ==\",\"AQ==\"]}",
                FAULT("Input collection [AQ==, AQ==]of type BS contains duplicates."));
    check_fault("{\"SS\":[null]}", FAULT("An string set may not have a null string as a member"));
    check_fault("{\"NS\":[\"2\",null,\"1\"]}", "The parameter cannot be converted to a numeric value");
    check_fault("{\"NULL\":false}", FAULT("Null attribute value types must have the value of true"));
    check_fault("{\"NULL\":\"no\"}", FAULT("Null attribute value types must have the value of true"));
#undef FAULT
    arena_free(&arena);
}

static void put_nested(struct buf *out, unsigned levels)
{
    for (unsigned i = 0; i < levels; i++) buf_text(out, "{\"L\":[");
    buf_text(out, "{\"S\":\"x\"}");
    for (unsigned i = 0; i < levels; i++) buf_text(out, "]}");
    buf_byte(out, 0);
}

TEST(values_may_nest_31_levels_deep)
{
    struct buf json = {0};
    put_nested(&json, 31);
    check_round_trip(json.data, json.data);
    json.len = 0;
    put_nested(&json, 32);
    check_fault(
        json.data,
        "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond "
        "supported limit");
    buf_free(&json);
}

TEST(wrong_types_inside_values_are_refused)
{
    const char *in_map = "{\"Item\":{\"a\":%s}}";
    check_refused(in_map, "{\"S\":5}", "NUMBER_VALUE cannot be converted to String");
    check_refused(in_map, "{\"N\":5}", "NUMBER_VALUE cannot be converted to String");
    check_refused(in_map, "{\"S\":[]}", "Unrecognized collection type class java.lang.String");
    check_refused(in_map, "{\"BOOL\":[]}", "Unrecognized collection type class java.lang.Boolean");
    check_refused(in_map, "{\"NULL\":5}", "NUMBER_VALUE cannot be converted to Boolean");
    check_refused(in_map, "{\"B\":true}", "only base-64-encoded strings are convertible to bytes");
    check_refused(in_map, "{\"B\":[]}", "Unrecognized collection type class java.nio.ByteBuffer");
    check_refused(in_map, "{\"B\":{}}", "Start of structure or map found where not expected");
    check_refused(in_map, "{\"B\":\"23456\"}",
                  "Base64 encoded length is expected a multiple of 4 bytes but found: 5");
    check_refused(in_map, "{\"B\":\"+/+=\"}", "Invalid last non-pad Base64 character dectected");
    check_refused(in_map, "{\"BS\":[\"=+/=\"]}", "Invalid last non-pad Base64 character dectected");
    check_refused(in_map, "{\"SS\":\"a\"}", "Unexpected field type");
    check_refused(in_map, "{\"L\":{}}", "Start of structure or map found where not expected");
    check_refused(in_map, "{\"M\":[]}",
                  "Unrecognized collection type java.util.Map<java.lang.String, "
                  "com.amazonaws.dynamodb.v20120810.AttributeValue>");
    check_refused(in_map, "{\"M\":5}", "Unexpected field type");
    check_refused(in_map, "{\"L\":[5]}", "Unexpected value type in payload");
    check_refused(in_map, "{\"L\":[[]]}",
                  "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.AttributeValue");
}

TEST(values_as_elements_and_as_fields)
{
    const char *in_map = "{\"Item\":{\"a\":%s}}", *as_field = "{\"Value\":%s}";
    check_refused(in_map, "5", "Unexpected value type in payload");
    check_refused(as_field, "5", "Unexpected field type");
    check_refused(in_map, "[]",
                  "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.AttributeValue");
    check_refused(as_field, "[]",
                  "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.AttributeValue");
    check_refused("{\"Item\":%s}", "[]",
                  "Unrecognized collection type java.util.Map<java.lang.String, "
                  "com.amazonaws.dynamodb.v20120810.AttributeValue>");
    check_refused("{\"Item\":%s}", "5", "Unexpected field type");
}

TEST(encoded_items_become_json)
{
    struct arena arena = {0};
    struct buf encoded = {0}, out = {0}, again = {0};
    struct map item = {arena_array(&arena, struct attribute, 300), 300};
    struct slice duplicate;
    for (uint32_t i = 0; i < item.count; i++)
        item.attributes[i] = (struct attribute){arena_printf(&arena, "k%03u", i),
                                                {.type = VALUE_N, .bytes = arena_printf(&arena, "%u", i)}};
    CHECK(map_sort(&item, &duplicate));
    item_encode(&encoded, &item);
    CHECK(api_put_encoded_item_json(&out, buf_view(&encoded)));
    api_put_item_json(&again, &item);
    CHECK(slice_equal(buf_view(&out), buf_view(&again)));
    CHECK(slice_starts(buf_view(&out), SLICE("{\"k000\":{\"N\":\"0\"},\"k001\":{\"N\":\"1\"},")));
    out.len = 0;
    CHECK(!api_put_encoded_item_json(&out, (struct slice){encoded.data, encoded.len - 1}));
    CHECK_INT(out.len, 0);
    buf_free(&encoded);
    buf_free(&out);
    buf_free(&again);
    arena_free(&arena);
}
