/* A line editor as shells have it: arrows, Home, End, Ctrl-A E B F D H K U W L, Tab, and the lines before. A line that
 * is longer than the terminal is wide is shown in part, with the cursor in it. */
#include "cli/line_edit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/limits.h"
#include "cli/layout.h"
#include "cli/print.h"

/* Keys beyond bytes. */
enum { KEY_LEFT = 256, KEY_RIGHT, KEY_UP, KEY_DOWN, KEY_HOME, KEY_END, KEY_DELETE, KEY_OTHER, KEY_NONE };
#define CONTROL(letter) ((letter) - 'A' + 1)
#define ESCAPE          27
#define BACKSPACE       127

struct editing {
    struct line_edit *edit;
    const char *prompt;
    struct buf *line;
    size_t cursor;  /* in bytes */
    size_t place;   /* in the history; its count: the line itself */
    struct buf own; /* the line while another of the history is shown */
};

/* ---- history ---- */

void line_history_add(struct line_edit *edit, struct slice line)
{
    if (!line.len || (edit->count && slice_equal(slice_of(edit->history[edit->count - 1]), line))) return;
    if (edit->count == LIMIT_LINE_HISTORY) {
        free(edit->history[0]);
        memmove(edit->history, edit->history + 1, --edit->count * sizeof *edit->history);
    }
    if (edit->count == edit->capacity) {
        edit->capacity = edit->capacity ? edit->capacity * 2 : 64;
        edit->history = must_realloc(edit->history, edit->capacity * sizeof *edit->history);
    }
    char *copy = strndup(line.data, line.len);
    ensure(copy);
    edit->history[edit->count++] = copy;
}

void line_history_load(struct line_edit *edit, const char *path)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;
    ssize_t len;
    if (!file) return;
    while ((len = getline(&line, &size, file)) > 0) {
        if (line[len - 1] == '\n') len--;
        line_history_add(edit, (struct slice){line, (size_t)len});
    }
    free(line);
    fclose(file);
}

void line_history_save(const char *path, struct slice line)
{
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) return;
    dprintf(file, "%.*s\n", SLICE_ARG(line));
    close(file);
}

void line_edit_free(struct line_edit *edit)
{
    for (size_t i = 0; i < edit->count; i++) free(edit->history[i]);
    free(edit->history);
    *edit = (struct line_edit){0};
}

/* ---- the terminal ---- */

static int read_byte(void)
{
    unsigned char byte;
    ssize_t got;
    do {
        got = read(STDIN_FILENO, &byte, 1);
    } while (got < 0 && errno == EINTR);
    return got == 1 ? byte : -1;
}

/* Behind an escape: "[A", "OH", "[3~", "[1;5C". */
static int read_sequence(void)
{
    int first = read_byte(), number = 0, byte;
    if (first != '[' && first != 'O') return KEY_OTHER;
    while ((byte = read_byte()) >= 0 && ((byte >= '0' && byte <= '9') || byte == ';'))
        if (byte != ';') number = (number * 10 + byte - '0') % 1000;
    switch (byte) {
    case 'A': return KEY_UP;
    case 'B': return KEY_DOWN;
    case 'C': return KEY_RIGHT;
    case 'D': return KEY_LEFT;
    case 'H': return KEY_HOME;
    case 'F': return KEY_END;
    case '~':
        return number == 1 || number == 7   ? KEY_HOME
               : number == 4 || number == 8 ? KEY_END
               : number == 3                ? KEY_DELETE
                                            : KEY_OTHER;
    default: return KEY_OTHER;
    }
}

static int read_key(void)
{
    int byte = read_byte();
    return byte < 0 ? KEY_NONE : byte == ESCAPE ? read_sequence() : byte;
}

/* ---- moving within the line ---- */

static bool is_inner(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80; /* not the first byte of a letter */
}

static size_t letter_before(struct slice line, size_t at)
{
    while (at > 0 && is_inner(line.data[--at]))
        ;
    return at;
}

static size_t letter_behind(struct slice line, size_t at)
{
    if (at < line.len) at++;
    while (at < line.len && is_inner(line.data[at])) at++;
    return at;
}

/* ---- showing ---- */

static void show(const struct editing *editing)
{
    struct slice line = buf_view(editing->line);
    size_t width = terminal_width(), prompt = text_width(slice_of(editing->prompt)), from = 0, to = line.len;
    size_t room = width > prompt + 2 ? width - prompt - 1 : 1;
    while (text_width((struct slice){line.data + from, editing->cursor - from}) > room)
        from = letter_behind(line, from);
    while (to > editing->cursor && text_width((struct slice){line.data + from, to - from}) > room)
        to = letter_before(line, to);
    struct buf out = {0};
    size_t column = prompt + text_width((struct slice){line.data + from, editing->cursor - from});
    buf_printf(&out, "\r%s", editing->prompt);
    buf_put(&out, line.data + from, to - from);
    buf_printf(&out, "\033[K\r\033[%zuC", column ? column : 1);
    fwrite(out.data, 1, out.len, stdout);
    fflush(stdout);
    buf_free(&out);
}

/* ---- changing ---- */

static void cut(struct editing *editing, size_t from, size_t to)
{
    struct buf *line = editing->line;
    if (to <= from) return;
    memmove(line->data + from, line->data + to, line->len - to);
    line->len -= to - from;
    editing->cursor = from;
}

static void insert(struct editing *editing, struct slice text)
{
    struct buf *line = editing->line;
    if (line->len + text.len > LIMIT_LINE_BYTES) return;
    buf_reserve(line, text.len);
    memmove(line->data + editing->cursor + text.len, line->data + editing->cursor,
            line->len - editing->cursor);
    memcpy(line->data + editing->cursor, text.data, text.len);
    line->len += text.len;
    editing->cursor += text.len;
}

static void cut_word(struct editing *editing)
{
    size_t from = editing->cursor;
    while (from > 0 && editing->line->data[from - 1] == ' ') from--;
    while (from > 0 && editing->line->data[from - 1] != ' ') from--;
    cut(editing, from, editing->cursor);
}

static void show_history(struct editing *editing, size_t place)
{
    struct line_edit *edit = editing->edit;
    if (place > edit->count) return;
    if (editing->place == edit->count) {
        editing->own.len = 0;
        buf_slice(&editing->own, buf_view(editing->line));
    }
    editing->place = place;
    editing->line->len = 0;
    buf_slice(editing->line, place == edit->count ? buf_view(&editing->own) : slice_of(edit->history[place]));
    editing->cursor = editing->line->len;
}

/* ---- completion ---- */

struct candidates {
    struct buf texts; /* each with a zero behind it */
    struct slice word;
    struct buf shared; /* what all of them begin with */
    size_t count;
};

static bool begins_alike(struct slice candidate, struct slice word)
{
    return candidate.len >= word.len &&
           slice_equal_ignoring_case((struct slice){candidate.data, word.len}, word);
}

static void add_candidate(void *list, struct slice candidate)
{
    struct candidates *candidates = list;
    struct buf *shared = &candidates->shared;
    if (!begins_alike(candidate, candidates->word)) return;
    if (!candidates->count++) buf_slice(shared, candidate);
    size_t same = 0;
    while (same < shared->len && same < candidate.len && shared->data[same] == candidate.data[same]) same++;
    shared->len = same;
    buf_slice(&candidates->texts, candidate);
    buf_byte(&candidates->texts, 0);
}

static void list_candidates(const struct candidates *candidates)
{
    fputs("\n", stdout);
    for (size_t at = 0; at < candidates->texts.len; at += strlen(candidates->texts.data + at) + 1)
        printf("%s  ", candidates->texts.data + at);
    fputs("\n", stdout);
}

static bool is_of_word(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte == '_' || byte == '-' || byte == '.' || (unsigned char)byte >= 0x80;
}

static void complete(struct editing *editing)
{
    struct line_edit *edit = editing->edit;
    struct slice before = {editing->line->data, editing->cursor};
    size_t from = editing->cursor;
    if (!edit->complete) return;
    while (from > 0 && is_of_word(before.data[from - 1])) from--;
    struct candidates candidates = {.word = slice_from(before, from)};
    edit->complete(edit->context, (struct slice){before.data, from}, candidates.word, add_candidate,
                   &candidates);
    if (candidates.count > 1 && candidates.shared.len <= candidates.word.len) list_candidates(&candidates);
    if (candidates.count && candidates.shared.len >= candidates.word.len) {
        cut(editing, from, editing->cursor);
        insert(editing, buf_view(&candidates.shared));
        if (candidates.count == 1) insert(editing, SLICE(" "));
    }
    buf_free(&candidates.texts);
    buf_free(&candidates.shared);
}

/* ---- keys ---- */

static void insert_typed(struct editing *editing, int byte)
{
    char text[4] = {(char)byte};
    size_t len = 1, whole = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    while (len < whole && (byte = read_byte()) >= 0) text[len++] = (char)byte;
    if (len == whole && utf8_valid((struct slice){text, len})) insert(editing, (struct slice){text, len});
}

/* False: the line is done. */
static bool take_key(struct editing *editing, int key, enum line_result *result)
{
    struct slice line = buf_view(editing->line);
    switch (key) {
    case '\r':
    case '\n': return false;
    case CONTROL('C'): *result = LINE_GIVEN_UP; return false;
    case KEY_NONE: *result = LINE_END; return false;
    case CONTROL('D'):
        if (!line.len) *result = LINE_END;
        cut(editing, editing->cursor, letter_behind(line, editing->cursor));
        return *result != LINE_END;
    case KEY_DELETE: cut(editing, editing->cursor, letter_behind(line, editing->cursor)); break;
    case BACKSPACE:
    case CONTROL('H'): cut(editing, letter_before(line, editing->cursor), editing->cursor); break;
    case CONTROL('W'): cut_word(editing); break;
    case CONTROL('U'): cut(editing, 0, editing->cursor); break;
    case CONTROL('K'): cut(editing, editing->cursor, line.len); break;
    case CONTROL('L'): fputs("\033[H\033[2J", stdout); break;
    case CONTROL('A'):
    case KEY_HOME: editing->cursor = 0; break;
    case CONTROL('E'):
    case KEY_END: editing->cursor = line.len; break;
    case CONTROL('B'):
    case KEY_LEFT: editing->cursor = letter_before(line, editing->cursor); break;
    case CONTROL('F'):
    case KEY_RIGHT: editing->cursor = letter_behind(line, editing->cursor); break;
    case CONTROL('P'):
    case KEY_UP:
        if (editing->place) show_history(editing, editing->place - 1);
        break;
    case CONTROL('N'):
    case KEY_DOWN: show_history(editing, editing->place + 1); break;
    case '\t': complete(editing); break;
    default:
        if (key >= ' ' && key < 256) insert_typed(editing, key);
        break;
    }
    return true;
}

enum line_result line_read(struct line_edit *edit, const char *prompt, struct buf *out)
{
    struct termios before, raw;
    enum line_result result = LINE_READ;
    struct editing editing = {.edit = edit, .prompt = prompt, .line = out, .place = edit->count};
    out->len = 0;
    if (tcgetattr(STDIN_FILENO, &before) != 0) return LINE_END;
    raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG | IEXTEN);
    raw.c_iflag &= ~(tcflag_t)(IXON | ICRNL);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    do {
        show(&editing);
    } while (take_key(&editing, read_key(), &result));
    fputs("\n", stdout);
    fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    buf_free(&editing.own);
    return result;
}
