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

enum { MAX_OPTIONS = 160, FIRST_CODE = 256, HELPS = 6 /* with the last, empty row */ };

_Noreturn void opt_usage(const struct tool *t, const char *format, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    struct err e = {0};
    err_set(&e, EXIT_BAD_USAGE, "%s (try '%s --help')", text, t->name);
    err_die(t->name, &e);
}

/* An integer, with an optional K/M/G suffix; -1: malformed, or beyond int64. */
static int parse_int(const char *s, int suffix, int64_t *out)
{
    char *end;
    errno = 0;
    if (!((*s >= '0' && *s <= '9') || *s == '-'))
        return -1;
    long long v = strtoll(s, &end, 10);
    if (errno || end == s)
        return -1;
    int64_t scale = 1;
    if (suffix && *end) {
        const char *p = strchr("KkMmGg", *end);
        if (!p)
            return -1;
        scale = (int64_t)1 << (10 * ((p - "KkMmGg") / 2 + 1));
        end++;
    }
    if (*end || __builtin_mul_overflow((int64_t)v, scale, out))
        return -1;
    return 0;
}

static int in_range(const struct opt *o, double v)
{
    return (o->lo == 0 && o->hi == 0) || (v >= o->lo && v <= o->hi); /* exact: 0, 0 = unbounded */
}

static int is_choice(const char *choices, const char *s)
{
    size_t n = strlen(s);
    for (const char *p = choices; n && p; p = strchr(p, '|'), p = p ? p + 1 : NULL)
        if (!strncmp(p, s, n) && (p[n] == '|' || !p[n]))
            return 1;
    return 0;
}

static int set_number(const struct opt *o, const char *s, struct err *e)
{
    double v = NAN;
    int64_t i = 0;
    int bad;
    if (o->type == OPT_REAL) {
        char *end;
        v = strtod(s, &end);
        bad = end == s || *end || !isfinite(v) || strpbrk(s, "xX \t");
    } else {
        bad = parse_int(s, o->type == OPT_BYTES, &i);
        v = (double)i;
    }
    if (bad || !in_range(o, v)) {
        char range[96] = "", lo[PLAIN_NUMBER], hi[PLAIN_NUMBER];
        if (o->lo != 0 || o->hi != 0) /* exact: see in_range */
            snprintf(range, sizeof range, " from %s to %s", plain_number(lo, o->lo),
                     plain_number(hi, o->hi));
        return err_set(e, EXIT_BAD_USAGE, "--%s: expected %s%s, got '%s'", o->name,
                       o->type == OPT_REAL ? "a number" : "an integer", range, s);
    }
    if (o->type == OPT_REAL)
        *(double *)o->to = v;
    else
        *(int64_t *)o->to = i;
    return 0;
}

static int set_choice(const struct opt *o, const char *s, struct err *e)
{
    struct near n = {.got = s};
    char hint[NEAR_HINT];
    if (is_choice(o->choices, s)) {
        *(const char **)o->to = s;
        return 0;
    }
    near_words(&n, o->choices);
    return err_set(e, EXIT_BAD_USAGE, "--%s: expected one of %s, got '%s'%s", o->name, o->choices,
                   s, near_hint(&n, "", hint));
}

static int set_value(const struct opt *o, const char *s, struct err *e)
{
    switch (o->type) {
    case OPT_FLAG:
        *(int *)o->to = 1;
        break;
    case OPT_SWITCH:
        *(const char **)o->to = s ? s : "on";
        break;
    case OPT_WORD:
        *(const char **)o->to = o->choices;
        break;
    case OPT_TEXT:
        *(const char **)o->to = s;
        break;
    case OPT_CHOICE:
        return set_choice(o, s, e);
    case OPT_INT:
    case OPT_REAL:
    case OPT_BYTES:
        return set_number(o, s, e);
    case OPT_HEADING:
        break;
    }
    return 0;
}

/* Fills getopt's arrays from the table. Returns the number of long options. */
static int build(const struct tool *t, struct option *lo, char *so, const struct opt **by_code)
{
    int n = 0, s = 0;
    so[s++] = ':';
    for (const struct opt *o = t->options; o->name; o++) {
        if (o->type == OPT_HEADING)
            continue;
        if (n >= MAX_OPTIONS - HELPS)
            err_machine(__FILE__, __LINE__, "too many options in the table");
        by_code[n] = o;
        int bare = o->type == OPT_FLAG || o->type == OPT_WORD;
        int argument = bare                    ? no_argument
                       : o->type == OPT_SWITCH ? optional_argument
                                               : required_argument;
        lo[n] = (struct option){o->name, argument, NULL, FIRST_CODE + n};
        if (o->letter) {
            so[s++] = (char)o->letter;
            if (argument == required_argument)
                so[s++] = ':';
        }
        n++;
    }
    so[s] = 0;
    lo[n] = (struct option){"help", no_argument, NULL, 'h'};
    lo[n + 1] = (struct option){"help-all", no_argument, NULL, 'h'};
    lo[n + 2] = (struct option){"help-man", no_argument, NULL, 'h'};
    lo[n + 3] = (struct option){"help-completion", no_argument, NULL, 'h'};
    lo[n + 4] = (struct option){"version", no_argument, NULL, 'V'};
    lo[n + 5] = (struct option){0};
    return n;
}

static const struct opt *find_letter(const struct tool *t, int letter)
{
    for (const struct opt *o = t->options; o->name; o++)
        if (o->letter == letter && o->type != OPT_HEADING)
            return o;
    return NULL;
}

/* " (did you mean NAME?)" of the option nearest to a name, or "". */
static const char *hint_of(const struct tool *t, const char *name, const char *mark,
                           char hint[NEAR_HINT])
{
    struct near n = {.got = name};
    for (const struct opt *o = t->options; o->name; o++)
        near_add(&n, o->name);
    near_words(&n, *mark ? "help|help-all|version" : NULL);
    return near_hint(&n, mark, hint);
}

static _Noreturn void refuse_unknown(const struct tool *t, const char *word)
{
    char name[64], hint[NEAR_HINT] = "";
    if (!strncmp(word, "--", 2)) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
        hint_of(t, name, "--", hint);
    }
    opt_usage(t, "unknown option '%s'%s", word, hint);
}

int opt_set(const struct tool *t, const char *name, const char *value, struct err *e)
{
    char hint[NEAR_HINT];
    const struct opt *o = t->options;
    while (o->name && (o->type == OPT_HEADING || strcmp(o->name, name)))
        o++;
    if (!o->name)
        return err_set(e, EXIT_BAD_USAGE, "'%.64s' is not an option of %s%s", name, t->name,
                       hint_of(t, name, "", hint));
    int bare = o->type == OPT_FLAG || o->type == OPT_WORD;
    if (bare && !strcmp(value, "off"))
        return 0;
    if (bare && strcmp(value, "on"))
        return err_set(e, EXIT_BAD_USAGE, "--%s: expected true or false, got '%s'", name, value);
    return set_value(o, value, e);
}

/* getopt accepts unambiguous prefixes. This project does not: a new option must not change the
 * meaning of an old command line. */
static void refuse_abbreviation(const struct tool *t, const char *word, const char *name)
{
    size_t n = strlen(name);
    if (word && !strncmp(word, "--", 2) && strncmp(word + 2, name, n))
        opt_usage(t, "unknown option '%s' (did you mean --%s?)", word, name);
}

/* Refuses an empty --output, and one that an operand names too. */
static void check_output(const struct tool *t, char **operands)
{
    const struct opt *o = t->options;
    while (o->name && strcmp(o->name, "output"))
        o++;
    const char *output = o->name ? *(const char **)o->to : "-";
    if (!*output)
        opt_usage(t, "--output: expected the name of a file, or -, got ''");
    for (; strcmp(output, "-") && *operands; operands++)
        if (file_is_regular(output) && file_same(output, *operands))
            opt_usage(t, "%s is both input and output", output);
}

/* With -v, before or after, also the libraries. */
static _Noreturn void print_version(const struct tool *t, char **argv)
{
    printf("%s (crossover) %s, Unicode %s, commit %s\n", t->name, version_text, version_unicode,
           version_commit);
    while (*argv && strcmp(*argv, "-v") && strcmp(*argv, "--verbose"))
        argv++;
    if (*argv) {
        libraries_print();
        opt_contain_print();
    }
    exit(fflush(stdout) ? EXIT_IO : EXIT_OK);
}

int opt_parse(const struct tool *t, int argc, char **argv)
{
    struct option lo[MAX_OPTIONS];
    char so[2 * MAX_OPTIONS + 2];
    const struct opt *by_code[MAX_OPTIONS];
    int n = build(t, lo, so, by_code), c;
    guard_start();
    opterr = 0;
    optind = 1;
    for (;;) {
        const char *word = optind < argc ? argv[optind] : NULL;
        if ((c = getopt_long(argc, argv, so, lo, NULL)) == -1)
            break;
        if (c == '?' || c == ':') {
            const char *at = optind > 1 && optind <= argc ? argv[optind - 1] : "";
            if (c == ':')
                opt_usage(t, "option '%s' needs a value", word ? word : at);
            refuse_unknown(t, word && word[0] == '-' && word[1] ? word : at);
        }
        if (c == 'h' && word && !strncmp(word, "--h", 3)) {
            opt_print(t, word);
            exit(fflush(stdout) ? EXIT_IO : EXIT_OK);
        }
        if (c == 'V')
            print_version(t, argv);
        const struct opt *o = c >= FIRST_CODE && c < FIRST_CODE + n ? by_code[c - FIRST_CODE]
                                                                  : find_letter(t, c);
        if (c >= FIRST_CODE)
            refuse_abbreviation(t, word, o->name);
        struct err bad = {0};
        if (set_value(o, optarg, &bad))
            opt_usage(t, "%s", bad.text);
    }
    check_output(t, argv + optind);
    if (!(t->needs & NEEDS_LATER))
        opt_contain(t, argv + optind);
    return optind;
}

int opt_list(const char *text, int64_t *v, int max, int64_t lo, int64_t hi)
{
    int n = 0;
    while (*text) {
        char word[32];
        size_t len = strcspn(text, ",");
        if (n >= max || len == 0 || len >= sizeof word)
            return -1;
        memcpy(word, text, len);
        word[len] = 0;
        if (parse_int(word, 0, &v[n]) || v[n] < lo || v[n] > hi)
            return -1;
        n++;
        text += len;
        if (*text == ',' && !*++text)
            return -1;
    }
    return n ? n : -1;
}
