/* Requests as people type them: expressions with names and values in their places (expr/expr.h; literals are
 * plain JSON, see plain.h), and the short forms of keys and key conditions, which get their types from the
 * table. */
#ifndef CLI_PHRASE_H
#define CLI_PHRASE_H

#include "cli/place.h"
#include "expr/expr.h"

/* What all expressions of one request refer to, as yet nothing. */
struct phrases phrases_of_request(struct arena *arena);

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
