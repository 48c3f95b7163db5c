/* quipu completion: scripts for the shells, made of the same rows as the help. Where a table's name is due
 * the shell asks 'quipu table ls', on the place that the line names. */
#include <stdio.h>
#include <string.h>

#include "cli/arguments.h"

static bool takes_table(const struct command *command)
{
    return strncmp(command->usage, "TABLE", 5) == 0 || strncmp(command->usage, "[TABLE", 6) == 0 ||
           strstr(command->usage, "[TABLE...]") != NULL;
}

static bool needs_value(const struct flag *flag)
{
    return flag->takes && flag->takes[0] != '[';
}

/* What may follow a flag: files, one of some words (tree|set), or anything. */
static bool takes_file(const struct flag *flag)
{
    return strstr(flag->takes, "FILE") || strstr(flag->takes, "DIR") || strcmp(flag->takes, "WHERE") == 0;
}

static bool takes_choice(const struct flag *flag)
{
    return needs_value(flag) && strchr(flag->takes, '|') &&
           !strpbrk(flag->takes, "ABCDEFGHIJKLMNOPQRSTUVWXYZ[");
}

static void print_choice(const struct flag *flag)
{
    for (const char *at = flag->takes; *at; at++) putchar(*at == '|' ? ' ' : *at);
}

/* All flags of a command, each once. */
static void print_flag_names(const struct command *command, const char *before, const char *after)
{
    for (size_t i = 0; i < command->flag_count; i++)
        if (command->flags[i].name && command->flags[i].about)
            printf("%s%s%s", before, command->flags[i].name, after);
    size_t count;
    const struct flag *common = common_flags(command, &count);
    for (size_t i = 0; i < count; i++)
        if (common[i].name) printf("%s%s%s", before, common[i].name, after);
}

/* The commands that have commands of their own: table|function|... */
static void print_parents(const struct program *program)
{
    const char *between = "";
    for (size_t i = 0; i < program->count; i++) {
        if (program->commands[i]->run) continue;
        printf("%s%s", between, program->commands[i]->name);
        between = "|";
    }
}

/* ---- bash ---- */

static void print_bash_choices(const struct flag *flags, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!flags[i].name || !takes_choice(&flags[i])) continue;
        printf("        [ \"$previous\" = --%s ] && words='", flags[i].name);
        print_choice(&flags[i]);
        printf("'\n");
    }
}

static void print_bash_case(const struct command *command, const char *parent)
{
    printf("    '%s%s%s')\n        flags='--help", parent, *parent ? " " : "", command->name);
    print_flag_names(command, " --", "");
    printf("'\n");
    if (takes_table(command)) printf("        words=$(_quipu_tables)\n");
    size_t count;
    const struct flag *common = common_flags(command, &count);
    print_bash_choices(command->flags, command->flag_count);
    print_bash_choices(common, count);
    printf("        ;;\n");
}

static void print_bash_children(const struct command *command)
{
    size_t count;
    const struct command *children = command_children(command, &count);
    printf("    '%s')\n        words='", command->name);
    for (size_t i = 0; i < count; i++) printf("%s%s", i ? " " : "", children[i].name);
    printf("'\n        ;;\n");
    for (size_t i = 0; i < count; i++) print_bash_case(&children[i], command->name);
}

static void print_bash(const struct program *program)
{
    printf("# bash completion of quipu: source <(quipu completion bash)\n"
           "_quipu_tables() {\n"
           "    local i on=()\n"
           "    for ((i = 1; i < ${#COMP_WORDS[@]} - 1; i++)); do\n"
           "        [ \"${COMP_WORDS[i]}\" = --on ] && on=(--on \"${COMP_WORDS[i + 1]}\")\n"
           "    done\n"
           "    quipu table ls \"${on[@]}\" 2>/dev/null\n"
           "}\n"
           "_quipu() {\n"
           "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} flags='' "
           "words=''\n"
           "    local command=${COMP_WORDS[1]:-}\n"
           "    COMPREPLY=()\n"
           "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
           "        COMPREPLY=($(compgen -W '");
    for (size_t i = 0; i < program->count; i++) printf("%s ", program->commands[i]->name);
    printf("help version' -- \"$current\"))\n"
           "        return\n"
           "    fi\n"
           "    case $previous in --on|--data|--tls-cert|--tls-key|--credentials)\n"
           "        COMPREPLY=($(compgen -f -- \"$current\"))\n"
           "        return\n"
           "    esac\n"
           "    case $command in ");
    print_parents(program);
    printf(") [ \"$COMP_CWORD\" -gt 2 ] && command=\"$command ${COMP_WORDS[2]}\" ;; esac\n"
           "    case $command in\n");
    for (size_t i = 0; i < program->count; i++) {
        const struct command *command = program->commands[i];
        if (command->run)
            print_bash_case(command, "");
        else
            print_bash_children(command);
    }
    printf("    esac\n"
           "    case $current in\n"
           "    -*) COMPREPLY=($(compgen -W \"$flags\" -- \"$current\")) ;;\n"
           "    *) COMPREPLY=($(compgen -W \"$words\" -- \"$current\")) ;;\n"
           "    esac\n"
           "}\n"
           "complete -o default -F _quipu quipu\n");
}

/* ---- zsh ---- */

/* The first line of an explanation, without what zsh's _arguments takes for its own. */
static void print_quoted(const char *text)
{
    for (; *text && *text != '\n'; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else if (strchr("[]:", *text))
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

static void print_zsh_value(const struct flag *flag)
{
    printf(":%s:%s", flag->takes, takes_file(flag) ? "_files" : "");
    if (!takes_choice(flag)) return;
    putchar('(');
    print_choice(flag);
    putchar(')');
}

static void print_zsh_flags(const struct flag *flags, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!flags[i].name || !flags[i].about) continue;
        printf(" \\\n        '*--%s[", flags[i].name);
        print_quoted(flags[i].about);
        printf("]");
        if (needs_value(&flags[i])) print_zsh_value(&flags[i]);
        printf("'");
    }
}

static void print_zsh_case(const struct command *command, const char *parent)
{
    printf("    '%s%s%s')\n        _arguments '--help[explain]'", parent, *parent ? " " : "", command->name);
    print_zsh_flags(command->flags, command->flag_count);
    size_t count;
    const struct flag *common = common_flags(command, &count);
    print_zsh_flags(common, count);
    if (takes_table(command)) printf(" \\\n        '1:table:_quipu_tables'");
    printf(" \\\n        '*: :_default'\n        ;;\n");
}

static void print_zsh_names(const struct command *const *commands, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        printf(" '%s:", commands[i]->name);
        print_quoted(commands[i]->summary);
        printf("'");
    }
}

static void print_zsh_children(const struct command *command)
{
    size_t count;
    const struct command *children = command_children(command, &count);
    printf("    '%s')\n        local -a actions=(", command->name);
    for (size_t i = 0; i < count; i++) {
        printf(" '%s:", children[i].name);
        print_quoted(children[i].summary);
        printf("'");
    }
    printf(" )\n        _describe 'what to do' actions\n        ;;\n");
    for (size_t i = 0; i < count; i++) print_zsh_case(&children[i], command->name);
}

static void print_zsh(const struct program *program)
{
    printf("#compdef quipu\n"
           "# zsh completion of quipu: quipu completion zsh > a folder of your $fpath, as _quipu\n"
           "_quipu_tables() {\n"
           "    local -a on names\n"
           "    local i=${words[(I)--on]}\n"
           "    [ \"$i\" -gt 0 ] && on=(--on \"${words[i + 1]}\")\n"
           "    names=(${(f)\"$(quipu table ls $on 2>/dev/null)\"})\n"
           "    compadd -a names\n"
           "}\n"
           "_quipu() {\n"
           "    local command=${words[2]}\n"
           "    if (( CURRENT == 2 )); then\n"
           "        local -a commands=(");
    print_zsh_names(program->commands, program->count);
    printf(" )\n"
           "        _describe 'command' commands\n"
           "        return\n"
           "    fi\n"
           "    shift words\n"
           "    (( CURRENT-- ))\n"
           "    case $command in ");
    print_parents(program);
    printf(") if (( CURRENT > 2 )); then\n"
           "        command=\"$command ${words[2]}\"\n"
           "        shift words\n"
           "        (( CURRENT-- ))\n"
           "    fi ;; esac\n"
           "    case $command in\n");
    for (size_t i = 0; i < program->count; i++) {
        if (program->commands[i]->run)
            print_zsh_case(program->commands[i], "");
        else
            print_zsh_children(program->commands[i]);
    }
    printf("    esac\n"
           "}\n"
           "if [ \"$funcstack[1]\" = _quipu ]; then _quipu \"$@\"; else compdef _quipu quipu; fi\n");
}

/* ---- fish ---- */

static void print_fish_text(const char *text)
{
    for (; *text && *text != '\n'; text++) {
        if (*text == '\'' || *text == '\\') putchar('\\');
        putchar(*text);
    }
}

static void print_fish_flags(const struct flag *flags, size_t count, const char *condition)
{
    for (size_t i = 0; i < count; i++) {
        if (!flags[i].name || !flags[i].about) continue;
        printf("complete -c quipu -n '%s' -l %s", condition, flags[i].name);
        if (needs_value(&flags[i])) printf(takes_file(&flags[i]) ? " -r" : " -x");
        if (takes_choice(&flags[i])) {
            printf(" -a '");
            print_choice(&flags[i]);
            putchar('\'');
        }
        printf(" -d '");
        print_fish_text(flags[i].about);
        printf("'\n");
    }
}

static void print_fish_command(const struct command *command, const struct command *parent)
{
    char condition[200];
    snprintf(condition, sizeof condition, "__quipu_is %s%s%s", parent ? parent->name : "", parent ? " " : "",
             command->name);
    print_fish_flags(command->flags, command->flag_count, condition);
    size_t count;
    const struct flag *common = common_flags(command, &count);
    print_fish_flags(common, count, condition);
    if (takes_table(command)) printf("complete -c quipu -f -n '%s' -a '(__quipu_tables)'\n", condition);
    const struct command *children = command_children(command, &count);
    for (size_t i = 0; i < count; i++) {
        printf("complete -c quipu -f -n '%s; and test (count (commandline -opc)) -eq 2' -a %s -d '",
               condition, children[i].name);
        print_fish_text(children[i].summary);
        printf("'\n");
        print_fish_command(&children[i], command);
    }
}

static void print_fish(const struct program *program)
{
    printf("# fish completion of quipu: quipu completion fish | source\n"
           "function __quipu_tables\n"
           "    set -l words (commandline -opc)\n"
           "    set -l at (contains -i -- --on $words)\n"
           "    and quipu table ls --on $words[(math $at + 1)] 2>/dev/null\n"
           "    or quipu table ls 2>/dev/null\n"
           "end\n"
           "function __quipu_is\n" /* the line begins with these commands: put is not job put */
           "    set -l words (commandline -opc)\n"
           "    test (count $words) -gt (count $argv); or return 1\n"
           "    for i in (seq (count $argv))\n"
           "        set -l at (math $i + 1)\n"
           "        test \"$words[$at]\" = \"$argv[$i]\"; or return 1\n"
           "    end\n"
           "end\n");
    for (size_t i = 0; i < program->count; i++) {
        printf("complete -c quipu -f -n __fish_use_subcommand -a %s -d '", program->commands[i]->name);
        print_fish_text(program->commands[i]->summary);
        printf("'\n");
    }
    for (size_t i = 0; i < program->count; i++) print_fish_command(program->commands[i], NULL);
}

static int complete(const struct arguments *arguments)
{
    const char *shell = argument_word(arguments, 0);
    if (strcmp(shell, "bash") == 0)
        print_bash(arguments->program);
    else if (strcmp(shell, "zsh") == 0)
        print_zsh(arguments->program);
    else if (strcmp(shell, "fish") == 0)
        print_fish(arguments->program);
    else
        return complain_of_usage(arguments, "there is no completion for '%s', only for bash, zsh and fish",
                                 shell);
    return EXIT_FINE;
}

const struct command command_completion = {
    .name = "completion",
    .summary = "print the completion script of bash, zsh or fish",
    .usage = "bash|zsh|fish",
    .about = "Prints a script that lets the shell complete commands, flags and the names of tables.",
    .examples = "  source <(quipu completion bash)                         # in ~/.bashrc\n"
                "  quipu completion zsh > ~/.zsh/completions/_quipu        # a folder of $fpath\n"
                "  quipu completion fish > ~/.config/fish/completions/quipu.fish",
    .words_min = 1,
    .words_max = 1,
    .run = complete};
