/* What the files of match share: comparisons, the tree of paths that a pattern becomes, exact decimals.
 *
 * A pattern is compiled to branches: every way through its $or-s is one, a set of paths with a choice of
 * comparisons each, all of which must be met. All branches' paths together make one tree, and sets of
 * branches are bits, so that an event is read once however many branches there are. */
#ifndef MATCH_INTERNAL_H
#define MATCH_INTERNAL_H

#include <stdint.h>

#include "base/json.h"
#include "match/match.h"

/* ---- decimal.c: JSON's numbers, compared exactly ---- */

struct decimal {
    const char *first, *end; /* the significant digits, a point among them; empty: zero */
    int64_t exponent;        /* the value is 0.DIGITS times ten to this power */
    bool negative;
};

/* The text is a number as JSON has them, and must stay. */
struct decimal decimal_read(struct slice text);
int decimal_compare(const struct decimal *a, const struct decimal *b);

/* ---- fold.c: letters without their case ---- */

/* Code points, folded, in the arena. The text is valid UTF-8, here and below. */
struct folded {
    uint32_t *points;
    size_t count;
};
struct folded fold_text(struct arena *arena, struct slice text);
bool folded_equals(const struct folded *wanted, struct slice text);
bool folded_begins(const struct folded *wanted, struct slice text);
bool folded_ends(const struct folded *wanted, struct slice text);

/* ---- comparison.c: one alternative of a field's list, and whether a value meets it ---- */

enum comparison_kind {
    COMPARE_TEXT,
    COMPARE_WORD, /* null, true, false */
    COMPARE_RANGE,
    COMPARE_PREFIX,
    COMPARE_SUFFIX,
    COMPARE_FOLDED,
    COMPARE_FOLDED_PREFIX,
    COMPARE_FOLDED_SUFFIX,
    COMPARE_WILDCARD,
    COMPARE_ADDRESS,
    COMPARE_NONE_OF,
    COMPARE_EXISTS,
    COMPARE_ABSENT, /* no value meets it; the field must not be there */
};

struct range {
    struct decimal low, high;
    bool has_low, has_high;
    bool above, below; /* without the bound itself */
};

struct network {
    unsigned char address[16];
    unsigned bytes; /* 4 or 16 */
    unsigned bits;
};

struct comparison {
    enum comparison_kind kind;
    enum json_kind word;
    struct slice text;
    struct folded folded;
    struct range range;
    struct network network;
    struct slice *parts; /* of a wildcard: what stands between its asterisks */
    size_t part_count;
    struct comparison *excluded; /* by NONE_OF */
    uint32_t excluded_count;
};

/* A value that is neither object nor array. */
struct scalar {
    enum json_kind kind;
    struct slice text; /* of strings and numbers */
};

bool comparison_holds(const struct comparison *comparison, const struct scalar *value);
/* An address of either family as text. */
bool network_read_address(struct slice text, struct network *out);

/* ---- expression.c: comparisons as patterns write them ---- */

struct compiler {
    struct json_reader reader;
    struct arena *arena;  /* of the pattern */
    struct arena scratch; /* of the compiling */
    char *error;
    size_t error_len;
    bool failed;
    struct node *nodes; /* all of them, newest first */
    uint32_t node_count;
    uint32_t entry_count;
};

/* Notes what is wrong and where; the first one stays. Always false. */
bool compile_fail(struct compiler *compiler, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* One element of a field's list. */
bool comparison_read(struct compiler *compiler, struct comparison *out);
/* A name that stands for a comparison, which therefore cannot be a field's name within $or. */
bool comparison_is_reserved(struct slice name);

/* ---- the compiled pattern ---- */

/* The list of one field: any of its comparisons will do. */
struct choice {
    struct comparison *comparisons;
    uint32_t count;
    bool absence_will_do; /* one of them is {"exists": false} */
    uint64_t *branches;   /* that ask for this choice */
    struct choice *next;  /* at the same path, of other branches */
};

struct node {
    struct slice name;
    struct node *children, *next;
    struct choice *choices;
    uint32_t index;        /* of its tally */
    bool reads_values;     /* has choices: scalars are of interest */
    uint64_t *asking;      /* branches that have a choice here */
    uint64_t *absence;     /* branches whose choice here may be absent, or that have none */
    uint64_t *below;       /* the same for all that is below */
    struct node *all_next; /* while compiling */
};

struct event_pattern {
    struct node *root;
    uint32_t node_count;
    uint32_t branch_count, words; /* words: of 64 branches */
};

#endif
