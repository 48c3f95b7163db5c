/* Parameters, conditions, functions, references and their order. */
#include "unit/template_fixture.h"

#include "unit/test.h"

/* One resource A with these properties, among others that it may refer to. */
static struct slice value_of(const char *value)
{
    static char text[4096];
    snprintf(text, sizeof text,
             "Parameters: {P: {Type: String, Default: pv}, L: {Type: CommaDelimitedList, Default: 'x, y,z'},"
             " N: {Type: Number, Default: 5}}\n"
             "Mappings: {M: {eu-central-1: {k: v, l: [1, 2]}}}\n"
             "Conditions: {Yes: !Equals [!Ref P, pv], No: !Not [!Condition Yes]}\n"
             "Resources:\n  B: {Type: T}\n  Later: {Type: T}\n  Never: {Type: T}\n"
             "  Hidden: {Type: T, Condition: No}\n  A: {Type: T, Properties: {v: %s}}\n",
             value);
    struct slice error = fixture_open(text);
    return error.len ? error : fixture_properties("A");
}

TEST(functions_refer)
{
    CHECK_TEXT(value_of("[!Ref P, !Ref L, !Ref N, !Ref B, !GetAtt B.Arn.X, {'Fn::GetAtt': [B, !Ref P]}]"),
               "{\"v\":[\"pv\",[\"x\",\"y\",\"z\"],5,\"<B>\",\"<B.Arn.X>\",\"<B.pv>\"]}");
    CHECK_TEXT(value_of("[!Ref AWS::Region, !Ref AWS::AccountId, !Ref AWS::StackName, !Ref AWS::Partition]"),
               "{\"v\":[\"eu-central-1\",\"000000000000\",\"app\",\"aws\"]}");
    CHECK_TEXT(value_of("{a: !Ref AWS::NoValue, b: [!Ref AWS::NoValue, 1]}"), "{\"v\":{\"b\":[1]}}");
    CHECK_TEXT(value_of("!Ref Tabel"), "t.yaml:9:32: there is no parameter or resource 'Tabel'");
    CHECK_TEXT(value_of("!Ref Hidden"),
               "t.yaml:9:32: 'Hidden' is not made, since its condition 'No' does not hold");
    CHECK_TEXT(value_of("!GetAtt Never.X"), "t.yaml:9:32: 'Never' (T) has no attribute 'X'");
    CHECK_TEXT(value_of("!Ref AWS::Nonsense"), "t.yaml:9:32: there is no 'AWS::Nonsense'");
    CHECK_TEXT(value_of("!GetAtt B"), "t.yaml:9:32: Fn::GetAtt takes a resource and an attribute");
    fixture_end();
}

TEST(functions_make_texts)
{
    CHECK_TEXT(value_of("!Sub 'a-${P}-${B}-${B.Arn}-${AWS::Region}-${!P}-${ N }$'"),
               "{\"v\":\"a-pv-<B>-<B.Arn>-eu-central-1-${P}-5$\"}");
    CHECK_TEXT(value_of("!Sub ['${x}/${P}', {x: !GetAtt B.Y}]"), "{\"v\":\"<B.Y>/pv\"}");
    CHECK_TEXT(value_of("!Join ['-', [a, !Ref P, 1, true]]"), "{\"v\":\"a-pv-1-true\"}");
    CHECK_TEXT(value_of("!Join [',', !Ref L]"), "{\"v\":\"x,y,z\"}");
    CHECK_TEXT(value_of("!Select [1, !Split ['/', 'a/b/c']]"), "{\"v\":\"b\"}");
    CHECK_TEXT(value_of("!Select [9, [a]]"), "t.yaml:9:32: Fn::Select wants element 9 of a list of 1");
    CHECK_TEXT(value_of("!FindInMap [M, !Ref AWS::Region, k]"), "{\"v\":\"v\"}");
    CHECK_TEXT(value_of("!FindInMap [M, x, k]"), "t.yaml:9:47: Fn::FindInMap finds no 'x' in 'Mappings'");
    CHECK_TEXT(value_of("{'Fn::FindInMap': [M, x, k, {DefaultValue: d}]}"), "{\"v\":\"d\"}");
    CHECK_TEXT(value_of("!Base64 abc"), "{\"v\":\"YWJj\"}");
    CHECK_TEXT(value_of("!Cidr [10.0.0.0/16, 3, 8]"),
               "{\"v\":[\"10.0.0.0/24\",\"10.0.1.0/24\",\"10.0.2.0/24\"]}");
    CHECK_TEXT(value_of("!Select [0, !GetAZs '']"), "{\"v\":\"eu-central-1a\"}");
    CHECK_TEXT(value_of("!ImportValue net"), "{\"v\":\"<net>\"}");
    CHECK_TEXT(value_of("[{'Fn::Length': !Ref L}, {'Fn::ToJsonString': {a: !Ref P}}]"),
               "{\"v\":[3,\"{\\\"a\\\":\\\"pv\\\"}\"]}");
    CHECK_TEXT(value_of("!If [Yes, a, !Ref Hidden]"), "{\"v\":\"a\"}");
    CHECK_TEXT(value_of("!If [No, a, !Ref AWS::NoValue]"), "{}");
    CHECK_TEXT(value_of("!If [Maybe, a, b]"), "t.yaml:9:37: there is no condition 'Maybe'");
    CHECK_TEXT(value_of("!Sub '${B.'"), "{\"v\":\"${B.\"}");
    CHECK_TEXT(value_of("!Join [a]"), "t.yaml:9:32: Fn::Join takes a delimiter and a list");
    fixture_end();
}

TEST(functions_of_what_is_not_known_yet)
{
    CHECK_TEXT(value_of("!GetAtt Later.Arn"), "{\"v\":\"${Later.Arn}\"} unknown");
    CHECK_TEXT(value_of("!Sub 'x-${Later}-${P}'"), "{\"v\":\"x-${Later}-pv\"} unknown");
    CHECK_TEXT(value_of("!Join ['/', [!Ref Later, a]]"), "{\"v\":\"${Later}/a\"} unknown");
    CHECK_TEXT(value_of("!Select [2, !Split ['/', !GetAtt Later.Url]]"), "{\"v\":\"${Later.Url}\"} unknown");
    CHECK_TEXT(value_of("!Base64 {Ref: Later}"), "{\"v\":\"${Later}\"} unknown");
    CHECK_TEXT(value_of("!Sub '${!Later}'"), "{\"v\":\"${Later}\"}");
    fixture_end();
}

TEST(functions_that_are_not_known_are_told_once)
{
    CHECK_TEXT(value_of("{a: !Transform {Name: AWS::Include}, b: '{{resolve:ssm:x}}', c: !Foo 1}"),
               "{\"v\":{\"b\":\"{{resolve:ssm:x}}\"}}");
    CHECK_TEXT(fixture_notes(), "9: the function Fn::Transform is not known, and its value is left out; "
                                "9: '{{resolve:ssm:x}}' is read from elsewhere, which is not known here; "
                                "9: the function Fn::Foo is not known, and its value is left out");
    fixture_end();
}

static const char *const asking =
    "Parameters:\n"
    "  Stage: {Type: String, AllowedValues: [dev, prod]}\n"
    "  Size: {Type: Number, MinValue: 2, MaxValue: 9, Default: 3}\n"
    "  Key: {Type: String, MinLength: 3}\n"
    "Resources: {A: {Type: T, Properties: {s: !Ref Stage, n: !Ref Size, k: !Ref Key}}}\n";

TEST(parameters_are_checked)
{
    CHECK_TEXT(fixture_open(asking),
               "t.yaml:2:3: no value is given for the parameter 'Stage', the parameter 'Key', "
               "and there is no default");
    fixture_give("Stage", "test");
    fixture_give("Key", "abc");
    CHECK_TEXT(fixture_open(asking),
               "t.yaml:2:10: the parameter 'Stage' cannot be 'test', only one of: dev, prod");
    fixture_end();
    fixture_give("Stage", "dev");
    fixture_give("Key", "ab");
    CHECK_TEXT(fixture_open(asking),
               "t.yaml:4:8: the parameter 'Key' cannot be 'ab': its length must be at least 3");
    fixture_end();
    fixture_give("Stage", "dev");
    fixture_give("Key", "abc");
    fixture_give("Size", "x");
    CHECK_TEXT(fixture_open(asking), "t.yaml:3:9: the parameter 'Size' is a number, and 'x' is none");
    fixture_end();
    fixture_give("Stage", "dev");
    fixture_give("Key", "abc");
    fixture_give("Size", "7");
    CHECK_TEXT(fixture_open(asking), "");
    CHECK_TEXT(fixture_properties("A"), "{\"s\":\"dev\",\"n\":7,\"k\":\"abc\"}");
    fixture_give("Sise", "7");
    CHECK_TEXT(fixture_open(asking), "t.yaml:2:3: the template has no parameter 'Sise'");
    fixture_end();
}

TEST(resources_are_ordered_by_what_they_need)
{
    CHECK_TEXT(fixture_open("Resources:\n"
                            "  A: {Type: T, Properties: {x: !GetAtt C.Arn, y: !Sub '${B}'}}\n"
                            "  B: {Type: T, DependsOn: [D, Off]}\n"
                            "  C: {Type: T}\n"
                            "  D: {Type: T, DeletionPolicy: Retain}\n"
                            "  Off: {Type: T, Condition: No}\n"
                            "Conditions: {No: !Equals [a, b]}\n"
                            "Outputs: {O: {Value: !Ref A}, Q: {Value: !Ref Off, Condition: No}}\n"),
               "");
    CHECK_TEXT(fixture_order(), "D B(D) C A(B,C)");
    CHECK_TEXT(fixture_outputs(), "O=\"<A>\"");
    CHECK_TEXT(fixture_open("Resources:\n"
                            "  A: {Type: T, Properties: {x: !Ref B}}\n"
                            "  B: {Type: T, DependsOn: C}\n"
                            "  C: {Type: T, Properties: {x: [!GetAtt B.x]}}\n"),
               "t.yaml:3:6: resources need each other in a circle: B -> C -> B");
    CHECK_TEXT(fixture_open("Resources: {A: {Type: T, DependsOn: X}}"),
               "t.yaml:1:37: 'A' depends on 'X', which is no resource");
    fixture_end();
}

TEST(templates_that_are_none)
{
    CHECK_TEXT(fixture_open("a: 1"),
               "t.yaml:1:1: this is no template: it has no 'Resources' as CloudFormation and SAM "
               "have, and no 'service' and 'provider' as serverless.yml");
    CHECK_TEXT(fixture_open("Resources: {A: {}}"), "t.yaml:1:16: the resource 'A' has no Type");
    CHECK_TEXT(fixture_open(
                   "Resources: {A: {Type: T, Condition: C}}\nConditions: {C: !Condition D, D: !Condition C}"),
               "t.yaml:2:17: the condition 'C' depends on itself");
    CHECK_TEXT(fixture_open("Resources: {A: {Type: T, Condition: C}, B: {Type: T}}\n"
                            "Conditions: {C: !Equals [!Ref B, x]}"),
               "t.yaml:2:26: a condition can refer to parameters only, and 'B' is none");
    CHECK_TEXT(fixture_open("Resources: {A: {Type: T}}\nOutputs: {O: {Value: !Ref X}}"),
               "t.yaml:2:22: there is no parameter or resource 'X'");
    CHECK_TEXT(
        fixture_open("Resources: {A: {Type: T}}\nFoo: 1\nTransform: [Mine, AWS::Serverless-2016-10-31]\n"),
        "");
    CHECK_TEXT(fixture_notes(), "2: 'Foo' is no section of a template; 3: the transform 'Mine' is not known");
    fixture_end();
}

/* Each of the conditions is nested as deep as it may be, and stands for the next one. */
TEST(conditions_that_stand_for_each_other_have_an_end)
{
    struct buf text = {0};
    buf_text(&text, "{\"Resources\":{\"A\":{\"Type\":\"T\",\"Condition\":\"C0\"}},\"Conditions\":{");
    for (int i = 0; i < 1500; i++) {
        buf_printf(&text, "\"C%d\":", i);
        for (int k = 0; k < 80; k++) buf_text(&text, "{\"Fn::Not\":[");
        buf_printf(&text, "{\"Condition\":\"C%d\"}", i + 1);
        for (int k = 0; k < 80; k++) buf_text(&text, "]}");
        buf_byte(&text, ',');
    }
    buf_text(&text, "\"C1500\":{\"Fn::Equals\":[1,1]}}}");
    buf_byte(&text, 0);
    struct slice told = fixture_open(text.data);
    if (!slice_contains(told, SLICE("functions and conditions stand for each other more than 1000 levels deep")))
        test_failed(__FILE__, __LINE__, "told '%.*s'", SLICE_ARG(told));
    buf_free(&text);
    fixture_end();
}

/* A short text that stands for gigabytes. */
TEST(functions_have_an_end)
{
    struct buf text = {0};
    buf_text(&text, "Mappings: {M: {a: {l: [");
    for (int i = 0; i < 20000; i++) buf_text(&text, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx,");
    buf_text(&text, "x]}}}\nResources: {A: {Type: T, Properties: {v: [");
    for (int i = 0; i < 2000; i++) buf_text(&text, "!Join ['', !FindInMap [M, a, l]],");
    buf_text(&text, "x]}}}\n");
    buf_byte(&text, 0);
    CHECK(slice_contains(fixture_open(text.data), SLICE("the functions of the template make too much text")));
    buf_free(&text);
    fixture_end();
}

/* One long text, and two thousand aliases: each makes a copy of it. */
TEST(functions_of_a_long_text_have_an_end)
{
    static const char *const before[] = {"!GetAtt [A, \"", "!ImportValue \"", "!GetAZs \"", "\"{{resolve:", "!Sub \""};
    static const char *const after[] = {"\"]", "\"", "\"", "}}\"", "\""};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        struct buf text = {0};
        buf_printf(&text, "Resources:\n  A: {Type: T}\n  B: {Type: T, Properties: {v: [&a %s", before[i]);
        for (int k = 0; k < 100000; k++) buf_byte(&text, 'x');
        buf_slice(&text, slice_of(after[i]));
        for (int k = 0; k < 2000; k++) buf_text(&text, ", *a");
        buf_text(&text, "]}}\n");
        buf_byte(&text, 0);
        struct slice told = fixture_open(text.data);
        if (!slice_contains(told, SLICE("the functions of the template make too much text")))
            test_failed(__FILE__, __LINE__, "%s: told '%.*s'", before[i], (int)(told.len < 300 ? told.len : 300),
                        told.data);
        buf_free(&text);
        fixture_end();
    }
}
