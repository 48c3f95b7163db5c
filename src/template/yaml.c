/* YAML by libyaml's events into a tree.
 *
 * Plain scalars are read as CloudFormation and SAM do (YAML 1.1), with one exception: a number is only what JSON calls
 * one, without exponent. Account numbers with leading zeros, hashes such as 1e5, dates and times stay the texts that
 * they are. The text of a boolean is kept, since serverless.yml means a word by `on` and `yes`.
 *
 * An alias shares the children of what it stands for. They are counted again, or a file of 1 KB could have more nodes
 * than there are atoms. */
#include <yaml.h>

#include "base/limits.h"
#include "template/internal.h"

struct anchor {
    struct slice name;
    const struct node *node; /* NULL: it is being read, so an alias would stand for itself */
    size_t weight;           /* nodes */
    unsigned height;
    struct anchor *next;
};

struct yaml {
    struct reading *reading;
    yaml_parser_t parser;
    struct anchor *anchors; /* newest first: an anchor may be given again */
    size_t nodes, looked_at; /* looked_at: anchors, for aliases */
    unsigned depth, deepest;
};

static const struct node *read_document(struct yaml *yaml);
static struct node *read_node(struct yaml *yaml, yaml_event_t *event);

const struct node *yaml_read(struct reading *reading)
{
    struct yaml yaml = {.reading = reading};
    if (!yaml_parser_initialize(&yaml.parser)) {
        reading_fail(reading, 1, 1, "there is no memory to read it");
        return NULL;
    }
    yaml_parser_set_input_string(&yaml.parser, (const unsigned char *)reading->text.data, reading->text.len);
    const struct node *root = read_document(&yaml);
    yaml_parser_delete(&yaml.parser);
    return root;
}

static bool fail_at(struct yaml *yaml, yaml_mark_t mark, const char *what)
{
    return reading_fail(yaml->reading, mark.line + 1, mark.column + 1, "%s", what);
}

/* libyaml's problem in its words, and where the part began in which it stands. */
static bool fail_by_parser(struct yaml *yaml)
{
    const yaml_parser_t *parser = &yaml->parser;
    const char *problem = parser->problem ? parser->problem : "it cannot be read";
    struct slice text = yaml->reading->text;
    yaml_mark_t mark = parser->problem_mark;
    if (parser->error == YAML_READER_ERROR) {
        size_t line = 1, column = 1;
        for (size_t i = 0; i < parser->problem_offset && i < text.len; i++, column++)
            if (text.data[i] == '\n') {
                line++;
                column = 0;
            }
        return reading_fail(yaml->reading, line, column, "this is no YAML: %s", problem);
    }
    if (mark.index < text.len && text.data[mark.index] == '\t')
        return fail_at(yaml, mark, "this is no YAML: a tab cannot begin a line or a value; use spaces");
    if (parser->context && parser->context_mark.line != mark.line)
        return reading_fail(yaml->reading, mark.line + 1, mark.column + 1,
                            "this is no YAML: %s %s from line %zu on", problem, parser->context,
                            parser->context_mark.line + 1);
    return reading_fail(yaml->reading, mark.line + 1, mark.column + 1, "this is no YAML: %s", problem);
}

static bool next_event(struct yaml *yaml, yaml_event_t *event)
{
    return yaml_parser_parse(&yaml->parser, event) ? true : fail_by_parser(yaml);
}

/* The first document is the template; another one is refused. */
static const struct node *read_document(struct yaml *yaml)
{
    yaml_event_t event;
    const struct node *root = NULL;
    for (;;) {
        if (!next_event(yaml, &event)) return NULL;
        switch (event.type) {
        case YAML_STREAM_END_EVENT:
            yaml_event_delete(&event);
            if (!root) reading_fail(yaml->reading, 1, 1, "the file is empty");
            return root;
        case YAML_STREAM_START_EVENT:
        case YAML_DOCUMENT_END_EVENT: yaml_event_delete(&event); break;
        case YAML_DOCUMENT_START_EVENT:
            if (root) fail_at(yaml, event.start_mark, "a second document begins here, and a template is one");
            yaml_event_delete(&event);
            if (root) return NULL;
            break;
        default:
            root = read_node(yaml, &event);
            if (!root) return NULL;
        }
    }
}

/* ---- nodes ---- */

static struct node *new_node(struct yaml *yaml, enum json_kind kind, yaml_mark_t mark)
{
    struct node *node = arena_new(yaml->reading->arena, struct node);
    node->kind = kind;
    node->line = (uint32_t)mark.line + 1;
    node->column = (uint32_t)mark.column + 1;
    return node;
}

/* Counts nodes that come in at this depth with so many levels below them. */
static bool count_nodes(struct yaml *yaml, size_t weight, unsigned height, yaml_mark_t mark)
{
    yaml->nodes += weight;
    if (yaml->depth + height > yaml->deepest) yaml->deepest = yaml->depth + height;
    if (yaml->nodes > LIMIT_TEMPLATE_NODES)
        return reading_fail(yaml->reading, mark.line + 1, mark.column + 1,
                            "the template has more than %d values, with those that aliases stand for",
                            LIMIT_TEMPLATE_NODES);
    if (yaml->deepest > LIMIT_TEMPLATE_DEPTH)
        return reading_fail(yaml->reading, mark.line + 1, mark.column + 1,
                            "values are nested more than %d levels deep", LIMIT_TEMPLATE_DEPTH);
    return true;
}

static struct anchor *begin_anchor(struct yaml *yaml, const yaml_char_t *name)
{
    if (!name) return NULL;
    struct anchor *anchor = arena_new(yaml->reading->arena, struct anchor);
    anchor->name = arena_copy(yaml->reading->arena, slice_of((const char *)name));
    anchor->next = yaml->anchors;
    yaml->anchors = anchor;
    return anchor;
}

static struct node *read_alias(struct yaml *yaml, const yaml_event_t *event)
{
    struct slice name = slice_of((const char *)event->data.alias.anchor);
    const struct anchor *anchor = yaml->anchors;
    for (; anchor && !slice_equal(anchor->name, name); anchor = anchor->next) yaml->looked_at++;
    if (yaml->looked_at > LIMIT_TEMPLATE_WORK) {
        fail_at(yaml, event->start_mark, "the template has too many anchors and aliases");
        return NULL;
    }
    if (!anchor || !anchor->node) {
        reading_fail(yaml->reading, event->start_mark.line + 1, event->start_mark.column + 1,
                     anchor ? "the alias '*%.*s' stands within what it stands for"
                            : "the alias '*%.*s' has no anchor '&' before it",
                     SLICE_ARG(name));
        return NULL;
    }
    if (!count_nodes(yaml, anchor->weight, anchor->height, event->start_mark)) return NULL;
    struct node *node = new_node(yaml, anchor->node->kind, event->start_mark);
    node->text = anchor->node->text;
    node->first = anchor->node->first;
    return node;
}

/* ---- scalars ---- */

static bool is_word(struct slice text, const char *const *words)
{
    for (; *words; words++) {
        struct slice word = slice_of(*words);
        if (!slice_equal_ignoring_case(text, word)) continue;
        /* Yes, YES and yes, but not yEs. */
        bool rest_is_small = true, rest_is_large = true;
        for (size_t i = 1; i < text.len; i++)
            if (text.data[i] == word.data[i])
                rest_is_large = false;
            else
                rest_is_small = false;
        return rest_is_small || (rest_is_large && text.data[0] != word.data[0]);
    }
    return false;
}

/* As JSON writes numbers, without exponent. */
static bool is_number(struct slice text)
{
    size_t at = text.len && text.data[0] == '-', start = at;
    while (at < text.len && text.data[at] >= '0' && text.data[at] <= '9') at++;
    if (at == start || (at - start > 1 && text.data[start] == '0')) return false;
    if (at == text.len) return true;
    if (text.data[at++] != '.' || at == text.len) return false;
    while (at < text.len && text.data[at] >= '0' && text.data[at] <= '9') at++;
    return at == text.len;
}

static enum json_kind plain_kind(struct slice text)
{
    static const char *const truths[] = {"true", "yes", "on", NULL},
                             *const lies[] = {"false", "no", "off", NULL},
                             *const nothings[] = {"null", "~", NULL};
    if (!text.len || is_word(text, nothings)) return JSON_NULL;
    if (is_word(text, truths)) return JSON_TRUE;
    if (is_word(text, lies)) return JSON_FALSE;
    return is_number(text) ? JSON_NUMBER : JSON_STRING;
}

static struct node *read_scalar(struct yaml *yaml, const yaml_event_t *event)
{
    struct slice text = {(const char *)event->data.scalar.value, event->data.scalar.length};
    const char *tag = (const char *)event->data.scalar.tag;
    bool is_text = tag && (strcmp(tag, "!") == 0 || strcmp(tag, YAML_STR_TAG) == 0);
    bool is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && !is_text;
    struct node *node = new_node(yaml, is_plain ? plain_kind(text) : JSON_STRING, event->start_mark);
    node->text = arena_copy(yaml->reading->arena, text);
    return node;
}

/* ---- collections ---- */

static struct node *read_array(struct yaml *yaml, yaml_mark_t start)
{
    struct node *array = new_node(yaml, JSON_ARRAY, start);
    const struct node **end = &array->first;
    yaml_event_t event;
    for (;;) {
        if (!next_event(yaml, &event)) return NULL;
        if (event.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&event);
            return array;
        }
        struct node *element = read_node(yaml, &event);
        if (!element) return NULL;
        *end = element;
        end = &element->next;
    }
}

/* What `<<` names: one object or several. Their members are put in front of the object's own, the first source's
 * last, so that the last one of a name is the one that counts. */
static bool merge_members(struct yaml *yaml, struct node *object, const struct node *from)
{
    const struct node *source = from->kind == JSON_ARRAY ? from->first : from;
    for (; source; source = from->kind == JSON_ARRAY ? source->next : NULL) {
        if (source->kind != JSON_OBJECT)
            return reading_fail(yaml->reading, from->line, from->column,
                                "'<<' needs a mapping, or a list of them");
        const struct node *first = NULL, **end = &first;
        for (const struct node *member = source->first; member; member = member->next) {
            struct node *copy = arena_new(yaml->reading->arena, struct node);
            *copy = *member;
            *end = copy;
            end = &copy->next;
        }
        *end = object->first;
        object->first = first;
    }
    members_settle(yaml->reading, object, false);
    return true;
}

/* A member's name; NULL and an error when it is not one. */
static struct node *read_name(struct yaml *yaml, yaml_event_t *event, bool *is_merge)
{
    yaml_mark_t mark = event->start_mark;
    *is_merge = event->type == YAML_SCALAR_EVENT && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
                strcmp((const char *)event->data.scalar.value, "<<") == 0;
    struct node *name = read_node(yaml, event);
    if (!name) return NULL;
    if (name->kind != JSON_OBJECT && name->kind != JSON_ARRAY) return name;
    fail_at(yaml, mark, "a name is expected here, and this is a mapping or a list");
    return NULL;
}

static struct node *read_object(struct yaml *yaml, yaml_mark_t start)
{
    struct node *object = new_node(yaml, JSON_OBJECT, start), *merged = NULL;
    const struct node **end = &object->first;
    yaml_event_t event;
    for (;;) {
        bool is_merge;
        if (!next_event(yaml, &event)) return NULL;
        if (event.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&event);
            members_settle(yaml->reading, object, true);
            return !merged || merge_members(yaml, object, merged) ? object : NULL;
        }
        const struct node *name = read_name(yaml, &event, &is_merge);
        if (!name || !name_check(yaml->reading, name->text, name->line, name->column) || !next_event(yaml, &event))
            return NULL;
        struct node *value = read_node(yaml, &event);
        if (!value) return NULL;
        if (is_merge) {
            merged = value;
            continue;
        }
        value->name = name->text;
        *end = value;
        end = &value->next;
    }
}

/* ---- tags ---- */

/* {"Fn::Name": value} for !Name. GetAtt's resource and attribute are parted at the first dot. */
static struct node *enclose(struct yaml *yaml, const char *tag, struct node *value)
{
    struct arena *arena = yaml->reading->arena;
    struct slice name = slice_from(slice_of(tag), 1);
    struct node *object = arena_new(arena, struct node);
    object->kind = JSON_OBJECT;
    object->line = value->line;
    object->column = value->column;
    bool is_bare = slice_equal(name, SLICE("Ref")) || slice_equal(name, SLICE("Condition"));
    struct slice rest = value->text;
    if (slice_equal(name, SLICE("GetAtt")) && value->kind == JSON_STRING &&
        memchr(rest.data, '.', rest.len)) {
        struct node *array = arena_new(arena, struct node), *first = arena_new(arena, struct node);
        *array = (struct node){
            .kind = JSON_ARRAY, .line = value->line, .column = value->column, .first = first};
        *first = *value;
        first->text = slice_cut(&rest, '.');
        first->next = value;
        value->text = rest;
        value = array;
    }
    value->name = is_bare ? arena_copy(arena, name) : arena_printf(arena, "Fn::%.*s", SLICE_ARG(name));
    object->first = value;
    return object;
}

/* ---- any node ---- */

/* Takes the event over. */
static struct node *read_node(struct yaml *yaml, yaml_event_t *event)
{
    const yaml_char_t *anchor_name = NULL;
    const char *tag = NULL;
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        anchor_name = event->data.scalar.anchor;
        tag = (const char *)event->data.scalar.tag;
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchor_name = event->data.sequence_start.anchor;
        tag = (const char *)event->data.sequence_start.tag;
        break;
    case YAML_MAPPING_START_EVENT:
        anchor_name = event->data.mapping_start.anchor;
        tag = (const char *)event->data.mapping_start.tag;
        break;
    default: break;
    }
    bool has_tag = tag && tag[0] == '!' && tag[1];
    yaml_mark_t start = event->start_mark;
    unsigned outer_deepest = yaml->deepest;
    size_t nodes_before = yaml->nodes;
    struct anchor *anchor = begin_anchor(yaml, anchor_name);
    struct node *node = NULL;
    yaml->deepest = yaml->depth += has_tag;
    if (event->type == YAML_ALIAS_EVENT)
        node = read_alias(yaml, event);
    else if (event->type == YAML_SCALAR_EVENT && count_nodes(yaml, has_tag ? 3 : 1, has_tag, start))
        node = read_scalar(yaml, event);
    else if (event->type != YAML_SCALAR_EVENT && count_nodes(yaml, 1, 1, start)) {
        yaml->depth++;
        node = event->type == YAML_MAPPING_START_EVENT ? read_object(yaml, start) : read_array(yaml, start);
        yaml->depth--;
    }
    if (node && has_tag) node = enclose(yaml, tag, node);
    yaml->depth -= has_tag;
    if (anchor) {
        anchor->node = node;
        anchor->weight = yaml->nodes - nodes_before;
        anchor->height = yaml->deepest - yaml->depth;
    }
    if (outer_deepest > yaml->deepest) yaml->deepest = outer_deepest;
    yaml_event_delete(event);
    return node;
}
