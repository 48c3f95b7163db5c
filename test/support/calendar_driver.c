/* Asks the room `calendar` from outside: lines of tab-separated words in, an answer for each out.
 *
 *     due ZONE EXPRESSION AFTER_S COUNT     the next due times, in seconds, or "never"
 *     offset ZONE TIME_S                    seconds east of Greenwich */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "calendar/calendar.h"

static void answer_due(struct arena *arena, const struct zone *zone, char *const *words)
{
    char error[512];
    struct timetable *timetable = timetable_parse(arena, slice_of(words[2]), zone, 0, error, sizeof error);
    if (!timetable) {
        printf("%s", error);
        return;
    }
    int64_t at = atoll(words[3]) * 1000;
    for (int i = 0; i < atoi(words[4]); i++) {
        at = timetable_next(timetable, at);
        if (at == CALENDAR_NEVER) {
            printf("%snever", i ? " " : "");
            return;
        }
        printf("%s%" PRId64 "%s", i ? " " : "", at / 1000, timetable_last(timetable, at) == at ? "" : "?");
    }
}

static void answer(char *line)
{
    struct arena arena = {0};
    char *words[5] = {0}, error[256];
    for (int i = 0; i < 5; i++) words[i] = strsep(&line, "\t\n");
    const struct zone *zone = zone_load(&arena, slice_of(words[1]), error, sizeof error);
    if (!zone)
        printf("%s", error);
    else if (strcmp(words[0], "due") == 0)
        answer_due(&arena, zone, words);
    else
        printf("%d", zone_offset_s(zone, atoll(words[2]) * 1000));
    puts("");
    arena_free(&arena);
}

int main(void)
{
    char line[1024];
    while (fgets(line, sizeof line, stdin)) answer(line);
    return 0;
}
