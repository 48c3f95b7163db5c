/* TagResource, UntagResource and ListTagsOfResource, for tables. */
#include "api/tags.h"

#include "api/settings.h"

#define TAG_KEY_CHARACTERS   128
#define TAG_VALUE_CHARACTERS 256

static const struct shape shape_tag_keys = LIST_SHAPE(shape_string);

enum { TAG_RESOURCE, TAG_TAGS };

static const struct shape_member tag_members[] = {
    [TAG_RESOURCE] = MEMBER("ResourceArn", shape_resource_arn),
    [TAG_TAGS] = REQUIRED("Tags", shape_tags),
};
static const struct shape tag_shape = STRUCT_SHAPE("TagResourceInput", tag_members);

static const struct shape_member untag_members[] = {
    [TAG_RESOURCE] = MEMBER("ResourceArn", shape_resource_arn),
    [TAG_TAGS] = REQUIRED("TagKeys", shape_tag_keys),
};
static const struct shape untag_shape = STRUCT_SHAPE("UntagResourceInput", untag_members);

enum { LIST_RESOURCE, LIST_TOKEN };

static const struct shape_member list_members[] = {
    [LIST_RESOURCE] = MEMBER("ResourceArn", shape_resource_arn),
    [LIST_TOKEN] = MEMBER("NextToken", shape_string),
};
static const struct shape list_shape = STRUCT_SHAPE("ListTagsOfResourceInput", list_members);

/* ---- characters: letters, digits and spaces of all scripts, and a few signs ---- */

struct range {
    uint32_t first, last;
};

/* Beyond ASCII: controls, punctuation, symbols, what is private. Everything else is taken for a letter. */
static const struct range no_letters[] = {
    {0x80, 0x9f},     {0xa1, 0xa9},     {0xab, 0xb1},       {0xb4, 0xb4},     {0xb6, 0xb8},
    {0xbb, 0xbb},     {0xbf, 0xbf},     {0xd7, 0xd7},       {0xf7, 0xf7},     {0x2010, 0x2027},
    {0x202a, 0x202e}, {0x2030, 0x205e}, {0x2060, 0x206f},   {0x207a, 0x207e}, {0x20a0, 0x20cf},
    {0x2190, 0x245f}, {0x2500, 0x2bff}, {0x2e00, 0x2e7f},   {0x3001, 0x3004}, {0x3008, 0x3020},
    {0xe000, 0xf8ff}, {0xff01, 0xff0f}, {0x1f000, 0x1faff},
};

static bool is_tag_character(uint32_t c)
{
    if (c < 0x80)
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               (c && strchr(" +-=._:/@", (int)c));
    for (size_t i = 0; i < sizeof no_letters / sizeof *no_letters; i++)
        if (c >= no_letters[i].first && c <= no_letters[i].last) return false;
    return true;
}

/* Takes one character off the front; requests hold well-formed UTF-8 only. */
static uint32_t take_character(struct slice *rest)
{
    unsigned char first = (unsigned char)rest->data[0];
    size_t len = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    uint32_t c = len == 1 ? first : first & (0x7fu >> len);
    for (size_t i = 1; i < len && i < rest->len; i++) c = c << 6 | ((unsigned char)rest->data[i] & 0x3f);
    *rest = slice_from(*rest, len < rest->len ? len : rest->len);
    return c;
}

static bool is_tag_text(const struct node *node, unsigned least, unsigned most)
{
    struct slice rest = node->text;
    unsigned count = 0;
    if (!node->present) return false;
    for (; rest.len && count <= most; count++)
        if (!is_tag_character(take_character(&rest))) return false;
    return count >= least && count <= most;
}

static struct slice text_or_null(const struct node *node)
{
    return node->present ? node->text : SLICE("null");
}

static bool check_key(struct verdict *verdict, const struct node *key)
{
    struct slice text = text_or_null(key);
    if (!is_tag_text(key, 1, TAG_KEY_CHARACTERS))
        return reject(verdict, "The Tag Key provided is invalid, Key: %.*s", SLICE_ARG(text));
    if (slice_starts(text, SLICE("aws:")))
        return reject(verdict, "Tag Key cannot be prefixed with aws:, Key: %.*s", SLICE_ARG(text));
    return true;
}

/* ---- lists of tags ---- */

static const struct node *tag_member(const struct node *tag, unsigned member)
{
    static const struct node absent;
    return tag->present ? node_member(tag, member) : &absent;
}

static bool check_tag(struct verdict *verdict, const struct node *tag)
{
    const struct node *value = tag_member(tag, TAG_VALUE);
    if (!check_key(verdict, tag_member(tag, TAG_KEY))) return false;
    if (is_tag_text(value, 0, TAG_VALUE_CHARACTERS)) return true;
    return reject(verdict, "The Tag Value provided is invalid, Value: %.*s", SLICE_ARG(text_or_null(value)));
}

bool check_tags(struct verdict *verdict, const struct node *list)
{
    if (list->count > LIMIT_TAGS)
        return reject(verdict, "Number of Tags exceed the current limit for the provided ResourceArn");
    for (uint32_t i = 0; i < list->count; i++) {
        if (!check_tag(verdict, &list->elements[i])) return false;
        struct slice key = node_member(&list->elements[i], TAG_KEY)->text;
        for (uint32_t j = 0; j < i; j++)
            if (slice_equal(node_member(&list->elements[j], TAG_KEY)->text, key))
                return reject(verdict, "Duplicate Tag Keys provided as input: Duplicate Tag Key found %.*s",
                              SLICE_ARG(key));
    }
    return true;
}

static struct tag *find_tag(const struct table_definition *definition, struct slice key)
{
    for (uint32_t i = 0; i < definition->tag_count; i++)
        if (slice_equal(definition->tags[i].key, key)) return &definition->tags[i];
    return NULL;
}

bool merge_tags(struct verdict *verdict, const struct node *list, struct table_definition *definition)
{
    struct tag *tags = arena_array(verdict->arena, struct tag, definition->tag_count + list->count);
    if (definition->tag_count) memcpy(tags, definition->tags, definition->tag_count * sizeof *tags);
    definition->tags = tags;
    for (uint32_t i = 0; i < list->count; i++) {
        struct tag tag = {node_member(&list->elements[i], TAG_KEY)->text,
                          node_member(&list->elements[i], TAG_VALUE)->text};
        struct tag *known = find_tag(definition, tag.key);
        if (known)
            *known = tag;
        else
            tags[definition->tag_count++] = tag;
    }
    if (definition->tag_count > LIMIT_TAGS)
        return reject(verdict, "Number of Tags exceed the current limit for the provided ResourceArn");
    return true;
}

/* ---- which table ---- */

/* The service does not tell strangers what another account has. */
static bool refuse_stranger(struct api_call *call, struct slice arn)
{
    return refuse(
        call, "AccessDeniedException",
        "User: arn:aws:iam::%.*s:root is not authorized to perform: dynamodb:%.*s on resource: %.*s",
        SLICE_ARG(call->api->account), SLICE_ARG(call->operation->name), SLICE_ARG(arn));
}

static bool find_resource(struct api_call *call, const struct node *arn, struct slice *table_name)
{
    struct resource resource;
    if (!arn->present) return invalid(call, "Invalid TableArn");
    enum resource_fault fault = resource_parse(call->api, arn->text, &resource);
    if (fault == RESOURCE_OTHER_ACCOUNT) return refuse_stranger(call, arn->text);
    if (fault == RESOURCE_ELSEWHERE || (fault == RESOURCE_FINE && resource.stream_label.len))
        return invalid(call, "Invalid TableArn: Invalid ResourceArn provided as input %.*s",
                       SLICE_ARG(arn->text));
    if (fault != RESOURCE_FINE) return refuse_resource(call, fault, arn->text);
    *table_name = resource.table_name;
    return true;
}

static void resource_is_missing(struct table_change *change)
{
    reject_as(&change->verdict, "ResourceNotFoundException",
              "Requested resource not found: ResourceArn: %.*s not found",
              SLICE_ARG(node_member(&change->input, TAG_RESOURCE)->text));
}

/* ---- TagResource and UntagResource ---- */

static bool apply_tags(struct table_change *change)
{
    return merge_tags(&change->verdict, node_member(&change->input, TAG_TAGS), change->definition);
}

static bool apply_untag(struct table_change *change)
{
    const struct node *keys = node_member(&change->input, TAG_TAGS);
    struct table_definition *definition = change->definition;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < definition->tag_count; i++) {
        bool goes = false;
        for (uint32_t j = 0; j < keys->count && !goes; j++)
            goes = slice_equal(keys->elements[j].text, definition->tags[i].key);
        if (!goes) definition->tags[kept++] = definition->tags[i];
    }
    bool changed = kept < definition->tag_count;
    definition->tag_count = kept;
    return changed;
}

static void submit(struct api_call *call, const struct node *input, bool (*apply)(struct table_change *))
{
    struct table_change *change = arena_new(call->arena, struct table_change);
    change->apply = apply;
    change->missing = resource_is_missing;
    if (find_resource(call, node_member(input, TAG_RESOURCE), &change->table_name))
        table_change_submit(call, input, change);
}

static void tag_begin(struct api_call *call, const struct node *input)
{
    struct verdict verdict = {.arena = call->arena};
    const struct node *tags = node_member(input, TAG_TAGS);
    if (!tags->count)
        reject(&verdict, "Atleast one Tag needs to be provided as Input.");
    else
        check_tags(&verdict, tags);
    if (verdict_tell(call, &verdict)) submit(call, input, apply_tags);
}

static void check_keys(struct verdict *verdict, const struct node *keys)
{
    if (!keys->count) {
        reject(verdict, "Atleast one Tag Key needs to be provided as Input.");
    } else if (keys->count > LIMIT_TAGS) {
        reject(verdict, "Number of Tags exceed the current limit for the provided ResourceArn");
    } else {
        for (uint32_t i = 0; i < keys->count; i++)
            if (!check_key(verdict, &keys->elements[i])) return;
    }
}

static void untag_begin(struct api_call *call, const struct node *input)
{
    struct verdict verdict = {.arena = call->arena};
    check_keys(&verdict, node_member(input, TAG_TAGS));
    if (verdict_tell(call, &verdict)) submit(call, input, apply_untag);
}

static void finish(struct api_call *call)
{
    if (table_change_finish(call)) buf_text(call->reply, "{}");
}

const struct operation operation_TagResource = {
    .name = TEXT("TagResource"),
    .input = &tag_shape,
    .begin = tag_begin,
    .finish = finish,
};

const struct operation operation_UntagResource = {
    .name = TEXT("UntagResource"),
    .input = &untag_shape,
    .begin = untag_begin,
    .finish = finish,
};

/* ---- ListTagsOfResource ---- */

/* Nobody has the account of zeros: to the service its tables are a stranger's. */
static bool is_nobody(struct slice account)
{
    return slice_equal(account, SLICE("000000000000"));
}

static struct table *find_tagged(struct api_call *call, struct slice arn, struct slice name)
{
    struct table *table = engine_table_find(call->api->engine, name);
    if (table) return table;
    if (is_nobody(call->api->account))
        refuse_stranger(call, arn);
    else
        refuse(call, "ResourceNotFoundException", "Requested resource not found: ResourceArn: %.*s not found",
               SLICE_ARG(arn));
    return NULL;
}

/* All at once, so that there is never a NextToken, and one that is given means nothing. */
static void put_tags(struct buf *out, const struct table_definition *definition)
{
    buf_text(out, "{\"Tags\":[");
    for (uint32_t i = 0; i < definition->tag_count; i++) {
        if (i) buf_byte(out, ',');
        buf_text(out, "{\"Key\":");
        json_put_string(out, definition->tags[i].key);
        put_text(out, "Value", definition->tags[i].value);
        buf_byte(out, '}');
    }
    buf_text(out, "]}");
}

static void list_begin(struct api_call *call, const struct node *input)
{
    const struct node *arn = node_member(input, LIST_RESOURCE);
    struct slice name;
    if (!find_resource(call, arn, &name)) return;
    struct table *table = find_tagged(call, arn->text, name);
    if (!table) return;
    put_tags(call->reply, &table->definition);
    engine_table_release(table);
}

const struct operation operation_ListTagsOfResource = {
    .name = TEXT("ListTagsOfResource"),
    .input = &list_shape,
    .begin = list_begin,
};
