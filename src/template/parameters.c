/* Parameters: what is given, else the default, checked against the type and what the template allows. All that are
 * missing are named at once, so that nobody has to find them one by one. AllowedPattern is not checked: it is written
 * in another language of regular expressions than any that is at hand. */
#include <stdlib.h>

#include "base/limits.h"
#include "template/internal.h"

static bool parameter_read(struct template *template, const struct node *rule, struct parameter *out,
                           struct buf *missing);

static const struct template_given *given_value(const struct template_world *world, struct slice name)
{
    for (size_t i = 0; i < world->given_count; i++)
        if (slice_equal(world->given[i].name, name)) return &world->given[i];
    return NULL;
}

static bool check_given(struct template *template, const struct node *rules)
{
    const struct template_world *world = template->world;
    for (size_t i = 0; i < world->given_count; i++) {
        const struct node *rule = rules ? rules->first : NULL;
        while (rule && !slice_equal(rule->name, world->given[i].name)) rule = rule->next;
        if (!rule)
            return template_fail(template, rules ? rules : template->root,
                                 "the template has no parameter '%.*s'", SLICE_ARG(world->given[i].name));
    }
    return true;
}

bool parameters_read(struct template *template)
{
    const struct node *rules = node_member(template->root, "Parameters");
    if (rules && rules->kind == JSON_NULL) rules = NULL;
    if (rules && rules->kind != JSON_OBJECT)
        return template_fail(template, rules, "'Parameters' must be an object");
    size_t count = node_children(rules);
    if (count > LIMIT_TEMPLATE_PARAMETERS)
        return template_fail(template, rules, "there are %zu parameters, and %d may be", count,
                             LIMIT_TEMPLATE_PARAMETERS);
    if (template->kind != TEMPLATE_SERVERLESS && !check_given(template, rules)) return false;
    template->parameters = arena_array(template->arena, struct parameter, count);
    struct buf missing = {0};
    bool fine = true;
    for (const struct node *rule = rules ? rules->first : NULL; rule && fine; rule = rule->next)
        fine = parameter_read(template, rule, &template->parameters[template->parameter_count++], &missing);
    if (fine && missing.len)
        fine = template_fail(template, rules, "no value is given for %.*s, and there is no default",
                             SLICE_ARG(buf_view(&missing)));
    buf_free(&missing);
    return fine;
}

/* ---- one ---- */

static struct slice trimmed(struct slice text)
{
    while (text.len && text.data[0] == ' ') text = slice_from(text, 1);
    while (text.len && text.data[text.len - 1] == ' ') text.len--;
    return text;
}

/* As JSON writes numbers: the value goes on as one. */
static bool is_number(struct arena *arena, struct slice text)
{
    struct json_reader json;
    struct slice number;
    json_begin(&json, text, arena);
    return json_peek(&json) == JSON_NUMBER && json_number(&json, &number) && json_done(&json) &&
           number.len == text.len;
}

static double number_of(struct slice text)
{
    char copy[64] = "";
    if (text.len < sizeof copy) memcpy(copy, text.data, text.len);
    return strtod(copy, NULL);
}

static bool check_value(struct template *template, const struct node *rule, struct slice type,
                        struct slice value)
{
    struct slice name = rule->name;
    const struct node *allowed = node_member(rule, "AllowedValues");
    bool is_numeric = slice_equal(type, SLICE("Number")) || slice_equal(type, SLICE("List<Number>"));
    if (is_numeric && !is_number(template->arena, value))
        return template_fail(template, rule, "the parameter '%.*s' is a number, and '%.*s' is none",
                             SLICE_ARG(name), SLICE_ARG(value));
    if (allowed && allowed->kind == JSON_ARRAY) {
        struct buf list = {0};
        const struct node *one = allowed->first;
        for (; one && !slice_equal(one->text, value); one = one->next)
            buf_printf(&list, "%s%.*s", list.len ? ", " : "", SLICE_ARG(one->text));
        if (!one)
            template_fail(template, rule, "the parameter '%.*s' cannot be '%.*s', only one of: %.*s",
                          SLICE_ARG(name), SLICE_ARG(value), SLICE_ARG(buf_view(&list)));
        buf_free(&list);
        if (!one) return false;
    }
    const struct node *least = node_member(rule, is_numeric ? "MinValue" : "MinLength"),
                      *most = node_member(rule, is_numeric ? "MaxValue" : "MaxLength");
    double size = is_numeric ? number_of(value) : (double)value.len;
    if ((least && size < number_of(least->text)) || (most && size > number_of(most->text)))
        return template_fail(template, rule, "the parameter '%.*s' cannot be '%.*s': %s%s%.*s%s%.*s",
                             SLICE_ARG(name), SLICE_ARG(value),
                             is_numeric ? "it must be" : "its length must be", least ? " at least " : "",
                             SLICE_ARG(least ? least->text : SLICE("")), most ? " at most " : "",
                             SLICE_ARG(most ? most->text : SLICE("")));
    return true;
}

static bool parameter_read(struct template *template, const struct node *rule, struct parameter *out,
                           struct buf *missing)
{
    const struct template_given *given = given_value(template->world, rule->name);
    const struct node *otherwise = node_member(rule, "Default");
    struct slice type = node_text(rule, "Type"), inner = type;
    out->name = rule->name;
    out->value = make_text(template->arena, rule, SLICE(""));
    if (rule->kind != JSON_OBJECT)
        return template_fail(template, rule, "the parameter '%.*s' must be an object with a Type",
                             SLICE_ARG(rule->name));
    if (otherwise && (otherwise->kind == JSON_ARRAY || otherwise->kind == JSON_OBJECT))
        return template_fail(template, otherwise, "the default of the parameter '%.*s' must be a text",
                             SLICE_ARG(rule->name));
    /* cdk's older templates have parameters for the places of their assets, which are found beside the template. */
    if (!given && !otherwise && slice_starts(rule->name, SLICE("AssetParameters")))
        otherwise = make_text(template->arena, rule, SLICE("asset||asset"));
    if (!given && !otherwise) {
        buf_printf(missing, "%sthe parameter '%.*s'", missing->len ? ", " : "", SLICE_ARG(rule->name));
        return true;
    }
    struct slice text = given ? given->value : otherwise->text;
    if (!given && otherwise->kind == JSON_TRUE && !text.len) text = SLICE("true");
    if (!given && otherwise->kind == JSON_FALSE && !text.len) text = SLICE("false");
    if (slice_starts(type, SLICE("AWS::SSM::Parameter::Value<"))) {
        inner = slice_from(type, sizeof "AWS::SSM::Parameter::Value<" - 1);
        if (!given &&
            !slice_equal(rule->name, SLICE("BootstrapVersion"))) /* of every template of cdk, unused */
            note_put(
                template->arena, &template->notes, rule,
                "the parameter '%.*s' names one of Systems Manager, which is not asked; its name '%.*s' is taken "
                "as its value",
                SLICE_ARG(rule->name), SLICE_ARG(text));
    }
    if (!slice_starts(inner, SLICE("List<")) && !slice_starts(inner, SLICE("CommaDelimitedList"))) {
        struct node *value = make_text(template->arena, rule, text);
        if (slice_equal(type, SLICE("Number"))) value->kind = JSON_NUMBER;
        out->value = value;
        return check_value(template, rule, type, text);
    }
    struct node *list = make_node(template->arena, JSON_ARRAY, rule);
    const struct node **end = &list->first;
    for (bool is_more = true; is_more;) {
        is_more = memchr(text.data ? text.data : "", ',', text.len);
        struct node *element = make_text(template->arena, rule, trimmed(slice_cut(&text, ',')));
        if (!check_value(template, rule, type, element->text)) return false;
        *end = element;
        end = &element->next;
    }
    out->value = list;
    return true;
}
