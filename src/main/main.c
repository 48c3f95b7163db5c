/* quipu: all its commands in one list. */
#include <quipu.h>
#include <stdlib.h>
#include <string.h>

#include "main/main.h"

static const struct command *const commands[] = {
    &command_serve,   &command_table,    &command_get,      &command_put,        &command_update,
    &command_delete,  &command_query,    &command_scan,     &command_sql,        &command_tail,     &command_top,
    &command_dump,    &command_load,     &command_copy,     &command_counter,    &command_job,
    &command_group,   &command_period,   &command_work,     &command_doc,        &command_lease,
    &command_once,    &command_limit,    &command_history,  &command_log,        &command_board,
    &command_drive,   &command_cost,     &command_function, &command_route,      &command_layer,
    &command_trigger, &command_schedule, &command_queue,    &command_deploy,     &command_backup,
    &command_restore, &command_check,    &command_salvage,  &command_show,       &command_completion,
};

static const struct program program = {
    .title = "Quipu " QUIPU_VERSION ": DynamoDB, the functions that it starts, and coordination in one call.",
    .first_steps = "First steps:\n"
                   "  quipu serve                     # http://127.0.0.1:8000, data in ./quipu-data\n"
                   "  quipu table create Music Artist:S Song:S\n"
                   "  quipu put Music Artist='Nina Simone' Song=Sinnerman Year:=1965\n"
                   "  quipu query Music 'Nina Simone'\n"
                   "  quipu job put pages --total 500 && quipu job done pages 17\n"
                   "  aws dynamodb list-tables --endpoint-url http://127.0.0.1:8000\n",
    .commands = commands,
    .count = sizeof commands / sizeof *commands,
};

void main_put_help(struct buf *out)
{
    program_put_help(&program, out);
}

/* Other processes of the user can read the environment that a process was started with, as long as it runs. Keys move
 * from there to memory of our own before any other process is made. */
static void hide_keys(void)
{
    static const char *const names[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *given = getenv(names[i]), *copy = given ? strdup(given) : NULL;
        if (!copy) continue;
        size_t len = strlen(given);
        if (setenv(names[i], copy, 1) == 0)
            explicit_bzero(given, len); /* getenv finds the copy from now on */
        explicit_bzero(copy, len);
        free(copy);
    }
}

int main(int argc, char **argv)
{
    hide_keys();
    return program_run(&program, argc, argv);
}
