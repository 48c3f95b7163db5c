/* A base as text: JSON with one member for each thing that backup_base has. Numbers of 64 bits are hexadecimal texts,
 * since readers of JSON round them. */
#include <stdio.h>
#include <stdlib.h>

#include "backup/target.h"
#include "base/fail.h"
#include "base/node.h"

void hex_put(char out[17], uint64_t number)
{
    snprintf(out, 17, "%016llx", (unsigned long long)number);
}

bool hex_read(struct slice text, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                                                : 16;
        if (digit == 16) return false;
        *number = *number << 4 | digit;
    }
    return text.len == 16;
}

static void put_hex_member(struct buf *out, const char *name, uint64_t number)
{
    char text[17];
    hex_put(text, number);
    put_string_member(out, name, slice_of(text));
}

void base_put(struct buf *out, const struct backup_base *base, const char *id)
{
    buf_byte(out, '{');
    if (id) put_string_member(out, "id", slice_of(id));
    put_hex_member(out, "source", base->source);
    put_int_member(out, "number", (int64_t)base->number);
    put_hex_member(out, "mark", base->mark);
    put_int_member(out, "time", base->time_ms);
    put_name(out, "files");
    buf_byte(out, '[');
    for (size_t i = 0; i < base->count; i++) {
        const struct backup_file *file = &base->files[i];
        put_comma(out);
        buf_text(out, "\n{");
        put_string_member(out, "name", slice_of(file->name));
        put_int_member(out, "bytes", (int64_t)file->bytes);
        put_hex_member(out, "mark", file->mark);
        put_hex_member(out, "checksum", file->checksum);
        buf_byte(out, '}');
    }
    buf_text(out, "]}\n");
}

static bool file_parse(const struct node *node, struct backup_file *file)
{
    struct slice name = node_text(node, "name");
    if (!disk_name_is_plain(name)) return false;
    snprintf(file->name, sizeof file->name, "%.*s", SLICE_ARG(name));
    file->bytes = node_count(node, "bytes");
    return hex_read(node_text(node, "mark"), &file->mark) &&
           hex_read(node_text(node, "checksum"), &file->checksum);
}

bool base_parse(struct slice text, struct backup_base *base, char id[BACKUP_NAME_BYTES])
{
    struct arena arena = {0};
    const char *fault;
    const struct node *tree = node_parse(&arena, text, &fault), *list = node_member(tree, "files");
    struct slice name = node_text(tree, "id");
    bool fine = list && (!name.len || disk_name_is_plain(name)) &&
                hex_read(node_text(tree, "source"), &base->source) &&
                hex_read(node_text(tree, "mark"), &base->mark);
    base->number = node_count(tree, "number");
    base->time_ms = (int64_t)node_count(tree, "time");
    base->files = must_zero(node_children(list) + 1, sizeof *base->files);
    base->count = 0;
    for (const struct node *one = list ? list->first : NULL; fine && one; one = one->next)
        fine = file_parse(one, &base->files[base->count++]);
    if (id) snprintf(id, BACKUP_NAME_BYTES, "%.*s", SLICE_ARG(name));
    arena_free(&arena);
    if (!fine) backup_base_free(base);
    return fine;
}

void backup_base_free(struct backup_base *base)
{
    free(base->files);
    *base = (struct backup_base){0};
}

int backup_file_order(const void *a, const void *b)
{
    const struct backup_file *one = a, *other = b;
    int order = strcmp(one->name, other->name);
    return order ? order : (one->mark > other->mark) - (one->mark < other->mark);
}
