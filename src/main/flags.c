/* Reading flags. Small on purpose: long names only, a value for each but the switches, the environment as the default. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "main/main.h"

int complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("quipu: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return EXIT_FAULT;
}

/* "tls-cert" -> "QUIPU_TLS_CERT" */
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

static void read_environment(const struct flag *flags, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *value = from_environment(flags[i].name);
        if (!value) continue;
        if (!flags[i].is_switch) *flags[i].value = value;
        else if (!is_no(value)) *flags[i].value = "yes";
    }
}

static const struct flag *find_flag(const struct flag *flags, size_t count, const char *name, size_t len)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(flags[i].name) == len && memcmp(flags[i].name, name, len) == 0) return &flags[i];
    return NULL;
}

static bool usage_fault(const char *command, const char *format, const char *what)
{
    fputs("quipu: ", stderr);
    fprintf(stderr, format, what);
    fprintf(stderr, "\nTry 'quipu %s --help'.\n", command);
    return false;
}

bool flags_read(const struct flag *flags, size_t count, const char *command, int argc, char **argv, bool *help)
{
    *help = false;
    read_environment(flags, count);
    for (int i = 0; i < argc; i++) {
        const char *argument = argv[i];
        if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0) {
            *help = true;
            return true;
        }
        if (strncmp(argument, "--", 2) != 0) return usage_fault(command, "unexpected argument '%s'", argument);
        const char *name = argument + 2, *equals = strchr(name, '=');
        size_t len = equals ? (size_t)(equals - name) : strlen(name);
        const struct flag *flag = find_flag(flags, count, name, len);
        if (!flag) return usage_fault(command, "unknown flag '%s'", argument);
        if (flag->is_switch) {
            if (equals) return usage_fault(command, "the flag '--%s' takes no value", flag->name);
            *flag->value = "yes";
        } else if (equals) {
            *flag->value = equals + 1;
        } else if (i + 1 < argc) {
            *flag->value = argv[++i];
        } else {
            return usage_fault(command, "the flag '--%s' needs a value", flag->name);
        }
    }
    return true;
}
