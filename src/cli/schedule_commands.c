/* quipu schedule: what runs when. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "calendar/calendar.h"
#include "cli/listing.h"
#include "cli/service.h"

#define NEXT_DEFAULT 5
#define NEXT_MAX     10000

static const char path[] = "/schedules/%s";

/* ---- adding ---- */

static const char *missed_of(const char *text)
{
    if (strcmp(text, "all") == 0) return "ALL";
    if (strcmp(text, "latest") == 0) return "LATEST";
    return strcmp(text, "skip") == 0 ? "SKIP" : NULL;
}

/* A moment of a flag as seconds since 1970; false after complaining. */
static bool put_moment(struct buf *out, const struct arguments *arguments, const char *flag,
                       const char *member)
{
    const char *text = argument_text(arguments, flag);
    int64_t ms;
    if (!text) return true;
    if (!moment_parse(slice_of(text), &ms) || ms < 0)
        return complain_of_usage(arguments, "--%s should be a time like 2026-11-15T09:00:00Z, not '%s'", flag,
                                 text),
               false;
    put_name(out, member);
    buf_printf(out, "%lld.%03d", (long long)(ms / 1000), (int)(ms % 1000));
    return true;
}

static bool put_input(struct buf *out, const struct arguments *arguments, struct arena *arena)
{
    const char *input = argument_text(arguments, "input"), *fault;
    if (!input) return true;
    if (!strstr(input, "<aws.scheduler.") && !node_parse(arena, slice_of(input), &fault))
        return complain_of_usage(arguments, "--input should be JSON: %s", fault), false;
    put_string_member(out, "Input", slice_of(input));
    return true;
}

/* A queue's name, or its ARN; region and account mean nothing here. */
static void put_dead_letters(struct buf *out, const struct arguments *arguments, struct arena *arena)
{
    const char *queue = argument_text(arguments, "on-failure");
    if (!queue) return;
    struct slice arn = slice_of(queue);
    if (!strchr(queue, ':')) arn = arena_printf(arena, "arn:aws:sqs:us-east-1:000000000000:%s", queue);
    put_name(out, "DeadLetterConfig");
    buf_byte(out, '{');
    put_string_member(out, "Arn", arn);
    buf_byte(out, '}');
}

/* "10m" as whole minutes. */
static bool put_window(struct buf *out, const struct arguments *arguments)
{
    const char *text = argument_text(arguments, "window");
    int64_t ms = 0;
    if (text && (!duration_parse(slice_of(text), INT64_C(86400000), &ms) || ms % 60000 || !ms))
        return complain_of_usage(arguments,
                                 "--window should be whole minutes up to a day, like 15m, not '%s'", text),
               false;
    if (text)
        buf_printf(out, ",\"FlexibleTimeWindow\":{\"Mode\":\"FLEXIBLE\",\"MaximumWindowInMinutes\":%lld}",
                   (long long)(ms / 60000));
    else
        buf_text(out, ",\"FlexibleTimeWindow\":{\"Mode\":\"OFF\"}");
    return true;
}

/* The body; false after complaining. */
static bool put_schedule(struct buf *out, const struct arguments *arguments, struct arena *arena)
{
    const char *missed = argument_text(arguments, "missed"), *zone = argument_text(arguments, "zone");
    const char *description = argument_text(arguments, "description");
    if (missed && !missed_of(missed))
        return complain_of_usage(arguments, "--missed should be all, latest or skip, not '%s'", missed),
               false;
    buf_byte(out, '{');
    put_string_member(out, "ScheduleExpression", slice_of(argument_word(arguments, 1)));
    if (zone) put_string_member(out, "ScheduleExpressionTimezone", slice_of(zone));
    if (missed) put_string_member(out, "MissedRuns", slice_of(missed_of(missed)));
    if (description) put_string_member(out, "Description", slice_of(description));
    if (argument_given(arguments, "once")) put_string_member(out, "ActionAfterCompletion", SLICE("DELETE"));
    if (!put_moment(out, arguments, "from", "StartDate") || !put_moment(out, arguments, "until", "EndDate") ||
        !put_window(out, arguments))
        return false;
    buf_text(out, ",\"Target\":{");
    put_string_member(out, "Arn", slice_of(argument_word(arguments, 2)));
    put_dead_letters(out, arguments, arena);
    bool fine = put_input(out, arguments, arena);
    buf_text(out, "}}");
    return fine;
}

/* A schedule may be made before its function; but more often its name is mistyped. */
static void warn_of_function(struct service *service, struct arena *arena, const char *function)
{
    if (service_lacks_function(service, arena, function))
        fprintf(stderr, "quipu: there is no function '%s' yet; until there is, its runs go nowhere\n",
                function);
}

/* A time that is past, or an end before the first run: more often mistyped than meant. */
static void warn_of_never(struct service *service, struct arena *arena, const char *name, const char *where)
{
    struct response response;
    struct request request = request_to("scheduler", "GET", where, NULL);
    if (!service_ask(service, arena, &request, &response) || response.error) return;
    if (!node_is(response.json, "State", "ENABLED") || node_number(response.json, "NextDueTime") >= 0) return;
    fprintf(stderr, "quipu: %s will never run: what its expression names is past\n", name);
}

static int add_on(struct service *service, struct arena *arena, const struct arguments *arguments,
                  const struct buf *body)
{
    const char *name = argument_word(arguments, 0), *where = path_of(arena, path, name, NULL);
    struct response response;
    struct request request = request_to("scheduler", "POST", where, body);
    if (!service_ask(service, arena, &request, &response)) return EXIT_FAULT;
    bool exists = response_is(&response, "ConflictException");
    request.method = "PUT";
    if (exists && !service_ask(service, arena, &request, &response)) return EXIT_FAULT;
    if (response.error) return service_complain(&response);
    warn_of_function(service, arena, argument_word(arguments, 2));
    warn_of_never(service, arena, name, where);
    if (errors_are_terminal()) fprintf(stderr, "%s %s.\n", exists ? "Changed" : "Added", name);
    return EXIT_FINE;
}

static int add(const struct arguments *arguments)
{
    struct service service;
    struct arena arena = {0};
    struct buf body = {0};
    int status = EXIT_USAGE;
    if (put_schedule(&body, arguments, &arena)) {
        status = EXIT_FAULT;
        if (service_open(&service, arguments)) {
            status = add_on(&service, &arena, arguments, &body);
            service_close(&service);
        }
    }
    buf_free(&body);
    arena_free(&arena);
    return status;
}

/* ---- listing and showing ---- */

static int list(const struct arguments *arguments)
{
    static const char *const head[] = {"NAME", "EXPRESSION", "ZONE", "FUNCTION", "STATE", "NEXT"};
    struct service service;
    struct arena arena = {0};
    struct listing listing;
    size_t count;
    if (!service_open(&service, arguments)) return EXIT_FAULT;
    const struct node **schedules = service_list(&service, &arena,
                                                 request_to("scheduler", "GET", "/schedules", NULL),
                                                 "Schedules", "NextToken", "NextToken", &count);
    if (schedules) {
        listing_begin(&listing, form_listed(arguments), head, sizeof head / sizeof *head);
        for (size_t i = 0; i < count; i++) {
            const struct node *schedule = schedules[i];
            struct slice *row = listing_row(&listing, schedule->source);
            if (!row) continue;
            row[0] = node_text(schedule, "Name");
            row[1] = node_text(schedule, "ScheduleExpression");
            row[2] = node_text(schedule, "ScheduleExpressionTimezone");
            row[3] = after_last(node_text(node_member(schedule, "Target"), "Arn"), ':');
            row[4] = node_is(schedule, "State", "ENABLED") ? SLICE("on") : SLICE("paused");
            row[5] = time_shown(&arena, node_number(schedule, "NextDueTime"));
        }
        listing_end(&listing, "schedules");
    }
    arena_free(&arena);
    service_close(&service);
    return schedules ? EXIT_FINE : EXIT_FAULT;
}

/* The schedule that the first word names; NULL after complaining. */
static const struct node *find(struct service *service, struct arena *arena,
                               const struct arguments *arguments)
{
    struct response response;
    struct request request = request_to("scheduler", "GET",
                                        path_of(arena, path, argument_word(arguments, 0), NULL), NULL);
    return service_call(service, arena, &request, &response) ? response.json : NULL;
}

static void show_words(struct arena *arena, const struct node *schedule)
{
    const struct node *target = node_member(schedule, "Target"),
                      *window = node_member(schedule, "FlexibleTimeWindow");
    struct slice minutes = node_text(window, "MaximumWindowInMinutes");
    const struct pair pairs[] = {
        {"name", node_text(schedule, "Name")},
        {"description", node_text(schedule, "Description")},
        {"expression", node_text(schedule, "ScheduleExpression")},
        {"zone", node_text(schedule, "ScheduleExpressionTimezone")},
        {"function", after_last(node_text(target, "Arn"), ':')},
        {"input", node_text(target, "Input")},
        {"state", node_is(schedule, "State", "ENABLED") ? SLICE("on") : SLICE("paused")},
        {"next", time_shown(arena, node_number(schedule, "NextDueTime"))},
        {"missed runs", node_text(schedule, "MissedRuns")},
        {"window", minutes.len ? arena_printf(arena, "%.*s minutes", SLICE_ARG(minutes)) : SLICE("")},
        {"from", node_member(schedule, "StartDate") ? time_shown(arena, node_number(schedule, "StartDate"))
                                                    : SLICE("")},
        {"until",
         node_member(schedule, "EndDate") ? time_shown(arena, node_number(schedule, "EndDate")) : SLICE("")},
        {"afterwards", node_is(schedule, "ActionAfterCompletion", "DELETE") ? SLICE("deleted") : SLICE("")},
        {"dead letters", node_text(node_member(target, "DeadLetterConfig"), "Arn")},
        {"made", time_shown(arena, node_number(schedule, "CreationDate"))},
    };
    pairs_print(pairs, sizeof pairs / sizeof *pairs);
}

static int show(const struct arguments *arguments)
{
    struct service service;
    struct arena arena = {0};
    if (!service_open(&service, arguments)) return EXIT_FAULT;
    const struct node *schedule = find(&service, &arena, arguments);
    if (schedule && form_listed(arguments) == FORM_TABLE)
        show_words(&arena, schedule);
    else if (schedule)
        json_print(schedule->source);
    arena_free(&arena);
    service_close(&service);
    return schedule ? EXIT_FINE : EXIT_FAULT;
}

/* ---- due times ---- */

/* "2026-11-15T09:00:00+01:00" on the wall of the zone. */
static void print_due(struct arena *arena, const struct zone *zone, int64_t due_ms)
{
    int32_t offset_s = zone_offset_s(zone, due_ms), minutes = abs(offset_s) / 60;
    struct slice local = moment_text(arena, due_ms + (int64_t)offset_s * 1000);
    printf("%.19s", local.data);
    if (offset_s)
        printf("%c%02d:%02d\n", offset_s < 0 ? '-' : '+', minutes / 60, minutes % 60);
    else
        puts("Z");
}

static int print_next(struct arena *arena, const struct node *schedule, unsigned long long count)
{
    char error[512];
    double next_s = node_number(schedule, "NextDueTime"), end_s = node_number(schedule, "EndDate");
    struct slice name = node_text(schedule, "Name");
    if (next_s < 0) {
        fprintf(stderr, "quipu: %.*s is %s\n", SLICE_ARG(name),
                node_is(schedule, "State", "ENABLED") ? "at its end" : "paused");
        return EXIT_FINE;
    }
    int64_t due_ms = (int64_t)(next_s * 1000 + 0.5),
            end_ms = end_s < 0 ? CALENDAR_NEVER : (int64_t)(end_s * 1000);
    struct zone *zone = zone_load(arena, node_text(schedule, "ScheduleExpressionTimezone"), error,
                                  sizeof error);
    if (!zone) return complain("%s", error);
    struct timetable *timetable = timetable_parse(arena, node_text(schedule, "ScheduleExpression"), zone,
                                                  due_ms, error, sizeof error);
    if (!timetable) return complain("%s", error);
    for (unsigned long long i = 0; i < count && due_ms != CALENDAR_NEVER && due_ms <= end_ms; i++) {
        print_due(arena, zone, due_ms);
        due_ms = timetable_next(timetable, due_ms);
    }
    return EXIT_FINE;
}

static int next(const struct arguments *arguments)
{
    struct service service;
    struct arena arena = {0};
    unsigned long long count = NEXT_DEFAULT;
    const char *text = argument_word(arguments, 1);
    if (text && (!slice_to_u64(slice_of(text), NEXT_MAX, &count) || !count))
        return complain_of_usage(arguments, "'%s' should be a number from 1 to %d", text, NEXT_MAX);
    if (!service_open(&service, arguments)) return EXIT_FAULT;
    const struct node *schedule = find(&service, &arena, arguments);
    int status = schedule ? print_next(&arena, schedule, count) : EXIT_FAULT;
    arena_free(&arena);
    service_close(&service);
    return status;
}

/* ---- pausing and removing ---- */

/* All that an update must say again, with another state. */
static void put_again(struct buf *out, const struct node *schedule, const char *state)
{
    static const char *const members[] = {"ScheduleExpression",
                                          "ScheduleExpressionTimezone",
                                          "Description",
                                          "StartDate",
                                          "EndDate",
                                          "FlexibleTimeWindow",
                                          "Target",
                                          "KmsKeyArn",
                                          "ActionAfterCompletion",
                                          "MissedRuns"};
    buf_byte(out, '{');
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const struct node *member = node_member(schedule, members[i]);
        if (member) put_raw_member(out, members[i], member->source);
    }
    put_string_member(out, "State", slice_of(state));
    buf_byte(out, '}');
}

static int set_state(const struct arguments *arguments, const char *state)
{
    struct service service;
    struct arena arena = {0};
    struct buf body = {0};
    struct response response;
    if (!service_open(&service, arguments)) return EXIT_FAULT;
    const struct node *schedule = find(&service, &arena, arguments);
    bool fine = schedule != NULL;
    if (fine) {
        put_again(&body, schedule, state);
        struct request request = request_to("scheduler", "PUT",
                                            path_of(&arena, path, argument_word(arguments, 0), NULL), &body);
        fine = service_call(&service, &arena, &request, &response);
    }
    buf_free(&body);
    arena_free(&arena);
    service_close(&service);
    return fine ? EXIT_FINE : EXIT_FAULT;
}

static int pause_schedule(const struct arguments *arguments)
{
    return set_state(arguments, "DISABLED");
}

static int resume_schedule(const struct arguments *arguments)
{
    return set_state(arguments, "ENABLED");
}

static int remove_schedules(const struct arguments *arguments)
{
    return service_remove_words(arguments, "scheduler", path);
}

/* ---- the rows ---- */

static const struct flag form_flags[] = {LIST_FLAGS};
static const struct flag add_flags[] = {
    {"zone", "NAME", "time zone of the expression, like Europe/Berlin (default: UTC)"},
    {"input", "JSON", "the event; <aws.scheduler.scheduled-time> in it becomes the due time"},
    {"missed", "WHICH", "runs that were missed while no server ran: all, latest or skip\n(default: latest)"},
    {"from", "TIME", "nothing is due before it: 2026-11-15T09:00:00Z"},
    {"until", "TIME", "nothing is due after it"},
    {"window", "DURATION", "spread the runs over so long behind their due times: 15m"},
    {"on-failure", "QUEUE", "where runs that cannot be delivered are told of"},
    {"once", NULL, "delete the schedule after its last run"},
    {"description", "TEXT", "what it is for"},
};

static const struct command children[] = {
    {.name = "add",
     .summary = "run a function at certain times",
     .usage = "NAME EXPRESSION FUNCTION [flags]",
     .about =
         "Runs a function at the times that an expression names, once for each, also across restarts.\n"
         "A schedule with this name is changed. Expressions are those of EventBridge Scheduler, or a line\n"
         "of a crontab:\n\n"
         "  rate(5 minutes)              at once, and then every five minutes\n"
         "  cron(0 9 ? * MON-FRI *)      minute hour day month weekday year\n"
         "  at(2026-11-15T09:00:00)      once\n"
         "  '0 9 * * 1-5'                minute hour day month weekday",
     FLAGS(add_flags),
     .examples =
         "  quipu schedule add tidy 'rate(1 hour)' cleanup\n"
         "  quipu schedule add report 'cron(0 9 ? * MON *)' report --zone Europe/Berlin\n"
         "  quipu schedule add hello 'at(2026-12-24T18:00:00)' greet --once --input '{\"to\":\"all\"}'",
     .works_on_server = true,
     .words_min = 3,
     .words_max = 3,
     .run = add},
    {.name = "ls",
     .summary = "list the schedules",
     .usage = "[flags]",
     .about = "Lists the schedules with the time at which each is due next.",
     FLAGS(form_flags),
     .works_on_server = true,
     .run = list},
    {.name = "show",
     .summary = "all about a schedule",
     .usage = "NAME [flags]",
     .about = "Tells everything about a schedule: readable on a terminal, GetSchedule's JSON otherwise.",
     FLAGS(form_flags),
     .works_on_server = true,
     .words_min = 1,
     .words_max = 1,
     .run = show},
    {.name = "next",
     .summary = "the next due times",
     .usage = "NAME [N] [flags]",
     .about = "Prints the next due times (5), a line for each, by the clock of the schedule's zone.",
     .works_on_server = true,
     .words_min = 1,
     .words_max = 2,
     .run = next},
    {.name = "pause",
     .summary = "switch a schedule off",
     .usage = "NAME [flags]",
     .about = "Switches a schedule off. What falls due meanwhile is not made up for.",
     .works_on_server = true,
     .words_min = 1,
     .words_max = 1,
     .run = pause_schedule},
    {.name = "resume",
     .summary = "switch it on again",
     .usage = "NAME [flags]",
     .about = "Switches a schedule on again.",
     .works_on_server = true,
     .words_min = 1,
     .words_max = 1,
     .run = resume_schedule},
    {.name = "rm",
     .summary = "remove schedules",
     .usage = "NAME... [flags]",
     .about = "Removes schedules.",
     .works_on_server = true,
     .words_min = 1,
     .words_max = WORDS_MANY,
     .run = remove_schedules},
};

const struct command command_schedule = {.name = "schedule",
                                         .summary = "run functions at certain times",
                                         .usage = "add|ls|show|next|pause|resume|rm ...",
                                         .about = "Schedules call functions of a server at certain times.",
                                         .children = children,
                                         .child_count = sizeof children / sizeof *children};
