/* opt-help.c - prints the table of options: for a terminal, as a manual page (man-pages(7)), and as
 * a completion script for bash. All of them read the same rows.
 *
 * --help leaves out rare options, and all paragraphs of the notes but the first. */
#include <stdio.h>
#include <string.h>

#include "lib/base/cli/opt.h"

enum { WIDTH = 80, HELP_AT = 28 };

/* A value that begins at column n; it breaks after a '|'. Returns the column after it. */
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

/* The length of the word at s, or of its part up to the last '|' within `room` columns. */
static int word_length(const char *s, int room)
{
    int len = (int)strcspn(s, " "), at = len > room ? room : 0;
    while (at > 0 && s[at - 1] != '|')
        at--;
    return at ? at : len;
}

/* The words of s from column n on, in lines of at most WIDTH columns that begin at `indent`. */
static void print_words(const char *s, int n, int indent)
{
    while (*s) {
        int len = word_length(s, WIDTH - indent);
        if (n > indent && n + 1 + len > WIDTH)
            n = printf("\n%*s", indent, "") - 1;
        n += printf("%s%.*s", n > indent ? " " : "", len, s);
        s += len + (s[len] == ' ');
    }
    puts("");
}

static void print_option(const struct opt *o)
{
    int n = o->letter ? printf("  -%c, --%s", o->letter, o->name) : printf("      --%s", o->name);
    const char *value = o->type == OPT_CHOICE ? o->choices : o->arg;
    if (o->type == OPT_SWITCH)
        n += printf("[=%s]", value);
    else if (o->type != OPT_FLAG && value)
        n = print_value(value, n + printf("="));
    if (n > HELP_AT - 2)
        printf("\n%*s", HELP_AT, "");
    else
        printf("%*s", HELP_AT - n, "");
    print_words(o->help, HELP_AT, HELP_AT);
}

/* Lines, each after `indent` columns. */
static void print_lines(const char *line, int indent)
{
    while (line && *line) {
        int n = (int)strcspn(line, "\n");
        printf("%*s%.*s\n", n ? indent : 0, "", n, line);
        line += n + (line[n] == '\n');
    }
}

/* A heading comes with the first of its options that is shown. */
static void print_options(const struct opt *o, int all)
{
    static const struct opt unnamed = {.type = OPT_HEADING, .help = "Options:"};
    const struct opt *heading = &unnamed;
    int rare = 0;
    for (; o->name; o++) {
        if (o->type == OPT_HEADING) {
            heading = o;
            rare = o->rare;
        } else if (all || !(rare || o->rare)) {
            if (heading) {
                puts("");
                print_words(heading->help, 0, 0);
            }
            heading = NULL;
            print_option(o);
        }
    }
}

static void print_help(const struct tool *t, int all)
{
    print_words(t->about, printf("%s -", t->name), 4);
    puts("\nExamples:");
    print_lines(t->examples, 2);
    print_options(t->options, all);
    puts("      --help                the options most used");
    puts("      --help-all            all options and notes; --help-man: as a manual page");
    puts("      --version             version, Unicode, commit (-v: libraries, too)");
    if (!t->notes)
        return;
    puts("");
    const char *end = strstr(t->notes, "\n\n");
    if (all || !end)
        print_lines(t->notes, 0);
    else
        printf("%.*s\n", (int)(end - t->notes), t->notes);
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
          "    -*) COMPREPLY=($(compgen -W '--help --help-all --help-man --version", stdout);
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
        print_help(t, !strcmp(option, "--help-all"));
}
