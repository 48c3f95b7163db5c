/* Expressions with names and values in their places; keys and key conditions in their short forms. */
#include "cli/phrase.h"

#include "unit/test.h"

static struct arena arena;
static struct phrases phrases;
static struct buf out;

static void begin(void)
{
    phrases = phrases_of_request(&arena);
    out.len = 0;
}

static void finish(void)
{
    phrases_free(&phrases);
    buf_free(&out);
    arena_free(&arena);
}

/* The expression, a space, and what it refers to. */
static struct slice read_as(const char *text)
{
    phrases_free(&phrases);
    begin();
    if (!phrase_put(&out, &phrases, slice_of(text))) {
        out.len = 0;
        buf_printf(&out, "refused: %s", phrases.fault);
        return buf_view(&out);
    }
    buf_text(&out, " {");
    phrases_put_members(&out, &phrases);
    buf_byte(&out, '}');
    return buf_view(&out);
}

#define NAMES  "\"ExpressionAttributeNames\":"
#define VALUES "\"ExpressionAttributeValues\":"

TEST(phrase_names_and_values)
{
    CHECK_TEXT(read_as("Year >= 1960 and contains(tags, \"jazz\")"),
               "#Year >= :v1 and contains(#tags, :v2) {" NAMES
               "{\"#tags\":\"tags\",\"#Year\":\"Year\"}," VALUES
               "{\":v1\":{\"N\":\"1960\"},\":v2\":{\"S\":\"jazz\"}}}");
    CHECK_TEXT(read_as("SET plays = if_not_exists(plays, 0) + 1 REMOVE a.b[0].c"),
               "SET #plays = if_not_exists(#plays, :v1) + :v2 REMOVE #a.#b[0].#c {" NAMES
               "{\"#c\":\"c\",\"#b\":\"b\",\"#a\":\"a\",\"#plays\":\"plays\"}," VALUES
               "{\":v1\":{\"N\":\"0\"},\":v2\":{\"N\":\"1\"}}}");
    CHECK_TEXT(read_as("attribute_exists (a) AND NOT b"),
               "attribute_exists (#a) AND NOT #b {" NAMES "{\"#b\":\"b\",\"#a\":\"a\"}}");
    CHECK_TEXT(read_as(""), " {}");
    finish();
}

TEST(phrase_minus_is_a_sign_or_an_operator)
{
    CHECK_TEXT(read_as("a = -1"), "#a = :v1 {" NAMES "{\"#a\":\"a\"}," VALUES "{\":v1\":{\"N\":\"-1\"}}}");
    CHECK_TEXT(read_as("a - 1"), "#a - :v1 {" NAMES "{\"#a\":\"a\"}," VALUES "{\":v1\":{\"N\":\"1\"}}}");
    CHECK_TEXT(read_as("a - -1"), "#a - :v1 {" NAMES "{\"#a\":\"a\"}," VALUES "{\":v1\":{\"N\":\"-1\"}}}");
    CHECK_TEXT(read_as("f(a)-1"), "f(#a)-:v1 {" NAMES "{\"#a\":\"a\"}," VALUES "{\":v1\":{\"N\":\"1\"}}}");
    CHECK_TEXT(read_as("a BETWEEN -2 AND -1"), "#a BETWEEN :v1 AND :v2 {" NAMES "{\"#a\":\"a\"}," VALUES
                                               "{\":v1\":{\"N\":\"-2\"},\":v2\":{\"N\":\"-1\"}}}");
    finish();
}

TEST(phrase_brackets_are_an_index_or_a_list)
{
    CHECK_TEXT(read_as("SET l = list_append(l, [1,\"x\"]), m[3] = [2]"),
               "SET #l = list_append(#l, :v1), #m[3] = :v2 {" NAMES "{\"#m\":\"m\",\"#l\":\"l\"}," VALUES
               "{\":v1\":{\"L\":[{\"N\":\"1\"},{\"S\":\"x\"}]},\":v2\":{\"L\":[{\"N\":\"2\"}]}}}");
    CHECK_TEXT(read_as("ADD t {\"$set\":[\"a\"]}"),
               "ADD #t :v1 {" NAMES "{\"#t\":\"t\"}," VALUES "{\":v1\":{\"SS\":[\"a\"]}}}");
    CHECK_TEXT(read_as("a[x] = 1"), "refused: a place in a list is written [number]: [x] = 1");
    finish();
}

TEST(phrase_texts_and_odd_names)
{
    CHECK_TEXT(read_as("a = 'it''s'"),
               "#a = :v1 {" NAMES "{\"#a\":\"a\"}," VALUES "{\":v1\":{\"S\":\"it's\"}}}");
    CHECK_TEXT(read_as("`odd name` = true"),
               "#_1_ = :v1 {" NAMES "{\"#_1_\":\"odd name\"}," VALUES "{\":v1\":{\"BOOL\":true}}}");
    CHECK_TEXT(read_as("_x = null"),
               "#_1_ = :v1 {" NAMES "{\"#_1_\":\"_x\"}," VALUES "{\":v1\":{\"NULL\":true}}}");
    CHECK_TEXT(read_as("`set` = a.true"),
               "#set = #a.#true {" NAMES "{\"#true\":\"true\",\"#a\":\"a\",\"#set\":\"set\"}}");
    CHECK_TEXT(read_as("a = 'open"), "refused: a quote is not closed: 'open");
    CHECK_TEXT(read_as("a = \"open"), "refused: this value cannot be read: \"open");
    CHECK_TEXT(read_as("a = :x"), "refused: write names and values where they belong, without # and :: :x");
    CHECK_TEXT(read_as("#a = 1"),
               "refused: write names and values where they belong, without # and :: #a = 1");
    CHECK_TEXT(
        read_as("a = {\"$set\":[]}"),
        "refused: \"$set\" needs a list of strings, of numbers or of {\"$binary\":...}: {\"$set\":[]}");
    finish();
}

TEST(phrase_paths)
{
    begin();
    CHECK(phrase_put_paths(&out, &phrases, SLICE("Song, set,tags[0].x,`a b`")));
    CHECK_TEXT(buf_view(&out), "#Song, #set,#tags[0].#x,#_5_");
    CHECK(!phrase_put_paths(&out, &phrases, SLICE("a = 1")));
    CHECK(!phrase_put_paths(&out, &phrases, SLICE("size(a)")));
    finish();
}

static const struct schema music = {.table = "Music",
                                    .hash = {{"Artist", 6}, 'S'},
                                    .range = {{"No", 2}, 'N'},
                                    .searched = {{{{"Artist", 6}, 'S'}, {{"No", 2}, 'N'}}, 1, 2}};
static const struct schema texts = {.table = "Texts",
                                    .hash = {{"id", 2}, 'B'},
                                    .index = "by-name",
                                    .searched = {{{{"kind", 4}, 'S'}, {{"name", 4}, 'S'}}, 1, 2}};
static const struct schema places = {
    .table = "Places",
    .index = "by-place",
    .searched = {{{{"land", 4}, 'S'}, {{"town", 4}, 'S'}, {{"year", 4}, 'N'}, {{"day", 3}, 'N'}}, 2, 4}};

static struct slice key_of(const struct schema *schema, const char *hash, const char *range)
{
    phrases_free(&phrases);
    begin();
    if (phrase_key(&out, &phrases, schema, hash, range)) return buf_view(&out);
    return slice_of(phrases.fault);
}

TEST(phrase_keys_are_typed_by_the_table)
{
    CHECK_TEXT(key_of(&music, "Nina", "12"), "{\"Artist\":{\"S\":\"Nina\"},\"No\":{\"N\":\"12\"}}");
    CHECK_TEXT(key_of(&music, "12", "-1.5e3"), "{\"Artist\":{\"S\":\"12\"},\"No\":{\"N\":\"-1.5e3\"}}");
    CHECK_TEXT(key_of(&music, "Nina", "x"), "the key No is a number, and 'x' is none");
    CHECK_TEXT(key_of(&music, "Nina", ""), "the key No is a number, and '' is none");
    CHECK_TEXT(key_of(&music, "Nina", NULL), "the table 'Music' has two keys: Artist and No");
    CHECK_TEXT(key_of(&texts, "AQI=", NULL), "{\"id\":{\"B\":\"AQI=\"}}");
    CHECK_TEXT(key_of(&texts, "A", NULL), "the key id is binary, written in base64, and 'A' is none");
    CHECK_TEXT(key_of(&texts, "AQI=", "x"), "the table 'Texts' has one key: id");
    CHECK_TEXT(key_of(&music, "\xff", "1"), "the key Artist is a text in UTF-8, and 'this' is none");
    finish();
}

static struct slice condition_of(const struct schema *schema, const char *range)
{
    phrases_free(&phrases);
    begin();
    const char *words[] = {"h", range};
    if (!phrase_key_condition(&out, &phrases, schema, words, range ? 2 : 1)) return slice_of(phrases.fault);
    buf_byte(&out, ' ');
    buf_slice(&out, buf_view(&phrases.values));
    return buf_view(&out);
}

#define HASH_S "\":v1\":{\"S\":\"h\"}"

TEST(phrase_key_conditions)
{
    CHECK_TEXT(condition_of(&music, NULL), "#Artist = :v1 " HASH_S);
    CHECK_TEXT(condition_of(&music, "5"), "#Artist = :v1 AND #No = :v2 " HASH_S ",\":v2\":{\"N\":\"5\"}");
    CHECK_TEXT(condition_of(&music, "= 5"), "#Artist = :v1 AND #No = :v2 " HASH_S ",\":v2\":{\"N\":\"5\"}");
    CHECK_TEXT(condition_of(&music, ">= 5"), "#Artist = :v1 AND #No >= :v2 " HASH_S ",\":v2\":{\"N\":\"5\"}");
    CHECK_TEXT(condition_of(&music, "<-5"), "#Artist = :v1 AND #No < :v2 " HASH_S ",\":v2\":{\"N\":\"-5\"}");
    CHECK_TEXT(condition_of(&music, "1.5..20"), "#Artist = :v1 AND #No BETWEEN :v2 AND :v3 " HASH_S
                                                ",\":v2\":{\"N\":\"1.5\"},\":v3\":{\"N\":\"20\"}");
    CHECK_TEXT(condition_of(&texts, "F*"),
               "#kind = :v1 AND begins_with(#name, :v2) " HASH_S ",\":v2\":{\"S\":\"F\"}");
    CHECK_TEXT(condition_of(&texts, "= F*"), "#kind = :v1 AND #name = :v2 " HASH_S ",\":v2\":{\"S\":\"F*\"}");
    CHECK_TEXT(condition_of(&texts, "*"), "#kind = :v1 AND #name = :v2 " HASH_S ",\":v2\":{\"S\":\"*\"}");
    CHECK_TEXT(condition_of(&texts, "a..b c"), "#kind = :v1 AND #name BETWEEN :v2 AND :v3 " HASH_S
                                               ",\":v2\":{\"S\":\"a\"},\":v3\":{\"S\":\"b c\"}");
    CHECK_TEXT(condition_of(&texts, "= a..b"),
               "#kind = :v1 AND #name = :v2 " HASH_S ",\":v2\":{\"S\":\"a..b\"}");
    CHECK_TEXT(condition_of(&music, "many"), "the key No is a number, and 'many' is none");
    finish();
}

TEST(phrase_keys_of_several_attributes)
{
    const char *words[] = {"Peru", "Cusco", "1532", ">= 11", "more"};
    begin();
    CHECK(phrase_key_condition(&out, &phrases, &places, words, 2));
    CHECK_TEXT(buf_view(&out), "#land = :v1 AND #town = :v2");
    phrases_free(&phrases);
    begin();
    CHECK(phrase_key_condition(&out, &phrases, &places, words, 4));
    CHECK_TEXT(buf_view(&out), "#land = :v1 AND #town = :v2 AND #year = :v3 AND #day >= :v4");
    CHECK(!phrase_key_condition(&out, &phrases, &places, words, 1));
    CHECK_TEXT(slice_of(phrases.fault),
               "the key of by-place is land, town, year?, day?, and 1 value was given");
    CHECK(!phrase_key_condition(&out, &phrases, &places, words, 5));
    CHECK_TEXT(slice_of(phrases.fault),
               "the key of by-place is land, town, year?, day?, and 5 values were given");
    finish();
}
