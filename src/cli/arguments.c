/* Reading arguments. Long names with a value behind them or behind "=", switches without; words in between;
 * "--" ends the flags. What a command knows is in its row, so nothing is declared twice. */
#include "cli/arguments.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "calendar/calendar.h"
#include "cli/nearest.h"

// clang-format off
#define SIGNING_FLAGS                                                                                        \
    {"region", "NAME", "region to sign for (default: $AWS_REGION, else the profile's)"},                     \
    {"profile", "NAME", "profile of ~/.aws/credentials (default: $AWS_PROFILE)"}

static const struct flag data_flags[] = {
    {NULL, NULL, "Where the data is:"},
    {"on", "WHERE",
     "a folder, ':memory:' or the URL of any DynamoDB endpoint\n"
     "(default: $QUIPU_ON, else http://127.0.0.1:8000)"},
    SIGNING_FLAGS,
};
static const struct flag server_flags[] = {
    {NULL, NULL, "Where the server is:"},
    {"on", "URL", "of a running 'quipu serve' (default: $QUIPU_ON, else http://127.0.0.1:8000)"},
    SIGNING_FLAGS,
};
static const struct flag database_flags[] = {
    {NULL, NULL, "Where the database is:"},
    {"on", "URL|FOLDER",
     "a running 'quipu serve', or a data folder that none has open\n"
     "(default: $QUIPU_ON, else http://127.0.0.1:8000)"},
    SIGNING_FLAGS,
};
// clang-format on

/* One letter for what is typed often. */
static const struct {
    char letter;
    const char *name;
} letters[] = {{'f', "follow"}};

const struct flag *common_flags(const struct command *command, size_t *count)
{
    *count = 0;
    if (command->works_on_data) *count = sizeof data_flags / sizeof *data_flags;
    if (command->works_on_server) *count = sizeof server_flags / sizeof *server_flags;
    if (command->works_on_server && command->works_on_data) {
        *count = sizeof database_flags / sizeof *database_flags;
        return database_flags;
    }
    return command->works_on_server ? server_flags : data_flags;
}

/* A sentence may hold the name of a file or a server's words: what could move a terminal's cursor is shown as
 * \x1b, and so is what is no UTF-8. Line ends stay. */
static void print_sentence(const char *format, va_list args)
{
    char *text;
    if (vasprintf(&text, format, args) < 0) return;
    bool is_valid = utf8_valid(slice_of(text));
    fputs("quipu: ", stderr);
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        bool is_control = (*at < 0x20 && *at != '\n' && *at != '\t') || *at == 0x7f;
        bool is_long_control = *at == 0xc2 && at[1] < 0xa0; /* U+0080 to U+009f */
        if (!is_control && (*at < 0x80 || (is_valid && !is_long_control))) {
            fputc(*at, stderr);
            continue;
        }
        if (is_valid && is_long_control) at++;
        fprintf(stderr, "\\x%02x", *at);
    }
    free(text);
}

int complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_sentence(format, args);
    fputc('\n', stderr);
    va_end(args);
    return EXIT_FAULT;
}

int complain_of_usage(const struct arguments *arguments, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_sentence(format, args);
    va_end(args);
    const struct command *parent = arguments->parent;
    fprintf(stderr, "\nTry 'quipu %s%s%s --help'.\n", parent ? parent->name : "", parent ? " " : "",
            arguments->command->name);
    return EXIT_USAGE;
}

/* ---- finding ---- */

static const struct flag *find_in(const struct flag *flags, size_t count, struct slice name)
{
    for (size_t i = 0; i < count; i++)
        if (flags[i].name && slice_equal(slice_of(flags[i].name), name)) return &flags[i];
    return NULL;
}

static const struct flag *find_flag(const struct command *command, struct slice name)
{
    size_t count;
    const struct flag *flag = find_in(command->flags, command->flag_count, name);
    const struct flag *common = common_flags(command, &count);
    return flag ? flag : find_in(common, count, name);
}

const char *argument_text(const struct arguments *arguments, const char *name)
{
    const struct flag *flag = find_flag(arguments->command, slice_of(name));
    ensure(flag != NULL);
    for (size_t i = arguments->given_count; i > 0; i--)
        if (arguments->given[i - 1].flag == flag) return arguments->given[i - 1].text;
    return NULL;
}

bool argument_offered(const struct arguments *arguments, const char *name)
{
    return find_flag(arguments->command, slice_of(name)) != NULL;
}

bool argument_given(const struct arguments *arguments, const char *name)
{
    return argument_text(arguments, name) != NULL;
}

bool argument_typed(const struct arguments *arguments, const char *name)
{
    const struct flag *flag = find_flag(arguments->command, slice_of(name));
    ensure(flag != NULL);
    for (size_t i = arguments->environment_count; i < arguments->given_count; i++)
        if (arguments->given[i].flag == flag) return true;
    return false;
}

const char *argument_nth(const struct arguments *arguments, const char *name, size_t nth)
{
    const struct flag *flag = find_flag(arguments->command, slice_of(name));
    ensure(flag != NULL);
    for (size_t i = 0; i < arguments->given_count; i++)
        if (arguments->given[i].flag == flag && nth-- == 0) return arguments->given[i].text;
    return NULL;
}

bool argument_moment(const struct arguments *arguments, const char *flag, int64_t otherwise_ms, int64_t *out_ms)
{
    const char *text = argument_text(arguments, flag);
    unsigned long long seconds;
    *out_ms = otherwise_ms;
    if (!text) return true;
    if (slice_to_u64(slice_of(text), 9999999999, &seconds)) {
        *out_ms = (int64_t)seconds * 1000;
        return true;
    }
    if (moment_parse(slice_of(text), out_ms)) return true;
    complain_of_usage(arguments, "--%s must be a moment like 2026-11-15T03:42:06Z, or seconds since 1970, not '%s'",
                      flag, text);
    return false;
}

bool argument_number(const struct arguments *arguments, const char *name, unsigned long long min,
                     unsigned long long max, unsigned long long *out)
{
    const char *text = argument_text(arguments, name);
    unsigned long long number;
    if (!text) return true;
    if (slice_to_u64(slice_of(text), max, &number) && number >= min) {
        *out = number;
        return true;
    }
    complain("--%s must be a number from %llu to %llu, not '%s'", name, min, max, text);
    return false;
}

size_t argument_words(const struct arguments *arguments)
{
    return arguments->word_count;
}

const char *argument_word(const struct arguments *arguments, size_t nth)
{
    return nth < arguments->word_count ? arguments->words[nth] : NULL;
}

/* ---- reading ---- */

static void give(struct arguments *arguments, const struct flag *flag, const char *text)
{
    arguments->given[arguments->given_count++] = (struct given){flag, text};
}

/* "tls-cert" -> QUIPU_TLS_CERT */
static const char *from_environment(const char *name)
{
    char variable[64];
    int len = snprintf(variable, sizeof variable, "QUIPU_%s", name);
    for (int i = 0; i < len && variable[i]; i++)
        variable[i] = variable[i] == '-' ? '_' : (char)toupper((unsigned char)variable[i]);
    const char *value = getenv(variable);
    return value && *value ? value : NULL;
}

static bool is_no(const char *text)
{
    return strcmp(text, "0") == 0 || strcmp(text, "no") == 0 || strcmp(text, "false") == 0;
}

static void read_environment(struct arguments *arguments)
{
    const struct command *command = arguments->command;
    for (size_t i = 0; command->has_environment && i < command->flag_count; i++) {
        const struct flag *flag = &command->flags[i];
        const char *value = flag->name ? from_environment(flag->name) : NULL;
        if (!value) continue;
        if (flag->takes)
            give(arguments, flag, value);
        else if (!is_no(value))
            give(arguments, flag, "yes");
    }
    if ((command->works_on_data || command->works_on_server) && from_environment("on"))
        give(arguments, find_flag(command, SLICE("on")), from_environment("on"));
    arguments->environment_count = arguments->given_count;
}

/* Everybody on the machine may see the arguments of a process: what may be secret is kept elsewhere and overwritten. */
static const char *hide_value(struct arguments *arguments, const struct flag *flag, char *value)
{
    if (strcmp(flag->name, "secret") != 0 && strcmp(flag->name, "env") != 0) return value;
    const char *copy = arena_printf(&arguments->hidden, "%s", value).data;
    memset(value, '*', strlen(value));
    return copy;
}

static bool refuse_flag(const struct arguments *arguments, struct slice typed)
{
    const struct command *command = arguments->command;
    struct nearest nearest = {0};
    size_t count;
    const struct flag *common = common_flags(command, &count);
    for (size_t i = 0; i < command->flag_count; i++)
        if (command->flags[i].name) nearest_try(&nearest, typed, command->flags[i].name);
    for (size_t i = 0; i < count; i++)
        if (common[i].name) nearest_try(&nearest, typed, common[i].name);
    if (nearest.name)
        complain_of_usage(arguments, "unknown flag '--%.*s'; did you mean '--%s'?", SLICE_ARG(typed),
                          nearest.name);
    else
        complain_of_usage(arguments, "unknown flag '--%.*s'", SLICE_ARG(typed));
    return false;
}

/* One flag, whose value may be the next argument: *i moves on with it. */
static bool read_flag(struct arguments *arguments, const char *name, int argc, char **argv, int *i)
{
    const char *equals = strchr(name, '=');
    struct slice wanted = {name, equals ? (size_t)(equals - name) : strlen(name)};
    const struct flag *flag = find_flag(arguments->command, wanted);
    if (!flag) return refuse_flag(arguments, wanted);
    bool is_switch = !flag->takes || (flag->takes[0] == '[' && !equals);
    if (is_switch) {
        if (equals) return complain_of_usage(arguments, "the flag '--%s' takes no value", flag->name), false;
        give(arguments, flag, "yes");
    } else if (equals) {
        give(arguments, flag, hide_value(arguments, flag, strchr(argv[*i], '=') + 1));
    } else if (*i + 1 < argc) {
        give(arguments, flag, hide_value(arguments, flag, argv[++*i]));
    } else {
        return complain_of_usage(arguments, "the flag '--%s' needs a value: --%s %s", flag->name, flag->name,
                                 flag->takes),
               false;
    }
    return true;
}

/* "-f"; NULL when it is no letter of a flag that the command has. */
static const struct flag *find_letter(const struct command *command, const char *argument)
{
    if (argument[0] != '-' || !argument[1] || argument[2]) return NULL;
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (letters[i].letter == argument[1]) return find_flag(command, slice_of(letters[i].name));
    return NULL;
}

static const struct flag_alias *find_alias(const struct command *command, const char *argument)
{
    const struct flag_alias *alias = command->aliases;
    while (alias && alias->spelling && strcmp(alias->spelling, argument) != 0) alias++;
    return alias && alias->spelling ? alias : NULL;
}

static bool read_all(struct arguments *arguments, int argc, char **argv)
{
    bool flags_are_over = false;
    for (int i = 0; i < argc; i++) {
        const char *argument = argv[i];
        if (!flags_are_over && strcmp(argument, "--") == 0) {
            flags_are_over = true;
        } else if (!flags_are_over && (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0)) {
            arguments->wants_help = true;
            return true;
        } else if (!flags_are_over && strncmp(argument, "--", 2) == 0) {
            if (!read_flag(arguments, argument + 2, argc, argv, &i)) return false;
        } else if (!flags_are_over && find_alias(arguments->command, argument)) {
            const char *name = find_alias(arguments->command, argument)->name;
            if (name && !read_flag(arguments, name, argc, argv, &i)) return false;
        } else if (!flags_are_over && find_letter(arguments->command, argument)) {
            give(arguments, find_letter(arguments->command, argument), "yes");
        } else {
            arguments->words[arguments->word_count++] = argument;
        }
    }
    return true;
}

/* What becomes part of a request must be UTF-8, as all JSON is; a folder's name need not be. */
static bool check_texts(const struct arguments *arguments, int argc, char **argv)
{
    bool is_checked = arguments->command->works_on_data || arguments->command->works_on_server;
    for (int i = 0; is_checked && i < argc; i++)
        if (!utf8_valid(slice_of(argv[i])))
            return complain_of_usage(arguments, "the argument '%s' is not UTF-8", argv[i]), false;
    return true;
}

static bool check_words(const struct arguments *arguments)
{
    const struct command *command = arguments->command;
    if (arguments->word_count > command->words_max) {
        complain_of_usage(arguments, "unexpected argument '%s'", arguments->words[command->words_max]);
        return false;
    }
    if (arguments->word_count >= command->words_min) return true;
    complain_of_usage(arguments, "an argument is missing: quipu %s%s%s %s",
                      arguments->parent ? arguments->parent->name : "", arguments->parent ? " " : "",
                      command->name, command->usage);
    return false;
}

bool arguments_read(struct arguments *out, int argc, char **argv)
{
    size_t room = (size_t)argc + out->command->flag_count + 1;
    out->given = must_zero(room, sizeof *out->given);
    out->words = must_zero(room, sizeof *out->words);
    read_environment(out);
    if (!check_texts(out, argc, argv)) return false;
    return read_all(out, argc, argv) && (out->wants_help || check_words(out));
}

void arguments_free(struct arguments *arguments)
{
    free(arguments->given);
    free(arguments->words);
    arena_free(&arguments->hidden);
}
