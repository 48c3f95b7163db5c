/* What people type and what files hold: expressions, key conditions, tables in a few words, plain and
 * DynamoDB's JSON. No input may crash, and what was understood must be JSON that the reader of base takes. */
#include <stdint.h>
#include <string.h>

#include "base/fail.h"
#include "cli/change.h"
#include "cli/layout.h"
#include "cli/phrase.h"
#include "cli/plain.h"
#include "cli/service.h"
#include "cli/table_spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_json(struct arena *arena, const struct buf *json)
{
    const char *fault;
    ensure(node_parse(arena, buf_view(json), &fault) != NULL);
}

static void try_expression(struct arena *arena, struct slice text)
{
    struct phrases phrases = phrases_of_request(arena);
    struct buf expression = {0}, members = {0};
    bool fine = phrase_put(&expression, &phrases, text);
    if (fine) {
        buf_byte(&members, '{');
        phrases_put_members(&members, &phrases);
        buf_byte(&members, '}');
        check_json(arena, &members);
    }
    ensure(fine || phrases.fault);
    phrases_free(&phrases);
    buf_free(&expression);
    buf_free(&members);
}

static void try_key_condition(struct arena *arena, const char *text, char type)
{
    struct schema schema = {.table = "T",
                            .hash = {SLICE("p"), type},
                            .searched = {{{SLICE("p"), type}, {SLICE("q"), type}}, 1, 2}};
    struct phrases phrases = phrases_of_request(arena);
    struct buf out = {0};
    const char *words[] = {text, text};
    phrase_key_condition(&out, &phrases, &schema, words, 2);
    out.len = 0;
    if (phrase_key(&out, &phrases, &schema, text, NULL)) check_json(arena, &out);
    phrases_free(&phrases);
    buf_free(&out);
}

static void try_table(struct arena *arena, const char *text)
{
    struct table_spec spec = {.name = "T", .hash = "p:S", .global_indexes = {text}, .local_indexes = {text}};
    struct buf out = {0};
    const char *fault = NULL;
    bool fine = table_spec_put(&out, arena, &spec, &fault);
    if (fine) check_json(arena, &out);
    ensure(fine || fault);
    buf_free(&out);
}

/* Whatever a name holds, it stays in its place of a path. */
static void try_path(struct arena *arena, const char *text)
{
    const char *path = path_of(arena, "/a/%s/b/%s", text, text);
    size_t slashes = 0;
    for (; *path; path++) {
        ensure(*path > ' ' && *path < 127 && !strchr("?#&=+:", *path));
        slashes += *path == '/';
    }
    ensure(slashes == 4);
}

/* Plain to DynamoDB's and back is the way home. */
static void try_plain(struct arena *arena, const struct node *node)
{
    struct buf there = {0}, back = {0}, again = {0};
    const char *fault;
    if (plain_value_to_dynamo(&there, node, &fault)) {
        check_json(arena, &there);
        ensure(dynamo_value_to_plain(&back, node_parse(arena, buf_view(&there), &fault)));
        ensure(plain_value_to_dynamo(&again, node_parse(arena, buf_view(&back), &fault), &fault));
        ensure(slice_equal(buf_view(&there), buf_view(&again)));
    }
    buf_free(&there);
    buf_free(&back);
    buf_free(&again);
}

static void try_record(struct arena *arena, const struct node *node)
{
    struct change change;
    struct buf out = {0};
    if (change_read(node, &change)) {
        change_put_words(&out, arena, &change);
        out.len = 0;
        if (change_put_plain(&out, &change) && !change.time.len) check_json(arena, &out);
    }
    buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    const char *fault;
    struct slice text = {(const char *)data, size};
    if (!utf8_valid(text)) return 0; /* refused before anything else */
    const char *ended = arena_printf(&arena, "%.*s", (int)size, text.data ? text.data : "").data;
    try_expression(&arena, text);
    try_key_condition(&arena, ended, 'S');
    try_key_condition(&arena, ended, 'N');
    try_table(&arena, ended);
    try_path(&arena, ended);
    text_width(text_harmless(&arena, text));
    const struct node *node = node_parse(&arena, text, &fault);
    if (node) {
        struct buf plain = {0};
        if (dynamo_value_to_plain(&plain, node)) check_json(&arena, &plain);
        buf_free(&plain);
        try_plain(&arena, node);
        try_record(&arena, node);
    }
    arena_free(&arena);
    return 0;
}
