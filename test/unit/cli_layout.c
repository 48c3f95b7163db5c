/* Columns, widths, and numbers for people; tables in a few words; values read from files. */
#include "cli/layout.h"

#include <stdio.h>

#include "base/limits.h"
#include "cli/table_spec.h"
#include "cli/values.h"
#include "unit/test.h"

static struct arena arena;
static struct buf out;

static void finish(void)
{
    buf_free(&out);
    arena_free(&arena);
}

TEST(text_widths)
{
    CHECK_INT(text_width(SLICE("")), 0);
    CHECK_INT(text_width(SLICE("abc")), 3);
    CHECK_INT(text_width(SLICE("\xc3\xa4o\xcc\x88")), 2); /* one letter, and one with an accent of its own */
    CHECK_INT(text_width(SLICE("\xe6\x97\xa5\xe6\x9c\xac")), 4); /* wide */
    CHECK_INT(text_width(SLICE("\xf0\x9f\x98\x80")), 2);
    CHECK_INT(text_width(SLICE("a\xff")), 2); /* malformed: anything, but no crash and no endless loop */
}

TEST(texts_cannot_move_the_cursor)
{
    CHECK_TEXT(text_harmless(&arena, SLICE("a\nb\t\x1b[2J\x7f\xc2\x9b")), "a\\nb\\t\\x1b[2J\\x7f\\x9b");
    CHECK_TEXT(text_harmless(&arena, SLICE("\xc3\xa4")), "\xc3\xa4");
    finish();
}

static struct slice laid_out(const struct slice *cells, size_t rows, size_t columns, size_t width,
                             size_t left_out)
{
    struct grid grid = {.cells = cells, .rows = rows, .columns = columns, .has_head = true, .width = width};
    out.len = 0;
    CHECK_INT(grid_put(&out, &arena, &grid), left_out);
    return buf_view(&out);
}

TEST(grids)
{
    const struct slice cells[] = {SLICE("Name"), SLICE("Plays"), SLICE("Note"), SLICE("Ada"), SLICE("5"),
                                  SLICE("x"),    SLICE("Bob"),   SLICE("1200"), SLICE("")};
    CHECK_TEXT(laid_out(cells, 3, 3, 0, 0), "Name  Plays  Note\n"
                                            "Ada       5  x\n"
                                            "Bob    1200\n");
    finish();
}

TEST(grids_that_are_too_wide_are_cut_at_the_widest)
{
    const struct slice cells[] = {SLICE("Id"),    SLICE("A long heading"),
                                  SLICE("Text"),  SLICE("1"),
                                  SLICE("short"), SLICE("a text that goes on and on and on")};
    CHECK_TEXT(laid_out(cells, 2, 3, 40, 0), "Id  A long heading  Text\n"
                                             " 1  short           a text that goes on\xe2\x80\xa6\n");
    CHECK_TEXT(laid_out(cells, 2, 3, 26, 0), "Id  A long he\xe2\x80\xa6  Text\n"
                                             " 1  short       a text th\xe2\x80\xa6\n");
    CHECK_TEXT(laid_out(cells, 2, 3, 15, 1), "Id  A long hea\xe2\x80\xa6\n"
                                             " 1  short\n");
    finish();
}

TEST(numbers_for_people)
{
    put_grouped(&out, 1234567);
    buf_byte(&out, ' ');
    put_grouped(&out, 999);
    buf_byte(&out, ' ');
    put_bytes(&out, 999);
    buf_byte(&out, ' ');
    put_bytes(&out, 1536);
    buf_byte(&out, ' ');
    put_bytes(&out, 250000000);
    CHECK_TEXT(buf_view(&out), "1,234,567 999 999 B 1.5 kB 250 MB");
    finish();
}

/* ---- tables in a few words ---- */

static struct slice request_of(const struct table_spec *spec)
{
    const char *fault;
    out.len = 0;
    return table_spec_put(&out, &arena, spec, &fault) ? buf_view(&out) : slice_of(fault);
}

TEST(table_specs)
{
    CHECK_TEXT(request_of(&(struct table_spec){.name = "T", .hash = "a:b:S"}),
               "{\"TableName\":\"T\",\"BillingMode\":\"PAY_PER_REQUEST\","
               "\"KeySchema\":[{\"AttributeName\":\"a:b\",\"KeyType\":\"HASH\"}],"
               "\"AttributeDefinitions\":[{\"AttributeName\":\"a:b\",\"AttributeType\":\"S\"}]}");
    CHECK_TEXT(
        request_of(&(struct table_spec){.name = "T",
                                        .hash = "p:s",
                                        .range = "q:N",
                                        .global_indexes = {"g:x:B,q:N=keys", "h:x:B=a,b"},
                                        .local_indexes = {"l:y:S"},
                                        .stream = "new-and-old"}),
        "{\"TableName\":\"T\",\"BillingMode\":\"PAY_PER_REQUEST\","
        "\"KeySchema\":[{\"AttributeName\":\"p\",\"KeyType\":\"HASH\"},"
        "{\"AttributeName\":\"q\",\"KeyType\":\"RANGE\"}],"
        "\"GlobalSecondaryIndexes\":[{\"IndexName\":\"g\","
        "\"KeySchema\":[{\"AttributeName\":\"x\",\"KeyType\":\"HASH\"},"
        "{\"AttributeName\":\"q\",\"KeyType\":\"RANGE\"}],"
        "\"Projection\":{\"ProjectionType\":\"KEYS_ONLY\"}},"
        "{\"IndexName\":\"h\",\"KeySchema\":[{\"AttributeName\":\"x\",\"KeyType\":\"HASH\"}],"
        "\"Projection\":{\"ProjectionType\":\"INCLUDE\",\"NonKeyAttributes\":[\"a\",\"b\"]}}],"
        "\"LocalSecondaryIndexes\":[{\"IndexName\":\"l\","
        "\"KeySchema\":[{\"AttributeName\":\"p\",\"KeyType\":\"HASH\"},"
        "{\"AttributeName\":\"y\",\"KeyType\":\"RANGE\"}],"
        "\"Projection\":{\"ProjectionType\":\"ALL\"}}],"
        "\"StreamSpecification\":{\"StreamEnabled\":true,\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"},"
        "\"AttributeDefinitions\":[{\"AttributeName\":\"p\",\"AttributeType\":\"S\"},"
        "{\"AttributeName\":\"q\",\"AttributeType\":\"N\"},{\"AttributeName\":\"x\",\"AttributeType\":\"B\"},"
        "{\"AttributeName\":\"y\",\"AttributeType\":\"S\"}]}");
    finish();
}

TEST(table_specs_of_keys_with_several_attributes)
{
    CHECK_TEXT(
        request_of(&(struct table_spec){.name = "T", .hash = "p:S", .global_indexes = {"g:a:S+b:N,c:S+d:B"}}),
        "{\"TableName\":\"T\",\"BillingMode\":\"PAY_PER_REQUEST\","
        "\"KeySchema\":[{\"AttributeName\":\"p\",\"KeyType\":\"HASH\"}],"
        "\"GlobalSecondaryIndexes\":[{\"IndexName\":\"g\","
        "\"KeySchema\":[{\"AttributeName\":\"a\",\"KeyType\":\"HASH\"},"
        "{\"AttributeName\":\"b\",\"KeyType\":\"HASH\"},"
        "{\"AttributeName\":\"c\",\"KeyType\":\"RANGE\"},{\"AttributeName\":\"d\",\"KeyType\":\"RANGE\"}],"
        "\"Projection\":{\"ProjectionType\":\"ALL\"}}],"
        "\"AttributeDefinitions\":[{\"AttributeName\":\"p\",\"AttributeType\":\"S\"},"
        "{\"AttributeName\":\"a\",\"AttributeType\":\"S\"},{\"AttributeName\":\"b\",\"AttributeType\":\"N\"},"
        "{\"AttributeName\":\"c\",\"AttributeType\":\"S\"},{\"AttributeName\":\"d\",\"AttributeType\":\"B\"}]}");
    CHECK_TEXT(request_of(&(struct table_spec){
                   .name = "T", .hash = "p:S", .global_indexes = {"g:a:S+b:S+c:S+d:S+e:S"}}),
               "'a:S+b:S+c:S+d:S+e:S' should be at most four attributes");
    finish();
}

TEST(table_specs_that_cannot_be_read)
{
    CHECK_TEXT(request_of(&(struct table_spec){.name = "T", .hash = "a"}),
               "'a' should be a key and its type, S, N or B: Artist:S");
    CHECK_TEXT(request_of(&(struct table_spec){.name = "T", .hash = ":S"}),
               "':S' should be a key and its type, S, N or B: Artist:S");
    CHECK_TEXT(request_of(&(struct table_spec){.name = "T", .hash = "a:X"}),
               "'a:X' should be a key and its type, S, N or B: Artist:S");
    CHECK_TEXT(request_of(&(struct table_spec){.name = "T", .hash = "a:S", .global_indexes = {"i"}}),
               "'i' should be NAME:HASH:TYPE or NAME:HASH:TYPE,RANGE:TYPE");
    CHECK_TEXT(request_of(&(struct table_spec){.name = "T", .hash = "a:S", .global_indexes = {"i:a:N"}}),
               "'a' should be of one type wherever it is a key");
    CHECK_TEXT(request_of(&(struct table_spec){.name = "T", .hash = "a:S", .local_indexes = {"i:b:N,c:S"}}),
               "'i:b:N,c:S' should be NAME:RANGE:TYPE: a local index has the table's hash key");
    CHECK_TEXT(request_of(&(struct table_spec){.name = "T", .hash = "a:S", .stream = "all"}),
               "'all' should be new-and-old, new, old or keys");
    finish();
}

/* ---- values of a file ---- */

TEST(values_stand_on_one_line_or_on_several)
{
    char text[] = "{\"a\":1}\n\n[1,\n 2]\n\"x\\\"{\"\n{\"t\":\"}\n{\"}\n12\n{\"cut\":";
    FILE *file = fmemopen(text, sizeof text - 1, "r");
    struct values values;
    struct slice value;
    values_begin(&values, file);
    CHECK(values_next(&values, &value) == VALUES_FOUND);
    CHECK_TEXT(value, "{\"a\":1}");
    CHECK(values_next(&values, &value) == VALUES_FOUND);
    CHECK_TEXT(value, "[1,\n 2]");
    CHECK_INT(values.line, 3);
    CHECK(values_next(&values, &value) == VALUES_FOUND);
    CHECK_TEXT(value, "\"x\\\"{\"");
    CHECK(values_next(&values, &value) == VALUES_FOUND);
    CHECK_TEXT(value, "{\"t\":\"}\n{\"}");
    CHECK(values_next(&values, &value) == VALUES_FOUND);
    CHECK_TEXT(value, "12");
    CHECK(values_next(&values, &value) == VALUES_CUT);
    CHECK_INT(values.line, 9);
    values_end(&values);
    fclose(file);
}

/* A file that is a bracket, then one text again and again, without end. */
struct endless {
    const char *text;
    size_t given;
};

static ssize_t endless_read(void *context, char *bytes, size_t room)
{
    struct endless *endless = context;
    size_t len = strlen(endless->text);
    for (size_t i = 0; i < room; i++) {
        bytes[i] = endless->given ? endless->text[endless->given % len] : '[';
        endless->given++;
    }
    return (ssize_t)room;
}

static enum values_result first_of_endless(struct endless *endless, size_t *kept)
{
    FILE *file = fopencookie(endless, "r", (cookie_io_functions_t){.read = endless_read});
    struct values values;
    struct slice value;
    values_begin(&values, file);
    enum values_result result = values_next(&values, &value);
    CHECK_INT(values.line, 1);
    *kept = values.text.len;
    values_end(&values);
    fclose(file);
    return result;
}

TEST(of_an_endless_value_no_more_is_kept_than_a_value_may_have)
{
    static const char *const texts[] = {"a", "a\n"};
    size_t kept;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct endless endless = {texts[i], 0};
        CHECK(first_of_endless(&endless, &kept) == VALUES_TOO_LONG);
        CHECK_INT(kept, LIMIT_LOAD_VALUE_BYTES);
        CHECK(endless.given <= LIMIT_LOAD_VALUE_BYTES + 65536);
    }
    struct endless brackets = {"[],", 0};
    CHECK(first_of_endless(&brackets, &kept) == VALUES_TOO_MANY);
    CHECK(kept < 2 * LIMIT_LOAD_VALUES);
    values_put_fault(&out, VALUES_TOO_LONG);
    CHECK_TEXT(buf_view(&out), "this value is longer than 32 MB, which no item needs");
    finish();
}

/* However much space stands before it: none of it is kept. */
TEST(space_before_a_value_is_not_kept)
{
    enum { SPACES = LIMIT_LOAD_VALUE_BYTES + 10 };
    FILE *file = tmpfile();
    struct values values;
    struct slice value;
    for (size_t i = 0; i < SPACES; i++) putc_unlocked(i % 2 ? '\n' : ' ', file);
    fputs("7", file);
    rewind(file);
    values_begin(&values, file);
    CHECK(values_next(&values, &value) == VALUES_FOUND);
    CHECK_TEXT(value, "7");
    CHECK_INT(values.line, SPACES / 2 + 1);
    CHECK(values.text.cap < 1024);
    CHECK(values_next(&values, &value) == VALUES_END);
    values_end(&values);
    fclose(file);
}
