/* svg.h - a drawing of gnuplot made fit for a page: it says its values to a pointer and its subject
 * to a screen reader; its ids are its own, and it has a dark mode. */
#ifndef FIGURE_SVG_H
#define FIGURE_SVG_H

#include "lib/base/buf.h"

struct svg_about {
    const char *id;          /* of letters, digits and '-'; in front of every id */
    const char *title, *desc; /* the figure in one sentence; all of it in words */
};

/* Rewrites in place. Marks of the script's table $tips (script.h) become transparent targets with a
 * <title>; colours are written as #rrggbb, and a style element gives those of the house other ones
 * where the reader's system is dark (the page may set --back and --ink). A drawing that is not
 * gnuplot's is left as it is. */
void svg_finish(struct buf *svg, const struct svg_about *about);

#endif
