/* overview.h - the main page: the first screen, then sections of one sentence, one figure and one
 * table of at most OVERVIEW_ROWS rows each. All sentences and numbers come from claims and other
 * records; none is computed here. */
#pragma once

#include "lib/analysis/records/runset.h"
#include "lib/report/page.h"
#include "lib/report/shelf.h"

enum { OVERVIEW_ROWS = 12 };

struct overview {
    const char *title;        /* used if no claim states the question */
    const struct shelf *shelf;
    const struct page *tables; /* the page of all tables, for links to its sections */
    int embedded;             /* 1: the models are the embedded ones */
};
void overview_fill(struct page *page, const struct runset *set, const struct overview *overview);

/* The tables of the sections; without records a function writes none. */
void overview_quality(struct page *page, const struct runset *set);
void overview_decoding(struct page *page, const struct runset *set);
void overview_scale(struct page *page, const struct runset *set);
void overview_memory(struct page *page, const struct runset *set);
void overview_method(struct page *page, const struct runset *set, int embedded);
