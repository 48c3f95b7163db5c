/* One line from a person at a terminal: editing, history, completion. */
#ifndef CLI_LINE_EDIT_H
#define CLI_LINE_EDIT_H

#include "base/buf.h"

/* What may stand for the word at the cursor: calls `add` for each. `before`: the line up to the cursor. */
typedef void (*line_completer)(void *context, struct slice before, struct slice word,
                               void (*add)(void *list, struct slice candidate), void *list);

struct line_edit {
    char **history;
    size_t count, capacity;
    line_completer complete; /* NULL: none */
    void *context;
};

enum line_result { LINE_READ, LINE_GIVEN_UP /* Ctrl-C */, LINE_END };

/* Reads a line from the terminal, which standard input and output are; without its end. */
enum line_result line_read(struct line_edit *edit, const char *prompt, struct buf *out);
/* Lines of the file become the history; none where it cannot be read. */
void line_history_load(struct line_edit *edit, const char *path);
void line_history_add(struct line_edit *edit, struct slice line);
/* Appends the line to the file, readable for its owner only. What cannot be written is left. */
void line_history_save(const char *path, struct slice line);
void line_edit_free(struct line_edit *edit);

#endif
