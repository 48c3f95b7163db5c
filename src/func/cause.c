/* Causes: the lineage of a write as a short text, "resize:1,index:2", oldest name first.
 *
 * It travels in stream records, so it may come from another server, of another release, or have been cut:
 * what cannot be read is left out, never an error. Bounded in names (LIMIT_CAUSE_FUNCTIONS), so that a long
 * chain of functions costs no more than a short one; the oldest are forgotten, because a loop is found by the
 * youngest. Pure; called by the pool for what functions write, and by triggers to see loops. */
#include "base/limits.h"
#include "func/func.h"

#define COUNT_MAX 999999999u

struct origin {
    struct slice function;
    unsigned count;
};

struct lineage {
    struct origin origins[LIMIT_CAUSE_FUNCTIONS];
    unsigned len;
};

/* Takes the first entry off *text; false when none is left. One that is no name:count is skipped. */
static bool origin_take(struct slice *text, struct origin *out)
{
    while (text->len) {
        struct slice entry = slice_cut(text, ',');
        const char *colon = entry.len ? memrchr(entry.data, ':', entry.len) : NULL;
        if (!colon || colon == entry.data) continue;
        size_t name_len = (size_t)(colon - entry.data);
        unsigned long long count;
        if (!slice_to_u64(slice_from(entry, name_len + 1), COUNT_MAX, &count) || count == 0) continue;
        *out = (struct origin){{entry.data, name_len}, (unsigned)count};
        return true;
    }
    return false;
}

unsigned cause_count(struct slice cause, struct slice function)
{
    unsigned highest = 0;
    struct origin origin;
    while (origin_take(&cause, &origin))
        if (slice_equal(origin.function, function) && origin.count > highest) highest = origin.count;
    return highest;
}

/* As the youngest; what it had before is replaced. */
static void lineage_put(struct lineage *lineage, struct origin origin)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < lineage->len; i++)
        if (!slice_equal(lineage->origins[i].function, origin.function))
            lineage->origins[kept++] = lineage->origins[i];
    if (kept == LIMIT_CAUSE_FUNCTIONS) {
        kept--;
        memmove(lineage->origins, lineage->origins + 1, kept * sizeof *lineage->origins);
    }
    lineage->origins[kept++] = origin;
    lineage->len = kept;
}

static unsigned lineage_count(const struct lineage *lineage, struct slice function)
{
    for (unsigned i = 0; i < lineage->len; i++)
        if (slice_equal(lineage->origins[i].function, function)) return lineage->origins[i].count;
    return 0;
}

/* Names that come twice, in one text or in several, keep the higher count. */
static void lineage_read(struct lineage *lineage, struct slice cause)
{
    struct origin origin;
    while (origin_take(&cause, &origin)) {
        unsigned before = lineage_count(lineage, origin.function);
        if (before > origin.count) origin.count = before;
        lineage_put(lineage, origin);
    }
}

static struct slice lineage_text(const struct lineage *lineage, struct arena *arena)
{
    size_t room = 1;
    for (unsigned i = 0; i < lineage->len; i++)
        room += lineage->origins[i].function.len + sizeof ":999999999,";
    struct buf out = {.data = arena_alloc(arena, room), .cap = room};
    for (unsigned i = 0; i < lineage->len; i++) {
        if (i) buf_byte(&out, ',');
        buf_slice(&out, lineage->origins[i].function);
        buf_byte(&out, ':');
        buf_decimal(&out, lineage->origins[i].count);
    }
    return buf_view(&out);
}

struct slice cause_add(struct arena *arena, struct slice cause, struct slice function)
{
    struct lineage lineage = {0};
    lineage_read(&lineage, cause);
    unsigned count = lineage_count(&lineage, function);
    lineage_put(&lineage, (struct origin){function, count < COUNT_MAX ? count + 1 : COUNT_MAX});
    return lineage_text(&lineage, arena);
}

struct slice cause_join(struct arena *arena, struct slice a, struct slice b)
{
    if (!a.len) return b;
    if (!b.len || slice_equal(a, b)) return a;
    struct lineage lineage = {0};
    lineage_read(&lineage, a);
    lineage_read(&lineage, b);
    return lineage_text(&lineage, arena);
}
