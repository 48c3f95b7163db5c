/* serverless.yml into CloudFormation, under the names that the Serverless Framework gives: a function hello is
 * HelloLambdaFunction and is called SERVICE-STAGE-hello, its APIs are ApiGatewayRestApi and HttpApi, all share the role
 * IamRoleLambdaExecution. Variables are filled in before (variables.c).
 *
 * What `resources` has is put over what is made here, as the framework does it. Plugins are programs and are not run.
 * They are named, except those that only serve a laptop. */
#include "template/serverless.h"

#include "base/limits.h"

static const struct node *joined(struct arena *arena, const struct node *list);
static void put_functions(struct serverless *serverless);
static void put_layers(struct serverless *serverless);
static void note_the_rest(struct serverless *serverless);
static const struct node *finish(struct serverless *serverless);

bool template_is_serverless(const struct node *root)
{
    return node_member(root, "provider") &&
           (node_member(root, "service") || node_member(root, "functions")) &&
           !node_member(root, "Resources");
}

const struct node *serverless_translate(struct template *template, const struct node *root)
{
    struct serverless serverless = {.template = template, .arena = template->arena, .root = root};
    const struct node *service = node_member(root, "service"), *provider = node_member(root, "provider");
    serverless.provider = provider && provider->kind == JSON_OBJECT ? provider : NULL;
    serverless.service = service && service->kind == JSON_OBJECT ? node_text(service, "name")
                         : service                               ? service->text
                                                                 : SLICE("service");
    const struct node *cloud = serverless.provider ? node_member(provider, "name") : provider;
    if (cloud && !slice_equal(cloud->text, SLICE("aws"))) {
        template_fail(template, cloud, "this is for the provider '%.*s', and only 'aws' is known",
                      SLICE_ARG(cloud->text));
        return NULL;
    }
    serverless.stage = node_text(serverless.provider, "stage");
    for (size_t i = 0; i < template->world->given_count; i++)
        if (slice_equal(template->world->given[i].name, SLICE("stage")))
            serverless.stage = template->world->given[i].value;
    if (!serverless.stage.len) serverless.stage = SLICE("dev");
    serverless.resources = make_node(template->arena, JSON_OBJECT, root);
    serverless.end = &serverless.resources->first;
    serverless_put(&serverless, root, SLICE("IamRoleLambdaExecution"), "AWS::IAM::Role", NULL);
    put_layers(&serverless);
    put_functions(&serverless);
    serverless_apis(&serverless);
    note_the_rest(&serverless);
    return finish(&serverless);
}

void serverless_put(struct serverless *serverless, const struct node *where, struct slice id,
                    const char *type, const struct node *properties)
{
    struct node *made = make_tree(serverless->arena, where, "{'Type':%s,'Properties':%n}", slice_of(type),
                                  properties);
    made->name = id;
    *serverless->end = made;
    serverless->end = &made->next;
}

void serverless_note(struct serverless *serverless, const struct node *where, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    note_put_args(serverless->arena, &serverless->template->notes, where, format, args);
    va_end(args);
}

/* `functions` and `resources` may be lists of objects. */
static const struct node *joined(struct arena *arena, const struct node *list)
{
    if (!list || list->kind != JSON_ARRAY) return list;
    const struct node *all = make_node(arena, JSON_OBJECT, list);
    for (const struct node *one = list->first; one; one = one->next)
        if (one->kind == JSON_OBJECT) all = make_merged(arena, all, one);
    return all;
}

/* hello-you_all is HelloDashyouUnderscoreall. */
static struct slice id_of(struct arena *arena, struct slice name)
{
    struct buf id = {0};
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        if (c == '-')
            buf_text(&id, "Dash");
        else if (c == '_')
            buf_text(&id, "Underscore");
        else
            buf_byte(&id, (unsigned char)(!i && c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c));
    }
    return arena_take(arena, &id);
}

/* A member of the function, else of the provider. */
static const struct node *setting(struct serverless *serverless, const struct node *function,
                                  const char *name)
{
    const struct node *own = node_member(function, name);
    return own ? own : node_member(serverless->provider, name);
}

/* ---- functions ---- */

/* Appends what a `package` takes and leaves out; the older exclude is a pattern with "!" before it. */
static const struct node **put_patterns(struct serverless *serverless, const struct node **end,
                                        const struct node *package)
{
    static const char *const lists[] = {"exclude", "include", "patterns"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const struct node *list = node_member(package, lists[i]);
        for (const struct node *one = list ? list->first : NULL; one; one = one->next) {
            if (one->kind != JSON_STRING) continue;
            bool is_turned = i == 0 && !slice_starts(one->text, SLICE("!"));
            struct node *copy = make_copy(serverless->arena, one, one->name);
            if (is_turned) copy->text = arena_printf(serverless->arena, "!%.*s", SLICE_ARG(one->text));
            if (i == 0 && !is_turned) copy->text = slice_from(one->text, 1);
            *end = copy;
            end = &copy->next;
        }
    }
    return end;
}

static const struct node *code_of(struct serverless *serverless, const struct node *source,
                                  const struct node *image)
{
    const struct node *artifact = node_member(node_member(source, "package"), "artifact");
    if (image) {
        const struct node *uri = image->kind == JSON_OBJECT ? node_member(image, "uri") : image;
        return make_tree(serverless->arena, image, "{'ImageUri':%n}", uri ? uri : image);
    }
    if (!artifact) artifact = node_member(node_member(serverless->root, "package"), "artifact");
    if (artifact) return artifact;
    struct node *patterns = make_copy(serverless->arena, source, SLICE("Patterns"));
    const struct node **end = &patterns->first;
    patterns->kind = JSON_ARRAY;
    end = put_patterns(serverless, end, node_member(serverless->root, "package"));
    end = put_patterns(serverless, end, node_member(source, "package"));
    *end = NULL;
    if (!patterns->first) return make_tree(serverless->arena, source, "'.'");
    return make_tree(serverless->arena, source, "{'Path':'.','Patterns':%n}", patterns);
}

/* A text is an ARN or a function of this file. */
static const struct node *destination(struct serverless *serverless, const struct node *to)
{
    if (!to) return NULL;
    if (to->kind == JSON_STRING && !slice_starts(to->text, SLICE("arn:")))
        to = make_tree(serverless->arena, to, "{'Fn::GetAtt':[%s,'Arn']}",
                       arena_printf(serverless->arena, "%.*sLambdaFunction",
                                    SLICE_ARG(id_of(serverless->arena, to->text))));
    if (to->kind == JSON_OBJECT && node_member(to, "arn")) to = node_member(to, "arn");
    return make_tree(serverless->arena, to, "{'Destination':%n}", to);
}

static void put_invoke_config(struct serverless *serverless, const struct serverless_function *function)
{
    const struct node *source = function->source, *to = node_member(source, "destinations");
    const struct node *age = node_member(source, "maximumEventAge"),
                      *attempts = node_member(source, "maximumRetryAttempts");
    if (!to && !age && !attempts) return;
    const struct node *success = destination(serverless, node_member(to, "onSuccess")),
                      *failure = destination(serverless, node_member(to, "onFailure"));
    serverless_put(
        serverless, source, arena_printf(serverless->arena, "%.*sLambdaEvConf", SLICE_ARG(function->prefix)),
        "AWS::Lambda::EventInvokeConfig",
        make_tree(serverless->arena, source,
                  "{'FunctionName':{'Ref':%s},'Qualifier':'$LATEST','MaximumEventAgeInSeconds':%n,"
                  "'MaximumRetryAttempts':%n,'DestinationConfig':%n}",
                  function->id, age, attempts,
                  success || failure
                      ? make_tree(serverless->arena, to, "{'OnSuccess':%n,'OnFailure':%n}", success, failure)
                      : NULL));
}

/* url: true, or {authorizer, cors, invokeMode} */
static void put_url(struct serverless *serverless, const struct serverless_function *function)
{
    const struct node *url = node_member(function->source, "url");
    if (!url || url->kind == JSON_FALSE || url->kind == JSON_NULL) return;
    const struct node *cors = node_member(url, "cors"), *made = NULL;
    if (cors && cors->kind == JSON_TRUE)
        made = make_tree(
            serverless->arena, cors,
            "{'AllowOrigins':['*'],'AllowHeaders':['Content-Type','X-Amz-Date','Authorization','X-Api-Key',"
            "'X-Amz-Security-Token'],'AllowMethods':['*']}");
    else if (cors && cors->kind == JSON_OBJECT)
        made = make_tree(serverless->arena, cors,
                         "{'AllowOrigins':%n,'AllowHeaders':%n,'AllowMethods':%n,'AllowCredentials':%n,"
                         "'ExposeHeaders':%n,'MaxAge':%n}",
                         node_member(cors, "allowedOrigins"), node_member(cors, "allowedHeaders"),
                         node_member(cors, "allowedMethods"), node_member(cors, "allowCredentials"),
                         node_member(cors, "exposedResponseHeaders"), node_member(cors, "maxAge"));
    serverless_put(serverless, url,
                   arena_printf(serverless->arena, "%.*sLambdaFunctionUrl", SLICE_ARG(function->prefix)),
                   "AWS::Lambda::Url",
                   make_tree(serverless->arena, url,
                             "{'TargetFunctionArn':{'Ref':%s},'AuthType':%s,'Cors':%n,'InvokeMode':%n}",
                             function->id,
                             node_is(url, "authorizer", "aws_iam") ? SLICE("AWS_IAM") : SLICE("NONE"), made,
                             node_member(url, "invokeMode")));
}

static const struct node *environment_of(struct serverless *serverless, const struct node *source)
{
    const struct node *all = node_member(serverless->provider, "environment"),
                      *own = node_member(source, "environment");
    if (all && all->kind != JSON_OBJECT) all = NULL;
    if (own && own->kind != JSON_OBJECT) own = NULL;
    if (all && own) own = make_merged(serverless->arena, all, own);
    if (!own) own = all;
    return own ? make_tree(serverless->arena, own, "{'Variables':%n}", own) : NULL;
}

static const struct node *tags_of(struct serverless *serverless, const struct node *source)
{
    const struct node *all = node_member(serverless->provider, "tags"), *own = node_member(source, "tags");
    if (all && own) own = make_merged(serverless->arena, all, own);
    if (!own) own = all;
    if (!own || own->kind != JSON_OBJECT) return NULL;
    struct node *list = make_node(serverless->arena, JSON_ARRAY, own);
    for (const struct node *tag = own->first; tag; tag = tag->next)
        make_append(list, make_tree(serverless->arena, tag, "{'Key':%s,'Value':%n}", tag->name, tag));
    return list;
}

static void put_function(struct serverless *serverless, const struct node *source)
{
    struct arena *arena = serverless->arena;
    struct slice prefix = id_of(arena, source->name);
    struct serverless_function function = {source, prefix,
                                           arena_printf(arena, "%.*sLambdaFunction", SLICE_ARG(prefix))};
    const struct node *name = node_member(source, "name"), *image = node_member(source, "image"),
                      *memory = setting(serverless, source, "memorySize"),
                      *timeout = setting(serverless, source, "timeout"),
                      *runtime = setting(serverless, source, "runtime"),
                      *architecture = setting(serverless, source, "architecture"),
                      *storage = node_member(source, "ephemeralStorageSize"),
                      *letters = node_member(source, "onError");
    if (!name)
        name = make_text(arena, source,
                         arena_printf(arena, "%.*s-%.*s-%.*s", SLICE_ARG(serverless->service),
                                      SLICE_ARG(serverless->stage), SLICE_ARG(source->name)));
    const struct node *properties = make_tree(
        arena, source,
        "{'FunctionName':%n,'Handler':%n,'Runtime':%n,'Code':%n,'PackageType':%s,'MemorySize':%n,'Timeout':%n,"
        "'Description':%n,'Role':{'Fn::GetAtt':['IamRoleLambdaExecution','Arn']},'Environment':%n,'Layers':%n,"
        "'ReservedConcurrentExecutions':%n,'Architectures':%n,'EphemeralStorage':%n,'DeadLetterConfig':%n,'Tags':%n}",
        name, node_member(source, "handler"), image ? NULL : runtime, code_of(serverless, source, image),
        image ? SLICE("Image") : SLICE_NONE, memory ? memory : make_tree(arena, source, "%d", 1024),
        timeout ? timeout : make_tree(arena, source, "%d", 6), node_member(source, "description"),
        environment_of(serverless, source), setting(serverless, source, "layers"),
        node_member(source, "reservedConcurrency"),
        architecture ? make_tree(arena, architecture, "[%n]", architecture) : NULL,
        storage ? make_tree(arena, storage, "{'Size':%n}", storage) : NULL,
        letters ? make_tree(arena, letters, "{'TargetArn':%n}", letters) : NULL, tags_of(serverless, source));
    serverless_put(serverless, source, function.id, "AWS::Lambda::Function", properties);
    put_invoke_config(serverless, &function);
    put_url(serverless, &function);
    serverless_events(serverless, &function);
}

static void put_functions(struct serverless *serverless)
{
    const struct node *functions = joined(serverless->arena, node_member(serverless->root, "functions"));
    for (const struct node *source = functions && functions->kind == JSON_OBJECT ? functions->first : NULL;
         source; source = source->next)
        if (source->kind == JSON_OBJECT) put_function(serverless, source);
}

static void put_layers(struct serverless *serverless)
{
    const struct node *layers = node_member(serverless->root, "layers");
    for (const struct node *source = layers && layers->kind == JSON_OBJECT ? layers->first : NULL; source;
         source = source->next) {
        const struct node *name = node_member(source, "name"), *content = node_member(source, "path");
        if (!content) content = node_member(node_member(source, "package"), "artifact");
        if (!name) name = make_text(serverless->arena, source, source->name);
        serverless_put(serverless, source,
                       arena_printf(serverless->arena, "%.*sLambdaLayer",
                                    SLICE_ARG(id_of(serverless->arena, source->name))),
                       "AWS::Lambda::LayerVersion",
                       make_tree(serverless->arena, source,
                                 "{'LayerName':%n,'Description':%n,'CompatibleRuntimes':%n,"
                                 "'CompatibleArchitectures':%n,'Content':%n}",
                                 name, node_member(source, "description"),
                                 node_member(source, "compatibleRuntimes"),
                                 node_member(source, "compatibleArchitectures"), content));
    }
}

/* ---- the rest ---- */

static bool is_among(const char *names, struct slice name)
{
    struct slice rest = slice_of(names);
    while (rest.len)
        if (slice_equal(slice_cut(&rest, ' '), name)) return true;
    return false;
}

static void note_the_rest(struct serverless *serverless)
{
    static const char *const sections =
        "service provider functions layers resources package custom plugins params "
        "frameworkVersion configValidationMode useDotenv org app tenant console "
        "deprecationNotificationMode disabledDeprecations variablesResolutionMode "
        "outputs unresolvedVariablesNotificationMode stages build";
    static const char *const harmless =
        "serverless-offline serverless-dynamodb-local serverless-offline-dynamodb-streams "
        "serverless-pseudo-parameters serverless-dotenv-plugin "
        "serverless-iam-roles-per-function serverless-prune-plugin "
        "serverless-offline-scheduler serverless-dynamodb";
    for (const struct node *section = serverless->root->first; section; section = section->next)
        if (!is_among(sections, section->name))
            serverless_note(serverless, section, "'%.*s' is not known", SLICE_ARG(section->name));
    const struct node *plugins = node_member(serverless->root, "plugins");
    if (plugins && plugins->kind == JSON_OBJECT) plugins = node_member(plugins, "modules");
    for (const struct node *plugin = plugins ? plugins->first : NULL; plugin; plugin = plugin->next)
        if (!is_among(harmless, plugin->text))
            serverless_note(serverless, plugin, "the plugin '%.*s' is not run", SLICE_ARG(plugin->text));
}

/* The framework's own outputs: where the APIs are. */
static const struct node *urls_of(struct serverless *serverless)
{
    struct arena *arena = serverless->arena;
    struct node *outputs = make_node(arena, JSON_OBJECT, serverless->root);
    struct slice rest = arena_printf(
        arena, "https://${ApiGatewayRestApi}.execute-api.${AWS::Region}.${AWS::URLSuffix}/%.*s",
        SLICE_ARG(serverless->stage));
    if (serverless->has_rest)
        make_set(arena, outputs, SLICE("ServiceEndpoint"),
                 make_tree(arena, serverless->root, "{'Value':{'Fn::Sub':%s}}", rest));
    if (serverless->has_http)
        make_set(
            arena, outputs, SLICE("HttpApiUrl"),
            make_tree(
                arena, serverless->root,
                "{'Value':{'Fn::Sub':'https://${HttpApi}.execute-api.${AWS::Region}.${AWS::URLSuffix}'}}"));
    return outputs;
}

/* The sections of `resources`, over what was made. */
static const struct node *finish(struct serverless *serverless)
{
    struct arena *arena = serverless->arena;
    const struct node *own = joined(arena, node_member(serverless->root, "resources"));
    struct node *root = make_node(arena, JSON_OBJECT, serverless->root);
    const struct node *resources = node_member(own, "Resources");
    if (resources && resources->kind == JSON_OBJECT)
        resources = make_merged(arena, serverless->resources, resources);
    else
        resources = serverless->resources;
    const struct node *extensions = node_member(own, "extensions");
    if (extensions && extensions->kind == JSON_OBJECT) {
        struct node *known = make_node(arena, JSON_OBJECT, extensions);
        for (const struct node *one = extensions->first; one; one = one->next) {
            const struct node *made = resources->first;
            while (made && !slice_equal(made->name, one->name)) made = made->next;
            if (made) make_append(known, make_copy(arena, one, one->name));
        }
        resources = make_merged(arena, resources, known);
    }
    for (const struct node *section = own && own->kind == JSON_OBJECT ? own->first : NULL; section;
         section = section->next)
        if (!slice_equal(section->name, SLICE("Resources")) &&
            !slice_equal(section->name, SLICE("extensions")))
            make_append(root, make_copy(arena, section, section->name));
    make_append(root, make_copy(arena, resources, SLICE("Resources")));
    const struct node *outputs = node_member(root, "Outputs"), *urls = urls_of(serverless);
    if (outputs && outputs->kind == JSON_OBJECT) urls = make_merged(arena, urls, outputs);
    make_set(arena, root, SLICE("Outputs"), urls);
    return root;
}
