/* What comes out of mapping templates. */
#include "base/limits.h"
#include "unit/test.h"
#include "velocity/velocity.h"

static const struct velocity_input sample = {
    .body = SLICE("{\"name\":\"ann\",\"n\":7,\"list\":[{\"id\":\"a\"},{\"id\":\"b\"}],"
                  "\"deep\":{\"x y\":[1,2.50,null,true]},"
                  "\"quote\":\"it's \\\"here\\\"\\n\"}"),
    .path = SLICE("{\"id\":\"p\"}"),
    .query = SLICE("{\"id\":\"q\",\"page\":\"2\"}"),
    .headers = SLICE("{\"X-Word\":\"w\"}"),
    .context = SLICE("{\"stage\":\"prod\",\"identity\":{\"sourceIp\":\"127.0.0.1\"}}"),
    .variables = SLICE("{\"table\":\"Things\"}"),
};

static bool render(const char *template, struct buf *out, int *status, char *error, size_t error_len)
{
    struct arena arena = {0};
    bool fine = velocity_render(slice_of(template), &sample, &arena, out, status, error, error_len);
    arena_free(&arena);
    return fine;
}

static void renders(const char *template, const char *expected)
{
    struct buf out = {0};
    char error[300] = "";
    int status = 200;
    if (!render(template, &out, &status, error, sizeof error))
        test_failed(__FILE__, __LINE__, "%s: %s", template, error);
    else if (!slice_equal(buf_view(&out), slice_of(expected)))
        test_failed(__FILE__, __LINE__, "%s gave '%.*s' instead of '%s'", template, SLICE_ARG(buf_view(&out)),
                    expected);
    buf_free(&out);
}

static void fails(const char *template, const char *sentence)
{
    struct buf out = {0};
    char error[300] = "";
    int status = 200;
    CHECK(!render(template, &out, &status, error, sizeof error));
    if (!strstr(error, sentence)) test_failed(__FILE__, __LINE__, "%s: told '%s'", template, error);
    buf_free(&out);
}

TEST(velocity_input_context_and_variables)
{
    renders("$input.params('id') $input.params('page') $input.params('x-word') [$input.params('none')]", "p 2 w []");
    renders("$input.params().querystring.id $input.params().path.get('id') $input.params().header['X-Word']", "q p w");
    renders("$input.path('$.name') $input.json('$.name') $input.json('$.list')",
            "ann \"ann\" [{\"id\":\"a\"},{\"id\":\"b\"}]");
    renders("$input.path(\"$.list[1].id\") $input.path('$.list[*].id') $input.json(\"$.deep['x y']\")",
            "b [\"a\",\"b\"] [1,2.50,null,true]");
    renders("#set($root = $input.path('$'))$root.list[0].id ${root.n}th $root.none.more|", "a 7th |");
    renders("$context.stage $context.identity.sourceIp ${stageVariables.table}", "prod 127.0.0.1 Things");
    renders("$unknown $!unknown ${unknown.x} $5 a$ \\$input $", "$unknown  ${unknown.x} $5 a$ $input $");
    renders("$input.path('$.none')$input.json('$.none')", "\"\"");
}

TEST(velocity_util)
{
    renders("$util.escapeJavaScript($input.path('$.quote'))", "it\\'s \\\"here\\\"\\n");
    renders("$util.urlEncode('a b/\xc3\xa4') $util.urlDecode('a+b%2F%zz')", "a+b%2F%C3%A4 a b/%zz");
    renders("$util.base64Encode('abc') $util.base64Decode('YWJj')", "YWJj abc");
    renders("#set($o = $util.parseJson('{\"a\":[1,2]}'))$o.a[1] $o.a.size()", "2 2");
    fails("$util.nothing('a')", "no such method");
}

TEST(velocity_directives)
{
    renders("#set($a = 3)#if($a > 2 && $a != 4)yes#elseif(true)no#{else}never#end", "yes");
    renders("#if($none)a#elseif(1 == 2)b#else c#end", " c");
    renders("#foreach($i in $input.path('$.list'))$foreach.index:$i.id#if($foreach.hasNext),#end#end", "0:a,1:b");
    renders("#foreach($i in [1..3])#foreach($j in ['x'])$i$j#end$foreach.count#end", "1x12x23x3");
    renders("#foreach($i in [3..1])#if($i == 1)#break#end$i#end.", "32.");
    renders("#foreach($i in [])x#end#foreach($i in $none)x#end.", ".");
    renders("a#stop b", "a");
    renders("## gone\nb #* gone *#c #[[$x #if]]#", "b c $x #if");
    renders("{\n#set($x = 1)\n  \"a\": $x\n}", "{\n  \"a\": 1\n}");
    renders("#set($m = {'a': 1, \"b\": [1, 'two']})$m.b[1] $m.keySet() $!m.put('c', 2)$m.c $m",
            "two [\"a\",\"b\"] 2 {\"a\":1,\"b\":[1,\"two\"],\"c\":2}");
    renders("#set($m = {})#set($m.x.y = 'z')$m #unknown #", "{\"x\":{\"y\":\"z\"}} #unknown #");
    renders("#set($m = {'k':'v'})#foreach($e in $m.entrySet())$e.key=$e.value#end", "k=v");
}

TEST(velocity_expressions)
{
    renders("#set($x = 1 + 2 * 3 - 4 / 2)$x #set($y = (1 + 2) * 3 % 4)$y", "5 1");
    renders("#set($x = 7 / 2)$x #set($y = 7.0 / 2)$y #set($z = 1.5 + 1)$z", "3 3 2.5");
    renders("#set($s = \"a${input.params('id')}b\")$s.toUpperCase() $s.length() $s.substring(1,2) $s.contains('p')",
            "APB 3 p true");
    renders("#set($s = 'a,b')$s.split(',') $s.replace(',', ';') #if($s.equals('a,b') and !false)ok#end",
            "[\"a\",\"b\"] a;b ok");
    renders("#if('a' == \"a\" || $none)1#end#if(!$none)2#end#if(null == $none)3#end#if(1 lt 2)4#end", "1234");
    renders("#set($x = 'single $input.params(\"id\")')$x", "single $input.params(\"id\")");
}

TEST(velocity_tells_what_is_wrong)
{
    fails("a\nb #if(true) x", "line 2 of the template: an #if has no #end");
    fails("#foreach($x in [1]) y", "a #foreach has no #end");
    fails("#end", "too many");
    fails("#set($x = )", "an expression is missing");
    fails("#if(2 + & 1)#end", "an expression is missing");
    fails("#set(x = 1)", "'$' is missing");
    fails("$input.path('name')", "a path like");
    fails("$input.nothing()", "no such method");
    fails("#set($x = 'abc)", "has no end");
    fails("#set($a = 'x')$a.explode()", "no such method");
}

TEST(velocity_templates_end)
{
    fails("#foreach($i in [1..1001])x#end", "more than");
    fails("#foreach($i in [1..1000])#foreach($j in [1..1000])#foreach($k in [1..1000])$i#end#end#end", "more");
    fails("#set($a = 'xxxxxxxxxxxxxxxx')#foreach($i in [1..60])#set($a = \"$a$a\")#end", "more");
    fails("#set($a = [1, 2])#foreach($i in [1..60])#set($a = [$a, $a])#end$a", "more");
    fails("#set($a = [1])#foreach($i in [1..1000])#set($x = $a.add($a))#end$a", "more");
    struct buf deep = {0};
    for (int i = 0; i < 10000; i++) buf_byte(&deep, '(');
    char error[300];
    int status = 0;
    struct buf out = {0};
    struct arena arena = {0};
    struct slice text = arena_printf(&arena, "#set($a = %.*s", SLICE_ARG(buf_view(&deep)));
    CHECK(!velocity_render(text, &sample, &arena, &out, &status, error, sizeof error));
    arena_free(&arena);
    buf_free(&out);
    buf_free(&deep);
}

/* A few steps can go through a large body, or make values of it, again and again. */
TEST(velocity_templates_do_little_with_a_large_body)
{
    static const char *const templates[] = {
        "#foreach($i in [1..1000])$util.parseJson($input.body).size()#end",
        "#foreach($i in [1..1000])$input.path('$[*]').size()#end",
        "#set($l = $input.path('$'))#foreach($i in [1..1000])#foreach($j in [1..9])$l.contains('x')#end#end",
        "#set($l = $input.path('$'))#foreach($i in [1..1000])#foreach($j in [1..9])$l.get(99999)#end#end",
        "#set($l = $input.path('$'))#foreach($i in [1..1000])#foreach($j in [1..9])#if($l == $l)#end#end#end",
        "#set($l = $input.path('$'))#foreach($i in [1..1000])#foreach($j in [1..9])#if(false)$l#end#end#end",
        "#set($l = $input.path('$'))#foreach($i in [1..1000])$input.body.startsWith($l)#end",
        "#foreach($i in [1..1000])#foreach($j in [1..9])$input.params('id')#end#end",
        "$input.path('$[*][*][*][*][*][*][*][*][*][*][*][*][*][*][*][*][*][*][*][*]').size()",
    };
    struct buf body = {0};
    buf_text(&body, "[0");
    for (int i = 1; i < 100000; i++) buf_text(&body, ",0");
    buf_byte(&body, ']');
    struct velocity_input input = {.body = buf_view(&body)};
    input.headers = input.query = input.path = input.body;
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++) {
        struct arena arena = {0};
        struct buf out = {0};
        char error[300] = "";
        int status = 200;
        CHECK(!velocity_render(slice_of(templates[i]), &input, &arena, &out, &status, error, sizeof error));
        if (!strstr(error, "more than a template may"))
            test_failed(__FILE__, __LINE__, "%s: told '%s'", templates[i], error);
        CHECK(arena.total_bytes < 2 * LIMIT_VELOCITY_MEMORY);
        arena_free(&arena);
        buf_free(&out);
    }
    buf_free(&body);
}

TEST(velocity_may_choose_the_status)
{
    struct buf out = {0};
    char error[300] = "";
    int status = 200;
    CHECK(render("#set($context.responseOverride.status = 404)gone", &out, &status, error, sizeof error));
    CHECK_INT(status, 404);
    buf_free(&out);
}
