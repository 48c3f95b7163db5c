/* Who reads which shard, where several servers share the work.
 *
 * Each server looks at the leases of a mapping and decides for itself; conditional writes settle it when
 * two want the same. A lease that is free is taken up to a fair share: all that are open, divided by the
 * servers that hold or ask for one, rounded up. Nobody knows of a server that holds nothing, so a newcomer
 * writes its name on a lease of who has most; the holder finishes its batches and gives it up. */
#include "trigger/judge.h"

static bool names(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static bool is_first_of(const struct lease_view *views, uint32_t index, const char *who)
{
    for (uint32_t i = 0; i < index; i++)
        if (names(views[i].owner, who) || names(views[i].wanted, who)) return false;
    return true;
}

/* Servers that hold a lease or have asked for one, and we. */
static uint32_t count_servers(const struct lease_view *views, uint32_t count, const char *me)
{
    uint32_t servers = 1;
    for (uint32_t i = 0; i < count; i++) {
        const char *owner = views[i].owner, *wanted = views[i].wanted;
        if (*owner && !names(owner, me) && is_first_of(views, i, owner)) servers++;
        if (*wanted && !names(wanted, me) && !names(wanted, owner) && is_first_of(views, i, wanted))
            servers++;
    }
    return servers;
}

static uint32_t count_of(const struct lease_view *views, uint32_t count, const char *owner)
{
    uint32_t held = 0;
    for (uint32_t i = 0; i < count; i++) held += views[i].is_open && names(views[i].owner, owner);
    return held;
}

static bool is_takeable(const struct lease_view *view, const char *me)
{
    return view->is_open && !*view->owner && (!*view->wanted || names(view->wanted, me));
}

/* Those that were given up for us come first: nobody else takes them. */
static uint32_t take_free(const struct lease_view *views, uint32_t count, const char *me, uint32_t room,
                          enum lease_wish *wishes)
{
    uint32_t taken = 0;
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < count && taken < room; i++) {
            bool is_ours = *views[i].wanted != 0;
            if (!is_takeable(&views[i], me) || is_ours != (pass == 0)) continue;
            wishes[i] = LEASE_TAKE;
            taken++;
        }
    return taken;
}

/* What is asked for counts as given already, by who has it and to who asked. */
static uint32_t count_left(const struct lease_view *views, uint32_t count, const char *owner,
                           const enum lease_wish *wishes)
{
    uint32_t left = count_of(views, count, owner);
    for (uint32_t i = 0; i < count; i++)
        left -= views[i].is_open && names(views[i].owner, owner) &&
                (*views[i].wanted || wishes[i] == LEASE_ASK);
    return left;
}

/* A lease of who would have most left. */
static uint32_t find_richest(const struct lease_view *views, uint32_t count, const char *me,
                             const enum lease_wish *wishes, uint32_t *left)
{
    uint32_t richest = 0;
    *left = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct lease_view *view = &views[i];
        if (!view->is_open || !*view->owner || names(view->owner, me) || *view->wanted ||
            wishes[i] == LEASE_ASK)
            continue;
        uint32_t has = count_left(views, count, view->owner, wishes);
        if (has <= *left) continue;
        *left = has;
        richest = i;
    }
    return richest;
}

static void ask_for_more(const struct lease_view *views, uint32_t count, const char *me, uint32_t mine,
                         enum lease_wish *wishes)
{
    uint32_t left;
    for (uint32_t i = 0; i < count; i++) mine += *views[i].owner && names(views[i].wanted, me);
    for (;; mine++) {
        uint32_t richest = find_richest(views, count, me, wishes, &left);
        if (left < mine + 2) return;
        wishes[richest] = LEASE_ASK;
    }
}

void lease_wishes(const struct lease_view *views, uint32_t count, const char *me, enum lease_wish *wishes)
{
    uint32_t open = 0, free_ones = 0;
    for (uint32_t i = 0; i < count; i++) {
        wishes[i] = LEASE_LEAVE;
        open += views[i].is_open;
        free_ones += is_takeable(&views[i], me);
    }
    uint32_t servers = count_servers(views, count, me);
    uint32_t share = (open + servers - 1) / servers, mine = count_of(views, count, me);
    if (mine < share) mine += take_free(views, count, me, share - mine, wishes);
    if (!free_ones) ask_for_more(views, count, me, mine, wishes);
}
