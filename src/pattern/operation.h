/* The operations of the patterns as rows: what each takes and answers. HTTP, its description, the command
 * line and the library are derived from them. A part of pattern.h. */
#ifndef PATTERN_OPERATION_H
#define PATTERN_OPERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flow;

enum field_place {
    IN_PATH,
    IN_QUERY,
    IN_HEADER,
    IN_BODY,
    WHOLE_BODY,
    IN_REPLY, /* a member that GET answers beside the settings: a body may repeat it, and nobody reads it */
};
enum field_type {
    FIELD_NAME,     /* text of 1 .. max bytes (0: 255), no control characters */
    FIELD_TEXT,     /* any text of min .. max bytes (0: LIMIT_ITEM_BYTES) */
    FIELD_INT,      /* whole number in min .. max */
    FIELD_DURATION, /* "30s", or a number of milliseconds; in min .. max ms */
    FIELD_BOOL,     /* true, false; in a query also 1, 0 and nothing: ?cost */
    FIELD_JSON,     /* any JSON that DynamoDB can hold */
    FIELD_THEN,     /* a reaction (then.c): a string, an object or a list */
    FIELD_CHOICE,   /* one of the words in `words`, "tree|set"; the number is its place */
    FIELD_LIST,     /* an array, its elements unseen */
    FIELD_RAW,      /* WHOLE_BODY: bytes that must be UTF-8, no JSON */
};

struct field {
    const char *name;
    enum field_place place;
    enum field_type type;
    bool required;
    int64_t min, max;
    const char *words; /* CHOICE */
    const char *help;  /* a phrase, for the description */
    bool takes_number; /* TEXT: a JSON number is its digits */
    bool takes_time;   /* DURATION: or a time, as GET answers it, which may be over */
    bool is_unchecked; /* JSON: whoever stores it finds out whether DynamoDB can hold it */
};

/* clang-format off */
/* Fields that many rows have: a name in the path, of up to `most` bytes (0: 255); what GET answers beside the settings,
 * so that its answer can be PUT; how many a page has, and where it begins; how long to wait; the key of a call that may
 * be repeated; of a lease the fence, and how long it lasts; how long something is kept. */
#define FIELD_IN_PATH(name, most, help_text) {name, IN_PATH, FIELD_NAME, true, .max = most, .help = help_text}
#define FIELD_ANSWERED(name, type) {name, IN_REPLY, type, .help = "as GET answers it; it changes nothing"}
#define FIELD_LIMIT(most)                                                                                    \
    {"limit", IN_QUERY, FIELD_INT, .min = 1, .max = most, .help = "at most so many (default: 100)"}
#define FIELD_AFTER {"after", IN_QUERY, FIELD_NAME, .help = "the \"next\" of the page before"}
#define FIELD_WAIT(place, help_text) {"wait", place, FIELD_DURATION, .max = WAIT_MOST_MS, .help = help_text}
#define FIELD_REPEATS(help_text) {"Idempotency-Key", IN_HEADER, FIELD_NAME, .help = help_text}
#define FIELD_FENCE(help_text) {"fence", IN_BODY, FIELD_INT, true, .min = 1, .max = INT64_MAX, .help = help_text}
#define FIELD_FOR(most, help_text) {"for", IN_BODY, FIELD_DURATION, .min = 1, .max = most, .help = help_text}
#define FIELD_KEEP(most, help_text) {"keep", IN_BODY, FIELD_DURATION, .min = 1000, .max = most, .help = help_text}
/* clang-format on */

/* Fields that stand in the path come first, in its order. */
struct flow_row {
    const char *method, *path;
    void (*begin)(struct flow *flow); /* private: the first step */
    const char *summary;              /* one sentence */
    const struct field *fields;
    uint32_t field_count;
    const char *reply; /* an example, with ' for " */
    /* How it is called on the command line; NULL: not at all. Two words, then the fields of the body that are
     * words there, behind those of the path: "by?" need not be given, "tasks..." takes all words that are
     * left as a list, "task|tasks..." is one where there is one word. "-> value": the member of the reply
     * that people want to see; "-> *": the reply is what was stored. */
    const char *command;
};

/* The rows of all patterns, in order; NULL behind the last. */
const struct flow_row *row_at(size_t number);

#endif
