/* overview.h - the main page: the first screen, then sections. A section has one sentence, one
 * figure and one table of at most OVERVIEW_ROWS rows. All sentences and numbers come from claims
 * and other records; the page computes none. */
#pragma once

#include "lib/analysis/records/runset.h"
#include "lib/report/page.h"
#include "lib/report/shelf.h"

enum { OVERVIEW_ROWS = 12 };

struct overview {
    const char *title;        /* used if no claim states the question */
    const struct shelf *shelf;
    const struct page *tables; /* the finished page of all tables, for links to its sections */
    int embedded;             /* 1: the models are the embedded models */
};
/* Fills the page, from page_begin() to page_end(). */
void overview_fill(struct page *page, const struct runset *set, const struct overview *overview);

/* The tables of the sections. A function without records writes nothing. */
void overview_quality(struct page *page, const struct runset *set);
void overview_decoding(struct page *page, const struct runset *set);
void overview_scale(struct page *page, const struct runset *set);
void overview_memory(struct page *page, const struct runset *set);
void overview_method(struct page *page, const struct runset *set, int embedded);
