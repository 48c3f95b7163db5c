/* Commands from rows: made when a pattern's commands are first asked for, so that other commands start no
 * slower for them. */
#include "cli/operation.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"

#define COMMANDS_MOST 40 /* of one pattern */
#define FLAGS_MOST    24
#define HELP_COLUMNS  90 /* of a flag's explanation */
#define PARENTS_MOST  16

const struct flag operation_flags[OPERATION_FLAGS] = {
    {"json", NULL, "print the whole reply as HTTP has it: one line of JSON, one page of a list"},
    {"cost", NULL, "print the whole reply, with what the call costs on AWS"},
    {"prefix", "NAME", "of the tables' names (default: $QUIPU_PREFIX, else quipu-)"},
};

/* ---- words ---- */

static const struct field *field_named(const struct flow_row *row, struct slice name)
{
    for (uint32_t i = 0; i < row->field_count; i++)
        if (slice_equal(slice_of(row->fields[i].name), name)) return &row->fields[i];
    return NULL;
}

static struct slice word_take(const char **at)
{
    *at += strspn(*at, " ");
    struct slice word = {*at, strcspn(*at, " ")};
    *at += word.len;
    return word;
}

/* "by?", "task|tasks...": the name in front of the first sign. */
static void phrase_word(const struct flow_row *row, struct slice word, struct phrase_of_row *out)
{
    char text[64];
    ensure(word.len < sizeof text && out->count < OPERATION_WORDS);
    memcpy(text, word.data, word.len);
    text[word.len] = '\0';
    struct slice name = {word.data, strcspn(text, "?|.")};
    const char *bar = strchr(text, '|');
    const struct field *field = field_named(row, name);
    ensure(field);
    if (bar) {
        struct slice list = {word.data + (bar + 1 - text), strcspn(bar + 1, ".")};
        out->list = field_named(row, list);
    } else if (strstr(text, "...")) {
        out->list = field;
    }
    out->fields[out->count++] = field;
    if (!strchr(text, '?')) out->needed = out->count;
}

void row_phrase(const struct flow_row *row, struct phrase_of_row *out)
{
    const char *at = row->command;
    *out = (struct phrase_of_row){.answer = SLICE("")};
    out->parent = word_take(&at);
    out->name = word_take(&at);
    for (uint32_t i = 0; i < row->field_count && row->fields[i].place == IN_PATH; i++)
        out->fields[out->count++] = &row->fields[i];
    out->needed = out->count;
    for (struct slice word = word_take(&at); word.len; word = word_take(&at)) {
        if (slice_equal(word, SLICE("->")))
            out->answer = word_take(&at);
        else
            phrase_word(row, word, out);
    }
}

/* ---- flags ---- */

const char *field_flag(const struct field *field, char name[FLAG_NAME_BYTES])
{
    /* --prefix is of the tables' names, wherever patterns are */
    const char *word = strcmp(field->name, "prefix") == 0 ? "begins" : field->name;
    size_t len = 0;
    for (; word[len]; len++) {
        ensure(len + 1 < FLAG_NAME_BYTES);
        name[len] = (char)tolower((unsigned char)word[len]);
    }
    name[len] = '\0';
    return name;
}

bool phrase_needs(const struct phrase_of_row *phrase, const struct field *field)
{
    for (size_t i = 0; i < phrase->needed; i++)
        if (strcmp(phrase->fields[i]->name, field->name) == 0) return true;
    return phrase->list == field;
}

static const char *field_takes(const struct field *field)
{
    switch (field->type) {
    case FIELD_INT: return "N";
    case FIELD_DURATION: return "TIME";
    case FIELD_BOOL: return "[=false]";
    case FIELD_JSON:
    case FIELD_THEN: return "JSON";
    case FIELD_LIST: return "LIST";
    case FIELD_CHOICE: return field->words;
    default: return "TEXT";
    }
}

/* The text in lines of a column's width. */
static const char *text_wrapped(struct arena *arena, const char *text, size_t width)
{
    size_t len = strlen(text), line = 0, space = 0;
    char *out = arena_array(arena, char, len + 1);
    memcpy(out, text, len + 1);
    for (size_t i = 0; i < len; i++) {
        if (out[i] == '\n') line = i + 1, space = 0;
        if (out[i] == ' ') space = i;
        if (i - line < width || !space) continue;
        out[space] = '\n';
        line = space + 1;
        space = 0;
    }
    return out;
}

/* Names that stand in two places, as in a query or else in the body, are one flag. */
static bool is_taken(const struct flag *flags, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (flags[i].name && strcmp(flags[i].name, name) == 0) return true;
    return false;
}

static size_t flags_make(struct arena *arena, const struct flow_row *row, const struct phrase_of_row *phrase,
                         struct flag *flags)
{
    size_t count = 0;
    char name[FLAG_NAME_BYTES];
    for (uint32_t i = 0; i < row->field_count; i++) {
        const struct field *field = &row->fields[i];
        if (field->place == IN_REPLY) continue; /* nobody types these */
        if (phrase_needs(phrase, field) || is_taken(flags, count, field_flag(field, name))) continue;
        ensure(count < FLAGS_MOST);
        flags[count++] = (struct flag){arena_printf(arena, "%s", name).data, field_takes(field),
                                       text_wrapped(arena, field->help, HELP_COLUMNS)};
    }
    return count;
}

const struct field *row_field(const struct flow_row *row, struct slice name)
{
    char flag[FLAG_NAME_BYTES];
    for (uint32_t i = 0; i < row->field_count; i++)
        if (slice_equal(slice_of(field_flag(&row->fields[i], flag)), name)) return &row->fields[i];
    return NULL;
}

/* ---- help ---- */

static const char *usage_make(struct arena *arena, const struct phrase_of_row *phrase)
{
    struct buf out = {0};
    for (size_t i = 0; i < phrase->count; i++) {
        bool is_optional = i >= phrase->needed;
        buf_slice(&out, is_optional ? SLICE("[") : SLICE(""));
        for (const char *at = phrase->fields[i]->name; *at; at++)
            buf_byte(&out, (unsigned char)toupper((unsigned char)*at));
        if (phrase->list && i + 1 == phrase->count) buf_text(&out, "...");
        buf_slice(&out, is_optional ? SLICE("] ") : SLICE(" "));
    }
    buf_text(&out, "[flags]");
    const char *usage = arena_printf(arena, "%.*s", SLICE_ARG(buf_view(&out))).data;
    buf_free(&out);
    return usage;
}

/* "The next number of a counter." -> "the next number of a counter"; of long ones the first half. */
static const char *summary_make(struct arena *arena, const char *sentence)
{
    size_t len = strlen(sentence);
    if (len > HELP_COLUMNS) len = strcspn(sentence, ";");
    char *out = arena_array(arena, char, len + 1);
    memcpy(out, sentence, len);
    out[len] = '\0';
    if (len && out[len - 1] == '.') out[len - 1] = '\0';
    out[0] = (char)tolower((unsigned char)out[0]);
    return out;
}

static const char *about_make(struct arena *arena, const struct flow_row *row,
                              const struct phrase_of_row *phrase)
{
    struct buf out = {0};
    buf_printf(&out, "%s%s", text_wrapped(arena, row->summary, HELP_COLUMNS + 20), phrase->count ? "\n" : "");
    for (size_t i = 0; i < phrase->count; i++) {
        const struct field *field = phrase->fields[i];
        size_t start = out.len;
        buf_text(&out, "\n  ");
        for (const char *at = field->name; *at; at++)
            buf_byte(&out, (unsigned char)toupper((unsigned char)*at));
        do buf_byte(&out, ' ');
        while (out.len - start < 25);
        for (const char *at = text_wrapped(arena, field->help, HELP_COLUMNS); *at; at++) {
            buf_byte(&out, (unsigned char)*at);
            if (*at == '\n') buf_printf(&out, "%24s", "");
        }
    }
    buf_printf(&out, "\n\nOn HTTP: %s %s", row->method, row->path);
    const char *about = arena_printf(arena, "%.*s", SLICE_ARG(buf_view(&out))).data;
    buf_free(&out);
    return about;
}

/* The lines of the parent's examples that show this command. */
static const char *examples_make(struct arena *arena, const struct command *parent, const char *name)
{
    struct slice wanted = arena_printf(arena, "quipu %s %s ", parent->name, name);
    struct slice alone = {wanted.data, wanted.len - 1};
    struct buf out = {0};
    for (const char *at = parent->examples; at && *at;) {
        struct slice line = {at, strcspn(at, "\n")};
        bool ends_so = line.len >= alone.len && slice_equal(slice_from(line, line.len - alone.len), alone);
        if (ends_so || slice_contains(line, wanted)) {
            if (out.len) buf_byte(&out, '\n');
            buf_slice(&out, line);
        }
        at += line.len + (at[line.len] == '\n');
    }
    const char *examples = out.len ? arena_printf(arena, "%.*s", SLICE_ARG(buf_view(&out))).data : NULL;
    buf_free(&out);
    return examples;
}

/* ---- commands ---- */

static const struct special *special_find(const char *parent, const char *name)
{
    for (size_t i = 0; i < special_count; i++)
        if (strcmp(special_commands[i].parent, parent) == 0 && strcmp(special_commands[i].name, name) == 0)
            return &special_commands[i];
    return NULL;
}

static void special_apply(struct command *command, struct flag *flags, const struct special *special)
{
    for (size_t i = 0; i < special->flag_count; i++) {
        ensure(command->flag_count < FLAGS_MOST);
        flags[command->flag_count++] = special->flags[i];
    }
    if (special->summary) command->summary = special->summary;
    if (special->usage) command->usage = special->usage;
    if (special->about) command->about = special->about;
    command->words_min = special->words_min;
    command->words_max = special->words_max;
    command->run = special->run;
}

static void flags_finish(struct command *command, struct flag *flags)
{
    ensure(command->flag_count + OPERATION_FLAGS <= FLAGS_MOST);
    memcpy(flags + command->flag_count, operation_flags, sizeof operation_flags);
    command->flag_count += OPERATION_FLAGS;
    command->flags = flags;
}

static void command_make(struct arena *arena, const struct command *parent, const struct flow_row *row,
                         const struct phrase_of_row *phrase, struct command *out)
{
    struct flag *flags = arena_zero(arena, FLAGS_MOST * sizeof *flags);
    *out = (struct command){.name = arena_printf(arena, "%.*s", SLICE_ARG(phrase->name)).data,
                            .summary = summary_make(arena, row->summary),
                            .usage = usage_make(arena, phrase),
                            .about = about_make(arena, row, phrase),
                            .flag_count = flags_make(arena, row, phrase, flags),
                            .works_on_data = true,
                            .words_min = (unsigned)phrase->needed,
                            .words_max = phrase->list ? WORDS_MANY : (unsigned)phrase->count,
                            .operation = row,
                            .run = operation_run};
    out->examples = examples_make(arena, parent, out->name);
    const struct special *special = special_find(parent->name, out->name);
    if (special) special_apply(out, flags, special);
    flags_finish(out, flags);
}

static bool is_made(const struct command *commands, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(commands[i].name, name) == 0) return true;
    return false;
}

static size_t specials_make(struct arena *arena, const struct command *parent, struct command *commands,
                            size_t count)
{
    for (size_t i = 0; i < special_count; i++) {
        const struct special *special = &special_commands[i];
        if (strcmp(special->parent, parent->name) != 0 || is_made(commands, count, special->name)) continue;
        ensure(count < COMMANDS_MOST);
        struct command *command = &commands[count++];
        struct flag *flags = arena_zero(arena, FLAGS_MOST * sizeof *flags);
        *command = (struct command){.name = special->name,
                                    .works_on_data = true,
                                    .flags = flags,
                                    .examples = examples_make(arena, parent, special->name)};
        special_apply(command, flags, special);
    }
    return count;
}

static size_t commands_make(struct arena *arena, const struct command *parent, struct command *commands)
{
    size_t count = 0;
    for (size_t i = 0; row_at(i); i++) {
        struct phrase_of_row phrase;
        if (!row_at(i)->command) continue;
        row_phrase(row_at(i), &phrase);
        if (!slice_equal(phrase.parent, slice_of(parent->name))) continue;
        ensure(count < COMMANDS_MOST);
        command_make(arena, parent, row_at(i), &phrase, &commands[count++]);
    }
    return specials_make(arena, parent, commands, count);
}

const struct command *operation_commands(const struct command *parent, size_t *count)
{
    static struct made {
        const struct command *parent;
        struct command *commands;
        size_t count;
    } all[PARENTS_MOST];
    static struct arena arena; /* as long as the program */
    size_t i = 0;
    while (all[i].parent && all[i].parent != parent) ensure(++i < PARENTS_MOST);
    if (!all[i].parent) {
        all[i].commands = arena_zero(&arena, COMMANDS_MOST * sizeof *all[i].commands);
        all[i].count = commands_make(&arena, parent, all[i].commands);
        all[i].parent = parent;
    }
    *count = all[i].count;
    return all[i].commands;
}
