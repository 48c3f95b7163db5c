/* YAML and JSON as one tree: what scalars mean, tags, anchors and merges, limits, and where faults are. */
#include "base/limits.h"
#include "template/template.h"

#include "unit/test.h"

static struct arena arena;
static struct buf out;

static void finish(void)
{
    buf_free(&out);
    arena_free(&arena);
}

/* The tree as JSON, or the error. */
static struct slice tree_of_slice(struct slice text)
{
    struct template_notes notes = {0};
    char error[TEMPLATE_ERROR_BYTES];
    const struct node *root = template_read(&arena, text, "t.yaml", &notes, error);
    out.len = 0;
    if (root) {
        CHECK(!*error);
        node_put(&out, root);
    } else
        buf_slice(&out, slice_of(error));
    for (const struct template_note *note = notes.first; note; note = note->next)
        buf_printf(&out, " (%u:%u: %.*s)", note->line, note->column, SLICE_ARG(note->text));
    return buf_view(&out);
}

static struct slice tree_of(const char *text)
{
    return tree_of_slice(slice_of(text));
}

TEST(read_scalars)
{
    CHECK_TEXT(
        tree_of("[1, -2.5, 0, 012, 1e5, 0x1f, 1_000, .5, 1:30, 2010-09-09, '1', \"a\\tb\"]"),
        "[1,-2.5,0,\"012\",\"1e5\",\"0x1f\",\"1_000\",\".5\",\"1:30\",\"2010-09-09\",\"1\",\"a\\tb\"]");
    CHECK_TEXT(tree_of("[true, Yes, ON, yEs, false, no, Off, null, ~, NULL, !!str true, ! 5, y]"),
               "[true,true,true,\"yEs\",false,false,false,null,null,null,\"true\",\"5\",\"y\"]");
    CHECK_TEXT(tree_of("a: |\n  x\n  y\nb: >-\n  x\n  y\nc:\n"),
               "{\"a\":\"x\\ny\\n\",\"b\":\"x y\",\"c\":null}");
    CHECK_TEXT(tree_of("1: a\ntrue: b\n"), "{\"1\":\"a\",\"true\":\"b\"}");
    finish();
}

TEST(read_tags_are_functions)
{
    CHECK_TEXT(tree_of("[!Ref A, !GetAtt A.B.C, !GetAtt [A, B], !Sub '${A}', !Condition C]"),
               "[{\"Ref\":\"A\"},{\"Fn::GetAtt\":[\"A\",\"B.C\"]},{\"Fn::GetAtt\":[\"A\",\"B\"]},"
               "{\"Fn::Sub\":\"${A}\"},{\"Condition\":\"C\"}]");
    CHECK_TEXT(
        tree_of("a: !If [C, !Join ['-', [x, !Ref Y]], !Ref 'AWS::NoValue']"),
        "{\"a\":{\"Fn::If\":[\"C\",{\"Fn::Join\":[\"-\",[\"x\",{\"Ref\":\"Y\"}]]},{\"Ref\":\"AWS::NoValue\"}]}}");
    CHECK_TEXT(tree_of("a: !Transform\n  Name: AWS::Include\n"),
               "{\"a\":{\"Fn::Transform\":{\"Name\":\"AWS::Include\"}}}");
    CHECK_TEXT(tree_of("a: !Base64\n  Fn::Sub: x\n"), "{\"a\":{\"Fn::Base64\":{\"Fn::Sub\":\"x\"}}}");
    finish();
}

TEST(read_anchors_and_merges)
{
    CHECK_TEXT(tree_of("a: &x {p: 1, q: 2}\nb: *x\nc:\n  q: 3\n  <<: *x\n"),
               "{\"a\":{\"p\":1,\"q\":2},\"b\":{\"p\":1,\"q\":2},\"c\":{\"p\":1,\"q\":3}}");
    CHECK_TEXT(tree_of("a: &x {p: 1}\nb: &y {p: 2, r: 3}\nc: {<<: [*x, *y]}"),
               "{\"a\":{\"p\":1},\"b\":{\"p\":2,\"r\":3},\"c\":{\"r\":3,\"p\":1}}");
    CHECK_TEXT(tree_of("a: &x !Ref T\nb: *x\n"), "{\"a\":{\"Ref\":\"T\"},\"b\":{\"Ref\":\"T\"}}");
    CHECK_TEXT(tree_of("a: *x\n"), "t.yaml:1:4: the alias '*x' has no anchor '&' before it");
    CHECK_TEXT(tree_of("a: &x\n  b: *x\n"), "t.yaml:2:6: the alias '*x' stands within what it stands for");
    CHECK_TEXT(tree_of("a: {<<: 1}\n"), "t.yaml:1:9: '<<' needs a mapping, or a list of them");
    finish();
}

TEST(read_json_with_its_places)
{
    struct template_notes notes = {0};
    char error[TEMPLATE_ERROR_BYTES];
    const struct node *root = template_read(&arena, SLICE("\n{\n  \"a\": 1,\n  \"b\": {\"c\": [true]}\n}"),
                                            "t.json", &notes, error);
    const struct node *element = node_member(node_member(root, "b"), "c")->first;
    CHECK_INT(element->line, 4);
    CHECK_INT(element->column, 15);
    root = template_read(&arena, SLICE("a: 1\nb:\n  c: [true]"), "t.yaml", &notes, error);
    element = node_member(node_member(root, "b"), "c")->first;
    CHECK_INT(element->line, 3);
    CHECK_INT(element->column, 7);
    CHECK_TEXT(tree_of("\xef\xbb\xbf{\"a\":1}"), "{\"a\":1}");
    finish();
}

TEST(read_names_that_stand_twice)
{
    CHECK_TEXT(tree_of("a: 1\nb: 2\na: 3\n"),
               "{\"b\":2,\"a\":3} (1:4: 'a' stands twice; the last one counts)");
    CHECK_TEXT(tree_of("{\"a\":1,\n\"a\":2,\"b\":3}"),
               "{\"a\":2,\"b\":3} (1:6: 'a' stands twice; the last one counts)");
    finish();
}

TEST(read_faults_have_places)
{
    CHECK_TEXT(tree_of(""), "t.yaml:1:1: the file is empty");
    CHECK_TEXT(tree_of("# only a comment\n"), "t.yaml:1:1: the file is empty");
    CHECK_TEXT(tree_of("a: 1\n\tb: 2\n"),
               "t.yaml:2:1: this is no YAML: a tab cannot begin a line or a value; use spaces");
    CHECK_TEXT(tree_of("a: 1\n  b: 2\n"),
               "t.yaml:2:4: this is no YAML: mapping values are not allowed in this context");
    CHECK_TEXT(
        tree_of("a: [1,\nb: 2\n"),
        "t.yaml:3:1: this is no YAML: did not find expected ',' or ']' while parsing a flow sequence from line 1 on");
    CHECK_TEXT(tree_of("? [a]\n: b\n"),
               "t.yaml:1:3: a name is expected here, and this is a mapping or a list");
    CHECK_TEXT(tree_of("a: 1\n---\nb: 2\n"),
               "t.yaml:2:1: a second document begins here, and a template is one");
    CHECK_TEXT(tree_of("a: \xff\n"), "t.yaml:1:4: this is no YAML: invalid leading UTF-8 octet");
    CHECK_TEXT(tree_of("{\"a\":\n 1,}"), "t.yaml:2:4: this is no JSON: a string was expected");
    finish();
}

/* Each line stands for ten times the one before it. */
TEST(read_aliases_count_as_what_they_stand_for)
{
    struct buf text = {0};
    buf_text(&text, "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for (int i = 1; i < 12; i++)
        buf_printf(&text, "a%d: &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n", i, i, i - 1,
                   i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
    struct slice answer = tree_of_slice(buf_view(&text));
    CHECK(slice_contains(
        answer, SLICE("the template has more than 500000 values, with those that aliases stand for")));
    CHECK(slice_starts(answer, SLICE("t.yaml:6:")));
    buf_free(&text);
    finish();
}

/* Translations make other names of it, for each alias of what has it. */
TEST(read_names_are_bounded)
{
    struct buf yaml = {0}, json = {0};
    buf_text(&yaml, "a:\n  ? ");
    buf_text(&json, "{\"a\":\n{\"");
    for (int i = 0; i < LIMIT_TEMPLATE_NAME_BYTES; i++) {
        buf_byte(&yaml, 'x');
        buf_byte(&json, 'x');
    }
    size_t yaml_len = yaml.len, json_len = json.len;
    buf_text(&yaml, "\n  : 1\n");
    buf_text(&json, "\":1}}");
    CHECK(slice_starts(tree_of_slice(buf_view(&yaml)), SLICE("{\"a\":{\"xxx")));
    CHECK(slice_starts(tree_of_slice(buf_view(&json)), SLICE("{\"a\":{\"xxx")));
    yaml.len = yaml_len;
    json.len = json_len;
    buf_text(&yaml, "x\n  : 1\n");
    buf_text(&json, "x\":1}}");
    CHECK_TEXT(tree_of_slice(buf_view(&yaml)), "t.yaml:2:5: a name has more than 4096 bytes");
    CHECK(slice_contains(tree_of_slice(buf_view(&json)), SLICE(": a name has more than 4096 bytes")));
    buf_free(&yaml);
    buf_free(&json);
    finish();
}

TEST(read_aliases_are_not_looked_for_without_end)
{
    struct buf text = {0};
    for (int i = 0; i < 20000; i++) buf_printf(&text, "- &a%d 1\n", i);
    for (int i = 0; i < 20000; i++) buf_text(&text, "- *a0\n");
    CHECK(slice_contains(tree_of_slice(buf_view(&text)), SLICE("the template has too many anchors and aliases")));
    buf_free(&text);
    finish();
}

TEST(read_depth_is_bounded_also_through_aliases)
{
    struct buf text = {0};
    for (int i = 0; i < LIMIT_TEMPLATE_DEPTH; i++) buf_byte(&text, '[');
    for (int i = 0; i < LIMIT_TEMPLATE_DEPTH; i++) buf_byte(&text, ']');
    CHECK(tree_of_slice(buf_view(&text)).data[0] == '[');
    text.len = 0;
    for (int i = 0; i <= LIMIT_TEMPLATE_DEPTH; i++) buf_text(&text, "- ");
    buf_text(&text, "x");
    CHECK(
        slice_contains(tree_of_slice(buf_view(&text)), SLICE("values are nested more than 200 levels deep")));
    text.len = 0;
    buf_text(&text, "- &a0 [[[[[[[[[[x]]]]]]]]]]\n");
    for (int i = 1; i < 30; i++) buf_printf(&text, "- &a%d [[[[[[[[[[*a%d]]]]]]]]]]\n", i, i - 1);
    CHECK(
        slice_contains(tree_of_slice(buf_view(&text)), SLICE("values are nested more than 200 levels deep")));
    text.len = 0;
    for (int i = 0; i < 300; i++) buf_text(&text, "{\"a\":");
    CHECK(slice_contains(tree_of_slice(buf_view(&text)), SLICE("this is no JSON: ")));
    buf_free(&text);
    finish();
}
