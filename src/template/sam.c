/* SAM into CloudFormation: each AWS::Serverless:: resource becomes the resources that the service would make of it,
 * under the names that SAM gives them, since templates refer to some of those.
 *
 * Three names are simpler than SAM's: versions of functions, layers and deployments have no digest at their end. The
 * digest makes CloudFormation see a change; here the code itself is compared.
 *
 * Roles and permissions are made without their policies, so that references to them work. Nothing checks them. */
#include "template/sam.h"

#include "base/limits.h"

static size_t weight_of(const struct node *value);
static const struct node *with_globals(struct sam *sam, const struct node *source, const char *kind);
static void translate(struct sam *sam, const struct node *source);
static const struct node *rename_references(struct sam *sam, const struct node *value);

bool template_is_sam(const struct node *root)
{
    const struct node *transform = node_member(root, "Transform"),
                      *resources = node_member(root, "Resources");
    if (transform)
        for (const struct node *one = transform->kind == JSON_ARRAY ? transform->first : transform; one;
             one = transform->kind == JSON_ARRAY ? one->next : NULL)
            if (slice_equal(one->text, SLICE("AWS::Serverless-2016-10-31"))) return true;
    for (const struct node *one = resources ? resources->first : NULL; one; one = one->next)
        if (slice_starts(node_text(one, "Type"), SLICE("AWS::Serverless::"))) return true;
    return false;
}

const struct node *sam_translate(struct template *template, const struct node *root)
{
    struct arena *arena = template->arena;
    struct sam sam = {.template = template, .arena = arena, .globals = node_member(root, "Globals")};
    sam.source = node_member(root, "Resources");
    if (!sam.source || sam.source->kind != JSON_OBJECT) return root;
    if (node_children(sam.source) > LIMIT_TEMPLATE_RESOURCES) return root; /* which is then refused */
    if (weight_of(sam.globals) * node_children(sam.source) > LIMIT_TEMPLATE_WORK / 128) {
        template_fail(template, sam.globals, "'Globals' are too large for so many resources");
        return root;
    }
    sam.resources = make_node(arena, JSON_OBJECT, sam.source);
    sam.end = &sam.resources->first;
    for (const struct node *source = sam.source->first; source; source = source->next)
        translate(&sam, source);
    sam_implicit_apis(&sam);
    struct node *made = make_copy(arena, root, SLICE(""));
    made->first = NULL;
    for (const struct node *section = root->first; section; section = section->next)
        if (!slice_equal(section->name, SLICE("Globals")))
            make_append(made,
                        make_copy(arena, section == sam.source ? sam.resources : section, section->name));
    return rename_references(&sam, made);
}

/* ---- helpers ---- */

void sam_put(struct sam *sam, const struct node *where, struct slice id, const char *type,
             const struct node *properties)
{
    const struct node *source = sam->source->first;
    while (source && source != where) source = source->next;
    struct node *made = make_tree(
        sam->arena, where,
        "{'Type':%s,'Condition':%n,'DependsOn':%n,'Metadata':%n,'DeletionPolicy':%n,"
        "'Properties':%n}",
        slice_of(type), node_member(source, "Condition"),
        source && slice_equal(source->name, id) ? node_member(source, "DependsOn") : NULL,
        source && slice_equal(source->name, id) ? node_member(source, "Metadata") : NULL,
        node_member(source, "DeletionPolicy"), properties);
    made->name = id;
    *sam->end = made;
    sam->end = &made->next;
}

void sam_note(struct sam *sam, const struct node *where, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    note_put_args(sam->arena, &sam->template->notes, where, format, args);
    va_end(args);
}

struct slice sam_id(struct sam *sam, struct slice first, const char *rest)
{
    return arena_printf(sam->arena, "%.*s%s", SLICE_ARG(first), rest);
}

struct node *sam_pick(struct sam *sam, const struct node *object, const char *names)
{
    struct node *picked = make_node(sam->arena, JSON_OBJECT, object);
    struct slice rest = slice_of(names);
    while (rest.len) {
        struct slice name = slice_cut(&rest, ' ');
        for (const struct node *member = object ? object->first : NULL; member; member = member->next)
            if (slice_equal(member->name, name)) make_append(picked, make_copy(sam->arena, member, name));
    }
    return picked;
}

/* How many nodes it has. */
static size_t weight_of(const struct node *value)
{
    size_t weight = value != NULL;
    for (const struct node *child = value ? value->first : NULL; child; child = child->next)
        weight += weight_of(child);
    return weight;
}

static const struct node *with_globals(struct sam *sam, const struct node *source, const char *kind)
{
    const struct node *global = node_member(sam->globals, kind), *own = node_member(source, "Properties");
    if (!own || own->kind != JSON_OBJECT) own = make_node(sam->arena, JSON_OBJECT, source);
    if (!global || global->kind != JSON_OBJECT) return own;
    const struct node *ignored = node_member(source, "IgnoreGlobals");
    if (!ignored) return make_merged(sam->arena, global, own);
    struct node *rest = make_node(sam->arena, JSON_OBJECT, global);
    for (const struct node *member = global->first; member && ignored->kind == JSON_ARRAY;
         member = member->next) {
        const struct node *name = ignored->first;
        while (name && !slice_equal(name->text, member->name)) name = name->next;
        if (!name) make_append(rest, make_copy(sam->arena, member, member->name));
    }
    return make_merged(sam->arena, rest, own);
}

/* {"a": "b"} as [{"Key": "a", "Value": "b"}]; other forms as they are. */
static const struct node *tag_list(struct sam *sam, const struct node *tags)
{
    if (!tags || tags->kind != JSON_OBJECT) return tags;
    struct node *list = make_node(sam->arena, JSON_ARRAY, tags);
    for (const struct node *tag = tags->first; tag; tag = tag->next)
        make_append(list, make_tree(sam->arena, tag, "{'Key':%s,'Value':%n}", tag->name, tag));
    return list;
}

/* ---- functions ---- */

#define FUNCTION_SAME                                                                                                 \
    "FunctionName Handler Runtime Description MemorySize Timeout VpcConfig Environment Architectures "                \
    "EphemeralStorage Layers KmsKeyArn ReservedConcurrentExecutions FileSystemConfigs ImageConfig PackageType "       \
    "CodeSigningConfigArn RuntimeManagementConfig LoggingConfig RecursiveLoop SnapStart DurableConfig TenancyConfig " \
    "CapacityProviderConfig FunctionScalingConfig PublishToLatestPublished"
#define FUNCTION_ELSE                                                                                               \
    "CodeUri InlineCode ImageUri Role Policies Tags Tracing DeadLetterQueue Events AutoPublishAlias "               \
    "FunctionUrlConfig EventInvokeConfig PermissionsBoundary AssumeRolePolicyDocument RolePath VersionDescription " \
    "DeploymentPreference ProvisionedConcurrencyConfig AutoPublishCodeSha256 AutoPublishAliasAllProperties "        \
    "PropagateTags SourceKMSKeyArn VersionDeletionPolicy"

static bool is_among(const char *names, struct slice name)
{
    struct slice rest = slice_of(names);
    while (rest.len)
        if (slice_equal(slice_cut(&rest, ' '), name)) return true;
    return false;
}

/* A path, s3://bucket/key, {Bucket, Key, Version}, or code in the template. */
static const struct node *code_of(struct sam *sam, const struct node *where, const struct node *uri,
                                  const struct node *text, const struct node *image)
{
    struct slice rest = uri ? uri->text : SLICE("");
    if (image) return make_tree(sam->arena, image, "{'ImageUri':%n}", image);
    if (text) return make_tree(sam->arena, text, "{'ZipFile':%n}", text);
    if (!uri) return make_text(sam->arena, where, SLICE("."));
    if (slice_starts(rest, SLICE("s3://"))) {
        rest = slice_from(rest, 5);
        struct slice bucket = slice_cut(&rest, '/');
        return make_tree(sam->arena, uri, "{'S3Bucket':%s,'S3Key':%s}", bucket, rest);
    }
    if (uri->kind == JSON_OBJECT && node_member(uri, "Bucket"))
        return make_tree(sam->arena, uri, "{'S3Bucket':%n,'S3Key':%n,'S3ObjectVersion':%n}",
                         node_member(uri, "Bucket"), node_member(uri, "Key"), node_member(uri, "Version"));
    return uri;
}

static const struct node *self_arn(struct sam *sam, const struct node *source)
{
    return make_tree(sam->arena, source, "{'Fn::GetAtt':[%s,'Arn']}", source->name);
}

static void put_alias(struct sam *sam, struct sam_function *function)
{
    const struct node *alias = node_member(function->properties, "AutoPublishAlias"),
                      *source = function->source;
    if (!alias) return;
    struct slice version = sam_id(sam, source->name, "Version");
    sam_put(sam, source, version, "AWS::Lambda::Version",
            make_tree(sam->arena, alias, "{'FunctionName':{'Ref':%s},'Description':%n}", source->name,
                      node_member(function->properties, "VersionDescription")));
    struct buf name = {0};
    buf_printf(&name, "%.*sAlias", SLICE_ARG(source->name));
    for (size_t i = 0; i < alias->text.len && i < LIMIT_TEMPLATE_NAME_BYTES; i++) {
        char c = alias->text.data[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        buf_byte(&name, is_letter ? (unsigned char)c : c == '-' ? 'D' : 'U');
    }
    function->alias = arena_take(sam->arena, &name);
    sam_put(sam, source, function->alias, "AWS::Lambda::Alias",
            make_tree(sam->arena, alias,
                      "{'FunctionName':{'Ref':%s},'FunctionVersion':{'Fn::GetAtt':[%s,'Version']},'Name':%n}",
                      source->name, version, alias));
    function->target = make_tree(sam->arena, alias, "{'Ref':%s}", function->alias);
}

/* {Type, Destination}: without a Destination SAM makes a queue or a topic. */
static const struct node *destination_of(struct sam *sam, const struct node *config, const char *name)
{
    const struct node *one = node_member(node_member(config, "DestinationConfig"), name);
    if (!one) return NULL;
    if (node_member(one, "Destination")) return sam_pick(sam, one, "Destination");
    sam_note(sam, one, "%s has no Destination, and none is made here", name);
    return NULL;
}

static void put_invoke_config(struct sam *sam, const struct sam_function *function)
{
    const struct node *config = node_member(function->properties, "EventInvokeConfig"),
                      *source = function->source;
    if (!config) return;
    const struct node *success = destination_of(sam, config, "OnSuccess"),
                      *failure = destination_of(sam, config, "OnFailure");
    struct node *properties = make_tree(
        sam->arena, config,
        "{'FunctionName':{'Ref':%s},'Qualifier':%n,'MaximumEventAgeInSeconds':%n,'MaximumRetryAttempts':%n,"
        "'DestinationConfig':%n}",
        source->name,
        function->alias.len ? node_member(function->properties, "AutoPublishAlias")
                            : make_text(sam->arena, config, SLICE("$LATEST")),
        node_member(config, "MaximumEventAgeInSeconds"), node_member(config, "MaximumRetryAttempts"),
        success || failure
            ? make_tree(sam->arena, config, "{'OnSuccess':%n,'OnFailure':%n}", success, failure)
            : NULL);
    sam_put(sam, source, sam_id(sam, source->name, "EventInvokeConfig"), "AWS::Lambda::EventInvokeConfig",
            properties);
}

static void put_url(struct sam *sam, const struct sam_function *function)
{
    const struct node *config = node_member(function->properties, "FunctionUrlConfig"),
                      *source = function->source;
    if (!config) return;
    sam_put(sam, source, sam_id(sam, source->name, "Url"), "AWS::Lambda::Url",
            make_tree(sam->arena, config,
                      "{'TargetFunctionArn':{'Ref':%s},'AuthType':%n,'Cors':%n,'InvokeMode':%n}",
                      function->alias.len ? function->alias : source->name, node_member(config, "AuthType"),
                      node_member(config, "Cors"), node_member(config, "InvokeMode")));
}

static void translate_function(struct sam *sam, const struct node *source)
{
    const struct node *own = with_globals(sam, source, "Function");
    struct node *made = sam_pick(sam, own, FUNCTION_SAME);
    struct sam_function function = {source, own, self_arn(sam, source), SLICE("")};
    for (const struct node *member = own->first; member; member = member->next)
        if (!is_among(FUNCTION_SAME, member->name) && !is_among(FUNCTION_ELSE, member->name))
            sam_note(sam, member, "'%.*s' of the function '%.*s' is not known", SLICE_ARG(member->name),
                     SLICE_ARG(source->name));
    make_set(sam->arena, made, SLICE("Code"),
             code_of(sam, source, node_member(own, "CodeUri"), node_member(own, "InlineCode"),
                     node_member(own, "ImageUri")));
    const struct node *role = node_member(own, "Role"), *queue = node_member(own, "DeadLetterQueue");
    if (!role) {
        struct slice id = sam_id(sam, source->name, "Role");
        sam_put(sam, source, id, "AWS::IAM::Role", NULL);
        role = make_tree(sam->arena, source, "{'Fn::GetAtt':[%s,'Arn']}", id);
    }
    make_set(sam->arena, made, SLICE("Role"), role);
    if (node_member(own, "Tags"))
        make_set(sam->arena, made, SLICE("Tags"), tag_list(sam, node_member(own, "Tags")));
    if (node_member(own, "Tracing"))
        make_set(sam->arena, made, SLICE("TracingConfig"),
                 make_tree(sam->arena, own, "{'Mode':%n}", node_member(own, "Tracing")));
    if (queue)
        make_set(sam->arena, made, SLICE("DeadLetterConfig"),
                 make_tree(sam->arena, queue, "{'TargetArn':%n}", node_member(queue, "TargetArn")));
    sam_put(sam, source, source->name, "AWS::Lambda::Function", made);
    put_alias(sam, &function);
    put_invoke_config(sam, &function);
    put_url(sam, &function);
    sam_events(sam, &function);
}

/* ---- the others ---- */

static void translate_table(struct sam *sam, const struct node *source)
{
    const struct node *own = with_globals(sam, source, "SimpleTable"), *key = node_member(own, "PrimaryKey");
    struct slice type = node_text(key, "Type"), letter = SLICE("S");
    if (slice_equal(type, SLICE("Number"))) letter = SLICE("N");
    if (slice_equal(type, SLICE("Binary"))) letter = SLICE("B");
    const struct node *name = node_member(key, "Name");
    if (!name) name = make_text(sam->arena, source, SLICE("id"));
    const struct node *throughput = node_member(own, "ProvisionedThroughput");
    sam_put(
        sam, source, source->name, "AWS::DynamoDB::Table",
        make_tree(
            sam->arena, source,
            "{'TableName':%n,'AttributeDefinitions':[{'AttributeName':%n,'AttributeType':%s}],"
            "'KeySchema':[{'AttributeName':%n,'KeyType':'HASH'}],'ProvisionedThroughput':%n,'BillingMode':%s,"
            "'SSESpecification':%n,'PointInTimeRecoverySpecification':%n,'Tags':%n}",
            node_member(own, "TableName"), name, letter, name, throughput,
            throughput ? SLICE_NONE : SLICE("PAY_PER_REQUEST"), node_member(own, "SSESpecification"),
            node_member(own, "PointInTimeRecoverySpecification"), tag_list(sam, node_member(own, "Tags"))));
}

static void translate_layer(struct sam *sam, const struct node *source)
{
    const struct node *own = with_globals(sam, source, "LayerVersion");
    struct node *made = sam_pick(
        sam, own, "LayerName Description CompatibleRuntimes CompatibleArchitectures LicenseInfo");
    if (!node_member(made, "LayerName"))
        make_set(sam->arena, made, SLICE("LayerName"), make_text(sam->arena, source, source->name));
    make_set(sam->arena, made, SLICE("Content"),
             code_of(sam, source, node_member(own, "ContentUri"), NULL, NULL));
    sam_put(sam, source, source->name, "AWS::Lambda::LayerVersion", made);
}

static void translate(struct sam *sam, const struct node *source)
{
    struct slice type = node_text(source, "Type"), kind = type;
    if (slice_starts(type, SLICE("AWS::Serverless::"))) {
        kind = slice_from(type, sizeof "AWS::Serverless::" - 1);
        if (slice_equal(kind, SLICE("Function"))) return translate_function(sam, source);
        if (slice_equal(kind, SLICE("SimpleTable"))) return translate_table(sam, source);
        if (slice_equal(kind, SLICE("LayerVersion"))) return translate_layer(sam, source);
        if (slice_equal(kind, SLICE("Api")))
            return sam_api(sam, source, with_globals(sam, source, "Api"), true);
        if (slice_equal(kind, SLICE("StateMachine")) &&
            !node_member(node_member(source, "Properties"), "Role"))
            sam_put(sam, source, sam_id(sam, source->name, "Role"), "AWS::IAM::Role", NULL);
        if (slice_equal(kind, SLICE("HttpApi")))
            return sam_api(sam, source, with_globals(sam, source, "HttpApi"), false);
    }
    struct node *copy = make_copy(sam->arena, source, source->name);
    *sam->end = copy;
    sam->end = &copy->next;
}

/* ---- references ---- */

/* SAM lets Function.Alias, Function.Version, Api.Stage and Api.Deployment stand for what it makes. */
static bool made_name(struct sam *sam, struct slice name, struct slice *out)
{
    static const char *const parts[] = {"Alias", "Version", "Stage", "Deployment"};
    struct slice part = name, id = slice_cut(&part, '.');
    if (!part.len) return false;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!slice_equal(part, slice_of(parts[i]))) continue;
        bool is_stage = i == 2; /* the only one whose kind stands at the end of its name */
        struct slice prefix = sam_id(sam, id, is_stage ? "" : parts[i]);
        for (const struct node *one = sam->resources->first; one; one = one->next)
            if (slice_starts(one->name, prefix) &&
                slice_contains(node_text(one, "Type"), slice_of(parts[i]))) {
                *out = one->name;
                return true;
            }
    }
    return false;
}

static const struct node *rename_references(struct sam *sam, const struct node *value);

/* The same within a text of Fn::Sub: ${Api.Stage}. */
static struct slice rename_within(struct sam *sam, struct slice text)
{
    struct buf out = {0};
    struct slice name;
    while (text.len) {
        const char *end = slice_starts(text, SLICE("${")) ? memchr(text.data, '}', text.len) : NULL;
        size_t len = end ? (size_t)(end - text.data) + 1 : 1;
        if (end && made_name(sam, (struct slice){text.data + 2, len - 3}, &name)) {
            buf_printf(&out, "${%.*s}", SLICE_ARG(name));
        } else {
            buf_put(&out, text.data, len);
        }
        text = slice_from(text, len);
    }
    return arena_take(sam->arena, &out);
}

static const struct node *rename_in_sub(struct sam *sam, const struct node *value)
{
    const struct node *given = value->first, *text = given->kind == JSON_ARRAY ? given->first : given;
    struct slice renamed = rename_within(sam, text->text);
    if (given == text) return make_tree(sam->arena, value, "{'Fn::Sub':%s}", renamed);
    if (!text->next) return make_tree(sam->arena, value, "{'Fn::Sub':[%s]}", renamed);
    return make_tree(sam->arena, value, "{'Fn::Sub':[%s,%n]}", renamed, rename_references(sam, text->next));
}

static const struct node *rename_references(struct sam *sam, const struct node *value)
{
    struct slice name;
    if (value->kind != JSON_OBJECT && value->kind != JSON_ARRAY) return value;
    bool is_ref = value->kind == JSON_OBJECT && value->first && !value->first->next &&
                  slice_equal(value->first->name, SLICE("Ref"));
    if (is_ref &&
        memchr(value->first->text.data ? value->first->text.data : "", '.', value->first->text.len) &&
        made_name(sam, value->first->text, &name))
        return make_tree(sam->arena, value, "{'Ref':%s}", name);
    const struct node *pair, *sub;
    if (node_is_call(value, "Fn::Sub", &sub) &&
        (sub->kind == JSON_STRING ||
         (sub->kind == JSON_ARRAY && sub->first && sub->first->kind == JSON_STRING)))
        return rename_in_sub(sam, value);
    if (node_is_call(value, "Fn::GetAtt", &pair) && pair->kind == JSON_ARRAY && node_is_plain(pair->first) &&
        memchr(pair->first->text.data, '.', pair->first->text.len) &&
        made_name(sam, pair->first->text, &name))
        return make_tree(sam->arena, value, "{'Fn::GetAtt':[%s,%n]}", name, pair->first->next);
    struct node *made = make_copy(sam->arena, value, value->name);
    const struct node **end = &made->first;
    for (const struct node *child = value->first; child; child = child->next) {
        struct node *copy = make_copy(sam->arena, rename_references(sam, child), child->name);
        *end = copy;
        end = &copy->next;
    }
    *end = NULL;
    return made;
}
