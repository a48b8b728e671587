/* script.h - settings and data of a figure as gnuplot reads them, and the data once more as a
 * table.
 *
 * gnuplot executes backticks and $(...) in double quotes: text of records goes through here only,
 * in single quotes, cleaned (format.h).
 *
 *     struct script s = {0};
 *     script_number(&s, "y_log", 1);
 *     script_table(&s, "points", "x y label");
 *     script_row(&s, "nnt", 1.0, 2.0, "it's");
 *     script_table_end(&s);
 */
#ifndef FIGURE_SCRIPT_H
#define FIGURE_SCRIPT_H

#include <stdint.h>

#include "lib/base/buf.h"

enum { SCRIPT_PANELS = 16 };

struct script {
    struct buf settings, data; /* variables; datablocks */
    struct buf table;          /* the same data as tab-separated text */
    int64_t points, skipped;          /* rows written; rows left out as not drawable */
    int rows, block;                  /* of the open table: rows so far, 1 = a gap is due */
    struct buf tips[SCRIPT_PANELS];   /* rows of $tips by panel */
};

/* name = value; NaN is allowed. */
void script_number(struct script *s, const char *name, double value);
void script_text(struct script *s, const char *name, const char *value);
/* array name[max(n, 1)]. */
void script_numbers(struct script *s, const char *name, const double *v, int n);
void script_texts(struct script *s, const char *name, const char *const *v, int n);

/* Opens datablock $name with these column names (space-separated). */
void script_table(struct script *s, const char *name, const char *columns);
/* One row: 'n' a double (NaN is a hole), 't' a const char *. The first column must be a number. */
void script_row(struct script *s, const char *types, ...);
/* What follows is the next index of the table. An index without a row gets a row of holes. */
void script_next(struct script *s, int columns);
void script_table_end(struct script *s);
/* What a pointer at (x, y) of a panel (from 1) shows; box: the corner across, for marks that have
 * an area, or NULL. What gp counts as x and y is what the figure's script makes of them. */
void script_tip(struct script *s, int panel, double x, double y, const double box[2],
                const char *text);
/* Writes them: datablock $tips, an index a panel, x y x2 y2 text, and array tip_count. They stand
 * in no table: each says what a row of it says. */
void script_tips_end(struct script *s);
void script_free(struct script *s);

/* 'text' in which nothing is expanded by gnuplot. An apostrophe is a string of its own, joined by
 * dots: doubled, as the manual has it, two in a row or one in front break the script. */
void script_exact(struct buf *b, const char *text);

#endif
