/* opt-help.c - the table of options written down: for a terminal, as a manual page (man-pages(7)),
 * and as a completion script for bash. Nothing is said in one form that the others do not take from
 * the same row.
 */
#include <stdio.h>
#include <string.h>

#include "lib/base/cli/opt.h"

/* A value behind n columns, in several lines when its words are many. Returns the column after. */
static int print_value(const char *value, int n)
{
    for (const char *end; *value; value = end) {
        end = strchr(value, '|');
        end = end ? end + 1 : value + strlen(value);
        if (n + (end - value) > 79)
            n = printf("\n%10s", "") - 1;
        n += printf("%.*s", (int)(end - value), value);
    }
    return n;
}

static void print_option(const struct opt *o)
{
    if (o->type == OPT_HEADING) {
        printf("\n%s\n", o->help);
        return;
    }
    int n = o->letter ? printf("  -%c, --%s", o->letter, o->name) : printf("      --%s", o->name);
    const char *value = o->type == OPT_CHOICE ? o->choices : o->arg;
    if (o->type == OPT_SWITCH)
        n += printf("[=%s]", value);
    else if (o->type != OPT_FLAG && value)
        n = print_value(value, n + printf("="));
    if (n > 30)
        printf("\n%32s%s\n", "", o->help);
    else
        printf("%*s%s\n", 32 - n, "", o->help);
}

static void print_help(const struct tool *t)
{
    printf("%s - %s\n\nExamples:\n", t->name, t->about);
    const char *line = t->examples;
    while (line && *line) {
        size_t n = strcspn(line, "\n");
        printf("  %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
    printf("\nOptions:\n");
    for (const struct opt *o = t->options; o->name; o++)
        print_option(o);
    printf("      --help                    this text; --help-man: as a manual page\n");
    printf("      --version                 version, Unicode, commit\n");
    if (t->notes)
        printf("\n%s", t->notes);
}

/* ---- a manual page ---- */

/* Text for troff: a backslash, and a dot or quote that begins a line, are its own signs. */
static void man_text(const char *s)
{
    for (int begins = 1; *s; begins = *s == '\n', s++) {
        if (begins && (*s == '.' || *s == '\''))
            fputs("\\&", stdout);
        if (*s == '\\' || *s == '-')
            putchar('\\');
        putchar(*s == '\\' ? 'e' : *s);
    }
}

static void man_option(const struct opt *o)
{
    const char *value = o->type == OPT_CHOICE ? o->choices : o->arg;
    if (o->type == OPT_HEADING) {
        fputs(".SS ", stdout);
        man_text(o->help);
        puts("");
        return;
    }
    fputs(".TP\n\\fB", stdout);
    if (o->letter)
        printf("\\-%c\\fR, \\fB", o->letter);
    fputs("\\-\\-", stdout);
    man_text(o->name);
    fputs("\\fR", stdout);
    if (o->type != OPT_FLAG && value) {
        fputs(o->type == OPT_SWITCH ? "[=\\fI" : "=\\fI", stdout);
        man_text(value);
        fputs(o->type == OPT_SWITCH ? "\\fR]" : "\\fR", stdout);
    }
    puts("");
    man_text(o->help);
    puts("");
}

static void print_man(const struct tool *t)
{
    printf(".TH %s 1 \"\" \"crossover %s\" \"crossover\"\n.SH NAME\n", t->name, version_text);
    man_text(t->name);
    fputs(" \\- ", stdout);
    man_text(t->about);
    fputs("\n.SH SYNOPSIS\n.B ", stdout);
    man_text(t->name);
    puts("\n[options] [file ...]\n.SH EXAMPLES\n.nf");
    man_text(t->examples ? t->examples : "");
    puts(".fi\n.SH OPTIONS");
    for (const struct opt *o = t->options; o->name; o++)
        man_option(o);
    if (t->notes) {
        puts(".SH NOTES\n.nf");
        man_text(t->notes);
        puts(".fi");
    }
}

/* ---- completion ---- */

/* "a|b|c" as words. */
static void words_of(const char *choices)
{
    for (const char *c = choices; *c; c++)
        putchar(*c == '|' ? ' ' : *c);
}

/* The words of a value: those of `choices`, or of `arg` where it lists some. */
static void print_values(const struct opt *o)
{
    const char *value = o->type == OPT_CHOICE ? o->choices : o->arg;
    if (!value || !strchr(value, '|'))
        return;
    char words[256];
    snprintf(words, sizeof words, "%.*s", (int)strcspn(value, "["), value);
    printf("    --%s) COMPREPLY=($(compgen -W '", o->name);
    words_of(words);
    puts("' -- \"$cur\")); return ;;");
}

static void print_completion(const struct tool *t)
{
    char name[64];
    snprintf(name, sizeof name, "_%s", t->name);
    for (char *c = name; *c; c++)
        *c = *c == '-' ? '_' : *c;
    printf("# bash completion of %s, from its table of options\n%s()\n{\n", t->name, name);
    puts("    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
         "    if [ \"$cur\" = = ]; then cur=; elif [ \"$prev\" = = ]; then "
         "prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n    case $prev in");
    for (const struct opt *o = t->options; o->name; o++)
        if (o->type != OPT_HEADING)
            print_values(o);
    fputs("    esac\n    COMPREPLY=()\n    case $cur in\n"
          "    -*) COMPREPLY=($(compgen -W '--help --version", stdout);
    for (const struct opt *o = t->options; o->name; o++)
        if (o->type != OPT_HEADING)
            printf(" --%s", o->name);
    printf("' -- \"$cur\")) ;;\n    esac\n}\ncomplete -o default -F %s %s\n", name, t->name);
}

void opt_print(const struct tool *t, const char *option)
{
    if (!strcmp(option, "--help-man"))
        print_man(t);
    else if (!strcmp(option, "--help-completion"))
        print_completion(t);
    else
        print_help(t);
}
