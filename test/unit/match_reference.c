/* Random patterns against random events, beside a second implementation that does what the service describes
 * in the plainest way: the event is flattened to fields, each with the elements of arrays that it lies in,
 * and all ways to choose a field for each path of a branch are tried. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/random.h"
#include "match/match.h"
#include "unit/test.h"

#define PATHS    24 /* of a branch */
#define FORKS    3  /* of a pattern */
#define BRANCHES 8  /* three forks make no more */
#define FIELDS   64 /* of an event */
#define DEPTH    6  /* of arrays around a field */

struct wanted {
    char path[32];
    unsigned values;   /* bit n: the number n will do */
    bool anything_but; /* of the same numbers */
    bool exists, absent;
};

struct branch {
    struct wanted wanted[PATHS];
    unsigned count;
};

struct field {
    char path[32];
    unsigned value;
    int arrays[DEPTH], elements[DEPTH];
    unsigned depth;
};

struct trial {
    struct random random;
    struct buf pattern, event;
    struct branch branches[BRANCHES];
    unsigned branch_count;
    struct field fields[FIELDS];
    unsigned field_count;
    int array_count;
    unsigned forks;
    bool is_too_large; /* for this test's arrays: of no use */
};

static unsigned dice(struct trial *trial, unsigned sides)
{
    return (unsigned)random_below(&trial->random, sides);
}

/* ---- patterns ---- */

static void branch_ask(struct trial *trial, struct branch *branch, const struct wanted *wanted)
{
    for (unsigned i = 0; i < branch->count; i++)
        if (strcmp(branch->wanted[i].path, wanted->path) == 0) {
            branch->wanted[i] = *wanted;
            return;
        }
    if (branch->count == PATHS)
        trial->is_too_large = true;
    else
        branch->wanted[branch->count++] = *wanted;
}

static void make_choice(struct trial *trial, const char *path, unsigned from, unsigned to)
{
    struct wanted wanted = {.values = 1u << (1 + dice(trial, 3))};
    snprintf(wanted.path, sizeof wanted.path, "%s", path);
    unsigned number = wanted.values == 2 ? 1 : wanted.values == 4 ? 2 : 3;
    buf_byte(&trial->pattern, '[');
    switch (dice(trial, 6)) {
    case 0:
        wanted.absent = true;
        wanted.values = 0;
        buf_text(&trial->pattern, "{\"exists\":false}");
        break;
    case 1:
        wanted.absent = true;
        buf_printf(&trial->pattern, "{\"exists\":false},%u", number);
        break;
    case 2:
        wanted.exists = true;
        buf_text(&trial->pattern, "{\"exists\":true}");
        break;
    case 3:
        wanted.anything_but = true;
        buf_printf(&trial->pattern, "{\"anything-but\":%u}", number);
        break;
    default: buf_printf(&trial->pattern, "%u", number);
    }
    buf_byte(&trial->pattern, ']');
    for (unsigned i = from; i < to; i++) branch_ask(trial, &trial->branches[i], &wanted);
}

/* Fills the branches from..*to, and makes more of them where it forks. Only the last ones can fork. */
static void make_object(struct trial *trial, const char *path, unsigned depth, unsigned from, unsigned *to);

static void make_fork(struct trial *trial, const char *path, unsigned depth, unsigned from, unsigned *to)
{
    struct branch before[BRANCHES];
    unsigned count = *to - from;
    memcpy(before, &trial->branches[from], count * sizeof *before);
    buf_text(&trial->pattern, "\"$or\":[");
    make_object(trial, path, depth, from, to);
    buf_byte(&trial->pattern, ',');
    unsigned second = *to, end = second + count;
    memcpy(&trial->branches[second], before, count * sizeof *before);
    make_object(trial, path, depth, second, &end);
    *to = end;
    buf_byte(&trial->pattern, ']');
}

static void make_object(struct trial *trial, const char *path, unsigned depth, unsigned from, unsigned *to)
{
    unsigned members = 1 + dice(trial, 2);
    buf_byte(&trial->pattern, '{');
    for (unsigned i = 0; i < members; i++) {
        char inner[32];
        unsigned letter = 'a' + dice(trial, 3);
        snprintf(inner, sizeof inner, "%.20s.%c", path, (char)letter);
        if (i) buf_byte(&trial->pattern, ',');
        if (trial->forks < FORKS && dice(trial, 6) == 0) {
            trial->forks++;
            make_fork(trial, path, depth, from, to);
            continue;
        }
        buf_printf(&trial->pattern, "\"%c\":", (char)letter);
        if (depth < 3 && dice(trial, 2))
            make_object(trial, inner, depth + 1, from, to);
        else
            make_choice(trial, inner, from, *to);
    }
    buf_byte(&trial->pattern, '}');
}

/* ---- events ---- */

/* The elements of arrays that an object lies in; a scalar does not count those right around it. */
struct place {
    int arrays[DEPTH], elements[DEPTH];
    unsigned depth, own; /* own: how many count for a scalar */
};

static void make_members(struct trial *trial, const char *path, unsigned depth, struct place place);

static void make_value(struct trial *trial, const char *path, unsigned depth, struct place place)
{
    unsigned kind = dice(trial, depth > 3 ? 2 : 5);
    if (kind <= 1) {
        unsigned value = 1 + dice(trial, 3);
        buf_printf(&trial->event, "%u", value);
        if (trial->field_count == FIELDS) {
            trial->is_too_large = true;
            return;
        }
        struct field *field = &trial->fields[trial->field_count++];
        *field = (struct field){.value = value, .depth = place.own};
        snprintf(field->path, sizeof field->path, "%s", path);
        memcpy(field->arrays, place.arrays, sizeof field->arrays);
        memcpy(field->elements, place.elements, sizeof field->elements);
    } else if (kind <= 3 || place.depth == DEPTH) {
        place.own = place.depth;
        make_members(trial, path, depth + 1, place);
    } else {
        unsigned count = dice(trial, 4);
        place.arrays[place.depth] = trial->array_count++;
        place.depth++;
        buf_byte(&trial->event, '[');
        for (unsigned i = 0; i < count; i++) {
            place.elements[place.depth - 1] = (int)i;
            if (i) buf_byte(&trial->event, ',');
            make_value(trial, path, depth + 1, place);
        }
        buf_byte(&trial->event, ']');
    }
}

static void make_members(struct trial *trial, const char *path, unsigned depth, struct place place)
{
    bool first = true;
    buf_byte(&trial->event, '{');
    for (char letter = 'a'; letter <= 'c'; letter++) {
        char inner[32];
        if (dice(trial, 3) == 0) continue;
        snprintf(inner, sizeof inner, "%.20s.%c", path, letter);
        buf_printf(&trial->event, "%s\"%c\":", first ? "" : ",", letter);
        first = false;
        make_value(trial, inner, depth, place);
    }
    buf_byte(&trial->event, '}');
}

/* ---- the plain way ---- */

static bool is_met(const struct wanted *wanted, const struct field *field)
{
    bool listed = wanted->values >> field->value & 1;
    return strcmp(wanted->path, field->path) == 0 &&
           (wanted->exists || (wanted->anything_but ? !listed : listed));
}

/* Two fields may be of one match unless they lie in different elements of one array. */
static bool go_together(const struct field *a, const struct field *b)
{
    for (unsigned i = 0; i < a->depth; i++)
        for (unsigned j = 0; j < b->depth; j++)
            if (a->arrays[i] == b->arrays[j] && a->elements[i] != b->elements[j]) return false;
    return true;
}

static bool fits(const struct field *field, const struct field **chosen, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (chosen[i] && !go_together(field, chosen[i])) return false;
    return true;
}

static bool absences_hold(const struct trial *trial, const struct branch *branch, const struct field **chosen)
{
    for (unsigned i = 0; i < branch->count; i++) {
        if (chosen[i]) continue;
        for (unsigned j = 0; j < trial->field_count; j++)
            if (strcmp(trial->fields[j].path, branch->wanted[i].path) == 0 &&
                fits(&trial->fields[j], chosen, branch->count))
                return false;
    }
    return true;
}

static bool try_from(const struct trial *trial, const struct branch *branch, const struct field **chosen,
                     unsigned at)
{
    if (at == branch->count) return absences_hold(trial, branch, chosen);
    chosen[at] = NULL;
    if (branch->wanted[at].absent && try_from(trial, branch, chosen, at + 1)) return true;
    for (unsigned i = 0; i < trial->field_count; i++) {
        chosen[at] = NULL;
        if (!is_met(&branch->wanted[at], &trial->fields[i]) || !fits(&trial->fields[i], chosen, at)) continue;
        chosen[at] = &trial->fields[i];
        if (try_from(trial, branch, chosen, at + 1)) return true;
    }
    chosen[at] = NULL;
    return false;
}

static bool matches_plainly(const struct trial *trial)
{
    const struct field *chosen[PATHS];
    for (unsigned i = 0; i < trial->branch_count; i++) {
        memset(chosen, 0, sizeof chosen);
        if (try_from(trial, &trial->branches[i], chosen, 0)) return true;
    }
    return false;
}

/* ---- both ---- */

static bool trial_run(struct trial *trial, unsigned *matched)
{
    struct arena arena = {0}, scratch = {0};
    struct place place = {0};
    char error[200];
    trial->pattern.len = trial->event.len = 0;
    trial->field_count = 0;
    trial->array_count = 0;
    trial->forks = 0;
    trial->is_too_large = false;
    memset(trial->branches, 0, sizeof trial->branches);
    trial->branch_count = 1;
    make_object(trial, "", 0, 0, &trial->branch_count);
    make_members(trial, "", 0, place);
    if (trial->is_too_large) return true;
    struct event_pattern *pattern = pattern_compile(&arena, buf_view(&trial->pattern), error, sizeof error);
    if (!pattern) {
        test_failed(__FILE__, __LINE__, "%.*s: %s", SLICE_ARG(buf_view(&trial->pattern)), error);
        return false;
    }
    bool plainly = matches_plainly(trial);
    bool really = pattern_matches(pattern, buf_view(&trial->event), &scratch);
    if (plainly != really)
        test_failed(__FILE__, __LINE__, "%.*s\n  %.*s\n  should be %d", SLICE_ARG(buf_view(&trial->pattern)),
                    SLICE_ARG(buf_view(&trial->event)), plainly);
    *matched += really;
    arena_free(&arena);
    arena_free(&scratch);
    return plainly == really;
}

TEST(random_patterns_agree_with_the_plain_way)
{
    static struct trial trial;
    unsigned matched = 0, count = 100000;
    random_seed(&trial.random, 20240817);
    for (unsigned i = 0; i < count; i++)
        if (!trial_run(&trial, &matched)) break;
    /* Else the random ones would say nothing. */
    CHECK(matched > count / 10 && matched < count * 9 / 10);
    buf_free(&trial.pattern);
    buf_free(&trial.event);
}
