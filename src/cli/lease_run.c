/* quipu lease run: a command that runs while a lease is held, as flock(1) does with a file. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "calendar/calendar.h"
#include "cli/hold.h"
#include "cli/special.h"

#define FOR_USUAL_MS  30000
#define FOR_MOST_MS   (24LL * 3600 * 1000)
#define HOLDERS_MOST  1000
#define WAIT_PIECE_MS 60000 /* what one call may wait at most */
#define FOR_EVER_MS   (100LL * 365 * 86400 * 1000)

struct lease {
    const struct arguments *arguments;
    struct place place;
    const char *name, *owner;
    int64_t for_ms, wait_ms;
    unsigned long long holders; /* 0: one */
    unsigned long long fence;
    int64_t granted_us; /* when it was asked for */
};

/* {"owner":...,"for":...: what all calls have. */
static void body_begin(const struct lease *lease, struct inquiry *inquiry)
{
    inquiry_path(inquiry, "/v1/leases/%s", lease->name, "");
    buf_text(&inquiry->body, "{");
    put_string_member(&inquiry->body, "owner", slice_of(lease->owner));
}

/* The flow ran here, so `until` is by this machine's clock. */
static void lease_take(struct lease *lease, const struct node *grant)
{
    int64_t until_ms, now_ms = clock_now_ms(&clock_system), age_ms = 0;
    lease->fence = node_count(grant, "fence");
    if (moment_parse(node_text(grant, "until"), &until_ms)) age_ms = now_ms - (until_ms - lease->for_ms);
    lease->granted_us = monotonic_us() - (age_ms > 0 ? age_ms : 0) * 1000;
}

/* One call; true when it has to be repeated because its wait was shorter than ours. */
static bool lease_ask(struct lease *lease, int64_t left_ms, int *status)
{
    struct arena arena = {0};
    struct inquiry inquiry = {.method = "POST"};
    body_begin(lease, &inquiry);
    put_int_member(&inquiry.body, "for", lease->for_ms);
    put_int_member(&inquiry.body, "wait", left_ms < WAIT_PIECE_MS ? left_ms : WAIT_PIECE_MS);
    if (lease->holders) put_int_member(&inquiry.body, "holders", (int64_t)lease->holders);
    buf_text(&inquiry.body, "}");
    struct heard heard = inquiry_run(&lease->place, &arena, &inquiry);
    bool repeats = heard_status(&heard) == EXIT_LATER && left_ms > WAIT_PIECE_MS;
    *status = EXIT_FINE;
    if (heard_status(&heard) == EXIT_FINE)
        lease_take(lease, heard.json);
    else if (!repeats)
        *status = heard_complain(lease->arguments, &lease->place, &heard);
    inquiry_free(&inquiry);
    arena_free(&arena);
    return repeats;
}

static int lease_get(struct lease *lease)
{
    int64_t until_us = monotonic_us() + lease->wait_ms * 1000;
    int status;
    int64_t left_ms = lease->wait_ms;
    signals_let();
    while (lease_ask(lease, left_ms, &status)) {
        left_ms = (until_us - monotonic_us()) / 1000;
        if (left_ms < 0) left_ms = 0;
    }
    signals_keep();
    return status;
}

static void lease_release(const struct lease *lease)
{
    struct arena arena = {0};
    struct inquiry inquiry = {.method = "DELETE"};
    body_begin(lease, &inquiry);
    put_int_member(&inquiry.body, "fence", (int64_t)lease->fence);
    buf_text(&inquiry.body, "}");
    inquiry_run(&lease->place, &arena, &inquiry); /* if it fails, the lease ends by its time */
    inquiry_free(&inquiry);
    arena_free(&arena);
}

static struct ran command_run(const struct lease *lease, struct arena *arena)
{
    struct hold hold = {.place = &lease->place,
                        .renewal = {.method = "PUT"},
                        .for_ms = lease->for_ms,
                        .from_us = lease->granted_us};
    body_begin(lease, &hold.renewal);
    put_int_member(&hold.renewal.body, "fence", (int64_t)lease->fence);
    put_int_member(&hold.renewal.body, "for", lease->for_ms);
    buf_text(&hold.renewal.body, "}");
    size_t count = argument_words(lease->arguments) - 1;
    char **words = arena_array(arena, char *, count + 1);
    for (size_t i = 0; i < count; i++) words[i] = (char *)(uintptr_t)argument_word(lease->arguments, i + 1);
    words[count] = NULL;
    const char *settings[] = {arena_printf(arena, "QUIPU_FENCE=%llu", lease->fence).data,
                              arena_printf(arena, "QUIPU_LEASE=%s", lease->name).data,
                              arena_printf(arena, "QUIPU_OWNER=%s", lease->owner).data, NULL};
    struct ran ran = hold_run(&hold, &(struct program_run){words, settings, -1, -1});
    inquiry_free(&hold.renewal);
    return ran;
}

static int lease_work(struct lease *lease, struct arena *arena)
{
    int status = lease_get(lease);
    if (status != EXIT_FINE) return status;
    struct ran ran = command_run(lease, arena);
    if (!ran.was_lost) lease_release(lease);
    if (ran.failure)
        complain("'%s' cannot be started: %s", argument_word(lease->arguments, 1), strerror(ran.failure));
    if (!ran.was_lost) return ran_status(&ran);
    complain("the lease was lost, so the command was ended");
    return EXIT_LOST;
}

int lease_run(const struct arguments *arguments)
{
    struct arena arena = {0};
    const char *owner = argument_text(arguments, "owner");
    struct lease lease = {.arguments = arguments,
                          .name = argument_word(arguments, 0),
                          .owner = owner ? owner : owner_make(&arena),
                          .for_ms = FOR_USUAL_MS,
                          .wait_ms = FOR_EVER_MS};
    int status = EXIT_USAGE;
    if (!*lease.name) {
        complain_of_usage(arguments, "name must not be empty");
    } else if (argument_number(arguments, "holders", 1, HOLDERS_MOST, &lease.holders) &&
               argument_duration(arguments, "for", FOR_MOST_MS, &lease.for_ms) &&
               argument_duration(arguments, "wait", FOR_EVER_MS, &lease.wait_ms)) {
        status = EXIT_FAULT;
        signals_keep();
        if (place_open(&lease.place, arguments, PLACE_MAKE)) {
            status = lease_work(&lease, &arena);
            place_close(&lease.place);
        }
    }
    arena_free(&arena);
    return status;
}
