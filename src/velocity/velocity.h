/* Mapping templates of API Gateway, in the Velocity Template Language: a text with references and directives goes in,
 * another text comes out. Pure: what a template sees is given, and it changes nothing.
 *
 * There are references ($name, ${name}, $!name, properties, indexes and methods), #set, #if, #elseif, #else, #foreach,
 * #break, #stop, comments, [[unparsed text]]#, texts, numbers, truth values, lists, ranges, maps and the operators
 * == != < > <= >= && || ! + - * / %; and what API Gateway adds: $input.body, $input.params, $input.path, $input.json,
 * $context, $stageVariables, $util.escapeJavaScript, parseJson, urlEncode, urlDecode, base64Encode, base64Decode.
 *
 * A variable that was never set prints as it is written; a property that is not there prints nothing.
 *
 * Every template ends: its steps, what each of them goes through, its memory, its output, its depth and the rounds of a
 * loop are bounded (base/limits.h). */
#ifndef VELOCITY_VELOCITY_H
#define VELOCITY_VELOCITY_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/slice.h"

struct velocity_input {
    struct slice body;                 /* of $input */
    struct slice path, query, headers; /* of $input.params: JSON objects of texts; empty: none */
    struct slice context, variables;   /* $context and $stageVariables: JSON objects; empty: none */
};

/* Appends what comes out. False and a sentence when the template is wrong, or does too much. *status is what it sets
 * $context.responseOverride.status to; else it stays. */
bool velocity_render(struct slice template, const struct velocity_input *input, struct arena *arena, struct buf *out,
                     int *status, char *error, size_t error_len);

#endif
