/* opt.h - one table per tool gives its options, its --help and its range checks.
 *
 *     struct args a = {.steps = 128};
 *     const struct opt options[] = {
 *         {"steps", 's', OPT_INT, &a.steps, .lo = 1, .hi = 65536, .arg = "N", .help = "..."},
 *         OPT_COMMON(a.common),
 *         {0}};
 *     const struct tool t = {"gen-llada", "masked diffusion: reads prompts, writes generations",
 *                            "gen-llada -m org/model < prompts.ndjson\n", NULL, options};
 *     int first = opt_parse(&t, argc, argv);   // argv[first..argc-1] are the operands
 *
 * getopt_long scans the command line; abbreviations of long options are refused. */
#pragma once

#include <stdint.h>

struct err;

enum opt_type {
    OPT_FLAG,   /* int *: set to 1 */
    OPT_INT,    /* int64_t *: decimal, lo..hi */
    OPT_REAL,   /* double *: finite, lo..hi */
    OPT_SHARE,  /* double *: a share, as 0.02 or 2%; lo..hi limits the share */
    OPT_SWITCH, /* const char **: "on", or TEXT of --NAME=TEXT */
    OPT_WORD,   /* const char **: set to `choices`, which is one word; takes no value */
    OPT_TEXT,   /* const char ** */
    OPT_CHOICE, /* const char **: one of `choices` "a|b|c" */
    OPT_BYTES,  /* int64_t *: with suffix K, M, G (powers of 1024), lo..hi */
    OPT_HEADING /* no option: `help` is a heading in --help; rare 1: its whole group is rare */
};

struct opt {
    const char *name; /* long form; the last row of the table is all zero */
    int letter;       /* short form or 0 */
    enum opt_type type;
    void *to;
    double lo, hi; /* inclusive; both 0: any value of the type */
    const char *choices;
    const char *arg; /* name of the value in --help */
    const char *help;
    int rare; /* 1: in --help-all, in the manual and in the completion only */
    enum { WRITES_NOTHING, WRITES_IT, WRITES_SCRATCH } writes; /* OPT_TEXT: the value is a path that
        * the tool writes (see opt_contain); WRITES_SCRATCH: without a value, the scratch folder */
};

/* Rights that a tool keeps (`needs` of struct tool). */
enum {
    NEEDS_NOTHING,
    NEEDS_NETWORK = 1,
    NEEDS_PROGRAMS = 2, /* starts programs in /usr and $PATH, which get the limits of the tool */
    NEEDS_ALL = 4,      /* no limits */
    NEEDS_LATER = 8     /* the tool calls opt_contain() itself, once it knows its files */
};
struct tool {
    const char *name, *about; /* "gen-llada"; one sentence that says what it reads and writes */
    const char *examples;     /* whole lines, each ended by \n; printed first */
    const char *notes;        /* printed last, or NULL; lines of at most 80 columns. The first
                               * paragraph is in --help, the others in --help-all */
    const struct opt *options;
    unsigned needs; /* rights that the tool keeps: a sum of NEEDS_ */
};

/* Options with the same meaning in every tool. */
struct common {
    int64_t seed;         /* --seed N, default 0 */
    int64_t limit;        /* --limit N records, default 0 = all */
    const char *output;   /* -o FILE, default "-" */
    const char *run;      /* --run NAME: the `run` field of every record */
    const char *progress; /* auto | always | never */
    const char *sandbox;  /* on | off: see opt_contain */
    int quiet, verbose, no_meta;
};
#define COMMON_DEFAULTS {.output = "-", .run = "local", .progress = "auto", .sandbox = "on"}
#define OPT_COMMON(c)                                                                              \
    {.type = OPT_HEADING, .name = "", .help = "Common to all tools:"},                             \
    {"output", 'o', OPT_TEXT, &(c).output, .arg = "FILE", .writes = WRITES_IT,                     \
     .help = "output file (standard output)"},                                                     \
    {"seed", 0, OPT_INT, &(c).seed, 0, 9007199254740991.0, .arg = "N",                             \
     .help = "seed of all random choices (0)"},                                                    \
    {"limit", 0, OPT_INT, &(c).limit, 0, 9007199254740991.0, .arg = "N",                           \
     .help = "stop after N input records (0: all)"},                                               \
    {"run", 0, OPT_TEXT, &(c).run, .arg = "NAME", .rare = 1,                                       \
     .help = "name of the run, in each record (local)"},                                           \
    {"no-meta", 0, OPT_FLAG, &(c).no_meta, .rare = 1,                                              \
     .help = "write no meta and end records (for tests)"},                                         \
    {"sandbox", 0, OPT_CHOICE, &(c).sandbox, .choices = "on|off", .rare = 1,                       \
     .help = "before input is read, give up the network, programs, and files that the command "    \
             "line does not name (on)"},                                                           \
    {"progress", 0, OPT_CHOICE, &(c).progress, .choices = "auto|always|never", .arg = "WHEN",      \
     .help = "show progress on standard error (auto)"},                                            \
    {"quiet", 'q', OPT_FLAG, &(c).quiet, .help = "print errors only"},                             \
    {"verbose", 'v', OPT_FLAG, &(c).verbose, .help = "print more on standard error"}

/* Sets an option from a file as the command line would set it. A later opt_parse() overrides it.
 * The value of a flag or a word is "on" or "off". A text is not copied: `value` must live as long
 * as the option. Returns -1 (EXIT_BAD_USAGE) if the value is bad or the option unknown; the message
 * then has the nearest known name. */
int opt_set(const struct tool *tool, const char *name, const char *value, struct err *e);

/* Parses; prints and exits 0 on --help, --help-all, --help-man, --help-completion and --version.
 * Exits 64 on bad usage with one line: the option, the expected values, the given value. An operand
 * that is also the file of --output is bad usage. After parsing it calls opt_contain().
 * Returns the index of the first operand. */
int opt_parse(const struct tool *tool, int argc, char **argv);

/* Takes rights from a tool before it reads the first foreign byte, so that a fault in a reader of
 * files does little harm.
 *
 * Afterwards the process can read the files that its command line names, the libraries and settings
 * of the system, the shipped data and the user's cache folder. It can write in the folder of its
 * output, in crossover's cache folder and in the scratch folder of an offload store. It has no
 * network, starts no process and no program, and reaches no other process. --sandbox off leaves all
 * rights. With a GPU, whose driver needs files and programs that nobody lists, only the network and
 * the attacks of filter.h are refused.
 *
 * opt_parse() calls opt_contain(). With NEEDS_LATER the tool itself calls opt_contain(), before it
 * starts its first thread. `operands` ends with NULL. */
void opt_contain(const struct tool *tool, char **operands);
/* Prints which limits this system can enforce, for --version -v. */
void opt_contain_print(void);

/* Prints the help that `option` names: "--help" (the options most used), "--help-all", "--help-man"
 * (all options and notes as a manual page), or "--help-completion" (a bash script that completes
 * the options and their values). */
void opt_print(const struct tool *tool, const char *option);

/* Prints "tool: message (try 'tool --help')" and exits 64. For constraints between options. */
_Noreturn void opt_usage(const struct tool *tool, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Parses "16,32,64" into values[0..n-1], each from lo to hi. Returns n, or -1 if the text is
 * malformed or has more than `max` values. */
int opt_list(const char *text, int64_t *values, int max, int64_t lo, int64_t hi);

extern const char version_text[];   /* "1.0.0" */
extern const char version_unicode[]; /* version of Unicode whose classes the tokenizers use */
extern const char version_commit[]; /* git commit, "+" when dirty, "unknown" without git */
