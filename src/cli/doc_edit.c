/* quipu doc edit: a document in the editor, written back if nobody has changed it meanwhile. If somebody has,
 * the editor is opened again with what it is now; the text that could not be written stays in a file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"
#include "cli/operation.h"
#include "cli/special.h"

#define TRIES_MOST 20
#define INDENT     2

struct edit {
    const struct arguments *arguments;
    struct place place;
    const char *collection, *key;
    char file[300];   /* its name; empty: none */
    struct buf text;  /* as the editor was given it */
    const char *etag; /* of what it was made of; NULL: there was no document. In the arena of the try */
};

/* ---- reading ---- */

/* JSON in lines, as people read it. */
static void put_indented(struct buf *out, const struct node *node, size_t depth)
{
    bool is_object = node->kind == JSON_OBJECT;
    if ((!is_object && node->kind != JSON_ARRAY) || !node->first) {
        buf_slice(out, node->source);
        return;
    }
    buf_byte(out, is_object ? '{' : '[');
    for (const struct node *child = node->first; child; child = child->next) {
        buf_printf(out, "%s\n%*s", child == node->first ? "" : ",", (int)((depth + 1) * INDENT), "");
        if (is_object) {
            json_put_string(out, child->name);
            buf_text(out, ": ");
        }
        put_indented(out, child, depth + 1);
    }
    buf_printf(out, "\n%*s%c", (int)(depth * INDENT), "", is_object ? '}' : ']');
}

/* True: the text and the version are there; a missing document begins empty. */
static bool edit_load(struct edit *edit, struct arena *arena, int *status)
{
    struct inquiry inquiry = {.method = "GET"};
    inquiry_path(&inquiry, "/v1/documents/%s/%s", edit->collection, edit->key);
    struct heard heard = inquiry_run(&edit->place, arena, &inquiry);
    inquiry_free(&inquiry);
    edit->text.len = 0;
    edit->etag = heard.etag;
    if (heard.status == 404) {
        buf_text(&edit->text, "{}");
    } else if (heard.status == 200 && heard.json) {
        put_indented(&edit->text, heard.json, 0);
    } else {
        *status = heard_complain(edit->arguments, &edit->place, &heard);
        return false;
    }
    buf_byte(&edit->text, '\n');
    return true;
}

/* ---- editing ---- */

static bool file_write(struct edit *edit)
{
    const char *folder = getenv("TMPDIR");
    snprintf(edit->file, sizeof edit->file, "%.200s/quipu-edit-XXXXXX.json",
             folder && *folder ? folder : "/tmp");
    int file = mkstemps(edit->file, 5);
    if (file < 0) {
        complain("%s cannot be written: %s", edit->file, strerror(errno));
        edit->file[0] = '\0';
        return false;
    }
    bool fine = write(file, edit->text.data, edit->text.len) == (ssize_t)edit->text.len;
    close(file);
    if (!fine) complain("%s cannot be written", edit->file);
    return fine;
}

/* $VISUAL or $EDITOR may have arguments of its own, so a shell takes it apart, as git's does. */
static bool editor_run(const char *file)
{
    const char *editor = getenv("VISUAL");
    if (!editor || !*editor) editor = getenv("EDITOR");
    if (!editor || !*editor) editor = "vi";
    struct arena arena = {0};
    const char *line = arena_printf(&arena, "%s \"$1\"", editor).data;
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", line, "sh", file, (char *)NULL);
        _exit(127);
    }
    int ended = -1;
    while (pid > 0 && waitpid(pid, &ended, 0) < 0 && errno == EINTR) {
    }
    arena_free(&arena);
    if (pid > 0 && WIFEXITED(ended) && WEXITSTATUS(ended) == 0) return true;
    complain("the editor '%s' failed", editor);
    return false;
}

/* ---- writing ---- */

enum outcome { EDIT_DONE, EDIT_SAME, EDIT_CONFLICT, EDIT_FAILED };

static enum outcome edit_save(struct edit *edit, struct arena *arena, struct slice text, int *status)
{
    struct inquiry inquiry = {.method = "PUT"};
    inquiry_path(&inquiry, "/v1/documents/%s/%s", edit->collection, edit->key);
    if (edit->etag)
        buf_printf(&inquiry.headers, "If-Match: %s\n", edit->etag);
    else
        buf_text(&inquiry.headers, "If-None-Match: *\n");
    buf_slice(&inquiry.body, text);
    struct heard heard = inquiry_run(&edit->place, arena, &inquiry);
    inquiry_free(&inquiry);
    *status = heard_status(&heard);
    if (heard.status == 412) return EDIT_CONFLICT;
    if (*status != EXIT_FINE) {
        heard_complain(edit->arguments, &edit->place, &heard);
        return EDIT_FAILED;
    }
    heard_print(edit->arguments, &heard, SLICE("version"));
    return EDIT_DONE;
}

static enum outcome edit_once(struct edit *edit, struct arena *arena, int *status)
{
    struct buf text = {0};
    const char *fault;
    enum outcome outcome = EDIT_FAILED;
    *status = EXIT_FAULT;
    if (!edit_load(edit, arena, status) || !file_write(edit) || !editor_run(edit->file) ||
        !text_read_all(edit->file, &text)) {
        ;
    } else if (slice_equal(buf_view(&text), buf_view(&edit->text)) && edit->etag) {
        outcome = EDIT_SAME;
    } else if (!node_parse(arena, buf_view(&text), &fault)) {
        complain("this is not JSON: %s", fault);
    } else {
        outcome = edit_save(edit, arena, buf_view(&text), status);
    }
    buf_free(&text);
    return outcome;
}

/* A text that was not written is not thrown away. */
static void file_leave(const struct edit *edit, enum outcome outcome)
{
    if (!edit->file[0]) return;
    if (outcome == EDIT_DONE || outcome == EDIT_SAME)
        unlink(edit->file);
    else
        fprintf(stderr, "What you wrote is in %s\n", edit->file);
}

static int edit_run(struct edit *edit)
{
    enum outcome outcome = EDIT_CONFLICT;
    int status = EXIT_LOST;
    for (unsigned try = 0; outcome == EDIT_CONFLICT && try < TRIES_MOST; try++) {
        struct arena arena = {0};
        edit->file[0] = '\0';
        outcome = edit_once(edit, &arena, &status);
        if (outcome == EDIT_CONFLICT)
            fprintf(stderr,
                    "quipu: somebody else has changed the document meanwhile: edit it as it is now\n");
        file_leave(edit, outcome);
        arena_free(&arena);
    }
    if (outcome == EDIT_SAME) {
        fprintf(stderr, "Nothing was changed.\n");
        status = EXIT_FINE;
    }
    buf_free(&edit->text);
    return status;
}

int doc_edit(const struct arguments *arguments)
{
    struct edit edit = {.arguments = arguments,
                        .collection = argument_word(arguments, 0),
                        .key = argument_word(arguments, 1)};
    if (!*edit.collection || !*edit.key)
        return complain_of_usage(arguments, "collection and key must not be empty");
    if (!place_open(&edit.place, arguments, PLACE_MAKE)) return EXIT_FAULT;
    int status = edit_run(&edit);
    place_close(&edit.place);
    return status;
}
