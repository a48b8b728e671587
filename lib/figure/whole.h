/* whole.h - checks whether a figure that gnuplot wrote is whole. If a write fails inside gnuplot,
 * the file has a gap somewhere, and gnuplot still exits with 0. */
#pragma once

#include "lib/base/buf.h"
#include "lib/base/err.h"

/* Checks a file of this format ("svg", "png", "pdf"): the checksums of a PNG, the table of objects
 * of a PDF, the end tag of an SVG. -1: a part is missing (EXIT_IO) or the file is empty
 * (EXIT_INTERNAL). output: names the file in the message. */
int whole_check(const char *format, const char *output, const struct buf *text, struct err *e);
