/* gnuplot.h - a figure as one self-contained gnuplot script, and the running of it.
 *
 * A script is: a head that names the output, settings as variables, the data as named datablocks,
 * plots/style.gp and plots/TYPE.gp. Whoever has that one file and gnuplot can make the figure
 * again.
 * gnuplot executes backticks and $(...) in double quotes: text of records goes through here only,
 * in single quotes, cleaned (format.h).
 *
 *     struct script s = {0};
 *     script_number(&s, "y_log", 1);
 *     script_table(&s, "points", "x y label");
 *     script_row(&s, "nnt", 1.0, 2.0, "it's");
 *     script_table_end(&s);
 *     gnuplot_figure(&s, "pareto", "fig.svg", &e);
 */
#ifndef FIGURE_GNUPLOT_H
#define FIGURE_GNUPLOT_H

#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct script {
    struct buf settings, data; /* variables; datablocks */
    struct buf table;          /* the same data as tab-separated text */
    int64_t points, skipped;          /* rows written; rows left out as not drawable */
    int rows, block;                  /* of the open table: rows so far, 1 = a gap is due */
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
void script_free(struct script *s);

/* 1 when gnuplot can draw v: finite, of sane magnitude, and positive if the axis is logarithmic. */
int gnuplot_drawable(double v, int log_axis);

/* The whole script, the same for every format; `type` names the files of plots/ that draw it
 * ("pareto", "memory heat"); `output` names the figure, or is NULL for the terminal. -1:
 * plots/TYPE.gp is missing (EXIT_NO_INPUT). */
int gnuplot_script(struct buf *out, const struct script *s, const char *type, const char *output,
                   double width_cm, struct err *e);
/* Runs a script file. `output` and `format` (svg, png, pdf) override what it writes (output
 * NULL: as the script says); its standard output is ours. -1 with gnuplot's message:
 * EXIT_INTERNAL. */
int gnuplot_run(const char *script_path, const char *output, const char *format, struct err *e);
/* Writes `output` by running the script: in the format of its suffix, drawn beside its place,
 * checked not to be empty, renamed. */
int gnuplot_draw(const char *script_path, const char *output, struct err *e);

#endif
