/* quipu deploy: what a template describes, on a server. The room deploy does the work; here are its words. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "cli/hold.h"
#include "cli/input.h"
#include "cli/layout.h"
#include "cli/listing.h"
#include "cli/pack.h"
#include "cli/print.h"
#include "cli/service.h"
#include "deploy/deploy.h"
#include "template/template.h"

#define TEMPLATE_BYTES_MAX (8u << 20)
#define SHOWN_MAX          60 /* characters of a value in the plan */
#define GIVEN_MAX          200
#define STACK_NAME_MAX     128 /* as on CloudFormation */
#define WAIT_MAX_MS        (INT64_C(24) * 3600 * 1000)

struct deployment {
    const struct arguments *arguments;
    struct service service;
    struct place place;
    struct arena arena;
    struct deploy_options options;
    struct template_given given[GIVEN_MAX];
    size_t given_count;
    struct buf text;
    const char *path; /* of the template */
    unsigned counts[DEPLOY_UNKNOWN + 1];
    bool is_json;
};

/* ---- the door ---- */

static bool call_dynamo(struct deployment *deployment, struct arena *arena,
                        const struct deploy_request *request, struct deploy_reply *reply)
{
    struct buf body = {.data = (char *)(uintptr_t)request->body.data, .len = request->body.len};
    struct answer answer = place_ask(&deployment->place, arena, request->path, &body);
    *reply = (struct deploy_reply){.status = answer.error ? 400 : 200,
                                   .json = answer.json,
                                   .error = answer.error,
                                   .message = answer.message};
    if (!answer.error || strcmp(answer.error, "NoReplyException") != 0) return true;
    place_complain(&deployment->place, NULL, answer.error, answer.message);
    return false;
}

static bool door_call(void *context, struct arena *arena, const struct deploy_request *request,
                      struct deploy_reply *reply)
{
    struct deployment *deployment = context;
    struct response response;
    if (strcmp(request->service, "dynamodb") == 0) return call_dynamo(deployment, arena, request, reply);
    struct request sent = {.name = strcmp(request->service, "quipu") == 0 ? "lambda" : request->service,
                           .method = request->method,
                           .path = request->path,
                           .query = request->query,
                           .body = request->body,
                           .header = request->header,
                           .total_ms = request->is_upload ? UPLOAD_MS : 0};
    if (!service_ask(&deployment->service, arena, &sent, &response)) return false;
    *reply = (struct deploy_reply){.status = response.status,
                                   .json = response.json,
                                   .error = response.error,
                                   .message = response.message,
                                   .etag = response.etag};
    return true;
}

static bool door_pack(void *context, const struct deploy_parcel *parcel, struct buf *out)
{
    (void)context;
    if (parcel->folder) return pack_chosen(parcel->folder, parcel->patterns, out);
    pack_text(parcel->name, parcel->text, out);
    return true;
}

static bool door_read(void *context, const char *path, struct buf *out)
{
    (void)context;
    return input_read(path, LIMIT_CODE_BYTES, out);
}

static void door_pause(void *context, unsigned nth)
{
    (void)context;
    pause_before_retry(nth > 5 ? 5 : nth);
}

static int64_t door_now_ms(void *context)
{
    (void)context;
    return monotonic_us() / 1000;
}

/* An owner is HOST NAMESPACE PID: where the first two are ours, the third can be looked at. */
static const char *owner_prefix(struct arena *arena)
{
    char host[256] = "", space[64] = "";
    if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
    if (readlink("/proc/self/ns/pid", space, sizeof space - 1) < 0) space[0] = '\0';
    return arena_printf(arena, "%.100s %s ", host, space).data;
}

static bool door_is_gone(void *context, struct slice owner)
{
    struct deployment *deployment = context;
    struct slice ours = slice_of(owner_prefix(&deployment->arena));
    unsigned long long pid;
    if (!slice_starts(owner, ours) || !slice_to_u64(slice_from(owner, ours.len), INT_MAX, &pid)) return false;
    return pid > 1 && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/* ---- what is shown ---- */

static void put_scalar(struct buf *out, const struct node *node)
{
    struct buf text = {0};
    if (node) node_put(&text, node);
    if (!node)
        buf_text(out, "none");
    else if (node->kind == JSON_STRING && node->text.len && node->text.len <= SHOWN_MAX)
        buf_slice(out, node->text);
    else if (text.len <= SHOWN_MAX)
        buf_slice(out, buf_view(&text));
    else
        buf_text(out, "...");
    buf_free(&text);
}

/* Of objects, only the names that differ: values may be secrets. */
static void put_names(struct buf *out, const struct deploy_difference *difference)
{
    const struct node *sides[] = {difference->after, difference->before};
    for (int i = 0; i < 2; i++) {
        for (const struct node *one = sides[i] ? sides[i]->first : NULL; one; one = one->next) {
            char name[256];
            struct buf a = {0}, b = {0};
            snprintf(name, sizeof name, "%.*s", SLICE_ARG(one->name));
            const struct node *other = node_member(sides[1 - i], name);
            node_put(&a, one);
            if (other) node_put(&b, other);
            bool is_same = other && slice_equal(buf_view(&a), buf_view(&b));
            bool is_shown = i ? !other && difference->is_exact : !is_same;
            if (is_shown) buf_printf(out, " %c%s", i ? '-' : other ? '~' : '+', name);
            buf_free(&a);
            buf_free(&b);
        }
    }
}

static void put_difference(struct buf *out, struct arena *arena, const struct deploy_difference *difference)
{
    struct buf shown = {0};
    const struct node *before = difference->before, *after = difference->after;
    bool is_object = (before && before->kind == JSON_OBJECT) || (after && after->kind == JSON_OBJECT);
    buf_printf(out, "    %.*s:", SLICE_ARG(difference->member));
    if (slice_equal(difference->member, SLICE("CodeSha256"))) {
        buf_text(out, " new code");
    } else if (is_object) {
        put_names(&shown, difference);
    } else {
        buf_byte(&shown, ' ');
        put_scalar(&shown, before);
        buf_text(&shown, " -> ");
        put_scalar(&shown, after);
    }
    buf_slice(out, text_harmless(arena, arena_take(arena, &shown)));
    if (difference->replaces) buf_text(out, " (makes it anew)");
    buf_byte(out, '\n');
}

static const char signs[] = {'=', '+', '~', '!', '-', '.', '.', '?'};
static const char *const action_names[] = {"same",   "create", "change",  "replace",
                                           "delete", "leave",  "nothing", "unknown"};

static void put_change(struct buf *out, struct arena *arena, const struct deploy_change *change)
{
    bool has_name = change->action != DEPLOY_UNKNOWN && change->action != DEPLOY_NOTHING;
    struct slice id = text_harmless(arena, change->id), type = text_harmless(arena, change->type);
    struct slice name = has_name ? text_harmless(arena, slice_of(change->name)) : SLICE("");
    struct slice reason = text_harmless(arena, slice_of(change->reason ? change->reason : "it is not known here"));
    buf_printf(out, "%c %-20.*s %-32.*s %.*s", signs[change->action], SLICE_ARG(id), SLICE_ARG(type), SLICE_ARG(name));
    while (out->len && out->data[out->len - 1] == ' ') out->len--;
    if (change->action == DEPLOY_UNKNOWN)
        buf_printf(out, "  left out: %.*s", SLICE_ARG(reason));
    else if (change->action == DEPLOY_NOTHING)
        buf_text(out, "  nothing to do here");
    else if (change->reason)
        buf_printf(out, "  stays: %.*s", SLICE_ARG(reason));
    if (change->holds_data) buf_text(out, "  (it holds items)");
    buf_byte(out, '\n');
    for (const struct deploy_difference *one = change->differences; one; one = one->next)
        put_difference(out, arena, one);
}

/* Names are the template's, and who wrote it may be a stranger: no line ends within one, and no terminal obeys it. */
static void print_change(FILE *file, const struct deploy_change *change)
{
    struct arena arena = {0};
    struct buf line = {0};
    put_change(&line, &arena, change);
    fwrite(line.data, 1, line.len, file);
    fflush(file);
    buf_free(&line);
    arena_free(&arena);
}

/* Each change is told when it begins, so that whoever waits knows for what. */
static void door_progress(void *context, const struct deploy_change *change, bool is_done)
{
    struct deployment *deployment = context;
    if (is_done)
        deployment->counts[change->action]++;
    else if (!deployment->is_json)
        print_change(stderr, change);
}

static bool is_quiet(const struct deployment *deployment, enum deploy_action action)
{
    bool is_plain = action == DEPLOY_SAME || action == DEPLOY_NOTHING;
    return is_plain && !argument_given(deployment->arguments, "verbose");
}

/* What will not be done, or all of it. */
static void print_plan(const struct deployment *deployment, const struct deploy *deploy, FILE *file,
                       bool is_all)
{
    for (const struct deploy_change *one = deploy_changes(deploy); one; one = one->next) {
        bool is_done_later = one->action >= DEPLOY_CREATE && one->action <= DEPLOY_DELETE;
        if ((is_all || !is_done_later) && !is_quiet(deployment, one->action)) print_change(file, one);
    }
    struct arena arena = {0};
    for (const struct deploy_note *note = deploy_notes(deploy); note; note = note->next)
        fprintf(stderr, "note: %.*s\n", SLICE_ARG(text_harmless(&arena, slice_of(note->text))));
    arena_free(&arena);
}

static void print_counts(FILE *file, const unsigned counts[DEPLOY_UNKNOWN + 1], bool is_past)
{
    static const struct {
        enum deploy_action action;
        const char *past, *future;
    } words[] = {{DEPLOY_CREATE, "created", "to create"},
                 {DEPLOY_CHANGE, "changed", "to change"},
                 {DEPLOY_REPLACE, "replaced", "to replace"},
                 {DEPLOY_DELETE, "deleted", "to delete"}};
    bool is_first = true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!counts[words[i].action]) continue;
        fprintf(file, "%s%u %s", is_first ? "" : ", ", counts[words[i].action],
                is_past ? words[i].past : words[i].future);
        is_first = false;
    }
    fputs(is_first ? "Nothing to do.\n" : ".\n", file);
}

static void print_json(const struct deployment *deployment, const struct deploy *deploy)
{
    struct buf out = {0};
    buf_byte(&out, '{');
    put_string_member(&out, "stack", slice_of(deployment->options.stack));
    put_name(&out, "changes");
    buf_byte(&out, '[');
    for (const struct deploy_change *one = deploy_changes(deploy); one; one = one->next) {
        put_comma(&out);
        buf_byte(&out, '{');
        put_string_member(&out, "action", slice_of(action_names[one->action]));
        put_string_member(&out, "id", one->id);
        put_string_member(&out, "type", one->type);
        put_string_member(&out, "name", slice_of(one->name));
        if (one->reason) put_string_member(&out, "reason", slice_of(one->reason));
        put_name(&out, "members");
        buf_byte(&out, '[');
        for (const struct deploy_difference *d = one->differences; d; d = d->next)
            put_comma(&out), json_put_string(&out, d->member);
        buf_text(&out, "]}");
    }
    buf_byte(&out, ']');
    put_name(&out, "notes");
    buf_byte(&out, '[');
    for (const struct deploy_note *note = deploy_notes(deploy); note; note = note->next)
        put_comma(&out), json_put_string(&out, slice_of(note->text));
    buf_byte(&out, ']');
    put_raw_member(&out, "outputs", deploy_outputs(deploy));
    buf_byte(&out, '}');
    json_print(buf_view(&out));
    buf_free(&out);
}

static void print_outputs(struct arena *arena, struct slice outputs)
{
    const char *fault;
    const struct node *all = node_parse(arena, outputs, &fault);
    for (const struct node *one = all ? all->first : NULL; one; one = one->next) {
        bool is_read = output_is_terminal(); /* whoever is no person gets it as it is */
        printf("%.*s = %.*s\n", SLICE_ARG(is_read ? text_harmless(arena, one->name) : one->name),
               SLICE_ARG(is_read ? text_harmless(arena, one->text) : one->text));
    }
}

/* ---- what is deployed ---- */

static bool exists(const char *path)
{
    return access(path, R_OK) == 0;
}

/* The only template of `cdk synth`; NULL: there is none, or several (told). */
static const char *find_cdk(struct arena *arena, bool *is_told)
{
    const char *found = NULL;
    DIR *folder = opendir("cdk.out");
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        size_t len = strlen(entry->d_name);
        if (len <= 14 || strcmp(entry->d_name + len - 14, ".template.json") != 0) continue;
        if (found) {
            complain("cdk.out has several templates: name one of them, like cdk.out/%s", entry->d_name);
            *is_told = true;
            break;
        }
        found = arena_printf(arena, "cdk.out/%s", entry->d_name).data;
    }
    if (folder) closedir(folder);
    return *is_told ? NULL : found;
}

static const char *find_template(struct deployment *deployment)
{
    static const char *const usual[] = {"template.yaml",  "template.yml",    "template.json",
                                        "serverless.yml", "serverless.yaml", "serverless.json"};
    const char *word = argument_word(deployment->arguments, 0);
    bool is_told = false;
    if (word) return word;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (exists(usual[i])) return usual[i];
    const char *found = find_cdk(&deployment->arena, &is_told);
    if (!found && !is_told)
        complain(
            "here is no template.yaml, template.yml, template.json, serverless.yml or cdk.out: name a template");
    return found;
}

/* What a stack is called when nobody says it: cdk.out/NAME.template.json, else the folder's name. */
static const char *stack_name(struct deployment *deployment, const char *folder)
{
    struct slice name = after_last(slice_of(deployment->path), '/');
    if (name.len > 14 && memcmp(name.data + name.len - 14, ".template.json", 14) == 0)
        name.len -= 14;
    else
        name = after_last(slice_of(folder), '/');
    char *made = (char *)arena_printf(&deployment->arena, "%.*s", SLICE_ARG(name)).data;
    for (char *at = made; *at; at++)
        if (!((*at | 32) >= 'a' && (*at | 32) <= 'z') && !(*at >= '0' && *at <= '9')) *at = '-';
    return *made ? made : "stack";
}

/* Names of tables, functions and APIs begin with it. */
static bool stack_is_sound(const struct deployment *deployment)
{
    const char *name = deployment->options.stack;
    size_t len = name ? strlen(name) : 1;
    bool fine = len > 0 && len <= STACK_NAME_MAX;
    for (size_t i = 0; name && fine && i < len; i++)
        fine = ((name[i] | 32) >= 'a' && (name[i] | 32) <= 'z') || (name[i] >= '0' && name[i] <= '9') ||
               name[i] == '-';
    if (!fine)
        complain_of_usage(deployment->arguments,
                          "a stack's name has letters, digits and hyphens, at most %d, not '%.200s'",
                          STACK_NAME_MAX, name);
    return fine;
}

static bool read_parameters(struct deployment *deployment)
{
    const struct arguments *arguments = deployment->arguments;
    for (size_t i = 0; argument_nth(arguments, "parameter", i); i++) {
        const char *text = argument_nth(arguments, "parameter", i), *equals = strchr(text, '=');
        if (!equals || equals == text || i == GIVEN_MAX)
            return complain_of_usage(arguments, "--parameter should be NAME=VALUE, not '%s'", text), false;
        deployment->given[deployment->given_count++] = (struct template_given){
            {text, (size_t)(equals - text)}, slice_of(equals + 1)};
    }
    return true;
}

static bool read_template(struct deployment *deployment)
{
    char full[PATH_MAX];
    deployment->path = find_template(deployment);
    if (!deployment->path) return false;
    if (!realpath(deployment->path, full))
        return complain("%s cannot be read: %s", deployment->path, strerror(errno)), false;
    if (!input_read(deployment->path, TEMPLATE_BYTES_MAX, &deployment->text)) return false;
    if (!deployment->text.len) return complain("%s is empty", deployment->path), false;
    deployment->options.file = arena_printf(&deployment->arena, "%s", full).data;
    *strrchr(full, '/') = '\0';
    deployment->options.folder = arena_printf(&deployment->arena, "%s", *full ? full : "/").data;
    if (!deployment->options.stack)
        deployment->options.stack = stack_name(deployment, deployment->options.folder);
    return true;
}

/* ---- the command ---- */

static int tell_fault(const struct deploy *deploy)
{
    if (deploy_fault(deploy)) complain("%s", deploy_fault(deploy));
    return deploy_is_busy(deploy) ? EXIT_LATER : EXIT_FAULT;
}

static bool is_too_strict(const struct deployment *deployment, const struct deploy *deploy)
{
    unsigned unknown = 0;
    for (const struct deploy_change *one = deploy_changes(deploy); one; one = one->next)
        unknown += one->action == DEPLOY_UNKNOWN;
    for (const struct deploy_note *note = deploy_notes(deploy); note; note = note->next) unknown++;
    return unknown && argument_given(deployment->arguments, "strict");
}

static int deploy_on(struct deployment *deployment, struct deploy *deploy)
{
    bool only_plans = argument_given(deployment->arguments, "plan");
    if (!deploy_plan(deploy, buf_view(&deployment->text), deployment->given, deployment->given_count))
        return tell_fault(deploy);
    FILE *shown = only_plans ? stdout : stderr;
    if (!deployment->is_json) print_plan(deployment, deploy, shown, only_plans);
    if (is_too_strict(deployment, deploy))
        return complain("nothing was changed: --strict, and not all of it is known here");
    if (only_plans) {
        for (const struct deploy_change *one = deploy_changes(deploy); one; one = one->next)
            deployment->counts[one->action]++;
        if (deployment->is_json)
            print_json(deployment, deploy);
        else
            print_counts(stdout, deployment->counts, false);
        return EXIT_FINE;
    }
    if (!deploy_run(deploy)) return tell_fault(deploy);
    if (deployment->is_json)
        print_json(deployment, deploy);
    else {
        print_counts(stderr, deployment->counts, true);
        print_outputs(&deployment->arena, deploy_outputs(deploy));
    }
    return EXIT_FINE;
}

static int list_stacks(struct deployment *deployment, struct deploy *deploy)
{
    static const char *const head[] = {"STACK", "STATE", "RESOURCES", "TEMPLATE"};
    struct listing listing;
    const struct node *reply = deploy_list(deploy), *all = node_member(reply, "documents");
    if (!reply) return tell_fault(deploy);
    listing_begin(&listing, form_listed(deployment->arguments), head, 4);
    for (const struct node *one = all ? all->first : NULL; one; one = one->next) {
        const struct node *record = node_member(one, "data");
        struct slice *row = listing_row(&listing, record->source);
        if (!row) continue;
        row[0] = node_text(one, "key");
        row[1] = node_text(record, "state");
        row[2] = arena_printf(&deployment->arena, "%zu", node_children(node_member(record, "resources")));
        row[3] = node_text(record, "file");
    }
    listing_end(&listing, "stacks");
    return EXIT_FINE;
}

static int run_deploy(const struct arguments *arguments)
{
    struct deployment *deployment = calloc(1, sizeof *deployment);
    const char *gone = argument_text(arguments, "delete");
    bool lists = argument_given(arguments, "list");
    int status = EXIT_USAGE;
    if (!deployment) return complain("out of memory");
    deployment->arguments = arguments;
    deployment->is_json = argument_given(arguments, "json");
    deployment->options = (struct deploy_options){.stack = gone ? gone : argument_text(arguments, "stack"),
                                                  .folder = ".",
                                                  .prune = argument_given(arguments, "prune"),
                                                  .replace = argument_given(arguments, "replace"),
                                                  .delete_data = argument_given(arguments, "delete-data"),
                                                  .adopt = argument_given(arguments, "adopt"),
                                                  .live = argument_given(arguments, "live")};
    deployment->options.owner =
        arena_printf(&deployment->arena, "%s%d", owner_prefix(&deployment->arena), (int)getpid()).data;
    const struct deploy_door door = {deployment,    door_call,  door_pack,   door_read,
                                     door_progress, door_pause, door_now_ms, door_is_gone};
    bool fine = argument_duration(arguments, "wait", WAIT_MAX_MS, &deployment->options.wait_ms) &&
                read_parameters(deployment) && stack_is_sound(deployment);
    if (fine && (gone || lists) && argument_words(arguments))
        fine = (complain_of_usage(arguments, "--%s goes without a template", gone ? "delete" : "list"),
                false);
    if (fine) status = EXIT_FAULT;
    if (fine && !gone && !lists) fine = read_template(deployment);
    if (fine && service_open(&deployment->service, arguments)) {
        if (place_open(&deployment->place, arguments, PLACE_WRITE)) {
            struct deploy *deploy = deploy_open(&door, &deployment->options);
            if (lists)
                status = deploy_fault(deploy) ? tell_fault(deploy) : list_stacks(deployment, deploy);
            else
                status = deploy_on(deployment, deploy);
            deploy_close(deploy);
            place_close(&deployment->place);
        }
        service_close(&deployment->service);
    }
    buf_free(&deployment->text);
    arena_free(&deployment->arena);
    free(deployment);
    return status;
}

static const struct flag flags[] = {
    {"stack", "NAME", "what the stack is called (default: the folder's name)"},
    {"parameter", "NAME=VALUE", "a parameter of the template; may be given many times"},
    {"plan", NULL, "show what would be done, and do nothing"},
    {"prune", NULL, "delete what the stack has made and the template has no more"},
    {"replace", NULL, "delete and make anew what cannot be changed: a table's keys"},
    {"delete-data", NULL, "allow --prune, --replace and --delete to delete tables that hold items"},
    {"adopt", NULL, "take things into the stack that are there already"},
    {"strict", NULL, "stop where anything in the template is not known"},
    {"live", NULL, "let functions run in their folders: what is changed there counts at once"},
    {"wait", "TIME", "wait so long for another deploy of the stack to end"},
    {"list", NULL, "list the stacks"},
    {"delete", "STACK", "delete all that a stack has made"},
    {"verbose", NULL, "show what stays as it is, too"},
    LIST_FLAGS,
};

const struct command command_deploy = {
    .name = "deploy",
    .summary = "tables, functions and what starts them, from a template",
    .usage = "[TEMPLATE] [flags]",
    .about =
        "Makes what a template describes: CloudFormation, SAM (YAML or JSON), what 'cdk synth' writes, or\n"
        "serverless.yml. Without a name it is the template.yaml, serverless.yml or cdk.out of this folder.\n"
        "Changes only what differs, waits until it works, and prints the outputs. A second run does nothing;\n"
        "one that was interrupted is finished by the next. What is not known here is named and left out.",
    FLAGS(flags),
    .examples = "  quipu deploy --plan\n"
                "  quipu deploy template.yaml --stack shop --parameter Stage=dev\n"
                "  quipu deploy --prune\n"
                "  quipu deploy --delete shop --delete-data",
    .works_on_server = true,
    .words_max = 1,
    .run = run_deploy,
};
