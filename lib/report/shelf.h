/* shelf.h - the figures of a run: a folder of drawings (NAME.svg), each with its data (.tsv), its
 * script (.gp), its caption (.txt), and a variant for narrow screens (NAME-narrow.svg). */
#pragma once

#include "lib/base/err.h"
#include "lib/report/page.h"

struct shelf {
    const char *folder, *output; /* output: the page, for links; both borrowed */
    char **names;                /* of figures with data, in the order of the report; owned */
    size_t n;
};
/* folder NULL: an empty shelf. -1: it cannot be read. */
int shelf_open(struct shelf *shelf, const char *folder, const char *output, struct err *e);
void shelf_close(struct shelf *shelf);

int shelf_has(const struct shelf *shelf, const char *name);
/* Puts the figure on the page. title NULL: the first sentence of its caption. */
void shelf_put(struct page *page, const struct shelf *shelf, const char *name, const char *title,
               int is_lead);
/* Puts a link to the figure and its files on the page. */
void shelf_link(struct page *page, const struct shelf *shelf, const char *name);
