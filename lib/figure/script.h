/* script.h - writes the settings and data of a figure for gnuplot, and the same data as a table.
 *
 * gnuplot executes backticks and $(...) in double quotes. So all texts of records go through this
 * module, which cleans the texts (display.h) and puts them into single quotes.
 *
 *     struct script s = {0};
 *     script_number(&s, "y_log", 1);
 *     script_table(&s, "points", "x y label");
 *     script_row(&s, "nnt", 1.0, 2.0, "it's");
 *     script_table_end(&s); */
#pragma once

#include <stdint.h>

#include "lib/base/buf.h"

enum { SCRIPT_PANELS = 16 };

struct script {
    struct buf settings, data; /* settings: variables; data: datablocks */
    struct buf table;          /* the data as tab-separated text */
    int64_t points, skipped;          /* rows written; values left out that cannot be drawn */
    int rows, block;                  /* rows of the open index; block 1: a gap comes next */
    struct buf tips[SCRIPT_PANELS];   /* rows of $tips by panel */
};

/* Sets the variable `name`. The value may be NaN. */
void script_number(struct script *script, const char *name, double value);
void script_text(struct script *script, const char *name, const char *value);
/* Sets the array name[max(n, 1)], because gnuplot has no array without elements. */
void script_numbers(struct script *script, const char *name, const double *v, int n);
void script_texts(struct script *script, const char *name, const char *const *v, int n);

/* Opens datablock $name. columns: the names of its columns, separated by spaces. */
void script_table(struct script *script, const char *name, const char *columns);
/* Writes a row. types: a letter for each column: 'n': double (NaN: missing), 't': const char *. The
 * first column must be a number. */
void script_row(struct script *script, const char *types, ...);
/* Begins the next index of the table. If the index before it has no rows, writes a row of missing
 * values there. */
void script_next(struct script *script, int columns);
void script_table_end(struct script *script);
/* Sets the text that a pointer shows at (x, y) of a panel (from 1). box: the opposite corner of a
 * mark with an area; NULL: the mark is a point. The .gp file of the figure defines the units of x
 * and y. */
void script_tip(struct script *script, int panel, double x, double y, const double box[2],
                const char *text);
/* Writes the texts of script_tip(): datablock $tips with an index for each panel (x y x2 y2 text),
 * and the array tip_count. They are not in the table, which has the same values as data. */
void script_tips_end(struct script *script);
void script_free(struct script *script);

/* Appends the text in single quotes, where gnuplot expands nothing. An apostrophe becomes a
 * separate string, joined by dots. gnuplot's manual doubles apostrophes instead, but that breaks
 * the script if two follow each other or one comes first. */
void script_exact(struct buf *buffer, const char *text);
