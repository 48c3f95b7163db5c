/* What the files of this room share. */
#ifndef TEMPLATE_INTERNAL_H
#define TEMPLATE_INTERNAL_H

#include "template/template.h"

/* One text that is read. */
struct reading {
    struct arena *arena;
    struct slice text;
    const char *name; /* of the file */
    struct template_notes *notes;
    char *error; /* TEMPLATE_ERROR_BYTES; empty while all is well */
};

/* Writes the error unless there is one already; always false. */
bool reading_fail(struct reading *reading, size_t line, size_t column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

void note_put(struct arena *arena, struct template_notes *notes, const struct node *where, const char *format,
              ...) __attribute__((format(printf, 4, 5)));

const struct node *yaml_read(struct reading *reading);
/* Removes all but the last member of each name, with a note for each where that is told. */
void members_settle(struct reading *reading, struct node *object, bool is_told);

#endif
