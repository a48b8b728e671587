/* gnuplot.h - a figure as one self-contained gnuplot script, and the running of it.
 *
 * A script is: a head that names the output, the settings and the data (script.h), plots/style.gp
 * and plots/TYPE.gp. Whoever has that one file and gnuplot can make the figure again.
 */
#ifndef FIGURE_GNUPLOT_H
#define FIGURE_GNUPLOT_H

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/figure/script.h"

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
