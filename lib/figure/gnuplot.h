/* gnuplot.h - a figure as one self-contained gnuplot script, and the running of it.
 *
 * A script is: a head that names the output, the settings and the data (script.h), plots/style.gp
 * and plots/TYPE.gp. Whoever has that one file and gnuplot can make the figure again.
 *
 * gnuplot does not say when it cannot write. So it writes into memory, and we write the file.
 */
#ifndef FIGURE_GNUPLOT_H
#define FIGURE_GNUPLOT_H

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/figure/script.h"
#include "lib/figure/svg.h"

/* 1 when gnuplot can draw v: finite, of sane magnitude, and positive if the axis is logarithmic. */
int gnuplot_drawable(double v, int log_axis);

/* The whole script, the same for every format; `type` names the files of plots/ that draw it
 * ("pareto", "memory heat"); `output` names the figure, or is NULL for the terminal. -1:
 * plots/TYPE.gp is missing (EXIT_NO_INPUT). */
int gnuplot_script(struct buf *out, const struct script *s, const char *type, const char *output,
                   double width_cm, struct err *e);
/* Appends what a script of the terminal draws to *text. -1 with gnuplot's message:
 * EXIT_INTERNAL. */
int gnuplot_text(const struct buf *script, const char *type, struct buf *text, struct err *e);
/* Writes `output` by running a script file, in the format of the suffix (svg, png, pdf); an SVG is
 * finished (svg.h). `type` names the figure in messages; width_cm 0: the width of the script. Only
 * a whole figure gets the name: -1 also when it was cut short (EXIT_IO). */
int gnuplot_draw(const char *script_path, const char *output, const char *type, double width_cm,
                 const struct svg_about *about, struct err *e);

#endif
