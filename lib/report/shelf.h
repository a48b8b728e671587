/* shelf.h - the figures of a report. They lie in one folder: drawings (NAME.svg), each with its
 * data (.tsv), its script (.gp), its caption (.txt), and a variant for narrow screens
 * (NAME-narrow.svg). */
#pragma once

#include "lib/base/err.h"
#include "lib/report/page.h"

struct shelf {
    const char *folder, *output; /* output: the file of the page: links start there; borrowed */
    char **names;                /* [n] figures with data, in the order of the report; owned */
    size_t n;
};
/* folder NULL: no figures. -1: the folder cannot be read. */
int shelf_open(struct shelf *shelf, const char *folder, const char *output, struct err *e);
void shelf_close(struct shelf *shelf);

int shelf_has(const struct shelf *shelf, const char *name);
/* Puts the figure on the page. title NULL: the first sentence of its caption. is_lead 1: it is the
 * large figure of the first screen. */
void shelf_put(struct page *page, const struct shelf *shelf, const char *name, const char *title,
               int is_lead);
/* Puts a link to the figure and its files on the page. */
void shelf_link(struct page *page, const struct shelf *shelf, const char *name);
