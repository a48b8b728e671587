/* svg.h - prepares an SVG of gnuplot for a page. A pointer then shows the values of marks, a screen
 * reader reads title and description, ids are unique on the page, and there is a dark mode. */
#pragma once

#include "lib/base/buf.h"

struct svg_about {
    const char *id;           /* letters, digits and '-'; prefix of every id */
    const char *title, *desc; /* title: one sentence; desc: the whole caption */
};

/* Rewrites the SVG in place. Marks of the table $tips (script.h) become transparent shapes with a
 * <title>. Colours become #rrggbb, and a style element replaces the colours of style.gp in dark
 * mode. The page may set the colours --back and --ink. An SVG that gnuplot did not write stays as
 * it is. */
void svg_finish(struct buf *svg, const struct svg_about *about);
