/* The settings of a trigger, from flags to the members of Lambda's request. */
#ifndef CLI_TRIGGER_SETTINGS_H
#define CLI_TRIGGER_SETTINGS_H

#include "base/node.h"
#include "cli/cli.h"

// clang-format off
#define TRIGGER_SETTING_FLAGS                                                                                \
    {"batch", "N", "records in one call, at most: 1 to 10000 (default: 100)"},                               \
    {"window", "DURATION", "how long a batch may wait to be full: up to 5m"},                                \
    {"filter", "PATTERN", "an EventBridge pattern; may be given again, one must match"},                     \
    {"lanes", "N", "batches of one shard at a time: 1 to 10"},                                               \
    {"retries", "N", "further calls after one that failed; -1: no bound (default)"},                         \
    {"max-age", "DURATION", "give up changes that are older: 1m to 7d"},                                     \
    {"bisect", NULL, "try a failed batch again in halves"},                                                  \
    {"partial", NULL, "the function reports which records of a batch failed"},                               \
    {"tumbling", "DURATION", "windows with a state: up to 15m"},                                             \
    {"on-failure", "WHERE", "tell of what was given up: a queue's name, an ARN or a URL"},                   \
    {"depth", "N", "how often it may be triggered by its own writes (default: 0)"}
// clang-format on

/* Appends the members, each with a comma before it unless an object just opened. False after complaining. */
bool trigger_put_settings(struct buf *out, const struct arguments *arguments, struct arena *arena);

#endif
