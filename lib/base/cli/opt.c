/* opt.c - options from one table; see opt.h.
 *
 * Every number is parsed as a whole and range-checked here: no tool sees "--seed 1e9x" or a value
 * that wrapped. The help is printed from the same rows, so every option is described. */
#include "lib/base/cli/opt.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cli/guard.h"
#include "lib/base/cli/libraries.h"
#include "lib/base/cli/near.h"
#include "lib/base/err.h"
#include "lib/base/file.h"
#include "lib/base/plain.h"

enum { MAX_OPTIONS = 160, FIRST_CODE = 256, HELPS = 6 /* rows of build(), with the empty one */ };

_Noreturn void opt_usage(const struct tool *tool, const char *format, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    struct err e = {0};
    err_set(&e, EXIT_BAD_USAGE, "%s (try '%s --help')", text, tool->name);
    err_die(tool->name, &e);
}

/* Parses an integer; suffix 1: K, M or G may follow. Returns -1 if the text is malformed, or if the
 * value is beyond int64. */
static int parse_int(const char *text, int suffix, int64_t *out)
{
    char *end;
    errno = 0;
    if (!((*text >= '0' && *text <= '9') || *text == '-'))
        return -1;
    long long number = strtoll(text, &end, 10);
    if (errno || end == text)
        return -1;
    int64_t scale = 1;
    if (suffix && *end) {
        const char *unit = strchr("KkMmGg", *end);
        if (!unit)
            return -1;
        scale = (int64_t)1 << (10 * ((unit - "KkMmGg") / 2 + 1));
        end++;
    }
    if (*end || __builtin_mul_overflow((int64_t)number, scale, out))
        return -1;
    return 0;
}

static int in_range(const struct opt *option, double v)
{
    /* lo and hi both 0: any value. They are constants, so == is exact. */
    return (option->lo == 0 && option->hi == 0) || (v >= option->lo && v <= option->hi);
}

static int is_choice(const char *choices, const char *text)
{
    size_t n = strlen(text);
    for (const char *at = choices; n && at; at = strchr(at, '|'), at = at ? at + 1 : NULL)
        if (!strncmp(at, text, n) && (at[n] == '|' || !at[n]))
            return 1;
    return 0;
}

/* Parses a finite number; percent 1: "2%" is 0.02. Returns -1 if the text is malformed. */
static int parse_real(const char *text, int percent, double *out)
{
    char *end;
    *out = strtod(text, &end);
    const int is_percent = percent && end > text && *end == '%';
    if (end == text || end[is_percent] || !isfinite(*out) || strpbrk(text, "xX \t"))
        return -1;
    if (is_percent)
        *out /= 100;
    return 0;
}

static int set_number(const struct opt *option, const char *text, struct err *e)
{
    const int is_real = option->type == OPT_REAL || option->type == OPT_SHARE;
    double number = NAN;
    int64_t i = 0;
    int bad = is_real ? parse_real(text, option->type == OPT_SHARE, &number)
                      : parse_int(text, option->type == OPT_BYTES, &i);
    if (!is_real)
        number = (double)i;
    if (bad || !in_range(option, number)) {
        char range[96] = "", lo[PLAIN_NUMBER], hi[PLAIN_NUMBER];
        if (option->lo != 0 || option->hi != 0) /* exact, as in in_range */
            snprintf(range, sizeof range, " from %s to %s", plain_number(lo, option->lo),
                     plain_number(hi, option->hi));
        return err_set(e, EXIT_BAD_USAGE, "--%s: expected %s%s%s, got '%s'", option->name,
                       is_real ? "a number" : "an integer", range,
                       option->type == OPT_SHARE ? ", or a percentage such as 2%" : "", text);
    }
    if (is_real)
        *(double *)option->to = number;
    else
        *(int64_t *)option->to = i;
    return 0;
}

static int set_choice(const struct opt *option, const char *text, struct err *e)
{
    struct near n = {.got = text};
    char hint[NEAR_HINT];
    if (is_choice(option->choices, text)) {
        *(const char **)option->to = text;
        return 0;
    }
    near_words(&n, option->choices);
    return err_set(e, EXIT_BAD_USAGE, "--%s: expected one of %s, got '%s'%s", option->name,
                   option->choices, text, near_hint(&n, "", hint));
}

static int set_value(const struct opt *option, const char *text, struct err *e)
{
    switch (option->type) {
    case OPT_FLAG:
        *(int *)option->to = 1;
        break;
    case OPT_SWITCH:
        *(const char **)option->to = text ? text : "on";
        break;
    case OPT_WORD:
        *(const char **)option->to = option->choices;
        break;
    case OPT_TEXT:
        *(const char **)option->to = text;
        break;
    case OPT_CHOICE:
        return set_choice(option, text, e);
    case OPT_INT:
    case OPT_REAL:
    case OPT_SHARE:
    case OPT_BYTES:
        return set_number(option, text, e);
    case OPT_HEADING:
        break;
    }
    return 0;
}

/* Fills getopt's arrays from the table. Returns the number of long options. */
static int build(const struct tool *tool, struct option *lo, char *so, const struct opt **by_code)
{
    int n = 0, len = 0;
    so[len++] = ':';
    for (const struct opt *option = tool->options; option->name; option++) {
        if (option->type == OPT_HEADING)
            continue;
        if (n >= MAX_OPTIONS - HELPS)
            err_machine(__FILE__, __LINE__, "too many options in the table");
        by_code[n] = option;
        int bare = option->type == OPT_FLAG || option->type == OPT_WORD;
        int argument = bare                         ? no_argument
                       : option->type == OPT_SWITCH ? optional_argument
                                                    : required_argument;
        lo[n] = (struct option){option->name, argument, NULL, FIRST_CODE + n};
        if (option->letter) {
            so[len++] = (char)option->letter;
            if (argument == required_argument)
                so[len++] = ':';
        }
        n++;
    }
    so[len] = 0;
    lo[n] = (struct option){"help", no_argument, NULL, 'h'};
    lo[n + 1] = (struct option){"help-all", no_argument, NULL, 'h'};
    lo[n + 2] = (struct option){"help-man", no_argument, NULL, 'h'};
    lo[n + 3] = (struct option){"help-completion", no_argument, NULL, 'h'};
    lo[n + 4] = (struct option){"version", no_argument, NULL, 'V'};
    lo[n + 5] = (struct option){0};
    return n;
}

static const struct opt *find_letter(const struct tool *tool, int letter)
{
    for (const struct opt *option = tool->options; option->name; option++)
        if (option->letter == letter && option->type != OPT_HEADING)
            return option;
    return NULL;
}

/* Returns " (did you mean NAME?)" with the option nearest to `name`, or "". */
static const char *hint_of(const struct tool *tool, const char *name, const char *mark,
                           char hint[NEAR_HINT])
{
    struct near n = {.got = name};
    for (const struct opt *option = tool->options; option->name; option++)
        near_add(&n, option->name);
    near_words(&n, *mark ? "help|help-all|version" : NULL);
    return near_hint(&n, mark, hint);
}

static _Noreturn void refuse_unknown(const struct tool *tool, const char *word)
{
    char name[64], hint[NEAR_HINT] = "";
    if (!strncmp(word, "--", 2)) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
        hint_of(tool, name, "--", hint);
    }
    opt_usage(tool, "unknown option '%s'%s", word, hint);
}

int opt_set(const struct tool *tool, const char *name, const char *value, struct err *e)
{
    char hint[NEAR_HINT];
    const struct opt *option = tool->options;
    while (option->name && (option->type == OPT_HEADING || strcmp(option->name, name)))
        option++;
    if (!option->name)
        return err_set(e, EXIT_BAD_USAGE, "'%.64s' is not an option of %s%s", name, tool->name,
                       hint_of(tool, name, "", hint));
    int bare = option->type == OPT_FLAG || option->type == OPT_WORD;
    if (bare && !strcmp(value, "off"))
        return 0;
    if (bare && strcmp(value, "on"))
        return err_set(e, EXIT_BAD_USAGE, "--%s: expected true or false, got '%s'", name, value);
    return set_value(option, value, e);
}

/* getopt accepts unambiguous prefixes. This project does not: a new option must not change the
 * meaning of an old command line. */
static void refuse_abbreviation(const struct tool *tool, const char *word, const char *name)
{
    size_t n = strlen(name);
    if (word && !strncmp(word, "--", 2) && strncmp(word + 2, name, n))
        opt_usage(tool, "unknown option '%s' (did you mean --%s?)", word, name);
}

/* Refuses an --output that is empty, or that is also an operand. */
static void check_output(const struct tool *tool, char **operands)
{
    const struct opt *option = tool->options;
    while (option->name && strcmp(option->name, "output"))
        option++;
    const char *output = option->name ? *(const char **)option->to : "-";
    if (!*output)
        opt_usage(tool, "--output: expected the name of a file, or -, got ''");
    for (; strcmp(output, "-") && *operands; operands++)
        if (file_is_regular(output) && file_same(output, *operands))
            opt_usage(tool, "%s is both input and output", output);
}

/* Prints the version. If -v is anywhere on the command line, also the libraries and the sandbox. */
static _Noreturn void print_version(const struct tool *tool, char **argv)
{
    printf("%s (crossover) %s, Unicode %s, commit %s\n", tool->name, version_text, version_unicode,
           version_commit);
    while (*argv && strcmp(*argv, "-v") && strcmp(*argv, "--verbose"))
        argv++;
    if (*argv) {
        libraries_print();
        opt_contain_print();
    }
    exit(fflush(stdout) ? EXIT_IO : EXIT_OK);
}

int opt_parse(const struct tool *tool, int argc, char **argv)
{
    struct option lo[MAX_OPTIONS];
    char so[2 * MAX_OPTIONS + 2];
    const struct opt *by_code[MAX_OPTIONS];
    int n = build(tool, lo, so, by_code), code;
    guard_start();
    opterr = 0;
    optind = 1;
    for (;;) {
        const char *word = optind < argc ? argv[optind] : NULL;
        if ((code = getopt_long(argc, argv, so, lo, NULL)) == -1)
            break;
        if (code == '?' || code == ':') {
            const char *at = optind > 1 && optind <= argc ? argv[optind - 1] : "";
            if (code == ':')
                opt_usage(tool, "option '%s' needs a value", word ? word : at);
            refuse_unknown(tool, word && word[0] == '-' && word[1] ? word : at);
        }
        if (code == 'h' && word && !strncmp(word, "--h", 3)) {
            opt_print(tool, word);
            exit(fflush(stdout) ? EXIT_IO : EXIT_OK);
        }
        if (code == 'V')
            print_version(tool, argv);
        const struct opt *option = code >= FIRST_CODE && code < FIRST_CODE + n
                                       ? by_code[code - FIRST_CODE]
                                       : find_letter(tool, code);
        if (code >= FIRST_CODE)
            refuse_abbreviation(tool, word, option->name);
        struct err bad = {0};
        if (set_value(option, optarg, &bad))
            opt_usage(tool, "%s", bad.text);
    }
    check_output(tool, argv + optind);
    if (!(tool->needs & NEEDS_LATER))
        opt_contain(tool, argv + optind);
    return optind;
}

int opt_list(const char *text, int64_t *values, int max, int64_t lo, int64_t hi)
{
    int n = 0;
    while (*text) {
        char word[32];
        size_t len = strcspn(text, ",");
        if (n >= max || len == 0 || len >= sizeof word)
            return -1;
        memcpy(word, text, len);
        word[len] = 0;
        if (parse_int(word, 0, &values[n]) || values[n] < lo || values[n] > hi)
            return -1;
        n++;
        text += len;
        if (*text == ',' && !*++text)
            return -1;
    }
    return n ? n : -1;
}
