/* The mappings among what is real: func and the consumer. */
#include "trigger/mapping.h"

static bool resolve(struct trigger *trigger, struct slice function, struct arena *arena, struct slice *arn)
{
    struct slice name;
    return func_resolve(trigger->options.func, function, arena, arn, &name);
}

static const char *fault_of_destination(struct trigger *trigger, struct slice destination)
{
    return destination_fault(trigger->options.func, destination);
}

static void set(struct trigger *trigger, struct mapping *mapping)
{
    consumer_set(trigger->consumer, mapping);
}

static void remove_mapping(struct trigger *trigger, struct slice id)
{
    consumer_remove(trigger->consumer, id);
}

struct mappings *mappings_open(struct trigger *trigger, char *error, size_t error_len)
{
    static const struct mapping_world real = {resolve, fault_of_destination, set, remove_mapping};
    return mappings_new(trigger, &real, error, error_len);
}
