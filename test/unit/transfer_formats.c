/* Records of objects: JSON lines, Ion, CSV, packed or not, whole or in pieces of any size. */
#include <zlib.h>
#include <zstd.h>

#include "unit/test.h"
#include "unit/transfer_text.h"

/* All items, with a line end behind each; faults as "BAD: ..." and "STOP: ...". */
static void read_all(struct buf *out, struct slice text, size_t piece,
                     struct transfer_records_options options)
{
    struct transfer_records *records = open_text(text, piece, options);
    struct slice item;
    const char *fault;
    enum transfer_result result;
    while ((result = transfer_records_next(records, &item, &fault)) != TRANSFER_END) {
        if (result == TRANSFER_FOUND)
            buf_slice(out, item);
        else
            buf_printf(out, "%s: %s", result == TRANSFER_BAD ? "BAD" : "STOP", fault);
        buf_byte(out, '\n');
    }
    transfer_records_close(records);
}

/* However the bytes come in, the items are the same. */
static void check_items(const char *text, struct transfer_records_options options, const char *expected)
{
    static const size_t pieces[] = {1, 2, 3, 7, 1000};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        struct buf out = {0};
        read_all(&out, slice_of(text), pieces[i], options);
        CHECK_TEXT(buf_view(&out), expected);
        buf_free(&out);
    }
}

static const struct transfer_records_options json = {.format = TRANSFER_JSON}, ion = {.format = TRANSFER_ION},
                                             csv = {.format = TRANSFER_CSV};

TEST(lines_of_json_are_items)
{
    check_items("{\"Item\":{\"a\":{\"S\":\"x\"}}}\n\n  {\"Item\": {\"a\":{\"N\":\"1\"}} } \r\n{\"Item\":{}}",
                json, "{\"a\":{\"S\":\"x\"}}\n{\"a\":{\"N\":\"1\"}}\n{}\n");
    check_items("", json, "");
    check_items(
        "{\"Other\":1}\n[]\n{\"Item\":5}\n{\"Item\":{}}\n", json,
        "BAD: there is no Item in it\nBAD: there is no Item in it\nBAD: there is no Item in it\n{}\n");
}

TEST(a_line_that_is_no_json_ends_its_object)
{
    check_items("{\"Item\":{}}\n{\"Item\":\n{\"Item\":{}}\n", json, "{}\nSTOP: a line is not JSON\n");
}

TEST(a_record_without_end_is_refused_in_bounded_memory)
{
    struct buf text = {0}, out = {0};
    buf_text(&text, "{\"Item\":{\"a\":{\"S\":\"");
    for (size_t i = 0; i < LIMIT_TRANSFER_RECORD_BYTES / 1000 + 200; i++)
        for (int k = 0; k < 1000; k++) buf_byte(&text, 'x');
    read_all(&out, buf_view(&text), 60000, json);
    CHECK_TEXT(buf_view(&out), "STOP: a record is too long\n");
    buf_free(&text);
    buf_free(&out);
}

/* ---- Ion ---- */

TEST(ion_as_the_service_exports_it)
{
    check_items(
        "$ion_1_0 {Item:{pk:\"a\",n:103.,ss:$dynamodb_SS::[\"x\",\"y\"],b:{{aGk=}},ok:true}}\n"
        "$ion_1_0 {Item:{ns:$dynamodb_NS::[1.,-2.5],bs:$dynamodb_BS::[{{YQ==}}],l:[1.5,null,[]],m:{}}}\n",
        ion,
        "{\"pk\":{\"S\":\"a\"},\"n\":{\"N\":\"103\"},\"ss\":{\"SS\":[\"x\",\"y\"]},\"b\":{\"B\":\"aGk=\"},"
        "\"ok\":{\"BOOL\":true}}\n"
        "{\"ns\":{\"NS\":[\"1\",\"-2.5\"]},\"bs\":{\"BS\":[\"YQ==\"]},\"l\":{\"L\":[{\"N\":\"1.5\"},"
        "{\"NULL\":true},{\"L\":[]}]},\"m\":{\"M\":{}}}\n");
}

TEST(ion_as_people_write_it)
{
    check_items(
        "// a comment with { and '\n$ion_1_0\n/* another } */ {\n  'Item' : { \"q k\" : '''a\n'b''' '''c''', "
        "/* } */ i: 1_000, h:0x1F, d: 1.5d3, e:-2e-1,\n x: note::\"\\u00e4\\\"}\\x41\\\n\", b:{{ a Gk =\n//8= }},"
        " z: null.string, }\n}\n{Item:{}} // the end {\n",
        ion,
        "{\"q k\":{\"S\":\"a\\n'bc\"},\"i\":{\"N\":\"1000\"},\"h\":{\"N\":\"31\"},\"d\":{\"N\":\"1.5E3\"},"
        "\"e\":{\"N\":\"-2E-1\"},\"x\":{\"S\":\"\xc3\xa4\\\"}A\"},\"b\":{\"B\":\"aGk=//8=\"},"
        "\"z\":{\"NULL\":true}}\n{}\n");
}

TEST(ion_that_dynamodb_has_no_type_for)
{
    check_items("{Item:{a:symbol}}", ion, "BAD: DynamoDB has no type for an Ion symbol\n");
    check_items("{Item:{a:'symbol'}}", ion, "BAD: DynamoDB has no type for an Ion symbol\n");
    check_items("{Item:{a:2020-01-01T}}", ion, "BAD: DynamoDB has no type for an Ion timestamp\n");
    check_items("{Item:{a:(+ 1 2)}}", ion, "BAD: DynamoDB has no type for an Ion expression\n");
    check_items("{Item:{a:{{\"clob\"}}}}", ion, "BAD: DynamoDB has no type for an Ion clob\n");
    check_items("{Item:{a:+inf}}", ion, "BAD: DynamoDB has no infinite numbers\n");
    check_items("{Item:{a:$dynamodb_SS::[1.]}}", ion,
                "BAD: a member of a set has another type than the set\n");
    check_items("{Items:{}}", ion, "BAD: there is no Item in it\n");
    /* As in JSON, the next item may be fine. */
    check_items("{Item:{a:[b, {c:1}]}} {Item:{a:1}}\n{Item:{a:(x \"}\")}}{Item:{a:2}}", ion,
                "BAD: DynamoDB has no type for an Ion symbol\n{\"a\":{\"N\":\"1\"}}\n"
                "BAD: DynamoDB has no type for an Ion expression\n{\"a\":{\"N\":\"2\"}}\n");
    check_items("{Item:{a:\"x\"", ion, "STOP: a comma is missing in a struct\n");
}

TEST(a_mark_of_the_byte_order_means_nothing)
{
    check_items("\xef\xbb\xbf{\"Item\":{\"a\":{\"N\":\"1\"}}}\n", json, "{\"a\":{\"N\":\"1\"}}\n");
    check_items("{\"Item\":{}}\n\xef\xbb\xbf{\"Item\":{}}\n", json, "{}\nSTOP: a line is not JSON\n");
}

TEST(ion_nested_too_deeply_is_refused)
{
    struct buf text = {0}, out = {0};
    buf_text(&text, "{Item:{a:");
    for (int i = 0; i < 100000; i++) buf_byte(&text, '[');
    read_all(&out, buf_view(&text), 1000, ion);
    CHECK_TEXT(buf_view(&out), "STOP: it is nested too deeply\n");
    text.len = out.len = 0;
    buf_text(&text, "{Item:{a:");
    for (int i = 0; i < 100000; i++) buf_text(&text, "x::");
    read_all(&out, buf_view(&text), 1000, ion);
    CHECK_TEXT(buf_view(&out), "STOP: it is nested too deeply\n");
    buf_free(&text);
    buf_free(&out);
}

TEST(ion_is_read_as_it_was_written)
{
    struct slice strings[] = {SLICE("a\"\\'\n\x01"), SLICE("z")}, numbers[] = {SLICE("-1.5"), SLICE("10")};
    struct value elements[] = {{.type = VALUE_NULL}, {.type = VALUE_BOOL, .truth = true}};
    struct attribute attributes[] = {
        {SLICE("$10"), {.type = VALUE_B, .bytes = SLICE("\xff\x00")}},
        {SLICE("it's"), {.type = VALUE_S, .bytes = SLICE("\xc3\xa4 '''")}},
        {SLICE("l"), {.type = VALUE_L, .count = 2, .elements = elements}},
        {SLICE("ns"), {.type = VALUE_NS, .count = 2, .members = numbers}},
        {SLICE("null"), {.type = VALUE_N, .bytes = SLICE("103")}},
        {SLICE("ss"), {.type = VALUE_SS, .count = 2, .members = strings}},
    };
    struct buf line = {0}, out = {0};
    ion_item_put(&line, &(struct map){attributes, 6});
    CHECK_TEXT(buf_view(&line),
               "$ion_1_0 {Item:{'$10':{{/wA=}},'it\\'s':\"\xc3\xa4 '''\",l:[null,true],"
               "ns:$dynamodb_NS::[-1.5,10.],'null':103.,ss:$dynamodb_SS::[\"a\\\"\\\\'\\n\\x01\","
               "\"z\"]}}\n");
    read_all(&out, buf_view(&line), 5, ion);
    CHECK_TEXT(buf_view(&out),
               "{\"$10\":{\"B\":\"/wA=\"},\"it's\":{\"S\":\"\xc3\xa4 '''\"},\"l\":{\"L\":["
               "{\"NULL\":true},{\"BOOL\":true}]},\"ns\":{\"NS\":[\"-1.5\",\"10\"]},\"null\":{\"N\":"
               "\"103\"},\"ss\":{\"SS\":[\"a\\\"\\\\'\\n\\u0001\",\"z\"]}}\n");
    buf_free(&line);
    buf_free(&out);
}

/* ---- CSV ---- */

TEST(csv_with_a_header)
{
    check_items(
        "\xef\xbb\xbfid,\"na,me\",note\r\n1,\"a \"\"b\"\"\n,c\",5\" pipe\r\n\r\n2,,\n3\n", csv,
        "{\"id\":{\"S\":\"1\"},\"na,me\":{\"S\":\"a \\\"b\\\"\\n,c\"},\"note\":{\"S\":\"5\\\" pipe\"}}\n"
        "{\"id\":{\"S\":\"2\"},\"na,me\":{\"S\":\"\"},\"note\":{\"S\":\"\"}}\n{\"id\":{\"S\":\"3\"}}\n");
    check_items("id\n1,2\n3\n", csv,
                "BAD: the row has more fields than there are columns\n{\"id\":{\"S\":\"3\"}}\n");
    check_items("id\n\"1\n2\n", csv, "STOP: a quote is not closed\n");
    check_items("id\n\"1\"x\n2\n", csv, "STOP: text stands behind a closed quote\n");
}

TEST(csv_with_names_types_and_another_delimiter)
{
    static const struct slice names[] = {SLICE("id"), SLICE("n")};
    static const struct transfer_column types[] = {{SLICE("n"), VALUE_N}};
    struct transfer_records_options options = {.format = TRANSFER_CSV,
                                               .delimiter = '\t',
                                               .names = names,
                                               .name_count = 2,
                                               .types = types,
                                               .type_count = 1};
    check_items("a,b\t5\nc\t\n", options,
                "{\"id\":{\"S\":\"a,b\"},\"n\":{\"N\":\"5\"}}\n{\"id\":{\"S\":\"c\"},\"n\":{\"N\":\"\"}}\n");
}

/* ---- packed ---- */

static void gzip_member(struct buf *out, const char *text)
{
    z_stream zlib = {0};
    CHECK_INT(deflateInit2(&zlib, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t room = deflateBound(&zlib, strlen(text));
    buf_reserve(out, room);
    zlib.next_in = (Bytef *)(uintptr_t)text;
    zlib.avail_in = (uInt)strlen(text);
    zlib.next_out = (Bytef *)out->data + out->len;
    zlib.avail_out = (uInt)room;
    CHECK_INT(deflate(&zlib, Z_FINISH), Z_STREAM_END);
    out->len += room - zlib.avail_out;
    deflateEnd(&zlib);
}

static void check_packed(struct slice packed, enum transfer_compression compression, const char *expected)
{
    static const size_t pieces[] = {1, 5, 100000};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        struct buf out = {0};
        read_all(&out, packed, pieces[i], (struct transfer_records_options){.compression = compression});
        CHECK_TEXT(buf_view(&out), expected);
        buf_free(&out);
    }
}

TEST(gzip_of_several_members)
{
    struct buf packed = {0};
    gzip_member(&packed, "{\"Item\":{\"a\":{\"S\":\"x\"}}}\n{\"It");
    gzip_member(&packed, "");
    gzip_member(&packed, "em\":{}}\n");
    check_packed(buf_view(&packed), TRANSFER_GZIP, "{\"a\":{\"S\":\"x\"}}\n{}\n");
    check_packed((struct slice){packed.data, packed.len - 9}, TRANSFER_GZIP,
                 "{\"a\":{\"S\":\"x\"}}\n{}\nSTOP: it is cut off\n");
    check_packed(SLICE("not packed at all"), TRANSFER_GZIP, "STOP: it is not gzip, or damaged\n");
    check_packed(SLICE(""), TRANSFER_GZIP, "");
    buf_free(&packed);
}

TEST(zstandard_frames)
{
    const char *text = "{\"Item\":{}}\n";
    char packed[400];
    size_t len = ZSTD_compress(packed, sizeof packed, text, strlen(text), 3);
    len += ZSTD_compress(packed + len, sizeof packed - len, text, strlen(text), 3);
    check_packed((struct slice){packed, len}, TRANSFER_ZSTD, "{}\n{}\n");
    check_packed((struct slice){packed, len - 3}, TRANSFER_ZSTD, "{}\nSTOP: it is cut off\n");
    check_packed(SLICE("not packed at all"), TRANSFER_ZSTD, "STOP: it is not Zstandard, or damaged\n");
}
