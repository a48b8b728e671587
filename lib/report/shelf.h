/* shelf.h - the figures of a report, read from one folder. A figure is a drawing (NAME.svg) with
 * its data (NAME.tsv), script (NAME.gp), caption (NAME.txt) and a drawing for narrow screens
 * (NAME-narrow.svg). */
#pragma once

#include "lib/base/err.h"
#include "lib/report/page.h"

struct shelf {
    const char *folder, *output; /* output: the file of the page, to which links are relative;
                                  * both borrowed */
    char **names;                /* [n] NAMEs of figures with data, in report order; owned */
    size_t n;
};
/* folder NULL: no figures. -1 (EXIT_NO_INPUT): the folder cannot be read. */
int shelf_open(struct shelf *shelf, const char *folder, const char *output, struct err *e);
void shelf_close(struct shelf *shelf);

int shelf_has(const struct shelf *shelf, const char *name);
/* Puts the figure on the page. title NULL: the first sentence of the caption is the title. is_lead
 * 1: the figure is the large figure of the first screen. */
void shelf_put(struct page *page, const struct shelf *shelf, const char *name, const char *title,
               int is_lead);
/* Puts a link to the figure and its files on the page. */
void shelf_link(struct page *page, const struct shelf *shelf, const char *name);
