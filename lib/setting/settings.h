/* settings.h - the settings of a generator as data: one table gives its options and their help, the
 * members of a schedule's points, the fields of records, the label that people see, and the
 * identity of a point.
 *
 * A *point* is a value for every row of a table. Values are doubles whatever the type: integers
 * below 2^53 are exact, a choice is the place of its word in `choices`, a flag is 0 or 1.
 *
 * A row counts only where its `only` holds ("unmask=threshold", "a=x|y", "n>0"): elsewhere it is
 * null in records, absent from labels, and no part of the identity, since it changes nothing there.
 *
 *     const char *given[SETTINGS_MAX] = {0};                  what the command line said
 *     n = settings_options(&table, given, options, &texts);
 *     struct settings *point; size_t n;
 *     settings_cross(&table, given, &point, &n, &e);          every combination of the lists
 *     settings_put(&point[0], record);                        one field a row
 */
#ifndef SETTING_SETTINGS_H
#define SETTING_SETTINGS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/cli/opt.h"
#include "lib/base/err.h"

enum setting_type { SETTING_INT, SETTING_REAL, SETTING_CHOICE, SETTING_FLAG };
enum setting_traits {
    SETTING_SWEPT = 1, /* its option takes a list, whose values are crossed with all others */
    SETTING_TEXT = 2,  /* changes what comes out */
    SETTING_SPEED = 4, /* changes what is computed, and so time and memory */
    SETTING_SHOWN = 8, /* labels name it at its default too */
    SETTING_AXIS = 16, /* the axis of a point is the first row with this trait that counts there */
    SETTING_LENGTH = 32 /* the tokens that come, at most; one row of a table has it */
};
struct setting {
    const char *name;     /* of the field, "gen_length"; its option is --gen-length */
    char letter;          /* of the short option, or 0 */
    enum setting_type type;
    double lo, hi;        /* numbers, inclusive */
    const char *choices;  /* "a|b|c" */
    const char *standard; /* the default as an option would say it, or the name of an earlier or
                           * later row, whose value it then is */
    const char *unit;     /* "tokens", "steps"; NULL: a pure number */
    const char *label;    /* in labels, "gen" in "gen=64"; a flag's is all there is */
    const char *only;     /* NULL: counts everywhere */
    unsigned traits;
    const char *help;     /* without the default, which is added */
    const char *option;   /* of the option, "gen-length"; NULL: the name with '-' for '_' */
    int rare;             /* 1: not in --help (struct opt) */
};
/* Another option for a row. With the word of a choice it takes no value: --stop-at-eos for
 * --contract answer. word NULL: it takes a value, as the row's own option does. */
struct settings_alias {
    const char *option, *row, *word;
};
/* The rows of a generator, the first one outermost when lists are crossed. */
struct settings;
struct settings_table {
    const char *system; /* in schedules: "llada", "llama" */
    const struct setting *row;
    size_t n;           /* <= SETTINGS_MAX */
    const struct settings_alias *alias; /* option NULL last; NULL: none */
    /* 0, or -1 with EXIT_BAD_USAGE naming the constraint that settings of a point break, whatever
     * the model; NULL: there is none. */
    int (*check)(const struct settings *point, struct err *e);
};
enum { SETTINGS_MAX = 64, SETTINGS_POINTS = 4096, SETTINGS_ID = 13 /* 12 hex digits and NUL */,
       SETTINGS_WORD = 40, SETTINGS_ALIASES = 4 };

struct settings { /* a point */
    const struct settings_table *table;
    double v[SETTINGS_MAX];
    uint64_t said; /* bit i: row i has a value of its own, not its default */
};

/* ---- rows ---- */

/* Place of a name (of a record's field, or of an option with '-' for '_'); table->n: none. */
size_t settings_find(const struct settings_table *t, const char *name);
/* The texts that options made here point to: all zero at first, kept until they are parsed. */
struct settings_texts {
    char **v;
    size_t n, cap;
};
void settings_texts_free(struct settings_texts *t);
/* Keeps a text (stolen) and returns it. */
char *settings_texts_keep(struct settings_texts *t, char *text);
/* Appends one option for each row, its help with the default; `given`[i] becomes the text that the
 * command line gives row i, else stays. Returns how many; options must have room for n rows. */
size_t settings_options(const struct settings_table *t, const char **given, struct opt *options,
                        struct settings_texts *texts);
/* Appends the options of the table's aliases, at most SETTINGS_ALIASES. Returns how many. */
size_t settings_alias_options(const struct settings_table *t, const char **given,
                              struct opt *options, struct settings_texts *texts);

/* ---- points ---- */

/* The point at which every row has its default. */
struct settings settings_default(const struct settings_table *t);
/* The value of a row that the table has. */
double settings_number(const struct settings *s, const char *name);
size_t settings_count(const struct settings *s, const char *name);      /* of an integer row */
/* The word of a choice row, NUL-ended and cut to the room. */
void settings_word(const struct settings *s, size_t row, char word[SETTINGS_WORD]);
int settings_is(const struct settings *s, const char *name, const char *word);
/* 1: the row counts at this point. */
int settings_counts(const struct settings *s, size_t row);

/* *point = every combination of the lists in given[] (NULL: the default), the last row innermost,
 * each point once: combinations that differ only in rows that do not count are one. The caller's to
 * free. -1: EXIT_BAD_USAGE naming the option, what was expected and what it got. */
int settings_cross(const struct settings_table *t, const char *const *given,
                   struct settings **point, size_t *n, struct err *e);
/* table->check of a point. */
int settings_check(const struct settings *s, struct err *e);
/* 1: one point: all rows that count agree, whichever of them were said. */
int settings_same(const struct settings *a, const struct settings *b);
/* The members of o that are rows overwrite those of *s ("steps": 16; words and booleans as in
 * records; null: the default). Rows that follow another one follow it anew. -1: EXIT_BAD_DATA with
 * `where` and the member. Members that are no rows are the caller's business. */
int settings_read(struct settings *s, const json_t *o, const char *where, struct err *e);

/* ---- what records and people see ---- */

/* The rows that were said and count, as the members of a schedule's point. The caller's reference.
 */
json_t *settings_said(const struct settings *s);
/* Says a value of a row that the table has. */
void settings_say(struct settings *s, const char *name, double v);
/* Sets the field of every row: number, word, boolean; null where it does not count. */
void settings_put(const struct settings *s, json_t *record);
/* Appends " steps=16 gen=64": first the rows that are always shown, then axes and what is not at
 * its default. */
void settings_label(const struct settings *s, struct buf *out);
/* Name of the point's axis, or NULL. */
const char *settings_axis(const struct settings *s);
/* id = the first 12 hex digits of the SHA-256 of the object `about`, its members in the order of
 * their names, without the member `without` (NULL: none). Members that are null do not count. */
void settings_id(const json_t *about, const char *without, char id[SETTINGS_ID]);

#endif
