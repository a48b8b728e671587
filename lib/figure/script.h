/* script.h - the settings and data of a figure for gnuplot, and the same data as a table.
 *
 * gnuplot executes backticks and $(...) in double quotes. So all texts of records go through this
 * module, which cleans them (display.h) and puts them into single quotes.
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
    struct buf settings, data; /* variables; datablocks */
    struct buf table;          /* the same data as tab-separated text */
    int64_t points, skipped;          /* rows written; rows left out, which cannot be drawn */
    int rows, block;                  /* open table: rows so far; 1: the next row needs a gap */
    struct buf tips[SCRIPT_PANELS];   /* rows of $tips by panel */
};

/* name = value; NaN is allowed. */
void script_number(struct script *script, const char *name, double value);
void script_text(struct script *script, const char *name, const char *value);
/* array name[max(n, 1)]. */
void script_numbers(struct script *script, const char *name, const double *v, int n);
void script_texts(struct script *script, const char *name, const char *const *v, int n);

/* Opens datablock $name with these column names (space-separated). */
void script_table(struct script *script, const char *name, const char *columns);
/* One row. types: 'n' a double (NaN: missing), 't' a const char *. The first column is a number. */
void script_row(struct script *script, const char *types, ...);
/* Begins the next index of the table. An index without rows gets a row of missing values. */
void script_next(struct script *script, int columns);
void script_table_end(struct script *script);
/* The text that a pointer shows at (x, y) of a panel (from 1). box: the opposite corner of a
 * mark with an area; NULL: a point. The .gp file of the figure defines the units of x and y. */
void script_tip(struct script *script, int panel, double x, double y, const double box[2],
                const char *text);
/* Writes these texts: datablock $tips with an index for each panel (x y x2 y2 text), and array
 * tip_count. The table of the figure has the same values, so it has no tips. */
void script_tips_end(struct script *script);
void script_free(struct script *script);

/* Appends the text in single quotes, where gnuplot expands nothing. An apostrophe becomes a
 * string of its own, joined by dots: doubled apostrophes, as in the manual, break the script if
 * two follow each other or one comes first. */
void script_exact(struct buf *buffer, const char *text);
