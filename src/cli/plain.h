/* Plain JSON and DynamoDB's JSON, one into the other and back without loss.
 *
 *     plain                              DynamoDB
 *     "text"                             {"S":"text"}
 *     12.50                              {"N":"12.50"}       digits as they stand, none is rounded
 *     true, null                         {"BOOL":true}, {"NULL":true}
 *     [1,"a"]                            {"L":[...]}
 *     {"a":1}                            {"M":{...}}
 *     {"$binary":"AQI="}                 {"B":"AQI="}
 *     {"$set":["a","b"]}                 {"SS":["a","b"]}    of numbers NS, of {"$binary":...} BS
 *     {"$map":{"$set":[...]}}            {"M":{"$set":...}}  a map that would be taken for one of the others
 *
 * An item is an object whose members are such values. */
#ifndef CLI_PLAIN_H
#define CLI_PLAIN_H

#include "base/node.h"

/* Appends the value, or an item's attributes as an object, in DynamoDB's JSON. False and a sentence when it
 * cannot be one. */
bool plain_value_to_dynamo(struct buf *out, const struct node *value, const char **fault);
bool plain_item_to_dynamo(struct buf *out, const struct node *item, const char **fault);

/* And back. False when it is not DynamoDB's JSON. */
bool dynamo_value_to_plain(struct buf *out, const struct node *value);
bool dynamo_item_to_plain(struct buf *out, const struct node *item);

/* The value as a person reads it in a cell: text bare, everything else as plain JSON. */
bool dynamo_value_to_cell(struct buf *out, const struct node *value);

#endif
