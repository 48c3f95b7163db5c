/* Functions of templates: a value becomes the value that it stands for.
 *
 * What a resource's Ref and GetAtt stand for is asked from the caller. Where that is not known yet, the text tells what
 * it will be, as ${Table.Arn}, and is marked; every text that is made of it is marked, too.
 *
 * All work is counted. A template of 4 MB may ask for the same long list a hundred thousand times. */
#include <stdlib.h>

#include "base/limits.h"
#include "template/resolve.h"

static bool resolve_children(struct resolver *resolver, const struct node *value, const struct node **out);
static bool judge_rule(struct resolver *resolver, const struct node *rule, bool *holds);
static bool call_function(struct resolver *resolver, const struct node *call, const struct node **out);

/* ---- for everybody ---- */

static bool run(struct template *template, const struct node *value, const struct template_ask *ask,
                const struct node **out, char *error)
{
    struct resolver resolver = {.template = template, .arena = template->arena, .ask = ask};
    *error = 0;
    template->error = error;
    template->work = 0;
    *out = NULL;
    return resolve(&resolver, value, out);
}

bool template_resolve(struct template *template, const struct node *value, const struct template_ask *ask,
                      const struct node **out, char error[TEMPLATE_ERROR_BYTES])
{
    return run(template, value, ask, out, error);
}

bool template_properties(struct template *template, const struct template_resource *resource,
                         const struct template_ask *ask, const struct node **out,
                         char error[TEMPLATE_ERROR_BYTES])
{
    *out = NULL;
    *error = 0;
    if (resource->properties && !run(template, resource->properties, ask, out, error)) return false;
    if (!*out) *out = make_node(template->arena, JSON_OBJECT, resource->source);
    return true;
}

bool template_is_unknown(const struct node *value)
{
    if (!value) return false;
    if (value->unknown) return true;
    for (const struct node *child = value->first; child; child = child->next)
        if (template_is_unknown(child)) return true;
    return false;
}

bool resolver_work(struct resolver *resolver, const struct node *where, size_t amount)
{
    resolver->template->work += amount;
    if (resolver->template->work <= LIMIT_TEMPLATE_WORK) return true;
    return template_fail(resolver->template, where, "the functions of the template make too much text");
}

static bool is_function(struct slice name)
{
    return slice_equal(name, SLICE("Ref")) ||
           (slice_starts(name, SLICE("Fn::")) && !slice_starts(name, SLICE("Fn::ForEach::")));
}

/* One level deeper; false after template_fail. */
static bool nest(struct resolver *resolver, const struct node *where)
{
    struct template *template = resolver->template;
    if (template->nesting < LIMIT_TEMPLATE_NESTING) {
        template->nesting++;
        return true;
    }
    return template_fail(template, where, "functions and conditions stand for each other more than %d levels deep",
                         LIMIT_TEMPLATE_NESTING);
}

static bool resolve_value(struct resolver *resolver, const struct node *value, const struct node **out)
{
    *out = value;
    if (value->kind == JSON_STRING && resolver->notes && slice_contains(value->text, SLICE("{{resolve:"))) {
        if (!resolver_work(resolver, value, value->text.len)) return false;
        note_put(resolver->arena, resolver->notes, value,
                 "'%.*s' is read from elsewhere, which is not known here", SLICE_ARG(value->text));
    }
    if (value->kind != JSON_OBJECT && value->kind != JSON_ARRAY) return true;
    if (value->kind == JSON_OBJECT && value->first && !value->first->next && is_function(value->first->name))
        return call_function(resolver, value, out);
    return resolve_children(resolver, value, out);
}

bool resolve(struct resolver *resolver, const struct node *value, const struct node **out)
{
    if (!nest(resolver, value)) return false;
    bool fine = resolve_value(resolver, value, out);
    resolver->template->nesting--;
    return fine;
}

static bool resolve_children(struct resolver *resolver, const struct node *value, const struct node **out)
{
    struct node *parent = make_node(resolver->arena, value->kind, value);
    const struct node **end = &parent->first;
    for (const struct node *child = value->first; child; child = child->next) {
        const struct node *made = NULL;
        if (!resolve(resolver, child, &made)) return false;
        if (!made) continue;
        struct node *copy = make_copy(resolver->arena, made, child->name);
        *end = copy;
        end = &copy->next;
    }
    *out = parent;
    return true;
}

/* ---- texts ---- */

bool text_of(struct resolver *resolver, const struct node *value, const char *whose, struct slice *text)
{
    *text = SLICE("");
    if (value) switch (value->kind) {
        case JSON_STRING:
        case JSON_NUMBER: *text = value->text; return true;
        case JSON_TRUE: *text = SLICE("true"); return true;
        case JSON_FALSE: *text = SLICE("false"); return true;
        default: break;
        }
    return template_fail(resolver->template, value ? value : resolver->call, "%s needs a text here", whose);
}

/* ---- Ref and GetAtt ---- */

static bool put_pseudo(struct resolver *resolver, const struct node *where, struct slice name,
                       const struct node **out)
{
    const struct template_world *world = resolver->template->world;
    struct slice text = SLICE_NONE, aws = slice_from(name, sizeof "AWS::" - 1);
    if (slice_equal(aws, SLICE("NoValue"))) {
        *out = NULL;
        return true;
    }
    if (slice_equal(aws, SLICE("Region"))) text = world->region;
    if (slice_equal(aws, SLICE("AccountId"))) text = world->account;
    if (slice_equal(aws, SLICE("StackName"))) text = world->stack;
    if (slice_equal(aws, SLICE("Partition"))) text = SLICE("aws");
    if (slice_equal(aws, SLICE("URLSuffix"))) text = SLICE("amazonaws.com");
    if (slice_equal(aws, SLICE("StackId")))
        text = arena_printf(resolver->arena, "arn:aws:cloudformation:%.*s:%.*s:stack/%.*s/%.*s",
                            SLICE_ARG(world->region), SLICE_ARG(world->account), SLICE_ARG(world->stack),
                            SLICE_ARG(world->stack));
    if (slice_equal(aws, SLICE("NotificationARNs"))) {
        *out = make_node(resolver->arena, JSON_ARRAY, where);
        return true;
    }
    if (!text.data) return template_fail(resolver->template, where, "there is no '%.*s'", SLICE_ARG(name));
    *out = make_text(resolver->arena, where, text);
    return true;
}

/* Nothing is left out here: a resource that is there by its name only is no answer. */
static bool ask_for(struct resolver *resolver, const struct node *where, struct slice id,
                    struct slice attribute, const struct node **out)
{
    struct template *template = resolver->template;
    const struct template_resource *resource = template_find(template, id);
    struct slice value = SLICE_NONE;
    if (!resolver_work(resolver, where, template->resource_count + id.len + attribute.len)) return false;
    if (resolver->is_condition)
        return template_fail(template, where, "a condition can refer to parameters only, and '%.*s' is none",
                             SLICE_ARG(id));
    if (!resource) {
        const struct node *all = node_member(template->root, "Resources"), *hidden = all ? all->first : NULL;
        while (hidden && !slice_equal(hidden->name, id)) hidden = hidden->next;
        if (node_member(hidden, "Condition"))
            return template_fail(template, where,
                                 "'%.*s' is not made, since its condition '%.*s' does not hold",
                                 SLICE_ARG(id), SLICE_ARG(node_member(hidden, "Condition")->text));
        return template_fail(template, where,
                             attribute.len ? "there is no resource '%.*s'"
                                           : "there is no parameter or resource '%.*s'",
                             SLICE_ARG(id));
    }
    switch (resolver->ask->answer(resolver->ask->context, resource, attribute, &value)) {
    case TEMPLATE_KNOWN: *out = make_text(resolver->arena, where, value); return true;
    case TEMPLATE_NONE:
        return template_fail(template, where, "'%.*s' (%.*s) has no attribute '%.*s'", SLICE_ARG(id),
                             SLICE_ARG(resource->type), SLICE_ARG(attribute));
    case TEMPLATE_LATER: break;
    }
    struct node *later = make_text(resolver->arena, where,
                                   arena_printf(resolver->arena, "${%.*s%s%.*s}", SLICE_ARG(id),
                                                attribute.len ? "." : "", SLICE_ARG(attribute)));
    later->unknown = true;
    *out = later;
    return true;
}

static bool refer(struct resolver *resolver, const struct node *where, struct slice name,
                  const struct node **out)
{
    struct template *template = resolver->template;
    if (slice_starts(name, SLICE("AWS::"))) return put_pseudo(resolver, where, name, out);
    for (size_t i = 0; i < template->parameter_count; i++)
        if (slice_equal(template->parameters[i].name, name)) {
            *out = template->parameters[i].value;
            return true;
        }
    return ask_for(resolver, where, name, SLICE(""), out);
}

bool call_ref(struct resolver *resolver, const struct node *argument, const struct node **out)
{
    struct slice name;
    return text_of(resolver, argument, "Ref", &name) && refer(resolver, argument, name, out);
}

/* [resource, attribute], or "resource.attribute". The attribute may have dots, and may be a Ref of a parameter. */
bool call_get_att(struct resolver *resolver, const struct node *argument, const struct node **out)
{
    struct slice id, attribute;
    if (node_is_plain(argument)) {
        attribute = argument->text;
        id = slice_cut(&attribute, '.');
    } else {
        const struct node *list = NULL, *second;
        if (!resolve(resolver, argument, &list)) return false;
        second = list && list->kind == JSON_ARRAY && list->first ? list->first->next : NULL;
        if (!second)
            return template_fail(resolver->template, argument,
                                 "Fn::GetAtt takes a resource and an attribute");
        if (!text_of(resolver, list->first, "Fn::GetAtt", &id) ||
            !text_of(resolver, second, "Fn::GetAtt", &attribute))
            return false;
        struct buf parts = {0};
        for (buf_slice(&parts, attribute); (second = second->next);)
            buf_printf(&parts, ".%.*s", SLICE_ARG(second->text));
        attribute = arena_take(resolver->arena, &parts);
    }
    if (!attribute.len)
        return template_fail(resolver->template, argument, "Fn::GetAtt takes a resource and an attribute");
    return ask_for(resolver, argument, id, attribute, out);
}

/* ---- Sub ---- */

/* ${Name}, ${Name.Attribute} or a name of the map. */
static bool put_variable(struct resolver *resolver, const struct node *where, struct slice name,
                         const struct node *map, struct buf *out, bool *unknown)
{
    const struct node *value = map ? map->first : NULL, *made = NULL;
    struct slice attribute = name, text;
    while (value && !slice_equal(value->name, name)) value = value->next;
    if (value)
        made = value;
    else if (!slice_starts(name, SLICE("AWS::")) && memchr(name.data, '.', name.len)) {
        struct slice id = slice_cut(&attribute, '.');
        if (!ask_for(resolver, where, id, attribute, &made)) return false;
    } else if (!refer(resolver, where, name, &made))
        return false;
    if (!text_of(resolver, made, "Fn::Sub", &text)) return false;
    *unknown |= made->unknown;
    buf_slice(out, text);
    return resolver_work(resolver, where, text.len);
}

bool call_sub(struct resolver *resolver, const struct node *argument, const struct node **out)
{
    const struct node *format = argument, *map = NULL;
    if (argument->kind == JSON_ARRAY && argument->first) {
        format = argument->first;
        if (format->next && !resolve(resolver, format->next, &map)) return false;
    }
    if (format->kind != JSON_STRING || (map && map->kind != JSON_OBJECT))
        return template_fail(resolver->template, argument,
                             "Fn::Sub takes a text, or a list of a text and an object");
    struct buf text = {0};
    bool unknown = false, fine = true;
    struct slice rest = format->text;
    while (fine && rest.len) {
        const char *open = memmem(rest.data, rest.len, "${", 2);
        const char *close = open ? memchr(open, '}', (size_t)(rest.data + rest.len - open)) : NULL;
        if (!close) {
            buf_slice(&text, rest);
            break;
        }
        struct slice name = {open + 2, (size_t)(close - open - 2)};
        buf_put(&text, rest.data, (size_t)(open - rest.data));
        rest = slice_from(rest, (size_t)(close + 1 - rest.data));
        if (name.len && name.data[0] == '!') {
            buf_printf(&text, "${%.*s}", SLICE_ARG(slice_from(name, 1)));
            continue;
        }
        while (name.len && name.data[0] == ' ') name = slice_from(name, 1);
        while (name.len && name.data[name.len - 1] == ' ') name.len--;
        fine = put_variable(resolver, format, name, map, &text, &unknown);
    }
    fine = fine && resolver_work(resolver, argument, text.len);
    struct node *made = make_text(resolver->arena, argument, arena_take(resolver->arena, &text));
    made->unknown = unknown;
    *out = made;
    return fine;
}

/* ---- conditions ---- */

bool condition_is_met(struct template *template, const struct node *where, struct slice name, bool *holds)
{
    struct condition *condition = NULL;
    for (size_t i = 0; i < template->condition_count && !condition; i++)
        if (slice_equal(template->conditions[i].name, name)) condition = &template->conditions[i];
    if (!condition) return template_fail(template, where, "there is no condition '%.*s'", SLICE_ARG(name));
    if (condition->state == CONDITION_UNDER_WAY)
        return template_fail(template, condition->rule, "the condition '%.*s' depends on itself",
                             SLICE_ARG(name));
    if (condition->state == CONDITION_UNTRIED) {
        static const struct template_ask nobody = {0};
        struct resolver resolver = {
            .template = template, .arena = template->arena, .ask = &nobody, .is_condition = true};
        condition->state = CONDITION_UNDER_WAY;
        bool result = false;
        if (!judge(&resolver, condition->rule, &result)) return false;
        condition->state = result ? CONDITION_HOLDS : CONDITION_FAILS;
    }
    *holds = condition->state == CONDITION_HOLDS;
    return true;
}

static bool judge_list(struct resolver *resolver, const struct node *list, bool stops_at, bool *holds)
{
    if (list->kind != JSON_ARRAY)
        return template_fail(resolver->template, list, "%.*s takes a list of conditions",
                             SLICE_ARG(list->name));
    *holds = !stops_at;
    for (const struct node *one = list->first; one; one = one->next) {
        bool result = false;
        if (!judge(resolver, one, &result)) return false;
        if (result == stops_at) *holds = stops_at;
    }
    return true;
}

static bool judge_equals(struct resolver *resolver, const struct node *argument, bool *holds)
{
    const struct node *sides = NULL;
    if (!resolve(resolver, argument, &sides)) return false;
    if (!sides || sides->kind != JSON_ARRAY || node_children(sides) != 2)
        return template_fail(resolver->template, argument, "Fn::Equals takes two values");
    const struct node *left = sides->first, *right = left->next;
    struct slice texts[2];
    if (left->first || right->first || left->kind == JSON_ARRAY || left->kind == JSON_NULL) {
        struct buf a = {0}, b = {0};
        node_put(&a, left);
        node_put(&b, right);
        *holds = slice_equal(buf_view(&a), buf_view(&b));
        buf_free(&a);
        buf_free(&b);
        return true;
    }
    if (!text_of(resolver, left, "Fn::Equals", &texts[0]) ||
        !text_of(resolver, right, "Fn::Equals", &texts[1]))
        return false;
    *holds = slice_equal(texts[0], texts[1]);
    return true;
}

bool judge(struct resolver *resolver, const struct node *rule, bool *holds)
{
    if (!nest(resolver, rule)) return false;
    bool fine = judge_rule(resolver, rule, holds);
    resolver->template->nesting--;
    return fine;
}

static bool judge_rule(struct resolver *resolver, const struct node *rule, bool *holds)
{
    const struct node *argument, *made = NULL;
    if (rule->kind == JSON_TRUE || rule->kind == JSON_FALSE) {
        *holds = rule->kind == JSON_TRUE;
        return true;
    }
    if (node_is_call(rule, "Condition", &argument))
        return condition_is_met(resolver->template, argument, argument->text, holds);
    if (node_is_call(rule, "Fn::Equals", &argument)) return judge_equals(resolver, argument, holds);
    if (node_is_call(rule, "Fn::And", &argument)) return judge_list(resolver, argument, false, holds);
    if (node_is_call(rule, "Fn::Or", &argument)) return judge_list(resolver, argument, true, holds);
    if (node_is_call(rule, "Fn::Not", &argument)) {
        if (!judge_list(resolver, argument, false, holds)) return false;
        *holds = !*holds;
        return true;
    }
    if (!resolve(resolver, rule, &made)) return false;
    *holds = made && (made->kind == JSON_TRUE || slice_equal(made->text, SLICE("true")));
    if (made && (made->kind == JSON_TRUE || made->kind == JSON_FALSE || *holds ||
                 slice_equal(made->text, SLICE("false"))))
        return true;
    return template_fail(resolver->template, rule,
                         "a condition is expected here: Fn::Equals, Fn::And, Fn::Or, Fn::Not or Condition");
}

bool call_if(struct resolver *resolver, const struct node *argument, const struct node **out)
{
    const struct node *then = argument->first ? argument->first->next : NULL;
    bool holds = false;
    if (argument->kind != JSON_ARRAY || node_children(argument) != 3)
        return template_fail(resolver->template, argument, "Fn::If takes a condition and two values");
    if (argument->first->text.len
            ? !condition_is_met(resolver->template, argument->first, argument->first->text, &holds)
            : !judge(resolver, argument->first, &holds))
        return false;
    return resolve(resolver, holds ? then : then->next, out);
}

static bool call_judge(struct resolver *resolver, const struct node *argument, const struct node **out)
{
    bool holds = false;
    (void)argument;
    if (!judge(resolver, resolver->call, &holds)) return false;
    *out = make_node(resolver->arena, holds ? JSON_TRUE : JSON_FALSE, resolver->call);
    return true;
}

/* ---- which function ---- */

static const struct {
    const char *name;
    bool (*run)(struct resolver *resolver, const struct node *argument, const struct node **out);
} functions[] = {
    {"Ref", call_ref},
    {"Fn::GetAtt", call_get_att},
    {"Fn::Sub", call_sub},
    {"Fn::Join", call_join},
    {"Fn::If", call_if},
    {"Fn::Select", call_select},
    {"Fn::Split", call_split},
    {"Fn::FindInMap", call_find_in_map},
    {"Fn::ImportValue", call_import_value},
    {"Fn::Base64", call_base64},
    {"Fn::Cidr", call_cidr},
    {"Fn::GetAZs", call_get_azs},
    {"Fn::Length", call_length},
    {"Fn::ToJsonString", call_to_json_string},
    {"Fn::Equals", call_judge},
    {"Fn::And", call_judge},
    {"Fn::Or", call_judge},
    {"Fn::Not", call_judge},
};

static bool call_function(struct resolver *resolver, const struct node *call, const struct node **out)
{
    const struct node *argument = call->first, *outer = resolver->call;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (!slice_equal(argument->name, slice_of(functions[i].name))) continue;
        resolver->call = call;
        bool fine = functions[i].run(resolver, argument, out);
        resolver->call = outer;
        return fine;
    }
    if (!resolver_work(resolver, call, argument->name.len)) return false;
    if (resolver->notes)
        note_put(resolver->arena, resolver->notes, call,
                 "the function %.*s is not known, and its value is left out", SLICE_ARG(argument->name));
    *out = NULL;
    return true;
}
