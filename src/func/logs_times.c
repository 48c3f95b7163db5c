/* When what stands in a log was written: a file of lines "POSITION TIME" beside it, one for each write, in the order
 * of positions. A line that was cut off by a crash is passed over. Called by logs.c under its lock of files. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "func/logs_times.h"

void times_append(const char *path, uint64_t position, int64_t time_ms)
{
    char line[64];
    int len = snprintf(line, sizeof line, "%llu %lld\n", (unsigned long long)position, (long long)time_ms);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) return; /* what cannot be written is told by the log itself */
    ssize_t written = write(fd, line, (size_t)len);
    (void)written;
    close(fd);
}

struct log_time *times_read(const char *path, struct arena *arena, uint32_t *count)
{
    struct log_time *times = NULL;
    uint32_t room = 0;
    char line[64];
    unsigned long long position;
    long long time_ms;
    *count = 0;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%llu %lld", &position, &time_ms) != 2 || !strchr(line, '\n')) continue;
        if (*count && times[*count - 1].position >= position) continue;
        if (*count == room) {
            struct log_time *more = arena_array(arena, struct log_time, room ? room * 2 : 256);
            if (*count) memcpy(more, times, *count * sizeof *more);
            times = more;
            room = room ? room * 2 : 256;
        }
        times[(*count)++] = (struct log_time){position, time_ms};
    }
    if (file) fclose(file);
    return times;
}

/* Whole or not at all. */
void times_cut(const char *path, uint64_t first)
{
    struct arena arena = {0};
    uint32_t count;
    struct log_time *times = times_read(path, &arena, &count);
    const char *fresh = arena_printf(&arena, "%s.new", path).data;
    FILE *file = fopen(fresh, "we");
    bool fine = file != NULL;
    for (uint32_t i = 0; i < count && file; i++) {
        bool is_needed = i + 1 == count || times[i + 1].position > first;
        if (is_needed)
            fine &= fprintf(file, "%llu %lld\n", (unsigned long long)times[i].position,
                            (long long)times[i].time_ms) > 0;
    }
    if (file) fine &= fclose(file) == 0;
    if (!fine || rename(fresh, path) != 0) unlink(fresh);
    arena_free(&arena);
}
