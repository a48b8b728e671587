/* gnuplot.h - writes a figure as one self-contained gnuplot script, and runs gnuplot.
 *
 * A script contains a head that names the output, the settings and the data (script.h),
 * plots/style.gp and plots/TYPE.gp. gnuplot can draw the figure again from this script alone.
 *
 * gnuplot does not report a failed write. So gnuplot writes into memory, and this module writes the
 * file. */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/figure/script.h"
#include "lib/figure/svg.h"

/* 1: gnuplot can draw v: v is finite, |v| is below 1e30, and v is above 1e-30 if the axis is
 * logarithmic. */
int gnuplot_drawable(double v, int log_axis);

/* Appends the whole script, which is the same for every format. type: the files of plots/ that draw
 * the figure ("pareto", "memory heat"). output: the file of the figure; NULL: the terminal. -1:
 * plots/TYPE.gp is missing (EXIT_NO_INPUT). */
int gnuplot_script(struct buf *out, const struct script *script, const char *type,
                   const char *output, double width_cm, struct err *e);
/* Runs a script and appends its drawing for the terminal to *text. -1: EXIT_INTERNAL, with the
 * message of gnuplot. */
int gnuplot_text(const struct buf *script, const char *type, struct buf *text, struct err *e);
/* Runs a script file and writes `output` in the format of its suffix (svg, png, pdf). An SVG is
 * finished by svg_finish(). type: names the figure in messages. width_cm 0: the width in the
 * script. An incomplete figure is not written: -1, EXIT_IO. */
int gnuplot_draw(const char *script_path, const char *output, const char *type, double width_cm,
                 const struct svg_about *about, struct err *e);
