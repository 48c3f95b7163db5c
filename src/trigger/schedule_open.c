/* Schedules in the real world: the door and the functions of the trigger that they belong to. */
#include "base/log.h"
#include "trigger/schedule.h"

static int real_call(void *self, struct slice operation, struct slice request, struct buf *reply)
{
    struct trigger *trigger = self;
    /* Without transactions there is no table, and all else finds none. */
    return slice_equal(operation, SLICE("CreateTable"))
               ? dynamo_call_transacting(trigger->options.dynamo, operation, request, reply)
               : dynamo_call(trigger->options.dynamo, operation, request, reply);
}

static bool real_resolve(void *self, struct slice function, struct arena *arena)
{
    struct trigger *trigger = self;
    struct slice arn, name;
    return func_resolve(trigger->options.func, function, arena, &arn, &name);
}

static unsigned real_queue_put(void *self, struct slice function, struct slice payload, struct slice id,
                               struct buf *members)
{
    struct trigger *trigger = self;
    return func_queue_put(trigger->options.func, function, payload, SLICE_NONE, id, members);
}

static bool real_dead_letter(void *self, struct slice destination, struct slice document, struct slice id,
                             const struct func_call *call, struct buf *members, unsigned *count)
{
    struct trigger *trigger = self;
    const char *fault = destination_fault(trigger->options.func, destination);
    if (fault) log_line("schedules: a dead letter cannot go to %.*s: %s", SLICE_ARG(destination), fault);
    return !fault && destination_put(trigger->options.func, destination, document, id, call, members, count);
}

static void real_wake(void *self)
{
    struct trigger *trigger = self;
    func_queue_wake(trigger->options.func);
}

struct schedules *schedules_open(struct trigger *trigger, char *error, size_t error_len)
{
    const struct schedule_doors doors = {.self = trigger,
                                         .call = real_call,
                                         .resolve = real_resolve,
                                         .queue_put = real_queue_put,
                                         .dead_letter = real_dead_letter,
                                         .wake = real_wake};
    return schedules_open_with(trigger, &doors, error, error_len);
}
