/* A text into a tree: JSON here, by the strict reader of base; YAML in yaml.c. JSON is told from YAML by its first
 * byte, so that a fault in it is told in JSON's words. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/limits.h"
#include "template/internal.h"

static const struct node *json_tree(struct reading *reading);

bool error_put(char *error, const char *name, size_t line, size_t column, const char *format, va_list args)
{
    if (*error) return false;
    int head = snprintf(error, TEMPLATE_ERROR_BYTES, "%s:%zu:%zu: ", name, line, column);
    if (head >= 0 && head < TEMPLATE_ERROR_BYTES)
        vsnprintf(error + head, TEMPLATE_ERROR_BYTES - (size_t)head, format, args);
    return false;
}

bool reading_fail(struct reading *reading, size_t line, size_t column, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    error_put(reading->error, reading->name, line, column, format, args);
    va_end(args);
    return false;
}

void note_put(struct arena *arena, struct template_notes *notes, const struct node *where, const char *format,
              ...)
{
    va_list args;
    va_start(args, format);
    note_put_args(arena, notes, where, format, args);
    va_end(args);
}

void note_put_args(struct arena *arena, struct template_notes *notes, const struct node *where,
                   const char *format, va_list args)
{
    struct template_note *note = arena_new(arena, struct template_note);
    char text[LIMIT_TEMPLATE_NOTE_BYTES];
    vsnprintf(text, sizeof text, format, args);
    note->text = arena_copy(arena, slice_of(text));
    while (!utf8_valid(note->text)) note->text.len--; /* a letter was cut in two */
    note->line = where->line;
    note->column = where->column;
    *(notes->last ? &notes->last->next : &notes->first) = note;
    notes->last = note;
    notes->count++;
}

const struct node *template_read(struct arena *arena, struct slice text, const char *name,
                                 struct template_notes *notes, char error[TEMPLATE_ERROR_BYTES])
{
    struct reading reading = {arena, text, name, notes, error};
    const struct node *root = NULL;
    *error = 0;
    if (slice_starts(text, SLICE("\xef\xbb\xbf"))) reading.text = slice_from(text, 3);
    size_t at = 0;
    while (at < reading.text.len && memchr(" \t\r\n", reading.text.data[at], 4)) at++;
    if (text.len > LIMIT_TEMPLATE_BYTES)
        reading_fail(&reading, 1, 1, "the file has %zu bytes, and a template has at most %d", text.len,
                     LIMIT_TEMPLATE_BYTES);
    else if (at == reading.text.len)
        reading_fail(&reading, 1, 1, "the file is empty");
    else
        root = reading.text.data[at] == '{' ? json_tree(&reading) : yaml_read(&reading);
    ensure(root || *error);
    return *error ? NULL : root;
}

/* ---- JSON ---- */

/* Lines are counted once: nodes stand in the order of the text. */
struct place {
    const char *at;
    const char *line_start;
    uint32_t line;
};

static void move_to(struct place *place, const char *to)
{
    for (; place->at < to; place->at++)
        if (*place->at == '\n') {
            place->line++;
            place->line_start = place->at + 1;
        }
}

bool name_check(struct reading *reading, struct slice name, size_t line, size_t column)
{
    if (name.len <= LIMIT_TEMPLATE_NAME_BYTES) return true;
    return reading_fail(reading, line, column, "a name has more than %d bytes", LIMIT_TEMPLATE_NAME_BYTES);
}

/* Children before their parent: settling takes members out of the list. */
static void place_nodes(struct reading *reading, struct place *place, struct node *node)
{
    move_to(place, node->source.data);
    node->line = place->line;
    node->column = (uint32_t)(place->at - place->line_start) + 1;
    name_check(reading, node->name, node->line, node->column);
    for (const struct node *child = node->first; child; child = child->next)
        place_nodes(reading, place, (struct node *)child);
    if (node->kind == JSON_OBJECT) members_settle(reading, node, true);
}

static const struct node *json_tree(struct reading *reading)
{
    struct place place = {reading->text.data, reading->text.data, 1};
    struct json_reader json;
    json_begin(&json, reading->text, reading->arena);
    struct node *root = (struct node *)node_read(&json);
    if (!root || !json_done(&json)) {
        move_to(&place, json.at);
        reading_fail(reading, place.line, (size_t)(place.at - place.line_start) + 1, "this is no JSON: %s",
                     json.fault ? json.fault : "something stands behind the end");
        return NULL;
    }
    place_nodes(reading, &place, root);
    return root;
}

/* ---- members ---- */

struct member {
    struct node *node;
    size_t index;
};

static int by_name_and_index(const void *a, const void *b)
{
    const struct member *left = a, *right = b;
    int order = slice_compare(left->node->name, right->node->name);
    return order ? order : (left->index > right->index) - (left->index < right->index);
}

void members_settle(struct reading *reading, struct node *object, bool is_told)
{
    size_t count = node_children(object), at = 0;
    if (count < 2) return;
    struct member *sorted = must_alloc(count * sizeof *sorted);
    struct node **kept = must_zero(count, sizeof *kept);
    for (const struct node *child = object->first; child; child = child->next, at++)
        sorted[at] = (struct member){(struct node *)child, at};
    qsort(sorted, count, sizeof *sorted, by_name_and_index);
    for (size_t i = 0; i < count; i++) {
        struct node *node = sorted[i].node;
        if (i + 1 == count || !slice_equal(node->name, sorted[i + 1].node->name))
            kept[sorted[i].index] = node;
        else if (is_told)
            note_put(reading->arena, reading->notes, node, "'%.*s' stands twice; the last one counts",
                     SLICE_ARG(node->name));
    }
    const struct node **end = &object->first;
    for (size_t i = 0; i < count; i++) {
        if (!kept[i]) continue;
        *end = kept[i];
        end = &kept[i]->next;
    }
    *end = NULL;
    free(sorted);
    free(kept);
}
