/* Expressions as people write them, turned into those of the service.
 *
 * DynamoDB wants every value, and every name that is one of its 573 reserved words, outside of the
 * expression. Here both stand where they are meant:
 *
 *     Year >= 1960 and contains(tags, "jazz")      ->  #Year >= :v1 and contains(#tags, :v2)
 *     SET plays = plays + 1, `odd name`[0].x = {"$set":[1,2]}
 *
 * Literals are plain JSON (see plain.h) and texts in 'single quotes'; names in `backticks` may hold anything.
 * Words before a parenthesis are functions, and AND, OR, NOT, BETWEEN, IN, SET, REMOVE, ADD, DELETE are
 * themselves.
 *
 * Also here: the short forms of keys and key conditions, which get their types from the table. */
#ifndef CLI_PHRASE_H
#define CLI_PHRASE_H

#include "cli/place.h"

/* What all expressions of one request refer to. */
struct phrase_name {
    struct slice name, placeholder;
    const struct phrase_name *older;
};

struct phrases {
    struct arena *arena;
    const struct phrase_name *names; /* newest first */
    unsigned name_count, value_count;
    struct buf values; /* ":v1":{...},":v2":{...} */
    const char *fault; /* a sentence, in the arena, after something was refused */
};

void phrases_free(struct phrases *phrases);

/* Appends the service's form of an expression. False and a fault when it cannot be read. */
bool phrase_put(struct buf *out, struct phrases *phrases, struct slice text);
/* Appends a list of paths, as for a projection: "Artist, tags[0]". */
bool phrase_put_paths(struct buf *out, struct phrases *phrases, struct slice text);

/* Appends the placeholder of a name. */
void phrase_put_name(struct buf *out, struct phrases *phrases, struct slice name);

/* Appends a key's value, {"S":"..."}, typed as the key is: text, a number, or base64. */
bool phrase_key_value(struct buf *out, struct phrases *phrases, const struct key_part *part,
                      struct slice text);
/* Appends the key of one item: {"Artist":{...},"Song":{...}}; range is NULL when there is none. */
bool phrase_key(struct buf *out, struct phrases *phrases, const struct schema *schema, const char *hash,
                const char *range);
/* Appends the key condition: a word for each part of the hash, then for parts of the range, in short forms:
 *     F        = F      >= F   > F   <= F   < F      F*  begins with F      A..B  from A to B, both included
 */
bool phrase_key_condition(struct buf *out, struct phrases *phrases, const struct schema *schema,
                          const char *const *words, size_t count);

/* The members ExpressionAttributeNames and ExpressionAttributeValues of the request, where there are any. */
void phrases_put_members(struct buf *out, const struct phrases *phrases);

#endif
