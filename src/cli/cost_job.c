/* quipu cost job: write units a task, by the size of the job. The tree is measured to the last task. So is
 * the single set while it is small; a large one is written anew with every task, which takes the square of
 * its size in time, so what its calls cost is reckoned from the sizes of its numbers. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/cost.h"
#include "cli/progress.h"
#include "pattern/pattern.h"

#define TASKS_MOST        1000000ULL
#define SET_MEASURED_MOST 2000ULL   /* tasks */
#define SET_TASKS_MOST    100000ULL /* then its item has its 400 KB */
#define SET_ITEM_BYTES    110       /* what the item of a set holds besides its numbers: key, names, counts */
#define UNIT_BYTES        1024
#define SIZES_MOST        32

static const char default_sizes[] = "1000,2000,10000,100000";

struct size {
    unsigned long long tasks;
    double writes, reads, calls, largest;
    bool is_reckoned;
};

/* ---- one size ---- */

static bool spend(struct meter *meter, const char *request, const char *body, struct size *size)
{
    struct measure measure;
    if (!meter_ask(meter, request, NULL, slice_of(body), &measure) || measure.status >= 300) {
        complain("%s: %.*s", request, SLICE_ARG(measure.reply));
        return false;
    }
    size->writes += measure.writes;
    size->reads += measure.reads;
    size->calls += (double)measure.calls;
    size->largest = fmax(size->largest, measure.writes);
    return true;
}

/* All tasks, one by one, in an order in which all leaves fill side by side. */
static bool measure_size(struct meter *meter, const char *layout, struct size *size)
{
    char request[80], body[80];
    struct progress progress;
    bool fine;
    snprintf(request, sizeof request, "PUT /v1/jobs/%llu", size->tasks);
    snprintf(body, sizeof body, "{\"total\":%llu,\"layout\":\"%s\"}", size->tasks, layout);
    fine = spend(meter, request, body, size);
    snprintf(request, sizeof request, "POST /v1/jobs/%llu/done", size->tasks);
    progress_begin(&progress, "tasks", size->tasks);
    for (unsigned long long i = 0; fine && i < size->tasks; i++) {
        snprintf(body, sizeof body, "{\"task\":%llu}", i * 7919 % size->tasks);
        fine = spend(meter, request, body, size);
        progress_show(&progress, i);
    }
    if (fine && progress.is_drawn) progress_end(&progress, "done", size->tasks);
    return fine;
}

/* As the service counts a number's bytes: one for two digits, and one; zeros at its end are not kept. */
static unsigned number_bytes(unsigned long long number)
{
    unsigned digits = 0;
    while (number && number % 10 == 0) number /= 10;
    for (; number; number /= 10) digits++;
    return (digits + 1) / 2 + 1;
}

static void reckon_size(struct size *size)
{
    unsigned long long bytes = SET_ITEM_BYTES;
    size->is_reckoned = true;
    for (unsigned long long i = 0; i < size->tasks; i++) {
        bytes += number_bytes(i);
        size->largest = (double)((bytes + UNIT_BYTES - 1) / UNIT_BYTES);
        size->writes += size->largest;
    }
    size->calls = (double)size->tasks;
}

/* ---- all of them ---- */

static bool read_sizes(const struct arguments *arguments, unsigned long long most, struct size *sizes,
                       size_t *count)
{
    const char *at = argument_text(arguments, "tasks");
    if (!at) at = default_sizes;
    for (*count = 0; *count < SIZES_MOST; at++) {
        size_t len = strcspn(at, ",");
        unsigned long long tasks = 0;
        if (!slice_to_u64((struct slice){at, len}, most, &tasks) || !tasks) {
            complain_of_usage(arguments, "--tasks should be numbers from 1 to %llu, with commas", most);
            return false;
        }
        sizes[(*count)++] = (struct size){.tasks = tasks};
        at += len;
        if (!*at) return true;
    }
    complain_of_usage(arguments, "--tasks takes at most %d numbers", SIZES_MOST);
    return false;
}

static void print_size(struct listing *listing, const char *layout, const struct size *size)
{
    struct buf json = {0};
    struct arena *arena = &listing->arena;
    double tasks = (double)size->tasks, dollars = size->writes * PRICE_WRITES + size->reads * PRICE_READS;
    buf_printf(&json, "{\"layout\":\"%s\",\"tasks\":%llu,\"writeUnitsPerTask\":", layout, size->tasks);
    json_put_double(&json, size->writes / tasks);
    buf_text(&json, ",\"readUnitsPerTask\":");
    json_put_double(&json, size->reads / tasks);
    buf_text(&json, ",\"largestCall\":");
    json_put_double(&json, size->largest);
    buf_text(&json, ",\"callsPerTask\":");
    json_put_double(&json, size->calls / tasks);
    buf_text(&json, ",\"dollars\":");
    json_put_double(&json, dollars / 1e6);
    buf_printf(&json, ",\"measured\":%s}", size->is_reckoned ? "false" : "true");
    struct slice *row = listing_row(listing, buf_view(&json));
    if (row) {
        row[0] = slice_of(layout);
        row[1] = arena_printf(arena, "%llu", size->tasks);
        row[2] = arena_printf(arena, "%.4f", size->writes / tasks);
        row[3] = arena_printf(arena, "%.4f", size->reads / tasks);
        row[4] = number_shown(arena, size->largest);
        row[5] = arena_printf(arena, "%.6f", dollars / 1e6);
        row[6] = size->is_reckoned ? SLICE("reckoned") : SLICE("measured");
    }
    buf_free(&json);
}

int cost_of_job(struct meter *meter, const struct arguments *arguments)
{
    static const char *const head[] = {
        "Layout", "Tasks", "Write units a task", "Read units a task", "Largest call", "$ a job", ""};
    const char *given = argument_text(arguments, "layout"), *layout = given ? given : "tree";
    bool is_set = strcmp(layout, "set") == 0, fine = true;
    struct size sizes[SIZES_MOST];
    struct listing listing;
    size_t count;
    if (!is_set && strcmp(layout, "tree") != 0)
        return complain_of_usage(arguments, "--layout should be tree or set");
    if (!read_sizes(arguments, is_set ? SET_TASKS_MOST : TASKS_MOST, sizes, &count)) return EXIT_USAGE;
    listing_begin(&listing, form_listed(arguments), head, sizeof head / sizeof *head);
    for (size_t i = 0; fine && i < count; i++) {
        if (is_set && sizes[i].tasks > SET_MEASURED_MOST)
            reckon_size(&sizes[i]);
        else
            fine = measure_size(meter, layout, &sizes[i]);
        if (fine) print_size(&listing, layout, &sizes[i]);
    }
    listing_end(&listing, "sizes");
    return fine ? EXIT_FINE : EXIT_FAULT;
}
