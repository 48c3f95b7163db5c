/* Close is what one gets from the other by few letters: one of four, and at most two, that are wrong, missing,
 * too many or swapped with their neighbour (the restricted distance of Damerau and Levenshtein). */
#include "cli/nearest.h"

#include <string.h>

#define LETTERS_MAX 32 /* of the names; longer ones are none of ours */
#define WRONG_MAX   2

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t distance_of(struct slice a, struct slice b)
{
    size_t rows[LETTERS_MAX + 1][LETTERS_MAX + 1];
    for (size_t i = 0; i <= a.len; i++) rows[i][0] = i;
    for (size_t j = 0; j <= b.len; j++) rows[0][j] = j;
    for (size_t i = 1; i <= a.len; i++)
        for (size_t j = 1; j <= b.len; j++) {
            bool is_same = a.data[i - 1] == b.data[j - 1];
            bool is_swapped = i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] &&
                              a.data[i - 2] == b.data[j - 1];
            rows[i][j] = least(rows[i - 1][j - 1] + !is_same, least(rows[i - 1][j], rows[i][j - 1]) + 1);
            if (is_swapped) rows[i][j] = least(rows[i][j], rows[i - 2][j - 2] + 1);
        }
    return rows[a.len][b.len];
}

void nearest_try(struct nearest *nearest, struct slice typed, const char *name)
{
    struct slice wanted = slice_of(name);
    if (typed.len > LETTERS_MAX || wanted.len > LETTERS_MAX) return;
    size_t distance = distance_of(typed, wanted), allowed = least((typed.len + 3) / 4, WRONG_MAX);
    if (distance > allowed || distance >= wanted.len || (nearest->name && distance >= nearest->distance))
        return;
    *nearest = (struct nearest){name, distance};
}
