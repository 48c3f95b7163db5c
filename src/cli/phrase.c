/* What expressions refer to, as members of a request; keys and key conditions in their short forms. A word of
 * the command line has no type; the table's schema gives it one. */
#include "cli/phrase.h"

#include "base/print.h"
#include "base/raw.h"
#include "cli/plain.h"

/* ---- names and values of a request ---- */

static bool put_plain_value(struct buf *out, struct arena *arena, struct slice json, const char **fault)
{
    const struct node *value = node_parse(arena, json, fault);
    return value && plain_value_to_dynamo(out, value, fault);
}

struct phrases phrases_of_request(struct arena *arena)
{
    return (struct phrases){.arena = arena, .put_value = put_plain_value};
}

void phrases_put_members(struct buf *out, const struct phrases *phrases)
{
    if (phrases->names) {
        put_name(out, "ExpressionAttributeNames");
        buf_byte(out, '{');
        for (const struct phrase_name *name = phrases->names; name; name = name->older) {
            put_comma(out);
            json_put_string(out, name->placeholder);
            buf_byte(out, ':');
            json_put_string(out, name->name);
        }
        buf_byte(out, '}');
    }
    if (!phrases->value_count) return;
    put_name(out, "ExpressionAttributeValues");
    buf_byte(out, '{');
    buf_slice(out, buf_view(&phrases->values));
    buf_byte(out, '}');
}

/* ---- keys ---- */

static bool refuse_part(struct phrases *phrases, const struct key_part *part, struct slice text,
                        const char *what)
{
    phrases->fault = arena_printf(phrases->arena, "the key %.*s is %s, and '%.*s' is none",
                                  SLICE_ARG(part->name), what, SLICE_ARG(text))
                         .data;
    return false;
}

static bool is_json_number(struct arena *arena, struct slice text)
{
    return raw_kind(text) == JSON_NUMBER && raw_is_json(arena, text);
}

bool phrase_key_value(struct buf *out, struct phrases *phrases, const struct key_part *part,
                      struct slice text)
{
    struct slice bytes;
    if (part->type == 'N' && !is_json_number(phrases->arena, text))
        return refuse_part(phrases, part, text, "a number");
    if (part->type == 'B' && base64_decode(phrases->arena, text, &bytes) != BASE64_OK)
        return refuse_part(phrases, part, text, "binary, written in base64");
    if (!utf8_valid(text)) return refuse_part(phrases, part, SLICE("this"), "a text in UTF-8");
    buf_printf(out, "{\"%c\":", part->type);
    json_put_string(out, text);
    buf_byte(out, '}');
    return true;
}

static bool put_part(struct buf *out, struct phrases *phrases, const struct key_part *part, const char *text)
{
    put_comma(out);
    json_put_string(out, part->name);
    buf_byte(out, ':');
    return phrase_key_value(out, phrases, part, slice_of(text));
}

bool phrase_key(struct buf *out, struct phrases *phrases, const struct schema *schema, const char *hash,
                const char *range)
{
    bool has_range = schema->range.name.len > 0;
    if (has_range != (range != NULL)) {
        phrases->fault = has_range ? arena_printf(phrases->arena,
                                                  "the table '%s' has two keys: %.*s and %.*s", schema->table,
                                                  SLICE_ARG(schema->hash.name), SLICE_ARG(schema->range.name))
                                         .data
                                   : arena_printf(phrases->arena, "the table '%s' has one key: %.*s",
                                                  schema->table, SLICE_ARG(schema->hash.name))
                                         .data;
        return false;
    }
    buf_byte(out, '{');
    if (!put_part(out, phrases, &schema->hash, hash)) return false;
    if (range && !put_part(out, phrases, &schema->range, range)) return false;
    buf_byte(out, '}');
    return true;
}

/* ---- conditions ---- */

/* A value of the condition: into the values, its placeholder into the expression. */
static bool put_operand(struct buf *out, struct phrases *phrases, const struct key_part *part,
                        struct slice text)
{
    phrase_value_begin(out, phrases);
    return phrase_key_value(&phrases->values, phrases, part, text);
}

static bool put_comparison(struct buf *out, struct phrases *phrases, const struct key_part *part,
                           const char *operator, struct slice text)
{
    phrase_put_name(out, phrases, part->name);
    buf_printf(out, " %s ", operator);
    return put_operand(out, phrases, part, text);
}

static struct slice trim(struct slice text)
{
    while (text.len && text.data[0] == ' ') text = slice_from(text, 1);
    while (text.len && text.data[text.len - 1] == ' ') text.len--;
    return text;
}

/* >= F and the like. False in *found when it begins with no operator. */
static bool put_operator_form(struct buf *out, struct phrases *phrases, const struct key_part *part,
                              struct slice text, bool *found)
{
    static const char *const operators[] = {">=", "<=", ">", "<", "="};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        struct slice operator= slice_of(operators[i]);
        if (!slice_starts(text, operator)) continue;
        *found = true;
        return put_comparison(out, phrases, part, operators[i], trim(slice_from(text, operator.len)));
    }
    *found = false;
    return true;
}

/* A..B; NULL when the text has no such form. */
static const char *find_dots(struct slice text)
{
    return text.len < 4 ? NULL : memmem(text.data + 1, text.len - 2, "..", 2);
}

static bool put_between(struct buf *out, struct phrases *phrases, const struct key_part *part,
                        struct slice text, const char *dots)
{
    struct slice low = {text.data, (size_t)(dots - text.data)}, high = slice_from(text, low.len + 2);
    if (!put_comparison(out, phrases, part, "BETWEEN", trim(low))) return false;
    buf_text(out, " AND ");
    return put_operand(out, phrases, part, trim(high));
}

static bool put_begins(struct buf *out, struct phrases *phrases, const struct key_part *part,
                       struct slice prefix)
{
    buf_text(out, "begins_with(");
    phrase_put_name(out, phrases, part->name);
    buf_text(out, ", ");
    if (!put_operand(out, phrases, part, prefix)) return false;
    buf_byte(out, ')');
    return true;
}

static bool put_range_condition(struct buf *out, struct phrases *phrases, const struct key_part *part,
                                struct slice text)
{
    bool found;
    if (!put_operator_form(out, phrases, part, text, &found)) return false;
    if (found) return true;
    const char *dots = find_dots(text);
    if (dots) return put_between(out, phrases, part, text, dots);
    if (part->type == 'S' && text.len > 1 && text.data[text.len - 1] == '*')
        return put_begins(out, phrases, part, (struct slice){text.data, text.len - 1});
    return put_comparison(out, phrases, part, "=", text);
}

static bool refuse_count(struct phrases *phrases, const struct schema *schema, size_t count)
{
    const struct key *key = &schema->searched;
    struct buf names = {0};
    for (size_t i = 0; i < key->count; i++)
        buf_printf(&names, "%s%.*s%s", i ? ", " : "", SLICE_ARG(key->parts[i].name),
                   i < key->hash_count ? "" : "?");
    const char *owner = schema->index ? schema->index : schema->table;
    phrases->fault = arena_printf(phrases->arena, "the key of %s is %.*s, and %s %s given", owner,
                                  (int)names.len, names.data, counted(count, "value").text,
                                  count == 1 ? "was" : "were")
                         .data;
    buf_free(&names);
    return false;
}

bool phrase_key_condition(struct buf *out, struct phrases *phrases, const struct schema *schema,
                          const char *const *words, size_t count)
{
    const struct key *key = &schema->searched;
    if (count < key->hash_count || count > key->count) return refuse_count(phrases, schema, count);
    for (size_t i = 0; i < count; i++) {
        struct slice word = slice_of(words[i]);
        if (i) buf_text(out, " AND ");
        if (!(i < key->hash_count ? put_comparison(out, phrases, &key->parts[i], "=", word)
                                  : put_range_condition(out, phrases, &key->parts[i], word)))
            return false;
    }
    return true;
}
