/* The room's front. */
#include "react/react.h"

#include <stdlib.h>

#include "base/fail.h"
#include "react/histories.h"
#include "react/reactions.h"

struct react {
    struct histories *histories;
    struct reactions *reactions;
};

struct react *react_open(const struct react_options *options)
{
    struct react *react = must_zero(1, sizeof *react);
    react->histories = histories_open(options->pattern, options->trigger);
    react->reactions = reactions_open(options);
    return react;
}

void react_stop(struct react *react)
{
    histories_stop(react->histories);
}

void react_close(struct react *react)
{
    histories_close(react->histories);
    reactions_close(react->reactions);
    free(react);
}

void react_put_metrics(struct react *react, struct buf *out)
{
    reactions_put_metrics(react->reactions, out);
}
