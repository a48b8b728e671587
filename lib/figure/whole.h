/* whole.h - whether a figure that gnuplot wrote is whole. A write that fails inside gnuplot leaves
 * a gap anywhere in the file, and gnuplot exits with 0. */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/err.h"

/* Reads a file of this format ("svg", "png", "pdf") to its end: the checksums of a PNG, the table
 * of a PDF, the end tag of an SVG. -1 (EXIT_IO): a part is missing; `output` names the file in the
 * message. */
int whole_check(const char *format, const char *output, const struct buf *text, struct err *e);
