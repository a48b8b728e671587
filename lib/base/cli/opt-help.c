/* opt-help.c - prints the table of options: for a terminal, as a manual page (man-pages(7)), and as
 * a completion script for bash. All of them read the same rows.
 *
 * --help leaves out rare options, and all paragraphs of the notes but the first. */
#include <stdio.h>
#include <string.h>

#include "lib/base/cli/opt.h"

enum { WIDTH = 80, HELP_AT = 28 };

/* Prints a value from column n on; a line may break after a '|'. Returns the column after the
 * value. */
static int print_value(const char *value, int n)
{
    for (const char *end; *value; value = end) {
        end = strchr(value, '|');
        end = end ? end + 1 : value + strlen(value);
        if (n + (end - value) > WIDTH)
            n = printf("\n%10s", "") - 1;
        n += printf("%.*s", (int)(end - value), value);
    }
    return n;
}

/* Returns the length of the word at `text`. If the word is longer than `room` columns, returns the
 * length of its part up to the last '|' within them. */
static int word_length(const char *text, int room)
{
    int len = (int)strcspn(text, " "), at = len > room ? room : 0;
    while (at > 0 && text[at - 1] != '|')
        at--;
    return at ? at : len;
}

/* Prints the words of a text from column n on. Lines have at most WIDTH columns; later lines begin
 * at column `indent`. */
static void print_words(const char *text, int n, int indent)
{
    while (*text) {
        int len = word_length(text, WIDTH - indent);
        if (n > indent && n + 1 + len > WIDTH)
            n = printf("\n%*s", indent, "") - 1;
        n += printf("%s%.*s", n > indent ? " " : "", len, text);
        text += len + (text[len] == ' ');
    }
    puts("");
}

static void print_option(const struct opt *option)
{
    int n = option->letter ? printf("  -%c, --%s", option->letter, option->name)
                           : printf("      --%s", option->name);
    const char *value = option->type == OPT_CHOICE ? option->choices : option->arg;
    if (option->type == OPT_SWITCH)
        n += printf("[=%s]", value);
    else if (option->type != OPT_FLAG && value)
        n = print_value(value, n + printf("="));
    if (n > HELP_AT - 2)
        printf("\n%*s", HELP_AT, "");
    else
        printf("%*s", HELP_AT - n, "");
    print_words(option->help, HELP_AT, HELP_AT);
}

/* Prints lines, each indented by `indent` columns. */
static void print_lines(const char *line, int indent)
{
    while (line && *line) {
        int n = (int)strcspn(line, "\n");
        printf("%*s%.*s\n", n ? indent : 0, "", n, line);
        line += n + (line[n] == '\n');
    }
}

/* Prints the options. A heading is printed only when an option of its group is shown. */
static void print_options(const struct opt *option, int all)
{
    static const struct opt unnamed = {.type = OPT_HEADING, .help = "Options:"};
    const struct opt *heading = &unnamed;
    int rare = 0;
    for (; option->name; option++) {
        if (option->type == OPT_HEADING) {
            heading = option;
            rare = option->rare;
        } else if (all || !(rare || option->rare)) {
            if (heading) {
                puts("");
                print_words(heading->help, 0, 0);
            }
            heading = NULL;
            print_option(option);
        }
    }
}

static void print_help(const struct tool *tool, int all)
{
    print_words(tool->about, printf("%s -", tool->name), 4);
    puts("\nExamples:");
    print_lines(tool->examples, 2);
    print_options(tool->options, all);
    puts("      --help                the options most used");
    puts("      --help-all            all options and notes; --help-man: as a manual page");
    puts("      --version             versions of tool and Unicode, commit (-v: libraries)");
    if (!tool->notes)
        return;
    puts("");
    const char *end = strstr(tool->notes, "\n\n");
    if (all || !end)
        print_lines(tool->notes, 0);
    else
        printf("%.*s\n", (int)(end - tool->notes), tool->notes);
}

/* ---- a manual page ---- */

/* Prints text for troff. A backslash, a hyphen, and a dot or quote that begins a line have a
 * special meaning there, so they are escaped. */
static void man_text(const char *text)
{
    for (int begins = 1; *text; begins = *text == '\n', text++) {
        if (begins && (*text == '.' || *text == '\''))
            fputs("\\&", stdout);
        if (*text == '\\' || *text == '-')
            putchar('\\');
        putchar(*text == '\\' ? 'e' : *text);
    }
}

static void man_option(const struct opt *option)
{
    const char *value = option->type == OPT_CHOICE ? option->choices : option->arg;
    if (option->type == OPT_HEADING) {
        fputs(".SS ", stdout);
        man_text(option->help);
        puts("");
        return;
    }
    fputs(".TP\n\\fB", stdout);
    if (option->letter)
        printf("\\-%c\\fR, \\fB", option->letter);
    fputs("\\-\\-", stdout);
    man_text(option->name);
    fputs("\\fR", stdout);
    if (option->type != OPT_FLAG && value) {
        fputs(option->type == OPT_SWITCH ? "[=\\fI" : "=\\fI", stdout);
        man_text(value);
        fputs(option->type == OPT_SWITCH ? "\\fR]" : "\\fR", stdout);
    }
    puts("");
    man_text(option->help);
    puts("");
}

static void print_man(const struct tool *tool)
{
    printf(".TH %s 1 \"\" \"crossover %s\" \"crossover\"\n.SH NAME\n", tool->name, version_text);
    man_text(tool->name);
    fputs(" \\- ", stdout);
    man_text(tool->about);
    fputs("\n.SH SYNOPSIS\n.B ", stdout);
    man_text(tool->name);
    puts("\n[options] [file ...]\n.SH EXAMPLES\n.nf");
    man_text(tool->examples ? tool->examples : "");
    puts(".fi\n.SH OPTIONS");
    for (const struct opt *option = tool->options; option->name; option++)
        man_option(option);
    if (tool->notes) {
        puts(".SH NOTES\n.nf");
        man_text(tool->notes);
        puts(".fi");
    }
}

/* ---- completion ---- */

/* Prints "a|b|c" as "a b c". */
static void words_of(const char *choices)
{
    for (const char *c = choices; *c; c++)
        putchar(*c == '|' ? ' ' : *c);
}

/* Prints the words that a value may be: the words of `choices`, or of `arg` if that lists words. */
static void print_values(const struct opt *option)
{
    const char *value = option->type == OPT_CHOICE ? option->choices : option->arg;
    if (!value || !strchr(value, '|'))
        return;
    char words[256];
    snprintf(words, sizeof words, "%.*s", (int)strcspn(value, "["), value);
    printf("    --%s) COMPREPLY=($(compgen -W '", option->name);
    words_of(words);
    puts("' -- \"$cur\")); return ;;");
}

static void print_completion(const struct tool *tool)
{
    char name[64];
    snprintf(name, sizeof name, "_%s", tool->name);
    for (char *letter = name; *letter; letter++)
        *letter = *letter == '-' ? '_' : *letter;
    printf("# bash completion of %s, from its table of options\n%s()\n{\n", tool->name, name);
    puts("    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
         "    if [ \"$cur\" = = ]; then cur=; elif [ \"$prev\" = = ]; then "
         "prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n    case $prev in");
    for (const struct opt *option = tool->options; option->name; option++)
        if (option->type != OPT_HEADING)
            print_values(option);
    fputs("    esac\n    COMPREPLY=()\n    case $cur in\n"
          "    -*) COMPREPLY=($(compgen -W '--help --help-all --help-man --version", stdout);
    for (const struct opt *option = tool->options; option->name; option++)
        if (option->type != OPT_HEADING)
            printf(" --%s", option->name);
    printf("' -- \"$cur\")) ;;\n    esac\n}\ncomplete -o default -F %s %s\n", name, tool->name);
}

void opt_print(const struct tool *tool, const char *option)
{
    if (!strcmp(option, "--help-man"))
        print_man(tool);
    else if (!strcmp(option, "--help-completion"))
        print_completion(tool);
    else
        print_help(tool, !strcmp(option, "--help-all"));
}
