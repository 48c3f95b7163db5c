/* Does one value meet one comparison? Called for every value of an event that a pattern asks about.
 *
 * Numbers are compared as numbers and only where JSON has numbers: a DynamoDB attribute {"N": "5"} is a
 * string, which "numeric" never matches, on Lambda as here (its own tests against the service say so); such
 * attributes are compared as texts. */
#include <arpa/inet.h>

#include "match/internal.h"

bool network_read_address(struct slice text, struct network *out)
{
    char copy[INET6_ADDRSTRLEN];
    if (text.len == 0 || text.len >= sizeof copy || memchr(text.data, '\0', text.len)) return false;
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    bool is_six = memchr(copy, ':', text.len) != NULL;
    out->bytes = is_six ? 16 : 4;
    out->bits = out->bytes * 8;
    return inet_pton(is_six ? AF_INET6 : AF_INET, copy, out->address) == 1;
}

static bool network_holds(const struct network *network, struct slice text)
{
    struct network other;
    if (!network_read_address(text, &other) || other.bytes != network->bytes) return false;
    unsigned whole = network->bits / 8, rest = network->bits % 8;
    if (memcmp(network->address, other.address, whole) != 0) return false;
    if (rest == 0) return true;
    unsigned mask = 0xffu << (8 - rest) & 0xffu;
    return ((unsigned)(network->address[whole] ^ other.address[whole]) & mask) == 0;
}

static bool range_holds(const struct range *range, struct slice number)
{
    struct decimal value = decimal_read(number);
    if (range->has_low) {
        int order = decimal_compare(&value, &range->low);
        if (order < 0 || (order == 0 && range->above)) return false;
    }
    if (range->has_high) {
        int order = decimal_compare(&value, &range->high);
        if (order > 0 || (order == 0 && range->below)) return false;
    }
    return true;
}

static bool slice_ends(struct slice text, struct slice suffix)
{
    return text.len >= suffix.len && memcmp(text.data + text.len - suffix.len, suffix.data, suffix.len) == 0;
}

/* The first part stands at the beginning, the last one at the end, and the others each as early as they can
 * in between: what is taken early leaves the most room for the rest. */
static bool wildcard_holds(const struct comparison *comparison, struct slice text)
{
    const struct slice *parts = comparison->parts;
    size_t last = comparison->part_count - 1;
    if (last == 0) return slice_equal(text, parts[0]);
    if (!slice_starts(text, parts[0])) return false;
    text = slice_from(text, parts[0].len);
    for (size_t i = 1; i < last; i++) {
        const char *found = memmem(text.data, text.len, parts[i].data, parts[i].len);
        if (!found) return false;
        text = slice_from(text, (size_t)(found - text.data) + parts[i].len);
    }
    return slice_ends(text, parts[last]);
}

static bool text_holds(const struct comparison *comparison, struct slice text)
{
    switch (comparison->kind) {
    case COMPARE_TEXT: return slice_equal(text, comparison->text);
    case COMPARE_PREFIX: return slice_starts(text, comparison->text);
    case COMPARE_SUFFIX: return slice_ends(text, comparison->text);
    case COMPARE_FOLDED: return folded_equals(&comparison->folded, text);
    case COMPARE_FOLDED_PREFIX: return folded_begins(&comparison->folded, text);
    case COMPARE_FOLDED_SUFFIX: return folded_ends(&comparison->folded, text);
    case COMPARE_WILDCARD: return wildcard_holds(comparison, text);
    case COMPARE_ADDRESS: return network_holds(&comparison->network, text);
    default: return false;
    }
}

static bool excludes(const struct comparison *comparison, const struct scalar *value)
{
    for (uint32_t i = 0; i < comparison->excluded_count; i++)
        if (comparison_holds(&comparison->excluded[i], value)) return true;
    return false;
}

bool comparison_holds(const struct comparison *comparison, const struct scalar *value)
{
    switch (comparison->kind) {
    case COMPARE_EXISTS: return true;
    case COMPARE_ABSENT: return false;
    case COMPARE_WORD: return value->kind == comparison->word;
    case COMPARE_RANGE: return value->kind == JSON_NUMBER && range_holds(&comparison->range, value->text);
    case COMPARE_NONE_OF: return !excludes(comparison, value);
    default: return value->kind == JSON_STRING && text_holds(comparison, value->text);
    }
}
