/* Shares: a thing's concurrency, cut into at most LIMIT_DRIVE_SHARES parts, so that servers divide it among themselves
 * and together never exceed it.
 *
 * A share is a lease of the lease pattern, by name, and its seats are the part of the concurrency that its number
 * stands for. Whoever holds it begins calls in its seats until the lease is over; it is renewed long before. A server
 * that has shares already asks for one more a little later than one that has fewer. When the concurrency changes, the
 * seats of each share follow from the new number; shares that are too many are released. */
#include "base/compose.h"
#include "base/log.h"
#include "drive/internal.h"

#define LATER_MS 300 /* for each share that a server has, where others may want one */

static unsigned share_count(const struct driven *driven)
{
    return driven->concurrency < LIMIT_DRIVE_SHARES ? (unsigned)driven->concurrency : LIMIT_DRIVE_SHARES;
}

static bool is_mine(const struct share *share)
{
    return share->is_held && task_host_ticks_us(share->driven->drive->host) < share->until_us;
}

unsigned share_seats(const struct share *share)
{
    const struct driven *driven = share->driven;
    unsigned count = share_count(driven);
    if (driven_rests(driven) || !is_mine(share) || share->number >= count) return 0;
    return (unsigned)driven->concurrency / count + (share->number < (unsigned)driven->concurrency % count);
}

bool share_is_over(const struct share *share)
{
    return driven_rests(share->driven) || !is_mine(share) || share->number >= share_count(share->driven);
}

/* ---- the lease ---- */

static struct slice lease_path(const struct share *share)
{
    struct slice name = arena_printf(task_arena(), "drive:%.*s:%u", SLICE_ARG(share->driven->id),
                                     share->number);
    return drive_path(task_arena(), "/v1/leases/%n", name);
}

/* Takes it, or renews it: the same owner is given the same grant again. */
static void lease_ask(struct share *share)
{
    struct drive *drive = share->driven->drive;
    int64_t until_us = task_host_ticks_us(drive->host) + DRIVE_LEASE_MS * 1000ll;
    struct slice body = compose_in(task_arena(), "{'owner':%s,'for':%d}", slice_of(drive->owner),
                                   (int64_t)DRIVE_LEASE_MS);
    struct drive_reply reply = drive_ask(drive, NULL, "POST", lease_path(share), body);
    if (reply.status == 200) {
        share->is_held = true;
        share->until_us = until_us;
    } else if (reply.status == 409) {
        share->is_held = false;
    }
}

static void lease_release(struct share *share)
{
    struct drive *drive = share->driven->drive;
    struct slice body = compose_in(task_arena(), "{'owner':%s}", slice_of(drive->owner));
    if (is_mine(share)) drive_ask(drive, NULL, "DELETE", lease_path(share), body);
    share->is_held = false;
}

/* ---- the tasks of a share ---- */

static void share_run(void *argument)
{
    struct share *share = argument;
    struct driven *driven = share->driven;
    driven->driver->share(share);
    share->runs = false;
    task_signal_give(&share->kept);
    driven_task_ended(driven);
}

static bool is_wanted(const struct share *share)
{
    return share->busy || share->runs ||
           (!driven_rests(share->driven) && share->number < share_count(share->driven));
}

static unsigned held_count(const struct driven *driven)
{
    unsigned count = 0;
    for (unsigned i = 0; i < LIMIT_DRIVE_SHARES; i++) count += driven->shares[i].is_held;
    return count;
}

/* Later the more there are, and never all servers at the same time. */
static void wait_for_turn(struct share *share)
{
    struct drive *drive = share->driven->drive;
    int64_t later_us = (int64_t)held_count(share->driven) * LATER_MS * 1000 +
                       (int64_t)random_below(task_host_random(drive->host), LATER_MS * 1000);
    if (drive->options.shared) task_await(&share->kept, task_after_us(drive->host, later_us));
}

static void share_keep(void *argument)
{
    struct share *share = argument;
    struct driven *driven = share->driven;
    struct drive *drive = driven->drive;
    struct arena *arena = task_arena();
    struct task_moment due = {0, 0}; /* when to ask for it again */
    while (!driven_is_over(driven) || share->runs || share->busy) {
        struct arena_mark begin = arena_mark(arena);
        if (!is_wanted(share)) {
            if (share->is_held)
                lease_release(share);
            else
                task_await(&share->kept, TASK_NEVER);
            due = (struct task_moment){0, 0};
        } else if (task_moment_is_over(drive->host, &due)) {
            if (!share->is_held) wait_for_turn(share);
            if (is_wanted(share)) lease_ask(share);
            due = task_after_us(drive->host, DRIVE_RENEW_MS * 1000);
            if (share->is_held && !share->runs && !share_is_over(share)) {
                share->runs = true;
                driven_begin(driven, share_run, share);
            }
        } else {
            task_await(&share->kept, due);
        }
        arena_rewind(arena, begin);
    }
    if (share->is_held) lease_release(share);
    share->has_keeper = false;
    driven_task_ended(driven);
}

void shares_follow(struct driven *driven)
{
    for (unsigned i = 0; i < share_count(driven); i++) {
        struct share *share = &driven->shares[i];
        if (share->has_keeper || driven_is_over(driven)) continue;
        share->has_keeper = true;
        driven_begin(driven, share_keep, share);
    }
}
