/* What decoding requests (decode.c) and decoding AttributeValues (value_read.c) need of each other. Each of
 * these answers false when it has refused the call. A fault of the JSON itself may also stay in the reader:
 * whoever began the reader asks it at the end. */
#ifndef API_DECODE_H
#define API_DECODE_H

#include "api/internal.h"

/* SerializationException with this text; without any when the body is not even JSON. Always false. */
bool decode_refuse(struct api_call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool decode_string(struct api_call *call, struct json_reader *reader, struct slice *out);
bool decode_bool(struct api_call *call, struct json_reader *reader, bool *out);

/* For arrays of structs that begin with a name: of those with the same name only the last stays. Answers the
 * new count. */
uint32_t decode_drop_repeated(struct arena *arena, void *array, uint32_t count, size_t size);

/* Reads one AttributeValue into *out. Faults of type refuse at once; faults of content (a number that is
 * none, an empty set, two types) are left for the operation to say in its turn: their sentence is put into
 * out->fault. */
bool value_decode(struct api_call *call, struct json_reader *reader, bool is_element, struct node *out);
extern const struct slice value_empty_fault; /* of a value without a type */

#endif
