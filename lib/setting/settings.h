/* settings.h - the settings of a generator as data. One table gives the options and their help, the
 * points of a schedule, the fields of records, the label and the identity of a point.
 *
 * A *point* is a value for every row of a table. All values are doubles: integers below 2^53 are
 * exact, a choice is the place of its word in `choices` (from 0), a flag is 0 or 1.
 *
 * A row counts only if its condition `only` or `also` holds ("unmask=threshold", "a=x|y", "n>0").
 * Otherwise the row has no effect: it is null in records, and not part of label and identity.
 *
 *     const char *given[SETTINGS_MAX] = {0};                  texts of the command line
 *     n = settings_options(&table, given, options, &texts);
 *     struct settings *point; size_t n;
 *     settings_cross(&table, given, &point, &n, &e);          all combinations of the lists
 *     settings_put(&point[0], record);                        one field per row */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/cli/opt.h"
#include "lib/base/err.h"

enum setting_type { SETTING_INT, SETTING_REAL, SETTING_CHOICE, SETTING_FLAG };
enum setting_traits {
    SETTING_SWEPT = 1, /* its option takes a list; all lists are crossed */
    SETTING_TEXT = 2,  /* changes the answers */
    SETTING_SPEED = 4, /* changes the computation, and so time and memory */
    SETTING_SHOWN = 8, /* labels show it also at its default */
    SETTING_AXIS = 16, /* the first such row that counts is the axis of a point */
    SETTING_LENGTH = 32, /* most tokens of an answer; one row of each table has this trait */
    SETTING_CONDITION = 64 /* has no field in records; their field `conditions` has the value */
};
struct setting {
    const char *name;     /* name of the record field: "gen_length" */
    char letter;          /* letter of the short option, or 0 */
    enum setting_type type;
    double lo, hi;        /* range of numbers, inclusive */
    const char *choices;  /* "a|b|c" */
    const char *standard; /* the default as the text of an option, or the name of another row
                           * whose value is the default */
    const char *unit;     /* "tokens", "steps"; NULL: a pure number */
    const char *label;    /* name in labels: "gen" in "gen=64"; a flag that is on has no "=" */
    const char *only;     /* condition (see above); NULL: the row always counts */
    unsigned traits;
    const char *help;     /* without the default, which settings_options adds */
    const char *option;   /* name of the option: "gen-length"; NULL: `name` with '-' for '_' */
    int rare;             /* 1: not in --help (struct opt) */
    const char *also;     /* the row also counts where this condition holds; it may test the row
                           * itself. NULL: none */
};
/* Another option for a row. word NULL: the alias takes a value, as the row's own option does. Else
 * the alias takes no value and sets this word: --stop-at-eos for --contract answer. */
struct settings_alias {
    const char *option, *row, *word;
    int rare; /* 1: not in --help */
};
struct settings;
/* The rows of a generator; when lists are crossed the first row is the outermost loop. */
struct settings_table {
    const char *system; /* in schedules: "llada", "llama" */
    const struct setting *row;
    size_t n;           /* <= SETTINGS_MAX */
    const struct settings_alias *alias; /* ends with option NULL; NULL: no aliases */
    /* Checks the constraints among the settings of a point that need no model. -1: EXIT_BAD_USAGE
     * with the broken constraint. NULL: there are no constraints. */
    int (*check)(const struct settings *point, struct err *e);
};
enum { SETTINGS_MAX = 96, SETTINGS_POINTS = 4096, SETTINGS_ID = 13 /* 12 hex digits and NUL */,
       SETTINGS_WORD = 40, SETTINGS_ALIASES = 6 };

struct settings { /* a point */
    const struct settings_table *table;
    double v[SETTINGS_MAX];
    unsigned char said[SETTINGS_MAX]; /* 1: the row was given a value */
};

/* ---- rows ---- */

/* The row of this name, where '-' in `name` may stand for '_'; table->n: there is none. */
size_t settings_find(const struct settings_table *table, const char *name);
/* The row whose value is the default of row i; table->n: row i has a default of its own. */
size_t settings_followed(const struct settings_table *table, size_t i);
/* "gen-length": the option of a row, without its dashes. */
void settings_option(const struct setting *setting, char name[SETTINGS_WORD]);

/* Texts that the options point to; zero at first. Free it after the options are parsed. */
struct settings_texts {
    char **v;
    size_t n, cap;
};
void settings_texts_free(struct settings_texts *texts);
/* Keeps a text (stolen) and returns it. */
char *settings_texts_keep(struct settings_texts *texts, char *text);
/* Writes one option for each row, with its default in the help. Parsing sets given[i] to the text
 * for row i. Returns the number of options, table->n, for which options[] must have room. */
size_t settings_options(const struct settings_table *table, const char **given, struct opt *options,
                        struct settings_texts *texts);
/* Writes the options of the table's aliases, at most SETTINGS_ALIASES. Returns their number. */
size_t settings_alias_options(const struct settings_table *table, const char **given,
                              struct opt *options, struct settings_texts *texts);

/* ---- points ---- */

/* The point at which every row has its default. */
struct settings settings_default(const struct settings_table *table);
/* The value of a row, which the table must have. */
double settings_number(const struct settings *settings, const char *name);
size_t settings_count(const struct settings *settings, const char *name); /* of an integer row */
/* word = the word of a choice row, cut to SETTINGS_WORD. */
void settings_word(const struct settings *settings, size_t row, char word[SETTINGS_WORD]);
/* 1: the choice row `name` has the value `word`, which must be one of its choices. */
int settings_is(const struct settings *settings, const char *name, const char *word);
/* 1: the row counts at this point. */
int settings_counts(const struct settings *settings, size_t row);

/* *point = all combinations of the lists in given[] (NULL: the default), the last row innermost;
 * the caller's to free. Combinations that differ only in rows that do not count are one point. -1:
 * EXIT_BAD_USAGE: a list is invalid (the message has the option, the expected values and the text),
 * or there are more than SETTINGS_POINTS combinations. */
int settings_cross(const struct settings_table *table, const char *const *given,
                   struct settings **point, size_t *n, struct err *e);
/* Calls table->check, if there is one. */
int settings_check(const struct settings *settings, struct err *e);
/* 1: a and b are the same point: the same rows count in both and have equal values. Whether a value
 * was given (`said`) makes no difference. */
int settings_same(const struct settings *a, const struct settings *b);
/* Overwrites rows of *settings by the members of object: {"steps": 16, ...}, with words and
 * booleans as in records; null sets the default. Then each row that was not given and whose default
 * is another row takes the value of that row. Ignores members that are no row. -1: EXIT_BAD_DATA
 * with `where` and the member. */
int settings_read(struct settings *settings, const json_t *object, const char *where,
                  struct err *e);
/* Checks type and range of the field of a row in a record; `value` is not null. -1: EXIT_BAD_DATA
 * with `where`, the field, the expected values and the value. */
int settings_check_member(const struct setting *setting, const json_t *value, const char *where,
                          struct err *e);

/* ---- record fields and labels ---- */

/* The rows that were given and count, as a point of a schedule. The caller's reference. */
json_t *settings_said(const struct settings *settings);
/* Gives a value to a row, which the table must have. */
void settings_say(struct settings *settings, const char *name, double v);
/* values: "row=value row=value". Sets each of these rows, unless the row was given a value. The
 * table must have these rows, and the values must be valid. */
void settings_suppose(struct settings *settings, const char *values);
/* Sets the field of every row without SETTING_CONDITION: a number, word or boolean; null if the row
 * does not count. */
void settings_put(const struct settings *settings, json_t *record);
/* Appends " steps=16 gen=64": first the rows with SETTING_SHOWN, then the rows with SETTING_AXIS
 * and the rows that differ from their default. Rows that do not count are left out. */
void settings_label(const struct settings *settings, struct buf *out);
/* Name of the point's axis (SETTING_AXIS), or NULL. */
const char *settings_axis(const struct settings *settings);
/* id = the first 12 hex digits of the SHA-256 of the object `about`, with members sorted by name
 * and without null members and the member `without` (may be NULL). */
void settings_id(const json_t *about, const char *without, char id[SETTINGS_ID]);
