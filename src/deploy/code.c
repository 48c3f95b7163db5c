/* Where the code of functions and layers is, and what it still lacks.
 *
 * Looked for, in this order: what `sam build` has built; a path in the template; an asset of `cdk synth`, which stands
 * beside the template under the name of its key; code within the template itself. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/digest.h"
#include "deploy/internal.h"

#define ASSET_HASH_CHARS 64 /* SHA-256 in hexadecimal */

static const char *path_in(struct deploy *deploy, const char *folder, struct slice name)
{
    if (name.len && name.data[0] == '/') return deploy_text(deploy, name);
    return arena_printf(&deploy->arena, "%s/%.*s", folder, SLICE_ARG(name)).data;
}

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool is_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static bool pack(struct deploy *deploy, struct resource *resource, const struct deploy_parcel *parcel)
{
    struct buf archive = {0};
    bool fine = deploy->door->pack(deploy->door->context, parcel, &archive);
    if (fine) resource->code = arena_copy(&deploy->arena, buf_view(&archive));
    buf_free(&archive);
    if (!fine) deploy->was_silent = true;
    return fine || deploy_fail(deploy, "the code of %.*s cannot be read", SLICE_ARG(resource->change.id));
}

/* An archive as it is; any other file becomes the only one of an archive, as `sam package` makes it. */
static bool take_file(struct deploy *deploy, struct resource *resource, const char *path)
{
    struct buf bytes = {0};
    if (!deploy->door->read(deploy->door->context, path, &bytes)) {
        buf_free(&bytes);
        deploy->was_silent = true;
        return deploy_fail(deploy, "the code of %.*s cannot be read", SLICE_ARG(resource->change.id));
    }
    struct slice content = arena_take(&deploy->arena, &bytes);
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    resource->code = content;
    if (content.len >= 4 && memcmp(content.data, "PK", 2) == 0) return true;
    const char *dot = strrchr(name, '.');
    if (dot && strcmp(dot, ".zip") == 0)
        return deploy_fail(deploy, "%.*s: %s is no zip archive", SLICE_ARG(resource->change.id), path);
    return pack(deploy, resource, &(struct deploy_parcel){.name = name, .text = content});
}

static bool take_path(struct deploy *deploy, struct resource *resource, const char *path,
                      const struct node *patterns)
{
    char full[PATH_MAX];
    if (is_file(path)) return take_file(deploy, resource, path);
    if (!realpath(path, full))
        return deploy_fail(deploy, "%.*s: its code %s cannot be found: %s", SLICE_ARG(resource->change.id),
                           path, strerror(errno));
    code_check(deploy, resource, full);
    resource->directory = deploy_text(deploy, slice_of(full));
    bool runs_in_place = deploy->options->live && word_is_in("AWS::Lambda::Function", resource->change.type);
    if (runs_in_place) return true;
    resource->directory = NULL;
    return pack(deploy, resource, &(struct deploy_parcel){.folder = full, .patterns = patterns});
}

/* Older ones of the CDK have parameters for an asset's place, whose names tell it: AssetParametersHASHS3Bucket... */
static struct slice hash_of_parameter(const struct resource *resource)
{
    const struct node *given = resource->source ? resource->source->properties : NULL;
    const struct node *code = node_member(given, "Code") ? node_member(given, "Code")
                                                         : node_member(given, "Content");
    struct slice name = node_text(node_member(code, "S3Bucket"), "Ref"), start = SLICE("AssetParameters");
    if (!slice_starts(name, start) || name.len < start.len + ASSET_HASH_CHARS) return SLICE("");
    return (struct slice){name.data + start.len, ASSET_HASH_CHARS};
}

/* Of `cdk synth`: asset.HASH or asset.HASH.zip for the key HASH.zip. */
static const char *find_asset(struct deploy *deploy, struct resource *resource, struct slice key)
{
    const struct node *metadata = node_member(resource->source ? resource->source->source : NULL, "Metadata");
    struct slice named = node_text(metadata, "aws:asset:path"), stem = arn_last(key, '/');
    const char *folder = deploy->options->folder;
    struct slice hash = hash_of_parameter(resource);
    if (stem.len > 4 && memcmp(stem.data + stem.len - 4, ".zip", 4) == 0) stem.len -= 4;
    const char *tries[] = {
        named.len ? path_in(deploy, folder, named) : "",
        arena_printf(&deploy->arena, "%s/asset.%.*s", folder, SLICE_ARG(stem)).data,
        arena_printf(&deploy->arena, "%s/asset.%.*s.zip", folder, SLICE_ARG(stem)).data,
        arena_printf(&deploy->arena, "%s/%.*s.zip", folder, SLICE_ARG(stem)).data,
        hash.len ? arena_printf(&deploy->arena, "%s/asset.%.*s", folder, SLICE_ARG(hash)).data : "",
        hash.len ? arena_printf(&deploy->arena, "%s/asset.%.*s.zip", folder, SLICE_ARG(hash)).data : "",
    };
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++)
        if (*tries[i] && (is_folder(tries[i]) || is_file(tries[i]))) return tries[i];
    return NULL;
}

static bool leave_out(struct resource *resource, const char *reason)
{
    resource->change.reason = reason;
    return true;
}

static bool starts_a_line(struct slice text, const char *word)
{
    struct slice rest = text;
    while (rest.len)
        if (slice_starts(slice_cut(&rest, '\n'), slice_of(word))) return true;
    return false;
}

/* One file called index, as Lambda makes it. */
static bool take_inline(struct deploy *deploy, struct resource *resource, struct slice text)
{
    bool is_python = slice_starts(node_text(resource->properties, "Runtime"), SLICE("python"));
    bool is_module = starts_a_line(text, "import ") || starts_a_line(text, "export ");
    const char *name = is_python ? "index.py" : is_module ? "index.mjs" : "index.js";
    return pack(deploy, resource, &(struct deploy_parcel){.name = name, .text = text});
}

bool code_find(struct deploy *deploy, struct resource *resource, const struct node *code)
{
    const char *folder = deploy->options->folder;
    const char *built =
        arena_printf(&deploy->arena, "%s/.aws-sam/build/%.*s", folder, SLICE_ARG(resource->change.id)).data;
    struct slice path = code && code->kind == JSON_STRING ? code->text : node_text(code, "Path");
    struct slice key = node_text(code, "S3Key");
    if (is_folder(built)) return take_path(deploy, resource, built, NULL);
    if (node_member(code, "ZipFile")) return take_inline(deploy, resource, node_text(code, "ZipFile"));
    if (node_member(code, "ImageUri"))
        return leave_out(resource, "its code is an image of a container, and there are none here");
    const char *asset = key.len ? find_asset(deploy, resource, key) : NULL;
    if (asset) return take_path(deploy, resource, asset, NULL);
    if (slice_starts(path, SLICE("s3://")) || key.len)
        return leave_out(resource, "its code is in S3, which is not here: name a folder or an archive");
    if (!path.len) return leave_out(resource, "the template does not say where its code is");
    return take_path(deploy, resource, path_in(deploy, folder, path), node_member(code, "Patterns"));
}

/* As Lambda tells it: the base64 of the SHA-256 of the archive. */
void code_put_hash(struct buf *out, struct slice code)
{
    struct buf hex = {0};
    char bytes[DIGEST_BYTES];
    digest_put_sha256(&hex, code);
    for (size_t i = 0; i < DIGEST_BYTES; i++) {
        unsigned byte = 0;
        sscanf(hex.data + 2 * i, "%2x", &byte);
        bytes[i] = (char)byte;
    }
    buf_free(&hex);
    json_put_base64(out, (struct slice){bytes, DIGEST_BYTES});
}

/* ---- what is missing ---- */

static struct slice read_small(struct deploy *deploy, const char *path)
{
    struct buf text = {0};
    if (!is_file(path) || !deploy->door->read(deploy->door->context, path, &text)) return SLICE("");
    return arena_take(&deploy->arena, &text);
}

static bool has_file(struct deploy *deploy, const char *folder, struct slice stem, const char *suffixes)
{
    struct slice rest = slice_of(suffixes);
    while (rest.len) {
        struct slice suffix = slice_cut(&rest, ' ');
        if (is_file(
                arena_printf(&deploy->arena, "%s/%.*s%.*s", folder, SLICE_ARG(stem), SLICE_ARG(suffix)).data))
            return true;
    }
    return false;
}

/* Packages of package.json that are not installed; Lambda's Node brings AWS's SDK. The note has no name of a function:
 * many share a folder, and it stands there once. */
static void check_node_packages(struct deploy *deploy, const char *folder)
{
    const char *fault;
    struct slice text = read_small(deploy, path_in(deploy, folder, SLICE("package.json")));
    const struct node *package = text.len ? node_parse(&deploy->arena, text, &fault) : NULL;
    const struct node *needed = node_member(package, "dependencies");
    for (const struct node *one = needed ? needed->first : NULL; one; one = one->next) {
        if (slice_starts(one->name, SLICE("@aws-sdk/")) || slice_equal(one->name, SLICE("aws-sdk"))) continue;
        if (is_folder(
                arena_printf(&deploy->arena, "%s/node_modules/%.*s", folder, SLICE_ARG(one->name)).data))
            continue;
        deploy_note(deploy, "the package %.*s is not installed: run 'npm install' in %s, or 'sam build'",
                    SLICE_ARG(one->name), folder);
        return;
    }
}

/* The folder of a Python package has its name with _ for -, in whatever case, or says so in its .dist-info. */
static bool has_python_package(const char *folder, struct slice name)
{
    DIR *directory = opendir(folder);
    bool found = false;
    for (const struct dirent *entry; !found && directory && (entry = readdir(directory));) {
        size_t i = 0;
        for (; i < name.len && entry->d_name[i]; i++) {
            char a = name.data[i] == '-' || name.data[i] == '.' ? '_' : name.data[i];
            char b = entry->d_name[i] == '-' ? '_' : entry->d_name[i];
            if ((a | 32) != (b | 32) && a != b) break;
        }
        found = i == name.len && (!entry->d_name[i] || strchr(".-", entry->d_name[i]));
    }
    if (directory) closedir(directory);
    return found;
}

static void check_python_packages(struct deploy *deploy, const char *folder)
{
    struct slice rest = read_small(deploy, path_in(deploy, folder, SLICE("requirements.txt")));
    while (rest.len) {
        struct slice line = slice_cut(&rest, '\n');
        size_t len = strcspn(deploy_text(deploy, line), "=<>~![; \t\r#@");
        line.len = len;
        if (!len || line.data[0] == '-' || slice_starts(line, SLICE("boto"))) continue;
        if (has_python_package(folder, line)) continue;
        deploy_note(
            deploy,
            "the package %.*s is not installed: run 'pip install -r requirements.txt -t .' in %s, or 'sam build'",
            SLICE_ARG(line), folder);
        return;
    }
}

void code_check(struct deploy *deploy, const struct resource *resource, const char *folder)
{
    struct slice handler = node_text(resource->properties, "Handler");
    struct slice runtime = node_text(resource->properties, "Runtime");
    const char *dot = handler.len ? memrchr(handler.data, '.', handler.len) : NULL;
    struct slice module = {handler.data, dot ? (size_t)(dot - handler.data) : handler.len};
    bool is_node = slice_starts(runtime, SLICE("nodejs")), is_python = slice_starts(runtime, SLICE("python"));
    if (!is_node && !is_python) return;
    char *file = (char *)deploy_text(deploy, module);
    if (is_python)
        for (char *at = file; *at; at++)
            if (*at == '.') *at = '/';
    if (!slice_starts(module, SLICE("/")) &&
        !has_file(deploy, folder, slice_of(file),
                  is_python ? ".py /__init__.py" : ".js .mjs .cjs /index.js")) {
        if (is_node && has_file(deploy, folder, module, ".ts .mts .tsx"))
            deploy_note(deploy, "%.*s: %s/%.*s.ts is TypeScript: run 'sam build' (or esbuild) first",
                        SLICE_ARG(resource->change.id), folder, SLICE_ARG(module));
        else
            deploy_note(deploy, "%.*s: the handler is %.*s, but %s has no such file",
                        SLICE_ARG(resource->change.id), SLICE_ARG(handler), folder);
    }
    if (is_node)
        check_node_packages(deploy, folder);
    else
        check_python_packages(deploy, folder);
}
